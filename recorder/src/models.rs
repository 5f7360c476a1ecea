//! The protocol under loom: every interleaving, and every value that a load may see, of small cases of the code that is shipped.
//!
//! `scripts/loom` runs them. Where the number of preemptions is bounded, the bound stands with the model; each prints how many
//! executions it took. Loom's fences are stronger than the asymmetric barrier (see `sync.rs`), and it knows nothing of when a
//! processor reads its counter: docs/RECORDER.md has the argument for these.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc as StdArc, Mutex};

use loom::sync::Arc;
use loom::thread;
use simpletrace_format::{Record, SliceReader};

use crate::clock::Anchor;
use crate::event::{Event, Registry};
use crate::hub::Hub;
use crate::output::Output;
use crate::ring::{Front, Kind, Ring, Stamp};
use crate::sync::{AtomicU64, Ordering};
use crate::writeout::{Setup, Writeout};

/// Checks `case` in all executions with at most so many preemptions.
fn check(name: &str, preemptions: Option<usize>, case: impl Fn() + Sync + Send + 'static) {
    let executions = StdArc::new(AtomicUsize::new(0));
    let count = StdArc::clone(&executions);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = 20_000;
    builder.check(move || {
        count.fetch_add(1, SeqCst);
        case();
    });
    let bound =
        preemptions.map_or("any number of preemptions".to_owned(), |bound| format!("at most {bound} preemptions"));
    println!("{name}: {} executions, {bound}", executions.load(SeqCst));
}

/// A hub whose writer is said to run.
fn hub() -> &'static Hub {
    let hub: &'static Hub = Box::leak(Box::new(Hub::new()));
    hub.set_writer_runs(true);
    hub
}

/// A ring of so many words that no list knows.
fn ring(capacity: u64) -> &'static Ring {
    let words: Vec<_> = (0..Ring::words_for(capacity)).map(|_| AtomicU64::new(0)).collect();
    Box::leak(Box::new(Ring::new(capacity, words.leak())))
}

/// The time-stamp counter: the same for all, and never twice the same.
#[derive(Clone)]
struct Counter(Arc<AtomicU64>);

impl Counter {
    fn new() -> Self {
        Self(Arc::new(AtomicU64::new(1)))
    }

    fn read(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    /// Records an event with two arguments that belong together.
    fn emit(&self, hub: &Hub, ring: &Ring, arg: u64) {
        ring.emit(
            hub,
            0,
            16,
            |ring| ring.stamp_with(self.read()),
            |words| {
                words[0].store(arg, Ordering::Relaxed);
                words[1].store(!arg, Ordering::Relaxed);
            },
        );
    }
}

/// Takes records out of a ring as the writer does, and checks each.
struct Taker {
    ring: &'static Ring,
    at: u64,
    events: Vec<u64>,
    last_ticks: u64,
    gap_is_open: bool,
    told: u64,
}

impl Taker {
    fn new(ring: &'static Ring) -> Self {
        Self { ring, at: 0, events: Vec::new(), last_ticks: 0, gap_is_open: false, told: 0 }
    }

