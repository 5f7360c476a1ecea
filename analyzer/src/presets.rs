//! Operations that are known by name.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use serde::Deserialize;
use simpletrace_format::events::{Diagnostic, EventIndex, nearest};
use toml::Spanned;

use crate::condition::{Conditions, Fault};
use crate::filter::Globs;
use crate::input::read_small;
use crate::pairing::{By, Chain, Discipline, KeyPart, MAX_BY, MAX_KEY, Question};

/// Those that come with the program, as users see and copy them.
pub(crate) const TEXT: &str = include_str!("presets.toml");

/// An operation by name, as it is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a preset: [NAME], and what it says")]
pub(crate) struct Preset {
    pub(crate) about: String,
    operation: Spanned<String>,
    on: Option<Spanned<String>>,
    #[serde(default)]
    by: Vec<Spanned<String>>,
    #[serde(default, rename = "where")]
    filters: Vec<Spanned<String>>,
    #[serde(default)]
    pub(crate) discipline: Discipline,
    pub(crate) exact: bool,
    #[serde(default)]
    pub(crate) note: String,
    /// What counts where the events or arguments of the above are not declared, the first that is.
    #[serde(default, rename = "else")]
    others: Vec<Other>,
    #[serde(skip)]
    origin: Origin,
}

/// The same operation, as other versions of the traced program record it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Other {
    operation: Spanned<String>,
    on: Option<Spanned<String>>,
    #[serde(default, rename = "where")]
    filters: Vec<Spanned<String>>,
}

/// Where a preset stands.
#[derive(Debug, Clone, Default)]
struct Origin {
    preset: String,
    /// The file; `None` for the program itself.
    file: Option<Arc<str>>,
    text: Arc<str>,
}

/// All that are known.
#[derive(Debug, Clone)]
pub(crate) struct Presets(BTreeMap<String, Preset>);

impl Presets {
    /// Those that come with the program, and those of files, the later of which take the place of earlier ones.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or has a fault, which is shown with its line.
    pub(crate) fn load<'a>(files: impl IntoIterator<Item = &'a Path>) -> Result<Self> {
        let mut presets = Self::parse(TEXT, None)?;
        for file in files {
            presets.0.extend(Self::parse(&read_small(file)?, Some(&file.display().to_string()))?.0);
        }
        Ok(presets)
    }

    fn parse(text: &str, file: Option<&str>) -> Result<Self> {
        let mut presets: BTreeMap<String, Preset> = toml::from_str(text).map_err(|error| {
            let fault = Diagnostic::error(text.as_bytes(), error.span().unwrap_or_default(), error.message(), None);
            anyhow!("{}", fault.with_source(file.unwrap_or("the presets of this program"), text.as_bytes()))
        })?;
        let (file, text): (Option<Arc<str>>, Arc<str>) = (file.map(Arc::from), text.into());
        for (name, preset) in &mut presets {
            preset.origin = Origin { preset: name.clone(), file: file.clone(), text: Arc::clone(&text) };
            preset.check()?;
        }
        Ok(Self(presets))
    }

    /// The preset of a name.
    ///
    /// # Errors
    ///
    /// There is none.
    pub(crate) fn get(&self, name: &str) -> Result<&Preset> {
        match self.0.get(name) {
            Some(preset) => Ok(preset),
            None => {
                let nearest = nearest(name, self.0.keys().map(String::as_str));
                let hint = nearest
                    .map_or("latency --list lists them".to_owned(), |nearest| format!("did you mean {nearest}?"));
                bail!("there is no preset {name}; {hint}")
            }
        }
    }

    /// The names of those that a trace can answer: there are records of an event of each stage, and they have the arguments.
    pub(crate) fn answered(&self, recorded: &[&str], declared: &EventIndex) -> Vec<String> {
        let can_answer = |preset: &Preset| {
            preset.alone().any(|preset| {
                let Ok(question) = preset.question() else { return false };
                let has_stage = |stage| {
                    recorded.iter().any(|name| question.chain.places(name).iter().any(|place| place.stage == stage))
                };
                // Few traces have the events, so that it seldom has to be asked what is declared.
                (0..question.chain.len()).all(has_stage) && question.names(declared, true).is_ok()
            })
        };
        self.iter().filter(|(_, preset)| can_answer(preset)).map(|(name, _)| name.to_owned()).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Preset)> {
        self.0.iter().map(|(name, preset)| (name.as_str(), preset))
    }
}

impl Preset {
    pub(crate) fn name(&self) -> &str {
        &self.origin.preset
    }

    pub(crate) fn operation(&self) -> &str {
        self.operation.get_ref()
    }

    pub(crate) fn on(&self) -> Option<&str> {
        self.on.as_ref().map(|on| on.get_ref().as_str()).filter(|on| !on.is_empty())
    }

