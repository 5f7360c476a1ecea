//! Which of the files on the command line are traces, and which trace-events file belongs to them.

use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use simpletrace_format::events::{Diagnostics, EventIndex, Severity};
use simpletrace_format::{Facts, Header, Record, StreamReader};

use super::Input;
use super::parts::{open_all, sort};
use crate::render::printable;
use crate::rewrite::CommonFacts;
use crate::say;

/// The variable that names the trace-events file when the command line does not.
pub(crate) const EVENTS_VARIABLE: &str = "SIMPLETRACE_EVENTS";

/// The largest trace-events file that is read, in bytes: eight times QEMU's (500 KB).
const MAX_EVENTS_BYTES: u64 = 1 << 22;

/// Faults of trace-events files that are shown.
pub(crate) const MAX_FAULTS: usize = 20;

/// The files of one command, each opened once, so that a pipe can stand where a file can.
pub(crate) struct Files {
    /// In the order in which they are to be read.
    pub(crate) traces: Vec<Input>,
    /// How many traces they are; all parts of one are one.
    pub(crate) trace_count: usize,
    /// The trace-events files; empty if none was given or found.
    pub(crate) events: Vec<Input>,
}

impl Files {
    /// Returns where on disk the files are; standard input may be a file, too.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        let stdin = Path::new("/dev/stdin");
        self.traces.iter().chain(&self.events).map(move |input| input.path.as_deref().unwrap_or(stdin))
    }

    /// Returns what holds for all traces; `None` if there is only one, which will say it itself.
    pub(crate) fn common_facts(&self) -> Option<CommonFacts> {
        if self.traces.len() < 2 {
            return None;
        }
        let mut common = CommonFacts::default();
        for trace in &self.traces {
            // What a pipe says comes too late.
            let path = trace.path.as_deref().filter(|_| trace.progress.total.is_some());
            common.add(&path.and_then(facts_behind_header).unwrap_or_default());
        }
        Some(common)
    }

    /// Sorts out `TRACE... [EVENTS]`: files of text are trace-events files, wherever they stand, unless `--events` named some.
    /// Where there is none, `search` says whether to look for it.
    pub(crate) fn open(files: &[PathBuf], events: &[PathBuf], search: bool) -> Result<Self> {
        allow_stdin_once(files.iter().chain(events))?;
        let mut traces = open_all(files)?;
        let mut events = events.iter().map(|path| Input::open(path)).collect::<Result<Vec<_>>>()?;
        if events.is_empty() {
            let (text, others) = traces.into_iter().partition(looks_like_events);
            (events, traces) = (text, others);
            if let (Some(file), []) = (events.first(), &traces[..]) {
                bail!("{} is text, so it is no trace; a trace-events file comes with one", file.name);
            }
        }
        let trace_count = sort(&mut traces);
        if events.is_empty() && search {
            events.extend(find_events(&traces)?);
        }
        Ok(Self { traces, trace_count, events })
    }
}

/// A trace and its declarations, if there are any.
pub(crate) struct Declared {
    /// As it was named.
    pub(crate) name: String,
    pub(crate) traces: Vec<Input>,
    pub(crate) events: Option<EventIndex>,
}

