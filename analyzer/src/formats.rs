//! What files older than version 4, and those without a header, do not say of themselves.

use std::path::Path;

use clap::ValueEnum;
use simpletrace_format::events::{EventIndex, Numbering, SeenIds};
use simpletrace_format::{Record, StreamReader, Version};

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

impl Formats {
    /// Returns which declarations have a number in a file that does not name its events, and why.
    ///
    /// `path` is that of a file that can be read once more to find out.
    pub(crate) fn numbering(self, version: Version, declared: &EventIndex, path: Option<&Path>) -> (Numbering, String) {
        let rule = |numbering, why: &str| (numbering, format!("ids count {numbering}, {why}"));
        if let Some(numbering) = Numbering::of(version) {
            let why =
                if self.no_header { "as in all files without a header" } else { "as in all files of this version" };
            return rule(numbering, why);
        }
        match (self.v0_ids, path.and_then(seen_ids)) {
            (Some(V0Ids::All), _) => rule(Numbering::All, "as was asked for"),
            (Some(V0Ids::Enabled), _) => rule(Numbering::Enabled, "as was asked for"),
            (None, Some(seen)) => {
                let inferred = declared.infer_numbering(&seen);
                (inferred.numbering, inferred.to_string())
            }
            (None, None) => rule(Numbering::VERSION_0_DEFAULT, "since a pipe cannot be read twice to find out"),
        }
    }
}

/// The ids of a file, and how much their records hold.
fn seen_ids(path: &Path) -> Option<SeenIds> {
    let mut records = StreamReader::new(Input::open(path).ok()?.read().ok()?).ok()?;
    let mut seen = SeenIds::default();
    // What is behind damage is not read the second time, either.
    while let Ok(Some(record)) = records.next_record() {
        if let Record::Event(event) = record {
            seen.add(&event);
        }
    }
    Some(seen)
}
