//! Replaying segments: exactly what the recorder would have written.

#[path = "support/segment.rs"]
mod segment;

use segment::{Builder, RingBuilder};
use simpletrace_format::durable::{
    CHECKPOINT_BYTES, CHECKPOINTS_AT, Checkpoint, DIRECTORY_AT, Kind, NAMES_AT, RING_HEADER_BYTES, RINGS_AT, Replayed,
    ReplayedLosses, Ring, RingFault, RingPoint, Segment, SegmentError, Stamp, header_at, replay, ring_at,
};
use simpletrace_format::{ByteOrder, Record, SliceReader, TraceWriter};

/// A record in short.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Short {
    Map(u64, String),
    /// Id, ns, process, argument.
    Event(u64, u64, u32, u64),
    /// Ns, process, count.
    Dropped(u64, u32, u64),
}
use Short::{Dropped, Event, Map};

fn map(id: u64, name: &str) -> Short {
    Map(id, name.into())
}

fn read(bytes: &[u8]) -> Vec<Short> {
    let mut order = 0;
    SliceReader::headerless(bytes, ByteOrder::Little)
        .map(|record| {
            let (short, at_ns) = match record.unwrap() {
                Record::Mapping(record) => (Map(record.id.0, record.name.into()), order),
                Record::Event(record) => {
                    let bytes = record.payload.bytes();
                    let arg = bytes.first_chunk().map_or(bytes.len() as u64, |word| u64::from_le_bytes(*word));
                    (Event(record.id.0, record.timestamp_ns, record.pid, arg), record.timestamp_ns)
                }
                Record::Dropped(record) => {
                    (Dropped(record.timestamp_ns, record.pid, record.count), record.timestamp_ns)
                }
            };
            assert!(at_ns >= order, "out of order: {short:?}");
            order = at_ns;
            short
        })
        .collect()
}

/// Reads the rings of a segment, as `recover` does.
fn rings(segment: &Segment, bytes: &[u8]) -> Vec<Ring> {
    let mut room = bytes.len() as u64;
    let of_ring = |(index, &offset): (usize, &u64)| {
        let point = segment.checkpoint.rings.get(index).copied().unwrap_or_default();
        if !Ring::may_be_at(offset, bytes.len() as u64) {
            return Ring::unreadable(index, point);
        }
        let header = &bytes[offset as usize..][..RING_HEADER_BYTES];
        let mut ring = Ring::parse(index, header, point, room.min(bytes.len() as u64 - offset));
        room -= ring.size_bytes();
        let words_at = offset + RING_HEADER_BYTES as u64;
        let piece = |range: std::ops::Range<u64>| {
            bytes[(words_at + range.start) as usize..(words_at + range.end) as usize].to_vec()
        };
        ring.fill(ring.wanted().map(piece));
        ring
    };
    segment.rings.iter().enumerate().filter(|&(_, &offset)| offset != 0).map(of_ring).collect()
}

fn replay_bytes(bytes: &[u8]) -> Result<(Vec<u8>, Replayed), SegmentError> {
    let segment = Segment::parse(&bytes[..RINGS_AT.min(bytes.len())])?;
    let mut trace = TraceWriter::append(Vec::new(), ByteOrder::Little);
    let done = replay(&segment, rings(&segment, bytes), &mut trace).unwrap();
    Ok((trace.into_inner(), done))
}

fn replayed(builder: &Builder) -> (Vec<Short>, Replayed) {
    let (bytes, done) = replay_bytes(&builder.build()).unwrap();
    (read(&bytes), done)
}

#[test]
fn what_stands_in_a_segment_is_read() {
    let builder = Builder::new(24).with(|to| {
        to.start_time = 99;
        to.no_ring = 3;
        to.rings_elsewhere = 2;
        to.anchors = vec![[1, 2], [3, 4], [5, 6]];
    });
    let bytes = builder.ring(RingBuilder::new(32, 0, 42)).build();
    let segment = Segment::parse(&bytes[..RINGS_AT]).unwrap();
    assert_eq!((segment.pid, segment.start_time, segment.boot_id), (42, 99, [b'x'; 36]));
    assert_eq!((segment.no_ring, segment.rings_elsewhere, segment.last_anchor), (3, 2, Some([5, 6])));
    assert_eq!(segment.rings, [RINGS_AT as u64]);
    assert_eq!((segment.name(0), segment.name(2), segment.name(3)), (Some("a"), Some("c"), None));
    assert_eq!(segment.checkpoint.path, b"trace-42");
    assert_eq!(segment.last_ns(), 1_000);
}

