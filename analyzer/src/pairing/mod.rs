//! Pairing: which records belong to one operation, and when it began and ended.
//!
//! Records of the events that a [`Question`] names are put in order of time ([`order`]), matched by their keys ([`engine`]), and handed on as
//! operations with all their stages. Memory is bounded by the operations under way and what is held back for the order.

mod chain;
mod engine;
mod opens;
mod order;
mod role;

use std::fmt;

use anyhow::{Result, bail};
use clap::ValueEnum;
use foldhash::fast::RandomState;
use simpletrace_format::events::{ArgType, EventIndex, nearest};
use simpletrace_format::{EventRecord, Value};

pub(crate) use chain::{Chain, KeyPart, Side};
pub(crate) use engine::{Counts, Discipline};
pub(crate) use order::{Order, late_means};
pub(crate) use role::{By, MAX_BY, MAX_KEY, Picks};

use crate::fit::Fit;
use crate::groups::{GroupId, GroupValue, Groups};
use crate::numbers::Numbers;
use crate::render::Cell;
use crate::trace::{Event, Item, Outside};
use engine::{Begun, Bytes, Closed, Engine, Pair};
use opens::{ANY_STAR, Tag};
use role::Role;

/// What is asked of a trace.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) chain: Chain,
    pub(crate) on: Vec<KeyPart>,
    pub(crate) by: Vec<By>,
    pub(crate) discipline: Discipline,
    pub(crate) drops: Drops,
}

/// What becomes of operations that events are missing from, or may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Drops {
    /// They count as any other, and it is said how many they are
    #[default]
    Keep,
    /// They are left out
    Exclude,
    /// They count, and the exit code is 1
    Fail,
}

/// What pairs are that straddle a gap.
pub(crate) fn straddling_means(drops: Drops) -> &'static str {
    match drops {
        Drops::Exclude => "pairs from which events are missing, or may be; left out",
        Drops::Keep | Drops::Fail => "pairs from which events are missing, or may be",
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.chain)?;
        for (place, part) in self.on.iter().enumerate() {
            write!(f, "{}{part}", if place == 0 { " on " } else { "," })?;
        }
        Ok(())
    }
}

impl Question {
    /// What is asked, if nothing else is said.
    pub(crate) fn new(chain: Chain, on: Vec<KeyPart>, by: Vec<By>) -> Self {
        Self { chain, on, by, discipline: Discipline::default(), drops: Drops::default() }
    }

    /// Checks the question against the declarations, and says which events it is about. One that is declared for each stage is enough if others `may_lack`.
    ///
    /// # Errors
    ///
    /// An event that is neither declared nor a pattern; an argument that an event of a plain name does not have, or that none has.
    pub(crate) fn names(&self, declared: &EventIndex, may_lack: bool) -> Result<Vec<String>> {
        for name in self.chain.plain_names().filter(|_| !may_lack) {
            if !declared.contains(name) {
                let nearest =
                    declared.nearest(name).map_or(String::new(), |nearest| format!("; did you mean {nearest}?"));
                bail!("no event is called {name}{nearest}");
            }
        }
        if self.on.len() > MAX_KEY {
            bail!("--on has {} parts, and the most is {MAX_KEY}", self.on.len());
        }
        let mut names: Vec<String> = Vec::new();
        let mut of_chain: Vec<_> = declared.names().filter(|name| !self.chain.places(name).is_empty()).collect();
        // Whatever order a hash table has them in, the same fault is told.
        of_chain.sort_unstable();
        for name in of_chain {
            // A faulty declaration is told where its records are.
            let Some(event) = declared.get(name).and_then(|found| found.event) else { continue };
            let args: Vec<_> = event.args.iter().map(|arg| arg.name.as_str()).collect();
            let is_plain = self.chain.plain_names().any(|plain| plain == name);
            let has = |arg: &str| arg == "pid" || args.contains(&arg);
            for (place, part) in
                self.chain.places(name).iter().flat_map(|place| self.on.iter().map(move |part| (place, part)))
            {
                match part.arg(name, place.stage) {
                    Some(arg) if is_plain && !has(arg) => {
                        bail!("{}", no_such_arg(&format!("{name} has no"), arg, &args))
                    }
                    None if is_plain => bail!("--on {part} says of no argument of {name}; write EVENT.ARG=EVENT.ARG"),
                    _ => {}
                }
            }
            names.push(name.to_owned());
        }
        for stage in 0..self.chain.len() {
            if !names.iter().any(|name| self.chain.places(name).iter().any(|place| place.stage == stage)) {
                bail!("no event that is declared matches {}", self.chain.stage(stage));
            }
        }
        self.check_types(&names, declared)?;
        check_by(&self.by, &names, declared, |side, name| {
            self.chain.places(name).iter().any(|place| side.is_of(name, place.stage))
        })?;
        Ok(names)
    }

