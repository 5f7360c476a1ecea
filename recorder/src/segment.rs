//! The segment of shared memory in which rings survive the death of the process: a file in a folder that is in memory, whose layout
//! [`simpletrace_format::durable`] says.
//!
//! All of what is mapped is allocated before, so that a full folder is an error here and never a signal in a thread that records. Stores
//! are those of atomics; what reads them is another process, after this one's end.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use memmap2::MmapOptions;
use rustix::fs::{
    AtFlags, FallocateFlags, FlockOperation, Mode, OFlags, fallocate, fcntl_lock, fstat, openat, unlinkat,
};
use rustix::io::Errno;
use simpletrace_format::durable::{
    CHECKPOINT_BYTES, CHECKPOINTS_AT, Checkpoint, DIRECTORY_AT, MAGIC, MAX_RINGS, NAMES_AT, NAMES_BYTES,
    RING_ALIGNMENT, RINGS_AT, VERSION, header_at,
};

use crate::say::say;

/// Which file is the trace: its device and inode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// The segment of a recording. It stays mapped for as long as the process lives, as rings do.
pub(crate) struct Segment {
    file: File,
    folder: PathBuf,
    /// The same place when the program changes its current folder or its root.
    place: OwnedFd,
    /// Its name in there, as long as it has one.
    name: Mutex<Option<String>>,
    /// All in front of the names.
    control: &'static [AtomicU64],
    /// Where the next ring goes.
    end: AtomicU64,
    /// There was no room for a ring.
    is_full: AtomicBool,
    /// There was no room for a name.
    lacks_names: AtomicBool,
}

/// What a segment is called.
fn name_of(identity: Identity, attempt: u32) -> String {
    let Identity { device, inode } = identity;
    match attempt {
        0 => format!("simpletrace-{device:x}-{inode}"),
        _ => format!("simpletrace-{device:x}-{inode}-{attempt}"),
    }
}

/// How many names to try, where others are in the way.
const ATTEMPTS: u32 = 10;

