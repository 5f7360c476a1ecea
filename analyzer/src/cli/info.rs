//! `info`: what is in a trace, on one screen.

use anyhow::Result;
use serde::{Serialize, Serializer};
use simpletrace_format::{ByteOrder, DroppedRecord, Facts};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use super::args::{InfoArgs, ReportFormat};
use super::explain_filter;
use crate::chart::{Rates, Style, TimeCells, spark};
use crate::findings::{Outcome, count};
use crate::input::{Files, Input, load_events};
use crate::output::Output;
use crate::presets::Presets;
use crate::progress::Bar;
use crate::render::{printable, utc};
use crate::rewrite::CommonFacts;
use crate::terminal;
use crate::trace::{Event, Item, Trace};

/// Events listed by default: with the rest, a note and the prompt they fit on a terminal of 24 lines.
const SHOWN_EVENTS: usize = 12;

/// Process ids counted one by one; a file with more is not a trace but noise.
const MAX_PIDS: usize = 1000;

pub(crate) fn run(args: &InfoArgs) -> Result<Outcome> {
    let selection = args.select.selection()?;
    let presets = Presets::load(args.presets.iter().map(PathBuf::as_path))?;
    let files = Files::open(&args.files.files, &args.files.events, true)?;
    let declared = load_events(files.events)?;
    selection.check(declared.as_ref())?;
    if args.select.records.explain_filter {
        return explain_filter(&selection, declared.as_ref());
    }
    let bar = Bar::watch(files.traces.iter().map(Input::progress).collect());
    let mut trace = Trace::new(files.traces, declared, selection);
    trace.formats = args.files.formats.formats();
    let mut tally = Tally::default();
    trace.for_each(|item| {
        tally.count(&item);
        Ok(())
    })?;
    drop(bar);

    let report = tally.report(&trace, &presets);
    let mut output = Output::create(None, [])?;
    match args.format {
        ReportFormat::Text => {
            // Only where it is known how much room there is: what is read by programs stays as it is.
            let pictures = terminal::columns().map(|_| terminal::style(args.ascii));
            report.print(&mut output, args.all, pictures)?;
        }
        ReportFormat::Json => {
            output.block.put(serde_json::to_string_pretty(&report)?);
            output.block.byte(b'\n');
        }
    }
    output.finish()?;
    trace.say_findings();
    trace.say_if_nothing_selected();
    Ok(trace.outcome(false))
}

/// What is counted while reading.
#[derive(Default)]
struct Tally {
    kinds: Vec<KindTally>,
    rates: Rates,
    /// Those that have a time.
    all_gaps: KindTally,
    last_ns: u64,
    disorder: Disorder,
    pids: Pids,
    gaps: Vec<Gap>,
    gaps_beyond: u64,
}

#[derive(Clone)]
struct KindTally {
    records: u64,
    first_ns: u64,
    last_ns: u64,
}

impl Default for KindTally {
    fn default() -> Self {
        Self { records: 0, first_ns: u64::MAX, last_ns: 0 }
    }
}

impl KindTally {
    #[inline]
    fn count(&mut self, timestamp_ns: u64) {
        self.records += 1;
        self.first_ns = self.first_ns.min(timestamp_ns);
        self.last_ns = self.last_ns.max(timestamp_ns);
    }
}

/// Records that are earlier than the one before them.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct Disorder {
    records: u64,
    largest_step_back_ns: u64,
}

/// How many records each process has; the one before is at hand, since it seldom changes.
#[derive(Default)]
struct Pids {
    current: u32,
    run: u64,
    counts: BTreeMap<u32, u64>,
    beyond: u64,
}

impl Pids {
    #[inline]
    fn count(&mut self, pid: u32) {
        if pid != self.current {
            self.settle();
            self.current = pid;
        }
        self.run += 1;
    }

    #[cold]
    fn settle(&mut self) {
        let run = std::mem::take(&mut self.run);
        if run == 0 {
            return;
        }
        if self.counts.len() < MAX_PIDS || self.counts.contains_key(&self.current) {
            *self.counts.entry(self.current).or_default() += run;
        } else {
            self.beyond += run;
        }
    }
}

