//! Which id an event has in a file that is put together from several.
//!
//! An id means one name in the whole output, or none. Ids stay as they are where they can; those that mean something else already
//! become the smallest free ones.

use std::collections::{HashMap, HashSet};

use simpletrace_format::{EventId, MappingRecord, Names};

/// The ids of the output, and what those of the current section of the input have become.
#[derive(Default)]
pub(super) struct Ids {
    /// What ids mean in the output.
    names: Names,
    by_name: HashMap<String, EventId>,
    /// Ids of the output that have records and no name: no name may come upon them.
    unnamed: HashSet<EventId>,
    /// No id below is free.
    lowest_free: u64,
    /// How many headers have come.
    sections: u64,
    /// Ids of the current section by those of its file; the frequent ones by index.
    dense: Vec<Option<EventId>>,
    sparse: HashMap<EventId, EventId>,
}

/// What has become of a name.
pub(super) enum Named {
    /// The id has the name in the output.
    Known(EventId),
    /// It needs a mapping record.
    New(EventId),
    /// There are too many names.
    Full,
}

/// Ids below are looked up by index; QEMU's are below 6,000.
const DENSE_IDS: u64 = 1 << 16;

/// Ids without a name that are remembered, as many as names; a file with more is noise.
const MAX_UNNAMED: usize = Names::MAX_SLOTS;

impl Ids {
    /// Forgets what ids meant: another header has come.
    pub(super) fn start_section(&mut self) {
        self.sections += 1;
        self.dense.clear();
        self.sparse.clear();
    }

    pub(super) const fn has_sections(&self) -> bool {
        self.sections > 0
    }

    pub(super) const fn is_first_section(&self) -> bool {
        self.sections == 1
    }

    /// Returns what an id of the current section has become, `None` if that is not known yet.
    #[inline]
    pub(super) fn get(&self, id: EventId) -> Option<EventId> {
        match self.dense.get(id.0 as usize) {
            Some(&known) if id.0 < DENSE_IDS => known,
            _ => self.sparse.get(&id).copied(),
        }
    }

    /// Forgets what an id of the current section has become, as it means something else from here on.
    pub(super) fn forget(&mut self, id: EventId) {
        self.set(id, None);
    }

    fn set(&mut self, id: EventId, known: Option<EventId>) {
        if id.0 < DENSE_IDS {
            let index = id.0 as usize;
            if self.dense.len() <= index {
                self.dense.resize(index + 1, None);
            }
            self.dense[index] = known;
        } else if let Some(known) = known {
            self.sparse.insert(id, known);
        } else {
            self.sparse.remove(&id);
        }
    }

    /// Gives an id of the current section, and its name there, an id of the output.
    pub(super) fn name(&mut self, id: EventId, name: &str) -> Named {
        let meant = self.names.slot(id).map(|slot| self.names.name(slot));
        let known = self.by_name.get(name).copied();
        // Before the first record without a name, in this very section, the id may have got none.
        let is_free = meant.is_none() && (!self.unnamed.contains(&id) || self.get(id) == Some(id));
        let chosen = match known {
            _ if meant == Some(name) => id,
            // The first section's ids stay, even two of one name.
            Some(known) if self.sections > 1 || !is_free => known,
            _ if is_free => id,
            _ => self.free_id(),
        };
        if self.names.slot(chosen).is_some() {
            self.set(id, Some(chosen));
            return Named::Known(chosen);
        }
        match self.names.map(&MappingRecord { offset: 0, id: chosen, name }) {
            simpletrace_format::Mapped::Full => Named::Full,
            _ => {
                self.by_name.entry(name.to_owned()).or_insert(chosen);
                self.set(id, Some(chosen));
                Named::New(chosen)
            }
        }
    }

    /// Gives an id of the current section that has no name there an id of the output that has none either.
    pub(super) fn leave_unnamed(&mut self, id: EventId) -> EventId {
        let has_room = self.unnamed.len() < MAX_UNNAMED;
        if self.names.slot(id).is_none() {
            if has_room {
                self.unnamed.insert(id);
                self.set(id, Some(id));
            }
            return id;
        }
        // The rest share one.
        let chosen = if has_room { self.free_id() } else { self.unnamed.iter().next().copied().unwrap_or(id) };
        if has_room {
            self.unnamed.insert(chosen);
            self.set(id, Some(chosen));
        }
        chosen
    }

