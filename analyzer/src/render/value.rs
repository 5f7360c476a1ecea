//! Values as people read them: by type, and in hexadecimal where the declared format does so.

use simpletrace_format::Value;

use super::block::{Block, HEX};
use super::is_command;
use crate::kinds::Kind;
use crate::numbers::Numbers;

/// Tells for each argument, and then without end, whether the declared format prints it in hexadecimal.
pub(crate) fn hex_args(kind: &Kind) -> impl Iterator<Item = bool> {
    let format = kind.decl.as_ref().and_then(|decl| decl.format.as_ref()?.compile().ok());
    let conversions = format.map_or(Vec::new(), |format| format.conversions().to_vec());
    conversions.into_iter().map(|conversion| conversion.is_hex).chain(std::iter::repeat(false))
}

/// What the numbers of each argument are. An argument that another one has the name of, as `reason` and `reason_str`, needs none.
pub(crate) fn numbers(kind: &Kind) -> impl Iterator<Item = Option<Numbers>> {
    let is_told = |name: &str| kind.args().iter().any(|arg| arg.name.strip_suffix("_str") == Some(name));
    kind.args().iter().map(move |arg| Numbers::of(&kind.name, &arg.name).filter(|_| !is_told(&arg.name)))
}

/// Writes ` (NAME)` if a number has a name.
pub(crate) fn put_name(numbers: Numbers, value: Value<'_>, block: &mut Block) {
    if let Some(name) = numbers.name(value) {
        block.put(" (");
        block.put(&*name);
        block.byte(b')');
    }
}

/// Writes a value as text, in the way of its type; `is_hex` if its author wants to see it in hexadecimal.
pub(crate) fn put_value(value: Value<'_>, is_hex: bool, block: &mut Block) {
    match value {
        Value::Signed(0..) | Value::Unsigned(_) if is_hex => {
            block.put("0x");
            block.hex(value.word().unwrap_or_default());
        }
        Value::Signed(value) => block.signed_decimal(value),
        Value::Unsigned(word) => block.decimal(word),
        Value::Bool(value) => block.put(if value { "true" } else { "false" }),
        Value::Pointer(word) => {
            block.put("0x");
            block.hex(word);
        }
        Value::String(bytes) => quoted(bytes, block),
    }
}

/// Writes a string in quotes, with everything escaped that is not printable.
fn quoted(bytes: &[u8], block: &mut Block) {
    block.byte(b'"');
    for chunk in bytes.utf8_chunks() {
        let mut rest = chunk.valid();
        while let Some((at, c)) = rest.char_indices().find(|&(_, c)| is_command(c) || matches!(c, '"' | '\\')) {
            block.put(&rest[..at]);
            match c {
                '\n' => block.put(r"\n"),
                '\t' => block.put(r"\t"),
                '\r' => block.put(r"\r"),
                '"' | '\\' => block.put([b'\\', c as u8]),
                _ => block.put(c.escape_unicode().to_string()),
            }
            rest = &rest[at + c.len_utf8()..];
        }
        block.put(rest);
        for &byte in chunk.invalid() {
            block.put([b'\\', b'x', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
    block.byte(b'"');
}

#[cfg(test)]
mod tests {
    use super::super::block::written;
    use super::*;

    #[test]
    fn strings_are_quoted_and_cannot_command_a_terminal() {
        for (bytes, text) in [
            (&b""[..], r#""""#),
            (b"virtio0", r#""virtio0""#),
            (b"a \"b\" \\ c", r#""a \"b\" \\ c""#),
            (b"\x1b[31m\n\t\r\x07", r#""\u{1b}[31m\n\t\r\u{7}""#),
            ("größe".as_bytes(), r#""größe""#),
            (b"cut \xc3", r#""cut \xc3""#),
            ("\u{9b}".as_bytes(), r#""\u{9b}""#),
            ("a\u{202e}b\u{2067}".as_bytes(), r#""a\u{202e}b\u{2067}""#),
        ] {
            assert_eq!(written(|block| quoted(bytes, block)), text);
        }
    }
}
