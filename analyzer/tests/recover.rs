//! `recover`: the trace of a killed recorder, finished from the segment that it left.
#![cfg(target_os = "linux")]

#[path = "../../format/tests/support/segment.rs"]
#[allow(dead_code)]
mod segment;
mod support;

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use segment::{Builder, RingBuilder};
use serde_json::json;
use simpletrace_format::durable::{CHECKPOINT_BYTES, CHECKPOINTS_AT, Kind, RINGS_AT};
use simpletrace_format::{ByteOrder, EventId, TraceWriter, Value};
use support::Dir;
use support::program::Run;

/// What a recorder had written.
fn trace() -> TraceWriter<Vec<u8>> {
    let mut trace = TraceWriter::new(Vec::new(), ByteOrder::Little).unwrap();
    trace.mapping(EventId(0), "a").unwrap();
    trace.event(EventId(0), 1_000, 42, &[Value::Unsigned(1)]).unwrap();
    trace
}

/// What was left in `builder`'s rings.
fn ring() -> RingBuilder {
    RingBuilder::new(64, 0, 42).event(0, 1_010, 1).event(1, 1_020, 2)
}

/// `trace()` with what is in `ring()`.
fn whole() -> Vec<u8> {
    let mut whole = trace();
    for (id, name, at_ns, arg) in [(0, "a", 1_010, 1), (1, "b", 1_020, 2)] {
        whole.mapping(EventId(id), name).unwrap();
        whole.event(EventId(id), at_ns, 42, &[Value::Unsigned(arg)]).unwrap();
    }
    whole.into_inner()
}

const REPORT: &str = "file      t: 85 bytes, now 207\npid       1\nadded     2 events\nlost      nothing\n";

fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().to_owned()
}

/// When a process began, as its parent has it.
fn start_time(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(19).unwrap().parse().unwrap()
}

/// A folder with a trace `t` and the folder `shm` with its segment, which `build` makes of one for a trace of that length. Its process
/// is that with the id 1, at another time.
fn left(trace: &[u8], build: impl FnOnce(Builder) -> Builder) -> Dir {
    let dir = Dir::with([("t", trace)]);
    fs::create_dir(dir.path("shm")).unwrap();
    put_segment(&dir, "t", trace.len(), build);
    dir
}

/// Puts the segment of a trace of that name where recorders put it; returns its name.
fn put_segment(dir: &Dir, name: &str, length: usize, build: impl FnOnce(Builder) -> Builder) -> String {
    let metadata = fs::metadata(dir.path(name)).unwrap();
    let builder = build(Builder::new(length as u64).with(|to| {
        to.pid = 1;
        to.start_time = u64::MAX;
        to.boot_id = boot_id();
        to.checkpoint.device = metadata.dev();
        to.checkpoint.inode = metadata.ino();
        to.checkpoint.path = dir.path(name).into_os_string().into_encoded_bytes();
    }));
    let segment = segment_name(dir, name);
    dir.write(&segment, builder.build());
    segment
}

fn segment_name(dir: &Dir, name: &str) -> String {
    let metadata = fs::metadata(dir.path(name)).unwrap();
    format!("shm/simpletrace-{:x}-{}", metadata.dev(), metadata.ino())
}

fn recover(dir: &Dir) -> Run {
    dir.run("recover t --segments shm")
}

fn segments(dir: &Dir) -> usize {
    fs::read_dir(dir.path("shm")).unwrap().count()
}

#[test]
fn what_was_left_is_added_once() {
    let dir = left(&trace().into_inner(), |to| to.ring(ring()));
    let run = recover(&dir).silent();
    assert_eq!(run.text(), REPORT);
    assert_eq!(dir.read("t"), whole());
    assert_eq!(segments(&dir), 0);
    assert_eq!(
        dir.run("check t").exits(0).text(),
        "sound: 3 mappings, 3 events, 0 dropped records, 207 bytes understood\n"
    );
    let run = recover(&dir).exits(2);
    assert_eq!(
        run.stderr,
        "error: there is nothing to recover for t: no segment of it is in shm. It was recorded without `durable`, or finished \
         cleanly, or has been recovered; `simpletrace-rs info` reads it as it is\n"
    );
    assert_eq!(dir.read("t"), whole());
}

