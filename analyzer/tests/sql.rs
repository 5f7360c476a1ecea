//! `sql`: every value as it is in the file, and whatever is wrong said as by all commands.
#![cfg(feature = "frames")]

mod support;

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, StringArray, UInt32Array, UInt64Array,
};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::json;
use simpletrace_format::{ByteOrder, EventId, Value};
use support::sample::{self, EVENTS, facts, sample, sample_with, trace};
use support::{Dir, csv};

const EDGES: &[u8] = br#"edge(uint64_t big, int64_t least, int ret, bool ok, const char *name, void *p, char c) "%" PRIu64 " %" PRId64 " %d %d %s %p %c"
"#;
const EDGE: EventId = EventId(1);

/// Records with the extremes of all types, and one that is too short.
fn edges() -> Vec<u8> {
    let max = Value::Unsigned(u64::MAX);
    trace(ByteOrder::Little, |writer| {
        writer.mapping(EDGE, "edge")?;
        writer.mapping(EventId(2), "unknown")?;
        let least = Value::Signed(i64::MIN);
        let (name, p) = (Value::String(b"a,\"b\"\n"), Value::Pointer(0xffff_8000_0000_0001));
        writer.event(
            EDGE,
            u64::MAX,
            u32::MAX,
            &[max, least, Value::Signed(-5), Value::Bool(true), name, p, Value::Signed(-19)],
        )?;
        let (name, p) = (Value::String(b"cut \\ \xc3"), Value::Pointer(0));
        let zeros =
            [Value::Unsigned(0), Value::Signed(0), Value::Signed(0), Value::Bool(false), name, p, Value::Signed(0)];
        writer.event(EDGE, 7, 1, &zeros)?;
        writer.event(EDGE, 8, 1, &[max, Value::Signed(i64::MAX)])?;
        writer.event(EventId(2), 9, 1, &[max, Value::Unsigned(1)])
    })
}

fn sql(dir: &Dir, line: &str, query: &str) -> support::program::Run {
    dir.call(&format!("sql {line}")).arg(query).run()
}

