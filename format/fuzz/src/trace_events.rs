use simpletrace_format::EventId;
use simpletrace_format::events::{Diagnostics, EventDecl, EventIndex, EventSet, Mode, Numbering, Parsed, parse};

/// Parses any bytes as declarations, in both modes: places lie within the text, whatever the strict mode takes the lenient one takes
/// too, what was taken can be written out and read again, and an index finds what a set has, by name and by id.
pub fn trace_events(data: &[u8]) {
    let lenient = check(data, Mode::Lenient);
    let strict = check(data, Mode::Strict);
    if !data.starts_with(b"\xef\xbb\xbf") {
        let mut lenient_events = lenient.events.iter();
        for event in &strict.events {
            assert!(lenient_events.any(|other| other == event), "only the strict mode takes {event:?}");
        }
    }
    let mut index = EventIndex::new();
    index.add("trace-events", data.to_vec());
    for event in &lenient.events {
        let last = lenient.events.iter().rfind(|other| other.name == event.name);
        let found = index.get(&event.name).and_then(|found| found.event);
        assert_eq!(found.as_ref(), last);
    }
    for name in index.names().filter(|name| !lenient.events.iter().any(|event| event.name == *name)) {
        let found = index.get(name).expect("a name of the index");
        assert!(found.event.is_none() && found.diagnostics.errors() > 0, "{name:?}");
    }

    for numbering in [Numbering::All, Numbering::Enabled] {
        check_ids(data, &index, numbering);
    }

    for event in &strict.events {
        let text = text_of(event);
        let again = parse(text.as_bytes(), Mode::Strict);
        let [again] = &again.events[..] else {
            panic!("{text:?} gives {again:?}");
        };
        assert_eq!(meaning_of(again), meaning_of(event), "{text:?}");
    }
}

/// A set and an index give the same declarations the same ids, all that count are there, and in order.
fn check_ids(data: &[u8], index: &EventIndex, numbering: Numbering) {
    let mut set = EventSet::new();
    set.add("trace-events", data, Mode::Lenient);
    let (by_id, lookup) = (set.by_id(numbering), index.by_id(numbering));
    assert_eq!(by_id.len(), lookup.len());
    let mut counted = set.iter().filter(|event| numbering == Numbering::All || !event.properties.disabled);
    for id in (0..by_id.len() as u64).map(EventId) {
        let found = lookup.get(id);
        assert_eq!(found.is_some(), lookup.name(id).is_some());
        let event = by_id.get(id);
        assert_eq!(found.and_then(|found| found.event).as_ref(), event);
        if let Some(event) = event {
            assert_eq!(lookup.name(id), Some(&event.name[..]));
            assert_eq!(Some(event), counted.next());
        }
    }
    assert_eq!(counted.next(), None);
}

fn check(data: &[u8], mode: Mode) -> Parsed {
    let parsed = parse(data, mode);
    assert_eq!(parse(data, mode).events, parsed.events);
    check_diagnostics(&parsed.diagnostics, data);
    for event in &parsed.events {
        assert!(event.line >= 1);
        for arg in &event.args {
            assert!(data.get(arg.span.clone()).is_some(), "{event:?}");
        }
        if let Some(format) = &event.format {
            assert!(data.get(format.span.clone()).is_some(), "{event:?}");
            if let Err(error) = format.compile() {
                assert!(error.span().end <= format.text.len(), "{error:?}");
            }
        }
    }

    let mut set = EventSet::new();
    set.add("trace-events", data, mode);
    assert_eq!(set.declarations(), parsed.events);
    for event in &set {
        let last = parsed.events.iter().rfind(|other| other.name == event.name);
        assert_eq!(set.get(&event.name), last);
    }
    parsed
}

fn check_diagnostics(diagnostics: &Diagnostics, data: &[u8]) {
    assert_eq!(diagnostics.iter().count() + diagnostics.dropped(), diagnostics.errors() + diagnostics.warnings());
    for diagnostic in diagnostics {
        assert!(diagnostic.line >= 1 && diagnostic.column >= 1);
        assert!(data.get(diagnostic.span.clone()).is_some(), "{diagnostic:?}");
        let shown = diagnostic.with_source("trace-events", data).to_string();
        assert!(shown.starts_with("trace-events:"));
        assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
    }
}

/// The declaration as a line that means the same.
fn text_of(event: &EventDecl) -> String {
    let args: Vec<String> = event.args.iter().map(|arg| format!("{} {}", arg.c_type, arg.name)).collect();
    let args = if args.is_empty() { "void".to_owned() } else { args.join(", ") };
    let disable = if event.properties.disabled { "disable " } else { "" };
    let format = event.format.as_ref().map_or("", |format| &format.text);
    format!("{disable}{}({args}) {format}\n", event.name)
}

/// All of a declaration but its place.
fn meaning_of(event: &EventDecl) -> impl PartialEq + std::fmt::Debug + '_ {
    (
        &event.name,
        event.properties,
        event.args.iter().map(|arg| (&arg.name, &arg.c_type, arg.ty)).collect::<Vec<_>>(),
        event.format.as_ref().map(|format| &format.text),
    )
}
