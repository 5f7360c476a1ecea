//! The native half of the Python package `simpletrace`, which takes the place of QEMU's `scripts/simpletrace.py`.
//!
//! Records are read and decoded here without the GIL, gathered in blocks, and handed from here to the methods of the script's
//! analyzer: no Python runs for a record but the script's own. The classes that scripts know (`Analyzer2`, `Event`) are Python's, in
//! `python/`.
//!
//! Bytes come from a [`source`], become records in [`log`], find their declarations in [`declarations`], and go to [`calls`] or [`text`]. Columns come
//! from `simpletrace-rs`, and [`tables`] hands them to whoever speaks Arrow.

mod calls;
mod declarations;
mod faults;
mod log;
mod sink;
mod source;
mod tables;
mod text;
mod words;

/// The module as Python sees it.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::declarations::parse_events;
    #[pymodule_export]
    use crate::log::Log;
    #[pymodule_export]
    use crate::tables::{Stream, Table, open_events, open_operation, presets, read_events};
}
