//! The protocol under loom, which runs each model in every order of its threads' steps, and with every value that a load may return,
//! up to a number of preemptions. `scripts/loom` runs them; docs/RECORDER.md says what they prove and what they cannot.
//!
//! The time-stamp counter is an atomic that is only ever added to: every reading is the newest, and hands nothing else over.

use std::cmp::Ordering::{Equal, Greater, Less};
use std::sync::atomic::AtomicU64 as Count;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use loom::thread;
use simpletrace_format::{Record, SliceReader};

use crate::clock::Anchor;
use crate::event::{Event, Registry};
use crate::hub::{Hub, WriterState};
use crate::output::Output;
use crate::report::Report;
use crate::ring::{Kind, Ring};
use crate::sync::{AtomicU64, Ordering, free_leaked, leak};
use crate::writeout::{Setup, Writeout};

static REGISTRY: Registry = Registry::new();
static EVENT: Event = Event::new("event", "event()");

/// The smallest ring: 32 words, 7 of which say whose it is.
const RING_BYTES: u64 = 256;
/// Three of these go into the smallest ring beside its first owner's record, a fourth does not.
const WORDS: u64 = 5;
/// More words than such a ring takes in one record.
const TOO_MANY: u64 = 15;

/// Runs a model with at most `preemptions` of them in an execution, and prints what it took.
fn check(name: &str, preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    REGISTRY.register(&[&EVENT]).expect("a good name");
    let mut builder = loom::model::Builder::new();
    // LOOM_MAX_PREEMPTIONS goes before.
    builder.preemption_bound.get_or_insert(preemptions);
    builder.max_branches = 100_000;
    let bound = builder.preemption_bound;
    let executions = Arc::new(Count::new(0));
    let begin = Instant::now();
    builder.check({
        let executions = Arc::clone(&executions);
        move || {
            executions.fetch_add(1, Ordering::Relaxed);
            free_leaked();
            model();
        }
    });
    let (executions, took) = (executions.load(Ordering::Relaxed), begin.elapsed());
    println!("loom: {name}: {executions} executions, at most {} preemptions, {took:.1?}", bound.unwrap_or_default());
}

/// What a model's threads share.
#[derive(Clone, Copy)]
struct World {
    hub: &'static Hub,
    clock: &'static AtomicU64,
}

impl World {
    fn new() -> Self {
        let hub = Hub::new();
        hub.rings.set_ring_bytes(RING_BYTES);
        Self { hub: leak(Box::new(hub)), clock: leak(Box::new(AtomicU64::new(1))) }
    }

    fn ticks(self) -> u64 {
        // Relaxed: a counter tells the time, not what happened by then.
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    fn producer(self, id: u32) -> Producer {
        let ring = self.hub.rings.acquire(self.hub, id, false, &|| self.ticks()).expect("a ring");
        Producer { world: self, ring, id, attempts: 0, stamps: Vec::new() }
    }

    fn writer(self) -> Writer {
        let (output, bytes) = Output::in_memory(1 << 20);
        let mut writeout = Writeout::new(Setup {
            hub: self.hub,
            registry: &REGISTRY,
            take_anchor: Box::new(move |_| {
                let ticks = self.ticks();
                Anchor { ticks, ns: ticks, error_ticks: 0 }
            }),
            first_anchor: Some(Anchor { ticks: 0, ns: 0, error_ticks: 0 }),
            output,
            pid: None,
            from_ns: 0,
        });
        writeout.begin().expect("room for a header");
        Writer { writeout, bytes, reached: Vec::new() }
    }
}

/// A thread that records.
struct Producer {
    world: World,
    ring: &'static Ring,
    id: u32,
    attempts: u64,
    /// Of the events that are in the ring or were.
    stamps: Vec<u64>,
}

impl Producer {
    /// Records so many events.
    fn record(&mut self, events: u64) {
        for _ in 0..events {
            self.emit(WORDS);
        }
    }

    /// Records so many events while others do something.
    fn record_on_a_thread(mut self, events: u64) -> thread::JoinHandle<Self> {
        thread::spawn(move || {
            self.record(events);
            self
        })
    }

    fn emit(&mut self, words: u64) {
        let (id, number, clock) = (self.id, self.attempts, self.world);
        let mut is_recorded = false;
        self.ring.emit(
            self.world.hub,
            0,
            words as u32 * 8,
            || clock.ticks(),
            |payload| {
                is_recorded = true;
                for (index, word) in payload[..words as usize].iter().enumerate() {
                    word.store(word_of(id, number, index), Ordering::Relaxed);
                }
            },
        );
        self.attempts += 1;
        if is_recorded {
            self.stamps.push(self.ring.last_stamp());
        }
    }
}

/// What stands at a place of an event, so that one cannot be taken for another or for half of each.
fn word_of(id: u32, number: u64, index: usize) -> u64 {
    u64::from(id) << 32 | number << 8 | index as u64
}

/// The writer and what it has written.
struct Writer {
    writeout: Writeout,
    bytes: Arc<Mutex<Vec<u8>>>,
    /// The watermark and the number of entries behind each cycle.
    reached: Vec<(u64, usize)>,
}

/// An entry of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entry {
    Event { thread: u32, number: u64, at: u64 },
    Dropped { thread: u32, count: u64, at: u64 },
}

