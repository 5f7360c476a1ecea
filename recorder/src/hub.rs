//! What the threads that record and the writer share.

use std::time::Duration;

use crate::ring::{Owner, Refusal, Ring};
use crate::rings::Rings;
use crate::sync::{AtomicBool, AtomicU8, AtomicU64, Ordering, const_fn};
use crate::wake::{Kick, Waiting};

/// No writer has run yet: what is recorded stays in the rings.
const BEFORE: u8 = 0;
const RUNNING: u8 = 1;
/// The writer has ended or died.
const GONE: u8 = 2;

/// What the threads that record and the writer share. There is one in a process; tests make their own.
pub(crate) struct Hub {
    pub(crate) rings: Rings,
    /// How long a thread waits for room, in ns; 0 to discard at once, `u64::MAX` for ever.
    patience_ns: AtomicU64,
    writer: AtomicU8,
    kick: Kick,
    waiting: Waiting,
    /// Whether the time-stamp counter is not to be used.
    is_monotonic: AtomicBool,
    /// Events of threads that got no ring, or had given it back.
    no_ring: AtomicU64,
}

impl Hub {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self {
                rings: Rings::new(),
                patience_ns: AtomicU64::new(0),
                writer: AtomicU8::new(BEFORE),
                kick: Kick::new(),
                waiting: Waiting::new(),
                is_monotonic: AtomicBool::new(false),
                no_ring: AtomicU64::new(0),
            }
        }
    }

    // ---- called by threads that record, in signal handlers, too

    /// Wakes the writer before its time.
    pub(crate) fn kick(&self) {
        self.kick.ring();
    }

    /// Finds a ring for the calling thread; `None` if there cannot be one more.
    pub(crate) fn ring(&self, owner_id: u32, owner: &impl Owner) -> Option<&'static Ring> {
        self.rings.acquire(self, owner_id, self.is_monotonic.load(Ordering::Relaxed), owner)
    }

    /// Counts an event of a thread that has no ring.
    pub(crate) fn count_no_ring(&self) {
        self.no_ring.fetch_add(1, Ordering::Relaxed);
    }

    /// The patience of an emit that finds its ring full.
    pub(crate) fn patience(&self) -> Patience {
        Patience { limit_ns: self.patience_ns.load(Ordering::Relaxed), since_ns: None }
    }

    // ---- called by the writer

    /// The losses of threads without a ring.
    pub(crate) fn no_ring(&self) -> u64 {
        self.no_ring.load(Ordering::Relaxed)
    }

    /// Sleeps until somebody kicks, or the time is over.
    pub(crate) fn sleep(&self, timeout: Duration) {
        self.kick.sleep(timeout);
    }

    /// Lets threads that wait for room go on.
    pub(crate) fn room_was_made(&self) {
        self.waiting.wake_all();
    }

    /// Makes all threads stamp with `CLOCK_MONOTONIC`.
    pub(crate) fn use_monotonic(&self) {
        self.is_monotonic.store(true, Ordering::Relaxed);
        self.rings.iter().for_each(Ring::use_monotonic);
    }

    /// Whether threads are to stamp with `CLOCK_MONOTONIC`.
    pub(crate) fn is_monotonic(&self) -> bool {
        self.is_monotonic.load(Ordering::Relaxed)
    }

    // ---- called by whoever starts and stops

    /// Says how long a thread is to wait for room, in ns; 0 to discard at once, `u64::MAX` for ever.
    pub(crate) fn set_patience_ns(&self, patience_ns: u64) {
        self.patience_ns.store(patience_ns, Ordering::Relaxed);
    }

    /// Says whether a writer runs. When none does any more, nobody waits for it.
    pub(crate) fn set_writer_runs(&self, runs: bool) {
        self.writer.store(if runs { RUNNING } else { GONE }, Ordering::Release);
        if !runs {
            self.waiting.wake_all();
        }
    }

    /// Whether a writer has run in this process.
    pub(crate) fn had_writer(&self) -> bool {
        self.writer.load(Ordering::Relaxed) != BEFORE
    }
}

/// How long an emit goes on waiting for room.
pub(crate) struct Patience {
    limit_ns: u64,
    since_ns: Option<u64>,
}

impl Patience {
    /// The longest sleep in one piece: should a wake-up be missed, or the writer die, this is what it costs.
    const NAP: Duration = Duration::from_millis(10);

    /// Waits for the head to move; an error if it is not worth waiting, or no longer.
    pub(crate) fn wait_for_room(&mut self, hub: &Hub, head: &AtomicU64) -> Result<(), Refusal> {
        if self.limit_ns == 0 || hub.writer.load(Ordering::Acquire) != RUNNING {
            return Err(Refusal::Full);
        }
        let now_ns = crate::clock::monotonic_ns();
        let waited_ns = now_ns.saturating_sub(*self.since_ns.get_or_insert(now_ns));
        if waited_ns >= self.limit_ns {
            return Err(Refusal::TimedOut);
        }
        let seen = head.load(Ordering::Relaxed);
        let nap = Self::NAP.min(Duration::from_nanos(self.limit_ns - waited_ns));
        // SeqCst: see `Waiting`.
        hub.waiting.sleep(nap, || head.load(Ordering::SeqCst) != seen);
        Ok(())
    }
}
