//! The analyzer behind the `simpletrace-rs` command: it reads QEMU simpletrace files and says what is in them.
//!
//! Data flows one way: bytes (`input`), records (`simpletrace-format`), events with names, types and a verdict on their fit
//! (`trace`), answers (`render` for printing, the commands in `cli` for reports). The command line is the interface;
//! programs that want records use `simpletrace-format`.

#![forbid(unsafe_code)]

mod bootstrap;
mod chart;
mod cli;
#[cfg(feature = "columns")]
mod columns;
mod condition;
mod filter;
mod findings;
mod fit;
mod formats;
#[cfg(feature = "frames")]
pub mod frames;
mod gate;
mod groups;
mod input;
mod kinds;
mod latencies;
mod measure;
mod numbers;
mod output;
mod pairing;
#[cfg(feature = "columns")]
mod pairs;
mod presets;
mod progress;
#[cfg(target_os = "linux")]
mod recover;
mod render;
mod rewrite;
mod say;
#[cfg(feature = "columns")]
pub mod tables;
mod terminal;
mod time;
mod trace;

/// Runs the command that the process's arguments ask for, and returns its exit code.
#[must_use]
pub fn run() -> std::process::ExitCode {
    cli::run()
}
