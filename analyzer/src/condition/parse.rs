//! The language of `-w`: from text to what was meant, with the places of all names and literals.

use std::ops::Range;

use simpletrace_format::events::Diagnostic;

/// A place in the text, in bytes.
pub(super) type Span = Range<usize>;

/// Parentheses and `!` within each other; nobody writes as many, and each takes room on the stack.
const MAX_DEPTH: usize = 100;

/// What is wrong with a filter, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) at: Span,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl Fault {
    pub(super) fn new(at: Span, message: impl Into<String>) -> Self {
        Self { at, message: message.into(), help: None }
    }

    pub(super) fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// As it is told, with the line and a mark under the place.
    pub(super) fn show(&self, source: &str) -> String {
        let fault = Diagnostic::error(source.as_bytes(), self.at.clone(), self.message.as_str(), self.help.clone());
        fault.with_source("-w", source.as_bytes()).to_string()
    }
}

/// A filter as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parsed {
    /// The names and patterns of the events that it is about; all, if there are none.
    pub(super) events: Vec<Name>,
    pub(super) expression: Expression,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) text: String,
    pub(super) at: Span,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expression {
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    Test(Test),
}

/// What is asked of one argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Test {
    pub(super) name: Name,
    pub(super) what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    /// Whether it is true.
    Is,
    Compare(Op, Span, Literal),
    /// Whether any of these bits is set.
    Bits(Span, Literal),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Like,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Literal {
    pub(super) value: LiteralValue,
    pub(super) at: Span,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LiteralValue {
    /// A number or a time, which only the type of the argument tells.
    Number(String),
    Text(Vec<u8>),
    Bool(bool),
}

impl Op {
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::Unequal => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Like => "=~",
        }
    }

    /// Whether it is of use for what has no order.
    pub(super) const fn is_equality(self) -> bool {
        matches!(self, Self::Equal | Self::Unequal)
    }
}

impl Expression {
    /// Calls `visit` with all tests, in their order.
    pub(super) fn for_each_test<'a>(&'a self, visit: &mut impl FnMut(&'a Test)) {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().for_each(|part| part.for_each_test(visit)),
            Self::Not(part) => part.for_each_test(visit),
            Self::Test(test) => visit(test),
        }
    }
}

/// Reads a filter.
pub(super) fn parse(source: &str) -> Result<Parsed, Fault> {
    let tokens = tokens(source)?;
    let prefix = tokens.iter().position(|(token, _)| *token == Token::Symbol(":"));
    let mut parser = Parser { source, tokens, at: 0, depth: 0 };
    let events = if prefix.is_some() { parser.events()? } else { Vec::new() };
    let expression = parser.any()?;
    match parser.peek() {
        Token::End => Ok(Parsed { events, expression }),
        Token::Symbol(")") => Err(Fault::new(parser.span(), "no parenthesis is open here")),
        _ => Err(parser.expected_end("&& or ||")),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word,
    Number,
    Text(Vec<u8>),
    Symbol(&'static str),
    End,
}

/// The longer ones first.
const SYMBOLS: [&str; 16] = ["&&", "||", "==", "!=", "<=", ">=", "=~", "<", ">", "!", "&", "(", ")", "-", ":", ","];

/// Symbols that other languages have, and what is meant.
const FOREIGN: [(&str, &str); 4] =
    [("=", "write == or =~"), ("|", "write ||"), ("~", "write =~"), ("'", "strings stand in double quotes")];

fn tokens(source: &str) -> Result<Vec<(Token, Span)>, Fault> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = source[at..].chars().next() {
        let rest = &source[at..];
        let run = |is_part: fn(char) -> bool| rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (token, length) = if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        } else if is_word(first) && !first.is_ascii_digit() {
            (Token::Word, run(is_word))
        } else if first.is_ascii_digit() || matches!(first, '.' | '@') {
            (Token::Number, 1 + rest[1..].find(|c| !is_number(c)).unwrap_or(rest.len() - 1))
        } else if first == '"' {
            let (text, length) = text(source, at)?;
            (Token::Text(text), length)
        } else if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            (Token::Symbol(symbol), symbol.len())
        } else {
            let fault = Fault::new(at..at + first.len_utf8(), format!("{first:?} means nothing here"));
            let meant = FOREIGN.iter().find(|(symbol, _)| rest.starts_with(symbol));
            return Err(match meant {
                Some((_, help)) => fault.help(*help),
                None => fault,
            });
        };
        tokens.push((token, at..at + length));
        at += length;
    }
    tokens.push((Token::End, source.len()..source.len()));
    Ok(tokens)
}