impl Segment {
    /// Makes the segment of a trace. What an earlier recording into the same file left there is removed: that file is emptied, too.
    pub(crate) fn create(folder: &Path, identity: Identity, recording: u64) -> io::Result<&'static Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let place = rustix::fs::open(folder, flags, Mode::empty())?;
        let (file, name) = Self::make_file(&place, identity)?;
        let segment = Self::map(&file);
        if segment.is_err() {
            let _ = unlinkat(&place, &name, AtFlags::empty());
        }
        let control = segment?;
        let segment: &'static Self = Box::leak(Box::new(Self {
            file,
            folder: folder.to_owned(),
            place,
            name: Mutex::new(Some(name)),
            control,
            end: AtomicU64::new(RINGS_AT as u64),
            is_full: AtomicBool::new(false),
            lacks_names: AtomicBool::new(false),
        }));
        // The version, and behind it the process.
        segment.store(header_at::VERSION, u64::from(VERSION) | u64::from(std::process::id()) << 32);
        segment.store(header_at::START_TIME, start_time().unwrap_or(0));
        segment.store(header_at::RECORDING, recording);
        let mut boot_id = [0; 40];
        if let Ok(id) = std::fs::read("/proc/sys/kernel/random/boot_id") {
            let length = id.len().min(36);
            boot_id[..length].copy_from_slice(&id[..length]);
        }
        for (at, word) in (header_at::BOOT_ID..).step_by(8).zip(boot_id.as_chunks().0) {
            segment.store(at, u64::from_le_bytes(*word));
        }
        // The last of all.
        segment.word(header_at::MAGIC).store(u64::from_le_bytes(MAGIC), Ordering::Release);
        Ok(segment)
    }

    fn make_file(place: &OwnedFd, identity: Identity) -> io::Result<(File, String)> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut attempt = 0;
        loop {
            let name = name_of(identity, attempt);
            match openat(place, &name, flags, Mode::RUSR | Mode::WUSR) {
                Ok(file) => {
                    let file = File::from(file);
                    // Until this process dies. A child does not get it.
                    fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive)?;
                    return Ok((file, name));
                }
                Err(Errno::EXIST) if remove_orphan(place, &name, identity) => {}
                Err(Errno::EXIST) if attempt + 1 < ATTEMPTS => attempt += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn map(file: &File) -> io::Result<&'static [AtomicU64]> {
        check_limit(RINGS_AT as u64)?;
        file.set_len(RINGS_AT as u64)?;
        fallocate(file, FallocateFlags::empty(), 0, NAMES_AT as u64)?;
        let map = MmapOptions::new().len(NAMES_AT).populate().map_raw(file)?;
        let words = map.as_mut_ptr().cast::<AtomicU64>();
        std::mem::forget(map);
        // SAFETY: the mapping is of so many bytes, page-aligned and never unmapped. Other processes could store to it, hence atomics, for
        // which all values are valid.
        Ok(unsafe { std::slice::from_raw_parts(words, NAMES_AT / 8) })
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        &self.control[at / 8]
    }

    fn store(&self, at: usize, value: u64) {
        // Relaxed, as all stores that a later one with Release makes count.
        self.word(at).store(value.to_le(), Ordering::Relaxed);
    }

    /// Makes room for a ring of so many bytes, with all its pages in place. If there is none, all later rings are made elsewhere. Safe in a
    /// signal handler.
    pub(crate) fn allocate(&self, bytes: usize) -> Option<Room> {
        let room = if self.is_full.load(Ordering::Relaxed) { None } else { self.try_allocate(bytes) };
        if room.is_none() {
            self.is_full.store(true, Ordering::Relaxed);
            self.word(header_at::RINGS_ELSEWHERE).fetch_add(1, Ordering::Relaxed);
        }
        room
    }

    fn try_allocate(&self, bytes: usize) -> Option<Room> {
        // Relaxed: numbers and places, each for one only. What was taken in vain stays empty.
        let number = self.word(header_at::RINGS).fetch_add(1, Ordering::Relaxed) as usize;
        let offset = self.end.fetch_add(bytes.next_multiple_of(RING_ALIGNMENT) as u64, Ordering::Relaxed);
        if number >= MAX_RINGS {
            return None;
        }
        check_limit(offset + bytes as u64).ok()?;
        fallocate(&self.file, FallocateFlags::empty(), offset, bytes as u64).ok()?;
        let map = MmapOptions::new().offset(offset).len(bytes).populate().map_raw(&self.file).ok()?;
        let memory = map.as_mut_ptr();
        std::mem::forget(map);
        Some(Room { memory, number: number as u32, offset })
    }

    /// Puts a ring into the directory, when it is one.
    pub(crate) fn publish(&self, room: &Room) {
        // Release: who finds it finds a ring.
        self.word(DIRECTORY_AT + room.number as usize * 8).store(room.offset.to_le(), Ordering::Release);
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// How many rings had to be made elsewhere.
    pub(crate) fn rings_elsewhere(&self) -> u64 {
        self.word(header_at::RINGS_ELSEWHERE).load(Ordering::Relaxed)
    }

    /// How many events of threads without a ring there were since it was made.
    pub(crate) fn no_ring(&self) -> u64 {
        self.word(header_at::NO_RING).load(Ordering::Relaxed)
    }

    /// Counts an event of a thread without a ring.
    pub(crate) fn count_no_ring(&self) {
        self.word(header_at::NO_RING).fetch_add(1, Ordering::Relaxed);
    }

    /// Says what the next event is called: in the order of their numbers, one thread at a time. A name that does not fit is left out,
    /// with all later ones.
    pub(crate) fn add_name(&self, name: &str) {
        let used = self.word(header_at::NAMES).load(Ordering::Relaxed);
        let mut entry = (name.len() as u16).to_le_bytes().to_vec();
        entry.extend_from_slice(name.as_bytes());
        let is_room = !self.lacks_names.load(Ordering::Relaxed) && used + entry.len() as u64 <= NAMES_BYTES as u64;
        // By a system call, not through memory: there it is an error that a folder is full.
        if is_room
            && check_limit(NAMES_AT as u64 + used + entry.len() as u64).is_ok()
            && self.file.write_all_at(&entry, NAMES_AT as u64 + used).is_ok()
        {
            self.word(header_at::NAMES).store(used + entry.len() as u64, Ordering::Release);
        } else {
            // A later one would pass for this one's.
            self.lacks_names.store(true, Ordering::Relaxed);
        }
    }

    /// Notes what the time-stamp counter and the clock say at one moment. Only the writer does.
    fn note_anchor(&self, ticks: u64, ns: u64) {
        let number = self.word(header_at::ANCHORS).load(Ordering::Relaxed) + 1;
        let at = header_at::ANCHOR[(number % 2) as usize];
        self.store(at, ticks);
        self.store(at + 8, ns);
        self.word(header_at::ANCHORS).store(number, Ordering::Release);
    }

    /// Stores a checkpoint, with the next number. Only the writer does.
    pub(crate) fn store_checkpoint(&self, checkpoint: &mut Checkpoint, scratch: &mut Vec<u8>) {
        checkpoint.sequence += 1;
        scratch.resize(CHECKPOINT_BYTES, 0);
        let used = checkpoint.store(scratch);
        let place = &self.control[(CHECKPOINTS_AT + (checkpoint.sequence % 2) as usize * CHECKPOINT_BYTES) / 8..];
        for range in used {
            let (from, words) = (range.start / 8, range.len().div_ceil(8));
            let bytes = scratch[range.start..].as_chunks().0;
            for (to, word) in place[from..].iter().zip(&bytes[..words]) {
                // Relaxed, as all in front of the store with Release.
                to.store(u64::from_ne_bytes(*word), Ordering::Relaxed);
            }
        }
        self.word(header_at::CHECKPOINT).store(checkpoint.sequence.to_le(), Ordering::Release);
    }

    /// Gives the segment the name of another trace, behind the checkpoint that says so: `recover` finds it by that, too.
    pub(crate) fn rename(&self, identity: Identity) {
        let mut name = self.lock_name();
        let Some(before) = name.as_ref() else { return };
        for attempt in 0..ATTEMPTS {
            let new = name_of(identity, attempt);
            if new == *before {
                // It has it already, or those in front of it are taken.
                return;
            }
            let flags = rustix::fs::RenameFlags::NOREPLACE;
            match rustix::fs::renameat_with(&self.place, before, &self.place, &new, flags) {
                Err(Errno::EXIST) => {}
                Err(_) => return,
                Ok(()) => {
                    *name = Some(new);
                    return;
                }
            }
        }
    }

    /// Removes the segment from its folder, as the trace is whole; says so if that is not possible.
    pub(crate) fn remove(&self) {
        if let Some(name) = self.lock_name().take()
            && let Err(error) = unlinkat(&self.place, &name, AtFlags::empty())
            // Somebody else may have been faster.
            && error != Errno::NOENT
        {
            let path = self.folder.join(name);
            say(&format!("simpletrace: {} cannot be removed, and is not needed any more: {error}", path.display()));
        }
    }

    fn lock_name(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.name.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the files in a forked child, where the segment is the parent's and not used any more.
    pub(crate) fn close_in_child(&self) {
        // SAFETY: nobody uses the descriptors any more: the segment is not reached from anywhere in the child.
        unsafe {
            rustix::io::close(self.file.as_raw_fd());
            rustix::io::close(self.place.as_raw_fd());
        }
    }
}

/// Notes in a segment how far the writer has come.
pub(crate) struct Keeper {
    segment: &'static Segment,
    checkpoint: Checkpoint,
    scratch: Vec<u8>,
}

impl Keeper {
    pub(crate) fn new(segment: &'static Segment, mut checkpoint: Checkpoint) -> Self {
        checkpoint.sequence = 0;
        Self { segment, checkpoint, scratch: Vec::new() }
    }

    pub(crate) fn segment(&self) -> &'static Segment {
        self.segment
    }

    pub(crate) fn note_anchor(&mut self, ticks: u64, ns: u64) {
        if self.checkpoint.first_anchor == [0; 2] {
            self.checkpoint.first_anchor = [ticks, ns];
        }
        self.segment.note_anchor(ticks, ns);
    }

    /// What the checkpoint that counts says, to be brought up to date and then [stored](Self::store).
    pub(crate) fn checkpoint(&mut self) -> &mut Checkpoint {
        &mut self.checkpoint
    }

    pub(crate) fn store(&mut self) {
        self.segment.store_checkpoint(&mut self.checkpoint, &mut self.scratch);
    }

    /// Says that the trace goes on in another file, which has so many bytes yet; to be called before a byte is written there. Returns what is
    /// to be said if it is to go back.
    pub(crate) fn begin_file(&mut self, file: (Identity, &Path), length: u64) -> (Identity, PathBuf, u64) {
        use std::os::unix::ffi::OsStrExt as _;
        let (identity, path) = file;
        let before = (
            Identity { device: self.checkpoint.device, inode: self.checkpoint.inode },
            PathBuf::from(std::ffi::OsStr::from_bytes(&self.checkpoint.path)),
            self.checkpoint.length,
        );
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        (self.checkpoint.device, self.checkpoint.inode) = (identity.device, identity.inode);
        self.checkpoint.length = length;
        self.checkpoint.path = path.as_os_str().as_bytes().to_vec();
        self.store();
        self.segment.rename(identity);
        before
    }
}

