//! Starting, steering and stopping a recording.

use std::fmt;
use std::io::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::sync::{Mutex, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::clock::{self, Anchor};
use crate::output::{Output, Rotation};
use crate::report::Report;
use crate::ring::Stamp;
use crate::writeout::{Cycle, Setup, Writeout};
use crate::{HUB, REGISTRY};

/// How long to wait for the writer when nobody says how long.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a program that ends waits for what is recorded to be written, and, a little longer, for that to be counted which is not.
const EXIT_TIMEOUTS: [Duration; 2] = [Duration::from_millis(700), Duration::from_millis(950)];

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
    file: PathBuf,
    ring_bytes: u64,
    policy: Policy,
    clock: Clock,
    thread_ids: bool,
    rotation: Option<Rotation>,
}

/// What happens to an event whose thread's ring is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// It is counted and left out.
    Discard,
    /// The thread waits for the writer, at most for so long, or without end if `None`; only then is the event counted and left out.
    /// Nobody waits while no writer runs.
    Block(Option<Duration>),
}

/// What time is taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Clock {
    /// The processor's time-stamp counter, converted to `CLOCK_MONOTONIC` by the writer; where it is unfit, that clock itself.
    Auto,
    /// `CLOCK_MONOTONIC`, which costs about 15 ns more per event.
    Monotonic,
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
            rotation: None,
        }
    }

    /// The size of a thread's ring, in bytes: a power of two from 64 KiB to 64 MiB, 1 MiB if not given.
    ///
    /// Threads that have recorded an event before the start keep theirs of 1 MiB.
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

    /// Whether records bear the id of their thread where the format has the id of the process.
    #[must_use]
    pub const fn thread_ids(mut self, thread_ids: bool) -> Self {
        self.thread_ids = thread_ids;
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
    /// The writer's thread could not be made.
    Thread(io::Error),
    /// The writer did not get round to it in time: it may be writing to a target that takes nothing. What was asked for is still going
    /// to happen, when it does.
    Timeout,
    /// The writer has died.
    WriterDied,
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
            Self::File { path, .. } => write!(f, "{} cannot be written", path.display()),
            Self::Thread(_) => f.write_str("no thread could be made to write the trace"),
            Self::Timeout => f.write_str("the trace's writer is busy for too long"),
            Self::WriterDied => f.write_str("the trace's writer has died"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File { source, .. } | Self::Thread(source) => Some(source),
            _ => None,
        }
    }
}

/// What the writer is asked to do.
enum Command {
    Flush(Stamp, SyncSender<()>),
    SetOutput(Box<Output>, SyncSender<io::Result<()>>),
    SetOff(bool, SyncSender<()>),
    Report(SyncSender<Report>),
    Finish(Duration, SyncSender<Report>),
}

/// The way to the writer of the one recording there may be, for whoever has to end it when the process exits.
static CURRENT: Mutex<Option<Current>> = Mutex::new(None);

struct Current {
    commands: Sender<Command>,
    /// The process that started it: a child of it has no writer.
    process_id: u32,
}

/// A recording that goes on until this is dropped or the process exits.
#[derive(Debug)]
pub struct Recorder {
    commands: Sender<Command>,
    rotation: Option<Rotation>,
    /// `None` once the writer has ended.
    thread: Option<thread::JoinHandle<()>>,
}

