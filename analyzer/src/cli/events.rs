//! `events`: lists declarations, and holds traces against them.

use anyhow::{Result, bail};
use serde::Serialize;
use simpletrace_format::events::{ArgDecl, EventDecl, EventIndex, EventSet, Mode};
use std::collections::HashSet;

use super::args::{EventsArgs, ReportFormat};
use crate::filter::{Globs, Selection};
use crate::findings::Outcome;
use crate::fit::Misfits;
use crate::input::{Input, allow_stdin_once, looks_like_events, open_all, read_events, say_diagnostics, sort};
use crate::output::Output;
use crate::progress::Bar;
use crate::render::printable;
use crate::say;
use crate::trace::{Item, Trace};

pub(crate) fn run(args: &EventsArgs) -> Result<Outcome> {
    let globs = Globs::parse(&args.patterns)?;
    allow_stdin_once(&args.files)?;
    let mut traces = Vec::new();
    let mut set = EventSet::new();
    let mut index = EventIndex::new();
    let mut faulty = false;
    let inputs = open_all(&args.files)?;
    let count = inputs.len();
    for input in inputs {
        // Alone, a file is meant to be trace-events whatever it looks like.
        if count > 1 && !looks_like_events(&input) {
            traces.push(input);
            continue;
        }
        let name = input.name.clone();
        let source = read_events(input)?;
        let mode = if args.strict { Mode::Strict } else { Mode::Lenient };
        let diagnostics = set.add(&name, &source, mode);
        say_diagnostics(&diagnostics, &name, &source);
        faulty |= diagnostics.errors() > 0;
        index.add(&name, source);
    }
    sort(&mut traces);
    if traces.len() == count {
        bail!("no trace-events file among the files given");
    }
    if !traces.is_empty() && args.search.is_some() {
        bail!("--search is for listing declarations, without a trace");
    }
    for pair in set.duplicates().filter(|pair| !pair.same_layout) {
        say::warning(&format!(
            "{} is declared with other arguments at {}:{} and {}:{}; the later declaration counts",
            pair.later.name,
            set.file_name(pair.earlier),
            pair.earlier.line,
            set.file_name(pair.later),
            pair.later.line
        ));
    }
    let faults = if faulty { Outcome::Faulty } else { Outcome::Good };
    if traces.is_empty() {
        list(&set, args, &globs)?;
        Ok(faults)
    } else {
        Ok(faults.max(compare(traces, index, globs, args.format)?))
    }
}

/// Holds traces against declarations, whose own faults have been said.
fn compare(traces: Vec<Input>, declared: EventIndex, globs: Globs, format: ReportFormat) -> Result<Outcome> {
    let bar = Bar::watch(traces.iter().map(Input::progress).collect());
    let mut trace = Trace::new(traces, Some(declared), Selection { globs, ..Selection::default() });
    trace.keep_mapped_names();
    let mut counts = PerKindCounts::default();
    trace.for_each(|item| {
        counts.count(&item);
        Ok(())
    })?;
    drop(bar);
    let report = FitReport::new(&trace, &counts);
    let mut output = Output::create(None, [])?;
    match format {
        ReportFormat::Text => report.print(&mut output)?,
        ReportFormat::Json => {
            output.block.put(serde_json::to_string_pretty(&report)?);
            output.block.byte(b'\n');
        }
    }
    output.finish()?;
    // What does not fit was just reported, and what is wrong with the declarations before.
    trace.findings.say_of_files();
    Ok(trace.outcome(false))
}

/// Prints the declarations that match.
fn list(set: &EventSet, args: &EventsArgs, globs: &Globs) -> Result<()> {
    let found: Vec<_> = set
        .iter()
        .filter(|decl| globs.selects(&decl.name))
        .filter(|decl| args.search.as_ref().is_none_or(|text| declaration(decl).contains(text.as_str())))
        .collect();
    let mut output = Output::create(None, [])?;
    match args.format {
        ReportFormat::Text => {
            for decl in &found {
                output.block.put(format!("{}:{}: {}\n", set.file_name(decl), decl.line, declaration(decl)));
                output.write_if_full()?;
            }
        }
        ReportFormat::Json => {
            let events = found.iter().map(|decl| Listed::new(set, decl)).collect();
            output.block.put(serde_json::to_string_pretty(&List { schema: "simpletrace-rs.events/1", events })?);
            output.block.byte(b'\n');
        }
    }
    output.finish()?;
    if found.is_empty() && !set.is_empty() {
        say::note(&format!("none of {} declarations matches", set.len()));
    }
    Ok(())
}

/// What does not fit between the declarations and a trace; docs/EXPORTS.md says what each field means.
#[derive(Serialize)]
struct FitReport {
    schema: &'static str,
    /// Events that have records as declared.
    as_declared: u64,
    /// Mapped names that are not declared, and have no records.
    undeclared_without_records: usize,
    faults: Vec<Unfit>,
}

