//! Calling the methods of an analyzer.

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyInt, PyList, PyString, PyTuple};
use pyo3::{ffi, intern};
use simpletrace_format::events::ArgType;
use simpletrace_format::{Value, Version};

use crate::declarations::{DROPPED, Declarations, Declared};
use crate::sink::{Raw, Taken, Taking, Wanted};

/// Records that are gathered before they are handed over.
pub(crate) const BLOCK_RECORDS: usize = 4096;

/// Bytes of text that are gathered before they are handed over.
const BLOCK_TEXT_BYTES: usize = 1 << 20;

/// How an analyzer is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// As `Analyzer2`: arguments, and the rest by keyword.
    Keywords,
    /// As `Analyzer`: arguments, before them the time and the process if the method has room for them.
    Positional,
    /// By its own `_process_event`.
    Process,
}

/// Who is called for the records of a kind.
enum Target {
    /// Nobody: there is no method, and no `catchall` of the script's own.
    Nobody,
    /// The method, looked up for each record as it may change. Once it is gone, `catchall`.
    Method,
    /// `catchall`, looked up likewise.
    Catchall,
    /// The method or else `catchall`, each time anew: the analyzer makes up attributes as they are asked for.
    Either,
    /// A method found once, with so many values before the arguments.
    Fixed(Py<PyAny>, usize),
    /// `catchall` of an `Analyzer`, which gets the record in one.
    FixedCatchall(Py<PyAny>),
    /// `_process_event`.
    Process,
}

struct Kind {
    names: KindNames,
    target: Target,
    /// The keyword arguments, of which each call changes two.
    kwargs: Py<PyDict>,
    pid: Option<u32>,
}

/// What a kind of event is in Python.
pub(crate) struct KindNames {
    pub(crate) event: Py<PyAny>,
    /// The name in the trace, and that of the event's declaration: they differ for `dropped`.
    pub(crate) id: Py<PyString>,
    method: Py<PyString>,
    pub(crate) types: Box<[ArgType]>,
}

impl KindNames {
    pub(crate) fn new(py: Python<'_>, name: &str, declared: &Declared, from: &Declarations) -> PyResult<Self> {
        let event = if name == DROPPED {
            py.import("simpletrace")?.getattr("_DROPPED_EVENT")?
        } else {
            from.event(py, &declared.decl)?
        };
        Ok(Self {
            event: event.unbind(),
            id: PyString::intern(py, name).unbind(),
            method: PyString::intern(py, &declared.decl.name).unbind(),
            types: declared.types.clone(),
        })
    }
}

/// Makes a Python value of an argument.
pub(crate) struct Values {
    pub(crate) typed: bool,
    pub(crate) version: Version,
    /// How many a `bool` was given as `True` for that are neither 0 nor 1.
    pub(crate) odd_bools: Cell<u64>,
}

impl Values {
    #[inline]
    pub(crate) fn make<'py>(&self, py: Python<'py>, raw: Raw<'_>, ty: ArgType) -> PyResult<Bound<'py, PyAny>> {
        match raw {
            Raw::Word(word) if !self.typed => Ok(PyInt::new(py, word).into_any()),
            Raw::Text(text) if !self.typed => Ok(PyBytes::new(py, text).into_any()),
            Raw::Word(word) => {
                let value = match self.version {
                    Version::V0 => Value::from_word_of_version_0(word, ty),
                    _ => Value::from_word(word, ty),
                };
                Ok(match value {
                    Value::Signed(value) => PyInt::new(py, value).into_any(),
                    Value::Bool(value) => PyBool::new(py, value).to_owned().into_any(),
                    _ if ty == ArgType::Bool => {
                        self.odd_bools.set(self.odd_bools.get() + 1);
                        PyBool::new(py, true).to_owned().into_any()
                    }
                    _ => PyInt::new(py, word).into_any(),
                })
            }
            Raw::Text(text) => match std::str::from_utf8(text) {
                Ok(text) => Ok(PyString::new(py, text).into_any()),
                Err(_) => PyBytes::new(py, text)
                    .call_method1(intern!(py, "decode"), (intern!(py, "utf-8"), intern!(py, "backslashreplace"))),
            },
        }
    }
}

/// Records on their way to an analyzer.
#[derive(Default)]
struct Block {
    records: Vec<Kept>,
    words: Vec<u64>,
    text: Vec<u8>,
}

