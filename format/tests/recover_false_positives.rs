//! How often a stretch that holds no record is taken for one. `docs/RECOVERY.md` states what this prints.

mod support;

use support::bytes::Bytes;
use support::recovering::{records, recover};

/// A small generator of numbers (xorshift64*), so that everyone measures on the same data.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// Any bytes, as from another file.
fn noise(random: &mut Random, size: usize) -> Vec<u8> {
    (0..size / 8).flat_map(|_| random.next().to_le_bytes()).collect()
}

/// Fields as they stand in records, without any order: small numbers, times of this trace, lengths, its process.
fn fields(random: &mut Random, size: usize, big: bool) -> Vec<u8> {
    let mut bytes = Bytes::new(big);
    while bytes.len() < size {
        bytes = match random.next() % 8 {
            0 => bytes.u64(0),
            1 => bytes.u64(1),
            2 => bytes.u64(random.next() % 64),
            3 => bytes.u64(NOW + random.next() % 1_000_000_000),
            4 => bytes.u32(24 + (random.next() % 64) as u32),
            5 => bytes.u32(4242),
            6 => bytes.u64(random.next()),
            _ => bytes.bytes(&[random.next() as u8]),
        };
    }
    bytes.build()
}

const NOW: u64 = 5_000_000_000_000;

/// The records that come out of a stretch between ten good ones and ten good ones, and how many of the twenty do.
fn measure(version: u64, big: bool, stretch: &[u8]) -> (usize, usize) {
    let mut file = Bytes::new(big).header_of_version(version);
    if version == 4 {
        file = (0..10).fold(file, |file, id| file.mapping(id, &format!("event_{id}")));
    }
    let event = |file: Bytes, id| file.event_of_version(version, id, NOW + id, 4242, |args| args.u64(7).u64(0));
    file = (0..10).fold(file, event).bytes(stretch);
    let behind = file.len();
    file = (0..10).fold(file, event);
    let good = if version == 4 { 30 } else { 20 };
    let found = records(&recover(&file.build()));
    let kept = found.iter().filter(|record| support::recovering::offset_of(record) >= behind as u64).count();
    (found.len() - kept - (good - 10), kept)
}

fn table(size: usize) -> Vec<(u64, &'static str, usize, usize)> {
    let mut rows = Vec::new();
    for version in [4, 3, 2] {
        for (kind, number) in [("random bytes", 0), ("random fields", 1)] {
            let (mut invented, mut kept) = (0, 0);
            for big in [false, true] {
                let mut random = Random(0x5eed_0001 + version);
                let stretch = if number == 0 { noise(&mut random, size) } else { fields(&mut random, size, big) };
                let (some, found) = measure(version, big, &stretch);
                invented += some;
                kept += found;
            }
            rows.push((version, kind, invented, kept));
        }
    }
    rows
}

#[test]
fn random_bytes_are_no_records() {
    for (version, kind, invented, kept) in table(1 << 18) {
        if kind == "random bytes" {
            assert_eq!((invented, kept), (0, 20), "version {version}");
        }
    }
}

/// `cargo test --release -p simpletrace-format --test recover_false_positives -- --ignored --nocapture`
#[test]
#[ignore = "takes a while; prints the table of docs/RECOVERY.md"]
fn measure_false_positives() {
    println!("version, stretch, records invented in 2 x 64 MiB, records found behind of 20");
    for (version, kind, invented, kept) in table(64 << 20) {
        println!("{version}, {kind}, {invented}, {kept}");
    }
}
