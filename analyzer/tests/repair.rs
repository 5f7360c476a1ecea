//! `repair`: what is intact in a trace, as a sound file of version 4.

mod support;

use serde_json::{Value as Json, json};
use simpletrace_format::{ByteOrder, DroppedRecord, EventId, Record, SliceReader, Value};
use support::sample::{self, ORDERS};
use support::{Dir, gzip, shared, zstd};

const HARNESS: &str = "damaged/harness.trace-events";
const QEMU: &str = "qemu-8.2/trace-events-all";

/// The damaged files that have a valid header: declarations, the mapping records that are intact, what was marked as missing, and
/// the exit code of `check` on what was written.
///
/// Of a torn file the time is that of the last record; the mappings are those of the README beside the files.
#[rustfmt::skip]
const FILES: [(&str, &str, usize, usize, i32); 34] = [
    ("a-base", HARNESS, 14, 0, 0),
    ("b-base", QEMU, 14, 0, 0),
    ("header-only", HARNESS, 0, 0, 0),
    ("mappings-only", HARNESS, 14, 0, 0),
    ("cut-type-word", HARNESS, 14, 1, 0),
    ("cut-event-id", HARNESS, 14, 1, 0),
    ("cut-length", HARNESS, 14, 1, 0),
    ("cut-pid", HARNESS, 14, 1, 0),
    ("cut-u64-arg", HARNESS, 14, 1, 0),
    ("cut-string-length", HARNESS, 14, 1, 0),
    ("cut-string-body", HARNESS, 14, 1, 0),
    ("cut-mapping-type", HARNESS, 7, 1, 0),
    ("cut-mapping-length", HARNESS, 7, 1, 0),
    ("be-cut-string", HARNESS, 14, 1, 0),
    ("killed-img", QEMU, 443, 1, 0),
    ("zeros-64k", HARNESS, 14, 1, 0),
    ("zeros-mid", HARNESS, 14, 2, 0),
    ("concat-same", HARNESS, 14, 0, 0),
    ("concat-big-endian", HARNESS, 14, 0, 0),
    ("length-0", HARNESS, 14, 2, 0),
    ("length-2g", HARNESS, 14, 2, 0),
    // Nothing is skipped.
    ("length-plus8", HARNESS, 14, 0, 0),
    ("b-length-0", QEMU, 14, 2, 0),
    ("b-length-minus8", QEMU, 14, 2, 0),
    ("garbage-insert", HARNESS, 14, 2, 0),
    ("type-7", HARNESS, 14, 2, 0),
    // What no mapping names stays so.
    ("mapping-length-2g", HARNESS, 13, 2, 1),
    ("id-unmapped", HARNESS, 14, 0, 1),
    ("string-too-long", HARNESS, 14, 0, 0),
    ("name-unknown", HARNESS, 14, 0, 0),
    ("extra-payload", HARNESS, 14, 0, 0),
    // As many as have records.
    ("v0-cut", "old/v0-1.1-s390x.trace-events", 8, 1, 0),
    ("v2-cut-string", "old/v2-1.3-x86_64.trace-events", 12, 1, 0),
    ("v3-length-0", "old/v3-2.5-s390x.trace-events", 15, 2, 0),
];

/// What is said of missing records: a count that is null or 0.
fn is_mark(line: &Json) -> bool {
    line["event"] == "dropped" && (line["args"]["count"].is_null() || line["args"]["count"] == 0)
}

/// As version 4 has it, which version 0 is made to: addresses of strings become text.
fn with_text_for_addresses(line: &mut Json) {
    if let Some(s) = line["args"].get_mut("s")
        && let Some(address) = s.as_u64()
    {
        *s = json!(format!("{address:#x}"));
    }
}

/// Mapping records, and times and counts of the gaps that are marked.
fn marks(file: &[u8]) -> (usize, Vec<(u64, u64)>) {
    let (mut mappings, mut marks) = (0, Vec::new());
    for record in SliceReader::new(file).unwrap() {
        match record.unwrap() {
            Record::Mapping(_) => mappings += 1,
            Record::Dropped(DroppedRecord { timestamp_ns, count: count @ (0 | u64::MAX), .. }) => {
                marks.push((timestamp_ns, count));
            }
            _ => {}
        }
    }
    (mappings, marks)
}

