//! What QEMU's simpletrace.py prints (8.2 and newer), byte for byte.
//!
//! `NAME DELTA pid=PID ARG=0x... ARG=b'...'`: the delta is to the record before it in the file, in microseconds.

use simpletrace_format::Payload;
use simpletrace_format::events::ArgType;

use super::block::{Block, HEX, Literal};
use super::{PerKind, Render, printable};
use crate::kinds::Kind;
use crate::trace::{Event, Gap};

#[derive(Debug, Default)]
pub(crate) struct Compat {
    lines: PerKind<Line>,
    before: Before,
}

#[derive(Debug)]
struct Line {
    name: Literal,
    /// What stands before each argument, and whether that is a string.
    args: Vec<(Literal, bool)>,
    undeclared: bool,
}

/// What depends on the record before: the delta, and the pid's text, which seldom changes.
#[derive(Debug)]
struct Before {
    timestamp_ns: Option<u64>,
    pid: u32,
    pid_text: Literal,
}

impl Default for Before {
    fn default() -> Self {
        Self { timestamp_ns: None, pid: 0, pid_text: Literal::new(" pid=0 ") }
    }
}

impl Before {
    #[inline]
    fn put(&mut self, timestamp_ns: u64, pid: u32, block: &mut Block) {
        delta(timestamp_ns, self.timestamp_ns.replace(timestamp_ns).unwrap_or(timestamp_ns), block);
        if pid != self.pid {
            (self.pid, self.pid_text) = (pid, Literal::new(format!(" pid={pid} ")));
        }
        block.literal(&self.pid_text);
    }
}

impl Render for Compat {
    fn event(&mut self, event: &Event<'_>, block: &mut Block) {
        let line = self.lines.get(event.kind, Line::new);
        block.literal(&line.name);
        self.before.put(event.record.timestamp_ns, event.record.pid, block);
        let mut args = event.record.payload.args();
        let mut left = line.args.iter();
        while let Some((before, is_string)) = left.next() {
            if *is_string {
                let Some(string) = args.string() else {
                    if left.as_slice().is_empty() {
                        cut_string(before, args.rest(), block);
                    }
                    break;
                };
                block.literal(before);
                bytes_literal(string, block);
            } else {
                let Some(word) = args.word() else { break };
                block.literal_and_hex(before, word);
            }
        }
        if line.undeclared {
            raw_words(event.record.payload, block);
        }
        block.byte(b'\n');
    }

    fn gap(&mut self, gap: &Gap, block: &mut Block) {
        let record = &gap.record;
        block.put("Dropped_Event ");
        self.before.put(record.timestamp_ns, record.pid, block);
        block.put("num_events_dropped=0x");
        block.hex(record.count);
        block.byte(b'\n');
    }
}

impl Line {
    fn new(kind: &Kind) -> Self {
        let has_text = kind.has_text();
        let arg = |(at, arg): (usize, &simpletrace_format::events::ArgDecl)| {
            let blank = if at == 0 { "" } else { " " };
            let is_string = has_text && arg.ty == ArgType::String;
            let before = format!("{blank}{}={}", arg.name, if is_string { "" } else { "0x" });
            (Literal::new(before), is_string)
        };
        Self {
            name: Literal::new(format!("{} ", printable(&kind.name))),
            args: kind.args().iter().enumerate().map(arg).collect(),
            undeclared: kind.decl.is_none(),
        }
    }
}

/// Writes the time between two records as Python prints `f"{delta_ns / 1000:0.3f}"`.
#[inline]
fn delta(timestamp_ns: u64, last_ns: u64, block: &mut Block) {
    // Up to here the nearest double of the quotient lies less than half a thousandth from it, so that rounding to three
    // decimals gives the exact digits: doubles below 2^43 are 2^-10 apart.
    const EXACT_BELOW: u64 = (1 << 43) * 1000;

    match timestamp_ns.checked_sub(last_ns) {
        Some(delta_ns @ 0..EXACT_BELOW) => {
            block.decimal(delta_ns / 1000);
            block.byte(b'.');
            block.three_digits(delta_ns % 1000);
        }
        delta_ns => unusual_delta(delta_ns.is_none(), timestamp_ns.abs_diff(last_ns), block),
    }
}

