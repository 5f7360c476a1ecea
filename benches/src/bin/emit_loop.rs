//! Records events of one kind into a ring that holds them all, without a writer: for counting the instructions of one.
//!
//! `emit_loop words|string|disabled COUNT`, at most some 9000.

use std::error::Error;

use simpletrace_benches::contestants::{DISABLED, STRING, WORDS, emit_string, emit_words};
use simpletrace_recorder::{enable, register};

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
    Ok(())
}
