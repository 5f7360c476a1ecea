//! Code that records the events of QEMU's trace-events files: Rust, for [`simpletrace-recorder`].
//!
//! In `build.rs`:
//!
//! ```no_run
//! fn main() -> Result<(), simpletrace_codegen::Error> {
//!     simpletrace_codegen::Codegen::new().file("trace-events").rust("trace.rs")
//! }
//! ```
//!
//! and in the program:
//!
//! ```text
//! mod trace {
//!     include!(concat!(env!("OUT_DIR"), "/trace.rs"));
//! }
//!
//! simpletrace_recorder::register(&trace::EVENTS)?;
//! trace::disk_read(offset, "sda");
//! ```
//!
//! docs/CODEGEN.md shows the rest. The [`Declarations`] are what is generated from, and know nothing of the language that comes out.
//!
//! [`simpletrace-recorder`]: https://docs.rs/simpletrace-recorder

#![forbid(unsafe_code)]

mod build;
mod declarations;
mod error;
mod rust;

pub use build::Codegen;
pub use declarations::Declarations;
pub use error::Error;
