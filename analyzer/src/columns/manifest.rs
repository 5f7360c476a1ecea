//! Which traces are in a data set: a file for each, which is there once all of the trace is.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::TOOL;
use super::facts::FileFacts;
use crate::cli::Partition;
use crate::render::printable;
use crate::trace::FileSummary;

/// The version of the schema of manifests, and of the layout of the folder.
const SCHEMA: &str = "simpletrace-rs.dataset/1";

/// Where manifests are. Readers pass over folders with such names.
const FOLDER: &str = "_manifest";

/// What a data set has of one trace.
#[derive(Serialize, Deserialize)]
pub(crate) struct Manifest {
    schema: String,
    tool: String,
    source: String,
    partition: Vec<String>,
    /// The files that it was made from.
    traces: Value,
    /// Events, gaps left out.
    records: u64,
    gaps: Value,
    /// Whether a part of the trace could not be read, or did not fit its declarations.
    is_damaged: bool,
    files: Vec<ManifestFile>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct ManifestFile {
    /// In the folder.
    pub(crate) path: String,
    pub(crate) event: String,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
}

impl Manifest {
    pub(crate) fn new(
        source: &str,
        partition: Partition,
        records: u64,
        is_damaged: bool,
        facts: &FileFacts,
        traces: &[FileSummary],
        files: Vec<ManifestFile>,
    ) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            tool: TOOL.to_owned(),
            source: source.to_owned(),
            partition: partition.names().map(str::to_owned).collect(),
            traces: FileFacts::sources(traces),
            records,
            gaps: facts.gaps(traces),
            is_damaged,
            files,
        }
    }

    fn read(path: &Path) -> Result<Self> {
        let manifest = || -> Result<Self> { Ok(serde_json::from_slice(&fs::read(path)?)?) };
        let manifest = manifest().with_context(|| format!("cannot read {}", path.display()))?;
        if manifest.schema != SCHEMA {
            bail!("{} is of the schema {}, and this program knows {SCHEMA}", path.display(), manifest.schema);
        }
        Ok(manifest)
    }
}

/// The right to add a trace: a locked file, which says what a killed export may have left.
pub(crate) struct Claim {
    folder: PathBuf,
    path: PathBuf,
    manifest: PathBuf,
    file: File,
    /// The files of what is replaced, or was left behind.
    old: Vec<String>,
    is_kept: bool,
    /// Goes last.
    _made: MadeFolders,
}

/// Folders that were not there before, the innermost first: those that are empty in the end go away.
struct MadeFolders(Vec<PathBuf>);

impl MadeFolders {
    /// Of a folder, and all around it.
    fn of(folder: &Path) -> Self {
        let around = folder.ancestors().filter(|around| !around.as_os_str().is_empty());
        Self(around.take_while(|around| !around.exists()).map(Path::to_owned).collect())
    }
}

impl Drop for MadeFolders {
    fn drop(&mut self) {
        // It is not possible where something is in one, perhaps of another export.
        let _ = self.0.iter().try_for_each(fs::remove_dir);
    }
}

/// The longest a name may be in a file system, in bytes; it is for the longest that is made of a trace's.
const MAX_NAME_BYTES: usize = 255 - ".".len() - ".parquet.part".len();

/// Refuses a name that is too long for a file, once it is escaped.
pub(super) fn check_name(what: &str, name: &str, escaped: &str, instead: &str) -> Result<()> {
    if escaped.len() > MAX_NAME_BYTES {
        let shown: String = name.chars().take(40).collect();
        bail!(
            "{what} {}... is too long for a file's name: {} bytes of at most {MAX_NAME_BYTES}; {instead}",
            printable(&shown),
            escaped.len()
        );
    }
    Ok(())
}

/// Opens a file in a folder that is made if it is not there, or if another export has taken it away in between, as it was empty.
pub(super) fn open_in_folder(path: &Path, open: impl Fn() -> io::Result<File>) -> io::Result<File> {
    const TRIES: usize = 100;

    let in_folder = || {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        open()
    };
    for _ in 1..TRIES {
        match in_folder() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => return result,
        }
    }
    in_folder()
}

