//! Matches beginnings with ends.

use std::hash::{BuildHasher, Hash};
use std::iter;

use clap::ValueEnum;
use hashbrown::HashTable;

use super::opens::{Crowds, Hops, Open, Slab, Tag, admits};

/// What happens when operations with the same key are under way at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Discipline {
    /// A beginning replaces the one before, which never ended
    #[default]
    Last,
    /// Beginnings are ignored until the first has ended
    First,
    /// The oldest ends first
    Fifo,
    /// The newest ends first
    Lifo,
}

/// What became of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    /// Records of the first stage: all but those `ignored` are an operation.
    pub(crate) begins: u64,
    /// Operations with all their stages.
    pub(crate) pairs: u64,
    /// Operations that another beginning with their key took the place of.
    pub(crate) replaced: u64,
    /// Beginnings while there was an operation with their key, under the discipline `first`.
    pub(crate) ignored: u64,
    /// Operations whose end came before a stage between.
    pub(crate) incomplete: u64,
    /// Operations that were under way at the end.
    pub(crate) open: u64,
    /// Records of a later stage for which there was no operation, or none that waits for that stage.
    pub(crate) orphans: u64,
    /// Operations that end before they begin, as their records are too far out of order.
    pub(crate) backwards: u64,
    /// Operations that were the oldest when too many were under way.
    pub(crate) given_up: u64,
}

impl Counts {
    /// Each by its name, with what it means if that has to be said.
    pub(crate) fn each(&self) -> [(&'static str, u64, &'static str); 9] {
        let Self { begins, pairs, replaced, ignored, incomplete, open, orphans, backwards, given_up } = *self;
        [
            ("begins", begins, ""),
            ("pairs", pairs, ""),
            ("open", open, "had not ended when the trace did"),
            ("replaced", replaced, "had not ended when the next with the same key began"),
            ("ignored", ignored, "began while another with the same key was under way"),
            ("incomplete", incomplete, "ended without a stage between"),
            ("orphans", orphans, "later records without a beginning before them"),
            ("backwards", backwards, "have records that are too far out of order"),
            ("given_up", given_up, "were the oldest when there was no memory for more under way"),
        ]
    }
}

/// What a record of the first stage does.
pub(crate) enum Begun<T> {
    /// One more is under way.
    Another,
    /// It takes the place of another one.
    Replacing(Closed<T>),
    Ignored,
}

/// An operation that is under way no more.
pub(crate) struct Closed<T> {
    pub(crate) begin_ns: u64,
    pub(crate) tag: T,
}

impl<T: Copy> Closed<T> {
    fn of(open: &Open<T>) -> Self {
        Self { begin_ns: open.begin_ns.get(), tag: open.tag }
    }
}

/// An operation with all its stages.
#[derive(Debug)]
pub(crate) struct Pair<'a, K, T> {
    pub(crate) key: &'a K,
    pub(crate) begin_ns: u64,
    /// The times of the stages between.
    pub(crate) hops_ns: &'a [u64],
    pub(crate) end_ns: u64,
    pub(crate) tag: &'a T,
    /// Since when something with its key has been under way all the time; what had begun then.
    pub(crate) since_ns: u64,
    pub(crate) since: &'a T,
}

/// A key, which may have a part of itself elsewhere.
pub(crate) trait Bytes {
    /// How many bytes it takes beside its own place.
    fn bytes_elsewhere(&self) -> usize;
}

/// Matches records by their keys. They must come in order of time.
pub(crate) struct Engine<K, T, S> {
    discipline: Discipline,
    stages: usize,
    hasher: S,
    /// Places in `entries` by key.
    table: HashTable<u32>,
    entries: Slab<Entry<K, T>>,
    hops: Hops,
    crowds: Crowds<T>,
    counts: Counts,
    /// How many operations are under way at most.
    most: usize,
    /// What keys that have something under way take elsewhere.
    key_bytes: usize,
}

/// A key that has something under way.
struct Entry<K, T> {
    key: K,
    /// What is under way, if it `is_alone`. Otherwise what has begun first since nothing was, and where the crowd is.
    open: Open<T>,
}

impl<K: Bytes + Default, T> Entry<K, T> {
    /// Instead of a stage.
    const CROWD: u8 = u8::MAX;
    const FREE: u8 = u8::MAX - 1;

    fn is_alone(&self) -> bool {
        self.open.reached != Self::CROWD
    }

    fn is_free(&self) -> bool {
        self.open.reached == Self::FREE
    }

    /// Makes it one of nothing; returns what its key took elsewhere.
    #[inline]
    fn free(&mut self) -> usize {
        self.open.reached = Self::FREE;
        std::mem::take(&mut self.key).bytes_elsewhere()
    }
}

