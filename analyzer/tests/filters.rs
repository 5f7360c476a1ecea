//! `-w`: which records are selected, what is refused, and what is said of it. The language itself has its tests in `condition`.

mod support;

use std::path::PathBuf;

use serde_json::Value as Json;
use simpletrace_format::{ByteOrder, Value};
use support::program::Run;
use support::sample::{self, ORDERS};
use support::{Dir, shared};

const DEMO: &str = "disk.trace disk.trace-events";

fn demo() -> Dir {
    Dir::at(PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/demo")))
}

/// Runs a command with a filter.
fn filtered(dir: &Dir, line: &str, filter: &str) -> Run {
    dir.call(line).arg("-w").arg(filter).run()
}

fn names(run: &Run) -> Vec<String> {
    run.ndjson().iter().map(|line| line["event"].as_str().unwrap().to_owned()).collect()
}

/// Counted with a few lines of Python from what `decode -F ndjson` prints of the whole trace.
#[test]
fn the_demo_has_so_many_records() {
    for (filter, expected) in [
        ("count >= 256", 6),
        ("virtio_blk_handle_write: count >= 256", 1996),
        ("device == \"hpet\"", 510),
        ("device =~ \"pci-conf-*\"", 239 + 228),
        ("device =~ \"pc*\" && cpu < 0", 5),
        ("cpu < 0", 17),
        ("cpu >= 0 && !(cpu != 1)", 806),
        ("flags & 8", 34),
        ("flags & 7", 0),
        ("ret == -5", 2),
        ("status != 0", 1),
        ("time < 5ms", 57),
        ("time >= @429494.5", 1349),
        ("vdev == 0x55bd4edec9a0", 86),
        ("addr == 97 || addr == 0xcfc", 257 + 239),
        ("pid == 22809", 2000),
        ("event =~ \"virtio_blk_handle_*\"", 34),
        ("virtio_blk_*, thread_pool_submit: event == \"thread_pool_submit\"", 2000 - 100),
    ] {
        // The gap is never filtered.
        let run = filtered(&demo(), &format!("decode {DEMO} -F ndjson -e * -e -dropped"), filter).exits(0);
        assert_eq!(run.lines().len(), expected, "{filter}");
        let report = filtered(&demo(), &format!("info {DEMO} -F json"), filter).exits(0).json();
        assert_eq!(report["records"], expected, "{filter}");
        assert_eq!(report["dropped"], 30, "{filter}");
    }
}

/// Counted with QEMU's own reader, simpletrace.py, and a few lines that compare what it hands out.
#[test]
fn a_real_trace_has_so_many_records() {
    let trace = "qemu-8.2/vm-virtio-blk.trace.zst";
    let Some(dir) = shared::traces("a_real_trace_has_so_many_records", trace) else { return };
    for (filter, expected) in [
        ("nsectors >= 256", 1),
        ("virtio_blk_handle_write: nsectors >= 64", 77_778),
        ("cpu_index == -1 || time >= @1690", 50_597),
        ("value > 0xffff && !(name =~ \"v*\")", 40_592),
    ] {
        let run = filtered(&dir, &format!("info {trace} qemu-8.2/trace-events-all -F json"), filter).exits(0);
        assert_eq!(run.json()["records"], expected, "{filter}");
    }
}

#[test]
fn gaps_stay_and_other_choices_apply_as_well() {
    for order in ORDERS {
        let dir = Dir::with([("t.trace", &sample::sample(order)), ("ev", sample::EVENTS)]);
        for (options, filter, expected) in [
            ("", "disk == 0x7f00", &["disk_read", "dropped", "disk_done"][..]),
            ("", "disk_done: ret > 0", &["disk_open", "disk_read", "dropped", "idle"]),
            ("", "path =~ \"*c*\" && read_only", &["disk_open", "dropped"]),
            ("-e -dropped", "disk == 0x7f00", &["disk_read", "disk_done"]),
            ("-e disk_*", "pid == 11 && time < 1ms", &["disk_done"]),
            ("--pid 10 -w disk_open:!read_only", "disk == 0x7f00", &["disk_read", "dropped"]),
            // A limit counts what is printed.
            ("--limit 2 -e -dropped", "pid == 11", &["disk_done", "idle"]),
            ("--limit 1", "pid == 11", &["dropped"]),
        ] {
            let run = filtered(&dir, &format!("decode t.trace ev -F ndjson {options}"), filter).exits(0);
            assert_eq!(names(&run), expected, "{options} {filter}");
        }
        let run = filtered(&dir, "decode t.trace ev -F ndjson -e disk_*", "ret > 0").exits(0);
        assert!(run.stderr.ends_with("note: none of 4 events was selected\n"), "{}", run.stderr);
    }
}

#[test]
fn slice_writes_what_decode_prints() {
    let dir = Dir::new();
    for name in ["disk.trace", "disk.trace-events"] {
        dir.write(name, demo().read(name));
    }
    let filter = "device == \"hpet\" && value & 0x10";
    filtered(&dir, &format!("slice {DEMO} -o out.trace"), filter).exits(0);
    let expected = filtered(&dir, &format!("decode {DEMO} -F compat"), filter).exits(0);
    let found = dir.run("decode out.trace disk.trace-events -F compat").exits(0);
    assert!(expected.lines().len() > 10, "{}", expected.lines().len());
    assert_eq!(found.text(), expected.text());
}

#[test]
fn latency_measures_the_operations_whose_records_are_selected() {
    let line = format!("latency {DEMO} virtio_blk_handle_read->virtio_blk_req_complete --on req -F json");
    let counts = |run: &Run| {
        let json: Json = run.json();
        let Json::Array(groups) = &json["groups"] else { panic!("{json}") };
        groups.iter().map(|group| group["pairs"].as_u64().unwrap()).sum::<u64>()
    };
    // Six of 256 and six of 128.
    let run = filtered(&demo(), &line, "virtio_blk_handle_read: count >= 128").exits(0);
    assert_eq!(counts(&run), 12);
    // An event that is no part of the operation.
    let run = filtered(&demo(), &line, "virtio_blk_handle_write: count >= 128").exits(2);
    assert!(
        run.stderr.contains("virtio_blk_handle_write is not among the events that are asked for"),
        "{}",
        run.stderr
    );
}

#[test]
fn an_error_leaves_the_output_as_it_was() {
    let dir = Dir::with([("t.trace", &sample::sample(ByteOrder::Little)), ("ev", sample::EVENTS), ("out", b"old")]);
    for filter in ["count >", "cuont > 1", "count > \"x\""] {
        for command in ["decode", "slice"] {
            let run = filtered(&dir, &format!("{command} t.trace ev -o out"), filter).exits(2);
            assert!(run.stderr.starts_with("error: -w:1:"), "{}", run.stderr);
            assert_eq!(dir.read("out"), b"old");
        }
    }
    let run = filtered(&dir, "decode t.trace ev", "disk_read:\n cuont > 1").exits(2);
    assert_eq!(
        run.stderr,
        "error: -w:2:2: disk_read has no argument cuont\n   cuont > 1\n   ^^^^^\nhelp: did you mean count?\n"
    );
    assert_eq!(run.text(), "");
}

#[test]
fn explaining_reads_and_writes_nothing() {
    let mut file = sample::sample(ByteOrder::Little);
    file.extend([0xaa; 100]);
    let dir = Dir::with([("t.trace", &file), ("ev", sample::EVENTS), ("out", b"old")]);
    let expected = "disk_read: disk (void *) == 0x7f00 && count (uint32_t) > 5
left out, without count: 1 event: disk_done
left out, without disk: 3 events: disk_open, idle, never_seen
left out: events that are not declared
";
    for command in ["decode", "slice -o out", "info"] {
        let run =
            filtered(&dir, &format!("{command} t.trace ev --explain-filter"), "disk == 0x7f00 && count > 5").silent();
        assert_eq!(run.text(), expected, "{command}");
    }
    assert_eq!(dir.read("out"), b"old");
    let line = "latency t.trace ev disk_read->disk_done --on disk --explain-filter";
    let run = filtered(&dir, line, "disk_read: count > 5").silent();
    assert_eq!(run.text(), "disk_read: count (uint32_t) > 5\nall records: 1 event: disk_done\n");
    dir.run("decode t.trace ev --explain-filter").exits(2);
}

#[test]
fn a_record_that_is_too_short_is_not_selected_and_told() {
    let file = sample::trace(ByteOrder::Little, |writer| {
        sample::mappings(writer)?;
        writer.event(sample::DONE, 5, 1, &[Value::Pointer(1)])?;
        writer.event(sample::DONE, 6, 1, &[Value::Pointer(1), Value::Signed(-5)])
    });
    let dir = Dir::with([("t.trace", &file), ("ev", sample::EVENTS)]);
    let run = filtered(&dir, "decode t.trace ev -F ndjson", "!(ret == 0)").exits(1);
    assert_eq!(run.ndjson()[0]["ts_ns"], 6);
    assert_eq!(run.lines().len(), 1);
    assert!(
        run.stderr
            .contains("warning: 1 record of disk_done: shorter than declared, the first at offset 135 of t.trace"),
        "{}",
        run.stderr
    );
    // What is asked for is there.
    let run = filtered(&dir, "decode t.trace ev -F ndjson", "disk == 0x1").exits(1);
    assert_eq!(run.lines().len(), 2);
}

#[test]
fn events_without_a_declaration_have_no_arguments_to_ask_for() {
    let file = sample::trace(ByteOrder::Little, |writer| {
        writer.mapping(sample::IDLE, "surprise")?;
        writer.event(sample::IDLE, 5, 1, &[Value::Signed(1)])?;
        writer.event(sample::DONE, 6, 2, &[Value::Signed(1)])
    });
    let dir = Dir::with([("t.trace", &file), ("ev", sample::EVENTS)]);
    let run = filtered(&dir, "decode t.trace ev -F ndjson", "ret == 1").exits(0);
    assert_eq!(run.text(), "");
    let run = filtered(&dir, "decode t.trace ev -F ndjson", "pid == 1").exits(1);
    assert_eq!(names(&run), ["surprise"]);
    assert!(!run.stderr.contains("of unknown event"), "{}", run.stderr);
    let run = filtered(&dir, "decode t.trace ev -F ndjson", "pid == 2").exits(1);
    assert_eq!(run.lines().len(), 1);
    assert!(run.stderr.contains("warning: 1 record of unknown event, the first event 9 at offset"), "{}", run.stderr);
    // Without any declarations.
    let dir = Dir::with([("t.trace", &file)]);
    let run = filtered(&dir, "decode t.trace -F ndjson", "event == \"surprise\"");
    assert_eq!(names(&run), ["surprise"]);
    let run = filtered(&dir, "decode t.trace -F ndjson", "x == 1").exits(2);
    assert!(
        run.stderr.contains("no trace-events file was given or found, so no arguments are known\n"),
        "{}",
        run.stderr
    );
}

#[test]
fn an_event_whose_types_differ_is_left_out_and_told_if_it_has_records() {
    let events = b"a(int ret) \"\"\nb(uint32_t ret) \"\"\nc(uint32_t ret) \"\"\n";
    let file = sample::trace(ByteOrder::Little, |writer| {
        writer.mapping(sample::DONE, "a")?;
        writer.mapping(sample::READ, "b")?;
        writer.event(sample::DONE, 5, 1, &[Value::Signed(-5)])?;
        writer.event(sample::READ, 6, 2, &[Value::Signed(1)])
    });
    let dir = Dir::with([("t.trace", &file), ("ev", events)]);
    let run = filtered(&dir, "decode t.trace ev -F ndjson", "ret == -5").exits(0);
    assert_eq!(names(&run), ["a"]);
    assert_eq!(run.stderr, "warning: left out by -w: ret of b is uint32_t, from 0 to 4294967295, and -5 is not\n");
}

/// A version 0 file: records of eight words, of which the header is one.
fn version_0(records: &[[u64; 8]]) -> Vec<u8> {
    let header = [u64::MAX, 0xf2b1_77cb_0aa4_29b4, 0, 0, 0, 0, 0, 0];
    [header].iter().chain(records).flatten().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn in_version_0_strings_have_no_text_to_ask_for() {
    let file = version_0(&[[0, 100, 0x5560, 1, 0, 0, 0, 0], [1, 200, 0xffff_fffb, 0, 0, 0, 0, 0]]);
    let dir = Dir::with([("t.trace", &file), ("ev", b"open(const char *path, int n) \"\"\ndone(int ret) \"\"\n")]);
    let line = "decode t.trace ev -F ndjson --v0-ids all";
    // Behind a string, and as a 32-bit host wrote it.
    assert_eq!(names(&filtered(&dir, line, "n == 1").silent()), ["open"]);
    assert_eq!(names(&filtered(&dir, line, "ret == -5").silent()), ["done"]);
    let run = filtered(&dir, line, "open: path == \"x\" || n == 1").exits(0);
    assert_eq!(names(&run), ["done"]);
    assert_eq!(
        run.stderr,
        "warning: left out by -w: path of open is const char *, of which a version 0 trace has only the address\n"
    );
}
