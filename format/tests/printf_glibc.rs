//! The printf renderer against the C library's own printf, byte for byte.
//!
//! The reference is compiled at test time with the system's `cc`; without one, or where its library is not glibc on a 64-bit
//! host, the test says so and is skipped.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use simpletrace_format::Value;
use simpletrace_format::events::Format;

/// Reads cases (`FORMAT<tab>ARG<tab>ARG<tab>ARG<newline>`, an argument is `i` and a number or `s` and a text) and prints for
/// each the length of what printf makes of it, a newline, and that. All arguments are passed as 64 bits wide, as the log
/// backend's were when they were recorded; printf takes the part that it looks at.
const REFERENCE: &str = r#"
#include <features.h>
#if !defined(__GLIBC__) || !defined(__LP64__)
#error "not glibc on a 64-bit host"
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
    static char line[4096], text[65536];
    while (fgets(line, sizeof line, stdin)) {
        long args[3] = { 0, 0, 0 };
        char *format, *field, *rest = line;
        int i, length;
        line[strcspn(line, "\n")] = 0;
        format = strsep(&rest, "\t");
        for (i = 0; i < 3 && (field = strsep(&rest, "\t")); i++)
            args[i] = field[0] == 's' ? (long)(field + 1) : (long)strtoull(field + 1, NULL, 10);
        length = snprintf(text, sizeof text, format, args[0], args[1], args[2]);
        printf("%d\n", length);
        fwrite(text, 1, length, stdout);
    }
    return 0;
}
"#;

fn build_reference() -> Option<PathBuf> {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let source = directory.join("printf_reference.c");
    let program = directory.join("printf_reference");
    std::fs::write(&source, REFERENCE).expect("the target directory can be written");
    let output = Command::new("cc")
        .args(["-std=gnu99", "-O1", "-w", "-o"])
        .arg(&program)
        .arg(&source)
        .output();
    match output {
        Ok(output) if output.status.success() => Some(program),
        Ok(output) => {
            eprintln!(
                "SKIPPED: cc cannot build the reference: {}",
                String::from_utf8_lossy(&output.stderr)
            );
            None
        }
        Err(error) => {
            eprintln!("SKIPPED: no cc: {error}");
            None
        }
    }
}

/// A small generator with a fixed seed (xorshift64), so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

#[derive(Debug)]
enum Arg {
    Word(u64),
    Text(&'static str),
}

#[derive(Debug)]
struct Case {
    format: String,
    args: Vec<Arg>,
}

fn number(random: &mut Random) -> u64 {
    const EDGES: [u64; 14] = [
        0,
        1,
        7,
        8,
        0x7f,
        0x80,
        0xff,
        0x8000,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_ffff,
        i64::MAX as u64,
        i64::MIN as u64,
        u64::MAX,
    ];
    match random.below(4) {
        0 => random.pick(&EDGES),
        1 => (random.below(2000) as i64 - 1000) as u64,
        2 => random.next() >> random.below(64),
        _ => random.next(),
    }
}

fn case(random: &mut Random) -> Case {
    let mut format = String::from(random.pick(&["", "a=", "[%%] "]));
    let mut args = Vec::new();
    format.push('%');
    for _ in 0..random.below(4) {
        format.push(random.pick(&['-', '+', ' ', '#', '0', '\'']));
    }
    let mut field = |random: &mut Random, format: &mut String, dot: &str| match random.below(4) {
        0 | 1 => {}
        2 => {
            let limit = random.pick(&[80, 24, 24, 24]);
            let width = random.below(limit);
            // A leading 0 would be a flag.
            format.push_str(&if dot.is_empty() && width == 0 {
                String::new()
            } else {
                format!("{dot}{width}")
            });
        }
        _ => {
            format.push_str(&format!("{dot}*"));
            args.push(Arg::Word((random.below(50) as i64 - 20) as u64));
        }
    };
    field(random, &mut format, "");
    field(random, &mut format, ".");
    if random.below(12) == 0 && !format.contains('.') {
        format.push('.');
    }
    let conversion = random.pick(&['d', 'i', 'u', 'o', 'x', 'X', 'd', 'x', 'c', 's', 'p']);
    if !matches!(conversion, 'c' | 's' | 'p') {
        format.push_str(random.pick(&["", "", "hh", "h", "l", "ll", "j", "z", "t", "q", "L"]));
    }
    format.push(conversion);
    args.push(match conversion {
        's' => Arg::Text(random.pick(&[
            "",
            "a",
            "disk",
            "virtio-blk",
            "Gr\u{fc}\u{df}e",
            "a rather long piece of text",
        ])),
        // NUL would end C's text early for this test's framing only.
        'c' => Arg::Word(1 + random.below(255) as u64 + (random.next() << 8)),
        _ => Arg::Word(number(random)),
    });
    format.push_str(random.pick(&["", "|", " end"]));
    Case { format, args }
}

#[test]
fn every_conversion_prints_what_glibc_prints() {
    let Some(program) = build_reference() else {
        return;
    };
    let mut random = Random(0x5eed_5eed_5eed_5eed);
    let cases: Vec<Case> = (0..60_000).map(|_| case(&mut random)).collect();

    let mut input = String::new();
    for case in &cases {
        input.push_str(&case.format);
        for arg in &case.args {
            match arg {
                Arg::Word(word) => input.push_str(&format!("\ti{word}")),
                Arg::Text(text) => input.push_str(&format!("\ts{text}")),
            }
        }
        input.push('\n');
    }
    let mut child = Command::new(program)
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the reference was just built");
    let mut stdin = child.stdin.take().expect("piped");
    let feeder = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("the reference ends").stdout;
    feeder
        .join()
        .expect("no panic")
        .expect("the reference reads all its input");

    let mut rest = output.as_slice();
    for case in &cases {
        let end = rest
            .iter()
            .position(|byte| *byte == b'\n')
            .expect("a length for each case");
        let length: usize = std::str::from_utf8(&rest[..end])
            .expect("digits")
            .parse()
            .expect("printf did not fail");
        let expected = &rest[end + 1..end + 1 + length];
        rest = &rest[end + 1 + length..];

        let format = Format::compile(&format!("\"{}\"", case.format)).expect("a valid format");
        let mut text = Vec::new();
        let values = case.args.iter().map(|arg| match arg {
            Arg::Word(word) => Value::Unsigned(*word),
            Arg::Text(text) => Value::String(text.as_bytes()),
        });
        format.render(values, &mut text);
        assert_eq!(
            String::from_utf8_lossy(&text),
            String::from_utf8_lossy(expected),
            "{case:?}"
        );
        assert_eq!(text, expected, "{case:?}");
        assert_eq!(format.conversions().len(), case.args.len(), "{case:?}");
    }
    assert!(rest.is_empty(), "the reference printed more than was asked for");
}
