//! Results of polars as Arrow's columns.

use std::sync::Arc;

use anyhow::{Result, bail};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
    UInt64Array,
};
use arrow_schema::{DataType as ArrowType, Field as ArrowField, Schema as ArrowSchema};
use polars::prelude::*;

/// Rows of a result that become one batch.
const BATCH_ROWS: usize = 1 << 16;

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

/// A result in batches; integers have 64 bits then.
///
/// # Errors
///
/// A column of a type that no output has.
pub(super) fn batches(frame: &DataFrame) -> Result<Vec<RecordBatch>> {
    let mut fields = Vec::new();
    for column in frame.columns() {
        let ty = match column.dtype() {
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => ArrowType::Int64,
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => ArrowType::UInt64,
            DataType::Float32 | DataType::Float64 => ArrowType::Float64,
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
    // One even of nothing: it has the names.
    for from in (0..frame.height().max(1)).step_by(BATCH_ROWS) {
        let part = frame.slice(from as i64, BATCH_ROWS);
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

fn array(column: &Column, ty: &ArrowType) -> PolarsResult<ArrayRef> {
    let series = column.as_materialized_series();
    Ok(match ty {
        ArrowType::Int64 => Arc::new(series.cast(&DataType::Int64)?.i64()?.iter().collect::<Int64Array>()),
        ArrowType::UInt64 => Arc::new(series.cast(&DataType::UInt64)?.u64()?.iter().collect::<UInt64Array>()),
        ArrowType::Float64 => Arc::new(series.cast(&DataType::Float64)?.f64()?.iter().collect::<Float64Array>()),
        ArrowType::Boolean => Arc::new(series.bool()?.iter().collect::<BooleanArray>()),
        ArrowType::Binary => Arc::new(series.binary()?.iter().collect::<BinaryArray>()),
        _ => Arc::new(series.cast(&DataType::String)?.str()?.iter().collect::<StringArray>()),
    })
}
