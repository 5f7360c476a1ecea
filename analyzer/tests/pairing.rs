//! What holds of pairing whatever the trace: that all beginnings are accounted for, that latencies are those of the definition, that percentiles are
//! those of the sorted list, and that it makes no difference how a trace is divided into files.

mod support;

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value as Json;
use simpletrace_format::{ByteOrder, EventId, TraceWriter, Value};
use support::{Dir, sample};

/// An event for each stage; `size` counts at the beginning and `ret` at the end.
const EVENTS: &[u8] = br#"s0(uint64_t key, uint32_t size) ""
s1(uint64_t key) ""
s2(uint64_t key) ""
s3(uint64_t key, int ret) ""
end(uint64_t key, int ret) ""
"#;

const DISCIPLINES: [&str; 4] = ["last", "first", "fifo", "lifo"];
/// Percentiles in thousandths, and as they are asked for.
const PERCENTILES: [(u64, &str); 7] =
    [(0, "0"), (125, "12.5"), (500, "50"), (900, "90"), (990, "99"), (999, "99.9"), (1_000, "100")];
const EVERY_NS: u64 = 1_000_000;

#[derive(Debug, Clone)]
struct Record {
    time_ns: u64,
    /// `None` for a gap.
    stage: Option<usize>,
    key: u64,
    size: u64,
    ret: i64,
}

/// Records with times that all differ, neighbours of which may have changed places, and how many stages there are.
fn records() -> impl Strategy<Value = (usize, Vec<Record>)> {
    (2usize..=4).prop_flat_map(|stages| {
        let stage = prop_oneof![1 => Just(None), 6 => (0..stages).prop_map(Some)];
        let record = (1u64..30_000_000, stage, 0u64..3, 0u64..3, -1i64..2, prop::bool::weighted(0.2));
        prop::collection::vec(record, 0..90).prop_map(move |records| {
            let mut time_ns = 1_000_000_000;
            let mut all = Vec::new();
            // None changes places twice, or it might come later than what is put in order.
            let mut has_swapped = true;
            for (step_ns, stage, key, size, ret, swaps) in records {
                time_ns += step_ns;
                all.push(Record { time_ns, stage, key, size: 64 << size, ret });
                let last = all.len() - 1;
                has_swapped = swaps && !has_swapped;
                if has_swapped {
                    all.swap(last - 1, last);
                }
            }
            (stages, all)
        })
    })
}

fn write(records: &[Record], stages: usize, order: ByteOrder, knows_gaps: bool, part: Option<usize>) -> Vec<u8> {
    let name = |stage: usize| if stage + 1 == stages { "end".to_owned() } else { format!("s{stage}") };
    let put = |writer: &mut TraceWriter<Vec<u8>>| {
        let part = part.map(|part| format!("part={part}"));
        let recorder = knows_gaps.then_some("recorder=x");
        writer.facts(&sample::facts(&recorder.into_iter().chain(part.as_deref()).collect::<Vec<_>>()))?;
        (0..stages).try_for_each(|stage| writer.mapping(EventId(stage as u64), &name(stage)))?;
        for record in records {
            let key = Value::Unsigned(record.key);
            let (time_ns, id) = (record.time_ns, EventId(record.stage.unwrap_or_default() as u64));
            match record.stage {
                // Of two of them, one says where the other one ends.
                None => writer.dropped(time_ns, 1, record.key.min(1))?,
                Some(0) => writer.event(id, time_ns, 1, &[key, Value::Unsigned(record.size)])?,
                Some(stage) if stage + 1 == stages => {
                    writer.event(id, time_ns, 1, &[key, Value::Signed(record.ret)])?;
                }
                Some(_) => writer.event(id, time_ns, 1, &[key])?,
            }
        }
        Ok(())
    };
    sample::trace(order, put)
}

fn operation(stages: usize) -> String {
    let stages: Vec<_> = (0..stages - 1).map(|stage| format!("s{stage}")).chain(["end".to_owned()]).collect();
    stages.join(" -> ")
}

/// An operation with all its stages: when, and of which group.
struct Whole {
    times_ns: Vec<u64>,
    group: (u64, i64),
}

