//! Tables of many events, from one reading.

use std::collections::hash_map::{Entry, HashMap};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use simpletrace_format::events::EventDecl;
use simpletrace_format::{EventRecord, Value};

use super::job::{Job, Next, Parts};
use super::stream::{follow, with_metadata};
use super::{BATCH_BYTES, Options, Report, Source, check_columns, check_names, say_undeclared};
use crate::columns::{EventTable, Oddities, Wanted};
use crate::filter::{DROPPED, Globs};
use crate::render::WallClock;
use crate::trace::{Item, Trace};

/// Events of all kinds, in batches of one kind each. When it is dropped, the reading ends.
pub struct Events {
    job: Job<(usize, RecordBatch), Vec<(String, SchemaRef)>>,
    report: Option<Report>,
    /// The batches of each kind so far.
    batches: Vec<Vec<RecordBatch>>,
    tables: BTreeMap<String, Table>,
}

/// A whole table.
#[derive(Debug, Clone)]
pub struct Table {
    /// Its columns.
    pub schema: SchemaRef,
    /// Its rows.
    pub batches: Vec<RecordBatch>,
}

impl Events {
    /// Takes in what was read, for which it waits so long at most; tells whether that is all.
    ///
    /// # Errors
    ///
    /// The trace cannot be read.
    pub fn wait(&mut self, timeout: Duration) -> super::Result<bool> {
        while self.job.wait(timeout) {
            match self.job.next()? {
                Next::Part((place, batch)) => {
                    if self.batches.len() <= place {
                        self.batches.resize_with(place + 1, Vec::new);
                    }
                    self.batches[place].push(batch);
                }
                Next::End(kinds, report) => {
                    self.report = Some(report);
                    self.batches.resize_with(kinds.len(), Vec::new);
                    for ((name, schema), batches) in kinds.into_iter().zip(std::mem::take(&mut self.batches)) {
                        let schema = Arc::new(with_metadata(&schema, Some(&name)));
                        let batches = batches.into_iter().map(|batch| {
                            batch.with_schema(Arc::clone(&schema)).expect("they differ in their metadata at most")
                        });
                        let batches = batches.collect();
                        self.tables.insert(name, Table { schema, batches });
                    }
                }
                Next::Over => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Waits for all of it: a table for each event, by name.
    ///
    /// # Errors
    ///
    /// The trace cannot be read.
    pub fn finish(mut self) -> super::Result<(BTreeMap<String, Table>, Report)> {
        while !self.wait(Duration::from_secs(3600))? {}
        let report = self.report.take().context("the reading has failed before")?;
        Ok((std::mem::take(&mut self.tables), report))
    }
}

impl Source {
    /// The events that the options name, or all, with a table for each that there are records of, or that is declared and named without a `*`. Gaps are
    /// the event `dropped`. Of columns, each has those that it has.
    ///
    /// # Errors
    ///
    /// A pattern, a window or a condition makes no sense.
    pub fn events(self, options: &Options) -> super::Result<Events> {
        let globs = Globs::parse(&options.events)?;
        let plain: Vec<_> = globs.plain_names().map(str::to_owned).collect();
        let selection = options.selection(globs, self.declared.as_ref())?;
        let own = options.clone();
        let job = Job::start(self, selection, options.formats(), move |trace, parts| {
            Ok((Tables::new(own).read(trace, &plain, parts)?, None))
        })?;
        Ok(Events { job, report: None, batches: Vec::new(), tables: BTreeMap::new() })
    }
}

/// All tables, while they are filled.
struct Tables {
    options: Options,
    tables: Vec<EventTable>,
    names: Vec<String>,
    by_name: HashMap<String, usize>,
    /// All that there are, wanted or not.
    columns: BTreeSet<String>,
    /// By the number of a kind of event.
    places: Vec<Option<usize>>,
}

type AllParts = Parts<(usize, RecordBatch), Vec<(String, SchemaRef)>>;

impl Tables {
    fn new(options: Options) -> Self {
        Self {
            options,
            tables: Vec::new(),
            names: Vec::new(),
            by_name: HashMap::new(),
            columns: BTreeSet::new(),
            places: Vec::new(),
        }
    }

    fn read(mut self, trace: &mut Trace, plain: &[String], parts: &AllParts) -> Result<Vec<(String, SchemaRef)>> {
        let admits_gaps = trace.selects(DROPPED);
        let mut wall = WallClock::default();
        trace.for_each(|item| {
            let place = match &item {
                Item::Event(event) => {
                    let index = event.kind.index;
                    let place = match self.places.get(index) {
                        Some(Some(place)) => *place,
                        _ => self.meet(index, &event.kind.name, event.kind.decl.as_ref()),
                    };
                    let EventRecord { timestamp_ns, pid, payload, .. } = event.record;
                    self.tables[place].push(timestamp_ns, || wall.at(timestamp_ns), pid, payload);
                    place
                }
                Item::Gap(gap) if admits_gaps => {
                    let place = self.gaps();
                    let (record, count) = (&gap.record, gap.record.known_count().map(Value::Unsigned));
                    let wall_ns = wall.at(record.timestamp_ns);
                    self.tables[place].push_value(record.timestamp_ns, wall_ns, record.pid, count);
                    place
                }
                item => {
                    follow(item, &mut wall);
                    return Ok(());
                }
            };
            if self.tables[place].bytes() < BATCH_BYTES {
                Ok(())
            } else {
                parts.send((place, self.tables[place].take()))
            }
        })?;
        check_names(trace)?;
        say_undeclared(trace);
        for name in plain.iter().filter(|name| trace.selects(name)) {
            if let Some(decl) = trace.kinds.declared().get(name).and_then(|found| found.event) {
                self.add(name, Some(&decl));
            } else if name == DROPPED {
                self.gaps();
            }
        }
        let mut oddities = Oddities::default();
        for (place, table) in self.tables.iter_mut().enumerate() {
            oddities.add(table.oddities);
            if table.rows() > 0 {
                parts.send((place, table.take()))?;
            }
        }
        if !self.tables.is_empty() {
            let columns: Vec<_> = self.columns.iter().map(String::as_str).collect();
            check_columns(self.options.columns.iter().flatten(), &columns)?;
        }
        trace.say_findings();
        trace.say_if_nothing_selected();
        oddities.say();
        Ok(self.names.into_iter().zip(self.tables.iter().map(|table| Arc::clone(table.schema()))).collect())
    }

    /// The place of the table of a kind of event; kinds of the same name share one.
    #[cold]
    fn meet(&mut self, index: usize, name: &str, decl: Option<&EventDecl>) -> usize {
        let place = self.add(name, decl);
        if self.places.len() <= index {
            self.places.resize(index + 1, None);
        }
        self.places[index] = Some(place);
        place
    }

    #[cold]
    fn gaps(&mut self) -> usize {
        self.table(DROPPED, EventTable::of_gaps_with)
    }

    fn add(&mut self, name: &str, decl: Option<&EventDecl>) -> usize {
        self.table(name, |wanted| EventTable::new(decl, wanted))
    }

    /// The place of the table of a name, which is made if there is none yet.
    fn table(&mut self, name: &str, table: impl Fn(Wanted<'_>) -> EventTable) -> usize {
        match self.by_name.entry(name.to_owned()) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let all = table(Wanted::All { wall: true });
                self.columns.extend(all.schema().fields().iter().map(|field| field.name().clone()));
                self.tables.push(table(self.options.wanted()));
                self.names.push(name.to_owned());
                *new.insert(self.tables.len() - 1)
            }
        }
    }
}
