//! Pictures made of characters: from numbers to lines of text, and nothing else.
//!
//! Each is as wide as it is told. At less than about 20 columns lines are as long as their numbers make them.

mod buckets;
mod heat_map;
mod histogram;
mod rates;
mod shares;
mod spark;
mod time_cells;

pub(crate) use self::{
    buckets::Buckets,
    heat_map::HeatMap,
    histogram::{histogram, histograms},
    shares::shares,
};
pub(crate) use self::{rates::Rates, spark::spark, time_cells::TimeCells};

/// What pictures are drawn with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    /// Columns of the terminal.
    pub(crate) width: usize,
    /// Whether there is nothing but ASCII.
    pub(crate) is_ascii: bool,
}

/// What values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Times, shown in whatever unit fits, to three digits.
    Ns,
    /// Numbers, shown exactly.
    Plain,
}

/// A bar that `of` would fill `cells` with. What is not 0 is seen.
fn bar(value: u128, of: u128, cells: usize, is_ascii: bool) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

    if value == 0 || of == 0 {
        return String::new();
    }
    let per_cell = if is_ascii { 1 } else { 8 };
    let steps = cells as u128 * per_cell;
    let (value, of) = with_room(value, of);
    let steps = ((2 * value * steps + of) / (2 * of)).clamp(1, steps.max(1)) as usize;
    if is_ascii { "#".repeat(steps) } else { "█".repeat(steps / 8) + EIGHTHS[steps % 8] }
}

/// A part and what it is part of, without last bits that nobody sees, so that they can be multiplied by 2^27.
fn with_room(part: u128, of: u128) -> (u128, u128) {
    let bits = (u128::BITS - of.leading_zeros()).saturating_sub(100);
    (part >> bits, of >> bits)
}

/// A number with commas between thousands.
pub(crate) fn thousands(number: impl Into<u128>) -> String {
    let digits = number.into().to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A time to three digits, in the largest unit that it is not below 1 of.
pub(crate) fn scaled_ns(ns: impl Into<u128>) -> String {
    const UNITS: [(&str, u128); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

    let ns = ns.into();
    let unit = 10_u128.pow(ns.checked_ilog10().unwrap_or_default().saturating_sub(2));
    let ns = (ns + unit / 2) / unit * unit;
    let (name, size) = UNITS.into_iter().find(|&(_, size)| ns >= size).unwrap_or(("ns", 1));
    let (whole, below) = (ns / size, ns % size);
    let decimals = match whole {
        _ if size == 1 => 0,
        0..10 => 2,
        10..100 => 1,
        _ => 0,
    };
    match decimals {
        0 => format!("{whole} {name}"),
        decimals => format!("{whole}.{:0decimals$} {name}", below * 10_u128.pow(decimals as u32) / size),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_share() {
        for (value, of, text, ascii) in [
            (0, 8, "", ""),
            (8, 8, "████", "####"),
            (4, 8, "██", "##"),
            (5, 8, "██▌", "###"),
            (1, 32, "▏", "#"),
            (1, 1_000_000, "▏", "#"),
            (u128::MAX, u128::MAX, "████", "####"),
            (u128::MAX / 2, u128::MAX, "██", "##"),
            (0, 0, "", ""),
        ] {
            assert_eq!(
                (bar(value, of, 4, false).as_str(), bar(value, of, 4, true).as_str()),
                (text, ascii),
                "{value} of {of}"
            );
        }
    }

    #[test]
    fn times_have_three_digits() {
        for (ns, text) in [
            (0_u128, "0 ns"),
            (1, "1 ns"),
            (999, "999 ns"),
            (1_000, "1.00 us"),
            (1_024, "1.02 us"),
            (9_994, "9.99 us"),
            (9_995, "10.0 us"),
            (16_384, "16.4 us"),
            (524_288, "524 us"),
            (999_499, "999 us"),
            (999_500, "1.00 ms"),
            (1_048_576, "1.05 ms"),
            (62_000_000_000, "62.0 s"),
            (1 << 64, "18400000000 s"),
        ] {
            assert_eq!(scaled_ns(ns), text);
        }
    }

    #[test]
    fn thousands_are_parted() {
        for (number, text) in [(0_u64, "0"), (999, "999"), (1_000, "1,000"), (u64::MAX, "18,446,744,073,709,551,615")] {
            assert_eq!(thousands(number), text);
        }
    }
}
