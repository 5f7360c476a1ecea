//! The `-trace` option of a program's command line, as QEMU parses it, and keys of our own.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use simpletrace_format::events::nearest;

use crate::options::{Clock, Error, Fork, Options, Policy};
use crate::pattern::{is_pattern, rules, stands_for};
use crate::say::say;
use crate::{Control, REGISTRY};

/// What the `-trace` options of a command line ask for.
///
/// Each is `[[enable=]PATTERN][,events=FILE][,file=FILE]` and further keys, which docs/EMBEDDING.md lists; `,,` is a comma in a value.
/// Of several options all patterns count, in their order, and of every other key the last, wherever it stands.
///
/// # Examples
///
/// ```
/// use simpletrace_recorder::{Event, TraceOptions, register};
///
/// static NET_SEND: Event = Event::new("net_send", "net_send(uint32_t bytes) \"%u bytes\"");
///
/// # let folder = std::env::temp_dir().join(format!("simpletrace-trace-options-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let file = format!("file={}/trace-%d", folder.display());
/// register(&[&NET_SEND])?;
/// let control = TraceOptions::parse(["net_*,buffer=4M", &file])?.start()?;
/// NET_SEND.emit(&[60u32.into()]);
/// let report = control.finish(std::time::Duration::from_secs(2))?.expect("a recording");
/// assert_eq!(report.records, 1);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct TraceOptions {
    rules: Vec<Rule>,
    options: Options,
    is_given: bool,
    wants_help: bool,
    notes: Vec<String>,
}

/// A pattern, and where it was found.
#[derive(Debug, Clone)]
struct Rule {
    pattern: String,
    place: Place,
}

#[derive(Debug, Clone)]
enum Place {
    Option(String),
    Line(PathBuf, usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option(given) => write!(f, "-trace {given}"),
            Self::Line(file, line) => write!(f, "{}:{line}", shown(file.as_os_str())),
        }
    }
}

/// Why `-trace` options cannot be followed. Nothing is enabled or recorded then.
#[derive(Debug)]
#[non_exhaustive]
pub enum TraceError {
    /// An option is not as it has to be.
    Option {
        /// The option.
        given: String,
        /// What is wrong with it.
        fault: String,
    },
    /// A file with patterns cannot be read.
    EventsFile {
        /// Its name.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A name, not a pattern, that no event has.
    UnknownEvent {
        /// Where it stands.
        place: String,
        /// The name.
        name: String,
        /// A name that is almost the same.
        nearest: Option<&'static str>,
    },
    /// The name of an event that is compiled out.
    UnavailableEvent {
        /// Where it stands.
        place: String,
        /// The name.
        name: String,
    },
    /// Recording cannot be started.
    Recording(Error),
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option { given, fault } => write!(f, "-trace {given}: {fault}"),
            Self::EventsFile { path, source } => {
                write!(f, "the events file {} cannot be read: {source}", shown(path.as_os_str()))
            }
            Self::UnknownEvent { place, name, nearest } => {
                write!(f, "{place}: there is no event {name:?}; ")?;
                match nearest {
                    Some(nearest) => write!(f, "did you mean {nearest}?"),
                    None => f.write_str("-trace help lists them"),
                }
            }
            Self::UnavailableEvent { place, name } => {
                write!(f, "{place}: the event {name} is compiled out: its declaration says `disable`")
            }
            Self::Recording(error) => write!(f, "-trace: {error}"),
        }
    }
}

impl std::error::Error for TraceError {}

impl TraceOptions {
    /// Reads options, and the events files that they name. Empty ones are passed over, such as an environment variable that is set to nothing.
    ///
    /// # Errors
    ///
    /// [`TraceError::Option`], [`TraceError::EventsFile`].
    pub fn parse<S: AsRef<OsStr>>(given: impl IntoIterator<Item = S>) -> Result<Self, TraceError> {
        let mut options = Self::default();
        for given in given {
            let given = given.as_ref();
            if !given.is_empty() {
                options.is_given = true;
                options.add(given)?;
            }
        }
        Ok(options)
    }

    /// Whether `help` or `?` is among the patterns: the program is to print [`event_list`], do nothing else and exit with 0.
    #[must_use]
    pub const fn wants_help(&self) -> bool {
        self.wants_help
    }

