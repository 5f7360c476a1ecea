//! The corners of the grammar: what tracetool (8.2.7, run over these very lines) makes of them.

use simpletrace_format::events::{ArgType, Mode, parse};

/// Each argument as `TYPE|NAME`, with a `$` before the types that are recorded as strings.
#[track_caller]
fn accepted(line: &str, name: &str, args: &[&str]) {
    for mode in [Mode::Lenient, Mode::Strict] {
        let parsed = parse(format!("{line}\n").as_bytes(), mode);
        let [event] = parsed.events.as_slice() else { panic!("{line:?}: {parsed:?}") };
        let found: Vec<_> = event
            .args
            .iter()
            .map(|arg| {
                let mark = if arg.ty == ArgType::String { "$" } else { "" };
                format!("{mark}{}|{}", arg.c_type, arg.name)
            })
            .collect();
        assert_eq!((event.name.as_str(), found), (name, args.iter().map(ToString::to_string).collect()), "{line:?}");
    }
}

#[test]
fn types_keep_their_spelling_and_the_spelling_makes_the_string() {
    accepted("foo(const char *a, char*b, const char * c)", "foo", &["$const char *|a", "$char*|b", "$const char *|c"]);
    accepted("foo(const char*a, char  *b)", "foo", &["$const char*|a", "char  *|b"]);
    accepted("foo(const  char *a, char const *b)", "foo", &["const  char *|a", "char const *|b"]);
    accepted("foo(char **a, char * * b, char *const *c)", "foo", &["char **|a", "char * *|b", "char *const *|c"]);
    accepted("foo(unsigned char *a, signed char *b)", "foo", &["unsigned char *|a", "signed char *|b"]);
    accepted("foo(unsigned   int   x)", "foo", &["unsigned   int|x"]);
    accepted("foo(const x, const *y)", "foo", &["const|x", "const *|y"]);
    accepted("foo(const*char a)", "foo", &["const*|char a"]);
}

#[test]
fn any_blank_parts_type_and_name() {
    accepted("foo( int x ,\tlong\ty\t)", "foo", &["int|x", "long|y"]);
    accepted("foo(int\u{a0}x, void *\u{2003}p)", "foo", &["int|x", "void *|p"]);
    accepted("foo(\u{1f}int a\u{1c})", "foo", &["int|a"]);
    accepted("foo(const char *\ts)", "foo", &["$const char *|s"]);
}

#[test]
fn void_counts_for_nothing_wherever_it_stands() {
    accepted("foo(void)", "foo", &[]);
    accepted("foo( void )", "foo", &[]);
    accepted("foo(void, int a, void)", "foo", &["int|a"]);
    accepted("foo(void x, void **y)", "foo", &["void|x", "void **|y"]);
}

#[test]
fn names_are_taken_as_they_stand() {
    accepted("foo(*)", "foo", &["*|"]);
    accepted("foo(const char *)", "foo", &["$const char *|"]);
    accepted("foo(const char *a b)", "foo", &["$const char *|a b"]);
    accepted("foo(int a[3])", "foo", &["int|a[3]"]);
    accepted("foo(int a, int a)", "foo", &["int|a", "int|a"]);
    accepted("foo(void *a \"x (y)\"", "foo", &["void *|a \"x (y"]);
    accepted("9foo(void)", "9foo", &[]);
    accepted("größe²(void)", "größe²", &[]);
    accepted("disable(int a)", "disable", &["int|a"]);
}

#[test]
fn properties_stand_before_the_name_with_any_blanks() {
    for line in ["disable foo(void)", "  disable \t foo(void)", "disable disable foo(void)", "disable\u{a0}foo(void)"] {
        accepted(line, "foo", &[]);
        let parsed = parse(format!("{line}\n").as_bytes(), Mode::Strict);
        assert!(parsed.events[0].properties.disabled && parsed.diagnostics.is_empty(), "{line:?}");
    }
    accepted("  foo(int a)", "foo", &["int|a"]);
}

