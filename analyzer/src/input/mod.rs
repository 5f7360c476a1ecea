//! Inputs: files, pipes and standard input, compressed or not, all read as a stream of bytes.
//!
//! Regular files are read, not mapped: measured on a file in the page cache, reads into one small buffer are faster than the
//! page faults of a mapping, memory stays bounded without giving pages back by hand, and a file that QEMU truncates meanwhile
//! (`trace-file set`) is a short read and not a SIGBUS.

mod files;
mod read_ahead;

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use self::read_ahead::BeforeWait;
use self::read_ahead::ReadAhead;
use anyhow::{Context as _, Result, bail};

pub(crate) use files::{Files, allow_stdin_once, load_events, looks_like_events, read_events, say_diagnostics};

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
    reader: Box<dyn Read + Send>,
    /// The first bytes, read before they were asked for.
    head: Vec<u8>,
    progress: Progress,
}

/// How far an [`Input`] has been read, in bytes as they are on disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress {
    done: Arc<AtomicU64>,
    /// The size of a regular file.
    pub(crate) total: Option<u64>,
}

impl Progress {
    /// Returns the bytes taken from the file so far.
    pub(crate) fn done(&self) -> u64 {
        // Relaxed: a figure for a progress bar, which orders nothing.
        self.done.load(Ordering::Relaxed)
    }
}

impl Input {
    /// Opens `path`, or standard input for `-`, and looks at its first bytes for gzip's or zstd's magic.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let stdin = path == Path::new("-");
        let name = if stdin { "standard input".to_owned() } else { path.display().to_string() };
        let open = || -> Result<(File, Progress)> {
            if stdin {
                return Ok((stdin_file()?, Progress::default()));
            }
            let file = File::open(path)?;
            let metadata = file.metadata()?;
            if metadata.is_dir() {
                bail!("it is a directory");
            }
            let total = metadata.is_file().then_some(metadata.len());
            Ok((file, Progress { total, ..Progress::default() }))
        };
        let (file, progress) = open().with_context(|| format!("cannot open {name}"))?;
        let mut file = Counting { file, done: Arc::clone(&progress.done) };
        let mut head = read_head(&mut file).with_context(|| format!("cannot read {name}"))?;
        let gzip = head.starts_with(&[0x1f, 0x8b]);
        let zstd = head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
        let mut reader: Box<dyn Read + Send> = Box::new(file);
        if gzip || zstd {
            let whole = BufReader::with_capacity(1 << 16, io::Cursor::new(head).chain(reader));
            reader = if gzip {
                Box::new(flate2::bufread::MultiGzDecoder::new(whole))
            } else {
                let mut decoder = zstd::Decoder::with_buffer(whole)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
                Box::new(decoder)
            };
            // What is wrong with it, if anything, comes out when it is read.
            head = read_head(&mut reader).unwrap_or_default();
        }
        let is_compressed = gzip || zstd;
        Ok(Self { name, path: (!stdin).then(|| path.to_owned()), is_compressed, reader, head, progress })
    }

    /// Returns how far it has been read, to be asked while something else reads it.
    pub(crate) fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Lets another thread do the reading, if there is enough of it to be worth one. `before_wait` is called when a pipe has no
    /// more for now.
    pub(crate) fn read_ahead(self, before_wait: Option<BeforeWait>) -> io::Result<Box<dyn Read>> {
        /// Sooner read than a thread is started.
        const SMALL_BYTES: u64 = 1 << 20;

        match self.progress.total {
            Some(0..SMALL_BYTES) => Ok(Box::new(self)),
            total => {
                let before_wait = before_wait.filter(|_| total.is_none());
                let rest = ReadAhead::start(self.reader, before_wait)?;
                Ok(Box::new(io::Cursor::new(self.head).chain(rest)))
            }
        }
    }

    /// Returns the first bytes, decompressed: [`HEAD_BYTES`] or all there are. Only before anything is read.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.head.is_empty() {
            return self.reader.read(buffer);
        }
        let count = self.head.len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.head[..count]);
        self.head.drain(..count);
        Ok(count)
    }
}

/// How many bytes are looked at to tell what a file is.
const HEAD_BYTES: u64 = 16;

fn read_head(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    match reader.take(HEAD_BYTES).read_to_end(&mut head) {
        // Compressed data that was cut: whoever reads on is told.
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
        _ => Ok(head),
    }
}

struct Counting {
    file: File,
    done: Arc<AtomicU64>,
}

impl Read for Counting {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        // Relaxed: see `Progress::done`.
        self.done.fetch_add(count as u64, Ordering::Relaxed);
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
