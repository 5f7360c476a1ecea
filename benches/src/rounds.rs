//! Measuring contestants in turns: in every round each of them has one short window, so that what disturbs the machine disturbs all.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::contestants::Contestant;

/// How long a window is meant to be: short enough to fall between two interruptions most of the time.
pub const WINDOW: Duration = Duration::from_micros(50);
/// Of two windows that were to be at once, the part that was.
const OVERLAP: f64 = 0.8;

/// What was measured: for each contestant, and each round, the nanoseconds per event and thread.
pub struct Measured {
    pub samples: Vec<Vec<f64>>,
    /// The events of each contestant's windows.
    pub events: Vec<u32>,
    /// Rounds that were left out, as two threads did not run at once in one of the windows.
    pub left_out: usize,
}

impl Measured {
    /// Adds the rounds of another measurement of the same contestants.
    pub fn append(&mut self, other: Self) {
        for (sample, mut more) in self.samples.iter_mut().zip(other.samples) {
            sample.append(&mut more);
        }
        self.left_out += other.left_out;
    }
}

/// Measures the contestants on one thread, or on two at once.
#[must_use]
pub fn measure(contestants: &[&dyn Contestant], threads: usize, rounds: usize) -> Measured {
    let events: Vec<u32> = contestants.iter().map(|contestant| window_events(*contestant, threads)).collect();
    let meeting = Meeting {
        gate: Barrier::new(2),
        which: AtomicUsize::new(0),
        here: AtomicU32::new(0),
        end: AtomicBool::new(false),
    };
    let mut measured = Measured { samples: vec![Vec::new(); contestants.len()], events, left_out: 0 };
    if threads == 1 {
        run_rounds(&mut measured, contestants, rounds, |contestant, events| {
            Some(per_event(contestants[contestant].time(0, events), events))
        });
        return measured;
    }
    let events = measured.events.clone();
    thread::scope(|scope| {
        let (report, reports) = std::sync::mpsc::channel();
        scope.spawn({
            let meeting = &meeting;
            move || {
                loop {
                    meeting.gate.wait();
                    if meeting.end.load(Ordering::Relaxed) {
                        return;
                    }
                    let which = meeting.which.load(Ordering::Relaxed);
                    let window = meeting.run(contestants[which], 1, events[which]);
                    // The receiver outlives this thread.
                    let _ = report.send(window);
                }
            }
        });
        run_rounds(&mut measured, contestants, rounds, |contestant, events| {
            meeting.which.store(contestant, Ordering::Relaxed);
            meeting.here.store(0, Ordering::Relaxed);
            meeting.gate.wait();
            let one = meeting.run(contestants[contestant], 0, events);
            let other = reports.recv().ok()?;
            let both = one.1.min(other.1).saturating_duration_since(one.0.max(other.0));
            let either = one.1.max(other.1).saturating_duration_since(one.0.min(other.0));
            let is_at_once = both.as_secs_f64() >= OVERLAP * either.as_secs_f64();
            is_at_once.then(|| (per_event(one.1 - one.0, events) + per_event(other.1 - other.0, events)) / 2.0)
        });
        meeting.end.store(true, Ordering::Relaxed);
        meeting.gate.wait();
    });
    measured
}

fn per_event(time: Duration, events: u32) -> f64 {
    time.as_secs_f64() * 1e9 / f64::from(events)
}

/// Lets everybody have a window per round, each round beginning with another.
fn run_rounds(
    measured: &mut Measured,
    contestants: &[&dyn Contestant],
    rounds: usize,
    mut window: impl FnMut(usize, u32) -> Option<f64>,
) {
    for round in 0..rounds {
        let mut values = vec![f64::NAN; contestants.len()];
        for turn in 0..contestants.len() {
            let which = (round + turn) % contestants.len();
            if let Some(value) = window(which, measured.events[which]) {
                values[which] = value;
            }
            contestants[which].settle();
        }
        if values.iter().any(|value| value.is_nan()) {
            measured.left_out += 1;
            continue;
        }
        for (sample, value) in measured.samples.iter_mut().zip(values) {
            sample.push(value);
        }
    }
}

/// How many events fill a window, as long as they find room.
fn window_events(contestant: &dyn Contestant, threads: usize) -> u32 {
    let most = (contestant.room() / threads as u32).min(1 << 20);
    let mut events = 64;
    loop {
        let best = (0..5)
            .map(|_| {
                let took = contestant.time(0, events);
                contestant.settle();
                took
            })
            .min();
        if events >= most || best.is_none_or(|best| best >= WINDOW) {
            return events.min(most);
        }
        events = events.saturating_mul(2).min(most);
    }
}

/// Where two threads meet before a window.
struct Meeting {
    /// Coarsely, asleep.
    gate: Barrier,
    which: AtomicUsize,
    /// Finely, awake.
    here: AtomicU32,
    end: AtomicBool,
}

impl Meeting {
    fn run(&self, contestant: &dyn Contestant, thread: usize, events: u32) -> (Instant, Instant) {
        self.here.fetch_add(1, Ordering::AcqRel);
        while self.here.load(Ordering::Acquire) < 2 {
            std::hint::spin_loop();
        }
        let begin = Instant::now();
        contestant.emit(thread, events);
        (begin, Instant::now())
    }
}
