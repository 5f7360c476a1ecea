//! C's printf for recorded values: what a declaration's format makes of the arguments.
//!
//! Enter with [`Format::compile`], which takes the format as it stands in the file (string literals with `PRIx64` and its
//! kin between them), once per declaration; then [`Format::render`] once per record. The text is that of glibc on a 64-bit
//! (LP64) host in the C locale, byte for byte, which is what QEMU's log backend writes: `%p` of 0 is `(nil)`, `%d` of a
//! 64-bit word prints its low 32 bits. On a 32-bit host a negative `long` printed by `%lx` had 8 digits, here it has 16.
//!
//! The format comes from one file and the values from another, so they need not agree. Nothing panics then; see
//! [`Format::render`] for what is printed, and [`Format::mismatches`] to find out before.

use std::fmt;
use std::ops::Range;

use super::expand::{Expanded, expand};
use super::render::{Field, Length, Spec};
use super::{ArgType, Width};
use crate::Value;

/// Why a format cannot be used, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormatError {
    kind: FormatErrorKind,
    span: Range<usize>,
}

/// What is wrong with a format.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatErrorKind {
    /// A string literal without its closing `"`.
    UnterminatedString,
    /// A word between the literals that is no known macro.
    UnknownMacro(String),
    /// Something that is neither a literal nor a macro.
    UnexpectedText(String),
    /// The format ends within a conversion such as `%08`.
    UnfinishedConversion,
    /// A conversion C does not have, such as `%y`.
    UnknownConversion(String),
    /// `%n`, which writes to memory.
    Store,
    /// `%1$d`: arguments by number.
    NumberedArgument,
}

impl FormatError {
    pub(super) const fn new(kind: FormatErrorKind, span: Range<usize>) -> Self {
        Self { kind, span }
    }

    /// Returns what is wrong.
    #[must_use]
    pub const fn kind(&self) -> &FormatErrorKind {
        &self.kind
    }

    /// Returns where, in bytes of the text given to [`Format::compile`].
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            FormatErrorKind::UnterminatedString => f.write_str("format string without its closing '\"'"),
            FormatErrorKind::UnknownMacro(name) => {
                write!(f, "unknown macro '{name}' in the format")
            }
            FormatErrorKind::UnexpectedText(text) => write!(f, "'{text}' is no part of a format"),
            FormatErrorKind::UnfinishedConversion => f.write_str("format ends within a conversion"),
            FormatErrorKind::UnknownConversion(spec) => write!(f, "unknown conversion '{spec}'"),
            FormatErrorKind::Store => f.write_str("conversion '%n' writes to memory"),
            FormatErrorKind::NumberedArgument => f.write_str("arguments by number ('%1$d') are not supported"),
        }
    }
}

impl std::error::Error for FormatError {}

/// What a conversion expects its argument to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Expected {
    /// A number that C passes as `int`: all types of up to 32 bits.
    Int,
    /// A 64-bit number: `l`, `ll`, `j`, `z`, `t`.
    Long,
    /// `%p`.
    Pointer,
    /// `%s`.
    String,
    /// `%f` and its kin, which no type of today fits.
    Float,
}

/// A conversion of a format, or the `*` in one: each takes one argument.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Conversion {
    /// What the argument should be.
    pub expected: Expected,
    /// Whether it prints a number in hexadecimal: `%x`, `%X`, `%p`. So the author wants to see it.
    pub is_hex: bool,
    /// Where it stands, in bytes of the text given to [`Format::compile`], macros included.
    pub span: Range<usize>,
}

/// How a format and a declaration's arguments disagree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mismatch {
    /// The conversion with this number, from 0, has no argument.
    MissingArgument(usize),
    /// The argument with this number, from 0, has no conversion, nor have those after it.
    SurplusArgument(usize),
    /// The conversion and the argument of this number, from 0, are of different kinds.
    Type(usize),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(Range<usize>),
    Spec(Spec),
}