#[test]
fn the_report_is_json_if_asked_for() {
    let dir = left(&trace().into_inner(), |to| {
        let mut ring = ring().gap_start(1_030);
        ring.losses = [3, 2, 1, 4];
        to.ring(ring).with(|to| {
            to.no_ring = 5;
            to.checkpoint.missing = 6;
            to.checkpoint.missing_since_ns = 1_005;
            to.rings_elsewhere = 1;
        })
    });
    let run = dir.run("recover t --segments shm -F json").exits(0);
    let lost = json!({"refused": 6, "nested": 4, "no_ring": 5, "not_written": 6, "off": 0});
    let expected = json!({
        "schema": "simpletrace-rs.recover/1", "file": "t", "pid": 1, "from_bytes": 85, "to_bytes": dir.read("t").len(),
        "records": 2, "first_ns": 1010, "last_ns": 1020, "lost": lost, "unnamed": 0, "rings_elsewhere": 1,
        "damaged_rings": []
    });
    assert_eq!(run.json(), expected);
    assert_eq!(run.stderr, "warning: 1 ring had no room in the segment: what was in there died with the process\n");
    assert_eq!(dir.run("info t -F json").exits(0).json()["dropped"], 21);
}

#[test]
fn what_is_written_and_not_accounted_for_is_written_anew() {
    for behind in [&b"\x01\0\0"[..], &[7; 5000]] {
        let trace = trace().into_inner();
        let dir = left(&trace, |to| to.ring(ring()));
        dir.write("t", [&trace, behind].concat());
        assert_eq!(recover(&dir).silent().text(), REPORT);
        assert_eq!(dir.read("t"), whole());
    }
}

#[test]
fn a_trace_that_was_not_begun_gets_its_header() {
    for there in [0, 10, 24, 45, 60, 85, 100] {
        let dir = left(&whole()[..there], |to| to.ring(ring()).with(|to| to.checkpoint.length = 0));
        recover(&dir).silent();
        // All but what was in the trace, and not in the rings.
        assert_eq!(dir.read("t"), [&whole()[..24], &whole()[85..]].concat(), "{there}");
    }
}

#[test]
fn a_recovery_that_was_cut_off_anywhere_is_done_again() {
    let segment = |to: Builder| to.ring(ring().gap_start(1_030)).with(|to| to.rings[0].losses[0] = 3);
    let dir = left(&trace().into_inner(), segment);
    let segment_name = segment_name(&dir, "t");
    let bytes = dir.read(&segment_name);
    recover(&dir).silent();
    let whole = dir.read("t");
    assert_eq!(whole.len(), 207 + 40);
    for length in 85..=whole.len() {
        // The same file, as the segment says.
        dir.write("t", &whole[..length]);
        dir.write(&segment_name, &bytes);
        recover(&dir).silent();
        assert!(dir.read("t") == whole, "{length}");
    }
}

#[test]
fn a_trace_that_has_another_name_is_found() {
    let dir = left(&trace().into_inner(), |to| to.ring(ring()));
    fs::rename(dir.path("t"), dir.path("u")).unwrap();
    fs::rename(dir.path(&segment_name(&dir, "u")), dir.path("shm/simpletrace-being-made")).unwrap();
    symlink("u", dir.path("t")).unwrap();
    recover(&dir).silent();
    assert_eq!(dir.read("u"), whole());
}

#[test]
fn the_segment_of_a_file_that_is_gone_is_not_taken_for_that_of_its_successor() {
    let dir = left(&trace().into_inner(), |to| to.ring(ring()));
    let name = segment_name(&dir, "t");
    // An older one by the very name, and one that has no room for records where the trace is.
    let old = dir.read(&name);
    put_segment(&dir, "t", 24, |to| to.with(|to| to.anchors = vec![[0, 100]]).with(|to| to.checkpoint.last_ns = 90));
    fs::write(dir.path(&format!("{name}-1")), old).unwrap();
    recover(&dir).silent();
    assert_eq!(dir.read("t"), whole());
    assert_eq!(segments(&dir), 1);
    let run = dir.run(&format!("recover --remove {name}")).exits(0);
    assert_eq!(run.stderr, format!("note: {name} removed: 0 records lost with it\n"));
}

