//! Declarations of real QEMU builds, and what is known of them from elsewhere.
//!
//! The files are not part of the project (some are QEMU's text): they are looked for in the folder `shared` beside the
//! checkout, or where `SIMPLETRACE_SHARED` says. Without them the tests say so and are skipped.

use std::path::PathBuf;

use simpletrace_format::events::{ArgType, EventSet, Mode, Severity, TcgHalf, parse};

fn traces() -> Option<PathBuf> {
    let shared = std::env::var_os("SIMPLETRACE_SHARED")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared")), PathBuf::from);
    let traces = shared.join("traces");
    if traces.is_dir() {
        return Some(traces);
    }
    eprintln!("SKIPPED: no real traces at {}", traces.display());
    None
}

/// Numbers counted with QEMU's own tracetool (8.2.7) over the same file.
#[derive(Debug, PartialEq, Eq)]
struct Counts {
    events: usize,
    disabled: usize,
    with_format: usize,
    args: usize,
    strings: usize,
    addresses: usize,
    name_bytes: usize,
    type_bytes: usize,
    format_bytes: usize,
}

fn counts(set: &EventSet) -> Counts {
    let args = || set.iter().flat_map(|event| &event.args);
    Counts {
        events: set.len(),
        disabled: set.iter().filter(|event| event.properties.disabled).count(),
        with_format: set.iter().filter(|event| event.format.is_some()).count(),
        args: args().count(),
        strings: args().filter(|arg| arg.ty == ArgType::String).count(),
        addresses: args().filter(|arg| arg.ty == ArgType::Pointer).count(),
        name_bytes: args().map(|arg| arg.name.len()).sum(),
        type_bytes: args().map(|arg| arg.c_type.len()).sum(),
        format_bytes: set.iter().filter_map(|event| event.format.as_ref()).map(|format| format.text.len()).sum(),
    }
}

#[test]
fn qemu_8_2_declares_what_its_tracetool_counts_and_nothing_is_odd() {
    let Some(traces) = traces() else { return };
    let source = std::fs::read(traces.join("qemu-8.2/trace-events-all")).expect("readable");
    let mut set = EventSet::new();
    let diagnostics = set.add("trace-events-all", &source, Mode::Lenient);
    assert_eq!(diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>(), [""; 0]);
    assert_eq!(
        counts(&set),
        Counts {
            events: 5507,
            disabled: 15,
            with_format: 5491,
            args: 11794,
            strings: 1758,
            addresses: 991,
            name_bytes: 54369,
            type_bytes: 86241,
            format_bytes: 171914,
        }
    );
    assert_eq!(set.duplicates().count(), 0);
}

#[test]
fn qemu_8_2_has_eight_lines_that_tracetool_of_today_refuses() {
    let Some(traces) = traces() else { return };
    let source = std::fs::read(traces.join("qemu-8.2/trace-events-all")).expect("readable");
    let parsed = parse(&source, Mode::Strict);
    let found: Vec<_> =
        parsed.diagnostics.iter().map(|found| (found.severity, found.line, found.message.as_str())).collect();
    let newline = |line| (Severity::Error, line, "newline in the format");
    assert_eq!(found, [760, 4373, 4374, 4648, 4656, 4688, 5021, 5037].map(newline));
    assert_eq!(parsed.events.len(), 5507 - 8);
}

#[test]
fn qemu_10_2_is_accepted_by_the_rules_of_today() {
    let Some(traces) = traces() else { return };
    let source = std::fs::read(traces.join("qemu-10.2/trace-events-all")).expect("readable");
    let mut set = EventSet::new();
    let diagnostics = set.add("trace-events-all", &source, Mode::Strict);
    assert_eq!(diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>(), [""; 0]);
    assert_eq!(
        counts(&set),
        Counts {
            events: 932,
            disabled: 0,
            with_format: 932,
            args: 1872,
            strings: 622,
            addresses: 467,
            name_bytes: 9605,
            type_bytes: 14479,
            format_bytes: 20199,
        }
    );
}

#[test]
fn every_format_of_both_releases_compiles_and_has_one_conversion_for_each_argument() {
    let Some(traces) = traces() else { return };
    for release in ["qemu-8.2", "qemu-10.2"] {
        let source = std::fs::read(traces.join(release).join("trace-events-all")).expect("readable");
        for event in parse(&source, Mode::Lenient).events {
            let Some(format) = &event.format else { continue };
            let compiled = format.compile().unwrap_or_else(|error| panic!("{}: {error}", event.name));
            assert_eq!(compiled.conversions().len(), event.args.len(), "{}", event.name);
            assert_eq!(format.text.as_bytes(), &source[format.span.clone()], "{}", event.name);
        }
    }
}

#[test]
fn declarations_of_old_releases_expand_as_their_recorders_did() {
    let Some(traces) = traces() else { return };
    let mut files = 0;
    for entry in std::fs::read_dir(traces.join("old")).expect("readable") {
        let path = entry.expect("readable").path();
        if path.extension().is_none_or(|extension| extension != "trace-events") {
            continue;
        }
        files += 1;
        let expected = std::fs::read(path.with_extension("expected.json")).expect("beside the declarations");
        let expected: serde_json::Value = serde_json::from_slice(&expected).expect("JSON");
        let expected = expected["events"].as_object().expect("an object");

        let mut set = EventSet::new();
        let diagnostics = set.add("old", &std::fs::read(&path).expect("readable"), Mode::Lenient);
        assert!(diagnostics.is_empty(), "{}: {diagnostics:?}", path.display());
        assert_eq!(set.len(), expected.len(), "{}", path.display());
        for (name, args) in expected {
            let event = set.get(name).unwrap_or_else(|| panic!("{}: {name} is not declared", path.display()));
            let found: Vec<_> = event.args.iter().map(|arg| serde_json::json!([arg.c_type, arg.name])).collect();
            assert_eq!(&serde_json::Value::Array(found), args, "{}: {name}", path.display());
        }
    }
    assert_eq!(files, 8);
}

#[test]
fn the_two_halves_of_a_tcg_line_follow_each_other_with_their_own_formats() {
    let source = br#"vcpu tcg mem(TCGv addr, uint8_t info) "info=%d", "addr=0x%016"PRIx64" info=%d""#;
    let parsed = parse(source, Mode::Lenient);
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    let found: Vec<_> = parsed
        .events
        .iter()
        .map(|event| {
            let types: Vec<_> = event.args.iter().map(|arg| (&*arg.c_type, arg.name.as_str())).collect();
            let format = event.format.as_ref().map(|format| format.text.as_str());
            (event.name.as_str(), event.properties.tcg, event.properties.vcpu, types, format)
        })
        .collect();
    assert_eq!(
        found,
        [
            (
                "mem_trans",
                Some(TcgHalf::Translation),
                true,
                vec![("void *", "__cpu"), ("uint8_t", "info")],
                Some(r#""cpu=%p ""info=%d""#)
            ),
            (
                "mem_exec",
                Some(TcgHalf::Execution),
                true,
                vec![("void *", "__cpu"), ("uint64_t", "addr"), ("uint8_t", "info")],
                Some(r#""cpu=%p ""addr=0x%016"PRIx64" info=%d""#)
            ),
        ]
    );
}
