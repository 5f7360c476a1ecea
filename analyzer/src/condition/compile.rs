//! Types: whether a filter suits the arguments of an event, and what it comes to for its records.

use std::borrow::Cow;

use simpletrace_format::events::{ArgDecl, ArgType, Width};

use super::parse::{Expression, Fault, Literal, LiteralValue, Op, Test, What};
use super::predicate::{Arg, Node};
use crate::filter::matches_runs;
use crate::time::Instant;

/// What is known of every record, whatever its arguments are called.
pub(super) const ALWAYS: [&str; 3] = ["time", "pid", "event"];

/// An event as filters see it.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) name: &'a str,
    pub(super) args: &'a [ArgDecl],
    /// Whether the file has the text of strings.
    pub(super) has_text: bool,
}

/// Why a filter does not suit an event.
pub(super) enum Unfit<'a> {
    /// It has no argument of this name.
    Lacks(&'a Test),
    /// What it has is of another type.
    Differs(Fault),
}

impl Subject<'_> {
    fn find(&self, name: &str) -> Option<usize> {
        self.args.iter().position(|arg| arg.name == name)
    }

    pub(super) fn compile<'e>(&self, expression: &'e Expression) -> Result<Node, Unfit<'e>> {
        let mut lacking = None;
        expression.for_each_test(&mut |test| {
            let name = &*test.name.text;
            if lacking.is_none() && self.find(name).is_none() && !ALWAYS.contains(&name) {
                lacking = Some(test);
            }
        });
        match lacking {
            Some(test) => Err(Unfit::Lacks(test)),
            None => self.node(expression).map_err(Unfit::Differs),
        }
    }

    fn node(&self, expression: &Expression) -> Result<Node, Fault> {
        let nodes = |parts: &[Expression]| parts.iter().map(|part| self.node(part)).collect::<Result<Vec<_>, _>>();
        Ok(match expression {
            Expression::All(parts) => Node::all(nodes(parts)?),
            Expression::Any(parts) => Node::any(nodes(parts)?),
            Expression::Not(part) => Node::not(self.node(part)?),
            Expression::Test(test) => self.test(test)?,
        })
    }

    fn test(&self, test: &Test) -> Result<Node, Fault> {
        // As everywhere, an argument goes before what is known of every record.
        match (self.find(&test.name.text), &*test.name.text) {
            (Some(index), _) => self.arg(test, index),
            (None, "time") => time(test),
            (None, "pid") => {
                let typed = Typed { test, what: Cow::Borrowed("pid"), ty: ArgType::Unsigned(Width::W32) };
                let (op, literal) = typed.compared()?;
                Ok(Node::Pid(op, typed.number(op, literal)? as u32))
            }
            (None, _) => {
                let typed = Typed { test, what: Cow::Borrowed("event"), ty: ArgType::String };
                let (op, literal) = typed.compared()?;
                let (text, name) = (typed.text(op, literal)?, self.name.as_bytes());
                Ok(Node::Constant(match op {
                    Op::Like => matches_runs(text, name),
                    op => (op == Op::Equal) == (text == name),
                }))
            }
        }
    }

    fn arg(&self, test: &Test, index: usize) -> Result<Node, Fault> {
        let ArgDecl { name, c_type, ty, .. } = &self.args[index];
        let what = Cow::Owned(format!("{name} of {} is {c_type}", self.name));
        let typed = Typed { test, what, ty: *ty };
        let arg = Arg::new(self.args, index, self.has_text);
        if ty.is_string() && !self.has_text {
            let why = format!("{}, of which a version 0 trace has only the address", typed.what);
            return Err(Fault::new(test.name.at.clone(), why));
        }
        if let What::Bits(_, literal) = &test.what {
            return Ok(Node::Bits { arg, bits: typed.bits(literal)? });
        }
        if let (What::Is, ArgType::Bool) = (&test.what, ty) {
            return Ok(Node::Bool { arg, is: true });
        }
        let (op, literal) = typed.compared()?;
        Ok(match ty {
            ArgType::String => Node::Text { arg, op, literal: typed.text(op, literal)?.to_vec() },
            ArgType::Bool => Node::Bool { arg, is: typed.bool(op, literal)? == (op == Op::Equal) },
            _ => Node::word(arg, op, typed.number(op, literal)?),
        })
    }
}

