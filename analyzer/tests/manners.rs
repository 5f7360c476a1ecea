//! How the program behaves as one command among others: help, exit codes, colour, pipes that close, generated files.

mod support;

use std::io::pipe;
use std::process::Stdio;

use simpletrace_format::{ByteOrder, EventId};
use support::Dir;
use support::sample;

const COMMANDS: [&str; 7] = ["decode", "info", "latency", "stats", "events", "check", "generate"];

fn sample_dir() -> Dir {
    Dir::with([("t.trace", &sample::sample(ByteOrder::Little)), ("ev", sample::EVENTS)])
}

#[test]
fn the_help_of_every_command_has_an_example() {
    let dir = Dir::new();
    for command in COMMANDS {
        for flag in ["--help", "-h"] {
            let run = dir.run(&format!("{command} {flag}")).silent();
            assert!(run.text().contains("Example:\n  simpletrace-rs "), "{command} {flag}: {}", run.text());
            assert!(run.text().contains(&format!("Usage: simpletrace-rs {command}")), "{command}: {}", run.text());
        }
    }
}

#[test]
fn the_example_of_decode_is_a_command_line_that_parses() {
    // Its files are absent, which is another complaint than one about usage.
    let dir = Dir::new();
    let help = dir.run("decode --help").silent();
    let example = help.text().lines().find_map(|line| line.trim().strip_prefix("simpletrace-rs decode")).unwrap();
    let run = dir.run(&format!("decode {}", example.replace('\'', ""))).exits(2);
    assert!(run.stderr.starts_with("error: cannot open "), "{}", run.stderr);
}

#[test]
fn the_main_help_lists_the_commands_and_exit_codes() {
    let run = Dir::new().run("--help").silent();
    for word in COMMANDS.iter().chain(&["Exit codes:", "  0  ", "  1  ", "  2  "]) {
        assert!(run.text().contains(word), "{word}: {}", run.text());
    }
    let check = Dir::new().run("check --help").silent();
    assert!(check.text().contains("Exit codes:\n  0  every byte is accounted for\n"), "{}", check.text());
}

#[test]
fn the_version_is_the_packages() {
    let expected = concat!("simpletrace-rs ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(Dir::new().run("--version").silent().text(), expected);
}

#[test]
fn wrong_usage_is_exit_code_2_and_says_nothing_on_stdout() {
    let dir = sample_dir();
    for line in
        ["", "nonsense", "decode", "check", "decode t.trace --nonsense", "decode t.trace -F nonsense", "generate"]
    {
        let run = dir.run(line).exits(2);
        assert_eq!(run.text(), "", "{line}");
        assert!(!run.stderr.is_empty(), "{line}");
    }
}

#[test]
fn completions_are_generated_for_every_shell() {
    let dir = Dir::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let run = dir.run(&format!("generate completions {shell}")).silent();
        for word in COMMANDS.iter().chain(&["simpletrace-rs", "strict"]) {
            assert!(run.text().contains(word), "{shell}, {word}");
        }
    }
}

#[test]
fn man_pages_are_generated_for_every_command() {
    let dir = Dir::new();
    let page = dir.run("generate man").silent();
    assert!(page.text().contains(".TH simpletrace-rs 1"), "{}", page.text());
    assert!(page.text().contains("Exit codes"), "{}", page.text());

    let run = dir.run("generate man -o pages/man1").silent();
    assert_eq!(run.text(), "");
    assert_eq!(String::from_utf8(dir.read("pages/man1/simpletrace-rs.1")).unwrap(), page.text());
    for command in COMMANDS {
        let name = format!("simpletrace-rs-{command}");
        let page = String::from_utf8(dir.read(&format!("pages/man1/{name}.1"))).unwrap();
        assert!(page.contains(&format!(".TH {name} 1")), "{page}");
        assert!(page.contains("Example:"), "{page}");
    }
}

#[test]
fn man_pages_that_cannot_be_written_are_an_error() {
    let dir = sample_dir();
    let run = dir.run("generate man -o t.trace").exits(2);
    assert!(run.stderr.starts_with("error: cannot write man pages to t.trace: "), "{}", run.stderr);
}

