//! The layout of the shared-memory segment in which a recorder keeps its rings when what it records is to survive its death.
//!
//! The recorder's half stores into the segment, `recover` reads what a recorder that was killed left. There is one segment for
//! each recording. All numbers are little-endian; machines of the other order do not record in this way.
//!
//! ```text
//! at 0              header, a page
//! at DIRECTORY_AT   for each of up to MAX_RINGS rings its offset in the segment, 8 bytes; 0 while it is being made
//! at CHECKPOINTS_AT two checkpoints of CHECKPOINT_BYTES each
//! at NAMES_AT       names of events in the order of their ids, each its length in 2 bytes and its bytes; at most NAMES_BYTES
//! at RINGS_AT       rings, each at a multiple of RING_ALIGNMENT: RING_HEADER_BYTES with the fields of `ring_at`, then the words
//! ```
//!
//! What makes it whole at any moment: records enter a ring in front of its tail, which moves when they are complete. The recorder
//! writes records to the trace, then stores the checkpoint that says how long the trace is now and how far each ring has been taken, and only
//! then gives the room in the rings back. So the trace up to the checkpoint's length, and each ring from where the checkpoint says to its
//! tail, hold every record once. A checkpoint is stored into the place of the one before the last; only then does the header
//! say that it counts.

mod replay;
mod segment;

pub use replay::{Replayed, ReplayedLosses, replay};
pub use segment::{Ring, RingFault, Segment, SegmentError};

use std::ops::Range;

/// What a segment begins with.
pub const MAGIC: [u8; 8] = *b"\x89STseg\r\n";
/// The version of the layout.
pub const VERSION: u32 = 1;
/// The most rings that a segment has room for.
pub const MAX_RINGS: usize = 1024;

/// Where the offsets of the rings are.
pub const DIRECTORY_AT: usize = 4096;
/// Where the checkpoints are.
pub const CHECKPOINTS_AT: usize = DIRECTORY_AT + MAX_RINGS * 8;
/// The room for a checkpoint: a page, and what is said of each ring.
pub const CHECKPOINT_BYTES: usize = RING_POINTS_AT + MAX_RINGS * RingPoint::BYTES;
/// Where the names are.
pub const NAMES_AT: usize = CHECKPOINTS_AT + 2 * CHECKPOINT_BYTES;
/// The room for names.
pub const NAMES_BYTES: usize = 2 << 20;
/// Where the first ring may be.
pub const RINGS_AT: usize = (NAMES_AT + NAMES_BYTES).next_multiple_of(RING_ALIGNMENT);
/// What the offset of a ring is a multiple of: the largest page there is.
pub const RING_ALIGNMENT: usize = 64 << 10;
/// What stands before a ring's words.
pub const RING_HEADER_BYTES: usize = 512;

/// Offsets of the header's fields, 8 bytes each unless it says otherwise.
pub mod header_at {
    /// [`MAGIC`](super::MAGIC): stored last, when all else is in place.
    pub const MAGIC: usize = 0;
    /// [`VERSION`](super::VERSION), 4 bytes.
    pub const VERSION: usize = 8;
    /// The recorder's process, 4 bytes.
    pub const PID: usize = 12;
    /// When that process was started, in clock ticks since boot, as field 22 of `/proc/PID/stat` has it.
    pub const START_TIME: usize = 16;
    /// The boot's id, as `/proc/sys/kernel/random/boot_id` has it: 36 bytes.
    pub const BOOT_ID: usize = 24;
    /// How many entries of the directory are taken, those of rings that are being made included.
    pub const RINGS: usize = 64;
    /// How many bytes of names are valid.
    pub const NAMES: usize = 72;
    /// The [`sequence`](super::Checkpoint::sequence) of the checkpoint that counts; it is in place `sequence % 2`.
    pub const CHECKPOINT: usize = 80;
    /// How many anchors were stored; the last one is in place `anchors % 2`. 0 for none.
    pub const ANCHORS: usize = 88;
    /// Two anchors, each the ticks of the time-stamp counter and ns of `CLOCK_MONOTONIC` at one moment.
    pub const ANCHOR: [usize; 2] = [96, 112];
    /// Events of threads that got no ring.
    pub const NO_RING: usize = 128;
    /// Rings that could not be made in the segment: what is in them dies with the process.
    pub const RINGS_ELSEWHERE: usize = 136;
    /// The number of the recording that the trace's facts have, too, or 0.
    pub const RECORDING: usize = 144;
}

