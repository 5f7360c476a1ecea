//! The file that is being written: records gather in a block, blocks go out whole.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use simpletrace_format::{ByteOrder, EventId, HEADER_BYTES, Record, SliceReader, TraceWriter, event_front};

use crate::event::Registry;
use crate::ring::Front;
use crate::sync::{Ordering, Word};

#[cfg(not(loom))]
mod about;
mod parts;
mod target;

pub(crate) use parts::Rotation;
#[cfg(any(test, loom))]
pub(crate) use target::Memory;
#[cfg(all(test, not(loom)))]
pub(crate) use target::Step;

use parts::Parts;
use target::Target;

/// A block is written when it has this many bytes: enough that the system call does not matter, and still in the cache.
const BLOCK_BYTES: usize = 256 << 10;

/// What stands before an event's payload.
const FRONT_BYTES: usize = 32;

/// What the files that are written look like: that of nearly every machine, and readers find it out.
const ORDER: ByteOrder = ByteOrder::Little;

/// How long until what failed is tried again.
pub(crate) const RETRY_NS: u64 = 1_000_000_000;

/// A trace file being written.
///
/// It begins with a header; then come blocks of whole records. A block is written in one piece or, to a target that takes no more for
/// now, in several: meanwhile it is pending.
pub(crate) struct Output {
    target: Target,
    path: PathBuf,
    parts: Option<Parts>,
    /// Whether files say what they are.
    has_facts: bool,
    /// How long the file is before anything is recorded.
    front_bytes: u64,
    /// Whole records, behind a header if they are the first of the file.
    block: Block,
    /// So much of the block is written.
    done: usize,
    /// Memory for records that are no events.
    scratch: Vec<u8>,
    /// The events among them.
    block_records: u64,
    /// Which events have been given a name in this file, by id.
    mapped: Vec<bool>,
    /// The same ones in the order of their names in the file, and how many of these were there before the block.
    names: Vec<u32>,
    names_before: usize,
    /// The length of what was written before the block: where the file ends if none of the block is written. 0: the block begins with
    /// the header.
    length: u64,
    trouble: Option<Trouble>,
    /// What is yet to be told, and what has been told of this file.
    messages: Vec<String>,
    has_told: Told,
}

/// Why the block is not written.
#[derive(Debug)]
enum Trouble {
    /// The target takes nothing at the moment.
    Stalled,
    /// A pipe that nobody reads.
    NoReader,
    /// No room; to be tried again at this time.
    Full(io::Error, u64),
    /// Nothing more is written.
    Failed(io::Error),
}

#[derive(Default)]
struct Told {
    trouble: bool,
    part: bool,
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
    /// The time of the first record that is not in the file, if there is one.
    pub(crate) since_ns: Option<u64>,
    /// The names that are not.
    names_lost: usize,
}

impl Output {
    /// Opens a file, or makes it; to be followed by [`begin`](Self::begin) on the writer's thread, which has no signals.
    ///
    /// The pid stands for `%d` in the file's name. The file can be read and written by its owner only. This does not wait, not for
    /// a FIFO's reader either.
    pub(crate) fn create(path: &Path, rotation: Option<Rotation>) -> io::Result<Self> {
        let path = expand(path);
        let (target, path, parts) = match rotation {
            None => (Target::open(&path)?, path, None),
            Some(rotation) => {
                let (parts, target) = Parts::open(&path, rotation)?;
                (target, parts.path(), Some(parts))
            }
        };
        Ok(Self { has_facts: true, ..Self::new(target, path, parts) })
    }

    /// A file in memory, of at most so many bytes.
    #[cfg(any(test, loom))]
    pub(crate) fn in_memory(limit: usize) -> (Self, std::sync::Arc<std::sync::Mutex<Vec<u8>>>) {
        let memory = Memory { limit: Some(limit), ..Memory::default() };
        (Self::to_memory(memory.clone(), false), memory.bytes)
    }

    #[cfg(any(test, loom))]
    pub(crate) fn to_memory(memory: Memory, is_pipe: bool) -> Self {
        Self::new(Target::in_memory(memory, is_pipe), "memory".into(), None)
    }

