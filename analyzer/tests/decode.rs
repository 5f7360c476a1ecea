//! `decode`: what each format prints, to the byte, from files of either byte order.

mod support;

use simpletrace_format::{ByteOrder, EventId, Value};
use support::Dir;
use support::sample::{self, ORDERS};

/// What `decode -F format` prints for the sample, the same in both byte orders.
#[track_caller]
fn assert_decodes(format: &str, expected: &str) {
    for order in ORDERS {
        let dir = Dir::with([("t.trace", &sample::sample(order)), ("ev", sample::EVENTS)]);
        let run = dir.run(&format!("decode t.trace ev -F {format}")).exits(0);
        assert_eq!(run.text(), expected, "{format}, {order:?}");
        assert_eq!(run.stderr, "note: 3 events were dropped by the recorder, in 1 gap\n");
    }
}

#[test]
fn text_has_both_times_and_typed_values() {
    assert_decodes(
        "text",
        r#"[1.000000000 +0.000000000] 10 disk_open path="a,b \"c\"" read_only=true
[1.000001500 +0.000001500] 10 disk_read disk=0x7f00 sector=18446744073709551615 count=8
[1.000002000 +0.000002000] 10 dropped count=3
[1.000001900 +0.000001900] 11 disk_done disk=0x7f00 ret=-5 (EIO)
[3.500000000 +2.500000000] 11 idle
"#,
    );
}

#[test]
fn text_is_the_default() {
    let dir = Dir::with([("t.trace", &sample::sample(ByteOrder::Little)), ("ev", sample::EVENTS)]);
    assert_eq!(dir.run("decode t.trace ev").text(), dir.run("decode t.trace ev -F text").text());
}

#[test]
fn compat_prints_words_in_hexadecimal_and_deltas_in_microseconds() {
    assert_decodes(
        "compat",
        r#"disk_open 0.000 pid=10 path=b'a,b "c"' read_only=0x1
disk_read 1.500 pid=10 disk=0x7f00 sector=0xffffffffffffffff count=0x8
Dropped_Event 0.500 pid=10 num_events_dropped=0x3
disk_done -0.100 pid=11 disk=0x7f00 ret=0xfffffffffffffffb
idle 2499998.100 pid=11 
"#,
    );
}

#[test]
fn log_fills_in_the_declared_format() {
    assert_decodes(
        "log",
        r#"disk_open path=a,b "c" ro=1
disk_read disk 0x7f00 sector 18446744073709551615 count 8
dropped 3 events
disk_done disk 0x7f00 ret -5
idle nothing to do
"#,
    );
}

#[test]
fn table_has_a_line_of_titles_and_aligned_columns() {
    assert_decodes(
        "table",
        r#"     time_s  since_start_s  pid  event      args
1.000000000    0.000000000   10  disk_open  path="a,b \"c\"" read_only=true
1.000001500    0.000001500   10  disk_read  disk=0x7f00 sector=18446744073709551615 count=8
1.000002000    0.000002000   10  dropped    count=3
1.000001900    0.000001900   11  disk_done  disk=0x7f00 ret=-5 (EIO)
3.500000000    2.500000000   11  idle
"#,
    );
}

