//! Records of one kind of event, copied, and where their arguments are.

use simpletrace_format::events::ArgType;
use simpletrace_format::{EventRecord, Header, Payload, Version};

/// What a block holds before it is handed on: few enough to stay in a core's cache.
const MAX_PAYLOAD_BYTES: usize = 1 << 17;
const MAX_ROWS: usize = 1 << 12;

/// Records of one file.
#[derive(Default)]
pub(crate) struct Block {
    pub(crate) ts_ns: Vec<u64>,
    pub(crate) pids: Vec<u32>,
    payloads: Vec<u8>,
    /// Where each payload ends.
    ends: Vec<u32>,
}

/// Where the arguments of a block's records are.
#[derive(Default)]
pub(crate) struct Places {
    /// For each payload, where the first argument is; then, for each string, where it ends.
    runs: Vec<Vec<u32>>,
}

impl Block {
    /// Adds a record, with its arguments if they are wanted.
    #[inline]
    pub(crate) fn push(&mut self, record: &EventRecord<'_>, has_args: bool) {
        let payload = if has_args { record.payload.bytes() } else { &[] };
        self.payloads.extend_from_slice(payload);
        self.ts_ns.push(record.timestamp_ns);
        self.pids.push(record.pid);
        // At most 128 KiB, and the 256 KiB of one record.
        self.ends.push(self.payloads.len() as u32);
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.ts_ns.is_empty()
    }

    pub(crate) const fn is_full(&self) -> bool {
        self.ts_ns.len() >= MAX_ROWS || self.payloads.len() >= MAX_PAYLOAD_BYTES
    }

    pub(crate) fn clear(&mut self) {
        self.ts_ns.clear();
        self.pids.clear();
        self.payloads.clear();
        self.ends.clear();
    }

    fn starts(&self) -> impl Iterator<Item = u32> {
        std::iter::once(0).chain(self.ends.iter().copied())
    }

    /// The payloads of its records.
    pub(crate) fn payloads(&self, header: Header) -> impl Iterator<Item = Payload<'_>> {
        let bounds = self.starts().zip(&self.ends);
        bounds.map(move |(start, &end)| Payload::of(&self.payloads[start as usize..end as usize], header))
    }

    /// Looks for these arguments in all payloads; tells whether all of them have them.
    pub(crate) fn find(&self, types: impl Iterator<Item = ArgType>, header: Header, places: &mut Places) -> bool {
        if header.version == Version::V0 {
            // Its words do not say what they are.
            return false;
        }
        let mut used = 1;
        places.runs.resize_with(1.max(places.runs.len()), Vec::new);
        places.runs[0].clear();
        places.runs[0].extend(self.starts().take(self.ends.len()));
        let mut words = 0;
        for ty in types {
            if !ty.is_string() {
                words += 8;
                continue;
            }
            if places.runs.len() == used {
                places.runs.push(Vec::new());
            }
            let [.., before, run] = &mut places.runs[..=used] else { return false };
            run.clear();
            let mut fits = true;
            run.extend(before.iter().zip(&self.ends).map(|(&place, &end)| {
                let length =
                    self.payloads[..end as usize].get((place + words) as usize..).and_then(<[u8]>::first_chunk);
                let after = length.map_or(u64::MAX, |length| {
                    u64::from(place) + u64::from(words) + 4 + u64::from(header.byte_order.u32(length))
                });
                fits &= after <= u64::from(end);
                after as u32
            }));
            if !fits {
                return false;
            }
            used += 1;
            words = 0;
        }
        places.runs[used - 1].iter().zip(&self.ends).all(|(&place, &end)| place + words <= end)
    }

    /// The words that stand so many bytes behind the last string before them, which is the `run`th, or the beginning.
    #[inline]
    pub(crate) fn words(
        &self,
        header: Header,
        places: &Places,
        run: usize,
        behind: u32,
    ) -> impl ExactSizeIterator<Item = u64> {
        places.runs[run].iter().map(move |&place| {
            let word = self.payloads.get((place + behind) as usize..).and_then(<[u8]>::first_chunk);
            word.map_or(0, |word| header.byte_order.u64(word))
        })
    }

    /// The strings that stand so many bytes behind the one before.
    #[inline]
    pub(crate) fn strings(
        &self,
        places: &Places,
        run: usize,
        behind: u32,
    ) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        let bounds = places.runs[run].iter().zip(&places.runs[run + 1]);
        bounds.map(move |(&place, &end)| {
            self.payloads.get((place + behind + 4) as usize..end as usize).unwrap_or_default()
        })
    }
}

