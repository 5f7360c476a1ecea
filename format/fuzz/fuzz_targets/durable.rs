#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| simpletrace_format_fuzz::durable(data));