#[test]
fn known_numbers_have_names_in_what_people_read() {
    const EVENTS: &[u8] = b"kvm_run_exit(int cpu_index, uint32_t reason) \"\"
kvm_vcpu_ioctl(int cpu_index, int type, void *arg) \"cpu_index %d, type 0x%x, arg %p\"
virtio_set_status(void *vdev, uint8_t val) \"\"
runstate_set(int current_state, const char *current_state_str, int new_state, const char *new_state_str) \"\"
vm_state_notify(int running, int reason) \"\"
";
    let file = sample::trace(ByteOrder::Little, |writer| {
        let names = ["kvm_run_exit", "kvm_vcpu_ioctl", "virtio_set_status", "runstate_set", "vm_state_notify"];
        for (id, name) in names.into_iter().enumerate() {
            writer.mapping(EventId(id as u64), name)?;
        }
        let get_regs = Value::Unsigned(0xffff_ffff_8090_ae81);
        writer.event(EventId(0), 5, 1, &[Value::Signed(0), Value::Unsigned(2)])?;
        writer.event(EventId(0), 5, 1, &[Value::Signed(0), Value::Unsigned(99)])?;
        writer.event(EventId(1), 5, 1, &[Value::Signed(0), get_regs, Value::Pointer(7)])?;
        writer.event(EventId(2), 5, 1, &[Value::Pointer(7), Value::Unsigned(15)])?;
        let [from, to] = [b"prelaunch", b"running  "].map(|name| Value::String(name.trim_ascii()));
        writer.event(EventId(3), 5, 1, &[Value::Signed(6), from, Value::Signed(9), to])?;
        writer.event(EventId(4), 5, 1, &[Value::Signed(1), Value::Signed(9)])
    });
    let dir = Dir::with([("t.trace", &file), ("ev", EVENTS)]);
    assert_eq!(
        dir.run("decode t.trace ev").exits(0).text(),
        r#"[0.000000005 +0.000000000] 1 kvm_run_exit cpu_index=0 reason=2 (IO)
[0.000000005 +0.000000000] 1 kvm_run_exit cpu_index=0 reason=99
[0.000000005 +0.000000000] 1 kvm_vcpu_ioctl cpu_index=0 type=-2138001791 (KVM_GET_REGS) arg=0x7
[0.000000005 +0.000000000] 1 virtio_set_status vdev=0x7 val=15 (ACKNOWLEDGE|DRIVER|FEATURES_OK|DRIVER_OK)
[0.000000005 +0.000000000] 1 runstate_set current_state=6 current_state_str="prelaunch" new_state=9 new_state_str="running"
[0.000000005 +0.000000000] 1 vm_state_notify running=1 reason=9 (running)
"#
    );
    assert_eq!(
        dir.run("decode t.trace ev -F table -e kvm_run_exit").exits(0).text(),
        "     time_s  since_start_s  pid  event         cpu_index  reason
0.000000005    0.000000000    1  kvm_run_exit          0  2 (IO)
0.000000005    0.000000000    1  kvm_run_exit          0      99
"
    );
    for format in ["text", "table"] {
        let raw = dir.run(&format!("decode t.trace ev --raw -F {format}")).exits(0);
        assert!(raw.text().contains("reason=2") && !raw.text().contains('('), "{}", raw.text());
    }
    for format in ["compat", "log", "csv", "json", "ndjson"] {
        let named = dir.run(&format!("decode t.trace ev -F {format}")).exits(0);
        assert_eq!(named.text(), dir.run(&format!("decode t.trace ev --raw -F {format}")).text(), "{format}");
        assert!(!named.text().contains("(IO)"), "{format}");
    }
}

#[test]
fn a_table_of_one_event_has_a_column_for_each_argument() {
    let dir = Dir::with([("t.trace", &sample::sample(ByteOrder::Little)), ("ev", sample::EVENTS)]);
    assert_eq!(
        dir.run("decode t.trace ev -F table -e disk_read").text(),
        "     time_s  since_start_s  pid  event        disk                sector  count
1.000001500    0.000001500   10  disk_read  0x7f00  18446744073709551615      8
"
    );
}

