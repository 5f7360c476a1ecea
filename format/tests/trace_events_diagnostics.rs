//! What is said about lines that are wrong or odd, where, and what is advised.

use simpletrace_format::events::{Diagnostic, MAX_DIAGNOSTICS, Mode, Parsed, Severity, parse};

fn only(parsed: &Parsed) -> &Diagnostic {
    let mut all = parsed.diagnostics.iter();
    let first = all.next().expect("a diagnostic");
    assert_eq!(all.next(), None);
    first
}

/// Parses one line; expects one diagnostic with this text at these marks (` ` and `^` below the line) and this advice.
#[track_caller]
fn expect(mode: Mode, severity: Severity, line: &str, marks: &str, message: &str, help: &str) {
    let source = format!("{line}\nnext(int n) \"n=%d\"\n");
    let parsed = parse(source.as_bytes(), mode);
    let found = only(&parsed);
    let column = marks.len() - marks.trim_start().len() + 1;
    assert_eq!(
        found.with_source("t", source.as_bytes()).to_string(),
        format!("t:1:{column}: {message}\n  {line}\n  {marks}\nhelp: {help}")
    );
    assert_eq!(found.severity, severity);
    let taken = if severity == Severity::Error { 1 } else { 2 };
    assert_eq!(parsed.events.len(), taken, "an error takes its line away, a warning does not");
    assert_eq!(parsed.events[taken - 1].name, "next", "the rest of the file is parsed");
}

#[track_caller]
fn error(line: &str, marks: &str, message: &str, help: &str) {
    for mode in [Mode::Lenient, Mode::Strict] {
        expect(mode, Severity::Error, line, marks, message, help);
    }
}

#[track_caller]
fn warning(line: &str, marks: &str, message: &str, help: &str) {
    for mode in [Mode::Lenient, Mode::Strict] {
        expect(mode, Severity::Warning, line, marks, message, help);
    }
}

/// An error for tracetool of today, nothing to speak of when an old trace is read.
#[track_caller]
fn strict_error(line: &str, marks: &str, message: &str, help: &str) {
    expect(Mode::Strict, Severity::Error, line, marks, message, help);
    let parsed = parse(format!("{line}\n").as_bytes(), Mode::Lenient);
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    assert!(!parsed.events.is_empty());
}

#[track_caller]
fn strict_error_or_warning(line: &str, marks: &str, message: &str, help: &str) {
    expect(Mode::Strict, Severity::Error, line, marks, message, help);
    expect(Mode::Lenient, Severity::Warning, line, marks, message, help);
}

#[test]
fn a_missing_parenthesis_is_asked_for_where_it_belongs() {
    let help = "write NAME(void) for an event without arguments";
    error("disable foo", "           ^", "missing '(' after the event name", help);
    error("foo \"x (y)\"", "   ^", "missing '(' after the event name", help);
    let help = "close the list of arguments with ')'";
    error("foo(int a \"x=%d\"", "         ^", "missing ')' after the arguments", help);
    error("foo(int a \"x (%d)\"", "         ^", "missing ')' after the arguments", help);
    error("foo(", "    ^", "missing ')' after the arguments", help);
    error("foo(\"x (y)\"", "    ^", "missing ')' after the arguments", help);
}

#[test]
fn a_name_with_odd_characters_is_refused() {
    error("disk-read(void)", "    ^", "'-' in the event name", "use '_' instead");
    error("disk-read", "    ^", "'-' in the event name", "use '_' instead");
    error("a.b(void)", " ^", "'.' before '('", "use letters, digits and '_' in names");
    error("(void)", "^", "no event name before '('", "write the name of the event");
}

#[test]
fn a_name_that_only_the_compiler_refuses_is_warned_of() {
    let help = "use letters, digits and '_', a letter first";
    warning("9p(void)", "^^", "event name '9p' is no C identifier", help);
    warning("größe(void)", "^^^^^", "event name 'größe' is no C identifier", help);
    warning("foo(int a[3])", "    ^^^^^^^^", "argument name 'a[3]' is no C identifier", help);
}

#[test]
fn arguments_that_are_none_are_refused() {
    let empty = "write (void) for an event without arguments";
    error("foo()", "   ^^", "empty argument list", empty);
    error("foo( )", "   ^^^", "empty argument list", empty);
    let comma = "write an argument or remove the comma";
    error("foo(int a,)", "         ^", "empty argument", comma);
    error("foo(int a, , int b)", "          ^", "empty argument", comma);
    error("foo(int)", "    ^^^", "argument of type 'int' has no name", "write a name after the type");
    error("foo(flags)", "    ^^^^^", "argument 'flags' has no type", "write a type before the name");
}