impl Tally {
    #[inline]
    fn count(&mut self, item: &Item<'_>) {
        match item {
            Item::Event(event) => self.event(event),
            Item::Gap(gap) => self.gap(&gap.record),
            _ => {}
        }
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        let timestamp_ns = event.record.timestamp_ns;
        self.pids.count(event.record.pid);
        // A `dropped` record bears the time of its writing and stands before older ones: no disorder of the events.
        if timestamp_ns < self.last_ns {
            self.disorder.records += 1;
            let step_ns = self.last_ns - timestamp_ns;
            self.disorder.largest_step_back_ns = self.disorder.largest_step_back_ns.max(step_ns);
            self.rates.went_back_to(timestamp_ns);
        }
        self.last_ns = timestamp_ns;
        let index = event.kind.index;
        if self.kinds.len() <= index {
            self.kinds.resize(index + 1, KindTally::default());
        }
        self.kinds[index].count(timestamp_ns);
        if timestamp_ns >= self.rates.look_from_ns {
            self.look(timestamp_ns, index);
        }
    }

    #[cold]
    #[inline(never)]
    fn look(&mut self, timestamp_ns: u64, index: usize) {
        self.rates.look(timestamp_ns, index, self.kinds.iter().map(|kind| kind.records));
    }

    /// Returns the earliest and the latest time of all, if there is any.
    fn span(&self) -> Option<(u64, u64)> {
        let met = || self.kinds.iter().chain([&self.all_gaps]).filter(|tally| tally.records > 0);
        Some((met().map(|tally| tally.first_ns).min()?, met().map(|tally| tally.last_ns).max()?))
    }

    #[cold]
    #[inline(never)]
    fn gap(&mut self, record: &DroppedRecord) {
        /// Gaps listed one by one; the sums are of all.
        const MAX_GAPS: usize = 1000;

        let (noticed_ns, count) = (record.timestamp_ns, record.known_count());
        // Version 0 gives gaps no time, but zero.
        if noticed_ns > 0 {
            self.all_gaps.count(noticed_ns);
        }
        self.pids.count(record.pid);
        if self.gaps.len() < MAX_GAPS {
            self.gaps.push(Gap { noticed_ns, count });
        } else {
            self.gaps_beyond += 1;
        }
    }

    fn report(mut self, trace: &Trace, presets: &Presets) -> Report {
        self.pids.settle();
        let span = self.span();
        let span_ns = span.map_or(0, |(start_ns, end_ns)| end_ns - start_ns);
        let per_second = |records: u64| (span_ns > 0).then(|| records as f64 * 1e9 / span_ns as f64);
        let mut events: Vec<_> = trace
            .kinds
            .iter()
            .filter_map(|kind| Some((kind, self.kinds.get(kind.index)?)))
            .filter(|(_, tally)| tally.records > 0)
            .map(|(kind, tally)| EventReport {
                kind: kind.index,
                event: kind.name.clone(),
                records: tally.records,
                records_per_s: per_second(tally.records),
                first_ns: tally.first_ns,
                last_ns: tally.last_ns,
                mapped: kind.mapped,
                declared: kind.decl.is_some(),
                misfits: kind.misfits.longer.records + kind.misfits.shorter.records,
            })
            .collect();
        events.sort_by(|a, b| b.records.cmp(&a.records).then_with(|| a.event.cmp(&b.event)));
        let records = events.iter().map(|event| event.records).sum();
        let findings = &trace.findings;
        let counts = self.kinds.iter().map(|kind| kind.records);
        let over_time = self.rates.finish(span.unwrap_or_default(), counts);
        let recorded: Vec<_> = events.iter().map(|event| event.event.as_str()).collect();
        let presets = presets.answered(&recorded, trace.kinds.declared());
        Report {
            over_time,
            schema: "simpletrace-rs.info/1",
            with_declarations: trace.kinds.have_declarations,
            files: trace
                .files
                .iter()
                .map(|file| FileReport {
                    file: file.name.clone(),
                    version: file.version.number(),
                    ids: file.ids.clone(),
                    byte_order: match file.byte_order {
                        ByteOrder::Little => "little",
                        ByteOrder::Big => "big",
                    },
                    bytes: file.bytes,
                    mappings: file.mappings,
                    part: file.part.as_ref().map(|part| part.number),
                    trace: file.part.as_ref().map(|part| Arc::clone(&part.trace)),
                    wall_offset_ns: file.facts.as_deref().and_then(Facts::wall_offset_ns),
                    facts: file.facts.clone(),
                })
                .collect(),
            records,
            records_per_s: per_second(records),
            first_ns: span.map(|span| span.0),
            last_ns: span.map(|span| span.1),
            span_ns,
            pids: self.pids.counts.iter().map(|(&pid, &records)| PidReport { pid, records }).collect(),
            records_of_other_pids: self.pids.beyond,
            dropped: findings.dropped,
            gap_count: findings.gaps,
            unknown_gaps: findings.unknown_gaps,
            gaps: self.gaps,
            disorder: self.disorder,
            events,
            unmapped_records: findings.unmapped,
            ids_renamed: findings.moved,
            torn: findings.torn.clone(),
            damage: findings.damage.clone(),
            damaged_stretches: findings.damaged_stretches,
            skipped_bytes: findings.skipped_bytes,
            second_headers: findings.second_headers,
            unreadable: findings.unreadable.clone(),
            missing_parts: findings.missing_parts,
            presets,
        }
    }
}

