//! What a trace says of itself: the time of day, the host, the program.

mod support;

use serde_json::json;
use simpletrace_format::{ByteOrder, EventId, Facts, TraceWriter, Value};
use support::sample::{self, ORDERS};
use support::{Dir, gzip, zstd};

const WHO: [&str; 2] = ["host=h1", "boot_id=b"];

fn dir_with(facts: &Facts) -> Dir {
    Dir::with([("t.trace", &sample::sample_with(ByteOrder::Little, facts)[..]), ("ev", sample::EVENTS)])
}

/// A file of one event, and the texts of facts as they come.
fn raw(order: ByteOrder, texts: &[&str]) -> Vec<u8> {
    let mut file = TraceWriter::new(Vec::new(), order).unwrap().into_inner();
    for text in texts {
        let (type_and_id, length) = ([0, u64::MAX - 2], text.len() as u32);
        match order {
            ByteOrder::Little => {
                type_and_id.iter().for_each(|word: &u64| file.extend(word.to_le_bytes()));
                file.extend(length.to_le_bytes());
            }
            ByteOrder::Big => {
                type_and_id.iter().for_each(|word: &u64| file.extend(word.to_be_bytes()));
                file.extend(length.to_be_bytes());
            }
        }
        file.extend(text.as_bytes());
    }
    let mut writer = TraceWriter::append(file, order);
    writer.mapping(sample::IDLE, "idle").unwrap();
    writer.event(sample::IDLE, 2_000_000_000, 7, &[]).unwrap();
    writer.into_inner()
}

#[test]
fn a_trace_with_facts_is_sound_and_decodes_as_one_without() {
    for order in ORDERS {
        let dir = Dir::with([
            ("plain", &sample::sample(order)[..]),
            ("t.trace", &sample::sample_with(order, &sample::facts(&WHO))[..]),
            ("ev", sample::EVENTS),
        ]);
        for format in ["text", "compat", "log", "table", "csv", "json", "ndjson"] {
            let plain = dir.run(&format!("decode plain ev -F {format}")).exits(0);
            let run = dir.run(&format!("decode t.trace ev -F {format}")).exits(0);
            assert_eq!((run.text(), run.stderr.as_str()), (plain.text(), plain.stderr.as_str()), "{format}");
        }
        let facts_bytes =
            20 * 3 + "anchor_ns=1000000000,1700000000000000000".len() + "host=h1".len() + "boot_id=b".len();
        let run = dir.run("check t.trace ev").exits(0);
        assert_eq!(
            run.text(),
            format!(
                "sound, and as declared: 4 mappings, 4 events, 1 dropped record, {} bytes understood\n",
                362 + facts_bytes
            )
        );
    }
}

#[test]
fn times_of_day_are_utc_in_text_and_table() {
    let dir = dir_with(&sample::facts(&WHO));
    let run = dir.run("decode t.trace ev --clock wall").exits(0);
    let plain = dir.run("decode t.trace ev").exits(0);
    let expected = plain
        .text()
        .replace("[1.00000", "[2023-11-14T22:13:20.00000")
        .replace("[3.500000000", "[2023-11-14T22:13:22.500000000");
    let expected: Vec<_> = expected.lines().map(|line| line.replacen(" +", "Z +", 1)).collect();
    assert_eq!(run.lines(), expected);
    let table = dir.run("decode t.trace ev --clock wall -F table -e idle").exits(0);
    assert_eq!(
        table.text(),
        "                      time_utc  since_start_s  pid  event\n\
         2023-11-14T22:13:22.500000000Z    2.500000000   11  idle\n"
    );
}

