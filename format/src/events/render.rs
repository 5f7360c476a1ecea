//! One conversion of a format at work.

use std::ops::Range;

use super::printf::Expected;
use crate::Value;

/// The widest field and the longest precision that [`Format::render`](super::Format::render) makes. No declaration of
/// QEMU's has one above 23; a width taken from a damaged file (`%*d`) must not make gigabytes of blanks.
pub const MAX_FIELD: usize = 4096;

/// A width or a precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Field {
    #[default]
    None,
    Fixed(usize),
    /// `*`
    Argument,
}

/// How much of a number is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Length {
    Char,
    Short,
    #[default]
    Int,
    Long,
}

/// One conversion.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    pub(super) width: Field,
    pub(super) precision: Field,
    pub(super) length: Length,
    /// The letter that names the conversion.
    pub(super) conversion: u8,
    /// The conversion itself in the format's text.
    pub(super) text: Range<usize>,
}

/// Width and precision as they are once the arguments are known.
#[derive(Debug, Clone, Copy)]
struct Layout {
    left: bool,
    width: usize,
    precision: Option<usize>,
}

impl Spec {
    /// Takes a flag character; false if it is none. `'` groups thousands, which the C locale does not.
    pub(super) const fn set_flag(&mut self, flag: u8) -> bool {
        match flag {
            b'-' => self.left = true,
            b'+' => self.plus = true,
            b' ' => self.space = true,
            b'#' => self.alternate = true,
            b'0' => self.zero = true,
            b'\'' => {}
            _ => return false,
        }
        true
    }

    /// The arguments it takes: one for each `*`, and its own.
    pub(super) fn expected(&self) -> impl Iterator<Item = Expected> + use<> {
        let star = |field| (field == Field::Argument).then_some(Expected::Int);
        let own = match self.conversion {
            b's' => Expected::String,
            b'p' => Expected::Pointer,
            b'c' => Expected::Int,
            b'd' | b'i' | b'u' | b'o' | b'x' | b'X' if self.length == Length::Long => Expected::Long,
            b'd' | b'i' | b'u' | b'o' | b'x' | b'X' => Expected::Int,
            _ => Expected::Float,
        };
        [star(self.width), star(self.precision), Some(own)]
            .into_iter()
            .flatten()
    }

