//! Reading on behind damage.
//!
//! Finding the next record behind damage is guessing, so it is a type of its own around the machinery of
//! [`StreamReader`]: as long as nothing is wrong, it costs what reading costs. How a guess is made, and how often it is wrong,
//! is in `docs/RECOVERY.md`.
//!
//! # Why it is linear
//!
//! Behind an error the scan goes over the bytes once, from the left to the right, and never returns to a place that it has
//! decided about. Deciding reads one record header there and those of at most [`FAR_SUCCESSORS`] records behind it, whatever
//! their lengths: payloads are jumped over, not read. A name is read up to its first byte that no identifier has, a fact up to its first
//! zero byte, and neither can overlap type words, so that all names together cost no more than a few times the bytes. Where a decision has to wait
//! for more bytes, each wait reads at least one. Before the scan, the record that was handed out last is looked through, once
//! per damage: there chains of records are followed of any number, but no place is followed twice. What is taken back is then
//! read again, which happens once too: the record that begins there ends behind where the error was, or another does that is
//! followed without an error in between.

use std::fmt;
use std::io::Read;

use crate::buffer::{Buffer, CHUNK_BYTES};
use crate::cursor::Cursor;
use crate::error::{Error, ErrorKind, Result};
use crate::header::{HEADER_BYTES, Header, Version};
use crate::reader::StreamReader;
use crate::record::{
    DROPPED_BYTES, File, Found, MAX_RECORD_BYTES, NoRecord, RECORD_HEADER_BYTES, Record, TYPE_EVENT, TYPE_MAPPING,
    check_length,
};
use crate::{ByteOrder, EventId, MAX_NAME_BYTES, Names, Payload};

/// How much earlier than the last record before the damage a record may be, in ns: 10 s. Records are written in the order in
/// which room was reserved for them, after the time was taken: a thread that is preempted in between is late by milliseconds,
/// seconds on a host that is out of memory.
const EARLIER_NS: u64 = 10_000_000_000;

/// How much later than the last record before the damage a record may be, in ns: one hour. A damaged stretch takes records with
/// it and a guest may idle, but a random timestamp is within an hour and 10 s once in 5 million (2^64 ns are 585 years).
const LATER_NS: u64 = 3_600_000_000_000;

/// How many records must follow a record that is near in version 4, where its type word alone is 64 bits that must be right.
const NEAR_SUCCESSORS: usize = 1;

/// The same in versions before 4, which have no type word.
const NEAR_SUCCESSORS_EARLIER: usize = 2;

/// How many records must follow one that is not near: its time is out of the window, or there is none to compare with, its
/// process is another, its id was never mapped or its payload does not fit.
const FAR_SUCCESSORS: usize = 3;

/// An id below this may be an event's though nothing has mapped it: the mapping may be what was damaged, and versions before 4
/// have none. QEMU counts its ids from 0 and has about 5,500.
const UNMAPPED_IDS: u64 = 1 << 16;

/// An id in a mapping record is below this: the recorder's ids have 32 bits.
const MAPPED_IDS: u64 = 1 << 32;

/// What a [`RecoveringReader`] comes upon.
#[derive(Debug)]
pub enum Recovered<'a> {
    /// A record.
    Record(Record<'a>),
    /// Something that is no record; told once per damaged stretch, before what is found behind it.
    Damage(Damage),
    /// The header of another file: ids have other names from here on, or none yet.
    NewFile(Header),
}

/// A damaged stretch of a file.
#[derive(Debug)]
pub struct Damage {
    /// Where reading failed, in bytes.
    pub offset: u64,
    /// How many bytes from there on belong to nothing.
    pub skipped_bytes: u64,
    /// Where reading goes on; `None` if nothing was found up to the end of the file.
    ///
    /// Before `offset`, if the record that was handed out last is longer than it was when it was written: what begins inside
    /// it comes next, and the record itself is not to be trusted.
    pub resumed_at: Option<u64>,
    /// What was wrong at `offset`.
    pub kind: ErrorKind,
    /// How many records were handed out before.
    pub records_before: u64,
}

impl Damage {
    /// Tells whether the file merely ends inside a record, the normal end of a killed program's trace.
    #[must_use]
    pub const fn is_torn_tail(&self) -> bool {
        matches!(self.kind, ErrorKind::TornTail(_)) && self.resumed_at.is_none()
    }

