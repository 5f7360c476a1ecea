//! The writer stepped by hand: threads, time and file are those of the test.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64 as Counter, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use simpletrace_format::{Record, SliceReader};

use rustix::io::Errno;

use super::tracked::STUCK_NS;
use super::*;
use crate::event::Event;
use crate::hub::WriterState;
use crate::output::{Memory, RETRY_NS, Step};
use Step::{Fail, Take};

static FIRST: Event = Event::new("first", "first(uint64_t a) \"\"");

/// Events have one number, hence all tests one registry.
static REGISTRY: Registry = Registry::new();

/// What the file says, record by record.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Mapping(u64, String),
    /// Time, pid, first argument.
    Event(u64, u32, u64),
    /// Time, pid, count.
    Dropped(u64, u32, u64),
}
use Line::{Dropped, Event as Happened, Mapping};

/// A recording whose counter is a number that the test sets: ten ticks are one ns, and the clock shows 1,000 ns more.
struct Bench {
    hub: &'static Hub,
    ticks: Arc<Counter>,
    file: Arc<Mutex<Vec<u8>>>,
    writer: Writeout,
}

impl Bench {
    fn new() -> Self {
        Self::with_limit(usize::MAX)
    }

    fn with_limit(limit: usize) -> Self {
        let (output, file) = Output::in_memory(limit);
        // The smallest that there can be: 256 bytes.
        Self::with(256, output, file)
    }

    /// A target that says what to do with each write.
    fn with_memory(ring_bytes: u64, is_pipe: bool) -> (Self, Memory) {
        let memory = Memory::default();
        let output = Output::to_memory(memory.clone(), is_pipe);
        (Self::with(ring_bytes, output, Arc::clone(&memory.bytes)), memory)
    }

    fn with(ring_bytes: u64, output: Output, file: Arc<Mutex<Vec<u8>>>) -> Self {
        let hub: &'static Hub = Box::leak(Box::new(Hub::new()));
        hub.rings.set_ring_bytes(ring_bytes);
        hub.set_writer(WriterState::Running);
        REGISTRY.register(&[&FIRST]).unwrap();
        let ticks = Arc::new(Counter::new(0));
        let mut writer = Writeout::new(Setup {
            hub,
            registry: &REGISTRY,
            take_anchor: take_anchor(&ticks),
            first_anchor: Some(Anchor { ticks: 0, ns: 1_000, error_ticks: 0 }),
            output,
            pid: None,
            from_ns: 0,
            segment: None,
        });
        writer.begin().unwrap();
        Self { hub, ticks, file, writer }
    }

    /// Sets the counter, in ns.
    fn at(&self, ns: u64) {
        self.ticks.store(ns * 10, SeqCst);
    }

    fn thread(&self, id: u32) -> Thread {
        let ring = self.hub.ring(id, &|| self.ticks.load(SeqCst)).expect("a ring");
        Thread { hub: self.hub, ring, ticks: Arc::clone(&self.ticks) }
    }

    /// What is in the file, after the strict reader has accepted it.
    fn lines(&self) -> Vec<Line> {
        lines(&self.file.lock().unwrap())
    }

    /// Runs a cycle at a time in ns; returns the bytes that were taken.
    fn cycle(&mut self, ns: u64) -> Cycle {
        self.at(ns);
        self.writer.cycle(false)
    }
}

fn take_anchor(ticks: &Arc<Counter>) -> TakeAnchor {
    let ticks = Arc::clone(ticks);
    Box::new(move |is_monotonic| {
        let ticks = ticks.load(SeqCst);
        let ns = ticks / 10 + 1_000;
        Anchor { ticks: if is_monotonic { ns } else { ticks }, ns, error_ticks: 0 }
    })
}

fn lines(file: &[u8]) -> Vec<Line> {
    SliceReader::new(file)
        .expect("a header")
        .map(|record| match record.expect("a whole record") {
            Record::Mapping(mapping) => Mapping(mapping.id.0, mapping.name.to_owned()),
            Record::Event(event) => {
                Happened(event.timestamp_ns, event.pid, event.payload.args().word().expect("an argument"))
            }
            Record::Dropped(dropped) => Dropped(dropped.timestamp_ns, dropped.pid, dropped.count),
        })
        .collect()
}

/// A thread that records: a ring, and the counter.
struct Thread {
    hub: &'static Hub,
    ring: &'static Ring,
    ticks: Arc<Counter>,
}

impl Thread {
    /// Records `first(arg)` at a time in ns, with as many words behind its argument.
    fn emit_long(&self, ns: u64, arg: u64, more: u32) {
        self.ticks.store(ns * 10, SeqCst);
        let owner = || self.ticks.load(SeqCst);
        self.ring.emit(self.hub, FIRST.id().unwrap(), 8 + more * 8, owner, |words| {
            words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
            words[0].store(arg, Ordering::Relaxed);
        });
    }

