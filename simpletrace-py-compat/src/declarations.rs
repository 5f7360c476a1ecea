//! What a trace-events file declares, as Python objects where Python asks for them.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};
use pyo3::{PyTraverseError, PyVisit};
use simpletrace_format::events::{
    ArgType, Diagnostic, EventDecl, EventIndex, Lookup, Mode, Numbering, Severity, TcgHalf, parse,
};
use simpletrace_format::{Candidate, Header, Names, Version};

/// The name under which losses come.
pub(crate) const DROPPED: &str = "dropped";
/// The name of the method that is called for losses.
pub(crate) const DROPPED_METHOD: &str = "Dropped_Event";
const DROPPED_DECLARATION: &[u8] = b"Dropped_Event(uint64_t num_events_dropped)\n";

/// The declarations of one trace.
pub(crate) struct Declarations {
    index: Arc<EventIndex>,
    file_name: String,
    /// The `Event` objects by name, if the script brought its own.
    given: Option<HashMap<String, Py<PyAny>>>,
}

/// One declared event.
pub(crate) struct Declared {
    pub(crate) decl: EventDecl,
    pub(crate) types: Box<[ArgType]>,
}

impl Declarations {
    /// Takes in a list of `Event`s, or the text of a file.
    pub(crate) fn new(events: &Bound<'_, PyAny>, file_name: &str) -> PyResult<Self> {
        if let Ok(list) = events.cast::<PyList>() {
            return Self::of_events(list);
        }
        let text = match events.cast::<PyBytes>() {
            Ok(bytes) => bytes.as_bytes().to_vec(),
            Err(_) => events.extract::<String>()?.into_bytes(),
        };
        let mut index = EventIndex::new();
        index.add(file_name, text);
        if index.unnamed_lines() > index.len() {
            let lines = index.unnamed_lines();
            let message = format!("{file_name} declares no events: {lines} of its lines are no declarations");
            return Err(PyValueError::new_err(message));
        }
        Ok(Self { index: Arc::new(index), file_name: file_name.to_owned(), given: None })
    }

    fn of_events(events: &Bound<'_, PyList>) -> PyResult<Self> {
        let mut given = HashMap::with_capacity(events.len());
        let mut text = String::new();
        for event in events {
            let name: String = event.getattr("name")?.extract()?;
            let properties = event.getattr("properties").ok();
            if properties.is_some_and(|words| words.contains("disable").unwrap_or(false)) {
                text.push_str("disable ");
            }
            text.push_str(&name);
            text.push('(');
            let mut before = "";
            for arg in event.getattr("args")?.try_iter()? {
                let (c_type, arg): (String, String) = arg?.extract()?;
                text.extend([before, &c_type, " ", &arg]);
                before = ", ";
            }
            text.push_str(if before.is_empty() { "void)\n" } else { ")\n" });
            given.insert(name, event.unbind());
        }
        let mut index = EventIndex::new();
        let file_name = "the list of events".to_owned();
        index.add(&file_name, text.into_bytes());
        Ok(Self { index: Arc::new(index), file_name, given: Some(given) })
    }

    /// Checks that names that are asked for are declared.
    ///
    /// # Errors
    ///
    /// `ValueError`: else a name that is misspelt would be an empty trace.
    pub(crate) fn check(&self, names: &[String]) -> PyResult<()> {
        let is_known = |name: &str| matches!(name, DROPPED | DROPPED_METHOD) || self.index.contains(name);
        let Some(name) = names.iter().find(|name| !is_known(name)) else { return Ok(()) };
        let help = match self.index.nearest(name) {
            _ if name.contains(['*', '?', '[']) => ": only= takes names of events, not patterns".to_owned(),
            near => near.map_or_else(String::new, |near| format!(": did you mean '{near}'?")),
        };
        Err(PyValueError::new_err(format!("{} declares no '{name}'{help}", self.file_name)))
    }

