//! The time of day, where it is asked for: timestamps are of a monotonic clock, and the facts of a file say how far that is off.

use super::block::Block;

const NANOS_PER_SEC: u64 = 1_000_000_000;
const SECONDS_PER_DAY: u64 = 86_400;

/// The time of day of records, by the facts of the file that is being read.
#[derive(Debug, Default)]
pub(crate) struct WallClock {
    /// From the trace's clock to ns since 1970.
    offset_ns: Option<i64>,
    /// The time of day of the first record of all.
    start_ns: Option<u64>,
    /// The second that was written last, and how: most records are of the same one.
    second: Option<(u64, [u8; 20])>,
}

impl WallClock {
    /// Goes on with a file with this offset, `None` if it is not known.
    pub(crate) const fn set_offset(&mut self, offset_ns: Option<i64>) {
        self.offset_ns = offset_ns;
    }

    /// Whether the file says how to tell it.
    #[cfg(feature = "columns")]
    pub(crate) const fn is_known(&self) -> bool {
        self.offset_ns.is_some()
    }

    /// Takes the time of the first record of all.
    pub(crate) fn start(&mut self, timestamp_ns: u64) {
        self.start_ns = self.at(timestamp_ns);
    }

    /// Returns the time of day in ns since 1970; `None` if it is not known, or not within 2^64 ns from then on.
    pub(crate) fn at(&self, timestamp_ns: u64) -> Option<u64> {
        timestamp_ns.checked_add_signed(self.offset_ns?)
    }

    /// Returns how long after the first record of all a time is, and whether it is before it; as the time of day tells, which all files share.
    #[cold]
    pub(super) fn since_start(&self, timestamp_ns: u64, start_ns: u64) -> (u64, bool) {
        let (now, start) = self.at(timestamp_ns).zip(self.start_ns).unwrap_or((timestamp_ns, start_ns));
        (now.abs_diff(start), now < start)
    }

    /// Writes `2023-11-14T22:13:20.000000000Z`.
    // Apart from those who mostly do without.
    #[cold]
    pub(super) fn put(&mut self, timestamp_ns: u64, block: &mut Block) {
        let Some(ns) = self.at(timestamp_ns) else { return block.put("unknown") };
        let second = ns / NANOS_PER_SEC;
        let text = match self.second {
            Some((last, text)) if last == second => text,
            _ => self.second.insert((second, date_and_time(second))).1,
        };
        block.put(text);
        let below = ns % NANOS_PER_SEC;
        block.three_digits(below / 1_000_000);
        block.three_digits(below / 1_000);
        block.three_digits(below);
        block.byte(b'Z');
    }

    /// Writes ns since 1970 as a decimal number, `unknown` where they are not known.
    #[cold]
    pub(super) fn put_ns(&self, timestamp_ns: u64, unknown: &str, block: &mut Block) {
        match self.at(timestamp_ns) {
            Some(ns) => block.decimal(ns),
            None => block.put(unknown),
        }
    }
}

/// Returns ns since 1970 as `2023-11-14T22:13:20.000000000Z`.
pub(crate) fn utc(ns: u64) -> String {
    let text = date_and_time(ns / NANOS_PER_SEC);
    format!("{}{:09}Z", String::from_utf8_lossy(&text), ns % NANOS_PER_SEC)
}

/// `2023-11-14T22:13:20.` of a second since 1970; the last year that 2^64 ns come to is 2554.
fn date_and_time(second: u64) -> [u8; 20] {
    // Days are counted from 0000-03-01, so that a leap day is the last of its year, in eras of 400 years, which all have as many.
    let day = second / SECONDS_PER_DAY + 719_468;
    let (era, day_of_era) = (day / 146_097, day % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // From March on, months have 31, 30, 31, 30, 31 days again and again: 153 in five.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let time = second % SECONDS_PER_DAY;
    let mut text = *b"0000-00-00T00:00:00.";
    let numbers = [
        (0..4, year),
        (5..7, month),
        (8..10, day_of_month),
        (11..13, time / 3600),
        (14..16, time / 60 % 60),
        (17..19, time % 60),
    ];
    for (places, mut number) in numbers {
        for digit in text[places].iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::block::written;

    #[test]
    fn dates_are_those_of_the_gregorian_calendar() {
        for (second, text) in [
            (0, "1970-01-01T00:00:00"),
            (951_782_399, "2000-02-28T23:59:59"),
            (951_782_400, "2000-02-29T00:00:00"),
            (951_868_800, "2000-03-01T00:00:00"),
            (1_700_000_000, "2023-11-14T22:13:20"),
            (1_709_164_800, "2024-02-29T00:00:00"),
            (1_735_689_599, "2024-12-31T23:59:59"),
            (1_735_689_600, "2025-01-01T00:00:00"),
            (4_107_542_399, "2100-02-28T23:59:59"),
            (4_107_542_400, "2100-03-01T00:00:00"),
            (18_446_744_073, "2554-07-21T23:34:33"),
        ] {
            assert_eq!(utc(second * NANOS_PER_SEC), format!("{text}.000000000Z"));
        }
        assert_eq!(utc(u64::MAX), "2554-07-21T23:34:33.709551615Z");
    }

    #[test]
    fn the_second_that_is_kept_is_not_taken_for_another() {
        let mut clock = WallClock::default();
        clock.set_offset(Some(1_700_000_000_000_000_000));
        let text = written(|block| {
            for ns in [0, 1, 999_999_999, 1_000_000_000, 5] {
                clock.put(ns, block);
                block.byte(b' ');
            }
        });
        assert_eq!(
            text,
            "2023-11-14T22:13:20.000000000Z 2023-11-14T22:13:20.000000001Z 2023-11-14T22:13:20.999999999Z \
             2023-11-14T22:13:21.000000000Z 2023-11-14T22:13:20.000000005Z "
        );
    }

    #[test]
    fn times_outside_of_what_64_bits_hold_are_unknown() {
        let mut clock = WallClock::default();
        clock.set_offset(Some(-5));
        assert_eq!((clock.at(4), clock.at(5)), (None, Some(0)));
        clock.set_offset(Some(5));
        assert_eq!((clock.at(u64::MAX - 5), clock.at(u64::MAX - 4)), (Some(u64::MAX), None));
        assert_eq!(written(|block| clock.put(u64::MAX, block)), "unknown");
        assert_eq!(written(|block| clock.put_ns(u64::MAX, "null", block)), "null");
    }
}
