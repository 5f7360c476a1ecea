//! Reading a segment whose recorder is gone: nothing in it is believed before it is checked.

use std::fmt;
use std::ops::Range;

use super::{
    CHECKPOINT_BYTES, CHECKPOINTS_AT, Checkpoint, DIRECTORY_AT, Front, Kind, MAGIC, MAX_RINGS, NAMES_AT, NAMES_BYTES,
    RECORD_WORDS, RING_ALIGNMENT, RING_HEADER_BYTES, RINGS_AT, RingPoint, Stamp, VERSION, header_at, ring_at,
};
use crate::{MAX_NAME_BYTES, MAX_RECORD_BYTES, RECORD_HEADER_BYTES};

/// The longest payload in bytes: that of the format's largest record.
const MAX_PAYLOAD_BYTES: u32 = MAX_RECORD_BYTES - RECORD_HEADER_BYTES;
/// The payload of a record that closes a gap, and of one that names an owner.
const GAP_END_BYTES: u32 = 8;
const OWNER_BYTES: u32 = 40;

/// What stands before a segment's rings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The recorder's process.
    pub pid: u32,
    /// When that process was started, in clock ticks since boot.
    pub start_time: u64,
    /// The boot's id, as it stands in the segment.
    pub boot_id: [u8; 36],
    /// The checkpoint that counts.
    pub checkpoint: Checkpoint,
    /// The last anchor, ticks and ns, if there is one.
    pub last_anchor: Option<[u64; 2]>,
    /// Events of threads that got no ring.
    pub no_ring: u64,
    /// Rings that are not in the segment.
    pub rings_elsewhere: u64,
    /// The number of the recording, which the trace's facts have, too; 0 if it has none.
    pub recording: u64,
    /// Where each ring is in the segment, in bytes; 0 for one that was being made.
    pub rings: Vec<u64>,
    /// Names by id; `None` for what is no name.
    names: Vec<Option<Box<str>>>,
}

/// Why a segment cannot be used at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SegmentError {
    /// It is none, or its recorder was killed before it was in place.
    NoSegment,
    /// A layout that is not known here.
    Version(u32),
    /// Neither checkpoint is whole.
    NoCheckpoint,
}

impl fmt::Display for SegmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSegment => f.write_str("no segment, or one that was never finished"),
            Self::Version(version) => write!(f, "a segment of layout {version}, this program knows {VERSION}"),
            Self::NoCheckpoint => f.write_str("neither of its checkpoints is whole"),
        }
    }
}

impl std::error::Error for SegmentError {}

impl Segment {
    /// Reads the first [`RINGS_AT`] bytes of a segment, or all of a shorter one.
    ///
    /// # Errors
    ///
    /// Those of [`SegmentError`].
    pub fn parse(control: &[u8]) -> Result<Self, SegmentError> {
        if control.len() < RINGS_AT || control[..MAGIC.len()] != MAGIC {
            return Err(SegmentError::NoSegment);
        }
        let word = |at| word(control, at);
        let version = word(header_at::VERSION) as u32;
        if version != VERSION {
            return Err(SegmentError::Version(version));
        }
        let sequence = word(header_at::CHECKPOINT);
        let checkpoint = [Some(sequence), sequence.checked_sub(1)].into_iter().flatten().find_map(|sequence| {
            let at = CHECKPOINTS_AT + (sequence % 2) as usize * CHECKPOINT_BYTES;
            Checkpoint::load(&control[at..at + CHECKPOINT_BYTES]).filter(|read| read.sequence == sequence)
        });
        let anchors = word(header_at::ANCHORS);
        let anchor_at = header_at::ANCHOR[(anchors % 2) as usize];
        let rings = (word(header_at::RINGS) as usize).min(MAX_RINGS);
        let names_bytes = (word(header_at::NAMES) as usize).min(NAMES_BYTES);
        let mut boot_id = [0; 36];
        boot_id.copy_from_slice(&control[header_at::BOOT_ID..header_at::BOOT_ID + 36]);
        Ok(Self {
            pid: word(header_at::PID) as u32,
            start_time: word(header_at::START_TIME),
            boot_id,
            checkpoint: checkpoint.ok_or(SegmentError::NoCheckpoint)?,
            last_anchor: (anchors > 0).then(|| [word(anchor_at), word(anchor_at + 8)]),
            no_ring: word(header_at::NO_RING),
            rings_elsewhere: word(header_at::RINGS_ELSEWHERE),
            recording: word(header_at::RECORDING),
            rings: (0..rings).map(|index| word(DIRECTORY_AT + index * 8)).collect(),
            names: read_names(&control[NAMES_AT..NAMES_AT + names_bytes]),
        })
    }

    /// The name of an event, if the segment has one that a trace takes.
    #[must_use]
    pub fn name(&self, id: u32) -> Option<&str> {
        self.names.get(id as usize)?.as_deref()
    }

