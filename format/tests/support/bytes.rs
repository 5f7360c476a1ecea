//! Files built byte by byte, independently of the crate under test.
//!
//! ```text
//! let file = Bytes::little().header().mapping(7, "foo").event(7, 1_000, 42, |args| args.u64(5).string(b"a"));
//! ```
//!
//! The plain verbs (`u32`, `u64`, `bytes`, `zeros`) append one field; the others append a whole structure of the format, right by
//! themselves, so that a test only spells out what is wrong with its file. Nothing here is taken from the crate: a mistake in its
//! layout cannot repeat itself in the expectation.

/// Bytes in the making, with the byte order for what comes next.
#[derive(Debug, Clone)]
pub(crate) struct Bytes {
    bytes: Vec<u8>,
    big: bool,
}

impl Bytes {
    /// Starts with nothing; numbers will stand with their least significant byte first.
    pub(crate) fn little() -> Self {
        Self::new(false)
    }

    /// Starts with nothing; numbers will stand with their most significant byte first.
    pub(crate) fn big() -> Self {
        Self::new(true)
    }

    /// Starts with nothing, in the byte order given.
    pub(crate) fn new(big: bool) -> Self {
        Self { bytes: Vec::new(), big }
    }

    /// Starts with nothing, once in each byte order.
    pub(crate) fn both_orders() -> [Self; 2] {
        [Self::little(), Self::big()]
    }

    pub(crate) fn u32(mut self, value: u32) -> Self {
        self.bytes.extend(if self.big { value.to_be_bytes() } else { value.to_le_bytes() });
        self
    }

    pub(crate) fn u64(mut self, value: u64) -> Self {
        self.bytes.extend(if self.big { value.to_be_bytes() } else { value.to_le_bytes() });
        self
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend(bytes);
        self
    }

    pub(crate) fn zeros(mut self, count: usize) -> Self {
        self.bytes.resize(self.bytes.len() + count, 0);
        self
    }

    /// Appends a counted string, as arguments have it.
    pub(crate) fn string(self, bytes: &[u8]) -> Self {
        self.u32(bytes.len() as u32).bytes(bytes)
    }

    /// Appends the header of a version 4 file.
    pub(crate) fn header(self) -> Self {
        self.header_of_version(4)
    }

    /// Appends the header of a file of any version; that of version 0 is one of its records.
    pub(crate) fn header_of_version(self, version: u64) -> Self {
        let header = self.u64(0xffff_ffff_ffff_ffff).u64(0xf2b1_77cb_0aa4_29b4).u64(version);
        if version == 0 { header.zeros(40) } else { header }
    }

    /// Appends a mapping record.
    pub(crate) fn mapping(self, id: u64, name: &str) -> Self {
        self.u64(0).u64(id).string(name.as_bytes())
    }

    /// Appends an event record; `args` builds its payload, the length follows from it.
    pub(crate) fn event(self, id: u64, timestamp_ns: u64, pid: u32, args: impl FnOnce(Self) -> Self) -> Self {
        let payload = args(Self::new(self.big)).bytes;
        self.event_of_length(id, timestamp_ns, 24 + payload.len() as u32, pid).bytes(&payload)
    }

    /// Appends an event record up to its pid, with any length in it.
    pub(crate) fn event_of_length(self, id: u64, timestamp_ns: u64, length: u32, pid: u32) -> Self {
        self.u64(1).u64(id).u64(timestamp_ns).u32(length).u32(pid)
    }

    /// Appends a `dropped` record.
    pub(crate) fn dropped(self, timestamp_ns: u64, pid: u32, count: u64) -> Self {
        self.event(0xffff_ffff_ffff_fffe, timestamp_ns, pid, |args| args.u64(count))
    }

    /// Appends an event record of version 0: 64 bytes, whatever its words.
    pub(crate) fn event_of_words(self, id: u64, timestamp_ns: u64, words: &[u64]) -> Self {
        assert!(words.len() <= 6);
        let start = self.u64(id).u64(timestamp_ns);
        words.iter().fold(start, |bytes, &word| bytes.u64(word)).zeros(48 - 8 * words.len())
    }

    /// Appends an event record of version 2 or 3, which has no type word, up to its pid (in version 2 a reserved field), with
    /// any length in it.
    pub(crate) fn untyped_event_of_length(self, id: u64, timestamp_ns: u64, length: u32, pid: u32) -> Self {
        self.u64(id).u64(timestamp_ns).u32(length).u32(pid)
    }

    /// Appends an event record as files of `version` have it: without a pid before version 3. In version 0 the payload is
    /// filled up with zeros.
    pub(crate) fn event_of_version(
        self,
        version: u64,
        id: u64,
        timestamp_ns: u64,
        pid: u32,
        args: impl FnOnce(Self) -> Self,
    ) -> Self {
        let payload = args(Self::new(self.big)).bytes;
        let length = 24 + payload.len() as u32;
        match version {
            0 => {
                assert!(payload.len() <= 48);
                self.u64(id).u64(timestamp_ns).bytes(&payload).zeros(48 - payload.len())
            }
            2 => self.untyped_event_of_length(id, timestamp_ns, length, 0).bytes(&payload),
            3 => self.untyped_event_of_length(id, timestamp_ns, length, pid).bytes(&payload),
            4 => self.event_of_length(id, timestamp_ns, length, pid).bytes(&payload),
            _ => panic!("no such version"),
        }
    }

    /// Appends a `dropped` record as files of `version` have it.
    pub(crate) fn dropped_of_version(self, version: u64, timestamp_ns: u64, pid: u32, count: u64) -> Self {
        let timestamp_ns = if version == 0 { 0 } else { timestamp_ns };
        self.event_of_version(version, 0xffff_ffff_ffff_fffe, timestamp_ns, pid, |args| args.u64(count))
    }

    /// The bytes so far: the offset of what comes next.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn build(self) -> Vec<u8> {
        self.bytes
    }
}
