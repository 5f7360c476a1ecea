//! All rings of a process: a list that only grows, and of which idle ones are used again.

use crate::hub::Hub;
use crate::ring::{Owner, Ring};
#[cfg(not(loom))]
use crate::segment::Segment;
use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering, Word, const_fn, fence};

/// The size of a ring in bytes, if nobody says otherwise.
pub(crate) const DEFAULT_RING_BYTES: u64 = 1 << 20;
/// The most rings that are made of one size. Threads beyond have their events counted, not recorded.
pub(crate) const MAX_RINGS: u32 = 1024;

/// All rings, the newest first. A ring stays for as long as the process lives, so that nobody can hold one that is gone.
pub(crate) struct Rings {
    newest: AtomicPtr<Ring>,
    made: AtomicU32,
    /// How rings are made by now; whoever has one that was made in another way is to change it for a new one.
    generation: AtomicU32,
    /// How many times a thread has given a ring back.
    given_back: AtomicU32,
    capacity_words: AtomicU64,
    /// Where rings are made that are to survive the process, or null.
    #[cfg(not(loom))]
    segment: AtomicPtr<Segment>,
}

impl Rings {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self {
                newest: AtomicPtr::new(std::ptr::null_mut()),
                made: AtomicU32::new(0),
                generation: AtomicU32::new(0),
                given_back: AtomicU32::new(0),
                capacity_words: AtomicU64::new(DEFAULT_RING_BYTES / 8),
                #[cfg(not(loom))]
                segment: AtomicPtr::new(std::ptr::null_mut()),
            }
        }
    }

    /// Sets the size of rings, a power of two in bytes. Threads that have rings of another one change them for new ones at their next
    /// events.
    pub(crate) fn set_ring_bytes(&self, bytes: u64) {
        debug_assert!(bytes.is_power_of_two());
        if self.capacity_words.swap(bytes / 8, Ordering::Relaxed) != bytes / 8 {
            self.begin_generation();
        }
    }

    /// Sets where rings are made; threads that have rings elsewhere change them.
    #[cfg(not(loom))]
    pub(crate) fn set_segment(&self, segment: Option<&'static Segment>) {
        let segment = segment.map_or(std::ptr::null_mut(), |segment| std::ptr::from_ref(segment).cast_mut());
        // Release: who finds the segment finds what is in it.
        if self.segment.swap(segment, Ordering::Release) != segment {
            self.begin_generation();
        }
    }

    /// The segment where rings are made, if they are to survive the process.
    #[cfg(not(loom))]
    pub(crate) fn segment(&self) -> Option<&'static Segment> {
        // SAFETY: `set_segment` stored a reference that is valid for ever, or null.
        unsafe { self.segment.load(Ordering::Acquire).cast_const().as_ref() }
    }

    /// Makes all rings from now on count as new, those before as old.
    fn begin_generation(&self) {
        // Release: who sees the generation sees how its rings are made.
        self.generation.fetch_add(1, Ordering::Release);
        // Those of old do not count any more. Who is just making one may count for nothing.
        self.made.store(0, Ordering::Relaxed);
        // SeqCst, as in `acquire`: either a ring that is just being added is seen here, or its owner sees there that it is of old.
        fence(Ordering::SeqCst);
        self.iter().filter(|ring| !self.is_current(ring)).for_each(Ring::retire);
    }

    /// How rings are made by now, as [`Ring::generation`] has it.
    pub(crate) fn generation(&self) -> u32 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Whether the ring is made as rings are by now.
    fn is_current(&self, ring: &Ring) -> bool {
        ring.generation() == self.generation()
    }

    /// Takes an idle ring over for the calling thread, or makes one. Safe in a signal handler.
    pub(crate) fn acquire(
        &self,
        hub: &Hub,
        owner_id: u32,
        is_monotonic: bool,
        owner: &impl Owner,
    ) -> Option<&'static Ring> {
        loop {
            let fits = |ring: &&Ring| ring.is_idle() && self.is_current(ring);
            if let Some(ring) = self.iter().filter(fits).find(|ring| ring.adopt(hub, owner_id, owner)) {
                return Some(ring);
            }
            // Somebody else may be faster to adopt what is made here.
            self.add(is_monotonic)?;
            // SeqCst: see `begin_generation`.
            fence(Ordering::SeqCst);
        }
    }

    /// Makes one more idle ring, all of its memory in place; `None` if there are too many or memory is short.
    pub(crate) fn add(&self, is_monotonic: bool) -> Option<()> {
        if self.made.fetch_add(1, Ordering::Relaxed) >= MAX_RINGS {
            self.unmake();
            return None;
        }
        // Acquire: the size is that of this generation, or of a later one.
        let generation = self.generation.load(Ordering::Acquire);
        let Some(ring) = self.make(self.capacity_words.load(Ordering::Relaxed), generation) else {
            self.unmake();
            return None;
        };
        if is_monotonic {
            ring.use_monotonic();
        }
        let mut newest = self.newest.load(Ordering::Relaxed);
        loop {
            ring.older().store(newest, Ordering::Relaxed);
            // Release: who finds the ring finds what is in it.
            let exchanged = self.newest.compare_exchange_weak(
                newest,
                std::ptr::from_ref(ring).cast_mut(),
                Ordering::Release,
                Ordering::Relaxed,
            );
            match exchanged {
                Ok(_) => return Some(()),
                Err(other) => newest = other,
            }
        }
    }

    /// Forgets all rings and gives their memory back, but for that of `own`. Only in a forked child, where nobody but the calling thread
    /// can have one.
    #[cfg(not(loom))]
    pub(crate) fn forget_all(&self, own: Option<&'static Ring>) {
        let rings = self.iter();
        self.newest.store(std::ptr::null_mut(), Ordering::Relaxed);
        self.made.store(0, Ordering::Relaxed);
        if let Some(own) = own {
            if own.number().is_some() {
                make_private(own);
            }
            // The emit that was interrupted may be waiting for room there, which no writer will make.
            own.retire();
        }
        // The iterator is one ahead of what it returns.
        for ring in rings.filter(|ring| !own.is_some_and(|own| std::ptr::eq(own, *ring))) {
            let memory = std::ptr::from_ref(ring).cast_mut().cast();
            // SAFETY: `make` mapped so much there. There are no other threads, this one only uses its own ring, and the list is empty.
            let _ = unsafe { rustix::mm::munmap(memory, ring.mapped_bytes()) };
        }
    }

    /// Takes back that a ring is made, unless the count has begun anew meanwhile.
    fn unmake(&self) {
        let _ = self.made.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |made| made.checked_sub(1));
    }

    /// How many rings a thread could have at once.
    pub(crate) fn spares(&self) -> usize {
        self.iter().filter(|ring| ring.is_idle() && self.is_current(ring)).count()
    }

    /// Gives a ring back, with whatever is in it; its owner's last act.
    pub(crate) fn give_back(&self, ring: &Ring) {
        ring.release();
        // Relaxed: whoever sees it looks for itself.
        self.given_back.fetch_add(1, Ordering::Relaxed);
    }

    /// How many times a thread has given a ring back.
    pub(crate) fn given_back(&self) -> u32 {
        self.given_back.load(Ordering::Relaxed)
    }

    /// Goes through all rings that are there by now.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'static Ring> + use<> {
        // Acquire, as the pairs of `add`.
        let mut next = self.newest.load(Ordering::Acquire);
        std::iter::from_fn(move || {
            // SAFETY: the pointers in the list come from `make`, whose rings are initialised before they are published with
            // Release, never move and live as long as the process. All access is through shared references.
            let ring = unsafe { next.cast_const().as_ref() }?;
            next = ring.older().load(Ordering::Relaxed);
            Some(ring)
        })
    }
}

