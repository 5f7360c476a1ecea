//! `diff`: what has changed from one trace to another.

mod first;

use std::collections::HashMap;

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value, json};
use simpletrace_format::events::{ArgType, EventIndex};

use super::args::{DiffArgs, Hist, TableFormat};
use super::explain_filter;
use super::operation::{
    names as events_of, need_declared, others, question, say_doubts, say_note, say_why_nothing, split,
};
use crate::bootstrap::{CONFIDENCE, Change, RESAMPLES, part_changed};
use crate::chart::{Style, histograms};
use crate::filter::{Globs, Selection};
use crate::findings::Outcome;
use crate::gate::{Gated, Gates, Whole};
use crate::groups::{GroupId, GroupValue, Names};
use crate::input::{Declared, Input, open_two};
use crate::latencies::{Budget, Latencies, MAX_EXACT, Percentile, check_once, error_means};
use crate::measure::{Group, Measure, Measured};
use crate::output::Output;
use crate::pairing::{Counts, Drops, Pairing, Question, late_means, straddling_means};
use crate::presets::Preset;
use crate::progress::Bar;
use crate::render::{Cell, Column, Rows};
use crate::trace::Trace;
use crate::{say, terminal};

pub(crate) fn run(args: &DiffArgs) -> Result<Outcome> {
    if args.first {
        return first::run(args);
    }
    if !args.patterns.is_empty() {
        bail!("-e goes with --first; otherwise the operation says which events there are");
    }
    let gates = Gates::parse(&args.fail_if, true)?;
    check_once(&args.percentiles)?;
    let (operations, paths) = split(&args.files)?;
    let preset = args.operation.preset()?;
    let ask = |preset: Option<Preset>| -> Result<Asked> {
        let question = question(&args.operation, &operations, &args.by, preset.as_ref())?;
        Ok(Asked { question: Question { drops: args.drops, ..question }, preset })
    };
    // Before anything is opened, so that what is written wrong is told at once.
    ask(preset.clone())?;
    let [old, new] = open_two(&paths, &args.events)?;
    let [old, new] = [Side::open(old)?, Side::open(new)?];
    // Each trace as its version of the traced program records the operation.
    let ask_of = |side: &Side| ask(preset.as_ref().map(|preset| preset.suited(&side.declared)));
    let mut asked = [ask_of(&old)?, ask_of(&new)?];
    let names = args.names.as_deref().map(Names::load).transpose()?;
    if names.is_none() {
        leave_out_pointers(&mut asked, [&old.declared, &new.declared])?;
    }
    if args.records.explain_filter {
        let selection = old.selection(args, &asked[0])?;
        return explain_filter(&selection, Some(&old.declared));
    }
    let bar = Bar::watch(old.traces.iter().chain(&new.traces).map(Input::progress).collect());
    let mut sides = [old.read(args, &asked[0])?, new.read(args, &asked[1])?];
    drop(bar);
    if args.raw {
        sides.iter_mut().for_each(|side| side.pairing.groups.forget_numbers());
    }

    let wholes = sides.each_ref().map(|side| Whole::new(&side.pairing, &side.measured));
    let straddling = sides.iter().map(|side| side.measured.straddling).sum::<u64>();
    let mut groups = Groups::of(&mut sides, &names.unwrap_or_default());
    let failures = gates.failures(Some(wholes[0]), wholes[1], &mut groups.gated());
    let report = Report::new(&asked[1].question, &mut groups, &args.percentiles);
    let pictures = groups.pictures(args.hist, terminal::style(args.ascii));
    let mut output = Output::create(None, [])?;
    output.block.put(match args.format {
        TableFormat::Table => report.table(&sides, &pictures),
        TableFormat::Json => serde_json::to_string_pretty(&report.json(&sides, &failures))? + "\n",
        format => report.rows.render(format)?,
    });
    output.finish()?;
    let mut outcome = Outcome::Good;
    for (side, asked) in sides.iter().zip(&asked) {
        say::about(&side.name);
        side.trace.say_findings();
        side.say_doubts(args.format);
        say_why_nothing(&side.pairing, &side.trace, &args.records, asked.preset.as_ref());
        outcome = outcome.max(side.trace.outcome(false));
    }
    say::about("");
    say_note(preset.as_ref());
    if report.rows_in_both == 0 && sides.iter().all(|side| side.pairing.counts().pairs > 0) {
        say::note("no group is in both traces; --by ARG groups by other arguments");
    }
    failures.iter().for_each(|failure| say::error(failure));
    let gated = if failures.is_empty() && (args.drops != Drops::Fail || straddling == 0) {
        Outcome::Good
    } else {
        Outcome::Faulty
    };
    Ok(outcome.max(gated))
}

