//! How many records per second arrive, when one thread offers them at a steady rate. See ../README.md.
//!
//! `cargo bench -p simpletrace-benches --bench sustained -- [--seconds N] [--folder FOLDER] [--million N] [--repeat N] [--ring-mib N] [--part-mib N]
//! [--durable]`
//!
//! With parts of so many MiB the newest two are kept. Rings that survive the process are made anew for each run, and stay: 3 rings each.

use std::error::Error;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use simpletrace_benches::baseline::Baseline;
use simpletrace_benches::contestants::{WORDS, emit_words};
use simpletrace_benches::{Args, print_machine};
use simpletrace_recorder::{Options, Recorder, enable, register};

/// So many records are emitted at once: at 25 million per second every 2.6 us.
const BATCH: u32 = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::of_process();
    let time = if args.is_smoke {
        Duration::from_millis(20)
    } else {
        Duration::from_secs(args.number("--seconds").unwrap_or(1) as u64)
    };
    let rates: Vec<usize> = match args.number("--million") {
        Some(rate) => vec![rate],
        None if args.is_smoke => vec![1],
        None => vec![1, 2, 5, 10, 20, 25],
    };
    let repetitions = if args.is_smoke { 1 } else { args.number("--repeat").unwrap_or(3) };
    let ring_bytes = (args.number("--ring-mib").unwrap_or(1) as u64) << 20;
    let part_bytes = args.number("--part-mib").map(|mib| (mib as u64) << 20);
    let folder = tempfile::tempdir_in(args.text("--folder").map_or_else(std::env::temp_dir, PathBuf::from))?;
    let file = folder.path().join("trace");
    register(&[&WORDS])?;
    enable(WORDS.name());

    print_machine();
    println!("| recorder | wanted, million/s | offered, million/s | records | written | lost | lost, % |");
    println!("|{}", " --- |".repeat(7));
    for &rate in &rates {
        for _ in 0..repetitions {
            let options = Options::new(&file).ring_bytes(ring_bytes).durable(args.has("--durable"));
            let options = part_bytes.map_or(options.clone(), |bytes| options.rotate(bytes, Some(2)));
            let recorder = Recorder::start(&options)?;
            let (records, took) = produce(rate, time, |events| emit_words(&WORDS, events));
            let report = recorder.finish(Duration::from_secs(10))?;
            print("simpletrace", rate, records, took, report.records, report.lost.total());

            let baseline = Baseline::start(&file, &[WORDS.name()])?;
            let (records, took) = produce(rate, time, |events| {
                for i in 0..u64::from(events) {
                    baseline.emit_words(0, [i, i << 9, 7]);
                }
            });
            let outcome = baseline.finish()?;
            print("baseline", rate, records, took, outcome.written, outcome.lost);
        }
    }
    Ok(())
}

/// Emits batches, each not before its time; returns how many records, and how long they took. A thread that lost its processor
/// makes up for it afterwards as fast as it can.
fn produce(million_per_second: usize, time: Duration, emit: impl Fn(u32)) -> (u64, Duration) {
    let batch_ns = u64::from(BATCH) * 1000 / million_per_second as u64;
    let batches = time.as_nanos() as u64 / batch_ns;
    let begin = Instant::now();
    for batch in 0..batches {
        while (begin.elapsed().as_nanos() as u64) < batch * batch_ns {
            std::hint::spin_loop();
        }
        emit(BATCH);
    }
    (batches * u64::from(BATCH), begin.elapsed())
}

fn print(recorder: &str, rate: usize, records: u64, took: Duration, written: u64, lost: u64) {
    let offered = records as f64 / took.as_secs_f64() / 1e6;
    let percent = 100.0 * lost as f64 / records as f64;
    println!("| {recorder} | {rate} | {offered:.2} | {records} | {written} | {lost} | {percent:.3} |");
    assert_eq!(written + lost, records, "{recorder}: every record is written or counted as lost");
}