#[test]
fn machines_get_nanoseconds_since_1970_beside_those_of_the_clock() {
    let dir = dir_with(&sample::facts(&WHO));
    let lines = dir.run("decode t.trace ev --clock wall -F ndjson").exits(0).ndjson();
    let document = dir.run("decode t.trace ev --clock wall -F json").exits(0).json();
    assert_eq!(document["records"], json!(lines));
    for record in &lines {
        let [ts_ns, wall_ns] = ["ts_ns", "wall_ns"].map(|key| record[key].as_u64().unwrap());
        assert_eq!(wall_ns, ts_ns - 1_000_000_000 + 1_700_000_000_000_000_000);
    }
    assert_eq!(lines.iter().filter(|record| record["event"] == "dropped").count(), 1);
    let csv = dir.run("decode t.trace ev --clock wall -F csv -e idle -e dropped").exits(0);
    assert_eq!(
        csv.lines(),
        [
            "ts_ns,wall_ns,pid,event,args",
            "1000002000,1700000000000002000,10,dropped,\"{\"\"count\"\":3}\"",
            "3500000000,1700000002500000000,11,idle,\"{}\"",
        ]
    );
    let wide = dir.run("decode t.trace ev --clock wall -F csv -e disk_done").exits(0);
    assert_eq!(wide.lines()[0], "ts_ns,wall_ns,pid,event,disk,ret");
}

#[test]
fn ranges_keep_their_meaning() {
    let dir = dir_with(&sample::facts(&WHO));
    for range in ["2s-", "@3-", "-1us", "@1.000001+1us"] {
        let monotonic = dir.run(&format!("decode t.trace ev -F ndjson -t {range}")).exits(0).ndjson();
        let wall = dir.run(&format!("decode t.trace ev -F ndjson -t {range} --clock wall")).exits(0).ndjson();
        let times =
            |records: &[serde_json::Value]| records.iter().map(|record| record["ts_ns"].clone()).collect::<Vec<_>>();
        assert!(!wall.is_empty());
        assert_eq!(times(&monotonic), times(&wall), "{range}");
    }
}

#[test]
fn each_file_has_the_time_of_its_own_host() {
    let mut other = Facts::default();
    other.add("anchor_ns=5,1700000010000000000").unwrap();
    let other = sample::trace(ByteOrder::Big, |writer| {
        writer.facts(&other)?;
        writer.mapping(sample::IDLE, "idle")?;
        writer.event(sample::IDLE, 4_000_000_005, 7, &[])
    });
    let dir = dir_with(&sample::facts(&WHO));
    dir.write("other", other);
    let run = dir.run("decode t.trace other ev -e idle --clock wall").exits(0);
    assert_eq!(
        run.lines(),
        [
            "[2023-11-14T22:13:22.500000000Z +2.500000000] 11 idle",
            "[2023-11-14T22:13:34.000000000Z +14.000000000] 7 idle",
        ]
    );
}

#[test]
fn without_an_anchor_the_time_of_day_is_refused_with_a_way_out() {
    let dir = Dir::with([("t.trace", &sample::sample(ByteOrder::Little)[..]), ("ev", sample::EVENTS)]);
    for format in ["text", "table", "csv", "ndjson"] {
        let run = dir.run(&format!("decode t.trace ev --clock wall -F {format}")).exits(2);
        assert_eq!(
            run.stderr,
            "error: t.trace does not say at what time of day it was begun (no anchor_ns before its first event; QEMU writes none); \
             leave out --clock wall\n"
        );
    }
    // One document all the same.
    assert_eq!(dir.run("decode t.trace ev --clock wall -F json").exits(2).json()["records"], json!([]));
    for format in ["compat", "log"] {
        let run = dir.run(&format!("decode t.trace ev --clock wall -F {format}")).exits(2);
        assert_eq!(
            (run.text(), run.stderr.as_str()),
            (
                "",
                "error: compat and log print no time of a clock, so --clock wall is not for them; \
                 take text, table, csv, json or ndjson\n"
            )
        );
    }
}

#[test]
fn times_out_of_reach_are_unknown() {
    let file = raw(ByteOrder::Little, &["anchor_ns=9223372036854775807,0"]);
    let dir = Dir::with([("t.trace", &file[..]), ("ev", sample::EVENTS)]);
    let line =
        |format: &str| dir.run(&format!("decode t.trace ev --clock wall -F {format}")).silent().text().to_owned();
    assert_eq!(line("text"), "[unknown +0.000000000] 7 idle\n");
    assert_eq!(line("ndjson"), "{\"ts_ns\":2000000000,\"wall_ns\":null,\"pid\":7,\"event\":\"idle\",\"args\":{}}\n");
    assert_eq!(line("csv"), "ts_ns,wall_ns,pid,event,args\n2000000000,,7,idle,\"{}\"\n");
}

