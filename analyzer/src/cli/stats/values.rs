//! What values an argument has.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::PathBuf;

use anyhow::{Result, bail};
use foldhash::fast::RandomState;
use simpletrace_format::Value;
use simpletrace_format::events::EventIndex;

use super::super::args::{StatsArgs, TableFormat};
use super::super::operation::{inexact, load, others, parse_by, say_doubts};
use super::super::{draw, explain_filter};
use super::{NO_STAGE, array, is_of, members, names, print, selected_names};
use crate::chart::{Style, Unit};
use crate::filter::{Globs, Selection};
use crate::findings::{Outcome, count};
use crate::groups::{GroupId, GroupValue, Groups};
use crate::input::{Files, Input};
use crate::latencies::{Budget, Latencies, MAX_EXACT, Percentile};
use crate::measure::Measure;
use crate::numbers::Numbers;
use crate::pairing::{By, Picks, Side, check_by, no_such_arg};
use crate::progress::Bar;
use crate::render::{Cell, Column, Rows};
use crate::trace::{Event, Item, Trace};
use crate::{say, terminal};

/// How many different values are told apart, of all groups together.
const MAX_DISTINCT: usize = 1 << 18;
/// How many values of a group are shown.
const SHOWN: usize = 20;

pub(super) fn run(args: &StatsArgs, of: &str, paths: &[PathBuf]) -> Result<Outcome> {
    let side = Side::parse(of)?;
    let by = parse_by(&args.by)?;
    let short_names = names(args.names.as_ref())?;
    let mut selection = args.select.selection()?;
    let files = Files::open(paths, &args.files.events, true)?;
    let declared = load(files.events)?;
    let events = events_with(of, &side, &selection, &declared)?;
    check_by(&by, &events, &declared, is_of)?;
    selection.globs = Globs::of_names(events);
    selection.check(Some(&declared))?;
    if args.select.records.explain_filter {
        return explain_filter(&selection, Some(&declared));
    }
    let bar = Bar::watch(files.traces.iter().map(Input::progress).collect());
    let mut trace = Trace::new(files.traces, Some(declared), selection);
    trace.formats = args.files.formats.formats();
    let mut values = Values::new(side, by);
    trace.for_each(|item| {
        if let Item::Event(event) = item {
            values.take(&event);
        }
        Ok(())
    })?;
    drop(bar);

    values.groups.set_names(short_names);
    if args.raw {
        values.groups.forget_numbers();
    }
    values.report(args, of)?;
    trace.say_findings();
    trace.say_if_nothing_selected();
    Ok(trace.outcome(false))
}

/// The events that an argument is one of.
fn events_with(of: &str, side: &Side, selection: &Selection, declared: &EventIndex) -> Result<Vec<String>> {
    let args = |name: &String| {
        let event = declared.get(name).and_then(|found| found.event);
        event.map_or(Vec::new(), |event| event.args.into_iter().map(|arg| arg.name).collect())
    };
    let selected = selected_names(selection, declared);
    let (with, without): (Vec<_>, Vec<_>) =
        selected.into_iter().filter(|name| is_of(side, name)).partition(|name| args(name).contains(&side.arg));
    if !with.is_empty() {
        return Ok(with);
    }
    let all: Vec<_> = without.iter().flat_map(args).collect();
    let all: Vec<_> = all.iter().map(String::as_str).collect();
    match of.split_once('.') {
        Some((event, _)) if !declared.contains(event) => {
            let nearest = declared.nearest(event).map_or(String::new(), |nearest| format!("; did you mean {nearest}?"));
            bail!("--of {of}: no event is called {event}{nearest}")
        }
        Some((event, _)) if without.is_empty() => bail!("--of {of}: {event} is left out by -e"),
        Some((event, _)) => bail!("--of {of}: {}", no_such_arg(&format!("{event} has no"), &side.arg, &all)),
        None if without.is_empty() => bail!("--of {of}: -e selects no event that is declared"),
        None => bail!("--of {of}: {}", no_such_arg("none of the events has an", &side.arg, &all)),
    }
}

/// The values of an argument by group.
struct Values {
    side: Side,
    by: Vec<By>,
    groups: Groups,
    /// By the number of a kind of event; `None` before its first record.
    picks: Vec<Option<Picks>>,
    budget: Budget,
    /// How many more different values can be told apart.
    room: usize,
    places: HashMap<GroupId, usize, RandomState>,
    list: Vec<Group>,
}

struct Group {
    id: GroupId,
    records: u64,
    numbers: Distribution,
    seen: HashMap<GroupValue, u64, RandomState>,
    /// Records with values that there was no room for.
    untold: u64,
}

/// Numbers, signed or not.
struct Distribution {
    /// From 0 up.
    above: Latencies,
    /// How far those below 0 are below it.
    below: Latencies,
}

impl Values {
    fn new(side: Side, by: Vec<By>) -> Self {
        Self {
            side,
            groups: Groups::new(&by),
            by,
            picks: Vec::new(),
            budget: Budget::new(MAX_EXACT),
            room: MAX_DISTINCT,
            places: HashMap::default(),
            list: Vec::new(),
        }
    }