    /// Starts recording and enables events, all or nothing; without any option, does neither. The events must be [registered](crate::register) by now. Patterns hold
    /// for those that come later, too.
    ///
    /// # Errors
    ///
    /// [`TraceError::UnknownEvent`], [`TraceError::UnavailableEvent`], [`TraceError::Recording`].
    pub fn start(self) -> Result<Control, TraceError> {
        let notes = self.check()?;
        let control = Control::new(self.options);
        if self.is_given {
            control.start().map_err(TraceError::Recording)?;
        }
        for rule in &self.rules {
            REGISTRY.switch(&rule.pattern, true);
        }
        const SAID: usize = 10;
        let notes: Vec<_> = self.notes.iter().chain(&notes).collect();
        notes.iter().take(SAID).for_each(|note| say(&format!("simpletrace: {note}")));
        if notes.len() > SAID {
            say(&format!("simpletrace: -trace: {} more of these are not shown", notes.len() - SAID));
        }
        Ok(control)
    }

    /// Whether there is an event for each name; what is to be said of patterns.
    fn check(&self) -> Result<Vec<String>, TraceError> {
        let events = REGISTRY.events();
        let mut notes = Vec::new();
        for Rule { pattern, place } in &self.rules {
            let name = pattern.strip_prefix('-').unwrap_or(pattern);
            let mut meant = events.iter().filter(|event| stands_for(name, event.name())).peekable();
            if is_pattern(name) {
                if !meant.any(|event| event.is_available()) {
                    notes.push(format!("{place}: no event matches {name}"));
                }
            } else if meant.peek().is_none() {
                let nearest = nearest(name, events.iter().map(|event| event.name()));
                return Err(TraceError::UnknownEvent { place: place.to_string(), name: name.to_owned(), nearest });
            } else if !meant.any(|event| event.is_available()) {
                return Err(TraceError::UnavailableEvent { place: place.to_string(), name: name.to_owned() });
            }
        }
        Ok(notes)
    }

    fn add(&mut self, given: &OsStr) -> Result<(), TraceError> {
        let text = shown(given);
        let fault = |fault: String| TraceError::Option { given: text.clone(), fault };
        let (mut enable, mut events) = (None, None);
        for (key, value) in split(given.as_bytes()) {
            let key = String::from_utf8_lossy(&key).into_owned();
            let is_flag = matches!(&*key, "durable" | "threads");
            let value = value.or_else(|| (is_flag || !is_key(&key)).then(|| b"on".to_vec()));
            let path = PathBuf::from(OsString::from_vec(value.unwrap_or_default()));
            if path.as_os_str().is_empty() {
                return Err(fault(format!("{key}= has no value")));
            }
            let (seen, value) = match &*key {
                // Names of files may be anything.
                "events" => (events.replace(path).is_some(), None),
                "file" => {
                    self.options.file = path;
                    continue;
                }
                _ => (
                    false,
                    Some(path.into_os_string().into_string().map_err(|_| fault(format!("{key}= is not UTF-8")))?),
                ),
            };
            let seen = match value {
                Some(value) if key == "enable" => enable.replace(value).is_some(),
                Some(value) => {
                    set(&mut self.options, &key, &value).map_err(fault)?;
                    false
                }
                None => seen,
            };
            if seen {
                self.notes.push(format!("-trace {text}: of more than one {key}= in an option only the last counts"));
            }
        }
        if let Some(pattern) = enable {
            self.add_rule(&pattern, Place::Option(text.clone()));
        }
        if let Some(path) = events {
            let text = read(&path).map_err(|source| TraceError::EventsFile { path: path.clone(), source })?;
            let text = String::from_utf8(text).map_err(|_| {
                let source = io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8");
                TraceError::EventsFile { path: path.clone(), source }
            })?;
            for (line, rule) in rules(&text) {
                self.add_rule(rule, Place::Line(path.clone(), line));
            }
        }
        Ok(())
    }

    fn add_rule(&mut self, pattern: &str, place: Place) {
        if matches!(pattern, "help" | "?") {
            self.wants_help = true;
        } else {
            self.rules.push(Rule { pattern: pattern.to_owned(), place });
        }
    }
}