    pub(crate) fn by(&self) -> Vec<String> {
        self.by.iter().map(|by| by.get_ref().clone()).collect()
    }

    pub(crate) fn filters(&self) -> Vec<String> {
        self.filters.iter().map(|filter| filter.get_ref().clone()).collect()
    }

    /// As it is for these declarations: the first wording whose events and arguments are declared; the first of all, if none is.
    pub(crate) fn suited(&self, declared: &EventIndex) -> Self {
        let suits = |preset: &Self| {
            // What is grouped by is the user's choice.
            let question = preset.question().map(|question| Question { by: Vec::new(), ..question });
            question.is_ok_and(|question| question.names(declared, true).is_ok())
        };
        self.alone().find(suits).unwrap_or_else(|| Self { others: Vec::new(), ..self.clone() })
    }

    /// Each wording as a preset of its own.
    fn alone(&self) -> impl Iterator<Item = Self> {
        let first = Self { others: Vec::new(), ..self.clone() };
        let others = self.others.iter().map(|other| Self {
            operation: other.operation.clone(),
            on: other.on.clone(),
            filters: other.filters.clone(),
            others: Vec::new(),
            ..self.clone()
        });
        [first].into_iter().chain(others)
    }

    /// What it asks.
    pub(crate) fn question(&self) -> Result<Question> {
        let chain = Chain::parse(self.operation()).map_err(|error| self.fault(&self.operation, &error))?;
        let on = match &self.on {
            Some(on) if !on.get_ref().is_empty() => {
                KeyPart::parse_all(on.get_ref(), &chain).map_err(|error| self.fault(on, &error))?
            }
            _ => Vec::new(),
        };
        let by = self.by.iter().map(|by| By::parse(by.get_ref()).map_err(|error| self.fault(by, &error)));
        let question = Question::new(chain, on, by.collect::<Result<_>>()?);
        Ok(Question { discipline: self.discipline, ..question })
    }

    /// Checks all that needs no declarations.
    fn check(&self) -> Result<()> {
        let stages = Chain::parse(self.operation()).map_or(0, |chain| chain.len());
        for preset in self.alone() {
            let question = preset.question()?;
            if question.chain.len() != stages {
                let why = anyhow!("this has {} stages, and the one before has {stages}", question.chain.len());
                return Err(self.fault(&preset.operation, &why));
            }
            if let Some(on) = preset.on.as_ref().filter(|_| question.on.len() > MAX_KEY) {
                let why = anyhow!("--on has {} parts, and the most is {MAX_KEY}", question.on.len());
                return Err(self.fault(on, &why));
            }
            preset.check_filters(None)?;
        }
        match self.by.get(MAX_BY) {
            Some(by) => Err(self.fault(by, &anyhow!("--by has {} arguments, and the most is {MAX_BY}", self.by.len()))),
            None => Ok(()),
        }
    }

    /// Which events a question is about that this preset asks, or that was made of it; what is wrong with the preset is said where it stands.
    ///
    /// # Errors
    ///
    /// As of [`Question::names`], and filters that make no sense for the events.
    pub(crate) fn names(&self, question: &Question, declared: &EventIndex) -> Result<Vec<String>> {
        let names = question.names(declared, true).map_err(|error| self.blame(question, declared, error))?;
        let globs = Globs::of_names(names.clone());
        self.check_filters(Some((&globs, declared)))?;
        Ok(names)
    }

    /// Finds the value that makes a question no good.
    fn blame(&self, question: &Question, declared: &EventIndex, error: anyhow::Error) -> anyhow::Error {
        let fails = |question: Question| question.names(declared, true).err();
        let without = Question { on: Vec::new(), by: Vec::new(), ..question.clone() };
        if let Some(error) = fails(without.clone()) {
            let unknown = question.chain.plain_names().find(|name| !declared.contains(name));
            let nearest = unknown.and_then(|name| declared.nearest(name));
            let help = nearest.map(|nearest| format!("did you mean {nearest}?"));
            return self.fault_at(self.operation.span(), &format!("{error:#}"), help);
        }
        let on: Vec<_> = question.on.iter().map(ToString::to_string).collect();
        let own =
            self.on.as_ref().filter(|own| own.get_ref().split(',').map(str::trim).eq(on.iter().map(String::as_str)));
        if let Some(error) = fails(Question { on: question.on.clone(), ..without.clone() }) {
            return match own {
                Some(own) => self.fault(own, &error),
                None => error,
            };
        }
        let faulty = question.by.iter().find_map(|by| {
            let error = fails(Question { by: vec![by.clone()], ..without.clone() })?;
            let own = self.by.iter().find(|own| *own.get_ref() == by.text);
            Some(own.map_or_else(|| anyhow!("{error:#}"), |own| self.fault(own, &error)))
        });
        faulty.unwrap_or(error)
    }