/// What became of the records, as the words of the disciplines say.
fn by_definition(stages: usize, discipline: &str, records: &[Record]) -> (Vec<Whole>, BTreeMap<&'static str, u64>) {
    let mut records: Vec<_> = records.iter().filter(|record| record.stage.is_some()).collect();
    records.sort_by_key(|record| record.time_ns);
    let mut counts: BTreeMap<_, _> =
        ["begins", "pairs", "open", "replaced", "ignored", "incomplete", "orphans"].map(|name| (name, 0)).into();
    let mut count = |name| *counts.get_mut(name).unwrap() += 1;
    // By key, in order of their beginnings: the times of their stages, and the size.
    let mut open: Vec<(u64, Vec<u64>, u64)> = Vec::new();
    let mut wholes = Vec::new();
    for record in records {
        let stage = record.stage.unwrap();
        let of_key: Vec<_> = (0..open.len()).filter(|&place| open[place].0 == record.key).collect();
        if stage == 0 {
            count("begins");
            match (discipline, of_key.first()) {
                ("last", Some(&place)) => {
                    count("replaced");
                    open.remove(place);
                }
                ("first", Some(_)) => {
                    count("ignored");
                    continue;
                }
                _ => {}
            }
            open.push((record.key, vec![record.time_ns], record.size));
            continue;
        }
        let mut waiting = of_key.iter().copied().filter(|&place| open[place].1.len() == stage);
        match if discipline == "lifo" { waiting.next_back() } else { waiting.next() } {
            Some(place) => {
                open[place].1.push(record.time_ns);
                if stage + 1 == stages {
                    count("pairs");
                    let (_, times_ns, size) = open.remove(place);
                    wholes.push(Whole { times_ns, group: (size, record.ret) });
                }
            }
            None if stage + 1 == stages && matches!(discipline, "last" | "first") && !of_key.is_empty() => {
                count("incomplete");
                open.remove(of_key[0]);
            }
            None => count("orphans"),
        }
    }
    counts.insert("open", open.len() as u64);
    (wholes, counts)
}

/// Pairs, least, mean, most and percentiles, as the sorted list has them.
fn of_list(mut latencies_ns: Vec<u64>) -> Vec<u64> {
    latencies_ns.sort_unstable();
    let count = latencies_ns.len() as u64;
    let at = |thousandths: u64| latencies_ns[(count * thousandths).div_ceil(1_000).max(1) as usize - 1];
    let mean = latencies_ns.iter().sum::<u64>() / count;
    let first = [count, latencies_ns[0], mean, *latencies_ns.last().unwrap()];
    first.into_iter().chain(PERCENTILES.map(|(thousandths, _)| at(thousandths))).collect()
}

/// The same of a row.
fn of_row(row: &Json) -> Vec<u64> {
    let percentiles = PERCENTILES.map(|(_, text)| format!("p{}_ns", text.replace('.', "_")));
    let names = ["pairs", "min_ns", "mean_ns", "max_ns"].map(str::to_owned).into_iter().chain(percentiles);
    names.map(|name| row[&name].as_u64().unwrap()).collect()
}

/// By what rows are about: the interval, the group and the hop.
type Rows = BTreeMap<(u64, (u64, i64), String), Vec<u64>>;

fn rows(rows: &Json) -> Rows {
    let row = |row: &Json| {
        let group = (row["size"].as_u64().unwrap(), row["ret"].as_i64().unwrap());
        let hop = row["hop"].as_str().unwrap_or("all").to_owned();
        ((row["from_ns"].as_u64().unwrap_or_default(), group, hop), of_row(row))
    };
    rows.as_array().unwrap().iter().map(row).collect()
}

fn rows_by_definition(wholes: &[Whole], stages: usize, interval: impl Fn(&Whole) -> u64) -> Rows {
    let mut lists: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for whole in wholes {
        let mut add = |hop: String, ns| lists.entry((interval(whole), whole.group, hop)).or_default().push(ns);
        let times_ns = &whole.times_ns;
        if stages > 2 {
            for hop in 1..stages {
                let name = if hop + 1 == stages { "end".to_owned() } else { format!("s{hop}") };
                add(format!("-> {name}"), times_ns[hop] - times_ns[hop - 1]);
            }
        }
        add("all".to_owned(), times_ns[stages - 1] - times_ns[0]);
    }
    lists.into_iter().map(|(key, list)| (key, of_list(list))).collect()
}

