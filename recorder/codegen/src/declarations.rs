//! What the files declare, checked: what all outputs are made from.

use simpletrace_format::MAX_NAME_BYTES;
use simpletrace_format::events::{ArgDecl, Diagnostic, EventDecl, EventSet, Mode};

use crate::{Error, rust};

/// The events of one or several trace-events files (groups), each name once.
///
/// The language is that of all releases: `vcpu` and `tcg` lines, the types of old, any number of arguments. But what readers of traces
/// pass over with a warning is an error here, as it is in QEMU's build, by the C compiler if not by tracetool: names that are no
/// identifiers, arguments named alike, a format that does not fit its arguments.
#[derive(Debug)]
pub struct Declarations {
    pub(crate) files: Vec<String>,
    set: EventSet,
}

impl Declarations {
    /// Reads the texts of files, each with the name that errors and comments are to call it.
    ///
    /// # Errors
    ///
    /// [`Error::Declarations`] with all that is wrong.
    pub fn parse<N: Into<String>, T: AsRef<[u8]>>(files: impl IntoIterator<Item = (N, T)>) -> Result<Self, Error> {
        let (mut names, mut sources) = (Vec::new(), Vec::new());
        let mut set = EventSet::new();
        let mut faults = Vec::new();
        for (name, source) in files {
            let name = name.into();
            let found = set.add(&name, source.as_ref(), Mode::Lenient);
            faults.extend(found.iter().map(|fault| fault.with_source(&name, source.as_ref()).to_string()));
            if found.dropped() > 0 {
                faults.push(format!("{name}: {} more of these not shown", found.dropped()));
            }
            names.push(name);
            sources.push(source);
        }
        let at = |event: &EventDecl, message: &str, help: Option<&str>| {
            let source = sources[event.file as usize].as_ref();
            Diagnostic::error(source, event.name_span.clone(), message, help.map(str::to_owned))
                .with_source(set.file_name(event), source)
                .to_string()
        };
        for event in set.iter().filter(|event| event.name.len() > MAX_NAME_BYTES as usize) {
            let message = format!("event name of {} bytes, the most is {MAX_NAME_BYTES}", event.name.len());
            faults.push(at(event, &message, None));
        }
        for pair in set.duplicates() {
            let help = "the events of a program have names of their own: rename or remove one";
            let second = at(pair.later, &format!("second event named '{}'", pair.later.name), Some(help));
            faults.push(format!("{second}\n{}", at(pair.earlier, "the first one", None)));
        }
        if faults.is_empty() { Ok(Self { files: names, set }) } else { Err(Error::Declarations(faults)) }
    }

    /// The Rust code, to be a module's text. docs/CODEGEN.md says what is in it.
    #[must_use]
    pub fn rust(&self) -> String {
        rust::module(self)
    }

    /// The events in the order of the files.
    pub(crate) fn events(&self) -> &[EventDecl] {
        self.set.declarations()
    }

    /// Where an event is declared, for people.
    pub(crate) fn place(&self, event: &EventDecl) -> String {
        format!("{}:{}", self.set.file_name(event), event.line)
    }
}

/// The declaration that readers of the trace are to have: a half of a `tcg` line, or an event with the argument that `vcpu` adds, has no
/// line of its own in the file.
pub(crate) fn text(event: &EventDecl) -> String {
    let args: Vec<_> = event.args.iter().map(argument).collect();
    let args = if args.is_empty() { "void".to_owned() } else { args.join(", ") };
    let format = event.format.as_ref().map_or(String::new(), |format| format!(" {}", format.text));
    format!("{}({args}){format}", event.name)
}

fn argument(arg: &ArgDecl) -> String {
    let blank = if arg.c_type.ends_with('*') { "" } else { " " };
    format!("{}{blank}{}", arg.c_type, arg.name)
}
