//! A recorder as one writes it first, after the published description of QEMU's simple backend: what ours is compared with.
//!
//! All threads share one ring of 256 KiB. A record is claimed by a compare-and-swap on one index, its bytes are copied one by one, each
//! with a test for the ring's end, and its header is read back and written once more to say that the record is whole. Whoever finds the
//! ring more than a quarter full signals the writer under a mutex, for every record. The writer copies a record into new memory, clears
//! it in the ring byte by byte, and hands it to a buffered file in two pieces. Records that find no room are counted with 32 bits.
//!
//! In three points it does better than the description, so as to be sound at the same cost: bytes and indices are atomics, the bit that
//! says that a record is whole is stored last, and the writer waits for a condition that cannot be missed.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use simpletrace_format::{ByteOrder, EventId, TraceWriter};

const RING_BYTES: usize = 256 << 10;
/// So much in the ring wakes the writer.
const WAKE_BYTES: usize = RING_BYTES / 4;
/// The buffer of a C library's file.
const FILE_BUFFER_BYTES: usize = 4096;
const HEADER_BYTES: usize = 24;
/// In the id of a record that is whole.
const WHOLE: u64 = 1 << 63;
const TYPE_EVENT: u64 = 1;

/// The shared ring, and the writer behind it.
pub struct Baseline {
    ring: Arc<Ring>,
    writer: Option<JoinHandle<io::Result<Outcome>>>,
}

/// What became of the records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The records in the file.
    pub written: u64,
    /// The records that found no room.
    pub lost: u64,
}

struct Ring {
    bytes: Box<[AtomicU8]>,
    /// Where the next record goes; grows without end.
    index: AtomicUsize,
    /// The writer is done with what is before.
    written_index: AtomicUsize,
    dropped: AtomicU32,
    /// The dropped records that the file tells of.
    told: AtomicU64,
    pid: u32,
    wanted: Mutex<Wanted>,
    wake: Condvar,
    /// Tells those who wait in [`Baseline::flush`] that the writer looked.
    looked: Condvar,
    enabled: AtomicBool,
}

#[derive(Default)]
struct Wanted {
    /// Somebody signalled since the writer looked.
    now: bool,
    end: bool,
}

impl Baseline {
    /// Records into `file` the events with these names, whose ids are their places.
    ///
    /// # Errors
    ///
    /// The file or the thread cannot be made.
    pub fn start(file: &Path, names: &[&str]) -> io::Result<Self> {
        let mut file = BufWriter::with_capacity(FILE_BUFFER_BYTES, File::create(file)?);
        let mut records = TraceWriter::new(&mut file, ByteOrder::Little)?;
        for (id, name) in names.iter().enumerate() {
            records.mapping(EventId(id as u64), name).map_err(io::Error::other)?;
        }
        let ring = Arc::new(Ring {
            bytes: (0..RING_BYTES).map(|_| AtomicU8::new(0)).collect(),
            index: AtomicUsize::new(0),
            written_index: AtomicUsize::new(0),
            dropped: AtomicU32::new(0),
            told: AtomicU64::new(0),
            pid: std::process::id(),
            wanted: Mutex::default(),
            wake: Condvar::new(),
            looked: Condvar::new(),
            enabled: AtomicBool::new(true),
        });
        let writer = thread::Builder::new().name("baseline".to_owned()).spawn({
            let ring = Arc::clone(&ring);
            move || ring.write_all(file)
        })?;
        Ok(Self { ring, writer: Some(writer) })
    }

    /// Records an event with three numbers, if events are enabled.
    #[inline]
    pub fn emit_words(&self, id: u64, words: [u64; 3]) {
        if self.ring.enabled.load(Ordering::Relaxed) {
            self.ring.record_words(id, words);
        }
    }

