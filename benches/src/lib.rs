//! What the benchmarks of simpletrace-rs are made of; README.md has the method and the results.

#![allow(missing_docs)]

pub mod baseline;
pub mod children;
pub mod contestants;
#[cfg(feature = "rivals")]
pub mod lttng;
#[cfg(feature = "rivals")]
pub mod rivals;
pub mod rounds;
pub mod stats;

use std::error::Error;
use std::fs;

/// What a benchmark was called with.
#[derive(Debug, Clone)]
pub struct Args {
    words: Vec<String>,
    /// Whether only to show that the benchmark runs: `cargo test` runs it like this, `cargo bench` does not.
    pub is_smoke: bool,
}

impl Args {
    #[must_use]
    pub fn of_process() -> Self {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let is_smoke = !words.iter().any(|word| word == "--bench");
        Self { words, is_smoke }
    }

    /// The word behind `option`.
    #[must_use]
    pub fn text(&self, option: &str) -> Option<&str> {
        let place = self.words.iter().position(|word| word == option)?;
        self.words.get(place + 1).map(String::as_str)
    }

    /// Whether `option` is there.
    #[must_use]
    pub fn has(&self, option: &str) -> bool {
        self.words.iter().any(|word| word == option)
    }

    /// The number behind `option`.
    ///
    /// # Panics
    ///
    /// It is none.
    #[must_use]
    pub fn number(&self, option: &str) -> Option<usize> {
        self.text(option).map(|text| text.parse().unwrap_or_else(|_| panic!("{option} {text}: not a number")))
    }
}

/// The processor time that the writer's thread has had, in ns.
///
/// # Errors
///
/// There is no writer, or the kernel does not tell.
pub fn writer_cpu_ns() -> Result<u64, Box<dyn Error>> {
    for task in fs::read_dir("/proc/self/task")? {
        let task = task?.path();
        if fs::read_to_string(task.join("comm"))?.trim_end() == "simpletrace" {
            let times = fs::read_to_string(task.join("schedstat"))?;
            return Ok(times.split(' ').next().unwrap_or_default().parse()?);
        }
    }
    Err("no thread is called simpletrace".into())
}

/// Says what machine this is.
pub fn print_machine() {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name\t: ")).unwrap_or("unknown processor");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    println!("{model}, {cores} cores, load {load} at the start\n");
}
