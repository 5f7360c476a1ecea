//! docs/QUERIES.md: its commands print what it shows, its Rust gives the same, and both what a pairing by hand of what `decode` prints comes to.
#![cfg(feature = "frames")]

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use polars::prelude::*;
use serde_json::{Value as Json, json};
use simpletrace_format::{ByteOrder, EventId, Facts, TraceWriter, Value};
use simpletrace_rs::frames::{self, Frames};
use support::{Dir, shared};

// The page has these functions, word for word.

fn latency_by_queue_and_size(disk: &Frames) -> PolarsResult<LazyFrame> {
    let [reads, writes] = ["virtio_blk_handle_read", "virtio_blk_handle_write"].map(|name| disk.event(name));
    let requests = concat([reads?, writes?], UnionArgs::default())?;
    let sized = disk.pairs("virtio-blk")?.join(
        requests,
        [col("begin_ns"), col("req")],
        [col("ts_ns"), col("req")],
        JoinArgs::new(JoinType::Inner),
    );
    let size = when(col("count").lt_eq(lit(16))).then(lit("up to 8 KiB")).otherwise(lit("larger"));
    let quantile = |part: f64| col("latency_ns").quantile(lit(part), QuantileMethod::Equiprobable);
    let by_queue = sized.group_by([col("vdev"), size.alias("size")]).agg([
        len().alias("n"),
        quantile(0.5).alias("p50_ns"),
        quantile(0.99).alias("p99_ns"),
    ]);
    Ok(by_queue.sort(["vdev", "size"], SortMultipleOptions::default()))
}

fn p99_per_100_ms(disk: &Frames) -> PolarsResult<LazyFrame> {
    let start = disk.events()?.select([col("ts_ns").min().alias("start_ns")]);
    let ms = (col("end_ns") - col("start_ns")).floor_div(lit(100_000_000)) * lit(100);
    let by_time = disk
        .pairs("virtio-blk")?
        .cross_join(start, None)
        .group_by([ms.alias("ms")])
        .agg([len().alias("n"), col("latency_ns").quantile(lit(0.99), QuantileMethod::Equiprobable).alias("p99_ns")]);
    Ok(by_time.sort(["ms"], SortMultipleOptions::default()))
}

fn slowest_and_what_ran_meanwhile(disk: &Frames) -> PolarsResult<LazyFrame> {
    let slowest =
        disk.pairs("virtio-blk")?.sort(["latency_ns"], SortMultipleOptions::default().with_order_descending(true));
    let slowest = slowest.limit(2).select([col("begin_ns"), col("end_ns"), col("latency_ns")]);
    let during = slowest
        .cross_join(disk.events()?, None)
        .filter(col("ts_ns").gt_eq(col("begin_ns")).and(col("ts_ns").lt_eq(col("end_ns"))));
    let counted = during.group_by([col("latency_ns"), col("event")]).agg([len().alias("n")]);
    let order = SortMultipleOptions::default().with_order_descending_multi([true, true, false]);
    Ok(counted.sort(["latency_ns", "n", "event"], order).limit(8))
}

fn lock_wait_by_call_site(vm: &Frames) -> PolarsResult<LazyFrame> {
    let by_site = vm.pairs("locks")?.group_by([col("file"), col("line")]).agg([
        len().alias("n"),
        col("hop1_ns").sum().alias("waited_ns"),
        col("hop1_ns").max().alias("longest_ns"),
        col("hop2_ns").quantile(lit(0.5), QuantileMethod::Equiprobable).alias("had_p50_ns"),
    ]);
    Ok(by_site.sort(["waited_ns"], SortMultipleOptions::default().with_order_descending(true)))
}

fn exits_by_reason_and_cost(vm: &Frames) -> PolarsResult<LazyFrame> {
    let by_reason = vm.pairs("kvm-exits")?.group_by([col("reason")]).agg([
        len().alias("exits"),
        col("latency_ns").sum().alias("cost_ns"),
        col("latency_ns").quantile(lit(0.99), QuantileMethod::Equiprobable).alias("p99_ns"),
    ]);
    Ok(by_reason.sort(["cost_ns"], SortMultipleOptions::default().with_order_descending(true)))
}