    /// Tells whether the record that was handed out last has a wrong length and so has taken in what comes next.
    #[must_use]
    pub const fn is_overlap(&self) -> bool {
        matches!(self.resumed_at, Some(at) if at < self.offset)
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "offset {}: ", self.offset)?;
        match (&self.kind, self.resumed_at) {
            (ErrorKind::TornTail(_), Some(_)) => f.write_str("a record that would end behind the end of the file")?,
            (kind, _) => kind.fmt(f)?,
        }
        match self.resumed_at {
            Some(at) if at < self.offset => {
                write!(f, "; the record before is too long, reading goes on inside it at offset {at}")
            }
            Some(at) => write!(f, "; {} bytes skipped, reading goes on at offset {at}", self.skipped_bytes),
            None if self.is_torn_tail() => Ok(()),
            None => write!(f, "; {} bytes skipped, up to the end", self.skipped_bytes),
        }
    }
}

/// What may be an event record behind damage, for those who know declarations to judge.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// The header of its file.
    pub header: Header,
    /// Its event.
    pub id: EventId,
    /// The name that the file gives the event, if it does.
    pub name: Option<&'a str>,
    /// What its arguments would be.
    pub payload: Payload<'a>,
}

type Fits = Box<dyn FnMut(&Candidate<'_>) -> Option<bool> + Send>;

/// Reads the records of a file that streams in, and goes on behind damage.
///
/// An undamaged file gives what [`StreamReader`] gives.
///
/// # Resources
///
/// As those of [`StreamReader`], with a buffer of at most [`MAX_BUFFER_BYTES`](Self::MAX_BUFFER_BYTES) and the tables of
/// [`Names`]. Only behind damage it waits for more than the record that comes next.
///
/// # Examples
///
/// ```
/// use simpletrace_format::{ByteOrder, EventId, Recovered, RecoveringReader, TraceWriter};
///
/// let mut file = TraceWriter::new(Vec::new(), ByteOrder::Little)?;
/// file.mapping(EventId(7), "disk_read")?;
/// file.event(EventId(7), 1_000, 42, &[])?;
/// let mut bytes = file.into_inner();
/// let record = bytes[bytes.len() - 32..].to_vec();
/// bytes.extend([0; 100]);
/// bytes.extend(record);
///
/// let mut reader = RecoveringReader::new(&bytes[..])?;
/// let (mut records, mut skipped) = (0, 0);
/// while let Some(item) = reader.next_item()? {
///     match item {
///         Recovered::Record(_) => records += 1,
///         Recovered::Damage(damage) => skipped += damage.skipped_bytes,
///         Recovered::NewFile(_) => unreachable!("there is one header"),
///     }
/// }
/// assert_eq!((records, skipped), (3, 100));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub struct RecoveringReader<R> {
    source: R,
    /// Starts with what was handed out last, which is kept until the next record is found, as it may turn out to be too long.
    buffer: Buffer,
    /// How long that is, in bytes.
    handed_out: usize,
    /// The number of records when reading last began anew: as long as it is that, what was handed out last is no record.
    records_at_start: u64,
    file: File,
    at_end: bool,
    /// Where the file began, whose records these are.
    file_at: u64,
    /// Whether the file is of an unknown version, so that only another header ends the damage.
    only_headers: bool,
    /// Time and process of two of the last events, as the very last one may be damaged itself: of the last one that is an even
    /// number of records back, and of the last one that is an odd number back.
    clocks: [Clock; 2],
    /// The number of records up to the last one that noted no time, or up to the last header; and the last time noted before.
    untimed_records: u64,
    clock_before_untimed: Clock,
    records: u64,
    names: Names,
    fits: Option<Fits>,
    /// How many record headers have been looked at behind damage: what the time depends on.
    looked_at: u64,
}

#[derive(Debug, Clone, Copy)]
struct Clock {
    timestamp_ns: u64,
    pid: u32,
}

impl Clock {
    /// No time that a recorder comes to.
    const NONE: Self = Self { timestamp_ns: u64::MAX, pid: 0 };

    /// Tells whether a time is in the neighbourhood of this one.
    const fn is_near(self, other: Self) -> bool {
        other.timestamp_ns >= self.timestamp_ns.saturating_sub(EARLIER_NS)
            && other.timestamp_ns <= self.timestamp_ns.saturating_add(LATER_NS)
    }
}

/// What stands at a place, as far as one header tells.
enum Head {
    /// Nothing that belongs into a file.
    No,
    /// More bytes have to come.
    More,
    /// Less than a header, and the end of the file.
    Tail,
    Header,
    Mapping {
        size: usize,
    },
    Event {
        size: usize,
        id: EventId,
        is_named: bool,
        /// `None` for a `dropped` record of version 0, which has no time.
        clock: Option<Clock>,
    },
}

/// Whether a record begins at a place.
#[derive(PartialEq, Eq)]
enum Verdict {
    No,
    More,
    Yes,
}

/// What to do about a place where no record is.
enum Step {
    Again,
    End,
    Damage(Damage),
    NewFile(Header),
}

/// What [`RecoveringReader::next_item`] returns, if that is no record.
type Told = Result<Option<Recovered<'static>>>;