#[test]
fn a_damaged_file_becomes_a_sound_one_with_the_same_records_and_marks_what_is_missing() {
    for (file, events, mappings, marked, check) in FILES {
        let name = format!("damaged/{file}.trace");
        let test = "a_damaged_file_becomes_a_sound_one_with_the_same_records_and_marks_what_is_missing";
        let Some(dir) = shared::traces(test, &name) else { return };
        let out = Dir::new();
        let [repaired, again] = ["repaired", "again"].map(|name| out.path(name).display().to_string());
        let run = dir.run(&format!("repair {name} {events} -o {repaired}")).exits(0);
        assert_eq!(run.text(), "", "{file}");
        dir.run(&format!("check {repaired}")).exits(check);

        let mut before = dir.run(&format!("decode -F ndjson {name} {events}")).ndjson();
        if file.starts_with("v0") {
            before.iter_mut().for_each(with_text_for_addresses);
        }
        let after = dir.run(&format!("decode -F ndjson {repaired} {events}")).ndjson();
        let records: Vec<_> = after.iter().filter(|line| !is_mark(line)).cloned().collect();
        assert_eq!(records, before, "{file}");

        let bytes = out.read("repaired");
        let (found, marks) = marks(&bytes);
        assert_eq!((found, marks.len()), (mappings, marked), "{file}");
        let at = after.iter().position(is_mark).unwrap_or_default();
        let time = |index: usize| after.get(index).map(|line| line["ts_ns"].as_u64().unwrap());
        match marks[..] {
            [] => assert!(!file.starts_with("cut"), "{file}"),
            // No record has a time.
            [torn] if at == 0 => assert_eq!((torn, after.len()), ((0, u64::MAX), 1), "{file}"),
            [torn] => assert_eq!((Some(torn.0), torn.1, at), (time(at - 1), u64::MAX, after.len() - 1), "{file}"),
            [start, end] => {
                let behind = time(at + 2).unwrap();
                // The first record behind the damage of mapping-length-2g is the first of all.
                let before = if at == 0 { Some(behind) } else { time(at - 1) };
                assert_eq!((Some(start.0), start.1), (before, u64::MAX), "{file}");
                assert_eq!(end, (behind, 0), "{file}");
            }
            _ => panic!("{file}: {marks:?}"),
        }
        dir.run(&format!("repair {repaired} {events} -o {again}")).exits(0);
        assert!(out.read("again") == bytes, "{file}: repaired again it is another file");
    }
}

#[test]
fn a_file_that_is_no_trace_leaves_an_old_output_alone() {
    for file in ["empty", "seven-bytes", "wrong-magic", "version-1", "version-5"] {
        let name = format!("damaged/{file}.trace");
        let Some(dir) = shared::traces("a_file_that_is_no_trace_leaves_an_old_output_alone", &name) else { return };
        let out = Dir::with([("old", b"precious")]);
        for command in ["repair", "slice"] {
            dir.run(&format!("{command} {name} {HARNESS} -o {}", out.path("old").display())).exits(2);
            assert_eq!(out.read("old"), b"precious");
        }
    }
}

#[test]
fn an_undamaged_file_of_version_4_stays_as_it_is() {
    for order in ORDERS {
        let file = sample::sample(order);
        let dir = Dir::with([("t.trace", &file[..]), ("t.gz", &gzip(&file)), ("t.zst", &zstd(&file))]);
        for input in ["t.trace", "t.gz", "t.zst"] {
            let run = dir.run(&format!("repair {input} -o out")).exits(0);
            let note = "note: 4 mappings and 5 records written to out\n";
            assert!(run.stderr.ends_with(note), "{}", run.stderr);
            assert!(dir.read("out") == file, "{input}");
        }
        let run = dir.call("repair - -o -").stdin(file.clone()).run().exits(0);
        assert!(run.stdout == file);
    }
}

