//! The writer: takes records out of all rings, puts them in order of time, and writes them.
//!
//! It works in cycles. Each takes an anchor, the time of the counter and of the clock at one moment, then makes all threads pass a
//! barrier, then looks at the rings: what any thread stamped before the anchor is visible by now, or its gate is seen open. So the
//! records up to the watermark, the anchor's time or where an open gate holds it back, are complete and can be written in order.
//! docs/RECORDER.md has the proof.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;

#[cfg(not(loom))]
use simpletrace_format::durable::{Checkpoint, RingPoint};

use crate::barrier;
use crate::clock::{self, Anchor, Converter};
use crate::event::Registry;
use crate::hub::Hub;
use crate::output::{Output, Written};
use crate::report::{Lost, Report, ThreadReport};
use crate::ring::{Front, Kind, Losses, Ring, Stamp};
#[cfg(not(loom))]
use crate::segment::{Keeper, Segment};
use crate::sync::{Ordering, Word};

mod tracked;

use tracked::{Tracked, lost};

/// Where there is no barrier, what was stamped so long ago is taken to be visible.
const GRACE_NS: u64 = 10_000_000;
/// Idle rings kept ready.
const SPARES: usize = 2;
/// The most threads that are reported one by one.
const MAX_THREADS: usize = 4096;

/// The clock of the writer; tests have their own.
pub(crate) type TakeAnchor = Box<dyn FnMut(bool) -> Anchor + Send>;

/// What a [`Writeout`] is made with.
pub(crate) struct Setup {
    pub(crate) hub: &'static Hub,
    pub(crate) registry: &'static Registry,
    /// Takes an anchor, of `CLOCK_MONOTONIC` alone if asked to.
    pub(crate) take_anchor: TakeAnchor,
    /// The anchor from before the first stamp, if there was one.
    pub(crate) first_anchor: Option<Anchor>,
    pub(crate) output: Output,
    /// The process's id for all records, or `None` to write each thread's.
    pub(crate) pid: Option<u32>,
    /// Records that are earlier have been left in the rings by an earlier recording.
    pub(crate) from_ns: u64,
    /// Where what is recorded survives the process, if it is to.
    #[cfg(not(loom))]
    pub(crate) segment: Option<&'static Segment>,
}

/// The writer's state.
pub(crate) struct Writeout {
    hub: &'static Hub,
    registry: &'static Registry,
    take_anchor: TakeAnchor,
    converter: Converter,
    has_barrier: bool,
    rings: Vec<Tracked>,
    /// Where each ring's next record stands in time; between merges it is empty, and kept for its memory.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    output: Output,
    is_off: bool,
    pid: Option<u32>,
    from_ns: u64,
    /// Events from here on are just written; kept up to date within a merge.
    plain_from_ns: u64,
    /// All records before it are in the file or the block, and none behind it; one at it may still be on its way.
    watermark_ns: u64,
    /// All records before it are in the file, if they are not lost.
    written_ns: u64,
    /// The time of the last anchor.
    now_ns: u64,
    /// The time of the record before.
    last_ns: u64,
    /// The losses without a ring that are in the file, and those that the segment does not know of.
    no_ring: u64,
    no_ring_before_segment: u64,
    /// Of these, the writer's own.
    writers_own: u64,
    /// Marks of gaps whose time is yet to come.
    marks: VecDeque<Mark>,
    /// What was lost while there was no file to say so in.
    missing: Option<Missing>,
    clock_fault: Option<String>,
    /// When the counter was given up.
    tsc_until_ns: u64,
    #[cfg(not(loom))]
    keeper: Option<Keeper>,
    /// What is yet to be told of files that are closed.
    messages: Vec<String>,
    /// The report's counts; the rest of it is put together when somebody asks.
    counts: Report,
}

/// A `dropped` record for later.
struct Mark {
    at_ns: u64,
    pid: u32,
    count: u64,
}

/// Events that were taken but could not be written.
struct Missing {
    since_ns: u64,
    count: u64,
}

/// What a cycle came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cycle {
    /// There was nothing to do.
    Idle,
    /// So many bytes of records were taken out of the rings.
    Took(u64),
    /// The target takes nothing at the moment: records wait in the rings.
    Stalled,
}

