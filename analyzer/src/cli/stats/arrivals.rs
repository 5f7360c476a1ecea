//! How often each event comes.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::PathBuf;

use anyhow::Result;
use foldhash::fast::RandomState;
use simpletrace_format::events::EventIndex;

use super::super::args::StatsArgs;
use super::super::explain_filter;
use super::super::operation::{inexact, load, number_line, others, parse_by, say_doubts};
use super::{NO_STAGE, array, is_of, members, names, print, selected_names};
use crate::findings::Outcome;
use crate::groups::{GroupId, Groups};
use crate::input::{Files, Input, load_events};
use crate::latencies::{self, Budget, Latencies, MAX_EXACT};
use crate::measure::Measure;
use crate::numbers::Numbers;
use crate::pairing::{By, MAX_BY, Order, Picks, check_by, late_means};
use crate::progress::Bar;
use crate::render::{Cell, Column, Rows};
use crate::trace::{Event, Item, Trace};

pub(super) fn run(args: &StatsArgs, paths: &[PathBuf]) -> Result<Outcome> {
    // Each event has rows of its own anyway.
    let by = parse_by(&args.by)?;
    let by: Vec<_> = by.into_iter().filter(|by| by.text != "event").collect();
    let names = names(args.names.as_ref())?;
    let selection = args.select.selection()?;
    let files = Files::open(paths, &args.files.events, true)?;
    let needs_args = by.iter().any(|by| by.side.arg != "pid");
    let declared = if needs_args { Some(load(files.events)?) } else { load_events(files.events)? };
    selection.check(declared.as_ref())?;
    if args.select.records.explain_filter {
        return explain_filter(&selection, declared.as_ref());
    }
    let none = EventIndex::default();
    let known = declared.as_ref().unwrap_or(&none);
    check_by(&by, &selected_names(&selection, known), known, is_of)?;

    let bar = Bar::watch(files.traces.iter().map(Input::progress).collect());
    let mut trace = Trace::new(files.traces, declared, selection);
    trace.formats = args.files.formats.formats();
    let mut arrivals = Arrivals::new(by);
    trace.for_each(|item| {
        arrivals.take(&item);
        Ok(())
    })?;
    arrivals.order.finish(&mut |time_ns, from| arrivals.sources.take(time_ns, from));
    drop(bar);

    arrivals.groups.set_names(names);
    if args.raw {
        arrivals.groups.forget_numbers();
    }
    arrivals.report(args, &trace)?;
    trace.say_findings();
    trace.say_if_nothing_selected();
    Ok(trace.outcome(false))
}

/// Records by event and group.
struct Arrivals {
    by: Vec<By>,
    groups: Groups,
    /// By the number of a kind of event; `None` before its first record.
    picks: Vec<Option<Picks>>,
    order: Order<(usize, GroupId)>,
    sources: Sources,
    /// The earliest and the latest time, those of gaps included as in `info`.
    span_ns: Option<(u64, u64)>,
}

struct Sources {
    budget: Budget,
    places: HashMap<(usize, GroupId), usize, RandomState>,
    list: Vec<Source>,
}

/// Records of one event and one group.
struct Source {
    kind: usize,
    group: GroupId,
    records: u64,
    last_ns: u64,
    /// From each record to the next.
    intervals: Latencies,
}

impl Arrivals {
    fn new(by: Vec<By>) -> Self {
        Self {
            groups: Groups::new(&by),
            by,
            picks: Vec::new(),
            order: Order::default(),
            sources: Sources { budget: Budget::new(MAX_EXACT), places: HashMap::default(), list: Vec::new() },
            span_ns: None,
        }
    }

    #[inline]
    fn take(&mut self, item: &Item<'_>) {
        match item {
            Item::Event(event) => self.event(event),
            // Version 0 gives gaps no time, but zero.
            Item::Gap(gap) if gap.record.timestamp_ns > 0 => self.see(gap.record.timestamp_ns),
            _ => {}
        }
    }

