//! Where the JSON values of a stream begin and end.

/// The longest request, in bytes.
pub(super) const MAX_REQUEST_BYTES: usize = 64 << 10;
/// How deep a request may nest: `serde_json` takes a little more.
pub(super) const MAX_DEPTH: usize = 100;

/// What a stream has next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// A value, if what is between its brackets is one.
    Request(Vec<u8>),
    /// Something else, for this reason. The stream goes on at the next newline.
    Fault(String),
    /// Something that the stream does not go on behind.
    Fatal(String),
}

/// Parts a stream of JSON values, which comes in pieces of any length, without newlines between them.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// The value that has begun.
    value: Vec<u8>,
    /// The brackets that are open.
    open: Vec<u8>,
    state: State,
    /// How many bytes were passed over behind a fault.
    passed_over: usize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Between values, or between brackets.
    #[default]
    Plain,
    /// In a number or a word outside of all brackets.
    Bare,
    InString,
    BehindBackslash,
    /// Behind a fault, up to the next newline.
    Lost,
}

impl Frames {
    /// Takes bytes from the front of `bytes`, until a frame is complete.
    pub(super) fn next(&mut self, bytes: &mut &[u8]) -> Option<Frame> {
        while let Some((&byte, rest)) = bytes.split_first() {
            if self.state == State::Bare && (byte.is_ascii_whitespace() || b"{}[],:\"".contains(&byte)) {
                return Some(self.end());
            }
            *bytes = rest;
            let frame = self.step(byte);
            let value_bytes = if let Some(Frame::Request(value)) = &frame { value.len() } else { self.value.len() };
            if value_bytes.max(self.passed_over) > MAX_REQUEST_BYTES {
                return Some(Frame::Fatal(format!("JSON parse error, more than {MAX_REQUEST_BYTES} bytes")));
            }
            if frame.is_some() {
                return frame;
            }
        }
        None
    }

    /// The stream has lost its way in a value that ended.
    pub(super) fn lose(&mut self, frame: &[u8]) {
        // Between brackets, the end is where it seemed to be.
        if !frame.starts_with(b"{") && !frame.starts_with(b"[") {
            self.state = State::Lost;
        }
    }

    fn step(&mut self, byte: u8) -> Option<Frame> {
        match (self.state, byte) {
            (State::Lost, b'\n') => self.state = State::Plain,
            (State::Lost, _) => {
                self.passed_over += 1;
                return None;
            }
            (State::Plain, _) => return self.step_outside(byte),
            (State::Bare, _) => self.value.push(byte),
            // A newline in there is where to go on: it cannot be in a string.
            (State::InString | State::BehindBackslash, 0..=31) => {
                let fault = self.fault("JSON parse error, control character in a string".to_owned());
                if byte == b'\n' {
                    self.state = State::Plain;
                }
                return Some(fault);
            }
            (State::InString, _) => {
                self.value.push(byte);
                match byte {
                    b'\\' => self.state = State::BehindBackslash,
                    b'"' => {
                        self.state = State::Plain;
                        return self.open.is_empty().then(|| self.end());
                    }
                    _ => {}
                }
            }
            (State::BehindBackslash, _) => {
                self.value.push(byte);
                self.state = State::InString;
            }
        }
        self.passed_over = 0;
        None
    }

    fn step_outside(&mut self, byte: u8) -> Option<Frame> {
        let is_outermost = self.open.is_empty();
        match byte {
            _ if byte.is_ascii_whitespace() && is_outermost => return None,
            b'{' | b'[' => {
                if self.open.len() == MAX_DEPTH {
                    return Some(Frame::Fatal("JSON nesting depth limit exceeded".to_owned()));
                }
                self.open.push(byte);
            }
            b'}' | b']' => {
                // In ASCII the closing one of either pair is two behind the opening one.
                if self.open.pop() != Some(byte - 2) {
                    return Some(self.fault("JSON parse error, expecting value".to_owned()));
                }
                self.value.push(byte);
                return self.open.is_empty().then(|| self.end());
            }
            b'"' => self.state = State::InString,
            b',' | b':' if is_outermost => {
                return Some(self.fault("JSON parse error, expecting value".to_owned()));
            }
            _ if !is_outermost => {}
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => self.state = State::Bare,
            _ => return Some(self.fault(format!("JSON parse error, stray '{}'", byte.escape_ascii()))),
        }
        self.value.push(byte);
        None
    }

    fn end(&mut self) -> Frame {
        self.state = State::Plain;
        Frame::Request(std::mem::take(&mut self.value))
    }

