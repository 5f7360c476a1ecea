//! Reading a trace: records find their declarations and go where they are wanted.

use std::cell::Cell;
use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyKeyError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyTuple};
use pyo3::{PyTraverseError, PyVisit};
use simpletrace_format::events::{LookupById, Numbering, NumberingReason, SeenIds};
use simpletrace_format::{
    ByteOrder, Damage, ErrorKind, EventId, HEADER_BYTES, Header, MappingRecord, Names, Record, Recovered,
    RecoveringReader, Version,
};

use crate::calls::{BLOCK_RECORDS, Calls, KindNames, Style, Values};
use crate::declarations::{DROPPED, DROPPED_METHOD, Declarations, Declared};
use crate::faults::{Faults, exception, of_damage, of_header};
use crate::sink::{Contents, Shared, Sink, Taken, Taking, Wanted};
use crate::source::{Named, Source, os_error};
use crate::text::{Out, Text};

/// The way out where records are too short.
const TAKE_THE_RIGHT: &str = "take the trace-events-all of the build that wrote the trace";

/// What a record's name comes to, in the table of a file's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Its first record is yet to come.
    Unresolved,
    /// The script did not ask for it.
    LeftOut,
    /// It did, but would not be called.
    Uncalled,
    Kind(u32),
}

/// Takes the records of a trace.
trait Visitor {
    /// Takes in an event that the trace has records of.
    fn resolve(&mut self, name: &str, declared: &Declared) -> PyResult<Wanted>;
    /// Takes a record; false to stop.
    fn take(&mut self, taking: &Taking<'_>) -> PyResult<(Taken, bool)>;
    /// Whether who is wanted has to be asked again.
    fn is_stale(&self) -> bool {
        false
    }
    fn wanted(&self, kind: u32) -> Wanted {
        Wanted::Yes(kind)
    }
    /// Asks whether what was taken changes who is wanted.
    fn look_again(&mut self) -> PyResult<()> {
        Ok(())
    }
    /// Takes in that another file begins, whose values are of this version.
    fn begin_file(&mut self, version: Version) -> PyResult<()>;
}

/// An opened trace.
struct Trace {
    reader: RecoveringReader<Source>,
    shared: Arc<Shared>,
    declarations: Arc<Declarations>,
    name: String,
    /// The names that the script asked for, sorted; `None` for all.
    only: Option<Vec<String>>,
    strict: bool,
    numbering: Option<Numbering>,
    /// Those of all files in it of version 0, by the offset behind their headers, as far as they are known.
    numberings: HashMap<u64, Numbering>,
    /// The ids met in a file whose numbering had to be guessed.
    seen: Option<SeenIds>,
    /// What these say against a guess, in files that are behind.
    misnumbered: Option<Numbering>,
    /// Whether there were records too short for their declarations.
    has_short: bool,
    version: Version,
    names: Names,
    /// The state of each slot of `names`, and of losses.
    states: Vec<State>,
    dropped: State,
    /// The kinds met, by name and whether they are of version 0.
    kinds: HashMap<(String, bool), (u32, State)>,
    faults: Faults,
    left: u64,
    /// How many records are left when the visitor has to look again; 0 if nothing was taken since it did.
    look_at: u64,
    /// Where in its file the reader's first byte is, and whether that is known.
    base: u64,
    is_based: bool,
    /// The script's file object and where it stood, if it can be put elsewhere.
    begin: Option<(Py<PyAny>, u64)>,
    /// Whether all was handed over up to where the reader is, and that is not the end.
    is_between: bool,
}

impl Trace {
    fn open(
        log: &Bound<'_, PyAny>,
        declarations: Declarations,
        read_header: bool,
        header: Option<(u64, bool)>,
        strict: bool,
        shared: &Arc<Shared>,
    ) -> PyResult<Self> {
        let named = Named::new(log)?;
        let name = named.name();
        let position = named.position();
        let source = named.open(shared)?;
        let mut reader = start(source, shared, read_header, header, &name)?;
        let version = reader.header().version;
        let has_names = version.has_names() && (read_header || header.is_some());
        let mut numberings = HashMap::new();
        if version == Version::V0 && named.is_again() {
            let again = start(named.open(shared)?, shared, read_header, header, &name)?;
            numberings = infer(again, &declarations);
            // A signal's handler raises once. What the file cannot do it cannot do again, behind the records before.
            if let Some(error) = shared.take_raised().filter(|error| !is_os_error(error)) {
                return Err(error);
            }
            reader = start(named.open(shared)?, shared, read_header, header, &name)?;
        }
        let (numbering, seen) = if has_names { (None, None) } else { numbering(version, &numberings, reader.offset()) };
        let reader = {
            let header = reader.header();
            reader.with_fits(declarations.judge(header, numbering))
        };
        let mut trace = Self {
            reader,
            shared: Arc::clone(shared),
            declarations: Arc::new(declarations),
            name,
            only: None,
            strict,
            numbering,
            numberings,
            seen,
            misnumbered: None,
            has_short: false,
            version,
            names: Names::default(),
            states: Vec::new(),
            dropped: State::Unresolved,
            kinds: HashMap::new(),
            faults: Faults::default(),
            left: u64::MAX,
            look_at: 0,
            base: position.unwrap_or(0),
            // What begins with a header begins there for everybody.
            is_based: position.is_some() || read_header,
            begin: named.begin(),
            is_between: true,
        };
        trace.begin_names();
        Ok(trace)
    }