#[cold]
fn unusual_delta(negative: bool, size_ns: u64, block: &mut Block) {
    // Python divides integers with one correct rounding, as reading a decimal number does.
    let quotient: f64 = format!("{}.{:03}", size_ns / 1000, size_ns % 1000).parse().unwrap_or(f64::NAN);
    block.put(format!("{}{quotient:.3}", if negative { "-" } else { "" }));
}

/// Writes bytes as Python's `repr` does.
fn bytes_literal(bytes: &[u8], block: &mut Block) {
    // Nearly all strings; looked at without a way out, so that many bytes are compared at a time.
    if bytes.iter().fold(true, |plain, &byte| plain & (b' '..=b'~').contains(&byte) & (byte != b'\'') & (byte != b'\\'))
    {
        block.put(b"b'");
        block.put(bytes);
        return block.byte(b'\'');
    }
    let quote = if bytes.contains(&b'\'') && !bytes.contains(&b'"') { b'"' } else { b'\'' };
    block.put([b'b', quote]);
    let mut rest = bytes;
    while let Some(plain) = rest.iter().position(|&byte| !matches!(byte, b' '..=b'~') || byte == b'\\' || byte == quote)
    {
        block.put(&rest[..plain]);
        match rest[plain] {
            b'\t' => block.put(r"\t"),
            b'\n' => block.put(r"\n"),
            b'\r' => block.put(r"\r"),
            byte @ (b'\\' | b'\'' | b'"') => block.put([b'\\', byte]),
            byte => block.put([b'\\', b'x', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]),
        }
        rest = &rest[plain + 1..];
    }
    block.put(rest);
    block.byte(quote);
}

/// Writes a string that reaches beyond its record, as simpletrace.py does if it is the last argument: what there is of it.
#[cold]
fn cut_string(before: &Literal, rest: &[u8], block: &mut Block) {
    if let Some(cut) = rest.get(4..) {
        block.literal(before);
        bytes_literal(cut, block);
    }
}

/// Writes the payload of an event without a declaration, where simpletrace.py gives up.
fn raw_words(payload: Payload<'_>, block: &mut Block) {
    let mut args = payload.args();
    let mut index = 0_u32;
    while let Some(word) = args.word() {
        block.put(if index == 0 { "word" } else { " word" });
        block.decimal(index.into());
        block.put("=0x");
        block.hex(word);
        index += 1;
    }
    if !args.rest().is_empty() {
        block.put(if index == 0 { "rest=" } else { " rest=" });
        bytes_literal(args.rest(), block);
    }
}

#[cfg(test)]
mod tests {
    use super::super::block::written;
    use super::*;

    #[test]
    fn deltas_are_pythons_to_the_digit() {
        // Each printed by Python 3.11: f"{delta / 1000:0.3f}".
        for (from_ns, to_ns, text) in [
            (7, 7, "0.000"),
            (7, 8, "0.001"),
            (0, 999, "0.999"),
            (1, 107_437_859, "107437.858"),
            (8, 7, "-0.001"),
            (1500, 0, "-1.500"),
            (0, 8_796_093_022_207_999, "8796093022207.999"),
            (0, 8_796_093_022_208_001, "8796093022208.002"),
            (0, 9_007_199_254_740_993, "9007199254740.992"),
            (0, u64::MAX, "18446744073709552.000"),
            (u64::MAX, 0, "-18446744073709552.000"),
            (0, 12_345_678_901_234_567_891, "12345678901234568.000"),
        ] {
            assert_eq!(written(|block| delta(to_ns, from_ns, block)), text, "from {from_ns} to {to_ns}");
        }
    }

    #[test]
    fn strings_are_pythons_byte_literals() {
        // Each printed by Python 3.11: repr(bytes).
        for (bytes, text) in [
            (&b""[..], "b''"),
            (b"virtio0", "b'virtio0'"),
            (b"it's", "b\"it's\""),
            (b"it's \"so\"", "b'it\\'s \"so\"'"),
            (b"\"", "b'\"'"),
            (b"a\\b\tc\nd\re", "b'a\\\\b\\tc\\nd\\re'"),
            (b"\x00\x1f\x7f\x80\xff~", "b'\\x00\\x1f\\x7f\\x80\\xff~'"),
        ] {
            assert_eq!(written(|block| bytes_literal(bytes, block)), text);
        }
    }
}
