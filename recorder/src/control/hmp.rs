//! The commands of QEMU's human monitor.

use std::path::Path;

use super::Control;

/// A command, what comes behind its name, and what it does.
struct Command {
    /// Its names, parted by `|`.
    names: &'static str,
    params: &'static str,
    help: &'static str,
    run: fn(&Control, Words<'_>) -> Result<String, Fault>,
}

/// Why there is no result.
enum Fault {
    /// The words are not those of the command.
    Words(String),
    Failed(String),
}

impl From<String> for Fault {
    fn from(error: String) -> Self {
        Self::Failed(error)
    }
}

const COMMANDS: [Command; 4] = [
    Command { names: "help|?", params: "[COMMAND]", help: "lists the commands, or explains one", run: help },
    Command { names: "info", params: "[WHAT]", help: "shows what is asked for", run: info },
    Command {
        names: "trace-event",
        params: "NAME|PATTERN on|off [VCPU]",
        help: "switches events on or off (VCPU is ignored)",
        run: trace_event,
    },
    Command {
        names: "trace-file",
        params: "[on|off|flush|set PATH]",
        help: "shows the trace file, or switches it on or off, writes what is waiting, goes on in another file",
        run: trace_file,
    },
];

const INFOS: [Command; 1] = [Command {
    names: "trace-events",
    params: "[NAME|PATTERN] [VCPU]",
    help: "lists events and whether they are enabled (VCPU is ignored)",
    run: info_trace_events,
}];

pub(super) fn reply(control: &Control, line: &str) -> String {
    let mut words = Words(line);
    let Some(mut path) = words.plain().map(str::to_owned) else { return String::new() };
    let mut command = find(&COMMANDS, &path);
    if path == "info"
        && let Some(what) = words.plain()
    {
        path = format!("info {what}");
        command = find(&INFOS, what);
    }
    let Some(command) = command else { return unknown(&path) };
    match (command.run)(control, words) {
        Ok(reply) => reply,
        Err(Fault::Failed(why)) => format!("Error: {why}\n"),
        Err(Fault::Words(why)) => format!("{why}Try \"help {path}\" for more information\n"),
    }
}

fn find<'a>(commands: &'a [Command], name: &str) -> Option<&'a Command> {
    commands.iter().find(|command| command.names.split('|').any(|own| own == name))
}

fn unknown(path: &str) -> String {
    format!("unknown command: '{path}'\n")
}

fn explain(commands: &[Command], before: &str) -> String {
    commands.iter().map(|Command { names, params, help, .. }| format!("{before}{names} {params} -- {help}\n")).collect()
}

fn help(_: &Control, mut words: Words<'_>) -> Result<String, Fault> {
    let Some(name) = words.plain() else { return Ok(explain(&COMMANDS, "")) };
    let Some(command) = find(&COMMANDS, name) else { return Ok(unknown(name)) };
    if name != "info" {
        return Ok(explain(std::slice::from_ref(command), ""));
    }
    let Some(what) = words.plain() else { return Ok(explain(&INFOS, "info ")) };
    let found = find(&INFOS, what).map(|command| explain(std::slice::from_ref(command), "info "));
    Ok(found.unwrap_or_else(|| unknown(&format!("info {what}"))))
}

fn info(_: &Control, _: Words<'_>) -> Result<String, Fault> {
    Ok(explain(&INFOS, "info "))
}

fn info_trace_events(_: &Control, mut words: Words<'_>) -> Result<String, Fault> {
    let pattern = words.string("trace-events", "string")?;
    words.vcpu()?;
    words.end("trace-events")?;
    let events = Control::events(pattern.as_deref().unwrap_or("*"))?;
    let line = |event: &&crate::Event| format!("{} : state {}\n", event.name(), u8::from(event.is_enabled()));
    Ok(events.iter().map(line).collect())
}

