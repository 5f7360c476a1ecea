//! What is known about the events of a trace, by name: declaration, layout, whether they were asked for, and what did not fit.

use std::collections::HashMap;
use std::sync::Arc;

use simpletrace_format::events::{ArgDecl, EventDecl, EventIndex, Lookup, LookupById, Severity};
use simpletrace_format::{EventId, Payload, Version};

use crate::condition::{LeftOut, Predicate};
use crate::filter::Selection;
use crate::fit::{Fit, Layout, Misfits};
use crate::input::MAX_FAULTS;

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
    /// What a record has to meet, if they are not all wanted.
    pub(crate) predicate: Option<Box<Predicate>>,
    /// Whether a mapping record named it.
    pub(crate) mapped: bool,
    /// Whether it was and all records are wanted, so that there is nothing more to ask of each.
    pub(crate) is_plain: bool,
    /// How a payload is laid out, if that is declared.
    layout: Option<Layout>,
    /// What did not fit.
    pub(crate) misfits: Misfits,
    /// Records that were not handed out although they may be of interest by their event's name.
    pub(crate) left_out: LeftOutRecords,
}

/// Records that were not handed out.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LeftOutRecords {
    /// First those outside the time that is asked for; then those within, by their process if the event is [selected](Kind::selected), else by the event.
    pub(crate) by_time_or_else: [u64; 2],
    /// Those that do not meet a condition.
    pub(crate) by_condition: u64,
}

impl LeftOutRecords {
    pub(crate) fn any(&self) -> bool {
        self.by_time_or_else.iter().sum::<u64>() + self.by_condition > 0
    }
}

impl Kind {
    pub(crate) fn args(&self) -> &[ArgDecl] {
        self.decl.as_ref().map_or(&[], |decl| &decl.args)
    }

    /// Whether records have the text of strings, and not only an address as in version 0.
    pub(crate) fn has_text(&self) -> bool {
        self.layout.as_ref().is_none_or(Layout::has_text)
    }

    // Always: asked for every record.
    #[inline(always)]
    pub(crate) fn fit(&self, payload: Payload<'_>) -> Fit {
        match &self.layout {
            Some(layout) => layout.fit(payload),
            None => Fit::Undeclared,
        }
    }
}

/// The kinds of event met so far, over all files: the same name in two files is the same kind.
pub(crate) struct Kinds {
    list: Vec<Kind>,
    by_name: HashMap<String, usize>,
    /// Kinds of events that have no name but a declaration, by version, its place among all, and its name: ids differ from file to file.
    by_place: HashMap<(Version, Option<usize>, String), usize>,
    unmapped: HashMap<EventId, usize>,
    declared: Arc<EventIndex>,
    /// Whether any trace-events file was given, if only an empty one.
    pub(crate) have_declarations: bool,
    /// Why declarations that were needed could not be understood, with line and caret.
    pub(crate) faults: Vec<String>,
    /// Why conditions are not for the arguments of events that they should be for.
    pub(crate) left_out: Vec<String>,
}

/// Unmapped ids that get a kind of their own; later ones share one. A file with more is not a trace but noise.
const MAX_UNMAPPED_KINDS: usize = 1000;

impl Kinds {
    pub(crate) fn new(declared: Option<EventIndex>) -> Self {
        Self {
            list: Vec::new(),
            by_name: HashMap::new(),
            by_place: HashMap::new(),
            unmapped: HashMap::new(),
            have_declarations: declared.is_some(),
            declared: Arc::new(declared.unwrap_or_default()),
            faults: Vec::new(),
            left_out: Vec::new(),
        }
    }

    /// Returns the kind at a place that this table gave out.
    #[inline]
    pub(crate) fn at(&mut self, index: usize) -> &mut Kind {
        &mut self.list[index]
    }

    /// Returns the kinds in order of their first record.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Kind> {
        self.list.iter()
    }

    /// Returns all declarations, those of events never met included.
    pub(crate) fn declared(&self) -> &Arc<EventIndex> {
        &self.declared
    }

    /// The kind of the events of a mapped name.
    #[cold]
    pub(crate) fn mapped(&mut self, name: &str, selection: &Selection) -> usize {
        if let Some(&index) = self.by_name.get(name) {
            return index;
        }
        let declared = Arc::clone(&self.declared);
        let index = self.push_declared(name, declared.get(name), Version::V4, selection);
        self.by_name.insert(name.to_owned(), index);
        index
    }

    /// The kind of the events of a place among the declarations, in a file that does not name its events.
    #[cold]
    pub(crate) fn placed(
        &mut self,
        id: EventId,
        ids: &LookupById<'_>,
        version: Version,
        selection: &Selection,
    ) -> usize {
        let name = ids.name(id).unwrap_or_default();
        let key = (version, ids.place(id), name.to_owned());
        if let Some(&index) = self.by_place.get(&key) {
            return index;
        }
        let index = self.push_declared(name, ids.get(id), version, selection);
        self.by_place.insert(key, index);
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
    pub(crate) fn unmapped(&mut self, id: EventId, selection: &Selection) -> usize {
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
        let has_text = layout.as_ref().is_none_or(Layout::has_text);
        let mut selected = selection.globs.selects(&name);
        let mut predicate = None;
        if selected {
            let args = decl.as_ref().map_or(&[][..], |decl| &decl.args);
            match selection.conditions.choose(&name, args, has_text) {
                Ok(asked) => predicate = asked.map(Box::new),
                Err(why) => {
                    selected = false;
                    if let LeftOut::Differs(why) = why {
                        self.left_out.push(why);
                    }
                }
            }
        }
        let is_plain = mapped && predicate.is_none();
        let (misfits, left_out) = (Misfits::default(), LeftOutRecords::default());
        self.list.push(Kind { index, name, decl, selected, predicate, mapped, is_plain, layout, misfits, left_out });
        index
    }
}