    fn begin_names(&mut self) {
        let names = self.numbering.map(|numbering| self.declarations.index().by_id(numbering));
        self.names = names.as_ref().map_or_else(Names::default, LookupById::names);
        self.states = vec![State::Unresolved; self.names.len()];
        self.dropped = State::Unresolved;
    }

    /// Puts the script's file object behind the last record that was handed over, as if no more had been read.
    fn put_back(&mut self, py: Python<'_>) {
        if let Some((object, begin)) = self.begin.take().filter(|_| self.is_between) {
            // One that is closed meanwhile stands nowhere.
            let _ = object.call_method1(py, "seek", (begin + self.reader.offset(),));
        }
    }

    /// What is said behind an offset where it is not the file's.
    fn behind_offsets(&self) -> &'static str {
        if self.is_based { "" } else { "; offsets count from where reading began" }
    }

    /// The text of the warning, if something is wrong.
    fn warning(&self, odd_bools: u64) -> Option<String> {
        let misnumbered = self.misnumbered.or_else(|| self.misnumbers()).map(|numbering| {
            format!(
                "the events of a file of version 0 have numbers that seem to count {numbering}, which shows only at its end, and \
                 were named by another count: names may be wrong; write it to a file of its own, which can be read twice"
            )
        });
        let short = self.has_short.then(|| TAKE_THE_RIGHT.to_owned());
        let odd_bools = (odd_bools > 0)
            .then(|| format!("values of bool arguments that are neither 0 nor 1: {odd_bools}; given as True"));
        self.faults.warning(&self.name, self.behind_offsets(), &[short, odd_bools, misnumbered])
    }

    /// What is raised for a record of an event that is not declared: with the damage before it, which may be why.
    #[cold]
    fn undeclared(&self, name: &str, offset: u64) -> PyErr {
        let (trace, events, where_from) = (&self.name, self.declarations.file_name(), self.behind_offsets());
        let damage = self.faults.told().map_or_else(String::new, |told| format!("; it is damaged before: {told}"));
        let message = format!(
            "{trace}: offset {offset}: '{name}' event is in the trace but not declared in {events}: take the trace-events-all \
             of the same build{where_from}{damage}"
        );
        exception("simpletrace", "SimpleException", message)
    }

    /// By what the file's ids count, if that was guessed and they do not count so.
    fn misnumbers(&self) -> Option<Numbering> {
        let inferred = self.declarations.index().infer_numbering(self.seen.as_ref()?).numbering;
        (self.numbering != Some(inferred)).then_some(inferred)
    }

    /// Hands records to `visitor` until it wants no more, or there are none.
    fn for_each(&mut self, visitor: &mut impl Visitor) -> PyResult<()> {
        self.is_between = false;
        self.read(visitor)
    }

