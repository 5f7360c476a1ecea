//! Records as columns: what Arrow and Parquet files, and dataframes, are made of. docs/EXPORTS.md has the schema.

mod block;
mod builders;
mod dataset;
mod encoders;
mod facts;
mod file;
mod filler;
mod long;
mod manifest;
mod parquet;
mod table;
mod text;

pub(crate) use builders::{Arrow, Builders, Fill};
#[cfg(feature = "frames")]
pub(crate) use builders::{FillText, Number, Numbers};
pub(crate) use dataset::DataSet;
pub(crate) use facts::FileFacts;
pub(crate) use file::{ColumnFile, ColumnFormat};
pub(crate) use filler::{Filler, FillingThread};
pub(crate) use long::LongTable;
#[cfg(feature = "frames")]
pub(crate) use parquet::plain_error;
pub(crate) use table::{EventTable, Wanted, data_type, fields};
pub(crate) use text::{Oddities, put_text};

/// The version of the schema of all tables.
pub(crate) const SCHEMA: &str = "simpletrace-rs.columns/1";
/// Who writes them.
pub(crate) const TOOL: &str = concat!("simpletrace-rs ", env!("CARGO_PKG_VERSION"));
