//! Many latencies, and what they come to: exact percentiles while memory allows, histograms with a stated error beyond.

use std::cell::Cell;
use std::rc::Rc;

use hdrhistogram::Histogram;

use crate::render::{Cell as TableCell, Column};

/// How many latencies are kept one by one in all, eight bytes each.
pub(crate) const MAX_EXACT: usize = 16 << 20;
/// How many digits of a latency a histogram keeps.
pub(crate) const HISTOGRAM_DIGITS: u8 = 3;

/// How many more latencies may be kept one by one.
#[derive(Debug, Clone)]
pub(crate) struct Budget(Rc<Cell<usize>>);

impl Budget {
    pub(crate) fn new(values: usize) -> Self {
        Self(Rc::new(Cell::new(values)))
    }

    fn take(&self) -> bool {
        let left = self.0.get();
        self.0.set(left.saturating_sub(1));
        left > 0
    }

    fn give_back(&self, values: usize) {
        self.0.set(self.0.get() + values);
    }
}

/// Latencies, in ns, or other whole numbers.
#[derive(Debug, Clone)]
pub(crate) struct Latencies {
    budget: Budget,
    values_ns: Vec<u64>,
    /// All of them, once there are too many to keep.
    histogram: Option<Box<Histogram<u64>>>,
    count: u64,
    sum_ns: u128,
    least_ns: u64,
    most_ns: u64,
}

impl Latencies {
    pub(crate) fn new(budget: &Budget) -> Self {
        Self {
            budget: budget.clone(),
            values_ns: Vec::new(),
            histogram: None,
            count: 0,
            sum_ns: 0,
            least_ns: u64::MAX,
            most_ns: 0,
        }
    }

    #[inline]
    pub(crate) fn add(&mut self, latency_ns: u64) {
        self.count += 1;
        self.sum_ns += u128::from(latency_ns);
        self.least_ns = self.least_ns.min(latency_ns);
        self.most_ns = self.most_ns.max(latency_ns);
        if self.histogram.is_none() && self.budget.take() {
            self.values_ns.push(latency_ns);
        } else {
            record(self.as_histogram(), latency_ns);
        }
    }

