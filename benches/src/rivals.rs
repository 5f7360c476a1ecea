//! Other recorders, each used as its documentation has it, with three numbers per event.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::contestants::Contestant;

/// Counts the lines that come out at the other end, which is how to know that a logger has caught up.
#[derive(Debug, Clone, Default)]
pub struct Lines(Arc<AtomicU64>);

impl Lines {
    /// Waits until so many lines came out; whoever loses some makes it give up.
    fn wait_for(&self, lines: u64) {
        let mut seen = self.0.load(Ordering::Relaxed);
        let mut moved = Instant::now();
        while seen < lines && moved.elapsed() < Duration::from_millis(200) {
            thread::sleep(Duration::from_micros(50));
            let now = self.0.load(Ordering::Relaxed);
            if now != seen {
                (seen, moved) = (now, Instant::now());
            }
        }
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let lines = bytes.iter().filter(|&&byte| byte == b'\n').count();
        self.0.fetch_add(lines as u64, Ordering::Relaxed);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What all that log lines have in common: how much went in, how much came out.
#[derive(Debug, Default)]
struct Count {
    lines: Lines,
    emitted: AtomicU64,
    lost: AtomicU64,
}

impl Count {
    fn settle(&self) {
        let emitted = self.emitted.load(Ordering::Relaxed);
        let lost = self.lost.load(Ordering::Relaxed);
        self.lines.wait_for(emitted - lost);
        self.lost.store(emitted - self.lines.0.load(Ordering::Relaxed).min(emitted), Ordering::Relaxed);
    }
}

/// `ticklog`: a ring of 1 MiB per thread, formatted behind; the lines are counted and thrown away.
///
/// Its macros want to be used where it is configured: in the root of the program.
pub struct Ticklog {
    count: Count,
    log: fn(u32),
}

impl Ticklog {
    /// `log` logs so many lines, which all go to `lines`.
    #[must_use]
    pub fn new(lines: Lines, log: fn(u32)) -> Self {
        Self { count: Count { lines, ..Count::default() }, log }
    }
}

impl Contestant for Ticklog {
    fn name(&self) -> String {
        "ticklog, 3 x u64".to_owned()
    }

    fn emit(&self, _thread: usize, events: u32) {
        (self.log)(events);
        self.count.emitted.fetch_add(events.into(), Ordering::Relaxed);
    }

    fn settle(&self) {
        self.count.settle();
    }

    fn lost(&self) -> u64 {
        self.count.lost.load(Ordering::Relaxed)
    }

    fn room(&self) -> u32 {
        // Half of a ring, in records of two or three lines of a cache.
        (1 << 19) / 192
    }
}

/// `tracing` with the writer thread of `tracing-appender`: formatted at once, handed over in a channel; the lines are counted and
/// thrown away.
pub struct Tracing {
    count: Count,
    dropped: tracing_appender::non_blocking::ErrorCounter,
    _guard: tracing_appender::non_blocking::WorkerGuard,
}

impl Tracing {
    /// Can be made once.
    ///
    /// # Errors
    ///
    /// There is a subscriber already.
    pub fn start() -> Result<Self, Box<dyn std::error::Error>> {
        let count = Count::default();
        let (writer, guard) = tracing_appender::non_blocking(count.lines.clone());
        let dropped = writer.error_counter();
        let subscriber = tracing_subscriber::fmt().with_writer(writer).with_ansi(false).finish();
        tracing::subscriber::set_global_default(subscriber)?;
        Ok(Self { count, dropped, _guard: guard })
    }
}

impl Contestant for Tracing {
    fn name(&self) -> String {
        "tracing + tracing-appender, 3 x u64".to_owned()
    }

    #[inline(never)]
    fn emit(&self, _thread: usize, events: u32) {
        for i in 0..u64::from(events) {
            tracing::info!(a = i, b = i << 9, c = 0x1234_5678_9abc_def0_u64);
        }
        self.count.emitted.fetch_add(events.into(), Ordering::Relaxed);
    }

    fn settle(&self) {
        self.count.settle();
    }

    fn lost(&self) -> u64 {
        self.dropped.dropped_lines() as u64
    }

    fn room(&self) -> u32 {
        64_000
    }
}
