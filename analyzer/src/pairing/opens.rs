//! Operations under way, in little memory.

use std::ops::{Index, IndexMut};

/// No place.
pub(super) const NONE: u32 = u32::MAX;
/// Of no star: it goes with any.
pub(crate) const ANY_STAR: u16 = 0;

/// What is kept of an operation's records, from stage to stage.
pub(crate) trait Tag: Copy {
    /// The number of what the `*` of the record's event stands for; records of an operation have the same, or [`ANY_STAR`].
    fn star(&self) -> u16;

    /// Takes in that of a later stage.
    fn join(&mut self, later: Self);
}

/// Whether records with these stars can be of the same operation.
pub(super) fn admits(star: u16, later: u16) -> bool {
    star == later || star == ANY_STAR || later == ANY_STAR
}

/// 64 bits that need no place of eight bytes: what is kept of an operation is smaller so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word([u32; 2]);

impl Word {
    pub(super) fn new(word: u64) -> Self {
        Self([word as u32, (word >> 32) as u32])
    }

    pub(super) fn get(self) -> u64 {
        u64::from(self.0[0]) | u64::from(self.0[1]) << 32
    }
}

/// An operation under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open<T> {
    pub(super) begin_ns: Word,
    /// Where the times of the stages between are, or [`NONE`] as long as there are none.
    pub(super) hops: u32,
    /// The last stage that it has reached.
    pub(super) reached: u8,
    pub(super) tag: T,
}

impl<T> Open<T> {
    pub(super) fn new(begin_ns: u64, tag: T) -> Self {
        Self { begin_ns: Word::new(begin_ns), hops: NONE, reached: 0, tag }
    }
}

/// Values by their places, which are used again.
pub(super) struct Slab<V> {
    values: Vec<V>,
    free: Vec<u32>,
}

impl<V> Slab<V> {
    pub(super) const fn new() -> Self {
        Self { values: Vec::new(), free: Vec::new() }
    }

    #[inline]
    pub(super) fn add(&mut self, value: V) -> u32 {
        match self.free.pop() {
            Some(at) => {
                self[at] = value;
                at
            }
            None => {
                self.values.push(value);
                (self.values.len() - 1) as u32
            }
        }
    }

    /// All places, the free ones too.
    pub(super) fn each(&self) -> impl ExactSizeIterator<Item = (u32, &V)> {
        self.values.iter().enumerate().map(|(at, value)| (at as u32, value))
    }

    pub(super) fn each_mut(&mut self) -> impl ExactSizeIterator<Item = (u32, &mut V)> {
        self.values.iter_mut().enumerate().map(|(at, value)| (at as u32, value))
    }

    /// Frees a place; what is there stays until it is used again.
    pub(super) fn free(&mut self, at: u32) {
        self.free.push(at);
    }
}

impl<V> Index<u32> for Slab<V> {
    type Output = V;

    #[inline]
    fn index(&self, at: u32) -> &V {
        &self.values[at as usize]
    }
}

impl<V> IndexMut<u32> for Slab<V> {
    #[inline]
    fn index_mut(&mut self, at: u32) -> &mut V {
        &mut self.values[at as usize]
    }
}

/// The times of the stages between, as many for each operation that has reached one.
pub(super) struct Hops {
    width: usize,
    times_ns: Vec<u64>,
    free: Vec<u32>,
}

impl Hops {
    pub(super) const fn new(width: usize) -> Self {
        Self { width, times_ns: Vec::new(), free: Vec::new() }
    }

    /// Takes in when an operation reached its next stage, which is not its last.
    pub(super) fn reach<T: Tag>(&mut self, open: &mut Open<T>, time_ns: u64, tag: T) {
        if open.hops == NONE {
            open.hops = self.free.pop().unwrap_or_else(|| {
                let at = self.times_ns.len() / self.width;
                self.times_ns.resize(self.times_ns.len() + self.width, 0);
                at as u32
            });
        }
        self.times_ns[open.hops as usize * self.width + usize::from(open.reached)] = time_ns;
        open.reached += 1;
        open.tag.join(tag);
    }

    /// Those that an operation has reached.
    #[inline]
    pub(super) fn of<T>(&self, open: &Open<T>) -> &[u64] {
        if open.hops == NONE {
            return &[];
        }
        let from = open.hops as usize * self.width;
        &self.times_ns[from..from + usize::from(open.reached)]
    }

    #[inline]
    pub(super) fn free<T>(&mut self, open: &Open<T>) {
        if open.hops != NONE {
            self.free.push(open.hops);
        }
    }
}

/// Operations with the same key, for keys that have had several at once. What a record ends or takes on is the first by age of those that wait for
/// it: for each stage that is reached and each star there is a pairing heap, so that many cost hardly more each than few.
pub(super) struct Crowds<T> {
    /// Whether the newest is first, and not the oldest.
    newest_first: bool,
    members: Slab<Member<T>>,
    queues: Slab<Queue>,
    crowds: Slab<Crowd>,
}

/// Those with one key.
struct Crowd {
    /// The first of its queues.
    queues: u32,
    members: u32,
    /// How many there have been.
    begun: u64,
}

/// Those that wait for one stage and have one star.
struct Queue {
    /// The next one of the same crowd.
    next: u32,
    /// The member that is first by age.
    root: u32,
    star: u16,
    reached: u8,
}

/// An operation in its heap.
struct Member<T> {
    open: Open<T>,
    /// Counted up in each crowd.
    age: Word,
    child: u32,
    sibling: u32,
}

impl<T: Tag> Crowds<T> {
    pub(super) const fn new(newest_first: bool) -> Self {
        Self { newest_first, members: Slab::new(), queues: Slab::new(), crowds: Slab::new() }
    }

