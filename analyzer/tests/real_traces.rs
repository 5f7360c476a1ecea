//! Traces that real QEMUs wrote, against what other programs say is in them.
//!
//! The traces and the expectations lie outside the project, see [`support::shared`].

mod support;

use serde_json::{Map, Value as Json, json};
use support::{assert_same_lines, csv, shared};

const TRACES: [(&str, &str); 6] = [
    ("qemu-8.2/img-convert.trace", "qemu-8.2/trace-events-all"),
    ("qemu-8.2/vm-virtio-blk.trace.zst", "qemu-8.2/trace-events-all"),
    ("qemu-8.2/kvm-blk.trace", "qemu-8.2/trace-events-all"),
    ("qemu-10.2/img-convert.trace", "qemu-10.2/trace-events-all"),
    ("old/v4-8.2-x86_64.trace", "old/v4-8.2-x86_64.trace-events"),
    ("old/v4-8.2-s390x.trace", "old/v4-8.2-s390x.trace-events"),
];

fn compat_is_simpletrace_pys_output(test: &str, trace: &str, events: &str, printed: &str) {
    let Some(dir) = shared::traces(test, trace) else { return };
    let run = dir.run(&format!("decode {trace} {events} -F compat")).exits(0);
    assert_same_lines(&run.stdout, &dir.expected(printed), trace);
}

macro_rules! compat {
    ($($name:ident: $trace:literal, $events:literal, $printed:literal;)*) => {$(
        #[test]
        fn $name() {
            compat_is_simpletrace_pys_output(stringify!($name), $trace, $events, $printed);
        }
    )*};
}

compat! {
    compat_of_img_convert: "qemu-8.2/img-convert.trace", "qemu-8.2/trace-events-all", "qemu-8.2/img-convert.txt";
    compat_of_a_booting_guest:
        "qemu-8.2/vm-virtio-blk.trace.zst", "qemu-8.2/trace-events-all", "qemu-8.2/vm-virtio-blk.txt.zst";
    compat_of_a_kvm_guest: "qemu-8.2/kvm-blk.trace", "qemu-8.2/trace-events-all", "qemu-8.2/kvm-blk.txt.zst";
    compat_of_img_convert_10_2: "qemu-10.2/img-convert.trace", "qemu-10.2/trace-events-all", "qemu-10.2/img-convert.txt";
    compat_of_the_writer_on_x86_64:
        "old/v4-8.2-x86_64.trace", "old/v4-8.2-x86_64.trace-events", "old/v4-8.2-x86_64.txt";
    compat_of_the_writer_on_s390x: "old/v4-8.2-s390x.trace", "old/v4-8.2-s390x.trace-events", "old/v4-8.2-s390x.txt";
}

#[test]
fn log_is_what_the_log_backend_wrote_in_the_same_run() {
    let trace = "qemu-8.2/vm-virtio-blk.trace.zst";
    let Some(dir) = shared::traces("log_is_what_the_log_backend_wrote_in_the_same_run", trace) else { return };
    let run = dir.run(&format!("decode {trace} qemu-8.2/trace-events-all -F log")).silent();
    let logged = dir.expected("qemu-8.2/vm-virtio-blk.log.zst");
    // `TID@SECONDS.MICROS:` stands before each event.
    let without_prefix = |line: &[u8]| {
        let colon = line.iter().position(|&byte| byte == b':').expect("a prefix");
        line[colon + 1..].to_vec()
    };
    let expected: Vec<u8> = logged.split_inclusive(|&byte| byte == b'\n').flat_map(without_prefix).collect();
    assert_same_lines(&run.stdout, &expected, trace);
}

#[test]
fn ndjson_has_the_values_that_the_program_emitted() {
    for name in [
        "v0-0.14-x86_64",
        "v0-0.15-x86_64",
        "v0-1.1-s390x",
        "v2-1.3-x86_64",
        "v3-2.5-s390x",
        "v3-2.6-x86_64",
        "v4-8.2-x86_64",
        "v4-8.2-s390x",
    ] {
        let trace = format!("old/{name}.trace");
        let Some(dir) = shared::traces("ndjson_has_the_values_that_the_program_emitted", &trace) else { return };
        let run = dir.run(&format!("decode {trace} {trace}-events -F ndjson")).exits(0);

        let emitted: Json = serde_json::from_slice(&dir.expected(&format!("old/{name}.expected.json"))).unwrap();
        let expected: Vec<Json> = emitted["records"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|record| record.get("map").is_none())
            .map(|record| as_ndjson(record, &emitted["events"]))
            .collect();
        let found = run.ndjson();
        for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert_eq!(found, expected, "{name}, record {index}");
        }
        assert_eq!(found.len(), expected.len());
    }
}

