//! What a recording is to be like, and why it could not be.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::output::Rotation;

/// What a recording is to be like.
///
/// # Examples
///
/// ```
/// use simpletrace_recorder::Options;
///
/// let options = Options::new("trace-%d").ring_bytes(4 << 20);
/// ```
#[derive(Debug, Clone)]
pub struct Options {
    pub(crate) file: PathBuf,
    pub(crate) ring_bytes: u64,
    pub(crate) policy: Policy,
    pub(crate) clock: Clock,
    pub(crate) thread_ids: bool,
    pub(crate) fork: Fork,
    pub(crate) rotation: Option<Rotation>,
    pub(crate) is_durable: bool,
    pub(crate) segments: PathBuf,
}

/// What happens to an event whose thread's ring is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// It is counted and left out.
    Discard,
    /// The thread waits for the writer, at most for so long, or without end if `None`; only then is the event counted and left out.
    /// Nobody waits while no writer runs. A signal handler that records waits, too.
    Block(Option<Duration>),
}

/// What time is taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Clock {
    /// The processor's time-stamp counter, converted to `CLOCK_MONOTONIC` by the writer; where it is unfit, that clock itself.
    Auto,
    /// `CLOCK_MONOTONIC`, which costs about 15 ns more per event; for this process's later recordings, too.
    Monotonic,
}

/// What a child does that the process forks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fork {
    /// It records into a file of its own, from its first event on: the parent's name, `-`, and the child's id. One that records no event,
    /// as most that go on to `exec`, makes no file.
    Follow,
    /// It does not record: its events are disabled.
    Off,
}

impl Options {
    /// The smallest ring, in bytes.
    pub const MIN_RING_BYTES: u64 = 64 << 10;
    /// The largest ring, in bytes.
    pub const MAX_RING_BYTES: u64 = 64 << 20;
    /// The smallest part of a trace, in bytes.
    pub const MIN_PART_BYTES: u64 = 1 << 20;

    /// Records into `file`, which is emptied if it exists; `%d` in the name stands for the process's id.
    ///
    /// A new file has the mode 0600. A pipe or FIFO needs no reader yet: until one comes, and whenever it takes nothing, events wait in the
    /// rings as far as these go. In a folder that everybody may write into, such as `/tmp`, a file, FIFO or symbolic link of somebody else
    /// is refused.
    #[must_use]
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self {
            file: file.into(),
            ring_bytes: crate::rings::DEFAULT_RING_BYTES,
            policy: Policy::Discard,
            clock: Clock::Auto,
            thread_ids: false,
            fork: Fork::Follow,
            rotation: None,
            is_durable: false,
            segments: "/dev/shm".into(),
        }
    }

    /// The size of a thread's ring, in bytes: a power of two from 64 KiB to 64 MiB, 1 MiB if not given, as for events before the
    /// start.
    #[must_use]
    pub const fn ring_bytes(mut self, bytes: u64) -> Self {
        self.ring_bytes = bytes;
        self
    }

    /// What happens when a ring is full; [`Policy::Discard`] if not given.
    #[must_use]
    pub const fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// What time is taken from; [`Clock::Auto`] if not given.
    #[must_use]
    pub const fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Whether records bear the id of their thread where the format has the id of the process. Gaps that are nobody's own have a 0 there.
    #[must_use]
    pub const fn thread_ids(mut self, thread_ids: bool) -> Self {
        self.thread_ids = thread_ids;
        self
    }

    /// Whether what is recorded survives the process if it is killed, by whatever signal; not if not given.
    ///
    /// Rings are then in a file in memory, in a folder of [`segments`](Self::segments). After a kill, `simpletrace-rs recover` writes what is
    /// still in there to the end of the trace; after a clean end the file is gone. Only regular files can be recorded into. It costs the threads that
    /// record nothing. Rings that find no room there are made in ordinary memory, which is said and counted.
    ///
    /// Without, a kill costs at most what one cycle of the writer had not written: what was recorded in the last 100 ms, mostly much less.
    #[must_use]
    pub const fn durable(mut self, durable: bool) -> Self {
        self.is_durable = durable;
        self
    }

    /// The folder for what is to survive the process, in memory: `/dev/shm` if not given.
    #[must_use]
    pub fn segments(mut self, folder: impl Into<PathBuf>) -> Self {
        self.segments = folder.into();
        self
    }

    /// What forked children do; [`Fork::Follow`] if not given.
    #[must_use]
    pub const fn fork(mut self, fork: Fork) -> Self {
        self.fork = fork;
        self
    }

    /// Writes the trace in parts, each a complete file: `trace.000001`, `trace.000002` and so on, where `trace` is the file's name. A part
    /// ends before it has more than `bytes`, which are at least 1 MiB. Only the newest `keep` parts are kept, or all if `None`; the
    /// events of those that are removed count as written.
    ///
    /// What is left of the parts of an earlier trace of that name is removed at the start.
    #[must_use]
    pub const fn rotate(mut self, bytes: u64, keep: Option<u32>) -> Self {
        self.rotation = Some(Rotation { bytes, keep });
        self
    }
}

impl Default for Options {
    /// Records into `trace-` and the process's id, in the current directory.
    fn default() -> Self {
        Self::new("trace-%d")
    }
}

/// Why something could not be done.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// There is a recording already: one process has one.
    AlreadyRecording,
    /// The size of a ring, in bytes, is no power of two from 64 KiB to 64 MiB.
    RingBytes(u64),
    /// The parts of a trace are to have fewer bytes than [`Options::MIN_PART_BYTES`], or none is to be kept.
    Rotation {
        /// The most bytes of a part.
        bytes: u64,
        /// The parts to be kept.
        keep: Option<u32>,
    },
    /// The file could not be made.
    File {
        /// Its name.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The recording cannot go on in another file of this name, as that is the one that it is in, perhaps by another name.
    SameFile(PathBuf),
    /// There is no room for what is to survive the process.
    Segment {
        /// The folder in memory.
        folder: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The writer's thread could not be made.
    Thread(io::Error),
    /// The writer did not get round to it in time: it may be writing to a target that takes nothing. What was asked for is still going
    /// to happen, when it does.
    Timeout,
    /// The writer has died.
    WriterDied,
    /// This process does not record: it is a child that was forked under [`Fork::Off`], or by other means than `fork`.
    NotRecording,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyRecording => f.write_str("this process records already"),
            Self::RingBytes(bytes) => {
                write!(f, "a ring of {bytes} bytes: the size must be a power of two from 65536 to 67108864")
            }
            Self::Rotation { bytes, keep: Some(0) } => {
                write!(f, "parts of {bytes} bytes, of which none is kept: one has to be")
            }
            Self::Rotation { bytes, .. } => write!(f, "parts of {bytes} bytes: they must have 1048576 or more"),
            Self::File { path, source } if path.as_os_str().is_empty() => {
                write!(f, "the trace file has no name: {source}")
            }
            Self::File { path, source } => write!(f, "{} cannot be written: {source}", path.display()),
            Self::SameFile(path) => write!(f, "{} is the trace file already", path.display()),
            Self::Segment { folder, source } => {
                let folder = folder.display();
                write!(
                    f,
                    "{folder} cannot hold what is to survive the process: {source}; choose another folder in memory"
                )
            }
            Self::Thread(source) => write!(f, "no thread could be made to write the trace: {source}"),
            Self::Timeout => f.write_str("the trace's writer is busy for too long"),
            Self::WriterDied => f.write_str("the trace's writer has died"),
            Self::NotRecording => f.write_str("this process does not record, only the one it was forked from"),
        }
    }
}

impl std::error::Error for Error {}
