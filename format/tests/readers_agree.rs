//! Whatever the bytes and however they come, the two readers say the same.

mod support;

use std::io::{self, Read};

use proptest::prelude::*;
use simpletrace_format::{ByteOrder, ErrorKind, Record, StreamReader};
use support::bytes::Bytes;
use support::reading::{Fault, headerless_slice, headerless_stream, slice, stream};
use support::sources::{Dribble, Failing};

/// One field's worth of bytes: words that mean something to a reader, and words that do not.
fn field() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        4 => prop_oneof![Just(0), Just(1), Just(u64::MAX), Just(u64::MAX - 1), Just(1 << 63)],
        1 => Just(0xf2b1_77cb_0aa4_29b4),
        2 => 0_u64..64,
        1 => any::<u64>(),
    ];
    let half = prop_oneof![
        4 => 0_u32..48,
        1 => prop_oneof![Just(1024), Just(1025), Just(262_144), Just(262_145), Just(u32::MAX)],
        1 => any::<u32>(),
    ];
    prop_oneof![
        6 => (word, any::<bool>()).prop_map(|(word, big)| Bytes::new(big).u64(word).build()),
        4 => (half, any::<bool>()).prop_map(|(half, big)| Bytes::new(big).u32(half).build()),
        2 => prop::collection::vec(any::<u8>(), 0..24),
    ]
}

/// A record that is right.
fn record(big: bool) -> impl Strategy<Value = Vec<u8>> {
    let start = move || Bytes::new(big);
    prop_oneof![
        (0_u64..9, "[a-z_]{1,12}").prop_map(move |(id, name)| start().mapping(id, &name).build()),
        (any::<u64>(), any::<u64>(), prop::collection::vec(any::<u8>(), 0..40)).prop_map(move |(id, time, payload)| {
            start().event(id >> 1, time, 1, |args| args.bytes(&payload)).build()
        }),
        any::<u64>().prop_map(move |count| start().dropped(5, 1, count).build()),
    ]
}

/// A record that is right in a file of `version`.
fn record_of_version(version: u64, big: bool) -> impl Strategy<Value = Vec<u8>> {
    let start = move || Bytes::new(big);
    prop_oneof![
        (any::<u64>(), any::<u64>(), prop::collection::vec(any::<u8>(), 0..40)).prop_map(move |(id, time, payload)| {
            start().event_of_version(version, id >> 1, time, 1, |args| args.bytes(&payload)).build()
        }),
        any::<u64>().prop_map(move |count| start().dropped_of_version(version, 5, 1, count).build()),
    ]
}

/// A change to a file: (place, what).
fn mutate(file: &mut Vec<u8>, mutations: &[(prop::sample::Index, Mutation)]) {
    for (place, mutation) in mutations {
        if file.is_empty() {
            return;
        }
        let at = place.index(file.len());
        match mutation {
            Mutation::Flip(bit) => file[at] ^= 1 << bit,
            Mutation::Cut => file.truncate(at),
            Mutation::Insert(bytes) => drop(file.splice(at..at, bytes.iter().copied())),
            Mutation::Remove(count) => drop(file.drain(at..(at + count).min(file.len()))),
        }
    }
}

#[derive(Debug, Clone)]
enum Mutation {
    Flip(u8),
    Cut,
    Insert(Vec<u8>),
    Remove(usize),
}

fn mutation() -> impl Strategy<Value = (prop::sample::Index, Mutation)> {
    let what = prop_oneof![
        4 => (0_u8..8).prop_map(Mutation::Flip),
        1 => Just(Mutation::Cut),
        2 => field().prop_map(Mutation::Insert),
        2 => (1_usize..24).prop_map(Mutation::Remove),
    ];
    (any::<prop::sample::Index>(), what)
}

/// How a source hands out its bytes; at least one of the sizes is not an interruption.
fn pattern() -> impl Strategy<Value = Vec<usize>> {
    (prop::collection::vec(0_usize..40, 0..6), 1_usize..100).prop_map(|(mut pattern, last)| {
        pattern.push(last);
        pattern
    })
}

