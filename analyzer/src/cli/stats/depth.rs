//! How many operations are under way, over time.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use foldhash::fast::RandomState;
use serde_json::Value;

use super::super::args::StatsArgs;
use super::super::explain_filter;
use super::super::operation::{
    MAX_INTERVALS, load, names as events_of, number_line, parse_by, question, say_doubts, say_note, say_why_nothing,
    told_apart, too_many_intervals,
};
use super::{array, members, names, print};
use crate::filter::Globs;
use crate::findings::Outcome;
use crate::groups::{GroupId, GroupValue, Groups};
use crate::input::{Files, Input};
use crate::measure::Measure;
use crate::pairing::{Change, Drops, Ended, Out, Pairing, Question, check_by, late_means, straddling_means};
use crate::presets::Preset;
use crate::progress::Bar;
use crate::render::{Cell, Column, Rows};
use crate::trace::{Item, Trace};

pub(super) fn run(args: &StatsArgs, operations: &[PathBuf], paths: &[PathBuf]) -> Result<Outcome> {
    let preset = args.operation.preset()?;
    // Not by what the preset groups by, which the beginning of an operation may not have.
    let by = parse_by(&args.by)?;
    question(&args.operation, operations, &[], preset.as_ref())?;
    if !args.select.selection()?.globs.is_empty() {
        bail!("-e does not go with --depth, as the operation says which events it is about");
    }
    let short_names = names(args.names.as_ref())?;
    let files = Files::open(paths, &args.files.events, true)?;
    let declared = load(files.events)?;
    let preset = preset.map(|preset| preset.suited(&declared));
    let preset = preset.as_ref();
    let question = question(&args.operation, operations, &[], preset)?;
    let question = Question { by: Vec::new(), drops: args.drops, ..question };
    let mut selection = args.select.selection_with(&preset.map_or(Vec::new(), Preset::filters))?;
    let events = events_of(&question, &declared, preset)?;
    let begins = |name: &String| question.chain.places(name).iter().any(|place| place.stage == 0);
    let begins: Vec<_> = events.iter().filter(|name| begins(name)).cloned().collect();
    check_by(&by, &begins, &declared, |side, name| side.is_of(name, 0))
        .context("an operation under way is of the group of its beginning")?;
    selection.globs = Globs::of_names(events.clone());
    selection.check(Some(&declared))?;
    if args.select.records.explain_filter {
        return explain_filter(&selection, Some(&declared));
    }
    let mut depth = Depth::new(args.drops, args.every, !by.is_empty());
    let mut pairing = Pairing::new(Question { by, ..question }, &events, &declared);
    pairing.tell_depth();
    let bar = Bar::watch(files.traces.iter().map(Input::progress).collect());
    let mut trace = Trace::new(files.traces, Some(declared), selection);
    trace.formats = args.files.formats.formats();
    trace.keeps_gaps = true;
    trace.for_each(|item| {
        if let (Item::Start(start_ns), Some(every)) = (item, &mut depth.every) {
            every.start_ns = start_ns;
        }
        pairing.take(&item, &mut |out| depth.take(&out));
        depth.check()
    })?;
    pairing.finish(&mut |out| depth.take(&out));
    depth.check()?;
    depth.finish();
    drop(bar);

    pairing.groups.set_names(short_names);
    if args.raw {
        pairing.groups.forget_numbers();
    }
    report(args, &pairing, &depth)?;
    trace.say_findings();
    say_note(preset);
    say_why_nothing(&pairing, &trace, &args.select.records, preset);
    let fails = args.drops == Drops::Fail && depth.straddling > 0;
    Ok(trace.outcome(false).max(if fails { Outcome::Faulty } else { Outcome::Good }))
}

/// How many operations are under way, for how long.
///
/// With `exclude`, those that began before events were missing do not count behind that, nor does the time of gaps; where it is not known when
/// events are missing, nor does all time up to when that was noticed.
struct Depth {
    drops: Drops,
    every: Option<Every>,
    is_grouped: bool,
    first_ns: Option<u64>,
    /// Operations that began later are known from their beginning on; `None` for all.
    known_from_ns: Option<u64>,
    in_gap: bool,
    total: Line,
    places: HashMap<GroupId, usize, RandomState>,
    groups: Vec<(GroupId, Line)>,
    /// Pairs that events are missing from, or may be.
    straddling: u64,
    /// Those that are not, as far as is known, since the last time it was learned that events are missing.
    unsuspected: u64,
}

/// The operations of a group, or all.
#[derive(Default)]
struct Line {
    now_ns: u64,
    under_way: u64,
    /// Those of them that do not count.
    unknown: u64,
    tally: Tally,
    /// What would not count if it turned out that events are missing.
    pending: Tally,
}

