//! The commands of the README and of other pages, run as written.

#[test]
fn the_readme_shows_what_the_program_prints() {
    std::env::set_current_dir("..").unwrap();
    trycmd::TestCases::new().case("README.md").case("docs/FILTERS.md");
}