    /// Checks that no part of the key is text at one stage and a number at another, so that it would never match.
    fn check_types(&self, names: &[String], declared: &EventIndex) -> Result<()> {
        for part in &self.on {
            // Of each stage, whether it has text and whether it has numbers.
            let mut has = vec![[false; 2]; self.chain.len()];
            for name in names {
                let Some(event) = declared.get(name).and_then(|found| found.event) else { continue };
                for place in self.chain.places(name) {
                    let arg = part.arg(name, place.stage).and_then(|arg| event.args.iter().find(|own| own.name == arg));
                    if let Some(arg) = arg {
                        has[place.stage][usize::from(!arg.ty.is_string())] = true;
                    }
                }
            }
            let text = has.iter().position(|has| *has == [true, false]);
            let number = has.iter().position(|has| *has == [false, true]);
            if let (Some(text), Some(number)) = (text, number) {
                let [text, number] = [text, number].map(|stage| self.chain.stage(stage));
                bail!("--on {part} is text in {text} and a number in {number}, and these are never equal");
            }
        }
        Ok(())
    }

    /// Whether keys have text in them, or more parts than two words hold.
    fn needs_long_keys(&self, names: &[String], declared: &EventIndex) -> bool {
        let words = self.on.len() + usize::from(self.chain.patterns().any(|text| text.contains('*')));
        let is_text = |name: &String| {
            let Some(event) = declared.get(name).and_then(|found| found.event) else { return false };
            self.chain.places(name).iter().any(|place| {
                let mut args = self.on.iter().filter_map(|part| part.arg(name, place.stage));
                args.any(|wanted| event.args.iter().any(|arg| arg.name == wanted && arg.ty.is_string()))
            })
        };
        words > 2 || names.iter().any(is_text)
    }
}

/// Checks what is grouped by against the declarations of events; an argument `is_of` an event or not.
///
/// # Errors
///
/// An argument that none of them has, or too many.
pub(crate) fn check_by(
    by: &[By],
    names: &[String],
    declared: &EventIndex,
    is_of: impl Fn(&Side, &str) -> bool,
) -> Result<()> {
    if by.len() > MAX_BY {
        bail!("--by has {} arguments, and the most is {MAX_BY}", by.len());
    }
    if let Some(by) = by.iter().find(|by| by.is_log2 && by.side.arg == "event") {
        bail!("--by {}: the name of an event has no powers of two; --by event", by.text);
    }
    for by in by.iter().filter(|by| !matches!(&*by.side.arg, "pid" | "event")) {
        let event = |name: &String| declared.get(name).and_then(|found| found.event);
        let has = |name: &String| {
            is_of(&by.side, name)
                && event(name).is_some_and(|event| event.args.iter().any(|arg| arg.name == by.side.arg))
        };
        if !names.iter().any(has) {
            let all: Vec<_> = names.iter().filter_map(event).flat_map(|event| event.args).map(|arg| arg.name).collect();
            let all: Vec<_> = all.iter().map(String::as_str).collect();
            bail!("--by {}: {}", by.text, no_such_arg("none of the events has an", &by.side.arg, &all));
        }
        let is_number = |name: &String| {
            let arg = event(name).and_then(|event| event.args.into_iter().find(|arg| arg.name == by.side.arg));
            arg.is_some_and(|arg| !arg.ty.is_string())
        };
        if by.is_log2 && !names.iter().filter(|name| has(name)).any(is_number) {
            bail!(
                "--by {}: {} is text, and has no powers of two; --by {}",
                by.text,
                by.side.arg,
                by.text.trim_end_matches(":log2")
            );
        }
    }
    Ok(())
}

