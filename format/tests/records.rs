//! Each kind of record, each fault, each limit.

mod support;

use simpletrace_format::events::{ArgType, Width};
use simpletrace_format::{
    ErrorKind, EventId, MAX_NAME_BYTES, MAX_RECORD_BYTES, Namespace, Record, SliceReader, Special, Value,
};
use support::bytes::Bytes;
use support::reading::{Fault, Owned, both, fault};

/// The offset of the first record.
const FIRST: u64 = 24;

fn headers() -> [Bytes; 2] {
    Bytes::both_orders().map(Bytes::header)
}

#[test]
fn a_mapping_record_gives_its_id_and_name() {
    for bytes in headers() {
        let outcome = both(&bytes.mapping(44, "bdrv_co_preadv").build());
        assert_eq!(
            outcome.records,
            [Owned::Mapping { offset: 24, id: EventId(44), name: "bdrv_co_preadv".to_owned() }]
        );
        assert_eq!((outcome.stopped_at, outcome.fault), (Some(24 + 20 + 14), None));
    }
}

#[test]
fn an_event_record_gives_every_field_and_its_payload() {
    for bytes in headers() {
        let file = bytes
            .event(0x0102_0304_0506_0708, 0x1112_1314_1516_1718, 0x2122_2324, |args| {
                args.u64(0x3132_3334_3536_3738).string(b"a.qcow2")
            })
            .build();
        let outcome = both(&file);
        assert_eq!(
            outcome.records,
            [Owned::Event {
                offset: 24,
                id: EventId(0x0102_0304_0506_0708),
                timestamp_ns: 0x1112_1314_1516_1718,
                pid: 0x2122_2324,
                payload: file[24 + 32..].to_vec(),
            }]
        );
        assert_eq!((outcome.stopped_at, outcome.fault), (Some(24 + 32 + 19), None));
    }
}

#[test]
fn an_event_record_without_arguments_has_an_empty_payload() {
    for bytes in headers() {
        let outcome = both(&bytes.event(0, 0, 0, |args| args).build());
        assert_eq!(
            outcome.records,
            [Owned::Event { offset: 24, id: EventId(0), timestamp_ns: 0, pid: 0, payload: vec![] }]
        );
    }
}

#[test]
fn a_dropped_record_gives_its_count() {
    for bytes in headers() {
        for count in [0, 18, u64::MAX] {
            let outcome = both(&bytes.clone().dropped(77, 42, count).build());
            assert_eq!(outcome.records, [Owned::Dropped { offset: 24, timestamp_ns: 77, pid: 42, count }]);
            assert_eq!((outcome.stopped_at, outcome.fault), (Some(24 + 40), None));
        }
    }
}

#[test]
fn mappings_may_come_late_and_records_stand_at_any_offset() {
    let file = Bytes::little()
        .header()
        .mapping(0, "a")
        .event(0, 1, 1, |args| args.string(b"xyz"))
        .mapping(1, "late")
        .dropped(2, 1, 9)
        .event(1, 3, 1, |args| args)
        .build();
    let offsets: Vec<u64> = both(&file)
        .records
        .iter()
        .map(|record| match *record {
            Owned::Mapping { offset, .. } | Owned::Event { offset, .. } | Owned::Dropped { offset, .. } => offset,
        })
        .collect();
    assert_eq!(offsets, [24, 45, 84, 108, 148]);
    assert_eq!(file.len(), 180);
}

