//! What several tests share. Each test file is a crate of its own and uses only part of it.
#![allow(dead_code)]

pub(crate) mod bytes;
pub(crate) mod reading;
pub(crate) mod recovering;
pub(crate) mod shared;
pub(crate) mod sources;
