//! Time: the processor's time-stamp counter, and how its ticks become nanoseconds of `CLOCK_MONOTONIC`.
//!
//! The counter is read once per event; the clock once per cycle of the writer, together with the counter: an anchor. Between two
//! anchors time is taken to go evenly, so an error cannot add up, and is no larger than what reading the two at one moment costs.

use std::collections::VecDeque;
use std::fmt;

/// Whether the counter exists on this kind of machine.
const HAS_TSC: bool = cfg!(all(target_arch = "x86_64", not(miri)));

/// Reads the time-stamp counter. Where there is none, the clock.
///
/// The processor may read it before earlier instructions are done: that is why the writer's barrier is needed.
#[inline(always)]
pub(crate) fn tsc() -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let (low, high): (u32, u32);
        // SAFETY: rdtsc reads a register. It is not said to leave memory alone, so that the compiler keeps it between the stores
        // before and behind it.
        unsafe {
            std::arch::asm!("rdtsc", out("eax") low, out("edx") high, options(nostack, preserves_flags));
        }
        u64::from(high) << 32 | u64::from(low)
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    monotonic_ns()
}

/// Reads `CLOCK_MONOTONIC`, in ns.
// By the C library's function, not rustix's: that looks for the vDSO itself, and crashes under valgrind, which hides it.
pub(crate) fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing. It cannot fail: every system has the clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Why the time-stamp counter cannot be used, if so. Safe in a signal handler.
pub(crate) fn tsc_unfit() -> Option<&'static str> {
    if !HAS_TSC {
        return Some("this machine has no time-stamp counter that this program knows");
    }
    if !is_invariant() {
        return Some("the time-stamp counter does not run at a constant rate");
    }
    // The kernel watches over the counter, and takes another source when it finds it unreliable.
    let mut source = [0; 16];
    match read_clocksource(&mut source) {
        Some(b"tsc\n") => None,
        Some(_) => Some("the kernel does not take its own time from the time-stamp counter"),
        None => Some("the kernel does not say what it takes its time from"),
    }
}

fn is_invariant() -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::__cpuid;
        const EXTENDED: u32 = 0x8000_0000;
        const POWER: u32 = 0x8000_0007;
        const INVARIANT_TSC: u32 = 1 << 8;
        __cpuid(EXTENDED).eax >= POWER && __cpuid(POWER).edx & INVARIANT_TSC != 0
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    false
}

fn read_clocksource(buffer: &mut [u8; 16]) -> Option<&[u8]> {
    use rustix::fs::{Mode, OFlags, open};
    let path = c"/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let bytes = rustix::io::read(&file, &mut *buffer).ok()?;
    buffer.get(..bytes)
}

/// The counter and the clock at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Anchor {
    /// What the counter said; ns, too, if the anchor is of the clock alone.
    pub(crate) ticks: u64,
    pub(crate) ns: u64,
    /// How many ticks at most may lie between the two, either way.
    pub(crate) error_ticks: u64,
}

impl Anchor {
    /// How often to try for a reading that nothing interrupts.
    const TRIES: u32 = 5;
    /// What a reading that nothing interrupts takes at most, in ticks: no need to try again.
    const GOOD_TICKS: u64 = 200;

    /// Reads both, or the clock alone. No stamp that was taken before has more ticks.
    pub(crate) fn take(monotonic: bool) -> Self {
        if monotonic {
            let ns = monotonic_ns();
            return Self { ticks: ns, ns, error_ticks: 0 };
        }
        let mut best: Option<(u64, Self)> = None;
        for _ in 0..Self::TRIES {
            let before = tsc();
            // Without fences the processor could read the counter outside of what the two readings enclose.
            load_fence();
            let ns = monotonic_ns();
            load_fence();
            let after = tsc();
            // Backwards, it encloses nothing.
            let Some(width) = after.checked_sub(before) else { continue };
            if best.is_none_or(|(least, _)| width < least) {
                best = Some((width, Self { ticks: before + width / 2, ns, error_ticks: width.div_ceil(2) }));
            }
            if width <= Self::GOOD_TICKS {
                break;
            }
        }
        load_fence();
        best.map_or_else(|| Self { ticks: tsc(), ns: monotonic_ns(), error_ticks: 0 }, |(_, anchor)| anchor)
    }
}

