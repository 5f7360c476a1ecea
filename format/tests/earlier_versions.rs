//! Versions 0, 2 and 3, and records without a header: each kind of record, each fault.

mod support;

use simpletrace_format::events::{ArgType, Width};
use simpletrace_format::{
    ByteOrder, ErrorKind, EventId, EventRecord, Header, Payload, Record, SliceReader, Value, Version,
};
use support::bytes::Bytes;
use support::reading::{Fault, Outcome, Owned, both, fault, headerless_slice, headerless_stream};

const DROPPED: u64 = 0xffff_ffff_ffff_fffe;
const TRACE_BEGIN: u64 = 0xffff_ffff_ffff_ffff;
const MAGIC: u64 = 0xf2b1_77cb_0aa4_29b4;
const INT: ArgType = ArgType::Signed(Width::W32);

/// The versions whose records tell their length.
const COUNTED: [u64; 2] = [2, 3];

/// The start of a file in both byte orders.
fn headers(version: u64) -> [Bytes; 2] {
    Bytes::both_orders().map(|bytes| bytes.header_of_version(version))
}

#[test]
fn a_record_of_version_0_has_six_words_and_neither_pid_nor_length() {
    for bytes in headers(0) {
        let file = bytes.event_of_words(0x0102, 0x1112_1314_1516_1718, &[1, 2, 3, 4, 5, 6]).build();
        let outcome = both(&file);
        assert_eq!(
            outcome.records,
            [Owned::Event {
                offset: 64,
                id: EventId(0x0102),
                timestamp_ns: 0x1112_1314_1516_1718,
                pid: 0,
                payload: file[64 + 16..].to_vec(),
            }]
        );
        assert_eq!((outcome.stopped_at, outcome.fault), (Some(128), None));
    }
}

#[test]
fn a_record_of_version_2_has_no_pid_whatever_stands_in_its_place() {
    for bytes in headers(2) {
        let file = bytes.untyped_event_of_length(7, 9, 32, 0xffff).u64(5).build();
        let outcome = both(&file);
        let payload = file[24 + 24..].to_vec();
        assert_eq!(outcome.records, [Owned::Event { offset: 24, id: EventId(7), timestamp_ns: 9, pid: 0, payload }]);
        assert_eq!((outcome.stopped_at, outcome.fault), (Some(24 + 32), None));
    }
}

#[test]
fn a_record_of_version_3_has_the_pid() {
    for bytes in headers(3) {
        let file = bytes.untyped_event_of_length(7, 9, 24 + 9, 0x2122_2324).string(b"disk0").build();
        let outcome = both(&file);
        let payload = file[24 + 24..].to_vec();
        assert_eq!(
            outcome.records,
            [Owned::Event { offset: 24, id: EventId(7), timestamp_ns: 9, pid: 0x2122_2324, payload }]
        );
        assert_eq!((outcome.stopped_at, outcome.fault), (Some(24 + 33), None));
    }
}

#[test]
fn a_dropped_record_gives_its_count_in_every_version() {
    for (version, offset, timestamp_ns, pid, size) in [(0, 64, 0, 0, 64), (2, 24, 77, 0, 32), (3, 24, 77, 42, 32)] {
        for bytes in headers(version) {
            for count in [0, 18, u64::MAX] {
                let outcome = both(&bytes.clone().dropped_of_version(version, 77, 42, count).build());
                assert_eq!(outcome.records, [Owned::Dropped { offset, timestamp_ns, pid, count }]);
                assert_eq!((outcome.stopped_at, outcome.fault), (Some(offset + size), None));
            }
        }
    }
}

