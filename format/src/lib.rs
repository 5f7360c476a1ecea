//! QEMU's simpletrace file format and its trace-events language.
#![forbid(unsafe_code)]

mod cursor;
mod error;
pub mod events;
mod header;
mod id;
mod names;
mod reader;
mod record;
mod value;
mod writer;

pub use cursor::ByteOrder;
pub use error::{Error, ErrorKind, Result};
pub use header::{HEADER_BYTES, Header, MAGIC, VERSION};
pub use id::{EventId, Namespace, Special};
pub use names::{Mapped, Names};
pub use reader::{SliceReader, StreamReader};
pub use record::{
    Args, DroppedRecord, EventRecord, MAX_NAME_BYTES, MAX_RECORD_BYTES, MappingRecord, Payload, RECORD_HEADER_BYTES,
    Record,
};
pub use value::Value;
pub use writer::{TraceWriter, WriteError};
