//! Files that QEMU's own writer made, whole and damaged, against what is known to be in them.

mod support;

use serde_json::{Value as Json, json};
use simpletrace_format::events::{
    ArgType, ById, EventIndex, EventSet, Mode, Numbering, NumberingReason, SeenIds, Width,
};
use simpletrace_format::{ErrorKind, EventRecord, Loss, Mapped, Names, Record, SliceReader, Value, Version};
use support::reading::{Fault, Outcome, Owned, both};
use support::shared;

#[test]
fn every_record_of_a_little_endian_file_is_the_expected_one() {
    compare_with_expected_json(
        "every_record_of_a_little_endian_file_is_the_expected_one",
        "v4-8.2-x86_64",
        1121 + 3 + 16,
    );
}

#[test]
fn every_record_of_a_big_endian_file_is_the_expected_one() {
    compare_with_expected_json("every_record_of_a_big_endian_file_is_the_expected_one", "v4-8.2-s390x", 860 + 11 + 16);
}

/// A file of an earlier version: its records, dropped ones included, and the rule of its ids.
const EARLIER: [(&str, usize, Numbering); 6] = [
    ("v0-0.14-x86_64", 1501, Numbering::All),
    ("v0-0.15-x86_64", 707 + 2, Numbering::All),
    ("v0-1.1-s390x", 702 + 2, Numbering::Enabled),
    ("v2-1.3-x86_64", 686 + 11, Numbering::Enabled),
    ("v3-2.6-x86_64", 969 + 8, Numbering::All),
    ("v3-2.5-s390x", 930 + 10, Numbering::All),
];

#[test]
fn every_record_of_a_file_of_an_earlier_version_is_the_expected_one() {
    let test = "every_record_of_a_file_of_an_earlier_version_is_the_expected_one";
    for (name, records, numbering) in EARLIER {
        let read = |suffix| shared::read(test, &format!("old/{name}.{suffix}"));
        let (Some(file), Some(declared), Some(expected)) = (read("trace"), read("trace-events"), read("expected.json"))
        else {
            return;
        };
        let expected: Json = serde_json::from_slice(&expected).unwrap();
        let mut set = EventSet::new();
        assert!(set.add(name, &declared, Mode::Lenient).is_empty());

        assert_eq!(both(&file).fault, None, "{name}");
        let reader = SliceReader::new(&file).unwrap();
        let version = reader.header().version;
        assert_eq!(Json::from(version.number()), expected["meta"]["version"]);
        if version != Version::V0 {
            assert_eq!(Numbering::of(version), Some(numbering));
        }
        let by_id = set.by_id(numbering);
        let mut seen = SeenIds::default();
        let mut loss = Loss::new(version);
        let mut found = Vec::new();
        for record in reader {
            let record = record.unwrap();
            match &record {
                Record::Event(event) => seen.add(event),
                Record::Dropped(dropped) => loss.add(dropped),
                Record::Mapping(_) => panic!("a mapping before version 4"),
            }
            found.push(earlier_to_json(&record, &by_id, version));
        }
        assert_eq!(found.len(), records, "{name}");
        let expected_records = expected["records"].as_array().unwrap();
        for (found, expected) in found.iter().zip(expected_records) {
            assert_eq!(found, expected, "{name}");
        }
        assert_eq!(expected_records.len(), records, "{name}");
        assert_eq!(Json::from(loss.records()), expected["summary"]["lost"], "{name}");

        // The declarations have the types of the expected.json, so that it is these that were read by.
        for event in by_id.names().iter() {
            let types: Vec<Json> =
                set.get(event).unwrap().args.iter().map(|arg| json!([arg.c_type, arg.name])).collect();
            assert_eq!(Json::from(types), expected["events"][event], "{name}: {event}");
        }
        if version == Version::V0 {
            let inferred = set.infer_numbering(&seen);
            assert_eq!(inferred.numbering, numbering, "{name}: {inferred}");
            assert!(matches!(inferred.reason, NumberingReason::OtherMisfits(_)), "{name}: {inferred}");
            let mut index = EventIndex::new();
            index.add(name, declared);
            assert_eq!(index.infer_numbering(&seen), inferred, "{name}");
        }
    }
}

