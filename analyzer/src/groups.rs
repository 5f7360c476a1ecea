//! What operations or records are grouped by: values of arguments, numbered as they come.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use simpletrace_format::Value;

use crate::pairing::{By, MAX_BY};

/// The numbers of a group's values, one for each argument that is grouped by.
pub(crate) type GroupId = [u32; MAX_BY];

/// The values that were seen.
pub(crate) struct Groups {
    terms: Vec<Term>,
}

/// An argument that is grouped by.
struct Term {
    text: String,
    is_log2: bool,
    numbers: HashMap<GroupValue, u32, RandomState>,
    values: Vec<GroupValue>,
}

/// A value that is grouped by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum GroupValue {
    /// The record has no such argument.
    None,
    /// There were too many different ones.
    Other,
    Signed(i64),
    Unsigned(u64),
    Bool(bool),
    Pointer(u64),
    Text(Vec<u8>),
    /// From a power of two, or 0, to below the next.
    Log2(u64),
    /// Below 0, of what is grouped by powers of two.
    Negative,
}

impl Groups {
    /// The number of no value.
    pub(crate) const NONE: u32 = 0;
    const OTHER: u32 = 1;
    /// All that are too many to be told apart.
    pub(crate) const ALL_OTHER: GroupId = [Self::OTHER; MAX_BY];
    /// How many different values of an argument are told apart.
    pub(crate) const MAX_VALUES: usize = 10_000;

    pub(crate) fn new(by: &[By]) -> Self {
        let term = |by: &By| Term {
            text: by.text.clone(),
            is_log2: by.is_log2,
            numbers: HashMap::default(),
            values: vec![GroupValue::None, GroupValue::Other],
        };
        Self { terms: by.iter().map(term).collect() }
    }

    /// What is grouped by, as it was given.
    pub(crate) fn terms(&self) -> impl ExactSizeIterator<Item = &str> {
        self.terms.iter().map(|term| term.text.as_str())
    }

    /// The numbers of values.
    #[inline]
    pub(crate) fn of(&mut self, values: &[Option<Value<'_>>; MAX_BY]) -> GroupId {
        let mut id = [Self::NONE; MAX_BY];
        for ((id, value), term) in id.iter_mut().zip(values).zip(&mut self.terms) {
            if let Some(value) = value {
                *id = term.number(GroupValue::of(*value, term.is_log2));
            }
        }
        id
    }

    /// The values of a group.
    pub(crate) fn values(&self, id: GroupId) -> impl Iterator<Item = &GroupValue> {
        self.terms.iter().zip(id).map(|(term, number)| &term.values[number as usize])
    }
}

impl Term {
    fn number(&mut self, value: GroupValue) -> u32 {
        if let Some(&number) = self.numbers.get(&value) {
            return number;
        }
        if self.values.len() >= Groups::MAX_VALUES {
            return Groups::OTHER;
        }
        let number = self.values.len() as u32;
        self.values.push(value.clone());
        self.numbers.insert(value, number);
        number
    }
}

impl GroupValue {
    fn of(value: Value<'_>, is_log2: bool) -> Self {
        match value {
            Value::Signed(..0) if is_log2 => Self::Negative,
            Value::String(bytes) => Self::Text(bytes.to_vec()),
            value if is_log2 => {
                let word = value.word().unwrap_or_default();
                Self::Log2(if word == 0 { 0 } else { 1 << word.ilog2() })
            }
            Value::Signed(value) => Self::Signed(value),
            Value::Unsigned(word) => Self::Unsigned(word),
            Value::Bool(value) => Self::Bool(value),
            Value::Pointer(word) => Self::Pointer(word),
        }
    }
}

impl std::fmt::Display for GroupValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => f.write_str("-"),
            Self::Other => f.write_str("other"),
            Self::Signed(value) => write!(f, "{value}"),
            Self::Unsigned(value) => write!(f, "{value}"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Pointer(value) => write!(f, "{value:#x}"),
            Self::Text(bytes) => f.write_str(&crate::render::printable(&String::from_utf8_lossy(bytes))),
            Self::Log2(0) => f.write_str("0"),
            Self::Log2(from) => match from.checked_mul(2) {
                Some(to) => write!(f, "[{from}, {to})"),
                None => write!(f, "[{from}, 2^64)"),
            },
            Self::Negative => f.write_str("below 0"),
        }
    }
}
