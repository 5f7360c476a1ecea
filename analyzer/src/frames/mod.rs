//! Traces as dataframes: tables for [polars](https://docs.rs/polars), of which only what a query names is read.
//!
//! [`scan`] opens a trace. Its tables are lazy frames: each is read when its query is run, and then only its events, of these only the columns that
//! the query needs, and of times only those that it admits. A query of several tables is best run with [`collect`], which reads the trace once.
//! docs/QUERIES.md has the tables, their columns, and ten questions.
//!
//! ```
//! use polars::prelude::*;
//! use simpletrace_rs::frames;
//!
//! # fn main() -> PolarsResult<()> {
//! # let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/demo");
//! # let path = |name: &str| format!("{folder}/{name}");
//! let trace = frames::scan(&[path("disk.trace")], &[path("disk.trace-events")])?;
//! let reads = trace.event("virtio_blk_handle_read")?;
//! let by_disk = reads.group_by([col("vdev")]).agg([len().alias("reads"), col("count").sum()]);
//! let by_disk = frames::collect(by_disk.sort(["vdev"], SortMultipleOptions::default()))?;
//! assert_eq!(by_disk.column("reads")?.cast(&DataType::Int64)?.i64()?.to_vec(), [Some(16), Some(14)]);
//! # Ok(())
//! # }
//! ```

mod accept;
mod bounds;
mod builders;
mod convert;
mod gaps;
mod rewrite;
mod scan;
mod source;
mod sql;
mod table;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use polars::prelude::*;

use crate::filter::Selection;
use crate::findings::Outcome;
use crate::formats::Formats;
use crate::pairs::Operation;
use crate::presets::Presets;
use scan::TableScan;
pub(crate) use source::Source;
use source::say;
pub(crate) use sql::query;
use table::Table;

/// The tables of a trace.
#[derive(Clone)]
pub struct Frames {
    source: Arc<Source>,
}

/// Opens trace files, which are read as one, and their declarations, as the commands do: without `events`, a trace-events file is looked for among
/// `traces`, in the variable `SIMPLETRACE_EVENTS`, and beside the trace.
///
/// # Errors
///
/// A file cannot be opened, or declarations are none.
pub fn scan<P: AsRef<Path>>(traces: &[P], events: &[P]) -> PolarsResult<Frames> {
    let [traces, events] =
        [traces, events].map(|paths| paths.iter().map(|path| path.as_ref().to_owned()).collect::<Vec<PathBuf>>());
    let source = Source::open(&traces, &events, Formats::default(), Selection::default(), false);
    Ok(Frames { source: Arc::new(source.map_err(to_polars)?) })
}

/// Runs a query, with one reading of each trace for all tables of it. `LazyFrame::collect` does as well, but reads a trace once for each table.
///
/// What is wrong with a trace is said on stderr, as by the commands; see also [`Frames::is_sound`].
///
/// # Errors
///
/// Those of polars, or a trace cannot be read: a pipe only once.
pub fn collect(query: LazyFrame) -> PolarsResult<DataFrame> {
    scan::run(query, |source, wants| {
        let (frames, trace, oddities) = source.read(wants).map_err(to_polars)?;
        say(&trace, oddities);
        Ok(frames)
    })
}

impl Frames {
    /// The events of a name, with a column for each argument; of an event that is not declared, with its bytes as `payload`, if the trace has it.
    ///
    /// # Errors
    ///
    /// There is no such event; that of an undeclared event takes a look at the trace, which a pipe does not allow.
    pub fn event(&self, name: &str) -> PolarsResult<LazyFrame> {
        match sql::event(&self.source, name).map_err(to_polars)? {
            Some(table) => TableScan::frame(&self.source, table),
            None => Err(to_polars(sql::no_such_event(&self.source, name))),
        }
    }

    /// All events: `ts_ns`, `pid`, `event`, and the arguments as JSON in `args`.
    ///
    /// # Errors
    ///
    /// Those of polars.
    pub fn events(&self) -> PolarsResult<LazyFrame> {
        TableScan::frame(&self.source, Table::Events)
    }

    /// The operations of a preset of `latency`.
    ///
    /// # Errors
    ///
    /// There is no such preset, or the trace's declarations do not have its events.
    pub fn pairs(&self, preset: &str) -> PolarsResult<LazyFrame> {
        let operation = || {
            let presets = Presets::load([])?;
            let preset = presets.get(preset)?.suited(self.source.events());
            let question = preset.question()?;
            Operation::new(question, &preset.filters(), self.source.events(), true)
        };
        TableScan::frame(&self.source, Table::Pairs(Box::new(operation().map_err(to_polars)?)))
    }

    /// The stretches of time that events are missing from.
    ///
    /// # Errors
    ///
    /// Those of polars.
    pub fn gaps(&self) -> PolarsResult<LazyFrame> {
        TableScan::frame(&self.source, Table::Gaps)
    }

    /// Whether all that was read so far is undamaged, and fits its declarations. Lost events do not count: they are in [`gaps`](Self::gaps).
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.source.outcome() == Outcome::Good
    }
}

/// An error of ours as one of polars.
fn to_polars(error: anyhow::Error) -> PolarsError {
    match error.downcast::<PolarsError>() {
        Ok(error) => error,
        Err(error) => PolarsError::ComputeError(format!("{error:#}").into()),
    }
}
