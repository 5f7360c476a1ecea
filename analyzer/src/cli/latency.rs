//! `latency`: how long operations took.

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value, json};

use super::args::{LatencyArgs, TableFormat};
use super::explain_filter;
use crate::filter::{Globs, Selection};
use crate::findings::Outcome;
use crate::input::{Files, Input, load_events};
use crate::latencies::{Latencies, Percentile};
use crate::measure::{Measure, Measured};
use crate::output::Output;
use crate::pairing::{By, Chain, Counts, Drops, KeyPart, Pairing, Question};
use crate::progress::Bar;
use crate::render::{Cell, Column, Rows};
use crate::trace::Trace;

pub(crate) fn run(args: &LatencyArgs) -> Result<Outcome> {
    let (chains, files): (Vec<_>, Vec<_>) =
        args.files.files.iter().cloned().partition(|file| file.to_str().is_some_and(|text| text.contains("->")));
    let [chain] = &chains[..] else {
        bail!("{} operations given; give one, 'BEGIN -> END'", chains.len());
    };
    let chain = Chain::parse(&chain.to_string_lossy())?;
    let on = args.on.as_deref().map_or(Ok(Vec::new()), |on| KeyPart::parse_all(on, &chain))?;
    let by = args.by.iter().map(|by| By::parse(by)).collect::<Result<_>>()?;
    let question = Question { chain, on, by, discipline: args.discipline, drops: args.drops };
    let files = Files::open(&files, &args.files.events, true)?;
    let declared = load_events(files.events)?.context(
        "no trace-events file was given or found, and without it no arguments are known; take the trace-events-all of the build that wrote the trace",
    )?;
    let names = question.names(&declared)?;
    let mut pairing = Pairing::new(question, &names, &declared);
    let selection = Selection {
        conditions: args.filter.conditions()?,
        globs: Globs::of_names(names),
        pids: args.pid.clone(),
        time: args.time.unwrap_or_default(),
        limit: None,
    };
    selection.check(Some(&declared))?;
    if args.filter.explain_filter {
        return explain_filter(&selection, Some(&declared));
    }
    let bar = Bar::watch(files.traces.iter().map(Input::progress).collect());
    let mut trace = Trace::new(files.traces, Some(declared), selection);
    trace.formats = args.files.formats.formats();
    trace.keeps_gaps = true;
    let mut measure = Measure::new(pairing.question().chain.len(), args.drops);
    trace.for_each(|item| {
        pairing.take(&item, &mut |out| measure.take(&out));
        Ok(())
    })?;
    pairing.finish(&mut |out| measure.take(&out));
    drop(bar);
    let measured = measure.finish();
    let fails = args.drops == Drops::Fail && measured.straddling > 0;
    let report = Report::new(&pairing, measured, &args.percentiles);
    let mut output = Output::create(None, [])?;
    output.block.put(report.render(args.format)?);
    output.finish()?;
    trace.say_findings();
    Ok(if fails { Outcome::Faulty } else { trace.outcome(false) })
}

/// The answer.
struct Report {
    question: Question,
    counts: Counts,
    straddling: u64,
    late: u64,
    is_exact: bool,
    span_ns: u64,
    rows: Rows,
}

