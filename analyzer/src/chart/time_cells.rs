//! Counts over time, by lanes, of a trace whose end is not known beforehand.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

/// Counts in cells of time. The cells are all equally long, a power of two ns; when there are too many, pairs of them become one.
///
/// Where cells begin does not depend on what came first, so that the result is the same in any order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TimeCells {
    max_cells: usize,
    /// A cell is 2^`shift` ns long.
    shift: u32,
    /// The time of the first cell, in cells.
    first: u64,
    /// How much of each lane.
    cells: VecDeque<Vec<u64>>,
    first_ns: u64,
    last_ns: u64,
}

impl TimeCells {
    /// No more cells than this, two at least.
    pub(crate) fn new(max_cells: usize) -> Self {
        Self { max_cells: max_cells.max(2), shift: 0, first: 0, cells: VecDeque::new(), first_ns: u64::MAX, last_ns: 0 }
    }

    pub(crate) fn add(&mut self, time_ns: u64, lane: usize, count: u64) {
        self.cover(time_ns);
        self.lanes_of(time_ns, lane + 1)[lane] += count;
    }

    /// Takes in all counts of another of as many cells.
    pub(super) fn append(&mut self, other: &Self) {
        let Some((first_ns, last_ns)) = other.span_ns() else { return };
        // From now on the cells here are at least as long as those of the other, whose span is within this one.
        [first_ns, last_ns].into_iter().for_each(|time_ns| self.cover(time_ns));
        for (place, counts) in (0..).zip(&other.cells) {
            let from_ns = (other.first + place) << other.shift;
            let lanes = self.lanes_of(from_ns.max(first_ns), counts.len());
            lanes.iter_mut().zip(counts).for_each(|(into, count)| *into += count);
        }
    }

    /// Makes sure that a time has a cell.
    pub(super) fn cover(&mut self, time_ns: u64) {
        self.first_ns = self.first_ns.min(time_ns);
        self.last_ns = self.last_ns.max(time_ns);
        while (self.last_ns >> self.shift) - (self.first_ns >> self.shift) >= self.max_cells as u64 {
            self.halve();
        }
        let first = self.first_ns >> self.shift;
        if self.cells.is_empty() {
            self.first = first;
        }
        for _ in first..self.first {
            self.cells.push_front(Vec::new());
        }
        self.first = first;
        let place = ((time_ns >> self.shift) - first) as usize;
        if self.cells.len() <= place {
            self.cells.resize(place + 1, Vec::new());
        }
    }

    /// The counts of so many lanes, of a time that has a cell.
    pub(super) fn lanes_of(&mut self, time_ns: u64, lanes: usize) -> &mut [u64] {
        let cell = &mut self.cells[((time_ns >> self.shift) - self.first) as usize];
        if cell.len() < lanes {
            cell.reserve_exact(lanes - cell.len());
            cell.resize(lanes, 0);
        }
        cell
    }

    /// Makes cells twice as long.
    fn halve(&mut self) {
        self.shift += 1;
        let is_first_odd = self.first % 2 == 1;
        self.first /= 2;
        let mut halved = VecDeque::new();
        for (index, cell) in std::mem::take(&mut self.cells).into_iter().enumerate() {
            if index > 0 && (index % 2 == 1) != is_first_odd {
                let into: &mut Vec<u64> = halved.back_mut().expect("the first cell is there already");
                into.resize(into.len().max(cell.len()), 0);
                into.iter_mut().zip(cell).for_each(|(into, count)| *into += count);
            } else {
                halved.push_back(cell);
            }
        }
        self.cells = halved;
    }

    /// From when to when the cell of a time is.
    pub(super) fn range_ns(&self, time_ns: u64) -> RangeInclusive<u64> {
        let from_ns = time_ns >> self.shift << self.shift;
        from_ns..=from_ns + ((1 << self.shift) - 1)
    }

    /// The first and the last time, if there is any.
    pub(super) fn span_ns(&self) -> Option<(u64, u64)> {
        (!self.cells.is_empty()).then_some((self.first_ns, self.last_ns))
    }

    /// At most so many columns, of equally many cells each.
    ///
    /// What would be less than half a column at the end is part of the last one.
    pub(super) fn columns(&self, max_columns: usize) -> Vec<TimeColumn> {
        let Some((first_ns, last_ns)) = self.span_ns() else { return Vec::new() };
        let cells = (last_ns >> self.shift) - self.first + 1;
        let cells_each = cells.div_ceil(max_columns.max(1) as u64) as usize;
        let mut columns: Vec<TimeColumn> = Vec::new();
        for (index, cell) in self.cells.iter().enumerate() {
            if index % cells_each == 0 {
                // In 128 bits, since the last cell may end behind the last time that there can be.
                let from_ns = u128::from(self.first + index as u64) << self.shift;
                let to_ns = from_ns + ((cells_each as u128) << self.shift);
                let covered_ns = to_ns.min(u128::from(last_ns) + 1) - from_ns.max(first_ns.into());
                match columns.last_mut() {
                    Some(last) if 2 * covered_ns < to_ns - from_ns => last.covered_ns += covered_ns,
                    _ => columns.push(TimeColumn { covered_ns, counts: Vec::new() }),
                }
            }
            let counts = &mut columns.last_mut().expect("the first cell begins a column").counts;
            counts.resize(counts.len().max(cell.len()), 0);
            counts.iter_mut().zip(cell).for_each(|(into, count)| *into += count);
        }
        if let Some(last) = columns.last_mut() {
            // N records are N - 1 gaps apart. Without the one behind them the last column would seem to have the highest rate.
            let to_next_cell_ns = !last_ns & ((1 << self.shift) - 1);
            let records = last.counts.iter().sum::<u64>().max(1);
            last.covered_ns += (last.covered_ns / u128::from(records)).min(to_next_cell_ns.into());
        }
        columns
    }
}

