//! One thread's ring: the thread writes records at the tail, the writer takes them at the head.
//!
//! Positions count 64-bit words from the ring's beginning and never wrap; a position's place is its remainder by the capacity.
//! Behind the capacity there is room for one more record of the largest size, so that no record is ever split.
//!
//! How a record looks there is said at [`Front`].
//!
//! What every piece of code here relies on and restores:
//!
//! - **I1** `tail`, `gate`, `limit`, `last_stamp` and `gap_is_open` are stored to by the owner only: the thread that moved `state`
//!   from idle to active, or signal handlers on that thread. `head` is stored to by the writer only. Others may store 0 to `limit`,
//!   which sends the owner's next emit the slow way; see `Ring::slow_down`.
//! - **I2** `gate` is odd exactly while an emit is under way. A handler that finds it odd counts its event and touches nothing else,
//!   so between opening and closing the gate nobody else stores to the owner's fields or to the words behind the tail.
//! - **I3** `head <= tail <= head + capacity`, and while no gap is open `tail + GAP_WORDS <= head + capacity`: the gap record of the
//!   next refused event always finds room.
//! - **I4** A word before `tail` is not stored to until `head` has passed it. The owner stores words, then `tail` with Release; the
//!   writer loads `tail` with Acquire, then the words. The writer loads words, then stores `head` with Release; the owner loads
//!   `head` with Acquire, then stores words.
//! - **I5** `tail + need <= limit` implies room for `need` words in the sense of I3.

use crossbeam_utils::CachePadded;
pub(crate) use simpletrace_format::durable::{Front, Kind, RECORD_WORDS, Stamp};
use simpletrace_format::{MAX_RECORD_BYTES, RECORD_HEADER_BYTES};

use crate::hub::Hub;
use crate::sync::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering, Word, fence, light_barrier};

/// The words of a record that opens a gap.
const GAP_WORDS: u64 = RECORD_WORDS;
/// The words of a record that closes a gap: with the losses until then.
const GAP_END_WORDS: u64 = RECORD_WORDS + 1;
/// The words of a record that names the ring's new owner: with its thread id and the losses until then.
const OWNER_WORDS: u64 = RECORD_WORDS + 1 + Losses::WORDS as u64;
/// The longest payload in bytes: that of the format's largest record.
pub(crate) const MAX_PAYLOAD_BYTES: u32 = MAX_RECORD_BYTES - RECORD_HEADER_BYTES;
/// The words of the largest record.
const MAX_WORDS: u64 = RECORD_WORDS + (MAX_PAYLOAD_BYTES as u64).div_ceil(8);

/// The thread that records into a ring.
pub(crate) trait Owner {
    /// Reads the time-stamp counter, not before what precedes in the program and not behind what follows.
    fn ticks(&self) -> u64;

    /// Reads `CLOCK_MONOTONIC`, in ns.
    fn monotonic_ns(&self) -> u64;

    /// Gives `ring`, in which no emit is under way, back for good and gets another one. `None` if there is none: then the event is counted.
    fn change(&self, ring: &'static Ring) -> Option<&'static Ring>;
}

/// For tests: a clock, and no other ring.
#[cfg(test)]
impl<F: Fn() -> u64> Owner for F {
    fn ticks(&self) -> u64 {
        self()
    }

    fn monotonic_ns(&self) -> u64 {
        self()
    }

    fn change(&self, _ring: &'static Ring) -> Option<&'static Ring> {
        None
    }
}

/// Events that a thread could not record, by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Losses {
    /// The ring was full.
    pub(crate) full: u64,
    /// The ring was full for longer than the thread was to wait.
    pub(crate) timed_out: u64,
    /// The record was larger than what the ring or the format takes.
    pub(crate) too_large: u64,
    /// A signal handler interrupted an emit.
    pub(crate) nested: u64,
}

impl Losses {
    const WORDS: usize = 4;

    /// The losses that the ring's own gap records stand for. The writer has to look for nested ones itself: a handler must not
    /// write into the ring.
    pub(crate) const fn in_band(self) -> u64 {
        self.full + self.timed_out + self.too_large
    }

    const fn words(self) -> [u64; Self::WORDS] {
        [self.full, self.timed_out, self.too_large, self.nested]
    }

    pub(crate) const fn from_words([full, timed_out, too_large, nested]: [u64; Self::WORDS]) -> Self {
        Self { full, timed_out, too_large, nested }
    }