#[test]
fn every_value_is_as_in_the_file() {
    let dir = Dir::with([("a.trace", &edges()), ("a.trace-events", EDGES)]);
    let query = "select * from edge";
    let run = sql(&dir, "a.trace -F ndjson", query).exits(1);
    let max = u64::MAX;
    assert_eq!(
        run.ndjson(),
        [
            json!({"ts_ns": max, "wall_ns": null, "pid": u32::MAX, "big": max, "least": i64::MIN, "ret": -5, "ok": true, "name": "a,\"b\"\n",
                   "p": 0xffff_8000_0000_0001_u64, "c": -19}),
            json!({"ts_ns": 7, "wall_ns": null, "pid": 1, "big": 0, "least": 0, "ret": 0, "ok": false, "name": r"cut \x5c \xc3", "p": 0, "c": 0}),
            json!({"ts_ns": 8, "wall_ns": null, "pid": 1, "big": max, "least": i64::MAX, "ret": null, "ok": null, "name": null, "p": null,
                   "c": null}),
        ]
    );
    assert!(run.stderr.contains("warning: 1 record of edge: shorter than declared"), "{}", run.stderr);
    assert!(run.stderr.contains("warning: strings that are not UTF-8: 1; "), "{}", run.stderr);
    // Only what is looked at is found.
    assert!(!sql(&dir, "a.trace", "select ret from edge").stderr.contains("UTF-8"));

    let header = "ts_ns,wall_ns,pid,big,least,ret,ok,name,p,c";
    let rows = csv::rows(sql(&dir, "a.trace -F csv", query).text());
    assert_eq!(rows[0].join(","), header);
    assert_eq!(
        rows[1].join("|"),
        "18446744073709551615||4294967295|18446744073709551615|-9223372036854775808|-5|true|a,\"b\"\n|18446603336221196289|-19"
    );
    assert_eq!(rows[3].join("|"), "8||1|18446744073709551615|9223372036854775807|||||");

    let document = sql(&dir, "a.trace -F json", "select big, payload from edge, unknown where big = 0").json();
    let payload = "ffffffffffffffff0100000000000000";
    assert_eq!(document, json!({"schema": "simpletrace-rs.sql/1", "rows": [{"big": 0, "payload": {"hex": payload}}]}));
    assert_eq!(
        sql(&dir, "a.trace -F json", "select big from edge where pid = 5").text(),
        "{\"schema\":\"simpletrace-rs.sql/1\",\"rows\":[\n]}\n"
    );
    assert_eq!(
        sql(&dir, "a.trace", "select big, ret, payload, big / 2.0 as half from edge, unknown where ok").text(),
        format!(
            "{:>20}  ret  {:<32}  {:>19}\n{}   -5  {payload}  9223372036854775808\n",
            "big",
            "payload",
            "half",
            u64::MAX
        )
    );
    // Those of 32 bits look the same.
    let narrow = "select pid, CAST(ret AS INT) as small, CAST(ret AS REAL) / 2 as half from edge";
    assert_eq!(sql(&dir, "a.trace -F csv", narrow).text(), "pid,small,half\n4294967295,-5,-2.5\n1,0,0\n1,,\n");
    assert_eq!(
        sql(&dir, "a.trace", narrow).text(),
        "       pid  small    half\n4294967295     -5  -2.500\n         1      0   0.000\n         1      -       -\n"
    );
    // JSON has neither infinity nor what is no number.
    let infinite =
        "select CAST(ret AS DOUBLE) / 0.0 as x, -1.0 / CAST(pid - 1 AS DOUBLE) as y from edge where ok is not null";
    assert_eq!(
        sql(&dir, "a.trace -F ndjson", infinite).text(),
        "{\"x\":null,\"y\":-0.00000000023283064376228985}\n{\"x\":null,\"y\":null}\n"
    );
    assert_eq!(sql(&dir, "a.trace -F csv", infinite).text(), "x,y\n-inf,-0.00000000023283064376228985\nNaN,-inf\n");
    // Numbers above 2^63 can be asked for, too.
    let query = "select ts_ns from edge where p = CAST('18446603336221196289' AS UBIGINT)";
    assert_eq!(sql(&dir, "a.trace -F csv", query).text(), "ts_ns\n18446744073709551615\n");
    let run = sql(&dir, "a.trace", "select ts_ns from edge where p = 18446603336221196289").exits(2);
    assert!(
        run.stderr.ends_with("; a number above 2^63-1 is written CAST('18446603336221196289' AS UBIGINT)\n"),
        "{}",
        run.stderr
    );
    let run = sql(&dir, "a.trace", "select ts_ns from edge where least = -9223372036854775808").exits(2);
    assert!(
        run.stderr.ends_with(
            "; -2^63 is written CAST('-9223372036854775808' AS BIGINT), and 2^63 CAST('9223372036854775808' AS UBIGINT)\n"
        ),
        "{}",
        run.stderr
    );
    let query = "select ts_ns from edge where least = CAST('-9223372036854775808' AS BIGINT)";
    assert_eq!(sql(&dir, "a.trace -F csv", query).text(), "ts_ns\n18446744073709551615\n");
    let run = sql(&dir, "a.trace", "select 18446744073709551616 as x from edge").exits(2);
    assert!(run.stderr.ends_with("; whole numbers have at most 64 bits\n"), "{}", run.stderr);
    assert_eq!(
        sql(&dir, "a.trace -F csv", "select 1e9 as a, -15E-1 as b, 2.5e3 as c from edge limit 1").text(),
        "a,b,c\n1000000000,-1.5,2500\n"
    );
}

#[test]
fn a_parquet_file_has_the_same_rows() {
    let dir = Dir::with([("a.trace", &edges()), ("a.trace-events", EDGES)]);
    sql(
        &dir,
        "a.trace -F parquet -o out.parquet",
        "select big, ret, ok, name, pid, ret / 2.0 as half, CAST(ret AS INT) as small from edge",
    )
    .exits(1);
    let read = || {
        let file = std::fs::File::open(dir.path("out.parquet")).unwrap();
        let mut batches = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
        let batch = batches.next().unwrap().unwrap();
        assert!(batches.next().is_none());
        batch
    };
    let batch = read();
    let columns: [(&str, ArrayRef); 7] = [
        ("big", Arc::new(UInt64Array::from(vec![u64::MAX, 0, u64::MAX]))),
        ("ret", Arc::new(Int64Array::from(vec![Some(-5), Some(0), None]))),
        ("ok", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None]))),
        ("name", Arc::new(StringArray::from(vec![Some("a,\"b\"\n"), Some(r"cut \x5c \xc3"), None]))),
        // As wide as they are, not wider.
        ("pid", Arc::new(UInt32Array::from(vec![u32::MAX, 1, 1]))),
        ("half", Arc::new(Float64Array::from(vec![Some(-2.5), Some(0.0), None]))),
        ("small", Arc::new(Int32Array::from(vec![Some(-5), Some(0), None]))),
    ];
    assert_eq!(batch.num_columns(), columns.len());
    for (name, values) in &columns {
        assert_eq!(batch.column_by_name(name), Some(values), "{name}");
    }
    // A fault leaves the file as it was.
    sql(&dir, "a.trace -F parquet -o out.parquet", "select nothing from edge").exits(2);
    assert_eq!(read(), batch);
    let run = sql(&dir, "a.trace -F csv -o a.trace", "select 1 as one from edge").exits(2);
    assert_eq!(run.stderr.lines().last(), Some("error: output a.trace is also an input, and would be lost"));
}

