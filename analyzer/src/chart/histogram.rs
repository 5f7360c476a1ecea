//! Values by size, a row for each stretch.

use super::{Buckets, Style, Unit, bar, scaled_ns, thousands};

/// Bars shorter than this are not worth their place: something else has to go.
const MIN_BAR: usize = 6;
/// This many rows with nothing in them are still shown.
const MAX_EMPTY: usize = 3;

/// A row: the values it is of, how many there are, and the marks in it.
struct Row {
    from: String,
    /// There are none if all values are the same.
    to: Option<String>,
    count: u64,
    marks: String,
}

/// Draws values by size. A mark, a name and a value such as (p99, 1234), stands in the row of its value.
pub(crate) fn histogram(buckets: &Buckets, unit: Unit, marks: &[(&str, i128)], style: Style) -> String {
    let rows = folded(rows(buckets, unit, marks));
    let shown = || rows.iter().flatten();
    let most = shown().map(|row| row.count).max().unwrap_or_default();
    if most == 0 {
        return "no values\n".to_owned();
    }
    let width = |cell: &dyn Fn(&Row) -> usize| shown().map(cell).max().unwrap_or_default();
    let from_width = width(&|row| if row.to.is_some() { row.from.len() } else { 0 });
    let to_width = width(&|row| row.to.as_ref().map_or(0, String::len));
    let range = |row: &Row| match &row.to {
        Some(to) => format!("[{:>from_width$}, {to:>to_width$})", row.from),
        None => row.from.clone(),
    };
    let range_width = width(&|row| range(row).len());
    let count_width = width(&|row| thousands(row.count).len());
    let marks_width = width(&|row| row.marks.len());
    let short_width = width(&|row| row.from.len());

    // What there is room for, the best first: all, without the ends of ranges, and without marks.
    let bar_width = |range: usize, blanks: usize, marks: usize| {
        let marks = if marks > 0 { marks + blanks } else { 0 };
        style.width.saturating_sub(range + count_width + 2 * blanks + marks)
    };
    let (with_ends, with_marks) = match () {
        () if bar_width(range_width, 2, marks_width) >= MIN_BAR => (true, true),
        () if bar_width(short_width, 1, marks_width) >= MIN_BAR => (false, true),
        () => (false, false),
    };
    let (range_width, blanks) = if with_ends { (range_width, 2) } else { (short_width, 1) };
    let bar_width = bar_width(range_width, blanks, if with_marks { marks_width } else { 0 }).max(1);
    let mut picture = String::new();
    for row in &rows {
        let Some(row) = row else {
            picture.push_str("...\n");
            continue;
        };
        let range = if with_ends { range(row) } else { format!("{:>range_width$}", row.from) };
        let count = thousands(row.count);
        let bar = bar(row.count.into(), most.into(), bar_width, style.is_ascii);
        let marks = if with_marks { row.marks.as_str() } else { "" };
        let blank = " ".repeat(blanks);
        let line = format!("{range:<range_width$}{blank}{count:>count_width$}{blank}{bar:<bar_width$}{blank}{marks}");
        picture.push_str(line.trim_end());
        picture.push('\n');
    }
    picture
}

