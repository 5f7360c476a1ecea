//! Real trace files, which are not part of the project: `shared/traces` beside the checkout, or below `SIMPLETRACE_SHARED`.

use std::io::{self, ErrorKind, Write as _};
use std::path::PathBuf;
use std::{env, fs};

/// Reads `traces/<path>`; where it is absent, says on stderr that `test` is skipped (CI counts these lines) and returns `None`.
pub(crate) fn read(test: &str, path: &str) -> Option<Vec<u8>> {
    let shared = env::var_os("SIMPLETRACE_SHARED")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared")), PathBuf::from);
    let path = shared.join("traces").join(path);
    match fs::read(&path) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // Not through eprintln!, which the test harness keeps to itself when the test passes; and in one piece that
            // begins a line, wherever the harness is in its own.
            let line = format!("\nSKIPPED: {test}: {} is absent\n", path.display());
            io::stderr().write_all(line.as_bytes()).unwrap();
            None
        }
        Err(error) => panic!("{}: {error}", path.display()),
    }
}
