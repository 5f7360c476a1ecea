//! Where records go, a block at a time.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use simpletrace_format::events::ArgType;
use simpletrace_format::{Args, Payload};

use crate::calls::Calls;
use crate::declarations::Declared;
use crate::text::Text;

/// What is done with the records of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// They are taken by the kind of this number.
    Yes(u32),
    /// Nobody would be called for them.
    No,
}

/// How a record's payload met its declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    Whole,
    /// It has fewer arguments than its event is declared with, and was not taken.
    Short,
    /// Its last argument is text that would reach beyond it. It was taken with what there is of that, unless all has to be whole.
    Cut,
}

/// A record that somebody wants.
#[derive(Clone, Copy)]
pub(crate) struct Taking<'a> {
    pub(crate) kind: u32,
    pub(crate) timestamp_ns: u64,
    pub(crate) pid: u32,
    pub(crate) payload: Contents<'a>,
    /// Whether it is taken only if all of it is there.
    pub(crate) strict: bool,
}

/// The arguments of a record.
#[derive(Clone, Copy)]
pub(crate) enum Contents<'a> {
    Payload(Payload<'a>),
    /// That of a `dropped` record.
    Count(u64),
}

/// One argument, and nothing of its type but whether it is text.
#[derive(Clone, Copy)]
pub(crate) enum Raw<'a> {
    Word(u64),
    Text(&'a [u8]),
}

/// Reads arguments as they are declared.
pub(crate) struct RawArgs<'a> {
    args: Result<Args<'a>, Option<u64>>,
    left: std::slice::Iter<'a, ArgType>,
    /// Whether the last argument was text of which only the beginning is there.
    pub(crate) is_cut: bool,
}

impl<'a> Contents<'a> {
    #[inline]
    pub(crate) fn raw(self, types: &'a [ArgType]) -> RawArgs<'a> {
        let args = match self {
            Self::Payload(payload) => Ok(payload.args()),
            Self::Count(count) => Err(Some(count)),
        };
        RawArgs { args, left: types.iter(), is_cut: false }
    }
}

impl<'a> Iterator for RawArgs<'a> {
    /// `None` if the payload has no such argument.
    type Item = Option<Raw<'a>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let ty = self.left.next()?;
        let args = match &mut self.args {
            Ok(args) => args,
            Err(count) => return Some(count.take().map(Raw::Word)),
        };
        if !ty.is_string() {
            return Some(args.word().map(Raw::Word));
        }
        let string = args.string().or_else(|| {
            // The last argument may be cut off: simpletrace.py gives what there is of it, and so is it done here.
            let rest = if self.left.as_slice().is_empty() { args.rest().get(4..) } else { None };
            self.is_cut = rest.is_some();
            rest
        });
        Some(string.map(Raw::Text))
    }
}

/// Takes records.
pub(crate) enum Sink {
    None,
    Calls(Calls),
    Text(Text),
}

impl Sink {
    /// Takes in an event that the trace has records of.
    pub(crate) fn resolve(&mut self, name: &str, declared: &Declared) -> PyResult<Wanted> {
        match self {
            Self::None => Ok(Wanted::No),
            Self::Calls(calls) => calls.resolve(name, declared),
            Self::Text(text) => Ok(text.resolve(declared)),
        }
    }

    #[inline]
    pub(crate) fn take(&mut self, taking: &Taking<'_>) -> PyResult<Taken> {
        match self {
            Self::None => Ok(Taken::Whole),
            Self::Calls(calls) => calls.take(taking),
            Self::Text(text) => text.take(taking),
        }
    }

    /// Hands over all that was taken.
    pub(crate) fn flush(&mut self) -> PyResult<()> {
        match self {
            Self::None => Ok(()),
            Self::Calls(calls) => calls.flush(),
            Self::Text(text) => text.flush(),
        }
    }

    /// Makes the calls for all that was taken, and looks for methods that these may have made.
    pub(crate) fn look_again(&mut self) -> PyResult<()> {
        match self {
            Self::Calls(calls) => calls.flush_and_look_again(),
            Self::None | Self::Text(_) => Ok(()),
        }
    }
}

/// What the reader of a trace and its source both need: the source hands over what was taken before it waits.
pub(crate) struct Shared {
    sink: Mutex<Sink>,
    /// Whether calls made some kinds wanted that were not, or the other way round.
    pub(crate) is_stale: Arc<AtomicBool>,
    /// What reading has raised: an `io::Error` in its place ends the reading.
    raised: Mutex<Option<PyErr>>,
    /// The method of the script's object that reads some bytes.
    read: Mutex<Option<Py<PyAny>>>,
}

impl Shared {
    pub(crate) fn new() -> Self {
        Self {
            sink: Mutex::new(Sink::None),
            is_stale: Arc::default(),
            raised: Mutex::default(),
            read: Mutex::default(),
        }
    }

    /// The sink. Only the thread that reads the trace ever asks for it.
    #[inline]
    pub(crate) fn sink(&self) -> MutexGuard<'_, Sink> {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn flush(&self) -> PyResult<()> {
        self.sink().flush()
    }

    /// Tells whether who is wanted has changed since it was asked last.
    #[inline]
    pub(crate) fn take_stale(&self) -> bool {
        // Relaxed: the same thread has stored it.
        self.is_stale.load(Ordering::Relaxed) && self.is_stale.swap(false, Ordering::Relaxed)
    }

    pub(crate) fn set_read(&self, read: Py<PyAny>) {
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = Some(read);
    }

    pub(crate) fn read(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|read| read.clone_ref(py))
    }

    /// Gives up what reads.
    pub(crate) fn forget_read(&self) {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(read);
    }

    /// Shows the garbage collector what reads.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Held by who is no garbage.
        let Ok(read) = self.read.try_lock() else { return Ok(()) };
        read.as_ref().map_or(Ok(()), |read| visit.call(read))
    }

    /// Keeps an exception for who started the reading.
    pub(crate) fn raise(&self, error: PyErr) -> io::Error {
        *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        io::Error::other("an exception was raised")
    }

    pub(crate) fn take_raised(&self) -> Option<PyErr> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
