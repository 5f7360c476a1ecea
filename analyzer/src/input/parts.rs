//! The parts of a rotated trace: `trace-1234.000001` and so on, each a file that is complete in itself.
//!
//! The name says which part a file is, and one file of a trace has to say so itself, as a fact: dates make names of the same kind.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Error, Result};

use super::Input;
use super::files::{facts_behind_header, first_timestamp_ns};

/// Which part of which trace a file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    /// The name of the trace: that of the file without its number.
    pub(crate) trace: Arc<Path>,
    /// From 1 on.
    pub(crate) number: u64,
}

impl Part {
    /// What the name of a file says, be it compressed or not.
    pub(crate) fn by_name(path: &Path) -> Option<Self> {
        let plain = if is_compressed(path) { path.with_extension("") } else { path.to_owned() };
        let digits = plain.extension()?.to_str()?;
        let number: u64 = digits.parse().ok().filter(|&number| number > 0)?;
        // As the recorder writes it: leading zeros up to six digits, and no sign.
        (format!("{number:06}") == digits).then(|| Self { trace: plain.with_extension("").into(), number })
    }
}

fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|suffix| suffix == "gz" || suffix == "zst")
}

/// Opens files. One that does not exist may be a trace that consists of parts: then these are opened.
///
/// # Errors
///
/// A file cannot be opened, and there are no parts of it.
pub(crate) fn open_all(paths: &[PathBuf]) -> Result<Vec<Input>> {
    let mut inputs = Vec::new();
    for path in paths {
        match Input::open(path) {
            Ok(input) => inputs.push(input),
            Err(error) if is_not_found(&error) => {
                let parts = open_parts(path)?;
                if parts.is_empty() {
                    return Err(error);
                }
                inputs.extend(parts);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(inputs)
}

/// Tells whether there is no file where one was to be opened.
pub(crate) fn is_not_found(error: &Error) -> bool {
    error.root_cause().downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// The files that may be parts of a trace by their names, in order.
pub(crate) fn files_of(trace: &Path) -> Vec<(u64, PathBuf)> {
    let folder = trace.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = trace.with_file_name(entry.file_name());
        let Some(part) = Part::by_name(&path).filter(|part| *part.trace == *trace) else { continue };
        if entry.file_type().is_ok_and(|kind| kind.is_file()) || fs::metadata(&path).is_ok_and(|path| path.is_file()) {
            found.push((part.number, is_compressed(&path), path));
        }
    }
    found.sort_unstable();
    // While a part is being compressed, there are two of it.
    found.dedup_by_key(|&mut (number, ..)| number);
    found.into_iter().map(|(number, _, path)| (number, path)).collect()
}

/// Opens the parts of a trace that are there.
fn open_parts(trace: &Path) -> Result<Vec<Input>> {
    let found = files_of(trace);
    if !found.iter().any(|(number, path)| says_part(path, *number)) {
        return Ok(Vec::new());
    }
    let mut inputs = Vec::with_capacity(found.len());
    for (_, path) in found {
        match Input::open(&path) {
            Ok(input) => inputs.push(input),
            // The recorder deletes the oldest.
            Err(error) if is_not_found(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(inputs)
}

fn says_part(path: &Path, number: u64) -> bool {
    facts_behind_header(path).is_some_and(|facts| facts.part() == Some(number))
}

/// Puts several files in order, the parts of a trace by their numbers, and traces by their first timestamps; as given if one of the files can be
/// read only once. Returns how many traces there are.
pub(crate) fn sort(files: &mut Vec<Input>) -> usize {
    let mut traces: Vec<Vec<Input>> = Vec::new();
    let mut by_name: HashMap<Arc<Path>, usize> = HashMap::new();
    for mut file in std::mem::take(files) {
        file.part = file.path.as_deref().filter(|_| file.progress.total.is_some()).and_then(Part::by_name);
        match &mut file.part {
            Some(part) => {
                let index = *by_name.entry(Arc::clone(&part.trace)).or_insert(traces.len());
                match traces.get_mut(index) {
                    Some(trace) => {
                        // One name for all of them.
                        if let Some(Input { part: Some(first), .. }) = trace.first() {
                            part.trace = Arc::clone(&first.trace);
                        }
                        trace.push(file);
                    }
                    None => traces.push(vec![file]),
                }
            }
            None => traces.push(vec![file]),
        }
    }
    traces = traces.into_iter().flat_map(parts_or_files).collect();
    let can_be_reread = traces.iter().flatten().all(|file| file.progress.total.is_some());
    if traces.len() > 1 && can_be_reread {
        let first_ns = |file: &Input| file.path.as_deref().and_then(first_timestamp_ns);
        // A trace without any event goes last; those that begin at the same time stay in order.
        traces.sort_by_cached_key(|trace| trace.iter().find_map(first_ns).unwrap_or(u64::MAX));
    }
    let count = traces.len();
    files.extend(traces.into_iter().flatten());
    count
}

/// The files of one name as one trace; as one each, if none says that it is a part.
fn parts_or_files(mut files: Vec<Input>) -> Vec<Vec<Input>> {
    let says_part = |file: &Input| match (&file.path, &file.part) {
        (Some(path), Some(part)) => says_part(path, part.number),
        _ => false,
    };
    if files.iter().any(says_part) {
        files.sort_by_key(|file| file.part.as_ref().map(|part| part.number));
        return vec![files];
    }
    files
        .into_iter()
        .map(|mut file| {
            file.part = None;
            vec![file]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_parts_have_six_digits_or_more_if_they_need_them() {
        for (name, part) in [
            ("trace-1234.000001", Some(("trace-1234", 1))),
            ("a/b.c.999999", Some(("a/b.c", 999_999))),
            ("t.1000000", Some(("t", 1_000_000))),
            ("t.18446744073709551615", Some(("t", u64::MAX))),
            ("t.000002.gz", Some(("t", 2))),
            ("t.000002.zst", Some(("t", 2))),
            ("t.000000", None),
            ("t.00001", None),
            ("t.0000001", None),
            ("t.0100000", None),
            ("t.+00001", None),
            ("t.-00001", None),
            ("t.18446744073709551616", None),
            ("t.000001.xz", None),
            ("t000001", None),
            (".000001", None),
            ("000001", None),
            ("t.٠٠٠٠٠١", None),
        ] {
            let found = Part::by_name(Path::new(name));
            let expected = part.map(|(trace, number)| Part { trace: Path::new(trace).into(), number });
            assert_eq!(found, expected, "{name}");
        }
    }
}
