//! Which event an id means in a file that does not say: the one at that place among the declarations.
//!
//! The rules differ by release. Facts: docs/FORMAT.md, section 10.

use std::collections::BTreeMap;
use std::fmt;

use super::is_blank;
use crate::{EventId, EventRecord, MappingRecord, Names, Version};

/// Which declarations took a number when QEMU was built, from 0 in the order of the lines. A `tcg` line takes two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Numbering {
    /// All of them.
    All,
    /// Those without `disable`.
    Enabled,
}

impl Numbering {
    /// What is taken for a version 0 file when nothing speaks for either: the rule of the later releases.
    pub const VERSION_0_DEFAULT: Self = Self::Enabled;

    /// Returns the rule of a version, in version 4 that of files without a header, since others name their events.
    ///
    /// `None` in version 0, which has had both: [`All`](Self::All) in QEMU 0.14 and 0.15, [`Enabled`](Self::Enabled) in 1.0
    /// and 1.1. What release wrote a file, the file does not say; its records may
    /// ([`EventSet::infer_numbering`](super::EventSet::infer_numbering)).
    #[must_use]
    pub const fn of(version: Version) -> Option<Self> {
        match version {
            Version::V0 => None,
            Version::V2 => Some(Self::Enabled),
            Version::V3 | Version::V4 => Some(Self::All),
        }
    }

    const fn counts(self, disabled: bool) -> bool {
        match self {
            Self::All => true,
            Self::Enabled => !disabled,
        }
    }

    const fn other(self) -> Self {
        match self {
            Self::All => Self::Enabled,
            Self::Enabled => Self::All,
        }
    }
}

impl fmt::Display for Numbering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::All => "all declarations",
            Self::Enabled => "the declarations without 'disable'",
        })
    }
}

/// A line that should be a declaration and is none that can be used. It has taken its numbers all the same.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unusable {
    /// How many declarations stand before it.
    pub(super) before: usize,
    pub(super) properties: NumberProperties,
}

impl Unusable {
    pub(super) fn new(before: usize, line: &str) -> Self {
        Self { before, properties: NumberProperties::of(line) }
    }
}

/// What in a line, faulty or not, has a say in numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct NumberProperties {
    pub(super) disabled: bool,
    pub(super) tcg: bool,
}

impl NumberProperties {
    pub(super) fn of(line: &str) -> Self {
        let head = line.split_once('(').map_or(line, |(head, _)| head).trim_end_matches(is_blank);
        let before_name = head.rfind(is_blank).map_or("", |blank| &head[..blank]);
        let has = |property| before_name.split(is_blank).any(|word| word == property);
        Self { disabled: has("disable"), tcg: has("tcg") }
    }
}

/// Gives declarations, each with whether it is disabled, their numbers: what is behind a number, `None` for an unusable line.
pub(super) fn number<T>(
    declared: impl Iterator<Item = (T, bool)>,
    unusable: &[Unusable],
    numbering: Numbering,
) -> Vec<Option<T>> {
    let mut by_id = Vec::new();
    let mut unusable = unusable.iter().peekable();
    let mut take = |by_id: &mut Vec<Option<T>>, before| {
        while let Some(line) = unusable.next_if(|line| line.before <= before) {
            if numbering.counts(line.properties.disabled) {
                by_id.extend((0..=u8::from(line.properties.tcg)).map(|_| None));
            }
        }
    };
    for (index, (declaration, disabled)) in declared.enumerate() {
        take(&mut by_id, index);
        if numbering.counts(disabled) {
            by_id.push(Some(declaration));
        }
    }
    take(&mut by_id, usize::MAX);
    by_id
}

/// A table of the names behind ids from 0 on.
pub(super) fn names<'a>(by_id: impl Iterator<Item = Option<&'a str>>) -> Names {
    let mut names = Names::default();
    for (id, name) in (0..).map(EventId).zip(by_id) {
        if let Some(name) = name {
            let _ = names.map(&MappingRecord { offset: 0, id, name });
        }
    }
    names
}

/// The ids that a version 0 file has records of, and how many words these use: what there is to tell its [`Numbering`] by.
///
/// # Resources
///
/// A file can make it grow, up to [`SeenIds::MAX_IDS`] ids, some MiB; later ids are passed over.
#[derive(Debug, Clone, Default)]
pub struct SeenIds {
    words: BTreeMap<EventId, usize>,
}

impl SeenIds {
    /// The most ids that are remembered, over fifty times the events of any QEMU that wrote version 0.
    pub const MAX_IDS: usize = 1 << 16;

    /// Takes in an event record of a version 0 file.
    pub fn add(&mut self, event: &EventRecord<'_>) {
        if event.id >= EventId::FIRST_SPECIAL {
            return;
        }
        let used = event.payload.args().left_over().len() / 8;
        if let Some(words) = self.words.get_mut(&event.id) {
            *words = used.max(*words);
        } else if self.words.len() < Self::MAX_IDS {
            self.words.insert(event.id, used);
        }
    }
}

