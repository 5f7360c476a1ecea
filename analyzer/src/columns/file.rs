//! `decode -F parquet` and `-F arrow`: one file of one table.

use anyhow::{Error, Result};
use arrow_array::RecordBatch;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use simpletrace_format::events::EventDecl;

use super::encoders::Encoders;
use super::facts::FileFacts;
use super::long::LongTable;
use super::parquet::ParquetFile;
use super::table::{EventTable, Wanted};
use crate::output::{Flushing, Output};
use crate::render::WallClock;
use crate::trace::{Event, FileSummary, Gap, Missing};

/// What a file of columns may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnFormat {
    Parquet,
    /// Arrow's file format; on standard output, its stream format.
    Arrow,
}

/// About how large a row group is before it is encoded, in bytes: some 300,000 rows, so that engines can share the work, and skip
/// what is of another time.
const ROW_GROUP_BYTES: usize = 16 << 20;

/// A file that events are written to as columns.
pub(crate) struct ColumnFile {
    table: Table,
    sink: Sink,
    facts: FileFacts,
    wall: Option<WallClock>,
    /// Whether gaps were asked for, and not only kept in mind.
    shows_gaps: bool,
}

enum Table {
    /// A column for each argument.
    Wide(EventTable),
    Long(LongTable),
}

enum Sink {
    Parquet(Box<(ParquetFile<Flushing<Output>>, Encoders)>),
    ArrowFile(FileWriter<Flushing<Output>>),
    ArrowStream(StreamWriter<Flushing<Output>>),
}

impl ColumnFile {
    /// Begins a file; with a column for each argument of `only`, if it is given.
    pub(crate) fn new(
        output: Output,
        format: ColumnFormat,
        only: Option<&EventDecl>,
        wall: Option<WallClock>,
        shows_gaps: bool,
    ) -> Result<Self> {
        let table = match only {
            Some(decl) => Table::Wide(EventTable::new(Some(decl), Wanted::All { wall: wall.is_some() })),
            None => Table::Long(LongTable::new(wall.is_some())),
        };
        let facts = FileFacts::new(only.map(|decl| decl.name.as_str()));
        let sink = match format {
            ColumnFormat::Parquet => {
                Sink::Parquet(Box::new((ParquetFile::new(Flushing(output), table.schema())?, Encoders::start()?)))
            }
            ColumnFormat::Arrow => {
                let schema = Schema::new(table.schema().fields().clone())
                    .with_metadata(facts.at_once().collect::<std::collections::HashMap<_, _>>());
                if output.is_stdout() {
                    Sink::ArrowStream(StreamWriter::try_new(Flushing(output), &schema).map_err(plain)?)
                } else {
                    Sink::ArrowFile(FileWriter::try_new(Flushing(output), &schema).map_err(plain)?)
                }
            }
        };
        Ok(Self { table, sink, facts, wall, shows_gaps })
    }

    /// The clock that times of day are told by, if they are.
    pub(crate) const fn wall(&mut self) -> Option<&mut WallClock> {
        self.wall.as_mut()
    }

    /// Adds an event.
    pub(crate) fn event(&mut self, event: &Event<'_>) -> Result<()> {
        let wall = &self.wall;
        let wall_ns = || wall.as_ref().and_then(|wall| wall.at(event.record.timestamp_ns));
        match &mut self.table {
            Table::Wide(table) => {
                table.push(event.record.timestamp_ns, wall_ns, event.record.pid, event.record.payload);
            }
            Table::Long(table) => table.event(event, wall_ns()),
        }
        if self.table.bytes() < ROW_GROUP_BYTES { Ok(()) } else { self.write() }
    }

    /// Adds a gap.
    pub(crate) fn gap(&mut self, gap: &Gap) {
        self.facts.add_gap(&gap.record);
        if let Table::Long(table) = &mut self.table
            && self.shows_gaps
        {
            table.gap(gap, self.wall.as_ref().and_then(|wall| wall.at(gap.record.timestamp_ns)));
        }
    }

    /// Takes notice of what could not be read.
    pub(crate) fn missing(&mut self, missing: &Missing) {
        self.facts.add_missing(missing);
    }

    #[cold]
    fn write(&mut self) -> Result<()> {
        let batch = self.table.take();
        match &mut self.sink {
            Sink::Parquet(parquet) => {
                let (file, encoders) = &mut **parquet;
                encoders.send(0, file.writers()?, batch)?;
                while encoders.is_full() {
                    append_next(file, encoders)?;
                }
            }
            Sink::ArrowFile(file) => file.write(&batch).map_err(plain)?,
            Sink::ArrowStream(stream) => stream.write(&batch).map_err(plain)?,
        }
        Ok(())
    }

    /// Writes what is left, and what is said of the whole.
    pub(crate) fn finish(mut self, sources: &[FileSummary]) -> Result<()> {
        if self.table.rows() > 0 {
            self.write()?;
        }
        let in_the_end = self.facts.in_the_end(sources);
        let Flushing(mut output) = match self.sink {
            Sink::Parquet(parquet) => {
                let (mut file, mut encoders) = *parquet;
                while append_next(&mut file, &mut encoders)? {}
                file.finish(self.facts.at_once().chain(in_the_end))?
            }
            Sink::ArrowFile(mut file) => {
                in_the_end.for_each(|(key, value)| file.write_metadata(key, value));
                file.finish().map_err(plain)?;
                file.into_inner().map_err(plain)?
            }
            Sink::ArrowStream(mut stream) => {
                stream.finish().map_err(plain)?;
                stream.into_inner().map_err(plain)?
            }
        };
        output.finish()?;
        self.table.say_oddities();
        Ok(())
    }
}

/// An error as it was before it was one of Arrow, which says everything twice.
fn plain(error: ArrowError) -> Error {
    match error {
        ArrowError::IoError(_, error) => Error::new(error),
        error => Error::new(error),
    }
}

/// Writes the next row group that is encoded; tells whether there was one.
fn append_next(file: &mut ParquetFile<Flushing<Output>>, encoders: &mut Encoders) -> Result<bool> {
    let Some((_, chunks)) = encoders.next()? else { return Ok(false) };
    file.append(chunks)?;
    Ok(true)
}

impl Table {
    const fn schema(&self) -> &SchemaRef {
        match self {
            Self::Wide(table) => table.schema(),
            Self::Long(table) => table.schema(),
        }
    }

    const fn rows(&self) -> usize {
        match self {
            Self::Wide(table) => table.rows(),
            Self::Long(table) => table.rows(),
        }
    }

    const fn bytes(&self) -> usize {
        match self {
            Self::Wide(table) => table.bytes(),
            Self::Long(table) => table.bytes(),
        }
    }

    fn take(&mut self) -> RecordBatch {
        match self {
            Self::Wide(table) => table.take(),
            Self::Long(table) => table.take(),
        }
    }

    fn say_oddities(&self) {
        match self {
            Self::Wide(table) => table.oddities.say(),
            // In JSON there is a way to say everything.
            Self::Long(_) => {}
        }
    }
}