impl Entry {
    fn at(self) -> u64 {
        match self {
            Self::Event { at, .. } | Self::Dropped { at, .. } => at,
        }
    }
}

impl Writer {
    fn cycle(&mut self) {
        self.writeout.cycle(true);
        self.reached.push((self.writeout.watermark_ns(), self.file().len()));
    }

    /// All that is in the file, whose events are whole and in order of time.
    fn file(&self) -> Vec<Entry> {
        let bytes = self.bytes.lock().expect("no panic");
        let mut entries: Vec<Entry> = Vec::new();
        for record in SliceReader::new(&bytes).expect("a header") {
            let entry = match record.expect("a sound file") {
                Record::Mapping(_) => continue,
                Record::Dropped(dropped) => {
                    Entry::Dropped { thread: dropped.pid, count: dropped.count, at: dropped.timestamp_ns }
                }
                Record::Event(event) => {
                    let mut args = event.payload.args();
                    let first = args.word().expect("a first word");
                    let (thread, number) = ((first >> 32) as u32, first >> 8 & 0xff_ffff);
                    for index in 1..WORDS as usize {
                        assert_eq!(args.word(), Some(word_of(thread, number, index)), "torn");
                    }
                    assert_eq!(args.word(), None);
                    assert_eq!(event.pid, thread, "an event of another thread");
                    Entry::Event { thread, number, at: event.timestamp_ns }
                }
            };
            assert!(entries.last().is_none_or(|before| before.at() <= entry.at()), "{entries:?}, then {entry:?}");
            entries.push(entry);
        }
        entries
    }

    /// Takes the rest, and checks that every event of `producers` is in the file in its thread's order, or told to be missing just
    /// where it is, and that the report says the same.
    fn end(mut self, producers: &[Producer]) -> Report {
        assert!(self.writeout.finish(|| false), "nobody records any more");
        let file = self.file();
        let report = self.writeout.report();
        assert_eq!(report.late, 0);
        for &(watermark, entries) in &self.reached {
            assert!(file[entries..].iter().all(|entry| entry.at() >= watermark), "late behind {watermark}: {file:?}");
        }
        let mut records = 0;
        for producer in producers {
            let (mut next, mut told, mut gap_is_open) = (0, 0, false);
            let mut stamps = producer.stamps.iter();
            for entry in &file {
                match *entry {
                    Entry::Event { thread, number, at } if thread == producer.id => {
                        assert_eq!(number, next + told, "events are missing: {file:?}");
                        assert!(!gap_is_open, "an event inside a gap: {file:?}");
                        assert_eq!(stamps.next(), Some(&at));
                        (next, told) = (number + 1, 0);
                        records += 1;
                    }
                    Entry::Dropped { thread, count, .. } if thread == producer.id => {
                        told += count;
                        gap_is_open = count > 0;
                    }
                    _ => {}
                }
            }
            assert_eq!(producer.attempts, next + told, "the last events: {file:?}");
            assert_eq!(stamps.next(), None);
        }
        let attempts: u64 = producers.iter().map(|producer| producer.attempts).sum();
        assert_eq!(report.records, records);
        assert_eq!(report.records + report.lost.total(), attempts);
        let of_threads: u64 = report.threads.iter().map(|thread| thread.records + thread.lost.total()).sum();
        assert_eq!(of_threads, attempts);
        report
    }

    /// Checks that the file has all events before the watermark, and none behind it. At it there may be one whose thread is still
    /// publishing it: its ring's last stamp, which held the watermark back.
    fn has_reached(watermark: u64, file: &[Entry], producers: &[Producer]) {
        for producer in producers {
            for (number, &stamp) in producer.stamps.iter().enumerate() {
                let event = Entry::Event { thread: producer.id, number: number as u64, at: stamp };
                match stamp.cmp(&watermark) {
                    Less => assert!(file.contains(&event), "{event:?} is not there at {watermark}: {file:?}"),
                    Equal => {}
                    Greater => assert!(!file.contains(&event), "{event:?} is there at {watermark}: {file:?}"),
                }
            }
        }
    }
}

