//! What a filter comes to for the records of one event: tests of words and strings at known places.

use std::fmt;

use simpletrace_format::events::{ArgDecl, ArgType};
use simpletrace_format::{Args, EventRecord, Payload, Value};

use super::parse::Op;
use crate::filter::matches_runs;
use crate::time::Instant;

/// The way to an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Arg {
    name: String,
    c_type: String,
    ty: ArgType,
    /// For each string in front of it, how many words stand between it and the string before.
    words_before_strings: Box<[usize]>,
    /// How many words stand in front of it, behind the last string.
    words: usize,
    /// Its number among the arguments.
    pub(super) index: usize,
}

impl Arg {
    /// The argument with this number; strings are counted runs of bytes unless `has_text` is false, as in version 0.
    pub(super) fn new(args: &[ArgDecl], index: usize, has_text: bool) -> Self {
        let ArgDecl { name, c_type, ty, .. } = &args[index];
        let mut arg = Self {
            name: name.clone(),
            c_type: c_type.to_string(),
            ty: *ty,
            words_before_strings: Box::default(),
            words: 0,
            index,
        };
        let mut words_before_strings = Vec::new();
        for before in &args[..index] {
            if has_text && before.ty.is_string() {
                words_before_strings.push(std::mem::take(&mut arg.words));
            } else {
                arg.words += 1;
            }
        }
        arg.words_before_strings = words_before_strings.into();
        arg
    }

    #[inline]
    fn find<'a>(&self, payload: Payload<'a>) -> Option<Args<'a>> {
        let mut args = payload.args();
        for &words in &self.words_before_strings {
            args.skip_words(words)?;
            args.string()?;
        }
        args.skip_words(self.words)?;
        Some(args)
    }

    #[inline]
    fn value<'a>(&self, payload: Payload<'a>) -> Option<Value<'a>> {
        self.find(payload)?.next(self.ty)
    }

    /// The word; 0 for what is not there, which was seen to before.
    #[inline]
    fn word(&self, payload: Payload<'_>) -> u64 {
        self.value(payload).and_then(Value::word).unwrap_or_default()
    }

    /// The string; empty for what is not there.
    #[inline]
    fn text<'a>(&self, payload: Payload<'a>) -> &'a [u8] {
        match self.value(payload) {
            Some(Value::String(text)) => text,
            _ => b"",
        }
    }

    /// As the type has it.
    fn literal(&self, word: u64) -> String {
        match self.ty {
            ArgType::Signed(_) | ArgType::Char => word.cast_signed().to_string(),
            ArgType::Pointer => format!("{word:#x}"),
            ArgType::Unsigned(_) | ArgType::Bool | ArgType::String => word.to_string(),
        }
    }

    /// With the sign bit turned round, numbers with a sign have the order of those without.
    const fn sign_bit(&self) -> u64 {
        match self.ty {
            ArgType::Signed(_) | ArgType::Char => 1 << 63,
            _ => 0,
        }
    }
}

impl fmt::Display for Arg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.c_type)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    Constant(bool),
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    /// A number, and the sign bit as [`Arg::sign_bit`] has it.
    Word {
        arg: Arg,
        op: Op,
        literal: u64,
        sign_bit: u64,
    },
    Bits {
        arg: Arg,
        bits: u64,
    },
    Bool {
        arg: Arg,
        is: bool,
    },
    Text {
        arg: Arg,
        op: Op,
        literal: Vec<u8>,
    },
    Time(Op, Instant),
    Pid(Op, u32),
}

impl Node {
    pub(super) const fn word(arg: Arg, op: Op, literal: u64) -> Self {
        let sign_bit = arg.sign_bit();
        Self::Word { arg, op, literal, sign_bit }
    }

    /// All of these, without those that make no difference.
    pub(super) fn all(parts: Vec<Self>) -> Self {
        Self::join(parts, true, Self::All)
    }

    /// Any of these, likewise.
    pub(super) fn any(parts: Vec<Self>) -> Self {
        Self::join(parts, false, Self::Any)
    }

    fn join(mut parts: Vec<Self>, neutral: bool, together: fn(Vec<Self>) -> Self) -> Self {
        if parts.contains(&Self::Constant(!neutral)) {
            return Self::Constant(!neutral);
        }
        parts.retain(|part| *part != Self::Constant(neutral));
        match parts.len() {
            0 => Self::Constant(neutral),
            1 => parts.remove(0),
            _ => together(parts),
        }
    }

    pub(super) fn not(part: Self) -> Self {
        match part {
            Self::Constant(is) => Self::Constant(!is),
            part => Self::Not(Box::new(part)),
        }
    }