/// A compiled printf format.
///
/// # Examples
///
/// ```
/// use simpletrace_format::{Value, events::Format};
///
/// let format = Format::compile(r#""sector %"PRIu64" at 0x%04x (%s)""#)?;
/// let mut text = Vec::new();
/// format.render([Value::Unsigned(8), Value::Unsigned(0xbeef), Value::String(b"disk")], &mut text);
/// assert_eq!(text, b"sector 8 at 0xbeef (disk)");
/// # Ok::<(), simpletrace_format::events::FormatError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    /// The format with escapes and macros resolved; the parts are ranges of it.
    text: Vec<u8>,
    parts: Vec<Part>,
    conversions: Vec<Conversion>,
}

impl Format {
    /// Compiles a format as it stands in a trace-events file: `"a=0x%"PRIx64" b=%s"`.
    ///
    /// Known macros are those of C's inttypes.h and the ones QEMU's older declarations use (`TARGET_FMT_plx`,
    /// `HWADDR_PRIx`, ...), for a 64-bit host and guest. Takes time and memory linear in the text.
    ///
    /// # Errors
    ///
    /// Fails when the text is no sequence of C literals and known macros, or contains a conversion that printf does not
    /// have or that cannot be printed (`%n`).
    pub fn compile(source: &str) -> Result<Self, FormatError> {
        let expanded = expand(source)?;
        let mut format = Self { text: Vec::new(), parts: Vec::new(), conversions: Vec::new() };
        let bytes = &expanded.bytes;
        let (mut position, mut literal) = (0, 0);
        while position < bytes.len() {
            if bytes[position] != b'%' {
                position += 1;
                continue;
            }
            let (spec, end) = conversion(&expanded, position)?;
            // `%%` leaves one `%` to the literal around it; `%m` (strerror of an errno that was not recorded) stays as it is.
            let kept_end = match spec {
                None => position + 1,
                Some(Spec { conversion: b'm', .. }) => end,
                Some(_) => position,
            };
            if kept_end > literal {
                format.parts.push(Part::Literal(literal..kept_end));
            }
            if let Some(spec) = spec.filter(|spec| spec.conversion != b'm') {
                let span = expanded.source_span(position..end);
                let is_hex = matches!(spec.conversion, b'x' | b'X' | b'p');
                let conversions = spec.expected().map(|expected| Conversion { expected, is_hex, span: span.clone() });
                format.conversions.extend(conversions);
                format.parts.push(Part::Spec(spec));
            }
            position = end;
            literal = end;
        }
        if literal < bytes.len() {
            format.parts.push(Part::Literal(literal..bytes.len()));
        }
        format.text = expanded.bytes;
        Ok(format)
    }

    /// Appends the text for some arguments to `out`.
    ///
    /// Arguments that do not fit are printed as honestly as can be:
    /// - surplus ones are ignored, as C does;
    /// - for a missing one, the conversion itself is printed (`%d`);
    /// - a number where `%s` stands is printed as `0x...`, a string where a number should be as its text;
    /// - a number where `%f` stands is printed as a signed integer: the recorder converted it to one.
    ///
    /// Fields are at most [`MAX_FIELD`](super::MAX_FIELD) wide. So the text is no longer than the format, the strings, and
    /// that much per argument.
    pub fn render<'v>(&self, args: impl IntoIterator<Item = Value<'v>>, out: &mut Vec<u8>) {
        let mut args = args.into_iter().fuse();
        for part in &self.parts {
            match part {
                Part::Literal(range) => out.extend_from_slice(&self.text[range.clone()]),
                Part::Spec(spec) => {
                    if spec.render(&mut args, out).is_none() {
                        out.extend_from_slice(&self.text[spec.text.clone()]);
                    }
                }
            }
        }
    }

    /// Returns what takes an argument, in the order of the arguments.
    #[must_use]
    pub fn conversions(&self) -> &[Conversion] {
        &self.conversions
    }

    /// Returns where the format and the types of the arguments disagree, as a C compiler on a 64-bit host would warn.
    ///
    /// Signs may differ, and `None` (a type one can only guess) fits any number or address.
    #[must_use]
    pub fn mismatches(&self, args: impl IntoIterator<Item = Option<ArgType>>) -> Vec<Mismatch> {
        let mut found = Vec::new();
        let mut args = args.into_iter();
        for (index, conversion) in self.conversions.iter().enumerate() {
            match args.next() {
                None => {
                    found.push(Mismatch::MissingArgument(index));
                    return found;
                }
                Some(ty) if !fits(conversion.expected, ty) => found.push(Mismatch::Type(index)),
                Some(_) => {}
            }
        }
        if args.next().is_some() {
            found.push(Mismatch::SurplusArgument(self.conversions.len()));
        }
        found
    }
}

