//! `ctl`: talks QMP to a program that records.

use anyhow::Result;

use super::args::CtlArgs;
use crate::findings::Outcome;

#[cfg(not(unix))]
pub(crate) fn run(_: &CtlArgs) -> Result<Outcome> {
    anyhow::bail!("ctl works where there are Unix sockets")
}

#[cfg(unix)]
pub(crate) use unix::run;

#[cfg(unix)]
mod unix {
    use std::io::{self, Read as _, Write as _};
    use std::os::unix::net::UnixStream;
    use std::path::{Path, PathBuf};
    use std::sync::mpsc;
    use std::thread;
    use std::time::{Duration, Instant};

    use anyhow::{Context as _, anyhow, bail};
    use serde_json::{Value, json};

    use super::{CtlArgs, Outcome, Result};
    use crate::findings::count;
    use crate::output::Output;
    use crate::render::printable;
    use crate::say;

    /// How long the other side may take over anything.
    const PATIENCE: Duration = Duration::from_secs(10);
    /// The longest reply, in bytes. QEMU's list of events has some 500 KB.
    const MAX_REPLY_BYTES: usize = 64 << 20;

    /// What the other side says of a request.
    type Reply = Result<Value, Refusal>;

    struct Refusal {
        is_unknown: bool,
        desc: String,
    }

    pub(crate) fn run(args: &CtlArgs) -> Result<Outcome> {
        let mut peer = Peer::connect(&args.socket)?;
        // One word may be a whole command.
        let words: Vec<&str> = match &args.command[..] {
            [line] => line.split_whitespace().collect(),
            words => words.iter().map(String::as_str).collect(),
        };
        let said = match words[..] {
            [] => status(&mut peer)?,
            ["info", "trace-events"] => events(&mut peer, "*")?,
            ["info", "trace-events", pattern] => events(&mut peer, pattern)?,
            ["trace-event", pattern, state @ ("on" | "off")] => switch(&mut peer, pattern, state == "on")?,
            ["trace-file"] => peer.file("x-trace-file-get", &json!({}), "trace-file")?.map(|reply| file(&reply)),
            ["trace-file", state @ ("on" | "off")] => {
                peer.file("x-trace-file-set", &json!({ "enable": state == "on" }), &format!("trace-file {state}"))?
            }
            ["trace-file", "flush"] => peer.file("x-trace-file-flush", &json!({}), "trace-file flush")?,
            ["trace-file", "set", path] if !path.starts_with('"') => {
                let line = format!("trace-file set {}", quoted(path));
                peer.file("x-trace-file-set", &json!({ "file": path }), &line)?
            }
            _ => peer.monitor(&match &args.command[..] {
                [line] => line.clone(),
                words => words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
            })?,
        };
        match said {
            Ok(said) => {
                let mut output = Output::create(None, [])?;
                output.block.put(said.as_str().unwrap_or_default());
                output.finish()?;
                Ok(Outcome::Good)
            }
            Err(Refusal { desc, .. }) => {
                say::error(&printable(&desc));
                Ok(Outcome::Faulty)
            }
        }
    }

    /// As a monitor takes a word that has blanks or the like in it.
    fn quoted(word: &str) -> String {
        if !word.is_empty() && !word.contains(|c: char| c.is_whitespace() || c == '"' || c == '\\') {
            return word.to_owned();
        }
        let escaped = word.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\r', "\\r");
        format!("\"{escaped}\"")
    }

