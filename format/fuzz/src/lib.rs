//! The bodies of the fuzz targets: plain functions over bytes that panic when a promise is broken.
//!
//! `scripts/fuzz` runs them under libFuzzer, `tests/corpus.rs` replays the committed corpus on any toolchain, and `cargo fuzz
//! run <target>` works from the `format` folder.
#![forbid(unsafe_code)]

mod arg;
mod durable;
mod printf;
mod reader;
mod recover;
mod roundtrip;
mod trace_events;

pub use durable::durable;
pub use printf::printf;
pub use reader::reader;
pub use recover::recover;
pub use roundtrip::roundtrip;
pub use trace_events::trace_events;
