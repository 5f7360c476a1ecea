//! What became of a recording, in numbers.

use std::path::PathBuf;

/// What became of a recording so far: every event that was attempted is in `records` or in `lost`.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// The file that was written last, or the part of it.
    pub file: PathBuf,
    /// The parts that were begun, those that are removed by now included; 0 without
    /// [`rotate`](crate::Options::rotate).
    pub parts: u64,
    /// Whether the file was removed while it was written: what it held is gone.
    pub is_removed: bool,
    /// The events that are in files.
    pub records: u64,
    /// The bytes that are in files.
    pub bytes: u64,
    /// The events that are not in files.
    pub lost: Lost,
    /// Records whose time is earlier than that of the record before them in the file: 0 unless a thread was off its processor inside
    /// one emit for more than two seconds.
    pub late: u64,
    /// Why nothing is written to the file, for good or at the moment, if so.
    pub write_error: Option<String>,
    /// How often the writer looked for records and found some.
    pub cycles: u64,
    /// The rings that were made, and their size in bytes without the room for one more record behind each.
    pub rings: u32,
    /// The size of all rings.
    pub ring_bytes: u64,
    /// Of a [durable](crate::Options::durable) recording: how many rings found no room where they survive the process. What is in them is lost
    /// if it is killed.
    pub rings_elsewhere: u64,
    /// The clock.
    pub clock: ClockReport,
    /// Whether the kernel lacks the barrier that makes the order of records exact; then it rests on a delay of
    /// 10 ms.
    pub is_order_by_delay: bool,
    /// The threads, in no particular order; one that changed its ring has an entry for each. Of many thousands of threads the later ones share the last entry, with the id 0.
    pub threads: Vec<ThreadReport>,
}

/// Events that are not in files, by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lost {
    /// The thread's ring was full.
    pub full: u64,
    /// The thread's ring stayed full for longer than the policy `block` has a thread wait.
    pub timed_out: u64,
    /// The arguments were too large: for the format, or for half a ring.
    pub too_large: u64,
    /// A signal handler interrupted the recording of an event.
    pub nested: u64,
    /// The thread had no ring: there was no memory, it had ended already, or a signal handler interrupted its first event.
    pub no_ring: u64,
    /// Recording was switched off.
    pub off: u64,
    /// The file could not be written.
    pub write_failed: u64,
}

impl Lost {
    /// The sum over all causes.
    #[must_use]
    pub const fn total(&self) -> u64 {
        let Self { full, timed_out, too_large, nested, no_ring, off, write_failed } = *self;
        full + timed_out + too_large + nested + no_ring + off + write_failed
    }
}

/// What one thread recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadReport {
    /// The thread's id as the kernel has it.
    pub thread_id: u32,
    /// The events that the writer took out of the thread's ring.
    pub records: u64,
    /// Lost events, by the causes that belong to a thread: `full`, `timed_out`, `too_large` and `nested`.
    pub lost: Lost,
    /// The most that ever waited in the thread's ring, in bytes, earlier owners of the ring included.
    pub high_water_bytes: u64,
}

/// What time was taken from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClockReport {
    /// Whether the processor's time-stamp counter is used, not `CLOCK_MONOTONIC` itself.
    pub is_tsc: bool,
    /// Why not, if it was wanted.
    pub unfit: Option<String>,
    /// By how much a time may differ from `CLOCK_MONOTONIC`, in ns: the largest of the bounds that were measured.
    pub error_ns: u64,
}