/// A record in a block. Its arguments are in `words`, one each: of text, the place and the length in `text`.
struct Kept {
    kind: u32,
    pid: u32,
    timestamp_ns: u64,
    words_at: usize,
}

impl Block {
    fn clear(&mut self) {
        self.records.clear();
        self.words.clear();
        self.text.clear();
    }
}

/// Calls an analyzer for records.
pub(crate) struct Calls {
    analyzer: Py<PyAny>,
    style: Style,
    /// Whether attributes are made up as they are asked for, so that there is no telling which there are.
    is_dynamic: bool,
    declarations: Arc<Declarations>,
    values: Values,
    kinds: Vec<Kind>,
    /// The class of the times that an `Analyzer` gets.
    timestamp: Py<PyAny>,
    block: Block,
    /// The kinds that have no method, and the names of these; `None` if they have to be gathered anew.
    without: Option<(Vec<usize>, Py<PyTuple>)>,
    /// The records called for since methods were looked for.
    called: usize,
    /// Set when calls made some kinds wanted that were not, or the other way round.
    is_stale: Arc<AtomicBool>,
}

impl Calls {
    pub(crate) fn new(
        analyzer: &Bound<'_, PyAny>,
        style: Style,
        declarations: Arc<Declarations>,
        values: Values,
        is_stale: Arc<AtomicBool>,
    ) -> PyResult<Self> {
        let py = analyzer.py();
        let class = analyzer.get_type();
        let usual = py.get_type::<PyAny>().getattr("__getattribute__")?;
        let is_dynamic = class.hasattr("__getattr__")? || !class.getattr("__getattribute__")?.is(&usual);
        Ok(Self {
            analyzer: analyzer.clone().unbind(),
            style,
            is_dynamic,
            declarations,
            values,
            kinds: Vec::new(),
            timestamp: py.import("simpletrace")?.getattr("_Timestamp")?.unbind(),
            block: Block::default(),
            without: None,
            called: 0,
            is_stale,
        })
    }

    pub(crate) fn set_version(&mut self, version: Version) {
        self.values.version = version;
    }

    /// Finds out who is to be called for a kind of event, after all calls for the records before.
    pub(crate) fn resolve(&mut self, name: &str, declared: &Declared) -> PyResult<Wanted> {
        self.flush()?;
        Python::attach(|py| {
            let names = KindNames::new(py, name, declared, &self.declarations)?;
            let target = self.target(py, &names)?;
            let kwargs = PyDict::new(py);
            for (key, value) in [("event", &names.event), ("event_id", names.id.as_any())] {
                kwargs.set_item(PyString::intern(py, key), value)?;
            }
            for key in ["timestamp_ns", "pid"] {
                kwargs.set_item(PyString::intern(py, key), py.None())?;
            }
            let wanted = match target {
                Target::Nobody => Wanted::No,
                _ => Wanted::Yes(self.kinds.len() as u32),
            };
            self.kinds.push(Kind { names, target, kwargs: kwargs.unbind(), pid: None });
            self.without = None;
            Ok(wanted)
        })
    }

    fn target(&self, py: Python<'_>, names: &KindNames) -> PyResult<Target> {
        let analyzer = self.analyzer.bind(py);
        match self.style {
            Style::Process => Ok(Target::Process),
            Style::Keywords if self.is_dynamic => Ok(Target::Either),
            Style::Keywords => {
                if analyzer.getattr_opt(names.method.bind(py))?.is_some() {
                    return Ok(Target::Method);
                }
                Ok(if has_own_catchall(analyzer)? { Target::Catchall } else { Target::Nobody })
            }
            Style::Positional => {
                let choose = py.import("simpletrace")?.getattr("_choose")?;
                let (function, before): (Py<PyAny>, Option<usize>) =
                    choose.call1((analyzer, &names.event))?.extract()?;
                Ok(match before {
                    Some(before) => Target::Fixed(function, before),
                    None if has_own_catchall(analyzer)? => Target::FixedCatchall(function),
                    None => Target::Nobody,
                })
            }
        }
    }

