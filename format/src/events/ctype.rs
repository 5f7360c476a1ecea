//! C types of arguments and how the recorder stores them.

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