    fn new(target: Target, path: PathBuf, parts: Option<Parts>) -> Self {
        Self {
            target,
            path,
            parts,
            has_facts: false,
            front_bytes: 0,
            block: Block::new(),
            done: 0,
            scratch: Vec::new(),
            block_records: 0,
            mapped: Vec::new(),
            names: Vec::new(),
            names_before: 0,
            length: 0,
            trouble: None,
            messages: Vec::new(),
            has_told: Told::default(),
        }
    }

    /// Empties the file, removes what is left of an earlier trace, and writes the header. That it stalls is no error.
    pub(crate) fn begin(&mut self, now_ns: u64) -> io::Result<Written> {
        if let Some(parts) = &self.parts {
            parts.remove_earlier()?;
        }
        if self.target.is_regular() {
            self.target.cut(0)?;
        }
        self.begin_file();
        let written = self.write_out(now_ns);
        match &self.trouble {
            Some(Trouble::Full(error, _) | Trouble::Failed(error)) => Err(copy(error)),
            _ => Ok(written),
        }
    }

    /// Begins a file: the one place where is said what is in front of all records. All names have to come again.
    fn begin_file(&mut self) {
        self.forget_block();
        self.length = 0;
        self.unmap(0);
        self.scratch.clear();
        // Cannot fail, nor can what follows: it is in memory.
        let _ = TraceWriter::new(&mut self.scratch, ORDER);
        #[cfg(not(loom))]
        if self.has_facts {
            let facts = about::facts(self.parts.as_ref().map(|parts| parts.number));
            let _ = TraceWriter::append(&mut self.scratch, ORDER).facts(&facts);
        }
        self.block.append(&self.scratch);
        self.front_bytes = self.block.filled as u64;
    }

    /// The file, or the part of it, that is written.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The descriptor that is written to, if there is one.
    #[cfg(not(loom))]
    pub(crate) fn descriptor(&self) -> Option<i32> {
        self.target.descriptor()
    }

    /// Whether writing may close the file and open another one.
    pub(crate) fn may_change_file(&self) -> bool {
        self.parts.is_some() || self.is_pipe()
    }

    /// Which file is written, if it is a regular one.
    #[cfg(not(loom))]
    pub(crate) fn identity(&self) -> Option<crate::segment::Identity> {
        self.target.identity()
    }

    /// How much of the file counts, in bytes: what is behind that is no whole record.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Whether the file takes no events.
    #[inline]
    pub(crate) fn is_failed(&self) -> bool {
        matches!(self.trouble, Some(Trouble::Full(..) | Trouble::Failed(_)))
    }

    /// Whether the target takes nothing now: the block is pending, and nothing is to be added to it but what must be.
    pub(crate) fn is_stalled(&self) -> bool {
        matches!(self.trouble, Some(Trouble::Stalled | Trouble::NoReader))
    }

    /// Whether the target may have changed by itself.
    pub(crate) fn is_pipe(&self) -> bool {
        self.target.is_pipe()
    }

    /// Whether what is pending tells nothing: neither an event nor a loss.
    pub(crate) fn is_empty(&self) -> bool {
        whole_records(self.block.filled(), self.done, self.length == 0).since_ns.is_none()
    }

    /// Whether there may be room again, so that a file that has failed is to be tried once more. Then it takes records again.
    pub(crate) fn retry(&mut self, now_ns: u64) -> bool {
        if !matches!(self.trouble, Some(Trouble::Full(_, retry_ns)) if retry_ns <= now_ns) {
            return false;
        }
        self.trouble = None;
        if self.length == 0 {
            self.begin_file();
        }
        true
    }

    /// Whether there is something to [`retry`](Self::retry), now or later.
    pub(crate) fn may_recover(&self) -> bool {
        matches!(self.trouble, Some(Trouble::Full(..)))
    }

    /// Why nothing is written, if so.
    pub(crate) fn trouble(&self) -> Option<String> {
        Some(match self.trouble.as_ref()? {
            Trouble::Stalled => "its reader takes nothing".to_owned(),
            Trouble::NoReader => "nobody reads it".to_owned(),
            Trouble::Full(error, _) | Trouble::Failed(error) => error.to_string(),
        })
    }

    /// Whether the file was removed while it was written.
    pub(crate) fn is_removed(&self) -> bool {
        self.target.is_removed()
    }

    /// What whoever runs the program should know, each thing once per file.
    pub(crate) fn take_messages(&mut self) -> Vec<String> {
        std::mem::take(&mut self.messages)
    }

