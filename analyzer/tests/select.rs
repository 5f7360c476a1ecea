//! Which events a command is about: `-e`, `-t`, `--pid` and `--limit`.

mod support;

use simpletrace_format::{ByteOrder, EventId, TraceWriter, Value};
use support::Dir;
use support::program::Run;
use support::sample::{self, ORDERS};

/// The sample as `t.trace`, its declarations as `ev`.
fn sample_dir(order: ByteOrder) -> Dir {
    Dir::with([("t.trace", &sample::sample(order)), ("ev", sample::EVENTS)])
}

/// The events of an ndjson output by name.
fn names(run: &Run) -> Vec<String> {
    run.ndjson().iter().map(|line| line["event"].as_str().unwrap().to_owned()).collect()
}

/// Asserts which events of the sample are selected.
#[track_caller]
fn assert_selects(options: &str, expected: &[&str]) {
    for order in ORDERS {
        let run = sample_dir(order).run(&format!("decode t.trace ev -F ndjson {options}")).exits(0);
        assert_eq!(names(&run), expected, "{options}");
    }
}

const ALL: [&str; 5] = ["disk_open", "disk_read", "dropped", "disk_done", "idle"];

#[test]
fn patterns_follow_qemus_rules() {
    assert_selects("", &ALL);
    assert_selects("-e *", &ALL);
    assert_selects("-e disk_*", &["disk_open", "disk_read", "disk_done"]);
    assert_selects("--event=*_?e*", &["disk_read"]);
    assert_selects("-e idle -e disk_open", &["disk_open", "idle"]);
    // The last that matches decides.
    assert_selects("-e disk_* -e -disk_read", &["disk_open", "disk_done"]);
    assert_selects("-e -disk_read -e disk_*", &ALL);
    // If the first takes out, all others are in.
    assert_selects("-e -disk_*", &["dropped", "idle"]);
    assert_selects("-e -*", &[]);
    assert_selects("-e -* -e idle", &["idle"]);
    // Without a star a question mark is only itself.
    assert_selects("-e idl?", &[]);
}

#[test]
fn gaps_go_by_the_name_dropped() {
    assert_selects("-e dropped", &["dropped"]);
    assert_selects("-e -dropped", &["disk_open", "disk_read", "disk_done", "idle"]);
    assert_selects("-e d*", &["disk_open", "disk_read", "dropped", "disk_done"]);
}

#[test]
fn a_plain_name_that_no_event_has_is_pointed_out() {
    let dir = sample_dir(ByteOrder::Little);
    let run = dir.run("decode t.trace ev -e disk_raed -e dropped -e never_seen").exits(0);
    assert!(run.stderr.contains("warning: no event is called disk_raed; did you mean disk_read?\n"), "{}", run.stderr);
    assert!(!run.stderr.contains("never_seen"), "{}", run.stderr);
    assert_eq!(run.lines().len(), 1);
}

#[test]
fn an_empty_pattern_is_refused() {
    for pattern in ["-", ""] {
        let run = sample_dir(ByteOrder::Little).call("decode t.trace ev -e").arg(pattern).run().exits(2);
        assert_eq!(run.stderr, format!("error: event pattern '{pattern}' is empty; write -e '*' for all events\n"));
        assert_eq!(run.text(), "");
    }
}

/// A trace with an event `tick` at each of these times, the first of which is after a start that is no `tick`.
fn ticks(order: ByteOrder, start_ns: u64, times_ns: &[u64]) -> Vec<u8> {
    sample::trace(order, |writer: &mut TraceWriter<Vec<u8>>| {
        writer.mapping(EventId(0), "start")?;
        writer.mapping(EventId(1), "tick")?;
        writer.event(EventId(0), start_ns, 1, &[])?;
        for &time_ns in times_ns {
            writer.event(EventId(1), time_ns, 1, &[])?;
        }
        Ok(())
    })
}

#[test]
fn windows_count_from_the_first_record_and_leave_out_their_end() {
    const S: u64 = 1_000_000_000;
    const MS: u64 = 1_000_000;
    let times = [101 * S, 101 * S + 199 * MS, 101 * S + 200 * MS, 105 * S, 110 * S - 1, 110 * S, 200 * S];
    for order in ORDERS {
        let dir =
            Dir::with([("t.trace", &ticks(order, 100 * S, &times)), ("ev", b"start(void) \"\"\ntick(void) \"\"\n")]);
        for (window, expected) in [
            ("5s-", &times[3..]),
            ("-10s", &times[..5]),
            ("1s+200ms", &times[..2]),
            ("1s-5s", &times[..3]),
            ("1200ms-", &times[2..]),
            ("@101.2-@110", &times[2..5]),
            ("@105-", &times[3..]),
            ("-@105", &times[..3]),
            ("5s-@110", &times[3..5]),
            ("+1s", &[]),
            ("+1000000001ns", &times[..1]),
            ("10-1m", &times[5..6]),
            ("1h-", &[]),
        ] {
            let run = dir.run(&format!("decode t.trace ev -F ndjson -e tick -t {window}")).exits(0);
            let found: Vec<_> = run.ndjson().iter().map(|line| line["ts_ns"].as_u64().unwrap()).collect();
            assert_eq!(found, expected, "{window}");
        }
    }
}