/// Sorts out `OLD NEW [EVENTS]`: two traces, and declarations of both, or those that are found beside each.
///
/// # Errors
///
/// A file cannot be opened, there are not two traces, or a trace-events file is none.
pub(crate) fn open_two(files: &[PathBuf], events: &[PathBuf]) -> Result<[Declared; 2]> {
    allow_stdin_once(files.iter().chain(events))?;
    let mut events = events.iter().map(|path| Input::open(path)).collect::<Result<Vec<_>>>()?;
    let are_named = !events.is_empty();
    let mut traces = Vec::new();
    for path in files {
        let mut inputs = open_all(std::slice::from_ref(path))?;
        if !are_named && inputs.len() == 1 && looks_like_events(&inputs[0]) {
            events.append(&mut inputs);
        } else {
            sort(&mut inputs);
            traces.push((printable(&path.display().to_string()), inputs));
        }
    }
    let [old, new] = <[_; 2]>::try_from(traces).map_err(|traces| {
        anyhow!(
            "two traces are needed, OLD and NEW, and {} given; `slice` makes one file of several",
            match traces.len() {
                0 => "none is".to_owned(),
                1 => "one is".to_owned(),
                many => format!("{many} are"),
            }
        )
    })?;
    let (mut events_of_new, are_given) = (None, !events.is_empty());
    if !are_given {
        let found = [look_for_events(&old.1)?, look_for_events(&new.1)?];
        let said: Vec<_> = found.iter().flatten().map(|(_, how)| how.clone()).collect();
        for (place, how) in said.iter().enumerate() {
            if !said[..place].contains(how) {
                say::note(how);
            }
        }
        let [of_old, of_new] = found.map(|found| found.map(|(input, _)| input));
        events.extend(of_old);
        events_of_new = load_events(of_new.into_iter().collect())?;
    }
    let events_of_old = load_events(events)?;
    if are_given {
        events_of_new.clone_from(&events_of_old);
    }
    Ok([
        Declared { name: old.0, traces: old.1, events: events_of_old },
        Declared { name: new.0, traces: new.1, events: events_of_new },
    ])
}

/// Refuses a second `-` among `paths`: two readers would each get a part of what comes.
pub(crate) fn allow_stdin_once<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Result<()> {
    if paths.into_iter().filter(|path| path.as_path() == Path::new("-")).nth(1).is_some() {
        bail!("standard input (-) can be read only once");
    }
    Ok(())
}

/// Reads trace-events files; `None` if there are none.
///
/// # Errors
///
/// A file that cannot be read, or has more lines that declare nothing than declarations: then it is something else.
pub(crate) fn load_events(inputs: Vec<Input>) -> Result<Option<EventIndex>> {
    if inputs.is_empty() {
        return Ok(None);
    }
    let mut index = EventIndex::new();
    for input in inputs {
        let name = input.name.clone();
        let source = read_events(input)?;
        let (declared_before, odd_before) = (index.len(), index.unnamed_lines());
        index.add(&name, source);
        let odd = index.unnamed_lines() - odd_before;
        if odd > index.len() - declared_before {
            bail!("{name} is no trace-events file: lines that declare nothing: {odd}");
        }
    }
    Ok(Some(index))
}

/// Shows the first faults of a trace-events file.
pub(crate) fn say_diagnostics(diagnostics: &Diagnostics, name: &str, source: &[u8]) {
    for diagnostic in diagnostics.iter().take(MAX_FAULTS) {
        let text = diagnostic.with_source(name, source).to_string();
        match diagnostic.severity {
            Severity::Error => say::error(text.trim_end()),
            Severity::Warning => say::warning(text.trim_end()),
        }
    }
    let all = diagnostics.errors() + diagnostics.warnings();
    if all > MAX_FAULTS {
        say::note(&format!("{name}: {} more of these not shown", all - MAX_FAULTS));
    }
}

/// Reads a trace-events file whole.
pub(crate) fn read_events(input: Input) -> Result<Vec<u8>> {
    let name = input.name.clone();
    let mut source = Vec::new();
    let cannot_read = || format!("cannot read {name}");
    if Header::sniff(input.head()).is_some() {
        bail!("{name} is a trace, not a trace-events file");
    }
    input.read()?.take(MAX_EVENTS_BYTES + 1).read_to_end(&mut source).with_context(cannot_read)?;
    if source.len() as u64 > MAX_EVENTS_BYTES {
        bail!("{name} is larger than {MAX_EVENTS_BYTES} bytes, so it is no trace-events file");
    }
    Ok(source)
}