    fn tell_trouble(&mut self, what: &str) {
        if !std::mem::replace(&mut self.has_told.trouble, true) {
            self.messages.push(format!("simpletrace: {} cannot be written: {what}", self.path.display()));
        }
    }

    /// To be called when nothing more is written to this file.
    pub(crate) fn end(&mut self) {
        if self.is_removed() {
            let path = self.path.display();
            self.messages.push(format!("simpletrace: {path} was removed while it was written: what it held is gone"));
        }
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
        self.names.push(id);
        self.append_name(registry, id);
    }

    fn append_name(&mut self, registry: &Registry, id: u32) {
        self.scratch.clear();
        if let Some(name) = registry.name_of(id) {
            // Cannot fail: names are checked when they are registered.
            let _ = TraceWriter::append(&mut self.scratch, ORDER).mapping(EventId(id.into()), name);
        }
        self.block.append(&self.scratch);
    }

    /// Keeps only so many names.
    fn unmap(&mut self, names: usize) {
        for id in self.names.drain(names..) {
            self.mapped[id as usize] = false;
        }
        self.names_before = names;
    }

    /// Adds a record that says that events are missing.
    pub(crate) fn dropped(&mut self, timestamp_ns: u64, pid: u32, count: u64) {
        self.scratch.clear();
        // Cannot fail: it is in memory.
        let _ = TraceWriter::append(&mut self.scratch, ORDER).dropped(timestamp_ns, pid, count);
        self.block.append(&self.scratch);
    }

    /// Writes the block, or as much of it as the target takes: then it is pending, and counts as nothing yet. If that fails, the file ends
    /// with its last whole record, and takes nothing more until it is [tried again](Self::retry).
    pub(crate) fn write_out(&mut self, now_ns: u64) -> Written {
        if self.target.has_lost_reader() {
            return self.lose_reader();
        }
        if self.block.filled == 0 || self.is_failed() {
            return Written::default();
        }
        let mut deadline = None;
        let trouble = loop {
            if self.done == self.block.filled {
                break None;
            }
            let error = match self.target.write(&self.block.filled()[self.done..]) {
                Ok(0) => io::ErrorKind::WriteZero.into(),
                Ok(bytes) => {
                    self.done += bytes;
                    continue;
                }
                Err(error) => error,
            };
            match Errno::from_io_error(&error) {
                Some(Errno::INTR) => {}
                Some(Errno::AGAIN) if self.target.wait(&mut deadline) => {}
                Some(Errno::AGAIN) => break Some(Trouble::Stalled),
                Some(Errno::NXIO) if self.is_pipe() => {
                    self.target.wait(&mut deadline);
                    break Some(Trouble::NoReader);
                }
                Some(Errno::PIPE) if self.is_pipe() => return self.lose_reader(),
                Some(Errno::NOSPC | Errno::DQUOT) if self.target.is_regular() => {
                    break Some(Trouble::Full(error, now_ns + RETRY_NS));
                }
                _ => break Some(Trouble::Failed(error)),
            }
        };
        self.trouble = trouble;
        match &self.trouble {
            None => {
                let (records, bytes) = (self.block_records, self.block.filled as u64);
                self.length += bytes;
                self.forget_block();
                Written { records, bytes, ..Written::default() }
            }
            Some(Trouble::Stalled | Trouble::NoReader) => Written::default(),
            Some(Trouble::Full(error, _)) => {
                let what = format!("{error}; events are counted as lost until there is room");
                self.tell_trouble(&what);
                self.cut_back()
            }
            Some(Trouble::Failed(error)) => {
                let what = format!("{error}; events are counted as lost");
                self.tell_trouble(&what);
                self.cut_back()
            }
        }
    }

    /// Gives up what is pending, as nothing more is to be written.
    pub(crate) fn give_up(&mut self) -> Written {
        let Some(what) = self.trouble().filter(|_| self.is_stalled()) else { return Written::default() };
        let written = self.cut_back();
        if written.since_ns.is_some() {
            self.tell_trouble(&format!("{what}; events are lost"));
        }
        self.trouble = Some(Trouble::Failed(io::Error::new(io::ErrorKind::TimedOut, what)));
        written
    }

    /// A pipe's reader has left: the next one gets a file from its beginning.
    fn lose_reader(&mut self) -> Written {
        let written = self.cut_back();
        self.target.close();
        self.begin_file();
        self.trouble = Some(Trouble::NoReader);
        self.tell_trouble("its reader has left; events wait for the next one as long as there is room for them");
        written
    }

