//! A recording that is steered while the program runs.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::{Error, Options, Recorder, Report};

/// A recording that is steered from outside while the program runs.
#[derive(Debug)]
pub struct Control {
    options: Options,
    recorder: Mutex<Option<Recorder>>,
}

impl Control {
    /// Records nothing until it is started.
    #[must_use]
    pub const fn new(options: Options) -> Self {
        Self { options, recorder: Mutex::new(None) }
    }

    /// Starts recording.
    ///
    /// # Errors
    ///
    /// As [`Recorder::start`].
    pub fn start(&self) -> Result<(), Error> {
        *self.recorder.lock().unwrap_or_else(PoisonError::into_inner) = Some(Recorder::start(&self.options)?);
        Ok(())
    }

    /// Ends the recording, if there is one.
    ///
    /// # Errors
    ///
    /// As [`Recorder::finish`].
    pub fn finish(&self, timeout: Duration) -> Result<Option<Report>, Error> {
        let recorder = self.recorder.lock().unwrap_or_else(PoisonError::into_inner).take();
        recorder.map(|recorder| recorder.finish(timeout)).transpose()
    }
}