    /// The latest time that the segment's recorder is known to have lived at, in ns.
    #[must_use]
    pub fn last_ns(&self) -> u64 {
        self.last_anchor.map_or(0, |[_, ns]| ns).max(self.checkpoint.last_ns).max(self.checkpoint.first_anchor[1])
    }

    /// Converts a stamp to ns: on the line through the first anchor and the last, and beyond them.
    #[must_use]
    pub fn ns(&self, stamp: Stamp) -> u64 {
        let ticks = stamp.ticks;
        if stamp.is_monotonic {
            return ticks;
        }
        let [first_ticks, first_ns] = self.checkpoint.first_anchor;
        let [last_ticks, last_ns] = self.last_anchor.unwrap_or([first_ticks, first_ns]);
        let ns = if last_ticks > first_ticks && last_ns >= first_ns {
            let scale = |ticks: u64| {
                let ns = u128::from(ticks) * u128::from(last_ns - first_ns) / u128::from(last_ticks - first_ticks);
                u64::try_from(ns).unwrap_or(u64::MAX)
            };
            if ticks >= first_ticks {
                first_ns.saturating_add(scale(ticks - first_ticks))
            } else {
                first_ns.saturating_sub(scale(first_ticks - ticks))
            }
        } else {
            last_ns
        };
        ns.min(self.checkpoint.tsc_until_ns)
    }
}

/// Reads names up to where they end or make no sense.
fn read_names(mut bytes: &[u8]) -> Vec<Option<Box<str>>> {
    let mut names = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes(*length));
        let Some((name, rest)) = rest.split_at_checked(length).filter(|_| length > 0) else { break };
        let is_name = length <= MAX_NAME_BYTES as usize && !name.contains(&0);
        names.push(std::str::from_utf8(name).ok().filter(|_| is_name).map(Into::into));
        bytes = rest;
    }
    names
}

/// What is wrong with a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RingFault {
    /// It is not where a ring can be, or two rings are at one place.
    Place,
    /// Its size is none that a ring has.
    Capacity(u64),
    /// What is to be taken from it ends before it begins, or is more than it holds: from, to.
    Positions(u64, u64),
    /// At this position there is no record that a recorder makes.
    Record(u64),
}

impl fmt::Display for RingFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Place => f.write_str("it is not inside the segment"),
            Self::Capacity(words) => write!(f, "its size is said to be {words} words"),
            Self::Positions(from, to) => write!(f, "it is said to be filled from word {from} to word {to}"),
            Self::Record(position) => write!(f, "there is no record at word {position}"),
        }
    }
}

/// A ring as it was left.
#[derive(Debug, Clone)]
pub struct Ring {
    /// Its place in the directory.
    pub index: usize,
    /// What the checkpoint says of it.
    pub point: RingPoint,
    /// Lost events: `full`, `timed_out` and `too_large` together, and `nested`.
    pub lost_in_band: u64,
    /// See [`lost_in_band`](Self::lost_in_band).
    pub lost_nested: u64,
    /// The thread that has the ring, or had it last.
    pub owner_id: u32,
    /// What is wrong with it. What stands before is sound.
    pub fault: Option<RingFault>,
    capacity: u64,
    /// The next record is here.
    position: u64,
    tail: u64,
    /// The words from the first position to the end of its round, and those of the next round.
    pieces: [Vec<u8>; 2],
    /// The first position.
    begin: u64,
}

/// A record in a ring.
#[derive(Debug, Clone, Copy)]
pub(super) struct RingRecord<'a> {
    pub(super) front: Front,
    pub(super) payload: &'a [u8],
}

impl RingRecord<'_> {
    /// A word of the payload; 0 where there is none.
    pub(super) fn word(&self, index: usize) -> u64 {
        self.payload.as_chunks().0.get(index).map_or(0, |word| u64::from_le_bytes(*word))
    }
}

impl Ring {
    /// Reads a ring's header, [`RING_HEADER_BYTES`] long. `room_bytes` is the length of the segment from that header on, less what
    /// rings before took of the segment.
    ///
    /// # Panics
    ///
    /// If the header is shorter.
    #[must_use]
    pub fn parse(index: usize, header: &[u8], point: RingPoint, room_bytes: u64) -> Self {
        let word = |at| word(header, at);
        let sum = |counts: &[usize]| counts.iter().fold(0_u64, |sum, &at| sum.saturating_add(word(at)));
        let (capacity, tail) = (word(ring_at::CAPACITY), word(ring_at::TAIL));
        let fault = if !capacity.is_power_of_two() || capacity < 32 {
            Some(RingFault::Capacity(capacity))
        } else if size_bytes(capacity).is_none_or(|bytes| bytes > room_bytes) {
            Some(RingFault::Place)
        } else if tail.checked_sub(point.taken).is_none_or(|words| words > capacity) {
            Some(RingFault::Positions(point.taken, tail))
        } else {
            None
        };
        Self {
            lost_in_band: sum(&[ring_at::FULL, ring_at::TIMED_OUT, ring_at::TOO_LARGE]),
            lost_nested: word(ring_at::NESTED),
            owner_id: word(ring_at::OWNER_ID) as u32,
            fault,
            ..match fault {
                None => Self { capacity, tail, ..Self::unreadable(index, point) },
                Some(_) => Self::unreadable(index, point),
            }
        }
    }