/// What operations under way take at most, beside what finds them: 10 bytes each.
const MAX_BYTES: usize = 288 << 20;
/// What one takes, without the times of its stages.
pub(super) const OPEN_BYTES: usize = 56;
/// The same where there may be several with one key: two of them have 56 together, and 52 each in a heap.
const CROWDED_BYTES: usize = 92;
/// The times of so many stages cost nothing of how many there may be, so that this is the same number for most questions.
const FREE_HOPS: usize = 2;
/// What their keys take elsewhere.
const MAX_KEY_BYTES: usize = 64 << 20;

impl<K: Eq + Hash + Bytes + Default, T: Tag, S: BuildHasher + Default> Engine<K, T, S> {
    /// For operations of so many stages.
    pub(crate) fn new(stages: usize, discipline: Discipline) -> Self {
        let hops = stages - 2;
        let bytes = match discipline {
            Discipline::Last | Discipline::First => OPEN_BYTES,
            Discipline::Fifo | Discipline::Lifo => CROWDED_BYTES,
        };
        Self {
            discipline,
            stages,
            hasher: S::default(),
            table: HashTable::new(),
            entries: Slab::new(),
            hops: Hops::new(hops),
            crowds: Crowds::new(discipline == Discipline::Lifo),
            counts: Counts::default(),
            most: MAX_BYTES / (bytes + 8 * hops.max(FREE_HOPS)),
            key_bytes: 0,
        }
    }

    /// Takes a record of the first stage; `given_up` is told of operations for which there is no more room.
    #[inline]
    pub(crate) fn begin(&mut self, time_ns: u64, key: K, tag: T, given_up: &mut impl FnMut(Closed<T>)) -> Begun<T> {
        self.counts.begins += 1;
        if self.counts.open >= self.most as u64 || self.key_bytes > MAX_KEY_BYTES {
            self.give_up(given_up);
        }
        let open = Open::new(time_ns, tag);
        let hash = self.hasher.hash_one(&key);
        let Some(&at) = self.table.find(hash, |&at| self.entries[at].key == key) else {
            self.counts.open += 1;
            self.key_bytes += key.bytes_elsewhere();
            let at = self.entries.add(Entry { key, open });
            self.table.insert_unique(hash, at, |&at| self.hasher.hash_one(&self.entries[at].key));
            return Begun::Another;
        };
        let entry = &mut self.entries[at];
        match self.discipline {
            Discipline::Last => {
                self.counts.replaced += 1;
                let replaced = Closed::of(&entry.open);
                entry.open = Open { hops: entry.open.hops, ..open };
                Begun::Replacing(replaced)
            }
            Discipline::First => {
                self.counts.ignored += 1;
                Begun::Ignored
            }
            Discipline::Fifo | Discipline::Lifo => {
                self.counts.open += 1;
                if entry.is_alone() {
                    let crowd = self.crowds.found(entry.open);
                    (entry.open.reached, entry.open.hops) = (Entry::<K, T>::CROWD, crowd);
                }
                self.crowds.join(entry.open.hops, open);
                Begun::Another
            }
        }
    }

