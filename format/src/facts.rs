//! Side facts: what a recorder says of the file as a whole.
//!
//! They are mapping records right behind the header, with an id that no event has ([`EventId::FACTS`]) and `KEY=VALUE` where the
//! name is: readers that do not know them put a name into their table that is never asked for.

use std::fmt;

use crate::{EventId, MAX_NAME_BYTES, MappingRecord};

/// The facts of a file: what its `KEY=VALUE` texts say, those with an unknown key included.
///
/// A recorder [`set`](Self::set)s what it knows and writes it with [`TraceWriter::facts`](crate::TraceWriter::facts); a reader
/// [`add`](Self::add)s the text of each mapping record of [`EventId::FACTS`].
///
/// # Resources
///
/// At most [`Facts::MAX`] facts of [`MAX_NAME_BYTES`] each, 64 KiB.
///
/// # Examples
///
/// ```
/// use simpletrace_format::{ByteOrder, EventId, Facts, Record, SliceReader, TraceWriter};
///
/// let mut facts = Facts::default();
/// facts.set_anchor(5_000_000_000, 1_700_000_000_000_000_000);
/// facts.set(Facts::HOST, "example");
/// let mut file = TraceWriter::new(Vec::new(), ByteOrder::Little)?;
/// file.facts(&facts)?;
/// let file = file.into_inner();
///
/// let mut read = Facts::default();
/// for record in SliceReader::new(&file)? {
///     if let Record::Mapping(mapping) = record? && mapping.id == EventId::FACTS {
///         read.add(mapping.name)?;
///     }
/// }
/// assert_eq!(read, facts);
/// assert_eq!(read.wall_offset_ns(), Some(1_699_999_995_000_000_000));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// `KEY=VALUE`, each key once, and where the value begins.
    texts: Vec<(Box<str>, usize)>,
    anchor: Option<Anchor>,
    pid: Option<u32>,
    part: Option<u64>,
}

/// One moment on two clocks of the recorder's host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anchor {
    /// `CLOCK_MONOTONIC`, the clock of the timestamps, in ns; below 2^63.
    pub monotonic_ns: u64,
    /// `CLOCK_REALTIME`, in ns since 1970 (UTC); below 2^63.
    pub realtime_ns: u64,
}

/// Why a text is no fact of a file. The trace itself is as good as without it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FactError {
    /// It is longer than [`MAX_NAME_BYTES`], or has a NUL in it: no record holds such a text.
    Text,
    /// There is no `=` in it.
    NoValue,
    /// What stands before the `=` is empty, or something other than lower-case letters, digits and `_`.
    Key,
    /// The value of this key is not what it has to be.
    Value(&'static str),
    /// There is a fact with this key already, which counts.
    Duplicate(Box<str>),
    /// There are [`Facts::MAX`] already.
    TooMany,
}

impl Facts {
    /// The most facts that are kept.
    pub const MAX: usize = 64;

    /// Key of the [`Anchor`]: two decimal numbers below 2^63 with a comma between them, first the monotonic clock's.
    pub const ANCHOR_NS: &'static str = "anchor_ns";
    /// Key of the id that the kernel gave this boot of the host: files with the same one share their monotonic clock.
    pub const BOOT_ID: &'static str = "boot_id";
    /// Key of what timestamps were made from: `tsc` or `monotonic`. They are in ns of `CLOCK_MONOTONIC` either way.
    pub const CLOCK: &'static str = "clock";
    /// Key of the host's name.
    pub const HOST: &'static str = "host";
    /// Key of the traced program's name.
    pub const PROGRAM: &'static str = "program";
    /// Key of the process that began the file, a decimal number below 2^32.
    pub const PID: &'static str = "pid";
    /// Key of the recorder's name and version.
    pub const RECORDER: &'static str = "recorder";
    /// Key of a number of the recording, hexadecimal, that no other one has on the host: what a killed recorder left says for which file it is.
    pub const RECORDING: &'static str = "recording";
    /// Key of the number of a part of a rotated trace, a decimal number from 1 on.
    pub const PART: &'static str = "part";

    /// Takes in the text of one fact. On an error nothing changes.
    ///
    /// # Errors
    ///
    /// The text is no fact, or none that can be added.
    pub fn add(&mut self, text: &str) -> Result<(), FactError> {
        if text.len() > MAX_NAME_BYTES as usize || text.contains('\0') {
            return Err(FactError::Text);
        }
        let (key, value) = text.split_once('=').ok_or(FactError::NoValue)?;
        if !is_key(key) {
            return Err(FactError::Key);
        }
        if self.get(key).is_some() {
            return Err(FactError::Duplicate(key.into()));
        }
        if self.texts.len() == Self::MAX {
            return Err(FactError::TooMany);
        }
        match key {
            Self::ANCHOR_NS => self.anchor = Some(Anchor::parse(value).ok_or(FactError::Value(Self::ANCHOR_NS))?),
            Self::PID => {
                let pid = number(value).and_then(|pid| u32::try_from(pid).ok());
                self.pid = Some(pid.ok_or(FactError::Value(Self::PID))?);
            }
            Self::PART => {
                let part = number(value).filter(|&part| part > 0);
                self.part = Some(part.ok_or(FactError::Value(Self::PART))?);
            }
            _ => {}
        }
        self.texts.push((text.into(), key.len() + 1));
        Ok(())
    }

