//! Parquet and Arrow files and data sets, read by DuckDB and pyarrow.

#![cfg(feature = "columns")]

mod support;

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value as Json, json};
use simpletrace_format::{ByteOrder, EventId, Facts, Value};
use support::python::python_with;
use support::sample::{sample, trace};
use support::{Dir, shared};

const PACKAGES: [&str; 2] = ["duckdb==2.0.1", "pyarrow==26.0.1"];

/// Runs a script of this folder on these words; returns what it prints, or `None` if there is no Python for it.
fn python(test: &str, script: &str, words: &[&str]) -> Option<String> {
    let python = match python_with(&PACKAGES) {
        Ok(python) => python,
        Err(why) => {
            shared::skip(test, &why);
            return None;
        }
    };
    let script = format!("{}/tests/columns/{script}", env!("CARGO_MANIFEST_DIR"));
    let program = env!("CARGO_BIN_EXE_simpletrace-rs");
    let output = Command::new(python).arg(script).arg(program).args(words).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Compares all files of columns with the JSON of a trace; it must have so many records, gaps included.
fn compare(test: &str, dir: &Dir, file: &str, events: &str, expected: &str) {
    let folder = Dir::new();
    let [file, events, folder] =
        [dir.path(file), dir.path(events), folder.path("")].map(|path| path.display().to_string());
    if let Some(found) = python(test, "compare.py", &[&folder, &file, &events]) {
        assert_eq!(found.trim(), expected, "{file}");
    }
}

const EXTREMES: &str = r#"ints(int8_t a, int b, int64_t c, ssize_t d, char e) ""
words(uint8_t a, unsigned b, uint64_t c, size_t d, void *e) ""
flags(bool a) ""
texts(const char *a, int between, const char *b) ""
names(int ts_ns, int pid, int event, int source, int day, int twice, int twice, int wall_ns) ""
none(void) ""
undeclared_here(int a) ""
"#;

#[test]
fn every_value_survives() {
    let dir = Dir::new();
    dir.write("events", EXTREMES.replace("undeclared_here(int a) \"\"\n", ""));
    let names = ["ints", "words", "flags", "texts", "names", "none", "undeclared_here"];
    let long = "0123456789abcdef".repeat(32);
    let texts =
        [&b""[..], b"plain", "größe ✓".as_bytes(), b"cut \xc3", b"\xff\\", br"\xff", b"a\0b\"\n,", long.as_bytes()];
    let bytes = trace(ByteOrder::Little, |writer| {
        let mut times_ns = [0, u64::MAX, 1 << 63, 1].into_iter().cycle();
        let mut next_ns = || times_ns.next().unwrap();
        for (id, name) in names.iter().enumerate() {
            writer.mapping(EventId(id as u64), name)?;
        }
        for value in [0, 1, -1, i64::MIN, i64::MAX] {
            writer.event(EventId(0), next_ns(), 1, &[Value::Signed(value); 5])?;
        }
        for word in [0, 1, u64::MAX, 1 << 63, (1 << 53) + 1] {
            writer.event(EventId(1), next_ns(), u32::MAX, &[Value::Unsigned(word); 5])?;
            writer.event(EventId(2), next_ns(), 0, &[Value::Unsigned(word)])?;
        }
        for text in texts {
            writer.event(EventId(3), next_ns(), 1, &[Value::String(text), Value::Signed(-5), Value::String(text)])?;
        }
        writer.event(EventId(4), next_ns(), 1, &[1, 2, 3, 4, 5, 6, 7, 8].map(Value::Signed))?;
        writer.event(EventId(5), next_ns(), 1, &[])?;
        writer.event(EventId(6), next_ns(), 1, &[Value::Signed(-5), Value::String(b"odd")])?;
        writer.dropped(next_ns(), 1, 7)?;
        // Shorter and longer than declared.
        writer.event(EventId(0), next_ns(), 1, &[Value::Signed(-1); 2])?;
        writer.event(EventId(5), next_ns(), 1, &[Value::Unsigned(u64::MAX), Value::String(b"odd")])?;
        writer.dropped(next_ns(), 1, u64::MAX)?;
        Ok(())
    });
    dir.write("trace", bytes);
    compare("every_value_survives", &dir, "trace", "events", "30");
}

macro_rules! real {
    ($($name:ident: $trace:literal, $events:literal, $expected:literal;)*) => {$(
        #[test]
        fn $name() {
            let Some(dir) = shared::traces(stringify!($name), $trace) else { return };
            compare(stringify!($name), &dir, $trace, $events, $expected);
        }
    )*};
}

// As many as the folder's README says; of img-convert and damaged ones, as many as `decode` prints lines.
real! {
    columns_of_img_convert: "qemu-8.2/img-convert.trace", "qemu-8.2/trace-events-all", "476";
    columns_of_a_booting_guest: "qemu-8.2/vm-virtio-blk.trace.zst", "qemu-8.2/trace-events-all", "78018";
    columns_of_a_kvm_guest: "qemu-8.2/kvm-blk.trace", "qemu-8.2/trace-events-all", "3898";
    columns_of_img_convert_10_2: "qemu-10.2/img-convert.trace", "qemu-10.2/trace-events-all", "578";
    columns_of_version_0: "old/v0-0.14-x86_64.trace", "old/v0-0.14-x86_64.trace-events", "1501";
    columns_of_version_0_big_endian: "old/v0-1.1-s390x.trace", "old/v0-1.1-s390x.trace-events", "704";
    columns_of_version_2: "old/v2-1.3-x86_64.trace", "old/v2-1.3-x86_64.trace-events", "697";
    columns_of_version_3: "old/v3-2.5-s390x.trace", "old/v3-2.5-s390x.trace-events", "940";
    columns_of_version_4: "old/v4-8.2-x86_64.trace", "old/v4-8.2-x86_64.trace-events", "1124";
    columns_of_a_damaged_trace: "damaged/garbage-insert.trace", "damaged/harness.trace-events", "90";
    columns_of_a_cut_string: "damaged/be-cut-string.trace", "damaged/harness.trace-events", "47";
    columns_of_an_unmapped_id: "damaged/id-unmapped.trace", "damaged/harness.trace-events", "90";
    columns_of_too_much_payload: "damaged/extra-payload.trace", "damaged/harness.trace-events", "90";
    columns_without_records: "damaged/mappings-only.trace", "damaged/harness.trace-events", "0";
}

#[test]
fn duckdb_finds_the_latencies_that_latency_does() {
    let test = "duckdb_finds_the_latencies_that_latency_does";
    let (file, events) = ("qemu-8.2/vm-virtio-blk.trace.zst", "qemu-8.2/trace-events-all");
    let Some(dir) = shared::traces(test, file) else { return };
    let folder = Dir::new();
    let [trace, declared, into] =
        [dir.path(file), dir.path(events), folder.path("")].map(|path| path.display().to_string());
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/demo/disk.trace");
    let Some(found) = python(test, "latency.py", &[&into, &trace, &declared, demo]) else { return };
    assert!(found.contains("│ host1   │  1151 │  57755 │ 6968400 │ 35062896 │"), "{found}");
    let latency = dir.run(&format!("latency {file} {events} --preset thread-pool -p 50,99,99.9 -F csv")).exits(0);
    assert!(latency.text().contains("57755,6968400,32316385,35062896"), "{}", latency.text());
    let latency = Dir::new().run(&format!("latency {demo} --preset thread-pool -p 50,99 -F csv")).exits(0);
    assert!(latency.text().contains("78796,6752151,6752151"), "{}", latency.text());
}

/// Two kinds of event and a gap, recorded by a program that says when it was begun: at 2023-11-14T23:59:59 and on.
fn two_days() -> Vec<u8> {
    trace(ByteOrder::Little, |writer| {
        let mut facts = Facts::default();
        facts.set_anchor(1_000_000_000, 1_700_006_399_000_000_000);
        writer.facts(&facts)?;
        writer.mapping(EventId(0), "a")?;
        writer.mapping(EventId(1), "b")?;
        writer.event(EventId(0), 1_000_000_000, 1, &[Value::Signed(1)])?;
        writer.event(EventId(0), 2_000_000_000, 1, &[Value::Signed(2)])?;
        writer.event(EventId(1), 2_500_000_000, 1, &[])?;
        writer.dropped(3_000_000_000, 1, 4)?;
        Ok(())
    })
}

/// All files of a folder, with `/` between names.
fn files(dir: &Dir, folder: &str) -> Vec<String> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(dir.path(&folder)).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{folder}/{}", entry.file_name().into_string().unwrap());
            if entry.path().is_dir() { &mut folders } else { &mut files }.push(name);
        }
    }
    files.sort();
    files
}