    /// Of each cause the larger number.
    pub(crate) fn max(self, other: Self) -> Self {
        let (mut words, others) = (self.words(), other.words());
        words.iter_mut().zip(others).for_each(|(word, other)| *word = other.max(*word));
        Self::from_words(words)
    }

    /// What was lost since `earlier`.
    pub(crate) const fn since(self, earlier: Self) -> Self {
        Self {
            full: self.full - earlier.full,
            timed_out: self.timed_out - earlier.timed_out,
            too_large: self.too_large - earlier.too_large,
            nested: self.nested - earlier.nested,
        }
    }
}

/// Why an event is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Full,
    TimedOut,
    TooLarge,
}

/// What came of looking for room.
enum Room {
    /// Here, and the gate is open.
    At(u64),
    /// There is none, the event is counted, and the gate closed.
    Refused,
    /// The owner is to use another ring; the gate is closed.
    Elsewhere,
}

/// The owner's, read by the writer in every cycle.
#[repr(C)]
struct Shared {
    tail: AtomicU64,
    /// Odd while an emit is under way. A number, so that the writer can tell one emit from the next.
    gate: AtomicU64,
}

/// The owner's own. Atomic because its signal handlers see them, too.
#[repr(C)]
struct Private {
    limit: AtomicU64,
    last_stamp: AtomicU64,
    gap_is_open: AtomicBool,
    /// Why every emit is to take the slow way: `MONOTONIC`, `LEAVE`. Set by others.
    slow: AtomicU8,
    /// A power of two.
    capacity: u64,
    largest: u64,
    words: &'static [Word],
}

/// What neither side needs for an ordinary record.
#[repr(C)]
struct Rare {
    state: AtomicU8,
    owner_id: AtomicU32,
    full: AtomicU64,
    timed_out: AtomicU64,
    too_large: AtomicU64,
    nested: AtomicU64,
    high_water: AtomicU64,
    /// The losses that earlier recordings have reported; the writer's.
    reported: [AtomicU64; Losses::WORDS],
    /// The ring that was made before this one, or null.
    older: AtomicPtr<Ring>,
    /// Which of the process's ways to make rings it was made in; see [`Rings`](crate::rings::Rings).
    generation: u32,
    /// The ring's number in a segment that survives the process, or `NO_SEGMENT`.
    number: u32,
}

/// The ring is in memory of the process.
const NO_SEGMENT: u32 = u32::MAX;

/// A ring has no owner: whoever moves the state to active is the next.
const IDLE: u8 = 0;
const ACTIVE: u8 = 1;

/// Its owner is gone in the middle of an emit: nobody is to go on there.
const DEAD: u8 = 2;

/// Reasons for the slow way: stamps are to be taken from `CLOCK_MONOTONIC`.
const MONOTONIC: u8 = 1;
/// The owner is to use another ring.
const LEAVE: u8 = 2;

/// One thread's ring. Each group of fields that one side stores to has cache lines of its own.
#[repr(C)]
pub(crate) struct Ring {
    private: CachePadded<Private>,
    shared: CachePadded<Shared>,
    head: CachePadded<AtomicU64>,
    rare: CachePadded<Rare>,
}

/// What `recover` finds in a ring is where the format says.
#[cfg(all(not(loom), any(target_arch = "x86_64", target_arch = "aarch64")))]
const _: () = {
    use std::mem::offset_of;

    use simpletrace_format::durable::{RING_HEADER_BYTES, ring_at};

    const RARE: usize = offset_of!(Ring, rare);
    assert!(size_of::<Ring>() == RING_HEADER_BYTES);
    assert!(offset_of!(Private, capacity) == ring_at::CAPACITY);
    assert!(offset_of!(Ring, shared) + offset_of!(Shared, tail) == ring_at::TAIL);
    assert!(RARE + offset_of!(Rare, owner_id) == ring_at::OWNER_ID);
    assert!(RARE + offset_of!(Rare, full) == ring_at::FULL);
    assert!(RARE + offset_of!(Rare, timed_out) == ring_at::TIMED_OUT);
    assert!(RARE + offset_of!(Rare, too_large) == ring_at::TOO_LARGE);
    assert!(RARE + offset_of!(Rare, nested) == ring_at::NESTED);
};