/// The [`Numbering`] of a version 0 file, and why it is thought to be that. `Display` says both in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InferredNumbering {
    /// The rule to read the file by.
    pub numbering: Numbering,
    /// Why.
    pub reason: NumberingReason,
}

/// Why one [`Numbering`] is thought to be that of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NumberingReason {
    /// Both rules give every id that was seen the same declaration.
    NoDifference,
    /// The other rule does not fit.
    OtherMisfits(NumberingMisfit),
    /// Both rules fit; the default was taken.
    BothFit,
    /// Neither rule fits, so this is hardly the right trace-events file. Holds what speaks against the rule that was taken, which
    /// has fewer misfits, or is the default.
    NeitherFits(NumberingMisfit),
}

/// What speaks against a [`Numbering`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NumberingMisfit {
    /// How many ids do not fit.
    pub ids: usize,
    /// The first of them.
    pub first: EventId,
    /// What does not fit about the first.
    pub kind: NumberingMisfitKind,
}

/// What does not fit about an id.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NumberingMisfitKind {
    /// There are only so many events.
    Beyond {
        /// The number of events by the rule.
        events: usize,
    },
    /// Records of it have more arguments than are declared: words that are not zero.
    Surplus {
        /// The event's name by the rule.
        name: String,
        /// The number of arguments that it is declared with.
        declared: usize,
        /// The number of words that a record of it uses.
        used: usize,
    },
}

/// What a rule has for an id.
pub(super) enum Candidate {
    /// There are only so many events.
    Beyond(usize),
    /// A line that cannot be understood: anything fits.
    Unusable,
    /// A declaration: which it is, its name, and the number of its arguments.
    Event { place: usize, name: String, args: usize },
}

impl SeenIds {
    /// Decides by what the two rules have for the ids seen.
    pub(super) fn infer(&self, candidate: impl Fn(Numbering, EventId) -> Candidate) -> InferredNumbering {
        let mut differ = false;
        let mut misfits = [None, None];
        for (&id, &used) in &self.words {
            let candidates = [Numbering::All, Numbering::Enabled].map(|rule| candidate(rule, id));
            differ |= !matches!(
                candidates,
                [Candidate::Event { place: one, .. }, Candidate::Event { place: other, .. }] if one == other
            );
            for (misfit, candidate) in misfits.iter_mut().zip(candidates) {
                let kind = match candidate {
                    Candidate::Beyond(events) => NumberingMisfitKind::Beyond { events },
                    Candidate::Event { name, args, .. } if args < used => {
                        NumberingMisfitKind::Surplus { name, declared: args, used }
                    }
                    Candidate::Event { .. } | Candidate::Unusable => continue,
                };
                misfit.get_or_insert(NumberingMisfit { ids: 0, first: id, kind }).ids += 1;
            }
        }
        let default = Numbering::VERSION_0_DEFAULT;
        let (numbering, reason) = match misfits {
            [None, None] if differ => (default, NumberingReason::BothFit),
            [None, None] => (default, NumberingReason::NoDifference),
            [Some(all), None] => (Numbering::Enabled, NumberingReason::OtherMisfits(all)),
            [None, Some(enabled)] => (Numbering::All, NumberingReason::OtherMisfits(enabled)),
            [Some(all), Some(enabled)] if all.ids < enabled.ids => (Numbering::All, NumberingReason::NeitherFits(all)),
            [Some(_), Some(enabled)] => (Numbering::Enabled, NumberingReason::NeitherFits(enabled)),
        };
        InferredNumbering { numbering, reason }
    }
}

impl fmt::Display for InferredNumbering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ids count {}", self.numbering)?;
        match &self.reason {
            NumberingReason::NoDifference => f.write_str("; for the ids in this file it makes no difference"),
            NumberingReason::BothFit => {
                write!(f, ", by default: {} would fit as well", self.numbering.other())
            }
            NumberingReason::OtherMisfits(misfit) => {
                write!(f, ", since {} do not fit: {misfit}", self.numbering.other())
            }
            NumberingReason::NeitherFits(misfit) => {
                write!(f, ", but these are hardly the right declarations: {misfit}")
            }
        }
    }
}

impl fmt::Display for NumberingMisfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            NumberingMisfitKind::Beyond { events } => write!(f, "{} is beyond the {events} events", self.first)?,
            NumberingMisfitKind::Surplus { name, declared, used } => {
                write!(f, "{} has {used} arguments, {name} has {declared}", self.first)?;
            }
        }
        match self.ids {
            0 | 1 => Ok(()),
            2 => f.write_str(", and 1 more id"),
            ids => write!(f, ", and {} more ids", ids - 1),
        }
    }
}
