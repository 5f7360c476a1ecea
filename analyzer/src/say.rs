//! What is said on stderr beside the results: notes, warnings and errors, one line each.

use std::cell::RefCell;
#[cfg(feature = "columns")]
use std::fmt;

use anstyle::{AnsiColor, Style};

const NOTE: Style = AnsiColor::Cyan.on_default();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const ERROR: Style = AnsiColor::Red.on_default().bold();

/// How much a remark matters.
#[cfg_attr(not(feature = "columns"), expect(unreachable_pub))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Something the user may want to know.
    Note,
    /// Something that is not as it should be, though the work went on.
    Warning,
    /// Something of which there is no result, or only a part.
    Error,
}

/// What the commands say on stderr beside a result, as of a trace that is damaged.
#[cfg(feature = "columns")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// How much it matters.
    pub level: Level,
    /// One or more lines, without a newline at the end.
    pub text: String,
}

#[cfg(feature = "columns")]
impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.level.word(), self.text)
    }
}

impl Level {
    const fn word(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Something the user may want to know.
pub(crate) fn note(text: &str) {
    line(NOTE, Level::Note, text);
}

/// Something that is not as it should be, though the work went on.
pub(crate) fn warning(text: &str) {
    line(WARNING, Level::Warning, text);
}

/// Something that stopped the work.
pub(crate) fn error(text: &str) {
    line(ERROR, Level::Error, text);
}

thread_local! {
    static ABOUT: RefCell<String> = const { RefCell::new(String::new()) };
    /// Where what this thread says goes, if not to stderr.
    #[cfg(feature = "columns")]
    static KEPT: RefCell<Option<Vec<Remark>>> = const { RefCell::new(None) };
}

/// Begins each line of this thread with what it is about, where that is one of several; with nothing if that is empty.
pub(crate) fn about(what: &str) {
    ABOUT.set(if what.is_empty() { String::new() } else { format!("{what}: ") });
}

/// Does some work; what is said meanwhile by this thread comes back and is not written.
#[cfg(feature = "columns")]
pub(crate) fn kept<T>(work: impl FnOnce() -> T) -> (T, Vec<Remark>) {
    KEPT.set(Some(Vec::new()));
    let done = work();
    (done, KEPT.take().unwrap_or_default())
}

fn line(style: Style, level: Level, text: &str) {
    let about = ABOUT.with_borrow(String::clone);
    #[cfg(feature = "columns")]
    if keep(level, &format!("{about}{text}")) {
        return;
    }
    write(&format!("{style}{}{style:#}: {about}{text}\n", level.word()));
}

/// Keeps what is said, if it is to be kept.
#[cfg(feature = "columns")]
fn keep(level: Level, text: &str) -> bool {
    KEPT.with_borrow_mut(|kept| {
        let Some(kept) = kept else { return false };
        kept.push(Remark { level, text: text.to_owned() });
        true
    })
}

fn write(text: &str) {
    use std::io::Write as _;
    // A closed stderr is nobody's fault and nobody's to tell.
    let _ = anstream::stderr().write_all(text.as_bytes());
}
