//! Whole files read into something that can be compared.

use std::fmt;
use std::io::Read;

use simpletrace_format::{
    ByteOrder, DroppedRecord, Error, ErrorKind, EventId, EventRecord, Header, MappingRecord, Record, Result,
    SliceReader, StreamReader, Version,
};

/// A [`Record`] that owns its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Owned {
    Mapping { offset: u64, id: EventId, name: String },
    Event { offset: u64, id: EventId, timestamp_ns: u64, pid: u32, payload: Vec<u8> },
    Dropped { offset: u64, timestamp_ns: u64, pid: u32, count: u64 },
}

impl From<Record<'_>> for Owned {
    fn from(record: Record<'_>) -> Self {
        match record {
            Record::Mapping(MappingRecord { offset, id, name }) => Self::Mapping { offset, id, name: name.to_owned() },
            Record::Event(EventRecord { offset, id, timestamp_ns, pid, payload }) => {
                Self::Event { offset, id, timestamp_ns, pid, payload: payload.bytes().to_vec() }
            }
            Record::Dropped(DroppedRecord { offset, timestamp_ns, pid, count }) => {
                Self::Dropped { offset, timestamp_ns, pid, count }
            }
        }
    }
}

/// All that came of reading a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) records: Vec<Owned>,
    /// Where the reader stood at the end; `None` if the header was refused.
    pub(crate) stopped_at: Option<u64>,
    pub(crate) fault: Option<Fault>,
}

/// An [`Error`] that can be compared.
#[derive(PartialEq, Eq, Clone)]
pub(crate) struct Fault {
    pub(crate) offset: u64,
    /// The kind and what it holds, as `Debug` shows them.
    pub(crate) kind: String,
}

impl Fault {
    pub(crate) fn new(offset: u64, kind: &ErrorKind) -> Self {
        Self { offset, kind: format!("{kind:?}") }
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.kind, self.offset)
    }
}

impl From<&Error> for Fault {
    fn from(error: &Error) -> Self {
        Self::new(error.offset(), error.kind())
    }
}

impl Outcome {
    fn refused(error: &Error) -> Self {
        Self { records: Vec::new(), stopped_at: None, fault: Some(error.into()) }
    }

    fn push(&mut self, next: Result<Option<Record<'_>>>) -> bool {
        match next {
            Ok(Some(record)) => self.records.push(record.into()),
            Ok(None) => return false,
            Err(error) => {
                self.fault = Some((&error).into());
                return false;
            }
        }
        true
    }
}

/// Reads `file` with a [`SliceReader`], checking on the way that the reader's own promises hold.
pub(crate) fn slice(file: &[u8]) -> Outcome {
    let mut reader = match SliceReader::new(file) {
        Ok(reader) => reader,
        Err(error) => return Outcome::refused(&error),
    };
    assert_eq!(reader.offset(), header_bytes(reader.header()));
    drain_slice(&mut reader)
}

/// Reads `file`, which has no header, with a [`SliceReader`].
pub(crate) fn headerless_slice(file: &[u8], byte_order: ByteOrder) -> Outcome {
    drain_slice(&mut SliceReader::headerless(file, byte_order))
}

/// Reads `source`, which has no header, with a [`StreamReader`].
pub(crate) fn headerless_stream(source: impl Read, byte_order: ByteOrder) -> Outcome {
    drain_stream(&mut StreamReader::headerless(source, byte_order))
}

/// Where the first record stands.
fn header_bytes(header: Header) -> u64 {
    if header.version == Version::V0 { 64 } else { 24 }
}

fn drain_slice(reader: &mut SliceReader<'_>) -> Outcome {
    let mut outcome = Outcome { records: Vec::new(), stopped_at: None, fault: None };
    let mut offset = reader.offset();
    while outcome.push(reader.next_record()) {
        assert!(reader.offset() > offset, "a record took no bytes at {offset}");
        offset = reader.offset();
    }
    assert_eq!(reader.offset(), offset, "the reader moved without a record");
    for _ in 0..3 {
        assert!(matches!(reader.next_record(), Ok(None)), "the reader is not fused");
        assert!(reader.next().is_none(), "the iterator is not fused");
    }
    outcome.stopped_at = Some(offset);
    outcome
}

/// Reads `source` with a [`StreamReader`], checking on the way that the reader's own promises hold.
pub(crate) fn stream(source: impl Read) -> Outcome {
    let mut reader = match StreamReader::new(source) {
        Ok(reader) => reader,
        Err(error) => return Outcome::refused(&error),
    };
    assert_eq!(reader.offset(), header_bytes(reader.header()));
    drain_stream(&mut reader)
}

fn drain_stream(reader: &mut StreamReader<impl Read>) -> Outcome {
    let mut outcome = Outcome { records: Vec::new(), stopped_at: None, fault: None };
    let mut offset = reader.offset();
    while outcome.push(reader.next_record()) {
        assert!(reader.offset() > offset, "a record took no bytes at {offset}");
        offset = reader.offset();
    }
    assert_eq!(reader.offset(), offset, "the reader moved without a record");
    for _ in 0..3 {
        assert!(matches!(reader.next_record(), Ok(None)), "the reader is not fused");
    }
    outcome.stopped_at = Some(offset);
    outcome
}

/// Reads `file` with both readers, which must agree.
#[track_caller]
pub(crate) fn both(file: &[u8]) -> Outcome {
    let outcome = slice(file);
    assert_eq!(stream(file), outcome, "the stream reader (left) disagrees with the slice reader");
    outcome
}

/// Reads `file` with both readers and returns the fault that both must find.
#[track_caller]
pub(crate) fn fault(file: &[u8]) -> Fault {
    both(file).fault.expect("the file to be at fault")
}
