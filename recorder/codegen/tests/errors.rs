//! What is said of faulty files.

use simpletrace_codegen::{Declarations, Error};

/// The faults of files, as a build script prints them.
fn faults<const N: usize>(files: [(&str, &str); N]) -> String {
    let error = Declarations::parse(files).expect_err("faulty");
    assert_eq!(format!("{error:?}"), error.to_string());
    error.to_string()
}

#[test]
fn a_fault_is_shown_with_its_line_and_a_mark() {
    assert_eq!(
        faults([("hw/trace-events", "# two events\na(int x) \"%d\"\nb(unit32_t y) \"%u\"\n")]),
        "\
hw/trace-events:3:3: type 'unit32_t' is not known and read as an unsigned 64-bit word
  b(unit32_t y) \"%u\"
    ^^^^^^^^
help: did you mean 'uint32_t'?"
    );
}

#[test]
fn what_readers_only_warn_of_is_an_error_and_all_are_shown() {
    assert_eq!(
        faults([(
            "trace-events",
            "a(int x, int x) \"%d %d\"\nb(void *) \"%p\"\nc(int x) \"%s\"\nd(int x) \"%d\" // old\n9p(void)\ne(\n"
        )]),
        "\
trace-events:1:10: second argument named 'x'
  a(int x, int x) \"%d %d\"
           ^^^^^
help: give each argument a name of its own
trace-events:2:3: argument of type 'void *' has no name
  b(void *) \"%p\"
    ^^^^^^
help: write a name after the type
trace-events:3:11: conversion '%s' does not fit argument 'x' of type 'int'
  c(int x) \"%s\"
            ^^
help: use '%d'
trace-events:4:15: comment after a format
  d(int x) \"%d\" // old
                ^^^^^^
help: put the comment on a line of its own
trace-events:5:1: event name '9p' is no C identifier
  9p(void)
  ^^
help: use letters, digits and '_', a letter first
trace-events:6:3: missing ')' after the arguments
  e(
    ^
help: close the list of arguments with ')'"
    );
}

#[test]
fn a_name_in_two_files_is_shown_in_both() {
    assert_eq!(
        faults([
            ("block/trace-events", "open(void)\n\tdisk_read(uint64_t offset) \"%\"PRIu64\n"),
            ("net/trace-events", "\r\n\ndisable disk_read(void) \"nothing\"\n")
        ]),
        "\
net/trace-events:3:9: second event named 'disk_read'
  disable disk_read(void) \"nothing\"
          ^^^^^^^^^
help: the events of a program have names of their own: rename or remove one
block/trace-events:2:2: the first one
   disk_read(uint64_t offset) \"%\"PRIu64
   ^^^^^^^^^"
    );
}

#[test]
fn a_half_of_a_tcg_line_may_be_the_second_of_its_name() {
    assert_eq!(
        faults([("trace-events", "mem_exec(void)\ntcg mem(int x) \"%d\", \"%d\"\n")]),
        "\
trace-events:2:5: second event named 'mem_exec'
  tcg mem(int x) \"%d\", \"%d\"
      ^^^
help: the events of a program have names of their own: rename or remove one
trace-events:1:1: the first one
  mem_exec(void)
  ^^^^^^^^"
    );
}

#[test]
fn a_name_is_as_long_as_the_recorder_takes_it() {
    let declared = |bytes: usize| format!("{}(void)\n", "n".repeat(bytes));
    assert!(Declarations::parse([("f", declared(1024))]).is_ok());
    let text = faults([("f", &declared(1025))]);
    assert!(text.starts_with("f:1:1: event name of 1025 bytes, the most is 1024\n"), "{text}");
}

#[test]
fn of_very_many_faults_the_first_are_shown_and_the_others_counted() {
    let Err(Error::Declarations(faults)) = Declarations::parse([("f", "a\n".repeat(1000))]) else {
        panic!("no faults");
    };
    assert_eq!(faults.len(), 201);
    assert_eq!(faults[200], "f: 800 more of these not shown");
}
