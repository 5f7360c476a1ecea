//! Inputs that behave as real ones do: short reads, interruptions, failures.

use std::io::{self, Read};

/// Gives out `bytes` in pieces, whose sizes come round and round from a pattern; a 0 in it is an interruption.
#[derive(Debug, Clone)]
pub(crate) struct Dribble<'a> {
    bytes: &'a [u8],
    pattern: Vec<usize>,
    turn: usize,
}

impl<'a> Dribble<'a> {
    pub(crate) fn new(bytes: &'a [u8], pattern: &[usize]) -> Self {
        Self { bytes, pattern: pattern.to_vec(), turn: 0 }
    }
}

impl Read for Dribble<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let piece = self.pattern[self.turn % self.pattern.len()];
        self.turn += 1;
        if piece == 0 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let piece = piece.min(buffer.len());
        self.bytes.read(&mut buffer[..piece])
    }
}

/// Gives out `bytes`, then fails once with a reset connection, then says that it is at its end.
#[derive(Debug)]
pub(crate) struct Failing<'a> {
    bytes: &'a [u8],
    failed: bool,
}

impl<'a> Failing<'a> {
    pub(crate) fn after(bytes: &'a [u8]) -> Self {
        Self { bytes, failed: false }
    }
}

impl Read for Failing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.bytes.read(buffer)? {
            0 if !self.failed => {
                self.failed = true;
                Err(io::Error::new(io::ErrorKind::ConnectionReset, "the line went dead"))
            }
            read => Ok(read),
        }
    }
}
