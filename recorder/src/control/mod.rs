//! Run-time control: a recording that is steered by monitor commands and QMP, by QEMU's rules where QEMU has any. docs/CONTROL.md.

#[cfg(target_os = "linux")]
mod frames;
mod hmp;
mod qmp;
#[cfg(target_os = "linux")]
mod server;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use simpletrace_format::MAX_NAME_BYTES;

use crate::REGISTRY;
use crate::event::Event;
use crate::options::{Error, Options};
use crate::output::expand;
use crate::pattern::{is_pattern, stands_for};
use crate::recorder::{DEFAULT_TIMEOUT, Recorder, whole_name};
use crate::report::Report;

#[cfg(target_os = "linux")]
pub use server::Server;

/// How long a command waits for the one before it, which waits for the writer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many different patterns are remembered for events that come later.
const MAX_PATTERNS: usize = 1_000;

/// A recording that is steered from outside while the program runs: by QEMU's monitor commands, by QMP, and through a socket.
///
/// docs/CONTROL.md lists the commands, their replies and errors. They may come from any number of threads.
///
/// # Examples
///
/// ```
/// use simpletrace_recorder::{Control, Event, Options, register};
///
/// static DISK_READ: Event = Event::new("disk_read", "disk_read(uint64_t offset) \"offset %\"PRIu64");
///
/// register(&[&DISK_READ])?;
/// let control = Control::new(Options::new("trace-1"));
/// assert_eq!(control.hmp("trace-event disk_* on"), "");
/// assert_eq!(control.hmp("info trace-events"), "disk_read : state 1\n");
/// assert_eq!(control.hmp("trace-file"), "Trace file \"trace-1\" off.\n");
/// # Ok::<(), simpletrace_recorder::RegisterError>(())
/// ```
#[derive(Debug)]
pub struct Control {
    state: Mutex<State>,
    /// Patterns that the registry remembers because of commands.
    patterns: Mutex<BTreeSet<String>>,
}

#[derive(Debug)]
struct State {
    /// For the next start. The file is always the one that is recorded into, if one is.
    options: Options,
    recorder: Option<Recorder>,
    /// Whether the recorder was switched off.
    is_off: bool,
    /// What became of a recording that has ended, in the file of the options.
    ended: Option<Report>,
}

/// The trace file, and whether it is recorded into.
struct File {
    path: PathBuf,
    is_on: bool,
}

impl Control {
    /// Records nothing yet, and does so with these options when [`start`](Self::start) or the command `trace-file on` says so.
    #[must_use]
    pub const fn new(options: Options) -> Self {
        let state = State { options, recorder: None, is_off: false, ended: None };
        Self { state: Mutex::new(state), patterns: Mutex::new(BTreeSet::new()) }
    }

    /// Starts recording, as [`Recorder::start`] does.
    ///
    /// # Errors
    ///
    /// The same; and [`Error::Timeout`] if a command is under way for too long.
    pub fn start(&self) -> Result<(), Error> {
        self.lock()?.start()
    }

    /// Carries out one command of QEMU's human monitor. Returns the reply, of no, one or more lines that end in `\n`; one that cannot be carried out
    /// gives a line about that.
    #[must_use]
    pub fn hmp(&self, line: &str) -> String {
        hmp::reply(self, line)
    }

    /// Carries out one request of QMP, a JSON object, as over a connection whose capabilities are negotiated. Returns the reply, a JSON object, without a newline.
    #[must_use]
    pub fn qmp(&self, request: &str) -> String {
        qmp::parse(request.as_bytes()).map_or_else(qmp::error, |request| qmp::reply(self, request, &mut true))
    }

    /// Serves QMP on a Unix socket of this name, which only this user and root may use, until what is returned is dropped.
    ///
    /// The socket of a server that died is replaced. Forked children do not serve.
    ///
    /// # Errors
    ///
    /// The name cannot be a socket's, is that of anything but a dead socket, or nothing can be made there; or no thread can be made.
    #[cfg(target_os = "linux")]
    pub fn serve(self: &std::sync::Arc<Self>, socket: &Path) -> std::io::Result<Server> {
        Server::start(std::sync::Arc::clone(self), socket)
    }

    /// Ends the recording, as [`Recorder::finish`] does; `None` if there is none. Commands do not start another into the same file.
    ///
    /// # Errors
    ///
    /// The same; and [`Error::Timeout`] if a command is under way for too long.
    pub fn finish(&self, timeout: Duration) -> Result<Option<Report>, Error> {
        let mut state = self.lock()?;
        let Some(recorder) = state.recorder.take() else { return Ok(None) };
        let finished = recorder.finish(timeout);
        state.ended = Some(finished.as_ref().cloned().unwrap_or_default());
        finished.map(Some)
    }

