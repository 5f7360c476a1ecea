//! Who takes part: everything that stores an event, down to what only stores.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;
use simpletrace_recorder::{Event, Recorder, RegisterError, enable, register};

use crate::baseline::Baseline;

/// The events that are recorded through generated code.
pub mod trace {
    include!(concat!(env!("OUT_DIR"), "/trace.rs"));
}

/// The most threads that may run a contestant at once.
pub const MAX_THREADS: usize = 2;

/// Something that takes events.
pub trait Contestant: Sync {
    /// What the tables call it.
    fn name(&self) -> String;

    /// Takes so many events, the loop of the measurement, on the thread with this number, counted from 0.
    fn emit(&self, thread: usize, events: u32);

    /// The same, and how long it took.
    fn time(&self, thread: usize, events: u32) -> Duration {
        let begin = Instant::now();
        self.emit(thread, events);
        begin.elapsed()
    }

    /// Waits until whoever is behind has caught up.
    fn settle(&self) {}

    /// How many events were lost so far, as far as can be told; all of its kind if several share a recorder.
    fn lost(&self) -> u64 {
        0
    }

    /// The most events in a row, of all threads together, that find room without anybody taking them away.
    fn room(&self) -> u32 {
        u32::MAX
    }
}

/// Keeps the compiler from leaving the loop out that this is in, and costs nothing.
#[inline(always)]
fn keep_loop() {
    // SAFETY: there is no instruction in it.
    unsafe {
        std::arch::asm!("", options(nostack, preserves_flags));
    }
}

/// The arguments of an event: numbers that the compiler does not know.
#[inline(always)]
fn words(i: u32) -> [u64; 3] {
    [i.into(), u64::from(i) << 9, 0x1234_5678_9abc_def0]
}

/// A loop that does nothing.
pub struct EmptyLoop;

impl Contestant for EmptyLoop {
    fn name(&self) -> String {
        "empty loop".to_owned()
    }

    #[inline(never)]
    fn emit(&self, _thread: usize, events: u32) {
        for _ in 0..events {
            keep_loop();
        }
    }
}

/// The least that an event can cost that is switched off: the load of a flag and a branch.
#[derive(Default)]
pub struct Check {
    flag: AtomicBool,
    taken: AtomicU64,
}

impl Contestant for Check {
    fn name(&self) -> String {
        "load of a flag, branch".to_owned()
    }

    #[inline(never)]
    fn emit(&self, _thread: usize, events: u32) {
        for _ in 0..events {
            keep_loop();
            if self.flag.load(Ordering::Relaxed) {
                self.taken.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// The least that an event can cost that is recorded with its time: rdtsc, not fenced, and five stores into a ring of 1 MiB.
pub struct Floor {
    name: &'static str,
    rings: [CachePadded<FloorRing>; MAX_THREADS],
}

struct FloorRing {
    words: Box<[AtomicU64]>,
    next: AtomicU64,
}

impl Floor {
    const WORDS: usize = (1 << 20) / 8;
    const RECORD_WORDS: usize = 5;

    /// One by this name.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        let ring = || FloorRing {
            words: (0..Self::WORDS + Self::RECORD_WORDS).map(|_| AtomicU64::new(0)).collect(),
            next: AtomicU64::new(0),
        };
        Self { name, rings: std::array::from_fn(|_| CachePadded::new(ring())) }
    }
}

impl Contestant for Floor {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    #[inline(never)]
    fn emit(&self, thread: usize, events: u32) {
        let FloorRing { words: ring, next } = &*self.rings[thread];
        let mut position = next.load(Ordering::Relaxed) as usize;
        for i in 0..events {
            let place = position & (Self::WORDS - 1);
            let record = &ring[place..place + Self::RECORD_WORDS];
            let [a, b, c] = words(i);
            for (word, value) in record.iter().zip([ticks(), 24 << 32, a, b, c]) {
                word.store(value, Ordering::Relaxed);
            }
            position += Self::RECORD_WORDS;
        }
        next.store(position as u64, Ordering::Relaxed);
    }
}

/// Reads the time-stamp counter; the clock where there is none.
#[inline(always)]
#[must_use]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction.
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }
}

/// An event with three numbers.
pub static WORDS: Event =
    Event::new("bench_words", "bench_words(uint64_t a, uint64_t b, uint64_t c) \"%\"PRIu64\" %\"PRIu64\" %\"PRIx64");
/// An event with a string.
pub static STRING: Event = Event::new("bench_string", "bench_string(const char *s) \"%s\"");
/// An event that nobody enables.
pub static DISABLED: Event =
    Event::new("bench_off", "bench_off(uint64_t a, uint64_t b, uint64_t c) \"%\"PRIu64\" %\"PRIu64\" %\"PRIx64");

