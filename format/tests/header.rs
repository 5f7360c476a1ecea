//! The file header: what is taken, what is refused and how it is called.

mod support;

use simpletrace_format::{ByteOrder, ErrorKind, Header, SliceReader, StreamReader, Version};
use support::bytes::Bytes;
use support::reading::{Fault, Owned, both, fault};

const ORDERS: [ByteOrder; 2] = [ByteOrder::Little, ByteOrder::Big];

#[test]
fn a_header_alone_is_a_valid_file_without_records() {
    for (bytes, byte_order) in Bytes::both_orders().into_iter().zip(ORDERS) {
        let file = bytes.header().build();
        let header = Header { version: Version::V4, byte_order };

        assert_eq!(Header::parse(&file).unwrap(), header);
        assert_eq!(SliceReader::new(&file).unwrap().header(), header);
        assert_eq!(StreamReader::new(&file[..]).unwrap().header(), header);
        let outcome = both(&file);
        assert_eq!(outcome.records, Vec::<Owned>::new());
        assert_eq!((outcome.stopped_at, outcome.fault), (Some(24), None));
    }
}

#[test]
fn the_byte_order_without_a_header_is_that_of_the_first_record() {
    let order = |head: &[u8]| ByteOrder::of_first_record(head);
    for (bytes, byte_order) in Bytes::both_orders().into_iter().zip(ORDERS) {
        let event = bytes.clone().event(1, 2, 3, |args| args).build();
        assert_eq!(order(&event), byte_order);
        for length in [1, 255, 256, 1024] {
            let mapping = bytes.clone().mapping(0, &"n".repeat(length)).build();
            assert_eq!(order(&mapping[..20]), byte_order, "{length}");
        }
    }
    // Where nothing speaks for either.
    for head in [&[][..], &[0; 19], &[0; 24], &[0xff; 24]] {
        assert_eq!(order(head), ByteOrder::Little);
    }
}

#[test]
fn the_header_bytes_are_those_that_a_file_of_either_order_starts_with() {
    let little = b"\xff\xff\xff\xff\xff\xff\xff\xff\xb4\x29\xa4\x0a\xcb\x77\xb1\xf2\x04\0\0\0\0\0\0\0";
    let big = b"\xff\xff\xff\xff\xff\xff\xff\xff\xf2\xb1\x77\xcb\x0a\xa4\x29\xb4\0\0\0\0\0\0\0\x04";

    assert_eq!(Header::parse(little).unwrap().byte_order, ByteOrder::Little);
    assert_eq!(Header::parse(big).unwrap().byte_order, ByteOrder::Big);
    assert_eq!(Bytes::little().header().build(), little);
    assert_eq!(Bytes::big().header().build(), big);
}

#[test]
fn a_file_that_ends_inside_its_header_is_refused_with_its_size() {
    for bytes in Bytes::both_orders() {
        let file = bytes.header().build();
        for cut in 0..24 {
            assert_eq!(fault(&file[..cut]), Fault::new(0, &ErrorKind::HeaderCut(cut)), "{cut}");
        }
    }
}

#[test]
fn a_wrong_first_word_is_not_a_trace_file() {
    for first in [0, 1, 0xffff_ffff_ffff_fffe, 0x7fff_ffff_ffff_ffff] {
        let file = Bytes::little().u64(first).u64(0xf2b1_77cb_0aa4_29b4).u64(4).build();
        let kind = ErrorKind::NotATrace(first, 0xf2b1_77cb_0aa4_29b4);
        assert_eq!(fault(&file), Fault::new(0, &kind));
        assert_eq!(Header::sniff(&file), None);
    }
}

#[test]
fn a_magic_that_is_off_by_any_one_bit_is_not_a_trace_file() {
    for bit in 0..64 {
        let magic = 0xf2b1_77cb_0aa4_29b4 ^ 1 << bit;
        let file = Bytes::little().u64(u64::MAX).u64(magic).u64(4).build();
        let kind = ErrorKind::NotATrace(u64::MAX, magic);
        assert_eq!(fault(&file), Fault::new(0, &kind), "bit {bit}");
    }
}