#[test]
fn what_follows_the_arguments_never_matters_to_them() {
    for rest in ["", " ", "\"a\"", " \"a", " \"", " x \"a\"", " # c", ")", "\\", " \"a\" # c", "\u{2028}"] {
        accepted(&format!("foo(int a){rest}"), "foo", &["int|a"]);
    }
}

#[test]
fn blank_lines_and_comments_declare_nothing() {
    let parsed = parse("\n \t\n# a(void)\n  \t# b(void)\n\u{a0}\u{1c}\n#\n".as_bytes(), Mode::Strict);
    assert!(parsed.events.is_empty() && parsed.diagnostics.is_empty(), "{parsed:?}");
}

#[test]
fn what_tracetool_refuses_is_refused_in_strict_mode() {
    for line in [
        "foo",
        "foo(",
        "foo (void)",
        " foo(void)",
        "\tfoo(void)",
        "foo-bar(void)",
        "(void)",
        "foo()",
        "foo( )",
        "foo(,)",
        "foo(int a,)",
        "foo(int)",
        "foo(in*t x)",
        "foo(const char\t*c)",
        "foo(volatile int a)",
        "foo(constchar *a)",
        "foo((int a)",
        "bar foo(void)",
        "foo(void) \"%m\"",
        "foo(void) \"a\\n\"",
        "\u{feff}foo(void)",
    ] {
        let parsed = parse(format!("{line}\n").as_bytes(), Mode::Strict);
        assert_eq!((parsed.events.len(), parsed.diagnostics.errors()), (0, 1), "{line:?}");
    }
}

#[test]
fn a_byte_order_mark_is_passed_over_when_traces_are_read() {
    let parsed = parse("\u{feff}foo(void)\n".as_bytes(), Mode::Lenient);
    assert_eq!((parsed.events[0].name.as_str(), parsed.diagnostics.is_empty()), ("foo", true));
}

#[test]
fn of_two_formats_without_tcg_the_last_is_kept() {
    let parsed = parse(b"foo(int a) \"a\", \"a=%d\"\n", Mode::Lenient);
    assert_eq!(parsed.events[0].format.as_ref().map(|format| format.text.as_str()), Some("\"a=%d\""));
    let parsed = parse(b"foo(int a) \"a,\" \"a=%d\"\n", Mode::Strict);
    assert_eq!(
        parsed.events[0].format.as_ref().map(|format| format.text.as_str()),
        Some("\"a,\" \"a=%d\""),
        "a comma within a literal parts nothing"
    );
}

#[test]
fn a_tcg_line_with_one_format_uses_it_for_both_halves() {
    let parsed = parse(b"tcg foo(TCGv_i32 a, TCGv_ptr p, TCGv_i64 b) \"x\"\n", Mode::Lenient);
    let types: Vec<Vec<&str>> =
        parsed.events.iter().map(|event| event.args.iter().map(|arg| &*arg.c_type).collect()).collect();
    assert_eq!(types, [vec![], vec!["uint32_t", "void *", "uint64_t"]]);
    for event in &parsed.events {
        assert_eq!(event.format.as_ref().map(|format| format.text.as_str()), Some("\"x\""));
    }
}

#[test]
fn types_of_older_releases_pass_without_a_word_when_traces_are_read() {
    let source = b"foo(hwaddr a, struct dev *d, uint n, off_t o, enum kind k, QEMUClockType t, const char *const *v)\n";
    let parsed = parse(source, Mode::Lenient);
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    let types: Vec<_> = parsed.events[0].args.iter().map(|arg| &*arg.c_type).collect();
    let expected = ["hwaddr", "struct dev *", "uint", "off_t", "enum kind", "QEMUClockType", "const char *const *"];
    assert_eq!(types, expected);
}

#[test]
fn a_vcpu_event_without_a_format_gets_one() {
    let parsed = parse(b"vcpu foo(void)\nlast(void)", Mode::Lenient);
    let event = &parsed.events[0];
    assert_eq!(
        (&*event.args[0].c_type, event.args[0].name.as_str(), event.args[0].span.clone()),
        ("void *", "__cpu", 14..14)
    );
    let format = event.format.as_ref().expect("a format");
    assert_eq!((format.text.as_str(), format.span.clone()), ("\"cpu=%p \"", 14..14));
}
