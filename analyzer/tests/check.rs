//! `check`: 0 if every byte is accounted for, 1 if not, 2 if there is no valid header.

mod support;

use simpletrace_format::{ByteOrder, EventId, Value};
use support::Dir;
use support::sample::{self, ORDERS};

/// The exit codes of `check` without and with EVENTS.
#[track_caller]
fn assert_verdicts(what: &str, file: &[u8], codes: [i32; 2]) {
    let dir = Dir::with([("t.trace", file), ("ev", sample::EVENTS)]);
    for (line, code) in [("check t.trace", codes[0]), ("check t.trace ev", codes[1])] {
        let run = dir.run(line);
        assert_eq!(run.code, code, "{what}, {line}: {}{}", run.text(), run.stderr);
        let verdict = match code {
            0 if line.ends_with("ev") => "sound, and as declared: ",
            0 => "sound: ",
            1 => "faulty: ",
            _ => "not readable: ",
        };
        assert!(run.text().starts_with(verdict), "{what}: {}", run.text());
        assert_eq!(run.lines().len(), 1, "{what}: {}", run.text());
        // A verdict is never without its reason.
        assert_eq!(
            code != 0,
            !run.stderr.replace("note: 3 events were dropped by the recorder, in 1 gap\n", "").is_empty()
        );
    }
}

#[test]
fn whole_files_are_sound() {
    for order in ORDERS {
        assert_verdicts("the sample", &sample::sample(order), [0, 0]);
        assert_verdicts("a header", &sample::trace(order, |_| Ok(())), [0, 0]);
        assert_verdicts("mappings", &sample::trace(order, sample::mappings), [0, 0]);
    }
}

#[test]
fn the_summary_counts_what_was_understood() {
    let dir = Dir::with([("t.trace", &sample::sample(ByteOrder::Big)), ("ev", sample::EVENTS)]);
    let expected = "sound, and as declared: 4 mappings, 4 events, 1 dropped record, 362 bytes understood\n";
    assert_eq!(dir.run("check t.trace ev").exits(0).text(), expected);
}

#[test]
fn each_prefix_is_sound_at_a_record_boundary_and_nowhere_else() {
    for order in ORDERS {
        let whole = sample::sample(order);
        let boundaries = [24, 53, 82, 111, 135, 186, 242, 282, 330, 362];
        for length in 0..=whole.len() {
            let dir = Dir::with([("t.trace", &whole[..length])]);
            let run = dir.run("check t.trace");
            let code = if length < 24 { 2 } else { i32::from(!boundaries.contains(&length)) };
            assert_eq!(run.code, code, "{length} bytes: {}", run.stderr);
        }
    }
}

#[test]
fn what_was_skipped_or_is_unmapped_is_a_fault() {
    for order in ORDERS {
        let whole = sample::sample(order);
        let with = |more: &[u8]| [&whole[..], more].concat();
        assert_verdicts("a byte too many", &with(&[1]), [1, 1]);
        assert_verdicts("zeros at the end", &with(&[0; 64]), [1, 1]);
        assert_verdicts("rubbish at the end", &with(&[0xaa; 64]), [1, 1]);
        assert_verdicts("a second header", &with(&sample::trace(order, |_| Ok(()))), [1, 1]);
        assert_verdicts("a second file", &with(&sample::sample(order)), [1, 1]);
        for other in ORDERS {
            assert_verdicts("a second file of either order", &with(&sample::sample(other)), [1, 1]);
        }
        let unmapped = sample::trace(order, |writer| writer.event(sample::IDLE, 5, 1, &[]));
        assert_verdicts("an unmapped id", &unmapped, [1, 1]);
    }
}

#[test]
fn what_does_not_fit_is_a_fault_only_with_declarations() {
    let pointer = Value::Pointer(1);
    for order in ORDERS {
        for (what, args) in [
            ("shorter", &[pointer][..]),
            ("longer", &[pointer; 3]),
            ("no multiple of a word", &[pointer, Value::String(b"abc")]),
        ] {
            let file = sample::trace(order, |writer| {
                sample::mappings(writer)?;
                writer.event(sample::DONE, 5, 1, args)
            });
            assert_verdicts(what, &file, [0, 1]);
        }
        let undeclared = sample::trace(order, |writer| {
            writer.mapping(EventId(1), "other")?;
            writer.event(EventId(1), 5, 1, &[])
        });
        assert_verdicts("undeclared", &undeclared, [0, 1]);
        // QEMU maps every event that it has, recorded or not.
        let unused = sample::trace(order, |writer| writer.mapping(EventId(1), "other"));
        assert_verdicts("undeclared but never recorded", &unused, [0, 0]);
    }
}

#[test]
fn without_a_valid_header_there_is_nothing_to_check() {
    let whole = sample::sample(ByteOrder::Little);
    let with_byte = |at: usize, byte: u8| {
        let mut file = whole.clone();
        file[at] = byte;
        file
    };
    for (what, file) in [
        ("empty", &[][..]),
        ("bytes", &[0; 64]),
        ("the id", &with_byte(0, 0)),
        ("the magic", &with_byte(8, 0)),
        ("the version", &with_byte(16, 5)),
    ] {
        assert_verdicts(what, file, [2, 2]);
    }
}

#[test]
fn the_worst_of_several_traces_decides() {
    let whole = sample::sample(ByteOrder::Little);
    let dir = Dir::with([
        ("good", &whole[..]),
        ("torn", &whole[..whole.len() - 1]),
        ("bad", &[0; 64]),
        ("ev", sample::EVENTS),
    ]);
    dir.run("check good good ev").exits(0);
    dir.run("check good torn ev").exits(1);
    let run = dir.run("check bad torn good ev").exits(2);
    for reason in ["error: bad: not a trace file", "note: torn ends inside a record at offset 330"] {
        assert!(run.stderr.contains(reason), "{}", run.stderr);
    }
}

#[test]
fn a_file_that_declares_nothing_is_no_verdict_on_the_trace() {
    let dir = Dir::with([("t.trace", &sample::sample(ByteOrder::Little)), ("ev", b"nonsense\n")]);
    let run = dir.run("check t.trace ev").exits(2);
    assert_eq!(run.stderr, "error: ev is no trace-events file: lines that declare nothing: 1\n");
    assert_eq!(run.text(), "");
}