/// A stretch of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TimeColumn {
    /// How long it is, without what is before the first or, but for a gap between records, behind the last time of all.
    pub(super) covered_ns: u128,
    counts: Vec<u64>,
}

impl TimeColumn {
    /// How much of a lane.
    pub(super) fn count(&self, lane: usize) -> u64 {
        self.counts.get(lane).copied().unwrap_or_default()
    }

    /// One behind the highest lane that there may be something of.
    pub(super) fn lanes(&self) -> usize {
        self.counts.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(cells: &TimeCells, columns: usize) -> Vec<(u128, u64)> {
        cells.columns(columns).iter().map(|column| (column.covered_ns, column.count(0))).collect()
    }

    #[test]
    fn cells_become_longer_as_the_trace_does() {
        let mut cells = TimeCells::new(4);
        for (time_ns, shift, all) in [
            (5, 0, vec![(1, 1)]),
            (8, 0, vec![(1, 1), (1, 0), (1, 0), (1, 1)]),
            (9, 1, vec![(1, 1), (2, 0), (2, 2)]),
            (2, 1, vec![(2, 1), (2, 1), (2, 0), (2, 2)]),
            (64, 5, vec![(30, 4), (32, 0), (1, 1)]),
        ] {
            cells.add(time_ns, 0, 1);
            assert_eq!((cells.shift, cells.cells.len()), (shift, all.len()), "{time_ns}");
            // The last column is shorter than half, and so part of the one before; the gap behind it ends with its cell.
            let all = if time_ns == 64 { vec![(30, 4), (64, 1)] } else { all };
            assert_eq!(counts(&cells, 4), all, "{time_ns}");
        }
        assert_eq!((cells.range_ns(40), cells.span_ns()), (32..=63, Some((2, 64))));
    }

    #[test]
    fn the_order_makes_no_difference() {
        let times_ns = [7_u64, 1 << 40, 0, 12_345, 99, 1 << 63, 1 << 20, 12_346, u64::MAX, 3];
        let mut forth = TimeCells::new(8);
        let mut back = TimeCells::new(8);
        times_ns.iter().for_each(|&time_ns| forth.add(time_ns, (time_ns % 3) as usize, 1));
        times_ns.iter().rev().for_each(|&time_ns| back.add(time_ns, (time_ns % 3) as usize, 1));
        assert_eq!((forth.shift, forth.cells.len()), (61, 8));
        assert_eq!(forth.columns(8), back.columns(8));
        assert_eq!(forth.columns(8).iter().map(|column| column.covered_ns).sum::<u128>(), 1 << 64);
    }

    #[test]
    fn two_in_one_are_as_if_all_had_been_added_to_one() {
        let times_ns = [3_u64, 5, 900, 1_000, 1_001, 4_000, 1 << 40, (1 << 40) + 77, u64::MAX - 1, u64::MAX];
        for split in 0..=times_ns.len() {
            for of in [1, 3, times_ns.len()] {
                let mut all = TimeCells::new(4);
                let (mut one, mut other) = (all.clone(), all.clone());
                for (place, &time_ns) in times_ns[..of].iter().enumerate() {
                    all.add(time_ns, place % 3, 1);
                    if place < split { one.add(time_ns, place % 3, 1) } else { other.add(time_ns, place % 3, 1) }
                }
                let mut forth = one.clone();
                forth.append(&other);
                other.append(&one);
                for appended in [forth, other] {
                    assert_eq!(appended.span_ns(), all.span_ns(), "{split} of {of}");
                    assert_eq!(appended.columns(4), all.columns(4), "{split} of {of}");
                }
            }
        }
    }

    #[test]
    fn columns_are_of_equally_many_cells() {
        let mut cells = TimeCells::new(64);
        (0..60).for_each(|time_ns| cells.add(time_ns, 0, 1));
        assert_eq!(counts(&cells, 60), vec![(1, 1); 60]);
        assert_eq!(counts(&cells, 59), vec![(2, 2); 30]);
        assert_eq!(counts(&cells, 7), [(9, 9), (9, 9), (9, 9), (9, 9), (9, 9), (9, 9), (6, 6)]);
        assert_eq!(counts(&cells, 1), [(60, 60)]);
        assert_eq!(counts(&cells, 0), [(60, 60)]);
        assert_eq!(counts(&TimeCells::new(64), 10), []);
    }
}
