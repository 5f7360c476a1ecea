//! Gates: conditions on what was measured that make the exit code 1, such as `p99 > 2ms`.

use std::cmp::Ordering;
use std::ops::Range;

use anyhow::{Result, anyhow};
use simpletrace_format::events::{Diagnostic, nearest};

use crate::latencies::{Latencies, Percentile};
use crate::measure::Measured;
use crate::pairing::{Counts, Pairing};

/// Groups that fail a gate and are told one by one.
const TOLD: usize = 10;

/// The gates of a command.
pub(crate) struct Gates(Vec<Gate>);

/// A condition as it was written, and what it means.
#[derive(Debug, PartialEq, Eq)]
struct Gate {
    source: String,
    figure: Figure,
    op: Op,
    bound: Bound,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Figure {
    Pairs,
    Open,
    Replaced,
    Orphans,
    Straddling,
    Begins,
    Ignored,
    Incomplete,
    Backwards,
    Late,
    Rate,
    Min,
    Mean,
    Max,
    Percentile(Percentile),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Equal,
}

/// What a figure is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    Is(Decimal),
    /// So many times the old one.
    Times(Decimal),
    /// So much more than the old one.
    More(Decimal),
    /// So much less than the old one.
    Less(Decimal),
}

/// `digits / unit`; both are below 10^20, so that products with 64 bits do not overflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Decimal {
    digits: u128,
    unit: u128,
}

/// A figure.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Amount {
    Count(u64),
    Ns(u64),
    Rate(f64),
}

/// What gates look at in a whole trace.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Whole {
    pub(crate) counts: Counts,
    pub(crate) straddling: u64,
    pub(crate) late: u64,
    pub(crate) span_ns: u64,
}

/// What gates look at in a group: its name, and its latencies, of the trace before if there is one.
pub(crate) struct Gated<'a> {
    pub(crate) name: String,
    pub(crate) old: Option<&'a mut Latencies>,
    pub(crate) new: Option<&'a mut Latencies>,
}

impl Gates {
    /// Reads conditions `NAME OP VALUE`; only if it `compares` two traces, VALUE may be relative (`1.1x`, `+200us`).
    ///
    /// # Errors
    ///
    /// One that is not of the language, with its place.
    pub(crate) fn parse(sources: &[String], compares: bool) -> Result<Self> {
        let gates = sources.iter().map(|source| {
            parse(source, compares).map_err(|Fault(at, message, help)| {
                let fault = Diagnostic::error(source.as_bytes(), at, message, help);
                anyhow!("{}", fault.with_source("--fail-if", source.as_bytes()))
            })
        });
        Ok(Self(gates.collect::<Result<_>>()?))
    }