fn time(test: &Test) -> Result<Node, Fault> {
    // No argument has this type, but it is what messages say.
    let typed = Typed { test, what: Cow::Borrowed("time"), ty: ArgType::Unsigned(Width::W64) };
    let (op, literal) = typed.compared()?;
    if op == Op::Like {
        return Err(typed.patterns_are_for_strings());
    }
    let LiteralValue::Number(text) = &literal.value else {
        return Err(typed.unlike(literal).help("write a time, such as 5ms or @1234.5s"));
    };
    text.parse().map(|instant: Instant| Node::Time(op, instant)).map_err(|why| Fault::new(literal.at.clone(), why))
}

/// A test, and the type that it is held against.
struct Typed<'a> {
    test: &'a Test,
    /// For messages: which argument of which event, and how its type is spelled.
    what: Cow<'static, str>,
    ty: ArgType,
}

impl<'a> Typed<'a> {
    fn fault(&self, at: &std::ops::Range<usize>, why: &str) -> Fault {
        Fault::new(at.clone(), format!("{}{why}", self.what))
    }

    /// What it is compared with, and how.
    fn compared(&self) -> Result<(Op, &'a Literal), Fault> {
        match &self.test.what {
            What::Compare(op, _, literal) => Ok((*op, literal)),
            What::Is => {
                let name = &self.test.name;
                let literal = match self.ty {
                    ArgType::String => "\"\"",
                    _ => "0",
                };
                Err(self
                    .fault(&name.at, ", which is not true or false by itself")
                    .help(format!("write {} != {literal}", name.text)))
            }
            What::Bits(at, _) => Err(self.fault(at, ", which has no bits to test")),
        }
    }

    fn op_at(&self) -> &std::ops::Range<usize> {
        match &self.test.what {
            What::Compare(_, at, _) | What::Bits(at, _) => at,
            What::Is => &self.test.name.at,
        }
    }

    fn patterns_are_for_strings(&self) -> Fault {
        self.fault(self.op_at(), ", and =~ is for strings")
    }

    fn has_no_order(&self, op: Op) -> Fault {
        self.fault(self.op_at(), &format!(", and {} is for numbers", op.text()))
    }

    fn unlike(&self, literal: &Literal) -> Fault {
        let kind = match literal.value {
            LiteralValue::Number(_) => "a number",
            LiteralValue::Text(_) => "a string",
            LiteralValue::Bool(_) => "true or false",
        };
        self.fault(&literal.at, &format!(", and cannot be compared with {kind}"))
    }

