//! `diff --first`: the first record where two traces part.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;

use anyhow::{Context as _, Result, anyhow};
use simpletrace_format::Value;

use super::super::args::{Colour, DiffArgs};
use super::super::explain_filter;
use super::Side;
use crate::filter::Selection;
use crate::findings::{Outcome, count};
use crate::formats::Formats;
use crate::input::{Input, open_two};
use crate::output::Output;
use crate::progress::Bar;
use crate::render::{Block, Render as _, Text};
use crate::say;
use crate::trace::{Event, Item, Trace};

/// Records before the first that differs that are shown.
const CONTEXT: usize = 5;
/// Records that are handed over at once.
const BATCH: usize = 256;

pub(super) fn run(args: &DiffArgs) -> Result<Outcome> {
    let [old, new] = open_two(&args.files, &args.events)?;
    let [old, new] = [Side::open(old)?, Side::open(new)?];
    let selection = args.records.selection(args.globs()?, &[])?;
    selection.check(Some(&old.declared))?;
    selection.check(Some(&new.declared))?;
    if args.records.explain_filter {
        return explain_filter(&selection, Some(&old.declared));
    }
    let bar = Bar::watch(old.traces.iter().chain(&new.traces).map(Input::progress).collect());
    let formats = args.formats.formats();
    let (sender, receiver) = sync_channel(4);
    let (speak, may_speak) = channel();
    let names = [old.name.clone(), new.name.clone()];
    let of_old = selection.clone();
    let records = || Records::new(args.raw);
    let of_thread = records();
    let reader = thread::Builder::new()
        .name("old".to_owned())
        .spawn(move || read(old, of_old, formats, of_thread, &sender, &may_speak))
        .context("cannot start the reading thread")?;
    let name = new.name.clone();
    let mut trace = trace(new, selection, formats);
    let mut comparison = Comparison::new(receiver);
    let mut records = records();
    let all = trace.for_each(|item| match item {
        Item::Event(event) => comparison.take(&event, records.make(&event)),
        item => {
            records.miss(&item);
            Ok(())
        }
    });
    match all {
        Err(error) if !error.is::<Stop>() => return Err(error),
        _ => {}
    }
    let mut end = comparison.finish();
    drop(bar);
    // The other thread says what it has found first.
    let _ = speak.send(());
    let (outcome, old_missing) = reader.join().map_err(|_| anyhow!("the reading thread panicked"))??;
    // What is missing behind the last record of one is before the place where the other goes on.
    match end.how {
        How::NewGoesOn(_) => end.missing[0].add(old_missing, end.same),
        How::OldGoesOn(_) => end.missing[1].add(records.missing, end.same),
        How::Same | How::Parts { .. } => {}
    }
    let mut output = Output::create(None, [])?;
    let mut text = format!("--- {}\n+++ {}\n", names[0], names[1]);
    end.show(&mut text);
    output.block.put(text);
    output.finish()?;
    say::about(&name);
    trace.say_findings();
    say::about("");
    let is_nothing_compared = end.same == 0 && !matches!(end.how, How::Parts { .. });
    if is_nothing_compared {
        let which = match end.how {
            How::OldGoesOn(_) => format!("{} has", names[1]),
            How::NewGoesOn(_) => format!("{} has", names[0]),
            How::Same | How::Parts { .. } => "both have".to_owned(),
        };
        say::warning(&format!("nothing was compared: {which} no record of what is asked for"));
    }
    let goes_on = matches!(end.how, How::OldGoesOn(_) | How::NewGoesOn(_));
    let parts = if matches!(end.how, How::Parts { .. }) || is_nothing_compared && goes_on {
        Outcome::Faulty
    } else {
        Outcome::Good
    };
    Ok(outcome.max(trace.outcome(false)).max(parts))
}

fn trace(side: Side, selection: Selection, formats: Formats) -> Trace {
    let mut trace = Trace::new(side.traces, Some(side.declared), selection);
    trace.formats = formats;
    trace.keeps_gaps = true;
    trace
}