    /// Waits until the writer has taken all there is: between measurements, as nothing like it exists for a program that is traced.
    pub fn flush(&self) {
        let mut wanted = self.ring.lock();
        while self.ring.written_index.load(Ordering::Acquire) != self.ring.index.load(Ordering::Acquire) {
            wanted.now = true;
            self.ring.wake.notify_one();
            wanted = self.ring.looked.wait(wanted).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// How many records of three numbers fill the ring so far that the next wakes the writer.
    #[must_use]
    pub const fn room(&self) -> u32 {
        (WAKE_BYTES / (HEADER_BYTES + 24)) as u32
    }

    /// The records lost so far.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.ring.told.load(Ordering::Relaxed) + u64::from(self.ring.dropped.load(Ordering::Relaxed))
    }

    /// Writes what is there, and ends.
    ///
    /// # Errors
    ///
    /// The file could not be written.
    pub fn finish(mut self) -> io::Result<Outcome> {
        self.end()
    }

    fn end(&mut self) -> io::Result<Outcome> {
        let Some(writer) = self.writer.take() else { return Ok(Outcome::default()) };
        self.ring.lock().end = true;
        self.ring.wake.notify_one();
        writer.join().unwrap_or_else(|_| Err(io::Error::other("the writer panicked")))
    }
}

impl Drop for Baseline {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

impl Ring {
    // What is not inlined here is in another file than its caller in the program that is described.
    #[inline(never)]
    fn record_words(&self, id: u64, words: [u64; 3]) {
        let Some(mut record) = self.start(id, 24) else { return };
        for word in words {
            self.put_word(&mut record, word);
        }
        self.finish(&record);
    }

    #[inline(never)]
    fn start(&self, id: u64, payload_bytes: usize) -> Option<Claim> {
        let length = HEADER_BYTES + payload_bytes;
        let timestamp_ns = now_ns();
        let mut index = self.index.load(Ordering::Relaxed);
        loop {
            // Acquire: what the writer gave back is cleared. Saturating: the index may be an old one, and then is not exchanged.
            if (index + length).saturating_sub(self.written_index.load(Ordering::Acquire)) > RING_BYTES {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                return None;
            }
            match self.index.compare_exchange_weak(index, index + length, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => break,
                Err(other) => index = other,
            }
        }
        let header = Header { id, timestamp_ns, length: length as u32, pid: self.pid };
        self.put(index, &header.bytes());
        Some(Claim { begin: index, next: index + HEADER_BYTES })
    }

    #[inline(never)]
    fn put_word(&self, record: &mut Claim, word: u64) {
        self.put(record.next, &word.to_le_bytes());
        record.next += 8;
    }

    #[inline(never)]
    fn finish(&self, record: &Claim) {
        let mut header = Header::from_bytes(self.get(record.begin));
        header.id |= WHOLE;
        let bytes = header.bytes();
        self.put(record.begin + 8, &bytes[8..]);
        // Release: who sees the bit, in the last byte of the id, sees the record.
        fence(Ordering::Release);
        self.put(record.begin, &bytes[..8]);
        let index = self.index.load(Ordering::Relaxed);
        if index.saturating_sub(self.written_index.load(Ordering::Relaxed)) > WAKE_BYTES {
            self.lock().now = true;
            self.wake.notify_one();
        }
    }

    /// Stores bytes one by one.
    #[inline(never)]
    fn put(&self, index: usize, bytes: &[u8]) {
        let mut place = index % RING_BYTES;
        for &byte in bytes {
            if place >= RING_BYTES {
                place = 0;
            }
            self.bytes[place].store(byte, Ordering::Relaxed);
            place += 1;
        }
    }

    /// Loads bytes one by one.
    #[inline(never)]
    fn get_into(&self, index: usize, bytes: &mut [u8]) {
        let mut place = index % RING_BYTES;
        for byte in bytes {
            if place >= RING_BYTES {
                place = 0;
            }
            *byte = self.bytes[place].load(Ordering::Relaxed);
            place += 1;
        }
    }

    fn get<const N: usize>(&self, index: usize) -> [u8; N] {
        let mut bytes = [0; N];
        self.get_into(index, &mut bytes);
        bytes
    }