    #[inline]
    pub(crate) fn take(&mut self, taking: &Taking<'_>) -> PyResult<Taken> {
        let Block { records, words, text } = &mut self.block;
        let words_at = words.len();
        let mut args = taking.payload.raw(&self.kinds[taking.kind as usize].names.types);
        for raw in &mut args {
            match raw {
                Some(Raw::Word(word)) => words.push(word),
                Some(Raw::Text(bytes)) => {
                    words.push((text.len() as u64) << 32 | bytes.len() as u64);
                    text.extend_from_slice(bytes);
                }
                None => {
                    words.truncate(words_at);
                    return Ok(Taken::Short);
                }
            }
        }
        let taken = if args.is_cut { Taken::Cut } else { Taken::Whole };
        if args.is_cut && taking.strict {
            words.truncate(words_at);
            return Ok(taken);
        }
        records.push(Kept { kind: taking.kind, pid: taking.pid, timestamp_ns: taking.timestamp_ns, words_at });
        if records.len() >= BLOCK_RECORDS || text.len() >= BLOCK_TEXT_BYTES {
            self.flush()?;
        }
        Ok(taken)
    }

    /// Makes the calls for all records taken.
    pub(crate) fn flush(&mut self) -> PyResult<()> {
        if self.block.records.is_empty() {
            return Ok(());
        }
        self.called += self.block.records.len();
        let result = Python::attach(|py| {
            self.call_all(py)?;
            // As many looks as calls at most, however many kinds there are, and however small the blocks.
            if self.called >= self.kinds.len() { self.look_again(py) } else { Ok(()) }
        });
        // Behind a call that raised there are no others.
        self.block.clear();
        result
    }

    fn call_all(&mut self, py: Python<'_>) -> PyResult<()> {
        let analyzer = self.analyzer.bind(py);
        let catchall = intern!(py, "catchall");
        let mut args: Vec<Bound<'_, PyAny>> = Vec::new();
        for record in &self.block.records {
            let kind = &mut self.kinds[record.kind as usize];
            let types = &kind.names.types;
            let words = &self.block.words[record.words_at..][..types.len()];
            let values = &self.values;
            let text = &self.block.text;
            let make = |&word: &u64, &ty: &ArgType| {
                let raw = if ty.is_string() {
                    let at = (word >> 32) as usize;
                    Raw::Text(&text[at..at + (word & 0xffff_ffff) as usize])
                } else {
                    Raw::Word(word)
                };
                values.make(py, raw, ty)
            };
            let extend = |args: &mut Vec<_>| {
                for (word, ty) in words.iter().zip(types) {
                    args.push(make(word, ty)?);
                }
                Ok::<_, PyErr>(())
            };
            match &kind.target {
                Target::Nobody => {}
                Target::Method | Target::Catchall | Target::Either => {
                    let function = match kind.target {
                        Target::Catchall => analyzer.getattr(catchall)?,
                        _ => match analyzer.getattr_opt(kind.names.method.bind(py))? {
                            Some(function) => function,
                            None => {
                                if matches!(kind.target, Target::Method) {
                                    kind.target = Target::Catchall;
                                    self.without = None;
                                }
                                analyzer.getattr(catchall)?
                            }
                        },
                    };
                    extend(&mut args)?;
                    let args = PyTuple::new(py, args.drain(..))?;
                    kind.set_keywords(py, record)?;
                    function.call(args, Some(kind.kwargs.bind(py)))?;
                    kind.keep_keywords_ours(py)?;
                }
                Target::Fixed(function, before) => {
                    if *before > 0 {
                        args.push(self.timestamp.bind(py).call1((record.timestamp_ns,))?);
                    }
                    if *before > 1 {
                        args.push(PyInt::new(py, record.pid).into_any());
                    }
                    extend(&mut args)?;
                    function.bind(py).call1(PyTuple::new(py, args.drain(..))?)?;
                }
                Target::FixedCatchall(function) => {
                    args.push(kind.names.id.bind(py).clone().into_any());
                    args.push(PyInt::new(py, record.timestamp_ns).into_any());
                    args.push(PyInt::new(py, record.pid).into_any());
                    extend(&mut args)?;
                    let all = PyTuple::new(py, args.drain(..))?;
                    function.bind(py).call1((&kind.names.event, all))?;
                }
                Target::Process => {
                    extend(&mut args)?;
                    let args = PyList::new(py, args.drain(..))?;
                    kind.set_keywords(py, record)?;
                    let function = analyzer.getattr(intern!(py, "_process_event"))?;
                    function.call((args,), Some(kind.kwargs.bind(py)))?;
                    kind.keep_keywords_ours(py)?;
                }
            }
        }
        Ok(())
    }

