//! QMP on a Unix socket: a thread that accepts, and one for each connection.

use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{fs, mem};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, Mode, OFlags, fchmod, flock};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with};

use super::frames::{Frame, Frames};
use super::{Control, qmp};
use crate::recorder::{lock_soon, without_signals};

/// How many may be connected at once.
const MAX_CONNECTIONS: usize = 8;
/// How long a client may take to read a reply.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest name of a socket, in bytes.
const MAX_PATH_BYTES: usize = 107;

/// A server of QMP, until it is dropped: then its clients are disconnected, its threads ended and its socket removed.
#[derive(Debug)]
#[must_use = "the socket is removed when it is dropped"]
pub struct Server {
    socket: PathBuf,
    /// The socket's device and inode, so that no other is removed.
    identity: (u64, u64),
    /// The other end is with the thread.
    stop: UnixStream,
    thread: Option<JoinHandle<()>>,
    /// A forked child has no server.
    process_id: u32,
}

impl Server {
    pub(super) fn start(control: Arc<Control>, path: &Path) -> io::Result<Self> {
        watch_forks();
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        check_name(path).map_err(named)?;
        let socket = std::path::absolute(path).map_err(named)?;
        let (stop, stopped) = UnixStream::pair().map_err(named)?;
        // Two that start at the same time must not remove each other's.
        let folder = lock_folder(path);
        let mut open = lock_open();
        let listener = listen_at(path).map_err(named)?;
        open.push(listener.as_raw_fd());
        drop((open, folder));
        let listener = Open(listener);
        // Should something fail from here on, the socket is removed again.
        let found = fs::symlink_metadata(path).map_err(named)?;
        let process_id = std::process::id();
        let mut server = Self { socket, identity: (found.dev(), found.ino()), stop, thread: None, process_id };
        let run = move || accept(&control, &listener, &stopped);
        let thread = without_signals(|| thread::Builder::new().name("simpletrace-qmp".to_owned()).spawn(run));
        server.thread = Some(thread.map_err(named)?);
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let thread = self.thread.take();
        if self.process_id != std::process::id() {
            // It is not here to be waited for, nor even to be detached from.
            mem::forget(thread);
            return;
        }
        if fs::symlink_metadata(&self.socket).is_ok_and(|found| (found.dev(), found.ino()) == self.identity) {
            let _ = fs::remove_file(&self.socket);
        }
        // Not by closing it: forked children may have it, too.
        let _ = self.stop.shutdown(Shutdown::Both);
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

fn check_name(path: &Path) -> io::Result<()> {
    let why = match path.as_os_str().len() {
        0 => "a socket needs a name".to_owned(),
        bytes if bytes > MAX_PATH_BYTES => {
            format!("the name of a socket has at most {MAX_PATH_BYTES} bytes, and this one {bytes}")
        }
        _ => return Ok(()),
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}

/// Makes the socket, instead of a dead one that may be there.
fn listen_at(path: &Path) -> io::Result<UnixListener> {
    let address = SocketAddrUnix::new(path)?;
    let socket = make_socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
    // What is bound gets this mode at once.
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    match bind(&socket, &address) {
        Err(Errno::ADDRINUSE) => {
            remove_dead(path, &address)?;
            bind(&socket, &address)?;
        }
        bound => bound?,
    }
    listen(&socket, MAX_CONNECTIONS as i32).inspect_err(|_| {
        let _ = fs::remove_file(path);
    })?;
    Ok(socket.into())
}

fn make_socket(flags: SocketFlags) -> rustix::io::Result<OwnedFd> {
    socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

/// Keeps other servers away from the folder, as long as what is returned is open. Who may read the folder may hold the lock, hence it is not waited for
/// without end.
fn lock_folder(path: &Path) -> Option<OwnedFd> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(folder, flags, Mode::empty()).ok()?;
    for _ in 0..200 {
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Some(folder),
            Err(Errno::WOULDBLOCK | Errno::INTR) => thread::sleep(Duration::from_millis(5)),
            Err(_) => return None,
        }
    }
    None
}

/// Removes what is a socket and belongs to nobody who lives.
fn remove_dead(path: &Path, address: &SocketAddrUnix) -> io::Result<()> {
    let exists = |what| Err(io::Error::new(io::ErrorKind::AddrInUse, what));
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(found) if !found.file_type().is_socket() => return exists("exists, and is not a socket"),
        Ok(_) => {}
    }
    // One whose queue is full does not make this wait.
    match connect(make_socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?, address) {
        Err(Errno::CONNREFUSED) => fs::remove_file(path),
        Err(Errno::NOENT) => Ok(()),
        Err(error @ Errno::ACCESS) => Err(error.into()),
        _ => exists("in use: a program that lives listens there"),
    }
}

/// Somebody who is connected.
struct Connection {
    stream: Arc<Open<UnixStream>>,
    thread: JoinHandle<()>,
}

/// Accepts whoever comes, until `stopped` is shut down.
fn accept(control: &Arc<Control>, listener: &Open<UnixListener>, stopped: &UnixStream) {
    let mut connections: Vec<Connection> = Vec::new();
    loop {
        let mut ready = [PollFd::new(stopped, PollFlags::IN), PollFd::new(&listener.0, PollFlags::IN)];
        let polled = poll(&mut ready, None);
        let [is_stopped, is_wanted] = ready.map(|ready| !ready.revents().is_empty());
        if is_stopped {
            break;
        }
        if polled.is_err() || !is_wanted {
            continue;
        }
        let mut open = lock_open();
        let stream = match listener.0.accept() {
            Ok((stream, _)) => stream,
            Err(error) => {
                drop(open);
                if !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionAborted) {
                    // There are no descriptors left, say: it is tried again soon.
                    let pause = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
                    let _ = poll(&mut [PollFd::new(stopped, PollFlags::IN)], Some(&pause));
                }
                continue;
            }
        };
        open.push(stream.as_raw_fd());
        drop(open);
        let stream = Arc::new(Open(stream));
        connections.retain(|connection| !connection.thread.is_finished());
        if !is_ours(&stream.0) {
            continue;
        }
        if connections.len() == MAX_CONNECTIONS {
            refuse(&stream.0, &format!("there are {MAX_CONNECTIONS} connections, and may be no more"));
            continue;
        }
        let (control, own) = (Arc::clone(control), Arc::clone(&stream));
        let run = move || {
            let _ = converse(&control, &own.0);
            // It may stay open on our side until somebody else comes.
            let _ = own.0.shutdown(Shutdown::Both);
        };
        // Signals are blocked as they are here.
        match thread::Builder::new().name("simpletrace-qmp".to_owned()).spawn(run) {
            Ok(thread) => connections.push(Connection { stream, thread }),
            Err(error) => refuse(&stream.0, &format!("no thread could be made: {error}")),
        }
    }
    for connection in &connections {
        let _ = connection.stream.0.shutdown(Shutdown::Both);
    }
    for connection in connections {
        let _ = connection.thread.join();
    }
}