/// Says that somebody `lacks` an argument, with the nearest of those that there are.
pub(crate) fn no_such_arg(lacks: &str, arg: &str, args: &[&str]) -> String {
    let mut args = args.to_vec();
    args.sort_unstable();
    args.dedup();
    /// As many names as are listed.
    const SHOWN: usize = 12;

    let hint = match nearest(arg, args.iter().copied()) {
        Some(nearest) => format!("did you mean {nearest}?"),
        None if args.is_empty() => "there are none".to_owned(),
        None if args.len() > SHOWN => {
            format!("there are {} others, and `simpletrace-rs events -s TEXT` finds them", args.len())
        }
        None => format!("there are {}", args.join(", ")),
    };
    format!("{lacks} argument {arg}; {hint}")
}

/// What pairing hands on.
pub(crate) enum Out<'a> {
    Pair(Finished<'a>),
    /// Events are missing somewhere within the time since the last of these, or since the beginning: whatever was handed on since then and ended
    /// within may not be what it seems.
    Suspect,
    /// What a record, or what is known of missing events, does to how many operations are under way, if that [was asked for](Pairing::tell_depth).
    Depth {
        time_ns: u64,
        change: Change,
    },
}

/// What happens to the operations that are under way. Their groups are those of their beginnings.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Change {
    Nothing,
    Begins(GroupId),
    Ends(Ended),
    /// One ends, of which there is no record, as another one begins.
    Replaces(Ended, GroupId),
    GapBegins,
    GapEnds,
    /// Another file begins, which may not go on where the one before ends.
    Border,
    /// Events are missing somewhere since the last time.
    Suspect,
}

/// An operation that is under way no more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    pub(crate) begin_ns: u64,
    pub(crate) group: GroupId,
}

/// An operation with all its stages.
#[derive(Clone, Copy)]
pub(crate) struct Finished<'a> {
    pub(crate) begin_ns: u64,
    /// The times of the stages between.
    pub(crate) hops_ns: &'a [u64],
    pub(crate) end_ns: u64,
    pub(crate) group: GroupId,
    /// Whether events are known to be missing from the time between its begin and its end, or from what its key has gone through since nothing was
    /// under way; or its records are not of the same file.
    pub(crate) straddles: bool,
    key: &'a dyn Key,
}

impl Finished<'_> {
    /// What its records have in common, as words or text.
    pub(crate) fn key(&self) -> Vec<KeyValue> {
        self.key.parts()
    }
}

/// A part of a key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum KeyValue {
    Word(u64),
    Text(Vec<u8>),
}

