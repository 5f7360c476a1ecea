//! What several tests share. Each test file is a crate of its own and uses only part of it.
#![allow(dead_code)]

pub(crate) mod csv;
pub(crate) mod program;
pub(crate) mod python;
pub(crate) mod sample;
pub(crate) mod shared;

use std::io::{Read as _, Write as _};

pub(crate) use program::Dir;

/// Compresses as `gzip` does.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Compresses as `zstd` does.
pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 0).unwrap()
}

/// Decompresses as `zstd -d` does.
pub(crate) fn unzstd(bytes: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    zstd::Decoder::new(bytes).unwrap().read_to_end(&mut whole).unwrap();
    whole
}

/// Fails at the first line where two outputs part, which `assert_eq!` would bury in megabytes.
pub(crate) fn assert_same_lines(found: &[u8], expected: &[u8], what: &str) {
    let lines = |bytes: &[u8]| bytes.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
    let (found, expected) = (lines(found), lines(expected));
    for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
        let [found, expected] = [found, expected].map(|line| String::from_utf8_lossy(line));
        assert_eq!(found, expected, "{what}, line {}", index + 1);
    }
    assert_eq!(found.len(), expected.len(), "{what}, number of lines");
}