    /// Says something of a file that is to be written. The value ends before its first NUL, and where a record has no more room.
    ///
    /// # Panics
    ///
    /// If [`add`](Self::add) would refuse it: what a recorder sets is known when it is built, but for its text.
    pub fn set(&mut self, key: &str, value: &str) {
        let value = value.split('\0').next().unwrap_or_default();
        let room = (MAX_NAME_BYTES as usize).saturating_sub(key.len() + 1);
        let end = (0..=room.min(value.len())).rev().find(|&end| value.is_char_boundary(end)).unwrap_or(0);
        if let Err(error) = self.add(&format!("{key}={}", &value[..end])) {
            panic!("{key}: {error}");
        }
    }

    /// Says at what time of day the monotonic clock had which time: both read at one moment. Times from 2^63 ns on are cut to that.
    ///
    /// # Panics
    ///
    /// If there is an anchor already.
    pub fn set_anchor(&mut self, monotonic_ns: u64, realtime_ns: u64) {
        let [monotonic_ns, realtime_ns] = [monotonic_ns, realtime_ns].map(|ns| ns.min(Anchor::MAX_NS));
        self.set(Self::ANCHOR_NS, &format!("{monotonic_ns},{realtime_ns}"));
    }

    /// Forgets a fact; tells whether there was one.
    pub fn remove(&mut self, key: &str) -> bool {
        match key {
            Self::ANCHOR_NS => self.anchor = None,
            Self::PID => self.pid = None,
            Self::PART => self.part = None,
            _ => {}
        }
        let before = self.texts.len();
        self.texts.retain(|(text, value_at)| text[..value_at - 1] != *key);
        self.texts.len() < before
    }

    /// Returns the value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter().find_map(|(found, value)| (found == key).then_some(value))
    }

    /// Returns keys and values, in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.iter().map(|(text, value_at)| (&text[..value_at - 1], &text[*value_at..]))
    }

    /// Returns the texts, `KEY=VALUE`, in the order in which they came.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(|(text, _)| &**text)
    }

    /// Tells whether there is no fact.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Returns the moment that is known on both clocks.
    #[must_use]
    pub const fn anchor(&self) -> Option<Anchor> {
        self.anchor
    }

    /// Returns what is to be added to a timestamp to get the time of day, in ns since 1970 (UTC).
    #[must_use]
    pub fn wall_offset_ns(&self) -> Option<i64> {
        // Both are below 2^63.
        self.anchor.map(|anchor| anchor.realtime_ns.cast_signed() - anchor.monotonic_ns.cast_signed())
    }

    /// Returns the process that began the file.
    #[must_use]
    pub const fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Returns which part of a rotated trace the file is, from 1 on.
    #[must_use]
    pub const fn part(&self) -> Option<u64> {
        self.part
    }
}

impl MappingRecord<'_> {
    /// Tells whether this is no mapping but a fact of the file, with its text as the name.
    #[inline]
    #[must_use]
    pub const fn is_fact(&self) -> bool {
        self.id.0 == EventId::FACTS.0
    }
}

impl Anchor {
    const MAX_NS: u64 = i64::MAX as u64;

    fn parse(value: &str) -> Option<Self> {
        let (monotonic, realtime) = value.split_once(',')?;
        let ns = |text| number(text).filter(|&ns| ns <= Self::MAX_NS);
        Some(Self { monotonic_ns: ns(monotonic)?, realtime_ns: ns(realtime)? })
    }
}

fn is_key(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

/// Reads decimal digits and nothing else: no sign, no blank.
fn number(text: &str) -> Option<u64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

impl fmt::Display for FactError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => write!(f, "it is longer than {MAX_NAME_BYTES} bytes, or has a zero byte in it"),
            Self::NoValue => f.write_str("there is no '=' in it"),
            Self::Key => f.write_str("its key is not of lower-case letters, digits and '_'"),
            Self::Value(Facts::ANCHOR_NS) => {
                f.write_str("anchor_ns is not two numbers below 2^63 with a comma between")
            }
            Self::Value(Facts::PID) => f.write_str("pid is not a number below 2^32"),
            Self::Value(Facts::PART) => f.write_str("part is not a number from 1 on"),
            Self::Value(key) => write!(f, "{key} has a wrong value"),
            Self::Duplicate(key) => write!(f, "{key} has a value already"),
            Self::TooMany => write!(f, "there are {} already", Facts::MAX),
        }
    }
}

