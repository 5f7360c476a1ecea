//! What a column cannot hold as it is in the file.

use crate::say;

/// Values that stand in a column as something else.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Oddities {
    /// Strings that are not UTF-8, and stand as `\xNN`.
    pub(crate) texts: u64,
    /// Values of `bool` arguments that are neither 0 nor 1, and stand as true.
    pub(crate) bools: u64,
}

impl Oddities {
    /// Adds those of another table.
    pub(crate) fn add(&mut self, other: Self) {
        self.texts += other.texts;
        self.bools += other.bools;
    }

    /// Says on stderr what there is.
    pub(crate) fn say(self) {
        if self.texts > 0 {
            say::warning(&format!(
                "strings that are not UTF-8: {}; their bytes from 0x80 up, and their backslashes, are written as \\xNN",
                self.texts
            ));
        }
        if self.bools > 0 {
            say::warning(&format!(
                "values of bool arguments that are neither 0 nor 1: {}; written as true",
                self.bools
            ));
        }
    }
}

/// Hands a string to `put` as UTF-8; one that is not has each byte from 0x80 up, and each backslash, as `\xNN`.
#[inline]
pub(crate) fn put_text<T>(bytes: &[u8], oddities: &mut Oddities, put: impl FnOnce(&str) -> T) -> T {
    match str::from_utf8(bytes) {
        Ok(text) => put(text),
        Err(_) => {
            oddities.texts += 1;
            put(&crate::render::plain_text(bytes))
        }
    }
}
