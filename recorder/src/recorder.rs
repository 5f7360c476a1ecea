//! Starting, steering and stopping a recording.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender, SyncSender};
use std::sync::{Mutex, MutexGuard, Once, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

use crate::clock::{self, Anchor};
use crate::hub::{Flushed, WriterState};
use crate::options::{Clock, Error, Fork, Options, Policy};
use crate::output::{Output, Rotation};
use crate::report::Report;
use crate::say::say;
use crate::segment::{Identity, Segment};
use crate::serve::{Command, run};
use crate::writeout::{Setup, Writeout, not_durable};
use crate::{HUB, REGISTRY, fork};

/// How long to wait for the writer when nobody says how long.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a program that ends waits for what is recorded to be written, and, a little longer, for that to be counted which is not.
pub(crate) const EXIT_TIMEOUTS: [Duration; 2] = [Duration::from_millis(500), Duration::from_millis(750)];
/// How much longer than the writer itself whoever waits for its end does.
const SLACK: Duration = Duration::from_millis(250);

/// The one recording that there may be.
static SESSION: Mutex<Session> = Mutex::new(Session::None);

/// What becomes of recording in this process.
pub(crate) enum Session {
    None,
    /// Somebody is just starting: the lock is not held while files are opened, as whoever forks waits for it.
    Starting,
    Recording(Recording),
    /// This is a forked child, which starts at its first event.
    Forked(Plan),
}

pub(crate) struct Recording {
    plan: Plan,
    commands: Sender<Command>,
    thread: thread::JoinHandle<()>,
    /// The process that started it: a child that was made by other means than `fork` has no writer.
    process_id: u32,
    /// The file that is written, and those that the writer was told to write and may get round to.
    files: Vec<Identity>,
}

/// What a recording is started with, here or in a child.
#[derive(Clone)]
pub(crate) struct Plan {
    /// Which recording it is, so that a handle does not steer a later one.
    number: u64,
    options: Options,
}

pub(crate) fn lock_session() -> MutexGuard<'static, Session> {
    // Nothing is left half-done in there when a thread panics.
    SESSION.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The session, unless somebody has it for long, which nobody does but a thread that was interrupted by the handler that waits here.
pub(crate) fn lock_session_soon() -> Option<MutexGuard<'static, Session>> {
    lock_soon(&SESSION)
}

/// Locks what nobody has for more than microseconds, unless the machine is very busy; `None` if somebody does.
pub(crate) fn lock_soon<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    for _ in 0..200 {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(guard)) => return Some(guard.into_inner()),
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(1)),
        }
    }
    None
}

/// A recording that goes on until this is dropped or the process exits.
///
/// In a forked child, it is the child's own.
#[derive(Debug)]
#[must_use = "recording ends when it is dropped"]
pub struct Recorder {
    number: u64,
    has_ended: bool,
}

