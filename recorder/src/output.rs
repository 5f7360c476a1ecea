//! The file that is being written: records gather in a block, blocks go out whole.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use simpletrace_format::{ByteOrder, EventId, Record, SliceReader, TraceWriter, event_front};

use crate::event::Registry;
use crate::ring::Front;
use crate::sync::{Ordering, Word};

/// A block is written when it has this many bytes: enough that the system call does not matter, and still in the cache.
const BLOCK_BYTES: usize = 256 << 10;

/// What stands before an event's payload.
const FRONT_BYTES: usize = 32;

/// What the files that are written look like: that of nearly every machine, and readers find it out.
const ORDER: ByteOrder = ByteOrder::Little;

/// What is written to.
enum Target {
    File(File),
    /// Takes so many bytes and then is full.
    #[cfg(any(test, loom))]
    Memory(std::sync::Arc<std::sync::Mutex<Vec<u8>>>, usize),
}

/// A trace file being written.
pub(crate) struct Output {
    target: Target,
    path: PathBuf,
    /// Whole records.
    block: Block,
    /// Memory for records that are no events.
    scratch: Vec<u8>,
    /// The events among them.
    block_records: u64,
    /// Which events have been given a name in this file, by id.
    mapped: Vec<bool>,
    /// The length of what was written, or `None` if the file is no regular one and cannot be cut.
    length: Option<u64>,
    failed: Option<io::Error>,
}

/// Bytes that gather: memory that is initialised once, so that a record is stored into it as it is, and looked after once.
struct Block {
    bytes: Vec<u8>,
    filled: usize,
}

impl Block {
    fn new() -> Self {
        Self { bytes: vec![0; BLOCK_BYTES + (BLOCK_BYTES >> 2)], filled: 0 }
    }

    fn filled(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }

    /// The next `length` bytes, not filled yet.
    #[inline]
    fn room(&mut self, length: usize) -> &mut [u8] {
        let end = self.filled + length;
        if end > self.bytes.len() {
            self.grow(end);
        }
        &mut self.bytes[self.filled..end]
    }

    #[cold]
    fn grow(&mut self, length: usize) {
        self.bytes.resize(length.next_power_of_two(), 0);
    }

    fn append(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
        self.filled += bytes.len();
    }
}

/// What became of a block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// The events that are in the file.
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    /// The events that are not.
    pub(crate) lost: u64,
    /// The losses that the file was to tell, and does not.
    pub(crate) untold: u64,
    /// The time of the first record that is not in the file.
    pub(crate) since_ns: u64,
}

