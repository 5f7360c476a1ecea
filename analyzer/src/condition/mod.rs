//! Conditions on the arguments of events: `-w`. docs/FILTERS.md says what they mean.
//!
//! A [`Condition`] is [parsed](parse) once, [checked and compiled](compile) against the declaration of each event, and its
//! [`Predicate`] asked for each record of the events that it is about.

mod compile;
mod explain;
mod parse;
mod predicate;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use anyhow::{Result, anyhow};
use simpletrace_format::events::{ArgDecl, EventDecl, EventIndex, nearest};

use crate::filter::{DROPPED, Globs, matches};
use compile::{ALWAYS, Subject, Unfit};
pub(crate) use parse::Fault;
use parse::{Name, Parsed, Test};
use predicate::Node;
pub(crate) use predicate::Predicate;

/// Why no record of an event can be wanted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LeftOut {
    /// It has no argument of this name.
    Lacks(String),
    /// An argument is of a type that the condition is not for: which, and how so.
    Differs(String),
    /// By its name alone.
    Never,
}

/// All that a record has to meet, each of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Conditions {
    list: Vec<Condition>,
}

#[derive(Debug, Clone)]
struct Condition {
    source: String,
    parsed: Parsed,
}

impl Conditions {
    /// Reads what was given on the command line.
    ///
    /// # Errors
    ///
    /// One that is not of the language, with its place.
    pub(crate) fn parse(filters: &[String]) -> Result<Self> {
        let list = filters.iter().map(|source| match parse::parse(source) {
            Ok(parsed) => Ok(Condition { source: source.clone(), parsed }),
            Err(fault) => Err(anyhow!("{}", fault.show(source))),
        });
        Ok(Self { list: list.collect::<Result<_>>()? })
    }

    /// Checks all names and types against the declarations of the events that are asked for.
    ///
    /// # Errors
    ///
    /// An event or an argument that does not exist, or a comparison that makes no sense for any event: with its place.
    pub(crate) fn check(&self, globs: &Globs, declared: Option<&EventIndex>) -> Result<()> {
        for condition in &self.list {
            condition.check(globs, declared).map_err(|fault| anyhow!("{}", fault.show(&condition.source)))?;
        }
        Ok(())
    }

    /// What is wrong with one filter by itself, and if events are given, for them.
    pub(crate) fn fault_of(source: &str, events: Option<(&Globs, &EventIndex)>) -> Option<Fault> {
        let check = |parsed| match events {
            Some((globs, declared)) => Condition { source: source.to_owned(), parsed }.check(globs, Some(declared)),
            None => Ok(()),
        };
        parse::parse(source).and_then(check).err()
    }

    /// Says what the records of an event have to meet, if anything.
    ///
    /// # Errors
    ///
    /// None can.
    pub(crate) fn choose(&self, name: &str, args: &[ArgDecl], has_text: bool) -> Result<Option<Predicate>, LeftOut> {
        let subject = Subject { name, args, has_text };
        let about = self.list.iter().filter(|condition| condition.is_about(name));
        let nodes = about.map(|condition| {
            subject.compile(&condition.parsed.expression).map_err(|unfit| match unfit {
                Unfit::Lacks(test) => LeftOut::Lacks(test.name.text.clone()),
                Unfit::Differs(fault) => LeftOut::Differs(fault.message),
            })
        });
        match Node::all(nodes.collect::<Result<_, _>>()?) {
            Node::Constant(true) => Ok(None),
            Node::Constant(false) => Err(LeftOut::Never),
            node => Ok(Some(Predicate::new(node))),
        }
    }
}

impl Condition {
    fn is_about(&self, name: &str) -> bool {
        let events = &self.parsed.events;
        events.is_empty() || events.iter().any(|event| matches(&event.text, name))
    }

    /// An event of a plain name has to suit; of all others, one.
    fn check(&self, globs: &Globs, declared: Option<&EventIndex>) -> Result<(), Fault> {
        let (patterns, names): (Vec<_>, Vec<_>) = self.parsed.events.iter().partition(|event| event.text.contains('*'));
        for name in &names {
            self.check_named(name, globs, declared)?;
        }
        if !names.is_empty() && patterns.is_empty() {
            return Ok(());
        }
        let mut candidates: Vec<_> = declared
            .into_iter()
            .flat_map(EventIndex::names)
            .filter(|name| globs.selects(name) && self.is_about(name))
            .collect();
        candidates.sort_unstable();
        if declared.is_some() {
            for pattern in patterns {
                if !candidates.iter().any(|name| matches(&pattern.text, name)) {
                    return Err(Fault::new(pattern.at.clone(), "no event that is asked for matches this"));
                }
            }
        }
        self.check_any(&candidates, declared)
    }

