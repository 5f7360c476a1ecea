//! What an event is in an operation, and what is taken out of its records.

use simpletrace_format::events::ArgType;
use simpletrace_format::{EventRecord, Value};

use super::Question;
use super::chain::Side;
use super::opens::ANY_STAR;
use crate::kinds::Kind;

/// The most parts of a key.
pub(crate) const MAX_KEY: usize = 4;
/// The most arguments to group by.
pub(crate) const MAX_BY: usize = 3;
/// No slot.
const NONE: u8 = u8::MAX;

/// What a record is in an operation.
pub(crate) struct Role {
    pub(crate) stage: usize,
    /// The number of what the `*` of its pattern stands for.
    pub(crate) star: u16,
    picks: Picks,
}

/// What is taken out of the records of an event.
pub(crate) struct Picks {
    steps: Vec<Step>,
    /// Where the process's id goes.
    pid: Slots,
    /// Where the event's name goes.
    event_by: u8,
}

/// One step through a payload.
#[derive(Debug, Clone, Copy)]
enum Step {
    SkipWords(usize),
    SkipText,
    Take(ArgType, Slots),
}

/// Where a value goes.
#[derive(Debug, Clone, Copy)]
struct Slots {
    key: u8,
    by: u8,
}

/// What was taken out of a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken<'a> {
    pub(crate) key: [Value<'a>; MAX_KEY],
    pub(crate) by: [Option<Value<'a>>; MAX_BY],
}

impl Role {
    /// The roles of the events of a kind, the last stage first: what ends one operation and begins the next does so in that order. An event without an
    /// argument that the key needs has none.
    pub(crate) fn of(kind: &Kind, question: &Question, mut number: impl FnMut(&str) -> u16) -> Vec<Self> {
        let mut roles: Vec<_> = question
            .chain
            .places(&kind.name)
            .into_iter()
            .filter_map(|place| Self::at(kind, place.stage, place.star.map_or(ANY_STAR, &mut number), question))
            .collect();
        roles.reverse();
        roles
    }

    fn at(kind: &Kind, stage: usize, star: u16, question: &Question) -> Option<Self> {
        let key = question.on.iter().map(|part| part.arg(&kind.name, stage));
        Some(Self { stage, star, picks: Picks::new(kind, key, &question.by, stage)? })
    }

    /// Takes what is needed out of a record; `None` if it is too short.
    #[inline]
    pub(crate) fn take<'a>(&self, record: &EventRecord<'a>, name: &'a str) -> Option<Taken<'a>> {
        self.picks.take(record, name)
    }
}

impl Picks {
    /// The arguments of a key, and those to group by, of an event at a stage; `None` if it lacks one of the former.
    pub(crate) fn new<'n>(
        kind: &Kind,
        key: impl Iterator<Item = Option<&'n str>>,
        by: &[By],
        stage: usize,
    ) -> Option<Self> {
        let args = kind.args();
        // For each argument, where it goes.
        let mut slots = vec![Slots { key: NONE, by: NONE }; args.len()];
        let mut pid = Slots { key: NONE, by: NONE };
        let mut event_by = NONE;
        let find = |name: &str| args.iter().position(|arg| arg.name == name);
        for (slot, name) in key.enumerate() {
            let name = name?;
            match find(name) {
                Some(arg) => slots[arg].key = slot as u8,
                None if name == "pid" => pid.key = slot as u8,
                None => return None,
            }
        }
        for (slot, by) in by.iter().enumerate().filter(|(_, by)| by.side.is_of(&kind.name, stage)) {
            match (find(&by.side.arg), &*by.side.arg) {
                (Some(arg), _) => slots[arg].by = slot as u8,
                (None, "pid") => pid.by = slot as u8,
                (None, "event") => event_by = slot as u8,
                (None, _) => {}
            }
        }
        Some(Self { steps: steps(kind, &slots), pid, event_by })
    }

    /// Takes what is needed out of a record; `None` if it is too short.
    #[inline]
    pub(crate) fn take<'a>(&self, record: &EventRecord<'a>, name: &'a str) -> Option<Taken<'a>> {
        let mut taken = Taken { key: [Value::Unsigned(0); MAX_KEY], by: [None; MAX_BY] };
        let mut args = record.payload.args();
        for step in &self.steps {
            match *step {
                Step::SkipWords(words) => args.skip_words(words)?,
                Step::SkipText => _ = args.string()?,
                Step::Take(ty, slots) => taken.put(slots, args.next(ty)?),
            }
        }
        taken.put(self.pid, Value::Unsigned(record.pid.into()));
        taken.put(Slots { key: NONE, by: self.event_by }, Value::String(name.as_bytes()));
        Some(taken)
    }
}

impl<'a> Taken<'a> {
    #[inline]
    fn put(&mut self, slots: Slots, value: Value<'a>) {
        if let Some(key) = self.key.get_mut(usize::from(slots.key)) {
            *key = value;
        }
        if let Some(by) = self.by.get_mut(usize::from(slots.by)) {
            *by = Some(value);
        }
    }
}

/// The way to the arguments that go somewhere.
fn steps(kind: &Kind, slots: &[Slots]) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut words = 0;
    for (arg, &slots) in kind.args().iter().zip(slots) {
        let is_text = arg.ty.is_string() && kind.has_text();
        let goes_nowhere = (slots.key, slots.by) == (NONE, NONE);
        if goes_nowhere && !is_text {
            words += 1;
            continue;
        }
        if words > 0 {
            steps.push(Step::SkipWords(std::mem::take(&mut words)));
        }
        steps.push(if goes_nowhere { Step::SkipText } else { Step::Take(arg.ty, slots) });
    }
    // What stands behind the last argument that is needed is of no interest.
    while matches!(steps.last(), Some(Step::SkipWords(_) | Step::SkipText)) {
        steps.pop();
    }
    steps
}

/// What to group by: an argument, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct By {
    pub(crate) text: String,
    pub(crate) side: Side,
    pub(crate) is_log2: bool,
}

impl By {
    /// Takes what stands on the command line: `ARG`, `EVENT.ARG`, `ARG:log2`; `pid` and `event` are known for every record.
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        let (side, is_log2) = match text.split_once(':') {
            Some((side, "log2")) => (side, true),
            Some((_, how)) => anyhow::bail!("--by {text}: there is no way to group called {how:?}; log2 is one"),
            None => (text, false),
        };
        Ok(Self { text: text.to_owned(), side: Side::parse(side)?, is_log2 })
    }
}
