//! `diff`, and the gates that it has in common with `latency`, on traces whose latencies are known.

mod support;

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