    /// Makes the calls for all records taken, and looks for methods that these may have made.
    pub(crate) fn flush_and_look_again(&mut self) -> PyResult<()> {
        self.flush()?;
        if self.called == 0 { Ok(()) } else { Python::attach(|py| self.look_again(py)) }
    }

    /// Looks again for methods that were not there: a call may have made them.
    fn look_again(&mut self, py: Python<'_>) -> PyResult<()> {
        self.called = 0;
        if self.style != Style::Keywords || self.is_dynamic {
            return Ok(());
        }
        if self.without.is_none() {
            let is_without = |&index: &usize| matches!(self.kinds[index].target, Target::Nobody | Target::Catchall);
            let indexes: Vec<usize> = (0..self.kinds.len()).filter(is_without).collect();
            let names = PyTuple::new(py, indexes.iter().map(|&index| &self.kinds[index].names.method))?;
            self.without = Some((indexes, names.unbind()));
        }
        let Some((indexes, names)) = self.without.as_ref().filter(|(indexes, _)| !indexes.is_empty()) else {
            return Ok(());
        };
        // One call for all of them: an attribute that is missing costs a tenth there of what it costs here.
        let analyzer = self.analyzer.bind(py);
        let found = py.import("simpletrace")?.getattr("_those_of")?.call1((analyzer, names))?;
        let found: HashSet<String> = found.extract::<Vec<String>>()?.into_iter().collect();
        let others = if has_own_catchall(analyzer)? { Target::Catchall } else { Target::Nobody };
        let others_are_called = matches!(others, Target::Catchall);
        let mut has_changed = false;
        for &index in indexes {
            let Kind { names, target, .. } = &mut self.kinds[index];
            let was_called = matches!(target, Target::Catchall);
            let is_found = !found.is_empty() && found.contains(names.method.bind(py).to_cow()?.as_ref());
            if is_found || was_called != others_are_called {
                *target = match others {
                    _ if is_found => Target::Method,
                    Target::Catchall => Target::Catchall,
                    _ => Target::Nobody,
                };
                has_changed = true;
                if was_called != (is_found || others_are_called) {
                    // Relaxed: the same thread reads it.
                    self.is_stale.store(true, Ordering::Relaxed);
                }
            }
        }
        if has_changed {
            self.without = None;
        }
        Ok(())
    }

    /// How many `bool`s were neither 0 nor 1.
    pub(crate) fn odd_bools(&self) -> u64 {
        self.values.odd_bools.get()
    }

    /// Who is called for a kind, now.
    pub(crate) fn wanted(&self, kind: u32) -> Wanted {
        match self.kinds[kind as usize].target {
            Target::Nobody => Wanted::No,
            _ => Wanted::Yes(kind),
        }
    }
}

/// Whether `catchall` is not only that of our classes, which does nothing.
fn has_own_catchall(analyzer: &Bound<'_, PyAny>) -> PyResult<bool> {
    let module = analyzer.py().import("simpletrace")?;
    let own = analyzer.getattr("catchall")?;
    let Some(function) = own.getattr_opt("__func__")? else { return Ok(true) };
    for class in ["Analyzer", "Analyzer2"] {
        if function.is(&module.getattr(class)?.getattr("catchall")?) {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Kind {
    fn set_keywords(&mut self, py: Python<'_>, record: &Kept) -> PyResult<()> {
        let kwargs = self.kwargs.bind(py);
        kwargs.set_item(intern!(py, "timestamp_ns"), PyInt::new(py, record.timestamp_ns))?;
        if self.pid != Some(record.pid) {
            kwargs.set_item(intern!(py, "pid"), PyInt::new(py, record.pid))?;
            self.pid = Some(record.pid);
        }
        Ok(())
    }

    /// Makes another dictionary if whoever was called has kept the one: functions never do, callables written in C may.
    fn keep_keywords_ours(&mut self, py: Python<'_>) -> PyResult<()> {
        // SAFETY: the object lives, as `kwargs` holds it, and this thread is attached.
        let count = unsafe { ffi::Py_REFCNT(self.kwargs.as_ptr()) };
        if count > 1 {
            self.kwargs = self.kwargs.bind(py).copy()?.unbind();
        }
        Ok(())
    }
}
