//! Tables: Rust reads them whole, or in batches as they are asked for; other libraries take them through Arrow's C data interface.

use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use simpletrace_rs::tables::{self, Error, Level, Operation, Options, Remark, Report, Source, Verdict};

use crate::source::text_of;
use crate::words::in_python;

/// How long a signal may wait to be seen.
const PATIENCE: Duration = Duration::from_millis(50);

/// Which records and columns, as Python's half has put it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Asked {
    event: Vec<String>,
    columns: Option<Vec<String>>,
    time: Option<String>,
    filters: Vec<String>,
    pid: Vec<u32>,
    limit: Option<u64>,
    wall: bool,
    read_header: bool,
}

/// Which records belong to one operation.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct AskedOperation {
    operation: Option<String>,
    preset: Option<String>,
    presets: Vec<PathBuf>,
    on: Option<String>,
    by: Vec<String>,
    discipline: Option<String>,
    without_suspects: bool,
    percentiles: Vec<String>,
}

impl From<Asked> for Options {
    fn from(asked: Asked) -> Self {
        let Asked { event, columns, time, filters, pid, limit, wall, read_header } = asked;
        Self { events: event, columns, time, filters, pids: pid, limit, wall, no_header: !read_header }
    }
}

impl From<AskedOperation> for Operation {
    fn from(asked: AskedOperation) -> Self {
        let AskedOperation { operation, preset, presets, on, by, discipline, without_suspects, percentiles } = asked;
        Self { preset, presets, chain: operation, on, by, discipline, without_suspects, percentiles }
    }
}

/// What was found in a trace: the verdict, warnings, how many gaps there are, and how many events are known to be missing.
type Found = (&'static str, Vec<String>, u64, u64);

fn found(report: &Report) -> Found {
    let verdict = match report.verdict {
        Verdict::Sound if !report.is_declared => "undeclared",
        Verdict::Sound => "sound",
        Verdict::Torn => "torn",
        Verdict::Damaged => "damaged",
        Verdict::Unreadable => "unreadable",
    };
    // That a file ends inside a record is a note, and damage to a script.
    let is_torn = |remark: &Remark| report.torn.contains(&remark.text);
    let warnings = report.remarks.iter().filter(|remark| remark.level > Level::Note || is_torn(remark));
    (verdict, warnings.map(|remark| in_python(&remark.text)).collect(), report.gaps, report.dropped)
}

/// A table that is in memory, from `read`, `pairs` or `latency`. Other libraries take it, as often as they like:
///
///     polars.DataFrame(table)
///     pyarrow.table(table)
///     pandas.DataFrame.from_arrow(table)                     # pandas 3; pyarrow.table(table).to_pandas() before
///     duckdb.sql("select count(*) from notify")              # of a variable `notify` that holds it
///
/// It has no rows of its own to look at, and cannot be pickled or copied: what other libraries make of it can.
#[pyclass(module = "simpletrace", frozen)]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    /// What was found in the trace; `None` in the middle of it.
    report: Option<Arc<Report>>,
}

#[pymethods]
impl Table {
    /// What the command line would have said beside: notes and warnings.
    #[getter]
    fn remarks(&self) -> Vec<String> {
        let remarks = self.report.iter().flat_map(|report| &report.remarks);
        remarks.map(|remark| in_python(&remark.to_string())).collect()
    }

    /// Of latencies, what `latency -F json` has beside its groups; else None.
    #[getter]
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let facts = self.report.as_ref().and_then(|report| report.facts.as_deref());
        facts.map(|facts| py.import("json")?.call_method1("loads", (facts,))).transpose()
    }

    /// The names of its columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        names(&self.schema)
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The columns, for other libraries: a capsule of Arrow's C data interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    /// The rows, for other libraries: a capsule of Arrow's C stream interface. They have the columns that there are, whatever is requested.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A consumer has to take the schema that there is.
        drop(requested_schema);
        let batches = self.batches.clone().into_iter().map(Ok);
        stream_capsule(py, Box::new(RecordBatchIterator::new(batches, Arc::clone(&self.schema))))
    }

    /// Says how to pickle it.
    fn __reduce__(&self) -> PyResult<()> {
        let message = "a Table cannot be pickled or copied; pyarrow.table(table), polars.DataFrame(table) and the like make something of it that can";
        Err(PyTypeError::new_err(message))
    }

    fn __repr__(&self) -> String {
        format!("<simpletrace.Table: {} rows of {}>", self.__len__(), names(&self.schema).join(", "))
    }
}

/// A table that is read while it is taken, once, in memory that does not grow with the trace; from `stream`.
///
///     for batch in stream:                                   # each a Table
///         polars.DataFrame(batch)
///     pyarrow.RecordBatchReader.from_stream(stream)          # instead
///
/// It is of the process that began it, and cannot be pickled or copied.
#[pyclass(module = "simpletrace", frozen)]
pub(crate) struct Stream {
    schema: SchemaRef,
    stream: Mutex<State>,
}

