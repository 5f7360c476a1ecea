//! Traces of versions 0, 2 and 3, and without a header.

mod support;

use std::collections::BTreeMap;

use serde_json::Value as Json;
use simpletrace_format::{ByteOrder, EventId, Value};
use support::{Dir, sample, shared};

#[test]
fn info_tells_how_ids_were_given_a_meaning() {
    let rule = "info_tells_how_ids_were_given_a_meaning";
    for (name, ids) in [
        ("v0-0.15-x86_64", "ids count all declarations, since the declarations without 'disable' do not fit"),
        ("v0-1.1-s390x", "ids count the declarations without 'disable', since all declarations do not fit"),
        ("v2-1.3-x86_64", "ids count the declarations without 'disable', as in all files of this version"),
        ("v3-2.5-s390x", "ids count all declarations, as in all files of this version"),
    ] {
        let trace = format!("old/{name}.trace");
        let Some(dir) = shared::traces(rule, &trace) else { return };
        let info = dir.run(&format!("info {trace} {trace}-events -F json")).exits(0).json();
        assert!(info["files"][0]["ids"].as_str().unwrap().starts_with(ids), "{name}: {info}");
        assert_eq!(info["files"][0]["version"], name[1..2].parse::<u64>().unwrap());
        dir.run(&format!("check {trace} {trace}-events")).exits(0);
    }
}

/// What was lost, from the summaries of the programs that wrote the files: counts of version 0 are modulo 2^32.
#[test]
fn losses_add_up() {
    for (name, lost) in [
        ("v0-0.14-x86_64", 0),
        ("v0-0.15-x86_64", 87),
        ("v0-1.1-s390x", 87),
        ("v2-1.3-x86_64", 262),
        ("v3-2.6-x86_64", 57),
        ("v3-2.5-s390x", 57),
        ("v4-8.2-x86_64", 63),
        ("v4-8.2-s390x", 106),
    ] {
        let trace = format!("old/{name}.trace");
        let Some(dir) = shared::traces("losses_add_up", &trace) else { return };
        let info = dir.run(&format!("info {trace} {trace}-events -F json")).exits(0).json();
        assert_eq!(info["dropped"], lost, "{name}");
        assert!(info["span_ns"].as_u64().unwrap() < 1_000_000_000, "{name}: no gap without a time counts");
    }
}

#[test]
fn version_0_ids_can_be_overruled() {
    let trace = "old/v0-0.14-x86_64.trace";
    let Some(dir) = shared::traces("version_0_ids_can_be_overruled", trace) else { return };
    let events = |option: &str| dir.run(&format!("info {trace} {trace}-events -F json {option}"));
    let inferred = events("").exits(0).json();
    let all = events("--v0-ids all").exits(0).json();
    assert_eq!(all["events"], inferred["events"]);
    assert_eq!(all["files"][0]["ids"], "ids count all declarations, as was asked for");
    // The wrong rule: ids beyond the declarations, and records that do not fit.
    events("--v0-ids enabled").exits(1);
}

