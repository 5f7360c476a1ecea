//! `repair`: writes what is intact in a trace into a sound file.

use std::path::Path;

use anyhow::{Result, bail};

use super::args::RepairArgs;
use crate::filter::Selection;
use crate::findings::Outcome;
use crate::input::{Files, Input, load_events};
use crate::progress::Bar;
use crate::rewrite::{Rewriter, require_events};
use crate::trace::Trace;

pub(crate) fn run(args: &RepairArgs) -> Result<Outcome> {
    let files = Files::open(&args.files.files, &args.files.events, true)?;
    if files.trace_count > 1 {
        bail!("repair takes one trace; `simpletrace-rs slice` makes one of several");
    }
    let formats = args.files.formats.formats();
    require_events(&files, formats)?;
    let common = files.common_facts();
    let paths = files.paths().map(Path::to_owned).collect();
    let declared = load_events(files.events)?;
    let bar = Bar::watch(files.traces.iter().map(Input::progress).collect());
    let mut trace = Trace::new(files.traces, declared, Selection::default());
    trace.formats = formats;
    let mut rewriter = Rewriter::new(&args.output, paths, true);
    if let Some(common) = common {
        rewriter.set_facts(common);
    }
    trace.for_each(|item| rewriter.write(&item))?;
    if trace.outcome(false) != Outcome::Failed || rewriter.has_begun() {
        rewriter.finish()?;
    }
    drop(bar);
    trace.say_findings();
    if rewriter.has_begun() {
        rewriter.say(&trace.findings);
    }
    let names_left_out = trace.findings.names_full + trace.findings.special_mapped > 0;
    Ok(match trace.outcome(false) {
        Outcome::Failed => Outcome::Failed,
        _ if names_left_out || !rewriter.is_complete() => Outcome::Faulty,
        _ => Outcome::Good,
    })
}