impl Recorder {
    /// Starts recording. Events that were recorded before the first start come first, as far as the rings held them.
    ///
    /// # Errors
    ///
    /// [`Error::AlreadyRecording`], [`Error::RingBytes`], [`Error::Rotation`], [`Error::File`], also if not even the file's header can be
    /// written, [`Error::Thread`].
    pub fn start(options: &Options) -> Result<Self, Error> {
        let Options { file, ring_bytes, policy, clock, thread_ids, rotation } = options;
        if !ring_bytes.is_power_of_two() || !(Options::MIN_RING_BYTES..=Options::MAX_RING_BYTES).contains(ring_bytes) {
            return Err(Error::RingBytes(*ring_bytes));
        }
        if let Some(Rotation { bytes, keep }) = *rotation
            && (bytes < Options::MIN_PART_BYTES || keep == Some(0))
        {
            return Err(Error::Rotation { bytes, keep });
        }
        let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
        if current.is_some() {
            return Err(Error::AlreadyRecording);
        }
        let output = create(file, *rotation)?;
        HUB.rings.set_ring_bytes(*ring_bytes);
        HUB.set_patience_ns(match policy {
            Policy::Discard => 0,
            Policy::Block(None) => u64::MAX,
            Policy::Block(Some(limit)) => u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX),
        });
        before_first_stamp();
        let is_restart = HUB.had_writer();
        let from_ns = if is_restart { clock::monotonic_ns() } else { 0 };
        let mut writeout = Writeout::new(Setup {
            hub: &HUB,
            registry: &REGISTRY,
            take_anchor: Box::new(Anchor::take),
            first_anchor: FIRST_ANCHOR.get(),
            output,
            pid: (!thread_ids).then(std::process::id),
            from_ns,
        });
        if *clock == Clock::Monotonic {
            writeout.use_monotonic();
        }
        writeout.keep_spares();
        let (commands, receiver) = mpsc::channel();
        // Without room for an answer that nobody takes.
        let (begun, has_begun) = mpsc::sync_channel(0);
        // Nobody may wait for a writer that does not run yet, and nothing may be enabled for good if it never does.
        let thread = without_signals(|| {
            thread::Builder::new().name("simpletrace".to_owned()).spawn(move || run(writeout, &receiver, &begun))
        })
        .map_err(Error::Thread)?;
        // Only if it takes very long it is not waited for: then an error is told like any later one.
        if let Ok(Err(source)) = has_begun.recv_timeout(DEFAULT_TIMEOUT) {
            let _ = thread.join();
            return Err(Error::File { path: file.clone(), source });
        }
        drop(has_begun);
        HUB.set_writer_runs(true);
        REGISTRY.resume();
        *current = Some(Current { commands: commands.clone(), process_id: std::process::id() });
        at_exit();
        Ok(Self { commands, rotation: *rotation, thread: Some(thread) })
    }

    /// Waits until all that the calling thread, and any other before the call, has recorded is written to the file.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if that takes longer than `timeout`, [`Error::WriterDied`].
    pub fn flush(&self, timeout: Duration) -> Result<(), Error> {
        let stamp = if HUB.is_monotonic() {
            Stamp { ticks: clock::monotonic_ns(), is_monotonic: true }
        } else {
            Stamp { ticks: clock::tsc(), is_monotonic: false }
        };
        self.ask(timeout, |reply| Command::Flush(stamp, reply))
    }

    /// Goes on in another file, which is emptied if it exists. What is recorded until about now is in the old file; if that takes nothing at
    /// the moment, what still waits in the rings goes to the new one. With [`rotate`](Options::rotate) it is written in parts, too, from
    /// the number 1 on.
    ///
    /// # Errors
    ///
    /// [`Error::File`], after which recording goes on in the old file; [`Error::Timeout`], [`Error::WriterDied`].
    pub fn set_file(&self, file: &Path) -> Result<(), Error> {
        let output = create(file, self.rotation)?;
        self.ask(DEFAULT_TIMEOUT, |reply| Command::SetOutput(Box::new(output), reply))?
            .map_err(|source| Error::File { path: file.to_owned(), source })
    }

    /// Stops writing events to the file; they are counted as lost, and so are those that a target has not taken yet. [`on`](Self::on) goes on behind what is in the file.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::WriterDied`].
    pub fn off(&self) -> Result<(), Error> {
        self.ask(DEFAULT_TIMEOUT, |reply| Command::SetOff(true, reply))
    }

    /// Writes events to the file again after [`off`](Self::off). If some came in between, the file says how many.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::WriterDied`].
    pub fn on(&self) -> Result<(), Error> {
        self.ask(DEFAULT_TIMEOUT, |reply| Command::SetOff(false, reply))
    }

    /// Says how the recording goes.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::WriterDied`].
    pub fn report(&self) -> Result<Report, Error> {
        self.ask(DEFAULT_TIMEOUT, Command::Report)
    }

    /// Ends the recording: disables all events until the next start, and writes what is in the rings. Dropping does the same.
    ///
    /// An event whose thread is inside an emit for all of the `timeout`, or has asked whether it is enabled but not begun yet, is not
    /// in the file; the next recording counts it as [`off`](crate::Lost::off).
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if the writer does not come to an end: it is left to itself; [`Error::WriterDied`].
    pub fn finish(mut self, timeout: Duration) -> Result<Report, Error> {
        // A little longer than the writer waits itself.
        self.end([timeout, timeout.saturating_add(DEFAULT_TIMEOUT)])
    }

    fn end(&mut self, timeouts: [Duration; 2]) -> Result<Report, Error> {
        let Some(thread) = self.thread.take() else { return Err(Error::WriterDied) };
        let result = end(&self.commands, timeouts);
        if !matches!(result, Err(Error::Timeout)) {
            // It has nothing left to do.
            let _ = thread.join();
        }
        *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = None;
        result
    }

    fn ask<T>(&self, timeout: Duration, command: impl FnOnce(SyncSender<T>) -> Command) -> Result<T, Error> {
        ask(&self.commands, timeout, command)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // Whoever wants to know calls `finish`.
        let _ = self.end(EXIT_TIMEOUTS);
    }
}

