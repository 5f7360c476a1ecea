//! What the threads that record and the writer share.

use std::time::Duration;

use crate::ring::{Owner, Refusal, Ring};
use crate::rings::Rings;
#[cfg(not(loom))]
use std::sync::atomic::AtomicI32;

use crate::sync::{AtomicBool, AtomicU8, AtomicU64, Ordering, const_fn};
pub(crate) use crate::wake::Ticket;
use crate::wake::{Flushes, Kick, Waiting};

/// What has become of the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum WriterState {
    /// There was none yet: what is recorded stays in the rings.
    Before = 0,
    Running = 1,
    /// It has ended or died.
    Gone = 2,
    /// This is a forked child, which gets a writer of its own at its first event.
    Wanted = 3,
}

impl WriterState {
    const fn from_number(number: u8) -> Self {
        match number {
            0 => Self::Before,
            1 => Self::Running,
            2 => Self::Gone,
            _ => Self::Wanted,
        }
    }
}

/// What the threads that record and the writer share. There is one in a process; tests make their own.
pub(crate) struct Hub {
    pub(crate) rings: Rings,
    /// How long a thread waits for room, in ns; 0 to discard at once, `u64::MAX` for ever.
    patience_ns: AtomicU64,
    writer: AtomicU8,
    kick: Kick,
    waiting: Waiting,
    flushes: Flushes,
    /// The process exits, and the writer is to come to an end.
    is_exiting: AtomicBool,
    /// Whether the time-stamp counter is not to be used.
    is_monotonic: AtomicBool,
    /// Events of threads that got no ring, or had given it back.
    no_ring: AtomicU64,
    /// Events of the writer itself, as where all memory that is allocated is traced. They are no reason to write anything, as writing may cause more.
    writers_own: AtomicU64,
    /// The number of the recording, which no other one has on this machine since it was started.
    #[cfg(not(loom))]
    recording: AtomicU64,
    /// The descriptor of the file that is written, or -1 if there is none, or it may just be closed.
    #[cfg(not(loom))]
    file: AtomicI32,
    /// How many of either were reported by recordings that have ended.
    reported: [AtomicU64; 2],
}

impl Hub {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self {
                rings: Rings::new(),
                patience_ns: AtomicU64::new(0),
                writer: AtomicU8::new(WriterState::Before as u8),
                kick: Kick::new(),
                waiting: Waiting::new(),
                flushes: Flushes::new(),
                is_exiting: AtomicBool::new(false),
                is_monotonic: AtomicBool::new(false),
                no_ring: AtomicU64::new(0),
                writers_own: AtomicU64::new(0),
                #[cfg(not(loom))]
                recording: AtomicU64::new(0),
                #[cfg(not(loom))]
                file: AtomicI32::new(-1),
                reported: [AtomicU64::new(0), AtomicU64::new(0)],
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
        #[cfg(not(loom))]
        if let Some(segment) = self.rings.segment() {
            segment.count_no_ring();
        }
    }

