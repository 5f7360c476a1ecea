//! Events: the handles that a program has, and the registry that gives them numbers and switches them.
//!
//! Handles and registry are statics, and use the standard library's atomics even when the rest is model-checked.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};

use simpletrace_format::MAX_NAME_BYTES;

use crate::pattern::stands_for;

/// An event that a program may record: a `static`, to be registered before it can be enabled.
///
/// # Examples
///
/// ```
/// use simpletrace_recorder::{Event, enable, register};
///
/// static DISK_READ: Event = Event::new("disk_read", "disk_read(uint64_t offset, const char *name) \"offset %\"PRIu64\" of %s\"");
///
/// register(&[&DISK_READ])?;
/// assert_eq!(enable("disk_*").events, 1);
/// DISK_READ.emit(&[4096u64.into(), "sda".into()]);
/// # Ok::<(), simpletrace_recorder::RegisterError>(())
/// ```
#[derive(Debug)]
pub struct Event {
    is_enabled: AtomicBool,
    id: AtomicU32,
    name: &'static str,
    declaration: &'static str,
}

impl Event {
    const UNREGISTERED: u32 = u32::MAX;

    /// An event called `name`, with its line of trace-events, which the recorder hands on and does not read.
    #[must_use]
    pub const fn new(name: &'static str, declaration: &'static str) -> Self {
        Self { is_enabled: AtomicBool::new(false), id: AtomicU32::new(Self::UNREGISTERED), name, declaration }
    }

    /// The event's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The event's line of trace-events.
    #[must_use]
    pub const fn declaration(&self) -> &'static str {
        self.declaration
    }

    /// Whether the event is to be recorded.
    #[inline(always)]
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        // Relaxed: switching takes effect soon, not at a certain moment.
        self.is_enabled.load(Ordering::Relaxed)
    }

    /// The number of the event in files of this process, if it is registered.
    #[inline(always)]
    pub(crate) fn id(&self) -> Option<u32> {
        // Relaxed: a number is not changed once it is there, and almost always there.
        let id = self.id.load(Ordering::Relaxed);
        if id == Self::UNREGISTERED { self.id_behind_fence() } else { Some(id) }
    }

    /// A processor may see the event enabled before it sees the number. The fence pairs with the Release store that enabled it.
    #[cold]
    #[inline(never)]
    fn id_behind_fence(&self) -> Option<u32> {
        fence(Ordering::Acquire);
        Some(self.id.load(Ordering::Relaxed)).filter(|&id| id != Self::UNREGISTERED)
    }
}

/// Why events were not registered: none of them is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegisterError {
    /// Not the name of a C function, or too long for the format.
    Name(&'static str),
    /// Another event has the name.
    Duplicate(&'static str),
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => {
                write!(
                    f,
                    "an event cannot be called {name:?}: letters, digits and underscores, at most {MAX_NAME_BYTES}"
                )
            }
            Self::Duplicate(name) => write!(f, "there are two events called {name}"),
        }
    }
}

impl std::error::Error for RegisterError {}

/// What switching events came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Switched {
    /// How many events there are by now that the pattern stands for. None is no error if it has a `*`; else no event has that name
    /// so far.
    pub events: usize,
}

/// All events of a process, by number.
pub(crate) struct Registry {
    inner: Mutex<Inner>,
}

struct Inner {
    events: Vec<&'static Event>,
    /// What was switched on and off, in this order; for events that come later.
    rules: Vec<Rule>,
    /// No event is enabled, whatever the rules say.
    is_suspended: bool,
}

struct Rule {
    pattern: String,
    on: bool,
}

