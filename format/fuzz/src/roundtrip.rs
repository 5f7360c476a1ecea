use arbitrary::{Arbitrary, Unstructured};
use simpletrace_format::{
    ByteOrder, EventId, MAX_NAME_BYTES, MAX_RECORD_BYTES, Namespace, Record, SliceReader, StreamReader, TraceWriter,
    Value, WriteError,
};

use crate::arg::Arg;

/// A file as a list of calls of the writer.
#[derive(Debug, Arbitrary)]
struct File<'a> {
    big: bool,
    calls: Vec<Call<'a>>,
}

#[derive(Debug, Arbitrary)]
enum Call<'a> {
    Mapping { id: u64, name: &'a str, repeat: u8 },
    Event { id: u64, timestamp_ns: u64, pid: u32, args: Vec<Arg<'a>> },
    Dropped { timestamp_ns: u64, pid: u32, count: u64 },
}

/// Writes the records that the bytes stand for and reads them back with both readers. A call that the writer refuses must deserve
/// it, and leave nothing behind.
pub fn roundtrip(data: &[u8]) {
    let Ok(file) = File::arbitrary_take_rest(Unstructured::new(data)) else {
        return;
    };
    let order = if file.big { ByteOrder::Big } else { ByteOrder::Little };
    let mut writer = TraceWriter::new(Vec::new(), order).expect("a Vec takes everything");
    let mut written = Vec::new();
    for call in &file.calls {
        if write(&mut writer, call) {
            written.push(call);
        }
    }
    let bytes = writer.into_inner();

    let mut slice = SliceReader::new(&bytes).expect("the writer's header");
    let mut stream = StreamReader::new(&bytes[..]).expect("the writer's header");
    assert_eq!(slice.header().byte_order, order);
    for call in written {
        let record = slice.next_record().expect("a whole record").expect("as many records");
        assert_eq!(stream.next_record().expect("a whole record"), Some(record));
        compare(call, record);
    }
    assert!(matches!(slice.next_record(), Ok(None)));
    assert!(matches!(stream.next_record(), Ok(None)));
    assert_eq!(slice.offset(), bytes.len() as u64);
}

/// Tells whether the writer took the call.
fn write(writer: &mut TraceWriter<Vec<u8>>, call: &Call<'_>) -> bool {
    let result = match call {
        Call::Mapping { id, name, repeat } => writer.mapping(EventId(*id), &repeated(name, *repeat)),
        Call::Event { id, timestamp_ns, pid, args } => {
            let args: Vec<Value<'_>> = args.iter().map(|arg| arg.value()).collect();
            writer.event(EventId(*id), *timestamp_ns, *pid, &args)
        }
        Call::Dropped { timestamp_ns, pid, count } => {
            writer.dropped(*timestamp_ns, *pid, *count).map_err(WriteError::Io)
        }
    };
    match result {
        Ok(()) => return true,
        Err(WriteError::NameLength(bytes)) => assert!(bytes == 0 || bytes > MAX_NAME_BYTES as usize),
        Err(WriteError::RecordLength(bytes)) => assert!(bytes > MAX_RECORD_BYTES as usize - 24),
        Err(WriteError::SpecialId(id)) => assert_ne!(id.namespace(), Namespace::Ordinary),
        Err(error) => panic!("{error}"),
    }
    false
}

/// Names long enough to be refused, from few bytes.
fn repeated(name: &str, repeat: u8) -> String {
    name.repeat(usize::from(repeat) + 1)
}

fn compare(call: &Call<'_>, record: Record<'_>) {
    match (call, record) {
        (Call::Mapping { id, name, repeat }, Record::Mapping(mapping)) => {
            assert_eq!((mapping.id, mapping.name), (EventId(*id), &repeated(name, *repeat)[..]));
        }
        (Call::Event { id, timestamp_ns, pid, args }, Record::Event(event)) => {
            assert_eq!((event.id, event.timestamp_ns, event.pid), (EventId(*id), *timestamp_ns, *pid));
            let mut read = event.payload.args();
            for arg in args {
                match arg.value() {
                    Value::String(bytes) => assert_eq!(read.string(), Some(bytes)),
                    value => assert_eq!(read.word(), value.word()),
                }
            }
            assert!(read.rest().is_empty());
        }
        (Call::Dropped { timestamp_ns, pid, count }, Record::Dropped(dropped)) => {
            assert_eq!((dropped.timestamp_ns, dropped.pid, dropped.count), (*timestamp_ns, *pid, *count))
        }
        (call, record) => panic!("wrote {call:?}, read {record:?}"),
    }
}