    fn emit(&self, ns: u64, arg: u64) {
        self.emit_long(ns, arg, 0);
    }

    /// Begins to record, is interrupted by `meanwhile` right behind its stamp, and ends.
    fn emit_slowly(&self, ns: u64, arg: u64, meanwhile: impl FnOnce()) {
        let meanwhile = Cell::new(Some(meanwhile));
        self.ticks.store(ns * 10, SeqCst);
        let owner = || self.ticks.load(SeqCst);
        self.ring.emit(self.hub, FIRST.id().unwrap(), 8, owner, |words| {
            words[0].store(arg, Ordering::Relaxed);
            meanwhile.take().expect("once")();
        });
    }
}

#[test]
fn records_of_two_threads_come_in_order_of_time_with_names_before_their_first_use() {
    let mut bench = Bench::new();
    let (one, two) = (bench.thread(1), bench.thread(2));
    one.emit(10, 100);
    two.emit(20, 200);
    one.emit(30, 101);
    two.emit(30, 201);
    assert_eq!(bench.cycle(40), Cycle::Took(2 * 56 + 4 * 24));
    assert_eq!(
        bench.lines(),
        [
            Mapping(0, "first".into()),
            Happened(1_010, 1, 100),
            Happened(1_020, 2, 200),
            // At the same time: the older ring first.
            Happened(1_030, 1, 101),
            Happened(1_030, 2, 201),
        ]
    );
    let report = bench.writer.report();
    assert_eq!((report.records, report.lost.total(), report.late), (4, 0, 0));
}

#[test]
fn without_news_a_cycle_does_nothing() {
    let mut bench = Bench::new();
    let thread = bench.thread(1);
    thread.emit(10, 1);
    bench.cycle(20);
    let before = bench.writer.watermark_ns;
    assert_eq!(bench.cycle(30), Cycle::Idle);
    assert_eq!(bench.writer.watermark_ns, before, "nothing is known to be complete without a barrier");
}

#[test]
fn a_thread_inside_an_emit_holds_later_records_of_others_back() {
    let mut bench = Bench::new();
    let (one, two) = (bench.thread(1), bench.thread(2));
    one.emit(10, 100);
    two.emit_slowly(20, 200, || {
        one.emit(15, 101);
        one.emit(30, 102);
        bench.cycle(40);
        assert_eq!(
            bench.lines(),
            [Mapping(0, "first".into()), Happened(1_010, 1, 100), Happened(1_015, 1, 101)],
            "what is later than the stamp of the emit under way has to wait"
        );
    });
    bench.cycle(50);
    assert_eq!(bench.lines()[3..], [Happened(1_020, 2, 200), Happened(1_030, 1, 102)]);
    assert_eq!(bench.writer.report().late, 0);
}

#[test]
fn an_emit_that_takes_longer_than_two_seconds_is_given_up_and_its_record_counted_as_late() {
    let mut bench = Bench::new();
    let (one, two) = (bench.thread(1), bench.thread(2));
    two.emit_slowly(20, 200, || {
        one.emit(30, 100);
        bench.cycle(40);
        assert_eq!(bench.lines(), [], "held back");
        bench.cycle(40 + STUCK_NS - 1);
        assert_eq!(bench.lines(), [], "still held back");
        bench.cycle(40 + STUCK_NS);
        assert_eq!(bench.lines()[1..], [Happened(1_030, 1, 100)], "given up");
    });
    bench.cycle(50 + STUCK_NS);
    assert_eq!(bench.lines()[2..], [Happened(1_020, 2, 200)]);
    assert_eq!(bench.writer.report().late, 1);
    // Its next emit counts again.
    two.emit_slowly(60 + STUCK_NS, 201, || {
        one.emit(70 + STUCK_NS, 101);
        bench.cycle(80 + STUCK_NS);
        assert_eq!(bench.lines().len(), 3);
    });
}

#[test]
fn a_full_ring_is_told_at_the_time_of_the_first_lost_event_and_where_recording_goes_on() {
    let mut bench = Bench::new();
    let thread = bench.thread(7);
    // 32 words: 7 for the owner, 2 kept for a gap, so 7 events of 3 words fit.
    for event in 0..10 {
        thread.emit(10 + event, event);
    }
    bench.cycle(50);
    thread.emit(60, 100);
    bench.cycle(70);
    let mut expected = vec![Mapping(0, "first".into())];
    expected.extend((0..7).map(|event| Happened(1_010 + event, 7, event)));
    expected.extend([Dropped(1_017, 7, 3), Dropped(1_060, 7, 0), Happened(1_060, 7, 100)]);
    assert_eq!(bench.lines(), expected);
    let report = bench.writer.report();
    assert_eq!((report.records, report.lost.full, report.lost.total()), (8, 3, 3));
    assert_eq!(report.threads[0].lost.full, 3);
    assert_eq!(report.threads[0].high_water_bytes, 30 * 8, "as it was when an event was refused");
}