#[test]
fn a_segment_that_is_none_is_refused() {
    let bytes = Builder::new(24).build();
    let parse = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] ^= byte;
        Segment::parse(&bytes).map(|_| ())
    };
    assert_eq!(parse(0, 0x89), Err(SegmentError::NoSegment));
    assert_eq!(parse(header_at::VERSION, 3), Err(SegmentError::Version(2)));
    assert_eq!(parse(CHECKPOINTS_AT + CHECKPOINT_BYTES + 8, 1), Err(SegmentError::NoCheckpoint));
    assert_eq!(parse(header_at::CHECKPOINT, 0x10), Err(SegmentError::NoCheckpoint));
    assert_eq!(Segment::parse(&bytes[..RINGS_AT - 1]), Err(SegmentError::NoSegment));
    assert_eq!(Segment::parse(&[]), Err(SegmentError::NoSegment));
}

#[test]
fn the_checkpoint_before_counts_if_the_last_is_not_whole() {
    let mut bytes = Builder::new(24).build();
    let before = Checkpoint { sequence: 6, length: 20, ..Checkpoint::default() };
    before.store(&mut bytes[CHECKPOINTS_AT..CHECKPOINTS_AT + CHECKPOINT_BYTES]);
    assert_eq!(Segment::parse(&bytes).unwrap().checkpoint.length, 24);
    bytes[CHECKPOINTS_AT + CHECKPOINT_BYTES] ^= 1;
    assert_eq!(Segment::parse(&bytes).unwrap().checkpoint, before);
}

#[test]
fn names_that_are_none_leave_the_others_their_ids() {
    let names = ["a".into(), "b\0".into(), "x".repeat(1025), "d".into(), String::new(), "e".into()];
    let bytes = Builder::new(24).with(|to| to.names = names.to_vec()).build();
    let segment = Segment::parse(&bytes).unwrap();
    assert_eq!([0, 1, 2, 3, 4, 5].map(|id| segment.name(id)), [Some("a"), None, None, Some("d"), None, None]);
}

#[test]
fn rings_are_merged_in_order_of_time() {
    let one = RingBuilder::new(64, 0, 43).event(0, 1_010, 1).event(1, 1_030, 2).event(0, 1_040, 3);
    let other = RingBuilder::new(64, 0, 44).event(1, 1_020, 4).event(1, 1_030, 5);
    let (records, done) = replayed(&Builder::new(24).ring(one).ring(other));
    assert_eq!(
        records,
        [
            map(0, "a"),
            Event(0, 1_010, 42, 1),
            map(1, "b"),
            Event(1, 1_020, 42, 4),
            Event(1, 1_030, 42, 2),
            Event(1, 1_030, 42, 5),
            Event(0, 1_040, 42, 3),
        ]
    );
    let expected = Replayed { records: 5, first_ns: Some(1_010), last_ns: Some(1_040), ..Replayed::default() };
    assert_eq!(done, expected);
}

#[test]
fn a_ring_that_wraps_is_read_through_the_room_behind_it() {
    // From word 20 of the third round; the one in front of the end takes 5 words more than there are.
    let ring = RingBuilder::new(32, 2 * 32 + 20, 42)
        .event(0, 1_001, 1)
        .event(0, 1_002, 2)
        .record(Kind::Event, 1, 1_003, &[7; 69])
        .event(0, 1_004, 3)
        .record(Kind::Event, 1, 1_005, &[]);
    assert_eq!(ring.tail, 96 + 10);
    let builder = Builder::new(24).ring(ring);
    let bytes = builder.build();
    let segment = Segment::parse(&bytes).unwrap();
    assert_eq!(rings(&segment, &bytes)[0].wanted(), [20 * 8..48 * 8, 0..10 * 8]);
    assert_eq!(rings(&segment, &bytes)[0].waiting_bytes(), 22 * 8);
    let (trace, _) = replay_bytes(&bytes).unwrap();
    let expected = [
        map(0, "a"),
        Event(0, 1_001, 42, 1),
        Event(0, 1_002, 42, 2),
        map(1, "b"),
        Event(1, 1_003, 42, 0x0707_0707_0707_0707),
        Event(0, 1_004, 42, 3),
        Event(1, 1_005, 42, 0),
    ];
    assert_eq!(read(&trace), expected);
    // No zeros that fill up the last word.
    assert_eq!(trace.len(), 2 * (8 + 8 + 4 + 1) + 3 * 40 + (32 + 69) + 32);
}

