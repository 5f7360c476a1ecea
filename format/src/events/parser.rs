//! The parser of declarations: one line each, `[properties] NAME(ARGUMENTS) ["FORMAT"]`.
//!
//! What it takes apart is what tracetool's regular expression and `Arguments.build` take apart (QEMU's
//! scripts/tracetool/__init__.py; facts in docs/FORMAT.md): the same names, the same type spellings, since the layout of
//! records follows from them. It differs in saying where and why a line is refused, and in going on after it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use super::ctype::{ALLOWED_TYPES, intern, is_known_foreign, refused_word};
use super::decl::{ArgDecl, EventDecl, FormatSource, Properties, TcgHalf};
use super::diagnostic::{Diagnostics, Severity, shown};
use super::fault::{
    COMMENT_HELP, Fault, Line, comment, did_you_mean, forbidden_text, is_identifier, is_word, missing_close,
    missing_open, odd_character, text_of,
};
use super::lexer::{TokenKind, Tokens};
use super::nearest::nearest;
use super::numbering::Unusable;
use super::{ArgType, agreement, is_blank};

/// The most arguments today's tracetool accepts (since 2.10; a limit of LTTng's macros).
const MOST_ARGS: usize = 10;

/// The longest line that is taken for a declaration, in bytes; QEMU's longest has 389. It bounds what one line can make of
/// itself in memory, and in the text printed for a record.
const LONGEST_LINE_BYTES: usize = 1 << 14;

/// Whose grammar a file is held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// That of all releases since 0.14, and a little more: any C type, any number of arguments, `vcpu` and `tcg` lines,
    /// `%m` and newlines in formats, a missing last newline, blanks before `(`, unknown properties. For reading traces.
    #[default]
    Lenient,
    /// That of tracetool in QEMU 10.2: what it refuses is an error. For checking a file before a build.
    Strict,
}

/// What a file declares, and what is wrong with it.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Parsed {
    /// The declarations, in the order of the file.
    pub events: Vec<EventDecl>,
    /// Errors (lines that were not taken) and warnings.
    pub diagnostics: Diagnostics,
    /// The lines that were not taken.
    pub(super) unusable: Vec<Unusable>,
}

/// Parses the text of a trace-events file.
///
/// Any bytes may be given: nothing panics. Bytes that are not UTF-8 become U+FFFD in names and formats. Lines end as in
/// Python's text mode: `\n`, `\r\n` or a lone `\r`. Time is linear in the text. Memory is about 5 times the text for real
/// files and at most 150 times (a list of nothing but commas and `*`, in [`Mode::Lenient`]).
///
/// # Examples
///
/// ```
/// use simpletrace_format::events::{ArgType, Mode, parse};
///
/// let parsed = parse(b"# disk\nopen(const char *path, int flags) \"%s 0x%x\"\nodd(\n", Mode::Lenient);
/// assert_eq!(parsed.events[0].name, "open");
/// assert_eq!(parsed.events[0].args[0].ty, ArgType::String);
/// let error = parsed.diagnostics.iter().next().expect("the last line");
/// assert_eq!(error.to_string(), "3:5: missing ')' after the arguments");
/// ```
#[must_use]
pub fn parse(source: &[u8], mode: Mode) -> Parsed {
    let mut parser = Parser { mode, parsed: Parsed::default() };
    for line in lines(source, mode) {
        parser.line(&line, line.start + line.raw.len() < source.len());
    }
    parser.parsed
}

/// Parses one line of a file, found by [`lines`] before.
pub(super) fn parse_line(source: &[u8], range: Range<usize>, number: u32, mode: Mode) -> Parsed {
    let mut parser = Parser { mode, parsed: Parsed::default() };
    let (start, end) = (range.start, range.end);
    let raw = &source[range];
    parser.line(&Line { raw, text: text_of(raw), start, number }, end < source.len());
    parser.parsed
}

