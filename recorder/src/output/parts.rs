//! A trace in parts: `trace.000001`, `trace.000002` and so on.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat, unlinkat};
use rustix::io::Errno;

use super::target::{Place, Target};

/// How a trace is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rotation {
    /// A part ends before it has more.
    pub(crate) bytes: u64,
    /// So many parts are kept, the newest.
    pub(crate) keep: Option<u32>,
}

/// The parts of a trace.
pub(super) struct Parts {
    pub(super) rotation: Rotation,
    /// The name without a number.
    place: Place,
    path: PathBuf,
    /// The part that is written, and the oldest one that is left.
    pub(super) number: u64,
    oldest: u64,
    /// When to try again to make the next one, after that failed.
    pub(super) retry_ns: u64,
    /// Threads that remove parts: that takes 60 ms per GiB, in which the writer has better things to do.
    removals: Vec<JoinHandle<()>>,
}

impl Parts {
    /// Opens the first part.
    pub(super) fn open(path: &Path, rotation: Rotation) -> io::Result<(Self, Target)> {
        let place = Place::new(CWD, path)?;
        if let Ok(stat) = statat(place.folder(), place.name(), AtFlags::empty())
            && FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile
        {
            return Err(not_a_file());
        }
        let parts =
            Self { rotation, place, path: path.to_owned(), number: 1, oldest: 1, retry_ns: 0, removals: Vec::new() };
        let target = parts.open_part(1)?;
        Ok((parts, target))
    }

    /// The part that is written.
    pub(super) fn path(&self) -> PathBuf {
        numbered(self.path.as_os_str(), self.number).into()
    }

    fn open_part(&self, number: u64) -> io::Result<Target> {
        let name = numbered(self.place.name(), number);
        let target = Target::open_at(Place::new(self.place.folder(), Path::new(&name))?)?;
        if target.is_regular() { Ok(target) } else { Err(not_a_file()) }
    }

    /// Removes the parts of an earlier trace of this name, except the first one, which is open already.
    pub(super) fn remove_earlier(&self) -> io::Result<()> {
        let folder =
            openat(self.place.folder(), ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let first = numbered(self.place.name(), 1);
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if !is_part(name.to_bytes(), self.place.name()) || name.to_bytes() == first.as_bytes() {
                continue;
            }
            let is_file = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
            if is_file
                && let Err(error) = unlinkat(&folder, name, AtFlags::empty())
                && error != Errno::NOENT
            {
                let message =
                    format!("{}, a part of an earlier trace, cannot be removed: {error}", name.to_string_lossy());
                return Err(io::Error::new(error.kind(), message));
            }
        }
        Ok(())
    }

    /// Opens the next part, and empties it.
    pub(super) fn next(&mut self) -> io::Result<Target> {
        let mut target = self.open_part(self.number + 1)?;
        target.cut(0)?;
        self.number += 1;
        Ok(target)
    }

    /// Removes the parts that are too many, or begins to.
    pub(super) fn remove_oldest(&mut self) {
        let Some(keep) = self.rotation.keep else { return };
        self.removals.retain(|removal| !removal.is_finished());
        while self.number - self.oldest >= u64::from(keep) {
            let name = numbered(self.place.name(), self.oldest);
            self.oldest += 1;
            if let Ok(removal) = self.remove(name.clone()) {
                self.removals.push(removal);
            } else {
                remove(self.place.folder(), &name);
            }
        }
    }

    fn remove(&self, name: OsString) -> io::Result<JoinHandle<()>> {
        let folder = self.place.folder().try_clone()?;
        // No signal disturbs it, as none does the writer, whose child it is.
        let builder = thread::Builder::new().name("simpletrace-rm".to_owned()).stack_size(64 << 10);
        builder.spawn(move || remove(&folder, &name))
    }

    /// Waits until all parts are gone that are too many.
    pub(super) fn finish(&mut self) {
        for removal in self.removals.drain(..) {
            // It does not panic.
            let _ = removal.join();
        }
    }
}

fn remove(folder: &OwnedFd, name: &OsStr) {
    // Somebody else may have moved it away, or forbidden it; then it stays.
    let _ = unlinkat(folder, name, AtFlags::empty());
}

fn numbered(name: &OsStr, number: u64) -> OsString {
    let mut name = name.to_owned();
    name.push(format!(".{number:06}"));
    name
}

fn is_part(name: &[u8], of: &OsStr) -> bool {
    name.strip_prefix(of.as_bytes())
        .and_then(|rest| rest.strip_prefix(b"."))
        .is_some_and(|number| number.len() >= 6 && number.iter().all(u8::is_ascii_digit))
}

fn not_a_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "only a regular file can be written in parts")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_six_digits_and_more_when_needed() {
        assert_eq!(numbered(OsStr::new("t-1"), 1), "t-1.000001");
        assert_eq!(numbered(OsStr::new("t"), 1_234_567), "t.1234567");
        for (name, expected) in [
            ("t.000001", true),
            ("t.999999", true),
            ("t.1234567", true),
            ("t.00001", false),
            ("t.00000a", false),
            ("t000001", false),
            ("t.000001.gz", false),
            ("u.000001", false),
            ("t", false),
            ("t.", false),
        ] {
            assert_eq!(is_part(name.as_bytes(), OsStr::new("t")), expected, "{name}");
        }
    }
}
