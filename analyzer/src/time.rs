//! Times and time windows as people write them.

use std::str::FromStr;

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// A time window: `START-END` or `START+LENGTH`, either side of the `-` may be left out.
///
/// Times count from the first record of the trace (`5s-`, `-10s`, `1s-2s`, `1s+200ms`), or are those of the trace's clock
/// (`@1234.5-@1240`). The start is in the window, the end is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TimeRange {
    start: Option<Instant>,
    end: Option<End>,
}

/// A point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Instant {
    /// Nanoseconds after the first record.
    Relative(u64),
    /// Nanoseconds of the trace's clock.
    Absolute(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    At(Instant),
    /// Nanoseconds after the start.
    After(u64),
}

impl TimeRange {
    /// Returns the window on the clock of a trace whose first record is at `first_ns`, in nanoseconds: the start, and the end,
    /// which is not in it. There is no end if none was given, or if it lies beyond all times.
    pub(crate) fn resolve(self, first_ns: u64) -> (u64, Option<u64>) {
        let at = |instant| match instant {
            Instant::Relative(ns) => first_ns.checked_add(ns),
            Instant::Absolute(ns) => Some(ns),
        };
        let Some(start_ns) = self.start.map_or(Some(0), at) else {
            // Nothing is so late.
            return (u64::MAX, Some(u64::MAX));
        };
        let end_ns = self.end.and_then(|end| match end {
            End::At(instant) => at(instant),
            // Without a start the window begins with the trace.
            End::After(ns) => self.start.map_or(Some(first_ns), at)?.checked_add(ns),
        });
        (start_ns, end_ns)
    }
}

impl FromStr for TimeRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let at = text.find(['-', '+']).ok_or_else(|| {
            format!("time window '{text}' has neither '-' nor '+'; write START-END, START-, -END or START+LENGTH")
        })?;
        let (start, rest) = text.split_at(at);
        let (sign, end) = rest.split_at(1);
        let start = (!start.is_empty()).then(|| start.parse()).transpose()?;
        let end = match (sign, end) {
            ("+", "") => return Err(format!("time window '{text}' has no length after '+'")),
            (_, "") => None,
            ("+", length) => Some(End::After(duration_ns(length)?)),
            (_, end) => Some(End::At(end.parse()?)),
        };
        if start.is_none() && end.is_none() {
            return Err(format!("time window '{text}' has neither a start nor an end"));
        }
        match (start, end) {
            (Some(Instant::Relative(from)), Some(End::At(Instant::Relative(to))))
            | (Some(Instant::Absolute(from)), Some(End::At(Instant::Absolute(to))))
                if from > to =>
            {
                Err(format!("time window '{text}' ends before it starts"))
            }
            _ => Ok(Self { start, end }),
        }
    }
}

impl FromStr for Instant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix('@') {
            Some(absolute) => duration_ns(absolute).map(Self::Absolute),
            None => duration_ns(text).map(Self::Relative),
        }
    }
}

/// Reads a duration, in nanoseconds: a decimal number and a unit (ns, us, µs, ms, s, m, h); seconds if there is none.
pub(crate) fn duration_ns(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is not a time; write a number and ns, us, ms, s, m or h, such as 1.5s");
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let unit_ns = match unit {
        "" | "s" => NANOS_PER_SEC,
        "ms" => 1_000_000,
        "us" | "µs" | "μs" => 1_000,
        "ns" => 1,
        "m" | "min" => 60 * NANOS_PER_SEC,
        "h" => 3600 * NANOS_PER_SEC,
        _ => return Err(wrong()),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return Err(wrong());
    }
    let too_long = || format!("time '{text}' is above {} s", u64::MAX / NANOS_PER_SEC);
    let whole: u64 =
        if whole.is_empty() { 0 } else { whole.parse().map_err(|_| wrong_or(whole, wrong(), too_long()))? };
    let mut ns = whole.checked_mul(unit_ns).ok_or_else(too_long)?;
    let mut digit_ns = unit_ns;
    for digit in fraction.chars() {
        let digit = digit.to_digit(10).ok_or_else(wrong)?;
        // A remainder below a nanosecond is cut off; the units of 60 and 3600 s divide evenly far enough.
        digit_ns /= 10;
        ns = ns.checked_add(u64::from(digit) * digit_ns).ok_or_else(too_long)?;
    }
    Ok(ns)
}

fn wrong_or(digits: &str, wrong: String, too_long: String) -> String {
    if digits.chars().all(|c| c.is_ascii_digit()) { too_long } else { wrong }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The window of a trace that starts at 10 s.
    fn window(text: &str) -> (u64, Option<u64>) {
        text.parse::<TimeRange>().unwrap().resolve(10 * NANOS_PER_SEC)
    }

    #[test]
    fn either_side_may_be_open() {
        assert_eq!(window("5s-"), (15_000_000_000, None));
        assert_eq!(window("-10s"), (0, Some(20_000_000_000)));
        assert_eq!(window("1s-2s"), (11_000_000_000, Some(12_000_000_000)));
        assert_eq!(TimeRange::default().resolve(7), (0, None));
    }

    #[test]
    fn a_length_counts_from_the_start() {
        assert_eq!(window("1s+200ms"), (11_000_000_000, Some(11_200_000_000)));
        assert_eq!(window("+3us"), (0, Some(10_000_003_000)));
        assert_eq!(window("@3+1"), (3_000_000_000, Some(4_000_000_000)));
    }

    #[test]
    fn times_of_the_clock_begin_with_an_at_sign() {
        assert_eq!(window("@1234.5-@1240"), (1_234_500_000_000, Some(1_240_000_000_000)));
        assert_eq!(window("@11-2s"), (11_000_000_000, Some(12_000_000_000)));
    }

    #[test]
    fn units_and_fractions_are_exact() {
        for (text, ns) in [
            ("1", 1_000_000_000),
            ("0.5", 500_000_000),
            (".5s", 500_000_000),
            ("1.5us", 1_500),
            ("7ns", 7),
            ("2m", 120_000_000_000),
            ("1.5h", 5_400_000_000_000),
            ("5µs", 5_000),
            ("0.123456789s", 123_456_789),
            ("18446744073.709551615", u64::MAX),
        ] {
            assert_eq!(duration_ns(text), Ok(ns), "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused_with_a_way_out() {
        for (text, message) in [
            ("5s", "time window '5s' has neither '-' nor '+'; write START-END, START-, -END or START+LENGTH"),
            ("-", "time window '-' has neither a start nor an end"),
            ("1s+", "time window '1s+' has no length after '+'"),
            ("2s-1s", "time window '2s-1s' ends before it starts"),
            ("x-", "'x' is not a time; write a number and ns, us, ms, s, m or h, such as 1.5s"),
            ("1.2.3-", "'1.2.3' is not a time; write a number and ns, us, ms, s, m or h, such as 1.5s"),
            ("5d-", "'5d' is not a time; write a number and ns, us, ms, s, m or h, such as 1.5s"),
            ("99999999999-", "time '99999999999' is above 18446744073 s"),
            ("99999999999999999999999-", "time '99999999999999999999999' is above 18446744073 s"),
        ] {
            assert_eq!(text.parse::<TimeRange>().unwrap_err(), message);
        }
    }
}
