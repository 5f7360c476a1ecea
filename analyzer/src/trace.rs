//! From records to events: every record gets its name, its declaration, and a verdict whether the two fit.
//!
//! [`Trace`] reads the files of one command one behind the other. What is wrong with them is gathered in [`Findings`] on the way
//! and said once at the end, so that every command reports the same faults in the same words.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use anyhow::Result;
use simpletrace_format::events::{ArgDecl, EventDecl, EventIndex, Lookup, LookupById, Severity, nearest};
use simpletrace_format::{
    ByteOrder, DroppedRecord, EventId, EventRecord, Loss, Mapped, Names, Payload, Record, StreamReader, Version,
};

use crate::filter::{Clock, DROPPED, Selection};
use crate::findings::{Findings, Outcome};
use crate::fit::{Fit, Layout, Misfits};
use crate::formats::{Formats, first_byte_order};
use crate::input::{BeforeWait, Input, MAX_FAULTS};
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

/// What a [`Trace`] hands out.
#[derive(Clone, Copy)]
pub(crate) enum Item<'a> {
    Event(Event<'a>),
    Gap(Gap),
}

/// All that is known about the events of one name.
pub(crate) struct Kind {
    /// Its place in [`Kinds`].
    pub(crate) index: usize,
    /// The name as mapped; `event 17` where no mapping record named the id.
    pub(crate) name: String,
    /// The declaration, if there is one.
    pub(crate) decl: Option<EventDecl>,
    /// Whether the user asked for these events.
    pub(crate) selected: bool,
    /// Whether a mapping record named it.
    pub(crate) mapped: bool,
    /// How a payload is laid out, if that is declared.
    layout: Option<Layout>,
    /// What did not fit.
    pub(crate) misfits: Misfits,
}

impl Kind {
    pub(crate) fn args(&self) -> &[ArgDecl] {
        self.decl.as_ref().map_or(&[], |decl| &decl.args)
    }

    /// Whether records have the text of strings, and not only an address as in version 0.
    pub(crate) fn has_text(&self) -> bool {
        self.layout.as_ref().is_none_or(Layout::has_text)
    }

    #[inline]
    fn fit(&self, payload: Payload<'_>) -> Fit {
        self.layout.as_ref().map_or(Fit::Undeclared, |layout| layout.fit(payload))
    }
}

/// The kinds of event met so far, over all files: the same name in two files is the same kind.
pub(crate) struct Kinds {
    list: Vec<Kind>,
    by_name: HashMap<String, usize>,
    /// Kinds of events that have no name but a place among the declarations, by version and place.
    by_place: HashMap<(Version, EventId), usize>,
    unmapped: HashMap<EventId, usize>,
    declared: Rc<EventIndex>,
    /// Whether any trace-events file was given, if only an empty one.
    pub(crate) have_declarations: bool,
    /// Why declarations that were needed could not be understood, with line and caret.
    pub(crate) faults: Vec<String>,
}

/// Unmapped ids that get a kind of their own; later ones share one. A file with more is not a trace but noise.
const MAX_UNMAPPED_KINDS: usize = 1000;

impl Kinds {
    /// Returns the kinds in order of their first record.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Kind> {
        self.list.iter()
    }

    /// Returns all declarations, those of events never met included.
    pub(crate) fn declared(&self) -> &EventIndex {
        &self.declared
    }

    /// The kind of the events of a mapped name.
    #[cold]
    fn mapped(&mut self, name: &str, selection: &Selection) -> usize {
        if let Some(&index) = self.by_name.get(name) {
            return index;
        }
        let declared = Rc::clone(&self.declared);
        let index = self.push_declared(name, declared.get(name), Version::V4, selection);
        self.by_name.insert(name.to_owned(), index);
        index
    }

    /// The kind of the events of a place among the declarations, in a file that does not name its events.
    #[cold]
    fn placed(&mut self, id: EventId, ids: &LookupById<'_>, version: Version, selection: &Selection) -> usize {
        if let Some(&index) = self.by_place.get(&(version, id)) {
            return index;
        }
        let index = self.push_declared(ids.name(id).unwrap_or_default(), ids.get(id), version, selection);
        self.by_place.insert((version, id), index);
        index
    }

    fn push_declared(
        &mut self,
        name: &str,
        found: Option<Lookup<'_>>,
        version: Version,
        selection: &Selection,
    ) -> usize {
        let mut decl = None;
        if let Some(found) = found {
            decl = found.event;
            let room = MAX_FAULTS.saturating_sub(self.faults.len());
            let errors =
                found.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).take(room);
            self.faults.extend(errors.map(|error| error.with_source(found.file_name, found.source).to_string()));
        }
        let layout = decl.as_ref().map(|decl| Layout::new(&decl.args, version));
        self.push(name.to_owned(), true, decl, layout, selection)
    }

    /// The kind of the events of an id that no mapping record has named.
    #[cold]
    fn unmapped(&mut self, id: EventId, selection: &Selection) -> usize {
        let full = self.unmapped.len() >= MAX_UNMAPPED_KINDS;
        // No id of a record is TRACE_BEGIN, so it can stand for all the others.
        let id = if full && !self.unmapped.contains_key(&id) { EventId::TRACE_BEGIN } else { id };
        if let Some(&index) = self.unmapped.get(&id) {
            return index;
        }
        let name = if full { "event (unmapped)".to_owned() } else { id.to_string() };
        let index = self.push(name, false, None, None, selection);
        self.unmapped.insert(id, index);
        index
    }

    fn push(
        &mut self,
        name: String,
        mapped: bool,
        decl: Option<EventDecl>,
        layout: Option<Layout>,
        selection: &Selection,
    ) -> usize {
        let index = self.list.len();
        let selected = selection.globs.selects(&name);
        self.list.push(Kind { index, name, decl, selected, mapped, layout, misfits: Misfits::default() });
        index
    }
}

