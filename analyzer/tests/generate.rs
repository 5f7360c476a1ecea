//! `generate rs`: code from declarations. What is in it, the tests of simpletrace-codegen say.

mod support;

use std::fs::File;
use std::process::Stdio;

use support::Dir;

const EVENTS: &[u8] = b"disk_read(uint64_t offset) \"offset %\"PRIu64\ndisable off(void) \"\"\n";

#[test]
fn the_code_goes_to_standard_output_or_a_file() {
    let dir = Dir::with([("trace-events", EVENTS), ("more", b"net_rx(int bytes) \"%d\"\n")]);
    let run = dir.run("generate rs trace-events more").silent();
    let code = run.text();
    for line in [
        "//   trace-events\n//   more\n",
        "    pub static EVENTS: [&::simpletrace_recorder::Event; 3] = [\n        &disk_read::EVENT,\n        &off::EVENT,\n        &net_rx::EVENT,\n",
        "    pub fn disk_read(offset: u64) {\n",
        "    pub fn off() {}\n",
        "    /// Declared at `more:1`.\n    #[inline(always)]\n    pub fn net_rx(bytes: i32) {\n",
    ] {
        assert!(code.contains(line), "{line}\n{code}");
    }
    let run_to_file = dir.run("generate rs trace-events more -o trace.rs").silent();
    assert_eq!(run_to_file.text(), "");
    assert_eq!(dir.read("trace.rs"), run.stdout);
}

#[test]
fn declarations_may_come_through_a_pipe_or_compressed() {
    let dir = Dir::with([("trace-events.gz", &support::gzip(EVENTS)), ("trace-events", EVENTS)]);
    let plain = dir.run("generate rs trace-events").silent();
    let compressed = dir.run("generate rs trace-events.gz").silent();
    assert_eq!(compressed.text(), plain.text().replace("trace-events", "trace-events.gz"));
    let piped = dir.call("generate rs -").stdin(EVENTS).run().silent();
    assert_eq!(piped.text(), plain.text().replace("trace-events", "standard input"));
}

#[test]
fn a_fault_is_shown_in_its_file_and_nothing_is_written() {
    let dir = Dir::with([("a", EVENTS), ("b", b"a(unit8_t x) \"%u\"\ndisk_read(void)\n"), ("trace.rs", b"as it was")]);
    let run = dir.run("generate rs a b -o trace.rs").exits(2);
    assert_eq!(
        run.stderr,
        "\
error: b:1:3: type 'unit8_t' is not known and read as an unsigned 64-bit word
  a(unit8_t x) \"%u\"
    ^^^^^^^
help: did you mean 'uint8_t'?
error: b:2:1: second event named 'disk_read'
  disk_read(void)
  ^^^^^^^^^
help: the events of a program have names of their own: rename or remove one
a:1:1: the first one
  disk_read(uint64_t offset) \"offset %\"PRIu64
  ^^^^^^^^^
"
    );
    assert_eq!((run.text(), dir.read("trace.rs")), ("", b"as it was".to_vec()));
}

#[test]
fn of_many_faults_some_are_shown_and_the_others_counted() {
    let dir = Dir::with([("a", "a\n".repeat(30).as_bytes())]);
    let run = dir.run("generate rs a").exits(2);
    assert_eq!(run.stderr.matches("error: ").count(), 20, "{}", run.stderr);
    assert!(run.stderr.ends_with("\nnote: 10 more of these not shown\n"), "{}", run.stderr);
}

#[test]
fn what_cannot_be_read_or_written_is_an_error() {
    let dir = Dir::with([("a", EVENTS)]);
    for (line, error) in [
        ("generate rs missing", "cannot open missing: No such file or directory (os error 2)"),
        ("generate rs a -o a", "output a is also an input, and would be lost"),
        ("generate rs a -o missing/trace.rs", "cannot create missing/trace.rs: No such file or directory (os error 2)"),
        ("generate rs - -", "standard input (-) can be read only once"),
    ] {
        let run = dir.run(line).exits(2);
        assert_eq!((run.text(), run.stderr.as_str()), ("", format!("error: {error}\n").as_str()), "{line}");
    }
    let full = dir.call("generate rs a").run_with(|command| {
        command.stdout(File::options().write(true).open("/dev/full").unwrap()).stderr(Stdio::piped());
    });
    assert_eq!(full.exits(2).stderr, "error: cannot write to standard output: No space left on device (os error 28)\n");
}
