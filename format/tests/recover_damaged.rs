//! Every damaged file: what comes before the damage and what is found behind it.

mod support;

use simpletrace_format::events::{EventDecl, EventSet, Mode};
use simpletrace_format::{Candidate, Header, RecoveringReader};
use support::reading::Owned;
use support::recovering::{Item, drain, recover};
use support::shared;

/// Mappings and events (with dropped records) between two things that are no records.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Part {
    Records(usize, usize),
    /// Offset, bytes skipped, where reading goes on.
    Damage(u64, u64, Option<u64>),
    NewFile,
}
use Part::{Damage, NewFile, Records};

fn parts(items: &[Item]) -> Vec<Part> {
    let mut parts = Vec::new();
    for item in items {
        match item {
            Item::Record(record) => {
                if !matches!(parts.last(), Some(Records(..))) {
                    parts.push(Records(0, 0));
                }
                let Some(Records(mappings, events)) = parts.last_mut() else { unreachable!() };
                let count = if matches!(record, Owned::Mapping { .. }) { mappings } else { events };
                *count += 1;
            }
            Item::Damage { offset, skipped_bytes, resumed_at, .. } => {
                parts.push(Damage(*offset, *skipped_bytes, *resumed_at));
            }
            Item::NewFile(_) => parts.push(NewFile),
        }
    }
    parts
}

/// Tells whether every declared argument is there.
fn fits(declaration: &EventDecl, candidate: &Candidate<'_>) -> bool {
    let mut args = candidate.payload.args();
    declaration.args.iter().all(|arg| args.next(arg.ty).is_some())
}

fn with_declarations(file: &[u8], declarations: Vec<u8>, header: Option<Header>) -> Vec<Item> {
    let mut set = EventSet::new();
    let _ = set.add("trace-events", &declarations, Mode::Lenient);
    let reader = match header {
        Some(header) => RecoveringReader::assuming(file, header),
        None => RecoveringReader::new(file).unwrap(),
    };
    drain(reader.with_fits(move |candidate| Some(fits(set.get(candidate.name?)?, candidate))))
}

const TABLE: &[(&str, &[Part])] = &[
    ("a-base", &[Records(14, 90)]),
    ("b-base", &[Records(14, 60)]),
    ("cut-type-word", &[Records(14, 32), Damage(2128, 3, None)]),
    ("cut-event-id", &[Records(14, 32), Damage(2128, 12, None)]),
    ("cut-length", &[Records(14, 32), Damage(2128, 26, None)]),
    ("cut-pid", &[Records(14, 32), Damage(2128, 30, None)]),
    ("cut-u64-arg", &[Records(14, 32), Damage(2128, 45, None)]),
    ("cut-string-length", &[Records(14, 35), Damage(2296, 42, None)]),
    ("cut-string-body", &[Records(14, 35), Damage(2296, 49, None)]),
    ("cut-mapping-type", &[Records(7, 0), Damage(210, 5, None)]),
    ("cut-mapping-length", &[Records(7, 0), Damage(210, 18, None)]),
    ("zeros-64k", &[Records(14, 90), Damage(6920, 65_536, None)]),
    ("zeros-mid", &[Records(14, 32), Damage(2128, 4096, Some(6224)), Records(0, 58)]),
    ("concat-same", &[Records(14, 90), NewFile, Records(14, 41)]),
    ("concat-big-endian", &[Records(14, 90), NewFile, Records(14, 47)]),
    ("length-0", &[Records(14, 35), Damage(2296, 63, Some(2359)), Records(0, 54)]),
    ("length-2g", &[Records(14, 35), Damage(2296, 63, Some(2359)), Records(0, 54)]),
    // The record itself comes out, 8 bytes too long, and the one behind it is found inside it.
    ("length-plus8", &[Records(14, 36), Damage(2367, 0, Some(2359)), Records(0, 54)]),
    ("b-length-0", &[Records(14, 30), Damage(2088, 56, Some(2144)), Records(0, 29)]),
    // The record itself comes out, 8 bytes too short.
    ("b-length-minus8", &[Records(14, 31), Damage(2136, 8, Some(2144)), Records(0, 29)]),
    ("garbage-insert", &[Records(14, 32), Damage(2128, 4096, Some(6224)), Records(0, 58)]),
    ("type-7", &[Records(14, 32), Damage(2128, 56, Some(2184)), Records(0, 57)]),
    ("id-unmapped", &[Records(14, 90)]),
    ("string-too-long", &[Records(14, 90)]),
    ("mapping-length-2g", &[Records(7, 0), Damage(210, 25, Some(235)), Records(6, 90)]),
    ("name-unknown", &[Records(14, 90)]),
    ("extra-payload", &[Records(14, 90)]),
    ("header-only", &[]),
    ("mappings-only", &[Records(14, 0)]),
    ("be-cut-string", &[Records(14, 47), Damage(2988, 47, None)]),
    ("v0-cut", &[Records(0, 39), Damage(2560, 17, None)]),
    ("v2-cut-string", &[Records(0, 67), Damage(3706, 31, None)]),
    ("v3-length-0", &[Records(0, 78), Damage(4161, 540, Some(4701)), Records(0, 29)]),
    ("killed-img", &[Records(443, 890), Damage(75_102, 20, None)]),
];

#[test]
fn every_damaged_file_gives_what_is_before_the_damage_and_what_is_behind_it() {
    let mut wrong = Vec::new();
    for (name, expected) in TABLE {
        let test = "every_damaged_file_gives_what_is_before_the_damage_and_what_is_behind_it";
        let Some(file) = shared::read(test, &format!("damaged/{name}.trace")) else { return };
        let declarations = match *name {
            "b-base" | "b-length-0" | "b-length-minus8" | "killed-img" => "qemu-8.2/trace-events-all",
            _ => "damaged/harness.trace-events",
        };
        let Some(declarations) = shared::read(test, declarations) else { return };
        let plain = recover(&file);
        let judged = with_declarations(&file, declarations, None);
        if parts(&plain) != *expected {
            wrong.push(format!("{name}: {:?}\n  not {expected:?}", parts(&plain)));
        }
        if judged != plain {
            wrong.push(format!("{name} with declarations: {:?}\n  not {expected:?}", parts(&judged)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_damaged_first_header_is_skipped_where_the_caller_says_what_it_was() {
    let test = "a_damaged_first_header_is_skipped_where_the_caller_says_what_it_was";
    let Some(base) = shared::read(test, "damaged/a-base.trace") else { return };
    let Some(declarations) = shared::read(test, "damaged/harness.trace-events") else { return };
    let header = Header::parse(&base).unwrap();
    for name in ["wrong-magic", "version-1", "version-5"] {
        let Some(file) = shared::read(test, &format!("damaged/{name}.trace")) else { return };
        assert!(RecoveringReader::new(&file[..]).is_err(), "{name}");
        let items = with_declarations(&file, declarations.clone(), Some(header));
        assert_eq!(parts(&items), [Damage(0, 24, Some(24)), Records(14, 90)], "{name}");
    }
    for name in ["empty", "seven-bytes"] {
        let Some(file) = shared::read(test, &format!("damaged/{name}.trace")) else { return };
        assert!(RecoveringReader::new(&file[..]).is_err(), "{name}");
    }
}