/// Offsets of fields in a ring's header, 8 bytes each unless it says otherwise.
pub mod ring_at {
    /// The ring's size in words, a power of two. Behind it there is room for one more record.
    pub const CAPACITY: usize = 24;
    /// Records before this position are complete. Positions count words and never wrap; a position's place is its remainder by the
    /// capacity.
    pub const TAIL: usize = 128;
    /// The thread that has the ring, 4 bytes.
    pub const OWNER_ID: usize = 388;
    /// Lost events, by cause.
    pub const FULL: usize = 392;
    /// See [`FULL`].
    pub const TIMED_OUT: usize = 400;
    /// See [`FULL`].
    pub const TOO_LARGE: usize = 408;
    /// See [`FULL`].
    pub const NESTED: usize = 416;
}

/// The words before a record's payload.
pub const RECORD_WORDS: u64 = 2;

/// The time of a record, in ticks of the clock that it was taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Ticks of the time-stamp counter, or ns.
    pub ticks: u64,
    /// Whether it is ns of `CLOCK_MONOTONIC`.
    pub is_monotonic: bool,
}

/// What a record in a ring is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// An event.
    Event = 0,
    /// From here on events are missing.
    GapStart = 1,
    /// No more are missing; the payload is the ring's losses by `full`, `timed_out` and `too_large` together until here.
    GapEnd = 2,
    /// Another thread has the ring; the payload is its id and the losses of those before: `full`, `timed_out`, `too_large`, `nested`.
    Owner = 3,
}

/// The first two words of a record in a ring.
///
/// ```text
/// word 0       stamp: ticks of the time-stamp counter, or ns of CLOCK_MONOTONIC
/// word 1       bits 0-31 event id, 32-55 payload bytes, 56-57 kind, 63 set if the stamp is of CLOCK_MONOTONIC
/// word 2...    payload as it will stand in the file, the last word filled up with zeros
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Front {
    /// When.
    pub stamp: Stamp,
    /// What.
    pub kind: Kind,
    /// Which event.
    pub id: u32,
    /// How much follows.
    pub payload_bytes: u32,
}

impl Front {
    const KIND_SHIFT: u32 = 56;
    const BYTES_SHIFT: u32 = 32;
    const MONOTONIC: u64 = 1 << 63;

    /// The second word; the first one is the stamp's ticks.
    #[inline(always)]
    #[must_use]
    pub const fn word(self) -> u64 {
        let clock = if self.stamp.is_monotonic { Self::MONOTONIC } else { 0 };
        self.id as u64
            | (self.payload_bytes as u64) << Self::BYTES_SHIFT
            | (self.kind as u64) << Self::KIND_SHIFT
            | clock
    }

    /// What two words say.
    #[inline]
    #[must_use]
    pub const fn from_words(ticks: u64, word: u64) -> Self {
        let kind = match word >> Self::KIND_SHIFT & 3 {
            0 => Kind::Event,
            1 => Kind::GapStart,
            2 => Kind::GapEnd,
            _ => Kind::Owner,
        };
        Self {
            stamp: Stamp { ticks, is_monotonic: word & Self::MONOTONIC != 0 },
            kind,
            id: word as u32,
            payload_bytes: (word >> Self::BYTES_SHIFT) as u32 & 0xff_ffff,
        }
    }

    /// The words that the whole record takes.
    #[inline(always)]
    #[must_use]
    pub const fn words(self) -> u64 {
        RECORD_WORDS + (self.payload_bytes as u64).div_ceil(8)
    }
}

/// How far the recorder has come: what is in the trace, and what of the rings is not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// Grows by one from checkpoint to checkpoint.
    pub sequence: u64,
    /// The device of the trace.
    pub device: u64,
    /// The inode of the trace.
    pub inode: u64,
    /// How long the trace is, in bytes; 0 if not even its header is written. What is behind that does not count.
    pub length: u64,
    /// The time of the trace's last record, in ns.
    pub last_ns: u64,
    /// Records in the rings that are earlier, in ns, are of an earlier recording.
    pub from_ns: u64,
    /// Stamps of the time-stamp counter are not later than this, in ns: then it was given up.
    pub tsc_until_ns: u64,
    /// Where the records begin that could not be written, in ns.
    pub missing_since_ns: u64,
    /// How many could not be written and are not told in the trace.
    pub missing: u64,
    /// The losses of threads without a ring that the trace tells.
    pub no_ring: u64,
    /// Where the last gap ends that is told but not closed, in ns; 0 if there is none.
    pub mark_ns: u64,
    /// The counter and the clock when the recording began: ticks and ns.
    pub first_anchor: [u64; 2],
    /// The process's id for all records, or 0 for each thread's.
    pub pid: u32,
    /// Events are only counted.
    pub is_off: bool,
    /// The trace's name.
    pub path: Vec<u8>,
    /// What is said of each ring, in the order of the directory.
    pub rings: Vec<RingPoint>,
}