/// Waits until the counter has been read: what comes next must not overtake it.
fn load_fence() {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: every x86-64 processor has the instruction.
    unsafe {
        std::arch::x86_64::_mm_lfence();
    }
}

/// What is wrong with the counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClockFault {
    Backwards,
    Rate,
}

impl fmt::Display for ClockFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Backwards => "the time-stamp counter went backwards",
            Self::Rate => "the time-stamp counter changed its rate by more than 1000 ppm",
        })
    }
}

/// The time between two anchors.
#[derive(Debug, Clone, Copy)]
struct Segment {
    /// The ticks where it begins and ends.
    from: u64,
    to: u64,
    from_ns: u64,
    /// Nanoseconds per tick, times 2^48.
    factor: u64,
}

impl Segment {
    const SHIFT: u32 = 48;

    fn between(from: Anchor, to: Anchor) -> Self {
        let ticks = u128::from((to.ticks - from.ticks).max(1));
        let ns = u128::from(to.ns - from.ns) << Self::SHIFT;
        // Rounded up, so that whole ns stay whole, as long as what that adds up to stays below 1 ns and the end is not overshot: about
        // 30 hours.
        let factor = if ticks < 1 << Self::SHIFT { ns.div_ceil(ticks) } else { ns / ticks };
        Self { from: from.ticks, to: to.ticks, from_ns: from.ns, factor: u64::try_from(factor).unwrap_or(u64::MAX) }
    }

    #[inline]
    fn ns(&self, ticks: u64) -> u64 {
        if ticks >= self.from {
            self.from_ns.saturating_add(self.scale(ticks - self.from))
        } else {
            self.from_ns.saturating_sub(self.scale(self.from - ticks))
        }
    }

    /// How long so many ticks take, in ns; `u64::MAX` if longer than that.
    #[inline]
    fn scale(&self, ticks: u64) -> u64 {
        u64::try_from((u128::from(ticks) * u128::from(self.factor)) >> Self::SHIFT).unwrap_or(u64::MAX)
    }

    /// As [`scale`](Self::scale), and rounded up.
    fn span_ns(&self, ticks: u64) -> u64 {
        self.scale(ticks).saturating_add(1)
    }
}

/// Makes nanoseconds of ticks: exactly those of the anchors at the anchors, evenly between them.
///
/// Another anchor changes nothing at or before those that are there. What is beyond the last is at the last rate for the time being, never
/// before the last anchor; with the next one it may turn out earlier or later.
#[derive(Debug, Default)]
pub(crate) struct Converter {
    first: Option<Anchor>,
    /// Until here the rate has been looked at.
    checked: Option<Anchor>,
    last: Option<Anchor>,
    segments: VecDeque<Segment>,
    /// The segment that was used last.
    recent: usize,
    error_ns: u64,
}

impl Converter {
    /// Parts per million that the rate may differ from what it has been.
    const RATE_PPM: u64 = 1000;
    /// Over shorter times the readings themselves say little about the rate, in ns.
    const JITTER_NS: u64 = 20_000;
    /// The rate is looked at over as long as this, in ns, lest the jitter that is allowed hide it: 20 ppm of it.
    const CHECK_NS: u64 = 1_000_000_000;

    /// Adds an anchor, later than those before. One at which something is wrong is not added.
    pub(crate) fn push(&mut self, anchor: Anchor) -> Result<(), ClockFault> {
        let (Some(first), Some(checked), Some(last)) = (self.first, self.checked, self.last) else {
            (self.first, self.checked, self.last) = (Some(anchor), Some(anchor), Some(anchor));
            return Ok(());
        };
        if anchor.ticks < last.ticks || anchor.ns < last.ns {
            return Err(ClockFault::Backwards);
        }
        self.checked = Some(Self::check(first, checked, anchor)?);
        if anchor.ticks > last.ticks {
            self.append(last, anchor);
        }
        Ok(())
    }

