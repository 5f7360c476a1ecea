//! Parquet files, a row group at a time.

use std::io::Write;
use std::sync::Arc;

use anyhow::{Context as _, Error, Result};
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;

use super::TOOL;
use super::table::{ARGS, TS_NS, WALL_NS};

/// A Parquet file that is being written.
pub(crate) struct ParquetFile<W: Write + Send> {
    file: SerializedFileWriter<W>,
    factory: ArrowRowGroupWriterFactory,
    row_groups: usize,
}

impl<W: Write + Send> ParquetFile<W> {
    /// Begins a file.
    pub(crate) fn new(sink: W, schema: &SchemaRef) -> Result<Self> {
        let properties = Arc::new(properties()?);
        let columns = ArrowSchemaConverter::new().convert(schema).context("cannot make a Parquet schema")?;
        let file = SerializedFileWriter::new(sink, columns.root_schema_ptr(), properties).map_err(plain_error)?;
        let factory = ArrowRowGroupWriterFactory::new(&file, Arc::clone(schema));
        Ok(Self { file, factory, row_groups: 0 })
    }

    /// Makes the writers of the columns of another row group.
    pub(crate) fn writers(&mut self) -> Result<Vec<ArrowColumnWriter>> {
        self.row_groups += 1;
        Ok(self.factory.create_column_writers(self.row_groups - 1)?)
    }

    /// Writes a row group.
    pub(crate) fn append(&mut self, chunks: Vec<ArrowColumnChunk>) -> Result<()> {
        let mut row_group = self.file.next_row_group().map_err(plain_error)?;
        for chunk in chunks {
            chunk.append_to_row_group(&mut row_group).map_err(plain_error)?;
        }
        row_group.close().map_err(plain_error)?;
        Ok(())
    }

    /// Gives what it is written to, with all that was written.
    pub(crate) fn sink(&mut self) -> Result<&mut W> {
        self.file.flush()?;
        Ok(self.file.inner_mut())
    }

    /// Writes the footer, with what is said of the whole file.
    pub(crate) fn finish(mut self, metadata: impl IntoIterator<Item = (String, String)>) -> Result<W> {
        for (key, value) in metadata {
            self.file.append_key_value_metadata(KeyValue::new(key, value));
        }
        self.file.into_inner().map_err(plain_error)
    }
}

/// An error as it was before it was one of Parquet, which says everything twice.
pub(crate) fn plain_error(error: ParquetError) -> Error {
    match error {
        ParquetError::External(error) => match error.downcast::<std::io::Error>() {
            Ok(error) => Error::new(*error),
            Err(error) => Error::from_boxed(error),
        },
        error => Error::new(error),
    }
}

fn properties() -> Result<WriterProperties> {
    let mut properties = WriterProperties::builder()
        .set_created_by(TOOL.to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?));
    for column in [TS_NS, WALL_NS].map(ColumnPath::from) {
        // Times hardly ever come twice, and differ little.
        properties = properties
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    // Mostly different, too.
    properties = properties
        .set_column_dictionary_enabled(ColumnPath::from(ARGS), false)
        .set_column_statistics_enabled(ColumnPath::from(ARGS), EnabledStatistics::None);
    Ok(properties.build())
}