#[test]
fn losses_behind_the_start_of_a_gap_that_is_written_are_told_at_its_end() {
    let mut bench = Bench::new();
    let (thread, other) = (bench.thread(7), bench.thread(8));
    for event in 0..8 {
        thread.emit(10 + event, event);
    }
    // While the writer is at it, more are lost; the ring has not been given back yet.
    other.emit_slowly(30, 1, || ());
    thread.emit(31, 8);
    bench.cycle(40);
    assert_eq!(bench.lines()[8], Dropped(1_017, 7, 2));
    // Too large for a ring of this size: 16 words at most.
    thread.emit_long(50, 9, 16);
    thread.emit_long(51, 10, 16);
    thread.emit(52, 11);
    bench.cycle(60);
    assert_eq!(
        bench.lines()[10..],
        [Dropped(1_052, 7, 2), Dropped(1_052, 7, 0), Happened(1_052, 7, 11)],
        "what was lost since is told with the end"
    );
    assert_eq!(bench.writer.report().lost.too_large, 2);
}

#[test]
fn two_gaps_that_wait_together_have_their_own_counts() {
    let mut bench = Bench::new();
    let thread = bench.thread(7);
    thread.emit_long(10, 1, 16);
    thread.emit_long(11, 1, 16);
    thread.emit(20, 2);
    thread.emit_long(30, 3, 16);
    thread.emit(40, 4);
    bench.cycle(50);
    assert_eq!(
        bench.lines(),
        [
            Dropped(1_010, 7, 2),
            Dropped(1_020, 7, 0),
            Mapping(0, "first".into()),
            Happened(1_020, 7, 2),
            Dropped(1_030, 7, 1),
            Dropped(1_040, 7, 0),
            Happened(1_040, 7, 4),
        ]
    );
}

#[test]
fn an_event_in_a_signal_handler_that_interrupts_an_emit_is_counted_and_told() {
    let mut bench = Bench::new();
    let thread = bench.thread(7);
    thread.emit(10, 1);
    bench.cycle(15);
    thread.emit_slowly(20, 2, || thread.emit(21, 3));
    thread.emit(30, 4);
    bench.cycle(40);
    assert_eq!(
        bench.lines()[2..],
        [
            // It was later than the cycle before, and no later than this one.
            Dropped(1_015, 7, 1),
            Happened(1_020, 7, 2),
            Happened(1_030, 7, 4),
            Dropped(1_040, 7, 0),
        ]
    );
    let report = bench.writer.report();
    assert_eq!((report.lost.nested, report.threads[0].lost.nested, report.late), (1, 1, 0));
}

#[test]
fn a_ring_is_handed_on_with_what_is_in_it_and_each_owner_has_its_own_numbers() {
    let mut bench = Bench::new();
    let first = bench.thread(1);
    for event in 0..2 {
        first.emit(10 + event, event);
    }
    first.emit_long(12, 2, 16);
    first.ring.release();
    bench.at(15);
    let second = bench.thread(2);
    assert!(std::ptr::eq(first.ring, second.ring), "no ring is made where one is idle");
    second.emit(20, 3);
    bench.cycle(30);
    assert_eq!(
        bench.lines()[1..],
        [
            Happened(1_010, 1, 0),
            Happened(1_011, 1, 1),
            Dropped(1_012, 1, 1),
            Dropped(1_015, 1, 0),
            Happened(1_020, 2, 3),
        ]
    );
    let report = bench.writer.report();
    let thread = |id| report.threads.iter().find(|thread| thread.thread_id == id).expect("its report");
    assert_eq!((thread(1).records, thread(1).lost.too_large), (2, 1));
    assert_eq!((thread(2).records, thread(2).lost.total()), (1, 0));
    assert_eq!((report.rings, report.ring_bytes), (1, 256));
}

#[test]
fn events_without_a_ring_are_counted_and_told() {
    let mut bench = Bench::new();
    bench.hub.count_no_ring();
    bench.hub.count_no_ring();
    assert_eq!(bench.cycle(10), Cycle::Took(0));
    bench.at(20);
    bench.writer.cycle(true);
    assert_eq!(bench.lines(), [Dropped(0, 0, 2), Dropped(1_010, 0, 0)]);
    assert_eq!(bench.writer.report().lost.no_ring, 2);
}