impl Ring {
    /// The words that a ring of `capacity` words needs, the room behind it included. `capacity` is a power of two, at least 32.
    pub(crate) const fn words_for(capacity: u64) -> usize {
        (capacity + Self::largest_for(capacity)) as usize
    }

    /// A record of more than half the capacity might find room at no place, and would be most of the ring anyway.
    const fn largest_for(capacity: u64) -> u64 {
        if capacity / 2 < MAX_WORDS { capacity / 2 } else { MAX_WORDS }
    }

    /// Makes a ring of `capacity` words out of zeroed memory of [`words_for`](Self::words_for) words.
    pub(crate) fn new(capacity: u64, generation: u32, number: Option<u32>, words: &'static [Word]) -> Self {
        debug_assert!(capacity.is_power_of_two() && words.len() == Self::words_for(capacity));
        Self {
            private: CachePadded::new(Private {
                limit: AtomicU64::new(0),
                last_stamp: AtomicU64::new(0),
                gap_is_open: AtomicBool::new(false),
                slow: AtomicU8::new(0),
                capacity,
                largest: Self::largest_for(capacity),
                words,
            }),
            shared: CachePadded::new(Shared { tail: AtomicU64::new(0), gate: AtomicU64::new(0) }),
            head: CachePadded::new(AtomicU64::new(0)),
            rare: CachePadded::new(Rare {
                state: AtomicU8::new(IDLE),
                owner_id: AtomicU32::new(0),
                full: AtomicU64::new(0),
                timed_out: AtomicU64::new(0),
                too_large: AtomicU64::new(0),
                nested: AtomicU64::new(0),
                high_water: AtomicU64::new(0),
                reported: std::array::from_fn(|_| AtomicU64::new(0)),
                older: AtomicPtr::new(std::ptr::null_mut()),
                generation,
                number: number.unwrap_or(NO_SEGMENT),
            }),
        }
    }

    // ---- the owner's side

    /// Records an event of `payload_bytes`, which `fill` stores into the words that it is given, or counts it as lost.
    ///
    /// The owner's clock is read with the gate open, and must not be read before that: see docs/RECORDER.md.
    #[inline(always)]
    pub(crate) fn emit(
        &'static self,
        hub: &Hub,
        id: u32,
        payload_bytes: u32,
        owner: impl Owner,
        fill: impl FnOnce(&[Word]),
    ) {
        let need = RECORD_WORDS + u64::from(payload_bytes).div_ceil(8);
        // Relaxed, as all loads of the owner's fields below: only this thread stores to them.
        let gate = self.shared.gate.load(Ordering::Relaxed);
        if gate & 1 != 0 {
            return self.count_nested();
        }
        // Relaxed: what the writer makes of it rests on the barrier pair. A handler between the load and here may have moved the
        // gate on by whole emits of its own: the number stays odd inside and even outside.
        self.shared.gate.store(gate + 1, Ordering::Relaxed);
        light_barrier();
        // Only loaded now, as a handler may have recorded until the gate was open.
        let tail = self.shared.tail.load(Ordering::Relaxed);
        if tail + need > self.private.limit.load(Ordering::Relaxed) {
            return self.emit_slowly(hub, id, payload_bytes, owner, fill);
        }
        self.put(tail, Kind::Event, id, payload_bytes, self.stamp_with(owner.ticks()), fill);
        // Release: who sees the gate closed sees the tail, too.
        self.shared.gate.store(gate + 2, Ordering::Release);
    }

    /// As [`emit`](Self::emit), from where it has opened the gate: when there is no room, or there may be reasons to record in another
    /// way.
    // All of it is here and not only what is slow, so that nothing has to be kept across a call in `emit`.
    #[cold]
    #[inline(never)]
    fn emit_slowly(
        &'static self,
        hub: &Hub,
        id: u32,
        payload_bytes: u32,
        owner: impl Owner,
        fill: impl FnOnce(&[Word]),
    ) {
        let need = RECORD_WORDS + u64::from(payload_bytes).div_ceil(8);
        let mut ring = self;
        loop {
            match ring.make_room(hub, need, &owner) {
                Room::At(tail) => {
                    ring.put(tail, Kind::Event, id, payload_bytes, ring.stamp(&owner), fill);
                    return ring.close_gate();
                }
                Room::Refused => return,
                Room::Elsewhere => {
                    let Some(other) = owner.change(ring) else { return };
                    ring = other;
                    ring.open_gate();
                }
            }
        }
    }

