//! What an event costs the thread that records it, beside others. See ../README.md.
//!
//! `cargo bench -p simpletrace-benches --bench emit -- [--rounds N] [--only children]`

// ticklog's `configure!` makes macros.
#![cfg_attr(feature = "rivals", allow(missing_docs))]

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use simpletrace_benches::children::{self, ChildContestant};
use simpletrace_benches::contestants::{
    BaselineContestant, Check, Contestant, EmptyLoop, Floor, Kind, Simpletrace, register_all,
};
#[cfg(feature = "rivals")]
use simpletrace_benches::lttng::Lttng;
#[cfg(feature = "rivals")]
use simpletrace_benches::rivals;
use simpletrace_benches::rounds::{self, Measured};
use simpletrace_benches::stats::{Ratio, Summary};
use simpletrace_benches::{Args, print_machine};
use simpletrace_recorder::{Options, Recorder};

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::of_process();
    if let (Some(kind), Some(file)) = (args.text("--child"), args.text("--file")) {
        return children::serve(Path::new(file), kind == "durable");
    }
    let rounds = args.number("--rounds").unwrap_or(if args.is_smoke { 3 } else { 2000 });

    let folder = tempfile::tempdir()?;
    if args.text("--only") == Some("children") {
        print_machine();
        return print_children(folder.path(), rounds);
    }
    #[cfg(feature = "rivals")]
    // SAFETY: there is no other thread yet.
    let lttng = unsafe { Lttng::start(&folder.path().join("lttng")) };
    register_all()?;
    let recorder = Recorder::start(&Options::new(folder.path().join("simpletrace")))?;
    let baseline = BaselineContestant::start(&folder.path().join("baseline"))?;
    let floor = Floor::new("rdtsc + 5 stores");
    let again = Floor::new("rdtsc + 5 stores, again");
    let check = Check::default();
    let words = Simpletrace::new(&recorder, Kind::Words);
    let string = Simpletrace::new(&recorder, Kind::String);
    let disabled = Simpletrace::new(&recorder, Kind::Disabled);
    let generated = Simpletrace::new(&recorder, Kind::Generated);
    let generated_string = Simpletrace::new(&recorder, Kind::GeneratedString);
    let generated_off = Simpletrace::new(&recorder, Kind::GeneratedOff);

    print_machine();
    #[cfg_attr(not(feature = "rivals"), expect(unused_mut))]
    let mut off: Vec<&dyn Contestant> = vec![&EmptyLoop, &check, &disabled, &generated_off];
    #[cfg_attr(not(feature = "rivals"), expect(unused_mut))]
    let mut on: Vec<&dyn Contestant> = vec![&floor, &again, &words, &string, &baseline, &generated, &generated_string];
    #[cfg(feature = "rivals")]
    let (lines, tracing) = (rivals::Lines::default(), rivals::Tracing::start()?);
    #[cfg(feature = "rivals")]
    let _guard = ticklog::configure! {
        sink: ticklog::WriterSink::new(lines.clone()),
        max_level: ticklog::Level::Info,
    }
    .map_err(|error| error.to_string())?;
    #[cfg(feature = "rivals")]
    let ticklog = rivals::Ticklog::new(lines, log_with_ticklog);
    #[cfg(feature = "rivals")]
    on.extend([&ticklog as &dyn Contestant, &tracing]);
    #[cfg(feature = "rivals")]
    let lttng_events = lttng.as_ref().map(|lttng| (lttng.words(), lttng.off()));
    #[cfg(feature = "rivals")]
    match &lttng_events {
        Ok((words, disabled)) => {
            on.push(words);
            off.push(disabled);
        }
        Err(why) => println!("SKIPPED: LTTng-UST: {why}\n"),
    }
    #[cfg(not(feature = "rivals"))]
    println!(
        "SKIPPED: ticklog, tracing, LTTng-UST: they take part with --features rivals, the last where Debian's liblttng-ust-dev and \
         lttng-tools are installed\n"
    );

    println!("### Switched off, one thread: ns per event\n");
    print(&off, &rounds::measure(&off, 1, rounds), &[1]);
    for threads in [1, 2] {
        println!("### Recorded, {threads} thread{}: ns per event and thread\n", if threads == 1 { "" } else { "s" });
        print(&on, &rounds::measure(&on, threads, rounds), &[0, 2, 4]);
    }
    println!("### Recorded by processes of their own, one thread: ns per event\n");
    print_children(folder.path(), rounds)?;
    let report = recorder.finish(Duration::from_secs(2))?;
    println!("simpletrace: {} events, {} lost, {} cycles", report.records, report.lost.total(), report.cycles);
    #[cfg(feature = "rivals")]
    if let Ok(lttng) = lttng {
        println!("{}", lttng.finish()?);
    }
    Ok(())
}

