//! Why no code was generated.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why no code was generated.
///
/// `Debug` prints what `Display` does, so that a `build.rs` whose `main` returns it says something to people.
#[non_exhaustive]
pub enum Error {
    /// What is wrong with the declarations: each with its place, the line and a mark under it.
    Declarations(Vec<String>),
    /// A trace-events file cannot be read.
    Read(PathBuf, io::Error),
    /// The output cannot be written.
    Write(PathBuf, io::Error),
    /// The path of the output is relative, and there is no `OUT_DIR`: this is no build script.
    NoOutDir,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Declarations(faults) => f.write_str(&faults.join("\n")),
            Self::Read(path, error) => write!(f, "cannot read {}: {error}", path.display()),
            Self::Write(path, error) => write!(f, "cannot write {}: {error}", path.display()),
            Self::NoOutDir => {
                f.write_str("OUT_DIR is not set: outside of a build script, give the output as a full path")
            }
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // `Display` has it already.
        None
    }
}
