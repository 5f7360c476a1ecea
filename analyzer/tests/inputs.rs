//! Where traces and declarations come from: files, standard input, compressed data, the search for EVENTS; and where output
//! may go.

mod support;

use std::fs::{self, File};

use simpletrace_format::{ByteOrder, EventId};
use support::sample::{self, ORDERS};
use support::{Dir, gzip, zstd};

/// What `decode -F compat` prints for the sample.
fn decoded() -> Vec<u8> {
    sample_dir().run("decode t.trace ev -F compat").exits(0).stdout
}

/// The sample as `t.trace`, its declarations as `ev`.
fn sample_dir() -> Dir {
    Dir::with([("t.trace", &sample::sample(ByteOrder::Little)), ("ev", sample::EVENTS)])
}

/// What stderr says of the gap in the sample.
const GAP: &str = "note: 3 events were dropped by the recorder, in 1 gap\n";

#[test]
fn compressed_files_are_read_as_if_they_were_not() {
    let dir = sample_dir();
    // The name does not matter.
    for order in ORDERS {
        let trace = sample::sample(order);
        dir.write("t.gz", gzip(&trace));
        dir.write("t.zst", zstd(&trace));
        dir.write("two-members", [gzip(&trace[..100]), gzip(&trace[100..])].concat());
        dir.write("two-frames", [zstd(&trace[..100]), zstd(&trace[100..])].concat());
        for name in ["t.gz", "t.zst", "two-members", "two-frames"] {
            let run = dir.run(&format!("decode {name} ev -F compat")).exits(0);
            assert_eq!(run.stdout, decoded(), "{name}");
            assert_eq!(run.stderr, GAP, "{name}");
            dir.run(&format!("check {name} ev")).exits(0);
        }
    }
}

#[test]
fn declarations_may_be_compressed_too() {
    let dir = sample_dir();
    dir.write("ev.gz", gzip(sample::EVENTS));
    dir.write("ev.zst", zstd(sample::EVENTS));
    for line in ["t.trace ev.gz", "t.trace ev.zst", "t.trace --events ev.gz"] {
        assert_eq!(dir.run(&format!("decode -F compat {line}")).exits(0).stdout, decoded(), "{line}");
    }
    assert_eq!(dir.run("events ev.gz -s sector").lines().len(), 1);
}

#[test]
fn a_dash_is_standard_input() {
    let dir = sample_dir();
    let trace = sample::sample(ByteOrder::Big);
    for bytes in [trace.clone(), gzip(&trace), zstd(&trace)] {
        let run = dir.call("decode - ev -F compat").stdin(bytes.clone()).run().exits(0);
        assert_eq!(run.stdout, decoded());
        dir.call("check - ev").stdin(bytes.clone()).run().exits(0);
        assert_eq!(dir.call("info - ev -F json").stdin(bytes).run().json()["records"], 4);
    }
    let run = dir.call("decode t.trace --events - -F compat").stdin(sample::EVENTS).run().exits(0);
    assert_eq!(run.stdout, decoded());
}

#[test]
fn standard_input_can_be_a_file() {
    let dir = sample_dir();
    let run = dir.call("decode - ev -F compat -o out").run_with(|command| {
        command.stdin(File::open(dir.path("t.trace")).unwrap());
    });
    assert_eq!((run.exits(0).stdout, dir.read("out")), (Vec::new(), decoded()));
}

#[test]
fn standard_input_can_be_named_only_once() {
    let dir = sample_dir();
    for line in ["decode - -", "decode - --events -", "check - --events -", "events - -"] {
        let run = dir.call(line).stdin(sample::sample(ByteOrder::Little)).run().exits(2);
        assert_eq!(run.stderr, "error: standard input (-) can be read only once\n", "{line}");
    }
}

#[test]
fn faults_on_standard_input_are_named_so() {
    let dir = sample_dir();
    let run = dir.call("decode - ev").stdin("no trace at all, but text").run().exits(2);
    assert_eq!(
        run.stderr,
        "error: standard input: not a trace file: it starts with 0x65636172746f6e20, not eight bytes 0xff\n"
            .replace("65636172746f6e20", &format!("{:016x}", u64::from_le_bytes(*b"no trace")))
    );
    let trace = sample::sample(ByteOrder::Little);
    let run = dir.call("decode - ev").stdin(&trace[..trace.len() - 1]).run().exits(0);
    assert!(
        run.stderr.starts_with("note: standard input ends inside a record at offset 330: 31 bytes"),
        "{}",
        run.stderr
    );
}