impl Output {
    /// Makes the file, or empties it, and writes its header.
    ///
    /// The pid stands for `%d` in the file's name. The file can be read and written by its owner only.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let path = expand(path);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path)?;
        let length = file.metadata()?.is_file().then_some(0);
        Self::begin(Target::File(file), path, length)
    }

    /// A file of at most so many bytes, in memory.
    #[cfg(any(test, loom))]
    pub(crate) fn in_memory(limit: usize) -> (Self, std::sync::Arc<std::sync::Mutex<Vec<u8>>>) {
        let bytes = std::sync::Arc::default();
        let target = Target::Memory(std::sync::Arc::clone(&bytes), limit);
        (Self::begin(target, "memory".into(), Some(0)).expect("room for a header"), bytes)
    }

    fn begin(target: Target, path: PathBuf, length: Option<u64>) -> io::Result<Self> {
        let mut scratch = Vec::new();
        TraceWriter::new(&mut scratch, ORDER)?;
        let mut block = Block::new();
        block.append(&scratch);
        let mut output =
            Self { target, path, block, scratch, block_records: 0, mapped: Vec::new(), length, failed: None };
        output.write_out();
        match output.failed {
            Some(error) => Err(error),
            None => Ok(output),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Why nothing more is written, if so.
    pub(crate) fn failed(&self) -> Option<&io::Error> {
        self.failed.as_ref()
    }

    /// Whether it is time to [`write_out`](Self::write_out).
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.block.filled >= BLOCK_BYTES
    }

    /// Adds an event, and its name before the first of its kind.
    #[inline]
    pub(crate) fn event(&mut self, registry: &Registry, front: Front, payload: &[Word], timestamp_ns: u64, pid: u32) {
        if self.mapped.get(front.id as usize) != Some(&true) {
            self.map(registry, front.id);
        }
        let record = self.block.room(FRONT_BYTES + size_of_val(payload));
        if let Some((to, rest)) = record.split_first_chunk_mut() {
            *to = event_front(ORDER, EventId(front.id.into()), timestamp_ns, front.payload_bytes, pid);
            for (to, word) in rest.as_chunks_mut().0.iter_mut().zip(payload) {
                // Relaxed: they are ours since the tail was loaded.
                *to = word.load(Ordering::Relaxed).to_le_bytes();
            }
        }
        // Not the zeros that the last word of a payload with strings is filled up with.
        self.block.filled += FRONT_BYTES + front.payload_bytes as usize;
        self.block_records += 1;
    }

    #[cold]
    fn map(&mut self, registry: &Registry, id: u32) {
        let place = id as usize;
        if self.mapped.len() <= place {
            self.mapped.resize(place + 1, false);
        }
        self.mapped[place] = true;
        if let Some(name) = registry.name_of(id) {
            self.scratch.clear();
            // Cannot fail: names are checked when they are registered.
            let _ = TraceWriter::append(&mut self.scratch, ORDER).mapping(EventId(id.into()), name);
            self.block.append(&self.scratch);
        }
    }

    /// Adds a record that says that events are missing.
    pub(crate) fn dropped(&mut self, timestamp_ns: u64, pid: u32, count: u64) {
        self.scratch.clear();
        // Cannot fail: it is in memory.
        let _ = TraceWriter::append(&mut self.scratch, ORDER).dropped(timestamp_ns, pid, count);
        self.block.append(&self.scratch);
    }

    /// Writes the block. If that fails, the file ends with its last whole record, and takes nothing more.
    pub(crate) fn write_out(&mut self) -> Written {
        if self.block.filled == 0 {
            return Written::default();
        }
        let records = std::mem::take(&mut self.block_records);
        let mut done = 0;
        while done < self.block.filled && self.failed.is_none() {
            match self.target.write(&self.block.filled()[done..]) {
                Ok(0) => self.failed = Some(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => done += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.failed = Some(error),
            }
        }
        let written = if done == self.block.filled {
            Written { records, bytes: done as u64, ..Written::default() }
        } else {
            let written = whole_records(self.block.filled(), done);
            self.cut(written.bytes as usize, done);
            written
        };
        if let Some(length) = &mut self.length {
            *length += written.bytes;
        }
        self.block.filled = 0;
        written
    }

    /// Cuts what was written of a block back to its `whole` records.
    fn cut(&mut self, whole: usize, done: usize) {
        if whole < done
            && let Some(length) = self.length
        {
            let length = length + whole as u64;
            // Should that fail as well, the file has a torn tail, which readers cope with.
            let _ = self.target.cut(length);
        }
    }
}

impl Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.write(bytes),
            #[cfg(any(test, loom))]
            Self::Memory(memory, limit) => {
                let mut memory = memory.lock().expect("no panic");
                let room = *limit - memory.len();
                if room == 0 {
                    return Err(io::ErrorKind::StorageFull.into());
                }
                let bytes = &bytes[..bytes.len().min(room)];
                memory.extend_from_slice(bytes);
                Ok(bytes.len())
            }
        }
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        match self {
            Self::File(file) => {
                file.set_len(length)?;
                file.seek(SeekFrom::Start(length)).map(|_| ())
            }
            #[cfg(any(test, loom))]
            Self::Memory(memory, _) => {
                memory.lock().expect("no panic").truncate(length as usize);
                Ok(())
            }
        }
    }
}

/// Returns what of a block is in the file if `done` bytes of it are, and no record in pieces.
fn whole_records(block: &[u8], done: usize) -> Written {
    let mut reader = SliceReader::headerless(block, ORDER);
    let mut written = Written::default();
    let mut since_ns = None;
    while let Some(Ok(record)) = reader.next() {
        let (is_written, end) = (reader.offset() <= done as u64, reader.offset());
        if is_written {
            written.bytes = end;
        }
        let (records, untold, at_ns) = match record {
            Record::Mapping(_) => continue,
            Record::Event(event) => (1, 0, event.timestamp_ns),
            Record::Dropped(dropped) => (0, dropped.count, dropped.timestamp_ns),
        };
        if is_written {
            written.records += records;
        } else {
            written.lost += records;
            written.untold += untold;
            since_ns.get_or_insert(at_ns);
        }
    }
    written.since_ns = since_ns.unwrap_or(0);
    written
}

/// Puts the process's id for `%d`.
pub(crate) fn expand(path: &Path) -> PathBuf {
    match path.to_str() {
        Some(text) if text.contains("%d") => text.replace("%d", &std::process::id().to_string()).into(),
        _ => path.to_owned(),
    }
}