impl<R> fmt::Debug for RecoveringReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecoveringReader")
            .field("header", &self.file.header)
            .field("offset", &(self.buffer.offset() + self.handed_out as u64))
            .field("records", &self.records)
            .finish_non_exhaustive()
    }
}

impl<R: Read> RecoveringReader<R> {
    /// The most that a reader buffers, in bytes: the record before the damage, what was taken for one, the records that have to
    /// follow, and a refill.
    pub const MAX_BUFFER_BYTES: usize = (FAR_SUCCESSORS + 3) * (MAX_RECORD_BYTES as usize + 8) + 2 * CHUNK_BYTES;

    /// Reads the header from `source`.
    ///
    /// # Errors
    ///
    /// As [`StreamReader::new`]: a file whose first header is damaged is read with [`assuming`](Self::assuming).
    pub fn new(source: R) -> Result<Self> {
        StreamReader::new(source).map(Self::around)
    }

    /// Takes `source` as records of a file with the given header, without one itself or with a damaged one, which is then the
    /// first damage.
    #[must_use]
    pub fn assuming(source: R, header: Header) -> Self {
        let mut reader = Self::around(StreamReader::headerless(source, header.byte_order));
        reader.file = File::new(header);
        reader
    }

    fn around(reader: StreamReader<R>) -> Self {
        let StreamReader { source, buffer, handed_out, file, at_end } = reader;
        Self {
            source,
            buffer,
            handed_out,
            records_at_start: 0,
            file,
            at_end,
            file_at: 0,
            only_headers: false,
            clocks: [Clock::NONE; 2],
            untimed_records: 0,
            clock_before_untimed: Clock::NONE,
            records: 0,
            names: Names::default(),
            fits: None,
            looked_at: 0,
        }
    }

    /// Asks `fits` about what may be a record behind damage: whether its payload is as its event is declared, `None` if there is
    /// no telling. What does not fit needs more records that follow it to be taken for one.
    ///
    /// It must not take time in proportion to the payload: reading the declared arguments does not.
    #[must_use]
    pub fn with_fits(mut self, fits: impl FnMut(&Candidate<'_>) -> Option<bool> + Send + 'static) -> Self {
        self.fits = Some(Box::new(fits));
        self
    }

    /// Returns what the header of the file says that is being read: of the last one.
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

    /// Returns the number of records handed out, in all files.
    #[must_use]
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// Returns the time and the process of the last event or `dropped` record that was handed out, `None` before the first.
    #[must_use]
    pub const fn last_timestamp_ns_and_pid(&self) -> Option<(u64, u32)> {
        let Clock { timestamp_ns, pid } = self.last_clock();
        // The time of no clock, nor that of any recorder.
        if timestamp_ns == Clock::NONE.timestamp_ns { None } else { Some((timestamp_ns, pid)) }
    }

    const fn last_clock(&self) -> Clock {
        if self.records == self.untimed_records {
            self.clock_before_untimed
        } else {
            self.clocks[(self.records as usize & 1) ^ 1]
        }
    }

    /// Takes notice that the next record, or a header, has no time.
    const fn note_untimed(&mut self, records: u64) {
        self.clock_before_untimed = self.last_clock();
        self.untimed_records = self.records + records;
    }

    /// Reads on; `None` at the end of the stream.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] only; after it the reader is at its end.
    // Always: a call hands the record over in memory, which takes a fourth of the instructions of `check`.
    #[inline(always)]
    pub fn next_item(&mut self) -> Result<Option<Recovered<'_>>> {
        let rest = self.buffer.from(self.handed_out);
        if let Some(found @ Found::Event { timestamp_ns, pid, .. }) = Found::event_at_front_of(rest, self.file) {
            self.note(Clock { timestamp_ns, pid });
            return Ok(Some(Recovered::Record(self.hand_out(found))));
        }
        match self.other_record() {
            Ok(found) => Ok(Some(Recovered::Record(self.hand_out(found)))),
            Err(told) => told,
        }
    }

