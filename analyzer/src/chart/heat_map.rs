//! Latencies over time: when were which.

use super::time_cells::TimeCells;
use super::{Buckets, Style, scaled_ns, thousands};

/// Latencies by time and powers of two, in memory that does not grow with the trace.
#[derive(Debug, Clone)]
pub(crate) struct HeatMap {
    cells: TimeCells,
    /// What is a lane of the cells.
    by_size: Buckets,
}

impl HeatMap {
    /// With at most 65 counts of eight bytes each this is 260 KiB.
    const MAX_CELLS: usize = 512;

    pub(crate) fn new() -> Self {
        Self { cells: TimeCells::new(Self::MAX_CELLS), by_size: Buckets::new(0) }
    }

    pub(crate) fn add(&mut self, time_ns: u64, latency_ns: u64) {
        self.cells.add(time_ns, self.by_size.place(latency_ns), 1);
    }

    /// Takes in all latencies of another.
    pub(crate) fn append(&mut self, other: &Self) {
        self.cells.append(&other.cells);
    }

    /// Draws time to the right, counted from `start_ns`, and latency upwards: a row is from its label up to the next one's.
    pub(crate) fn draw(&self, start_ns: u64, style: Style) -> String {
        let lanes = || self.cells.columns(usize::MAX).into_iter().map(|column| column.lanes());
        let Some((first_ns, last_ns)) = self.cells.span_ns() else { return "no latencies\n".to_owned() };
        let top = lanes().max().unwrap_or_default();
        let labels: Vec<_> = (0..top).map(|lane| scaled_ns(self.by_size.range(lane).0)).collect();
        let label_width = labels.iter().map(String::len).max().unwrap_or_default();
        let columns = self.cells.columns(style.width.saturating_sub(label_width + 2).max(1));
        let most = columns.iter().flat_map(|column| (0..top).map(|lane| column.count(lane))).max().unwrap_or_default();
        let shades = Shades::new(most, style.is_ascii);
        let lines = if style.is_ascii { ['|', '+', '-'] } else { ['│', '└', '─'] };

        let mut picture = String::new();
        let lowest = (0..top).find(|&lane| columns.iter().any(|column| column.count(lane) > 0)).unwrap_or_default();
        for lane in (lowest..top).rev() {
            let row: String = columns.iter().map(|column| shades.of(column.count(lane))).collect();
            picture.push_str(format!("{:>label_width$} {}{row}", labels[lane], lines[0]).trim_end());
            picture.push('\n');
        }
        let axis: String = std::iter::repeat_n(lines[2], columns.len()).collect();
        picture += &format!("{:label_width$} {}{axis}\n", "", lines[1]);
        let [from, to] = [first_ns, last_ns].map(|ns| since(ns, start_ns));
        let room = columns.len().saturating_sub(from.len());
        let to = if room > to.len() { format!("{to:>room$}") } else { String::new() };
        picture += &format!("{:label_width$}  {from}{to}\n", "");
        picture + &shades.legend(style.width)
    }
}

/// A time from the start on.
fn since(ns: u64, start_ns: u64) -> String {
    let sign = if ns < start_ns { "-" } else { "+" };
    format!("{sign}{}", scaled_ns(ns.abs_diff(start_ns)))
}

/// What counts are drawn as: each shade is for a number of times as many as the one before.
struct Shades {
    shades: &'static [char],
    times: u64,
    most: u64,
}

impl Shades {
    const BLOCKS: [char; 4] = ['░', '▒', '▓', '█'];
    const ASCII: [char; 9] = ['.', ':', '-', '=', '+', '*', '#', '%', '@'];

    /// With a shade for any count up to `most`.
    fn new(most: u64, is_ascii: bool) -> Self {
        let shades: &[char] = if is_ascii { &Self::ASCII } else { &Self::BLOCKS };
        // The least number that has enough powers.
        let is_enough = |times: u64| times.checked_pow(shades.len() as u32).is_none_or(|end| end > most);
        let times = (2..).find(|&times| is_enough(times)).expect("some power is beyond all counts");
        Self { shades, times, most }
    }

    fn of(&self, count: u64) -> char {
        count.checked_ilog(self.times).map_or(' ', |level| self.shades[level as usize])
    }