#[test]
fn old_versions_become_version_4_with_the_values_that_the_program_emitted() {
    for name in ["v0-0.14-x86_64", "v0-0.15-x86_64", "v0-1.1-s390x", "v2-1.3-x86_64", "v3-2.5-s390x", "v3-2.6-x86_64"] {
        let trace = format!("old/{name}.trace");
        let test = "old_versions_become_version_4_with_the_values_that_the_program_emitted";
        let Some(dir) = shared::traces(test, &trace) else { return };
        let out = Dir::new();
        let repaired = out.path("repaired").display().to_string();
        dir.run(&format!("repair {trace} {trace}-events -o {repaired}")).exits(0);
        dir.run(&format!("check {repaired} {trace}-events")).exits(0);

        let emitted: Json = serde_json::from_slice(&dir.expected(&format!("old/{name}.expected.json"))).unwrap();
        let is_v0 = name.starts_with("v0");
        let mut expected = Vec::new();
        for record in emitted["records"].as_array().unwrap() {
            if let Some(event) = record["event"].as_str() {
                let declared = emitted["events"][event].as_array().unwrap();
                let args = declared.iter().zip(record["args"].as_array().unwrap()).map(|(arg, value)| {
                    let is_text = arg[0].as_str().unwrap().starts_with("const char *");
                    match value.as_u64() {
                        Some(address) if is_v0 && is_text => json!(format!("{address:#x}")),
                        _ => value.clone(),
                    }
                });
                let args: Vec<_> = args.collect();
                expected.push((record["ts"].clone(), record["event"].clone(), json!(args)));
            } else if !is_v0 && record.get("dropped").is_some() {
                expected.push((record["ts"].clone(), json!("dropped"), json!([record["dropped"]])));
            }
        }
        let run = dir.run(&format!("decode -F ndjson {repaired} {trace}-events")).exits(0);
        let mut found: Vec<_> = run
            .ndjson()
            .iter()
            .map(|line| {
                let declared = emitted["events"][line["event"].as_str().unwrap()].as_array();
                let names =
                    declared.map_or(vec!["count"], |args| args.iter().map(|arg| arg[1].as_str().unwrap()).collect());
                let args: Vec<_> = names.iter().map(|&name| line["args"][name].clone()).collect();
                (line["ts_ns"].clone(), line["event"].clone(), json!(args))
            })
            .collect();
        let lost = emitted["summary"]["lost"].clone();
        if is_v0 && lost != 0 {
            // Single counts mean nothing there: the whole loss stands at the end.
            let last = expected.last().unwrap().0.clone();
            assert_eq!(found.pop(), Some((last, json!("dropped"), json!([lost]))), "{name}");
        }
        assert_eq!(found.len(), expected.len(), "{name}");
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected, "{name}");
        }
        let info = dir.run(&format!("info {repaired} {trace}-events -F json")).exits(0).json();
        assert_eq!((&info["dropped"], &info["files"][0]["version"]), (&lost, &json!(4)), "{name}");
    }
}

#[test]
fn a_trace_that_does_not_name_its_events_needs_declarations() {
    let trace = "old/v2-1.3-x86_64.trace";
    let Some(shared) = shared::traces("a_trace_that_does_not_name_its_events_needs_declarations", trace) else {
        return;
    };
    let dir = Dir::with([("t.trace", &std::fs::read(shared.path(trace)).unwrap()[..]), ("old", b"precious")]);
    for command in ["repair", "slice"] {
        let run = dir.run(&format!("{command} t.trace -o old")).exits(2);
        let said = "error: t.trace is of version 2 and so does not name its events; \
                    give the trace-events file of the build that wrote it\n";
        assert_eq!(run.stderr, said);
        assert_eq!(dir.read("old"), b"precious");
    }
}