    fn read(&mut self, visitor: &mut impl Visitor) -> PyResult<()> {
        while self.left > 0 {
            let item = match self.reader.next_item() {
                Ok(Some(item)) => item,
                Ok(None) => return Ok(()),
                Err(error) => return Err(of_error(&self.shared, &error)),
            };
            if visitor.is_stale() {
                for state in self.states.iter_mut().chain([&mut self.dropped]) {
                    if matches!(state, State::Uncalled | State::Kind(_)) {
                        *state = State::Unresolved;
                    }
                }
                for (kind, state) in self.kinds.values_mut().filter(|(_, state)| *state != State::LeftOut) {
                    *state = state_of(visitor.wanted(*kind));
                }
            }
            // One that cannot be taken by its slot is looked at closer.
            let (slot, offset, mut taking) = match item {
                Recovered::Record(Record::Event(event)) => {
                    let taking = Taking {
                        kind: 0,
                        timestamp_ns: event.timestamp_ns,
                        pid: event.pid,
                        payload: Contents::Payload(event.payload),
                        strict: self.strict,
                    };
                    if let Some(seen) = &mut self.seen {
                        seen.add(&event);
                    }
                    match self.names.slot(event.id) {
                        Some(slot) => (Some(slot), event.offset, taking),
                        None => {
                            let offset = self.base + event.offset;
                            let fault = format_args!("offset {offset}: {} has no name", event.id);
                            if self.strict {
                                let message = format!("{}: {fault}{}", self.name, self.behind_offsets());
                                return Err(PyKeyError::new_err(message));
                            }
                            self.faults.add(fault);
                            continue;
                        }
                    }
                }
                Recovered::Record(Record::Dropped(dropped)) => {
                    let taking = Taking {
                        kind: 0,
                        timestamp_ns: dropped.timestamp_ns,
                        pid: dropped.pid,
                        payload: Contents::Count(dropped.count),
                        strict: self.strict,
                    };
                    (None, dropped.offset, taking)
                }
                Recovered::Record(Record::Mapping(mapping)) => {
                    map(&mut self.names, &mut self.states, &mapping);
                    continue;
                }
                Recovered::Damage(damage) => {
                    let damage = Damage {
                        offset: self.base + damage.offset,
                        resumed_at: damage.resumed_at.map(|at| self.base + at),
                        ..damage
                    };
                    if self.strict {
                        return Err(of_damage(&self.name, &damage, self.behind_offsets()));
                    }
                    self.faults.add(damage);
                    continue;
                }
                Recovered::NewFile(header) => {
                    let offset = self.base + self.reader.offset() - header.version.header_bytes() as u64;
                    let fault = format_args!("offset {offset}: another file begins in it");
                    if self.strict {
                        return Err(PyKeyError::new_err(format!("{}: {fault}{}", self.name, self.behind_offsets())));
                    }
                    self.faults.add(fault);
                    self.misnumbered = self.misnumbered.or_else(|| self.misnumbers());
                    self.version = header.version;
                    (self.numbering, self.seen) = if header.version.has_names() {
                        (None, None)
                    } else {
                        numbering(header.version, &self.numberings, self.reader.offset())
                    };
                    visitor.begin_file(header.version)?;
                    self.begin_names();
                    continue;
                }
            };
            let state = slot.map_or(self.dropped, |slot| self.states[slot as usize]);
            let state = match state {
                State::Unresolved => {
                    let name = slot.map_or(DROPPED, |slot| self.names.name(slot));
                    let key = (name.to_owned(), self.version == Version::V0);
                    let state = match self.kinds.get(&key) {
                        Some(&(_, state)) => state,
                        None => {
                            let state = resolve(visitor, name, self.version, &self.declarations, self.only.as_deref())?;
                            let Some(state) = state else { return Err(self.undeclared(name, self.base + offset)) };
                            // Each kind resolved got the next number, called or not.
                            let kind = self.kinds.values().filter(|(_, state)| *state != State::LeftOut).count();
                            self.kinds.insert(key, (kind as u32, state));
                            state
                        }
                    };
                    match slot {
                        Some(slot) => self.states[slot as usize] = state,
                        None => self.dropped = state,
                    }
                    state
                }
                state => state,
            };
            match state {
                State::Kind(kind) => {
                    taking.kind = kind;
                    if self.look_at == 0 {
                        self.look_at = self.left.saturating_sub(BLOCK_RECORDS as u64);
                    }
                    self.left -= 1;
                    let (taken, goes_on) = visitor.take(&taking)?;
                    if taken != Taken::Whole {
                        let name = slot.map_or(DROPPED, |slot| self.names.name(slot));
                        let what = if taken == Taken::Short {
                            "is too short for its declaration"
                        } else {
                            "has text of a length that reaches beyond it"
                        };
                        let offset = self.base + offset;
                        let fault = format_args!("offset {offset}: record of {name} {what}");
                        if self.strict {
                            let message = format!("{}: {fault}{}", self.name, self.behind_offsets());
                            return Err(match taken {
                                Taken::Short => exception("struct", "error", format!("{message}; {TAKE_THE_RIGHT}")),
                                _ => PyValueError::new_err(message),
                            });
                        }
                        self.faults.add(fault);
                    }
                    if taken == Taken::Short {
                        self.has_short = true;
                        self.left += 1;
                    } else if !goes_on {
                        self.is_between = true;
                        return Ok(());
                    }
                }
                State::Uncalled => self.left -= 1,
                State::LeftOut | State::Unresolved => {}
            }
            // Records that nobody is called for fill no block.
            if self.left <= self.look_at {
                self.look_at = 0;
                visitor.look_again()?;
            }
        }
        self.is_between = true;
        Ok(())
    }
}