/// An event whose records and declaration do not agree.
#[derive(Serialize)]
struct Unfit {
    event: String,
    fault: Fault,
    /// How many records the event has.
    records: u64,
    /// How many of them do not fit.
    faulty_records: u64,
    /// The place of the first that does not, where that was noted.
    first: Option<String>,
    /// The declared name that is nearest to that of an undeclared event.
    nearest: Option<String>,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum Fault {
    /// No mapping record names the id.
    Unmapped,
    /// The name is not declared.
    Undeclared,
    /// Records are shorter than declared.
    Shorter,
    /// Records are longer than declared.
    Longer,
    /// The declaration says `disable`, so that there should be no records.
    Disabled,
}

impl FitReport {
    fn new(trace: &Trace, counts: &PerKindCounts) -> Self {
        let declared = trace.kinds.declared();
        let mut as_declared = 0;
        let mut faults = Vec::new();
        for kind in trace.kinds.iter().filter(|kind| kind.selected) {
            let records = counts.of(kind.index);
            let mut add = |fault, faulty_records, first: Option<&String>| {
                // Looking takes a while, and a longer list is not read.
                let look = matches!(fault, Fault::Undeclared) && faults.len() < 100;
                let nearest = if look { declared.nearest(&kind.name).map(str::to_owned) } else { None };
                let (event, first) = (kind.name.clone(), first.cloned());
                faults.push(Unfit { event, fault, records, faulty_records, first, nearest });
            };
            let Misfits { longer, shorter, .. } = &kind.misfits;
            match &kind.decl {
                _ if !kind.mapped => add(Fault::Unmapped, records, None),
                None => add(Fault::Undeclared, records, Some(&kind.misfits.undeclared.first)),
                Some(decl) => {
                    for (misfit, fault) in [(shorter, Fault::Shorter), (longer, Fault::Longer)] {
                        if misfit.records > 0 {
                            add(fault, misfit.records, Some(&misfit.first));
                        }
                    }
                    if decl.properties.disabled && records > 0 {
                        add(Fault::Disabled, records, None);
                    }
                    as_declared += u64::from(records > shorter.records + longer.records);
                }
            }
        }
        let undeclared: HashSet<_> =
            trace.mapped_names().filter(|name| !declared.contains(name) && trace.selects(name)).collect();
        let with_records = faults.iter().filter(|unfit| matches!(unfit.fault, Fault::Undeclared)).count();
        let undeclared_without_records = undeclared.len().saturating_sub(with_records);
        Self { schema: "simpletrace-rs.fit/1", as_declared, undeclared_without_records, faults }
    }

    fn print(&self, output: &mut Output) -> Result<()> {
        let verdict = if self.faults.is_empty() { "all events fit" } else { "not all events fit" };
        let (fitting, not) = (self.as_declared, self.faults.len());
        output.block.put(format!("{verdict}: {fitting} have records as declared, {not} do not\n"));
        for Unfit { event, fault, records, faulty_records, first, nearest } in &self.faults {
            let what = match fault {
                Fault::Unmapped => "no mapping record names it",
                Fault::Undeclared => "not declared",
                Fault::Shorter => "shorter than declared",
                Fault::Longer => "longer than declared",
                Fault::Disabled => "declared `disable`, so not to be expected",
            };
            let first = first.as_ref().map_or(String::new(), |first| format!(", the first at {first}"));
            let nearest =
                nearest.as_ref().map_or(String::new(), |name| format!(" (the nearest declared name is {name})"));
            let event = printable(event);
            output.block.put(format!("{event}: {faulty_records} of {records} records: {what}{nearest}{first}\n"));
            output.write_if_full()?;
        }
        if self.undeclared_without_records > 0 {
            let names = self.undeclared_without_records;
            output.block.put(format!("mapped names that are not declared, and have no records: {names}\n"));
        }
        Ok(())
    }
}

/// How many records each kind has.
#[derive(Debug, Default)]
struct PerKindCounts(Vec<u64>);

impl PerKindCounts {
    fn count(&mut self, item: &Item<'_>) {
        let Item::Event(event) = item else { return };
        let index = event.kind.index;
        if self.0.len() <= index {
            self.0.resize(index + 1, 0);
        }
        self.0[index] += 1;
    }

    fn of(&self, index: usize) -> u64 {
        self.0.get(index).copied().unwrap_or(0)
    }
}

/// A declaration as it would be written.
fn declaration(decl: &EventDecl) -> String {
    let args: Vec<_> = decl.args.iter().map(argument).collect();
    let args = if args.is_empty() { "void".to_owned() } else { args.join(", ") };
    let disable = if decl.properties.disabled { "disable " } else { "" };
    let format = decl.format.as_ref().map_or(String::new(), |format| format!(" {}", format.text));
    printable(&format!("{disable}{}({args}){format}", decl.name))
}

fn argument(arg: &ArgDecl) -> String {
    let blank = if arg.c_type.ends_with('*') { "" } else { " " };
    format!("{}{blank}{}", arg.c_type, arg.name)
}

/// The JSON list; docs/EXPORTS.md says what each field means.
#[derive(Serialize)]
struct List<'a> {
    schema: &'static str,
    events: Vec<Listed<'a>>,
}

/// A declaration in the JSON list.
#[derive(Serialize)]
struct Listed<'a> {
    name: &'a str,
    file: &'a str,
    line: u32,
    disabled: bool,
    args: Vec<ListedArg<'a>>,
    format: Option<&'a str>,
}

#[derive(Serialize)]
struct ListedArg<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    c_type: &'a str,
}

impl<'a> Listed<'a> {
    fn new(set: &'a EventSet, decl: &'a EventDecl) -> Self {
        Self {
            name: &decl.name,
            file: set.file_name(decl),
            line: decl.line,
            disabled: decl.properties.disabled,
            args: decl.args.iter().map(|arg| ListedArg { name: &arg.name, c_type: &arg.c_type }).collect(),
            format: decl.format.as_ref().map(|format| format.text.as_str()),
        }
    }
}
