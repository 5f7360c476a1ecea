//! The trace that tables are made of.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, bail};
use polars::prelude::DataFrame;
use simpletrace_format::events::EventIndex;

use super::table::{Filling, Want};
use crate::columns::Oddities;
use crate::filter::{DROPPED, Globs, Selection};
use crate::findings::Outcome;
use crate::formats::Formats;
use crate::input::{Files, Input, load_events, open_all, sort};
use crate::progress::Bar;
use crate::trace::{Item, Trace};

/// A trace, to be read once for each query.
pub(crate) struct Source {
    /// Its files, without the declarations.
    paths: Vec<PathBuf>,
    /// All files that are read, none of which may be written.
    inputs_at: Vec<PathBuf>,
    declared: Option<EventIndex>,
    /// Stands for those that were neither given nor found.
    undeclared: EventIndex,
    formats: Formats,
    /// Of whatever events are asked for.
    selection: Selection,
    shows_progress: bool,
    inputs: Mutex<Inputs>,
    /// The worst that reading it has come to.
    outcome: Mutex<Outcome>,
}

enum Inputs {
    Opened(Vec<Input>),
    /// They were read; a file can be opened anew.
    Read,
    /// They were read, and this one of them is gone then.
    Spent(String),
}

impl Source {
    /// Opens files as all commands do. Of the selection the events do not count.
    ///
    /// # Errors
    ///
    /// A file cannot be opened, or declarations are none.
    pub(crate) fn open(
        files: &[PathBuf],
        events: &[PathBuf],
        formats: Formats,
        selection: Selection,
        shows_progress: bool,
    ) -> Result<Self> {
        let opened = Files::open(files, events, true)?;
        let is_events = |path: &PathBuf| opened.events.iter().any(|input| input.path.as_ref() == Some(path));
        let paths = files.iter().filter(|path| !is_events(path)).cloned().collect();
        let inputs_at = opened.paths().map(Path::to_owned).collect();
        let inputs = opened.traces;
        let declared = load_events(opened.events)?;
        Ok(Self {
            paths,
            inputs_at,
            declared,
            undeclared: EventIndex::default(),
            formats,
            selection,
            shows_progress,
            inputs: Mutex::new(Inputs::Opened(inputs)),
            outcome: Mutex::new(Outcome::Good),
        })
    }

    /// For tests of what is asked of it.
    #[cfg(test)]
    pub(super) fn of_nothing(declared: EventIndex) -> Self {
        Self {
            paths: Vec::new(),
            inputs_at: Vec::new(),
            declared: Some(declared),
            undeclared: EventIndex::default(),
            formats: Formats::default(),
            selection: Selection::default(),
            shows_progress: false,
            inputs: Mutex::new(Inputs::Read),
            outcome: Mutex::new(Outcome::Good),
        }
    }

    /// Its declarations, if any were given or found.
    pub(crate) const fn declared(&self) -> Option<&EventIndex> {
        self.declared.as_ref()
    }

    /// Its declarations, or none.
    pub(super) fn events(&self) -> &EventIndex {
        self.declared.as_ref().unwrap_or(&self.undeclared)
    }

    /// Where its files are, and its declarations.
    pub(crate) fn inputs_at(&self) -> &[PathBuf] {
        &self.inputs_at
    }

