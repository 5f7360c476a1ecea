//! Events: the handles that a program has, and the registry that gives them numbers and switches them.
//!
//! Handles and registry are statics, and use the standard library's atomics even when the rest is model-checked.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use simpletrace_format::{MAX_NAME_BYTES, Names};

use crate::pattern::{is_pattern, stands_for};
#[cfg(not(loom))]
use crate::segment::Segment;

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
// In this order, so that whether it is enabled is at the event's own address.
#[derive(Debug)]
#[repr(C)]
pub struct Event {
    is_enabled: AtomicBool,
    is_available: bool,
    id: AtomicU32,
    name: &'static str,
    declaration: &'static str,
}

impl Event {
    const UNREGISTERED: u32 = u32::MAX;

    /// An event called `name`, with its line of trace-events, which the recorder hands on and does not read: for an event without
    /// arguments it is `name(void) "..."`.
    #[must_use]
    pub const fn new(name: &'static str, declaration: &'static str) -> Self {
        Self {
            is_enabled: AtomicBool::new(false),
            is_available: true,
            id: AtomicU32::new(Self::UNREGISTERED),
            name,
            declaration,
        }
    }

    /// An event that is declared but compiled out (`disable`): known by name, never enabled. Its declaration begins with `disable`.
    #[must_use]
    pub const fn unavailable(name: &'static str, declaration: &'static str) -> Self {
        Self { is_available: false, ..Self::new(name, declaration) }
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

    /// Whether the event can be enabled: it is not compiled out.
    #[must_use]
    pub const fn is_available(&self) -> bool {
        self.is_available
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

    /// A processor may see the event enabled before it sees the number. The fence pairs with the Release store that enabled it; before
    /// that the number was stored, by whoever held the registry's lock then or earlier.
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
    /// With these there would be more events, or longer names, than readers keep of a file: 16,384, and 2 MiB.
    TooMany,
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
            Self::TooMany => {
                let (events, bytes) = (Names::MAX_SLOTS, Names::MAX_TOTAL_BYTES);
                write!(f, "there would be more than {events} events, or {bytes} bytes of names")
            }
        }
    }
}

impl std::error::Error for RegisterError {}

/// What switching events came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Switched {
    /// How many events there are by now that the pattern stands for, but for those that are compiled out. None is no error if it has a `*`.
    pub events: usize,
    /// It is not a pattern but a name, which no event has so far.
    pub is_unknown: bool,
    /// It is the name of an event that is compiled out.
    pub is_unavailable: bool,
}

/// All events of a process, by number.
pub(crate) struct Registry {
    inner: Mutex<Inner>,
    /// The events, for the writer: it must not wait for whoever holds the lock, and may be waiting for the writer. Stored to under the
    /// lock.
    by_number: [OnceLock<Chunk>; Names::MAX_SLOTS / CHUNK],
}