#[test]
fn info_shows_facts_and_the_time_of_day() {
    let dir = dir_with(&sample::facts(&["host=h1", "program=qemu", "later=\x1b[2J"]));
    let run = dir.run("info t.trace ev").exits(0);
    assert_eq!(
        run.lines()[1],
        "facts     anchor_ns=1000000000,1700000000000000000, host=h1, program=qemu, later=\\u{1b}[2J"
    );
    assert_eq!(run.lines()[3], "utc       2023-11-14T22:13:20.000000000Z to 2023-11-14T22:13:22.500000000Z");
    let report = dir.run("info t.trace ev -F json").exits(0).json();
    assert_eq!(
        (&report["files"][0]["facts"], &report["files"][0]["wall_offset_ns"]),
        (
            &json!({"anchor_ns": "1000000000,1700000000000000000", "host": "h1", "program": "qemu", "later": "\u{1b}[2J"}),
            &json!(1_699_999_999_000_000_000_u64)
        )
    );
    assert_eq!(report["files"][0]["mappings"], 4);
}

#[test]
fn what_is_no_fact_is_a_warning_with_its_offset() {
    let longest = format!("host={}", "\n".repeat(1019));
    for order in ORDERS {
        let file = raw(order, &["pid=-1", "host", &longest, "host=twice", "anchor_ns=1,99999999999999999999", "A=b"]);
        let dir = Dir::with([("t.trace", &file[..]), ("ev", sample::EVENTS)]);
        let run = dir.run("check t.trace ev").exits(0);
        assert_eq!(
            run.stderr,
            "warning: t.trace: offset 24: passed over as a fact of the file: pid is not a number below 2^32: pid=-1
warning: t.trace: offset 50: passed over as a fact of the file: there is no '=' in it: host
warning: t.trace: offset 1118: passed over as a fact of the file: host has a value already: host=twice
warning: t.trace: offset 1148: passed over as a fact of the file: anchor_ns is not two numbers below 2^63 with a comma between: anchor_ns=1,99999999999999999999
warning: t.trace: offset 1200: passed over as a fact of the file: its key is not of lower-case letters, digits and '_': A=b
"
        );
        let info = dir.run("info t.trace ev").exits(0);
        assert_eq!(info.lines()[1], format!("facts     host={}", "\\n".repeat(1019)));
        dir.run("decode t.trace ev --clock wall").exits(2);
    }
}

#[test]
fn a_flood_of_facts_is_bounded() {
    let texts: Vec<_> = (0..1000).map(|number| format!("k{number}=")).collect();
    let texts: Vec<_> = texts.iter().map(String::as_str).collect();
    let dir = Dir::with([("t.trace", &raw(ByteOrder::Little, &texts)[..]), ("ev", sample::EVENTS)]);
    let run = dir.run("info t.trace ev -F json").exits(0);
    assert_eq!(run.json()["files"][0]["facts"].as_object().unwrap().len(), 64);
    let said: Vec<_> = run.stderr.lines().collect();
    assert_eq!((said.len(), said[20]), (21, "warning: 936 facts passed over in all"));
}

#[test]
fn a_mapping_for_another_reserved_id_is_as_faulty_as_ever() {
    let mut file = raw(ByteOrder::Little, &["host=h"]);
    file[32] = 0xfc;
    let dir = Dir::with([("t.trace", &file[..]), ("ev", sample::EVENTS)]);
    let run = dir.run("check t.trace ev").exits(1);
    assert_eq!(
        run.stderr,
        "warning: 1 mapping record passed over, for an id that is reserved for the recorder itself\n"
    );
}