    /// Which gates fail, and why. There is an `old` trace if two are compared.
    pub(crate) fn failures(&self, old: Option<Whole>, new: Whole, groups: &mut [Gated<'_>]) -> Vec<String> {
        let mut all = Vec::new();
        for gate in &self.0 {
            let why = gate.failures(old, new, groups);
            all.extend(why.iter().take(TOLD).map(|why| format!("failed on '{}': {why}", gate.source)));
            if let Some(more @ 1..) = why.len().checked_sub(TOLD) {
                all.push(format!("failed on '{}' in {more} more groups", gate.source));
            }
        }
        all
    }
}

impl Whole {
    pub(crate) fn new(pairing: &Pairing, measured: &Measured) -> Self {
        let (first_ns, last_ns) = measured.span_ns.unwrap_or_default();
        Self {
            counts: pairing.counts(),
            straddling: measured.straddling,
            late: pairing.late(),
            span_ns: last_ns - first_ns,
        }
    }
}

impl Gate {
    /// What makes it fail.
    fn failures(&self, old: Option<Whole>, new: Whole, groups: &mut [Gated<'_>]) -> Vec<String> {
        let Self { figure, bound, .. } = self;
        let is_relative = !matches!(bound, Bound::Is(_));
        if figure.is_of_whole() {
            let amount = |whole| figure.of_whole(whole).map(Amount::Count);
            return self.failure(old.and_then(amount), amount(new), "").into_iter().collect();
        }
        let mut nothing = [Gated { name: String::new(), old: None, new: None }];
        let are_there = groups.iter().any(|group| is_relative || group.new.is_some());
        let groups = if are_there { groups } else { &mut nothing };
        let mut failures = Vec::new();
        for group in groups {
            if are_there && !is_relative && group.new.is_none() {
                continue;
            }
            let before = old.and_then(|old| figure.of_group(group.old.as_deref_mut(), old.span_ns));
            let now = figure.of_group(group.new.as_deref_mut(), new.span_ns);
            failures.extend(self.failure(before, now, &group.name));
        }
        failures
    }

    fn failure(&self, old: Option<Amount>, new: Option<Amount>, group: &str) -> Option<String> {
        let name = self.figure.name();
        let at = if group.is_empty() { String::new() } else { format!(" of {group}") };
        let is_relative = !matches!(self.bound, Bound::Is(_));
        let unknown = |trace: &str| {
            let trace = if is_relative { trace } else { "" };
            let of_time = if self.figure == Figure::Rate { ", or none that take time" } else { "" };
            Some(format!("there are no pairs{at}{trace}{of_time}, and so no {name}"))
        };
        let Some(amount) = new else { return unknown(" in the new trace") };
        if !is_relative {
            return self.holds(0, amount).then(|| format!("{name}{at} is {}", amount.text()));
        }
        let Some(before) = old else { return unknown(" in the old trace") };
        let holds = match before {
            Amount::Count(before) | Amount::Ns(before) => self.holds(before, amount),
            Amount::Rate(before) => self.rate_holds(before, amount),
        };
        holds.then(|| format!("{name}{at} went from {} to {}", before.text(), amount.text()))
    }

    fn holds(&self, old: u64, new: Amount) -> bool {
        let new = match new {
            Amount::Count(new) | Amount::Ns(new) => new,
            Amount::Rate(_) => return self.rate_holds(old as f64, new),
        };
        let (new, old) = (u128::from(new), u128::from(old));
        let order = match self.bound {
            Bound::Is(Decimal { digits, unit }) => (new * unit).cmp(&digits),
            Bound::Times(Decimal { digits, unit }) => (new * unit).cmp(&(old * digits)),
            Bound::More(Decimal { digits, unit }) => (new * unit).cmp(&(old * unit + digits)),
            Bound::Less(Decimal { digits, unit }) => (new * unit + digits).cmp(&(old * unit)),
        };
        self.op.admits(order)
    }

    fn rate_holds(&self, old: f64, new: Amount) -> bool {
        let Amount::Rate(new) = new else { return false };
        let bound = match self.bound {
            Bound::Is(bound) => bound.value(),
            Bound::Times(times) => old * times.value(),
            Bound::More(more) => old + more.value(),
            Bound::Less(less) => old - less.value(),
        };
        new.partial_cmp(&bound).is_some_and(|order| self.op.admits(order))
    }
}

impl Figure {
    const NAMES: [(&'static str, Self); 14] = [
        ("pairs", Self::Pairs),
        ("rate_per_s", Self::Rate),
        ("min", Self::Min),
        ("mean", Self::Mean),
        ("max", Self::Max),
        ("begins", Self::Begins),
        ("open", Self::Open),
        ("replaced", Self::Replaced),
        ("ignored", Self::Ignored),
        ("incomplete", Self::Incomplete),
        ("orphans", Self::Orphans),
        ("backwards", Self::Backwards),
        ("straddling", Self::Straddling),
        ("late", Self::Late),
    ];

    fn parse(text: &str) -> Result<Self, (String, Option<String>)> {
        if let Some((_, figure)) = Self::NAMES.into_iter().find(|(name, _)| *name == text) {
            return Ok(figure);
        }
        match text.strip_prefix('p').filter(|digits| digits.starts_with(|c: char| c.is_ascii_digit())) {
            Some(percentile) => Ok(Self::Percentile(percentile.parse().map_err(|message| (message, None))?)),
            None => {
                let names = Self::NAMES.map(|(name, _)| name);
                let help = match nearest(text, names) {
                    Some(name) => format!("did you mean {name}?"),
                    None => format!("there are {}, and percentiles such as p99.9", names.join(", ")),
                };
                Err((format!("nothing that is measured is called '{text}'"), Some(help)))
            }
        }
    }

    fn name(&self) -> String {
        if let Self::Percentile(percentile) = self {
            return format!("p{}", percentile.text());
        }
        Self::NAMES.into_iter().find(|(_, figure)| figure == self).map_or_else(String::new, |(name, _)| name.to_owned())
    }

    fn is_time(&self) -> bool {
        matches!(self, Self::Min | Self::Mean | Self::Max | Self::Percentile(_))
    }

    fn is_of_whole(&self) -> bool {
        self.of_whole(Whole::default()).is_some()
    }

    fn of_whole(&self, whole: Whole) -> Option<u64> {
        match self {
            Self::Begins => Some(whole.counts.begins),
            Self::Open => Some(whole.counts.open),
            Self::Replaced => Some(whole.counts.replaced),
            Self::Ignored => Some(whole.counts.ignored),
            Self::Incomplete => Some(whole.counts.incomplete),
            Self::Orphans => Some(whole.counts.orphans),
            Self::Backwards => Some(whole.counts.backwards),
            Self::Straddling => Some(whole.straddling),
            Self::Late => Some(whole.late),
            Self::Pairs | Self::Rate | Self::Min | Self::Mean | Self::Max | Self::Percentile(_) => None,
        }
    }

    fn of_group(&self, latencies: Option<&mut Latencies>, span_ns: u64) -> Option<Amount> {
        let Some(latencies) = latencies else {
            return (*self == Self::Pairs).then_some(Amount::Count(0));
        };
        match self {
            Self::Pairs => Some(Amount::Count(latencies.count())),
            Self::Rate => (span_ns > 0).then(|| Amount::Rate(latencies.count() as f64 * 1e9 / span_ns as f64)),
            Self::Min => latencies.least_ns().map(Amount::Ns),
            Self::Mean => latencies.mean_ns().map(Amount::Ns),
            Self::Max => latencies.most_ns().map(Amount::Ns),
            Self::Percentile(percentile) => latencies.at(std::slice::from_ref(percentile))[0].map(Amount::Ns),
            _ => None,
        }
    }
}

impl Op {
    /// Longer ones first.
    const ALL: [(&'static str, Self); 5] = [
        (">=", Self::GreaterOrEqual),
        ("<=", Self::LessOrEqual),
        ("==", Self::Equal),
        (">", Self::Greater),
        ("<", Self::Less),
    ];

    fn admits(self, order: Ordering) -> bool {
        match self {
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Equal => order.is_eq(),
        }
    }
}

impl Decimal {
    fn parse(text: &str) -> Option<Self> {
        /// As many digits as 64 bits always hold.
        const MAX_DIGITS: usize = 18;

        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = format!("{whole}{fraction}");
        let is_number = !whole.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) && !text.ends_with('.');
        if !is_number || digits.len() > MAX_DIGITS {
            return None;
        }
        Some(Self { digits: digits.parse().ok()?, unit: 10u128.pow(fraction.len() as u32) })
    }