impl Writeout {
    pub(crate) fn new(setup: Setup) -> Self {
        let Setup { hub, registry, take_anchor, first_anchor, output, pid, from_ns, .. } = setup;
        let mut converter = Converter::default();
        if let Some(anchor) = first_anchor {
            // Nothing to contradict yet.
            let _ = converter.push(anchor);
        }
        let counts = Report { file: output.path().to_owned(), ..Report::default() };
        let mut writeout = Self {
            hub,
            registry,
            take_anchor,
            converter,
            has_barrier: barrier::is_available(),
            rings: Vec::new(),
            next: BinaryHeap::new(),
            output,
            is_off: false,
            pid,
            from_ns,
            plain_from_ns: u64::MAX,
            watermark_ns: 0,
            written_ns: 0,
            now_ns: 0,
            last_ns: 0,
            no_ring: 0,
            no_ring_before_segment: 0,
            writers_own: 0,
            marks: VecDeque::new(),
            missing: None,
            clock_fault: None,
            tsc_until_ns: u64::MAX,
            #[cfg(not(loom))]
            keeper: setup.segment.map(|segment| {
                let first_anchor = first_anchor.map_or([0; 2], |anchor| [anchor.ticks, anchor.ns]);
                Keeper::new(
                    segment,
                    Checkpoint { from_ns, first_anchor, pid: pid.unwrap_or(0), ..Checkpoint::default() },
                )
            }),
            messages: Vec::new(),
            counts,
        };
        (writeout.no_ring, writeout.writers_own) = hub.reported_without_ring();
        #[cfg(not(loom))]
        if let Some(segment) = setup.segment {
            writeout.no_ring_before_segment = hub.no_ring().saturating_sub(segment.no_ring());
        }
        writeout.find_rings();
        writeout
    }

    /// Says why the time-stamp counter is not used, though it was wanted.
    pub(crate) fn note_clock_fault(&mut self, fault: &str) {
        self.clock_fault = Some(fault.to_owned());
    }

    /// Changes to `CLOCK_MONOTONIC` before anything is written.
    pub(crate) fn use_monotonic(&mut self) {
        // What has been stamped with the counter is between the first anchor and this one.
        self.anchor();
        self.hub.use_monotonic();
    }

    /// Writes the file's header: an error if the file takes nothing at all.
    pub(crate) fn begin(&mut self) -> io::Result<()> {
        if self.is_durable() && !self.hub.is_monotonic() {
            // Before anything counts: without an anchor there is no time in what is left.
            let anchor = (self.take_anchor)(false);
            self.note_anchor(anchor);
        }
        #[cfg(not(loom))]
        if let (Some(keeper), Some(identity)) = (&mut self.keeper, self.output.identity()) {
            keeper.begin_file((identity, self.output.path()), 0);
        }
        let written = self.output.begin(self.now_ns)?;
        self.show_file();
        self.count(written);
        self.note_progress();
        Ok(())
    }

    /// What whoever runs the program should know, and has not been told.
    pub(crate) fn take_messages(&mut self) -> Vec<String> {
        let mut messages = std::mem::take(&mut self.messages);
        messages.append(&mut self.output.take_messages());
        #[cfg(not(loom))]
        if let Some(keeper) = &self.keeper {
            let elsewhere = keeper.segment().rings_elsewhere();
            if elsewhere > 0 && self.counts.rings_elsewhere == 0 {
                let folder = keeper.segment().folder().display();
                messages.push(format!(
                    "simpletrace: {folder} has no room for more rings: from here on, new threads' events are recorded, but lost if the \
                     process is killed"
                ));
            }
            self.counts.rings_elsewhere = elsewhere;
        }
        messages
    }