/// Takes out of what is grouped by all that is a pointer in either trace, and says so: no run has the addresses of another.
fn leave_out_pointers(asked: &mut [Asked; 2], declared: [&EventIndex; 2]) -> Result<()> {
    let mut pointers = Vec::new();
    for (Asked { question, preset }, declared) in asked.iter().zip(declared) {
        let names = events_of(question, declared, preset.as_ref())?;
        pointers.extend(question.by.iter().enumerate().filter_map(|(slot, by)| {
            let is_pointer = |name: &String| {
                let places = question.chain.places(name);
                let event = declared.get(name).and_then(|found| found.event);
                places.iter().any(|place| by.side.is_of(name, place.stage))
                    && event.is_some_and(|event| {
                        event.args.iter().any(|arg| arg.name == by.side.arg && arg.ty == ArgType::Pointer)
                    })
            };
            names.iter().any(is_pointer).then_some(slot)
        }));
    }
    for (_, by) in asked[0].question.by.iter().enumerate().filter(|(slot, _)| pointers.contains(slot)) {
        say::note(&format!(
            "not grouped by {}: it is a pointer, and no run has the addresses of another; --names says which are the same, --by groups by other arguments",
            by.text
        ));
    }
    for Asked { question, .. } in asked {
        let mut slot = 0..;
        question.by.retain(|_| !slot.next().is_some_and(|slot| pointers.contains(&slot)));
    }
    Ok(())
}

/// What is asked of a trace.
struct Asked {
    question: Question,
    preset: Option<Preset>,
}

/// One of the two traces.
struct Side {
    name: String,
    traces: Vec<Input>,
    declared: EventIndex,
}

/// One that was read.
struct Read {
    name: String,
    trace: Trace,
    pairing: Pairing,
    measured: Measured,
}

impl Side {
    fn open(side: Declared) -> Result<Self> {
        let declared = need_declared(side.events).with_context(|| side.name.clone())?;
        Ok(Self { declared, name: side.name, traces: side.traces })
    }

    fn selection(&self, args: &DiffArgs, Asked { question, preset }: &Asked) -> Result<Selection> {
        let own = preset.as_ref().map_or(Vec::new(), Preset::filters);
        let globs = Globs::of_names(events_of(question, &self.declared, preset.as_ref())?);
        let selection = args.records.selection(globs, &own)?;
        selection.check(Some(&self.declared))?;
        Ok(selection)
    }

    fn read(self, args: &DiffArgs, asked: &Asked) -> Result<Read> {
        let selection = self.selection(args, asked)?;
        let Asked { question, preset } = asked;
        let names = events_of(question, &self.declared, preset.as_ref())?;
        let mut pairing = Pairing::new(question.clone(), &names, &self.declared);
        let budget = Budget::new(MAX_EXACT / 2);
        let mut measure = Measure::with(question.chain.len(), args.drops, Some(budget));
        let mut trace = Trace::new(self.traces, Some(self.declared), selection);
        trace.formats = args.formats.formats();
        trace.keeps_gaps = true;
        trace.for_each(|item| {
            pairing.take(&item, &mut |out| measure.take(&out));
            Ok(())
        })?;
        pairing.finish(&mut |out| measure.take(&out));
        Ok(Read { name: self.name, trace, pairing, measured: measure.finish() })
    }
}

impl Read {
    /// How far percentiles and groups are not what they seem; empty texts are no doubts.
    fn doubts(&self) -> [String; 2] {
        let inexact = format!("percentiles are {}, as there are more than {} latencies", error_means(), MAX_EXACT / 2);
        [if is_exact(self) { String::new() } else { inexact }, others(self.other_pairs(), "pair")]
    }

    /// Pairs of groups that are not told apart.
    fn other_pairs(&self) -> u64 {
        let groups = self.measured.groups.iter().filter(|group| self.pairing.groups.is_other(group.id));
        groups.map(|group| group.total.count()).sum()
    }