#[test]
fn a_full_disk_cuts_the_file_behind_a_whole_record_and_the_next_file_says_what_is_missing() {
    // A header, a mapping, two events and a half.
    let mut bench = Bench::with_limit(24 + 25 + 40 * 2 + 20);
    let thread = bench.thread(7);
    for event in 0..4 {
        thread.emit(10 + event, event);
    }
    bench.cycle(20);
    let expected = [Mapping(0, "first".into()), Happened(1_010, 7, 0), Happened(1_011, 7, 1)];
    assert_eq!(bench.lines(), expected);
    let message = "simpletrace: memory cannot be written: No space left on device (os error 28); \
                   events are counted as lost until there is room";
    assert_eq!(bench.writer.take_messages(), [message]);
    // From now on they are only counted.
    thread.emit(30, 4);
    bench.cycle(40);
    let report = bench.writer.report();
    assert_eq!((report.records, report.lost.write_failed, report.bytes), (2, 3, 24 + 25 + 80));

    let (output, file) = Output::in_memory(usize::MAX);
    bench.at(50);
    bench.writer.set_output(output).unwrap();
    thread.emit(60, 5);
    bench.cycle(70);
    assert_eq!(
        lines(&file.lock().unwrap()),
        [Dropped(1_012, 0, 3), Dropped(1_050, 0, 0), Mapping(0, "first".into()), Happened(1_060, 7, 5),]
    );
    assert_eq!(bench.writer.report().write_error, None);
}

#[test]
fn while_off_events_are_counted_and_the_file_goes_on_where_it_was() {
    let mut bench = Bench::new();
    let thread = bench.thread(7);
    thread.emit(10, 1);
    bench.at(20);
    bench.writer.set_off(true);
    thread.emit(30, 2);
    thread.emit(35, 3);
    bench.cycle(40);
    thread.emit(45, 4);
    bench.at(50);
    bench.writer.set_off(false);
    thread.emit(60, 5);
    bench.cycle(70);
    assert_eq!(
        bench.lines()[1..],
        [Happened(1_010, 7, 1), Dropped(1_030, 0, 3), Dropped(1_050, 0, 0), Happened(1_060, 7, 5)]
    );
    let report = bench.writer.report();
    assert_eq!((report.records, report.lost.off, report.lost.total()), (2, 3, 3));
}

#[test]
fn a_counter_that_goes_backwards_is_given_up_for_the_clock() {
    let mut bench = Bench::new();
    let thread = bench.thread(7);
    thread.emit(1_000, 1);
    bench.cycle(1_010);
    thread.emit(1_020, 2);
    // A virtual machine that was moved, say.
    let clock = Arc::new(Counter::new(0));
    let moved = Arc::clone(&clock);
    bench.writer.take_anchor = Box::new(move |is_monotonic| {
        let ns = 2_000 + moved.load(SeqCst);
        Anchor { ticks: if is_monotonic { ns } else { 5 }, ns, error_ticks: 0 }
    });
    clock.store(100, SeqCst);
    bench.writer.cycle(true);
    assert!(bench.hub.is_monotonic());
    thread.ring.emit(bench.hub, 0, 8, || 2_150, |words| words[0].store(3, Ordering::Relaxed));
    clock.store(200, SeqCst);
    bench.writer.cycle(true);
    assert_eq!(bench.lines()[1..], [Happened(2_000, 7, 1), Happened(2_020, 7, 2), Happened(2_150, 7, 3)]);
    let clock = bench.writer.report().clock;
    assert_eq!((clock.is_tsc, clock.unfit.as_deref()), (false, Some("the time-stamp counter went backwards")));
}

#[test]
fn what_an_earlier_recording_left_in_the_rings_is_counted_not_written() {
    let mut bench = Bench::new();
    let thread = bench.thread(7);
    thread.emit(10, 1);
    bench.cycle(20);
    // Past the end of the recording.
    thread.emit(30, 2);
    let (output, file) = Output::in_memory(usize::MAX);
    let mut writer = Writeout::new(Setup {
        hub: bench.hub,
        registry: &REGISTRY,
        take_anchor: take_anchor(&bench.ticks),
        first_anchor: Some(Anchor { ticks: 0, ns: 1_000, error_ticks: 0 }),
        output,
        pid: Some(99),
        from_ns: 1_050,
        segment: None,
    });
    writer.begin().unwrap();
    thread.emit(60, 3);
    bench.at(70);
    writer.cycle(true);
    assert_eq!(
        lines(&file.lock().unwrap()),
        [Dropped(1_050, 99, 1), Dropped(1_050, 99, 0), Mapping(0, "first".into()), Happened(1_060, 99, 3)]
    );
    let report = writer.report();
    assert_eq!((report.records, report.lost.off, report.lost.total()), (1, 1, 1));
}

#[test]
fn a_flush_is_over_when_the_stamp_is_written_not_before() {
    let mut bench = Bench::new();
    let (one, two) = (bench.thread(1), bench.thread(2));
    one.emit(10, 1);
    let until_ns = 1_011;
    assert!(!bench.writer.has_written(until_ns));
    two.emit_slowly(5, 2, || {
        bench.at(20);
        bench.writer.cycle(true);
        assert!(!bench.writer.has_written(until_ns), "held back");
    });
    bench.at(30);
    bench.writer.cycle(true);
    assert!(bench.writer.has_written(until_ns));
}

