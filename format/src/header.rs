//! The file header.
//!
//! ```text
//! offset size field
//!      0    8 id of __trace_begin, 2^64-1
//!      8    8 magic, 0xf2b177cb0aa429b4
//!     16    8 version
//! ```
//!
//! Nothing in it states the byte order, but the magic reads byte-swapped in the wrong one.

use crate::cursor::Cursor;
use crate::error::{Error, ErrorKind, Result};
use crate::{ByteOrder, EventId};

/// The second word of every file.
pub const MAGIC: u64 = 0xf2b1_77cb_0aa4_29b4;

/// The size of the file header, in bytes.
pub const HEADER_BYTES: usize = 24;

/// The version that [`TraceWriter`](crate::TraceWriter) writes, as QEMU has since 2.8.
pub const VERSION: u64 = 4;

/// What the header of a file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The format version: 4.
    pub version: u64,
    /// The byte order of everything in the file.
    pub byte_order: ByteOrder,
}

impl Header {
    /// Reads the header from the first bytes of a file.
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
            Some(version @ VERSION) => Ok(Self { version, byte_order }),
            Some(version) => fail(ErrorKind::UnsupportedVersion(version)),
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
