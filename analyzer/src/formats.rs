//! What files older than version 4, and those without a header, do not say of themselves.

use std::path::Path;

use clap::ValueEnum;
use simpletrace_format::events::{EventIndex, Numbering, NumberingReason, SeenIds};
use simpletrace_format::{Record, Recovered, RecoveringReader, Version};

use crate::input::Input;

/// What the user says of the files.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Formats {
    /// They are records of version 4 without a file header.
    pub(crate) no_header: bool,
    /// How events are numbered in version 0, if not as the records suggest.
    pub(crate) v0_ids: Option<V0Ids>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum V0Ids {
    /// All declarations have a number (QEMU 0.14 and 0.15)
    All,
    /// `disable`d declarations have none (QEMU 1.0 and 1.1)
    Enabled,
}

/// How a file numbers its events.
pub(crate) struct Rule {
    pub(crate) numbering: Numbering,
    /// The rule, and why it is taken.
    pub(crate) why: String,
    /// Whether it was not looked, though it makes a difference.
    pub(crate) is_guess: bool,
}

impl Formats {
    /// Returns which declarations have a number behind a header of a file that does not name its events.
    pub(crate) fn numbering(self, version: Version, declared: &EventIndex, looked: &mut Looked<'_>) -> Rule {
        let rule =
            |numbering, why: &str| Rule { numbering, why: format!("ids count {numbering}, {why}"), is_guess: false };
        let guess = |why| {
            let numbering = Numbering::VERSION_0_DEFAULT;
            let ids = |numbering| declared.by_id(numbering).len();
            Rule { is_guess: ids(Numbering::All) != ids(Numbering::Enabled), ..rule(numbering, why) }
        };
        if let Some(numbering) = Numbering::of(version) {
            let why =
                if self.no_header { "as in all files without a header" } else { "as in all files of this version" };
            return rule(numbering, why);
        }
        let numbering = match (self.v0_ids, looked.next()) {
            (Some(V0Ids::All), _) => rule(Numbering::All, "as was asked for"),
            (Some(V0Ids::Enabled), _) => rule(Numbering::Enabled, "as was asked for"),
            (None, Some(seen)) => {
                let inferred = declared.infer_numbering(&seen);
                match (&inferred.reason, looked.before) {
                    // The same QEMU has written both, probably.
                    (NumberingReason::BothFit, Some(before)) => {
                        rule(before, "as behind the header before in the same file, since both rules fit")
                    }
                    _ => Rule { numbering: inferred.numbering, why: inferred.to_string(), is_guess: false },
                }
            }
            (None, None) if looked.path.is_some() => {
                guess("since only its first 1,000 headers are looked behind to find out")
            }
            (None, None) => guess("since a pipe cannot be read twice to find out"),
        };
        looked.before = Some(numbering.numbering);
        numbering
    }
}

/// What a file of version 0 has behind its headers, of which there is mostly one; looked at when it is asked for.
pub(crate) struct Looked<'a> {
    /// That of a file that can be read once more.
    path: Option<&'a Path>,
    seen: Option<std::vec::IntoIter<SeenIds>>,
    /// The rule behind the header of version 0 before.
    before: Option<Numbering>,
}

/// Headers of a file that are looked behind.
const MAX_HEADERS: usize = 1000;

impl<'a> Looked<'a> {
    pub(crate) const fn new(path: Option<&'a Path>) -> Self {
        Self { path, seen: None, before: None }
    }

    /// The ids behind the next header of version 0, and how much their records hold.
    fn next(&mut self) -> Option<SeenIds> {
        let look = || self.path.and_then(seen_ids).unwrap_or_default().into_iter();
        self.seen.get_or_insert_with(look).next()
    }
}

fn seen_ids(path: &Path) -> Option<Vec<SeenIds>> {
    let mut records = RecoveringReader::new(Input::open(path).ok()?.read().ok()?).ok()?;
    let mut all = Vec::new();
    let mut seen = (records.header().version == Version::V0).then(SeenIds::default);
    while let Ok(Some(item)) = records.next_item() {
        match item {
            Recovered::Record(Record::Event(event)) => {
                if let Some(seen) = &mut seen {
                    seen.add(&event);
                }
            }
            Recovered::Record(_) | Recovered::Damage(_) => {}
            Recovered::NewFile(header) => {
                all.extend(seen.take());
                if all.len() >= MAX_HEADERS {
                    return Some(all);
                }
                seen = (header.version == Version::V0).then(SeenIds::default);
            }
        }
    }
    all.extend(seen);
    Some(all)
}