    #[inline]
    fn see(&mut self, time_ns: u64) {
        let (first_ns, last_ns) = self.span_ns.unwrap_or((time_ns, time_ns));
        self.span_ns = Some((first_ns.min(time_ns), last_ns.max(time_ns)));
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        let (time_ns, kind) = (event.record.timestamp_ns, event.kind.index);
        self.see(time_ns);
        let mut group = [Groups::NONE; MAX_BY];
        if !self.by.is_empty() {
            if self.picks.get(kind).is_none_or(Option::is_none) {
                self.meet(event);
            }
            // A record that is too short is counted all the same.
            let picks = self.picks[kind].as_ref();
            if let Some(taken) = picks.and_then(|picks| picks.take(&event.record, &event.kind.name)) {
                group = self.groups.of(&taken.by);
            }
        }
        self.order.push(time_ns, (kind, group), &mut |time_ns, from| self.sources.take(time_ns, from));
    }

    #[cold]
    fn meet(&mut self, event: &Event<'_>) {
        let kind = event.kind;
        if self.picks.len() <= kind.index {
            self.picks.resize_with(kind.index + 1, || None);
        }
        self.picks[kind.index] = Picks::new(kind, [].into_iter(), &self.by, NO_STAGE);
        for (slot, by) in self.by.iter().enumerate().filter(|(_, by)| is_of(&by.side, &kind.name)) {
            self.groups.know(slot, Numbers::of(&kind.name, &by.side.arg));
        }
    }

    fn report(&mut self, args: &StatsArgs, trace: &Trace) -> Result<()> {
        let kinds: Vec<_> = trace.kinds.iter().map(|kind| kind.name.as_str()).collect();
        let span_ns = self.span_ns.map_or(0, |(first_ns, last_ns)| last_ns - first_ns);
        let mut list = std::mem::take(&mut self.sources.list);
        list.sort_by_key(|source| (Reverse(source.records), kinds[source.kind]));
        let columns = [Column::new("event")].into_iter().chain(self.groups.terms().map(Column::new));
        let columns = columns.chain(["records", "rate_per_s"].map(Column::new));
        let mut rows = Rows::new(columns.chain(latencies::columns(&args.percentiles)));
        for source in &mut list {
            let mut row = vec![Cell::Text(kinds[source.kind].to_owned())];
            row.extend(self.groups.cells(source.group));
            row.extend([Cell::Count(source.records), Cell::per_s(source.records, span_ns)]);
            row.extend(source.intervals.cells(&args.percentiles));
            rows.push(row);
        }
        let is_exact = list.iter().all(|source| source.intervals.is_exact());
        let records: u64 = list.iter().map(|source| source.records).sum();
        let late = self.order.late;
        let others_records =
            list.iter().filter(|source| self.groups.is_other(source.group)).map(|source| source.records).sum();
        let doubts =
            [if is_exact { String::new() } else { inexact("of these times") }, others(others_records, "record")];
        let text = || {
            let mut text = "how often each event comes, and the time from each record to the next\n".to_owned();
            if !rows.is_empty() {
                text += &format!("\n{}\n", rows.table());
            }
            self.groups.legend().iter().for_each(|line| text += &format!("{line}\n"));
            text += &format!("{records:>9} records\n");
            text += &number_line("late", late, &late_means());
            for line in doubts.iter().filter(|line| !line.is_empty()) {
                text += &format!("          {line}\n");
            }
            text
        };
        let json = members([
            ("records", records.into()),
            ("span_ns", span_ns.into()),
            ("late", late.into()),
            ("exact", is_exact.into()),
            ("other_records", others_records.into()),
            ("events", array(&rows)),
        ]);
        print(args.format, text, json, &rows)?;
        say_doubts(args.format, [("late", late, &*late_means())], &doubts);
        Ok(())
    }
}

impl Sources {
    #[inline]
    fn take(&mut self, time_ns: u64, from: (usize, GroupId)) {
        let place = match self.places.get(&from) {
            Some(&place) => place,
            None => self.add(from),
        };
        let source = &mut self.list[place];
        // One that is too late to be put in order is no neighbour of the one before.
        if source.records > 0
            && let Some(interval_ns) = time_ns.checked_sub(source.last_ns)
        {
            source.intervals.add(interval_ns);
        }
        source.records += 1;
        source.last_ns = source.last_ns.max(time_ns);
    }

    #[cold]
    fn add(&mut self, (kind, group): (usize, GroupId)) -> usize {
        let group = if self.list.len() < Measure::MAX_GROUPS { group } else { Groups::ALL_OTHER };
        *self.places.entry((kind, group)).or_insert_with(|| {
            self.list.push(Source { kind, group, records: 0, last_ns: 0, intervals: Latencies::new(&self.budget) });
            self.list.len() - 1
        })
    }
}
