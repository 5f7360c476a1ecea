//! Runs the program as a user does: in a folder, with nothing of this process's environment.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, thread};

use serde_json::Value as Json;

/// A folder to run the program in, so that command lines and messages have short names of files in them.
pub(crate) struct Dir {
    path: PathBuf,
    _temporary: Option<tempfile::TempDir>,
}

/// The program about to be run.
pub(crate) struct Call {
    command: Command,
    stdin: Vec<u8>,
}

/// What a run left.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Dir {
    /// A new, empty folder, which goes away with the value.
    pub(crate) fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        Self { path: temporary.path().to_owned(), _temporary: Some(temporary) }
    }

    /// A folder that is there already.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path, _temporary: None }
    }

    /// A new folder with these files in it.
    pub(crate) fn with<const N: usize>(files: [(&str, &[u8]); N]) -> Self {
        let dir = Self::new();
        for (name, bytes) in files {
            dir.write(name, bytes);
        }
        dir
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// Prepares the program with a command line whose words are parted by blanks.
    pub(crate) fn call(&self, line: &str) -> Call {
        let mut command = Command::new(env!("CARGO_BIN_EXE_simpletrace-rs"));
        command.args(line.split_whitespace()).current_dir(&self.path).env_clear();
        Call { command, stdin: Vec::new() }
    }

    /// Runs the program with a command line whose words are parted by blanks.
    pub(crate) fn run(&self, line: &str) -> Run {
        self.call(line).run()
    }
}

impl Call {
    pub(crate) fn arg(mut self, word: &str) -> Self {
        self.command.arg(word);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<Path>) -> Self {
        self.command.env(name, value.as_ref());
        self
    }

    /// Feeds these bytes through a pipe.
    pub(crate) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    pub(crate) fn run(self) -> Run {
        self.run_with(|command| {
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        })
    }

    /// Runs with the standard streams that `connect` sets up; those that it leaves are empty.
    pub(crate) fn run_with(mut self, connect: impl FnOnce(&mut Command)) -> Run {
        self.command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        connect(&mut self.command);
        let mut child = self.command.spawn().unwrap();
        // The command holds the other ends of the streams.
        drop(self.command);
        let feeder = child.stdin.take().map(|mut stdin| {
            thread::spawn(move || {
                // The program may have seen enough.
                let _ = stdin.write_all(&self.stdin);
            })
        });
        let output = child.wait_with_output().unwrap();
        if let Some(feeder) = feeder {
            feeder.join().unwrap();
        }
        Run {
            code: output.status.code().unwrap_or_else(|| panic!("ended by a signal: {output:?}")),
            stdout: output.stdout,
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Run {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }

    pub(crate) fn lines(&self) -> Vec<&str> {
        self.text().lines().collect()
    }

    /// Each line of the output, parsed.
    pub(crate) fn ndjson(&self) -> Vec<Json> {
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        self.text().lines().map(parse).collect()
    }

    /// The whole output, parsed.
    pub(crate) fn json(&self) -> Json {
        serde_json::from_slice(&self.stdout).unwrap()
    }

    /// Asserts the exit code, and returns the output.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}", self.stderr);
        self
    }

    /// Asserts that all went well and nothing was to be said.
    #[track_caller]
    pub(crate) fn silent(self) -> Self {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""));
        self
    }
}
