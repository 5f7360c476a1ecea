//! Traces as Arrow tables: of one event with a column for each argument, of all events, of operations and their latencies.
//!
//! [`open`] opens a trace, and a method of [`Source`] begins to read it, in a thread of its own that is a few batches ahead at most. A [`Stream`] is an
//! `arrow_array::RecordBatchReader`, which other libraries take through Arrow's C data interface. docs/EXPORTS.md has the columns.
//!
//! What is wrong with a trace is no error: all that is intact is there, and the [`Report`] at the end says what is not.
//!
//! ```
//! use arrow_array::cast::AsArray as _;
//! use arrow_array::types::UInt64Type;
//! use simpletrace_rs::tables::{self, Options, Verdict};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/demo");
//! # let path = |name: &str| format!("{folder}/{name}");
//! let source = tables::open(&[path("disk.trace")], &[path("disk.trace-events")])?;
//! let only = Options { filters: vec!["count >= 32".to_owned()], ..Options::default() };
//! let mut sectors = 0;
//! let mut reads = source.event("virtio_blk_handle_read", &only)?;
//! for batch in &mut reads {
//!     let batch = batch?;
//!     sectors += batch["count"].as_primitive::<UInt64Type>().values().iter().sum::<u64>();
//! }
//! assert_eq!(sectors, 2720);
//! assert_eq!(reads.report().map(|report| report.verdict), Some(Verdict::Sound));
//! # Ok(())
//! # }
//! ```

mod events;
mod job;
mod operation;
mod stream;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Result as Anyhow, bail};
use arrow_schema::FieldRef;
use simpletrace_format::events::{EventIndex, nearest};

use crate::cli::RecordArgs;
use crate::filter::{Globs, Selection};
use crate::findings::Outcome;
use crate::formats::Formats;
use crate::input::{CannotOpen, Files, Input, load_events};
use crate::render::printable;
use crate::say;
use crate::trace::Trace;

pub use crate::say::{Level, Remark};
pub use events::{Events, Table};
pub use operation::{Operation, Preset, presets};
pub use stream::Stream;

/// About how large a batch is, in bytes: small enough for a processor's cache, large enough that handing it on costs nothing.
const BATCH_BYTES: usize = 4 << 20;

/// Trace files, and their declarations.
pub struct Source {
    traces: Vec<Input>,
    declared: Option<EventIndex>,
    /// What was said when they were opened.
    remarks: Vec<Remark>,
}

/// Which records and columns; all, if nothing else is said.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Names and patterns of events, as with `-e`. They count where many events are read.
    pub events: Vec<String>,
    /// The columns that are wanted, in whatever order.
    pub columns: Option<Vec<String>>,
    /// A window of time, as with `-t`: `5s-`, `-10s`, `1s+200ms`, `@1234.5s-`.
    pub time: Option<String>,
    /// Conditions, as with `-w`; a record has to meet each.
    pub filters: Vec<String>,
    /// Process ids; all, if empty.
    pub pids: Vec<u32>,
    /// Stop after so many records.
    pub limit: Option<u64>,
    /// Have the time of day as `wall_ns` also where `columns` are not given. It is null where a file does not say it, as QEMU's never do.
    pub wall: bool,
    /// The trace has no file header.
    pub no_header: bool,
}

/// What was found in a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The worst of all.
    pub verdict: Verdict,
    /// What the commands would have said on stderr.
    pub remarks: Vec<Remark>,
    /// The texts of those remarks that say where a file ends inside a record, or compressed data early.
    pub torn: Vec<String>,
    /// Whether there were declarations. Without them, the bytes of the arguments are all that is known of events.
    pub is_declared: bool,
    /// How many places events are missing from, and how many are known to be missing.
    pub gaps: u64,
    /// See above.
    pub dropped: u64,
    /// Of [latencies](Source::latency), the JSON object that `latency -F json` prints, without its `groups`.
    pub facts: Option<String>,
}

/// How far a trace is to be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// All is there.
    Sound,
    /// A file ends inside a record, as when the traced program was killed.
    Torn,
    /// It is damaged, or does not fit its declarations.
    Damaged,
    /// A file could not be read on.
    Unreadable,
}

/// Why there is no table.
#[derive(Debug)]
pub struct Error(anyhow::Error);

/// A table, or why there is none.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// What the operating system says, if it is at fault.
    #[must_use]
    pub fn io(&self) -> Option<&io::Error> {
        self.0.chain().find_map(|cause| cause.downcast_ref())
    }

    /// The file that cannot be opened, if that is what is wrong.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.0.downcast_ref::<CannotOpen>()?.path.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for Error {}

impl From<anyhow::Error> for Error {
    fn from(error: anyhow::Error) -> Self {
        Self(error)
    }
}

