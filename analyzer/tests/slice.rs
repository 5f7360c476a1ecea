//! `slice`: a part of one or more traces as a file of its own.

mod support;

use std::path::PathBuf;
use std::process::Command;

use simpletrace_format::{ByteOrder, DroppedRecord, EventId, Value};
use support::sample::{self, ORDERS};
use support::{Dir, assert_same_lines, shared};

const OPTIONS: [&str; 12] = [
    "",
    "-e disk_* -e dropped",
    "-e idle -e dropped",
    "-e -dropped",
    "-e -disk_read",
    "-t 1us-",
    "-t -2us",
    "-t 1us+1us",
    "-t @1.0000019-",
    "--pid 10",
    "--limit 2",
    "-e -dropped --limit 2 -t 1us-",
];

#[test]
fn the_records_are_those_that_decode_selects() {
    for order in ORDERS {
        let dir = Dir::with([("t.trace", &sample::sample(order)[..]), ("ev", sample::EVENTS)]);
        for options in OPTIONS {
            dir.run(&format!("slice t.trace ev -o out {options}")).exits(0);
            let expected = dir.run(&format!("decode t.trace ev -F ndjson {options}")).exits(0);
            let found = dir.run("decode out ev -F ndjson").exits(0);
            assert_eq!(found.text(), expected.text(), "{options}");
            dir.run("check out ev").exits(0);
        }
    }
}

#[test]
fn each_name_is_mapped_before_its_first_use_and_no_other() {
    let dir = Dir::with([("t.trace", &sample::sample(ByteOrder::Little)[..]), ("ev", sample::EVENTS)]);
    let run = dir.run("slice t.trace ev -t 1us- -e idle -e disk_done -o out").exits(0);
    assert!(run.stderr.ends_with("note: 2 mappings and 3 records written to out\n"), "{}", run.stderr);
    let expected = sample::trace(ByteOrder::Little, |writer| {
        // What is missing may be of any event.
        writer.dropped(1_000_002_000, 10, 3)?;
        writer.mapping(sample::DONE, "disk_done")?;
        writer.event(sample::DONE, 1_000_001_900, 11, &[Value::Pointer(0x7f00), Value::Signed(-5)])?;
        writer.mapping(sample::IDLE, "idle")?;
        writer.event(sample::IDLE, 3_500_000_000, 11, &[])
    });
    assert!(dir.read("out") == expected);
    // Gaps that were not asked for have no say in the limit.
    dir.run("slice t.trace ev -t 1us- -e idle -e disk_done -n 2 -o limited").exits(0);
    assert!(dir.read("limited") == expected);
    dir.run("slice t.trace ev -n 0 -o none").exits(0);
    assert_eq!(dir.read("none").len(), 24);
}

#[test]
fn several_traces_become_one_with_one_id_map() {
    let first = sample::trace(ByteOrder::Big, |writer| {
        writer.mapping(EventId(0), "a")?;
        writer.event(EventId(0), 1, 1, &[Value::Signed(-5)])
    });
    let second = sample::trace(ByteOrder::Little, |writer| {
        writer.mapping(EventId(0), "b")?;
        writer.mapping(EventId(1), "a")?;
        writer.event(EventId(1), 2, 2, &[Value::Signed(-6)])?;
        writer.event(EventId(0), 3, 2, &[Value::String(b"text")])
    });
    let expected = sample::trace(ByteOrder::Big, |writer| {
        writer.mapping(EventId(0), "a")?;
        writer.event(EventId(0), 1, 1, &[Value::Signed(-5)])?;
        writer.event(EventId(0), 2, 2, &[Value::Signed(-6)])?;
        writer.mapping(EventId(1), "b")?;
        writer.event(EventId(1), 3, 2, &[Value::String(b"text")])
    });
    let dir = Dir::with([("1", &first[..]), ("2", &second[..]), ("ev", b"a(int x)\nb(const char *s)\n")]);
    dir.run("slice 2 1 ev -o out").exits(0);
    assert!(dir.read("out") == expected);
    // Without declarations, what is of the other byte order cannot be turned round.
    std::fs::remove_file(dir.path("ev")).unwrap();
    let run = dir.run("slice 2 1 -o out").exits(1);
    assert!(run.stderr.contains("warning: 2 records left out, the first at offset "), "{}", run.stderr);
}

#[test]
fn damage_within_the_window_is_marked_there_and_no_damage_elsewhere() {
    const S: u64 = 1_000_000_000;
    let mut file = sample::trace(ByteOrder::Little, |writer| {
        writer.mapping(EventId(0), "tick")?;
        for second in 0..5 {
            writer.event(EventId(0), second * S, 1, &[])?;
        }
        Ok(())
    });
    file.extend([0xaa; 100]);
    for second in 8..12 {
        let record = sample::trace(ByteOrder::Little, |writer| writer.event(EventId(0), second * S, 1, &[]));
        file.extend(&record[24..]);
    }
    file.extend([1; 7]);
    let dir = Dir::with([("t.trace", &file[..]), ("ev", b"tick(void)\n")]);
    const UNKNOWN: u64 = DroppedRecord::UNKNOWN;
    for (window, gaps) in [
        ("0-", &[(4 * S, UNKNOWN), (8 * S, 0), (11 * S, UNKNOWN)][..]),
        ("-4s", &[]),
        ("-4001ms", &[(4 * S, UNKNOWN)]),
        ("5s-6s", &[(5 * S, UNKNOWN)]),
        ("5s-9s", &[(5 * S, UNKNOWN), (8 * S, 0)]),
        ("8s-10s", &[(8 * S, UNKNOWN), (8 * S, 0)]),
        ("9s-10s", &[]),
        ("9s-", &[(11 * S, UNKNOWN)]),
    ] {
        for pattern in ["-e tick", "-e *"] {
            dir.run(&format!("slice t.trace ev -o out {pattern} -t {window}")).exits(1);
            let expected = dir.run(&format!("decode t.trace ev -F compat {pattern} -t {window}"));
            let found = dir.run("decode out ev -F ndjson").exits(0);
            let (marks, events): (Vec<_>, Vec<_>) = found.ndjson().into_iter().partition(|l| l["event"] == "dropped");
            let marks: Vec<_> = marks
                .iter()
                .map(|line| (line["ts_ns"].as_u64().unwrap(), line["args"]["count"].as_u64().unwrap_or(UNKNOWN)))
                .collect();
            assert_eq!(marks, gaps, "{window}");
            assert_eq!(events.len(), expected.lines().len(), "{window}");
        }
    }
}

