//! CSV as in RFC 4180, but with line feeds: a column for each argument if one event is asked for by name, else the arguments
//! as a JSON object in one cell. The schema is in docs/EXPORTS.md.

use simpletrace_format::Value;
use simpletrace_format::events::EventDecl;

use super::block::{Block, HEX, Literal};
use super::json::{Args, unique_names};
use super::{PerKind, Render, WallClock, put_count};
use crate::kinds::Kind;
use crate::trace::{Event, Gap};

#[derive(Debug)]
pub(crate) struct Csv {
    rows: PerKind<Row>,
    /// The event that has columns of its own.
    only: Option<EventDecl>,
    wall: Option<WallClock>,
}

#[derive(Debug)]
struct Row {
    /// The event's cell, with the commas around it.
    event: Literal,
    args: Args,
}

impl Csv {
    /// With a column for each argument of `only`, if it is given.
    pub(crate) fn new(only: Option<EventDecl>, wall: Option<WallClock>) -> Self {
        Self { rows: PerKind::default(), only, wall }
    }

    // Always, as its two callers are all there is.
    #[inline(always)]
    fn time_and_pid(&self, timestamp_ns: u64, pid: u32, block: &mut Block) {
        block.decimal(timestamp_ns);
        block.byte(b',');
        if let Some(wall) = &self.wall {
            wall.put_ns(timestamp_ns, "", block);
            block.byte(b',');
        }
        block.decimal(pid.into());
    }
}

impl Render for Csv {
    fn begin(&mut self, block: &mut Block) {
        let fixed: &[&str] =
            if self.wall.is_some() { &["ts_ns", "wall_ns", "pid", "event"] } else { &["ts_ns", "pid", "event"] };
        block.put(fixed.join(","));
        match &self.only {
            Some(decl) => {
                for name in unique_names(&decl.args, fixed) {
                    block.byte(b',');
                    cell(name.as_bytes(), block);
                }
            }
            None => block.put(",args"),
        }
        block.byte(b'\n');
    }

    fn event(&mut self, event: &Event<'_>, block: &mut Block) {
        self.time_and_pid(event.record.timestamp_ns, event.record.pid, block);
        let row = self.rows.get(event.kind, Row::new);
        block.literal(&row.event);
        match &self.only {
            Some(decl) => {
                let mut args = event.record.payload.args();
                // None behind one that is not there.
                let mut values = decl.args.iter().map_while(|arg| args.next(arg.ty)).fuse();
                for _ in &decl.args {
                    block.byte(b',');
                    if let Some(value) = values.next() {
                        put_value(value, block);
                    }
                }
            }
            None => {
                block.put(",\"{");
                row.args.write(event, block);
                block.put("}\"");
            }
        }
        block.byte(b'\n');
    }

    fn gap(&mut self, gap: &Gap, block: &mut Block) {
        let record = &gap.record;
        self.time_and_pid(record.timestamp_ns, record.pid, block);
        // Never in the wide form, whose only event has another name.
        block.put(",dropped,\"{\"\"count\"\":");
        put_count(record, "null", block);
        block.put("}\"\n");
    }

    fn wall(&mut self) -> Option<&mut WallClock> {
        self.wall.as_mut()
    }
}

impl Row {
    fn new(kind: &Kind) -> Self {
        let mut event = Block::default();
        event.byte(b',');
        cell(kind.name.as_bytes(), &mut event);
        Self { event: Literal::new(event.as_bytes()), args: Args::new(kind, "\"\"") }
    }
}

fn put_value(value: Value<'_>, block: &mut Block) {
    match value {
        Value::Signed(value) => block.signed_decimal(value),
        Value::Unsigned(word) | Value::Pointer(word) => block.decimal(word),
        Value::Bool(value) => block.put(if value { "true" } else { "false" }),
        Value::String(bytes) => cell(bytes, block),
    }
}

/// Writes a cell, in quotes if it needs them. Bytes that are not UTF-8 become `\xNN`, and then a backslash `\x5c`.
pub(crate) fn cell(bytes: &[u8], block: &mut Block) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        let mut escaped = Vec::new();
        for &byte in bytes {
            if byte.is_ascii() && byte != b'\\' {
                escaped.push(byte);
            } else {
                escaped.extend([b'\\', b'x', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            }
        }
        return cell(&escaped, block);
    };
    if !text.contains([',', '"', '\n', '\r']) {
        return block.put(text);
    }
    block.byte(b'"');
    for (index, part) in text.split('"').enumerate() {
        block.put(if index == 0 { "" } else { "\"\"" });
        block.put(part);
    }
    block.byte(b'"');
}