impl Report {
    fn new(pairing: &Pairing, measured: Measured, percentiles: &[Percentile]) -> Self {
        let question = pairing.question();
        let stages = question.chain.len();
        let (first_ns, last_ns) = measured.span_ns.unwrap_or_default();
        let span_ns = last_ns - first_ns;
        let mut columns: Vec<_> = pairing.groups.terms().map(Column::new).collect();
        if stages > 2 {
            columns.push(Column::new("hop"));
        }
        columns.extend([Column::new("pairs"), Column::new("rate_per_s"), Column::time("min"), Column::time("mean")]);
        columns.extend(percentiles.iter().map(|percentile| Column::time(percentile.field())));
        columns.push(Column::time("max"));
        if stages > 2 {
            columns.push(Column::new("share"));
        }
        let mut rows = Rows::new(columns);
        let mut is_exact = true;
        for mut group in measured.groups {
            let values: Vec<_> = pairing.groups.values(group.id).cloned().map(Cell::Value).collect();
            let all_ns = group.total.sum_ns();
            let mut row = |hop: Option<String>, latencies: &mut Latencies| {
                is_exact &= latencies.is_exact();
                let pairs = latencies.count();
                let rate = if span_ns > 0 { Cell::Number(pairs as f64 * 1e9 / span_ns as f64) } else { Cell::Empty };
                let mut row = values.clone();
                row.extend(hop.clone().map(Cell::Text));
                row.extend([Cell::Count(pairs), rate, Cell::ns(latencies.least_ns()), Cell::ns(latencies.mean_ns())]);
                row.extend(latencies.at(percentiles).into_iter().map(Cell::ns));
                row.push(Cell::ns(latencies.most_ns()));
                if hop.is_some() {
                    let share = latencies.sum_ns() as f64 / all_ns as f64;
                    row.push(if all_ns > 0 { Cell::Share(share) } else { Cell::Empty });
                }
                rows.push(row);
            };
            for (stage, hop) in group.hops.iter_mut().enumerate() {
                row(Some(format!("{} -> {}", question.chain.stage(stage), question.chain.stage(stage + 1))), hop);
            }
            row((stages > 2).then(|| "all".to_owned()), &mut group.total);
        }
        Self {
            question: question.clone(),
            counts: pairing.counts(),
            straddling: measured.straddling,
            late: pairing.late(),
            is_exact,
            span_ns,
            rows,
        }
    }

    fn render(&self, format: TableFormat) -> Result<String> {
        Ok(match format {
            TableFormat::Table => self.table(),
            TableFormat::Csv => self.rows.csv(),
            TableFormat::Json => serde_json::to_string_pretty(&self.json())? + "\n",
            TableFormat::Ndjson => self.rows.objects().map(|row| Value::from(row).to_string() + "\n").collect(),
        })
    }

    fn table(&self) -> String {
        let on: Vec<_> = self.question.on.iter().map(ToString::to_string).collect();
        let on = if on.is_empty() { String::new() } else { format!(" on {}", on.join(",")) };
        let mut text = format!("{}{on}\n", self.question.chain);
        if !self.rows.is_empty() {
            text = format!("{text}\n{}\n", self.rows.table());
        }
        for (name, number) in self.numbers() {
            if number > 0 || matches!(name, "begins" | "pairs") {
                text += &format!("{name:<12} {number}\n");
            }
        }
        text
    }

    /// What became of all records.
    fn numbers(&self) -> [(&'static str, u64); 10] {
        let Counts { begins, pairs, replaced, ignored, incomplete, open, orphans, backwards } = self.counts;
        [
            ("begins", begins),
            ("pairs", pairs),
            ("open", open),
            ("replaced", replaced),
            ("ignored", ignored),
            ("incomplete", incomplete),
            ("orphans", orphans),
            ("backwards", backwards),
            ("straddling", self.straddling),
            ("late", self.late),
        ]
    }

    fn json(&self) -> Map<String, Value> {
        let mut json = Map::new();
        json.insert("schema".to_owned(), "simpletrace-rs.latency/1".into());
        json.insert("operation".to_owned(), self.question.chain.to_string().into());
        json.insert("on".to_owned(), self.question.on.iter().map(ToString::to_string).collect::<Vec<_>>().into());
        json.extend(self.numbers().map(|(name, number)| (name.to_owned(), number.into())));
        json.insert("exact".to_owned(), self.is_exact.into());
        json.insert("span_ns".to_owned(), self.span_ns.into());
        json.insert("groups".to_owned(), json!(self.rows.objects().collect::<Vec<_>>()));
        json
    }
}
