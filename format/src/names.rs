//! The names that a file's mapping records give to event ids.

use std::collections::HashMap;

use crate::{EventId, MappingRecord};

/// Which name an id means, at the current place in a file.
///
/// Every pair of id and name gets a *slot*, a small number counted from 0 that stays its own for the whole file: what a caller
/// knows about the event goes into a `Vec` under it.
///
/// # Resources
///
/// A file can make this table grow, so it is capped: [`Names::MAX_SLOTS`] slots and [`Names::MAX_TOTAL_BYTES`] of names, about
/// 20 MiB in all.
#[derive(Debug, Clone, Default)]
pub struct Names {
    names: Vec<Box<str>>,
    total_bytes: usize,
    /// Slots of the ids below [`DENSE_IDS`], by id; `NO_SLOT` where there is none.
    dense: Vec<u32>,
    sparse: HashMap<EventId, u32>,
}

/// What a mapping record did to a [`Names`] table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Mapped {
    /// The id was unknown; it now has this slot.
    New(u32),
    /// The id already means this name.
    Again(u32),
    /// The id meant something else (`before`); from here on it means this name.
    Moved {
        /// The slot that the id had.
        before: u32,
        /// The slot that it has now.
        now: u32,
    },
    /// The table is full; the record changed nothing.
    Full,
}

const NO_SLOT: u32 = u32::MAX;

/// Ids below this are looked up by index. QEMU counts its ids from 0 and has about 5,500.
const DENSE_IDS: u64 = 1 << 16;

impl Names {
    /// The most pairs of id and name that are kept: over ten times the events of QEMU's largest binary.
    pub const MAX_SLOTS: usize = 1 << 16;
    /// The most bytes of names that are kept; QEMU's largest binary has 100 KB of them.
    pub const MAX_TOTAL_BYTES: usize = 1 << 24;

    /// Takes in a mapping record.
    pub fn map(&mut self, record: &MappingRecord<'_>) -> Mapped {
        let before = self.slot(record.id);
        if let Some(slot) = before
            && self.name(slot) == record.name
        {
            return Mapped::Again(slot);
        }
        if self.names.len() == Self::MAX_SLOTS || self.total_bytes + record.name.len() > Self::MAX_TOTAL_BYTES {
            return Mapped::Full;
        }
        let now = self.names.len() as u32;
        self.names.push(record.name.into());
        self.total_bytes += record.name.len();
        if record.id.0 < DENSE_IDS {
            let index = record.id.0 as usize;
            if self.dense.len() <= index {
                self.dense.resize(index + 1, NO_SLOT);
            }
            self.dense[index] = now;
        } else {
            self.sparse.insert(record.id, now);
        }
        before.map_or(Mapped::New(now), |before| Mapped::Moved { before, now })
    }

    /// Returns the slot of an id, `None` if nothing has named it yet.
    #[inline]
    #[must_use]
    pub fn slot(&self, id: EventId) -> Option<u32> {
        let slot = match id.0 {
            0..DENSE_IDS => self.dense.get(id.0 as usize),
            _ => self.sparse.get(&id),
        };
        slot.copied().filter(|&slot| slot != NO_SLOT)
    }

    /// Returns the name behind a slot that this table gave out, "" for any other number.
    #[must_use]
    pub fn name(&self, slot: u32) -> &str {
        self.names.get(slot as usize).map_or("", |name| name)
    }

    /// Returns the number of slots given out.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Tells whether nothing has been mapped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}