/// Finds out what becomes of an event's records; `None` if it is not declared.
#[cold]
fn resolve(
    visitor: &mut impl Visitor,
    name: &str,
    version: Version,
    declarations: &Declarations,
    only: Option<&[String]>,
) -> PyResult<Option<State>> {
    let method = if name == DROPPED { DROPPED_METHOD } else { name };
    if only.is_some_and(|only| !only.iter().any(|asked| asked == name || asked == method)) {
        return Ok(Some(State::LeftOut));
    }
    match declarations.get(name, version)? {
        Some(declared) => visitor.resolve(name, &declared).map(|wanted| Some(state_of(wanted))),
        None => Ok(None),
    }
}

fn state_of(wanted: Wanted) -> State {
    match wanted {
        Wanted::Yes(kind) => State::Kind(kind),
        Wanted::No => State::Uncalled,
    }
}

/// Takes in a name for an id.
fn map(names: &mut Names, states: &mut Vec<State>, mapping: &MappingRecord<'_>) {
    if !mapping.is_fact() && mapping.id < EventId::FIRST_SPECIAL {
        let _ = names.map(mapping);
        states.resize(names.len(), State::Unresolved);
    }
}

/// Starts with the header, or without one.
fn start(
    mut source: Source,
    shared: &Shared,
    read_header: bool,
    header: Option<(u64, bool)>,
    name: &str,
) -> PyResult<RecoveringReader<Source>> {
    if let Some((version, is_big)) = header {
        let version = Version::from_number(version).ok_or_else(|| PyValueError::new_err("no such version"))?;
        let byte_order = if is_big { ByteOrder::Big } else { ByteOrder::Little };
        return Ok(RecoveringReader::assuming(source, Header { version, byte_order }));
    }
    if !read_header {
        let head = source.peek(HEADER_BYTES).map_err(|error| raised(shared, error))?;
        let byte_order = ByteOrder::of_first_record(head);
        return Ok(RecoveringReader::assuming(source, Header { version: Version::V4, byte_order }));
    }
    // Told apart from damage further on.
    let head = source.peek(HEADER_BYTES).map_err(|error| raised(shared, error))?;
    Header::parse(head).map_err(|error| of_header(name, head, &error))?;
    RecoveringReader::new(source).map_err(|error| match error.kind() {
        ErrorKind::Io(_) => of_error(shared, &error),
        _ => of_header(name, &[], &error),
    })
}

/// How a file that names no events numbers them; where that is guessed, with what will tell whether rightly so.
fn numbering(version: Version, known: &HashMap<u64, Numbering>, at: u64) -> (Option<Numbering>, Option<SeenIds>) {
    match Numbering::of(version).or_else(|| known.get(&at).copied()) {
        Some(numbering) => (Some(numbering), None),
        None => (Some(Numbering::VERSION_0_DEFAULT), Some(SeenIds::default())),
    }
}

/// Finds out how the files of version 0 in a trace number their events: by the offset behind the header of each.
fn infer(mut records: RecoveringReader<Source>, declarations: &Declarations) -> HashMap<u64, Numbering> {
    let mut numberings = HashMap::new();
    let (mut at, mut version, mut before) = (records.offset(), records.header().version, None);
    let mut seen = SeenIds::default();
    loop {
        let next = match records.next_item() {
            Ok(Some(Recovered::Record(Record::Event(event)))) => {
                if version == Version::V0 {
                    seen.add(&event);
                }
                continue;
            }
            Ok(Some(Recovered::Record(_) | Recovered::Damage(_))) => continue,
            Ok(Some(Recovered::NewFile(header))) => Some(header.version),
            Ok(None) | Err(_) => None,
        };
        if version == Version::V0 {
            let inferred = declarations.index().infer_numbering(&mem::take(&mut seen));
            let numbering = match inferred.reason {
                // The same QEMU has written both, probably.
                NumberingReason::BothFit => before.unwrap_or(inferred.numbering),
                _ => inferred.numbering,
            };
            before = Some(numbering);
            numberings.insert(at, numbering);
        }
        let Some(next) = next else { return numberings };
        (at, version) = (records.offset(), next);
    }
}