    #[inline]
    fn take(&mut self, event: &Event<'_>) {
        let kind = event.kind.index;
        if self.picks.get(kind).is_none_or(Option::is_none) {
            self.meet(event);
        }
        // A record that is too short is among the findings.
        let picks = self.picks[kind].as_ref();
        let Some(taken) = picks.and_then(|picks| picks.take(&event.record, &event.kind.name)) else { return };
        let id = self.groups.of(&taken.by);
        let place = match self.places.get(&id) {
            Some(&place) => place,
            None => self.add(id),
        };
        self.list[place].take(taken.key[0], &mut self.room);
    }

    #[cold]
    fn meet(&mut self, event: &Event<'_>) {
        let kind = event.kind;
        if self.picks.len() <= kind.index {
            self.picks.resize_with(kind.index + 1, || None);
        }
        self.picks[kind.index] = Picks::new(kind, [Some(&*self.side.arg)].into_iter(), &self.by, NO_STAGE);
        for (slot, by) in self.by.iter().enumerate().filter(|(_, by)| is_of(&by.side, &kind.name)) {
            self.groups.know(slot, Numbers::of(&kind.name, &by.side.arg));
        }
    }

    #[cold]
    fn add(&mut self, id: GroupId) -> usize {
        let id = if self.list.len() < Measure::MAX_GROUPS { id } else { Groups::ALL_OTHER };
        *self.places.entry(id).or_insert_with(|| {
            self.list.push(Group {
                id,
                records: 0,
                numbers: Distribution { above: Latencies::new(&self.budget), below: Latencies::new(&self.budget) },
                seen: HashMap::default(),
                untold: 0,
            });
            self.list.len() - 1
        })
    }

    fn report(&mut self, args: &StatsArgs, of: &str) -> Result<()> {
        let mut list = std::mem::take(&mut self.list);
        list.sort_by_key(|group| Reverse(group.records));
        let has_numbers = list.iter().any(|group| group.numbers.count() > 0);
        let is_exact = list.iter().all(|group| group.numbers.is_exact());
        let untold: u64 = list.iter().map(|group| group.untold).sum();

        let terms = || self.groups.terms().map(Column::new);
        let numbers = args.percentiles.iter().map(Percentile::field);
        let numbers = ["min".to_owned(), "mean".to_owned()].into_iter().chain(numbers).chain(["max".to_owned()]);
        let columns = terms().chain([Column::new("records")]);
        let columns = columns.chain(numbers.filter(|_| has_numbers).map(Column::new));
        let mut groups = Rows::new(columns.chain([Column::new("distinct")]));
        let mut values = Rows::new(terms().chain(["value", "records", "share"].map(Column::new)));
        let mut not_shown = 0;
        for group in &mut list {
            let mut row: Vec<_> = self.groups.cells(group.id).collect();
            row.push(Cell::Count(group.records));
            if has_numbers {
                row.extend(group.numbers.cells(&args.percentiles));
            }
            row.push(group.distinct());
            groups.push(row);
            let named = group.named();
            for (value, records) in named.iter().take(SHOWN) {
                let mut row: Vec<_> = self.groups.cells(group.id).collect();
                let value = Cell::Value { value: (*value).clone(), short: None };
                let share = Cell::Share(*records as f64 / group.records as f64);
                row.extend([value, Cell::Count(*records), share]);
                values.push(row);
            }
            not_shown += named.len().saturating_sub(SHOWN);
        }
        let others_records =
            list.iter().filter(|group| self.groups.is_other(group.id)).map(|group| group.records).sum();
        let said_if = |is_so: bool, text: String| if is_so { text } else { String::new() };
        let shown = count(not_shown as u64, "value");
        let counted = count(untold, "record");
        let doubts = [
            said_if(not_shown > 0, format!("{shown} not shown: those of a group beyond its {SHOWN} most frequent")),
            said_if(
                untold > 0,
                format!("{counted} of values beyond the first {MAX_DISTINCT} different ones: only counted"),
            ),
            said_if(!is_exact, inexact("numbers")),
            others(others_records, "record"),
        ];
        let style = terminal::style(args.ascii);
        let text = || {
            let mut text = format!("{of}\n");
            for rows in [&groups, &values].into_iter().filter(|rows| !rows.is_empty()) {
                text += &format!("\n{}", rows.table());
            }
            text += &self.pictures(&mut list, args, style);
            let legend = self.groups.legend();
            if !legend.is_empty() {
                text += &format!("\n{}\n", legend.join("\n"));
            }
            for line in doubts.iter().filter(|line| !line.is_empty()) {
                text += &format!("\n{line}\n");
            }
            text
        };
        let json = members([
            ("of", of.into()),
            ("exact", is_exact.into()),
            ("other_records", others_records.into()),
            ("untold", untold.into()),
            ("values_not_shown", not_shown.into()),
            ("groups", array(&groups)),
            ("values", array(&values)),
        ]);
        let rows = if has_numbers { &groups } else { &values };
        print(args.format, text, json, rows)?;
        say_doubts(args.format, [], &doubts);
        if has_numbers && !values.is_empty() && matches!(args.format, TableFormat::Csv | TableFormat::Ndjson) {
            say::note("some values are no numbers; -F json has them, too");
        }
        if args.hist.is_some() && !has_numbers && !groups.is_empty() {
            say::note(&format!("{of} has no numbers that could be drawn"));
        }
        Ok(())
    }

