//! The writer's half of the asymmetric barrier: membarrier(2).
//!
//! It makes every running thread of the process execute a full barrier, so that those who record need none. What it proves is
//! in docs/RECORDER.md.

/// Whether the kernel does it. Registers the process the first time; to be called before the barrier is used.
#[cfg(all(target_os = "linux", not(loom)))]
pub(crate) fn is_available() -> bool {
    use rustix::thread::{MembarrierCommand, MembarrierQuery, membarrier, membarrier_query};
    membarrier_query().contains(MembarrierQuery::PRIVATE_EXPEDITED)
        && membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
}

/// Makes every thread of the process execute a full barrier before it returns. `false` if that failed.
#[cfg(all(target_os = "linux", not(loom)))]
pub(crate) fn heavy_barrier() -> bool {
    rustix::thread::membarrier(rustix::thread::MembarrierCommand::PrivateExpedited).is_ok()
}

#[cfg(all(not(target_os = "linux"), not(loom)))]
pub(crate) fn is_available() -> bool {
    false
}

#[cfg(all(not(target_os = "linux"), not(loom)))]
pub(crate) fn heavy_barrier() -> bool {
    false
}

#[cfg(loom)]
pub(crate) fn is_available() -> bool {
    true
}

/// A full fence, which pairs with those that producers have under loom only.
#[cfg(loom)]
pub(crate) fn heavy_barrier() -> bool {
    loom::sync::atomic::fence(loom::sync::atomic::Ordering::SeqCst);
    true
}
