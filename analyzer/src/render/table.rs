//! A table for people: columns as wide as the first rows need, numbers to the right.
//!
//! If one event is asked for by name, its arguments are columns; else they share one.

use simpletrace_format::events::{ArgType, EventDecl};

use super::block::Block;
use super::value::{hex_args, numbers, put_name, put_value};
use super::{PerKind, Render, WallClock, printable, put_count};
use crate::fit::Fit;
use crate::kinds::Kind;
use crate::numbers::Numbers;
use crate::trace::{Event, Gap};

/// Rows that are looked at for the widths. Later ones that need more push their line out.
const SAMPLE_ROWS: usize = 2000;
/// Bytes of rows that are kept meanwhile.
const SAMPLE_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Table {
    only: Option<EventDecl>,
    columns: Vec<Column>,
    /// Rows kept until the widths are known; then none.
    sample: Vec<Row>,
    sample_bytes: usize,
    widths_known: bool,
    kinds: PerKind<Prepared>,
    row: RowBuilder,
    wall: Option<WallClock>,
    /// Whether numbers are just that.
    is_raw: bool,
}

#[derive(Debug)]
struct Column {
    title: String,
    width: usize,
    right: bool,
}

/// The cells of a row, one behind the other.
#[derive(Debug, Default)]
struct Row {
    text: Vec<u8>,
    /// Where each cell ends.
    ends: Vec<usize>,
}

/// A row being written, kept for its capacity.
#[derive(Debug, Default)]
struct RowBuilder {
    text: Block,
    ends: Vec<usize>,
}

/// What is the same for all events of a kind.
#[derive(Debug)]
struct Prepared {
    name: String,
    /// The name of each argument, its type, whether it is shown in hexadecimal, and what its numbers are.
    args: Vec<(String, ArgType, bool, Option<Numbers>)>,
}

impl Table {
    pub(crate) fn new(only: Option<EventDecl>, wall: Option<WallClock>, is_raw: bool) -> Self {
        let mut columns = vec![
            Column::new(if wall.is_some() { "time_utc" } else { "time_s" }, true),
            Column::new("since_start_s", true),
            Column::new("pid", true),
            Column::new("event", false),
        ];
        match &only {
            Some(decl) => {
                columns
                    .extend(decl.args.iter().map(|arg| Column::new(&printable(&arg.name), arg.ty != ArgType::String)));
            }
            None => columns.push(Column::new("args", false)),
        }
        Self {
            only,
            columns,
            sample: Vec::new(),
            sample_bytes: 0,
            widths_known: false,
            kinds: PerKind::default(),
            row: RowBuilder::default(),
            wall,
            is_raw,
        }
    }

    fn end_row(&mut self, block: &mut Block) {
        if self.widths_known {
            put_row(&self.columns, self.row.text.as_bytes(), &self.row.ends, block);
        } else {
            self.sample_bytes += self.row.text.len();
            self.sample.push(Row { text: self.row.text.as_bytes().to_vec(), ends: self.row.ends.clone() });
            if self.sample.len() == SAMPLE_ROWS || self.sample_bytes > SAMPLE_BYTES {
                self.write_sample(block);
            }
        }
        self.row.text.clear();
        self.row.ends.clear();
    }

    fn write_sample(&mut self, block: &mut Block) {
        self.widths_known = true;
        for (index, column) in self.columns.iter_mut().enumerate() {
            let cells = self.sample.iter().filter_map(|row| cells(&row.text, &row.ends).nth(index));
            column.width = cells.map(width).max().unwrap_or(0).max(width(column.title.as_bytes()));
        }
        let mut titles = RowBuilder::default();
        for column in &self.columns {
            titles.text.put(&column.title);
            titles.end_cell();
        }
        put_row(&self.columns, titles.text.as_bytes(), &titles.ends, block);
        for row in std::mem::take(&mut self.sample) {
            put_row(&self.columns, &row.text, &row.ends, block);
        }
    }
}