    /// The scale: from how many on each shade is drawn.
    fn legend(&self, width: usize) -> String {
        let mut legend = "count:".to_owned();
        let mut line_width = legend.len();
        let levels = self.most.checked_ilog(self.times).map_or(0, |level| level + 1);
        for level in 0..levels {
            let shade = format!("  {} {}+", self.shades[level as usize], thousands(self.times.pow(level)));
            let shade_width = shade.chars().count();
            if line_width + shade_width > width {
                legend.push('\n');
                line_width = 0;
            }
            line_width += shade_width;
            legend.push_str(&shade);
        }
        legend + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second of 20 to 90 us, with a stretch of 3 ms and one outlier.
    fn map() -> HeatMap {
        let mut map = HeatMap::new();
        for n in 0..1_000 {
            let slow_ns = if (300..400).contains(&n) { 3_000_000 } else { 0 };
            map.add(5_000_000_000 + n * 1_000_000, 20_000 + n * n % 7_000 * 10 + slow_ns);
        }
        map.add(5_900_000_000, 20_000_000);
        map
    }

    #[test]
    fn shades_show_when_it_was_slow() {
        assert_eq!(
            map().draw(4_000_000_000, Style { width: 60, is_ascii: false }),
            "\
16.8 ms │                                          ░
8.39 ms │
4.19 ms │
2.10 ms │              ▓▓▓▓▓░
1.05 ms │
 524 us │
 262 us │
 131 us │
65.5 us │   ▓ ▓▒▒▒▒▒▓▒▒░    ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▓▒▒▒▓▒▒▒▒▒
32.8 us │ ▒▓▒▓▒▓▓▓▓▓▒▓▒▒    ▒▓▒▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▒▓▓▓▓▒
16.4 us │▓▓  ▒▒░▒▒▒▒▒▒▒     ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒
        └────────────────────────────────────────────────
         +1.00 s                                  +2.00 s
count:  ░ 1+  ▒ 3+  ▓ 9+
"
        );
        assert_eq!(
            map().draw(4_000_000_000, Style { width: 60, is_ascii: true }),
            "\
16.8 ms |                                          .
8.39 ms |
4.19 ms |
2.10 ms |              =++++.
1.05 ms |
 524 us |
 262 us |
 131 us |
65.5 us |   + ===---=-=:    =-=---=-=-===------===-=-==--
32.8 us | -+-=-========-    ============================-
16.4 us |+=  --::--:---     ------:--:---------:-:----:--
        +------------------------------------------------
         +1.00 s                                  +2.00 s
count:  . 1+  : 2+  - 4+  = 8+  + 16+
"
        );
        assert_eq!(
            map().draw(5_500_000_000, Style { width: 20, is_ascii: true }),
            "\
16.8 ms |         .
8.39 ms |
4.19 ms |
2.10 ms |   #+
1.05 ms |
 524 us |
 262 us |
 131 us |
65.5 us |++*-++++**+
32.8 us |***=+******
16.4 us |*=+-=+++++=
        +-----------
         -500 ms
count:  . 1+  : 2+
  - 4+  = 8+  + 16+
  * 32+  # 64+
"
        );
    }

    #[test]
    fn pictures_are_no_wider_than_they_may_be() {
        for width in 20..=200 {
            let picture = map().draw(0, Style { width, is_ascii: false });
            assert!(picture.lines().all(|line| line.chars().count() <= width), "{width}: {picture}");
        }
    }

    #[test]
    fn a_single_latency_is_a_cell() {
        let mut map = HeatMap::new();
        assert_eq!(map.draw(0, Style { width: 80, is_ascii: true }), "no latencies\n");
        map.add(u64::MAX, u64::MAX);
        assert_eq!(
            map.draw(u64::MAX, Style { width: 80, is_ascii: true }),
            "\
9220000000 s |.
             +-
              +0 ns
count:  . 1+
"
        );
    }

    #[test]
    fn there_are_shades_for_all_counts() {
        for (most, legend) in [
            (1, "count:  ░ 1+\n"),
            (15, "count:  ░ 1+  ▒ 2+  ▓ 4+  █ 8+\n"),
            (16, "count:  ░ 1+  ▒ 3+  ▓ 9+\n"),
            (80, "count:  ░ 1+  ▒ 3+  ▓ 9+  █ 27+\n"),
            (81, "count:  ░ 1+  ▒ 4+  ▓ 16+  █ 64+\n"),
            (u64::MAX, "count:  ░ 1+  ▒ 65,536+  ▓ 4,294,967,296+  █ 281,474,976,710,656+\n"),
        ] {
            let shades = Shades::new(most, false);
            assert_eq!(shades.legend(100), legend, "{most}");
            assert_eq!((shades.of(0), shades.of(1)), (' ', '░'));
            assert!(legend.contains(shades.of(most)), "{most}");
        }
    }
}