fn trace_event(control: &Control, mut words: Words<'_>) -> Result<String, Fault> {
    let missing = || Fault::Words("trace-event: string expected\n".to_owned());
    let pattern = words.string("trace-event", "string")?.ok_or_else(missing)?;
    let on = match words.plain() {
        Some("on") => true,
        Some("off") => false,
        _ => return Err(Fault::Words("Expected 'on' or 'off'\n".to_owned())),
    };
    words.vcpu()?;
    words.end("trace-event")?;
    control.switch(&pattern, on, crate::pattern::is_pattern(&pattern))?;
    Ok(String::new())
}

fn trace_file(control: &Control, mut words: Words<'_>) -> Result<String, Fault> {
    let what = words.string("trace-file", "string")?;
    let path = words.string("trace-file", "filename")?;
    words.end("trace-file")?;
    match (what.as_deref(), path) {
        (None, _) => {
            let file = control.file()?;
            let state = if file.is_on { "on" } else { "off" };
            return Ok(format!("Trace file \"{}\" {state}.\n", file.path.display()));
        }
        (Some("set"), Some(path)) => control.set_file(Path::new(&path))?,
        (Some("set"), None) => return Err(Fault::Failed("trace-file set needs the path of a file".to_owned())),
        (Some("on"), None) => control.set_on(true)?,
        (Some("off"), None) => control.set_on(false)?,
        (Some("flush"), None) => control.flush()?,
        (Some("on" | "off" | "flush"), Some(_)) => return Err(too_much("trace-file")),
        (Some(what), _) => {
            let command = find(&COMMANDS, "trace-file").map(std::slice::from_ref).unwrap_or_default();
            return Ok(format!("unexpected argument \"{what}\"\n{}", explain(command, "")));
        }
    }
    Ok(String::new())
}

fn too_much(command: &str) -> Fault {
    Fault::Words(format!("{command}: extraneous characters at the end of line\n"))
}

/// What is left of a line.
struct Words<'a>(&'a str);

const fn is_space(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\x0b'
}

impl<'a> Words<'a> {
    fn skip_space(&mut self) {
        self.0 = self.0.trim_start_matches(is_space);
    }

    /// The next word as it stands.
    fn plain(&mut self) -> Option<&'a str> {
        self.skip_space();
        let (word, rest) = self.0.split_at(self.0.find(is_space).unwrap_or(self.0.len()));
        self.0 = rest;
        (!word.is_empty()).then_some(word)
    }

    /// The next word, which may be quoted: then blanks belong to it, and a backslash stands before what means something else.
    fn string(&mut self, command: &str, expected: &str) -> Result<Option<String>, Fault> {
        self.skip_space();
        let Some(quoted) = self.0.strip_prefix('"') else { return Ok(self.plain().map(str::to_owned)) };
        let bad = |why: String| Err(Fault::Words(format!("{why}\n{command}: {expected} expected\n")));
        let (mut word, mut chars) = (String::new(), quoted.chars());
        loop {
            match chars.next() {
                Some('"') => break,
                Some('\\') => match chars.next() {
                    Some('n') => word.push('\n'),
                    Some('r') => word.push('\r'),
                    Some(c @ ('\\' | '\'' | '"')) => word.push(c),
                    Some(c) => return bad(format!("unsupported escape code: '\\{c}'")),
                    None => return bad("unterminated string".to_owned()),
                },
                Some(c) => word.push(c),
                None => return bad("unterminated string".to_owned()),
            }
        }
        self.0 = chars.as_str();
        Ok(Some(word))
    }

    /// The number of a virtual processor, which means nothing any more.
    fn vcpu(&mut self) -> Result<(), Fault> {
        let Some(word) = self.plain() else { return Ok(()) };
        match word.chars().find(|c| !c.is_ascii_digit()) {
            Some(c) => Err(Fault::Words(format!("invalid char '{c}' in expression\n"))),
            None => Ok(()),
        }
    }

    fn end(&mut self, command: &str) -> Result<(), Fault> {
        self.skip_space();
        if self.0.is_empty() { Ok(()) } else { Err(too_much(command)) }
    }
}