    /// Ends the file behind the last whole record of the block that is in it, and forgets the rest.
    fn cut_back(&mut self) -> Written {
        let written = whole_records(self.block.filled(), self.done, self.length == 0);
        let length = self.length + written.bytes;
        if written.bytes < self.done as u64 && self.target.is_regular() {
            // If that fails as well, the file has a torn tail, which readers cope with. But nothing may follow.
            if let Err(error) = self.target.cut(length) {
                self.trouble = Some(Trouble::Failed(error));
            }
        }
        self.length = length;
        self.forget_block();
        self.unmap(self.names.len() - written.names_lost);
        written
    }

    fn forget_block(&mut self) {
        self.block.filled = 0;
        self.done = 0;
        self.block_records = 0;
        self.names_before = self.names.len();
    }

    /// Begins the next part with the block if it does not fit into this one, before it is written. Returns whether it did.
    pub(crate) fn begin_part_if_due(&mut self, registry: &Registry, now_ns: u64) -> bool {
        if self.done > 0 || self.is_failed() {
            return false;
        }
        let Some(parts) = &mut self.parts else { return false };
        // One with nothing in it takes any block.
        let is_due = self.length > self.front_bytes
            && self.length + self.block.filled as u64 > parts.rotation.bytes
            && parts.retry_ns <= now_ns;
        if !is_due {
            return false;
        }
        match parts.next() {
            Ok(target) => {
                self.target = target;
                self.path = parts.path();
                parts.remove_oldest();
                self.begin_part(registry);
                true
            }
            Err(error) => {
                parts.retry_ns = now_ns + RETRY_NS;
                if !std::mem::replace(&mut self.has_told.part, true) {
                    let path = self.path.display();
                    self.messages
                        .push(format!("simpletrace: no part can be made to follow {path}, which grows on: {error}"));
                }
                false
            }
        }
    }

    /// Puts in front of the block what a file begins with, and all names that were given before the block.
    fn begin_part(&mut self, registry: &Registry) {
        let records = self.block.filled().to_vec();
        let block_records = self.block_records;
        let mut names = std::mem::take(&mut self.names);
        let before = self.names_before;
        self.begin_file();
        for &id in &names[..before] {
            self.append_name(registry, id);
        }
        self.block.append(&records);
        self.block_records = block_records;
        std::mem::swap(&mut self.names, &mut names);
        // They are all in this block now.
        self.names_before = 0;
    }

    /// Waits until all parts are gone that are not to be kept.
    pub(crate) fn finish_removals(&mut self) {
        if let Some(parts) = &mut self.parts {
            parts.finish();
        }
    }

    /// How many parts there have been.
    pub(crate) fn parts(&self) -> u64 {
        self.parts.as_ref().map_or(0, |parts| parts.number)
    }
}

/// Returns what of a block is in the file if `done` bytes of it are, and no record in pieces.
fn whole_records(block: &[u8], done: usize, has_header: bool) -> Written {
    let mut written = Written::default();
    let records = if has_header { block.get(HEADER_BYTES..).unwrap_or_default() } else { block };
    let before = (block.len() - records.len()) as u64;
    if done as u64 >= before {
        written.bytes = before;
    }
    let mut reader = SliceReader::headerless(records, ORDER);
    while let Some(Ok(record)) = reader.next() {
        let end = before + reader.offset();
        let is_written = end <= done as u64;
        if is_written {
            written.bytes = end;
        }
        let (records, untold, at_ns) = match record {
            Record::Mapping(mapping) => {
                written.names_lost += usize::from(!is_written && !mapping.is_fact());
                continue;
            }
            Record::Event(event) => (1, 0, event.timestamp_ns),
            Record::Dropped(dropped) => (0, dropped.count, dropped.timestamp_ns),
        };
        if is_written {
            written.records += records;
        } else {
            written.lost += records;
            written.untold += untold;
            written.since_ns.get_or_insert(at_ns);
        }
    }
    written
}

fn copy(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

/// Puts the process's id for `%d`.
pub(crate) fn expand(path: &Path) -> PathBuf {
    match path.to_str() {
        Some(text) if text.contains("%d") => text.replace("%d", &std::process::id().to_string()).into(),
        _ => path.to_owned(),
    }
}
