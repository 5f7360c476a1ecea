//! Text as the original prints it: `NAME DELTA pid=PID ARG=0x... ARG=b'...'`.

use std::io::{self, Write};

use pyo3::prelude::*;
use simpletrace_format::events::ArgType;

use crate::declarations::Declared;
use crate::sink::{Raw, Taken, Taking, Wanted};
use crate::source::os_error;

/// How much text is gathered before it is written, in bytes.
const BLOCK_BYTES: usize = 1 << 16;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Where text goes.
pub(crate) enum Out {
    /// Descriptor 1.
    Stdout,
    /// The method `write` of what took the place of `sys.stdout`.
    Write(Py<PyAny>),
}

pub(crate) struct Text {
    out: Out,
    block: Vec<u8>,
    kinds: Vec<Kind>,
    last_ns: Option<u64>,
}

struct Kind {
    name: Box<[u8]>,
    types: Box<[ArgType]>,
    /// What stands before each argument.
    before: Vec<Box<[u8]>>,
}

impl Text {
    pub(crate) fn new(out: Out) -> Self {
        Self { out, block: Vec::with_capacity(2 * BLOCK_BYTES), kinds: Vec::new(), last_ns: None }
    }

    pub(crate) fn resolve(&mut self, declared: &Declared) -> Wanted {
        let kind = self.kinds.len() as u32;
        let types = declared.types.clone();
        let before = declared.decl.args.iter().zip(&types).enumerate().map(|(at, (arg, ty))| {
            let blank = if at == 0 { "" } else { " " };
            let prefix = if ty.is_string() { "" } else { "0x" };
            format!("{blank}{}={prefix}", arg.name).into_bytes().into()
        });
        let before = before.collect();
        self.kinds.push(Kind { name: format!("{} ", declared.decl.name).into_bytes().into(), types, before });
        Wanted::Yes(kind)
    }

    pub(crate) fn take(&mut self, taking: &Taking<'_>) -> PyResult<Taken> {
        let Self { block, kinds, .. } = self;
        let kind = &kinds[taking.kind as usize];
        let begin = block.len();
        block.extend_from_slice(&kind.name);
        put_delta(taking.timestamp_ns, self.last_ns.unwrap_or(taking.timestamp_ns), block);
        block.extend_from_slice(b" pid=");
        put_decimal(taking.pid.into(), block);
        block.push(b' ');
        let mut args = taking.payload.raw(&kind.types);
        for (raw, before) in (&mut args).zip(&kind.before) {
            match raw {
                Some(Raw::Word(word)) => {
                    block.extend_from_slice(before);
                    put_hex(word, block);
                }
                Some(Raw::Text(text)) => {
                    block.extend_from_slice(before);
                    put_bytes(text, block);
                }
                None => {
                    block.truncate(begin);
                    return Ok(Taken::Short);
                }
            }
        }
        let taken = if args.is_cut { Taken::Cut } else { Taken::Whole };
        if args.is_cut && taking.strict {
            block.truncate(begin);
            return Ok(taken);
        }
        block.push(b'\n');
        self.last_ns = Some(taking.timestamp_ns);
        if block.len() >= BLOCK_BYTES {
            self.flush()?;
        }
        Ok(taken)
    }

    /// Writes what there is.
    pub(crate) fn flush(&mut self) -> PyResult<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let block = std::mem::take(&mut self.block);
        match &self.out {
            Out::Stdout => write_all(&block)?,
            Out::Write(write) => Python::attach(|py| {
                let text = String::from_utf8_lossy(&block);
                write.bind(py).call1((text,)).map(drop)
            })?,
        }
        self.block = block;
        self.block.clear();
        Ok(())
    }
}

fn write_all(mut block: &[u8]) -> PyResult<()> {
    let mut stdout = io::stdout().lock();
    while !block.is_empty() {
        match stdout.write(block) {
            Ok(0) => return Err(os_error(io::ErrorKind::WriteZero.into())),
            Ok(count) => block = &block[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Python::attach(|py| py.check_signals())?,
            Err(error) => return Err(os_error(error)),
        }
    }
    // Nothing is left to be flushed but what an interrupted line left.
    stdout.flush().map_err(os_error)
}

fn put_decimal(mut number: u64, block: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    block.extend_from_slice(&digits[at..]);
}

fn put_hex(word: u64, block: &mut Vec<u8>) {
    let digits = (64 - (word | 1).leading_zeros()).div_ceil(4);
    for digit in (0..digits).rev() {
        block.push(HEX[(word >> (4 * digit)) as usize & 15]);
    }
}

/// The time between two records, in microseconds with three decimals.
fn put_delta(timestamp_ns: u64, last_ns: u64, block: &mut Vec<u8>) {
    // Up to here the nearest double of the quotient lies less than half a thousandth from it, so that Python's rounding to three
    // decimals gives the exact digits: doubles below 2^43 are 2^-10 apart.
    const EXACT_BELOW: u64 = (1 << 43) * 1000;

    let size_ns = timestamp_ns.abs_diff(last_ns);
    if timestamp_ns < last_ns {
        block.push(b'-');
    }
    if size_ns < EXACT_BELOW {
        put_decimal(size_ns / 1000, block);
        let rest = size_ns % 1000;
        block.extend([b'.', b'0' + (rest / 100) as u8, b'0' + (rest / 10 % 10) as u8, b'0' + (rest % 10) as u8]);
    } else {
        // Python divides integers with one correct rounding, as reading a decimal number does.
        let quotient: f64 = format!("{}.{:03}", size_ns / 1000, size_ns % 1000).parse().unwrap_or(f64::NAN);
        block.extend(format!("{quotient:.3}").into_bytes());
    }
}

/// Writes bytes as Python's `repr` does.
fn put_bytes(bytes: &[u8], block: &mut Vec<u8>) {
    let quote = if bytes.contains(&b'\'') && !bytes.contains(&b'"') { b'"' } else { b'\'' };
    block.extend([b'b', quote]);
    let is_plain = |&byte: &u8| matches!(byte, b' '..=b'~') && byte != b'\\' && byte != quote;
    if bytes.iter().all(is_plain) {
        block.extend_from_slice(bytes);
    } else {
        for &byte in bytes {
            match byte {
                b'\t' => block.extend(br"\t"),
                b'\n' => block.extend(br"\n"),
                b'\r' => block.extend(br"\r"),
                byte if is_plain(&byte) => block.push(byte),
                b'\\' | b'\'' | b'"' => block.extend([b'\\', byte]),
                byte => block.extend([b'\\', b'x', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]),
            }
        }
    }
    block.push(quote);
}
