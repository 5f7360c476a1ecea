//! What `simpletrace_rs` says of the options of its command line, in the words of Python.

/// Options as messages name them, and what they are called here. Of two that begin alike, the longer one stands first.
const WORDS: &[(&str, &str)] = &[
    ("-w:", "where=, "),
    ("by -w", "by where="),
    ("; --explain-filter lists them", ""),
    ("write -e -dropped", "event=['-dropped'] leaves them out"),
    ("write -e '*' for all events", "leave out event= for all events"),
    (", or say --v0-ids", ""),
    ("within -t ", "within time="),
    ("of --pid ", "of pid="),
    ("--by has ", "by= has "),
    ("--by is ", "by= is "),
    ("`--by none`", "by=[]"),
    ("--by ", "by="),
    ("--on has ", "on= has "),
    ("--on ", "on="),
    ("-p has ", "percentiles= has "),
    ("(--preset, --list)", "(preset=; simpletrace.presets() lists them)"),
    ("latency --list)", "simpletrace.presets() lists them)"),
    ("latency --list ", "simpletrace.presets() "),
    ("`simpletrace-rs events -s TEXT` finds them", "simpletrace.read_events lists them"),
];

/// Puts a message in the words of Python. Lines that show what somebody wrote stay as they are.
pub(crate) fn in_python(message: &str) -> String {
    let mut lines = message.split('\n');
    let first = lines.next().map(translated);
    let others = lines.map(|line| match line.strip_prefix("help: ") {
        Some(help) => format!("help: {}", translated(help)),
        None => line.to_owned(),
    });
    first.into_iter().chain(others).collect::<Vec<_>>().join("\n")
}

/// Replaces options where a word begins.
fn translated(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let begins = text.is_empty() || text.ends_with([' ', '(']);
        match WORDS
            .iter()
            .find(|(option, _)| rest.starts_with(option) && (begins || option.starts_with(['`', ';', ','])))
        {
            Some((option, word)) => {
                text.push_str(word);
                rest = &rest[option.len()..];
            }
            None => {
                text.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    text
}