#[test]
fn arguments_are_read_as_their_declaration_says() {
    for bytes in headers() {
        let file = bytes
            .event(3, 0, 0, |args| {
                args.u64(-5_i64 as u64)
                    .u64(0xffff_ffff_ffff_ffff)
                    .u64(0x5560_6119_a3e0)
                    .string(b"file")
                    .u64(1)
                    .u64(2)
                    .u64(237)
                    .string(b"")
            })
            .build();
        let mut reader = SliceReader::new(&file).unwrap();
        let Some(Record::Event(event)) = reader.next_record().unwrap() else {
            panic!("an event record");
        };
        let mut args = event.payload.args();
        assert_eq!(args.next(ArgType::Signed(Width::W32)), Some(Value::Signed(-5)));
        assert_eq!(args.next(ArgType::Unsigned(Width::W64)), Some(Value::Unsigned(u64::MAX)));
        assert_eq!(args.next(ArgType::Pointer), Some(Value::Pointer(0x5560_6119_a3e0)));
        assert_eq!(args.next(ArgType::String), Some(Value::String(b"file")));
        assert_eq!(args.next(ArgType::Bool), Some(Value::Bool(true)));
        assert_eq!(args.next(ArgType::Bool), Some(Value::Unsigned(2)));
        assert_eq!(args.next(ArgType::Char), Some(Value::Signed(237)));
        assert_eq!(args.next(ArgType::String), Some(Value::String(b"")));
        assert_eq!(args.rest(), b"");
        assert_eq!(args.next(ArgType::Bool), None);
        assert_eq!(args.next(ArgType::String), None);
    }
}

#[test]
fn an_argument_that_reaches_past_its_payload_takes_nothing() {
    let file = Bytes::little()
        .header()
        .event(3, 0, 0, |args| args.u64(9).u32(111).bytes(b"thread-2-15"))
        .event(4, 0, 0, |args| args)
        .build();
    let mut reader = SliceReader::new(&file).unwrap();
    let Some(Record::Event(event)) = reader.next_record().unwrap() else {
        panic!("an event record");
    };
    let mut args = event.payload.args();
    assert_eq!(args.word(), Some(9));
    let rest = args.rest();
    assert_eq!(rest.len(), 15);
    assert_eq!(args.string(), None);
    assert_eq!(args.rest(), rest);
    assert_eq!(args.word(), Some(u64::from_le_bytes(*b"\x6f\0\0\0thre")));
    assert_eq!(args.word(), None);
    assert_eq!(args.rest(), b"ad-2-15");
    // The record's own length is right, so the next one is found all the same.
    assert!(matches!(reader.next_record(), Ok(Some(Record::Event(event))) if event.id == EventId(4)));
}

#[test]
fn a_string_whose_length_is_cut_takes_nothing() {
    let file = Bytes::big().header().event(3, 0, 0, |args| args.bytes(b"\0\0\0")).build();
    let mut reader = SliceReader::new(&file).unwrap();
    let Some(Record::Event(event)) = reader.next_record().unwrap() else {
        panic!("an event record");
    };
    let mut args = event.payload.args();
    assert_eq!(args.string(), None);
    assert_eq!(args.rest(), b"\0\0\0");
}

#[test]
fn a_record_type_that_is_neither_mapping_nor_event_is_rejected() {
    for bytes in headers() {
        for word in [2, 7, 1 << 56, 1 << 63, u64::MAX - 1] {
            let file = bytes.clone().mapping(0, "a").u64(word).zeros(64).build();
            let kind = ErrorKind::UnknownRecordType(word);
            assert_eq!(fault(&file), Fault::new(FIRST + 21, &kind));
        }
    }
}

#[test]
fn a_record_type_is_rejected_even_where_the_file_ends_behind_it() {
    let file = Bytes::little().header().u64(7).build();
    assert_eq!(fault(&file), Fault::new(24, &ErrorKind::UnknownRecordType(7)));
}

#[test]
fn a_second_file_header_is_found_in_either_byte_order_and_any_version() {
    for bytes in headers() {
        for second in Bytes::both_orders() {
            for version in [0, 2, 3, 4, 99] {
                let second = second.clone().header_of_version(version).mapping(0, "b").build();
                let file = bytes.clone().mapping(0, "a").bytes(&second).build();
                let outcome = both(&file);
                assert_eq!(outcome.records.len(), 1);
                assert_eq!(outcome.fault, Some(Fault::new(FIRST + 21, &ErrorKind::SecondHeader)));
            }
        }
    }
}

