//! The file header.
//!
//! ```text
//! offset size field
//!      0    8 id of __trace_begin, 2^64-1
//!      8    8 magic, 0xf2b177cb0aa429b4
//!     16    8 version
//!     24   40 zeros, in version 0 only
//! ```
//!
//! Nothing in it states the byte order, but the magic reads byte-swapped in the wrong one.

use std::fmt;

use crate::cursor::Cursor;
use crate::error::{Error, ErrorKind, Result};
use crate::{ByteOrder, EventId};

/// The second word of every file.
pub const MAGIC: u64 = 0xf2b1_77cb_0aa4_29b4;

/// The size of the file header in bytes, and as much as tells every version; version 0 has a longer one
/// ([`Version::header_bytes`]).
pub const HEADER_BYTES: usize = 24;

/// The version that [`TraceWriter`](crate::TraceWriter) writes, as QEMU has since 2.8.
pub const VERSION: u64 = 4;

/// A version of the format. There never was a version 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// 0, QEMU 0.14 to 1.1: records of 64 bytes with six words of arguments, and so no strings.
    V0,
    /// 2, QEMU 1.2 to 2.0: strings, and records as long as they need to be.
    V2,
    /// 3, QEMU 2.1 to 2.7: as 2, with the process id.
    V3,
    /// 4, QEMU since 2.8: mapping records, and so names.
    V4,
}

impl Version {
    /// All versions, the oldest first.
    pub const ALL: [Self; 4] = [Self::V0, Self::V2, Self::V3, Self::V4];

    /// Returns the version of the number that a header has, `None` if there is none.
    #[must_use]
    pub const fn from_number(number: u64) -> Option<Self> {
        match number {
            0 => Some(Self::V0),
            2 => Some(Self::V2),
            3 => Some(Self::V3),
            VERSION => Some(Self::V4),
            _ => None,
        }
    }

    /// Returns the number that the header has.
    #[must_use]
    pub const fn number(self) -> u64 {
        match self {
            Self::V0 => 0,
            Self::V2 => 2,
            Self::V3 => 3,
            Self::V4 => VERSION,
        }
    }

    /// Returns the releases of QEMU that write it, as words: `"2.1 to 2.7"`.
    #[must_use]
    pub const fn releases(self) -> &'static str {
        match self {
            Self::V0 => "0.14 to 1.1",
            Self::V2 => "1.2 to 2.0",
            Self::V3 => "2.1 to 2.7",
            Self::V4 => "2.8 and later",
        }
    }

    /// Returns the size of the file header, in bytes: where the first record stands.
    #[must_use]
    pub const fn header_bytes(self) -> usize {
        match self {
            Self::V0 => 64,
            Self::V2 | Self::V3 | Self::V4 => HEADER_BYTES,
        }
    }

    /// Tells whether records have the process id; where they do not, it is given as 0.
    #[must_use]
    pub const fn has_pid(self) -> bool {
        matches!(self, Self::V3 | Self::V4)
    }

    /// Tells whether a file names its events. In one that does not, an id is a place among the declarations
    /// ([`Numbering`](crate::events::Numbering)).
    #[must_use]
    pub const fn has_names(self) -> bool {
        matches!(self, Self::V4)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number().fmt(f)
    }
}

/// What the header of a file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The format version.
    pub version: Version,
    /// The byte order of everything in the file.
    pub byte_order: ByteOrder,
}

impl Header {
    /// Reads the header from the first bytes of a file. It looks at 24 of them, whatever the version.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::HeaderCut`], [`ErrorKind::NotATrace`] or [`ErrorKind::UnsupportedVersion`].
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let fail = |kind| Err(Error::new(0, kind));
        let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else {
            return match Self::sniff(bytes) {
                None if bytes.len() >= 16 => fail(not_a_trace(bytes)),
                _ => fail(ErrorKind::HeaderCut(bytes.len())),
            };
        };
        let Some(byte_order) = Self::sniff(header) else {
            return fail(not_a_trace(header));
        };
        match Cursor::new(&header[16..], byte_order).u64() {
            Some(number) => match Version::from_number(number) {
                Some(version) => Ok(Self { version, byte_order }),
                None => fail(ErrorKind::UnsupportedVersion(number)),
            },
            None => fail(ErrorKind::HeaderCut(bytes.len())),
        }
    }

    /// Returns the byte order of a file that starts with `bytes`, of any version, or `None` if it is no trace file (16 bytes
    /// are looked at).
    #[must_use]
    pub fn sniff(bytes: &[u8]) -> Option<ByteOrder> {
        [ByteOrder::Little, ByteOrder::Big].into_iter().find(|&order| {
            let mut cursor = Cursor::new(bytes, order);
            cursor.u64() == Some(EventId::TRACE_BEGIN.0) && cursor.u64() == Some(MAGIC)
        })
    }
}

fn not_a_trace(bytes: &[u8]) -> ErrorKind {
    let mut cursor = Cursor::new(bytes, ByteOrder::Little);
    ErrorKind::NotATrace(cursor.u64().unwrap_or_default(), cursor.u64().unwrap_or_default())
}
