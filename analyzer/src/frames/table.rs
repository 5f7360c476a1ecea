//! The tables, and how their rows are made of what a trace hands out.

use anyhow::Result;
use polars::prelude::*;
use simpletrace_format::EventRecord;
use simpletrace_format::events::{EventDecl, EventIndex};

use super::builders::Polars;
use super::convert::polars_type;
use super::gaps::Gaps;
use crate::columns::{self, EventTable, Fill as _, Filler, FillingThread, Oddities, Wanted};
use crate::kinds::Kind;
use crate::pairs::{Operation, Pairs};
use crate::render::{Block, JsonArgs};
use crate::trace::{Event, Item};

/// What can be asked for.
#[derive(Debug, Clone)]
pub(super) enum Table {
    /// The events of a name, declared or not.
    Event {
        name: String,
        decl: Option<EventDecl>,
    },
    /// All events.
    Events,
    Pairs(Box<Operation>),
    Gaps,
}

/// Times that rows are wanted of, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
}

impl Window {
    pub(super) const ALL: Self = Self { from_ns: 0, to_ns: u64::MAX };

    #[inline]
    const fn admits(self, time_ns: u64) -> bool {
        self.from_ns <= time_ns && time_ns <= self.to_ns
    }

    /// The times of both.
    pub(super) fn and(self, other: Self) -> Self {
        Self { from_ns: self.from_ns.max(other.from_ns), to_ns: self.to_ns.min(other.to_ns) }
    }

    /// The times of either, and all between.
    pub(super) fn or(self, other: Self) -> Self {
        Self { from_ns: self.from_ns.min(other.from_ns), to_ns: self.to_ns.max(other.to_ns) }
    }
}

/// What is wanted of a table.
#[derive(Debug, Clone)]
pub(super) struct Want {
    pub(super) table: Table,
    /// In the order of the table.
    pub(super) columns: Vec<PlSmallStr>,
    pub(super) window: Window,
    /// The first so many rows are enough.
    pub(super) rows: Option<usize>,
}

impl Want {
    fn column_names(&self) -> Vec<String> {
        self.columns.iter().map(ToString::to_string).collect()
    }
}

impl Table {
    pub(super) fn schema(&self) -> Schema {
        match self {
            Self::Event { decl, .. } => columns::fields(decl.as_ref())
                .iter()
                .map(|field| Field::new(field.name().as_str().into(), polars_type(field.data_type())))
                .collect(),
            Self::Events => [
                ("ts_ns", DataType::UInt64),
                ("pid", DataType::UInt32),
                ("event", DataType::String),
                ("args", DataType::String),
            ]
            .into_iter()
            .map(|(name, ty)| Field::new(name.into(), ty))
            .collect(),
            Self::Pairs(operation) => operation
                .fields()
                .map(|field| Field::new(field.name().as_str().into(), polars_type(field.data_type())))
                .collect(),
            Self::Gaps => Gaps::schema(),
        }
    }

    /// The events that it is made of; `None` for all.
    pub(super) fn names(&self) -> Option<&[String]> {
        match self {
            Self::Event { name, .. } => Some(std::slice::from_ref(name)),
            Self::Events => None,
            Self::Pairs(operation) => Some(operation.names()),
            Self::Gaps => Some(&[]),
        }
    }
}

/// A table while it is filled.
pub(super) struct Filling {
    want: Want,
    rows: Rows,
}

enum Rows {
    Event(Filler<Polars>),
    Events(Events),
    Pairs(Box<Pairs>),
    Gaps(Gaps),
}

impl Filling {
    /// # Errors
    ///
    /// There can be no more threads.
    pub(super) fn new(want: Want, declared: &EventIndex) -> Result<Self> {
        let rows = match &want.table {
            Table::Event { decl, .. } => {
                let table = EventTable::new(decl.as_ref(), Wanted::Named(&want.column_names()));
                Rows::Event(FillingThread::start()?.filler(table, |_| {}))
            }
            Table::Events => Rows::Events(Events::new(&want.columns)),
            Table::Pairs(operation) => Rows::Pairs(Box::new(Pairs::new(operation, &want.column_names(), declared))),
            Table::Gaps => Rows::Gaps(Gaps::default()),
        };
        Ok(Self { want, rows })
    }

    /// Whether it takes in events of a kind.
    pub(super) fn takes(&self, kind: &Kind) -> bool {
        self.want.table.names().is_none_or(|names| names.contains(&kind.name))
    }

    /// Takes in an event of a kind that it takes.
    #[inline]
    pub(super) fn event(&mut self, event: &Event<'_>) {
        let EventRecord { timestamp_ns, .. } = event.record;
        let most = self.want.rows.unwrap_or(usize::MAX);
        match &mut self.rows {
            Rows::Pairs(pairs) => pairs.take(&Item::Event(*event)),
            Rows::Event(_) | Rows::Events(_) if !self.want.window.admits(timestamp_ns) => {}
            Rows::Event(table) if table.rows() < most => {
                table.push(&event.record);
            }
            Rows::Events(events) if events.rows < most => events.push(event),
            Rows::Event(_) | Rows::Events(_) | Rows::Gaps(_) => {}
        }
    }

