//! Tables that come in batches.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use simpletrace_format::Value;
use simpletrace_format::events::EventDecl;

use super::job::{Job, Next, Parts};
use super::{BATCH_BYTES, Error, Options, Report, Source, check_names, say_undeclared, unknown_event};
use crate::columns::{EventTable, FileFacts, FillingThread, LongTable, Wanted, fields};
use crate::filter::{DROPPED, Globs};
use crate::render::WallClock;
use crate::trace::{Gap, Item, Trace};
use crate::{columns, say};

/// A table that is read while it is taken, in memory that does not grow with the trace. When it is dropped, the reading ends.
///
/// Errors come at the end, as what precedes them is good.
pub struct Stream {
    schema: SchemaRef,
    job: Job<RecordBatch, ()>,
    report: Option<Report>,
}

impl Stream {
    pub(super) fn new(schema: &Schema, event: Option<&str>, job: Job<RecordBatch, ()>) -> Self {
        Self { schema: Arc::new(with_metadata(schema, event)), job, report: None }
    }

    /// Waits for the next batch, or the end, for so long at most; tells whether it is there.
    pub fn wait(&mut self, timeout: Duration) -> bool {
        self.job.wait(timeout)
    }

    /// Takes the next batch, for which it waits; `None` at the end.
    ///
    /// # Errors
    ///
    /// The trace cannot be read.
    pub fn next_batch(&mut self) -> super::Result<Option<RecordBatch>> {
        Ok(match self.job.next()? {
            Next::Part(batch) => {
                Some(batch.with_schema(Arc::clone(&self.schema)).expect("they differ in their metadata at most"))
            }
            Next::End((), report) => {
                self.report = Some(report);
                None
            }
            Next::Over => None,
        })
    }

    /// What was found in the trace, once all batches are taken.
    #[must_use]
    pub const fn report(&self) -> Option<&Report> {
        self.report.as_ref()
    }
}

impl Iterator for Stream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().map_err(|error| ArrowError::ExternalError(Box::new(error))).transpose()
    }
}

impl RecordBatchReader for Stream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Source {
    /// The events of a name, in the order of the trace, with a column for each argument; of an event that is not declared, with its bytes as `payload`.
    ///
    /// # Errors
    ///
    /// A column, a window or a condition makes no sense. That the trace has no such event, or cannot be read, the stream says at its end.
    pub fn event(self, name: &str, options: &Options) -> super::Result<Stream> {
        let decl = self.declared.as_ref().and_then(|declared| declared.get(name)?.event);
        let all = match name {
            DROPPED => EventTable::of_gaps(true).schema().as_ref().clone(),
            _ => Schema::new(fields(decl.as_ref())),
        };
        options.check_columns(all.fields())?;
        if name == DROPPED {
            return self.gaps(options);
        }
        let selection = options.selection(Globs::of_names([name.to_owned()]), self.declared.as_ref())?;
        let table = EventTable::new(decl.as_ref(), options.wanted());
        let schema = table.schema().as_ref().clone();
        let own = name.to_owned();
        let job = Job::start(self, selection, options.formats(), move |trace, parts| {
            read_event(trace, &own, decl.as_ref(), table, parts)?;
            Ok(((), None))
        })?;
        Ok(Stream::new(&schema, Some(name), job))
    }

    /// All gaps.
    fn gaps(self, options: &Options) -> super::Result<Stream> {
        let selection = options.selection(Globs::of_names([DROPPED.to_owned()]), self.declared.as_ref())?;
        let mut table = EventTable::of_gaps_with(options.wanted());
        let schema = table.schema().as_ref().clone();
        let job = Job::start(self, selection, options.formats(), move |trace, parts| {
            let mut wall = WallClock::default();
            trace.for_each(|item| {
                match &item {
                    Item::Gap(Gap { record, .. }) => {
                        let count = record.known_count().map(Value::Unsigned);
                        table.push_value(record.timestamp_ns, wall.at(record.timestamp_ns), record.pid, count);
                    }
                    item => follow(item, &mut wall),
                }
                if table.bytes() < BATCH_BYTES { Ok(()) } else { parts.send(table.take()) }
            })?;
            if table.rows() > 0 {
                parts.send(table.take())?;
            }
            trace.say_findings();
            trace.say_if_nothing_selected();
            Ok(((), None))
        })?;
        Ok(Stream::new(&schema, Some(DROPPED), job))
    }