/// A record of an earlier version in the form of the expected.json files, which have a pid only where the version has.
fn earlier_to_json(record: &Record<'_>, by_id: &ById<'_>, version: Version) -> Json {
    let (mut json, pid) = match *record {
        Record::Mapping(_) => panic!("a mapping before version 4"),
        Record::Dropped(dropped) => {
            (json!({"off": dropped.offset, "dropped": dropped.count, "ts": dropped.timestamp_ns}), dropped.pid)
        }
        Record::Event(event) => {
            let declared = by_id.get(event.id).expect("a declaration for every id");
            let mut args = event.payload.args();
            let values: Vec<Json> = declared.args.iter().map(|arg| value_to_json(args.next(arg.ty).unwrap())).collect();
            assert_eq!(args.left_over(), b"", "{} at {}", declared.name, event.offset);
            let json = json!({"off": event.offset, "event": declared.name, "ts": event.timestamp_ns, "args": values});
            (json, event.pid)
        }
    };
    if version.has_pid() {
        json["pid"] = pid.into();
    } else {
        assert_eq!(pid, 0);
    }
    json
}

/// Both readers must find in `old/<name>.trace` what `old/<name>.expected.json` says, record by record in file order.
fn compare_with_expected_json(test: &str, name: &str, records: usize) {
    let Some(file) = shared::read(test, &format!("old/{name}.trace")) else {
        return;
    };
    let Some(expected) = shared::read(test, &format!("old/{name}.expected.json")) else {
        return;
    };
    let expected: Json = serde_json::from_slice(&expected).unwrap();

    assert_eq!(both(&file).fault, None);
    let reader = SliceReader::new(&file).unwrap();
    let mut names = Names::default();
    let mut found = Vec::new();
    for record in reader {
        found.push(to_json(&record.unwrap(), &mut names, &expected["events"]));
    }
    assert_eq!(found.len(), records);
    for (found, expected) in found.iter().zip(expected["records"].as_array().unwrap()) {
        assert_eq!(found, expected);
    }
    assert_eq!(expected["records"].as_array().unwrap().len(), records);
}

/// A record in the form of the expected.json files.
fn to_json(record: &Record<'_>, names: &mut Names, events: &Json) -> Json {
    match *record {
        Record::Mapping(mapping) => {
            assert!(matches!(names.map(&mapping), Mapped::New(_)));
            json!({"off": mapping.offset, "map": mapping.id.0, "name": mapping.name})
        }
        Record::Dropped(dropped) => {
            json!({"off": dropped.offset, "dropped": dropped.count, "ts": dropped.timestamp_ns, "pid": dropped.pid})
        }
        Record::Event(event) => {
            let name = names.name(names.slot(event.id).expect("a mapping before its event"));
            let mut args = event.payload.args();
            let types = events[name].as_array().expect("the types of every event");
            let args_json: Vec<Json> = types
                .iter()
                .map(|pair| value_to_json(args.next(arg_type(pair[0].as_str().unwrap())).unwrap()))
                .collect();
            assert_eq!(args.rest(), b"", "{name} at {}", event.offset);
            json!({"off": event.offset, "event": name, "ts": event.timestamp_ns, "args": args_json, "pid": event.pid})
        }
    }
}

fn value_to_json(value: Value<'_>) -> Json {
    match value {
        Value::Signed(value) => value.into(),
        Value::Unsigned(value) | Value::Pointer(value) => value.into(),
        Value::Bool(value) => value.into(),
        Value::String(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.into(),
            Err(_) => json!({"hex": bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()}),
        },
    }
}

/// The C types of the test events, by their spelling.
fn arg_type(c_type: &str) -> ArgType {
    match c_type {
        "const char *" | "char *" => ArgType::String,
        _ if c_type.contains('*') => ArgType::Pointer,
        "bool" => ArgType::Bool,
        "char" => ArgType::Char,
        "int" | "int32_t" => ArgType::Signed(Width::W32),
        "long" => ArgType::Signed(Width::Host),
        "int8_t" => ArgType::Signed(Width::W8),
        "int16_t" => ArgType::Signed(Width::W16),
        "int64_t" => ArgType::Signed(Width::W64),
        "unsigned int" | "uint32_t" => ArgType::Unsigned(Width::W32),
        "unsigned long" | "size_t" => ArgType::Unsigned(Width::Host),
        "uint8_t" => ArgType::Unsigned(Width::W8),
        "uint16_t" => ArgType::Unsigned(Width::W16),
        "uint64_t" => ArgType::Unsigned(Width::W64),
        _ => panic!("no test event has a {c_type}"),
    }
}

