//! Typed argument values.
//!
//! A file stores every scalar as a 64-bit word and every string as a counted run of bytes; which is which, and whether a
//! word is signed, a bool or an address, only the declaration says. [`Value`] is the two put together.

use crate::events::ArgType;

/// One argument of one record, read as its declaration says.
///
/// No bits are ever cut off: a word that its declared type cannot hold (a wrong trace-events file, a damaged record) keeps
/// all 64 of them, as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// A signed integer; the recorder sign-extends narrow ones.
    Signed(i64),
    /// An unsigned integer.
    Unsigned(u64),
    /// A `bool` that is 0 or 1.
    Bool(bool),
    /// An address, which is zero-extended from 32-bit hosts.
    Pointer(u64),
    /// A string: any bytes, without a terminating NUL, cut at 512 by QEMU's recorder. NULL is recorded as empty.
    String(&'a [u8]),
}

impl Value<'_> {
    /// Reads a 64-bit word as `ty`. A word that stands where a string was declared has no text and stays a number.
    #[inline]
    #[must_use]
    pub const fn from_word(word: u64, ty: ArgType) -> Self {
        match ty {
            ArgType::Signed(_) | ArgType::Char => Self::Signed(word.cast_signed()),
            ArgType::Bool if word <= 1 => Self::Bool(word == 1),
            ArgType::Pointer => Self::Pointer(word),
            ArgType::Bool | ArgType::Unsigned(_) | ArgType::String => Self::Unsigned(word),
        }
    }

    /// Returns the word that the file holds, `None` for a string.
    #[inline]
    #[must_use]
    pub const fn word(self) -> Option<u64> {
        match self {
            Self::Signed(value) => Some(value.cast_unsigned()),
            Self::Unsigned(word) | Self::Pointer(word) => Some(word),
            Self::Bool(value) => Some(value as u64),
            Self::String(_) => None,
        }
    }
}
