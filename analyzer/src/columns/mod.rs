//! Records as columns: what Arrow and Parquet files, and dataframes, are made of. docs/EXPORTS.md has the schema.

mod table;
mod text;

pub(crate) use table::{EventTable, Wanted, fields};
pub(crate) use text::{Oddities, put_text};
