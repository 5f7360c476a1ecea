//! Many threads, small rings and everything that can be done to a recording at once; then the file is compared with what the threads
//! know that they did. `scripts/sanitize` runs it under the sanitizers.
//!
//! A process has one recording at a time, and this file one test, so that nobody else records.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use simpletrace_format::{EventRecord, Record, SliceReader};
use simpletrace_recorder::{Error, Event, Options, Recorder, Report, disable, enable, register};

static WORDS: Event = Event::new("words", "words(uint64_t thread, uint64_t number) \"%\"PRIu64\" %\"PRIu64");
static TEXT: Event =
    Event::new("text", "text(uint64_t thread, uint64_t number, const char *text) \"%\"PRIu64\" %\"PRIu64\" %s\"");

const THREADS: u64 = 4;
const EVENTS: u64 = 50_000;
/// More than the writer may take for a command on a machine that is busy with other things.
const LONG: Duration = Duration::from_secs(120);

/// The text of an event: of many lengths, and told from its number.
fn text(number: u64) -> &'static str {
    const TEXT: &str =
        "the quick brown fox jumps over the lazy dog, then sleeps until it is dark, and is a brown fox again";
    &TEXT[..number as usize * 7 % TEXT.len()]
}

/// Records a thread's events; returns how many were attempted, which is known for certain: those that were asked for and enabled.
fn produce(thread: u64) -> u64 {
    let mut attempts = 0;
    for step in 0..EVENTS {
        let event = if step % 3 == 0 { &TEXT } else { &WORDS };
        if !event.is_enabled() {
            continue;
        }
        if step % 3 == 0 {
            TEXT.record(&[thread.into(), attempts.into(), text(attempts).into()]);
        } else {
            WORDS.record_words(&[thread, attempts]);
        }
        attempts += 1;
    }
    attempts
}

/// Switches events off and on, and flushes, for as long as somebody records.
fn disturb(recorder: &Recorder, is_over: &AtomicBool) {
    thread::scope(|scope| {
        let switcher = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                disable("te*");
                thread::yield_now();
                enable("te*");
                thread::yield_now();
            }
        });
        while !is_over.load(Ordering::Relaxed) {
            recorder.flush(LONG).expect("a flush");
            assert!(recorder.report().expect("a report").records <= THREADS * EVENTS);
        }
        // Joined, which ThreadSanitizer sees, unlike the end of a scope.
        switcher.join().expect("no panic");
    });
}

fn record(options: &Options) -> (Vec<u64>, Report) {
    let recorder = Recorder::start(options).expect("a recording");
    assert!(matches!(Recorder::start(options), Err(Error::AlreadyRecording)));
    let is_over = AtomicBool::new(false);
    let start = Barrier::new(THREADS as usize);
    let attempts = thread::scope(|scope| {
        let producers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    produce(thread)
                })
            })
            .collect();
        let disturber = scope.spawn(|| disturb(&recorder, &is_over));
        let attempts = producers.into_iter().map(|producer| producer.join().expect("no panic")).collect();
        is_over.store(true, Ordering::Relaxed);
        disturber.join().expect("no panic");
        attempts
    });
    let report = recorder.finish(LONG).expect("an end");
    (attempts, report)
}

/// What a reader of the file knows of a thread.
#[derive(Default)]
struct Seen {
    /// The thread's own number, which its first event tells.
    thread: Option<u64>,
    records: u64,
    /// The number that the next event has if none is missing.
    next: u64,
    /// Events that `dropped` records say are missing since the last one.
    told: u64,
    missing: u64,
}

impl Seen {
    fn event(&mut self, record: &EventRecord<'_>, is_text: bool) {
        let mut args = record.payload.args();
        let (thread, number) = (args.word().expect("a thread"), args.word().expect("a number"));
        assert_eq!(*self.thread.get_or_insert(thread), thread, "one thread's id, another's event");
        if is_text {
            assert_eq!(args.string(), Some(text(number).as_bytes()));
        }
        assert!(args.rest().is_empty());
        assert_eq!(number - self.next, self.told, "thread {thread}, before event {number}: missing, and told to be");
        self.missing += self.told;
        (self.next, self.told) = (number + 1, 0);
        self.records += 1;
    }
}

/// Compares the file with the attempts of each thread and with the report.
fn compare(file: &[u8], attempts: &[u64], report: &Report) {
    let mut names = HashMap::new();
    let mut threads: HashMap<u32, Seen> = HashMap::new();
    let mut last_ns = 0;
    for record in SliceReader::new(file).expect("a header") {
        let at_ns = match record.expect("a sound file") {
            Record::Mapping(mapping) if mapping.is_fact() => continue,
            Record::Mapping(mapping) => {
                assert_eq!(names.insert(mapping.id, mapping.name), None);
                continue;
            }
            Record::Dropped(dropped) => {
                threads.entry(dropped.pid).or_default().told += dropped.count;
                dropped.timestamp_ns
            }
            Record::Event(event) => {
                threads.entry(event.pid).or_default().event(&event, names[&event.id] == TEXT.name());
                event.timestamp_ns
            }
        };
        assert!(last_ns <= at_ns, "{at_ns} after {last_ns}");
        last_ns = at_ns;
    }
    // A ring may have been left by the recording before with its gap open: the end of that is told here.
    threads.retain(|_, seen| seen.records + seen.told > 0);
    assert_eq!(threads.len() as u64, THREADS);
    for seen in threads.values() {
        let attempts = attempts[seen.thread.expect("an event") as usize];
        assert_eq!(seen.next + seen.told, attempts);
        assert_eq!(seen.records + seen.missing + seen.told, attempts);
    }
    let attempts: u64 = attempts.iter().sum();
    let records: u64 = threads.values().map(|seen| seen.records).sum();
    assert_eq!(report.records, records);
    assert_eq!(records + report.lost.total(), attempts);
    assert_eq!(report.lost.total(), report.lost.full);
    assert_eq!(report.bytes, file.len() as u64);
    assert_eq!((report.late, &report.write_error), (0, &None));
}

#[test]
fn every_event_of_many_threads_is_in_the_file_in_order_or_told_to_be_missing() {
    register(&[&WORDS, &TEXT]).expect("good names");
    enable("*");
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("stress");
    let options = Options::new(&path).ring_bytes(Options::MIN_RING_BYTES).thread_ids(true);
    for options in [options.clone(), options.policy(simpletrace_recorder::Policy::Block(None))] {
        let (attempts, report) = record(&options);
        println!(
            "{attempts:?} attempts, {} records, {} lost, {} cycles",
            report.records,
            report.lost.total(),
            report.cycles
        );
        compare(&std::fs::read(&path).expect("a file"), &attempts, &report);
    }
    std::fs::remove_file(&path).expect("a file");
}
