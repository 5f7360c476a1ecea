//! Damaged files: everything before and behind the damage comes out, the damage is named by its offset, and the exit codes tell
//! it apart.
//!
//! The files lie outside the project, see [`support::shared`]; what was done to each, and how many records stand before it and
//! behind it, is in the README beside them.

mod support;

use support::shared;

const HARNESS: &str = "damaged/harness.trace-events";
const QEMU: &str = "qemu-8.2/trace-events-all";
const V0: &str = "old/v0-1.1-s390x.trace-events";
const V2: &str = "old/v2-1.3-x86_64.trace-events";
const V3: &str = "old/v3-2.5-s390x.trace-events";

/// A file, its declarations, and what is to come of it.
struct Damaged {
    file: &'static str,
    events: &'static str,
    /// Records that `decode` prints, dropped ones included.
    records: usize,
    /// The exit codes of `decode`, `decode --strict`, `check` and `check` with EVENTS.
    exits: [i32; 4],
    /// The first line on stderr, without the name of the file; "" for silence.
    said: &'static str,
}

const fn row(file: &'static str, events: &'static str, records: usize, exits: [i32; 4], said: &'static str) -> Damaged {
    Damaged { file, events, records, exits, said }
}

const SOUND: [i32; 4] = [0, 0, 0, 0];
const TORN: [i32; 4] = [0, 1, 1, 1];
const FAULTY: [i32; 4] = [1, 1, 1, 1];
/// Only the declarations can tell.
const MISFIT: [i32; 4] = [1, 1, 0, 1];
/// Valid, but more than declared.
const LONGER: [i32; 4] = [0, 0, 0, 1];
const NO_TRACE: [i32; 4] = [2, 2, 2, 2];

#[rustfmt::skip]
const FILES: [Damaged; 39] = [
    row("a-base", HARNESS, 90, SOUND, ""),
    row("b-base", QEMU, 60, SOUND, ""),
    row("header-only", HARNESS, 0, SOUND, ""),
    row("mappings-only", HARNESS, 0, SOUND, ""),

    row("cut-type-word", HARNESS, 32, TORN, "ends inside a record at offset 2128: 3 bytes left over"),
    row("cut-event-id", HARNESS, 32, TORN, "ends inside a record at offset 2128: 12 bytes left over"),
    row("cut-length", HARNESS, 32, TORN, "ends inside a record at offset 2128: 26 bytes left over"),
    row("cut-pid", HARNESS, 32, TORN, "ends inside a record at offset 2128: 30 bytes left over"),
    row("cut-u64-arg", HARNESS, 32, TORN, "ends inside a record at offset 2128: 45 bytes left over"),
    row("cut-string-length", HARNESS, 35, TORN, "ends inside a record at offset 2296: 42 bytes left over"),
    row("cut-string-body", HARNESS, 35, TORN, "ends inside a record at offset 2296: 49 bytes left over"),
    row("cut-mapping-type", HARNESS, 0, TORN, "ends inside a record at offset 210: 5 bytes left over"),
    row("cut-mapping-length", HARNESS, 0, TORN, "ends inside a record at offset 210: 18 bytes left over"),
    row("be-cut-string", HARNESS, 47, TORN, "ends inside a record at offset 2988: 47 bytes left over"),
    row("killed-img", QEMU, 890, TORN, "ends inside a record at offset 75102: 20 bytes left over"),

    row("zeros-64k", HARNESS, 90, FAULTY, "offset 6920: mapping record without a name; 65536 bytes skipped, up to the end"),
    row("zeros-mid", HARNESS, 90, FAULTY, "offset 2128: mapping record without a name; 4096 bytes skipped, reading goes on at offset 6224"),
    row("concat-same", HARNESS, 131, FAULTY, "1 header inside a file, the first at offset 6920"),
    row("concat-big-endian", HARNESS, 137, FAULTY, "1 header inside a file, the first at offset 6920"),
    row("length-0", HARNESS, 89, FAULTY, "offset 2296: record length 0 is shorter"),
    row("length-2g", HARNESS, 89, FAULTY, "offset 2296: record length 2147483648 is above"),
    // A wrong length that is possible shows only behind the record: it is printed, as longer or shorter than declared.
    row("length-plus8", HARNESS, 90, FAULTY, "offset 2367: record length 16777232 is above"),
    row("b-length-0", QEMU, 59, FAULTY, "offset 2088: record length 0 is shorter"),
    row("b-length-minus8", QEMU, 60, FAULTY, "offset 2136: mapping record with a name of 3272 bytes"),
    row("garbage-insert", HARNESS, 90, FAULTY, "offset 2128: record type 0xc2f1e6fd3c822044 is neither"),
    row("type-7", HARNESS, 89, FAULTY, "offset 2128: record type 0x7 is neither"),
    row("mapping-length-2g", HARNESS, 90, FAULTY, "offset 210: mapping record with a name of 2147483648 bytes"),
    // Whole, so it is printed and the 57 behind it too.
    row("id-unmapped", HARNESS, 90, FAULTY, "1 record of unknown event, the first event 9999 at offset 2128"),

    row("string-too-long", HARNESS, 90, MISFIT, "1 record of h_mix: shorter than declared, the first at offset 2296"),
    row("name-unknown", HARNESS, 90, MISFIT, "43 records of h_other: not declared in the trace-events file, the first at offset 422"),
    row("extra-payload", HARNESS, 90, LONGER, "1 record of h_mix: longer than declared, the first at offset 2296"),

    row("empty", HARNESS, 0, NO_TRACE, "the file is empty"),
    row("seven-bytes", HARNESS, 0, NO_TRACE, "not a trace file: 7 bytes are too short for the 24-byte header"),
    row("wrong-magic", HARNESS, 0, NO_TRACE, "not a trace file: its magic number is 0xf2b177cb0aa429b5"),
    row("version-1", HARNESS, 0, NO_TRACE, "format version 1 is unknown"),
    row("version-5", HARNESS, 0, NO_TRACE, "format version 5 is unknown"),

    // Earlier versions do not name their events.
    row("v0-cut", V0, 39, TORN, "ends inside a record at offset 2560: 17 bytes left over"),
    row("v2-cut-string", V2, 67, TORN, "ends inside a record at offset 3706: 31 bytes left over"),
    row("v3-length-0", V3, 107, FAULTY, "offset 4161: record length 0 is shorter"),
];