/// Reads a trace to its end, or until nobody takes its records any more; waits before it says what it has found. Returns also in how many places
/// events are missing behind the last record.
fn read(
    side: Side,
    selection: Selection,
    formats: Formats,
    mut records: Records,
    sender: &SyncSender<Vec<Record>>,
    may_speak: &Receiver<()>,
) -> Result<(Outcome, u64)> {
    let name = side.name.clone();
    let mut trace = trace(side, selection, formats);
    let mut batch = Vec::new();
    let all = trace.for_each(|item| {
        let Item::Event(event) = item else {
            records.miss(&item);
            return Ok(());
        };
        batch.push(records.make(&event));
        if batch.len() < BATCH { Ok(()) } else { sender.send(std::mem::take(&mut batch)).map_err(|_| Stop.into()) }
    });
    match all {
        Err(error) if !error.is::<Stop>() => return Err(error),
        _ => {}
    }
    // Nobody may want the rest.
    let _ = sender.send(batch);
    let _ = sender.send(Vec::new());
    let _ = may_speak.recv();
    say::about(&name);
    trace.say_findings();
    Ok((trace.outcome(false), records.missing))
}

/// Ends the reading of a trace.
#[derive(Debug)]
struct Stop;

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no more is wanted")
    }
}

impl std::error::Error for Stop {}

/// A record, as it is compared and as it is shown.
struct Record {
    name: String,
    values: Vec<Shape>,
    text: String,
    /// In how many places events are missing between the record before and this one.
    missing: u64,
}

/// A value as it is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Shape {
    Word(u64),
    Text(Vec<u8>),
    /// The how-manieth pointer it is; 0 is null.
    Pointer(usize),
    /// What no declaration accounts for.
    Bytes(Vec<u8>),
}

/// Makes records of a trace's events.
struct Records {
    /// The numbers of pointers by first appearance.
    pointers: HashMap<u64, usize>,
    text: Text,
    block: Block,
    /// In how many places events are missing since the last record.
    missing: u64,
}

impl Records {
    fn new(is_raw: bool) -> Self {
        Self {
            pointers: HashMap::from([(0, 0)]),
            text: Text::new(Colour::on_stdout(), None, is_raw),
            block: Block::with_capacity(0),
            missing: 0,
        }
    }

    /// Takes in what is no event.
    fn miss(&mut self, item: &Item<'_>) {
        match item {
            // One without a count says where an earlier one ends.
            Item::Gap(gap) => self.missing += u64::from(gap.record.count > 0),
            Item::Missing(_) => self.missing += 1,
            _ => {}
        }
    }

    fn make(&mut self, event: &Event<'_>) -> Record {
        let mut args = event.record.payload.args();
        let mut values = Vec::with_capacity(event.kind.args().len());
        for arg in event.kind.args() {
            let Some(value) = args.next(arg.ty) else { break };
            values.push(match value {
                Value::Pointer(word) => {
                    let next = self.pointers.len();
                    Shape::Pointer(*self.pointers.entry(word).or_insert(next))
                }
                Value::String(bytes) => Shape::Text(bytes.to_vec()),
                value => Shape::Word(value.word().unwrap_or_default()),
            });
        }
        if !args.left_over().is_empty() {
            values.push(Shape::Bytes(args.left_over().to_vec()));
        }
        self.block.clear();
        self.text.event(event, &mut self.block);
        let text = String::from_utf8_lossy(self.block.as_bytes()).into_owned();
        Record { name: event.kind.name.clone(), values, text, missing: std::mem::take(&mut self.missing) }
    }
}

/// Two traces side by side.
struct Comparison {
    olds: Receiver<Vec<Record>>,
    batch: std::vec::IntoIter<Record>,
    same: u64,
    /// The last of them, as the old trace has them.
    before: VecDeque<String>,
    missing: [Places; 2],
    how: Option<How>,
}

/// Places where events are missing.
#[derive(Clone, Copy, Default)]
struct Places {
    count: u64,
    /// So many records stand before the last of them.
    last: u64,
}

