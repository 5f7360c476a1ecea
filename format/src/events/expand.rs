//! The text of a format: C string literals with their escapes, and the macros between them.

use std::ops::Range;

use super::lexer::{TokenKind, Tokens};
use super::printf::{FormatError, FormatErrorKind};

/// The text of a format, and where each byte of it comes from.
#[derive(Debug)]
pub(super) struct Expanded {
    pub(super) bytes: Vec<u8>,
    /// For each byte, the first and the one-past-last byte of the source that made it.
    origins: Vec<(usize, usize)>,
}

impl Expanded {
    /// Maps a range of `bytes` back to the source.
    pub(super) fn source_span(&self, range: Range<usize>) -> Range<usize> {
        let end_of_text = self.origins.last().map_or(0, |origin| origin.1);
        let start = self.origins.get(range.start).map_or(end_of_text, |origin| origin.0);
        let end = if range.is_empty() {
            start
        } else {
            self.origins.get(range.end - 1).map_or(end_of_text, |o| o.1)
        };
        start..end
    }

    fn push(&mut self, byte: u8, from: Range<usize>) {
        self.bytes.push(byte);
        self.origins.push((from.start, from.end));
    }
}

/// Resolves escapes and macros. The text ends at a NUL, where C's printf would stop.
pub(super) fn expand(source: &str) -> Result<Expanded, FormatError> {
    let mut expanded = Expanded {
        bytes: Vec::with_capacity(source.len()),
        origins: Vec::with_capacity(source.len()),
    };
    for token in Tokens::new(source) {
        let text = &source[token.span.clone()];
        match token.kind {
            TokenKind::Literal => unescape(text, token.span.start, &mut expanded),
            TokenKind::Macro => {
                let Some(parts) = macro_text(text) else {
                    let kind = FormatErrorKind::UnknownMacro(super::diagnostic::shown(text));
                    return Err(FormatError::new(kind, token.span));
                };
                for byte in parts.iter().flat_map(|part| part.bytes()) {
                    expanded.push(byte, token.span.clone());
                }
            }
            TokenKind::Unterminated => {
                return Err(FormatError::new(FormatErrorKind::UnterminatedString, token.span));
            }
            TokenKind::Comma | TokenKind::Other => {
                let kind = FormatErrorKind::UnexpectedText(super::diagnostic::shown(text));
                return Err(FormatError::new(kind, token.span));
            }
        }
    }
    if let Some(end) = expanded.bytes.iter().position(|byte| *byte == 0) {
        expanded.bytes.truncate(end);
        expanded.origins.truncate(end);
    }
    Ok(expanded)
}

/// Resolves the escapes of a literal given with its quotes. An escape C does not know stands for its character, as in GCC.
fn unescape(literal: &str, start: usize, out: &mut Expanded) {
    let body = &literal.as_bytes()[1..literal.len() - 1];
    let mut position = 0;
    while position < body.len() {
        let from = position;
        let mut byte = body[position];
        position += 1;
        if byte == b'\\' && position < body.len() {
            byte = body[position];
            position += 1;
            match byte {
                b'a' => byte = 0x07,
                b'b' => byte = 0x08,
                b'e' => byte = 0x1b,
                b'f' => byte = 0x0c,
                b'n' => byte = b'\n',
                b'r' => byte = b'\r',
                b't' => byte = b'\t',
                b'v' => byte = 0x0b,
                b'0'..=b'7' => (byte, position) = digits(body, position - 1, 8, 3),
                b'x' => (byte, position) = digits(body, position, 16, usize::MAX),
                _ => {}
            }
        }
        out.push(byte, start + 1 + from..start + 1 + position);
    }
}

/// Reads up to `most` digits; what is above a byte is cut off. Returns the byte and where the digits end.
fn digits(body: &[u8], start: usize, radix: u32, most: usize) -> (u8, usize) {
    let mut number = 0_u32;
    let mut position = start;
    while position - start < most
        && let Some(digit) = body.get(position).and_then(|byte| char::from(*byte).to_digit(radix))
    {
        number = (number * radix + digit) & 0xff;
        position += 1;
    }
    (number as u8, position)
}

/// The text of a macro, in up to two pieces; for an LP64 host and a 64-bit guest.
///
/// Facts: the PRI macros and their `l` are those of glibc's inttypes.h. The rest occurs in declarations of QEMU 0.14 to 2.11
/// and is defined in its cpu-defs.h, hwaddr.h and cpu-common.h.
fn macro_text(name: &str) -> Option<[&str; 2]> {
    if let Some(rest) = name.strip_prefix("PRI") {
        let letter = rest.get(..1)?;
        if !"diouxX".contains(letter) {
            return None;
        }
        let length = match &rest[1..] {
            "8" | "16" | "32" | "LEAST8" | "LEAST16" | "LEAST32" | "FAST8" => "",
            "64" | "LEAST64" | "FAST16" | "FAST32" | "FAST64" | "MAX" | "PTR" => "l",
            _ => return None,
        };
        return Some([length, letter]);
    }
    for prefix in ["HWADDR_PRI", "VADDR_PRI"] {
        if let Some(letter) = name.strip_prefix(prefix) {
            return matches!(letter, "d" | "i" | "o" | "u" | "x" | "X").then_some(["l", letter]);
        }
    }
    match name {
        "TARGET_FMT_plx" | "HWADDR_FMT_plx" | "TARGET_FMT_lx" | "TARGET_ABI_FMT_lx" => Some(["%016", "lx"]),
        "TARGET_FMT_ld" | "TARGET_ABI_FMT_ld" => Some(["%", "ld"]),
        "TARGET_FMT_lu" | "TARGET_ABI_FMT_lu" => Some(["%", "lu"]),
        "RAM_ADDR_FMT" | "DMA_ADDR_FMT" => Some(["%", "lx"]),
        "FMT_pid" => Some(["%", "d"]),
        _ => None,
    }
}