#[cfg(not(loom))]
impl Rings {
    fn make(&self, capacity_words: u64, generation: u32) -> Option<&'static Ring> {
        let bytes = size_of::<Ring>() + Ring::words_for(capacity_words) * size_of::<Word>();
        if let Some(segment) = self.segment()
            && let Some(room) = segment.allocate(bytes)
        {
            // SAFETY: the segment gives so many zeros, page-aligned and never unmapped, to nobody else.
            let ring = unsafe { make_at(room.memory.cast(), capacity_words, generation, Some(room.number)) };
            segment.publish(&room);
            return Some(ring);
        }
        // SAFETY: as above.
        Some(unsafe { make_at(map(bytes)?.cast(), capacity_words, generation, None) })
    }
}

/// Maps zeros at an address of the kernel's choice, page-aligned.
#[cfg(not(loom))]
fn map(bytes: usize) -> Option<*mut std::ffi::c_void> {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
    // All pages at once, so that recording never waits for one.
    let flags = MapFlags::PRIVATE.union(populate());
    // SAFETY: a new mapping touches nothing that exists.
    unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, flags) }.ok()
}

/// Makes a ring.
///
/// # Safety
///
/// `memory` points to a `Ring` and behind it so many words as it needs, zeros, page-aligned, that nobody else has and nobody unmaps.
#[cfg(not(loom))]
unsafe fn make_at(memory: *mut Ring, capacity_words: u64, generation: u32, number: Option<u32>) -> &'static Ring {
    // SAFETY: as the caller says. The words are aligned since a `Ring`'s size is a multiple of its alignment of 128, and zeros are
    // a valid value of atomics.
    unsafe {
        let words = std::slice::from_raw_parts(memory.add(1).cast::<Word>(), Ring::words_for(capacity_words));
        memory.write(Ring::new(capacity_words, generation, number, words));
        &*memory
    }
}