impl Render for Table {
    fn event(&mut self, event: &Event<'_>, block: &mut Block) {
        let kind = self.kinds.get(event.kind, |kind| Prepared::new(kind, self.is_raw));
        let row = &mut self.row;
        row.start(event.record.timestamp_ns, event.start_ns, &mut self.wall);
        row.pid_and_event(event.record.pid, &kind.name);
        let mut args = event.record.payload.args();
        let mut blank = "";
        for (name, ty, is_hex, numbers) in &kind.args {
            let Some(value) = args.next(*ty) else { break };
            if self.only.is_none() {
                row.text.put(std::mem::replace(&mut blank, " "));
                row.text.put(name);
                row.text.byte(b'=');
            }
            put_value(value, *is_hex, &mut row.text);
            if let Some(numbers) = *numbers {
                put_name(numbers, value, &mut row.text);
            }
            if self.only.is_some() {
                row.end_cell();
            }
        }
        if event.fit == Fit::Undeclared {
            let mut index = 0;
            while let Some(word) = args.word() {
                row.text.put(std::mem::replace(&mut blank, " "));
                row.text.put("word");
                row.text.decimal(index);
                row.text.put("=0x");
                row.text.hex(word);
                index += 1;
            }
        }
        if self.only.is_none() {
            row.end_cell();
        }
        if !args.left_over().is_empty() {
            // Behind all columns, also if the record ended before them.
            while row.ends.len() < self.columns.len() {
                row.end_cell();
            }
            row.text.put("left_over=");
            row.text.hex_bytes(args.left_over());
            row.end_cell();
        }
        self.end_row(block);
    }

    fn gap(&mut self, gap: &Gap, block: &mut Block) {
        self.row.start(gap.record.timestamp_ns, gap.start_ns, &mut self.wall);
        self.row.pid_and_event(gap.record.pid, "dropped");
        self.row.text.put("count=");
        put_count(&gap.record, "unknown", &mut self.row.text);
        self.row.end_cell();
        self.end_row(block);
    }

    fn wall(&mut self) -> Option<&mut WallClock> {
        self.wall.as_mut()
    }

    fn finish(&mut self, block: &mut Block) {
        if !self.widths_known {
            self.write_sample(block);
        }
    }
}

impl Prepared {
    fn new(kind: &Kind, is_raw: bool) -> Self {
        let args = kind.args().iter().zip(hex_args(kind)).zip(numbers(kind));
        Self {
            name: printable(&kind.name),
            args: args
                .map(|((arg, is_hex), numbers)| (printable(&arg.name), arg.ty, is_hex, numbers.filter(|_| !is_raw)))
                .collect(),
        }
    }
}

impl RowBuilder {
    fn start(&mut self, timestamp_ns: u64, start_ns: u64, wall: &mut Option<WallClock>) {
        let (since_ns, is_before) = match wall {
            None => {
                self.text.seconds(timestamp_ns);
                (timestamp_ns.abs_diff(start_ns), timestamp_ns < start_ns)
            }
            Some(wall) => {
                wall.put(timestamp_ns, &mut self.text);
                wall.since_start(timestamp_ns, start_ns)
            }
        };
        self.end_cell();
        if is_before {
            self.text.byte(b'-');
        }
        self.text.seconds(since_ns);
        self.end_cell();
    }

    fn pid_and_event(&mut self, pid: u32, event: &str) {
        self.text.decimal(pid.into());
        self.end_cell();
        self.text.put(event);
        self.end_cell();
    }

    fn end_cell(&mut self) {
        self.ends.push(self.text.len());
    }
}

impl Column {
    fn new(title: &str, right: bool) -> Self {
        Self { title: title.to_owned(), width: 0, right }
    }
}

fn cells<'a>(text: &'a [u8], ends: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts.zip(ends).map(|(start, &end)| text.get(start..end).unwrap_or_default())
}

/// Characters, as a terminal has columns for nearly all of them.
fn width(cell: &[u8]) -> usize {
    str::from_utf8(cell).map_or(cell.len(), |text| text.chars().count())
}

fn put_row(columns: &[Column], text: &[u8], ends: &[usize], block: &mut Block) {
    // Padding is written only once something stands behind it.
    let mut padding = 0;
    for (index, cell) in cells(text, ends).enumerate() {
        let (width, right) = columns.get(index).map_or((0, false), |column| (column.width, column.right));
        let missing = width.saturating_sub(self::width(cell));
        padding += if index > 0 { 2 } else { 0 } + if right { missing } else { 0 };
        if !cell.is_empty() {
            for _ in 0..std::mem::take(&mut padding) {
                block.byte(b' ');
            }
            block.put(cell);
        }
        padding += if right { 0 } else { missing };
    }
    block.byte(b'\n');
}