    fn value(self) -> f64 {
        self.digits as f64 / self.unit as f64
    }
}

impl Amount {
    fn text(self) -> String {
        match self {
            Self::Count(count) => count.to_string(),
            Self::Ns(ns) => time_text(ns),
            Self::Rate(rate) => format!("{rate:.3}"),
        }
    }
}

/// A time as it may stand in a condition, exact, in the largest unit that it has one of.
pub(crate) fn time_text(ns: u64) -> String {
    let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
    let Some((unit, unit_ns)) = units.into_iter().find(|&(_, unit_ns)| ns >= unit_ns) else { return format!("{ns}ns") };
    let digits = unit_ns.ilog10() as usize;
    let text = format!("{}.{:0digits$}", ns / unit_ns, ns % unit_ns);
    format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Where something is wrong, what, and a way out.
struct Fault(Range<usize>, String, Option<String>);

fn parse(source: &str, compares: bool) -> Result<Gate, Fault> {
    let skip_blanks = |from: usize| source.len() - source[from..].trim_start().len();
    let name_at = skip_blanks(0);
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
    let name_end = source[name_at..].find(|c| !is_name(c)).map_or(source.len(), |length| name_at + length);
    let example = if compares { "such as 'p99 > 1.1x' or 'p99 > 2ms'" } else { "such as 'p99 > 2ms'" };
    if name_end == name_at {
        let help = format!("write NAME OP VALUE, {example}");
        return Err(Fault(name_at..name_at, "the name of a figure is expected here".to_owned(), Some(help)));
    }
    let figure =
        Figure::parse(&source[name_at..name_end]).map_err(|(message, help)| Fault(name_at..name_end, message, help))?;
    let op_at = skip_blanks(name_end);
    let Some((text, op)) = Op::ALL.into_iter().find(|(text, _)| source[op_at..].starts_with(text)) else {
        let end = source[op_at..].chars().next().map_or(op_at, |c| op_at + c.len_utf8());
        let message = "a comparison is expected here: >, >=, <, <= or ==".to_owned();
        return Err(Fault(op_at..end, message, None));
    };
    let value_at = skip_blanks(op_at + text.len());
    let value = source[value_at..].trim_end();
    let at = value_at..value_at + value.len();
    let bound =
        parse_bound(value, &figure, compares).map_err(|(message, help)| Fault(at, message, help.map(str::to_owned)))?;
    Ok(Gate { source: source.trim().to_owned(), figure, op, bound })
}

fn parse_bound(text: &str, figure: &Figure, compares: bool) -> Result<Bound, (String, Option<&'static str>)> {
    let name = figure.name();
    let (sign, rest) = match text.strip_prefix(['+', '-']) {
        Some(rest) => (text.chars().next(), rest),
        None => (None, text),
    };
    let times = rest.strip_suffix('x').filter(|_| sign.is_none()).and_then(Decimal::parse);
    if !compares && (sign.is_some() || times.is_some()) {
        let message = format!("'{text}' is relative, and there is one trace only");
        return Err((message, Some("`diff OLD NEW` compares two")));
    }
    if let Some(times) = times {
        return Ok(Bound::Times(times));
    }
    let number = Decimal::parse(rest);
    let amount = match (figure.is_time(), number) {
        (false, Some(number)) => number,
        (false, None) => {
            let kind = if matches!(figure, Figure::Rate) { "a number a second" } else { "a number" };
            return Err((format!("{name} is {kind}, and '{text}' is none"), None));
        }
        (true, Some(Decimal { digits: 0, .. })) => Decimal { digits: 0, unit: 1 },
        // In other places that would be seconds. Here a forgotten unit would be a gate that never closes.
        (true, Some(_)) => {
            return Err((
                format!("{name} is a time, and '{text}' has no unit"),
                Some("write ns, us, ms or s behind it"),
            ));
        }
        (true, None) => match crate::time::duration_ns(rest) {
            Ok(ns) => Decimal { digits: ns.into(), unit: 1 },
            Err(_) => {
                let help = if compares {
                    "write a time such as 2ms, a factor such as 1.1x, or a difference such as +200us"
                } else {
                    "write a number and a unit, such as 2ms"
                };
                return Err((format!("{name} is a time, and '{text}' is none"), Some(help)));
            }
        },
    };
    Ok(match sign {
        None => Bound::Is(amount),
        Some('+') => Bound::More(amount),
        Some(_) => Bound::Less(amount),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(source: &str) -> Gate {
        parse(source, true).unwrap_or_else(|fault| panic!("{source}: {}", fault.1))
    }

    #[test]
    fn comparisons_are_exact() {
        for (source, old, new, holds) in [
            ("p99 > 2ms", 0, 2_000_000, false),
            ("p99 > 2ms", 0, 2_000_001, true),
            ("p99>=2ms", 0, 2_000_000, true),
            ("max < 1us", 0, 999, true),
            ("max <= 1us", 0, 1_000, true),
            ("min == 1.5us", 0, 1_500, true),
            ("min == 1.5us", 0, 1_501, false),
            ("min > 0", 0, 1, true),
            // As floats, 1.1 * 10 is 11.000000000000002 or so.
            ("p99 > 1.1x", 10, 11, false),
            ("p99 >= 1.1x", 10, 11, true),
            ("p99 > 1.1x", 10_000, 11_001, true),
            ("mean < 0.9x", 10, 9, false),
            ("p99 > 1x", u64::MAX - 1, u64::MAX, true),
            ("p99 > +200us", 1_000, 201_000, false),
            ("p99 > +200us", 1_000, 201_001, true),
            ("p99 > -1us", 1_000, 1, true),
            ("p99 > -1us", 1_000, 0, false),
            ("p99 < -1us", 500, 0, false),
            ("p50 > 1x", 0, 0, false),
            ("p50 > 99x", 0, 1, true),
        ] {
            assert_eq!(gate(source).holds(old, Amount::Ns(new)), holds, "{source}: {old} to {new}");
        }
        assert!(gate("pairs < 2.5").holds(0, Amount::Count(2)) && !gate("pairs < 2.5").holds(0, Amount::Count(3)));
        assert!(gate("rate_per_s > 1.5").rate_holds(0.0, Amount::Rate(1.6)));
        assert!(gate("rate_per_s < 0.5x").rate_holds(4.0, Amount::Rate(1.9)));
        assert!(!gate("rate_per_s < -1").rate_holds(4.0, Amount::Rate(3.0)));
    }

    #[test]
    fn times_are_told_as_they_may_be_written() {
        for (ns, text) in [
            (0, "0ns"),
            (999, "999ns"),
            (1_000, "1us"),
            (6_968_400, "6.9684ms"),
            (1_000_000_001, "1.000000001s"),
            (20_000_000_000, "20s"),
        ] {
            assert_eq!(time_text(ns), text);
            assert!(ns == 0 || crate::time::duration_ns(text) == Ok(ns), "{text}");
        }
    }

    #[test]
    fn faults_are_shown_where_they_are() {
        for (source, compares, shown) in [
            (
                "",
                false,
                "--fail-if:1:1: the name of a figure is expected here\n  \n  ^\nhelp: write NAME OP VALUE, such as 'p99 > 2ms'",
            ),
            (
                "maen > 2ms",
                false,
                "--fail-if:1:1: nothing that is measured is called 'maen'\n  maen > 2ms\n  ^^^^\nhelp: did you mean mean?",
            ),
            (
                "p101 > 2ms",
                false,
                "--fail-if:1:1: '101' is not a percentile; write a number from 0 to 100, such as 99.9\n  p101 > 2ms\n  ^^^^",
            ),
            (
                "p99 = 2ms",
                false,
                "--fail-if:1:5: a comparison is expected here: >, >=, <, <= or ==\n  p99 = 2ms\n      ^",
            ),
            (
                "p99 > 2",
                false,
                "--fail-if:1:7: p99 is a time, and '2' has no unit\n  p99 > 2\n        ^\nhelp: write ns, us, ms or s behind it",
            ),
            (
                "p99 > fast",
                false,
                "--fail-if:1:7: p99 is a time, and 'fast' is none\n  p99 > fast\n        ^^^^\nhelp: write a number and a unit, such as 2ms",
            ),
            ("pairs < 2ms", false, "--fail-if:1:9: pairs is a number, and '2ms' is none\n  pairs < 2ms\n          ^^^"),
            (
                "p99 > 1.1x",
                false,
                "--fail-if:1:7: '1.1x' is relative, and there is one trace only\n  p99 > 1.1x\n        ^^^^\nhelp: `diff OLD NEW` compares two",
            ),
            (
                "p99 > +1ms",
                false,
                "--fail-if:1:7: '+1ms' is relative, and there is one trace only\n  p99 > +1ms\n        ^^^^\nhelp: `diff OLD NEW` compares two",
            ),
            (
                "p99 > ",
                true,
                "--fail-if:1:7: p99 is a time, and '' is none\n  p99 > \n        ^\nhelp: write a time such as 2ms, a factor such as 1.1x, or a difference such as +200us",
            ),
        ] {
            let error = Gates::parse(&[source.to_owned()], compares).err().unwrap().to_string();
            assert_eq!(error, shown, "{source}");
        }
    }
}