    /// Returns the smallest id that the output has not used.
    fn free_id(&mut self) -> EventId {
        let mut id = EventId(self.lowest_free);
        while self.names.slot(id).is_some() || self.unnamed.contains(&id) {
            id.0 += 1;
        }
        self.lowest_free = id.0;
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(ids: &mut Ids, id: u64, name: &str) -> (u64, bool) {
        match ids.name(EventId(id), name) {
            Named::Known(id) => (id.0, false),
            Named::New(id) => (id.0, true),
            Named::Full => panic!("full"),
        }
    }

    #[test]
    fn the_first_section_keeps_its_ids_even_two_of_one_name() {
        let mut ids = Ids::default();
        ids.start_section();
        assert_eq!(name(&mut ids, 9, "a"), (9, true));
        assert_eq!(name(&mut ids, 1 << 40, "a"), (1 << 40, true));
        assert_eq!(name(&mut ids, 9, "a"), (9, false));
        assert_eq!(ids.get(EventId(9)), Some(EventId(9)));
        assert_eq!(ids.get(EventId(1 << 40)), Some(EventId(1 << 40)));
        assert_eq!(ids.get(EventId(8)), None);
    }

    #[test]
    fn a_later_section_gets_the_ids_of_its_names_or_the_smallest_free_ones() {
        let mut ids = Ids::default();
        ids.start_section();
        name(&mut ids, 0, "a");
        name(&mut ids, 1, "b");
        ids.start_section();
        assert_eq!(ids.get(EventId(0)), None);
        assert_eq!(name(&mut ids, 0, "b"), (1, false));
        assert_eq!(name(&mut ids, 1, "c"), (2, true));
        assert_eq!(name(&mut ids, 2, "d"), (3, true));
        assert_eq!(name(&mut ids, 7, "e"), (7, true));
        assert_eq!([0, 1, 2, 7].map(|id| ids.get(EventId(id)).unwrap().0), [1, 2, 3, 7]);
    }

    #[test]
    fn an_id_that_moves_within_a_section_keeps_one_name_in_the_output() {
        let mut ids = Ids::default();
        ids.start_section();
        name(&mut ids, 0, "a");
        assert_eq!(name(&mut ids, 0, "b"), (1, true));
        assert_eq!(name(&mut ids, 0, "a"), (0, false));
        assert_eq!(ids.get(EventId(0)), Some(EventId(0)));
    }

    #[test]
    fn ids_without_a_name_and_those_with_one_never_meet() {
        let mut ids = Ids::default();
        ids.start_section();
        name(&mut ids, 0, "a");
        assert_eq!(ids.leave_unnamed(EventId(5)), EventId(5));
        ids.start_section();
        // Unnamed here, but another's name there; and the other way round.
        assert_eq!(ids.leave_unnamed(EventId(0)), EventId(1));
        assert_eq!(name(&mut ids, 5, "b"), (2, true));
        assert_eq!(name(&mut ids, 1, "c"), (3, true));
    }

    #[test]
    fn an_id_named_late_in_its_own_section_stays() {
        let mut ids = Ids::default();
        ids.start_section();
        assert_eq!(ids.leave_unnamed(EventId(5)), EventId(5));
        assert_eq!(name(&mut ids, 5, "late"), (5, true));
    }

    #[test]
    fn a_flood_of_ids_is_bounded() {
        let mut ids = Ids::default();
        ids.start_section();
        name(&mut ids, 0, "a");
        for id in 1..3 * MAX_UNNAMED as u64 {
            ids.leave_unnamed(EventId(id << 20));
        }
        assert_eq!(ids.unnamed.len(), MAX_UNNAMED);
        assert_eq!(ids.sparse.len(), MAX_UNNAMED);
        ids.start_section();
        assert_ne!(ids.leave_unnamed(EventId(0)), EventId(0));
    }
}
