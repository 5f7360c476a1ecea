//! Traces and declarations that mean harm.

mod support;

use simpletrace_format::{ByteOrder, EventId, Value};
use support::{Dir, sample};

/// One event `f` with the given arguments for each record.
fn trace_of(records: &[&[Value<'_>]]) -> Vec<u8> {
    sample::trace(ByteOrder::Little, |writer| {
        writer.mapping(EventId(1), "f")?;
        (5..).zip(records).try_for_each(|(time, args)| writer.event(EventId(1), time, 1, args))
    })
}

#[test]
fn a_table_takes_cells_of_any_width() {
    let long = vec![b'x'; 100_000];
    let file = trace_of(&[&[Value::String(&long), Value::String(b"end")], &[Value::String(b"y"), Value::String(b"")]]);
    let dir = Dir::with([("t.trace", &file), ("ev", b"f(char *a, char *b) \"%s %s\"\n")]);
    for line in ["decode t.trace ev -F table", "decode t.trace ev -F table -e f"] {
        let run = dir.run(line).exits(0);
        assert_eq!(run.lines().len(), 3, "{line}");
        assert!(run.lines()[1].len() > 100_000, "{line}");
    }
    // Without declarations the long string is one cell of words.
    assert_eq!(dir.run("decode t.trace --events /dev/null -F table").exits(1).lines().len(), 3);
}

#[test]
fn declarations_that_declare_nothing_are_held_against_the_trace() {
    let dir = Dir::with([
        ("t.trace", &trace_of(&[&[Value::Unsigned(7)]])[..]),
        ("events", b"# nothing\n"),
        ("none-events", b""),
    ]);
    for line in ["check t.trace events", "check t.trace none-events", "decode t.trace --events /dev/null"] {
        let run = dir.run(line).exits(1);
        assert!(
            run.stderr.starts_with("warning: 1 record of f: not declared in the trace-events file"),
            "{line}: {}",
            run.stderr
        );
    }
}

#[test]
fn an_output_file_is_kept_if_the_declarations_cannot_be_read() {
    let dir = Dir::with([("t.trace", &trace_of(&[])[..]), ("old", b"precious")]);
    dir.run("decode t.trace --events t.trace -o old").exits(2);
    dir.run("decode t.trace --events nowhere -o old").exits(2);
    assert_eq!(dir.read("old"), b"precious");
}

#[test]
fn a_string_beyond_its_record_is_cut_as_by_simpletrace_py_if_it_is_the_last_argument() {
    // Seven, and a string of 50 bytes of which three are there.
    let file = trace_of(&[&[Value::Unsigned(7), Value::Unsigned(u64::from_le_bytes(*b"\x32\0\0\0abcd"))]]);
    let dir = Dir::with([
        ("t.trace", &file[..]),
        ("ev", b"f(int a, char *b) \"\"\n"),
        ("more", b"f(int a, char *b, int c) \"\"\n"),
    ]);
    assert_eq!(dir.run("decode t.trace ev -F compat").exits(1).text(), "f 0.000 pid=1 a=0x7 b=b'abcd'\n");
    assert_eq!(dir.run("decode t.trace more -F compat").exits(1).text(), "f 0.000 pid=1 a=0x7\n");
}

#[test]
fn file_and_argument_names_cannot_command_a_terminal() {
    let file = trace_of(&[&[Value::Unsigned(7)]]);
    let dir = Dir::with([("n\x1b[31m\nX.trace", &file[..]), ("ev", b"# a declaration\nf(int \x1b[31mevil) \"%d\"\n")]);
    let info = dir.call("info").arg("n\x1b[31m\nX.trace").arg("ev").run().exits(0);
    assert!(info.text().starts_with("file      n\\u{1b}[31m\\nX.trace: version 4"), "{}", info.text());
    for format in ["text", "table"] {
        let run = dir.call("decode").arg("n\x1b[31m\nX.trace").arg("ev").arg("-F").arg(format).run();
        assert!(!run.text().contains('\x1b'), "{}", run.text());
    }
    assert!(!dir.run("events ev").text().contains('\x1b'));
}

#[test]
fn many_arguments_of_one_name_take_no_quadratic_time() {
    let declaration = format!("f({}int a) \"\"\n", "int a,".repeat(2_600));
    let dir = Dir::with([("t.trace", &trace_of(&[&[Value::Unsigned(7)]])[..]), ("ev", declaration.as_bytes())]);
    let run = dir.run("decode t.trace ev -F csv -e f").exits(1);
    assert_eq!(run.lines()[0].split(',').count(), 3 + 2_601);
}

#[test]
fn a_window_beyond_the_end_of_the_clock_has_nothing_in_it() {
    let file = sample::trace(ByteOrder::Big, |writer| {
        writer.mapping(EventId(1), "f")?;
        writer.event(EventId(1), u64::MAX - 1, 1, &[])?;
        writer.event(EventId(1), u64::MAX, 1, &[])
    });
    let dir = Dir::with([("t.trace", &file[..]), ("ev", b"f(void)\n")]);
    for (window, lines) in [("5s-", 0), ("2ns-", 0), ("1ns-", 1), ("-", 2)] {
        let run = if window == "-" {
            dir.run("decode t.trace ev")
        } else {
            dir.run(&format!("decode t.trace ev -t {window}"))
        };
        assert_eq!(run.exits(0).lines().len(), lines, "{window}");
    }
}

#[test]
fn many_damaged_places_are_told_up_to_twenty_and_then_summed_up() {
    let args: &[Value<'_>] = &[Value::Unsigned(7)];
    let mut file = trace_of(&[args; 93]);
    // The header, a mapping of 21 bytes, and then records of 40 bytes each: of every third one the type word is destroyed.
    for record in (1..91).step_by(3) {
        file[45 + record * 40] = 0xee;
    }
    let dir = Dir::with([("t.trace", &file[..]), ("ev", b"f(int a) \"%d\"\n")]);
    let run = dir.run("decode t.trace ev -F compat").exits(1);
    assert_eq!(run.lines().len(), 63);
    assert_eq!(run.stderr.matches("40 bytes skipped, reading goes on at offset").count(), 20);
    assert!(run.stderr.ends_with("error: 30 damaged places in all, with 1200 bytes skipped\n"), "{}", run.stderr);
    dir.run("check t.trace").exits(1);
}