    /// How reading went so far.
    pub(super) fn outcome(&self) -> Outcome {
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it can be read again, for a look ahead.
    pub(super) fn is_rereadable(&self) -> bool {
        match &*self.inputs.lock().unwrap_or_else(PoisonError::into_inner) {
            Inputs::Opened(inputs) => inputs.iter().all(|input| input.progress().total.is_some()),
            Inputs::Read => true,
            Inputs::Spent(_) => false,
        }
    }

    fn take_inputs(&self) -> Result<Vec<Input>> {
        let mut inputs = self.inputs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Inputs::Spent(name) = &*inputs {
            bail!("{name} can be read only once, and was; write it into a file");
        }
        if let Inputs::Opened(opened) = std::mem::replace(&mut *inputs, Inputs::Read) {
            if let Some(pipe) = opened.iter().find(|input| input.progress().total.is_none()) {
                *inputs = Inputs::Spent(pipe.name.clone());
            }
            return Ok(opened);
        }
        let mut opened = open_all(&self.paths)?;
        sort(&mut opened);
        Ok(opened)
    }

    /// The trace from its start, and a bar that shows how far it was read.
    fn trace(&self, globs: Globs) -> Result<(Trace, Option<Bar>)> {
        let selection = Selection { globs, ..self.selection.clone() };
        selection.check(self.declared())?;
        let inputs = self.take_inputs()?;
        let bar = self.shows_progress.then(|| Bar::watch(inputs.iter().map(Input::progress).collect()));
        let mut trace = Trace::new(inputs, self.declared.clone(), selection);
        trace.formats = self.formats;
        trace.keeps_gaps = true;
        Ok((trace, bar))
    }

    /// Reads the trace once, for all tables that are wanted. What was found comes back with it, to be said.
    ///
    /// # Errors
    ///
    /// A file cannot be opened again, or a filter makes no sense for what is wanted.
    pub(super) fn read(&self, wants: Vec<Want>) -> Result<(Vec<DataFrame>, Trace, Oddities)> {
        let mut names = BTreeSet::new();
        let mut all = false;
        for want in &wants {
            match want.table.names() {
                Some(own) => names.extend(own.iter().cloned()),
                None => all = true,
            }
        }
        // No names would be all events.
        let globs = match all {
            true => Globs::default(),
            false => Globs::of_names(names.into_iter().chain([DROPPED.to_owned()])),
        };
        let (mut trace, bar) = self.trace(globs)?;
        let fillings = wants.into_iter().map(|want| Filling::new(want, self.events()));
        let mut fillings = fillings.collect::<Result<Vec<_>>>()?;
        // By the number of a kind of event: who takes its records; `None` before its first one.
        let mut takers: Vec<Option<Vec<usize>>> = Vec::new();
        trace.for_each(|item| {
            // By reference: a copy would wait for what was written a moment ago.
            let Item::Event(event) = &item else {
                fillings.iter_mut().for_each(|filling| filling.other(&item));
                return Ok(());
            };
            let index = event.kind.index;
            if takers.len() <= index {
                takers.resize(index + 1, None);
            }
            let places = takers[index].get_or_insert_with(|| {
                (0..fillings.len()).filter(|&place| fillings[place].takes(event.kind)).collect()
            });
            for &place in &*places {
                fillings[place].event(event);
            }
            Ok(())
        })?;
        drop(bar);
        let mut oddities = Oddities::default();
        let mut frames = Vec::new();
        for filling in fillings {
            let (frame, own) = filling.finish()?;
            frames.push(frame);
            oddities.add(own);
        }
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        *outcome = (*outcome).max(trace.outcome(false));
        Ok((frames, trace, oddities))
    }

    /// Looks through the trace for the names of its events: all that it maps, or those that have records.
    ///
    /// # Errors
    ///
    /// A file cannot be opened.
    pub(super) fn names(&self, recorded: bool) -> Result<BTreeSet<String>> {
        let globs = if recorded { Globs::default() } else { Globs::of_names([DROPPED.to_owned()]) };
        let selection = Selection { globs, ..Selection::default() };
        let mut trace = Trace::new(self.take_inputs()?, self.declared.clone(), selection);
        trace.formats = self.formats;
        trace.keep_mapped_names();
        trace.for_each(|_| Ok(()))?;
        Ok(match recorded {
            true => trace.kinds.iter().map(|kind| kind.name.clone()).collect(),
            false => trace.mapped_names().map(str::to_owned).collect(),
        })
    }
}

/// Says what was found in a trace.
pub(super) fn say(trace: &Trace, oddities: Oddities) {
    trace.say_findings();
    oddities.say();
}
