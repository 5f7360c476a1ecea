//! A progress bar on stderr, when it is a terminal and the work is long.

use std::io::IsTerminal as _;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::input::Progress;

/// Work that is done sooner than this shows no bar.
const QUIET: Duration = Duration::from_millis(500);
const REDRAW: Duration = Duration::from_millis(100);

/// A bar that watches inputs being read; it goes away when dropped.
pub(crate) struct Bar {
    stop: Option<Sender<()>>,
    drawer: Option<JoinHandle<()>>,
}

impl Bar {
    /// Watches `inputs`, from a thread of its own, so that reading costs nothing more.
    pub(crate) fn watch(inputs: Vec<Progress>) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self {
                stop: None,
                drawer: None,
            };
        }
        let (stop, stopped) = channel();
        let draw = move || {
            if stopped.recv_timeout(QUIET) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let total = inputs.iter().map(|input| input.total).sum::<Option<u64>>();
            let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
            let template = match total {
                Some(_) => "{percent:>3} % of {total_bytes}  {wide_bar}  {bytes_per_sec}, {eta} left",
                None => "{spinner} {bytes} read, {bytes_per_sec}",
            };
            bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
            loop {
                bar.set_position(inputs.iter().map(Progress::done).sum());
                if stopped.recv_timeout(REDRAW) != Err(RecvTimeoutError::Timeout) {
                    break bar.finish_and_clear();
                }
            }
        };
        Self {
            stop: Some(stop),
            drawer: std::thread::Builder::new().name("progress".to_owned()).spawn(draw).ok(),
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(drawer) = self.drawer.take() {
            // A bar that panicked has nothing more to say.
            let _ = drawer.join();
        }
    }
}