#[test]
fn a_length_that_cannot_be_is_told_before_more_is_waited_for() {
    for version in COUNTED {
        for bytes in headers(version) {
            let with = |length| bytes.clone().u64(1).u64(2).u32(length).build();
            for length in [0, 23] {
                assert_eq!(fault(&with(length)), Fault::new(24, &ErrorKind::RecordTooShort(length)));
            }
            for length in [262_145, u32::MAX] {
                assert_eq!(fault(&with(length)), Fault::new(24, &ErrorKind::RecordTooLong(length)));
            }
            for length in [24, 262_144] {
                assert_eq!(fault(&with(length)), Fault::new(24, &ErrorKind::TornTail(20)));
            }
            let dropped = bytes.clone().u64(DROPPED).u64(2).u32(40).build();
            assert_eq!(fault(&dropped), Fault::new(24, &ErrorKind::DroppedLength(40)));
        }
    }
}

#[test]
fn the_longest_record_is_read() {
    for version in COUNTED {
        for bytes in headers(version) {
            let outcome = both(&bytes.event_of_version(version, 1, 2, 0, |args| args.zeros(262_120)).build());
            assert_eq!((outcome.records.len(), outcome.fault), (1, None));
        }
    }
}

#[test]
fn zeros_are_no_records_of_versions_2_and_3_and_the_first_event_at_time_0_of_version_0() {
    for version in COUNTED {
        for bytes in headers(version) {
            assert_eq!(fault(&bytes.zeros(100).build()), Fault::new(24, &ErrorKind::RecordTooShort(0)));
        }
    }
    for bytes in headers(0) {
        let outcome = both(&bytes.zeros(64 + 3).build());
        let zero = Owned::Event { offset: 64, id: EventId(0), timestamp_ns: 0, pid: 0, payload: vec![0; 48] };
        assert_eq!(outcome.records, [zero]);
        assert_eq!(outcome.fault, Some(Fault::new(128, &ErrorKind::TornTail(3))));
    }
}

#[test]
fn a_second_header_of_any_version_and_byte_order_is_told() {
    for version in [0, 2, 3] {
        for bytes in headers(version) {
            let intact = bytes.event_of_version(version, 1, 2, 3, |args| args.u64(4));
            let offset = intact.len() as u64;
            for second in [0, 2, 3, 4].into_iter().flat_map(headers) {
                let file = intact.clone().bytes(&second.build()).build();
                let outcome = both(&file);
                assert_eq!(outcome.records.len(), 1);
                assert_eq!(outcome.fault, Some(Fault::new(offset, &ErrorKind::SecondHeader)));
                let cut = &file[..offset as usize + 15];
                assert_eq!(fault(cut), Fault::new(offset, &ErrorKind::TornTail(15)));
            }
        }
    }
}

#[test]
fn an_event_with_the_id_of_a_file_header_is_misplaced() {
    for version in [0, 2, 3] {
        for bytes in headers(version) {
            let offset = bytes.len() as u64;
            let file = bytes.event_of_version(version, TRACE_BEGIN, MAGIC ^ 1, 3, |args| args.u64(4)).build();
            assert_eq!(fault(&file), Fault::new(offset, &ErrorKind::MisplacedTraceBegin));
        }
    }
}

/// The only record of a file.
fn only_event(file: &[u8]) -> EventRecord<'_> {
    let mut reader = SliceReader::new(file).unwrap();
    let Some(Record::Event(event)) = reader.next_record().unwrap() else {
        panic!("an event record");
    };
    event
}

#[test]
fn the_words_of_version_0_are_read_as_what_their_host_meant() {
    for bytes in headers(0) {
        let words = [0xffff_fffb, 0xffff_ffff_ffff_fffb, 0x5560_6119_a3e0, 1, 0xed, 0];
        let file = bytes.event_of_words(3, 1, &words).build();
        let mut args = only_event(&file).payload.args();
        assert_eq!(args.next(INT), Some(Value::Signed(-5)));
        assert_eq!(args.next(INT), Some(Value::Signed(-5)));
        assert_eq!(args.next(ArgType::String), Some(Value::Pointer(0x5560_6119_a3e0)));
        assert_eq!(args.next(ArgType::Bool), Some(Value::Bool(true)));
        assert_eq!(args.next(ArgType::Char), Some(Value::Signed(237)));
        assert_eq!(args.next(ArgType::Unsigned(Width::W64)), Some(Value::Unsigned(0)));
        assert_eq!(args.next(INT), None);
    }
}

