//! How many operations are under way, over time.

use std::path::PathBuf;

use anyhow::{Result, bail};
use serde_json::Value;

use super::super::args::StatsArgs;
use super::super::explain_filter;
use super::super::operation::{MAX_INTERVALS, load, number_line, question, say_why_nothing, too_many_intervals};
use super::{array, members, print};
use crate::filter::Globs;
use crate::findings::Outcome;
use crate::groups::GroupValue;
use crate::input::{Files, Input};
use crate::pairing::{Out, Pairing, Question, late_means};
use crate::presets::Presets;
use crate::progress::Bar;
use crate::render::{Cell, Column, Rows};
use crate::trace::{Item, Trace};

pub(super) fn run(args: &StatsArgs, operations: &[PathBuf], paths: &[PathBuf]) -> Result<Outcome> {
    let presets = Presets::load(args.operation.presets.iter().map(PathBuf::as_path))?;
    let preset = args.operation.preset(&presets)?;
    let question = Question { by: Vec::new(), ..question(&args.operation, operations, &[], preset)? };
    let mut selection = args.select.selection_with(preset.map_or(&[], |preset| &preset.filters))?;
    if !selection.globs.is_empty() {
        bail!("-e does not go with --depth, as the operation says which events it is about");
    }
    let files = Files::open(paths, &args.files.events, true)?;
    let declared = load(files.events)?;
    let events = question.names(&declared, preset.is_some())?;
    selection.globs = Globs::of_names(events.clone());
    selection.check(Some(&declared))?;
    if args.select.records.explain_filter {
        return explain_filter(&selection, Some(&declared));
    }
    let mut pairing = Pairing::new(question, &events, &declared);
    pairing.tell_depth();
    let bar = Bar::watch(files.traces.iter().map(Input::progress).collect());
    let mut trace = Trace::new(files.traces, Some(declared), selection);
    trace.formats = args.files.formats.formats();
    let mut depth = Depth { every: args.every.map(Every::new), ..Depth::default() };
    trace.for_each(|item| {
        if let (Item::Start(start_ns), Some(every)) = (item, &mut depth.every) {
            every.start_ns = start_ns;
        }
        pairing.take(&item, &mut |out| depth.take(&out));
        depth.check()
    })?;
    pairing.finish(&mut |out| depth.take(&out));
    depth.check()?;
    drop(bar);

    report(args, &pairing, &depth)?;
    trace.say_findings();
    args.operation.say_note(preset);
    say_why_nothing(&pairing);
    Ok(trace.outcome(false))
}

/// How many operations are under way, for how long.
#[derive(Default)]
struct Depth {
    first_ns: Option<u64>,
    now_ns: u64,
    under_way: u64,
    most: u64,
    /// By row, see [`row`].
    rows_ns: Vec<u64>,
    /// The time that each was under way.
    sum_ns: u128,
    every: Option<Every>,
}

/// Depths below this have rows of their own; from there on, powers of two have.
const LOG2_FROM: u64 = 8;

/// Where the time at a depth is counted.
fn row(depth: u64) -> usize {
    if depth < LOG2_FROM { depth as usize } else { (LOG2_FROM as u32 - LOG2_FROM.ilog2() + depth.ilog2()) as usize }
}

/// The least depth of a row.
fn least(row: usize) -> u64 {
    let row = row as u64;
    if row < LOG2_FROM { row } else { LOG2_FROM << (row - LOG2_FROM) }
}

impl Depth {
    #[inline]
    fn take(&mut self, out: &Out<'_>) {
        let Out::Depth { time_ns, under_way } = *out else { return };
        if self.first_ns.is_none() {
            (self.first_ns, self.now_ns) = (Some(time_ns), time_ns);
        }
        // What came too late to be put in order counts from now on.
        let ns = time_ns.saturating_sub(self.now_ns);
        if ns > 0 {
            self.pass(ns);
        }
        self.under_way = under_way;
        self.most = self.most.max(under_way);
        if let Some(every) = &mut self.every {
            every.reach(self.now_ns, under_way);
        }
    }

    fn pass(&mut self, ns: u64) {
        let row = row(self.under_way);
        if self.rows_ns.len() <= row {
            self.rows_ns.resize(row + 1, 0);
        }
        self.rows_ns[row] += ns;
        self.sum_ns += u128::from(self.under_way) * u128::from(ns);
        if let Some(every) = &mut self.every {
            every.pass(self.now_ns, self.now_ns + ns, self.under_way);
        }
        self.now_ns += ns;
    }

    fn span_ns(&self) -> u64 {
        self.first_ns.map_or(0, |first_ns| self.now_ns - first_ns)
    }

    fn check(&self) -> Result<()> {
        if self.every.as_ref().is_some_and(|every| every.intervals.len() > MAX_INTERVALS) {
            bail!(too_many_intervals());
        }
        Ok(())
    }
}