/// Where what a [`Stream`] reads is.
enum State {
    Here(Box<Watched>),
    /// Some thread waits for its next batch.
    Busy,
    /// Another library has it, or has had it.
    Taken,
    /// All was handed out, or reading has failed.
    Over,
}

#[pymethods]
impl Stream {
    /// The names of its columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        names(&self.schema)
    }

    /// The columns, for other libraries: a capsule of Arrow's C data interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    /// The rows, for other libraries: a capsule of Arrow's C stream interface. They have the columns that there are, whatever is requested.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        stream_capsule(py, self.take()?)
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// The next batch, as a table.
    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Table>> {
        let mut state = self.lock_own()?;
        let mut watched = match std::mem::replace(&mut *state, State::Busy) {
            State::Here(watched) => watched,
            other => {
                *state = other;
                return match &*state {
                    State::Over => Ok(None),
                    State::Busy => Err(PyValueError::new_err("another thread is reading the stream")),
                    _ => Err(taken_already()),
                };
            }
        };
        drop(state);
        let batch = watched.next_batch(py);
        *self.lock() = if matches!(batch, Ok(Some(_))) { State::Here(watched) } else { State::Over };
        Ok(batch?.map(|batch| Table { schema: Arc::clone(&self.schema), batches: vec![batch], report: None }))
    }

    /// Reads all that is left: a table, and what was found.
    fn whole(&self, py: Python<'_>) -> PyResult<(Table, Found)> {
        let mut watched = self.take()?;
        let mut batches = Vec::new();
        while let Some(batch) = watched.next_untold(py)? {
            batches.push(batch);
        }
        let report = watched.stream.report().cloned();
        let report = report.ok_or_else(|| PyRuntimeError::new_err("the stream has ended without a report"))?;
        let found = found(&report);
        Ok((Table { schema: Arc::clone(&self.schema), batches, report: Some(Arc::new(report)) }, found))
    }

    /// Says what to pickle.
    fn __reduce__(&self) -> PyResult<()> {
        let message = "a Stream cannot be pickled or copied; hand on the path of the trace, and call stream() there";
        Err(PyTypeError::new_err(message))
    }

    fn __repr__(&self) -> String {
        format!("<simpletrace.Stream of {}>", names(&self.schema).join(", "))
    }
}

impl Stream {
    fn new(stream: tables::Stream, tell: Option<Py<PyAny>>) -> Self {
        Self { schema: stream.schema(), stream: Mutex::new(State::Here(Box::new(Watched::new(stream, tell)))) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, which stays as it is where nothing can be read.
    fn lock_own(&self) -> PyResult<MutexGuard<'_, State>> {
        let state = self.lock();
        if let State::Here(watched) = &*state {
            watched.check_process()?;
        }
        Ok(state)
    }

    fn take(&self) -> PyResult<Box<Watched>> {
        let mut state = self.lock_own()?;
        match std::mem::replace(&mut *state, State::Taken) {
            State::Here(watched) => Ok(watched),
            other => {
                // One that has ended goes on to end.
                *state = other;
                Err(taken_already())
            }
        }
    }
}

fn taken_already() -> PyErr {
    PyValueError::new_err("a stream can be taken only once, and was; read() gives what can be taken again")
}

/// A stream whose taker is told what was found, and may interrupt it.
struct Watched {
    stream: ManuallyDrop<tables::Stream>,
    /// The process that the thread is in that reads.
    process_id: u32,
    /// Called with what was [`found`] at the end.
    tell: Option<Py<PyAny>>,
}

impl Drop for Watched {
    /// In a forked child the stream is left alone: its locks may be held by a thread that is not there.
    fn drop(&mut self) {
        if self.process_id == process::id() {
            // SAFETY: it is dropped nowhere else, and not used any more.
            unsafe { ManuallyDrop::drop(&mut self.stream) }
        }
    }
}

impl Watched {
    fn new(stream: tables::Stream, tell: Option<Py<PyAny>>) -> Self {
        Self { stream: ManuallyDrop::new(stream), process_id: process::id(), tell }
    }

    /// Checks that the thread that reads is in this process: a forked child would wait for it for ever.
    fn check_process(&self) -> PyResult<()> {
        if self.process_id == process::id() {
            return Ok(());
        }
        let message = format!(
            "the stream was begun in process {} and cannot be read in its forked child; call stream() anew in the child",
            self.process_id
        );
        Err(PyRuntimeError::new_err(message))
    }

    /// The next batch; at the end, what was found is told.
    fn next_batch(&mut self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        let was_over = self.stream.report().is_some();
        let batch = self.next_untold(py)?;
        if let (None, false, Some(report), Some(tell)) = (&batch, was_over, self.stream.report(), &self.tell) {
            tell.call1(py, (found(report),))?;
        }
        Ok(batch)
    }

