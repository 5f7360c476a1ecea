//! A block of output that lines are written into.
//!
//! Printing is most of what decoding costs, so the verbs here avoid what makes `Vec::extend` and `write!` slow for pieces of a
//! few bytes: pieces are copied with a fixed length where they can be, and only their own length counts.

/// Bytes being gathered for one large write.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// Initialised to its end; what counts ends at `len`.
    bytes: Vec<u8>,
    len: usize,
}

/// A piece of text that is written again and again.
#[derive(Debug, Clone)]
pub(crate) struct Literal {
    /// The text, if it is no longer than this, and then anything.
    head: [u8; Self::HEAD],
    text: Box<[u8]>,
}

impl Literal {
    const HEAD: usize = 32;

    pub(crate) fn new(text: impl AsRef<[u8]>) -> Self {
        let text = text.as_ref();
        let mut head = [0; Self::HEAD];
        let count = text.len().min(Self::HEAD);
        head[..count].copy_from_slice(&text[..count]);
        Self { head, text: text.into() }
    }
}

impl Block {
    /// A block that becomes full at about `bytes`.
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self { bytes: vec![0; bytes], len: 0 }
    }

    #[inline]
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    pub(crate) const fn clear(&mut self) {
        self.len = 0;
    }

    /// Takes out what is written; there is as much room as before.
    #[cfg(feature = "columns")]
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let next = Self::with_capacity(self.bytes.len());
        let Self { mut bytes, len } = std::mem::replace(self, next);
        bytes.truncate(len);
        bytes
    }

    /// Takes back all behind `len` bytes.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Gives the next `N` bytes to be filled, of which `used` will count.
    #[inline]
    fn next<const N: usize>(&mut self, used: usize) -> &mut [u8; N] {
        if self.bytes.len() - self.len < N {
            self.grow(N);
        }
        let at = self.len;
        self.len += used;
        // Never out of bounds, as just seen to; a slice of the right length is always a chunk of it.
        self.bytes[at..].first_chunk_mut().expect("the block has room for N bytes")
    }

    #[cold]
    fn grow(&mut self, more: usize) {
        self.bytes.resize((self.len + more).max(2 * self.bytes.len()), 0);
    }

    #[inline]
    pub(crate) fn literal(&mut self, literal: &Literal) {
        if literal.text.len() <= Literal::HEAD {
            *self.next(literal.text.len()) = literal.head;
        } else {
            self.put(&literal.text);
        }
    }

    #[inline]
    pub(crate) fn put(&mut self, text: impl AsRef<[u8]>) {
        let text = text.as_ref();
        if self.bytes.len() - self.len < text.len() {
            self.grow(text.len());
        }
        self.bytes[self.len..self.len + text.len()].copy_from_slice(text);
        self.len += text.len();
    }

    #[inline]
    pub(crate) fn byte(&mut self, byte: u8) {
        *self.next(1) = [byte];
    }

    /// Writes lower-case hexadecimal digits without leading zeros.
    #[inline]
    pub(crate) fn hex(&mut self, word: u64) {
        let (digits, count) = hex_digits(word);
        *self.next(count) = digits;
    }

    /// Writes a literal, and a number as [`hex`](Self::hex) does, in one go.
    #[inline]
    pub(crate) fn literal_and_hex(&mut self, literal: &Literal, word: u64) {
        let length = literal.text.len();
        if length > Literal::HEAD {
            self.put(&literal.text);
            return self.hex(word);
        }
        let (digits, count) = hex_digits(word);
        let out = self.next::<{ Literal::HEAD + 16 }>(length + count);
        out[..Literal::HEAD].copy_from_slice(&literal.head);
        out[length..length + 16].copy_from_slice(&digits);
    }

    /// Writes a decimal number.
    #[inline]
    pub(crate) fn decimal(&mut self, value: u64) {
        if value < 10_000 {
            let digits = 1 + usize::from(value >= 10) + usize::from(value >= 100) + usize::from(value >= 1000);
            // Four digits, the first one lowest, without the leading zeros.
            let [thousands, hundreds, tens, ones] = [value / 1000, value / 100 % 10, value / 10 % 10, value % 10];
            let all = (thousands | hundreds << 8 | tens << 16 | ones << 24) as u32 | 0x3030_3030;
            *self.next(digits) = (all >> (32 - 8 * digits)).to_le_bytes();
        } else {
            self.put(itoa::Buffer::new().format(value));
        }
    }

    /// Writes a decimal number that may be negative.
    #[inline]
    pub(crate) fn signed_decimal(&mut self, value: i64) {
        if value < 0 {
            self.byte(b'-');
        }
        self.decimal(value.unsigned_abs());
    }

    /// Writes a decimal number below 1000, and its leading zeros.
    #[inline]
    pub(crate) fn three_digits(&mut self, value: u64) {
        let [hundreds, tens, ones] = [value / 100 % 10, value / 10 % 10, value % 10].map(|digit| b'0' + digit as u8);
        *self.next(3) = [hundreds, tens, ones];
    }

    /// Writes nanoseconds as seconds with nine decimals.
    #[inline]
    pub(crate) fn seconds(&mut self, ns: u64) {
        self.decimal(ns / 1_000_000_000);
        self.byte(b'.');
        let below = ns % 1_000_000_000;
        self.three_digits(below / 1_000_000);
        self.three_digits(below / 1_000);
        self.three_digits(below);
    }

    /// Writes each byte as two hexadecimal digits.
    pub(crate) fn hex_bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.put([HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
}

pub(crate) const HEX: [u8; 16] = *b"0123456789abcdef";

/// The hexadecimal digits of a number, and how many of them count.
#[inline]
fn hex_digits(word: u64) -> ([u8; 16], usize) {
    let count = 16 - (word | 1).leading_zeros() as usize / 4;
    let left_aligned = word << (64 - 4 * count);
    let (high, low) = (eight_digits(left_aligned >> 32), eight_digits(left_aligned & 0xffff_ffff));
    let mut digits = [0; 16];
    digits[..8].copy_from_slice(&high);
    digits[8..].copy_from_slice(&low);
    (digits, count)
}

/// The eight hexadecimal digits of a number below 2^32, all at once.
#[inline]
fn eight_digits(half: u64) -> [u8; 8] {
    // One nibble into each byte, the most significant one highest.
    let x = (half | half << 16) & 0x0000_ffff_0000_ffff;
    let x = (x | x << 8) & 0x00ff_00ff_00ff_00ff;
    let x = (x | x << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    // 1 in each byte that is above 9: adding 6 carries into its bit 4.
    let above_9 = (x + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
    (x + 0x3030_3030_3030_3030 + above_9 * u64::from(b'a' - b'9' - 1)).to_be_bytes()
}

/// What something writes, for tests.
#[cfg(test)]
pub(super) fn written(write: impl FnOnce(&mut Block)) -> String {
    let mut block = Block::default();
    write(&mut block);
    String::from_utf8(block.as_bytes().to_vec()).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_has_no_leading_zeros() {
        for word in [0, 1, 9, 10, 15, 16, 0xff, 0x1234_5678_9abc_def0, u64::MAX, 1 << 63, 0xffff_ffff, 1 << 32] {
            assert_eq!(written(|block| block.hex(word)), format!("{word:x}"));
        }
        for bit in 0..64 {
            let word = (1_u64 << bit).wrapping_sub(3);
            assert_eq!(written(|block| block.hex(word)), format!("{word:x}"));
        }
    }

    #[test]
    fn decimal_numbers_of_any_length_come_out_whole() {
        for value in (0..20_000).chain([99_999, 1 << 32, i64::MAX as u64, u64::MAX]) {
            assert_eq!(written(|block| block.decimal(value)), value.to_string());
        }
        for value in [0, -1, -9_999, -10_000, i64::MIN, i64::MAX] {
            assert_eq!(written(|block| block.signed_decimal(value)), value.to_string());
        }
    }

    #[test]
    fn literals_of_any_length_come_out_whole() {
        for length in [0, 1, 31, 32, 33, 1000] {
            let text = "x".repeat(length);
            assert_eq!(written(|block| block.literal(&Literal::new(&text))), text);
        }
    }

    #[test]
    fn seconds_have_nine_decimals() {
        assert_eq!(written(|block| block.seconds(0)), "0.000000000");
        assert_eq!(written(|block| block.seconds(12_003_000_401)), "12.003000401");
        assert_eq!(written(|block| block.seconds(u64::MAX)), "18446744073.709551615");
    }

    #[test]
    fn a_block_grows_and_keeps_what_it_has() {
        let mut block = Block::with_capacity(4);
        for _ in 0..100 {
            block.put("abc");
            block.byte(b'/');
        }
        assert_eq!(block.as_bytes(), "abc/".repeat(100).as_bytes());
    }
}
