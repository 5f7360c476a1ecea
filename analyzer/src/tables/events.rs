//! Tables of many events, from one reading.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use simpletrace_format::Value;
use simpletrace_format::events::EventDecl;

use super::job::{Job, Next, Parts};
use super::stream::{follow, with_metadata};
use super::{BATCH_BYTES, Options, Report, Source, check_columns, check_names, say_undeclared};
use crate::columns::{Arrow, EventTable, Filler, FillingThread, Oddities, Wanted};
use crate::filter::{DROPPED, Globs};
use crate::kinds::Kind;
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
    /// the event `dropped`, and an event of that name is `dropped (event)`. Of columns, each has those that it has.
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
            Ok((Tables::new(own, parts.clone())?.read(trace, &plain)?, None))
        })?;
        Ok(Events { job, report: None, batches: Vec::new(), tables: BTreeMap::new() })
    }
}

/// All tables, while they are filled.
struct Tables {
    options: Options,
    parts: AllParts,
    thread: FillingThread<Arrow>,
    /// Of events, with the places of their tables.
    fillers: Vec<(usize, Filler<Arrow>)>,
    /// Of gaps, which are few.
    gaps: Option<(usize, EventTable)>,
    /// By place.
    kinds: Vec<(String, SchemaRef)>,
    /// The fillers of names.
    by_name: HashMap<String, usize>,
    /// The fillers of kinds of events, by their numbers.
    takers: Vec<Option<usize>>,
    /// All columns that there are, wanted or not.
    columns: BTreeSet<String>,
}

type AllParts = Parts<(usize, RecordBatch), Vec<(String, SchemaRef)>>;

impl Tables {
    fn new(options: Options, parts: AllParts) -> Result<Self> {
        Ok(Self {
            options,
            parts,
            thread: FillingThread::start()?,
            fillers: Vec::new(),
            gaps: None,
            kinds: Vec::new(),
            by_name: HashMap::new(),
            takers: Vec::new(),
            columns: BTreeSet::new(),
        })
    }

    fn read(mut self, trace: &mut Trace, plain: &[String]) -> Result<Vec<(String, SchemaRef)>> {
        let admits_gaps = trace.selects(DROPPED);
        let mut wall = WallClock::default();
        trace.for_each(|item| {
            match &item {
                Item::Event(event) => {
                    let taker = match self.takers.get(event.kind.index) {
                        Some(Some(taker)) => *taker,
                        _ => self.meet(event.kind),
                    };
                    self.fillers[taker].1.push(&event.record);
                }
                Item::Gap(gap) if admits_gaps => {
                    let (record, count) = (&gap.record, gap.record.known_count().map(Value::Unsigned));
                    let (place, table) = self.gaps();
                    table.push_value(record.timestamp_ns, wall.at(record.timestamp_ns), record.pid, count);
                    if table.bytes() >= BATCH_BYTES {
                        let part = (*place, table.take());
                        self.parts.send(part)?;
                    }
                }
                item => {
                    follow(item, &mut wall);
                    if self.thread.follow(item) {
                        self.fillers.iter_mut().for_each(|(_, filler)| filler.follow(item));
                    }
                }
            }
            Ok(())
        })?;
        check_names(trace)?;
        say_undeclared(trace);
        for name in plain.iter().filter(|name| trace.selects(name)) {
            if name == DROPPED {
                self.gaps();
            } else if let Some(decl) = trace.kinds.declared().get(name).and_then(|found| found.event) {
                self.add(name, Some(&decl));
            }
        }
        let Self { options, parts, fillers, gaps, kinds, columns, .. } = self;
        let mut oddities = Oddities::default();
        for (place, filler) in fillers {
            let mut table = filler.finish()?;
            oddities.add(table.oddities);
            send(&parts, place, &mut table)?;
        }
        if let Some((place, mut table)) = gaps {
            send(&parts, place, &mut table)?;
        }
        if !kinds.is_empty() {
            let columns: Vec<_> = columns.iter().map(String::as_str).collect();
            check_columns(options.columns.iter().flatten(), &columns)?;
        }
        trace.say_findings();
        trace.say_if_nothing_selected();
        oddities.say();
        Ok(kinds)
    }

    /// The filler for a kind of event; kinds of the same name share one.
    #[cold]
    fn meet(&mut self, kind: &Kind) -> usize {
        // A name that gaps have.
        let name = if kind.name == DROPPED { "dropped (event)" } else { &kind.name };
        let taker = self.add(name, kind.decl.as_ref());
        if self.takers.len() <= kind.index {
            self.takers.resize(kind.index + 1, None);
        }
        self.takers[kind.index] = Some(taker);
        taker
    }

    /// The filler for a name, which is made if there is none yet.
    fn add(&mut self, name: &str, decl: Option<&EventDecl>) -> usize {
        if let Some(taker) = self.by_name.get(name) {
            return *taker;
        }
        let (place, table) = self.table(name, |wanted| EventTable::new(decl, wanted));
        let parts = self.parts.clone();
        let look = move |table: &mut EventTable| {
            if table.bytes() >= BATCH_BYTES {
                // If nobody wants it any more, the reading is being ended.
                let _ = parts.send((place, table.take()));
            }
        };
        self.fillers.push((place, self.thread.filler(table, look)));
        self.by_name.insert(name.to_owned(), self.fillers.len() - 1);
        self.fillers.len() - 1
    }

    /// The table of gaps, and its place.
    #[cold]
    fn gaps(&mut self) -> &mut (usize, EventTable) {
        let gaps = self.gaps.take().unwrap_or_else(|| self.table(DROPPED, EventTable::of_gaps_with));
        self.gaps.insert(gaps)
    }

    fn table(&mut self, name: &str, table: impl Fn(Wanted<'_>) -> EventTable) -> (usize, EventTable) {
        let all = table(Wanted::All { wall: true });
        self.columns.extend(all.schema().fields().iter().map(|field| field.name().clone()));
        let table = table(self.options.wanted());
        self.kinds.push((name.to_owned(), Arc::clone(table.schema())));
        (self.kinds.len() - 1, table)
    }
}

/// Hands on what is left of a table.
fn send(parts: &AllParts, place: usize, table: &mut EventTable) -> Result<()> {
    if table.rows() == 0 { Ok(()) } else { parts.send((place, table.take())) }
}
