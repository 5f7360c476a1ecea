//! What filters come to for each event, in words.

use std::collections::BTreeMap;

use simpletrace_format::events::EventIndex;

use super::{Conditions, LeftOut, find};
use crate::filter::Globs;
use crate::findings::count;

/// As many as are listed; of the rest there is a number.
const SHOWN: usize = 20;

impl Conditions {
    /// Says what is asked of the records of each event that is asked for and declared, which events are not filtered, and which left out.
    pub(crate) fn explain(&self, globs: &Globs, declared: &EventIndex) -> String {
        let mut names: Vec<_> = declared.names().filter(|name| globs.selects(name)).collect();
        names.sort_unstable();
        let mut text = String::new();
        let mut all = Vec::new();
        let mut left_out: BTreeMap<LeftOut, Vec<&str>> = BTreeMap::new();
        for name in names {
            let event = find(declared, name);
            let args = event.as_ref().map_or(&[][..], |event| &event.args);
            match self.choose(name, args, true) {
                Ok(Some(predicate)) => text += &format!("{name}: {predicate}\n"),
                Ok(None) => all.push(name),
                Err(why) => left_out.entry(why).or_default().push(name),
            }
        }
        if !all.is_empty() {
            text += &format!("all records: {}\n", list(&all));
        }
        let reasons = left_out.len();
        for (why, names) in left_out.into_iter().take(SHOWN) {
            text += &match why {
                LeftOut::Lacks(arg) => format!("left out, without {arg}: {}\n", list(&names)),
                LeftOut::Differs(why) => format!("left out: {why}\n"),
                LeftOut::Never => format!("left out, by name: {}\n", list(&names)),
            };
        }
        if reasons > SHOWN {
            text += &format!("left out, for {} more\n", count((reasons - SHOWN) as u64, "reason"));
        }
        if let Err(LeftOut::Lacks(_)) = self.choose("", &[], true) {
            text += "left out: events that are not declared\n";
        }
        text
    }
}

fn list(names: &[&str]) -> String {
    let shown = names[..names.len().min(SHOWN)].join(", ");
    let more = names.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}: {shown}{more}", count(names.len() as u64, "event"))
}
