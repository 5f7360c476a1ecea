//! What is written to: opened without waiting, and without being led astray.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, Stat, fcntl_lock, fstat, openat, readlinkat, statat,
};
use rustix::io::Errno;

#[cfg(not(loom))]
use crate::segment::Identity;

/// How long a write waits for a target that takes nothing.
const PATIENCE: Duration = Duration::from_millis(20);
/// What a pipe is to hold: as much as any process may ask for.
#[cfg(target_os = "linux")]
const PIPE_BYTES: usize = 1 << 20;
/// As many symbolic links as the kernel follows.
const MAX_LINKS: usize = 40;
/// Only named, not opened.
#[cfg(target_os = "linux")]
const NAMED: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const NAMED: OFlags = OFlags::RDONLY;

/// A name in an open folder: the same place when the program changes its current folder or its root.
pub(super) struct Place {
    folder: OwnedFd,
    name: OsString,
    /// The name is the kernel's own link, as `/dev/fd/1` leads to.
    is_magic: bool,
}

/// What was found at a place.
enum Found {
    File(File, Stat),
    /// A FIFO that nobody reads.
    NoReader,
    Link(PathBuf),
}

impl Place {
    /// What a path says, `from` a folder.
    pub(super) fn new(from: impl std::os::fd::AsFd, path: &Path) -> io::Result<Self> {
        let (parent, name) = match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) if !path.as_os_str().as_bytes().ends_with(b"/") => (parent, name),
            // No file can have such a name, and the kernel says why.
            _ => (Path::new(""), path.as_os_str()),
        };
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        let folder = openat(from, parent, NAMED | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { folder, name: name.to_owned(), is_magic: false })
    }

    /// The same folder.
    pub(super) fn folder(&self) -> &OwnedFd {
        &self.folder
    }

    pub(super) fn name(&self) -> &OsStr {
        &self.name
    }

    /// Opens what is there for writing; with `CREATE` a file is made if nothing is.
    fn find(&self, create: OFlags) -> io::Result<Found> {
        let flags = OFlags::WRONLY | create | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        let (flags, at) = if self.is_magic {
            (flags, AtFlags::empty())
        } else {
            (flags | OFlags::NOFOLLOW, AtFlags::SYMLINK_NOFOLLOW)
        };
        let refused = match openat(&self.folder, &self.name, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => {
                let stat = fstat(&file)?;
                self.check_owner(&stat)?;
                return Ok(Found::File(file.into(), stat));
            }
            Err(Errno::LOOP) => return self.link().map(Found::Link),
            Err(refused) => refused,
        };
        if matches!(refused, Errno::NXIO | Errno::ACCESS)
            && let Ok(stat) = statat(&self.folder, &self.name, at)
        {
            // The kernel may refuse what we would, but does not say why.
            self.check_owner(&stat)?;
            if refused == Errno::NXIO && is_fifo(&stat) {
                return Ok(Found::NoReader);
            }
        }
        Err(refused.into())
    }

    /// Where the symbolic link that is there leads to.
    fn link(&self) -> io::Result<PathBuf> {
        // One and the same link is looked at and read: it could be exchanged in between.
        #[cfg(target_os = "linux")]
        let target = {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let link = openat(&self.folder, &self.name, flags, Mode::empty())?;
            self.check_owner(&fstat(&link)?)?;
            readlinkat(link, "", Vec::new())?
        };
        #[cfg(not(target_os = "linux"))]
        let target = {
            self.check_owner(&statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW)?)?;
            readlinkat(&self.folder, &self.name, Vec::new())?
        };
        Ok(OsStr::from_bytes(target.to_bytes()).into())
    }

    /// Refuses what somebody else may have put there for us to write into: what Linux refuses, too, if its `fs.protected_symlinks`,
    /// `fs.protected_regular` and `fs.protected_fifos` are set.
    fn check_owner(&self, stat: &Stat) -> io::Result<()> {
        let folder = fstat(&self.folder)?;
        let is_shared = Mode::from_raw_mode(folder.st_mode).contains(Mode::SVTX | Mode::WOTH);
        let owner = stat.st_uid;
        if !is_shared || owner == folder.st_uid || owner == rustix::process::geteuid().as_raw() {
            return Ok(());
        }
        let what = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => "symbolic link",
            FileType::Fifo => "FIFO",
            _ => "file",
        };
        let message = format!(
            "the {what} {} of the user {owner} is in the way, in a folder that is open to everybody; \
             remove it, or choose another name or folder",
            self.name.display()
        );
        Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
    }

    /// Whether the kernel's own links are there, which only it can follow.
    fn is_in_proc(&self) -> bool {
        #[cfg(target_os = "linux")]
        return rustix::fs::fstatfs(&self.folder).is_ok_and(|system| system.f_type == rustix::fs::PROC_SUPER_MAGIC);
        #[cfg(not(target_os = "linux"))]
        false
    }
}