fn two_days_dir() -> Dir {
    Dir::with([("trace-1", &two_days()), ("trace-1-events", b"a(int x) \"\"\nb(void) \"\"\n")])
}

#[test]
fn a_data_set_is_laid_out_by_event_and_source() {
    let dir = two_days_dir();
    let run = dir.run("export trace-1 -o fleet").exits(0);
    assert!(run.stderr.contains("note: 3 events of trace-1 are in 3 files of fleet\n"), "{}", run.stderr);
    dir.call("export trace-1 -o fleet --source").arg("../_host 7").run().exits(0);
    assert_eq!(
        files(&dir, "fleet"),
        [
            "fleet/_manifest/%2E.%2F_host%207.json",
            "fleet/_manifest/trace-1.json",
            "fleet/event=a/source=%2E.%2F_host%207/data.parquet",
            "fleet/event=a/source=trace-1/data.parquet",
            "fleet/event=b/source=%2E.%2F_host%207/data.parquet",
            "fleet/event=b/source=trace-1/data.parquet",
            "fleet/event=dropped/source=%2E.%2F_host%207/data.parquet",
            "fleet/event=dropped/source=trace-1/data.parquet",
        ]
    );
    let mut manifest: Json = serde_json::from_slice(&dir.read("fleet/_manifest/trace-1.json")).unwrap();
    for file in manifest["files"].as_array_mut().unwrap() {
        let bytes = file.as_object_mut().unwrap().remove("bytes").unwrap();
        assert_eq!(bytes, fs::metadata(dir.path("fleet").join(file["path"].as_str().unwrap())).unwrap().len());
    }
    let file = |event: &str, rows: u64, first_ns: u64, last_ns: u64| {
        let path = format!("event={event}/source=trace-1/data.parquet");
        json!({ "path": path, "event": event, "rows": rows, "first_ns": first_ns, "last_ns": last_ns })
    };
    assert_eq!(
        manifest,
        json!({
            "schema": "simpletrace-rs.dataset/1",
            "tool": concat!("simpletrace-rs ", env!("CARGO_PKG_VERSION")),
            "source": "trace-1",
            "partition": ["event", "source"],
            "traces": [{ "file": "trace-1", "wall_offset_ns": 1_700_006_398_000_000_000_u64 }],
            "records": 3,
            "gaps": { "count": 1, "dropped": 4, "list": [{ "noticed_ns": 3_000_000_000_u64, "count": 4 }],
                      "missing": { "count": 0, "list": [] } },
            "is_damaged": false,
            "files": [
                file("a", 2, 1_000_000_000, 2_000_000_000),
                file("b", 1, 2_500_000_000, 2_500_000_000),
                file("dropped", 1, 3_000_000_000, 3_000_000_000),
            ],
        })
    );
}