/// Reads a file of text whole that people write: presets, names of pointers.
///
/// # Errors
///
/// It cannot be read, is no UTF-8, or is far too large to be one.
pub(crate) fn read_small(path: &Path) -> Result<String> {
    const MAX_BYTES: u64 = 1 << 24;

    let cannot_read = || format!("cannot read {}", printable(&path.display().to_string()));
    let mut text = String::new();
    let file = fs::File::open(path).with_context(cannot_read)?;
    file.take(MAX_BYTES + 1).read_to_string(&mut text).with_context(cannot_read)?;
    if text.len() as u64 > MAX_BYTES {
        bail!("{} is larger than {MAX_BYTES} bytes, so it is something else", printable(&path.display().to_string()));
    }
    Ok(text)
}

/// Whether a file given without a word on what it is, is a trace-events file: text, or named like one and empty.
pub(crate) fn looks_like_events(input: &Input) -> bool {
    let named_so = input.name.contains("events") || input.path.as_deref() == Some(Path::new("/dev/null"));
    let head = input.head();
    input.path.is_some() && if head.is_empty() { named_so } else { is_text(head) }
}

fn is_text(head: &[u8]) -> bool {
    /// A comment may have anything in it, further on.
    const LOOKED_AT_BYTES: usize = 16;

    // 0xff is in no UTF-8, and begins every trace.
    head.iter().take(LOOKED_AT_BYTES).all(|&byte| matches!(byte, b' '..=0xfe | b'\n' | b'\t' | b'\r' | 0x0c))
}

/// Looks where a trace-events file may be, and says on stderr which one was taken.
fn find_events(traces: &[Input]) -> Result<Option<Input>> {
    Ok(look_for_events(traces)?.map(|(input, how)| {
        say::note(&how);
        input
    }))
}

/// The same, with what is to be said.
fn look_for_events(traces: &[Input]) -> Result<Option<(Input, String)>> {
    if let Some(path) = std::env::var_os(EVENTS_VARIABLE).filter(|path| !path.is_empty()) {
        let input = Input::open(Path::new(&path)).with_context(|| format!("in {EVENTS_VARIABLE}"))?;
        let how = format!("using {} ({EVENTS_VARIABLE})", input.name);
        return Ok(Some((input, how)));
    }
    // All parts of a trace have the same declarations.
    let names = traces.iter().map(|trace| trace.part.as_ref().map_or(trace.path.as_deref(), |part| Some(&part.trace)));
    let mut names: Vec<_> = names.flatten().collect();
    names.dedup();
    for trace in names {
        let own_name = |name: Option<&OsStr>| {
            let mut name = name.unwrap_or_default().to_owned();
            name.push("-events");
            name
        };
        let compressed = trace.extension().is_some_and(|suffix| suffix == "gz" || suffix == "zst");
        let own = own_name(if compressed { trace.file_stem() } else { trace.file_name() });
        for name in [own, "trace-events-all".into(), "trace-events".into()] {
            let path = trace.with_file_name(name);
            if fs::metadata(&path).is_ok_and(|metadata| metadata.is_file()) {
                let input = Input::open(&path)?;
                let how = format!("using {} (found beside the trace)", input.name);
                return Ok(Some((input, how)));
            }
        }
    }
    Ok(None)
}

/// What a file says of itself before anything else.
pub(crate) fn facts_behind_header(path: &Path) -> Option<Facts> {
    let mut records = StreamReader::new(Input::open(path).ok()?.read().ok()?).ok()?;
    let mut facts = Facts::default();
    while let Ok(Some(Record::Mapping(record))) = records.next_record()
        && record.is_fact()
    {
        // What is wrong with one is said when the file is read.
        let _ = facts.add(record.name);
    }
    Some(facts)
}

pub(super) fn first_timestamp_ns(path: &Path) -> Option<u64> {
    let mut records = StreamReader::new(Input::open(path).ok()?.read().ok()?).ok()?;
    loop {
        match records.next_record().ok()?? {
            Record::Event(event) => return Some(event.timestamp_ns),
            Record::Dropped(dropped) => return Some(dropped.timestamp_ns),
            Record::Mapping(_) => {}
        }
    }
}
