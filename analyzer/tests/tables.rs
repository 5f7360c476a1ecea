//! Tables of the library against what the commands print of the same traces, and against values by hand.

#![cfg(feature = "columns")]

mod support;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch, RecordBatchReader as _};
use arrow_schema::{DataType, Schema};
use serde_json::{Map, Value as Json, json};
use simpletrace_format::{ByteOrder, EventId, Facts, Value};
use simpletrace_rs::tables::{self, Level, Operation, Options, Report, Source, Stream, Table, Verdict};
use support::sample::{EVENTS, ORDERS, sample, trace};
use support::{Dir, shared};

fn demo() -> Dir {
    Dir::at(concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/demo").into())
}

fn open(dir: &Dir, trace: &str, events: &str) -> Source {
    tables::open(&[dir.path(trace)], &[dir.path(events)]).unwrap()
}

fn demo_source() -> Source {
    open(&demo(), "disk.trace", "disk.trace-events")
}

fn columns(names: &[&str]) -> Options {
    Options { columns: Some(names.iter().map(ToString::to_string).collect()), ..Options::default() }
}

fn operation(preset: &str) -> Operation {
    Operation { preset: Some(preset.to_owned()), ..Operation::default() }
}

/// One value, as `decode -F ndjson` has it.
fn value(column: &dyn Array, row: usize) -> Json {
    if column.is_null(row) {
        return Json::Null;
    }
    match column.data_type() {
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).into(),
        DataType::UInt32 => column.as_primitive::<UInt32Type>().value(row).into(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).into(),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).into(),
        DataType::Boolean => column.as_boolean().value(row).into(),
        DataType::Utf8 => column.as_string::<i32>().value(row).into(),
        DataType::Binary => column.as_binary::<i32>().value(row).into(),
        other => panic!("{other}"),
    }
}

fn rows<'a>(batches: impl IntoIterator<Item = &'a RecordBatch>) -> Vec<Json> {
    let mut rows = Vec::new();
    for batch in batches {
        let schema = batch.schema();
        let names: Vec<_> = schema.fields().iter().map(|field| field.name().clone()).collect();
        rows.extend((0..batch.num_rows()).map(|row| {
            let cells = names.iter().zip(batch.columns()).map(|(name, column)| (name.clone(), value(column, row)));
            Json::from(cells.collect::<Map<_, _>>())
        }));
    }
    rows
}

/// All rows, and what was found.
fn read(mut stream: Stream) -> (Vec<Json>, Report) {
    let schema = stream.schema();
    let batches: Vec<_> = stream.by_ref().map(Result::unwrap).collect();
    assert!(batches.iter().all(|batch| batch.schema() == schema && batch.num_rows() > 0));
    assert!(stream.next().is_none());
    (rows(&batches), stream.report().unwrap().clone())
}

fn names(schema: &Schema) -> Vec<&str> {
    schema.fields().iter().map(|field| field.name().as_str()).collect()
}

fn texts(report: &Report) -> Vec<String> {
    report.remarks.iter().map(ToString::to_string).collect()
}