#[test]
fn records_without_a_header_get_one_and_names() {
    for order in ORDERS {
        let args = [Value::Pointer(0x7f00), Value::Unsigned(9), Value::Unsigned(8)];
        let file = sample::trace(order, |writer| {
            writer.event(EventId(1), 5, 1, &args)?;
            writer.event(EventId(3), 6, 1, &[])?;
            writer.event(EventId(1), 7, 1, &args)
        });
        let expected = sample::trace(order, |writer| {
            writer.mapping(EventId(1), "disk_read")?;
            writer.event(EventId(1), 5, 1, &args)?;
            writer.mapping(EventId(3), "idle")?;
            writer.event(EventId(3), 6, 1, &[])?;
            writer.event(EventId(1), 7, 1, &args)
        });
        let dir = Dir::with([("t.stp", &file[24..]), ("ev", sample::EVENTS)]);
        dir.run("repair --no-header t.stp ev -o out").exits(0);
        assert!(dir.read("out") == expected);
        let run = dir.run("repair --no-header t.stp -o out").exits(2);
        assert!(run.stderr.starts_with("error: t.stp has no header and so does not name its events"), "{}", run.stderr);
    }
}

/// Two files with one id map: `a` and `b` in the first, `b`, `c` and an id without a name in the second.
fn two_builds(second: ByteOrder) -> Vec<u8> {
    let mut file = sample::trace(ByteOrder::Little, |writer| {
        writer.mapping(EventId(0), "a")?;
        writer.mapping(EventId(1), "b")?;
        writer.event(EventId(0), 1, 1, &[Value::Signed(-5)])?;
        writer.event(EventId(1), 2, 1, &[Value::String(b"one")])
    });
    file.extend(sample::trace(second, |writer| {
        writer.mapping(EventId(0), "b")?;
        writer.mapping(EventId(1), "c")?;
        writer.event(EventId(0), 3, 1, &[Value::String(b"two")])?;
        writer.event(EventId(1), 4, 1, &[Value::Unsigned(7)])?;
        writer.event(EventId(2), 5, 1, &[])
    }));
    file
}

#[test]
fn files_one_behind_the_other_get_one_id_map() {
    let expected = sample::trace(ByteOrder::Little, |writer| {
        writer.mapping(EventId(0), "a")?;
        writer.mapping(EventId(1), "b")?;
        writer.event(EventId(0), 1, 1, &[Value::Signed(-5)])?;
        writer.event(EventId(1), 2, 1, &[Value::String(b"one")])?;
        writer.mapping(EventId(2), "c")?;
        writer.event(EventId(1), 3, 1, &[Value::String(b"two")])?;
        writer.event(EventId(2), 4, 1, &[Value::Unsigned(7)])?;
        // The second file's id 2 has no name, and must not get that of another.
        writer.event(EventId(3), 5, 1, &[])
    });
    for order in ORDERS {
        let dir =
            Dir::with([("t.trace", &two_builds(order)[..]), ("ev", b"a(int x)\nb(const char *s)\nc(uint64_t n)\n")]);
        dir.run("repair t.trace ev -o out").exits(0);
        assert!(dir.read("out") == expected, "{order:?}");
    }
}

#[test]
fn what_cannot_be_turned_to_the_other_byte_order_is_left_out_and_counted() {
    let dir = Dir::with([("t.trace", &two_builds(ByteOrder::Big)[..]), ("ev", b"a(int x)\nb(const char *s)\n")]);
    let run = dir.run("repair t.trace ev -o out").exits(1);
    let warning = "warning: 1 record left out, the first at offset ";
    assert!(run.stderr.contains(warning), "{}", run.stderr);
    assert!(run.stderr.contains("take the trace-events-all of the build that wrote the trace"), "{}", run.stderr);
    let events = dir.run("decode -F ndjson out ev").ndjson();
    let events: Vec<_> = events.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["a", "b", "b", "event 3"]);
    // The same order needs no declaration.
    dir.write("t.trace", two_builds(ByteOrder::Little));
    dir.run("repair t.trace -o out").exits(0);
}