#[test]
fn a_trace_that_is_not_as_it_was_left_is_left_alone() {
    let trace = trace().into_inner();
    let mut later = trace.clone();
    later[85 - 24..85 - 16].copy_from_slice(&60_000_000_u64.to_le_bytes());
    let mut other_end = TraceWriter::new(Vec::new(), ByteOrder::Little).unwrap();
    other_end.mapping(EventId(0), "another").unwrap();
    other_end.event(EventId(0), 1_000, 42, &[Value::Unsigned(1)]).unwrap();
    let other_end = other_end.into_inner();
    let mut header = trace.clone();
    header[16] = 3;
    let no_record = "at 85 bytes, where the segment goes on, it has no record that ends there and is as old";
    let cases = [
        (
            &trace[..84],
            "it has 84 bytes, and had 85: somebody cut it; `simpletrace-rs repair` keeps what is whole of it",
        ),
        (&later[..], no_record),
        (&other_end[..], no_record),
        (&header[..], "it does not begin as a trace of version 4"),
    ];
    for (bytes, why) in cases {
        let dir = left(&trace, |to| to.ring(ring()));
        let name = segment_name(&dir, "t");
        dir.write("t", bytes);
        let run = recover(&dir).exits(2);
        let expected = format!("error: t is not as its recorder left it, so {name} is of no use for it: {why}\n");
        assert_eq!(run.stderr, expected);
        assert_eq!(dir.read("t"), bytes);
        assert_eq!(segments(&dir), 1);
    }
    // Of a trace that was not begun, by the first record.
    let dir = left(&later, |to| to.ring(ring()).with(|to| to.checkpoint.length = 0));
    recover(&dir).exits(2);
    assert_eq!(dir.read("t"), later);
}

/// Where the test that follows finds the segment that it is to lock.
const TO_LOCK: &str = "SIMPLETRACE_TEST_TO_LOCK";

/// No test but a process for tests: locks a segment as its owner does, until its input ends.
#[test]
fn lock_for_another_test() {
    let Some(path) = std::env::var_os(TO_LOCK) else { return };
    let file = File::options().read(true).write(true).open(path).unwrap();
    rustix::fs::fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
    println!("locked");
    std::io::stdout().flush().unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

fn lock_in_child(dir: &Dir, name: &str) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "lock_for_another_test", "--nocapture"])
        .env(TO_LOCK, dir.path(name))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = Vec::new();
    let stdout = child.stdout.as_mut().unwrap();
    while !said.ends_with(b"locked\n") {
        let mut byte = [0];
        stdout.read_exact(&mut byte).unwrap();
        said.extend(byte);
    }
    child
}

#[test]
fn a_segment_that_is_locked_is_refused() {
    let dir = left(&trace().into_inner(), |to| to.ring(ring()));
    let name = segment_name(&dir, "t");
    let mut owner = lock_in_child(&dir, &name);
    let expected =
        format!("error: {name} is in use: process 1 still records into it, or another `recover` is at work\n");
    assert_eq!(recover(&dir).exits(2).stderr, expected);
    assert_eq!(dir.run("recover --remove t --segments shm").exits(2).stderr, expected);
    let list = dir.run("recover --list --segments shm").silent();
    let path = dir.path("t");
    assert_eq!(list.text(), format!("{name}: {}, process 1 (in use), 48 bytes waiting\n", path.display()));
    assert_eq!(dir.read("t"), trace().into_inner());
    owner.kill().unwrap();
    owner.wait().unwrap();
    recover(&dir).silent();
    assert_eq!(dir.read("t"), whole());
}

