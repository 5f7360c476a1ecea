//! Counts of values by size, exact and in any order.

/// How many values there are in each stretch of numbers: from a power of two to the next, or in equal parts of that.
///
/// 0 and all that is below it are apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Buckets {
    /// There are two to the power of this many parts between powers of two.
    part_bits: u32,
    counts: Vec<u64>,
    negative: u64,
}

impl Buckets {
    /// More parts could not be told apart by three digits.
    const MAX_PART_BITS: u32 = 4;

    /// By powers of two, each in 2^`part_bits` parts; more than 16 parts are 16.
    pub(crate) fn new(part_bits: u32) -> Self {
        Self { part_bits: part_bits.min(Self::MAX_PART_BITS), counts: Vec::new(), negative: 0 }
    }

    #[inline]
    pub(crate) fn add(&mut self, value: u64, count: u64) {
        let place = self.place(value);
        if self.counts.len() <= place {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] += count;
    }

    #[inline]
    pub(crate) fn add_signed(&mut self, value: i64, count: u64) {
        match u64::try_from(value) {
            Ok(value) => self.add(value, count),
            Err(_) => self.negative += count,
        }
    }

    /// Where a value is counted. What is below 2^`part_bits` has places of its own.
    pub(super) fn place(&self, value: u64) -> usize {
        let bits = self.part_bits;
        match value.checked_ilog2() {
            Some(log2) if log2 >= bits => {
                let part = (value >> (log2 - bits)) - (1 << bits);
                (((log2 - bits + 1) << bits) as usize) + part as usize
            }
            _ => value as usize,
        }
    }

    /// The values of a place: from, and up to but without.
    pub(super) fn range(&self, place: usize) -> (u128, u128) {
        let parts = 1 << self.part_bits;
        if place < parts {
            return (place as u128, place as u128 + 1);
        }
        let shift = place / parts - 1;
        let from = ((parts + place % parts) as u128) << shift;
        (from, from + (1 << shift))
    }

    /// How many values are at a place.
    pub(super) fn count(&self, place: usize) -> u64 {
        self.counts.get(place).copied().unwrap_or_default()
    }

    /// The first and the last place that has values.
    pub(super) fn places(&self) -> Option<(usize, usize)> {
        let has_some = |count: &u64| *count > 0;
        Some((self.counts.iter().position(has_some)?, self.counts.iter().rposition(has_some)?))
    }

    /// How many values are below 0.
    pub(super) fn negative(&self) -> u64 {
        self.negative
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_each_other_without_a_gap() {
        for part_bits in 0..=4 {
            let buckets = Buckets::new(part_bits);
            let mut next = 0;
            for place in 0.. {
                let (from, to) = buckets.range(place);
                assert_eq!(from, next, "{part_bits} bits, place {place}");
                assert_eq!(buckets.place(from as u64), place);
                assert_eq!(buckets.place((to - 1) as u64), place);
                next = to;
                if to == 1 << 64 {
                    break;
                }
            }
        }
    }

    #[test]
    fn counts_do_not_depend_on_the_order() {
        let values = [0, 5, -1, 1 << 40, 5, i64::MIN, i64::MAX, 3];
        let mut forth = Buckets::new(1);
        let mut back = Buckets::new(1);
        values.iter().for_each(|&value| forth.add_signed(value, 1));
        values.iter().rev().for_each(|&value| back.add_signed(value, 1));
        assert_eq!(forth, back);
        assert_eq!((forth.negative(), forth.count(forth.place(5)), forth.count(0), forth.count(999)), (2, 2, 1, 0));
        forth.add(u64::MAX, 7);
        assert_eq!(forth.count(forth.place(u64::MAX)), 7);
    }
}
