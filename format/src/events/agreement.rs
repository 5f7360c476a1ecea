//! Whether a declaration's format agrees with its arguments.

use std::ops::Range;

use super::decl::ArgDecl;
use super::diagnostic::shown;
use super::fault::Fault;
use super::printf::{Format, Mismatch};
use super::{ArgType, Width};

/// Reports a format that does not compile or does not agree with the arguments. `span` is the format's within the line.
pub(super) fn check(line: &str, args: &[ArgDecl], span: &Range<usize>, mut report: impl FnMut(Fault)) {
    let source = &line[span.clone()];
    let in_line = |within: Range<usize>| span.start + within.start..span.start + within.end;
    let format = match Format::compile(source) {
        Ok(format) => format,
        Err(error) => {
            return report(Fault {
                span: in_line(error.span()),
                message: error.to_string(),
                help: None,
            });
        }
    };
    // The width of an old type is a guess.
    let types = args.iter().map(|arg| match arg.ty {
        ArgType::Signed(_) | ArgType::Unsigned(_) if ArgType::from_c(&arg.c_type).is_none() => None,
        ty => Some(ty),
    });
    for mismatch in format.mismatches(types) {
        report(match mismatch {
            Mismatch::MissingArgument(index) => {
                let within = format.conversions()[index].span.clone();
                let message = format!("no argument for conversion '{}'", shown(&source[within.clone()]));
                Fault::new(
                    in_line(within),
                    message,
                    format!("the arguments are {} in number", args.len()),
                )
            }
            Mismatch::SurplusArgument(index) => {
                let message = format!("argument '{}' is not in the format", shown(&args[index].name));
                Fault::new(
                    args[index].span.clone(),
                    message,
                    format!("add '{}'", conversion_for(&args[index])),
                )
            }
            Mismatch::Type(index) => {
                let within = format.conversions()[index].span.clone();
                let (conversion, name) = (shown(&source[within.clone()]), shown(&args[index].name));
                let c_type = shown(&args[index].c_type);
                let message = format!("conversion '{conversion}' does not fit argument '{name}' of type '{c_type}'");
                Fault::new(
                    in_line(within),
                    message,
                    format!("use '{}'", conversion_for(&args[index])),
                )
            }
        });
    }
}

/// The usual conversion for an argument.
fn conversion_for(arg: &ArgDecl) -> &'static str {
    use Width::{Host, W64};
    match arg.ty {
        ArgType::String => "%s",
        ArgType::Pointer => "%p",
        ArgType::Signed(W64) => "%\"PRId64\"",
        ArgType::Unsigned(W64) => "%\"PRIu64\"",
        ArgType::Signed(Host) if arg.c_type.contains('_') => "%zd",
        ArgType::Signed(Host) => "%ld",
        ArgType::Unsigned(Host) if arg.c_type.contains('_') => "%zu",
        ArgType::Unsigned(Host) => "%lu",
        ArgType::Signed(_) | ArgType::Char | ArgType::Bool => "%d",
        ArgType::Unsigned(_) => "%u",
    }
}
