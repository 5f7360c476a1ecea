//! Encoding and compressing row groups on all cores, in memory that is bounded whatever the trace.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::available_parallelism;

use anyhow::{Context as _, Result, anyhow};
use arrow_array::RecordBatch;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, compute_leaves};

/// More threads would take more memory: each has a row group, and what comes out of it.
const MAX_THREADS: usize = 4;

/// Threads that encode row groups, which come back in the order in which they were sent.
///
/// Of each thread there is one row group in work and, for all together, one waiting: the sender waits, too, when there are more.
pub(crate) struct Encoders {
    jobs: Option<SyncSender<Job>>,
    done: Receiver<Done>,
    threads: u64,
    sent: u64,
    returned: u64,
    /// What overtook others.
    early: BTreeMap<u64, Encoded>,
}

struct Job {
    number: u64,
    file: usize,
    writers: Vec<ArrowColumnWriter>,
    batch: RecordBatch,
}

struct Done {
    number: u64,
    encoded: Encoded,
}

/// A row group, with the file that it is for.
type Encoded = (usize, parquet::errors::Result<Vec<ArrowColumnChunk>>);

impl Encoders {
    /// Starts a thread for each core, up to a few.
    pub(crate) fn start() -> Result<Self> {
        let threads = available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        let (jobs, to_do) = sync_channel(1);
        let (give_back, done) = channel();
        let to_do = Arc::new(Mutex::new(to_do));
        for _ in 0..threads {
            let (to_do, give_back) = (Arc::clone(&to_do), give_back.clone());
            std::thread::Builder::new()
                .name("encoder".to_owned())
                .spawn(move || encode_all(&to_do, &give_back))
                .context("cannot start an encoding thread")?;
        }
        Ok(Self { jobs: Some(jobs), done, threads: threads as u64, sent: 0, returned: 0, early: BTreeMap::new() })
    }

    /// Whether [`next`](Self::next) is to be called before another row group is sent.
    pub(crate) const fn is_full(&self) -> bool {
        self.sent - self.returned > self.threads
    }

    /// Sends a row group of `file`, to be encoded by these writers of its columns.
    pub(crate) fn send(&mut self, file: usize, writers: Vec<ArrowColumnWriter>, batch: RecordBatch) -> Result<()> {
        let job = Job { number: self.sent, file, writers, batch };
        self.sent += 1;
        let jobs = self.jobs.as_ref().ok_or_else(ended)?;
        jobs.send(job).map_err(|_| ended())
    }

    /// Waits for the row group that was sent first of those that did not come back, if there are any, with its file.
    pub(crate) fn next(&mut self) -> Result<Option<(usize, Vec<ArrowColumnChunk>)>> {
        if self.returned == self.sent {
            return Ok(None);
        }
        let (file, chunks) = loop {
            if let Some(encoded) = self.early.remove(&self.returned) {
                break encoded;
            }
            let done = self.done.recv().map_err(|_| ended())?;
            self.early.insert(done.number, done.encoded);
        };
        self.returned += 1;
        Ok(Some((file, chunks.context("cannot encode a row group")?)))
    }
}

/// Threads end only when nothing is sent any more.
fn ended() -> anyhow::Error {
    anyhow!("an encoding thread has ended early, which is a fault of this program")
}

fn encode_all(to_do: &Mutex<Receiver<Job>>, give_back: &Sender<Done>) {
    loop {
        // A statement of its own: the lock is not held while encoding.
        let job = to_do.lock().ok().and_then(|to_do| to_do.recv().ok());
        let Some(Job { number, file, writers, batch }) = job else { return };
        let done = Done { number, encoded: (file, encode(writers, &batch)) };
        if give_back.send(done).is_err() {
            return;
        }
    }
}

fn encode(mut writers: Vec<ArrowColumnWriter>, batch: &RecordBatch) -> parquet::errors::Result<Vec<ArrowColumnChunk>> {
    let mut leaf_writers = writers.iter_mut();
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        for (leaf, writer) in compute_leaves(field, column)?.iter().zip(&mut leaf_writers) {
            writer.write(leaf)?;
        }
    }
    writers.into_iter().map(ArrowColumnWriter::close).collect()
}
