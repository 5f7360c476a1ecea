//! Pythons with packages from PyPI.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A Python that has these packages, `NAME==VERSION` each, made once for all runs; or why there is none.
pub(crate) fn python_with(packages: &[&str]) -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(packages.join("-").replace("==", "-"));
    let python = folder.join("bin/python");
    // What is there is whole only if it says so; one test makes it, the others wait.
    let whole = folder.join("whole");
    let lock = File::create(format!("{}.lock", folder.display())).map_err(|error| error.to_string())?;
    lock.lock().map_err(|error| error.to_string())?;
    if whole.exists() {
        return Ok(python);
    }
    let run = |command: &mut Command| {
        let command = command.stdin(Stdio::null());
        let output = command.output().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        let why = || said.lines().rfind(|line| !line.is_empty()).unwrap_or_default().to_owned();
        if output.status.success() { Ok(()) } else { Err(why()) }
    };
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1"];
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
    run(Command::new(&python).args(pip).args(packages))?;
    File::create(whole).map_err(|error| error.to_string())?;
    Ok(python)
}
