//! A line of a file, and what can be wrong with it.

use std::borrow::Cow;
use std::ops::Range;

use super::diagnostic::{Diagnostic, Severity, shown};
use super::is_blank;

/// A line and its place.
pub(super) struct Line<'s> {
    pub(super) raw: &'s [u8],
    /// The line as text in which every byte stands at its old place; see [`text_of`].
    pub(super) text: Cow<'s, str>,
    /// Where the line starts in the source.
    pub(super) start: usize,
    pub(super) number: u32,
}

impl Line<'_> {
    pub(super) fn diagnostic(&self, severity: Severity, fault: Fault) -> Diagnostic {
        let Fault { span, message, help } = fault;
        let column = self.text[..span.start].chars().count().saturating_add(1);
        Diagnostic {
            severity,
            line: self.number,
            column: u32::try_from(column).unwrap_or(u32::MAX),
            span: self.in_source(&span),
            message,
            help,
        }
    }

    pub(super) fn in_source(&self, span: &Range<usize>) -> Range<usize> {
        self.start + span.start..self.start + span.end
    }

    /// A part of the line, with U+FFFD for what is not UTF-8.
    pub(super) fn owned(&self, span: Range<usize>) -> String {
        match &self.text {
            Cow::Borrowed(text) => text[span].to_owned(),
            Cow::Owned(_) => String::from_utf8_lossy(&self.raw[span]).into_owned(),
        }
    }
}

/// What is wrong with a line; the span is within the line.
pub(super) struct Fault {
    pub(super) span: Range<usize>,
    pub(super) message: String,
    pub(super) help: Option<String>,
}

impl Fault {
    pub(super) fn new(span: Range<usize>, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { span, message: message.into(), help: Some(help.into()) }
    }
}

pub(super) const COMMENT_HELP: &str = "put the comment on a line of its own";

pub(super) fn comment(text: &str) -> bool {
    text.starts_with('#') || text.starts_with("//") || text.starts_with("/*")
}

pub(super) fn did_you_mean(word: &str) -> String {
    format!("did you mean '{word}'?")
}

/// A character of a name, as Python's `\w`.
pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

pub(super) fn is_identifier(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit())
}

pub(super) fn missing_open(text: &str) -> Fault {
    let head = &text[..text.find(['"', '(']).unwrap_or(text.len())];
    let end = head.trim_end_matches(is_blank).len();
    // A name such as `bdrv-open` has its fault before the missing parenthesis.
    match head.char_indices().find(|(_, c)| !is_word(*c) && !is_blank(*c)) {
        Some((position, '-')) => odd_character(position, '-'),
        _ => {
            Fault::new(end..end, "missing '(' after the event name", "write NAME(void) for an event without arguments")
        }
    }
}

pub(super) fn missing_close(text: &str, after_open: usize) -> Fault {
    let list = &text[after_open..];
    let list = &list[..list.find('"').unwrap_or(list.len())];
    let end = after_open + list.trim_end_matches(is_blank).len();
    Fault::new(end..end, "missing ')' after the arguments", "close the list of arguments with ')'")
}

pub(super) fn odd_character(position: usize, odd: char) -> Fault {
    let span = position..position + odd.len_utf8();
    match odd {
        '-' => Fault::new(span, "'-' in the event name", "use '_' instead"),
        '\u{1a}' => Fault::new(span, "byte that is not UTF-8 before '('", "use letters, digits and '_' in names"),
        _ => {
            let message = format!("'{}' before '('", shown(odd.encode_utf8(&mut [0; 4])));
            Fault::new(span, message, "use letters, digits and '_' in names")
        }
    }
}

/// What tracetool looks for in the text of a format, string literal or not.
pub(super) fn forbidden_text(text: &str, start: usize) -> Result<(), Fault> {
    let find = |pattern: &str| text[start..].find(pattern).map(|at| start + at..start + at + pattern.len());
    if let Some(span) = find("%m") {
        let help = "pass the error as an argument: strerror(errno) for '%s'";
        return Err(Fault::new(span, "'%m' in the format", help));
    }
    if let Some(span) = find("\\n") {
        return Err(Fault::new(span, "newline in the format", "remove the '\\n'"));
    }
    Ok(())
}
/// A line as text in which every byte stands at its old place: bytes that are not UTF-8 become a control character, which
/// no name may contain.
pub(super) fn text_of(raw: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(raw) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(raw.len());
    for chunk in raw.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '\u{1a}'));
    }
    Cow::Owned(text)
}
