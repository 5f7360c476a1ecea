//! Parquet and Arrow files and data sets, read by DuckDB and pyarrow.

mod support;

use std::process::{Command, Stdio};

use simpletrace_format::{ByteOrder, EventId, Value};
use support::python::python_with;
use support::sample::trace;
use support::{Dir, shared};

const PACKAGES: [&str; 2] = ["duckdb==2.0.1", "pyarrow==26.0.1"];

/// Runs a script of this folder on these words; returns what it prints, or `None` if there is no Python for it.
fn python(test: &str, script: &str, words: &[&str]) -> Option<String> {
    let python = match python_with(&PACKAGES) {
        Ok(python) => python,
        Err(why) => {
            shared::skip(test, &why);
            return None;
        }
    };
    let script = format!("{}/tests/columns/{script}", env!("CARGO_MANIFEST_DIR"));
    let program = env!("CARGO_BIN_EXE_simpletrace-rs");
    let output = Command::new(python).arg(script).arg(program).args(words).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Compares all files of columns with the JSON of a trace; it must have so many records, gaps included.
fn compare(test: &str, dir: &Dir, file: &str, events: &str, expected: &str) {
    let folder = Dir::new();
    let [file, events, folder] =
        [dir.path(file), dir.path(events), folder.path("")].map(|path| path.display().to_string());
    if let Some(found) = python(test, "compare.py", &[&folder, &file, &events]) {
        assert_eq!(found.trim(), expected, "{file}");
    }
}

const EXTREMES: &str = r#"ints(int8_t a, int b, int64_t c, ssize_t d, char e) ""
words(uint8_t a, unsigned b, uint64_t c, size_t d, void *e) ""
flags(bool a) ""
texts(const char *a, int between, const char *b) ""
names(int ts_ns, int pid, int event, int source, int day, int twice, int twice, int wall_ns) ""
none(void) ""
undeclared_here(int a) ""
"#;

#[test]
fn every_value_survives() {
    let dir = Dir::new();
    dir.write("events", EXTREMES.replace("undeclared_here(int a) \"\"\n", ""));
    let names = ["ints", "words", "flags", "texts", "names", "none", "undeclared_here"];
    let long = "0123456789abcdef".repeat(32);
    let texts =
        [&b""[..], b"plain", "größe ✓".as_bytes(), b"cut \xc3", b"\xff\\", br"\xff", b"a\0b\"\n,", long.as_bytes()];
    let bytes = trace(ByteOrder::Little, |writer| {
        let mut times_ns = [0, u64::MAX, 1 << 63, 1].into_iter().cycle();
        let mut next_ns = || times_ns.next().unwrap();
        for (id, name) in names.iter().enumerate() {
            writer.mapping(EventId(id as u64), name)?;
        }
        for value in [0, 1, -1, i64::MIN, i64::MAX] {
            writer.event(EventId(0), next_ns(), 1, &[Value::Signed(value); 5])?;
        }
        for word in [0, 1, u64::MAX, 1 << 63, (1 << 53) + 1] {
            writer.event(EventId(1), next_ns(), u32::MAX, &[Value::Unsigned(word); 5])?;
            writer.event(EventId(2), next_ns(), 0, &[Value::Unsigned(word)])?;
        }
        for text in texts {
            writer.event(EventId(3), next_ns(), 1, &[Value::String(text), Value::Signed(-5), Value::String(text)])?;
        }
        writer.event(EventId(4), next_ns(), 1, &[1, 2, 3, 4, 5, 6, 7, 8].map(Value::Signed))?;
        writer.event(EventId(5), next_ns(), 1, &[])?;
        writer.event(EventId(6), next_ns(), 1, &[Value::Signed(-5), Value::String(b"odd")])?;
        writer.dropped(next_ns(), 1, 7)?;
        // Shorter and longer than declared.
        writer.event(EventId(0), next_ns(), 1, &[Value::Signed(-1); 2])?;
        writer.event(EventId(5), next_ns(), 1, &[Value::Unsigned(u64::MAX), Value::String(b"odd")])?;
        writer.dropped(next_ns(), 1, u64::MAX)?;
        Ok(())
    });
    dir.write("trace", bytes);
    compare("every_value_survives", &dir, "trace", "events", "30");
}

macro_rules! real {
    ($($name:ident: $trace:literal, $events:literal, $expected:literal;)*) => {$(
        #[test]
        fn $name() {
            let Some(dir) = shared::traces(stringify!($name), $trace) else { return };
            compare(stringify!($name), &dir, $trace, $events, $expected);
        }
    )*};
}

// As many as the folder's README says; of img-convert and damaged ones, as many as `decode` prints lines.
real! {
    columns_of_img_convert: "qemu-8.2/img-convert.trace", "qemu-8.2/trace-events-all", "476";
    columns_of_a_booting_guest: "qemu-8.2/vm-virtio-blk.trace.zst", "qemu-8.2/trace-events-all", "78018";
    columns_of_a_kvm_guest: "qemu-8.2/kvm-blk.trace", "qemu-8.2/trace-events-all", "3898";
    columns_of_img_convert_10_2: "qemu-10.2/img-convert.trace", "qemu-10.2/trace-events-all", "578";
    columns_of_version_0: "old/v0-0.14-x86_64.trace", "old/v0-0.14-x86_64.trace-events", "1501";
    columns_of_version_0_big_endian: "old/v0-1.1-s390x.trace", "old/v0-1.1-s390x.trace-events", "704";
    columns_of_version_2: "old/v2-1.3-x86_64.trace", "old/v2-1.3-x86_64.trace-events", "697";
    columns_of_version_3: "old/v3-2.5-s390x.trace", "old/v3-2.5-s390x.trace-events", "940";
    columns_of_version_4: "old/v4-8.2-x86_64.trace", "old/v4-8.2-x86_64.trace-events", "1124";
    columns_of_a_damaged_trace: "damaged/garbage-insert.trace", "damaged/harness.trace-events", "90";
    columns_of_a_cut_string: "damaged/be-cut-string.trace", "damaged/harness.trace-events", "47";
    columns_of_an_unmapped_id: "damaged/id-unmapped.trace", "damaged/harness.trace-events", "90";
    columns_of_too_much_payload: "damaged/extra-payload.trace", "damaged/harness.trace-events", "90";
    columns_without_records: "damaged/mappings-only.trace", "damaged/harness.trace-events", "0";
}

#[test]
fn duckdb_finds_the_latencies_that_latency_does() {
    let test = "duckdb_finds_the_latencies_that_latency_does";
    let (file, events) = ("qemu-8.2/vm-virtio-blk.trace.zst", "qemu-8.2/trace-events-all");
    let Some(dir) = shared::traces(test, file) else { return };
    let folder = Dir::new();
    let [trace, declared, into] =
        [dir.path(file), dir.path(events), folder.path("")].map(|path| path.display().to_string());
    let Some(found) = python(test, "latency.py", &[&into, &trace, &declared]) else { return };
    assert_eq!(found.trim(), "1151 57755 6968400 32316385 35062896");
    let latency = dir.run(&format!("latency {file} {events} --preset thread-pool -p 50,99,99.9 -F csv")).exits(0);
    assert!(latency.text().contains("57755,6968400,32316385,35062896"), "{}", latency.text());
}