/// The string that is recorded: 32 bytes.
pub const TEXT: &str = "virtio-blk-pci.0/queue-1/request";

/// What of our recorder is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Words,
    String,
    Disabled,
    Generated,
    GeneratedString,
    GeneratedOff,
}

/// Registers all events of our recorder, and enables those that are to be recorded.
///
/// # Errors
///
/// As [`register`], which gives none for these.
pub fn register_all() -> Result<(), RegisterError> {
    register(&[&WORDS, &STRING, &DISABLED])?;
    register(&trace::EVENTS)?;
    enable("bench_*");
    enable("-bench_*off");
    Ok(())
}

/// Our recorder.
pub struct Simpletrace<'a> {
    recorder: &'a Recorder,
    kind: Kind,
}

impl<'a> Simpletrace<'a> {
    #[must_use]
    pub fn new(recorder: &'a Recorder, kind: Kind) -> Self {
        Self { recorder, kind }
    }
}

impl Contestant for Simpletrace<'_> {
    fn name(&self) -> String {
        match self.kind {
            Kind::Words => "simpletrace, 3 x u64".to_owned(),
            Kind::String => format!("simpletrace, string of {}", TEXT.len()),
            Kind::Disabled => "simpletrace, disabled".to_owned(),
            Kind::Generated => "simpletrace, 3 x u64, generated".to_owned(),
            Kind::GeneratedString => format!("simpletrace, string of {}, generated", TEXT.len()),
            Kind::GeneratedOff => "simpletrace, disabled, generated".to_owned(),
        }
    }

    fn emit(&self, _thread: usize, events: u32) {
        match self.kind {
            Kind::Words => emit_words(&WORDS, events),
            Kind::String => emit_string(events),
            Kind::Disabled => emit_words(&DISABLED, events),
            Kind::Generated => emit_generated(events),
            Kind::GeneratedString => emit_generated_string(events),
            Kind::GeneratedOff => emit_generated_off(events),
        }
    }

    fn settle(&self) {
        if matches!(self.kind, Kind::Disabled | Kind::GeneratedOff) {
            return;
        }
        // A loss is counted, and a settled ring only makes it less likely.
        let _ = self.recorder.flush(Duration::from_secs(2));
    }

    fn lost(&self) -> u64 {
        self.recorder.report().map_or(0, |report| report.lost.total())
    }

    fn room(&self) -> u32 {
        // Half of a ring of 1 MiB: from there on the writer is woken.
        (1 << 19) / if matches!(self.kind, Kind::String | Kind::GeneratedString) { 56 } else { 40 }
    }
}

/// Emits events with three numbers.
#[inline(never)]
pub fn emit_words(event: &'static Event, events: u32) {
    for i in 0..events {
        keep_loop();
        event.emit_words(words(i));
    }
}

/// Emits events with a string.
#[inline(never)]
pub fn emit_string(events: u32) {
    for _ in 0..events {
        STRING.emit(&[TEXT.into()]);
    }
}

/// As [`emit_words`], through a generated function.
#[inline(never)]
pub fn emit_generated(events: u32) {
    for i in 0..events {
        keep_loop();
        let [a, b, c] = words(i);
        trace::bench_generated(a, b, c);
    }
}

/// As [`emit_string`], through a generated function.
#[inline(never)]
pub fn emit_generated_string(events: u32) {
    for _ in 0..events {
        trace::bench_generated_string(TEXT);
    }
}

/// As [`emit_generated`], of an event that nobody enables.
#[inline(never)]
pub fn emit_generated_off(events: u32) {
    for i in 0..events {
        keep_loop();
        let [a, b, c] = words(i);
        trace::bench_generated_off(a, b, c);
    }
}

/// The recorder that ours is compared with.
pub struct BaselineContestant {
    baseline: Baseline,
}

impl BaselineContestant {
    /// Records into `file`.
    ///
    /// # Errors
    ///
    /// The file or the thread cannot be made.
    pub fn start(file: &Path) -> std::io::Result<Self> {
        Ok(Self { baseline: Baseline::start(file, &[WORDS.name()])? })
    }
}

impl Contestant for BaselineContestant {
    fn name(&self) -> String {
        "baseline, 3 x u64".to_owned()
    }

    #[inline(never)]
    fn emit(&self, _thread: usize, events: u32) {
        for i in 0..events {
            self.baseline.emit_words(0, words(i));
        }
    }

    fn settle(&self) {
        self.baseline.flush();
    }

    fn lost(&self) -> u64 {
        self.baseline.lost()
    }

    fn room(&self) -> u32 {
        self.baseline.room()
    }
}