#[test]
fn later_versions_take_a_word_of_32_bits_as_it_stands() {
    for version in [2, 3, 4] {
        for bytes in headers(version) {
            let file = bytes.event_of_version(version, 3, 1, 0, |args| args.u64(0xffff_fffb).string(b"s")).build();
            let mut args = only_event(&file).payload.args();
            assert_eq!(args.next(INT), Some(Value::Signed(0xffff_fffb)));
            assert_eq!(args.next(ArgType::String), Some(Value::String(b"s")));
            assert_eq!(args.left_over(), b"");
        }
    }
}

#[test]
fn the_zeros_that_fill_up_a_record_of_version_0_are_not_left_over() {
    for bytes in headers(0) {
        let file = bytes.event_of_words(3, 1, &[0, 7, 0, 8]).build();
        let mut args = only_event(&file).payload.args();
        let mut left_over = Vec::new();
        for _ in 0..6 {
            left_over.push(args.left_over().len() / 8);
            args.word();
        }
        assert_eq!(left_over, [4, 3, 2, 1, 0, 0]);
        assert_eq!((args.rest(), args.left_over()), (&b""[..], &b""[..]));
    }
    let header = |version| Header { version, byte_order: ByteOrder::Little };
    for (version, left_over) in [(Version::V0, 9), (Version::V2, 25), (Version::V3, 25), (Version::V4, 25)] {
        let payload = [&[1; 9][..], &[0; 16]].concat();
        assert_eq!(Payload::of(&payload, header(version)).args().left_over().len(), left_over);
    }
}

/// Reads records without a header with both readers, which must agree.
fn headerless(records: &[u8], order: ByteOrder) -> Outcome {
    let outcome = headerless_slice(records, order);
    assert_eq!(headerless_stream(records, order), outcome);
    outcome
}

#[test]
fn records_without_a_header_are_read_from_the_first_byte() {
    for (bytes, order) in Bytes::both_orders().into_iter().zip([ByteOrder::Little, ByteOrder::Big]) {
        let file = bytes.event(7, 1, 42, |args| args.u64(1)).dropped(2, 42, 3).build();
        let outcome = headerless(&file, order);
        assert_eq!(
            outcome.records,
            [
                Owned::Event { offset: 0, id: EventId(7), timestamp_ns: 1, pid: 42, payload: file[32..40].to_vec() },
                Owned::Dropped { offset: 40, timestamp_ns: 2, pid: 42, count: 3 },
            ]
        );
        assert_eq!((outcome.stopped_at, outcome.fault), (Some(80), None));
        let torn = headerless(&file[..41], order);
        assert_eq!((torn.records.len(), torn.fault), (1, Some(Fault::new(40, &ErrorKind::TornTail(1)))));
        let header = SliceReader::headerless(&file, order).header();
        assert_eq!(header, Header { version: Version::V4, byte_order: order });
    }
    let outcome = headerless(b"", ByteOrder::Little);
    assert_eq!((outcome.records, outcome.stopped_at, outcome.fault), (vec![], Some(0), None));
}

#[test]
fn a_file_that_has_a_header_after_all_or_the_other_byte_order_is_not_taken_for_records() {
    let file = Bytes::little().header().event(7, 1, 42, |args| args).build();
    assert_eq!(headerless(&file, ByteOrder::Little).fault, Some(Fault::new(0, &ErrorKind::SecondHeader)));
    assert_eq!(
        headerless(&file[24..], ByteOrder::Big).fault,
        Some(Fault::new(0, &ErrorKind::UnknownRecordType(1 << 56)))
    );
}