    fn take(&mut self) {
        let tail = self.ring.tail();
        while self.at < tail {
            let (front, payload) = self.ring.record(self.at);
            let Front { stamp: Stamp { ticks, .. }, kind, .. } = front;
            assert!(ticks >= self.last_ticks, "a thread's records are in order");
            self.last_ticks = ticks;
            let word = |index: usize| payload[index].load(Ordering::Relaxed);
            match kind {
                Kind::Event => {
                    assert!(!self.gap_is_open, "a gap is closed before recording goes on");
                    assert_eq!(word(1), !word(0), "a record comes whole");
                    self.events.push(word(0));
                }
                Kind::GapStart => {
                    assert!(!self.gap_is_open);
                    self.gap_is_open = true;
                    assert!(self.ring.losses().in_band() > self.told, "what opens a gap is counted");
                }
                Kind::GapEnd => {
                    assert!(self.gap_is_open && word(0) > self.told);
                    self.gap_is_open = false;
                    self.told = word(0);
                }
                Kind::Owner => {}
            }
            self.at += front.words();
        }
        self.ring.give_back(self.at);
    }
}

#[test]
fn records_come_out_once_whole_and_in_order_and_what_is_missing_is_counted() {
    // Four words each: the ring takes one and the mark of a gap, and its end is passed several times.
    check("ring", Some(4), || {
        let (hub, ring, counter) = (hub(), ring(8), Counter::new());
        let emitter = thread::spawn(move || (1..=4).for_each(|arg| counter.emit(hub, ring, arg)));
        let mut taker = Taker::new(ring);
        taker.take();
        taker.take();
        taker.take();
        emitter.join().unwrap();
        taker.take();
        assert!(taker.events.is_sorted_by(|a, b| a < b));
        assert_eq!(taker.events.len() as u64 + ring.losses().in_band(), 4, "written and lost is all there was");
        assert_eq!(taker.gap_is_open, taker.told < ring.losses().in_band());
    });
}

#[test]
fn a_thread_that_waits_for_room_goes_on_when_there_is_some() {
    check("block", Some(2), || {
        let (hub, ring, counter) = (hub(), ring(8), Counter::new());
        hub.set_patience_ns(u64::MAX);
        let emitter = thread::spawn(move || (1..=2).for_each(|arg| counter.emit(hub, ring, arg)));
        let mut taker = Taker::new(ring);
        while taker.events.len() < 2 {
            taker.take();
            hub.room_was_made();
            thread::yield_now();
        }
        emitter.join().unwrap();
        assert_eq!(taker.events, [1, 2]);
        assert_eq!(ring.losses().in_band(), 0);
    });
}

#[test]
fn a_thread_that_waits_for_room_goes_on_when_the_writer_ends() {
    check("block, writer gone", Some(3), || {
        let (hub, ring, counter) = (hub(), ring(8), Counter::new());
        hub.set_patience_ns(u64::MAX);
        let emitter = thread::spawn(move || (1..=2).for_each(|arg| counter.emit(hub, ring, arg)));
        hub.set_writer_runs(false);
        emitter.join().unwrap();
        let mut taker = Taker::new(ring);
        taker.take();
        assert_eq!((taker.events.len(), ring.losses().full), (1, 1));
    });
}

static EVENT: Event = Event::new("event", "event(uint64_t a, uint64_t b) \"\"");
static REGISTRY: Registry = Registry::new();

/// A writer with its file in memory; one tick is one ns.
fn writer(hub: &'static Hub, counter: &Counter) -> (Writeout, StdArc<Mutex<Vec<u8>>>) {
    REGISTRY.register(&[&EVENT]).unwrap();
    let (output, file) = Output::in_memory(usize::MAX);
    let counter = counter.clone();
    let writer = Writeout::new(Setup {
        hub,
        registry: &REGISTRY,
        take_anchor: Box::new(move |_| {
            let ticks = counter.read();
            Anchor { ticks, ns: ticks, error_ticks: 0 }
        }),
        first_anchor: Some(Anchor { ticks: 0, ns: 0, error_ticks: 0 }),
        output,
        pid: None,
        from_ns: 0,
    });
    (writer, file)
}

/// The first arguments of the events in a file, which must be in order of time; and the sum of the losses in it.
fn events(file: &Mutex<Vec<u8>>) -> (Vec<u64>, u64) {
    let (mut args, mut lost, mut last_ns) = (Vec::new(), 0, 0);
    for record in SliceReader::new(&file.lock().unwrap()).unwrap() {
        let at_ns = match record.unwrap() {
            Record::Mapping(_) => continue,
            Record::Event(event) => {
                args.push(event.payload.args().word().unwrap());
                event.timestamp_ns
            }
            Record::Dropped(dropped) => {
                lost += dropped.count;
                dropped.timestamp_ns
            }
        };
        assert!(at_ns >= last_ns, "the file is in order of time");
        last_ns = at_ns;
    }
    (args, lost)
}

/// A thread that gets itself a ring, records and gives the ring back.
fn short_thread(hub: &'static Hub, counter: &Counter, id: u32, arg: u64) -> thread::JoinHandle<()> {
    let counter = counter.clone();
    thread::spawn(move || {
        let ring = hub.ring(id, |ring| ring.stamp_with(counter.read())).expect("a ring");
        counter.emit(hub, ring, arg);
        ring.release();
    })
}

#[test]
fn the_file_is_in_order_of_time_whenever_the_writer_looks() {
    check("watermark", Some(2), || {
        let (hub, counter) = (hub(), Counter::new());
        let [one, two] = [1, 2].map(|id| ring_in(hub, &counter, id));
        let (mut writer, file) = writer(hub, &counter);
        let emitter = {
            let counter = counter.clone();
            thread::spawn(move || counter.emit(hub, one, 1))
        };
        // The other thread and the writer are one: between them there is nothing to find out.
        counter.emit(hub, two, 2);
        writer.cycle(true);
        counter.emit(hub, two, 3);
        writer.cycle(true);
        emitter.join().unwrap();
        writer.cycle(true);
        let (mut args, lost) = events(&file);
        args.sort_unstable();
        assert_eq!((args, lost, writer.report().late), (vec![1, 2, 3], 0, 0));
    });
}

fn ring_in(hub: &'static Hub, counter: &Counter, id: u32) -> &'static Ring {
    hub.rings.set_ring_bytes(256);
    hub.ring(id, |ring| ring.stamp_with(counter.read())).expect("a ring")
}

#[test]
fn threads_that_come_and_go_while_the_writer_looks_lose_nothing() {
    check("registry", Some(2), || {
        let (hub, counter) = (hub(), Counter::new());
        hub.rings.set_ring_bytes(256);
        let (mut writer, file) = writer(hub, &counter);
        let one = short_thread(hub, &counter, 1, 10);
        writer.cycle(true);
        let two = hub.ring(2, |ring| ring.stamp_with(counter.read())).expect("a ring");
        counter.emit(hub, two, 20);
        two.release();
        writer.cycle(true);
        one.join().unwrap();
        writer.cycle(true);
        let (mut args, lost) = events(&file);
        args.sort_unstable();
        assert_eq!((args, lost), (vec![10, 20], 0));
        let report = writer.report();
        assert_eq!((report.late, report.records), (0, 2));
        // Who comes when a ring is idle takes that.
        assert!((1..=2).contains(&report.rings));
        for thread in report.threads {
            assert_eq!(thread.records, 1, "of thread {}", thread.thread_id);
        }
    });
}

#[test]
fn what_a_flush_has_waited_for_is_in_the_file() {
    check("flush", Some(2), || {
        let (hub, counter) = (hub(), Counter::new());
        let ring = ring_in(hub, &counter, 1);
        let (mut writer, file) = writer(hub, &counter);
        // What the flush waits for is told the writer by other means than the ring.
        let stamp = Arc::new(AtomicU64::new(0));
        let emitter = {
            let (counter, stamp) = (counter.clone(), Arc::clone(&stamp));
            thread::spawn(move || {
                counter.emit(hub, ring, 7);
                stamp.store(counter.read(), Ordering::Relaxed);
            })
        };
        let ticks = stamp.load(Ordering::Relaxed);
        writer.cycle(true);
        if ticks > 0 && writer.has_written(Stamp { ticks, is_monotonic: false }) {
            assert_eq!(events(&file).0, [7]);
        }
        emitter.join().unwrap();
    });
}

#[test]
fn gaps_are_told_to_the_number_while_the_ring_fills_and_empties() {
    check("gaps", Some(2), || {
        let (hub, counter) = (hub(), Counter::new());
        let ring = ring_in(hub, &counter, 1);
        let (mut writer, file) = writer(hub, &counter);
        let emitter = {
            let counter = counter.clone();
            // 23 words are left for events of 4 words.
            thread::spawn(move || (1..=8).for_each(|arg| counter.emit(hub, ring, arg)))
        };
        writer.cycle(true);
        emitter.join().unwrap();
        writer.finish(|| true);
        let (args, lost) = events(&file);
        let report = writer.report();
        assert_eq!(args.len() as u64 + lost, 8);
        assert_eq!((report.records, report.lost.full, report.late), (args.len() as u64, lost, 0));
    });
}
