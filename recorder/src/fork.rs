//! What becomes of recording when the process forks.
//!
//! Only the thread that forks is in the child, at the point where it forked: in the middle of an emit, if a signal handler did. It has all
//! memory, but none of the other threads, so neither a writer nor whoever is just holding a lock. The locks that a child needs are held
//! across the fork; nobody holds them while files are opened or written.

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{MutexGuard, Once};

use crate::event::Locked;
use crate::hub::WriterState;
use crate::recorder::{FIRST_ANCHOR, Session, lock_session_soon};
use crate::{HUB, REGISTRY, thread};

/// Sees to it that forked children are told. To be called before anything is recorded.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the three may be called on any thread that forks, and do not unwind.
        unsafe { libc::pthread_atfork(Some(before), Some(behind_in_parent), Some(behind_in_child)) };
    });
}

/// The locks that are held across a fork. None, if a signal handler forks that has interrupted whoever has it: that one is in the child, too.
struct Held {
    session: Option<MutexGuard<'static, Session>>,
    registry: Option<Locked<'static>>,
}

// Without destructor, as it is empty but during a fork.
thread_local! {
    static HELD: Cell<Option<ManuallyDrop<Held>>> = const { Cell::new(None) };
}

extern "C" fn before() {
    // In this order everywhere.
    let session = lock_session_soon();
    let registry = REGISTRY.lock_for_fork();
    HELD.set(Some(ManuallyDrop::new(Held { session, registry })));
}

extern "C" fn behind_in_parent() {
    drop(HELD.take().map(ManuallyDrop::into_inner));
}

extern "C" fn behind_in_child() {
    let Some(Held { mut session, mut registry }) = HELD.take().map(ManuallyDrop::into_inner) else { return };
    FIRST_ANCHOR.after_fork();
    if HUB.writer() == WriterState::Before && HUB.rings.segment().is_none() {
        if let Some(session) = &mut session {
            // Whoever may have been starting is not here.
            **session = Session::None;
        }
        // Whoever starts a writer writes what was recorded before, and that may be the child: programs that go into the background do so.
        HUB.keep_one_thread(thread::ring());
        return;
    }
    // What is in the rings is the parent's.
    let own = thread::forget_ring();
    HUB.forget_all(own);
    if let Some(registry) = &mut registry {
        registry.keep_no_names();
    }
    if let Some(session) = &mut session {
        **session = match std::mem::replace(&mut **session, Session::None) {
            Session::Recording(recording) => recording.into_childs_plan().map_or(Session::None, Session::Forked),
            Session::Forked(plan) => Session::Forked(plan),
            // Whoever was starting is not here.
            Session::Starting | Session::None => Session::None,
        };
        if matches!(**session, Session::Forked(_)) {
            remember_signals();
            return HUB.set_writer(WriterState::Wanted);
        }
    }
    if let Some(registry) = &mut registry {
        registry.suspend();
    }
    HUB.set_writer(WriterState::Gone);
}

/// The signals that were blocked when the process was forked: the first 64.
static BLOCKED: AtomicU64 = AtomicU64::new(0);

fn remember_signals() {
    BLOCKED.store(blocked_signals(), Ordering::Relaxed);
}

/// Whether the child's first thread seems to be in a signal handler, as more signals are blocked than at the fork: there, no thread can be made.
pub(crate) fn is_in_handler() -> bool {
    let is_first_thread = rustix::thread::gettid() == rustix::process::getpid();
    is_first_thread && blocked_signals() & !BLOCKED.load(Ordering::Relaxed) != 0
}

fn blocked_signals() -> u64 {
    // SAFETY: the set is plain data that the C library fills in, without a new mask to set.
    unsafe {
        let mut blocked: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut blocked);
        (1..=64)
            .filter(|&signal| libc::sigismember(&raw const blocked, signal) == 1)
            .fold(0, |set, signal| set | 1 << (signal - 1))
    }
}
