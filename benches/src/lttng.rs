//! LTTng-UST, as its documentation has it: a provider of events in C, a session with its default channel, and LTTng's daemons, which write
//! into a folder.
//!
//! The provider is loaded when the session records, so that a program without it has nothing of LTTng.

use std::ffi::{CStr, CString, c_void};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid, kill_process};

use crate::contestants::Contestant;

/// What to install.
const PACKAGES: &str = "Debian packages liblttng-ust-dev, lttng-tools and pkg-config, at least 2.13";
/// How long LTTng may take for one step.
const PATIENCE: Duration = Duration::from_secs(10);
/// What an event takes in the trace at least: its numbers.
const EVENT_BYTES: u64 = 24;

/// A session that records our event with three numbers, and not the other one.
pub struct Lttng {
    // Dropped last: it ends the session.
    session: Session,
    words: extern "C" fn(u32),
    off: extern "C" fn(u32),
    /// Relaxed throughout: it is read when the threads that add to it are done.
    emitted: AtomicU64,
}

impl Lttng {
    /// Starts a session daemon, if none runs, and a session that writes into `folder`.
    ///
    /// # Errors
    ///
    /// LTTng is not installed, or does not do as it is told; the text says what to do.
    ///
    /// # Safety
    ///
    /// No other thread runs yet: the environment is changed.
    pub unsafe fn start(folder: &Path) -> Result<Self, String> {
        let Some(library) = option_env!("SIMPLETRACE_BENCH_LTTNG") else {
            return Err(format!("its headers were not there when this was built; install {PACKAGES}"));
        };
        let session = Session::start(folder)?;
        // SAFETY: the caller's promise. LTTng-UST looks for its daemon there when it is loaded.
        unsafe { std::env::set_var("LTTNG_HOME", &session.home) };
        let library = CString::new(library).map_err(|error| error.to_string())?;
        // SAFETY: the library is ours and LTTng's, whose constructors ask for nothing. It stays until the process ends.
        let handle = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_NOW) };
        if handle.is_null() {
            return Err(loader_error());
        }
        // SAFETY: these are the types that loops.c has.
        let (words, off, is_ready) = unsafe {
            (
                std::mem::transmute::<*mut c_void, extern "C" fn(u32)>(symbol(handle, c"simpletrace_bench_words")?),
                std::mem::transmute::<*mut c_void, extern "C" fn(u32)>(symbol(handle, c"simpletrace_bench_off")?),
                std::mem::transmute::<*mut c_void, extern "C" fn() -> u32>(symbol(
                    handle,
                    c"simpletrace_bench_is_ready",
                )?),
            )
        };
        wait_for("the event to be enabled", || is_ready() != 0)?;
        wait_for("the trace's files", || session.files().is_ok_and(|files| !files.is_empty()))?;
        Ok(Self { session, words, off, emitted: AtomicU64::new(0) })
    }

    /// The contestant that records.
    #[must_use]
    pub fn words(&self) -> Words<'_> {
        Words { lttng: self, files: self.session.files().unwrap_or_default() }
    }

    /// The contestant whose event is switched off.
    #[must_use]
    pub fn off(&self) -> Off<'_> {
        Off { lttng: self }
    }

    /// Ends the recording, and says what became of it.
    ///
    /// # Errors
    ///
    /// Less was written than what was recorded takes.
    pub fn finish(self) -> Result<String, String> {
        self.session.lttng(&["stop", &self.session.name])?;
        let (emitted, lost) = (self.emitted.load(Ordering::Relaxed), self.session.lost()?);
        let bytes = bytes_of(&self.session.files()?);
        if bytes < emitted.saturating_sub(lost) * EVENT_BYTES {
            return Err(format!("LTTng-UST wrote {bytes} bytes for {emitted} events, of which it lost {lost}"));
        }
        Ok(format!("LTTng-UST: {emitted} events, {lost} lost, {bytes} bytes written"))
    }
}

/// A function of the loaded library.
fn symbol(library: *mut c_void, name: &CStr) -> Result<*mut c_void, String> {
    // SAFETY: the handle is from dlopen, and the name ends with a zero.
    let symbol = unsafe { libc::dlsym(library, name.as_ptr()) };
    if symbol.is_null() { Err(loader_error()) } else { Ok(symbol) }
}

/// What the loader says of its last error.
fn loader_error() -> String {
    // SAFETY: no other thread uses the loader.
    let error = unsafe { libc::dlerror() };
    if error.is_null() {
        return "the provider does not load".to_owned();
    }
    // SAFETY: it is a string, and stays until the loader's next error.
    unsafe { CStr::from_ptr(error) }.to_string_lossy().into_owned()
}