impl Recorder {
    /// Starts recording. Events that were recorded before the first start come first, as far as the rings held them.
    ///
    /// # Errors
    ///
    /// [`Error::AlreadyRecording`], [`Error::RingBytes`], [`Error::Rotation`], [`Error::Segment`], [`Error::File`], also if not even the file's header can be
    /// written, [`Error::Thread`].
    pub fn start(options: &Options) -> Result<Self, Error> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let ring_bytes = options.ring_bytes;
        if !ring_bytes.is_power_of_two() || !(Options::MIN_RING_BYTES..=Options::MAX_RING_BYTES).contains(&ring_bytes) {
            return Err(Error::RingBytes(ring_bytes));
        }
        if let Some(Rotation { bytes, keep }) = options.rotation
            && (bytes < Options::MIN_PART_BYTES || keep == Some(0))
        {
            return Err(Error::Rotation { bytes, keep });
        }
        fork::watch();
        {
            let mut session = lock_session();
            match &*session {
                Session::Starting => return Err(Error::AlreadyRecording),
                Session::Recording(recording) if !recording.thread.is_finished() => {
                    return Err(Error::AlreadyRecording);
                }
                Session::None | Session::Recording(_) | Session::Forked(_) => *session = Session::Starting,
            }
        }
        // Relaxed: a number, no more.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut plan = Plan { number, options: options.clone() };
        plan.options.file = absolute(&options.file);
        plan.options.segments = std::path::absolute(&options.segments).unwrap_or_else(|_| options.segments.clone());
        begin(plan, &options.file).map(|()| Self { number, has_ended: false })
    }

    /// Waits until all that the calling thread, and any other before the call, has recorded is written to the file, or counted as lost since that
    /// cannot be written, or recording is off: [`report`](Self::report) says.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if that takes longer than `timeout`, [`Error::WriterDied`], [`Error::NotRecording`].
    pub fn flush(&self, timeout: Duration) -> Result<(), Error> {
        match &*lock_session() {
            Session::Recording(Recording { plan, .. }) if plan.number == self.number => {}
            // There is nothing yet.
            Session::Forked(plan) if plan.number == self.number => return Ok(()),
            _ => return Err(Error::NotRecording),
        }
        match HUB.flush(timeout) {
            Flushed::Written => Ok(()),
            Flushed::TimedOut => Err(Error::Timeout),
            Flushed::NoWriter => Err(Error::WriterDied),
        }
    }

    /// Goes on in another file, which is emptied if it exists. What is recorded until about now is in the old file; if that takes nothing at
    /// the moment, what still waits in the rings goes to the new one. With [`rotate`](Options::rotate) it is written in parts, too, from
    /// the number 1 on.
    ///
    /// # Errors
    ///
    /// [`Error::SameFile`] unless it is written in parts, [`Error::File`], after which recording goes on in the old file; [`Error::Timeout`], [`Error::WriterDied`], [`Error::NotRecording`].
    pub fn set_file(&self, file: &Path) -> Result<(), Error> {
        let plan = self.plan()?;
        self.must_differ(&plan.options, file)?;
        let output = create(file, plan.options.rotation)?;
        let identity = output.identity();
        let asked = self.ask(DEFAULT_TIMEOUT, |reply| Command::SetOutput(Box::new(output), reply));
        if let Session::Recording(recording) = &mut *lock_session()
            && recording.is(self.number)
        {
            match &asked {
                Ok(Ok(())) => {
                    recording.plan.options.file = absolute(file);
                    recording.files = identity.into_iter().collect();
                }
                Err(Error::Timeout) => recording.files.extend(identity),
                _ => {}
            }
        }
        asked?.map_err(|source| Error::File { path: file.to_owned(), source })
    }

    /// Whether `file` is another one than the one that is written: that would be emptied, and the lock on it lost.
    fn must_differ(&self, options: &Options, file: &Path) -> Result<(), Error> {
        let is_same = match &*lock_session() {
            // Parts begin again, and those before count as written.
            Session::Recording(_) if options.rotation.is_some() => false,
            Session::Recording(recording) => std::fs::metadata(crate::output::expand(file)).is_ok_and(|found| {
                let found = Identity { device: found.dev(), inode: found.ino() };
                recording.is(self.number) && recording.files.contains(&found)
            }),
            _ => false,
        };
        if is_same { Err(Error::SameFile(file.to_owned())) } else { Ok(()) }
    }

    /// Stops writing events to the file; they are counted as lost, and so are those that a target has not taken yet. [`on`](Self::on) goes on behind what is in the file.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::WriterDied`], [`Error::NotRecording`].
    pub fn off(&self) -> Result<(), Error> {
        self.ask(DEFAULT_TIMEOUT, |reply| Command::SetOff(true, reply))
    }

    /// Writes events to the file again after [`off`](Self::off). If some came in between, the file says how many.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::WriterDied`], [`Error::NotRecording`].
    pub fn on(&self) -> Result<(), Error> {
        self.ask(DEFAULT_TIMEOUT, |reply| Command::SetOff(false, reply))
    }

    /// Says how the recording goes.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::WriterDied`], [`Error::NotRecording`].
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
    /// [`Error::Timeout`] if the writer does not come to an end, hence recording cannot be started again until it does;
    /// [`Error::WriterDied`], [`Error::NotRecording`].
    pub fn finish(mut self, timeout: Duration) -> Result<Report, Error> {
        self.end([timeout, timeout.saturating_add(SLACK)])
    }

    fn end(&mut self, timeouts: [Duration; 2]) -> Result<Report, Error> {
        if std::mem::replace(&mut self.has_ended, true) {
            return Err(Error::NotRecording);
        }
        let commands = {
            let mut session = lock_session();
            match &*session {
                Session::Recording(recording) if recording.is(self.number) => recording.commands.clone(),
                Session::Forked(plan) if plan.number == self.number => {
                    // Nothing was recorded.
                    *session = Session::None;
                    REGISTRY.suspend();
                    HUB.set_writer(WriterState::Gone);
                    return Ok(Report::default());
                }
                _ => return Err(Error::NotRecording),
            }
        };
        let result = end(&commands, timeouts);
        if !matches!(result, Err(Error::Timeout)) {
            let mut session = lock_session();
            if let Session::Recording(recording) = &*session
                && recording.is(self.number)
                && let Session::Recording(recording) = std::mem::replace(&mut *session, Session::Starting)
            {
                drop(session);
                // It has nothing left to do.
                let _ = recording.thread.join();
                *lock_session() = Session::None;
            }
        }
        result
    }

    /// Another handle to the recording, which goes on when it is dropped.
    pub(crate) const fn alias(&self) -> Self {
        Self { number: self.number, has_ended: true }
    }

    fn plan(&self) -> Result<Plan, Error> {
        match &*lock_session() {
            Session::Recording(recording) if recording.is(self.number) => Ok(recording.plan.clone()),
            Session::Forked(plan) if plan.number == self.number => Ok(plan.clone()),
            _ => Err(Error::NotRecording),
        }
    }

    fn ask<T>(&self, timeout: Duration, command: impl FnOnce(SyncSender<T>) -> Command) -> Result<T, Error> {
        begin_in_child()?;
        let commands = match &*lock_session() {
            Session::Recording(recording) if recording.is(self.number) => recording.commands.clone(),
            _ => return Err(Error::NotRecording),
        };
        ask(&commands, timeout, command)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // Whoever wants to know calls `finish`.
        let _ = self.end(EXIT_TIMEOUTS);
    }
}