#[test]
fn days_are_utc_and_need_a_time_of_day() {
    let dir = two_days_dir();
    dir.run("export trace-1 -o fleet --partition event,day").exits(0);
    dir.run("export trace-1 -o sources --partition event,day,source").exits(0);
    assert_eq!(
        files(&dir, "fleet"),
        [
            "fleet/_manifest/trace-1.json",
            "fleet/event=a/day=2023-11-14/trace-1.parquet",
            "fleet/event=a/day=2023-11-15/trace-1.parquet",
            "fleet/event=b/day=2023-11-15/trace-1.parquet",
            "fleet/event=dropped/day=2023-11-15/trace-1.parquet",
        ]
    );
    assert_eq!(files(&dir, "sources")[1], "sources/event=a/day=2023-11-14/source=trace-1/data.parquet");
    dir.write("old", sample(ByteOrder::Little));
    let run = dir.run("export old trace-1-events -o fleet").exits(2);
    assert_eq!(run.stderr, "error: the data set is partitioned by event,day, as fleet/_manifest/trace-1.json says\n");
    let run = dir.run("export old trace-1-events -o fleet --partition event,day").exits(2);
    assert!(run.stderr.contains("error: old does not say at what time of day it was begun"), "{}", run.stderr);
    // Nothing is left of it.
    assert_eq!(files(&dir, "fleet").len(), 5);
    for wrong in ["day", "event", "event,event", "event,day,day", "event,sources", ""] {
        dir.call("export trace-1 -o new --partition").arg(wrong).run().exits(2);
    }
    assert!(!dir.path("new").exists());
}

