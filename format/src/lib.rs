//! QEMU's simpletrace file format and its trace-events language.
#![forbid(unsafe_code)]

pub mod events;
mod value;

pub use value::Value;