    /// Takes a record of a later stage; if that is the last one, hands the operation on. Returns the operation that has ended by it, whole or not.
    #[inline]
    pub(crate) fn advance(
        &mut self,
        time_ns: u64,
        key: &K,
        stage: usize,
        tag: T,
        done: &mut impl FnMut(Pair<'_, K, T>),
    ) -> Option<Closed<T>> {
        let hash = self.hasher.hash_one(key);
        let Ok(found) = self.table.find_entry(hash, |&at| self.entries[at].key == *key) else {
            self.counts.orphans += 1;
            return None;
        };
        let at = *found.get();
        let ends = stage + 1 == self.stages;
        let entry = &mut self.entries[at];
        let (open, is_gone) = if entry.is_alone() {
            let admits = admits(entry.open.tag.star(), tag.star());
            if !admits || usize::from(entry.open.reached) + 1 != stage {
                let alone = matches!(self.discipline, Discipline::Last | Discipline::First);
                if !(ends && alone && admits) {
                    self.counts.orphans += 1;
                    return None;
                }
                // It has ended without one of its stages.
                self.counts.incomplete += 1;
                self.counts.open -= 1;
                let closed = Closed::of(&entry.open);
                self.hops.free(&entry.open);
                self.key_bytes -= entry.free();
                self.entries.free(at);
                found.remove();
                return Some(closed);
            }
            if !ends {
                self.hops.reach(&mut entry.open, time_ns, tag);
                return None;
            }
            (entry.open, true)
        } else {
            let crowd = entry.open.hops;
            let Some(member) = self.crowds.take(crowd, stage as u8, tag.star()) else {
                self.counts.orphans += 1;
                return None;
            };
            if !ends {
                self.hops.reach(self.crowds.open_mut(member), time_ns, tag);
                self.crowds.queue(crowd, member);
                return None;
            }
            self.crowds.leave(crowd, member)
        };
        let since = entry.open;
        self.counts.open -= 1;
        if is_gone {
            self.key_bytes -= entry.free();
            self.entries.free(at);
            found.remove();
        }
        let mut joined = open.tag;
        joined.join(tag);
        let (begin_ns, hops_ns) = (open.begin_ns.get(), self.hops.of(&open));
        let is_in_order = match hops_ns {
            [] => begin_ns <= time_ns,
            hops_ns => iter::once(&begin_ns).chain(hops_ns).chain([&time_ns]).is_sorted(),
        };
        if is_in_order {
            self.counts.pairs += 1;
            let since_ns = since.begin_ns.get();
            done(Pair { key, begin_ns, hops_ns, end_ns: time_ns, tag: &joined, since_ns, since: &since.tag });
        } else {
            self.counts.backwards += 1;
        }
        self.hops.free(&open);
        Some(Closed { begin_ns, tag: joined })
    }

    /// Gives up the oldest quarter of what is under way, and what is as old: that costs little for each that has begun since the last time.
    #[cold]
    fn give_up(&mut self, given_up: &mut impl FnMut(Closed<T>)) {
        let Self { table, entries, hops, crowds, counts, key_bytes, .. } = self;
        let mut begins_ns = Vec::with_capacity(counts.open as usize);
        for (_, entry) in entries.each().filter(|(_, entry)| !entry.is_free()) {
            if entry.is_alone() {
                begins_ns.push(entry.open.begin_ns.get());
            } else {
                crowds.each(entry.open.hops, |_, open| begins_ns.push(open.begin_ns.get()));
            }
        }
        let quarter = begins_ns.len() / 4;
        let (_, &mut old_ns, _) = begins_ns.select_nth_unstable(quarter);
        drop(begins_ns);
        let mut keeps = |open: &Open<T>| {
            let keeps = open.begin_ns.get() > old_ns;
            if !keeps {
                hops.free(open);
                given_up(Closed::of(open));
                counts.given_up += 1;
                counts.open -= 1;
            }
            keeps
        };
        // The table has them in no order, and looking at each of them there would take the time of many accesses to memory.
        let mut gone = vec![false; entries.each().len()];
        for (at, entry) in entries.each_mut().filter(|(_, entry)| !entry.is_free()) {
            let is_gone =
                if entry.is_alone() { !keeps(&entry.open) } else { crowds.retain(entry.open.hops, &mut keeps) };
            if is_gone {
                *key_bytes -= entry.free();
                gone[at as usize] = true;
            }
        }
        table.retain(|&mut at| !gone[at as usize]);
        (0..).zip(gone).filter(|&(_, is_gone)| is_gone).for_each(|(at, _)| entries.free(at));
    }

    /// What became of all records by now.
    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }
}

#[cfg(test)]
pub(super) fn entry_bytes<K, T>() -> usize {
    size_of::<Entry<K, T>>()
}

#[cfg(test)]
mod tests {
    use std::collections::hash_map::RandomState;

    use proptest::prelude::*;

    use super::*;
    use crate::pairing::opens::ANY_STAR;

    /// A star's number.
    impl Tag for u16 {
        fn star(&self) -> u16 {
            *self
        }

        fn join(&mut self, _: Self) {}
    }

    impl Bytes for u8 {
        fn bytes_elsewhere(&self) -> usize {
            0
        }
    }

    /// Time, key, stage, star.
    type Record = (u64, u8, usize, u16);

    fn engine(stages: usize, discipline: Discipline) -> Engine<u8, u16, RandomState> {
        Engine::new(stages, discipline)
    }

