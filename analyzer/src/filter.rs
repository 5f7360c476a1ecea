//! Which events a command is about: name patterns, conditions on arguments, process ids, a time window, a limit.

use anyhow::{Result, bail};
use simpletrace_format::events::EventIndex;

use crate::condition::Conditions;
use crate::time::TimeRange;

/// The name that gaps go by.
pub(crate) const DROPPED: &str = "dropped";

/// The user's choice of events.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    pub(crate) globs: Globs,
    pub(crate) conditions: Conditions,
    /// All, if empty.
    pub(crate) pids: Vec<u32>,
    pub(crate) time: TimeRange,
    pub(crate) limit: Option<u64>,
}

impl Selection {
    /// Checks the conditions against the declarations of the events that are asked for.
    ///
    /// # Errors
    ///
    /// One that makes no sense for them, with its place.
    pub(crate) fn check(&self, declared: Option<&EventIndex>) -> Result<()> {
        self.conditions.check(&self.globs, declared)
    }

    // Always: asked for every record.
    #[inline(always)]
    pub(crate) fn admits_pid(&self, pid: u32) -> bool {
        self.pids.is_empty() || self.pids.contains(&pid)
    }

    /// Whether gaps are wanted: they go by the name `dropped`.
    pub(crate) fn admits_dropped(&self) -> bool {
        self.globs.selects(DROPPED)
    }

    /// Whether gaps were taken out by name or pattern, and not only not asked for.
    pub(crate) fn takes_out_dropped(&self) -> bool {
        self.globs.takes_out(DROPPED)
    }
}

/// The window of a [`Selection`] on the clock of a trace, which starts to run with its first record.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    range: TimeRange,
    /// Whether the time of the next record is waited for, be it the first one or that behind damage.
    pub(crate) waits: bool,
    /// The time of the first record; `None` before it.
    start_ns: Option<u64>,
    /// The window in nanoseconds of the trace's clock, end excluded.
    window: (u64, Option<u64>),
}

impl Clock {
    pub(crate) fn new(range: TimeRange) -> Self {
        Self { range, waits: true, start_ns: None, window: (0, None) }
    }

    /// Takes in the time that is waited for; tells whether it is the first of all.
    #[cold]
    pub(crate) fn go_on(&mut self, timestamp_ns: u64) -> bool {
        self.waits = false;
        let is_first = self.start_ns.is_none();
        if is_first {
            self.start_ns = Some(timestamp_ns);
            self.window = self.range.resolve(timestamp_ns);
        }
        is_first
    }

    /// Returns the part of a stretch of time that is wanted, `None` if nothing is. One without an end lasts for no time.
    pub(crate) fn part_of(&self, from_ns: u64, to_ns: Option<u64>) -> Option<(u64, Option<u64>)> {
        let (start_ns, end_ns) = self.window;
        let is_before_end = |ns: u64| end_ns.is_none_or(|end_ns| ns < end_ns);
        let is_wanted = is_before_end(from_ns) && to_ns.unwrap_or(from_ns) >= start_ns;
        is_wanted.then(|| (from_ns.max(start_ns), to_ns.filter(|&ns| is_before_end(ns))))
    }

    /// Whether a record at this time is wanted, if no other is waited for.
    #[inline]
    pub(crate) const fn admits(&self, timestamp_ns: u64) -> bool {
        let (from_ns, end_ns) = self.window;
        timestamp_ns >= from_ns
            && match end_ns {
                Some(end_ns) => timestamp_ns < end_ns,
                None => true,
            }
    }

    /// Whether a time is behind the window.
    pub(crate) fn is_behind(&self, timestamp_ns: u64) -> bool {
        self.window.1.is_some_and(|end_ns| timestamp_ns >= end_ns)
    }

    /// Returns the time of the first record, 0 before it.
    #[inline]
    pub(crate) fn start_ns(&self) -> u64 {
        self.start_ns.unwrap_or_default()
    }
}

/// Event name patterns with QEMU's rules, applied in order, the last that matches deciding.
///
/// A pattern is one only if it has a `*` in it: then `*` stands for any run of characters and `?` for any one. Otherwise it is
/// a plain name. A leading `-` takes events out again. If the first of all takes out, everything else is in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Globs {
    globs: Vec<Glob>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Glob {
    pattern: String,
    adds: bool,
}

impl Globs {
    /// Takes patterns as they stand on the command line.
    pub(crate) fn parse(patterns: &[String]) -> Result<Self> {
        let mut globs = Vec::new();
        for text in patterns {
            let (pattern, adds) = text.strip_prefix('-').map_or((text.as_str(), true), |rest| (rest, false));
            if pattern.is_empty() {
                bail!("event pattern '{text}' is empty; write -e '*' for all events");
            }
            globs.push(Glob { pattern: pattern.to_owned(), adds });
        }
        Ok(Self { globs })
    }

    /// Selects events by their names.
    pub(crate) fn of_names(names: impl IntoIterator<Item = String>) -> Self {
        Self { globs: names.into_iter().map(|pattern| Glob { pattern, adds: true }).collect() }
    }