impl Recording {
    fn is(&self, number: u64) -> bool {
        self.plan.number == number && self.process_id == std::process::id()
    }

    /// What a forked child does, if it is to record. Only to be called in one: there is no writer.
    pub(crate) fn into_childs_plan(self) -> Option<Plan> {
        let Self { plan, commands, thread, .. } = self;
        // Whoever held their locks is not here.
        std::mem::forget((commands, thread));
        (plan.options.fork == Fork::Follow).then_some(plan)
    }
}

/// Makes a file, a writer and its thread. The session is `Starting` before; behind it is `Recording`, or `None` if that failed.
fn begin(plan: Plan, file: &Path) -> Result<(), Error> {
    let begun = make_writer(&plan.options, file);
    let mut session = lock_session();
    match begun {
        Ok((commands, thread, files)) => {
            *session = Session::Recording(Recording { plan, commands, thread, process_id: std::process::id(), files });
            Ok(())
        }
        Err(error) => {
            *session = Session::None;
            Err(error)
        }
    }
}

/// A writer at work: the way to it, its thread, and its file.
type Writer = (Sender<Command>, thread::JoinHandle<()>, Vec<Identity>);

fn make_writer(options: &Options, file: &Path) -> Result<Writer, Error> {
    HUB.begin_recording();
    let output = create(file, options.rotation)?;
    let files = output.identity().into_iter().collect();
    let segment = options.is_durable.then(|| make_segment(options, &output, file)).transpose()?;
    HUB.rings.set_ring_bytes(options.ring_bytes);
    HUB.rings.set_segment(segment);
    REGISTRY.keep_names(segment);
    let begun = begin_writer(options, file, output, segment);
    if begun.is_err()
        && let Some(segment) = segment
    {
        REGISTRY.keep_names(None);
        HUB.rings.set_segment(None);
        segment.remove();
    }
    let (commands, thread) = begun?;
    Ok((commands, thread, files))
}

fn make_segment(options: &Options, output: &Output, file: &Path) -> Result<&'static Segment, Error> {
    let Some(identity) = output.identity() else {
        return Err(Error::File { path: file.to_owned(), source: not_durable() });
    };
    let folder = &options.segments;
    Segment::create(folder, identity, HUB.recording())
        .map_err(|source| Error::Segment { folder: folder.clone(), source })
}

