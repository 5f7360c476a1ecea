//! `generate`: completions and man pages, from the definition of the command line.

use std::fs;

use anyhow::{Context as _, Result};
use clap::CommandFactory as _;

use super::args::{Cli, Generate, GenerateArgs};
use crate::findings::Outcome;
use crate::output::Output;

pub(crate) fn run(args: &GenerateArgs) -> Result<Outcome> {
    let mut command = Cli::command();
    match &args.what {
        Generate::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut command, "simpletrace-rs", &mut script);
            print(&script)?;
        }
        Generate::Man { output: None } => {
            let mut page = Vec::new();
            // As in a directory, where `help` gets no page.
            clap_mangen::Man::new(command.disable_help_subcommand(true)).render(&mut page)?;
            print(&page)?;
        }
        Generate::Man { output: Some(directory) } => {
            let cannot_write = || format!("cannot write man pages to {}", directory.display());
            fs::create_dir_all(directory).with_context(cannot_write)?;
            clap_mangen::generate_to(command, directory).with_context(cannot_write)?;
        }
    }
    Ok(Outcome::Good)
}

fn print(bytes: &[u8]) -> Result<()> {
    let mut output = Output::create(None, [])?;
    output.block.put(bytes);
    output.finish()
}