fn is_fifo(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Fifo
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Can be cut, and never makes anybody wait.
    Regular,
    /// Its other end may be away.
    Pipe,
    Other,
}

/// What is written to.
pub(super) struct Target {
    kind: Kind,
    handle: Handle,
    place: Option<Place>,
}

enum Handle {
    File(File),
    /// A pipe that nobody reads is closed: what is left in it is thrown away then, and the next reader does not get it.
    Closed,
    #[cfg(any(test, loom))]
    Memory(Memory),
}

impl Target {
    /// Opens a target, or makes a file of mode 0600. Nothing is written yet, nor is a file emptied.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Self::open_at(Place::new(CWD, path)?)
    }

    pub(super) fn open_at(mut place: Place) -> io::Result<Self> {
        for _ in 0..MAX_LINKS {
            match place.find(OFlags::CREATE)? {
                Found::File(file, stat) => {
                    let target = Self { place: Some(place), ..Self::of(file, &stat) };
                    target.keep_others_away()?;
                    return Ok(target);
                }
                Found::NoReader => return Ok(Self { kind: Kind::Pipe, handle: Handle::Closed, place: Some(place) }),
                Found::Link(_) if place.is_in_proc() => place.is_magic = true,
                Found::Link(path) => place = Place::new(&place.folder, &path)?,
            }
        }
        Err(Errno::LOOP.into())
    }

    /// Refuses a file that another process records into, as both would lose what the other overwrites.
    fn keep_others_away(&self) -> io::Result<()> {
        match &self.handle {
            // Released by the kernel when the process ends; children do not get it.
            Handle::File(file) if self.is_regular() => match fcntl_lock(file, FlockOperation::NonBlockingLockExclusive)
            {
                Err(Errno::AGAIN | Errno::ACCESS) => {
                    Err(io::Error::new(io::ErrorKind::ResourceBusy, "another process records into it"))
                }
                // Where there are no locks, nothing can be known.
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn of(file: File, stat: &Stat) -> Self {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Kind::Regular,
            FileType::Fifo => {
                // More if we may.
                #[cfg(target_os = "linux")]
                let _ = rustix::pipe::fcntl_setpipe_size(&file, PIPE_BYTES);
                Kind::Pipe
            }
            _ => Kind::Other,
        };
        Self { kind, handle: Handle::File(file), place: None }
    }

    pub(super) fn is_regular(&self) -> bool {
        self.kind == Kind::Regular
    }

    pub(super) fn is_pipe(&self) -> bool {
        self.kind == Kind::Pipe
    }

    /// Writes as much as the target takes at once. A pipe that nobody reads is `ENXIO`.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let (Handle::Closed, Some(place)) = (&self.handle, &self.place) {
            let (file, stat) = match place.find(OFlags::empty()) {
                Ok(Found::File(file, stat)) if is_fifo(&stat) => (file, stat),
                Ok(Found::File(..) | Found::Link(_)) => {
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no FIFO any more"));
                }
                Ok(Found::NoReader) => return Err(Errno::NXIO.into()),
                // It may be made once more.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Errno::NXIO.into()),
                Err(error) => return Err(error),
            };
            self.handle = Self::of(file, &stat).handle;
        }
        match &mut self.handle {
            Handle::File(file) => file.write(bytes),
            Handle::Closed => Err(Errno::NXIO.into()),
            #[cfg(any(test, loom))]
            Handle::Memory(memory) => memory.write(bytes),
        }
    }

    /// Waits until the target takes something, or somebody opens it; not beyond the `deadline`, which is set at the first wait. Returns
    /// whether it is worth a try.
    pub(super) fn wait(&self, deadline: &mut Option<Instant>) -> bool {
        let now = Instant::now();
        let left = deadline.get_or_insert(now + PATIENCE).saturating_duration_since(now);
        match &self.handle {
            Handle::File(file) => {
                let timeout = Timespec { tv_sec: 0, tv_nsec: left.as_nanos() as _ };
                let mut files = [PollFd::new(file, PollFlags::OUT)];
                !left.is_zero() && poll(&mut files, Some(&timeout)).is_ok_and(|ready| ready > 0)
            }
            Handle::Closed => {
                std::thread::sleep(left);
                false
            }
            #[cfg(any(test, loom))]
            Handle::Memory(_) => false,
        }
    }

    /// Whether a pipe has no reader any more.
    pub(super) fn has_lost_reader(&self) -> bool {
        match &self.handle {
            Handle::File(file) if self.is_pipe() => {
                let mut files = [PollFd::new(file, PollFlags::empty())];
                poll(&mut files, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))
                    .is_ok_and(|_| files[0].revents().contains(PollFlags::ERR))
            }
            _ => false,
        }
    }

    /// Closes a pipe, so that what is in it goes away, until it has a reader again.
    pub(super) fn close(&mut self) {
        if let Handle::File(_) = self.handle {
            self.handle = Handle::Closed;
        }
    }

    /// Makes a file so long, and goes on there.
    pub(super) fn cut(&mut self, length: u64) -> io::Result<()> {
        match &mut self.handle {
            Handle::File(file) => {
                file.set_len(length)?;
                file.seek(SeekFrom::Start(length)).map(|_| ())
            }
            Handle::Closed => Ok(()),
            #[cfg(any(test, loom))]
            Handle::Memory(memory) => {
                memory.bytes.lock().expect("no panic").truncate(length as usize);
                Ok(())
            }
        }
    }

    /// The descriptor that is written to, if there is one.
    #[cfg(not(loom))]
    pub(super) fn descriptor(&self) -> Option<i32> {
        match &self.handle {
            Handle::File(file) => Some(std::os::fd::AsRawFd::as_raw_fd(file)),
            _ => None,
        }
    }

    /// Which file it is, if it is a regular one.
    #[cfg(not(loom))]
    pub(super) fn identity(&self) -> Option<Identity> {
        match &self.handle {
            Handle::File(file) if self.is_regular() => {
                fstat(file.as_fd()).ok().map(|stat| Identity { device: stat.st_dev, inode: stat.st_ino })
            }
            _ => None,
        }
    }

    /// Whether a file has no name any more.
    pub(super) fn is_removed(&self) -> bool {
        match &self.handle {
            Handle::File(file) if self.is_regular() => fstat(file.as_fd()).is_ok_and(|stat| stat.st_nlink == 0),
            _ => false,
        }
    }

    #[cfg(any(test, loom))]
    pub(super) fn in_memory(memory: Memory, is_pipe: bool) -> Self {
        Self { kind: if is_pipe { Kind::Pipe } else { Kind::Regular }, handle: Handle::Memory(memory), place: None }
    }
}

/// A target for tests.
#[cfg(any(test, loom))]
#[derive(Clone, Default)]
pub(crate) struct Memory {
    pub(crate) bytes: std::sync::Arc<std::sync::Mutex<Vec<u8>>>,
    /// What the next writes come to; then all is taken.
    pub(crate) steps: std::sync::Arc<std::sync::Mutex<std::collections::VecDeque<Step>>>,
    pub(crate) limit: Option<usize>,
}

#[cfg(any(test, loom))]
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    /// At most so many bytes are taken.
    Take(usize),
    Fail(Errno),
}

#[cfg(any(test, loom))]
impl Memory {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut memory = self.bytes.lock().expect("no panic");
        let room = match self.steps.lock().expect("no panic").pop_front() {
            Some(Step::Fail(error)) => return Err(error.into()),
            Some(Step::Take(bytes)) => bytes,
            None => match self.limit.map(|limit| limit - memory.len()) {
                Some(0) => return Err(Errno::NOSPC.into()),
                room => room.unwrap_or(usize::MAX),
            },
        };
        let bytes = &bytes[..bytes.len().min(room)];
        memory.extend_from_slice(bytes);
        Ok(bytes.len())
    }
}
