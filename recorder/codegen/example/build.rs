//! Generates `trace.rs` from the groups `trace-events` and `tests/trace-events`.

fn main() -> Result<(), simpletrace_codegen::Error> {
    simpletrace_codegen::Codegen::new().file("trace-events").rust("trace.rs")?;
    simpletrace_codegen::Codegen::new().file("tests/trace-events").rust("every_type.rs")
}