    /// Pictures of the largest groups.
    fn pictures(&self, list: &mut [Group], args: &StatsArgs, style: Style) -> String {
        /// More would scroll what matters away.
        const MAX_GROUPS: usize = 8;

        let mut text = String::new();
        let Some(hist) = args.hist else { return text };
        let mut drawn = 0;
        for group in list.iter_mut().filter(|group| group.numbers.count() > 0) {
            drawn += 1;
            if drawn > MAX_GROUPS {
                continue;
            }
            let mut buckets = hist.buckets();
            group.numbers.above.for_each(|value, count| buckets.add(value, count));
            // How far below 0 makes no difference.
            buckets.add_signed(-1, group.numbers.below.count());
            let at = group.numbers.at(&args.percentiles).into_iter();
            let picture = draw(&buckets, Unit::Plain, &args.percentiles, at, style);
            text += &format!("\n{}{picture}", self.groups.title(group.id));
        }
        if drawn > MAX_GROUPS {
            text += &format!("\n{} groups are not drawn\n", drawn - MAX_GROUPS);
        }
        text
    }
}

impl Group {
    #[inline]
    fn take(&mut self, value: Value<'_>, room: &mut usize) {
        self.records += 1;
        match value {
            Value::Signed(value) if value < 0 => self.numbers.below.add(value.unsigned_abs()),
            Value::Signed(value) => self.numbers.above.add(value.unsigned_abs()),
            Value::Unsigned(value) => self.numbers.above.add(value),
            Value::Bool(_) | Value::Pointer(_) | Value::String(_) => {}
        }
        let value = GroupValue::of(value, false);
        if let Some(records) = self.seen.get_mut(&value) {
            *records += 1;
        } else if *room > 0 {
            *room -= 1;
            self.seen.insert(value, 1);
        } else {
            self.untold += 1;
        }
    }

    fn distinct(&self) -> Cell {
        let told = self.seen.len();
        match self.untold {
            0 => Cell::Count(told as u64),
            _ => Cell::Value { value: GroupValue::None, short: Some(format!(">={told}")) },
        }
    }

    /// Values that are no numbers, the most frequent first.
    fn named(&self) -> Vec<(&GroupValue, u64)> {
        let is_named = |value: &GroupValue| !matches!(value, GroupValue::Signed(_) | GroupValue::Unsigned(_));
        let named = self.seen.iter().filter(|(value, _)| is_named(value)).map(|(value, &records)| (value, records));
        let mut named: Vec<_> = named.collect();
        named.sort_by_key(|&(value, records)| (Reverse(records), value));
        named
    }
}

impl Distribution {
    fn count(&self) -> u64 {
        self.below.count() + self.above.count()
    }

    fn is_exact(&self) -> bool {
        self.below.is_exact() && self.above.is_exact()
    }

    /// The number of a rank, counted from 1.
    fn at_rank(&mut self, rank: u64) -> Option<i128> {
        let below = self.below.count();
        if rank <= below {
            return self.below.at_rank(below - rank + 1).map(|value| -i128::from(value));
        }
        self.above.at_rank(rank - below).map(i128::from)
    }

    fn at(&mut self, percentiles: &[Percentile]) -> Vec<Option<i128>> {
        let count = self.count();
        percentiles.iter().map(|percentile| self.at_rank(percentile.rank(count)?)).collect()
    }

    /// Least, mean, percentiles, most.
    fn cells(&mut self, percentiles: &[Percentile]) -> Vec<Cell> {
        let below = |value: u64| -i128::from(value);
        let least = self.below.most_ns().map(below).or(self.above.least_ns().map(i128::from));
        let most = self.above.most_ns().map(i128::from).or(self.below.least_ns().map(below));
        let sum = self.above.sum_ns().cast_signed() - self.below.sum_ns().cast_signed();
        let mean = if self.count() > 0 { Cell::Mean(sum as f64 / self.count() as f64) } else { Cell::Empty };
        let at = self.at(percentiles).into_iter().map(number);
        [number(least), mean].into_iter().chain(at).chain([number(most)]).collect()
    }
}

fn number(number: Option<i128>) -> Cell {
    let value = number.and_then(|number| match u64::try_from(number) {
        Ok(number) => Some(GroupValue::Unsigned(number)),
        Err(_) => Some(GroupValue::Signed(i64::try_from(number).ok()?)),
    });
    Cell::Value { value: value.unwrap_or(GroupValue::None), short: None }
}
