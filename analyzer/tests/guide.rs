//! The page with a real trace of QEMU, run as written, in the folder of that trace.

mod support;

use support::shared;

#[test]
fn the_guide_through_a_trace_of_qemu_shows_what_the_program_prints() {
    let test = "the_guide_through_a_trace_of_qemu_shows_what_the_program_prints";
    let Some(folder) = shared::traces(test, "qemu-8.2") else { return };
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/GUIDE-QEMU.md");
    std::env::set_current_dir(folder.path("qemu-8.2")).unwrap();
    trycmd::TestCases::new().case(page).env("COLUMNS", "80").env("LC_ALL", "C.UTF-8");
}
