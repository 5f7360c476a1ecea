//! The one definition of every command and option: help, man pages and completions come from it.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Result;
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};

use super::latency::Top;
use crate::chart::Buckets;
use crate::condition::Conditions;
use crate::filter::{Globs, Selection};
use crate::formats::{Formats, V0Ids};
use crate::latencies::Percentile;
use crate::pairing::{Discipline, Drops};
use crate::time::TimeRange;

macro_rules! exit_codes {
    () => {
        "Exit codes:
  0  all is well; a trace that ends inside a record is, too
  1  the trace is damaged, or does not fit its declarations
  2  wrong usage, no valid trace, or a file cannot be read or written"
    };
}

/// Reads the trace files of QEMU's `simple` trace backend.
#[derive(Debug, Parser)]
#[command(name = "simpletrace-rs", version, after_help = exit_codes!(), max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// When to use colour
    #[arg(long, visible_alias = "color", value_enum, value_name = "WHEN", default_value_t = Colour::Auto, global = true, display_order = 100)]
    pub(crate) colour: Colour,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print the events of a trace
    #[command(
        override_usage = "simpletrace-rs decode [OPTIONS] TRACE... [EVENTS]",
        after_help = concat!(exit_codes!(), "

Example:
  simpletrace-rs decode trace-1234 trace-events-all -e 'virtio_blk_*' -t 5s+200ms
  simpletrace-rs decode trace-1234 trace-events-all -w 'nsectors >= 256 && time < 5s'")
    )]
    Decode(DecodeArgs),
    /// Show what is in a trace, on one screen
    #[command(
        override_usage = "simpletrace-rs info [OPTIONS] TRACE... [EVENTS]",
        after_help = concat!(exit_codes!(), "

Example:
  simpletrace-rs info trace-1234")
    )]
    Info(InfoArgs),
    /// Measure how long operations took, from one event to another
    #[command(
        override_usage = "simpletrace-rs latency [OPTIONS] TRACE... [EVENTS] 'BEGIN -> END' --on KEY",
        after_help = concat!(exit_codes!(), "
  With --fail-if and --drops fail, 1 also says that a gate fails.

Example:
  simpletrace-rs latency trace-1234 trace-events-all 'thread_pool_submit -> thread_pool_complete' --on req
  simpletrace-rs latency trace-1234 trace-events-all 'virtio_blk_handle_write -> virtio_blk_req_complete' --on req -w 'virtio_blk_handle_write: nsectors >= 256'
  simpletrace-rs latency trace-1234 trace-events-all --preset virtio-blk --fail-if 'p99 > 2ms' --fail-if 'pairs < 1000'")
    )]
    Latency(LatencyArgs),
    /// Compare how long operations took in two traces, or find the first record where these part
    #[command(
        override_usage = "simpletrace-rs diff [OPTIONS] OLD NEW [EVENTS] 'BEGIN -> END' --on KEY
       simpletrace-rs diff [OPTIONS] OLD NEW [EVENTS] --preset NAME
       simpletrace-rs diff --first [OPTIONS] OLD NEW [EVENTS]",
        after_help = concat!(exit_codes!(), "
  With --fail-if and --drops fail, 1 also says that a gate fails; with --first, that the traces part.

Example:
  simpletrace-rs diff old.trace new.trace trace-events-all --preset virtio-blk --by event
  simpletrace-rs diff old.trace new.trace trace-events-all --preset virtio-blk --fail-if 'p99 > 1.1x' --fail-if 'p50 > +20us'
  simpletrace-rs diff --first old.trace new.trace trace-events-all -e 'virtio_blk_*'")
    )]
    Diff(DiffArgs),
    /// Count events, and say how often they come, what their arguments are, or how many operations are under way
    #[command(
        override_usage = "simpletrace-rs stats [OPTIONS] TRACE... [EVENTS]
       simpletrace-rs stats [OPTIONS] TRACE... [EVENTS] --of EVENT.ARG
       simpletrace-rs stats [OPTIONS] TRACE... [EVENTS] --depth 'BEGIN -> END' --on KEY",
        after_help = concat!(exit_codes!(), "

Example:
  simpletrace-rs stats trace-1234 trace-events-all -e 'virtio_blk_*'
  simpletrace-rs stats trace-1234 trace-events-all --of blk_co_preadv.bytes --by blk --hist
  simpletrace-rs stats trace-1234 trace-events-all --depth 'thread_pool_submit -> thread_pool_complete' --on req")
    )]
    Stats(StatsArgs),
    /// Ask a trace in SQL: a table for each event, for pairs of them, and for gaps
    #[command(
        override_usage = "simpletrace-rs sql [OPTIONS] TRACE... [EVENTS] QUERY",
        after_help = concat!(exit_codes!(), "

Example:
  simpletrace-rs sql trace-1234 trace-events-all \"select vdev, count(*) from virtio_notify group by vdev\"
  simpletrace-rs sql trace-1234 trace-events-all --pairs virtio-blk \"select vdev, quantile_disc(latency_ns, 0.99) from pairs group by vdev\"")
    )]
    Sql(SqlArgs),
    /// List and search declarations, and say what does not fit between them and a trace
    #[command(after_help = concat!(exit_codes!(), "

