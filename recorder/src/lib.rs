//! Records a program's events into QEMU's simpletrace format.

#![cfg_attr(loom, allow(dead_code, missing_docs))]

mod arg;
mod barrier;
mod clock;
#[cfg(not(loom))]
mod emit;
mod event;
mod hub;
#[cfg(all(loom, test))]
mod models;
mod output;
mod pattern;
#[cfg(not(loom))]
mod recorder;
mod report;
mod ring;
mod rings;
mod sync;
#[cfg(not(loom))]
mod thread;
mod wake;
mod writeout;

pub use arg::Arg;
pub use event::{Event, RegisterError, Switched};
#[cfg(not(loom))]
pub use recorder::{Clock, Error, Options, Policy, Recorder};
pub use report::{ClockReport, Lost, Report, ThreadReport};

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
    REGISTRY.register(events)
}

/// Enables the events that `pattern` stands for, now and whenever more are registered.
///
/// By QEMU's rules: with a `*` in it the text is a pattern, in which `*` is any run of characters and `?` any one; without, it is a
/// name. A `-` in front disables.
pub fn enable(pattern: &str) -> Switched {
    REGISTRY.switch(pattern, true)
}

/// Disables the events that `pattern` stands for, otherwise as [`enable`].
pub fn disable(pattern: &str) -> Switched {
    REGISTRY.switch(pattern, false)
}

/// All events that are registered.
#[must_use]
pub fn events() -> Vec<&'static Event> {
    REGISTRY.events()
}
