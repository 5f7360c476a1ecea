//! Finishing the trace of a recorder that was killed, from the segment that it left: see docs/RECOVERY.md.

mod segments;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use simpletrace_format::durable::{Checkpoint, Replayed, Ring, Segment, SegmentError, replay};
use simpletrace_format::{
    ByteOrder, Facts, HEADER_BYTES, MAX_NAME_BYTES, MAX_RECORD_BYTES, RECORD_HEADER_BYTES, Record, SliceReader,
    TraceWriter,
};

pub(crate) use segments::Owner;
use segments::SegmentFile;

use crate::input::files::facts_behind_header;
use crate::input::parts::{self, Part};

/// What recorders write.
const ORDER: ByteOrder = ByteOrder::Little;

/// Records gather in a block of this size, in bytes.
const BLOCK_BYTES: usize = 1 << 20;

/// How old the last anchor of a recorder that lives may be, in ns.
const ANCHOR_NS: u64 = 50_000_000;

/// What was added to a trace.
pub(crate) struct Recovered {
    pub(crate) pid: u32,
    pub(crate) rings_elsewhere: u64,
    /// The length of the trace before and now, in bytes.
    pub(crate) from_bytes: u64,
    pub(crate) to_bytes: u64,
    pub(crate) replayed: Replayed,
}

/// A segment in a list.
pub(crate) struct Listed {
    pub(crate) path: PathBuf,
    /// What is in it, or why that is not known.
    pub(crate) entry: Result<Entry>,
}

/// What is in a segment.
pub(crate) struct Entry {
    pub(crate) trace: PathBuf,
    /// Whether the trace is still the file of that name.
    pub(crate) is_there: bool,
    pub(crate) pid: u32,
    /// `None` if it is locked, by whomever.
    pub(crate) owner: Option<Owner>,
    pub(crate) rings_elsewhere: u64,
    /// What is waiting in the rings, in bytes.
    pub(crate) waiting_bytes: u64,
    /// What a recovery would do, if there can be one.
    pub(crate) replayed: Option<Replayed>,
}

/// Appends to a trace what waits in its segment, and removes the segment. May be killed at any moment, and run again.
///
/// Of a trace in parts, the one that was being written is finished.
pub(crate) fn recover(path: &Path, folder: &Path) -> Result<Recovered> {
    let parts = if path.exists() { Vec::new() } else { parts::files_of(path) };
    for (at, (_, part)) in parts.iter().enumerate().rev() {
        let metadata = fs::metadata(part).with_context(|| format!("cannot open {}", part.display()))?;
        if segments::find(folder, metadata.dev(), metadata.ino())?.is_none() {
            continue;
        }
        let recovered = recover_file(part, folder)?;
        for (_, begun) in &parts[at + 1..] {
            // The recorder was killed between making the next part and going on there.
            if fs::metadata(begun).is_ok_and(|metadata| metadata.len() == 0) {
                let _ = fs::remove_file(begun);
            }
        }
        return Ok(recovered);
    }
    if parts.is_empty() { recover_file(path, folder) } else { Err(nothing(path, folder)) }
}

fn recover_file(path: &Path, folder: &Path) -> Result<Recovered> {
    let name = path.display();
    let trace = OpenOptions::new().read(true).write(true).open(path).with_context(|| format!("cannot open {name}"))?;
    let metadata = trace.metadata().with_context(|| format!("cannot open {name}"))?;
    if !metadata.is_file() {
        bail!("{name} is not a regular file, and such are not recorded durably");
    }
    let (device, inode) = (metadata.dev(), metadata.ino());
    let mut file = segments::find(folder, device, inode)?.ok_or_else(|| nothing(path, folder))?;
    let locked = file.lock()?;
    // Now for good: until it was locked its recorder may have gone on.
    file.read()?;
    let shown = file.path.display();
    let segment = file.segment.clone().with_context(|| format!("cannot use {shown}"))?;
    refuse_owned(&segment, locked, &file.path)?;
    if segments::owner(&segment)? == Owner::OtherBoot {
        bail!(
            "{shown} is from before the machine was started anew, and may not be whole; \
             `simpletrace-rs recover --remove {shown}` removes it"
        );
    }
    let checkpoint = &segment.checkpoint;
    if file.is_removed()? || (checkpoint.device, checkpoint.inode) != (device, inode) {
        return Err(nothing(path, folder));
    }
    if segment.recording != 0 && metadata.len() > 0 && !is_of(path, segment.recording) {
        bail!(
            "{shown} is of an earlier recording into {name}, which has been written anew since: there is nothing to recover; \
             `simpletrace-rs recover --remove {shown}` removes what is left"
        );
    }
    check_trace(&trace, metadata.len(), &segment)
        .with_context(|| format!("{name} is not as its recorder left it, so {shown} is of no use for it"))?;
    let rings = file.rings(&segment)?;
    let part = Part::by_name(path).map(|part| part.number);
    let replayed = write(&trace, part, &segment, rings).with_context(|| {
        // As it was before, for those who read it meanwhile.
        let _ = trace.set_len(checkpoint.length);
        format!("cannot write to {name}; {shown} is kept, so run this again when that is mended")
    })?;
    let to_bytes = trace.metadata().with_context(|| format!("cannot read {name}"))?.len();
    // Only now is it dispensable.
    file.remove()?;
    Ok(Recovered {
        pid: segment.pid,
        rings_elsewhere: segment.rings_elsewhere,
        from_bytes: checkpoint.length,
        to_bytes,
        replayed,
    })
}