/// Takes a file apart into its lines.
pub(super) fn lines(source: &[u8], mode: Mode) -> impl Iterator<Item = Line<'_>> {
    const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

    let has_mark = mode == Mode::Lenient && source.starts_with(BYTE_ORDER_MARK);
    let mut next = if has_mark { BYTE_ORDER_MARK.len() } else { 0 };
    let mut number = 0_u32;
    std::iter::from_fn(move || {
        let start = next;
        let rest = source.get(start..).filter(|rest| !rest.is_empty())?;
        number = number.saturating_add(1);
        let length = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(rest.len());
        let end = start + length;
        next = end + if source[end..].starts_with(b"\r\n") { 2 } else { 1 };
        Some(Line { raw: &source[start..end], text: text_of(&source[start..end]), start, number })
    })
}

struct Parser {
    mode: Mode,
    parsed: Parsed,
}

impl Parser {
    fn line(&mut self, line: &Line<'_>, has_newline: bool) {
        let first = line.text.trim_start_matches(is_blank).chars().next();
        let outcome = if self.mode == Mode::Strict && !has_newline {
            let end = line.text.len();
            Err(Fault::new(end..end, "no newline at the end of the file", "end the last line with a newline"))
        } else if matches!(first, None | Some('#')) {
            Ok(())
        } else {
            self.declaration(line)
        };
        if let Err(fault) = outcome {
            self.parsed.unusable.push(Unusable::new(self.parsed.events.len(), &line.text));
            self.parsed.diagnostics.push(Severity::Error, || line.diagnostic(Severity::Error, fault));
        }
    }

    fn warn(&mut self, line: &Line<'_>, make: impl FnOnce() -> Fault) {
        self.parsed.diagnostics.push(Severity::Warning, || line.diagnostic(Severity::Warning, make()));
    }

    /// An error for today's tracetool, a warning otherwise.
    fn refuse(&mut self, line: &Line<'_>, make: impl FnOnce() -> Fault) -> Result<(), Fault> {
        if self.mode == Mode::Strict {
            return Err(make());
        }
        self.warn(line, make);
        Ok(())
    }

    fn declaration(&mut self, line: &Line<'_>) -> Result<(), Fault> {
        let text = &*line.text;
        if text.len() > LONGEST_LINE_BYTES {
            let message = format!("line of {} bytes, the most is {LONGEST_LINE_BYTES}", text.len());
            return Err(Fault::new(0..0, message, "split the event, or is this another kind of file?"));
        }
        let open = text.find('(').ok_or_else(|| missing_open(text))?;
        let head = self.head(line, open)?;
        let after_open = open + 1;
        let close = text[after_open..].find(')').ok_or_else(|| missing_close(text, after_open))? + after_open;
        let args = self.args(line, after_open..close).map_err(|fault| {
            // A quote among the arguments: the `)` found is one of the format's.
            if text[after_open..close].contains('"') { missing_close(text, after_open) } else { fault }
        })?;
        if args.len() > MOST_ARGS && self.mode == Mode::Strict {
            let message = format!("{} arguments, the most is {MOST_ARGS}", args.len());
            return Err(Fault::new(args[MOST_ARGS].span.clone(), message, "split the event in two"));
        }
        let formats = self.formats(line, close + 1, head.tcg)?;

        let name = line.owned(head.name.0..head.name.1);
        if head.tcg {
            let first = formats.first().cloned();
            let second = formats.get(1).cloned().or_else(|| first.clone());
            let host_args = args.iter().filter(|arg| !is_tcg(&arg.c_type)).cloned().collect();
            self.take(line, format!("{name}_trans"), head, Some(TcgHalf::Translation), host_args, first);
            let all_args = args.into_iter().map(with_host_type).collect();
            self.take(line, format!("{name}_exec"), head, Some(TcgHalf::Execution), all_args, second);
        } else {
            self.take(line, name, head, None, args, formats.last().cloned());
        }
        Ok(())
    }