/// The two sides of a ring alone: the owner looks for room while the writer makes it, record by record.
#[test]
fn a_record_comes_out_once_whole_and_in_order_and_before_it_is_overwritten() {
    // 1,581 executions, 0.3 s on two cores.
    check("ring", 4, || {
        let world = World::new();
        let mut producer = world.producer(1);
        let ring = producer.ring;
        let owner = thread::spawn(move || {
            // The third ends behind the ring's capacity, so the fourth is at its beginning again.
            for _ in 0..5 {
                producer.emit(7);
            }
            producer
        });
        let mut taken = 0;
        let mut numbers = Vec::new();
        let mut take = || {
            let tail = ring.tail();
            while taken < tail {
                let (front, payload) = ring.record(taken);
                taken += front.words();
                if front.kind == Kind::Event {
                    let number = payload[0].load(Ordering::Relaxed) >> 8 & 0xff_ffff;
                    for (index, word) in payload.iter().enumerate() {
                        assert_eq!(word.load(Ordering::Relaxed), word_of(1, number, index));
                    }
                    numbers.push(number);
                }
                ring.give_back(taken);
            }
        };
        take();
        take();
        let producer = owner.join().expect("no panic");
        take();
        assert!(numbers.is_sorted_by(|one, other| one < other), "{numbers:?}");
        assert_eq!(numbers.len(), producer.stamps.len());
        assert_eq!(numbers.len() as u64 + ring.losses().full, producer.attempts);
    });
}

/// The ring fills up, room is made or not yet, and fills up again.
#[test]
fn a_full_ring_refuses_counts_and_says_where() {
    // 22,256 executions, 3 s on two cores.
    check("full", 3, || {
        let world = World::new();
        let mut producer = world.producer(1);
        let mut writer = world.writer();
        // Three fit.
        producer.record(3);
        let owner = producer.record_on_a_thread(3);
        writer.cycle();
        writer.cycle();
        let producer = owner.join().expect("no panic");
        let report = writer.end(&[producer]);
        assert_eq!(report.lost.total(), report.lost.full);
    });
}

/// A gap opens, closes and opens again while the writer is at its start.
#[test]
fn the_events_of_a_gap_are_told_once() {
    // 41,254 executions, 4 s on two cores.
    check("gaps", 4, || {
        let world = World::new();
        let mut producer = world.producer(1);
        let mut writer = world.writer();
        producer.emit(TOO_MANY);
        let owner = thread::spawn(move || {
            producer.emit(WORDS);
            producer.emit(TOO_MANY);
            producer
        });
        writer.cycle();
        writer.cycle();
        let producer = owner.join().expect("no panic");
        let report = writer.end(&[producer]);
        assert_eq!((report.records, report.lost.too_large), (1, 2));
    });
}

/// One thread against the writer's anchor, barrier and looks: what is before the watermark is in the file.
#[test]
fn nothing_before_the_watermark_is_missing() {
    // 12,714 executions, 2.4 s on two cores.
    check("watermark", 4, || {
        let world = World::new();
        let mut producer = world.producer(1);
        let mut writer = world.writer();
        let owner = thread::spawn(move || {
            producer.emit(WORDS);
            producer.emit(WORDS);
            producer
        });
        let mut sights = Vec::new();
        for _ in 0..2 {
            writer.cycle();
            sights.push((writer.writeout.watermark_ns(), writer.file()));
        }
        let producers = [owner.join().expect("no panic")];
        for (watermark, file) in sights {
            Writer::has_reached(watermark, &file, &producers);
        }
        writer.end(&producers);
    });
}

/// An owner that is asked to take the slow way does so from some emit on, though it may be setting its limit just then.
#[test]
fn whoever_asks_for_the_slow_way_gets_it() {
    check("slow way", 3, || {
        let world = World::new();
        let mut producer = world.producer(1);
        let ring = producer.ring;
        let asking = thread::spawn(move || ring.use_monotonic());
        // The second one finds the ring half full, and sets a new limit.
        producer.record(2);
        asking.join().expect("no panic");
        let position = ring.tail();
        producer.emit(WORDS);
        assert!(ring.record(position).0.stamp.is_monotonic);
    });
}

/// Two threads' events come out in the order of their stamps, from whichever thread.
#[test]
fn events_of_two_threads_are_in_order_of_time() {
    // 29,306 executions, 5 s on two cores.
    check("two threads", 2, || {
        let world = World::new();
        let owners = [world.producer(1), world.producer(2)].map(|mut producer| {
            thread::spawn(move || {
                producer.emit(WORDS);
                producer.emit(WORDS);
                producer
            })
        });
        let mut writer = world.writer();
        let mut sights = Vec::new();
        for _ in 0..2 {
            writer.cycle();
            sights.push((writer.writeout.watermark_ns(), writer.file()));
        }
        let producers = owners.map(|owner| owner.join().expect("no panic"));
        for (watermark, file) in sights {
            Writer::has_reached(watermark, &file, &producers);
        }
        writer.end(&producers);
    });
}

