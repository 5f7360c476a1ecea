//! The table `pairs`: operations with all their stages.

use std::borrow::Borrow;
use std::ops::Range;

use anyhow::Result;
use arrow_schema::{DataType, Field};
use simpletrace_format::Value;
use simpletrace_format::events::{ArgType, EventDecl, EventIndex};

use crate::columns::{Builders, Fill, Oddities, data_type, put_text};
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
                (format!("{}_log2", by.side.arg), DataType::Utf8)
            } else {
                (by.side.arg.clone(), common_type(types))
            };
            add(&name, Of::Group(slot), ty);
        }
        Ok(Self { question, names, conditions, columns })
    }

    /// The events that it is about.
    #[cfg(feature = "frames")]
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// All columns of its table.
    pub(crate) fn fields(&self) -> impl Iterator<Item = Field> {
        self.columns.iter().map(|column| Field::new(&column.name, column.ty.clone(), column.may_lack()))
    }

    /// The types of what is grouped by.
    pub(crate) fn group_types(&self) -> impl Iterator<Item = &DataType> {
        self.columns.iter().filter(|column| matches!(column.of, Of::Group(_))).map(|column| &column.ty)
    }
}

impl PairColumn {
    /// Whether an operation may be without it.
    const fn may_lack(&self) -> bool {
        matches!(self.of, Of::Key(_) | Of::Group(_))
    }
}

/// The type of an argument, or of what is known of every record.
fn type_of(decl: &EventDecl, arg: &str) -> Option<DataType> {
    match (decl.args.iter().find(|other| other.name == arg), arg) {
        (Some(arg), _) => Some(data_type(arg.ty)),
        (None, "pid") => Some(DataType::UInt32),
        (None, "event") => Some(DataType::Utf8),
        (None, _) => None,
    }
}

/// The type of a column, if that is the same in all events; else text has room for each.
fn common_type(types: impl Iterator<Item = Option<DataType>>) -> DataType {
    let mut types = types.flatten();
    match types.next() {
        Some(first) if types.all(|ty| ty == first) => first,
        _ => DataType::Utf8,
    }
}

/// The table while it is filled.
pub(crate) struct Pairs {
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
    pub(crate) fn new(operation: &Operation, columns: &[String], declared: &EventIndex) -> Self {
        let has = |of: fn(&Of) -> bool| {
            operation.columns.iter().any(|column| of(&column.of) && columns.contains(&column.name))
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
    pub(crate) fn take(&mut self, item: &Item<'_>) {
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

    pub(crate) fn finish(&mut self) {
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

    /// What matches them.
    pub(crate) const fn pairing(&self) -> &Pairing {
        &self.pairing
    }

    /// How many there are.
    pub(crate) const fn len(&self) -> usize {
        self.begin_ns.len()
    }

    /// About how much a row takes, in bytes.
    pub(crate) fn bytes(&self, row: usize) -> usize {
        /// Of what has a fixed size.
        const ROW_BYTES: usize = 64;

        let text = |part: &KeyValue| if let KeyValue::Text(bytes) = part { bytes.len() } else { 0 };
        let key = self.keys.get(row).map_or(0, |key| key.iter().map(text).sum());
        let slots = 0..self.operation.question.by.len();
        let group = self.groups.get(row).map_or(0, |group| slots.map(|slot| self.group(group, slot).bytes()).sum());
        ROW_BYTES + key + group
    }

    fn group(&self, group: &GroupId, slot: usize) -> &GroupValue {
        &self.pairing.groups.values(slot)[group[slot] as usize]
    }

    /// The columns that are wanted, in the order of the table, of some rows.
    pub(crate) fn columns<B: Builders>(
        &self,
        columns: &[String],
        rows: Range<usize>,
        oddities: &mut Oddities,
    ) -> Vec<B::Column> {
        let (begin_ns, end_ns) = (&self.begin_ns[rows.clone()], &self.end_ns[rows.clone()]);
        let mut made = Vec::new();
        for column in self.operation.columns.iter().filter(|column| columns.contains(&column.name)) {
            made.push(match column.of {
                Of::Begin => words::<B>(begin_ns.iter().copied()),
                Of::End => words::<B>(end_ns.iter().copied()),
                Of::Latency => words::<B>(begin_ns.iter().zip(end_ns).map(|(begin_ns, end_ns)| end_ns - begin_ns)),
                Of::Hop(hop) => {
                    let hops = self.operation.question.chain.len() - 1;
                    words::<B>(rows.clone().map(|row| self.hops_ns[row * hops + hop - 1]))
                }
                Of::Suspect => {
                    let mut values = B::Bool::empty();
                    self.suspect[rows.clone()].iter().for_each(|&suspect| values.put(suspect));
                    values.take(0)
                }
                Of::Key(slot) => {
                    let ty = self.pairing.key_types[slot].unwrap_or(ArgType::Pointer);
                    let values = self.keys[rows.clone()].iter().map(|key| match key.get(slot) {
                        Some(KeyValue::Word(word)) => GroupValue::of(Value::from_word(*word, ty), false),
                        Some(KeyValue::Text(bytes)) => GroupValue::Text(bytes.clone()),
                        None => GroupValue::None,
                    });
                    values_column::<B, _>(&column.ty, values, oddities)
                }
                Of::Group(slot) => {
                    let values = self.groups[rows.clone()].iter().map(|group| self.group(group, slot));
                    values_column::<B, _>(&column.ty, values, oddities)
                }
            });
        }
        made
    }
}

fn words<B: Builders>(values: impl Iterator<Item = u64>) -> B::Column {
    let mut column = B::U64::empty();
    values.for_each(|value| column.put(value));
    column.take(0)
}

/// Words as a column of what they stand for.
fn filled<T, C, F: Fill<T, C>>(mut column: F, words: impl Iterator<Item = Option<u64>>, value: impl Fn(u64) -> T) -> C {
    for word in words {
        match word {
            Some(word) => column.put(value(word)),
            None => column.put_null(),
        }
    }
    column.take(0)
}

/// Values as a column of a type; null, where one is of another.
pub(crate) fn values_column<B: Builders, V: Borrow<GroupValue>>(
    ty: &DataType,
    values: impl Iterator<Item = V>,
    oddities: &mut Oddities,
) -> B::Column {
    let word = |value: &GroupValue| match value {
        GroupValue::Signed(value) => Some(value.cast_unsigned()),
        GroupValue::Unsigned(word) | GroupValue::Pointer(word) => Some(*word),
        GroupValue::Bool(value) => Some(u64::from(*value)),
        _ => None,
    };
    let word = |value: V| word(value.borrow());
    match ty {
        DataType::Int64 => filled(B::I64::empty(), values.map(word), u64::cast_signed),
        DataType::UInt64 => filled(B::U64::empty(), values.map(word), |word| word),
        DataType::UInt32 => filled(B::U32::empty(), values.map(word), |word| word as u32),
        DataType::Boolean => filled(B::Bool::empty(), values.map(word), |word| word != 0),
        _ => {
            let mut column = B::Text::empty();
            for value in values {
                match value.borrow() {
                    GroupValue::None => column.put_null(),
                    GroupValue::Text(bytes) => put_text(bytes, oddities, |text| column.put(text)),
                    // As everywhere for machines.
                    GroupValue::Pointer(word) => column.put(&word.to_string()),
                    value => column.put(&value.to_string()),
                }
            }
            column.take(0)
        }
    }
}
