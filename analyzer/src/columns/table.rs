//! Tables of one kind of event, with a column for each argument.

use std::mem::replace;
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, BooleanBuilder, Int64Builder, StringBuilder, UInt32Builder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use simpletrace_format::events::{ArgDecl, ArgType, EventDecl, Mode, parse};
use simpletrace_format::{EventRecord, Payload, Value};

use super::text::{Oddities, put_text};
use crate::render::unique_names;

/// The columns in front, and names that no argument's column may have.
pub(crate) const TS_NS: &str = "ts_ns";
pub(crate) const WALL_NS: &str = "wall_ns";
pub(crate) const PID: &str = "pid";
pub(crate) const EVENT: &str = "event";
/// The arguments of an event of any kind, as JSON, and bytes that none of them accounts for.
pub(crate) const ARGS: &str = "args";
pub(crate) const LEFT_OVER: &str = "left_over";
/// All bytes of an event whose arguments are not declared.
pub(crate) const PAYLOAD: &str = "payload";

/// Which columns a table has: all that the events have, or those of some names.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted<'a> {
    /// With the time of day, or without.
    All { wall: bool },
    /// In the order of the event's columns, whatever theirs is.
    #[cfg_attr(not(feature = "frames"), expect(dead_code))]
    Named(&'a [String]),
}

impl Wanted<'_> {
    fn has(self, name: &str) -> bool {
        match self {
            Self::All { wall } => wall || name != WALL_NS,
            Self::Named(names) => names.iter().any(|wanted| wanted == name),
        }
    }
}

/// The columns of one kind of event, while they are filled.
pub(crate) struct EventTable {
    schema: SchemaRef,
    ts_ns: Option<UInt64Builder>,
    wall_ns: Option<UInt64Builder>,
    pid: Option<UInt32Builder>,
    args: Args,
    rows: usize,
    /// About what the values take, in bytes.
    bytes: usize,
    row_bytes: usize,
    pub(crate) oddities: Oddities,
}

enum Args {
    /// Up to the last one that is wanted.
    Declared(Vec<Arg>),
    Payload(BinaryBuilder),
    Unwanted,
}

struct Arg {
    ty: ArgType,
    /// `None` if it is only to be passed over.
    values: Option<Values>,
}

enum Values {
    Signed(Int64Builder),
    Unsigned(UInt64Builder),
    Bool(BooleanBuilder),
    Text(StringBuilder),
}

/// The names of the columns of an event's arguments.
pub(crate) fn arg_names(args: &[ArgDecl]) -> Vec<String> {
    unique_names(args, &[TS_NS, WALL_NS, PID, EVENT])
}

/// The type of an argument's column. All numbers have 64 bits, as in the file, so that none is cut off and sums do not overflow soon.
const fn data_type(ty: ArgType) -> DataType {
    match ty {
        ArgType::Signed(_) | ArgType::Char => DataType::Int64,
        ArgType::Bool => DataType::Boolean,
        ArgType::String => DataType::Utf8,
        ArgType::Unsigned(_) | ArgType::Pointer => DataType::UInt64,
    }
}

/// All columns that an event has.
pub(crate) fn fields(decl: Option<&EventDecl>) -> Vec<Field> {
    let mut fields: Vec<_> = leading_fields().into();
    match decl {
        // Records may be shorter than declared.
        Some(decl) => {
            let names = arg_names(&decl.args).into_iter();
            fields.extend(names.zip(&decl.args).map(|(name, arg)| Field::new(name, data_type(arg.ty), true)));
        }
        None => fields.push(Field::new(PAYLOAD, DataType::Binary, false)),
    }
    fields
}

fn leading_fields() -> [Field; 3] {
    [
        Field::new(TS_NS, DataType::UInt64, false),
        // The file may not say, or the time may be out of range.
        Field::new(WALL_NS, DataType::UInt64, true),
        Field::new(PID, DataType::UInt32, false),
    ]
}

impl EventTable {
    /// Without rows, for an event that is declared so, or not.
    pub(crate) fn new(decl: Option<&EventDecl>, wanted: Wanted<'_>) -> Self {
        let fields = fields(decl);
        let mut args: Vec<_> = fields[3..]
            .iter()
            .zip(decl.map_or(&[][..], |decl| &decl.args))
            .map(|(field, arg)| {
                let values = wanted.has(field.name()).then(|| match field.data_type() {
                    DataType::Int64 => Values::Signed(Int64Builder::with_capacity(0)),
                    DataType::Boolean => Values::Bool(BooleanBuilder::with_capacity(0)),
                    DataType::Utf8 => Values::Text(StringBuilder::with_capacity(0, 0)),
                    _ => Values::Unsigned(UInt64Builder::with_capacity(0)),
                });
                Arg { ty: arg.ty, values }
            })
            .collect();
        args.truncate(args.iter().rposition(|arg| arg.values.is_some()).map_or(0, |last| last + 1));
        let args = match wanted.has(PAYLOAD) {
            _ if decl.is_some() => Args::Declared(args),
            true => Args::Payload(BinaryBuilder::with_capacity(0, 0)),
            false => Args::Unwanted,
        };
        let schema =
            Arc::new(Schema::new(fields.into_iter().filter(|field| wanted.has(field.name())).collect::<Vec<_>>()));
        let mut row_bytes = 0;
        for field in schema.fields() {
            row_bytes += field.data_type().primitive_width().unwrap_or(4);
        }
        Self {
            ts_ns: wanted.has(TS_NS).then(|| UInt64Builder::with_capacity(0)),
            wall_ns: wanted.has(WALL_NS).then(|| UInt64Builder::with_capacity(0)),
            pid: wanted.has(PID).then(|| UInt32Builder::with_capacity(0)),
            schema,
            args,
            rows: 0,
            bytes: 0,
            row_bytes,
            oddities: Oddities::default(),
        }
    }