    /// Says on stderr what the table would have said.
    fn say_doubts(&self, format: TableFormat) {
        let late = late_means();
        let straddling = straddling_means(self.pairing.question().drops);
        let counts = self.pairing.counts().each().into_iter();
        let others = [("straddling", self.measured.straddling, straddling), ("late", self.pairing.late(), &*late)];
        say_doubts(format, counts.chain(others), &self.doubts());
    }
}

/// What both traces have of a group: its latencies, from begin to end and by hop.
struct Both<'a> {
    name: String,
    cells: Vec<Cell>,
    old: Option<&'a mut Group>,
    new: Option<&'a mut Group>,
}

/// A value by what it is called, if it is a pointer; those that are called nothing are shown as they are.
fn named(cell: Cell, names: &Names) -> Cell {
    match cell {
        Cell::Value { value: GroupValue::Pointer(pointer), .. } => {
            let name = names.get(pointer).map(|name| GroupValue::Text(name.as_bytes().to_vec()));
            Cell::Value { value: name.unwrap_or(GroupValue::Pointer(pointer)), short: None }
        }
        cell => cell,
    }
}

/// The groups of both traces by their values, those with the most pairs first.
struct Groups<'a>(Vec<Both<'a>>);

impl<'a> Groups<'a> {
    /// Pointers go by their names, as far as they have any: those that are called the same are one group.
    fn of(sides: &'a mut [Read; 2], names: &Names) -> Self {
        let mut all: Vec<Both<'a>> = Vec::new();
        let mut places: HashMap<Vec<GroupValue>, usize> = HashMap::new();
        for (which, side) in sides.iter_mut().enumerate() {
            for group in &mut side.measured.groups {
                let id: GroupId = group.id;
                let cells: Vec<_> = side.pairing.groups.cells(id).map(|cell| named(cell, names)).collect();
                let values = cells.iter().map(|cell| match cell {
                    Cell::Value { value, .. } => value.clone(),
                    _ => GroupValue::None,
                });
                let values: Vec<_> = values.collect();
                let place = places.get(&values).copied().unwrap_or_else(|| {
                    let terms = side.pairing.groups.terms().zip(&values);
                    let terms: Vec<_> = terms.map(|(term, value)| format!("{term}={value}")).collect();
                    all.push(Both { name: terms.join(" "), cells, old: None, new: None });
                    places.insert(values, all.len() - 1);
                    all.len() - 1
                });
                let both = &mut all[place];
                match if which == 0 { &mut both.old } else { &mut both.new } {
                    Some(of_name) => of_name.append(group),
                    empty => *empty = Some(group),
                }
            }
        }
        let pairs = |group: &Option<&mut Group>| group.as_ref().map_or(0, |group| group.total.count());
        all.sort_by_key(|both| std::cmp::Reverse(pairs(&both.old) + pairs(&both.new)));
        Self(all)
    }

    /// Pictures of the largest groups.
    fn pictures(&self, hist: Option<Hist>, style: Style) -> String {
        /// More would scroll what matters away.
        const MAX_GROUPS: usize = 8;

        let mut text = String::new();
        let Some(hist) = hist else { return text };
        for both in self.0.iter().take(MAX_GROUPS) {
            let buckets = [&both.old, &both.new].map(|group| {
                let mut buckets = hist.buckets();
                if let Some(group) = group {
                    group.total.for_each(|latency_ns, count| buckets.add(latency_ns, count));
                }
                buckets
            });
            let title = if both.name.is_empty() { String::new() } else { format!("{}\n", both.name) };
            text += &format!("{title}{}\n", histograms(["old", "new"], buckets.each_ref(), style));
        }
        if self.0.len() > MAX_GROUPS {
            text += &format!("{} groups are not drawn\n\n", self.0.len() - MAX_GROUPS);
        }
        text
    }

    fn gated(&mut self) -> Vec<Gated<'_>> {
        let gated = self.0.iter_mut().map(|both| Gated {
            name: both.name.clone(),
            old: both.old.as_mut().map(|group| &mut group.total),
            new: both.new.as_mut().map(|group| &mut group.total),
        });
        gated.collect()
    }
}

/// The answer.
struct Report {
    question: Question,
    /// A row for each group and hop.
    rows: Rows,
    /// A row for each of their percentiles, their mean and their most.
    percentiles: Rows,
    rows_in_both: usize,
    /// Percentiles that are the slowest of all in a group.
    at_the_end: Vec<String>,
}

