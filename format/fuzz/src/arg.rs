use arbitrary::Arbitrary;
use simpletrace_format::Value;

/// A [`Value`] that the fuzzer can make.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub(crate) enum Arg<'a> {
    Signed(i64),
    Unsigned(u64),
    Bool(bool),
    Pointer(u64),
    String(&'a [u8]),
}

impl<'a> Arg<'a> {
    pub(crate) const fn value(self) -> Value<'a> {
        match self {
            Self::Signed(value) => Value::Signed(value),
            Self::Unsigned(word) => Value::Unsigned(word),
            Self::Bool(value) => Value::Bool(value),
            Self::Pointer(word) => Value::Pointer(word),
            Self::String(bytes) => Value::String(bytes),
        }
    }
}
