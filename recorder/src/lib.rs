//! Records a program's events into QEMU's simpletrace format.

mod clock;
mod event;
mod sync;
