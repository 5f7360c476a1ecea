//! `latency`: how long operations took.

mod every;
mod report;
mod top;

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use simpletrace_format::events::EventIndex;

use super::args::{LatencyArgs, TableFormat};
use super::explain_filter;
use crate::chart::HeatMap;
use crate::condition::Conditions;
use crate::filter::{Globs, Selection};
use crate::findings::{Outcome, count};
use crate::gate::{Gated, Gates, Whole};
use crate::groups::Names;
use crate::input::{Files, Input, load_events};
use crate::measure::Measure;
use crate::output::Output;
use crate::pairing::{By, Chain, Discipline, Drops, KeyPart, Out, Pairing, Question};
use crate::presets::{Preset, Presets};
use crate::progress::Bar;
use crate::render::{Cell, Column, Rows};
use crate::trace::{Item, Trace};
use crate::{say, terminal};
use every::Every;
use report::Report;
use top::Top;

pub(crate) fn run(args: &LatencyArgs) -> Result<Outcome> {
    let gates = Gates::parse(&args.fail_if, false)?;
    let presets = Presets::load(args.presets.iter().map(PathBuf::as_path))?;
    if args.list {
        return list(&presets, args.format);
    }
    let (operations, paths): (Vec<_>, Vec<_>) =
        args.files.iter().cloned().partition(|file| file.to_str().is_some_and(|text| text.contains("->")));
    if paths.is_empty() {
        bail!("no trace is given");
    }
    let preset = args.preset.as_deref().map(|name| presets.get(name)).transpose()?;
    let question = question(args.on.as_deref(), &args.by, args.discipline, args.drops, &operations, preset)?;
    let conditions = conditions(args, preset)?;
    let names = args.names.as_deref().map_or(Ok(Names::default()), Names::load)?;
    let files = Files::open(&paths, &args.events, true)?;
    if args.context.is_some() && files.traces.iter().any(|input| input.progress().total.is_none()) {
        bail!("--context reads the trace twice, and a pipe can be read once; write it into a file");
    }
    let declared = load(files.events)?;
    let events = question.names(&declared, args.preset.is_some())?;
    let selection = select(args, Globs::of_names(events.clone()), conditions);
    selection.check(Some(&declared))?;
    if args.filter.explain_filter {
        return explain_filter(&selection, Some(&declared));
    }
    let mut asked = Asked {
        pairing: Pairing::new(question.clone(), &events, &declared),
        measure: Measure::new(question.chain.len(), args.drops),
        every: args.every.map(|length_ns| Every::new(length_ns, question.chain.len(), args.drops)),
        top: Top::new(args.top.unwrap_or_default(), args.drops),
        heat: args.heat.then(|| Heat { start_ns: 0, map: HeatMap::new() }),
    };
    let bar = Bar::watch(files.traces.iter().map(Input::progress).collect());
    let mut trace = Trace::new(files.traces, Some(declared), selection);
    trace.formats = args.formats.formats();
    trace.keeps_gaps = true;
    trace.for_each(|item| asked.take(&item))?;
    asked.finish()?;
    drop(bar);

    let Asked { mut pairing, measure, every, top, heat } = asked;
    pairing.groups.set_names(names);
    let mut measured = measure.finish();
    let fails = args.drops == Drops::Fail && measured.straddling > 0;
    let whole = Whole::new(pairing.counts(), &measured);
    let groups = measured.groups.iter_mut();
    let groups =
        groups.map(|group| Gated { name: pairing.groups.label(group.id), old: None, new: Some(&mut group.total) });
    let failures = gates.failures(None, whole, &mut groups.collect::<Vec<_>>());
    let style = terminal::style(args.ascii);
    let report = Report::new(&pairing, measured, every, top, args, style);
    let mut output = Output::create(None, [])?;
    output.block.put(report.render(args.format)?);
    if let Some(heat) = heat.filter(|_| args.format == TableFormat::Table) {
        output.block.put(format!("\n{}", heat.map.draw(heat.start_ns, style)));
    }
    if let Some(context_ns) = args.context.filter(|_| args.format == TableFormat::Table) {
        let files = Files::open(&paths, &args.events, true)?;
        let declared = load(files.events)?;
        let mut trace = Trace::new(files.traces, Some(declared), select(args, Globs::default(), Conditions::default()));
        trace.formats = args.formats.formats();
        output.block.put(report.top.context(&mut trace, &question.chain, context_ns)?);
    }
    output.finish()?;
    trace.say_findings();
    if let (Some(name), Some(preset)) = (&args.preset, preset.filter(|preset| !preset.exact)) {
        say::note(&format!("{name} is not exact: {}", preset.note));
    }
    say_why_nothing(&pairing, report.counts.pairs);
    failures.iter().for_each(|failure| say::error(failure));
    let gated = if fails || !failures.is_empty() { Outcome::Faulty } else { Outcome::Good };
    Ok(trace.outcome(false).max(gated))
}