#[test]
fn the_last_cycle_leaves_nothing_behind_and_reports_a_thread_that_is_inside_an_emit() {
    let mut bench = Bench::new();
    let (one, two) = (bench.thread(1), bench.thread(2));
    two.emit_slowly(20, 200, || {
        one.emit(30, 100);
        one.emit_long(31, 101, 16);
        bench.at(40);
        let mut waits = 3;
        let is_at_rest = bench.writer.finish(|| {
            waits -= 1;
            waits > 0
        });
        assert!(!is_at_rest);
    });
    assert_eq!(bench.lines()[1..], [Happened(1_030, 1, 100), Dropped(1_031, 1, 1)]);
}

impl Memory {
    fn will(&self, steps: impl IntoIterator<Item = Step>) {
        *self.steps.lock().unwrap() = steps.into_iter().collect();
    }

    /// What the reader has got, who leaves with it.
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.bytes.lock().unwrap())
    }
}

/// The bytes of an event of [`FIRST`] in the file, of its name, and of a `dropped` record.
const EVENT: usize = 40;
const NAME: usize = 20 + 5;
const DROPPED: usize = 40;

#[test]
fn interrupted_and_short_writes_make_no_difference() {
    let (mut bench, memory) = Bench::with_memory(256, false);
    let thread = bench.thread(7);
    thread.emit(10, 1);
    thread.emit(11, 2);
    memory.will([Take(1), Fail(Errno::INTR), Take(50), Fail(Errno::INTR), Fail(Errno::INTR)]);
    bench.cycle(20);
    assert_eq!(bench.lines(), [Mapping(0, "first".into()), Happened(1_010, 7, 1), Happened(1_011, 7, 2)]);
    let report = bench.writer.report();
    assert_eq!((report.bytes, report.records), ((24 + NAME + 2 * EVENT) as u64, 2));
}

#[test]
fn while_a_target_takes_nothing_records_wait_in_the_rings_and_a_flush_for_them() {
    const EVENTS: u64 = 10_000;
    /// The events of a block: it is full with the last of them.
    const BLOCK: u64 = ((256 << 10) - NAME as u64).div_ceil(EVENT as u64);
    let (mut bench, memory) = Bench::with_memory(1 << 20, true);
    let (one, two) = (bench.thread(1), bench.thread(2));
    for event in 0..EVENTS {
        let thread = if event % 2 == 0 { &one } else { &two };
        thread.emit(10 + event, event);
    }
    let stamp = |ns: u64| 1_000 + ns;
    memory.will([Take(1_000), Fail(Errno::AGAIN)]);
    bench.at(20_000);
    assert_eq!(bench.writer.cycle(true), Cycle::Stalled);
    assert_eq!(memory.bytes.lock().unwrap().len(), 24 + 1_000);
    assert_eq!(bench.writer.watermark_ns, 1_000 + 10 + BLOCK, "the time of the first record not taken");
    assert!(!bench.writer.has_written(stamp(10)), "what is pending is not in the file");
    let report = bench.writer.report();
    assert_eq!((report.records, report.write_error.as_deref()), (0, Some("its reader takes nothing")));
    // Threads go on recording.
    one.emit(20_010, EVENTS);
    memory.will([Take(5), Fail(Errno::AGAIN)]);
    assert_eq!(bench.cycle(20_020), Cycle::Stalled);
    assert_eq!(bench.writer.watermark_ns, 1_000 + 10 + BLOCK);
    // It takes this block, and a bit of the next.
    memory.will([Take(1 << 20), Take(7), Fail(Errno::AGAIN)]);
    assert_eq!(bench.cycle(20_030), Cycle::Stalled);
    assert!(bench.writer.has_written(stamp(9 + BLOCK)) && !bench.writer.has_written(stamp(10 + BLOCK)));
    assert_eq!(bench.writer.report().records, BLOCK);
    assert_eq!(bench.cycle(20_040), Cycle::Idle, "only what was pending was left");
    assert!(bench.writer.has_written(stamp(20_010)));
    let mut expected = vec![Mapping(0, "first".into())];
    expected.extend((0..EVENTS).map(|event| Happened(1_010 + event, 1 + (event % 2) as u32, event)));
    expected.push(Happened(21_010, 1, EVENTS));
    assert!(bench.lines() == expected);
    let report = bench.writer.report();
    assert_eq!((report.records, report.lost.total(), report.late, report.write_error), (EVENTS + 1, 0, 0, None));
    assert_eq!(bench.writer.take_messages(), [""; 0], "a slow reader is nothing to talk about");
}

