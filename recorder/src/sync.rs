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
