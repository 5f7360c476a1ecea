//! Writes trace files that every reader of version 4 takes, QEMU's among them.

use std::fmt;
use std::io::{self, Write};

use crate::header::{MAGIC, VERSION};
use crate::record::{MAX_NAME_BYTES, MAX_RECORD_BYTES, RECORD_HEADER_BYTES, TYPE_EVENT, TYPE_MAPPING};
use crate::{ByteOrder, EventId, Facts, Namespace, Value};

/// Writes a version 4 file, one `write_all` per record: give it a buffered sink.
///
/// # Examples
///
/// See [`SliceReader`](crate::SliceReader).
#[derive(Debug)]
pub struct TraceWriter<W> {
    sink: W,
    order: ByteOrder,
    record: Vec<u8>,
}

/// Why a record was not written. Nothing of it is in the file then, unless the sink failed half-way.
#[derive(Debug)]
#[non_exhaustive]
pub enum WriteError {
    /// The sink failed.
    Io(io::Error),
    /// A mapping's name is empty, or longer than [`MAX_NAME_BYTES`].
    NameLength(usize),
    /// The arguments make a record longer than [`MAX_RECORD_BYTES`].
    RecordLength(usize),
    /// A mapping or an event with an id of the special namespace.
    SpecialId(EventId),
}

impl<W: Write> TraceWriter<W> {
    /// Writes the file header.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    pub fn new(mut sink: W, order: ByteOrder) -> io::Result<Self> {
        let mut record = Vec::new();
        for word in [EventId::TRACE_BEGIN.0, MAGIC, VERSION] {
            order.put_u64(word, &mut record);
        }
        sink.write_all(&record)?;
        Ok(Self { sink, order, record })
    }

    /// Goes on with a file whose header is written.
    pub const fn append(sink: W, order: ByteOrder) -> Self {
        Self { sink, order, record: Vec::new() }
    }

    /// Writes a mapping record: from here on, `id` means `name`.
    ///
    /// # Errors
    ///
    /// [`WriteError::Io`], [`WriteError::NameLength`], [`WriteError::SpecialId`].
    pub fn mapping(&mut self, id: EventId, name: &str) -> Result<(), WriteError> {
        let length = u32::try_from(name.len())
            .ok()
            .filter(|length| (1..=MAX_NAME_BYTES).contains(length))
            .ok_or(WriteError::NameLength(name.len()))?;
        self.start(TYPE_MAPPING, ordinary(id)?);
        self.order.put_u32(length, &mut self.record);
        self.record.extend_from_slice(name.as_bytes());
        Ok(self.sink.write_all(&self.record)?)
    }

    /// Writes the facts of the file, which have their place right behind its header.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    pub fn facts(&mut self, facts: &Facts) -> io::Result<()> {
        facts.texts().try_for_each(|text| {
            self.start(TYPE_MAPPING, EventId::FACTS);
            // Read from a record, or cut to one.
            self.order.put_u32(text.len() as u32, &mut self.record);
            self.record.extend_from_slice(text.as_bytes());
            self.sink.write_all(&self.record)
        })
    }

    /// Writes an event record at `timestamp_ns` with the arguments in declaration order.
    ///
    /// # Errors
    ///
    /// [`WriteError::Io`], [`WriteError::RecordLength`], [`WriteError::SpecialId`].
    pub fn event(&mut self, id: EventId, timestamp_ns: u64, pid: u32, args: &[Value<'_>]) -> Result<(), WriteError> {
        self.start(TYPE_EVENT, ordinary(id)?);
        self.order.put_u64(timestamp_ns, &mut self.record);
        let payload_bytes =
            args.iter().map(|arg| if let Value::String(s) = arg { 4 + s.len() } else { 8 }).sum::<usize>();
        let length = payload_bytes
            .checked_add(RECORD_HEADER_BYTES as usize)
            .and_then(|length| u32::try_from(length).ok())
            .filter(|&length| length <= MAX_RECORD_BYTES)
            .ok_or(WriteError::RecordLength(payload_bytes))?;
        self.order.put_u32(length, &mut self.record);
        self.order.put_u32(pid, &mut self.record);
        for arg in args {
            match *arg {
                // Below MAX_RECORD_BYTES, as just checked.
                Value::String(bytes) => {
                    self.order.put_u32(bytes.len() as u32, &mut self.record);
                    self.record.extend_from_slice(bytes);
                }
                Value::Signed(value) => self.order.put_u64(value.cast_unsigned(), &mut self.record),
                Value::Unsigned(word) | Value::Pointer(word) => self.order.put_u64(word, &mut self.record),
                Value::Bool(value) => self.order.put_u64(value.into(), &mut self.record),
            }
        }
        Ok(self.sink.write_all(&self.record)?)
    }

    /// Writes an event record whose arguments are laid out already, in the byte order of the file. A reserved id is taken, too:
    /// so a record can be copied although nobody knows what it means.
    ///
    /// # Errors
    ///
    /// [`WriteError::Io`], [`WriteError::RecordLength`]; [`WriteError::SpecialId`] for the ids of file header and `dropped`.
    pub fn raw_event(&mut self, id: EventId, timestamp_ns: u64, pid: u32, payload: &[u8]) -> Result<(), WriteError> {
        if id >= EventId::DROPPED {
            return Err(WriteError::SpecialId(id));
        }
        if payload.len() > (MAX_RECORD_BYTES - RECORD_HEADER_BYTES) as usize {
            return Err(WriteError::RecordLength(payload.len()));
        }
        self.start(TYPE_EVENT, id);
        self.order.put_u64(timestamp_ns, &mut self.record);
        // Below MAX_RECORD_BYTES, as just checked.
        self.order.put_u32(RECORD_HEADER_BYTES + payload.len() as u32, &mut self.record);
        self.order.put_u32(pid, &mut self.record);
        self.record.extend_from_slice(payload);
        Ok(self.sink.write_all(&self.record)?)
    }

    /// Writes a `dropped` record: `count` records are missing here.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    pub fn dropped(&mut self, timestamp_ns: u64, pid: u32, count: u64) -> io::Result<()> {
        self.start(TYPE_EVENT, EventId::DROPPED);
        self.order.put_u64(timestamp_ns, &mut self.record);
        self.order.put_u32(RECORD_HEADER_BYTES + 8, &mut self.record);
        self.order.put_u32(pid, &mut self.record);
        self.order.put_u64(count, &mut self.record);
        self.sink.write_all(&self.record)
    }

    /// Returns the byte order of the file.
    #[must_use]
    pub const fn byte_order(&self) -> ByteOrder {
        self.order
    }

    /// Flushes the sink.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    pub fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }

    /// Returns the sink, for its owner to see to. What is written there besides must not break the file.
    pub const fn get_mut(&mut self) -> &mut W {
        &mut self.sink
    }

    /// Returns the sink, not flushed.
    pub fn into_inner(self) -> W {
        self.sink
    }

    fn start(&mut self, record_type: u64, id: EventId) {
        self.record.clear();
        self.order.put_u64(record_type, &mut self.record);
        self.order.put_u64(id.0, &mut self.record);
    }
}

