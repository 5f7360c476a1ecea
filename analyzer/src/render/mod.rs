//! Printing events: one file per format.

mod block;
mod compat;
mod csv;
mod json;
mod log;
mod rows;
mod table;
mod text;
mod value;
mod wall;

use simpletrace_format::DroppedRecord;

use crate::kinds::Kind;
use crate::trace::{Event, Gap};

pub(crate) use block::Block;
pub(crate) use compat::Compat;
pub(crate) use csv::Csv;
#[cfg(feature = "frames")]
pub(crate) use csv::cell as csv_cell;
pub(crate) use json::Json;
#[cfg(feature = "frames")]
pub(crate) use json::string as json_string;
#[cfg(feature = "columns")]
pub(crate) use json::{Args as JsonArgs, unique_names};
pub(crate) use log::Log;
#[cfg(feature = "columns")]
pub(crate) use rows::plain_text;
pub(crate) use rows::{Cell, Column, Rows};
pub(crate) use table::Table;
pub(crate) use text::Text;
pub(crate) use wall::{WallClock, utc};

/// Prints the events of a trace in one format.
pub(crate) trait Render {
    /// Writes what stands before the first event.
    fn begin(&mut self, _block: &mut Block) {}
    /// Writes one event.
    fn event(&mut self, event: &Event<'_>, block: &mut Block);
    /// Writes one gap.
    fn gap(&mut self, gap: &Gap, block: &mut Block);
    /// The clock that times of day are told by, if they are.
    fn wall(&mut self) -> Option<&mut WallClock> {
        None
    }
    /// Writes what stands behind the last event.
    fn finish(&mut self, _block: &mut Block) {}
}

/// What a format prepares once for each kind of event.
#[derive(Debug)]
pub(crate) struct PerKind<T> {
    by_index: Vec<Option<T>>,
}

impl<T> Default for PerKind<T> {
    fn default() -> Self {
        Self { by_index: Vec::new() }
    }
}

impl<T> PerKind<T> {
    #[inline]
    pub(crate) fn get(&mut self, kind: &Kind, prepare: impl FnOnce(&Kind) -> T) -> &mut T {
        if self.by_index.len() <= kind.index {
            self.by_index.resize_with(kind.index + 1, || None);
        }
        self.by_index[kind.index].get_or_insert_with(|| prepare(kind))
    }
}

/// Writes how many events are missing; where nobody knows, `unknown`.
pub(crate) fn put_count(record: &DroppedRecord, unknown: &str, block: &mut Block) {
    match record.known_count() {
        Some(count) => block.decimal(count),
        None => block.put(unknown),
    }
}

/// A name with nothing in it that a terminal would obey or a line-based reader stumble over.
pub(crate) fn printable(name: &str) -> String {
    name.chars().flat_map(|c| if is_command(c) { c.escape_default().collect() } else { vec![c] }).collect()
}

/// Whether a terminal takes a character as a command: those that control, and those that turn round what stands behind them.
pub(crate) fn is_command(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