/// Draws two lists of times side by side, each with its name: of both, bars of the same length are the same part of the whole.
pub(crate) fn histograms(names: [&str; 2], lists: [&Buckets; 2], style: Style) -> String {
    let Some((first, last)) =
        lists.iter().filter_map(|list| list.places()).reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
    else {
        return "no values\n".to_owned();
    };
    let ranges: Vec<_> = (first..=last).map(|place| lists[0].range(place)).collect();
    let texts: Vec<_> = ranges.iter().map(|&(from, to)| [from, to].map(scaled_ns)).collect();
    let [from_width, to_width] = [0, 1].map(|end| texts.iter().map(|text| text[end].len()).max().unwrap_or_default());
    let range = |text: &[String; 2], is_short| match is_short {
        false => format!("[{:>from_width$}, {:>to_width$})", text[0], text[1]),
        true => format!("{:>from_width$}", text[0]),
    };
    let wholes = lists.map(|list| (first..=last).map(|place| list.count(place)).sum::<u64>());
    let counts = |place: usize| lists.map(|list| thousands(list.count(place)));
    let count_widths = [0, 1].map(|list| {
        let widest = (first..=last).map(|place| counts(place)[list].len()).max().unwrap_or_default();
        widest.max(names[list].len())
    });
    // Two bars with their numbers, and blanks before both.
    let room = |range_width: usize| style.width.saturating_sub(range_width + count_widths[0] + count_widths[1] + 8) / 2;
    let is_short = room(from_width + to_width + 4) < MIN_BAR;
    let range_width = if is_short { from_width } else { from_width + to_width + 4 };
    let bar_width = room(range_width).max(1);
    // As a part of the other one's whole as well, so that they can be compared without dividing.
    let scaled = |place: usize| {
        let [old, new] = lists.map(|list| u128::from(list.count(place)));
        let [old_whole, new_whole] = wholes.map(|whole| u128::from(whole.max(1)));
        [old * new_whole, new * old_whole]
    };
    let most = (first..=last).flat_map(scaled).max().unwrap_or_default();
    // Whether it is in a stretch of many that have no values.
    let is_folded = |place: usize| {
        let is_empty = |place: &usize| lists.iter().all(|list| list.count(*place) == 0);
        let before = (first..place).rev().take_while(is_empty).count();
        let from_here = (place..=last).take_while(is_empty).count();
        from_here > 0 && before + from_here > MAX_EMPTY
    };
    let mut picture = format!(
        "{:range_width$}  {:>old_width$}  {:bar_width$}  {:>new_width$}\n",
        "",
        names[0],
        "",
        names[1],
        old_width = count_widths[0],
        new_width = count_widths[1]
    );
    for (place, text) in (first..=last).zip(&texts) {
        if is_folded(place) {
            if !picture.ends_with("...\n") {
                picture.push_str("...\n");
            }
            continue;
        }
        let [old, new] = counts(place);
        let [old_bar, new_bar] = scaled(place).map(|count| bar(count, most, bar_width, style.is_ascii));
        let line = format!(
            "{}  {old:>old_width$}  {old_bar:<bar_width$}  {new:>new_width$}  {new_bar}",
            range(text, is_short),
            old_width = count_widths[0],
            new_width = count_widths[1]
        );
        picture.push_str(line.trim_end());
        picture.push('\n');
    }
    picture
}

/// Rows, with `None` for many that have nothing in them.
fn folded(rows: Vec<Row>) -> Vec<Option<Row>> {
    let mut folded = Vec::new();
    let mut empty = Vec::new();
    for row in rows {
        if row.count == 0 && row.marks.is_empty() {
            empty.push(Some(row));
            continue;
        }
        if empty.len() > MAX_EMPTY {
            empty.clear();
            folded.push(None);
        }
        folded.append(&mut empty);
        folded.push(Some(row));
    }
    folded
}

/// From the first to the last that has values, and what is between.
fn rows(buckets: &Buckets, unit: Unit, marks: &[(&str, i128)]) -> Vec<Row> {
    let marks_of = |is_in: &dyn Fn(i128) -> bool| {
        marks.iter().filter(|mark| is_in(mark.1)).map(|mark| mark.0).collect::<Vec<_>>().join(" ")
    };
    let mut rows = Vec::new();
    if buckets.negative() > 0 {
        let marks = marks_of(&|value| value < 0);
        rows.push(Row { from: "below 0".to_owned(), to: None, count: buckets.negative(), marks });
    }
    let Some((first, last)) = buckets.places() else { return rows };
    let first = if rows.is_empty() { first } else { 0 };
    rows.extend((first..=last).map(|place| {
        let (from, to) = buckets.range(place);
        let marks = marks_of(&|value| u128::try_from(value).is_ok_and(|value| (from..to).contains(&value)));
        let [from_text, to_text] = match unit {
            Unit::Ns => [from, to].map(scaled_ns),
            Unit::Plain => [from, to].map(|value| binary(value, to - from)),
        };
        Row { from: from_text, to: (to - from > 1).then_some(to_text), count: buckets.count(place), marks }
    }));
    rows
}