#[track_caller]
fn assert_agreement(file: &[u8], pattern: &[usize]) {
    let outcome = slice(file);
    assert_eq!(stream(file), outcome, "all at once");
    assert_eq!(stream(Dribble::new(file, &[1])), outcome, "byte by byte");
    assert_eq!(stream(Dribble::new(file, pattern)), outcome, "in pieces of {pattern:?}");
    // A source that fails where the file ends: the same records, then its error instead of a clean end or a tear.
    let failed = stream(Failing::after(file));
    assert_eq!(failed.records, outcome.records);
    let torn = outcome.fault.as_ref().is_none_or(|fault| fault.kind.starts_with("TornTail"));
    if torn && outcome.stopped_at.is_some() {
        let fault = failed.fault.expect("the source's error");
        assert_eq!(Some(fault.offset), outcome.stopped_at);
        assert!(fault.kind.contains("the line went dead"), "{fault:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn on_random_fields_behind_a_header(
        big in any::<bool>(),
        fields in prop::collection::vec(field(), 0..40),
        pattern in pattern(),
    ) {
        let file = Bytes::new(big).header().bytes(&fields.concat()).build();
        assert_agreement(&file, &pattern);
    }

    #[test]
    fn on_random_fields_behind_the_header_of_any_version(
        version in prop::sample::select(&[0, 2, 3, 4][..]),
        big in any::<bool>(),
        fields in prop::collection::vec(field(), 0..40),
        pattern in pattern(),
    ) {
        let file = Bytes::new(big).header_of_version(version).bytes(&fields.concat()).build();
        assert_agreement(&file, &pattern);
    }

    #[test]
    fn on_files_of_earlier_versions_that_were_right_and_then_damaged(
        (version, big, records) in (prop::sample::select(&[0, 2, 3][..]), any::<bool>()).prop_flat_map(
            |(version, big)| (Just(version), Just(big), prop::collection::vec(record_of_version(version, big), 0..20)),
        ),
        mutations in prop::collection::vec(mutation(), 0..4),
        pattern in pattern(),
    ) {
        let mut file = Bytes::new(big).header_of_version(version).bytes(&records.concat()).build();
        mutate(&mut file, &mutations);
        assert_agreement(&file, &pattern);
    }

    #[test]
    fn on_random_fields_without_a_header(
        big in any::<bool>(),
        start in prop_oneof![Just(vec![]), record(false), record(true)],
        fields in prop::collection::vec(field(), 0..40),
        pattern in pattern(),
    ) {
        let file = [start, fields.concat()].concat();
        let order = if big { ByteOrder::Big } else { ByteOrder::Little };
        let outcome = headerless_slice(&file, order);
        prop_assert_eq!(&headerless_stream(&file[..], order), &outcome);
        prop_assert_eq!(&headerless_stream(Dribble::new(&file, &pattern), order), &outcome);
    }

    #[test]
    fn on_random_bytes(file in prop::collection::vec(any::<u8>(), 0..100), pattern in pattern()) {
        assert_agreement(&file, &pattern);
    }

    #[test]
    fn on_files_that_were_right_and_then_damaged(
        (big, records) in any::<bool>().prop_flat_map(|big| (Just(big), prop::collection::vec(record(big), 0..20))),
        mutations in prop::collection::vec(mutation(), 0..4),
        pattern in pattern(),
    ) {
        let mut file = Bytes::new(big).header().bytes(&records.concat()).build();
        mutate(&mut file, &mutations);
        assert_agreement(&file, &pattern);
    }
}

#[test]
fn interruptions_are_retried_even_inside_the_header() {
    let file = Bytes::big().header().mapping(3, "a").dropped(1, 2, 3).build();
    assert_eq!(stream(Dribble::new(&file, &[0, 0, 1, 0, 2])), slice(&file));
}

#[test]
fn an_io_error_inside_the_header_is_that_of_the_source() {
    let file = Bytes::little().header_of_version(0).build();
    for cut in 0..64 {
        let error = StreamReader::new(Failing::after(&file[..cut])).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Io(inner) if inner.kind() == io::ErrorKind::ConnectionReset));
        assert_eq!(error.offset(), 0);
    }
}

#[test]
fn an_io_error_comes_behind_every_record_that_is_whole_and_ends_the_reading() {
    let intact = Bytes::little().header().mapping(0, "a").event(0, 1, 2, |args| args.u64(3));
    let tear = intact.len();
    let file = intact.event(0, 4, 5, |args| args.u64(6)).build();
    for cut in tear..file.len() {
        let mut reader = StreamReader::new(Failing::after(&file[..cut])).unwrap();
        assert!(matches!(reader.next_record(), Ok(Some(Record::Mapping(_)))));
        assert!(matches!(reader.next_record(), Ok(Some(Record::Event(_)))));
        let error = reader.next_record().unwrap_err();
        assert_eq!(Fault::from(&error).offset, tear as u64, "cut at {cut}");
        assert!(matches!(error.kind(), ErrorKind::Io(inner) if inner.kind() == io::ErrorKind::ConnectionReset));
        assert!(!error.is_torn_tail());
        // The source itself would go on with a clean end now.
        assert!(matches!(reader.next_record(), Ok(None)));
    }
}

#[test]
fn a_source_that_goes_on_after_its_end_is_not_asked_again() {
    struct Reviving<'a>(Vec<&'a [u8]>);
    impl Read for Reviving<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.pop() {
                Some(mut bytes) => bytes.read(buffer),
                None => panic!("asked again"),
            }
        }
    }
    let first = Bytes::little().header().mapping(0, "a").build();
    let later = Bytes::little().mapping(1, "b").build();
    let mut reader = StreamReader::new(Reviving(vec![&later, b"", &first])).unwrap();
    assert!(matches!(reader.next_record(), Ok(Some(Record::Mapping(_)))));
    for _ in 0..3 {
        assert!(matches!(reader.next_record(), Ok(None)));
    }
}

#[test]
fn a_record_is_handed_out_before_the_source_is_asked_for_more() {
    /// Has one piece and must not be asked for another.
    struct Once<'a>(Option<&'a [u8]>);
    impl Read for Once<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.take().expect("asked while a record was at hand").read(buffer)
        }
    }
    let file = Bytes::little().header().mapping(0, "a").dropped(1, 2, 3).build();
    let mut reader = StreamReader::new(Once(Some(&file))).unwrap();
    assert!(matches!(reader.next_record(), Ok(Some(Record::Mapping(_)))));
    assert!(matches!(reader.next_record(), Ok(Some(Record::Dropped(_)))));
}
