//! The table `pairs`: operations with all their stages.

use anyhow::Result;
use polars::prelude::*;
use simpletrace_format::Value;
use simpletrace_format::events::{ArgType, EventDecl, EventIndex};

use crate::columns::{Oddities, put_text};
use crate::condition::{Conditions, Predicate};
use crate::groups::{GroupId, GroupValue};
use crate::pairing::{KeyValue, Out, Pairing, Question};
use crate::trace::Item;

/// An operation to be looked for, and the columns of its table.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    question: Question,
    /// The events that it is about.
    names: Vec<String>,
    /// Which of their records take part.
    conditions: Conditions,
    columns: Vec<PairColumn>,
}

#[derive(Debug, Clone)]
struct PairColumn {
    name: String,
    of: Of,
    ty: DataType,
}

/// What a column is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Begin,
    End,
    Latency,
    /// From stage to stage.
    Hop(usize),
    Key(usize),
    Group(usize),
    Suspect,
}

impl Operation {
    /// Takes a question and the filters that come with it.
    ///
    /// # Errors
    ///
    /// It does not go with the declarations.
    pub(crate) fn new(question: Question, filters: &[String], declared: &EventIndex, may_lack: bool) -> Result<Self> {
        let names = question.names(declared, may_lack)?;
        let conditions = Conditions::parse(filters)?;
        conditions.check(&crate::filter::Globs::of_names(names.clone()), Some(declared))?;
        let decls: Vec<_> = names.iter().filter_map(|name| declared.get(name)?.event).collect();
        let mut columns = Vec::new();
        let mut add = |name: &str, of, ty| {
            let mut name = name.to_owned();
            while columns.iter().any(|column: &PairColumn| column.name == name) {
                name += "_2";
            }
            columns.push(PairColumn { name, of, ty });
        };
        add("begin_ns", Of::Begin, DataType::UInt64);
        add("end_ns", Of::End, DataType::UInt64);
        add("latency_ns", Of::Latency, DataType::UInt64);
        if question.chain.len() > 2 {
            (1..question.chain.len()).for_each(|hop| add(&format!("hop{hop}_ns"), Of::Hop(hop), DataType::UInt64));
        }
        add("suspect", Of::Suspect, DataType::Boolean);
        let places = |decl: &EventDecl| {
            question.chain.places(&decl.name).into_iter().map(|place| place.stage).collect::<Vec<_>>()
        };
        for (slot, part) in question.on.iter().enumerate() {
            // By the name that it has where the operation begins.
            let args = decls.iter().flat_map(|decl| places(decl).into_iter().map(move |stage| (decl, stage)));
            let mut args: Vec<_> =
                args.filter_map(|(decl, stage)| Some((stage, decl, part.arg(&decl.name, stage)?))).collect();
            args.sort_by_key(|&(stage, ..)| stage);
            let Some(&(_, _, name)) = args.first() else { continue };
            add(name, Of::Key(slot), common_type(args.iter().map(|(_, decl, arg)| type_of(decl, arg))));
        }
        for (slot, by) in question.by.iter().enumerate() {
            let is_of = |decl: &&EventDecl| places(decl).iter().any(|&stage| by.side.is_of(&decl.name, stage));
            let of = decls.iter().filter(|decl| is_of(decl) || by.side.arg == "event");
            let types = of.filter_map(|decl| type_of(decl, &by.side.arg)).map(Some);
            let (name, ty) = if by.is_log2 {
                (format!("{}_log2", by.side.arg), DataType::String)
            } else {
                (by.side.arg.clone(), common_type(types))
            };
            add(&name, Of::Group(slot), ty);
        }
        Ok(Self { question, names, conditions, columns })
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    pub(super) fn schema(&self) -> Schema {
        self.columns.iter().map(|column| Field::new(column.name.as_str().into(), column.ty.clone())).collect()
    }
}

/// The type of an argument, or of what is known of every record.
fn type_of(decl: &EventDecl, arg: &str) -> Option<DataType> {
    match (decl.args.iter().find(|other| other.name == arg), arg) {
        (Some(arg), _) => Some(match arg.ty {
            ArgType::Signed(_) | ArgType::Char => DataType::Int64,
            ArgType::Bool => DataType::Boolean,
            ArgType::String => DataType::String,
            ArgType::Unsigned(_) | ArgType::Pointer => DataType::UInt64,
        }),
        (None, "pid") => Some(DataType::UInt32),
        (None, "event") => Some(DataType::String),
        (None, _) => None,
    }
}

/// The type of a column, if that is the same in all events; else text has room for each.
fn common_type(types: impl Iterator<Item = Option<DataType>>) -> DataType {
    let mut types = types.flatten();
    match types.next() {
        Some(first) if types.all(|ty| ty == first) => first,
        _ => DataType::String,
    }
}

/// The table while it is filled.
pub(super) struct Pairs {
    operation: Operation,
    pairing: Pairing,
    /// By the number of a kind of event: what its records have to meet; `None` before its first record.
    wanted: Vec<Option<Wanted>>,
    begin_ns: Vec<u64>,
    end_ns: Vec<u64>,
    /// Of all hops of each.
    hops_ns: Vec<u64>,
    keys: Vec<Vec<KeyValue>>,
    groups: Vec<GroupId>,
    suspect: Vec<bool>,
    /// How many there were when it was last learned that events are missing.
    settled: usize,
    has: Has,
}

/// What is kept of each pair.
#[derive(Clone, Copy)]
struct Has {
    hops: bool,
    keys: bool,
    groups: bool,
}

enum Wanted {
    All,
    Some(Box<Predicate>),
    Nothing,
}

impl Pairs {
    pub(super) fn new(operation: &Operation, columns: &[PlSmallStr], declared: &EventIndex) -> Self {
        let has = |of: fn(&Of) -> bool| {
            operation.columns.iter().any(|column| of(&column.of) && columns.iter().any(|name| *name == column.name))
        };
        let mut pairing = Pairing::new(operation.question.clone(), &operation.names, declared);
        pairing.groups.tell_all_apart();
        Self {
            pairing,
            operation: operation.clone(),
            wanted: Vec::new(),
            begin_ns: Vec::new(),
            end_ns: Vec::new(),
            hops_ns: Vec::new(),
            keys: Vec::new(),
            groups: Vec::new(),
            suspect: Vec::new(),
            settled: 0,
            has: Has {
                hops: has(|of| matches!(of, Of::Hop(_))),
                keys: has(|of| matches!(of, Of::Key(_))),
                groups: has(|of| matches!(of, Of::Group(_))),
            },
        }
    }