fn create(file: &Path, rotation: Option<Rotation>) -> Result<Output, Error> {
    Output::create(file, rotation).map_err(|source| Error::File { path: file.to_owned(), source })
}

fn ask<T>(
    commands: &Sender<Command>,
    timeout: Duration,
    command: impl FnOnce(SyncSender<T>) -> Command,
) -> Result<T, Error> {
    let (reply, answer) = mpsc::sync_channel(1);
    commands.send(command(reply)).map_err(|_| Error::WriterDied)?;
    HUB.kick();
    answer.recv_timeout(timeout).map_err(|error| match error {
        RecvTimeoutError::Timeout => Error::Timeout,
        RecvTimeoutError::Disconnected => Error::WriterDied,
    })
}

/// The first of the timeouts is how long the writer waits, the second how long this waits for the writer.
fn end(commands: &Sender<Command>, timeouts: [Duration; 2]) -> Result<Report, Error> {
    let [writers, ours] = timeouts;
    REGISTRY.suspend();
    ask(commands, ours, |reply| Command::Finish(writers, reply))
}

/// Ends the recording when the process exits, however that comes about short of `_exit`.
fn at_exit() {
    static ONCE: Once = Once::new();
    extern "C" fn finish() {
        // Whoever holds the lock is ending or starting a recording, and will not get any further.
        if let Ok(mut current) = CURRENT.try_lock()
            && let Some(Current { commands, process_id }) = current.take()
            && process_id == std::process::id()
        {
            let _ = end(&commands, EXIT_TIMEOUTS);
        }
    }
    ONCE.call_once(|| {
        // SAFETY: `finish` may be called at any time on any thread, and does not unwind: it panics nowhere.
        unsafe { libc::atexit(finish) };
    });
}

/// Makes a thread that no signal disturbs: those of the process go to its other threads.
fn without_signals<T>(make: impl FnOnce() -> T) -> T {
    // SAFETY: the sets are plain data that the C library fills in; the mask is the calling thread's own, and set back.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let made = make();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        made
    }
}

/// The anchor from before any thread stamped a record.
static FIRST_ANCHOR: FirstAnchor = FirstAnchor {
    stage: AtomicU8::new(0),
    ticks: AtomicU64::new(0),
    ns: AtomicU64::new(0),
    error_ticks: AtomicU64::new(0),
};

struct FirstAnchor {
    /// 0 nobody was here, 1 somebody is just storing, 2 stored.
    stage: AtomicU8,
    ticks: AtomicU64,
    ns: AtomicU64,
    error_ticks: AtomicU64,
}