    /// A ring that is not in the segment's bytes.
    #[must_use]
    pub const fn unreadable(index: usize, point: RingPoint) -> Self {
        Self {
            index,
            point,
            lost_in_band: 0,
            lost_nested: 0,
            owner_id: 0,
            fault: Some(RingFault::Place),
            capacity: 32,
            position: point.taken,
            tail: point.taken,
            pieces: [Vec::new(), Vec::new()],
            begin: point.taken,
        }
    }

    /// Tells whether a ring's header may be at an offset in a segment of so many bytes.
    #[must_use]
    pub const fn may_be_at(offset: u64, segment_bytes: u64) -> bool {
        offset >= RINGS_AT as u64
            && offset.is_multiple_of(RING_ALIGNMENT as u64)
            && offset.saturating_add(RING_HEADER_BYTES as u64) <= segment_bytes
    }

    /// What the ring takes in the segment, its header included, in bytes; 0 if it is not sound.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        if self.fault.is_some() { 0 } else { size_bytes(self.capacity).unwrap_or(0) }
    }

    /// How many bytes are to be taken from it.
    #[must_use]
    pub const fn waiting_bytes(&self) -> u64 {
        (self.tail - self.position) * 8
    }

    /// Which bytes behind the header hold what is to be taken.
    #[must_use]
    pub const fn wanted(&self) -> [Range<u64>; 2] {
        let start = self.begin % self.capacity;
        let end = start + (self.tail - self.begin);
        if end <= self.capacity {
            [start * 8..end * 8, 0..0]
        } else {
            // The last record before the end may use the room behind it. Then the next one is not at the beginning.
            [start * 8..(self.capacity + largest_words(self.capacity)) * 8, 0..(end - self.capacity) * 8]
        }
    }

    /// Takes the bytes that are [`wanted`](Self::wanted).
    pub fn fill(&mut self, pieces: [Vec<u8>; 2]) {
        self.pieces = pieces;
    }

    /// Looks at the next record; `None` at the end. If there should be one and is none, that is the ring's fault, and its end.
    pub(super) fn peek(&mut self) -> Option<RingRecord<'_>> {
        if self.position >= self.tail {
            return None;
        }
        let (round, place) = (self.position / self.capacity, self.position % self.capacity);
        let begin_round = self.begin / self.capacity;
        let (piece, place) = if round == begin_round { (0, place - self.begin % self.capacity) } else { (1, place) };
        if !is_record(&self.pieces[piece], place as usize * 8, self.tail - self.position) {
            self.fail();
            return None;
        }
        let bytes = &self.pieces[piece][place as usize * 8..];
        let front = Front::from_words(word(bytes, 0), word(bytes, 8));
        Some(RingRecord { front, payload: &bytes[RECORD_WORDS as usize * 8..][..front.payload_bytes as usize] })
    }

    /// Goes on behind a record that was looked at.
    pub(super) const fn skip(&mut self, front: Front) {
        self.position += front.words();
    }

    /// Ends the ring where it is.
    pub(super) const fn fail(&mut self) {
        self.fault = Some(RingFault::Record(self.position));
        self.tail = self.position;
    }
}

/// Whether there is a record at a place, given how many words are left.
fn is_record(bytes: &[u8], at: usize, left_words: u64) -> bool {
    let Some(bytes) = bytes.get(at..).filter(|bytes| bytes.len() >= RECORD_WORDS as usize * 8) else { return false };
    let front = Front::from_words(word(bytes, 0), word(bytes, 8));
    let is_length = match front.kind {
        Kind::Event => front.payload_bytes <= MAX_PAYLOAD_BYTES,
        Kind::GapStart => front.payload_bytes == 0,
        Kind::GapEnd => front.payload_bytes == GAP_END_BYTES,
        Kind::Owner => front.payload_bytes == OWNER_BYTES,
    };
    is_length && front.words() <= left_words && front.words() * 8 <= bytes.len() as u64
}

/// The words of the largest record that a ring takes, and so what stands behind its capacity.
const fn largest_words(capacity: u64) -> u64 {
    let largest = RECORD_WORDS + (MAX_PAYLOAD_BYTES as u64).div_ceil(8);
    if capacity / 2 < largest { capacity / 2 } else { largest }
}

/// The bytes that a ring of so many words takes, with its header.
fn size_bytes(capacity: u64) -> Option<u64> {
    (capacity + largest_words(capacity)).checked_mul(8)?.checked_add(RING_HEADER_BYTES as u64)
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u64::from_le_bytes(*word))
}
