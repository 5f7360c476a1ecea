//! C types of arguments and how the recorder stores them.
//!
//! The recorder stores a string as a counted run of bytes and everything else as one 64-bit word, and decides by the
//! *spelling* of the declared type (`is_string` in QEMU's scripts/tracetool/backend/simple.py). So the test for a string is
//! kept to the letter here: one blank more or less changes the layout of a record. Facts: docs/FORMAT.md.

use std::borrow::Cow;

/// The width of an integer type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Width {
    /// 8 bits.
    W8,
    /// 16 bits.
    W16,
    /// 32 bits.
    W32,
    /// 64 bits.
    W64,
    /// As wide as an address of the traced host: `long`, `size_t` and their like.
    Host,
}

/// How an argument of a given C type is stored and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ArgType {
    /// A signed integer, sign-extended to 64 bits in the file.
    Signed(Width),
    /// An unsigned integer, zero-extended.
    Unsigned(Width),
    /// Plain `char`, whose sign is that of the traced host: the word as it stands, read as signed.
    Char,
    /// `bool`: 0 or 1.
    Bool,
    /// An address: any type with a `*` that is not a string.
    Pointer,
    /// A counted string.
    String,
}

use ArgType::{Bool, Char, Pointer, Signed, String as Text, Unsigned};
use Width::{Host, W8, W16, W32, W64};

/// The words that tracetool lets a type consist of, besides `const` and any number of `*`.
pub(super) const ALLOWED_TYPES: [&str; 20] = [
    "bool",
    "char",
    "int",
    "int16_t",
    "int32_t",
    "int64_t",
    "int8_t",
    "long",
    "ptrdiff_t",
    "short",
    "signed",
    "size_t",
    "ssize_t",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "uint8_t",
    "uintptr_t",
    "unsigned",
    "void",
];

/// The spellings that make up nearly all of QEMU's declarations: known without looking closer, and kept without a copy.
const COMMON: [(&str, ArgType); 24] = [
    ("uint32_t", Unsigned(W32)),
    ("void *", Pointer),
    ("const char *", Text),
    ("uint64_t", Unsigned(W64)),
    ("int", Signed(W32)),
    ("unsigned", Unsigned(W32)),
    ("unsigned int", Unsigned(W32)),
    ("uint8_t", Unsigned(W8)),
    ("bool", Bool),
    ("uint16_t", Unsigned(W16)),
    ("size_t", Unsigned(Host)),
    ("int64_t", Signed(W64)),
    ("int32_t", Signed(W32)),
    ("const void *", Pointer),
    ("unsigned long", Unsigned(Host)),
    ("ssize_t", Signed(Host)),
    ("char", Char),
    ("char *", Text),
    ("long", Signed(Host)),
    ("uintptr_t", Unsigned(Host)),
    ("int8_t", Signed(W8)),
    ("int16_t", Signed(W16)),
    ("unsigned char", Unsigned(W8)),
    ("unsigned short", Unsigned(W16)),
];

/// Type names that declarations of older releases use (before 2.12 tracetool took any type), or that are near at hand.
///
/// Guest-sized types (`target_ulong` and its like) count as 64 bits: the word in the file is extended anyway. `double` is
/// here because its recorder converted the number to an integer.
#[rustfmt::skip]
const FOREIGN: [(&str, ArgType); 72] = [
    ("hwaddr", Unsigned(W64)), ("target_phys_addr_t", Unsigned(W64)), ("ram_addr_t", Unsigned(W64)),
    ("dma_addr_t", Unsigned(W64)), ("pcibus_t", Unsigned(W64)), ("vaddr", Unsigned(W64)),
    ("tb_page_addr_t", Unsigned(W64)), ("target_ulong", Unsigned(W64)), ("target_long", Signed(W64)),
    ("abi_ulong", Unsigned(W64)), ("abi_long", Signed(W64)), ("abi_uint", Unsigned(W32)), ("abi_int", Signed(W32)),
    ("TCGv", Unsigned(W64)), ("TCGv_i64", Unsigned(W64)), ("TCGv_i32", Unsigned(W32)), ("TCGv_ptr", Pointer),
    ("TCGv_env", Pointer), ("intptr_t", Signed(Host)), ("intmax_t", Signed(W64)), ("uintmax_t", Unsigned(W64)),
    ("off_t", Signed(W64)), ("off64_t", Signed(W64)), ("loff_t", Signed(W64)), ("time_t", Signed(W64)),
    ("clock_t", Signed(Host)), ("suseconds_t", Signed(Host)), ("pid_t", Signed(W32)), ("uid_t", Unsigned(W32)),
    ("gid_t", Unsigned(W32)), ("mode_t", Unsigned(W32)), ("dev_t", Unsigned(W64)), ("ino_t", Unsigned(W64)),
    ("socklen_t", Unsigned(W32)), ("_Bool", Bool), ("float", Signed(W64)), ("double", Signed(W64)),
    ("uchar", Unsigned(W8)), ("ushort", Unsigned(W16)), ("uint", Unsigned(W32)), ("ulong", Unsigned(Host)),
    ("u_int", Unsigned(W32)), ("u8", Unsigned(W8)), ("u16", Unsigned(W16)), ("u32", Unsigned(W32)),
    ("u64", Unsigned(W64)), ("__u8", Unsigned(W8)), ("__u16", Unsigned(W16)), ("__u32", Unsigned(W32)),
    ("__u64", Unsigned(W64)), ("gboolean", Signed(W32)), ("gint", Signed(W32)), ("guint", Unsigned(W32)),
    ("gint64", Signed(W64)), ("guint64", Unsigned(W64)), ("guint32", Unsigned(W32)), ("gsize", Unsigned(Host)),
    ("gssize", Signed(Host)), ("gpointer", Pointer), ("int_fast8_t", Signed(W8)), ("int_fast16_t", Signed(Host)),
    ("int_fast32_t", Signed(Host)), ("int_fast64_t", Signed(W64)), ("uint_fast8_t", Unsigned(W8)),
    ("uint_fast16_t", Unsigned(Host)), ("uint_fast32_t", Unsigned(Host)), ("uint_fast64_t", Unsigned(W64)),
    ("int_least32_t", Signed(W32)), ("int_least64_t", Signed(W64)), ("uint_least32_t", Unsigned(W32)),
    ("uint_least64_t", Unsigned(W64)), ("enum", Unsigned(W32)),
];

