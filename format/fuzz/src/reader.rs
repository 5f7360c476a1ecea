use std::io::{self, Read};

use simpletrace_format::events::{ArgType, Width};
use simpletrace_format::{ByteOrder, Payload, Record, SliceReader, StreamReader, Version};

/// Reads any bytes as a file of whatever version its header says, and as records without a header if it has none: both readers
/// agree, offsets only grow, nothing follows an error, and a clean end is the end of the bytes.
pub fn reader(data: &[u8]) {
    // How the stream comes in pieces depends on the bytes too, so that the fuzzer can choose it.
    let pieces = || Pieces { bytes: data, state: data.last().copied().unwrap_or_default() };
    match (SliceReader::new(data), StreamReader::new(pieces())) {
        (Ok(slice), Ok(stream)) => {
            let header = slice.header();
            assert_eq!(header, stream.header());
            assert_eq!(slice.offset(), header.version.header_bytes() as u64);
            compare(slice, stream, data);
        }
        (Err(slice), Err(stream)) => {
            assert_eq!(format!("{slice:?}"), format!("{stream:?}"));
            assert!(slice.is_not_a_trace());
            for order in [ByteOrder::Little, ByteOrder::Big] {
                compare(SliceReader::headerless(data, order), StreamReader::headerless(pieces(), order), data);
            }
        }
        (slice, stream) => panic!("the readers disagree on the header: {slice:?}, {:?}", stream.err()),
    }
}

fn compare(mut slice: SliceReader<'_>, mut stream: StreamReader<Pieces<'_>>, data: &[u8]) {
    let version = slice.header().version;
    loop {
        let offset = slice.offset();
        assert_eq!(offset, stream.offset());
        match (slice.next_record(), stream.next_record()) {
            (Ok(Some(record)), Ok(Some(streamed))) => {
                assert_eq!(record, streamed);
                assert_eq!(offset, offset_of(&record));
                assert!(slice.offset() > offset);
                match record {
                    Record::Mapping(_) => assert!(version.has_names()),
                    Record::Dropped(record) => assert!(version.has_pid() || record.pid == 0),
                    Record::Event(record) => {
                        assert!(version.has_pid() || record.pid == 0);
                        check_args(record.payload, version);
                    }
                }
            }
            (Ok(None), Ok(None)) => {
                assert_eq!(offset, data.len() as u64, "a clean end before the end of the file");
                break;
            }
            (Err(error), Err(streamed)) => {
                assert_eq!(format!("{error:?}"), format!("{streamed:?}"));
                assert_eq!(error.offset(), offset);
                break;
            }
            (record, streamed) => panic!("the readers disagree at {offset}: {record:?}, {streamed:?}"),
        }
    }
    for _ in 0..2 {
        assert!(matches!(slice.next_record(), Ok(None)));
        assert!(matches!(stream.next_record(), Ok(None)));
    }
}

/// Whatever the arguments are read as, they are so many bytes and no more.
fn check_args(payload: Payload<'_>, version: Version) {
    let mut args = payload.args();
    while args.string().is_some() || args.word().is_some() {}
    assert!(args.rest().len() < 8);

    let mut args = payload.args();
    let types = [ArgType::String, ArgType::Signed(Width::W32), ArgType::Char, ArgType::Bool, ArgType::Pointer];
    let mut taken = 0;
    for ty in types.into_iter().cycle() {
        let before = args.rest().len();
        let Some(value) = args.next(ty) else { break };
        assert!(version != Version::V0 || value.word().is_some());
        taken += before - args.rest().len();
        assert!(args.rest().starts_with(args.left_over()));
    }
    assert_eq!(taken + args.rest().len(), payload.bytes().len());
}

fn offset_of(record: &Record<'_>) -> u64 {
    match record {
        Record::Mapping(record) => record.offset,
        Record::Event(record) => record.offset,
        Record::Dropped(record) => record.offset,
    }
}

/// Short reads of changing sizes, and interruptions between them.
struct Pieces<'a> {
    bytes: &'a [u8],
    state: u8,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.state = self.state.wrapping_mul(5).wrapping_add(113);
        if self.state.is_multiple_of(16) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let piece = (usize::from(self.state)).min(buffer.len());
        self.bytes.read(&mut buffer[..piece])
    }
}
