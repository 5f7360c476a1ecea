//! The records of versions 0, 2 and 3: events without a type word, and no mappings.
//!
//! ```text
//! version 0, always 64 bytes            versions 2 and 3
//! offset size field                     offset size field
//!      0    8 event id                       0    8 event id
//!      8    8 timestamp, ns                  8    8 timestamp, ns
//!     16  6*8 arguments, then zeros         16    4 length: 24 + payload
//!                                           20    4 in version 3 the pid, in 2 reserved
//!                                           24    . payload: the arguments
//! ```
//!
//! A `dropped` record has the id 2^64-2 and the count as its first argument; in version 0 its timestamp is 0. The file header
//! of version 0 is such a record, too: the magic stands where the timestamp does, the version is the first argument.

use crate::EventId;
use crate::cursor::Cursor;
use crate::error::ErrorKind;
use crate::header::{Header, Version};
use crate::record::{DROPPED_BYTES, Found, NoRecord, RECORD_HEADER_BYTES, check_length, second_header_or};

/// The size of every version 0 record, that which is the file header included.
const WORDS_RECORD_BYTES: usize = Version::V0.header_bytes();
/// Where the arguments of a version 0 record begin.
const WORDS_AT: usize = 16;

/// Where the arguments begin, in a version before 4.
pub(crate) const fn payload_at(version: Version) -> usize {
    match version {
        Version::V0 => WORDS_AT,
        _ => RECORD_HEADER_BYTES as usize,
    }
}

/// Looks for a whole record at the front of `bytes`, in a file of a version before 4.
pub(crate) fn at_front_of(bytes: &[u8], header: Header) -> Result<Found, NoRecord> {
    let mut cursor = Cursor::new(bytes, header.byte_order);
    let id = EventId(cursor.u64().ok_or(NoRecord::Incomplete)?);
    if id == EventId::TRACE_BEGIN {
        return Err(second_header_or(ErrorKind::MisplacedTraceBegin, bytes));
    }
    let timestamp_ns = cursor.u64().ok_or(NoRecord::Incomplete)?;
    if header.version == Version::V0 {
        words(id, timestamp_ns, &mut cursor)
    } else {
        counted(id, timestamp_ns, &mut cursor, header.version.has_pid())
    }
}

/// The rest of a version 0 record.
fn words(id: EventId, timestamp_ns: u64, cursor: &mut Cursor<'_>) -> Result<Found, NoRecord> {
    let mut ahead = *cursor;
    cursor.take(WORDS_RECORD_BYTES - WORDS_AT).ok_or(NoRecord::Incomplete)?;
    let size = WORDS_RECORD_BYTES as u32;
    if id == EventId::DROPPED {
        let count = ahead.u64().ok_or(NoRecord::Incomplete)?;
        return Ok(Found::Dropped { timestamp_ns, pid: 0, count, size });
    }
    Ok(Found::Earlier { id, timestamp_ns, pid: 0, size })
}

/// The rest of a record of version 2 or 3.
fn counted(id: EventId, timestamp_ns: u64, cursor: &mut Cursor<'_>, has_pid: bool) -> Result<Found, NoRecord> {
    let length = cursor.u32().ok_or(NoRecord::Incomplete)?;
    // Said before the rest is looked at: a wrong length is damage even where the file ends soon after it.
    check_length(length)?;
    if id == EventId::DROPPED && length != DROPPED_BYTES {
        return Err(ErrorKind::DroppedLength(length).into());
    }
    let pid_or_reserved = cursor.u32().ok_or(NoRecord::Incomplete)?;
    let pid = if has_pid { pid_or_reserved } else { 0 };
    if id == EventId::DROPPED {
        let count = cursor.u64().ok_or(NoRecord::Incomplete)?;
        return Ok(Found::Dropped { timestamp_ns, pid, count, size: length });
    }
    cursor.take((length - RECORD_HEADER_BYTES) as usize).ok_or(NoRecord::Incomplete)?;
    Ok(Found::Earlier { id, timestamp_ns, pid, size: length })
}