    fn status(peer: &mut Peer) -> Result<Reply> {
        let file = match peer.file("x-trace-file-get", &json!({}), "trace-file")? {
            Ok(reply) => file(&reply),
            Err(refusal) => return Ok(Err(refusal)),
        };
        let events = match peer.execute("trace-event-get-state", &json!({ "name": "*" }))? {
            Ok(events) => events,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let events = events.as_array().map(Vec::as_slice).unwrap_or_default();
        let enabled = events.iter().filter(|event| event["state"] == "enabled").count();
        let line = format!("{enabled} of {} enabled\n", count(events.len() as u64, "event"));
        Ok(Ok((file.as_str().unwrap_or_default().to_owned() + &line).into()))
    }

    /// The trace file in words; what a monitor says is in words already.
    fn file(reply: &Value) -> Value {
        let Some(file) = reply["file"].as_str() else { return reply.clone() };
        let state = if reply["enabled"] == true { "on" } else { "off" };
        let [records, bytes, lost] = ["records", "bytes", "lost"].map(|name| reply[name].as_u64().unwrap_or(0));
        let (records, bytes) = (count(records, "event"), count(bytes, "byte"));
        let mut text = format!("Trace file \"{}\" {state}.\n{records} in {bytes}, {lost} lost\n", printable(file));
        if let Some(error) = reply["write-error"].as_str() {
            text += &format!("nothing is written: {}\n", printable(error));
        }
        text.into()
    }

    fn events(peer: &mut Peer, pattern: &str) -> Result<Reply> {
        let events = match peer.execute("trace-event-get-state", &json!({ "name": pattern }))? {
            Ok(events) => events,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let line = |event: &Value| {
            let name = printable(event["name"].as_str().unwrap_or_default());
            format!("{name} : state {}\n", u8::from(event["state"] == "enabled"))
        };
        Ok(Ok(events.as_array().into_iter().flatten().map(line).collect::<String>().into()))
    }

    fn switch(peer: &mut Peer, pattern: &str, on: bool) -> Result<Reply> {
        // As the monitor does: a pattern passes over what is compiled out.
        let arguments = json!({ "name": pattern, "enable": on, "ignore-unavailable": pattern.contains('*') });
        peer.execute("trace-event-set-state", &arguments)
    }

    /// The program at the other end.
    struct Peer {
        socket: PathBuf,
        stream: UnixStream,
        received: Vec<u8>,
    }

    impl Peer {
        fn connect(socket: &Path) -> Result<Self> {
            let cannot = || format!("cannot connect to {}", socket.display());
            let (sender, receiver) = mpsc::channel();
            let path = socket.to_owned();
            // Connecting waits as long as nobody accepts.
            thread::spawn(move || sender.send(UnixStream::connect(path)));
            let connected = receiver.recv_timeout(PATIENCE).unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
            let stream = connected.with_context(cannot)?;
            let mut peer = Self { socket: socket.to_owned(), stream, received: Vec::new() };
            let greeting = peer.receive()?;
            if let Some(desc) = greeting["error"]["desc"].as_str() {
                return Err(anyhow!("{}", printable(desc)).context(cannot()));
            }
            if greeting["QMP"].is_null() {
                return Err(peer.is_no_qmp());
            }
            match peer.execute("qmp_capabilities", &json!({}))? {
                Ok(_) => Ok(peer),
                Err(refusal) => Err(anyhow!("{}", printable(&refusal.desc)).context(cannot())),
            }
        }

        fn is_no_qmp(&self) -> anyhow::Error {
            anyhow!("{} does not speak QMP", self.socket.display())
        }

        /// Does something with the trace file, which QEMU has no QMP for, but monitor commands.
        fn file(&mut self, command: &str, arguments: &Value, line: &str) -> Result<Reply> {
            match self.execute(command, arguments)? {
                Err(refusal) if refusal.is_unknown => self.monitor(line),
                reply => Ok(reply),
            }
        }

        /// Has a monitor command carried out; what it says is text.
        fn monitor(&mut self, line: &str) -> Result<Reply> {
            let reply = self.execute("human-monitor-command", &json!({ "command-line": line }))?;
            Ok(reply.and_then(|reply| {
                let text = reply.as_str().unwrap_or_default().replace('\r', "");
                let lines: Vec<String> = text.lines().map(printable).collect();
                // There is no other sign of it than the words.
                let is_error =
                    ["Error: ", "unknown command: ", "unexpected argument "].iter().any(|word| text.starts_with(word))
                        || lines.last().is_some_and(|line| line.starts_with("Try \"help "));
                if is_error {
                    let text = lines.join("; ");
                    let desc = text.strip_prefix("Error: ").unwrap_or(&text).to_owned();
                    return Err(Refusal { is_unknown: false, desc });
                }
                Ok(lines.iter().flat_map(|line| [line, "\n"]).collect::<String>().into())
            }))
        }

        fn execute(&mut self, command: &str, arguments: &Value) -> Result<Reply> {
            let id = json!("ctl");
            let request = json!({ "execute": command, "arguments": arguments, "id": id });
            self.stream.set_write_timeout(Some(PATIENCE))?;
            if let Err(error) = self.stream.write_all(format!("{request}\r\n").as_bytes()) {
                // Whoever closes the connection in the middle of a request may have said why.
                let said = self.receive().ok().and_then(|said| Some(said["error"]["desc"].as_str()?.to_owned()));
                return match said {
                    Some(desc) => Ok(Err(Refusal { is_unknown: false, desc })),
                    None => Err(self.cannot_talk(error)),
                };
            }
            loop {
                let mut reply = self.receive()?;
                // Anything else is an event, or the end of something that somebody else asked for.
                if reply["id"] != id {
                    continue;
                }
                let error = reply["error"].take();
                return Ok(if error.is_null() {
                    Ok(reply["return"].take())
                } else {
                    let is_unknown = error["class"] == "CommandNotFound";
                    Err(Refusal { is_unknown, desc: error["desc"].as_str().unwrap_or_default().to_owned() })
                });
            }
        }

        fn cannot_talk(&self, error: io::Error) -> anyhow::Error {
            let socket = self.socket.display();
            match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                    anyhow!("{socket}: no answer for {} s", PATIENCE.as_secs())
                }
                io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => {
                    anyhow!("{socket}: the program has closed the connection")
                }
                _ => anyhow::Error::from(error).context(format!("{socket}: cannot talk to the program")),
            }
        }

        /// The next line that the other side says.
        fn receive(&mut self) -> Result<Value> {
            let end = Instant::now() + PATIENCE;
            let mut looked_at = 0;
            loop {
                if let Some(at) = self.received[looked_at..].iter().position(|&byte| byte == b'\n') {
                    let rest = self.received.split_off(looked_at + at + 1);
                    let line = std::mem::replace(&mut self.received, rest);
                    return serde_json::from_slice(&line).map_err(|_| self.is_no_qmp());
                }
                looked_at = self.received.len();
                if looked_at > MAX_REPLY_BYTES {
                    bail!("{}: a reply of more than {MAX_REPLY_BYTES} bytes", self.socket.display());
                }
                let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
                self.stream.set_read_timeout(Some(left))?;
                let mut piece = [0; 16 << 10];
                let read = match self.stream.read(&mut piece) {
                    _ if Instant::now() > end => Err(io::ErrorKind::TimedOut.into()),
                    Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
                    read => read,
                };
                match read {
                    Ok(bytes) => self.received.extend_from_slice(&piece[..bytes]),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(self.cannot_talk(error)),
                }
            }
        }
    }
}
