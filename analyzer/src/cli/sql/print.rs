//! Results of queries: aligned for people, CSV and JSON with the values of docs/EXPORTS.md, and Parquet.

use anyhow::Result;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float32Type, Float64Type, Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array as _, ArrayRef, BinaryArray, BooleanArray, Float32Array, Float64Array, Int32Array, Int64Array, RecordBatch,
    StringArray, UInt32Array, UInt64Array,
};
use arrow_schema::DataType;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use crate::columns::plain_error;
use crate::output::{Flushing, Output};
use crate::render::{Block, csv_cell, json_string, printable};

/// The version of the schema of the JSON document.
const SCHEMA: &str = "simpletrace-rs.sql/1";

/// A column of a batch.
enum Column<'a> {
    Signed32(&'a Int32Array),
    Signed(&'a Int64Array),
    Unsigned32(&'a UInt32Array),
    Unsigned(&'a UInt64Array),
    Float32(&'a Float32Array),
    Float(&'a Float64Array),
    Bool(&'a BooleanArray),
    Text(&'a StringArray),
    Bytes(&'a BinaryArray),
}

/// A value of one.
enum Value<'a> {
    None,
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Bool(bool),
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl<'a> Column<'a> {
    /// Of one of the types that results have.
    fn new(array: &'a ArrayRef) -> Self {
        match array.data_type() {
            DataType::Int32 => Self::Signed32(array.as_primitive::<Int32Type>()),
            DataType::Int64 => Self::Signed(array.as_primitive::<Int64Type>()),
            DataType::UInt32 => Self::Unsigned32(array.as_primitive::<UInt32Type>()),
            DataType::UInt64 => Self::Unsigned(array.as_primitive::<UInt64Type>()),
            DataType::Float32 => Self::Float32(array.as_primitive::<Float32Type>()),
            DataType::Float64 => Self::Float(array.as_primitive::<Float64Type>()),
            DataType::Boolean => Self::Bool(array.as_boolean()),
            DataType::Binary => Self::Bytes(array.as_binary()),
            _ => Self::Text(array.as_string()),
        }
    }

    fn value(&self, row: usize) -> Value<'a> {
        match self {
            Self::Signed32(array) if array.is_valid(row) => Value::Signed(array.value(row).into()),
            Self::Signed(array) if array.is_valid(row) => Value::Signed(array.value(row)),
            Self::Unsigned32(array) if array.is_valid(row) => Value::Unsigned(array.value(row).into()),
            Self::Float32(array) if array.is_valid(row) => Value::Float(array.value(row).into()),
            Self::Unsigned(array) if array.is_valid(row) => Value::Unsigned(array.value(row)),
            Self::Float(array) if array.is_valid(row) => Value::Float(array.value(row)),
            Self::Bool(array) if array.is_valid(row) => Value::Bool(array.value(row)),
            Self::Text(array) if array.is_valid(row) => Value::Text(array.value(row)),
            Self::Bytes(array) if array.is_valid(row) => Value::Bytes(array.value(row)),
            _ => Value::None,
        }
    }
}

/// The columns of a batch.
fn columns(batch: &RecordBatch) -> Vec<Column<'_>> {
    batch.columns().iter().map(Column::new).collect()
}

/// The names of the columns.
fn names(batches: &[RecordBatch]) -> impl Iterator<Item = &str> {
    batches.iter().take(1).flat_map(|batch| batch.schema_ref().fields()).map(|field| field.name().as_str())
}

pub(super) fn csv(batches: &[RecordBatch], output: &mut Output) -> Result<()> {
    for (place, name) in names(batches).enumerate() {
        output.block.put(if place == 0 { "" } else { "," });
        csv_cell(name.as_bytes(), &mut output.block);
    }
    output.block.byte(b'\n');
    for batch in batches {
        let columns = columns(batch);
        for row in 0..batch.num_rows() {
            for (place, column) in columns.iter().enumerate() {
                output.block.put(if place == 0 { "" } else { "," });
                match column.value(row) {
                    Value::Text(text) => csv_cell(text.as_bytes(), &mut output.block),
                    value => plain(&value, "", &mut output.block),
                }
            }
            output.block.byte(b'\n');
            output.write_if_full()?;
        }
    }
    Ok(())
}

/// Numbers, truth and bytes, as CSV and JSON have them; what is none of these is `none`.
fn plain(value: &Value<'_>, none: &str, block: &mut Block) {
    match value {
        Value::None | Value::Text(_) => block.put(none),
        Value::Signed(value) => block.signed_decimal(*value),
        Value::Unsigned(value) => block.decimal(*value),
        // Those that are whole, as quantiles of whole numbers are, have no point.
        Value::Float(value) => block.put(value.to_string()),
        Value::Bool(value) => block.put(if *value { "true" } else { "false" }),
        Value::Bytes(bytes) => block.hex_bytes(bytes),
    }
}

/// One document, or one object a line.
pub(super) fn json(batches: &[RecordBatch], is_document: bool, output: &mut Output) -> Result<()> {
    let names: Vec<_> = names(batches)
        .enumerate()
        .map(|(place, name)| {
            let mut key = Block::default();
            key.put(if place == 0 { "" } else { "," });
            json_string(name.as_bytes(), "\"", &mut key);
            key.byte(b':');
            key.as_bytes().to_vec()
        })
        .collect();
    if is_document {
        output.block.put(format!("{{\"schema\":\"{SCHEMA}\",\"rows\":["));
    }
    let mut before = if is_document { "\n" } else { "" };
    for batch in batches {
        let columns = columns(batch);
        for row in 0..batch.num_rows() {
            output.block.put(before);
            output.block.byte(b'{');
            for (name, column) in names.iter().zip(&columns) {
                output.block.put(name);
                match column.value(row) {
                    Value::Text(text) => json_string(text.as_bytes(), "\"", &mut output.block),
                    Value::Bytes(bytes) => {
                        output.block.put("{\"hex\":\"");
                        output.block.hex_bytes(bytes);
                        output.block.put("\"}");
                    }
                    // JSON has no way to write it.
                    Value::Float(value) if !value.is_finite() => output.block.put("null"),
                    value => plain(&value, "null", &mut output.block),
                }
            }
            output.block.put(if is_document { "}" } else { "}\n" });
            if is_document {
                before = ",\n";
            }
            output.write_if_full()?;
        }
    }
    if is_document {
        output.block.put("\n]}\n");
    }
    Ok(())
}

/// Aligned columns: numbers to the right.
pub(super) fn table(batches: &[RecordBatch], output: &mut Output) -> Result<()> {
    let names: Vec<_> = names(batches).map(printable).collect();
    let mut widths: Vec<_> = names.iter().map(|name| name.chars().count()).collect();
    let is_left: Vec<_> = batches.iter().take(1).flat_map(columns).map(|column| column.is_text()).collect();
    let decimals: Vec<_> = (0..names.len()).map(|place| decimals(batches, place)).collect();
    let mut text = String::new();
    for batch in batches {
        for (place, column) in columns(batch).iter().enumerate() {
            for row in 0..batch.num_rows() {
                text.clear();
                shown(&column.value(row), decimals[place], &mut text);
                widths[place] = widths[place].max(text.chars().count());
            }
        }
    }
    let put_line = |cells: &mut dyn Iterator<Item = String>, block: &mut Block| {
        let mut line = String::new();
        for (place, cell) in cells.enumerate() {
            let width = widths[place];
            line += if place == 0 { "" } else { "  " };
            line += &if is_left[place] { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
        }
        block.put(line.trim_end());
        block.byte(b'\n');
    };
    put_line(&mut names.iter().cloned(), &mut output.block);
    for batch in batches {
        let columns = columns(batch);
        for row in 0..batch.num_rows() {
            let cells = columns.iter().zip(&decimals).map(|(column, &decimals)| {
                let mut text = String::new();
                shown(&column.value(row), decimals, &mut text);
                text
            });
            put_line(&mut { cells }, &mut output.block);
            output.write_if_full()?;
        }
    }
    Ok(())
}

impl Column<'_> {
    const fn is_text(&self) -> bool {
        matches!(self, Self::Bool(_) | Self::Text(_) | Self::Bytes(_))
    }
}

/// How many decimals the numbers of a column are shown with: none if all are whole.
fn decimals(batches: &[RecordBatch], place: usize) -> usize {
    let mut most = None::<f64>;
    let mut is_whole = true;
    for batch in batches {
        let column = Column::new(batch.column(place));
        if !matches!(column, Column::Float(_) | Column::Float32(_)) {
            return 0;
        }
        for row in 0..batch.num_rows() {
            if let Value::Float(value) = column.value(row)
                && value.is_finite()
            {
                most = Some(most.unwrap_or_default().max(value.abs()));
                is_whole &= value.fract() == 0.0;
            }
        }
    }
    match most {
        _ if is_whole => 0,
        Some(most) if most < 1.0 => 6,
        _ => 3,
    }
}

fn shown(value: &Value<'_>, decimals: usize, text: &mut String) {
    use std::fmt::Write as _;

    // Writing to a string cannot fail.
    let _ = match value {
        Value::None => write!(text, "-"),
        Value::Signed(value) => write!(text, "{value}"),
        Value::Unsigned(value) => write!(text, "{value}"),
        Value::Float(value) => write!(text, "{value:.decimals$}"),
        Value::Bool(value) => write!(text, "{value}"),
        Value::Text(value) => write!(text, "{}", printable(value)),
        Value::Bytes(bytes) => bytes.iter().try_for_each(|byte| write!(text, "{byte:02x}")),
    };
}

pub(super) fn parquet(batches: &[RecordBatch], output: &mut Output) -> Result<()> {
    let Some(first) = batches.first() else { return Ok(()) };
    let compression = Compression::ZSTD(ZstdLevel::try_new(3)?);
    let properties = WriterProperties::builder().set_compression(compression).build();
    let mut writer = ArrowWriter::try_new(Flushing(output), first.schema(), Some(properties)).map_err(plain_error)?;
    for batch in batches {
        writer.write(batch).map_err(plain_error)?;
    }
    writer.close().map_err(plain_error)?;
    Ok(())
}