/// The report, as `-F json` prints it; docs/EXPORTS.md says what each field means.
#[derive(Debug, Serialize)]
struct Report {
    schema: &'static str,
    #[serde(skip)]
    with_declarations: bool,
    #[serde(skip)]
    over_time: TimeCells,
    files: Vec<FileReport>,
    records: u64,
    records_per_s: Option<f64>,
    first_ns: Option<u64>,
    last_ns: Option<u64>,
    span_ns: u64,
    pids: Vec<PidReport>,
    records_of_other_pids: u64,
    dropped: u64,
    gap_count: u64,
    unknown_gaps: u64,
    gaps: Vec<Gap>,
    disorder: Disorder,
    events: Vec<EventReport>,
    unmapped_records: u64,
    ids_renamed: u64,
    torn: Vec<String>,
    damage: Vec<String>,
    damaged_stretches: u64,
    skipped_bytes: u64,
    second_headers: u64,
    unreadable: Vec<String>,
    missing_parts: u64,
    /// What `latency` can answer.
    presets: Vec<String>,
}

#[derive(Debug, Serialize)]
struct FileReport {
    file: String,
    version: u64,
    ids: Option<String>,
    byte_order: &'static str,
    bytes: u64,
    mappings: u64,
    part: Option<u64>,
    #[serde(skip)]
    trace: Option<Arc<Path>>,
    wall_offset_ns: Option<i64>,
    #[serde(serialize_with = "facts_as_map")]
    facts: Option<Rc<Facts>>,
}

fn facts_as_map<S: Serializer>(facts: &Option<Rc<Facts>>, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    match facts {
        Some(facts) => serializer.collect_map(facts.iter()),
        None => serializer.serialize_none(),
    }
}

/// One trace as the screen has it: a file, or all parts of one.
struct Whole<'a> {
    files: &'a [FileReport],
    facts: Facts,
}

