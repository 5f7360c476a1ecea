//! What a file of columns says of itself.

use serde_json::{Value, json};
use simpletrace_format::DroppedRecord;

use super::{SCHEMA, TOOL};
use crate::trace::{FileSummary, Missing, Moment};

/// Gaps that are listed one by one.
const MAX_GAPS: usize = 1000;

/// Facts of a file of columns, by keys that begin with `simpletrace.`.
pub(crate) struct FileFacts {
    event: Option<String>,
    gaps: Vec<Value>,
    gap_count: u64,
    /// Stretches that could not be read, and ends that are cut; the first ones one by one.
    missing: Vec<Value>,
    missing_count: u64,
}

impl FileFacts {
    /// Of a file of one event, or of many.
    pub(crate) fn new(event: Option<&str>) -> Self {
        Self { event: event.map(str::to_owned), gaps: Vec::new(), gap_count: 0, missing: Vec::new(), missing_count: 0 }
    }

    /// Takes in a gap.
    pub(crate) fn add_gap(&mut self, record: &DroppedRecord) {
        self.gap_count += 1;
        if self.gaps.len() < MAX_GAPS {
            self.gaps.push(json!({ "noticed_ns": record.timestamp_ns, "count": record.known_count() }));
        }
    }

    /// Takes in a stretch that could not be read.
    pub(crate) fn add_missing(&mut self, missing: &Missing) {
        self.missing_count += 1;
        if self.missing.len() < MAX_GAPS {
            let time_ns = |moment: &Moment| moment.timestamp_ns;
            let (from_ns, to_ns) = (missing.from.as_ref().map(time_ns), missing.to.as_ref().map(time_ns));
            self.missing.push(json!({ "from_ns": from_ns, "to_ns": to_ns }));
        }
    }

    /// What is known before the first record.
    pub(crate) fn at_once(&self) -> impl Iterator<Item = (String, String)> {
        let facts = [
            ("schema", Some(SCHEMA)),
            ("tool", Some(TOOL)),
            ("clock", Some("monotonic clock of the traced host, ns")),
            ("event", self.event.as_deref()),
        ];
        facts
            .into_iter()
            .filter_map(|(key, value)| Some((key_of(key), value?.to_owned())))
            .collect::<Vec<_>>()
            .into_iter()
    }

    /// What is known behind the last one.
    pub(crate) fn in_the_end(&self, sources: &[FileSummary]) -> impl Iterator<Item = (String, String)> + use<> {
        let facts = [("sources", Self::sources(sources)), ("gaps", self.gaps(sources))];
        facts.into_iter().map(|(key, value)| (key_of(key), value.to_string()))
    }

    /// The gaps, and what could not be read; the first ones one by one.
    pub(crate) fn gaps(&self, sources: &[FileSummary]) -> Value {
        // Not what the records add up to, which in version 0 means something only modulo 2^32.
        let dropped = sources.iter().fold(0_u64, |dropped, source| dropped.saturating_add(source.dropped));
        let missing = json!({ "count": self.missing_count, "list": self.missing });
        json!({ "count": self.gap_count, "dropped": dropped, "list": self.gaps, "missing": missing })
    }

    /// The files that it was made from.
    pub(crate) fn sources(sources: &[FileSummary]) -> Value {
        let source = |source: &FileSummary| {
            let wall_offset_ns = source.facts.as_ref().and_then(|facts| facts.wall_offset_ns());
            json!({ "file": source.name, "wall_offset_ns": wall_offset_ns })
        };
        sources.iter().map(source).collect()
    }
}

fn key_of(key: &str) -> String {
    format!("simpletrace.{key}")
}