impl Report {
    fn new(question: &Question, groups: &mut Groups<'_>, percentiles: &[Percentile]) -> Self {
        let has_hops = question.chain.len() > 2;
        let first = || {
            let terms = question.by.iter().map(|by| Column::new(by.text.as_str()));
            terms.chain(has_hops.then(|| Column::new("hop"))).collect::<Vec<_>>()
        };
        let pairs = || ["pairs_old", "pairs_new"].map(Column::new);
        let of_percentile = |percentile: &Percentile| {
            let name = |what: &str| format!("{}_{what}", percentile.field());
            let changes = ["change", "change_low", "change_high"].map(|what| Column::new(name(what)));
            ["old", "new"].map(|what| Column::time(name(what))).into_iter().chain(changes)
        };
        let of_figure = |name: &str| {
            let times = ["old", "new"].map(|what| Column::time(format!("{name}_{what}")));
            times.into_iter().chain([Column::new(format!("{name}_change"))])
        };
        let mut report = Self {
            question: question.clone(),
            rows: Rows::new(
                first()
                    .into_iter()
                    .chain(pairs())
                    .chain(percentiles.iter().flat_map(of_percentile))
                    .chain(["min", "mean", "max"].into_iter().flat_map(of_figure)),
            ),
            percentiles: Rows::new(
                first()
                    .into_iter()
                    .chain(pairs())
                    .chain([Column::new("at"), Column::time("old"), Column::time("new")])
                    .chain(["change", "from", "to"].map(Column::new)),
            ),
            rows_in_both: 0,
            at_the_end: Vec::new(),
        };
        for both in &mut groups.0 {
            report.rows_in_both += usize::from(both.old.is_some() && both.new.is_some());
            for hop in (0..if has_hops { question.chain.len() - 1 } else { 0 }).map(Some).chain([None]) {
                let mut cells = both.cells.clone();
                let name = hop.map_or("all".to_owned(), |hop| format!("-> {}", question.chain.stage(hop + 1)));
                cells.extend(has_hops.then_some(Cell::Text(name)));
                let [old, new] = [&mut both.old, &mut both.new].map(|group| {
                    group.as_mut().map(|group| match hop {
                        Some(hop) => &mut group.hops[hop],
                        None => &mut group.total,
                    })
                });
                report.push(cells, old, new, percentiles);
            }
        }
        let place =
            |name: &String| percentiles.iter().position(|percentile| *name == format!("p{}", percentile.text()));
        report.at_the_end.sort_by_key(place);
        report
    }