    /// Finds the next record where no event of version 4 is that is whole and in order, or what is to be told instead.
    #[cold]
    fn other_record(&mut self) -> Result<Found, Told> {
        loop {
            match Found::any_at_front_of(self.buffer.from(self.handed_out), self.file.header) {
                Ok(found @ Found::Event { timestamp_ns, pid, .. }) => {
                    self.note(Clock { timestamp_ns, pid });
                    return Ok(found);
                }
                // The same for an event of an earlier version that looks like its neighbour.
                Ok(found @ Found::Earlier { id, timestamp_ns, pid, .. })
                    if id.0 < UNMAPPED_IDS && {
                        let last = self.clocks[(self.records as usize & 1) ^ 1];
                        timestamp_ns.wrapping_sub(last.timestamp_ns) <= LATER_NS
                            && pid == last.pid
                            && last.timestamp_ns != u64::MAX
                    } =>
                {
                    self.note(Clock { timestamp_ns, pid });
                    return Ok(found);
                }
                Ok(found) => match self.rare_record(found).map_err(Err)? {
                    None => return Ok(found),
                    Some(damage) => return Err(Ok(Some(Recovered::Damage(damage)))),
                },
                Err(no_record) => match self.no_record(no_record).map_err(Err)? {
                    Step::Again => {}
                    Step::End => return Err(Ok(None)),
                    Step::Damage(damage) => return Err(Ok(Some(Recovered::Damage(damage)))),
                    Step::NewFile(header) => return Err(Ok(Some(Recovered::NewFile(header)))),
                },
            }
        }
    }

    /// Keeps the time and the process of the record that is handed out next.
    #[inline]
    fn note(&mut self, clock: Clock) {
        self.clocks[self.records as usize & 1] = clock;
    }