/// Whether the other side is this user, or root.
fn is_ours(stream: &UnixStream) -> bool {
    socket_peercred(stream).is_ok_and(|peer| peer.uid.is_root() || peer.uid == rustix::process::geteuid())
}

/// Says why not. A socket that has just been accepted takes a line.
fn refuse(mut stream: &UnixStream, why: &str) {
    let _ = stream.set_nonblocking(true);
    let _ = stream.write_all(format!("{}\r\n", qmp::error(why)).as_bytes());
}

/// Serves one client until it leaves, does what is not allowed, or does not read.
fn converse(control: &Control, mut stream: &UnixStream) -> io::Result<()> {
    // It is its listener's otherwise on some systems.
    stream.set_nonblocking(false)?;
    send(stream, &qmp::greeting())?;
    let (mut frames, mut is_negotiated) = (Frames::default(), false);
    let mut buffer = [0; 4096];
    loop {
        let count = match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let mut bytes = &buffer[..count];
        while let Some(frame) = frames.next(&mut bytes) {
            match frame {
                Frame::Request(request) => match qmp::parse(&request) {
                    Ok(value) => send(stream, &qmp::reply(control, value, &mut is_negotiated))?,
                    Err(why) => {
                        frames.lose(&request);
                        send(stream, &qmp::error(why))?;
                    }
                },
                Frame::Fault(why) => send(stream, &qmp::error(why))?,
                Frame::Fatal(why) => return send(stream, &qmp::error(why)),
            }
        }
    }
}

/// Sends a reply, and gives up on a client that takes too long over it.
fn send(mut stream: &UnixStream, reply: &str) -> io::Result<()> {
    let end = Instant::now() + PATIENCE;
    let line = format!("{reply}\r\n");
    let mut rest = line.as_bytes();
    while !rest.is_empty() {
        let left = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
        stream.set_write_timeout(Some(left.ok_or(io::ErrorKind::TimedOut)?))?;
        // In pieces, as each may wait for so long.
        match stream.write(&rest[..rest.len().min(16 << 10)]) {
            Ok(count) => rest = &rest[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The sockets of all servers. Forked children close them: else a socket would seem to live as long as they do, and clients would wait for them.
static OPEN: Mutex<Vec<RawFd>> = Mutex::new(Vec::new());

/// One of them, opened under their lock.
#[derive(Debug)]
struct Open<T: std::os::fd::AsRawFd>(T);

impl<T: std::os::fd::AsRawFd> Drop for Open<T> {
    fn drop(&mut self) {
        let socket = self.0.as_raw_fd();
        lock_open().retain(|&open| open != socket);
    }
}

fn lock_open() -> MutexGuard<'static, Vec<RawFd>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn watch_forks() {
    use std::cell::Cell;
    use std::mem::ManuallyDrop;

    // Held across a fork, so that the child has a list that is right. As in `fork.rs`.
    thread_local! {
        static HELD: Cell<Option<ManuallyDrop<MutexGuard<'static, Vec<RawFd>>>>> = const { Cell::new(None) };
    }
    extern "C" fn before() {
        HELD.set(lock_soon(&OPEN).map(ManuallyDrop::new));
    }
    extern "C" fn behind_in_parent() {
        drop(HELD.take().map(ManuallyDrop::into_inner));
    }
    extern "C" fn behind_in_child() {
        let Some(mut open) = HELD.take().map(ManuallyDrop::into_inner) else { return };
        for socket in open.drain(..) {
            // SAFETY: whoever owns it is a thread that is not here.
            unsafe { libc::close(socket) };
        }
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the three may be called on any thread that forks, and do not unwind.
        unsafe { libc::pthread_atfork(Some(before), Some(behind_in_parent), Some(behind_in_child)) };
    });
}
