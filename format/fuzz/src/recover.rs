use simpletrace_format::{ByteOrder, ErrorKind, Header, Record, Recovered, RecoveringReader, StreamReader, Version};

/// Reads any bytes with recovery: no panic, the records before the first damage are those of the plain reader, every byte
/// belongs to a record, a header or a damaged stretch, and a slow source changes nothing.
pub fn recover(data: &[u8]) {
    let header = match RecoveringReader::new(data) {
        Ok(reader) => {
            drain(reader, data);
            return compare(data);
        }
        Err(error) => {
            assert!(error.is_not_a_trace());
            data.first().copied().unwrap_or_default()
        }
    };
    // Whatever it is taken for.
    let version = Version::ALL[usize::from(header) % Version::ALL.len()];
    for byte_order in [ByteOrder::Little, ByteOrder::Big] {
        drain(RecoveringReader::assuming(data, Header { version, byte_order }), data);
    }
}

fn drain(mut reader: RecoveringReader<&[u8]>, data: &[u8]) {
    let (mut records, mut at) = (0, reader.offset());
    while let Some(item) = reader.next_item().expect("no error of the source") {
        match item {
            Recovered::Record(record) => {
                assert_eq!(offset_of(&record), at);
                records += 1;
            }
            Recovered::Damage(damage) => {
                assert_eq!((damage.offset, damage.records_before), (at, records));
                assert!(!matches!(damage.kind, ErrorKind::Io(_)));
                let end = damage.resumed_at.unwrap_or(data.len() as u64);
                assert_eq!(damage.skipped_bytes, end.saturating_sub(at));
                assert!(damage.skipped_bytes > 0 || damage.is_overlap());
                assert_eq!(reader.offset(), end);
            }
            Recovered::NewFile(header) => {
                assert_eq!(reader.offset(), at + header.version.header_bytes() as u64);
            }
        }
        at = reader.offset();
    }
    assert_eq!((at, reader.records()), (data.len() as u64, records));
    assert!(matches!(reader.next_item(), Ok(None)));
}

/// Compares with the plain reader as far as that goes.
fn compare(data: &[u8]) {
    let mut plain = StreamReader::new(data).expect("the same header");
    let mut reader = RecoveringReader::new(data).expect("the same header");
    while let Some(Recovered::Record(record)) = reader.next_item().expect("no error of the source") {
        assert_eq!(plain.next_record().expect("a record"), Some(record));
    }
}

fn offset_of(record: &Record<'_>) -> u64 {
    match record {
        Record::Mapping(record) => record.offset,
        Record::Event(record) => record.offset,
        Record::Dropped(record) => record.offset,
    }
}
