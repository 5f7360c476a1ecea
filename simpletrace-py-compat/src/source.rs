//! Where the bytes of a trace come from.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyBlockingIOError, PyOSError, PyTypeError, PyUnicodeDecodeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView, PyString};

use crate::sink::Shared;

/// How much is asked of a Python object at a time, in bytes: what a pipe holds by default on Linux.
const CHUNK_BYTES: usize = 1 << 16;

/// How long Ctrl-C may have to wait while nobody is called.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

enum Input {
    /// A regular file, read without Python.
    File(File),
    /// A Python object, whose methods to read are with [`Shared`]: the garbage collector has to find them.
    Object,
}

/// The bytes of a trace.
pub(crate) struct Source {
    input: Input,
    /// What was read already: first its bytes from `at` on.
    ahead: Vec<u8>,
    at: usize,
    shared: Arc<Shared>,
    looked_for_signals: Instant,
}

/// A trace as the script names it, to be read again from where it began.
pub(crate) enum Named<'py> {
    Path(PathBuf),
    /// A file object and its position, if it has one.
    Object(Bound<'py, PyAny>, Option<u64>),
}

impl<'py> Named<'py> {
    /// Takes the path of a regular file (`str` or path-like) or an object with a method to read bytes.
    pub(crate) fn new(log: &Bound<'py, PyAny>) -> PyResult<Self> {
        if log.is_instance_of::<PyString>() || log.hasattr("__fspath__")? {
            let path: PathBuf = log.extract()?;
            return Ok(Self::Path(path));
        }
        if !log.hasattr("read")? {
            let what = log.repr()?.to_string();
            let what: String = what.chars().take(60).collect();
            let message =
                format!("the trace is a path, as str or path-like, or a file object that reads bytes, and not {what}");
            return Err(PyTypeError::new_err(message));
        }
        // Before something is read from it.
        if log.is_instance(&log.py().import("io")?.getattr("TextIOBase")?)? {
            return Err(of_text());
        }
        let seekable = log.call_method0("seekable").and_then(|answer| answer.is_truthy()).unwrap_or(false);
        let position = if seekable { possible(&log.call_method0("tell")?) } else { None };
        Ok(Self::Object(log.clone(), position))
    }

    /// What messages call it.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Path(path) => path.display().to_string(),
            Self::Object(object, _) => match object.getattr("name") {
                Ok(name) if name.is_instance_of::<PyString>() => name.to_string(),
                _ => "the trace".to_owned(),
            },
        }
    }

    /// Whether it can be read more than once.
    pub(crate) fn is_again(&self) -> bool {
        matches!(self, Self::Path(_) | Self::Object(_, Some(_)))
    }

    /// Where it can be put back to, and by what: an object that can, and its position now.
    pub(crate) fn begin(&self) -> Option<(Py<PyAny>, u64)> {
        match self {
            Self::Object(object, Some(position)) => Some((object.clone().unbind(), *position)),
            _ => None,
        }
    }

    /// Where reading begins in the file, in bytes; `None` where that is not known.
    pub(crate) fn position(&self) -> Option<u64> {
        match self {
            Self::Path(_) => Some(0),
            Self::Object(_, Some(position)) => Some(*position),
            Self::Object(object, None) => object.call_method0("tell").ok().and_then(|told| possible(&told)),
        }
    }

    /// Starts reading, from the beginning or from where the object stood.
    pub(crate) fn open(&self, shared: &Arc<Shared>) -> PyResult<Source> {
        let input = match self {
            Self::Path(path) => Input::File(File::open(path).map_err(|error| os_error_at(error, path))?),
            Self::Object(object, position) => {
                if let Some(position) = position {
                    object.call_method1("seek", (*position,))?;
                }
                let read = object.getattr("read")?;
                let read1 = if has_own_read1(object)? { object.getattr("read1")? } else { read.clone() };
                let methods = (read1, read);
                shared.set_read(methods.into_pyobject(object.py())?.into_any().unbind());
                Input::Object
            }
        };
        Ok(Source { input, ahead: Vec::new(), at: 0, shared: Arc::clone(shared), looked_for_signals: Instant::now() })
    }
}

/// Whether an object has a `read1`, which reads what a pipe has, beside its `read`: one that is inherited or handed on from another object would read
/// around a `read` that does something of its own.
fn has_own_read1(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let of_object = object.getattr_opt("__dict__")?;
    for method in ["read", "read1"] {
        if let Some(own) = &of_object
            && own.contains(method)?
        {
            return Ok(false);
        }
    }
    for class in object.get_type().mro() {
        let own = class.getattr("__dict__")?;
        match (own.contains("read")?, own.contains("read1")?) {
            (false, false) => {}
            (has_read, has_read1) => return Ok(has_read && has_read1),
        }
    }
    Ok(false)
}

/// A position in a file that leaves room for what comes behind it.
fn possible(told: &Bound<'_, PyAny>) -> Option<u64> {
    told.extract().ok().filter(|&position: &u64| position < 1 << 63)
}