    #[inline]
    pub(super) fn take(&mut self, item: &Item<'_>) {
        if let Item::Event(event) = item {
            let index = event.kind.index;
            if self.wanted.len() <= index {
                self.wanted.resize_with(index + 1, || None);
            }
            let wanted = self.wanted[index].get_or_insert_with(|| {
                let kind = event.kind;
                match self.operation.conditions.choose(&kind.name, kind.args(), kind.has_text()) {
                    _ if !self.operation.names.contains(&kind.name) => Wanted::Nothing,
                    Ok(None) => Wanted::All,
                    Ok(Some(predicate)) => Wanted::Some(Box::new(predicate)),
                    Err(_) => Wanted::Nothing,
                }
            });
            match wanted {
                Wanted::All => {}
                Wanted::Some(predicate) if predicate.admits(&event.record, event.start_ns) == Some(true) => {}
                Wanted::Some(_) | Wanted::Nothing => return,
            }
        }
        self.hand(Some(item));
    }

    pub(super) fn finish(&mut self) {
        self.hand(None);
    }

    /// Takes in an item, or the end.
    #[inline]
    fn hand(&mut self, item: Option<&Item<'_>>) {
        let Self { pairing, begin_ns, end_ns, hops_ns, keys, groups, suspect, settled, has, .. } = self;
        let mut take = |out: Out<'_>| match out {
            Out::Pair(pair) => {
                begin_ns.push(pair.begin_ns);
                end_ns.push(pair.end_ns);
                suspect.push(pair.straddles);
                if has.hops {
                    let mut before_ns = pair.begin_ns;
                    for &time_ns in pair.hops_ns.iter().chain([&pair.end_ns]) {
                        hops_ns.push(time_ns - before_ns);
                        before_ns = time_ns;
                    }
                }
                if has.keys {
                    keys.push(pair.key());
                }
                if has.groups {
                    groups.push(pair.group);
                }
            }
            Out::Suspect => {
                suspect[*settled..].fill(true);
                *settled = suspect.len();
            }
            Out::Depth { .. } => {}
        };
        match item {
            Some(item) => pairing.take(item, &mut take),
            None => pairing.finish(&mut take),
        }
    }