Example:
  simpletrace-rs events trace-events-all -e 'qcow2_*'
  simpletrace-rs events trace-1234 trace-events-all"))]
    Events(EventsArgs),
    /// Check that every byte of a trace is accounted for
    #[command(
        override_usage = "simpletrace-rs check [OPTIONS] TRACE... [EVENTS]",
        after_help = "Exit codes:
  0  every byte is accounted for
  1  the header is valid, but something was skipped or is unmapped, a second header follows, or,
     with EVENTS, arguments do not fit their declaration
  2  there is no valid header, or the file cannot be read

Example:
  simpletrace-rs check trace-1234 trace-events-all && echo sound"
    )]
    Check(CheckArgs),
    /// Write what is intact in a damaged or old trace into a sound file
    #[command(
        override_usage = "simpletrace-rs repair [OPTIONS] TRACE [EVENTS] -o OUT",
        after_help = "Exit codes:
  0  everything that could be read is in OUT
  1  something that could be read is not
  2  wrong usage, no valid trace, or a file cannot be read or written

Example:
  simpletrace-rs repair trace-1234 -o trace-1234.repaired"
    )]
    Repair(RepairArgs),
    /// Finish the trace of a durable recording that was killed
    #[command(
        override_usage = "simpletrace-rs recover [OPTIONS] TRACE
       simpletrace-rs recover [OPTIONS] --list
       simpletrace-rs recover [OPTIONS] --remove TRACE|SEGMENT...",
        after_help = "Exit codes:
  0  done: all that was left is in the trace, or listed, or removed
  1  done, but a part of what was left is damaged or has no name
  2  wrong usage, nothing to recover, still in use, or a file cannot be read or written

Example:
  simpletrace-rs recover trace-1234"
    )]
    Recover(RecoverArgs),
    /// Write a part of one or more traces into a file of its own
    #[command(
        override_usage = "simpletrace-rs slice [OPTIONS] TRACE... [EVENTS] -o OUT",
        after_help = concat!(exit_codes!(), "

Example:
  simpletrace-rs slice trace-1234 -t 5s+200ms -o slice.trace
  simpletrace-rs slice trace-1234 trace-events-all -w 'ret < 0' -o failed.trace")
    )]
    Slice(SliceArgs),
    /// Add a trace to a data set: a folder of Parquet files that DuckDB, Spark and others read as one
    #[command(
        override_usage = "simpletrace-rs export [OPTIONS] TRACE [EVENTS] -o DIR",
        after_help = concat!(exit_codes!(), "

Example:
  simpletrace-rs export trace-1234 trace-events-all -o fleet
  simpletrace-rs export trace-1234 trace-events-all --source host7 --partition event,day -o fleet")
    )]
    Export(ExportArgs),
    /// Steer a recording while it goes on: switch events and the trace file
    #[command(
        override_usage = "simpletrace-rs ctl SOCKET [COMMAND...]",
        after_help = "Commands, as in QEMU's monitor:
  info trace-events [PATTERN]       list events, and whether they are enabled
  trace-event PATTERN on|off        switch events
  trace-file [on|off|flush|set PATH]
  help                              list what else there is

Exit codes:
  0  done
  1  the program answers with an error
  2  wrong usage, or nobody answers

Example:
  simpletrace-rs ctl monitor.sock trace-event 'virtio_blk_*' on"
    )]
    Ctl(CtlArgs),
    /// Print the code that records events, shell completions or man pages
    #[command(after_help = "Example:
  simpletrace-rs generate rs hw/block/trace-events -o src/trace.rs
  simpletrace-rs generate completions bash > /etc/bash_completion.d/simpletrace-rs
  simpletrace-rs generate man -o /usr/local/share/man/man1")]
    Generate(GenerateArgs),
}