    /// Shows the garbage collector the script's own events.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.given.iter().flat_map(HashMap::values).try_for_each(|event| visit.call(event))
    }

    /// What messages call the file that declares them.
    pub(crate) fn file_name(&self) -> &str {
        &self.file_name
    }

    pub(crate) fn index(&self) -> &Arc<EventIndex> {
        &self.index
    }

    /// Returns what a name is declared as; `None` if it is not.
    ///
    /// # Errors
    ///
    /// `ValueError` with line and caret, if its declaration cannot be understood.
    pub(crate) fn get(&self, name: &str, version: Version) -> PyResult<Option<Declared>> {
        let decl = if name == DROPPED {
            parse(DROPPED_DECLARATION, Mode::Lenient).events.pop()
        } else {
            let Some(Lookup { event, diagnostics, file_name, source }) = self.index.get(name) else { return Ok(None) };
            if event.is_none() {
                let shown = |fault: &Diagnostic| fault.with_source(file_name, source).to_string();
                let message = diagnostics.iter().next().map_or_else(|| format!("{file_name}: {name}"), shown);
                return Err(PyValueError::new_err(message));
            }
            event
        };
        Ok(decl.map(|decl| {
            let types = decl.args.iter().map(|arg| stored(arg.ty, version)).collect();
            Declared { decl, types }
        }))
    }

    /// Returns the `Event` of a declaration.
    pub(crate) fn event<'py>(&self, py: Python<'py>, decl: &EventDecl) -> PyResult<Bound<'py, PyAny>> {
        if let Some(event) = self.given.as_ref().and_then(|given| given.get(&decl.name)) {
            return Ok(event.bind(py).clone());
        }
        let make = py.import("simpletrace._events")?.getattr("Event")?.getattr("_of")?;
        make.call1((fields(decl), &self.file_name))
    }

    /// Judges for a reader behind damage whether what it may have found is as its event is declared.
    pub(crate) fn judge(
        &self,
        header: Header,
        numbered: Option<Numbering>,
    ) -> impl FnMut(&Candidate<'_>) -> Option<bool> + Send + 'static {
        let index = Arc::clone(&self.index);
        let names = numbered.map_or_else(Names::default, |numbering| index.by_id(numbering).names());
        let mut known: HashMap<(String, bool), Option<Box<[ArgType]>>> = HashMap::new();
        move |candidate| {
            let version = candidate.header.version;
            let name = match candidate.name {
                Some(name) => name,
                // Another file behind the first has other ids.
                None if candidate.header == header => names.name(names.slot(candidate.id)?),
                None => return None,
            };
            let types = known.entry((name.to_owned(), version == Version::V0)).or_insert_with(|| {
                let decl = index.get(name)?.event?;
                Some(decl.args.iter().map(|arg| stored(arg.ty, version)).collect())
            });
            let mut args = candidate.payload.args();
            Some(types.as_ref()?.iter().all(|&ty| args.next(ty).is_some()) && args.left_over().is_empty())
        }
    }
}

/// How an argument stands in a file: in version 0, a string is an address.
fn stored(ty: ArgType, version: Version) -> ArgType {
    if ty == ArgType::String && version == Version::V0 { ArgType::Pointer } else { ty }
}

/// Name, properties, format, arguments with their types, line.
type Fields = (String, Vec<&'static str>, String, Vec<(String, String)>, u32);

fn fields(decl: &EventDecl) -> Fields {
    let tcg = match decl.properties.tcg {
        Some(TcgHalf::Translation) => Some("tcg-trans"),
        Some(TcgHalf::Execution) => Some("tcg-exec"),
        None => None,
    };
    let properties = [decl.properties.disabled.then_some("disable"), decl.properties.vcpu.then_some("vcpu"), tcg];
    let format = decl.format.as_ref().map_or_else(String::new, |format| format.text.clone());
    let args = decl.args.iter().map(|arg| (arg.c_type.to_string(), arg.name.clone())).collect();
    (decl.name.clone(), properties.into_iter().flatten().collect(), format, args, decl.line)
}

/// Takes the text of a trace-events file apart: for each event its name, properties, format, arguments and line.
///
/// Raises `ValueError` at the first line that is no declaration.
#[pyfunction]
pub(crate) fn parse_events(text: &Bound<'_, PyString>, file_name: &str) -> PyResult<Vec<Fields>> {
    let text = text.to_cow()?;
    let parsed = parse(text.as_bytes(), Mode::Lenient);
    if let Some(fault) = parsed.diagnostics.iter().find(|fault| fault.severity == Severity::Error) {
        let shown = fault.with_source(file_name, text.as_bytes());
        return Err(PyValueError::new_err(format!("Error at {shown}")));
    }
    Ok(parsed.events.iter().map(fields).collect())
}