#[test]
fn when_a_reader_leaves_the_next_one_gets_a_whole_file_that_says_what_is_missing() {
    let (mut bench, memory) = Bench::with_memory(256, true);
    let thread = bench.thread(7);
    thread.emit(10, 1);
    bench.cycle(20);
    let first = memory.take();
    assert_eq!(lines(&first), [Mapping(0, "first".into()), Happened(1_010, 7, 1)]);
    for event in 2..5 {
        thread.emit(30 + event, event);
    }
    // One is handed over whole, and a half.
    memory.will([Take(EVENT + 20), Fail(Errno::PIPE), Fail(Errno::NXIO)]);
    assert_eq!(bench.cycle(40), Cycle::Stalled);
    memory.take();
    let report = bench.writer.report();
    assert_eq!((report.records, report.lost.write_failed), (2, 2));
    assert_eq!(report.write_error.as_deref(), Some("nobody reads it"));
    // While nobody reads, records wait.
    thread.emit(50, 5);
    assert_eq!(bench.cycle(60), Cycle::Stalled);
    bench.cycle(70);
    let second = [
        // In one thread, what comes next cannot be earlier than the last that was lost.
        Dropped(1_033, 0, 2),
        Dropped(1_034, 0, 0),
        Mapping(0, "first".into()),
        Happened(1_050, 7, 5),
    ];
    assert_eq!(bench.lines()[..1], second[..1]);
    let report = bench.writer.report();
    assert_eq!((report.records, report.lost.total(), report.late, &report.write_error), (3, 2, 0, &None));
    assert_eq!(bench.lines()[2..], second[2..]);
    // The next that leaves is not worth another word.
    thread.emit(80, 6);
    memory.will([Fail(Errno::PIPE)]);
    bench.cycle(90);
    let message = "simpletrace: memory cannot be written: its reader has left; \
                   events wait for the next one as long as there is room for them";
    assert_eq!(bench.writer.take_messages(), [message]);
}

#[test]
fn losses_that_two_readers_did_not_get_to_know_the_third_does() {
    let (mut bench, memory) = Bench::with_memory(256, true);
    let thread = bench.thread(7);
    thread.emit(10, 1);
    memory.will([Fail(Errno::PIPE), Fail(Errno::PIPE), Fail(Errno::PIPE)]);
    (0..3).for_each(|cycle| assert_eq!(bench.cycle(20 + cycle), Cycle::Stalled));
    memory.take();
    thread.emit(30, 2);
    bench.cycle(40);
    let lines = bench.lines();
    assert_eq!(
        (&lines[0], &lines[2..]),
        (&Dropped(1_010, 0, 1), &[Mapping(0, "first".into()), Happened(1_030, 7, 2)][..])
    );
    assert_eq!(bench.writer.report().lost.write_failed, 1);
}

#[test]
fn when_there_is_room_again_the_file_goes_on_behind_a_gap() {
    let (mut bench, memory) = Bench::with_memory(256, false);
    let thread = bench.thread(7);
    thread.emit(10, 1);
    thread.emit(11, 2);
    // Not even a name goes in whole.
    memory.will([Take(NAME - 1), Fail(Errno::NOSPC)]);
    bench.cycle(20);
    assert_eq!(bench.lines(), [], "cut back to whole records");
    thread.emit(30, 3);
    bench.cycle(RETRY_NS - 1);
    assert_eq!(bench.writer.report().lost.write_failed, 3, "not tried before its time");
    memory.will([Take(DROPPED + 5), Fail(Errno::DQUOT)]);
    assert_eq!(bench.cycle(20 + RETRY_NS), Cycle::Took(0));
    assert_eq!(bench.lines(), [Dropped(1_010, 0, 3)], "tried, and room for half of it");
    thread.emit(30 + RETRY_NS, 4);
    bench.cycle(40 + RETRY_NS);
    assert_eq!(bench.cycle(30 + 2 * RETRY_NS), Cycle::Took(0));
    thread.emit(50 + 2 * RETRY_NS, 5);
    bench.cycle(60 + 2 * RETRY_NS);
    let (since_ns, until_ns) = (1_030 + RETRY_NS, 1_040 + RETRY_NS);
    let last_ns = 1_050 + 2 * RETRY_NS;
    let lines = bench.lines();
    let [first, more, end, rest @ ..] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!(*first, Dropped(1_010, 0, 3));
    // The end of the gap before was not written: it is the same gap, of which more is told.
    assert!(matches!(more, Dropped(ns, 0, 1) if (1_010..=since_ns).contains(ns)), "{more:?}");
    assert!(matches!(end, Dropped(ns, 0, 0) if (until_ns..last_ns).contains(ns)), "{end:?}");
    assert_eq!(*rest, [Mapping(0, "first".into()), Happened(last_ns, 7, 5)]);
    let report = bench.writer.report();
    assert_eq!((report.records, report.lost.write_failed, report.late), (1, 4, 0));
    assert_eq!((report.write_error.as_deref(), report.bytes as usize), (None, 24 + 3 * DROPPED + NAME + EVENT));
    assert_eq!(bench.writer.take_messages().len(), 1);
}

