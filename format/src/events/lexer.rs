//! Tokens of the format part of a declaration: C string literals and the macros between them.

use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// `"..."` with its quotes.
    Literal,
    /// A literal whose closing quote is missing; it reaches to the end of the text.
    Unterminated,
    /// A word such as `PRIx64`.
    Macro,
    /// `,`, which parts the two formats of a `tcg` declaration.
    Comma,
    /// One character that is no part of a format.
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) span: Range<usize>,
}

/// Splits a format's source into tokens; blanks between them are skipped. Spans are byte offsets in the text given.
#[derive(Debug, Clone)]
pub(super) struct Tokens<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Tokens<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, position: 0 }
    }
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        let rest = &self.text[self.position..];
        let start = self.position + (rest.len() - rest.trim_start_matches(super::is_blank).len());
        let rest = &self.text[start..];
        let first = rest.chars().next()?;
        let (kind, length) = match first {
            '"' => literal(rest),
            ',' => (TokenKind::Comma, 1),
            'A'..='Z' | 'a'..='z' | '_' => {
                let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
                (
                    TokenKind::Macro,
                    rest.bytes().position(|byte| !is_part(byte)).unwrap_or(rest.len()),
                )
            }
            _ => (TokenKind::Other, first.len_utf8()),
        };
        self.position = start + length;
        Some(Token {
            kind,
            span: start..self.position,
        })
    }
}

fn literal(text: &str) -> (TokenKind, usize) {
    let mut escaped = false;
    for (offset, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return (TokenKind::Literal, offset + 1),
            _ => {}
        }
    }
    (TokenKind::Unterminated, text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_macros_and_commas_are_told_apart() {
        let text = r#""a=%"PRIx64 " \"q\"", "b" #"#;
        let tokens: Vec<_> = Tokens::new(text).map(|token| (token.kind, &text[token.span])).collect();
        assert_eq!(
            tokens,
            [
                (TokenKind::Literal, r#""a=%""#),
                (TokenKind::Macro, "PRIx64"),
                (TokenKind::Literal, r#"" \"q\"""#),
                (TokenKind::Comma, ","),
                (TokenKind::Literal, r#""b""#),
                (TokenKind::Other, "#"),
            ]
        );
    }

    #[test]
    fn a_literal_without_its_closing_quote_reaches_to_the_end() {
        let tokens: Vec<_> = Tokens::new(r#" "ab\""#).collect();
        assert_eq!(
            tokens,
            [Token {
                kind: TokenKind::Unterminated,
                span: 1..6
            }]
        );
    }
}