#[test]
fn a_segment_whose_process_lives_is_refused_though_it_is_not_locked() {
    let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
    let dir = left(&trace().into_inner(), |to| {
        to.ring(ring()).with(|to| {
            to.pid = child.id();
            to.start_time = start_time(child.id());
        })
    });
    let (name, pid) = (segment_name(&dir, "t"), child.id());
    let expected = format!("error: {name} is in use: process {pid} still records into it; end it first\n");
    assert_eq!(recover(&dir).exits(2).stderr, expected);
    assert_eq!(dir.run("recover --remove t --segments shm").exits(2).stderr, expected);
    let list = dir.run("recover --list --segments shm").silent();
    let path = dir.path("t");
    assert_eq!(list.text(), format!("{name}: {}, process {pid} (alive), 48 bytes waiting\n", path.display()));
    child.kill().unwrap();
    // Dead, though its parent has not asked for it.
    let deadline = Instant::now() + Duration::from_secs(30);
    while !fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(") Z ") {
        assert!(Instant::now() < deadline);
        std::thread::yield_now();
    }
    recover(&dir).exits(0);
    assert_eq!(dir.read("t"), whole());
    child.wait().unwrap();
}

#[test]
fn a_segment_of_another_boot_is_refused_and_can_be_removed() {
    let dir = left(&trace().into_inner(), |to| to.ring(ring()).with(|to| to.boot_id = "0".repeat(36)));
    let name = segment_name(&dir, "t");
    let expected = format!(
        "error: {name} is from before the machine was started anew, and may not be whole; \
         `simpletrace-rs recover --remove {name}` removes it\n"
    );
    assert_eq!(recover(&dir).exits(2).stderr, expected);
    let list = dir.run("recover --list --segments shm").silent();
    let path = dir.path("t");
    assert_eq!(list.text(), format!("{name}: {}, process 1 (other boot), 48 bytes waiting\n", path.display()));
    let run = dir.run(&format!("recover --remove {name}")).exits(0);
    assert_eq!(run.stderr, format!("note: {name} removed: 2 records lost with it\n"));
    assert_eq!(segments(&dir), 0);
    assert_eq!(dir.read("t"), trace().into_inner());
}

#[test]
fn segments_are_listed() {
    let dir = left(&trace().into_inner(), |to| {
        let mut ring = ring();
        ring.losses[3] = 7;
        to.ring(ring)
    });
    let name = segment_name(&dir, "t");
    dir.write("shm/simpletrace-unfinished", [0; 4096]);
    dir.write("shm/other", "");
    let path = dir.path("t");
    let run = dir.run("recover --list --segments shm").silent();
    let unfinished = "shm/simpletrace-unfinished: no segment, or one that was never finished";
    let expected = |trace: &str| {
        format!("{name}: {trace}, process 1 (dead), 2 records and 48 bytes waiting, 7 events lost\n{unfinished}\n")
    };
    assert_eq!(run.text(), expected(&path.display().to_string()));
    let json = dir.run("recover --list --segments shm -F json").silent().json();
    assert_eq!(json["schema"], "simpletrace-rs.segments/1");
    let line = &json["segments"][0];
    assert_eq!((&line["owner"], &line["records"], &line["is_there"]), (&json!("dead"), &json!(2), &json!(true)));
    fs::rename(&path, dir.path("u")).unwrap();
    let run = dir.run("recover --list --segments shm").silent();
    assert_eq!(run.text(), expected(&format!("{} (moved or removed)", path.display())));
    // What was never finished goes, what is no segment stays.
    dir.write("shm/simpletrace-mine", "do not lose");
    let run = dir.run("recover --remove shm/simpletrace-unfinished shm/simpletrace-mine u --segments shm").exits(2);
    assert_eq!(
        run.stderr,
        format!(
            "note: shm/simpletrace-unfinished removed: nobody can tell what was in it\n\
             error: shm/simpletrace-mine: no segment, or one that was never finished; it is left alone\n\
             note: {name} removed: 2 records lost with it, and the knowledge of 7 events that were lost before\n"
        )
    );
    assert_eq!(segments(&dir), 2);
    let dir = Dir::new();
    assert_eq!(dir.run("recover --list --segments .").exits(0).stderr, "note: no segments in .\n");
    assert!(
        dir.run("recover --list --segments no").exits(2).stderr.starts_with("error: cannot look for segments in no: ")
    );
}

