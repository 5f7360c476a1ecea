//! Results of polars as Arrow's columns.

use std::sync::Arc;

use anyhow::{Result, bail};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Float32Array, Float64Array, Int32Array, Int64Array, RecordBatch,
    RecordBatchOptions, StringArray, UInt32Array, UInt64Array,
};
use arrow_schema::{DataType as ArrowType, Field as ArrowField, Schema as ArrowSchema};
use polars::prelude::*;

/// Rows of a result that become one batch, and bytes of a column of text, which Arrow finds by 31 bits.
const BATCH_ROWS: usize = 1 << 16;
const BATCH_BYTES: usize = 1 << 30;

/// The type of a column of [`columns`](crate::columns).
pub(super) const fn polars_type(ty: &ArrowType) -> DataType {
    match ty {
        ArrowType::Int64 => DataType::Int64,
        ArrowType::UInt32 => DataType::UInt32,
        ArrowType::Boolean => DataType::Boolean,
        ArrowType::Utf8 => DataType::String,
        ArrowType::Binary => DataType::Binary,
        _ => DataType::UInt64,
    }
}

/// A result in batches. Numbers have the bits that polars gives them, 32 or 64.
///
/// # Errors
///
/// A column of a type that no output has, or a text that Arrow has no room for.
pub(super) fn batches(frame: &DataFrame) -> Result<Vec<RecordBatch>> {
    batches_of(frame, BATCH_ROWS, BATCH_BYTES)
}

fn batches_of(frame: &DataFrame, most_rows: usize, most_bytes: usize) -> Result<Vec<RecordBatch>> {
    let mut fields = Vec::new();
    for column in frame.columns() {
        let ty = match column.dtype() {
            DataType::Int32 => ArrowType::Int32,
            DataType::Int64 => ArrowType::Int64,
            DataType::UInt32 => ArrowType::UInt32,
            DataType::UInt64 => ArrowType::UInt64,
            DataType::Float32 => ArrowType::Float32,
            DataType::Float64 => ArrowType::Float64,
            DataType::Boolean => ArrowType::Boolean,
            // Nothing but nulls.
            DataType::String | DataType::Null => ArrowType::Utf8,
            DataType::Binary => ArrowType::Binary,
            other => bail!(
                "column {} is of type {other}, which no output has; make it a number or text, such as with CAST({0} AS \
                 BIGINT) or CAST({0} AS VARCHAR)",
                column.name()
            ),
        };
        fields.push(ArrowField::new(column.name().as_str(), ty, true));
    }
    let schema = Arc::new(ArrowSchema::new(fields));
    let mut batches = Vec::new();
    let mut from = 0;
    // One even of nothing: it has the names.
    while from < frame.height() || batches.is_empty() {
        let mut part = frame.slice(from as i64, most_rows);
        let mut bytes = text_bytes(&part)?;
        while bytes > most_bytes && part.height() > 1 {
            part = part.head(Some(part.height() / 2));
            bytes = text_bytes(&part)?;
        }
        if bytes > i32::MAX as usize {
            bail!("a value of row {} has {bytes} bytes, which is more than an output has room for", from + 1);
        }
        from += part.height();
        let columns =
            part.columns().iter().zip(schema.fields()).map(|(column, field)| array(column, field.data_type()));
        let options = RecordBatchOptions::new().with_row_count(Some(part.height()));
        batches.push(RecordBatch::try_new_with_options(
            Arc::clone(&schema),
            columns.collect::<PolarsResult<_>>()?,
            &options,
        )?);
    }
    Ok(batches)
}

/// How many bytes of text, or of bytes, the column has that has the most.
fn text_bytes(frame: &DataFrame) -> PolarsResult<usize> {
    let mut most = 0;
    for column in frame.columns() {
        let series = column.as_materialized_series();
        most = most.max(match series.dtype() {
            DataType::String => series.str()?.iter().flatten().map(str::len).sum(),
            DataType::Binary => series.binary()?.iter().flatten().map(<[u8]>::len).sum(),
            _ => 0,
        });
    }
    Ok(most)
}

fn array(column: &Column, ty: &ArrowType) -> PolarsResult<ArrayRef> {
    let series = column.as_materialized_series();
    Ok(match ty {
        ArrowType::Int32 => Arc::new(series.i32()?.iter().collect::<Int32Array>()),
        ArrowType::Int64 => Arc::new(series.i64()?.iter().collect::<Int64Array>()),
        ArrowType::UInt32 => Arc::new(series.u32()?.iter().collect::<UInt32Array>()),
        ArrowType::UInt64 => Arc::new(series.u64()?.iter().collect::<UInt64Array>()),
        ArrowType::Float32 => Arc::new(series.f32()?.iter().collect::<Float32Array>()),
        ArrowType::Float64 => Arc::new(series.f64()?.iter().collect::<Float64Array>()),
        ArrowType::Boolean => Arc::new(series.bool()?.iter().collect::<BooleanArray>()),
        ArrowType::Binary => Arc::new(series.binary()?.iter().collect::<BinaryArray>()),
        _ => Arc::new(series.cast(&DataType::String)?.str()?.iter().collect::<StringArray>()),
    })
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray as _;
    use arrow_array::types as arrow;

    use super::*;

    #[test]
    fn a_batch_ends_before_its_text_is_too_long() {
        let texts = ["aaaa", "bbbb", "", "cccc", "dddddddddd", "e", "f"];
        let numbers = UInt32Chunked::from_vec("n".into(), (0..7).collect()).into_column();
        let texts_of = StringChunked::from_slice("t".into(), &texts).into_column();
        let bytes = BinaryChunked::from_iter_values("b".into(), texts.iter().map(|text| text.as_bytes())).into_column();
        for text in [texts_of, bytes] {
            let frame = DataFrame::new(7, vec![numbers.clone(), text]).unwrap();
            for (most_rows, most_bytes, expected) in
                [(100, 100, vec![7]), (3, 100, vec![3, 3, 1]), (100, 8, vec![3, 1, 1, 2]), (100, 0, vec![1; 7])]
            {
                let batches = batches_of(&frame, most_rows, most_bytes).unwrap();
                let rows: Vec<_> = batches.iter().map(RecordBatch::num_rows).collect();
                assert_eq!(rows, expected, "{most_rows} {most_bytes}");
                let of = |batch: &RecordBatch| batch.column(0).as_primitive::<arrow::UInt32Type>().values().to_vec();
                assert_eq!(batches.iter().flat_map(of).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6]);
                let found: Vec<_> = batches
                    .iter()
                    .flat_map(|batch| match batch.column(1).data_type() {
                        ArrowType::Utf8 => {
                            batch.column(1).as_string::<i32>().iter().flatten().map(str::to_owned).collect()
                        }
                        _ => {
                            let values = batch.column(1).as_binary::<i32>().iter().flatten();
                            values.map(|value| String::from_utf8(value.to_vec()).unwrap()).collect::<Vec<_>>()
                        }
                    })
                    .collect();
                assert_eq!(found, texts);
            }
        }
        let nothing = DataFrame::new(0, vec![numbers.clear()]).unwrap();
        let batches = batches(&nothing).unwrap();
        assert_eq!((batches.len(), batches[0].num_rows(), batches[0].num_columns()), (1, 0, 1));
    }
}