impl ArgType {
    /// Reads a C type as today's tracetool does; `None` when a word of it is not on tracetool's list.
    ///
    /// The spelling matters: `const char *` is [`String`](Self::String), `const  char *` and `char const *` are
    /// [`Pointer`](Self::Pointer), and a tab inside a type is refused.
    ///
    /// # Examples
    ///
    /// ```
    /// use simpletrace_format::events::{ArgType, Width};
    ///
    /// assert_eq!(ArgType::from_c("const char *"), Some(ArgType::String));
    /// assert_eq!(ArgType::from_c("unsigned char *"), Some(ArgType::Pointer));
    /// assert_eq!(ArgType::from_c("unsigned long"), Some(ArgType::Unsigned(Width::Host)));
    /// assert_eq!(ArgType::from_c("hwaddr"), None);
    /// ```
    #[must_use]
    pub fn from_c(type_spelling: &str) -> Option<Self> {
        if let Some((_, ty)) = COMMON.iter().find(|(spelling, _)| *spelling == type_spelling) {
            return Some(*ty);
        }
        if refused_word(type_spelling).is_some() {
            return None;
        }
        if is_string(type_spelling) {
            Some(Text)
        } else if type_spelling.contains('*') {
            Some(Pointer)
        } else {
            Some(number(type_spelling))
        }
    }

    /// Reads any C type, with a best guess for the types of older releases: never fails.
    ///
    /// A `*` makes an address unless the type is spelled as a string; known typedefs (`hwaddr`, `off_t`, `TCGv`, ...) have
    /// their width; `enum` is unsigned; a type never heard of is an unsigned 64-bit word, which shows all the file holds.
    #[must_use]
    pub fn from_c_lenient(type_spelling: &str) -> Self {
        if let Some(ty) = Self::from_c(type_spelling) {
            ty
        } else if is_string(type_spelling) {
            Text
        } else if type_spelling.contains('*') {
            Pointer
        } else {
            number(type_spelling)
        }
    }

    /// Returns whether the file holds a counted string for this type rather than a 64-bit word.
    #[inline]
    #[must_use]
    pub const fn is_string(self) -> bool {
        matches!(self, Text)
    }
}

/// Keeps a type's spelling, without allocating for the usual ones.
pub(super) fn intern(type_spelling: &str) -> Cow<'static, str> {
    COMMON
        .iter()
        .find(|(spelling, _)| *spelling == type_spelling)
        .map_or_else(|| Cow::Owned(type_spelling.to_owned()), |(spelling, _)| Cow::Borrowed(*spelling))
}

/// Returns the first word of a type that is not on tracetool's list. Words end at blanks only, and `*` vanish.
pub(super) fn refused_word(type_spelling: &str) -> Option<Cow<'_, str>> {
    type_spelling.split(' ').find_map(|word| {
        let bare = if word.contains('*') { Cow::Owned(word.replace('*', "")) } else { Cow::Borrowed(word) };
        let known = matches!(&*bare, "" | "const") || ALLOWED_TYPES.contains(&&*bare);
        (!known).then_some(bare)
    })
}

/// Returns whether some word of a type is one that older declarations are known to use.
pub(super) fn is_known_foreign(type_spelling: &str) -> bool {
    type_spelling.split_whitespace().any(|word| foreign(word).is_some())
}

/// The test of scripts/tracetool/backend/simple.py, which makes the layout: the beginning, and exactly one `*`.
fn is_string(type_spelling: &str) -> bool {
    let spelling = type_spelling.trim_start_matches(super::is_blank);
    ["const char*", "char*", "const char *", "char *"].iter().any(|beginning| spelling.starts_with(beginning))
        && spelling.bytes().filter(|byte| *byte == b'*').count() == 1
}

