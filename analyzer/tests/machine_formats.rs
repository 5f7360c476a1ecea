//! CSV, JSON and ndjson: every type of argument at its extremes, and strings that could break out of their cell.

mod support;

use serde_json::{Value as Json, json};
use simpletrace_format::{ByteOrder, EventId, Value};
use support::sample::{self, ORDERS};
use support::{Dir, csv};

const TYPES: &[u8] = br#"types(int8_t i8, int i, long l, int64_t i64, uint8_t u8, size_t z, uint64_t u64, bool b, char c, void *p, const char *s) "%d"
text(const char *s) "%s"
"#;

/// The arguments of `types`: what the file holds, and what that is in JSON.
fn extremes() -> Vec<([Value<'static>; 11], Json)> {
    let low = [
        Value::Signed(-128),
        Value::Signed(i64::from(i32::MIN)),
        Value::Signed(i64::MIN),
        Value::Signed(i64::MIN),
        Value::Unsigned(0),
        Value::Unsigned(0),
        Value::Unsigned(0),
        Value::Bool(false),
        Value::Signed(-19),
        Value::Pointer(0),
        Value::String(b""),
    ];
    let high = [
        Value::Signed(127),
        Value::Signed(i64::from(i32::MAX)),
        Value::Signed(i64::MAX),
        Value::Signed(i64::MAX),
        Value::Unsigned(255),
        Value::Unsigned(u64::MAX),
        Value::Unsigned(u64::MAX),
        Value::Bool(true),
        Value::Signed(237),
        Value::Pointer(u64::MAX),
        Value::String("grün".as_bytes()),
    ];
    let mut odd = high;
    // A word that its type cannot hold keeps all its bits, as a number.
    odd[7] = Value::Unsigned(2);
    odd[0] = Value::Signed(1 << 40);
    odd[4] = Value::Unsigned((1 << 53) + 1);
    vec![
        (
            low,
            json!({"i8": -128, "i": -2_147_483_648_i64, "l": i64::MIN, "i64": i64::MIN, "u8": 0, "z": 0, "u64": 0,
                "b": false, "c": -19, "p": 0, "s": ""}),
        ),
        (
            high,
            json!({"i8": 127, "i": 2_147_483_647, "l": i64::MAX, "i64": i64::MAX, "u8": 255, "z": u64::MAX, "u64": u64::MAX,
                "b": true, "c": 237, "p": u64::MAX, "s": "grün"}),
        ),
        (
            odd,
            json!({"i8": 1_099_511_627_776_u64, "i": 2_147_483_647, "l": i64::MAX, "i64": i64::MAX,
                "u8": 9_007_199_254_740_993_u64, "z": u64::MAX, "u64": u64::MAX, "b": 2, "c": 237, "p": u64::MAX, "s": "grün"}),
        ),
    ]
}

#[test]
fn integers_are_integers_and_keep_every_bit() {
    for order in ORDERS {
        let file = sample::trace(order, |writer| {
            writer.mapping(EventId(7), "types")?;
            for (args, _) in extremes() {
                writer.event(EventId(7), u64::MAX, u32::MAX, &args)?;
            }
            Ok(())
        });
        let dir = Dir::with([("t.trace", &file), ("ev", TYPES)]);
        let expected: Vec<_> = extremes()
            .into_iter()
            .map(|(_, args)| json!({"ts_ns": u64::MAX, "pid": u32::MAX, "event": "types", "args": args}))
            .collect();

        let lines = dir.run("decode t.trace ev -F ndjson").silent();
        assert_eq!(lines.ndjson(), expected);
        assert_eq!(dir.run("decode t.trace ev -F json").silent().json()["records"], Json::from(expected.clone()));

        let table = dir.run("decode t.trace ev -F csv").silent();
        for (row, line) in csv::rows(table.text())[1..].iter().zip(&expected) {
            assert_eq!(row[..3], ["18446744073709551615", "4294967295", "types"]);
            assert_eq!(serde_json::from_str::<Json>(&row[3]).unwrap(), line["args"]);
        }

        let columns = dir.run("decode t.trace ev -F csv -e types").silent();
        assert_eq!(
            columns.lines(),
            [
                "ts_ns,pid,event,i8,i,l,i64,u8,z,u64,b,c,p,s",
                "18446744073709551615,4294967295,types,-128,-2147483648,-9223372036854775808,-9223372036854775808,\
                 0,0,0,false,-19,0,",
                "18446744073709551615,4294967295,types,127,2147483647,9223372036854775807,9223372036854775807,\
                 255,18446744073709551615,18446744073709551615,true,237,18446744073709551615,grün",
                "18446744073709551615,4294967295,types,1099511627776,2147483647,9223372036854775807,9223372036854775807,\
                 9007199254740993,18446744073709551615,18446744073709551615,2,237,18446744073709551615,grün",
            ]
        );
    }
}

#[test]
fn arguments_stand_in_the_order_of_their_declaration() {
    let file = sample::trace(ByteOrder::Little, |writer| {
        writer.mapping(EventId(7), "types")?;
        writer.event(EventId(7), 1, 1, &extremes()[0].0)
    });
    let dir = Dir::with([("t.trace", &file), ("ev", TYPES)]);
    let run = dir.run("decode t.trace ev -F ndjson").silent();
    assert_eq!(
        run.text(),
        "{\"ts_ns\":1,\"pid\":1,\"event\":\"types\",\"args\":{\"i8\":-128,\"i\":-2147483648,\"l\":-9223372036854775808,\
         \"i64\":-9223372036854775808,\"u8\":0,\"z\":0,\"u64\":0,\"b\":false,\"c\":-19,\"p\":0,\"s\":\"\"}}\n"
    );
}

/// Strings, as bytes; those that are UTF-8 come out as they are.
const STRINGS: [&[u8]; 14] = [
    b"",
    b"plain",
    b"a,b",
    b"say \"so\"",
    b"back\\slash \\n \\\"",
    b"two\nlines",
    b"cr\rlf\r\n",
    b"tab\tbell\x07nul\x00del\x7fesc\x1b[31m",
    "grün \u{2028} \u{1f980} \u{9b}".as_bytes(),
    b" blanks ",
    b"'single'",
    b"{\"json\":1}",
    b"cut in \xc3",
    b"\xff\xfe,\"\\\n",
];

#[test]
fn strings_survive_whatever_is_in_them() {
    for order in ORDERS {
        let file = sample::trace(order, |writer| {
            writer.mapping(EventId(7), "text")?;
            for bytes in STRINGS {
                writer.event(EventId(7), 1, 1, &[Value::String(bytes)])?;
            }
            Ok(())
        });
        let dir = Dir::with([("t.trace", &file), ("ev", TYPES)]);
        let expected: Vec<Json> = STRINGS
            .iter()
            .map(|&bytes| match std::str::from_utf8(bytes) {
                Ok(text) => json!(text),
                Err(_) => json!({"hex": bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()}),
            })
            .collect();
        let values = |lines: &[Json]| lines.iter().map(|line| line["args"]["s"].clone()).collect::<Vec<_>>();

        let run = dir.run("decode t.trace ev -F ndjson").silent();
        assert_eq!(values(&run.ndjson()), expected);
        assert!(!run.text().trim_end().contains(|c: char| c < ' ' && c != '\n'), "control characters are escaped");

        let run = dir.run("decode t.trace ev -F json").silent();
        assert_eq!(values(run.json()["records"].as_array().unwrap()), expected);

        let run = dir.run("decode t.trace ev -F csv").silent();
        let args = csv::rows(run.text())[1..]
            .iter()
            .map(|row| json!({"args": serde_json::from_str::<Json>(&row[3]).unwrap()}))
            .collect::<Vec<_>>();
        assert_eq!(values(&args), expected);

        let run = dir.run("decode t.trace ev -F csv -e text").silent();
        let rows = csv::rows(run.text());
        assert_eq!(rows.len(), 1 + STRINGS.len());
        for (row, bytes) in rows[1..].iter().zip(STRINGS) {
            let expected = match bytes {
                b"cut in \xc3" => r"cut in \xc3",
                b"\xff\xfe,\"\\\n" => "\\xff\\xfe,\"\\x5c\n",
                text => std::str::from_utf8(text).unwrap(),
            };
            assert_eq!(row[3], expected);
        }
    }
}

#[test]
fn an_argument_may_have_the_name_of_a_column_or_of_another_argument() {
    let file = sample::trace(ByteOrder::Little, |writer| {
        writer.mapping(EventId(7), "names")?;
        writer.event(EventId(7), 1, 2, &[3, 4, 5, 6].map(Value::Unsigned))
    });
    let dir = Dir::with([("t.trace", &file), ("ev", b"names(int pid, int x, int x, int event) \"\"\n")]);
    let line = dir.run("decode t.trace ev -F ndjson").exits(0);
    assert_eq!(
        line.text(),
        "{\"ts_ns\":1,\"pid\":2,\"event\":\"names\",\"args\":{\"pid\":3,\"x\":4,\"x_3\":5,\"event\":6}}\n"
    );
    let rows = dir.run("decode t.trace ev -F csv -e names").exits(0);
    assert_eq!(rows.text(), "ts_ns,pid,event,pid_1,x,x_3,event_4\n1,2,names,3,4,5,6\n");
}

#[test]
fn a_name_from_the_file_cannot_break_out_of_its_cell() {
    let name = "a\",\"b\n\\";
    let file = sample::trace(ByteOrder::Little, |writer| {
        writer.mapping(EventId(7), name)?;
        writer.event(EventId(7), 1, 2, &[])
    });
    let dir = Dir::with([("t.trace", &file)]);
    assert_eq!(dir.run("decode t.trace -F ndjson").exits(0).ndjson()[0]["event"], name);
    assert_eq!(dir.run("decode t.trace -F json").exits(0).json()["records"][0]["event"], name);
    assert_eq!(csv::rows(dir.run("decode t.trace -F csv").exits(0).text())[1][2], name);
}

#[test]
fn missing_arguments_are_missing_members_and_empty_cells() {
    let file = sample::trace(ByteOrder::Little, |writer| {
        sample::mappings(writer)?;
        writer.event(sample::READ, 5, 1, &[Value::Pointer(1), Value::Unsigned(2)])
    });
    let dir = Dir::with([("t.trace", &file), ("ev", sample::EVENTS)]);
    let line = dir.run("decode t.trace ev -F ndjson").exits(1);
    assert_eq!(line.ndjson(), [json!({"ts_ns": 5, "pid": 1, "event": "disk_read", "args": {"disk": 1, "sector": 2}})]);
    let rows = dir.run("decode t.trace ev -F csv -e disk_read").exits(1);
    assert_eq!(rows.text(), "ts_ns,pid,event,disk,sector,count\n5,1,disk_read,1,2,\n");
}

#[test]
fn a_document_is_whole_even_if_the_trace_is_not() {
    let mut file = sample::sample(ByteOrder::Little);
    file.extend([0xaa; 50]);
    let dir = Dir::with([("t.trace", &file), ("ev", sample::EVENTS)]);
    let run = dir.run("decode t.trace ev -F json").exits(1);
    assert_eq!(run.json()["records"].as_array().unwrap().len(), 5);
}
