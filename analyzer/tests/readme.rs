//! The commands of the README and of other pages, run as written.

#![cfg(feature = "frames")]

use std::os::unix::fs::symlink;
use std::path::Path;

#[test]
fn the_readme_shows_what_the_program_prints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    // A folder to write into, that has what the commands read.
    let folder = tempfile::tempdir().unwrap();
    symlink(root.join("fixtures"), folder.path().join("fixtures")).unwrap();
    std::env::set_current_dir(folder.path()).unwrap();
    // As on a terminal of this width, whatever this process runs in.
    let pages = trycmd::TestCases::new();
    for page in ["README.md", "docs/FILTERS.md", "docs/GUIDE.md"] {
        pages.case(root.join(page));
    }
    pages.env("COLUMNS", "80").env("LC_ALL", "C.UTF-8");
    // They run when the value goes away, for which the folder has to be there.
    drop(pages);
}
