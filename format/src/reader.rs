//! Readers: over bytes in memory, and over anything that can be read. Both read all versions.
//!
//! Both hand out the same borrowed [`Record`]s, allocate nothing per record, and are done after their first error: what is
//! behind damage is not to be had by reading on.

use std::io::Read;
use std::iter::FusedIterator;

use crate::ByteOrder;
use crate::buffer::{Buffer, CHUNK_BYTES};
use crate::error::{Error, ErrorKind, Result};
use crate::header::{HEADER_BYTES, Header, Version};
use crate::record::{File, Found, MAX_RECORD_BYTES, NoRecord, Record};

/// Reads the records of a file that is in memory, or mapped into it.
///
/// # Resources
///
/// Any bytes may be given: no panic, no allocation, time linear in the bytes.
///
/// # Examples
///
/// ```
/// use simpletrace_format::{ByteOrder, EventId, Record, SliceReader, TraceWriter, Value};
///
/// let mut file = TraceWriter::new(Vec::new(), ByteOrder::NATIVE)?;
/// file.mapping(EventId(7), "bdrv_co_preadv")?;
/// file.event(EventId(7), 1_000, 4242, &[Value::Pointer(0x55d0), Value::Signed(-5)])?;
/// let bytes = file.into_inner();
///
/// let mut records = SliceReader::new(&bytes)?;
/// let Some(Record::Mapping(mapping)) = records.next_record()? else { unreachable!() };
/// assert_eq!((mapping.id, mapping.name), (EventId(7), "bdrv_co_preadv"));
/// let Some(Record::Event(event)) = records.next_record()? else { unreachable!() };
/// assert_eq!((event.timestamp_ns, event.pid), (1_000, 4242));
/// assert_eq!(records.next_record()?, None);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct SliceReader<'a> {
    rest: &'a [u8],
    offset: u64,
    file: File,
}

impl<'a> SliceReader<'a> {
    /// Reads the header of `file`.
    ///
    /// # Errors
    ///
    /// As [`Header::parse`].
    pub fn new(file: &'a [u8]) -> Result<Self> {
        let header = Header::parse(file)?;
        let header_bytes = header.version.header_bytes();
        let rest = file.get(header_bytes..).ok_or_else(|| Error::new(0, ErrorKind::HeaderCut(file.len())))?;
        Ok(Self { rest, offset: header_bytes as u64, file: File::new(header) })
    }

    /// Takes `records` as the headerless output of QEMU's SystemTap flight recorder: version 4 records from the first byte on,
    /// and no mappings among them, in the byte order of the machine that recorded, which nothing tells.
    ///
    /// That is what the flight recorder has made since QEMU 2.10. Its ids are places among the declarations of
    /// `trace-events-all` ([`Numbering::All`](crate::events::Numbering::All)), its timestamps are wall-clock time, and NULL
    /// strings are the text `<null>`.
    ///
    /// Not covered: what the scripts of QEMU 2.2 to 2.7 make, whose records have no type word; the remains of a ring of 2.8
    /// or 2.9, where the names were mapped before; bytes that begin in the middle of a record.
    #[must_use]
    pub const fn headerless(records: &'a [u8], byte_order: ByteOrder) -> Self {
        Self { rest: records, offset: 0, file: File::new(Header { version: Version::V4, byte_order }) }
    }

    /// Returns what the header says; without one, version 4 and the byte order that was given.
    #[must_use]
    pub const fn header(&self) -> Header {
        self.file.header
    }

    /// Returns the offset of the next record, in bytes.
    #[inline]
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads the next record; `None` at the end of the file.
    ///
    /// # Errors
    ///
    /// Any [`ErrorKind`] but the header's and `Io`, with the offset of the record at fault; after it the reader is at its end.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<Record<'a>>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        match Found::at_front_of(self.rest, self.file) {
            Ok(found) => {
                let record = found.record(self.rest, self.offset, self.file.header);
                self.rest = &self.rest[found.size()..];
                self.offset += found.size() as u64;
                Ok(Some(record))
            }
            Err(no_record) => {
                let left = std::mem::take(&mut self.rest).len();
                Err(fault(self.offset, no_record, left))
            }
        }
    }
}

impl<'a> Iterator for SliceReader<'a> {
    type Item = Result<Record<'a>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.next_record().transpose()
    }
}

impl FusedIterator for SliceReader<'_> {}

/// Reads the records of a file that streams in: a pipe, a decompressor, a socket.
///
/// # Resources
///
/// Any bytes may come: no panic, one buffer of at most [`StreamReader::MAX_BUFFER_BYTES`], time linear in the bytes. A record is
/// handed out as soon as it is whole, so a slow pipe is followed closely.
///
/// # Examples
///
/// ```
/// use simpletrace_format::{ByteOrder, EventId, StreamReader, TraceWriter};
///
/// let mut file = TraceWriter::new(Vec::new(), ByteOrder::Big)?;
/// file.event(EventId(0), 5, 1, &[])?;
/// let bytes = file.into_inner();
///
/// let mut records = StreamReader::new(&bytes[..])?;
/// let mut count = 0;
/// while records.next_record()?.is_some() {
///     count += 1;
/// }
/// assert_eq!(count, 1);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct StreamReader<R> {
    pub(crate) source: R,
    /// Starts with the record that was handed out last.
    pub(crate) buffer: Buffer,
    /// The size of that record, in bytes: given back at the next call, when nobody borrows it any more.
    pub(crate) handed_out: usize,
    pub(crate) file: File,
    pub(crate) at_end: bool,
}

impl<R: Read> StreamReader<R> {
    /// The most that a reader buffers, in bytes: the longest record but one byte, and a refill behind it.
    pub const MAX_BUFFER_BYTES: usize = 8 + MAX_RECORD_BYTES as usize + CHUNK_BYTES;