#[test]
fn what_is_no_file_of_ones_own_is_not_opened() {
    let dir = left(&trace().into_inner(), |to| to.ring(ring()));
    let name = segment_name(&dir, "t");
    let bytes = dir.read(&name);
    fs::remove_file(dir.path(&name)).unwrap();
    dir.write("elsewhere", &bytes);
    symlink("../elsewhere", dir.path(&name)).unwrap();
    let run = recover(&dir).exits(2);
    assert!(run.stderr.starts_with(&format!("error: cannot open the segment {name}: ")), "{}", run.stderr);
    assert_eq!(dir.run("recover --remove t --segments shm").exits(2).stderr, run.stderr);

    fs::remove_file(dir.path(&name)).unwrap();
    let fifo = Command::new("mkfifo").arg(dir.path(&name)).status().unwrap();
    assert!(fifo.success());
    assert_eq!(recover(&dir).exits(2).stderr, format!("error: {name} is no segment, but a special file\n"));
    fs::remove_file(dir.path(&name)).unwrap();

    dir.write(&name, &bytes);
    if std::os::unix::fs::chown(dir.path(&name), Some(65_534), None).is_err() {
        println!("SKIPPED: what_is_no_file_of_ones_own_is_not_opened: only root can give files away");
        return;
    }
    let expected =
        format!("error: the segment {name} belongs to user 65534, not to 0: run this as the user who recorded\n");
    assert_eq!(recover(&dir).exits(2).stderr, expected);
    assert_eq!(dir.read("t"), trace().into_inner());
}

#[test]
fn only_regular_files_are_recovered() {
    let dir = left(&trace().into_inner(), |to| to.ring(ring()));
    let run = dir.run("recover /dev/null --segments shm").exits(2);
    assert_eq!(run.stderr, "error: /dev/null is not a regular file, and such are not recorded durably\n");
    assert!(dir.run("recover nothing --segments shm").exits(2).stderr.starts_with("error: cannot open nothing: "));
    assert_eq!(dir.run("recover t t --segments shm").exits(2).stderr, "error: recover takes one trace at a time\n");
    for line in
        ["recover", "recover --remove", "recover t --list", "recover --list --remove", "recover t --remove -F json"]
    {
        dir.run(line).exits(2);
    }
}

#[test]
fn a_damaged_ring_is_told_and_the_rest_recovered() {
    let mut damaged = RingBuilder::new(64, 0, 42).event(1, 1_015, 3);
    damaged.tail += 2;
    let dir = left(&trace().into_inner(), |to| to.ring(ring()).ring(damaged.event(9, 1_016, 1)));
    let run = recover(&dir).exits(1);
    assert_eq!(
        run.stderr,
        "error: ring 1 is damaged: there is no record at word 3: what is behind that is marked as a gap of unknown size\n"
    );
    assert_eq!(segments(&dir), 0);
    assert_eq!(dir.run("info t -F json").exits(0).json()["unknown_gaps"], 1);

    let dir = left(&trace().into_inner(), |to| to.ring(ring().event(9, 1_030, 1)));
    let expected = "warning: 1 record of unknown event: the segment had no room for the name, or lost it\n";
    assert_eq!(recover(&dir).exits(1).stderr, expected);
}

