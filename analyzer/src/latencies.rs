//! Many latencies, and what they come to: exact percentiles while memory allows, histograms with a stated error beyond.

use std::cell::Cell;
use std::rc::Rc;

use hdrhistogram::Histogram;

use crate::render::{Cell as TableCell, Column};

/// How many latencies are kept one by one in all, eight bytes each.
pub(crate) const MAX_EXACT: usize = 16 << 20;
/// So few are kept one by one whatever the budget, as a histogram would take more memory.
const FEW: usize = 1 << 10;
/// How many digits of a latency a histogram keeps, of which there are so many at most; and all others, which take an eighth of the memory.
const FINE_DIGITS: u8 = 3;
const MAX_FINE: usize = 256;
const COARSE_DIGITS: u8 = 2;

/// How far percentiles that are not exact may be off.
pub(crate) fn error_means() -> String {
    format!(
        "within 1/10^{FINE_DIGITS}, or 1/10^{COARSE_DIGITS} if more than {MAX_FINE} groups, hops and intervals are not exact"
    )
}

/// How many more latencies may be kept one by one, and in histograms of how many digits others are.
#[derive(Debug, Clone)]
pub(crate) struct Budget(Rc<Left>);

#[derive(Debug)]
struct Left {
    values: Cell<usize>,
    fine: Cell<usize>,
}

impl Budget {
    pub(crate) fn new(values: usize) -> Self {
        Self(Rc::new(Left { values: Cell::new(values), fine: Cell::new(MAX_FINE) }))
    }

    fn take(&self) -> bool {
        take_one(&self.0.values)
    }

    fn give_back(&self, values: usize) {
        self.0.values.set(self.0.values.get() + values);
    }

    fn histogram(&self) -> Box<Histogram<u32>> {
        let digits = if take_one(&self.0.fine) { FINE_DIGITS } else { COARSE_DIGITS };
        let mut histogram = Box::new(Histogram::new(digits).expect("so many digits are allowed"));
        histogram.auto(true);
        histogram
    }

    fn take_back(&self, histogram: Option<Box<Histogram<u32>>>) {
        let fine = histogram.filter(|histogram| histogram.sigfig() == FINE_DIGITS);
        self.0.fine.set(self.0.fine.get() + usize::from(fine.is_some()));
    }
}

#[inline]
fn take_one(left: &Cell<usize>) -> bool {
    let is_left = left.get() > 0;
    left.set(left.get().saturating_sub(1));
    is_left
}

/// Latencies, in ns, or other whole numbers.
#[derive(Debug, Clone)]
pub(crate) struct Latencies {
    budget: Budget,
    values_ns: Vec<u64>,
    /// How many of them are of the budget.
    taken: usize,
    /// All of them, once there are too many to keep.
    histogram: Option<Box<Histogram<u32>>>,
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
            taken: 0,
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
        if self.histogram.is_none() && self.has_room() {
            if self.values_ns.len() == self.values_ns.capacity() {
                self.grow();
            }
            self.values_ns.push(latency_ns);
        } else {
            record(self.as_histogram(), latency_ns);
        }
    }

    #[inline]
    fn has_room(&mut self) -> bool {
        let is_of_budget = self.budget.take();
        self.taken += usize::from(is_of_budget);
        is_of_budget || self.values_ns.len() < FEW
    }

    /// By a quarter, since what is not used counts as well.
    #[cold]
    fn grow(&mut self) {
        /// The first time.
        const LEAST: usize = 4;

        self.values_ns.reserve_exact((self.values_ns.len() / 4).max(LEAST));
    }

    /// Takes in all of another.
    pub(crate) fn append(&mut self, other: &mut Self) {
        if self.count == 0 {
            std::mem::swap(self, other);
            return;
        }
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.least_ns = self.least_ns.min(other.least_ns);
        self.most_ns = self.most_ns.max(other.most_ns);
        match &other.histogram {
            None if self.histogram.is_none() => {
                self.values_ns.append(&mut other.values_ns);
                self.taken += std::mem::take(&mut other.taken);
            }
            None => {
                let own = self.as_histogram();
                other.values_ns.iter().for_each(|&latency_ns| record(own, latency_ns));
            }
            // All values of one are values of the other: both hold any u64.
            Some(histogram) => _ = self.as_histogram().add(&**histogram),
        }
        other.clear();
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.budget.give_back(self.taken);
        self.budget.take_back(self.histogram.take());
        *self = Self::new(&self.budget);
    }

    #[cold]
    fn as_histogram(&mut self) -> &mut Histogram<u32> {
        self.budget.give_back(std::mem::take(&mut self.taken));
        let values_ns = std::mem::take(&mut self.values_ns);
        self.histogram.get_or_insert_with(|| {
            let mut histogram = self.budget.histogram();
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
            seen += u64::from(step.count_at_value());
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
                histogram
                    .iter_recorded()
                    .for_each(|step| visit(step.value_iterated_to(), step.count_at_value().into()));
            }
        }
    }
}

/// Columns of a table for what latencies come to: least, mean, percentiles, most.
pub(crate) fn columns(percentiles: &[Percentile]) -> impl Iterator<Item = Column> {
    let names = percentiles.iter().map(Percentile::field);
    ["min".to_owned(), "mean".to_owned()].into_iter().chain(names).chain(["max".to_owned()]).map(Column::time)
}

fn record(histogram: &mut Histogram<u32>, latency_ns: u64) {
    // It grows as far as it has to, and counts up to 2^32 of one place.
    let _ = histogram.record(latency_ns);
}

/// The value of a rank, counted from 1: the highest that its place in the histogram stands for.
fn at_rank(histogram: &Histogram<u32>, rank: u64) -> u64 {
    let mut seen = 0;
    for step in histogram.iter_recorded() {
        seen += u64::from(step.count_at_value());
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
    fn few_stay_exact_and_many_histograms_are_coarse() {
        let budget = Budget::new(5_000);
        let mut all: Vec<_> = (0..2 * MAX_FINE).map(|_| Latencies::new(&budget)).collect();
        for latencies in &mut all {
            (0..FEW as u64).for_each(|n| latencies.add(n));
        }
        assert!(all.iter().all(Latencies::is_exact));
        for latencies in &mut all {
            (FEW as u64..2_000).for_each(|n| latencies.add(n * 1_000));
        }
        let within = |latencies: &mut Latencies, parts| {
            let value = latencies.at_rank(1_500).unwrap();
            value.abs_diff(1_499_000) * parts <= 1_499_000
        };
        let fine = all.iter_mut().filter_map(|latencies| within(latencies, 1_000).then_some(())).count();
        assert!(fine >= MAX_FINE && all.iter_mut().all(|latencies| within(latencies, 100)), "{fine}");
        let digits = |latencies: &Latencies| latencies.histogram.as_ref().map(|histogram| histogram.sigfig());
        assert_eq!((digits(&all[10]), digits(&all[400])), (Some(FINE_DIGITS), Some(COARSE_DIGITS)));
        let [first, second] = all.first_chunk_mut().unwrap();
        first.append(second);
        assert_eq!((first.count(), first.at_rank(1), first.at_rank(2), second.count()), (4_000, Some(0), Some(0), 0));
        // What one does not need any more, another one can have.
        all[10].clear();
        (0..10_000).for_each(|n| all[400].add(n));
        (0..10_000).for_each(|n| all[10].add(n));
        assert_eq!((digits(&all[10]), digits(&all[400])), (Some(FINE_DIGITS), Some(COARSE_DIGITS)));
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
        assert_eq!(budget.0.values.get(), 999);
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
