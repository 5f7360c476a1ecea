//! QMP: requests and replies in JSON.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::Control;
use crate::report::Lost;

/// Which release of QEMU it is whose replies ours are like: the first without virtual processors in those on events.
const VERSION: [u32; 3] = [9, 1, 0];

/// Why a request failed, as QMP says it.
struct Failure {
    class: &'static str,
    desc: String,
}

impl From<String> for Failure {
    fn from(desc: String) -> Self {
        Self { class: "GenericError", desc }
    }
}

impl Failure {
    fn not_found(desc: impl Into<String>) -> Self {
        Self { class: "CommandNotFound", desc: desc.into() }
    }
}

type Run = fn(&Control, Arguments) -> Result<Value, Failure>;

const COMMANDS: [(&str, Run); 9] = [
    ("human-monitor-command", human_monitor_command),
    // What it does is the connection's.
    ("qmp_capabilities", |_, _| {
        Err(Failure::not_found("Capabilities negotiation is already complete, command ignored"))
    }),
    ("query-commands", query_commands),
    ("query-version", |_, arguments| arguments.end().map(|()| version())),
    ("trace-event-get-state", trace_event_get_state),
    ("trace-event-set-state", trace_event_set_state),
    ("x-trace-file-flush", trace_file_flush),
    ("x-trace-file-get", trace_file_get),
    ("x-trace-file-set", trace_file_set),
];

/// What is said to whoever connects.
#[cfg(target_os = "linux")]
pub(super) fn greeting() -> String {
    to_text(&json!({ "QMP": { "version": version(), "capabilities": [] } }))
}

/// The reply to something that is no request.
pub(super) fn error(desc: impl Into<String>) -> String {
    reply_to(None, Err(desc.into().into()))
}

/// What is to be a request, or why it is none.
pub(super) fn parse(request: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(request).map_err(|why| format!("JSON parse error, {why}"))
}

/// The reply to a request. Before capabilities are negotiated, it can only be the one that does so.
pub(super) fn reply(control: &Control, request: Value, is_negotiated: &mut bool) -> String {
    let Value::Object(request) = request else { return error("QMP input must be a JSON object") };
    let id = request.get("id").cloned();
    reply_to(id, answer(control, request, is_negotiated))
}

fn reply_to(id: Option<Value>, result: Result<Value, Failure>) -> String {
    let mut reply = Map::new();
    reply.extend(id.map(|id| ("id".to_owned(), id)));
    match result {
        Ok(value) => reply.insert("return".to_owned(), value),
        Err(Failure { class, desc }) => reply.insert("error".to_owned(), json!({ "class": class, "desc": desc })),
    };
    to_text(&Value::Object(reply))
}

fn answer(control: &Control, request: Map<String, Value>, is_negotiated: &mut bool) -> Result<Value, Failure> {
    let (mut name, mut arguments) = (None, Map::new());
    for (key, value) in request {
        match (&*key, value) {
            ("execute", Value::String(value)) => name = Some(value),
            ("execute", _) => return Err(format!("QMP input member '{key}' must be a string").into()),
            ("arguments", Value::Object(value)) => arguments = value,
            ("arguments", _) => return Err(format!("QMP input member '{key}' must be an object").into()),
            ("id", _) => {}
            _ => return Err(format!("QMP input member '{key}' is unexpected").into()),
        }
    }
    let name = name.ok_or_else(|| "QMP input lacks member 'execute'".to_owned())?;
    let arguments = Arguments(arguments);
    if !*is_negotiated {
        if name != "qmp_capabilities" {
            return Err(Failure::not_found("Expecting capabilities negotiation with 'qmp_capabilities'"));
        }
        negotiate(arguments)?;
        *is_negotiated = true;
        return Ok(json!({}));
    }
    match COMMANDS.iter().find(|(own, _)| *own == name) {
        Some((_, run)) => run(control, arguments),
        None => Err(Failure::not_found(format!("The command {name} has not been found"))),
    }
}

fn negotiate(mut arguments: Arguments) -> Result<(), Failure> {
    let wanted = arguments.0.remove("enable").unwrap_or_else(|| json!([]));
    arguments.end()?;
    match wanted.as_array().map(Vec::as_slice) {
        Some([]) => Ok(()),
        Some([wanted, ..]) => Err(format!("Capability {} not available", wanted.as_str().unwrap_or("?")).into()),
        None => Err("Invalid parameter type for 'enable', expected: array".to_owned().into()),
    }
}

fn version() -> Value {
    let [major, minor, micro] = VERSION;
    let package = concat!("simpletrace-rs ", env!("CARGO_PKG_VERSION"));
    json!({ "qemu": { "major": major, "minor": minor, "micro": micro }, "package": package })
}

fn human_monitor_command(control: &Control, mut arguments: Arguments) -> Result<Value, Failure> {
    let line = arguments.string("command-line")?;
    arguments.vcpu("cpu-index")?;
    arguments.end()?;
    // As they are sent to a terminal.
    Ok(control.hmp(&line).replace('\n', "\r\n").into())
}

fn query_commands(_: &Control, arguments: Arguments) -> Result<Value, Failure> {
    arguments.end()?;
    Ok(COMMANDS.iter().map(|(name, _)| json!({ "name": name })).collect())
}

