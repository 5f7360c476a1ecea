//! From records to events: every record gets its name, its declaration, and a verdict whether the two fit.
//!
//! [`Trace`] reads the files of one command one behind the other. What is wrong with them is gathered in [`Findings`] on the way
//! and said once at the end, so that every command reports the same faults in the same words.

use std::collections::HashSet;
use std::io::Read;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::Result;
use simpletrace_format::events::{EventIndex, LookupById, nearest};
use simpletrace_format::{
    ByteOrder, Damage, DroppedRecord, Error, ErrorKind, EventId, EventRecord, Facts, Header, Loss, Mapped,
    MappingRecord, Names, Record, Recovered, RecoveringReader, Version,
};

#[cfg(feature = "columns")]
use crate::filter::matches;
use crate::filter::{Clock, DROPPED, Selection};
use crate::findings::{Findings, Outcome, count};
use crate::fit::{Fit, judge};
use crate::formats::{Formats, Looked, Rule};
use crate::input::{BeforeWait, Input, Part, is_not_found};
use crate::kinds::{Kind, Kinds};
use crate::render::printable;
use crate::say;

/// One event of the trace.
#[derive(Clone, Copy)]
pub(crate) struct Event<'a> {
    pub(crate) record: EventRecord<'a>,
    pub(crate) kind: &'a Kind,
    pub(crate) fit: Fit,
    /// The time of the trace's first record.
    pub(crate) start_ns: u64,
}

/// A place where events are missing.
#[derive(Clone, Copy)]
pub(crate) struct Gap {
    pub(crate) record: DroppedRecord,
    /// The time of the trace's first record.
    pub(crate) start_ns: u64,
}

/// A dropped record of another time than was asked for.
#[derive(Clone, Copy)]
pub(crate) struct Outside {
    pub(crate) gap: Gap,
    /// Behind the time that was asked for; otherwise before it.
    pub(crate) is_behind: bool,
}

/// What a [`Trace`] hands out.
#[derive(Clone, Copy)]
pub(crate) enum Item<'a> {
    Event(Event<'a>),
    Gap(Gap),
    /// A dropped record outside of the time that was asked for, if gaps are handed out only to be known of: one before it, or the first behind
    /// it, from which events of that time may be missing.
    Outside(Outside),
    /// What follows stands behind this header.
    Section(SectionStart<'a>),
    /// A name for an id: of any event, selected or not.
    Mapping(MappingRecord<'a>),
    /// Something that the file says of itself.
    Fact(Fact<'a>),
    /// The time of the first record of all that has one, in ns of the trace's clock; before that record, selected or not.
    Start(u64),
    /// What was damaged here and is not handed out.
    Missing(Missing),
}

/// A fact of a file.
#[derive(Clone, Copy)]
pub(crate) struct Fact<'a> {
    pub(crate) text: &'a str,
    /// All facts up to this one.
    pub(crate) facts: &'a Facts,
}

/// A header, and what precedes what stands behind it.
#[derive(Clone, Copy)]
pub(crate) struct SectionStart<'a> {
    pub(crate) file: &'a str,
    pub(crate) header: Header,
    /// Whether mapping records name the events; otherwise ids are places among the declarations.
    pub(crate) is_named: bool,
    /// Whether there are any declarations.
    pub(crate) is_declared: bool,
    /// Where the record before ends, if it is torn and has taken in this header.
    pub(crate) torn_end: Option<u64>,
    /// Whether it is a part of the same rotated trace as the file before.
    pub(crate) goes_on: bool,
}

/// A time with the process of its record.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) timestamp_ns: u64,
    pub(crate) pid: u32,
}

/// A stretch of time of whose events an unknown number is missing.
#[derive(Clone, Copy)]
pub(crate) struct Missing {
    /// The last record before it, or else the first behind it; `None` if no record has a time.
    pub(crate) from: Option<Moment>,
    /// The first record behind it; `None` if there is none, or none that was asked for.
    pub(crate) to: Option<Moment>,
}

/// A damaged stretch whose end has no time yet.
struct Stretch {
    from: Option<Moment>,
}

