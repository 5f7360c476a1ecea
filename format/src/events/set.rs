//! The declarations of one or several files, found by name.

use std::collections::HashMap;

use super::diagnostic::Diagnostics;
use super::nearest::nearest;
use super::numbering::{Candidate, InferredNumbering, Numbering, SeenIds, Unusable, names, number};
use super::{EventDecl, Mode, parse};
use crate::{EventId, Names};

/// Two declarations of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Duplicate<'a> {
    /// The declaration that does not count.
    pub earlier: &'a EventDecl,
    /// The next one of the same name.
    pub later: &'a EventDecl,
    /// Whether both read records alike: strings and words stand at the same places.
    pub same_layout: bool,
}

/// The declarations of one or several files.
///
/// Names may repeat: QEMU's sources declare a few twice (`user_*`, for linux-user and bsd-user). The *last*
/// declaration of a name counts, as in simpletrace.py, which keeps them in a dict. The others stay in the list, since in
/// files before version 4 an event's number is its place there.
#[derive(Debug, Clone, Default)]
pub struct EventSet {
    files: Vec<String>,
    events: Vec<EventDecl>,
    by_name: HashMap<String, usize>,
    duplicates: Vec<(usize, usize)>,
    unusable: Vec<Unusable>,
}

/// The declarations of an [`EventSet`] by their ids, for files that do not name their events.
#[derive(Debug, Clone)]
pub struct ById<'a> {
    /// For each id its declaration, and the place of that in the set.
    events: Vec<Option<(usize, &'a EventDecl)>>,
}

impl EventSet {
    /// Creates an empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the declarations of a file and returns what was wrong with it. `file_name` is for messages only.
    ///
    /// The promise about memory and time is that of [`parse`].
    pub fn add(&mut self, file_name: &str, source: &[u8], mode: Mode) -> Diagnostics {
        let file = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
        self.files.push(file_name.to_owned());
        let parsed = parse(source, mode);
        let before = self.events.len();
        self.unusable.extend(parsed.unusable.iter().map(|line| Unusable { before: before + line.before, ..*line }));
        self.events.reserve(parsed.events.len());
        self.by_name.reserve(parsed.events.len());
        for mut event in parsed.events {
            event.file = file;
            let index = self.events.len();
            if let Some(earlier) = self.by_name.insert(event.name.clone(), index) {
                self.duplicates.push((earlier, index));
            }
            self.events.push(event);
        }
        parsed.diagnostics
    }

    /// Returns the declaration of a name: the last one.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&EventDecl> {
        self.by_name.get(name).map(|index| &self.events[*index])
    }

    /// Returns all declarations in the order of the files, repeated names included.
    #[must_use]
    pub fn declarations(&self) -> &[EventDecl] {
        &self.events
    }

    /// Returns an iterator over [`declarations`](Self::declarations).
    pub fn iter(&self) -> std::slice::Iter<'_, EventDecl> {
        self.events.iter()
    }

    /// Returns the number of declarations, repeated names included.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.events.len()
    }

    /// Returns whether nothing is declared.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Returns the name of the file a declaration of this set came from, as given to [`add`](Self::add); empty for a
    /// declaration of another set.
    #[must_use]
    pub fn file_name(&self, event: &EventDecl) -> &str {
        self.files.get(event.file as usize).map_or("", String::as_str)
    }

    /// Returns the repeated names, each declaration with the one it replaces.
    pub fn duplicates(&self) -> impl Iterator<Item = Duplicate<'_>> {
        self.duplicates.iter().map(|(earlier, later)| {
            let (earlier, later) = (&self.events[*earlier], &self.events[*later]);
            Duplicate { earlier, later, same_layout: earlier.has_layout_of(later) }
        })
    }

    /// Numbers the declarations by the rule of a release, as its build did.
    ///
    /// A line that could not be understood has taken its number all the same. Repeated names have a number each.
    ///
    /// # Examples
    ///
    /// ```
    /// use simpletrace_format::EventId;
    /// use simpletrace_format::events::{EventSet, Mode, Numbering};
    ///
    /// let mut declared = EventSet::new();
    /// let _ = declared.add("trace-events", b"a(int x)\ndisable b(int x)\nc(int x)\n", Mode::Lenient);
    /// let name = |numbering, id| declared.by_id(numbering).get(EventId(id)).map(|event| event.name.as_str());
    /// assert_eq!(name(Numbering::All, 1), Some("b"));
    /// assert_eq!(name(Numbering::Enabled, 1), Some("c"));
    /// ```
    #[must_use]
    pub fn by_id(&self, numbering: Numbering) -> ById<'_> {
        let declared = self.events.iter().enumerate().map(|event| (event, event.1.properties.disabled));
        ById { events: number(declared, &self.unusable, numbering) }
    }

    /// Infers by which rule the ids of a version 0 file were given out: the one that has a declaration for each of them, with as many
    /// arguments as its records use. Where both have, it is [`Numbering::VERSION_0_DEFAULT`].
    #[must_use]
    pub fn infer_numbering(&self, seen: &SeenIds) -> InferredNumbering {
        let [all, enabled] = [Numbering::All, Numbering::Enabled].map(|numbering| self.by_id(numbering));
        seen.infer(|numbering, id| {
            let by_id = if numbering == Numbering::All { &all } else { &enabled };
            let Some(event) = usize::try_from(id.0).ok().and_then(|id| by_id.events.get(id).copied()) else {
                return Candidate::Beyond(by_id.len());
            };
            event.map_or(Candidate::Unusable, |(place, event)| Candidate::Event {
                place,
                name: event.name.clone(),
                args: event.args.len(),
            })
        })
    }

    /// Returns the declared name that `name` was probably meant to be, if one is near.
    ///
    /// Takes a few milliseconds with QEMU's 5 500 events: for messages, not for every record.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Option<&str> {
        nearest(name, self.events.iter().map(|event| event.name.as_str()))
    }
}

