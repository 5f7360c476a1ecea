//! `check`: is every byte of a trace accounted for?

use anyhow::Result;

use super::args::CheckArgs;
use crate::filter::Selection;
use crate::findings::{Outcome, count};
use crate::input::{Files, Input, load_events};
use crate::output::{Output, is_broken_pipe};
use crate::progress::Bar;
use crate::trace::Trace;

pub(crate) fn run(args: &CheckArgs) -> Result<Outcome> {
    let files = Files::open(&args.files.files, &args.files.events, false)?;
    let with_events = !files.events.is_empty();
    let declared = load_events(files.events)?;
    let bar = Bar::watch(files.traces.iter().map(Input::progress).collect());
    let mut trace = Trace::new(files.traces, declared, Selection::default());
    trace.formats = args.files.formats.formats();
    trace.for_each(|_| Ok(()))?;
    drop(bar);
    trace.say_findings();

    let longer = trace.kinds.iter().any(|kind| kind.misfits.longer.records > 0);
    let outcome = trace.outcome(true).max(if longer { Outcome::Faulty } else { Outcome::Good });
    let verdict = match outcome {
        Outcome::Good if with_events => "sound, and as declared",
        Outcome::Good => "sound",
        Outcome::Faulty => "faulty",
        Outcome::Failed => "not readable",
    };
    let only_torn = trace.outcome(false) == Outcome::Good && !trace.findings.torn.is_empty() && !longer;
    let reason = if only_torn { "ends inside a record; " } else { "" };
    let mappings = count(trace.files.iter().map(|file| file.mappings).sum(), "mapping");
    let events = count(trace.events_selected, "event");
    let bytes: u64 = trace.files.iter().map(|file| file.bytes).sum();
    let gaps = count(trace.findings.gaps, "dropped record");
    let mut output = Output::create(None, [])?;
    output.block.put(format!("{verdict}: {reason}{mappings}, {events}, {gaps}, {bytes} bytes understood\n"));
    match output.finish() {
        // The exit code says it, too.
        Err(error) if !is_broken_pipe(&error) => Err(error),
        _ => Ok(outcome),
    }
}