/// Waits until `is_there` says so.
fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) -> Result<(), String> {
    let begin = Instant::now();
    while !is_there() {
        if begin.elapsed() > PATIENCE {
            return Err(format!("waited for {what} for {} s in vain", PATIENCE.as_secs()));
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

fn bytes_of(files: &[PathBuf]) -> u64 {
    files.iter().filter_map(|file| fs::metadata(file).ok()).map(|metadata| metadata.len()).sum()
}

/// The session, its folder, and the daemon if it is ours; both end when this is dropped.
struct Session {
    name: String,
    home: PathBuf,
    output: PathBuf,
    daemon: Option<Child>,
}

impl Session {
    fn start(folder: &Path) -> Result<Self, String> {
        let home = folder.join("home");
        fs::create_dir_all(&home).map_err(|error| format!("{}: {error}", home.display()))?;
        let name = format!("simpletrace-bench-{}", getpid().as_raw_nonzero());
        let mut session = Self { name, home, output: folder.join("trace"), daemon: None };
        // The super-user has one daemon for the whole system, whatever LTTNG_HOME says: it may run already.
        if session.lttng(&["list"]).is_err() {
            let daemon = Command::new("lttng-sessiond")
                .args(["--no-kernel", "--quiet"])
                .env("LTTNG_HOME", &session.home)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn()
                .map_err(|error| format!("lttng-sessiond: {error}; install {PACKAGES}"))?;
            session.daemon = Some(daemon);
            wait_for("lttng-sessiond", || session.lttng(&["list"]).is_ok())?;
        }
        let output = format!("--output={}", session.output.display());
        session.lttng(&["create", &session.name, &output])?;
        session.lttng(&["enable-event", "--userspace", "--session", &session.name, "simpletrace_bench:words"])?;
        session.lttng(&["start", &session.name])?;
        Ok(session)
    }

    /// What LTTng's command answers; it starts no daemon of its own accord.
    fn lttng(&self, arguments: &[&str]) -> Result<String, String> {
        let output = Command::new("lttng")
            .arg("--no-sessiond")
            .args(arguments)
            .env("LTTNG_HOME", &self.home)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("lttng: {error}; install {PACKAGES}"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("lttng {}: {}: {}", arguments.join(" "), output.status, said.trim()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The events that were discarded.
    fn lost(&self) -> Result<u64, String> {
        let list = self.lttng(&["list", &self.name])?;
        let count = list.lines().find_map(|line| line.trim().strip_prefix("Discarded events:"));
        let count = count.and_then(|count| count.trim().parse().ok());
        count.ok_or_else(|| format!("lttng list says nothing of discarded events: {list}"))
    }

    /// The files with events: one for each processor.
    fn files(&self) -> Result<Vec<PathBuf>, String> {
        let mut files = Vec::new();
        let mut folders = vec![self.output.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?.flatten() {
                let path = entry.path();
                let name = entry.file_name();
                if path.is_dir() && name != "index" {
                    folders.push(path);
                } else if name.to_string_lossy().starts_with("channel0_") {
                    files.push(path);
                }
            }
        }
        Ok(files)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Nobody is left who could do anything about an error.
        let _ = self.lttng(&["destroy", &self.name]);
        if let Some(daemon) = &mut self.daemon {
            if let Some(pid) = i32::try_from(daemon.id()).ok().and_then(Pid::from_raw) {
                // It has not been waited for, so that the number is still its own.
                let _ = kill_process(pid, Signal::TERM);
            }
            let _ = daemon.wait();
        }
    }
}

/// The event that is recorded.
pub struct Words<'a> {
    lttng: &'a Lttng,
    files: Vec<PathBuf>,
}

impl Contestant for Words<'_> {
    fn name(&self) -> String {
        "LTTng-UST, 3 x u64".to_owned()
    }

    fn emit(&self, _thread: usize, events: u32) {
        (self.lttng.words)(events);
        self.lttng.emitted.fetch_add(events.into(), Ordering::Relaxed);
    }

    /// Waits until the files grow no more: LTTng's consumer takes whole sub-buffers, and does not say when it has caught up.
    fn settle(&self) {
        let mut bytes = bytes_of(&self.files);
        loop {
            thread::sleep(Duration::from_micros(200));
            let now = bytes_of(&self.files);
            if now == bytes {
                return;
            }
            bytes = now;
        }
    }

    fn lost(&self) -> u64 {
        // Where LTTng does not say, a number that nobody takes for one.
        self.lttng.session.lost().unwrap_or(u64::MAX)
    }

    fn room(&self) -> u32 {
        // Half of the four sub-buffers of 512 KiB that a processor has.
        (1 << 20) / 32
    }
}

/// The event that nobody enabled.
pub struct Off<'a> {
    lttng: &'a Lttng,
}

impl Contestant for Off<'_> {
    fn name(&self) -> String {
        "LTTng-UST, disabled".to_owned()
    }

    fn emit(&self, _thread: usize, events: u32) {
        (self.lttng.off)(events);
    }
}
