//! `decode -F compat` beside QEMU's own simpletrace.py, where `QEMU_SCRIPTS` names the folder that it is in.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use simpletrace_format::{ByteOrder, EventId, Value};
use support::{Dir, assert_same_lines, sample};

#[test]
fn the_demo_trace_decodes_as_by_simpletrace_py() {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/demo");
    let dir = Dir::with([
        ("t.trace", &std::fs::read(demo.join("disk.trace")).unwrap()[..]),
        ("ev", &std::fs::read(demo.join("disk.trace-events")).unwrap()),
    ]);
    compare(&dir, "the_demo_trace_decodes_as_by_simpletrace_py");
}

#[test]
fn nasty_strings_and_times_decode_as_by_simpletrace_py() {
    let strings: Vec<Vec<u8>> = (0..=255)
        .map(|byte| vec![b'x', byte, b'y'])
        .chain([b"".to_vec(), b"'".to_vec(), b"\"'".to_vec(), b"\"".to_vec(), vec![b'\\'; 512]])
        .collect();
    // Steps of all sizes, forwards and backwards, up to where a double cannot hold the quotient.
    let times = (0..64).flat_map(|bit| [1 << bit, (1 << bit) - 1, u64::MAX - (1 << bit), 3 << bit, 999]);
    let file = sample::trace(ByteOrder::NATIVE, |writer| {
        writer.mapping(EventId(1), "name")?;
        for (time, string) in times.zip(strings.iter().cycle()) {
            writer.event(EventId(1), time, time as u32, &[Value::Unsigned(time), Value::String(string)])?;
            writer.dropped(time, 7, time)?;
        }
        Ok(())
    });
    let dir = Dir::with([("t.trace", &file[..]), ("ev", b"name(uint64_t number, const char *text) \"\"\n")]);
    compare(&dir, "nasty_strings_and_times_decode_as_by_simpletrace_py");
}

#[test]
fn facts_are_nothing_to_simpletrace_py() {
    let facts = sample::facts(&[
        "boot_id=b",
        "clock=tsc",
        "host=h",
        "program=p",
        "pid=7",
        "recorder=r 1",
        "part=1",
        "later=\x1b",
    ]);
    let file = sample::sample_with(ByteOrder::NATIVE, &facts);
    let dir =
        Dir::with([("t.trace", &file[..]), ("plain", &sample::sample(ByteOrder::NATIVE)[..]), ("ev", sample::EVENTS)]);
    compare(&dir, "facts_are_nothing_to_simpletrace_py");
    let [with, without] =
        ["t.trace", "plain"].map(|name| dir.run(&format!("decode {name} ev -F compat")).exits(0).stdout);
    assert!(with == without);
}

/// Decodes `t.trace` with `ev` in `dir`, both ways.
fn compare(dir: &Dir, test: &str) {
    let Some(script) = std::env::var_os("QEMU_SCRIPTS").map(|folder| PathBuf::from(folder).join("simpletrace.py"))
    else {
        return support::shared::skip(test, "QEMU_SCRIPTS is not set, so there is no simpletrace.py");
    };
    let stock = Command::new("python3").arg(script).args([dir.path("ev"), dir.path("t.trace")]).output().unwrap();
    assert!(stock.status.success(), "{}", String::from_utf8_lossy(&stock.stderr));
    assert_same_lines(&dir.run("decode t.trace ev -F compat").exits(0).stdout, &stock.stdout, test);
}
