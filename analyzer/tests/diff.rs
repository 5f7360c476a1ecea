//! `diff`, and the gates that it has in common with `latency`, on traces whose latencies are known.

mod support;

use proptest::prelude::*;
use serde_json::{Value as Json, json};
use simpletrace_format::{ByteOrder, Value};
use support::Dir;
use support::sample::{self, DONE, EVENTS, READ};

/// The folder with the demo trace.
fn demo() -> Dir {
    Dir::at(concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/demo").into())
}

/// A trace of reads one behind the other: the count that each asks for, and how long it takes, in ns. Addresses begin at `base`.
fn reads(base: u64, reads: &[(u64, u64)]) -> Vec<u8> {
    sample::trace(ByteOrder::Little, |writer| {
        sample::mappings(writer)?;
        let mut time_ns = 1_000_000_000;
        for (number, &(count, latency_ns)) in (0..).zip(reads) {
            let disk = Value::Pointer(base + number % 3 * 0x100);
            writer.event(READ, time_ns, 10, &[disk, Value::Unsigned(number), Value::Unsigned(count)])?;
            time_ns += latency_ns;
            writer.event(DONE, time_ns, 10, &[disk, Value::Signed(0)])?;
            time_ns += 1_000;
        }
        Ok(())
    })
}

/// A folder with traces, and the declarations of all.
fn folder(traces: &[(&str, Vec<u8>)]) -> Dir {
    let dir = Dir::with([("trace-events", EVENTS)]);
    traces.iter().for_each(|(name, bytes)| dir.write(name, bytes));
    dir
}

const OPERATION: &str = "disk_read -> disk_done";

/// Runs with the operation and conditions, and returns the exit code and what was said but for where the declarations were found.
fn gate(dir: &Dir, line: &str, conditions: &[&str]) -> (i32, Vec<String>) {
    let call = dir.call(&format!("{line} --on disk")).arg(OPERATION);
    let run = conditions.iter().fold(call, |call, condition| call.arg("--fail-if").arg(condition)).run();
    let said = run.stderr.lines().filter(|line| !line.contains("(found beside")).map(str::to_owned).collect();
    (run.code, said)
}

#[test]
fn a_trace_without_records_is_not_the_same_as_one_with_some() {
    let dir = Dir::with([("events", EVENTS)]);
    dir.write("some", sample::sample(ByteOrder::Little));
    dir.write("empty", sample::trace(ByteOrder::Little, |_| Ok(())));
    for (line, code, said) in [
        ("empty some events", 1, "warning: nothing was compared: empty has no record of what is asked for\n"),
        ("some empty events", 1, "warning: nothing was compared: empty has no record of what is asked for\n"),
        ("empty empty events", 0, "warning: nothing was compared: both have no record of what is asked for\n"),
        (
            "some some events -e never_seen",
            0,
            "warning: nothing was compared: both have no record of what is asked for\n",
        ),
    ] {
        let run = dir.run(&format!("diff --first {line}")).exits(code);
        assert!(run.stderr.contains(said), "{line}: {}", run.stderr);
    }
    assert!(!dir.run("diff --first some some events").exits(0).stderr.contains("nothing was compared"));
}

#[test]
fn a_gate_on_latencies_sets_the_exit_code_and_says_why() {
    let of_two: Vec<_> = (1..=10).flat_map(|n| [(8, n * 1_000), (64, n * 2_500)]).collect();
    let dir = folder(&[("t", reads(0x1000, &of_two)), ("empty", reads(0, &[]))]);
    let good = (0, vec![]);
    assert_eq!(gate(&dir, "latency t", &["p99 > 25us", "pairs != 1"]).0, 2);
    assert_eq!(gate(&dir, "latency t", &["p99 > 25us", "pairs < 20", "open > 0", "rate_per_s < 1000"]), good);
    assert_eq!(
        gate(&dir, "latency t", &["p90>=20us", "p12.5 == 2.5us", "mean > 10us"]),
        (
            1,
            vec![
                "error: failed on 'p90>=20us': p90 is 20us".to_owned(),
                // Rank 3 of 1, 2, 2.5, 3 ... us.
                "error: failed on 'p12.5 == 2.5us': p12.5 is 2.5us".to_owned()
            ]
        )
    );
    // Any group will do, and only those that fail are told.
    assert_eq!(gate(&dir, "latency t --by count", &["max > 25us", "pairs < 10"]), good);
    assert_eq!(
        gate(&dir, "latency t --by count", &["max > 10us", "min < 2us", "pairs == 10"]),
        (
            1,
            [
                "'max > 10us': max of count=64 is 25us",
                "'min < 2us': min of count=8 is 1us",
                "'pairs == 10': pairs of count=8 is 10",
                "'pairs == 10': pairs of count=64 is 10"
            ]
            .map(|why| format!("error: failed on {why}"))
            .into()
        )
    );
    let (code, said) = gate(&dir, "latency empty", &["p99 > 1s", "pairs < 1", "pairs > 1", "open > 0"]);
    assert_eq!(
        (code, &said[said.len() - 2..]),
        (
            1,
            &[
                "error: failed on 'p99 > 1s': there are no pairs, and so no p99".to_owned(),
                "error: failed on 'pairs < 1': pairs is 0".to_owned()
            ][..]
        )
    );
    // Before anything is read.
    let (code, said) = gate(&dir, "latency nowhere", &["p99 > 2"]);
    assert_eq!(
        (code, said.join("\n").as_str()),
        (
            2,
            "error: --fail-if:1:7: p99 is a time, and '2' has no unit\n  p99 > 2\n        ^\nhelp: write ns, us, ms or s behind it"
        )
    );
}

#[test]
fn gates_look_at_records_without_a_pair() {
    let (code, said) = {
        let run = demo()
            .call("latency disk.trace --preset virtio-blk --fail-if")
            .arg("replaced >= 2")
            .arg("--fail-if")
            .arg("orphans != 0")
            .run();
        (run.code, run.stderr)
    };
    assert!(code == 2 && said.contains("\n  orphans != 0\n          ^\n"), "{said}");
    let run = demo()
        .call("latency disk.trace --preset virtio-blk --by=pid --fail-if replaced>=2 --fail-if orphans>1 --fail-if straddling<1 --fail-if max==6761815ns")
        .run()
        .exits(1);
    let failed: Vec<_> = run.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(
        failed,
        [
            "error: failed on 'replaced>=2': replaced is 2",
            "error: failed on 'max==6761815ns': max of pid=22809 is 6.761815ms"
        ]
    );
}

/// Compares and returns the rows.
fn rows(dir: &Dir, line: &str) -> Vec<Json> {
    let run = dir.call(&format!("diff {line} --on disk -F ndjson")).arg(OPERATION).run().exits(0);
    run.ndjson()
}

fn constant(count: u64, latency_ns: u64, pairs: usize) -> Vec<(u64, u64)> {
    vec![(count, latency_ns); pairs]
}

#[test]
fn groups_are_joined_by_their_values() {
    let old = [constant(8, 1_000, 4), constant(64, 7_000, 2)].concat();
    let new = [constant(8, 1_500, 3), constant(128, 9_000, 1)].concat();
    let dir = folder(&[("old", reads(0x1000, &old)), ("new", reads(0x7000_0000, &new))]);
    let empty = json!(null);
    assert_eq!(
        rows(&dir, "old new --by count -p 50"),
        [
            json!({"count": 8, "pairs_old": 4, "pairs_new": 3, "p50_old_ns": 1_000, "p50_new_ns": 1_500, "p50_change": 0.5, "p50_change_low": 0.5, "p50_change_high": 0.5, "min_old_ns": 1_000, "min_new_ns": 1_500, "min_change": 0.5, "mean_old_ns": 1_000, "mean_new_ns": 1_500, "mean_change": 0.5, "max_old_ns": 1_000, "max_new_ns": 1_500, "max_change": 0.5}),
            json!({"count": 64, "pairs_old": 2, "pairs_new": 0, "p50_old_ns": 7_000, "p50_new_ns": empty, "p50_change": empty, "p50_change_low": empty, "p50_change_high": empty, "min_old_ns": 7_000, "min_new_ns": empty, "min_change": empty, "mean_old_ns": 7_000, "mean_new_ns": empty, "mean_change": empty, "max_old_ns": 7_000, "max_new_ns": empty, "max_change": empty}),
            json!({"count": 128, "pairs_old": 0, "pairs_new": 1, "p50_old_ns": empty, "p50_new_ns": 9_000, "p50_change": empty, "p50_change_low": empty, "p50_change_high": empty, "min_old_ns": empty, "min_new_ns": 9_000, "min_change": empty, "mean_old_ns": empty, "mean_new_ns": 9_000, "mean_change": empty, "max_old_ns": empty, "max_new_ns": 9_000, "max_change": empty}),
        ]
    );
    let run = dir.call("diff old new --by count -p 50 --on disk").arg(OPERATION).run().exits(0);
    assert_eq!(
        run.text(),
        "\
disk_read -> disk_done on disk

count  pairs_old  pairs_new  at    old_us  new_us  change    from      to
    8          4          3  p50    1.000   1.500  +50.0%  +50.0%  +50.0%
    8          4          3  mean   1.000   1.500  +50.0%       -       -
    8          4          3  max    1.000   1.500  +50.0%       -       -
   64          2          0  p50    7.000       -       -       -       -
   64          2          0  mean   7.000       -       -       -       -
   64          2          0  max    7.000       -       -       -       -
  128          0          1  p50        -   9.000       -       -       -
  128          0          1  mean       -   9.000       -       -       -
  128          0          1  max        -   9.000       -       -       -

        old  new
begins    6    4
pairs     6    4

from, to: 95 % interval of the change, by bootstrap with 2000 resamples
p50: the slowest of all in some group; the interval says little about what slower ones there may be
"
    );
    let run = dir.call("diff old new --by count -p 50 --on disk -F csv").arg(OPERATION).run().exits(0);
    assert_eq!(
        run.lines()[..2],
        [
            "count,pairs_old,pairs_new,p50_old_ns,p50_new_ns,p50_change,p50_change_low,p50_change_high,min_old_ns,min_new_ns,min_change,mean_old_ns,mean_new_ns,mean_change,max_old_ns,max_new_ns,max_change",
            "8,4,3,1000,1500,0.5,0.5,0.5,1000,1500,0.5,1000,1500,0.5,1000,1500,0.5"
        ]
    );
    let json = dir.call("diff old new --by count -p 50 --on disk -F json").arg(OPERATION).run().exits(0).json();
    assert_eq!(
        ["schema", "operation", "on", "by", "resamples", "confidence", "failed"].map(|field| json[field].clone()),
        [
            json!("simpletrace-rs.diff/1"),
            json!(OPERATION),
            json!(["disk"]),
            json!(["count"]),
            json!(2_000),
            json!(0.95),
            json!([])
        ]
    );
    assert_eq!(json["groups"], json!(rows(&dir, "old new --by count -p 50")));
    let expected = json!({"begins": 4, "pairs": 4, "open": 0, "replaced": 0, "ignored": 0, "incomplete": 0, "orphans": 0, "other_pairs": 0, "backwards": 0, "given_up": 0, "straddling": 0, "late": 0, "exact": true, "span_ns": 3 * 1_500 + 9_000 + 3 * 1_000});
    assert_eq!(json["new"], expected);
}

#[test]
fn an_interval_is_the_one_computed_by_hand_each_time() {
    // analyzer/src/bootstrap.rs says how.
    let ten: Vec<_> = (1..=10).map(|n| (8, n * 1_000)).collect();
    let dir = folder(&[("five", reads(0, &[(8, 5_000)])), ("ten", reads(0x1000, &ten))]);
    let interval = |line: &str| {
        let row = rows(&dir, line).remove(0);
        ["p50_change", "p50_change_low", "p50_change_high"].map(|field| row[field].as_f64().unwrap())
    };
    assert_eq!(interval("five ten -p 50"), [0.0, -0.6, 0.6]);
    // Whatever else is asked.
    assert_eq!(interval("five ten -p 99,50,1 --by count"), [0.0, -0.6, 0.6]);
    assert_eq!(interval("ten five"), [0.0, -0.375, 1.5]);
    let all = || dir.call("diff ten ten --on disk -F json").arg(OPERATION).run().exits(0).stdout;
    assert_eq!(all(), all());
}

#[test]
fn gates_compare_with_the_old_trace() {
    let old: Vec<_> = (1..=10).map(|n| (8, n * 1_000)).collect();
    let new: Vec<_> = (1..=9).map(|n| (8, n * 1_100)).chain(constant(64, 5_000, 1)).collect();
    let dir = folder(&[("old", reads(0x1000, &old)), ("new", reads(0x5000, &new)), ("empty", reads(0, &[]))]);
    // p50 goes from 5 us to 5 us, max from 10 us to 9.9 us.
    let line = "diff old new";
    assert_eq!(
        gate(&dir, line, &["p50 > 1x", "max > 1x", "p50 > +0", "pairs < 1x", "max > 9.9us", "orphans > 1x"]),
        (0, vec![])
    );
    let (code, said) = gate(
        &dir,
        line,
        &["max >= 0.99x", "max < -99ns", "max > 9.8us", "min >= +100ns", "p10 > 1.1x", "rate_per_s > 0.5x"],
    );
    assert_eq!(code, 1);
    assert_eq!(
        said,
        [
            "'max >= 0.99x': max went from 10us to 9.9us",
            "'max < -99ns': max went from 10us to 9.9us",
            "'max > 9.8us': max is 9.9us",
            "'min >= +100ns': min went from 1us to 1.1us",
            // 10 in 64 us, and 10 in 63.5 us.
            "'rate_per_s > 0.5x': rate_per_s went from 156250.000 to 157480.315",
        ]
        .map(|why| format!("error: failed on {why}"))
    );
    // A group of one trace only cannot be compared; its pairs can, and what is asked of the new trace alone is not about those that it lacks.
    let conditions = ["p99 > 9x", "pairs > +0", "p99 > 9.9us"];
    assert_eq!(
        gate(&dir, "diff old new --by count", &conditions).1,
        [
            "error: failed on 'p99 > 9x': there are no pairs of count=64 in the old trace, and so no p99",
            "error: failed on 'pairs > +0': pairs of count=64 went from 0 to 1",
        ]
    );
    assert_eq!(
        gate(&dir, "diff new old --by count", &conditions).1,
        [
            "error: failed on 'p99 > 9x': there are no pairs of count=64 in the new trace, and so no p99",
            "error: failed on 'pairs > +0': pairs of count=8 went from 9 to 10",
            "error: failed on 'p99 > 9.9us': p99 of count=8 is 10us",
        ]
    );
    let (code, said) = gate(&dir, "diff old empty", &["p99 > 1s"]);
    assert_eq!(
        (code, said.last().unwrap().as_str()),
        (1, "error: failed on 'p99 > 1s': there are no pairs, and so no p99")
    );
    assert!(
        said.contains(&"note: empty: there is no record of disk_read and none of disk_done".to_owned()),
        "{said:?}"
    );
    let json = dir.call("diff old new --on disk -F json --fail-if max>9us").arg(OPERATION).run().exits(1).json();
    assert_eq!(json["failed"], json!(["failed on 'max>9us': max is 9.9us"]));
}

#[test]
fn pointers_are_no_groups_and_each_trace_may_have_its_own_declarations() {
    let dir = folder(&[("old", reads(0x1000, &constant(8, 1_000, 5)))]);
    let run = dir.call("diff old old --by disk,count -p 50 --on disk -F ndjson").arg(OPERATION).run().exits(0);
    assert!(
        run.stderr.contains("note: not grouped by disk: it is a pointer, and no run has the addresses of another; --names says which are the same, --by groups by other arguments\n"),
        "{}",
        run.stderr
    );
    let rows = run.ndjson();
    assert_eq!(
        (rows.len(), &rows[0]["count"], rows[0].get("disk"), &rows[0]["pairs_new"]),
        (1, &json!(8), None, &json!(5))
    );
    // In the new one, the count comes first.
    let new = sample::trace(ByteOrder::Big, |writer| {
        sample::mappings(writer)?;
        writer.event(READ, 1_000, 11, &[Value::Unsigned(8), Value::Pointer(0x55), Value::Unsigned(1)])?;
        writer.event(DONE, 4_000, 11, &[Value::Pointer(0x55), Value::Signed(0)])
    });
    dir.write("new", new);
    dir.write(
        "new-events",
        "disk_read(uint32_t count, void *disk, uint64_t sector) \"\"\ndisk_done(void *disk, int ret) \"\"\n",
    );
    let run = dir.call("diff old new --by count -p 50 --on disk -F csv").arg(OPERATION).run().exits(0);
    assert_eq!(run.lines()[1], "8,5,1,1000,3000,2,2,2,1000,3000,2,1000,3000,2,1000,3000,2");
    assert_eq!(
        run.stderr,
        "note: using trace-events (found beside the trace)\nnote: using new-events (found beside the trace)\n"
    );
}

#[test]
fn both_are_drawn_beside_each_other_in_tables_only() {
    let dir = folder(&[("old", reads(0x1000, &constant(8, 1_000, 4))), ("new", reads(0, &[(8, 1_000), (8, 5_000)]))]);
    let run = |options: &str| {
        let run =
            dir.call(&format!("diff old new --by count --on disk {options}")).env("COLUMNS", "50").arg(OPERATION).run();
        run.exits(0).text().to_owned()
    };
    let picture = "count=8
                    old             new
[ 512 ns, 1.02 us)    4  #########    1  #####
[1.02 us, 2.05 us)    0               0
[2.05 us, 4.10 us)    0               0
[4.10 us, 8.19 us)    0               1  #####
";
    let drawn = run("--hist --ascii");
    assert!(drawn.contains(&format!("\n\n{picture}\n")), "{drawn}");
    assert_eq!(drawn.replace(&format!("{picture}\n"), ""), run(""));
    for format in ["csv", "json", "ndjson"] {
        assert_eq!(run(&format!("--hist -F {format}")), run(&format!("-F {format}")));
    }
    dir.run("diff old new --first --hist").exits(2);
}

#[test]
fn pointers_that_are_called_the_same_are_one_group() {
    // Three disks each, of which two are called and two of the new trace's are called the same.
    let of = |latencies: [u64; 3]| -> Vec<_> { latencies.into_iter().cycle().take(9).map(|ns| (8, ns)).collect() };
    let dir = folder(&[("old", reads(0x1000, &of([100, 200, 300]))), ("new", reads(0x5000, &of([150, 260, 270])))]);
    dir.write("names", "0x1000=root\n0x1100=data\n0x5000=root\n0x5100=data\n0x5200=data\n");
    let line = "old new --by disk -p 50,100 --names names";
    let rows = rows(&dir, line);
    let found: Vec<_> = rows
        .iter()
        .map(|row| {
            ["disk", "pairs_old", "pairs_new", "p50_old_ns", "p50_new_ns", "p100_new_ns"].map(|name| row[name].clone())
        })
        .collect();
    let (data, root) = (json!("data"), json!("root"));
    assert_eq!(
        found,
        [
            [data, json!(3), json!(6), json!(200), json!(260), json!(270)],
            [root, json!(3), json!(3), json!(100), json!(150), json!(150)],
            [json!(0x1200), json!(3), json!(0), json!(300), json!(null), json!(null)],
        ]
    );
    let (code, said) = gate(&dir, &format!("diff {line}"), &["p50 > 1.4x"]);
    assert_eq!(
        (code, said.iter().map(String::as_str).filter(|line| line.starts_with("error")).collect::<Vec<_>>()),
        (
            1,
            vec![
                "error: failed on 'p50 > 1.4x': p50 of disk=root went from 100ns to 150ns",
                "error: failed on 'p50 > 1.4x': there are no pairs of disk=0x1200 in the new trace, and so no p50"
            ]
        )
    );
}

#[test]
fn what_is_missing_is_told_of_which_trace_and_drops_may_fail() {
    let dir = demo();
    let line = "diff disk.trace disk.trace --preset virtio-blk-hops --by event -p 50 -F csv";
    let run = dir.run(line).exits(0);
    assert_eq!(run.stderr.matches("note: disk.trace: 30 events were dropped by the recorder, in 1 gap\n").count(), 2);
    let rows = support::csv::rows(run.text());
    let hops: Vec<_> = rows[1..].iter().map(|row| (row[0].as_str(), row[1].as_str(), &row[6][..])).collect();
    let (to, of, all) = ("-> virtio_blk_rw_complete", "-> virtio_blk_req_complete", "all");
    let (read, write) = ("virtio_blk_handle_read", "virtio_blk_handle_write");
    assert_eq!(
        hops,
        [(read, to, "0"), (read, of, "0"), (read, all, "0"), (write, to, "0"), (write, of, "0"), (write, all, "0")]
    );
    dir.run(&format!("{line} --drops fail")).exits(1);
    let kept = |line: &str| dir.run(line).exits(0).json()["groups"][0]["pairs_new"].as_u64().unwrap();
    let line = "diff disk.trace disk.trace --preset virtio-blk --by pid -F json";
    assert_eq!((kept(line), kept(&format!("{line} --drops exclude"))), (32, 12));
    assert_eq!(kept(&format!("{line} -w virtio_blk_handle_read:first<0")), 4);
}

#[test]
fn what_is_asked_wrong_of_two_traces_is_said() {
    let dir = demo();
    for (line, expected) in [
        (
            "diff disk.trace --preset virtio-blk",
            "error: two traces are needed, OLD and NEW, and one is given; `slice` makes one file of several\n",
        ),
        (
            "diff disk.trace disk.trace disk.trace --first",
            "error: two traces are needed, OLD and NEW, and 3 are given; `slice` makes one file of several\n",
        ),
        (
            "diff disk.trace disk.trace --preset virtio-bkl",
            "error: there is no preset virtio-bkl; did you mean virtio-blk?\n",
        ),
        (
            "diff disk.trace disk.trace",
            "error: no operation is given; write 'BEGIN -> END', or take a preset (--preset, --list)\n",
        ),
        (
            "diff nowhere disk.trace --preset virtio-blk --fail-if p99>1.1y",
            "error: --fail-if:1:5: p99 is a time, and '1.1y' is none\n  p99>1.1y\n      ^^^^\nhelp: write a time such as 2ms, a factor such as 1.1x, or a difference such as +200us\n",
        ),
    ] {
        assert_eq!(dir.run(line).exits(2).stderr, expected, "{line}");
    }
    assert_eq!(
        dir.run("diff disk.trace disk.trace --preset virtio-blk -e x").exits(2).stderr,
        "error: -e goes with --first; otherwise the operation says which events there are\n"
    );
    dir.run("diff disk.trace disk.trace --first --preset virtio-blk").exits(2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn nothing_changes_from_a_trace_to_itself(
        pairs in proptest::collection::vec((0u64..4, 0u64..1_000_000), 1..80),
    ) {
        let dir = folder(&[("t", reads(0x1000, &pairs))]);
        let line = "diff t t --by count --on disk -F ndjson --fail-if p99.9!x --fail-if pairs<1x --fail-if max>+0 --fail-if p50>1x --fail-if mean<1x";
        let run = dir.call(&line.replace("p99.9!x", "p99.9>1x")).arg(OPERATION).run();
        prop_assert_eq!(run.code, 0, "{}", run.stderr);
        let rows = run.ndjson();
        prop_assert_eq!(rows.iter().map(|row| row["pairs_old"].as_u64().unwrap()).sum::<u64>(), pairs.len() as u64);
        for row in rows {
            prop_assert_eq!(&row["pairs_old"], &row["pairs_new"]);
            for percentile in ["p50", "p90", "p99", "p99_9"] {
                let field = |what: &str| &row[format!("{percentile}_{what}")];
                prop_assert_eq!(field("old_ns"), field("new_ns"));
                prop_assert_eq!(field("change"), &json!(0.0));
                let (low, high) = (field("change_low").as_f64(), field("change_high").as_f64());
                prop_assert!(low.is_none_or(|low| low <= 0.0) && high.is_none_or(|high| high >= 0.0), "{:?}", row);
            }
        }
        let run = dir.run("diff --first t t").exits(0);
        prop_assert_eq!(run.text(), format!("--- t\n+++ t\n{} records, and they are the same\n", 2 * pairs.len()));
    }
}

/// Reads of two disks at these addresses, with what is different in the third record.
fn two_disks(start_ns: u64, pid: u32, disks: [u64; 2], sector: u64, last: usize) -> Vec<u8> {
    sample::trace(ByteOrder::Little, |writer| {
        sample::mappings(writer)?;
        writer.event(READ, start_ns, pid, &[Value::Pointer(disks[0]), Value::Unsigned(1), Value::Unsigned(8)])?;
        writer.event(READ, start_ns + 70, pid, &[Value::Pointer(disks[1]), Value::Unsigned(2), Value::Unsigned(8)])?;
        writer.dropped(start_ns + 80, pid, 1)?;
        writer.event(READ, start_ns + 90, pid, &[Value::Pointer(0), Value::Unsigned(sector), Value::Unsigned(8)])?;
        writer.event(DONE, start_ns + 100, pid, &[Value::Pointer(disks[last]), Value::Signed(0)])
    })
}

#[test]
fn traces_part_where_names_or_arguments_do_and_nothing_else() {
    let old = two_disks(1_000_000_000, 10, [0x7f00, 0x7e00], 3, 0);
    let dir = folder(&[
        ("old", old),
        ("elsewhere", two_disks(5_000_000_000, 11, [0x10, 0x20], 3, 0)),
        ("sector", two_disks(5_000_000_000, 11, [0x10, 0x20], 4, 0)),
        ("pointer", two_disks(5_000_000_000, 11, [0x10, 0x20], 3, 1)),
        ("null", two_disks(5_000_000_000, 11, [0x10, 0], 3, 0)),
        ("empty", reads(0, &[])),
    ]);
    let first = |line: &str, code: i32| {
        let run = dir.run(&format!("diff --first {line}")).exits(code);
        let (names, text) = run.text().split_once("\n+++ ").unwrap();
        assert!(names.starts_with("--- "), "{names}");
        text.split_once('\n').unwrap().1.to_owned()
    };
    assert_eq!(first("old elsewhere", 0), "4 records, and they are the same\n");
    let [one, two] = [
        "[1.000000000 +0.000000000] 10 disk_read disk=0x7f00 sector=1 count=8\n",
        "[1.000000070 +0.000000070] 10 disk_read disk=0x7e00 sector=2 count=8\n",
    ];
    let three = "[1.000000090 +0.000000090] 10 disk_read disk=0x0 sector=3 count=8\n";
    let done = "[1.000000100 +0.000000100] 10 disk_done disk=0x7f00 ret=0\n";
    // What was dropped stands before the third record.
    let missing = ["old", "new"]
        .map(|name| format!("{name}: events are missing before here, in 1 place, behind 2 records\n"))
        .concat();
    assert_eq!(
        first("old sector", 1),
        format!(
            "they part behind 2 records: sector differs\n{missing}  {one}  {two}- {three}+ [5.000000090 +0.000000090] 11 disk_read disk=0x0 sector=4 count=8\n"
        )
    );
    assert_eq!(
        first("old pointer", 1),
        format!(
            "they part behind 3 records: disk differs: pointer 1 by first appearance, and pointer 2\n{missing}  {one}  {two}  {three}- {done}+ [5.000000100 +0.000000100] 11 disk_done disk=0x20 ret=0\n"
        )
    );
    assert_eq!(
        first("old null", 1),
        format!(
            "they part behind 1 record: disk differs: pointer 2 by first appearance, and null\n  {one}- {two}+ [5.000000070 +0.000000070] 11 disk_read disk=0x0 sector=2 count=8\n"
        )
    );
    // The same arguments, and names of the same length.
    for name in ["ping", "pong"] {
        let trace = sample::trace(ByteOrder::Little, |writer| {
            writer.mapping(DONE, name)?;
            writer.event(DONE, 1_000, 10, &[Value::Signed(7)])
        });
        dir.write(name, trace);
    }
    dir.write("p", "ping(int x) \"\"\npong(int x) \"\"\n");
    assert_eq!(
        first("ping pong --events p", 1),
        "they part behind 0 records: the events differ\n- [0.000001000 +0.000000000] 10 ping x=7\n+ [0.000001000 +0.000000000] 10 pong x=7\n"
    );
    // Left out by name or condition, they do not count, nor do the pointers in them.
    assert_eq!(first("old sector -e disk_done", 0), "1 record, and they are the same\n");
    assert_eq!(first("old sector -w sector<3", 0), "2 records, and they are the same\n");
    assert_eq!(first("old pointer -e disk_done", 0), "1 record, and they are the same\n");
    assert_eq!(
        first("old sector -e -disk_read -e disk_read", 1).lines().next(),
        Some("they part behind 2 records: sector differs")
    );
    // One may be longer, but if the other has nothing, nothing was compared.
    assert_eq!(
        first("old elsewhere -t -5s --pid 10", 1),
        format!("the same as far as the new trace goes: 0 records; the old one goes on\n- {one}")
    );
    assert_eq!(
        first("empty old", 1),
        format!("the same as far as the old trace goes: 0 records; the new one goes on\n+ {one}")
    );
}

#[test]
fn gaps_and_damage_before_the_place_where_traces_part_are_said() {
    // A record each 10 ns, `dropped` behind some of them.
    let trace = |sectors: &[u64], dropped: &[u64]| {
        sample::trace(ByteOrder::Little, |writer| {
            sample::mappings(writer)?;
            for (number, &sector) in (1..).zip(sectors) {
                writer.event(
                    READ,
                    number * 10,
                    1,
                    &[Value::Pointer(7), Value::Unsigned(sector), Value::Unsigned(8)],
                )?;
                if dropped.contains(&number) {
                    writer.dropped(number * 10 + 1, 1, 5)?;
                }
            }
            Ok(())
        })
    };
    let whole = trace(&[1, 2, 3, 4, 5], &[]);
    // The third record's length is none.
    let mut damaged = whole.clone();
    let third = damaged.len() - 3 * 56;
    damaged[third + 24..third + 28].copy_from_slice(&[0xff; 4]);
    let dir = folder(&[
        ("whole", whole),
        ("damaged", damaged),
        ("late", trace(&[1, 2, 3, 4, 5], &[5])),
        ("gaps", trace(&[1, 2, 3, 9, 5], &[1, 3, 4])),
        ("ends", trace(&[1, 2, 3], &[3])),
    ]);
    let first = |line: &str| {
        let run = dir.run(&format!("diff --first {line}"));
        run.text()
            .lines()
            .skip(2)
            .take_while(|line| !line.starts_with([' ', '-', '+']))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    for (line, expected) in [
        ("whole late", &["5 records, and they are the same"][..]),
        (
            "late gaps",
            &[
                "they part behind 3 records: sector differs",
                "new: events are missing before here, in 2 places, the last one behind 3 records",
            ],
        ),
        (
            "ends whole",
            &[
                "the same as far as the old trace goes: 3 records; the new one goes on",
                "old: events are missing before here, in 1 place, behind 3 records",
            ],
        ),
        (
            "late ends",
            &[
                "the same as far as the new trace goes: 3 records; the old one goes on",
                "new: events are missing before here, in 1 place, behind 3 records",
            ],
        ),
        (
            "damaged whole",
            &[
                "they part behind 2 records: sector differs",
                "old: events are missing before here, in 1 place, behind 2 records",
            ],
        ),
        // What was dropped is told even if its events are not asked for.
        (
            "late gaps -e disk_read -w sector!=2",
            &[
                "they part behind 2 records: sector differs",
                "new: events are missing before here, in 2 places, the last one behind 2 records",
            ],
        ),
    ] {
        assert_eq!(first(line), expected, "{line}");
    }
}

#[test]
fn other_events_part_far_into_a_trace_and_pipes_can_be_read() {
    let dir = demo();
    let own = Dir::with([]);
    let line = |out: &str, options: &str| {
        let out = own.path(out).display().to_string();
        dir.run(&format!("slice disk.trace disk.trace-events {options} -o {out}")).exits(0);
        out
    };
    let whole = dir
        .run("decode disk.trace -F text")
        .exits(0)
        .lines()
        .iter()
        .filter(|line| !line.contains(" dropped "))
        .map(|&line| line.to_owned())
        .collect::<Vec<_>>();
    // The slice lacks one kind of event, whose first record is where they part.
    let place = whole.iter().position(|line| line.contains(" virtio_blk_rw_complete ")).unwrap();
    let without = line("without", "-e -virtio_blk_rw_complete");
    let run =
        dir.call(&format!("diff --first - {without} disk.trace-events")).stdin(dir.read("disk.trace")).run().exits(1);
    let mut expected = vec![
        "--- -".to_owned(),
        format!("+++ {without}"),
        format!("they part behind {place} records: the events differ"),
    ];
    expected.extend(whole[place - 5..place].iter().map(|line| format!("  {line}")));
    expected.extend([format!("- {}", whole[place]), format!("+ {}", whole[place + 1])]);
    assert_eq!(run.lines(), expected);
    // Further than one batch.
    let half = line("half", "-n 1091");
    let run = dir.run(&format!("diff --first {half} disk.trace disk.trace-events")).exits(0);
    assert!(
        run.text().contains("\nthe same as far as the old trace goes: 1091 records; the new one goes on\n"),
        "{}",
        run.text()
    );
    assert_eq!(run.lines().last().unwrap(), &format!("+ {}", whole[1091]));
}