fn is_os_error(error: &PyErr) -> bool {
    Python::attach(|py| error.is_instance_of::<PyOSError>(py))
}

/// The exception that reading raised.
fn of_error(shared: &Shared, error: &simpletrace_format::Error) -> PyErr {
    shared.take_raised().unwrap_or_else(|| PyValueError::new_err(error.to_string()))
}

fn raised(shared: &Shared, error: std::io::Error) -> PyErr {
    shared.take_raised().unwrap_or_else(|| os_error(error))
}

/// Hands records to the sink.
struct Pushing<'a>(&'a Shared);

impl Visitor for Pushing<'_> {
    fn resolve(&mut self, name: &str, declared: &Declared) -> PyResult<Wanted> {
        self.0.flush()?;
        self.0.sink().resolve(name, declared)
    }

    #[inline]
    fn take(&mut self, taking: &Taking<'_>) -> PyResult<(Taken, bool)> {
        let taken = self.0.sink().take(taking)?;
        Ok((taken, true))
    }

    #[inline]
    fn is_stale(&self) -> bool {
        self.0.take_stale()
    }

    fn wanted(&self, kind: u32) -> Wanted {
        match &*self.0.sink() {
            Sink::Calls(calls) => calls.wanted(kind),
            _ => Wanted::Yes(kind),
        }
    }

    fn look_again(&mut self) -> PyResult<()> {
        self.0.sink().look_again()
    }

    fn begin_file(&mut self, version: Version) -> PyResult<()> {
        self.0.flush()?;
        if let Sink::Calls(calls) = &mut *self.0.sink() {
            calls.set_version(version);
        }
        Ok(())
    }
}

/// Makes a tuple of the next record.
struct Pulling<'a> {
    declarations: Arc<Declarations>,
    kinds: &'a mut Vec<KindNames>,
    values: &'a mut Values,
    record: Option<Py<PyTuple>>,
}

impl Visitor for Pulling<'_> {
    fn resolve(&mut self, name: &str, declared: &Declared) -> PyResult<Wanted> {
        let kind = self.kinds.len() as u32;
        self.kinds.push(Python::attach(|py| KindNames::new(py, name, declared, &self.declarations))?);
        Ok(Wanted::Yes(kind))
    }

    fn take(&mut self, taking: &Taking<'_>) -> PyResult<(Taken, bool)> {
        let kind = &self.kinds[taking.kind as usize];
        Python::attach(|py| {
            let mut items = Vec::with_capacity(4 + kind.types.len());
            items.push(kind.event.bind(py).clone());
            items.push(kind.id.bind(py).clone().into_any());
            items.push(PyInt::new(py, taking.timestamp_ns).into_any());
            items.push(PyInt::new(py, taking.pid).into_any());
            let mut args = taking.payload.raw(&kind.types);
            for (raw, &ty) in (&mut args).zip(&kind.types) {
                let Some(raw) = raw else { return Ok((Taken::Short, true)) };
                items.push(self.values.make(py, raw, ty)?);
            }
            let is_cut = args.is_cut;
            self.record = Some(PyTuple::new(py, items)?.unbind());
            Ok((if is_cut { Taken::Cut } else { Taken::Whole }, false))
        })
    }

    fn begin_file(&mut self, version: Version) -> PyResult<()> {
        self.values.version = version;
        Ok(())
    }
}

struct Opened {
    trace: Trace,
    /// For [`Log::__next__`].
    kinds: Vec<KindNames>,
    values: Values,
}

/// A trace that is read from front to back, once.
#[pyclass(module = "simpletrace._native", frozen)]
pub(crate) struct Log {
    opened: Mutex<Option<Opened>>,
    shared: Arc<Shared>,
}

#[pymethods]
impl Log {
    /// Opens `log`, a path or an object with `read`, and reads its header.
    ///
    /// `events` is a list of `Event`s or the text of a trace-events file, which `events_name` is the name of; `header` what was read
    /// already: the version and whether the byte order is big-endian.
    #[new]
    #[pyo3(signature = (events, events_name, log, *, read_header, header, only, limit, typed, strict))]
    #[expect(clippy::too_many_arguments, reason = "called from one place, by keywords")]
    fn new(
        events: &Bound<'_, PyAny>,
        events_name: &str,
        log: &Bound<'_, PyAny>,
        read_header: bool,
        header: Option<(u64, bool)>,
        only: Option<Vec<String>>,
        limit: Option<u64>,
        typed: bool,
        strict: bool,
    ) -> PyResult<Self> {
        let declarations = Declarations::new(events, events_name)?;
        let shared = Arc::new(Shared::new());
        if let Some(only) = &only {
            declarations.check(only)?;
        }
        let mut trace = Trace::open(log, declarations, read_header, header, strict, &shared)?;
        trace.only = only;
        trace.left = limit.unwrap_or(u64::MAX);
        let values = Values { typed, version: trace.version, odd_bools: Cell::default() };
        Ok(Self { opened: Mutex::new(Some(Opened { trace, kinds: Vec::new(), values })), shared })
    }

