//! What is wrong with a file of declarations, where, and what to do about it.

use std::fmt;
use std::ops::Range;

/// Diagnostics kept of each severity; later ones are only counted. A file that has more is not a trace-events file.
pub const MAX_DIAGNOSTICS: usize = 200;

/// Characters of a source line that are shown around the place.
const SHOWN_LINE: usize = 120;

/// Characters of a quoted word that are shown in a message.
const SHOWN_WORD: usize = 60;

/// Whether a declaration was taken all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The line was not taken: it declares nothing.
    Error,
    /// The line was taken, but something about it is odd.
    Warning,
}

/// One thing that is wrong, with its place.
///
/// `Display` gives `LINE:COLUMN: message`; [`with_source`](Self::with_source) shows the line as well.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// Whether the line was taken.
    pub severity: Severity,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// The place in the source, in bytes. May be empty: something is missing there.
    pub span: Range<usize>,
    /// What was seen.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error at a place of the source, for those who find more wrong with a file than [`parse`](super::parse) does.
    #[must_use]
    pub fn error(source: &[u8], span: Range<usize>, message: impl Into<String>, help: Option<String>) -> Self {
        let before = &source[..span.start.min(source.len())];
        let is_end = |&(index, byte): &(usize, &u8)| match byte {
            b'\n' => true,
            b'\r' => source.get(index + 1) != Some(&b'\n'),
            _ => false,
        };
        let line = before.iter().enumerate().filter(is_end).count() + 1;
        let line_start = before.iter().rposition(|byte| matches!(byte, b'\n' | b'\r')).map_or(0, |end| end + 1);
        let column = plain(&before[line_start..]).count() + 1;
        let [line, column] = [line, column].map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        Self { severity: Severity::Error, line, column, span, message: message.into(), help }
    }

    /// Returns something that prints the diagnostic with the file's name, the line and a mark under the place:
    ///
    /// ```text
    /// trace-events:1:5: type 'unit32_t' is not allowed
    ///   foo(unit32_t x) "x=%u"
    ///       ^^^^^^^^
    /// help: did you mean 'uint32_t'?
    /// ```
    ///
    /// `source` is the text that was parsed. Text of any other file shows wrong lines, nothing worse.
    #[must_use]
    pub const fn with_source<'a>(&'a self, file_name: &'a str, source: &'a [u8]) -> WithSource<'a> {
        WithSource { diagnostic: self, file_name, source }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

/// Prints a diagnostic with its source line; see [`Diagnostic::with_source`].
#[derive(Debug, Clone, Copy)]
pub struct WithSource<'a> {
    diagnostic: &'a Diagnostic,
    file_name: &'a str,
    source: &'a [u8],
}

impl fmt::Display for WithSource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Diagnostic { span, help, .. } = self.diagnostic;
        writeln!(f, "{}:{}", self.file_name, self.diagnostic)?;
        let start = span.start.min(self.source.len());
        let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let line_start = self.source[..start].iter().rposition(is_end).map_or(0, |end| end + 1);
        let line_end = self.source[start..].iter().position(is_end).map_or(self.source.len(), |end| start + end);
        let place_end = span.end.clamp(start, line_end);

        let before: Vec<char> = plain(&self.source[line_start..start]).collect();
        let cut = before.len().saturating_sub(SHOWN_LINE / 2);
        let lead = if cut > 0 { "..." } else { "" };
        let shown = &before[cut..];
        let place = plain(&self.source[start..place_end]).take(SHOWN_LINE).count().max(1);
        let mut after: String = plain(&self.source[start..line_end]).take(SHOWN_LINE - shown.len()).collect();
        if plain(&self.source[start..line_end]).nth(SHOWN_LINE - shown.len()).is_some() {
            after.push_str("...");
        }
        let marks = "^".repeat(place.min(SHOWN_LINE - shown.len()));
        writeln!(f, "  {lead}{}{}", shown.iter().collect::<String>(), after.trim_end())?;
        write!(f, "  {}{marks}", " ".repeat(lead.len() + shown.len()))?;
        help.as_ref().map_or(Ok(()), |help| write!(f, "\nhelp: {help}"))
    }
}

/// The characters of some bytes, each one column wide and harmless to a terminal.
fn plain(bytes: &[u8]) -> impl Iterator<Item = char> {
    bytes.utf8_chunks().flat_map(|chunk| {
        let broken = chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER);
        chunk.valid().chars().map(visible).chain(broken)
    })
}

