//! Tables of one kind of event, with a column for each argument.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use simpletrace_format::events::{ArgDecl, ArgType, EventDecl, Mode, parse};
use simpletrace_format::{Header, Payload, Value};

use super::block::{Block, Places};
use super::builders::{Arrow, Builders, Fill, FillText as _};
use super::filler::Origin;
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
pub(crate) struct EventTable<B: Builders = Arrow> {
    schema: SchemaRef,
    ts_ns: Option<B::U64>,
    wall_ns: Option<B::U64>,
    pid: Option<B::U32>,
    args: Args<B>,
    rows: usize,
    /// About what the values take, in bytes.
    bytes: usize,
    row_bytes: usize,
    pub(crate) oddities: Oddities,
}

enum Args<B: Builders> {
    /// Up to the last one that is wanted.
    Declared(Vec<Arg<B>>),
    Payload(B::Bytes),
    Unwanted,
}

struct Arg<B: Builders> {
    ty: ArgType,
    /// `None` if it is only to be passed over.
    values: Option<Values<B>>,
}

enum Values<B: Builders> {
    Signed(B::I64),
    Unsigned(B::U64),
    Bool(B::Bool),
    Text(B::Text),
}

/// The names of the columns of an event's arguments.
pub(crate) fn arg_names(args: &[ArgDecl]) -> Vec<String> {
    unique_names(args, &[TS_NS, WALL_NS, PID, EVENT])
}

