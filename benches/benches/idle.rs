//! What a recorder costs that has nothing to do: the processor time of its writer, and memory. See ../README.md.
//!
//! `cargo bench -p simpletrace-benches --bench idle -- [--seconds N]`

use std::error::Error;
use std::fs;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use simpletrace_benches::contestants::{WORDS, emit_words};
use simpletrace_benches::{Args, print_machine, writer_cpu_ns};
use simpletrace_recorder::{Options, Recorder, enable, register};

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::of_process();
    let seconds = args.number("--seconds").unwrap_or(5) as u64;
    let time = if args.is_smoke { Duration::from_millis(200) } else { Duration::from_secs(seconds) };
    let folder = tempfile::tempdir()?;
    register(&[&WORDS])?;
    enable(WORDS.name());
    print_machine();

    let before_kib = resident_kib();
    let recorder = Recorder::start(&Options::new(folder.path().join("trace")))?;
    println!("Memory of a process: {before_kib} KiB before the start, {} KiB behind it\n", resident_kib());
    emit_words(&WORDS, 1);
    thread::sleep(Duration::from_millis(100));
    let (begin, cpu_ns) = (Instant::now(), writer_cpu_ns()?);
    thread::sleep(time);
    let used_ns = writer_cpu_ns()? - cpu_ns;
    let percent = 100.0 * used_ns as f64 / begin.elapsed().as_nanos() as f64;
    println!("Idle writer: {used_ns} ns of processor time in {:.3} s, {percent:.4} % of a core\n", time.as_secs_f64());

    println!("| live threads | rings, KiB | resident, KiB | before they recorded | more |");
    println!("|{}", " --- |".repeat(5));
    let counts: &[usize] = if args.is_smoke { &[1, 2] } else { &[1, 8, 64] };
    for &threads in counts {
        let step = Barrier::new(threads + 1);
        let before_kib = thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    step.wait();
                    step.wait();
                    emit_words(&WORDS, 1);
                    step.wait();
                    step.wait();
                });
            }
            step.wait();
            let before_kib = resident_kib();
            step.wait();
            step.wait();
            // The writer makes spare rings anew.
            thread::sleep(Duration::from_millis(200));
            let after_kib = resident_kib();
            let rings_kib = recorder.report().map_or(0, |report| report.ring_bytes >> 10);
            let more_kib = after_kib.saturating_sub(before_kib);
            println!("| {threads} | {rings_kib} | {after_kib} | {before_kib} | {more_kib} |");
            step.wait();
            before_kib
        });
        assert!(before_kib > 0);
    }
    let report = recorder.finish(Duration::from_secs(2))?;
    println!("\n{} rings were made, {} events, {} lost", report.rings, report.records, report.lost.total());
    Ok(())
}

fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}
