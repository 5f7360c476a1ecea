use super::*;
use crate::output::Rotation;
use crate::{Event, register};

fn parsed(given: &[&str]) -> TraceOptions {
    TraceOptions::parse(given).unwrap()
}

fn rules_of(options: &TraceOptions) -> Vec<&str> {
    options.rules.iter().map(|rule| rule.pattern.as_str()).collect()
}

fn error(given: &[&str]) -> String {
    TraceOptions::parse(given).unwrap_err().to_string()
}

#[test]
fn options_are_split_as_qemu_splits_them() {
    let pairs = |text: &str| -> Vec<String> {
        let utf8 = |bytes| String::from_utf8(bytes).unwrap();
        let value = |value: Option<_>| value.map_or("(none)".to_owned(), utf8);
        split(text.as_bytes()).into_iter().map(|(key, of)| format!("{} {}", utf8(key), value(of))).collect()
    };
    for (given, expected) in [
        ("", &[][..]),
        ("net_*", &["enable net_*"]),
        ("net_*,file=t", &["enable net_*", "file t"]),
        ("file=t,events=e", &["file t", "events e"]),
        // Two commas are one, also in what has no key, and as often as they come.
        ("file=a,,b,events=e", &["file a,b", "events e"]),
        ("a,,b,file=t", &["enable a,b", "file t"]),
        ("file=a,,,,b", &["file a,,b"]),
        ("file=a,,,events=e", &["file a,", "events e"]),
        // A comma at the end says nothing.
        ("net_*,", &["enable net_*"]),
        ("file=t,", &["file t"]),
        // Only the first may lack its key: others are flags.
        ("net_*,durable", &["enable net_*", "durable (none)"]),
        ("net_*,durable,file=t", &["enable net_*", "durable (none)", "file t"]),
        ("file=t,net_*", &["file t", "net_* (none)"]),
        ("durable", &["enable durable"]),
        // An equals sign in a value is part of it.
        ("file=a=b", &["file a=b"]),
        (",file=t", &["enable ", "file t"]),
        ("=x", &[" x"]),
    ] {
        assert_eq!(pairs(given), expected, "{given:?}");
    }
}

#[test]
fn patterns_of_all_options_count_in_their_order_and_of_other_keys_the_last() {
    let options = parsed(&["net_*,file=first", "-net_poll", "enable=disk_read,buffer=128K", "file=second,buffer=2M"]);
    assert_eq!(rules_of(&options), ["net_*", "-net_poll", "disk_read"]);
    assert_eq!((options.options.file.to_str(), options.options.ring_bytes), (Some("second"), 2 << 20));
    assert!(options.is_given && !options.wants_help && options.notes.is_empty());

    // QEMU takes the name of the file from the last option only.
    assert_eq!(parsed(&["a*,file=f1", "b*"]).options.file.to_str(), Some("f1"));
    assert_eq!(parsed(&["a*"]).options.file.to_str(), Some("trace-%d"));

    let options = parsed(&["a,enable=b,file=f,file=g"]);
    assert_eq!((rules_of(&options), options.options.file.to_str()), (vec!["b"], Some("g")));
    assert_eq!(
        options.notes,
        ["-trace a,enable=b,file=f,file=g: of more than one enable= in an option only the last counts"]
    );
}

#[test]
fn nothing_is_asked_for_by_no_option_or_empty_ones() {
    assert!(!parsed(&[]).is_given && !parsed(&["", ""]).is_given);
    assert!(parsed(&["file=f"]).is_given);
    let control = parsed(&[""]).start().unwrap();
    assert!(control.finish(Duration::ZERO).unwrap().is_none(), "no recording");
}

#[test]
fn help_is_a_pattern_that_lists() {
    for help in ["help", "?", "enable=help,file=f"] {
        assert!(parsed(&[help]).wants_help && parsed(&["a*", help]).wants_help(), "{help}");
    }
    assert!(!parsed(&["help*"]).wants_help);
}