/// How far the recorder has come with a ring.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RingPoint {
    /// Records before this position are in the trace.
    pub taken: u64,
    /// The losses that the trace tells: by `full`, `timed_out` and `too_large` together.
    pub told_in_band: u64,
    /// And by `nested`.
    pub told_nested: u64,
    /// The thread whose records come next.
    pub owner_id: u32,
}

impl RingPoint {
    /// What one takes in a checkpoint.
    pub const BYTES: usize = 32;
}

/// Where in a checkpoint its ring points are: behind a page.
pub const RING_POINTS_AT: usize = 4096;
/// Where in a checkpoint the trace's name is.
const PATH_AT: usize = 256;
/// The longest name that is kept whole.
const MAX_PATH_BYTES: usize = RING_POINTS_AT - PATH_AT;
/// The fixed fields, 8 bytes each, from the second on: the first is the checksum.
const FIELDS: usize = 17;

impl Checkpoint {
    const OFF: u64 = 1;

    /// Stores the checkpoint into `place`; returns where, as most of it is not used. A name that is too long is cut.
    ///
    /// # Panics
    ///
    /// If `place` is shorter than [`CHECKPOINT_BYTES`], or there are more than [`MAX_RINGS`] rings.
    pub fn store(&self, place: &mut [u8]) -> [Range<usize>; 3] {
        let path = &self.path[..self.path.len().min(MAX_PATH_BYTES)];
        let fields: [u64; FIELDS] = [
            self.sequence,
            self.device,
            self.inode,
            self.length,
            self.last_ns,
            self.from_ns,
            self.tsc_until_ns,
            self.missing_since_ns,
            self.missing,
            self.no_ring,
            self.mark_ns,
            self.first_anchor[0],
            self.first_anchor[1],
            self.pid.into(),
            if self.is_off { Self::OFF } else { 0 },
            path.len() as u64,
            self.rings.len() as u64,
        ];
        for (to, field) in place[8..].chunks_exact_mut(8).zip(fields) {
            to.copy_from_slice(&field.to_le_bytes());
        }
        place[PATH_AT..PATH_AT + path.len()].copy_from_slice(path);
        let points = &mut place[RING_POINTS_AT..RING_POINTS_AT + self.rings.len() * RingPoint::BYTES];
        for (to, point) in points.chunks_exact_mut(RingPoint::BYTES).zip(&self.rings) {
            let words = [point.taken, point.told_in_band, point.told_nested, point.owner_id.into()];
            for (to, word) in to.chunks_exact_mut(8).zip(words) {
                to.copy_from_slice(&word.to_le_bytes());
            }
        }
        let sum = checksum(place, path.len(), self.rings.len());
        place[..8].copy_from_slice(&sum.to_le_bytes());
        let [fields, path, points] = used(path.len(), self.rings.len());
        [0..fields.end, path, points]
    }

    /// Reads a checkpoint; `None` if it is not whole.
    #[must_use]
    pub fn load(place: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u64::from_le_bytes(*place.get(at..at + 8)?.first_chunk()?));
        let field = |index: usize| word(8 + index * 8);
        let (path_bytes, rings) = (usize::try_from(field(15)?).ok()?, usize::try_from(field(16)?).ok()?);
        if path_bytes > MAX_PATH_BYTES || rings > MAX_RINGS || place.len() < RING_POINTS_AT + rings * RingPoint::BYTES {
            return None;
        }
        if word(0)? != checksum(place, path_bytes, rings) {
            return None;
        }
        let point = |index: usize| {
            let at = RING_POINTS_AT + index * RingPoint::BYTES;
            Some(RingPoint {
                taken: word(at)?,
                told_in_band: word(at + 8)?,
                told_nested: word(at + 16)?,
                owner_id: word(at + 24)? as u32,
            })
        };
        Some(Self {
            sequence: field(0)?,
            device: field(1)?,
            inode: field(2)?,
            length: field(3)?,
            last_ns: field(4)?,
            from_ns: field(5)?,
            tsc_until_ns: field(6)?,
            missing_since_ns: field(7)?,
            missing: field(8)?,
            no_ring: field(9)?,
            mark_ns: field(10)?,
            first_anchor: [field(11)?, field(12)?],
            pid: field(13)? as u32,
            is_off: field(14)? & Self::OFF != 0,
            path: place.get(PATH_AT..PATH_AT + path_bytes)?.to_vec(),
            rings: (0..rings).map(point).collect::<Option<_>>()?,
        })
    }
}

