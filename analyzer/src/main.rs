//! The `simpletrace-rs` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    simpletrace_rs::run()
}
