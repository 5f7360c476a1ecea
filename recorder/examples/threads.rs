//! Records what a few threads do, writes the declarations of its events beside the trace, and says what became of it.
//!
//! ```text
//! cargo run --release -p simpletrace-recorder --example threads FILE [THREADS [ITEMS]]
//! ```

use std::error::Error;
use std::thread;
use std::time::Duration;

use simpletrace_recorder::{Event, Options, Recorder, declarations, enable, register};

static WORK_BEGIN: Event = Event::new(
    "work_begin",
    "work_begin(unsigned worker, uint64_t item, const char *what) \"worker %u item %\"PRIu64\" %s\"",
);
static WORK_END: Event = Event::new(
    "work_end",
    "work_end(unsigned worker, uint64_t item, int result) \"worker %u item %\"PRIu64\" result %d\"",
);

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let file = args.next().unwrap_or_else(|| "trace-%d".to_owned());
    let workers: u32 = args.next().map_or(Ok(4), |workers| workers.parse())?;
    let items: u64 = args.next().map_or(Ok(2_000), |items| items.parse())?;

    register(&[&WORK_BEGIN, &WORK_END])?;
    enable("work_*");
    let recorder = Recorder::start(&Options::new(file).thread_ids(true))?;
    thread::scope(|scope| {
        for worker in 0..workers {
            scope.spawn(move || {
                for item in 0..items {
                    WORK_BEGIN.emit(&[worker.into(), item.into(), "multiply".into()]);
                    let result = item.wrapping_mul(3) as i32 - 5;
                    WORK_END.emit(&[worker.into(), item.into(), result.into()]);
                }
            });
        }
    });
    let report = recorder.finish(Duration::from_secs(2))?;

    // What readers need to know of the events.
    let mut file = report.file.clone().into_os_string();
    file.push("-events");
    std::fs::write(file, declarations())?;

    println!("{}: {} events, {} lost", report.file.display(), report.records, report.lost.total());
    Ok(())
}
