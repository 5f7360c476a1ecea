//! Which events make an operation: `A|A2 -> B -> C`, and the arguments that say which records belong together.

use std::fmt;

use anyhow::{Result, bail};

/// The stages of an operation, in order: at least two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chain {
    stages: Vec<Vec<Alternative>>,
}

/// The name of an event, or a pattern with a `*` in it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Alternative {
    text: String,
}

/// A stage that an event is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place<'a> {
    pub(crate) stage: usize,
    /// What the only `*` of the pattern stands for: it must be the same at all stages that have one.
    pub(crate) star: Option<&'a str>,
}

impl Chain {
    /// The most stages of an operation.
    pub(crate) const MAX_STAGES: usize = 16;

    /// Takes a chain as it stands on the command line.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut stages = Vec::new();
        for stage in text.split("->") {
            let mut alternatives = Vec::new();
            for name in stage.split('|').map(str::trim) {
                if name.is_empty() {
                    bail!(
                        "'{text}': an event is missing; write 'BEGIN -> END', with '|' between events that may stand for each other"
                    );
                }
                if let Some(c) = name.chars().find(|&c| !(c.is_alphanumeric() || matches!(c, '_' | '*' | '?'))) {
                    bail!("'{text}': no event has a {c:?} in its name ({name})");
                }
                alternatives.push(Alternative { text: name.to_owned() });
            }
            stages.push(alternatives);
        }
        match stages.len() {
            1 => bail!("'{text}' is one event; write 'BEGIN -> END', or the name of a preset (latency --list)"),
            2..=Self::MAX_STAGES => Ok(Self { stages }),
            many => bail!("'{text}' has {many} stages, and the most is {}", Self::MAX_STAGES),
        }
    }

    /// How many stages there are.
    pub(crate) fn len(&self) -> usize {
        self.stages.len()
    }

    /// The names that are no patterns, which somebody expects to exist.
    pub(crate) fn plain_names(&self) -> impl Iterator<Item = &str> {
        self.patterns().filter(|text| !text.contains('*'))
    }

    /// All names and patterns.
    pub(crate) fn patterns(&self) -> impl Iterator<Item = &str> {
        self.stages.iter().flatten().map(|alternative| alternative.text.as_str())
    }

    /// What a stage was given as.
    pub(crate) fn stage(&self, stage: usize) -> String {
        self.stages[stage].iter().map(|alternative| alternative.text.as_str()).collect::<Vec<_>>().join("|")
    }

    /// The stages that an event is of, in order. Of patterns that match it the most literal ones count, so that `x_return` is no beginning in
    /// `* -> *_return`.
    pub(crate) fn places<'a>(&self, name: &'a str) -> Vec<Place<'a>> {
        let mut places: Vec<(usize, Place<'a>)> = Vec::new();
        for (stage, alternatives) in self.stages.iter().enumerate() {
            let matching = alternatives.iter().filter(|alternative| alternative.matches(name));
            if let Some(best) = matching.max_by_key(|alternative| alternative.literal()) {
                places.push((best.literal(), Place { stage, star: best.star(name) }));
            }
        }
        let most = places.iter().map(|&(literal, _)| literal).max().unwrap_or_default();
        places.into_iter().filter(|&(literal, _)| literal == most).map(|(_, place)| place).collect()
    }
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stages: Vec<_> = (0..self.len()).map(|stage| self.stage(stage)).collect();
        f.write_str(&stages.join(" -> "))
    }
}

impl Alternative {
    fn matches(&self, name: &str) -> bool {
        crate::filter::matches(&self.text, name)
    }

    /// How much of a name it fixes: a plain name more than any pattern.
    fn literal(&self) -> usize {
        if self.text.contains('*') { self.text.chars().filter(|c| !matches!(c, '*' | '?')).count() } else { usize::MAX }
    }

    fn star<'a>(&self, name: &'a str) -> Option<&'a str> {
        let (before, behind) = self.text.split_once('*')?;
        if behind.contains('*') || self.text.contains('?') {
            return None;
        }
        name.strip_prefix(before)?.strip_suffix(behind)
    }
}

/// One part of what records of an operation have in common: an argument, by the name that it has at each stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyPart {
    text: String,
    sides: Vec<Side>,
}

/// An argument, of an event or a stage if that is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Side {
    /// The name of an event, or `a`, `b`, ... for a stage.
    of: Option<String>,
    pub(crate) arg: String,
}

impl KeyPart {
    /// Takes the parts of a key as they stand on the command line: `req`, `elem=opaque`, `virtqueue_pop.elem=b.opaque`.
    pub(crate) fn parse_all(text: &str, chain: &Chain) -> Result<Vec<Self>> {
        text.split(',').map(|part| Self::parse(part.trim(), chain)).collect()
    }

    fn parse(text: &str, chain: &Chain) -> Result<Self> {
        let sides = text.split('=').map(|side| Side::parse(side.trim())).collect::<Result<Vec<_>>>()?;
        let plain = sides.iter().filter(|side| side.of.is_none()).count();
        if plain > 1 && plain != chain.len() {
            bail!(
                "--on {text}: {plain} names for {} stages; give one for each, or say of which event each is (EVENT.ARG)",
                chain.len()
            );
        }
        Ok(Self { text: text.to_owned(), sides })
    }

