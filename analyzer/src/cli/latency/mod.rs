//! `latency`: how long operations took.

mod every;
mod report;
mod top;

use anyhow::{Result, bail};

use super::args::{LatencyArgs, TableFormat};
use super::explain_filter;
use super::operation::{load, names, question, say_note, say_why_nothing, split};
use crate::chart::{HeatMap, Style};
use crate::condition::Conditions;
use crate::filter::{Globs, Selection};
use crate::findings::Outcome;
use crate::gate::{Gated, Gates, Whole};
use crate::groups::Names;
use crate::input::{Files, Input};
use crate::latencies::check_once;
use crate::measure::Measure;
use crate::output::Output;
use crate::pairing::{Drops, Out, Pairing, Question};
use crate::presets::{Preset, Presets};
use crate::progress::Bar;
use crate::render::{Cell, Column, Rows};
use crate::trace::{Item, Trace};
use crate::{say, terminal};
use every::Every;
pub(crate) use report::Report;
use top::Slowest;
pub(super) use top::Top;

pub(crate) fn run(args: &LatencyArgs) -> Result<Outcome> {
    let gates = Gates::parse(&args.fail_if, false)?;
    check_once(&args.percentiles)?;
    if args.context.is_some() && args.format != TableFormat::Table {
        bail!(
            "--context is text for people; leave out -F, or take --top alone (-F json), and `decode -t` around its times"
        );
    }
    if args.top.is_some() && matches!(args.format, TableFormat::Csv | TableFormat::Ndjson) {
        bail!("csv and ndjson have rows of one kind, and not those of --top; -F json has them, as `slowest`");
    }
    if args.list {
        return list(&args.operation.presets()?, args.format);
    }
    let (operations, paths) = split(&args.files)?;
    let preset = args.operation.preset()?;
    // Before anything is opened, so that what is written wrong is told at once.
    question(&args.operation, &operations, &args.by, preset.as_ref())?;
    let short_names = args.names.as_deref().map_or(Ok(Names::default()), Names::load)?;
    let files = Files::open(&paths, &args.events, true)?;
    if args.context.is_some() && files.traces.iter().any(|input| input.progress().total.is_none()) {
        bail!("--context reads the trace twice, and a pipe can be read once; write it into a file");
    }
    if args.context.is_some() && args.top.is_some_and(|top| top > Slowest::MAX_CONTEXTS) {
        bail!("--context shows what went on around {} at most; take a smaller --top", Slowest::MAX_CONTEXTS);
    }
    let declared = load(files.events)?;
    let preset = preset.map(|preset| preset.suited(&declared));
    let preset = preset.as_ref();
    let question = Question { drops: args.drops, ..question(&args.operation, &operations, &args.by, preset)? };
    let events = names(&question, &declared, preset)?;
    let conditions = preset.map_or(Vec::new(), Preset::filters);
    let selection = args.records.selection(Globs::of_names(events.clone()), &conditions)?;
    selection.check(Some(&declared))?;
    if args.records.explain_filter {
        return explain_filter(&selection, Some(&declared));
    }
    let (stages, measure) = (question.chain.len(), Measure::new(question.chain.len(), args.drops));
    let mut asked = Asked {
        pairing: Pairing::new(question.clone(), &events, &declared),
        every: args.every.map(|length_ns| Every::new(length_ns, stages, args.drops, measure.budget())),
        measure,
        top: Top::new(args.top.unwrap_or_default(), args.drops),
        heat: args.heat.then(|| Heat::new(args.drops)),
    };
    let bar = Bar::watch(files.traces.iter().map(Input::progress).collect());
    let mut trace = Trace::new(files.traces, Some(declared), selection);
    trace.formats = args.formats.formats();
    trace.keeps_gaps = true;
    trace.for_each(|item| asked.take(&item))?;
    asked.finish()?;
    drop(bar);

    let Asked { mut pairing, measure, every, top, heat } = asked;
    pairing.groups.set_names(short_names);
    if args.raw {
        pairing.groups.forget_numbers();
    }
    let mut measured = measure.finish();
    let fails = args.drops == Drops::Fail && measured.straddling > 0;
    let whole = Whole::new(&pairing, &measured);
    let groups = measured.groups.iter_mut();
    let groups =
        groups.map(|group| Gated { name: pairing.groups.label(group.id), old: None, new: Some(&mut group.total) });
    let failures = gates.failures(None, whole, &mut groups.collect::<Vec<_>>());
    let style = terminal::style(args.ascii);
    let notes = every.as_ref().map_or(Vec::new(), Every::notes);
    let report = Report::new(&pairing, measured, every, top, args, preset, style);
    let mut output = Output::create(None, [])?;
    output.block.put(report.render(args.format)?);
    if let Some(heat) = heat.filter(|_| args.format == TableFormat::Table) {
        output.block.put(format!("\n{}", heat.draw(style)));
    }
    if let Some(context_ns) = args.context.filter(|_| args.format == TableFormat::Table) {
        let files = Files::open(&paths, &args.events, true)?;
        let declared = load(files.events)?;
        // All events, whatever -w says.
        let selection = args.records.selection(Globs::default(), &[])?;
        let selection = Selection { conditions: Conditions::default(), ..selection };
        let mut trace = Trace::new(files.traces, Some(declared), selection);
        trace.formats = args.formats.formats();
        output.block.put(report.top.context(&mut trace, &question, context_ns, args.raw)?);
    }
    output.finish()?;
    trace.say_findings();
    report.say_doubts(args.format);
    say_note(preset);
    say_why_nothing(&pairing, &trace, &args.records, preset);
    notes.iter().for_each(|note| say::note(note));
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

/// Latencies over time; with `exclude`, without those that events may be missing from.
struct Heat {
    drops: Drops,
    start_ns: u64,
    map: HeatMap,
    /// What would not count if it turned out that events are missing.
    pending: HeatMap,
}

impl Heat {
    fn new(drops: Drops) -> Self {
        Self { drops, start_ns: 0, map: HeatMap::new(), pending: HeatMap::new() }
    }

    #[inline]
    fn take(&mut self, out: &Out<'_>) {
        match out {
            Out::Pair(pair) if self.drops != Drops::Exclude => self.map.add(pair.end_ns, pair.end_ns - pair.begin_ns),
            Out::Pair(pair) if pair.straddles => {}
            Out::Pair(pair) => self.pending.add(pair.end_ns, pair.end_ns - pair.begin_ns),
            Out::Suspect => self.pending = HeatMap::new(),
            Out::Depth { .. } => {}
        }
    }

    fn draw(mut self, style: Style) -> String {
        self.map.append(&self.pending);
        self.map.draw(self.start_ns, style)
    }
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
    if let Some(heat) = heat {
        heat.take(out);
    }
}

fn list(presets: &Presets, format: TableFormat) -> Result<Outcome> {
    let mut rows = Rows::new(["preset", "exact", "operation", "on", "about"].map(Column::new));
    for (name, preset) in presets.iter() {
        let exact = if preset.exact { "yes" } else { "no" };
        rows.push(
            [name, exact, preset.operation(), preset.on().unwrap_or_default(), &preset.about]
                .map(|text| Cell::Text(text.to_owned()))
                .into(),
        );
    }
    let mut output = Output::create(None, [])?;
    output.block.put(rows.render(format)?);
    output.finish()?;
    Ok(Outcome::Good)
}