    fn holds(&self, record: &EventRecord<'_>, start_ns: u64) -> bool {
        let payload = record.payload;
        match self {
            Self::Constant(is) => *is,
            Self::All(parts) => parts.iter().all(|part| part.holds(record, start_ns)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(record, start_ns)),
            Self::Not(part) => !part.holds(record, start_ns),
            Self::Word { arg, op, literal, sign_bit } => {
                op.holds(&(arg.word(payload) ^ sign_bit), &(literal ^ sign_bit))
            }
            Self::Bits { arg, bits } => arg.word(payload) & bits != 0,
            Self::Bool { arg, is } => (arg.word(payload) != 0) == *is,
            Self::Text { arg, op: Op::Like, literal } => matches_runs(literal, arg.text(payload)),
            Self::Text { arg, op, literal } => op.holds(arg.text(payload), literal.as_slice()),
            Self::Time(op, Instant::Absolute(ns)) => op.holds(&record.timestamp_ns, ns),
            // A record may be earlier than the first.
            Self::Time(op, Instant::Relative(ns)) => {
                let since_ns = i128::from(record.timestamp_ns) - i128::from(start_ns);
                op.holds(&since_ns, &i128::from(*ns))
            }
            Self::Pid(op, pid) => op.holds(&record.pid, pid),
        }
    }

    /// The argument of all that stands behind all others.
    fn last_arg(&self) -> Option<&Arg> {
        match self {
            Self::Constant(_) | Self::Time(..) | Self::Pid(..) => None,
            Self::All(parts) | Self::Any(parts) => parts.iter().filter_map(Self::last_arg).max_by_key(|arg| arg.index),
            Self::Not(part) => part.last_arg(),
            Self::Word { arg, .. } | Self::Bits { arg, .. } | Self::Bool { arg, .. } | Self::Text { arg, .. } => {
                Some(arg)
            }
        }
    }
}

impl Op {
    #[inline]
    fn holds<T: Ord + ?Sized>(self, left: &T, right: &T) -> bool {
        match self {
            // Patterns are for strings, and looked at there.
            Self::Equal | Self::Like => left == right,
            Self::Unequal => left != right,
            Self::Less => left < right,
            Self::LessOrEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterOrEqual => left >= right,
        }
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |parts: &[Self], f: &mut fmt::Formatter<'_>, symbol: &str| {
            for (index, part) in parts.iter().enumerate() {
                let symbol = if index > 0 { symbol } else { "" };
                match part {
                    Self::All(_) | Self::Any(_) => write!(f, "{symbol}({part})")?,
                    part => write!(f, "{symbol}{part}")?,
                }
            }
            Ok(())
        };
        match self {
            Self::Constant(is) => write!(f, "{is}"),
            Self::All(parts) => joined(parts, f, " && "),
            Self::Any(parts) => joined(parts, f, " || "),
            Self::Not(part) => write!(f, "!({part})"),
            Self::Word { arg, op, literal, .. } => write!(f, "{arg} {} {}", op.text(), arg.literal(*literal)),
            Self::Bits { arg, bits } => write!(f, "{arg} & {bits:#x}"),
            Self::Bool { arg, is } => write!(f, "{arg} == {is}"),
            Self::Text { arg, op, literal } => write!(f, "{arg} {} \"{}\"", op.text(), literal.escape_ascii()),
            Self::Time(op, Instant::Relative(ns)) => write!(f, "time {} {ns} ns since the start", op.text()),
            Self::Time(op, Instant::Absolute(ns)) => write!(f, "time {} {ns} ns of the clock", op.text()),
            Self::Pid(op, pid) => write!(f, "pid {} {pid}", op.text()),
        }
    }
}

/// What is asked of each record of an event.
#[derive(Debug)]
pub(crate) struct Predicate {
    node: Node,
    /// A record that has this argument has all that are asked for.
    last_arg: Option<Arg>,
}

impl Predicate {
    pub(super) fn new(node: Node) -> Self {
        Self { last_arg: node.last_arg().cloned(), node }
    }

    /// Whether a record is wanted, in a trace that starts at `start_ns`; `None` if it is too short to tell.
    // Not inlined, so that the loop over records has the registers.
    #[inline(never)]
    pub(crate) fn admits(&self, record: &EventRecord<'_>, start_ns: u64) -> Option<bool> {
        if let Some(arg) = &self.last_arg {
            arg.value(record.payload)?;
        }
        Some(self.node.holds(record, start_ns))
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.node)
    }
}
