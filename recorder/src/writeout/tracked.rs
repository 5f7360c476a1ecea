//! A ring as the writer sees it.

use crate::clock::Converter;
use crate::report::{Lost, ThreadReport};
use crate::ring::{Losses, Ring};

/// An emit that takes longer than this is given up: the thread was stopped, or jumped out of a signal handler.
pub(super) const STUCK_NS: u64 = 2_000_000_000;
/// How often to look again at an open gate: an emit takes a few ns unless its thread is off its processor.
const LOOKS: u32 = if cfg!(loom) { 1 } else { 200 };

/// A ring as the writer sees it.
pub(super) struct Tracked {
    pub(super) ring: &'static Ring,
    /// Records before it have been taken out.
    pub(super) taken: u64,
    /// Records before it are visible.
    pub(super) tail: u64,
    /// The ring holds nothing earlier that is not visible.
    pub(super) safe_ns: u64,
    /// The ring's last stamp, looked at before the barrier: then what came before that stamp is visible behind it. Looked at behind
    /// the tail, it could be that of an emit which began after the tail was loaded, and a record between the two be missed.
    pub(super) last_stamp: u64,
    /// An emit that has been under way for long: its gate's number, and since when.
    pub(super) stuck: Option<(u64, u64)>,
    /// The ticks before which nothing will come of an emit that holds the watermark back.
    pub(super) held_ticks: Option<u64>,
    /// The losses that are in the file.
    pub(super) told: Told,
    pub(super) owner: ThreadReport,
    /// The losses of the owners before.
    pub(super) before: Losses,
    /// The losses before this recording.
    pub(super) at_start: Losses,
    /// Those at its end.
    pub(super) at_end: Option<Losses>,
}

/// Losses of a ring that are in the file.
#[derive(Default)]
pub(super) struct Told {
    pub(super) in_band: u64,
    pub(super) nested: u64,
    /// A gap is told whose end is not.
    pub(super) is_open: bool,
}

impl Tracked {
    /// Begins with what the ring holds. What an earlier recording has reported as lost is not lost in this one.
    pub(super) fn new(ring: &'static Ring, safe_ns: u64) -> Self {
        let before = ring.reported();
        let taken = ring.head();
        // Otherwise the ring says itself whose it is.
        let thread_id = if taken > 0 { ring.owner_id() } else { 0 };
        Self {
            ring,
            taken,
            tail: taken,
            safe_ns,
            last_stamp: 0,
            stuck: None,
            held_ticks: None,
            told: Told { in_band: before.in_band(), nested: before.nested, is_open: false },
            owner: ThreadReport { thread_id, ..ThreadReport::default() },
            before,
            at_start: before,
            at_end: None,
        }
    }

    /// Looks at the ring behind the barrier; returns until when it is complete.
    pub(super) fn look(&mut self, complete_ns: u64, now_ns: u64, converter: &mut Converter) -> u64 {
        let mut gate = self.ring.gate();
        for _ in 0..LOOKS {
            // Another odd number would say as well that the emit is over, but not bring its tail along as a closed gate does.
            if gate & 1 == 0 {
                break;
            }
            std::hint::spin_loop();
            gate = self.ring.gate();
        }
        let is_under_way = gate & 1 != 0;
        // Only now, behind the last look at the gate.
        self.tail = self.ring.tail();
        self.held_ticks = None;
        if is_under_way {
            let since_ns = match self.stuck {
                Some((number, since_ns)) if number == gate => since_ns,
                _ => now_ns,
            };
            self.stuck = Some((gate, since_ns));
            if now_ns.saturating_sub(since_ns) < STUCK_NS {
                // What is being recorded has a stamp not before the one that was the last before the barrier.
                let last = self.last_stamp;
                self.held_ticks = Some(last);
                if converter.reaches_back_to(last) {
                    self.safe_ns = self.safe_ns.max(converter.ns(last).min(complete_ns));
                }
                return self.safe_ns;
            }
        } else {
            self.stuck = None;
        }
        self.safe_ns = self.safe_ns.max(complete_ns);
        complete_ns
    }

    /// The owner's numbers, given the ring's losses until its end.
    pub(super) fn report(&self, losses: Losses) -> ThreadReport {
        ThreadReport {
            lost: lost(losses.since(self.before)),
            high_water_bytes: self.ring.high_water_bytes(),
            ..self.owner
        }
    }
}

pub(super) fn lost(losses: Losses) -> Lost {
    let Losses { full, timed_out, too_large, nested } = losses;
    Lost { full, timed_out, too_large, nested, ..Lost::default() }
}