    fn lock(&self) -> Result<MutexGuard<'_, State>, Error> {
        lock(&self.state)
    }

    /// The events that a pattern or a name stands for, the last registered one first.
    fn events(pattern: &str) -> Result<Vec<&'static Event>, String> {
        let mut events = REGISTRY.events();
        events.retain(|event| stands_for(pattern, event.name()));
        events.reverse();
        if events.is_empty() && !is_pattern(pattern) {
            return Err(format!("unknown event \"{pattern}\""));
        }
        Ok(events)
    }

    /// Switches the events that a pattern or a name stands for. One that is compiled out is an error, before which none is switched, or
    /// passed over.
    fn switch(&self, pattern: &str, on: bool, skips_unavailable: bool) -> Result<(), String> {
        let events = Self::events(pattern)?;
        if !skips_unavailable && let Some(event) = events.iter().rev().find(|event| !event.is_available()) {
            return Err(format!("event \"{}\" is disabled", event.name()));
        }
        // Then it is a pattern, and there is nothing to remember it for.
        if events.is_empty() {
            return Ok(());
        }
        if !is_pattern(pattern) || self.remember(pattern)? {
            REGISTRY.switch(pattern, on);
        } else {
            // Whoever sends pattern after pattern must not fill the memory.
            events.iter().for_each(|event| {
                REGISTRY.switch(event.name(), on);
            });
        }
        Ok(())
    }

    fn remember(&self, pattern: &str) -> Result<bool, String> {
        let mut patterns = lock(&self.patterns).map_err(text)?;
        let has_room = pattern.len() <= MAX_NAME_BYTES as usize && patterns.len() < MAX_PATTERNS;
        if has_room {
            patterns.insert(pattern.to_owned());
        }
        Ok(has_room || patterns.contains(pattern))
    }

    fn file(&self) -> Result<File, String> {
        Ok(self.lock().map_err(text)?.file())
    }

    /// The trace file, and how its recording goes.
    fn report(&self) -> Result<(File, Report), String> {
        let state = self.lock().map_err(text)?;
        let file = state.file();
        let Some(recorder) = state.recorder.as_ref().map(Recorder::alias) else {
            return Ok((file, state.ended.clone().unwrap_or_default()));
        };
        drop(state);
        Ok((file, recorder.report().map_err(text)?))
    }

    fn set_file(&self, path: &Path) -> Result<(), String> {
        self.lock().map_err(text)?.set_file(path)
    }

    fn set_on(&self, on: bool) -> Result<(), String> {
        self.lock().map_err(text)?.set_on(on)
    }

    fn flush(&self) -> Result<(), String> {
        // Nobody else waits while this one does.
        let recorder = self.lock().map_err(text)?.recorder.as_ref().map(Recorder::alias);
        recorder.map_or(Ok(()), |recorder| recorder.flush(DEFAULT_TIMEOUT).map_err(text))
    }
}

impl State {
    fn start(&mut self) -> Result<(), Error> {
        if self.recorder.is_some() {
            return Err(Error::AlreadyRecording);
        }
        self.recorder = Some(Recorder::start(&self.options)?);
        (self.is_off, self.ended) = (false, None);
        Ok(())
    }

    fn file(&self) -> File {
        File { path: expand(&self.options.file), is_on: self.recorder.is_some() && !self.is_off }
    }

    fn set_file(&mut self, path: &Path) -> Result<(), String> {
        if path.as_os_str().is_empty() {
            return Err("a trace file needs a name".to_owned());
        }
        if let Some(recorder) = &self.recorder {
            // Its parts would be removed.
            if self.options.rotation.is_some()
                && whole_name(path).is_some_and(|name| Some(name) == whole_name(&self.options.file))
            {
                return Err(text(Error::SameFile(path.to_owned())));
            }
            recorder.set_file(path).map_err(text)?;
        }
        path.clone_into(&mut self.options.file);
        self.ended = None;
        Ok(())
    }

    fn set_on(&mut self, on: bool) -> Result<(), String> {
        let Some(recorder) = &self.recorder else {
            return match on {
                false => Ok(()),
                true if self.ended.is_some() => {
                    let path = self.file().path;
                    Err(format!("{} holds a recording that has ended: set another file first", path.display()))
                }
                true => self.start().map_err(text),
            };
        };
        let done = if on { recorder.on() } else { recorder.off() };
        // The writer still does what it did not get round to.
        if matches!(done, Ok(()) | Err(Error::Timeout)) {
            self.is_off = !on;
        }
        done.map_err(text)
    }
}

/// Nobody has a lock for longer than the writer takes to answer; but in a forked child, whoever had it may not be there.
fn lock<T>(mutex: &Mutex<T>) -> Result<MutexGuard<'_, T>, Error> {
    let begin = Instant::now();
    loop {
        match mutex.try_lock() {
            Ok(guard) => return Ok(guard),
            // Nothing is left half-done in there when a thread panics.
            Err(TryLockError::Poisoned(guard)) => return Ok(PoisonError::into_inner(guard)),
            Err(TryLockError::WouldBlock) if begin.elapsed() > PATIENCE => return Err(Error::Timeout),
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(1)),
        }
    }
}

fn text(error: Error) -> String {
    error.to_string()
}
