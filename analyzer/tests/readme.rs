//! The commands of the README and of other pages, run as written.

#[test]
fn the_readme_shows_what_the_program_prints() {
    std::env::set_current_dir("..").unwrap();
    // As on a terminal of this width, whatever this process runs in.
    let pages = trycmd::TestCases::new();
    pages.case("README.md").case("docs/FILTERS.md").case("docs/GUIDE.md").env("COLUMNS", "80").env("LC_ALL", "C.UTF-8");
}
