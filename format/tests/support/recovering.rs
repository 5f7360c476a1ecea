//! Whole files read by a [`RecoveringReader`] into something that can be compared.

use std::io::Read;

use simpletrace_format::{Header, Recovered, RecoveringReader};

use super::reading::Owned;

/// A [`Recovered`] that owns its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item {
    Record(Owned),
    Damage { offset: u64, skipped_bytes: u64, resumed_at: Option<u64>, kind: String, records_before: u64 },
    NewFile(Header),
}

/// Reads `source` to its end, checking on the way that the reader's own promises hold.
pub(crate) fn drain<R: Read>(mut reader: RecoveringReader<R>) -> Vec<Item> {
    let mut items = Vec::new();
    let mut records = 0;
    while let Some(item) = reader.next_item().unwrap() {
        items.push(match item {
            Recovered::Record(record) => {
                records += 1;
                Item::Record(record.into())
            }
            Recovered::Damage(damage) => {
                assert_eq!(damage.records_before, records);
                let end = damage.resumed_at.unwrap_or(damage.offset + damage.skipped_bytes);
                assert!(damage.is_overlap() || end == damage.offset + damage.skipped_bytes, "{damage}");
                assert_eq!(reader.offset(), end);
                Item::Damage {
                    offset: damage.offset,
                    skipped_bytes: damage.skipped_bytes,
                    resumed_at: damage.resumed_at,
                    kind: format!("{:?}", damage.kind),
                    records_before: damage.records_before,
                }
            }
            Recovered::NewFile(header) => Item::NewFile(header),
        });
    }
    assert_eq!(reader.records(), records);
    for _ in 0..3 {
        assert!(reader.next_item().unwrap().is_none(), "the reader is not fused");
    }
    items
}

/// Reads `file`, which begins with a header.
pub(crate) fn recover(file: &[u8]) -> Vec<Item> {
    drain(RecoveringReader::new(file).unwrap())
}

/// The records among `items`.
pub(crate) fn records(items: &[Item]) -> Vec<Owned> {
    let records = items.iter().filter_map(|item| if let Item::Record(record) = item { Some(record) } else { None });
    records.cloned().collect()
}

/// Where a record begins.
pub(crate) fn offset_of(record: &Owned) -> u64 {
    match record {
        Owned::Mapping { offset, .. } | Owned::Event { offset, .. } | Owned::Dropped { offset, .. } => *offset,
    }
}
