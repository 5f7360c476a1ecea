//! Arguments of an event, and how they are laid out.

use std::ffi::CStr;

use crate::ring::MAX_PAYLOAD_BYTES;

/// One argument of an event, as it goes into the file: a number of 64 bits, or bytes with their length.
///
/// Every C scalar becomes a number as C converts it to `uint64_t`: signed ones keep their sign, so that a -5 is read as -5.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arg<'a> {
    /// A scalar.
    Word(u64),
    /// A string, without a terminating zero.
    Bytes(&'a [u8]),
}

macro_rules! from_unsigned {
    ($($type:ty)*) => {$(
        impl From<$type> for Arg<'_> {
            #[inline(always)]
            fn from(value: $type) -> Self {
                Self::Word(value as u64)
            }
        }
    )*};
}

macro_rules! from_signed {
    ($($type:ty)*) => {$(
        impl From<$type> for Arg<'_> {
            #[inline(always)]
            fn from(value: $type) -> Self {
                Self::Word((value as i64).cast_unsigned())
            }
        }
    )*};
}

from_unsigned!(u8 u16 u32 u64 usize bool);
from_signed!(i8 i16 i32 i64 isize);

impl<T> From<*const T> for Arg<'_> {
    #[inline(always)]
    fn from(value: *const T) -> Self {
        Self::Word(value.addr() as u64)
    }
}

impl<T> From<*mut T> for Arg<'_> {
    #[inline(always)]
    fn from(value: *mut T) -> Self {
        Self::Word(value.addr() as u64)
    }
}

impl<'a> From<&'a str> for Arg<'a> {
    #[inline(always)]
    fn from(value: &'a str) -> Self {
        Self::Bytes(value.as_bytes())
    }
}

impl<'a> From<&'a [u8]> for Arg<'a> {
    #[inline(always)]
    fn from(value: &'a [u8]) -> Self {
        Self::Bytes(value)
    }
}

impl<'a> From<&'a CStr> for Arg<'a> {
    #[inline(always)]
    fn from(value: &'a CStr) -> Self {
        Self::Bytes(value.to_bytes())
    }
}

impl<'a> From<Option<&'a CStr>> for Arg<'a> {
    /// No string is the empty one, as QEMU has it for `NULL`.
    #[inline(always)]
    fn from(value: Option<&'a CStr>) -> Self {
        Self::Bytes(value.map_or(&[], CStr::to_bytes))
    }
}

