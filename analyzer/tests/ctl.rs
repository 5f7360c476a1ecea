//! `ctl` against what looks like QEMU, and against what does not. Against the recorder: fixtures/tests/control_ctl.rs.
#![cfg(target_os = "linux")]

mod support;

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::program::Run;
use support::{Dir, shared};

/// Runs `ctl socket` with these words.
fn ctl(dir: &Dir, words: &[&str]) -> Run {
    words.iter().fold(dir.call("ctl socket"), |call, word| call.arg(word)).run()
}

/// Says each of `says` in answer to a line, the first one at once; returns the lines.
fn peer(dir: &Dir, says: Vec<String>) -> JoinHandle<Vec<String>> {
    let listener = UnixListener::bind(dir.path("socket")).unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        let mut heard = Vec::new();
        for said in says {
            stream.write_all(said.as_bytes()).unwrap();
            heard.extend(lines.next().and_then(Result::ok));
        }
        heard
    })
}

/// A peer that is greeted as one of QEMU's, and gives these replies.
fn qemu(dir: &Dir, replies: &[Value]) -> JoinHandle<Vec<String>> {
    let greeting = json!({ "QMP": { "version": { "qemu": { "major": 10 } }, "capabilities": ["oob"] } });
    let event = json!({ "event": "RESUME", "timestamp": { "seconds": 1, "microseconds": 2 } });
    let says = |reply: &Value| {
        let mut reply = reply.clone();
        reply["id"] = "ctl".into();
        // Events come at any time.
        format!("{event}\r\n{reply}\r\n")
    };
    let replies = [json!({ "return": {} })].iter().chain(replies).map(says).collect::<Vec<_>>();
    peer(dir, [format!("{greeting}\r\n")].into_iter().chain(replies).collect())
}

#[test]
fn of_qemu_the_trace_file_is_steered_through_its_monitor() {
    let not_found = json!({ "error": { "class": "CommandNotFound", "desc": "The command x-... has not been found" } });
    let monitor = |text: &str| json!({ "return": text });
    let line = |line: &str| json!({ "command-line": line });
    for (words, reply, expected_line, code, expected) in [
        (&["trace-file"][..], "Trace file \"trace-1\" on.\r\n", "trace-file", 0, "Trace file \"trace-1\" on.\n"),
        (&["trace-file", "on"], "", "trace-file on", 0, ""),
        (&["trace-file", "set", "a b\\"], "", "trace-file set \"a b\\\\\"", 0, ""),
        (&["trace-file", "flush"], "", "trace-file flush", 0, ""),
        (
            &["trace-file flush"],
            "unknown command: 'trace-file'\r\n",
            "trace-file flush",
            1,
            "error: unknown command: 'trace-file'\n",
        ),
    ] {
        let dir = Dir::new();
        let peer = qemu(&dir, &[not_found.clone(), monitor(reply)]);
        let run = ctl(&dir, words).exits(code);
        assert_eq!(format!("{}{}", run.text(), run.stderr), expected, "{words:?}");
        let heard = peer.join().unwrap();
        let request = serde_json::from_str::<Value>(heard.last().unwrap()).unwrap();
        assert_eq!(
            (&request["execute"], &request["arguments"]),
            (&json!("human-monitor-command"), &line(expected_line))
        );
    }
    let dir = Dir::new();
    let events =
        json!({ "return": [{ "name": "a", "state": "enabled" }, { "name": "b\u{1b}[m", "state": "unavailable" }] });
    let peer = qemu(&dir, &[not_found, monitor("Trace file \"trace-1\" on.\r\n"), events]);
    assert_eq!(ctl(&dir, &[]).silent().text(), "Trace file \"trace-1\" on.\n1 of 2 events enabled\n");
    assert_eq!(peer.join().unwrap().len(), 4);
}