#[test]
fn a_ring_that_is_filled_to_the_last_word_is_read() {
    let mut ring = RingBuilder::new(32, 3, 42);
    for number in 0..10 {
        ring = ring.event(0, 1_000 + number, number);
    }
    ring = ring.record(Kind::Event, 0, 2_000, &[]);
    assert_eq!(ring.tail - ring.point.taken, 32);
    assert_eq!(replayed(&Builder::new(24).ring(ring)).1.records, 11);
}

#[test]
fn records_have_their_threads_id_if_the_process_is_not_to_be_written() {
    let ring = RingBuilder::new(64, 0, 0).owner(1_001, 43).event(0, 1_002, 1).owner(1_003, 44).event(0, 1_004, 2);
    let going_on = RingBuilder::new(64, 64, 45).event(0, 1_003, 3);
    let builder = Builder::new(24).with(|to| to.checkpoint.pid = 0).ring(ring).ring(going_on);
    let expected = [map(0, "a"), Event(0, 1_002, 43, 1), Event(0, 1_003, 45, 3), Event(0, 1_004, 44, 2)];
    assert_eq!(replayed(&builder).0, expected);
}

#[test]
fn gaps_become_dropped_records() {
    let mut ring = RingBuilder::new(64, 0, 42)
        .event(0, 1_001, 1)
        .gap_start(1_002)
        .gap_end(1_003, 5)
        .event(0, 1_003, 2)
        .gap_start(1_004);
    ring.losses = [6, 1, 2, 0];
    ring.point.told_in_band = 1;
    let (records, done) = replayed(&Builder::new(24).ring(ring));
    assert_eq!(
        records,
        [
            map(0, "a"),
            Event(0, 1_001, 42, 1),
            Dropped(1_002, 42, 4),
            Dropped(1_003, 42, 0),
            Event(0, 1_003, 42, 2),
            Dropped(1_004, 42, 4),
        ]
    );
    assert_eq!(done.lost, ReplayedLosses { refused: 8, ..ReplayedLosses::default() });
}

#[test]
fn a_gap_whose_start_is_in_the_trace_is_told_to_its_end() {
    let mut ring = RingBuilder::new(64, 32, 42).gap_end(1_005, 9).event(0, 1_005, 1);
    ring.point.told_in_band = 7;
    // The next one was being counted.
    ring.losses = [10, 0, 0, 0];
    let (records, done) = replayed(&Builder::new(24).ring(ring));
    let expected =
        [Dropped(1_005, 42, 2), Dropped(1_005, 42, 0), map(0, "a"), Event(0, 1_005, 42, 1), Dropped(1_005, 42, 1)];
    assert_eq!(records, expected);
    assert_eq!(done.lost.refused, 3);
}

#[test]
fn losses_that_are_in_no_ring_are_told_from_the_end_of_the_trace_on() {
    let mut ring = RingBuilder::new(64, 0, 0).owner(1_001, 43).event(0, 1_002, 1);
    ring.losses = [0, 0, 0, 8];
    ring.point.told_nested = 2;
    let builder = Builder::new(24).ring(ring).with(|to| {
        to.checkpoint.pid = 0;
        to.checkpoint.no_ring = 4;
        to.no_ring = 9;
        to.anchors = vec![[0, 1_200]];
    });
    let (records, done) = replayed(&builder);
    assert_eq!(
        records,
        [
            Dropped(1_000, 0, 5),
            Dropped(1_000, 43, 6),
            map(0, "a"),
            Event(0, 1_002, 43, 1),
            Dropped(1_200, 0, 0),
            Dropped(1_200, 43, 0),
        ]
    );
    assert_eq!(done.lost, ReplayedLosses { nested: 6, no_ring: 5, ..ReplayedLosses::default() });
    assert_eq!(done.lost.sum(), 11);
}

#[test]
fn what_could_not_be_written_is_told_before_the_first_record() {
    let ring = RingBuilder::new(64, 0, 42).event(0, 1_300, 1);
    let builder = Builder::new(24).ring(ring).with(|to| {
        to.checkpoint.missing = 3;
        to.checkpoint.missing_since_ns = 1_200;
        to.checkpoint.mark_ns = 1_100;
    });
    // The gap that the trace tells has its end, too.
    let (records, done) = replayed(&builder);
    let expected =
        [Dropped(1_100, 42, 0), Dropped(1_200, 42, 3), Dropped(1_300, 42, 0), map(0, "a"), Event(0, 1_300, 42, 1)];
    assert_eq!(records, expected);
    assert_eq!(done.lost.not_written, 3);
    // Nothing follows.
    let (records, _) = replayed(&builder.with(|to| to.rings.clear()));
    assert_eq!(records, [Dropped(1_100, 42, 0), Dropped(1_200, 42, 3)]);
}