#[test]
fn a_slice_of_an_old_version_has_the_typed_values_of_its_records() {
    for name in ["v2-1.3-x86_64", "v3-2.5-s390x", "v3-2.6-x86_64"] {
        let trace = format!("old/{name}.trace");
        let test = "a_slice_of_an_old_version_has_the_typed_values_of_its_records";
        let Some(dir) = shared::traces(test, &trace) else { return };
        let out = Dir::new();
        let slice = out.path("slice").display().to_string();
        for options in ["-e h_neg -e h_str -e dropped", "-t 1ms+2ms", "-n 100"] {
            dir.run(&format!("slice {trace} {trace}-events {options} -o {slice}")).exits(0);
            let expected = dir.run(&format!("decode -F ndjson {trace} {trace}-events {options}")).exits(0);
            let found = dir.run(&format!("decode -F ndjson {slice} {trace}-events")).exits(0);
            assert_same_lines(&found.stdout, &expected.stdout, options);
        }
    }
}

/// The text of simpletrace.py without the time since the record before, which a selection changes: the second word.
fn without_times(text: &[u8]) -> Vec<String> {
    let line = |line: &str| {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        format!("{name} {}", rest.split_once(' ').map_or("", |(_, rest)| rest))
    };
    String::from_utf8_lossy(text).lines().map(line).collect()
}

#[test]
fn simpletrace_py_prints_of_a_slice_what_it_prints_of_these_records_in_the_whole() {
    let test = "simpletrace_py_prints_of_a_slice_what_it_prints_of_these_records_in_the_whole";
    let Some(script) = std::env::var_os("QEMU_SCRIPTS").map(|folder| PathBuf::from(folder).join("simpletrace.py"))
    else {
        return shared::skip(test, "QEMU_SCRIPTS is not set, so there is no simpletrace.py");
    };
    let stock = |dir: &Dir, events: &str, trace: &str| {
        let run = Command::new("python3").arg(&script).args([dir.path(events), dir.path(trace)]).output().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        without_times(&run.stdout)
    };
    let (trace, events) = ("old/v4-8.2-x86_64.trace", "old/v4-8.2-x86_64.trace-events");
    let Some(dir) = shared::traces(test, trace) else { return };
    let whole = stock(&dir, events, trace);
    let out = Dir::new();
    let path = out.path("out").display().to_string();
    let slice = |options: &str| {
        dir.run(&format!("slice {trace} {events} -o {path} {options}")).exits(0);
        stock(&dir, events, &path)
    };
    let is_of = |names: &'static [&str]| move |line: &&String| names.contains(&line.split(' ').next().unwrap());
    let select = |names| whole.iter().filter(is_of(names)).cloned().collect::<Vec<_>>();

    assert_eq!(slice(""), whole);
    assert_eq!(slice("-e h_str -e h_neg"), select(&["h_str", "h_neg", "Dropped_Event"]));
    assert_eq!(slice("-e h_mix -e -dropped"), select(&["h_mix"]));
    assert_eq!(slice("--limit 100"), whole[..100]);
    let pid = whole[0].split(' ').find(|word| word.starts_with("pid=")).unwrap()[4..].to_owned();
    assert_eq!(slice(&format!("--pid {pid}")), whole);
    assert_eq!(slice("--pid 1"), [""; 0]);
    // A window by the times of decode, which real_traces.rs holds to what the program emitted.
    let times = dir.run(&format!("decode -F ndjson {trace} {events}")).exits(0).ndjson();
    let times: Vec<_> = times.iter().map(|line| line["ts_ns"].as_u64().unwrap()).collect();
    let (from, end) = (times[200], times[700]);
    let within = whole.iter().zip(&times).filter(|(_, time)| (from..end).contains(time)).map(|(line, _)| line.clone());
    assert_eq!(slice(&format!("-t @{from}ns-@{end}ns")), within.collect::<Vec<_>>());

    // What was repaired and what was put together it reads, too.
    for (damaged, records) in
        [("zeros-mid", 92), ("concat-same", 131), ("concat-big-endian", 137), ("v2-cut-string", 68)]
    {
        let events =
            if damaged.starts_with("v2") { "old/v2-1.3-x86_64.trace-events" } else { "damaged/harness.trace-events" };
        dir.run(&format!("repair damaged/{damaged}.trace {events} -o {path}")).exits(0);
        assert_eq!(stock(&dir, events, &path).len(), records, "{damaged}");
    }
}
