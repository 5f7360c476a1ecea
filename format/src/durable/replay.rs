//! Writing what was left in the rings, as the recorder would have written it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};

use super::{Kind, Ring, RingFault, Segment};
use crate::{DroppedRecord, EventId, TraceWriter, WriteError};

/// What a replay came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replayed {
    /// The events that were written.
    pub records: u64,
    /// The time of the first of them, and of the last one, in ns.
    pub first_ns: Option<u64>,
    /// See [`first_ns`](Self::first_ns).
    pub last_ns: Option<u64>,
    /// The losses that the replay tells, all of which stand in the trace.
    pub lost: ReplayedLosses,
    /// Events whose name is not known; they are written under their ids.
    pub unnamed: u64,
    /// Rings with something wrong, by their place in the directory: what is behind it is not written.
    pub faults: Vec<(usize, RingFault)>,
}

/// Losses that were not told before, by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReplayedLosses {
    /// Refused by a ring: it was full, or the record too large.
    pub refused: u64,
    /// A signal handler interrupted an emit.
    pub nested: u64,
    /// The thread had no ring.
    pub no_ring: u64,
    /// The trace could not be written, or recording was off before it was killed.
    pub not_written: u64,
    /// Events in the rings of a recording that was switched off, or from before it began.
    pub off: u64,
}

impl ReplayedLosses {
    /// All of them.
    #[must_use]
    pub const fn sum(&self) -> u64 {
        let Self { refused, nested, no_ring, not_written, off } = *self;
        refused.saturating_add(nested).saturating_add(no_ring).saturating_add(not_written).saturating_add(off)
    }
}

/// Writes what is in the rings to the end of a trace that ends where the segment's checkpoint says.
///
/// Records are in order of time. The same segment gives the same bytes, whenever and as often as it is replayed.
///
/// # Errors
///
/// Those of the sink.
pub fn replay<W: Write>(segment: &Segment, rings: Vec<Ring>, trace: &mut TraceWriter<W>) -> io::Result<Replayed> {
    let rings = rings
        .into_iter()
        .map(|ring| Tracked {
            told_in_band: ring.point.told_in_band,
            owner_id: ring.point.owner_id,
            at_ns: segment.checkpoint.last_ns,
            is_fault_told: false,
            ring,
        })
        .collect();
    let mut replay = Replay {
        segment,
        rings,
        trace,
        last_ns: segment.checkpoint.last_ns,
        mapped: Vec::new(),
        marks: Vec::new(),
        missing: None,
        done: Replayed::default(),
    };
    replay.run()?;
    Ok(replay.done)
}

struct Replay<'a, W> {
    segment: &'a Segment,
    rings: Vec<Tracked>,
    trace: &'a mut TraceWriter<W>,
    /// The time of the record before.
    last_ns: u64,
    /// Which events have been given a name, by id.
    mapped: Vec<bool>,
    /// Ends of gaps to come, by time: ns and process. Few, and sorted from the last to the first.
    marks: Vec<(u64, u32)>,
    /// What is lost and told when there is something to write: since when, in ns, and how many.
    missing: Option<(u64, u64)>,
    done: Replayed,
}

struct Tracked {
    ring: Ring,
    told_in_band: u64,
    owner_id: u32,
    /// The time of the record before.
    at_ns: u64,
    is_fault_told: bool,
}

