//! Where results go: standard output or a file, written by a thread of its own.
//!
//! Formatting and the kernel's copying cost about the same, so they are done side by side: a full [`Block`] goes to the writing
//! thread, and an empty one comes back.

#[cfg(feature = "columns")]
use std::borrow::BorrowMut;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use anyhow::{Context as _, Result, bail};

use crate::render::Block;

/// How much is gathered before it is written, in bytes: few system calls, and still within a core's own cache.
const BLOCK_BYTES: usize = 1 << 18;

/// Standard output as a path, to find out whether it is an input, too: appended to, that would never end.
const STDOUT: &str = "/dev/stdout";

/// A sink for blocks of output.
pub(crate) struct Output {
    name: String,
    is_stdout: bool,
    full: Option<SyncSender<Block>>,
    empty: Receiver<Block>,
    writer: Option<JoinHandle<io::Result<()>>>,
    /// The failure of a flush, not told yet.
    failed: Option<anyhow::Error>,
    unfinished: Option<Unfinished>,
    pub(crate) block: Block,
}

/// A file that has another name until all of it is written.
struct Unfinished {
    temporary: PathBuf,
    path: PathBuf,
}

impl Output {
    /// As [`create`](Self::create), but a regular file gets its name only when it is [finished](Self::finish): a part of it is never
    /// taken for the whole, and a file that had the name is kept if anything fails.
    pub(crate) fn create_whole<'a>(path: &Path, inputs: impl IntoIterator<Item = &'a Path>) -> Result<Self> {
        let is_special = std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
        if path == Path::new("-") || is_special {
            return Self::create(Some(path), inputs);
        }
        let name = path.display().to_string();
        refuse_inputs(path, &name, inputs)?;
        // Through a link, what it points to is written.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let mut part = path.file_name().unwrap_or_default().to_owned();
        part.push(format!(".{}.part", std::process::id()));
        let temporary = path.with_file_name(part);
        let file = File::create_new(&temporary).with_context(|| format!("cannot create {name}"))?;
        if let Ok(old) = std::fs::metadata(&path) {
            // Should that not be possible, the new file is as accessible as any other.
            let _ = file.set_permissions(old.permissions());
        }
        let unfinished = Unfinished { temporary, path };
        Self::start(name, false, Box::new(file), Some(unfinished))
    }

    /// Creates `path`, or takes standard output for `None` and `-`. None of `inputs` may be the same file.
    pub(crate) fn create<'a>(path: Option<&Path>, inputs: impl IntoIterator<Item = &'a Path>) -> Result<Self> {
        let path = path.filter(|path| *path != Path::new("-"));
        let name = path.map_or("standard output".to_owned(), |path| path.display().to_string());
        refuse_inputs(path.unwrap_or(Path::new(STDOUT)), &name, inputs)?;
        let sink = match path {
            Some(path) => File::create(path).with_context(|| format!("cannot create {name}"))?,
            None => stdout_file().context("cannot use standard output")?,
        };
        Self::start(name, path.is_none(), Box::new(sink), None)
    }

    fn start(
        name: String,
        is_stdout: bool,
        sink: Box<dyn Write + Send>,
        unfinished: Option<Unfinished>,
    ) -> Result<Self> {
        // One block being written, one on its way, one being filled.
        let (full, to_write) = sync_channel(1);
        let (give_back, empty) = channel();
        for _ in 0..2 {
            // The receiver is in this function.
            let _ = give_back.send(Block::with_capacity(BLOCK_BYTES));
        }
        let writer = std::thread::Builder::new()
            .name("output".to_owned())
            .spawn(move || write_blocks(sink, &to_write, &give_back))
            .context("cannot start the writing thread")?;
        let block = Block::with_capacity(BLOCK_BYTES);
        Ok(Self { name, is_stdout, full: Some(full), empty, writer: Some(writer), failed: None, unfinished, block })
    }

    /// Whether it is standard output.
    pub(crate) const fn is_stdout(&self) -> bool {
        self.is_stdout
    }

    /// Hands the block over if it is nearly full.
    #[inline]
    pub(crate) fn write_if_full(&mut self) -> Result<()> {
        if self.block.len() < BLOCK_BYTES - 4096 && self.failed.is_none() { Ok(()) } else { self.write() }
    }

    /// Hands the block over, full or not; the next write tells if that failed.
    pub(crate) fn flush(&mut self) {
        if self.block.len() > 0 {
            self.failed = self.write().err();
        }
    }

    /// Writes everything, waits for it, and says whether it worked.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.write()?;
        self.close()?;
        if let Some(Unfinished { temporary, path }) = &self.unfinished {
            std::fs::rename(temporary, path).with_context(|| format!("cannot write to {}", self.name))?;
            self.unfinished = None;
        }
        Ok(())
    }

    #[cold]
    fn write(&mut self) -> Result<()> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let sent = self.empty.recv().is_ok_and(|next| {
            let block = std::mem::replace(&mut self.block, next);
            self.full.as_ref().is_some_and(|full| full.send(block).is_ok())
        });
        // The thread ends early only when it cannot write.
        if sent { Ok(()) } else { self.close() }
    }

    fn close(&mut self) -> Result<()> {
        self.full = None;
        let Some(writer) = self.writer.take() else {
            return Ok(());
        };
        let result = writer.join().unwrap_or_else(|_| Err(io::Error::other("the writing thread panicked")));
        result.with_context(|| format!("cannot write to {}", self.name))
    }
}