#[test]
fn a_mark_is_written_though_nothing_follows() {
    let builder = Builder::new(24).with(|to| to.checkpoint.mark_ns = 1_100);
    assert_eq!(replayed(&builder), (vec![Dropped(1_100, 42, 0)], Replayed::default()));
    let builder = builder.with(|to| to.checkpoint.mark_ns = 900);
    assert_eq!(replayed(&builder).0, [Dropped(1_000, 42, 0)]);
}

#[test]
fn while_recording_is_off_events_are_counted() {
    let mut ring = RingBuilder::new(64, 0, 42).event(0, 1_300, 1).gap_start(1_400).gap_end(1_500, 2).event(0, 1_600, 2);
    ring.losses = [2, 0, 0, 1];
    let builder = Builder::new(24).ring(ring).with(|to| {
        to.checkpoint.is_off = true;
        to.checkpoint.missing = 3;
        to.checkpoint.missing_since_ns = 1_200;
    });
    let (records, done) = replayed(&builder);
    assert_eq!(records, [Dropped(1_000, 42, 1 + 3 + 2 + 2)]);
    let lost = ReplayedLosses { refused: 2, nested: 1, not_written: 3, off: 2, no_ring: 0 };
    assert_eq!(done, Replayed { lost, ..Replayed::default() });
}

#[test]
fn what_an_earlier_recording_left_is_told_where_this_one_begins() {
    let mut ring = RingBuilder::new(64, 0, 42)
        .event(0, 1_300, 1)
        .gap_start(1_400)
        .gap_end(1_450, 2)
        .event(0, 1_499, 2)
        .event(0, 1_500, 3);
    ring.losses = [2, 0, 0, 0];
    ring.point.told_in_band = 2;
    let (records, done) = replayed(&Builder::new(24).ring(ring).with(|to| to.checkpoint.from_ns = 1_500));
    assert_eq!(records, [Dropped(1_500, 42, 2), Dropped(1_500, 42, 0), map(0, "a"), Event(0, 1_500, 42, 3)]);
    assert_eq!((done.records, done.lost), (1, ReplayedLosses { off: 2, ..ReplayedLosses::default() }));
}

#[test]
fn ticks_are_on_the_line_through_the_anchors() {
    let ns = |first: [u64; 2], anchors: &[[u64; 2]], until: u64, ticks: u64| {
        let builder = Builder::new(24).with(|to| {
            to.checkpoint.first_anchor = first;
            to.checkpoint.tsc_until_ns = until;
            to.anchors = anchors.to_vec();
        });
        Segment::parse(&builder.build()).unwrap().ns(Stamp { ticks, is_monotonic: false })
    };
    let (first, last) = ([10_000, 5_000], [40_000, 15_000]);
    let cases = [(10_000, 5_000), (10_003, 5_001), (40_000, 15_000), (40_300, 15_100), (9_700, 4_900), (0, 1_667)];
    for (ticks, expected) in cases {
        assert_eq!(ns(first, &[[20_000, 9_999], last], u64::MAX, ticks), expected, "{ticks}");
    }
    // Given up.
    assert_eq!(ns(first, &[last], 15_050, 40_300), 15_050);
    // No line: the last anchor, or the first.
    assert_eq!(ns(first, &[first], u64::MAX, 40_300), 5_000);
    assert_eq!(ns(first, &[], u64::MAX, 40_300), 5_000);
    assert_eq!(ns(last, &[first], u64::MAX, 40_300), 5_000);
    // Nothing overflows.
    assert_eq!(ns([0, 0], &[[1, u64::MAX]], u64::MAX, u64::MAX), u64::MAX);
    assert_eq!(ns([0, 0], &[[u64::MAX, u64::MAX]], u64::MAX, u64::MAX - 1), u64::MAX - 1);
    assert_eq!(ns([u64::MAX - 1, 7], &[[u64::MAX, u64::MAX]], u64::MAX, 0), 0);
}