const fn fits(expected: Expected, ty: Option<ArgType>) -> bool {
    use Width::{Host, W8, W16, W32, W64};
    let Some(ty) = ty else {
        return !matches!(expected, Expected::String);
    };
    match expected {
        Expected::Int => {
            matches!(
                ty,
                ArgType::Signed(W8 | W16 | W32) | ArgType::Unsigned(W8 | W16 | W32) | ArgType::Char | ArgType::Bool
            )
        }
        Expected::Long => matches!(ty, ArgType::Signed(W64 | Host) | ArgType::Unsigned(W64 | Host)),
        // `%p` takes any pointer, also one whose text was recorded.
        Expected::Pointer => matches!(ty, ArgType::Pointer | ArgType::String),
        Expected::String => matches!(ty, ArgType::String),
        Expected::Float => false,
    }
}

/// Reads the conversion that begins with the `%` at `start`: `None` for `%%`, and where it ends.
fn conversion(expanded: &Expanded, start: usize) -> Result<(Option<Spec>, usize), FormatError> {
    let bytes = &expanded.bytes;
    let fail = |kind, end: usize| Err(FormatError::new(kind, expanded.source_span(start..end.min(bytes.len()))));
    let at = |position: usize| bytes.get(position).copied().unwrap_or(0);

    let mut spec = Spec::default();
    let mut position = start + 1;
    while spec.set_flag(at(position)) {
        position += 1;
    }
    let (width, after) = field(bytes, position);
    spec.width = width;
    position = after;
    if at(position) == b'$' {
        return fail(FormatErrorKind::NumberedArgument, position + 1);
    }
    if at(position) == b'.' {
        let (precision, after) = field(bytes, position + 1);
        // `%.d` is `%.0d`.
        spec.precision = if precision == Field::None { Field::Fixed(0) } else { precision };
        position = after;
    }
    (spec.length, position) = match (at(position), at(position + 1)) {
        (b'h', b'h') => (Length::Char, position + 2),
        (b'h', _) => (Length::Short, position + 1),
        (b'l', b'l') => (Length::Long, position + 2),
        (b'l' | b'j' | b'z' | b't' | b'L' | b'q', _) => (Length::Long, position + 1),
        _ => (Length::Int, position),
    };
    spec.conversion = at(position);
    spec.text = start..position + 1;
    match spec.conversion {
        b'%' => Ok((None, position + 1)),
        b'd' | b'i' | b'u' | b'o' | b'x' | b'X' | b'c' | b's' | b'p' | b'm' => Ok((Some(spec), position + 1)),
        b'a' | b'A' | b'e' | b'E' | b'f' | b'F' | b'g' | b'G' => Ok((Some(spec), position + 1)),
        b'n' => fail(FormatErrorKind::Store, position + 1),
        _ if position >= bytes.len() => fail(FormatErrorKind::UnfinishedConversion, position),
        _ => {
            let end = bytes.len().min(position + 1);
            // A character of several bytes is shown whole.
            let end = (end..=bytes.len()).find(|end| (at(*end) & 0xc0) != 0x80).unwrap_or(end);
            let text = super::diagnostic::shown(&String::from_utf8_lossy(&bytes[start..end]));
            fail(FormatErrorKind::UnknownConversion(text), end)
        }
    }
}

/// Reads a width or a precision, and where it ends.
fn field(bytes: &[u8], start: usize) -> (Field, usize) {
    if bytes.get(start) == Some(&b'*') {
        return (Field::Argument, start + 1);
    }
    let digits = bytes[start.min(bytes.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return (Field::None, start);
    }
    let number = bytes[start..start + digits]
        .iter()
        .fold(0_usize, |number, digit| number.saturating_mul(10).saturating_add(usize::from(digit - b'0')));
    (Field::Fixed(number), start + digits)
}