/// Time by depth.
#[derive(Default)]
struct Tally {
    ns: u64,
    /// The time that each was under way.
    sum_ns: u128,
    most: u64,
    /// By row, see [`row`].
    rows_ns: Vec<u64>,
    /// In order.
    intervals: Vec<Interval>,
}

struct Interval {
    number: u64,
    ns: u64,
    sum_ns: u128,
    most: u64,
}

/// The same by interval.
#[derive(Clone, Copy)]
struct Every {
    length_ns: u64,
    start_ns: u64,
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
    fn new(drops: Drops, every_ns: Option<u64>, is_grouped: bool) -> Self {
        Self {
            drops,
            every: every_ns.map(|length_ns| Every { length_ns, start_ns: 0 }),
            is_grouped,
            first_ns: None,
            known_from_ns: None,
            in_gap: false,
            total: Line::default(),
            places: HashMap::default(),
            groups: Vec::new(),
            straddling: 0,
            unsuspected: 0,
        }
    }

    #[inline]
    fn take(&mut self, out: &Out<'_>) {
        match out {
            Out::Pair(pair) if pair.straddles => self.straddling += 1,
            Out::Pair(_) => self.unsuspected += 1,
            Out::Suspect => self.straddling += std::mem::take(&mut self.unsuspected),
            Out::Depth { change: Change::GapBegins | Change::GapEnds | Change::Border | Change::Suspect, .. }
                if self.drops != Drops::Exclude => {}
            Out::Depth { time_ns, change } => self.change(*time_ns, *change),
        }
    }

    fn change(&mut self, time_ns: u64, change: Change) {
        match change {
            Change::GapBegins => {
                self.pass_all(time_ns);
                self.in_gap = true;
                return;
            }
            Change::GapEnds | Change::Border => {
                self.pass_all(time_ns);
                self.in_gap = false;
                return self.forget(time_ns);
            }
            Change::Suspect => {
                self.pass_all(time_ns);
                self.lines().for_each(|line| line.pending = Tally::default());
                return self.forget(time_ns);
            }
            _ => {}
        }
        if self.first_ns.is_none() {
            (self.first_ns, self.total.now_ns) = (Some(time_ns), time_ns);
        }
        let how = self.how();
        self.total.pass(time_ns, how);
        let is_unknown = |begin_ns| self.known_from_ns.is_some_and(|from_ns| begin_ns <= from_ns);
        let end = |ended: &Ended| {
            let is_unknown = is_unknown(ended.begin_ns);
            move |line: &mut Line| line.end(is_unknown)
        };
        let is_new_unknown = is_unknown(time_ns);
        let begin = move |line: &mut Line| line.begin(is_new_unknown);
        match change {
            Change::Begins(group) => self.on(time_ns, group, begin),
            Change::Ends(ended) => {
                let end = end(&ended);
                self.on(time_ns, ended.group, end);
            }
            Change::Replaces(ended, group) => {
                let end = end(&ended);
                self.on(time_ns, ended.group, end);
                self.on(time_ns, group, begin);
            }
            _ => {}
        }
        let depth = |line: &Line| line.under_way - line.unknown;
        let (now_ns, total) = (self.total.now_ns, depth(&self.total));
        if let Some(tally) = self.total.counted(how) {
            tally.reach(now_ns, total, how.every);
        }
        if let (true, Change::Begins(group) | Change::Replaces(_, group)) = (self.is_grouped, change) {
            let line = self.group(group);
            let group_depth = depth(line);
            if let Some(tally) = line.counted(how) {
                tally.reach(now_ns, group_depth, how.every);
            }
        }
    }

    /// How time is counted at the moment.
    fn how(&self) -> How {
        How { is_pending: self.drops == Drops::Exclude, is_known: !self.in_gap, every: self.every }
    }

    /// Changes all, and a group.
    fn on(&mut self, time_ns: u64, group: GroupId, change: impl Fn(&mut Line)) {
        if self.is_grouped {
            let how = self.how();
            let line = self.group(group);
            line.pass(time_ns, how);
            change(line);
        }
        change(&mut self.total);
    }

    fn group(&mut self, id: GroupId) -> &mut Line {
        let place = match self.places.get(&id) {
            Some(&place) => place,
            None => self.add(id),
        };
        &mut self.groups[place].1
    }

    #[cold]
    fn add(&mut self, id: GroupId) -> usize {
        let id = if self.groups.len() < Measure::MAX_GROUPS { id } else { Groups::ALL_OTHER };
        *self.places.entry(id).or_insert_with(|| {
            // Up to now, nothing of it was under way.
            let total = &self.total;
            let (tally, pending) = (total.tally.at_depth_0(), total.pending.at_depth_0());
            self.groups.push((id, Line { now_ns: total.now_ns, under_way: 0, unknown: 0, tally, pending }));
            self.groups.len() - 1
        })
    }

