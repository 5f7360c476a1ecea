//! The answer, for people and for machines.

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::super::args::{LatencyArgs, TableFormat};
use super::super::draw;
use super::super::operation::{inexact, number_line, others, say_doubts};
use super::every::Every;
use super::top::{Slowest, Top};
use crate::chart::{Style, Unit, shares};
use crate::groups::GroupId;
use crate::latencies::{self, Latencies, Percentile};
use crate::measure::Measured;
use crate::pairing::{Chain, Counts, Pairing, Question, late_means, straddling_means};
use crate::presets::Preset;
use crate::render::{Cell, Column, Rows};

/// The answer.
pub(crate) struct Report {
    question: Question,
    pub(super) counts: Counts,
    straddling: u64,
    late: u64,
    is_exact: bool,
    /// Pairs of groups that are not told apart.
    others: u64,
    /// What is known of the preset: its name, and whether its key is exact.
    preset: Option<(String, bool)>,
    span_ns: u64,
    groups: Rows,
    /// By interval, if that was asked for.
    every: Option<Rows>,
    pub(super) top: Slowest,
    slowest: Rows,
    /// Histograms, and what part each hop is of the whole.
    pictures: String,
    /// What short names in the tables stand for.
    legend: Vec<String>,
}

impl Report {
    pub(super) fn new(
        pairing: &Pairing,
        mut measured: Measured,
        every: Option<Every>,
        top: Top,
        args: &LatencyArgs,
        preset: Option<&Preset>,
        style: Style,
    ) -> Self {
        let pictures = pictures(pairing, &mut measured, args, style);
        let mut report = Self::of(pairing, measured, &args.percentiles, preset);
        report.pictures = pictures;
        report.every = every.map(|every| {
            let mut table = Table { pairing, percentiles: &args.percentiles, is_exact: report.is_exact };
            let mut rows = Rows::new(table.columns(Some(Column::since("from"))));
            let length_ns = args.every.unwrap_or_default();
            every.finish().for_each(|(from_ns, measured)| table.push(measured, length_ns, Some(from_ns), &mut rows));
            report.is_exact = table.is_exact;
            rows
        });
        let mut top = top.finish();
        top.0.retain(|slow| slow.latency_ns >= args.min.unwrap_or_default());
        report.slowest = slowest(pairing, &top);
        report.top = top;
        report
    }

    /// Of the groups alone.
    pub(crate) fn of(
        pairing: &Pairing,
        measured: Measured,
        percentiles: &[Percentile],
        preset: Option<&Preset>,
    ) -> Self {
        let straddling = measured.straddling;
        let (first_ns, last_ns) = measured.span_ns.unwrap_or_default();
        let span_ns = last_ns - first_ns;
        let mut table = Table { pairing, percentiles, is_exact: true };
        let others = measured.groups.iter().filter(|group| pairing.groups.is_other(group.id));
        let others = others.map(|group| group.total.count()).sum();
        let mut groups = Rows::new(table.columns(None));
        table.push(measured, span_ns, None, &mut groups);
        let top = Slowest(Vec::new());
        Self {
            question: pairing.question().clone(),
            counts: pairing.counts(),
            straddling,
            late: pairing.late(),
            is_exact: table.is_exact,
            others,
            preset: preset.map(|preset| (preset.name().to_owned(), preset.exact)),
            span_ns,
            groups,
            every: None,
            slowest: slowest(pairing, &top),
            top,
            pictures: String::new(),
            legend: pairing.groups.legend(),
        }
    }

    /// The groups, and all else that JSON has.
    #[cfg(feature = "columns")]
    pub(crate) fn into_parts(self) -> (Rows, Map<String, Value>) {
        let mut json = self.json();
        json.remove("groups");
        (self.groups, json)
    }

    pub(super) fn render(&self, format: TableFormat) -> Result<String> {
        let rows = self.every.as_ref().unwrap_or(&self.groups);
        Ok(match format {
            TableFormat::Table => self.table(),
            TableFormat::Json => serde_json::to_string_pretty(&self.json())? + "\n",
            TableFormat::Csv | TableFormat::Ndjson => rows.render(format)?,
        })
    }