#[test]
fn what_is_compressed_otherwise_is_to_be_decompressed_first() {
    let dir = sample_dir();
    for (start, with) in [
        (&b"BZh91AY&"[..], "bzip2"),
        (b"\xfd7zXZ\0\0\x04", "xz"),
        (b"\x04\x22\x4d\x18....", "lz4"),
        (b"PK\x03\x04....", "zip"),
    ] {
        let run = dir.call("decode - ev").stdin([start, &[0; 24]].concat()).run().exits(2);
        let id = u64::from_le_bytes(start.try_into().expect("eight bytes"));
        assert_eq!(
            run.stderr,
            format!(
                "error: standard input: not a trace file: it starts with {id:#018x}, not eight bytes 0xff; it is compressed with \
                 {with}: decompress it first, as only gzip and zstd are read as they are\n"
            )
        );
    }
}

#[test]
fn compressed_data_that_is_cut_gives_the_whole_records_and_a_note() {
    // Incompressible, so that a cut in the middle leaves records before it.
    let mut state = 1_u64;
    let trace = sample::trace(ByteOrder::Little, |writer| {
        writer.mapping(EventId(1), "noise")?;
        for time_ns in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            writer.event(EventId(1), time_ns, 1, &[simpletrace_format::Value::Unsigned(state)])?;
        }
        Ok(())
    });
    let dir = Dir::with([("ev", b"noise(uint64_t n) \"\"\n")]);
    dir.write("whole", &trace);
    let whole = dir.run("decode -F ndjson whole ev").silent();
    for (name, compressed) in [("cut.gz", gzip(&trace)), ("cut.zst", zstd(&trace))] {
        dir.write(name, &compressed[..compressed.len() * 3 / 4]);
        let run = dir.run(&format!("decode -F ndjson {name} ev")).exits(0);
        let lines = run.lines().len();
        assert!((10_000..20_000).contains(&lines), "{name}: {lines}");
        assert!(whole.text().starts_with(run.text()), "{name}");
        assert!(
            run.stderr.starts_with(&format!("note: {name}: the compressed data ends early, at offset ")),
            "{}",
            run.stderr
        );
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
        dir.run(&format!("decode --strict {name} ev")).exits(1);
        dir.run(&format!("check {name}")).exits(1);
    }
}

#[test]
fn compressed_data_cut_before_the_header_is_no_trace() {
    let dir = sample_dir();
    let trace = sample::sample(ByteOrder::Little);
    for (name, compressed) in [("cut.gz", gzip(&trace)), ("cut.zst", zstd(&trace))] {
        for length in [4, 6, 11] {
            dir.write(name, &compressed[..length]);
            let run = dir.run(&format!("decode {name} ev")).exits(2);
            assert!(run.stderr.starts_with(&format!("error: {name}: ")), "{}", run.stderr);
            dir.run(&format!("check {name}")).exits(2);
        }
    }
}

#[test]
fn rotten_compressed_data_is_an_error_that_names_the_file() {
    let dir = sample_dir();
    let mut compressed = gzip(&sample::sample(ByteOrder::Little));
    // The checksum.
    let at = compressed.len() - 8;
    compressed[at] ^= 1;
    dir.write("rotten.gz", &compressed);
    let run = dir.run("decode -F compat rotten.gz ev").exits(2);
    assert!(run.stderr.contains("error: rotten.gz: "), "{}", run.stderr);
    assert_eq!(run.stdout, decoded());
}

#[test]
fn declarations_are_looked_for_in_order_and_it_is_said_where_they_were_found() {
    let dir = sample_dir();
    fs::remove_file(dir.path("ev")).unwrap();
    fs::create_dir(dir.path("sub")).unwrap();
    let run = dir.run("decode t.trace -F compat").exits(0);
    assert!(run.stderr.starts_with("warning: no trace-events file was given or found"), "{}", run.stderr);

    let other = b"other(void) \"\"\n";
    for (name, how) in [
        ("trace-events", "found beside the trace"),
        ("trace-events-all", "found beside the trace"),
        ("t.trace-events", "found beside the trace"),
        ("sub/mine", "SIMPLETRACE_EVENTS"),
    ] {
        dir.write(name, sample::EVENTS);
        for command in ["decode -F compat", "info"] {
            let run = dir.call(&format!("{command} t.trace")).env("SIMPLETRACE_EVENTS", "sub/mine");
            let run = if name == "sub/mine" { run.run() } else { dir.run(&format!("{command} t.trace")) }.exits(0);
            assert_eq!(run.stderr, format!("note: using {name} ({how})\n{GAP}"), "{command}");
            if command.starts_with("decode") {
                assert_eq!(run.stdout, decoded());
            }
        }
        // Named files need no note, and are not added to what would be found.
        let run = dir.run(&format!("decode t.trace {name}")).exits(0);
        assert_eq!(run.stderr, GAP);
        // From here on another file comes before this one.
        dir.write(name, other);
    }
}