#[test]
fn the_words_of_a_monitor_reach_it_whole() {
    for (words, expected) in [
        (&["info", "status"][..], "info status"),
        (&["info  status "], "info  status "),
        (&["x", "a b", "", "c\"d\\", "e\nf"], r#"x "a b" "" "c\"d\\" "e\nf""#),
        (&["trace-event", "x", "on", "0"], "trace-event x on 0"),
    ] {
        let dir = Dir::new();
        let peer = qemu(&dir, &[json!({ "return": "VM status: \u{1b}[1mrunning\r\n\tyes" })]);
        assert_eq!(ctl(&dir, words).silent().text(), "VM status: \\u{1b}[1mrunning\n\\tyes\n");
        let request = serde_json::from_str::<Value>(peer.join().unwrap().last().unwrap()).unwrap();
        assert_eq!(request["arguments"]["command-line"], expected);
    }
}

#[test]
fn whoever_does_not_answer_is_told() {
    let no_connection = "error: cannot connect to socket: ";
    let dir = Dir::new();
    let fails = |dir: &Dir, expected: &str| {
        let run = ctl(dir, &["trace-file"]).exits(2);
        assert_eq!((run.text(), run.stderr.as_str()), ("", expected));
    };
    fails(&dir, &format!("{no_connection}No such file or directory (os error 2)\n"));
    dir.write("socket", "");
    fails(&dir, &format!("{no_connection}Connection refused (os error 111)\n"));
    let closed = "error: socket: the program has closed the connection\n";
    for (says, expected) in [
        (
            vec!["QEMU 10.0.2 monitor - type 'help' for more information\r\n(qemu) ".to_owned()],
            "error: socket does not speak QMP\n",
        ),
        (vec!["{}\n".to_owned()], "error: socket does not speak QMP\n"),
        (vec!["[]\n".to_owned()], "error: socket does not speak QMP\n"),
        (vec!["\n".to_owned()], "error: socket does not speak QMP\n"),
        (vec!["\0\u{ff}\n".to_owned()], "error: socket does not speak QMP\n"),
        (vec![], closed),
        (vec!["{\"QMP\": {}}\n".to_owned()], closed),
        (vec!["{\"QMP\": {}}\n{\"id\": \"ctl\", \"return\"".to_owned()], closed),
        (
            vec![
                "{\"error\": {\"class\": \"GenericError\", \"desc\": \"there are 8 connections\\u001b\"}}\n".to_owned(),
            ],
            "error: cannot connect to socket: there are 8 connections\\u{1b}\n",
        ),
    ] {
        let dir = Dir::new();
        let peer = peer(&dir, says);
        fails(&dir, expected);
        peer.join().unwrap();
    }
    // One that is connected and says nothing, or never all.
    for says in ["", "{\"QMP\": "] {
        let dir = Dir::new();
        let listener = UnixListener::bind(dir.path("socket")).unwrap();
        let begin = Instant::now();
        let silent = thread::spawn(move || {
            let (mut stream, _): (UnixStream, _) = listener.accept().unwrap();
            stream.write_all(says.as_bytes()).unwrap();
            // Until the other side gives up.
            BufReader::new(stream).read_line(&mut String::new()).unwrap()
        });
        fails(&dir, "error: socket: no answer for 10 s\n");
        assert!(begin.elapsed() >= Duration::from_secs(10));
        assert_eq!(silent.join().unwrap(), 0);
    }
    let usage = dir.run("ctl").exits(2);
    assert!(usage.stderr.contains("simpletrace-rs ctl SOCKET [COMMAND...]"), "{}", usage.stderr);
}

/// QEMU's own server of QMP, which has neither events to switch nor a monitor.
#[test]
fn qemus_storage_daemon_answers() {
    let test = "qemus_storage_daemon_answers";
    let dir = Dir::new();
    let chardev = format!("socket,id=c,path={},server=on,wait=off", dir.path("socket").display());
    let daemon = Command::new("qemu-storage-daemon")
        .args(["--chardev", &chardev, "--monitor", "chardev=c"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut daemon = match daemon {
        Ok(daemon) => daemon,
        Err(error) => return shared::skip(test, &format!("qemu-storage-daemon: {error}")),
    };
    let begin = Instant::now();
    while UnixStream::connect(dir.path("socket")).is_err() {
        if let Some(status) = daemon.try_wait().unwrap() {
            return shared::skip(test, &format!("qemu-storage-daemon: {status}"));
        }
        assert!(begin.elapsed() < Duration::from_secs(60));
        thread::sleep(Duration::from_millis(10));
    }
    let runs = [&["trace-event", "x", "on"][..], &["trace-file"], &["help"]].map(|words| ctl(&dir, words));
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    let errors = ["trace-event-set-state", "human-monitor-command", "human-monitor-command"];
    for (run, command) in runs.into_iter().zip(errors) {
        let run = run.exits(1);
        assert_eq!(run.stderr, format!("error: The command {command} has not been found\n"));
    }
}
