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
//! Nothing is aligned. A `dropped` record is an event record with the id 2^64-2 and one word of payload, the count. What is
//! found in files of earlier versions (`earlier.rs`) is handed out as the same records.

use crate::cursor::Cursor;
use crate::error::ErrorKind;
use crate::events::ArgType;
use crate::header::{Header, Version};
use crate::{ByteOrder, EventId, Value, earlier};

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
/// The length of a `dropped` record.
pub(crate) const DROPPED_BYTES: u32 = RECORD_HEADER_BYTES + 8;

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
    /// The event, to be looked up in the file's mappings, before version 4 among the declarations; never
    /// [`EventId::DROPPED`].
    pub id: EventId,
    /// The time of the event, in nanoseconds of the recorder's `CLOCK_MONOTONIC`.
    pub timestamp_ns: u64,
    /// The process id of the recorder; 0 in versions 0 and 2, which do not have it.
    pub pid: u32,
    /// The arguments.
    pub payload: Payload<'a>,
}

/// A record that stands for lost ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DroppedRecord {
    /// The offset of the record's first byte in the file.
    pub offset: u64,
    /// When the loss was noticed, in nanoseconds: later than the loss itself. 0 in version 0, which does not have it.
    pub timestamp_ns: u64,
    /// The process id of the recorder; 0 in versions 0 and 2, which do not have it.
    pub pid: u32,
    /// How many records were lost since the last `dropped` record, as it stands in the file. In version 0 only the sum of
    /// a file's counts modulo 2^32 means something: see [`Loss`](crate::Loss). [`UNKNOWN`](Self::UNKNOWN) stands for a number
    /// that nobody knows.
    pub count: u64,
}

impl DroppedRecord {
    /// The count of a gap of unknown size, 2^64-1: so `simpletrace-rs repair` marks a damaged stretch, with a count of 0 where
    /// it ends. It is no number and must not be added to others.
    pub const UNKNOWN: u64 = u64::MAX;

    /// Returns how many records are missing, `None` if that is unknown. Not for version 0, whose counts mean nothing one by one.
    #[must_use]
    pub const fn known_count(&self) -> Option<u64> {
        match self.count {
            Self::UNKNOWN => None,
            count => Some(count),
        }
    }
}

/// The argument bytes of an event record.
///
/// Scalars take eight bytes, strings a 32-bit length and that many bytes, nothing says which is which: reading needs the
/// declaration. In version 0 there are always six words, zeros where there is no argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payload<'a> {
    bytes: &'a [u8],
    encoding: Encoding,
}

/// How arguments are written: all that has to be known of their file, in one byte, as it is copied with every record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Little,
    /// As version 0 has it: words only.
    LittleWords,
    Big,
    BigWords,
}

impl Encoding {
    const fn of(header: Header) -> Self {
        match (header.byte_order, header.version) {
            (ByteOrder::Little, Version::V0) => Self::LittleWords,
            (ByteOrder::Little, _) => Self::Little,
            (ByteOrder::Big, Version::V0) => Self::BigWords,
            (ByteOrder::Big, _) => Self::Big,
        }
    }

    #[inline]
    const fn order(self) -> ByteOrder {
        match self {
            Self::Little | Self::LittleWords => ByteOrder::Little,
            Self::Big | Self::BigWords => ByteOrder::Big,
        }
    }

    #[inline]
    const fn is_words(self) -> bool {
        matches!(self, Self::LittleWords | Self::BigWords)
    }
}

impl<'a> Payload<'a> {
    /// Takes `bytes` as the payload of a record in a version 4 file of the given byte order.
    #[inline]
    #[must_use]
    pub const fn new(bytes: &'a [u8], order: ByteOrder) -> Self {
        Self::of(bytes, Header { version: Version::V4, byte_order: order })
    }

    /// Takes `bytes` as the payload of a record in a file with the given header.
    #[inline]
    #[must_use]
    pub const fn of(bytes: &'a [u8], header: Header) -> Self {
        Self { bytes, encoding: Encoding::of(header) }
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
        Args { cursor: Cursor::new(self.bytes, self.encoding.order()), is_words: self.encoding.is_words() }
    }
}

/// Reads a [`Payload`] argument by argument.
#[derive(Debug, Clone, Copy)]
pub struct Args<'a> {
    cursor: Cursor<'a>,
    /// Whether there are words only, as version 0 has them.
    is_words: bool,
}

impl<'a> Args<'a> {
    /// Reads the next argument as `ty`; `None`, and nothing taken, if the payload has too few bytes left for it.
    ///
    /// In version 0 a string is a word as well, its address, and negative numbers are read as such even if a 32-bit host cut
    /// them ([`Value::from_word_of_version_0`]).
    #[inline]
    pub fn next(&mut self, ty: ArgType) -> Option<Value<'a>> {
        match ty {
            ArgType::String if self.is_words => self.word().map(Value::Pointer),
            ArgType::String => self.string().map(Value::String),
            ArgType::Signed(_) if self.is_words => self.word().map(|word| Value::from_word_of_version_0(word, ty)),
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

    /// Passes over as many words; `None`, and nothing taken, if there are not so many left.
    #[inline]
    pub fn skip_words(&mut self, count: usize) -> Option<()> {
        self.cursor.take(count.checked_mul(8)?).map(|_| ())
    }

    /// Returns the bytes not read yet.
    #[inline]
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.cursor.rest()
    }

