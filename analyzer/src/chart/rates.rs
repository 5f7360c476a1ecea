//! How often each kind of event comes, over time, counted at next to no cost.

use std::ops::RangeInclusive;

use super::TimeCells;

/// Counts of kinds of event over time, for a reader that counts them anyway and has them nearly in order of time.
///
/// A record of the current cell costs a comparison: what the reader has counted of it goes to the cell when another one begins. Records of
/// other cells are counted one by one.
#[derive(Debug)]
pub(crate) struct Rates {
    /// [`look`](Self::look) has to be called for a record that is not earlier than this, once it is counted.
    pub(crate) look_from_ns: u64,
    cells: TimeCells,
    /// The cell that is being counted.
    current_ns: RangeInclusive<u64>,
    /// How many of each kind are in cells.
    settled: Vec<u64>,
    /// Records that were earlier than the current cell, since it is that.
    earlier: usize,
}

impl Default for Rates {
    fn default() -> Self {
        Self {
            look_from_ns: 0,
            cells: TimeCells::new(Self::MAX_CELLS),
            current_ns: 0..=0,
            settled: Vec::new(),
            earlier: 0,
        }
    }
}

impl Rates {
    /// Two or three to each of 22 to 32 columns.
    const MAX_CELLS: usize = 96;

    /// To be called, before it is counted, for a record that is earlier than the one before it.
    pub(crate) fn went_back_to(&mut self, time_ns: u64) {
        if time_ns < *self.current_ns.start() {
            self.look_from_ns = 0;
        }
    }

    /// A record that may not be of the current cell, with the counts of all kinds.
    #[cold]
    #[inline(never)]
    pub(crate) fn look(&mut self, time_ns: u64, kind: usize, counts: impl ExactSizeIterator<Item = u64>) {
        let is_first = self.cells.span_ns().is_none();
        if is_first || !self.current_ns.contains(&time_ns) {
            self.cells.cover(time_ns);
            self.cells.lanes_of(time_ns, counts.len())[kind] += 1;
            self.settled.resize(self.settled.len().max(counts.len()), 0);
            self.settled[kind] += 1;
            self.earlier += 1;
            // Adding may have made cells longer.
            self.current_ns = self.cells.range_ns(*self.current_ns.start());
            // Settling takes a step for each kind. Records that go back and forth have done as many before it happens again.
            let moves = time_ns > *self.current_ns.end() || self.earlier > counts.len();
            if is_first || moves {
                if !is_first {
                    self.settle(counts);
                }
                self.earlier = 0;
                self.current_ns = self.cells.range_ns(time_ns);
            } else {
                // The next one may be in the same place, and so has to be looked at.
                self.look_from_ns = 0;
                return;
            }
        }
        self.look_from_ns = self.current_ns.end().saturating_add(1);
    }

    /// Moves what has been counted since the last time into the current cell.
    fn settle(&mut self, counts: impl ExactSizeIterator<Item = u64>) {
        self.settled.resize(self.settled.len().max(counts.len()), 0);
        let cell = self.cells.lanes_of(*self.current_ns.start(), counts.len());
        for ((count, settled), cell) in counts.zip(&mut self.settled).zip(cell) {
            *cell += count - std::mem::replace(settled, count);
        }
    }

    /// All of it, by kind, from the first time to the last.
    pub(crate) fn finish(mut self, span_ns: (u64, u64), counts: impl ExactSizeIterator<Item = u64>) -> TimeCells {
        if self.cells.span_ns().is_some() {
            self.settle(counts);
        }
        self.cells.cover(span_ns.0);
        self.cells.cover(span_ns.1);
        self.cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a reader does it.
    fn counted(records: &[(u64, usize)]) -> TimeCells {
        let mut rates = Rates::default();
        let mut counts = [0_u64; 3];
        let mut last_ns = 0;
        let mut span_ns = (u64::MAX, 0);
        for &(time_ns, kind) in records {
            if time_ns < last_ns {
                rates.went_back_to(time_ns);
            }
            last_ns = time_ns;
            span_ns = (span_ns.0.min(time_ns), span_ns.1.max(time_ns));
            counts[kind] += 1;
            if time_ns >= rates.look_from_ns {
                rates.look(time_ns, kind, counts.iter().copied());
            }
        }
        rates.finish(span_ns, counts.iter().copied())
    }

    fn one_by_one(records: &[(u64, usize)]) -> TimeCells {
        let mut cells = TimeCells::new(Rates::MAX_CELLS);
        records.iter().for_each(|&(time_ns, kind)| cells.add(time_ns, kind, 1));
        cells
    }

    #[test]
    fn every_record_is_in_its_cell() {
        let in_order: Vec<_> = (0..5_000).map(|n| (1_000_000 + n * n, n as usize % 3)).collect();
        let backwards: Vec<_> = in_order.iter().rev().copied().collect();
        let two_files = [in_order.clone(), in_order.iter().map(|&(ns, kind)| (ns - 500_000, kind)).collect()].concat();
        let neighbours_swapped: Vec<_> = in_order.chunks(2).flat_map(|two| [two[1], two[0]]).collect();
        let to_and_fro: Vec<_> = (0..5_000).map(|n| (n * 7_919 % 5_000 * 10_000, n as usize % 3)).collect();
        let ends = vec![(u64::MAX, 0), (0, 1), (u64::MAX, 2), (u64::MAX - 1, 0), (0, 0), (1 << 63, 2)];
        for records in [in_order, backwards, two_files, neighbours_swapped, to_and_fro, ends, vec![(0, 2)]] {
            let (counted, expected) = (counted(&records), one_by_one(&records));
            assert_eq!(counted.span_ns(), expected.span_ns());
            let columns = |cells: &TimeCells| -> Vec<_> {
                let columns = cells.columns(1_000);
                columns.iter().map(|column| [0, 1, 2].map(|kind| column.count(kind))).collect()
            };
            assert_eq!(columns(&counted), columns(&expected));
        }
    }
}
