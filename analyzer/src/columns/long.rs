//! A table of events of all kinds, with their arguments in one column.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, Int64Builder, StringBuilder, UInt32Builder, UInt64Builder};
use arrow_array::{ArrayRef, MapArray, RecordBatch, StructArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use simpletrace_format::Value;
use simpletrace_format::events::ArgType;

use super::table::{EVENT, PID, TS_NS, WALL_NS};
use super::text::{Oddities, put_text};
use crate::filter::DROPPED;
use crate::kinds::Kind;
use crate::render::{PerKind, unique_names};
use crate::trace::{Event, Gap};

/// The columns, while they are filled.
pub(crate) struct LongTable {
    schema: SchemaRef,
    entry_fields: Fields,
    value_fields: Fields,
    ts_ns: UInt64Builder,
    wall_ns: Option<UInt64Builder>,
    pid: UInt32Builder,
    event: StringBuilder,
    /// Where the arguments of each row end.
    ends: Vec<i32>,
    entries: Entries,
    left_over: BinaryBuilder,
    names: PerKind<Vec<(String, ArgType)>>,
    bytes: usize,
    pub(crate) oddities: Oddities,
}

/// Arguments, one behind the other.
#[derive(Default)]
struct Entries {
    names: StringBuilder,
    uint: UInt64Builder,
    int: Int64Builder,
    text: StringBuilder,
    count: i32,
}

/// About what a row takes beside its arguments, and an argument beside its text, in bytes.
const ROW_BYTES: usize = 48;
const ENTRY_BYTES: usize = 40;

impl LongTable {
    /// Without rows; with the time of day, or without.
    pub(crate) fn new(wall: bool) -> Self {
        // One of them is not null; all are if a value is not known.
        let value_fields = Fields::from(vec![
            Field::new("uint", DataType::UInt64, true),
            Field::new("int", DataType::Int64, true),
            Field::new("text", DataType::Utf8, true),
        ]);
        let entry_fields = Fields::from(vec![
            Field::new("key", DataType::Utf8, false),
            Field::new("value", DataType::Struct(value_fields.clone()), true),
        ]);
        let args =
            DataType::Map(Arc::new(Field::new("key_value", DataType::Struct(entry_fields.clone()), false)), false);
        let mut fields = vec![Field::new(TS_NS, DataType::UInt64, false)];
        fields.extend(wall.then(|| Field::new(WALL_NS, DataType::UInt64, true)));
        fields.extend([
            Field::new(PID, DataType::UInt32, false),
            Field::new(EVENT, DataType::Utf8, false),
            Field::new("args", args, false),
            Field::new("left_over", DataType::Binary, true),
        ]);
        Self {
            schema: Arc::new(Schema::new(fields)),
            entry_fields,
            value_fields,
            ts_ns: UInt64Builder::new(),
            wall_ns: wall.then(UInt64Builder::new),
            pid: UInt32Builder::new(),
            event: StringBuilder::new(),
            ends: Vec::new(),
            entries: Entries::default(),
            left_over: BinaryBuilder::new(),
            names: PerKind::default(),
            bytes: 0,
            oddities: Oddities::default(),
        }
    }

    /// The columns that it has.
    pub(crate) const fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// How many rows it has.
    pub(crate) const fn rows(&self) -> usize {
        self.ends.len()
    }

    /// About how much memory its rows take, in bytes.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds an event.
    pub(crate) fn event(&mut self, event: &Event<'_>, wall_ns: Option<u64>) {
        let record = &event.record;
        self.begin(record.timestamp_ns, wall_ns, record.pid, &event.kind.name);
        let mut args = record.payload.args();
        if event.kind.decl.is_some() {
            for (name, ty) in self.names.get(event.kind, names) {
                if let Some(value) = args.next(*ty) {
                    self.bytes += self.entries.push(name, Some(value), &mut self.oddities);
                }
            }
        } else {
            let mut index = 0;
            while let Some(word) = args.word() {
                self.bytes +=
                    self.entries.push(&format!("word{index}"), Some(Value::Unsigned(word)), &mut self.oddities);
                index += 1;
            }
        }
        let left_over = args.left_over();
        self.bytes += left_over.len();
        self.end(left_over);
    }

    /// Adds a gap.
    pub(crate) fn gap(&mut self, gap: &Gap, wall_ns: Option<u64>) {
        self.begin(gap.record.timestamp_ns, wall_ns, gap.record.pid, DROPPED);
        self.entries.push("count", gap.record.known_count().map(Value::Unsigned), &mut self.oddities);
        self.end(&[]);
    }

    fn begin(&mut self, ts_ns: u64, wall_ns: Option<u64>, pid: u32, event: &str) {
        self.ts_ns.append_value(ts_ns);
        if let Some(values) = &mut self.wall_ns {
            values.append_option(wall_ns);
        }
        self.pid.append_value(pid);
        self.event.append_value(event);
        self.bytes += ROW_BYTES + event.len();
    }

    fn end(&mut self, left_over: &[u8]) {
        self.ends.push(self.entries.count);
        self.left_over.append_option((!left_over.is_empty()).then_some(left_over));
    }

    /// Takes the rows out.
    pub(crate) fn take(&mut self) -> RecordBatch {
        let mut columns: Vec<ArrayRef> = vec![Arc::new(self.ts_ns.finish())];
        columns.extend(self.wall_ns.as_mut().map(|values| Arc::new(values.finish()) as ArrayRef));
        columns.push(Arc::new(self.pid.finish()));
        columns.push(Arc::new(self.event.finish()));
        let offsets = [0].into_iter().chain(self.ends.drain(..)).collect::<Vec<i32>>();
        columns.push(Arc::new(self.entries.take(offsets, &self.entry_fields, &self.value_fields)));
        columns.push(Arc::new(self.left_over.finish()));
        self.bytes = 0;
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
            .expect("columns have the schema's types and as many values each")
    }
}

fn names(kind: &Kind) -> Vec<(String, ArgType)> {
    // As in JSON, where nothing stands beside them that they could be taken for.
    unique_names(kind.args(), &[]).into_iter().zip(kind.args().iter().map(|arg| arg.ty)).collect()
}

impl Entries {
    /// Adds an argument; returns about how many bytes it takes.
    fn push(&mut self, name: &str, value: Option<Value<'_>>, oddities: &mut Oddities) -> usize {
        let (mut uint, mut int, mut text) = (None, None, None);
        match value {
            Some(Value::Unsigned(word) | Value::Pointer(word)) => uint = Some(word),
            Some(Value::Bool(value)) => uint = Some(value.into()),
            Some(Value::Signed(value)) => int = Some(value),
            Some(Value::String(bytes)) => text = Some(bytes),
            None => {}
        }
        self.names.append_value(name);
        self.uint.append_option(uint);
        self.int.append_option(int);
        match text {
            Some(bytes) => put_text(bytes, oddities, |text| self.text.append_value(text)),
            None => self.text.append_null(),
        }
        self.count += 1;
        ENTRY_BYTES + name.len() + text.map_or(0, <[u8]>::len)
    }

    fn take(&mut self, offsets: Vec<i32>, entry_fields: &Fields, value_fields: &Fields) -> MapArray {
        self.count = 0;
        let values: Vec<ArrayRef> =
            vec![Arc::new(self.uint.finish()), Arc::new(self.int.finish()), Arc::new(self.text.finish())];
        let values = StructArray::new(value_fields.clone(), values, None);
        let entries =
            StructArray::new(entry_fields.clone(), vec![Arc::new(self.names.finish()), Arc::new(values)], None);
        let field = Field::new("key_value", DataType::Struct(entry_fields.clone()), false);
        MapArray::new(Arc::new(field), OffsetBuffer::new(offsets.into()), entries, None, false)
    }
}