/// `TRACE... [EVENTS]`, and the other way to name EVENTS.
#[derive(Debug, Args)]
pub(crate) struct FileArgs {
    /// Trace files, read as one, and the trace-events file; `-` is stdin, .gz and .zst are decompressed
    ///
    /// Several traces are read in order of their first timestamp. A trace that was rotated is named without the numbers of its parts
    /// (trace-1234 for trace-1234.000001 and so on). A file of text is the trace-events file: the declarations of the
    /// build that wrote the trace, `trace-events-all` in QEMU's data directory.
    #[arg(value_name = "TRACE", required = true, num_args = 1.., value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// A trace-events file; repeat it for modules that bring their own
    ///
    /// If none is named at all, it is looked for in the variable SIMPLETRACE_EVENTS, then beside the trace as TRACE-events,
    /// trace-events-all and trace-events (`check` does not look). A name declared twice means the later declaration.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) events: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) formats: FormatArgs,
}

/// What old files do not say of themselves.
#[derive(Debug, Args)]
pub(crate) struct FormatArgs {
    /// The trace has no file header, as QEMU's SystemTap flight recorder makes it since 2.10
    #[arg(long)]
    no_header: bool,
    /// Which declarations have a number in a version 0 trace (QEMU before 1.2); found out if not given
    #[arg(long, value_enum, value_name = "WHICH")]
    v0_ids: Option<V0Ids>,
}

impl FormatArgs {
    pub(crate) const fn formats(&self) -> Formats {
        Formats { no_header: self.no_header, v0_ids: self.v0_ids }
    }
}

/// Which records of the events.
#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Only records that meet a condition, such as 'virtio_blk_handle_write: nsectors >= 256'
    ///
    /// [EVENT|PATTERN[, ...]:] EXPRESSION, repeated for more. With events in front it is about those, and leaves all others as they are;
    /// without, about those that have all arguments that it names, and all others are left out. ==, !=, <, <=, >, >= compare with
    /// numbers, "strings", true and false, =~ with a "pattern*"; ARG & 0x4 tests bits; !, &&, || and ( ) combine. `time` (5ms since the
    /// start, @1234.5s of the clock), `pid` and `event` are known of every record. docs/FILTERS.md has the rest.
    #[arg(short = 'w', long = "where", value_name = "FILTER", allow_hyphen_values = true)]
    filters: Vec<String>,
    /// Print what -w comes to for each event, and end
    #[arg(long, requires = "filters")]
    pub(crate) explain_filter: bool,
    /// Only this window: START-END, START-, -END or START+LENGTH, such as 5s-, -10s or 1s+200ms
    ///
    /// Times count from the first record of the trace; with an @ they are those of its clock (@1234.5-@1240). Units are ns, us,
    /// ms, s (also if there is none), m and h. The start is within the window, the end is not.
    #[arg(short = 't', long = "time", value_name = "RANGE", allow_hyphen_values = true, value_parser = window)]
    time: Option<Window>,
    /// Only records of this process; repeat it for more
    #[arg(long, value_name = "PID")]
    pid: Vec<u32>,
}

impl RecordArgs {
    /// As if they were typed.
    ///
    /// # Errors
    ///
    /// The window is none.
    #[cfg(feature = "columns")]
    pub(crate) fn of(filters: &[String], time: Option<&str>, pid: &[u32]) -> Result<Self> {
        let time = time.map(window).transpose().map_err(anyhow::Error::msg)?;
        Ok(Self { filters: filters.to_vec(), explain_filter: false, time, pid: pid.to_vec() })
    }

    /// Of these events, with conditions that come from elsewhere before its own.
    pub(crate) fn selection(&self, globs: Globs, conditions: &[String]) -> Result<Selection> {
        Ok(Selection {
            globs,
            conditions: Conditions::parse(&[conditions, &self.filters].concat())?,
            pids: self.pid.clone(),
            time: self.time.as_ref().map_or(TimeRange::default(), |window| window.range),
            limit: None,
        })
    }

    /// The window, as it was given.
    pub(crate) fn window(&self) -> &str {
        self.time.as_ref().map_or("", |window| &window.text)
    }

    pub(crate) fn pids(&self) -> &[u32] {
        &self.pid
    }

    pub(crate) const fn has_filters(&self) -> bool {
        !self.filters.is_empty()
    }
}

/// A window of time, with the text that stands for it.
#[derive(Debug, Clone)]
struct Window {
    text: String,
    range: TimeRange,
}

fn window(text: &str) -> Result<Window, String> {
    Ok(Window { text: text.to_owned(), range: text.parse()? })
}

/// Which events.
#[derive(Debug, Args)]
pub(crate) struct SelectArgs {
    /// Only events that match; `-e -PATTERN` takes out again. With a `*` in it, `*` and `?` are wildcards
    ///
    /// As with QEMU's own option: without a `*` it is a plain name, patterns apply in order, and the last that matches decides.
    /// If the first one takes out, all others are in. Gaps go by the name `dropped`.
    #[arg(short = 'e', long = "event", value_name = "PATTERN", allow_hyphen_values = true)]
    patterns: Vec<String>,
    #[command(flatten)]
    pub(crate) records: RecordArgs,
    /// Stop after so many events; gaps count, too
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<u64>,
}

