//! The answer, for people and for machines.

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::super::args::{Hist, LatencyArgs, TableFormat};
use super::every::Every;
use super::top::{Slowest, Top};
use crate::chart::{Buckets, Style, Unit, histogram, shares};
use crate::groups::GroupId;
use crate::latencies::{HISTOGRAM_DIGITS, Latencies, MAX_EXACT, Percentile};
use crate::measure::Measured;
use crate::pairing::{Chain, Counts, Drops, Pairing, Question, WINDOW_ITEMS, WINDOW_NS};
use crate::render::{Cell, Column, Rows};

/// The answer.
pub(super) struct Report {
    question: Question,
    pub(super) counts: Counts,
    straddling: u64,
    late: u64,
    is_exact: bool,
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
        style: Style,
    ) -> Self {
        let straddling = measured.straddling;
        let (first_ns, last_ns) = measured.span_ns.unwrap_or_default();
        let span_ns = last_ns - first_ns;
        let mut table = Table { pairing, percentiles: &args.percentiles, is_exact: true };
        let pictures = pictures(pairing, &mut measured, args, style);
        let mut groups = Rows::new(table.columns(None));
        table.push(measured, span_ns, None, &mut groups);
        let every = every.map(|every| {
            let mut rows = Rows::new(table.columns(Some(Column::since("from"))));
            let length_ns = args.every.unwrap_or_default();
            every.finish().for_each(|(from_ns, measured)| table.push(measured, length_ns, Some(from_ns), &mut rows));
            rows
        });
        let is_exact = table.is_exact;
        let top = top.finish();
        Self {
            question: pairing.question().clone(),
            counts: pairing.counts(),
            straddling,
            late: pairing.late(),
            is_exact,
            span_ns,
            groups,
            every,
            slowest: slowest(pairing, &top),
            top,
            pictures,
            legend: pairing.groups.legend(),
        }
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
        let on: Vec<_> = self.question.on.iter().map(ToString::to_string).collect();
        let on = if on.is_empty() { String::new() } else { format!(" on {}", on.join(",")) };
        let mut text = format!("{}{on}\n", self.question.chain);
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
            if number > 0 || matches!(name, "begins" | "pairs") {
                text += &format!("{}\n", format!("{number:>9} {name:<11} {what}").trim_end());
            }
        }
        if !self.is_exact {
            text += &format!(
                "          percentiles are within 1/10^{HISTOGRAM_DIGITS}, as there are more than {MAX_EXACT} latencies\n"
            );
        }
        text
    }

    /// What became of all records.
    fn numbers(&self) -> [(&'static str, u64, String); 10] {
        let Counts { begins, pairs, replaced, ignored, incomplete, open, orphans, backwards } = self.counts;
        let straddling = match self.question.drops {
            Drops::Exclude => "pairs from which events are missing, or may be; left out",
            Drops::Keep | Drops::Fail => "pairs from which events are missing, or may be",
        };
        let late = format!(
            "records came more than {} ms or {WINDOW_ITEMS} records too late to be put in order",
            WINDOW_NS / 1_000_000
        );
        [
            ("begins", begins, String::new()),
            ("pairs", pairs, String::new()),
            ("open", open, "had not ended when the trace did".to_owned()),
            ("replaced", replaced, "had not ended when the next with the same key began".to_owned()),
            ("ignored", ignored, "began while another with the same key was under way".to_owned()),
            ("incomplete", incomplete, "ended without a stage between".to_owned()),
            ("orphans", orphans, "later records without a beginning before them".to_owned()),
            ("backwards", backwards, "have records that are too far out of order".to_owned()),
            ("straddling", self.straddling, straddling.to_owned()),
            ("late", self.late, late),
        ]
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
        columns.extend([Column::new("pairs"), Column::new("rate_per_s"), Column::time("min"), Column::time("mean")]);
        columns.extend(self.percentiles.iter().map(|percentile| Column::time(percentile.field())));
        columns.push(Column::time("max"));
        columns.extend(self.has_hops().then(|| Column::new("share")));
        columns
    }

    fn push(&mut self, measured: Measured, span_ns: u64, from_ns: Option<u64>, rows: &mut Rows) {
        let chain = &self.pairing.question().chain;
        for mut group in measured.groups {
            let all_ns = group.total.sum_ns();
            let mut first: Vec<_> = from_ns.map(Cell::Ns).into_iter().collect();
            first.extend(self.pairing.groups.cells(group.id));
            for (stage, hop) in group.hops.iter_mut().enumerate() {
                let name = hop_name(chain, stage);
                rows.push(self.row(&first, Some(name), hop, all_ns, span_ns));
            }
            let all = self.has_hops().then(|| "all".to_owned());
            rows.push(self.row(&first, all, &mut group.total, all_ns, span_ns));
        }
    }

    fn row(
        &mut self,
        first: &[Cell],
        hop: Option<String>,
        latencies: &mut Latencies,
        all_ns: u128,
        span_ns: u64,
    ) -> Vec<Cell> {
        self.is_exact &= latencies.is_exact();
        let pairs = latencies.count();
        let rate = if span_ns > 0 { Cell::Number(pairs as f64 * 1e9 / span_ns as f64) } else { Cell::Empty };
        let share = match hop {
            Some(_) if all_ns > 0 => Some(Cell::Share(latencies.sum_ns() as f64 / all_ns as f64)),
            Some(_) => Some(Cell::Empty),
            None => None,
        };
        let mut row = first.to_vec();
        row.extend(hop.map(Cell::Text));
        row.extend([Cell::Count(pairs), rate, Cell::ns(latencies.least_ns()), Cell::ns(latencies.mean_ns())]);
        row.extend(latencies.at(self.percentiles).into_iter().map(Cell::ns));
        row.push(Cell::ns(latencies.most_ns()));
        row.extend(share);
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
        let values: Vec<_> = pairing.groups.cells(group.id).map(|cell| cell.shown()).collect();
        let terms: Vec<_> = pairing.groups.terms().zip(values).map(|(term, value)| format!("{term}={value}")).collect();
        let title = if terms.is_empty() { String::new() } else { format!("{}\n", terms.join(" ")) };
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
            let mut buckets = Buckets::new(if hist == Hist::Log2 { 0 } else { 3 });
            group.total.for_each(|latency_ns, count| buckets.add(latency_ns, count));
            let names: Vec<_> = args.percentiles.iter().map(|percentile| format!("p{}", percentile.text())).collect();
            let marks = names.iter().zip(group.total.at(&args.percentiles));
            let marks: Vec<_> = marks.filter_map(|(name, ns)| Some((name.as_str(), i128::from(ns?)))).collect();
            text += &format!("\n{title}{}", histogram(&buckets, Unit::Ns, &marks, style));
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