/// Returns what stands before the payload of an event record in a version 4 file, for those who write payloads of their own.
///
/// # Panics
///
/// In debug builds, if the record is longer than [`MAX_RECORD_BYTES`].
#[inline]
#[must_use]
pub fn event_front(order: ByteOrder, id: EventId, timestamp_ns: u64, payload_bytes: u32, pid: u32) -> [u8; 32] {
    debug_assert!(payload_bytes <= MAX_RECORD_BYTES - RECORD_HEADER_BYTES);
    let mut front = [0; 32];
    let words = [TYPE_EVENT, id.0, timestamp_ns];
    let halves = [RECORD_HEADER_BYTES + payload_bytes, pid];
    let (front_words, front_halves) = front.split_at_mut(24);
    for (place, word) in front_words.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&order.u64_bytes(word));
    }
    for (place, half) in front_halves.chunks_exact_mut(4).zip(halves) {
        place.copy_from_slice(&order.u32_bytes(half));
    }
    front
}

fn ordinary(id: EventId) -> Result<EventId, WriteError> {
    match id.namespace() {
        Namespace::Ordinary => Ok(id),
        Namespace::Special(_) => Err(WriteError::SpecialId(id)),
    }
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(_) => f.write_str("the trace cannot be written"),
            Self::NameLength(bytes) => write!(f, "event name of {bytes} bytes, not 1 to {MAX_NAME_BYTES}"),
            Self::RecordLength(bytes) => {
                write!(f, "arguments of {bytes} bytes do not fit a record of at most {MAX_RECORD_BYTES}")
            }
            Self::SpecialId(id) => write!(f, "{id} is not an id that a program's event may have"),
        }
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}
