//! What the writer writes, both readers read; and its bytes are those of the format. Of versions that it does not write, they read
//! what is built byte by byte.

mod support;

use proptest::prelude::*;
use simpletrace_format::{ByteOrder, EventId, TraceWriter, Value};
use support::bytes::Bytes;
use support::reading::{Outcome, Owned, both};

/// A record that the writer must take.
#[derive(Debug, Clone)]
enum Written {
    Mapping(u64, String),
    Event(u64, u64, u32, Vec<Arg>),
    Dropped(u64, u32, u64),
}

/// A [`Value`] that owns its bytes.
#[derive(Debug, Clone)]
enum Arg {
    Signed(i64),
    Unsigned(u64),
    Bool(bool),
    Pointer(u64),
    String(Vec<u8>),
}

impl Arg {
    fn value(&self) -> Value<'_> {
        match self {
            Self::Signed(value) => Value::Signed(*value),
            Self::Unsigned(word) => Value::Unsigned(*word),
            Self::Bool(value) => Value::Bool(*value),
            Self::Pointer(word) => Value::Pointer(*word),
            Self::String(bytes) => Value::String(bytes),
        }
    }

    fn append_to(&self, bytes: Bytes) -> Bytes {
        match self {
            Self::Signed(value) => bytes.u64(*value as u64),
            Self::Unsigned(word) | Self::Pointer(word) => bytes.u64(*word),
            Self::Bool(value) => bytes.u64(u64::from(*value)),
            Self::String(string) => bytes.string(string),
        }
    }
}

fn arg() -> impl Strategy<Value = Arg> {
    prop_oneof![
        any::<i64>().prop_map(Arg::Signed),
        any::<u64>().prop_map(Arg::Unsigned),
        any::<bool>().prop_map(Arg::Bool),
        any::<u64>().prop_map(Arg::Pointer),
        prop::collection::vec(any::<u8>(), 0..600).prop_map(Arg::String),
    ]
}

fn written() -> impl Strategy<Value = Written> {
    let id = prop_oneof![0_u64..16, 0..=(1_u64 << 63) - 1];
    prop_oneof![
        (id.clone(), "\\PC{1,80}").prop_map(|(id, name)| Written::Mapping(id, name)),
        (id, any::<u64>(), any::<u32>(), prop::collection::vec(arg(), 0..11))
            .prop_map(|(id, time, pid, args)| Written::Event(id, time, pid, args)),
        any::<(u64, u32, u64)>().prop_map(|(time, pid, count)| Written::Dropped(time, pid, count)),
    ]
}

/// The file that the writer makes.
fn write(order: ByteOrder, records: &[Written]) -> Vec<u8> {
    let mut writer = TraceWriter::new(Vec::new(), order).unwrap();
    for record in records {
        match record {
            Written::Mapping(id, name) => writer.mapping(EventId(*id), name).unwrap(),
            Written::Event(id, time, pid, args) => {
                let args: Vec<Value<'_>> = args.iter().map(Arg::value).collect();
                writer.event(EventId(*id), *time, *pid, &args).unwrap();
            }
            Written::Dropped(time, pid, count) => writer.dropped(*time, *pid, *count).unwrap(),
        }
    }
    writer.flush().unwrap();
    writer.into_inner()
}

/// The same file, built independently, and what a reader must find in it.
fn build(bytes: &Bytes, records: &[Written]) -> (Vec<u8>, Outcome) {
    let mut file = bytes.clone().header();
    let mut expected = Vec::new();
    for record in records {
        let offset = file.len() as u64;
        match record {
            Written::Mapping(id, name) => {
                file = file.mapping(*id, name);
                expected.push(Owned::Mapping { offset, id: EventId(*id), name: name.clone() });
            }
            &Written::Event(id, timestamp_ns, pid, ref args) => {
                let payload = args.iter().fold(bytes.clone(), |bytes, arg| arg.append_to(bytes)).build();
                file = file.event(id, timestamp_ns, pid, |args| args.bytes(&payload));
                expected.push(Owned::Event { offset, id: EventId(id), timestamp_ns, pid, payload });
            }
            &Written::Dropped(timestamp_ns, pid, count) => {
                file = file.dropped(timestamp_ns, pid, count);
                expected.push(Owned::Dropped { offset, timestamp_ns, pid, count });
            }
        }
    }
    let outcome = Outcome { records: expected, stopped_at: Some(file.len() as u64), fault: None };
    (file.build(), outcome)
}

/// A record that a file of every earlier version can have: arguments of at most 48 bytes, and no names.
fn written_earlier() -> impl Strategy<Value = Written> {
    let id = prop_oneof![0_u64..16, 0..=(1_u64 << 63) - 1];
    let short = prop_oneof![
        3 => any::<u64>().prop_map(Arg::Unsigned),
        1 => prop::collection::vec(any::<u8>(), 0..5).prop_map(Arg::String),
    ];
    prop_oneof![
        4 => (id, any::<u64>(), any::<u32>(), prop::collection::vec(short, 0..7))
            .prop_map(|(id, time, pid, args)| Written::Event(id, time, pid, args)),
        1 => any::<(u64, u32, u64)>().prop_map(|(time, pid, count)| Written::Dropped(time, pid, count)),
    ]
}

/// A file of an earlier version, and what a reader must find in it.
fn build_earlier(version: u64, bytes: &Bytes, records: &[Written]) -> (Vec<u8>, Outcome) {
    let pid_of = |pid| if version == 3 { pid } else { 0 };
    let mut file = bytes.clone().header_of_version(version);
    let mut expected = Vec::new();
    for record in records {
        let offset = file.len() as u64;
        match record {
            Written::Mapping(..) => panic!("no earlier version has names"),
            &Written::Event(id, timestamp_ns, pid, ref args) => {
                let mut payload = args.iter().fold(bytes.clone(), |bytes, arg| arg.append_to(bytes)).build();
                file = file.event_of_version(version, id, timestamp_ns, pid, |args| args.bytes(&payload));
                if version == 0 {
                    payload.resize(48, 0);
                }
                expected.push(Owned::Event { offset, id: EventId(id), timestamp_ns, pid: pid_of(pid), payload });
            }
            &Written::Dropped(timestamp_ns, pid, count) => {
                file = file.dropped_of_version(version, timestamp_ns, pid, count);
                let timestamp_ns = if version == 0 { 0 } else { timestamp_ns };
                expected.push(Owned::Dropped { offset, timestamp_ns, pid: pid_of(pid), count });
            }
        }
    }
    let outcome = Outcome { records: expected, stopped_at: Some(file.len() as u64), fault: None };
    (file.build(), outcome)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_written_file_reads_back_equal_and_has_the_bytes_of_the_format(
        records in prop::collection::vec(written(), 0..40),
    ) {
        for (order, bytes) in [(ByteOrder::Little, Bytes::little()), (ByteOrder::Big, Bytes::big())] {
            let (file, expected) = build(&bytes, &records);
            prop_assert_eq!(write(order, &records), &file[..]);
            prop_assert_eq!(both(&file), expected);
        }
    }

    #[test]
    fn a_file_of_an_earlier_version_reads_back_as_it_was_built(
        version in prop::sample::select(&[0, 2, 3][..]),
        records in prop::collection::vec(written_earlier(), 0..40),
    ) {
        for bytes in Bytes::both_orders() {
            let (file, expected) = build_earlier(version, &bytes, &records);
            prop_assert_eq!(both(&file), expected);
        }
    }
}
