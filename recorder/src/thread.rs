//! A thread's way to its ring: found with one load, got at the thread's first event, given back when the thread ends.
//!
//! Rust runs the destructors of its thread-locals before the C library runs those of its keys, and ours is one of the latter: so events
//! in destructors of thread-locals are still recorded. What comes later is counted.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::clock;
use crate::hub::WriterState;
use crate::ring::{Owner, Ring};
use crate::{HUB, fork};

/// Whether a thread may get a ring.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    New,
    /// About to: a signal handler that comes now must not begin once more.
    Registering,
    /// There was none to get: its events are counted until it is worth while to ask again.
    Without,
    /// It has ended: its events are counted.
    Ended,
    /// It is the writer, whose own events are counted: it would wait for itself.
    Writer,
}

// Constant and without destructors, so that an access is a load relative to a register, in signal handlers too.
thread_local! {
    static RING: Cell<Option<&'static Ring>> = const { Cell::new(None) };
    static STAGE: Cell<Stage> = const { Cell::new(Stage::New) };
    /// Of a thread without a ring: how many more events to count before asking again, and how many rings had been given back.
    static WITHOUT: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

/// After so many events a thread that got no ring asks again, even if none was given back: there may be memory by now.
const ASK_AGAIN: u32 = 1000;

/// The calling thread's ring, if it has one by now.
#[inline(always)]
pub(crate) fn ring() -> Option<&'static Ring> {
    RING.get()
}

/// Gets the calling thread a ring. `None` if the thread has ended, is just getting one, or there is none to get: then the event is
/// counted.
#[cold]
#[inline(never)]
pub(crate) fn register() -> Option<&'static Ring> {
    let ring = match STAGE.get() {
        Stage::New => get_ring(),
        Stage::Without if is_worth_asking() => get_ring(),
        Stage::Without | Stage::Registering | Stage::Ended => None,
        Stage::Writer => {
            HUB.count_writers_own();
            return None;
        }
    };
    if ring.is_none() {
        HUB.count_no_ring();
    }
    ring
}

fn is_worth_asking() -> bool {
    let (left, given_back) = WITHOUT.get();
    if left == 0 || given_back != HUB.rings.given_back() {
        return true;
    }
    WITHOUT.set((left - 1, given_back));
    false
}

fn get_ring() -> Option<&'static Ring> {
    if HUB.writer() == WriterState::Wanted && fork::is_in_handler() {
        return None;
    }
    STAGE.set(Stage::Registering);
    // In a forked child. If that fails all events are disabled, and it has been said.
    let _ = crate::recorder::begin_in_child();
    crate::recorder::before_first_stamp();
    let ring = key().and_then(|key| {
        let ring = HUB.ring(thread_id(), &This)?;
        // SAFETY: the key was made by `pthread_key_create` and is never deleted. The value is only handed to `at_thread_end`, which
        // does not use it; it must not be null for that.
        let error = unsafe { libc::pthread_setspecific(key, std::ptr::from_ref(ring).cast()) };
        if error != 0 {
            // Nobody would give it back.
            HUB.rings.give_back(ring);
            return None;
        }
        Some(ring)
    });
    RING.set(ring);
    if ring.is_none() {
        WITHOUT.set((ASK_AGAIN, HUB.rings.given_back()));
    }
    STAGE.set(if ring.is_some() { Stage::New } else { Stage::Without });
    ring
}

/// The calling thread.
pub(crate) struct This;

impl Owner for This {
    #[inline(always)]
    fn ticks(&self) -> u64 {
        clock::tsc()
    }

    fn monotonic_ns(&self) -> u64 {
        clock::monotonic_ns()
    }

    fn change(&self, ring: &'static Ring) -> Option<&'static Ring> {
        if let Some(other) = RING.get().filter(|other| !std::ptr::eq(*other, ring)) {
            // In a forked child, whose handler has recorded already.
            return Some(other);
        }
        // First, so that a handler that comes now does not begin once more.
        STAGE.set(Stage::Registering);
        RING.set(None);
        HUB.rings.give_back(ring);
        STAGE.set(Stage::New);
        register()
    }
}

/// Forgets the calling thread's ring, in a forked child, where it is the parent's; returns it.
pub(crate) fn forget_ring() -> Option<&'static Ring> {
    STAGE.set(Stage::New);
    RING.take()
}

/// Makes the calling thread the writer.
pub(crate) fn be_writer() {
    STAGE.set(Stage::Writer);
}

/// The id of the calling thread as the kernel and debuggers show it.
fn thread_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()
}

const NO_KEY: u32 = u32::MAX;
static KEY: AtomicU32 = AtomicU32::new(NO_KEY);

/// The key whose destructor gives rings back; made once.
fn key() -> Option<libc::pthread_key_t> {
    // Acquire and Release are not needed: a key is a number, and the C library's own business.
    let key = KEY.load(Ordering::Relaxed);
    if key != NO_KEY {
        return Some(key);
    }
    let mut made = 0;
    // SAFETY: `made` is valid for writing, and `at_thread_end` may be called on any thread at its end.
    if unsafe { libc::pthread_key_create(&raw mut made, Some(at_thread_end)) } != 0 {
        return None;
    }
    match KEY.compare_exchange(NO_KEY, made, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => Some(made),
        Err(faster) => {
            // SAFETY: the key was made above, and nobody else has seen it.
            unsafe { libc::pthread_key_delete(made) };
            Some(faster)
        }
    }
}

extern "C" fn at_thread_end(_ring: *mut c_void) {
    STAGE.set(Stage::Ended);
    if let Some(ring) = RING.take() {
        HUB.rings.give_back(ring);
    }
}
