//! The command line: what was typed, and which command it runs.

mod args;
mod check;
mod ctl;
mod decode;
mod diff;
mod events;
#[cfg(feature = "columns")]
mod export;
mod generate;
mod info;
mod latency;
mod operation;
mod recover;
mod repair;
mod slice;
#[cfg(feature = "frames")]
mod sql;
mod stats;

use std::process::ExitCode;

pub(crate) use args::TableFormat;
#[cfg(feature = "columns")]
pub(crate) use args::{OperationArgs, Partition, RecordArgs};
#[cfg(feature = "columns")]
pub(crate) use latency::Report;
#[cfg(feature = "columns")]
pub(crate) use operation::{names, need_declared, question, say_note, say_why_nothing};

use anyhow::{Context as _, Result};
use clap::Parser as _;
use simpletrace_format::events::EventIndex;

use crate::chart::{Buckets, Style, Unit, histogram};
use crate::filter::Selection;
use crate::findings::Outcome;
use crate::latencies::Percentile;
use crate::output::{Output, is_broken_pipe};
use crate::say;

/// Runs the command that the process's arguments ask for.
pub(crate) fn run() -> ExitCode {
    let args = args::Cli::parse();
    args.colour.apply();
    match dispatch(args.command) {
        Ok(outcome) => ExitCode::from(outcome as u8),
        // Whoever reads the output has seen enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            say::error(&format!("{error:#}"));
            ExitCode::from(Outcome::Failed as u8)
        }
    }
}

fn dispatch(command: args::Command) -> Result<Outcome> {
    match command {
        args::Command::Decode(args) => decode::run(&args),
        args::Command::Info(args) => info::run(&args),
        args::Command::Latency(args) => latency::run(&args),
        args::Command::Diff(args) => diff::run(&args),
        args::Command::Stats(args) => stats::run(&args),
        #[cfg(feature = "frames")]
        args::Command::Sql(args) => sql::run(&args),
        #[cfg(not(feature = "frames"))]
        args::Command::Sql(_) => Err(not_built("sql", "frames")),
        args::Command::Events(args) => events::run(&args),
        args::Command::Check(args) => check::run(&args),
        args::Command::Recover(args) => recover::run(&args),
        args::Command::Repair(args) => repair::run(&args),
        args::Command::Slice(args) => slice::run(&args),
        #[cfg(feature = "columns")]
        args::Command::Export(args) => export::run(&args),
        #[cfg(not(feature = "columns"))]
        args::Command::Export(_) => Err(not_built("export", "columns")),
        args::Command::Ctl(args) => ctl::run(&args),
        args::Command::Generate(args) => generate::run(&args),
    }
}

/// A part that this program was built without.
#[cfg(not(feature = "frames"))]
fn not_built(what: &str, feature: &str) -> anyhow::Error {
    anyhow::anyhow!("this simpletrace-rs was built without {what}; build it with `--features {feature}`")
}

/// Draws values by size, with marks where percentiles are.
fn draw(
    buckets: &Buckets,
    unit: Unit,
    percentiles: &[Percentile],
    at: impl Iterator<Item = Option<i128>>,
    style: Style,
) -> String {
    let names: Vec<_> = percentiles.iter().map(|percentile| format!("p{}", percentile.text())).collect();
    let marks: Vec<_> = names.iter().zip(at).filter_map(|(name, at)| Some((name.as_str(), at?))).collect();
    histogram(buckets, unit, &marks, style)
}

/// Prints what the filters come to; nothing has been read of the trace but that it is one.
fn explain_filter(selection: &Selection, declared: Option<&EventIndex>) -> Result<Outcome> {
    let declared =
        declared.context("no trace-events file was given or found, and without it no events are known to explain")?;
    let mut output = Output::create(None, [])?;
    output.block.put(selection.conditions.explain(&selection.globs, declared));
    output.finish()?;
    Ok(Outcome::Good)
}
