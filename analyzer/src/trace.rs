//! From records to events: every record gets its name, its declaration, and a verdict whether the two fit.
//!
//! [`Trace`] reads the files of one command one behind the other. What is wrong with them is gathered in [`Findings`] on the way
//! and said once at the end, so that every command reports the same faults in the same words.

use std::collections::HashMap;
use std::ops::ControlFlow;

use anyhow::Result;
use simpletrace_format::events::{ArgDecl, ArgType, EventDecl, EventSet};
use simpletrace_format::{
    ByteOrder, DroppedRecord, EventId, EventRecord, Mapped, Names, Payload, Record, StreamReader,
};

use crate::cli::Outcome;
use crate::filter::{Clock, DROPPED, Selection};
use crate::findings::Findings;
use crate::input::{Declared, Input};
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
    /// The size of the payload in bytes, where the declaration has no strings.
    fixed_bytes: Option<usize>,
    /// What did not fit.
    pub(crate) misfits: Misfits,
}

impl Misfits {
    #[cold]
    fn count(&mut self, fit: Fit, offset: u64, file: &str) {
        let misfit = match fit {
            Fit::Exact => return,
            Fit::Undeclared => &mut self.undeclared,
            Fit::Longer => &mut self.longer,
            Fit::Shorter => &mut self.shorter,
        };
        if misfit.records == 0 {
            misfit.first = format!("offset {offset} of {file}");
        }
        misfit.records += 1;
    }
}

impl Kind {
    pub(crate) fn args(&self) -> &[ArgDecl] {
        self.decl.as_ref().map_or(&[], |decl| &decl.args)
    }

    fn fit(&self, payload: Payload<'_>) -> Fit {
        if let Some(expected) = self.fixed_bytes {
            return match payload.bytes().len() {
                length if length == expected => Fit::Exact,
                length if length > expected => Fit::Longer,
                _ => Fit::Shorter,
            };
        }
        let Some(decl) = &self.decl else {
            return Fit::Undeclared;
        };
        let mut args = payload.args();
        for arg in &decl.args {
            if args.next(arg.ty).is_none() {
                return Fit::Shorter;
            }
        }
        if args.rest().is_empty() { Fit::Exact } else { Fit::Longer }
    }
}

/// How the payload of a record and the declaration of its event agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// To the byte.
    Exact,
    /// Bytes are left over behind the declared arguments, as when the declaration is older than the trace.
    Longer,
    /// The payload ends, or a string reaches beyond it, before the declared arguments do.
    Shorter,
    /// There is no declaration.
    Undeclared,
}

/// Records of one kind that were not as declared.
#[derive(Debug, Default)]
pub(crate) struct Misfits {
    pub(crate) longer: Misfit,
    pub(crate) shorter: Misfit,
    pub(crate) undeclared: Misfit,
}

/// Records of one kind with the same fault.
#[derive(Debug, Default)]
pub(crate) struct Misfit {
    pub(crate) records: u64,
    /// The place of the first one, as messages name it.
    pub(crate) first: String,
}

/// The kinds of event met so far, over all files: the same name in two files is the same kind.
pub(crate) struct Kinds {
    list: Vec<Kind>,
    by_name: HashMap<String, usize>,
    unmapped: HashMap<EventId, usize>,
    declared: Declared,
}

/// Unmapped ids that get a kind of their own; later ones share one. A file with more is not a trace but noise.
const MAX_UNMAPPED_KINDS: usize = 1000;

impl Kinds {
    /// Returns the kinds in order of their first mapping.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Kind> {
        self.list.iter()
    }

    /// Returns all declarations, those of events never met included.
    pub(crate) const fn declared(&self) -> &EventSet {
        &self.declared.events
    }

    fn mapped(&mut self, name: &str, selection: &Selection) -> usize {
        if let Some(&index) = self.by_name.get(name) {
            return index;
        }
        let decl = self.declared.events.get(name).cloned();
        let words_only = decl.as_ref().filter(|decl| decl.args.iter().all(|arg| arg.ty != ArgType::String));
        let fixed_bytes = words_only.map(|decl| 8 * decl.args.len());
        let index = self.push(name.to_owned(), true, decl, fixed_bytes, selection);
        self.by_name.insert(name.to_owned(), index);
        index
    }

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
        fixed_bytes: Option<usize>,
        selection: &Selection,
    ) -> usize {
        let index = self.list.len();
        let selected = selection.globs.selects(&name);
        self.list.push(Kind { index, name, decl, selected, mapped, fixed_bytes, misfits: Misfits::default() });
        index
    }
}

/// What one file's header says, and how much of it was read.
#[derive(Debug, Clone)]
pub(crate) struct FileFacts {
    pub(crate) name: String,
    pub(crate) version: u64,
    pub(crate) byte_order: ByteOrder,
    pub(crate) mappings: u64,
    /// How many bytes were understood, header included.
    pub(crate) bytes: u64,
}

/// Reads the events of one or more trace files.
pub(crate) struct Trace {
    inputs: std::vec::IntoIter<Input>,
    selection: Selection,
    pub(crate) kinds: Kinds,
    pub(crate) findings: Findings,
    pub(crate) files: Vec<FileFacts>,
}