#[test]
fn our_own_keys_are_options_of_the_recording() {
    let of = |given: &str| parsed(&[given]).options;
    assert_eq!(of("*,buffer=65536").ring_bytes, 65_536);
    assert_eq!(of("*,buffer=64M").ring_bytes, 64 << 20);
    assert_eq!(of("*,policy=discard").policy, Policy::Discard);
    assert_eq!(of("*,policy=block").policy, Policy::Block(None));
    assert_eq!(of("*,policy=block:15ms").policy, Policy::Block(Some(Duration::from_millis(15))));
    assert_eq!(of("*,policy=block:7us").policy, Policy::Block(Some(Duration::from_micros(7))));
    assert_eq!(of("*,policy=block:2s").policy, Policy::Block(Some(Duration::from_secs(2))));
    assert!(of("*,durable").is_durable && of("*,durable=on").is_durable && !of("*,durable,durable=off").is_durable);
    assert_eq!((of("*,clock=auto").clock, of("*,clock=monotonic").clock), (Clock::Auto, Clock::Monotonic));
    assert_eq!((of("*,fork=follow").fork, of("*,fork=off").fork), (Fork::Follow, Fork::Off));
    assert!(of("*,threads=on").thread_ids && of("*,threads").thread_ids && !of("*").thread_ids);
    let rotation = |given| of(given).rotation.map(|Rotation { bytes, keep }| (bytes, keep));
    assert_eq!(rotation("*,rotate=1M"), Some((1 << 20, None)));
    assert_eq!(rotation("*,rotate=2G:4"), Some((2 << 30, Some(4))));
    assert_eq!(rotation("*"), None);
}

#[test]
fn what_is_wrong_with_an_option_is_said_in_a_line() {
    for (given, expected) in [
        (
            "*,fiel=t",
            "-trace *,fiel=t: there is no fiel=. Did you mean file=? A pattern comes first; the keys are enable=, events=, file=, buffer=, clock=, durable=, fork=, policy=, rotate=, threads=",
        ),
        (
            "file=t,net_*",
            "-trace file=t,net_*: there is no net_*=. A pattern comes first; the keys are enable=, events=, file=, buffer=, clock=, durable=, fork=, policy=, rotate=, threads=",
        ),
        (",file=t", "-trace ,file=t: enable= has no value"),
        ("*,file", "-trace *,file: file= has no value"),
        ("*,events,file=t", "-trace *,events,file=t: events= has no value"),
        ("*,buffer", "-trace *,buffer: buffer= has no value"),
        (
            "*,rotate=1M:+4",
            "-trace *,rotate=1M:+4: rotate=1M:+4: it is the size of a part, 1M or more, and perhaps how many to keep, such as 256M:4",
        ),
        (
            "a\nb\u{1b}[31m,x=1",
            "-trace a\\nb\\u{1b}[31m,x=1: there is no x=. A pattern comes first; the keys are enable=, events=, file=, buffer=, clock=, durable=, fork=, policy=, rotate=, threads=",
        ),
        ("*,events=/dev/zero", "the events file /dev/zero cannot be read: it has more than 4194304 bytes"),
        ("*,file=", "-trace *,file=: file= has no value"),
        ("*,events=,file=t", "-trace *,events=,file=t: events= has no value"),
        ("*,buffer=1000000", "-trace *,buffer=1000000: buffer=1000000: it is a power of two from 64K to 64M"),
        ("*,buffer=128M", "-trace *,buffer=128M: buffer=128M: it is a power of two from 64K to 64M"),
        ("*,buffer=32K", "-trace *,buffer=32K: buffer=32K: it is a power of two from 64K to 64M"),
        ("*,buffer=1T", "-trace *,buffer=1T: buffer=1T: it is a power of two from 64K to 64M"),
        ("*,buffer=+1M", "-trace *,buffer=+1M: buffer=+1M: it is a power of two from 64K to 64M"),
        (
            "*,buffer=18014398509481985K",
            "-trace *,buffer=18014398509481985K: buffer=18014398509481985K: it is a power of two from 64K to 64M",
        ),
        (
            "*,policy=wait",
            "-trace *,policy=wait: policy=wait: it is discard, block, or block: and the longest wait, such as block:10ms",
        ),
        (
            "*,policy=block:10",
            "-trace *,policy=block:10: policy=block:10: it is discard, block, or block: and the longest wait, such as block:10ms",
        ),
        ("*,durable=yes", "-trace *,durable=yes: durable=yes: it is on or off"),
        ("*,threads=1", "-trace *,threads=1: threads=1: it is on or off"),
        ("*,clock=tsc", "-trace *,clock=tsc: clock=tsc: it is auto or monotonic"),
        ("*,fork=on", "-trace *,fork=on: fork=on: it is follow or off"),
        (
            "*,rotate=1K",
            "-trace *,rotate=1K: rotate=1K: it is the size of a part, 1M or more, and perhaps how many to keep, such as 256M:4",
        ),
        (
            "*,rotate=1M:0",
            "-trace *,rotate=1M:0: rotate=1M:0: it is the size of a part, 1M or more, and perhaps how many to keep, such as 256M:4",
        ),
        (
            "*,events=/nonexistent",
            "the events file /nonexistent cannot be read: No such file or directory (os error 2)",
        ),
    ] {
        assert_eq!(error(&[given]), expected);
    }
    let odd = OsStr::from_bytes(b"net_\xff");
    assert_eq!(TraceOptions::parse([odd]).unwrap_err().to_string(), "-trace net_\u{fffd}: enable= is not UTF-8");
    let odd = OsStr::from_bytes(b"file=t\xff");
    assert_eq!(TraceOptions::parse([odd]).unwrap().options.file.as_os_str().as_bytes(), b"t\xff");
}

