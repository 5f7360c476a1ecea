//! The files that hold segments: finding and opening them, and whether their recorder is alive.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use rustix::fs::{FlockOperation, OFlags};
use simpletrace_format::durable::{MAGIC, RING_HEADER_BYTES, RINGS_AT, Ring, Segment, SegmentError};

/// What the names of segments begin with.
const PREFIX: &str = "simpletrace-";

/// A segment's file.
pub(crate) struct SegmentFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    /// What it says, or why that cannot be known.
    pub(crate) segment: Result<Segment, SegmentError>,
    file: File,
}

/// What became of a segment's recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    Alive,
    Dead,
    /// The machine was started anew since.
    OtherBoot,
}

impl SegmentFile {
    /// Opens a segment of this user's.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let name = path.display();
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(flags.bits().cast_signed())
            .open(path)
            .with_context(|| format!("cannot open the segment {name}"))?;
        let metadata = file.metadata().with_context(|| format!("cannot open the segment {name}"))?;
        let user = rustix::process::geteuid().as_raw();
        if !metadata.is_file() {
            bail!("{name} is no segment, but a special file");
        }
        if metadata.uid() != user {
            let owner = metadata.uid();
            bail!("the segment {name} belongs to user {owner}, not to {user}: run this as the user who recorded");
        }
        let bytes = metadata.len();
        let mut opened = Self { path: path.to_owned(), bytes, segment: Err(SegmentError::NoSegment), file };
        opened.read()?;
        Ok(opened)
    }

    /// Reads what the segment says, as its recorder may have gone on until now.
    pub(crate) fn read(&mut self) -> Result<()> {
        let control = self.read_at(0, self.bytes.min(RINGS_AT as u64))?;
        self.segment = Segment::parse(&control);
        Ok(())
    }

    /// Makes the segment this process's, as long as it is open; `false` if it is another's. Only a recorder that lives, or who
    /// recovers, holds the lock.
    pub(crate) fn lock(&self) -> Result<bool> {
        match rustix::fs::fcntl_lock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::ACCESS) => Ok(false),
            Err(error) => Err(error).with_context(|| format!("cannot lock {}", self.path.display())),
        }
    }

    /// Whether it has been removed meanwhile.
    pub(crate) fn is_removed(&self) -> Result<bool> {
        Ok(self.file.metadata().with_context(|| format!("cannot read {}", self.path.display()))?.nlink() == 0)
    }

    /// Whether nothing was ever written to where a segment says that it is one.
    pub(crate) fn is_blank(&self) -> Result<bool> {
        Ok(self.read_at(0, self.bytes.min(MAGIC.len() as u64))?.iter().all(|&byte| byte == 0))
    }

    /// Removes the file.
    pub(crate) fn remove(&self) -> Result<()> {
        fs::remove_file(&self.path).with_context(|| format!("cannot remove {}", self.path.display()))
    }

    /// Reads what waits in the rings.
    pub(crate) fn rings(&self, segment: &Segment) -> Result<Vec<Ring>> {
        let mut rings = Vec::new();
        // Rings that are said to be at one place cannot all have room.
        let mut room_bytes = self.bytes;
        for (index, &offset) in segment.rings.iter().enumerate().filter(|&(_, &offset)| offset != 0) {
            let point = segment.checkpoint.rings.get(index).copied().unwrap_or_default();
            if !Ring::may_be_at(offset, self.bytes) {
                rings.push(Ring::unreadable(index, point));
                continue;
            }
            let header = self.read_at(offset, RING_HEADER_BYTES as u64)?;
            let mut ring = Ring::parse(index, &header, point, room_bytes.min(self.bytes - offset));
            room_bytes -= ring.size_bytes();
            let [first, second] = ring.wanted();
            let read = |piece: std::ops::Range<u64>| {
                self.read_at(offset + RING_HEADER_BYTES as u64 + piece.start, piece.end - piece.start)
            };
            ring.fill([read(first)?, read(second)?]);
            rings.push(ring);
        }
        Ok(rings)
    }

    fn read_at(&self, offset: u64, length: u64) -> Result<Vec<u8>> {
        let read = || {
            let mut bytes = Vec::new();
            let length = usize::try_from(length).map_err(io::Error::other)?;
            bytes.try_reserve_exact(length).map_err(io::Error::other)?;
            bytes.resize(length, 0);
            self.file.read_exact_at(&mut bytes, offset)?;
            Ok::<_, io::Error>(bytes)
        };
        read().with_context(|| format!("cannot read {length} bytes at offset {offset} of {}", self.path.display()))
    }
}

