//! Declarations that are found by name and parsed when they are asked for.

use std::collections::HashMap;

use super::diagnostic::Diagnostics;
use super::fault::Line;
use super::nearest::nearest;
use super::numbering::{
    Candidate, InferredNumbering, NumberProperties, Numbering, SeenIds, Unusable, names as number_names, number,
};
use super::parser::{lines, parse_line};
use super::{EventDecl, Mode, is_blank};
use crate::{EventId, Names};

/// The declarations of one or several files, for reading a trace.
///
/// A trace has records of a few of the thousands of events that QEMU declares, so only the lines of those are parsed, and
/// in [`Mode::Lenient`]. [`EventSet`](super::EventSet) is for those who want all. Names may repeat; the last declaration counts,
/// as there.
///
/// # Resources
///
/// Any bytes may be added: nothing panics, time is linear in the text, memory about twice the text for real files, and at most
/// 50 times (a file of nothing but `(` and line ends).
///
/// # Examples
///
/// ```
/// use simpletrace_format::events::EventIndex;
///
/// let mut index = EventIndex::new();
/// index.add("trace-events", b"disk_open(const char *path) \"%s\"\nodd(\n".to_vec());
/// let found = index.get("disk_open").expect("declared");
/// assert_eq!(found.event.map(|event| event.args.len()), Some(1));
/// let found = index.get("odd").expect("something of that name");
/// assert!(found.event.is_none());
/// assert_eq!(found.diagnostics.errors(), 1);
/// ```
#[derive(Debug, Clone, Default)]
pub struct EventIndex {
    files: Vec<(String, Vec<u8>)>,
    places: Vec<Place>,
    by_name: HashMap<String, usize>,
    unnamed_lines: Vec<Unusable>,
}

/// Where a line is.
#[derive(Debug, Clone)]
struct Place {
    file: usize,
    start: usize,
    end: usize,
    number: u32,
    disabled: bool,
    /// The place of the declaration of the same name before.
    earlier: Option<usize>,
}

/// What an [`EventIndex`] has for a name.
#[derive(Debug)]
pub struct Lookup<'a> {
    /// The declaration, unless it cannot be understood.
    pub event: Option<EventDecl>,
    /// What is wrong with it, and with later ones of the name that cannot be understood.
    pub diagnostics: Diagnostics,
    /// The name of its file, for messages.
    pub file_name: &'a str,
    /// The text of its file, for messages.
    pub source: &'a [u8],
}

impl EventIndex {
    /// Creates an empty index.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the declarations of a file. `file_name` is for messages only.
    pub fn add(&mut self, file_name: &str, source: Vec<u8>) {
        let file = self.files.len();
        for line in lines(&source, Mode::Lenient) {
            let text = line.text.trim_start_matches(is_blank);
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let place = Place {
                file,
                start: line.start,
                end: line.start + line.raw.len(),
                number: line.number,
                disabled: NumberProperties::of(&line.text).disabled,
                earlier: None,
            };
            match names(&line) {
                [None, None] => self.unnamed_lines.push(Unusable::new(self.places.len(), &line.text)),
                names => names.into_iter().flatten().for_each(|name| self.insert(name, place.clone())),
            }
        }
        self.files.push((file_name.to_owned(), source));
    }

    fn insert(&mut self, name: String, mut place: Place) {
        let index = self.places.len();
        let latest = self.by_name.entry(name).or_insert(index);
        place.earlier = (*latest != index).then_some(*latest);
        *latest = index;
        self.places.push(place);
    }

    /// Parses the declaration of a name: the last one that can be understood.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Lookup<'_>> {
        let mut next = self.by_name.get(name).copied();
        let mut first: Option<Lookup<'_>> = None;
        while let Some(place) = next.map(|index| &self.places[index]) {
            let mut lookup = self.parse(place, name);
            let event = lookup.event.take();
            let understood = event.is_some();
            first.get_or_insert(lookup).event = event;
            if understood {
                break;
            }
            next = place.earlier;
        }
        first
    }

    /// Parses the declaration of a name at its place.
    fn parse(&self, place: &Place, name: &str) -> Lookup<'_> {
        let (file_name, source) = &self.files[place.file];
        let mut parsed = parse_line(source, place.start..place.end, place.number, Mode::Lenient);
        let event = parsed.events.iter().position(|event| event.name == name);
        let event = event.map(|position| parsed.events.swap_remove(position));
        Lookup { event, diagnostics: parsed.diagnostics, file_name, source }
    }

    /// Numbers the declarations by the rule of a release, as [`EventSet::by_id`](super::EventSet::by_id) does.
    #[must_use]
    pub fn by_id(&self, numbering: Numbering) -> LookupById<'_> {
        let mut names = vec![""; self.places.len()];
        for (name, &latest) in &self.by_name {
            let mut next = Some(latest);
            while let Some(place) = next {
                names[place] = name;
                next = self.places[place].earlier;
            }
        }
        let declared = self.places.iter().zip(names).enumerate();
        let declared = declared.map(|(index, (place, name))| ((index, name), place.disabled));
        LookupById { index: self, places: number(declared, &self.unnamed_lines, numbering) }
    }

    /// Infers by which rule the ids of a version 0 file were given out, as
    /// [`EventSet::infer_numbering`](super::EventSet::infer_numbering) does.
    #[must_use]
    pub fn infer_numbering(&self, seen: &SeenIds) -> InferredNumbering {
        let [all, enabled] = [Numbering::All, Numbering::Enabled].map(|numbering| self.by_id(numbering));
        seen.infer(|numbering, id| {
            let by_id = if numbering == Numbering::All { &all } else { &enabled };
            let Some(entry) = usize::try_from(id.0).ok().and_then(|id| by_id.places.get(id).copied()) else {
                return Candidate::Beyond(by_id.len());
            };
            let event = entry.and_then(|(place, name)| Some((place, self.parse(&self.places[place], name).event?)));
            event.map_or(Candidate::Unusable, |(place, event)| Candidate::Event {
                place,
                args: event.args.len(),
                name: event.name,
            })
        })
    }

    /// Returns the names that are declared, in no order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// Returns whether `name` is declared, well or badly.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Returns the declared name that `name` was probably meant to be, if one is near.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Option<&str> {
        nearest(name, self.names())
    }

    /// Returns the number of declarations, repeated names included; a `tcg` line counts as two.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns whether nothing is declared.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Returns the number of lines that should be declarations but have no name in them.
    #[must_use]
    pub const fn unnamed_lines(&self) -> usize {
        self.unnamed_lines.len()
    }
}

