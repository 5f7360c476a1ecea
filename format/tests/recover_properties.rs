//! Generated files: undamaged ones read as ever, damaged ones lose what was damaged and nothing else.

mod support;

use std::ops::Range;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use simpletrace_format::RecoveringReader;
use support::bytes::Bytes;
use support::reading::{Owned, stream};
use support::recovering::{Item, drain, records, recover};
use support::sources::Dribble;

/// A record of a file in the making: how long after the one before, and what.
#[derive(Debug, Clone)]
enum What {
    Event { id: u64, payload: Vec<u8> },
    Dropped,
    Mapping,
}

fn what() -> impl Strategy<Value = (u64, What)> {
    let word = prop_oneof![Just(0_u64), Just(1), Just(u64::MAX), 0..100_u64, any::<u64>()];
    let argument = prop_oneof![
        3 => word.prop_map(|word| word.to_le_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..30).prop_map(|text| Bytes::little().string(&text).build()),
    ];
    let payload = prop::collection::vec(argument, 0..5).prop_map(|arguments| arguments.concat());
    let what = prop_oneof![
        20 => (0..IDS, payload).prop_map(|(id, payload)| What::Event { id, payload }),
        1 => Just(What::Dropped),
        1 => Just(What::Mapping),
    ];
    (0..2_000_000_000_u64, what)
}

const IDS: u64 = 9;

/// A file and where its records are.
fn build(version: u64, big: bool, whats: &[(u64, What)]) -> (Vec<u8>, Vec<Range<usize>>) {
    let mut file = Bytes::new(big).header_of_version(version);
    let mut places = Vec::new();
    let mut start = file.len();
    let mut end_record = |file: &Bytes| {
        places.push(start..file.len());
        start = file.len();
    };
    if version == 4 {
        for id in 0..IDS {
            file = file.mapping(id, &format!("event_{id}"));
            end_record(&file);
        }
    }
    // Not small: where time began, zeros would be a time.
    let mut now = 5_000_000_000_000;
    for (number, (later, what)) in whats.iter().enumerate() {
        now += later;
        file = match what {
            What::Event { id, payload } => file.event_of_version(version, *id, now, 4242, |args| {
                let limit = if version == 0 { 48 } else { usize::MAX };
                args.bytes(&payload[..payload.len().min(limit)])
            }),
            What::Dropped => file.dropped_of_version(version, now, 4242, 3),
            What::Mapping if version == 4 => file.mapping(100 + number as u64, "late_event"),
            What::Mapping => continue,
        };
        end_record(&file);
    }
    (file.build(), places)
}

/// Replaces a block by another.
#[derive(Debug, Clone)]
enum Harm {
    Cut,
    Zero,
    Overwrite(Vec<u8>),
    Insert(Vec<u8>),
    /// A block of the file itself comes in here.
    Splice(prop::sample::Index, usize),
}

fn harm() -> impl Strategy<Value = Harm> {
    prop_oneof![
        Just(Harm::Cut),
        Just(Harm::Zero),
        prop::collection::vec(any::<u8>(), 300).prop_map(Harm::Overwrite),
        prop::collection::vec(any::<u8>(), 1..300).prop_map(Harm::Insert),
        (any::<prop::sample::Index>(), 1_usize..300).prop_map(|(from, size)| Harm::Splice(from, size)),
    ]
}

/// Does `harm` to the block; returns the damaged file and how long the block is in it.
fn damage(file: &[u8], block: &Range<usize>, harm: &Harm) -> (Vec<u8>, usize) {
    let new = match harm {
        Harm::Cut => vec![],
        Harm::Zero => vec![0; block.len()],
        Harm::Overwrite(bytes) => bytes[..block.len()].to_vec(),
        Harm::Insert(bytes) => bytes.clone(),
        Harm::Splice(from, size) => {
            let from = from.index(file.len());
            file[from..file.len().min(from + size)].to_vec()
        }
    };
    ([&file[..block.start], &new, &file[block.end..]].concat(), new.len())
}

/// Where a record of version 4 is.
fn place(record: &Owned) -> Range<u64> {
    let (Owned::Mapping { offset, .. } | Owned::Event { offset, .. } | Owned::Dropped { offset, .. }) = record;
    let size = match record {
        Owned::Mapping { name, .. } => 20 + name.len(),
        Owned::Event { payload, .. } => 32 + payload.len(),
        Owned::Dropped { .. } => 40,
    };
    *offset..offset + size as u64
}

/// Where a record is, in a file of version 2, 3 or 4.
fn place_of(version: u64) -> impl Fn(&Owned) -> Range<u64> {
    move |record| {
        let place = place(record);
        if version == 4 { place } else { place.start..place.end - 8 }
    }
}

/// The record as it would be so many bytes further on.
fn moved(record: &Owned, by: i64) -> Owned {
    let mut record = record.clone();
    match &mut record {
        Owned::Mapping { offset, .. } | Owned::Event { offset, .. } | Owned::Dropped { offset, .. } => {
            *offset = offset.checked_add_signed(by).expect("an offset in the damaged file");
        }
    }
    record
}

fn damages(items: &[Item]) -> Vec<&Item> {
    items.iter().filter(|item| !matches!(item, Item::Record(_))).collect()
}