    /// Compares the rate since `checked` with what it was before. Returns since when to look at it next time.
    fn check(first: Anchor, checked: Anchor, anchor: Anchor) -> Result<Anchor, ClockFault> {
        let (ticks, ns) = (anchor.ticks - checked.ticks, anchor.ns - checked.ns);
        if checked.ticks == first.ticks {
            // There is no rate to compare with. But it cannot be nought.
            return match ticks {
                0 if ns > Self::JITTER_NS => Err(ClockFault::Rate),
                0 => Ok(checked),
                _ => Ok(anchor),
            };
        }
        let long = Segment::between(first, checked);
        let expected_ns = long.scale(ticks);
        let error_ns = |one: Anchor, other: Anchor| long.span_ns(one.error_ticks.saturating_add(other.error_ticks));
        let allowed_ns = (expected_ns / 1_000_000 * Self::RATE_PPM)
            .saturating_add(Self::JITTER_NS)
            .saturating_add(error_ns(checked, anchor))
            // What the long rate itself may be wrong by.
            .saturating_add(expected_ns.saturating_mul(error_ns(first, checked)) / (checked.ns - first.ns).max(1));
        if ns.abs_diff(expected_ns) > allowed_ns {
            return Err(ClockFault::Rate);
        }
        Ok(if ns >= Self::CHECK_NS { anchor } else { checked })
    }

    fn append(&mut self, last: Anchor, anchor: Anchor) {
        let segment = Segment::between(last, anchor);
        self.error_ns = self.error_ns.max(segment.span_ns(anchor.error_ticks.max(last.error_ticks)));
        self.segments.push_back(segment);
        self.last = Some(anchor);
    }

    /// Converts `ticks`: never decreasing as they increase.
    #[inline]
    pub(crate) fn ns(&mut self, ticks: u64) -> u64 {
        match self.segments.get(self.recent) {
            Some(segment) if segment.from <= ticks && ticks < segment.to => segment.ns(ticks),
            _ => self.look_up(ticks),
        }
    }

    fn look_up(&mut self, ticks: u64) -> u64 {
        let behind = self.segments.partition_point(|segment| segment.from <= ticks);
        self.recent = behind.saturating_sub(1);
        let Some(segment) = self.segments.get(self.recent) else {
            return self.last.map_or(0, |anchor| anchor.ns);
        };
        match self.last {
            // Beyond the last anchor, from it on.
            Some(last) if ticks >= last.ticks => Segment { from: last.ticks, from_ns: last.ns, ..*segment }.ns(ticks),
            _ => segment.ns(ticks),
        }
    }

    /// Whether `ticks` are not earlier than what is remembered.
    pub(crate) fn reaches_back_to(&self, ticks: u64) -> bool {
        self.segments.front().is_some_and(|segment| segment.from <= ticks)
    }

    /// Forgets what is only needed for times before `ticks`.
    pub(crate) fn forget_before(&mut self, ticks: u64) {
        while self.segments.len() > 1 && self.segments[0].to <= ticks {
            self.segments.pop_front();
            self.recent = self.recent.saturating_sub(1);
        }
    }