impl SelectArgs {
    pub(crate) fn selection(&self) -> Result<Selection> {
        self.selection_with(&[])
    }

    /// With conditions that come from elsewhere.
    pub(crate) fn selection_with(&self, conditions: &[String]) -> Result<Selection> {
        let selection = self.records.selection(Globs::parse(&self.patterns)?, conditions)?;
        Ok(Selection { limit: self.limit, ..selection })
    }
}

#[derive(Debug, Args)]
pub(crate) struct DecodeArgs {
    #[command(flatten)]
    pub(crate) files: FileArgs,
    /// How to print events
    #[arg(short = 'F', long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Write to a file; `-` is stdout
    #[arg(short = 'o', long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Which clock times are shown by
    ///
    /// `wall` needs to know the time of day at which a trace was begun, as simpletrace-rs's recorder notes it and QEMU does not. It is UTC.
    /// RANGE of -t keeps its meaning.
    #[arg(long, value_enum, value_name = "CLOCK", default_value_t = ShownClock::Monotonic)]
    pub(crate) clock: ShownClock,
    /// Leave out what well-known numbers mean: `reason=2` instead of `reason=2 (IO)`
    ///
    /// text and table say it of KVM's exits and ioctls, of errors, and of the status of virtio devices and requests; the other formats never do.
    #[arg(long)]
    pub(crate) raw: bool,
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    /// Exit with 1 also when the trace ends inside a record
    #[arg(long)]
    pub(crate) strict: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShownClock {
    /// The clock of the trace
    Monotonic,
    /// The time of day: in csv, json, ndjson, parquet and arrow as `wall_ns`, beside `ts_ns`
    Wall,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Both times, typed values
    Text,
    /// What simpletrace.py prints, byte for byte
    Compat,
    /// The text of QEMU's log backend: the declared format, filled in
    Log,
    /// Aligned columns
    Table,
    /// Comma-separated; one event asked for by name gets a column for each argument
    Csv,
    /// One JSON document
    Json,
    /// One JSON object a line
    Ndjson,
    /// A Parquet file; one event asked for by name gets a column for each argument
    Parquet,
    /// An Arrow file, with the same columns; on stdout, a stream
    Arrow,
}

#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    #[command(flatten)]
    pub(crate) files: FileArgs,
    /// How to print the report
    #[arg(short = 'F', long, value_enum, value_name = "FORMAT", default_value_t = ReportFormat::Text)]
    pub(crate) format: ReportFormat,
    /// List all events, not only the most frequent
    #[arg(long)]
    pub(crate) all: bool,
    /// A file with presets of your own, of which it is said, too, whether the trace can answer them
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) presets: Vec<PathBuf>,
    /// Draw rates over time, on a terminal, with ASCII only
    #[arg(long)]
    pub(crate) ascii: bool,
    #[command(flatten)]
    pub(crate) select: SelectArgs,
}

#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    pub(crate) files: FileArgs,
    /// What values an argument has, of one event or of all that have it
    #[arg(long, value_name = "[EVENT.]ARG", conflicts_with = "depth")]
    pub(crate) of: Option<String>,
    /// How many operations are under way: 'BEGIN -> END' as for `latency`, or those of a preset
    #[arg(long, conflicts_with = "hist")]
    pub(crate) depth: bool,
    #[command(flatten)]
    pub(crate) operation: OperationArgs,
    /// Also show how many are under way in each interval
    #[arg(long, value_name = "TIME", value_parser = interval_ns, requires = "depth")]
    pub(crate) every: Option<u64>,
    /// With --depth: what becomes of operations from which events are missing, or may be
    ///
    /// With `exclude`, those that were under way then do not count behind it, nor does the time of gaps. QEMU's files do not say when events are
    /// missing, and all time up to when it was noticed does not count.
    #[arg(long, value_enum, value_name = "WHAT", default_value_t, requires = "depth")]
    pub(crate) drops: Drops,
    /// Group by arguments or `pid`, with --of and --depth also by `event`; ARG:log2 groups by powers of two
    ///
    /// At most 3. An operation that is under way has the arguments of its beginning.
    #[arg(long, value_name = "ARG[:log2][,...]", value_delimiter = ',')]
    pub(crate) by: Vec<String>,
    /// Percentiles, by nearest rank
    #[arg(short = 'p', long, value_name = "PERCENT[,...]", value_delimiter = ',', default_value = "50,90,99,99.9")]
    pub(crate) percentiles: Vec<Percentile>,
    /// Draw the values of --of: by powers of two, or in finer parts of them
    #[arg(long, value_enum, value_name = "BUCKETS", num_args = 0..=1, default_missing_value = "log2", require_equals = true, requires = "of")]
    pub(crate) hist: Option<Hist>,
    /// Draw with ASCII only
    #[arg(long)]
    pub(crate) ascii: bool,
    /// What to call pointers in tables: a file of lines such as 0x55bd4edec9a0=disk0
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) names: Option<PathBuf>,
    /// Leave out what well-known numbers mean: `2` instead of `2 (IO)`
    #[arg(long)]
    pub(crate) raw: bool,
    /// How to print the result
    #[arg(short = 'F', long, value_enum, value_name = "FORMAT", default_value_t = TableFormat::Table)]
    pub(crate) format: TableFormat,
    #[command(flatten)]
    pub(crate) select: SelectArgs,
}

