//! `stats`: how often events come, what values an argument has, how many operations are under way.

mod arrivals;
mod depth;
mod values;

use std::path::PathBuf;

use anyhow::{Result, bail};
use serde_json::{Map, Value};
use simpletrace_format::events::EventIndex;

use super::args::{StatsArgs, TableFormat};
use super::operation::split;
use crate::filter::Selection;
use crate::findings::Outcome;
use crate::groups::Names;
use crate::latencies::check_once;
use crate::output::Output;
use crate::pairing::Side;
use crate::render::Rows;

/// The schema of all its results.
const SCHEMA: &str = "simpletrace-rs.stats/1";

pub(crate) fn run(args: &StatsArgs) -> Result<Outcome> {
    let (operations, paths) = split(&args.files.files)?;
    check_once(&args.percentiles)?;
    if args.depth {
        return depth::run(args, &operations, &paths);
    }
    let asked = &args.operation;
    for (is_given, what) in [
        (!operations.is_empty(), "an operation"),
        (asked.preset.is_some(), "--preset"),
        (!asked.presets.is_empty(), "--presets"),
        (asked.on.is_some(), "--on"),
        (asked.discipline.is_some(), "--discipline"),
    ] {
        if is_given {
            bail!("{what} goes with --depth, which says how many operations are under way");
        }
    }
    match &args.of {
        Some(of) => values::run(args, of, &paths),
        None => arrivals::run(args, &paths),
    }
}

/// Whether an argument is one of an event; here, there are no stages whose letter could stand for it.
fn is_of(side: &Side, event: &str) -> bool {
    side.is_of(event, NO_STAGE)
}

const NO_STAGE: usize = usize::MAX;

/// The declared events that are selected, by name.
fn selected_names(selection: &Selection, declared: &EventIndex) -> Vec<String> {
    let names = declared.names().filter(|name| selection.globs.selects(name));
    let mut names: Vec<_> = names.map(str::to_owned).collect();
    names.sort_unstable();
    names
}

fn names(path: Option<&PathBuf>) -> Result<Names> {
    path.map_or(Ok(Names::default()), |path| Names::load(path))
}

/// Prints a result: as text, as an object of which the schema is a member, or the rows that matter most.
fn print(format: TableFormat, text: impl FnOnce() -> String, json: Map<String, Value>, rows: &Rows) -> Result<()> {
    let mut output = Output::create(None, [])?;
    match format {
        TableFormat::Table => output.block.put(text()),
        TableFormat::Json => {
            let mut document = Map::new();
            document.insert("schema".to_owned(), SCHEMA.into());
            document.extend(json);
            output.block.put(serde_json::to_string_pretty(&document)? + "\n");
        }
        TableFormat::Csv | TableFormat::Ndjson => output.block.put(rows.render(format)?),
    }
    output.finish()?;
    Ok(())
}

/// The members of an object.
fn members<const N: usize>(members: [(&str, Value); N]) -> Map<String, Value> {
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Rows as an array of objects.
fn array(rows: &Rows) -> Value {
    rows.objects().map(Value::from).collect::<Vec<_>>().into()
}
