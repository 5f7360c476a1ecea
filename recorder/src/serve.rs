//! The writer's thread: cycle after cycle, and what it is asked to do in between.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use crate::HUB;
use crate::hub::{Ticket, WriterState};
use crate::output::Output;
use crate::recorder::EXIT_TIMEOUTS;
use crate::report::Report;
use crate::say::say;
use crate::writeout::{Cycle, Writeout};

/// What the writer is asked to do.
pub(crate) enum Command {
    SetOutput(Box<Output>, SyncSender<io::Result<()>>),
    SetOff(bool, SyncSender<()>),
    Report(SyncSender<Report>),
    Finish(Duration, SyncSender<Report>),
}

/// The writer's thread.
pub(crate) fn run(mut writeout: Writeout, commands: &Receiver<Command>, begun: &SyncSender<io::Result<()>>) {
    crate::thread::be_writer();
    // All that is written is written here, where its signals are blocked.
    if let Err(error) = writeout.begin()
        && begun.send(Err(error)).is_ok()
    {
        return;
    }
    let _ = begun.send(Ok(()));
    // Should it panic, those who record must not wait for it. Nothing of it is used afterwards.
    let _ = catch_unwind(AssertUnwindSafe(|| serve(&mut writeout, commands)));
    HUB.set_writer(WriterState::Gone);
}

/// The shortest sleep between two cycles.
const NAP: Duration = Duration::from_millis(1);
/// The longest one: what is recorded is to be in the file after 100 ms.
const LONGEST_NAP: Duration = Duration::from_millis(50);
/// After so many bytes at once there is no sleep.
const BUSY_BYTES: u64 = 256 << 10;

fn serve(writeout: &mut Writeout, commands: &Receiver<Command>) {
    // The flush that is under way, and the time until which all has to be written for it.
    let mut flush: Option<(Ticket, u64)> = None;
    let mut nap = NAP;
    loop {
        for command in commands.try_iter() {
            match command {
                Command::SetOutput(output, reply) => {
                    let _ = reply.send(writeout.set_output(*output));
                }
                Command::SetOff(is_off, reply) => {
                    writeout.set_off(is_off);
                    let _ = reply.send(());
                }
                Command::Report(reply) => {
                    let _ = reply.send(writeout.report());
                }
                Command::Finish(timeout, reply) => {
                    finish(writeout, timeout);
                    let _ = reply.send(writeout.report());
                    return;
                }
            }
        }
        if HUB.is_exiting() {
            return finish(writeout, EXIT_TIMEOUTS[0]);
        }
        flush = flush.or_else(|| HUB.wanted_flush().map(|ticket| (ticket, writeout.later_than_now_ns())));
        let cycle = writeout.cycle(flush.is_some());
        tell(writeout);
        if let Some((ticket, until_ns)) = flush
            && writeout.has_written(until_ns)
        {
            HUB.flush_is_done(ticket);
            flush = None;
        }
        nap = match cycle {
            Cycle::Took(bytes) if bytes >= BUSY_BYTES => continue,
            Cycle::Took(_) => {
                writeout.keep_spares();
                NAP
            }
            // It has waited for the target already.
            Cycle::Stalled => NAP,
            Cycle::Idle => (nap * 2).min(LONGEST_NAP),
        };
        HUB.sleep(nap);
    }
}

/// Writes what is left, for so long.
fn finish(writeout: &mut Writeout, timeout: Duration) {
    let begin = Instant::now();
    writeout.finish(|| {
        thread::sleep(NAP);
        begin.elapsed() < timeout
    });
    tell(writeout);
    // Before whoever waits goes on to start the next.
    HUB.set_writer(WriterState::Gone);
}

/// Says what is wrong with the file.
fn tell(writeout: &mut Writeout) {
    for message in writeout.take_messages() {
        say(&message);
    }
}
