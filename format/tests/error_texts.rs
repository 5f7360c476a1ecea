//! Every message that a user may see, as one list: read from top to bottom it should read well.

mod support;

use std::error::Error as _;
use std::io;

use simpletrace_format::{EventId, Header, SliceReader, StreamReader, WriteError};
use support::bytes::Bytes;
use support::sources::Failing;

/// The message of the first fault in `file`.
fn message(file: Bytes) -> String {
    let file = file.build();
    match SliceReader::new(&file) {
        Err(error) => error.to_string(),
        Ok(mut reader) => reader.find_map(Result::err).expect("the file to be at fault").to_string(),
    }
}

#[test]
fn every_fault_of_a_file_has_its_message() {
    let none = Bytes::little;
    let start = || none().header().mapping(0, "a");
    let version = |version| message(none().header_of_version(version));

    let messages = [
        message(none()),
        message(none().zeros(7)),
        message(none().bytes(b"\x28\xb5\x2f\xfd").zeros(40)),
        message(none().u64(u64::MAX).u64(0xf2b1_77cb_0aa4_29b5).u64(4)),
        message(none().u64(u64::MAX).u64(0xf2b1_77cb_0aa4_29b4).u64(0).zeros(16)),
        version(1),
        version(5),
        message(start().u64(1).u64(0).zeros(4)),
        message(start().u64(7)),
        message(start().header()),
        message(start().event_of_length(0, 0, 23, 0)),
        message(start().event_of_length(0, 0, 262_145, 0)),
        message(start().event_of_length(u64::MAX - 1, 0, 40, 0)),
        message(start().zeros(20)),
        message(start().mapping(1, &"n".repeat(1025))),
        message(start().u64(0).u64(1).string(b"\xff")),
        message(start().event_of_length(u64::MAX, 0, 24, 0)),
    ];

    assert_eq!(
        messages,
        [
            "the file is empty",
            "not a trace file: 7 bytes are too short for the 24-byte header",
            "not a trace file: it starts with 0x00000000fd2fb528, not eight bytes 0xff",
            "not a trace file: its magic number is 0xf2b177cb0aa429b5, not 0xf2b177cb0aa429b4",
            "the file ends inside the 64-byte header of version 0, 40 bytes into it",
            "format version 1 is unknown: QEMU writes version 4 and wrote 0, 2 and 3",
            "format version 5 is unknown: QEMU writes version 4 and wrote 0, 2 and 3",
            "offset 45: the file ends inside a record, 20 bytes into it",
            "offset 45: record type 0x7 is neither 0 (mapping) nor 1 (event)",
            "offset 45: a second file header",
            "offset 45: record length 23 is shorter than the 24-byte record header",
            "offset 45: record length 262145 is above 262144, which no recorder writes",
            "offset 45: dropped record of length 40, which is always 32",
            "offset 45: mapping record without a name",
            "offset 45: mapping record with a name of 1025 bytes, above 1024",
            "offset 45: mapping record with a name that is not UTF-8",
            "offset 45: event record with the id of a file header",
        ]
    );
}

#[test]
fn an_io_error_is_told_by_the_source_and_once_in_the_chain() {
    let file = Bytes::little().header().mapping(0, "a").build();
    let mut reader = StreamReader::new(Failing::after(&file)).unwrap();
    reader.next_record().unwrap();
    let error = reader.next_record().unwrap_err();
    assert_eq!(error.to_string(), "offset 45: the input cannot be read");
    let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    assert_eq!(source.map(io::Error::kind), Some(io::ErrorKind::ConnectionReset));
    assert_eq!(source.map(ToString::to_string).as_deref(), Some("the line went dead"));

    let fault_of_the_bytes = Header::parse(b"").unwrap_err();
    assert!(fault_of_the_bytes.source().is_none());
}

#[test]
fn every_refusal_of_the_writer_has_its_message() {
    let refusals = [
        WriteError::NameLength(0),
        WriteError::NameLength(1025),
        WriteError::RecordLength(262_121),
        WriteError::SpecialId(EventId::DROPPED),
        WriteError::SpecialId(EventId(1 << 63)),
        WriteError::Io(io::Error::other("the disk is on fire")),
    ];
    assert_eq!(
        refusals.each_ref().map(ToString::to_string),
        [
            "event name of 0 bytes, not 1 to 1024",
            "event name of 1025 bytes, not 1 to 1024",
            "arguments of 262121 bytes do not fit a record of at most 262144",
            "dropped is not an id that a program's event may have",
            "special event 0x8000000000000000 is not an id that a program's event may have",
            "the trace cannot be written",
        ]
    );
    let sources = refusals.iter().filter_map(|refusal| refusal.source());
    assert_eq!(sources.map(ToString::to_string).collect::<Vec<_>>(), ["the disk is on fire"]);
}
