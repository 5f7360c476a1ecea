//! Tables of events, filled by threads of their own while the trace is read.

use std::mem::replace;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use anyhow::{Context as _, Result};
use simpletrace_format::{EventRecord, Header, Payload};

use super::builders::Builders;
use super::table::EventTable;

/// What a block holds before it is handed on: few enough to stay in a core's cache.
const BLOCK_BYTES: usize = 1 << 17;
const BLOCK_ROWS: usize = 1 << 12;
/// Blocks that wait for the thread.
const WAITING: usize = 4;

/// Fills the table of one kind of event.
pub(crate) struct Filler<B: Builders> {
    rows: usize,
    header: Option<Header>,
    has_args: bool,
    block: Block,
    full: SyncSender<Block>,
    empty: Receiver<Block>,
    thread: JoinHandle<EventTable<B>>,
}

/// Records of one file, copied.
#[derive(Default)]
struct Block {
    header: Option<Header>,
    rows: Vec<Row>,
    payloads: Vec<u8>,
}

struct Row {
    timestamp_ns: u64,
    wall_ns: Option<u64>,
    pid: u32,
    payload_bytes: u32,
}

impl<B: Builders> Filler<B>
where
    EventTable<B>: Send + 'static,
{
    /// Begins to fill a table, which is looked at by `look` every few thousand rows.
    ///
    /// # Errors
    ///
    /// There can be no more threads.
    pub(crate) fn start(
        mut table: EventTable<B>,
        mut look: impl FnMut(&mut EventTable<B>) + Send + 'static,
    ) -> Result<Self> {
        let (full, to_fill) = sync_channel(WAITING);
        let (give_back, empty) = channel();
        let has_args = table.has_args();
        let fill = move || {
            fill(&mut table, &to_fill, &give_back, &mut look);
            table
        };
        let thread =
            std::thread::Builder::new().name("table".to_owned()).spawn(fill).context("cannot start a thread")?;
        Ok(Self { rows: 0, header: None, has_args, block: Block::default(), full, empty, thread })
    }

    /// Takes in that the records behind this are of a file with this header.
    pub(crate) fn begin_file(&mut self, header: Header) {
        self.hand_on();
        self.header = Some(header);
    }

    /// How many rows were added.
    #[cfg_attr(not(feature = "frames"), expect(dead_code))]
    pub(crate) const fn rows(&self) -> usize {
        self.rows
    }

    /// Adds a row.
    #[inline]
    pub(crate) fn push(&mut self, record: &EventRecord<'_>, wall_ns: Option<u64>) {
        let EventRecord { timestamp_ns, pid, payload, .. } = *record;
        let payload = if self.has_args { payload.bytes() } else { &[] };
        self.block.payloads.extend_from_slice(payload);
        // A record is at most 256 KiB.
        self.block.rows.push(Row { timestamp_ns, wall_ns, pid, payload_bytes: payload.len() as u32 });
        self.rows += 1;
        if self.block.rows.len() >= BLOCK_ROWS || self.block.payloads.len() >= BLOCK_BYTES {
            self.hand_on();
        }
    }

    #[cold]
    fn hand_on(&mut self) {
        let next = self.empty.try_recv().unwrap_or_default();
        let mut block = replace(&mut self.block, next);
        block.header = self.header;
        // Without the thread, which only panics end, `finish` goes on with the panic.
        let _ = self.full.send(block);
    }

    /// The table with all rows that are still in it.
    pub(crate) fn finish(mut self) -> EventTable<B> {
        self.hand_on();
        drop(self.full);
        self.thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}

fn fill<B: Builders>(
    table: &mut EventTable<B>,
    full: &Receiver<Block>,
    empty: &Sender<Block>,
    look: &mut impl FnMut(&mut EventTable<B>),
) {
    while let Ok(mut block) = full.recv() {
        if let Some(header) = block.header {
            let mut from = 0;
            for row in block.rows.drain(..) {
                let Row { timestamp_ns, wall_ns, pid, payload_bytes } = row;
                let end = from + payload_bytes as usize;
                let payload = Payload::of(&block.payloads[replace(&mut from, end)..end], header);
                table.push(timestamp_ns, || wall_ns, pid, payload);
            }
        }
        block.payloads.clear();
        look(table);
        // Nobody may be waiting for it any more.
        let _ = empty.send(block);
    }
}