    /// Calls the methods of `analyzer` for all records, and returns the text of a warning if the trace is damaged.
    fn feed(&self, py: Python<'_>, analyzer: &Bound<'_, PyAny>, style: &str) -> PyResult<Option<String>> {
        let style = match style {
            "keywords" => Style::Keywords,
            "positional" => Style::Positional,
            _ => Style::Process,
        };
        self.with(|opened| {
            let declarations = Arc::clone(&opened.trace.declarations);
            let Values { typed, version, .. } = opened.values;
            let values = Values { typed, version, odd_bools: Cell::default() };
            let calls = Calls::new(analyzer, style, declarations, values, Arc::clone(&self.shared.is_stale))?;
            self.push(py, &mut opened.trace, Sink::Calls(calls))
        })
    }

    /// Prints all records to descriptor 1, or with `write`; returns as [`feed`](Self::feed) does.
    fn print(&self, py: Python<'_>, write: Option<Py<PyAny>>) -> PyResult<Option<String>> {
        let out = write.map_or(Out::Stdout, Out::Write);
        self.with(|opened| self.push(py, &mut opened.trace, Sink::Text(Text::new(out))))
    }

    /// Returns the text of a warning, if what was read is damaged.
    fn warning(&self) -> PyResult<Option<String>> {
        self.with(|opened| Ok(opened.trace.warning(opened.values.odd_bools.get())))
    }

    /// Gives up the trace and its file.
    fn close(&self, py: Python<'_>) {
        *self.shared.sink() = Sink::None;
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut opened) = opened {
            opened.trace.put_back(py);
        }
        self.shared.forget_read();
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.shared.traverse(&visit)?;
        // While it is held, somebody reads, and this is no garbage.
        let Ok(opened) = self.opened.try_lock() else { return Ok(()) };
        let Some(Opened { trace, kinds, .. }) = &*opened else { return Ok(()) };
        if let Some((object, _)) = &trace.begin {
            visit.call(object)?;
        }
        trace.declarations.traverse(&visit)?;
        kinds.iter().try_for_each(|kind| visit.call(&kind.event))
    }

    fn __clear__(&self) {
        let opened = self.opened.try_lock().ok().and_then(|mut opened| opened.take());
        drop(opened);
        self.shared.forget_read();
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*reason))]
    fn __exit__(&self, reason: &Bound<'_, PyTuple>) {
        self.close(reason.py());
    }

    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self) -> PyResult<Option<Py<PyTuple>>> {
        self.with(|Opened { trace, kinds, values }| {
            let declarations = Arc::clone(&trace.declarations);
            let mut pulling = Pulling { declarations, kinds, values, record: None };
            trace.for_each(&mut pulling)?;
            Ok(pulling.record)
        })
    }
}

impl Log {
    fn with<T>(&self, use_it: impl FnOnce(&mut Opened) -> PyResult<T>) -> PyResult<T> {
        let in_use = || PyValueError::new_err("the trace is being read already");
        let mut opened = match self.opened.try_lock() {
            Ok(opened) => opened,
            Err(std::sync::TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(std::sync::TryLockError::WouldBlock) => return Err(in_use()),
        };
        use_it(opened.as_mut().ok_or_else(|| PyValueError::new_err("the trace is closed"))?)
    }

    fn push(&self, py: Python<'_>, trace: &mut Trace, sink: Sink) -> PyResult<Option<String>> {
        *self.shared.sink() = sink;
        let result = py.detach(|| {
            let result = trace.for_each(&mut Pushing(&self.shared));
            // What was read before damage, too. If a call has raised, there is nothing.
            self.shared.flush().and(result)
        });
        let sink = mem::replace(&mut *self.shared.sink(), Sink::None);
        let odd_bools = if let Sink::Calls(calls) = &sink { calls.odd_bools() } else { 0 };
        drop(sink);
        result.map(|()| trace.warning(odd_bools))
    }
}
