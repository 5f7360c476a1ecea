//! A table of events of all kinds, with their arguments in one column, as JSON.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::builders::{Fill as _, Numbers};
use super::table::{ARGS, EVENT, LEFT_OVER, PID, TS_NS, WALL_NS};
use crate::filter::DROPPED;
use crate::render::{Block, JsonArgs, PerKind, put_count};
use crate::trace::{Event, Gap};

/// The columns, while they are filled.
pub(crate) struct LongTable {
    schema: SchemaRef,
    ts_ns: Numbers<u64, ArrayRef>,
    wall_ns: Option<Numbers<u64, ArrayRef>>,
    pid: Numbers<u32, ArrayRef>,
    event: StringBuilder,
    /// The arguments of all rows, and where those of each end.
    args: Block,
    args_ends: Vec<i32>,
    left_over: BinaryBuilder,
    kinds: PerKind<JsonArgs>,
    event_bytes: usize,
    bytes: usize,
}

/// About what a row takes beside its texts, in bytes.
const ROW_BYTES: usize = 40;

impl LongTable {
    /// Without rows; with the time of day, or without.
    pub(crate) fn new(wall: bool) -> Self {
        let mut fields = vec![Field::new(TS_NS, DataType::UInt64, false)];
        fields.extend(wall.then(|| Field::new(WALL_NS, DataType::UInt64, true)));
        fields.extend([
            Field::new(PID, DataType::UInt32, false),
            Field::new(EVENT, DataType::Utf8, false),
            Field::new(ARGS, DataType::Utf8, false),
            Field::new(LEFT_OVER, DataType::Binary, true),
        ]);
        Self {
            schema: Arc::new(Schema::new(fields)),
            ts_ns: Numbers::empty(),
            wall_ns: wall.then(Numbers::empty),
            pid: Numbers::empty(),
            event: StringBuilder::new(),
            args: Block::default(),
            args_ends: Vec::new(),
            left_over: BinaryBuilder::new(),
            kinds: PerKind::default(),
            event_bytes: 0,
            bytes: 0,
        }
    }

    /// The columns that it has.
    pub(crate) const fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// How many rows it has.
    pub(crate) const fn rows(&self) -> usize {
        self.args_ends.len()
    }

    /// About how much memory its rows take, in bytes.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes + self.args.len()
    }

    /// Adds an event.
    pub(crate) fn event(&mut self, event: &Event<'_>, wall_ns: Option<u64>) {
        self.args.put("{");
        let args = self.kinds.get(event.kind, |kind| JsonArgs::new(kind, "\""));
        let left_over = args.write(event, &mut self.args);
        self.args.put("}");
        self.push(event.record.timestamp_ns, wall_ns, event.record.pid, &event.kind.name, left_over);
    }

    /// Adds a gap.
    pub(crate) fn gap(&mut self, gap: &Gap, wall_ns: Option<u64>) {
        self.args.put("{\"count\":");
        put_count(&gap.record, "null", &mut self.args);
        self.args.put("}");
        self.push(gap.record.timestamp_ns, wall_ns, gap.record.pid, DROPPED, &[]);
    }

    /// Adds a row, whose arguments are there.
    fn push(&mut self, ts_ns: u64, wall_ns: Option<u64>, pid: u32, event: &str, left_over: &[u8]) {
        self.ts_ns.put(ts_ns);
        if let Some(values) = &mut self.wall_ns {
            match wall_ns {
                Some(wall_ns) => values.put(wall_ns),
                None => values.put_null(),
            }
        }
        self.pid.put(pid);
        self.event.append_value(event);
        // A row group is far smaller than 2 GiB.
        self.args_ends.push(self.args.len() as i32);
        self.left_over.append_option((!left_over.is_empty()).then_some(left_over));
        self.event_bytes += event.len();
        self.bytes += ROW_BYTES + event.len() + left_over.len();
    }

    /// Takes the rows out.
    pub(crate) fn take(&mut self) -> RecordBatch {
        let rows = self.rows();
        let room = rows + rows / 4;
        let mut columns: Vec<ArrayRef> = vec![self.ts_ns.take(room)];
        columns.extend(self.wall_ns.as_mut().map(|values| values.take(room)));
        columns.push(self.pid.take(room));
        columns.push(Arc::new(self.event.finish()));
        let offsets: ScalarBuffer<i32> = [0].into_iter().chain(self.args_ends.drain(..)).collect();
        let args = StringArray::try_new(OffsetBuffer::new(offsets), self.args.take().into(), None);
        columns.push(Arc::new(args.expect("JSON is UTF-8, and rows begin where others end")));
        columns.push(Arc::new(self.left_over.finish()));
        // The next rows are about as many: better room for them at once than moving them as they grow.
        self.event = StringBuilder::with_capacity(room, self.event_bytes + self.event_bytes / 4);
        (self.event_bytes, self.bytes) = (0, 0);
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
            .expect("columns have the schema's types and as many values each")
    }
}
