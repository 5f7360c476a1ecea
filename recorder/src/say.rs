//! Telling whoever runs the program that something is wrong, without ever waiting for anybody: stderr may be on the same full disk as the
//! trace, its reader may have stalled, and whoever has locked it may be waiting for the writer.

/// Writes a line on stderr, or leaves it if stderr does not take it at once.
pub(crate) fn say(message: &str) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    // One write, not through the standard library's lock. A pipe that takes anything takes a whole line of this length.
    let mut line = message.as_bytes().to_vec();
    line.truncate(rustix::pipe::PIPE_BUF - 1);
    line.push(b'\n');
    // SAFETY: the descriptor is only used in here. Should the program have closed it, or put something else there, that is no worse
    // than what its own messages do.
    let stderr = unsafe { rustix::fd::BorrowedFd::borrow_raw(2) };
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut ready = [PollFd::new(&stderr, PollFlags::OUT)];
    // Ready and nothing else: a pipe without a reader would raise a signal.
    if poll(&mut ready, Some(&now)) == Ok(1) && ready[0].revents() == PollFlags::OUT {
        let _ = rustix::io::write(stderr, &line);
    }
}
