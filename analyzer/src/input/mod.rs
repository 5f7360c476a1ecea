//! Inputs: files, pipes and standard input, compressed or not, all read as a stream of bytes.
//!
//! Regular files are read, not mapped: measured on a file in the page cache, reads into one small buffer are faster than the
//! page faults of a mapping, memory stays bounded without giving pages back by hand, and a file that QEMU truncates meanwhile
//! (`trace-file set`) is a short read and not a SIGBUS.

pub(crate) mod files;
pub(crate) mod parts;
mod read_ahead;

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub(crate) use self::read_ahead::BeforeWait;
use self::read_ahead::ReadAhead;
use crate::render::printable;
use anyhow::{Context as _, Result};

pub(crate) use files::{
    Declared, Files, MAX_FAULTS, allow_stdin_once, load_events, looks_like_events, open_two, read_events, read_small,
    say_diagnostics,
};
pub(crate) use parts::{Part, is_not_found, open_all, sort};

/// The largest zstd window that is decompressed, as a power of two: 32 MiB, so that memory stays below the promised 64 MiB.
/// Only `--long` and `--ultra` make larger ones.
const ZSTD_WINDOW_LOG_MAX: u32 = 25;

/// Something to read bytes from, decompressed on the way.
pub(crate) struct Input {
    /// How messages call it.
    pub(crate) name: String,
    /// What the file system says of it; `None` for standard input.
    pub(crate) path: Option<PathBuf>,
    pub(crate) is_compressed: bool,
    /// Which part of a trace it is, if it is one.
    pub(crate) part: Option<Part>,
    /// What is left of a pipe behind `head`; a regular file is opened anew.
    reader: Option<Box<dyn Read + Send>>,
    /// The first bytes, decompressed.
    head: Vec<u8>,
    progress: Progress,
}

/// How far an [`Input`] has been read, in bytes as they are on disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress {
    done: Arc<AtomicU64>,
    is_stopped: Arc<AtomicBool>,
    /// The size of a regular file.
    pub(crate) total: Option<u64>,
}

impl Progress {
    /// Returns the bytes taken from the file so far.
    pub(crate) fn done(&self) -> u64 {
        // Relaxed: a figure for a progress bar, which orders nothing.
        self.done.load(Ordering::Relaxed)
    }

    /// Lets the reading fail from now on, as nobody wants to know what comes.
    #[cfg(feature = "columns")]
    pub(crate) fn stop(&self) {
        // Relaxed: it orders nothing, and is met soon enough.
        self.is_stopped.store(true, Ordering::Relaxed);
    }
}

