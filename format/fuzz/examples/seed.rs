//! Writes the committed corpus anew, into `corpus/`: `cargo run --no-default-features --example seed`.
//!
//! Every file comes from the byte builder of the format's own tests, or from a counter; none from a real trace.

use std::fs;
use std::path::Path;

#[allow(dead_code)]
#[path = "../../tests/support/bytes.rs"]
mod bytes;

use bytes::Bytes;

fn main() -> std::io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let targets = [
        ("durable", durable()),
        ("printf", printf()),
        ("reader", reader()),
        ("recover", recover()),
        ("roundtrip", roundtrip()),
        ("trace_events", trace_events()),
    ];
    for (target, files) in targets {
        let folder = corpus.join(target);
        fs::create_dir_all(&folder)?;
        for (name, bytes) in files {
            fs::write(folder.join(name), bytes)?;
        }
    }
    Ok(())
}

/// Segments with one thing to do each, laid out as the target says.
fn durable() -> Vec<(String, Vec<u8>)> {
    let words = |words: &[u64]| words.iter().fold(Bytes::little(), |bytes, &word| bytes.u64(word)).build();
    // Anchors, no_ring and names; length to off.
    let segment = |no_ring: u64, missing: u64, is_off: u64| {
        let front = [1, 0, 0, 3_000, 2_000, no_ring, 6];
        let checkpoint = [85, 1_000, 0, u64::MAX, 1_005, missing, 0, 1_008, 2_000, 1_000, 0, is_off];
        [&words(&front)[..], &words(&checkpoint), &words(&[6]), b"\x01\0a\x01\0b"].concat()
    };
    let ring = |tail: u64, lost: u64, taken: u64, records: &[u64]| {
        // What is in front of the records, and what is behind the end, stays zero.
        let mut room = vec![0; taken as usize % 32];
        room.extend(records);
        let bytes = words(&room);
        [&words(&[32, tail, 42, lost, 1, taken, 0, 0, 42, bytes.len() as u64])[..], &bytes].concat()
    };
    let front = |kind: u64, payload_bytes: u64, id: u64| 1 << 63 | kind << 56 | payload_bytes << 32 | id;
    let (event, start, end, owner) = (front(0, 8, 0), front(1, 0, 0), front(2, 8, 0), front(3, 40, 0));
    let events = ring(6, 0, 0, &[1_010, event, 7, 1_020, event + 1, 8]);
    let gap = ring(10, 4, 0, &[1_010, event, 7, 1_015, start, 1_016, end, 4, 1_030, start]);
    let hand_over = ring(41, 0, 34, &[1_010, owner, 43, 0, 0, 0, 0]);
    let wraps = ring(36, 0, 30, &[1_010, event, 7, 1_020, event, 8]);
    let ticks = ring(5, 0, 0, &[2_500, event & !(1 << 63), 7, 3_500, front(0, 0, 9) & !(1 << 63)]);
    let bad = ring(5, 0, 0, &[1_010, event, 7, 1_020, front(0, 9, 1)]);
    [
        ("empty", Vec::new()),
        ("losses", segment(3, 4, 0)),
        ("off", [segment(3, 4, 1), gap.clone(), events.clone()].concat()),
        ("events", [segment(0, 0, 0), events.clone(), ticks].concat()),
        ("gap", [segment(0, 0, 0), gap, hand_over].concat()),
        ("wraps", [segment(0, 2, 0), wraps, events].concat()),
        ("bad", [segment(0, 0, 0), bad].concat()),
    ]
    .map(|(name, bytes)| (name.to_owned(), bytes))
    .into()
}

/// Good files with a damaged stretch between their records.
fn recover() -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for (order, bytes) in [("little", Bytes::little()), ("big", Bytes::big())] {
        for version in [0, 2, 3, 4] {
            let event = |file: Bytes, id| file.event_of_version(version, id, 1_000 + id, 42, |args| args.u64(7));
            let header = || {
                let file = bytes.clone().header_of_version(version);
                if version == 4 { file.mapping(1, "a").mapping(2, "b").mapping(3, "c") } else { file }
            };
            let before = || event(event(header(), 1), 2);
            let after = |file: Bytes| [3, 1, 2].into_iter().fold(file, event).build();
            let cases = [
                ("zeros", after(before().zeros(100))),
                ("noise", after(before().bytes(b"\x07nothing that is a record"))),
                ("second", after(before().header_of_version(version))),
                ("mapping", after(before().zeros(9).mapping(9, "late"))),
                ("version-5", after(before().header_of_version(5))),
                ("long", after(before().u64(1).u64(1).u64(1_000).u32(80).u32(42))),
            ];
            files.extend(cases.map(|(name, file)| (format!("version-{version}-{name}-{order}"), file)));
        }
    }
    files
}

