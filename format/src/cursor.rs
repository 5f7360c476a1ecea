//! Bounds-checked integers in either byte order: the only place where bytes become numbers.

use byteorder::{BigEndian, ByteOrder as _, LittleEndian};

use crate::MAX_NAME_BYTES;

/// The byte order of a file, which is that of the machine that recorded it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Least significant byte first (x86, most Arm, RISC-V).
    Little,
    /// Most significant byte first (s390x, older POWER).
    Big,
}

impl ByteOrder {
    /// The byte order of the machine that runs this code.
    pub const NATIVE: Self = if cfg!(target_endian = "big") { Self::Big } else { Self::Little };

    /// The byte order of records of version 4 that no file header precedes, by their first bytes: 20 are enough.
    ///
    /// The first word is the type of a record, 1 for an event. That of a mapping is 0 either way, but the length of its name is possible
    /// only one way.
    #[must_use]
    pub fn of_first_record(head: &[u8]) -> Self {
        let is_big = match head.first_chunk() {
            Some(&[0, 0, 0, 0, 0, 0, 0, 0]) => {
                let length = head.get(16..).and_then(<[u8]>::first_chunk);
                length.is_some_and(|length| (1..=MAX_NAME_BYTES).contains(&Self::Big.u32(length)))
            }
            _ => head.starts_with(&[0; 7]),
        };
        if is_big { Self::Big } else { Self::Little }
    }

    /// Reads an integer of 32 bits.
    #[inline]
    #[must_use]
    pub fn u32(self, bytes: &[u8; 4]) -> u32 {
        match self {
            Self::Little => LittleEndian::read_u32(bytes),
            Self::Big => BigEndian::read_u32(bytes),
        }
    }

    /// Reads a word.
    #[inline]
    #[must_use]
    pub fn u64(self, bytes: &[u8; 8]) -> u64 {
        match self {
            Self::Little => LittleEndian::read_u64(bytes),
            Self::Big => BigEndian::read_u64(bytes),
        }
    }

    #[inline]
    pub(crate) fn u32_bytes(self, value: u32) -> [u8; 4] {
        let mut bytes = [0; 4];
        match self {
            Self::Little => LittleEndian::write_u32(&mut bytes, value),
            Self::Big => BigEndian::write_u32(&mut bytes, value),
        }
        bytes
    }

    #[inline]
    pub(crate) fn u64_bytes(self, value: u64) -> [u8; 8] {
        let mut bytes = [0; 8];
        match self {
            Self::Little => LittleEndian::write_u64(&mut bytes, value),
            Self::Big => BigEndian::write_u64(&mut bytes, value),
        }
        bytes
    }

    pub(crate) fn put_u32(self, value: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.u32_bytes(value));
    }

    pub(crate) fn put_u64(self, value: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.u64_bytes(value));
    }
}

/// What is left of a run of bytes. Every verb takes from the front, and takes nothing when it returns `None`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
    order: ByteOrder,
}

impl<'a> Cursor<'a> {
    #[inline]
    pub(crate) const fn new(bytes: &'a [u8], order: ByteOrder) -> Self {
        Self { rest: bytes, order }
    }

    #[inline]
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Option<u32> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(self.order.u32(bytes))
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Option<u64> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(self.order.u64(bytes))
    }

    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_the_order_asked_for() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
        let mut little = Cursor::new(&bytes, ByteOrder::Little);
        assert_eq!(little.u32(), Some(0x0403_0201));
        assert_eq!(little.u64(), Some(0x0c0b_0a09_0807_0605));
        let mut big = Cursor::new(&bytes, ByteOrder::Big);
        assert_eq!(big.u32(), Some(0x0102_0304));
        assert_eq!(big.u64(), Some(0x0506_0708_090a_0b0c));
        assert!(little.rest().is_empty() && big.rest().is_empty());
    }

    #[test]
    fn what_is_written_in_an_order_is_read_back_in_it() {
        for (order, first, last) in [(ByteOrder::Little, 8, 9), (ByteOrder::Big, 1, 12)] {
            let mut bytes = Vec::new();
            order.put_u64(0x0102_0304_0506_0708, &mut bytes);
            order.put_u32(0x090a_0b0c, &mut bytes);
            assert_eq!((bytes[0], bytes[11]), (first, last));
            let mut cursor = Cursor::new(&bytes, order);
            assert_eq!(cursor.u64(), Some(0x0102_0304_0506_0708));
            assert_eq!(cursor.u32(), Some(0x090a_0b0c));
        }
    }

    #[test]
    fn a_verb_that_wants_more_than_is_left_takes_nothing() {
        for left in 0..4 {
            let mut cursor = Cursor::new(&[7; 4][..left], ByteOrder::Little);
            assert_eq!(cursor.u32(), None);
            assert_eq!(cursor.u64(), None);
            assert_eq!(cursor.take(left + 1), None);
            assert_eq!(cursor.take(usize::MAX), None);
            assert_eq!(cursor.rest().len(), left);
        }
        let mut cursor = Cursor::new(&[7; 7], ByteOrder::Big);
        assert_eq!(cursor.u64(), None);
        assert_eq!(cursor.take(0), Some(&[][..]));
        assert_eq!(cursor.take(7), Some(&[7; 7][..]));
    }

    #[test]
    fn the_native_order_is_that_of_this_machine() {
        let mut bytes = Vec::new();
        ByteOrder::NATIVE.put_u32(0x0102_0304, &mut bytes);
        assert_eq!(bytes, 0x0102_0304_u32.to_ne_bytes());
    }
}