    // Always, as `next_item`: several commands have a loop of their own around it.
    #[inline(always)]
    fn hand_out(&mut self, found: Found) -> Record<'_> {
        self.buffer.advance(self.handed_out);
        self.handed_out = found.size();
        self.records += 1;
        found.record(&self.buffer, self.buffer.offset(), self.file.header)
    }

    /// Takes notice of a record that is no event of version 4, and looks closer at it.
    #[cold]
    fn rare_record(&mut self, found: Found) -> Result<Option<Damage>> {
        let rest = self.buffer.from(self.handed_out);
        let clock = match found {
            Found::Event { timestamp_ns, pid, .. } => Clock { timestamp_ns, pid },
            // Such ids are places among declarations.
            Found::Earlier { id, .. } if (UNMAPPED_IDS..EventId::FIRST_SPECIAL.0).contains(&id.0) => {
                return self.damage(ErrorKind::IdTooLarge(id)).map(Some);
            }
            Found::Earlier { timestamp_ns, pid, .. } => Clock { timestamp_ns, pid },
            Found::Dropped { .. } if self.file.header.version == Version::V0 => {
                self.note_untimed(1);
                return Ok(None);
            }
            Found::Dropped { timestamp_ns, pid, .. } => Clock { timestamp_ns, pid },
            Found::Mapping { .. } => {
                let Record::Mapping(mapping) = found.record(rest, self.offset(), self.file.header) else {
                    return Ok(None);
                };
                // Nobody is known to write others, but zeros and small numbers read as such.
                if mapping.name.contains('\0') {
                    return self.damage(ErrorKind::NameWithZero).map(Some);
                }
                // Mappings stand at the beginning of a file. Where a torn file had another written behind it, the torn record
                // has taken in its header, and may end at a mapping by chance: the names would be taken for those of the first.
                if self.has_taken_in_header() {
                    return self.damage(ErrorKind::SecondHeader).map(Some);
                }
                if !mapping.is_fact() {
                    let _ = self.names.map(&mapping);
                }
                self.note_untimed(1);
                return Ok(None);
            }
        };
        // The same in versions 2 and 3, which have no mappings: a leap in time, or another process, is as rare.
        if !self.near_clocks(clock).any(|last| last.pid == clock.pid) && self.has_taken_in_header() {
            return self.damage(ErrorKind::SecondHeader).map(Some);
        }
        self.note(clock);
        Ok(None)
    }

    /// Tells whether there is a file header in the record that was handed out last.
    fn has_taken_in_header(&self) -> bool {
        // It may end inside the header.
        let end = self.buffer.len().min(self.handed_out + HEADER_BYTES - 1);
        let last = &self.buffer[..end];
        self.records > self.records_at_start
            && last.windows(HEADER_BYTES).any(|bytes| bytes.starts_with(&[0xff; 8]) && Header::parse(bytes).is_ok())
    }

    /// Gives back all before a place from which reading goes on.
    fn resume_at(&mut self, place: usize) -> u64 {
        self.buffer.advance(place);
        self.handed_out = 0;
        self.records_at_start = self.records;
        self.offset()
    }

    fn more(&mut self) -> Result<()> {
        match self.buffer.refill(&mut self.source) {
            Ok(more) => self.at_end = !more,
            Err(error) => {
                let offset = self.resume_at(self.handed_out);
                self.buffer.clear();
                self.at_end = true;
                return Err(Error::new(offset, ErrorKind::Io(error)));
            }
        }
        Ok(())
    }

    #[cold]
    fn no_record(&mut self, no_record: NoRecord) -> Result<Step> {
        let kind = match no_record {
            NoRecord::Incomplete if !self.at_end => {
                self.more()?;
                return Ok(Step::Again);
            }
            NoRecord::Incomplete => match self.buffer.len() - self.handed_out {
                0 => return Ok(Step::End),
                left => ErrorKind::TornTail(left as u64),
            },
            NoRecord::Damaged(kind) => kind,
        };
        let kind = match kind {
            ErrorKind::SecondHeader => match self.second_header()? {
                Ok(header) => return Ok(Step::NewFile(header)),
                Err(kind) => kind,
            },
            kind => kind,
        };
        self.damage(kind).map(Step::Damage)
    }

    /// Goes on with the file whose header stands behind what was handed out.
    fn second_header(&mut self) -> Result<Result<Header, ErrorKind>> {
        let fill = |reader: &mut Self, bytes| {
            while reader.buffer.len() - reader.handed_out < bytes && !reader.at_end {
                reader.more()?;
            }
            Ok(())
        };
        fill(self, HEADER_BYTES)?;
        let header = match Header::parse(&self.buffer[self.handed_out..]) {
            Ok(header) => header,
            Err(error) => {
                // Unless it is the very header that the caller knows better.
                self.only_headers = self.offset() > 0 && matches!(error.kind(), ErrorKind::UnsupportedVersion(_));
                return Ok(Err(error.into_kind()));
            }
        };
        let header_bytes = header.version.header_bytes();
        fill(self, header_bytes)?;
        let left = self.buffer.len() - self.handed_out;
        if left < header_bytes {
            return Ok(Err(ErrorKind::HeaderCut(left)));
        }
        self.file_at = self.resume_at(self.handed_out);
        self.handed_out = header_bytes;
        self.file = File::new(header);
        self.only_headers = false;
        self.note_untimed(0);
        self.clocks = [Clock::NONE; 2];
        self.names = Names::default();
        Ok(Ok(header))
    }

    /// Finds where to go on behind what was handed out, and goes there.
    fn damage(&mut self, kind: ErrorKind) -> Result<Damage> {
        let (offset, records_before) = (self.offset(), self.records);
        let inside = if self.records > self.records_at_start && !self.only_headers { self.look_back()? } else { None };
        if let Some(place) = inside {
            let resumed_at = Some(self.resume_at(place));
            return Ok(Damage { offset, skipped_bytes: 0, resumed_at, kind, records_before });
        }
        self.resume_at(self.handed_out);
        let resumed_at = self.scan()?.then(|| self.offset());
        Ok(Damage { offset, skipped_bytes: self.offset() - offset, resumed_at, kind, records_before })
    }

    /// Looks for a record behind the front of the buffer and makes it the front; false, and nothing left, if there is none.
    fn scan(&mut self) -> Result<bool> {
        let mut place = 1;
        loop {
            place = self.next_word(place);
            if place >= self.buffer.len().saturating_sub(7) {
                if self.at_end {
                    self.resume_at(self.buffer.len());
                    return Ok(false);
                }
                self.resume_at(place.min(self.buffer.len()));
                place = 0;
                self.more()?;
                continue;
            }
            match self.begins_at(place) {
                Verdict::Yes => {
                    self.resume_at(place);
                    return Ok(true);
                }
                Verdict::No => place += 1,
                Verdict::More => {
                    self.resume_at(place);
                    place = 0;
                    self.more()?;
                }
            }
        }
    }

    /// Returns the first place from `from` on whose eight bytes may begin a record or a header; where there are no eight bytes
    /// left, if there is none.
    fn next_word(&self, from: usize) -> usize {
        const LOW_BYTES: usize = 2;

        let order = self.file.header.byte_order;
        match self.file.header.version {
            _ if self.only_headers => self.find_word(from, |word| (word, order.u64(word) == u64::MAX)),
            // A header, a mapping and an event: -1, 0 and 1.
            Version::V4 => self.find_word(from, |word| (word, order.u64(word).wrapping_add(1) <= 2)),
            _ => self.find_word(from, |word| {
                let high = match order {
                    ByteOrder::Little => &word[LOW_BYTES..],
                    ByteOrder::Big => &word[..8 - LOW_BYTES],
                };
                (high, order.u64(word).wrapping_add(2) < UNMAPPED_IDS + 2)
            }),
        }
    }

    /// Returns the first place from `from` on with eight bytes that `is_wanted` wants. It is to tell as well which of them are 0, 1
    /// or 255 in each word that it wants: where one of these is anything else, no such word lies across it, and all that do are passed over at once.
    #[inline]
    fn find_word(&self, from: usize, is_wanted: impl Fn(&[u8; 8]) -> (&[u8], bool)) -> usize {
        let mut place = from;
        while let Some(word) = self.buffer.from(place).first_chunk() {
            let (limited, wanted) = is_wanted(word);
            place += match limited.iter().rposition(|byte| byte.wrapping_add(1) > 2) {
                Some(last) => last + 1,
                None if wanted => return place,
                None => 1,
            };
        }
        place.max(self.buffer.len().saturating_sub(7))
    }

    /// Reads one header.
    fn head(&mut self, place: usize) -> Head {
        self.looked_at += 1;
        let short = || if self.at_end { Head::Tail } else { Head::More };
        let header = self.file.header;
        let bytes = &self.buffer[place..];
        let mut cursor = Cursor::new(bytes, header.byte_order);
        let Some(first) = cursor.u64() else { return short() };
        if first == EventId::TRACE_BEGIN.0 {
            return match Header::parse(bytes) {
                Ok(_) => Head::Header,
                Err(error) if matches!(error.kind(), ErrorKind::HeaderCut(_)) => short(),
                Err(_) => Head::No,
            };
        }
        let id = match (header.version, first) {
            _ if self.only_headers => return Head::No,
            (Version::V4, TYPE_MAPPING) => return self.mapping(&mut cursor).unwrap_or_else(short),
            (Version::V4, TYPE_EVENT) => cursor.u64(),
            (Version::V4, _) => return Head::No,
            (Version::V0, _) if !(self.buffer.offset() + place as u64 - self.file_at).is_multiple_of(64) => {
                return Head::No;
            }
            _ => Some(first),
        };
        let Some(id) = id.map(EventId) else { return short() };
        let is_named = id == EventId::DROPPED || self.names.slot(id).is_some();
        if !is_named && id.0 >= UNMAPPED_IDS {
            return Head::No;
        }
        let Some(timestamp_ns) = cursor.u64() else { return short() };
        if header.version == Version::V0 {
            if bytes.len() < 64 {
                return short();
            }
            let clock = (id != EventId::DROPPED).then_some(Clock { timestamp_ns, pid: 0 });
            return Head::Event { size: 64, id, is_named, clock };
        }
        let Some(length) = cursor.u32() else { return short() };
        if check_length(length).is_err() || (id == EventId::DROPPED && length != DROPPED_BYTES) {
            return Head::No;
        }
        let Some(pid) = cursor.u32() else { return short() };
        // In version 2 it is a reserved zero.
        if header.version == Version::V2 && pid != 0 {
            return Head::No;
        }
        let type_bytes = if header.version == Version::V4 { 8 } else { 0 };
        Head::Event { size: type_bytes + length as usize, id, is_named, clock: Some(Clock { timestamp_ns, pid }) }
    }

    /// Reads a mapping record behind its type word; `None` if there is not enough of it.
    fn mapping(&self, cursor: &mut Cursor<'_>) -> Option<Head> {
        let id = EventId(cursor.u64()?);
        let length = cursor.u32()?;
        let is_fact = id == EventId::FACTS;
        // Zeros have no name.
        if (id.0 >= MAPPED_IDS && !is_fact) || !(1..=MAX_NAME_BYTES).contains(&length) {
            return Some(Head::No);
        }
        let length = length as usize;
        let there = &cursor.rest()[..length.min(cursor.rest().len())];
        if !(if is_fact { is_text(there, length) } else { is_identifier(there) }) {
            return Some(Head::No);
        }
        let name = cursor.take(length)?;
        match self.names.slot(id) {
            _ if is_fact => Some(Head::Mapping { size: 20 + length }),
            Some(slot) if self.names.name(slot).as_bytes() != name => Some(Head::No),
            _ => Some(Head::Mapping { size: 20 + length }),
        }
    }

    /// Those of the last clocks that have this one in their neighbourhood.
    fn near_clocks(&self, clock: Clock) -> impl Iterator<Item = Clock> {
        self.clocks.into_iter().filter(move |last| last.timestamp_ns != u64::MAX && last.is_near(clock))
    }

    /// Judges a place by what stands there and by what follows.
    fn begins_at(&mut self, place: usize) -> Verdict {
        let version = self.file.header.version;
        let near_successors = if version == Version::V4 { NEAR_SUCCESSORS } else { NEAR_SUCCESSORS_EARLIER };
        let (size, successors, clock) = match self.head(place) {
            Head::No | Head::Tail => return Verdict::No,
            Head::More => return Verdict::More,
            Head::Header => return Verdict::Yes,
            Head::Mapping { size } => (size, near_successors, None),
            Head::Event { size, id, is_named, clock } => {
                match self.buffer.get(place..place + size) {
                    Some(_) => {}
                    None if self.at_end => return Verdict::No,
                    None => return Verdict::More,
                }
                let is_near = match clock {
                    Some(clock) => self.near_clocks(clock).any(|last| last.pid == clock.pid),
                    None => true,
                };
                let is_named = is_named || version != Version::V4;
                let is_near = is_near && is_named && self.fits(place, size, id) != Some(false);
                (size, if is_near { near_successors } else { FAR_SUCCESSORS }, clock)
            }
        };
        self.is_followed(place + size, successors, clock)
    }

    fn fits(&mut self, place: usize, size: usize, id: EventId) -> Option<bool> {
        let fits = self.fits.as_mut()?;
        if id == EventId::DROPPED {
            return None;
        }
        let header = self.file.header;
        let payload_at = match header.version {
            Version::V0 => 16,
            Version::V2 | Version::V3 => RECORD_HEADER_BYTES as usize,
            Version::V4 => 8 + RECORD_HEADER_BYTES as usize,
        };
        let payload = Payload::of(&self.buffer[place + payload_at..place + size], header);
        let name = self.names.slot(id).map(|slot| self.names.name(slot));
        fits(&Candidate { header, id, name, payload })
    }

    /// Tells whether so many records follow from `place` on, in the neighbourhood of `clock`, or the end of the file does.
    fn is_followed(&mut self, mut place: usize, successors: usize, mut clock: Option<Clock>) -> Verdict {
        for found in 0..successors {
            if place > self.buffer.len() {
                // The last one is torn.
                return if self.at_end { Verdict::Yes } else { Verdict::More };
            }
            match self.head(place) {
                Head::No => return Verdict::No,
                Head::More => return Verdict::More,
                Head::Header => return Verdict::Yes,
                // Without a type word, a few bytes at the end are no sign: many a false length leads to them.
                Head::Tail if self.file.header.version == Version::V4 || found > 0 => return Verdict::Yes,
                Head::Tail if successors < FAR_SUCCESSORS && place == self.buffer.len() => return Verdict::Yes,
                Head::Tail => return Verdict::No,
                Head::Mapping { size } => place += size,
                Head::Event { size, clock: next, .. } => {
                    match (clock, next) {
                        (Some(clock), Some(next)) if !clock.is_near(next) => return Verdict::No,
                        (None, Some(_)) => clock = next,
                        _ => {}
                    }
                    place += size;
                }
            }
        }
        Verdict::Yes
    }

    /// Looks inside the record that was handed out last for records that go on behind its end: then its length is wrong, which
    /// the damage behind it is the first sign of.
    fn look_back(&mut self) -> Result<Option<usize>> {
        let end = self.handed_out;
        // Followed in vain. It is about places in the buffer, whose front does not move here.
        let mut seen = vec![false; end];
        let mut place = 1;
        loop {
            place = self.next_word(place);
            if place >= end {
                return Ok(None);
            }
            let mut at = place;
            loop {
                match self.leads_across(&mut at, end, &mut seen) {
                    Verdict::Yes => return Ok(Some(place)),
                    Verdict::No => break,
                    Verdict::More => self.more()?,
                }
            }
            place += 1;
        }
    }

    /// Tells whether the records from `at` on go over `end`, not up to it, and further, or come to a file header before it. Where more bytes are needed, `at` is
    /// moved to where to go on.
    fn leads_across(&mut self, at: &mut usize, end: usize, seen: &mut [bool]) -> Verdict {
        while *at < end {
            if seen[*at] {
                return Verdict::No;
            }
            let (size, clock) = match self.head(*at) {
                Head::More => return Verdict::More,
                // The file was torn here, and another written behind it.
                Head::Header => return Verdict::Yes,
                Head::No | Head::Tail => return Verdict::No,
                Head::Mapping { size } => (size, None),
                Head::Event { size, clock, .. } => (size, clock),
            };
            let next = *at + size;
            if next > end {
                // The last record may have any time, itself damaged as it is.
                let is_near = clock.is_some_and(|clock| self.near_clocks(clock).next().is_some());
                let successors = if is_near { NEAR_SUCCESSORS_EARLIER } else { FAR_SUCCESSORS };
                let verdict = match next <= self.buffer.len() {
                    true => self.is_followed(next, successors, clock),
                    false if self.at_end => Verdict::No,
                    false => Verdict::More,
                };
                if verdict == Verdict::No {
                    seen[*at] = true;
                }
                return verdict;
            }
            // To come here again from elsewhere leads to the same end, and if that were a good one there would be no elsewhere.
            seen[*at] = true;
            *at = next;
        }
        Verdict::No
    }
}

