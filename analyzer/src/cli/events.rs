//! `events`: lists declarations, and holds traces against them.

use std::ops::ControlFlow;

use anyhow::{Result, bail};
use serde::Serialize;
use simpletrace_format::events::{ArgDecl, EventDecl, EventSet, Mode};

use super::Outcome;
use super::args::{EventsArgs, ReportFormat};
use crate::filter::{Globs, Selection};
use crate::input::{Input, allow_stdin_once, looks_like_events, read_events, say_diagnostics};
use crate::output::Output;
use crate::progress::Bar;
use crate::render::printable;
use crate::say;
use crate::trace::{Item, Misfit, Misfits, Trace};

pub(crate) fn run(args: &EventsArgs) -> Result<Outcome> {
    let globs = Globs::parse(&args.patterns)?;
    allow_stdin_once(&args.files)?;
    let mut traces = Vec::new();
    let mut set = EventSet::new();
    let mut faulty = false;
    for path in &args.files {
        let mut input = Input::open(path)?;
        // Alone, a file is meant to be trace-events whatever it looks like.
        if args.files.len() > 1 && !looks_like_events(&mut input) {
            traces.push(input);
            continue;
        }
        let name = input.name.clone();
        let source = read_events(input)?;
        let mode = if args.strict { Mode::Strict } else { Mode::Lenient };
        let diagnostics = set.add(&name, &source, mode);
        say_diagnostics(&diagnostics, &name, &source, None);
        faulty |= diagnostics.errors() > 0;
    }
    if traces.len() == args.files.len() {
        bail!("no trace-events file among the files given");
    }
    if !traces.is_empty() && (args.format == ReportFormat::Json || args.search.is_some()) {
        bail!("-F json and --search are for listing declarations, without a trace");
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
        return Ok(faults);
    }
    let bar = Bar::watch(traces.iter().map(Input::progress).collect());
    let mut trace = Trace::new(traces, set, Selection { globs, ..Selection::default() });
    let mut counts = PerKindCounts::default();
    trace.for_each(|item| {
        counts.count(&item);
        Ok(ControlFlow::Continue(()))
    })?;
    drop(bar);
    report_fit(&trace, &counts)?;
    trace.say_findings();
    Ok(faults.max(trace.outcome(false)))
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
            let events: Vec<_> = found.iter().map(|decl| Listed::new(set, decl)).collect();
            let document = serde_json::json!({ "schema": "simpletrace-rs.events/1", "events": events });
            output.block.put(serde_json::to_string_pretty(&document)?);
            output.block.byte(b'\n');
        }
    }
    output.finish()?;
    if found.is_empty() && !set.is_empty() {
        say::note(&format!("none of {} declarations matches", set.len()));
    }
    Ok(())
}

/// Prints what does not fit between the declarations and the records of a trace.
fn report_fit(trace: &Trace, counts: &PerKindCounts) -> Result<()> {
    let mut output = Output::create(None, [])?;
    let mut fits = 0;
    let mut never_recorded = 0;
    for kind in trace.kinds.iter().filter(|kind| kind.selected) {
        let records = counts.of(kind.index);
        let Misfits { longer, shorter, undeclared } = &kind.misfits;
        let name = printable(&kind.name);
        let mut say = |text: String| output.block.put(text);
        if !kind.mapped {
            say(format!("unmapped    {name}: {records} records, no mapping record names it\n"));
        } else if undeclared.records > 0 {
            say(format!("undeclared  {name}: {records} records, the first at {}\n", undeclared.first));
        } else if kind.decl.is_none() {
            never_recorded += 1;
        } else if shorter.records + longer.records > 0 {
            for (Misfit { records: wrong, first }, how) in [(shorter, "shorter"), (longer, "longer")] {
                if *wrong > 0 {
                    say(format!(
                        "misfit      {name}: {wrong} of {records} records are {how} than declared, the first at {first}\n"
                    ));
                }
            }
        } else if records > 0 {
            fits += 1;
        }
        if records > 0 && kind.decl.as_ref().is_some_and(|decl| decl.properties.disabled) {
            say(format!("disabled    {name}: {records} records of an event that the build should not have\n"));
        }
        output.write_if_full()?;
    }
    if never_recorded > 0 {
        output.block.put(format!("undeclared  {never_recorded} more mapped names, which have no records\n"));
    }
    output.block.put(format!("{fits} events are recorded as declared\n"));
    output.finish()
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
    format!("{disable}{}({args}){format}", decl.name)
}

fn argument(arg: &ArgDecl) -> String {
    let blank = if arg.c_type.ends_with('*') { "" } else { " " };
    format!("{}{blank}{}", arg.c_type, arg.name)
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