/// How records are paired.
#[derive(Debug, Args)]
pub(crate) struct OperationArgs {
    /// An operation that is known by name, instead of one that is spelled out
    #[arg(long, value_name = "NAME")]
    pub(crate) preset: Option<String>,
    /// A file with presets of your own; `generate presets` prints those that there are
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) presets: Vec<PathBuf>,
    /// The arguments that the records of one operation have in common; A=B if their names differ
    ///
    /// At most 4. Without any, a beginning goes with the next end. Records of different processes never belong together: the pid is a part of every key.
    /// EVENT.ARG says of which event an argument is, and a.ARG, b.ARG of which stage.
    #[arg(long, value_name = "ARG[,...]")]
    pub(crate) on: Option<String>,
    /// What happens when operations with the same key are under way at once; `last`, if a preset says nothing else
    #[arg(long, value_enum, value_name = "DISCIPLINE")]
    pub(crate) discipline: Option<Discipline>,
}

#[derive(Debug, Args)]
pub(crate) struct LatencyArgs {
    /// Trace files, read as one, the trace-events file, and the operation: 'BEGIN -> END', 'A|B -> C -> D'
    ///
    /// Events on both sides of a | may stand for each other, a * in two names stands for the same text in both. More than two stages
    /// are measured each; there are at most 16. Files are as for `decode`; what has a -> in it is the operation.
    #[arg(value_name = "TRACE", required_unless_present = "list", num_args = 1.., value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// A trace-events file; repeat it for modules that bring their own
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) events: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) formats: FormatArgs,
    #[command(flatten)]
    pub(crate) operation: OperationArgs,
    /// List the presets
    #[arg(long)]
    pub(crate) list: bool,
    /// Group by arguments, `event` or `pid`; ARG:log2 groups by powers of two
    ///
    /// At most 3. `none` groups by nothing, whatever a preset says.
    #[arg(long, value_name = "ARG[:log2][,...]", value_delimiter = ',')]
    pub(crate) by: Vec<String>,
    /// What becomes of operations from which events are missing, or may be
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    pub(crate) drops: Drops,
    /// Percentiles, by nearest rank
    #[arg(short = 'p', long, value_name = "PERCENT[,...]", value_delimiter = ',', default_value = "50,90,99,99.9")]
    pub(crate) percentiles: Vec<Percentile>,
    /// Show the slowest ones, at most 100000
    #[arg(long, value_name = "N", value_parser = top)]
    pub(crate) top: Option<usize>,
    /// Of the slowest, only those that took so long or longer
    #[arg(long, value_name = "TIME", requires = "top", value_parser = crate::time::duration_ns)]
    pub(crate) min: Option<u64>,
    /// Show all events around each of the slowest, at most 100, up to so long before and behind it
    #[arg(long, value_name = "TIME", requires = "top", value_parser = crate::time::duration_ns)]
    pub(crate) context: Option<u64>,
    /// A row for what ended in each interval of this length
    #[arg(long, value_name = "TIME", value_parser = interval_ns)]
    pub(crate) every: Option<u64>,
    /// Draw how many took how long: by powers of two, or in finer parts of them
    #[arg(long, value_enum, value_name = "BUCKETS", num_args = 0..=1, default_missing_value = "log2", require_equals = true)]
    pub(crate) hist: Option<Hist>,
    /// Draw how long they took over time
    #[arg(long)]
    pub(crate) heat: bool,
    /// Draw with ASCII only
    #[arg(long)]
    pub(crate) ascii: bool,
    /// What to call pointers in tables: a file of lines such as 0x55bd4edec9a0=disk0
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) names: Option<PathBuf>,
    /// Leave out what well-known numbers mean: `2` instead of `2 (IO)`
    #[arg(long)]
    pub(crate) raw: bool,
    /// How to print the result
    #[arg(short = 'F', long, value_enum, value_name = "FORMAT", default_value_t = TableFormat::Table)]
    pub(crate) format: TableFormat,
    /// Exit with 1 if this holds for any group, such as 'p99 > 2ms'; repeat it for more
    ///
    /// NAME >|>=|<|<=|== VALUE. NAME is pairs, rate_per_s, min, mean, max or any percentile (p99.9) of a group, from begin to end (of its hops there
    /// are no gates), or begins, open, replaced, ignored, incomplete, orphans, backwards, straddling or late of the whole trace; VALUE is a number, for
    /// times with a unit. Without any pairs there are no latencies, and a gate on them fails.
    #[arg(long, value_name = "CONDITION")]
    pub(crate) fail_if: Vec<String>,
    #[command(flatten)]
    pub(crate) records: RecordArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The old trace, the new one, the trace-events file, and the operation: 'BEGIN -> END', 'A|B -> C -> D'
    ///
    /// EVENTS is of both traces; if it is left out, it is looked for beside each. What has a -> in it is the operation, as for `latency`.
    #[arg(value_name = "TRACE", required = true, num_args = 1.., value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// A trace-events file; repeat it for modules that bring their own
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) events: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) formats: FormatArgs,
    /// Show the first record where the traces part, and some before it
    ///
    /// Records are compared in file order: the names of events, and their arguments in order. Times and processes do not count, nor do gaps.
    /// Of an argument that is declared as a pointer only its number counts: pointers of each trace are numbered as they appear, so that it does
    /// not matter where things lie in memory; null is null. One trace may go on behind the other's end, if that has any records. -e and -w leave events out.
    #[arg(long, conflicts_with_all = ["preset", "presets", "on", "discipline"])]
    pub(crate) first: bool,
    #[command(flatten)]
    pub(crate) operation: OperationArgs,
    /// Group by arguments, `event` or `pid`; ARG:log2 groups by powers of two
    ///
    /// At most 3; `none` groups by nothing, whatever a preset says. Groups of the two traces are the same if their values are. Pointers are not grouped by without --names, as no run has the addresses of
    /// another.
    #[arg(long, value_name = "ARG[:log2][,...]", value_delimiter = ',', conflicts_with = "first")]
    pub(crate) by: Vec<String>,
    /// What becomes of operations from which events are missing, or may be
    #[arg(long, value_enum, value_name = "WHAT", default_value_t, conflicts_with = "first")]
    pub(crate) drops: Drops,
    /// What pointers of both traces are called: a file of lines such as 0x55bd4edec9a0=disk0
    ///
    /// With it, --by takes pointers, too. Those that are called the same are one group.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "first")]
    pub(crate) names: Option<PathBuf>,
    /// Leave out what well-known numbers mean: `2` instead of `2 (IO)`
    #[arg(long)]
    pub(crate) raw: bool,
    /// Percentiles, by nearest rank
    #[arg(
        short = 'p',
        long,
        value_name = "PERCENT[,...]",
        value_delimiter = ',',
        default_value = "50,90,99,99.9",
        conflicts_with = "first"
    )]
    pub(crate) percentiles: Vec<Percentile>,
    /// Draw how many took how long in both, beside each other: by powers of two, or in finer parts of them
    ///
    /// Bars of the same length are the same part of a trace's operations.
    #[arg(long, value_enum, value_name = "BUCKETS", num_args = 0..=1, default_missing_value = "log2", require_equals = true, conflicts_with = "first")]
    pub(crate) hist: Option<Hist>,
    /// Draw with ASCII only
    #[arg(long, conflicts_with = "first")]
    pub(crate) ascii: bool,
    /// Exit with 1 if this holds for any group, such as 'p99 > 1.1x'; repeat it for more
    ///
    /// NAME >|>=|<|<=|== VALUE, as for `latency`. VALUE is a factor of the old one (1.1x), a difference (+200us, -10), or the new one itself
    /// (2ms). What a trace has no pairs for cannot be compared, and the gate fails.
    #[arg(long, value_name = "CONDITION", conflicts_with = "first")]
    pub(crate) fail_if: Vec<String>,
    /// How to print the result
    #[arg(short = 'F', long, value_enum, value_name = "FORMAT", default_value_t = TableFormat::Table, conflicts_with = "first")]
    pub(crate) format: TableFormat,
    /// With --first: only events that match; `-e -PATTERN` takes out again. With a `*` in it, `*` and `?` are wildcards
    #[arg(short = 'e', long = "event", value_name = "PATTERN", allow_hyphen_values = true)]
    pub(crate) patterns: Vec<String>,
    #[command(flatten)]
    pub(crate) records: RecordArgs,
}