impl Whole<'_> {
    /// What stands for its name.
    fn name(&self) -> String {
        match &self.files[0].trace {
            Some(trace) => printable(&trace.display().to_string()),
            None => self.files[0].file.clone(),
        }
    }

    fn file(&self) -> String {
        let first = &self.files[0];
        let parts =
            if first.trace.is_some() { format!("{}, ", count(self.files.len() as u64, "part")) } else { String::new() };
        let (bytes, mappings) = (self.files.iter().map(|file| file.bytes), self.files.iter().map(|file| file.mappings));
        format!(
            "{}: {parts}version {}, {}-endian, {} bytes, {} mappings",
            self.name(),
            first.version,
            first.byte_order,
            bytes.sum::<u64>(),
            mappings.sum::<u64>()
        )
    }

    /// Which parts there are, and which are missing.
    fn parts(&self) -> Option<String> {
        /// Missing stretches that are listed one by one.
        const SHOWN: usize = 8;

        let numbers: Vec<_> = self.files.iter().filter_map(|file| file.part).collect();
        let (first, last) = (*numbers.first()?, *numbers.last()?);
        let range =
            |first: u64, last: u64| if first == last { first.to_string() } else { format!("{first} to {last}") };
        let mut text = range(first, last);
        if first > 1 {
            text += &format!("; missing at the front: {}", range(1, first - 1));
        }
        let gaps = || numbers.windows(2).filter(|pair| pair[1] > pair[0].saturating_add(1));
        let shown: Vec<_> = gaps().take(SHOWN).map(|pair| range(pair[0] + 1, pair[1] - 1)).collect();
        if !shown.is_empty() {
            let more = gaps().count() - shown.len();
            let more = if more > 0 { format!(" and {}", count(more as u64, "more place")) } else { String::new() };
            text += &format!("; missing in between: {}{more}", shown.join(", "));
        }
        Some(text)
    }
}

#[derive(Debug, Serialize)]
struct PidReport {
    pid: u32,
    records: u64,
}

#[derive(Debug, Serialize)]
struct Gap {
    noticed_ns: u64,
    count: Option<u64>,
}

#[derive(Debug, Serialize)]
struct EventReport {
    #[serde(skip)]
    kind: usize,
    event: String,
    records: u64,
    records_per_s: Option<f64>,
    first_ns: u64,
    last_ns: u64,
    mapped: bool,
    declared: bool,
    misfits: u64,
}

impl Report {
    fn print(&self, output: &mut Output, all: bool, pictures: Option<Style>) -> Result<()> {
        let mut line = |name: &str, text: String| output.block.put(format!("{name:<9} {text}\n"));
        let alike = |a: &FileReport, b: &FileReport| {
            a.trace.is_some() && a.trace == b.trace && (a.version, a.byte_order) == (b.version, b.byte_order)
        };
        let wholes: Vec<_> =
            self.files.chunk_by(alike).map(|files| Whole { files, facts: common_facts(files) }).collect();
        let mut extra_lines = 0;
        for whole in &wholes {
            line("file", whole.file());
            if let Some(parts) = whole.parts() {
                line("parts", parts);
                extra_lines += 1;
            }
        }
        for whole in wholes.iter().filter(|whole| !whole.facts.is_empty()) {
            let whose = if wholes.len() > 1 { format!("{}: ", whole.name()) } else { String::new() };
            let facts: Vec<_> = whole.facts.iter().map(|(key, value)| format!("{key}={}", printable(value))).collect();
            line("facts", format!("{whose}{}", facts.join(", ")));
            extra_lines += 1;
        }
        for ids in self.files.iter().filter_map(|file| file.ids.as_ref()) {
            line("ids", ids.clone());
        }
        if let (Some(first_ns), Some(last_ns)) = (self.first_ns, self.last_ns) {
            line("span", format!("{} s, clock {} to {}", seconds(self.span_ns), seconds(first_ns), seconds(last_ns)));
            if let [Whole { facts, .. }] = &wholes[..]
                && let Some(offset_ns) = facts.wall_offset_ns()
            {
                let utc = |ns: u64| ns.checked_add_signed(offset_ns).map_or("unknown".to_owned(), utc);
                line("utc", format!("{} to {}", utc(first_ns), utc(last_ns)));
                extra_lines += 1;
            }
        }
        line("events", format!("{}{}", self.records, rate(self.records_per_s)));
        let pids: Vec<_> = match &self.pids[..] {
            [only] => vec![only.pid.to_string()],
            pids => pids.iter().take(8).map(|pid| format!("{} ({} records)", pid.pid, pid.records)).collect(),
        };
        if !pids.is_empty() {
            let more = self.pids.len().saturating_sub(8);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            line("pid", format!("{}{more}", pids.join(", ")));
        }
        line(
            "gaps",
            match self.gap_count {
                0 => "none, nothing was dropped".to_owned(),
                gaps if self.unknown_gaps > 0 => format!(
                    "{gaps}, {} events dropped and an unknown number in {} of them",
                    self.dropped, self.unknown_gaps
                ),
                gaps => format!("{gaps}, {} events dropped", self.dropped),
            },
        );
        line(
            "disorder",
            match self.disorder.records {
                0 => "none".to_owned(),
                records => format!(
                    "{records} events are earlier than the one before, by up to {} s",
                    seconds(self.disorder.largest_step_back_ns)
                ),
            },
        );
        let faults = self.damage.len() + self.unreadable.len();
        line(
            "damage",
            match (faults, self.torn.len()) {
                (0, 0) => "none".to_owned(),
                (0, _) => "none, but the file ends inside a record".to_owned(),
                _ => "yes, see below".to_owned(),
            },
        );
        if !self.presets.is_empty() {
            line("latency", format!("presets {}", self.presets.join(", ")));
            extra_lines += 1;
        }
        let shown = if all { self.events.len() } else { shown_by_default(extra_lines).min(self.events.len()) };
        let shown = &self.events[..shown];
        let sparks = pictures
            .and_then(|style| self.sparks(shown, style))
            .unwrap_or_else(|| vec![String::new(); shown.len() + 1]);
        if !shown.is_empty() {
            output.block.put(format!("\n     records       rate/s  {}event\n", sparks[0]));
        }
        for (event, spark) in shown.iter().zip(&sparks[1..]) {
            let rate = event.records_per_s.map_or("-".to_owned(), |rate| format!("{rate:.1}"));
            output.block.put(format!("{:>12} {rate:>12}  {spark}{}\n", event.records, self.event_and_note(event)));
            output.write_if_full()?;
        }
        if let Some(rest @ [_, ..]) = self.events.get(shown.len()..) {
            let records: u64 = rest.iter().map(|event| event.records).sum();
            let more = if rest.len() == 1 { "1 more event" } else { &format!("{} more events", rest.len()) };
            output.block.put(format!("{records:>12}               of {more}, --all lists them\n"));
        }
        Ok(())
    }
}

