//! What holds for any declarations, good or bad.

use proptest::prelude::*;
use simpletrace_format::Value;
use simpletrace_format::events::{ArgType, Format, MAX_FIELD, Mode, parse};

/// Pieces of the language, so that random texts get past the first check.
fn any_text() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..4),
        proptest::sample::select(vec![
            "foo",
            "disable ",
            "vcpu ",
            "tcg ",
            "(",
            ")",
            ",",
            "*",
            " ",
            "\t",
            "\n",
            "\r\n",
            "\r",
            "\"",
            "\\",
            "#",
            "void",
            "int a",
            "const char *",
            "TCGv v",
            "é",
            "\u{1c}",
            "\u{2028}",
            "%d",
            "%*.*s",
            "%\"PRIx64\"",
            "%",
            "PRIx64",
            "-",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

const TYPES: [(&str, ArgType, &str); 9] = {
    use simpletrace_format::events::Width::{Host, W8, W32, W64};
    [
        ("int", ArgType::Signed(W32), "%d"),
        ("uint8_t", ArgType::Unsigned(W8), "%02x"),
        ("unsigned long", ArgType::Unsigned(Host), "%lu"),
        ("int64_t", ArgType::Signed(W64), "%\"PRId64\""),
        ("bool", ArgType::Bool, "%d"),
        ("const char *", ArgType::String, "%s"),
        ("char **", ArgType::Pointer, "%p"),
        ("void *", ArgType::Pointer, "%p"),
        ("size_t", ArgType::Unsigned(Host), "%zu"),
    ]
};

fn blanks() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(vec!["", " ", "  ", "\t"])
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_the_parser_panic_and_all_places_lie_within_them(source in any_text()) {
        for mode in [Mode::Lenient, Mode::Strict] {
            let parsed = parse(&source, mode);
            let lines = source.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count() + 1;
            prop_assert!(parsed.diagnostics.errors() + parsed.events.len() <= 2 * lines);
            for found in &parsed.diagnostics {
                prop_assert!(found.span.start <= found.span.end && found.span.end <= source.len());
                prop_assert!(found.line as usize <= lines && found.column >= 1);
                let text = found.with_source("f", &source).to_string();
                prop_assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{:?}", text);
            }
            for event in &parsed.events {
                let spans = event.args.iter().map(|arg| &arg.span).chain(event.format.iter().map(|format| &format.span));
                for span in spans {
                    prop_assert!(source.get(span.clone()).is_some());
                }
            }
        }
    }

    #[test]
    fn what_tracetool_of_today_accepts_is_read_alike_in_both_modes(source in any_text()) {
        let strict = parse(&source, Mode::Strict);
        let lenient = parse(&source, Mode::Lenient);
        for event in &strict.events {
            prop_assert!(lenient.events.contains(event), "{:?}", event);
        }
        prop_assert!(strict.diagnostics.errors() >= lenient.diagnostics.errors());
    }

    #[test]
    fn a_declaration_comes_back_as_it_was_written(
        disabled in any::<bool>(),
        name in "[a-z_][a-z0-9_]{0,40}",
        types in proptest::collection::vec(0..TYPES.len(), 0..=10),
        (lead, before, after, tail) in (blanks(), blanks(), blanks(), blanks()),
        ending in proptest::sample::select(vec!["\n", "\r\n"]),
    ) {
        let args: Vec<String> =
            types.iter().enumerate().map(|(n, index)| format!("{before}{} a{n}{after}", TYPES[*index].0)).collect();
        let format = types.iter().fold("\"".to_owned(), |text, index| text + " a=" + TYPES[*index].2) + "\"";
        let list = if args.is_empty() { "void".to_owned() } else { args.join(",") };
        let property = if disabled { "disable " } else { "" };
        let source = format!("# first\n\n{property}{name}({list}){lead}{format}{tail}{ending}");

        let parsed = parse(source.as_bytes(), Mode::Strict);
        prop_assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
        let [event] = parsed.events.as_slice() else { panic!("one event, not {:?}", parsed.events) };
        prop_assert_eq!((&event.name, event.properties.disabled, event.line), (&name, disabled, 3));
        let found: Vec<_> = event.args.iter().map(|arg| (arg.name.clone(), &*arg.c_type, arg.ty)).collect();
        let written: Vec<_> =
            types.iter().enumerate().map(|(n, i)| (format!("a{n}"), TYPES[*i].0, TYPES[*i].1)).collect();
        prop_assert_eq!(found, written);
        let found = event.format.as_ref().expect("a format");
        prop_assert_eq!(&found.text, &format);
        prop_assert_eq!(&source[found.span.clone()], &format);
    }

    #[test]
    fn no_format_makes_the_printer_panic_or_print_without_end(
        source in "\"(%[-+ #0']{0,3}[0-9*]{0,9}(\\.[0-9*]{0,9})?(hh|h|l|ll|z)?[diuoxXcspaefgnmy]|[a-z%\\\\]){0,8}\"",
        words in proptest::collection::vec(any::<u64>(), 0..8),
    ) {
        let Ok(format) = Format::compile(&source) else { return Ok(()) };
        for kind in 0..3 {
            let mut text = Vec::new();
            let values = words.iter().enumerate().map(|(n, word)| match (n + kind) % 3 {
                0 => Value::Signed(word.cast_signed()),
                1 => Value::Pointer(*word),
                _ => Value::String(b"text"),
            });
            format.render(values, &mut text);
            prop_assert!(text.len() <= source.len() + words.len() * (2 * MAX_FIELD));
        }
    }

    #[test]
    fn no_bytes_make_the_format_compiler_panic(source in any_text()) {
        let source = String::from_utf8_lossy(&source);
        match Format::compile(&source) {
            Ok(format) => {
                for conversion in format.conversions() {
                    prop_assert!(source.get(conversion.span.clone()).is_some_and(|text| !text.is_empty()));
                }
            }
            Err(error) => prop_assert!(source.get(error.span()).is_some()),
        }
    }
}
