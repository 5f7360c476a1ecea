//! What a record costs the writer: processor time of its thread, the kernel's part included. See ../README.md.
//!
//! `cargo bench -p simpletrace-benches --bench writer -- [--thousand N] [--threads N] [--ms N] [--repeat N] [--part-mib N] [--folder FOLDER]`
//!
//! Each run is a process of its own; the kinds of recording take turns.

use std::error::Error;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use simpletrace_benches::contestants::{WORDS, emit_words};
use simpletrace_benches::stats::{Ratio, Summary};
use simpletrace_benches::{Args, print_machine, writer_cpu_ns};
use simpletrace_recorder::{Options, Recorder, enable, register};

/// The kinds: a name, whether durable, whether in parts.
const KINDS: [(&str, bool, bool); 5] = [
    ("plain", false, false),
    ("the same again", false, false),
    ("durable", true, false),
    ("parts", false, true),
    ("durable, parts", true, true),
];

/// What came of a run.
#[derive(Default)]
struct Run {
    records: u64,
    lost: u64,
    cycles: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::of_process();
    if args.has("--run") {
        return run(&args);
    }
    let ms = if args.is_smoke { 20 } else { args.number("--ms").unwrap_or(50) };
    let repetitions = if args.is_smoke { 1 } else { args.number("--repeat").unwrap_or(200) };
    let threads = args.number("--threads").unwrap_or(1);
    let part_mib = args.number("--part-mib").unwrap_or(16);
    let rates: Vec<usize> = args.number("--thousand").map_or_else(|| vec![100, 1_000, 5_000], |rate| vec![rate]);
    // In memory, so that no disk decides.
    let folder = args.text("--folder").map_or_else(|| PathBuf::from("/dev/shm"), PathBuf::from);
    if !folder.is_dir() {
        println!("SKIPPED: writer: there is no {}; name a folder in memory with --folder", folder.display());
        return Ok(());
    }
    print_machine();
    for rate in rates {
        println!(
            "### {rate} thousand records/s from {threads} thread(s): ns of the writer's processor time per record\n"
        );
        let mut samples: [Vec<f64>; KINDS.len()] = Default::default();
        let mut sums: [Run; KINDS.len()] = Default::default();
        for round in 0..repetitions {
            for turn in 0..KINDS.len() {
                let kind = (round + turn) % KINDS.len();
                let (_, is_durable, has_parts) = KINDS[kind];
                let mut command = Command::new(std::env::current_exe()?);
                let words = [("--thousand", rate), ("--threads", threads), ("--ms", ms)];
                command
                    .arg("--run")
                    .args(words.iter().flat_map(|(word, number)| [(*word).to_owned(), number.to_string()]));
                command.arg("--folder").arg(&folder).args(is_durable.then_some("--durable"));
                if has_parts {
                    command.args(["--part-mib", &part_mib.to_string()]);
                }
                let output = command.output()?;
                let text = String::from_utf8_lossy(&output.stdout);
                let numbers: Vec<u64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
                let [writer_ns, records, lost, cycles] = numbers[..] else {
                    return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
                };
                samples[kind].push(writer_ns as f64 / (records - lost) as f64);
                let sum = &mut sums[kind];
                (sum.records, sum.lost, sum.cycles) = (sum.records + records, sum.lost + lost, sum.cycles + cycles);
            }
        }
        println!("| recording | min | quartile | median | quartile | records per cycle | lost | x plain |");
        println!("|{}", " --- |".repeat(8));
        for ((name, _, _), (sample, sum)) in KINDS.iter().zip(samples.iter().zip(&sums)) {
            let Summary { min, first_quartile, median, third_quartile } = Summary::of(sample);
            let Ratio { ratio, low, high } = Ratio::of(sample, &samples[0]);
            let of_min = min / Summary::of(&samples[0]).min;
            println!(
                "| {name} | {min:.2} | {first_quartile:.2} | {median:.2} | {third_quartile:.2} | {:.0} | {} of {} | {ratio:.3} ({low:.3} to \
                 {high:.3}), least {of_min:.3} |",
                sum.records as f64 / sum.cycles as f64,
                sum.lost,
                sum.records
            );
        }
        println!("\n{repetitions} rounds of {ms} ms each.\n");
    }
    Ok(())
}

/// One recording.
fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let number = |option| args.number(option).ok_or(option);
    let (rate, threads) = (number("--thousand")? as u64 * 1000, number("--threads")? as u64);
    let time = Duration::from_millis(number("--ms")? as u64);
    let folder = tempfile::tempdir_in(args.text("--folder").ok_or("--folder")?)?;
    register(&[&WORDS])?;
    enable(WORDS.name());
    let options = Options::new(folder.path().join("trace")).durable(args.has("--durable")).segments(folder.path());
    let options = match args.number("--part-mib") {
        Some(mib) => options.rotate((mib as u64) << 20, Some(2)),
        None => options,
    };
    let recorder = Recorder::start(&options)?;
    let ready = Barrier::new(threads as usize + 1);
    let (before, records) = thread::scope(|scope| {
        let producers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    produce(rate / threads, Duration::from_millis(5));
                    ready.wait();
                    ready.wait();
                    produce(rate / threads, time)
                })
            })
            .collect();
        ready.wait();
        // Rings are made by now, and spare ones, which is the writer's work, too.
        let before = recorder.flush(Duration::from_secs(2)).and_then(|()| {
            settle();
            recorder.report()
        });
        let before = before.map(|report| (report, writer_cpu_ns()));
        ready.wait();
        (before, producers.into_iter().filter_map(|producer| producer.join().ok()).sum::<u64>())
    });
    let (before, before_ns) = before?;
    let before_ns = before_ns?;
    recorder.flush(Duration::from_secs(10))?;
    settle();
    let writer_ns = writer_cpu_ns()? - before_ns;
    let report = recorder.finish(Duration::from_secs(2))?;
    println!("{writer_ns} {records} {} {}", report.lost.total() - before.lost.total(), report.cycles - before.cycles);
    Ok(())
}

/// The kernel counts the time of a thread up to its last sleep, and the writer sleeps soon.
fn settle() {
    thread::sleep(Duration::from_millis(10));
}

/// Emits so many records per second, what is due each millisecond; returns their number.
fn produce(rate: u64, time: Duration) -> u64 {
    let begin = Instant::now();
    let mut emitted = 0;
    while begin.elapsed() < time {
        let due = rate * begin.elapsed().as_micros() as u64 / 1_000_000;
        emit_words(&WORDS, (due - emitted) as u32);
        emitted = due;
        thread::sleep(Duration::from_millis(1));
    }
    emitted
}