#[test]
fn a_time_that_is_of_no_day_is_of_the_day_null() {
    let dir = two_days_dir();
    let far = trace(ByteOrder::Little, |writer| {
        writer.event(EventId(0), u64::MAX, 1, &[Value::Signed(7)])?;
        Ok(writer.dropped(u64::MAX - 1, 1, 9)?)
    });
    dir.write("far", [&two_days()[..], &far[24..]].concat());
    dir.run("export far trace-1-events -o fleet --partition event,day").exits(0);
    assert_eq!(
        files(&dir, "fleet"),
        [
            "fleet/_manifest/far.json",
            "fleet/event=a/day=2023-11-14/far.parquet",
            "fleet/event=a/day=2023-11-15/far.parquet",
            "fleet/event=a/day=__HIVE_DEFAULT_PARTITION__/far.parquet",
            "fleet/event=b/day=2023-11-15/far.parquet",
            "fleet/event=dropped/day=2023-11-15/far.parquet",
            "fleet/event=dropped/day=__HIVE_DEFAULT_PARTITION__/far.parquet",
        ]
    );
    let test = "a_time_that_is_of_no_day_is_of_the_day_null";
    let folder = dir.path("fleet").display().to_string();
    let Some(found) = python(test, "days.py", &[&folder]) else { return };
    assert_eq!(found, "2023-11-14 1 False\n2023-11-15 2 False\nNone 7 True\n");
}

#[test]
fn what_could_not_be_read_is_told_of() {
    let whole = two_days();
    let dir = two_days_dir();
    dir.write("torn", &whole[..whole.len() - 3]);
    let mut damaged = whole.clone();
    // The length of the second event.
    let second = whole.len() - 40 - 32 - 40;
    damaged[second + 24] = 0xff;
    dir.write("damaged", &damaged);
    let missing =
        |from_ns: u64, to_ns: Option<u64>| json!({ "count": 1, "list": [{ "from_ns": from_ns, "to_ns": to_ns }] });
    for (name, code, expected) in [
        ("trace-1", 0, json!({ "count": 0, "list": [] })),
        ("torn", 0, missing(2_500_000_000, None)),
        ("damaged", 1, missing(1_000_000_000, Some(2_500_000_000))),
    ] {
        dir.run(&format!("export {name} trace-1-events -o fleet")).exits(code);
        let manifest: Json = serde_json::from_slice(&dir.read(&format!("fleet/_manifest/{name}.json"))).unwrap();
        assert_eq!(manifest["gaps"]["missing"], expected, "{name}");
        assert_eq!(manifest["is_damaged"], json!(name != "trace-1"), "{name}");
        dir.run(&format!("decode {name} trace-1-events -F parquet -o {name}.parquet")).exits(code);
        let file = fs::File::open(dir.path(&format!("{name}.parquet"))).unwrap();
        let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let facts = reader.metadata().file_metadata().key_value_metadata().unwrap();
        let gaps = facts.iter().find(|fact| fact.key == "simpletrace.gaps").unwrap().value.clone().unwrap();
        assert_eq!(serde_json::from_str::<Json>(&gaps).unwrap()["missing"], expected, "{name}");
    }
}

