//! What is said on stderr beside the results: notes, warnings and errors, one line each.

use std::cell::RefCell;

use anstyle::{AnsiColor, Style};

const NOTE: Style = AnsiColor::Cyan.on_default();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const ERROR: Style = AnsiColor::Red.on_default().bold();

/// Something the user may want to know.
pub(crate) fn note(text: &str) {
    line(NOTE, "note", text);
}

/// Something that is not as it should be, though the work went on.
pub(crate) fn warning(text: &str) {
    line(WARNING, "warning", text);
}

/// Something that stopped the work.
pub(crate) fn error(text: &str) {
    line(ERROR, "error", text);
}

thread_local! {
    static ABOUT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Begins each line of this thread with what it is about, where that is one of several; with nothing if that is empty.
pub(crate) fn about(what: &str) {
    ABOUT.set(if what.is_empty() { String::new() } else { format!("{what}: ") });
}

fn line(style: Style, word: &str, text: &str) {
    let about = ABOUT.with_borrow(String::clone);
    write(&format!("{style}{word}{style:#}: {about}{text}\n"));
}

fn write(text: &str) {
    use std::io::Write as _;
    // A closed stderr is nobody's fault and nobody's to tell.
    let _ = anstream::stderr().write_all(text.as_bytes());
}
