//! Events of every C type, recorded through generated code and read back.

use std::cell::Cell;
use std::ffi::CStr;
use std::fmt::Write as _;
use std::fs;
use std::ptr::{null, null_mut, without_provenance};
use std::time::Duration;

use simpletrace_format::events::{EventSet, Mode};
use simpletrace_format::{Names, Record, SliceReader, Value};
use simpletrace_recorder::{Options, Recorder, declarations, disable, emit, enable, register};

mod trace {
    include!(concat!(env!("OUT_DIR"), "/every_type.rs"));
}

/// Records events of every type, with the lowest and the highest numbers.
fn record(here: &[u8; 3]) {
    trace::signed(i8::MIN, i16::MIN, i32::MIN, i64::MIN, i32::MIN, -1, i16::MIN, -1, i64::MIN, i8::MIN, isize::MIN, -1);
    trace::signed(i8::MAX, i16::MAX, i32::MAX, i64::MAX, i32::MAX, 1, i16::MAX, 1, i64::MAX, i8::MAX, isize::MAX, 1);
    trace::unsigned(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    trace::unsigned(
        u8::MAX,
        u16::MAX,
        u32::MAX,
        u64::MAX,
        u32::MAX,
        1,
        u16::MAX,
        u32::MAX.into(),
        u64::MAX,
        u8::MAX,
        usize::MAX,
        1,
    );
    // Addresses: references, too, and of what has no size of its own.
    trace::others(
        true,
        false,
        b'~' as std::ffi::c_char,
        without_provenance::<u8>(0xdead_beef),
        null::<()>(),
        null_mut::<*mut u8>(),
        &here[..],
        here,
    );
    trace::texts("Grüße", -7, b"\0\xff", c"C");
    trace::texts("x".to_owned(), 7, None::<&CStr>, String::from_utf8_lossy(b"sda"));
    trace::old(u64::MAX, null::<u8>(), 2, -3, 4);
    trace::nothing();
    trace::ten(1, 2, 3, 4, 5, 6, 7, 8, 9, -10);
    trace::on_cpu(without_provenance::<u8>(0x1000), -1);
    trace::mem_trans(3);
    trace::mem_exec(1 << 63, 3);
    trace::off("nothing", 1);
    trace::off_too_exec(null::<u8>(), 1);
    trace::r#type(1, 2, 3, 4, 5, 6, 7, 8);
    trace::self_(1);
    trace::self__(1, 2, 3, 4, 5, 6, 7);
    trace::Self_(1, "u8", 2);
    trace::super_(1, "Arg");
    trace::crate_();
    trace::___();
    trace::__();
    trace::a(1);
    trace::A(2);
    trace::EVENTS_(3);
    trace::generated_(4);
    trace::u8_(5);
    trace::bool_(true);
    trace::quotes("q");
}

/// What is read back of it, typed by the declarations that the recorder hands out.
fn expected(here: u64) -> Vec<String> {
    [
        "signed -128 -32768 -2147483648 -9223372036854775808 -2147483648 -1 -32768 -1 -9223372036854775808 -128 \
         -9223372036854775808 -1",
        "signed 127 32767 2147483647 9223372036854775807 2147483647 1 32767 1 9223372036854775807 127 9223372036854775807 1",
        "unsigned 0 0 0 0 0 0 0 0 0 0 0 0",
        "unsigned 255 65535 4294967295 18446744073709551615 4294967295 1 65535 4294967295 18446744073709551615 255 \
         18446744073709551615 1",
        &format!("others true false 126 0xdeadbeef 0x0 0x0 {here:#x} {here:#x}"),
        r#"texts "Gr\xc3\xbc\xc3\x9fe" -7 "\x00\xff" "C""#,
        r#"texts "x" 7 "" "sda""#,
        "old 18446744073709551615 0x0 2 -3 4",
        "nothing",
        "ten 1 2 3 4 5 6 7 8 9 -10",
        "on_cpu 0x1000 -1",
        "mem_trans 3",
        "mem_exec 9223372036854775808 3",
        "type 1 2 3 4 5 6 7 8",
        "self_ 1",
        "self 1 2 3 4 5 6 7",
        r#"Self 1 "u8" 2"#,
        r#"super 1 "Arg""#,
        "crate",
        "_",
        "__",
        "a 1",
        "A 2",
        "EVENTS 3",
        "generated 4",
        "u8 5",
        "bool true",
        r#"quotes "q""#,
    ]
    .map(str::to_owned)
    .to_vec()
}

/// All events of a file.
fn read_back(file: &[u8], declared: &EventSet) -> Vec<String> {
    let mut names = Names::default();
    let mut found = Vec::new();
    for record in SliceReader::new(file).unwrap() {
        match record.unwrap() {
            Record::Mapping(mapping) => _ = names.map(&mapping),
            Record::Event(event) => {
                let name = names.name(names.slot(event.id).expect("mapped before"));
                let decl = declared.get(name).expect("declared");
                let mut text = name.to_owned();
                let mut args = event.payload.args();
                for arg in &decl.args {
                    match args.next(arg.ty).expect("as many as declared") {
                        Value::Signed(number) => write!(text, " {number}"),
                        Value::Unsigned(number) => write!(text, " {number}"),
                        Value::Bool(yes) => write!(text, " {yes}"),
                        Value::Pointer(address) => write!(text, " {address:#x}"),
                        Value::String(bytes) => write!(text, " \"{}\"", bytes.escape_ascii()),
                    }
                    .unwrap();
                }
                assert!(args.rest().is_empty(), "{text}");
                found.push(text);
            }
            Record::Dropped(dropped) => panic!("{} events are missing", dropped.count),
        }
    }
    found
}

#[test]
fn what_generated_functions_record_is_read_back_as_declared() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace");
    register(&trace::EVENTS).unwrap();

    let evaluated = Cell::new(0);
    let evaluate = || {
        evaluated.set(evaluated.get() + 1);
        evaluated.get()
    };
    assert!(!trace::a::is_enabled());
    trace::a(0);
    emit!(trace::a(evaluate()));
    assert_eq!(evaluated.get(), 0);

    assert_eq!(enable("*").events, trace::EVENTS.len() - 3, "all but those compiled out");
    assert!(enable("off").is_unavailable && !trace::off::is_enabled() && !trace::off::EVENT.is_enabled());
    let recorder = Recorder::start(&Options::new(&file)).unwrap();
    let bytes = [1, 2, 3];
    record(&bytes);
    emit!(trace::a(evaluate()));
    emit!(trace::off("compiled out", evaluate()));
    assert!(disable("A").events == 1 && !trace::A::is_enabled() && trace::a::is_enabled());
    trace::A(3);
    trace::A::record(4);
    let report = recorder.finish(Duration::from_secs(10)).unwrap();
    assert_eq!((report.lost.total(), evaluated.get()), (0, 1));

    let mut declared = EventSet::new();
    let declarations = declarations();
    assert_eq!(declared.add("declarations()", declarations.as_bytes(), Mode::Lenient).errors(), 0);
    let mut expected = expected(bytes.as_ptr().addr() as u64);
    expected.extend(["a 1", "A 4"].map(str::to_owned));
    assert_eq!(read_back(&fs::read(&file).unwrap(), &declared), expected);
}