    /// Appends the text of the next argument, `None` if arguments are missing.
    #[inline]
    pub(super) fn render<'v>(&self, args: &mut impl Iterator<Item = Value<'v>>, out: &mut Vec<u8>) -> Option<()> {
        let mut layout = Layout {
            left: self.left,
            width: 0,
            precision: None,
        };
        match self.width {
            Field::None => {}
            Field::Fixed(width) => layout.width = width.min(MAX_FIELD),
            Field::Argument => {
                let width = int(args.next()?);
                layout.left |= width < 0;
                layout.width = (width.unsigned_abs() as usize).min(MAX_FIELD);
            }
        }
        match self.precision {
            Field::None => {}
            Field::Fixed(precision) => layout.precision = Some(precision.min(MAX_FIELD)),
            Field::Argument => {
                // A negative one counts as none.
                layout.precision = usize::try_from(int(args.next()?))
                    .ok()
                    .map(|precision| precision.min(MAX_FIELD));
            }
        }
        let value = args.next()?;
        let Some(word) = value.word() else {
            if let Value::String(text) = value {
                // A string's precision cuts it; another conversion's does not.
                let cut = if self.conversion == b's' {
                    layout.precision
                } else {
                    None
                };
                pad(out, layout, &text[..cut.unwrap_or(text.len()).min(text.len())]);
            }
            return Some(());
        };
        match self.conversion {
            b'd' | b'i' => self.signed(out, layout, word),
            b'u' => self.unsigned(out, layout, self.cut(word), 10),
            b'o' => self.unsigned(out, layout, self.cut(word), 8),
            b'x' | b'X' => self.unsigned(out, layout, self.cut(word), 16),
            b'c' => pad(out, layout, &[word as u8]),
            b'p' if word == 0 => pad(out, layout, b"(nil)"),
            b'p' => self.address(out, layout, word),
            b's' => self.address(
                out,
                Layout {
                    precision: None,
                    ..layout
                },
                word,
            ),
            // Numbers of a floating-point type were recorded as integers.
            _ => self.number(
                out,
                Layout {
                    precision: None,
                    ..layout
                },
                self.sign(word),
                b"",
                word,
                10,
            ),
        }
        Some(())
    }

    /// The part of a word that the conversion looks at.
    const fn cut(&self, word: u64) -> u64 {
        match self.length {
            Length::Char => word as u8 as u64,
            Length::Short => word as u16 as u64,
            Length::Int => word as u32 as u64,
            Length::Long => word,
        }
    }

    fn signed(&self, out: &mut Vec<u8>, layout: Layout, word: u64) {
        let value = match self.length {
            Length::Char => i64::from(word as i8),
            Length::Short => i64::from(word as i16),
            Length::Int => i64::from(word as i32),
            Length::Long => word.cast_signed(),
        };
        self.number(
            out,
            layout,
            self.sign(value.cast_unsigned()),
            b"",
            value.cast_unsigned(),
            10,
        );
    }

    fn unsigned(&self, out: &mut Vec<u8>, layout: Layout, value: u64, base: u64) {
        let prefix: &[u8] = match (self.conversion, value) {
            _ if !self.alternate || base != 16 => b"",
            (_, 0) => b"",
            (b'X', _) => b"0X",
            _ => b"0x",
        };
        self.number(out, layout, b"", prefix, value, base);
    }

    /// glibc treats an address as a signed conversion that happens to be in hexadecimal: `%+p` shows the plus.
    fn address(&self, out: &mut Vec<u8>, layout: Layout, word: u64) {
        self.number(out, layout, self.sign(0), b"0x", word, 16);
    }

    const fn sign(&self, word: u64) -> &'static [u8] {
        if word.cast_signed() < 0 {
            b"-"
        } else if self.plus {
            b"+"
        } else if self.space {
            b" "
        } else {
            b""
        }
    }

    /// Lays out sign, prefix, zeros and digits. A value with the sign `-` is printed by its absolute value.
    fn number(&self, out: &mut Vec<u8>, layout: Layout, sign: &[u8], prefix: &[u8], value: u64, base: u64) {
        let mut buffer = [0; 22];
        let value = if sign == b"-" { value.wrapping_neg() } else { value };
        let mut digits = to_digits(&mut buffer, value, base, self.conversion == b'X');
        if value == 0 && layout.precision == Some(0) {
            digits = b"";
        }
        let mut zeros = layout.precision.unwrap_or(0).saturating_sub(digits.len());
        if base == 8 && self.alternate && zeros == 0 && digits.first() != Some(&b'0') {
            zeros = 1;
        }
        let width = sign.len() + prefix.len() + zeros + digits.len();
        let mut padding = layout.width.saturating_sub(width);
        if self.zero && !layout.left && layout.precision.is_none() {
            zeros += padding;
            padding = 0;
        }
        if !layout.left {
            fill(out, b' ', padding);
        }
        out.extend_from_slice(sign);
        out.extend_from_slice(prefix);
        fill(out, b'0', zeros);
        out.extend_from_slice(digits);
        if layout.left {
            fill(out, b' ', padding);
        }
    }
}

/// The argument of a `*`: an int. A string is none.
fn int(value: Value<'_>) -> i32 {
    value.word().map_or(0, |word| word as i32)
}

fn to_digits(buffer: &mut [u8; 22], mut value: u64, base: u64, upper: bool) -> &[u8] {
    let alphabet: &[u8; 16] = if upper {
        b"0123456789ABCDEF"
    } else {
        b"0123456789abcdef"
    };
    let mut start = buffer.len();
    loop {
        start -= 1;
        buffer[start] = alphabet[(value % base) as usize];
        value /= base;
        if value == 0 {
            return &buffer[start..];
        }
    }
}

fn pad(out: &mut Vec<u8>, layout: Layout, text: &[u8]) {
    let padding = layout.width.saturating_sub(text.len());
    if !layout.left {
        fill(out, b' ', padding);
    }
    out.extend_from_slice(text);
    if layout.left {
        fill(out, b' ', padding);
    }
}

fn fill(out: &mut Vec<u8>, byte: u8, count: usize) {
    out.resize(out.len() + count, byte);
}