    /// Reads the header from `source`.
    ///
    /// # Errors
    ///
    /// As [`Header::parse`], or [`ErrorKind::Io`].
    pub fn new(mut source: R) -> Result<Self> {
        let mut buffer = Buffer::default();
        let mut at_end = false;
        let mut fill = |buffer: &mut Buffer, bytes| {
            while buffer.len() < bytes && !at_end {
                at_end = !buffer.refill(&mut source).map_err(|error| Error::new(0, ErrorKind::Io(error)))?;
            }
            Ok(())
        };
        fill(&mut buffer, HEADER_BYTES)?;
        let header = Header::parse(&buffer)?;
        let header_bytes = header.version.header_bytes();
        fill(&mut buffer, header_bytes)?;
        if buffer.len() < header_bytes {
            return Err(Error::new(0, ErrorKind::HeaderCut(buffer.len())));
        }
        Ok(Self { source, buffer, handed_out: header_bytes, file: File::new(header), at_end })
    }

    /// Takes `source` as the headerless output of QEMU's SystemTap flight recorder, as [`SliceReader::headerless`] does.
    #[must_use]
    pub fn headerless(source: R, byte_order: ByteOrder) -> Self {
        let file = File::new(Header { version: Version::V4, byte_order });
        Self { source, buffer: Buffer::default(), handed_out: 0, file, at_end: false }
    }

    /// Returns what the header says; without one, version 4 and the byte order that was given.
    #[must_use]
    pub const fn header(&self) -> Header {
        self.file.header
    }

    /// Returns the offset of the next record, in bytes of the (decompressed) stream.
    #[inline]
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.buffer.offset() + self.handed_out as u64
    }

    /// Reads the next record; `None` at the end of the stream.
    ///
    /// # Errors
    ///
    /// Any [`ErrorKind`] but the header's, with the offset of the record at fault; after it the reader is at its end.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        let done = std::mem::take(&mut self.handed_out);
        self.buffer.advance(done);
        let found = loop {
            match Found::at_front_of(&self.buffer, self.file) {
                Ok(found) => break found,
                Err(_) if self.at_end && self.buffer.is_empty() => return Ok(None),
                Err(NoRecord::Incomplete) if !self.at_end => match self.buffer.refill(&mut self.source) {
                    Ok(more) => self.at_end = !more,
                    Err(error) => return Err(self.stop(NoRecord::Damaged(ErrorKind::Io(error)))),
                },
                Err(no_record) => return Err(self.stop(no_record)),
            }
        };
        self.handed_out = found.size();
        Ok(Some(found.record(&self.buffer, self.buffer.offset(), self.file.header)))
    }

    #[cold]
    fn stop(&mut self, no_record: NoRecord) -> Error {
        let error = fault(self.buffer.offset(), no_record, self.buffer.len());
        self.buffer.clear();
        self.at_end = true;
        error
    }
}

#[cold]
fn fault(offset: u64, no_record: NoRecord, left: usize) -> Error {
    match no_record {
        NoRecord::Incomplete => Error::new(offset, ErrorKind::TornTail(left as u64)),
        NoRecord::Damaged(kind) => Error::new(offset, kind),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::{EventId, TraceWriter, Value};

    /// Gives out short pieces of odd sizes and notes the most that it was asked for.
    struct Pieces<'a> {
        bytes: &'a [u8],
        piece: usize,
        most_asked: usize,
    }

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.most_asked = self.most_asked.max(buffer.len());
            self.piece = self.piece * 7 % 65_521;
            let piece = self.piece.min(buffer.len());
            self.bytes.read(&mut buffer[..piece])
        }
    }

    /// The longest records are the worst that can come: nearly all of one is held when more is asked for. Seen from the
    /// source, a reader never asks for more than the bound; seen from inside, it never has more allocated.
    #[test]
    fn the_buffer_stays_within_its_bound_whatever_the_records() {
        const BOUND: usize = StreamReader::<&[u8]>::MAX_BUFFER_BYTES;

        let string = vec![b'x'; MAX_RECORD_BYTES as usize - 24 - 4];
        let mut file = TraceWriter::new(Vec::new(), ByteOrder::NATIVE).unwrap();
        for turn in 0..24 {
            file.event(EventId(1), turn, 1, &[Value::String(&string)]).unwrap();
            let shorter = &string[..string.len() * turn as usize / 24];
            file.event(EventId(2), turn, 1, &[Value::String(shorter)]).unwrap();
            file.event(EventId(3), turn, 1, &[]).unwrap();
        }
        let file = file.into_inner();

        for piece in [1, 40_000] {
            let source = Pieces { bytes: &file, piece, most_asked: 0 };
            let mut reader = StreamReader::new(source).unwrap();
            let mut count = 0;
            while reader.next_record().unwrap().is_some() {
                count += 1;
                assert!(
                    reader.buffer.capacity() <= BOUND,
                    "{} bytes allocated after record {count}",
                    reader.buffer.capacity()
                );
            }
            assert_eq!(count, 72);
            assert!(reader.source.most_asked <= BOUND, "asked for {}", reader.source.most_asked);
        }
    }

    #[test]
    fn a_length_that_nothing_follows_allocates_no_more_than_one_refill() {
        let mut file = TraceWriter::new(Vec::new(), ByteOrder::Little).unwrap().into_inner();
        for word in [1, 0, 0, u64::from(MAX_RECORD_BYTES)] {
            ByteOrder::Little.put_u64(word, &mut file);
        }
        let mut reader = StreamReader::new(&file[..]).unwrap();
        assert!(reader.next_record().unwrap_err().is_torn_tail());
        assert!(reader.buffer.capacity() <= CHUNK_BYTES);
    }
}