#[test]
fn events_are_what_decode_prints() {
    let dir = Dir::with([("a.trace", &edges()), ("a.trace-events", EDGES)]);
    dir.write("b.trace", sample(ByteOrder::Big));
    dir.write("b.trace-events", EVENTS);
    for name in ["a", "b"] {
        let decoded = dir.run(&format!("decode {name}.trace -F csv -e * -e -dropped"));
        let asked = sql(&dir, &format!("{name}.trace -F csv"), "select * from events");
        assert_eq!((csv::rows(asked.text()), asked.code), (csv::rows(decoded.text()), decoded.code), "{name}");
    }
    // And so are tables of one event, but for the time of day.
    for event in ["disk_open", "disk_read", "disk_done", "idle"] {
        let decoded = csv::rows(dir.run(&format!("decode b.trace -F csv -e {event}")).text());
        let asked = csv::rows(sql(&dir, "b.trace -F csv", &format!("select * from {event}")).text());
        let without = |rows: Vec<Vec<String>>, place: usize| -> Vec<Vec<String>> {
            rows.into_iter()
                .map(|mut row| {
                    row.remove(place);
                    row
                })
                .collect()
        };
        assert_eq!(without(asked, 1), without(decoded, 2), "{event}");
    }
}

#[test]
fn events_that_are_not_declared_have_their_bytes() {
    let dir = Dir::with([("a.trace", &edges()), ("few", b"edge(int x) \"%d\"\n")]);
    let run = sql(&dir, "a.trace few -F ndjson", "with u as (select payload from unknown) select * from u").exits(1);
    assert_eq!(run.ndjson(), [json!({"payload": {"hex": "ffffffffffffffff0100000000000000"}})]);
    assert!(
        run.stderr.starts_with("warning: 1 record of unknown: not declared in the trace-events file"),
        "{}",
        run.stderr
    );
    // A pipe would have to be read twice to know that there is one.
    let run = dir.call("sql - few").arg("select payload from unknown").stdin(edges()).run().exits(2);
    assert!(
        run.stderr.starts_with("error: relation 'unknown' was not found\ntables: events, gaps, "),
        "{}",
        run.stderr
    );
    let run = sql(&dir, "a.trace --events /dev/null -F csv", "select payload from edge limit 1");
    assert!(run.stderr.starts_with("warning: "), "{}", run.stderr);
}