/// Opens trace files, which are read as one, and their declarations, as the commands do: without `events`, a trace-events file is looked for among
/// `traces`, in the variable `SIMPLETRACE_EVENTS`, and beside the trace.
///
/// # Errors
///
/// A file cannot be opened, or declarations are none.
pub fn open<P: AsRef<Path>>(traces: &[P], events: &[P]) -> Result<Source> {
    let [traces, events] =
        [traces, events].map(|paths| paths.iter().map(|path| path.as_ref().to_owned()).collect::<Vec<PathBuf>>());
    let (opened, remarks) = say::kept(|| {
        let files = Files::open(&traces, &events, true)?;
        Ok::<_, anyhow::Error>((files.traces, load_events(files.events)?))
    });
    let (traces, declared) = opened?;
    if traces.is_empty() {
        return Err(Error(anyhow::anyhow!("no trace is given")));
    }
    Ok(Source { traces, declared, remarks })
}

impl Source {
    /// The names of all events that are declared, sorted.
    #[must_use]
    pub fn declared(&self) -> Vec<String> {
        let mut names: Vec<_> = self.declared.iter().flat_map(EventIndex::names).map(str::to_owned).collect();
        names.sort_unstable();
        names
    }
}

impl Options {
    fn formats(&self) -> Formats {
        Formats { no_header: self.no_header, ..Formats::default() }
    }

    fn records(&self) -> Anyhow<RecordArgs> {
        RecordArgs::of(&self.filters, self.time.as_deref(), &self.pids)
    }

    /// Of these events.
    fn selection(&self, globs: Globs, declared: Option<&EventIndex>) -> Anyhow<Selection> {
        self.selection_with(globs, &[], declared)
    }

    /// With conditions that come from elsewhere.
    fn selection_with(&self, globs: Globs, filters: &[String], declared: Option<&EventIndex>) -> Anyhow<Selection> {
        let selection = Selection { limit: self.limit, ..self.records()?.selection(globs, filters)? };
        selection.check(declared)?;
        Ok(selection)
    }

    /// Checks that there are such columns.
    fn check_columns<'a>(&self, fields: impl IntoIterator<Item = &'a FieldRef>) -> Anyhow<()> {
        let names: Vec<_> = fields.into_iter().map(|field| field.name().as_str()).collect();
        check_columns(self.columns.iter().flatten(), &names)
    }

    /// Whether a column is wanted of those that there are.
    fn wants(&self, name: &str) -> bool {
        self.columns.as_ref().is_none_or(|columns| columns.iter().any(|column| column == name))
    }
}

fn check_columns<'a>(columns: impl Iterator<Item = &'a String>, names: &[&str]) -> Anyhow<()> {
    for column in columns {
        if !names.contains(&column.as_str()) {
            let hint = match nearest(column, names.iter().copied()) {
                Some(nearest) => format!("did you mean {nearest}?"),
                None => format!("there are {}", names.join(", ")),
            };
            bail!("no column is called {column}; {hint}");
        }
    }
    Ok(())
}

/// Why there is no more to say of an event that was asked for.
fn unknown_event(trace: &Trace, name: &str) -> anyhow::Error {
    let nearest = trace.kinds.declared().nearest(name).or_else(|| nearest(name, trace.mapped_names()));
    let hint = nearest.map_or(String::new(), |nearest| format!("; did you mean {nearest}?"));
    anyhow::anyhow!("no event is called {}{hint}", printable(name))
}

/// Checks once a trace is read that the events that were asked for exist, with or without records.
///
/// # Errors
///
/// A name without a `*` is of no event.
fn check_names(trace: &Trace) -> Anyhow<()> {
    if trace.files.is_empty() {
        return Ok(());
    }
    if let Some(unknown) = trace.unknown_names().next() {
        return Err(unknown_event(trace, unknown));
    }
    for pattern in trace.unmatched_patterns() {
        say::warning(&format!("no event is called as in the pattern {}", printable(pattern)));
    }
    Ok(())
}

fn say_undeclared(trace: &Trace) {
    if !trace.kinds.have_declarations {
        say::warning(
            "no trace-events file was given or found, so arguments are one column of bytes; take the trace-events-all of the build \
             that wrote the trace",
        );
    }
}

impl Report {
    fn new(trace: &Trace) -> Self {
        let verdict = match trace.outcome(false) {
            Outcome::Good if trace.findings.torn.is_empty() => Verdict::Sound,
            Outcome::Good => Verdict::Torn,
            Outcome::Faulty => Verdict::Damaged,
            Outcome::Failed => Verdict::Unreadable,
        };
        let findings = &trace.findings;
        let gaps = findings.gaps.saturating_sub(findings.gap_ends);
        let is_declared = trace.kinds.have_declarations;
        Self {
            verdict,
            remarks: Vec::new(),
            torn: findings.torn.clone(),
            is_declared,
            gaps,
            dropped: findings.dropped,
            facts: None,
        }
    }
}