    /// The largest error of an anchor so far, in ns.
    pub(crate) const fn error_ns(&self) -> u64 {
        self.error_ns
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn anchor(ticks: u64, ns: u64) -> Anchor {
        Anchor { ticks, ns, error_ticks: 10 }
    }

    fn converter(anchors: &[(u64, u64)]) -> Converter {
        let mut converter = Converter::default();
        for &(ticks, ns) in anchors {
            converter.push(anchor(ticks, ns)).expect("a sound counter");
        }
        converter
    }

    #[test]
    fn ticks_become_the_clocks_ns_at_the_anchors_and_evenly_between() {
        // 2.5 GHz, then a little slower.
        let mut converter = converter(&[(1_000, 70), (26_000, 10_070), (51_000, 20_072)]);
        for (ticks, ns) in [
            (1_000, 70),
            (1_002, 70),
            (1_003, 71),
            (13_500, 5_070),
            (25_999, 10_069),
            (26_000, 10_070),
            (38_500, 15_071),
            (51_000, 20_072),
            // Before and beyond, at the rate of the nearest.
            (750, 0),
            (500, 0),
            (76_000, 30_074),
        ] {
            assert_eq!(converter.ns(ticks), ns, "{ticks} ticks");
        }
    }

    #[test]
    fn without_a_rate_all_is_at_the_one_anchor() {
        assert_eq!(converter(&[(1_000, 70)]).ns(5_000), 70);
        assert_eq!(Converter::default().ns(5_000), 0);
    }

    #[test]
    fn a_segment_of_days_does_not_overflow_or_go_beyond_its_end() {
        const DAYS_NS: u64 = 40 * 86_400 * 1_000_000_000;
        let ticks = DAYS_NS / 10 * 26 + 7;
        let mut converter = converter(&[(0, 5), (ticks, DAYS_NS)]);
        assert_eq!(converter.ns(ticks), DAYS_NS, "as long as it is the last");
        converter.push(anchor(ticks + 2_600, DAYS_NS + 1_000)).expect("a sound counter");
        // A 2^48th of a ns per tick: 32 ns after 40 days.
        assert!((DAYS_NS - 33..=DAYS_NS).contains(&converter.ns(ticks - 1)));
        assert_eq!(converter.ns(ticks), DAYS_NS);
    }

    #[test]
    fn what_is_forgotten_is_no_longer_reached_and_the_rest_stays_as_it_was() {
        let mut converter = converter(&[(0, 100), (1_000, 1_100), (2_000, 2_100), (3_000, 3_100)]);
        assert!(converter.reaches_back_to(0));
        converter.forget_before(2_000);
        assert!(!converter.reaches_back_to(1_999));
        assert!(converter.reaches_back_to(2_000));
        assert_eq!((converter.ns(2_500), converter.ns(3_000)), (2_600, 3_100));
        // The last one stays in any case: it has the rate.
        converter.forget_before(9_000);
        assert_eq!(converter.ns(3_500), 3_600);
    }

    #[test]
    fn a_counter_that_goes_backwards_or_changes_its_rate_is_found_out() {
        let mut converter = converter(&[(0, 0), (2_000_000_000, 1_000_000_000)]);
        assert_eq!(converter.push(anchor(1_999_999_999, 1_000_000_001)), Err(ClockFault::Backwards));
        assert_eq!(converter.push(anchor(2_000_000_001, 999_999_999)), Err(ClockFault::Backwards));
        // 900 ppm in a second are within bounds, 1,100 are not.
        assert_eq!(converter.push(anchor(4_000_000_000, 2_001_100_000)), Err(ClockFault::Rate));
        assert_eq!(converter.push(anchor(4_000_000_000, 2_000_900_000)), Ok(()));
    }

    #[test]
    fn over_a_short_time_the_readings_may_be_off_by_what_reading_costs() {
        let mut converter = converter(&[(0, 0), (2_000_000_000, 1_000_000_000)]);
        assert_eq!(converter.push(anchor(2_000_100_000, 1_000_065_000)), Ok(()), "15 us off in 50 us");
        assert_eq!(converter.push(anchor(2_000_200_000, 1_000_140_000)), Err(ClockFault::Rate), "25 us off in 50 us");
    }

    #[test]
    fn a_counter_that_stands_still_is_found_out() {
        let mut rated = converter(&[(0, 0), (2_000_000_000, 1_000_000_000)]);
        // 20 us, and the 10 ns that the brackets are together at 2 GHz, rounded up to 11.
        assert_eq!(rated.push(anchor(2_000_000_000, 1_000_020_011)), Ok(()));
        assert_eq!(rated.push(anchor(2_000_000_000, 1_000_020_012)), Err(ClockFault::Rate));
        // One more anchor at the same ticks is not a second value there.
        assert_eq!(rated.ns(2_000_000_000), 1_000_000_000);
        let mut unrated = converter(&[(5, 0)]);
        assert_eq!(unrated.push(anchor(5, 20_000)), Ok(()));
        assert_eq!(unrated.push(anchor(5, 20_001)), Err(ClockFault::Rate));
    }

    /// How many anchors, each 1 ms after the one before, it takes to find out that the counter is now slower, if 10,000 are enough.
    fn anchors_until_found_out(slower_ppm: u64) -> Option<u64> {
        let mut converter = converter(&[(0, 0), (2_000_000_000, 1_000_000_000)]);
        (1..=10_000).find(|cycle| {
            let ns = 1_000_000_000 + cycle * (1_000_000 + slower_ppm);
            match converter.push(anchor(2_000_000_000 + cycle * 2_000_000, ns)) {
                Ok(()) => false,
                Err(fault) => fault == ClockFault::Rate,
            }
        })
    }

    #[test]
    fn a_rate_that_is_off_is_found_out_however_short_the_cycles() {
        // In n ms, n * (15 - 1) us are more than 20 us at n = 2; n * 100 ns are at n = 201, as the brackets explain some 20 ns.
        assert_eq!(anchors_until_found_out(15_000), Some(2));
        assert_eq!(anchors_until_found_out(1_100), Some(201));
        assert_eq!(anchors_until_found_out(900), None);
    }

    #[test]
    fn an_anchor_at_which_something_is_wrong_is_not_added() {
        let mut converter = converter(&[(0, 0), (2_000_000_000, 1_000_000_000)]);
        assert_eq!(converter.push(anchor(4_000_000_000, 3_000_000_000)), Err(ClockFault::Rate));
        assert_eq!(converter.push(anchor(1, 3_000_000_000)), Err(ClockFault::Backwards));
        assert_eq!(converter.ns(4_000_000_000), 2_000_000_000);
    }

    #[test]
    fn what_a_broken_counter_says_does_not_wrap_around() {
        // 4 ns per tick: 2^66 ns at the end.
        let mut converter = converter(&[(0, 0), (1_000_000, 4_000_000)]);
        assert_eq!(converter.ns(1 << 61), 1 << 63);
        assert_eq!(converter.ns(u64::MAX), u64::MAX);
    }

    #[test]
    fn the_error_is_half_the_widest_bracket_at_the_rate_there() {
        let mut converter = Converter::default();
        for (ticks, ns, error_ticks) in [(0, 0, 30), (2_000_000, 1_000_000, 10), (4_000_000, 2_000_000, 80)] {
            converter.push(Anchor { ticks, ns, error_ticks }).expect("a sound counter");
            // Rounded up.
            assert_eq!(converter.error_ns(), [0, 16, 41][(ns / 1_000_000) as usize]);
        }
    }

    #[test]
    fn an_anchor_has_no_fewer_ticks_than_what_was_stamped_before_and_no_more_than_what_is_behind() {
        for _ in 0..100 {
            let (before_ns, before) = (monotonic_ns(), tsc());
            let anchor = Anchor::take(false);
            assert!((before..=tsc()).contains(&anchor.ticks) || !HAS_TSC);
            assert!((before_ns..=monotonic_ns()).contains(&anchor.ns));
            let of_the_clock = Anchor::take(true);
            assert_eq!((of_the_clock.ticks, of_the_clock.error_ticks), (of_the_clock.ns, 0));
        }
    }

    /// What happens to a converter.
    #[derive(Debug, Clone)]
    enum Step {
        /// So many ticks and ns later.
        Push(u64, u64),
        /// What is before this anchor.
        Forget(prop::sample::Index),
    }

    /// The ns at `ticks` on the straight line through two anchors, rounded down as a whole number of them from the first.
    fn on_line([(from, from_ns), (to, to_ns)]: [(u64, u64); 2], ticks: u64) -> i128 {
        let (run, rise) = (i128::from(to - from), i128::from(to_ns - from_ns));
        i128::from(from_ns) + (i128::from(ticks) - i128::from(from)) * rise / run
    }

    proptest! {
        #[test]
        fn at_every_step_time_is_in_order_exact_at_anchors_and_unchanged_by_what_comes_later(
            steps in prop::collection::vec(
                prop_oneof![
                    3 => (1 << 17..10_000_000_000u64, 0..5_000_000_000u64).prop_map(|(ticks, ns)| Step::Push(ticks, ns)),
                    1 => any::<prop::sample::Index>().prop_map(Step::Forget),
                ],
                1..20,
            ),
            picks in prop::collection::vec(any::<prop::sample::Index>(), 40),
        ) {
            const START: (u64, u64) = (1 << 40, 1 << 60);
            /// How far before and beyond the anchors to look, in ticks.
            const BEYOND: u64 = 1 << 34;
            let mut converter = converter(&[START, (START.0 + 2_000_000, START.1 + 1_000_000)]);
            let mut anchors = vec![START, (START.0 + 2_000_000, START.1 + 1_000_000)];
            for step in steps {
                let &(last, last_ns) = anchors.last().expect("two");
                let places = |anchors: &[(u64, u64)]| {
                    let (from, to) = (anchors[0].0 - BEYOND, anchors[anchors.len() - 1].0 + BEYOND);
                    let mut ticks: Vec<u64> = anchors.iter().flat_map(|&(at, _)| [at - 1, at, at + 1]).collect();
                    ticks.extend(picks.iter().map(|pick| from + pick.index((to - from) as usize) as u64));
                    ticks.sort_unstable();
                    ticks
                };
                match step {
                    Step::Push(ticks, ns) => {
                        let known: Vec<u64> = places(&anchors).into_iter().filter(|&ticks| ticks <= last).collect();
                        let before: Vec<u64> = known.iter().map(|&ticks| converter.ns(ticks)).collect();
                        // No counter has such rates; see the tests of `push` for those.
                        converter.append(anchor(last, last_ns), anchor(last + ticks, last_ns + ns));
                        anchors.push((last + ticks, last_ns + ns));
                        let after: Vec<u64> = known.iter().map(|&ticks| converter.ns(ticks)).collect();
                        prop_assert_eq!(before, after);
                    }
                    Step::Forget(pick) => {
                        let kept = pick.index(anchors.len());
                        converter.forget_before(anchors[kept].0);
                        // What has the last rate stays.
                        anchors.drain(..kept.min(anchors.len() - 2));
                        prop_assert!(converter.reaches_back_to(anchors[0].0));
                        prop_assert!(!converter.reaches_back_to(anchors[0].0 - 1));
                    }
                }
                for &(ticks, ns) in &anchors {
                    prop_assert_eq!(converter.ns(ticks), ns);
                }
                let mut previous = 0;
                for ticks in places(&anchors) {
                    let ns = converter.ns(ticks);
                    prop_assert!(ns >= previous, "{} is before {} at {} ticks", ns, previous, ticks);
                    previous = ns;
                    let behind = anchors.partition_point(|&(at, _)| at <= ticks).clamp(1, anchors.len() - 1);
                    let exact = on_line([anchors[behind - 1], anchors[behind]], ticks);
                    prop_assert!((i128::from(ns) - exact).abs() <= 1, "{} is not {}", ns, exact);
                }
            }
        }

        #[test]
        fn time_never_goes_backwards_and_is_that_of_exact_fractions(
            start in 0..1u64 << 50,
            steps in prop::collection::vec((1..10_000_000_000u64, 0..5_000_000_000u64), 1..20),
            picks in prop::collection::vec(any::<prop::sample::Index>(), 50),
        ) {
            let mut anchors = vec![(start, start / 3)];
            for (ticks, ns) in steps {
                let &(last_ticks, last_ns) = anchors.last().expect("one");
                anchors.push((last_ticks + ticks, last_ns + ns));
            }
            let mut converter = Converter::default();
            // The rates are no counter's; what is tested here is the arithmetic.
            for &(ticks, ns) in &anchors {
                let anchor = anchor(ticks, ns);
                match converter.last {
                    Some(last) => converter.append(last, anchor),
                    None => converter.push(anchor).expect("the first"),
                }
            }
            let span = anchors.last().expect("one").0 - start;
            let mut ticks: Vec<u64> = picks.iter().map(|pick| start + pick.index(span as usize + 1) as u64).collect();
            ticks.sort_unstable();
            let mut last = 0;
            for ticks in ticks {
                let ns = converter.ns(ticks);
                prop_assert!(ns >= last);
                last = ns;
                let segment = anchors.windows(2).rfind(|pair| pair[0].0 <= ticks).expect("its segment");
                let [(from, from_ns), (to, to_ns)] = [segment[0], segment[1]];
                let exact = u128::from(from_ns)
                    + u128::from(ticks - from) * u128::from(to_ns - from_ns) / u128::from(to - from);
                prop_assert!((0..=1).contains(&(i128::from(ns) - exact as i128)), "{ns} is not {exact}");
            }
        }
    }

    #[test]
    fn stamps_of_the_counter_are_those_of_the_clock_within_the_stated_error() {
        if let Some(reason) = tsc_unfit() {
            println!("SKIPPED: {reason}");
            return;
        }
        let mut converter = Converter::default();
        converter.push(Anchor::take(false)).expect("the first");
        let mut stamps = Vec::new();
        for _ in 0..20 {
            for _ in 0..500 {
                let before = monotonic_ns();
                let ticks = tsc();
                stamps.push((before, ticks, monotonic_ns()));
            }
            converter.push(Anchor::take(false)).expect("a sound counter");
        }
        // And rounded down.
        let error_ns = converter.error_ns() + 1;
        for (before, ticks, after) in stamps {
            let ns = converter.ns(ticks);
            assert!(
                (before.saturating_sub(error_ns)..=after + error_ns).contains(&ns),
                "{ns} is not between {before} and {after}, give or take {error_ns}"
            );
        }
    }
}
