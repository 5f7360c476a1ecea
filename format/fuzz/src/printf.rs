use arbitrary::{Arbitrary, Unstructured};
use simpletrace_format::Value;
use simpletrace_format::events::{ArgType, Format, MAX_FIELD, Mismatch, Width};

use crate::arg::Arg;

/// A zero byte ends the format; what follows it makes the arguments. So a corpus file begins with readable text.
const END_OF_FORMAT: u8 = 0;

/// Renders arguments with any format: places lie within the text, the output only grows and is as bounded as promised, and
/// arguments that no conversion takes change nothing.
pub fn printf(data: &[u8]) {
    let end = data.iter().position(|&byte| byte == END_OF_FORMAT).unwrap_or(data.len());
    let (source, rest) = data.split_at(end);
    let Ok(source) = std::str::from_utf8(source) else {
        return;
    };
    let args =
        Vec::<Arg<'_>>::arbitrary_take_rest(Unstructured::new(rest.get(1..).unwrap_or_default())).unwrap_or_default();
    let args: Vec<Value<'_>> = args.into_iter().map(Arg::value).collect();

    let format = match Format::compile(source) {
        Ok(format) => format,
        Err(error) => {
            assert!(source.get(error.span()).is_some(), "{error:?}");
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    for conversion in format.conversions() {
        assert!(source.get(conversion.span.clone()).is_some(), "{conversion:?}");
    }

    let mut out = b"before".to_vec();
    format.render(args.iter().copied(), &mut out);
    let text = out.strip_prefix(b"before").expect("the text to be appended");
    // A macro of the format becomes at most as long a conversion.
    let strings: usize = args.iter().map(|arg| if let Value::String(s) = arg { s.len() } else { 0 }).sum();
    assert!(text.len() <= source.len() + strings + args.len() * MAX_FIELD, "{} bytes", text.len());

    let taken = args.len().min(format.conversions().len());
    let mut again = Vec::new();
    format.render(args[..taken].iter().copied(), &mut again);
    assert_eq!(text, again, "a surplus argument was printed");

    let types = args.iter().map(|arg| {
        Some(match arg {
            Value::Signed(_) => ArgType::Signed(Width::W64),
            Value::Unsigned(_) => ArgType::Unsigned(Width::W32),
            Value::Bool(_) => ArgType::Bool,
            Value::Pointer(_) => ArgType::Pointer,
            Value::String(_) => ArgType::String,
        })
    });
    let mismatches = format.mismatches(types);
    assert_eq!(
        mismatches.iter().any(|mismatch| !matches!(mismatch, Mismatch::Type(_))),
        args.len() != format.conversions().len()
    );
}
