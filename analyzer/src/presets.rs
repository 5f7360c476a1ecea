//! Operations that are known by name.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, bail};
use serde::Deserialize;
use simpletrace_format::events::{EventIndex, nearest};

use crate::pairing::{By, Chain, Discipline, KeyPart, Question};

/// Those that come with the program, as users see and copy them.
pub(crate) const TEXT: &str = include_str!("presets.toml");

/// An operation by name, as it is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Preset {
    pub(crate) about: String,
    pub(crate) operation: String,
    #[serde(default)]
    pub(crate) on: String,
    #[serde(default)]
    pub(crate) by: Vec<String>,
    #[serde(default, rename = "where")]
    pub(crate) filters: Vec<String>,
    #[serde(default)]
    pub(crate) discipline: Discipline,
    pub(crate) exact: bool,
    #[serde(default)]
    pub(crate) note: String,
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
        let mut presets = Self::parse(TEXT).map_err(|fault| anyhow!("the presets of this program: {fault}"))?;
        for file in files {
            let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
            let own = Self::parse(&text).map_err(|fault| anyhow!("{}: {}", file.display(), fault.trim_end()))?;
            presets.0.extend(own.0);
        }
        Ok(presets)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let presets: BTreeMap<String, Preset> = toml::from_str(text).map_err(|error| error.to_string())?;
        for (name, preset) in &presets {
            preset.parts().map_err(|error| format!("preset {name}: {error:#}"))?;
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
            let Ok((chain, on, by)) = preset.parts() else { return false };
            let has_stage =
                |stage| recorded.iter().any(|name| chain.places(name).iter().any(|place| place.stage == stage));
            // Few traces have the events, so that it seldom has to be asked what is declared.
            (0..chain.len()).all(has_stage) && Question::new(chain, on, by).names(declared, true).is_ok()
        };
        self.iter().filter(|(_, preset)| can_answer(preset)).map(|(name, _)| name.to_owned()).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Preset)> {
        self.0.iter().map(|(name, preset)| (name.as_str(), preset))
    }
}

impl Preset {
    /// What it asks.
    #[cfg(feature = "frames")]
    pub(crate) fn question(&self) -> Result<Question> {
        let (chain, on, by) = self.parts()?;
        Ok(Question { discipline: self.discipline, ..Question::new(chain, on, by) })
    }

    /// The parts that are written in a language of their own.
    pub(crate) fn parts(&self) -> Result<(Chain, Vec<KeyPart>, Vec<By>)> {
        let chain = Chain::parse(&self.operation)?;
        let on = if self.on.is_empty() { Vec::new() } else { KeyPart::parse_all(&self.on, &chain)? };
        let by = self.by.iter().map(|by| By::parse(by)).collect::<Result<_>>()?;
        Ok((chain, on, by))
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
        for (text, expected) in [
            (
                "[a]\nabout = 'x'\noperation = 'A -> B'\nexact = 1\n",
                "TOML parse error at line 4, column 9\n  |\n4 | exact = 1\n  |         ^\ninvalid type: integer `1`, expected a boolean\n",
            ),
            (
                "[a]\nabout = 'x'\noperation = 'A -> B'\nexcat = true\n",
                "TOML parse error at line 4, column 1\n  |\n4 | excat = true\n  | ^^^^^\nunknown field `excat`, expected one of `about`, `operation`, `on`, `by`, `where`, `discipline`, `exact`, `note`\n",
            ),
            (
                "[a]\nabout = 'x'\noperation = 'A'\nexact = true\n",
                "preset a: 'A' is one event; write 'BEGIN -> END', or the name of a preset (latency --list)",
            ),
            ("[a\n", "TOML parse error at line 1, column 3\n  |\n1 | [a\n  |   ^\nunclosed table, expected `]`\n"),
        ] {
            assert_eq!(Presets::parse(text).unwrap_err(), expected, "{text}");
        }
    }
}
