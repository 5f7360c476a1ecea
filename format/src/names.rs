//! The names that a file's mapping records give to event ids.

use std::collections::HashMap;

use crate::{EventId, MappingRecord};

/// Which name an id means, at the current place in a file.
///
/// Every mapping that says something new gets a *slot*, a small number counted from 0 that stays its own for the whole file: what
/// a caller knows about the event goes into a `Vec` under it.
///
/// # Resources
///
/// A file can make this table grow, so it is capped: [`Names::MAX_SLOTS`] slots and [`Names::MAX_TOTAL_BYTES`] of names, about
/// 4 MiB in all.
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
    /// The most pairs of id and name that are kept: three times the events of QEMU's largest binary.
    pub const MAX_SLOTS: usize = 1 << 14;
    /// The most bytes of names that are kept; QEMU's largest binary has 100 KB of them.
    pub const MAX_TOTAL_BYTES: usize = 1 << 21;

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
    // Always, as in the loops around the readers.
    #[inline(always)]
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

    /// Returns the names in the order of their slots.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| &**name)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn map(names: &mut Names, id: u64, name: &str) -> Mapped {
        let id = EventId(id);
        names.map(&MappingRecord { offset: 0, id, name })
    }

    #[test]
    fn a_new_table_knows_nothing() {
        let names = Names::default();
        assert!(names.is_empty());
        assert_eq!(names.len(), 0);
        assert_eq!(names.slot(EventId(0)), None);
        assert_eq!(names.slot(EventId(u64::MAX)), None);
        assert_eq!(names.name(0), "");
    }

    #[test]
    fn slots_are_counted_in_the_order_of_the_mappings() {
        let mut names = Names::default();
        assert_eq!(map(&mut names, 9, "nine"), Mapped::New(0));
        assert_eq!(map(&mut names, 2, "two"), Mapped::New(1));
        assert_eq!(names.slot(EventId(9)), Some(0));
        assert_eq!(names.slot(EventId(2)), Some(1));
        assert_eq!(names.slot(EventId(3)), None);
        assert_eq!((names.name(0), names.name(1), names.name(2)), ("nine", "two", ""));
        assert_eq!(names.len(), 2);
        assert!(!names.is_empty());
    }

    #[test]
    fn a_mapping_that_is_repeated_changes_nothing() {
        let mut names = Names::default();
        let _ = map(&mut names, 7, "a");
        assert_eq!(map(&mut names, 7, "a"), Mapped::Again(0));
        assert_eq!(names.len(), 1);
    }

    #[test]
    fn an_id_that_gets_another_name_moves_and_its_old_slot_keeps_the_old_name() {
        let mut names = Names::default();
        let _ = map(&mut names, 7, "a");
        assert_eq!(map(&mut names, 7, "b"), Mapped::Moved { before: 0, now: 1 });
        assert_eq!(names.slot(EventId(7)), Some(1));
        assert_eq!((names.name(0), names.name(1)), ("a", "b"));
    }

    #[test]
    fn an_id_that_moves_back_gets_a_slot_of_its_own_again() {
        let mut names = Names::default();
        let _ = map(&mut names, 7, "a");
        let _ = map(&mut names, 7, "b");
        assert_eq!(map(&mut names, 7, "a"), Mapped::Moved { before: 1, now: 2 });
        assert_eq!(names.name(2), "a");
    }

    #[test]
    fn two_ids_with_one_name_have_a_slot_each() {
        let mut names = Names::default();
        assert_eq!(map(&mut names, 1, "user_do_sigreturn"), Mapped::New(0));
        assert_eq!(map(&mut names, 2, "user_do_sigreturn"), Mapped::New(1));
    }

    #[test]
    fn ids_of_any_size_are_kept_and_great_ones_take_no_more_room() {
        let ids = [0, DENSE_IDS - 1, DENSE_IDS, DENSE_IDS + 1, u64::MAX >> 1, 1 << 63, u64::MAX];
        let mut names = Names::default();
        for (slot, id) in (0..).zip(ids) {
            assert_eq!(map(&mut names, id, &format!("n{id}")), Mapped::New(slot));
        }
        for (slot, id) in (0..).zip(ids) {
            assert_eq!(names.slot(EventId(id)), Some(slot));
            assert_eq!(names.name(slot), format!("n{id}"));
            assert_eq!(map(&mut names, id, &format!("n{id}")), Mapped::Again(slot));
        }
        assert_eq!(names.slot(EventId(DENSE_IDS + 2)), None);
        assert_eq!(names.dense.len(), DENSE_IDS as usize);
        assert_eq!(names.sparse.len(), 5);
        assert_eq!(map(&mut names, u64::MAX, "other"), Mapped::Moved { before: 6, now: 7 });
    }

    #[test]
    fn a_table_with_all_its_slots_is_full_but_still_knows_what_it_has() {
        let mut names = Names::default();
        for id in 0..Names::MAX_SLOTS as u64 {
            assert_eq!(map(&mut names, id, "n"), Mapped::New(id as u32));
        }
        assert_eq!(names.len(), 16_384);
        assert_eq!(map(&mut names, 1 << 40, "n"), Mapped::Full);
        assert_eq!(map(&mut names, 3, "moved"), Mapped::Full);
        assert_eq!(map(&mut names, 3, "n"), Mapped::Again(3));
        assert_eq!(names.slot(EventId(1 << 40)), None);
        assert_eq!(names.slot(EventId(3)), Some(3));
        assert_eq!(names.len(), 16_384);
    }

    #[test]
    fn a_table_is_full_when_its_names_have_two_mebibytes() {
        let mut names = Names::default();
        let longest = "n".repeat(1024);
        for id in 0..2 * 1024 - 1 {
            assert_eq!(map(&mut names, id, &longest), Mapped::New(id as u32));
        }
        assert_eq!(map(&mut names, 1 << 40, &"n".repeat(1023)), Mapped::New(2_047));
        assert_eq!(map(&mut names, 1 << 41, "no"), Mapped::Full);
        assert_eq!(map(&mut names, 1 << 41, "n"), Mapped::New(2_048));
        assert_eq!(map(&mut names, 1 << 42, "n"), Mapped::Full);
    }
}
