//! A table for people: columns as wide as the first rows need, numbers to the right.
//!
//! If one event is asked for by name, its arguments are columns; else they share one.

use simpletrace_format::events::{ArgType, EventDecl};

use super::block::Block;
use super::text::{hex_args, put_value};
use super::{PerKind, Render, printable};
use crate::trace::{Event, Fit, Gap};

/// Rows that are looked at for the widths. Later ones that need more push their line out.
const SAMPLE_ROWS: usize = 2000;

#[derive(Debug)]
pub(crate) struct Table {
    only: Option<EventDecl>,
    columns: Vec<Column>,
    /// Rows kept until the widths are known; then none.
    sample: Vec<Vec<String>>,
    widths_known: bool,
    /// Which arguments are shown in hexadecimal.
    hex: PerKind<Vec<bool>>,
    /// Where a value is written, kept for its capacity.
    cell: Block,
}

#[derive(Debug)]
struct Column {
    title: String,
    width: usize,
    right: bool,
}

impl Table {
    pub(crate) fn new(only: Option<EventDecl>) -> Self {
        let mut columns = vec![
            Column::new("time_s", true),
            Column::new("since_start_s", true),
            Column::new("pid", true),
            Column::new("event", false),
        ];
        match &only {
            Some(decl) => {
                columns.extend(decl.args.iter().map(|arg| Column::new(&arg.name, arg.ty != ArgType::String)));
            }
            None => columns.push(Column::new("args", false)),
        }
        Self { only, columns, sample: Vec::new(), widths_known: false, hex: PerKind::default(), cell: Block::default() }
    }

    fn row(
        &mut self,
        (timestamp_ns, start_ns): (u64, u64),
        pid: u32,
        event: &str,
        args: Vec<String>,
        block: &mut Block,
    ) {
        let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        let sign = if timestamp_ns < start_ns { "-" } else { "" };
        let since_start = format!("{sign}{}", seconds(timestamp_ns.abs_diff(start_ns)));
        let mut row = vec![seconds(timestamp_ns), since_start, pid.to_string(), event.to_owned()];
        row.extend(args);
        if self.widths_known {
            return self.line(&row, block);
        }
        self.sample.push(row);
        if self.sample.len() == SAMPLE_ROWS {
            self.write_sample(block);
        }
    }

    fn write_sample(&mut self, block: &mut Block) {
        self.widths_known = true;
        let rows = std::mem::take(&mut self.sample);
        for (index, column) in self.columns.iter_mut().enumerate() {
            let cells = rows.iter().filter_map(|row| row.get(index)).map(|cell| cell.chars().count());
            column.width = cells.max().unwrap_or(0).max(column.title.chars().count());
        }
        let titles: Vec<_> = self.columns.iter().map(|column| column.title.clone()).collect();
        self.line(&titles, block);
        for row in &rows {
            self.line(row, block);
        }
    }

    fn line(&self, row: &[String], block: &mut Block) {
        let mut line = String::new();
        for (index, cell) in row.iter().enumerate() {
            if index > 0 {
                line.push_str("  ");
            }
            match self.columns.get(index) {
                Some(Column { width, right: true, .. }) => line.push_str(&format!("{cell:>width$}")),
                Some(Column { width, .. }) if index + 1 < row.len() => line.push_str(&format!("{cell:<width$}")),
                _ => line.push_str(cell),
            }
        }
        block.put(line.trim_end());
        block.byte(b'\n');
    }
}

impl Render for Table {
    fn event(&mut self, event: &Event<'_>, block: &mut Block) {
        let mut args = event.record.payload.args();
        let hex = self.hex.get(event.kind, |kind| hex_args(kind).take(kind.args().len()).collect());
        let values = event.kind.args().iter().zip(hex).map_while(|(arg, &mut is_hex)| {
            self.cell.clear();
            put_value(args.next(arg.ty)?, is_hex, &mut self.cell);
            Some(String::from_utf8_lossy(self.cell.as_bytes()).into_owned())
        });
        let mut cells: Vec<String> = values.collect();
        if self.only.is_none() {
            let named = event.kind.args().iter().zip(&cells).map(|(arg, value)| format!("{}={value}", arg.name));
            let mut text = named.collect::<Vec<_>>();
            if event.fit == Fit::Undeclared {
                let words = std::iter::from_fn(|| args.word()).enumerate();
                text.extend(words.map(|(index, word)| format!("word{index}={word:#x}")));
            }
            cells = vec![text.join(" ")];
        }
        if !args.rest().is_empty() {
            // Behind all columns, also if the record ended before them.
            cells.resize(self.only.as_ref().map_or(cells.len(), |decl| decl.args.len()), String::new());
            let hex: String = args.rest().iter().map(|byte| format!("{byte:02x}")).collect();
            cells.push(format!("left_over={hex}"));
        }
        self.row(
            (event.record.timestamp_ns, event.start_ns),
            event.record.pid,
            &printable(&event.kind.name),
            cells,
            block,
        );
    }

    fn gap(&mut self, gap: &Gap, block: &mut Block) {
        let record = &gap.record;
        let count = vec![format!("count={}", record.count)];
        self.row((record.timestamp_ns, gap.start_ns), record.pid, "dropped", count, block);
    }

    fn finish(&mut self, block: &mut Block) {
        if !self.widths_known {
            self.write_sample(block);
        }
    }
}

impl Column {
    fn new(title: &str, right: bool) -> Self {
        Self { title: title.to_owned(), width: 0, right }
    }
}