    /// Takes in all of another.
    pub(crate) fn append(&mut self, other: &mut Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            std::mem::swap(self, other);
            return;
        }
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.least_ns = self.least_ns.min(other.least_ns);
        self.most_ns = self.most_ns.max(other.most_ns);
        if self.histogram.is_none() && other.histogram.is_none() {
            self.values_ns.append(&mut other.values_ns);
        } else {
            let own = self.as_histogram();
            // All values of one are values of the other: both hold any u64.
            let _ = own.add(&**other.as_histogram());
        }
        *other = Self::new(&self.budget);
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.budget.give_back(self.values_ns.len());
        *self = Self::new(&self.budget);
    }

    #[cold]
    fn as_histogram(&mut self) -> &mut Box<Histogram<u64>> {
        self.budget.give_back(self.values_ns.len());
        let values_ns = std::mem::take(&mut self.values_ns);
        self.histogram.get_or_insert_with(|| {
            let mut histogram = Box::new(Histogram::new(HISTOGRAM_DIGITS).expect("so many digits are allowed"));
            histogram.auto(true);
            values_ns.iter().for_each(|&latency_ns| record(&mut histogram, latency_ns));
            histogram
        })
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Whether percentiles are exact.
    pub(crate) fn is_exact(&self) -> bool {
        self.histogram.is_none()
    }

    pub(crate) fn least_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.least_ns)
    }

    pub(crate) fn most_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.most_ns)
    }

    /// Rounded down.
    pub(crate) fn mean_ns(&self) -> Option<u64> {
        (self.count > 0).then(|| (self.sum_ns / u128::from(self.count)) as u64)
    }

    pub(crate) fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// The latencies at percentiles, `None` for all if there are no latencies.
    pub(crate) fn at(&mut self, percentiles: &[Percentile]) -> Vec<Option<u64>> {
        percentiles.iter().map(|percentile| self.at_rank(percentile.rank(self.count)?)).collect()
    }

    /// The latency of a rank, counted from 1; `None` if there are not so many.
    pub(crate) fn at_rank(&mut self, rank: u64) -> Option<u64> {
        // Once it is sorted, this costs no more than a look at each.
        self.values_ns.sort_unstable();
        match &self.histogram {
            None => self.values_ns.get((rank as usize).checked_sub(1)?).copied(),
            Some(histogram) => Some(at_rank(histogram, rank).clamp(self.least_ns, self.most_ns)),
        }
    }

    /// What [`columns`] of a table have of them.
    pub(crate) fn cells(&mut self, percentiles: &[Percentile]) -> Vec<TableCell> {
        let first = [self.least_ns(), self.mean_ns()];
        first.into_iter().chain(self.at(percentiles)).chain([self.most_ns()]).map(TableCell::ns).collect()
    }

    /// The latencies at ranks, counted from 1 and at most the count; none if there are no latencies.
    pub(crate) fn at_ranks(&mut self, ranks: &[u64]) -> Vec<u64> {
        self.values_ns.sort_unstable();
        let Some(histogram) = &self.histogram else {
            return ranks.iter().filter_map(|&rank| self.values_ns.get(rank as usize - 1).copied()).collect();
        };
        let mut seen = 0;
        let steps = histogram.iter_recorded().map(|step| {
            seen += step.count_at_value();
            (seen, step.value_iterated_to().clamp(self.least_ns, self.most_ns))
        });
        let steps: Vec<_> = steps.collect();
        let step = |&rank: &u64| steps.get(steps.partition_point(|&(seen, _)| seen < rank));
        ranks.iter().filter_map(step).map(|&(_, value_ns)| value_ns).collect()
    }

    /// Each latency, or about so, with how many there are of it.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(u64, u64)) {
        match &self.histogram {
            None => self.values_ns.iter().for_each(|&latency_ns| visit(latency_ns, 1)),
            Some(histogram) => {
                histogram.iter_recorded().for_each(|step| visit(step.value_iterated_to(), step.count_at_value()));
            }
        }
    }
}

/// Columns of a table for what latencies come to: least, mean, percentiles, most.
pub(crate) fn columns(percentiles: &[Percentile]) -> impl Iterator<Item = Column> {
    let names = percentiles.iter().map(Percentile::field);
    ["min".to_owned(), "mean".to_owned()].into_iter().chain(names).chain(["max".to_owned()]).map(Column::time)
}

fn record(histogram: &mut Histogram<u64>, latency_ns: u64) {
    // It grows as far as it has to.
    let _ = histogram.record(latency_ns);
}

/// The value of a rank, counted from 1: the highest that its place in the histogram stands for.
fn at_rank(histogram: &Histogram<u64>, rank: u64) -> u64 {
    let mut seen = 0;
    for step in histogram.iter_recorded() {
        seen += step.count_at_value();
        if seen >= rank {
            return step.value_iterated_to();
        }
    }
    histogram.max()
}

/// A percentile as it was written: a decimal number from 0 to 100.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Percentile {
    text: String,
    /// Of 100 times `unit`.
    share: u128,
    unit: u128,
}

impl Percentile {
    /// The rank, counted from 1, of the least of `count` sorted values that is not below this share of them.
    pub(crate) fn rank(&self, count: u64) -> Option<u64> {
        let rank = (self.share * u128::from(count)).div_ceil(100 * self.unit) as u64;
        (count > 0).then(|| rank.max(1))
    }

    /// As it was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// As a name: `p99_9` for 99.9.
    pub(crate) fn field(&self) -> String {
        format!("p{}", self.text.replace('.', "_"))
    }
}

/// Checks that each is asked for once, as each has a name of its own.
///
/// # Errors
///
/// One is given twice.
pub(crate) fn check_once(percentiles: &[Percentile]) -> anyhow::Result<()> {
    let is_again = |(place, percentile): &(usize, &Percentile)| percentiles[..*place].contains(percentile);
    match percentiles.iter().enumerate().find(is_again) {
        Some((_, percentile)) => anyhow::bail!("-p has {} twice", percentile.text()),
        None => Ok(()),
    }
}

