//! What operations or records are grouped by: values of arguments, numbered as they come.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Result, bail};
use foldhash::fast::RandomState;
use simpletrace_format::Value;

use crate::input::read_small;
use crate::numbers::Numbers;
use crate::pairing::{By, MAX_BY};
use crate::render::{Cell, printable};

/// The numbers of a group's values, one for each argument that is grouped by.
pub(crate) type GroupId = [u32; MAX_BY];

/// The values that were seen.
pub(crate) struct Groups {
    terms: Vec<Term>,
    /// How many different values of an argument are told apart.
    most: usize,
    names: Names,
}

/// What somebody calls pointers.
#[derive(Debug, Default)]
pub(crate) struct Names(HashMap<u64, String>);

impl Names {
    /// Reads lines such as `0x55bd4edec9a0=disk0`.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or a line, which is named, is not so.
    pub(crate) fn load(path: &Path) -> Result<Self> {
        let text = read_small(path)?;
        let mut names = HashMap::new();
        for (number, line) in
            (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
        {
            let parts = line.split_once('=').and_then(|(pointer, name)| {
                let digits = pointer.trim().strip_prefix("0x")?;
                Some((u64::from_str_radix(digits, 16).ok()?, name.trim()))
            });
            let Some((pointer, name)) = parts.filter(|(_, name)| !name.is_empty()) else {
                let line = printable(line);
                bail!("{}:{number}: '{line}' is no name of a pointer; write 0x55bd4edec9a0=disk0", path.display());
            };
            names.insert(pointer, name.to_owned());
        }
        Ok(Self(names))
    }

    /// What a pointer is called, if it is.
    pub(crate) fn get(&self, pointer: u64) -> Option<&str> {
        self.0.get(&pointer).map(String::as_str)
    }
}

/// An argument that is grouped by.
struct Term {
    text: String,
    is_log2: bool,
    /// What its numbers are called.
    known: Option<Numbers>,
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
    /// How many different values of an argument are told apart, if nothing else is asked for.
    pub(crate) const MAX_VALUES: usize = 10_000;

    pub(crate) fn new(by: &[By]) -> Self {
        let term = |by: &By| Term {
            text: by.text.clone(),
            is_log2: by.is_log2,
            known: None,
            numbers: HashMap::default(),
            values: vec![GroupValue::None, GroupValue::Other],
        };
        Self { terms: by.iter().map(term).collect(), most: Self::MAX_VALUES, names: Names::default() }
    }

    /// Tells apart as many values as there are.
    #[cfg(feature = "columns")]
    pub(crate) const fn tell_all_apart(&mut self) {
        self.most = u32::MAX as usize;
    }

    /// The values of an argument by their numbers.
    #[cfg(feature = "columns")]
    pub(crate) fn values(&self, slot: usize) -> &[GroupValue] {
        &self.terms[slot].values
    }

    /// Takes notice of what an argument that is grouped by is, by its place.
    pub(crate) fn know(&mut self, slot: usize, numbers: Option<Numbers>) {
        let known = &mut self.terms[slot].known;
        *known = known.or(numbers);
    }

    /// Forgets what numbers are called.
    pub(crate) fn forget_numbers(&mut self) {
        self.terms.iter_mut().for_each(|term| term.known = None);
    }

    /// Sets what pointers are called.
    pub(crate) fn set_names(&mut self, names: Names) {
        self.names = names;
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
                *id = term.number(GroupValue::of(*value, term.is_log2), self.most);
            }
        }
        id
    }

    /// Whether a group has values that are not told apart from others.
    pub(crate) fn is_other(&self, id: GroupId) -> bool {
        self.terms.iter().zip(id).any(|(_, number)| number == Self::OTHER)
    }

    /// The values of a group, for a row.
    pub(crate) fn cells(&self, id: GroupId) -> impl Iterator<Item = Cell> {
        self.terms.iter().zip(id).map(|(term, number)| {
            let value = term.values[number as usize].clone();
            let short = self.short_name(term, number, &value);
            Cell::Value { value, short }
        })
    }

    /// The values of a group as text: `reason=2 vq=0x55bd4edec9a0`.
    pub(crate) fn label(&self, id: GroupId) -> String {
        let values =
            self.terms.iter().zip(id).map(|(term, number)| format!("{}={}", term.text, term.values[number as usize]));
        values.collect::<Vec<_>>().join(" ")
    }

    /// A group as the title of a picture, with the line's end; empty if nothing is grouped by.
    pub(crate) fn title(&self, id: GroupId) -> String {
        let terms: Vec<_> =
            self.terms().zip(self.cells(id)).map(|(term, cell)| format!("{term}={}", cell.shown())).collect();
        if terms.is_empty() { String::new() } else { format!("{}\n", terms.join(" ")) }
    }

    /// What a pointer is called in tables: as its user calls it, or by the number of its first record.
    fn short_name(&self, term: &Term, number: u32, value: &GroupValue) -> Option<String> {
        match value {
            GroupValue::Pointer(pointer) => Some(
                self.names.get(*pointer).map_or_else(|| format!("{}#{}", term.text, number - Self::OTHER), printable),
            ),
            GroupValue::Signed(number) => Some(format!("{value} ({})", term.known?.name(Value::Signed(*number))?)),
            GroupValue::Unsigned(number) => Some(format!("{value} ({})", term.known?.name(Value::Unsigned(*number))?)),
            _ => None,
        }
    }

    /// What short names in tables stand for.
    pub(crate) fn legend(&self) -> Vec<String> {
        let mut legend = Vec::new();
        for term in &self.terms {
            for (number, value) in (0..).zip(&term.values) {
                if matches!(value, GroupValue::Pointer(_))
                    && let Some(short) = self.short_name(term, number, value)
                {
                    legend.push(format!("{short} is {value}"));
                }
            }
        }
        legend
    }
}

impl Term {
    fn number(&mut self, value: GroupValue, most: usize) -> u32 {
        if let Some(&number) = self.numbers.get(&value) {
            return number;
        }
        // Beside none and the others.
        if self.values.len() >= most.saturating_add(2) {
            return Groups::OTHER;
        }
        let number = self.values.len() as u32;
        self.values.push(value.clone());
        self.numbers.insert(value, number);
        number
    }
}

impl GroupValue {
    /// How many bytes its text has.
    #[cfg(feature = "columns")]
    pub(crate) fn bytes(&self) -> usize {
        if let Self::Text(bytes) = self { bytes.len() } else { 0 }
    }

    pub(crate) fn of(value: Value<'_>, is_log2: bool) -> Self {
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
            Self::Text(bytes) => f.write_str(&printable(&String::from_utf8_lossy(bytes))),
            Self::Log2(0) => f.write_str("0"),
            Self::Log2(from) => match from.checked_mul(2) {
                Some(to) => write!(f, "[{from}, {to})"),
                None => write!(f, "[{from}, 2^64)"),
            },
            Self::Negative => f.write_str("below 0"),
        }
    }
}
