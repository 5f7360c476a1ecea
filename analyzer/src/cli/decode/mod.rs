//! `decode`: prints events.

mod sink;

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Result, anyhow, bail};
use simpletrace_format::events::{EventDecl, EventIndex};

use self::sink::Sink;
use super::args::{DecodeArgs, Format, ShownClock};
use super::explain_filter;
use crate::filter::{DROPPED, Globs};
use crate::findings::Outcome;
use crate::input::{Files, Input, load_events};
use crate::progress::Bar;
use crate::render::WallClock;
use crate::say;
use crate::trace::{Item, Trace};

pub(crate) fn run(args: &DecodeArgs) -> Result<Outcome> {
    let selection = args.select.selection()?;
    let wall = (args.clock == ShownClock::Wall).then(WallClock::default);
    if wall.is_some() && matches!(args.format, Format::Compat | Format::Log) {
        bail!(
            "compat and log print no time of a clock, so --clock wall is not for them; take text, table, csv, json or ndjson"
        );
    }
    let files = Files::open(&args.files.files, &args.files.events, true)?;
    // Whatever can be wrong with the other files is known before the output is made, and an old one lost.
    let paths: Vec<_> = files.paths().map(Path::to_owned).collect();
    let declared = load_events(files.events)?;
    selection.check(declared.as_ref())?;
    if args.select.records.explain_filter {
        return explain_filter(&selection, declared.as_ref());
    }
    let only = declared.as_ref().and_then(|declared| only_event(&selection.globs, declared));
    let gaps_shown = selection.admits_dropped();
    let mut sink = Sink::create(args, only, wall, gaps_shown, paths.iter().map(PathBuf::as_path))?;
    if declared.is_none() {
        say::warning(
            "no trace-events file was given or found, so arguments are shown as raw words; \
             take the trace-events-all of the build that wrote the trace",
        );
    }
    // Not among the events on a terminal.
    let is_stdout = sink.printed_to().is_some_and(|output| output.borrow().is_stdout());
    let on_terminal = is_stdout && std::io::stdout().is_terminal();
    let bar = (!on_terminal).then(|| Bar::watch(files.traces.iter().map(Input::progress).collect()));
    let mut trace = Trace::new(files.traces, declared, selection);
    trace.formats = args.files.formats.formats();
    match sink.printed_to() {
        Some(output) => {
            let waiting = Rc::clone(output);
            trace.before_wait = Some(Rc::new(move || waiting.borrow_mut().flush()));
        }
        // Files of columns say what is missing from them even if it is not among their rows.
        None => trace.keeps_gaps = true,
    }
    // Of a file that does not say how to tell the time of day that is asked for.
    let mut timeless: Option<String> = None;
    let read = trace.for_each(|item| match item {
        Item::Event(event) if timeless.is_none() => sink.event(&event),
        Item::Gap(gap) if timeless.is_none() => sink.gap(&gap),
        Item::Missing(missing) => {
            sink.missing(&missing);
            Ok(())
        }
        item => tell_time(&item, sink.wall(), &mut timeless),
    });
    let timeless = match read {
        Err(error) if error.is::<Timeless>() => timeless,
        read => {
            read?;
            None
        }
    };
    // What is printed is well-formed in any case; a file of columns is there only if it is of use.
    if timeless.is_none() || sink.printed_to().is_some() {
        sink.finish(&trace.files)?;
    }
    drop(bar);
    trace.say_findings();
    if let Some(file) = timeless {
        return Err(anyhow!(
            "{file} does not say at what time of day it was begun (no anchor_ns before its first event; QEMU writes none); \
             leave out --clock wall"
        ));
    }
    trace.say_if_nothing_selected();
    Ok(trace.outcome(args.strict))
}

/// Sets the clock that times of day are told by, if they are; `timeless` is the file that does not say how.
#[cold]
fn tell_time(item: &Item<'_>, wall: Option<&mut WallClock>, timeless: &mut Option<String>) -> Result<()> {
    let Some(wall) = wall else { return Ok(()) };
    match item {
        Item::Event(_) | Item::Gap(_) => bail!(Timeless),
        Item::Section(start) => {
            wall.set_offset(None);
            *timeless = Some(start.file.to_owned());
        }
        Item::Fact(fact) => {
            wall.set_offset(fact.facts.wall_offset_ns());
            if fact.facts.anchor().is_some() {
                *timeless = None;
            }
        }
        Item::Start(timestamp_ns) => wall.start(*timestamp_ns),
        Item::Mapping(_) | Item::Missing(_) | Item::Outside(_) => {}
    }
    Ok(())
}

/// There are events, but the time of day is not known.
#[derive(Debug)]
struct Timeless;

impl std::fmt::Display for Timeless {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the time of day is not known")
    }
}

/// The event that can have columns of its own: asked for by its plain name, alone, and declared.
fn only_event(globs: &Globs, declared: &EventIndex) -> Option<EventDecl> {
    globs.only_name().filter(|name| *name != DROPPED).and_then(|name| declared.get(name)?.event)
}
