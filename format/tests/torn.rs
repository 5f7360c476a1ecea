//! A file torn at every byte: every intact record comes out, and the tear is named.

mod support;

use simpletrace_format::ErrorKind;
use support::bytes::Bytes;
use support::reading::{Fault, both};

/// A file with a record of every kind, and where each of them ends.
fn specimen(bytes: Bytes) -> (Vec<u8>, Vec<usize>) {
    let file = bytes.header();
    let mut ends = vec![file.len()];
    let file = file.mapping(0, "h_mix");
    ends.push(file.len());
    let file = file.event(0, 1_000, 42, |args| args.u64(7).string(b"thread-1").u64(u64::MAX));
    ends.push(file.len());
    let file = file.dropped(2_000, 42, 3);
    ends.push(file.len());
    let file = file.mapping(1, "h_noarg");
    ends.push(file.len());
    let file = file.event(1, 3_000, 42, |args| args);
    ends.push(file.len());
    let file = file.event(0x8000_0000_0000_0000, 4_000, 42, |args| args.string(b""));
    ends.push(file.len());
    (file.build(), ends)
}

#[test]
fn a_tear_at_any_byte_leaves_every_record_before_it_and_is_told_with_its_offset_and_size() {
    for bytes in Bytes::both_orders() {
        let (file, ends) = specimen(bytes);
        check_every_tear(&file, &ends);
    }
}

fn check_every_tear(file: &[u8], ends: &[usize]) {
    let whole = both(file);
    assert_eq!(whole.fault, None);
    assert_eq!(whole.records.len(), ends.len() - 1);

    for cut in ends[0]..=file.len() {
        let outcome = both(&file[..cut]);
        let intact = ends.iter().filter(|&&end| end <= cut).count() - 1;
        let tear = ends[intact];
        assert_eq!(outcome.records, whole.records[..intact], "cut at {cut}");
        assert_eq!(outcome.stopped_at, Some(tear as u64), "cut at {cut}");
        let torn = (cut > tear).then(|| Fault::new(tear as u64, &ErrorKind::TornTail((cut - tear) as u64)));
        assert_eq!(outcome.fault, torn, "cut at {cut}");
    }
}

/// The same for an earlier version.
fn specimen_of_version(version: u64, bytes: Bytes) -> (Vec<u8>, Vec<usize>) {
    let mut file = bytes.header_of_version(version);
    let mut ends = vec![file.len()];
    for (id, timestamp_ns) in [(0, 1_000), (1, 0), (0xffff_ffff_ffff_fffe, 2_000), (1 << 63, 3_000)] {
        file = match id {
            0 => file.event_of_version(version, id, timestamp_ns, 42, |args| args.u64(7).string(b"thread-1").u64(8)),
            1 => file.event_of_version(version, id, timestamp_ns, 42, |args| args),
            0xffff_ffff_ffff_fffe => file.dropped_of_version(version, timestamp_ns, 42, 3),
            _ => file.event_of_version(version, id, timestamp_ns, 42, |args| args.string(b"")),
        };
        ends.push(file.len());
    }
    (file.build(), ends)
}

#[test]
fn a_tear_at_any_byte_of_a_file_of_an_earlier_version_is_told_as_well() {
    for version in [0, 2, 3] {
        for bytes in Bytes::both_orders() {
            let (file, ends) = specimen_of_version(version, bytes);
            check_every_tear(&file, &ends);
        }
    }
}

#[test]
fn a_tear_far_inside_the_longest_record_is_told_with_all_the_bytes_that_are_left() {
    let file = Bytes::little().header().event_of_length(0, 1, 262_144, 2).zeros(262_119).build();
    let outcome = both(&file);
    assert_eq!(outcome.records, []);
    assert_eq!(outcome.fault, Some(Fault::new(24, &ErrorKind::TornTail(262_151))));
}