/// Names and patterns of events and arguments.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() && !matches!(c, 'µ' | 'μ') || matches!(c, '_' | '*' | '?')
}

/// Numbers and times, and whatever is stuck to them.
fn is_number(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.')
}

/// Reads the string that begins at `start`; returns its bytes, and how many it has in the source. Escapes are those that `decode` prints.
fn text(source: &str, start: usize) -> Result<(Vec<u8>, usize), Fault> {
    let mut bytes = Vec::new();
    let mut at = start + 1;
    while let Some(c) = source[at..].chars().next() {
        match c {
            '"' => return Ok((bytes, at + 1 - start)),
            '\\' => {
                let (escaped, length) = escaped(&source[at..]).ok_or_else(|| {
                    let end = source[at + 1..].chars().next().map_or(1, |c| 1 + c.len_utf8());
                    Fault::new(at..at + end, "this is no escape").help(r#"there are \" \\ \n \t \r \xNN and \u{N}"#)
                })?;
                bytes.extend(escaped);
                at += length;
            }
            c => {
                bytes.extend(c.encode_utf8(&mut [0; 4]).bytes());
                at += c.len_utf8();
            }
        }
    }
    Err(Fault::new(start..source.len(), "this string has no end").help("write a \" behind it"))
}

/// What an escape at the front stands for, and how long it is.
fn escaped(text: &str) -> Option<(Vec<u8>, usize)> {
    let rest = text.get(1..)?;
    let byte = |byte: u8| Some((vec![byte], 2));
    match rest.chars().next()? {
        '"' => byte(b'"'),
        '\\' => byte(b'\\'),
        'n' => byte(b'\n'),
        't' => byte(b'\t'),
        'r' => byte(b'\r'),
        'x' => {
            let digits = rest.get(1..3).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
            Some((vec![u8::from_str_radix(digits, 16).ok()?], 4))
        }
        'u' => {
            let digits = rest.get(1..)?.strip_prefix('{')?.split_once('}')?.0;
            let hex = digits.len() <= 6 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            let c = char::from_u32(u32::from_str_radix(digits, 16).ok().filter(|_| hex)?)?;
            Some((c.to_string().into_bytes(), digits.len() + 4))
        }
        _ => None,
    }
}

struct Parser<'a> {
    source: &'a str,
    tokens: Vec<(Token, Span)>,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.at].0
    }

    fn span(&self) -> Span {
        self.tokens[self.at].1.clone()
    }

    /// The text of the token; empty at the end.
    fn text(&self) -> &str {
        &self.source[self.span()]
    }

    /// Goes on, unless at the end; returns where the token was.
    fn next(&mut self) -> Span {
        let span = self.span();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        span
    }

    fn takes(&mut self, symbol: &'static str) -> Option<Span> {
        (*self.peek() == Token::Symbol(symbol)).then(|| self.next())
    }

    fn expected(&self, what: &str) -> Fault {
        let found = match self.peek() {
            Token::End => "the filter ends".to_owned(),
            Token::Text(_) => "there is a string".to_owned(),
            _ => format!("there is {:?}", self.text()),
        };
        Fault::new(self.span(), format!("{what} should stand here, and {found}"))
    }

    /// As [`expected`](Self::expected), behind a test.
    fn expected_end(&self, what: &str) -> Fault {
        let before = self.tokens[..self.at]
            .iter()
            .rev()
            .find(|(token, _)| matches!(token, Token::Symbol(symbol) if *symbol != ")"));
        match (before, self.peek()) {
            (Some((Token::Symbol("&"), _)), Token::Symbol(symbol)) if !matches!(*symbol, "(" | ")") => {
                Fault::new(self.span(), "ARG & BITS is true or false, and no number to compare")
                    .help("write ARG & 0x2 && !(ARG & 0x4)")
            }
            _ => self.expected(what),
        }
    }

    fn events(&mut self) -> Result<Vec<Name>, Fault> {
        let mut events = Vec::new();
        loop {
            if *self.peek() != Token::Word {
                return Err(self.expected("the name of an event"));
            }
            events.push(self.name());
            if self.takes(":").is_some() {
                return Ok(events);
            }
            if self.takes(",").is_none() {
                return Err(self.expected("a comma or a colon"));
            }
        }
    }

    fn name(&mut self) -> Name {
        let text = self.text().to_owned();
        Name { text, at: self.next() }
    }

    fn any(&mut self) -> Result<Expression, Fault> {
        self.parts("||", Self::all, Expression::Any)
    }

    fn all(&mut self) -> Result<Expression, Fault> {
        self.parts("&&", Self::one, Expression::All)
    }

    fn parts(
        &mut self,
        symbol: &'static str,
        part: fn(&mut Self) -> Result<Expression, Fault>,
        together: fn(Vec<Expression>) -> Expression,
    ) -> Result<Expression, Fault> {
        let first = part(self)?;
        if *self.peek() != Token::Symbol(symbol) {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.takes(symbol).is_some() {
            parts.push(part(self)?);
        }
        Ok(together(parts))
    }

    fn one(&mut self) -> Result<Expression, Fault> {
        if !matches!(self.peek(), Token::Symbol("!" | "(")) {
            return Ok(Expression::Test(self.test()?));
        }
        let start = self.span();
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Fault::new(start, format!("more than {MAX_DEPTH} parentheses and ! within each other")));
        }
        let expression = if let Some(at) = self.takes("!") {
            self.not(at)?
        } else {
            let open = self.next();
            let inner = self.any()?;
            if self.takes(")").is_none() {
                return Err(match self.peek() {
                    Token::End => Fault::new(open, "this parenthesis is not closed"),
                    _ => self.expected_end("&&, || or )"),
                });
            }
            inner
        };
        self.depth -= 1;
        Ok(expression)
    }

    fn not(&mut self, at: Span) -> Result<Expression, Fault> {
        let is_test = *self.peek() == Token::Word;
        let inner = self.one()?;
        match &inner {
            // In C it would be the argument that is turned round, here some would expect the comparison.
            Expression::Test(Test { what: What::Compare(..) | What::Bits(..), .. }) if is_test => {
                Err(Fault::new(at, "it is not plain what this ! belongs to").help("write !(ARG == VALUE)"))
            }
            _ => Ok(Expression::Not(Box::new(inner))),
        }
    }

    fn test(&mut self) -> Result<Test, Fault> {
        match self.peek() {
            Token::Word if matches!(self.text(), "true" | "false") => return Err(self.literal_first()),
            Token::Word if self.text().contains(['*', '?']) => {
                return Err(Fault::new(self.span(), "patterns are for events, in front of a colon, and for strings")
                    .help("write EVENT*: ARG == VALUE or ARG =~ \"PATTERN\""));
            }
            Token::Word => {}
            Token::Number | Token::Text(_) | Token::Symbol("-") => return Err(self.literal_first()),
            _ => return Err(self.expected("the name of an argument")),
        }
        let name = self.name();
        let op = match self.peek() {
            Token::Symbol("==") => Op::Equal,
            Token::Symbol("!=") => Op::Unequal,
            Token::Symbol("<") => Op::Less,
            Token::Symbol("<=") => Op::LessOrEqual,
            Token::Symbol(">") => Op::Greater,
            Token::Symbol(">=") => Op::GreaterOrEqual,
            Token::Symbol("=~") => Op::Like,
            Token::Symbol("&") => {
                let at = self.next();
                return Ok(Test { name, what: What::Bits(at, self.literal()?) });
            }
            _ => return Ok(Test { name, what: What::Is }),
        };
        let at = self.next();
        Ok(Test { name, what: What::Compare(op, at, self.literal()?) })
    }

    fn literal_first(&self) -> Fault {
        Fault::new(self.span(), "the name of an argument should stand here")
            .help("write ARG == VALUE, not VALUE == ARG")
    }

    fn literal(&mut self) -> Result<Literal, Fault> {
        let minus = self.takes("-");
        let value = match self.peek() {
            Token::Number => LiteralValue::Number(format!("{}{}", if minus.is_some() { "-" } else { "" }, self.text())),
            _ if minus.is_some() => return Err(self.expected("a number")),
            Token::Text(bytes) => LiteralValue::Text(bytes.clone()),
            Token::Word if self.text() == "true" => LiteralValue::Bool(true),
            Token::Word if self.text() == "false" => LiteralValue::Bool(false),
            Token::Word => {
                return Err(Fault::new(self.span(), format!("{:?} is no value", self.text()))
                    .help("arguments are compared with numbers, times, \"strings\", true and false"));
            }
            _ => return Err(self.expected("a value")),
        };
        let at = self.next();
        Ok(Literal { value, at: minus.map_or(at.start, |minus| minus.start)..at.end })
    }
}
