//! What is wrong with a trace: gathered for one warning, or raised at once.

use std::fmt;

use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use simpletrace_format::{Damage, ErrorKind};

/// Faults that a warning tells one by one.
const MAX_TOLD: usize = 3;

/// What the original would have stopped at.
#[derive(Default)]
pub(crate) struct Faults {
    told: Vec<String>,
    count: u64,
}

impl Faults {
    pub(crate) fn add(&mut self, fault: impl fmt::Display) {
        self.count += 1;
        if self.told.len() < MAX_TOLD {
            self.told.push(fault.to_string());
        }
    }

    /// The first faults, and how many more there are, if there are any.
    pub(crate) fn told(&self) -> Option<String> {
        let told = self.told.join("; ");
        match self.count - self.told.len() as u64 {
            0 => (!told.is_empty()).then_some(told),
            more => Some(format!("{told}; and {more} more")),
        }
    }

    /// The text of the warning, if there is something to warn of, such as `others`; behind offsets, `from_where` they count.
    pub(crate) fn warning(&self, file: &str, from_where: &str, others: &[Option<String>]) -> Option<String> {
        let others: Vec<&str> = others.iter().flatten().map(String::as_str).collect();
        let others = others.join("; ");
        if self.count == 0 {
            return (!others.is_empty()).then(|| format!("{file}: {others}"));
        }
        let others = if others.is_empty() { others } else { format!("; {others}") };
        let told = self.told().unwrap_or_default();
        Some(format!(
            "{file} is damaged, what is intact was read: {told} (strict=True makes it an error{from_where}){others}"
        ))
    }
}

/// An exception of the package or the standard library, by module and name.
pub(crate) fn exception(module: &str, name: &str, message: String) -> PyErr {
    Python::attach(|py| {
        let made = py.import(module).and_then(|module| module.getattr(name)).and_then(|class| class.call1((message,)));
        made.map_or_else(|error| error, PyErr::from_value)
    })
}

/// What damage is to those who want none: of the kind that simpletrace.py stops with.
pub(crate) fn of_damage(file: &str, damage: &Damage, from_where: &str) -> PyErr {
    // Not where reading goes on: it does not.
    let what = match (&damage.kind, damage.resumed_at) {
        (ErrorKind::TornTail(_), Some(_)) => "a record that would end behind the end of the file".to_owned(),
        (kind, _) => kind.to_string(),
    };
    let why = if damage.is_overlap() { "; the record before is too long" } else { "" };
    let message = format!("{file}: offset {}: {what}{why}{from_where}", damage.offset);
    match damage.kind {
        // Behind the type word, inside what is left of the header.
        ErrorKind::TornTail(8..32) => exception("simpletrace", "SimpleException", message),
        ErrorKind::TornTail(_) | ErrorKind::DroppedLength(_) => exception("struct", "error", message),
        ErrorKind::SecondHeader | ErrorKind::MisplacedTraceBegin => PyKeyError::new_err(message),
        _ => PyValueError::new_err(message),
    }
}

/// Why a file is none that can be read: of the kind that simpletrace.py stops with.
pub(crate) fn of_header(file: &str, head: &[u8], error: &simpletrace_format::Error) -> PyErr {
    let hint = match head {
        [0x1f, 0x8b, ..] => "; it is compressed: pass gzip.open(path) instead",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            "; it is compressed with zstd: decompress it first, or pass what `zstd -dc` writes"
        }
        [b'B', b'Z', b'h', ..] => "; it is compressed: pass bz2.open(path) instead",
        [0xfd, b'7', b'z', b'X', b'Z', ..] => "; it is compressed: pass lzma.open(path) instead",
        _ => "",
    };
    let message = format!("{file}: {error}{hint}");
    match error.kind() {
        ErrorKind::HeaderCut(_) => exception("simpletrace", "SimpleException", message),
        _ => PyValueError::new_err(message),
    }
}