impl Registry {
    pub(crate) const fn new() -> Self {
        Self { inner: Mutex::new(Inner { events: Vec::new(), rules: Vec::new(), is_suspended: false }) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing is left half-done in here when a thread panics.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives events their numbers, and enables those that are wanted by now.
    pub(crate) fn register(&self, events: &[&'static Event]) -> Result<(), RegisterError> {
        let mut inner = self.lock();
        let mut names: std::collections::HashMap<&str, &Event> =
            inner.events.iter().map(|event| (event.name, *event)).collect();
        for event in events {
            let is_name = |name: &str| {
                let mut bytes = name.bytes();
                bytes.next().is_some_and(|first| first == b'_' || first.is_ascii_alphabetic())
                    && bytes.all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
            };
            if !is_name(event.name) || event.name.len() > MAX_NAME_BYTES as usize {
                return Err(RegisterError::Name(event.name));
            }
            if names.insert(event.name, event).is_some_and(|other| !std::ptr::eq(other, *event)) {
                return Err(RegisterError::Duplicate(event.name));
            }
        }
        for event in events {
            if event.id().is_none() {
                // Relaxed: see `Event::id`.
                event.id.store(inner.events.len() as u32, Ordering::Relaxed);
                inner.events.push(event);
            }
            inner.switch(event);
        }
        Ok(())
    }

    /// Switches the events that `pattern` stands for on or off, those that come later, too. A `-` in front turns it round.
    pub(crate) fn switch(&self, pattern: &str, on: bool) -> Switched {
        let (pattern, on) = match pattern.strip_prefix('-') {
            Some(pattern) => (pattern, !on),
            None => (pattern, on),
        };
        let mut inner = self.lock();
        // The last word on a pattern counts.
        inner.rules.retain(|rule| rule.pattern != pattern);
        inner.rules.push(Rule { pattern: pattern.to_owned(), on });
        let mut events = 0;
        for event in inner.events.iter().filter(|event| stands_for(pattern, event.name)) {
            events += 1;
            inner.switch(event);
        }
        Switched { events }
    }

    /// Disables all events until [`resume`](Self::resume).
    pub(crate) fn suspend(&self) {
        self.set_suspended(true);
    }

    /// Enables the events that are wanted again.
    pub(crate) fn resume(&self) {
        self.set_suspended(false);
    }

    fn set_suspended(&self, is_suspended: bool) {
        let mut inner = self.lock();
        inner.is_suspended = is_suspended;
        inner.events.iter().for_each(|event| inner.switch(event));
    }

    /// The name of the event with this number.
    pub(crate) fn name_of(&self, id: u32) -> Option<&'static str> {
        self.lock().events.get(id as usize).map(|event| event.name)
    }

    /// All events, by number.
    pub(crate) fn events(&self) -> Vec<&'static Event> {
        self.lock().events.clone()
    }
}

impl Inner {
    /// Makes the event what it is to be.
    fn switch(&self, event: &Event) {
        let on = self.rules.iter().rev().find(|rule| stands_for(&rule.pattern, event.name)).is_some_and(|rule| rule.on);
        // Release: see `Event::id`.
        event.is_enabled.store(on && !self.is_suspended, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    macro_rules! events {
        ($($static:ident $name:literal)*) => {
            $(static $static: Event = Event::new($name, concat!($name, "() \"\""));)*
        };
    }

    fn on(events: &[&Event]) -> Vec<bool> {
        events.iter().map(|event| event.is_enabled()).collect()
    }

    #[test]
    fn events_are_numbered_in_order_and_once() {
        events!(A "number_a" B "number_b" C "number_c");
        let registry = Registry::new();
        registry.register(&[&B]).unwrap();
        registry.register(&[&A, &B, &C]).unwrap();
        assert_eq!((A.id(), B.id(), C.id()), (Some(1), Some(0), Some(2)));
        assert_eq!((registry.name_of(1), registry.name_of(3)), (Some("number_a"), None));
        assert_eq!(registry.events().len(), 3);
        assert_eq!(A.declaration(), "number_a() \"\"");
    }

    #[test]
    fn of_events_that_cannot_be_registered_none_is() {
        events!(A "same" B "same" C "other" BAD "no name" EMPTY "" DIGIT "9p");
        let registry = Registry::new();
        assert_eq!(registry.register(&[&C, &A, &B]), Err(RegisterError::Duplicate("same")));
        assert_eq!(registry.register(&[&C, &BAD]), Err(RegisterError::Name("no name")));
        assert_eq!(registry.register(&[&C, &EMPTY]), Err(RegisterError::Name("")));
        assert_eq!(registry.register(&[&C, &DIGIT]), Err(RegisterError::Name("9p")));
        assert_eq!((C.id(), registry.events().len()), (None, 0));
        registry.register(&[&A]).unwrap();
        assert_eq!(registry.register(&[&B]), Err(RegisterError::Duplicate("same")));
    }

    #[test]
    fn patterns_switch_what_is_there_and_what_comes_and_the_last_one_counts() {
        events!(READ "disk_read" WRITE "disk_write" LATE "disk_flush" NET "net_rx");
        let registry = Registry::new();
        registry.register(&[&READ, &WRITE, &NET]).unwrap();
        assert_eq!(registry.switch("disk_*", true).events, 2);
        assert_eq!(on(&[&READ, &WRITE, &NET]), [true, true, false]);
        assert_eq!(registry.switch("-disk_w*", true).events, 1);
        assert_eq!(registry.switch("net_rx", true).events, 1);
        assert_eq!(on(&[&READ, &WRITE, &NET]), [true, false, true]);
        // A name with only a question mark is a name.
        assert_eq!(registry.switch("net_r?", false).events, 0);
        assert_eq!(registry.switch("-disk_r*", false).events, 1, "turned round twice");
        registry.register(&[&LATE]).unwrap();
        assert_eq!(on(&[&READ, &WRITE, &NET, &LATE]), [true, false, true, true]);
        assert_eq!(registry.switch("*", false).events, 4);
        assert_eq!(on(&[&READ, &WRITE, &NET, &LATE]), [false; 4]);
    }

    #[test]
    fn a_pattern_that_is_switched_often_is_remembered_once() {
        let registry = Registry::new();
        for _ in 0..1000 {
            registry.switch("disk_*", true);
            registry.switch("disk_*", false);
        }
        assert_eq!(registry.lock().rules.len(), 1);
    }

    #[test]
    fn while_suspended_nothing_is_enabled_but_what_is_wanted_is_remembered() {
        events!(A "suspend_a" B "suspend_b");
        let registry = Registry::new();
        registry.register(&[&A, &B]).unwrap();
        registry.switch("suspend_a", true);
        registry.suspend();
        registry.switch("suspend_b", true);
        assert_eq!(on(&[&A, &B]), [false, false]);
        registry.resume();
        assert_eq!(on(&[&A, &B]), [true, true]);
    }
}