#[test]
fn both_clocks_come_in_one_order_and_not_before_the_end_of_the_trace() {
    let mut ring = RingBuilder::new(64, 0, 42);
    ring.is_monotonic = false;
    // 3 ticks each ns; the first one is before the end of the trace.
    ring = ring.event(0, 10_000, 1).event(0, 13_000, 2).event(0, 16_000, 3);
    ring.is_monotonic = true;
    ring = ring.event(0, 1_950, 4);
    let builder = Builder::new(24).ring(ring).with(|to| {
        to.checkpoint.first_anchor = [9_000, 500];
        to.anchors = vec![[12_000, 1_500]];
        to.checkpoint.tsc_until_ns = 1_900;
    });
    let expected =
        [map(0, "a"), Event(0, 1_000, 42, 1), Event(0, 1_833, 42, 2), Event(0, 1_900, 42, 3), Event(0, 1_950, 42, 4)];
    assert_eq!(replayed(&builder).0, expected);
}

#[test]
fn an_event_without_a_name_is_written_and_counted() {
    let ring = RingBuilder::new(64, 0, 42).event(9, 1_300, 1).event(u32::MAX, 1_400, 2);
    let (records, done) = replayed(&Builder::new(24).ring(ring));
    assert_eq!(records, [Event(9, 1_300, 42, 1), Event(u32::MAX.into(), 1_400, 42, 2)]);
    assert_eq!((done.records, done.unnamed), (2, 2));
}

#[test]
fn a_ring_that_was_made_after_the_checkpoint_is_taken_from_its_beginning() {
    let builder = Builder::new(24).ring(RingBuilder::new(64, 0, 43).owner(1_100, 43).event(0, 1_200, 1));
    let mut bytes = builder.build();
    let at = CHECKPOINTS_AT + CHECKPOINT_BYTES;
    builder.checkpoint.store(&mut bytes[at..at + CHECKPOINT_BYTES]);
    // And one that was being made.
    bytes[header_at::RINGS] = 2;
    assert_eq!(Segment::parse(&bytes).unwrap().rings, [RINGS_AT as u64, 0]);
    let (trace, done) = replay_bytes(&bytes).unwrap();
    assert_eq!(read(&trace), [map(0, "a"), Event(0, 1_200, 42, 1)]);
    assert_eq!(done.faults, []);
}

#[test]
fn a_ring_that_cannot_be_is_told_and_the_others_are_taken() {
    let good = || RingBuilder::new(64, 0, 43).event(0, 1_200, 1);
    let fault = |change: &dyn Fn(&mut RingBuilder, &mut Vec<u8>)| {
        let mut ring = good();
        change(&mut ring, &mut Vec::new());
        let mut bytes = Builder::new(24).ring(good()).ring(ring.clone()).build();
        change(&mut ring, &mut bytes);
        let (trace, done) = replay_bytes(&bytes).unwrap();
        assert_eq!(read(&trace), [Dropped(1_000, 42, u64::MAX), map(0, "a"), Event(0, 1_200, 42, 1)]);
        assert_eq!((done.faults.len(), done.faults[0].0), (1, 1));
        done.faults[0].1
    };
    let offset = |offset: u64| {
        fault(&|_, bytes| {
            if !bytes.is_empty() {
                bytes[DIRECTORY_AT + 8..DIRECTORY_AT + 16].copy_from_slice(&offset.to_le_bytes());
            }
        })
    };
    for at in [1, 4096, RINGS_AT as u64 + 8, 1 << 40, u64::MAX, u64::MAX << 16] {
        assert_eq!(offset(at), RingFault::Place, "{at}");
    }
    assert_eq!(fault(&|ring, _| ring.point.taken = 100), RingFault::Positions(100, 3));
    assert_eq!(fault(&|ring, _| ring.tail = 65), RingFault::Positions(0, 65));
    let capacity = |words: u64| {
        fault(&|_, bytes| {
            if !bytes.is_empty() {
                let at = RINGS_AT + 65536 + ring_at::CAPACITY;
                bytes[at..at + 8].copy_from_slice(&words.to_le_bytes());
            }
        })
    };
    assert_eq!(capacity(0), RingFault::Capacity(0));
    assert_eq!(capacity(65), RingFault::Capacity(65));
    assert_eq!(capacity(16), RingFault::Capacity(16));
    assert_eq!(capacity(128), RingFault::Place);
    assert_eq!(capacity(1 << 63), RingFault::Place);
}

