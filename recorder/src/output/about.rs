//! What a file says of itself, behind its header.

use std::time::{SystemTime, UNIX_EPOCH};

use simpletrace_format::Facts;

use crate::{HUB, clock};

/// The facts of a file that begins now.
pub(super) fn facts(part: Option<u64>) -> Facts {
    let mut facts = Facts::default();
    let before_ns = clock::monotonic_ns();
    let realtime = SystemTime::now().duration_since(UNIX_EPOCH);
    let after_ns = clock::monotonic_ns();
    // Not before 1970.
    if let Ok(realtime) = realtime {
        // In the middle between the two readings that enclose it.
        facts
            .set_anchor(before_ns + (after_ns - before_ns) / 2, u64::try_from(realtime.as_nanos()).unwrap_or(u64::MAX));
    }
    if let Ok(boot_id) = std::fs::read_to_string("/proc/sys/kernel/random/boot_id") {
        facts.set(Facts::BOOT_ID, boot_id.trim_end());
    }
    facts.set(Facts::CLOCK, if HUB.is_monotonic() { "monotonic" } else { "tsc" });
    facts.set(Facts::HOST, &rustix::system::uname().nodename().to_string_lossy());
    if let Some(program) = std::env::current_exe().ok().as_ref().and_then(|path| path.file_name()) {
        facts.set(Facts::PROGRAM, &program.to_string_lossy());
    }
    facts.set(Facts::PID, &std::process::id().to_string());
    facts.set(Facts::RECORDER, concat!("simpletrace-rs ", env!("CARGO_PKG_VERSION")));
    facts.set(Facts::RECORDING, &format!("{:x}", HUB.recording()));
    if let Some(part) = part {
        facts.set(Facts::PART, &part.to_string());
    }
    facts
}