    fn table(&self) -> String {
        let mut text = format!("{}\n", self.question);
        let tables = [Some(&self.groups), self.every.as_ref(), Some(&self.slowest)];
        for rows in tables.into_iter().flatten().filter(|rows| !rows.is_empty()) {
            text += &format!("\n{}", rows.table());
        }
        text += &self.pictures;
        text.push('\n');
        for line in &self.legend {
            text += &format!("{line}\n");
        }
        for (name, number, what) in self.numbers() {
            text += &number_line(name, number, &what);
        }
        for line in self.doubts().iter().filter(|line| !line.is_empty()) {
            text += &format!("          {line}\n");
        }
        text
    }

    /// How far percentiles and groups are not what they seem; empty texts are no doubts.
    fn doubts(&self) -> [String; 2] {
        [if self.is_exact { String::new() } else { inexact("latencies") }, others(self.others, "pair")]
    }

    /// Says on stderr what the table would have said.
    pub(super) fn say_doubts(&self, format: TableFormat) {
        let numbers: Vec<_> = self.numbers().collect();
        let numbers = numbers.iter().map(|(name, number, what)| (*name, *number, what.as_str()));
        say_doubts(format, numbers, &self.doubts());
    }

    /// What became of all records.
    fn numbers(&self) -> impl Iterator<Item = (&'static str, u64, String)> {
        let straddling = straddling_means(self.question.drops);
        let numbers = self.counts.each().map(|(name, number, what)| (name, number, what.to_owned()));
        let others = [("straddling", self.straddling, straddling.to_owned()), ("late", self.late, late_means())];
        numbers.into_iter().chain(others)
    }

    fn json(&self) -> Map<String, Value> {
        let mut json = Map::new();
        let mut put = |name: &str, value: Value| json.insert(name.to_owned(), value);
        put("schema", "simpletrace-rs.latency/1".into());
        put("operation", self.question.chain.to_string().into());
        put("on", self.question.on.iter().map(ToString::to_string).collect::<Vec<_>>().into());
        for (name, number, _) in self.numbers() {
            put(name, number.into());
        }
        put("exact", self.is_exact.into());
        put("other_pairs", self.others.into());
        if let Some((name, exact)) = &self.preset {
            put("preset", json!({ "name": name, "exact": exact }));
        }
        put("span_ns", self.span_ns.into());
        put("groups", json!(self.groups.objects().collect::<Vec<_>>()));
        if let Some(every) = &self.every {
            put("every", json!(every.objects().collect::<Vec<_>>()));
        }
        if !self.slowest.is_empty() {
            put("slowest", json!(self.slowest.objects().collect::<Vec<_>>()));
        }
        json
    }
}

/// Makes rows of what was measured.
struct Table<'a> {
    pairing: &'a Pairing,
    percentiles: &'a [Percentile],
    is_exact: bool,
}