    fn next_untold(&mut self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        self.check_process()?;
        loop {
            py.check_signals()?;
            let stream = &mut *self.stream;
            if py.detach(|| stream.wait(PATIENCE)) {
                return self.stream.next_batch().map_err(raised);
            }
        }
    }
}

impl Iterator for Watched {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        // For whoever calls from C, with the GIL or without.
        let batch = Python::try_attach(|py| {
            self.next_batch(py).map_err(|error| {
                let text = error.to_string();
                if error.is_instance_of::<PyKeyboardInterrupt>(py) {
                    // Whoever is called through C raises something of its own, so that it has to come once more.
                    let _ = py.import("_thread").and_then(|module| module.call_method0("interrupt_main"));
                }
                ArrowError::ExternalError(text.into())
            })
        });
        batch.unwrap_or_else(|| Err(ArrowError::ExternalError("Python has ended".into()))).transpose()
    }
}

impl RecordBatchReader for Watched {
    fn schema(&self) -> SchemaRef {
        self.stream.schema()
    }
}

/// The events of a name, with a column for each argument, or all of those asked for, with their arguments as JSON.
#[pyfunction]
pub(crate) fn open_events(
    py: Python<'_>,
    traces: Vec<PathBuf>,
    events: Vec<PathBuf>,
    name: Option<String>,
    asked: Asked,
    tell: Option<Py<PyAny>>,
) -> PyResult<Stream> {
    let options = Options::from(asked);
    let stream = patiently(py, move || {
        let source = tables::open(&traces, &events)?;
        match name {
            Some(name) => source.event(&name, &options),
            None => source.long(&options),
        }
    });
    Ok(Stream::new(stream?, tell))
}

/// A table for each event that is asked for, and what was found.
#[pyfunction]
pub(crate) fn read_events(
    py: Python<'_>,
    traces: Vec<PathBuf>,
    events: Vec<PathBuf>,
    asked: Asked,
) -> PyResult<(BTreeMap<String, Table>, Found)> {
    let options = Options::from(asked);
    let mut begun = patiently(py, move || tables::open(&traces, &events)?.events(&options))?;
    while !py.detach(|| begun.wait(PATIENCE)).map_err(raised)? {
        py.check_signals()?;
    }
    let (read, report) = begun.finish().map_err(raised)?;
    let (found, report) = (found(&report), Arc::new(report));
    let table = |tables::Table { schema, batches }| Table { schema, batches, report: Some(Arc::clone(&report)) };
    Ok((read.into_iter().map(|(name, own)| (name, table(own))).collect(), found))
}

/// Operations, or how long they took.
#[pyfunction]
pub(crate) fn open_operation(
    py: Python<'_>,
    traces: Vec<PathBuf>,
    events: Vec<PathBuf>,
    operation: AskedOperation,
    asked: Asked,
    is_latency: bool,
) -> PyResult<Stream> {
    let (operation, options) = (Operation::from(operation), Options::from(asked));
    let begin = if is_latency { Source::latency } else { Source::pairs };
    let stream = patiently(py, move || begin(tables::open(&traces, &events)?, &operation, &options));
    Ok(Stream::new(stream?, None))
}

/// Name, about, operation, on, by, exact, note.
type PresetRow = (String, String, String, Option<String>, Vec<String>, bool, String);

/// The presets that there are, with those of files.
#[pyfunction]
pub(crate) fn presets(files: Vec<PathBuf>) -> PyResult<Vec<PresetRow>> {
    let presets = tables::presets(&files).map_err(raised)?.into_iter();
    Ok(presets
        .map(|preset| (preset.name, preset.about, preset.operation, preset.on, preset.by, preset.exact, preset.note))
        .collect())
}

/// Does what may wait for a pipe's writer, in a thread that is left alone if the waiting is interrupted.
fn patiently<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> tables::Result<T> + Send + 'static,
) -> PyResult<T> {
    let (sender, mut done) = mpsc::channel();
    // Whoever is interrupted does not want to know.
    thread::Builder::new().name("open".to_owned()).spawn(move || drop(sender.send(work())))?;
    loop {
        let done = &mut done;
        match py.detach(move || done.recv_timeout(PATIENCE)) {
            Ok(opened) => return opened.map_err(raised),
            Err(mpsc::RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("the thread that opens files has died"));
            }
        }
    }
}

fn names(schema: &Schema) -> Vec<String> {
    schema.fields().iter().map(|field| field.name().clone()).collect()
}

fn schema_capsule<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

fn stream_capsule<'py>(py: Python<'py>, batches: Box<dyn RecordBatchReader + Send>) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(batches), c"arrow_array_stream")
}

/// What the operating system is at fault for is an OSError of its kind, all else a ValueError.
fn raised(error: Error) -> PyErr {
    /// What Linux has a directory called that is opened as a file.
    const EISDIR: i32 = 21;

    let text = in_python(&error.to_string());
    let Some(io) = error.io() else { return PyValueError::new_err(text) };
    let is_directory = io.kind() == std::io::ErrorKind::IsADirectory;
    let Some(number) = io.raw_os_error().or(is_directory.then_some(EISDIR)) else {
        return PyValueError::new_err(text);
    };
    match error.path() {
        Some(path) => PyOSError::new_err((number, text_of(io, number), path.as_os_str().to_owned())),
        None => PyOSError::new_err((number, text_of(&error, number))),
    }
}