#[test]
fn a_second_header_is_known_from_its_first_sixteen_bytes() {
    let file = Bytes::little().header().header().build();
    for cut in 25..40 {
        let kind = ErrorKind::TornTail(cut as u64 - 24);
        assert_eq!(fault(&file[..cut]), Fault::new(24, &kind), "{cut}");
    }
    for cut in 40..=48 {
        assert_eq!(fault(&file[..cut]), Fault::new(24, &ErrorKind::SecondHeader), "{cut}");
    }
}

#[test]
fn a_header_id_without_the_magic_is_just_an_unknown_type() {
    let file = Bytes::little().header().u64(u64::MAX).u64(4).build();
    assert_eq!(fault(&file), Fault::new(24, &ErrorKind::UnknownRecordType(u64::MAX)));
}

#[test]
fn a_record_shorter_than_its_header_is_rejected_with_its_offset() {
    for bytes in headers() {
        for length in 0..24 {
            let file = bytes.clone().mapping(0, "a").event_of_length(0, 1, length, 2).zeros(64).build();
            let kind = ErrorKind::RecordTooShort(length);
            assert_eq!(fault(&file), Fault::new(FIRST + 21, &kind));
        }
    }
}

#[test]
fn a_wrong_length_is_damage_even_where_the_file_ends_behind_it() {
    for (length, kind) in [(0, ErrorKind::RecordTooShort(0)), (u32::MAX, ErrorKind::RecordTooLong(u32::MAX))] {
        let file = Bytes::little().header().u64(1).u64(0).u64(0).u32(length).build();
        assert_eq!(fault(&file), Fault::new(24, &kind));
    }
}

#[test]
fn a_record_of_the_greatest_length_is_read() {
    for bytes in headers() {
        let payload = vec![0xa5; MAX_RECORD_BYTES as usize - 24];
        let file = bytes.event_of_length(5, 6, MAX_RECORD_BYTES, 7).bytes(&payload).mapping(1, "next").build();
        let outcome = both(&file);
        assert_eq!(outcome.fault, None);
        assert_eq!(
            outcome.records,
            [
                Owned::Event { offset: 24, id: EventId(5), timestamp_ns: 6, pid: 7, payload },
                Owned::Mapping { offset: 24 + 8 + 262_144, id: EventId(1), name: "next".to_owned() }
            ]
        );
    }
}

#[test]
fn a_record_of_one_byte_more_is_rejected_before_its_payload_is_waited_for() {
    assert_eq!(MAX_RECORD_BYTES, 262_144);
    for bytes in headers() {
        for length in [262_145, 1 << 31, u32::MAX] {
            let kind = ErrorKind::RecordTooLong(length);
            let start = bytes.clone().event_of_length(5, 6, length, 7);
            assert_eq!(fault(&start.clone().build()), Fault::new(24, &kind));
            assert_eq!(fault(&start.zeros(262_200).build()), Fault::new(24, &kind));
        }
    }
}

#[test]
fn a_dropped_record_of_another_length_than_32_is_rejected() {
    for bytes in headers() {
        for length in (24..32).chain([33, 40, 262_144]) {
            let file = bytes.clone().event_of_length(u64::MAX - 1, 1, length, 2).zeros(64).build();
            assert_eq!(fault(&file), Fault::new(24, &ErrorKind::DroppedLength(length)));
        }
    }
}

#[test]
fn an_event_record_with_the_id_of_a_header_is_rejected() {
    for bytes in headers() {
        for length in [24, 32, 262_144] {
            let file = bytes.clone().event_of_length(u64::MAX, 1, length, 2).zeros(64).build();
            assert_eq!(fault(&file), Fault::new(24, &ErrorKind::MisplacedTraceBegin));
        }
    }
}

#[test]
fn a_special_id_with_no_known_meaning_is_handed_out_as_it_is() {
    for bytes in headers() {
        for id in [1 << 63, (1 << 63) + 1, u64::MAX - 2] {
            let file = bytes.clone().event(id, 1, 2, |args| args.bytes(b"?")).build();
            let outcome = both(&file);
            assert_eq!(
                outcome.records,
                [Owned::Event { offset: 24, id: EventId(id), timestamp_ns: 1, pid: 2, payload: b"?".to_vec() }]
            );
            assert_eq!(EventId(id).namespace(), Namespace::Special(Special::Reserved(id)));
        }
    }
}