impl DiffArgs {
    pub(crate) fn globs(&self) -> Result<Globs> {
        Globs::parse(&self.patterns)
    }
}

fn interval_ns(text: &str) -> Result<u64, String> {
    match crate::time::duration_ns(text)? {
        0 => Err("an interval has to be longer than 0".to_owned()),
        ns => Ok(ns),
    }
}

/// How many of the slowest are to be shown.
fn top(text: &str) -> Result<usize, String> {
    let most = Top::MAX;
    match text.parse() {
        Ok(number) if number <= most => Ok(number),
        Ok(_) => Err(format!("it can be {most} at most")),
        Err(_) => Err(format!("write a number from 0 to {most}")),
    }
}

/// How latencies or numbers are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Hist {
    /// By powers of two
    Log2,
    /// Each power of two in eight parts
    LogLinear,
}

impl Hist {
    pub(crate) fn buckets(self) -> Buckets {
        Buckets::new(match self {
            Self::Log2 => 0,
            Self::LogLinear => 3,
        })
    }
}

/// How a table is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableFormat {
    /// Aligned columns, for people
    Table,
    /// Comma-separated
    Csv,
    /// One JSON document
    Json,
    /// One JSON object a line
    Ndjson,
}

#[derive(Debug, Args)]
pub(crate) struct SqlArgs {
    /// Trace files, read as one, the trace-events file, and at last the query
    ///
    /// Tables are the events, by their names, with `ts_ns`, `wall_ns`, `pid` and a column for each argument; `events`, with all of them and the arguments as
    /// JSON; `gaps`, where events are missing; and `pairs`. Only what the query names is read. docs/QUERIES.md has the columns and examples. Files are as
    /// for `decode`.
    #[arg(value_name = "TRACE", required = true, num_args = 1.., value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// A trace-events file; repeat it for modules that bring their own
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) events: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) formats: FormatArgs,
    /// What the table `pairs` is of: a preset of `latency`, or 'BEGIN -> END' as there
    #[arg(long, value_name = "NAME|OPERATION")]
    pub(crate) pairs: Option<String>,
    /// A file with presets of your own; `generate presets` prints those that there are
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "pairs")]
    pub(crate) presets: Vec<PathBuf>,
    /// The arguments that the records of one operation have in common, as for `latency`
    #[arg(long, value_name = "ARG[,...]", requires = "pairs")]
    pub(crate) on: Option<String>,
    /// What happens when operations with the same key are under way at once
    #[arg(long, value_enum, value_name = "DISCIPLINE", requires = "pairs")]
    pub(crate) discipline: Option<Discipline>,
    /// More columns of `pairs`: arguments of its events, `event` or `pid`
    #[arg(long, value_name = "ARG[:log2][,...]", value_delimiter = ',', requires = "pairs")]
    pub(crate) by: Vec<String>,
    /// How to print the result
    #[arg(short = 'F', long, value_enum, value_name = "FORMAT", default_value_t = SqlFormat::Table)]
    pub(crate) format: SqlFormat,
    /// Write to a file; `-` is stdout
    #[arg(short = 'o', long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) records: RecordArgs,
}