#[test]
fn ids_without_a_name_go_by_their_number() {
    let unmapped = trace(ByteOrder::Little, |writer| {
        writer.mapping(EDGE, "known")?;
        writer.event(EDGE, 7, 1, &[])?;
        writer.event(EventId(22), 8, 1, &[Value::Unsigned(0x0102)])?;
        writer.event(EventId(23), 9, 1, &[])
    });
    let dir = Dir::with([("a.trace", &unmapped), ("events", b"known(void) \"\"\n")]);
    let run = sql(&dir, "a.trace events -F ndjson", r#"select * from "event 22""#).exits(1);
    assert_eq!(run.ndjson(), [json!({"ts_ns": 8, "wall_ns": null, "pid": 1, "payload": {"hex": "0201000000000000"}})]);
    assert_eq!(
        run.stderr,
        "warning: 1 record of unknown event, the first event 22 at offset 81 of a.trace: no mapping record names it\n"
    );
    let run = sql(&dir, "a.trace events", r#"select * from "event 24""#).exits(2);
    assert!(
        run.stderr.starts_with("error: relation 'event 24' was not found; did you mean event 22?\n"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_pipe_is_read_once_for_all_tables() {
    let dir = Dir::with([("events", EVENTS)]);
    let query = "with n as (select count(*) as n from events), lost as (select sum(count) as lost from gaps)
                 select o.path, r.sector, n, lost from disk_open o join disk_read r on r.pid = o.pid cross join n cross join lost";
    let run = dir.call("sql - events -F ndjson").arg(query).stdin(sample(ByteOrder::Little)).run().exits(0);
    assert_eq!(run.ndjson(), [json!({"path": "a,b \"c\"", "sector": u64::MAX, "n": 4, "lost": 3})]);
    assert_eq!(run.stderr, "note: 3 events were dropped by the recorder, in 1 gap\n");
}

#[test]
fn records_are_selected_as_everywhere() {
    let dir = Dir::with([("a.trace", &sample(ByteOrder::Little)), ("a.trace-events", EVENTS)]);
    let count = |options: &str, filter: &str| {
        let call = dir.call(&format!("sql a.trace -F csv {options}"));
        let call = if filter.is_empty() { call } else { call.arg("-w").arg(filter) };
        let run = call.arg("select count(*) as n from events").run().exits(0);
        run.lines()[1].parse::<u64>().unwrap()
    };
    assert_eq!(count("", ""), 4);
    assert_eq!(count("-t 1us-", ""), 3);
    assert_eq!(count("-t @1s-@1.0000015s", ""), 1);
    assert_eq!(count("--pid 11", ""), 2);
    assert_eq!(count("", "ret < 0"), 1);
    // And by the query.
    let query = "select ts_ns from events where ts_ns > 1000000000 and ts_ns <= 1000001900 order by ts_ns";
    assert_eq!(sql(&dir, "a.trace -F csv", query).text(), "ts_ns\n1000001500\n1000001900\n");
    let run = dir.call("sql a.trace --explain-filter -w").arg("ret < 0").arg("select 1 as x").run().exits(0);
    assert!(run.text().contains("disk_done"), "{run:?}");
}

#[test]
fn several_files_are_one_trace_and_damage_is_said() {
    let whole = sample(ByteOrder::Little);
    let later = trace(ByteOrder::Big, |writer| {
        writer.mapping(EventId(77), "idle")?;
        writer.event(EventId(77), 9_000_000_000, 12, &[])
    });
    let dir = Dir::with([("b", &whole), ("a", &later), ("events", EVENTS), ("torn", &whole[..whole.len() - 3])]);
    let run = sql(&dir, "a b events -F csv", "select ts_ns, pid from idle").exits(0);
    assert_eq!(run.text(), "ts_ns,pid\n3500000000,11\n9000000000,12\n");
    let run = sql(&dir, "torn events -F csv", "select from_ns, to_ns, count, pid from gaps").exits(0);
    assert!(run.stderr.starts_with("note: torn ends inside a record at offset "), "{}", run.stderr);
    assert_eq!(run.text(), "from_ns,to_ns,count,pid\n1000000000,1000002000,3,10\n1000001900,,,11\n");
    let mut damaged = whole;
    // The length of a record.
    damaged[186 + 26] = 0xff;
    dir.write("damaged", &damaged);
    let run = sql(&dir, "damaged events -F csv", "select count(*) as n from gaps where count is null").exits(1);
    assert_eq!(run.text(), "n\n1\n");
    assert!(run.stderr.starts_with("error: damaged: "), "{}", run.stderr);
}

#[test]
fn gaps_are_from_when_to_when_events_are_missing() {
    let recorded = |texts: &[&str]| {
        let head = trace(ByteOrder::Little, |writer| Ok(writer.facts(&facts(texts))?));
        let body = trace(ByteOrder::Little, |writer| {
            sample::mappings(writer)?;
            writer.event(sample::IDLE, 100, 1, &[])?;
            writer.dropped(200, 1, 5)?;
            writer.dropped(300, 1, 0)?;
            writer.dropped(500, 1, u64::MAX)?;
            writer.dropped(600, 1, 0)?;
            Ok(writer.dropped(700, 1, 2)?)
        });
        [&head[..], &body[24..]].concat()
    };
    let dir =
        Dir::with([("own", &recorded(&["recorder=simpletrace-rs"])), ("stock", &recorded(&[])), ("events", EVENTS)]);
    let gaps = |file: &str| {
        sql(&dir, &format!("{file} events -F csv"), "select from_ns, to_ns, count from gaps").text().to_owned()
    };
    let gaps_in = |file: &str, window: &str| {
        let query = "select from_ns, to_ns, count from gaps";
        sql(&dir, &format!("{file} events -F csv -t {window}"), query).lines()[1..].join(" ")
    };
    assert_eq!(gaps("own"), "from_ns,to_ns,count\n200,300,5\n500,600,\n700,,2\n");
    // With a window, those that reach into it.
    assert_eq!(gaps_in("own", "@250ns-@550ns"), "200,300,5 500,600,");
    assert_eq!(gaps_in("own", "@350ns-@450ns"), "");
    assert_eq!(gaps_in("own", "@710ns-@720ns"), "700,,2");
    assert_eq!(gaps_in("own", "-@150ns"), "");
    assert_eq!(gaps_in("stock", "@250ns-@550ns"), "500,600,");
    assert_eq!(gaps_in("stock", "-@150ns"), "100,200,5");
    assert_eq!(gaps_in("stock", "@620ns-@650ns"), "600,700,2");
    assert_eq!(gaps_in("stock", "@710ns-"), "");
    // Of stock files it is only known by when they were noticed; `repair` marks both ends of what it leaves out.
    assert_eq!(gaps("stock"), "from_ns,to_ns,count\n100,200,5\n500,600,\n600,700,2\n");
}

#[test]
fn the_time_of_day_is_known_where_the_file_says_it() {
    let dir = Dir::with([("a", &sample_with(ByteOrder::Little, &facts(&[]))), ("events", EVENTS)]);
    let run = sql(&dir, "a events -F csv", "select wall_ns, wall_ns - ts_ns as offset from disk_read").exits(0);
    assert_eq!(run.text(), "wall_ns,offset\n1700000000000001500,1699999999000000000\n");
}

const PAIRED: &str = "a(void *req, int size) \"%p %d\"\nb(void *req) \"%p\"\nc(void *req, const char *how) \"%p %s\"\n";

#[test]
fn pairs_have_their_key_their_hops_and_what_is_asked_for() {
    let written = trace(ByteOrder::Little, |writer| {
        for (id, name) in [(1, "a"), (2, "b"), (3, "c")] {
            writer.mapping(EventId(id), name)?;
        }
        let req = |req: u64| Value::Pointer(req);
        for (at, first) in [(100, 1), (10_000, 2)] {
            writer.event(EventId(1), at, 1, &[req(first), Value::Signed(-4)])?;
            writer.event(EventId(2), at + 30, 1, &[req(first)])?;
            if first == 2 {
                writer.dropped(at + 35, 1, 1)?;
            }
            writer.event(EventId(3), at + 50, 1, &[req(first), Value::String(b"well")])?;
        }
        writer.event(EventId(1), 20_000, 1, &[req(u64::MAX), Value::Signed(1)])?;
        writer.event(EventId(2), 20_001, 1, &[req(u64::MAX)])?;
        writer.event(EventId(3), 20_003, 1, &[req(u64::MAX), Value::String(b"")])
    });
    let dir = Dir::with([("t", &written), ("events", PAIRED.as_bytes())]);
    let call = dir.call("sql t events -F csv --on req --by size,how,event,size:log2 --pairs").arg("a -> b -> c");
    let run = call.arg("select * from pairs").run().exits(2);
    assert_eq!(run.stderr, "error: --by has 4 arguments, and the most is 3\n");
    let call = dir.call("sql t events -F csv --on req --by size,how --pairs").arg("a -> b -> c");
    let run = call.arg("select * from pairs").run().exits(0);
    assert_eq!(
        run.text(),
        "begin_ns,end_ns,latency_ns,hop1_ns,hop2_ns,suspect,req,size,how\n\
         100,150,50,30,20,true,1,-4,well\n\
         10000,10050,50,30,20,true,2,-4,well\n\
         20000,20003,3,1,2,false,18446744073709551615,1,\n"
    );
    let call = dir.call("sql t events -F csv --on req --by size:log2,pid --pairs").arg("a -> c");
    let run = call.arg("select req, size_log2, pid from pairs order by begin_ns").run().exits(0);
    assert_eq!(run.text(), "req,size_log2,pid\n1,below 0,1\n2,below 0,1\n18446744073709551615,\"[1, 2)\",1\n");
    let run = dir.call("sql t events --pairs nothing").arg("select * from pairs").run().exits(2);
    assert_eq!(run.stderr, "error: there is no preset nothing; latency --list lists them\n");
    // The filters of a preset are for its pairs alone.
    dir.write("presets", "[p]\nabout = 'x'\noperation = 'a -> c'\non = 'req'\nwhere = ['a: size < 0']\nexact = true\n");
    let query = "with p as (select count(*) as pairs from pairs), q as (select count(*) as a from a) select * from p cross join q";
    let run = dir.call("sql t events -F csv --presets presets --pairs p").arg(query).run().exits(0);
    assert_eq!(run.text(), "pairs,a\n2,3\n");
}

#[test]
fn what_is_wrong_with_a_query_is_said_with_what_there_is() {
    let dir = Dir::with([("a.trace", &sample(ByteOrder::Little)), ("events", EVENTS)]);
    let says = |query: &str, expected: &str| {
        let run = sql(&dir, "a.trace events", query).exits(2);
        assert_eq!((run.text(), run.stderr.as_str()), ("", expected), "{query}");
    };
    let tables = "tables: events, gaps, pairs (with --pairs), and one of each event that is declared or recorded; there are records of \
                  disk_done, disk_open, disk_read, idle\n";
    says(
        "select * from disk_raed",
        &format!("error: relation 'disk_raed' was not found; did you mean disk_read?\n{tables}"),
    );
    says(
        "select * from dropped",
        &format!("error: relation 'dropped' was not found; what was dropped is in the table gaps\n{tables}"),
    );
    says(
        "select * from pairs",
        "error: relation 'pairs' was not found; --pairs NAME makes that table, and `latency --list` has the names\n",
    );
    says("selct 1", "error: sql parser error: Expected: an SQL statement, found: selct at Line: 1, Column: 1\n");
    says(
        "count",
        "error: there is no query; the last argument is one, such as \"select count(*) from events\", and count is none\n",
    );
    let run = sql(&dir, "a.trace events", "select sectr from disk_read").exits(2);
    assert!(run.stderr.starts_with("error: "), "{}", run.stderr);
    assert!(
        run.stderr.ends_with("; did you mean sector?\ndisk_read has ts_ns, wall_ns, pid, disk, sector, count\n"),
        "{}",
        run.stderr
    );
    let run = sql(&dir, "a.trace events", "select array_agg(sector) as all_of_them from disk_read").exits(2);
    assert_eq!(
        run.stderr,
        "error: column all_of_them is of type list[u64], which no output has; make it a number or text, such as with \
         CAST(all_of_them AS BIGINT) or CAST(all_of_them AS VARCHAR)\n"
    );
    says(
        "select count from disk_read where exists (select 1 from idle where ts_ns > 5)",
        "error: EXISTS is not supported here\n",
    );
    let joined = "a value of another query is joined: FROM a CROSS JOIN (SELECT max(x) AS most FROM b) AS m";
    says("select (select max(ts_ns) from idle) as x", &format!("error: unexpected subquery; {joined}\n"));
    says(
        "select count from disk_read where ts_ns > (select max(ts_ns) from idle)",
        &format!("error: subquery comparisons with '>' are not supported; {joined}\n"),
    );
    let run = dir.call("sql").arg("select 1 as x").run().exits(2);
    assert_eq!(run.stderr, "error: no trace is given, only a query\n");
    let run = sql(&dir, "nowhere", "select 1 as x").exits(2);
    assert!(run.stderr.starts_with("error: cannot open nowhere: "), "{}", run.stderr);
}

#[test]
fn an_output_is_no_input() {
    let dir = Dir::with([("t", &sample(ByteOrder::Little)), ("t-events", EVENTS)]);
    for output in ["t", "t-events"] {
        let before = dir.read(output);
        let run = dir.call(&format!("sql t -o {output}")).arg("select count(*) as n from events").run().exits(2);
        assert!(run.stderr.contains(&format!("output {output} is also an input, and would be lost")), "{}", run.stderr);
        assert_eq!(dir.read(output), before);
    }
}

#[test]
fn what_would_be_answered_wrong_is_refused() {
    let dir = Dir::with([("t", &sample(ByteOrder::Little)), ("t-events", EVENTS)]);
    for (query, why) in [
        (
            "select count(*) as n from disk_read r left join disk_done d on r.disk = d.disk and d.ret > 0",
            "error: ON r.disk = d.disk AND d.ret > 0: outer, semi and anti joins are for columns that equal columns",
        ),
        (
            "with idle as (select 7 as a) select * from idle",
            "error: a part of the query is called idle, as a table of the trace is",
        ),
        ("create table a as select 1", "error: a trace is only asked"),
    ] {
        let run = dir.call("sql t").arg(query).run().exits(2);
        assert!(run.stderr.contains(why), "{}", run.stderr);
        assert_eq!(run.stdout, b"");
    }
}

#[test]
fn a_query_never_ends_the_process() {
    let dir = Dir::with([("t", &sample(ByteOrder::Little)), ("t-events", EVENTS)]);
    for (query, why) in [
        ("select sector from disk_read order by 0", "error: ORDER BY 0: the first result is number 1\n"),
        ("select interval '1 foo' as x", "error: INTERVAL '1 foo': no column is a date, "),
        ("select greatest() as x from disk_read", "error: greatest(): there is nothing to choose from\n"),
        // What only polars knows of.
        ("select exp([1, 2]) as x", "error: polars failed on this query: "),
        ("select columns('(((') from disk_read", "error: polars failed on this query: "),
    ] {
        let run = sql(&dir, "t", query).exits(2);
        let said = run.stderr.strip_prefix("note: using t-events (found beside the trace)\n").unwrap();
        assert!(said.starts_with(why), "{query}: {}", run.stderr);
        assert!(!said.contains("stack backtrace"), "{}", run.stderr);
        assert_eq!(run.text(), "");
    }
    // Where it is refused, it is so in time.
    let row = |sign: &str, term: &str, count: usize| vec![term; count].join(sign);
    for query in [
        format!("select {} as x from disk_read", row(" + ", "count", 9_900)),
        format!("select {} as x from disk_read", row("||", "'a'", 9_900)),
        format!("select {}1{} as x from disk_read", "(".repeat(9_000), ")".repeat(9_000)),
        format!("select count{} as x from disk_read", " is null".repeat(9_000)),
        format!("select sector from disk_read where {}", row(" or ", "count = 1", 4_900)),
        row(" union all ", "select sector from disk_read", 1_900),
    ] {
        assert!(sql(&dir, "t", &query).exits(2).stderr.contains("error: "), "{query}");
    }
    for (query, expected) in [
        (format!("select {} as x from disk_read", row(" + ", "count", 200)), "x\n1600\n"),
        (
            format!("select max({}) as x from disk_open group by pid", row("||", "'a'", 48)),
            &*format!("x\n{}\n", "a".repeat(48)),
        ),
        (format!("select count from disk_read where {}", row(" or ", "count = 8", 120)), "count\n8\n"),
        (
            format!("select sum(n) as n from ({}) x", row(" union all ", "select count(*) as n from disk_read", 60)),
            "n\n60\n",
        ),
    ] {
        assert_eq!(sql(&dir, "t -F csv", &query).exits(0).text(), expected, "{query}");
    }
}

#[test]
fn rows_are_counted_whatever_else_is_left_of_a_query() {
    let dir = Dir::with([("t", &sample(ByteOrder::Little)), ("t-events", EVENTS)]);
    let asked = |query: &str| sql(&dir, "t -F csv", query).exits(0).text().to_owned();
    // Aggregates are one row, used or not.
    for of in ["min(ts_ns) as m", "min(ts_ns) as m, max(ts_ns) as n", "count(*) as m"] {
        for from in ["events", "events where ts_ns > 5", "(select ts_ns from events limit 3) x"] {
            let query = format!("with s as (select {of} from {from}) select count(*) as n from disk_read cross join s");
            assert_eq!(asked(&query), "n\n1\n", "{query}");
            let query = format!("with s as (select {of} from {from}) select count from disk_read, s");
            assert_eq!(asked(&query), "count\n8\n", "{query}");
        }
    }
    let query =
        "with s as (select pid, max(ts_ns) as m from events group by pid) select count from disk_read cross join s";
    assert_eq!(asked(query), "count\n8\n8\n");
    let query = "with s as (select ts_ns from events limit 3) select count(*) as n from disk_read cross join s";
    assert_eq!(asked(query), "n\n3\n");
    // And those of a UNION ALL.
    for (select, expected) in [("count(*) as n", "n\n5\n"), ("count(1) as n, max(ts_ns) as t", "n,t\n5,3500000000\n")] {
        let both = "select ts_ns from events union all select ts_ns from disk_read";
        assert_eq!(asked(&format!("select {select} from ({both}) x")), expected);
        assert_eq!(asked(&format!("with x as ({both}) select {select} from x where ts_ns > 5")), expected);
    }
}

#[test]
fn what_would_be_joined_otherwise_is_refused() {
    let dir = Dir::with([("t", &sample(ByteOrder::Little)), ("t-events", EVENTS)]);
    for (on, expected) in [
        ("b.ts_ns > a.ts_ns and b.pid = 11", Err("a join is on columns of both tables; write it into WHERE")),
        ("b.ts_ns > a.ts_ns and b.event = 'idle'", Err("a join is on columns of both tables; write it into WHERE")),
        ("b.ts_ns - a.ts_ns < 5", Err("each side of a comparison is of one table; write it into WHERE")),
        ("b.ts_ns > a.ts_ns and b.pid > 10", Ok("n\n2\n")),
        ("b.ts_ns > a.ts_ns where b.event = 'idle'", Ok("n\n1\n")),
        ("b.ts_ns + 1500 = a.ts_ns", Ok("n\n1\n")),
        ("a.pid = b.pid and b.ts_ns < a.ts_ns", Ok("n\n1\n")),
    ] {
        let run = sql(&dir, "t -F csv", &format!("select count(*) as n from disk_read a join events b on {on}"));
        match expected {
            Ok(text) => assert_eq!(run.exits(0).text(), text, "{on}"),
            Err(why) => assert!(run.exits(2).stderr.trim_end().ends_with(why), "{on}"),
        }
    }
}

#[test]
fn what_polars_answers_otherwise_is_asked_in_another_way() {
    let dir = Dir::with([("a.trace", &edges()), ("a.trace-events", EDGES)]);
    for (query, expected) in [
        // Counts have a sign, and 64 bits.
        ("select count(*) - 5 as x from edge", "-2"),
        ("select count(*) * 3000000000 as x from edge", "9000000000"),
        ("select -count(ret) as x from edge", "-2"),
        ("with n as (select count(*) as n, count(ret) as m from edge) select m - n as x from n", "-1"),
        ("select length(name) - 20 as x from edge where ts_ns = 7", "-7"),
        ("select strpos(name, 'x') - 9 as x from edge where ts_ns = 7", "-3"),
        ("select row_number() over (order by ts_ns) - 3 as x from edge order by ts_ns limit 1", "-2"),
        ("select rank() over (order by ok) - 3 as x from edge where ts_ns = 7", "-2"),
        // Of two rows big is 2^64-1.
        ("select count(*) as x from edge where big > -1", "3"),
        ("select count(*) as x from edge where big <> (-1)", "3"),
        ("select count(*) as x from edge where -1 < big", "3"),
        ("select count(*) as x from edge where big between -1 and 5", "1"),
        ("select count(*) as x from edge where least = -1", "0"),
        ("select count(*) as x from edge where ret < -4", "1"),
        // One is null.
        ("select count(*) as x from edge where ok is true", "1"),
        ("select count(*) as x from edge where ok is not true", "2"),
        ("select count(*) as x from edge where ok is false", "1"),
        ("select count(*) as x from edge where ok is not false", "2"),
        ("select count(*) as x from edge where not ((ret > 5) is true)", "3"),
        ("select ok is not true as x from edge where ts_ns = 8", "true"),
    ] {
        assert_eq!(sql(&dir, "a.trace -F csv", query).exits(1).text(), format!("x\n{expected}\n"), "{query}");
    }
}

#[test]
fn aggregates_and_windows_of_other_rows_are_refused() {
    const OTHERS: &str =
        "polars takes that of all rows and not of the window's; work it out with GROUP BY, and join that";
    const NESTED: &str =
        "an aggregate of aggregates; work out the inner ones in a part of WITH, with GROUP BY, and ask that";
    const NULLS: &str = "in windows nulls come first, wherever they are asked for; order by x IS NULL before x";
    const WHOLE: &str =
        "with ORDER BY polars takes it of the whole window, not up to the row; only sum, min, max and count run along";

    let dir = Dir::with([("a.trace", &edges()), ("a.trace-events", EDGES)]);
    for (select, why) in [
        ("quantile_disc(big, 0.5) over (partition by pid)", OTHERS),
        ("CORR(big, ret) over w", OTHERS),
        ("count(distinct ret) over ()", OTHERS),
        ("sum(count(*)) over ()", NESTED),
        ("sum(max(ret))", NESTED),
        ("rank() over (order by ret nulls last)", NULLS),
        ("avg(ret) over (partition by pid order by ts_ns)", WHOLE),
        ("median(ret) over v", WHOLE),
        ("row_number()", "it wants OVER (ORDER BY ...)"),
    ] {
        let query = format!(
            "select {select} as x from edge group by pid window w as (partition by pid), u as (order by ts_ns), v as u"
        );
        let run = sql(&dir, "a.trace", &query).exits(2);
        assert!(run.stderr.trim_end().ends_with(&format!(": {why}")), "{query}: {}", run.stderr);
    }
    let run = sql(&dir, "a.trace", "select ts_ns from edge where ts_ns > 1 and max(ret) > 1").exits(2);
    let expected = "error: WHERE ts_ns > 1 AND max(ret) > 1: what groups come to is asked for in HAVING\n";
    assert!(run.stderr.ends_with(expected), "{}", run.stderr);
    // What runs along, or is of the whole window in SQL as well.
    for (select, expected) in [
        ("sum(ret) over (order by ts_ns)", "0\n0\n-5\n"),
        ("avg(ret) over (partition by pid)", "0\n0\n-5\n"),
        ("count(distinct ret) over (partition by pid)", "1\n1\n1\n"),
    ] {
        let query = format!("select {select} as x from edge order by ts_ns");
        assert_eq!(sql(&dir, "a.trace -F csv", &query).exits(1).text(), format!("x\n{expected}"), "{query}");
    }
}