/// Reads an events file.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    /// Longer than the names of as many events as there may be.
    const MAX_BYTES: u64 = 4 << 20;

    let mut text = Vec::new();
    fs::File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("it has more than {MAX_BYTES} bytes")));
    }
    Ok(text)
}

/// Does what `-trace` options ask, in the way of a command: `help` prints the events and exits with 0; an error is one line on stderr, the program's
/// name in front, and exit status 1.
///
/// # Examples
///
/// ```
/// let args: Vec<std::ffi::OsString> = Vec::new();
/// // An environment variable comes first.
/// let control = simpletrace_recorder::trace_or_exit(std::env::var_os("EMULATOR_TRACE").into_iter().chain(args));
/// ```
pub fn trace_or_exit<S: AsRef<OsStr>>(given: impl IntoIterator<Item = S>) -> Control {
    let started = TraceOptions::parse(given).and_then(|options| {
        if options.wants_help() {
            print_and_exit();
        }
        options.start()
    });
    started.unwrap_or_else(|error| {
        let program = std::env::args_os().next().unwrap_or_default();
        let program = Path::new(&program).file_name().unwrap_or_default().display();
        // Whoever reads it may have left.
        let _ = writeln!(io::stderr(), "{program}: {error}");
        std::process::exit(1)
    })
}

fn print_and_exit() -> ! {
    let written = io::stdout().write_all(event_list().as_bytes());
    // Whoever reads it may have seen enough.
    let is_error = written.is_err_and(|error| error.kind() != io::ErrorKind::BrokenPipe);
    std::process::exit(is_error.into())
}

/// The names of all events that are registered, one a line, as `-trace help` prints them.
#[must_use]
pub fn event_list() -> String {
    REGISTRY.events().iter().flat_map(|event| [event.name(), "\n"]).collect()
}

/// Makes `--trace=VALUE` of QEMU's `-trace VALUE`, as parsers that follow the usual rules want it, for options of these `names`, all of which take a value.
///
/// A value may then begin with a `-`, as patterns that disable do. What follows `--` is left alone, and so is the first argument, the program's name.
///
/// # Examples
///
/// ```
/// use simpletrace_recorder::long_options;
///
/// let args = ["emulator", "-trace", "-net_*", "-m", "512"];
/// assert_eq!(long_options(args, &["trace", "monitor"]), ["emulator", "--trace=-net_*", "-m", "512"]);
/// ```
pub fn long_options<S: Into<OsString>>(args: impl IntoIterator<Item = S>, names: &[&str]) -> Vec<OsString> {
    let mut args = args.into_iter().map(Into::into);
    let mut out: Vec<OsString> = args.next().into_iter().collect();
    while let Some(arg) = args.next() {
        if arg == "--" {
            out.push(arg);
            out.extend(args);
            break;
        }
        out.push(long_option(&arg, names, &mut args).unwrap_or(arg));
    }
    out
}

fn long_option(arg: &OsStr, names: &[&str], rest: &mut impl Iterator<Item = OsString>) -> Option<OsString> {
    let bytes = arg.as_bytes();
    let bytes = bytes.strip_prefix(b"--").or_else(|| bytes.strip_prefix(b"-"))?;
    let name = bytes.split(|&byte| byte == b'=').next()?;
    if !names.iter().any(|known| known.as_bytes() == name) {
        return None;
    }
    let mut long = OsString::from("--");
    long.push(OsStr::from_bytes(bytes));
    if bytes.len() == name.len()
        && let Some(value) = rest.next()
    {
        long.push("=");
        long.push(value);
    }
    Some(long)
}

/// The keys and values of an option. What stands first without a key is `enable`'s value, what stands so behind it is a key without a value.
fn split(mut rest: &[u8]) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    let mut found = Vec::new();
    while !rest.is_empty() {
        let ends = rest.iter().position(|byte| b"=,".contains(byte)).unwrap_or(rest.len());
        let (key, value) = if rest.get(ends) == Some(&b'=') {
            let key = rest[..ends].to_vec();
            rest = &rest[ends + 1..];
            (key, Some(value(&mut rest)))
        } else if found.is_empty() {
            (b"enable".to_vec(), Some(value(&mut rest)))
        } else {
            let key = rest[..ends].to_vec();
            rest = rest.get(ends + 1..).unwrap_or_default();
            (key, None)
        };
        found.push((key, value));
    }
    found
}