    fn lines(&mut self) -> impl Iterator<Item = &mut Line> {
        [&mut self.total].into_iter().chain(self.groups.iter_mut().map(|(_, line)| line))
    }

    fn pass_all(&mut self, time_ns: u64) {
        let how = self.how();
        if self.first_ns.is_some() {
            self.lines().for_each(|line| line.pass(time_ns, how));
        }
    }

    /// From now on, what is under way does not count.
    fn forget(&mut self, time_ns: u64) {
        self.known_from_ns = self.known_from_ns.max(Some(time_ns.max(self.total.now_ns)));
        self.lines().for_each(|line| line.unknown = line.under_way);
    }

    fn finish(&mut self) {
        self.pass_all(self.total.now_ns);
        self.lines().for_each(|line| {
            let pending = std::mem::take(&mut line.pending);
            line.tally.append(pending);
        });
        self.groups.sort_by_key(|(_, line)| Reverse(line.tally.sum_ns));
    }

    fn check(&self) -> Result<()> {
        let intervals = self.total.tally.intervals.len() + self.total.pending.intervals.len();
        if intervals.saturating_mul(self.groups.len().max(1)) > MAX_INTERVALS {
            bail!(too_many_intervals());
        }
        Ok(())
    }
}

/// How time is counted.
#[derive(Clone, Copy)]
struct How {
    is_pending: bool,
    /// Whether it is known how many operations are under way.
    is_known: bool,
    every: Option<Every>,
}

impl Line {
    fn counted(&mut self, how: How) -> Option<&mut Tally> {
        how.is_known.then_some(if how.is_pending { &mut self.pending } else { &mut self.tally })
    }

    /// Lets time pass. What came too late to be put in order counts from now on.
    #[inline]
    fn pass(&mut self, to_ns: u64, how: How) {
        let (from_ns, depth) = (self.now_ns, self.under_way - self.unknown);
        if to_ns <= from_ns {
            return;
        }
        if let Some(tally) = self.counted(how) {
            tally.pass(from_ns, to_ns, depth, how.every);
        }
        self.now_ns = to_ns;
    }

    fn begin(&mut self, is_unknown: bool) {
        self.under_way += 1;
        self.unknown += u64::from(is_unknown);
    }

    fn end(&mut self, is_unknown: bool) {
        self.under_way -= 1;
        self.unknown -= u64::from(is_unknown);
    }
}

impl Tally {
    fn pass(&mut self, mut from_ns: u64, to_ns: u64, depth: u64, every: Option<Every>) {
        let row = row(depth);
        if self.rows_ns.len() <= row {
            self.rows_ns.resize(row + 1, 0);
        }
        let ns = to_ns - from_ns;
        self.rows_ns[row] += ns;
        self.ns += ns;
        self.sum_ns += u128::from(depth) * u128::from(ns);
        let Some(every) = every else { return };
        while from_ns < to_ns && self.intervals.len() <= MAX_INTERVALS {
            let interval = self.interval(every.number(from_ns));
            let end_ns =
                every.start_ns.saturating_add((interval.number + 1).saturating_mul(every.length_ns)).min(to_ns);
            let ns = end_ns - from_ns;
            interval.ns += ns;
            interval.sum_ns += u128::from(depth) * u128::from(ns);
            interval.most = interval.most.max(depth);
            from_ns = end_ns;
        }
    }

    fn reach(&mut self, time_ns: u64, depth: u64, every: Option<Every>) {
        self.most = self.most.max(depth);
        if let Some(every) = every {
            let interval = self.interval(every.number(time_ns));
            interval.most = interval.most.max(depth);
        }
    }

    /// The interval of a number, which is not less than one before.
    fn interval(&mut self, number: u64) -> &mut Interval {
        if self.intervals.last().is_none_or(|last| last.number < number) {
            self.intervals.push(Interval { number, ns: 0, sum_ns: 0, most: 0 });
        }
        let last = self.intervals.len() - 1;
        &mut self.intervals[last]
    }

    /// The same time, with nothing under way.
    fn at_depth_0(&self) -> Self {
        let intervals = self.intervals.iter().map(|interval| Interval { sum_ns: 0, most: 0, ..*interval });
        Self { ns: self.ns, rows_ns: vec![self.ns], intervals: intervals.collect(), ..Self::default() }
    }

    /// Takes in a later one.
    fn append(&mut self, later: Self) {
        self.ns += later.ns;
        self.sum_ns += later.sum_ns;
        self.most = self.most.max(later.most);
        self.rows_ns.resize(self.rows_ns.len().max(later.rows_ns.len()), 0);
        self.rows_ns.iter_mut().zip(later.rows_ns).for_each(|(ns, later_ns)| *ns += later_ns);
        for later in later.intervals {
            let interval = self.interval(later.number);
            interval.ns += later.ns;
            interval.sum_ns += later.sum_ns;
            interval.most = interval.most.max(later.most);
        }
    }