fn visible(c: char) -> char {
    match c {
        '\t' => ' ',
        _ if c.is_control() => char::REPLACEMENT_CHARACTER,
        _ => c,
    }
}

/// Shortens a word of the source for use in a message.
pub(super) fn shown(word: &str) -> String {
    let mut text: String = word.chars().take(SHOWN_WORD).map(visible).collect();
    if word.chars().nth(SHOWN_WORD).is_some() {
        text.push_str("...");
    }
    text
}

/// Everything that was found wrong with a file, in its order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diagnostics {
    kept: Vec<Diagnostic>,
    errors: usize,
    warnings: usize,
}

impl Diagnostics {
    /// Returns the diagnostics that were kept: at most [`MAX_DIAGNOSTICS`] of each severity.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.kept.iter()
    }

    /// Returns the number of lines that were not taken, kept as diagnostics or not.
    #[must_use]
    pub const fn errors(&self) -> usize {
        self.errors
    }

    /// Returns the number of warnings, kept or not.
    #[must_use]
    pub const fn warnings(&self) -> usize {
        self.warnings
    }

    /// Returns how many were counted but not kept.
    #[must_use]
    pub const fn dropped(&self) -> usize {
        self.errors + self.warnings - self.kept.len()
    }

    /// Returns whether nothing was wrong.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.errors + self.warnings == 0
    }

    /// Counts one more and keeps it if there is room; only then is it made.
    pub(super) fn push(&mut self, severity: Severity, make: impl FnOnce() -> Diagnostic) {
        let count = match severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        *count += 1;
        if *count <= MAX_DIAGNOSTICS {
            self.kept.push(make());
        }
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnostic(span: Range<usize>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            line: 2,
            column: 5,
            span,
            message: "odd word".to_owned(),
            help: Some("drop it".to_owned()),
        }
    }

    #[test]
    fn the_mark_stands_under_the_place_even_after_tabs_and_wide_characters() {
        let source = "first\nñ\tab cde fgh\nlast".as_bytes();
        assert_eq!(
            diagnostic(12..15).with_source("f", source).to_string(),
            concat!("f:2:5: odd word\n", "  ñ ab cde fgh\n", "       ^^^\n", "help: drop it")
        );
    }

    #[test]
    fn an_error_of_ones_own_knows_its_line_and_column() {
        let source = "a\nb\r\nc\rñ\u{e9} name".as_bytes();
        let found = Diagnostic::error(source, 12..16, "odd", None);
        assert_eq!(found.with_source("f", source).to_string(), "f:4:4: odd\n  ñé name\n     ^^^^");
        assert_eq!(Diagnostic::error(source, 99..100, "beyond", None).to_string(), "4:8: beyond");
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let mut source = vec![b'x'; 1000];
        source[500] = b'!';
        let text = diagnostic(500..501).with_source("f", &source).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], format!("  ...{}!{}...", "x".repeat(60), "x".repeat(59)));
        assert_eq!(lines[2], format!("     {}^", " ".repeat(60)));
    }

    #[test]
    fn a_place_outside_the_source_is_no_harm() {
        assert_eq!(
            diagnostic(70..90).with_source("f", b"short").to_string(),
            concat!("f:2:5: odd word\n", "  short\n", "       ^\n", "help: drop it")
        );
        assert_eq!(diagnostic(0..9).with_source("f", b"").to_string(), "f:2:5: odd word\n  \n  ^\nhelp: drop it");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let text = diagnostic(0..1).with_source("f", b"\x1b[31m\xff").to_string();
        assert_eq!(text.lines().nth(1), Some("  \u{fffd}[31m\u{fffd}"));
        assert_eq!(shown("a\u{7}b"), "a\u{fffd}b");
        assert_eq!(shown(&"y".repeat(61)), format!("{}...", "y".repeat(60)));
    }

    #[test]
    fn diagnostics_beyond_the_limit_are_counted_but_not_kept() {
        let mut all = Diagnostics::default();
        for _ in 0..MAX_DIAGNOSTICS + 3 {
            all.push(Severity::Warning, || diagnostic(0..1));
        }
        all.push(Severity::Error, || diagnostic(0..1));
        assert_eq!((all.errors(), all.warnings(), all.dropped()), (1, MAX_DIAGNOSTICS + 3, 3));
        assert_eq!(all.iter().count(), MAX_DIAGNOSTICS + 1);
    }
}
