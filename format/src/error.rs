//! What can be wrong with a trace file, and where.

use std::{fmt, io};

use crate::{EventId, HEADER_BYTES, MAX_NAME_BYTES, MAX_RECORD_BYTES, RECORD_HEADER_BYTES};

/// The result of reading a trace file.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A fault in a trace file: what, and at which offset.
#[derive(Debug)]
pub struct Error {
    offset: u64,
    kind: ErrorKind,
}

/// The kinds of fault. More may come.
#[derive(Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file ends inside its header, which has 24 bytes, in version 0 64; holds the bytes there are.
    HeaderCut(usize),
    /// The first 16 bytes are not a trace file's, in either byte order; holds the two words, read as little-endian.
    NotATrace(u64, u64),
    /// The header is right but its version is not one that this crate reads.
    UnsupportedVersion(u64),
    /// The file ends inside a record, as it does when the traced program was killed; holds the bytes of the record that are
    /// there.
    TornTail(u64),
    /// Neither a mapping record (0) nor an event record (1).
    UnknownRecordType(u64),
    /// A file header where a record should be: two files were written or copied one behind the other.
    SecondHeader,
    /// An event record's length is below 24, the size of its own header.
    RecordTooShort(u32),
    /// An event record's length is above [`MAX_RECORD_BYTES`].
    RecordTooLong(u32),
    /// A `dropped` record is not 32 bytes long.
    DroppedLength(u32),
    /// A mapping record without a name. A stretch of zero bytes reads as such records.
    EmptyName,
    /// A mapped name is longer than [`MAX_NAME_BYTES`].
    NameTooLong(u32),
    /// A mapped name is not UTF-8, hence no C identifier.
    NameNotUtf8,
    /// A mapped name has a zero byte in it, as what is no name nearly always has. [`StreamReader`](crate::StreamReader) lets it
    /// pass, a [`RecoveringReader`](crate::RecoveringReader) does not.
    NameWithZero,
    /// In a version before 4, where ids are places among the declarations, one that is far above their number.
    /// [`StreamReader`](crate::StreamReader) lets it pass, a [`RecoveringReader`](crate::RecoveringReader) does not.
    IdTooLarge(EventId),
    /// An event record bears the id of the file header.
    MisplacedTraceBegin,
    /// The input could not be read.
    Io(io::Error),
}

impl Error {
    #[cold]
    pub(crate) const fn new(offset: u64, kind: ErrorKind) -> Self {
        Self { offset, kind }
    }

    /// Returns the offset in the file, in bytes, of the record (or header) at fault.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    pub(crate) fn into_kind(self) -> ErrorKind {
        self.kind
    }

    /// Returns what is wrong.
    #[must_use]
    pub const fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// Tells whether the file merely ends inside a record, the normal end of a killed program's trace.
    #[must_use]
    pub const fn is_torn_tail(&self) -> bool {
        matches!(self.kind, ErrorKind::TornTail(_))
    }

    /// Tells whether there is no valid header, so that nothing can be read.
    #[must_use]
    pub const fn is_not_a_trace(&self) -> bool {
        matches!(self.kind, ErrorKind::HeaderCut(_) | ErrorKind::NotATrace(..) | ErrorKind::UnsupportedVersion(_))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            // These faults are of the file as a whole.
            ErrorKind::HeaderCut(_) | ErrorKind::NotATrace(..) | ErrorKind::UnsupportedVersion(_) => self.kind.fmt(f),
            _ => write!(f, "offset {}: {}", self.offset, self.kind),
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HeaderCut(0) => f.write_str("the file is empty"),
            Self::HeaderCut(bytes @ HEADER_BYTES..) => {
                write!(f, "the file ends inside the 64-byte header of version 0, {bytes} bytes into it")
            }
            Self::HeaderCut(bytes) => write!(f, "not a trace file: {bytes} bytes are too short for the 24-byte header"),
            Self::NotATrace(id, magic) if *id == EventId::TRACE_BEGIN.0 => {
                write!(f, "not a trace file: its magic number is {magic:#018x}, not {:#018x}", crate::MAGIC)
            }
            Self::NotATrace(id, _) => {
                write!(f, "not a trace file: it starts with {id:#018x}, not eight bytes 0xff")
            }
            Self::UnsupportedVersion(version) => {
                write!(f, "format version {version} is unknown: QEMU writes version 4 and wrote 0, 2 and 3")
            }
            Self::TornTail(bytes) => write!(f, "the file ends inside a record, {bytes} bytes into it"),
            Self::UnknownRecordType(word) => write!(f, "record type {word:#x} is neither 0 (mapping) nor 1 (event)"),
            Self::SecondHeader => f.write_str("a second file header"),
            Self::RecordTooShort(length) => {
                write!(f, "record length {length} is shorter than the {RECORD_HEADER_BYTES}-byte record header")
            }
            Self::RecordTooLong(length) => {
                write!(f, "record length {length} is above {MAX_RECORD_BYTES}, which no recorder writes")
            }
            Self::DroppedLength(length) => write!(f, "dropped record of length {length}, which is always 32"),
            Self::EmptyName => f.write_str("mapping record without a name"),
            Self::NameTooLong(length) => {
                write!(f, "mapping record with a name of {length} bytes, above {MAX_NAME_BYTES}")
            }
            Self::NameNotUtf8 => f.write_str("mapping record with a name that is not UTF-8"),
            Self::NameWithZero => f.write_str("mapping record with a zero byte in its name"),
            Self::IdTooLarge(id) => write!(f, "{id}, which is far above the number of events"),
            Self::MisplacedTraceBegin => f.write_str("event record with the id of a file header"),
            // The error itself is the source: a chain that is printed whole must not say it twice.
            Self::Io(_) => f.write_str("the input cannot be read"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            ErrorKind::Io(error) => Some(error),
            _ => None,
        }
    }
}
