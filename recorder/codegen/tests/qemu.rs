//! The declarations of real QEMU builds, generated and compiled under the workspace's lints.
//!
//! The files are not part of the project: they are looked for in the folder `shared` beside the checkout, or where
//! `SIMPLETRACE_SHARED` says.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use simpletrace_codegen::Declarations;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// A crate of its own with a public module, and a private one that nothing is used of.
const LIB: &str = "\
//! Generated.
#![forbid(unsafe_code)]
pub mod qemu_8_2 {
    //! Public.
    include!(\"qemu-8.2.rs\");
}
#[path = \"qemu-10.2.rs\"]
mod qemu_10_2;
/// All of both.
pub static ALL: [&[&::simpletrace_recorder::Event]; 2] = [&qemu_8_2::EVENTS, &qemu_10_2::EVENTS];
";

#[test]
fn all_of_qemu_compiles_without_a_warning() {
    let shared =
        env::var_os("SIMPLETRACE_SHARED").map_or_else(|| Path::new(HERE).join("../../../shared"), PathBuf::from);
    let traces = shared.join("traces");
    if !traces.is_dir() {
        println!("SKIPPED: all_of_qemu_compiles_without_a_warning: {} is absent", traces.display());
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("codegen-qemu");
    let workspace = Path::new(HERE).join("../..");
    fs::create_dir_all(folder.join("src")).unwrap();
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();

    for (release, events, enabled) in [("qemu-8.2", 5507, 5492), ("qemu-10.2", 932, 932)] {
        let source = fs::read(traces.join(release).join("trace-events-all")).unwrap();
        let code = Declarations::parse([(release, source)]).unwrap().rust();
        assert_eq!(code.matches("    pub fn record(").count(), events);
        assert!(code.contains(&format!("pub static EVENTS: [&::simpletrace_recorder::Event; {events}] = [\n")));
        assert_eq!(code.matches("Event::unavailable(").count(), events - enabled);
        write(&format!("src/{release}.rs"), &code);
    }
    write("src/lib.rs", LIB);
    let manifest = fs::read_to_string(workspace.join("Cargo.toml")).unwrap();
    let lints = &manifest[manifest.find("[workspace.lints.rust]").unwrap()..manifest.find("# Tests run").unwrap()];
    write(
        "Cargo.toml",
        &format!(
            "[package]\nname = \"codegen-qemu\"\nedition = \"2024\"\n\n[dependencies]\nsimpletrace-recorder = {{ path = {:?} }}\n\n\
             [lints]\nworkspace = true\n\n[workspace]\n\n{lints}",
            workspace.join("recorder").canonicalize().unwrap()
        ),
    );
    // The same versions of all that the recorder needs, which are here already.
    fs::copy(workspace.join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();

    let run = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()))
        .args(["check", "--offline", "--quiet", "--jobs=2"])
        .current_dir(&folder)
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .env_remove("RUSTFLAGS")
        .env("CARGO_ENCODED_RUSTFLAGS", "-Dwarnings")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && said.is_empty(), "{}", said.chars().take(10_000).collect::<String>());
}
