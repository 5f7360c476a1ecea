//! Event ids and their two namespaces.

use std::fmt;

/// The id of an event as a file holds it.
///
/// Ids are handed out anew by every build, so they mean nothing without the file's mapping records. The upper half of the
/// number range is a namespace of its own: special events, counted down from the top by the format's authors. Two are known;
/// the others are reserved, reported and never guessed at.
///
/// ```
/// use simpletrace_format::{EventId, Namespace, Special};
///
/// assert_eq!(EventId(44).namespace(), Namespace::Ordinary);
/// assert_eq!(EventId(u64::MAX - 1).namespace(), Namespace::Special(Special::Dropped));
/// assert_eq!(EventId(u64::MAX - 7).to_string(), "special event 0xfffffffffffffff8");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub u64);

/// Which half of the id range an [`EventId`] lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Namespace {
    /// An event of the program, named by a mapping record.
    Ordinary,
    /// An event of the recorder itself.
    Special(Special),
}

/// The events of the recorder itself, which no mapping record names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Special {
    /// `__trace_begin`, 2^64-1: the first eight bytes of every file.
    TraceBegin,
    /// `dropped`, 2^64-2: so many records are missing.
    Dropped,
    /// Anything else from 2^63 up; the payload's meaning is unknown.
    Reserved(u64),
}

impl EventId {
    /// `__trace_begin`, the id that opens a file header.
    pub const TRACE_BEGIN: Self = Self(u64::MAX);
    /// `dropped`, the id of the records that count lost ones.
    pub const DROPPED: Self = Self(u64::MAX - 1);
    /// The id of the mapping records that hold the [`Facts`](crate::Facts) of a file, 2^64-3. No event has it.
    pub const FACTS: Self = Self(u64::MAX - 2);
    /// The first id of the special namespace, 2^63: the recorder uses this bit of the word as a flag while a record is in
    /// its ring, so no ordinary id can have it.
    pub const FIRST_SPECIAL: Self = Self(1 << 63);

    /// Tells an event of the program from one of the recorder.
    #[inline]
    #[must_use]
    pub const fn namespace(self) -> Namespace {
        match self {
            Self::TRACE_BEGIN => Namespace::Special(Special::TraceBegin),
            Self::DROPPED => Namespace::Special(Special::Dropped),
            Self(id) if id >= Self::FIRST_SPECIAL.0 => Namespace::Special(Special::Reserved(id)),
            Self(_) => Namespace::Ordinary,
        }
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace() {
            Namespace::Ordinary => write!(f, "event {}", self.0),
            Namespace::Special(Special::TraceBegin) => f.write_str("__trace_begin"),
            Namespace::Special(Special::Dropped) => f.write_str("dropped"),
            Namespace::Special(Special::Reserved(id)) => write!(f, "special event {id:#x}"),
        }
    }
}