/// What one file's header says, and how much of it was read.
pub(crate) struct FileFacts {
    pub(crate) name: String,
    pub(crate) version: Version,
    pub(crate) byte_order: ByteOrder,
    /// How ids were given a meaning, if the file does not name its events.
    pub(crate) ids: Option<String>,
    pub(crate) mappings: u64,
    /// How many bytes were understood, header included.
    pub(crate) bytes: u64,
}

/// The kind of a slot whose name has not had a record yet: most names of a file never have one.
const NOT_MET: usize = usize::MAX;

/// Reads the events of one or more trace files.
pub(crate) struct Trace {
    inputs: std::vec::IntoIter<Input>,
    selection: Selection,
    pub(crate) kinds: Kinds,
    pub(crate) findings: Findings,
    pub(crate) files: Vec<FileFacts>,
    events_read: u64,
    events_selected: u64,
    /// All names that were mapped, in files with or without records of them, if somebody asks.
    mapped_names: Option<HashSet<String>>,
    /// Called when a pipe has no more events for now.
    pub(crate) before_wait: Option<BeforeWait>,
    /// What the files do not say of themselves.
    pub(crate) formats: Formats,
}

impl Trace {
    /// Prepares to read `inputs` in order.
    pub(crate) fn new(inputs: Vec<Input>, declared: Option<EventIndex>, selection: Selection) -> Self {
        let kinds = Kinds {
            list: Vec::new(),
            by_name: HashMap::new(),
            by_place: HashMap::new(),
            unmapped: HashMap::new(),
            have_declarations: declared.is_some(),
            declared: Rc::new(declared.unwrap_or_default()),
            faults: Vec::new(),
        };
        let mapped_names = selection.globs.plain_names().next().map(|_| HashSet::new());
        Self {
            inputs: inputs.into_iter(),
            selection,
            kinds,
            findings: Findings::default(),
            files: Vec::new(),
            events_read: 0,
            events_selected: 0,
            mapped_names,
            before_wait: None,
            formats: Formats::default(),
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
    /// Damage ends the file that it is in and goes into the findings.
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
        Ok(())
    }

    /// Reads a file to its end, its first damage, or until no more items are `left` to be handed out.
    fn read_file(
        &mut self,
        input: Input,
        clock: &mut Clock,
        left: &mut u64,
        visit: &mut impl FnMut(Item<'_>) -> Result<()>,
    ) -> Result<()> {
        let name = input.name.clone();
        let total_bytes = if input.is_compressed { None } else { input.progress().total };
        // As the place of what is told: offsets are those of what was compressed.
        let file = if input.is_compressed { format!("{name} (decompressed)") } else { name.clone() };
        let path = input.path.clone().filter(|_| input.progress().total.is_some());
        let headerless = self.formats.no_header.then(|| first_byte_order(input.head()));
        let bytes = input.read_ahead(self.before_wait.clone())?;
        let opened = match headerless {
            Some(byte_order) => Ok(StreamReader::headerless(bytes, byte_order)),
            None => StreamReader::new(bytes),
        };
        let mut records = match opened {
            Ok(records) => records,
            Err(error) => {
                self.findings.add_unreadable(&name, &error);
                return Ok(());
            }
        };
        let version = records.header().version;
        let declared = Rc::clone(&self.kinds.declared);
        let places = (headerless.is_some() || !version.has_names()).then(|| {
            let (numbering, why) = self.formats.numbering(version, &declared, path.as_deref());
            (declared.by_id(numbering), why)
        });
        let (ids, places) = places.map_or((None, None), |(places, why)| (Some(why), Some(places)));
        let mut loss = Loss::new(version);
        let admits_gaps = self.selection.admits_dropped();
        let have_declarations = self.kinds.have_declarations;
        let mut names = places.as_ref().map_or_else(Names::default, LookupById::names);
        // The kind behind each slot of `names`.
        let mut slots = vec![NOT_MET; names.len()];
        let mut mappings = 0;
        while *left > 0 {
            match records.next_record() {
                Ok(Some(Record::Event(record))) => {
                    self.events_read += 1;
                    let in_window = clock.admits(record.timestamp_ns);
                    let index = match names.slot(record.id) {
                        Some(slot) => {
                            let index = &mut slots[slot as usize];
                            if *index == NOT_MET {
                                *index = match &places {
                                    Some(places) => self.kinds.placed(record.id, places, version, &self.selection),
                                    None => self.kinds.mapped(names.name(slot), &self.selection),
                                };
                            }
                            *index
                        }
                        None => self.kinds.unmapped(record.id, &self.selection),
                    };
                    let kind = &mut self.kinds.list[index];
                    if !(kind.selected && in_window && self.selection.admits_pid(record.pid)) {
                        continue;
                    }
                    // Without declarations, ids that are places among them cannot be known.
                    if !kind.mapped && (places.is_none() || have_declarations) {
                        self.findings.count_unmapped(&record, &file);
                    }
                    let fit = kind.fit(record.payload);
                    if fit != Fit::Exact && have_declarations && kind.mapped {
                        kind.misfits.count(fit, record.offset, &file);
                    }
                    *left -= 1;
                    self.events_selected += 1;
                    visit(Item::Event(Event { record, kind, fit, start_ns: clock.start_ns() }))?;
                }
                Ok(Some(Record::Dropped(record))) => {
                    // In version 0 they have no time of their own, and are as early or late as what stands before them.
                    let in_window = version == Version::V0 || clock.admits(record.timestamp_ns);
                    if !(in_window && self.selection.admits_pid(record.pid)) {
                        continue;
                    }
                    self.findings.gaps += 1;
                    loss.add(&record);
                    if admits_gaps {
                        *left -= 1;
                        visit(Item::Gap(Gap { record, start_ns: clock.start_ns() }))?;
                    }
                }
                Ok(Some(Record::Mapping(record))) => {
                    mappings += 1;
                    if record.id >= EventId::FIRST_SPECIAL {
                        self.findings.special_mapped += 1;
                        continue;
                    }
                    match names.map(&record) {
                        Mapped::New(_) => slots.push(NOT_MET),
                        Mapped::Moved { before, .. } => {
                            self.findings.count_moved(&record, names.name(before), &file);
                            slots.push(NOT_MET);
                        }
                        Mapped::Again(_) => {}
                        Mapped::Full => self.findings.names_full += 1,
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    self.findings.add_error(&name, &file, &error, total_bytes);
                    break;
                }
            }
        }
        self.findings.dropped = self.findings.dropped.saturating_add(loss.records());
        let header = records.header();
        self.files.push(FileFacts {
            name,
            version: header.version,
            ids,
            byte_order: header.byte_order,
            mappings,
            bytes: records.offset(),
        });
        if let Some(mapped) = &mut self.mapped_names {
            mapped.extend(names.iter().take(Names::MAX_SLOTS.saturating_sub(mapped.len())).map(str::to_owned));
        }
        Ok(())
    }

    /// Tells whether the user asked for events of this name.
    pub(crate) fn selects(&self, name: &str) -> bool {
        self.selection.globs.selects(name)
    }

    /// Says on stderr what was found, and which names that were asked for do not exist.
    pub(crate) fn say_findings(&self) {
        self.findings.say(&self.kinds);
        /// Names that are suggested for; a longer list is not typed by hand.
        const SUGGESTIONS: usize = 10;

        let unknown = self.selection.globs.plain_names().filter(|name| {
            let mapped = self.mapped_names.as_ref().is_some_and(|mapped| mapped.contains(*name));
            *name != DROPPED && !mapped && !self.kinds.declared.contains(name)
        });
        for name in unknown.take(SUGGESTIONS) {
            let nearest = self.kinds.declared.nearest(name).or_else(|| nearest(name, self.mapped_names()));
            let hint = nearest.map_or(String::new(), |nearest| format!("; did you mean {nearest}?"));
            say::warning(&format!("no event is called {}{hint}", printable(name)));
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
