//! What a format prints where C has no answer: arguments that do not fit, and text that is no format.

use simpletrace_format::Value;
use simpletrace_format::events::{ArgType, Expected, Format, FormatErrorKind, MAX_FIELD, Mismatch, Width};

fn compile(source: &str) -> Format {
    Format::compile(source).unwrap_or_else(|error| panic!("{source}: {error}"))
}

fn print(source: &str, values: &[Value<'_>]) -> String {
    let mut text = Vec::new();
    compile(source).render(values.iter().copied(), &mut text);
    String::from_utf8(text).expect("UTF-8")
}

#[test]
fn macros_stand_for_the_conversions_of_a_64_bit_host() {
    let minus_one = [Value::Signed(-1)];
    for (source, text) in [
        (r#""0x%"PRIx64"#, "0xffffffffffffffff"),
        (r#""%" PRIu32 "!""#, "4294967295!"),
        (r#""%"PRId8"#, "-1"),
        (r#""%08"PRIX16"#, "FFFFFFFF"),
        (r#""%"PRIoLEAST32"#, "37777777777"),
        (r#""%"PRIuFAST16"#, "18446744073709551615"),
        (r#""%"PRIuMAX"#, "18446744073709551615"),
        (r#""%"PRIuLEAST64"#, "18446744073709551615"),
        (r#""%"PRIuLEAST16"#, "4294967295"),
        (r#""%"PRIuFAST8"#, "4294967295"),
        (r#""%"PRIiPTR"#, "-1"),
        (r#""%"HWADDR_PRIx"#, "ffffffffffffffff"),
        (r#""addr " TARGET_FMT_plx"#, "addr ffffffffffffffff"),
        (r#"TARGET_FMT_ld"#, "-1"),
        (r#""ram "RAM_ADDR_FMT"#, "ram ffffffffffffffff"),
    ] {
        assert_eq!(print(source, &minus_one), text, "{source}");
    }
}

#[test]
fn escapes_are_those_of_c() {
    assert_eq!(print(r#""a\tb\n\"q\" \\ \x41\101\7\?""#, &[]), "a\tb\n\"q\" \\ AA\u{7}?");
    assert_eq!(print(r#""\1011 \x4142 \a\b\e\f\r\v \' \y""#, &[]), "A1 B \u{7}\u{8}\u{1b}\u{c}\r\u{b} ' y");
    assert_eq!(print(r#""100%% of %d""#, &[Value::Signed(3)]), "100% of 3");
    assert_eq!(print(r#""seen\0 unseen %d""#, &[]), "seen");
}

#[test]
fn missing_arguments_leave_their_conversion_and_surplus_ones_are_ignored() {
    assert_eq!(print(r#""%d %#06x %*d""#, &[Value::Signed(1)]), "1 %#06x %*d");
    assert_eq!(print(r#""%*d""#, &[Value::Signed(5)]), "%*d");
    assert_eq!(print(r#""%d""#, &[Value::Signed(1), Value::Signed(2)]), "1");
}

#[test]
fn a_value_of_the_wrong_kind_is_shown_as_what_it_is() {
    assert_eq!(print(r#""%d|%8x|%p|%.2d""#, &[Value::String(b"text"); 4]), "text|    text|text|text");
    assert_eq!(print(r#""%s|%10s|%.1s""#, &[Value::Unsigned(0xbeef); 3]), "0xbeef|    0xbeef|0xbeef");
    assert_eq!(print(r#""%s""#, &[Value::Pointer(0)]), "0x0");
    assert_eq!(print(r#""%f|%5.1e""#, &[Value::Signed(-2), Value::Signed(7)]), "-2|    7");
    assert_eq!(print(r#""%*d""#, &[Value::String(b"wide"), Value::Signed(1)]), "1");
    assert_eq!(print(r#""%d %d""#, &[Value::Bool(true), Value::Bool(false)]), "1 0");
}

#[test]
fn errno_was_not_recorded_and_stays_a_conversion() {
    assert_eq!(print(r#""failed: %m (%d)""#, &[Value::Signed(2)]), "failed: %m (2)");
}

#[test]
fn fields_have_a_greatest_width() {
    assert_eq!(print(r#""%999999999d""#, &[Value::Signed(1)]).len(), MAX_FIELD);
    assert_eq!(print(r#""%.99999999999999999999d""#, &[Value::Signed(1)]).len(), MAX_FIELD);
    assert_eq!(print(r#""%-*s|""#, &[Value::Signed(i32::MIN.into()), Value::String(b"s")]).len(), MAX_FIELD + 1);
}

#[test]
fn conversions_are_listed_with_their_places_and_needs() {
    let source = r#""%d %0*"PRIx64" %s %p %%%zu %f""#;
    let found: Vec<_> = compile(source)
        .conversions()
        .iter()
        .map(|conversion| (conversion.expected, &source[conversion.span.clone()]))
        .collect();
    assert_eq!(
        found,
        [
            (Expected::Int, "%d"),
            (Expected::Int, "%0*\"PRIx64"),
            (Expected::Long, "%0*\"PRIx64"),
            (Expected::String, "%s"),
            (Expected::Pointer, "%p"),
            (Expected::Long, "%zu"),
            (Expected::Float, "%f"),
        ]
    );
}

#[test]
fn a_format_and_arguments_that_disagree_are_found_out() {
    let mismatches = |source: &str, types: &[Option<ArgType>]| compile(source).mismatches(types.iter().copied());
    let int = Some(ArgType::Signed(Width::W32));
    let long = Some(ArgType::Unsigned(Width::Host));
    assert_eq!(mismatches(r#""%d %lx""#, &[int, long]), []);
    assert_eq!(mismatches(r#""%d %lx""#, &[long, int]), [Mismatch::Type(0), Mismatch::Type(1)]);
    assert_eq!(mismatches(r#""%d %d""#, &[int]), [Mismatch::MissingArgument(1)]);
    assert_eq!(mismatches(r#""%d""#, &[int, long, long]), [Mismatch::SurplusArgument(1)]);
    assert_eq!(mismatches(r#""%s %p""#, &[Some(ArgType::Pointer), Some(ArgType::String)]), [Mismatch::Type(0)]);
    assert_eq!(mismatches(r#""%s %x %p""#, &[None, None, None]), [Mismatch::Type(0)]);
}

#[test]
fn errors_say_what_and_where() {
    for (source, kind, place) in [
        (r#""a" "b"#, FormatErrorKind::UnterminatedString, r#""b"#),
        (r#""%"PRIx65"#, FormatErrorKind::UnknownMacro("PRIx65".to_owned()), "PRIx65"),
        (r#""a"; "b""#, FormatErrorKind::UnexpectedText(";".to_owned()), ";"),
        (r#""a %-08""#, FormatErrorKind::UnfinishedConversion, "%-08"),
        (r#""a %" "b%d""#, FormatErrorKind::UnknownConversion("%b".to_owned()), r#"%" "b"#),
        (r#""%5é""#, FormatErrorKind::UnknownConversion("%5é".to_owned()), "%5é"),
        (r#""x%ln""#, FormatErrorKind::Store, "%ln"),
        (r#""%1$d""#, FormatErrorKind::NumberedArgument, "%1$"),
    ] {
        let error = Format::compile(source).expect_err(source);
        assert_eq!((error.kind(), &source[error.span()]), (&kind, place), "{source}");
    }
}