#[test]
fn a_name_that_no_event_has_is_an_error_and_nothing_is_enabled() {
    static SEND: Event = Event::new("option_send", "option_send(void) \"\"");
    static OFF: Event = Event::unavailable("option_off", "disable option_off(void) \"\"");
    register(&[&SEND, &OFF]).unwrap();
    let error = |given: &[&str]| parsed(given).start().unwrap_err().to_string();
    assert_eq!(
        error(&["option_send", "option_sent"]),
        "-trace option_sent: there is no event \"option_sent\"; did you mean option_send?"
    );
    assert_eq!(
        error(&["-nothing_like_it"]),
        "-trace -nothing_like_it: there is no event \"nothing_like_it\"; -trace help lists them"
    );
    // Without a star it is a name.
    assert_eq!(
        error(&["option_?end"]),
        "-trace option_?end: there is no event \"option_?end\"; did you mean option_send?"
    );
    assert_eq!(
        error(&["option_send,file=/nonexistent/t", "enable=option_off"]),
        "-trace enable=option_off: the event option_off is compiled out: its declaration says `disable`"
    );
    assert_eq!(
        error(&["option_send,file=/nonexistent/t"]),
        "-trace: /nonexistent/t cannot be written: No such file or directory (os error 2)"
    );
    assert!(!SEND.is_enabled());
    assert_eq!(
        parsed(&["option_*", "-option_o*", "other_*"]).check().unwrap(),
        ["-trace -option_o*: no event matches option_o*", "-trace other_*: no event matches other_*",]
    );
}

#[test]
fn the_rules_of_an_events_file_follow_the_pattern_beside_it() {
    let path = std::env::temp_dir().join(format!("simpletrace-events-{}", std::process::id()));
    let given = format!("last_*,events={}", path.display());
    fs::write(&path, "# these\nfirst_*\r\n\n-no_such_event").unwrap();
    let options = parsed(&["a*", &given, "b*"]);
    assert_eq!(rules_of(&options), ["a*", "last_*", "first_*", "-no_such_event", "b*"]);
    assert_eq!(
        options.start().unwrap_err().to_string(),
        format!("{}:4: there is no event \"no_such_event\"; -trace help lists them", path.display())
    );
    fs::write(&path, "a*\nhelp\n").unwrap();
    assert!(parsed(&[&given]).wants_help());
    fs::write(&path, b"a\xff*\n").unwrap();
    assert_eq!(error(&[&given]), format!("the events file {} cannot be read: it is not UTF-8", path.display()));
    fs::remove_file(&path).unwrap();
}

#[test]
fn single_dashes_become_double_ones_for_the_options_that_are_named() {
    let long = |args: &[&str]| -> Vec<String> {
        long_options(args, &["trace", "monitor"]).into_iter().map(|arg| arg.into_string().unwrap()).collect()
    };
    for (args, expected) in [
        (&[][..], &[][..]),
        (&["-trace"], &["-trace"]),
        (&["emu", "-trace", "net_*", "-m", "1"], &["emu", "--trace=net_*", "-m", "1"]),
        (&["emu", "-trace", "-net_*"], &["emu", "--trace=-net_*"]),
        (&["emu", "--trace", "-net_*"], &["emu", "--trace=-net_*"]),
        (&["emu", "-trace=net_*", "--trace=x"], &["emu", "--trace=net_*", "--trace=x"]),
        (&["emu", "-trace", "--", "-monitor"], &["emu", "--trace=--", "--monitor"]),
        (&["emu", "-tracer", "-trac", "trace"], &["emu", "-tracer", "-trac", "trace"]),
        (&["emu", "--", "-trace", "x"], &["emu", "--", "-trace", "x"]),
        (&["emu", "-trace", "a", "-monitor", "b", "-trace", "c"], &["emu", "--trace=a", "--monitor=b", "--trace=c"]),
    ] {
        assert_eq!(long(args), expected, "{args:?}");
    }
    let odd = OsStr::from_bytes(b"file=t\xff");
    assert_eq!(
        long_options([OsStr::new("emu"), OsStr::new("-trace"), odd], &["trace"])[1].as_bytes(),
        b"--trace=file=t\xff"
    );
}
