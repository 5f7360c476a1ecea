//! Where events go: printed one by one, or as columns into a file.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use anyhow::Result;
use simpletrace_format::events::EventDecl;

use crate::cli::args::{Colour, DecodeArgs, Format};
#[cfg(feature = "columns")]
use crate::columns::{ColumnFile, ColumnFormat};
use crate::output::Output;
use crate::render::{Compat, Csv, Json, Log, Render, Table, Text, WallClock};
use crate::trace::{Event, FileSummary, Gap, Missing};

/// What takes the events.
pub(super) enum Sink {
    /// The output is shared with whoever waits for a slow pipe, so that what came out of it does not wait, too.
    Printed(Box<dyn Render>, Rc<RefCell<Output>>),
    #[cfg(feature = "columns")]
    Columns(Box<ColumnFile>),
}

impl Sink {
    /// Creates the output that was asked for; `only` is the event that can have columns of its own.
    pub(super) fn create<'a>(
        args: &DecodeArgs,
        only: Option<EventDecl>,
        wall: Option<WallClock>,
        shows_gaps: bool,
        inputs: impl IntoIterator<Item = &'a Path>,
    ) -> Result<Self> {
        let path = args.output.as_deref();
        if matches!(args.format, Format::Parquet | Format::Arrow) {
            return columns(args, only, wall, shows_gaps, inputs);
        }
        let mut output = Output::create(path, inputs)?;
        let mut render: Box<dyn Render> = match args.format {
            Format::Text => Box::new(Text::new(output.is_stdout() && Colour::on_stdout(), wall, args.raw)),
            Format::Compat => Box::new(Compat::default()),
            Format::Log => Box::new(Log::default()),
            Format::Table => Box::new(Table::new(only, wall, args.raw)),
            Format::Csv => Box::new(Csv::new(only, wall)),
            Format::Json => Box::new(Json::document(wall)),
            Format::Ndjson | Format::Parquet | Format::Arrow => Box::new(Json::lines(wall)),
        };
        render.begin(&mut output.block);
        Ok(Self::Printed(render, Rc::new(RefCell::new(output))))
    }

    /// What is printed to, if anything is printed.
    pub(super) fn printed_to(&self) -> Option<&Rc<RefCell<Output>>> {
        match self {
            Self::Printed(_, output) => Some(output),
            #[cfg(feature = "columns")]
            Self::Columns(_) => None,
        }
    }

    pub(super) fn event(&mut self, event: &Event<'_>) -> Result<()> {
        match self {
            Self::Printed(render, output) => {
                let output = &mut *output.borrow_mut();
                render.event(event, &mut output.block);
                output.write_if_full()
            }
            #[cfg(feature = "columns")]
            Self::Columns(file) => file.event(event),
        }
    }

    pub(super) fn gap(&mut self, gap: &Gap) -> Result<()> {
        match self {
            Self::Printed(render, output) => {
                let output = &mut *output.borrow_mut();
                render.gap(gap, &mut output.block);
                output.write_if_full()?;
            }
            #[cfg(feature = "columns")]
            Self::Columns(file) => file.gap(gap),
        }
        Ok(())
    }

    /// Takes notice of what could not be read, where the output says it.
    pub(super) fn missing(&mut self, missing: &Missing) {
        match self {
            Self::Printed(..) => {
                let _ = missing;
            }
            #[cfg(feature = "columns")]
            Self::Columns(file) => file.missing(missing),
        }
    }

    /// The clock that times of day are told by, if they are.
    pub(super) fn wall(&mut self) -> Option<&mut WallClock> {
        match self {
            Self::Printed(render, _) => render.wall(),
            #[cfg(feature = "columns")]
            Self::Columns(file) => file.wall(),
        }
    }

    /// Writes what is left; `sources` are the files that were read.
    pub(super) fn finish(self, sources: &[FileSummary]) -> Result<()> {
        #[cfg(not(feature = "columns"))]
        let _ = sources;
        match self {
            Self::Printed(mut render, output) => {
                let output = &mut *output.borrow_mut();
                render.finish(&mut output.block);
                output.finish()
            }
            #[cfg(feature = "columns")]
            Self::Columns(file) => file.finish(sources),
        }
    }
}

#[cfg(feature = "columns")]
fn columns<'a>(
    args: &DecodeArgs,
    only: Option<EventDecl>,
    wall: Option<WallClock>,
    shows_gaps: bool,
    inputs: impl IntoIterator<Item = &'a Path>,
) -> Result<Sink> {
    use std::io::IsTerminal as _;

    let path = args.output.as_deref().unwrap_or(Path::new("-"));
    // None of these formats is any good in part.
    let output = Output::create_whole(path, inputs)?;
    if output.is_stdout() && std::io::stdout().is_terminal() {
        anyhow::bail!("parquet and arrow are not for terminals; write to a file with -o FILE, or to a program");
    }
    let format = if args.format == Format::Parquet { ColumnFormat::Parquet } else { ColumnFormat::Arrow };
    Ok(Sink::Columns(Box::new(ColumnFile::new(output, format, only.as_ref(), wall, shows_gaps)?)))
}

#[cfg(not(feature = "columns"))]
fn columns<'a>(
    _: &DecodeArgs,
    _: Option<EventDecl>,
    _: Option<WallClock>,
    _: bool,
    _: impl IntoIterator<Item = &'a Path>,
) -> Result<Sink> {
    Err(crate::cli::not_built("parquet and arrow", "columns"))
}
