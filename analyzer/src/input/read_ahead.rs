//! Reads ahead of the decoder, from a thread of its own.
//!
//! The kernel's copying costs about half as much as decoding, and decompressing more, so they are done side by side: a full buffer goes to
//! the decoder, and an empty one comes back.

use std::io::{self, Read};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// How much is read at a time, in bytes: few system calls, and still within a core's own cache.
const CHUNK_BYTES: usize = 1 << 18;

/// One buffer being decoded, one on its way, one being filled.
const BUFFERS: usize = 3;

/// A reader that is read by another thread.
pub(super) struct ReadAhead {
    full: Receiver<io::Result<Chunk>>,
    empty: Sender<Vec<u8>>,
    chunk: Chunk,
    at: usize,
    /// Called before it is waited for more.
    before_wait: Option<BeforeWait>,
}

/// What is to be done when a trace comes in more slowly than it is decoded.
pub(crate) type BeforeWait = Rc<dyn Fn()>;

/// A buffer, and how much of it was filled.
#[derive(Default)]
struct Chunk {
    buffer: Vec<u8>,
    len: usize,
}

impl ReadAhead {
    /// Starts reading `source`.
    ///
    /// The thread ends with its source, or when it has a buffer to hand over and nobody is there. Nobody waits for it, as it
    /// may stay in a read of a pipe for ever.
    pub(super) fn start(source: Box<dyn Read + Send>, before_wait: Option<BeforeWait>) -> io::Result<Self> {
        let (filled, full) = channel();
        let (empty, to_fill) = channel();
        for _ in 0..BUFFERS {
            // The receiver is in this function.
            let _ = empty.send(vec![0; CHUNK_BYTES]);
        }
        std::thread::Builder::new().name("input".to_owned()).spawn(move || fill(source, &to_fill, &filled))?;
        Ok(Self { full, empty, chunk: Chunk::default(), at: 0, before_wait })
    }
}

fn fill(mut source: Box<dyn Read + Send>, empty: &Receiver<Vec<u8>>, full: &Sender<io::Result<Chunk>>) {
    for mut buffer in empty {
        let chunk = loop {
            match source.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result.map(|len| Chunk { buffer, len }),
            }
        };
        let last = !matches!(chunk, Ok(Chunk { len: 1.., .. }));
        if full.send(chunk).is_err() || last {
            return;
        }
    }
}

impl Read for ReadAhead {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.chunk.len {
            let buffer = std::mem::take(&mut self.chunk).buffer;
            self.at = 0;
            if !buffer.is_empty() {
                // Without a receiver the thread has ended, and needs no more buffers.
                let _ = self.empty.send(buffer);
            }
            let next = self.full.try_recv().or_else(|_| {
                if let Some(before_wait) = &self.before_wait {
                    before_wait();
                }
                self.full.recv()
            });
            // The thread sends its last word before it ends.
            self.chunk = next.unwrap_or_else(|_| Ok(Chunk::default()))?;
        }
        let count = out.len().min(self.chunk.len - self.at);
        out[..count].copy_from_slice(&self.chunk.buffer[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_comes_out_in_order_and_then_nothing() {
        let bytes: Vec<u8> = (0..3 * CHUNK_BYTES as u32 + 77).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
        let mut reader = ReadAhead::start(Box::new(io::Cursor::new(bytes.clone())), None).unwrap();
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        assert!(read == bytes);
        assert_eq!(reader.read(&mut [0; 8]).unwrap(), 0);
    }

    #[test]
    fn an_error_comes_out_where_it_happened() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("broken"))
            }
        }
        let mut reader = ReadAhead::start(Box::new((&b"abc"[..]).chain(Broken)), None).unwrap();
        let mut read = Vec::new();
        assert_eq!(reader.read_to_end(&mut read).unwrap_err().to_string(), "broken");
        assert_eq!(read, b"abc");
        assert_eq!(reader.read(&mut [0; 8]).unwrap(), 0);
    }
}