/// The same by interval.
struct Every {
    length_ns: u64,
    start_ns: u64,
    /// In order.
    intervals: Vec<Interval>,
}

struct Interval {
    number: u64,
    ns: u64,
    sum_ns: u128,
    most: u64,
}

impl Every {
    fn new(length_ns: u64) -> Self {
        Self { length_ns, start_ns: 0, intervals: Vec::new() }
    }

    /// The interval of a time, which is not earlier than one before.
    fn at(&mut self, time_ns: u64) -> &mut Interval {
        let number = time_ns.saturating_sub(self.start_ns) / self.length_ns;
        let is_new = self.intervals.last().is_none_or(|last| last.number < number);
        if is_new {
            self.intervals.push(Interval { number, ns: 0, sum_ns: 0, most: 0 });
        }
        let last = self.intervals.len() - 1;
        &mut self.intervals[last]
    }

    fn reach(&mut self, time_ns: u64, depth: u64) {
        let interval = self.at(time_ns);
        interval.most = interval.most.max(depth);
    }

    fn pass(&mut self, mut from_ns: u64, to_ns: u64, depth: u64) {
        while from_ns < to_ns && self.intervals.len() <= MAX_INTERVALS {
            let (start_ns, length_ns) = (self.start_ns, self.length_ns);
            let interval = self.at(from_ns);
            let end_ns = start_ns.saturating_add((interval.number + 1).saturating_mul(length_ns)).min(to_ns);
            let ns = end_ns - from_ns;
            interval.ns += ns;
            interval.sum_ns += u128::from(depth) * u128::from(ns);
            interval.most = interval.most.max(depth);
            from_ns = end_ns;
        }
    }
}

fn mean(sum_ns: u128, ns: u64) -> Option<f64> {
    (ns > 0).then(|| sum_ns as f64 / ns as f64)
}

fn report(args: &StatsArgs, pairing: &Pairing, depth: &Depth) -> Result<()> {
    let span_ns = depth.span_ns();
    let mut depths = Rows::new([Column::new("depth"), Column::time("time"), Column::new("share")]);
    for (row, &ns) in depth.rows_ns.iter().enumerate() {
        let least = least(row);
        let short = (least >= LOG2_FROM).then(|| GroupValue::Log2(least).to_string());
        let value = Cell::Value { value: GroupValue::Unsigned(least), short };
        depths.push(vec![value, Cell::Ns(ns), Cell::Share(ns as f64 / span_ns as f64)]);
    }
    let every = depth.every.as_ref().map(|every| {
        let mut rows = Rows::new([Column::since("from"), Column::new("mean_depth"), Column::new("max_depth")]);
        for interval in &every.intervals {
            let mean = mean(interval.sum_ns, interval.ns).map_or(Cell::Empty, Cell::Mean);
            rows.push(vec![Cell::Ns(interval.number * every.length_ns), mean, Cell::Count(interval.most)]);
        }
        rows
    });
    let mut whole = Rows::new([Column::new("mean_depth"), Column::new("max_depth"), Column::time("span")]);
    let mean = mean(depth.sum_ns, span_ns);
    whole.push(vec![mean.map_or(Cell::Empty, Cell::Mean), Cell::Count(depth.most), Cell::Ns(span_ns)]);
    let late = pairing.late();
    let text = || {
        let mut text = format!("{}\n", pairing.question());
        let tables = [Some(&whole), Some(&depths), every.as_ref()];
        for rows in tables.into_iter().flatten().filter(|rows| !rows.is_empty() && depth.first_ns.is_some()) {
            text += &format!("\n{}", rows.table());
        }
        text.push('\n');
        let numbers = pairing.counts().each();
        numbers.into_iter().for_each(|(name, number, what)| text += &number_line(name, number, what));
        text + &number_line("late", late, &late_means())
    };
    let on: Vec<_> = pairing.question().on.iter().map(ToString::to_string).collect();
    let mut json = members([("operation", pairing.question().chain.to_string().into()), ("on", on.into())]);
    json.extend(pairing.counts().each().map(|(name, number, _)| (name.to_owned(), number.into())));
    json.extend(members([
        ("late", late.into()),
        ("span_ns", span_ns.into()),
        ("mean_depth", mean.map_or(Value::Null, Value::from)),
        ("max_depth", depth.most.into()),
        ("depths", array(&depths)),
    ]));
    json.extend(every.as_ref().map(|every| ("every".to_owned(), array(every))));
    print(args.format, text, json, every.as_ref().unwrap_or(&depths))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depths_have_rows_of_their_own_and_then_powers_of_two_have() {
        for (depth, of) in [(0, 0), (7, 7), (8, 8), (15, 8), (16, 9), (31, 9), (32, 10), (u64::MAX, 68)] {
            assert_eq!(row(depth), of, "{depth}");
        }
        for place in 0..=68 {
            assert_eq!(row(least(place)), place);
        }
    }
}
