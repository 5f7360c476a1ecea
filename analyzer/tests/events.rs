//! `events`: lists and searches declarations, and says what does not fit between them and a trace.

mod support;

use serde_json::json;
use simpletrace_format::{ByteOrder, EventId, Value};
use support::sample::{self, ORDERS};
use support::{Dir, shared};

fn declarations() -> Dir {
    Dir::with([("ev", sample::EVENTS)])
}

#[test]
fn declarations_are_listed_with_file_and_line() {
    assert_eq!(
        declarations().run("events ev").silent().lines(),
        [
            r#"ev:2: disk_open(const char *path, bool read_only) "path=%s ro=%d""#,
            r#"ev:3: disk_read(void *disk, uint64_t sector, uint32_t count) "disk %p sector %" PRIu64 " count %u""#,
            r#"ev:4: disk_done(void *disk, int ret) "disk %p ret %d""#,
            r#"ev:5: idle(void) "nothing to do""#,
            r#"ev:6: never_seen(int x) "x=%d""#,
        ]
    );
}

#[test]
fn patterns_and_words_narrow_the_list() {
    let dir = declarations();
    for (options, expected) in [
        ("-e disk_*", &["disk_open", "disk_read", "disk_done"][..]),
        ("-e -disk_*", &["idle", "never_seen"]),
        ("-s sector", &["disk_read"]),
        ("--search bool", &["disk_open"]),
        ("-s disk -e *_done", &["disk_done"]),
        ("-s uint64_t", &["disk_read"]),
    ] {
        let run = dir.run(&format!("events ev -F json {options}")).silent();
        let found =
            run.json()["events"].as_array().unwrap().iter().map(|event| event["name"].clone()).collect::<Vec<_>>();
        assert_eq!(found, expected, "{options}");
        assert_eq!(dir.run(&format!("events ev {options}")).silent().lines().len(), expected.len());
    }
}

#[test]
fn an_empty_list_is_explained() {
    let run = declarations().run("events ev -s nonsense").exits(0);
    assert_eq!((run.text(), run.stderr.as_str()), ("", "note: none of 5 declarations matches\n"));
}

#[test]
fn json_has_arguments_with_their_c_types() {
    let dir = Dir::with([("ev", b"disable off(unsigned int n, const char *s) \"n=%u s=%s\"\nvoid_one(void)\n")]);
    assert_eq!(
        dir.run("events ev -F json").exits(0).json(),
        json!({
            "schema": "simpletrace-rs.events/1",
            "events": [
                {"name": "off", "file": "ev", "line": 1, "disabled": true, "format": "\"n=%u s=%s\"",
                    "args": [{"name": "n", "type": "unsigned int"}, {"name": "s", "type": "const char *"}]},
                {"name": "void_one", "file": "ev", "line": 2, "disabled": false, "format": null, "args": []},
            ],
        })
    );
}