    fn check_named(&self, name: &Name, globs: &Globs, declared: Option<&EventIndex>) -> Result<(), Fault> {
        let fault = |message: String| Fault::new(name.at.clone(), message);
        if name.text == DROPPED {
            return Err(fault("gaps are no events, and no filter takes them out".to_owned()).help("write -e -dropped"));
        }
        let mut event = None;
        if let Some(declared) = declared {
            if !declared.contains(&name.text) {
                let fault = fault(format!("no event is called {}", name.text));
                return Err(match declared.nearest(&name.text) {
                    Some(nearest) => fault.help(format!("did you mean {nearest}?")),
                    None => fault,
                });
            }
            event = find(declared, &name.text);
            if event.is_none() {
                return Err(fault(format!("the declaration of {} cannot be understood", name.text))
                    .help("`simpletrace-rs events` says why"));
            }
        }
        if !globs.selects(&name.text) {
            return Err(fault(format!("{} is not among the events that are asked for", name.text)));
        }
        let args = event.as_ref().map_or(&[][..], |event| &event.args);
        let subject = Subject { name: &name.text, args, has_text: true };
        match subject.compile(&self.parsed.expression) {
            Ok(_) => Ok(()),
            Err(Unfit::Differs(fault)) => Err(fault),
            Err(Unfit::Lacks(test)) if declared.is_none() => Err(nothing_declared(test)),
            Err(Unfit::Lacks(test)) => {
                let args: Vec<_> = args.iter().map(|arg| arg.name.as_str()).collect();
                Err(lacks(&name.text, test, &args))
            }
        }
    }

    /// Checks that there is an event that it suits; what is known of every record needs none.
    fn check_any(&self, candidates: &[&str], declared: Option<&EventIndex>) -> Result<(), Fault> {
        let expression = &self.parsed.expression;
        let events = candidates.iter().filter_map(|name| find(declared?, name));
        let mut args = BTreeSet::new();
        let mut differs = None;
        for event in events {
            match (Subject { name: &event.name, args: &event.args, has_text: true }).compile(expression) {
                Ok(_) => return Ok(()),
                Err(Unfit::Differs(fault)) => _ = differs.get_or_insert(fault),
                Err(Unfit::Lacks(_)) => args.extend(event.args.into_iter().map(|arg| arg.name)),
            }
        }
        if let Some(fault) = differs {
            return Err(fault);
        }
        match (Subject { name: "", args: &[], has_text: true }).compile(expression) {
            Ok(_) => return Ok(()),
            Err(Unfit::Differs(fault)) => return Err(fault),
            Err(Unfit::Lacks(test)) if declared.is_none() => return Err(nothing_declared(test)),
            Err(Unfit::Lacks(_)) => {}
        }
        let mut tests = Vec::new();
        expression.for_each_test(&mut |test| tests.push(test));
        let is_known = |name: &str| ALWAYS.contains(&name) || args.contains(name);
        if let Some(test) = tests.iter().find(|test| !is_known(&test.name.text)) {
            let args: Vec<_> = args.iter().map(String::as_str).collect();
            return Err(lacks("no event that is asked for", test, &args));
        }
        let at = tests.first().map_or(0, |test| test.name.at.start)..tests.last().map_or(0, |test| test.name.at.end);
        Err(Fault::new(at, "no event that is asked for has all of these arguments")
            .help("give several filters, each with its events in front: EVENT: EXPRESSION"))
    }
}

fn find(declared: &EventIndex, name: &str) -> Option<EventDecl> {
    declared.get(name)?.event
}

fn nothing_declared(test: &Test) -> Fault {
    Fault::new(test.name.at.clone(), "no trace-events file was given or found, so no arguments are known")
        .help("take the trace-events-all of the build that wrote the trace")
}

fn lacks(who: &str, test: &Test, args: &[&str]) -> Fault {
    /// As many names as are listed.
    const SHOWN: usize = 12;

    let name = &test.name;
    let has = if who.starts_with("no ") { "has an" } else { "has no" };
    let fault = Fault::new(name.at.clone(), format!("{who} {has} argument {}", name.text));
    match nearest(&name.text, args.iter().chain(&ALWAYS).copied()) {
        Some(nearest) => fault.help(format!("did you mean {nearest}?")),
        None if args.is_empty() => fault.help("there are none"),
        None if args.len() <= SHOWN => fault.help(format!("there are {}", args.join(", "))),
        None => fault,
    }
}