/// What a checkpoint uses of its place, without the checksum.
fn used(path_bytes: usize, rings: usize) -> [Range<usize>; 3] {
    [8..8 + FIELDS * 8, PATH_AT..PATH_AT + path_bytes, RING_POINTS_AT..RING_POINTS_AT + rings * RingPoint::BYTES]
}

/// A sum over all that a checkpoint uses, by which one that is not whole is found out: FNV-1a over words.
fn checksum(place: &[u8], path_bytes: usize, rings: usize) -> u64 {
    let mut sum = 0xcbf2_9ce4_8422_2325_u64;
    for range in used(path_bytes, rings) {
        for chunk in place[range].chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            sum = (sum ^ u64::from_le_bytes(word)).wrapping_mul(0x100_0000_01b3);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint() -> Checkpoint {
        Checkpoint {
            sequence: 7,
            device: 2049,
            inode: 77,
            length: 1 << 33,
            last_ns: 12_345,
            from_ns: 11_000,
            tsc_until_ns: u64::MAX,
            missing_since_ns: 12_000,
            missing: 3,
            no_ring: 4,
            mark_ns: 12_400,
            first_anchor: [26_000, 10_000],
            pid: 1234,
            is_off: true,
            path: b"/tmp/trace-1234".to_vec(),
            rings: vec![
                RingPoint { taken: 1 << 40, told_in_band: 5, told_nested: 6, owner_id: 1235 },
                RingPoint::default(),
            ],
        }
    }

    #[test]
    fn the_layout_is_the_one_that_is_documented() {
        assert_eq!((CHECKPOINTS_AT, CHECKPOINT_BYTES, NAMES_AT, RINGS_AT), (12_288, 36_864, 86_016, 2_228_224));
    }

    #[test]
    fn a_checkpoint_is_read_as_it_was_stored() {
        let mut place = vec![0xaa; CHECKPOINT_BYTES];
        checkpoint().store(&mut place);
        assert_eq!(Checkpoint::load(&place), Some(checkpoint()));
        assert_eq!(&place[16..24], &2049u64.to_le_bytes());
        assert_eq!(&place[PATH_AT..PATH_AT + 15], b"/tmp/trace-1234");
        assert_eq!(&place[4096..4104], &(1u64 << 40).to_le_bytes());
    }

    #[test]
    fn a_checkpoint_of_which_any_bit_is_wrong_is_not_read() {
        let mut place = vec![0; CHECKPOINT_BYTES];
        checkpoint().store(&mut place);
        let used = (0..8 + FIELDS * 8).chain(PATH_AT..PATH_AT + 15).chain(RING_POINTS_AT..RING_POINTS_AT + 64);
        for at in used {
            for bit in 0..8 {
                place[at] ^= 1 << bit;
                assert_eq!(Checkpoint::load(&place), None, "bit {bit} of byte {at}");
                place[at] ^= 1 << bit;
            }
        }
        for length in [0, 100, 4096, 4096 + 63] {
            assert_eq!(Checkpoint::load(&place[..length]), None);
        }
    }

    #[test]
    fn a_name_that_is_too_long_is_cut() {
        let mut place = vec![0; CHECKPOINT_BYTES];
        Checkpoint { path: vec![b'x'; 5000], ..checkpoint() }.store(&mut place);
        assert_eq!(Checkpoint::load(&place).map(|read| read.path.len()), Some(3840));
    }

    #[test]
    fn a_front_is_two_words() {
        let front = Front {
            stamp: Stamp { ticks: 99, is_monotonic: true },
            kind: Kind::Owner,
            id: u32::MAX - 1,
            payload_bytes: 0xff_fffe,
        };
        assert_eq!(front.word(), 0x83ff_fffe_ffff_fffe);
        assert_eq!(Front::from_words(99, front.word()), front);
        assert_eq!(front.words(), 2 + 0x20_0000);
    }
}