    /// Begin, hops and end of each pair, in order of their ends, and what became of all records.
    fn run(mut engine: Engine<u8, u16, RandomState>, records: &[Record]) -> (Vec<Vec<u64>>, Counts) {
        let mut pairs = Vec::new();
        // When each that is under way began, as the engine says.
        let mut under_way = Vec::new();
        let end = |under_way: &mut Vec<u64>, begin_ns| {
            under_way.swap_remove(under_way.iter().position(|&begun_ns| begun_ns == begin_ns).unwrap());
        };
        for &(time_ns, key, stage, star) in records {
            if stage == 0 {
                match engine.begin(time_ns, key, star, &mut |closed| end(&mut under_way, closed.begin_ns)) {
                    Begun::Another => under_way.push(time_ns),
                    Begun::Replacing(closed) => {
                        end(&mut under_way, closed.begin_ns);
                        under_way.push(time_ns);
                    }
                    Begun::Ignored => {}
                }
            } else {
                let closed = engine.advance(time_ns, &key, stage, star, &mut |pair| {
                    let hops_ns = pair.hops_ns.iter().copied();
                    pairs.push([pair.begin_ns].into_iter().chain(hops_ns).chain([pair.end_ns]).collect());
                });
                closed.into_iter().for_each(|closed| end(&mut under_way, closed.begin_ns));
            }
        }
        assert_eq!(under_way.len() as u64, engine.counts().open);
        (pairs, engine.counts())
    }

    #[test]
    fn disciplines_differ_in_what_ends_when_several_are_under_way() {
        // Two begin, two end, and there is an end too many.
        let records = [(1, 7, 0, 0), (2, 7, 0, 0), (3, 7, 1, 0), (4, 7, 1, 0), (5, 7, 1, 0)];
        let counts = Counts { begins: 2, ..Counts::default() };
        for (discipline, pairs, counts) in [
            (Discipline::Last, vec![vec![2, 3]], Counts { pairs: 1, replaced: 1, orphans: 2, ..counts }),
            (Discipline::First, vec![vec![1, 3]], Counts { pairs: 1, ignored: 1, orphans: 2, ..counts }),
            (Discipline::Fifo, vec![vec![1, 3], vec![2, 4]], Counts { pairs: 2, orphans: 1, ..counts }),
            (Discipline::Lifo, vec![vec![2, 3], vec![1, 4]], Counts { pairs: 2, orphans: 1, ..counts }),
        ] {
            assert_eq!(run(engine(2, discipline), &records), (pairs, counts), "{discipline:?}");
        }
    }

    #[test]
    fn keys_are_told_apart_and_stages_come_in_their_order() {
        let records = [(1, 1, 0), (2, 2, 0), (3, 2, 1), (4, 1, 2), (5, 2, 1), (6, 2, 2), (7, 3, 1), (8, 4, 0)];
        let records = records.map(|(time_ns, key, stage)| (time_ns, key, stage, ANY_STAR));
        assert_eq!(
            run(engine(3, Discipline::Last), &records),
            (
                vec![vec![2, 3, 6]],
                // That of key 1 ended without its middle; a middle of key 2 came twice, that of key 3 from nowhere.
                Counts { begins: 3, pairs: 1, incomplete: 1, orphans: 2, open: 1, ..Counts::default() }
            )
        );
    }

    #[test]
    fn fifo_and_lifo_go_by_the_age_of_the_whole_operation_in_chains() {
        // 1 and 2 begin, the middle takes one of them; 3 begins, the middle takes two more, and they end.
        let records = [(1, 0), (2, 0), (3, 1), (4, 0), (5, 1), (6, 1), (7, 2), (8, 2), (9, 2)];
        let records = records.map(|(time_ns, stage)| (time_ns, 7, stage, ANY_STAR));
        for (discipline, pairs) in [
            (Discipline::Fifo, [[1, 3, 7], [2, 5, 8], [4, 6, 9]]),
            (Discipline::Lifo, [[4, 5, 7], [2, 3, 8], [1, 6, 9]]),
        ] {
            assert_eq!(run(engine(3, discipline), &records).0, pairs, "{discipline:?}");
        }
    }

    #[test]
    fn when_too_many_are_under_way_the_oldest_quarter_is_given_up() {
        for (discipline, keys) in
            [(Discipline::Last, 100), (Discipline::Fifo, 100), (Discipline::Lifo, 3), (Discipline::Fifo, 1)]
        {
            let mut few = engine(3, discipline);
            few.most = 8;
            let begins = (0..9).map(|n| (u64::from(n) * 10, n % keys, 0, ANY_STAR));
            let middles = (0..9).map(|n| (100 + u64::from(n), n % keys, 1, ANY_STAR));
            let ends = (0..9).map(|n| (200 + u64::from(n), n % keys, 2, ANY_STAR));
            let (pairs, counts) = run(few, &begins.chain(middles).chain(ends).collect::<Vec<_>>());
            // When the ninth begins: two of the eight, and the third, as old as the last of those.
            let mut begins_ns: Vec<_> = pairs.iter().map(|times_ns| times_ns[0]).collect();
            begins_ns.sort_unstable();
            assert_eq!(begins_ns, [30, 40, 50, 60, 70, 80], "{discipline:?} {keys}");
            let expected = Counts { begins: 9, pairs: 6, given_up: 3, orphans: 6, ..Counts::default() };
            assert_eq!(counts, expected, "{discipline:?} {keys}");
        }
    }