#[test]
fn argument_names_that_only_the_compiler_refuses_are_warned_of() {
    let help = "write a name after the type";
    warning("foo(void *)", "    ^^^^^^", "argument of type 'void *' has no name", help);
    let help = "give each argument a name of its own";
    warning("foo(int a, long a)", "           ^^^^^^", "second argument named 'a'", help);
}

#[test]
fn a_type_that_is_not_allowed_comes_with_a_better_one() {
    let message = "type 'unit32_t' is not allowed";
    let line = "foo(unit32_t x) \"x=%u\"";
    expect(Mode::Strict, Severity::Error, line, "    ^^^^^^^^", message, "did you mean 'uint32_t'?");
    let message = "type 'unit32_t' is not known and read as an unsigned 64-bit word";
    expect(Mode::Lenient, Severity::Warning, line, "    ^^^^^^^^", message, "did you mean 'uint32_t'?");

    strict_error(
        "foo(struct dev *d)",
        "    ^^^^^^^^^^^^",
        "type 'struct dev *' is not allowed",
        "declare it as 'void *'",
    );
    let help = "use a standard C type or one of fixed size such as 'uint64_t'";
    strict_error("foo(hwaddr addr)", "    ^^^^^^", "type 'hwaddr' is not allowed", help);
    let help = "part the words of a type by single blanks, not by tabs";
    let parsed = parse(b"foo(unsigned\tint x)\n", Mode::Strict);
    assert_eq!(only(&parsed).help.as_deref(), Some(help));
}

#[test]
fn properties_are_known_ones() {
    let message = "unknown property 'disabel'";
    strict_error_or_warning("disabel foo(void)", "^^^^^^^", message, "did you mean 'disable'?");
    let message = "unknown property 'static'";
    strict_error_or_warning("static foo(void)", "^^^^^^", message, "the known property is 'disable'");
    let help = "declare an argument for the cpu";
    strict_error("vcpu foo(void)", "^^^^", "property 'vcpu' was removed in QEMU 10.1", help);
    let help = "declare an ordinary event";
    strict_error("disable tcg foo(void) \"a\", \"b\"", "        ^^^", "property 'tcg' was removed in QEMU 7.0", help);
}

#[test]
fn blanks_that_tracetool_trips_over_are_named() {
    let message = "blank between the event name and '('";
    strict_error_or_warning("foo (int a)", "   ^", message, "remove the blank");
    strict_error(" foo(int a)", "^", "single blank before the event name", "remove the blank");
    assert!(parse(b"  foo(int a)\n", Mode::Strict).diagnostics.is_empty(), "two blanks pass tracetool's expression");
}

#[test]
fn text_that_is_no_format_is_warned_of() {
    let help = "a format begins with '\"'; tracetool ignores the rest of the line";
    warning("foo(void) abc", "          ^^^", "'abc' after the arguments is no format", help);
    let help = "put the comment on a line of its own";
    warning("foo(void) # why", "          ^^^^^", "comment after a declaration", help);
    warning("foo(int a) \"%d\" // why", "                ^^^^^^", "comment after a format", help);
    let help = "remove it; tracetool takes it as part of the format";
    warning("foo(int a) \"%d\";", "               ^", "';' is no part of a format", help);
}

#[test]
fn formats_that_do_not_compile_are_warned_of() {
    for (line, text) in [
        ("foo(int a) \"a=%d", "1:12: format string without its closing '\"'"),
        ("foo(int a) \"a=%\"PRIx65", "1:17: unknown macro 'PRIx65' in the format"),
        ("foo(int a) \"a=%y\"", "1:15: unknown conversion '%y'"),
        ("foo(int a) \"a=%08\"", "1:15: format ends within a conversion"),
        ("foo(int a) \"a=%n\"", "1:15: conversion '%n' writes to memory"),
    ] {
        for mode in [Mode::Lenient, Mode::Strict] {
            let parsed = parse(format!("{line}\n").as_bytes(), mode);
            assert_eq!(only(&parsed).to_string(), text);
            assert_eq!(only(&parsed).severity, Severity::Warning);
            assert_eq!(parsed.events[0].args[0].name, "a", "records can be read all the same");
        }
    }
}

