//! Results in rows and columns: aligned for people, and as CSV and JSON for machines.

use serde_json::{Map, Value, json};

use crate::cli::TableFormat;
use crate::groups::GroupValue;

/// A result in rows and columns.
pub(crate) struct Rows {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

/// A column: machines know those of times as `NAME_ns`.
pub(crate) struct Column {
    name: String,
    kind: Kind,
    /// Whether tables leave it out.
    is_for_machines: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    /// Tables have all of these in one unit.
    Time,
    /// A place in time: in seconds in tables.
    Since,
}

/// What stands in a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Empty,
    Text(String),
    Count(u64),
    Ns(u64),
    /// So many a second, or another number that is not whole.
    Number(f64),
    /// A mean of whole numbers, which may be small.
    Mean(f64),
    /// A part of 1.
    Share(f64),
    /// By what part of the old something has changed.
    Change(f64),
    /// A value, and what tables call it.
    Value {
        value: GroupValue,
        short: Option<String>,
    },
}

/// A unit of time and its ns.
type Unit = (&'static str, u64);
const UNITS: [Unit; 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

impl Rows {
    /// No rows yet, and these columns.
    pub(crate) fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        let mut columns: Vec<Column> = columns.into_iter().collect();
        // An argument that is grouped by stands in front, and may be called as a column behind is, which others rely on.
        for place in 0..columns.len() {
            if columns[place + 1..].iter().any(|behind| behind.name == columns[place].name) {
                columns[place].name += "_2";
            }
        }
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row with a cell for each column.
    pub(crate) fn push(&mut self, row: Vec<Cell>) {
        debug_assert_eq!(row.len(), self.columns.len());
        self.rows.push(row);
    }

    /// In the format that was asked for; as JSON, an array.
    pub(crate) fn render(&self, format: TableFormat) -> serde_json::Result<String> {
        Ok(match format {
            TableFormat::Table => self.table(),
            TableFormat::Csv => self.csv(),
            TableFormat::Json => serde_json::to_string_pretty(&self.objects().collect::<Vec<_>>())? + "\n",
            TableFormat::Ndjson => self.objects().map(|row| Value::from(row).to_string() + "\n").collect(),
        })
    }

    /// Aligned columns, times in one unit.
    pub(crate) fn table(&self) -> String {
        let unit = self.unit();
        let name = |column: &Column| match column.kind {
            Kind::Plain => column.name.clone(),
            Kind::Time => format!("{}_{}", column.name, unit.0),
            Kind::Since => format!("{}_s", column.name),
        };
        let mut lines = vec![self.columns.iter().map(name).collect::<Vec<_>>()];
        lines.extend(self.rows.iter().map(|row| {
            let units = self.columns.iter().map(|column| if column.kind == Kind::Since { UNITS[0] } else { unit });
            row.iter().zip(units).map(|(cell, unit)| cut(cell.text(unit))).collect()
        }));
        let shown = (0..self.columns.len()).filter(|&column| !self.columns[column].is_for_machines);
        let is_left: Vec<_> = shown
            .clone()
            .map(|column| self.rows.iter().all(|row| row[column].is_text()) && self.columns[column].kind == Kind::Plain)
            .collect();
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default();
        let widths: Vec<_> = shown.map(width).collect();
        let mut table = String::new();
        for line in &lines {
            let shown = line.iter().zip(&self.columns).filter(|(_, column)| !column.is_for_machines);
            let cells = shown.map(|(cell, _)| cell).zip(&widths).zip(&is_left).map(|((cell, &width), is_left)| {
                if *is_left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            table.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
            table.push('\n');
        }
        table
    }

    /// The largest unit in which no time but 0 is below 1.
    fn unit(&self) -> Unit {
        let shown = |row: &'_ Vec<Cell>| {
            let cells = row.iter().zip(&self.columns).filter(|(_, column)| !column.is_for_machines);
            cells.filter_map(|(cell, _)| if let Cell::Ns(ns) = cell { Some(*ns) } else { None }).collect::<Vec<_>>()
        };
        let times = self.rows.iter().flat_map(shown);
        let least_ns = times.filter(|&ns| ns > 0).min().unwrap_or(1);
        UNITS.into_iter().find(|&(_, ns)| ns <= least_ns).unwrap_or(("ns", 1))
    }

    /// The names that machines know the columns by.
    fn fields(&self) -> impl Iterator<Item = String> {
        self.columns.iter().map(|column| match column.kind {
            Kind::Plain => column.name.clone(),
            Kind::Time | Kind::Since => format!("{}_ns", column.name),
        })
    }

    /// Comma-separated, with a line of names.
    pub(crate) fn csv(&self) -> String {
        let line = |cells: Vec<String>| cells.iter().map(|cell| quoted(cell)).collect::<Vec<_>>().join(",") + "\n";
        let mut csv = line(self.fields().collect());
        csv.extend(self.rows.iter().map(|row| line(row.iter().map(Cell::plain).collect())));
        csv
    }

    /// Each column: what machines call it, and its cells.
    #[cfg(feature = "columns")]
    pub(crate) fn by_column(&self) -> impl Iterator<Item = (String, impl Iterator<Item = &Cell>)> {
        self.fields().enumerate().map(|(column, name)| (name, self.rows.iter().map(move |row| &row[column])))
    }

    /// An object for each row.
    pub(crate) fn objects(&self) -> impl Iterator<Item = Map<String, Value>> {
        self.rows.iter().map(|row| self.fields().zip(row.iter().map(Cell::json)).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl Column {
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), kind: Kind::Plain, is_for_machines: false }
    }

    /// One of times.
    pub(crate) fn time(name: impl Into<String>) -> Self {
        Self { name: name.into(), kind: Kind::Time, is_for_machines: false }
    }

    /// The same, left out of tables if it is only for machines.
    pub(crate) fn for_machines(self, is_for_machines: bool) -> Self {
        Self { is_for_machines, ..self }
    }

    /// One of places in time, since the trace's start.
    pub(crate) fn since(name: impl Into<String>) -> Self {
        Self { name: name.into(), kind: Kind::Since, is_for_machines: false }
    }
}

impl Cell {
    /// A time, if there is one.
    pub(crate) fn ns(ns: Option<u64>) -> Self {
        ns.map_or(Self::Empty, Self::Ns)
    }

    /// How many there are a second, if they took any time.
    pub(crate) fn per_s(count: u64, span_ns: u64) -> Self {
        if span_ns > 0 { Self::Number(count as f64 * 1e9 / span_ns as f64) } else { Self::Empty }
    }

    /// As a table has it, if it is no time.
    pub(crate) fn shown(&self) -> String {
        cut(self.text(("ns", 1)))
    }

    fn is_text(&self) -> bool {
        match self {
            Self::Empty | Self::Text(_) => true,
            Self::Value { value, .. } => !matches!(value, GroupValue::Signed(_) | GroupValue::Unsigned(_)),
            Self::Count(_) | Self::Ns(_) | Self::Number(_) | Self::Mean(_) | Self::Share(_) | Self::Change(_) => false,
        }
    }

    /// For people.
    fn text(&self, (_, unit_ns): Unit) -> String {
        match self {
            Self::Empty => "-".to_owned(),
            Self::Ns(ns) if unit_ns == 1 => ns.to_string(),
            Self::Ns(ns) => format!("{}.{:03}", ns / unit_ns, ns % unit_ns / (unit_ns / 1_000)),
            Self::Number(number) => format!("{number:.1}"),
            Self::Mean(number) => format!("{number:.3}"),
            Self::Share(share) => format!("{:.1}%", share * 100.0),
            Self::Change(change) => format!("{:+.1}%", change * 100.0),
            Self::Value { short: Some(short), .. } => short.clone(),
            Self::Value { value: GroupValue::None, .. } => "-".to_owned(),
            Self::Value { value, .. } => value.to_string(),
            Self::Text(_) | Self::Count(_) => self.plain(),
        }
    }

    /// For machines, as text.
    fn plain(&self) -> String {
        match self {
            Self::Empty | Self::Value { value: GroupValue::None, .. } => String::new(),
            Self::Text(text) => text.clone(),
            Self::Count(count) => count.to_string(),
            Self::Ns(ns) => ns.to_string(),
            Self::Number(number) | Self::Mean(number) | Self::Share(number) | Self::Change(number) => {
                number.to_string()
            }
            Self::Value { value: GroupValue::Pointer(word), .. } => word.to_string(),
            Self::Value { value: GroupValue::Text(bytes), .. } => plain_text(bytes),
            Self::Value { value, .. } => value.to_string(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Empty | Self::Value { value: GroupValue::None, .. } => Value::Null,
            Self::Text(text) => text.as_str().into(),
            Self::Count(count) => (*count).into(),
            Self::Ns(ns) => (*ns).into(),
            Self::Number(number) | Self::Mean(number) | Self::Share(number) | Self::Change(number) => (*number).into(),
            Self::Value { value, .. } => match value {
                GroupValue::Signed(value) => (*value).into(),
                GroupValue::Unsigned(value) | GroupValue::Pointer(value) => (*value).into(),
                GroupValue::Bool(value) => (*value).into(),
                GroupValue::Text(bytes) => match str::from_utf8(bytes) {
                    Ok(text) => text.into(),
                    Err(_) => json!({ "hex": bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>() }),
                },
                value => value.to_string().into(),
            },
        }
    }
}

/// As `decode -F csv` has it: what is not UTF-8 with each byte from 0x80 up, and each backslash, as `\xNN`.
pub(crate) fn plain_text(bytes: &[u8]) -> String {
    match str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => {
            let plain = |byte: &u8| match byte {
                b'\\' | 0x80.. => format!("\\x{byte:02x}"),
                &byte => char::from(byte).to_string(),
            };
            bytes.iter().map(plain).collect()
        }
    }
}

/// A text as far as a column can be wide: one that is long would pad all rows.
fn cut(text: String) -> String {
    const SHOWN: usize = 100;

    match text.char_indices().nth(SHOWN) {
        Some(_) => text.chars().take(SHOWN - 3).chain("...".chars()).collect(),
        None => text,
    }
}

/// As RFC 4180 quotes.
fn quoted(cell: &str) -> String {
    if cell.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Rows {
        let mut rows = Rows::new([Column::new("vq"), Column::new("pairs"), Column::time("p50"), Column::new("share")]);
        rows.push(vec![
            Cell::Value { value: GroupValue::Pointer(0x55), short: Some("vq#1".to_owned()) },
            Cell::Count(12),
            Cell::Ns(1_500),
            Cell::Share(0.25),
        ]);
        rows.push(vec![
            Cell::Value { value: GroupValue::Text(b"a,b".into()), short: None },
            Cell::Count(3),
            Cell::Ns(2_000_000),
            Cell::Empty,
        ]);
        rows
    }

    #[test]
    fn a_table_is_aligned_and_has_one_unit() {
        assert_eq!(
            rows().table(),
            "\
vq    pairs    p50_us  share
vq#1     12     1.500  25.0%
a,b       3  2000.000      -
"
        );
    }

    #[test]
    fn a_column_in_front_gives_way_to_one_of_its_name() {
        let mut rows = Rows::new(["share", "pairs", "share"].map(Column::new));
        rows.push([1, 2, 3].map(Cell::Count).into());
        assert_eq!(rows.csv(), "share_2,pairs,share\n1,2,3\n");
    }

    #[test]
    fn machines_get_whole_ns_and_quoted_text() {
        assert_eq!(rows().csv(), "vq,pairs,p50_ns,share\n85,12,1500,0.25\n\"a,b\",3,2000000,\n");
        let objects: Vec<_> = rows().objects().map(|object| Value::from(object).to_string()).collect();
        assert_eq!(
            objects,
            [
                r#"{"p50_ns":1500,"pairs":12,"share":0.25,"vq":85}"#,
                r#"{"p50_ns":2000000,"pairs":3,"share":null,"vq":"a,b"}"#
            ]
        );
    }

    #[test]
    fn text_that_is_no_utf8_keeps_its_bytes() {
        let cell = Cell::Value { value: GroupValue::Text(b"a\\\xff".into()), short: None };
        assert_eq!((cell.plain(), cell.json()), (r"a\x5c\xff".to_owned(), json!({ "hex": "615cff" })));
    }

    #[test]
    fn a_long_text_is_cut_in_tables_only() {
        let mut rows = Rows::new(["s", "n"].map(Column::new));
        let long = "é".repeat(101);
        for text in ["é".repeat(100), long.clone()] {
            let value = GroupValue::Text(text.into_bytes());
            rows.push(vec![Cell::Value { value, short: None }, Cell::Count(1)]);
        }
        let table = rows.table();
        let lines: Vec<_> = table.lines().skip(1).collect();
        assert_eq!(lines, [format!("{}  1", "é".repeat(100)), format!("{}...  1", "é".repeat(97))]);
        assert!(rows.csv().contains(&format!("\n{long},1\n")));
    }

    #[test]
    fn the_unit_is_one_in_which_nothing_is_below_1() {
        let unit = |times: &[u64]| {
            let mut rows = Rows::new([Column::time("t")]);
            times.iter().for_each(|&ns| rows.push(vec![Cell::Ns(ns)]));
            rows.unit().0
        };
        assert_eq!((unit(&[]), unit(&[0]), unit(&[999, 1_000_000])), ("ns", "ns", "ns"));
        assert_eq!(
            (unit(&[0, 1_000]), unit(&[999_999]), unit(&[1_000_000]), unit(&[u64::MAX])),
            ("us", "us", "ms", "s")
        );
    }
}