/// What records of an operation have in common.
pub(crate) trait Key {
    /// That of these values, of a star's text by number, and of a process: no two processes have anything in common.
    fn of(values: &[Value<'_>], star: u16, pid: u32) -> Self
    where
        Self: Sized;

    /// The values, without the star and the process.
    fn parts(&self) -> Vec<KeyValue>;
}

/// A word, or two; or a word and a star. Without a second, that is 0. Not aligned, since millions of them may be kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(Rust, packed(4))]
struct ShortKey {
    words: [u64; 2],
    pid: u32,
}

impl std::hash::Hash for ShortKey {
    #[inline]
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        let Self { words: [first, second], pid } = *self;
        state.write_u64(first);
        state.write_u64(second);
        state.write_u32(pid);
    }
}

impl Bytes for ShortKey {
    #[inline]
    fn bytes_elsewhere(&self) -> usize {
        0
    }
}

impl Key for ShortKey {
    #[inline]
    fn of(values: &[Value<'_>], star: u16, pid: u32) -> Self {
        let word = |slot: usize| values.get(slot).and_then(|value| value.word());
        Self { words: [word(0).unwrap_or_default(), word(1).unwrap_or(star.into())], pid }
    }

    fn parts(&self) -> Vec<KeyValue> {
        let words = self.words;
        words.map(KeyValue::Word).into()
    }
}

impl Bytes for Box<[u8]> {
    fn bytes_elsewhere(&self) -> usize {
        /// What the allocator takes for itself, about.
        const ALLOCATED: usize = 16;

        self.len() + ALLOCATED
    }
}

/// How many bytes the star and the process take.
const BEFORE_VALUES: usize = 6;

impl Key for Box<[u8]> {
    fn of(values: &[Value<'_>], star: u16, pid: u32) -> Self {
        let mut bytes = Vec::with_capacity(BEFORE_VALUES + 12 * values.len());
        bytes.extend(star.to_le_bytes());
        bytes.extend(pid.to_le_bytes());
        for value in values {
            match value {
                Value::String(text) => {
                    bytes.extend((text.len() as u32).to_le_bytes());
                    bytes.extend(*text);
                }
                value => {
                    bytes.extend(u32::MAX.to_le_bytes());
                    bytes.extend(value.word().unwrap_or_default().to_le_bytes());
                }
            }
        }
        bytes.into()
    }

    fn parts(&self) -> Vec<KeyValue> {
        let mut parts = Vec::new();
        let mut rest = self.get(BEFORE_VALUES..).unwrap_or_default();
        while let Some((&length, behind)) = rest.split_first_chunk() {
            let length = u32::from_le_bytes(length);
            let bytes = if length == u32::MAX { 8 } else { length as usize };
            let Some((part, behind)) = behind.split_at_checked(bytes) else { break };
            parts.push(match part.try_into() {
                Ok(word) if length == u32::MAX => KeyValue::Word(u64::from_le_bytes(word)),
                _ => KeyValue::Text(part.to_vec()),
            });
            rest = behind;
        }
        parts
    }
}

/// The parts of a key of these values, as [`Finished::key`] has them.
pub(crate) fn key_values(values: &[Value<'_>]) -> Vec<KeyValue> {
    Box::<[u8]>::of(values, ANY_STAR, 0).parts()
}

/// Keys of so many records are looked at, to be shown some.
const SAMPLED: u64 = 100;

/// Keeps the keys that differ.
#[cold]
fn sample(samples: &mut Vec<(Vec<KeyValue>, u32)>, values: &[Value<'_>], pid: u32) {
    let key = (key_values(values), pid);
    if !samples.contains(&key) {
        samples.push(key);
    }
}

/// What is kept of an operation's records.
#[derive(Clone, Copy)]
struct Kept {
    group: GroupId,
    star: u16,
    /// The number of the file, or of what is one with it; [`Kept::SEVERAL`] if the records are of several.
    section: u32,
}

impl Kept {
    const SEVERAL: u32 = u32::MAX;
}

impl Tag for Kept {
    fn star(&self) -> u16 {
        self.star
    }

    #[inline]
    fn join(&mut self, later: Self) {
        for (own, later) in self.group.iter_mut().zip(later.group) {
            if *own == Groups::NONE {
                *own = later;
            }
        }
        if self.section != later.section {
            self.section = Self::SEVERAL;
        }
    }
}

/// What is put in order of time.
enum Step<K> {
    Record { key: K, stage: u8, kept: Kept },
    Mark(Mark),
}

/// What is known of missing events.
#[derive(Debug, Clone, Copy)]
enum Mark {
    /// From here on they are missing.
    GapBegins,
    /// Up to here they are.
    GapEnds,
    /// They are missing somewhere since the one before.
    Suspect,
    /// What follows is of another file.
    Border,
}

/// Matches the records of a trace.
pub(crate) struct Pairing {
    question: Question,
    /// By the number of a kind of event; `None` before its first record.
    roles: Vec<Option<Vec<Role>>>,
    pub(crate) groups: Groups,
    /// The texts that stars stand for; their numbers are one more than their places here.
    stars: Vec<String>,
    /// Whether each event of an operation has a star's text, so that it is a part of the key.
    has_stars_everywhere: bool,
    matcher: Matcher,
    /// What each part of a key is, for people.
    pub(crate) key_types: [Option<ArgType>; MAX_KEY],
    /// Records by stage.
    pub(crate) records: Vec<u64>,
    /// The keys of the first of them.
    samples: Vec<Vec<(Vec<KeyValue>, u32)>>,
    /// Whether the file says where its gaps begin and end.
    knows_gaps: bool,
    /// Whether what ends an operation has no say in its group.
    groups_by_begin: bool,
    /// Files so far; those that are parts of one trace count as one.
    sections: u32,
}

enum Matcher {
    Short(Matched<ShortKey>),
    Long(Matched<Box<[u8]>>),
}

struct Matched<K> {
    order: Order<Step<K>>,
    pairs: Pairs<K>,
}

/// Operations, and the gaps beside them.
struct Pairs<K> {
    engine: Engine<K, Kept, RandomState>,
    /// Events are missing at the moment.
    in_gap: bool,
    /// When the last gap ended.
    gap_end_ns: Option<u64>,
    tells_depth: bool,
}

impl Pairing {
    /// For the events of these `names`, as [`Question::names`] gives them.
    pub(crate) fn new(question: Question, names: &[String], declared: &EventIndex) -> Self {
        let groups = Groups::new(&question.by);
        let matcher = if question.needs_long_keys(names, declared) {
            Matcher::Long(Matched::new(&question))
        } else {
            Matcher::Short(Matched::new(&question))
        };
        let records = vec![0; question.chain.len()];
        let samples = vec![Vec::new(); question.chain.len()];
        let has_stars_everywhere = question.chain.patterns().all(|text| text.contains('*'));
        Self {
            question,
            roles: Vec::new(),
            groups,
            stars: Vec::new(),
            has_stars_everywhere,
            matcher,
            key_types: [None; MAX_KEY],
            records,
            samples,
            knows_gaps: false,
            groups_by_begin: false,
            sections: 0,
        }
    }

    /// From now on hands on how many operations are under way. Groups are then of the arguments of beginnings only.
    pub(crate) fn tell_depth(&mut self) {
        self.groups_by_begin = true;
        match &mut self.matcher {
            Matcher::Short(matched) => matched.pairs.tells_depth = true,
            Matcher::Long(matched) => matched.pairs.tells_depth = true,
        }
    }

    /// Takes what a trace hands out.
    #[inline]
    pub(crate) fn take(&mut self, item: &Item<'_>, out: &mut impl FnMut(Out<'_>)) {
        match item {
            Item::Event(event) => self.event(event, out),
            item => self.other(item, out),
        }
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>, out: &mut impl FnMut(Out<'_>)) {
        if event.fit == Fit::Undeclared {
            return;
        }
        if self.roles.get(event.kind.index).is_none_or(Option::is_none) {
            self.meet(event);
        }
        let Some(Some(roles)) = self.roles.get(event.kind.index) else { return };
        for role in roles {
            let Some(taken) = role.take(&event.record, &event.kind.name) else { continue };
            self.records[role.stage] += 1;
            let group =
                if self.groups_by_begin && role.stage > 0 { [Groups::NONE; MAX_BY] } else { self.groups.of(&taken.by) };
            let (in_key, star) = if self.has_stars_everywhere { (role.star, ANY_STAR) } else { (ANY_STAR, role.star) };
            let values = &taken.key[..self.question.on.len()];
            if self.records[role.stage] <= SAMPLED {
                sample(&mut self.samples[role.stage], values, event.record.pid);
            }
            let EventRecord { timestamp_ns: time_ns, pid, .. } = event.record;
            let (stage, kept) = (role.stage as u8, Kept { group, star, section: self.sections });
            match &mut self.matcher {
                Matcher::Short(matched) => {
                    matched.push(time_ns, Step::Record { key: Key::of(values, in_key, pid), stage, kept }, out);
                }
                Matcher::Long(matched) => {
                    matched.push(time_ns, Step::Record { key: Key::of(values, in_key, pid), stage, kept }, out);
                }
            }
        }
    }

    /// Makes the roles of a kind of event at its first record.
    #[cold]
    fn meet(&mut self, event: &Event<'_>) {
        let kind = event.kind;
        if self.roles.len() <= kind.index {
            self.roles.resize_with(kind.index + 1, || None);
        }
        let roles = Role::of(kind, &self.question, |star| number(&mut self.stars, star));
        if let Some(role) = roles.last() {
            for (slot, part) in self.question.on.iter().enumerate() {
                let arg =
                    part.arg(&kind.name, role.stage).and_then(|name| kind.args().iter().find(|arg| arg.name == name));
                self.key_types[slot] = self.key_types[slot].or(arg.map(|arg| arg.ty));
            }
        }
        for (slot, by) in self.question.by.iter().enumerate() {
            if roles.iter().any(|role| by.side.is_of(&kind.name, role.stage)) {
                self.groups.know(slot, Numbers::of(&kind.name, &by.side.arg));
            }
        }
        self.roles[kind.index] = Some(roles);
    }

    #[cold]
    fn other(&mut self, item: &Item<'_>, out: &mut impl FnMut(Out<'_>)) {
        match item {
            Item::Section(section) => {
                self.knows_gaps = false;
                if !section.goes_on {
                    self.sections = self.sections.saturating_add(1).min(Kept::SEVERAL - 1);
                }
                if !section.goes_on && self.sections > 1 {
                    let time_ns = match &self.matcher {
                        Matcher::Short(matched) => matched.order.latest_ns(),
                        Matcher::Long(matched) => matched.order.latest_ns(),
                    };
                    self.mark(time_ns, Mark::Border, out);
                }
            }
            // Ours says so of itself.
            Item::Fact(fact) => self.knows_gaps |= fact.text.starts_with("recorder="),
            // It may be that events are missing from the time that was asked for; where a gap begins is nobody's business behind that.
            Item::Outside(Outside { is_behind: true, .. }) if self.knows_gaps => {}
            Item::Gap(gap) | Item::Outside(Outside { gap, .. }) => {
                let time_ns = gap.record.timestamp_ns;
                self.mark(
                    time_ns,
                    match (self.knows_gaps, gap.record.count) {
                        (false, _) => Mark::Suspect,
                        (true, 0) => Mark::GapEnds,
                        (true, _) => Mark::GapBegins,
                    },
                    out,
                );
            }
            Item::Missing(missing) => {
                if let Some(from) = missing.from {
                    self.mark(from.timestamp_ns, Mark::GapBegins, out);
                    // At the end of a file it lasts no longer: what is under way then is all that it touches.
                    self.mark(missing.to.unwrap_or(from).timestamp_ns, Mark::GapEnds, out);
                }
            }
            Item::Event(_) | Item::Mapping(_) | Item::Start(_) => {}
        }
    }

    fn mark(&mut self, time_ns: u64, mark: Mark, out: &mut impl FnMut(Out<'_>)) {
        match &mut self.matcher {
            Matcher::Short(matched) => matched.push(time_ns, Step::Mark(mark), out),
            Matcher::Long(matched) => matched.push(time_ns, Step::Mark(mark), out),
        }
    }

    /// Hands on what was held back; to be called at the end.
    pub(crate) fn finish(&mut self, out: &mut impl FnMut(Out<'_>)) {
        match &mut self.matcher {
            Matcher::Short(matched) => matched.finish(out),
            Matcher::Long(matched) => matched.finish(out),
        }
    }

    /// What became of the records.
    pub(crate) fn counts(&self) -> Counts {
        match &self.matcher {
            Matcher::Short(matched) => matched.pairs.engine.counts(),
            Matcher::Long(matched) => matched.pairs.engine.counts(),
        }
    }

    /// Keys of records of a stage.
    pub(crate) fn samples(&self, stage: usize) -> Vec<String> {
        const SHOWN: usize = 3;

        let mut pids = self.samples.iter().flat_map(|samples| samples.iter().take(SHOWN)).map(|&(_, pid)| pid);
        let first = pids.next();
        let has_several_pids = pids.any(|pid| Some(pid) != first);
        let key = |(parts, pid): &(Vec<KeyValue>, u32)| {
            let parts = self.question.on.iter().zip(self.key_values(parts));
            let pid = has_several_pids.then(|| format!("(pid {pid})"));
            parts.map(|(part, value)| format!("{part}={value}")).chain(pid).collect::<Vec<_>>().join(" ")
        };
        self.samples[stage].iter().take(SHOWN).map(key).collect()
    }

    /// Whether a key of the first records of a stage is one of the first records of the first stage.
    pub(crate) fn shares_key_with_begin(&self, stage: usize) -> bool {
        self.samples[stage].iter().any(|key| self.samples[0].contains(key))
    }

    /// Whether records of a kind of event have come that have no arguments for the key.
    pub(crate) fn lacks_key(&self, kind: usize) -> bool {
        matches!(self.roles.get(kind), Some(Some(roles)) if roles.is_empty())
    }

    /// A key, for a row.
    pub(crate) fn key_cells(&self, parts: &[KeyValue]) -> impl Iterator<Item = Cell> {
        self.key_values(parts).map(|value| Cell::Value { value, short: None })
    }

    fn key_values(&self, parts: &[KeyValue]) -> impl Iterator<Item = GroupValue> {
        parts.iter().zip(&self.key_types[..self.question.on.len()]).map(|(part, ty)| match part {
            KeyValue::Word(word) => GroupValue::of(Value::from_word(*word, ty.unwrap_or(ArgType::Pointer)), false),
            KeyValue::Text(bytes) => GroupValue::Text(bytes.clone()),
        })
    }

    /// How many records came too late to be put in order.
    pub(crate) fn late(&self) -> u64 {
        match &self.matcher {
            Matcher::Short(matched) => matched.order.late,
            Matcher::Long(matched) => matched.order.late,
        }
    }

    pub(crate) fn question(&self) -> &Question {
        &self.question
    }
}

impl<K: Key + Eq + std::hash::Hash + Bytes + Default> Matched<K> {
    fn new(question: &Question) -> Self {
        Self {
            order: Order::default(),
            pairs: Pairs {
                engine: Engine::new(question.chain.len(), question.discipline),
                in_gap: false,
                gap_end_ns: None,
                tells_depth: false,
            },
        }
    }

    #[inline]
    fn push(&mut self, time_ns: u64, step: Step<K>, out: &mut impl FnMut(Out<'_>)) {
        self.order.push(time_ns, step, &mut |time_ns, step| self.pairs.step(time_ns, step, out));
    }

    fn finish(&mut self, out: &mut impl FnMut(Out<'_>)) {
        self.order.finish(&mut |time_ns, step| self.pairs.step(time_ns, step, out));
    }
}

impl<K: Key + Eq + std::hash::Hash + Bytes + Default> Pairs<K> {
    #[inline]
    fn step(&mut self, time_ns: u64, step: Step<K>, out: &mut impl FnMut(Out<'_>)) {
        let change = match step {
            Step::Record { key, stage: 0, kept } => {
                let tells_depth = self.tells_depth;
                let begun = self.engine.begin(time_ns, key, kept, &mut |closed| {
                    if tells_depth {
                        out(Out::Depth { time_ns, change: Change::Ends(closed.into()) });
                    }
                });
                match begun {
                    Begun::Another => Change::Begins(kept.group),
                    Begun::Replacing(closed) => Change::Replaces(closed.into(), kept.group),
                    Begun::Ignored => Change::Nothing,
                }
            }
            Step::Record { key, stage, kept } => {
                let (in_gap, gap_end_ns) = (self.in_gap, self.gap_end_ns);
                let closed = self.engine.advance(time_ns, &key, stage.into(), kept, &mut |pair| {
                    let Pair { key, begin_ns, hops_ns, end_ns, tag, since_ns, since } = pair;
                    // An end or a beginning that is missing may have shifted all pairs of the key since then.
                    let straddles = in_gap
                        || gap_end_ns.is_some_and(|gap_end_ns| gap_end_ns >= since_ns)
                        || tag.section != kept.section
                        || since.section != kept.section;
                    out(Out::Pair(Finished { begin_ns, hops_ns, end_ns, group: tag.group, straddles, key }));
                });
                closed.map_or(Change::Nothing, |closed| Change::Ends(closed.into()))
            }
            Step::Mark(Mark::GapBegins) => {
                self.in_gap = true;
                Change::GapBegins
            }
            Step::Mark(Mark::GapEnds) => {
                (self.in_gap, self.gap_end_ns) = (false, Some(time_ns));
                Change::GapEnds
            }
            Step::Mark(Mark::Border) => {
                // What is under way is not of the file that ends it, which is enough.
                (self.in_gap, self.gap_end_ns) = (false, None);
                Change::Border
            }
            // Those under way will have ended behind it.
            Step::Mark(Mark::Suspect) => {
                self.gap_end_ns = Some(time_ns);
                out(Out::Suspect);
                Change::Suspect
            }
        };
        if self.tells_depth {
            out(Out::Depth { time_ns, change });
        }
    }
}

impl From<Closed<Kept>> for Ended {
    fn from(closed: Closed<Kept>) -> Self {
        Self { begin_ns: closed.begin_ns, group: closed.tag.group }
    }
}

/// The number of a text, counted from 1.
fn number(texts: &mut Vec<String>, text: &str) -> u16 {
    let place = texts.iter().position(|known| known == text).unwrap_or_else(|| {
        texts.push(text.to_owned());
        texts.len() - 1
    });
    // So many are never told apart.
    u16::try_from(place + 1).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_under_way_takes_little_memory() {
        assert_eq!(engine::entry_bytes::<ShortKey, Kept>(), engine::OPEN_BYTES);
        assert_eq!(engine::entry_bytes::<Box<[u8]>, Kept>(), engine::OPEN_BYTES);
    }
}
