//! The atomics of the protocol: the standard library's, or loom's when the protocol is model-checked.

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicU64 as Word, Ordering, fence,
};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

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
    fence(Ordering::SeqCst);
}

/// A word of a ring. The protocol keeps its two sides apart so well that plain memory would do; under loom it is just that, and loom
/// reports every access that another one does not happen before. Where atomics are modelled as such, it could not: it executes
/// loads in their order, so that a word that is overwritten too early would never be read too late.
#[cfg(loom)]
pub(crate) struct Word(loom::cell::UnsafeCell<u64>);

// SAFETY: no two threads are let through at once: loom panics instead.
#[cfg(loom)]
unsafe impl Sync for Word {}

#[cfg(loom)]
impl Word {
    pub(crate) fn new(value: u64) -> Self {
        Self(loom::cell::UnsafeCell::new(value))
    }

    #[track_caller]
    pub(crate) fn load(&self, _: Ordering) -> u64 {
        // SAFETY: loom has checked that no store is concurrent.
        self.0.with(|word| unsafe { *word })
    }

    #[track_caller]
    pub(crate) fn store(&self, value: u64, _: Ordering) {
        // SAFETY: loom has checked that no other access is concurrent.
        self.0.with_mut(|word| unsafe { *word = value });
    }
}

#[cfg(loom)]
mod leak {
    use std::alloc::{Layout, dealloc};
    use std::cell::RefCell;

    thread_local! {
        static LEAKED: RefCell<Vec<(*mut u8, Layout)>> = const { RefCell::new(Vec::new()) };
    }

    /// Makes something live until [`free_leaked`]: loom runs all threads of a model on one, and a model very often.
    pub(crate) fn leak<T: ?Sized>(value: Box<T>) -> &'static T {
        let value: &'static T = Box::leak(value);
        let layout = Layout::for_value(value);
        LEAKED.with_borrow_mut(|leaked| leaked.push((std::ptr::from_ref(value).cast_mut().cast(), layout)));
        value
    }

    /// Frees what [`leak`] has returned, without dropping it: when a model has ended and begins anew.
    pub(crate) fn free_leaked() {
        for (memory, layout) in LEAKED.take() {
            // SAFETY: it was made by a box of that layout, and nothing of the execution before is in use any more.
            unsafe { dealloc(memory, layout) };
        }
    }
}
#[cfg(all(loom, test))]
pub(crate) use leak::free_leaked;
#[cfg(loom)]
pub(crate) use leak::leak;

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