#[test]
fn colour_is_for_terminals_unless_asked_for() {
    let dir = sample_dir();
    let plain = dir.run("decode t.trace ev").exits(0);
    assert!(!plain.text().contains('\x1b') && !plain.stderr.contains('\x1b'));

    let coloured = dir.run("decode t.trace ev --colour always").exits(0);
    assert!(coloured.text().contains('\x1b') && coloured.stderr.contains('\x1b'));
    assert_eq!(without_colour(coloured.text()), plain.text());
    assert_eq!(without_colour(&coloured.stderr), plain.stderr);
}

/// Takes out `ESC [ ... m`.
fn without_colour(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| plain + part.split_once('m').unwrap().1)
}

#[test]
fn no_color_is_obeyed_unless_the_command_line_says_otherwise() {
    let dir = sample_dir();
    // As a terminal would.
    let call = |line: &str| dir.call(line).env("CLICOLOR_FORCE", "1");
    assert!(call("decode t.trace ev").run().text().contains('\x1b'));

    let run = call("decode t.trace ev").env("NO_COLOR", "1").run();
    assert!(!run.text().contains('\x1b') && !run.stderr.contains('\x1b'));
    let run = call("decode t.trace ev --colour never").run();
    assert!(!run.text().contains('\x1b') && !run.stderr.contains('\x1b'));
    let run = call("decode t.trace ev --colour always").env("NO_COLOR", "1").run();
    assert!(run.text().contains('\x1b') && run.stderr.contains('\x1b'));
}

#[test]
fn only_text_is_ever_coloured_and_width_and_locale_change_nothing() {
    let dir = sample_dir();
    for format in ["compat", "log", "table", "csv", "json", "ndjson"] {
        let plain = dir.run(&format!("decode t.trace ev -F {format}")).exits(0);
        let other = dir
            .call(&format!("decode t.trace ev -F {format} --colour always"))
            .env("COLUMNS", "20")
            .env("LC_ALL", "de_DE.UTF-8")
            .run();
        assert_eq!(other.text(), plain.text(), "{format}");
    }
    dir.run("decode t.trace ev -o out --colour always").exits(0);
    assert_eq!(dir.read("out"), dir.run("decode t.trace ev").stdout);
}

/// A trace whose text is longer than any pipe and any buffer of the program.
fn long_trace() -> Vec<u8> {
    sample::trace(ByteOrder::Little, |writer| {
        writer.mapping(EventId(1), "idle")?;
        (0..100_000).try_for_each(|time_ns| writer.event(EventId(1), time_ns, 1, &[]))
    })
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let dir = sample_dir();
    dir.write("long", long_trace());
    for line in [
        "decode long ev",
        "decode long ev -F json",
        "decode long ev -F table",
        "decode t.trace ev -e -dropped",
        "info long ev",
        "check long ev",
        "events ev",
        "generate man",
        "generate completions zsh",
    ] {
        let run = dir.call(line).run_with(|command| {
            let (reader, writer) = pipe().unwrap();
            drop(reader);
            command.stdout(writer).stderr(Stdio::piped());
        });
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{line}");
    }
}

#[test]
fn a_closed_stderr_changes_no_result() {
    let dir = sample_dir();
    for (line, code) in [("decode t.trace ev", 0), ("decode absent ev", 2), ("check ev", 2)] {
        let expected = dir.run(line).exits(code);
        let run = dir.call(line).run_with(|command| {
            let (reader, writer) = pipe().unwrap();
            drop(reader);
            command.stdout(Stdio::piped()).stderr(writer);
        });
        assert_eq!((run.code, run.stdout), (code, expected.stdout), "{line}");
    }
}

#[test]
fn results_go_to_stdout_and_all_else_to_stderr() {
    let dir = sample_dir();
    let run = dir.run("decode t.trace ev -F ndjson").exits(0);
    assert_eq!(run.ndjson().len(), 5);
    let run = dir.run("info t.trace ev -F json").exits(0);
    assert!(run.json().is_object());
    assert_eq!(run.stderr, "note: 3 events were dropped by the recorder, in 1 gap\n");
}

#[cfg(not(feature = "frames"))]
#[test]
fn without_dataframes_sql_says_how_to_have_them() {
    let run = Dir::new().call("sql trace").arg("select 1 as one").run().exits(2);
    assert!(run.stderr.starts_with("error: this simpletrace-rs was built without sql; "), "{}", run.stderr);
}
