//! Tables of events, filled by a thread of its own while the trace is read.

use std::mem::take;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use anyhow::{Context as _, Result};
use simpletrace_format::{EventRecord, Header};

use super::block::{Block, Places};
use super::builders::Builders;
use super::table::EventTable;
use crate::trace::Item;

/// What waits for the thread at most.
const WAITING: usize = 4;

/// A thread that fills tables.
pub(crate) struct FillingThread<B: Builders> {
    work: SyncSender<Work<B>>,
    tables: usize,
    origin: Origin,
}

/// Fills the table of one kind of event.
pub(crate) struct Filler<B: Builders> {
    number: usize,
    rows: usize,
    has_args: bool,
    origin: Origin,
    block: Block,
    work: SyncSender<Work<B>>,
    empty: Receiver<Block>,
}

/// What the thread is to do.
enum Work<B: Builders> {
    /// Another table.
    Begin(Filled<B>),
    /// More rows of a table.
    Rows { number: usize, block: Block, origin: Origin },
    /// A table is to be given back.
    End { number: usize, to: Sender<EventTable<B>> },
}

/// Looks at a table whenever it has some thousand rows more.
type Look<B> = Box<dyn FnMut(&mut EventTable<B>) + Send>;

/// A table that the thread fills.
struct Filled<B: Builders> {
    table: EventTable<B>,
    look: Look<B>,
    give_back: Sender<Block>,
}

/// What records are of.
#[derive(Default, Clone, Copy, PartialEq)]
pub(super) struct Origin {
    /// The header of their file, which comes before any of them.
    pub(super) header: Option<Header>,
    /// From its clock to ns since 1970, if that is known.
    pub(super) wall_offset_ns: Option<i64>,
}

impl Origin {
    fn follow(&mut self, item: &Item<'_>) {
        match item {
            Item::Section(section) => *self = Self { header: Some(section.header), wall_offset_ns: None },
            Item::Fact(fact) => self.wall_offset_ns = fact.facts.wall_offset_ns(),
            _ => {}
        }
    }
}

impl<B: Builders> FillingThread<B>
where
    EventTable<B>: Send + 'static,
{
    /// # Errors
    ///
    /// There can be no more threads.
    pub(crate) fn start() -> Result<Self> {
        let (work, to_do) = sync_channel(WAITING);
        let thread = std::thread::Builder::new().name("table".to_owned());
        thread.spawn(move || fill(&to_do)).context("cannot start a thread")?;
        Ok(Self { work, tables: 0, origin: Origin::default() })
    }

    /// Takes in what the records behind this are of; tells whether the tables' fillers have to know.
    pub(crate) fn follow(&mut self, item: &Item<'_>) -> bool {
        let before = self.origin;
        self.origin.follow(item);
        self.origin != before
    }

    /// Begins to fill a table, which is looked at by `look` every few thousand rows.
    pub(crate) fn filler(
        &mut self,
        table: EventTable<B>,
        look: impl FnMut(&mut EventTable<B>) + Send + 'static,
    ) -> Filler<B> {
        let (give_back, empty) = channel();
        let (number, has_args) = (self.tables, table.has_args());
        self.tables += 1;
        // Without the thread, which only panics end, `finish` says so.
        let _ = self.work.send(Work::Begin(Filled { table, look: Box::new(look), give_back }));
        let (origin, work) = (self.origin, self.work.clone());
        Filler { number, rows: 0, has_args, origin, block: Block::default(), work, empty }
    }
}

impl<B: Builders> Filler<B> {
    /// Takes in what the records behind this are of.
    #[cold]
    pub(crate) fn follow(&mut self, item: &Item<'_>) {
        let mut origin = self.origin;
        origin.follow(item);
        if origin != self.origin {
            self.hand_on();
            self.origin = origin;
        }
    }

    /// How many rows were added.
    #[cfg_attr(not(feature = "frames"), expect(dead_code))]
    pub(crate) const fn rows(&self) -> usize {
        self.rows
    }

    /// Adds a row.
    #[inline]
    pub(crate) fn push(&mut self, record: &EventRecord<'_>) {
        self.block.push(record, self.has_args);
        self.rows += 1;
        if self.block.is_full() {
            self.hand_on();
        }
    }

    #[cold]
    fn hand_on(&mut self) {
        if self.block.is_empty() {
            return;
        }
        let block = take(&mut self.block);
        let _ = self.work.send(Work::Rows { number: self.number, block, origin: self.origin });
        self.block = self.empty.try_recv().unwrap_or_default();
    }

    /// The table with all rows that are still in it.
    ///
    /// # Errors
    ///
    /// The thread has died.
    pub(crate) fn finish(mut self) -> Result<EventTable<B>> {
        self.hand_on();
        let (to, filled) = channel();
        let _ = self.work.send(Work::End { number: self.number, to });
        filled.recv().context("the thread that fills tables has died")
    }
}

fn fill<B: Builders>(to_do: &Receiver<Work<B>>) {
    let mut tables = Vec::new();
    let mut places = Places::default();
    for work in to_do {
        match work {
            Work::Begin(filled) => tables.push(Some(filled)),
            Work::Rows { number, mut block, origin } => {
                let Some(Filled { table, look, give_back }) = &mut tables[number] else { continue };
                table.push_block(&block, origin, &mut places);
                block.clear();
                // Nobody may be waiting for it any more.
                let _ = give_back.send(block);
                look(table);
            }
            Work::End { number, to } => {
                if let Some(Filled { table, .. }) = tables[number].take() {
                    let _ = to.send(table);
                }
            }
        }
    }
}