#[test]
fn a_segment_that_makes_no_sense_is_refused_and_never_a_panic() {
    let trace = trace().into_inner();
    let dir = left(&trace, |to| to.ring(ring()));
    let name = segment_name(&dir, "t");
    let bytes = dir.read(&name);
    let checkpoint_at = CHECKPOINTS_AT + CHECKPOINT_BYTES;
    let used = (0..144).chain(4096..4104).chain((checkpoint_at..checkpoint_at + 144).step_by(5));
    let used = used.chain((RINGS_AT..RINGS_AT + 512 + 48).step_by(3));
    let mut codes = [0; 3];
    for at in used {
        let mut changed = bytes.clone();
        changed[at] ^= 0xff;
        dir.write("t", &trace);
        dir.write(&name, &changed);
        let run = recover(&dir);
        assert!((0..=2).contains(&run.code), "byte {at}: {}", run.stderr);
        codes[run.code as usize] += 1;
        if run.code == 2 {
            assert_eq!(dir.read("t"), trace, "byte {at}");
        } else {
            assert_eq!(dir.run("check t").code.min(1), i32::from(run.stderr.contains("unknown event")), "byte {at}");
        }
        let _ = fs::remove_file(dir.path(&name));
    }
    assert!(codes.iter().all(|&number| number > 10), "{codes:?}");
    for length in [0, 100, 4096, RINGS_AT, RINGS_AT + 100, bytes.len() - 1] {
        dir.write("t", &trace);
        dir.write(&name, &bytes[..length]);
        // In a ring that is not there, nothing is read.
        recover(&dir).exits(if length < RINGS_AT { 2 } else { 1 });
        let _ = fs::remove_file(dir.path(&name));
    }
}

/// A segment with so many events that take 96 bytes in the trace, and a ring that wraps.
fn large(to: Builder, records: u64) -> Builder {
    let mut ring = RingBuilder::new(1 << 19, (1 << 30) + 200_000, 42);
    for number in 0..records {
        ring = ring.record(Kind::Event, (number % 3) as u32, 2_000 + number, &[number as u8; 64]);
    }
    to.ring(ring)
}

#[test]
fn a_full_disk_costs_nothing_but_time() {
    let dir = left(&trace().into_inner(), |to| large(to, 20_000));
    let name = segment_name(&dir, "t");
    // A file may have 512 KB.
    let script = "trap '' XFSZ; ulimit -f 1024; exec \"$0\" recover t --segments shm";
    let output = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_simpletrace-rs")])
        .current_dir(dir.path(""))
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    let expected = format!("error: cannot write to t; {name} is kept, so run this again when that is mended: ");
    assert!(stderr.starts_with(&expected), "{stderr}");
    assert_eq!(dir.read("t"), trace().into_inner());
    let run = recover(&dir).silent();
    assert!(run.text().contains("added     20000 events\n"), "{}", run.text());
}

#[test]
fn recover_may_be_killed_at_any_moment() {
    const KILLS: u32 = 200;
    let begin = trace().into_inner();
    let dir = left(&begin, |to| large(to, 40_000));
    let name = segment_name(&dir, "t");
    let segment = dir.read(&name);
    let began = Instant::now();
    recover(&dir).silent();
    let usual = began.elapsed();
    let whole = dir.read("t");
    assert_eq!(whole.len(), 85 + 2 * 21 + 21 + 40_000 * 96);

    let deadline = Instant::now() + Duration::from_secs(120);
    let mut state = 1_u64;
    // Killed ones that left a part of it; those that were done.
    let (mut kills, mut parts, mut done) = (0, 0, 0);
    dir.write("t", &begin);
    dir.write(&name, &segment);
    while kills < KILLS && Instant::now() < deadline {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut child = Command::new(env!("CARGO_BIN_EXE_simpletrace-rs"))
            .args(["recover", "t", "--segments", "shm"])
            .current_dir(dir.path(""))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(usual.mul_f64((state >> 40) as f64 / f64::from(1 << 24)));
        child.kill().unwrap();
        let status = child.wait().unwrap();
        let is_there = dir.path(&name).exists();
        let length = fs::metadata(dir.path("t")).unwrap().len() as usize;
        if status.success() || !is_there {
            assert!(!is_there);
            done += 1;
            assert!(dir.read("t") == whole, "after {kills} kills");
            dir.write("t", &begin);
            dir.write(&name, &segment);
        }
        if !status.success() {
            kills += 1;
            parts += u32::from(length > begin.len() && length < whole.len());
        }
    }
    if dir.path(&name).exists() {
        recover(&dir).silent();
    }
    assert!(dir.read("t") == whole);
    println!("{kills} kills in {:?}, {parts} of them left a part, {done} runs were done before", began.elapsed());
    assert!(parts > 0);
}
