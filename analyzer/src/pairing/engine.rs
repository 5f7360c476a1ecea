//! Matches beginnings with ends.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hash};
use std::iter;

use clap::ValueEnum;

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
}

impl Counts {
    /// Each by its name, with what it means if that has to be said.
    pub(crate) fn each(&self) -> [(&'static str, u64, &'static str); 8] {
        let Self { begins, pairs, replaced, ignored, incomplete, open, orphans, backwards } = *self;
        [
            ("begins", begins, ""),
            ("pairs", pairs, ""),
            ("open", open, "had not ended when the trace did"),
            ("replaced", replaced, "had not ended when the next with the same key began"),
            ("ignored", ignored, "began while another with the same key was under way"),
            ("incomplete", incomplete, "ended without a stage between"),
            ("orphans", orphans, "later records without a beginning before them"),
            ("backwards", backwards, "have records that are too far out of order"),
        ]
    }
}

/// An operation under way.
struct Open<T> {
    begin_ns: u64,
    /// The times of the stages between.
    hops_ns: Vec<u64>,
    tag: T,
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

/// An operation with all its stages.
#[derive(Debug)]
pub(crate) struct Pair<'a, K, T> {
    pub(crate) key: &'a K,
    pub(crate) begin_ns: u64,
    /// The times of the stages between.
    pub(crate) hops_ns: &'a [u64],
    pub(crate) end_ns: u64,
    pub(crate) tag: &'a T,
}

/// Those with one key, the oldest first. There is mostly one.
struct Opens<T> {
    first: Open<T>,
    others: VecDeque<Open<T>>,
}

/// What is kept of an operation's records, from stage to stage.
pub(crate) trait Tag {
    /// Whether a record of a later stage can be of the same operation.
    fn admits(&self, later: &Self) -> bool;

    /// Takes in that of a later stage.
    fn join(&mut self, later: Self);
}

/// Matches records by their keys. They must come in order of time.
pub(crate) struct Engine<K, T, S> {
    discipline: Discipline,
    stages: usize,
    open: HashMap<K, Opens<T>, S>,
    counts: Counts,
}

impl<K: Eq + Hash, T: Tag, S: BuildHasher + Default> Engine<K, T, S> {
    /// For operations of so many stages.
    pub(crate) fn new(stages: usize, discipline: Discipline) -> Self {
        Self { discipline, stages, open: HashMap::default(), counts: Counts::default() }
    }

    /// Takes a record of the first stage.
    #[inline]
    pub(crate) fn begin(&mut self, time_ns: u64, key: K, tag: T) -> Begun<T> {
        use std::collections::hash_map::Entry;

        self.counts.begins += 1;
        let open = Open { begin_ns: time_ns, hops_ns: Vec::new(), tag };
        match self.open.entry(key) {
            Entry::Vacant(place) => {
                place.insert(Opens { first: open, others: VecDeque::new() });
            }
            Entry::Occupied(mut place) => match self.discipline {
                Discipline::Last => {
                    self.counts.replaced += 1;
                    let replaced = std::mem::replace(&mut place.get_mut().first, open);
                    return Begun::Replacing(Closed { begin_ns: replaced.begin_ns, tag: replaced.tag });
                }
                Discipline::First => {
                    self.counts.ignored += 1;
                    return Begun::Ignored;
                }
                Discipline::Fifo | Discipline::Lifo => place.get_mut().others.push_back(open),
            },
        }
        self.counts.open += 1;
        Begun::Another
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
        let Some(opens) = self.open.get_mut(key) else {
            self.counts.orphans += 1;
            return None;
        };
        let ends = stage + 1 == self.stages;
        let waits = |open: &Open<T>| open.hops_ns.len() + 1 == stage && open.tag.admits(&tag);
        let place = match self.discipline {
            Discipline::Lifo => opens.iter().rposition(waits),
            _ => opens.iter().position(waits),
        };
        let Some(place) = place else {
            let alone = matches!(self.discipline, Discipline::Last | Discipline::First);
            if ends && alone && opens.first.tag.admits(&tag) {
                // It has ended without one of its stages.
                self.counts.incomplete += 1;
                self.counts.open -= 1;
                let Opens { first, .. } = self.open.remove(key)?;
                return Some(Closed { begin_ns: first.begin_ns, tag: first.tag });
            }
            self.counts.orphans += 1;
            return None;
        };
        if !ends {
            let open = opens.get_mut(place);
            open.hops_ns.push(time_ns);
            open.tag.join(tag);
            return None;
        }
        let mut open = match opens.take(place) {
            Some(open) => open,
            None => self.open.remove(key)?.first,
        };
        self.counts.open -= 1;
        open.tag.join(tag);
        let hops_ns = open.hops_ns.iter().copied();
        if !iter::once(open.begin_ns).chain(hops_ns).chain([time_ns]).is_sorted() {
            self.counts.backwards += 1;
        } else {
            self.counts.pairs += 1;
            done(Pair { key, begin_ns: open.begin_ns, hops_ns: &open.hops_ns, end_ns: time_ns, tag: &open.tag });
        }
        Some(Closed { begin_ns: open.begin_ns, tag: open.tag })
    }