    /// Takes what is complete out of the rings and writes it. With `must`, advances the watermark even if nothing waits.
    pub(crate) fn cycle(&mut self, must: bool) -> Cycle {
        self.find_rings();
        if self.output.is_pipe() || self.output.is_stalled() {
            // First of all what is pending; and a reader may have left.
            self.write_out();
            if self.output.is_stalled() && !self.is_off {
                return Cycle::Stalled;
            }
        }
        if !must && !self.anything_waits() {
            if self.is_durable() && !self.hub.is_monotonic() {
                // For what is recorded next, should nobody be there to take another one.
                let anchor = (self.take_anchor)(false);
                self.note_anchor(anchor);
            }
            // Nothing is changed without a barrier: a gate that looks closed may be an old sight.
            return Cycle::Idle;
        }
        for tracked in &mut self.rings {
            tracked.last_stamp = tracked.ring.last_stamp();
        }
        let anchor = self.anchor();
        let had_barrier = self.has_barrier && barrier::heavy_barrier();
        // Rings that this does not find were made after the barrier, hence hold nothing from before the anchor.
        self.find_rings();
        let mut reach_ns = if had_barrier { anchor.ns } else { anchor.ns.saturating_sub(GRACE_NS) };
        let complete_ns = reach_ns;
        for tracked in &mut self.rings {
            reach_ns = reach_ns.min(tracked.look(complete_ns, anchor.ns, &mut self.converter));
        }
        // Never back: what was reached stays complete.
        let watermark_ns = reach_ns.max(self.watermark_ns);
        if self.output.retry(anchor.ns) {
            self.resume();
        }
        self.find_losses(anchor.ns);
        let (taken, reached_ns) = self.merge(watermark_ns);
        self.watermark_ns = reached_ns.max(self.watermark_ns);
        if !self.output.is_stalled() {
            self.write_out();
        }
        self.forget_anchors(anchor.ticks);
        self.counts.cycles += 1;
        if self.output.is_stalled() { Cycle::Stalled } else { Cycle::Took(taken) }
    }

    /// A time, in ns, that is later than all stamps that anybody has taken by now, as they will be converted.
    pub(crate) fn later_than_now_ns(&self) -> u64 {
        clock::monotonic_ns() + self.converter.error_ns() + 1
    }

    /// Whether all that was stamped until then, in ns, is written.
    pub(crate) fn has_written(&self, until_ns: u64) -> bool {
        until_ns < self.written_ns
    }

    /// Before it all is written.
    #[cfg(all(loom, test))]
    pub(crate) fn watermark_ns(&self) -> u64 {
        self.watermark_ns
    }

    #[inline]
    fn ns(&mut self, stamp: Stamp) -> u64 {
        if stamp.is_monotonic {
            stamp.ticks
        } else {
            // What a counter says that went wrong may be far ahead.
            self.converter.ns(stamp.ticks).min(self.tsc_until_ns)
        }
    }

    /// Takes an anchor; when the counter cannot be trusted any more, all threads change to the clock.
    fn anchor(&mut self) -> Anchor {
        if !self.hub.is_monotonic() {
            let anchor = (self.take_anchor)(false);
            match self.converter.push(anchor) {
                Ok(()) => {
                    self.now_ns = anchor.ns;
                    self.note_anchor(anchor);
                    return anchor;
                }
                Err(fault) => {
                    self.clock_fault = Some(fault.to_string());
                    self.hub.use_monotonic();
                }
            }
        }
        let anchor = (self.take_anchor)(true);
        self.now_ns = anchor.ns;
        self.tsc_until_ns = self.tsc_until_ns.min(anchor.ns);
        anchor
    }

    /// Notes an anchor where it survives the process.
    fn note_anchor(&mut self, anchor: Anchor) {
        #[cfg(not(loom))]
        if let Some(keeper) = &mut self.keeper {
            keeper.note_anchor(anchor.ticks, anchor.ns);
        }
        #[cfg(loom)]
        let _ = anchor;
    }

    /// Finds the rings that were made since the last time.
    fn find_rings(&mut self) {
        let known = self.rings.len();
        let newest = self.rings.last().map(|tracked| tracked.ring);
        let is_known = |ring: &&'static Ring| newest.is_some_and(|newest| std::ptr::eq(*ring, newest));
        for ring in self.hub.rings.iter().take_while(|ring| !is_known(ring)) {
            self.rings.push(Tracked::new(ring, self.watermark_ns));
        }
        // The newest comes first in the list, and last here.
        self.rings[known..].reverse();
    }

    fn anything_waits(&self) -> bool {
        !self.marks.is_empty()
            || self.output.may_recover()
            || self.hub.no_ring() != self.no_ring
            || self.rings.iter().any(|tracked| {
                tracked.ring.tail() != tracked.taken || tracked.ring.losses().nested != tracked.told.nested
            })
    }