/// A row of the table of damaged files: name, mappings and events before the damage, and the fault.
type Row = (&'static str, usize, usize, Option<(u64, ErrorKind)>);

/// Where a file is damaged by an edit of a field and not by a cut, "before" counts what a reader without declarations gives out:
/// see the comments.
fn damaged_files() -> Vec<Row> {
    use ErrorKind::*;

    vec![
        ("a-base", 14, 90, None),
        ("b-base", 14, 60, None),
        ("cut-type-word", 14, 32, Some((2128, TornTail(3)))),
        ("cut-event-id", 14, 32, Some((2128, TornTail(12)))),
        ("cut-length", 14, 32, Some((2128, TornTail(26)))),
        ("cut-pid", 14, 32, Some((2128, TornTail(30)))),
        ("cut-u64-arg", 14, 32, Some((2128, TornTail(45)))),
        ("cut-string-length", 14, 35, Some((2296, TornTail(42)))),
        ("cut-string-body", 14, 35, Some((2296, TornTail(49)))),
        ("cut-mapping-type", 7, 0, Some((210, TornTail(5)))),
        ("cut-mapping-length", 7, 0, Some((210, TornTail(18)))),
        ("zeros-64k", 14, 90, Some((6920, EmptyName))),
        ("zeros-mid", 14, 32, Some((2128, EmptyName))),
        ("concat-same", 14, 90, Some((6920, SecondHeader))),
        ("concat-big-endian", 14, 90, Some((6920, SecondHeader))),
        ("length-0", 14, 35, Some((2296, RecordTooShort(0)))),
        ("length-2g", 14, 35, Some((2296, RecordTooLong(1 << 31)))),
        // The record at 2296 swallows the type word of the next, which only its declaration can tell. What follows is out of
        // step: there the fault is found.
        ("length-plus8", 14, 36, Some((2367, RecordTooLong(16_777_232)))),
        ("b-length-0", 14, 30, Some((2088, RecordTooShort(0)))),
        // The record at 2088 lacks its last argument, a zero, which now stands where the next record's type should be.
        ("b-length-minus8", 14, 31, Some((2136, NameTooLong(3272)))),
        ("garbage-insert", 14, 32, Some((2128, UnknownRecordType(0xc2f1_e6fd_3c82_2044)))),
        ("type-7", 14, 32, Some((2128, UnknownRecordType(7)))),
        // These are wrong in what a record holds, which is no fault of the records' chain.
        ("id-unmapped", 14, 90, None),
        ("string-too-long", 14, 90, None),
        ("name-unknown", 14, 90, None),
        ("extra-payload", 14, 90, None),
        ("mapping-length-2g", 7, 0, Some((210, NameTooLong(1 << 31)))),
        ("empty", 0, 0, Some((0, HeaderCut(0)))),
        ("seven-bytes", 0, 0, Some((0, HeaderCut(7)))),
        ("header-only", 0, 0, None),
        ("mappings-only", 14, 0, None),
        ("wrong-magic", 0, 0, Some((0, NotATrace(u64::MAX, 0xf2b1_77cb_0aa4_29b5)))),
        ("version-1", 0, 0, Some((0, UnsupportedVersion(1)))),
        ("version-5", 0, 0, Some((0, UnsupportedVersion(5)))),
        ("v0-cut", 0, 39, Some((2560, TornTail(17)))),
        // The string of the record at 3706 begins behind its 24-byte header and its own length.
        ("v2-cut-string", 0, 67, Some((3706, TornTail(24 + 4 + 3)))),
        // The length stands 16 bytes into the record.
        ("v3-length-0", 0, 78, Some((4177 - 16, RecordTooShort(0)))),
        ("be-cut-string", 14, 47, Some((2988, TornTail(47)))),
        ("killed-img", 443, 890, Some((75102, TornTail(20)))),
    ]
}

#[test]
fn a_damaged_file_gives_every_record_before_the_damage_and_its_offset() {
    for (name, mappings, events, fault) in damaged_files() {
        let path = format!("damaged/{name}.trace");
        let test = "a_damaged_file_gives_every_record_before_the_damage_and_its_offset";
        let Some(file) = shared::read(test, &path) else {
            return;
        };
        let Outcome { records, fault: found, .. } = both(&file);
        let found_mappings = records.iter().filter(|record| matches!(record, Owned::Mapping { .. })).count();
        assert_eq!(found, fault.map(|(offset, kind)| Fault::new(offset, &kind)), "{path}");
        assert_eq!((found_mappings, records.len() - found_mappings), (mappings, events), "{path}");
    }
}

#[test]
fn what_stands_before_the_damage_is_what_the_undamaged_file_has_there() {
    let test = "what_stands_before_the_damage_is_what_the_undamaged_file_has_there";
    for (base, names) in [
        (
            "a-base",
            &[
                "cut-u64-arg",
                "cut-string-body",
                "zeros-mid",
                "concat-big-endian",
                "length-2g",
                "garbage-insert",
                "type-7",
            ][..],
        ),
        ("b-base", &["b-length-0"]),
    ] {
        let Some(whole) = shared::read(test, &format!("damaged/{base}.trace")) else {
            return;
        };
        let whole = both(&whole).records;
        for name in names {
            let Some(file) = shared::read(test, &format!("damaged/{name}.trace")) else {
                return;
            };
            let records = both(&file).records;
            assert!(records.len() > 40, "{name}");
            assert_eq!(records, whole[..records.len()], "{name}");
        }
    }
}

/// Reads on to the event record at `offset`.
fn event_at<'a>(offset: u64, records: &mut SliceReader<'a>) -> EventRecord<'a> {
    let found = records.find_map(|record| match record.unwrap() {
        Record::Event(event) if event.offset == offset => Some(event),
        _ => None,
    });
    found.expect("an event record at the offset")
}