#[test]
fn the_search_is_beside_the_trace_not_in_the_working_directory() {
    let dir = sample_dir();
    fs::create_dir(dir.path("sub")).unwrap();
    fs::rename(dir.path("t.trace"), dir.path("sub/t.trace")).unwrap();
    dir.write("trace-events-all", sample::EVENTS);
    assert!(dir.run("decode sub/t.trace").exits(0).stderr.starts_with("warning: no trace-events file"));
    dir.write("sub/trace-events-all", sample::EVENTS);
    let run = dir.run("decode sub/t.trace").exits(0);
    assert!(run.stderr.starts_with("note: using sub/trace-events-all (found beside the trace)\n"), "{}", run.stderr);
}

#[test]
fn an_empty_variable_is_none_and_a_wrong_one_an_error() {
    let dir = sample_dir();
    dir.write("trace-events", sample::EVENTS);
    let run = dir.call("decode t.trace").env("SIMPLETRACE_EVENTS", "").run().exits(0);
    assert!(run.stderr.starts_with("note: using trace-events "), "{}", run.stderr);
    let run = dir.call("decode t.trace").env("SIMPLETRACE_EVENTS", "absent").run().exits(2);
    assert!(run.stderr.starts_with("error: in SIMPLETRACE_EVENTS: cannot open absent: "), "{}", run.stderr);
    // Not asked for, not looked at.
    dir.call("decode t.trace ev").env("SIMPLETRACE_EVENTS", "absent").run().exits(0);
}

#[test]
fn check_never_looks_for_declarations() {
    let dir = sample_dir();
    dir.write("trace-events", b"other(void) \"\"\n");
    let run = dir.call("check t.trace").env("SIMPLETRACE_EVENTS", "trace-events").run().exits(0);
    assert_eq!(run.stderr, GAP);
    assert!(run.text().starts_with("sound: "), "{}", run.text());
}

#[test]
fn events_can_be_given_several_times() {
    let dir = sample_dir();
    let lines: Vec<_> = sample::EVENTS.split_inclusive(|&byte| byte == b'\n').collect();
    dir.write("ev1", lines[..3].concat());
    dir.write("ev2", lines[3..].concat());
    let run = dir.run("decode t.trace -F compat --events ev1 --events ev2").exits(0);
    assert_eq!(run.stdout, decoded());
    dir.run("check t.trace --events ev1 --events ev2").exits(0);
    dir.run("check t.trace --events ev1").exits(1);
}

#[test]
fn several_traces_are_read_in_order_of_time() {
    let part = |order, time_ns| {
        sample::trace(order, |writer| {
            writer.mapping(EventId(time_ns), "idle")?;
            writer.event(EventId(time_ns), time_ns, 1, &[])
        })
    };
    let dir = Dir::with([
        ("c", &part(ByteOrder::Little, 30)),
        ("a", &part(ByteOrder::Big, 10)),
        ("b", &gzip(&part(ByteOrder::Little, 20))),
        ("none", &sample::trace(ByteOrder::Little, |_| Ok(()))),
        ("ev", sample::EVENTS),
    ]);
    let expected = "[0.000000010 +0.000000000] 1 idle\n\
                    [0.000000020 +0.000000010] 1 idle\n\
                    [0.000000030 +0.000000020] 1 idle\n";
    for line in ["decode c a b none ev", "decode none b a c --events ev"] {
        assert_eq!(dir.run(line).silent().text(), expected, "{line}");
    }
    assert_eq!(dir.run("info c a b ev -F json").silent().json()["files"].as_array().unwrap().len(), 3);
}

#[test]
fn one_unreadable_trace_among_several_does_not_hide_the_others() {
    let dir = sample_dir();
    dir.write("bad", [0_u8; 64]);
    let run = dir.run("decode -F compat bad t.trace ev").exits(2);
    assert_eq!(run.stdout, decoded());
    assert!(run.stderr.contains("error: bad: not a trace file: "), "{}", run.stderr);
}