    /// The argument's name for an event at a stage.
    pub(crate) fn arg(&self, event: &str, stage: usize) -> Option<&str> {
        let of_event = self.sides.iter().find(|side| side.of.as_deref() == Some(event));
        let of_stage = || self.sides.iter().find(|side| side.of.as_deref().and_then(stage_of) == Some(stage));
        let plain = || {
            let mut plain = self.sides.iter().filter(|side| side.of.is_none());
            let first = plain.next()?;
            Some(if stage == 0 { first } else { plain.nth(stage - 1).unwrap_or(first) })
        };
        of_event.or_else(of_stage).or_else(plain).map(|side| side.arg.as_str())
    }
}

impl fmt::Display for KeyPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Side {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let (of, arg) = match text.split_once('.') {
            Some((of, arg)) => (Some(of.to_owned()), arg),
            None => (None, text),
        };
        let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        if !is_name(arg) || of.as_deref().is_some_and(|of| !is_name(of)) {
            bail!("'{text}' is not the name of an argument; write ARG or EVENT.ARG");
        }
        Ok(Self { of, arg: arg.to_owned() })
    }

    /// Whether it can be of an event at a stage.
    pub(crate) fn is_of(&self, event: &str, stage: usize) -> bool {
        match &self.of {
            None => true,
            Some(of) => of == event || stage_of(of) == Some(stage),
        }
    }
}

/// The stage that a letter stands for.
fn stage_of(letter: &str) -> Option<usize> {
    match letter.as_bytes() {
        [letter @ b'a'..=b'p'] => Some(usize::from(letter - b'a')),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(chain: &str, name: &str) -> Vec<(usize, Option<String>)> {
        let chain = Chain::parse(chain).unwrap();
        chain.places(name).into_iter().map(|place| (place.stage, place.star.map(str::to_owned))).collect()
    }

    #[test]
    fn an_event_is_of_the_stage_whose_pattern_says_most_of_it() {
        assert_eq!(places("A -> B", "A"), [(0, None)]);
        assert_eq!(places("A|C->B", "C"), [(0, None)]);
        assert_eq!(places("A -> B", "C"), []);
        assert_eq!(places("A -> A", "A"), [(0, None), (1, None)], "an end and the next beginning");
        let returns = "v9fs_* -> v9fs_*_return|v9fs_rerror";
        assert_eq!(places(returns, "v9fs_walk"), [(0, Some("walk".to_owned()))]);
        assert_eq!(places(returns, "v9fs_walk_return"), [(1, Some("walk".to_owned()))]);
        assert_eq!(places(returns, "v9fs_rerror"), [(1, None)]);
        assert_eq!(places("x?* -> y_*_*", "xab"), [(0, None)], "what stands for what is not clear");
        assert_eq!(places("x?* -> y_*_*", "y_a_b"), [(1, None)]);
    }

    #[test]
    fn the_name_of_an_argument_is_that_of_the_event_or_else_of_the_stage() {
        let chain = Chain::parse("A|A2 -> B -> C").unwrap();
        let arg = |on: &str, event: &str, stage| {
            let parts = KeyPart::parse_all(on, &chain).unwrap();
            parts[0].arg(event, stage).map(str::to_owned)
        };
        for (on, event, stage, expected) in [
            ("req", "C", 2, Some("req")),
            ("x=y=z", "A", 0, Some("x")),
            ("x=y=z", "B", 1, Some("y")),
            ("x=y=z", "C", 2, Some("z")),
            ("a.x=B.y=z", "A2", 0, Some("x")),
            ("a.x=B.y=z", "B", 1, Some("y")),
            ("a.x=B.y=z", "C", 2, Some("z")),
            ("A.x=A2.y=b.z=c.w", "A2", 0, Some("y")),
            ("A.x=b.z", "C", 2, None),
        ] {
            assert_eq!(arg(on, event, stage).as_deref(), expected, "{on} of {event}");
        }
        let error = KeyPart::parse_all("x=y", &chain).unwrap_err().to_string();
        assert_eq!(
            error,
            "--on x=y: 2 names for 3 stages; give one for each, or say of which event each is (EVENT.ARG)"
        );
        let error = KeyPart::parse_all("x,", &chain).unwrap_err().to_string();
        assert_eq!(error, "'' is not the name of an argument; write ARG or EVENT.ARG");
    }

    #[test]
    fn what_is_no_chain_says_what_one_is() {
        let long = ["a"; 17].join("->");
        for (text, expected) in [
            ("A", "'A' is one event; write 'BEGIN -> END', or the name of a preset (latency --list)"),
            (
                "A ->",
                "'A ->': an event is missing; write 'BEGIN -> END', with '|' between events that may stand for each other",
            ),
            (
                "A | -> B",
                "'A | -> B': an event is missing; write 'BEGIN -> END', with '|' between events that may stand for each other",
            ),
            ("A b -> C", "'A b -> C': no event has a ' ' in its name (A b)"),
            (&long, &format!("'{long}' has 17 stages, and the most is 16")),
        ] {
            assert_eq!(Chain::parse(text).unwrap_err().to_string(), expected);
        }
    }
}