/// A number in the largest binary unit that it and a step are whole multiples of.
fn binary(value: u128, step: u128) -> String {
    const UNITS: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

    let unit = (step.trailing_zeros() / 10).min(6);
    format!("{}{}", value >> (10 * unit), UNITS[unit as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: Style = Style { width: 60, is_ascii: false };
    const ASCII: Style = Style { width: 60, is_ascii: true };

    /// 41,870 values and more, of latencies.
    fn latencies() -> Buckets {
        let mut buckets = Buckets::new(0);
        for (value, count) in [(20_000, 9_214), (33_000, 41_870), (70_000, 14_020), (2_000_000, 3), (1_100_000_000, 1)]
        {
            buckets.add(value, count);
        }
        buckets
    }

    const MARKS: [(&str, i128); 4] = [("p50", 40_000), ("p90", 70_000), ("p99", 100_000), ("p99.9", 1_100_000_000)];

    #[test]
    fn two_lists_stand_beside_each_other_and_bars_are_parts_of_the_whole() {
        let (mut old, mut new) = (Buckets::new(0), Buckets::new(0));
        for (value, old_count, new_count) in
            [(20_000, 3, 0), (33_000, 1, 1_000), (70_000, 0, 2_000), (5_000_000, 0, 1_000)]
        {
            old.add(value, old_count);
            new.add(value, new_count);
        }
        assert_eq!(
            histograms(["old", "new"], [&old, &new], ASCII),
            [
                "                    old                   new",
                "[16.4 us, 32.8 us)    3  #############      0",
                "[32.8 us, 65.5 us)    1  ####           1,000  ####",
                "[65.5 us,  131 us)    0                 2,000  #########",
                "...",
                "[4.19 ms, 8.39 ms)    0                 1,000  ####",
                "",
            ]
            .join("\n")
        );
        assert_eq!(
            histograms(["old", "new"], [&old, &Buckets::new(0)], Style { width: 20, is_ascii: true }),
            "         old     new\n16.4 us    3  #    0\n32.8 us    1  #    0\n"
        );
        assert_eq!(histograms(["old", "new"], [&Buckets::new(0); 2], WIDE), "no values\n");
        for width in 30..=200 {
            let picture = histograms(["old", "new"], [&old, &latencies()], Style { width, is_ascii: false });
            assert!(picture.lines().all(|line| line.chars().count() <= width), "{width}: {picture}");
        }
    }

    #[test]
    fn latencies_have_bars_and_marks() {
        assert_eq!(
            histogram(&latencies(), Unit::Ns, &MARKS, WIDE),
            "\
[16.4 us, 32.8 us)   9,214  █████
[32.8 us, 65.5 us)  41,870  ███████████████████████  p50
[65.5 us,  131 us)  14,020  ███████▊                 p90 p99
[ 131 us,  262 us)       0
[ 262 us,  524 us)       0
[ 524 us, 1.05 ms)       0
[1.05 ms, 2.10 ms)       3  ▏
...
[ 1.07 s,  2.15 s)       1  ▏                        p99.9
"
        );
        assert_eq!(
            histogram(&latencies(), Unit::Ns, &MARKS, ASCII),
            "\
[16.4 us, 32.8 us)   9,214  #####
[32.8 us, 65.5 us)  41,870  #######################  p50
[65.5 us,  131 us)  14,020  ########                 p90 p99
[ 131 us,  262 us)       0
[ 262 us,  524 us)       0
[ 524 us, 1.05 ms)       0
[1.05 ms, 2.10 ms)       3  #
...
[ 1.07 s,  2.15 s)       1  #                        p99.9
"
        );
    }

    #[test]
    fn where_there_is_little_room_ends_go_first_and_then_marks() {
        let at = |width| histogram(&latencies(), Unit::Ns, &MARKS, Style { width, is_ascii: false });
        assert_eq!(
            at(30),
            "\
16.4 us  9,214 █▌
32.8 us 41,870 ███████ p50
65.5 us 14,020 ██▍     p90 p99
 131 us      0
 262 us      0
 524 us      0
1.05 ms      3 ▏
...
 1.07 s      1 ▏       p99.9
"
        );
        assert_eq!(
            at(20),
            "\
16.4 us  9,214 █▏
32.8 us 41,870 █████
65.5 us 14,020 █▋
 131 us      0
 262 us      0
 524 us      0
1.05 ms      3 ▏
...
 1.07 s      1 ▏
"
        );
        assert_eq!(at(0).lines().next(), Some("16.4 us  9,214 ▎"));
        for width in 20..=200 {
            let widest = at(width).lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(width), "{width}: {widest:?}");
        }
    }

    #[test]
    fn numbers_have_parts_of_powers_of_two_and_0_and_what_is_below_apart() {
        let mut buckets = Buckets::new(2);
        for value in [-5, -1, 0, 0, 0, 1, 4, 5, 6, 7, 8, 9, 100, 1_000, 1_100, 5_000, 8_000] {
            buckets.add_signed(value, 1);
        }
        assert_eq!(
            histogram(&buckets, Unit::Plain, &[("p1", -5), ("p50", 5), ("p60", 5)], WIDE),
            "\
below 0       2  ██████████████████████▋             p1
0             3  ██████████████████████████████████
1             1  ███████████▍
2             0
3             0
4             1  ███████████▍
5             1  ███████████▍                        p50 p60
6             1  ███████████▍
7             1  ███████████▍
[   8,   10)  2  ██████████████████████▋
...
[  96,  112)  1  ███████████▍
...
[ 896, 1024)  1  ███████████▍
[1024, 1280)  1  ███████████▍
...
[ 4Ki,  5Ki)  1  ███████████▍
[ 5Ki,  6Ki)  0
[ 6Ki,  7Ki)  0
[ 7Ki,  8Ki)  1  ███████████▍
"
        );
    }

    #[test]
    fn a_single_row_is_full() {
        let mut buckets = Buckets::new(0);
        buckets.add(5_000, 7);
        let marks = [("p50", 5_000), ("p99", 5_000), ("max", 5_000)];
        let wide = histogram(&buckets, Unit::Ns, &marks, Style { width: 200, is_ascii: false });
        assert_eq!(wide, format!("[4.10 us, 8.19 us)  7  {}  p50 p99 max\n", "█".repeat(164)));
        assert_eq!(wide.trim_end().chars().count(), 200);
        let narrow = histogram(&buckets, Unit::Ns, &marks, Style { width: 20, is_ascii: true });
        assert_eq!(narrow, "4.10 us 7 ##########\n");
    }

    #[test]
    fn the_largest_numbers_are_no_exception() {
        let mut buckets = Buckets::new(0);
        buckets.add(u64::MAX, u64::MAX);
        buckets.add(0, 1);
        let marks = [("max", u64::MAX.into())];
        assert_eq!(
            histogram(&buckets, Unit::Plain, &marks, ASCII),
            "\
0                                     1  #
...
[8Ei, 16Ei)  18,446,744,073,709,551,615  ##############  max
"
        );
        assert_eq!(
            histogram(&buckets, Unit::Ns, &marks, Style { width: 90, is_ascii: true }),
            "\
0 ns                                                    1  #
...
[9220000000 s, 18400000000 s)  18,446,744,073,709,551,615  ##########################  max
"
        );
    }

    #[test]
    fn nothing_is_said_to_be_nothing() {
        for width in [0, 20, 200] {
            assert_eq!(histogram(&Buckets::new(3), Unit::Ns, &MARKS, Style { width, is_ascii: false }), "no values\n");
        }
        let mut negative = Buckets::new(0);
        negative.add_signed(-1, 2);
        assert_eq!(
            histogram(&negative, Unit::Plain, &[], Style { width: 20, is_ascii: true }),
            "below 0  2  ########\n"
        );
    }

    #[test]
    fn more_than_three_empty_rows_are_one_unless_a_mark_is_in_them() {
        let rows = |last: u64, marks: &[(&str, i128)]| {
            let mut buckets = Buckets::new(0);
            buckets.add(1, 1);
            buckets.add(last, 1);
            histogram(&buckets, Unit::Plain, marks, ASCII).lines().count()
        };
        assert_eq!((rows(16, &[]), rows(32, &[]), rows(64, &[]), rows(128, &[("p50", 5)])), (5, 3, 3, 5));
    }
}