    /// Reads what stands before the `(`: properties and the name.
    fn head(&mut self, line: &Line<'_>, open: usize) -> Result<Head, Fault> {
        let text = &line.text[..open];
        if let Some((position, odd)) = text.char_indices().find(|(_, c)| !is_word(*c) && !is_blank(*c)) {
            return Err(match odd {
                '"' => missing_open(&line.text),
                _ => odd_character(position, odd),
            });
        }
        let trimmed = text.trim_end_matches(is_blank);
        if trimmed.is_empty() {
            return Err(Fault::new(open..open, "no event name before '('", "write the name of the event"));
        }
        if trimmed.len() < open {
            let message = "blank between the event name and '('";
            self.refuse(line, || Fault::new(trimmed.len()..open, message, "remove the blank"))?;
        }
        let name_start = trimmed.rfind(is_blank).map_or(0, |blank| blank + char_length(trimmed, blank));
        let before = &text[..name_start];
        // In tracetool's expression the properties take at least one character and a blank: a lone blank is neither.
        if self.mode == Mode::Strict && before.trim_matches(is_blank).is_empty() && before.chars().count() == 1 {
            return Err(Fault::new(0..name_start, "single blank before the event name", "remove the blank"));
        }
        let mut head = Head::default();
        let mut start = 0;
        for piece in before.split_inclusive(is_blank) {
            let word = piece.trim_end_matches(is_blank);
            if !word.is_empty() {
                self.property(line, word, start..start + word.len(), &mut head)?;
            }
            start += piece.len();
        }
        let name = &trimmed[name_start..];
        if !is_identifier(name) {
            self.warn(line, || {
                let message = format!("event name '{}' is no C identifier", shown(name));
                Fault::new(name_start..trimmed.len(), message, "use letters, digits and '_', a letter first")
            });
        }
        head.name = (name_start, trimmed.len());
        Ok(head)
    }

    fn property(&mut self, line: &Line<'_>, word: &str, span: Range<usize>, head: &mut Head) -> Result<(), Fault> {
        let removed = |release: &str, help: &str| {
            Fault::new(span.clone(), format!("property '{word}' was removed in QEMU {release}"), help)
        };
        let strict = self.mode == Mode::Strict;
        match word {
            "disable" => head.disabled = true,
            "vcpu" if strict => return Err(removed("10.1", "declare an argument for the cpu")),
            "vcpu" => head.vcpu = true,
            "tcg" if strict => return Err(removed("7.0", "declare an ordinary event")),
            "tcg" => head.tcg = true,
            _ => {
                let known: &[&str] = if strict { &["disable"] } else { &["disable", "vcpu", "tcg"] };
                let help = nearest(word, known.iter().copied())
                    .map_or_else(|| "the known property is 'disable'".to_owned(), did_you_mean);
                let message = format!("unknown property '{}'", shown(word));
                self.refuse(line, || Fault::new(span, message, help))?;
            }
        }
        Ok(())
    }

    fn args(&mut self, line: &Line<'_>, list: Range<usize>) -> Result<Vec<ArgDecl>, Fault> {
        let text = &line.text[list.clone()];
        if text == "void" {
            return Ok(Vec::new());
        }
        if text.trim_matches(is_blank).is_empty() {
            let help = "write (void) for an event without arguments";
            return Err(Fault::new(list.start - 1..list.end + 1, "empty argument list", help));
        }
        let mut args = Vec::with_capacity(text.bytes().filter(|byte| *byte == b',').count() + 1);
        let mut start = list.start;
        for piece in text.split(',') {
            let trimmed = piece.trim_start_matches(is_blank);
            let first = start + piece.len() - trimmed.len();
            let trimmed = trimmed.trim_end_matches(is_blank);
            let span = first..first + trimmed.len();
            start += piece.len() + 1;
            if trimmed.is_empty() {
                let comma = span.start.saturating_sub(1).max(list.start)..span.start;
                return Err(Fault::new(comma, "empty argument", "write an argument or remove the comma"));
            }
            if trimmed != "void" {
                args.push(self.arg(line, span)?);
            }
        }
        self.check_names(line, &args);
        Ok(args)
    }

