//! Waking a thread that sleeps: futexes, since whoever wakes may be a signal handler.
//!
//! Both sides may miss each other, and then find out when the sleep is over: that is why neither has to pay for a fence.

use std::time::Duration;

use crate::sync::{AtomicU32, Ordering};

/// The writer's alarm clock.
pub(crate) struct Kick {
    /// 1 when somebody wants the writer.
    rung: AtomicU32,
}

impl Kick {
    crate::sync::const_fn! {
        pub(crate) fn new() -> Self {
            Self { rung: AtomicU32::new(0) }
        }
    }

    /// Wakes the writer, at the cost of one load if somebody else did before. Safe in a signal handler.
    pub(crate) fn ring(&self) {
        // Relaxed: nothing is handed over with it.
        if self.rung.load(Ordering::Relaxed) == 0 && self.rung.swap(1, Ordering::Relaxed) == 0 {
            wake(&self.rung, 1);
        }
    }

    /// In a forked child: nobody wants the writer.
    pub(crate) fn after_fork(&self) {
        self.rung.store(0, Ordering::Relaxed);
    }

    /// Sleeps until the alarm rings or the time is over, and sets the alarm anew.
    pub(crate) fn sleep(&self, timeout: Duration) {
        if self.rung.load(Ordering::Relaxed) == 0 {
            wait(&self.rung, 0, timeout);
        }
        self.rung.store(0, Ordering::Relaxed);
    }
}

/// The number of a flush. They are numbered as they are asked for, and count round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket(u32);

impl Ticket {
    /// Whether a flush with this number does for one with the `other`.
    pub(crate) const fn covers(self, other: Self) -> bool {
        self.0.wrapping_sub(other.0).cast_signed() >= 0
    }
}

/// Where threads wait for what they have recorded to be written.
pub(crate) struct Flushes {
    asked: AtomicU32,
    done: AtomicU32,
}

impl Flushes {
    crate::sync::const_fn! {
        pub(crate) fn new() -> Self {
            Self { asked: AtomicU32::new(0), done: AtomicU32::new(0) }
        }
    }

    /// Asks for a flush of what the calling thread has recorded. Safe in a signal handler.
    pub(crate) fn ask(&self) -> Ticket {
        // Release: the writer that sees the number sees the records, and takes its anchor behind their stamps.
        Ticket(self.asked.fetch_add(1, Ordering::Release).wrapping_add(1))
    }

    /// What was asked for and is not done.
    pub(crate) fn wanted(&self) -> Option<Ticket> {
        // Acquire: see `ask`. Only the writer stores to `done`.
        let asked = Ticket(self.asked.load(Ordering::Acquire));
        (asked.0 != self.done.load(Ordering::Relaxed)).then_some(asked)
    }

    /// How far the writer is.
    pub(crate) fn done(&self) -> Ticket {
        // Acquire: what was written is written when the caller goes on.
        Ticket(self.done.load(Ordering::Acquire))
    }

    /// Sleeps until the writer is further than `seen`, at most for the time given.
    pub(crate) fn sleep(&self, seen: Ticket, timeout: Duration) {
        wait(&self.done, seen.0, timeout);
    }

    pub(crate) fn finish(&self, ticket: Ticket) {
        // Release: see `done`.
        self.done.store(ticket.0, Ordering::Release);
        self.wake_all();
    }

    pub(crate) fn wake_all(&self) {
        wake(&self.done, i32::MAX as u32);
    }
}

/// Where threads wait for room in their rings.
pub(crate) struct Waiting {
    threads: AtomicU32,
    /// Counts how often room was made for them.
    times: AtomicU32,
}

impl Waiting {
    crate::sync::const_fn! {
        pub(crate) fn new() -> Self {
            Self { threads: AtomicU32::new(0), times: AtomicU32::new(0) }
        }
    }

    /// Sleeps until there may be room, unless `there_is_room` already, at most for the time given.
    pub(crate) fn sleep(&self, timeout: Duration, there_is_room: impl FnOnce() -> bool) {
        let times = self.times.load(Ordering::Relaxed);
        // SeqCst, as in `wake_all`: either the writer sees that someone waits, or this thread sees that there is room.
        self.threads.fetch_add(1, Ordering::SeqCst);
        if !there_is_room() {
            wait(&self.times, times, timeout);
        }
        self.threads.fetch_sub(1, Ordering::Relaxed);
    }

    /// In a forked child: nobody waits.
    pub(crate) fn after_fork(&self) {
        self.threads.store(0, Ordering::Relaxed);
    }

    /// Wakes all that wait, if any does; after room was made.
    pub(crate) fn wake_all(&self) {
        if self.threads.load(Ordering::SeqCst) > 0 {
            self.times.fetch_add(1, Ordering::Relaxed);
            wake(&self.times, i32::MAX as u32);
        }
    }
}

#[cfg(all(target_os = "linux", not(loom)))]
fn wait(word: &AtomicU32, expected: u32, timeout: Duration) {
    use rustix::thread::{Timespec, futex};
    let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
    // Woken, changed, interrupted or too late: the caller looks for itself.
    let _ = futex::wait(word, futex::Flags::PRIVATE, expected, Some(&timeout));
}

#[cfg(all(target_os = "linux", not(loom)))]
fn wake(word: &AtomicU32, threads: u32) {
    let _ = rustix::thread::futex::wake(word, rustix::thread::futex::Flags::PRIVATE, threads);
}

/// Without a futex everybody sleeps until the time is over, but not for long.
#[cfg(all(not(target_os = "linux"), not(loom)))]
fn wait(_word: &AtomicU32, _expected: u32, timeout: Duration) {
    std::thread::sleep(timeout.min(Duration::from_millis(1)));
}

#[cfg(all(not(target_os = "linux"), not(loom)))]
fn wake(_word: &AtomicU32, _threads: u32) {}

#[cfg(loom)]
fn wait(_word: &AtomicU32, _expected: u32, _timeout: Duration) {
    loom::thread::yield_now();
}

#[cfg(loom)]
fn wake(_word: &AtomicU32, _threads: u32) {}
