//! Our recorder in processes of their own: a process has one recording, and these are to take turns.

use std::error::Error;
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use simpletrace_recorder::{Options, Recorder, enable, register};

use crate::contestants::{Contestant, WORDS, emit_words};

/// So many events come before a window, not timed: the process has just been woken.
const WARM_UP: u32 = 256;

/// A process that records events with three numbers when told to.
pub struct ChildContestant {
    name: &'static str,
    pipes: Mutex<(ChildStdin, ChildStdout)>,
    child: Child,
}

impl ChildContestant {
    /// Starts this program with the arguments that make it call [`serve`], to record into `file`.
    ///
    /// # Errors
    ///
    /// It cannot be started.
    pub fn start(name: &'static str, file: &Path, is_durable: bool) -> Result<Self, Box<dyn Error>> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--child", if is_durable { "durable" } else { "plain" }, "--file"])
            .arg(file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take()).ok_or("no pipes")?;
        Ok(Self { name, pipes: Mutex::new(pipes), child })
    }

    /// # Panics
    ///
    /// The process is gone: nothing can be measured then.
    #[expect(clippy::expect_used)]
    fn ask(&self, events: u32) -> u64 {
        let (stdin, stdout) = &mut *self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut answer = [0; 8];
        stdin
            .write_all(&events.to_le_bytes())
            .and_then(|()| stdout.read_exact(&mut answer))
            .expect("the child answers");
        u64::from_le_bytes(answer)
    }

    /// Ends the process.
    ///
    /// # Errors
    ///
    /// It failed, or lost events.
    pub fn finish(self) -> Result<(), Box<dyn Error>> {
        let Self { name, pipes, mut child } = self;
        drop(pipes);
        let status = child.wait()?;
        if status.success() { Ok(()) } else { Err(format!("{name}: {status}").into()) }
    }
}

impl Contestant for ChildContestant {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn emit(&self, thread: usize, events: u32) {
        self.time(thread, events);
    }

    /// As the child has it. Its writer has caught up when this returns.
    fn time(&self, _thread: usize, events: u32) -> Duration {
        Duration::from_nanos(self.ask(events))
    }

    fn lost(&self) -> u64 {
        self.ask(0)
    }

    fn room(&self) -> u32 {
        // What fills a window, and for each of them the same.
        4096
    }
}

/// What the process does: takes a number of events from standard input, records them, answers with the ns that this took; for 0, with the
/// number of events that were lost so far.
///
/// # Errors
///
/// It cannot record.
pub fn serve(file: &Path, is_durable: bool) -> Result<(), Box<dyn Error>> {
    register(&[&WORDS])?;
    enable(WORDS.name());
    let recorder = Recorder::start(&Options::new(file).durable(is_durable))?;
    let (mut stdin, mut stdout) = (std::io::stdin(), std::io::stdout());
    loop {
        let mut events = [0; 4];
        match stdin.read_exact(&mut events) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error.into()),
        }
        let answer = match u32::from_le_bytes(events) {
            0 => recorder.report()?.lost.total(),
            events => {
                emit_words(&WORDS, WARM_UP);
                let begin = Instant::now();
                emit_words(&WORDS, events);
                let took = begin.elapsed();
                recorder.flush(Duration::from_secs(2))?;
                took.as_nanos() as u64
            }
        };
        stdout.write_all(&answer.to_le_bytes())?;
        stdout.flush()?;
    }
    let report = recorder.finish(Duration::from_secs(2))?;
    if report.rings_elsewhere > 0 {
        return Err("no room for a ring where it survives the process".into());
    }
    Ok(())
}