#[test]
fn what_is_refused_leaves_nothing() {
    let dir = two_days_dir();
    let long = "x".repeat(300);
    let named = |name: &str| {
        trace(ByteOrder::Little, |writer| {
            writer.mapping(EventId(0), "fine")?;
            writer.mapping(EventId(1), name)?;
            writer.event(EventId(0), 1, 1, &[])?;
            writer.event(EventId(1), 2, 1, &[Value::Unsigned(5)])
        })
    };
    dir.write("long", named(&long));
    dir.write("dropped", named("dropped"));
    dir.write("declared", "fine(void) \"\"\ndropped(uint64_t count) \"\"\n");
    let empty = dir.path("empty");
    fs::create_dir(&empty).unwrap();
    for (line, why) in [
        ("export trace-1 -o -", "error: a data set is a folder of files, which standard output is not; "),
        ("export trace-1 trace-1 -o new --source x", "error: trace-1 is given twice"),
        ("export trace-1 ./trace-1 -o new --source x", "error: ./trace-1 is given twice"),
        ("export trace-1 -e a -e c -o new/deep", "error: nothing is added to new/deep, as there is no c"),
        ("export trace-1 -e aa -o empty", "error: nothing is added to empty, as there is no aa"),
        (
            &format!("export trace-1 -o new --source {long}"),
            &format!(
                "error: the name {}... is too long for a file's name: 300 bytes of at most 241; --source gives",
                "x".repeat(40)
            ),
        ),
        (
            "export long declared -o new",
            &format!(
                "error: the event {}... is too long for a file's name: 300 bytes of at most 241; leave it",
                "x".repeat(40)
            ),
        ),
        (
            "export dropped declared -o new",
            "error: an event of the trace is called dropped, as gaps are in a data set; -e -dropped leaves out both",
        ),
        (
            "export dropped declared -o empty --partition event,day",
            "error: dropped does not say at what time of day it was begun",
        ),
    ] {
        let run = dir.run(line).exits(2);
        let said = run.stderr.lines().rfind(|line| line.starts_with("error: ")).unwrap_or_default();
        assert!(said.starts_with(why), "{line}: {}", run.stderr);
        assert!(!dir.path("new").exists() && !dir.path("-").exists(), "{line}");
        assert_eq!(fs::read_dir(&empty).unwrap().count(), 0, "{line}");
    }
    let run = dir.run("export trace-1 -e aa -o new").exits(2);
    assert!(run.stderr.contains("warning: no event is called aa; did you mean a?\n"), "{}", run.stderr);
    dir.run("export dropped declared -o new -e -dropped").exits(0);
    assert_eq!(files(&dir, "new"), ["new/_manifest/dropped.json", "new/event=fine/source=dropped/data.parquet"]);
    dir.call("export long declared -o new -e").arg(&format!("-{long}")).run().exits(0);
    // Folders of what is there stay, those of what is replaced and gone do not.
    dir.run("export trace-1 -o new --source dropped --replace -e b").exits(0);
    assert_eq!(
        files(&dir, "new")[2..],
        ["new/event=b/source=dropped/data.parquet", "new/event=fine/source=long/data.parquet"]
    );
    assert_eq!(fs::read_dir(dir.path("new/event=fine")).unwrap().count(), 1);
}

#[test]
fn a_file_that_grows_too_large_is_told_of_once() {
    let dir = two_days_dir();
    let many = trace(ByteOrder::Little, |writer| {
        writer.mapping(EventId(0), "a")?;
        (0..20_000_u64)
            .try_for_each(|n| writer.event(EventId(0), n, 1, &[Value::Unsigned(n.wrapping_mul(0x9e37_79b9_7f4a_7c15))]))
    });
    dir.write("many", many);
    for (line, file) in [
        ("export many trace-1-events -o fleet", "fleet/event=a/source=many/.data.parquet.part"),
        ("decode many trace-1-events -F parquet -o out", "out"),
        ("decode many trace-1-events -F arrow -o out", "out"),
    ] {
        let command = format!("trap '' XFSZ; ulimit -f 8; exec {} {line}", env!("CARGO_BIN_EXE_simpletrace-rs"));
        let output = Command::new("sh").args(["-c", &command]).current_dir(dir.path("")).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said, format!("error: cannot write to {file}: File too large (os error 27)\n"));
        assert!(!dir.path("fleet").exists() && !dir.path("out").exists());
    }
}

