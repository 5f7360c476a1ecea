//! A small trace with a bit of everything, and its declarations.

use simpletrace_format::{ByteOrder, EventId, Facts, TraceWriter, Value, WriteError};

/// What the tests call the two byte orders.
pub(crate) const ORDERS: [ByteOrder; 2] = [ByteOrder::Little, ByteOrder::Big];

pub(crate) const EVENTS: &[u8] = br#"# The declarations of the sample.
disk_open(const char *path, bool read_only) "path=%s ro=%d"
disk_read(void *disk, uint64_t sector, uint32_t count) "disk %p sector %" PRIu64 " count %u"
disk_done(void *disk, int ret) "disk %p ret %d"
idle(void) "nothing to do"
never_seen(int x) "x=%d"
"#;

pub(crate) const OPEN: EventId = EventId(3);
pub(crate) const READ: EventId = EventId(5);
pub(crate) const DONE: EventId = EventId(9);
/// Beyond what any table indexed by id could hold.
pub(crate) const IDLE: EventId = EventId(1 << 40);

/// Builds a trace file.
pub(crate) fn trace(
    order: ByteOrder,
    write: impl FnOnce(&mut TraceWriter<Vec<u8>>) -> Result<(), WriteError>,
) -> Vec<u8> {
    let mut writer = TraceWriter::new(Vec::new(), order).unwrap();
    write(&mut writer).unwrap();
    writer.into_inner()
}

/// Writes the mapping records of the sample; the first event then stands at offset 135.
pub(crate) fn mappings(writer: &mut TraceWriter<Vec<u8>>) -> Result<(), WriteError> {
    for (id, name) in [(OPEN, "disk_open"), (READ, "disk_read"), (DONE, "disk_done"), (IDLE, "idle")] {
        writer.mapping(id, name)?;
    }
    Ok(())
}

/// Four events and a gap, 2.5 s from first to last, one event out of order:
///
/// ```text
/// offset        ns  pid
///    135        1 s  10  disk_open "a,b \"c\"", true
///    186 +   1500    10  disk_read 0x7f00, 2^64-1, 8
///    242 +   2000    10  dropped 3
///    282 +   1900    11  disk_done 0x7f00, -5
///    330 +  2.5 s    11  idle
///    362
/// ```
pub(crate) fn sample(order: ByteOrder) -> Vec<u8> {
    const DISK: Value<'_> = Value::Pointer(0x7f00);

    trace(order, |writer| {
        mappings(writer)?;
        writer.event(OPEN, 1_000_000_000, 10, &[Value::String(br#"a,b "c""#), Value::Bool(true)])?;
        writer.event(READ, 1_000_001_500, 10, &[DISK, Value::Unsigned(u64::MAX), Value::Unsigned(8)])?;
        writer.dropped(1_000_002_000, 10, 3)?;
        writer.event(DONE, 1_000_001_900, 11, &[DISK, Value::Signed(-5)])?;
        writer.event(IDLE, 3_500_000_000, 11, &[])
    })
}

/// What a recorder says of a file: that 1 s on its clock is the second 1,700,000,000 since 1970, and these texts.
pub(crate) fn facts(texts: &[&str]) -> Facts {
    let mut facts = Facts::default();
    facts.set_anchor(1_000_000_000, 1_700_000_000_000_000_000);
    texts.iter().for_each(|text| facts.add(text).unwrap());
    facts
}

/// The sample with facts behind its header.
pub(crate) fn sample_with(order: ByteOrder, facts: &Facts) -> Vec<u8> {
    let head = trace(order, |writer| Ok(writer.facts(facts)?));
    [&head[..], &sample(order)[24..]].concat()
}