/// Puts memory of this process where a ring of the parent's is, in a forked child. What the ring says of itself stays, as the calling thread
/// may be in the middle of an emit; its words are zeros.
#[cfg(not(loom))]
fn make_private(ring: &'static Ring) {
    use rustix::mm::{MremapFlags, mremap_fixed};
    let bytes = ring.mapped_bytes();
    let from = std::ptr::from_ref(ring);
    let Some(fresh) = map(bytes) else { return };
    // SAFETY: both are as long as that; no other thread is there to see the ring while it is exchanged, and it looks as it did before.
    unsafe {
        std::ptr::copy_nonoverlapping(from.cast::<u8>(), fresh.cast(), size_of::<Ring>());
        let _ = mremap_fixed(fresh, bytes, bytes, MremapFlags::MAYMOVE, from.cast_mut().cast());
    }
}

#[cfg(all(target_os = "linux", not(loom)))]
const fn populate() -> rustix::mm::MapFlags {
    rustix::mm::MapFlags::POPULATE
}

#[cfg(all(not(target_os = "linux"), not(loom)))]
const fn populate() -> rustix::mm::MapFlags {
    rustix::mm::MapFlags::empty()
}

#[cfg(loom)]
impl Rings {
    fn make(&self, capacity_words: u64, generation: u32) -> Option<&'static Ring> {
        use crate::sync::leak;
        let words: Box<[Word]> = (0..Ring::words_for(capacity_words)).map(|_| Word::new(0)).collect();
        Some(leak(Box::new(Ring::new(capacity_words, generation, None, leak(words)))))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn rings_of_another_size_do_not_count_for_those_of_this_one() {
        let (hub, owner) = (Hub::new(), || 0);
        let rings = &hub.rings;
        rings.set_ring_bytes(256);
        let first = rings.acquire(&hub, 1, false, &owner).expect("a ring");
        for _ in 1..MAX_RINGS {
            rings.add(false).expect("a ring");
        }
        assert_eq!((rings.add(false), rings.spares()), (None, MAX_RINGS as usize - 1));
        rings.set_ring_bytes(512);
        assert_eq!(rings.spares(), 0);
        let second = rings.acquire(&hub, 2, false, &owner).expect("a ring of the new size");
        assert_eq!((first.capacity_bytes(), second.capacity_bytes()), (256, 512));
        // One of old that is given back is nobody's any more.
        rings.give_back(first);
        assert_eq!((rings.spares(), rings.given_back()), (0, 1));
    }
}