#[test]
fn a_trace_is_added_once_and_replaced_on_request() {
    let dir = two_days_dir();
    dir.run("export trace-1 -o fleet").exits(0);
    let before = files(&dir, "fleet");
    let run = dir.run("export trace-1 -o fleet").exits(2);
    assert_eq!(
        run.stderr.lines().last().unwrap(),
        "error: fleet has a trace that goes by the name of trace-1; --source gives this one another name, and --replace puts it in \
         the place of that one"
    );
    assert_eq!(files(&dir, "fleet"), before);
    // Files that the new one does not have go away.
    dir.run("export trace-1 -o fleet --replace -e a").exits(0);
    assert_eq!(files(&dir, "fleet"), ["fleet/_manifest/trace-1.json", "fleet/event=a/source=trace-1/data.parquet"]);
}

#[test]
fn a_manifest_cannot_have_other_files_removed() {
    let dir = two_days_dir();
    dir.run("export trace-1 -o fleet").exits(0);
    dir.write("victim.parquet", "");
    let text = String::from_utf8(dir.read("fleet/_manifest/trace-1.json")).unwrap();
    let victim = dir.path("victim.parquet").display().to_string();
    for path in ["../victim.parquet", "event=a/../../victim.parquet", &victim, "_manifest/trace-1.json"] {
        dir.write("fleet/_manifest/trace-1.json", text.replace("event=a/source=trace-1/data.parquet", path));
        let run = dir.run("export trace-1 -o fleet --replace").exits(2);
        let why = format!(
            "fleet/_manifest/trace-1.json says that {path} is a file of the data set, which it cannot be; nothing was removed"
        );
        assert!(run.stderr.contains(&why), "{}", run.stderr);
        assert!(dir.path("victim.parquet").exists());
    }
}

#[test]
fn what_a_killed_export_left_is_taken_out() {
    let dir = two_days_dir();
    dir.run("export trace-1 -o fleet").exits(0);
    // As if it had been killed with some files renamed: the claim says which, and there is no manifest.
    fs::rename(dir.path("fleet/_manifest/trace-1.json"), dir.path("fleet/_manifest/trace-1.json.part")).unwrap();
    dir.run("export trace-1 -o fleet -e a").exits(0);
    assert_eq!(files(&dir, "fleet"), ["fleet/_manifest/trace-1.json", "fleet/event=a/source=trace-1/data.parquet"]);
}

#[test]
fn two_exports_of_one_name_do_not_mix() {
    let dir = two_days_dir();
    fs::create_dir_all(dir.path("fleet/_manifest")).unwrap();
    let claim = fs::File::create(dir.path("fleet/_manifest/trace-1.json.part")).unwrap();
    claim.lock().unwrap();
    let run = dir.run("export trace-1 -o fleet").exits(2);
    assert_eq!(run.stderr.lines().last().unwrap(), "error: trace-1 is being added to fleet already");
    assert_eq!(files(&dir, "fleet"), ["fleet/_manifest/trace-1.json.part"]);
    drop(claim);
    dir.run("export trace-1 -o fleet").exits(0);
}

#[test]
fn several_traces_and_standard_input_need_a_name() {
    let dir = two_days_dir();
    dir.write("trace-2", two_days());
    let run = dir.run("export trace-1 trace-2 trace-1-events -o fleet").exits(2);
    assert_eq!(
        run.stderr,
        "error: these are 2 traces; add one at a time, or say with --source by what name they go together\n"
    );
    let run = dir.call("export - trace-1-events -o fleet").stdin(two_days()).run().exits(2);
    assert!(run.stderr.contains("standard input has no name"), "{}", run.stderr);
    dir.call("export - trace-1-events -o fleet --source piped").stdin(two_days()).run().exits(0);
    assert_eq!(files(&dir, "fleet").len(), 4);
}