/// Tells whether bytes may be the first of a fact's text of this length. Reads up to the first zero byte, of which every type word has some.
fn is_text(there: &[u8], length: usize) -> bool {
    let text = there.split(|&byte| byte == 0).next().unwrap_or_default();
    text.len() == there.len()
        && match str::from_utf8(text) {
            Ok(_) => true,
            // A character may be there only in part.
            Err(error) => error.error_len().is_none() && there.len() < length,
        }
}

/// Tells whether a name is one that C knows.
fn is_identifier(name: &[u8]) -> bool {
    name.iter().all(|&byte| byte == b'_' || byte.is_ascii_alphanumeric())
        && !name.first().is_some_and(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TraceWriter;

    /// Reads all; returns how many record headers were looked at behind damage.
    fn looked_at(file: &[u8], header: Header) -> u64 {
        let mut reader = RecoveringReader::assuming(file, header);
        while reader.next_item().unwrap().is_some() {
            let most = RecoveringReader::<&[u8]>::MAX_BUFFER_BYTES;
            assert!(reader.buffer.capacity() <= most, "{} bytes allocated", reader.buffer.capacity());
        }
        reader.looked_at
    }

    /// Words that look like records everywhere but are none in the end; twice as many must not cost more than twice as much.
    #[test]
    fn the_work_is_linear_whatever_the_bytes() {
        type Make = fn(ByteOrder, usize) -> Vec<u8>;
        let kinds: [(&str, Make); 8] = [
            ("zeros", |_, size| vec![0; size]),
            ("headers", |_, size| vec![0xff; size]),
            ("ones", |order, size| words(order, size, &[1])),
            ("nested long records", |order, size| words(order, size, &[1, 5, 5, 0x2_0000_0002_0000])),
            ("chains that end badly", |order, size| chains(order, size, 2_000, 7)),
            ("one long record full of short ones, again and again", |order, size| chains(order, size, 2_000, 1 << 40)),
            ("facts", |order, size| {
                let mut file = Vec::new();
                while file.len() < size {
                    order.put_u64(TYPE_MAPPING, &mut file);
                    order.put_u64(EventId::FACTS.0, &mut file);
                    order.put_u32(1000, &mut file);
                    file.extend([b'x'; 999]);
                    file.push(0xff);
                }
                file
            }),
            ("names", |order, size| {
                let mut file = Vec::new();
                while file.len() < size {
                    order.put_u64(0, &mut file);
                    order.put_u64(3, &mut file);
                    order.put_u32(1000, &mut file);
                    file.extend([b'x'; 999]);
                    file.push(b'.');
                }
                file
            }),
        ];
        for version in Version::ALL {
            for byte_order in [ByteOrder::Little, ByteOrder::Big] {
                for (name, make) in kinds {
                    let header = Header { version, byte_order };
                    let (size, twice) = (make(byte_order, 1 << 18), make(byte_order, 1 << 19));
                    let (once, double) = (looked_at(&size, header), looked_at(&twice, header));
                    assert!(once <= 8 * size.len() as u64, "{name}, {header:?}: {once} looks at {} bytes", size.len());
                    assert!(double <= 2 * once + once / 5 + 70_000, "{name}, {header:?}: {once}, then {double}");
                }
            }
        }
    }

    fn words(order: ByteOrder, size: usize, words: &[u64]) -> Vec<u8> {
        let mut file = Vec::new();
        words.iter().cycle().take(size / 8).for_each(|&word| order.put_u64(word, &mut file));
        file
    }

    /// Long records that hold as many short ones as they can, and behind each something that is no record.
    fn chains(order: ByteOrder, size: usize, count: u32, behind: u64) -> Vec<u8> {
        let mut file = Vec::new();
        while file.len() < size {
            order.put_u64(1, &mut file);
            order.put_u64(5, &mut file);
            order.put_u64(5, &mut file);
            order.put_u32(RECORD_HEADER_BYTES + count * 32, &mut file);
            order.put_u32(5, &mut file);
            for _ in 0..count {
                order.put_u64(1, &mut file);
                order.put_u64(5, &mut file);
                order.put_u64(5, &mut file);
                order.put_u32(RECORD_HEADER_BYTES, &mut file);
                order.put_u32(5, &mut file);
            }
            order.put_u64(behind, &mut file);
        }
        file
    }

    /// Buffers as much as can be wanted: the longest records, one after the other, and rubbish between them.
    #[test]
    fn the_buffer_stays_within_its_bound() {
        let string = vec![b'x'; MAX_RECORD_BYTES as usize - 24 - 4];
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let mut file = TraceWriter::new(Vec::new(), order).unwrap().into_inner();
            for turn in 0..24 {
                let mut piece = TraceWriter::new(Vec::new(), order).unwrap();
                for _ in 0..turn % 6 {
                    piece.event(EventId(1), turn, 1, &[crate::Value::String(&string)]).unwrap();
                }
                file.extend(&piece.into_inner()[24..]);
                file.extend([0x55; 100]);
            }
            assert!(looked_at(&file[24..], Header { version: Version::V4, byte_order: order }) > 0);
        }
    }
}
