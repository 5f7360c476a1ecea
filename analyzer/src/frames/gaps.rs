//! The table `gaps`: the stretches of time that events are missing from.

use polars::prelude::*;
use simpletrace_format::{DroppedRecord, Version};

use crate::trace::{Gap, Item, Missing, Outside};

/// The table while it is filled.
#[derive(Default)]
pub(super) struct Gaps {
    from_ns: Vec<Option<u64>>,
    to_ns: Vec<Option<u64>>,
    count: Vec<Option<u64>>,
    pid: Vec<Option<u32>>,
    /// Whether the file says where its gaps begin and end.
    knows_gaps: bool,
    version: Option<Version>,
    /// The time of the file's first record, which is known of the first file only.
    start_ns: Option<u64>,
    /// The dropped record before, in the same file, if it says nothing of when its loss began.
    before_ns: Option<u64>,
    /// The row whose end is not known yet.
    open: Option<usize>,
    /// A gap that began before the time that was asked for, and has not ended yet.
    early: Option<Gap>,
}

impl Gaps {
    pub(super) fn schema() -> Schema {
        [
            ("from_ns", DataType::UInt64),
            ("to_ns", DataType::UInt64),
            ("count", DataType::UInt64),
            ("pid", DataType::UInt32),
        ]
        .into_iter()
        .map(|(name, ty)| Field::new(name.into(), ty))
        .collect()
    }

    #[cold]
    pub(super) fn take(&mut self, item: &Item<'_>) {
        match item {
            Item::Start(start_ns) => self.start_ns = Some(*start_ns),
            Item::Section(section) => {
                self.end_early();
                (self.knows_gaps, self.start_ns, self.before_ns, self.open) = (false, None, None, None);
                self.version = Some(section.header.version);
            }
            // As `pairing` does.
            Item::Fact(fact) => self.knows_gaps |= fact.text.starts_with("recorder="),
            Item::Gap(gap) => self.gap(gap),
            // Only what reaches into the time that was asked for is a row.
            Item::Outside(Outside { gap, is_behind: false }) => {
                let DroppedRecord { timestamp_ns, count, .. } = gap.record;
                let begins = count > 0 && (self.knows_gaps || gap.record.known_count().is_none());
                self.early = begins.then_some(*gap);
                self.before_ns = Some(timestamp_ns);
            }
            Item::Outside(Outside { gap, is_behind: true }) => {
                let begins = self.knows_gaps || gap.record.known_count().is_none();
                if gap.record.count == 0 || !begins {
                    self.gap(gap);
                }
            }
            Item::Missing(Missing { from, to }) => {
                let time_ns = |moment: &crate::trace::Moment| moment.timestamp_ns;
                self.push(from.as_ref().map(time_ns), to.as_ref().map(time_ns), None, from.or(*to).map(|at| at.pid));
            }
            Item::Event(_) | Item::Mapping(_) => {}
        }
    }

    fn gap(&mut self, gap: &Gap) {
        self.end_early();
        let DroppedRecord { timestamp_ns, pid, count, .. } = gap.record;
        if self.version == Some(Version::V0) {
            // Neither its time nor its count means anything by itself.
            return self.push(None, None, None, Some(pid));
        }
        if count == 0 {
            if let Some(row) = self.open.take() {
                self.to_ns[row] = Some(timestamp_ns);
            }
        } else if self.knows_gaps || gap.record.known_count().is_none() {
            self.open = Some(self.from_ns.len());
            self.push(Some(timestamp_ns), None, gap.record.known_count(), Some(pid));
        } else {
            self.push(self.before_ns.or(self.start_ns), Some(timestamp_ns), Some(count), Some(pid));
        }
        self.before_ns = Some(timestamp_ns);
    }

    /// One that goes on in the time that was asked for is of it.
    fn end_early(&mut self) {
        if let Some(early) = self.early.take() {
            self.gap(&early);
        }
    }

    fn push(&mut self, from_ns: Option<u64>, to_ns: Option<u64>, count: Option<u64>, pid: Option<u32>) {
        self.from_ns.push(from_ns);
        self.to_ns.push(to_ns);
        self.count.push(count);
        self.pid.push(pid);
    }

    pub(super) fn frame(mut self) -> PolarsResult<DataFrame> {
        self.end_early();
        let Self { from_ns, to_ns, count, pid, .. } = self;
        DataFrame::new(
            from_ns.len(),
            vec![
                Column::new("from_ns".into(), from_ns),
                Column::new("to_ns".into(), to_ns),
                Column::new("count".into(), count),
                Column::new("pid".into(), pid),
            ],
        )
    }
}
