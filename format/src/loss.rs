//! How much a file lacks, by its `dropped` records.

use crate::{DroppedRecord, Version};

/// Adds up the counts of a file's `dropped` records.
///
/// In version 0 a count is no number of lost records: the recorder counts its whole backlog as lost although the last ring-full of it
/// still follows, and the next count makes up for that with a number near 2^32. Only the sum over the whole file, modulo 2^32, is
/// what was lost; on the way it may be too high. In later versions each count is right by itself, but for
/// [`DroppedRecord::UNKNOWN`], which is counted apart.
///
/// ```
/// use simpletrace_format::{DroppedRecord, Loss, Version};
///
/// let mut loss = Loss::new(Version::V0);
/// for count in [293, 4_294_967_090] {
///     loss.add(&DroppedRecord { offset: 0, timestamp_ns: 0, pid: 0, count });
/// }
/// assert_eq!(loss.records(), 87);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    version: Version,
    sum: u64,
    unknown_gaps: u64,
}

impl Loss {
    /// Starts with no loss, for a file of the given version.
    #[must_use]
    pub const fn new(version: Version) -> Self {
        Self { version, sum: 0, unknown_gaps: 0 }
    }

    /// Takes in a `dropped` record of the file.
    pub const fn add(&mut self, record: &DroppedRecord) {
        match (self.version, record.known_count()) {
            (Version::V0, _) => self.sum = self.sum.wrapping_add(record.count) & u32::MAX as u64,
            (Version::V2 | Version::V3 | Version::V4, Some(count)) => self.sum = self.sum.saturating_add(count),
            (Version::V2 | Version::V3 | Version::V4, None) => self.unknown_gaps += 1,
        }
    }

    /// Returns in how many gaps an unknown number of records is missing, beside those that are counted.
    #[must_use]
    pub const fn unknown_gaps(&self) -> u64 {
        self.unknown_gaps
    }

    /// Returns how many records were lost, if all of the file's `dropped` records have been taken in.
    #[must_use]
    pub const fn records(&self) -> u64 {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(version: Version, counts: &[u64]) -> u64 {
        let mut loss = Loss::new(version);
        for &count in counts {
            loss.add(&DroppedRecord { offset: 0, timestamp_ns: 0, pid: 0, count });
        }
        loss.records()
    }

    #[test]
    fn the_counts_of_version_0_add_up_modulo_two_to_the_32nd() {
        assert_eq!(loss(Version::V0, &[]), 0);
        assert_eq!(loss(Version::V0, &[293]), 293);
        assert_eq!(loss(Version::V0, &[293, 4_294_967_090]), 87);
        assert_eq!(loss(Version::V0, &[1 << 32 | 5, u64::MAX]), 4);
    }

    #[test]
    fn the_counts_of_later_versions_are_the_loss() {
        for version in [Version::V2, Version::V3, Version::V4] {
            assert_eq!(loss(version, &[293, 4_294_967_090]), 4_294_967_383);
            assert_eq!(loss(version, &[u64::MAX - 1, 2]), u64::MAX);
        }
    }

    #[test]
    fn an_unknown_count_is_never_added_up() {
        for version in [Version::V2, Version::V3, Version::V4] {
            assert_eq!(loss(version, &[7, DroppedRecord::UNKNOWN, 0, 5, DroppedRecord::UNKNOWN]), 12);
        }
        let mut loss = Loss::new(Version::V4);
        for count in [DroppedRecord::UNKNOWN, 3, DroppedRecord::UNKNOWN, 0] {
            loss.add(&DroppedRecord { offset: 0, timestamp_ns: 0, pid: 0, count });
        }
        assert_eq!((loss.records(), loss.unknown_gaps()), (3, 2));
    }
}
