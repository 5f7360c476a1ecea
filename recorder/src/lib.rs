//! Records a program's events into QEMU's simpletrace format, version 4: a ring per thread, one writeout thread, no silent loss.
//!
//! What is promised:
//!
//! - A disabled event costs a load and a branch; an enabled one about as much as reading the time-stamp counter: no lock, system call,
//!   allocation or read-modify-write, but at a thread's first event and when its ring is half full.
//! - Events may be recorded on any thread, in destructors of thread-locals and in signal handlers.
//! - The file is in order of time across threads, and each thread's events are in the order in which it recorded them.
//! - An event that is not in the file is counted, by thread and cause, and the file says where in time it is missing.
//! - Data is in the file 100 ms after the event, unless a thread is off its processor inside an emit, or the target takes nothing.
//! - A full disk, a reader that stalls or a dead writer never stops the program; it is told once, and events are counted.
//! - A forked child records into a file of its own. A program that exits does so within a second.
//! - On request: recordings that survive `SIGKILL` ([`Options::durable`]), and traces in parts ([`Options::rotate`]).
//!
//! What is not: that the last 100 ms survive `SIGKILL` without that, or `_exit` without [`flush_on_exit`]; that anything survives power loss; and
//! times across threads that are exact beyond what the processors' counters agree on.
//!
//! Start at [`Event`], [`register`], [`enable`] and [`Recorder::start`]; readers of the file need the [`declarations`]; docs/RECORDER.md says how it works and why it is right.
//!
//! # Examples
//!
//! ```
//! use simpletrace_recorder::{Event, Options, Recorder, enable, register};
//!
//! static DISK_READ: Event = Event::new("disk_read", "disk_read(uint64_t offset, int result) \"offset %\"PRIu64\" result %d\"");
//!
//! # let folder = std::env::temp_dir().join(format!("simpletrace-recorder-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let file = folder.join("trace-%d");
//! register(&[&DISK_READ])?;
//! enable("disk_*");
//! let recorder = Recorder::start(&Options::new(file))?;
//! DISK_READ.emit(&[4096u64.into(), (-5).into()]);
//! let report = recorder.finish(std::time::Duration::from_secs(2))?;
//! assert_eq!((report.records, report.lost.total()), (1, 0));
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(loom, allow(dead_code, missing_docs))]

mod arg;
mod barrier;
mod clock;
#[cfg(not(loom))]
mod control;
#[cfg(not(loom))]
mod emit;
mod event;
#[cfg(not(loom))]
mod fork;
mod generated;
mod hub;
#[cfg(all(loom, test))]
mod models;
#[cfg(not(loom))]
mod options;
mod output;
mod pattern;
#[cfg(not(loom))]
mod recorder;
mod report;
mod ring;
mod rings;
#[cfg(not(loom))]
mod say;
#[cfg(not(loom))]
mod segment;
#[cfg(not(loom))]
mod serve;
mod sync;
#[cfg(not(loom))]
mod thread;
#[cfg(not(loom))]
mod trace_options;
mod wake;
mod writeout;

pub use arg::Arg;
#[cfg(not(loom))]
pub use control::Control;
#[cfg(all(target_os = "linux", not(loom)))]
pub use control::Server;
pub use event::{Event, RegisterError, Switched};
pub use generated::Text;
#[cfg(not(loom))]
pub use options::{Clock, Error, Fork, Options, Policy};
#[cfg(not(loom))]
pub use recorder::{Recorder, flush_on_exit};
pub use report::{ClockReport, Lost, Report, ThreadReport};
#[cfg(not(loom))]
pub use trace_options::{TraceError, TraceOptions, event_list, long_options, trace_or_exit};

/// What all threads of the process share.
#[cfg(not(loom))]
static HUB: hub::Hub = hub::Hub::new();
static REGISTRY: event::Registry = event::Registry::new();

/// Makes events known, and enables those that were asked for before.
///
/// # Errors
///
/// [`RegisterError`]: then none of them is registered. Registering an event twice is none.
pub fn register(events: &[&'static Event]) -> Result<(), RegisterError> {
    #[cfg(not(loom))]
    fork::watch();
    REGISTRY.register(events)
}

/// Enables the events that `pattern` stands for, now and whenever more are registered.
///
/// By QEMU's rules: with a `*` in it the text is a pattern, in which `*` is any run of characters and `?` any one; without, it is a
/// name. A `-` in front disables.
pub fn enable(pattern: &str) -> Switched {
    REGISTRY.switch(pattern, true)
}

/// Disables the events that `pattern` stands for, otherwise as [`enable`]. A `-` in front turns it round here, too, and enables.
pub fn disable(pattern: &str) -> Switched {
    REGISTRY.switch(pattern, false)
}

/// The declarations of all events that are registered: the text of a trace-events file, which readers of the trace need.
#[must_use]
pub fn declarations() -> String {
    REGISTRY.events().iter().flat_map(|event| [event.declaration(), "\n"]).collect()
}

/// All events that are registered.
#[must_use]
pub fn events() -> Vec<&'static Event> {
    REGISTRY.events()
}
