//! What to make of many measurements on a machine that others use, too.

/// The order statistics of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    pub min: f64,
    pub first_quartile: f64,
    pub median: f64,
    pub third_quartile: f64,
}

impl Summary {
    /// Of a sample that is not empty.
    #[must_use]
    pub fn of(sample: &[f64]) -> Self {
        let mut sorted = sample.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |part: f64| sorted.get(((sorted.len() as f64 - 1.0) * part).round() as usize).map_or(f64::NAN, |v| *v);
        Self { min: at(0.0), first_quartile: at(0.25), median: at(0.5), third_quartile: at(0.75) }
    }
}

/// The ratio of two medians, and between which values it lies, as far as the sample tells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
}

impl Ratio {
    const RESAMPLES: usize = 300;

    /// The ratio of the medians of `sample` and `reference`, measured in the same rounds, with an interval of 95 % from resampled
    /// rounds.
    #[must_use]
    pub fn of(sample: &[f64], reference: &[f64]) -> Self {
        let rounds = sample.len().min(reference.len());
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mut ratios: Vec<f64> = (0..Self::RESAMPLES)
            .map(|_| {
                let drawn: Vec<usize> = (0..rounds).map(|_| random.below(rounds)).collect();
                let median_of = |values: &[f64]| median(drawn.iter().map(|&round| values[round]).collect());
                median_of(sample) / median_of(reference)
            })
            .collect();
        ratios.sort_by(f64::total_cmp);
        let at = |part: f64| ratios[((ratios.len() - 1) as f64 * part).round() as usize];
        Self { ratio: median(sample.to_vec()) / median(reference.to_vec()), low: at(0.025), high: at(0.975) }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    let middle = values.len() / 2;
    if values.is_empty() { f64::NAN } else { *values.select_nth_unstable_by(middle, f64::total_cmp).1 }
}

/// xorshift: good enough to draw rounds.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_has_the_order_statistics() {
        let summary = Summary::of(&[5.0, 1.0, 4.0, 2.0, 3.0]);
        assert_eq!(summary, Summary { min: 1.0, first_quartile: 2.0, median: 3.0, third_quartile: 4.0 });
    }

    #[test]
    fn a_sample_is_once_its_own_length() {
        let sample: Vec<f64> = (1..100).map(f64::from).collect();
        assert_eq!(Ratio::of(&sample, &sample), Ratio { ratio: 1.0, low: 1.0, high: 1.0 });
        let twice: Vec<f64> = sample.iter().map(|value| 2.0 * value).collect();
        let ratio = Ratio::of(&twice, &sample);
        assert!(ratio.low <= 2.0 && 2.0 <= ratio.high, "{ratio:?}");
    }
}