    /// What became of all records by now.
    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }
}

impl<T> Opens<T> {
    fn iter(&self) -> impl DoubleEndedIterator<Item = &Open<T>> + ExactSizeIterator {
        // `Chain` has no length.
        (0..self.others.len() + 1).map(|place| if place == 0 { &self.first } else { &self.others[place - 1] })
    }

    fn get_mut(&mut self, place: usize) -> &mut Open<T> {
        if place == 0 { &mut self.first } else { &mut self.others[place - 1] }
    }

    /// Takes one of several out; `None` if it is the only one.
    fn take(&mut self, place: usize) -> Option<Open<T>> {
        match place {
            0 => self.others.pop_front().map(|next| std::mem::replace(&mut self.first, next)),
            place => self.others.remove(place - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::hash_map::RandomState;

    use proptest::prelude::*;

    use super::*;

    impl Tag for () {
        fn admits(&self, (): &Self) -> bool {
            true
        }

        fn join(&mut self, (): Self) {}
    }

    /// Begin, hops and end of each pair, in order of their ends, and what became of all records.
    fn run(stages: usize, discipline: Discipline, records: &[(u64, u8, usize)]) -> (Vec<Vec<u64>>, Counts) {
        let mut engine: Engine<u8, (), RandomState> = Engine::new(stages, discipline);
        let mut pairs = Vec::new();
        // When each that is under way began, as the engine says.
        let mut under_way = Vec::new();
        let end = |under_way: &mut Vec<u64>, begin_ns| {
            under_way.swap_remove(under_way.iter().position(|&begun_ns| begun_ns == begin_ns).unwrap());
        };
        for &(time_ns, key, stage) in records {
            match stage {
                0 => match engine.begin(time_ns, key, ()) {
                    Begun::Another => under_way.push(time_ns),
                    Begun::Replacing(closed) => {
                        end(&mut under_way, closed.begin_ns);
                        under_way.push(time_ns);
                    }
                    Begun::Ignored => {}
                },
                stage => {
                    let closed = engine.advance(time_ns, &key, stage, (), &mut |pair| {
                        let hops_ns = pair.hops_ns.iter().copied();
                        pairs.push([pair.begin_ns].into_iter().chain(hops_ns).chain([pair.end_ns]).collect());
                    });
                    closed.into_iter().for_each(|closed| end(&mut under_way, closed.begin_ns));
                }
            }
        }
        assert_eq!(under_way.len() as u64, engine.counts().open);
        (pairs, engine.counts())
    }

    #[test]
    fn disciplines_differ_in_what_ends_when_several_are_under_way() {
        // Two begin, two end, and there is an end too many.
        let records = [(1, 7, 0), (2, 7, 0), (3, 7, 1), (4, 7, 1), (5, 7, 1)];
        let counts = Counts { begins: 2, ..Counts::default() };
        for (discipline, pairs, counts) in [
            (Discipline::Last, vec![vec![2, 3]], Counts { pairs: 1, replaced: 1, orphans: 2, ..counts }),
            (Discipline::First, vec![vec![1, 3]], Counts { pairs: 1, ignored: 1, orphans: 2, ..counts }),
            (Discipline::Fifo, vec![vec![1, 3], vec![2, 4]], Counts { pairs: 2, orphans: 1, ..counts }),
            (Discipline::Lifo, vec![vec![2, 3], vec![1, 4]], Counts { pairs: 2, orphans: 1, ..counts }),
        ] {
            assert_eq!(run(2, discipline, &records), (pairs, counts), "{discipline:?}");
        }
    }

    #[test]
    fn keys_are_told_apart_and_stages_come_in_their_order() {
        let records = [(1, 1, 0), (2, 2, 0), (3, 2, 1), (4, 1, 2), (5, 2, 1), (6, 2, 2), (7, 3, 1), (8, 4, 0)];
        assert_eq!(
            run(3, Discipline::Last, &records),
            (
                vec![vec![2, 3, 6]],
                // That of key 1 ended without its middle; a middle of key 2 came twice, that of key 3 from nowhere.
                Counts { begins: 3, pairs: 1, incomplete: 1, orphans: 2, open: 1, ..Counts::default() }
            )
        );
    }

    /// As the words of [`Discipline`] and [`Counts`] say, for operations of two stages.
    fn by_definition(discipline: Discipline, records: &[(u64, u8, usize)]) -> (Vec<Vec<u64>>, Counts) {
        let (mut pairs, mut counts) = (Vec::new(), Counts::default());
        let mut open: Vec<(u8, u64)> = Vec::new();
        for &(time_ns, key, stage) in records {
            let own =
                |open: &Vec<(u8, u64)>| -> Vec<usize> { (0..open.len()).filter(|&at| open[at].0 == key).collect() };
            if stage == 0 {
                counts.begins += 1;
                match (discipline, own(&open).first()) {
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
                open.push((key, time_ns));
                continue;
            }
            let own = own(&open);
            let ends = if discipline == Discipline::Lifo { own.last() } else { own.first() };
            match ends {
                Some(&at) => {
                    counts.pairs += 1;
                    pairs.push(vec![open.remove(at).1, time_ns]);
                }
                None => counts.orphans += 1,
            }
        }
        counts.open = open.len() as u64;
        (pairs, counts)
    }

    proptest! {
        #[test]
        fn pairs_are_those_of_the_definition(
            records in proptest::collection::vec((0u64..5, 0u8..3, 0usize..2), 0..60),
            discipline in proptest::sample::select(Discipline::value_variants()),
        ) {
            let mut time_ns = 0;
            let records: Vec<_> = records.into_iter().map(|(step_ns, key, stage)| {
                time_ns += step_ns;
                (time_ns, key, stage)
            }).collect();
            prop_assert_eq!(run(2, discipline, &records), by_definition(discipline, &records));
        }

        #[test]
        fn nothing_is_lost_sight_of(
            records in proptest::collection::vec((0u64..5, 0u8..2, 0usize..4), 0..80),
            discipline in proptest::sample::select(Discipline::value_variants()),
        ) {
            let (pairs, counts) = run(4, discipline, &records);
            let Counts { begins, pairs: all, replaced, ignored, incomplete, open, backwards, .. } = counts;
            prop_assert_eq!(all + replaced + ignored + incomplete + open + backwards, begins);
            prop_assert_eq!(pairs.len() as u64, all);
            prop_assert!(pairs.iter().all(|times_ns| times_ns.len() == 4 && times_ns.is_sorted()));
        }
    }
}
