//! Recording an event.

use crate::arg::{Arg, pack, payload_bytes};
use crate::ring::MAX_PAYLOAD_BYTES;
use crate::sync::{Ordering, Word};
use crate::thread::{self, This};
use crate::{Event, HUB};

impl Event {
    /// Records the event with its arguments in the order of its declaration, if it is enabled.
    ///
    /// The arguments are evaluated in any case: where that costs something, ask [`is_enabled`](Self::is_enabled) first.
    #[inline(always)]
    pub fn emit(&self, args: &[Arg<'_>]) {
        if self.is_enabled() {
            self.record(args);
        }
    }

    /// Records the event with arguments that are all numbers, if it is enabled: the fastest way.
    #[inline(always)]
    pub fn emit_words<const N: usize>(&self, words: [u64; N]) {
        if self.is_enabled() {
            // A copy of its own, for the arguments not to be stored anywhere before the event is known to be enabled.
            self.record_words(&{ words });
        }
    }

    /// Records the event, enabled or not: for generated code, which asks before it evaluates the arguments. An event that is not
    /// registered is not recorded.
    ///
    /// Never blocks under the policy `discard`, allocates nothing, takes no lock and makes no system call but at a thread's first
    /// event and when its ring is at least half full. May be called in a signal handler.
    #[inline(never)]
    pub fn record(&self, args: &[Arg<'_>]) {
        let Some(id) = self.id() else { return };
        let Some(ring) = thread::ring().or_else(thread::register) else { return };
        // The ring refuses and counts what is too large: no ring is ever so empty that it takes this without a closer look.
        let bytes = payload_bytes(args).unwrap_or(u32::MAX);
        ring.emit(&HUB, id, bytes, This, move |words| pack(args, |index, word| put(words, index, word)));
    }

    /// Records the event with arguments that are all numbers, enabled or not; otherwise as [`record`](Self::record).
    // Not inlined, as a coroutine may go on on another thread behind an inlined access to a thread-local.
    #[inline(never)]
    pub fn record_words<const N: usize>(&self, args: &[u64; N]) {
        const { assert!(N * 8 <= MAX_PAYLOAD_BYTES as usize) };
        let Some(id) = self.id() else { return };
        let Some(ring) = thread::ring().or_else(thread::register) else { return };
        ring.emit(&HUB, id, N as u32 * 8, This, move |words| {
            for (word, arg) in words.iter().zip(args) {
                word.store(*arg, Ordering::Relaxed);
            }
        });
    }
}

#[inline(always)]
fn put(words: &[Word], index: usize, word: u64) {
    if let Some(place) = words.get(index) {
        place.store(word, Ordering::Relaxed);
    }
}