/// How the result of a query is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SqlFormat {
    /// Aligned columns, for people
    Table,
    /// Comma-separated
    Csv,
    /// One JSON document
    Json,
    /// One JSON object a line
    Ndjson,
    /// An Apache Parquet file
    Parquet,
}

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// Trace-events files, and traces to hold against them; text files are the former
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// Only events that match; `-e -PATTERN` takes out again. With a `*` in it, `*` and `?` are wildcards
    #[arg(short = 'e', long = "event", value_name = "PATTERN", allow_hyphen_values = true)]
    pub(crate) patterns: Vec<String>,
    /// Only events with this text in their declaration
    #[arg(short = 's', long, value_name = "TEXT")]
    pub(crate) search: Option<String>,
    /// How to print declarations
    #[arg(short = 'F', long, value_enum, value_name = "FORMAT", default_value_t = ReportFormat::Text)]
    pub(crate) format: ReportFormat,
    /// Refuse what the current tracetool refuses
    #[arg(long)]
    pub(crate) strict: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) files: FileArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RepairArgs {
    #[command(flatten)]
    pub(crate) files: FileArgs,
    /// Write to this file; `-` is stdout
    #[arg(short = 'o', long, value_name = "OUT", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct RecoverArgs {
    /// The trace, by whatever name it has now
    #[arg(value_name = "TRACE", required_unless_present = "list", conflicts_with = "list", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// List what recorders left, and what those that live have at the moment
    #[arg(long)]
    pub(crate) list: bool,
    /// Remove what was left, named by the trace or itself, and give up what is in it
    #[arg(long, conflicts_with = "list")]
    pub(crate) remove: bool,
    /// Where segments are
    #[arg(long, value_name = "FOLDER", default_value = "/dev/shm", value_hint = ValueHint::DirPath)]
    pub(crate) segments: PathBuf,
    /// How to print the report
    #[arg(short = 'F', long, value_enum, value_name = "FORMAT", default_value_t = ReportFormat::Text, conflicts_with = "remove")]
    pub(crate) format: ReportFormat,
}

