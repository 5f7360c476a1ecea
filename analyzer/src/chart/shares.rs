//! What a whole is made of.

use super::{Style, bar, with_room};

/// Draws what part of their sum each of some named values is.
pub(crate) fn shares(parts: &[(&str, u128)], style: Style) -> String {
    /// A name is cut rather than leave less than this for its bar.
    const MIN_BAR: usize = 4;
    /// `100.0%` and the blanks around.
    const PERCENT: usize = 10;

    // Sums of 2^128 and more do not come from a file's 64-bit times.
    let sum: u128 = parts.iter().fold(0, |sum, part| sum.saturating_add(part.1));
    if sum == 0 {
        return "no time to share\n".to_owned();
    }
    let longest = parts.iter().map(|part| part.0.chars().count()).max().unwrap_or_default();
    let name_width = longest.min(style.width.saturating_sub(PERCENT + MIN_BAR)).max(4);
    let bar_width = style.width.saturating_sub(name_width + PERCENT).max(1);
    let mut picture = String::new();
    for &(name, value) in parts {
        let name = cut(name, name_width, style.is_ascii);
        let (part, of) = with_room(value, sum);
        let permille = (2 * 1000 * part + of) / (2 * of);
        let percent = format!("{}.{}%", permille / 10, permille % 10);
        let bar = bar(value, sum, bar_width, style.is_ascii);
        picture.push_str(format!("{name:<name_width$}  {percent:>6}  {bar}").trim_end());
        picture.push('\n');
    }
    picture
}

/// The end of a name is what tells it from others less often than its beginning.
fn cut(name: &str, width: usize, is_ascii: bool) -> String {
    if name.chars().count() <= width {
        return name.to_owned();
    }
    let sign = if is_ascii { ".." } else { "…" };
    name.chars().take(width - sign.chars().count()).chain(sign.chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOPS: [(&str, u128); 3] = [
        ("virtio_blk_handle_read -> thread_pool_submit", 123),
        ("thread_pool_submit -> thread_pool_complete", 5_000),
        ("x -> y", 0),
    ];

    #[test]
    fn a_bar_is_as_long_as_its_share_of_the_sum() {
        assert_eq!(
            shares(&HOPS, Style { width: 80, is_ascii: false }),
            "\
virtio_blk_handle_read -> thread_pool_submit    2.4%  ▋
thread_pool_submit -> thread_pool_complete     97.6%  █████████████████████████▍
x -> y                                          0.0%
"
        );
        assert_eq!(
            shares(&HOPS, Style { width: 40, is_ascii: true }),
            "\
virtio_blk_handle_read -..    2.4%  #
thread_pool_submit -> th..   97.6%  ####
x -> y                        0.0%
"
        );
        assert_eq!(
            shares(&HOPS, Style { width: 20, is_ascii: false }),
            "\
virti…    2.4%  ▏
threa…   97.6%  ███▉
x -> y    0.0%
"
        );
        let wide = shares(&[("all", u128::MAX)], Style { width: 200, is_ascii: true });
        assert_eq!(wide, format!("all   100.0%  {}\n", "#".repeat(186)));
    }

    #[test]
    fn nothing_has_no_parts() {
        assert_eq!(shares(&[], Style { width: 80, is_ascii: false }), "no time to share\n");
        assert_eq!(shares(&[("a", 0)], Style { width: 80, is_ascii: false }), "no time to share\n");
    }
}
