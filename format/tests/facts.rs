//! Side facts: what is written, what comes back, and that damage does not hide them.

mod support;

use simpletrace_format::{
    ByteOrder, ErrorKind, EventId, Facts, MappingRecord, Record, Recovered, RecoveringReader, SliceReader, TraceWriter,
};
use support::bytes::Bytes;

/// The facts of a file, by any reader: those that are none left out.
fn facts_of<'a>(records: impl IntoIterator<Item = MappingRecord<'a>>) -> Facts {
    let mut facts = Facts::default();
    records.into_iter().filter(MappingRecord::is_fact).for_each(|record| _ = facts.add(record.name));
    facts
}

#[test]
fn a_fact_is_a_mapping_record_byte_for_byte() {
    let mut facts = Facts::default();
    facts.set(Facts::HOST, "h");
    let little = [
        &[0xff; 8][..],
        &[0xb4, 0x29, 0xa4, 0x0a, 0xcb, 0x77, 0xb1, 0xf2, 4, 0, 0, 0, 0, 0, 0, 0],
        &[0, 0, 0, 0, 0, 0, 0, 0, 0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 6, 0, 0, 0],
        b"host=h",
    ]
    .concat();
    let big = [
        &[0xff; 8][..],
        &[0xf2, 0xb1, 0x77, 0xcb, 0x0a, 0xa4, 0x29, 0xb4, 0, 0, 0, 0, 0, 0, 0, 4],
        &[0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfd, 0, 0, 0, 6],
        b"host=h",
    ]
    .concat();
    for (order, expected) in [(ByteOrder::Little, little), (ByteOrder::Big, big)] {
        let mut file = TraceWriter::new(Vec::new(), order).unwrap();
        file.facts(&facts).unwrap();
        let file = file.into_inner();
        assert_eq!(file, expected);
        let records: Vec<_> = SliceReader::new(&file).unwrap().map(Result::unwrap).collect();
        assert_eq!(records, [Record::Mapping(MappingRecord { offset: 24, id: EventId(u64::MAX - 2), name: "host=h" })]);
    }
}

/// Reads on behind damage; returns the facts, and where damage was.
fn recovered(file: &[u8]) -> (Facts, Vec<(u64, Option<u64>)>) {
    let mut reader = RecoveringReader::new(file).unwrap();
    let (mut facts, mut damages) = (Facts::default(), Vec::new());
    while let Some(item) = reader.next_item().unwrap() {
        match item {
            Recovered::Record(Record::Mapping(record)) if record.is_fact() => _ = facts.add(record.name),
            Recovered::Damage(damage) => damages.push((damage.offset, damage.resumed_at)),
            _ => {}
        }
    }
    (facts, damages)
}

#[test]
fn facts_of_any_text_are_found_behind_damage() {
    for bytes in [Bytes::little(), Bytes::big()] {
        let longest = format!("host={}", "é".repeat(509));
        for text in ["anchor_ns=1,2", "program=\x1b[2J\n", "=", &longest] {
            let file = bytes
                .clone()
                .header()
                .zeros(40)
                .mapping(EventId::FACTS.0, text)
                .mapping(7, "a")
                .event(7, 5, 1, |args| args)
                .build();
            let (facts, damages) = recovered(&file);
            assert_eq!(damages, [(24, Some(64))], "{text:?}");
            assert_eq!(facts.is_empty(), text == "=", "{text:?}");
        }
    }
}

#[test]
fn what_cannot_be_a_fact_is_skipped_behind_damage() {
    for bytes in [Bytes::little(), Bytes::big()] {
        for text in [&b"host=\0"[..], b"host=\xff", b"host=\xc3"] {
            let file = bytes
                .clone()
                .header()
                .zeros(40)
                .u64(0)
                .u64(EventId::FACTS.0)
                .string(text)
                .mapping(7, "a")
                .event(7, 5, 1, |args| args)
                .build();
            let behind = 64 + 20 + text.len() as u64;
            assert_eq!(recovered(&file), (Facts::default(), vec![(24, Some(behind))]), "{text:?}");
        }
    }
}

#[test]
fn a_text_with_a_zero_byte_is_damage_like_a_name_with_one() {
    let file = Bytes::little().header().mapping(EventId::FACTS.0, "host=\0").event(7, 5, 1, |args| args).build();
    let mut reader = RecoveringReader::new(&file[..]).unwrap();
    let Some(Recovered::Damage(damage)) = reader.next_item().unwrap() else { panic!("no damage") };
    assert_eq!(damage.offset, 24);
    assert!(matches!(damage.kind, ErrorKind::NameWithZero));
}

/// More of them than there may be names: an id that is mapped behind them is known to recovery all the same.
#[test]
fn facts_take_no_room_from_names() {
    let mut bytes = Bytes::little().header();
    for number in 0..20_000 {
        bytes = bytes.mapping(EventId::FACTS.0, &format!("k{number}="));
    }
    // An id that recovery takes only if it was mapped.
    let file = bytes.mapping(1 << 20, "a").zeros(40).event(1 << 20, 5, 1, |args| args).build();
    let (facts, damages) = recovered(&file);
    assert_eq!(facts.iter().count(), Facts::MAX);
    let end = file.len() as u64;
    assert_eq!(damages, [(end - 72, Some(end - 32))]);
    let records = SliceReader::new(&file).unwrap().map_while(Result::ok);
    let mappings =
        records.filter_map(|record| if let Record::Mapping(mapping) = record { Some(mapping) } else { None });
    assert_eq!(facts_of(mappings), facts);
}