/// Removes the folders around a file that is gone, up to that of the data set, as far as they are empty.
pub(super) fn remove_empty_folders(folder: &Path, path: &Path) {
    let within = path.ancestors().skip(1).take_while(|around| *around != folder && around.starts_with(folder));
    for around in within {
        if fs::remove_dir(around).is_err() {
            break;
        }
    }
}

impl Claim {
    /// Takes the right to add a trace of this name.
    pub(crate) fn take(folder: &Path, source: &str, partition: Partition, replaces: bool) -> Result<Self> {
        let manifests = folder.join(FOLDER);
        let made = MadeFolders::of(&manifests);
        fs::create_dir_all(&manifests).with_context(|| format!("cannot create {}", manifests.display()))?;
        check_partition(&manifests, partition)?;
        let manifest = manifests.join(format!("{source}.json"));
        let path = manifests.join(format!("{source}.json.part"));
        let open = || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = open_in_folder(&path, open).with_context(|| format!("cannot create {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!("{} is being added to {} already", source, folder.display()),
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock {}", path.display()));
            }
        }
        let mut old = Vec::new();
        if manifest.exists() {
            if !replaces {
                // Also of one that has come to its end just now.
                let _ = fs::remove_file(&path);
                bail!(
                    "{} has a trace that goes by the name of {source}; --source gives this one another name, and --replace puts it \
                     in the place of that one",
                    folder.display()
                );
            }
            old = Manifest::read(&manifest)?.files;
        }
        let mut left = Vec::new();
        file.read_to_end(&mut left).with_context(|| format!("cannot read {}", path.display()))?;
        // Cut off if it was killed while it wrote this; then no file had got its name yet.
        old.extend(serde_json::from_slice::<Manifest>(&left).map_or(Vec::new(), |left| left.files));
        let old: Vec<_> = old.into_iter().map(|file| file.path).collect();
        if let Some(odd) = old.iter().find(|path| !is_of_layout(path)) {
            bail!(
                "{} says that {odd} is a file of the data set, which it cannot be; nothing was removed",
                manifest.display()
            );
        }
        Ok(Self { folder: folder.to_owned(), path, manifest, file, old, is_kept: false, _made: made })
    }

    /// Notes what will be there, before it is, and takes out what is replaced.
    pub(crate) fn announce(&mut self, manifest: &Manifest) -> Result<()> {
        let mut write = || -> Result<()> {
            // Of both, should this be killed.
            let text = serde_json::to_vec_pretty(manifest)?;
            self.file.rewind()?;
            self.file.set_len(0)?;
            self.file.write_all(&text)?;
            self.file.sync_all()?;
            Ok(())
        };
        write().with_context(|| format!("cannot write to {}", self.path.display()))?;
        if self.manifest.exists() {
            fs::remove_file(&self.manifest).with_context(|| format!("cannot remove {}", self.manifest.display()))?;
        }
        for path in self.old.drain(..).map(|path| self.folder.join(path)) {
            if path.exists() {
                fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
                remove_empty_folders(&self.folder, &path);
            }
        }
        Ok(())
    }

    /// Says that all is there.
    pub(crate) fn keep(&mut self, _: &Manifest) -> Result<()> {
        fs::rename(&self.path, &self.manifest)
            .with_context(|| format!("cannot write to {}", self.manifest.display()))?;
        self.is_kept = true;
        Ok(())
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether a path is one of a file that an export has made: below the folder of an event, and nowhere else. Others can write manifests, too.
fn is_of_layout(path: &str) -> bool {
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    path.starts_with("event=") && path.ends_with(".parquet") && Path::new(path).components().all(is_plain)
}

/// Refuses another partition than that of the traces that are there, as readers could make nothing of both.
fn check_partition(manifests: &Path, partition: Partition) -> Result<()> {
    let entries = match fs::read_dir(manifests) {
        // Another export has taken it away, as it was empty.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.with_context(|| format!("cannot read {}", manifests.display()))?,
    };
    let is_manifest = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json");
    let Some(path) = entries.flatten().map(|entry| entry.path()).find(is_manifest) else { return Ok(()) };
    let manifest = Manifest::read(&path)?;
    if !partition.names().eq(manifest.partition.iter().map(String::as_str)) {
        bail!("the data set is partitioned by {}, as {} says", manifest.partition.join(","), path.display());
    }
    Ok(())
}
