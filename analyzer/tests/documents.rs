//! The documents that show how to use the crates, run as written.

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use snapbox::IntoData as _;

/// The fenced blocks of a document: the word in backquotes that the text before begins with, the language, and what is in them.
fn blocks(document: &str) -> Vec<(String, String, String)> {
    let document = fs::read_to_string(root().join("docs").join(document)).unwrap();
    let mut found = Vec::new();
    let (mut intro, mut lines) = ("", document.lines());
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let text =
                lines.by_ref().take_while(|line| *line != "```").fold(String::new(), |text, line| text + line + "\n");
            let name = intro.strip_prefix('`').and_then(|rest| rest.split_once('`')).map_or("", |(name, _)| name);
            found.push((name.to_owned(), language.to_owned(), text));
        } else if !line.is_empty() {
            intro = line;
        }
    }
    found
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

#[test]
fn embedding_takes_what_its_page_says() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("embedding");
    let scratch = folder.join("scratch");
    let _ = fs::remove_dir_all(&scratch);
    fs::create_dir_all(scratch.join("src")).unwrap();
    let blocks = blocks("EMBEDDING.md");
    for (name, _, text) in blocks.iter().filter(|(name, language, _)| !name.is_empty() && *language != "console") {
        fs::write(scratch.join(name), text).unwrap();
    }
    // The crates as they are here, and the same versions of all others.
    let mut manifest = fs::read_to_string(scratch.join("Cargo.toml")).unwrap();
    write!(manifest, "\n[workspace]\n\n[patch.crates-io]\n").unwrap();
    for (name, path) in [("recorder", "recorder"), ("codegen", "recorder/codegen"), ("format", "format")] {
        writeln!(manifest, "simpletrace-{name} = {{ path = {:?} }}", root().join(path)).unwrap();
    }
    fs::write(scratch.join("Cargo.toml"), manifest).unwrap();
    fs::copy(root().join("Cargo.lock"), scratch.join("Cargo.lock")).unwrap();

    // All in one shell, as somebody would type it; what each command says goes to a file of its own.
    let mut script = "trap 'kill $(jobs -p) 2>/dev/null' EXIT\n".to_owned();
    let mut expected = BTreeMap::new();
    for (_, _, text) in blocks.iter().filter(|(_, language, _)| *language == "console") {
        for shown in text.trim_end().split("\n\n") {
            let (command, output) = shown.split_once('\n').unwrap_or((shown, ""));
            let command = command.strip_prefix("$ ").unwrap_or_else(|| panic!("no command: {command}"));
            let (status, output) = match output.strip_prefix("? ") {
                Some(rest) => rest.split_once('\n').unwrap_or((rest, "")),
                None => ("0", output),
            };
            let number = expected.len();
            if command.contains(" ctl ") {
                // People take longer to type that than it takes the program to make its socket.
                script.push_str("while ! [ -e monitor.sock ] && kill -0 $!; do :; done\n");
            }
            match command.strip_suffix(" &") {
                Some(command) => writeln!(script, "{command} >out.{number} 2>&1 &\necho 0 >status.{number}").unwrap(),
                None => writeln!(script, "{command} >out.{number} 2>&1\necho $? >status.{number}").unwrap(),
            }
            expected.insert(number, (command, status, output));
        }
    }
    assert_eq!(expected.len(), 13, "commands on the page");
    fs::write(scratch.join("script"), script).unwrap();
    let programs = Path::new(env!("CARGO_BIN_EXE_simpletrace-rs")).parent().unwrap();
    let mut path = programs.as_os_str().to_owned();
    path.push(":");
    path.push(env::var_os("PATH").unwrap_or_default());
    let status = Command::new("bash")
        .arg("script")
        .current_dir(&scratch)
        .env("PATH", path)
        .env("CARGO_NET_OFFLINE", "true")
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .env_remove("SIMPLETRACE_EVENTS")
        .status()
        .unwrap();
    assert!(status.success(), "{status}");

    let read = |file: String| fs::read_to_string(scratch.join(file)).unwrap();
    for (number, (command, status, output)) in expected {
        let said = read(format!("out.{number}"));
        assert_eq!(read(format!("status.{number}")).trim_end(), status, "{command}\n{said}");
        let output = if output.is_empty() { String::new() } else { format!("{output}\n") };
        if let Err(difference) = snapbox::Assert::new().try_eq(Some(&command), said.into_data(), output.into_data()) {
            panic!("{command}\n{difference}");
        }
    }
}

#[test]
fn code_generation_is_shown_with_its_example() {
    let example = root().join("recorder/codegen/example");
    let blocks = blocks("CODEGEN.md");
    for name in ["trace-events", "build.rs"] {
        let (_, _, shown) = blocks.iter().find(|(block, _, _)| block == name).unwrap();
        let file = fs::read_to_string(example.join(name)).unwrap();
        // The example generates a second module, for its tests.
        let lines = shown.lines().filter(|line| !line.contains(".rust(") && *line != "}");
        for line in lines {
            assert!(file.lines().any(|other| other == line), "{name} of the example has no line {line}");
        }
    }
    let scratch = tempfile::tempdir().unwrap();
    fs::write(scratch.path().join("trace-events"), "\nnet_send(int id, unit64_t bytes) \"%d %\"PRIu64\n").unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_simpletrace-rs"))
        .args(["generate", "rs", "trace-events"])
        .current_dir(scratch.path())
        .output()
        .unwrap();
    let (_, _, shown) = blocks.iter().find(|(_, _, text)| text.contains("unit64_t")).unwrap();
    assert_eq!(String::from_utf8(run.stderr).unwrap(), format!("error: {shown}"));
}