/// Returns how many bytes the arguments take in a file, or `None` if no record can have so many.
#[inline(always)]
pub(crate) fn payload_bytes(args: &[Arg<'_>]) -> Option<u32> {
    let mut bytes: usize = 0;
    for arg in args {
        bytes = bytes.checked_add(match arg {
            Arg::Word(_) => 8,
            Arg::Bytes(string) => string.len().checked_add(4)?,
        })?;
    }
    u32::try_from(bytes).ok().filter(|&bytes| bytes <= MAX_PAYLOAD_BYTES)
}

/// Hands the arguments as they stand in a file to `put`, eight bytes at a time, the first in the lowest bits; zeros fill the last up.
// Always: whether the compiler would is a matter of what else is in the crate, and costs a string twelve instructions.
#[inline(always)]
pub(crate) fn pack(args: &[Arg<'_>], put: impl FnMut(usize, u64)) {
    let mut packer = Packer { put, index: 0, bits: 0, filled: 0 };
    for arg in args {
        match *arg {
            Arg::Word(word) => packer.word(word),
            Arg::Bytes(bytes) => {
                // Fits: see `payload_bytes`.
                packer.part(bytes.len() as u64, 4);
                let (words, rest) = bytes.as_chunks::<8>();
                for word in words {
                    packer.word(u64::from_le_bytes(*word));
                }
                if !rest.is_empty() {
                    let mut last = [0; 8];
                    last[..rest.len()].copy_from_slice(rest);
                    packer.part(u64::from_le_bytes(last), rest.len() as u32);
                }
            }
        }
    }
    packer.finish();
}

/// Makes whole words of parts.
struct Packer<P> {
    put: P,
    index: usize,
    /// What is there of the next word.
    bits: u64,
    /// How many bytes of it, 0 to 7.
    filled: u32,
}

impl<P: FnMut(usize, u64)> Packer<P> {
    #[inline(always)]
    fn word(&mut self, word: u64) {
        (self.put)(self.index, self.bits | word << (8 * self.filled));
        self.index += 1;
        self.bits = if self.filled == 0 { 0 } else { word >> (64 - 8 * self.filled) };
    }

    /// Adds the lowest `bytes` of `part`, 1 to 7; the others are zero.
    #[inline(always)]
    fn part(&mut self, part: u64, bytes: u32) {
        let filled = self.filled + bytes;
        self.bits |= part << (8 * self.filled);
        if filled >= 8 {
            (self.put)(self.index, self.bits);
            self.index += 1;
            self.bits = if filled == 8 { 0 } else { part >> (8 * (8 - self.filled)) };
        }
        self.filled = filled % 8;
    }

    #[inline(always)]
    fn finish(mut self) {
        if self.filled > 0 {
            (self.put)(self.index, self.bits);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn scalars_are_converted_as_c_converts_them_to_64_bits() {
        let words: [(Arg<'_>, u64); 14] = [
            (0x80u8.into(), 0x80),
            (0x8000u16.into(), 0x8000),
            (0x8000_0000u32.into(), 0x8000_0000),
            (u64::MAX.into(), u64::MAX),
            (3usize.into(), 3),
            (true.into(), 1),
            (false.into(), 0),
            ((-5i8).into(), 0xffff_ffff_ffff_fffb),
            ((-5i16).into(), 0xffff_ffff_ffff_fffb),
            ((-5i32).into(), 0xffff_ffff_ffff_fffb),
            (i64::MIN.into(), 1 << 63),
            ((-1isize).into(), u64::MAX),
            (std::ptr::without_provenance::<u8>(0xdead_beef).into(), 0xdead_beef),
            (std::ptr::null_mut::<u64>().into(), 0),
        ];
        for (arg, word) in words {
            assert_eq!(arg, Arg::Word(word));
        }
    }

    #[test]
    fn strings_are_their_bytes_without_a_terminating_zero() {
        assert_eq!(Arg::from("sda"), Arg::Bytes(b"sda"));
        assert_eq!(Arg::from(&[0u8, 255][..]), Arg::Bytes(&[0, 255]));
        assert_eq!(Arg::from(c"sda"), Arg::Bytes(b"sda"));
        assert_eq!(Arg::from(Some(c"sda")), Arg::Bytes(b"sda"));
        assert_eq!(Arg::from(None::<&CStr>), Arg::Bytes(b""));
    }

    #[test]
    fn a_payload_is_as_long_as_the_format_allows_and_no_longer() {
        let longest = vec![0; MAX_PAYLOAD_BYTES as usize - 4];
        assert_eq!(payload_bytes(&[]), Some(0));
        assert_eq!(payload_bytes(&[Arg::Word(1), Arg::from("abc")]), Some(15));
        assert_eq!(payload_bytes(&[Arg::Bytes(&longest)]), Some(262_120));
        assert_eq!(payload_bytes(&[Arg::Bytes(&longest), Arg::Bytes(&[])]), None);
    }

    /// The same, byte by byte.
    fn bytes(args: &[Arg<'_>]) -> Vec<u8> {
        let mut out = Vec::new();
        for arg in args {
            match arg {
                Arg::Word(word) => out.extend(word.to_le_bytes()),
                Arg::Bytes(bytes) => {
                    out.extend((bytes.len() as u32).to_le_bytes());
                    out.extend(*bytes);
                }
            }
        }
        out
    }

    proptest! {
        #[test]
        fn packed_arguments_are_those_of_the_file(
            args in prop::collection::vec(
                prop_oneof![
                    any::<u64>().prop_map(Ok),
                    prop::collection::vec(any::<u8>(), 0..30).prop_map(Err),
                ],
                0..8,
            ),
        ) {
            let args: Vec<_> = args.iter().map(|arg| match arg {
                Ok(word) => Arg::Word(*word),
                Err(bytes) => Arg::Bytes(bytes),
            }).collect();
            let mut packed = Vec::new();
            pack(&args, |index, word| {
                assert_eq!(index * 8, packed.len());
                packed.extend(word.to_le_bytes());
            });
            let mut expected = bytes(&args);
            prop_assert_eq!(payload_bytes(&args), Some(expected.len() as u32));
            expected.resize(expected.len().next_multiple_of(8), 0);
            prop_assert_eq!(packed, expected);
        }
    }
}