#[test]
fn facts_come_out_of_pipes_and_compressed_files() {
    let dir = dir_with(&sample::facts(&WHO));
    let trace = dir.read("t.trace");
    let expected = dir.run("decode t.trace ev --clock wall").exits(0);
    for bytes in [trace.clone(), gzip(&trace), zstd(&trace)] {
        let run = dir.call("decode - ev --clock wall").stdin(bytes).run().exits(0);
        assert_eq!(run.text(), expected.text());
    }
}

#[test]
fn repair_and_slice_keep_the_facts_of_a_trace() {
    for order in ORDERS {
        let facts = sample::facts(&["host=h1", "later=x", "boot_id=b"]);
        let dir = Dir::with([("t.trace", &sample::sample_with(order, &facts)[..]), ("ev", sample::EVENTS)]);
        dir.run("repair t.trace -o out").exits(0);
        assert!(dir.read("out") == dir.read("t.trace"));
        dir.run("slice t.trace ev -e idle -e -dropped -o out").exits(0);
        let expected = sample::trace(order, |writer| {
            writer.facts(&facts)?;
            writer.mapping(sample::IDLE, "idle")?;
            writer.event(sample::IDLE, 3_500_000_000, 11, &[])
        });
        assert!(dir.read("out") == expected);
        let run = dir.call("repair - -o piped").stdin(dir.read("t.trace")).run().exits(0);
        assert!(dir.read("piped") == dir.read("t.trace"), "{}", run.stderr);
    }
}

#[test]
fn several_traces_keep_what_they_have_in_common() {
    let dir = dir_with(&sample::facts(&["host=h1", "boot_id=b", "pid=1"]));
    let mut later = Facts::default();
    ["boot_id=b", "anchor_ns=9,1700000000000000000", "host=h1", "pid=2"]
        .iter()
        .for_each(|text| later.add(text).unwrap());
    let event = |facts: &Facts| {
        sample::trace(ByteOrder::Little, |writer| {
            writer.facts(facts)?;
            writer.mapping(sample::IDLE, "idle")?;
            writer.event(sample::IDLE, 4_000_000_000, 7, &[])
        })
    };
    dir.write("later", event(&later));
    let run = dir.run("slice t.trace later ev -e idle -e -dropped -o out").exits(0);
    let expected = sample::trace(ByteOrder::Little, |writer| {
        writer.facts(&sample::facts(&["host=h1", "boot_id=b"]))?;
        writer.mapping(sample::IDLE, "idle")?;
        writer.event(sample::IDLE, 3_500_000_000, 11, &[])?;
        writer.event(sample::IDLE, 4_000_000_000, 7, &[])
    });
    assert!(dir.read("out") == expected);
    assert!(
        run.stderr.contains("note: facts that are not the same in all that was read are left out: pid\n"),
        "{}",
        run.stderr
    );
    // One that says nothing may be of anywhere.
    dir.write("silent", event(&Facts::default()));
    let run = dir.run("slice t.trace silent ev -e idle -o out").exits(0);
    assert!(run.stderr.contains("are left out: anchor_ns, boot_id, host, pid\n"), "{}", run.stderr);
    assert_eq!(dir.run("info out -F json").json()["files"][0]["facts"], json!({}));
}

#[test]
fn a_file_behind_another_that_contradicts_its_facts_is_not_passed_over_in_silence() {
    let dir = dir_with(&sample::facts(&["host=h1"]));
    let other = sample::trace(ByteOrder::Little, |writer| {
        let mut facts = Facts::default();
        facts.set(Facts::HOST, "h2");
        writer.facts(&facts)?;
        writer.mapping(EventId(1), "disk_done")?;
        writer.event(EventId(1), 4_000_000_000, 7, &[Value::Pointer(1), Value::Signed(2)])
    });
    dir.write("both", [dir.read("t.trace"), other].concat());
    let run = dir.run("repair both -o out").exits(1);
    assert!(
        run.stderr.contains(
            "warning: the facts of the output are those of its beginning, and do not hold for what follows a later header in both \
             (anchor_ns, host); write what stands behind each header alone\n"
        ),
        "{}",
        run.stderr
    );
}
