//! `simpletrace-codegen-example FILE`: records a few events of a disk into a trace.

use std::error::Error;
use std::time::Duration;

use simpletrace_recorder::{Options, Recorder, emit, enable, register};

mod trace {
    include!(concat!(env!("OUT_DIR"), "/trace.rs"));
}

struct Disk {
    name: String,
}

impl Disk {
    fn read(&self, offset: u64, bytes: u32) {
        trace::disk_read(self, offset, bytes);
        let ret = if offset.is_multiple_of(512) { 0 } else { -22 };
        emit!(trace::disk_done(self, self.name.to_uppercase(), ret));
        trace::disk_debug("not even compiled");
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args_os().nth(1).ok_or("no file to record to")?;
    register(&trace::EVENTS)?;
    enable("disk_*");
    let recorder = Recorder::start(&Options::new(file))?;
    let disk = Disk { name: "sda".to_owned() };
    disk.read(4096, 512);
    disk.read(7, 1);
    let report = recorder.finish(Duration::from_secs(2))?;
    println!("{} events", report.records);
    Ok(())
}
