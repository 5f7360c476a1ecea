//! JSON: one object a line (`ndjson`), or one document (`json`). The schema is in docs/EXPORTS.md.

use std::collections::HashSet;

use simpletrace_format::Value;
use simpletrace_format::events::{ArgDecl, ArgType};

use super::block::{Block, HEX, Literal};
use super::{PerKind, Render, WallClock, put_count};
use crate::fit::Fit;
use crate::kinds::Kind;
use crate::trace::{Event, Gap};

/// The version of the schema of both forms.
pub(crate) const SCHEMA: &str = "simpletrace-rs.decode/1";

#[derive(Debug, Default)]
pub(crate) struct Json {
    lines: PerKind<Line>,
    /// Whether all records are to be one document.
    document: bool,
    any: bool,
    wall: Option<WallClock>,
}

#[derive(Debug)]
struct Line {
    /// From behind the pid to the opening brace of the arguments.
    event: Literal,
    args: Args,
}

/// How the arguments of one kind of event are written as the members of a JSON object.
#[derive(Debug)]
pub(crate) struct Args {
    keys: Vec<(Literal, ArgType)>,
    quote: &'static str,
}

impl Json {
    /// One document with an array of all records.
    pub(crate) fn document(wall: Option<WallClock>) -> Self {
        Self { document: true, ..Self::lines(wall) }
    }

    /// One object a line.
    pub(crate) fn lines(wall: Option<WallClock>) -> Self {
        Self { wall, ..Self::default() }
    }

    fn time_and_pid(&mut self, timestamp_ns: u64, pid: u32, block: &mut Block) {
        if self.document && std::mem::replace(&mut self.any, true) {
            block.put(",\n");
        }
        block.put("{\"ts_ns\":");
        block.decimal(timestamp_ns);
        if let Some(wall) = &self.wall {
            block.put(",\"wall_ns\":");
            wall.put_ns(timestamp_ns, "null", block);
        }
        block.put(",\"pid\":");
        block.decimal(pid.into());
    }

    fn end(&self, block: &mut Block) {
        block.put(if self.document { "}" } else { "}\n" });
    }
}

impl Render for Json {
    fn begin(&mut self, block: &mut Block) {
        if self.document {
            block.put(format!("{{\"schema\":\"{SCHEMA}\",\"records\":[\n"));
        }
    }

    fn event(&mut self, event: &Event<'_>, block: &mut Block) {
        self.time_and_pid(event.record.timestamp_ns, event.record.pid, block);
        let line = self.lines.get(event.kind, Line::new);
        block.literal(&line.event);
        let rest = line.args.write(event, block);
        block.byte(b'}');
        if !rest.is_empty() {
            block.put(",\"left_over\":");
            bytes_object(rest, "\"", block);
        }
        self.end(block);
    }

    fn gap(&mut self, gap: &Gap, block: &mut Block) {
        let record = &gap.record;
        self.time_and_pid(record.timestamp_ns, record.pid, block);
        block.put(",\"event\":\"dropped\",\"args\":{\"count\":");
        put_count(record, "null", block);
        block.byte(b'}');
        self.end(block);
    }

    fn wall(&mut self) -> Option<&mut WallClock> {
        self.wall.as_mut()
    }

    fn finish(&mut self, block: &mut Block) {
        if self.document {
            block.put("\n]}\n");
        }
    }
}

impl Line {
    fn new(kind: &Kind) -> Self {
        let mut event = Block::default();
        event.put(",\"event\":");
        string(kind.name.as_bytes(), "\"", &mut event);
        event.put(",\"args\":{");
        Self { event: Literal::new(event.as_bytes()), args: Args::new(kind, "\"") }
    }
}

impl Args {
    /// `quote` is what stands for a quotation mark: a CSV cell needs two.
    pub(crate) fn new(kind: &Kind, quote: &'static str) -> Self {
        let names = unique_names(kind.args(), &[]);
        let key = |(index, (name, arg)): (usize, (&String, &ArgDecl))| {
            let mut key = Block::default();
            key.put(if index == 0 { "" } else { "," });
            string(name.as_bytes(), quote, &mut key);
            key.byte(b':');
            (Literal::new(key.as_bytes()), arg.ty)
        };
        Self { keys: names.iter().zip(kind.args()).enumerate().map(key).collect(), quote }
    }

    /// Writes the members; returns the bytes that no argument accounts for.
    pub(crate) fn write<'a>(&self, event: &Event<'a>, block: &mut Block) -> &'a [u8] {
        let mut args = event.record.payload.args();
        for &(ref key, ty) in &self.keys {
            let Some(value) = args.next(ty) else { break };
            block.literal(key);
            match value {
                Value::Signed(value) => block.signed_decimal(value),
                Value::Unsigned(word) | Value::Pointer(word) => block.decimal(word),
                Value::Bool(value) => block.put(if value { "true" } else { "false" }),
                Value::String(bytes) => string(bytes, self.quote, block),
            }
        }
        if event.fit == Fit::Undeclared {
            let mut index = 0_u32;
            while let Some(word) = args.word() {
                block.put(if index == 0 { "" } else { "," });
                block.put(self.quote);
                block.put("word");
                block.decimal(index.into());
                block.put(self.quote);
                block.byte(b':');
                block.decimal(word);
                index += 1;
            }
        }
        args.left_over()
    }
}

/// The names of arguments; one that occurs twice, which tracetool lets pass, or is `taken`, is told apart by its place.
pub(crate) fn unique_names(args: &[ArgDecl], taken: &[&str]) -> Vec<String> {
    let mut used: HashSet<String> = taken.iter().map(ToString::to_string).collect();
    let unique = |(index, arg): (usize, &ArgDecl)| {
        let mut name = arg.name.clone();
        while !used.insert(name.clone()) {
            name = format!("{name}_{}", index + 1);
        }
        name
    };
    args.iter().enumerate().map(unique).collect()
}

/// Writes a JSON string, or `{"hex":"..."}` if it is not UTF-8.
pub(crate) fn string(bytes: &[u8], quote: &str, block: &mut Block) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return bytes_object(bytes, quote, block);
    };
    block.put(quote);
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|&byte| byte < b' ' || matches!(byte, b'"' | b'\\' | 0x7f)) {
        block.put(&rest[..at]);
        match rest[at] {
            b'\n' => block.put(r"\n"),
            b'\t' => block.put(r"\t"),
            b'\r' => block.put(r"\r"),
            b'"' => {
                block.byte(b'\\');
                block.put(quote);
            }
            b'\\' => block.put(r"\\"),
            byte => block.put([b'\\', b'u', b'0', b'0', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]),
        }
        rest = &rest[at + 1..];
    }
    block.put(rest);
    block.put(quote);
}

fn bytes_object(bytes: &[u8], quote: &str, block: &mut Block) {
    block.put(format!("{{{quote}hex{quote}:{quote}"));
    block.hex_bytes(bytes);
    block.put(quote);
    block.byte(b'}');
}
