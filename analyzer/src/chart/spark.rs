//! How often something comes, over time, in one line.

use super::time_cells::{TimeCells, TimeColumn};
use super::{Style, with_room};

/// Draws the rate of a lane in `style.width` columns or less: the highest rate is the highest level, and blank is none at all.
pub(crate) fn spark(cells: &TimeCells, lane: usize, style: Style) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const ASCII_LEVELS: [char; 8] = ['.', ':', '-', '=', '+', '*', '#', '@'];

    let levels = if style.is_ascii { ASCII_LEVELS } else { LEVELS };
    let columns = cells.columns(style.width);
    // In 2^64 ns, so that one record in the longest time is not 0.
    let rate = |column: &TimeColumn| (u128::from(column.count(lane)) << 64) / column.covered_ns;
    let most = columns.iter().map(rate).max().unwrap_or_default();
    let level = |column: &TimeColumn| {
        let (rate, most) = with_room(rate(column), most);
        (8 * rate).div_ceil(most).clamp(1, 8) as usize
    };
    columns.iter().map(|column| if column.count(lane) == 0 { ' ' } else { levels[level(column) - 1] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sparks(counts: &[(u64, u64)], width: usize) -> (String, String) {
        let mut cells = TimeCells::new(16);
        counts.iter().for_each(|&(time_ns, count)| cells.add(time_ns, 1, count));
        (spark(&cells, 1, Style { width, is_ascii: false }), spark(&cells, 1, Style { width, is_ascii: true }))
    }

    #[test]
    fn levels_are_shares_of_the_highest_rate() {
        let ramp: Vec<_> = (0..=8).map(|time_ns| (time_ns, time_ns * 100)).collect();
        assert_eq!(sparks(&ramp, 20), (" ▁▂▃▄▅▆▇█".to_owned(), " .:-=+*#@".to_owned()));
        assert_eq!(sparks(&[(0, 1), (1, 1_000_000), (2, 500_001)], 20), ("▁█▅".to_owned(), ".@+".to_owned()));
        assert_eq!(sparks(&[(5, 1)], 200), ("█".to_owned(), "@".to_owned()));
        assert_eq!(sparks(&[(0, u64::MAX), (3, u64::MAX / 2)], 20), ("█  ▄".to_owned(), "@  =".to_owned()));
        assert_eq!(
            sparks(&[(0, 1), (u64::MAX, 1)], 20),
            ("█              █".to_owned(), "@              @".to_owned())
        );
        assert_eq!(sparks(&[], 20), Default::default());
    }

    #[test]
    fn a_steady_rate_is_level_up_to_its_end() {
        let steady: Vec<_> = (0..133).map(|time_ns| (time_ns, 10)).collect();
        assert_eq!(sparks(&steady, 20).0, "████████");
        assert_eq!(sparks(&steady, 4).0, "███");
    }

    #[test]
    fn other_lanes_take_part_in_the_time() {
        let mut cells = TimeCells::new(16);
        cells.add(0, 0, 1);
        cells.add(4, 1, 1);
        cells.add(9, 0, 1);
        assert_eq!(spark(&cells, 1, Style { width: 10, is_ascii: true }), "    @     ");
    }
}