    fn text(&self, op: Op, literal: &'a Literal) -> Result<&'a [u8], Fault> {
        match &literal.value {
            LiteralValue::Text(text) if op.is_equality() || op == Op::Like => Ok(text),
            LiteralValue::Text(_) => Err(self
                .fault(self.op_at(), &format!(", and {} is for numbers", op.text()))
                .help("strings have ==, != and =~")),
            LiteralValue::Number(text) => Err(self.unlike(literal).help(format!("write \"{text}\""))),
            LiteralValue::Bool(_) => Err(self.unlike(literal)),
        }
    }

    fn bool(&self, op: Op, literal: &Literal) -> Result<bool, Fault> {
        match literal.value {
            LiteralValue::Bool(_) if op == Op::Like => Err(self.patterns_are_for_strings()),
            LiteralValue::Bool(is) if op.is_equality() => Ok(is),
            LiteralValue::Number(_) if !op.is_equality() => Err(self.has_no_order(op).help("write true or false")),
            LiteralValue::Bool(_) => Err(self.has_no_order(op)),
            LiteralValue::Number(_) | LiteralValue::Text(_) => Err(self.unlike(literal).help("write true or false")),
        }
    }

    /// The word that a literal is.
    fn number(&self, op: Op, literal: &Literal) -> Result<u64, Fault> {
        if op == Op::Like {
            return Err(self.patterns_are_for_strings());
        }
        let LiteralValue::Number(text) = &literal.value else { return Err(self.unlike(literal)) };
        let number = integer(text).map_err(|why| Fault { at: literal.at.clone(), ..why })?;
        let (least, most) = self.range();
        let Some(number) = number.filter(|number| (least..=most).contains(number)) else {
            return Err(self.out_of_range(literal, text, least, most));
        };
        if self.ty == ArgType::Pointer && number != 0 && !text.starts_with("0x") {
            return Err(self.fault(&literal.at, ", an address").help(format!("write {number:#x} in hexadecimal")));
        }
        Ok(number as u64)
    }

    fn bits(&self, literal: &Literal) -> Result<u64, Fault> {
        if matches!(self.ty, ArgType::Bool | ArgType::String) {
            return Err(self.fault(self.op_at(), ", which has no bits to test"));
        }
        let LiteralValue::Number(text) = &literal.value else {
            return Err(Fault::new(literal.at.clone(), "bits are a number, such as 0x4"));
        };
        let bits = integer(text).map_err(|why| Fault { at: literal.at.clone(), ..why })?;
        let most = (1 << width(self.ty)) - 1;
        match bits {
            Some(bits) if (1..=most).contains(&bits) => Ok(bits as u64),
            Some(0) => Err(Fault::new(literal.at.clone(), "0 has no bits, so this is never true")),
            _ => Err(self.fault(&literal.at, &format!(", and {text} is not within its {} bits", width(self.ty)))),
        }
    }

    /// What its type can hold.
    fn range(&self) -> (i128, i128) {
        let values = 1_i128 << width(self.ty);
        match self.ty {
            ArgType::Signed(_) => (-values / 2, values / 2 - 1),
            // Its sign is that of the traced host.
            ArgType::Char => (-values / 2, values - 1),
            _ => (0, values - 1),
        }
    }

    fn out_of_range(&self, literal: &Literal, text: &str, least: i128, most: i128) -> Fault {
        let fault = match self.ty {
            ArgType::Pointer => self.fault(&literal.at, &format!(", and {text} is no address of 64 bits")),
            _ => self.fault(&literal.at, &format!(", from {least} to {most}, and {text} is not")),
        };
        // As tools that do not know types print it.
        let negative = integer(text).ok().flatten().map(|number| number - (1_i128 << width(self.ty)));
        match negative {
            Some(negative) if (least..0).contains(&negative) => fault.help(format!("write {negative}")),
            _ => fault,
        }
    }
}

const fn width(ty: ArgType) -> u32 {
    match ty {
        ArgType::Signed(width) | ArgType::Unsigned(width) => match width {
            Width::W8 => 8,
            Width::W16 => 16,
            Width::W32 => 32,
            Width::W64 | Width::Host => 64,
        },
        ArgType::Char => 8,
        ArgType::Bool => 1,
        ArgType::Pointer | ArgType::String => 64,
    }
}

/// Reads an integer, decimal or hexadecimal; `None` if it has no room in any type.
fn integer(text: &str) -> Result<Option<i128>, Fault> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let (base, digits) =
        digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")).map_or((10, digits), |digits| (16, digits));
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(base)) {
        let is_time = text.parse::<Instant>().is_ok();
        let fault = Fault::new(0..0, format!("{text} is not a whole number"));
        return Err(if is_time {
            fault.help("`time` is compared with times, arguments with numbers")
        } else {
            fault.help("write digits, or hexadecimal digits behind 0x")
        });
    }
    if base == 10 && digits.len() > 1 && digits.starts_with('0') {
        return Err(Fault::new(0..0, "numbers with a 0 in front are octal in C, and there are none here")
            .help("leave out the 0, or write 0x for hexadecimal"));
    }
    Ok(i128::from_str_radix(digits, base).ok().map(|number| sign * number))
}
