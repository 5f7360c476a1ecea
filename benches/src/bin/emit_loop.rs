//! Records events of one kind into a ring that holds them all, without a writer: for counting the instructions of one.
//!
//! `emit_loop words|string|disabled|generated|generated-string|generated-off COUNT [FILE [durable]]`, at most some 9000. With a file, a writer then writes what is in the ring to it.
//! With `durable` the writer has to be there before, and its instructions must not be counted: only those in `emit_words` and `emit_string`.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use simpletrace_benches::contestants::{
    DISABLED, WORDS, emit_generated, emit_generated_off, emit_generated_string, emit_string, emit_words, register_all,
};
use simpletrace_recorder::{Options, Recorder};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let kind = args.next().ok_or("no kind of event")?;
    let events = args.next().ok_or("no number of events")?.parse()?;
    let (file, mode) = (args.next(), args.next());
    register_all()?;
    let durable = match (&file, mode.as_deref()) {
        (Some(file), Some("durable")) => {
            // Beside the trace, be that in memory or not: there need not be a /dev/shm, and the instructions are the same.
            let folder = Path::new(file).parent().unwrap_or(Path::new("."));
            Some(Recorder::start(&Options::new(file).durable(true).segments(folder))?)
        }
        (_, Some(mode)) => return Err(format!("no way to record: {mode}").into()),
        _ => None,
    };
    match kind.as_str() {
        "words" => emit_words(&WORDS, events),
        "string" => emit_string(events),
        "disabled" => emit_words(&DISABLED, events),
        "generated" => emit_generated(events),
        "generated-string" => emit_generated_string(events),
        "generated-off" => emit_generated_off(events),
        _ => return Err(format!("no kind of event: {kind}").into()),
    }
    if let Some(file) = file {
        let recorder = durable.map_or_else(|| Recorder::start(&Options::new(file)), Ok)?;
        let report = recorder.finish(Duration::from_secs(2))?;
        if report.rings_elsewhere > 0 {
            return Err("no room for a ring where it survives the process".into());
        }
        if report.records != u64::from(events) {
            return Err(format!("{} records of {events} were written", report.records).into());
        }
    }
    Ok(())
}