#[test]
fn csv_has_one_row_an_event() {
    assert_decodes(
        "csv",
        r#"ts_ns,pid,event,args
1000000000,10,disk_open,"{""path"":""a,b \""c\"""",""read_only"":true}"
1000001500,10,disk_read,"{""disk"":32512,""sector"":18446744073709551615,""count"":8}"
1000002000,10,dropped,"{""count"":3}"
1000001900,11,disk_done,"{""disk"":32512,""ret"":-5}"
3500000000,11,idle,"{}"
"#,
    );
}

#[test]
fn ndjson_has_one_object_a_line() {
    assert_decodes(
        "ndjson",
        r#"{"ts_ns":1000000000,"pid":10,"event":"disk_open","args":{"path":"a,b \"c\"","read_only":true}}
{"ts_ns":1000001500,"pid":10,"event":"disk_read","args":{"disk":32512,"sector":18446744073709551615,"count":8}}
{"ts_ns":1000002000,"pid":10,"event":"dropped","args":{"count":3}}
{"ts_ns":1000001900,"pid":11,"event":"disk_done","args":{"disk":32512,"ret":-5}}
{"ts_ns":3500000000,"pid":11,"event":"idle","args":{}}
"#,
    );
}

#[test]
fn json_is_one_document() {
    assert_decodes(
        "json",
        r#"{"schema":"simpletrace-rs.decode/1","records":[
{"ts_ns":1000000000,"pid":10,"event":"disk_open","args":{"path":"a,b \"c\"","read_only":true}},
{"ts_ns":1000001500,"pid":10,"event":"disk_read","args":{"disk":32512,"sector":18446744073709551615,"count":8}},
{"ts_ns":1000002000,"pid":10,"event":"dropped","args":{"count":3}},
{"ts_ns":1000001900,"pid":11,"event":"disk_done","args":{"disk":32512,"ret":-5}},
{"ts_ns":3500000000,"pid":11,"event":"idle","args":{}}
]}
"#,
    );
}

#[test]
fn a_trace_without_events_is_still_a_table_a_csv_file_and_a_document() {
    let dir = Dir::with([("t.trace", &sample::trace(ByteOrder::Big, sample::mappings)), ("ev", sample::EVENTS)]);
    for (format, expected) in [
        ("text", ""),
        ("compat", ""),
        ("log", ""),
        ("ndjson", ""),
        ("csv", "ts_ns,pid,event,args\n"),
        ("table", "time_s  since_start_s  pid  event  args\n"),
    ] {
        assert_eq!(dir.run(&format!("decode t.trace ev -F {format}")).silent().text(), expected, "{format}");
    }
    let document = dir.run("decode t.trace ev -F json").silent().json();
    assert_eq!(document, serde_json::json!({"schema": "simpletrace-rs.decode/1", "records": []}));
}

#[test]
fn without_declarations_arguments_are_raw_words() {
    for order in ORDERS {
        let dir = Dir::with([("t.trace", &sample::sample(order))]);
        let run = dir.run("decode t.trace -e disk_done -e idle").exits(0);
        assert_eq!(
            run.text(),
            "[1.000001900 +0.000001900] 11 disk_done word0=0x7f00 word1=0xfffffffffffffffb\n\
             [3.500000000 +2.500000000] 11 idle\n"
        );
        assert_eq!(run.stderr.matches("warning: no trace-events file was given or found").count(), 1);
        assert_eq!(
            dir.run("decode t.trace -F ndjson -e disk_done").text(),
            "{\"ts_ns\":1000001900,\"pid\":11,\"event\":\"disk_done\",\"args\":{\"word0\":32512,\"word1\":18446744073709551611}}\n"
        );
    }
}

#[test]
fn an_undeclared_event_is_shown_as_raw_words_and_warned_of_once() {
    let file = sample::trace(ByteOrder::Little, |writer| {
        writer.mapping(EventId(1), "disk_raed")?;
        for time_ns in 5..8 {
            writer.event(EventId(1), time_ns, 1, &[Value::Unsigned(255), Value::String(b"abc")])?;
        }
        Ok(())
    });
    let dir = Dir::with([("t.trace", &file), ("ev", sample::EVENTS)]);
    let run = dir.run("decode t.trace ev -F text").exits(1);
    assert_eq!(
        run.lines(),
        [
            "[0.000000005 +0.000000000] 1 disk_raed word0=0xff left_over=03000000616263",
            "[0.000000006 +0.000000001] 1 disk_raed word0=0xff left_over=03000000616263",
            "[0.000000007 +0.000000002] 1 disk_raed word0=0xff left_over=03000000616263",
        ]
    );
    assert_eq!(
        run.stderr,
        "warning: 3 records of disk_raed: not declared in the trace-events file \
         (the nearest declared name is disk_read), the first at offset 53 of t.trace; \
         take the trace-events-all of the build that wrote the trace\n"
    );
    assert_eq!(
        dir.run("decode t.trace ev -F compat --limit 1").text(),
        "disk_raed 0.000 pid=1 word0=0xff rest=b'\\x03\\x00\\x00\\x00abc'\n"
    );
    assert_eq!(
        dir.run("decode t.trace ev -F ndjson --limit 1").text(),
        "{\"ts_ns\":5,\"pid\":1,\"event\":\"disk_raed\",\"args\":{\"word0\":255},\"left_over\":{\"hex\":\"03000000616263\"}}\n"
    );
    assert_eq!(dir.run("decode t.trace ev -F log --limit 1").text(), "disk_raed 0xff\n");
    assert_eq!(
        dir.run("decode t.trace ev -F table --limit 1").lines()[1],
        "0.000000005    0.000000000    1  disk_raed  word0=0xff  left_over=03000000616263"
    );
    assert_eq!(dir.run("decode t.trace ev -F csv --limit 1").lines()[1], r#"5,1,disk_raed,"{""word0"":255}""#);
}

#[test]
fn an_unmapped_event_goes_by_its_number() {
    let file = sample::trace(ByteOrder::Little, |writer| {
        sample::mappings(writer)?;
        writer.event(EventId(77), 5, 1, &[Value::Unsigned(16)])?;
        writer.event(sample::IDLE, 6, 1, &[])
    });
    let dir = Dir::with([("t.trace", &file), ("ev", sample::EVENTS)]);
    let run = dir.run("decode t.trace ev -F ndjson").exits(1);
    assert_eq!(
        run.lines(),
        [
            r#"{"ts_ns":5,"pid":1,"event":"event 77","args":{"word0":16}}"#,
            r#"{"ts_ns":6,"pid":1,"event":"idle","args":{}}"#
        ]
    );
    assert_eq!(
        run.stderr,
        "warning: 1 record of unknown event, the first event 77 at offset 135 of t.trace: no mapping record names it\n"
    );
}

#[test]
fn a_payload_longer_than_declared_is_decoded_and_noted() {
    let file = sample::trace(ByteOrder::Big, |writer| {
        sample::mappings(writer)?;
        writer.event(sample::DONE, 5, 1, &[Value::Pointer(1), Value::Signed(-1), Value::Unsigned(7)])
    });
    let dir = Dir::with([("t.trace", &file), ("ev", sample::EVENTS)]);
    let run = dir.run("decode t.trace ev -F text").exits(0);
    assert_eq!(run.text(), "[0.000000005 +0.000000000] 1 disk_done disk=0x1 ret=-1 left_over=0000000000000007\n");
    assert_eq!(
        run.stderr,
        "note: 1 record of disk_done: longer than declared, the first at offset 135 of t.trace; \
         take the trace-events-all of the build that wrote the trace\n"
    );
    // As simpletrace.py prints it.
    assert_eq!(
        dir.run("decode t.trace ev -F compat").text(),
        "disk_done 0.000 pid=1 disk=0x1 ret=0xffffffffffffffff\n"
    );
    assert_eq!(
        dir.run("decode t.trace ev -F ndjson").text(),
        "{\"ts_ns\":5,\"pid\":1,\"event\":\"disk_done\",\"args\":{\"disk\":1,\"ret\":-1},\"left_over\":{\"hex\":\"0000000000000007\"}}\n"
    );
    dir.run("check t.trace").exits(0);
    dir.run("check t.trace ev").exits(1);
}

#[test]
fn a_payload_shorter_than_declared_gives_what_is_there() {
    let file = sample::trace(ByteOrder::Little, |writer| {
        sample::mappings(writer)?;
        writer.event(sample::READ, 5, 1, &[Value::Pointer(1), Value::Unsigned(2)])?;
        // A string longer than its record: its length is the lower half of a word.
        writer.event(sample::OPEN, 6, 1, &[Value::Unsigned(100)])?;
        writer.event(sample::IDLE, 7, 1, &[])
    });
    let dir = Dir::with([("t.trace", &file), ("ev", sample::EVENTS)]);
    let run = dir.run("decode t.trace ev").exits(1);
    assert_eq!(
        run.lines(),
        [
            "[0.000000005 +0.000000000] 1 disk_read disk=0x1 sector=2",
            "[0.000000006 +0.000000001] 1 disk_open left_over=6400000000000000",
            "[0.000000007 +0.000000002] 1 idle",
        ]
    );
    assert!(
        run.stderr.starts_with("warning: 2 of 3 events with 2 records: shorter than declared, most of all disk_read, "),
        "{}",
        run.stderr
    );
    for format in ["compat", "log", "table", "csv", "json", "ndjson"] {
        let run = dir.run(&format!("decode t.trace ev -F {format}")).exits(1);
        assert!(run.text().contains("idle"), "{format} went on: {}", run.text());
    }
    dir.run("check t.trace").exits(0);
    dir.run("check t.trace ev").exits(1);
}

#[test]
fn one_kind_can_be_both_shorter_and_longer_each_at_its_own_place() {
    let file = sample::trace(ByteOrder::Little, |writer| {
        sample::mappings(writer)?;
        writer.event(sample::DONE, 5, 1, &[Value::Pointer(1)])?;
        writer.event(sample::DONE, 6, 1, &[Value::Pointer(1), Value::Signed(0), Value::Signed(0)])
    });
    let dir = Dir::with([("t.trace", &file), ("ev", sample::EVENTS)]);
    let run = dir.run("decode t.trace ev").exits(1);
    assert_eq!(
        run.stderr,
        "warning: 1 record of disk_done: shorter than declared, the first at offset 135 of t.trace; \
         take the trace-events-all of the build that wrote the trace\n\
         note: 1 record of disk_done: longer than declared, the first at offset 175 of t.trace; \
         take the trace-events-all of the build that wrote the trace\n"
    );
}

#[test]
fn an_id_mapped_twice_means_what_it_meant_at_the_time() {
    let file = sample::trace(ByteOrder::Little, |writer| {
        writer.mapping(EventId(1), "idle")?;
        writer.event(EventId(1), 5, 1, &[])?;
        writer.mapping(EventId(1), "never_seen")?;
        writer.event(EventId(1), 6, 1, &[Value::Signed(-7)])?;
        writer.mapping(EventId(1), "never_seen")?;
        writer.event(EventId(1), 7, 1, &[Value::Signed(8)])
    });
    let dir = Dir::with([("t.trace", &file), ("ev", sample::EVENTS)]);
    let run = dir.run("decode t.trace ev").exits(0);
    assert_eq!(
        run.lines(),
        [
            "[0.000000005 +0.000000000] 1 idle",
            "[0.000000006 +0.000000001] 1 never_seen x=-7",
            "[0.000000007 +0.000000002] 1 never_seen x=8",
        ]
    );
    assert_eq!(
        run.stderr,
        "warning: 1 mapping record gives an id another name, the first: event 1 was idle and is never_seen from offset 80 of t.trace\n"
    );
}

#[test]
fn names_in_a_file_cannot_command_a_terminal() {
    let file = sample::trace(ByteOrder::Little, |writer| {
        writer.mapping(EventId(1), "a\x1b]0;b\x07")?;
        writer.event(EventId(1), 5, 1, &[])?;
        writer.mapping(EventId(1), "c\u{9b}2J")?;
        writer.event(EventId(1), 6, 1, &[])?;
        writer.event(EventId(1), 7, 1, &[Value::Signed(8)])
    });
    let dir = Dir::with([("t.trace", &file), ("ev", sample::EVENTS)]);
    for line in ["decode -F text", "decode -F compat", "decode -F log", "decode -F table", "info", "events"] {
        let run = dir.run(&format!("{line} t.trace ev --colour always"));
        for (stream, text) in [("stdout", run.text()), ("stderr", &run.stderr)] {
            assert!(!text.contains(['\x07', '\u{9b}']) && !text.contains("\x1b]"), "{line}, {stream}: {text:?}");
        }
        assert!(run.text().contains(r"c\u{9b}2J"), "{line}: {}", run.text());
    }
}

#[test]
fn a_later_declaration_of_the_same_name_counts() {
    let file = sample::trace(ByteOrder::Little, |writer| {
        writer.mapping(EventId(1), "twice")?;
        writer.event(EventId(1), 5, 1, &[Value::Signed(-1)])
    });
    let events = b"twice(uint64_t old) \"%\" PRIu64\ntwice(int new) \"%d\"\n";
    let dir = Dir::with([("t.trace", &file), ("ev", events), ("ev2", b"twice(bool newest) \"%d\"\n")]);
    assert_eq!(dir.run("decode t.trace ev").exits(0).text(), "[0.000000005 +0.000000000] 1 twice new=-1\n");
    assert_eq!(
        dir.run("decode t.trace --events ev --events ev2").exits(0).text(),
        "[0.000000005 +0.000000000] 1 twice newest=18446744073709551615\n"
    );
}

#[test]
fn a_torn_tail_is_one_note_with_its_offset_wherever_it_is_torn() {
    for order in ORDERS {
        let whole = sample::sample(order);
        let last = whole.len() - 32;
        for length in last + 1..whole.len() {
            let dir = Dir::with([("t.trace", &whole[..length]), ("ev", sample::EVENTS)]);
            let run = dir.run("decode t.trace ev -e -dropped").exits(0);
            assert_eq!(run.lines().len(), 3);
            let left = length - last;
            assert_eq!(
                run.stderr.lines().next().unwrap(),
                format!(
                    "note: t.trace ends inside a record at offset {last}: {left} bytes left over, \
                     as when the traced program was killed"
                )
            );
        }
        let dir = Dir::with([("t.trace", &whole[..last + 9]), ("ev", sample::EVENTS)]);
        dir.run("decode --strict t.trace ev").exits(1);
    }
}

#[test]
fn strict_minds_nothing_in_a_whole_trace() {
    let dir = Dir::with([("t.trace", &sample::sample(ByteOrder::Little)), ("ev", sample::EVENTS)]);
    dir.run("decode --strict t.trace ev").exits(0);
}