fn queue_depth(disk: &Frames) -> PolarsResult<LazyFrame> {
    let pairs = disk.pairs("thread-pool")?;
    let step = |time: &str, by: i64| pairs.clone().select([col(time).alias("t"), lit(by).alias("step")]);
    let steps = concat([step("begin_ns", 1), step("end_ns", -1)], UnionArgs::default())?;
    let depths = steps
        .sort(["t"], SortMultipleOptions::default().with_maintain_order(true))
        .select([col("step").cum_sum(false).alias("depth"), (col("t").shift(lit(-1)) - col("t")).alias("lasts_ns")]);
    let by_depth =
        depths.filter(col("lasts_ns").is_not_null()).group_by([col("depth")]).agg([col("lasts_ns").sum().alias("ns")]);
    Ok(by_depth.sort(["depth"], SortMultipleOptions::default()))
}

fn interrupt_rate(disk: &Frames) -> PolarsResult<LazyFrame> {
    let start = disk.events()?.select([col("ts_ns").min().alias("start_ns")]);
    let ms = (col("ts_ns") - col("start_ns")).floor_div(lit(100_000_000)) * lit(100);
    let interrupts = disk.event("virtio_notify")?.cross_join(start, None);
    let rate = interrupts.group_by([ms.alias("ms"), col("vdev")]).agg([(len() * lit(10)).alias("per_s")]);
    Ok(rate.sort(["ms", "vdev"], SortMultipleOptions::default()))
}

fn drops_over_time(vm: &Frames) -> PolarsResult<LazyFrame> {
    let start = vm.events()?.select([col("ts_ns").min().alias("start_ns")]);
    let ms = (col("from_ns") - col("start_ns")).floor_div(lit(10_000_000)) * lit(10);
    let drops = vm.gaps()?.cross_join(start, None).group_by([ms.alias("ms")]).agg([
        len().alias("gaps"),
        col("count").sum().alias("dropped"),
        (col("to_ns") - col("from_ns")).sum().alias("missing_ns"),
    ]);
    Ok(drops.sort(["ms"], SortMultipleOptions::default()))
}

fn two_runs_side_by_side(before: &Frames, after: &Frames) -> PolarsResult<LazyFrame> {
    let run = |frames: &Frames, name: &str| -> PolarsResult<LazyFrame> {
        Ok(frames.pairs("thread-pool")?.with_columns([lit(name).alias("run")]))
    };
    let both = concat([run(before, "before")?, run(after, "after")?], UnionArgs::default())?;
    let quantile = |part: f64| col("latency_ns").quantile(lit(part), QuantileMethod::Equiprobable);
    let by_run = both.group_by([col("run")]).agg([
        len().alias("n"),
        quantile(0.5).alias("p50_ns"),
        quantile(0.9).alias("p90_ns"),
        col("latency_ns").max().alias("max_ns"),
    ]);
    Ok(by_run.sort(["run"], SortMultipleOptions::default().with_order_descending(true)))
}

fn request_life_with_hops(disk: &Frames) -> PolarsResult<LazyFrame> {
    let by_disk = disk.pairs("virtio-blk-hops")?.filter(col("suspect").not()).group_by([col("vdev")]).agg([
        len().alias("n"),
        col("hop1_ns").mean().alias("data_ns"),
        col("hop2_ns").mean().alias("status_ns"),
        (col("hop2_ns").sum() * lit(100.0) / col("latency_ns").sum()).alias("percent"),
    ]);
    Ok(by_disk.sort(["vdev"], SortMultipleOptions::default()))
}

// The traces.

/// A folder with the traces of the page: the demo, and two that are made here.
fn traces() -> Dir {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/demo");
    let dir = Dir::new();
    for name in ["disk.trace", "disk.trace-events"] {
        fs::copy(demo.join(name), dir.path(name)).unwrap();
    }
    dir.write("vm.trace", vm());
    dir.write("vm.trace-events", VM_EVENTS);
    dir.write("later.trace", later());
    dir
}

