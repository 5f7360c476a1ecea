//! The parts of a rotated trace, read as one.

mod support;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};

use serde_json::json;
use simpletrace_format::{ByteOrder, DroppedRecord, EventId, Facts, Value};
use support::sample;
use support::{Dir, gzip};

const EVENTS: &[u8] = b"a(int n) \"%d\"\nb(int n) \"%d\"\n";

/// What part `number` of a trace says of itself, and an event of it, `a` in odd ones; ids differ between parts.
fn part(number: u64) -> Vec<u8> {
    part_of(number, "boot_id=b", 1)
}

fn part_of(number: u64, boot_id: &str, pid: u32) -> Vec<u8> {
    let time_ns = 1000 * number;
    let mut facts = Facts::default();
    // The clocks drift apart by 1 ns from part to part.
    facts.set_anchor(time_ns, 1_700_000_000_000_000_000 + time_ns + number);
    for text in [boot_id, "host=h", &format!("pid={pid}"), &format!("part={number}")] {
        facts.add(text).unwrap();
    }
    sample::trace(ByteOrder::Little, |writer| {
        writer.facts(&facts)?;
        let names = if number % 2 == 1 { ["a", "b"] } else { ["b", "a"] };
        writer.mapping(EventId(0), names[0])?;
        writer.mapping(EventId(1), names[1])?;
        writer.event(EventId(0), time_ns, pid, &[Value::Signed(number.cast_signed())])
    })
}

/// A folder with these parts of `trace-1`, and the declarations where they are found.
fn dir_with(numbers: &[u64]) -> Dir {
    let dir = Dir::with([("trace-1-events", EVENTS)]);
    numbers.iter().for_each(|&number| dir.write(&format!("trace-1.{number:06}"), part(number)));
    dir
}

const FOUND: &str = "note: using trace-1-events (found beside the trace)\n";

#[test]
fn a_trace_that_has_only_parts_is_read_from_them_in_order_of_numbers() {
    // In no order of names.
    let dir = dir_with(&[999_998, 999_999, 1_000_000, 1_000_001]);
    let run = dir.run("decode trace-1 -F ndjson").exits(0);
    let found: Vec<_> =
        run.ndjson().iter().map(|record| (record["event"].clone(), record["args"]["n"].clone())).collect();
    assert_eq!(
        found,
        [("b", 999_998), ("a", 999_999), ("b", 1_000_000), ("a", 1_000_001)].map(|(name, n)| (json!(name), json!(n)))
    );
    assert_eq!(
        run.stderr,
        format!(
            "{FOUND}note: trace-1 begins with part 999998: 999997 parts before it are not there, as when only the last ones are kept\n"
        )
    );
}

#[test]
fn parts_given_by_hand_are_the_same_trace_wherever_they_stand() {
    let dir = dir_with(&[1, 2, 3]);
    let expected = dir.run("decode trace-1 -F ndjson").exits(0);
    assert_eq!(expected.stderr, FOUND);
    let run = dir.run("decode trace-1.000003 trace-1.000001 trace-1.000002 -F ndjson").exits(0);
    assert_eq!((run.text(), run.stderr.as_str()), (expected.text(), FOUND));
    // In another folder, too.
    let above = Dir::new();
    fs::create_dir(above.path("x")).unwrap();
    for name in ["trace-1.000001", "trace-1.000002", "trace-1.000003", "trace-1-events"] {
        above.write(&format!("x/{name}"), dir.read(name));
    }
    assert_eq!(above.run("decode x/trace-1 -F ndjson").exits(0).text(), expected.text());
}

#[test]
fn a_file_of_the_name_itself_comes_first() {
    let dir = dir_with(&[1, 2]);
    dir.write("trace-1", part(7));
    let run = dir.run("decode trace-1 -F ndjson").exits(0);
    assert_eq!(run.ndjson()[0]["args"]["n"], 7);
    assert_eq!(run.lines().len(), 1);
}

#[test]
fn compressed_parts_are_parts_and_count_once() {
    let dir = dir_with(&[1, 2, 3]);
    let expected = dir.run("decode trace-1 -F ndjson").exits(0);
    for number in [1, 2] {
        dir.write(&format!("trace-1.{number:06}.gz"), gzip(&part(number)));
    }
    fs::remove_file(dir.path("trace-1.000001")).unwrap();
    let run = dir.run("decode trace-1 -F ndjson").exits(0);
    assert_eq!((run.text(), run.stderr.as_str()), (expected.text(), FOUND));
}