proptest! {
    // A fixed seed: before version 4 a guess may be wrong, at the rate that docs/RECOVERY.md states, and must not fail a build now and
    // then. Other cases are the fuzzer's.
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: 500,
        rng_seed: RngSeed::Fixed(0x7ace),
        ..ProptestConfig::default()
    })]

    #[test]
    fn an_undamaged_file_gives_what_the_stream_reader_gives(
        version in prop::sample::select(&[0, 2, 3, 4][..]),
        big in any::<bool>(),
        whats in prop::collection::vec(what(), 0..60),
        piece in 1_usize..100,
    ) {
        let (file, _) = build(version, big, &whats);
        let expected = stream(&file[..]);
        prop_assert_eq!(&expected.fault, &None);
        let expected: Vec<_> = expected.records.into_iter().map(Item::Record).collect();
        prop_assert_eq!(&recover(&file), &expected);
        let dribbled = drain(RecoveringReader::new(Dribble::new(&file, &[piece, 0, 1])).unwrap());
        prop_assert_eq!(&dribbled, &expected);
    }

    #[test]
    fn all_records_before_and_behind_a_damaged_block_are_found_and_none_is_invented(
        big in any::<bool>(),
        whats in prop::collection::vec(what(), 5..60),
        start in any::<prop::sample::Index>(),
        size in 1_usize..300,
        harm in harm(),
        piece in 1_usize..100,
    ) {
        let (file, _) = build(4, big, &whats);
        let written = stream(&file[..]).records;
        let start = 24 + start.index(file.len() - 24);
        let block = match &harm {
            Harm::Insert(_) | Harm::Splice(..) => start..start,
            _ => start..file.len().min(start + size),
        };
        let (damaged, new_size) = damage(&file, &block, &harm);
        let by = new_size as i64 - block.len() as i64;
        let items = recover(&damaged);
        prop_assert_eq!(&drain(RecoveringReader::new(Dribble::new(&damaged, &[piece, 0, 1])).unwrap()), &items);
        let found = records(&items);

        let before: Vec<_> = written.iter().filter(|record| place(record).end <= block.start as u64).cloned().collect();
        prop_assert_eq!(&found[..before.len()], &before[..]);
        let behind: Vec<_> = written
            .iter()
            .filter(|record| place(record).start >= block.end as u64)
            .map(|record| moved(record, by))
            .collect();
        // Touching the block, or following upon what does.
        let mut damaged_block = block.start as u64..(block.start + new_size) as u64;
        let hurt: Vec<_> = found[before.len()..].iter().filter(|record| !behind.contains(record)).cloned().collect();
        for record in &hurt {
            let place = place(record);
            prop_assert!(
                place.start <= damaged_block.end && place.end >= damaged_block.start,
                "invented at {:?}, block {:?}: {:?}", place, damaged_block, record
            );
            damaged_block.end = damaged_block.end.max(place.end);
        }
        for record in behind.iter().filter(|record| !found.contains(record)) {
            // Unless a damaged record takes it in, from its start to its end, as the length in it says.
            let inside = place(record);
            let taken_in = hurt.iter().map(place).any(|hurt| hurt.start < inside.start && inside.end <= hurt.end);
            prop_assert!(taken_in, "lost: {:?}, block {:?}, hurt {:?}, {:?}", place(record), damaged_block, hurt.iter().map(place).collect::<Vec<_>>(), damages(&items));
        }
    }

    #[test]
    fn in_versions_2_and_3_all_records_before_and_behind_a_damaged_block_are_found(
        version in prop::sample::select(&[2, 3][..]),
        big in any::<bool>(),
        whats in prop::collection::vec(what(), 10..60),
        start in any::<prop::sample::Index>(),
        size in 1_usize..300,
        harm in harm(),
    ) {
        let (file, places) = build(version, big, &whats);
        let written = stream(&file[..]).records;
        let start = 24 + start.index(file.len() - 24);
        let block = match &harm {
            Harm::Insert(_) | Harm::Splice(..) => start..start,
            _ => start..file.len().min(start + size),
        };
        let (damaged, new_size) = damage(&file, &block, &harm);
        let by = new_size as i64 - block.len() as i64;
        let items = recover(&damaged);
        let found = records(&items);
        let before = places.iter().filter(|place| place.end <= block.start).count();
        let expected: Vec<_> = written[..before].iter().map(place_of(version)).collect();
        let found: Vec<_> = found.iter().map(place_of(version)).collect();
        prop_assert_eq!(&found[..before], &expected[..]);
        let behind = written.iter().map(place_of(version)).filter(|place| place.start >= block.end as u64);
        let moved = |offset: u64| offset.checked_add_signed(by).expect("an offset in the damaged file");
        let behind: Vec<_> = behind.map(|place| moved(place.start)..moved(place.end)).collect();
        let hurt: Vec<_> = found[before..].iter().filter(|place| !behind.contains(place)).collect();
        for lost in behind.iter().filter(|place| !found.contains(place)) {
            // Or several, as without a type word what is behind a damaged record may read as one.
            let start = hurt.iter().map(|hurt| hurt.start).min();
            let end = hurt.iter().map(|hurt| hurt.end).max();
            let taken_in = start.is_some_and(|start| start < lost.start) && end.is_some_and(|end| lost.start < end);
            prop_assert!(taken_in, "lost: {:?}, block {:?}, hurt {:?}, {:?}", lost, block, hurt, damages(&items));
        }
    }

    #[test]
    fn any_bytes_behind_a_header_are_read_to_their_end(
        version in prop::sample::select(&[0, 2, 3, 4][..]),
        big in any::<bool>(),
        words in prop::collection::vec(
            prop_oneof![Just(0), Just(1), Just(u64::MAX), Just(0xf2b1_77cb_0aa4_29b4), Just(24 << 32 | 1), 0..60_u64, any::<u64>()],
            0..80,
        ),
        odd in prop::collection::vec(any::<u8>(), 0..9),
    ) {
        let start = Bytes::new(big).header_of_version(version);
        let file = words.iter().fold(start, |file, &word| file.u64(word)).bytes(&odd).build();
        let items = recover(&file);
        prop_assert_eq!(&drain(RecoveringReader::new(Dribble::new(&file, &[1])).unwrap()), &items);
    }
}
