//! Generating in a build script.

use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::{Declarations, Error};

/// Files in, one file of code out.
#[derive(Debug, Clone, Default)]
pub struct Codegen {
    files: Vec<PathBuf>,
}

impl Codegen {
    /// Without files so far.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a trace-events file, in a build script relative to the package.
    #[must_use]
    pub fn file(mut self, path: impl Into<PathBuf>) -> Self {
        self.files.push(path.into());
        self
    }

    /// Writes Rust to `path`, which is relative to the `OUT_DIR` that cargo gives a build script, and tells cargo to run the script again
    /// when one of the files has changed. A file that has this text already is left alone.
    ///
    /// # Errors
    ///
    /// [`Error`]; then nothing is written.
    pub fn rust(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = if path.as_ref().is_absolute() {
            path.as_ref().to_owned()
        } else {
            Path::new(&env::var_os("OUT_DIR").ok_or(Error::NoOutDir)?).join(path)
        };
        let mut sources = Vec::with_capacity(self.files.len());
        for file in &self.files {
            println!("cargo::rerun-if-changed={}", file.display());
            let source = fs::read(file).map_err(|error| Error::Read(file.clone(), error))?;
            sources.push((file.display().to_string(), source));
        }
        let code = Declarations::parse(sources)?.rust();
        if fs::read(&path).is_ok_and(|old| old == code.as_bytes()) {
            return Ok(());
        }
        fs::write(&path, code).map_err(|error| Error::Write(path, error))
    }
}