/// Files whose ids are counted in different ways, in one command and in one file.
#[test]
fn version_0_ids_are_those_of_each_file() {
    let rule = "version_0_ids_are_those_of_each_file";
    let names = ["v0-1.1-s390x", "v0-0.14-x86_64"];
    let [later, earlier] = names.map(|name| format!("old/{name}.trace"));
    let Some(dir) = shared::traces(rule, &later) else { return };
    let mut expected = BTreeMap::<String, u64>::new();
    for name in names {
        let text = std::fs::read(dir.path(&format!("old/{name}.expected.json"))).unwrap();
        for record in serde_json::from_slice::<Json>(&text).unwrap()["records"].as_array().unwrap() {
            if let Some(event) = record["event"].as_str() {
                *expected.entry(event.to_owned()).or_default() += 1;
            }
        }
    }
    let counts = |line: &str, times: u64| {
        let info = dir.run(&format!("info {line} -F json")).json();
        let mut counts = BTreeMap::<String, u64>::new();
        for event in info["events"].as_array().unwrap() {
            *counts.entry(event["event"].as_str().unwrap().to_owned()).or_default() +=
                event["records"].as_u64().unwrap();
        }
        assert!(counts.values().all(|count| count % times == 0), "{counts:?}");
        counts.into_iter().map(|(name, count)| (name, count / times)).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(counts(&format!("{later} {earlier} {later}-events"), 1), expected);
    assert_eq!(counts(&format!("{earlier} {later} {later}-events"), 1), expected);

    // One behind the other in one file, twice.
    let own = Dir::new();
    let read = |trace: &str| std::fs::read(dir.path(trace)).unwrap();
    for (first, second) in [(&later, &earlier), (&earlier, &later)] {
        own.write("both.trace", [read(first), read(second), read(first), read(second)].concat());
        let both = own.path("both.trace");
        assert_eq!(counts(&format!("{} {later}-events", both.display()), 2), expected);
    }
}

/// One byte of the fourth record makes it one of an id that does not exist; and what fits both rules goes by the file before.
#[test]
fn version_0_ids_are_told_by_what_is_behind_damage_too() {
    let trace = "old/v0-0.14-x86_64.trace";
    let Some(dir) = shared::traces("version_0_ids_are_told_by_what_is_behind_damage_too", trace) else { return };
    let bytes = std::fs::read(dir.path(trace)).unwrap();
    let own = Dir::new();
    let counts = |bytes: &[u8]| {
        own.write("t.trace", bytes);
        let info = dir.run(&format!("info {} {trace}-events -F json", own.path("t.trace").display())).json();
        let events = info["events"].as_array().unwrap().iter();
        events
            .map(|event| (event["event"].as_str().unwrap().to_owned(), event["records"].as_u64().unwrap()))
            .collect::<BTreeMap<_, _>>()
    };
    let whole = counts(&bytes);
    let mut damaged = bytes.clone();
    damaged[4 * 64 + 7] = 0x77;
    let found = counts(&damaged);
    assert_eq!((found["h_last"], found["h_six"], found["h_disabled"]), (1139, 26, 5));
    assert_eq!(found["h_neg"], whole["h_neg"] - 1);
    // The first record of h_str once more, behind a header of its own.
    let string = bytes[64..].chunks(64).find(|record| record[0] == 6).unwrap();
    let found = counts(&[&bytes, &bytes[..64], string].concat());
    assert_eq!((found["h_str"], found["h_six"]), (whole["h_str"] + 1, whole["h_six"]));
}

#[test]
fn a_version_0_trace_from_a_pipe_gets_the_later_rule() {
    let trace = "old/v0-1.1-s390x.trace";
    let Some(dir) = shared::traces("a_version_0_trace_from_a_pipe_gets_the_later_rule", trace) else { return };
    let file = dir.run(&format!("decode {trace} {trace}-events -F ndjson")).exits(0);
    let pipe = dir
        .call(&format!("decode - -F ndjson --events {trace}-events"))
        .stdin(std::fs::read(dir.path(trace)).unwrap())
        .run()
        .exits(0);
    assert!(file.stdout == pipe.stdout);
    let guess = "warning: standard input: ids count the declarations without 'disable', since a pipe cannot be read twice to find out, \
                 so names may be wrong; write it into a file, or say --v0-ids\n";
    assert!(pipe.stderr.contains(guess), "{}", pipe.stderr);
}

#[test]
fn records_without_a_header_are_numbered_by_the_declarations() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let file = sample::trace(order, |writer| {
            writer.event(EventId(1), 5, 1, &[Value::Pointer(0x7f00), Value::Unsigned(9), Value::Unsigned(8)])?;
            writer.event(EventId(3), 6, 1, &[])
        });
        let dir = Dir::with([("t.stp", &file[24..]), ("ev", sample::EVENTS)]);
        let run = dir.run("decode --no-header t.stp ev -F compat").exits(0);
        assert_eq!(run.text(), "disk_read 0.000 pid=1 disk=0x7f00 sector=0x9 count=0x8\nidle 0.001 pid=1 \n");
        dir.run("check --no-header t.stp ev").exits(0);
        dir.run("decode t.stp ev").exits(2);
    }
}

#[test]
fn records_without_a_header_may_name_their_ids() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let file = sample::trace(order, |writer| {
            // First, so that its type tells nothing of the byte order.
            writer.mapping(EventId(0), "idle")?;
            writer.event(EventId(0), 5, 1, &[])?;
            writer.event(EventId(3), 6, 1, &[])?;
            writer.mapping(EventId(50), "disk_read")?;
            writer.event(EventId(50), 7, 1, &[Value::Pointer(0x7f00), Value::Unsigned(9), Value::Unsigned(8)])
        });
        let dir = Dir::with([("t.stp", &file[24..]), ("ev", sample::EVENTS)]);
        let run = dir.run("decode --no-header t.stp ev -F compat").exits(0);
        assert_eq!(
            run.text(),
            "idle 0.000 pid=1 \nidle 0.001 pid=1 \ndisk_read 0.001 pid=1 disk=0x7f00 sector=0x9 count=0x8\n"
        );
        dir.run("check --no-header t.stp ev").exits(0);
    }
}

#[test]
fn without_declarations_old_ids_are_unknown_and_nothing_is_lost() {
    let trace = "old/v2-1.3-x86_64.trace";
    let Some(dir) = shared::traces("without_declarations_old_ids_are_unknown_and_nothing_is_lost", trace) else {
        return;
    };
    let bytes = std::fs::read(dir.path(trace)).unwrap();
    let decode = |line: &str| dir.call(line).stdin(bytes.clone()).run();
    let run = decode("decode - -F ndjson").exits(0);
    assert_eq!(run.lines().len(), 697);
    assert!(run.stderr.starts_with("warning: no trace-events file was given or found"), "{}", run.stderr);
    decode("check -").exits(0);
    // Declarations of fewer events than the trace has.
    let few = Dir::with([("t.trace", &bytes[..]), ("ev", b"h_noarg(void)\n")]);
    let run = few.run("check t.trace ev").exits(1);
    assert!(run.stderr.contains(" records of unknown event, the first event 1 at offset "), "{}", run.stderr);
}