    /// The columns that it has.
    pub(crate) const fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// How many rows it has.
    pub(crate) const fn rows(&self) -> usize {
        self.rows
    }

    /// About how much memory the values of its rows take, in bytes.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a row. `wall_ns` is asked for only if it is wanted.
    #[inline]
    pub(crate) fn push(&mut self, record: &EventRecord<'_>, wall_ns: impl FnOnce() -> Option<u64>) {
        self.push_leading(record.timestamp_ns, wall_ns, record.pid);
        self.bytes += self.args.push(record.payload, &mut self.oddities);
    }

    // Always, as its two callers are all there is.
    #[inline(always)]
    fn push_leading(&mut self, ts_ns: u64, wall_ns: impl FnOnce() -> Option<u64>, pid: u32) {
        if let Some(values) = &mut self.ts_ns {
            values.append_value(ts_ns);
        }
        if let Some(values) = &mut self.wall_ns {
            values.append_option(wall_ns());
        }
        if let Some(values) = &mut self.pid {
            values.append_value(pid);
        }
        self.bytes += self.row_bytes;
        self.rows += 1;
    }

    /// Of gaps, with the number of events that are missing, if it is known.
    pub(crate) fn of_gaps(wall: bool) -> Self {
        let decl = parse(b"dropped(uint64_t count) \"\"\n", Mode::Lenient).events.into_iter().next();
        Self::new(decl.as_ref(), Wanted::All { wall })
    }

    /// Adds a row with one value.
    pub(crate) fn push_value(&mut self, ts_ns: u64, wall_ns: Option<u64>, pid: u32, value: Option<Value<'_>>) {
        self.push_leading(ts_ns, || wall_ns, pid);
        if let Args::Declared(args) = &mut self.args
            && let [Arg { values: Some(values), .. }] = &mut args[..]
        {
            values.push(value, &mut self.oddities);
        }
    }

    /// Takes the rows out.
    pub(crate) fn take(&mut self) -> RecordBatch {
        // The next rows are about as many: better room for them at once than moving them as they grow.
        let room = self.rows + self.rows / 4;
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        for values in [&mut self.ts_ns, &mut self.wall_ns].into_iter().flatten() {
            columns.push(Arc::new(replace(values, UInt64Builder::with_capacity(room)).finish()));
        }
        // In the order of the schema: behind ts_ns and wall_ns.
        if let Some(values) = &mut self.pid {
            columns.push(Arc::new(replace(values, UInt32Builder::with_capacity(room)).finish()));
        }
        match &mut self.args {
            Args::Declared(args) => {
                columns.extend(args.iter_mut().filter_map(|arg| arg.values.as_mut()).map(|values| values.take(room)));
            }
            Args::Payload(values) => columns.push(Arc::new(values.finish())),
            Args::Unwanted => {}
        }
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(self.rows));
        (self.rows, self.bytes) = (0, 0);
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .expect("columns have the schema's types and as many values each")
    }
}

impl Args {
    /// Adds a row; returns how many bytes its strings have.
    #[inline]
    fn push(&mut self, payload: Payload<'_>, oddities: &mut Oddities) -> usize {
        let mut bytes = 0;
        match self {
            Self::Declared(args) => {
                let mut rest = payload.args();
                for Arg { ty, values } in args {
                    let value = rest.next(*ty);
                    if let Some(values) = values {
                        bytes += values.push(value, oddities);
                    }
                }
            }
            Self::Payload(values) => {
                values.append_value(payload.bytes());
                bytes = payload.bytes().len();
            }
            Self::Unwanted => {}
        }
        bytes
    }
}

impl Values {
    /// Adds a value, if the record has it; returns how many bytes of text it has.
    #[inline]
    fn push(&mut self, value: Option<Value<'_>>, oddities: &mut Oddities) -> usize {
        match (self, value) {
            (Self::Signed(values), Some(value)) => values.append_value(value.word().unwrap_or_default().cast_signed()),
            (Self::Unsigned(values), Some(value)) => values.append_value(value.word().unwrap_or_default()),
            (Self::Bool(values), Some(value)) => {
                let word = value.word().unwrap_or_default();
                oddities.bools += u64::from(word > 1);
                values.append_value(word != 0);
            }
            (Self::Text(values), Some(value)) => {
                let Value::String(bytes) = value else {
                    // Version 0 has their addresses.
                    values.append_value(format!("{:#x}", value.word().unwrap_or_default()));
                    return 18;
                };
                put_text(bytes, oddities, |text| values.append_value(text));
                return bytes.len();
            }
            (Self::Signed(values), None) => values.append_null(),
            (Self::Unsigned(values), None) => values.append_null(),
            (Self::Bool(values), None) => values.append_null(),
            (Self::Text(values), None) => values.append_null(),
        }
        0
    }

    /// Takes the values out, and makes room for so many others.
    fn take(&mut self, room: usize) -> ArrayRef {
        match self {
            Self::Signed(values) => Arc::new(replace(values, Int64Builder::with_capacity(room)).finish()),
            Self::Unsigned(values) => Arc::new(replace(values, UInt64Builder::with_capacity(room)).finish()),
            Self::Bool(values) => Arc::new(replace(values, BooleanBuilder::with_capacity(room)).finish()),
            Self::Text(values) => {
                let bytes = values.values_slice().len();
                Arc::new(replace(values, StringBuilder::with_capacity(room, bytes + bytes / 4)).finish())
            }
        }
    }
}