    fn fault(&mut self, why: String) -> Frame {
        self.value.clear();
        self.open.clear();
        self.state = State::Lost;
        Frame::Fault(why)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// All frames of a stream that comes in pieces of so many bytes.
    fn frames(stream: &[u8], piece_bytes: usize) -> Vec<Frame> {
        let (mut frames, mut found) = (Frames::default(), Vec::new());
        for mut piece in stream.chunks(piece_bytes) {
            while let Some(frame) = frames.next(&mut piece) {
                if let Frame::Request(value) = &frame
                    && serde_json::from_slice::<serde_json::Value>(value).is_err()
                {
                    frames.lose(value);
                }
                let is_fatal = matches!(frame, Frame::Fatal(_));
                found.push(frame);
                if is_fatal {
                    return found;
                }
            }
        }
        found
    }

    fn value(text: &str) -> Frame {
        Frame::Request(text.into())
    }

    fn fault(text: &str) -> Frame {
        Frame::Fault(format!("JSON parse error, {text}"))
    }

    #[test]
    fn values_end_where_their_brackets_do_whatever_the_pieces() {
        let nothing = || fault("expecting value");
        for (stream, expected) in [
            ("", vec![]),
            (" \r\n\t ", vec![]),
            ("{}", vec![value("{}")]),
            ("{", vec![]),
            ("{\n}{}\r\n[1, {}] ", vec![value("{\n}"), value("{}"), value("[1, {}]")]),
            (r#"{"a": "}]\"{["}{}"#, vec![value(r#"{"a": "}]\"{["}"#), value("{}")]),
            (r#""\\"{}"#, vec![value(r#""\\""#), value("{}")]),
            ("1 true\n-2.5e3{}", vec![value("1"), value("true"), value("-2.5e3"), value("{}")]),
            ("12", vec![]),
            // What is no value: on behind its brackets, or on the next line.
            ("{nonsense}{}", vec![value("{nonsense}"), value("{}")]),
            ("GET / HTTP/1.1\r\nHost: x\r\n{}", vec![value("GET"), value("Host"), value("{}")]),
            ("}}}{}\n{}", vec![nothing(), value("{}")]),
            ("{]}\n{}", vec![nothing(), value("{}")]),
            ("{\"a\": [}\n{}", vec![nothing(), value("{}")]),
            (",\n:\n{}", vec![nothing(), nothing(), value("{}")]),
            ("\0{}\n{}", vec![fault("stray '\\x00'"), value("{}")]),
            ("'a'\n{}", vec![fault("stray '\\''"), value("{}")]),
            ("\u{e9}\n{}", vec![fault("stray '\\xc3'"), value("{}")]),
            ("{\"a\n{}", vec![fault("control character in a string"), value("{}")]),
            ("\"a\\\n{}", vec![fault("control character in a string"), value("{}")]),
            ("\"a\0b\"{}\n{}", vec![fault("control character in a string"), value("{}")]),
        ] {
            for piece_bytes in 1..=stream.len().max(1) {
                assert_eq!(frames(stream.as_bytes(), piece_bytes), expected, "{stream:?} by {piece_bytes}");
            }
        }
    }

    #[test]
    fn what_is_too_long_or_too_deep_ends_the_stream() {
        let too_long = || Frame::Fatal("JSON parse error, more than 65536 bytes".to_owned());
        let too_deep = || Frame::Fatal("JSON nesting depth limit exceeded".to_owned());
        let object = |bytes: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8));
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let garbage = |bytes: usize| format!("}}{}\n", " ".repeat(bytes));
        for (stream, expected) in [
            (object(65_536), vec![value(&object(65_536))]),
            (object(65_537), vec![too_long()]),
            ("1".repeat(65_537), vec![too_long()]),
            ("\"".to_owned() + &"x".repeat(65_536), vec![too_long()]),
            (garbage(65_536) + "{}", vec![fault("expecting value"), value("{}")]),
            (garbage(65_537) + "{}", vec![fault("expecting value"), too_long()]),
            (nested(100), vec![value(&nested(100))]),
            (nested(101), vec![too_deep()]),
            (" ".repeat(200_000) + "{}", vec![value("{}")]),
        ] {
            for piece_bytes in [1_000, 4_096, 1_000_000] {
                assert!(frames(stream.as_bytes(), piece_bytes) == expected, "{} by {piece_bytes}", stream.len());
            }
        }
        let deepest = serde_json::from_str::<serde_json::Value>(&nested(MAX_DEPTH));
        assert!(deepest.is_ok(), "as deep as may be, it can be read");
    }

    proptest! {
        /// No stream is too odd, and whatever was said before, a newline or two bring back sense.
        #[test]
        fn any_stream_is_survived(stream in "[ -~\0\n\u{e9}]{0,60}|[\\[\\]{}\":,a0\n\\\\]{0,60}", piece_bytes in 1_usize..70) {
            let end = "]}\n\"\n]\n";
            let whole = format!("{stream}{}{{\"id\":1}}", end.repeat(stream.len() + 1));
            let found = frames(whole.as_bytes(), piece_bytes);
            prop_assert_eq!(&found, &frames(whole.as_bytes(), whole.len()));
            prop_assert_eq!(found.last(), Some(&value("{\"id\":1}")));
        }
    }
}
