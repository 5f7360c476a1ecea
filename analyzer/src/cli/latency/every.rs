//! Latencies by interval.

use anyhow::{Result, bail};

use super::super::operation::{MAX_INTERVALS, too_many_intervals};
use crate::measure::{Measure, Measured};
use crate::pairing::{Drops, Out};

/// What ended in each interval of a length.
pub(crate) struct Every {
    length_ns: u64,
    stages: usize,
    drops: Drops,
    start_ns: u64,
    /// By number, in order.
    intervals: Vec<(u64, Measure)>,
}

impl Every {
    pub(crate) fn new(length_ns: u64, stages: usize, drops: Drops) -> Self {
        Self { length_ns, stages, drops, start_ns: 0, intervals: Vec::new() }
    }

    /// Takes in when the trace begins.
    pub(crate) fn start(&mut self, start_ns: u64) {
        self.start_ns = start_ns;
    }

    #[inline]
    pub(crate) fn take(&mut self, out: &Out<'_>) {
        match out {
            Out::Pair(pair) => {
                let number = pair.end_ns.saturating_sub(self.start_ns) / self.length_ns;
                if self.intervals.last().is_none_or(|(last, _)| *last < number) && self.intervals.len() <= MAX_INTERVALS
                {
                    let budget = self.intervals.last().map(|(_, measure)| measure.budget().clone());
                    self.intervals.push((number, Measure::with(self.stages, self.drops, budget)));
                }
                if let Some((_, measure)) = self.intervals.last_mut() {
                    measure.take(out);
                }
            }
            Out::Suspect => self.intervals.iter_mut().for_each(|(_, measure)| measure.take(out)),
            Out::Depth { .. } => {}
        }
    }

    /// Whether there are not too many.
    pub(crate) fn check(&self) -> Result<()> {
        if self.intervals.len() > MAX_INTERVALS {
            bail!(too_many_intervals());
        }
        Ok(())
    }

    /// When each interval begins, since the trace's start, with what it came to.
    pub(crate) fn finish(self) -> impl Iterator<Item = (u64, Measured)> {
        let length_ns = self.length_ns;
        self.intervals.into_iter().map(move |(number, measure)| (number * length_ns, measure.finish()))
    }
}