/// Threads get rings of their own, or one that another has given back, while the writer goes through the list.
#[test]
fn rings_are_found_and_change_hands_without_loss() {
    // 29,183 executions, 5 s on two cores.
    check("hands", 3, || {
        let world = World::new();
        let owners = [1, 2].map(|id| {
            thread::spawn(move || {
                let mut producer = world.producer(id);
                producer.emit(WORDS);
                producer.ring.release();
                producer
            })
        });
        let mut writer = world.writer();
        writer.cycle();
        let sight = (writer.writeout.watermark_ns(), writer.file());
        let producers = owners.map(|owner| owner.join().expect("no panic"));
        Writer::has_reached(sight.0, &sight.1, &producers);
        let report = writer.end(&producers);
        assert_eq!((report.records, report.threads.len()), (2, 2));
    });
}

/// A thread takes over a ring that is full of its last owner's records.
#[test]
fn a_ring_is_adopted_with_what_is_in_it() {
    // 3,491 executions, 0.5 s on two cores.
    check("adoption", 3, || {
        let world = World::new();
        let mut first = world.producer(1);
        let ring = first.ring;
        let mut writer = world.writer();
        let owner = thread::spawn(move || {
            first.emit(WORDS);
            first.emit(TOO_MANY);
            first.ring.release();
            first
        });
        let heir = thread::spawn(move || {
            let mut second = Producer { world, ring, id: 2, attempts: 0, stamps: Vec::new() };
            if ring.adopt(world.hub, 2, &|| world.ticks()) {
                second.emit(WORDS);
                ring.release();
            }
            second
        });
        writer.cycle();
        let producers = [owner, heir].map(|owner| owner.join().expect("no panic"));
        writer.end(&producers);
    });
}

/// Whoever flushes finds what was recorded before in the file, by itself or by a thread that it has heard from.
#[test]
fn a_flush_is_over_when_what_came_before_is_written() {
    // 18,130 executions, 2 s on two cores.
    check("flush", 3, || {
        let world = World::new();
        let mut producer = world.producer(1);
        let mut writer = world.writer();
        let asked: &AtomicU64 = leak(Box::new(AtomicU64::new(0)));
        let owner = thread::spawn(move || {
            producer.emit(WORDS);
            // The earliest time that it may be: the counter has not moved on. Relaxed: that the writer hears of the flush does not have
            // to tell it more.
            asked.store(producer.ring.last_stamp(), Ordering::Relaxed);
            producer.emit(WORDS);
            producer
        });
        let has_written = |writer: &mut Writer| {
            let ticks = asked.load(Ordering::Relaxed);
            writer.cycle();
            if ticks == 0 || !writer.writeout.has_written(ticks) {
                return false;
            }
            let file = writer.file();
            assert!(matches!(file[..], [Entry::Event { number: 0, .. }, ..]), "{file:?}");
            true
        };
        has_written(&mut writer);
        has_written(&mut writer);
        let producer = owner.join().expect("no panic");
        assert!(has_written(&mut writer), "nothing is in the way any more");
        writer.end(&[producer]);
    });
}

/// A thread that waits for room goes on when there is some: no event is lost.
#[test]
fn a_thread_that_waits_for_room_gets_it() {
    // 96 executions on two cores.
    check("block", 4, || {
        let world = World::new();
        world.hub.set_patience_ns(u64::MAX);
        world.hub.set_writer(WriterState::Running);
        let mut producer = world.producer(1);
        let mut writer = world.writer();
        producer.record(3);
        let owner = thread::spawn(move || {
            producer.emit(WORDS);
            producer.emit(WORDS);
            producer
        });
        writer.cycle();
        let producer = owner.join().expect("no panic");
        let report = writer.end(&[producer]);
        assert_eq!((report.records, report.lost.total()), (5, 0));
    });
}

/// A thread that waits for room goes on when the writer goes: what finds no room is counted.
#[test]
fn nobody_waits_for_a_writer_that_is_gone() {
    // 2,487 executions, 0.6 s on two cores.
    check("gone", 4, || {
        let world = World::new();
        world.hub.set_patience_ns(u64::MAX);
        world.hub.set_writer(WriterState::Running);
        let mut producer = world.producer(1);
        let mut writer = world.writer();
        producer.record(3);
        let owner = producer.record_on_a_thread(5);
        writer.cycle();
        world.hub.set_writer(WriterState::Gone);
        let producer = owner.join().expect("no panic");
        let report = writer.end(&[producer]);
        assert_eq!(report.lost.total(), report.lost.full);
    });
}