/// Files that are right, and files with one fault each, in both byte orders.
fn reader() -> Vec<(String, Vec<u8>)> {
    let mut files = vec![("empty".to_owned(), Vec::new()), ("zeros".to_owned(), vec![0; 64])];
    for (order, bytes) in [("little", Bytes::little()), ("big", Bytes::big())] {
        let header = || bytes.clone().header();
        let mapped = || header().mapping(0, "a_read");
        let cases = [
            ("header", header()),
            ("header-cut", bytes.clone().u64(u64::MAX).u64(0xf2b1_77cb_0aa4_29b4)),
            ("version-1", bytes.clone().header_of_version(1)),
            ("headerless", bytes.clone().event(7, 1_000, 42, |args| args.u64(7)).dropped(2_000, 42, 3)),
            ("mapping", mapped()),
            ("event", mapped().event(0, 1_000, 42, |args| args.u64(7).string(b"disk0").u64(1))),
            ("noarg", mapped().event(0, 1_000, 42, |args| args)),
            ("dropped", mapped().dropped(2_000, 42, 3)),
            ("late", mapped().event(0, 1, 1, |args| args).mapping(1, "b").event(1, 2, 1, |args| args.u64(2))),
            ("reserved", mapped().event(1 << 63, 1, 1, |args| args.string(b""))),
            ("torn", mapped().event_of_length(0, 1, 48, 1).zeros(9)),
            ("torn-name", header().u64(0).u64(1).u32(9).bytes(b"virt")),
            ("type-7", mapped().u64(7)),
            ("second", mapped().header().mapping(0, "b")),
            ("short", mapped().event_of_length(0, 1, 23, 1)),
            ("long", mapped().event_of_length(0, 1, 1 << 31, 1)),
            ("dropped-length", mapped().event_of_length(u64::MAX - 1, 1, 40, 1).zeros(16)),
            ("trace-begin", mapped().event_of_length(u64::MAX, 1, 24, 1)),
            ("zeros", mapped().zeros(40)),
            ("name-long", header().u64(0).u64(1).u32(1025)),
            ("name-bytes", header().u64(0).u64(1).string(b"\xc3\x28")),
        ];
        files.extend(cases.map(|(name, file)| (format!("{name}-{order}"), file.build())));
        for version in [0, 2, 3] {
            let cases = earlier(version, &bytes);
            files.extend(cases.map(|(name, file)| (format!("version-{version}-{name}-{order}"), file.build())));
        }
    }
    files
}

/// The same for an earlier version.
fn earlier(version: u64, bytes: &Bytes) -> [(&'static str, Bytes); 9] {
    let header = || bytes.clone().header_of_version(version);
    let event = |file: Bytes| file.event_of_version(version, 5, 1_000, 42, |args| args.u64(7).string(b"disk0").u64(1));
    [
        ("header", header()),
        ("event", event(event(header()))),
        ("noarg", header().event_of_version(version, 0, 1_000, 42, |args| args)),
        ("narrow", header().event_of_version(version, 0, 1_000, 42, |args| args.u64(0xffff_fffb).u64(0))),
        ("dropped", event(header().dropped_of_version(version, 2_000, 42, 4_294_967_090))),
        ("torn", event(header()).u64(5).zeros(9)),
        ("zeros", event(header()).zeros(70)),
        ("second", event(header()).header_of_version(version)),
        // In version 0 the length is part of the count.
        ("length", event(header()).untyped_event_of_length(u64::MAX - 1, 1, 40, 1).zeros(40)),
    ]
}

/// Any bytes stand for a list of calls; these are of different lengths, and some calls among them are refused.
fn roundtrip() -> Vec<(String, Vec<u8>)> {
    let mut state = 1_u32;
    let mut byte = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..16).map(|index| (format!("calls-{index:02}"), (0..16 + index * 14).map(|_| byte()).collect())).collect()
}

/// A format, a zero byte, and bytes for the arguments.
fn printf() -> Vec<(String, Vec<u8>)> {
    let formats = [
        r#""plain""#,
        r#""%d %u %x %p %s""#,
        r#""a=0x%" PRIx64 " b=%" PRIu64 "u""#,
        r#""%-10s|%+5d|%#o|%08lx|%.3s""#,
        r#""%*d %.*s %-*.*lld""#,
        r#""%c%% %hhd %hu %zu %td %ji""#,
        r#""tab\t quote\" \x41 \101 \\""#,
        r#""%5000d %.5000d""#,
        r#""%m %f %g %C""#,
        r#""%n""#,
        r#""%1$d""#,
        r#""%""#,
        r#""open"#,
        r#"PRIodd "x""#,
        r#""%" HWADDR_PRIx "" TARGET_FMT_plx"#,
    ];
    let args = (0_u8..96).map(|byte| byte.wrapping_mul(37)).collect::<Vec<_>>();
    (0..)
        .zip(formats)
        .map(|(index, format)| {
            let bytes = [format.as_bytes(), &[0], &args[index..]].concat();
            (format!("format-{index:02}"), bytes)
        })
        .collect()
}

/// Lines that are right, and lines with one fault each.
fn trace_events() -> Vec<(String, Vec<u8>)> {
    let texts: [&[u8]; 22] = [
        b"# nothing\n\n",
        b"a(void) \"no arguments\"\n",
        b"disk_read(void *d, uint64_t sector, const char *name) \"d %p sector %\"PRIu64\" %s\"\n",
        b"disable off(int x) \"%d\"\n",
        b"vcpu tick(int n) \"n=%d\"\n",
        b"tcg op(uint64_t a) \"trans\", \"exec %\"PRIx64\n",
        b"vcpu tcg both(TCGv a) \"t\", \"e %x\"\n",
        b"twice(int a)\ntwice(const char *a)\n",
        b"types(char c, bool b, size_t s, unsigned long l, int8_t i, char **pp, const uint8_t *buf)\n",
        b"old(hwaddr at, target_ulong x, struct foo *p)\n",
        b"no_newline(int a)",
        b"crlf(int a)\r\nlone(int a)\r",
        b"\xef\xbb\xbfmark(int a)\n",
        b"odd(\n",
        b"odd)\n",
        b"odd\n",
        b"two words(int)\n",
        b"comma(int a,)\n",
        b"typo(unit32_t x) \"%u\"\n",
        b"mismatch(int a) \"%s %d\"\n",
        b"store(int a) \"%n\\n\"\n",
        b"bytes(int \xff) \"\xc3\x28\"\n",
    ];
    (0..).zip(texts).map(|(index, text): (u32, _)| (format!("lines-{index:02}"), text.to_vec())).collect()
}