impl FirstAnchor {
    fn get(&self) -> Option<Anchor> {
        // Acquire: the numbers are there.
        (self.stage.load(Ordering::Acquire) == 2).then(|| Anchor {
            ticks: self.ticks.load(Ordering::Relaxed),
            ns: self.ns.load(Ordering::Relaxed),
            error_ticks: self.error_ticks.load(Ordering::Relaxed),
        })
    }

    fn set(&self, anchor: Anchor) {
        if self.stage.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.ticks.store(anchor.ticks, Ordering::Relaxed);
            self.ns.store(anchor.ns, Ordering::Relaxed);
            self.error_ticks.store(anchor.error_ticks, Ordering::Relaxed);
            self.stage.store(2, Ordering::Release);
        }
    }
}

/// Decides which clock to use, and takes the first anchor. Safe in a signal handler: whoever comes second does not wait.
pub(crate) fn before_first_stamp() {
    if FIRST_ANCHOR.get().is_some() || HUB.is_monotonic() {
        return;
    }
    if clock::tsc_unfit().is_some() {
        HUB.use_monotonic();
    } else {
        FIRST_ANCHOR.set(Anchor::take(false));
    }
}

/// The writer's thread.
fn run(mut writeout: Writeout, commands: &Receiver<Command>, begun: &SyncSender<io::Result<()>>) {
    crate::thread::mute();
    // All that is written is written here, where its signals are blocked.
    if let Err(error) = writeout.begin()
        && begun.send(Err(error)).is_ok()
    {
        return;
    }
    let _ = begun.send(Ok(()));
    // Should it panic, those who record must not wait for it. Nothing of it is used afterwards.
    let _ = catch_unwind(AssertUnwindSafe(|| serve(&mut writeout, commands)));
    HUB.set_writer_runs(false);
}

/// The shortest sleep between two cycles.
const NAP: Duration = Duration::from_millis(1);
/// The longest one: what is recorded is to be in the file after 100 ms.
const LONGEST_NAP: Duration = Duration::from_millis(50);
/// After so many bytes at once there is no sleep.
const BUSY_BYTES: u64 = 256 << 10;

fn serve(writeout: &mut Writeout, commands: &Receiver<Command>) {
    let mut flushes: Vec<(Stamp, SyncSender<()>)> = Vec::new();
    let mut nap = NAP;
    loop {
        for command in commands.try_iter() {
            match command {
                Command::Flush(stamp, reply) => flushes.push((stamp, reply)),
                Command::SetOutput(output, reply) => {
                    let _ = reply.send(writeout.set_output(*output));
                }
                Command::SetOff(is_off, reply) => {
                    writeout.set_off(is_off);
                    let _ = reply.send(());
                }
                Command::Report(reply) => {
                    let _ = reply.send(writeout.report());
                }
                Command::Finish(timeout, reply) => {
                    let begin = Instant::now();
                    writeout.finish(|| {
                        thread::sleep(NAP);
                        begin.elapsed() < timeout
                    });
                    tell(writeout);
                    // Before whoever waits goes on to start the next.
                    HUB.set_writer_runs(false);
                    let _ = reply.send(writeout.report());
                    return;
                }
            }
        }
        let cycle = writeout.cycle(!flushes.is_empty());
        tell(writeout);
        flushes.retain(|(stamp, reply)| {
            let is_written = writeout.has_written(*stamp);
            if is_written {
                let _ = reply.send(());
            }
            !is_written
        });
        nap = match cycle {
            Cycle::Took(bytes) if bytes >= BUSY_BYTES => continue,
            Cycle::Took(_) => {
                writeout.keep_spares();
                NAP
            }
            // It has waited for the target already.
            Cycle::Stalled => NAP,
            Cycle::Idle => (nap * 2).min(LONGEST_NAP),
        };
        HUB.sleep(nap);
    }
}

/// Says what is wrong with the file.
fn tell(writeout: &mut Writeout) {
    for message in writeout.take_messages() {
        // There may be nobody to say it to either.
        let _ = writeln!(io::stderr(), "{message}");
    }
}