#[test]
fn each_part_has_a_time_of_day_of_its_own() {
    let run = dir_with(&[1, 2]).run("decode trace-1 --clock wall").exits(0);
    assert_eq!(
        run.lines(),
        [
            "[2023-11-14T22:13:20.000001001Z +0.000000000] 1 a n=1",
            "[2023-11-14T22:13:20.000002002Z +0.000001001] 1 b n=2"
        ]
    );
}

#[test]
fn parts_that_are_missing_in_between_are_an_unknown_loss() {
    let dir = dir_with(&[3, 4, 6, 9]);
    let told = "warning: trace-1: part 5 is missing, and with it an unknown number of events
warning: trace-1: parts 7 to 8 are missing, and with them an unknown number of events
note: trace-1 begins with part 3: 2 parts before it are not there, as when only the last ones are kept
";
    for command in ["check trace-1", "decode trace-1 trace-1-events -F ndjson", "events trace-1 trace-1-events"] {
        assert_eq!(dir.run(command).exits(1).stderr, told, "{command}");
    }
    let run = dir.run("info trace-1").exits(1);
    assert_eq!(
        run.lines()[..5],
        [
            "file      trace-1: 4 parts, version 4, little-endian, 1064 bytes, 8 mappings",
            "parts     3 to 9; missing at the front: 1 to 2; missing in between: 5, 7 to 8",
            "facts     anchor_ns=3000,1700000000000003003, boot_id=b, host=h, pid=1",
            "span      0.000006000 s, clock 0.000003000 to 0.000009000",
            "utc       2023-11-14T22:13:20.000003003Z to 2023-11-14T22:13:20.000009003Z",
        ]
    );
    let report = dir.run("info trace-1 -F json").exits(1).json();
    let parts: Vec<_> =
        report["files"].as_array().unwrap().iter().map(|file| (file["file"].clone(), file["part"].clone())).collect();
    assert_eq!(parts, [3, 4, 6, 9].map(|number| (json!(format!("trace-1.{number:06}")), json!(number))));
    assert_eq!(report["missing_parts"], 3);
}

#[test]
fn repair_and_slice_make_one_file_and_mark_what_is_missing() {
    let dir = dir_with(&[2, 3, 5]);
    let mut facts = Facts::default();
    ["anchor_ns=2000,1700000000000002002", "boot_id=b", "host=h", "pid=1"]
        .iter()
        .for_each(|text| facts.add(text).unwrap());
    let whole = sample::trace(ByteOrder::Little, |writer| {
        writer.facts(&facts)?;
        writer.mapping(EventId(0), "b")?;
        writer.mapping(EventId(1), "a")?;
        writer.event(EventId(0), 2000, 1, &[Value::Signed(2)])?;
        writer.event(EventId(1), 3000, 1, &[Value::Signed(3)])?;
        writer.dropped(3000, 1, DroppedRecord::UNKNOWN)?;
        writer.dropped(5000, 1, 0)?;
        writer.event(EventId(1), 5000, 1, &[Value::Signed(5)])
    });
    let run = dir.run("repair trace-1 -o out").exits(0);
    assert!(dir.read("out") == whole);
    assert!(run.stderr.contains("warning: trace-1: part 4 is missing"), "{}", run.stderr);
    assert!(!run.stderr.contains("left out"), "{}", run.stderr);
    assert!(
        run.stderr.ends_with("note: 2 mappings and 5 records written to out, 1 gap of unknown size marked\n"),
        "{}",
        run.stderr
    );
    dir.run("check out trace-1-events").exits(0);
    dir.run("slice trace-1 -o sliced").exits(1);
    let decode = |name: &str| dir.run(&format!("decode {name} trace-1-events")).exits(0).stdout;
    assert_eq!(decode("sliced"), decode("out"));
    // Two traces are two all the same.
    dir.write("other", part(1));
    assert_eq!(
        dir.run("repair trace-1 other -o no").exits(2).stderr.lines().last(),
        Some("error: repair takes one trace; `simpletrace-rs slice` makes one of several")
    );
}

