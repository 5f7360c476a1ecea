//! The buffer between a source and the reader of its records.

use std::io::{self, Read};
use std::ops::Deref;

/// How much room is made at a time for refills, in bytes: what a pipe holds by default on Linux.
pub(crate) const CHUNK_BYTES: usize = 1 << 16;

/// What a source gave and nobody took yet: taken from the front, refilled behind.
///
/// Room is zeroed once, when it is made, and then filled again and again: neither taking nor refilling touches a byte that does
/// not have to move.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    /// As long as there is room.
    room: Vec<u8>,
    /// The bytes that count are those from `start` to `end`.
    start: usize,
    end: usize,
    /// Where the first byte of `room` stands in the stream.
    room_at: u64,
}

impl Buffer {
    /// Returns where the first byte stands in the stream.
    #[inline]
    pub(crate) const fn offset(&self) -> u64 {
        self.room_at + self.start as u64
    }

    /// Returns the bytes from a place on, none if it is behind them.
    #[inline]
    pub(crate) fn from(&self, place: usize) -> &[u8] {
        self.room.get(self.start + place..self.end).unwrap_or_default()
    }

    /// Takes bytes from the front.
    #[inline]
    pub(crate) fn advance(&mut self, count: usize) {
        debug_assert!(count <= self.len());
        self.start += count;
    }

    /// Forgets all there is; the offset stays.
    pub(crate) fn clear(&mut self) {
        self.end = self.start;
    }

    /// Reads once, behind what there is; false at the end of `source`.
    #[cold]
    pub(crate) fn refill(&mut self, source: &mut impl Read) -> io::Result<bool> {
        if self.end == self.room.len() {
            self.make_room();
        }
        let room = &mut self.room[self.end..];
        let read = loop {
            match source.read(room) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result?,
            }
        };
        self.end += read.min(room.len());
        Ok(read > 0)
    }

    /// Moves what there is to the front. If that makes so little room that it may have to be moved again before it is taken,
    /// there is more room from now on.
    fn make_room(&mut self) {
        let held = self.len();
        self.room.copy_within(self.start..self.end, 0);
        self.room_at = self.offset();
        (self.start, self.end) = (0, held);
        let room = self.room.len() - held;
        if room == 0 || room < held.min(CHUNK_BYTES) {
            // Not left to `Vec`, which doubles what it has, past the bound that readers promise.
            self.room.reserve_exact(CHUNK_BYTES - room);
            self.room.resize(held + CHUNK_BYTES, 0);
        }
    }

    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.room.capacity()
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.from(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out_whatever_is_taken_between() {
        let bytes: Vec<u8> = (0..1_000_000_u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
        for take in [1, 77, 4_096, CHUNK_BYTES - 1, CHUNK_BYTES, 3 * CHUNK_BYTES] {
            let mut source = &bytes[..];
            let mut buffer = Buffer::default();
            let mut at = 0;
            while buffer.refill(&mut source).unwrap() {
                while buffer.len() >= take {
                    assert_eq!(buffer.offset(), at as u64);
                    assert!(buffer[..take] == bytes[at..at + take]);
                    assert!(buffer.from(take - 1).first() == bytes.get(at + take - 1));
                    buffer.advance(take);
                    at += take;
                }
            }
            assert!(*buffer == bytes[at..]);
            assert!(buffer.capacity() <= take - 1 + CHUNK_BYTES.max(take), "{take}: {}", buffer.capacity());
            buffer.clear();
            assert_eq!((buffer.len(), buffer.offset()), (0, at as u64));
            assert!(buffer.from(1).is_empty());
        }
    }

    /// Its own fault, but no reason to read what is not there.
    #[test]
    fn a_source_that_claims_more_than_it_was_asked_for_fills_the_room_and_no_more() {
        struct Boaster;
        impl Read for Boaster {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                Ok(buffer.len() + 7)
            }
        }
        let mut buffer = Buffer::default();
        assert!(buffer.refill(&mut Boaster).unwrap());
        assert_eq!(buffer.len(), CHUNK_BYTES);
        assert!(buffer.refill(&mut Boaster).unwrap());
    }
}