/// The declarations of an [`EventIndex`] by their ids, for files that do not name their events.
#[derive(Debug, Clone)]
pub struct LookupById<'a> {
    index: &'a EventIndex,
    /// The place of each id, and the name there.
    places: Vec<Option<(usize, &'a str)>>,
}

impl<'a> LookupById<'a> {
    fn entry(&self, id: EventId) -> Option<(usize, &'a str)> {
        self.places.get(usize::try_from(id.0).ok()?).copied().flatten()
    }

    /// Returns the name of an id; `None` if there are fewer, or no name is to be found in its line.
    #[must_use]
    pub fn name(&self, id: EventId) -> Option<&'a str> {
        self.entry(id).map(|(_, name)| name)
    }

    /// Returns the number of the declaration of an id among all of them; a `tcg` line has one.
    #[must_use]
    pub fn place(&self, id: EventId) -> Option<usize> {
        self.entry(id).map(|(place, _)| place)
    }

    /// Parses the declaration of an id: that at its place, whatever others of the same name there are.
    #[must_use]
    pub fn get(&self, id: EventId) -> Option<Lookup<'a>> {
        self.entry(id).map(|(place, name)| self.index.parse(&self.index.places[place], name))
    }

    /// Returns the names of all ids as if the file had named them. Of events that share a name, [`EventIndex::get`] has the
    /// last only: [`get`](Self::get) tells them apart.
    #[must_use]
    pub fn names(&self) -> Names {
        number_names(self.places.iter().map(|entry| entry.map(|(_, name)| name)))
    }

    /// Returns the number of ids.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.places.len()
    }

    /// Tells whether there is no id.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

/// The names that a line may declare: what stands before the first `(`, of which a `tcg` line makes two.
fn names(line: &Line<'_>) -> [Option<String>; 2] {
    let Some((head, _)) = line.text.split_once('(') else { return [None, None] };
    let head = head.trim_end_matches(is_blank);
    let start = head.rfind(is_blank).map_or(0, |blank| blank + head[blank..].chars().next().map_or(0, char::len_utf8));
    if start == head.len() {
        return [None, None];
    }
    let name = line.owned(start..head.len());
    if head[..start].split(is_blank).any(|word| word == "tcg") {
        [Some(format!("{name}_trans")), Some(format!("{name}_exec"))]
    } else {
        [Some(name), None]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::EventSet;

    fn index(files: &[&str]) -> EventIndex {
        let mut index = EventIndex::new();
        for (number, source) in files.iter().enumerate() {
            index.add(&format!("file{number}"), source.as_bytes().to_vec());
        }
        index
    }

    #[test]
    fn a_lookup_gives_what_a_set_gives() {
        let source = "# text (no event)\n\ndisable a(int x) \"%d\"\r\n  vcpu b(void)\ntcg c(TCGv t, int n) \"%d\", \"%d %d\"\nodd x(int y) \"%d\"\nlast(char *s)";
        let index = index(&[source]);
        let mut set = EventSet::new();
        let _ = set.add("file0", source.as_bytes(), Mode::Lenient);
        assert_eq!(set.len(), 6);
        for event in &set {
            let found = index.get(&event.name).and_then(|found| found.event);
            assert_eq!(found.as_ref(), Some(event));
        }
        assert!(index.get("text").is_none());
        assert_eq!((index.names().count(), index.len()), (6, 6));
    }

    #[test]
    fn the_last_declaration_that_can_be_understood_counts() {
        let index = index(&["a(int x)\na(int x, int y)\n", "a(int\n"]);
        assert_eq!(index.len(), 3);
        let found = index.get("a").unwrap();
        assert_eq!(found.event.map(|event| (event.line, event.args.len())), Some((2, 2)));
        assert_eq!((found.file_name, found.diagnostics.errors()), ("file1", 1));
    }

    #[test]
    fn lines_without_a_name_are_counted_and_not_found() {
        let index = index(&["no parenthesis\n(int x)\n#(x)\n\nok(void)\n"]);
        assert_eq!(index.unnamed_lines(), 2);
        assert_eq!(index.names().collect::<Vec<_>>(), ["ok"]);
        assert!(!index.is_empty() && index.contains("ok"));
        assert_eq!(index.nearest("okk"), Some("ok"));
    }
}