#[test]
fn files_that_cannot_be_opened_are_named_with_the_reason() {
    let dir = sample_dir();
    fs::create_dir(dir.path("folder")).unwrap();
    for (line, message) in [
        ("decode absent ev", "error: cannot open absent: No such file or directory (os error 2)\n"),
        ("decode t.trace absent", "error: cannot open absent: No such file or directory (os error 2)\n"),
        ("decode t.trace --events absent", "error: cannot open absent: No such file or directory (os error 2)\n"),
        ("info absent", "error: cannot open absent: No such file or directory (os error 2)\n"),
        ("check absent", "error: cannot open absent: No such file or directory (os error 2)\n"),
        ("events absent", "error: cannot open absent: No such file or directory (os error 2)\n"),
        ("decode folder ev", "error: cannot open folder: it is a directory\n"),
        ("decode ev", "error: ev is text, so it is no trace; a trace-events file comes with one\n"),
        ("decode t.trace --events t.trace", "error: t.trace is a trace, not a trace-events file\n"),
    ] {
        let run = dir.run(line).exits(2);
        let said = run.stderr.lines().rfind(|line| line.starts_with("error: ")).unwrap_or_default();
        assert_eq!(format!("{said}\n"), message, "{line}");
    }
}

#[test]
fn faulty_declarations_are_shown_with_file_and_line_and_the_others_count() {
    let dir = sample_dir();
    let faulty = [sample::EVENTS, b"\ndisk_done(int x \"%d\"\n"].concat();
    dir.write("bad", faulty);
    for line in ["decode t.trace bad -F compat", "info t.trace bad", "check t.trace bad", "events bad"] {
        let run = dir.run(line).exits(1);
        assert!(run.stderr.contains("error: bad:8:16: missing ')' after the arguments\n"), "{}", run.stderr);
        assert!(run.stderr.contains("  disk_done(int x \"%d\"\n"), "{}", run.stderr);
    }
    assert_eq!(dir.run("decode t.trace bad -F compat").stdout, decoded());
}

#[test]
fn faulty_declarations_of_events_that_the_trace_has_none_of_do_not_matter() {
    let dir = sample_dir();
    dir.write("bad", [sample::EVENTS, b"\nother(int x \"%d\"\n"].concat());
    assert_eq!(dir.run("check t.trace bad").exits(0).stderr, "note: 3 events were dropped by the recorder, in 1 gap\n");
}

#[test]
fn a_second_file_of_declarations_may_repeat_those_of_the_first() {
    let dir = sample_dir();
    dir.write("bad", [sample::EVENTS, b"\ndisk_done(int x \"%d\"\n"].concat());
    let run = dir.run("decode t.trace -F compat --events ev --events bad").exits(1);
    assert_eq!(run.stdout, decoded());
}

#[test]
fn a_file_with_more_faults_than_declarations_is_none() {
    let dir = sample_dir();
    dir.write("bad", b"good(void) \"\"\nnonsense\nmore of it\n");
    for line in ["decode t.trace bad", "info t.trace bad", "check t.trace bad"] {
        let run = dir.run(line).exits(2);
        assert!(
            run.stderr.ends_with("error: bad is no trace-events file: lines that declare nothing: 2\n"),
            "{}",
            run.stderr
        );
        assert_eq!(run.text(), "");
    }
}

#[test]
fn an_output_file_gets_what_stdout_would() {
    let dir = sample_dir();
    for format in ["text", "compat", "log", "table", "csv", "json", "ndjson"] {
        let printed = dir.run(&format!("decode t.trace ev -F {format}")).exits(0);
        let run = dir.run(&format!("decode t.trace ev -F {format} -o out")).exits(0);
        assert_eq!(run.text(), "");
        assert_eq!(dir.read("out"), printed.stdout, "{format}");
    }
    assert_eq!(dir.run("decode t.trace ev -F compat -o -").stdout, decoded());
}

