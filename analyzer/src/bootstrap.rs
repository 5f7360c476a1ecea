//! How sure one can be of a change: percentiles of two lists compared again and again, each time of other draws from them (bootstrap).

use crate::latencies::{Latencies, Percentile};

/// How often percentiles are taken anew.
pub(crate) const RESAMPLES: usize = 2_000;
/// What part of what comes out is within an interval.
pub(crate) const CONFIDENCE: f64 = 0.95;
/// Which of the changes, in order, counted from 1, bound the interval: by nearest rank 2.5 % and 97.5 % of them.
const BOUNDS: [usize; 2] = [RESAMPLES / 40, RESAMPLES - RESAMPLES / 40];
/// The same for all percentiles of all groups, so that each interval is the same whatever else is asked.
const SEED: u64 = 0x5eed;

/// By what part a percentile has changed, `None` if that cannot be said; and what bounds the interval of that.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Change {
    pub(crate) change: Option<f64>,
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
}

impl Change {
    pub(crate) const UNKNOWN: Self = Self { change: None, low: None, high: None };

    /// The change of a percentile from one list to another.
    pub(crate) fn of(old: &mut Latencies, new: &mut Latencies, percentile: &Percentile) -> Self {
        let (Some(old_rank), Some(new_rank)) = (percentile.rank(old.count()), percentile.rank(new.count())) else {
            return Self::UNKNOWN;
        };
        let mut random = Random(SEED);
        let mut draw = |latencies: &mut Latencies, rank| {
            let count = latencies.count();
            let ranks: Vec<_> = (0..RESAMPLES).map(|_| random.resampled_rank(rank, count)).collect();
            latencies.at_ranks(&ranks)
        };
        let (olds, news) = (draw(old, old_rank), draw(new, new_rank));
        let mut changes: Vec<_> = olds.into_iter().zip(news).map(|(old, new)| change(old, new)).collect();
        changes.sort_unstable_by(f64::total_cmp);
        let [low, high] = BOUNDS.map(|rank| Some(changes[rank - 1]).filter(|change| change.is_finite()));
        let change = part_changed(old.at_ranks(&[old_rank])[0], new.at_ranks(&[new_rank])[0]);
        Self { change, low, high }
    }
}

/// By what part something has changed, `None` if that cannot be said.
pub(crate) fn part_changed(old: u64, new: u64) -> Option<f64> {
    Some(change(old, new)).filter(|change| change.is_finite())
}

/// Infinite from 0 to anything else.
fn change(old: u64, new: u64) -> f64 {
    if old == new { 0.0 } else { (new as f64 - old as f64) / old as f64 }
}