impl Report {
    /// The title of a column of rates over time, and what is in it, if there is room for one beside the events.
    fn sparks(&self, events: &[EventReport], style: Style) -> Option<Vec<String>> {
        const MIN_WIDTH: usize = 10;
        const MAX_WIDTH: usize = 32;
        /// Records and their rate, and two blanks behind each column.
        const OTHERS: usize = 29;

        let longest = events.iter().map(|event| self.event_and_note(event).chars().count()).max()?;
        let room = style.width.saturating_sub(OTHERS + longest).min(MAX_WIDTH);
        if room < MIN_WIDTH || self.span_ns == 0 {
            return None;
        }
        let sparks = events.iter().map(|event| spark(&self.over_time, event.kind, Style { width: room, ..style }));
        let column: Vec<_> = std::iter::once("over time".to_owned()).chain(sparks).collect();
        let width = column.iter().map(|cell| cell.chars().count()).max()?;
        Some(column.into_iter().map(|cell| format!("{cell:<width$}  ")).collect())
    }

    fn event_and_note(&self, event: &EventReport) -> String {
        let note = match event {
            EventReport { mapped: false, .. } => "  (unmapped)",
            EventReport { declared: false, .. } if self.with_declarations => "  (not declared)",
            EventReport { misfits: 1.., .. } => "  (not as declared)",
            _ => "",
        };
        format!("{}{note}", printable(&event.event))
    }
}

/// How many events leave the screen room for so many lines more than always.
fn shown_by_default(extra_lines: usize) -> usize {
    SHOWN_EVENTS.saturating_sub(extra_lines).max(SHOWN_EVENTS / 2)
}

/// What holds for all of some files, as far as their facts are kept.
fn common_facts(files: &[FileReport]) -> Facts {
    if let [only] = files {
        return only.facts.as_deref().cloned().unwrap_or_default();
    }
    let mut common = CommonFacts::default();
    files.iter().filter_map(|file| file.facts.as_deref()).for_each(|facts| common.add(facts));
    common.into_facts()
}

fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

fn rate(per_s: Option<f64>) -> String {
    per_s.map_or(String::new(), |per_s| format!(", {per_s:.1} a second"))
}
