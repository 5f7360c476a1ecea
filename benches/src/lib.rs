//! What the benchmarks of simpletrace-rs are made of; README.md has the method and the results.

pub mod baseline;