impl std::str::FromStr for Percentile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        /// More digits make no difference in 64 bits.
        const MAX_DIGITS: usize = 15;

        let wrong = || format!("'{text}' is not a percentile; write a number from 0 to 100, such as 99.9");
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || whole.len() > 3 || !digits(whole) || !digits(fraction) {
            return Err(wrong());
        }
        if text.ends_with('.') {
            return Err(wrong());
        }
        if fraction.len() > MAX_DIGITS {
            return Err(format!("'{text}' has more than {MAX_DIGITS} digits behind its point"));
        }
        let unit = 10u128.pow(fraction.len() as u32);
        let share: u128 = format!("{whole}{fraction}").parse().map_err(|_| wrong())?;
        if share > 100 * unit {
            return Err(wrong());
        }
        Ok(Self { text: text.to_owned(), share, unit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percentile(text: &str) -> Percentile {
        text.parse().unwrap()
    }

    #[test]
    fn ranks_are_exact() {
        for (text, count, rank) in [
            ("50", 1, 1),
            ("50", 2, 1),
            ("50", 3, 2),
            ("0", 10, 1),
            ("100", 10, 10),
            ("99", 100, 99),
            ("99", 101, 100),
            // As a float, 0.999 * 1000 is 999.0000000000001 or so.
            ("99.9", 1_000, 999),
            ("99.9", 1_001, 1_000),
            ("99.9", 10_000, 9_990),
            ("99.99", 1_151, 1_151),
            ("7", 100, 7),
            ("29", 100, 29),
            ("57", 100, 57),
            ("50", u64::MAX, 1 << 63),
            ("33.333333333333333", 3, 1),
        ] {
            assert_eq!(percentile(text).rank(count), Some(rank), "{text} of {count}");
        }
        assert_eq!(percentile("50").rank(0), None);
        assert_eq!((percentile("99.90").text(), percentile("99.9").field().as_str()), ("99.90", "p99_9"));
    }

    #[test]
    fn what_is_no_percentile_is_refused() {
        for text in ["", "x", "-1", "+5", "100.1", "101", "1e1", "5.", ".5", "0050", "1.0000000000000001", "50%"] {
            assert!(text.parse::<Percentile>().is_err(), "{text}");
        }
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_list() {
        let mut latencies = Latencies::new(&Budget::new(1_000));
        for latency_ns in [5, 1, 4, 2, 3] {
            latencies.add(latency_ns);
        }
        let all: Vec<_> = ["0", "20", "20.1", "50", "80", "99.9", "100"].map(percentile).into();
        assert_eq!(latencies.at(&all), [1, 1, 2, 3, 4, 5, 5].map(Some));
        assert_eq!((latencies.least_ns(), latencies.most_ns(), latencies.mean_ns()), (Some(1), Some(5), Some(3)));
        assert_eq!(Latencies::new(&Budget::new(1)).at(&all), [None; 7]);
    }

    #[test]
    fn beyond_the_budget_a_histogram_is_within_its_error() {
        let budget = Budget::new(1_000);
        let mut latencies = Latencies::new(&budget);
        let mut few = Latencies::new(&budget);
        few.add(7);
        for n in 1..=100_000u64 {
            latencies.add(n * 1_000);
        }
        assert!(!latencies.is_exact() && few.is_exact());
        few.add(8);
        assert!(few.is_exact(), "what the other does not need any more is there for it");
        for (text, exact) in [("50", 50_000_000u64), ("99", 99_000_000), ("99.9", 99_900_000)] {
            let value = latencies.at(&[percentile(text)])[0].unwrap();
            assert!(value.abs_diff(exact) * 1_000 <= exact, "{text}: {value}");
        }
        assert_eq!(latencies.at(&[percentile("100"), percentile("0")])[0], Some(100_000_000));
        assert_eq!((latencies.count(), latencies.mean_ns()), (100_000, Some(50_000_500)));
        few.append(&mut latencies);
        assert_eq!((few.count(), few.is_exact(), few.least_ns(), latencies.count()), (100_002, false, Some(7), 0));
    }
}