/// Fills the block, which whoever writes hands over in time.
impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.block.put(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An output for libraries that write as they like: blocks are handed over when they are full.
#[cfg(feature = "columns")]
pub(crate) struct Flushing<O>(pub(crate) O);

#[cfg(feature = "columns")]
impl<O: BorrowMut<Output>> Write for Flushing<O> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let output = self.0.borrow_mut();
        let some = &bytes[..bytes.len().min(BLOCK_BYTES / 2)];
        output.block.put(some);
        output.write_if_full().map_err(|error| {
            // Its kind, so that a reader who has seen enough is known as one.
            let kind = error.downcast_ref().map_or(io::ErrorKind::Other, io::Error::kind);
            io::Error::new(kind, format!("{error:#}"))
        })?;
        Ok(some.len())
    }

    /// Nothing to do: [`finish`](Output::finish) writes all.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(Unfinished { temporary, .. }) = self.unfinished.take() {
            // What made it end early is told by whoever dropped it.
            let _ = self.close();
            let _ = std::fs::remove_file(temporary);
        }
    }
}

/// Refuses an output that is one of `inputs`.
fn refuse_inputs<'a>(path: &Path, name: &str, inputs: impl IntoIterator<Item = &'a Path>) -> Result<()> {
    if inputs.into_iter().any(|input| same_file(path, input)) {
        bail!("output {name} is also an input, and would be lost");
    }
    Ok(())
}

fn write_blocks(mut sink: Box<dyn Write + Send>, full: &Receiver<Block>, give_back: &Sender<Block>) -> io::Result<()> {
    for mut block in full {
        sink.write_all(block.as_bytes())?;
        block.clear();
        // Nobody waits for it once the last block is sent.
        let _ = give_back.send(block);
    }
    sink.flush()
}

/// Tells whether an error is that of a reader who has seen enough.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()).any(|io| io.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(unix)]
fn stdout_file() -> io::Result<File> {
    use std::os::fd::AsFd as _;
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

#[cfg(windows)]
fn stdout_file() -> io::Result<File> {
    use std::os::windows::io::AsHandle as _;
    Ok(File::from(io::stdout().as_handle().try_clone_to_owned()?))
}

#[cfg(unix)]
fn same_file(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let identity = |path: &Path| std::fs::metadata(path).ok().filter(|m| m.is_file()).map(|m| (m.dev(), m.ino()));
    identity(a).is_some_and(|a| Some(a) == identity(b))
}

#[cfg(not(unix))]
fn same_file(a: &Path, b: &Path) -> bool {
    a.canonicalize().is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b))
}