    /// Stores a record at `tail`, where there is room for it (I3), and publishes it.
    #[inline(always)]
    fn put(&self, tail: u64, kind: Kind, id: u32, payload_bytes: u32, stamp: Stamp, fill: impl FnOnce(&[Word])) -> u64 {
        let front = Front { stamp, kind, id, payload_bytes };
        let need = front.words();
        let place = (tail & (self.private.capacity - 1)) as usize;
        // Never out of range: need <= largest, and the ring has as many words behind its capacity. Checked all the same.
        let Some(words) = self.private.words.get(place..place + need as usize) else { return tail };
        // Relaxed: published by the tail.
        words[0].store(stamp.ticks, Ordering::Relaxed);
        words[1].store(front.word(), Ordering::Relaxed);
        fill(&words[RECORD_WORDS as usize..]);
        // Release: who sees the tail sees the words (I4).
        self.shared.tail.store(tail + need, Ordering::Release);
        tail + need
    }

    /// Stamps with the time-stamp counter, never earlier than the record before.
    #[inline(always)]
    pub(crate) fn stamp_with(&self, ticks: u64) -> Stamp {
        let ticks = ticks.max(self.private.last_stamp.load(Ordering::Relaxed));
        // Relaxed: the writer reads it as a lower bound of all that is still to come, for which an old value does as well. What came
        // before it is visible behind the barrier that follows the look at it.
        self.private.last_stamp.store(ticks, Ordering::Relaxed);
        Stamp { ticks, is_monotonic: false }
    }

    /// Takes a stamp from whatever clock is to be used by now.
    fn stamp(&self, owner: &impl Owner) -> Stamp {
        if self.private.slow.load(Ordering::Relaxed) & MONOTONIC == 0 {
            self.stamp_with(owner.ticks())
        } else {
            Stamp { ticks: owner.monotonic_ns(), is_monotonic: true }
        }
    }

    /// Finds room for `need` words, with the gate open.
    fn make_room(&self, hub: &Hub, need: u64, owner: &impl Owner) -> Room {
        let refusal = if need > self.private.largest {
            Refusal::TooLarge
        } else {
            let mut patience = hub.patience();
            loop {
                let room = self.find_room(hub, need, owner);
                if self.private.slow.load(Ordering::Relaxed) & LEAVE != 0 {
                    // Looking for room has closed a gap, if there was any.
                    self.close_gate();
                    return Room::Elsewhere;
                }
                if let Some(tail) = room {
                    return Room::At(tail);
                }
                // Nobody is to be held up by a thread that waits: the gate is closed meanwhile, and handlers may record.
                self.close_gate();
                let go_on = patience.wait_for_room(hub, &self.head);
                self.open_gate();
                if let Err(refusal) = go_on {
                    break refusal;
                }
            }
        };
        self.refuse(refusal, owner);
        self.close_gate();
        Room::Refused
    }