#[test]
fn a_torn_record_that_has_taken_in_the_header_behind_it_is_cut_off() {
    let long = [b'x'; 200];
    let mut file = sample::trace(ByteOrder::Little, |writer| {
        writer.mapping(EventId(0), "b")?;
        for time in 1..4 {
            writer.event(EventId(0), time, 1, &[Value::String(&long)])?;
        }
        Ok(())
    });
    file.truncate(file.len() - 150);
    file.extend(sample::trace(ByteOrder::Little, |writer| {
        writer.mapping(EventId(0), "c")?;
        for time in 11..20 {
            writer.event(EventId(0), time, 1, &[Value::Unsigned(time)])?;
        }
        Ok(())
    }));
    let expected = sample::trace(ByteOrder::Little, |writer| {
        writer.mapping(EventId(0), "b")?;
        for time in 1..3 {
            writer.event(EventId(0), time, 1, &[Value::String(&long)])?;
        }
        writer.mapping(EventId(1), "c")?;
        writer.dropped(3, 1, DroppedRecord::UNKNOWN)?;
        writer.dropped(11, 1, 0)?;
        for time in 11..20 {
            writer.event(EventId(1), time, 1, &[Value::Unsigned(time)])?;
        }
        Ok(())
    });
    let dir = Dir::with([("t.trace", &file[..])]);
    dir.run("repair t.trace -o out").exits(0);
    assert!(dir.read("out") == expected, "{}", dir.run("decode out").text());
    dir.run("check out").exits(0);
}

#[test]
fn outputs_that_cannot_be_are_errors() {
    let dir = Dir::with([("t.trace", &sample::sample(ByteOrder::Little)[..])]);
    for command in ["repair", "slice"] {
        let run = dir.run(&format!("{command} t.trace -o t.trace")).exits(2);
        assert_eq!(run.stderr, "error: output t.trace is also an input, and would be lost\n");
        let run = dir.run(&format!("{command} t.trace -o absent/out")).exits(2);
        assert!(run.stderr.starts_with("error: cannot create absent/out: "), "{}", run.stderr);
        let run = dir.run(&format!("{command} t.trace -o /dev/full")).exits(2);
        assert!(run.stderr.starts_with("error: cannot write to /dev/full: "), "{}", run.stderr);
        dir.run(&format!("{command} t.trace")).exits(2);
    }
    assert_eq!(dir.read("t.trace"), sample::sample(ByteOrder::Little));
    dir.write("u.trace", sample::sample(ByteOrder::Little));
    let run = dir.run("repair t.trace u.trace -o out").exits(2);
    assert_eq!(run.stderr, "error: repair takes one trace; `simpletrace-rs slice` makes one of several\n");
}

#[test]
fn a_standard_output_that_is_an_input_is_refused_before_it_grows() {
    let dir = Dir::with([("t.trace", &sample::sample(ByteOrder::Little)[..])]);
    let run = dir.call("repair t.trace -o -").run_with(|command| {
        let file = std::fs::OpenOptions::new().append(true).open(dir.path("t.trace")).unwrap();
        command.stdout(file).stderr(std::process::Stdio::piped());
    });
    assert_eq!(run.exits(2).stderr, "error: output standard output is also an input, and would be lost\n");
    assert_eq!(dir.read("t.trace"), sample::sample(ByteOrder::Little));
}

#[cfg(unix)]
#[test]
fn an_output_that_cannot_be_finished_leaves_the_old_one_and_nothing_else() {
    let dir = Dir::new();
    // 4 MB, of which no more than 64 KiB may be written.
    let big = sample::trace(ByteOrder::Little, |writer| {
        sample::mappings(writer)?;
        (0..100_000).try_for_each(|at_ns| writer.event(sample::IDLE, at_ns, 7, &[]))
    });
    dir.write("big.trace", big);
    dir.write("out", "old");
    let program = env!("CARGO_BIN_EXE_simpletrace-rs");
    let output = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 128; exec \"$0\" repair big.trace -o out", program])
        .current_dir(dir.path(""))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("error: cannot write to out: File too large"), "{said}");
    assert_eq!(dir.read("out"), b"old");
    let mut names: Vec<_> = std::fs::read_dir(dir.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["big.trace", "out"]);
}