    /// The events that the options name, or all, gaps included, with their arguments as JSON, in the order of the trace.
    ///
    /// # Errors
    ///
    /// As of [`event`](Self::event).
    pub fn long(self, options: &Options) -> super::Result<Stream> {
        let selection = options.selection(Globs::parse(&options.events)?, self.declared.as_ref())?;
        let mut table = LongTable::new(options.wall || options.columns.is_some());
        let all = table.schema();
        options.check_columns(all.fields())?;
        let wanted: Vec<_> = (0..all.fields().len()).filter(|&at| options.wants(all.field(at).name())).collect();
        let schema = all.project(&wanted).map_err(anyhow::Error::from)?;
        let admits_gaps = selection.admits_dropped();
        let job = Job::start(self, selection, options.formats(), move |trace, parts| {
            let mut wall = WallClock::default();
            if !trace.kinds.have_declarations {
                say::warning(
                    "no trace-events file was given or found, so arguments are raw words; take the trace-events-all of the build \
                     that wrote the trace",
                );
            }
            trace.for_each(|item| {
                match &item {
                    Item::Event(event) => table.event(event, wall.at(event.record.timestamp_ns)),
                    Item::Gap(gap) if admits_gaps => table.gap(gap, wall.at(gap.record.timestamp_ns)),
                    item => follow(item, &mut wall),
                }
                if table.bytes() < BATCH_BYTES { Ok(()) } else { parts.send(table.take().project(&wanted)?) }
            })?;
            if table.rows() > 0 {
                parts.send(table.take().project(&wanted)?)?;
            }
            check_names(trace)?;
            trace.say_findings();
            trace.say_if_nothing_selected();
            Ok(((), None))
        })?;
        Ok(Stream::new(&schema, None, job))
    }
}

impl Options {
    pub(super) fn wanted(&self) -> Wanted<'_> {
        self.columns.as_deref().map_or(Wanted::All { wall: self.wall }, Wanted::Named)
    }
}

/// With what a table says of itself.
pub(super) fn with_metadata(schema: &Schema, event: Option<&str>) -> Schema {
    let metadata = FileFacts::new(event).at_once().collect::<HashMap<_, _>>();
    schema.clone().with_metadata(metadata)
}

/// Takes in how to tell the time of day.
#[cold]
pub(super) fn follow(item: &Item<'_>, wall: &mut WallClock) {
    match item {
        Item::Section(_) => wall.set_offset(None),
        Item::Fact(fact) => wall.set_offset(fact.facts.wall_offset_ns()),
        _ => {}
    }
}

fn read_event(
    trace: &mut Trace,
    name: &str,
    decl: Option<&EventDecl>,
    table: EventTable<columns::Arrow>,
    parts: &Parts<RecordBatch, ()>,
) -> Result<()> {
    let own_parts = parts.clone();
    let mut filler = FillingThread::start()?.filler(table, move |table| {
        if table.bytes() >= BATCH_BYTES {
            // If nobody wants it any more, the reading is being ended.
            let _ = own_parts.send(table.take());
        }
    });
    trace.for_each(|item| {
        match &item {
            Item::Event(event) => filler.push(&event.record),
            item => filler.follow(item),
        }
        Ok(())
    })?;
    let mut table = filler.finish()?;
    if decl.is_none() && !is_known(trace, name) && !trace.files.is_empty() {
        return Err(unknown_event(trace, name));
    }
    say_undeclared(trace);
    if table.rows() > 0 {
        parts.send(table.take())?;
    }
    trace.say_findings();
    trace.say_if_nothing_selected();
    table.oddities.say();
    Ok(())
}

fn is_known(trace: &Trace, name: &str) -> bool {
    trace.mapped_names().any(|mapped| mapped == name) || trace.kinds.iter().any(|kind| kind.name == name)
}

impl From<Error> for ArrowError {
    fn from(error: Error) -> Self {
        Self::ExternalError(Box::new(error))
    }
}