#[test]
fn a_data_set_that_cannot_be_written_is_an_error() {
    let dir = two_days_dir();
    dir.write("file", "");
    let run = dir.run("export trace-1 -o file").exits(2);
    assert!(run.stderr.contains("error: cannot create file/_manifest: "), "{}", run.stderr);
    fs::create_dir_all(dir.path("fleet/_manifest")).unwrap();
    dir.write("fleet/_manifest/x.json", "{");
    let run = dir.run("export trace-1 -o fleet").exits(2);
    assert!(run.stderr.contains("error: cannot read fleet/_manifest/x.json: "), "{}", run.stderr);
    dir.write("fleet/event=a", "");
    fs::remove_file(dir.path("fleet/_manifest/x.json")).unwrap();
    let run = dir.run("export trace-1 -o fleet").exits(2);
    assert!(run.stderr.contains("error: cannot create fleet/event=a/source=trace-1/"), "{}", run.stderr);
    assert_eq!(files(&dir, "fleet"), ["fleet/event=a"]);
}

#[test]
fn a_file_that_fails_leaves_the_old_one() {
    let dir = two_days_dir();
    dir.write("out", "old");
    let run = dir.run("decode trace-1 -F parquet --clock wall -o out").exits(0);
    assert_eq!(
        run.stderr,
        "note: using trace-1-events (found beside the trace)\nnote: 4 events were dropped by the recorder, in 1 gap\n"
    );
    assert!(dir.read("out").starts_with(b"PAR1") && dir.read("out").ends_with(b"PAR1"));
    dir.write("old", sample(ByteOrder::Little));
    for format in ["parquet", "arrow"] {
        dir.write("out", "old");
        let run = dir.run(&format!("decode old trace-1-events -F {format} --clock wall -o out")).exits(2);
        assert!(run.stderr.contains("does not say at what time of day"), "{}", run.stderr);
        assert_eq!(dir.read("out"), b"old");
        let run = dir.run(&format!("decode old trace-1-events -F {format} -o /dev/full")).exits(2);
        assert!(run.stderr.contains("error: cannot write to /dev/full: No space left on device"), "{}", run.stderr);
    }
    assert_eq!(fs::read_dir(dir.path("")).unwrap().count(), 4);
}

#[test]
fn row_groups_come_in_their_order() {
    const EVENTS: u64 = 120_000;
    let text = "x".repeat(400);
    let dir = Dir::new();
    dir.write("events", "even(int n, const char *text) \"\"\nodd(int n, const char *text) \"\"\n");
    let bytes = trace(ByteOrder::Little, |writer| {
        writer.mapping(EventId(0), "even")?;
        writer.mapping(EventId(1), "odd")?;
        (0..EVENTS)
            .try_for_each(|n| writer.event(EventId(n % 2), n, 1, &[Value::Unsigned(n), Value::String(text.as_bytes())]))
    });
    dir.write("trace", bytes);
    let [folder, file, events] = ["", "trace", "events"].map(|name| dir.path(name).display().to_string());
    let Some(found) = python("row_groups_come_in_their_order", "row_groups.py", &[&folder, &file, &events]) else {
        return;
    };
    // Groups are of 16 MiB; in a data set all events together wait for no more than 64 MiB.
    assert_eq!(found, "2 60000\n4 120000\n2 60000\n2 60000\n");
}

#[test]
fn what_version_0_lost_is_what_it_means() {
    let file = "old/v0-1.1-s390x.trace";
    let Some(traces) = shared::traces("what_version_0_lost_is_what_it_means", file) else { return };
    let dir = Dir::new();
    let [trace, events] = [file.to_owned(), format!("{file}-events")].map(|name| traces.path(&name));
    dir.call("export -o fleet --source old").arg(trace.to_str().unwrap()).arg(events.to_str().unwrap()).run().exits(0);
    let manifest: Json = serde_json::from_slice(&dir.read("fleet/_manifest/old.json")).unwrap();
    // Modulo 2^32, as the folder's README has it.
    assert_eq!(manifest["gaps"]["dropped"], 87);
    assert_eq!(manifest["gaps"]["list"][1]["count"], 4_294_967_090_u64);
}