#[test]
fn the_words_of_a_file_that_is_no_trace_are_told_as_little_endian() {
    assert_eq!(
        fault(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0"),
        Fault::new(0, &ErrorKind::NotATrace(0x0001_0102_464c_457f, 0))
    );
}

#[test]
fn sixteen_bytes_tell_that_a_short_file_is_no_trace() {
    let file = Bytes::little().zeros(23).build();
    for cut in 0..16 {
        assert_eq!(fault(&file[..cut]), Fault::new(0, &ErrorKind::HeaderCut(cut)), "{cut}");
    }
    for cut in 16..24 {
        assert_eq!(fault(&file[..cut]), Fault::new(0, &ErrorKind::NotATrace(0, 0)), "{cut}");
    }
}

#[test]
fn every_version_is_told_by_its_header() {
    for (number, version) in [(0, Version::V0), (2, Version::V2), (3, Version::V3), (4, Version::V4)] {
        assert_eq!((Version::from_number(number), version.number()), (Some(version), number));
        assert_eq!(version.to_string(), number.to_string());
        for (bytes, byte_order) in Bytes::both_orders().into_iter().zip(ORDERS) {
            let file = bytes.header_of_version(number).build();
            let header = Header { version, byte_order };
            assert_eq!(Header::parse(&file[..24]).unwrap(), header);
            assert_eq!(SliceReader::new(&file).unwrap().header(), header);
            assert_eq!(StreamReader::new(&file[..]).unwrap().header(), header);
            assert_eq!(version.header_bytes(), file.len());
            let outcome = both(&file);
            assert_eq!((outcome.records, outcome.fault), (Vec::new(), None));
            assert_eq!(outcome.stopped_at, Some(file.len() as u64));
        }
    }
    assert_eq!(Version::ALL.map(Version::number), [0, 2, 3, 4]);
}

#[test]
fn a_file_that_ends_inside_its_longer_header_of_version_0_is_refused_with_its_size() {
    for bytes in Bytes::both_orders() {
        let file = bytes.header_of_version(0).build();
        for cut in 0..64 {
            assert_eq!(fault(&file[..cut]), Fault::new(0, &ErrorKind::HeaderCut(cut)), "{cut}");
        }
    }
}

#[test]
fn versions_that_never_were_are_unsupported() {
    let others = [1, 5, 4 << 56, u64::MAX];
    for bytes in Bytes::both_orders() {
        for version in others {
            let file = bytes.clone().header_of_version(version).build();
            let kind = ErrorKind::UnsupportedVersion(version);
            assert_eq!(fault(&file), Fault::new(0, &kind));
        }
    }
}

#[test]
fn the_byte_order_of_any_version_can_be_sniffed_from_sixteen_bytes() {
    for (bytes, byte_order) in Bytes::both_orders().into_iter().zip(ORDERS) {
        for version in [0, 2, 3, 4, 5] {
            let file = bytes.clone().header_of_version(version).build();
            assert_eq!(Header::sniff(&file), Some(byte_order));
            assert_eq!(Header::sniff(&file[..16]), Some(byte_order));
            assert_eq!(Header::sniff(&file[..15]), None);
        }
    }
}

#[test]
fn the_predicates_tell_a_file_that_is_no_trace_from_one_that_is_torn() {
    let refused = [
        Bytes::little().header().build()[..20].to_vec(),
        Bytes::little().zeros(24).build(),
        Bytes::little().header_of_version(1).build(),
        Bytes::little().header_of_version(0).build()[..40].to_vec(),
    ];
    for file in refused {
        let error = SliceReader::new(&file).unwrap_err();
        assert!(error.is_not_a_trace() && !error.is_torn_tail(), "{error}");
    }

    let torn = Bytes::little().header().u32(1).build();
    let error = SliceReader::new(&torn).unwrap().next_record().unwrap_err();
    assert!(error.is_torn_tail() && !error.is_not_a_trace(), "{error}");

    let damaged = Bytes::little().header().u64(7).build();
    let error = SliceReader::new(&damaged).unwrap().next_record().unwrap_err();
    assert!(!error.is_torn_tail() && !error.is_not_a_trace(), "{error}");
}