/// The lines that `decode -F ndjson` prints.
fn decoded(dir: &Dir, line: &str) -> Vec<Json> {
    let run = dir.call(&format!("decode {line} -F ndjson")).run();
    assert!(run.code < 2, "{run:?}");
    String::from_utf8(run.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Rows of the table of an event, as they are when made of what `decode` prints.
fn wide(decoded: &[Json], event: &str) -> Vec<Json> {
    let of_event = decoded.iter().filter(|row| row["event"] == event);
    of_event
        .map(|row| {
            let mut wide = row.as_object().unwrap().clone();
            let args = wide.remove("args").unwrap();
            wide.remove("event");
            wide.extend(args.as_object().unwrap().clone());
            Json::from(wide)
        })
        .collect()
}

#[test]
fn the_columns_of_an_event_are_its_arguments() {
    for order in ORDERS {
        let dir = Dir::with([("t.trace", &sample(order)), ("t.trace-events", EVENTS)]);
        let stream = open(&dir, "t.trace", "t.trace-events").event("disk_open", &Options::default()).unwrap();
        let schema = stream.schema();
        let types: Vec<_> = schema.fields().iter().map(|field| (field.name().as_str(), field.data_type())).collect();
        assert_eq!(
            types,
            [
                ("ts_ns", &DataType::UInt64),
                ("pid", &DataType::UInt32),
                ("path", &DataType::Utf8),
                ("read_only", &DataType::Boolean)
            ]
        );
        assert_eq!(schema.metadata()["simpletrace.schema"], "simpletrace-rs.columns/1");
        assert_eq!(schema.metadata()["simpletrace.event"], "disk_open");
        let (rows, report) = read(stream);
        assert_eq!(rows, [json!({"ts_ns": 1_000_000_000, "pid": 10, "path": "a,b \"c\"", "read_only": true})]);
        assert_eq!((report.verdict, report.gaps, report.dropped), (Verdict::Sound, 1, 3));
        assert_eq!(texts(&report), ["note: 3 events were dropped by the recorder, in 1 gap"]);

        let source = || open(&dir, "t.trace", "t.trace-events");
        let (rows, _) = read(source().event("disk_read", &columns(&["sector", "ts_ns"])).unwrap());
        assert_eq!(rows, [json!({"ts_ns": 1_000_001_500, "sector": u64::MAX})]);
        let (rows, _) = read(source().event("never_seen", &Options::default()).unwrap());
        assert_eq!(rows, [] as [Json; 0]);
        let (rows, _) = read(source().event("dropped", &columns(&["count", "ts_ns"])).unwrap());
        assert_eq!(rows, [json!({"ts_ns": 1_000_002_000, "count": 3})]);
    }
}

#[test]
fn what_is_read_of_the_demo_is_what_decode_prints() {
    let all = decoded(&demo(), "disk.trace");
    let events: BTreeMap<_, Vec<_>> = all.iter().fold(BTreeMap::new(), |mut events, row| {
        events.entry(row["event"].as_str().unwrap().to_owned()).or_insert_with(Vec::new).push(row);
        events
    });
    let (tables, report) = demo_source().events(&Options::default()).unwrap().finish().unwrap();
    assert_eq!((tables.len(), report.dropped), (events.len(), 30));
    for (name, Table { schema, batches }) in &tables {
        assert!(batches.iter().all(|batch| batch.schema() == *schema));
        assert_eq!(schema.metadata()["simpletrace.event"], *name);
        let expected = wide(&all, name);
        assert_eq!(rows(batches), expected, "{name}");
        assert_eq!(read(demo_source().event(name, &Options::default()).unwrap()).0, expected, "{name}");
    }
    let (long, _) = read(demo_source().long(&Options::default()).unwrap());
    let long: Vec<_> = long
        .into_iter()
        .map(|mut row| {
            assert_eq!(row.as_object_mut().unwrap().remove("left_over"), Some(Json::Null));
            row["args"] = serde_json::from_str(row["args"].as_str().unwrap()).unwrap();
            row
        })
        .collect();
    assert_eq!(long, all);
}

#[test]
fn options_mean_what_they_do_on_the_command_line() {
    let dir = demo();
    let text = |text: &str| vec![text.to_owned()];
    let none = Options::default;
    for (options, line) in [
        (Options { time: Some("10ms+200ms".to_owned()), ..none() }, "-t 10ms+200ms"),
        (Options { filters: text("count >= 32"), ..none() }, "-w count>=32"),
        (Options { pids: vec![22_809], ..none() }, "--pid 22809"),
        (Options { pids: vec![1], ..none() }, "--pid 1"),
        (Options { limit: Some(3), ..none() }, "-n 3"),
    ] {
        let name = "virtio_blk_handle_read";
        let expected = wide(&decoded(&dir, &format!("disk.trace -e {name} {line}")), name);
        assert_eq!(read(demo_source().event(name, &options).unwrap()).0, expected, "{line}");
        let many = Options { events: text("virtio_blk_handle_*"), ..options.clone() };
        let all = decoded(&dir, &format!("disk.trace -e virtio_blk_handle_* {line}"));
        let (tables, _) = demo_source().events(&many).unwrap().finish().unwrap();
        for (name, Table { batches, .. }) in &tables {
            assert_eq!(rows(batches), wide(&all, name), "{name} {line}");
        }
        assert_eq!(tables.values().flat_map(|table| rows(&table.batches)).count(), all.len(), "{line}");
        let (long, _) = read(demo_source().long(&Options { columns: Some(text("event")), ..many }).unwrap());
        let events: Vec<_> = all.iter().map(|row| json!({ "event": row["event"] })).collect();
        assert_eq!(long, events, "{line}");
    }
    let many = Options { events: ["*", "-virtio*", "-dropped"].map(str::to_owned).into(), ..columns(&["vq", "ts_ns"]) };
    let (tables, _) = demo_source().events(&many).unwrap().finish().unwrap();
    assert_eq!(names(&tables["virtqueue_pop"].schema), ["ts_ns", "vq"]);
    assert_eq!(names(&tables["thread_pool_submit"].schema), ["ts_ns"]);
    assert!(!tables.contains_key("dropped") && !tables.contains_key("virtio_notify"));
    // Of those that have no record, only those that are named.
    let named = |names: &[&str]| Options {
        events: names.iter().map(ToString::to_string).collect(),
        filters: text("pid == 1"),
        ..none()
    };
    let (tables, _) = demo_source().events(&named(&["virtio_notify", "virtqueue_*"])).unwrap().finish().unwrap();
    assert_eq!(tables.keys().collect::<Vec<_>>(), ["virtio_notify"]);
    assert_eq!(names(&tables["virtio_notify"].schema), ["ts_ns", "pid", "vdev", "vq"]);
}

#[test]
fn times_of_day_are_those_of_each_file() {
    let dir = Dir::new();
    dir.write("t.trace-events", EVENTS);
    let of = |offset_ns: u64| {
        trace(ByteOrder::Little, |writer| {
            let mut facts = Facts::default();
            facts.set_anchor(1_000, 1_000 + offset_ns);
            writer.facts(&facts)?;
            writer.mapping(EventId(1), "idle")?;
            writer.event(EventId(1), offset_ns, 1, &[])
        })
    };
    dir.write("a.trace", of(50));
    dir.write("b.trace", of(70));
    dir.write(
        "c.trace",
        trace(ByteOrder::Little, |writer| {
            writer.mapping(EventId(1), "idle")?;
            writer.event(EventId(1), 60, 1, &[])
        }),
    );
    let traces = ["a.trace", "b.trace", "c.trace"].map(|name| dir.path(name));
    let source = || tables::open(&traces[..], &[dir.path("t.trace-events")]).unwrap();
    let expected = [(50, json!(100)), (60, Json::Null), (70, json!(140))]
        .map(|(ts_ns, wall_ns)| json!({"ts_ns": ts_ns, "wall_ns": wall_ns}));
    assert_eq!(read(source().event("idle", &columns(&["ts_ns", "wall_ns"])).unwrap()).0, expected);
    assert_eq!(read(source().long(&columns(&["ts_ns", "wall_ns"])).unwrap()).0, expected);
    let wall = Options { wall: true, ..Options::default() };
    assert_eq!(names(&source().event("idle", &wall).unwrap().schema()), ["ts_ns", "wall_ns", "pid"]);
    let (tables, _) = source().events(&wall).unwrap().finish().unwrap();
    assert_eq!(rows(&tables["idle"].batches)[2], json!({"ts_ns": 70, "wall_ns": 140, "pid": 1}));
}

#[test]
fn what_is_damaged_is_told_in_the_report_and_not_on_stderr() {
    let dir = Dir::new();
    dir.write("t.trace-events", EVENTS);
    let mut bytes = sample(ByteOrder::Little);
    bytes.truncate(bytes.len() - 1);
    dir.write("torn.trace", &bytes);
    // The length of disk_read.
    bytes[186 + 27] = 0x7f;
    dir.write("damaged.trace", &bytes);
    for (name, verdict, reads) in [("torn.trace", Verdict::Torn, 1), ("damaged.trace", Verdict::Damaged, 0)] {
        let (rows, report) = read(open(&dir, name, "t.trace-events").event("disk_read", &Options::default()).unwrap());
        assert_eq!((rows.len(), report.verdict), (reads, verdict), "{report:?}");
        let run = dir.call(&format!("decode {name} t.trace-events -e disk_read -F csv")).run();
        let said: Vec<_> = run.stderr.lines().map(|line| line.replace(dir.path("").to_str().unwrap(), "")).collect();
        let told = texts(&report).into_iter().map(|text| text.replace(dir.path("").to_str().unwrap(), ""));
        assert_eq!(told.collect::<Vec<_>>(), said, "{name}");
        assert!(report.remarks.iter().any(|remark| remark.level == Level::Error) == (verdict == Verdict::Damaged));
    }
    // Of the strings and numbers that no column can hold as they are, as well.
    dir.write(
        "odd.trace",
        trace(ByteOrder::Little, |writer| {
            writer.mapping(EventId(1), "disk_open")?;
            writer.event(EventId(1), 5, 1, &[Value::String(b"\xff\\"), Value::Unsigned(7)])
        }),
    );
    let source = || open(&dir, "odd.trace", "t.trace-events");
    let (rows, report) = read(source().event("disk_open", &Options::default()).unwrap());
    assert_eq!(rows, [json!({"ts_ns": 5, "pid": 1, "path": r"\xff\x5c", "read_only": true})]);
    let expected = [
        "warning: strings that are not UTF-8: 1; their bytes from 0x80 up, and their backslashes, are written as \\xNN",
        "warning: values of bool arguments that are neither 0 nor 1: 1; written as true",
    ];
    assert_eq!(texts(&report), expected);
    assert_eq!(texts(&source().events(&Options::default()).unwrap().finish().unwrap().1), expected);
}

#[test]
fn what_makes_no_sense_is_an_error_that_says_what_does() {
    let dir =
        Dir::with([("t.trace", &sample(ByteOrder::Little)), ("t.trace-events", EVENTS), ("text", b"no trace at all")]);
    let source = || open(&dir, "t.trace", "t.trace-events");
    let none = Options::default;
    let said = |stream: tables::Result<Stream>| match stream {
        Ok(mut stream) => stream.find_map(Result::err).map(|error| error.to_string()).unwrap_or_default(),
        Err(error) => error.to_string(),
    };
    let cases = [
        (said(source().event("disk_read", &columns(&["sectr"]))), "no column is called sectr; did you mean sector?"),
        (
            said(source().long(&columns(&["xyz"]))),
            "no column is called xyz; there are ts_ns, wall_ns, pid, event, args, left_over",
        ),
        (
            said(source().event("idle", &Options { time: Some("5".to_owned()), ..none() })),
            "time window '5' has neither '-' nor '+'; write START-END, START-, -END or START+LENGTH",
        ),
        (
            said(source().event("disk_raed", &none())),
            "External error: no event is called disk_raed; did you mean disk_read?",
        ),
        (
            said(source().pairs(&operation("virtio_blk"), &none())),
            "there is no preset virtio_blk; did you mean virtio-blk?",
        ),
        (
            said(source().pairs(&Operation::default(), &none())),
            "no operation is given; write 'BEGIN -> END', or take a preset (--preset, --list)",
        ),
        (
            said(source().latency(&Operation { discipline: Some("lilo".to_owned()), ..operation("locks") }, &none())),
            "there is no discipline lilo; there are last, first, fifo and lifo",
        ),
    ];
    for (found, expected) in cases {
        assert_eq!(found, expected);
    }
    let many = source().events(&columns(&["sectr"])).unwrap().finish();
    assert_eq!(many.err().unwrap().to_string(), "no column is called sectr; did you mean sector?");
    let missing = tables::open(&[dir.path("missing")], &[]).err().unwrap();
    assert_eq!(missing.io().unwrap().kind(), std::io::ErrorKind::NotFound);
    assert_eq!(missing.path(), Some(&*dir.path("missing")));
    let folder = tables::open(&[dir.path("")], &[]).err().unwrap();
    assert_eq!(folder.io().unwrap().kind(), std::io::ErrorKind::IsADirectory);
    let dropped = PathBuf::from("..");
    assert!(tables::open(&[dropped], &[]).is_err());
    // Not a trace, though it is said to be one.
    let text = tables::open(&[dir.path("text")], &[dir.path("t.trace-events")]).unwrap();
    let error = said(text.event("idle", &none()));
    assert!(error.contains("text: ") && error.contains("not a trace file"), "{error}");
}

#[test]
fn events_that_are_not_declared_have_their_bytes() {
    let dir = Dir::with([("t.trace", &sample(ByteOrder::Little)), ("none", b"# nothing\nother(int x) \"\"\n")]);
    let (tables, report) = open(&dir, "t.trace", "none").events(&Options::default()).unwrap().finish().unwrap();
    assert_eq!(report.verdict, Verdict::Damaged);
    let read_bytes = [0x7f00, u64::MAX, 8].map(u64::to_le_bytes).concat();
    assert_eq!(rows(&tables["disk_read"].batches), [json!({"ts_ns": 1_000_001_500, "pid": 10, "payload": read_bytes})]);
    let (rows, _) = read(open(&dir, "t.trace", "none").event("disk_read", &columns(&["payload"])).unwrap());
    assert_eq!(rows, [json!({ "payload": read_bytes })]);
}

#[test]
fn behind_an_argument_that_is_not_there_are_none() {
    let mut bytes = trace(ByteOrder::Little, |writer| {
        writer.mapping(EventId(0), "f")?;
        writer.event(EventId(0), 10, 1, &[Value::Signed(7), Value::String(b"secret__other")])
    });
    // It says to be longer than its record.
    let text = bytes.windows(6).position(|window| window == b"secret").unwrap();
    bytes[text - 4] = 100;
    let events = b"f(int n, const char *s, int m) \"\"\n";
    let dir = Dir::with([("t.trace", &bytes[..]), ("t.trace-events", events)]);
    let source = || open(&dir, "t.trace", "t.trace-events");
    let row = json!({"ts_ns": 10, "pid": 1, "n": 7, "s": null, "m": null});
    assert_eq!(read(source().event("f", &Options::default()).unwrap()).0, std::slice::from_ref(&row));
    let (tables, _) = source().events(&Options::default()).unwrap().finish().unwrap();
    assert_eq!(rows(&tables["f"].batches), [row]);
    let csv = dir.run("decode t.trace t.trace-events -F csv -e f").exits(1);
    assert_eq!(csv.text(), "ts_ns,pid,event,n,s,m\n10,1,f,7,,\n");
}

#[test]
fn an_event_that_is_called_as_gaps_are_has_a_table_of_its_own() {
    let bytes = trace(ByteOrder::Little, |writer| {
        writer.mapping(EventId(0), "dropped")?;
        writer.event(EventId(0), 10, 1, &[Value::Signed(-1)])?;
        Ok(writer.dropped(20, 1, 5)?)
    });
    let dir = Dir::with([("t.trace", &bytes[..]), ("t.trace-events", b"dropped(int frames) \"\"\n")]);
    for events in [vec![], vec!["dropped".to_owned()]] {
        let options = Options { events, ..Options::default() };
        let (tables, _) = open(&dir, "t.trace", "t.trace-events").events(&options).unwrap().finish().unwrap();
        assert_eq!(tables.keys().collect::<Vec<_>>(), ["dropped", "dropped (event)"]);
        assert_eq!(rows(&tables["dropped"].batches), [json!({"ts_ns": 20, "pid": 1, "count": 5})]);
        assert_eq!(rows(&tables["dropped (event)"].batches), [json!({"ts_ns": 10, "pid": 1, "frames": -1})]);
    }
}

#[test]
fn that_there_are_no_declarations_is_told() {
    let dir = Dir::with([("t.trace", &sample(ByteOrder::Little)[..])]);
    let source = || tables::open(&[dir.path("t.trace")], &[]).unwrap();
    let text = "warning: no trace-events file was given or found, so arguments are one column of bytes; take the trace-events-all of the build \
                that wrote the trace";
    let (_, of_one) = read(source().event("disk_read", &Options::default()).unwrap());
    let (_, of_all) = source().events(&Options::default()).unwrap().finish().unwrap();
    for report in [of_one, of_all] {
        assert!(!report.is_declared);
        assert_eq!(texts(&report).iter().filter(|&remark| remark == text).count(), 1, "{report:?}");
    }
}

#[test]
fn names_that_are_of_no_event_are_errors_and_patterns_warnings() {
    let dir = Dir::with([("t.trace", &sample(ByteOrder::Little)[..]), ("t.trace-events", EVENTS)]);
    let source = || open(&dir, "t.trace", "t.trace-events");
    let of = |patterns: &[&str]| Options {
        events: patterns.iter().map(ToString::to_string).collect(),
        ..Options::default()
    };
    for patterns in [&["idle", "disk_raed"][..], &["*", "-disk_raed"]] {
        let error = source().events(&of(patterns)).unwrap().finish().err().unwrap();
        assert_eq!(error.to_string(), "no event is called disk_raed; did you mean disk_read?");
        let error = source().long(&of(patterns)).unwrap().find_map(Result::err).unwrap();
        assert!(error.to_string().ends_with("did you mean disk_read?"), "{error}");
    }
    let (tables, report) = source().events(&of(&["disk_r*", "dropped*", "net_*"])).unwrap().finish().unwrap();
    assert!(tables.contains_key("disk_read"));
    let unmatched: Vec<_> = texts(&report).into_iter().filter(|text| text.contains("pattern")).collect();
    assert_eq!(unmatched, ["warning: no event is called as in the pattern net_*"]);
}

#[test]
fn pairs_are_those_of_the_demos_generator() {
    let stream = demo_source().pairs(&operation("virtio-blk"), &Options::default()).unwrap();
    assert_eq!(names(&stream.schema()), ["begin_ns", "end_ns", "latency_ns", "suspect", "vdev", "req", "event"]);
    let (rows, report) = read(stream);
    assert_eq!((rows.len(), report.verdict), (32, Verdict::Sound));
    let number = |row: &Json, name: &str| row[name].as_u64().unwrap();
    assert_eq!(rows.iter().map(|row| number(row, "latency_ns")).sum::<u64>(), 18_406_774);
    assert!(rows.iter().all(|row| number(row, "end_ns") - number(row, "begin_ns") == number(row, "latency_ns")));
    assert!(rows.windows(2).all(|pair| number(&pair[0], "end_ns") <= number(&pair[1], "end_ns")));
    // As many as `latency` says straddle.
    assert_eq!(rows.iter().filter(|row| row["suspect"] == true).count(), 20);
    // What begins each is there, with its arguments.
    let begins = decoded(&demo(), "disk.trace -e virtio_blk_handle_*");
    for row in &rows {
        let is_its = |begin: &&Json| begin["ts_ns"] == row["begin_ns"] && begin["args"]["req"] == row["req"];
        let begin = begins.iter().find(is_its).unwrap();
        assert_eq!((&begin["args"]["vdev"], &begin["event"]), (&row["vdev"], &row["event"]));
    }
    let hops = demo_source().pairs(&operation("virtio-blk-hops"), &Options::default()).unwrap();
    let (rows, _) = read(hops);
    let hops: Vec<_> = rows[0].as_object().unwrap().keys().filter(|name| name.starts_with("hop")).cloned().collect();
    assert!(!rows.is_empty() && hops.len() > 1);
    for row in &rows {
        assert_eq!(hops.iter().map(|hop| number(row, hop)).sum::<u64>(), number(row, "latency_ns"));
    }
}

/// A table of latencies, with what else was said, beside what `latency -F json` prints.
fn same_as_latency(dir: &Dir, files: [&str; 2], operation: &Operation, options: &Options, words: &[&str]) -> usize {
    let line = format!("latency {} {} -F json", files[0], files[1]);
    let run = words.iter().fold(dir.call(&line), |call, word| call.arg(word)).run();
    assert!(run.code < 2, "{run:?}");
    let mut expected: Map<_, _> = serde_json::from_slice(&run.stdout).unwrap();
    let groups = expected.remove("groups").unwrap();
    let (rows, report) = {
        let mut stream = open(dir, files[0], files[1]).latency(operation, options).unwrap();
        let batches: Vec<_> = stream.by_ref().map(Result::unwrap).collect();
        (rows(&batches), stream.report().unwrap().clone())
    };
    // serde_json does not read all digits of a fraction.
    let rows: Vec<Json> = serde_json::from_str(&serde_json::to_string(&rows).unwrap()).unwrap();
    let facts: Map<_, _> = serde_json::from_str(report.facts.as_deref().unwrap()).unwrap();
    assert_eq!((Json::from(rows.clone()), facts), (groups, expected), "{words:?}");
    let path = dir.path("").display().to_string();
    let told: Vec<_> = texts(&report).iter().map(|text| text.replace(&path, "")).collect();
    assert_eq!(told, run.stderr.lines().map(|line| line.replace(&path, "")).collect::<Vec<_>>(), "{words:?}");
    rows.len()
}

#[test]
fn latencies_are_those_that_the_command_prints() {
    let files = ["disk.trace", "disk.trace-events"];
    let text = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
    let own = |chain: &str, on: &str, by: &[&str]| Operation {
        chain: Some(chain.to_owned()),
        on: Some(on.to_owned()),
        by: text(by),
        ..Operation::default()
    };
    let none = Options::default;
    let check = |operation: &Operation, options: &Options, words: &[&str]| {
        same_as_latency(&demo(), files, operation, options, words)
    };
    assert_eq!(check(&operation("virtio-blk"), &none(), &["--preset", "virtio-blk"]), 2);
    let hops = check(&operation("virtio-blk-hops"), &none(), &["--preset", "virtio-blk-hops"]);
    assert!(hops > 4 && hops % 2 == 0);
    let pool = own("thread_pool_submit -> thread_pool_complete", "req", &[]);
    let pool_words = ["thread_pool_submit -> thread_pool_complete", "--on", "req"];
    assert_eq!(check(&pool, &none(), &pool_words), 1);
    let own = own(
        "virtio_blk_handle_read|virtio_blk_handle_write -> virtio_blk_req_complete",
        "req",
        &["event", "count:log2"],
    );
    let words = [own.chain.as_deref().unwrap(), "--on", "req", "--by", "event,count:log2"];
    assert!(check(&own, &none(), &words) > 3);
    let exclude = Operation { without_suspects: true, percentiles: text(&["0", "99.99"]), ..own.clone() };
    check(&exclude, &none(), &[&words[..], &["--drops", "exclude", "-p", "0,99.99"]].concat());
    let some = Options { time: Some("-100ms".to_owned()), filters: text(&["count >= 16"]), ..none() };
    check(&own, &some, &[&words[..], &["-t", "-100ms", "-w", "count >= 16"]].concat());
    // Nothing, and why; the columns stay what they are.
    let nothing = Options { pids: vec![1], ..none() };
    assert_eq!(check(&own, &nothing, &[&words[..], &["--pid", "1"]].concat()), 0);
    let types = |options: &Options| {
        let schema = demo_source().latency(&own, options).unwrap().schema();
        schema.fields().iter().map(|field| field.data_type().clone()).collect::<Vec<_>>()
    };
    assert_eq!(
        types(&nothing)[..5],
        [DataType::Utf8, DataType::Utf8, DataType::UInt64, DataType::Float64, DataType::UInt64]
    );
    let schema = demo_source().latency(&operation("virtio-blk"), &columns(&["p99_ns", "event"])).unwrap().schema();
    assert_eq!(names(&schema), ["event", "p99_ns"]);
}

#[test]
fn tables_of_real_traces_are_what_the_commands_print() {
    let test = "tables_of_real_traces_are_what_the_commands_print";
    let Some(dir) = shared::traces(test, "qemu-8.2/vm-virtio-blk.trace.zst") else { return };
    let all = decoded(&dir, "qemu-8.2/vm-virtio-blk.trace.zst qemu-8.2/trace-events-all");
    let source = || open(&dir, "qemu-8.2/vm-virtio-blk.trace.zst", "qemu-8.2/trace-events-all");
    let (tables, report) = source().events(&Options::default()).unwrap().finish().unwrap();
    assert_eq!(report.verdict, Verdict::Sound);
    let mut total = 0;
    for (name, Table { batches, .. }) in &tables {
        let rows = rows(batches);
        total += rows.len();
        assert!(rows == wide(&all, name), "{name}");
    }
    assert_eq!(total, all.len());
    for preset in ["virtio-blk", "thread-pool"] {
        let files = ["qemu-8.2/vm-virtio-blk.trace.zst", "qemu-8.2/trace-events-all"];
        assert!(same_as_latency(&dir, files, &operation(preset), &Options::default(), &["--preset", preset]) > 0);
    }
}

#[test]
fn presets_are_those_that_the_command_lists() {
    let listed = Dir::new().run("latency --list -F json").exits(0).text().to_owned();
    let listed: Vec<Map<String, Json>> = serde_json::from_str(&listed).unwrap();
    let presets = tables::presets(&[]).unwrap();
    let own = presets.iter().map(|preset| (preset.name.as_str(), preset.operation.as_str(), preset.about.as_str()));
    let theirs = listed.iter().map(|row| ["preset", "operation", "about"].map(|name| row[name].as_str().unwrap()));
    assert_eq!(own.collect::<Vec<_>>(), theirs.map(|[a, b, c]| (a, b, c)).collect::<Vec<_>>());
    assert!(!presets.is_empty());
}

/// A trace of so many records, in two kinds by turns.
fn many(records: u64) -> Vec<u8> {
    trace(ByteOrder::Little, |writer| {
        writer.mapping(EventId(0), "disk_done")?;
        writer.mapping(EventId(1), "idle")?;
        for n in 0..records {
            match n % 2 {
                0 => writer.event(EventId(0), n, 1, &[Value::Pointer(n), Value::Signed(-1)])?,
                _ => writer.event(EventId(1), n, 1, &[])?,
            }
        }
        Ok(())
    })
}

#[test]
fn a_long_trace_comes_in_batches_with_every_record_once() {
    let records = 500_000;
    let dir = Dir::with([("t.trace", &many(records)), ("t.trace-events", EVENTS)]);
    let source = || open(&dir, "t.trace", "t.trace-events");
    let mut stream = source().event("disk_done", &Options::default()).unwrap();
    let (mut next, mut batches) = (0, 0);
    for batch in &mut stream {
        let batch = batch.unwrap();
        for (row, &ts_ns) in batch["ts_ns"].as_primitive::<UInt64Type>().values().iter().enumerate() {
            assert_eq!((ts_ns, value(&batch["disk"], row), value(&batch["ret"], row)), (next, json!(next), json!(-1)));
            next += 2;
        }
        batches += 1;
    }
    assert_eq!((next, batches), (records, 2));
    let (tables, _) = source().events(&Options::default()).unwrap().finish().unwrap();
    let lengths = |name: &str| tables[name].batches.iter().map(RecordBatch::num_rows).collect::<Vec<_>>();
    assert_eq!(lengths("disk_done").iter().sum::<usize>() as u64, records / 2);
    assert_eq!(lengths("idle").iter().sum::<usize>() as u64, records / 2);
}

#[test]
fn whoever_has_enough_ends_the_reading() {
    // A pipe that is never closed: all that is known is that its other end goes away.
    let dir = Dir::with([("t.trace-events", EVENTS)]);
    let fifo = dir.path("fifo");
    if !std::process::Command::new("mkfifo").arg(&fifo).status().is_ok_and(|status| status.success()) {
        shared::skip("whoever_has_enough_ends_the_reading", "there is no mkfifo");
        return;
    }
    let bytes = many(200_000);
    let (ended, has_ended) = mpsc::channel();
    std::thread::spawn({
        let fifo = fifo.clone();
        move || {
            let mut file = std::fs::OpenOptions::new().write(true).open(fifo).unwrap();
            // The header, then two mapping records of a type, an id, a length and a name.
            let (names, records) = bytes.split_at(24 + 2 * (8 + 8 + 4) + "disk_done".len() + "idle".len());
            file.write_all(names).unwrap();
            while file.write_all(records).is_ok() {}
            ended.send(()).unwrap();
        }
    });
    let mut stream =
        tables::open(&[fifo], &[dir.path("t.trace-events")]).unwrap().event("never_seen", &Options::default()).unwrap();
    assert!(!stream.wait(Duration::from_millis(20)));
    drop(stream);
    has_ended.recv_timeout(Duration::from_secs(60)).unwrap();
}
