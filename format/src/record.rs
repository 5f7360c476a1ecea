//! The records of version 4.
//!
//! ```text
//! mapping record                        event record
//! offset size field                     offset size field
//!      0    8 type, 0                        0    8 type, 1
//!      8    8 event id                       8    8 event id
//!     16    4 n, length of the name         16    8 timestamp, ns
//!     20    n name                          24    4 length: 24 + payload, without the type
//!                                           28    4 pid
//!                                           32    . payload: the arguments
//! ```
//!
//! Nothing is aligned. A `dropped` record is an event record with the id 2^64-2 and one word of payload, the count.

use crate::cursor::Cursor;
use crate::error::ErrorKind;
use crate::events::ArgType;
use crate::header::Header;
use crate::{ByteOrder, EventId, Value};

/// What the length of an event record counts beside the payload: id, timestamp, length and pid, in bytes.
pub const RECORD_HEADER_BYTES: u32 = 24;

/// The longest event record that a reader accepts, in bytes: the whole ring of QEMU's recorder (262,144 bytes since version 2),
/// through which every record has to go. Its longest real one is 5,184. A length above this is damage, not data, and must not
/// make anyone wait for, or allocate, gigabytes.
pub const MAX_RECORD_BYTES: u32 = 1 << 18;

/// The longest event name that a reader accepts, in bytes. The longest in QEMU 8.2 has 52.
pub const MAX_NAME_BYTES: u32 = 1024;

/// The type word of a mapping record.
pub(crate) const TYPE_MAPPING: u64 = 0;
/// The type word of an event record.
pub(crate) const TYPE_EVENT: u64 = 1;

/// One record of a file, borrowed from its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record<'a> {
    /// From here on an id means a name.
    Mapping(MappingRecord<'a>),
    /// Something happened in the traced program.
    Event(EventRecord<'a>),
    /// So many records are missing.
    Dropped(DroppedRecord),
}

/// A record that gives an event id its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MappingRecord<'a> {
    /// The offset of the record's first byte in the file.
    pub offset: u64,
    /// The id that records of this event bear.
    pub id: EventId,
    /// The event's name; never empty.
    pub name: &'a str,
}

/// One occurrence of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRecord<'a> {
    /// The offset of the record's first byte in the file.
    pub offset: u64,
    /// The event, to be looked up in the file's mappings; never [`EventId::DROPPED`].
    pub id: EventId,
    /// The time of the event, in nanoseconds of the recorder's `CLOCK_MONOTONIC`.
    pub timestamp_ns: u64,
    /// The process id of the recorder.
    pub pid: u32,
    /// The arguments.
    pub payload: Payload<'a>,
}

/// A record that stands for lost ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DroppedRecord {
    /// The offset of the record's first byte in the file.
    pub offset: u64,
    /// When the loss was noticed, in nanoseconds: later than the loss itself.
    pub timestamp_ns: u64,
    /// The process id of the recorder.
    pub pid: u32,
    /// How many records were lost since the last `dropped` record.
    pub count: u64,
}

/// The argument bytes of an event record.
///
/// Scalars take eight bytes, strings a 32-bit length and that many bytes, nothing says which is which: reading needs the
/// declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payload<'a> {
    bytes: &'a [u8],
    order: ByteOrder,
}

impl<'a> Payload<'a> {
    /// Takes `bytes` as the payload of a record in a file of the given byte order.
    #[must_use]
    pub const fn new(bytes: &'a [u8], order: ByteOrder) -> Self {
        Self { bytes, order }
    }

    /// Returns the bytes as they stand in the file.
    #[inline]
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Starts reading arguments from the front.
    #[inline]
    #[must_use]
    pub const fn args(&self) -> Args<'a> {
        Args { cursor: Cursor::new(self.bytes, self.order) }
    }
}

/// Reads a [`Payload`] argument by argument.
#[derive(Debug, Clone, Copy)]
pub struct Args<'a> {
    cursor: Cursor<'a>,
}