    /// Takes in all that is no event.
    #[cold]
    pub(super) fn other(&mut self, item: &Item<'_>) {
        match &mut self.rows {
            Rows::Pairs(pairs) => pairs.take(item),
            Rows::Gaps(gaps) => gaps.take(item),
            Rows::Event(table) => table.follow(item),
            Rows::Events(_) => {}
        }
    }

    /// The whole table, and what it cannot hold as it is in the file.
    pub(super) fn finish(self) -> PolarsResult<(DataFrame, Oddities)> {
        let mut oddities = Oddities::default();
        let frame = match self.rows {
            Rows::Event(table) => {
                let mut table = table.finish().map_err(|error| polars_err!(ComputeError: "{error}"))?;
                oddities = table.oddities;
                let (rows, columns) = table.take_columns();
                let names = table.schema().fields().iter().map(|field| PlSmallStr::from_str(field.name()));
                DataFrame::new(
                    rows,
                    columns.into_iter().zip(names).map(|(column, name)| column.with_name(name)).collect(),
                )?
            }
            Rows::Events(events) => events.frame(self.want.columns)?,
            Rows::Pairs(mut pairs) => {
                pairs.finish();
                let columns = pairs.columns::<Polars>(&self.want.column_names(), 0..pairs.len(), &mut oddities);
                let named = columns.into_iter().zip(self.want.columns).map(|(column, name)| column.with_name(name));
                DataFrame::new(pairs.len(), named.collect())?
            }
            Rows::Gaps(gaps) => gaps.frame()?.select(self.want.columns)?,
        };
        Ok((frame, oddities))
    }
}

/// The rows of the table `events`.
struct Events {
    rows: usize,
    ts_ns: Option<Vec<u64>>,
    pid: Option<Vec<u32>>,
    /// By their numbers.
    event: Option<Vec<IdxSize>>,
    args: Option<StringChunkedBuilder>,
    /// The arguments of one event.
    json: Block,
    /// By the number of a kind: its own number and how its arguments are written.
    kinds: Vec<Option<(IdxSize, JsonArgs)>>,
    names: Vec<String>,
}

impl Events {
    fn new(columns: &[PlSmallStr]) -> Self {
        let has = |name: &str| columns.iter().any(|column| column == name);
        Self {
            ts_ns: has("ts_ns").then(Vec::new),
            pid: has("pid").then(Vec::new),
            event: has("event").then(Vec::new),
            args: has("args").then(StringChunkedBuilder::empty),
            rows: 0,
            json: Block::default(),
            kinds: Vec::new(),
            names: Vec::new(),
        }
    }

    #[inline]
    fn push(&mut self, event: &Event<'_>) {
        self.rows += 1;
        if let Some(ts_ns) = &mut self.ts_ns {
            ts_ns.push(event.record.timestamp_ns);
        }
        if let Some(pid) = &mut self.pid {
            pid.push(event.record.pid);
        }
        if self.event.is_none() && self.args.is_none() {
            return;
        }
        let index = event.kind.index;
        if self.kinds.get(index).is_none_or(Option::is_none) {
            self.meet(event.kind);
        }
        let Some((number, json)) = &self.kinds[index] else { return };
        if let Some(numbers) = &mut self.event {
            numbers.push(*number);
        }
        if let Some(args) = &mut self.args {
            let block = &mut self.json;
            block.clear();
            block.byte(b'{');
            json.write(event, block);
            block.byte(b'}');
            args.append_value(String::from_utf8_lossy(block.as_bytes()));
        }
    }

    #[cold]
    fn meet(&mut self, kind: &Kind) {
        if self.kinds.len() <= kind.index {
            self.kinds.resize_with(kind.index + 1, || None);
        }
        self.kinds[kind.index] = Some((self.names.len() as IdxSize, JsonArgs::new(kind, "\"")));
        self.names.push(kind.name.clone());
    }

    /// A frame of these columns.
    fn frame(self, columns: Vec<PlSmallStr>) -> PolarsResult<DataFrame> {
        let Self { mut ts_ns, mut pid, mut event, mut args, .. } = self;
        let mut made = Vec::new();
        for name in columns {
            made.push(match name.as_str() {
                "ts_ns" => UInt64Chunked::from_vec(name, ts_ns.take().unwrap_or_default()).into_column(),
                "pid" => UInt32Chunked::from_vec(name, pid.take().unwrap_or_default()).into_column(),
                "event" => {
                    let names = StringChunked::from_slice(name.clone(), &self.names);
                    names.take(&IdxCa::from_vec(name, event.take().unwrap_or_default()))?.into_column()
                }
                _ => args.take().unwrap_or_else(StringChunkedBuilder::empty).finish().with_name(name).into_column(),
            });
        }
        DataFrame::new(self.rows, made)
    }
}
