//! What the commands that pair records have in common: the operation that is asked for, from the command line or a preset.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use simpletrace_format::events::EventIndex;

use super::args::OperationArgs;
use crate::findings::count;
use crate::input::{Input, load_events};
use crate::latencies::{HISTOGRAM_DIGITS, MAX_EXACT};
use crate::pairing::{By, Chain, Drops, KeyPart, Pairing, Question};
use crate::presets::{Preset, Presets};
use crate::say;

impl OperationArgs {
    /// The presets that there are.
    pub(super) fn presets(&self) -> Result<Presets> {
        Presets::load(self.presets.iter().map(PathBuf::as_path))
    }

    /// The preset that is asked for, if one is.
    ///
    /// # Errors
    ///
    /// There is none of that name.
    pub(super) fn preset(&self) -> Result<Option<Preset>> {
        let presets = self.presets()?;
        self.preset.as_deref().map(|name| presets.get(name).cloned()).transpose()
    }
}

/// Says what there is to know about a preset: above all that it may take records of different operations for one.
pub(super) fn say_note(preset: Option<&Preset>) {
    if let Some(preset) = preset.filter(|preset| !preset.note.is_empty()) {
        let is = if preset.exact { "" } else { " is not exact" };
        say::note(&format!("{}{is}: {}", preset.name(), preset.note));
    }
}

/// What to group by, as it stands on the command line: `none` is nothing.
///
/// # Errors
///
/// What is no argument's name.
pub(super) fn parse_by(by: &[String]) -> Result<Vec<By>> {
    match by {
        [none] if none == "none" => Ok(Vec::new()),
        [empty] if empty.is_empty() => bail!("--by is empty; `--by none` groups by nothing"),
        by => by.iter().map(|by| By::parse(by)).collect(),
    }
}

/// Which events a question is about.
///
/// # Errors
///
/// As of [`Question::names`]; what is wrong with a preset is said where it stands.
pub(super) fn names(question: &Question, declared: &EventIndex, preset: Option<&Preset>) -> Result<Vec<String>> {
    match preset {
        Some(preset) => preset.names(question, declared),
        None => question.names(declared, false),
    }
}

/// Parts operations, which have a `->` in them, from files.
///
/// # Errors
///
/// There are no files.
pub(super) fn split(files: &[PathBuf]) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let is_operation = |file: &PathBuf| file.to_str().is_some_and(|text| text.contains("->"));
    let (operations, paths): (Vec<_>, Vec<_>) = files.iter().cloned().partition(is_operation);
    if paths.is_empty() {
        bail!("no trace is given");
    }
    Ok((operations, paths))
}

/// Loads declarations, for questions that need them.
pub(super) fn load(events: Vec<Input>) -> Result<EventIndex> {
    need_declared(load_events(events)?)
}

/// Declarations, without which no argument is known.
///
/// # Errors
///
/// There are none.
pub(super) fn need_declared(declared: Option<EventIndex>) -> Result<EventIndex> {
    declared.context(
        "no trace-events file was given or found, and without it no arguments are known; \
         take the trace-events-all of the build that wrote the trace",
    )
}

/// The question that the command line and the preset ask; what stands on the command line counts first.
pub(super) fn question(
    args: &OperationArgs,
    operations: &[PathBuf],
    by: &[String],
    preset: Option<&Preset>,
) -> Result<Question> {
    let chain = match (operations, preset) {
        ([operation], None) => Chain::parse(&operation.to_string_lossy())?,
        ([], Some(preset)) => Chain::parse(preset.operation())?,
        ([], None) => bail!("no operation is given; write 'BEGIN -> END', or take a preset (--preset, --list)"),
        ([_], Some(_)) => bail!("an operation and a preset are given, and there can be only one of them"),
        _ => bail!("{} operations are given, and there can be only one", operations.len()),
    };
    let on = args.on.as_deref().or_else(|| preset?.on());
    let on = on.map_or(Ok(Vec::new()), |on| KeyPart::parse_all(on, &chain))?;
    let by = match preset {
        Some(preset) if by.is_empty() => parse_by(&preset.by())?,
        _ => parse_by(by)?,
    };
    let discipline = args.discipline.or(preset.map(|preset| preset.discipline)).unwrap_or_default();
    Ok(Question { chain, on, by, discipline, drops: Drops::default() })
}

/// Says why there is no operation, if there is none.
pub(super) fn say_why_nothing(pairing: &Pairing) {
    let chain = &pairing.question().chain;
    if pairing.counts().pairs > 0 {
        return;
    }
    let missing: Vec<_> =
        (0..chain.len()).filter(|&stage| pairing.records[stage] == 0).map(|stage| chain.stage(stage)).collect();
    if !missing.is_empty() {
        say::note(&format!("there is no record of {}", missing.join(" and none of ")));
        return;
    }
    if pairing.question().on.is_empty() {
        say::note("no end comes behind a beginning");
        return;
    }
    for stage in 0..chain.len() {
        let records = count(pairing.records[stage], "record");
        say::note(&format!(
            "{records} of {}, with keys such as {}",
            chain.stage(stage),
            pairing.samples(stage).join(", ")
        ));
    }
    say::note("no key of an end is that of a beginning before it; are these the arguments that they have in common?");
}

/// The most intervals that a result is divided into.
pub(super) const MAX_INTERVALS: usize = 10_000;

/// Says that there are more, and what to do.
pub(super) fn too_many_intervals() -> String {
    format!("there are more than {MAX_INTERVALS} intervals; take a longer one, or a part of the trace (-t)")
}

/// A line on what became of records; empty if there is nothing to say.
pub(super) fn number_line(name: &str, number: u64, what: &str) -> String {
    if number == 0 && !matches!(name, "begins" | "pairs") {
        return String::new();
    }
    format!("{}\n", format!("{number:>9} {name:<11} {what}").trim_end())
}

/// Says that percentiles are not exact, and why.
pub(super) fn inexact(what: &str) -> String {
    format!("          percentiles are within 1/10^{HISTOGRAM_DIGITS}, as there are more than {MAX_EXACT} {what}\n")
}
