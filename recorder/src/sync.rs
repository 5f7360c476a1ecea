//! The atomics, locks and barriers of the protocol: the standard library's, or loom's when the protocol is model-checked.

#[cfg(not(loom))]
pub(crate) use std::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering},
};

#[cfg(loom)]
pub(crate) use loom::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering},
};