impl std::error::Error for FactError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(texts: &[&str]) -> Facts {
        let mut facts = Facts::default();
        texts.iter().for_each(|text| facts.add(text).unwrap());
        facts
    }

    #[test]
    fn what_is_known_is_typed_and_everything_is_kept() {
        let facts = facts(&["anchor_ns=7,1000", "pid=4294967295", "part=1", "later=a=b", "host=", "x_9=\x1b[2J\n"]);
        assert_eq!(facts.anchor(), Some(Anchor { monotonic_ns: 7, realtime_ns: 1000 }));
        assert_eq!((facts.wall_offset_ns(), facts.pid(), facts.part()), (Some(993), Some(u32::MAX), Some(1)));
        assert_eq!((facts.get("later"), facts.get("host"), facts.get("hos")), (Some("a=b"), Some(""), None));
        assert_eq!(facts.iter().last(), Some(("x_9", "\x1b[2J\n")));
        assert_eq!(facts.texts().nth(2), Some("part=1"));
        assert!(!facts.is_empty());
    }

    #[test]
    fn an_offset_may_be_negative_and_as_large_as_can_be() {
        let offset = |text| facts(&[text]).wall_offset_ns();
        assert_eq!(offset("anchor_ns=9223372036854775807,0"), Some(-i64::MAX));
        assert_eq!(offset("anchor_ns=0,9223372036854775807"), Some(i64::MAX));
        assert_eq!(Facts::default().wall_offset_ns(), None);
    }

    #[test]
    fn what_is_no_fact_is_refused_and_changes_nothing() {
        let mut known = facts(&["pid=1"]);
        let before = known.clone();
        for (text, error) in [
            ("host=\0", FactError::Text),
            (&format!("a={}", "x".repeat(1023)), FactError::Text),
            ("", FactError::NoValue),
            ("host", FactError::NoValue),
            ("=x", FactError::Key),
            ("Host=x", FactError::Key),
            ("a b=x", FactError::Key),
            ("é=x", FactError::Key),
            ("pid=2", FactError::Duplicate("pid".into())),
            ("part=0", FactError::Value("part")),
            ("part=", FactError::Value("part")),
            ("part=-1", FactError::Value("part")),
            ("part=+1", FactError::Value("part")),
            ("part=18446744073709551616", FactError::Value("part")),
            ("anchor_ns=1", FactError::Value("anchor_ns")),
            ("anchor_ns=1,", FactError::Value("anchor_ns")),
            ("anchor_ns=-1,5", FactError::Value("anchor_ns")),
            ("anchor_ns=1,2,3", FactError::Value("anchor_ns")),
            ("anchor_ns=1, 2", FactError::Value("anchor_ns")),
            ("anchor_ns=1,9223372036854775808", FactError::Value("anchor_ns")),
        ] {
            assert_eq!(known.add(text), Err(error), "{text}");
            assert_eq!(known, before);
        }
        let mut empty = Facts::default();
        for pid in ["pid=4294967296", "pid=0x1", "pid=", "pid=-5"] {
            assert_eq!(empty.add(pid), Err(FactError::Value("pid")), "{pid}");
        }
        assert!(empty.is_empty() && empty.pid().is_none());
    }

    #[test]
    fn there_are_no_more_than_64() {
        let mut facts = Facts::default();
        for key in 0..Facts::MAX {
            facts.add(&format!("{key}=")).unwrap();
        }
        assert_eq!(facts.add("one_more="), Err(FactError::TooMany));
        assert_eq!(facts.iter().count(), 64);
    }

    #[test]
    fn a_value_that_is_set_ends_before_a_nul_and_where_a_name_has_no_more_room() {
        let mut facts = Facts::default();
        facts.set(Facts::HOST, "a\0b");
        facts.set(Facts::PROGRAM, &"é".repeat(1000));
        facts.set_anchor(u64::MAX, 5);
        assert_eq!(facts.get("host"), Some("a"));
        // `program=` has 8 bytes, and é two: 508 of them.
        assert_eq!(facts.get("program"), Some(&*"é".repeat(508)));
        assert_eq!(facts.get("anchor_ns"), Some("9223372036854775807,5"));
    }

    #[test]
    fn what_is_removed_is_gone() {
        let mut facts = facts(&["anchor_ns=7,1000", "pid=3", "part=1", "host=h"]);
        for key in ["anchor_ns", "pid", "part"] {
            assert!(facts.remove(key) && !facts.remove(key));
        }
        assert_eq!((facts.anchor(), facts.pid(), facts.part()), (None, None, None));
        assert_eq!(facts.texts().collect::<Vec<_>>(), ["host=h"]);
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let said = |text: &str| facts(&["host=h"]).add(text).unwrap_err().to_string();
        assert_eq!(said("\0"), "it is longer than 1024 bytes, or has a zero byte in it");
        assert_eq!(said("x"), "there is no '=' in it");
        assert_eq!(said("=x"), "its key is not of lower-case letters, digits and '_'");
        assert_eq!(said("host=i"), "host has a value already");
        assert_eq!(said("part=0"), "part is not a number from 1 on");
        assert_eq!(said("pid=x"), "pid is not a number below 2^32");
        assert_eq!(said("anchor_ns=x"), "anchor_ns is not two numbers below 2^63 with a comma between");
        assert_eq!(FactError::TooMany.to_string(), "there are 64 already");
    }
}
