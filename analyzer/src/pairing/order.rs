//! Puts what comes a little out of order back into order.
//!
//! QEMU takes a record's time before it takes its place in the file, hence neighbours from different threads may have changed places.

use std::collections::VecDeque;

/// How much earlier than the latest time so far something may be and still find its place, in ns.
pub(crate) const WINDOW_NS: u64 = 100_000_000;
/// How many are held back at most.
pub(crate) const WINDOW_ITEMS: usize = 1 << 16;

/// What has become of records that came too late.
pub(crate) fn late_means() -> String {
    format!("records came more than {} ms or {WINDOW_ITEMS} records too late to be put in order", WINDOW_NS / 1_000_000)
}

/// Hands on what it is given in order of time; of equal times, in the order in which they came.
pub(crate) struct Order<T> {
    waiting: VecDeque<(u64, T)>,
    /// The time of what was handed on last.
    released_ns: u64,
    /// How many came too late to find their place.
    pub(crate) late: u64,
}

impl<T> Default for Order<T> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), released_ns: 0, late: 0 }
    }
}

impl<T> Order<T> {
    /// Takes one, and hands on all that nothing earlier is expected for. One that comes too late is handed on at once.
    #[inline]
    pub(crate) fn push(&mut self, time_ns: u64, item: T, release: &mut impl FnMut(u64, T)) {
        match self.waiting.back() {
            Some(&(latest_ns, _)) if time_ns < latest_ns => return self.insert(time_ns, item, release),
            None if time_ns < self.released_ns => return self.insert(time_ns, item, release),
            _ => self.waiting.push_back((time_ns, item)),
        }
        while let Some(&(first_ns, _)) = self.waiting.front()
            && (time_ns - first_ns > WINDOW_NS || self.waiting.len() > WINDOW_ITEMS)
            && let Some((first_ns, first)) = self.waiting.pop_front()
        {
            self.released_ns = first_ns;
            release(first_ns, first);
        }
    }

    #[cold]
    fn insert(&mut self, time_ns: u64, item: T, release: &mut impl FnMut(u64, T)) {
        if time_ns < self.released_ns {
            self.late += 1;
            release(time_ns, item);
        } else {
            let at = self.waiting.partition_point(|&(other_ns, _)| other_ns <= time_ns);
            self.waiting.insert(at, (time_ns, item));
        }
    }

    /// The latest time so far, 0 before the first.
    pub(crate) fn latest_ns(&self) -> u64 {
        self.waiting.back().map_or(self.released_ns, |&(time_ns, _)| time_ns)
    }

    /// Hands on the rest.
    pub(crate) fn finish(&mut self, release: &mut impl FnMut(u64, T)) {
        for (time_ns, item) in self.waiting.drain(..) {
            self.released_ns = time_ns;
            release(time_ns, item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(times_ns: &[u64]) -> (Vec<(u64, usize)>, u64) {
        let (mut order, mut out) = (Order::default(), Vec::new());
        let mut release = |time_ns, item| out.push((time_ns, item));
        for (item, &time_ns) in times_ns.iter().enumerate() {
            order.push(time_ns, item, &mut release);
        }
        order.finish(&mut release);
        let late = order.late;
        (out, late)
    }

    #[test]
    fn neighbours_are_put_in_order_and_equals_are_left_as_they_came() {
        assert_eq!(ordered(&[5, 3, 4, 3, 9]), (vec![(3, 1), (3, 3), (4, 2), (5, 0), (9, 4)], 0));
        assert_eq!(ordered(&[]), (vec![], 0));
    }

    #[test]
    fn what_comes_too_late_comes_at_once_and_is_counted() {
        let w = WINDOW_NS;
        // 10 is out when something more than the window later comes.
        assert_eq!(ordered(&[10, 20, 10 + w, 11]), (vec![(10, 0), (11, 3), (20, 1), (10 + w, 2)], 0));
        assert_eq!(ordered(&[10, 20, 11 + w, 9]), (vec![(10, 0), (9, 3), (20, 1), (11 + w, 2)], 1));
    }

    #[test]
    fn no_more_are_held_back_than_fit_the_window() {
        let mut times_ns: Vec<u64> = (0..WINDOW_ITEMS as u64 + 1).map(|n| n + 10).collect();
        times_ns.push(9);
        let (out, late) = ordered(&times_ns);
        assert_eq!((out[0], out[1], late), ((10, 0), (9, WINDOW_ITEMS + 1), 1));
    }
}
