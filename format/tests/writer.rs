//! What the writer refuses, and that nothing of it gets into the file.

mod support;

use std::io::{self, Write};

use simpletrace_format::{ByteOrder, EventId, MAX_RECORD_BYTES, TraceWriter, Value, WriteError};
use support::bytes::Bytes;
use support::reading::both;

fn writer() -> TraceWriter<Vec<u8>> {
    TraceWriter::new(Vec::new(), ByteOrder::Little).unwrap()
}

/// The longest string that fits a record as its only argument.
const LONGEST_STRING: usize = MAX_RECORD_BYTES as usize - 24 - 4;

#[test]
fn a_new_file_is_its_header() {
    assert_eq!(writer().into_inner(), Bytes::little().header().build());
    let big = TraceWriter::new(Vec::new(), ByteOrder::Big).unwrap();
    assert_eq!(big.into_inner(), Bytes::big().header().build());
}

#[test]
fn names_of_one_to_1024_bytes_are_written_and_read_back() {
    let (shortest, longest) = ("n", "n".repeat(1024));
    let mut file = writer();
    file.mapping(EventId(1), shortest).unwrap();
    file.mapping(EventId(2), &longest).unwrap();
    let bytes = file.into_inner();
    assert_eq!(bytes, Bytes::little().header().mapping(1, shortest).mapping(2, &longest).build());
    assert_eq!(both(&bytes).fault, None);
}

#[test]
fn an_empty_name_and_one_of_1025_bytes_are_refused() {
    let mut file = writer();
    for name in ["".to_owned(), "n".repeat(1025)] {
        let error = file.mapping(EventId(1), &name).unwrap_err();
        assert!(matches!(error, WriteError::NameLength(bytes) if bytes == name.len()));
    }
    assert_eq!(file.into_inner(), Bytes::little().header().build());
}

#[test]
fn the_longest_record_that_is_written_is_the_longest_that_is_read() {
    let string = vec![b'x'; LONGEST_STRING];
    let mut file = writer();
    file.event(EventId(1), 2, 3, &[Value::String(&string)]).unwrap();
    let bytes = file.into_inner();
    assert_eq!(bytes.len(), 24 + 8 + 262_144);
    let outcome = both(&bytes);
    assert_eq!((outcome.records.len(), outcome.fault), (1, None));
}

#[test]
fn arguments_of_one_byte_more_are_refused() {
    let string = vec![b'x'; LONGEST_STRING + 1];
    let words = vec![Value::Unsigned(0); (MAX_RECORD_BYTES as usize - 24) / 8 + 1];
    let mut file = writer();
    let error = file.event(EventId(1), 2, 3, &[Value::String(&string)]).unwrap_err();
    assert!(matches!(error, WriteError::RecordLength(262_121)), "{error:?}");
    let error = file.event(EventId(1), 2, 3, &words).unwrap_err();
    assert!(matches!(error, WriteError::RecordLength(262_128)), "{error:?}");
    assert_eq!(file.into_inner(), Bytes::little().header().build());
}

#[test]
fn ids_of_the_special_namespace_are_refused() {
    let mut file = writer();
    for id in [1 << 63, u64::MAX - 2, u64::MAX - 1, u64::MAX].map(EventId) {
        let error = file.mapping(id, "name").unwrap_err();
        assert!(matches!(error, WriteError::SpecialId(refused) if refused == id));
        let error = file.event(id, 1, 2, &[]).unwrap_err();
        assert!(matches!(error, WriteError::SpecialId(refused) if refused == id));
    }
    assert_eq!(file.into_inner(), Bytes::little().header().build());
}

#[test]
fn a_refused_record_leaves_no_trace_in_the_next() {
    let string = vec![b'x'; LONGEST_STRING + 1];
    let mut file = writer();
    file.event(EventId(1), 2, 3, &[Value::String(&string)]).unwrap_err();
    file.mapping(EventId(1), "").unwrap_err();
    file.mapping(EventId(u64::MAX), "a").unwrap_err();
    file.event(EventId(4), 5, 6, &[Value::Bool(true)]).unwrap();
    let expected = Bytes::little().header().event(4, 5, 6, |args| args.u64(1)).build();
    assert_eq!(file.into_inner(), expected);
}

#[test]
fn the_greatest_ordinary_id_is_written() {
    let mut file = writer();
    file.mapping(EventId((1 << 63) - 1), "last").unwrap();
    file.event(EventId((1 << 63) - 1), 1, 2, &[]).unwrap();
    assert_eq!(both(&file.into_inner()).records.len(), 2);
}

#[test]
fn each_record_is_one_write_of_the_sink() {
    struct Calls(Vec<usize>);
    impl Write for Calls {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(bytes.len());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            self.0.push(0);
            Ok(())
        }
    }
    let mut file = TraceWriter::new(Calls(Vec::new()), ByteOrder::NATIVE).unwrap();
    file.mapping(EventId(1), "abc").unwrap();
    file.event(EventId(1), 2, 3, &[Value::Signed(-1), Value::String(b"ab")]).unwrap();
    file.dropped(4, 5, 6).unwrap();
    file.flush().unwrap();
    assert_eq!(file.into_inner().0, [24, 23, 46, 40, 0]);
}

#[test]
fn an_error_of_the_sink_comes_through_from_every_verb() {
    /// Takes the header, then nothing more.
    #[derive(Debug)]
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            match self.0.checked_sub(bytes.len()) {
                Some(left) => self.0 = left,
                None => return Err(io::ErrorKind::StorageFull.into()),
            }
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::StorageFull.into())
        }
    }
    let full = |error: &io::Error| error.kind() == io::ErrorKind::StorageFull;
    assert!(full(&TraceWriter::new(Full(23), ByteOrder::Little).unwrap_err()));

    let mut file = TraceWriter::new(Full(24), ByteOrder::Little).unwrap();
    assert!(matches!(file.mapping(EventId(1), "a"), Err(WriteError::Io(error)) if full(&error)));
    assert!(matches!(file.event(EventId(1), 2, 3, &[]), Err(WriteError::Io(error)) if full(&error)));
    assert!(full(&file.dropped(1, 2, 3).unwrap_err()));
    assert!(full(&file.flush().unwrap_err()));
}