    /// Reads one argument. The last `*` parts type and name and stays with the type; without one, the last blank does.
    fn arg(&mut self, line: &Line<'_>, span: Range<usize>) -> Result<ArgDecl, Fault> {
        let text = &line.text[span.clone()];
        let (type_end, name_start) = if let Some(star) = text.rfind('*') {
            let after = &text[star + 1..];
            (star + 1, text.len() - after.trim_start_matches(is_blank).len())
        } else if let Some(blank) = text.rfind(is_blank) {
            (text[..blank].trim_end_matches(is_blank).len(), blank + char_length(text, blank))
        } else if ArgType::from_c(text).is_some() {
            let message = format!("argument of type '{}' has no name", shown(text));
            return Err(Fault::new(span, message, "write a name after the type"));
        } else {
            let message = format!("argument '{}' has no type", shown(text));
            return Err(Fault::new(span, message, "write a type before the name"));
        };
        let spelling = &text[..type_end];
        let type_span = span.start..span.start + type_end;
        let known = ArgType::from_c(spelling);
        if known.is_none() {
            self.foreign_type(line, spelling, type_span)?;
        }
        let c_type = match line.text {
            Cow::Borrowed(_) => intern(spelling),
            Cow::Owned(_) => Cow::Owned(line.owned(span.start..span.start + type_end)),
        };
        Ok(ArgDecl {
            name: line.owned(span.start + name_start..span.end),
            c_type,
            ty: known.unwrap_or_else(|| ArgType::from_c_lenient(spelling)),
            span,
        })
    }

    /// Judges a type that is not on tracetool's list: an old one passes, unless it looks like a slip.
    fn foreign_type(&mut self, line: &Line<'_>, spelling: &str, span: Range<usize>) -> Result<(), Fault> {
        let word = refused_word(spelling).unwrap_or_default();
        if spelling.contains('"') {
            return Err(missing_close(&line.text, span.start));
        }
        let meant = nearest(&word, ALLOWED_TYPES);
        if self.mode == Mode::Strict {
            let help = match meant {
                _ if word.contains(is_blank) => "part the words of a type by single blanks, not by tabs".to_owned(),
                Some(meant) => did_you_mean(meant),
                None if spelling.contains('*') => "declare it as 'void *'".to_owned(),
                None => "use a standard C type or one of fixed size such as 'uint64_t'".to_owned(),
            };
            return Err(Fault::new(span, format!("type '{}' is not allowed", shown(spelling)), help));
        }
        if let Some(meant) = meant
            && !spelling.contains('*')
            && !is_known_foreign(spelling)
        {
            self.warn(line, || {
                let message = format!("type '{}' is not known and read as an unsigned 64-bit word", shown(spelling));
                Fault::new(span, message, did_you_mean(meant))
            });
        }
        Ok(())
    }

    /// Warns of names that tracetool accepts and the C compiler does not.
    fn check_names(&mut self, line: &Line<'_>, args: &[ArgDecl]) {
        let mut seen = HashSet::new();
        for (index, arg) in args.iter().enumerate() {
            let name = arg.name.as_str();
            if name.is_empty() {
                self.warn(line, || {
                    let message = format!("argument of type '{}' has no name", shown(&arg.c_type));
                    Fault::new(arg.span.clone(), message, "write a name after the type")
                });
                continue;
            }
            let is_repeated = if args.len() <= 16 {
                args[..index].iter().any(|earlier| earlier.name == name)
            } else {
                !seen.insert(name)
            };
            if is_repeated {
                self.warn(line, || {
                    let message = format!("second argument named '{}'", shown(name));
                    Fault::new(arg.span.clone(), message, "give each argument a name of its own")
                });
            }
            if !is_identifier(name) {
                self.warn(line, || {
                    let message = format!("argument name '{}' is no C identifier", shown(name));
                    Fault::new(arg.span.clone(), message, "use letters, digits and '_', a letter first")
                });
            }
        }
    }