impl<'a> ById<'a> {
    /// Returns the declaration of an id; `None` if there are fewer, or if its line could not be understood.
    #[must_use]
    pub fn get(&self, id: EventId) -> Option<&'a EventDecl> {
        self.events.get(usize::try_from(id.0).ok()?).copied().flatten().map(|(_, event)| event)
    }

    /// Returns the names of all ids as if the file had named them.
    ///
    /// Of events that share a name, [`EventSet::get`] has the last only: [`get`](Self::get) tells them apart.
    #[must_use]
    pub fn names(&self) -> Names {
        names(self.events.iter().map(|event| event.map(|(_, event)| event.name.as_str())))
    }

    /// Returns the number of ids.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.events.len()
    }

    /// Tells whether there is no id.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}

impl<'a> IntoIterator for &'a EventSet {
    type Item = &'a EventDecl;
    type IntoIter = std::slice::Iter<'a, EventDecl>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set() -> EventSet {
        let mut set = EventSet::new();
        assert!(set.add("one", b"a(int x)\nb(void)\n", Mode::Strict).is_empty());
        assert!(set.add("two", b"\na(const char *s)\nb(void) \"b\"\n", Mode::Strict).is_empty());
        set
    }

    #[test]
    fn the_last_declaration_of_a_name_counts_and_all_stay_listed() {
        let set = set();
        let a = set.get("a").expect("declared");
        assert_eq!((set.file_name(a), a.line, a.args[0].c_type.as_ref()), ("two", 2, "const char *"));
        let names: Vec<_> = set.iter().map(|event| event.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "a", "b"]);
        assert_eq!(set.len(), 4);
        assert_eq!(set.get("c"), None);
    }

    #[test]
    fn duplicates_tell_whether_the_layout_changed() {
        let set = set();
        let found: Vec<_> = set
            .duplicates()
            .map(|pair| (pair.later.name.as_str(), set.file_name(pair.earlier), pair.same_layout))
            .collect();
        assert_eq!(found, [("a", "one", false), ("b", "one", true)]);
    }

    #[test]
    fn a_mistyped_name_finds_its_neighbour() {
        let mut set = EventSet::new();
        set.add("f", b"qcow2_writev_start_req(void)\nqcow2_writev_done_req(void)\n", Mode::Lenient);
        assert_eq!(set.nearest("qcow2_writev_strat_req"), Some("qcow2_writev_start_req"));
        assert_eq!(set.nearest("nbd_trip"), None);
    }
}