/// Writes the rest of a trace, of which it may be a part.
fn write(trace: &File, part: Option<u64>, segment: &Segment, rings: Vec<Ring>) -> io::Result<Replayed> {
    let length = segment.checkpoint.length;
    trace.set_len(length)?;
    let mut sink = BufWriter::with_capacity(BLOCK_BYTES, trace);
    sink.seek(SeekFrom::Start(length))?;
    let mut writer = if length == 0 { TraceWriter::new(sink, ORDER)? } else { TraceWriter::append(sink, ORDER) };
    if let (0, Some(part)) = (length, part) {
        // Without this it would not count as one.
        let mut facts = Facts::default();
        facts.set(Facts::PART, &part.to_string());
        writer.facts(&facts)?;
    }
    let replayed = replay(segment, rings, &mut writer)?;
    writer.flush()?;
    trace.sync_all()?;
    Ok(replayed)
}

/// Whether a file says that it is of this recording.
fn is_of(path: &Path, recording: u64) -> bool {
    let facts = facts_behind_header(path);
    facts.is_some_and(|facts| facts.get(Facts::RECORDING) == Some(&format!("{recording:x}")))
}

/// Makes sure that a file is what its recorder left, and not one that got the same number when that was gone.
fn check_trace(trace: &File, bytes: u64, segment: &Segment) -> Result<()> {
    let length = segment.checkpoint.length;
    if bytes < length {
        bail!(
            "it has {bytes} bytes, and had {length}: somebody cut it; `simpletrace-rs repair` keeps what is whole of it"
        );
    }
    let (from, to) = if length == 0 {
        // What is there was written, and not accounted for yet.
        (0, bytes.min(2 * u64::from(MAX_RECORD_BYTES)))
    } else {
        (length.saturating_sub(u64::from(MAX_RECORD_BYTES) + 8), length)
    };
    let mut read = vec![0; (to - from) as usize];
    trace.read_exact_at(&mut read, from).context("cannot read it")?;
    let mut header = TraceWriter::new(Vec::new(), ORDER).context("no room for a header")?.into_inner();
    header.truncate(to as usize);
    let mut front = vec![0; header.len()];
    trace.read_exact_at(&mut front, 0).context("cannot read it")?;
    if front != header {
        bail!("it does not begin as a trace of version 4");
    }
    // Whatever was recorded later has another segment, or none.
    let until_ns = segment.last_ns().saturating_add(ANCHOR_NS);
    let is_its = if length == 0 {
        let records = read.get(HEADER_BYTES..).unwrap_or_default();
        let first = SliceReader::headerless(records, ORDER).find_map(|record| match record {
            Ok(Record::Mapping(_)) => None,
            Ok(Record::Event(record)) => Some(record.timestamp_ns),
            Ok(Record::Dropped(record)) => Some(record.timestamp_ns),
            // A torn one.
            Err(_) => Some(0),
        });
        first.is_none_or(|at_ns| at_ns <= until_ns)
    } else {
        length == HEADER_BYTES as u64 || ends_with_record(&read, until_ns)
    };
    if !is_its {
        bail!("at {length} bytes, where the segment goes on, it has no record that ends there and is as old");
    }
    Ok(())
}