#[test]
fn each_file_gives_what_is_intact_and_says_where_it_is_not() {
    for Damaged { file, events, records, exits, said } in FILES {
        let name = format!("damaged/{file}.trace");
        let test = "each_file_gives_what_is_intact_and_says_where_it_is_not";
        let Some(dir) = shared::traces(test, &name) else { return };
        let [decode, strict, check, check_events] = [
            format!("decode -F ndjson {name} {events}"),
            format!("decode -F ndjson --strict {name} {events}"),
            format!("check {name}"),
            format!("check {name} {events}"),
        ]
        .map(|line| dir.run(&line));

        assert_eq!(decode.ndjson().len(), records, "{file}");
        assert_eq!(strict.stdout, decode.stdout, "{file}");
        assert_eq!([decode.code, strict.code, check.code, check_events.code], exits, "{file}");
        if said.is_empty() {
            assert_eq!(decode.stderr, "", "{file}");
        } else {
            let first = decode.stderr.lines().next().unwrap_or_default();
            assert!(first.contains(said), "{file}: {first}");
            // Every message names its file; nothing is said twice.
            assert!(decode.stderr.lines().all(|line| line.contains(&name)), "{file}: {}", decode.stderr);
            let check_first = check_events.stderr.lines().next().unwrap_or_default();
            assert_eq!(check_first, first, "{file}");
        }
        assert!(!format!("{decode:?}{check:?}").contains("panicked"), "{file}");
    }
}

#[test]
fn a_file_torn_anywhere_gives_its_whole_records_in_every_format() {
    let name = "damaged/cut-string-body.trace";
    let Some(dir) = shared::traces("a_file_torn_anywhere_gives_its_whole_records_in_every_format", name) else {
        return;
    };
    let events = "damaged/harness.trace-events";
    for (format, head) in [("text", 0), ("compat", 0), ("log", 0), ("table", 1), ("csv", 1), ("ndjson", 0)] {
        let torn = dir.run(&format!("decode -F {format} {name} {events}")).exits(0);
        let whole = dir.run(&format!("decode -F {format} damaged/a-base.trace {events} --limit 35")).exits(0);
        assert_eq!(torn.lines().len(), head + 35, "{format}");
        assert_eq!(torn.text(), whole.text(), "{format}");
        assert_eq!(torn.stderr.lines().count(), 1, "{format}: {}", torn.stderr);
    }
}
