//! Latencies by interval.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use anyhow::{Result, bail};
use foldhash::fast::RandomState;

use super::super::operation::MAX_INTERVALS;
use crate::findings::count;
use crate::groups::{GroupId, Groups};
use crate::latencies::Budget;
use crate::measure::{Measure, Measured};
use crate::pairing::{Drops, Finished, Out};

/// What ended in each interval of a length.
pub(crate) struct Every {
    length_ns: u64,
    stages: usize,
    drops: Drops,
    budget: Budget,
    start_ns: u64,
    /// By number, in no order.
    intervals: Vec<(u64, Measure)>,
    places: HashMap<u64, usize, RandomState>,
    /// The interval of the operation before.
    place: usize,
    /// Rows, without those of hops, and how many there may be.
    rows: usize,
    max_rows: usize,
    /// The groups that are told apart, once not all are.
    kept: Option<HashSet<GroupId, RandomState>>,
    /// Operations that ended before the trace's first record.
    early: u64,
}

impl Every {
    /// Shares the budget of memory.
    pub(crate) fn new(length_ns: u64, stages: usize, drops: Drops, budget: &Budget) -> Self {
        let rows_of_chain = if stages > 2 { stages } else { 1 };
        Self {
            length_ns,
            stages,
            drops,
            budget: budget.clone(),
            start_ns: 0,
            intervals: Vec::new(),
            places: HashMap::default(),
            place: 0,
            rows: 0,
            max_rows: MAX_INTERVALS / rows_of_chain,
            kept: None,
            early: 0,
        }
    }

    /// Takes in when the trace begins.
    pub(crate) fn start(&mut self, start_ns: u64) {
        self.start_ns = start_ns;
    }

    #[inline]
    pub(crate) fn take(&mut self, out: &Out<'_>) {
        match out {
            Out::Pair(pair) => self.pair(pair),
            Out::Suspect => self.intervals.iter_mut().for_each(|(_, measure)| measure.take(out)),
            Out::Depth { .. } => {}
        }
    }

    #[inline]
    fn pair(&mut self, pair: &Finished<'_>) {
        let number = pair.end_ns.saturating_sub(self.start_ns) / self.length_ns;
        if self.intervals.get(self.place).is_none_or(|&(last, _)| last != number) && !self.go_to(number) {
            return;
        }
        self.early += u64::from(pair.end_ns < self.start_ns);
        let mut pair = *pair;
        if self.kept.as_ref().is_some_and(|kept| !kept.contains(&pair.group)) {
            pair.group = Groups::ALL_OTHER;
        }
        let (_, measure) = &mut self.intervals[self.place];
        let before = measure.len();
        measure.take(&Out::Pair(pair));
        self.rows += measure.len() - before;
        if self.rows > self.max_rows {
            self.merge();
        }
    }

    /// Goes to another interval; tells whether there may be so many.
    #[cold]
    fn go_to(&mut self, number: u64) -> bool {
        let may_be_new = self.intervals.len() <= self.max_rows;
        let new = self.intervals.len();
        match self.places.get(&number) {
            Some(&place) => self.place = place,
            None if may_be_new => {
                self.places.insert(number, new);
                self.intervals.push((number, Measure::with(self.stages, self.drops, Some(self.budget.clone()))));
                self.place = new;
            }
            None => return false,
        }
        true
    }

    /// Halves the rows, at least: those of the largest groups stay, and in every interval all others become one.
    #[cold]
    fn merge(&mut self) {
        let mut pairs: HashMap<GroupId, u64, RandomState> = HashMap::default();
        for (group, count) in self.intervals.iter().flat_map(|(_, measure)| measure.pairs()) {
            *pairs.entry(group).or_default() += count;
        }
        pairs.remove(&Groups::ALL_OTHER);
        let mut pairs: Vec<_> = pairs.into_iter().collect();
        pairs.sort_unstable_by_key(|&(group, count)| (Reverse(count), group));
        // Each may have a row in every interval, and so may the others.
        let room = (self.max_rows / 2 / self.intervals.len()).saturating_sub(1).min(pairs.len() / 2);
        let kept: HashSet<_, _> = pairs.into_iter().take(room).map(|(group, _)| group).collect();
        self.intervals.iter_mut().for_each(|(_, measure)| measure.merge(|group| kept.contains(&group)));
        self.rows = self.intervals.iter().map(|(_, measure)| measure.len()).sum();
        self.kept = Some(kept);
    }

    /// Whether there are not too many.
    pub(crate) fn check(&self) -> Result<()> {
        if self.intervals.len() > self.max_rows {
            let hops = if self.stages > 2 { " for a chain of so many stages" } else { "" };
            bail!(
                "there are more than {} intervals{hops}; take a longer one, or a part of the trace (-t)",
                self.max_rows
            );
        }
        Ok(())
    }

    /// What is to be known of the result.
    pub(crate) fn notes(&self) -> Vec<String> {
        let merged = self.kept.as_ref().map(|kept| {
            format!(
                "by interval, {} told apart, and all others are 'other', as there would be more than {} rows; take longer intervals for more",
                match kept.len() {
                    0 => "no groups are".to_owned(),
                    1 => "the largest group is".to_owned(),
                    many => format!("the {many} largest groups are"),
                },
                self.max_rows
            )
        });
        let early = (self.early > 0).then(|| {
            format!(
                "the first interval has {} that ended before the first record of the trace, as if on another clock",
                count(self.early, "pair")
            )
        });
        merged.into_iter().chain(early).collect()
    }

    /// When each interval begins, since the trace's start, with what it came to.
    pub(crate) fn finish(mut self) -> impl Iterator<Item = (u64, Measured)> {
        self.intervals.sort_unstable_by_key(|&(number, _)| number);
        let length_ns = self.length_ns;
        self.intervals.into_iter().map(move |(number, measure)| (number * length_ns, measure.finish()))
    }
}