/// New processes for so many rounds: where the memory of one happens to be tells in all of its windows.
const ROUNDS_OF_CHILDREN: usize = 50;

fn print_children(folder: &Path, rounds: usize) -> Result<(), Box<dyn Error>> {
    if !Path::new("/dev/shm").is_dir() {
        println!("SKIPPED: simpletrace, durable: there is no /dev/shm\n");
        return Ok(());
    }
    let mut all: Option<Measured> = None;
    let mut lost = [0; 3];
    for begin in (0..rounds).step_by(ROUNDS_OF_CHILDREN) {
        let start = |name, is_durable| ChildContestant::start(name, &folder.join(format!("{name}, child")), is_durable);
        let children =
            [start("simpletrace", false)?, start("simpletrace, again", false)?, start("simpletrace, durable", true)?];
        let contestants: Vec<&dyn Contestant> = children.iter().map(|child| child as &dyn Contestant).collect();
        let measured = rounds::measure(&contestants, 1, ROUNDS_OF_CHILDREN.min(rounds - begin));
        for (lost, child) in lost.iter_mut().zip(&children) {
            *lost += child.lost();
        }
        match &mut all {
            Some(all) => all.append(measured),
            None => all = Some(measured),
        }
        if begin + ROUNDS_OF_CHILDREN >= rounds
            && let Some(all) = &all
        {
            print(&contestants, all, &[0]);
            println!("Lost by all such processes: {lost:?}\n");
        }
        for child in children {
            child.finish()?;
        }
    }
    Ok(())
}

#[cfg(feature = "rivals")]
#[inline(never)]
fn log_with_ticklog(lines: u32) {
    for i in 0..u64::from(lines) {
        ticklog::info!("{} {} {}", i, i << 9, 0x1234_5678_9abc_def0_u64);
    }
}

/// Prints a table with ratios to the contestants with these numbers.
fn print(contestants: &[&dyn Contestant], measured: &Measured, references: &[usize]) {
    print!("| contestant | min | quartile | median | quartile | events per window | lost |");
    for &reference in references {
        print!(" x {} |", contestants[reference].name());
    }
    println!("\n|{}", " --- |".repeat(7 + references.len()));
    if measured.samples[0].is_empty() {
        println!("| no round in which both threads ran at once |");
    }
    for (index, contestant) in contestants.iter().enumerate() {
        let sample = &measured.samples[index];
        if sample.is_empty() {
            continue;
        }
        let Summary { min, first_quartile, median, third_quartile } = Summary::of(sample);
        print!("| {} | {min:.2} | {first_quartile:.2} | {median:.2} | {third_quartile:.2} |", contestant.name());
        print!(" {} | {} |", measured.events[index], contestant.lost());
        for &reference in references {
            let Ratio { ratio, low, high } = Ratio::of(sample, &measured.samples[reference]);
            let of_min = min / Summary::of(&measured.samples[reference]).min;
            print!(" {ratio:.3} ({low:.3} to {high:.3}), least {of_min:.3} |");
        }
        println!();
    }
    let rounds = measured.samples[0].len();
    println!("\n{rounds} rounds; {} left out, as two threads did not run at once.\n", measured.left_out);
}