#[test]
fn a_file_whose_header_did_not_fit_begins_with_it_when_there_is_room() {
    let memory = Memory::default();
    memory.will([Take(23), Fail(Errno::NOSPC)]);
    let mut output = Output::to_memory(memory.clone(), false);
    assert_eq!(output.begin(0).unwrap_err().raw_os_error(), Some(Errno::NOSPC.raw_os_error()));
    assert_eq!(memory.bytes.lock().unwrap().len(), 0);
    assert!(!output.retry(RETRY_NS - 1) && output.retry(RETRY_NS));
    assert_eq!(output.write_out(RETRY_NS).bytes, 24);
    assert_eq!(lines(&memory.take()), []);
}

#[test]
fn a_file_that_fails_for_good_is_not_tried_again() {
    for error in [Errno::IO, Errno::FBIG] {
        let (mut bench, memory) = Bench::with_memory(256, false);
        let thread = bench.thread(7);
        memory.will([Fail(error)]);
        thread.emit(10, 1);
        bench.cycle(20);
        thread.emit(30, 2);
        bench.cycle(3 * RETRY_NS);
        assert_eq!(bench.lines(), []);
        let report = bench.writer.report();
        assert_eq!((report.lost.write_failed, report.lost.total()), (2, 2));
        assert_eq!(bench.cycle(4 * RETRY_NS), Cycle::Idle);
        assert_eq!(bench.writer.take_messages().len(), 1);
    }
}

#[test]
fn a_recording_that_ends_before_its_reader_takes_anything_counts_what_is_left() {
    let (mut bench, memory) = Bench::with_memory(256, true);
    let thread = bench.thread(7);
    thread.emit(10, 1);
    thread.emit(11, 2);
    // Half of the second.
    memory.will([Take(NAME + EVENT + 20)].into_iter().chain([Fail(Errno::AGAIN); 100]));
    bench.at(20);
    let mut waits = 0;
    bench.writer.finish(|| {
        thread.emit(30 + waits, 3 + waits);
        waits += 1;
        waits < 5
    });
    let report = bench.writer.report();
    assert_eq!((report.records, report.lost.write_failed, report.lost.total()), (1, 6, 6));
    assert_eq!(report.threads[0].records, 7);
    let message = "simpletrace: memory cannot be written: its reader takes nothing; events are lost";
    assert_eq!(bench.writer.take_messages(), [message]);
    assert_eq!(memory.take().len(), 24 + NAME + EVENT + 20, "a pipe cannot be cut");
}

#[test]
fn a_recording_that_ends_waits_for_a_slow_reader() {
    let (mut bench, memory) = Bench::with_memory(256, true);
    let thread = bench.thread(7);
    thread.emit(10, 1);
    memory.will([Fail(Errno::AGAIN), Take(10), Fail(Errno::AGAIN), Take(3), Fail(Errno::AGAIN)]);
    bench.at(20);
    let mut waits = 0;
    assert!(bench.writer.finish(|| {
        waits += 1;
        waits < 5
    }));
    assert_eq!((waits, bench.lines().len()), (3, 2));
    assert_eq!(bench.writer.report().lost.total(), 0);
}

#[test]
fn a_recording_without_events_waits_for_no_reader() {
    let (output, memory) = (Memory::default(), Memory::default());
    output.will([Fail(Errno::NXIO); 100]);
    let mut bench = Bench::with(256, Output::to_memory(output, true), memory.bytes);
    assert!(bench.writer.finish(|| panic!("there is nothing to wait for")));
    assert_eq!(bench.writer.report().records, 0);
    assert_eq!(bench.writer.take_messages(), [""; 0]);
}

#[test]
fn from_a_target_that_takes_nothing_recording_goes_on_in_another_file() {
    let (mut bench, memory) = Bench::with_memory(256, true);
    let thread = bench.thread(7);
    thread.emit(10, 1);
    memory.will([Fail(Errno::AGAIN); 100]);
    bench.cycle(20);
    thread.emit(30, 2);
    bench.cycle(40);
    let (output, file) = Output::in_memory(usize::MAX);
    bench.at(50);
    bench.writer.set_output(output).unwrap();
    bench.cycle(60);
    let lines = lines(&file.lock().unwrap());
    assert_eq!(lines[0], Dropped(1_010, 0, 1), "what was pending");
    assert!(matches!(lines[1], Dropped(1_010..=1_030, 0, 0)));
    assert_eq!(lines[2..], [Mapping(0, "first".into()), Happened(1_030, 7, 2)], "what was in the ring");
    let report = bench.writer.report();
    assert_eq!((report.records, report.lost.write_failed, report.lost.total(), report.late), (1, 1, 1, 0));
    assert_eq!(bench.writer.take_messages().len(), 1);
}