    /// Finds the formats after the arguments: at most one, two for `tcg`.
    fn formats(&mut self, line: &Line<'_>, after: usize, is_tcg: bool) -> Result<Vec<Range<usize>>, Fault> {
        let text = &*line.text;
        let start = text.len() - text[after..].trim_start_matches(is_blank).len();
        let mut formats: Vec<Range<usize>> = Vec::new();
        if start == text.len() {
            return Ok(formats);
        }
        if !text[start..].starts_with('"') {
            let span = start..text.trim_end_matches(is_blank).len();
            self.warn(line, || match comment(&text[start..]) {
                true => Fault::new(span, "comment after a declaration", COMMENT_HELP),
                false => {
                    let message = format!("'{}' after the arguments is no format", shown(&text[span.clone()]));
                    Fault::new(span, message, "a format begins with '\"'; tracetool ignores the rest of the line")
                }
            });
            return Ok(formats);
        }
        if self.mode == Mode::Strict {
            forbidden_text(text, start)?;
        }
        let mut begins_format = true;
        let mut tokens = Tokens::new(&text[start..]).peekable();
        while let Some(token) = tokens.next() {
            let span = start + token.span.start..start + token.span.end;
            let is_format = match token.kind {
                TokenKind::Literal | TokenKind::Unterminated => true,
                TokenKind::Macro => !begins_format,
                TokenKind::Comma if tokens.peek().is_some_and(|next| next.kind == TokenKind::Literal) => {
                    begins_format = true;
                    continue;
                }
                TokenKind::Comma | TokenKind::Other => false,
            };
            if !is_format {
                self.warn(line, || {
                    let span = span.start..text.trim_end_matches(is_blank).len();
                    match comment(&text[span.start..]) {
                        true => Fault::new(span, "comment after a format", COMMENT_HELP),
                        false => {
                            let message = format!("'{}' is no part of a format", shown(&text[span.clone()]));
                            Fault::new(span, message, "remove it; tracetool takes it as part of the format")
                        }
                    }
                });
                break;
            }
            match formats.last_mut() {
                Some(format) if !begins_format => format.end = span.end,
                _ => formats.push(span),
            }
            begins_format = false;
        }
        let most = if is_tcg { 2 } else { 1 };
        if let Some(surplus) = formats.get(most) {
            let help = "an event has one format; only 'tcg' events of old had two";
            self.refuse(line, || Fault::new(surplus.clone(), "one format too many", help))?;
        }
        Ok(formats)
    }

    /// Makes one declaration.
    fn take(
        &mut self,
        line: &Line<'_>,
        name: String,
        head: Head,
        tcg: Option<TcgHalf>,
        mut args: Vec<ArgDecl>,
        format: Option<Range<usize>>,
    ) {
        if let Some(format) = &format {
            agreement::check(&line.text, &args, format, |fault| self.warn(line, || fault));
        }
        let mut format =
            format.map(|span| FormatSource { text: line.owned(span.clone()), span: line.in_source(&span) });
        for arg in &mut args {
            arg.span = line.in_source(&arg.span);
        }
        if head.vcpu {
            let end = line.start + line.raw.len();
            let cpu = ArgDecl {
                name: "__cpu".to_owned(),
                c_type: Cow::Borrowed("void *"),
                ty: ArgType::Pointer,
                span: end..end,
            };
            args.insert(0, cpu);
            let format = format.get_or_insert_with(|| FormatSource { text: String::new(), span: end..end });
            format.text.insert_str(0, "\"cpu=%p \"");
        }
        let properties = Properties { disabled: head.disabled, vcpu: head.vcpu, tcg };
        let name_span = line.in_source(&(head.name.0..head.name.1));
        self.parsed.events.push(EventDecl { name, name_span, properties, args, format, line: line.number, file: 0 });
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Head {
    /// Where the name begins and ends in the line.
    name: (usize, usize),
    disabled: bool,
    vcpu: bool,
    tcg: bool,
}

fn char_length(text: &str, position: usize) -> usize {
    text[position..].chars().next().map_or(0, char::len_utf8)
}

fn is_tcg(c_type: &str) -> bool {
    c_type.starts_with("TCGv") && !c_type.contains('*')
}

/// Gives a `TCGv` argument the type of the value that the recorder is handed when the code runs.
fn with_host_type(mut arg: ArgDecl) -> ArgDecl {
    if is_tcg(&arg.c_type) {
        arg.c_type = Cow::Borrowed(match &*arg.c_type {
            "TCGv_i32" => "uint32_t",
            "TCGv_ptr" | "TCGv_env" => "void *",
            _ => "uint64_t",
        });
        arg.ty = ArgType::from_c_lenient(&arg.c_type);
    }
    arg
}