    /// Looks for losses that are in no ring. All that is known of their time is that they are later than the last look, where the
    /// watermark was at least, and not later than now.
    fn find_losses(&mut self, now_ns: u64) {
        let mut found = Vec::new();
        let (no_ring, writers_own) = (self.hub.no_ring(), self.hub.writers_own());
        let count = no_ring - self.no_ring + (writers_own - self.writers_own);
        if count > 0 {
            found.push((self.pid.unwrap_or(0), count));
            self.counts.lost.no_ring += count;
            (self.no_ring, self.writers_own) = (no_ring, writers_own);
        }
        for tracked in &mut self.rings {
            let nested = tracked.ring.losses().nested;
            if nested != tracked.told.nested {
                found.push((self.pid.unwrap_or(tracked.owner.thread_id), nested - tracked.told.nested));
                tracked.told.nested = nested;
            }
        }
        for (pid, count) in found {
            self.dropped(self.watermark_ns, pid, count);
            self.marks.push_back(Mark { at_ns: now_ns, pid, count: 0 });
        }
    }

    /// Takes all records up to the watermark, in order of time; returns their bytes, and how far it came: if the target stalls, the rest
    /// stays in the rings.
    fn merge(&mut self, watermark_ns: u64) -> (u64, u64) {
        let mut taken = 0;
        let mut reached_ns = watermark_ns;
        let mut next = std::mem::take(&mut self.next);
        self.find_what_is_rare();
        for index in 0..self.rings.len() {
            let tracked = &self.rings[index];
            if tracked.taken < tracked.tail {
                let (front, _) = tracked.ring.record(tracked.taken);
                next.push(Reverse((self.ns(front.stamp), index)));
            }
        }
        'all: while let Some(Reverse((mut at_ns, index))) = next.pop() {
            let tracked = &self.rings[index];
            let (mut front, mut payload) = tracked.ring.record(tracked.taken);
            // Records of a ring are in order: one after the other, until another ring's is earlier.
            let other = next.peek().map_or((u64::MAX, usize::MAX), |&Reverse(other)| other);
            let limit = other.min((watermark_ns, usize::MAX));
            loop {
                if (at_ns, index) > limit {
                    if at_ns <= watermark_ns {
                        next.push(Reverse((at_ns, index)));
                    }
                    break;
                }
                taken += self.take(index, front, payload, at_ns);
                if self.output.is_full() && self.write_full_block(at_ns) {
                    reached_ns = self.rest_ns(&next, index).min(watermark_ns);
                    break 'all;
                }
                let tracked = &self.rings[index];
                if tracked.taken == tracked.tail {
                    break;
                }
                (front, payload) = tracked.ring.record(tracked.taken);
                at_ns = self.ns(front.stamp);
            }
        }
        next.clear();
        self.next = next;
        self.write_marks(reached_ns);
        self.give_back_early();
        (taken, reached_ns)
    }

    /// Writes a block that is full; returns whether the target stalls.
    #[cold]
    fn write_full_block(&mut self, at_ns: u64) -> bool {
        // While switched off nothing is added to a block that may be pending.
        !self.is_off && {
            self.give_back_early();
            self.write_out_until(at_ns);
            self.find_what_is_rare();
            self.output.is_stalled()
        }
    }

    /// The time of the first record that is not taken, of this ring or the `others`.
    #[cold]
    fn rest_ns(&mut self, others: &BinaryHeap<Reverse<(u64, usize)>>, index: usize) -> u64 {
        let other_ns = others.peek().map_or(u64::MAX, |Reverse((other_ns, _))| *other_ns);
        let tracked = &self.rings[index];
        if tracked.taken == tracked.tail {
            return other_ns;
        }
        let (front, _) = tracked.ring.record(tracked.taken);
        self.ns(front.stamp).min(other_ns)
    }

    /// Takes a ring's next record, whose front and payload these are, out of it; returns its bytes there.
    #[inline]
    fn take(&mut self, index: usize, front: Front, payload: &[Word], at_ns: u64) -> u64 {
        let tracked = &mut self.rings[index];
        tracked.taken += front.words();
        if front.kind == Kind::Event {
            tracked.owner.records += 1;
            let pid = self.pid.unwrap_or(tracked.owner.thread_id);
            self.event(front, payload, at_ns, pid);
        } else {
            self.other(index, front, payload, at_ns);
            self.find_what_is_rare();
        }
        front.words() * 8
    }

    #[inline]
    fn event(&mut self, front: Front, payload: &[Word], at_ns: u64, pid: u32) {
        if at_ns < self.plain_from_ns {
            return self.event_slowly(front, payload, at_ns, pid);
        }
        self.note_time(at_ns);
        self.output.event(self.registry, front, payload, at_ns, pid);
    }

    /// As [`event`](Self::event), when there is more to it than to write the event, or it is not to be written.
    #[cold]
    fn event_slowly(&mut self, front: Front, payload: &[Word], at_ns: u64, pid: u32) {
        self.write_marks(at_ns);
        if self.is_off || self.output.is_failed() || at_ns < self.from_ns {
            self.miss(at_ns);
        } else {
            if self.missing.is_some() {
                self.tell_missing();
            }
            self.note_time(at_ns);
            self.output.event(self.registry, front, payload, at_ns, pid);
        }
        self.find_what_is_rare();
    }

    /// Looks whether there is anything that [`event_slowly`](Self::event_slowly) is for.
    fn find_what_is_rare(&mut self) {
        let is_plain = self.marks.is_empty() && self.missing.is_none() && !self.is_off && !self.output.is_failed();
        self.plain_from_ns = if is_plain { self.from_ns } else { u64::MAX };
    }

    #[inline]
    fn note_time(&mut self, at_ns: u64) {
        if at_ns < self.last_ns {
            self.counts.late += 1;
        }
        // What is later than a late record may still be late itself.
        self.last_ns = at_ns;
    }

    /// Counts an event that is taken but not written.
    #[cold]
    fn miss(&mut self, at_ns: u64) {
        if self.is_off || at_ns < self.from_ns {
            self.counts.lost.off += 1;
        } else {
            self.counts.lost.write_failed += 1;
        }
        // What is earlier than this recording is told at its beginning.
        self.missing.get_or_insert(Missing { since_ns: at_ns.max(self.from_ns), count: 0 }).count += 1;
    }

    /// Takes a record that is no event.
    #[cold]
    fn other(&mut self, index: usize, front: Front, payload: &[Word], at_ns: u64) {
        let tracked = &mut self.rings[index];
        let word = |index: usize| payload.get(index).map_or(0, |word| word.load(Ordering::Relaxed));
        let pid = self.pid.unwrap_or(tracked.owner.thread_id);
        match front.kind {
            Kind::Event => {}
            Kind::GapStart => {
                // As long as nothing follows, the gap is open, and all losses until now are its own. Looked at in this order.
                let so_far = tracked.ring.losses().in_band();
                let lost = if tracked.ring.tail() == tracked.taken {
                    so_far
                } else {
                    // Nothing but its end ever follows a gap's start.
                    let (_, payload) = tracked.ring.record(tracked.taken);
                    payload.first().map_or(so_far, |word| word.load(Ordering::Relaxed))
                };
                let count = lost.saturating_sub(tracked.told.in_band);
                tracked.told.in_band += count;
                tracked.told.is_open = true;
                self.write_marks(at_ns);
                self.dropped(at_ns, pid, count);
            }
            Kind::GapEnd => {
                let rest = word(0).saturating_sub(tracked.told.in_band);
                tracked.told.in_band += rest;
                // If it began in an earlier recording, that one has told it.
                let is_open = std::mem::take(&mut tracked.told.is_open) || rest > 0;
                self.write_marks(at_ns);
                if rest > 0 {
                    self.dropped(at_ns, pid, rest);
                }
                if is_open {
                    self.dropped(at_ns, pid, 0);
                }
            }
            Kind::Owner => {
                // An owner from before this recording may have lost events before it, too.
                let before = Losses::from_words([word(1), word(2), word(3), word(4)]).max(tracked.at_start);
                let ended = tracked.report(before);
                tracked.before = before;
                tracked.owner = ThreadReport { thread_id: word(0) as u32, ..ThreadReport::default() };
                Self::add_thread(&mut self.counts.threads, ended);
            }
        }
    }

    /// Writes the marks that are due.
    fn write_marks(&mut self, until_ns: u64) {
        while self.marks.front().is_some_and(|mark| mark.at_ns <= until_ns) {
            if let Some(mark) = self.marks.pop_front() {
                self.dropped(mark.at_ns, mark.pid, mark.count);
            }
        }
    }

    /// Writes a `dropped` record, if there is a file to write to; losses that are not told are told when there is one.
    fn dropped(&mut self, at_ns: u64, pid: u32, count: u64) {
        if at_ns < self.from_ns && count == 0 {
            return;
        }
        // Of a gap that began before this recording, what lies in it.
        let at_ns = at_ns.max(self.from_ns);
        if self.is_off || self.output.is_failed() {
            if count > 0 {
                self.missing.get_or_insert(Missing { since_ns: at_ns, count: 0 }).count += count;
            }
            return;
        }
        if self.missing.is_some() {
            self.tell_missing();
        }
        self.note_time(at_ns);
        self.output.dropped(at_ns, pid, count);
    }

    /// Gives what was taken back to those who record.
    fn give_back(&mut self) {
        for tracked in &self.rings {
            tracked.ring.give_back(tracked.taken);
        }
        self.hub.room_was_made();
    }

    /// Gives back what was taken before it is written, unless it has to survive until then.
    fn give_back_early(&mut self) {
        if !self.is_durable() {
            self.give_back();
        }
    }

    fn is_durable(&self) -> bool {
        #[cfg(not(loom))]
        return self.keeper.is_some();
        #[cfg(loom)]
        false
    }

    /// Where what is recorded survives the process: notes what is in the file, and gives back to those who record what is not needed any
    /// more. In this order, and both only behind the write: what is overwritten before the note says that it is in the file would be missing.
    #[cfg(not(loom))]
    fn note_progress(&mut self) {
        let Some(keeper) = &mut self.keeper else { return };
        let generation = self.hub.rings.generation();
        let checkpoint = keeper.checkpoint();
        checkpoint.length = self.output.length();
        checkpoint.last_ns = self.last_ns;
        checkpoint.tsc_until_ns = self.tsc_until_ns;
        (checkpoint.missing_since_ns, checkpoint.missing) =
            self.missing.as_ref().map_or((0, 0), |missing| (missing.since_ns, missing.count));
        checkpoint.no_ring = self.no_ring.saturating_sub(self.no_ring_before_segment);
        checkpoint.mark_ns = self.marks.back().map_or(0, |mark| mark.at_ns);
        checkpoint.is_off = self.is_off;
        checkpoint.rings.clear();
        for tracked in &self.rings {
            // Others have numbers of earlier segments.
            let is_here = tracked.ring.generation() == generation;
            let Some(number) = tracked.ring.number().filter(|_| is_here) else { continue };
            let number = number as usize;
            if checkpoint.rings.len() <= number {
                checkpoint.rings.resize(number + 1, RingPoint::default());
            }
            checkpoint.rings[number] = RingPoint {
                taken: tracked.taken,
                told_in_band: tracked.told.in_band,
                told_nested: tracked.told.nested,
                owner_id: tracked.owner.thread_id,
            };
        }
        keeper.store();
        self.give_back();
    }

    #[cfg(loom)]
    fn note_progress(&mut self) {}

    /// Writes the block. All records before the watermark are in it or in the file.
    fn write_out(&mut self) {
        self.write_out_until(self.watermark_ns);
    }

    /// Writes the block, in which, or in the file, all records before a time are.
    fn write_out_until(&mut self, until_ns: u64) {
        let may_change_file = self.output.may_change_file();
        if may_change_file {
            self.hide_file();
        }
        if self.output.begin_part_if_due(self.registry, self.now_ns) {
            #[cfg(not(loom))]
            if let (Some(keeper), Some(identity)) = (&mut self.keeper, self.output.identity()) {
                keeper.begin_file((identity, self.output.path()), 0);
            }
        }
        let written = self.output.write_out(self.now_ns);
        if may_change_file {
            self.show_file();
        }
        self.count(written);
        self.note_progress();
        if self.output.path() != self.counts.file {
            self.output.path().clone_into(&mut self.counts.file);
        }
        if !self.output.is_stalled() {
            self.written_ns = until_ns.max(self.written_ns);
        } else if self.missing.is_some() && !self.is_off {
            // A reader has left, and the next one is to know what is missing.
            self.tell_missing();
        }
    }

    /// Says which file is open, for forked children to close.
    fn show_file(&self) {
        #[cfg(not(loom))]
        self.hub.set_file(self.output.descriptor());
    }

    /// To be called before the file is closed.
    fn hide_file(&self) {
        #[cfg(not(loom))]
        self.hub.set_file(None);
    }

    /// Counts what became of a block.
    fn count(&mut self, written: Written) {
        let Written { records, bytes, lost, untold, since_ns, .. } = written;
        self.counts.records += records;
        self.counts.bytes += bytes;
        self.counts.lost.write_failed += lost;
        if let Some(since_ns) = since_ns {
            self.missing.get_or_insert(Missing { since_ns, count: 0 }).count += lost + untold;
        }
    }

    /// Anchors are needed as far back as there is something to convert, or will be: what converts a time must be what converted the
    /// watermark that it held back.
    fn forget_anchors(&mut self, now_ticks: u64) {
        let waiting = self.rings.iter().filter(|tracked| tracked.taken < tracked.tail);
        let oldest = waiting
            .map(|tracked| tracked.ring.record(tracked.taken).0.stamp)
            .filter(|stamp| !stamp.is_monotonic)
            .map(|stamp| stamp.ticks)
            .chain(self.rings.iter().filter_map(|tracked| tracked.held_ticks))
            .min();
        self.converter.forget_before(oldest.unwrap_or(now_ticks).min(now_ticks));
    }

    /// Makes rings for threads to come, so that they need not; to be called when there is time.
    pub(crate) fn keep_spares(&self) {
        for _ in self.hub.rings.spares()..SPARES {
            // If there is no memory, threads will find out, and count.
            let _ = self.hub.rings.add(self.hub.is_monotonic());
        }
    }

    /// Changes to another file. What was recorded until now is in the old one, which is closed; if that takes nothing at the moment, what
    /// is still in the rings goes to the new one. An error if the new one takes nothing at all: then the old one stays.
    pub(crate) fn set_output(&mut self, mut output: Output) -> io::Result<()> {
        self.cycle(true);
        #[cfg(not(loom))]
        let before = match (&mut self.keeper, output.identity()) {
            (Some(keeper), Some(identity)) => Some(keeper.begin_file((identity, output.path()), 0)),
            (Some(_), None) => return Err(not_durable()),
            (None, _) => None,
        };
        let begun = output.begin(self.now_ns);
        #[cfg(not(loom))]
        if let (Err(_), Some(keeper), Some((identity, path, length))) = (&begun, &mut self.keeper, before) {
            keeper.begin_file((identity, &path), length);
        }
        let begun = begun?;
        let rest = self.output.give_up();
        self.count(rest);
        self.output.end();
        self.messages.append(&mut self.output.take_messages());
        self.counts.parts += self.output.parts();
        self.hide_file();
        self.output = output;
        self.show_file();
        self.output.path().clone_into(&mut self.counts.file);
        self.count(begun);
        self.resume();
        Ok(())
    }

    /// Switches recording off and on again; in between events are counted only.
    pub(crate) fn set_off(&mut self, is_off: bool) {
        self.cycle(true);
        self.is_off = is_off;
        self.resume();
        self.note_progress();
    }

    /// Tells what is missing from before, now that there is a file again.
    fn resume(&mut self) {
        if self.is_off || self.output.is_failed() {
            return;
        }
        self.tell_missing();
        self.write_out();
    }

    fn tell_missing(&mut self) {
        if let Some(Missing { since_ns, count }) = self.missing.take() {
            let pid = self.pid.unwrap_or(0);
            // All that is still to come is later.
            let until_ns = self.watermark_ns.max(self.last_ns).max(since_ns);
            self.output.dropped(since_ns, pid, count);
            self.output.dropped(until_ns, pid, 0);
            self.last_ns = until_ns;
        }
    }

    /// Takes the last records: to be called when all events are disabled. Returns whether all rings came to rest, else some thread
    /// is still inside an emit, and what it records is not in the file.
    pub(crate) fn finish(&mut self, mut wait: impl FnMut() -> bool) -> bool {
        let is_at_rest = loop {
            let is_stalled = self.cycle(true) == Cycle::Stalled;
            let at_rest =
                self.rings.iter().all(|tracked| tracked.ring.gate() & 1 == 0 && tracked.ring.tail() == tracked.taken);
            let is_over = at_rest && self.marks.is_empty() && (!is_stalled || self.output.is_empty());
            if is_over || !wait() {
                break at_rest;
            }
        };
        // Nobody is waited for any more.
        self.find_rings();
        for tracked in &mut self.rings {
            tracked.tail = tracked.ring.tail();
        }
        self.merge(u64::MAX);
        self.deliver(&mut wait);
        // What the target did not take is counted now.
        self.merge(u64::MAX);
        self.tell_rest();
        self.write_out();
        self.deliver(&mut wait);
        self.output.end();
        self.hide_file();
        self.output.finish_removals();
        #[cfg(not(loom))]
        if let Some(keeper) = &self.keeper {
            // All is told: nobody needs the segment any more, nor is to make a ring there.
            self.registry.keep_names(None);
            self.hub.rings.set_segment(None);
            keeper.segment().remove();
        }
        is_at_rest
    }

    /// Tells all losses until now, and notes that they have been told: those that come later are the next recording's.
    fn tell_rest(&mut self) {
        let at_ns = self.last_ns.max(self.watermark_ns);
        self.write_marks(u64::MAX);
        let (no_ring, writers_own) = (self.hub.no_ring(), self.hub.writers_own());
        self.hub.set_reported_without_ring(no_ring, writers_own);
        let count = no_ring - self.no_ring + (writers_own - self.writers_own);
        self.counts.lost.no_ring += count;
        (self.no_ring, self.writers_own) = (no_ring, writers_own);
        let mut rests = vec![(self.pid.unwrap_or(0), count)];
        for tracked in &mut self.rings {
            let losses = tracked.ring.losses();
            tracked.ring.set_reported(losses);
            tracked.at_end = Some(losses);
            let (in_band, nested) = (tracked.told.in_band, tracked.told.nested);
            (tracked.told.in_band, tracked.told.nested) = (losses.in_band(), losses.nested);
            let rest = losses.in_band() - in_band + (losses.nested - nested);
            rests.push((self.pid.unwrap_or(tracked.owner.thread_id), rest));
        }
        for (pid, rest) in rests {
            if rest > 0 {
                self.dropped(at_ns, pid, rest);
            }
        }
        if !self.output.is_failed()
            && let Some(Missing { count, .. }) = self.missing.take()
        {
            // Recording was switched off, and is not switched on any more.
            self.output.dropped(at_ns, self.pid.unwrap_or(0), count);
        }
    }

    /// Waits until a target that takes nothing does, or gives up; then the target counts as failed.
    fn deliver(&mut self, wait: &mut impl FnMut() -> bool) {
        while self.output.is_stalled() {
            if self.output.is_empty() || !wait() {
                let rest = self.output.give_up();
                return self.count(rest);
            }
            self.write_out();
            if !self.output.is_stalled() {
                self.merge(u64::MAX);
            }
        }
    }

    fn add_thread(threads: &mut Vec<ThreadReport>, thread: ThreadReport) {
        if thread.thread_id == 0 {
            return;
        }
        if threads.len() < MAX_THREADS {
            threads.push(thread);
        } else if let Some(others) = threads.last_mut() {
            others.thread_id = 0;
            others.records += thread.records;
            others.high_water_bytes = others.high_water_bytes.max(thread.high_water_bytes);
            add(&mut others.lost, thread.lost);
        }
    }

    /// Puts the report together.
    pub(crate) fn report(&self) -> Report {
        let mut report = self.counts.clone();
        for tracked in &self.rings {
            let losses = tracked.at_end.unwrap_or_else(|| tracked.ring.losses());
            add(&mut report.lost, lost(losses.since(tracked.at_start)));
            report.ring_bytes += tracked.ring.capacity_bytes();
            Self::add_thread(&mut report.threads, tracked.report(losses));
        }
        report.rings = self.rings.len() as u32;
        #[cfg(not(loom))]
        if let Some(keeper) = &self.keeper {
            report.rings_elsewhere = keeper.segment().rings_elsewhere();
        }
        report.write_error = self.output.trouble();
        report.parts += self.output.parts();
        report.is_removed = self.output.is_removed();
        report.is_order_by_delay = !self.has_barrier;
        report.clock.is_tsc = !self.hub.is_monotonic();
        report.clock.unfit.clone_from(&self.clock_fault);
        report.clock.error_ns = self.converter.error_ns();
        report
    }
}

fn add(sum: &mut Lost, more: Lost) {
    let Lost { full, timed_out, too_large, nested, no_ring, off, write_failed } = more;
    sum.full += full;
    sum.timed_out += timed_out;
    sum.too_large += too_large;
    sum.nested += nested;
    sum.no_ring += no_ring;
    sum.off += off;
    sum.write_failed += write_failed;
}

/// Why only some files can be finished after a kill.
#[cfg(not(loom))]
pub(crate) fn not_durable() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "only a regular file can be finished after the recorder was killed")
}

#[cfg(all(test, not(loom)))]
mod tests;
