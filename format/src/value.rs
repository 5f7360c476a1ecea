//! Typed argument values.
//!
//! A file stores every scalar as a 64-bit word and every string as a counted run of bytes; which is which, and whether a
//! word is signed, a bool or an address, only the declaration says. [`Value`] is the two put together.

use crate::events::{ArgType, Width};

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

    /// Reads a 64-bit word of a version 0 file as `ty`.
    ///
    /// There, every argument went through an address-wide integer. So strings are addresses, and a 32-bit host cut words to
    /// their lower half without extending the sign: `int` -5 is 0xfffffffb. A signed type of up to 32 bits takes such a word for the
    /// negative number that it was. With `long` and 64-bit types the file does not tell it from a large number: the word
    /// is taken as it stands, and of an `int64_t` the upper half is lost. Plain `char` also stays as it stands.
    ///
    /// ```
    /// use simpletrace_format::Value;
    /// use simpletrace_format::events::{ArgType, Width};
    ///
    /// let int = ArgType::Signed(Width::W32);
    /// assert_eq!(Value::from_word_of_version_0(0xffff_fffb, int), Value::Signed(-5));
    /// assert_eq!(Value::from_word_of_version_0(0xffff_ffff_ffff_fffb, int), Value::Signed(-5));
    /// ```
    #[must_use]
    pub const fn from_word_of_version_0(word: u64, ty: ArgType) -> Self {
        let lowest = match ty {
            ArgType::String => return Self::Pointer(word),
            ArgType::Signed(Width::W8) => i8::MIN as i64,
            ArgType::Signed(Width::W16) => i16::MIN as i64,
            ArgType::Signed(Width::W32) => i32::MIN as i64,
            _ => return Self::from_word(word, ty),
        };
        let extended = (word as u32).cast_signed() as i64;
        if word >> 32 == 0 && lowest <= extended && extended < 0 {
            return Self::Signed(extended);
        }
        Self::from_word(word, ty)
    }

    /// Returns the word that the file holds, `None` for a string. Of a negative number in a version 0 file of a 32-bit host it
    /// is the word that a 64-bit host would have written.
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
    fn a_negative_word_that_a_32_bit_host_cut_is_negative_in_version_0() {
        let read = |word, width| Value::from_word_of_version_0(word, ArgType::Signed(width));
        for width in [Width::W8, Width::W16, Width::W32] {
            for word in [0xffff_fffb, 0xffff_ffff_ffff_fffb] {
                assert_eq!(read(word, width), Value::Signed(-5));
            }
            assert_eq!(read(5, width), Value::Signed(5));
        }
        assert_eq!(read(0x8000_0000, Width::W32), Value::Signed(i32::MIN.into()));
        assert_eq!(read(0x7fff_ffff, Width::W32), Value::Signed(i32::MAX.into()));
        assert_eq!(read(0xffff_ff80, Width::W8), Value::Signed(-128));
    }

    #[test]
    fn a_word_of_version_0_that_may_be_positive_or_does_not_fit_stays_as_it_is() {
        let read = |word, width| Value::from_word_of_version_0(word, ArgType::Signed(width));
        assert_eq!(read(0xffff_fffb, Width::W64), Value::Signed(0xffff_fffb));
        assert_eq!(read(0xffff_fffb, Width::Host), Value::Signed(0xffff_fffb));
        assert_eq!(read(0xffff_ff7f, Width::W8), Value::Signed(0xffff_ff7f));
        assert_eq!(read(0x1_ffff_fffb, Width::W32), Value::Signed(0x1_ffff_fffb));
        assert_eq!(Value::from_word_of_version_0(0xffff_ffed, ArgType::Char), Value::Signed(0xffff_ffed));
        assert_eq!(Value::from_word_of_version_0(0xffff_fffb, ArgType::Bool), Value::Unsigned(0xffff_fffb));
    }

    #[test]
    fn a_string_of_version_0_is_its_address() {
        assert_eq!(Value::from_word_of_version_0(0x5560, ArgType::String), Value::Pointer(0x5560));
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
