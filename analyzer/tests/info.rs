//! `info`: what is in a trace, on one screen.

mod support;

use serde_json::json;
use simpletrace_format::{ByteOrder, EventId, Value};
use support::Dir;
use support::sample::{self, ORDERS};

#[test]
fn the_screen_has_version_byte_order_span_rates_pids_gaps_disorder_and_damage() {
    for (order, name) in [(ByteOrder::Little, "little"), (ByteOrder::Big, "big")] {
        let dir = Dir::with([("t.trace", &sample::sample(order)), ("ev", sample::EVENTS)]);
        let run = dir.run("info t.trace ev").exits(0);
        assert_eq!(
            run.text(),
            format!(
                "file      t.trace: version 4, {name}-endian, 362 bytes, 4 mappings
span      2.500000000 s, clock 1.000000000 to 3.500000000
events    4, 1.6 a second
pid       10 (3 records), 11 (2 records)
gaps      1, 3 events dropped
disorder  none
damage    none

     records       rate/s  event
           1          0.4  disk_done
           1          0.4  disk_open
           1          0.4  disk_read
           1          0.4  idle
"
            )
        );
    }
}

#[test]
fn the_json_report_has_the_same_facts() {
    for (order, name) in [(ByteOrder::Little, "little"), (ByteOrder::Big, "big")] {
        let dir = Dir::with([("t.trace", &sample::sample(order)), ("ev", sample::EVENTS)]);
        let event = |name: &str, time_ns: u64| {
            json!({"event": name, "records": 1, "records_per_s": 0.4, "first_ns": time_ns, "last_ns": time_ns,
                "mapped": true, "declared": true, "misfits": 0})
        };
        assert_eq!(
            dir.run("info t.trace ev -F json").exits(0).json(),
            json!({
                "schema": "simpletrace-rs.info/1",
                "files": [{"file": "t.trace", "version": 4, "ids": null, "byte_order": name, "bytes": 362, "mappings": 4,
                    "part": null, "facts": {}, "wall_offset_ns": null}],
                "records": 4,
                "records_per_s": 1.6,
                "first_ns": 1_000_000_000,
                "last_ns": 3_500_000_000_u64,
                "span_ns": 2_500_000_000_u64,
                "pids": [{"pid": 10, "records": 3}, {"pid": 11, "records": 2}],
                "records_of_other_pids": 0,
                "dropped": 3,
                "gap_count": 1, "unknown_gaps": 0,
                "gaps": [{"noticed_ns": 1_000_002_000, "count": 3}],
                "disorder": {"records": 0, "largest_step_back_ns": 0},
                "events": [event("disk_done", 1_000_001_900), event("disk_open", 1_000_000_000),
                    event("disk_read", 1_000_001_500), event("idle", 3_500_000_000)],
                "unmapped_records": 0,
                "ids_renamed": 0,
                "torn": [],
                "damage": [],
                "damaged_stretches": 0,
                "skipped_bytes": 0,
                "second_headers": 0,
                "unreadable": [],
                "missing_parts": 0,
            "presets": [],
            })
        );
    }
}

#[test]
fn disorder_is_counted_with_its_largest_step() {
    for order in ORDERS {
        let file = sample::trace(order, |writer| {
            sample::mappings(writer)?;
            for time_ns in [100, 90, 95, 300, 250, 250] {
                writer.event(sample::IDLE, time_ns, 1, &[])?;
            }
            Ok(())
        });
        let dir = Dir::with([("t.trace", &file), ("ev", sample::EVENTS)]);
        let run = dir.run("info t.trace ev").silent();
        assert!(
            run.text().contains("disorder  2 events are earlier than the one before, by up to 0.000000050 s\n"),
            "{}",
            run.text()
        );
        // The span is from the earliest to the latest, wherever they stand.
        assert!(run.text().contains("span      0.000000210 s, clock 0.000000090 to 0.000000300\n"), "{}", run.text());
        let report = dir.run("info t.trace ev -F json").silent().json();
        assert_eq!(report["disorder"], json!({"records": 2, "largest_step_back_ns": 50}));
    }
}

#[test]
fn where_the_width_is_known_rates_over_time_stand_beside_the_events() {
    let file = sample::trace(ByteOrder::Little, |writer| {
        writer.mapping(EventId(0), "more_and_more")?;
        writer.mapping(EventId(1), "once")?;
        for n in 0..128_u64 {
            let records = n / 16 + 1;
            for record in 0..records {
                writer.event(EventId(0), (1_024 + n) * 1_024 + 1_024 * record / records, 1, &[])?;
            }
        }
        writer.event(EventId(1), 1_088 * 1_024, 1, &[])
    });
    let events = b"more_and_more(void) \"\"\nonce(void) \"\"\n";
    let dir = Dir::with([("t.trace", &file), ("ev", &events[..])]);
    let at = |columns: &str, locale: &str, options: &str| {
        let run = dir.call(&format!("info t.trace ev {options}")).env("COLUMNS", columns).env("LC_ALL", locale).run();
        run.exits(0).text().lines().skip(8).map(|line| format!("{line}\n")).collect::<String>()
    };
    assert_eq!(
        at("80", "C.UTF-8", ""),
        "     records       rate/s  over time                         event
         576    4398827.0  ▁▁▁▁▂▂▂▂▃▃▃▃▄▄▄▄▅▅▅▅▆▆▆▆▇▇▇▇████  more_and_more
           1       7636.9                  █                 once
"
    );
    let ascii = "     records       rate/s  over time                         event
         576    4398827.0  ....::::----====++++****####@@@@  more_and_more
           1       7636.9                  @                 once
";
    assert_eq!((at("80", "C.UTF-8", "--ascii").as_str(), at("80", "C", "").as_str()), (ascii, ascii));
    assert_eq!(
        at("52", "C", ""),
        "     records       rate/s  over time  event
         576    4398827.0  .:-=+*##@  more_and_more
           1       7636.9      @      once
"
    );
    let without = "     records       rate/s  event
         576    4398827.0  more_and_more
           1       7636.9  once
";
    for columns in ["51", "1", "0", "", "x", "-80"] {
        assert_eq!(at(columns, "C.UTF-8", ""), without, "{columns}");
    }
    // What programs read knows no width.
    let report = |columns: &str| dir.call("info t.trace ev -F json").env("COLUMNS", columns).run().exits(0).json();
    assert_eq!(report("80"), report(""));
}