#[test]
fn a_file_that_takes_nothing_at_all_leaves_the_one_before_in_use() {
    let mut bench = Bench::new();
    let thread = bench.thread(7);
    thread.emit(10, 1);
    bench.at(20);
    let (output, _) = Output::in_memory(23);
    let error = bench.writer.set_output(output).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(Errno::NOSPC.raw_os_error()));
    thread.emit(30, 2);
    bench.cycle(40);
    assert_eq!(bench.lines()[1..], [Happened(1_010, 7, 1), Happened(1_030, 7, 2)]);
    assert_eq!(bench.writer.report().bytes as usize, 24 + NAME + 2 * EVENT);
    assert_eq!(bench.writer.take_messages(), [""; 0]);
}

#[test]
fn while_off_rings_are_emptied_even_if_the_target_takes_nothing() {
    let (mut bench, memory) = Bench::with_memory(256, true);
    let thread = bench.thread(7);
    thread.emit(10, 1);
    memory.will([Fail(Errno::AGAIN); 3]);
    bench.cycle(20);
    bench.writer.set_off(true);
    thread.emit(30, 2);
    assert_eq!(bench.cycle(40), Cycle::Stalled);
    assert_eq!(bench.writer.report().lost.off, 1);
    bench.at(50);
    bench.writer.set_off(false);
    thread.emit(60, 3);
    bench.cycle(70);
    let lines = bench.lines();
    assert_eq!(lines[..3], [Mapping(0, "first".into()), Happened(1_010, 7, 1), Dropped(1_030, 0, 1)]);
    assert!(matches!(lines[3], Dropped(1_030..=1_060, 0, 0)));
    assert_eq!(lines[4..], [Happened(1_060, 7, 3)]);
}

#[test]
fn what_an_emit_holds_back_is_converted_by_the_anchors_around_it() {
    let mut bench = Bench::new();
    let thread = bench.thread(7);
    // Ten ticks are one ns, and five from tick 400 on: not for so long that anything would be wrong with it.
    let ticks = Arc::clone(&bench.ticks);
    bench.writer.take_anchor = Box::new(move |_| {
        let ticks = ticks.load(SeqCst);
        let ns = if ticks <= 400 { 1_000 + ticks / 10 } else { 1_040 + (ticks - 400) / 5 };
        Anchor { ticks, ns, error_ticks: 0 }
    });
    thread.emit_slowly(20, 1, || {
        for ns in [40, 60, 80, 100] {
            bench.at(ns);
            bench.writer.cycle(true);
        }
        assert_eq!(bench.lines(), []);
    });
    bench.cycle(120);
    assert_eq!(bench.lines()[1..], [Happened(1_020, 7, 1)]);
}

#[test]
fn a_gap_that_an_earlier_recording_has_told_is_neither_counted_nor_closed_in_the_next() {
    let mut bench = Bench::new();
    let thread = bench.thread(7);
    // A word each, behind two: eight and the mark of a gap go into the smallest ring beside its owner's record.
    for event in 0..20 {
        thread.emit(10 + event, event);
    }
    bench.at(40);
    assert!(bench.writer.finish(|| false));
    let report = bench.writer.report();
    let lost = report.lost.full;
    assert!(lost > 0 && report.records + lost == 20, "{report:?}");
    assert_eq!(bench.lines().last(), Some(&Dropped(1_010 + report.records, 7, lost)));
    let (output, file) = Output::in_memory(usize::MAX);
    let mut writer = Writeout::new(Setup {
        hub: bench.hub,
        registry: &REGISTRY,
        take_anchor: take_anchor(&bench.ticks),
        first_anchor: Some(Anchor { ticks: 0, ns: 1_000, error_ticks: 0 }),
        output,
        pid: None,
        from_ns: 1_050,
        segment: None,
    });
    writer.begin().unwrap();
    thread.emit(60, 20);
    bench.at(70);
    writer.cycle(true);
    assert_eq!(lines(&file.lock().unwrap()), [Mapping(0, "first".into()), Happened(1_060, 7, 20)]);
    let report = writer.report();
    assert_eq!((report.records, report.lost.total()), (1, 0));
}

#[test]
fn the_writers_own_events_are_counted_but_make_no_work() {
    let mut bench = Bench::new();
    bench.hub.count_writers_own();
    // Writing may cause more of them, for ever.
    assert_eq!(bench.cycle(10), Cycle::Idle);
    let thread = bench.thread(7);
    bench.cycle(20);
    assert_eq!(bench.lines(), [Dropped(0, 0, 1), Dropped(1_020, 0, 0)]);
    thread.emit(30, 1);
    bench.cycle(40);
    assert_eq!(
        bench.lines(),
        [Dropped(0, 0, 1), Dropped(1_020, 0, 0), Mapping(0, "first".into()), Happened(1_030, 7, 1)]
    );
    assert_eq!(bench.writer.report().lost.no_ring, 1);
}
