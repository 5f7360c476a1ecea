//! The trace-events language: what a file of event declarations says.
//!
//! - [`parse`] reads one file into [`EventDecl`]s and [`Diagnostic`]s; [`EventSet`] holds those of several files by name.
//! - [`ArgType`] is what a C type means for the bytes of a record.
//! - [`Numbering`] says which declaration an id means in files that do not name their events.
//! - [`Format`] prints a record's values as the declaration's printf format says.
//!
//! A declaration is one line: `disable qcow2_open(void *bs, const char *name, uint64_t size) "bs %p %s size %"PRIu64`. The
//! language is tracetool's (part of QEMU's build), which describes it nowhere; what is known is in docs/FORMAT.md. It is not
//! C: how a type is spelled decides how an argument is recorded, so spellings are kept as they are.

mod agreement;
mod ctype;
mod decl;
mod diagnostic;
mod expand;
mod fault;
mod index;
mod lexer;
mod nearest;
mod numbering;
mod parser;
mod printf;
mod render;
mod set;

pub use ctype::{ArgType, Width};
pub use decl::{ArgDecl, EventDecl, FormatSource, Properties, TcgHalf};
pub use diagnostic::{Diagnostic, Diagnostics, MAX_DIAGNOSTICS, Severity, WithSource};
pub use index::{EventIndex, Lookup, LookupById};
pub use nearest::nearest;
pub use numbering::{InferredNumbering, Numbering, NumberingMisfit, NumberingMisfitKind, NumberingReason, SeenIds};
pub use parser::{Mode, Parsed, parse};
pub use printf::{Conversion, Expected, Format, FormatError, FormatErrorKind, Mismatch};
pub use render::MAX_FIELD;
pub use set::{ById, Duplicate, EventSet};

/// A blank, as Python's `str.isspace`: Unicode's white space and four old separators.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}