#[test]
fn findings_name_the_part() {
    let dir = dir_with(&[1, 2, 3]);
    let mut torn = part(3);
    torn.pop();
    dir.write("trace-1.000003", torn);
    let mut damaged = part(2);
    let at = damaged.len() - 40;
    damaged.splice(at..at, [0; 40]);
    dir.write("trace-1.000002", damaged);
    let run = dir.run("check trace-1").exits(1);
    assert_eq!(
        run.stderr,
        format!(
            "error: trace-1.000002: offset {at}: mapping record without a name; 40 bytes skipped, reading goes on at offset {}\n\
             note: trace-1.000003 ends inside a record at offset {at}: 39 bytes left over, as when the traced program was killed\n",
            at + 40
        )
    );
}

#[test]
fn a_last_part_without_a_byte_is_the_end_of_a_killed_program() {
    let dir = dir_with(&[1, 2]);
    dir.write("trace-1.000003", b"");
    let run = dir.run("decode trace-1 -F ndjson").exits(0);
    assert_eq!(run.lines().len(), 2);
    assert_eq!(run.stderr, format!("{FOUND}note: trace-1.000003 is empty, as when the traced program was killed\n"));
    dir.run("check trace-1").exits(1);
}

#[test]
fn a_part_that_cannot_be_read_leaves_a_gap() {
    let dir = dir_with(&[1, 2, 3]);
    dir.write("trace-1.000002", b"\0\0\0\0 and no trace");
    let run = dir.run("slice trace-1 -o out").exits(2);
    assert!(run.stderr.contains("error: trace-1.000002: "), "{}", run.stderr);
    let records = dir.run("decode out trace-1-events -F ndjson").exits(0).ndjson();
    let counts: Vec<_> = records.iter().map(|record| record["args"].clone()).collect();
    assert_eq!(counts, [json!({"n": 1}), json!({"count": null}), json!({"count": 0}), json!({"n": 3})]);
}

/// Decodes standard input, which ends once the part is deleted, and then a trace of three parts.
fn decode_while_it_goes(number: u64) -> (Option<i32>, usize, String) {
    let dir = dir_with(&[1, 2, 3]);
    let mut child = Command::new(env!("CARGO_BIN_EXE_simpletrace-rs"))
        .args(["decode", "-", "trace-1", "-F", "ndjson"])
        .current_dir(dir.path(""))
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&sample::trace(ByteOrder::Little, |_| Ok(()))).unwrap();
    // Said when all files have been found.
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    stderr.read_line(&mut said).unwrap();
    assert_eq!(said, FOUND);
    fs::remove_file(dir.path(&format!("trace-1.{number:06}"))).unwrap();
    drop(stdin);
    said.clear();
    stderr.read_to_string(&mut said).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), output.stdout.split(|&byte| byte == b'\n').count() - 1, said)
}

#[test]
fn parts_that_are_deleted_meanwhile_are_missing() {
    // As the oldest one is when a new one begins: here it was seen to be there.
    assert_eq!(
        decode_while_it_goes(1),
        (
            Some(0),
            2,
            "note: trace-1 begins with part 2: 1 part before it is not there, as when only the last ones are kept\n"
                .into()
        )
    );
    let missing = "warning: trace-1: part 2 is missing, and with it an unknown number of events\n";
    assert_eq!(decode_while_it_goes(2), (Some(1), 2, missing.into()));
    let (code, lines, said) = decode_while_it_goes(3);
    assert_eq!((code, lines), (Some(2), 2));
    assert!(said.starts_with("error: cannot open trace-1.000003: "), "{said}");
}

#[test]
fn files_that_never_say_that_they_are_parts_are_none() {
    // Dates, as somebody may name the traces of his days.
    let dir = Dir::with([("ev", sample::EVENTS)]);
    for name in ["t.20231130", "t.20231201"] {
        dir.write(name, sample::sample(ByteOrder::Little));
    }
    let run = dir.run("info t.20231130 t.20231201 ev").exits(0);
    assert!(run.text().starts_with("file      t.20231130: version 4"), "{}", run.text());
    assert!(!run.stderr.contains("part"), "{}", run.stderr);
    let run = dir.run("decode t ev").exits(2);
    assert!(run.stderr.starts_with("error: cannot open t: "), "{}", run.stderr);
}