fn trace_event_get_state(_: &Control, mut arguments: Arguments) -> Result<Value, Failure> {
    let pattern = arguments.string("name")?;
    arguments.vcpu("vcpu")?;
    arguments.end()?;
    let state = |event: &crate::Event| match (event.is_available(), event.is_enabled()) {
        (false, _) => "unavailable",
        (true, false) => "disabled",
        (true, true) => "enabled",
    };
    let events = Control::events(&pattern)?;
    Ok(events.iter().map(|event| json!({ "name": event.name(), "state": state(event) })).collect())
}

fn trace_event_set_state(control: &Control, mut arguments: Arguments) -> Result<Value, Failure> {
    let pattern = arguments.string("name")?;
    let on = arguments.required("enable", Arguments::optional_bool)?;
    let skips_unavailable = arguments.optional_bool("ignore-unavailable")?.unwrap_or(false);
    arguments.vcpu("vcpu")?;
    arguments.end()?;
    control.switch(&pattern, on, skips_unavailable)?;
    Ok(json!({}))
}

fn trace_file_get(control: &Control, arguments: Arguments) -> Result<Value, Failure> {
    arguments.end()?;
    let (file, report) = control.report()?;
    let Lost { full, timed_out, too_large, nested, no_ring, off, write_failed } = report.lost;
    let mut reply = json!({
        "file": file.path.to_string_lossy(),
        "enabled": file.is_on,
        "records": report.records,
        "bytes": report.bytes,
        "lost": report.lost.total(),
        "lost-by-cause": {
            "full": full,
            "timed-out": timed_out,
            "too-large": too_large,
            "nested": nested,
            "no-ring": no_ring,
            "off": off,
            "write-failed": write_failed,
        },
    });
    if let Some(error) = report.write_error {
        reply["write-error"] = error.into();
    }
    Ok(reply)
}

fn trace_file_set(control: &Control, mut arguments: Arguments) -> Result<Value, Failure> {
    let (file, on) = (arguments.optional_string("file")?, arguments.optional_bool("enable")?);
    arguments.end()?;
    if file.is_none() && on.is_none() {
        return Err("Parameter 'file' or 'enable' is missing".to_owned().into());
    }
    if let Some(file) = file {
        control.set_file(Path::new(&file))?;
    }
    if let Some(on) = on {
        control.set_on(on)?;
    }
    Ok(json!({}))
}

fn trace_file_flush(control: &Control, arguments: Arguments) -> Result<Value, Failure> {
    arguments.end()?;
    control.flush()?;
    Ok(json!({}))
}

/// Those that no command has taken yet.
struct Arguments(Map<String, Value>);

impl Arguments {
    fn optional<T>(
        &mut self,
        name: &str,
        expected: &str,
        convert: impl FnOnce(Value) -> Option<T>,
    ) -> Result<Option<T>, Failure> {
        let Some(value) = self.0.remove(name) else { return Ok(None) };
        let wrong = || format!("Invalid parameter type for '{name}', expected: {expected}").into();
        convert(value).map(Some).ok_or_else(wrong)
    }

    fn optional_string(&mut self, name: &str) -> Result<Option<String>, Failure> {
        self.optional(name, "string", |value| if let Value::String(text) = value { Some(text) } else { None })
    }

    fn optional_bool(&mut self, name: &str) -> Result<Option<bool>, Failure> {
        self.optional(name, "boolean", |value| value.as_bool())
    }

    fn required<T>(
        &mut self,
        name: &str,
        optional: fn(&mut Self, &str) -> Result<Option<T>, Failure>,
    ) -> Result<T, Failure> {
        optional(self, name)?.ok_or_else(|| format!("Parameter '{name}' is missing").into())
    }

    fn string(&mut self, name: &str) -> Result<String, Failure> {
        self.required(name, Self::optional_string)
    }

    /// The number of a virtual processor, which means nothing.
    fn vcpu(&mut self, name: &str) -> Result<(), Failure> {
        self.optional(name, "integer", |value| (value.is_i64() || value.is_u64()).then_some(())).map(|_| ())
    }

    /// There must be no others.
    fn end(&self) -> Result<(), Failure> {
        match self.0.keys().next() {
            Some(name) => Err(format!("Parameter '{name}' is unexpected").into()),
            None => Ok(()),
        }
    }
}

/// As QEMU writes it: a blank behind each comma and colon.
fn to_text(value: &Value) -> String {
    fn put(value: &Value, text: &mut String) {
        match value {
            Value::Array(values) => {
                text.push('[');
                for (n, value) in values.iter().enumerate() {
                    text.push_str(if n == 0 { "" } else { ", " });
                    put(value, text);
                }
                text.push(']');
            }
            Value::Object(members) => {
                text.push('{');
                for (n, (key, value)) in members.iter().enumerate() {
                    // Writing to a string does not fail.
                    let _ = write!(text, "{}{}: ", if n == 0 { "" } else { ", " }, Value::from(&**key));
                    put(value, text);
                }
                text.push('}');
            }
            other => {
                let _ = write!(text, "{other}");
            }
        }
    }
    let mut text = String::new();
    put(value, &mut text);
    text
}