/// The type of an argument's column. All numbers have 64 bits, as in the file, so that none is cut off and sums do not overflow soon.
pub(crate) const fn data_type(ty: ArgType) -> DataType {
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

impl<B: Builders> EventTable<B> {
    /// Without rows, for an event that is declared so, or not.
    pub(crate) fn new(decl: Option<&EventDecl>, wanted: Wanted<'_>) -> Self {
        let fields = fields(decl);
        let mut args: Vec<_> = fields[3..]
            .iter()
            .zip(decl.map_or(&[][..], |decl| &decl.args))
            .map(|(field, arg)| {
                let values = wanted.has(field.name()).then(|| match field.data_type() {
                    DataType::Int64 => Values::Signed(B::I64::empty()),
                    DataType::Boolean => Values::Bool(B::Bool::empty()),
                    DataType::Utf8 => Values::Text(B::Text::empty()),
                    _ => Values::Unsigned(B::U64::empty()),
                });
                Arg { ty: arg.ty, values }
            })
            .collect();
        args.truncate(args.iter().rposition(|arg| arg.values.is_some()).map_or(0, |last| last + 1));
        let args = match wanted.has(PAYLOAD) {
            _ if decl.is_some() => Args::Declared(args),
            true => Args::Payload(B::Bytes::empty()),
            false => Args::Unwanted,
        };
        let schema =
            Arc::new(Schema::new(fields.into_iter().filter(|field| wanted.has(field.name())).collect::<Vec<_>>()));
        let mut row_bytes = 0;
        for field in schema.fields() {
            row_bytes += field.data_type().primitive_width().unwrap_or(4);
        }
        Self {
            ts_ns: wanted.has(TS_NS).then(B::U64::empty),
            wall_ns: wanted.has(WALL_NS).then(B::U64::empty),
            pid: wanted.has(PID).then(B::U32::empty),
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

    /// Whether any of its columns is of an argument.
    pub(crate) const fn has_args(&self) -> bool {
        match &self.args {
            Args::Declared(args) => !args.is_empty(),
            Args::Payload(_) => true,
            Args::Unwanted => false,
        }
    }

    /// About how much memory the values of its rows take, in bytes.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a row. `wall_ns` is asked for only if it is wanted.
    #[inline]
    pub(crate) fn push(&mut self, ts_ns: u64, wall_ns: impl FnOnce() -> Option<u64>, pid: u32, args: Payload<'_>) {
        self.push_leading(ts_ns, wall_ns, pid);
        let text_bytes = self.args.push(args, &mut self.oddities);
        self.end_row(text_bytes);
    }

    /// Adds rows.
    pub(super) fn push_block(&mut self, block: &Block, origin: Origin, places: &mut Places) {
        let Origin { header: Some(header), wall_offset_ns } = origin else { return };
        if let Some(values) = &mut self.ts_ns {
            values.put_all(block.ts_ns.iter().copied());
        }
        if let Some(values) = &mut self.wall_ns {
            for ts_ns in &block.ts_ns {
                match wall_offset_ns.and_then(|offset_ns| ts_ns.checked_add_signed(offset_ns)) {
                    Some(wall_ns) => values.put(wall_ns),
                    None => values.put_null(),
                }
            }
        }
        if let Some(values) = &mut self.pid {
            values.put_all(block.pids.iter().copied());
        }
        let text_bytes = self.args.push_block(block, header, places, &mut self.oddities);
        self.bytes += block.ts_ns.len() * self.row_bytes + text_bytes;
        self.rows += block.ts_ns.len();
    }

    // Always, as its two callers are all there is.
    #[inline(always)]
    fn push_leading(&mut self, ts_ns: u64, wall_ns: impl FnOnce() -> Option<u64>, pid: u32) {
        if let Some(values) = &mut self.ts_ns {
            values.put(ts_ns);
        }
        if let Some(values) = &mut self.wall_ns {
            match wall_ns() {
                Some(wall_ns) => values.put(wall_ns),
                None => values.put_null(),
            }
        }
        if let Some(values) = &mut self.pid {
            values.put(pid);
        }
    }

    // Both at once: they are changed together, and a change of one would hold up the next row's of both.
    #[inline(always)]
    const fn end_row(&mut self, text_bytes: usize) {
        self.bytes += self.row_bytes + text_bytes;
        self.rows += 1;
    }

    /// Takes the rows out: how many there are, and their columns.
    pub(crate) fn take_columns(&mut self) -> (usize, Vec<B::Column>) {
        // The next rows are about as many: better room for them at once than moving them as they grow.
        let room = self.rows + self.rows / 4;
        let mut columns = Vec::with_capacity(self.schema.fields().len());
        columns.extend([&mut self.ts_ns, &mut self.wall_ns].into_iter().flatten().map(|values| values.take(room)));
        // In the order of the schema: behind ts_ns and wall_ns.
        columns.extend(self.pid.as_mut().map(|values| values.take(room)));
        match &mut self.args {
            Args::Declared(args) => {
                columns.extend(args.iter_mut().filter_map(|arg| arg.values.as_mut()).map(|values| values.take(room)));
            }
            Args::Payload(values) => columns.push(values.take(room)),
            Args::Unwanted => {}
        }
        self.bytes = 0;
        (std::mem::take(&mut self.rows), columns)
    }
}

impl EventTable {
    /// Of gaps, with the number of events that are missing, if it is known.
    pub(crate) fn of_gaps(wall: bool) -> Self {
        Self::of_gaps_with(Wanted::All { wall })
    }

    /// The same, with these columns.
    pub(crate) fn of_gaps_with(wanted: Wanted<'_>) -> Self {
        let decl = parse(b"dropped(uint64_t count) \"\"\n", Mode::Lenient).events.into_iter().next();
        Self::new(decl.as_ref(), wanted)
    }

    /// Adds a row with one value.
    pub(crate) fn push_value(&mut self, ts_ns: u64, wall_ns: Option<u64>, pid: u32, value: Option<Value<'_>>) {
        self.push_leading(ts_ns, || wall_ns, pid);
        if let Args::Declared(args) = &mut self.args
            && let [Arg { values: Some(values), .. }] = &mut args[..]
        {
            values.push(value, &mut self.oddities);
        }
        self.end_row(0);
    }

    /// Takes the rows out.
    pub(crate) fn take(&mut self) -> RecordBatch {
        let (rows, columns) = self.take_columns();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .expect("columns have the schema's types and as many values each")
    }
}

impl<B: Builders> Args<B> {
    /// Adds rows; returns how many bytes their strings have.
    fn push_block(&mut self, block: &Block, header: Header, places: &mut Places, oddities: &mut Oddities) -> usize {
        match self {
            Self::Declared(args) if block.find(args.iter().map(|arg| arg.ty), header, places) => {
                // Column by column takes a third of the time of row by row.
                let mut bytes = 0;
                let (mut run, mut behind) = (0, 0);
                for Arg { ty, values } in args {
                    if let Some(values) = values {
                        bytes += values.push_block(block, header, places, (run, behind), oddities);
                    }
                    (run, behind) = if ty.is_string() { (run + 1, 0) } else { (run, behind + 8) };
                }
                bytes
            }
            Self::Unwanted => 0,
            _ => block.payloads(header).map(|payload| self.push(payload, oddities)).sum(),
        }
    }

    /// Adds a row; returns how many bytes its strings have.
    #[inline]
    fn push(&mut self, payload: Payload<'_>, oddities: &mut Oddities) -> usize {
        let mut bytes = 0;
        match self {
            Self::Declared(args) => {
                let mut rest = payload.args();
                let mut is_whole = true;
                for Arg { ty, values } in args {
                    // What follows an argument that is not there is not where it seems to be.
                    let value = if is_whole { rest.next(*ty) } else { None };
                    is_whole = value.is_some();
                    if let Some(values) = values {
                        bytes += values.push(value, oddities);
                    }
                }
            }
            Self::Payload(values) => {
                values.put(payload.bytes());
                bytes = payload.bytes().len();
            }
            Self::Unwanted => {}
        }
        bytes
    }
}

impl<B: Builders> Values<B> {
    /// Adds a value, if the record has it; returns how many bytes of text it has.
    #[inline]
    fn push(&mut self, value: Option<Value<'_>>, oddities: &mut Oddities) -> usize {
        match (self, value) {
            (Self::Signed(values), Some(value)) => values.put(value.word().unwrap_or_default().cast_signed()),
            (Self::Unsigned(values), Some(value)) => values.put(value.word().unwrap_or_default()),
            (Self::Bool(values), Some(value)) => {
                let word = value.word().unwrap_or_default();
                oddities.bools += u64::from(word > 1);
                values.put(word != 0);
            }
            (Self::Text(values), Some(value)) => {
                let Value::String(bytes) = value else {
                    // Version 0 has their addresses.
                    values.put(&format!("{:#x}", value.word().unwrap_or_default()));
                    return 18;
                };
                put_text(bytes, oddities, |text| values.put(text));
                return bytes.len();
            }
            (Self::Signed(values), None) => values.put_null(),
            (Self::Unsigned(values), None) => values.put_null(),
            (Self::Bool(values), None) => values.put_null(),
            (Self::Text(values), None) => values.put_null(),
        }
        0
    }

    /// Adds the values that all records of a block have at a place; returns how many bytes of text they have.
    fn push_block(
        &mut self,
        block: &Block,
        header: Header,
        places: &Places,
        (run, behind): (usize, u32),
        oddities: &mut Oddities,
    ) -> usize {
        let words = || block.words(header, places, run, behind);
        match self {
            Self::Signed(values) => values.put_all(words().map(u64::cast_signed)),
            Self::Unsigned(values) => values.put_all(words()),
            Self::Bool(values) => {
                oddities.bools += words().filter(|&word| word > 1).count() as u64;
                values.put_all(words().map(|word| word != 0));
            }
            Self::Text(values) => {
                let texts = block.strings(places, run, behind);
                values.put_texts(texts.clone(), oddities);
                return texts.map(<[u8]>::len).sum();
            }
        }
        0
    }

    /// Takes the values out, and makes room for so many others.
    fn take(&mut self, room: usize) -> B::Column {
        match self {
            Self::Signed(values) => values.take(room),
            Self::Unsigned(values) => values.take(room),
            Self::Bool(values) => values.take(room),
            Self::Text(values) => values.take(room),
        }
    }
}