fn begin_writer(
    options: &Options,
    file: &Path,
    output: Output,
    segment: Option<&'static Segment>,
) -> Result<(Sender<Command>, thread::JoinHandle<()>), Error> {
    HUB.set_patience_ns(match options.policy {
        Policy::Discard => 0,
        Policy::Block(None) => u64::MAX,
        Policy::Block(Some(limit)) => u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX),
    });
    before_first_stamp();
    let is_restart = HUB.writer() == WriterState::Gone;
    let from_ns = if is_restart { clock::monotonic_ns() } else { 0 };
    let mut writeout = Writeout::new(Setup {
        hub: &HUB,
        registry: &REGISTRY,
        take_anchor: Box::new(Anchor::take),
        first_anchor: FIRST_ANCHOR.get(),
        output,
        pid: (!options.thread_ids).then(std::process::id),
        from_ns,
        segment,
    });
    if options.clock == Clock::Monotonic {
        writeout.use_monotonic();
    } else if HUB.is_monotonic() {
        let earlier = "an earlier recording of this process did without the time-stamp counter";
        writeout.note_clock_fault(clock::tsc_unfit().unwrap_or(earlier));
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
        return Err(Error::File { path: file.to_owned(), source });
    }
    drop(has_begun);
    HUB.set_writer(WriterState::Running);
    REGISTRY.resume();
    at_exit();
    Ok((commands, thread))
}

/// Starts the recording of a forked child, if it is one that has not begun to. Called at its first event.
pub(crate) fn begin_in_child() -> Result<(), Error> {
    if HUB.writer() != WriterState::Wanted {
        return Ok(());
    }
    let plan = {
        let mut session = lock_session();
        match std::mem::replace(&mut *session, Session::Starting) {
            Session::Forked(plan) => plan,
            // Somebody else was faster.
            other => {
                *session = other;
                return Ok(());
            }
        }
    };
    let mut file = plan.options.file.clone().into_os_string();
    file.push(format!("-{}", std::process::id()));
    begin(plan, Path::new(&file)).inspect_err(|error| {
        REGISTRY.suspend();
        HUB.set_writer(WriterState::Gone);
        say(&format!("simpletrace: {error}; the forked process {} does not record", std::process::id()));
    })
}

/// The name as a child needs it: with this process's id for `%d`, and from wherever the child may have gone.
fn absolute(file: &Path) -> PathBuf {
    let file = crate::output::expand(file);
    std::path::absolute(&file).unwrap_or(file)
}

/// The name as it is without links and `..` in front of it; `None` if there is no such folder.
pub(crate) fn whole_name(file: &Path) -> Option<PathBuf> {
    let file = absolute(file);
    Some(file.parent()?.canonicalize().ok()?.join(file.file_name()?))
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

/// Writes what has been recorded, before a program leaves by `_exit`: no handler of [`exit`](std::process::exit) runs then.
///
/// Takes at most a second. Returns whether all that the calling thread, and any other before the call, has recorded is in the file or counted as
/// lost; also if there is no recording. Safe in a signal handler.
pub fn flush_on_exit() -> bool {
    HUB.writer() != WriterState::Running || HUB.flush(EXIT_TIMEOUTS[0]) == Flushed::Written
}

/// Ends the recording when the process exits, however that comes about short of `_exit`.
fn at_exit() {
    static ONCE: Once = Once::new();
    extern "C" fn finish() {
        let Some(session) = lock_session_soon() else { return };
        if !matches!(&*session, Session::Recording(recording) if recording.process_id == std::process::id()) {
            return;
        }
        drop(session);
        // Whoever has the registry for long waits for room inside it, in a signal handler.
        if let Some(mut registry) = REGISTRY.lock_for_fork() {
            registry.suspend();
        }
        HUB.exit(EXIT_TIMEOUTS[1]);
    }
    ONCE.call_once(|| {
        // SAFETY: `finish` may be called at any time on any thread, and does not unwind: it panics nowhere.
        unsafe { libc::atexit(finish) };
    });
}

/// Makes a thread that no signal disturbs: those of the process go to its other threads.
pub(crate) fn without_signals<T>(make: impl FnOnce() -> T) -> T {
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
pub(crate) static FIRST_ANCHOR: FirstAnchor = FirstAnchor {
    stage: AtomicU8::new(0),
    ticks: AtomicU64::new(0),
    ns: AtomicU64::new(0),
    error_ticks: AtomicU64::new(0),
};

pub(crate) struct FirstAnchor {
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

    /// In a forked child: whoever was just storing is not here.
    pub(crate) fn after_fork(&self) {
        let _ = self.stage.compare_exchange(1, 0, Ordering::Relaxed, Ordering::Relaxed);
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