/// What a record of `expected.json` is in our schema.
fn as_ndjson(record: &Json, events: &Json) -> Json {
    let (event, args) = match record.get("dropped") {
        Some(count) => (&json!("dropped"), json!({ "count": count })),
        None => {
            let event = &record["event"];
            let declared = events[event.as_str().unwrap()].as_array().unwrap();
            let values = record["args"].as_array().unwrap();
            assert_eq!(declared.len(), values.len());
            let args = declared.iter().zip(values);
            (event, args.map(|(arg, value)| (arg[1].as_str().unwrap().to_owned(), value.clone())).collect())
        }
    };
    // Versions 0 and 2 have none.
    let pid = record.get("pid").filter(|pid| !pid.is_null()).cloned().unwrap_or(json!(0));
    json!({ "ts_ns": record["ts"], "pid": pid, "event": event, "args": args })
}

#[test]
fn the_machine_formats_agree() {
    for (trace, events) in TRACES {
        let Some(dir) = shared::traces("the_machine_formats_agree", trace) else { return };
        let decode = |format: &str| dir.run(&format!("decode {trace} {events} -F {format}")).exits(0);
        let lines = decode("ndjson").ndjson();

        let document = decode("json").json();
        assert_eq!(document["schema"], "simpletrace-rs.decode/1");
        assert!(document["records"].as_array() == Some(&lines), "json and ndjson of {trace} differ");

        let csv = decode("csv");
        let mut rows = csv::rows(csv.text()).into_iter();
        assert_eq!(rows.next().unwrap(), ["ts_ns", "pid", "event", "args"]);
        let rows: Vec<Json> = rows.map(|row| csv_as_ndjson(&row)).collect();
        for (index, (row, line)) in rows.iter().zip(&lines).enumerate() {
            assert_eq!(row, line, "{trace}, row {index}");
        }
        assert_eq!(rows.len(), lines.len());
    }
}

fn csv_as_ndjson(row: &[String]) -> Json {
    let [ts_ns, pid, event, args] = row else { panic!("{row:?}") };
    let integer = |cell: &str| cell.parse::<u64>().unwrap();
    let args: Map<String, Json> = serde_json::from_str(args).unwrap();
    json!({ "ts_ns": integer(ts_ns), "pid": integer(pid), "event": event, "args": args })
}

#[test]
fn a_named_event_has_columns_that_agree_with_ndjson() {
    for (trace, events, event) in [
        ("qemu-8.2/kvm-blk.trace", "qemu-8.2/trace-events-all", "virtio_blk_req_complete"),
        ("qemu-8.2/img-convert.trace", "qemu-8.2/trace-events-all", "bdrv_open_common"),
        ("qemu-10.2/img-convert.trace", "qemu-10.2/trace-events-all", "bdrv_open_common"),
        ("old/v4-8.2-s390x.trace", "old/v4-8.2-s390x.trace-events", "h_ten"),
    ] {
        let Some(dir) = shared::traces("a_named_event_has_columns_that_agree_with_ndjson", trace) else { return };
        let decode = |format: &str| dir.run(&format!("decode {trace} {events} -e {event} -F {format}"));
        let lines = decode("ndjson").ndjson();
        assert!(!lines.is_empty(), "{trace} has no {event}");
        let csv = decode("csv");
        let rows = csv::rows(csv.text());
        let (header, rows) = rows.split_first().unwrap();
        assert_eq!(header[..3], ["ts_ns", "pid", "event"]);
        assert_eq!(rows.len(), lines.len(), "{trace}");
        for (row, line) in rows.iter().zip(&lines) {
            let args = header[3..].iter().map(|name| &line["args"][name]);
            let expected = [&line["ts_ns"], &line["pid"], &line["event"]].into_iter().chain(args);
            for (cell, value) in row.iter().zip(expected) {
                // Bytes that are not UTF-8 are written otherwise in a cell; machine_formats.rs has them.
                if !value.is_object() {
                    assert_eq!(*cell, value.as_str().map_or(value.to_string(), str::to_owned), "{trace}");
                }
            }
        }
    }
}

#[test]
fn real_traces_are_sound_and_as_declared() {
    for (trace, events) in TRACES {
        let Some(dir) = shared::traces("real_traces_are_sound_and_as_declared", trace) else { return };
        let run = dir.run(&format!("check {trace} {events}")).exits(0);
        assert!(run.text().starts_with("sound, and as declared: "), "{trace}: {}", run.text());
    }
}