#[test]
fn the_special_namespace_begins_at_two_to_the_sixty_third() {
    assert_eq!(EventId((1 << 63) - 1).namespace(), Namespace::Ordinary);
    assert_eq!(EventId(0).namespace(), Namespace::Ordinary);
    assert_eq!(EventId::FIRST_SPECIAL.namespace(), Namespace::Special(Special::Reserved(1 << 63)));
    assert_eq!(EventId(u64::MAX - 1), EventId::DROPPED);
    assert_eq!(EventId::DROPPED.namespace(), Namespace::Special(Special::Dropped));
    assert_eq!(EventId(u64::MAX), EventId::TRACE_BEGIN);
    assert_eq!(EventId::TRACE_BEGIN.namespace(), Namespace::Special(Special::TraceBegin));
}

#[test]
fn ids_are_shown_by_their_namespace() {
    let shown = [0, 44, (1 << 63) - 1, 1 << 63, u64::MAX - 2, u64::MAX - 1, u64::MAX].map(|id| EventId(id).to_string());
    assert_eq!(
        shown,
        [
            "event 0",
            "event 44",
            "event 9223372036854775807",
            "special event 0x8000000000000000",
            "special event 0xfffffffffffffffd",
            "dropped",
            "__trace_begin",
        ]
    );
}

#[test]
fn a_mapping_without_a_name_is_rejected() {
    for bytes in headers() {
        let file = bytes.mapping(0, "a").mapping(1, "").mapping(2, "c").build();
        assert_eq!(fault(&file), Fault::new(FIRST + 21, &ErrorKind::EmptyName));
    }
}

#[test]
fn a_stretch_of_zero_bytes_is_a_mapping_without_a_name() {
    for zeros in [20, 4096, 65536] {
        let file = Bytes::little().header().zeros(zeros).build();
        assert_eq!(fault(&file), Fault::new(24, &ErrorKind::EmptyName));
    }
    let file = Bytes::little().header().zeros(19).build();
    assert_eq!(fault(&file), Fault::new(24, &ErrorKind::TornTail(19)));
}

#[test]
fn a_name_of_the_greatest_length_is_read_and_one_byte_more_is_rejected() {
    assert_eq!(MAX_NAME_BYTES, 1024);
    for bytes in headers() {
        let name = "n".repeat(1024);
        let outcome = both(&bytes.clone().mapping(1, &name).build());
        assert_eq!(outcome.records, [Owned::Mapping { offset: 24, id: EventId(1), name }]);

        let file = bytes.clone().mapping(1, &"n".repeat(1025)).build();
        assert_eq!(fault(&file), Fault::new(24, &ErrorKind::NameTooLong(1025)));
        let file = bytes.u64(0).u64(1).u32(1 << 31).build();
        assert_eq!(fault(&file), Fault::new(24, &ErrorKind::NameTooLong(1 << 31)));
    }
}

#[test]
fn a_name_that_is_not_utf8_is_rejected_and_one_that_is_comes_through() {
    let file = Bytes::little().header().mapping(1, "événement").build();
    assert!(matches!(&both(&file).records[..], [Owned::Mapping { name, .. }] if name == "événement"));

    for name in [&b"\xff"[..], b"caf\xc3", b"ok\xed\xa0\x80"] {
        let file = Bytes::little().header().u64(0).u64(1).string(name).build();
        assert_eq!(fault(&file), Fault::new(24, &ErrorKind::NameNotUtf8));
    }
}

#[test]
fn nothing_is_read_behind_damage() {
    let file = Bytes::little().header().mapping(0, "a").u64(7).mapping(1, "b").event(1, 1, 1, |args| args).build();
    let outcome = both(&file);
    assert_eq!(outcome.records.len(), 1);
    assert_eq!(outcome.stopped_at, Some(45));
}
