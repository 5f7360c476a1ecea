//! Reading in a thread of its own, which is at most a few parts ahead of whoever takes them.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};

use super::{Report, Source};
use crate::filter::Selection;
use crate::formats::Formats;
use crate::input::{Input, Progress};
use crate::say;
use crate::trace::Trace;

/// Parts that wait to be taken; beside them one is being filled, and one is with who took it last.
const WAITING: usize = 2;

/// A reading that goes on. It ends when this is dropped.
pub(super) struct Job<P, E> {
    parts: Receiver<Message<P, E>>,
    next: Option<Message<P, E>>,
    inputs: Vec<Progress>,
    is_over: bool,
}

enum Message<P, E> {
    Part(P),
    End(Result<(E, Report)>),
}

/// What comes of a reading.
pub(super) enum Next<P, E> {
    Part(P),
    End(E, Report),
    /// It was ended before.
    Over,
}

/// Where parts go.
pub(super) struct Parts<P, E>(SyncSender<Message<P, E>>);

impl<P, E> Clone for Parts<P, E> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<P, E> Parts<P, E> {
    /// Hands on a part, when there is room for it.
    ///
    /// # Errors
    ///
    /// Nobody wants any more.
    pub(super) fn send(&self, part: P) -> Result<()> {
        self.0.send(Message::Part(part)).map_err(|_| anyhow!("nobody takes the parts"))
    }
}

impl<P: Send + 'static, E: Send + 'static> Job<P, E> {
    /// Begins to read; `work` says to what end.
    pub(super) fn start(
        source: Source,
        selection: Selection,
        formats: Formats,
        work: impl FnOnce(&mut Trace, &Parts<P, E>) -> Result<(E, Option<String>)> + Send + 'static,
    ) -> Result<Self> {
        let (sender, parts) = sync_channel(WAITING);
        let inputs = source.traces.iter().map(Input::progress).collect();
        let read = move || {
            let Source { traces, declared, remarks } = source;
            let sender = Parts(sender);
            let (end, said) = say::kept(|| {
                let mut trace = Trace::new(traces, declared, selection);
                trace.formats = formats;
                trace.keeps_gaps = true;
                trace.keep_mapped_names();
                let (end, facts) = work(&mut trace, &sender)?;
                if trace.files.is_empty() && !trace.findings.unreadable.is_empty() {
                    bail!("{}", trace.findings.unreadable.join("\n"));
                }
                Ok((end, Report { facts, ..Report::new(&trace) }))
            });
            let end = end.map(|(end, report)| (end, Report { remarks: [remarks, said].concat(), ..report }));
            // Whoever is not there any more does not want to know.
            let _ = sender.0.send(Message::End(end));
        };
        thread::Builder::new().name("tables".to_owned()).spawn(read).context("cannot start the decoding thread")?;
        Ok(Self { parts, next: None, inputs, is_over: false })
    }
}

impl<P, E> Job<P, E> {
    /// Waits for what comes next, for so long at most; tells whether it is there.
    pub(super) fn wait(&mut self, timeout: Duration) -> bool {
        if self.next.is_none() && !self.is_over {
            self.next = match self.parts.recv_timeout(timeout) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => return false,
                Err(RecvTimeoutError::Disconnected) => Some(Message::End(Err(died()))),
            };
        }
        true
    }

    /// Takes what comes next.
    pub(super) fn next(&mut self) -> Result<Next<P, E>> {
        if self.is_over {
            return Ok(Next::Over);
        }
        let message = self.next.take().map_or_else(|| self.parts.recv(), Ok);
        match message.unwrap_or_else(|_| Message::End(Err(died()))) {
            Message::Part(part) => Ok(Next::Part(part)),
            Message::End(end) => {
                self.is_over = true;
                end.map(|(end, report)| Next::End(end, report))
            }
        }
    }
}

fn died() -> anyhow::Error {
    anyhow!("the decoding thread has died")
}

impl<P, E> Drop for Job<P, E> {
    /// Nobody waits for the thread, as it may be in a read of a pipe for ever.
    fn drop(&mut self) {
        self.inputs.iter().for_each(Progress::stop);
    }
}
