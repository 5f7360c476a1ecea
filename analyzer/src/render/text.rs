//! The default for people: both times, typed values.
//!
//! `[CLOCK +SINCE_START] PID EVENT ARG=VALUE ...`, times in seconds to the nanosecond. Numbers that the declared format prints in
//! hexadecimal are shown so here.

use anstyle::{AnsiColor, Style};
use simpletrace_format::Value;
use simpletrace_format::events::{ArgDecl, ArgType};

use super::block::{Block, HEX, Literal};
use super::{PerKind, Render, printable};
use crate::trace::{Event, Fit, Gap, Kind};

#[derive(Debug)]
pub(crate) struct Text {
    lines: PerKind<Line>,
    colours: Colours,
}

#[derive(Debug)]
struct Line {
    name: Literal,
    args: Vec<Arg>,
}

#[derive(Debug)]
struct Arg {
    /// ` NAME=`
    before: Literal,
    ty: ArgType,
    is_hex: bool,
}

/// What stands before and behind the parts of a line: nothing, if there is no colour.
#[derive(Debug)]
struct Colours {
    time: (String, String),
    event: (String, String),
    gap: (String, String),
}

impl Colours {
    fn new(colour: bool) -> Self {
        let around = |style: Style| {
            if colour { (style.render().to_string(), style.render_reset().to_string()) } else { Default::default() }
        };
        Self {
            time: around(Style::new().dimmed()),
            event: around(AnsiColor::Green.on_default().bold()),
            gap: around(AnsiColor::Red.on_default().bold()),
        }
    }
}

impl Text {
    pub(crate) fn new(colour: bool) -> Self {
        Self { lines: PerKind::default(), colours: Colours::new(colour) }
    }

    fn time_and_pid(&self, timestamp_ns: u64, start_ns: u64, pid: u32, block: &mut Block) {
        let (on, off) = &self.colours.time;
        block.put(on);
        block.byte(b'[');
        block.seconds(timestamp_ns);
        block.put(if timestamp_ns < start_ns { " -" } else { " +" });
        block.seconds(timestamp_ns.abs_diff(start_ns));
        block.byte(b']');
        block.put(off);
        block.byte(b' ');
        block.decimal(pid);
    }
}

impl Render for Text {
    fn event(&mut self, event: &Event<'_>, block: &mut Block) {
        self.time_and_pid(event.record.timestamp_ns, event.start_ns, event.record.pid, block);
        let (on, off) = &self.colours.event;
        let line = self.lines.get(event.kind, |kind| Line::new(kind, on, off));
        block.literal(&line.name);
        let mut args = event.record.payload.args();
        for arg in &line.args {
            let Some(value) = args.next(arg.ty) else { break };
            block.literal(&arg.before);
            put_value(value, arg.is_hex, block);
        }
        match event.fit {
            Fit::Exact => {}
            Fit::Undeclared => {
                let mut index = 0_u32;
                while let Some(word) = args.word() {
                    block.put(" word");
                    block.decimal(index);
                    block.put("=0x");
                    block.hex(word);
                    index += 1;
                }
                left_over(args.rest(), block);
            }
            Fit::Longer | Fit::Shorter => left_over(args.rest(), block),
        }
        block.byte(b'\n');
    }

    fn gap(&mut self, gap: &Gap, block: &mut Block) {
        let record = &gap.record;
        self.time_and_pid(record.timestamp_ns, gap.start_ns, record.pid, block);
        let (on, off) = &self.colours.gap;
        block.byte(b' ');
        block.put(on);
        block.put("dropped");
        block.put(off);
        block.put(" count=");
        block.decimal(record.count);
        block.byte(b'\n');
    }
}

impl Line {
    fn new(kind: &Kind, on: &str, off: &str) -> Self {
        Self {
            name: Literal::new(format!(" {on}{}{off}", printable(&kind.name))),
            args: kind.args().iter().zip(hex_args(kind)).map(|(arg, is_hex)| Arg::new(arg, is_hex)).collect(),
        }
    }
}

impl Arg {
    fn new(arg: &ArgDecl, is_hex: bool) -> Self {
        Self { before: Literal::new(format!(" {}=", arg.name)), ty: arg.ty, is_hex }
    }
}

/// Tells for each argument, and for ever after, whether the declared format prints it in hexadecimal.
pub(crate) fn hex_args(kind: &Kind) -> impl Iterator<Item = bool> {
    let format = kind.decl.as_ref().and_then(|decl| decl.format.as_ref()?.compile().ok());
    let conversions = format.map_or(Vec::new(), |format| format.conversions().to_vec());
    conversions.into_iter().map(|conversion| conversion.is_hex).chain(std::iter::repeat(false))
}

/// Writes a value as text, in the way of its type; `is_hex` if its author wants to see it in hexadecimal.
pub(crate) fn put_value(value: Value<'_>, is_hex: bool, block: &mut Block) {
    match value {
        Value::Signed(0..) | Value::Unsigned(_) if is_hex => {
            block.put("0x");
            block.hex(value.word().unwrap_or_default());
        }
        Value::Signed(value) => block.decimal(value),
        Value::Unsigned(word) => block.decimal(word),
        Value::Bool(value) => block.put(if value { "true" } else { "false" }),
        Value::Pointer(word) => {
            block.put("0x");
            block.hex(word);
        }
        Value::String(bytes) => quoted(bytes, block),
    }
}

/// Writes bytes that no declared argument accounts for.
fn left_over(bytes: &[u8], block: &mut Block) {
    if !bytes.is_empty() {
        block.put(" left_over=");
        block.hex_bytes(bytes);
    }
}

/// Writes a string in quotes, with everything escaped that is not printable.
fn quoted(bytes: &[u8], block: &mut Block) {
    block.byte(b'"');
    for chunk in bytes.utf8_chunks() {
        let mut rest = chunk.valid();
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| c.is_control() || matches!(c, '"' | '\\')) {
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
        ] {
            let mut block = Block::default();
            quoted(bytes, &mut block);
            assert_eq!(String::from_utf8_lossy(block.as_bytes()), text);
        }
    }
}
