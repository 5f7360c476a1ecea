//! `slice`: writes a part of one or more traces into a file of its own.

use std::path::Path;

use anyhow::Result;

use super::args::SliceArgs;
use super::explain_filter;
use crate::findings::Outcome;
use crate::input::{Files, Input, load_events};
use crate::progress::Bar;
use crate::rewrite::{Rewriter, require_events};
use crate::trace::Trace;

pub(crate) fn run(args: &SliceArgs) -> Result<Outcome> {
    let selection = args.select.selection()?;
    let files = Files::open(&args.files.files, &args.files.events, true)?;
    let formats = args.files.formats.formats();
    require_events(&files, formats)?;
    let common = files.common_facts();
    let paths = files.paths().map(Path::to_owned).collect();
    let declared = load_events(files.events)?;
    selection.check(declared.as_ref())?;
    if args.select.records.explain_filter {
        return explain_filter(&selection, declared.as_ref());
    }
    let bar = Bar::watch(files.traces.iter().map(Input::progress).collect());
    let mut trace = Trace::new(files.traces, declared, selection);
    trace.formats = formats;
    trace.keeps_gaps = true;
    let mut rewriter = Rewriter::new(&args.output, paths, false);
    if let Some(common) = common {
        rewriter.set_facts(common);
    }
    trace.for_each(|item| rewriter.write(&item))?;
    if trace.outcome(false) != Outcome::Failed || rewriter.has_begun() {
        rewriter.finish()?;
    }
    drop(bar);
    trace.say_findings();
    trace.say_if_nothing_selected();
    if rewriter.has_begun() {
        rewriter.say(&trace.findings);
    }
    let complete = if rewriter.is_complete() { Outcome::Good } else { Outcome::Faulty };
    Ok(trace.outcome(args.strict).max(complete))
}
