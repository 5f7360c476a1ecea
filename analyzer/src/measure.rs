//! What operations come to: latencies by group and hop.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::groups::{GroupId, Groups};
use crate::latencies::{Budget, Latencies, MAX_EXACT};
use crate::pairing::{Drops, Finished, Out};

/// Latencies by group; with `exclude`, without those that events may be missing from.
pub(crate) struct Measure {
    hops: usize,
    drops: Drops,
    budget: Budget,
    places: HashMap<GroupId, usize, RandomState>,
    groups: Vec<Group>,
    /// Operations that events are missing from, or may be.
    pub(crate) straddling: u64,
    /// Those that are not, as far as is known, since the last time it was learned that events are missing.
    unsuspected: u64,
    /// When the first operation began and the last one ended.
    pub(crate) span_ns: Option<(u64, u64)>,
}

/// The latencies of a group.
pub(crate) struct Group {
    pub(crate) id: GroupId,
    /// From begin to end.
    pub(crate) total: Latencies,
    /// From stage to stage, if there are more than two.
    pub(crate) hops: Vec<Latencies>,
    /// What would not count if it turned out that events are missing.
    pending: Vec<Latencies>,
}

impl Group {
    /// Takes in all latencies of another.
    pub(crate) fn append(&mut self, other: &mut Self) {
        self.all().zip(other.all()).for_each(|(own, others)| own.append(others));
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Latencies> {
        [&mut self.total].into_iter().chain(&mut self.hops)
    }
}

impl Measure {
    /// Groups beyond share one; of chains, groups and hops.
    pub(crate) const MAX_GROUPS: usize = 10_000;

    /// For operations of so many stages.
    pub(crate) fn new(stages: usize, drops: Drops) -> Self {
        Self::with(stages, drops, None)
    }

    /// Beside another one, with which it shares its budget of memory.
    pub(crate) fn with(stages: usize, drops: Drops, budget: Option<Budget>) -> Self {
        Self {
            hops: if stages > 2 { stages - 1 } else { 0 },
            drops,
            budget: budget.unwrap_or_else(|| Budget::new(MAX_EXACT)),
            places: HashMap::default(),
            groups: Vec::new(),
            straddling: 0,
            unsuspected: 0,
            span_ns: None,
        }
    }

    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    #[inline]
    pub(crate) fn take(&mut self, out: &Out<'_>) {
        match out {
            Out::Pair(pair) => self.pair(pair),
            Out::Suspect => self.suspect(),
            Out::Depth { .. } => {}
        }
    }

    #[inline]
    fn pair(&mut self, pair: &Finished<'_>) {
        if pair.straddles {
            self.straddling += 1;
            if self.drops == Drops::Exclude {
                return;
            }
        } else {
            self.unsuspected += 1;
        }
        let (first_ns, last_ns) = self.span_ns.unwrap_or((u64::MAX, 0));
        self.span_ns = Some((first_ns.min(pair.begin_ns), last_ns.max(pair.end_ns)));
        let is_pending = self.drops == Drops::Exclude;
        let group = self.group(pair.group);
        let mut add = |place: usize, latency_ns: u64| {
            let latencies = match place {
                place if is_pending => &mut group.pending[place],
                0 => &mut group.total,
                hop => &mut group.hops[hop - 1],
            };
            latencies.add(latency_ns);
        };
        add(0, pair.end_ns - pair.begin_ns);
        let mut before_ns = pair.begin_ns;
        if !pair.hops_ns.is_empty() {
            for (hop, &time_ns) in pair.hops_ns.iter().chain([&pair.end_ns]).enumerate() {
                add(hop + 1, time_ns - before_ns);
                before_ns = time_ns;
            }
        }
    }

    fn group(&mut self, id: GroupId) -> &mut Group {
        let place = match self.places.get(&id) {
            Some(&place) => place,
            None => self.add_group(id),
        };
        &mut self.groups[place]
    }

    #[cold]
    fn add_group(&mut self, id: GroupId) -> usize {
        let id = if self.groups.len() < Self::MAX_GROUPS / (self.hops + 1) { id } else { Groups::ALL_OTHER };
        *self.places.entry(id).or_insert_with(|| {
            let new = || Latencies::new(&self.budget);
            let pending = if self.drops == Drops::Exclude { self.hops + 1 } else { 0 };
            self.groups.push(Group {
                id,
                total: new(),
                hops: (0..self.hops).map(|_| new()).collect(),
                pending: (0..pending).map(|_| new()).collect(),
            });
            self.groups.len() - 1
        })
    }

    /// Events are missing somewhere since the last time.
    #[cold]
    fn suspect(&mut self) {
        self.straddling += std::mem::take(&mut self.unsuspected);
        self.groups.iter_mut().flat_map(|group| &mut group.pending).for_each(Latencies::clear);
    }

    /// How many groups there are.
    pub(crate) fn len(&self) -> usize {
        self.groups.len()
    }

    /// How many operations of each group there are, all in all.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (GroupId, u64)> {
        self.groups.iter().map(|group| {
            let pending = group.pending.first().map_or(0, Latencies::count);
            (group.id, group.total.count() + pending)
        })
    }

    /// Makes one group of all that nobody `keeps`.
    pub(crate) fn merge(&mut self, keeps: impl Fn(GroupId) -> bool) {
        let (kept, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.groups).into_iter().partition(|group| keeps(group.id));
        self.groups = kept;
        self.places = (0..).zip(&self.groups).map(|(place, group)| (group.id, place)).collect();
        for mut other in others {
            let into = self.group(Groups::ALL_OTHER);
            for (into, other) in into.all().zip(other.all()) {
                into.append(other);
            }
            into.pending.iter_mut().zip(&mut other.pending).for_each(|(into, other)| into.append(other));
        }
    }

    /// All groups, the largest first.
    pub(crate) fn finish(mut self) -> Measured {
        for group in &mut self.groups {
            let mut pending = std::mem::take(&mut group.pending);
            group.all().zip(&mut pending).for_each(|(latencies, pending)| latencies.append(pending));
        }
        self.groups.retain(|group| group.total.count() > 0);
        self.groups.sort_by_key(|group| std::cmp::Reverse(group.total.count()));
        Measured { groups: self.groups, straddling: self.straddling, span_ns: self.span_ns }
    }
}

/// What was measured.
pub(crate) struct Measured {
    pub(crate) groups: Vec<Group>,
    pub(crate) straddling: u64,
    pub(crate) span_ns: Option<(u64, u64)>,
}