/// What one file's header says, and how much of it was read.
pub(crate) struct FileSummary {
    pub(crate) name: String,
    pub(crate) version: Version,
    pub(crate) byte_order: ByteOrder,
    /// How ids were given a meaning, if the file does not name its events.
    pub(crate) ids: Option<String>,
    pub(crate) mappings: u64,
    /// How many events are known to be missing.
    #[cfg_attr(not(feature = "columns"), expect(dead_code))]
    pub(crate) dropped: u64,
    /// How many bytes were understood, header included.
    pub(crate) bytes: u64,
    /// What it says of itself; `None` beyond as many files as are kept the facts of.
    pub(crate) facts: Option<Rc<Facts>>,
    /// Which part of a rotated trace it is.
    pub(crate) part: Option<Part>,
}

/// Files whose facts are kept, at most 64 KiB each and mostly half of one.
const MAX_FACTS_OF_FILES: usize = 1000;

/// The kind of a slot whose name has not had a record yet: most names of a file never have one.
const NOT_MET: usize = usize::MAX;

/// What stands behind one header: mostly a whole file, but files may have been written or copied one behind the other.
struct Section<'d> {
    header: Header,
    /// Where it begins, in bytes.
    at: u64,
    names: Names,
    /// The kind behind each slot of `names`.
    slots: Vec<usize>,
    /// The declarations by their places, if the file does not name its events; how they are counted, and why so.
    places: Option<LookupById<'d>>,
    /// How many slots are theirs, the first.
    placed: usize,
    rule: Option<Rule>,
    mappings: u64,
    facts: Facts,
    loss: Loss,
    skipped_bytes: u64,
}

impl<'d> Section<'d> {
    fn start<'a>(&self, file: &'a str, is_declared: bool, torn_end: Option<u64>) -> SectionStart<'a> {
        SectionStart {
            file,
            header: self.header,
            is_named: self.places.is_none(),
            is_declared,
            torn_end,
            goes_on: false,
        }
    }

    fn new(
        header: Header,
        at: u64,
        headerless: bool,
        formats: Formats,
        declared: &'d EventIndex,
        looked: &mut Looked<'_>,
    ) -> Self {
        let numbered = headerless || !header.version.has_names();
        let rule = numbered.then(|| formats.numbering(header.version, declared, looked));
        let numbering = rule.as_ref().map(|rule| rule.numbering);
        let places = numbering.map(|numbering| declared.by_id(numbering));
        let names = places.as_ref().map_or_else(Names::default, LookupById::names);
        Self {
            header,
            at,
            slots: vec![NOT_MET; names.len()],
            placed: names.len(),
            names,
            places,
            rule,
            mappings: 0,
            facts: Facts::default(),
            loss: Loss::new(header.version),
            skipped_bytes: 0,
        }
    }
}

/// A record that is too long, by what stands inside it.
struct Overlap {
    resumed_at: u64,
    end: u64,
}

impl Moment {
    fn of(record: &EventRecord<'_>) -> Self {
        Self { timestamp_ns: record.timestamp_ns, pid: record.pid }
    }

    fn last_of<R: Read>(records: &RecoveringReader<R>) -> Option<Self> {
        records.last_timestamp_ns_and_pid().map(|(timestamp_ns, pid)| Self { timestamp_ns, pid })
    }
}