    fn open_gate(&self) {
        self.shared.gate.store(self.shared.gate.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        light_barrier();
    }

    fn close_gate(&self) {
        self.shared.gate.store(self.shared.gate.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    /// Looks how far the writer has come; if there is room for `need` words, closes an open gap and returns the tail.
    fn find_room(&self, hub: &Hub, need: u64, owner: &impl Owner) -> Option<u64> {
        let Private { gap_is_open, capacity, .. } = &*self.private;
        let mut tail = self.shared.tail.load(Ordering::Relaxed);
        // Acquire: the writer has done with what it gives back (I4).
        let head = self.head.load(Ordering::Acquire);
        let free = head + capacity - GAP_WORDS;
        let closing = if gap_is_open.load(Ordering::Relaxed) { GAP_END_WORDS } else { 0 };
        if tail + need + closing > free {
            self.note_fill(tail - head);
            hub.kick();
            return None;
        }
        if closing > 0 {
            let lost = self.losses().in_band();
            tail =
                self.put(tail, Kind::GapEnd, 0, 8, self.stamp(owner), |words| words[0].store(lost, Ordering::Relaxed));
            gap_is_open.store(false, Ordering::Relaxed);
            // As when the gate is opened: the next stamp is of the same emit, and whoever sees it has to see this record.
            light_barrier();
        }
        self.note_fill(tail + need - head);
        let half = head + capacity / 2;
        if tail + need <= half {
            // Here again when the ring is half full, to see how far the writer is by then.
            self.set_limit(half);
        } else {
            hub.kick();
            self.set_limit(free);
        }
        Some(tail)
    }

    /// Says until where records need not look for room.
    fn set_limit(&self, limit: u64) {
        if self.private.slow.load(Ordering::Relaxed) != 0 {
            // It is 0 by now, or will be: here the next emit comes in any case.
            return self.private.limit.store(0, Ordering::Relaxed);
        }
        self.private.limit.store(limit, Ordering::Relaxed);
        // SeqCst, as in `slow_down`: of the store before and the load behind it, and the store and the store there, one pair is in
        // order. So either the reason is seen here, or the limit of 0 comes later than the one just stored.
        fence(Ordering::SeqCst);
        if self.private.slow.load(Ordering::Relaxed) != 0 {
            self.private.limit.store(0, Ordering::Relaxed);
        }
    }

    fn note_fill(&self, words: u64) {
        if words > self.rare.high_water.load(Ordering::Relaxed) {
            self.rare.high_water.store(words, Ordering::Relaxed);
        }
    }

    /// Counts an event that is not recorded, and says so at its time, with the gate open.
    fn refuse(&self, refusal: Refusal, owner: &impl Owner) {
        let counter = match refusal {
            Refusal::Full => &self.rare.full,
            Refusal::TimedOut => &self.rare.timed_out,
            Refusal::TooLarge => &self.rare.too_large,
        };
        // Relaxed: whoever sees the gap record below sees it counted.
        counter.fetch_add(1, Ordering::Relaxed);
        if self.private.gap_is_open.load(Ordering::Relaxed) {
            return;
        }
        let tail = self.shared.tail.load(Ordering::Relaxed);
        // There is room: I3.
        self.put(tail, Kind::GapStart, 0, 0, self.stamp(owner), |_| ());
        self.private.gap_is_open.store(true, Ordering::Relaxed);
        // The next record has to close the gap first.
        self.private.limit.store(0, Ordering::Relaxed);
    }

    #[cold]
    #[inline(never)]
    fn count_nested(&self) {
        // Handlers may interrupt each other: hence no load and store.
        self.rare.nested.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes an idle ring over for the calling thread; `false` if it has an owner, or is too full to say that it has a new one.
    pub(crate) fn adopt(&self, hub: &Hub, owner_id: u32, owner: &impl Owner) -> bool {
        // Acquire: what the last owner left is seen, and its stamps precede ours.
        if self.rare.state.compare_exchange(IDLE, ACTIVE, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return false;
        }
        self.open_gate();
        let room = self.find_room(hub, OWNER_WORDS, owner);
        if let Some(tail) = room {
            let losses = self.losses().words();
            self.put(tail, Kind::Owner, 0, (OWNER_WORDS - RECORD_WORDS) as u32 * 8, self.stamp(owner), |words| {
                words[0].store(owner_id.into(), Ordering::Relaxed);
                for (word, loss) in words[1..].iter().zip(losses) {
                    word.store(loss, Ordering::Relaxed);
                }
            });
            self.rare.owner_id.store(owner_id, Ordering::Relaxed);
        }
        self.close_gate();
        if room.is_none() {
            self.rare.state.store(IDLE, Ordering::Release);
        }
        room.is_some()
    }

    /// Gives the ring back, with whatever is in it; the owner's last act.
    pub(crate) fn release(&self) {
        // Release: the next owner goes on where this one stopped.
        self.rare.state.store(IDLE, Ordering::Release);
    }

    /// Gives up the owner, in a forked child that lacks it; what it has recorded stays.
    pub(crate) fn bury_owner(&self) {
        let rare = &self.rare;
        if rare.state.load(Ordering::Relaxed) == ACTIVE {
            let is_under_way = self.shared.gate.load(Ordering::Relaxed) & 1 != 0;
            rare.state.store(if is_under_way { DEAD } else { IDLE }, Ordering::Relaxed);
            if is_under_way {
                // Nobody is to wait for it.
                self.close_gate();
            }
        }
    }

    // ---- the writer's side

    /// Whether the ring has an owner, as a hint.
    pub(crate) fn is_idle(&self) -> bool {
        self.rare.state.load(Ordering::Relaxed) == IDLE
    }

    /// The gate's number; odd while an emit is under way.
    pub(crate) fn gate(&self) -> u64 {
        // Acquire: if it is closed, the tail of the emit that closed it is seen.
        self.shared.gate.load(Ordering::Acquire)
    }

    /// How far the writer has come: the writer's own, or what an earlier one left.
    pub(crate) fn head(&self) -> u64 {
        self.head.load(Ordering::Relaxed)
    }

    /// The thread that has the ring, or had it last.
    pub(crate) fn owner_id(&self) -> u32 {
        self.rare.owner_id.load(Ordering::Relaxed)
    }

    /// How far the owner has come.
    pub(crate) fn tail(&self) -> u64 {
        // Acquire: the words before it are seen (I4).
        self.shared.tail.load(Ordering::Acquire)
    }

    /// The latest stamp that the owner is known to have taken, in ticks of the time-stamp counter: nothing that comes is earlier.
    pub(crate) fn last_stamp(&self) -> u64 {
        self.private.last_stamp.load(Ordering::Relaxed)
    }

    /// Makes the owner stamp with `CLOCK_MONOTONIC`, from some record on soon.
    pub(crate) fn use_monotonic(&self) {
        self.slow_down(MONOTONIC);
    }

    /// Makes the owner use another ring, from some record on soon.
    pub(crate) fn retire(&self) {
        self.slow_down(LEAVE);
    }

    /// Sends all emits the slow way, where they find out why.
    fn slow_down(&self, why: u8) {
        self.private.slow.fetch_or(why, Ordering::Relaxed);
        // SeqCst: see `set_limit`.
        fence(Ordering::SeqCst);
        self.private.limit.store(0, Ordering::Relaxed);
    }

    /// The record at `position`, which lies between the head and a tail that was loaded: its front and its payload's words.
    #[inline]
    pub(crate) fn record(&self, position: u64) -> (Front, &'static [Word]) {
        let place = (position & (self.private.capacity - 1)) as usize;
        let words = &self.private.words[place..];
        // Relaxed: the load of the tail was Acquire (I4).
        let front = Front::from_words(words[0].load(Ordering::Relaxed), words[1].load(Ordering::Relaxed));
        (front, &words[RECORD_WORDS as usize..front.words() as usize])
    }

    /// Gives the words before `position` back to the owner.
    pub(crate) fn give_back(&self, position: u64) {
        // Release: the loads of the words come first (I4).
        self.head.store(position, Ordering::Release);
    }

    /// What has been lost so far. While the owner emits this may lag.
    pub(crate) fn losses(&self) -> Losses {
        let Rare { full, timed_out, too_large, nested, .. } = &*self.rare;
        // Acquire, for the loads not to move behind that of a tail that comes next: see `GapStart` in the writer.
        Losses {
            full: full.load(Ordering::Acquire),
            timed_out: timed_out.load(Ordering::Acquire),
            too_large: too_large.load(Ordering::Acquire),
            nested: nested.load(Ordering::Acquire),
        }
    }

    /// The losses that recordings have reported which have ended.
    pub(crate) fn reported(&self) -> Losses {
        // Relaxed, as in `set_reported`: one writer comes after the other.
        Losses::from_words(std::array::from_fn(|index| self.rare.reported[index].load(Ordering::Relaxed)))
    }

    /// Says which losses this recording has reported, as it ends.
    pub(crate) fn set_reported(&self, losses: Losses) {
        for (reported, loss) in self.rare.reported.iter().zip(losses.words()) {
            reported.store(loss, Ordering::Relaxed);
        }
    }

    /// The most that was ever waiting in the ring, in bytes, as far as the owner looked: from half full on it looks often.
    pub(crate) fn high_water_bytes(&self) -> u64 {
        self.rare.high_water.load(Ordering::Relaxed) * 8
    }

    /// What the ring takes of memory, in bytes, itself included.
    #[cfg(not(loom))]
    pub(crate) fn mapped_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(self.private.words)
    }

    /// The ring's size in bytes.
    pub(crate) fn capacity_bytes(&self) -> u64 {
        self.private.capacity * 8
    }

    /// Which of the process's ways to make rings the ring was made in.
    pub(crate) fn generation(&self) -> u32 {
        self.rare.generation
    }

    /// The ring's number in the segment that it is in, if it is in one.
    pub(crate) fn number(&self) -> Option<u32> {
        Some(self.rare.number).filter(|&number| number != NO_SEGMENT)
    }

    /// The link to the ring made before this one, for [`Rings`](crate::rings::Rings).
    pub(crate) fn older(&self) -> &AtomicPtr<Self> {
        &self.rare.older
    }
}
