//! What the terminal can show.

use crate::chart::Style;

/// Columns, if nobody says how many there are.
const DEFAULT_COLUMNS: usize = 80;
/// No terminal has more, and text cannot be padded to any number.
const MAX_COLUMNS: usize = 1_000;

/// How pictures are drawn on standard output.
pub(crate) fn style(is_ascii: bool) -> Style {
    Style { width: columns().unwrap_or(DEFAULT_COLUMNS), is_ascii: is_ascii || !is_utf8(variable) }
}

/// How wide standard output is: as the variable COLUMNS says, or the terminal, if it is one.
pub(crate) fn columns() -> Option<usize> {
    let said = variable("COLUMNS").and_then(|columns| columns.parse().ok()).filter(|&columns| columns > 0);
    let of_terminal = || {
        terminal_size::terminal_size_of(std::io::stdout())
            .map(|(columns, _)| usize::from(columns.0))
            .filter(|&columns| columns > 0)
    };
    said.or_else(of_terminal).map(|columns| columns.min(MAX_COLUMNS))
}

/// Whether the locale's characters are UTF-8: the first of these variables that is not empty decides.
fn is_utf8(variable: impl Fn(&str) -> Option<String>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(variable).find(|locale| !locale.is_empty());
    let locale = locale.unwrap_or_default().to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locale_decides_on_characters() {
        for (all, ctype, lang, utf8) in [
            ("", "", "", false),
            ("", "", "C", false),
            ("", "", "C.UTF-8", true),
            ("", "", "de_DE.utf8", true),
            ("", "C", "en_US.UTF-8", false),
            ("C", "C.UTF-8", "en_US.UTF-8", false),
            ("C.UTF-8", "C", "C", true),
            ("de_DE@euro", "", "C.UTF-8", false),
        ] {
            let variable = |name: &str| {
                let value = match name {
                    "LC_ALL" => all,
                    "LC_CTYPE" => ctype,
                    _ => lang,
                };
                Some(value.to_owned())
            };
            assert_eq!(is_utf8(variable), utf8, "{all} {ctype} {lang}");
        }
        assert!(!is_utf8(|_| None));
    }
}