/// Takes what is in front of the next single comma, and that.
fn value(rest: &mut &[u8]) -> Vec<u8> {
    let mut value = Vec::new();
    loop {
        match **rest {
            [] => return value,
            [b',', b',', ref behind @ ..] => {
                value.push(b',');
                *rest = behind;
            }
            [b',', ref behind @ ..] => {
                *rest = behind;
                return value;
            }
            [byte, ref behind @ ..] => {
                value.push(byte);
                *rest = behind;
            }
        }
    }
}

const KEYS: [&str; 10] =
    ["enable", "events", "file", "buffer", "clock", "durable", "fork", "policy", "rotate", "threads"];

fn is_key(key: &str) -> bool {
    KEYS.contains(&key)
}

/// Sets one of our own keys.
fn set(options: &mut Options, key: &str, value: &str) -> Result<(), String> {
    let wrong = |expected: &str| format!("{key}={value}: it is {expected}");
    let on = || match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(wrong("on or off")),
    };
    match key {
        "buffer" => {
            options.ring_bytes = size(value)
                .filter(|bytes| {
                    bytes.is_power_of_two() && (Options::MIN_RING_BYTES..=Options::MAX_RING_BYTES).contains(bytes)
                })
                .ok_or_else(|| wrong("a power of two from 64K to 64M"))?;
        }
        "policy" => {
            options.policy = match (value, value.strip_prefix("block:").map(duration)) {
                ("discard", _) => Policy::Discard,
                ("block", _) => Policy::Block(None),
                (_, Some(Some(longest))) => Policy::Block(Some(longest)),
                _ => return Err(wrong("discard, block, or block: and the longest wait, such as block:10ms")),
            }
        }
        "durable" => options.is_durable = on()?,
        "clock" => {
            options.clock = match value {
                "auto" => Clock::Auto,
                "monotonic" => Clock::Monotonic,
                _ => return Err(wrong("auto or monotonic")),
            }
        }
        "rotate" => {
            let (bytes, keep) = match value.split_once(':') {
                Some((bytes, keep)) => (size(bytes), number(keep).and_then(|keep| keep.try_into().ok()).map(Some)),
                None => (size(value), Some(None)),
            };
            *options = match (bytes, keep) {
                (Some(bytes @ Options::MIN_PART_BYTES..), Some(keep)) if keep != Some(0) => {
                    options.clone().rotate(bytes, keep)
                }
                _ => return Err(wrong("the size of a part, 1M or more, and perhaps how many to keep, such as 256M:4")),
            };
        }
        "fork" => {
            options.fork = match value {
                "follow" => Fork::Follow,
                "off" => Fork::Off,
                _ => return Err(wrong("follow or off")),
            }
        }
        "threads" => options.thread_ids = on()?,
        _ => {
            let nearest = nearest(key, KEYS).map_or_else(String::new, |nearest| format!("Did you mean {nearest}=? "));
            let keys = KEYS.map(|key| format!("{key}=")).join(", ");
            return Err(format!("there is no {key}=. {nearest}A pattern comes first; the keys are {keys}"));
        }
    }
    Ok(())
}

/// A number of bytes, with K, M or G for powers of 1,024.
fn size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "k" | "K" => 10,
        "m" | "M" => 20,
        "g" | "G" => 30,
        _ => return None,
    };
    number(digits)?.checked_mul(1 << shift)
}

/// A time with its unit.
fn duration(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number = number(digits)?;
    match &text[digits.len()..] {
        "us" => Some(Duration::from_micros(number)),
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        _ => None,
    }
}

/// Text as an error has it: in one line, and no command to a terminal.
fn shown(text: &OsStr) -> String {
    let escape = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.display().to_string().chars().map(escape).collect()
}

/// Digits and nothing else.
fn number(digits: &str) -> Option<u64> {
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}

#[cfg(test)]
mod tests;