#[cfg(test)]
mod tests {
    use simpletrace_format::events::{EventDecl, Mode, parse};
    use simpletrace_format::{ByteOrder, EventId};

    use super::*;
    use crate::columns::filler::Origin;
    use crate::columns::{EventTable, Wanted};

    const DECLARATION: &[u8] =
        b"e(int a, const char *first, bool b, uint64_t c, const char *second, const char *third, void *d) \"\"\n";

    fn decl() -> EventDecl {
        parse(DECLARATION, Mode::Lenient).events.remove(0)
    }

    fn payload(order: ByteOrder, words: [u64; 4], texts: [&[u8]; 3]) -> Vec<u8> {
        let word = |word: u64| match order {
            ByteOrder::Little => word.to_le_bytes(),
            ByteOrder::Big => word.to_be_bytes(),
        };
        let text = |text: &[u8]| {
            let length = text.len() as u32;
            [&if order == ByteOrder::Little { length.to_le_bytes() } else { length.to_be_bytes() }, text].concat()
        };
        let [a, b, c, d] = words.map(word);
        let [first, second, third] = texts.map(text);
        [&a[..], &first, &b, &c, &second, &third, &d].concat()
    }

    /// Adds records to one table row by row and to another as a block, which has to make no difference.
    fn both_ways(version: Version, order: ByteOrder, payloads: &[Vec<u8>], wanted: Wanted<'_>) {
        let header = Header { version, byte_order: order };
        let (mut rows, mut at_once) = (EventTable::new(Some(&decl()), wanted), EventTable::new(Some(&decl()), wanted));
        let (mut block, mut places) = (Block::default(), Places::default());
        for _ in 0..2 {
            for (at, payload) in payloads.iter().enumerate() {
                let payload = Payload::of(payload, header);
                let (timestamp_ns, pid) = (1_000 + at as u64, at as u32);
                block.push(&EventRecord { offset: 0, id: EventId(7), timestamp_ns, pid, payload }, at_once.has_args());
                rows.push(timestamp_ns, || timestamp_ns.checked_add_signed(-1_001), pid, payload);
            }
            let origin = Origin { header: Some(header), wall_offset_ns: Some(-1_001) };
            at_once.push_block(&block, origin, &mut places);
            block.clear();
        }
        assert_eq!(at_once.bytes(), rows.bytes());
        assert_eq!(at_once.oddities, rows.oddities);
        assert_eq!(at_once.take(), rows.take());
    }

    #[test]
    fn a_block_makes_the_table_that_its_rows_make() {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let plain = payload(order, [u64::MAX, 1, 1 << 63, 3], [b"disk0", b"", b"third"]);
            let odd = payload(order, [0, 2, 7, 0], [b"", "Ä".as_bytes(), b"\xc3"]);
            // Together the two bytes would be UTF-8.
            let torn = payload(order, [0, 0, 0, 0], [b"", b"", b"\x84"]);
            let long = [&plain[..], &[0; 8]].concat();
            let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
            let wanted = [names(&["ts_ns"]), names(&["b", "third"]), names(&["wall_ns", "pid", "first", "c"])];
            for wanted in wanted.iter().map(|names| Wanted::Named(names)).chain([Wanted::All { wall: true }]) {
                let mut all = vec![plain.clone(), odd.clone(), torn.clone(), long.clone()];
                both_ways(Version::V4, order, &all, wanted);
                both_ways(Version::V0, order, &all, wanted);
                // Cut at any place.
                for end in 0..plain.len() {
                    all.truncate(4);
                    all.push(plain[..end].to_vec());
                    both_ways(Version::V4, order, &all, wanted);
                }
            }
        }
    }
}