    /// Clears bytes one by one.
    #[inline(never)]
    fn clear(&self, index: usize, length: usize) {
        let mut place = index % RING_BYTES;
        for _ in 0..length {
            if place >= RING_BYTES {
                place = 0;
            }
            self.bytes[place].store(0, Ordering::Relaxed);
            place += 1;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ---- the writer

    fn write_all(&self, mut file: BufWriter<File>) -> io::Result<Outcome> {
        let mut written = 0;
        loop {
            let mut wanted = self.lock();
            while !wanted.now && !wanted.end {
                wanted = self.wake.wait(wanted).unwrap_or_else(PoisonError::into_inner);
            }
            wanted.now = false;
            let is_end = wanted.end;
            drop(wanted);

            let dropped = self.dropped.swap(0, Ordering::Relaxed);
            if dropped > 0 {
                self.told.fetch_add(dropped.into(), Ordering::Relaxed);
                TraceWriter::append(&mut file, ByteOrder::Little).dropped(now_ns(), self.pid, dropped.into())?;
            }
            while let Some(record) = self.take() {
                file.write_all(&TYPE_EVENT.to_le_bytes())?;
                file.write_all(&record)?;
                written += 1;
            }
            file.flush()?;
            let _wanted = self.lock();
            self.looked.notify_all();
            if is_end {
                return Ok(Outcome { written, lost: self.told.load(Ordering::Relaxed) });
            }
        }
    }

    /// Takes the next record out of the ring, if it is whole.
    fn take(&self) -> Option<Vec<u8>> {
        let begin = self.written_index.load(Ordering::Relaxed);
        let mut header = Header::from_bytes(self.get(begin));
        if header.id & WHOLE == 0 {
            return None;
        }
        fence(Ordering::Acquire);
        header.id &= !WHOLE;
        let length = header.length as usize;
        let mut record = Vec::with_capacity(length);
        record.extend_from_slice(&header.bytes());
        record.resize(length, 0);
        self.get_into(begin + HEADER_BYTES, &mut record[HEADER_BYTES..]);
        self.clear(begin, length);
        // Release: a producer that finds the room finds it cleared.
        self.written_index.store(begin + length, Ordering::Release);
        Some(record)
    }
}

/// A place in the ring that is being filled.
struct Claim {
    begin: usize,
    next: usize,
}

struct Header {
    id: u64,
    timestamp_ns: u64,
    length: u32,
    pid: u32,
}

impl Header {
    fn bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&self.id.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.timestamp_ns.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.length.to_le_bytes());
        bytes[20..].copy_from_slice(&self.pid.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: [u8; HEADER_BYTES]) -> Self {
        let word = u128::from_le_bytes(std::array::from_fn(|i| bytes[i]));
        let last = u64::from_le_bytes(std::array::from_fn(|i| bytes[16 + i]));
        Self { id: word as u64, timestamp_ns: (word >> 64) as u64, length: last as u32, pid: (last >> 32) as u32 }
    }
}

fn now_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use simpletrace_format::{Record, SliceReader};

    use super::*;

    #[test]
    fn what_two_threads_record_is_a_valid_file_and_what_is_not_in_it_is_counted() {
        const EVENTS: u64 = 20_000;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        let baseline = Baseline::start(&path, &["first", "second"]).unwrap();
        thread::scope(|scope| {
            for id in 0..2 {
                let baseline = &baseline;
                scope.spawn(move || (0..EVENTS).for_each(|i| baseline.emit_words(id, [i, !i, 7])));
            }
        });
        let outcome = baseline.finish().unwrap();
        assert_eq!(outcome.written + outcome.lost, 2 * EVENTS);

        let file = std::fs::read(&path).unwrap();
        let mut reader = SliceReader::new(&file).unwrap();
        let (mut events, mut lost, mut next) = (0, 0, [0, 0]);
        while let Some(record) = reader.next_record().unwrap() {
            match record {
                Record::Event(event) => {
                    let mut args = event.payload.args();
                    let words = [args.word().unwrap(), args.word().unwrap(), args.word().unwrap()];
                    assert_eq!(words[1..], [!words[0], 7]);
                    let next = &mut next[event.id.0 as usize];
                    assert!(words[0] >= *next, "a thread's records are in order");
                    *next = words[0] + 1;
                    events += 1;
                }
                Record::Dropped(dropped) => lost += dropped.count,
                _ => {}
            }
        }
        assert_eq!((events, lost), (outcome.written, outcome.lost));
    }
}
