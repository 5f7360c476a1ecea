//! `export`: adds a trace to a data set of Parquet files.

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use super::args::ExportArgs;
use super::explain_filter;
use crate::columns::DataSet;
use crate::findings::Outcome;
use crate::input::{Files, Input, load_events};
use crate::progress::Bar;
use crate::render::printable;
use crate::say;
use crate::trace::{Item, Trace};

pub(crate) fn run(args: &ExportArgs) -> Result<Outcome> {
    if args.output == Path::new("-") {
        bail!("a data set is a folder of files, which standard output is not; -o ./- is one that is called -");
    }
    let selection = args.select.selection()?;
    let files = Files::open(&args.files.files, &args.files.events, true)?;
    refuse_twice(&files.traces)?;
    let source = source(args, &files)?;
    let declared = load_events(files.events)?;
    selection.check(declared.as_ref())?;
    if args.select.records.explain_filter {
        return explain_filter(&selection, declared.as_ref());
    }
    if declared.is_none() {
        say::warning(
            "no trace-events file was given or found, so arguments are one column of bytes; \
             take the trace-events-all of the build that wrote the trace",
        );
    }
    let wants_gaps = selection.admits_dropped();
    let mut data_set = DataSet::open(&args.output, &source, args.partition, args.replace)?;
    let bar = Bar::watch(files.traces.iter().map(Input::progress).collect());
    let mut trace = Trace::new(files.traces, declared, selection);
    trace.formats = args.files.formats.formats();
    trace.keeps_gaps = true;
    trace.for_each(|item| {
        match item {
            Item::Event(event) => return data_set.event(&event),
            Item::Gap(gap) => return data_set.gap(&gap, wants_gaps),
            Item::Section(_) => data_set.wall.set_offset(None),
            Item::Fact(fact) => data_set.wall.set_offset(fact.facts.wall_offset_ns()),
            Item::Missing(missing) => data_set.missing(&missing),
            Item::Start(_) | Item::Mapping(_) | Item::Outside(_) => {}
        }
        Ok(())
    })?;
    drop(bar);
    trace.say_findings();
    trace.say_if_nothing_selected();
    let outcome = trace.outcome(args.strict);
    if outcome == Outcome::Failed {
        // A trace that is not read in full is no trace of the data set.
        return Ok(outcome);
    }
    if let Some(unknown) = trace.unknown_names().find(|name| trace.selects(name)) {
        bail!("nothing is added to {}, as there is no {}", args.output.display(), printable(unknown));
    }
    let is_damaged = outcome == Outcome::Faulty || !trace.findings.torn.is_empty();
    let (records, files) = data_set.finish(&trace.files, is_damaged)?;
    say::note(&format!("{records} events of {source} are in {files} files of {}", args.output.display()));
    Ok(outcome)
}

/// Refuses a trace that is given twice: its records would be, too, and nobody could tell.
fn refuse_twice(traces: &[Input]) -> Result<()> {
    let mut seen = HashSet::new();
    for path in traces.iter().filter_map(|input| input.path.as_deref()) {
        if path.is_file() && !seen.insert(path.canonicalize().unwrap_or_else(|_| path.to_owned())) {
            bail!("{} is given twice", path.display());
        }
    }
    Ok(())
}

/// The name that the trace goes by in the data set.
fn source(args: &ExportArgs, files: &Files) -> Result<String> {
    if let Some(source) = &args.source {
        return Ok(source.clone());
    }
    if files.trace_count > 1 {
        bail!(
            "these are {} traces; add one at a time, or say with --source by what name they go together",
            files.trace_count
        );
    }
    let first = files.traces.first().context("there is no trace")?;
    let path = match &first.part {
        Some(part) => Some(&*part.trace),
        None => first.path.as_deref(),
    };
    let name = path
        .and_then(Path::file_name)
        .context("standard input has no name that it could go by; say one with --source")?;
    Ok(name.to_string_lossy().into_owned())
}