#[test]
fn several_files_are_one_list() {
    let dir = declarations();
    dir.write("more", b"more(int x) \"%d\"\n");
    assert_eq!(*dir.run("events ev more").silent().lines().last().unwrap(), r#"more:1: more(int x) "%d""#);
}

#[test]
fn faults_are_shown_with_line_column_and_source() {
    let dir = Dir::with([("ev", b"good(void) \"\"\nwrong(int x \"%d\"\n\nwrong_too(int x \"%d\"\n")]);
    let run = dir.run("events ev").exits(1);
    assert!(run.text().starts_with("ev:1: good(void)"), "{}", run.text());
    for place in ["error: ev:2:", "error: ev:4:"] {
        assert!(run.stderr.contains(place), "{}", run.stderr);
    }
    assert!(run.stderr.contains("  wrong(int x \"%d\"\n"), "{}", run.stderr);
}

#[test]
fn many_faults_are_cut_short() {
    let dir = Dir::with([("ev", "nonsense\n".repeat(5000).as_bytes())]);
    let run = dir.run("events ev").exits(1);
    assert_eq!(run.stderr.matches("error: ev:").count(), 20);
    assert!(run.stderr.ends_with("note: ev: 4980 more of these not shown\n"), "{}", run.stderr);
}

#[test]
fn an_event_declared_twice_is_pointed_out_if_its_arguments_differ() {
    let dir = Dir::with([
        ("a", b"one(int x) \"%d\"\ntwo(int x) \"%d\"\n"),
        ("b", b"one(int x) \"%d\"\ntwo(const char *x) \"%s\"\n"),
    ]);
    let run = dir.run("events a b").exits(0);
    assert_eq!(
        run.stderr,
        "warning: two is declared with other arguments at a:2 and b:2; the later declaration counts\n"
    );
}

#[test]
fn what_does_not_fit_a_trace_is_listed_event_by_event() {
    let pointer = Value::Pointer(1);
    for order in ORDERS {
        let file = sample::trace(order, |writer| {
            sample::mappings(writer)?;
            writer.mapping(EventId(20), "other")?;
            writer.mapping(EventId(21), "unused")?;
            writer.event(sample::IDLE, 5, 1, &[])?;
            writer.event(sample::DONE, 5, 1, &[pointer, pointer])?;
            writer.event(sample::DONE, 5, 1, &[pointer])?;
            writer.event(sample::READ, 5, 1, &[pointer; 4])?;
            writer.event(EventId(20), 5, 1, &[])?;
            writer.event(EventId(77), 5, 1, &[])
        });
        let dir = Dir::with([("t.trace", &file), ("ev", sample::EVENTS)]);
        // The files may stand in any order.
        for line in ["events t.trace ev", "events ev t.trace"] {
            let run = dir.run(line).exits(1);
            assert_eq!(
                run.lines(),
                [
                    "not all events fit: 2 have records as declared, 4 do not",
                    "disk_done: 1 of 2 records: shorter than declared, the first at offset 266 of t.trace",
                    "disk_read: 1 of 1 records: longer than declared, the first at offset 306 of t.trace",
                    "other: 1 of 1 records: not declared, the first at offset 370 of t.trace",
                    "event 77: 1 of 1 records: no mapping record names it",
                    "mapped names that are not declared, and have no records: 1",
                ],
                "{order:?}"
            );
        }
        let fault = |event: &str, fault: &str, records: u64, first: Option<&str>| json!({"event": event, "fault": fault, "records": records, "faulty_records": 1, "first": first, "nearest": null});
        assert_eq!(
            dir.run("events t.trace ev -F json").exits(1).json(),
            json!({
                "schema": "simpletrace-rs.fit/1",
                "as_declared": 2,
                "undeclared_without_records": 1,
                "faults": [
                    fault("disk_done", "shorter", 2, Some("offset 266 of t.trace")),
                    fault("disk_read", "longer", 1, Some("offset 306 of t.trace")),
                    fault("other", "undeclared", 1, Some("offset 370 of t.trace")),
                    fault("event 77", "unmapped", 1, None),
                ],
            })
        );
    }
}

#[test]
fn a_trace_that_fits_is_said_to() {
    let dir = Dir::with([("t.trace", &sample::sample(ByteOrder::Little)), ("ev", sample::EVENTS)]);
    assert_eq!(dir.run("events t.trace ev").exits(0).text(), "all events fit: 4 have records as declared, 0 do not\n");
}

#[test]
fn a_disabled_event_that_was_recorded_is_pointed_out() {
    let file = sample::trace(ByteOrder::Little, |writer| {
        writer.mapping(EventId(1), "off")?;
        writer.event(EventId(1), 5, 1, &[])
    });
    let dir = Dir::with([("t.trace", &file), ("ev", b"disable off(void) \"\"\n")]);
    let run = dir.run("events t.trace ev").exits(0);
    assert!(run.text().contains("off: 1 of 1 records: declared `disable`, so not to be expected\n"), "{}", run.text());
}

#[test]
fn a_trace_alone_is_not_enough() {
    let dir =
        Dir::with([("t.trace", &sample::sample(ByteOrder::Little)), ("u.trace", &sample::sample(ByteOrder::Little))]);
    assert_eq!(dir.run("events t.trace").exits(2).stderr, "error: t.trace is a trace, not a trace-events file\n");
    assert_eq!(
        dir.run("events t.trace u.trace").exits(2).stderr,
        "error: no trace-events file among the files given\n"
    );
}

#[test]
fn a_search_is_refused_when_a_trace_is_given() {
    let dir = Dir::with([("t.trace", &sample::sample(ByteOrder::Little)), ("ev", sample::EVENTS)]);
    let run = dir.run("events t.trace ev -s disk").exits(2);
    assert_eq!(run.stderr, "error: --search is for listing declarations, without a trace\n");
}

#[test]
fn qemus_own_declarations_are_listed_without_a_fault() {
    let path = "qemu-8.2/trace-events-all";
    let Some(dir) = shared::traces("qemus_own_declarations_are_listed_without_a_fault", path) else { return };
    let run = dir.run(&format!("events {path}")).exits(0);
    assert!(!run.stderr.contains("error: "), "{}", run.stderr);
    assert_eq!(run.lines().len(), 5507);
}
