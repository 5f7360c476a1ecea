//! Files one behind the other, the first torn at every byte, of every version and byte order.

mod support;

use std::io;

use simpletrace_format::{ErrorKind, EventId, Header, Recovered, RecoveringReader};
use support::bytes::Bytes;
use support::reading::{Owned, stream};
use support::recovering::{Item, recover};
use support::sources::Failing;

const NOW: u64 = 5_000_000_000_000;

/// A file whose names differ from build to build.
fn file(version: u64, big: bool, build: &str) -> Vec<u8> {
    let mut file = Bytes::new(big).header_of_version(version);
    if version == 4 {
        file = (0..3).fold(file, |file, id| file.mapping(id, &format!("{build}_{id}")));
    }
    let event = |file: Bytes, id| {
        file.event_of_version(version, id, NOW + id, 42, |args| {
            if version == 0 { args.u64(3) } else { args.string(b"a string of some length, longer than headers are") }
        })
    };
    (0..3).fold(file, event).build()
}

fn moved(record: &Owned, by: u64) -> Owned {
    let mut record = record.clone();
    let (Owned::Mapping { offset, .. } | Owned::Event { offset, .. } | Owned::Dropped { offset, .. }) = &mut record;
    *offset += by;
    record
}

#[test]
fn all_of_the_second_file_comes_out_behind_its_header_wherever_the_first_is_torn() {
    for version in [4, 3, 2] {
        for second_version in [4, 3, 2, 0] {
            for (big, second_big) in [(false, false), (false, true), (true, false), (true, true)] {
                let (first, second) = (file(version, big, "one"), file(second_version, second_big, "other"));
                let header = Header::parse(&second).unwrap();
                let records = stream(&second[..]).records;
                for cut in 24..=first.len() {
                    let whole = [&first[..cut], &second].concat();
                    let items = recover(&whole);
                    let place = items.iter().position(|item| *item == Item::NewFile(header));
                    let Some(place) = place else {
                        // The torn record ends exactly at a record of the second file, which is of the same kind.
                        // Version 2 does not say when the process changes.
                        let is_alike = version == second_version || (version, second_version) == (2, 3);
                        let has_sign = version == 4 || !is_alike || big != second_big;
                        assert!(!has_sign, "no header: {version}, {header:?}, {cut}: {items:?}");
                        assert!(!items.iter().any(|item| matches!(item, Item::Damage { .. })), "{items:?}");
                        continue;
                    };
                    let expected: Vec<_> =
                        records.iter().map(|record| Item::Record(moved(record, cut as u64))).collect();
                    assert_eq!(items[place + 1..], expected, "{version}, {header:?}, cut at {cut}");
                    let before = stream(&first[..cut]).records;
                    let before: Vec<_> = before.into_iter().map(Item::Record).collect();
                    assert_eq!(items[..before.len()], before, "{version}, {header:?}, cut at {cut}");
                }
            }
        }
    }
}

#[test]
fn records_behind_a_header_of_an_unknown_version_wait_for_the_next_known_one() {
    let (first, second) = (file(4, false, "one"), file(4, true, "other"));
    let unknown = Bytes::little().header_of_version(5).bytes(&first[24..]).build();
    let items = recover(&[first.clone(), unknown.clone(), second].concat());
    let damage = items.iter().position(|item| !matches!(item, Item::Record(_)));
    assert_eq!(damage, Some(6));
    let Item::Damage { offset, skipped_bytes, kind, .. } = &items[6] else { panic!("{items:?}") };
    assert_eq!((*offset, *skipped_bytes), (first.len() as u64, unknown.len() as u64));
    assert_eq!(*kind, format!("{:?}", ErrorKind::UnsupportedVersion(5)));
    assert!(matches!(items[7], Item::NewFile(_)));
    assert_eq!(items.len(), 8 + 6);
}

#[test]
fn a_second_header_that_is_cut_is_torn_there() {
    for version in [0, 4] {
        let first = file(version, false, "one");
        let header = Bytes::little().header_of_version(version).build();
        for cut in 1..header.len() {
            let items = recover(&[&first[..], &header[..cut]].concat());
            let Some(Item::Damage { offset, skipped_bytes, resumed_at, .. }) = items.last() else {
                panic!("{items:?}")
            };
            assert_eq!((*offset, *skipped_bytes, *resumed_at), (first.len() as u64, cut as u64, None));
        }
    }
}

#[test]
fn an_error_of_the_source_ends_the_reading_even_behind_damage() {
    let first = file(4, false, "one");
    for damage in [&[][..], &[7; 100], &[0; 100]] {
        let whole = [&first[..], damage].concat();
        let mut reader = RecoveringReader::new(Failing::after(&whole)).unwrap();
        for _ in 0..6 {
            assert!(matches!(reader.next_item(), Ok(Some(Recovered::Record(_)))));
        }
        let error = reader.next_item().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Io(inner) if inner.kind() == io::ErrorKind::ConnectionReset));
        assert!(matches!(reader.next_item(), Ok(None)));
    }
}

#[test]
fn damage_says_what_was_wrong_and_where_reading_goes_on() {
    let first = file(4, false, "one");
    let text = |file: &[u8]| {
        let mut reader = RecoveringReader::new(file).unwrap();
        while let Some(item) = reader.next_item().unwrap() {
            if let Recovered::Damage(damage) = item {
                return damage.to_string();
            }
        }
        panic!("no damage")
    };
    let event =
        |length: u32, payload: &[u8]| Bytes::little().event_of_length(1, NOW, length, 42).bytes(payload).build();
    let good = [event(24, b""), event(24, b"")].concat();
    let at = first.len();
    let (behind, inside) = (at + 40, at + 32);
    assert_eq!(
        text(&[&first[..], &[0; 40], &good].concat()),
        format!("offset {at}: mapping record without a name; 40 bytes skipped, reading goes on at offset {behind}")
    );
    assert_eq!(
        text(&[&first[..], &[0; 40]].concat()),
        format!("offset {at}: mapping record without a name; 40 bytes skipped, up to the end")
    );
    assert_eq!(
        text(&[&first[..], &[1]].concat()),
        format!("offset {at}: the file ends inside a record, 1 bytes into it")
    );
    assert_eq!(
        text(&[&first[..], &event(100, b""), &good[..]].concat()),
        format!(
            "offset {at}: a record that would end behind the end of the file; 32 bytes skipped, \
             reading goes on at offset {inside}"
        )
    );
    let overlap = text(&[&first[..], &event(32, b""), &good[..]].concat());
    assert!(
        overlap.ends_with(&format!("; the record before is too long, reading goes on inside it at offset {inside}")),
        "{overlap}"
    );
    assert_eq!(
        ErrorKind::IdTooLarge(EventId(1 << 40)).to_string(),
        "event 1099511627776, which is far above the number of events"
    );
}