/// Whether bytes end with a whole record, not later than `until_ns`.
fn ends_with_record(bytes: &[u8], until_ns: u64) -> bool {
    let u32_at = |at: usize| bytes.get(at..).and_then(<[u8]>::first_chunk).map(|bytes| u32::from_le_bytes(*bytes));
    let u64_at = |at: usize| bytes.get(at..).and_then(<[u8]>::first_chunk).map(|bytes| u64::from_le_bytes(*bytes));
    (0..bytes.len()).rev().any(|at| match u64_at(at) {
        Some(0) => {
            let name_bytes = u32_at(at + 16).unwrap_or(0);
            (1..=MAX_NAME_BYTES).contains(&name_bytes) && at + 20 + name_bytes as usize == bytes.len()
        }
        Some(1) => {
            let length = u32_at(at + 24).unwrap_or(0);
            (RECORD_HEADER_BYTES..=MAX_RECORD_BYTES).contains(&length)
                && at + 8 + length as usize == bytes.len()
                && u64_at(at + 16).is_some_and(|at_ns| at_ns <= until_ns)
        }
        _ => false,
    })
}

/// Lists the segments of a folder.
pub(crate) fn list(folder: &Path) -> Result<Vec<Listed>> {
    let paths = segments::in_folder(folder)?;
    Ok(paths.into_iter().map(|path| Listed { entry: look(&path), path }).collect())
}

fn look(path: &Path) -> Result<Entry> {
    let mut file = SegmentFile::open(path)?;
    let mut owner = Some(segments::owner(file.segment.as_ref().map_err(|error| anyhow!("{error}"))?)?);
    // Only if nobody is known to live: a recorder that begins must not find it locked.
    if owner == Some(Owner::Dead) && !file.lock()? {
        owner = None;
    }
    file.read()?;
    let segment = file.segment.as_ref().map_err(|error| anyhow!("{error}"))?;
    let rings = file.rings(segment)?;
    let waiting_bytes = rings.iter().map(Ring::waiting_bytes).sum();
    let replayed = if owner == Some(Owner::Dead) { Some(replay_to_nowhere(segment, rings)?) } else { None };
    let Checkpoint { device, inode, path, .. } = &segment.checkpoint;
    let trace = PathBuf::from(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(path));
    let is_there = fs::metadata(&trace).is_ok_and(|metadata| (metadata.dev(), metadata.ino()) == (*device, *inode));
    Ok(Entry {
        trace,
        is_there,
        pid: segment.pid,
        owner,
        rings_elsewhere: segment.rings_elsewhere,
        waiting_bytes,
        replayed,
    })
}

fn replay_to_nowhere(segment: &Segment, rings: Vec<Ring>) -> Result<Replayed> {
    Ok(replay(segment, rings, &mut TraceWriter::append(io::sink(), ORDER))?)
}

/// Removes a segment, named itself or by its trace, whose recorder is dead. Returns where it was and what is lost with it; `None`
/// if nobody can tell.
pub(crate) fn remove(path: &Path, folder: &Path) -> Result<(PathBuf, Option<Replayed>)> {
    let mut file = if segments::is_segment_name(path) {
        SegmentFile::open(path)?
    } else {
        let metadata = fs::metadata(path).with_context(|| {
            format!("cannot look at {}; `simpletrace-rs recover --list` shows the segments", path.display())
        })?;
        segments::find(folder, metadata.dev(), metadata.ino())?.ok_or_else(|| nothing(path, folder))?
    };
    let locked = file.lock()?;
    file.read()?;
    let lost = match &file.segment {
        Ok(segment) => {
            refuse_owned(segment, locked, &file.path)?;
            Some(replay_to_nowhere(segment, file.rings(segment)?)?)
        }
        Err(error) => {
            let shown = file.path.display();
            if !locked {
                bail!("{shown} is in use");
            }
            // A recorder that was killed while it made it has left zeros. Anything else is somebody's file.
            if !matches!(error, SegmentError::NoCheckpoint) && !file.is_blank()? {
                bail!("{shown}: {error}; it is left alone");
            }
            None
        }
    };
    file.remove()?;
    Ok((file.path, lost))
}

/// Refuses a segment that is in use.
fn refuse_owned(segment: &Segment, locked: bool, path: &Path) -> Result<()> {
    let (pid, shown) = (segment.pid, path.display());
    if !locked {
        bail!("{shown} is in use: process {pid} still records into it, or another `recover` is at work");
    }
    if segments::owner(segment)? == Owner::Alive {
        bail!("{shown} is in use: process {pid} still records into it; end it first");
    }
    Ok(())
}

fn nothing(path: &Path, folder: &Path) -> anyhow::Error {
    anyhow!(
        "there is nothing to recover for {}: no segment of it is in {}. It was recorded without `durable`, or finished cleanly, or \
         has been recovered; `simpletrace-rs info` reads it as it is",
        path.display(),
        folder.display()
    )
}
