//! `latency` against answers known from elsewhere: those of the generator that made a trace, and those of a pairing by hand of what `decode` prints.

mod support;

use std::collections::HashMap;

use serde_json::{Value as Json, json};
use simpletrace_format::{ByteOrder, EventId, Value};
use support::sample::{facts, trace};
use support::{Dir, shared};

/// The folder with the demo trace, of whose making fixtures/tests/shipped.rs knows more.
fn demo() -> Dir {
    Dir::at(concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/demo").into())
}

fn json(dir: &Dir, line: &str, operation: &[&str]) -> Json {
    let call = operation.iter().fold(dir.call(&format!("latency {line} -F json")), |call, word| call.arg(word));
    let run = call.run();
    assert!(run.code == 0, "{run:?}");
    serde_json::from_slice(&run.stdout).unwrap()
}

#[test]
fn the_demos_requests_are_as_its_generator_counted_them() {
    let report = json(&demo(), "disk.trace --preset virtio-blk -p 0,50,100 --by=pid", &[]);
    // 34 began, of which 2 have lost their ends, and their addresses were used again; another one has lost its beginning.
    for (field, expected) in
        [("begins", 34), ("pairs", 32), ("open", 0), ("orphans", 1), ("replaced", 2), ("backwards", 0), ("late", 0)]
    {
        assert_eq!(report[field], expected, "{field}");
    }
    let group = &report["groups"][0];
    assert_eq!(
        (&group["pid"], &group["pairs"], &group["min_ns"], &group["p0_ns"], &group["max_ns"], &group["mean_ns"]),
        (&json!(22_809), &json!(32), &json!(31_080), &json!(31_080), &json!(6_761_815), &json!(18_406_774 / 32))
    );
    assert_eq!((&report["schema"], &report["exact"]), (&json!("simpletrace-rs.latency/1"), &json!(true)));
}

#[test]
fn of_a_stock_trace_all_that_ended_before_a_gap_was_noticed_may_be_wrong() {
    let dir = demo();
    // When the loss was noticed, and how many requests had ended or were under way then.
    let lines = dir.run("decode disk.trace -F ndjson -e dropped -e virtio_blk_*").exits(0).text().to_owned();
    let (mut open, mut before, mut noticed) = (0, 0, false);
    for line in lines.lines().map(|line| serde_json::from_str::<Json>(line).unwrap()) {
        match line["event"].as_str().unwrap() {
            "dropped" => noticed = true,
            "virtio_blk_req_complete" if !noticed => before += 1,
            "virtio_blk_req_complete" => {}
            name if name.starts_with("virtio_blk_handle_") && !noticed => open += 1,
            _ => {}
        }
    }
    // All that had begun by then, but for the two that never ended, and one that ended without having begun.
    assert!(noticed && before > 0 && open > before - 1);
    let straddling = open - 2;
    for (drops, pairs, code) in [("keep", 32, 0), ("exclude", 32 - straddling, 0), ("fail", 32, 1)] {
        let run = dir.call(&format!("latency disk.trace --preset virtio-blk --by=pid --drops {drops} -F json")).run();
        let report: Json = serde_json::from_slice(&run.stdout).unwrap();
        assert_eq!((run.code, &report["straddling"]), (code, &json!(straddling)), "{drops}");
        assert_eq!(report["groups"][0]["pairs"], pairs, "{drops}");
    }
}

#[test]
fn the_heat_map_has_the_pairs_that_the_table_has() {
    let drawn = |drops: &str| {
        let run = demo().run(&format!("latency disk.trace --preset virtio-blk --heat --ascii --drops {drops}"));
        let picture = run.text().rsplit_once("\n\n").unwrap().1.to_owned();
        (run.code, picture)
    };
    let (code, kept) = drawn("keep");
    assert_eq!(drawn("fail"), (1, kept.clone()));
    assert!(code == 0 && kept.contains("\n         +116 us "), "{kept}");
    // The 12 that are left are behind the time when the loss was noticed; `:` is two of them.
    assert_eq!(
        drawn("exclude"),
        (
            0,
            "\
1.05 ms |    .
 524 us |  .                                                      .
 262 us |
 131 us |.
65.5 us |..                                                     .
32.8 us |:.                                                      .
16.4 us |                                                       .
        +----------------------------------------------------------
         +227 ms                                            +246 ms
count:  . 1+  : 2+
"
            .to_owned()
        )
    );
}

/// Pairs what `decode` prints: begin and end by the values of some arguments, the last beginning counts. Latencies in order of size.
fn by_hand(dir: &Dir, trace: &str, begins: &[(&str, &[&str])], end: (&str, &[&str])) -> Vec<u64> {
    let names = begins.iter().map(|begin| begin.0).chain([end.0]);
    let names: String = names.map(|name| format!(" -e {name}")).collect();
    let run = dir.run(&format!("decode {trace} trace-events-all -F ndjson{names}")).exits(0);
    let mut records: Vec<Json> = run.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    records.sort_by_key(|record| record["ts_ns"].as_u64());
    let key = |record: &Json, args: &[&str]| args.iter().map(|arg| record["args"][arg].clone()).collect::<Vec<_>>();
    let (mut open, mut latencies) = (HashMap::new(), Vec::new());
    for record in records {
        let (name, ts_ns) = (record["event"].as_str().unwrap(), record["ts_ns"].as_u64().unwrap());
        if name == end.0 {
            if let Some(begin_ns) = open.remove(&key(&record, end.1)) {
                latencies.push(ts_ns - begin_ns);
            }
        } else if let Some((_, args)) = begins.iter().find(|begin| begin.0 == name) {
            open.insert(key(&record, args), ts_ns);
        }
    }
    latencies.sort_unstable();
    latencies
}

#[test]
fn real_traces_give_what_pairing_by_hand_gives() {
    let test = "real_traces_give_what_pairing_by_hand_gives";
    let Some(folder) = shared::traces(test, "qemu-8.2") else { return };
    let dir = Dir::at(folder.path("qemu-8.2"));
    let (disk, kvm) = ("vm-virtio-blk.trace.zst", "kvm-blk.trace");
    let of_request = &["vdev", "req"][..];
    for (trace, preset, begins, end, pairs) in [
        (
            disk,
            "thread-pool",
            &[("thread_pool_submit", &["req"][..])][..],
            ("thread_pool_complete", &["req"][..]),
            Some(1_151),
        ),
        (
            disk,
            "virtio-blk",
            &[("virtio_blk_handle_read", of_request), ("virtio_blk_handle_write", of_request)],
            ("virtio_blk_req_complete", of_request),
            Some(1_145),
        ),
        (disk, "virtqueue-elem", &[("virtqueue_pop", &["vq", "elem"])], ("virtqueue_fill", &["vq", "elem"]), None),
        (kvm, "virtqueue-elem", &[("virtqueue_pop", &["vq", "elem"])], ("virtqueue_fill", &["vq", "elem"]), None),
    ] {
        let expected = by_hand(&dir, trace, begins, end);
        let rank = |thousandths: usize| expected[(expected.len() * thousandths).div_ceil(1_000) - 1];
        let report = json(&dir, &format!("{trace} trace-events-all --preset {preset} --by=pid"), &[]);
        let group = &report["groups"][0];
        let found = ["pairs", "min_ns", "p50_ns", "p90_ns", "p99_ns", "p99_9_ns", "max_ns"]
            .map(|field| group[field].as_u64().unwrap());
        let last = expected.len() - 1;
        assert_eq!(
            found,
            [expected.len() as u64, expected[0], rank(500), rank(900), rank(990), rank(999), expected[last]],
            "{preset} of {trace}"
        );
        assert!(pairs.is_none_or(|pairs| pairs == expected.len()), "{preset}");
    }
    // As the author computed it.
    let report = json(
        &dir,
        "vm-virtio-blk.trace.zst trace-events-all --on req",
        &["thread_pool_submit -> thread_pool_complete"],
    );
    let group = &report["groups"][0];
    assert_eq!(
        ["pairs", "p50_ns", "p99_ns", "p99_9_ns", "max_ns"].map(|field| group[field].as_u64().unwrap()),
        [1_151, 57_755, 6_968_400, 32_316_385, 35_062_896]
    );
    assert_eq!((&report["open"], &report["orphans"]), (&json!(0), &json!(0)));
}

#[test]
fn presets_are_of_events_and_arguments_that_qemu_declares() {
    for (version, expected) in [
        (
            "qemu-8.2",
            "9p aio-poll co-mutex dma guest-run io_uring kvm-exits locks nvme qcow2 qmp thread-pool virtio-blk virtio-blk-hops \
             virtio-scsi virtqueue-elem virtqueue-kick",
        ),
        // Of the tools only: no devices.
        ("qemu-10.2", "aio-poll co-mutex io_uring locks nvme qcow2 qmp thread-pool"),
    ] {
        let test = "presets_are_of_events_and_arguments_that_qemu_declares";
        let Some(folder) = shared::traces(test, version) else { continue };
        let dir = Dir::at(folder.path(version));
        let list = dir.run("latency --list -F ndjson").exits(0).ndjson();
        let mut declared = Vec::new();
        for name in list.iter().map(|preset| preset["preset"].as_str().unwrap()) {
            let run = dir.run(&format!("latency img-convert.trace trace-events-all --preset {name}"));
            match run.code {
                0 => declared.push(name),
                _ => assert!(
                    run.stderr.contains(&format!("error: preset {name}: no event that is declared matches ")),
                    "{}",
                    run.stderr
                ),
            }
        }
        assert_eq!(declared.join(" "), expected, "{version}");
    }
}

#[test]
fn a_preset_is_of_the_events_that_a_version_of_qemu_has() {
    let test = "a_preset_is_of_the_events_that_a_version_of_qemu_has";
    let Some(folder) = shared::traces(test, "qemu-10.2") else { return };
    let dir = Dir::at(folder.path("qemu-10.2"));
    let of = &["req"][..];
    let expected =
        by_hand(&dir, "img-convert.trace", &[("thread_pool_submit_aio", of)], ("thread_pool_complete_aio", of));
    let report = json(&dir, "img-convert.trace trace-events-all --preset thread-pool -p 50", &[]);
    let group = &report["groups"][0];
    assert_eq!(expected.len(), 34);
    assert_eq!(
        ["pairs", "min_ns", "p50_ns", "max_ns"].map(|field| group[field].as_u64().unwrap()),
        [34, expected[0], expected[16], expected[33]]
    );
    assert_eq!(["open", "orphans", "replaced"].map(|field| report[field].as_u64().unwrap()), [0, 0, 0]);
    let known = dir.run("info img-convert.trace trace-events-all -F json").exits(0).json()["presets"].clone();
    assert!(known.as_array().unwrap().contains(&json!("thread-pool")), "{known}");
}

#[test]
fn traces_of_two_versions_of_qemu_are_compared_by_a_preset() {
    let dir = Dir::with([
        (
            "old-events",
            b"luring_co_submit(void *luringcb, int type) \"\"\nluring_process_completion(void *aiocb, int ret) \"\"\n",
        ),
        ("new-events", b"luring_co_submit(void *req, int type) \"\"\nluring_cqe_handler(void *req, int ret) \"\"\n"),
    ]);
    for (name, end, took_ns) in [("old", "luring_process_completion", 10), ("new", "luring_cqe_handler", 20)] {
        let bytes = trace(ByteOrder::Little, |writer| {
            writer.mapping(EventId(0), "luring_co_submit")?;
            writer.mapping(EventId(1), end)?;
            writer.event(EventId(0), 100, 1, &[Value::Pointer(7), Value::Signed(1)])?;
            // EAGAIN, which is no end.
            writer.event(EventId(1), 105, 1, &[Value::Pointer(7), Value::Signed(-11)])?;
            writer.event(EventId(1), 100 + took_ns, 1, &[Value::Pointer(7), Value::Signed(0)])
        });
        dir.write(name, bytes);
    }
    let report = dir.run("diff old new --preset io_uring -p 50 -F json").exits(0).json();
    let group = &report["groups"][0];
    assert_eq!(
        (
            &group["type"],
            &group["p50_old_ns"],
            &group["p50_new_ns"],
            &report["old"]["orphans"],
            &report["new"]["orphans"]
        ),
        (&json!(1), &json!(10), &json!(20), &json!(0), &json!(0))
    );
}

#[test]
fn what_is_wrong_with_a_preset_is_shown_where_it_stands() {
    let dir = Dir::with([("events", b"a(int k) \"\"\nb(int k) \"\"\n")]);
    dir.write("t", trace(ByteOrder::Little, |writer| writer.mapping(EventId(0), "a")));
    for (value, expected) in [
        (
            "operation = 'aa -> b'",
            "own:4:13: preset x: no event that is declared matches aa\n  operation = 'aa -> b'\n              ^^^^^^^^^\nhelp: did you mean a?",
        ),
        (
            "operation = 'a -> b'\non = 'kk'",
            "own:5:6: preset x: a has no argument kk; did you mean k?\n  on = 'kk'\n       ^^^^",
        ),
        (
            "operation = 'a -> b'\nby = ['k', 'kk']",
            "own:5:12: preset x: --by kk: none of the events has an argument kk; did you mean k?\n  by = ['k', 'kk']\n             ^^^^",
        ),
        (
            "operation = 'a -> b'\nwhere = ['a: kk == 3']",
            "own:5:14: preset x: a has no argument kk\n  where = ['a: kk == 3']\n               ^^\nhelp: did you mean k?",
        ),
    ] {
        dir.write("own", format!("[x]\nabout = 'x'\nexact = true\n{value}\n"));
        let run = dir.run("latency t events --presets own --preset x").exits(2);
        assert_eq!(run.stderr, format!("error: {expected}\n"));
    }
    // What stands on the command line is not the preset's.
    let run = dir.run("latency t events --presets own --preset x --on kk").exits(2);
    assert_eq!(run.stderr, "error: a has no argument kk; did you mean k?\n");
    dir.write("own", "[x]\nabout = 'x'\nexact = true\noperation = 'a -> b'\nwhere = ['a: k = 3']\n");
    let run = dir.run("latency --list --presets own").exits(2);
    assert!(run.stderr.starts_with("error: own:5:16: preset x: '=' means nothing here\n"), "{}", run.stderr);
    // Reading has a bound.
    let run = dir.run("latency --list --presets /dev/zero").exits(2);
    assert_eq!(run.stderr, "error: /dev/zero is larger than 16777216 bytes, so it is something else\n");
}

#[test]
fn guest_code_and_exits_take_turns() {
    let Some(folder) = shared::traces("guest_code_and_exits_take_turns", "qemu-8.2") else { return };
    let dir = Dir::at(folder.path("qemu-8.2"));
    let groups = |preset: &str| {
        let report = json(&dir, &format!("kvm-blk.trace trace-events-all --preset {preset}"), &[]);
        let groups = report["groups"].as_array().unwrap().iter();
        groups.map(|group| (group["reason"].as_u64().unwrap(), group["pairs"].as_u64().unwrap())).collect::<Vec<_>>()
    };
    // KVM_EXIT_IO and KVM_EXIT_MMIO, and nothing else.
    assert_eq!(groups("guest-run"), [(2, 755), (6, 416)]);
    assert_eq!(groups("kvm-exits"), [(2, 755), (6, 416)]);
}

#[test]
fn a_trace_in_parts_gives_what_the_whole_one_gives() {
    let (demo, dir) = (demo(), Dir::new());
    for (part, range) in [(1, "-@429494.45"), (2, "@429494.45-@429494.6"), (3, "@429494.6-")] {
        let out = dir.path(&format!("part{part}")).display().to_string();
        demo.run(&format!("slice disk.trace disk.trace-events -t {range} -o {out}")).exits(0);
    }
    dir.write("events", demo.read("disk.trace-events"));
    let options = "--preset virtio-blk-hops --top 5 --every 50ms";
    let whole = json(&demo, &format!("disk.trace {options}"), &[]);
    // In order of their times, whatever that of the names.
    let parts = json(&dir, &format!("part3 part1 part2 events {options}"), &[]);
    assert_eq!(whole["groups"], parts["groups"]);
    for field in ["begins", "pairs", "open", "orphans", "every", "slowest"] {
        assert_eq!(whole[field], parts[field], "{field}");
    }
}

#[test]
fn chains_intervals_and_the_slowest_add_up() {
    let report = json(&demo(), "disk.trace --preset virtio-blk-hops --by=pid --top 3 --every 100ms", &[]);
    let groups = report["groups"].as_array().unwrap();
    let hops: Vec<_> = groups.iter().map(|group| group["hop"].as_str().unwrap()).collect();
    assert_eq!(hops, ["-> virtio_blk_rw_complete", "-> virtio_blk_req_complete", "all"]);
    let sum = |field: &str, rows: &[Json]| rows.iter().map(|row| row[field].as_u64().unwrap()).sum::<u64>();
    // The mean is rounded down.
    assert!(sum("mean_ns", &groups[2..]) - sum("mean_ns", &groups[..2]) <= 1);
    let share: f64 = groups[..2].iter().map(|group| group["share"].as_f64().unwrap()).sum();
    assert!((share - 1.0).abs() < 1e-9, "{share}");
    let every = report["every"].as_array().unwrap();
    let all: Vec<_> = every.iter().filter(|row| row["hop"] == "all").cloned().collect();
    assert_eq!(sum("pairs", &all), report["pairs"].as_u64().unwrap());
    assert!(all.iter().all(|row| row["from_ns"].as_u64().unwrap().is_multiple_of(100_000_000)));
    let slowest = report["slowest"].as_array().unwrap();
    let latencies: Vec<_> = slowest.iter().map(|row| row["latency_ns"].as_u64().unwrap()).collect();
    assert!(
        latencies.len() == 3
            && latencies.is_sorted_by(|a, b| a >= b)
            && latencies[0] == groups[2]["max_ns"].as_u64().unwrap()
    );
    for row in slowest {
        assert_eq!(row["end_ns"].as_u64().unwrap() - row["begin_ns"].as_u64().unwrap(), row["latency_ns"]);
    }
}

#[test]
fn the_slowest_is_shown_with_what_went_on_around_it() {
    let run = demo().run("latency disk.trace --preset virtio-blk --top 1 --context 1us").exits(0);
    let text = run.text();
    let context = &text[text.find("\n#1\n").unwrap()..];
    let own: Vec<_> = context.lines().filter(|line| line.starts_with("> [")).collect();
    assert_eq!(own.len(), 2, "{context}");
    assert!(own[0].contains(" virtio_blk_handle_") && own[1].contains(" virtio_blk_req_complete "), "{context}");
    let events = context.lines().filter(|line| line.starts_with("  [") || line.starts_with("> [")).count();
    let between = json(&demo(), "disk.trace --preset virtio-blk --top 1", &[]);
    let (from, to) = (&between["slowest"][0]["begin_ns"], &between["slowest"][0]["end_ns"]);
    let seconds = |ns: u64| format!("@{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    let range = format!("{}-{}", seconds(from.as_u64().unwrap() - 1_000), seconds(to.as_u64().unwrap() + 1_001));
    assert_eq!(events, demo().run(&format!("decode disk.trace -t {range}")).exits(0).text().lines().count());
    let run = demo()
        .call("latency - disk.trace-events --preset virtio-blk --top 1 --context 1us")
        .stdin(demo().read("disk.trace"))
        .run()
        .exits(2);
    assert_eq!(
        run.stderr,
        "error: --context reads the trace twice, and a pipe can be read once; write it into a file\n"
    );
}

#[test]
fn what_is_asked_wrong_is_said_with_a_way_out() {
    let dir = demo();
    let fails = |line: &str, operation: &[&str]| {
        let call = operation.iter().fold(dir.call(&format!("latency {line}")), |call, word| call.arg(word));
        call.run().exits(2).stderr
    };
    let disk = "disk.trace --on req";
    for (line, operation, expected) in [
        (
            disk,
            &["thread_pool_sumbit -> thread_pool_complete"][..],
            "no event is called thread_pool_sumbit; did you mean thread_pool_submit?",
        ),
        (
            "disk.trace --on reg",
            &["thread_pool_submit -> thread_pool_complete"],
            "thread_pool_complete has no argument reg; did you mean req?",
        ),
        (
            "disk.trace --on req --by vdv",
            &["virtio_blk_handle_* -> virtio_blk_req_complete"],
            "--by vdv: none of the events has an argument vdv; did you mean vdev?",
        ),
        (
            "disk.trace --on req --by vdev:log3",
            &["a -> b"],
            "--by vdev:log3: there is no way to group called \"log3\"; log2 is one",
        ),
        ("disk.trace --preset virtio-bkl", &[], "there is no preset virtio-bkl; did you mean virtio-blk?"),
        ("disk.trace", &[], "no operation is given; write 'BEGIN -> END', or take a preset (--preset, --list)"),
        (
            "disk.trace --preset virtio-blk",
            &["a -> b"],
            "an operation and a preset are given, and there can be only one of them",
        ),
        ("--on req", &["a -> b"], "no trace is given"),
        (disk, &["usb_* -> thread_pool_complete"], "no event that is declared matches usb_*"),
    ] {
        let said = fails(line, operation);
        assert!(said.lines().any(|said| said.starts_with(&format!("error: {expected}"))), "{line}: {said}");
    }
    let run = dir.call("latency disk.trace -p 101 --preset virtio-blk").run().exits(2);
    assert!(
        run.stderr.contains("'101' is not a percentile; write a number from 0 to 100, such as 99.9"),
        "{}",
        run.stderr
    );
}

#[test]
fn nothing_found_is_no_error_but_says_why() {
    let dir = demo();
    let notes = |line: &str, operation: &str| {
        let run = dir.call(&format!("latency {line}")).arg(operation).run().exits(0);
        run.stderr
            .lines()
            .filter(|line| !line.contains("using disk.trace-events") && !line.contains("dropped"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        notes("disk.trace --on a.pool=b.req", "thread_pool_submit -> thread_pool_complete"),
        [
            "note: 34 records of thread_pool_submit, with keys such as a.pool=b.req=0x55bd4e293e10",
            "note: 33 records of thread_pool_complete, with keys such as a.pool=b.req=0x55bd4e2c6260, a.pool=b.req=0x55bd4e2c62c0, a.pool=b.req=0x55bd4e2c6320",
            "note: no key of an end is that of a beginning before it; are these the arguments that they have in common?",
        ]
    );
    assert_eq!(
        notes("disk.trace -t 0-1us --on req", "thread_pool_submit -> thread_pool_complete"),
        [
            "note: 34 records of thread_pool_submit, none within -t 0-1us",
            "note: 33 records of thread_pool_complete, none within -t 0-1us",
        ]
    );
}

#[test]
fn why_there_is_nothing_is_what_made_it_so() {
    let dir = Dir::with([(
        "events",
        b"a(int k) \"\"\nb(int k) \"\"\nc(int k) \"\"\nx_walk(int tag) \"\"\nx_read(int k) \"\"\nret_walk(int k) \"\"\n",
    )]);
    let write = |records: &[(u64, &str, i64)]| {
        let names = ["a", "b", "c", "x_walk", "x_read", "ret_walk"];
        let bytes = trace(ByteOrder::Little, |writer| {
            (0..).zip(names).try_for_each(|(id, name)| writer.mapping(EventId(id), name))?;
            records.iter().try_for_each(|&(time_ns, event, key)| {
                let id = names.iter().position(|name| *name == event).unwrap();
                writer.event(EventId(id as u64), time_ns, 7, &[Value::Signed(key)])
            })
        });
        dir.write("t", bytes);
    };
    let notes = |options: &str, operation: &str| {
        let run = dir.call(&format!("latency t events --on k {options}")).arg(operation).run().exits(0);
        assert!(run.text().contains("        0 pairs\n"), "{}", run.text());
        run.stderr.lines().map(|line| line.strip_prefix("note: ").unwrap().to_owned()).collect::<Vec<_>>()
    };
    write(&[(100, "a", 1), (150, "b", 1), (200, "a", 2), (250, "b", 2)]);
    for (options, expected) in [
        ("-t 1h-", &["2 records of a, none within -t 1h-", "2 records of b, none within -t 1h-"][..]),
        ("--pid 3 --pid 4", &["2 records of a, none of --pid 3, 4", "2 records of b, none of --pid 3, 4"]),
        ("-w k==9", &["2 records of a, none let through by -w", "2 records of b, none let through by -w"]),
        ("--where=a:k==9", &["2 records of a, none let through by -w"]),
        ("--where=a:k==9 -t 50ns-", &["2 records of a, 1 not within -t 50ns-, 1 not let through by -w"]),
        (
            "--where=a:k==1 --where=b:k==2",
            &[
                "1 record of a, with keys such as k=1; 1 more not let through by -w",
                "1 record of b, with keys such as k=2; 1 more not let through by -w",
                "no key of an end is that of a beginning before it; are these the arguments that they have in common?",
            ],
        ),
    ] {
        assert_eq!(notes(options, "a -> b"), expected, "{options}");
    }
    assert_eq!(notes("", "a -> c"), ["there is no record of c"]);
    write(&[(100, "a", 1), (150, "c", 1), (160, "b", 1), (200, "c", 1)]);
    let last = |operation: &str| notes("", operation).pop().unwrap();
    assert_eq!(last("a -> b -> c"), "1 operation ended without a record of each stage in this order: a -> b -> c");
    write(&[(100, "b", 1), (150, "b", 2), (160, "c", 3), (200, "a", 1), (210, "a", 2)]);
    assert_eq!(
        last("a -> b"),
        "they have keys in common, but no end comes behind the beginning with its key; is it the other way round?"
    );
    assert_eq!(
        last("b -> a -> c"),
        "no key of c is that of a beginning before it; are these the arguments that they have in common?"
    );
    write(&[(100, "x_read", 1), (110, "ret_walk", 1)]);
    assert_eq!(
        last("x_* -> ret_*"),
        "the * of x_* stands for read, that of ret_* for walk; it has to be the same text"
    );
    write(&[(100, "x_walk", 1), (110, "ret_walk", 1)]);
    assert_eq!(notes("", "x_* -> ret_*"), ["records of x_walk have no arguments for --on k"]);
}

#[test]
fn rows_for_machines_come_with_what_the_table_says_of_them() {
    let said = |line: &str| {
        let run = demo().run(line).exits(0);
        let lines = run.stderr.lines().filter(|line| !line.contains("disk.trace-events") && !line.contains("dropped"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let expected = [
        "note: 2 replaced: had not ended when the next with the same key began",
        "note: 1 orphans: later records without a beginning before them",
        "note: 20 straddling: pairs from which events are missing, or may be",
    ];
    for (format, expected) in [("csv", &expected[..]), ("ndjson", &expected), ("json", &[]), ("table", &[])] {
        assert_eq!(said(&format!("latency disk.trace --preset virtio-blk -F {format}")), expected, "{format}");
        assert_eq!(said(&format!("stats disk.trace --depth --preset virtio-blk -F {format}")), expected, "{format}");
        let both: Vec<_> =
            expected.iter().chain(expected).map(|line| line.replace("note: ", "note: disk.trace: ")).collect();
        assert_eq!(said(&format!("diff disk.trace disk.trace --preset virtio-blk -F {format}")), both, "{format}");
    }
    for format in ["csv", "ndjson"] {
        let run = demo().run(&format!("latency disk.trace --preset virtio-blk --top 1 -F {format}")).exits(2);
        assert_eq!(
            run.stderr,
            "error: csv and ndjson have rows of one kind, and not those of --top; -F json has them, as `slowest`\n"
        );
    }
    let run = demo().run("latency disk.trace --preset virtio-blk --top 1 --context 1us -F json").exits(2);
    assert!(run.stderr.starts_with("error: --context is text for people; leave out -F, or "), "{}", run.stderr);
    // The preset is told from the percentiles, which are exact.
    let report = json(&demo(), "disk.trace --preset virtqueue-kick", &[]);
    assert_eq!(
        (&report["exact"], &report["preset"]),
        (&json!(true), &json!({ "name": "virtqueue-kick", "exact": false }))
    );
}

#[test]
fn what_could_never_hold_or_be_told_apart_is_an_error() {
    let dir = Dir::with([("events", b"a(int k, const char *s) \"\"\nb(int k, const char *s) \"\"\n")]);
    let bytes = trace(ByteOrder::Little, |writer| {
        writer.mapping(EventId(0), "a")?;
        writer.event(EventId(0), 10, 1, &[Value::Signed(1), Value::String(b"x")])
    });
    dir.write("t", bytes);
    dir.write("names", b"0x1=a\x1b[31m\n0x2\x1b[31m\n");
    for (options, expected) in [
        ("--on s=k", "--on s=k is text in a and a number in b, and these are never equal"),
        ("--on a.k=b.s", "--on a.k=b.s is text in b and a number in a, and these are never equal"),
        ("--on k --by s:log2", "--by s:log2: s is text, and has no powers of two; --by s"),
        ("--on k --by event:log2", "--by event:log2: the name of an event has no powers of two; --by event"),
        ("--on k --by=", "--by is empty; `--by none` groups by nothing"),
        ("--on k -p 50,99,50", "-p has 50 twice"),
        (
            "--on k -p 99.9999999999999999999999",
            "invalid value '99.9999999999999999999999' for '--percentiles <PERCENT[,...]>': '99.9999999999999999999999' has more than 15 digits behind its point",
        ),
        ("--on k --names /dev/zero", "/dev/zero is larger than 16777216 bytes, so it is something else"),
        ("--on k --names names", "names:2: '0x2\\u{1b}[31m' is no name of a pointer; write 0x55bd4edec9a0=disk0"),
    ] {
        let run = dir.call(&format!("latency t events a->b {options}")).run().exits(2);
        assert!(run.stderr.starts_with(&format!("error: {expected}\n")), "{options}: {}", run.stderr);
    }
    // What is text somewhere only.
    dir.run("latency t events a->b --on s --by k:log2,pid:log2").exits(0);
    // What is printed can be gated on.
    for (name, code) in [("begins", 1), ("open", 1), ("incomplete", 0), ("ignored", 0), ("backwards", 0), ("late", 0)] {
        dir.call("latency t events a->b --on k --fail-if").arg(&format!("{name} > 0")).run().exits(code);
    }
}

#[test]
fn a_preset_may_be_grouped_by_nothing() {
    let report = json(&demo(), "disk.trace --preset virtio-blk --by none", &[]);
    assert_eq!((report["groups"].as_array().unwrap().len(), &report["groups"][0]["pairs"]), (1, &json!(32)));
    assert_eq!(json(&demo(), "disk.trace --preset virtio-blk", &[])["groups"].as_array().unwrap().len(), 2);
}

#[test]
fn records_of_the_same_time_are_marked_by_their_keys() {
    let dir = Dir::with([("events", b"a(int k) \"\"\nb(int other) \"\"\n")]);
    let bytes = trace(ByteOrder::Little, |writer| {
        writer.mapping(EventId(0), "a")?;
        writer.mapping(EventId(1), "b")?;
        for (id, time_ns, key) in
            [(0, 100, 1), (0, 100, 2), (1, 100, 3), (1, 150, 2), (1, 200, 1), (1, 200, 4), (0, 200, 1)]
        {
            writer.event(EventId(id), time_ns, 1, &[Value::Signed(key)])?;
        }
        Ok(())
    });
    dir.write("t", bytes);
    let run = dir.run("latency t events a->b --on k=other --top 1 --context 1ns").exits(0);
    let marked: Vec<_> = run.lines().into_iter().filter(|line| line.starts_with("> ")).collect();
    assert_eq!(marked, ["> [0.000000100 +0.000000000] 1 a k=1", "> [0.000000200 +0.000000100] 1 b other=1"]);
}

#[test]
fn it_is_said_where_the_time_goes() {
    let report = json(&demo(), "disk.trace --preset virtio-blk", &[]);
    let groups = report["groups"].as_array().unwrap();
    let total = |group: &Json| group["total_ns"].as_u64().unwrap();
    // As the generator knows it.
    assert_eq!(groups.iter().map(total).sum::<u64>(), 18_406_774);
    for group in groups {
        assert_eq!(group["mean_ns"], total(group) / group["pairs"].as_u64().unwrap());
        assert!((group["of_all"].as_f64().unwrap() - total(group) as f64 / 18_406_774.0).abs() < 1e-9);
    }
    let table = |options: &str| {
        let run = demo().run(&format!("latency disk.trace --preset virtio-blk {options}")).exits(0);
        run.lines()[2].to_owned()
    };
    assert!(table("").ends_with("  total_us  of_all") && !table("--by none").contains("total"));
    // With hops as well.
    let report = json(&demo(), "disk.trace --preset virtio-blk-hops --by none", &[]);
    let groups = report["groups"].as_array().unwrap();
    assert_eq!((total(&groups[0]) + total(&groups[1]), &groups[2]["of_all"]), (total(&groups[2]), &json!(1.0)));
}

#[test]
fn the_slowest_may_have_to_be_slow() {
    let all = json(&demo(), "disk.trace --preset virtio-blk --top 100", &[])["slowest"].as_array().unwrap().clone();
    let slow = json(&demo(), "disk.trace --preset virtio-blk --top 100 --min 100us", &[])["slowest"].clone();
    let expected: Vec<_> = all.iter().filter(|slow| slow["latency_ns"].as_u64().unwrap() >= 100_000).cloned().collect();
    assert!(all.len() == 32 && !expected.is_empty() && expected.len() < 32);
    assert_eq!(slow, json!(expected));
    assert!(json(&demo(), "disk.trace --preset virtio-blk --top 100 --min 1h", &[])["slowest"].is_null());
}

#[test]
fn groups_beyond_a_bound_are_one_and_said_to_be() {
    let dir = Dir::with([("events", b"a(int k) \"\"\nb(int k) \"\"\n")]);
    let of = |keys: i64| {
        let bytes = trace(ByteOrder::Little, |writer| {
            writer.mapping(EventId(0), "a")?;
            writer.mapping(EventId(1), "b")?;
            (0..keys).try_for_each(|key| {
                writer.event(EventId(0), 10 * key as u64, 1, &[Value::Signed(key)])?;
                writer.event(EventId(1), 10 * key as u64 + 5, 1, &[Value::Signed(key)])
            })
        });
        dir.write("t", bytes);
        dir.run("latency t events a->b --on k --by k -F csv").exits(0)
    };
    let run = of(10_000);
    assert_eq!((run.lines().len(), run.stderr.as_str()), (10_001, ""));
    let run = of(10_003);
    assert_eq!(run.lines().len(), 10_002);
    let why = "3 pairs of groups called other: only 10000 groups, and 10000 values of each argument, are told apart";
    assert_eq!(run.stderr, format!("note: {why}\n"));
    let report = dir.run("latency t events a->b --on k --by k -F json").exits(0).json();
    assert_eq!((&report["other_pairs"], &report["groups"][0]["k"]), (&json!(3), &json!("other")));
    let run = dir.run("latency t events a->b --on k --by k").exits(0);
    assert!(run.text().ends_with(&format!("          {why}\n")), "{}", &run.text()[run.text().len() - 200..]);
    let run = dir.run("stats t events --by k -e a -F ndjson").exits(0);
    assert_eq!(run.stderr, format!("note: {}\n", why.replace("pairs", "records")));
    let run = dir.run("stats t events --of k --by k -F csv").exits(0);
    assert_eq!(run.stderr, format!("note: {}\n", why.replace("3 pairs", "6 records")));
    let run = dir.run("stats t events --depth a->b --on k --by k -F csv").exits(0);
    assert_eq!(run.stderr, format!("note: {}\n", why.replace("3 pairs of ", "")));
}

#[test]
fn presets_are_listed_copied_and_extended() {
    let dir = demo();
    let copy = dir.run("generate presets").exits(0).text().to_owned();
    let own = Dir::with([
        ("own", b"[mine]\nabout = 'x'\noperation = 'thread_pool_submit -> thread_pool_complete'\non = 'req'\nexact = false\nnote = 'so it is'\n"),
        ("copy", copy.as_bytes()),
        ("bad", b"[x]\nabout = 'x'\noperation = 'a -> b'\nexcat = true\n"),
    ]);
    own.write("t", dir.read("disk.trace"));
    own.write("t-events", dir.read("disk.trace-events"));
    let names = |line: &str| {
        own.run(line).exits(0).text().lines().map(|line| line.split(',').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let list = names("latency --list -F csv");
    assert_eq!(names("latency --list -F csv --presets copy"), list);
    assert_eq!(names("latency --list -F csv --presets own").len(), list.len() + 1);
    let known = own.run("info t -F json --presets own").exits(0).json()["presets"].clone();
    assert!(known.as_array().unwrap().contains(&json!("mine")), "{known}");
    let run = own.run("latency t --presets own --preset mine").exits(0);
    assert!(run.stderr.contains("note: mine is not exact: so it is\n"), "{}", run.stderr);
    let run = own.run("latency t --presets bad --preset mine").exits(2);
    assert!(run.stderr.starts_with("error: bad:4:1: unknown field `excat`, "), "{}", run.stderr);
}

#[test]
fn info_says_which_presets_a_trace_can_answer() {
    let known = demo().run("info disk.trace -F json").exits(0).json()["presets"].clone();
    assert_eq!(known, json!(["thread-pool", "virtio-blk", "virtio-blk-hops", "virtqueue-elem", "virtqueue-kick"]));
    for preset in known.as_array().unwrap() {
        let report = json(&demo(), &format!("disk.trace --preset {}", preset.as_str().unwrap()), &[]);
        assert!(report["pairs"].as_u64().unwrap() > 0, "{preset}");
    }
}

#[test]
fn pictures_have_a_greatest_width() {
    for (columns, width) in [("65600", 1_000), ("18446744073709551615", 1_000), ("1000", 1_000), ("999", 999)] {
        for line in [
            "latency disk.trace --preset virtio-blk --hist",
            "latency disk.trace --preset virtio-blk --heat",
            "stats disk.trace --of count --hist",
        ] {
            let run = demo().call(&format!("{line} --ascii")).env("COLUMNS", columns).run().exits(0);
            let widest = run.text().lines().map(str::len).max().unwrap();
            assert!(widest <= width, "{line}: {columns}: {widest}");
            // A heat map has no more cells than it has values for.
            assert!(widest > width - 40 || line.contains("--heat"), "{line}: {columns}: {widest}");
        }
    }
}

#[test]
fn raw_leaves_out_what_numbers_mean_wherever_tables_say_it() {
    let dir = Dir::with([("ev", b"kvm_run_exit(int cpu_index, uint32_t reason) \"\"\nback(int cpu_index) \"\"\n")]);
    let bytes = trace(ByteOrder::Little, |writer| {
        writer.mapping(EventId(0), "kvm_run_exit")?;
        writer.mapping(EventId(1), "back")?;
        for number in 0..4 {
            writer.event(EventId(0), number * 10, 1, &[Value::Signed(0), Value::Unsigned(2)])?;
            writer.event(EventId(1), number * 10 + 5, 1, &[Value::Signed(0)])?;
        }
        Ok(())
    });
    dir.write("t", bytes);
    for (line, named) in [
        ("latency t ev kvm_run_exit->back --by reason --hist --top 1 --context 1us", 7),
        ("stats t ev -e kvm_run_exit --by reason", 1),
        ("stats t ev --of kvm_run_exit.cpu_index --by reason --hist", 2),
        // A row for each percentile, the mean and the most.
        ("diff t t ev kvm_run_exit->back --by reason -p 50,90", 4),
    ] {
        let shown = dir.run(line).exits(0).text().to_owned();
        let raw = dir.run(&format!("{line} --raw")).exits(0).text().to_owned();
        assert_eq!(shown.matches("2 (IO)").count(), named, "{shown}");
        assert!(!raw.contains("(IO)"), "{raw}");
        // The columns may be narrower.
        let words = |text: &str| text.replace(" (IO)", "").split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        if !line.contains("--hist") {
            assert_eq!(words(&raw), words(&shown));
        }
    }
    let parted = "diff t - ev --first";
    let other = trace(ByteOrder::Little, |writer| {
        writer.mapping(EventId(0), "kvm_run_exit")?;
        writer.event(EventId(0), 7, 1, &[Value::Signed(0), Value::Unsigned(6)])
    });
    let text =
        |options: &str| dir.call(&format!("{parted}{options}")).stdin(other.clone()).run().exits(1).text().to_owned();
    assert!(text("").contains("reason=2 (IO)\n") && text("").contains("reason=6 (MMIO)\n"), "{}", text(""));
    assert_eq!(text(" --raw"), text("").replace(" (IO)", "").replace(" (MMIO)", ""));
}

#[test]
fn pointers_go_by_short_names_or_those_of_the_user() {
    let dir = demo();
    let run = dir.run("latency disk.trace --preset virtio-blk --by vdev").exits(0);
    let text = run.text();
    assert!(text.contains("\nvdev#1 is 0x55bd4edec9a0\n"), "{text}");
    let own = Dir::with([("names", b"# disks\n0x55bd4edec9a0 = root\n"), ("bad", b"0x1=a\nroot\n")]);
    own.write("t", dir.read("disk.trace"));
    own.write("t-events", dir.read("disk.trace-events"));
    let text = own.run("latency t --preset virtio-blk --by vdev --names names").exits(0).text().to_owned();
    assert!(text.contains("\nroot ") && text.contains("\nroot is 0x55bd4edec9a0\n"), "{text}");
    let run = own.run("latency t --preset virtio-blk --names bad").exits(2);
    assert_eq!(run.stderr, "error: bad:2: 'root' is no name of a pointer; write 0x55bd4edec9a0=disk0\n");
}

const ABC: &[u8] = b"a(int k) \"\"\nb(int k) \"\"\nc(int k) \"\"\n";

/// A trace of the events a, b and c: which, when, of which process, with which key. `-` is a gap that begins, `+` is its end.
fn abc(records: impl IntoIterator<Item = (char, u64, u32, i64)>) -> Vec<u8> {
    abc_with(&["recorder=simpletrace-rs 0.1"], records)
}

/// The same with what it says of itself.
fn abc_with(texts: &[&str], records: impl IntoIterator<Item = (char, u64, u32, i64)>) -> Vec<u8> {
    let head = trace(ByteOrder::Little, |writer| Ok(writer.facts(&facts(texts))?));
    let tail = trace(ByteOrder::Little, |writer| {
        for (id, name) in (1..).zip(["a", "b", "c"]) {
            writer.mapping(EventId(id), name)?;
        }
        for (which, time_ns, pid, key) in records {
            match which {
                '-' => writer.dropped(time_ns, pid, 1)?,
                '+' => writer.dropped(time_ns, pid, 0)?,
                _ => writer.event(EventId(which as u64 - 'a' as u64 + 1), time_ns, pid, &[Value::Signed(key)])?,
            }
        }
        Ok(())
    });
    [&head[..], &tail[24..]].concat()
}

/// A folder with such traces, by their names.
fn abcs<const N: usize>(traces: [(&str, Vec<u8>); N]) -> Dir {
    let dir = Dir::with([("events", ABC)]);
    traces.iter().for_each(|(name, bytes)| dir.write(name, bytes));
    dir
}

/// Pairs, their mean, those that straddle, what is open and what came from nowhere.
fn outcome(report: &Json) -> [u64; 5] {
    let group = |field: &str| report["groups"][0][field].as_u64().unwrap_or_default();
    let whole = |field: &str| report[field].as_u64().unwrap();
    [group("pairs"), group("mean_ns"), whole("straddling"), whole("open"), whole("orphans")]
}

#[test]
fn losses_outside_of_a_window_count_if_they_reach_into_it() {
    let (first, second) = ([('a', 100, 1, 1), ('b', 150, 1, 1)], [('a', 170, 1, 2), ('b', 190, 1, 2)]);
    let drops =
        |times: &[(char, u64)]| times.iter().map(|&(which, time_ns)| (which, time_ns, 1, 0)).collect::<Vec<_>>();
    let records = |before: &[(char, u64)], between: &[(char, u64)], behind: &[(char, u64)]| {
        [drops(before), first.to_vec(), drops(between), second.to_vec(), drops(behind), vec![('a', 500, 1, 3)]].concat()
    };
    let straddling = |is_own: bool, window: &str, records: Vec<(char, u64, u32, i64)>| {
        let texts: &[&str] = if is_own { &["recorder=simpletrace-rs 0.1"] } else { &[] };
        let dir = abcs([("t", abc_with(texts, records))]);
        let report = json(&dir, &format!("t events --on k -t {window}"), &["a -> b"]);
        (report["pairs"].as_u64().unwrap(), report["straddling"].as_u64().unwrap())
    };
    // Of stock files it is only known that events are missing since the loss before, or the start.
    assert_eq!(straddling(false, "-@200ns", records(&[], &[], &[])), (2, 0));
    assert_eq!(straddling(false, "-@200ns", records(&[], &[], &[('-', 300)])), (2, 2));
    assert_eq!(straddling(false, "-@200ns", records(&[], &[], &[('-', 200), ('-', 300)])), (2, 2));
    assert_eq!(straddling(false, "-@180ns", records(&[], &[('-', 160)], &[('-', 300)])), (1, 1));
    assert_eq!(straddling(false, "@160ns-@200ns", records(&[('-', 90)], &[], &[('-', 300)])), (1, 1));
    assert_eq!(straddling(false, "@160ns-@200ns", records(&[('-', 90)], &[('-', 155)], &[])), (1, 0));
    // Files of our own say it.
    assert_eq!(straddling(true, "-@200ns", records(&[], &[], &[('-', 300), ('+', 400)])), (2, 0));
    assert_eq!(straddling(true, "-@200ns", records(&[], &[('-', 155)], &[('+', 400)])), (2, 1));
    assert_eq!(straddling(true, "@160ns-@200ns", records(&[], &[('-', 155)], &[('+', 400)])), (1, 1));
    assert_eq!(straddling(true, "@160ns-@200ns", records(&[('-', 90), ('+', 95)], &[], &[])), (1, 0));
    // Another trace has losses of its own.
    let later = abc_with(&[], [('a', 300, 1, 1), ('-', 400, 1, 0)]);
    let dir = abcs([("t", abc_with(&[], records(&[], &[], &[]).split_last().unwrap().1.to_vec())), ("u", later)]);
    let report = json(&dir, "t u events --on k -t -@200ns", &["a -> b"]);
    assert_eq!((&report["pairs"], &report["straddling"]), (&json!(2), &json!(0)));
}

#[test]
fn processes_have_nothing_in_common() {
    let mixed = [('a', 100, 1, 7), ('a', 130, 2, 7), ('b', 150, 1, 7), ('b', 160, 2, 7), ('b', 170, 3, 7)];
    let dir = abcs([("t", abc(mixed))]);
    for options in ["--on k", "", "--on k --discipline first", "--on k --discipline fifo", "--on k --discipline lifo"] {
        let report = json(&dir, &format!("t events {options}"), &["a -> b"]);
        assert_eq!(outcome(&report), [2, 40, 0, 0, 1], "{options}");
    }
    // Text makes keys of another kind.
    let text = Dir::with([("events", &b"a(const char *k) \"\"\nb(const char *k) \"\"\n"[..])]);
    text.write(
        "t",
        trace(ByteOrder::Little, |writer| {
            (1..).zip(["a", "b"]).try_for_each(|(id, name)| writer.mapping(EventId(id), name))?;
            for (which, time_ns, pid, _) in mixed {
                writer.event(EventId(which as u64 - 'a' as u64 + 1), time_ns, pid, &[Value::String(b"x")])?;
            }
            Ok(())
        }),
    );
    let report = json(&text, "t events --on k --top 1", &["a -> b"]);
    assert_eq!((outcome(&report), &report["slowest"][0]["k"]), ([2, 40, 0, 0, 1], &json!("x")));
    let apart = abcs([("t", abc([('a', 100, 1, 7), ('b', 150, 2, 7)]))]);
    let run = apart.call("latency t events --on k").arg("a -> b").run().exits(0);
    assert!(run.stderr.contains("1 record of a, with keys such as k=7 (pid 1)\n"), "{run:?}");
    assert!(run.stderr.contains("1 record of b, with keys such as k=7 (pid 2)\n"), "{run:?}");
}

#[test]
fn what_goes_over_the_border_of_a_file_may_miss_events() {
    let records = [
        [('a', 100, 1, 1), ('a', 110, 1, 2), ('b', 120, 1, 2)],
        [('b', 200, 1, 1), ('a', 210, 1, 2), ('b', 230, 1, 2)],
    ];
    let [before, behind] = records.map(abc);
    let part = |number: usize| abc_with(&[&format!("part={number}"), "pid=1", "boot_id=x"], records[number - 1]);
    let dir = abcs([
        ("one", before.clone()),
        ("two", behind.clone()),
        ("both", [&before[..], &behind].concat()),
        ("t.000001", part(1)),
        ("t.000002", part(2)),
    ]);
    // 100, 10 and 20.
    for (files, straddling, code) in [("one two", 1, 0), ("both", 1, 1), ("t.000001 t.000002", 0, 0)] {
        let run = dir.call(&format!("latency {files} events --on k -F json")).arg("a -> b").run().exits(code);
        assert_eq!(outcome(&run.json()), [3, 43, straddling, 0, 0], "{files}");
    }
    // A gap that has no end in its file does not last in the next one.
    dir.write("one", abc([('a', 100, 1, 1), ('-', 110, 1, 0)]));
    assert_eq!(outcome(&json(&dir, "one two events --on k", &["a -> b"])), [2, 60, 1, 0, 0]);
}

#[test]
fn a_key_from_which_an_end_is_missing_stays_suspect_as_long_as_something_is_under_way() {
    // The second end is lost in a gap; the third operation overlaps with none, but something is open all the time. Another key has nothing to do with it.
    let times = [
        ('a', 10, 1, 1),
        ('b', 20, 1, 1),
        ('a', 30, 1, 1),
        ('-', 31, 1, 0),
        ('+', 39, 1, 0),
        ('a', 40, 1, 2),
        ('b', 50, 1, 2),
        ('a', 50, 1, 1),
        ('b', 60, 1, 1),
        ('a', 70, 1, 1),
        ('b', 80, 1, 1),
    ];
    let at_rest = [('b', 85, 1, 1), ('a', 90, 1, 1), ('b', 99, 1, 1)];
    let dir = abcs([("t", abc(times)), ("rest", abc(times.into_iter().chain(at_rest)))]);
    for (discipline, straddling, open) in [("fifo", 2, 1), ("lifo", 2, 1), ("last", 0, 0), ("first", 1, 0)] {
        let report = json(&dir, &format!("t events --on k --discipline {discipline}"), &["a -> b"]);
        assert_eq!((&report["straddling"], &report["open"]), (&json!(straddling), &json!(open)), "{discipline}");
    }
    // When the last one has ended, the key begins anew.
    for discipline in ["fifo", "lifo"] {
        let report = json(&dir, &format!("rest events --on k --discipline {discipline} --drops exclude"), &["a -> b"]);
        assert_eq!((&report["straddling"], &report["groups"][0]["pairs"]), (&json!(3), &json!(3)), "{discipline}");
    }
}

#[test]
fn a_lost_unlock_does_not_make_later_ones_wrong() {
    let dir = Dir::with([(
        "events",
        &b"qemu_mutex_lock(void *mutex, const char *file, const int line) \"\"\n\
        qemu_mutex_locked(void *mutex, const char *file, const int line) \"\"\n\
        qemu_mutex_unlock(void *mutex, const char *file, const int line) \"\"\n"[..],
    )]);
    dir.write(
        "t",
        trace(ByteOrder::Little, |writer| {
            let names = ["qemu_mutex_lock", "qemu_mutex_locked", "qemu_mutex_unlock"];
            (1..).zip(names).try_for_each(|(id, name)| writer.mapping(EventId(id), name))?;
            for n in 0..100 {
                for (id, behind_ns) in [(1, 0), (2, 5), (3, 15)] {
                    if (n, id) != (5, 3) {
                        let args = [Value::Pointer(0x10), Value::String(b"f.c"), Value::Signed(1)];
                        writer.event(EventId(id), n * 1_000 + behind_ns, 1, &args)?;
                    }
                }
            }
            Ok(())
        }),
    );
    let report = json(&dir, "t events --preset locks", &[]);
    let all = &report["groups"][2];
    assert_eq!((&all["hop"], &all["pairs"], &all["max_ns"]), (&json!("all"), &json!(99), &json!(15)));
    assert_eq!(report["open"], 1);
}

#[test]
fn many_of_one_key_take_no_longer_each_than_few() {
    // All of them wait for their second stage, and then for the third: looking at each for each record would take hours.
    const MANY: u64 = 50_000;
    let stages = ['a', 'b', 'c'].into_iter().zip([0, MANY, 2 * MANY]);
    let all = stages.flat_map(|(which, from_ns)| (0..MANY).map(move |n| (which, from_ns + n, 1, 7)));
    let dir = abcs([("t", abc(all))]);
    for (discipline, max_ns) in [("fifo", 2 * MANY), ("lifo", 3 * MANY - 1)] {
        let report = json(&dir, &format!("t events --on k --discipline {discipline}"), &["a -> b -> c"]);
        let all = &report["groups"][2];
        assert_eq!((&all["pairs"], &all["max_ns"]), (&json!(MANY), &json!(max_ns)), "{discipline}");
    }
}

#[test]
fn pairs_are_of_the_interval_that_they_end_in_in_whatever_order_they_come() {
    const SECOND: u64 = 1_000_000_000;
    let of = |from: u64, pid: u32| {
        (0..10).flat_map(move |n| {
            let at = from + n * SECOND;
            [('a', at, pid, 1), ('b', at + 100, pid, 1)]
        })
    };
    // The second file begins later, and has been recorded at the same time.
    let dir = abcs([
        ("one", abc(of(SECOND, 1))),
        ("two", abc(of(SECOND + 10, 2))),
        (
            "early",
            abc([('a', 2 * SECOND, 1, 0), ('b', 2 * SECOND + 50, 1, 0), ('a', SECOND, 1, 0), ('b', SECOND + 70, 1, 0)]),
        ),
    ]);
    let every = |files: &str| {
        let report = json(&dir, &format!("{files} events --on k --every 1s"), &["a -> b"]);
        let rows = report["every"].as_array().unwrap().iter();
        rows.map(|row| (row["from_ns"].as_u64().unwrap() / SECOND, row["pairs"].as_u64().unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(every("one two"), (0..10).map(|second| (second, 2)).collect::<Vec<_>>());
    assert_eq!(every("early"), [(0, 2)]);
    let run = dir.call("latency early events --on k --every 1s").arg("a -> b").run().exits(0);
    let note =
        "note: the first interval has 1 pair that ended before the first record of the trace, as if on another clock\n";
    assert!(run.stderr.contains(note), "{run:?}");
}

#[test]
fn rows_by_interval_are_no_more_than_they_may_be() {
    // 2,000 intervals of ten groups; the largest is the one that comes last.
    let records = (0..2_000u64).flat_map(|second| {
        (0..10).flat_map(move |group| {
            let times = if group == 9 { 0..3u64 } else { 0..1 };
            times.flat_map(move |n| {
                let at = second * 1_000 + group * 50 + n * 10;
                [('a', at, 1, group as i64), ('b', at + 1 + group, 1, group as i64)]
            })
        })
    });
    let dir = abcs([("t", abc(records))]);
    let run = dir.call("latency t events --on k --by a.k --every 1us -F json").arg("a -> b").run().exits(0);
    let note = "note: by interval, the 3 largest groups are told apart, and all others are 'other', as there would be more than 10000 rows; take longer intervals for more\n";
    assert_eq!(run.stderr, note);
    let report = run.json();
    let every = report["every"].as_array().unwrap();
    assert_eq!((every.len(), report["groups"].as_array().unwrap().len()), (8_000, 10));
    for row in every {
        // Those of the same size in the order in which they came.
        let expected = match row["a.k"].as_u64() {
            Some(9) => (3, 10),
            Some(group @ 0..2) => (1, group + 1),
            _ => (7, 9),
        };
        assert_eq!((&row["pairs"], &row["max_ns"]), (&json!(expected.0), &json!(expected.1)), "{row}");
    }
    // Chains have three rows for each.
    let records = (0..4_000u64).flat_map(|n| ['a', 'b', 'c'].map(|which| (which, n * 1_000, 1, 1)));
    dir.write("chain", abc(records));
    let run = dir.call("latency chain events --on k --every 1us").arg("a -> b -> c").run().exits(2);
    let error = "error: there are more than 3333 intervals for a chain of so many stages; take a longer one, or a part of the trace (-t)\n";
    assert_eq!(run.stderr, error);
}

#[test]
fn the_slowest_are_no_more_than_can_be_looked_at() {
    let dir = demo();
    let run = dir.run("latency disk.trace --preset virtio-blk --top 100001").exits(2);
    assert!(run.stderr.contains("'100001' for '--top <N>': it can be 100000 at most"), "{run:?}");
    let run = dir.run("latency disk.trace --preset virtio-blk --top 101 --context 1us").exits(2);
    assert!(run.stderr.ends_with("error: --context shows what went on around 100 at most; take a smaller --top\n"));
    // Of equals the earlier one is the slower, in whatever order they come.
    let records =
        [('a', 50, 1, 2), ('b', 60, 1, 2), ('a', 10, 1, 1), ('b', 20, 1, 1), ('a', 30, 1, 3), ('b', 40, 1, 3)];
    let dir = abcs([("t", abc(records))]);
    let report = json(&dir, "t events --on k --top 1", &["a -> b"]);
    assert_eq!((&report["slowest"][0]["begin_ns"], &report["slowest"][0]["k"]), (&json!(10), &json!(1)));
}

#[test]
fn what_is_given_up_is_counted() {
    let report = json(&demo(), "disk.trace --preset virtio-blk", &[]);
    assert_eq!(report["given_up"], 0);
}