impl Places {
    fn add(&mut self, count: u64, behind: u64) {
        if count > 0 {
            self.count += count;
            self.last = behind;
        }
    }
}

/// How two traces end that have begun alike.
enum How {
    Same,
    OldGoesOn(Record),
    NewGoesOn(Record),
    Parts { old: Record, new: Record, why: String },
}

struct End {
    same: u64,
    before: VecDeque<String>,
    /// Of the old trace, and of the new one.
    missing: [Places; 2],
    how: How,
}

impl Comparison {
    fn new(olds: Receiver<Vec<Record>>) -> Self {
        Self {
            olds,
            batch: Vec::new().into_iter(),
            same: 0,
            before: VecDeque::new(),
            missing: [Places::default(); 2],
            how: None,
        }
    }

    fn next(&mut self) -> Option<Record> {
        if let Some(old) = self.batch.next() {
            return Some(old);
        }
        self.batch = self.olds.recv().unwrap_or_default().into_iter();
        self.batch.next()
    }

    /// Takes the next record of the new trace.
    fn take(&mut self, event: &Event<'_>, new: Record) -> Result<()> {
        self.missing[1].add(new.missing, self.same);
        let Some(old) = self.next() else {
            self.how = Some(How::NewGoesOn(new));
            return Err(Stop.into());
        };
        self.missing[0].add(old.missing, self.same);
        if old.name == new.name && old.values == new.values {
            self.same += 1;
            if self.before.len() == CONTEXT {
                self.before.pop_front();
            }
            self.before.push_back(old.text);
            return Ok(());
        }
        let why = why(event, &old, &new);
        self.how = Some(How::Parts { old, new, why });
        Err(Stop.into())
    }

    fn finish(mut self) -> End {
        let how = self.how.take();
        let how = how.unwrap_or_else(|| self.next().map_or(How::Same, How::OldGoesOn));
        if let How::OldGoesOn(old) = &how {
            self.missing[0].add(old.missing, self.same);
        }
        End { same: self.same, before: self.before, missing: self.missing, how }
    }
}

/// What is different.
fn why(event: &Event<'_>, old: &Record, new: &Record) -> String {
    if old.name != new.name {
        return "the events differ".to_owned();
    }
    let place = old.values.iter().zip(&new.values).position(|(old, new)| old != new);
    let Some(place) = place else { return "one has more arguments".to_owned() };
    let name = event.kind.args().get(place).map_or("what is not declared", |arg| arg.name.as_str());
    match (&old.values[place], &new.values[place]) {
        (Shape::Pointer(old), Shape::Pointer(new)) => {
            let which = |number: usize| if number == 0 { "null".to_owned() } else { format!("pointer {number}") };
            format!("{name} differs: {} by first appearance, and {}", which(*old), which(*new))
        }
        _ => format!("{name} differs"),
    }
}

impl End {
    fn show(&self, text: &mut String) {
        let same = count(self.same, "record");
        let (what, old, new) = match &self.how {
            How::Same => (format!("{same}, and they are the same"), None, None),
            How::OldGoesOn(old) => {
                (format!("the same as far as the new trace goes: {same}; the old one goes on"), Some(old), None)
            }
            How::NewGoesOn(new) => {
                (format!("the same as far as the old trace goes: {same}; the new one goes on"), None, Some(new))
            }
            How::Parts { old, new, why } => (format!("they part behind {same}: {why}"), Some(old), Some(new)),
        };
        *text += &format!("{what}\n");
        if old.is_some() || new.is_some() {
            for (name, places) in ["old", "new"].into_iter().zip(self.missing).filter(|(_, places)| places.count > 0) {
                let last = if places.count > 1 { "the last one " } else { "" };
                let (places, behind) = (count(places.count, "place"), count(places.last, "record"));
                *text += &format!("{name}: events are missing before here, in {places}, {last}behind {behind}\n");
            }
            self.before.iter().for_each(|line| *text += &format!("  {line}"));
        }
        *text += &old.map_or(String::new(), |old| format!("- {}", old.text));
        *text += &new.map_or(String::new(), |new| format!("+ {}", new.text));
    }
}