impl Input {
    /// Opens `path`, or standard input for `-`, and looks at its first bytes for gzip's or zstd's magic.
    ///
    /// A regular file is closed again until it is read, so that there can be more of them than a process may have open.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let is_stdin = path == Path::new("-");
        let name = if is_stdin { "standard input".to_owned() } else { printable(&path.display().to_string()) };
        let progress = Progress::default();
        let mut input = Self {
            name,
            path: (!is_stdin).then(|| path.to_owned()),
            is_compressed: false,
            part: None,
            reader: None,
            head: Vec::new(),
            progress,
        };
        let file = input.open_file()?;
        if let Some(metadata) = file.metadata().ok().filter(|metadata| metadata.is_file() && !is_stdin) {
            input.progress.total = Some(metadata.len());
        }
        let mut reader = input.decompress(file)?;
        // What is wrong with it, if anything, comes out when it is read.
        input.head = read_head(&mut reader).unwrap_or_default();
        if input.progress.total.is_some() {
            input.progress.done.store(0, Ordering::Relaxed);
        } else {
            input.reader = Some(reader);
        }
        Ok(input)
    }

    fn open_file(&self) -> Result<File> {
        let open = || -> Result<File> {
            let Some(path) = &self.path else { return Ok(stdin_file()?) };
            let file = File::open(path)?;
            if file.metadata()?.is_dir() {
                return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory").into());
            }
            Ok(file)
        };
        open().with_context(|| CannotOpen { name: self.name.clone(), path: self.path.clone() })
    }

    fn decompress(&mut self, file: File) -> Result<Box<dyn Read + Send>> {
        let mut file = Counting { file, progress: self.progress.clone() };
        let mut magic = Vec::new();
        file.by_ref()
            .take(MAGIC_BYTES)
            .read_to_end(&mut magic)
            .with_context(|| format!("cannot read {}", self.name))?;
        let (gzip, zstd) = (magic.starts_with(&[0x1f, 0x8b]), magic.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]));
        self.is_compressed = gzip || zstd;
        let whole = io::Cursor::new(magic).chain(file);
        Ok(if gzip {
            Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(1 << 16, whole)))
        } else if zstd {
            let mut decoder = zstd::Decoder::with_buffer(BufReader::with_capacity(1 << 16, whole))?;
            decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
            Box::new(decoder)
        } else {
            Box::new(whole)
        })
    }

    /// Starts to read; for a pipe, with what was already taken from it.
    pub(crate) fn read(mut self) -> Result<Box<dyn Read + Send>> {
        match self.reader.take() {
            Some(rest) => Ok(Box::new(io::Cursor::new(self.head).chain(rest))),
            None => {
                let file = self.open_file()?;
                self.decompress(file)
            }
        }
    }

    /// Returns how far it has been read, to be asked while something else reads it.
    pub(crate) fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Starts to read in another thread, if there is enough of it to be worth one. `before_wait` is called when a pipe has no more
    /// for now.
    pub(crate) fn read_ahead(self, before_wait: Option<BeforeWait>) -> Result<Box<dyn Read>> {
        /// Sooner read than a thread is started.
        const SMALL_BYTES: u64 = 1 << 20;

        let total = self.progress.total;
        let reader = self.read()?;
        if total.is_some_and(|total| total < SMALL_BYTES) {
            return Ok(reader);
        }
        let before_wait = before_wait.filter(|_| total.is_none());
        Ok(Box::new(ReadAhead::start(reader, before_wait).context("cannot start the reading thread")?))
    }

    /// Returns the first bytes, decompressed: [`HEAD_BYTES`] or all there are.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }
}

/// Which file cannot be opened.
#[derive(Debug)]
pub(crate) struct CannotOpen {
    name: String,
    /// `None` for standard input.
    #[cfg_attr(not(feature = "columns"), expect(dead_code))]
    pub(crate) path: Option<PathBuf>,
}

impl fmt::Display for CannotOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot open {}", self.name)
    }
}

/// How many bytes are looked at to tell what a file is, and of which version.
const HEAD_BYTES: u64 = simpletrace_format::HEADER_BYTES as u64;

fn read_head(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    match reader.take(HEAD_BYTES).read_to_end(&mut head) {
        // Compressed data that was cut: whoever reads on is told.
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
        _ => Ok(head),
    }
}

/// How many bytes a compressed file's magic has.
const MAGIC_BYTES: u64 = 4;

struct Counting {
    file: File,
    progress: Progress,
}

impl Read for Counting {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Relaxed: see `Progress::stop`.
        if self.progress.is_stopped.load(Ordering::Relaxed) {
            return Err(io::Error::other("reading was stopped"));
        }
        let count = self.file.read(buffer)?;
        // Relaxed: see `Progress::done`.
        self.progress.done.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Standard input without the 8 KiB buffer that `std::io::Stdin` puts before it.
#[cfg(unix)]
fn stdin_file() -> io::Result<File> {
    use std::os::fd::AsFd as _;
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

/// Standard input without the 8 KiB buffer that `std::io::Stdin` puts before it.
#[cfg(windows)]
fn stdin_file() -> io::Result<File> {
    use std::os::windows::io::AsHandle as _;
    Ok(File::from(io::stdin().as_handle().try_clone_to_owned()?))
}
