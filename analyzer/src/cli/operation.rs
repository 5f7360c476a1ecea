//! What the commands that pair records have in common: the operation that is asked for, from the command line or a preset.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use simpletrace_format::events::EventIndex;

use super::args::{OperationArgs, RecordArgs, TableFormat};
use crate::findings::count;
use crate::input::{Input, load_events};
use crate::kinds::{Kind, LeftOutRecords};
use crate::latencies::{MAX_EXACT, error_means};
use crate::measure::Measure;
use crate::pairing::{By, Chain, Drops, KeyPart, Pairing, Question};
use crate::presets::{Preset, Presets};
use crate::say;
use crate::trace::Trace;

impl OperationArgs {
    /// The presets that there are.
    pub(crate) fn presets(&self) -> Result<Presets> {
        Presets::load(self.presets.iter().map(PathBuf::as_path))
    }

    /// The preset that is asked for, if one is.
    ///
    /// # Errors
    ///
    /// There is none of that name.
    pub(crate) fn preset(&self) -> Result<Option<Preset>> {
        let presets = self.presets()?;
        self.preset.as_deref().map(|name| presets.get(name).cloned()).transpose()
    }
}

/// Says what there is to know about a preset: above all that it may take records of different operations for one.
pub(crate) fn say_note(preset: Option<&Preset>) {
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
pub(crate) fn names(question: &Question, declared: &EventIndex, preset: Option<&Preset>) -> Result<Vec<String>> {
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
pub(crate) fn need_declared(declared: Option<EventIndex>) -> Result<EventIndex> {
    declared.context(
        "no trace-events file was given or found, and without it no arguments are known; \
         take the trace-events-all of the build that wrote the trace",
    )
}

/// The question that the command line and the preset ask; what stands on the command line counts first.
pub(crate) fn question(
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
pub(crate) fn say_why_nothing(pairing: &Pairing, trace: &Trace, args: &RecordArgs, preset: Option<&Preset>) {
    let Question { chain, on, .. } = pairing.question();
    if pairing.counts().pairs > 0 {
        return;
    }
    let places = |kind: &Kind| {
        chain.places(&kind.name).iter().map(|place| (place.stage, place.star.map(str::to_owned))).collect::<Vec<_>>()
    };
    let kinds_of = |stage| trace.kinds.iter().filter(move |kind| places(kind).iter().any(|place| place.0 == stage));
    let left_out: Vec<_> = (0..chain.len()).map(|stage| LeftOut::of(kinds_of(stage), args, preset)).collect();
    let is_missing = |stage: &usize| pairing.records[*stage] == 0;
    let mut absent = Vec::new();
    for stage in (0..chain.len()).filter(is_missing) {
        let name = chain.stage(stage);
        let lacking: Vec<_> =
            kinds_of(stage).filter(|kind| pairing.lacks_key(kind.index)).map(|kind| kind.name.as_str()).collect();
        if let Some(why) = left_out[stage].of_all() {
            // Of those that stand for each other, those that there are.
            let names: Vec<_> =
                kinds_of(stage).filter(|kind| kind.left_out.any()).map(|kind| kind.name.as_str()).collect();
            say::note(&format!("{} of {}, {why}", count(left_out[stage].records(), "record"), listed(&names)));
        } else if lacking.is_empty() {
            absent.push(name);
        } else {
            let on = on.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
            say::note(&format!("records of {} have no arguments for --on {on}", listed(&lacking)));
        }
    }
    if !absent.is_empty() {
        say::note(&format!("there is no record of {}", absent.join(" and none of ")));
    }
    if (0..chain.len()).any(|stage| is_missing(&stage)) {
        return;
    }
    for (stage, left_out) in left_out.iter().enumerate() {
        let records = count(pairing.records[stage], "record");
        let keys = if on.is_empty() {
            String::new()
        } else {
            format!(", with keys such as {}", pairing.samples(stage).join(", "))
        };
        let others = left_out.beside();
        say::note(&format!("{records} of {}{keys}{others}", chain.stage(stage)));
    }
    say::note(&why_none_pairs(pairing, &|stage| {
        kinds_of(stage).flat_map(places).filter(|place| place.0 == stage).filter_map(|place| place.1).collect()
    }));
}

/// Some names, and that there are more.
fn listed(names: &[&str]) -> String {
    const SHOWN: usize = 5;

    let more = names.len().saturating_sub(SHOWN);
    let names = names[..names.len() - more].join(", ");
    if more > 0 { format!("{names} and {more} more") } else { names }
}

/// Says why there is no operation although there are records of all its stages, of which each has `stars`, the texts that its `*` stands for.
fn why_none_pairs(pairing: &Pairing, stars: &dyn Fn(usize) -> Vec<String>) -> String {
    let Question { chain, on, .. } = pairing.question();
    let (counts, last) = (pairing.counts(), chain.len() - 1);
    if counts.incomplete > 0 {
        let ended = count(counts.incomplete, "operation");
        return format!("{ended} ended without a record of each stage in this order: {chain}");
    }
    if counts.backwards > 0 {
        return format!("records of {} are too far out of order", count(counts.backwards, "operation"));
    }
    for stage in 1..=last {
        let name = chain.stage(stage);
        let (begins, ends) = (stars(0), stars(stage));
        if !begins.is_empty() && !ends.is_empty() && !begins.iter().any(|star| ends.contains(star)) {
            let such_as = |stars: &[String]| listed(&stars.iter().map(String::as_str).collect::<Vec<_>>());
            return format!(
                "the * of {} stands for {}, that of {name} for {}; it has to be the same text",
                chain.stage(0),
                such_as(&begins),
                such_as(&ends)
            );
        }
        if !on.is_empty() && !pairing.shares_key_with_begin(stage) {
            let name = if last == 1 { "an end".to_owned() } else { name };
            return format!(
                "no key of {name} is that of a beginning before it; are these the arguments that they have in common?"
            );
        }
    }
    if on.is_empty() {
        return format!(
            "no {} comes behind a beginning",
            if last == 1 { "end" } else { "record of each stage, in order," }
        );
    }
    let order = if last == 1 {
        "no end comes behind the beginning with its key"
    } else {
        "with no key do the stages come in this order"
    };
    format!("they have keys in common, but {order}; is it the other way round?")
}

/// Records of a stage that are not looked at.
struct LeftOut {
    /// How many, and what they are not: `within -t 5s-`.
    causes: Vec<(u64, String)>,
}

impl LeftOut {
    fn of<'a>(kinds: impl Iterator<Item = &'a Kind>, args: &RecordArgs, preset: Option<&Preset>) -> Self {
        let (mut time, mut pid, mut condition) = (0, 0, 0);
        for kind in kinds {
            let LeftOutRecords { by_time_or_else: [by_time, or_else], by_condition } = kind.left_out;
            time += by_time;
            condition += by_condition;
            *(if kind.selected { &mut pid } else { &mut condition }) += or_else;
        }
        let pids: Vec<_> = args.pids().iter().map(ToString::to_string).collect();
        let filters = match (args.has_filters(), preset.filter(|preset| !preset.filters().is_empty())) {
            (true, None) => "-w".to_owned(),
            (true, Some(preset)) => format!("-w or preset {}", preset.name()),
            (false, Some(preset)) => format!("preset {}", preset.name()),
            (false, None) => "what is asked for".to_owned(),
        };
        let causes = [
            (time, format!("within -t {}", args.window())),
            (pid, format!("of --pid {}", pids.join(", "))),
            (condition, format!("let through by {filters}")),
        ];
        Self { causes: causes.into_iter().filter(|cause| cause.0 > 0).collect() }
    }

    fn records(&self) -> u64 {
        self.causes.iter().map(|cause| cause.0).sum()
    }

    /// Why no record is looked at, if there are any.
    fn of_all(&self) -> Option<String> {
        match &self.causes[..] {
            [] => None,
            [(_, cause)] => Some(format!("none {cause}")),
            causes => Some(
                causes.iter().map(|(records, cause)| format!("{records} not {cause}")).collect::<Vec<_>>().join(", "),
            ),
        }
    }

    /// Those that there are beside the ones that are looked at.
    fn beside(&self) -> String {
        self.causes.iter().map(|(records, cause)| format!("; {records} more not {cause}")).collect()
    }
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
    format!("percentiles are {}, as there are more than {MAX_EXACT} {what}", error_means())
}

/// Says how much `other` stands for; empty if that is nothing.
pub(super) fn others(records: u64, what: &str) -> String {
    if records == 0 {
        return String::new();
    }
    format!("{} of groups called other: {}", count(records, what), told_apart())
}

/// Says how many groups there can be.
pub(super) fn told_apart() -> String {
    format!("only {0} groups, and {0} values of each argument, are told apart", Measure::MAX_GROUPS)
}

/// Says on stderr what tables say of how far to trust them, where they are not shown and no document has it.
pub(super) fn say_doubts<'a>(
    format: TableFormat,
    numbers: impl IntoIterator<Item = (&'a str, u64, &'a str)>,
    others: &[String],
) {
    if !matches!(format, TableFormat::Csv | TableFormat::Ndjson) {
        return;
    }
    for (name, number, what) in
        numbers.into_iter().filter(|&(name, number, _)| number > 0 && !matches!(name, "begins" | "pairs"))
    {
        say::note(&format!("{number} {name}: {what}"));
    }
    others.iter().filter(|text| !text.is_empty()).for_each(|text| say::note(text));
}