impl<'a> Args<'a> {
    /// Reads the next argument as `ty`; `None`, and nothing taken, if the payload has too few bytes left for it.
    #[inline]
    pub fn next(&mut self, ty: ArgType) -> Option<Value<'a>> {
        match ty {
            ArgType::String => self.string().map(Value::String),
            _ => self.word().map(|word| Value::from_word(word, ty)),
        }
    }

    /// Reads the next eight bytes as one word.
    #[inline]
    pub fn word(&mut self) -> Option<u64> {
        self.cursor.u64()
    }

    /// Reads a counted string.
    #[inline]
    pub fn string(&mut self) -> Option<&'a [u8]> {
        let mut ahead = self.cursor;
        let length = ahead.u32()?;
        let bytes = ahead.take(length as usize)?;
        self.cursor = ahead;
        Some(bytes)
    }

    /// Returns the bytes not read yet.
    #[inline]
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.cursor.rest()
    }
}

/// Why no record stands at the front of some bytes.
pub(crate) enum NoRecord {
    /// It may, but it does not end within them.
    Incomplete,
    /// It cannot, whatever follows.
    Damaged(ErrorKind),
}

impl From<ErrorKind> for NoRecord {
    #[cold]
    fn from(kind: ErrorKind) -> Self {
        Self::Damaged(kind)
    }
}

/// Reads the record at the front of `bytes`, which stand at `offset` in the file; returns it with its size in bytes.
#[inline]
pub(crate) fn parse(bytes: &[u8], offset: u64, order: ByteOrder) -> Result<(Record<'_>, usize), NoRecord> {
    let mut cursor = Cursor::new(bytes, order);
    let record = match cursor.u64().ok_or(NoRecord::Incomplete)? {
        TYPE_EVENT => event(&mut cursor, offset, order)?,
        TYPE_MAPPING => mapping(&mut cursor, offset)?,
        word => return Err(unknown_type(bytes, word)),
    };
    Ok((record, bytes.len() - cursor.rest().len()))
}

#[inline]
fn event<'a>(cursor: &mut Cursor<'a>, offset: u64, order: ByteOrder) -> Result<Record<'a>, NoRecord> {
    const MIN: u32 = RECORD_HEADER_BYTES;

    let id = EventId(cursor.u64().ok_or(NoRecord::Incomplete)?);
    let timestamp_ns = cursor.u64().ok_or(NoRecord::Incomplete)?;
    let length = cursor.u32().ok_or(NoRecord::Incomplete)?;
    // Said before the rest is looked at: a wrong length is damage even where the file ends soon after it.
    match length {
        0..MIN => return Err(ErrorKind::RecordTooShort(length).into()),
        MIN..=MAX_RECORD_BYTES => {}
        _ => return Err(ErrorKind::RecordTooLong(length).into()),
    }
    let pid = cursor.u32().ok_or(NoRecord::Incomplete)?;
    if id >= EventId::DROPPED {
        if id == EventId::TRACE_BEGIN {
            return Err(ErrorKind::MisplacedTraceBegin.into());
        }
        if length != MIN + 8 {
            return Err(ErrorKind::DroppedLength(length).into());
        }
        let count = cursor.u64().ok_or(NoRecord::Incomplete)?;
        return Ok(Record::Dropped(DroppedRecord { offset, timestamp_ns, pid, count }));
    }
    let bytes = cursor.take((length - MIN) as usize).ok_or(NoRecord::Incomplete)?;
    Ok(Record::Event(EventRecord { offset, id, timestamp_ns, pid, payload: Payload::new(bytes, order) }))
}

#[cold]
fn mapping<'a>(cursor: &mut Cursor<'a>, offset: u64) -> Result<Record<'a>, NoRecord> {
    let id = EventId(cursor.u64().ok_or(NoRecord::Incomplete)?);
    let length = cursor.u32().ok_or(NoRecord::Incomplete)?;
    match length {
        0 => return Err(ErrorKind::EmptyName.into()),
        1..=MAX_NAME_BYTES => {}
        _ => return Err(ErrorKind::NameTooLong(length).into()),
    }
    let name = cursor.take(length as usize).ok_or(NoRecord::Incomplete)?;
    let name = std::str::from_utf8(name).map_err(|_| ErrorKind::NameNotUtf8)?;
    Ok(Record::Mapping(MappingRecord { offset, id, name }))
}

/// A type word that is neither: the header of another file, or rubbish.
#[cold]
fn unknown_type(bytes: &[u8], word: u64) -> NoRecord {
    if word != EventId::TRACE_BEGIN.0 {
        return ErrorKind::UnknownRecordType(word).into();
    }
    match Header::sniff(bytes) {
        Some(_) => ErrorKind::SecondHeader.into(),
        None if bytes.len() < 16 => NoRecord::Incomplete,
        None => ErrorKind::UnknownRecordType(word).into(),
    }
}
