//! Pythons with packages from PyPI.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A Python that has these packages, `NAME==VERSION` each, made once for all runs; or why there is none.
pub(crate) fn python_with(packages: &[&str]) -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(packages.join("-").replace("==", "-"));
    let python = |folder: &Path| folder.join("bin/python");
    if python(&folder).exists() {
        return Ok(python(&folder));
    }
    // Not by with_extension, as versions have dots.
    let new = PathBuf::from(format!("{}.{}", folder.display(), std::process::id()));
    let run = |command: &mut Command| {
        let command = command.stdin(Stdio::null());
        let output = command.output().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        let why = || said.lines().rfind(|line| !line.is_empty()).unwrap_or_default().to_owned();
        if output.status.success() { Ok(()) } else { Err(why()) }
    };
    let made = run(Command::new("python3").args(["-m", "venv"]).arg(&new)).and_then(|()| {
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1"];
        run(Command::new(python(&new)).args(pip).args(packages))
    });
    // Somebody else may have been faster.
    let moved = made.and_then(|()| fs::rename(&new, &folder).map_err(|error| error.to_string()));
    let _ = fs::remove_dir_all(&new);
    if python(&folder).exists() { Ok(python(&folder)) } else { moved.map(|()| python(&folder)) }
}