#[test]
fn windows_hold_at_the_ends_of_the_clock() {
    let dir = Dir::with([
        ("t.trace", &ticks(ByteOrder::Little, 0, &[0, u64::MAX - 1, u64::MAX])),
        ("ev", b"start(void) \"\"\ntick(void) \"\"\n"),
    ]);
    for (window, expected) in
        [("0-", 3), ("-18446744073.709551614s", 1), ("@18446744073.709551615-", 1), ("18446744073s+18446744073s", 2)]
    {
        let run = dir.run(&format!("decode t.trace ev -F ndjson -e tick -t {window}")).exits(0);
        assert_eq!(run.lines().len(), expected, "{window}");
    }
}

#[test]
fn a_window_that_cannot_be_is_refused_with_a_way_out() {
    let dir = sample_dir(ByteOrder::Little);
    for (window, message) in [
        ("5s", "has neither '-' nor '+'; write START-END, START-, -END or START+LENGTH"),
        ("2s-1s", "ends before it starts"),
        ("x-", "'x' is not a time; write a number and ns, us, ms, s, m or h, such as 1.5s"),
        ("-", "has neither a start nor an end"),
    ] {
        let run = dir.run(&format!("decode t.trace ev -t {window}")).exits(2);
        assert!(run.stderr.contains(message), "{window}: {}", run.stderr);
        assert!(run.stderr.contains("--time"), "{window}: {}", run.stderr);
    }
}

#[test]
fn pids_select_events_and_gaps() {
    assert_selects("--pid 10", &["disk_open", "disk_read", "dropped"]);
    assert_selects("--pid 11", &["disk_done", "idle"]);
    assert_selects("--pid 10 --pid 11", &ALL);
    assert_selects("--pid 12", &[]);
    sample_dir(ByteOrder::Little).run("decode t.trace ev --pid 4294967296").exits(2);
}

#[test]
fn a_limit_counts_what_is_printed() {
    assert_selects("--limit 0", &[]);
    assert_selects("--limit 2", &["disk_open", "disk_read"]);
    assert_selects("--limit 2 -e dropped -e idle", &["dropped", "idle"]);
    assert_selects("--limit 99", &ALL);
}

#[test]
fn a_limit_ends_the_reading_before_later_damage() {
    let mut file = sample::sample(ByteOrder::Little);
    file.extend([0xaa; 100]);
    let dir = Dir::with([("t.trace", &file), ("ev", sample::EVENTS)]);
    let run = dir.run("decode t.trace ev --limit 5").exits(0);
    assert_eq!(run.lines().len(), 5);
    dir.run("decode t.trace ev --limit 6").exits(1);
}

#[test]
fn the_conditions_apply_together() {
    assert_selects("-e disk_* --pid 10 -t 1us- --limit 1", &["disk_read"]);
}

#[test]
fn info_takes_the_same_selection() {
    let dir = sample_dir(ByteOrder::Little);
    let report = dir.run("info t.trace ev -F json -e disk_* --pid 10").exits(0).json();
    assert_eq!(report["records"], 2);
    assert_eq!(report["span_ns"], 1500);
}

#[test]
fn a_value_of_a_negative_kind_needs_no_quoting_tricks() {
    // `-e -PATTERN` and `-t -END` begin like options.
    assert_selects("-e -disk_* -t -1s", &["dropped"]);
    assert_selects("--event -disk_* --time -1s", &["dropped"]);
}

#[test]
fn misfits_count_only_where_they_were_asked_for() {
    let file = sample::trace(ByteOrder::Little, |writer| {
        sample::mappings(writer)?;
        writer.event(sample::DONE, 5, 1, &[Value::Pointer(1)])?;
        writer.event(sample::IDLE, 6, 1, &[])
    });
    let dir = Dir::with([("t.trace", &file), ("ev", sample::EVENTS)]);
    dir.run("decode t.trace ev -e idle").silent();
    dir.run("decode t.trace ev").exits(1);
}