#[test]
fn a_trace_without_a_length_has_no_rates_over_time() {
    let file = sample::trace(ByteOrder::Little, |writer| {
        writer.mapping(EventId(0), "once")?;
        writer.event(EventId(0), u64::MAX, 1, &[])
    });
    let dir = Dir::with([("t.trace", &file), ("ev", &b"once(void) \"\"\n"[..])]);
    let run = dir.call("info t.trace ev").env("COLUMNS", "80").run().exits(0);
    assert!(
        run.text().ends_with("     records       rate/s  event\n           1            -  once\n"),
        "{}",
        run.text()
    );
}

/// A trace of `kinds` events, the n-th recorded n times.
fn many_kinds(kinds: u64) -> Vec<u8> {
    sample::trace(ByteOrder::Little, |writer| {
        for id in 0..kinds {
            writer.mapping(EventId(id), &format!("kind_{id:02}"))?;
            for _ in 0..=id {
                writer.event(EventId(id), 1_000_000 * id, 1, &[])?;
            }
        }
        Ok(())
    })
}

#[test]
fn the_most_frequent_events_come_first_and_everything_fits_a_terminal() {
    let declarations: String = (0..40).map(|id| format!("kind_{id:02}(void) \"\"\n")).collect();
    let dir = Dir::with([("t.trace", &many_kinds(40)), ("trace-events", declarations.as_bytes())]);
    let run = dir.run("info t.trace").exits(0);
    let wide = dir.call("info t.trace").env("COLUMNS", "80").run().exits(0);
    assert_eq!(wide.lines().len(), run.lines().len());
    assert!(run.text().lines().any(|line| line == "          40       1025.6  kind_39"), "{}", run.text());
    // With a line for the prompt.
    assert!(run.lines().len() + run.stderr.lines().count() < 24, "{}", run.text());
    let listed = run.lines().iter().filter(|line| line.contains("  kind_")).count();
    let left = 40 - listed;
    let records: usize = (1..=left).sum();
    let last = format!("{records:>12}               of {left} more events, --all lists them");
    assert_eq!(*run.lines().last().unwrap(), last);

    let all = dir.run("info t.trace --all").exits(0);
    assert_eq!(all.lines().iter().filter(|line| line.contains("  kind_")).count(), 40);
    assert_eq!(*all.lines().last().unwrap(), "           1         25.6  kind_00");
}

#[test]
fn damage_is_on_the_screen_and_in_the_exit_code() {
    let whole = sample::sample(ByteOrder::Little);
    let dir = Dir::with([
        ("torn", &whole[..340]),
        ("bad", &[&whole[..], &[0xaa; 40]].concat()),
        ("none", &[0; 64]),
        ("ev", sample::EVENTS),
    ]);
    for (name, code, line, list, text) in [
        (
            "torn",
            0,
            "damage    none, but the file ends inside a record\n",
            "torn",
            "torn ends inside a record at offset 330: 10 bytes left over, as when the traced program was killed",
        ),
        (
            "bad",
            1,
            "damage    yes, see below\n",
            "damage",
            "bad: offset 362: record type 0xaaaaaaaaaaaaaaaa is neither 0 (mapping) nor 1 (event); \
             40 bytes skipped, up to the end",
        ),
        (
            "none",
            2,
            "damage    yes, see below\n",
            "unreadable",
            "none: not a trace file: it starts with 0x0000000000000000, not eight bytes 0xff",
        ),
    ] {
        let run = dir.run(&format!("info {name} ev")).exits(code);
        assert!(run.text().contains(line), "{name}: {}", run.text());
        assert!(run.stderr.contains(text), "{name}: {}", run.stderr);
        let report = dir.run(&format!("info {name} ev -F json")).exits(code).json();
        assert_eq!(report[list], json!([text]), "{name}");
    }
}

#[test]
fn events_that_do_not_fit_are_marked() {
    let file = sample::trace(ByteOrder::Little, |writer| {
        sample::mappings(writer)?;
        writer.event(sample::DONE, 5, 1, &[Value::Pointer(1)])?;
        writer.event(EventId(77), 6, 1, &[])
    });
    let dir = Dir::with([("t.trace", &file), ("ev", sample::EVENTS)]);
    let run = dir.run("info t.trace ev").exits(1);
    assert!(run.text().contains("disk_done  (not as declared)\n"), "{}", run.text());
    assert!(run.text().contains("event 77  (unmapped)\n"), "{}", run.text());
}

#[test]
fn a_trace_without_events_has_no_span_and_no_rates() {
    let dir = Dir::with([("t.trace", &sample::trace(ByteOrder::Little, |_| Ok(()))), ("ev", sample::EVENTS)]);
    let run = dir.run("info t.trace ev").silent();
    assert_eq!(
        run.text(),
        "file      t.trace: version 4, little-endian, 24 bytes, 0 mappings
events    0
gaps      none, nothing was dropped
disorder  none
damage    none
"
    );
    let report = dir.run("info t.trace ev -F json").silent().json();
    assert_eq!(report["first_ns"], json!(null));
    assert_eq!(report["records_per_s"], json!(null));
}
