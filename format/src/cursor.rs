//! Bounds-checked integers in either byte order: the only place where bytes become numbers.

use byteorder::{BigEndian, ByteOrder as _, LittleEndian};

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

    #[inline]
    pub(crate) fn u32(self, bytes: &[u8; 4]) -> u32 {
        match self {
            Self::Little => LittleEndian::read_u32(bytes),
            Self::Big => BigEndian::read_u32(bytes),
        }
    }

    #[inline]
    pub(crate) fn u64(self, bytes: &[u8; 8]) -> u64 {
        match self {
            Self::Little => LittleEndian::read_u64(bytes),
            Self::Big => BigEndian::read_u64(bytes),
        }
    }

    pub(crate) fn put_u32(self, value: u32, out: &mut Vec<u8>) {
        let mut bytes = [0; 4];
        match self {
            Self::Little => LittleEndian::write_u32(&mut bytes, value),
            Self::Big => BigEndian::write_u32(&mut bytes, value),
        }
        out.extend_from_slice(&bytes);
    }

    pub(crate) fn put_u64(self, value: u64, out: &mut Vec<u8>) {
        let mut bytes = [0; 8];
        match self {
            Self::Little => LittleEndian::write_u64(&mut bytes, value),
            Self::Big => BigEndian::write_u64(&mut bytes, value),
        }
        out.extend_from_slice(&bytes);
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
