//! Records events of one kind into a ring that holds them all, without a writer: for counting the instructions of one.
//!
//! `emit_loop words|string|disabled COUNT [FILE]`, at most some 9000. With a file, a writer then writes what is in the ring to it.

use std::error::Error;
use std::time::Duration;

use simpletrace_benches::contestants::{DISABLED, STRING, WORDS, emit_string, emit_words};
use simpletrace_recorder::{Options, Recorder, enable, register};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let kind = args.next().ok_or("no kind of event")?;
    let events = args.next().ok_or("no number of events")?.parse()?;
    register(&[&WORDS, &STRING, &DISABLED])?;
    enable(WORDS.name());
    enable(STRING.name());
    match kind.as_str() {
        "words" => emit_words(&WORDS, events),
        "string" => emit_string(events),
        "disabled" => emit_words(&DISABLED, events),
        _ => return Err(format!("no kind of event: {kind}").into()),
    }
    if let Some(file) = args.next() {
        let report = Recorder::start(&Options::new(file))?.finish(Duration::from_secs(2))?;
        if report.records != u64::from(events) {
            return Err(format!("{} records of {events} were written", report.records).into());
        }
    }
    Ok(())
}