/// The segments of a folder, by name.
pub(crate) fn in_folder(folder: &Path) -> Result<Vec<PathBuf>> {
    let list = || {
        let mut paths = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
                paths.push(entry.path());
            }
        }
        paths.sort();
        Ok::<_, io::Error>(paths)
    };
    list().with_context(|| format!("cannot look for segments in {}", folder.display()))
}

/// Finds the segment of a trace by the file that it is, as the trace may have another name by now. Of several the last one counts:
/// the others are of files that are gone, and whose number was given to this one.
pub(crate) fn find(folder: &Path, device: u64, inode: u64) -> Result<Option<SegmentFile>> {
    let mut found = Vec::new();
    let mut refused = None;
    for path in in_folder(folder)? {
        match SegmentFile::open(&path) {
            Ok(file) => {
                let is_its = file
                    .segment
                    .as_ref()
                    .is_ok_and(|segment| (segment.checkpoint.device, segment.checkpoint.inode) == (device, inode));
                if is_its {
                    found.push(file);
                }
            }
            // Others' segments are nobody's business here, unless one has the very name.
            Err(error) if is_named(&path, device, inode) => refused = Some(error),
            Err(_) => {}
        }
    }
    let boot_id = boot_id()?;
    let age = |file: &SegmentFile| {
        file.segment.as_ref().map_or((false, 0), |segment| (segment.boot_id == boot_id, segment.last_ns()))
    };
    match (found.into_iter().max_by_key(age), refused) {
        (None, Some(error)) => Err(error),
        (found, _) => Ok(found),
    }
}

/// Whether a segment has the name that goes with a file, or one beside it.
fn is_named(path: &Path, device: u64, inode: u64) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.strip_prefix(&format!("{PREFIX}{device:x}-{inode}"))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Whether this is the name of a segment.
pub(crate) fn is_segment_name(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(PREFIX.as_bytes()))
}

/// What became of a segment's recorder, as far as its process tells.
pub(crate) fn owner(segment: &Segment) -> Result<Owner> {
    if segment.boot_id != boot_id()? {
        return Ok(Owner::OtherBoot);
    }
    let stat = match fs::read_to_string(format!("/proc/{}/stat", segment.pid)) {
        Ok(stat) => stat,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Owner::Dead),
        // It ended while it was looked at.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => return Ok(Owner::Dead),
        Err(error) => return Err(error).with_context(|| format!("cannot tell whether process {} lives", segment.pid)),
    };
    // The second field is the program's name in parentheses, with whatever is in it.
    let mut fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace();
    let state = fields.next();
    let start_time = fields.nth(18).and_then(|field| field.parse().ok());
    // Killed, and its parent has not asked yet.
    let is_zombie = matches!(state, Some("Z" | "X"));
    Ok(if start_time == Some(segment.start_time) && !is_zombie { Owner::Alive } else { Owner::Dead })
}

fn boot_id() -> Result<[u8; 36]> {
    const FILE: &str = "/proc/sys/kernel/random/boot_id";
    let text = fs::read(FILE).with_context(|| format!("cannot read {FILE}"))?;
    text.first_chunk().copied().with_context(|| format!("{FILE} has no boot id"))
}