impl<W: Write> Replay<'_, W> {
    fn run(&mut self) -> io::Result<()> {
        let mut next = BinaryHeap::new();
        for index in 0..self.rings.len() {
            if let Some(at_ns) = self.peek(index)? {
                next.push(Reverse((at_ns, index)));
            }
        }
        let checkpoint = &self.segment.checkpoint;
        if checkpoint.mark_ns > 0 {
            self.mark(checkpoint.mark_ns, checkpoint.pid);
        }
        self.tell_what_is_in_no_ring()?;
        if checkpoint.missing > 0 {
            self.done.lost.not_written = checkpoint.missing;
            self.miss(checkpoint.missing_since_ns, checkpoint.missing);
        }
        while let Some(Reverse((at_ns, index))) = next.pop() {
            self.take(index, at_ns)?;
            if let Some(at_ns) = self.peek(index)? {
                next.push(Reverse((at_ns, index)));
            }
        }
        if !checkpoint.is_off {
            self.tell_missing()?;
        }
        self.write_marks(u64::MAX)?;
        // An emit that was counting its loss.
        for index in 0..self.rings.len() {
            let Tracked { ring, told_in_band, .. } = &self.rings[index];
            let rest = ring.lost_in_band.saturating_sub(*told_in_band);
            if rest > 0 {
                self.done.lost.refused = self.done.lost.refused.saturating_add(rest);
                self.lose(self.last_ns, self.pid(index), rest)?;
            }
        }
        self.tell_missing()
    }

    /// The time of a ring's next record, if it has one. If something else is there, what is behind it is not known.
    fn peek(&mut self, index: usize) -> io::Result<Option<u64>> {
        let tracked = &mut self.rings[index];
        let stamp = tracked.ring.peek().map(|record| record.front.stamp);
        if let (Some(fault), false) = (tracked.ring.fault, tracked.is_fault_told) {
            tracked.is_fault_told = true;
            let at_ns = tracked.at_ns;
            self.done.faults.push((tracked.ring.index, fault));
            self.write_dropped(at_ns, self.pid(index), DroppedRecord::UNKNOWN)?;
        }
        let Some(stamp) = stamp else { return Ok(None) };
        let tracked = &mut self.rings[index];
        // Not before the record in front of it, nor before what is in the trace.
        tracked.at_ns = tracked.at_ns.max(self.segment.ns(stamp));
        Ok(Some(tracked.at_ns))
    }

    /// Takes a ring's next record, which is at a time that [`peek`](Self::peek) told.
    fn take(&mut self, index: usize, at_ns: u64) -> io::Result<()> {
        let pid = self.pid(index);
        let Self { segment, rings, done, .. } = self;
        let tracked = &mut rings[index];
        let Some(record) = tracked.ring.peek() else { return Ok(()) };
        let front = record.front;
        let is_earlier = segment.ns(front.stamp) < segment.checkpoint.from_ns;
        match front.kind {
            Kind::Event => {
                if is_earlier || segment.checkpoint.is_off {
                    done.lost.off += 1;
                    self.miss(at_ns, 1);
                } else {
                    self.event(index, at_ns, pid)?;
                }
                self.rings[index].ring.skip(front);
            }
            Kind::GapStart => {
                tracked.ring.skip(front);
                let so_far = tracked.ring.lost_in_band;
                // Nothing but its end ever follows a gap's start. As long as that is not there all losses are the gap's.
                let lost = match tracked.ring.peek() {
                    Some(next) if next.front.kind == Kind::GapEnd => next.word(0),
                    Some(_) => {
                        tracked.ring.fail();
                        so_far
                    }
                    None => so_far,
                };
                let count = tracked.tell(lost);
                done.lost.refused = done.lost.refused.saturating_add(count);
                if count > 0 {
                    self.go_on(at_ns)?;
                    self.lose(at_ns, pid, count)?;
                }
            }
            Kind::GapEnd => {
                let lost = record.word(0);
                tracked.ring.skip(front);
                let count = tracked.tell(lost);
                done.lost.refused = done.lost.refused.saturating_add(count);
                if count > 0 || !is_earlier {
                    self.go_on(at_ns)?;
                    self.lose(at_ns, pid, count)?;
                    self.close_gap(at_ns, pid)?;
                }
            }
            Kind::Owner => {
                tracked.owner_id = record.word(0) as u32;
                tracked.ring.skip(front);
            }
        }
        Ok(())
    }

    /// Writes the event that is next in a ring, and its name before the first of its kind.
    fn event(&mut self, index: usize, at_ns: u64, pid: u32) -> io::Result<()> {
        self.go_on(at_ns)?;
        let at_ns = self.note_time(at_ns);
        let Self { segment, rings, trace, mapped, done, .. } = self;
        let Some(record) = rings[index].ring.peek() else { return Ok(()) };
        let id = record.front.id;
        let event = EventId(id.into());
        match segment.name(id) {
            Some(name) => {
                let place = id as usize;
                if mapped.len() <= place {
                    mapped.resize(place + 1, false);
                }
                if !std::mem::replace(&mut mapped[place], true) {
                    trace.mapping(event, name).map_err(sink_error)?;
                }
            }
            None => done.unnamed += 1,
        }
        trace.raw_event(event, at_ns, pid, record.payload).map_err(sink_error)?;
        done.records += 1;
        done.first_ns.get_or_insert(at_ns);
        done.last_ns = Some(at_ns);
        Ok(())
    }

    /// Tells the losses that no record in a ring stands for. All that is known of their time is that the recorder had not seen them
    /// when it came to the end of the trace.
    fn tell_what_is_in_no_ring(&mut self) -> io::Result<()> {
        let checkpoint = &self.segment.checkpoint;
        let since_ns = if checkpoint.last_ns > 0 { checkpoint.last_ns } else { checkpoint.first_anchor[1] };
        let no_ring = self.segment.no_ring.saturating_sub(checkpoint.no_ring);
        self.done.lost.no_ring = no_ring;
        self.lose_until_the_end(since_ns, checkpoint.pid, no_ring)?;
        for index in 0..self.rings.len() {
            let ring = &self.rings[index].ring;
            let nested = ring.lost_nested.saturating_sub(ring.point.told_nested);
            self.done.lost.nested = self.done.lost.nested.saturating_add(nested);
            // The ring says itself whose it is, if the recorder has not taken anything out of it.
            let owner_id = if ring.point.owner_id == 0 { ring.owner_id } else { ring.point.owner_id };
            let pid = if checkpoint.pid == 0 { owner_id } else { checkpoint.pid };
            self.lose_until_the_end(since_ns, pid, nested)?;
        }
        Ok(())
    }

    fn lose_until_the_end(&mut self, since_ns: u64, pid: u32, count: u64) -> io::Result<()> {
        if count > 0 {
            self.lose(since_ns, pid, count)?;
            if !self.segment.checkpoint.is_off {
                self.mark(u64::MAX, pid);
            }
        }
        Ok(())
    }

    /// Writes what is due before something else is.
    fn go_on(&mut self, at_ns: u64) -> io::Result<()> {
        if self.missing.is_some() && !self.segment.checkpoint.is_off {
            self.tell_missing()?;
            self.mark(at_ns, self.segment.checkpoint.pid);
        }
        self.write_marks(at_ns)
    }

    fn tell_missing(&mut self) -> io::Result<()> {
        let Some((since_ns, count)) = self.missing.take() else { return Ok(()) };
        self.write_marks(since_ns)?;
        self.write_dropped(since_ns, self.segment.checkpoint.pid, count)
    }

    fn miss(&mut self, at_ns: u64, more: u64) {
        let (_, count) = self.missing.get_or_insert((at_ns, 0));
        *count = count.saturating_add(more);
    }

    fn pid(&self, index: usize) -> u32 {
        match self.segment.checkpoint.pid {
            0 => self.rings[index].owner_id,
            pid => pid,
        }
    }

    /// Has the end of a gap written at its time; at the end of all if that is `u64::MAX`.
    fn mark(&mut self, at_ns: u64, pid: u32) {
        let place = self.marks.partition_point(|&(other_ns, _)| other_ns > at_ns);
        self.marks.insert(place, (at_ns, pid));
    }

    /// Writes the marks that are due.
    fn write_marks(&mut self, until_ns: u64) -> io::Result<()> {
        while let Some(&(at_ns, pid)) = self.marks.last().filter(|&&(at_ns, _)| at_ns <= until_ns) {
            self.marks.pop();
            let at_ns = if at_ns == u64::MAX { self.segment.last_ns() } else { at_ns };
            self.close_gap(at_ns, pid)?;
        }
        Ok(())
    }

    /// Tells that events are lost, or has it told at the end.
    fn lose(&mut self, at_ns: u64, pid: u32, count: u64) -> io::Result<()> {
        if count == 0 {
            return Ok(());
        }
        if self.segment.checkpoint.is_off {
            self.miss(at_ns, count);
            return Ok(());
        }
        self.write_dropped(at_ns, pid, count)
    }

    fn close_gap(&mut self, at_ns: u64, pid: u32) -> io::Result<()> {
        if self.segment.checkpoint.is_off { Ok(()) } else { self.write_dropped(at_ns, pid, 0) }
    }

    fn write_dropped(&mut self, at_ns: u64, pid: u32, count: u64) -> io::Result<()> {
        // Of a gap that began before this recording, what lies in it.
        let at_ns = self.note_time(at_ns.max(self.segment.checkpoint.from_ns));
        self.trace.dropped(at_ns, pid, count)
    }

    /// The trace is in order of time, whatever the segment says.
    fn note_time(&mut self, at_ns: u64) -> u64 {
        self.last_ns = self.last_ns.max(at_ns);
        self.last_ns
    }
}

impl Tracked {
    /// Of the losses until now those that were not told, which they are now.
    fn tell(&mut self, lost: u64) -> u64 {
        let count = lost.saturating_sub(self.told_in_band);
        self.told_in_band += count;
        count
    }
}

fn sink_error(error: WriteError) -> io::Error {
    match error {
        WriteError::Io(error) => error,
        // Names and lengths were checked when the segment was read.
        other => io::Error::other(other),
    }
}
