//! Generates the functions of `trace-events`; builds the events that LTTng-UST is measured with, where the feature `rivals` is on and LTTng-UST's
//! headers are there.

fn main() -> Result<(), simpletrace_codegen::Error> {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "rivals")]
    lttng::build();
    simpletrace_codegen::Codegen::new().file("trace-events").rust("trace.rs")
}

#[cfg(feature = "rivals")]
mod lttng {
    use std::env;
    use std::path::PathBuf;
    use std::process::Command;

    /// Names the built library in `SIMPLETRACE_BENCH_LTTNG`; without LTTng-UST there is no such variable.
    pub(super) fn build() {
        println!("cargo::rerun-if-changed=lttng");
        let found = Command::new("pkg-config").args(["--cflags", "--libs", "lttng-ust >= 2.13"]).output();
        let Some(flags) = found.ok().filter(|output| output.status.success()) else {
            // A file that never is there: look again at the next build.
            println!("cargo::rerun-if-changed=lttng/not-found");
            return;
        };
        let flags = String::from_utf8_lossy(&flags.stdout).into_owned();
        // Set by cargo for every build script.
        let library = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("simpletrace_bench_lttng.so");
        let compiler = cc::Build::new().pic(true).opt_level(2).include("lttng").get_compiler();
        let status = compiler
            .to_command()
            .args(["-shared", "lttng/loops.c", "-o"])
            .arg(&library)
            .args(flags.split_whitespace())
            .status();
        assert!(
            status.as_ref().is_ok_and(std::process::ExitStatus::success),
            "lttng/loops.c does not compile: {status:?}; without LTTng-UST's headers this builds too"
        );
        println!("cargo::rustc-env=SIMPLETRACE_BENCH_LTTNG={}", library.display());
    }
}
