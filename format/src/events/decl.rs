//! Declarations as parsed.

use std::borrow::Cow;
use std::ops::Range;

use super::ArgType;
use super::printf::{Format, FormatError};

/// Which half of a `tcg` line a declaration is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TcgHalf {
    /// `NAME_trans`, recorded when guest code is translated.
    Translation,
    /// `NAME_exec`, recorded when it runs.
    Execution,
}

/// The words before an event's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct Properties {
    /// `disable`: the build has no recording code for it. The event still has a number.
    pub disabled: bool,
    /// `vcpu` (QEMU 2.6 to 10.0): the first argument is `void *__cpu`.
    pub vcpu: bool,
    /// `tcg` (QEMU 2.2 to 6.2): which of the two declarations this is that the line stands for.
    pub tcg: Option<TcgHalf>,
}

/// One argument of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArgDecl {
    /// The name. Empty if the author left it out after a `*`, which tracetool accepts.
    pub name: String,
    /// The C type as the author spelled it, and as tracetool reports it; the host's type for a `TCGv` of a `tcg` line.
    pub c_type: Cow<'static, str>,
    /// How it is stored and read.
    pub ty: ArgType,
    /// Type and name in the source, in bytes. Empty for `__cpu`.
    pub span: Range<usize>,
}

/// The format of an event, uncompiled.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FormatSource {
    /// The source text with its quotes and macros. For a `vcpu` event `"cpu=%p "` stands before it, as in tracetool.
    pub text: String,
    /// The format in the source, in bytes. Empty when the text is only what `vcpu` adds.
    pub span: Range<usize>,
}

impl FormatSource {
    /// Compiles the format.
    ///
    /// # Errors
    ///
    /// Fails as [`Format::compile`] does.
    pub fn compile(&self) -> Result<Format, FormatError> {
        Format::compile(&self.text)
    }
}

/// One declared event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventDecl {
    /// The name.
    pub name: String,
    /// The name in the source, in bytes; of a half of a `tcg` line that of the line.
    pub name_span: Range<usize>,
    /// The words before the name.
    pub properties: Properties,
    /// The arguments, in the order in which they are recorded.
    pub args: Vec<ArgDecl>,
    /// The format, if there is one.
    pub format: Option<FormatSource>,
    /// The line, from 1. The two halves of a `tcg` line share it.
    pub line: u32,
    /// The number of the file within its [`EventSet`](super::EventSet), from 0.
    pub file: u32,
}

impl EventDecl {
    /// Returns whether records of two declarations have their words and strings in the same order, so that a reader of
    /// the one can read the other.
    #[must_use]
    pub fn has_layout_of(&self, other: &Self) -> bool {
        self.args.iter().map(|arg| arg.ty.is_string()).eq(other.args.iter().map(|arg| arg.ty.is_string()))
    }
}
