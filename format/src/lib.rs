//! QEMU's simpletrace file format and its trace-events language.
//!
//! A program that records with the `simple` backend of QEMU's tracing leaves a file of binary records. This crate reads such
//! files of every [`Version`] and either byte order, writes version 4, and reads the declarations without which the
//! arguments in them are only bytes.
//!
//! ```
//! use simpletrace_format::events::{EventSet, Mode};
//! use simpletrace_format::{ByteOrder, EventId, Names, Record, SliceReader, TraceWriter, Value};
//!
//! // A trace of one event, as a recorder writes it: the id gets a name, then the event happens.
//! let mut trace = TraceWriter::new(Vec::new(), ByteOrder::NATIVE)?;
//! trace.mapping(EventId(0), "disk_read")?;
//! trace.event(EventId(0), 1_500, 42, &[Value::String(b"disk0"), Value::Signed(-5)])?;
//! let trace = trace.into_inner();
//!
//! // What the events are like stands in another file.
//! let mut declared = EventSet::new();
//! let wrong = declared.add("trace-events", b"disk_read(const char *name, int ret) \"%s gave %d\"\n", Mode::Lenient);
//! assert!(wrong.is_empty());
//!
//! let mut names = Names::default();
//! let mut lines = Vec::new();
//! for record in SliceReader::new(&trace)? {
//!     match record? {
//!         Record::Mapping(mapping) => _ = names.map(&mapping),
//!         Record::Event(event) => {
//!             let name = names.slot(event.id).map_or("", |slot| names.name(slot));
//!             let declaration = declared.get(name).ok_or("an event without a declaration")?;
//!             let mut args = event.payload.args();
//!             let values = declaration.args.iter().map_while(|arg| args.next(arg.ty));
//!             let mut line = format!("{} {name}: ", event.timestamp_ns).into_bytes();
//!             let format = declaration.format.as_ref().ok_or("a declaration without a format")?;
//!             format.compile()?.render(values, &mut line);
//!             lines.push(String::from_utf8(line)?);
//!         }
//!         Record::Dropped(dropped) => lines.push(format!("{} records are missing", dropped.count)),
//!     }
//! }
//! assert_eq!(lines, ["1500 disk_read: disk0 gave -5"]);
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where to start
//!
//! - A file in memory, or mapped into it: [`SliceReader`]. A pipe, a decompressor: [`StreamReader`]. Both give [`Record`]s.
//! - A file that may be damaged: [`RecoveringReader`], which goes on behind damage and says what it skipped.
//! - What a file is, from its first bytes: [`Header::sniff`], [`Header::parse`].
//! - Which event an id means: [`Names`], fed with the [`MappingRecord`]s. Ids differ from build to build, names do not.
//!   Before version 4 there are no mappings, ids are places among the declarations: [`events::EventSet::by_id`].
//! - The arguments of an event: [`EventRecord::payload`], read with [`Args::next`] into [`Value`]s.
//! - The declarations: [`events::EventIndex`] for reading a trace, [`events::EventSet`] for all of them, [`events::parse`] for one text.
//!   Printing: [`events::Format`].
//! - What the recorder says of the file itself, such as the time of day: [`Facts`], fed with the mapping records of [`EventId::FACTS`].
//! - How many records are missing: [`Loss`], fed with the [`DroppedRecord`]s.
//! - Writing a file: [`TraceWriter`].
//! - What is wrong with a file: [`Error`], with its offset and [`ErrorKind`].
//!
//! # What it promises
//!
//! - Any bytes may be read: nothing panics, and there is no `unsafe` code.
//! - Readers take time linear in the bytes. [`SliceReader`] allocates nothing, [`StreamReader`] at most
//!   [`StreamReader::MAX_BUFFER_BYTES`], [`Names`] has a cap of its own. A length in a file is compared with what may be
//!   there before anything is reserved for it.
//! - Every record in front of damage is handed out; then comes one error with the offset of the record at fault, then nothing
//!   ([`RecoveringReader`] goes on).
//!   That a file ends inside a record is the normal end of a killed program's trace: [`Error::is_torn_tail`].
//! - No bits are lost: a word that its declared type cannot hold stays a number with all of them.
//!
//! Not in the format, and so not here: threads, and the number of records that a killed program took with it.
#![forbid(unsafe_code)]

mod buffer;
mod cursor;
pub mod durable;
mod earlier;
mod error;
pub mod events;
mod facts;
mod header;
mod id;
mod loss;
mod names;
mod reader;
mod record;
mod recover;
mod value;
mod writer;

pub use cursor::ByteOrder;
pub use error::{Error, ErrorKind, Result};
pub use facts::{Anchor, FactError, Facts};
pub use header::{HEADER_BYTES, Header, MAGIC, VERSION, Version};
pub use id::{EventId, Namespace, Special};
pub use loss::Loss;
pub use names::{Mapped, Names};
pub use reader::{SliceReader, StreamReader};
pub use record::{
    Args, DroppedRecord, EventRecord, MAX_NAME_BYTES, MAX_RECORD_BYTES, MappingRecord, Payload, RECORD_HEADER_BYTES,
    Record,
};
pub use recover::{Candidate, Damage, Recovered, RecoveringReader};
pub use value::Value;
pub use writer::{TraceWriter, WriteError, event_front};

/// The README's example, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