/// Room for a ring.
pub(crate) struct Room {
    /// As many bytes as were asked for, zeros, never unmapped but in a forked child.
    pub(crate) memory: *mut u8,
    pub(crate) number: u32,
    offset: u64,
}

/// Whether a file may be so long: the kernel would end the program with `SIGXFSZ` in a thread that makes it longer.
fn check_limit(bytes: u64) -> io::Result<()> {
    match rustix::process::getrlimit(rustix::process::Resource::Fsize).current {
        Some(limit) if bytes > limit => Err(Errno::FBIG.into()),
        _ => Ok(()),
    }
}

/// Removes a segment whose recording has died, if it is ours and belongs to the trace that its name says, as the trace is emptied.
fn remove_orphan(place: &OwnedFd, name: &str, identity: Identity) -> bool {
    let is_orphan = || -> io::Result<bool> {
        let file = File::from(openat(place, name, OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?);
        if fstat(&file)?.st_uid != rustix::process::geteuid().as_raw() {
            return Ok(false);
        }
        // Its owner has it as long as it lives.
        fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let mut control = vec![0; NAMES_AT];
        file.read_exact_at(&mut control, 0)?;
        // Zeros: it was killed before it was one.
        let magic = &control[header_at::MAGIC..][..MAGIC.len()];
        if magic != MAGIC && magic != [0; MAGIC.len()] {
            return Ok(false);
        }
        let sequence = control[header_at::CHECKPOINT..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        let place = CHECKPOINTS_AT + (sequence % 2) as usize * CHECKPOINT_BYTES;
        let is_of_another = Checkpoint::load(&control[place..place + CHECKPOINT_BYTES])
            .is_some_and(|found| (found.device, found.inode) != (identity.device, identity.inode));
        Ok(!is_of_another)
    };
    is_orphan().unwrap_or(false) && unlinkat(place, name, AtFlags::empty()).is_ok()
}

/// When this process was started, in clock ticks since boot.
fn start_time() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // Behind the program's name, which may hold anything, comes the third field.
    stat.rsplit_once(')')?.1.split_whitespace().nth(22 - 3)?.parse().ok()
}
