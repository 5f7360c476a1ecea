//! Builds segments as a recorder leaves them, by the layout's constants.

use simpletrace_format::durable::{
    CHECKPOINT_BYTES, CHECKPOINTS_AT, Checkpoint, DIRECTORY_AT, Front, Kind, MAGIC, NAMES_AT, RECORD_WORDS,
    RING_ALIGNMENT, RING_HEADER_BYTES, RINGS_AT, RingPoint, Stamp, VERSION, header_at, ring_at,
};

/// A segment, of which everything can be set.
#[derive(Debug, Clone, Default)]
pub(crate) struct Builder {
    pub(crate) pid: u32,
    pub(crate) start_time: u64,
    pub(crate) boot_id: String,
    /// Its ring points are those of the rings.
    pub(crate) checkpoint: Checkpoint,
    pub(crate) names: Vec<String>,
    pub(crate) anchors: Vec<[u64; 2]>,
    pub(crate) no_ring: u64,
    pub(crate) rings_elsewhere: u64,
    pub(crate) recording: u64,
    pub(crate) rings: Vec<RingBuilder>,
}

/// A ring in it.
#[derive(Debug, Clone)]
pub(crate) struct RingBuilder {
    pub(crate) capacity: u64,
    pub(crate) point: RingPoint,
    pub(crate) tail: u64,
    /// `full`, `timed_out`, `too_large`, `nested`.
    pub(crate) losses: [u64; 4],
    pub(crate) owner_id: u32,
    pub(crate) is_monotonic: bool,
    pub(crate) words: Vec<u64>,
}

impl RingBuilder {
    /// A ring of which everything before position `taken` is in the trace.
    pub(crate) fn new(capacity: u64, taken: u64, owner_id: u32) -> Self {
        let room = (capacity / 2).min(RECORD_WORDS + (262_144 - 24_u64).div_ceil(8));
        Self {
            capacity,
            point: RingPoint { taken, owner_id, ..RingPoint::default() },
            tail: taken,
            losses: [0; 4],
            owner_id,
            is_monotonic: true,
            words: vec![0xdead_dead_dead_dead; (capacity + room) as usize],
        }
    }

    pub(crate) fn record(mut self, kind: Kind, id: u32, ticks: u64, payload: &[u8]) -> Self {
        let stamp = Stamp { ticks, is_monotonic: self.is_monotonic };
        let front = Front { stamp, kind, id, payload_bytes: payload.len() as u32 };
        let place = (self.tail % self.capacity) as usize;
        self.words[place] = ticks;
        self.words[place + 1] = front.word();
        for (to, bytes) in self.words[place + 2..].iter_mut().zip(payload.chunks(8)) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            *to = u64::from_le_bytes(word);
        }
        self.tail += front.words();
        self
    }

    fn with_words(self, kind: Kind, ticks: u64, words: &[u64]) -> Self {
        let payload: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.record(kind, 0, ticks, &payload)
    }

    /// An event with one argument.
    pub(crate) fn event(self, id: u32, ticks: u64, arg: u64) -> Self {
        self.record(Kind::Event, id, ticks, &arg.to_le_bytes())
    }

    pub(crate) fn gap_start(self, ticks: u64) -> Self {
        self.with_words(Kind::GapStart, ticks, &[])
    }

    pub(crate) fn gap_end(self, ticks: u64, lost: u64) -> Self {
        self.with_words(Kind::GapEnd, ticks, &[lost])
    }

    pub(crate) fn owner(mut self, ticks: u64, owner_id: u32) -> Self {
        self.owner_id = owner_id;
        let [full, timed_out, too_large, nested] = self.losses;
        self.with_words(Kind::Owner, ticks, &[owner_id.into(), full, timed_out, too_large, nested])
    }
}

impl Builder {
    /// A segment of process 42 whose trace is `length` long and ends at 1,000 ns.
    pub(crate) fn new(length: u64) -> Self {
        Self {
            pid: 42,
            boot_id: "x".repeat(36),
            checkpoint: Checkpoint {
                sequence: 7,
                length,
                last_ns: 1_000,
                tsc_until_ns: u64::MAX,
                pid: 42,
                path: b"trace-42".to_vec(),
                ..Checkpoint::default()
            },
            names: vec!["a".into(), "b".into(), "c".into()],
            anchors: vec![[0, 900], [0, 1_100]],
            ..Self::default()
        }
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub(crate) fn ring(mut self, ring: RingBuilder) -> Self {
        self.rings.push(ring);
        self
    }

    pub(crate) fn build(&self) -> Vec<u8> {
        let mut bytes = vec![0; RINGS_AT];
        let mut offsets = Vec::new();
        for ring in &self.rings {
            let at = bytes.len().next_multiple_of(RING_ALIGNMENT);
            offsets.push(at as u64);
            bytes.resize(at + RING_HEADER_BYTES, 0);
            let mut put = |field: usize, word: u64| {
                bytes[at + field..at + field + 8].copy_from_slice(&word.to_le_bytes());
            };
            put(ring_at::CAPACITY, ring.capacity);
            put(ring_at::TAIL, ring.tail);
            put(ring_at::FULL, ring.losses[0]);
            put(ring_at::TIMED_OUT, ring.losses[1]);
            put(ring_at::TOO_LARGE, ring.losses[2]);
            put(ring_at::NESTED, ring.losses[3]);
            bytes[at + ring_at::OWNER_ID..][..4].copy_from_slice(&ring.owner_id.to_le_bytes());
            bytes.extend(ring.words.iter().flat_map(|word| word.to_le_bytes()));
        }
        let names: Vec<u8> = self
            .names
            .iter()
            .flat_map(|name| (name.len() as u16).to_le_bytes().into_iter().chain(name.bytes()))
            .collect();
        let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
        put(header_at::MAGIC, &MAGIC);
        put(header_at::VERSION, &VERSION.to_le_bytes());
        put(header_at::PID, &self.pid.to_le_bytes());
        put(header_at::START_TIME, &self.start_time.to_le_bytes());
        put(header_at::BOOT_ID, self.boot_id.as_bytes());
        put(header_at::RINGS, &(offsets.len() as u64).to_le_bytes());
        put(header_at::NAMES, &(names.len() as u64).to_le_bytes());
        put(header_at::CHECKPOINT, &self.checkpoint.sequence.to_le_bytes());
        put(header_at::ANCHORS, &(self.anchors.len() as u64).to_le_bytes());
        for (number, anchor) in self.anchors.iter().enumerate() {
            let at = header_at::ANCHOR[(number + 1) % 2];
            put(at, &anchor[0].to_le_bytes());
            put(at + 8, &anchor[1].to_le_bytes());
        }
        put(header_at::NO_RING, &self.no_ring.to_le_bytes());
        put(header_at::RINGS_ELSEWHERE, &self.rings_elsewhere.to_le_bytes());
        put(header_at::RECORDING, &self.recording.to_le_bytes());
        put(NAMES_AT, &names);
        for (index, offset) in offsets.iter().enumerate() {
            put(DIRECTORY_AT + index * 8, &offset.to_le_bytes());
        }
        let checkpoint =
            Checkpoint { rings: self.rings.iter().map(|ring| ring.point).collect(), ..self.checkpoint.clone() };
        let at = CHECKPOINTS_AT + (checkpoint.sequence % 2) as usize * CHECKPOINT_BYTES;
        checkpoint.store(&mut bytes[at..at + CHECKPOINT_BYTES]);
        bytes
    }
}