fn report(dir: &Dir, line: &str, operation: &str) -> Json {
    let run = dir.call(&format!("{line} events -F json --on key")).arg(operation).run();
    assert_eq!(run.code, 0, "{}", run.stderr);
    run.json()
}

fn percentiles() -> String {
    PERCENTILES.map(|(_, text)| text).join(",")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn all_is_as_the_definition_has_it((stages, records) in records(), is_big in any::<bool>()) {
        let order = sample::ORDERS[usize::from(is_big)];
        let dir = Dir::with([("events", EVENTS), ("t", &write(&records, stages, order, false, None))]);
        let start_ns = records.first().map_or(0, |record| record.time_ns);
        for discipline in DISCIPLINES {
            let (wholes, counts) = by_definition(stages, discipline, &records);
            let line = format!("latency t --by size,ret --discipline {discipline} -p {} --every 1ms", percentiles());
            let found = report(&dir, &line, &operation(stages));
            for (name, count) in &counts {
                prop_assert_eq!(&found[name], count, "{} {}", discipline, name);
            }
            prop_assert_eq!((&found["backwards"], &found["late"], &found["exact"]), (&0.into(), &0.into(), &true.into()));
            let sum = ["pairs", "open", "replaced", "ignored", "incomplete", "backwards"];
            let sum: u64 = sum.iter().map(|name| found[name].as_u64().unwrap()).sum();
            prop_assert_eq!(found["begins"].as_u64(), Some(sum));
            prop_assert_eq!(rows(&found["groups"]), rows_by_definition(&wholes, stages, |_| 0), "{}", discipline);
            let interval = |whole: &Whole| whole.times_ns[stages - 1].saturating_sub(start_ns) / EVERY_NS * EVERY_NS;
            prop_assert_eq!(rows(&found["every"]), rows_by_definition(&wholes, stages, interval), "{}", discipline);
        }
    }

    #[test]
    fn it_makes_no_difference_how_a_trace_is_divided_into_parts(
        (stages, records) in records(),
        cuts in prop::collection::vec(0usize..90, 0..4),
        discipline in prop::sample::select(&DISCIPLINES[..]),
        drops in prop::sample::select(&["keep", "exclude"][..]),
        knows_gaps in any::<bool>(),
        is_reversed in any::<bool>(),
    ) {
        // Files are read in order of their first times, which therefore have to be in that order.
        let mut starts = vec![0];
        let mut cuts = cuts;
        cuts.sort_unstable();
        for cut in cuts.into_iter().filter(|&cut| cut < records.len()) {
            if records[*starts.last().unwrap()].time_ns < records[cut].time_ns {
                starts.push(cut);
            }
        }
        let dir = Dir::with([("events", EVENTS), ("t", &write(&records, stages, ByteOrder::Little, knows_gaps, None))]);
        let mut names = Vec::new();
        for (number, &start) in starts.iter().enumerate() {
            let end = starts.get(number + 1).copied().unwrap_or(records.len());
            let order = sample::ORDERS[number % 2];
            // As the recorder names them: of files with other names nobody knows that nothing is missing between them.
            names.push(format!("part.{:06}", number + 1));
            dir.write(&names[number], write(&records[start..end], stages, order, knows_gaps, Some(number + 1)));
        }
        if is_reversed {
            names.reverse();
        }
        let parts = names.join(" ");
        let operation = operation(stages);
        for line in [
            format!("latency FILES --by size,ret --top 5 -p {}", percentiles()),
            "latency FILES --every 10ms".to_owned(),
            "stats FILES --depth --by size --every 20ms".to_owned(),
        ] {
            let line = format!("{line} --discipline {discipline} --drops {drops}");
            let of = |files: &str| report(&dir, &line.replace("FILES", files), &operation);
            prop_assert_eq!(of("t"), of(&parts), "{} {}", line, parts);
        }
    }
}