/// Hands out what is rare, apart from the loop that hands out events.
#[cold]
#[inline(never)]
fn tell(visit: &mut impl FnMut(Item<'_>) -> Result<()>, item: Item<'_>) -> Result<()> {
    visit(item)
}

/// Whether a record is wanted of an event that is not [plain](Kind::is_plain). One that is too short to tell is not, and counted; so is
/// one whose id has no name, if that `is_unknown` and not only not given.
#[cold]
#[inline(never)]
fn admits(
    kind: &mut Kind,
    record: &EventRecord<'_>,
    clock: &Clock,
    is_unknown: bool,
    findings: &mut Findings,
    file: &str,
) -> bool {
    if let Some(predicate) = &kind.predicate {
        let admitted = predicate.admits(record, clock.start_ns());
        if admitted.is_none() {
            kind.misfits.count(kind.fit(record.payload), record.offset, file);
        }
        if admitted != Some(true) {
            kind.left_out.by_condition += 1;
            return false;
        }
    }
    if !kind.mapped && is_unknown {
        findings.count_unmapped(record, file);
    }
    true
}

/// Takes in the first record of all, or the first behind a damaged stretch, which can be handed out then.
#[cold]
#[inline(never)]
fn go_on(
    clock: &mut Clock,
    stretch: &mut Option<Stretch>,
    to: Moment,
    visit: &mut impl FnMut(Item<'_>) -> Result<()>,
) -> Result<()> {
    if clock.go_on(to.timestamp_ns) {
        tell(visit, Item::Start(to.timestamp_ns))?;
    }
    match stretch.take() {
        Some(stretch) => tell_missing(clock, stretch.from, Some(to), visit),
        None => Ok(()),
    }
}

/// Takes in a mapping record: a name for an id, or a fact of its file.
#[cold]
#[inline(never)]
fn take_mapping(
    section: &mut Section<'_>,
    record: &MappingRecord<'_>,
    findings: &mut Findings,
    file: &str,
    visit: &mut impl FnMut(Item<'_>) -> Result<()>,
) -> Result<()> {
    if record.is_fact() {
        return match section.facts.add(record.name) {
            Ok(()) => visit(Item::Fact(Fact { text: record.name, facts: &section.facts })),
            Err(error) => {
                findings.add_odd_fact(file, record, &error);
                Ok(())
            }
        };
    }
    section.mappings += 1;
    if record.id >= EventId::FIRST_SPECIAL {
        findings.special_mapped += 1;
        return Ok(());
    }
    match section.names.map(record) {
        Mapped::New(_) => section.slots.push(NOT_MET),
        // Of an id that was a mere place so far.
        Mapped::Moved { before, .. } if (before as usize) < section.placed => section.slots.push(NOT_MET),
        Mapped::Moved { before, .. } => {
            findings.count_moved(record, section.names.name(before), file);
            section.slots.push(NOT_MET);
        }
        Mapped::Again(_) => {}
        Mapped::Full => {
            findings.names_full += 1;
            return Ok(());
        }
    }
    visit(Item::Mapping(*record))
}

/// Takes in a damaged stretch behind a record at `from`; returns that record, if it is too long.
#[cold]
#[inline(never)]
fn take_damage(
    damage: &Damage,
    from: Option<Moment>,
    clock: &mut Clock,
    stretch: &mut Option<Stretch>,
    section: &mut Section<'_>,
) -> Option<Overlap> {
    if damage.skipped_bytes > 0 || damage.is_torn_tail() {
        stretch.get_or_insert(Stretch { from });
        clock.waits = true;
    }
    section.skipped_bytes += damage.skipped_bytes;
    damage.resumed_at.filter(|&at| at < damage.offset).map(|resumed_at| Overlap { resumed_at, end: damage.offset })
}

/// Hands out a damaged stretch, as far as it is within the time that was asked for.
fn tell_missing(
    clock: &Clock,
    from: Option<Moment>,
    to: Option<Moment>,
    visit: &mut impl FnMut(Item<'_>) -> Result<()>,
) -> Result<()> {
    let Some(from) = from.or(to) else { return tell(visit, Item::Missing(Missing { from: None, to: None })) };
    match clock.part_of(from.timestamp_ns, to.map(|to| to.timestamp_ns)) {
        Some((from_ns, to_ns)) => {
            let from = Some(Moment { timestamp_ns: from_ns, pid: from.pid });
            tell(visit, Item::Missing(Missing { from, to: to.filter(|_| to_ns.is_some()) }))
        }
        None => Ok(()),
    }
}

/// Reads the events of one or more trace files.
pub(crate) struct Trace {
    inputs: std::vec::IntoIter<Input>,
    selection: Selection,
    pub(crate) kinds: Kinds,
    pub(crate) findings: Findings,
    pub(crate) files: Vec<FileSummary>,
    events_read: u64,
    pub(crate) events_selected: u64,
    /// All names that were mapped, in files with or without records of them, if somebody asks.
    mapped_names: Option<HashSet<String>>,
    /// Called when a pipe has no more events for now.
    pub(crate) before_wait: Option<BeforeWait>,
    /// What the files do not say of themselves.
    pub(crate) formats: Formats,
    /// Whether gaps are handed out although only events were asked for, without a say in the limit.
    pub(crate) keeps_gaps: bool,
    /// Which part is being read, and which was before it; the last record of that.
    reading: Option<Part>,
    part_before: Option<Part>,
    last_moment: Option<Moment>,
    /// Since when no loss was noted in what is read: the dropped record before, or the first record.
    noted_ns: Option<u64>,
    /// The last part that was there when all were looked for, and is not there any more.
    gone: Option<(Part, anyhow::Error)>,
}

impl Trace {
    /// Prepares to read `inputs` in order.
    pub(crate) fn new(inputs: Vec<Input>, declared: Option<EventIndex>, selection: Selection) -> Self {
        let mapped_names = selection.globs.plain_names().next().map(|_| HashSet::new());
        Self {
            inputs: inputs.into_iter(),
            selection,
            kinds: Kinds::new(declared),
            findings: Findings::default(),
            files: Vec::new(),
            events_read: 0,
            events_selected: 0,
            mapped_names,
            before_wait: None,
            formats: Formats::default(),
            keeps_gaps: false,
            reading: None,
            part_before: None,
            last_moment: None,
            noted_ns: None,
            gone: None,
        }
    }

    /// Keeps all names that the files map, for [`mapped_names`](Self::mapped_names).
    pub(crate) fn keep_mapped_names(&mut self) {
        self.mapped_names.get_or_insert_default();
    }

    /// Returns the names that the files map, of events with records or without, if they were to be kept.
    pub(crate) fn mapped_names(&self) -> impl Iterator<Item = &str> {
        self.mapped_names.iter().flatten().map(String::as_str)
    }

    /// Hands every event and gap that the user asked for to `visit`.
    ///
    /// What is damaged goes into the findings, and reading goes on behind it.
    ///
    /// # Errors
    ///
    /// Those of `visit`, which end the reading.
    pub(crate) fn for_each(&mut self, mut visit: impl FnMut(Item<'_>) -> Result<()>) -> Result<()> {
        let mut clock = Clock::new(self.selection.time);
        let mut left = self.selection.limit.unwrap_or(u64::MAX);
        while left > 0
            && let Some(input) = self.inputs.next()
        {
            self.read_file(input, &mut clock, &mut left, &mut visit)?;
        }
        self.findings.add_gone(self.gone.take());
        Ok(())
    }

    /// Prepares to read a file; returns what is missing before it.
    // Never inlined, as what comes at the end, so that the loop over records has the registers.
    #[inline(never)]
    fn begin_file(&mut self, input: &Input, clock: &mut Clock) -> Option<Stretch> {
        self.reading.clone_from(&input.part);
        let trace = input.part.as_ref().map(|part| &part.trace);
        if self.gone.as_ref().is_some_and(|(gone, _)| trace != Some(&gone.trace)) {
            self.findings.add_gone(self.gone.take());
        }
        let stretch = input.part.as_ref().and_then(|part| self.missing_before(part));
        clock.waits |= stretch.is_some();
        stretch
    }

    /// Takes in that a file was read, with the time of its last record.
    #[inline(never)]
    fn end_file(&mut self, last: Option<Moment>) {
        self.last_moment = last;
        self.part_before = self.reading.take();
        self.gone = None;
    }

    /// Takes in that a file cannot be opened, as it could before. What was in a part that is gone is missing before the next one.
    #[cold]
    fn cannot_open(&mut self, error: anyhow::Error) -> Result<()> {
        match self.reading.take() {
            Some(part) if is_not_found(&error) => self.gone = Some((part, error)),
            _ => return Err(error),
        }
        Ok(())
    }

    /// Takes in that a file has no valid header.
    #[cold]
    fn cannot_read(&mut self, name: &str, error: &Error) {
        if self.reading.is_some() && matches!(error.kind(), ErrorKind::HeaderCut(0)) {
            self.findings.torn.push(format!("{name} is empty, as when the traced program was killed"));
            self.end_file(self.last_moment);
        } else {
            self.findings.add_unreadable(name, error);
        }
    }

    /// Takes notice of the parts of a trace that are missing before this one; those behind the part that was read last leave a gap.
    fn missing_before(&mut self, part: &Part) -> Option<Stretch> {
        match &self.part_before {
            Some(last) if last.trace == part.trace => {
                let is_missing = part.number > last.number.saturating_add(1);
                is_missing.then(|| {
                    self.findings.add_missing_parts(&part.trace, last.number + 1, part.number - 1);
                    Stretch { from: self.last_moment }
                })
            }
            _ => {
                if part.number > 1 {
                    self.findings.add_late_start(part);
                }
                None
            }
        }
    }

    /// Reads a file to its end, or until no more items are `left` to be handed out.
    fn read_file(
        &mut self,
        input: Input,
        clock: &mut Clock,
        left: &mut u64,
        visit: &mut impl FnMut(Item<'_>) -> Result<()>,
    ) -> Result<()> {
        let name = input.name.clone();
        // As the place of what is told: offsets are those of what was compressed.
        let file = if input.is_compressed { format!("{name} (decompressed)") } else { name.clone() };
        let path = input.path.clone().filter(|_| input.progress().total.is_some());
        let headerless = self.formats.no_header.then(|| ByteOrder::of_first_record(input.head()));
        let mut stretch = self.begin_file(&input, clock);
        let bytes = match input.read_ahead(self.before_wait.clone()) {
            Ok(bytes) => bytes,
            Err(error) => return self.cannot_open(error),
        };
        let opened = match headerless {
            Some(byte_order) => Ok(RecoveringReader::assuming(bytes, Header { version: Version::V4, byte_order })),
            None => RecoveringReader::new(bytes),
        };
        let mut records = match opened {
            Ok(records) => records,
            Err(error) => {
                self.cannot_read(&name, &error);
                return Ok(());
            }
        };
        let declared = Arc::clone(self.kinds.declared());
        let mut looked = Looked::new(path.as_deref());
        let mut section = Section::new(records.header(), 0, headerless.is_some(), self.formats, &declared, &mut looked);
        let numbering = section.rule.as_ref().map(|rule| rule.numbering);
        if self.kinds.have_declarations {
            records = records.with_fits(judge(Arc::clone(&declared), section.header, numbering));
        }
        let admits_gaps = self.selection.admits_dropped();
        let keeps_gaps = self.keeps_gaps && !self.selection.takes_out_dropped();
        let mut overlap: Option<Overlap> = None;
        let have_declarations = self.kinds.have_declarations;
        let goes_on = match (&self.reading, &self.part_before) {
            (Some(part), Some(before)) => part.trace == before.trace,
            _ => false,
        };
        if !goes_on {
            self.noted_ns = None;
        }
        // To know when it begins.
        clock.waits = true;
        let start = section.start(&file, have_declarations, None);
        tell(visit, Item::Section(SectionStart { goes_on, ..start }))?;
        while *left > 0 {
            match records.next_item() {
                Ok(Some(Recovered::Record(Record::Event(record)))) => {
                    self.events_read += 1;
                    if clock.waits {
                        self.noted_ns.get_or_insert(record.timestamp_ns);
                        go_on(clock, &mut stretch, Moment::of(&record), visit)?;
                    }
                    let in_window = clock.admits(record.timestamp_ns);
                    let index = match section.names.slot(record.id) {
                        Some(slot) => {
                            let index = &mut section.slots[slot as usize];
                            if *index == NOT_MET {
                                let name = section.names.name(slot);
                                // A name behind those of the declarations is from a mapping record.
                                let is_place = (slot as usize) < section.placed;
                                *index = match &section.places {
                                    Some(places) if is_place => {
                                        self.kinds.placed(record.id, places, section.header.version, &self.selection)
                                    }
                                    _ => self.kinds.mapped(name, &self.selection),
                                };
                            }
                            *index
                        }
                        None => self.kinds.unmapped(record.id, &self.selection),
                    };
                    let kind = self.kinds.at(index);
                    if !(kind.selected && in_window && self.selection.admits_pid(record.pid)) {
                        kind.left_out.by_time_or_else[usize::from(in_window)] += 1;
                        continue;
                    }
                    if !kind.is_plain {
                        // Without declarations, ids that are places among them cannot be known.
                        let is_unknown = section.places.is_none() || have_declarations;
                        if !admits(kind, &record, clock, is_unknown, &mut self.findings, &file) {
                            continue;
                        }
                    }
                    let fit = kind.fit(record.payload);
                    if fit != Fit::Exact && have_declarations && kind.mapped {
                        kind.misfits.count(fit, record.offset, &file);
                    }
                    *left -= 1;
                    self.events_selected += 1;
                    visit(Item::Event(Event { record, kind, fit, start_ns: clock.start_ns() }))?;
                }
                Ok(Some(Recovered::Record(Record::Dropped(record)))) => {
                    // In version 0 they have no time of their own, and are as early or late as what stands before them.
                    let has_time = section.header.version != Version::V0;
                    if has_time && clock.waits {
                        let moment = Moment { timestamp_ns: record.timestamp_ns, pid: record.pid };
                        go_on(clock, &mut stretch, moment, visit)?;
                    }
                    let in_window = !has_time || clock.admits(record.timestamp_ns);
                    let noted_ns = self.noted_ns.replace(record.timestamp_ns);
                    if !self.selection.admits_pid(record.pid) {
                        continue;
                    }
                    if !in_window {
                        let is_behind = clock.is_behind(record.timestamp_ns);
                        let reaches = !is_behind || noted_ns.is_some_and(|ns| !clock.is_behind(ns));
                        if keeps_gaps && reaches {
                            let gap = Gap { record, start_ns: clock.start_ns() };
                            tell(visit, Item::Outside(Outside { gap, is_behind }))?;
                        }
                        continue;
                    }
                    self.findings.count_gap(&record);
                    section.loss.add(&record);
                    if admits_gaps || keeps_gaps {
                        *left -= u64::from(admits_gaps);
                        tell(visit, Item::Gap(Gap { record, start_ns: clock.start_ns() }))?;
                    }
                }
                Ok(Some(Recovered::Record(Record::Mapping(record)))) => {
                    take_mapping(&mut section, &record, &mut self.findings, &file, visit)?;
                }
                Ok(Some(Recovered::Damage(damage))) => {
                    let from = Moment::last_of(&records);
                    overlap = take_damage(&damage, from, clock, &mut stretch, &mut section);
                    self.findings.add_damage(&file, &damage);
                }
                Ok(Some(Recovered::NewFile(header))) => {
                    let at = records.offset() - header.version.header_bytes() as u64;
                    let torn_end = overlap.take().filter(|overlap| overlap.resumed_at == at).map(|overlap| overlap.end);
                    if torn_end.is_some() {
                        stretch.get_or_insert(Stretch { from: Moment::last_of(&records) });
                        clock.waits = true;
                    }
                    self.findings.add_second_header(&file, at);
                    self.noted_ns = None;
                    clock.waits = true;
                    let next = Section::new(header, at, false, self.formats, &declared, &mut looked);
                    let before = std::mem::replace(&mut section, next);
                    self.end_section(before, &name, at);
                    tell(visit, Item::Section(section.start(&file, have_declarations, torn_end)))?;
                }
                Ok(None) => {
                    if let Some(stretch) = stretch.take() {
                        tell_missing(clock, stretch.from, None, visit)?;
                    }
                    break;
                }
                Err(error) => {
                    if self.findings.add_error(&name, &error) {
                        let stretch = stretch.take().unwrap_or(Stretch { from: Moment::last_of(&records) });
                        tell_missing(clock, stretch.from, None, visit)?;
                    }
                    break;
                }
            }
        }
        let end = records.offset();
        self.end_section(section, &name, end);
        self.end_file(Moment::last_of(&records));
        Ok(())
    }

    fn end_section(&mut self, section: Section<'_>, file: &str, end: u64) {
        if let Some(part) = &self.reading {
            self.findings.check_part(file, part, &section.facts);
        }
        if let Some(rule) = section.rule.as_ref().filter(|rule| rule.is_guess) {
            self.findings.add_guess(file, &rule.why);
        }
        self.findings.dropped = self.findings.dropped.saturating_add(section.loss.records());
        self.findings.unknown_gaps += section.loss.unknown_gaps();
        let name = if section.at == 0 { file.to_owned() } else { format!("{file} from offset {}", section.at) };
        self.files.push(FileSummary {
            name,
            version: section.header.version,
            ids: section.rule.map(|rule| rule.why),
            byte_order: section.header.byte_order,
            mappings: section.mappings,
            dropped: section.loss.records(),
            bytes: end.saturating_sub(section.at + section.skipped_bytes),
            facts: (self.files.len() < MAX_FACTS_OF_FILES).then(|| Rc::new(section.facts)),
            part: self.reading.clone(),
        });
        if let Some(mapped) = &mut self.mapped_names {
            let room = Names::MAX_SLOTS.saturating_sub(mapped.len());
            mapped.extend(section.names.iter().take(room).map(str::to_owned));
        }
    }

    /// Tells whether the user asked for events of this name.
    pub(crate) fn selects(&self, name: &str) -> bool {
        self.selection.globs.selects(name)
    }

    /// Says on stderr what was found, and which names that were asked for do not exist.
    pub(crate) fn say_findings(&self) {
        self.findings.say(&self.kinds);
        self.say_left_out();
        /// Names that are suggested for; a longer list is not typed by hand.
        const SUGGESTIONS: usize = 10;

        for name in self.unknown_names().take(SUGGESTIONS) {
            let nearest = self.kinds.declared().nearest(name).or_else(|| nearest(name, self.mapped_names()));
            let hint = nearest.map_or(String::new(), |nearest| format!("; did you mean {nearest}?"));
            say::warning(&format!("no event is called {}{hint}", printable(name)));
        }
    }

    /// Names in patterns that are of no event.
    pub(crate) fn unknown_names(&self) -> impl Iterator<Item = &str> {
        self.selection.globs.plain_names().filter(|name| {
            let mapped = self.mapped_names.as_ref().is_some_and(|mapped| mapped.contains(*name));
            // An id without a name goes by `event 22`.
            let is_met = || self.kinds.iter().any(|kind| kind.name == *name);
            *name != DROPPED && !mapped && !self.kinds.declared().contains(name) && !is_met()
        })
    }

    /// Patterns with a `*` that ask for events, and that no event is called by, if the names that files map were kept.
    #[cfg(feature = "columns")]
    pub(crate) fn unmatched_patterns(&self) -> impl Iterator<Item = &str> {
        let known = || {
            let met = self.kinds.iter().map(|kind| kind.name.as_str());
            met.chain(self.kinds.declared().names()).chain(self.mapped_names()).chain([DROPPED])
        };
        self.selection.globs.wanted_patterns().filter(move |pattern| !known().any(|name| matches(pattern, name)))
    }

    /// Says which events a filter leaves out because of their arguments' types.
    fn say_left_out(&self) {
        /// Events told one by one.
        const TOLD: usize = 5;

        let left_out = &self.kinds.left_out;
        for why in left_out.iter().take(TOLD) {
            say::warning(&format!("left out by -w: {why}"));
        }
        if left_out.len() > TOLD {
            let more = count((left_out.len() - TOLD) as u64, "more event");
            say::warning(&format!("{more} left out by -w for such a reason; --explain-filter lists them"));
        }
    }

    /// Says on stderr if there are events, but none that the user asked for.
    pub(crate) fn say_if_nothing_selected(&self) {
        if self.events_selected == 0 && self.events_read > 0 && self.selection.limit != Some(0) {
            say::note(&format!("none of {} events was selected", self.events_read));
        }
    }

    /// Returns how the reading went; `strict` counts a file that ends inside a record as faulty.
    pub(crate) fn outcome(&self, strict: bool) -> Outcome {
        if !self.findings.unreadable.is_empty() {
            Outcome::Failed
        } else if !self.kinds.faults.is_empty()
            || self.findings.any_fault(&self.kinds)
            || (strict && !self.findings.torn.is_empty())
        {
            Outcome::Faulty
        } else {
            Outcome::Good
        }
    }
}
