//! Replays every committed corpus file through its target.

use std::fs;
use std::path::Path;

/// Runs `target` on the files of `corpus/<name>/`, in the order of their names.
fn replay(name: &str, target: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("an entry of the corpus").path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no corpus for {name}");
    for file in files {
        // Shown only when the target panics.
        println!("{}", file.display());
        target(&fs::read(&file).expect("a file of the corpus"));
    }
}

#[test]
fn durable() {
    replay("durable", simpletrace_format_fuzz::durable);
}

#[test]
fn reader() {
    replay("reader", simpletrace_format_fuzz::reader);
}

#[test]
fn recover() {
    replay("recover", simpletrace_format_fuzz::recover);
}

#[test]
fn roundtrip() {
    replay("roundtrip", simpletrace_format_fuzz::roundtrip);
}

#[test]
fn printf() {
    replay("printf", simpletrace_format_fuzz::printf);
}

#[test]
fn trace_events() {
    replay("trace_events", simpletrace_format_fuzz::trace_events);
}