    /// Counts an event of the writer itself.
    pub(crate) fn count_writers_own(&self) {
        self.writers_own.fetch_add(1, Ordering::Relaxed);
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

    /// Events of the writer itself.
    pub(crate) fn writers_own(&self) -> u64 {
        self.writers_own.load(Ordering::Relaxed)
    }

    /// Says which descriptor is written to, for forked children to close. `None` before it is closed: another thread may get its number.
    #[cfg(not(loom))]
    pub(crate) fn set_file(&self, file: Option<i32>) {
        // SeqCst: not to be moved behind the system call that closes it. A child sees all stores in the order of the program.
        self.file.store(file.unwrap_or(-1), Ordering::SeqCst);
    }

    /// What an earlier recording has reported of both.
    pub(crate) fn reported_without_ring(&self) -> (u64, u64) {
        (self.reported[0].load(Ordering::Relaxed), self.reported[1].load(Ordering::Relaxed))
    }

    /// Says what this recording has reported of both.
    pub(crate) fn set_reported_without_ring(&self, no_ring: u64, writers_own: u64) {
        // Relaxed: whoever starts the next recording has joined the writer.
        self.reported[0].store(no_ring, Ordering::Relaxed);
        self.reported[1].store(writers_own, Ordering::Relaxed);
    }

    /// Sleeps until somebody kicks, or the time is over.
    pub(crate) fn sleep(&self, timeout: Duration) {
        self.kick.sleep(timeout);
    }

    /// The last flush that was asked for, if it is not done yet. What was recorded before it is stamped earlier than now.
    pub(crate) fn wanted_flush(&self) -> Option<Ticket> {
        self.flushes.wanted()
    }

    /// Lets those go on that wait for a flush up to this one.
    pub(crate) fn flush_is_done(&self, ticket: Ticket) {
        self.flushes.finish(ticket);
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

    // ---- called in a forked child, by its only thread

    /// Keeps what is in the rings, and the calling thread's ring as it is; the others' owners are not here.
    pub(crate) fn keep_one_thread(&self, own: Option<&'static Ring>) {
        self.rings.iter().filter(|ring| !own.is_some_and(|own| std::ptr::eq(own, *ring))).for_each(Ring::bury_owner);
    }

    /// Forgets all rings, and what was counted. Of the calling thread's `own` the memory stays: it may be in the middle of an emit.
    #[cfg(not(loom))]
    pub(crate) fn forget_all(&self, own: Option<&'static Ring>) {
        self.rings.forget_all(own);
        if let Some(segment) = self.rings.segment() {
            segment.close_in_child();
        }
        self.rings.set_segment(None);
        let file = self.file.swap(-1, Ordering::Relaxed);
        if file >= 0 {
            // SAFETY: the writer, who is not here, had it open at the fork, and nobody else uses it.
            unsafe { rustix::io::close(file) };
        }
        self.no_ring.store(0, Ordering::Relaxed);
        self.writers_own.store(0, Ordering::Relaxed);
        self.set_reported_without_ring(0, 0);
        self.is_exiting.store(false, Ordering::Relaxed);
        self.kick.after_fork();
        self.waiting.after_fork();
    }

    // ---- called by whoever starts and stops

    /// Says how long a thread is to wait for room, in ns; 0 to discard at once, `u64::MAX` for ever.
    pub(crate) fn set_patience_ns(&self, patience_ns: u64) {
        self.patience_ns.store(patience_ns, Ordering::Relaxed);
    }

    /// Gives a recording that begins a number of its own.
    #[cfg(not(loom))]
    pub(crate) fn begin_recording(&self) {
        // No two recordings of a process begin in the same ns, and no two processes have the same id.
        let number = crate::clock::monotonic_ns() << 22 | u64::from(std::process::id() & 0x3f_ffff);
        self.recording.store(number.max(1), Ordering::Relaxed);
    }

    /// The number of the recording.
    #[cfg(not(loom))]
    pub(crate) fn recording(&self) -> u64 {
        self.recording.load(Ordering::Relaxed)
    }

    /// Says what becomes of the writer. When none runs any more, nobody waits for it.
    pub(crate) fn set_writer(&self, state: WriterState) {
        // Release: who sees it running sees the patience that was set before.
        self.writer.store(state as u8, Ordering::Release);
        if state != WriterState::Running {
            self.waiting.wake_all();
            self.flushes.wake_all();
        }
    }

    /// What has become of the writer.
    pub(crate) fn writer(&self) -> WriterState {
        WriterState::from_number(self.writer.load(Ordering::Acquire))
    }

    /// Whether the writer is to come to an end, as the process exits.
    pub(crate) fn is_exiting(&self) -> bool {
        self.is_exiting.load(Ordering::Relaxed)
    }

    /// Makes the writer come to an end, and waits for that. Takes no lock and no memory: whoever has interrupted somebody with either may wait
    /// for the writer himself.
    #[cfg(not(loom))]
    pub(crate) fn exit(&self, timeout: Duration) {
        self.is_exiting.store(true, Ordering::Relaxed);
        self.kick();
        let deadline_ns = crate::clock::monotonic_ns() + timeout.as_nanos() as u64;
        while self.writer() == WriterState::Running && crate::clock::monotonic_ns() < deadline_ns {
            // Whoever ends the writer wakes those who wait for a flush.
            self.flushes.sleep(self.flushes.done(), Patience::NAP);
        }
    }

    /// Waits until all that was recorded before is written. Safe in a signal handler.
    pub(crate) fn flush(&self, timeout: Duration) -> Flushed {
        let ticket = self.flushes.ask();
        self.kick();
        let deadline_ns =
            crate::clock::monotonic_ns().saturating_add(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
        loop {
            let seen = self.flushes.done();
            if seen.covers(ticket) {
                return Flushed::Written;
            }
            if self.writer() != WriterState::Running {
                return Flushed::NoWriter;
            }
            let left_ns = deadline_ns.saturating_sub(crate::clock::monotonic_ns());
            if left_ns == 0 {
                return Flushed::TimedOut;
            }
            self.flushes.sleep(seen, Patience::NAP.min(Duration::from_nanos(left_ns)));
        }
    }
}

/// What came of a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flushed {
    Written,
    TimedOut,
    NoWriter,
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
        if self.limit_ns == 0 || hub.writer() != WriterState::Running {
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
