use simpletrace_format::durable::{
    CHECKPOINTS_AT, Checkpoint, MAGIC, NAMES_AT, NAMES_BYTES, RING_HEADER_BYTES, RINGS_AT, Replayed, Ring, RingPoint,
    Segment, VERSION, header_at, replay, ring_at,
};
use simpletrace_format::{ByteOrder, Record, SliceReader, TraceWriter};

/// Replays segments in which everything is as the bytes say but for what makes it a segment: the trace is sound and in order of
/// time, has as many events as is said, and is the same the next time.
///
/// The bytes are numbers of 8 bytes, zeros behind their end: seven of the header, twelve of the checkpoint, names after their length,
/// and rings: nine numbers, and the words after their number.
pub fn durable(data: &[u8]) {
    let mut input = Input(data);
    let mut control = vec![0; RINGS_AT];
    let mut put = |at: usize, bytes: &[u8]| control[at..at + bytes.len()].copy_from_slice(bytes);
    put(header_at::MAGIC, &MAGIC);
    put(header_at::VERSION, &VERSION.to_le_bytes());
    let first = header_at::ANCHOR[0];
    for at in [header_at::ANCHORS, first, first + 8, first + 16, first + 24, header_at::NO_RING, header_at::NAMES] {
        put(at, &input.number().to_le_bytes());
    }
    let mut checkpoint = Checkpoint {
        length: input.number(),
        last_ns: input.number(),
        from_ns: input.number(),
        tsc_until_ns: input.number(),
        missing_since_ns: input.number(),
        missing: input.number(),
        no_ring: input.number(),
        mark_ns: input.number(),
        first_anchor: [input.number(), input.number()],
        pid: input.number() as u32,
        is_off: input.number() & 1 != 0,
        ..Checkpoint::default()
    };
    let names = input.bytes();
    put(NAMES_AT, &names[..names.len().min(NAMES_BYTES)]);
    let mut rings = Vec::new();
    while !input.0.is_empty() && rings.len() < 16 {
        rings.push(ring(rings.len(), &mut input));
    }
    checkpoint.rings = rings.iter().map(|ring| ring.point).collect();
    checkpoint.store(&mut control[CHECKPOINTS_AT..]);

    let segment = Segment::parse(&control).expect("a segment");
    assert_eq!(segment.checkpoint, checkpoint);
    let (trace, done) = write(&segment, rings.clone());
    check(&trace, &done, checkpoint.last_ns);
    assert_eq!(write(&segment, rings), (trace, done));
}

fn ring(index: usize, input: &mut Input<'_>) -> Ring {
    let mut header = [0; RING_HEADER_BYTES];
    for at in [ring_at::CAPACITY, ring_at::TAIL, ring_at::OWNER_ID, ring_at::FULL, ring_at::NESTED] {
        header[at..at + 8].copy_from_slice(&input.number().to_le_bytes());
    }
    let point = RingPoint {
        taken: input.number(),
        told_in_band: input.number(),
        told_nested: input.number(),
        owner_id: input.number() as u32,
    };
    let words = input.bytes();
    let mut ring = Ring::parse(index, &header, point, 1 << 16);
    assert!(ring.size_bytes() <= 1 << 16);
    let [first, second] = ring.wanted();
    assert!(RING_HEADER_BYTES as u64 + first.end.max(second.end) <= 1 << 16);
    assert!(first.end - first.start + second.end - second.start >= ring.waiting_bytes());
    let piece = |range: std::ops::Range<u64>| {
        let mut piece = words.get(range.start as usize..).unwrap_or_default().to_vec();
        piece.resize((range.end - range.start) as usize, 0);
        piece
    };
    ring.fill([piece(first), piece(second)]);
    ring
}

fn write(segment: &Segment, rings: Vec<Ring>) -> (Vec<u8>, Replayed) {
    let mut trace = TraceWriter::append(Vec::new(), ByteOrder::Little);
    let done = replay(segment, rings, &mut trace).expect("memory does not fail");
    (trace.into_inner(), done)
}

fn check(trace: &[u8], done: &Replayed, last_ns: u64) {
    let (mut events, mut before_ns) = (0, last_ns);
    for record in SliceReader::headerless(trace, ByteOrder::Little) {
        let at_ns = match record.expect("a sound trace") {
            Record::Mapping(_) => continue,
            Record::Event(record) => {
                events += 1;
                record.timestamp_ns
            }
            Record::Dropped(record) => record.timestamp_ns,
        };
        assert!(at_ns >= before_ns);
        before_ns = at_ns;
    }
    assert_eq!(events, done.records);
}

struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn number(&mut self) -> u64 {
        let (bytes, rest) = self.0.split_at(self.0.len().min(8));
        self.0 = rest;
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    }

    /// As many bytes as a number says, or all that are left.
    fn bytes(&mut self) -> &'a [u8] {
        let length = self.number().min(self.0.len() as u64) as usize;
        let (bytes, rest) = self.0.split_at(length);
        self.0 = rest;
        bytes
    }
}
