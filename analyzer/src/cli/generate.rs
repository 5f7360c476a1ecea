//! `generate`: code from declarations; presets; completions and man pages from the definition of the command line.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::CommandFactory as _;
use simpletrace_codegen::{Declarations, Error};

use super::args::{Cli, Generate, GenerateArgs};
use crate::findings::Outcome;
use crate::input::{Input, MAX_FAULTS, allow_stdin_once, read_events};
use crate::output::Output;
use crate::say;

pub(crate) fn run(args: &GenerateArgs) -> Result<Outcome> {
    let mut command = Cli::command();
    match &args.what {
        Generate::Rs { files, output } => return rs(files, output.as_deref()),
        Generate::Presets => print(crate::presets::TEXT.as_bytes())?,
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

fn rs(files: &[PathBuf], output: Option<&Path>) -> Result<Outcome> {
    allow_stdin_once(files)?;
    let mut sources = Vec::with_capacity(files.len());
    for file in files {
        let input = Input::open(file)?;
        sources.push((input.name.clone(), read_events(input)?));
    }
    match Declarations::parse(sources) {
        Ok(declarations) => {
            let mut output =
                Output::create_whole(output.unwrap_or(Path::new("-")), files.iter().map(PathBuf::as_path))?;
            output.block.put(declarations.rust());
            output.finish()?;
            Ok(Outcome::Good)
        }
        Err(Error::Declarations(faults)) => {
            faults.iter().take(MAX_FAULTS).for_each(|fault| say::error(fault));
            if faults.len() > MAX_FAULTS {
                say::note(&format!("{} more of these not shown", faults.len() - MAX_FAULTS));
            }
            Ok(Outcome::Failed)
        }
        Err(error) => Err(error.into()),
    }
}

fn print(bytes: &[u8]) -> Result<()> {
    let mut output = Output::create(None, [])?;
    output.block.put(bytes);
    output.finish()
}
