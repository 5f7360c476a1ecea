//! The language, its errors, and what it selects of records whose values are known.

use proptest::prelude::*;
use simpletrace_format::{ByteOrder, EventId, EventRecord, Payload, Value};

use super::*;

const EVENTS: &str = "disk_open(const char *path, bool ro) \"%s %d\"
disk_read(void *disk, uint64_t sector, uint32_t count) \"\"
disk_done(void *disk, int ret) \"\"
small(uint8_t u, int8_t i, char c, unsigned flags) \"\"
odd(uint32_t ret, int time, const char *pid) \"\"
idle(void) \"\"
bad(int
";

fn declared() -> EventIndex {
    let mut index = EventIndex::new();
    index.add("ev", EVENTS.as_bytes().to_vec());
    index
}

fn checked(filter: &str, globs: &[&str]) -> Result<Conditions> {
    let globs: Vec<_> = globs.iter().map(ToString::to_string).collect();
    let conditions = Conditions::parse(&[filter.to_owned()])?;
    conditions.check(&Globs::parse(&globs)?, Some(&declared()))?;
    Ok(conditions)
}

/// Asserts the error: its message, and what the caret stands under.
#[track_caller]
fn assert_fault(filter: &str, at: &str, message: &str) {
    let error = checked(filter, &[]).expect_err(filter).to_string();
    let mut lines = error.lines();
    let first = lines.next().unwrap();
    let (place, text) = first.strip_prefix("-w:1:").and_then(|rest| rest.split_once(": ")).unwrap();
    assert_eq!(lines.next(), Some(&*format!("  {filter}")), "{error}");
    let marks = lines.next().unwrap();
    let help = lines.next().map_or(String::new(), |line| format!("; {line}"));
    assert_eq!(format!("{text}{help}"), message, "{filter}");
    let column = marks.find('^').unwrap() - 2;
    assert_eq!(place, (column + 1).to_string(), "{error}");
    let marked: String = filter.chars().skip(column).take(marks.len() - 2 - column).collect();
    assert_eq!(marked, at, "{error}");
}

#[test]
fn what_is_not_of_the_language_has_its_place() {
    for (filter, at, message) in [
        ("", "", "the name of an argument should stand here, and the filter ends"),
        ("count >", "", "a value should stand here, and the filter ends"),
        ("count > &&", "&&", "a value should stand here, and there is \"&&\""),
        ("count > -\"x\"", "\"x\"", "a number should stand here, and there is a string"),
        (
            "count > sector",
            "sector",
            "\"sector\" is no value; help: arguments are compared with numbers, times, \"strings\", true and false",
        ),
        ("5 < count", "5", "the name of an argument should stand here; help: write ARG == VALUE, not VALUE == ARG"),
        ("true == ro", "true", "the name of an argument should stand here; help: write ARG == VALUE, not VALUE == ARG"),
        ("count = 5", "=", "'=' means nothing here; help: write == or =~"),
        ("ro | ro", "|", "'|' means nothing here; help: write ||"),
        ("path == 'x'", "'", "'\\'' means nothing here; help: strings stand in double quotes"),
        ("count ; 5", ";", "';' means nothing here"),
        ("ro and ro", "and", "&& or || should stand here, and there is \"and\""),
        ("ro ro", "ro", "&& or || should stand here, and there is \"ro\""),
        ("(ro", "(", "this parenthesis is not closed"),
        ("(ro ro)", "ro", "&&, || or ) should stand here, and there is \"ro\""),
        ("ro)", ")", "no parenthesis is open here"),
        ("!count == 5", "!", "it is not plain what this ! belongs to; help: write !(ARG == VALUE)"),
        (
            "flags & 6 == 2",
            "==",
            "ARG & BITS is true or false, and no number to compare; help: write ARG & 0x2 && !(ARG & 0x4)",
        ),
        (
            "(flags & 6) == 2",
            "==",
            "ARG & BITS is true or false, and no number to compare; help: write ARG & 0x2 && !(ARG & 0x4)",
        ),
        (
            "co* == 5",
            "co*",
            "patterns are for events, in front of a colon, and for strings; help: write EVENT*: ARG == VALUE or ARG =~ \"PATTERN\"",
        ),
        ("path == \"a\\q\"", "\\q", "this is no escape; help: there are \\\" \\\\ \\n \\t \\r \\xNN and \\u{N}"),
        ("path == \"\\u{d800}\"", "\\u", "this is no escape; help: there are \\\" \\\\ \\n \\t \\r \\xNN and \\u{N}"),
        ("path == \"a", "\"a", "this string has no end; help: write a \" behind it"),
        (": ro", ":", "the name of an event should stand here, and there is \":\""),
        ("a b: ro", "b", "a comma or a colon should stand here, and there is \"b\""),
        ("disk_open: ro: ro", ":", "&& or || should stand here, and there is \":\""),
    ] {
        assert_fault(filter, at, message);
    }
    let error = checked("disk_open:\n  rq", &[]).unwrap_err().to_string();
    assert_eq!(error, "-w:2:3: disk_open has no argument rq\n    rq\n    ^^\nhelp: did you mean ro?");
}

#[test]
fn what_the_types_do_not_allow_has_its_place() {
    for (filter, at, message) in [
        (
            "path == 5",
            "5",
            "path of disk_open is const char *, and cannot be compared with a number; help: write \"5\"",
        ),
        ("path == true", "true", "path of disk_open is const char *, and cannot be compared with true or false"),
        (
            "path < \"x\"",
            "<",
            "path of disk_open is const char *, and < is for numbers; help: strings have ==, != and =~",
        ),
        (
            "path",
            "path",
            "path of disk_open is const char *, which is not true or false by itself; help: write path != \"\"",
        ),
        ("path & 1", "&", "path of disk_open is const char *, which has no bits to test"),
        ("ro < true", "<", "ro of disk_open is bool, and < is for numbers"),
        ("ro < 1", "<", "ro of disk_open is bool, and < is for numbers; help: write true or false"),
        ("ro == 1", "1", "ro of disk_open is bool, and cannot be compared with a number; help: write true or false"),
        ("ro =~ true", "=~", "ro of disk_open is bool, and =~ is for strings"),
        ("ro & 1", "&", "ro of disk_open is bool, which has no bits to test"),
        (
            "count",
            "count",
            "count of disk_read is uint32_t, which is not true or false by itself; help: write count != 0",
        ),
        ("count == \"5\"", "\"5\"", "count of disk_read is uint32_t, and cannot be compared with a string"),
        ("count =~ 5", "=~", "count of disk_read is uint32_t, and =~ is for strings"),
        (
            "count == 4294967296",
            "4294967296",
            "count of disk_read is uint32_t, from 0 to 4294967295, and 4294967296 is not",
        ),
        ("count == 12x", "12x", "12x is not a whole number; help: write digits, or hexadecimal digits behind 0x"),
        (
            "count == 5ms",
            "5ms",
            "5ms is not a whole number; help: `time` is compared with times, arguments with numbers",
        ),
        ("count == 0x", "0x", "0x is not a whole number; help: write digits, or hexadecimal digits behind 0x"),
        (
            "count == 010",
            "010",
            "numbers with a 0 in front are octal in C, and there are none here; help: leave out the 0, or write 0x for hexadecimal",
        ),
        (
            "sector == 18446744073709551616",
            "18446744073709551616",
            "sector of disk_read is uint64_t, from 0 to 18446744073709551615, and 18446744073709551616 is not",
        ),
        ("u == 300", "300", "u of small is uint8_t, from 0 to 255, and 300 is not"),
        ("u == -1", "-1", "u of small is uint8_t, from 0 to 255, and -1 is not"),
        ("i == 0xfb", "0xfb", "i of small is int8_t, from -128 to 127, and 0xfb is not; help: write -5"),
        ("c == 256", "256", "c of small is char, from -128 to 255, and 256 is not"),
        ("flags & 0x100000000", "0x100000000", "flags of small is unsigned, and 0x100000000 is not within its 32 bits"),
        ("flags & 0", "0", "0 has no bits, so this is never true"),
        ("flags & true", "true", "bits are a number, such as 0x4"),
        (
            "disk_done: ret == 0xfffffffb",
            "0xfffffffb",
            "ret of disk_done is int, from -2147483648 to 2147483647, and 0xfffffffb is not; help: write -5",
        ),
        ("disk == 4096", "4096", "disk of disk_done is void *, an address; help: write 0x1000 in hexadecimal"),
        ("disk == -1", "-1", "disk of disk_done is void *, and -1 is no address of 64 bits"),
        (
            "disk_read: time == true",
            "true",
            "time, and cannot be compared with true or false; help: write a time, such as 5ms or @1234.5s",
        ),
        ("disk_read: time == 5d", "5d", "'5d' is not a time; write a number and ns, us, ms, s, m or h, such as 1.5s"),
        ("disk_read: time =~ 5", "=~", "time, and =~ is for strings"),
        ("disk_read: time", "time", "time, which is not true or false by itself; help: write time != 0"),
        ("disk_read: pid == 4294967296", "4294967296", "pid, from 0 to 4294967295, and 4294967296 is not"),
        ("disk_read: event == 3", "3", "event, and cannot be compared with a number; help: write \"3\""),
        ("event < \"x\"", "<", "event, and < is for numbers; help: strings have ==, != and =~"),
        // An argument of such a name goes before.
        ("odd: pid == 3", "3", "pid of odd is const char *, and cannot be compared with a number; help: write \"3\""),
        (
            "odd: time == 5ms",
            "5ms",
            "5ms is not a whole number; help: `time` is compared with times, arguments with numbers",
        ),
    ] {
        assert_fault(filter, at, message);
    }
}

#[test]
fn unknown_names_have_their_place_and_the_nearest() {
    for (filter, at, message) in [
        ("disk_raed: count > 1", "disk_raed", "no event is called disk_raed; help: did you mean disk_read?"),
        ("disk_done, xyz: ret == 0", "xyz", "no event is called xyz"),
        ("disk_r?ad: count > 1", "disk_r?ad", "no event is called disk_r?ad; help: did you mean disk_read?"),
        ("net_*: count > 1", "net_*", "no event that is asked for matches this"),
        ("disk_read: ro || cuont > 1", "ro", "disk_read has no argument ro; help: there are disk, sector, count"),
        ("disk_read: cuont > 1", "cuont", "disk_read has no argument cuont; help: did you mean count?"),
        ("idle: x == 1", "x", "idle has no argument x; help: there are none"),
        ("cuont > 1", "cuont", "no event that is asked for has an argument cuont; help: did you mean count?"),
        ("tiem > 1", "tiem", "no event that is asked for has an argument tiem; help: did you mean time?"),
        (
            "disk_*: flags & 1",
            "flags",
            "no event that is asked for has an argument flags; help: there are count, disk, path, ret, ro, sector",
        ),
        (
            "path == \"x\" && count > 1",
            "path == \"x\" && count",
            "no event that is asked for has all of these arguments; help: give several filters, each with its events in front: EVENT: EXPRESSION",
        ),
        ("bad: x == 1", "bad", "the declaration of bad cannot be understood; help: `simpletrace-rs events` says why"),
        ("dropped: pid == 1", "dropped", "gaps are no events, and no filter takes them out; help: write -e -dropped"),
    ] {
        assert_fault(filter, at, message);
    }
    let error = checked("disk_read: count > 1", &["disk_done"]).unwrap_err().to_string();
    assert!(error.starts_with("-w:1:1: disk_read is not among the events that are asked for\n"), "{error}");
    let error = checked("ret == -5 && ret > 0x80000000", &[]).unwrap_err().to_string();
    assert!(error.starts_with("-w:1:20: ret of disk_done is int, from"), "{error}");
}

#[test]
fn without_declarations_only_what_is_always_known_can_be_asked_for() {
    let check = |filter: &str| Conditions::parse(&[filter.to_owned()]).unwrap().check(&Globs::default(), None);
    for filter in ["pid == 3 && time < 5ms", "a: event == \"a\"", "a*: pid == 3"] {
        check(filter).unwrap();
    }
    for filter in ["count == 3", "a: count == 3", "a*: count == 3"] {
        let error = check(filter).unwrap_err().to_string();
        assert!(error.contains(": no trace-events file was given or found, so no arguments are known\n"), "{error}");
    }
    let error = check("pid == \"x\"").unwrap_err().to_string();
    assert!(error.starts_with("-w:1:8: pid, and cannot be compared with a string\n"), "{error}");
}

#[test]
fn nesting_has_a_limit_and_length_has_none() {
    let nested = |open: &str, close: &str, count: usize| {
        checked(&format!("{}ro{}", open.repeat(count), close.repeat(count)), &[])
    };
    nested("(", ")", 100).unwrap();
    nested("!", "", 100).unwrap();
    nested("!(", ")", 50).unwrap();
    for (open, close) in [("(", ")"), ("!", ""), ("!(", ")")] {
        for count in [101, 10_000] {
            let error = nested(open, close, count).unwrap_err().to_string();
            assert!(error.contains("more than 100 parentheses and ! within each other"), "{error}");
        }
    }
    checked(&vec!["ro"; 10_000].join(" && "), &[]).unwrap();
}

/// The payload of some values.
fn payload(values: &[Value<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in values {
        match value {
            Value::String(text) => {
                bytes.extend((text.len() as u32).to_le_bytes());
                bytes.extend(*text);
            }
            value => bytes.extend(value.word().unwrap().to_le_bytes()),
        }
    }
    bytes
}

fn record(payload: &[u8], timestamp_ns: u64) -> EventRecord<'_> {
    let payload = Payload::new(payload, ByteOrder::Little);
    EventRecord { offset: 0, id: EventId(0), timestamp_ns, pid: 7, payload }
}

/// What a filter says of a record 5 ms after the start of a trace, which is at 1 s.
fn admits(filter: &str, event: &str, values: &[Value<'_>]) -> bool {
    let conditions = checked(filter, &[]).unwrap_or_else(|error| panic!("{error}"));
    let decl = find(&declared(), event).unwrap();
    match conditions.choose(event, &decl.args, true) {
        Ok(None) => true,
        Ok(Some(predicate)) => predicate.admits(&record(&payload(values), 1_005_000_000), 1_000_000_000).unwrap(),
        Err(_) => false,
    }
}

#[test]
fn values_are_compared_by_their_types() {
    use Value::{Bool, Pointer, Signed, String, Unsigned};

    let open = [String(b"a\"\xff*"), Bool(true)];
    let read = [Pointer(0xffff_8000_0000_0000), Unsigned(u64::MAX), Unsigned(300)];
    let done = [Pointer(0), Signed(-5)];
    let small = [Unsigned(200), Signed(-128), Signed(-19), Unsigned(0x8000_0006)];
    for (event, values, filter, expected) in [
        ("disk_open", &open[..], r#"path == "a\"\xff*""#, true),
        ("disk_open", &open, r#"path == "a""#, false),
        ("disk_open", &open, r#"path != "a""#, true),
        ("disk_open", &open, r#"path =~ "a*""#, true),
        ("disk_open", &open, r#"path =~ "a??*""#, true),
        ("disk_open", &open, r#"path =~ "a???""#, true),
        ("disk_open", &open, r#"path =~ "????""#, true),
        ("disk_open", &open, r#"path =~ "a??""#, false),
        ("disk_open", &open, r#"path =~ "b*""#, false),
        ("disk_open", &open, "ro", true),
        ("disk_open", &open, "!ro", false),
        ("disk_open", &open, "!!ro", true),
        ("disk_open", &open, "ro == true && ro != false", true),
        ("disk_open", &open, "ro == false", false),
        // Some word that is no bool.
        ("disk_open", &[String(b""), Unsigned(2)], "ro && ro == true && ro != false", true),
        ("disk_read", &read, "sector == 18446744073709551615", true),
        ("disk_read", &read, "sector > 0x7fffffffffffffff", true),
        ("disk_read", &read, "count >= 300 && count <= 300 && !(count < 300) && !(count > 300)", true),
        ("disk_read", &read, "disk > 0x7fffffffffff", true),
        ("disk_read", &read, "disk == 0xFFFF800000000000", true),
        ("disk_read", &read, "disk & 0x8000000000000000", true),
        ("disk_done", &done, "disk == 0", true),
        ("disk_done", &done, "ret == -5", true),
        ("disk_done", &done, "ret < 0 && ret > -6 && ret < 0x10", true),
        ("disk_done", &done, "ret >= 0", false),
        ("disk_done", &done, "ret & 0x80000000", true),
        ("small", &small, "u == 0xc8 && i == -128 && c == -19", true),
        ("small", &small, "flags & 0x4", true),
        ("small", &small, "flags & 1", false),
        ("small", &small, "flags & 9 || flags & 2", true),
        ("small", &small, "!(flags & 9) && !(flags & 0x10)", true),
        // && binds before ||.
        ("small", &small, "u == 200 || u == 1 && u == 2", true),
        ("small", &small, "(u == 200 || u == 1) && u == 2", false),
        ("idle", &[], "time == 5ms && pid == 7", true),
        ("idle", &[], "time < 5ms || time > 5000us", false),
        ("idle", &[], "time == @1.005", true),
        ("idle", &[], "time >= @1.005000001s", false),
        ("idle", &[], "time <= 213503h", true),
        ("idle", &[], "event == \"idle\" && event =~ \"i*\"", true),
        ("idle", &[], "event != \"idle\"", false),
        ("odd", &[Unsigned(5), Signed(-3), String(b"x")], "ret == 5 && time < 0 && pid == \"x\"", true),
        // Events that lack an argument are left out, unless other events are named.
        ("idle", &[], "ret == -5", false),
        ("idle", &[], "disk_done: ret == -5", true),
        ("odd", &[Unsigned(5), Signed(-3), String(b"x")], "ret == -5", false),
        ("disk_done", &done, "disk_*: ret == 5", false),
        ("disk_read", &read, "disk_*: ret == 5", false),
        ("idle", &[], "disk_*: ret == 5", true),
        ("idle", &[], "disk_*, small: pid == 5", true),
        ("small", &small, "disk_*, small: pid == 5", false),
    ] {
        assert_eq!(admits(filter, event, values), expected, "{event}: {filter}");
    }
}

#[test]
fn a_record_earlier_than_the_first_is_before_the_start() {
    let conditions = checked("time < 0ns && time >= @1s && time < @2s", &[]).unwrap();
    let predicate = conditions.choose("idle", &[], true).unwrap().unwrap();
    assert_eq!(predicate.admits(&record(&[], 1_999_999_999), 2_000_000_000), Some(true));
    assert_eq!(predicate.admits(&record(&[], 2_000_000_000), 2_000_000_000), Some(false));
}

#[test]
fn a_record_without_an_argument_that_is_asked_for_is_neither_wanted_nor_not() {
    let decl = find(&declared(), "disk_read").unwrap();
    let whole = payload(&[Value::Pointer(1), Value::Unsigned(2), Value::Unsigned(3)]);
    for (filter, bytes_needed) in [
        ("count == 3", 24),
        ("!(count == 4)", 24),
        ("disk == 1 || count == 3", 24),
        ("sector == 2", 16),
        ("pid == 7", 0),
    ] {
        let filter = filter.replace("disk == 1", "disk == 0x1");
        let predicate = checked(&filter, &[]).unwrap().choose("disk_read", &decl.args, true).unwrap().unwrap();
        for length in 0..=whole.len() {
            let expected = (length >= bytes_needed).then_some(true);
            assert_eq!(predicate.admits(&record(&whole[..length], 0), 0), expected, "{filter}, {length}");
        }
    }
}

#[test]
fn several_filters_must_all_hold() {
    let filters = ["disk_*: disk != 0", "disk_read: count > 5", "pid == 7"].map(str::to_owned);
    let conditions = Conditions::parse(&filters).unwrap();
    let declared = declared();
    conditions.check(&Globs::default(), Some(&declared)).unwrap();
    assert_eq!(
        conditions.explain(&Globs::default(), &declared),
        "bad: pid == 7
disk_done: disk (void *) != 0x0 && pid == 7
disk_read: disk (void *) != 0x0 && count (uint32_t) > 5 && pid == 7
idle: pid == 7
small: pid == 7
left out, without disk: 1 event: disk_open
left out: pid of odd is const char *, and cannot be compared with a number
"
    );
}

#[test]
fn what_is_known_of_the_name_costs_nothing_for_each_record() {
    let choose = |filter: &str, event: &str| checked(filter, &[]).unwrap().choose(event, &[], true);
    assert!(matches!(choose("event == \"idle\" || pid == 1", "idle"), Ok(None)));
    assert!(matches!(choose("event =~ \"id*\" && pid == 1", "small"), Err(LeftOut::Never)));
    assert_eq!(choose("event =~ \"id*\" && pid == 1", "idle").unwrap().unwrap().to_string(), "pid == 1");
}

/// A filter as text, and what it says of the values of [`Sample`], computed as simply as can be.
#[derive(Debug, Clone)]
struct Asked(String, bool);

const TEXTS: [&str; 5] = ["", "a", "ab", "ba", "aab"];

#[derive(Debug, Clone)]
struct Sample {
    i: i32,
    u: u8,
    text: &'static str,
    b: bool,
    p: u64,
}

fn sample() -> impl Strategy<Value = Sample> {
    (-3..3_i32, 0..4_u8, 0..TEXTS.len(), any::<bool>(), 0..4_u64).prop_map(|(i, u, text, b, p)| Sample {
        i,
        u,
        text: TEXTS[text],
        b,
        p,
    })
}

fn compare<T: Ord>(left: &T, op: &str, right: &T) -> bool {
    match op {
        "==" => left == right,
        "!=" => left != right,
        "<" => left < right,
        "<=" => left <= right,
        ">" => left > right,
        _ => left >= right,
    }
}

fn asked(sample: Sample) -> impl Strategy<Value = Asked> {
    let op = proptest::sample::select(vec!["==", "!=", "<", "<=", ">", ">="]);
    let leaf = (0..6, op, -3..3_i32).prop_map(move |(which, op, literal)| {
        let (s, small) = (&sample, literal.unsigned_abs());
        let text = TEXTS[small as usize];
        match which {
            0 => Asked(format!("i{op} {literal}"), compare(&s.i, op, &literal)),
            1 => Asked(format!("u {op}{small}"), compare(&u32::from(s.u), op, &small)),
            2 => Asked(format!("t=={text:?}"), s.text == text),
            3 => Asked(format!("t =~ \"*{text}*\""), s.text.contains(text)),
            4 => Asked("b".to_owned(), s.b),
            _ => Asked(format!("p & {:#x}", small + 1), s.p & u64::from(small + 1) != 0),
        }
    });
    leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|Asked(text, is)| Asked(format!("!({text})"), !is)),
            (inner.clone(), inner.clone())
                .prop_map(|(Asked(a, is_a), Asked(b, is_b))| Asked(format!("({a}) && ({b})"), is_a && is_b)),
            (inner.clone(), inner)
                .prop_map(|(Asked(a, is_a), Asked(b, is_b))| Asked(format!("(({a})||{b})"), is_a || is_b)),
        ]
    })
}

proptest! {
    #[test]
    fn filters_select_what_they_say(
        (sample, Asked(filter, expected)) in sample().prop_flat_map(|sample| (Just(sample.clone()), asked(sample)))
    ) {
        let mut index = EventIndex::new();
        index.add("ev", b"e(int i, const char *t, uint8_t u, void *p, bool b) \"\"".to_vec());
        let decl = find(&index, "e").unwrap();
        let conditions = Conditions::parse(std::slice::from_ref(&filter)).unwrap();
        conditions.check(&Globs::default(), Some(&index)).unwrap();
        let Sample { i, u, text, b, p } = sample;
        let payload = payload(&[
            Value::Signed(i.into()),
            Value::String(text.as_bytes()),
            Value::Unsigned(u.into()),
            Value::Pointer(p),
            Value::Bool(b),
        ]);
        let predicate = conditions.choose("e", &decl.args, true).unwrap().unwrap();
        prop_assert_eq!(predicate.admits(&record(&payload, 0), 0), Some(expected), "{}", filter);
    }

    #[test]
    fn no_text_is_too_odd(filter in "\\PC{0,40}", of_tokens in "(disk_read|count|path|ro|[(]|[)]|!|&&|[|][|]|==|=~|<|&|0x|5|-|:|,|\"|\\\\x4|µs|@|[.]| ){0,30}") {
        for filter in [filter, of_tokens] {
            if let Ok(conditions) = checked(&filter, &[]) {
                let _ = conditions.explain(&Globs::default(), &declared());
            }
        }
    }
}