/// What one reading answers.
struct Asked {
    pairing: Pairing,
    measure: Measure,
    every: Option<Every>,
    top: Top,
    heat: Option<Heat>,
}

/// Latencies over time.
struct Heat {
    start_ns: u64,
    map: HeatMap,
}

impl Asked {
    #[inline]
    fn take(&mut self, item: &Item<'_>) -> Result<()> {
        if let Item::Start(start_ns) = item {
            self.start(*start_ns);
        }
        let Self { pairing, measure, every, top, heat } = self;
        pairing.take(item, &mut |out| tell(&out, measure, every, top, heat));
        every.as_ref().map_or(Ok(()), Every::check)
    }

    #[cold]
    fn start(&mut self, start_ns: u64) {
        if let Some(every) = &mut self.every {
            every.start(start_ns);
        }
        if let Some(heat) = &mut self.heat {
            heat.start_ns = start_ns;
        }
    }

    fn finish(&mut self) -> Result<()> {
        let Self { pairing, measure, every, top, heat } = self;
        pairing.finish(&mut |out| tell(&out, measure, every, top, heat));
        every.as_ref().map_or(Ok(()), Every::check)
    }
}

#[inline]
fn tell(out: &Out<'_>, measure: &mut Measure, every: &mut Option<Every>, top: &mut Top, heat: &mut Option<Heat>) {
    measure.take(out);
    top.take(out);
    if let Some(every) = every {
        every.take(out);
    }
    if let (Some(heat), Out::Pair(pair)) = (heat, out) {
        heat.map.add(pair.end_ns, pair.end_ns - pair.begin_ns);
    }
}

fn load(events: Vec<Input>) -> Result<EventIndex> {
    need_declared(load_events(events)?)
}

/// Declarations, without which no key is known.
pub(super) fn need_declared(declared: Option<EventIndex>) -> Result<EventIndex> {
    declared.context(
        "no trace-events file was given or found, and without it no arguments are known; \
         take the trace-events-all of the build that wrote the trace",
    )
}

fn select(args: &LatencyArgs, globs: Globs, conditions: Conditions) -> Selection {
    Selection { globs, conditions, pids: args.pid.clone(), time: args.time.unwrap_or_default(), limit: None }
}

/// Those of the command line and of the preset.
fn conditions(args: &LatencyArgs, preset: Option<&Preset>) -> Result<Conditions> {
    let own = preset.map_or(&[][..], |preset| &preset.filters);
    args.filter.conditions_and(own)
}

/// The question that the command line and the preset ask; what stands on the command line counts first.
pub(super) fn question(
    on: Option<&str>,
    by: &[String],
    discipline: Option<Discipline>,
    drops: Drops,
    operations: &[PathBuf],
    preset: Option<&Preset>,
) -> Result<Question> {
    let chain = match (operations, preset) {
        ([operation], None) => Chain::parse(&operation.to_string_lossy())?,
        ([], Some(preset)) => Chain::parse(&preset.operation)?,
        ([], None) => bail!("no operation is given; write 'BEGIN -> END', or take a preset (--preset, --list)"),
        ([_], Some(_)) => bail!("an operation and a preset are given, and there can be only one of them"),
        _ => bail!("{} operations are given, and there can be only one", operations.len()),
    };
    let on = match (on, preset.map(|preset| &preset.on)) {
        (Some(on), _) => KeyPart::parse_all(on, &chain)?,
        (None, Some(on)) if !on.is_empty() => KeyPart::parse_all(on, &chain)?,
        _ => Vec::new(),
    };
    let by = match preset {
        Some(preset) if by.is_empty() => &preset.by,
        _ => by,
    };
    let by = by.iter().map(|by| By::parse(by)).collect::<Result<_>>()?;
    let discipline = discipline.or(preset.map(|preset| preset.discipline)).unwrap_or_default();
    Ok(Question { chain, on, by, discipline, drops })
}

fn list(presets: &Presets, format: TableFormat) -> Result<Outcome> {
    let mut rows = Rows::new(["preset", "exact", "operation", "on", "about"].map(Column::new));
    for (name, preset) in presets.iter() {
        let exact = if preset.exact { "yes" } else { "no" };
        rows.push(
            [name, exact, &preset.operation, &preset.on, &preset.about].map(|text| Cell::Text(text.to_owned())).into(),
        );
    }
    let mut output = Output::create(None, [])?;
    output.block.put(rows.render(format)?);
    output.finish()?;
    Ok(Outcome::Good)
}

/// Says why there is no operation, if there is none.
pub(super) fn say_why_nothing(pairing: &Pairing, pairs: u64) {
    let chain = &pairing.question().chain;
    if pairs > 0 {
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
