//! What a file that is put together from several may say of itself: what holds for all of them.

use std::collections::BTreeSet;

use simpletrace_format::Facts;

/// The facts that hold for all traces taken in.
#[derive(Default)]
pub(crate) struct CommonFacts {
    facts: Option<Facts>,
    /// Keys of what holds for some only.
    pub(super) differing: BTreeSet<String>,
}

impl CommonFacts {
    /// Takes in what a trace says of itself.
    pub(crate) fn add(&mut self, facts: &Facts) {
        let Some(common) = &mut self.facts else {
            let mut facts = facts.clone();
            // What is put together is no part.
            facts.remove(Facts::PART);
            self.facts = Some(facts);
            return;
        };
        self.differing.extend(missing(common, facts));
        for key in untrue(common, facts) {
            common.remove(&key);
            self.differing.insert(key);
        }
    }

    /// Returns the facts that hold for all.
    pub(crate) fn into_facts(self) -> Facts {
        self.facts.unwrap_or_default()
    }
}

/// The keys of `output` that do not hold for a trace with these facts.
pub(super) fn untrue(output: &Facts, facts: &Facts) -> Vec<String> {
    // One boot of a host has one monotonic clock, whenever it was read.
    let same_clock = output.get(Facts::BOOT_ID).is_some() && output.get(Facts::BOOT_ID) == facts.get(Facts::BOOT_ID);
    let holds = |key, value| facts.get(key) == Some(value) || (key == Facts::ANCHOR_NS && same_clock);
    output.iter().filter(|&(key, value)| !holds(key, value)).map(|(key, _)| key.to_owned()).collect()
}

/// The keys of a trace that the output says nothing of.
pub(super) fn missing(output: &Facts, facts: &Facts) -> Vec<String> {
    let is_missing = |key| key != Facts::PART && output.get(key).is_none();
    facts.iter().filter(|&(key, _)| is_missing(key)).map(|(key, _)| key.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn common(traces: &[&[&str]]) -> (Vec<String>, Vec<String>) {
        let mut common = CommonFacts::default();
        for texts in traces {
            let mut facts = Facts::default();
            texts.iter().for_each(|text| facts.add(text).unwrap());
            common.add(&facts);
        }
        let differing = common.differing.iter().cloned().collect();
        (common.into_facts().texts().map(str::to_owned).collect(), differing)
    }

    fn strings(texts: &[&str]) -> Vec<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_equal_stays_and_what_differs_goes() {
        let (kept, differing) = common(&[&["host=h", "pid=1", "part=1"], &["pid=2", "part=2", "host=h", "x=y"]]);
        assert_eq!((kept, differing), (strings(&["host=h"]), strings(&["pid", "x"])));
    }

    #[test]
    fn the_first_anchor_stays_for_traces_of_one_boot() {
        let parts: [&[&str]; 2] = [&["boot_id=b", "anchor_ns=1,2"], &["anchor_ns=5,7", "boot_id=b"]];
        assert_eq!(common(&parts), (strings(&["boot_id=b", "anchor_ns=1,2"]), vec![]));
        let boots: [&[&str]; 3] = [parts[0], parts[1], &["boot_id=c", "anchor_ns=1,2", "host=h"]];
        // That its anchor is the same is chance, and right all the same.
        assert_eq!(common(&boots), (strings(&["anchor_ns=1,2"]), strings(&["boot_id", "host"])));
        let unknown: [&[&str]; 2] = [&["anchor_ns=1,2"], &["anchor_ns=5,7"]];
        assert_eq!(common(&unknown), (vec![], strings(&["anchor_ns"])));
    }

    #[test]
    fn a_trace_that_says_nothing_takes_everything_away() {
        assert_eq!(common(&[&["host=h", "part=3"], &[]]), (vec![], strings(&["host"])));
        assert_eq!(common(&[&[], &["host=h"]]), (vec![], strings(&["host"])));
        assert_eq!(common(&[]), (vec![], vec![]));
    }
}