const CHUNK: usize = 256;
type Chunk = Box<[OnceLock<&'static Event>; CHUNK]>;

struct Inner {
    events: Vec<&'static Event>,
    by_name: BTreeMap<&'static str, &'static Event>,
    name_bytes: usize,
    /// What was switched on and off, in this order; for events that come later.
    rules: Vec<Rule>,
    /// No event is enabled, whatever the rules say.
    is_suspended: bool,
    /// Where the names are kept in case the process is killed.
    #[cfg(not(loom))]
    segment: Option<&'static Segment>,
}

struct Rule {
    pattern: String,
    on: bool,
}

impl Registry {
    pub(crate) const fn new() -> Self {
        Self {
            inner: Mutex::new(Inner {
                events: Vec::new(),
                by_name: BTreeMap::new(),
                name_bytes: 0,
                rules: Vec::new(),
                is_suspended: false,
                #[cfg(not(loom))]
                segment: None,
            }),
            by_number: [const { OnceLock::new() }; Names::MAX_SLOTS / CHUNK],
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing is left half-done in here when a thread panics.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives events their numbers, and enables those that are wanted by now.
    pub(crate) fn register(&self, events: &[&'static Event]) -> Result<(), RegisterError> {
        let mut inner = self.lock();
        let mut new: BTreeMap<&str, &Event> = BTreeMap::new();
        for &event in events {
            let is_name = |name: &str| {
                let mut bytes = name.bytes();
                bytes.next().is_some_and(|first| first == b'_' || first.is_ascii_alphabetic())
                    && bytes.all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
            };
            if !is_name(event.name) || event.name.len() > MAX_NAME_BYTES as usize {
                return Err(RegisterError::Name(event.name));
            }
            let other = new.insert(event.name, event).or_else(|| inner.by_name.get(event.name).copied());
            if other.is_some_and(|other| !std::ptr::eq(other, event)) {
                return Err(RegisterError::Duplicate(event.name));
            }
        }
        new.retain(|_, event| event.id().is_none());
        let name_bytes = inner.name_bytes + new.keys().map(|name| name.len()).sum::<usize>();
        if inner.events.len() + new.len() > Names::MAX_SLOTS || name_bytes > Names::MAX_TOTAL_BYTES {
            return Err(RegisterError::TooMany);
        }
        inner.name_bytes = name_bytes;
        for &event in events {
            if event.id().is_none() {
                let number = inner.events.len();
                let chunk = self.by_number[number / CHUNK].get_or_init(|| Box::new([const { OnceLock::new() }; CHUNK]));
                // Nobody was there before.
                let _ = chunk[number % CHUNK].set(event);
                #[cfg(not(loom))]
                if let Some(segment) = inner.segment {
                    segment.add_name(event.name);
                }
                // Relaxed: see `Event::id`.
                event.id.store(number as u32, Ordering::Relaxed);
                inner.events.push(event);
                inner.by_name.insert(event.name, event);
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
        let (mut events, mut unavailable) = (0, 0);
        for event in inner.events.iter().filter(|event| stands_for(pattern, event.name)) {
            *(if event.is_available { &mut events } else { &mut unavailable }) += 1;
            inner.switch(event);
        }
        let is_name = !is_pattern(pattern);
        Switched {
            events,
            is_unknown: is_name && events + unavailable == 0,
            is_unavailable: is_name && unavailable > 0,
        }
    }

    /// Keeps the names of all events, also of those to come, in a segment; in none from now on if `None`.
    #[cfg(not(loom))]
    pub(crate) fn keep_names(&self, segment: Option<&'static Segment>) {
        let mut inner = self.lock();
        if let Some(segment) = segment {
            inner.events.iter().for_each(|event| segment.add_name(event.name));
        }
        inner.segment = segment;
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
        self.lock().set_suspended(is_suspended);
    }

    /// Keeps everybody else away until what is returned is dropped, in the parent or in the child. `None` if the calling thread has the lock itself, and
    /// was interrupted.
    #[cfg(not(loom))]
    pub(crate) fn lock_for_fork(&self) -> Option<Locked<'_>> {
        crate::recorder::lock_soon(&self.inner).map(Locked)
    }

    /// The name of the event with this number. Takes no lock.
    pub(crate) fn name_of(&self, id: u32) -> Option<&'static str> {
        let id = id as usize;
        // Whoever has seen the number has not necessarily seen this. But the writer has: behind its barrier, what the thread that registered
        // the event did before it stored the number is visible.
        self.by_number.get(id / CHUNK)?.get()?[id % CHUNK].get().map(|event| event.name)
    }

    /// The event of this name.
    #[cfg_attr(not(test), expect(dead_code, reason = "what asks for single events is yet to come"))]
    pub(crate) fn get(&self, name: &str) -> Option<&'static Event> {
        self.lock().by_name.get(name).copied()
    }

    /// All events, by number.
    pub(crate) fn events(&self) -> Vec<&'static Event> {
        self.lock().events.clone()
    }
}

/// The registry while a process forks.
#[cfg(not(loom))]
pub(crate) struct Locked<'a>(MutexGuard<'a, Inner>);

#[cfg(not(loom))]
impl Locked<'_> {
    /// As [`Registry::keep_names`] with `None`.
    pub(crate) fn keep_no_names(&mut self) {
        self.0.segment = None;
    }

    /// Disables all events until [`resume`](Registry::resume).
    pub(crate) fn suspend(&mut self) {
        self.0.set_suspended(true);
    }
}

impl Inner {
    fn set_suspended(&mut self, is_suspended: bool) {
        self.is_suspended = is_suspended;
        self.events.iter().for_each(|event| self.switch(event));
    }

    /// Makes the event what it is to be.
    fn switch(&self, event: &Event) {
        let on = self.rules.iter().rev().find(|rule| stands_for(&rule.pattern, event.name)).is_some_and(|rule| rule.on);
        // Release: see `Event::id`.
        event.is_enabled.store(on && event.is_available && !self.is_suspended, Ordering::Release);
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
        assert_eq!(
            registry.events().iter().map(|event| event.name()).collect::<Vec<_>>(),
            ["number_b", "number_a", "number_c"]
        );
        assert!(std::ptr::eq(registry.get("number_c").unwrap(), &C));
        assert!(registry.get("number_d").is_none());
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
        assert!(registry.get("other").is_none());
        registry.register(&[&A]).unwrap();
        assert_eq!(registry.register(&[&B]), Err(RegisterError::Duplicate("same")));
    }