    /// Returns the bytes not read yet that may be an argument, to be asked when all that are declared have been read: the
    /// [`rest`](Self::rest), in version 0 without the zero words at its end, which fill up every record there.
    #[must_use]
    pub fn left_over(&self) -> &'a [u8] {
        let rest = self.rest();
        if !self.is_words {
            return rest;
        }
        let filling =
            rest.rchunks(8).take_while(|word| word.iter().all(|&byte| byte == 0)).map(<[u8]>::len).sum::<usize>();
        &rest[..rest.len() - filling]
    }
}

/// What is to be known of a file to find its records.
#[derive(Debug, Clone, Copy)]
pub(crate) struct File {
    pub(crate) header: Header,
    /// Payloads of the events that are found at once have fewer bytes: none in versions before 4. So no time is spent on the
    /// version of the file where the length is looked at anyway.
    payload_limit: u32,
}

impl File {
    pub(crate) const fn new(header: Header) -> Self {
        let payload_limit = match header.version {
            Version::V4 => MAX_RECORD_BYTES - RECORD_HEADER_BYTES + 1,
            Version::V0 | Version::V2 | Version::V3 => 0,
        };
        Self { header, payload_limit }
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

/// A whole record at the front of some bytes, found but not yet borrowed from them.
///
/// Readers that refill a buffer need the two steps: a borrow of the buffer cannot leave the loop that refills it. An event of a
/// version before 4 is a kind of its own, so that nothing about those of version 4 has to be remembered.
#[derive(Clone, Copy)]
pub(crate) enum Found {
    Event { id: EventId, timestamp_ns: u64, pid: u32, length: u32 },
    Earlier { id: EventId, timestamp_ns: u64, pid: u32, size: u32 },
    Dropped { timestamp_ns: u64, pid: u32, count: u64, size: u32 },
    Mapping { id: EventId, name_length: u32 },
}

/// The type word, which an event record's length does not count.
const TYPE_BYTES: usize = 8;
/// Where an event record's payload begins.
const PAYLOAD_AT: usize = TYPE_BYTES + RECORD_HEADER_BYTES as usize;
/// Where a mapping record's name begins.
const NAME_AT: usize = 20;

impl Found {
    /// Looks for a whole record at the front of `bytes`.
    #[inline]
    pub(crate) fn at_front_of(bytes: &[u8], file: File) -> Result<Self, NoRecord> {
        match Self::event_at_front_of(bytes, file) {
            Some(event) => Ok(event),
            None => Self::any_at_front_of(bytes, file.header),
        }
    }

    /// Looks there for nearly all records, and all that matter for speed: an event of version 4 that is whole and in order.
    // Always: in more than one loop the compiler would call it for every record.
    #[inline(always)]
    pub(crate) fn event_at_front_of(bytes: &[u8], file: File) -> Option<Self> {
        let order = file.header.byte_order;
        let fields = bytes.first_chunk::<PAYLOAD_AT>()?;
        let event = Self::event(fields, order);
        match event {
            Self::Event { length, .. }
                if order.u64(chunk(fields, 0)) == TYPE_EVENT
                    && length.wrapping_sub(RECORD_HEADER_BYTES) < file.payload_limit
                    && bytes.len() >= TYPE_BYTES + length as usize =>
            {
                Some(event)
            }
            _ => None,
        }
    }

    /// Returns the size of the record, in bytes.
    #[inline]
    pub(crate) const fn size(self) -> usize {
        match self {
            Self::Event { length, .. } => TYPE_BYTES + length as usize,
            Self::Earlier { size, .. } | Self::Dropped { size, .. } => size as usize,
            Self::Mapping { name_length, .. } => NAME_AT + name_length as usize,
        }
    }

    /// Borrows the record from the same bytes, which stand at `offset` in the file.
    // Always, as above.
    #[inline(always)]
    pub(crate) fn record(self, bytes: &[u8], offset: u64, header: Header) -> Record<'_> {
        match self {
            Self::Event { id, timestamp_ns, pid, .. } => {
                let payload = Payload::new(bytes.get(PAYLOAD_AT..self.size()).unwrap_or_default(), header.byte_order);
                Record::Event(EventRecord { offset, id, timestamp_ns, pid, payload })
            }
            Self::Earlier { id, timestamp_ns, pid, .. } => {
                let payload_at = earlier::payload_at(header.version);
                let payload = Payload::of(bytes.get(payload_at..self.size()).unwrap_or_default(), header);
                Record::Event(EventRecord { offset, id, timestamp_ns, pid, payload })
            }
            Self::Dropped { timestamp_ns, pid, count, .. } => {
                Record::Dropped(DroppedRecord { offset, timestamp_ns, pid, count })
            }
            Self::Mapping { id, .. } => {
                // UTF-8, as was seen to when it was found.
                let name = bytes.get(NAME_AT..self.size()).unwrap_or_default();
                Record::Mapping(MappingRecord { offset, id, name: str::from_utf8(name).unwrap_or_default() })
            }
        }
    }

    #[inline]
    fn event(fields: &[u8; PAYLOAD_AT], order: ByteOrder) -> Self {
        let id = EventId(order.u64(chunk(fields, 8)));
        let timestamp_ns = order.u64(chunk(fields, 16));
        let (length, pid) = (order.u32(chunk(fields, 24)), order.u32(chunk(fields, 28)));
        if id < EventId::DROPPED {
            Self::Event { id, timestamp_ns, pid, length }
        } else {
            Self::Dropped { timestamp_ns, pid, count: 0, size: 0 }
        }
    }

    /// Looks for any record there, field by field, since the bytes may end after any of them.
    #[cold]
    pub(crate) fn any_at_front_of(bytes: &[u8], header: Header) -> Result<Self, NoRecord> {
        if header.version != Version::V4 {
            return earlier::at_front_of(bytes, header);
        }
        let mut cursor = Cursor::new(bytes, header.byte_order);
        match cursor.u64().ok_or(NoRecord::Incomplete)? {
            TYPE_EVENT => Self::event_in_pieces(&mut cursor),
            TYPE_MAPPING => Self::mapping(&mut cursor),
            word => Err(unknown_type(bytes, word)),
        }
    }

    fn event_in_pieces(cursor: &mut Cursor<'_>) -> Result<Self, NoRecord> {
        let id = EventId(cursor.u64().ok_or(NoRecord::Incomplete)?);
        let timestamp_ns = cursor.u64().ok_or(NoRecord::Incomplete)?;
        let length = cursor.u32().ok_or(NoRecord::Incomplete)?;
        // Said before the rest is looked at: a wrong length is damage even where the file ends soon after it.
        check_length(length)?;
        let pid = cursor.u32().ok_or(NoRecord::Incomplete)?;
        match id {
            EventId::TRACE_BEGIN => Err(ErrorKind::MisplacedTraceBegin.into()),
            EventId::DROPPED if length != DROPPED_BYTES => Err(ErrorKind::DroppedLength(length).into()),
            EventId::DROPPED => {
                let count = cursor.u64().ok_or(NoRecord::Incomplete)?;
                Ok(Self::Dropped { timestamp_ns, pid, count, size: PAYLOAD_AT as u32 + 8 })
            }
            _ => {
                cursor.take((length - RECORD_HEADER_BYTES) as usize).ok_or(NoRecord::Incomplete)?;
                Ok(Self::Event { id, timestamp_ns, pid, length })
            }
        }
    }

    fn mapping(cursor: &mut Cursor<'_>) -> Result<Self, NoRecord> {
        let id = EventId(cursor.u64().ok_or(NoRecord::Incomplete)?);
        let name_length = cursor.u32().ok_or(NoRecord::Incomplete)?;
        match name_length {
            0 => return Err(ErrorKind::EmptyName.into()),
            1..=MAX_NAME_BYTES => {}
            _ => return Err(ErrorKind::NameTooLong(name_length).into()),
        }
        let name = cursor.take(name_length as usize).ok_or(NoRecord::Incomplete)?;
        str::from_utf8(name).map_err(|_| ErrorKind::NameNotUtf8)?;
        Ok(Self::Mapping { id, name_length })
    }
}

/// Tells whether an event record may be so long.
pub(crate) fn check_length(length: u32) -> Result<(), NoRecord> {
    match length {
        0..RECORD_HEADER_BYTES => Err(ErrorKind::RecordTooShort(length).into()),
        RECORD_HEADER_BYTES..=MAX_RECORD_BYTES => Ok(()),
        _ => Err(ErrorKind::RecordTooLong(length).into()),
    }
}

/// The `N` bytes at `at`, which are within the fields before the payload.
#[inline]
fn chunk<const N: usize>(fields: &[u8; PAYLOAD_AT], at: usize) -> &[u8; N] {
    fields[at..].first_chunk().expect("a field of the record header")
}

/// A type word that is neither: the header of another file, or rubbish.
#[cold]
fn unknown_type(bytes: &[u8], word: u64) -> NoRecord {
    let kind = ErrorKind::UnknownRecordType(word);
    if word == EventId::TRACE_BEGIN.0 { second_header_or(kind, bytes) } else { kind.into() }
}

/// What begins with the first word of a file header: one, or what `kind` says.
#[cold]
pub(crate) fn second_header_or(kind: ErrorKind, bytes: &[u8]) -> NoRecord {
    match Header::sniff(bytes) {
        Some(_) => ErrorKind::SecondHeader.into(),
        None if bytes.len() < 16 => NoRecord::Incomplete,
        None => kind.into(),
    }
}