    #[test]
    fn the_keys_take_no_more_than_they_may() {
        #[derive(PartialEq, Eq, Hash, Default)]
        struct Long(u64);

        impl Bytes for Long {
            fn bytes_elsewhere(&self) -> usize {
                1 << 20
            }
        }

        let mut engine: Engine<Long, u16, RandomState> = Engine::new(2, Discipline::Last);
        for n in 0..1_000 {
            engine.begin(n, Long(n), ANY_STAR, &mut |_| {});
            assert!(engine.key_bytes <= MAX_KEY_BYTES + (1 << 20));
        }
        let Counts { open, given_up, .. } = engine.counts();
        assert_eq!((open + given_up, engine.key_bytes), (1_000, (open as usize) << 20));
        assert!(open > 40);
        for n in 0..1_000 {
            engine.advance(n + 1_000, &Long(n), 1, ANY_STAR, &mut |_| {});
        }
        assert_eq!((engine.counts().pairs, engine.key_bytes), (open, 0));
    }

    /// As the words of [`Discipline`] and [`Counts`] say.
    fn by_definition(stages: usize, discipline: Discipline, records: &[Record]) -> (Vec<Vec<u64>>, Counts) {
        let (mut pairs, mut counts) = (Vec::new(), Counts::default());
        // Key, star, and the times of its stages, the oldest first.
        let mut open: Vec<(u8, u16, Vec<u64>)> = Vec::new();
        let is_alone = matches!(discipline, Discipline::Last | Discipline::First);
        for &(time_ns, key, stage, star) in records {
            let own: Vec<_> = (0..open.len()).filter(|&at| open[at].0 == key).collect();
            if stage == 0 {
                counts.begins += 1;
                match (discipline, own.first()) {
                    (Discipline::Last, Some(&at)) => {
                        counts.replaced += 1;
                        open.remove(at);
                    }
                    (Discipline::First, Some(_)) => {
                        counts.ignored += 1;
                        continue;
                    }
                    _ => {}
                }
                open.push((key, star, vec![time_ns]));
                continue;
            }
            let goes = |at: &usize| star == open[*at].1 || star == ANY_STAR || open[*at].1 == ANY_STAR;
            let mut waiting = own.iter().copied().filter(|at| goes(at) && open[*at].2.len() == stage);
            let next = if discipline == Discipline::Lifo { waiting.next_back() } else { waiting.next() };
            match (next, own.first()) {
                (Some(at), _) => {
                    open[at].2.push(time_ns);
                    if stage + 1 == stages {
                        counts.pairs += 1;
                        pairs.push(open.remove(at).2);
                    }
                }
                (None, Some(at)) if is_alone && stage + 1 == stages && goes(at) => {
                    counts.incomplete += 1;
                    open.remove(*at);
                }
                (None, _) => counts.orphans += 1,
            }
        }
        counts.open = open.len() as u64;
        (pairs, counts)
    }

    proptest! {
        #[test]
        fn pairs_are_those_of_the_definition(
            stages in 2usize..5,
            records in proptest::collection::vec((0u64..5, 0u8..3, 0usize..4, 0u16..3), 0..100),
            discipline in proptest::sample::select(Discipline::value_variants()),
        ) {
            let mut time_ns = 0;
            let records: Vec<_> = records.into_iter().map(|(step_ns, key, stage, star)| {
                time_ns += step_ns;
                (time_ns, key, stage % stages, star)
            }).collect();
            prop_assert_eq!(run(engine(stages, discipline), &records), by_definition(stages, discipline, &records));
        }

        #[test]
        fn nothing_is_lost_sight_of(
            records in proptest::collection::vec((0u64..50, 0u8..6, 0usize..4, 0u16..2), 0..80),
            discipline in proptest::sample::select(Discipline::value_variants()),
            most in 1usize..20,
        ) {
            let mut engine = engine(4, discipline);
            engine.most = most;
            let (pairs, counts) = run(engine, &records);
            let Counts { begins, pairs: all, replaced, ignored, incomplete, open, backwards, given_up, orphans: _ } = counts;
            prop_assert_eq!(all + replaced + ignored + incomplete + open + backwards + given_up, begins);
            prop_assert_eq!(pairs.len() as u64, all);
            prop_assert!(open <= most as u64);
            prop_assert!(pairs.iter().all(|times_ns| times_ns.len() == 4 && times_ns.is_sorted()));
        }
    }
}