/// Numbers that look random: SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    /// Above 0 and below 1.
    fn uniform(&mut self) -> f64 {
        ((self.next() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    /// Normally distributed, by the polar method.
    fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let square = x * x + y * y;
            if square < 1.0 && square > 0.0 {
                return x * (-2.0 * square.ln() / square).sqrt();
            }
        }
    }

    /// Gamma distributed with a shape of at least 1, by the method of Marsaglia and Tsang.
    fn gamma(&mut self, shape: f64) -> f64 {
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v > 0.0 && self.uniform().ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }

    /// Which of `count` sorted values comes out at a rank when as many are drawn from them, each any number of times, and sorted; ranks count from 1.
    ///
    /// Drawing a value is taking a number from 0 to 1 and the value at that part of the list. Of `count` such numbers, the one at the rank is beta
    /// distributed, so that one draw does for all of them.
    fn resampled_rank(&mut self, rank: u64, count: u64) -> u64 {
        let below = self.gamma(rank as f64);
        let above = self.gamma((count - rank + 1) as f64);
        let part = below / (below + above);
        ((part * count as f64).ceil() as u64).clamp(1, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latencies::Budget;

    fn latencies(budget: usize, values: impl IntoIterator<Item = u64>) -> Latencies {
        let mut latencies = Latencies::new(&Budget::new(budget));
        values.into_iter().for_each(|value| latencies.add(value));
        latencies
    }

    fn of(old: &mut Latencies, new: &mut Latencies, percentile: &str) -> (f64, f64, f64) {
        let Change { change, low, high } = Change::of(old, new, &percentile.parse().unwrap());
        (change.unwrap(), low.unwrap(), high.unwrap())
    }

    #[test]
    fn small_cases_are_as_computed_by_hand() {
        // The fifth of ten draws from 1 to 10 is at most n if five or more of the draws are: with n of ten chances in each, the probability is 0.0016 for 1,
        // 0.0328 for 2, 0.9527 for 7 and 0.9936 for 8. So 2.5 % are reached at 2, and 97.5 % at 8.
        let mut ten = latencies(100, 1..=10);
        let mut five = latencies(100, [5]);
        assert_eq!(of(&mut five, &mut ten, "50"), (0.0, -0.6, 0.6));
        // The other way round the bounds are those of 5/8 and 5/2.
        assert_eq!(of(&mut ten, &mut five, "50"), (0.0, -0.375, 1.5));
        // The largest of ten draws is at most n with the probability (n/10)^10: 0.0282 for 7, 0.006 for 6; above 0.975 only for 10.
        assert_eq!(of(&mut five, &mut ten, "100"), (1.0, 0.4, 1.0));
        // Nothing to be unsure of.
        assert_eq!(of(&mut five, &mut latencies(100, [10, 10, 10]), "99.9"), (1.0, 1.0, 1.0));
    }

    #[test]
    fn ranks_come_out_as_often_as_they_should() {
        let mut random = Random(7);
        // The first of two draws from two: the smaller value unless both draws take the larger.
        let smaller = (0..100_000).filter(|_| random.resampled_rank(1, 2) == 1).count();
        assert!(smaller.abs_diff(75_000) < 500, "{smaller}");
        // Against drawing all of them.
        let mut drawn = [[0u32; 7]; 2];
        for _ in 0..100_000 {
            drawn[0][random.resampled_rank(4, 6) as usize] += 1;
            let mut draws = [0; 6].map(|_: u64| random.next() % 6 + 1);
            draws.sort_unstable();
            drawn[1][draws[3] as usize] += 1;
        }
        for (one, all) in drawn[0].iter().zip(drawn[1]) {
            assert!(one.abs_diff(all) < 1_000, "{drawn:?}");
        }
    }

    #[test]
    fn it_is_the_same_each_time_and_within_its_error_from_a_histogram() {
        let values = |step: u64| (1..=5_000).map(move |n: u64| 1_000 + n * step);
        let exact = of(&mut latencies(10_000, values(7)), &mut latencies(10_000, values(8)), "99");
        assert_eq!(exact, of(&mut latencies(10_000, values(7)), &mut latencies(10_000, values(8)), "99"));
        let (mut old, mut new) = (latencies(10, values(7)), latencies(10, values(8)));
        assert!(!old.is_exact() && !new.is_exact());
        let near = of(&mut old, &mut new, "99");
        for (near, exact) in [(near.0, exact.0), (near.1, exact.1), (near.2, exact.2)] {
            assert!((near - exact).abs() < 0.003, "{near} {exact}");
        }
        assert!(exact.1 < exact.0 && exact.0 < exact.2 && exact.1 > 0.12 && exact.2 < 0.15, "{exact:?}");
    }

    #[test]
    fn from_0_there_is_no_change_in_percent() {
        let (mut zero, mut some) = (latencies(10, [0, 0]), latencies(10, [1]));
        assert_eq!(Change::of(&mut zero, &mut some, &"50".parse().unwrap()), Change::UNKNOWN);
        assert_eq!(of(&mut zero, &mut latencies(10, [0]), "50"), (0.0, 0.0, 0.0));
        assert_eq!(Change::of(&mut latencies(10, []), &mut some, &"50".parse().unwrap()), Change::UNKNOWN);
    }
}