    fn push<'a>(
        &mut self,
        first: Vec<Cell>,
        mut old: Option<&'a mut Latencies>,
        mut new: Option<&'a mut Latencies>,
        percentiles: &[Percentile],
    ) {
        let counts = [&old, &new].map(|side| side.as_ref().map_or(0, |latencies| latencies.count()));
        let mut wide = first.clone();
        wide.extend(counts.map(Cell::Count));
        for percentile in percentiles {
            let one = std::slice::from_ref(percentile);
            let times = [&mut old, &mut new].map(|side| side.as_mut().and_then(|latencies| latencies.at(one)[0]));
            let change = match (&mut old, &mut new) {
                (Some(old), Some(new)) => Change::of(old, new, percentile),
                _ => Change::UNKNOWN,
            };
            let is_at_end =
                |count: u64| percentile.rank(count) == Some(count) && percentile.rank(u64::MAX) != Some(u64::MAX);
            let name = format!("p{}", percentile.text());
            if counts.into_iter().any(is_at_end) && !self.at_the_end.contains(&name) {
                self.at_the_end.push(name.clone());
            }
            let times = times.map(Cell::ns);
            let changes =
                [change.change, change.low, change.high].map(|change| change.map_or(Cell::Empty, Cell::Change));
            wide.extend(times.clone().into_iter().chain(changes.clone()));
            let mut narrow = first.clone();
            narrow.extend(counts.map(Cell::Count).into_iter().chain([Cell::Text(name)]).chain(times).chain(changes));
            self.percentiles.push(narrow);
        }
        let figures = |side: &Option<&mut Latencies>| match side {
            Some(latencies) => [latencies.least_ns(), latencies.mean_ns(), latencies.most_ns()],
            None => [None; 3],
        };
        for ((name, old), new) in ["min", "mean", "max"].into_iter().zip(figures(&old)).zip(figures(&new)) {
            let times = [old, new];
            let change = match times {
                [Some(old), Some(new)] => part_changed(old, new),
                _ => None,
            };
            let (times, change) = (times.map(Cell::ns), change.map_or(Cell::Empty, Cell::Change));
            wide.extend(times.clone().into_iter().chain([change.clone()]));
            // Percentiles say more of the least.
            if name != "min" {
                let mut narrow = first.clone();
                narrow.extend(counts.map(Cell::Count).into_iter().chain([Cell::Text(name.to_owned())]));
                narrow.extend(times.into_iter().chain([change, Cell::Empty, Cell::Empty]));
                self.percentiles.push(narrow);
            }
        }
        self.rows.push(wide);
    }

    fn table(&self, sides: &[Read; 2], pictures: &str) -> String {
        let on: Vec<_> = self.question.on.iter().map(ToString::to_string).collect();
        let on = if on.is_empty() { String::new() } else { format!(" on {}", on.join(",")) };
        let mut text = format!("{}{on}\n\n", self.question.chain);
        if !self.rows.is_empty() {
            text += &format!("{}\n", self.percentiles.table());
        }
        text += pictures;
        let mut counts = Rows::new(["", "old", "new"].map(Column::new));
        let [old, new] = sides.each_ref().map(numbers);
        for ((name, old), (_, new)) in old.into_iter().zip(new) {
            if old + new > 0 || matches!(name, "begins" | "pairs") {
                counts.push(vec![Cell::Text(name.to_owned()), Cell::Count(old), Cell::Count(new)]);
            }
        }
        text += &counts.table();
        if !self.rows.is_empty() {
            text += &format!(
                "\nfrom, to: {} % interval of the change, by bootstrap with {RESAMPLES} resamples\n",
                CONFIDENCE * 100.0
            );
        }
        if !self.at_the_end.is_empty() {
            text += &format!(
                "{}: the slowest of all in some group; the interval says little about what slower ones there may be\n",
                self.at_the_end.join(", ")
            );
        }
        for (name, side) in ["old", "new"].into_iter().zip(sides) {
            for line in side.doubts().iter().filter(|line| !line.is_empty()) {
                text += &format!("{name}: {line}\n");
            }
        }
        text
    }

    fn json(&self, sides: &[Read; 2], failures: &[String]) -> Map<String, Value> {
        let mut json = Map::new();
        let mut put = |name: &str, value: Value| json.insert(name.to_owned(), value);
        put("schema", "simpletrace-rs.diff/1".into());
        put("operation", self.question.chain.to_string().into());
        put("on", self.question.on.iter().map(ToString::to_string).collect::<Vec<_>>().into());
        put("by", self.question.by.iter().map(|by| by.text.as_str()).collect::<Vec<_>>().into());
        for (name, side) in ["old", "new"].into_iter().zip(sides) {
            let mut of_side: Map<String, Value> =
                numbers(side).into_iter().map(|(name, number)| (name.to_owned(), number.into())).collect();
            let (first_ns, last_ns) = side.measured.span_ns.unwrap_or_default();
            of_side.insert("exact".to_owned(), is_exact(side).into());
            of_side.insert("other_pairs".to_owned(), side.other_pairs().into());
            of_side.insert("span_ns".to_owned(), (last_ns - first_ns).into());
            put(name, of_side.into());
        }
        put("resamples", RESAMPLES.into());
        put("confidence", CONFIDENCE.into());
        put("groups", json!(self.rows.objects().collect::<Vec<_>>()));
        put("failed", json!(failures));
        json
    }
}

fn is_exact(side: &Read) -> bool {
    side.measured.groups.iter().all(|group| group.total.is_exact() && group.hops.iter().all(Latencies::is_exact))
}

/// What became of the records of a trace.
fn numbers(side: &Read) -> [(&'static str, u64); 11] {
    let Counts { begins, pairs, replaced, ignored, incomplete, open, orphans, backwards, given_up } =
        side.pairing.counts();
    [
        ("begins", begins),
        ("pairs", pairs),
        ("open", open),
        ("replaced", replaced),
        ("ignored", ignored),
        ("incomplete", incomplete),
        ("orphans", orphans),
        ("backwards", backwards),
        ("given_up", given_up),
        ("straddling", side.measured.straddling),
        ("late", side.pairing.late()),
    ]
}