    /// A new crowd of one.
    pub(super) fn found(&mut self, first: Open<T>) -> u32 {
        let crowd = self.crowds.add(Crowd { queues: NONE, members: 0, begun: 0 });
        self.join(crowd, first);
        crowd
    }

    /// Takes in one that begins.
    pub(super) fn join(&mut self, crowd: u32, open: Open<T>) {
        let of = &mut self.crowds[crowd];
        let age = Word::new(of.begun);
        (of.begun, of.members) = (of.begun + 1, of.members + 1);
        let member = self.members.add(Member { open, age, child: NONE, sibling: NONE });
        self.queue(crowd, member);
    }

    /// The one that a record of a stage is of, which leaves the queue that it was in; `None` if none waits for it.
    pub(super) fn take(&mut self, crowd: u32, stage: u8, star: u16) -> Option<u32> {
        let mut best: Option<u32> = None;
        let mut at = self.crowds[crowd].queues;
        while at != NONE {
            let queue = &self.queues[at];
            if queue.root != NONE && queue.reached + 1 == stage && admits(queue.star, star) {
                let is_first = |best: u32| self.is_before(queue.root, self.queues[best].root);
                if best.is_none_or(is_first) {
                    best = Some(at);
                }
            }
            at = queue.next;
        }
        let best = best?;
        let member = self.queues[best].root;
        self.queues[best].root = self.without_root(member);
        Some(member)
    }

    /// One that was taken.
    pub(super) fn open_mut(&mut self, member: u32) -> &mut Open<T> {
        &mut self.members[member].open
    }

    /// Puts one that was taken where it waits now.
    pub(super) fn queue(&mut self, crowd: u32, member: u32) {
        let Open { reached, tag, .. } = self.members[member].open;
        let mut at = self.crowds[crowd].queues;
        while at != NONE && (self.queues[at].reached, self.queues[at].star) != (reached, tag.star()) {
            at = self.queues[at].next;
        }
        if at == NONE {
            let next = self.crowds[crowd].queues;
            at = self.queues.add(Queue { next, root: NONE, star: tag.star(), reached });
            self.crowds[crowd].queues = at;
        }
        self.queues[at].root = self.meld(self.queues[at].root, member);
    }

    /// Takes one out that was taken; tells whether it was the last of all, and the crowd is no more.
    pub(super) fn leave(&mut self, crowd: u32, member: u32) -> (Open<T>, bool) {
        let open = self.members[member].open;
        self.members.free(member);
        self.crowds[crowd].members -= 1;
        let is_last = self.crowds[crowd].members == 0;
        if is_last {
            let mut at = self.crowds[crowd].queues;
            while at != NONE {
                self.queues.free(at);
                at = self.queues[at].next;
            }
            self.crowds.free(crowd);
        }
        (open, is_last)
    }

    /// Visits all.
    pub(super) fn each(&self, crowd: u32, mut visit: impl FnMut(u32, &Open<T>)) {
        let mut left = Vec::new();
        let mut at = self.crowds[crowd].queues;
        while at != NONE {
            left.push(self.queues[at].root);
            at = self.queues[at].next;
        }
        while let Some(member) = left.pop() {
            if let Some(Member { open, child, sibling, .. }) = self.members.values.get(member as usize) {
                left.extend([*child, *sibling]);
                visit(member, open);
            }
        }
    }

    /// Takes out those that nobody `keeps`; tells whether the crowd is no more.
    pub(super) fn retain(&mut self, crowd: u32, mut keeps: impl FnMut(&Open<T>) -> bool) -> bool {
        let mut members = Vec::new();
        self.each(crowd, |member, _| members.push(member));
        let mut at = self.crowds[crowd].queues;
        while at != NONE {
            self.queues[at].root = NONE;
            at = self.queues[at].next;
        }
        let mut is_gone = false;
        for member in members {
            let Member { open, child, sibling, .. } = &mut self.members[member];
            (*child, *sibling) = (NONE, NONE);
            if keeps(open) {
                self.queue(crowd, member);
            } else {
                (_, is_gone) = self.leave(crowd, member);
            }
        }
        is_gone
    }

    fn is_before(&self, one: u32, other: u32) -> bool {
        let [one, other] = [one, other].map(|member| self.members[member].age.get());
        (one < other) != self.newest_first
    }

    /// Makes one heap of two; either may be empty.
    fn meld(&mut self, one: u32, other: u32) -> u32 {
        if one == NONE || other == NONE {
            return one.min(other);
        }
        let (root, child) = if self.is_before(one, other) { (one, other) } else { (other, one) };
        self.members[child].sibling = self.members[root].child;
        self.members[root].child = child;
        root
    }

    /// Makes a heap of all below a root.
    fn without_root(&mut self, root: u32) -> u32 {
        // In pairs, from the first to the last, and then all, from the last to the first: that is what keeps heaps flat.
        let mut rest = std::mem::replace(&mut self.members[root].child, NONE);
        let mut pairs = NONE;
        while rest != NONE {
            let one = rest;
            let other = self.cut_sibling(one);
            rest = if other == NONE { NONE } else { self.cut_sibling(other) };
            let pair = self.meld(one, other);
            self.members[pair].sibling = pairs;
            pairs = pair;
        }
        let mut all = NONE;
        while pairs != NONE {
            let next = self.cut_sibling(pairs);
            all = self.meld(all, pairs);
            pairs = next;
        }
        all
    }

    fn cut_sibling(&mut self, member: u32) -> u32 {
        std::mem::replace(&mut self.members[member].sibling, NONE)
    }
}