#[test]
fn a_string_that_reaches_past_its_record_ends_only_that_record() {
    let test = "a_string_that_reaches_past_its_record_ends_only_that_record";
    let Some(file) = shared::read(test, "damaged/string-too-long.trace") else {
        return;
    };
    let mut records = SliceReader::new(&file).unwrap();
    let mut args = event_at(2296, &mut records).payload.args();
    assert!(args.word().is_some());
    assert_eq!(args.next(ArgType::String), None);
    assert_eq!(args.rest().len(), 4 + 11 + 8);
    assert_eq!(records.count(), 54);
}

#[test]
fn arguments_that_a_later_qemu_might_append_are_left_over() {
    let test = "arguments_that_a_later_qemu_might_append_are_left_over";
    let Some(file) = shared::read(test, "damaged/extra-payload.trace") else {
        return;
    };
    let mut records = SliceReader::new(&file).unwrap();
    let mut args = event_at(2296, &mut records).payload.args();
    assert!(args.word().is_some());
    assert_eq!(args.string(), Some(&b"thread-2-15"[..]));
    assert_eq!(args.next(ArgType::Signed(Width::W32)), Some(Value::Signed(-16)));
    assert_eq!(args.rest().len(), 16);
}

#[test]
fn files_of_real_qemu_programs_are_read_to_their_end() {
    let test = "files_of_real_qemu_programs_are_read_to_their_end";
    // The number of events is that of the lines which simpletrace.py prints.
    for (path, events) in
        [("qemu-8.2/img-convert.trace", 476), ("qemu-8.2/kvm-blk.trace", 3898), ("qemu-10.2/img-convert.trace", 578)]
    {
        let Some(file) = shared::read(test, path) else {
            return;
        };
        let outcome = both(&file);
        let size = file.len() as u64;
        assert_eq!((outcome.stopped_at, outcome.fault), (Some(size), None), "{path}");
        let found = outcome.records.iter().filter(|record| !matches!(record, Owned::Mapping { .. }));
        assert_eq!(found.count(), events, "{path}");
    }
}