    /// Whether there are none, so that all events are selected.
    pub(crate) fn is_empty(&self) -> bool {
        self.globs.is_empty()
    }

    pub(crate) fn selects(&self, name: &str) -> bool {
        let all_at_first = self.globs.first().is_none_or(|glob| !glob.adds);
        let decides = self.globs.iter().rev().find(|glob| matches(&glob.pattern, name));
        decides.map_or(all_at_first, |glob| glob.adds)
    }

    fn takes_out(&self, name: &str) -> bool {
        self.globs.iter().rev().find(|glob| matches(&glob.pattern, name)).is_some_and(|glob| !glob.adds)
    }

    /// Returns the plain names among the patterns, which someone meant to exist.
    pub(crate) fn plain_names(&self) -> impl Iterator<Item = &str> {
        self.globs.iter().map(|glob| glob.pattern.as_str()).filter(|pattern| !pattern.contains('*'))
    }

    /// Returns the patterns with a `*` that do not take events out.
    #[cfg(feature = "columns")]
    pub(crate) fn wanted_patterns(&self) -> impl Iterator<Item = &str> {
        self.globs.iter().filter(|glob| glob.adds && glob.pattern.contains('*')).map(|glob| glob.pattern.as_str())
    }

    /// Returns the only event that can be selected, if it is asked for by its plain name.
    pub(crate) fn only_name(&self) -> Option<&str> {
        match &self.globs[..] {
            [Glob { pattern, adds: true }] if !pattern.contains('*') => Some(pattern),
            _ => None,
        }
    }
}

pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    if !pattern.contains('*') {
        return pattern == name;
    }
    let (pattern, name): (Vec<_>, Vec<_>) = (pattern.chars().collect(), name.chars().collect());
    matches_runs(&pattern, &name)
}

/// Whether a text of characters or bytes is as a pattern says, in which `*` is any run of them and `?` any one.
pub(crate) fn matches_runs<T: Copy + PartialEq + From<u8>>(pattern: &[T], text: &[T]) -> bool {
    let [any_run, any_one] = [b'*', b'?'].map(T::from);
    // On a mismatch only the last `*` has to give way, so the time is at most the product of the lengths.
    let (mut at, mut pos) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while pos < text.len() {
        match pattern.get(at) {
            Some(&c) if c == any_run => {
                star = Some((at + 1, pos));
                at += 1;
            }
            Some(&c) if c == any_one || c == text[pos] => {
                at += 1;
                pos += 1;
            }
            _ => match &mut star {
                Some((after, from)) => {
                    *from += 1;
                    (at, pos) = (*after, *from);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|&c| c == any_run)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(patterns: &[&str], names: &[&'static str]) -> Vec<&'static str> {
        let patterns: Vec<_> = patterns.iter().map(ToString::to_string).collect();
        let globs = Globs::parse(&patterns).unwrap();
        names.iter().copied().filter(|name| globs.selects(name)).collect()
    }

    const NAMES: [&str; 5] = ["blk_co_preadv", "blk_co_pwritev", "bdrv_open", "dropped", "a?c"];

    #[test]
    fn without_patterns_everything_is_selected() {
        assert_eq!(selected(&[], &NAMES), NAMES);
    }

    #[test]
    fn a_star_matches_any_run_and_a_question_mark_any_one_character() {
        assert_eq!(selected(&["blk_*"], &NAMES), ["blk_co_preadv", "blk_co_pwritev"]);
        assert_eq!(selected(&["*_co_p?e*"], &NAMES), ["blk_co_preadv"]);
        assert_eq!(selected(&["*v"], &NAMES), ["blk_co_preadv", "blk_co_pwritev"]);
        assert_eq!(selected(&["*", "-*"], &NAMES), [""; 0]);
        assert_eq!(selected(&["bdrv_open*"], &NAMES), ["bdrv_open"]);
    }

    #[test]
    fn without_a_star_a_question_mark_is_itself() {
        assert_eq!(selected(&["a?c"], &["abc", "a?c"]), ["a?c"]);
    }

    #[test]
    fn later_patterns_overrule_earlier_ones() {
        assert_eq!(selected(&["blk_*", "-blk_co_preadv"], &NAMES), ["blk_co_pwritev"]);
        assert_eq!(selected(&["-blk_co_preadv", "blk_*"], &NAMES), NAMES);
        assert_eq!(selected(&["-blk_*"], &NAMES), ["bdrv_open", "dropped", "a?c"]);
    }

    #[test]
    fn matching_takes_no_exponential_time() {
        assert!(!matches("*a*a*a*a*a*a*a*a*a*a*a*a*b", &"a".repeat(2000)));
    }

    #[test]
    fn an_empty_pattern_is_refused() {
        assert_eq!(
            Globs::parse(&["-".to_owned()]).unwrap_err().to_string(),
            "event pattern '-' is empty; write -e '*' for all events"
        );
    }
}