    /// The columns that are wanted.
    pub(super) fn frame(mut self, columns: &[PlSmallStr], oddities: &mut Oddities) -> PolarsResult<DataFrame> {
        let height = self.begin_ns.len();
        let mut made = Vec::new();
        for column in std::mem::take(&mut self.operation.columns) {
            let name = PlSmallStr::from_str(&column.name);
            if !columns.contains(&name) {
                continue;
            }
            made.push(match column.of {
                Of::Begin => Column::new(name, &self.begin_ns),
                Of::End => Column::new(name, &self.end_ns),
                Of::Latency => {
                    let latencies = self.begin_ns.iter().zip(&self.end_ns).map(|(begin_ns, end_ns)| end_ns - begin_ns);
                    Column::new(name, latencies.collect::<Vec<_>>())
                }
                Of::Hop(hop) => {
                    let hops = self.operation.question.chain.len() - 1;
                    Column::new(name, self.hops_ns.iter().skip(hop - 1).step_by(hops).copied().collect::<Vec<_>>())
                }
                Of::Suspect => Column::new(name, &self.suspect),
                Of::Key(slot) => {
                    let ty = self.pairing.key_types[slot].unwrap_or(ArgType::Pointer);
                    let values = self.keys.iter().map(|key| match key.get(slot) {
                        Some(KeyValue::Word(word)) => GroupValue::of(Value::from_word(*word, ty), false),
                        Some(KeyValue::Text(bytes)) => GroupValue::Text(bytes.clone()),
                        None => GroupValue::None,
                    });
                    values_column(name, &column.ty, values.collect::<Vec<_>>().iter(), oddities)
                }
                Of::Group(slot) => {
                    let known = self.pairing.groups.values(slot);
                    let values = self.groups.iter().map(|group| &known[group[slot] as usize]);
                    values_column(name, &column.ty, values, oddities)
                }
            });
        }
        DataFrame::new(height, made)
    }
}

/// Values as a column of a type.
fn values_column<'a>(
    name: PlSmallStr,
    ty: &DataType,
    values: impl Iterator<Item = &'a GroupValue>,
    oddities: &mut Oddities,
) -> Column {
    let word = |value: &GroupValue| match value {
        GroupValue::Signed(value) => Some(value.cast_unsigned()),
        GroupValue::Unsigned(word) | GroupValue::Pointer(word) => Some(*word),
        GroupValue::Bool(value) => Some(u64::from(*value)),
        _ => None,
    };
    match ty {
        DataType::Int64 => {
            Int64Chunked::from_iter_options(name, values.map(|value| word(value).map(u64::cast_signed))).into_column()
        }
        DataType::UInt64 => UInt64Chunked::from_iter_options(name, values.map(word)).into_column(),
        DataType::UInt32 => {
            UInt32Chunked::from_iter_options(name, values.map(|value| word(value).map(|word| word as u32)))
                .into_column()
        }
        DataType::Boolean => {
            BooleanChunked::from_iter_options(name, values.map(|value| word(value).map(|word| word != 0))).into_column()
        }
        _ => {
            let texts = values.map(|value| match value {
                GroupValue::None => None,
                GroupValue::Text(bytes) => Some(put_text(bytes, oddities, str::to_owned)),
                // As everywhere for machines.
                GroupValue::Pointer(word) => Some(word.to_string()),
                value => Some(value.to_string()),
            });
            StringChunked::from_iter_options(name, texts).into_column()
        }
    }
}
