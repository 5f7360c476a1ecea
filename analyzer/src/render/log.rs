//! The text that QEMU's log backend prints for an event, without its `TID@TIME:` prefix, which the file does not have.
//!
//! `NAME FORMATTED`, the format being the declared one.

use simpletrace_format::Value;
use simpletrace_format::events::Format;

use super::block::Block;
use super::{PerKind, Render, printable, put_count};
use crate::fit::Fit;
use crate::kinds::Kind;
use crate::trace::{Event, Gap};

#[derive(Debug, Default)]
pub(crate) struct Log {
    lines: PerKind<Line>,
    /// Where a format is filled in, kept for its capacity.
    filled_in: Vec<u8>,
}

#[derive(Debug)]
struct Line {
    name: String,
    /// `None` if there is none, or none that can be understood: then the values are listed.
    format: Option<Format>,
}

impl Render for Log {
    fn event(&mut self, event: &Event<'_>, block: &mut Block) {
        let line = self.lines.get(event.kind, Line::new);
        block.put(&line.name);
        let mut args = event.record.payload.args();
        let mut values = Vec::with_capacity(event.kind.args().len());
        values.extend(event.kind.args().iter().map_while(|arg| args.next(arg.ty)));
        if event.fit == Fit::Undeclared {
            values.extend(std::iter::from_fn(|| args.word()).map(Value::Pointer));
        }
        match &line.format {
            Some(format) => {
                self.filled_in.clear();
                format.render(values.iter().copied(), &mut self.filled_in);
                block.put(&self.filled_in);
            }
            None => {
                for (index, &value) in values.iter().enumerate() {
                    if index > 0 {
                        block.byte(b' ');
                    }
                    super::value::put_value(value, false, block);
                }
            }
        }
        block.byte(b'\n');
    }

    fn gap(&mut self, gap: &Gap, block: &mut Block) {
        let record = &gap.record;
        block.put("dropped ");
        put_count(record, "an unknown number of", block);
        block.put(" events\n");
    }
}

impl Line {
    fn new(kind: &Kind) -> Self {
        let format = kind.decl.as_ref().and_then(|decl| decl.format.as_ref()?.compile().ok());
        Self { name: format!("{} ", printable(&kind.name)), format }
    }
}
