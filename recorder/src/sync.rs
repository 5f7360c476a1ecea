//! The atomics of the protocol: the standard library's, or loom's when the protocol is model-checked.

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};

/// The producer's half of the asymmetric barrier: keeps the compiler from moving what follows before what precedes, costs
/// nothing at run time. The writer's half ([`barrier`](crate::barrier)) makes the processor keep the order, too.
///
/// loom knows no such pair; there, both halves are full fences, which is stronger than what the processor does. The argument
/// for the real pair is written down in docs/RECORDER.md.
#[inline(always)]
pub(crate) fn light_barrier() {
    #[cfg(not(loom))]
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
    #[cfg(loom)]
    loom::sync::atomic::fence(Ordering::SeqCst);
}

/// Watches who touches which words of a ring, under loom: their atomics would hide from it that one side stores to a word before the
/// other has done with it, since loom never lets a load see a store that comes later.
pub(crate) struct Watch {
    #[cfg(loom)]
    words: Vec<loom::cell::UnsafeCell<()>>,
}

#[cfg(not(loom))]
impl Watch {
    pub(crate) const fn new(_words: usize) -> Self {
        Self {}
    }

    #[inline(always)]
    pub(crate) fn store(&self, _words: std::ops::Range<usize>) {}

    #[inline(always)]
    pub(crate) fn load(&self, _words: std::ops::Range<usize>) {}
}

#[cfg(loom)]
impl Watch {
    pub(crate) fn new(words: usize) -> Self {
        Self { words: (0..words).map(|_| loom::cell::UnsafeCell::new(())).collect() }
    }

    pub(crate) fn store(&self, words: std::ops::Range<usize>) {
        self.words[words].iter().for_each(|word| word.with_mut(|_| ()));
    }

    pub(crate) fn load(&self, words: std::ops::Range<usize>) {
        self.words[words].iter().for_each(|word| word.with(|_| ()));
    }
}

// SAFETY: what is in the cells is nothing, and loom's accesses to them are checked, not made.
#[cfg(loom)]
unsafe impl Sync for Watch {}

/// Declares a function that is `const`, except under loom, whose atomics cannot be made at compile time.
macro_rules! const_fn {
    ($(#[$attribute:meta])* $visibility:vis fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty $body:block) => {
        #[cfg(not(loom))]
        $(#[$attribute])*
        $visibility const fn $name($($argument: $type),*) -> $result $body
        #[cfg(loom)]
        $(#[$attribute])*
        $visibility fn $name($($argument: $type),*) -> $result $body
    };
}
pub(crate) use const_fn;