#[cfg(unix)]
#[test]
fn an_output_that_replaces_another_is_as_accessible_as_that_and_where_a_link_points() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let dir = Dir::with([("t.trace", &sample::sample(ByteOrder::Little)[..]), ("out", b"old")]);
    std::fs::set_permissions(dir.path("out"), std::fs::Permissions::from_mode(0o640)).unwrap();
    symlink("out", dir.path("link")).unwrap();
    dir.run("repair t.trace -o link").exits(0);
    assert_eq!(dir.read("out"), sample::sample(ByteOrder::Little));
    assert_eq!(std::fs::metadata(dir.path("out")).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(dir.path("link").is_symlink());
}

#[test]
fn a_reserved_id_in_version_0_is_left_out_and_all_else_kept() {
    let Some(traces) = shared::traces("a_reserved_id_in_version_0", "old/v0-0.14-x86_64.trace") else { return };
    let mut file = traces.read("old/v0-0.14-x86_64.trace");
    // The id of a record somewhere; they are 64 bytes each, the header too.
    let at = 64 * 180;
    file[at..at + 8].copy_from_slice(&(1u64 << 63).to_le_bytes());
    let dir = Dir::with([("t.trace", &file[..]), ("ev", &traces.read("old/v0-0.14-x86_64.trace-events"))]);
    let before = dir.run("decode t.trace ev -F ndjson");
    for command in ["repair", "slice"] {
        let run = dir.run(&format!("{command} t.trace ev -o out")).exits(1);
        assert!(run.stderr.contains("1 record left out, the first at offset 11520 of t.trace"), "{}", run.stderr);
        let after = dir.run("decode out ev -F ndjson").exits(0);
        let events =
            |run: &support::program::Run| run.ndjson().iter().filter(|line| line["event"] != "dropped").count();
        assert_eq!(events(&after), events(&before) - 1);
    }
}

#[test]
fn an_unknown_count_is_unknown_everywhere_but_for_compat() {
    let file = sample::trace(ByteOrder::Little, |writer| {
        sample::mappings(writer)?;
        writer.event(sample::IDLE, 1_000, 7, &[])?;
        writer.dropped(1_000, 7, DroppedRecord::UNKNOWN)?;
        writer.dropped(3_000, 7, 0)?;
        writer.event(sample::IDLE, 3_000, 7, &[])?;
        Ok(writer.dropped(4_000, 7, 5)?)
    });
    let dir = Dir::with([("t.trace", &file[..]), ("ev", sample::EVENTS)]);
    for (format, line) in [
        ("text", "[0.000001000 +0.000000000] 7 dropped count=unknown"),
        ("log", "dropped an unknown number of events"),
        ("csv", "1000,7,dropped,\"{\"\"count\"\":null}\""),
        ("ndjson", "{\"ts_ns\":1000,\"pid\":7,\"event\":\"dropped\",\"args\":{\"count\":null}}"),
        ("compat", "Dropped_Event 0.000 pid=7 num_events_dropped=0xffffffffffffffff"),
    ] {
        let run = dir.run(&format!("decode t.trace ev -F {format}")).exits(0);
        assert!(run.lines().contains(&line), "{format}: {}", run.text());
        let said = "note: 5 events were dropped by the recorder, in 1 gap\n\
                    note: an unknown number of events is missing in 1 gap\n";
        assert_eq!(run.stderr, said);
    }
    let table = dir.run("decode t.trace ev -F table").exits(0);
    assert!(table.text().contains("count=unknown"), "{}", table.text());
    let info = dir.run("info t.trace ev -F json").exits(0).json();
    assert_eq!([&info["dropped"], &info["gap_count"], &info["unknown_gaps"]], [5, 3, 1]);
    assert_eq!(info["gaps"][0], json!({"noticed_ns": 1000, "count": null}));
    let info = dir.run("info t.trace ev").exits(0);
    assert!(info.text().contains("3, 5 events dropped and an unknown number in 1 of them\n"), "{}", info.text());
    let check = dir.run("check t.trace ev").exits(0);
    assert_eq!(check.text(), "sound, and as declared: 4 mappings, 2 events, 3 dropped records, 319 bytes understood\n");
}
