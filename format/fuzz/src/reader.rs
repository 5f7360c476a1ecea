use std::io::{self, Read};

use simpletrace_format::{Record, SliceReader, StreamReader};

/// Reads any bytes as a file: both readers agree, offsets only grow, nothing follows an error, and a clean end is the end of the
/// bytes.
pub fn reader(data: &[u8]) {
    // How the stream comes in pieces depends on the bytes too, so that the fuzzer can choose it.
    let pieces = Pieces { bytes: data, state: data.last().copied().unwrap_or_default() };
    let (mut slice, mut stream) = match (SliceReader::new(data), StreamReader::new(pieces)) {
        (Ok(slice), Ok(stream)) => (slice, stream),
        (Err(slice), Err(stream)) => return assert_eq!(format!("{slice:?}"), format!("{stream:?}")),
        (slice, stream) => panic!("the readers disagree on the header: {slice:?}, {:?}", stream.err()),
    };
    assert_eq!(slice.header(), stream.header());

    loop {
        let offset = slice.offset();
        assert_eq!(offset, stream.offset());
        match (slice.next_record(), stream.next_record()) {
            (Ok(Some(record)), Ok(Some(streamed))) => {
                assert_eq!(record, streamed);
                assert_eq!(offset, offset_of(&record));
                assert!(slice.offset() > offset);
                if let Record::Event(event) = record {
                    let mut args = event.payload.args();
                    while args.string().is_some() || args.word().is_some() {}
                    assert!(args.rest().len() < 8);
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