impl Trace {
    /// Prepares to read `inputs` in order.
    pub(crate) fn new(inputs: Vec<Input>, declared: Declared, selection: Selection) -> Self {
        let kinds = Kinds { list: Vec::new(), by_name: HashMap::new(), unmapped: HashMap::new(), declared };
        let findings = Findings::default();
        Self { inputs: inputs.into_iter(), selection, kinds, findings, files: Vec::new() }
    }

    /// Hands every event and gap that the user asked for to `visit`, until it breaks off.
    ///
    /// Damage ends the file that it is in and goes into the findings.
    ///
    /// # Errors
    ///
    /// Those of `visit`.
    pub(crate) fn for_each(&mut self, mut visit: impl FnMut(Item<'_>) -> Result<ControlFlow<()>>) -> Result<()> {
        let mut clock = Clock::new(self.selection.time);
        let admits_dropped = self.selection.admits_dropped();
        let have_declarations = !self.kinds.declared.events.is_empty();
        let mut left = self.selection.limit.unwrap_or(u64::MAX);
        while left > 0
            && let Some(input) = self.inputs.next()
        {
            let name = input.name.clone();
            let total = input.progress().total;
            let mut records = match StreamReader::new(input) {
                Ok(records) => records,
                Err(error) => {
                    self.findings.add_unreadable(&name, &error);
                    continue;
                }
            };
            let header = records.header();
            let mut names = Names::default();
            // The kind behind each slot of `names`.
            let mut slots = Vec::new();
            let mut mappings = 0;
            let end = loop {
                match records.next_record() {
                    Ok(Some(Record::Event(record))) => {
                        let in_window = clock.admits(record.timestamp_ns);
                        let index = match names.slot(record.id) {
                            Some(slot) => slots[slot as usize],
                            None => self.kinds.unmapped(record.id, &self.selection),
                        };
                        let kind = &mut self.kinds.list[index];
                        if !(kind.selected && in_window && self.selection.admits_pid(record.pid)) {
                            continue;
                        }
                        if !kind.mapped {
                            self.findings.count_unmapped(&record, &name);
                        }
                        let fit = kind.fit(record.payload);
                        if fit != Fit::Exact && have_declarations && kind.mapped {
                            kind.misfits.count(fit, record.offset, &name);
                        }
                        left -= 1;
                        if visit(Item::Event(Event { record, kind, fit, start_ns: clock.start_ns() }))?.is_break()
                            || left == 0
                        {
                            break Ok(());
                        }
                    }
                    Ok(Some(Record::Dropped(record))) => {
                        if !(clock.admits(record.timestamp_ns) && self.selection.admits_pid(record.pid)) {
                            continue;
                        }
                        self.findings.gaps += 1;
                        self.findings.dropped = self.findings.dropped.saturating_add(record.count);
                        if !admits_dropped {
                            continue;
                        }
                        left -= 1;
                        if visit(Item::Gap(Gap { record, start_ns: clock.start_ns() }))?.is_break() || left == 0 {
                            break Ok(());
                        }
                    }
                    Ok(Some(Record::Mapping(record))) => {
                        mappings += 1;
                        if record.id >= EventId::FIRST_SPECIAL {
                            self.findings.special_mapped += 1;
                            continue;
                        }
                        match names.map(&record) {
                            Mapped::New(_) => slots.push(self.kinds.mapped(record.name, &self.selection)),
                            Mapped::Moved { before, .. } => {
                                self.findings.count_moved(&record, names.name(before), &name);
                                slots.push(self.kinds.mapped(record.name, &self.selection));
                            }
                            Mapped::Again(_) => {}
                            Mapped::Full => self.findings.names_full += 1,
                        }
                    }
                    Ok(None) => break Ok(()),
                    Err(error) => break Err(error),
                }
            };
            let bytes = records.offset();
            self.files.push(FileFacts {
                name: name.clone(),
                version: header.version,
                byte_order: header.byte_order,
                mappings,
                bytes,
            });
            if let Err(error) = end {
                self.findings.add_error(&name, &error, total);
            }
        }
        Ok(())
    }

    /// Says on stderr what was found, and which names that were asked for do not exist.
    pub(crate) fn say_findings(&self) {
        self.findings.say(&self.kinds);
        for name in self.selection.globs.plain_names() {
            let exists = name == DROPPED
                || self.kinds.declared.events.get(name).is_some()
                || self.kinds.list.iter().any(|kind| kind.name == name);
            if !exists {
                let nearest = self.kinds.declared.events.nearest(name);
                let hint = nearest.map_or(String::new(), |nearest| format!("; did you mean {nearest}?"));
                say::warning(&format!("no event is called {name}{hint}"));
            }
        }
    }

    /// Returns how the reading went; `strict` counts a file that ends inside a record as faulty.
    pub(crate) fn outcome(&self, strict: bool) -> Outcome {
        if !self.findings.unreadable.is_empty() {
            Outcome::Failed
        } else if self.kinds.declared.faulty
            || self.findings.any_fault(&self.kinds)
            || (strict && !self.findings.torn.is_empty())
        {
            Outcome::Faulty
        } else {
            Outcome::Good
        }
    }
}