    fn mean(&self) -> Option<f64> {
        mean(self.sum_ns, self.ns)
    }
}

impl Every {
    fn number(&self, time_ns: u64) -> u64 {
        time_ns.saturating_sub(self.start_ns) / self.length_ns
    }
}

fn mean(sum_ns: u128, ns: u64) -> Option<f64> {
    (ns > 0).then(|| sum_ns as f64 / ns as f64)
}

fn report(args: &StatsArgs, pairing: &Pairing, depth: &Depth) -> Result<()> {
    // With what groups have in front of their rows.
    let lines: Vec<(Vec<Cell>, &Tally)> = if depth.is_grouped {
        depth.groups.iter().map(|(id, line)| (pairing.groups.cells(*id).collect(), &line.tally)).collect()
    } else {
        vec![(Vec::new(), &depth.total.tally)]
    };
    let terms = || pairing.groups.terms().map(Column::new);
    let mut whole =
        Rows::new(terms().chain([Column::new("mean_depth"), Column::new("max_depth"), Column::time("span")]));
    let mut depths = Rows::new(terms().chain([Column::new("depth"), Column::time("time"), Column::new("share")]));
    let mut every_rows =
        Rows::new(terms().chain([Column::since("from"), Column::new("mean_depth"), Column::new("max_depth")]));
    let mean_cell = |mean: Option<f64>| mean.map_or(Cell::Empty, Cell::Mean);
    for (first, tally) in lines {
        let row = |cells: Vec<Cell>| first.iter().cloned().chain(cells).collect::<Vec<_>>();
        whole.push(row(vec![mean_cell(tally.mean()), Cell::Count(tally.most), Cell::Ns(tally.ns)]));
        for (place, &ns) in tally.rows_ns.iter().enumerate() {
            let least = least(place);
            let short = (least >= LOG2_FROM).then(|| GroupValue::Log2(least).to_string());
            let value = Cell::Value { value: GroupValue::Unsigned(least), short };
            depths.push(row(vec![value, Cell::Ns(ns), Cell::Share(ns as f64 / tally.ns as f64)]));
        }
        for interval in &tally.intervals {
            let from_ns = interval.number * depth.every.map_or(0, |every| every.length_ns);
            let mean = mean_cell(mean(interval.sum_ns, interval.ns));
            every_rows.push(row(vec![Cell::Ns(from_ns), mean, Cell::Count(interval.most)]));
        }
    }
    let every = depth.every.map(|_| every_rows);
    let is_other = depth.groups.iter().any(|(id, _)| pairing.groups.is_other(*id));
    let others = if is_other { format!("groups called other: {}", told_apart()) } else { String::new() };
    let (late, straddling) = (pairing.late(), straddling_means(args.drops));
    let text = || {
        let mut text = format!("{}\n", pairing.question());
        let tables = [Some(&whole), Some(&depths), every.as_ref()];
        for rows in tables.into_iter().flatten().filter(|rows| !rows.is_empty() && depth.first_ns.is_some()) {
            text += &format!("\n{}", rows.table());
        }
        text.push('\n');
        for line in pairing.groups.legend() {
            text += &format!("{line}\n");
        }
        let numbers = pairing.counts().each();
        numbers.into_iter().for_each(|(name, number, what)| text += &number_line(name, number, what));
        text += &number_line("straddling", depth.straddling, straddling);
        text += &number_line("late", late, &late_means());
        if others.is_empty() { text } else { text + &format!("          {others}\n") }
    };
    let on: Vec<_> = pairing.question().on.iter().map(ToString::to_string).collect();
    let mut json = members([("operation", pairing.question().chain.to_string().into()), ("on", on.into())]);
    json.extend(pairing.counts().each().map(|(name, number, _)| (name.to_owned(), number.into())));
    let total = &depth.total.tally;
    json.extend(members([
        ("straddling", depth.straddling.into()),
        ("late", late.into()),
        ("span_ns", total.ns.into()),
        ("mean_depth", total.mean().map_or(Value::Null, Value::from)),
        ("max_depth", total.most.into()),
    ]));
    json.extend(depth.is_grouped.then(|| ("groups".to_owned(), array(&whole))));
    json.extend(members([("depths", array(&depths))]));
    json.extend(every.as_ref().map(|every| ("every".to_owned(), array(every))));
    print(args.format, text, json, every.as_ref().unwrap_or(&depths))?;
    let late_means = late_means();
    let numbers = pairing.counts().each().into_iter();
    let numbers = numbers.chain([("straddling", depth.straddling, straddling), ("late", late, &*late_means)]);
    say_doubts(args.format, numbers, &[others]);
    Ok(())
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