    fn check_filters(&self, events: Option<(&Globs, &EventIndex)>) -> Result<()> {
        for filter in &self.filters {
            let Some(Fault { at, message, help }) = Conditions::fault_of(filter.get_ref(), events) else { continue };
            // Where the file has the text as it is, the place within it is known.
            let value = filter.span();
            let written = self.origin.text.get(value.clone()).unwrap_or_default();
            let at = match written.find(filter.get_ref().as_str()) {
                Some(start) => value.start + start + at.start..value.start + start + at.end,
                None => value,
            };
            return Err(self.fault_at(at, &message, help));
        }
        Ok(())
    }

    fn fault(&self, value: &Spanned<String>, error: &anyhow::Error) -> anyhow::Error {
        self.fault_at(value.span(), &format!("{error:#}"), None)
    }

    fn fault_at(&self, at: Range<usize>, message: &str, help: Option<String>) -> anyhow::Error {
        let Origin { preset, file, text } = &self.origin;
        let message = format!("preset {preset}: {message}");
        match file {
            Some(file) => {
                let fault = Diagnostic::error(text.as_bytes(), at, message, help);
                anyhow!("{}", fault.with_source(file, text.as_bytes()))
            }
            None => anyhow!("{message}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_of_the_program_are_as_the_catalogue_has_them() {
        let presets = Presets::load([]).unwrap();
        let names: Vec<_> = presets.iter().map(|(name, _)| name).collect();
        assert_eq!(
            names.join(" "),
            "9p aio-poll co-mutex dma emulator-disk guest-run io_uring kvm-exits locks nvme qcow2 qmp thread-pool virtio-blk virtio-blk-hops \
             virtio-scsi virtqueue-elem virtqueue-kick"
        );
        for (name, preset) in presets.iter() {
            assert!(preset.exact || !preset.note.is_empty(), "{name}: whoever is not exact says why");
            assert!(preset.about.len() < 80, "{name}");
        }
    }

    #[test]
    fn faults_are_shown_where_they_are() {
        let head = "[a]\nabout = 'x'\nexact = true\n";
        for (value, expected) in [
            (
                "operation = 'A'",
                "own:4:13: preset a: 'A' is one event; write 'BEGIN -> END', or the name of a preset (latency --list)\n  operation = 'A'\n              ^^^",
            ),
            (
                "operation = 'A -> B'\non = 'k=='",
                "own:5:6: preset a: '' is not the name of an argument; write ARG or EVENT.ARG\n  on = 'k=='\n       ^^^^^",
            ),
            (
                "operation = 'A -> B'\non = 'a,b,c,d,e'",
                "own:5:6: preset a: --on has 5 parts, and the most is 4\n  on = 'a,b,c,d,e'\n       ^^^^^^^^^^^",
            ),
            (
                "operation = 'A -> B'\nby = ['k', 'k:log3']",
                "own:5:12: preset a: --by k:log3: there is no way to group called \"log3\"; log2 is one\n  by = ['k', 'k:log3']\n             ^^^^^^^^",
            ),
            (
                "operation = 'A -> B'\nby = ['a', 'b', 'c', 'd']",
                "own:5:22: preset a: --by has 4 arguments, and the most is 3\n  by = ['a', 'b', 'c', 'd']\n                       ^^^",
            ),
            (
                "operation = 'A -> B'\nwhere = ['A: k = 3']",
                "own:5:16: preset a: '=' means nothing here\n  where = ['A: k = 3']\n                 ^\nhelp: write == or =~",
            ),
            (
                "operation = 'A -> B'\n[[a.else]]\noperation = 'A -> B -> C'",
                "own:6:13: preset a: this has 3 stages, and the one before has 2\n  operation = 'A -> B -> C'\n              ^^^^^^^^^^^^^",
            ),
        ] {
            let error = Presets::parse(&format!("{head}{value}\n"), Some("own")).unwrap_err().to_string();
            assert_eq!(error, expected, "{value}");
        }
        for (text, expected) in [
            (
                "[a]\nabout = 'x'\noperation = 'A -> B'\nexact = 1\n",
                "own:4:9: invalid type: integer `1`, expected a boolean\n  exact = 1\n          ^",
            ),
            (
                "[a]\nabout = 'x'\noperation = 'A -> B'\nexcat = true\n",
                "own:4:1: unknown field `excat`, expected one of `about`, `operation`, `on`, `by`, `where`, `discipline`, `exact`, `note`, `else`\n  excat = true\n  ^^^^^",
            ),
            ("[a\n", "own:1:3: unclosed table, expected `]`\n  [a\n    ^"),
        ] {
            let error = Presets::parse(text, Some("own")).unwrap_err().to_string();
            assert_eq!(error, expected, "{text}");
        }
    }
}
