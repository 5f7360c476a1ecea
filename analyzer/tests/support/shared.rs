//! Real trace files, which are not part of the project: `shared/traces` beside the checkout, or below `SIMPLETRACE_SHARED`.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::{env, fs};

use super::{Dir, unzstd};

/// The folder of the real traces, if `path` is in it; else says that `test` is skipped.
pub(crate) fn traces(test: &str, path: &str) -> Option<Dir> {
    let shared = env::var_os("SIMPLETRACE_SHARED")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared")), PathBuf::from);
    let traces = shared.join("traces");
    let path = traces.join(path);
    if path.exists() {
        return Some(Dir::at(traces));
    }
    skip(test, &format!("{} is absent", path.display()));
    None
}

/// Says on stderr that `test` is skipped; CI counts these lines.
pub(crate) fn skip(test: &str, why: &str) {
    // Not through eprintln!, which the test harness keeps to itself when the test passes; and in one piece that begins a line,
    // wherever the harness is in its own.
    io::stderr().write_all(format!("\nSKIPPED: {test}: {why}\n").as_bytes()).unwrap();
}

impl Dir {
    /// Reads a file of the folder, decompressed if its name ends in `.zst`.
    pub(crate) fn expected(&self, name: &str) -> Vec<u8> {
        let bytes = fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        if name.ends_with(".zst") { unzstd(&bytes) } else { bytes }
    }
}