impl Table<'_> {
    fn has_hops(&self) -> bool {
        self.pairing.question().chain.len() > 2
    }

    fn columns(&self, first: Option<Column>) -> Vec<Column> {
        let mut columns: Vec<_> = first.into_iter().chain(self.pairing.groups.terms().map(Column::new)).collect();
        columns.extend(self.has_hops().then(|| Column::new("hop")));
        columns.extend([Column::new("pairs"), Column::new("rate_per_s")]);
        columns.extend(latencies::columns(self.percentiles));
        columns.extend(self.has_hops().then(|| Column::new("share")));
        // Where the time goes, of several groups; tables of hops are wide enough.
        let is_shown = !self.pairing.question().by.is_empty() && !self.has_hops();
        columns.extend([Column::time("total"), Column::new("of_all")].map(|column| column.for_machines(!is_shown)));
        columns
    }

    fn push(&mut self, measured: Measured, span_ns: u64, from_ns: Option<u64>, rows: &mut Rows) {
        let chain = &self.pairing.question().chain;
        let whole_ns = measured.groups.iter().map(|group| group.total.sum_ns()).sum();
        for mut group in measured.groups {
            let all_ns = group.total.sum_ns();
            let mut first: Vec<_> = from_ns.map(Cell::Ns).into_iter().collect();
            first.extend(self.pairing.groups.cells(group.id));
            for (stage, hop) in group.hops.iter_mut().enumerate() {
                let name = hop_name(chain, stage);
                rows.push(self.row(&first, Some(name), hop, [all_ns, whole_ns], span_ns));
            }
            let all = self.has_hops().then(|| "all".to_owned());
            rows.push(self.row(&first, all, &mut group.total, [all_ns, whole_ns], span_ns));
        }
    }

    fn row(
        &mut self,
        first: &[Cell],
        hop: Option<String>,
        latencies: &mut Latencies,
        [all_ns, whole_ns]: [u128; 2],
        span_ns: u64,
    ) -> Vec<Cell> {
        self.is_exact &= latencies.is_exact();
        let pairs = latencies.count();
        let sum_ns = latencies.sum_ns();
        let share_of = |all_ns: u128| if all_ns > 0 { Cell::Share(sum_ns as f64 / all_ns as f64) } else { Cell::Empty };
        let share = hop.as_ref().map(|_| share_of(all_ns));
        let mut row = first.to_vec();
        row.extend(hop.map(Cell::Text));
        row.extend([Cell::Count(pairs), Cell::per_s(pairs, span_ns)]);
        row.extend(latencies.cells(self.percentiles));
        row.extend(share);
        // Beyond 584 years it is as good as any number.
        row.extend([Cell::Ns(u64::try_from(sum_ns).unwrap_or(u64::MAX)), share_of(whole_ns)]);
        row
    }
}

/// What the way from a stage to the next one is called.
fn hop_name(chain: &Chain, stage: usize) -> String {
    format!("-> {}", chain.stage(stage + 1))
}

/// Pictures of the largest groups.
fn pictures(pairing: &Pairing, measured: &mut Measured, args: &LatencyArgs, style: Style) -> String {
    /// More would scroll what matters away.
    const MAX_GROUPS: usize = 8;

    let chain = &pairing.question().chain;
    let mut text = String::new();
    for group in measured.groups.iter_mut().take(MAX_GROUPS) {
        let title = pairing.groups.title(group.id);
        if !group.hops.is_empty() {
            let hops: Vec<_> = (0..)
                .map(|stage| hop_name(chain, stage))
                .zip(&group.hops)
                .map(|(name, hop)| (name, hop.sum_ns()))
                .collect();
            let hops: Vec<_> = hops.iter().map(|(name, sum_ns)| (name.as_str(), *sum_ns)).collect();
            text += &format!("\n{title}{}", shares(&hops, style));
        }
        if let Some(hist) = args.hist {
            let mut buckets = hist.buckets();
            group.total.for_each(|latency_ns, count| buckets.add(latency_ns, count));
            let at = group.total.at(&args.percentiles).into_iter().map(|ns| ns.map(i128::from));
            text += &format!("\n{title}{}", draw(&buckets, Unit::Ns, &args.percentiles, at, style));
        }
    }
    if (args.hist.is_some() || chain.len() > 2) && measured.groups.len() > MAX_GROUPS {
        text += &format!("\n{} groups are not drawn\n", measured.groups.len() - MAX_GROUPS);
    }
    text
}

/// A row for each of the slowest operations.
fn slowest(pairing: &Pairing, slowest: &Slowest) -> Rows {
    let question = pairing.question();
    let mut columns =
        vec![Column::new("rank"), Column::time("latency"), Column::new("begin_ns"), Column::new("end_ns")];
    columns.extend(question.on.iter().map(|part| Column::new(part.to_string())));
    columns.extend(pairing.groups.terms().map(Column::new));
    columns.push(Column::new("straddles"));
    let mut rows = Rows::new(columns);
    for (rank, slow) in (1..).zip(&slowest.0) {
        let group: GroupId = slow.group;
        let (begin_ns, end_ns) = (slow.begin_ns.0, slow.end_ns());
        let mut row = vec![Cell::Count(rank), Cell::Ns(slow.latency_ns), Cell::Count(begin_ns), Cell::Count(end_ns)];
        row.extend(pairing.key_cells(&slow.key));
        row.extend(pairing.groups.cells(group));
        row.push(if slow.straddles { Cell::Text("yes".to_owned()) } else { Cell::Empty });
        rows.push(row);
    }
    rows
}