/// An `OSError` with its number, as Python raises it.
pub(crate) fn os_error(error: io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(number) => PyOSError::new_err((number, text_of(&error, number))),
        None => error.into(),
    }
}

fn os_error_at(error: io::Error, path: &Path) -> PyErr {
    match error.raw_os_error() {
        Some(number) => PyOSError::new_err((number, text_of(&error, number), path.as_os_str().to_owned())),
        None => error.into(),
    }
}

/// What an error says, without the number, which Python puts before it.
pub(crate) fn text_of(error: &impl fmt::Display, number: i32) -> String {
    let text = error.to_string();
    text.strip_suffix(&format!(" (os error {number})")).unwrap_or(&text).to_owned()
}

impl Source {
    /// Returns the first bytes, at most `count`, which stay the first to be read.
    pub(crate) fn peek(&mut self, count: usize) -> io::Result<&[u8]> {
        while self.ahead.len() - self.at < count {
            let mut chunk = vec![0; CHUNK_BYTES];
            let read = self.read_more(&mut chunk)?;
            if read == 0 {
                break;
            }
            self.ahead.extend_from_slice(&chunk[..read]);
        }
        let end = self.ahead.len().min(self.at + count);
        Ok(&self.ahead[self.at..end])
    }

    fn read_more(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Of an object, too: one that is written in C looks for none.
        if self.looked_for_signals.elapsed() >= SIGNALS_EVERY {
            check_signals(&self.shared)?;
            self.looked_for_signals = Instant::now();
        }
        match &mut self.input {
            Input::File(file) => loop {
                match file.read(buffer) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => check_signals(&self.shared)?,
                    result => return result.map_err(|error| self.shared.raise(os_error(error))),
                }
            },
            Input::Object => {
                // What has been read goes to the script before it is waited for more.
                self.shared.flush().map_err(|error| self.shared.raise(error))?;
                Python::attach(|py| {
                    let read = self.shared.read(py);
                    let read = read.ok_or_else(|| PyValueError::new_err("the trace is closed"))?;
                    read_object(read.bind(py), buffer)
                })
                .map_err(|error| self.shared.raise(error))
            }
        }
    }
}

fn check_signals(shared: &Shared) -> io::Result<()> {
    Python::attach(|py| py.check_signals()).map_err(|error| shared.raise(error))
}

/// Reads with the first of two methods, and where it finds the end, with the second: to `read1` of a `BufferedReader` it is an end, too, if a file that is not
/// to be waited for has nothing for now.
fn read_object(methods: &Bound<'_, PyAny>, buffer: &mut [u8]) -> PyResult<usize> {
    let (first, second): (Bound<'_, PyAny>, Bound<'_, PyAny>) = methods.extract()?;
    let count = read_with(&first, buffer)?;
    if count > 0 || buffer.is_empty() || first.is(&second) { Ok(count) } else { read_with(&second, &mut buffer[..1]) }
}

fn read_with(read: &Bound<'_, PyAny>, buffer: &mut [u8]) -> PyResult<usize> {
    let bytes = read.call1((buffer.len().min(CHUNK_BYTES),)).map_err(|error| {
        let py = read.py();
        if !error.is_instance_of::<PyUnicodeDecodeError>(py) {
            return error;
        }
        let of_text = of_text();
        of_text.set_cause(py, Some(error));
        of_text
    })?;
    if bytes.is_none() {
        return Err(PyBlockingIOError::new_err(
            "the trace has no bytes for now, and is not to be waited for; os.set_blocking(file.fileno(), True) lets it be waited for",
        ));
    }
    let bytes = match bytes.cast_into::<PyBytes>() {
        Ok(bytes) => bytes,
        Err(other) => of_bytes_like(&other.into_inner())?,
    };
    let bytes = bytes.as_bytes();
    let Some(room) = buffer.get_mut(..bytes.len()) else {
        return Err(PyTypeError::new_err("the trace gave more bytes than it was asked for"));
    };
    room.copy_from_slice(bytes);
    Ok(bytes.len())
}

/// What a file is told that gives text.
fn of_text() -> PyErr {
    PyTypeError::new_err(
        "a trace is bytes, and the file is opened as text: open it with mode 'rb', or pass its .buffer",
    )
}

/// Copies what is no `bytes`, but has some: a `bytearray`, a `memoryview`.
fn of_bytes_like<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let Ok(view) = PyMemoryView::from(object) else {
        let message = format!("a trace is bytes, and reading it gave {}: open it with mode 'rb'", object.get_type());
        return Err(PyTypeError::new_err(message));
    };
    Ok(view.call_method0(intern!(object.py(), "tobytes"))?.cast_into()?)
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let ahead = &self.ahead[self.at..];
        if ahead.is_empty() {
            return self.read_more(buffer);
        }
        let count = ahead.len().min(buffer.len());
        buffer[..count].copy_from_slice(&ahead[..count]);
        self.at += count;
        if self.at == self.ahead.len() {
            (self.ahead, self.at) = (Vec::new(), 0);
        }
        Ok(count)
    }
}