#[test]
fn conversions_must_fit_their_arguments() {
    let message = "conversion '%s' does not fit argument 'buf' of type 'const uint8_t *'";
    warning("foo(const uint8_t *buf) \"%s\"", "                         ^^", message, "use '%p'");
    let message = "conversion '%d' does not fit argument 'n' of type 'int64_t'";
    warning("foo(int64_t n) \"n=%d\"", "                  ^^", message, "use '%\"PRId64\"'");
    let message = "conversion '%\"PRIx64' does not fit argument 'n' of type 'unsigned'";
    warning("foo(unsigned n) \"n=%\"PRIx64", "                   ^^^^^^^^", message, "use '%u'");
    let message = "no argument for conversion '%p'";
    warning("foo(int a) \"%d %p\"", "               ^^", message, "the arguments are 1 in number");
    let message = "argument 'b' is not in the format";
    warning("foo(int a, size_t b) \"%d\"", "           ^^^^^^^^", message, "add '%zu'");
    for line in
        ["foo(int a, int b) \"%*d\"\n", "foo(char *s) \"%p\"\n", "foo(bool b, char c, uint8_t n) \"%d %c %hhx\"\n"]
    {
        assert!(parse(line.as_bytes(), Mode::Strict).diagnostics.is_empty(), "{line}");
    }
    assert!(parse(b"foo(hwaddr a) \"%x\"\n", Mode::Lenient).diagnostics.is_empty(), "a guessed width is no reason");
}

#[test]
fn what_only_older_releases_accept_is_an_error_today() {
    let help = "pass the error as an argument: strerror(errno) for '%s'";
    strict_error("foo(void) \"failed: %m\"", "                   ^^", "'%m' in the format", help);
    strict_error("foo(void) \"done\\n\"", "               ^^", "newline in the format", "remove the '\\n'");
    let args: Vec<String> = (0..11).map(|n| format!("int a{n}")).collect();
    let source = format!("foo({})\n", args.join(", "));
    let parsed = parse(source.as_bytes(), Mode::Strict);
    let found = only(&parsed);
    assert_eq!(found.to_string(), "1:85: 11 arguments, the most is 10");
    assert_eq!((&source[found.span.clone()], found.help.as_deref()), ("int a10", Some("split the event in two")));
    let parsed = parse(source.as_bytes(), Mode::Lenient);
    assert_eq!((parsed.events[0].args.len(), parsed.diagnostics.is_empty()), (11, true));
    let help = "an event has one format; only 'tcg' events of old had two";
    strict_error_or_warning("foo(void) \"a\", \"b\"", "               ^^^", "one format too many", help);
}

#[test]
fn a_missing_last_newline_matters_to_tracetool_only() {
    let parsed = parse(b"a(void)\nb(void)", Mode::Strict);
    assert_eq!(only(&parsed).to_string(), "2:8: no newline at the end of the file");
    let parsed = parse(b"a(void)\nb(void)", Mode::Lenient);
    assert_eq!((parsed.events.len(), parsed.diagnostics.is_empty()), (2, true));
}

#[test]
fn lines_may_end_in_any_of_pythons_ways() {
    let parsed = parse(b"a(void)\r\nb(void)\r\r\n\nc(void)\n", Mode::Strict);
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    let found: Vec<_> = parsed.events.iter().map(|event| (event.name.as_str(), event.line)).collect();
    assert_eq!(found, [("a", 1), ("b", 2), ("c", 5)]);
}

#[test]
fn columns_count_characters_and_spans_count_bytes() {
    let source = "# é\nfoo(int é, hwaddr x)\n".as_bytes();
    let parsed = parse(source, Mode::Strict);
    let found = parsed.diagnostics.iter().find(|found| found.severity == Severity::Error).expect("a foreign type");
    assert_eq!((found.line, found.column, &source[found.span.clone()]), (2, 12, b"hwaddr".as_slice()));
}

#[test]
fn bytes_that_are_not_utf_8_leave_all_places_right() {
    let source = b"foo(void *a\xff\xfe, hwaddr x) \"\xff %p %d\"\n";
    let parsed = parse(source, Mode::Lenient);
    let event = &parsed.events[0];
    assert_eq!(event.args[0].name, "a\u{fffd}\u{fffd}");
    assert_eq!(&source[event.args[1].span.clone()], b"hwaddr x");
    assert_eq!(event.format.as_ref().map(|format| format.text.as_str()), Some("\"\u{fffd} %p %d\""));
    assert_eq!(only(&parsed).to_string(), "1:5: argument name 'a\u{fffd}\u{fffd}' is no C identifier");

    let parsed = parse(b"f\xffoo(void)\n", Mode::Lenient);
    assert_eq!(only(&parsed).to_string(), "1:2: byte that is not UTF-8 before '('");
}

#[test]
fn a_file_full_of_errors_keeps_some_and_counts_the_rest() {
    let lines = MAX_DIAGNOSTICS + 50;
    let source = "foo bar\n".repeat(lines) + "a(void) junk\n";
    let parsed = parse(source.as_bytes(), Mode::Lenient);
    assert_eq!(
        (parsed.diagnostics.errors(), parsed.diagnostics.warnings(), parsed.diagnostics.dropped()),
        (lines, 1, 50)
    );
    assert_eq!(parsed.diagnostics.iter().count(), MAX_DIAGNOSTICS + 1);
    assert_eq!(parsed.events.len(), 1);
}