#[test]
fn an_output_that_is_an_input_is_refused() {
    let dir = sample_dir();
    fs::hard_link(dir.path("t.trace"), dir.path("hard")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("t.trace", dir.path("soft")).unwrap();
    #[cfg(not(unix))]
    fs::hard_link(dir.path("t.trace"), dir.path("soft")).unwrap();
    let before = (dir.read("t.trace"), dir.read("ev"));
    for output in ["t.trace", "./t.trace", "hard", "soft", "ev"] {
        let run = dir.run(&format!("decode t.trace ev -o {output}")).exits(2);
        assert_eq!(run.stderr, format!("error: output {output} is also an input, and would be lost\n"));
        assert_eq!((dir.read("t.trace"), dir.read("ev")), before, "{output}");
    }
    dir.write("trace-events", sample::EVENTS);
    dir.run("decode t.trace -o trace-events").exits(2);
    assert_eq!(dir.read("trace-events"), sample::EVENTS, "found declarations are an input");
}

#[cfg(unix)]
#[test]
fn an_output_that_is_standard_input_is_refused() {
    let dir = sample_dir();
    let run = dir.call("decode - ev -o t.trace").run_with(|command| {
        command.stdin(File::open(dir.path("t.trace")).unwrap()).stderr(std::process::Stdio::piped());
    });
    assert_eq!(run.exits(2).stderr, "error: output t.trace is also an input, and would be lost\n");
    assert_eq!(dir.read("t.trace"), sample::sample(ByteOrder::Little));
}

#[test]
fn an_output_that_cannot_be_created_fails_before_the_work() {
    let dir = sample_dir();
    // Had the work begun, the file would have been looked at first.
    dir.write("bad.trace", [0_u8; 64]);
    let run = dir.run("decode bad.trace ev -o absent/out").exits(2);
    assert_eq!(run.stderr, "error: cannot create absent/out: No such file or directory (os error 2)\n");
    let run = dir.run("decode t.trace ev -o .").exits(2);
    assert!(run.stderr.starts_with("error: cannot create .: "), "{}", run.stderr);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_of_every_command() {
    let dir = sample_dir();
    let full = "cannot write to standard output: No space left on device (os error 28)\n";
    for line in [
        "decode t.trace ev",
        "decode t.trace ev -F json",
        "info t.trace ev",
        "info t.trace ev -F json",
        "check t.trace ev",
        "events ev",
        "events t.trace ev",
        "generate man",
        "generate completions bash",
    ] {
        let run = dir.call(line).run_with(|command| {
            command.stdout(File::options().write(true).open("/dev/full").unwrap()).stderr(std::process::Stdio::piped());
        });
        let run = run.exits(2);
        assert!(run.stderr.ends_with(&format!("error: {full}")), "{line}: {}", run.stderr);
    }
    let run = dir.run("decode t.trace ev -o /dev/full").exits(2);
    assert!(run.stderr.ends_with("error: cannot write to /dev/full: No space left on device (os error 28)\n"));
}

#[test]
fn the_trace_events_file_may_stand_anywhere_among_the_traces() {
    let dir = sample_dir();
    for line in ["decode ev t.trace -F compat", "decode t.trace ev -F compat"] {
        assert_eq!(dir.run(line).exits(0).stdout, decoded(), "{line}");
    }
    let run = dir.run("decode ev ev").exits(2);
    assert_eq!(run.stderr, "error: ev is text, so it is no trace; a trace-events file comes with one\n");
}

#[test]
fn a_choice_that_selects_nothing_is_said() {
    let dir = sample_dir();
    for line in ["decode t.trace ev -e 'never*'", "decode t.trace ev --pid 1", "info t.trace ev -t 500s-"] {
        let run = dir.run(line).exits(0);
        assert!(run.stderr.ends_with("note: none of 4 events was selected\n"), "{line}: {}", run.stderr);
    }
    let run = dir.run("decode t.trace -e disk_raed").exits(0);
    assert!(run.stderr.contains("warning: no event is called disk_raed; did you mean disk_read?\n"), "{}", run.stderr);
}

#[test]
fn what_a_slow_pipe_brought_is_passed_on_before_the_next_comes() {
    use std::io::{Read as _, Write as _};
    use std::process::{Command, Stdio};

    let dir = sample_dir();
    let whole = dir.read("t.trace");
    let mut child = Command::new(env!("CARGO_BIN_EXE_simpletrace-rs"))
        .args(["decode", "-F", "compat", "-", "--events"])
        .arg(dir.path("ev"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    // All but the last byte: every record but the last is whole.
    input.write_all(&whole[..whole.len() - 1]).unwrap();
    let expected = decoded();
    let without_last = expected[..expected.len() - 1].iter().rposition(|&byte| byte == b'\n').unwrap() + 1;
    let mut first = vec![0; without_last];
    // Blocks for ever if nothing is passed on.
    let mut output = child.stdout.take().unwrap();
    output.read_exact(&mut first).unwrap();
    assert_eq!(first, expected[..without_last]);
    input.write_all(&whole[whole.len() - 1..]).unwrap();
    drop(input);
    let mut rest = Vec::new();
    output.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, expected[without_last..]);
    assert!(child.wait().unwrap().success());
}

#[test]
fn more_traces_than_a_process_may_have_open_are_read() {
    let dir = sample_dir();
    let whole = dir.read("t.trace");
    let names: Vec<String> = (0..300).map(|part| format!("part{part}")).collect();
    names.iter().for_each(|name| dir.write(name, &whole));
    let line = format!("ulimit -n 64; exec {} check {} ev", env!("CARGO_BIN_EXE_simpletrace-rs"), names.join(" "));
    let output = std::process::Command::new("sh").args(["-c", &line]).current_dir(dir.path("")).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}