    #[test]
    fn a_name_is_as_long_as_the_format_allows_and_no_longer() {
        let named = |bytes: u32| -> &'static Event {
            let name = "n".repeat(bytes as usize).leak();
            Box::leak(Box::new(Event::new(name, "")))
        };
        let (longest, too_long) = (named(MAX_NAME_BYTES), named(MAX_NAME_BYTES + 1));
        let registry = Registry::new();
        assert_eq!(registry.register(&[too_long]), Err(RegisterError::Name(too_long.name())));
        assert_eq!(registry.register(&[longest]), Ok(()));
    }

    #[test]
    fn no_more_events_are_registered_than_readers_keep_of_a_file() {
        let named = |name: String| -> &'static Event { Box::leak(Box::new(Event::new(name.leak(), ""))) };
        let registry = Registry::new();
        let events: Vec<_> = (0..Names::MAX_SLOTS).map(|number| named(format!("many_{number}"))).collect();
        registry.register(&events).unwrap();
        assert_eq!(registry.register(&[named("one_more".to_owned())]), Err(RegisterError::TooMany));
        // They are there by now.
        registry.register(&events).unwrap();
        assert_eq!(registry.name_of(16_383), Some("many_16383"));
        assert_eq!(registry.name_of(16_384), None);
        let registry = Registry::new();
        let long = |number: usize| named(format!("long_{number:01019}"));
        let events: Vec<_> = (0..2048).map(long).collect();
        registry.register(&events).unwrap();
        assert_eq!(registry.register(&[long(2048)]), Err(RegisterError::TooMany));
    }

    #[test]
    fn errors_name_the_event() {
        assert_eq!(RegisterError::Duplicate("disk_read").to_string(), "there are two events called disk_read");
        assert!(RegisterError::Name("no name").to_string().starts_with("an event cannot be called \"no name\": "));
    }

    #[test]
    fn whether_an_event_is_enabled_is_at_its_own_address() {
        assert_eq!(std::mem::offset_of!(Event, is_enabled), 0);
        assert_eq!(size_of::<AtomicBool>(), 1);
    }

    #[test]
    fn an_event_may_be_given_twice_at_once() {
        events!(A "given_twice");
        let registry = Registry::new();
        registry.register(&[&A, &A]).unwrap();
        assert_eq!((A.id(), registry.events().len()), (Some(0), 1));
    }

    #[test]
    fn only_a_name_can_be_unknown() {
        events!(A "known_a");
        static OFF: Event = Event::unavailable("known_off", "disable known_off(void) \"\"");
        let registry = Registry::new();
        registry.register(&[&A, &OFF]).unwrap();
        for (pattern, events, is_unknown, is_unavailable) in [
            ("known_a", 1, false, false),
            ("known_b", 0, true, false),
            ("-known_b", 0, true, false),
            ("known_?", 0, true, false),
            ("x*", 0, false, false),
            ("known_off", 0, false, true),
            ("known_*", 1, false, false),
            ("known_of*", 0, false, false),
        ] {
            assert_eq!(registry.switch(pattern, true), Switched { events, is_unknown, is_unavailable }, "{pattern}");
            assert!(!OFF.is_enabled() && !OFF.is_available());
        }
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

    #[test]
    fn whoever_sees_an_event_enabled_sees_its_number_whatever_else_happens() {
        const EVENTS: usize = 64;
        static REGISTRY: Registry = Registry::new();
        let events: &[Event] =
            (0..EVENTS).map(|number| Event::new(format!("raced_{number}").leak(), "")).collect::<Vec<_>>().leak();
        let is_over = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    for event in events.iter().filter(|event| event.is_enabled()) {
                        let id = event.id().expect("a number");
                        assert_eq!(REGISTRY.name_of(id), Some(event.name()));
                    }
                }
            });
            scope.spawn(|| {
                for _ in 0..300 {
                    REGISTRY.switch("raced_*", true);
                    REGISTRY.suspend();
                    REGISTRY.switch("raced_1*", false);
                    REGISTRY.resume();
                }
                is_over.store(true, Ordering::Relaxed);
            });
            // Two register all, from either end.
            scope.spawn(|| events.iter().for_each(|event| REGISTRY.register(&[event]).unwrap()));
            scope.spawn(|| events.iter().rev().for_each(|event| REGISTRY.register(&[event]).unwrap()));
        });
        let mut ids: Vec<_> = events.iter().map(|event| event.id().unwrap()).collect();
        ids.sort_unstable();
        assert_eq!(ids, (0..EVENTS as u32).collect::<Vec<_>>());
        assert_eq!(REGISTRY.lock().rules.len(), 2);
        // All but 1 and 10 to 19.
        assert_eq!(events.iter().filter(|event| event.is_enabled()).count(), 53);
    }
}
