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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Width;

    const WORDS: [u64; 6] = [0, 1, 2, 0xff, 1 << 63, u64::MAX];

    #[test]
    fn signed_words_are_negative_whatever_their_width() {
        for width in [Width::W8, Width::W16, Width::W32, Width::W64, Width::Host] {
            let ty = ArgType::Signed(width);
            assert_eq!(Value::from_word(-5_i64 as u64, ty), Value::Signed(-5));
            assert_eq!(Value::from_word(1 << 63, ty), Value::Signed(i64::MIN));
        }
    }

    #[test]
    fn unsigned_words_and_addresses_keep_all_their_bits() {
        for word in WORDS {
            assert_eq!(Value::from_word(word, ArgType::Unsigned(Width::W8)), Value::Unsigned(word));
            assert_eq!(Value::from_word(word, ArgType::Pointer), Value::Pointer(word));
        }
    }

    #[test]
    fn a_plain_char_has_the_sign_that_its_host_gave_it() {
        assert_eq!(Value::from_word(0xffff_ffff_ffff_ffed, ArgType::Char), Value::Signed(-19));
        assert_eq!(Value::from_word(0xed, ArgType::Char), Value::Signed(237));
    }

    #[test]
    fn only_zero_and_one_are_bools() {
        assert_eq!(Value::from_word(0, ArgType::Bool), Value::Bool(false));
        assert_eq!(Value::from_word(1, ArgType::Bool), Value::Bool(true));
        for word in [2, 256, 1 << 63, u64::MAX] {
            assert_eq!(Value::from_word(word, ArgType::Bool), Value::Unsigned(word));
        }
    }

    #[test]
    fn a_word_survives_being_read_as_any_type() {
        let types = [
            ArgType::Signed(Width::W8),
            ArgType::Unsigned(Width::Host),
            ArgType::Char,
            ArgType::Bool,
            ArgType::Pointer,
            ArgType::String,
        ];
        for ty in types {
            for word in WORDS {
                assert_eq!(Value::from_word(word, ty).word(), Some(word), "{ty:?}");
            }
        }
        assert_eq!(Value::String(b"12345678").word(), None);
    }
}