fn foreign(word: &str) -> Option<ArgType> {
    FOREIGN.iter().find(|(name, _)| *name == word).map(|(_, ty)| *ty)
}

fn number(type_spelling: &str) -> ArgType {
    let (mut signed, mut unsigned, mut longs, mut base) = (false, false, 0_u32, None);
    for word in type_spelling.split_whitespace() {
        match word {
            "signed" => signed = true,
            "unsigned" => unsigned = true,
            "long" => longs += 1,
            "const" | "volatile" | "int" => {}
            // `enum colour`: the first word decides.
            _ => base = base.or(Some(word)),
        }
    }
    let integer = |width| {
        if unsigned { Unsigned(width) } else { Signed(width) }
    };
    match base {
        None => integer(match longs {
            0 => W32,
            1 => Host,
            _ => W64,
        }),
        Some("short") => integer(W16),
        Some("char") if !signed && !unsigned => Char,
        Some("char") => integer(W8),
        Some("bool") => Bool,
        Some("int8_t") => Signed(W8),
        Some("int16_t") => Signed(W16),
        Some("int32_t") => Signed(W32),
        Some("int64_t") => Signed(W64),
        Some("uint8_t") => Unsigned(W8),
        Some("uint16_t") => Unsigned(W16),
        Some("uint32_t") => Unsigned(W32),
        Some("ssize_t" | "ptrdiff_t") => Signed(Host),
        Some("size_t" | "uintptr_t") => Unsigned(Host),
        Some(word) => foreign(word).unwrap_or(Unsigned(W64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_is_told_by_the_exact_spelling() {
        for string in ["const char *", "const char*", "char *", "char*", "  char *"] {
            assert_eq!(ArgType::from_c(string), Some(Text), "{string}");
        }
        for address in [
            "char **",
            "const char **",
            "char * *",
            "char const *",
            "const  char *",
            "char  *",
            "unsigned char *",
            "signed char *",
            "const uint8_t *",
            "void *",
            "*",
        ] {
            assert_eq!(ArgType::from_c(address), Some(Pointer), "{address}");
        }
        assert_eq!(ArgType::from_c_lenient("const char\t*"), Pointer);
    }

    #[test]
    fn integers_have_the_sign_and_width_of_their_type() {
        for (spelling, ty) in [
            ("int", Signed(W32)),
            ("const int", Signed(W32)),
            ("signed", Signed(W32)),
            ("unsigned", Unsigned(W32)),
            ("long", Signed(Host)),
            ("unsigned long int", Unsigned(Host)),
            ("long long", Signed(W64)),
            ("unsigned long long", Unsigned(W64)),
            ("short int", Signed(W16)),
            ("unsigned short", Unsigned(W16)),
            ("char", Char),
            ("const char", Char),
            ("signed char", Signed(W8)),
            ("unsigned char", Unsigned(W8)),
            ("bool", Bool),
            ("int8_t", Signed(W8)),
            ("uint16_t", Unsigned(W16)),
            ("const uint32_t", Unsigned(W32)),
            ("uint64_t", Unsigned(W64)),
            ("size_t", Unsigned(Host)),
            ("ssize_t", Signed(Host)),
            ("uintptr_t", Unsigned(Host)),
            ("ptrdiff_t", Signed(Host)),
        ] {
            assert_eq!(ArgType::from_c(spelling), Some(ty), "{spelling}");
            assert_eq!(ArgType::from_c_lenient(spelling), ty, "{spelling}");
        }
    }

    #[test]
    fn the_shortcut_table_says_what_the_long_way_says() {
        for (spelling, ty) in COMMON {
            assert_eq!(refused_word(spelling), None, "{spelling}");
            let long_way = match spelling {
                _ if is_string(spelling) => Text,
                _ if spelling.contains('*') => Pointer,
                _ => number(spelling),
            };
            assert_eq!(ty, long_way, "{spelling}");
        }
    }

    #[test]
    fn types_of_older_releases_are_guessed_not_refused() {
        for (spelling, ty) in [
            ("hwaddr", Unsigned(W64)),
            ("target_phys_addr_t", Unsigned(W64)),
            ("off_t", Signed(W64)),
            ("const off_t", Signed(W64)),
            ("intptr_t", Signed(Host)),
            ("struct QEMUTimer *", Pointer),
            ("enum rfb_state", Unsigned(W32)),
            ("volatile int", Signed(W32)),
            ("BlockErrorAction", Unsigned(W64)),
            ("double", Signed(W64)),
            ("TCGv_i32", Unsigned(W32)),
            ("TCGv_ptr", Pointer),
            ("", Signed(W32)),
        ] {
            if !spelling.is_empty() {
                assert_eq!(ArgType::from_c(spelling), None, "{spelling}");
            }
            assert_eq!(ArgType::from_c_lenient(spelling), ty, "{spelling}");
        }
    }
}