#[test]
fn the_table_has_every_event_with_its_line() {
    let mut declared = EventSet::new();
    let found = declared.add("trace-events", include_bytes!("trace-events"), Mode::Lenient);
    assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), [""; 0]);
    assert_eq!(
        trace::EVENTS.map(|event| (event.name(), event.is_available())).to_vec(),
        declared.iter().map(|event| (event.name.as_str(), !event.properties.disabled)).collect::<Vec<_>>()
    );
    let off = trace::EVENTS.iter().filter(|event| !event.is_available()).map(|event| event.declaration());
    assert_eq!(
        off.collect::<Vec<_>>(),
        [
            "disable off(const char *text, int number) \"%s %d\"",
            "disable off_too_trans(void *__cpu) \"cpu=%p \"\"\"",
            "disable off_too_exec(void *__cpu, uint64_t addr) \"cpu=%p \"\"%\"PRIx64",
        ]
    );
    let line = "mem_exec(uint64_t addr, uint8_t info) \"addr=0x%016\"PRIx64\" info=%d\"";
    assert_eq!(trace::mem_exec::EVENT.declaration(), line);
    assert_eq!(trace::on_cpu::EVENT.declaration(), "on_cpu(void *__cpu, int level) \"cpu=%p \"\"level=%d\"");
    assert_eq!(trace::nothing::EVENT.declaration(), "nothing(void) \"nothing happened\"");
}