#[test]
fn what_is_no_record_ends_a_ring() {
    let fault = |ring: RingBuilder| {
        let other = RingBuilder::new(64, 0, 43).event(0, 1_300, 2);
        let (records, done) = replayed(&Builder::new(24).ring(ring).ring(other));
        assert_eq!(
            records[..],
            [map(0, "a"), Event(0, 1_200, 42, 1), Dropped(1_200, 42, u64::MAX), Event(0, 1_300, 42, 2)],
        );
        done.faults
    };
    let good = || RingBuilder::new(64, 0, 43).event(0, 1_200, 1);
    let mut beyond = good().event(0, 1_250, 3);
    beyond.tail -= 1;
    assert_eq!(fault(beyond), [(0, RingFault::Record(3))]);
    let mut half = good().event(0, 1_250, 3);
    half.tail -= 2;
    assert_eq!(fault(half), [(0, RingFault::Record(3))]);
    assert_eq!(fault(good().record(Kind::Owner, 0, 1_250, &[0; 39])), [(0, RingFault::Record(3))]);
    assert_eq!(fault(good().record(Kind::GapEnd, 0, 1_250, &[0; 7])), [(0, RingFault::Record(3))]);
    assert_eq!(fault(good().record(Kind::GapStart, 0, 1_250, &[0; 1])), [(0, RingFault::Record(3))]);
    // Longer than any record of the format.
    let mut ring = RingBuilder::new(1 << 17, 0, 43).event(0, 1_200, 1);
    ring = ring.record(Kind::Event, 0, 1_250, &[0; 262_121]);
    assert_eq!(fault(ring), [(0, RingFault::Record(3))]);
}

#[test]
fn only_its_end_follows_a_gaps_start() {
    let mut ring = RingBuilder::new(64, 0, 42).gap_start(1_200).event(0, 1_300, 1);
    ring.losses = [4, 0, 0, 0];
    let (records, done) = replayed(&Builder::new(24).ring(ring));
    assert_eq!(records, [Dropped(1_200, 42, 4), Dropped(1_200, 42, u64::MAX)]);
    assert_eq!(done.faults, [(0, RingFault::Record(2))]);
}

#[test]
fn two_rings_are_not_at_one_place() {
    let mut bytes = Builder::new(24)
        .ring(RingBuilder::new(64, 0, 43).event(0, 1_200, 1))
        .with(|to| to.rings[0].point = RingPoint::default())
        .build();
    bytes[header_at::RINGS] = 200;
    for index in 1..200 {
        bytes.copy_within(DIRECTORY_AT..DIRECTORY_AT + 8, DIRECTORY_AT + index * 8);
    }
    // A sum is all that is looked at: what is taken is never more than there is.
    let (_, done) = replay_bytes(&bytes).unwrap();
    let fit = bytes.len() / (RING_HEADER_BYTES + (64 + 32) * 8);
    assert!(done.records <= fit as u64);
    assert!(fit >= 200 || !done.faults.is_empty());
}

#[test]
fn any_flipped_byte_is_an_error_or_a_sound_trace() {
    let mut one = RingBuilder::new(32, 20, 43).event(0, 1_010, 1).gap_start(1_015).gap_end(1_018, 4).event(1, 1_030, 2);
    one.losses = [4, 0, 0, 1];
    let other = RingBuilder::new(32, 0, 0).owner(1_005, 44).event(1, 1_020, 4);
    let builder = Builder::new(24).ring(one).ring(other).with(|to| to.checkpoint.pid = 0);
    let bytes = builder.build();
    let names = 3 * 3;
    let checkpoint_at = CHECKPOINTS_AT + CHECKPOINT_BYTES;
    let ring_at = |index: usize| RINGS_AT + index * 65536;
    let used = (0..144)
        .chain(DIRECTORY_AT..DIRECTORY_AT + 24)
        .chain(checkpoint_at..checkpoint_at + 160)
        .chain(checkpoint_at + 256..checkpoint_at + 264)
        .chain(checkpoint_at + 4096..checkpoint_at + 4096 + 2 * RingPoint::BYTES)
        .chain(NAMES_AT..NAMES_AT + names)
        .chain(ring_at(0)..ring_at(0) + RING_HEADER_BYTES + 48 * 8)
        .chain(ring_at(1)..ring_at(1) + RING_HEADER_BYTES + 48 * 8);
    let mut sound = 0;
    let mut changed = bytes;
    for at in used {
        for flip in [0x01, 0x10, 0x80, 0xff] {
            changed[at] ^= flip;
            if let Ok((trace, _)) = replay_bytes(&changed) {
                // Panics at what no reader takes, and at disorder.
                read(&trace);
                sound += 1;
            }
            changed[at] ^= flip;
        }
    }
    assert!(sound > 2_000, "{sound}");
}
