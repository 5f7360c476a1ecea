//! The trace-events language: what a file of event declarations says.

mod ctype;

pub use ctype::{ArgType, Width};