#[derive(Debug, Args)]
pub(crate) struct SliceArgs {
    #[command(flatten)]
    pub(crate) files: FileArgs,
    /// Write to this file; `-` is stdout
    #[arg(short = 'o', long, value_name = "OUT", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    /// Exit with 1 also when the trace ends inside a record
    #[arg(long)]
    pub(crate) strict: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) files: FileArgs,
    /// The folder of the data set; made if it is not there
    #[arg(short = 'o', long, value_name = "DIR", required = true, value_hint = ValueHint::DirPath)]
    pub(crate) output: PathBuf,
    /// By what files are kept apart: event,source or event,day or event,day,source
    ///
    /// All traces of a data set are by the same. `day` is in UTC, and needs traces that say at what time of day they were begun, as
    /// simpletrace-rs's recorder does and QEMU does not.
    #[arg(long, value_name = "LIST", default_value = "event,source")]
    pub(crate) partition: Partition,
    /// The name of the trace in the data set: that of its file if not given
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) source: Option<String>,
    /// Put it in the place of a trace of the same name
    #[arg(long)]
    pub(crate) replace: bool,
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    /// Exit with 1 also when the trace ends inside a record
    #[arg(long)]
    pub(crate) strict: bool,
}

/// By what the files of a data set are kept apart, beside the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Partition {
    /// The day, in UTC.
    pub(crate) day: bool,
    /// The trace.
    pub(crate) source: bool,
}

impl Partition {
    /// In the order of folders in folders.
    #[cfg(feature = "columns")]
    pub(crate) fn names(self) -> impl Iterator<Item = &'static str> {
        ["event"].into_iter().chain(self.day.then_some("day")).chain(self.source.then_some("source"))
    }
}

impl FromStr for Partition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (mut day, mut source) = (false, false);
        let mut names = text.split(',');
        let is_known = names.next() == Some("event")
            && names.all(|name| match name {
                "day" => !std::mem::replace(&mut day, true),
                "source" => !std::mem::replace(&mut source, true),
                _ => false,
            });
        if is_known && (day || source) {
            Ok(Self { day, source })
        } else {
            Err("write event,source or event,day or event,day,source".to_owned())
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// For people
    Text,
    /// One JSON document
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct CtlArgs {
    /// The QMP socket of the program: one that records with simpletrace-recorder, or QEMU
    #[arg(value_name = "SOCKET", value_hint = ValueHint::FilePath)]
    pub(crate) socket: PathBuf,
    /// What to do; if there is none, say how the recording goes
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    #[command(subcommand)]
    pub(crate) what: Generate,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Generate {
    /// Print a Rust module with a function for each event, to be used with simpletrace-recorder
    #[command(after_help = "Exit codes:
  0  the code is in OUT
  2  wrong usage, a fault in EVENTS, or a file cannot be read or written; OUT is as it was

Example:
  simpletrace-rs generate rs hw/block/trace-events net/trace-events -o src/trace.rs")]
    Rs {
        /// trace-events files; the names of their events must all differ; `-` is stdin
        #[arg(required = true, value_name = "EVENTS", value_hint = ValueHint::FilePath)]
        files: Vec<PathBuf>,
        /// Write to this file instead of stdout
        #[arg(short = 'o', long, value_name = "OUT", value_hint = ValueHint::FilePath)]
        output: Option<PathBuf>,
    },
    /// Print the presets of `latency`, to be copied and changed
    Presets,
    /// Print the completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the man page, or write those of all commands into a directory
    Man {
        /// Write simpletrace-rs.1 and a page for each command into this directory
        #[arg(short = 'o', long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        output: Option<PathBuf>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    Always,
    Never,
}

impl Colour {
    /// Makes the choice that of the whole process.
    pub(crate) fn apply(self) {
        match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }

    /// Whether results on standard output are coloured.
    pub(crate) fn on_stdout() -> bool {
        anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never
    }
}