#[test]
fn what_only_looks_like_a_part_is_left_alone() {
    let dir = dir_with(&[1, 2]);
    fs::create_dir(dir.path("trace-1.000003")).unwrap();
    for name in
        ["trace-1.000000", "trace-1.00004", "trace-1.0000005", "trace-1.000006.bak", "trace-1.18446744073709551616"]
    {
        dir.write(name, part(9));
    }
    let run = dir.run("decode trace-1 -F ndjson").exits(0);
    assert_eq!((run.lines().len(), run.stderr.as_str()), (2, FOUND));
    let only_folder = Dir::new();
    fs::create_dir(only_folder.path("x.000001")).unwrap();
    let run = only_folder.run("check x").exits(2);
    assert!(run.stderr.starts_with("error: cannot open x: "), "{}", run.stderr);
    let run = only_folder.run("check x.000001").exits(2);
    assert_eq!(run.stderr, "error: cannot open x.000001: it is a directory\n");
}

#[test]
fn a_part_of_another_run_or_with_another_number_is_told() {
    let dir = dir_with(&[1]);
    dir.write("trace-1.000002", part_of(2, "boot_id=b", 9));
    dir.write("trace-1.000003", part_of(4, "boot_id=\x1b", 9));
    let run = dir.run("check trace-1").exits(0);
    assert_eq!(
        run.stderr,
        "warning: trace-1.000002 is of another run than the part before: pid is 9, not 1
warning: trace-1.000003 says that it is part 4 of its trace
warning: trace-1.000003 is of another run than the part before: boot_id is \\u{1b}, not b
"
    );
}

#[test]
fn two_traces_of_parts_stay_apart_and_go_by_time() {
    let dir = dir_with(&[3, 4]);
    for number in [1, 2] {
        dir.write(&format!("first.{number:06}"), part(number));
    }
    let run = dir.run("decode trace-1.000004 first.000002 first.000001 trace-1.000003 -F ndjson").exits(0);
    let found: Vec<_> = run.ndjson().iter().map(|record| record["args"]["n"].as_u64().unwrap()).collect();
    assert_eq!(found, [1, 2, 3, 4]);
    let info = dir.run("info first trace-1").exits(0);
    let lines: Vec<_> = info.lines().into_iter().filter(|line| !line.starts_with("span")).take(6).collect();
    assert_eq!(
        lines,
        [
            "file      first: 2 parts, version 4, little-endian, 532 bytes, 4 mappings",
            "parts     1 to 2",
            "file      trace-1: 2 parts, version 4, little-endian, 532 bytes, 4 mappings",
            "parts     3 to 4; missing at the front: 1 to 2",
            "facts     first: anchor_ns=1000,1700000000000001001, boot_id=b, host=h, pid=1",
            "facts     trace-1: anchor_ns=3000,1700000000000003003, boot_id=b, host=h, pid=1",
        ]
    );
}

#[test]
fn many_parts_are_one_trace_and_many_missing_ones_are_told_by_their_number() {
    let numbers: Vec<_> = (1..=1000).filter(|number| number % 10 != 5).collect();
    let dir = dir_with(&numbers);
    let bytes: usize = numbers.iter().map(|&number| part(number).len()).sum();
    let run = dir.run("check trace-1").exits(1);
    assert_eq!(run.text(), format!("faulty: 1800 mappings, 900 events, 0 dropped records, {bytes} bytes understood\n"));
    let said: Vec<_> = run.stderr.lines().collect();
    assert_eq!(said.len(), 21);
    assert_eq!(said[19], "warning: trace-1: part 195 is missing, and with it an unknown number of events");
    assert_eq!(said[20], "warning: 100 parts missing in all, in 100 places");
    let info = dir.run("info trace-1").exits(1);
    assert_eq!(
        info.lines()[1],
        "parts     1 to 1000; missing in between: 5, 15, 25, 35, 45, 55, 65, 75 and 92 more places"
    );
}

#[test]
fn a_hundred_thousand_parts_are_found() {
    let dir = Dir::with([("trace-1-events", EVENTS)]);
    let bytes = part(1);
    (1..=100_000).for_each(|number: u64| dir.write(&format!("trace-1.{number:06}"), &bytes));
    let run = dir.run("decode trace-1 -F ndjson -n 2").exits(0);
    assert_eq!(run.lines().len(), 2);
    let said: Vec<_> = run.stderr.lines().collect();
    assert_eq!(said, [FOUND.trim_end(), "warning: trace-1.000002 says that it is part 1 of its trace"]);
}