/// Numbers that look random and are always the same.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

const VM_EVENTS: &str = r#"# Names are QEMU's, so that presets know them; everything else is this project's own.
kvm_run_exit(int cpu_index, uint32_t reason) "cpu %d left the guest: reason %u"
kvm_vcpu_ioctl(int cpu_index, unsigned long type, const void *arg) "cpu %d: ioctl 0x%lx, %p"
qemu_mutex_lock(const void *mutex, const char *file, int line) "wants %p at %s:%d"
qemu_mutex_locked(const void *mutex, const char *file, int line) "has %p at %s:%d"
qemu_mutex_unlock(const void *mutex, const char *file, int line) "leaves %p at %s:%d"
"#;

/// Processors that leave the guest, two threads that want one lock, and a recorder that loses events for a while.
fn vm() -> Vec<u8> {
    const START_NS: u64 = 5_000_000_000_000;

    let mut numbers = Numbers(8);
    let mut records: Vec<(u64, u64, Vec<Value<'static>>)> = Vec::new();
    for cpu in 0..2 {
        let mut at = START_NS + cpu as u64;
        for _ in 0..150 {
            let (reason, cost) = [(2, 3_000), (2, 3_000), (6, 20_000), (5, 900)][numbers.below(4) as usize];
            at += 20_000 + numbers.below(300_000);
            let index = Value::Signed(cpu);
            records.push((at, 1, vec![index, Value::Unsigned(reason)]));
            at += cost + numbers.below(cost);
            // Not what lets a guest go on.
            records.push((at - 1, 2, vec![index, Value::Unsigned(0x4068_ae93), Value::Pointer(7)]));
            records.push((at, 2, vec![index, Value::Unsigned(0xae80), Value::Pointer(0)]));
        }
    }
    let mut at = START_NS;
    for _ in 0..100 {
        at += 100_000 + numbers.below(200_000);
        let hold = 2_000 + numbers.below(8_000);
        let mut lock = |id: u64, at: u64, (file, line): (&'static str, i64)| {
            let mutex = Value::Pointer(0x7f00_1000);
            records.push((at, id, vec![mutex, Value::String(file.as_bytes()), Value::Signed(line)]));
        };
        let (first, second) = (("softmmu/cpus.c", 504), ("util/main-loop.c", 311));
        lock(3, at, first);
        lock(4, at + 60, first);
        let waits = numbers.below(3) == 0;
        if waits {
            lock(3, at + 500, second);
        }
        at += 60 + hold;
        lock(5, at, first);
        if waits {
            lock(4, at + 90, second);
            at += 1_500 + numbers.below(500);
            lock(5, at, second);
        }
    }
    for (after_ns, count) in [(3_000_000, 40), (3_400_000, 2), (17_500_000, 900), (17_900_000, 1)] {
        records.push((START_NS + after_ns, 0, vec![Value::Unsigned(count)]));
        records.push((START_NS + after_ns + 100 * count, 0, vec![Value::Unsigned(0)]));
    }
    records.sort_by_key(|&(at, ..)| at);
    let mut facts = Facts::default();
    facts.add("recorder=simpletrace-recorder 0.1.0").unwrap();
    let mut writer = TraceWriter::new(Vec::new(), ByteOrder::Little).unwrap();
    writer.facts(&facts).unwrap();
    for (id, line) in (1..).zip(VM_EVENTS.lines().skip(1)) {
        writer.mapping(EventId(id), line.split_once('(').unwrap().0).unwrap();
    }
    for (at, id, args) in records {
        match (id, &args[..]) {
            (0, [Value::Unsigned(count)]) => writer.dropped(at, 4711, *count).unwrap(),
            _ => writer.event(EventId(id), at, 4711, &args).unwrap(),
        }
    }
    writer.into_inner()
}

/// A later run of what the demo trace is of, on a faster disk.
fn later() -> Vec<u8> {
    let mut numbers = Numbers(3);
    let mut writer = TraceWriter::new(Vec::new(), ByteOrder::Little).unwrap();
    writer.mapping(EventId(1), "thread_pool_submit").unwrap();
    writer.mapping(EventId(2), "thread_pool_complete").unwrap();
    let mut at = 500_000_000_000_000;
    for request in 0..40 {
        at += 1_000_000;
        let [pool, req, user] = [1, 0x55bd_4e2c_6320 + request % 2 * 0x40, 3].map(Value::Pointer);
        writer.event(EventId(1), at, 30_001, &[pool, req, user]).unwrap();
        at += 10_000 + numbers.below(90_000);
        writer.event(EventId(2), at, 30_001, &[pool, req, user, Value::Signed(0)]).unwrap();
    }
    writer.into_inner()
}

// The same by hand.

/// What `decode` prints of a trace.
struct Decoded(Vec<Json>);

/// An operation of a pairing by hand.
struct Pair {
    times_ns: Vec<u64>,
    /// The arguments that its records have.
    args: BTreeMap<String, Json>,
    suspect: bool,
}

impl Pair {
    fn latency_ns(&self) -> u64 {
        self.times_ns[self.times_ns.len() - 1] - self.times_ns[0]
    }
}

impl Decoded {
    fn of(dir: &Dir, files: &str) -> Self {
        let mut records = dir.run(&format!("decode {files} -F ndjson")).ndjson();
        records.sort_by_key(|record| (record["ts_ns"].as_u64(), record["event"] == "dropped"));
        Self(records)
    }

    fn events(&self) -> impl Iterator<Item = &Json> {
        self.0.iter().filter(|record| record["event"] != "dropped")
    }

    fn start_ns(&self) -> u64 {
        self.events().map(|record| record["ts_ns"].as_u64().unwrap()).min().unwrap()
    }

    /// Operations by the events of their stages: the oldest that waits for a stage takes it; one that begins anew has not ended, unless there can be
    /// `many` at once.
    fn pairs(&self, stages: &[&[&str]], key: &[&str], many: bool) -> Vec<Pair> {
        let (mut open, mut pairs) = (Vec::<(String, Pair)>::new(), Vec::new());
        let last_drop_ns = self
            .0
            .iter()
            .filter(|record| record["event"] == "dropped")
            .filter_map(|record| record["ts_ns"].as_u64())
            .max();
        for record in self.events() {
            let Some(stage) = stages.iter().position(|names| names.iter().any(|name| record["event"] == *name)) else {
                continue;
            };
            let own = key.iter().map(|part| match *part {
                "pid" => &record["pid"],
                part => &record["args"][part],
            });
            let own = format!("{:?}", own.collect::<Vec<_>>());
            let time_ns = record["ts_ns"].as_u64().unwrap();
            let mut args = BTreeMap::from([
                ("event".to_owned(), record["event"].clone()),
                ("pid".to_owned(), record["pid"].clone()),
            ]);
            args.extend(record["args"].as_object().unwrap().clone());
            if stage == 0 {
                if !many {
                    open.retain(|(other, _)| *other != own);
                }
                open.push((
                    own,
                    Pair {
                        times_ns: vec![time_ns],
                        args,
                        suspect: last_drop_ns.is_some_and(|drop_ns| time_ns <= drop_ns),
                    },
                ));
                continue;
            }
            let Some(place) = open.iter().position(|(other, pair)| *other == own && pair.times_ns.len() == stage)
            else {
                continue;
            };
            open[place].1.times_ns.push(time_ns);
            if stage + 1 == stages.len() {
                pairs.push(open.remove(place).1);
            }
        }
        pairs
    }

    fn requests(&self) -> Vec<Pair> {
        self.pairs(
            &[&["virtio_blk_handle_read", "virtio_blk_handle_write"], &["virtio_blk_req_complete"]],
            &["vdev", "req"],
            false,
        )
    }

    fn pool(&self, key: &[&str]) -> Vec<Pair> {
        self.pairs(&[&["thread_pool_submit"], &["thread_pool_complete"]], key, false)
    }
}

/// The nearest rank.
fn quantile(values: impl Iterator<Item = u64>, part: f64) -> u64 {
    let mut values: Vec<_> = values.collect();
    values.sort_unstable();
    values[((part * values.len() as f64).ceil() as usize).max(1) - 1]
}

/// Things by what they have in common, in its order.
fn by<T, K: Ord>(things: impl IntoIterator<Item = T>, key: impl Fn(&T) -> K) -> BTreeMap<K, Vec<T>> {
    let mut groups: BTreeMap<K, Vec<T>> = BTreeMap::new();
    for thing in things {
        groups.entry(key(&thing)).or_default().push(thing);
    }
    groups
}

/// When, and how many.
type Number = (u64, u64);

/// The rows that a question comes to.
fn by_hand(question: usize, trace: &Decoded) -> Vec<Vec<Json>> {
    let latencies = |pairs: &[Pair], part: f64| quantile(pairs.iter().map(Pair::latency_ns), part);
    let word =
        |pair: &Pair, name: &str| pair.args[name].as_i64().unwrap_or_else(|| panic!("{name} of {:?}", pair.args));
    let start_ns = trace.start_ns();
    match question {
        1 => {
            // Arguments stand by their place: QEMU and the demo give them names of their own.
            let size = |pair: &Pair| {
                if pair.args.get("count").or(pair.args.get("nsectors")).unwrap().as_u64() <= Some(16) {
                    "up to 8 KiB"
                } else {
                    "larger"
                }
            };
            let groups = by(trace.requests(), |pair| (word(pair, "vdev"), size(pair)));
            let row = |((vdev, size), pairs): (_, Vec<Pair>)| {
                vec![
                    json!(vdev),
                    json!(size),
                    json!(pairs.len()),
                    json!(latencies(&pairs, 0.5)),
                    json!(latencies(&pairs, 0.99)),
                ]
            };
            groups.into_iter().map(row).collect()
        }
        2 => {
            let groups = by(trace.requests(), |pair| (pair.times_ns[1] - start_ns) / 100_000_000 * 100);
            groups
                .into_iter()
                .map(|(ms, pairs)| vec![json!(ms), json!(pairs.len()), json!(latencies(&pairs, 0.99))])
                .collect()
        }
        3 => {
            let mut slowest = trace.requests();
            slowest.sort_by_key(|pair| std::cmp::Reverse(pair.latency_ns()));
            let mut rows = Vec::new();
            for pair in &slowest[..2] {
                let during = trace.events().filter(|record| {
                    (pair.times_ns[0]..=pair.times_ns[1]).contains(&record["ts_ns"].as_u64().unwrap())
                });
                let counted = by(during, |record| record["event"].as_str().unwrap());
                let mut counted: Vec<_> = counted.into_iter().map(|(name, records)| (records.len(), name)).collect();
                counted.sort_by_key(|&(n, name)| (std::cmp::Reverse(n), name));
                rows.extend(counted.into_iter().map(|(n, name)| vec![json!(pair.latency_ns()), json!(name), json!(n)]));
            }
            rows.truncate(8);
            rows
        }
        4 => {
            let stages: [&[&str]; 3] = [&["qemu_mutex_lock"], &["qemu_mutex_locked"], &["qemu_mutex_unlock"]];
            let groups = by(trace.pairs(&stages, &["mutex"], true), |pair| {
                (pair.args["file"].as_str().unwrap().to_owned(), word(pair, "line"))
            });
            let mut rows: Vec<_> = groups
                .into_iter()
                .map(|((file, line), pairs)| {
                    let hop = |hop: usize| pairs.iter().map(move |pair| pair.times_ns[hop + 1] - pair.times_ns[hop]);
                    let waited_ns: u64 = hop(0).sum();
                    (
                        waited_ns,
                        vec![
                            json!(file),
                            json!(line),
                            json!(pairs.len()),
                            json!(waited_ns),
                            json!(hop(0).max()),
                            json!(quantile(hop(1), 0.5)),
                        ],
                    )
                })
                .collect();
            rows.sort_by_key(|&(waited_ns, _)| std::cmp::Reverse(waited_ns));
            rows.into_iter().map(|(_, row)| row).collect()
        }
        5 => {
            let runs = |record: &Json| record["event"] != "kvm_vcpu_ioctl" || record["args"]["type"] == 0xae80;
            let trace = Decoded(trace.0.iter().filter(|record| runs(record)).cloned().collect());
            let groups = by(trace.pairs(&[&["kvm_run_exit"], &["kvm_vcpu_ioctl"]], &["cpu_index"], false), |pair| {
                word(pair, "reason")
            });
            let cost_ns = |pairs: &[Pair]| pairs.iter().map(Pair::latency_ns).sum::<u64>();
            let mut rows: Vec<_> = groups
                .into_iter()
                .map(|(reason, pairs)| {
                    vec![json!(reason), json!(pairs.len()), json!(cost_ns(&pairs)), json!(latencies(&pairs, 0.99))]
                })
                .collect();
            rows.sort_by_key(|row| std::cmp::Reverse(row[2].as_u64()));
            rows
        }
        6 => {
            let mut steps: Vec<_> =
                trace.pool(&["req"]).iter().flat_map(|pair| [(pair.times_ns[0], 1), (pair.times_ns[1], -1)]).collect();
            steps.sort_unstable_by_key(|&(at, _)| at);
            let (mut depth, mut lasts) = (0, BTreeMap::<i64, u64>::new());
            for step in steps.windows(2) {
                depth += step[0].1;
                *lasts.entry(depth).or_default() += step[1].0 - step[0].0;
            }
            lasts.into_iter().map(|(depth, ns)| vec![json!(depth), json!(ns)]).collect()
        }
        7 => {
            let ms = |record: &&Json| (record["ts_ns"].as_u64().unwrap() - start_ns) / 100_000_000 * 100;
            let interrupts = trace.events().filter(|record| record["event"] == "virtio_notify");
            let groups = by(interrupts, |record| (ms(record), record["args"]["vdev"].as_u64()));
            groups
                .into_iter()
                .map(|((ms, vdev), records)| vec![json!(ms), json!(vdev), json!(records.len() * 10)])
                .collect()
        }
        8 => {
            let drops: Vec<_> = trace.0.iter().filter(|record| record["event"] == "dropped").collect();
            let number = |record: &Json| (record["ts_ns"].as_u64().unwrap(), record["args"]["count"].as_u64().unwrap());
            let gaps = drops.chunks(2).map(|ends| (number(ends[0]), number(ends[1])));
            let groups = by(gaps, |((from_ns, _), _)| (from_ns - start_ns) / 10_000_000 * 10);
            let row = |(ms, gaps): (u64, Vec<(Number, Number)>)| {
                let dropped: u64 = gaps.iter().map(|((_, count), _)| count).sum();
                let missing_ns: u64 = gaps.iter().map(|((from_ns, _), (to_ns, _))| to_ns - from_ns).sum();
                vec![json!(ms), json!(gaps.len()), json!(dropped), json!(missing_ns)]
            };
            groups.into_iter().map(row).collect()
        }
        9 => {
            let groups = by(trace.pool(&["pid", "req"]), |pair| if pair.args["pid"] == 22_809 { 0 } else { 1 });
            let row = |(run, pairs): (usize, Vec<Pair>)| {
                let max_ns = pairs.iter().map(Pair::latency_ns).max();
                vec![
                    json!(["before", "after"][run]),
                    json!(pairs.len()),
                    json!(latencies(&pairs, 0.5)),
                    json!(latencies(&pairs, 0.9)),
                    json!(max_ns),
                ]
            };
            groups.into_iter().map(row).collect()
        }
        _ => {
            let stages: [&[&str]; 3] = [
                &["virtio_blk_handle_read", "virtio_blk_handle_write"],
                &["virtio_blk_rw_complete"],
                &["virtio_blk_req_complete"],
            ];
            let pairs = trace.pairs(&stages, &["vdev", "req"], false).into_iter().filter(|pair| !pair.suspect);
            let row = |(vdev, pairs): (i64, Vec<Pair>)| {
                let sum = |hop: usize| {
                    pairs.iter().map(|pair| pair.times_ns[hop + 1] - pair.times_ns[hop]).sum::<u64>() as f64
                };
                let n = pairs.len() as f64;
                vec![
                    json!(vdev),
                    json!(pairs.len()),
                    json!(sum(0) / n),
                    json!(sum(1) / n),
                    json!(sum(1) * 100.0 / (sum(0) + sum(1))),
                ]
            };
            by(pairs, |pair| word(pair, "vdev")).into_iter().map(row).collect()
        }
    }
}

// What holds them together.

/// A question of the page.
struct Question {
    command: String,
    shown: String,
    rust: String,
}

fn page() -> String {
    fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/QUERIES.md")).unwrap()
}

fn questions() -> Vec<Question> {
    let page = page();
    let block = |section: &str, language: &str| {
        let (_, rest) =
            section.split_once(&format!("```{language}\n")).unwrap_or_else(|| panic!("no {language} in {section}"));
        rest.split_once("```\n").unwrap().0.to_owned()
    };
    let sections: Vec<_> =
        page.split("\n## ").filter(|section| section.starts_with(|c: char| c.is_ascii_digit())).collect();
    let question = |(number, section): (usize, &&str)| {
        assert!(section.starts_with(&format!("{number}. ")), "{section}");
        let console = block(section, "console");
        // A command ends with the quotation mark of its query.
        let end = console.rfind("\"\n").unwrap() + 2;
        let command = console[..end].strip_prefix("$ ").unwrap().trim_end().to_owned();
        Question { command, shown: console[end..].to_owned(), rust: block(section, "rust") }
    };
    (1..).zip(&sections).map(question).collect()
}

/// Runs a command of the page as typed.
fn shell(dir: &Dir, command: &str) -> (String, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_simpletrace-rs"));
    let mut path = program.parent().unwrap().as_os_str().to_owned();
    path.push(":");
    path.push(env::var_os("PATH").unwrap_or_default());
    let run = Command::new("bash")
        .args(["-c", command])
        .current_dir(dir.path(""))
        .env("PATH", path)
        .env_remove("SIMPLETRACE_EVENTS")
        .output();
    let run = run.unwrap();
    let [stdout, stderr] = [run.stdout, run.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(run.status.success(), "{command}\n{stderr}");
    (stdout, stderr)
}

/// The rows of a command, in the order of its columns.
fn rows_of(dir: &Dir, command: &str) -> Vec<Vec<Json>> {
    let (csv, _) = shell(dir, &command.replacen(" sql ", " sql -F csv ", 1));
    let value = |cell: String| serde_json::from_str(&cell).unwrap_or(Json::String(cell));
    support::csv::rows(&csv).into_iter().skip(1).map(|row| row.into_iter().map(value).collect()).collect()
}

fn rows_of_frame(frame: &DataFrame) -> Vec<Vec<Json>> {
    let value = |column: &Column, row: usize| match column.get(row).unwrap() {
        AnyValue::String(text) => json!(text),
        AnyValue::StringOwned(text) => json!(text.as_str()),
        AnyValue::Float64(number) => json!(number),
        value => json!(value.extract::<i64>().unwrap_or_else(|| panic!("{value:?}"))),
    };
    (0..frame.height()).map(|row| frame.columns().iter().map(|column| value(column, row)).collect()).collect()
}

/// Numbers may differ as far as adding them up in another order makes them.
#[track_caller]
fn assert_same(found: &[Vec<Json>], expected: &[Vec<Json>], what: &str) {
    let is_same = |(found, expected): (&Json, &Json)| match (found.as_f64(), expected.as_f64()) {
        (Some(found), Some(expected)) => (found - expected).abs() <= expected.abs() * 1e-12,
        _ => found == expected,
    };
    let same_row = |(found, expected): (&Vec<Json>, &Vec<Json>)| {
        found.len() == expected.len() && found.iter().zip(expected).all(is_same)
    };
    assert!(!expected.is_empty(), "{what}");
    assert!(
        found.len() == expected.len() && found.iter().zip(expected).all(same_row),
        "{what}\nfound    {found:?}\nexpected {expected:?}"
    );
}

#[test]
fn commands_print_what_the_page_shows() {
    let dir = traces();
    let questions = questions();
    assert_eq!(questions.len(), 10);
    for Question { command, shown, .. } in questions {
        let (stdout, stderr) = shell(&dir, &command);
        let told: String =
            stderr.lines().filter(|line| !line.starts_with("note: using ")).map(|line| format!("{line}\n")).collect();
        assert_eq!(format!("{stdout}{told}"), shown, "{command}");
    }
}

#[test]
fn rust_and_sql_and_a_pairing_by_hand_agree() {
    let dir = traces();
    let scan = |name: &str, events: &str| frames::scan(&[dir.path(name)], &[dir.path(events)]).unwrap();
    let (disk, later, vm) = (
        scan("disk.trace", "disk.trace-events"),
        scan("later.trace", "disk.trace-events"),
        scan("vm.trace", "vm.trace-events"),
    );
    let answers = [
        latency_by_queue_and_size(&disk),
        p99_per_100_ms(&disk),
        slowest_and_what_ran_meanwhile(&disk),
        lock_wait_by_call_site(&vm),
        exits_by_reason_and_cost(&vm),
        queue_depth(&disk),
        interrupt_rate(&disk),
        drops_over_time(&vm),
        two_runs_side_by_side(&disk, &later),
        request_life_with_hops(&disk),
    ];
    let source = include_str!("queries.rs");
    for ((number, answer), question) in (1..).zip(answers).zip(questions()) {
        let files = match number {
            4 | 5 | 8 => "vm.trace",
            9 => "disk.trace later.trace disk.trace-events",
            _ => "disk.trace",
        };
        let expected = by_hand(number, &Decoded::of(&dir, files));
        assert_same(&rows_of(&dir, &question.command), &expected, &question.command);
        let answer = frames::collect(answer.unwrap()).unwrap_or_else(|error| panic!("{number}: {error}"));
        assert_same(&rows_of_frame(&answer), &expected, &question.rust);
        assert!(source.contains(&question.rust), "the page has other Rust than this file:\n{}", question.rust);
    }
    assert!(disk.is_sound() && later.is_sound() && vm.is_sound());
}

/// A question of the page, asked of a trace that a real QEMU wrote.
fn asked_of_a_real_trace(test: &str, trace: &str, numbers: &[usize]) {
    let Some(dir) = shared::traces(test, trace) else { return };
    let files = format!("{trace} qemu-8.2/trace-events-all");
    let decoded = Decoded::of(&dir, &files);
    let questions = questions();
    for &number in numbers {
        // QEMU calls the number of sectors otherwise.
        let command =
            questions[number - 1].command.replace("when count", "when nsectors").replace("--by count", "--by nsectors");
        let command = command.replace("disk.trace", &files).replace("vm.trace", &files);
        assert_same(&rows_of(&dir, &command), &by_hand(number, &decoded), &command);
    }
}

#[test]
fn a_booting_guests_disks() {
    asked_of_a_real_trace("a_booting_guests_disks", "qemu-8.2/vm-virtio-blk.trace.zst", &[1, 2, 3, 6, 7, 10]);
}

#[test]
fn a_kvm_guests_exits() {
    asked_of_a_real_trace("a_kvm_guests_exits", "qemu-8.2/kvm-blk.trace", &[5]);
}
