//! The writer stepped by hand: threads, time and file are those of the test.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64 as Counter, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use simpletrace_format::{Record, SliceReader};

use super::*;
use crate::event::Event;
use crate::hub::WriterState;

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
        let hub: &'static Hub = Box::leak(Box::new(Hub::new()));
        // The smallest that there can be: 256 bytes.
        hub.rings.set_ring_bytes(256);
        hub.set_writer(WriterState::Running);
        REGISTRY.register(&[&FIRST]).unwrap();
        let ticks = Arc::new(Counter::new(0));
        let (output, file) = Output::in_memory(limit);
        let writer = Writeout::new(Setup {
            hub,
            registry: &REGISTRY,
            take_anchor: take_anchor(&ticks),
            first_anchor: Some(Anchor { ticks: 0, ns: 1_000, error_ticks: 0 }),
            output,
            pid: None,
            from_ns: 0,
        });
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
    assert!(bench.writer.complaint().expect("a complaint").contains("memory cannot be written"));
    // From now on they are only counted.
    thread.emit(30, 4);
    bench.cycle(40);
    let report = bench.writer.report();
    assert_eq!((report.records, report.lost.write_failed, report.bytes), (2, 3, 24 + 25 + 80));

    let (output, file) = Output::in_memory(usize::MAX);
    bench.at(50);
    bench.writer.set_output(output);
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
    });
    thread.emit(60, 3);
    bench.at(70);
    writer.cycle(true);
    assert_eq!(lines(&file.lock().unwrap())[1..], [Happened(1_060, 99, 3)]);
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
