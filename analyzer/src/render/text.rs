//! The default for people: both times, typed values.
//!
//! `[CLOCK +SINCE_START] PID EVENT ARG=VALUE ...`, times in seconds to the nanosecond. Numbers that the declared format prints in
//! hexadecimal are shown so here.

use anstyle::{AnsiColor, Style};
use simpletrace_format::Args;
use simpletrace_format::events::{ArgDecl, ArgType};

use super::block::{Block, Literal};
use super::value::{hex_args, numbers, put_name, put_value};
use super::{PerKind, Render, WallClock, printable, put_count};
use crate::fit::Fit;
use crate::kinds::Kind;
use crate::numbers::Numbers;
use crate::trace::{Event, Gap};

#[derive(Debug)]
pub(crate) struct Text {
    lines: PerKind<Line>,
    colours: Colours,
    wall: Option<WallClock>,
    /// Whether numbers are just that.
    is_raw: bool,
}

#[derive(Debug)]
struct Line {
    name: Literal,
    args: Vec<Arg>,
    /// Whether numbers of any of them may have names.
    has_names: bool,
}

#[derive(Debug)]
struct Arg {
    /// ` NAME=`
    before: Literal,
    ty: ArgType,
    is_hex: bool,
    numbers: Option<Numbers>,
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
    pub(crate) fn new(colour: bool, wall: Option<WallClock>, is_raw: bool) -> Self {
        Self { lines: PerKind::default(), colours: Colours::new(colour), wall, is_raw }
    }

    fn time_and_pid(&mut self, timestamp_ns: u64, start_ns: u64, pid: u32, block: &mut Block) {
        let (on, off) = &self.colours.time;
        block.put(on);
        block.byte(b'[');
        match &mut self.wall {
            None => {
                block.seconds(timestamp_ns);
                block.put(if timestamp_ns < start_ns { " -" } else { " +" });
                block.seconds(timestamp_ns.abs_diff(start_ns));
            }
            Some(wall) => {
                wall.put(timestamp_ns, block);
                let (since_ns, is_before) = wall.since_start(timestamp_ns, start_ns);
                block.put(if is_before { " -" } else { " +" });
                block.seconds(since_ns);
            }
        }
        block.byte(b']');
        block.put(off);
        block.byte(b' ');
        block.decimal(pid.into());
    }
}

impl Render for Text {
    fn event(&mut self, event: &Event<'_>, block: &mut Block) {
        self.time_and_pid(event.record.timestamp_ns, event.start_ns, event.record.pid, block);
        let (on, off) = &self.colours.event;
        let line = self.lines.get(event.kind, |kind| Line::new(kind, on, off, self.is_raw));
        block.literal(&line.name);
        let mut args = event.record.payload.args();
        if line.has_names {
            named_args(&line.args, &mut args, block);
        } else {
            // The loop of `named_args`, but for the question that most events need not be asked.
            for arg in &line.args {
                let Some(value) = args.next(arg.ty) else { break };
                block.literal(&arg.before);
                put_value(value, arg.is_hex, block);
            }
        }
        match event.fit {
            Fit::Exact => {}
            Fit::Undeclared => {
                let mut index = 0_u32;
                while let Some(word) = args.word() {
                    block.put(" word");
                    block.decimal(index.into());
                    block.put("=0x");
                    block.hex(word);
                    index += 1;
                }
                left_over(args.left_over(), block);
            }
            Fit::Longer | Fit::Shorter => left_over(args.left_over(), block),
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
        put_count(record, "unknown", block);
        block.byte(b'\n');
    }

    fn wall(&mut self) -> Option<&mut WallClock> {
        self.wall.as_mut()
    }
}

impl Line {
    fn new(kind: &Kind, on: &str, off: &str, is_raw: bool) -> Self {
        let args = kind.args().iter().zip(hex_args(kind)).zip(numbers(kind));
        let args: Vec<_> =
            args.map(|((arg, is_hex), numbers)| Arg::new(arg, is_hex, numbers.filter(|_| !is_raw))).collect();
        Self {
            name: Literal::new(format!(" {on}{}{off}", printable(&kind.name))),
            has_names: args.iter().any(|arg| arg.numbers.is_some()),
            args,
        }
    }
}

impl Arg {
    fn new(arg: &ArgDecl, is_hex: bool, numbers: Option<Numbers>) -> Self {
        Self { before: Literal::new(format!(" {}=", printable(&arg.name))), ty: arg.ty, is_hex, numbers }
    }
}

/// Writes arguments, and the names of their numbers.
#[inline(never)]
fn named_args(line: &[Arg], args: &mut Args<'_>, block: &mut Block) {
    for arg in line {
        let Some(value) = args.next(arg.ty) else { break };
        block.literal(&arg.before);
        put_value(value, arg.is_hex, block);
        if let Some(numbers) = arg.numbers {
            put_name(numbers, value, block);
        }
    }
}

/// Writes bytes that no declared argument accounts for.
fn left_over(bytes: &[u8], block: &mut Block) {
    if !bytes.is_empty() {
        block.put(" left_over=");
        block.hex_bytes(bytes);
    }
}
