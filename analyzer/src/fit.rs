//! Whether a record's payload is as its event's declaration says.

use std::collections::HashMap;
use std::sync::Arc;

use simpletrace_format::events::{ArgDecl, EventIndex, Lookup, Numbering};
use simpletrace_format::{Candidate, EventId, Header, Payload, Version};

/// How the payload of a record and the declaration of its event agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// To the byte.
    Exact,
    /// Bytes are left over behind the declared arguments, as when the declaration is older than the trace.
    Longer,
    /// The payload ends, or a string reaches beyond it, before the declared arguments do.
    Shorter,
    /// There is no declaration.
    Undeclared,
}

/// Where the strings are among the words of a payload.
pub(crate) struct Layout {
    /// For each string, how many words stand between it and the string before.
    words_before_strings: Vec<usize>,
    /// How many words stand behind the last string.
    words_at_end: usize,
    /// Whether strings are more than an address.
    has_text: bool,
}

impl Layout {
    pub(crate) fn new(args: &[ArgDecl], version: Version) -> Self {
        let has_text = version != Version::V0;
        let mut layout = Self { words_before_strings: Vec::new(), words_at_end: 0, has_text };
        for arg in args {
            if has_text && arg.ty.is_string() {
                layout.words_before_strings.push(std::mem::take(&mut layout.words_at_end));
            } else {
                layout.words_at_end += 1;
            }
        }
        layout
    }

    /// Whether strings are recorded with their text.
    pub(crate) const fn has_text(&self) -> bool {
        self.has_text
    }

    // Always: asked for every record.
    #[inline(always)]
    pub(crate) fn fit(&self, payload: Payload<'_>) -> Fit {
        let mut args = payload.args();
        for &words in &self.words_before_strings {
            if args.skip_words(words).and_then(|()| args.string()).is_none() {
                return Fit::Shorter;
            }
        }
        if args.skip_words(self.words_at_end).is_none() {
            Fit::Shorter
        } else if args.left_over().is_empty() {
            Fit::Exact
        } else {
            Fit::Longer
        }
    }
}

/// Judges for a reader behind damage whether what it may have found is as its event is declared.
///
/// `header` and `numbering` are those of a file that does not name its events. There is no telling about those of a file that
/// follows in the same file with other ids.
pub(crate) fn judge(
    declared: Arc<EventIndex>,
    header: Header,
    numbering: Option<Numbering>,
) -> impl FnMut(&Candidate<'_>) -> Option<bool> + Send + 'static {
    let mut by_name: HashMap<String, Option<Layout>> = HashMap::new();
    let mut by_place: HashMap<EventId, Option<Layout>> = HashMap::new();
    let layout = |found: Option<Lookup<'_>>, version| Some(Layout::new(&found?.event?.args, version));
    move |candidate| {
        let version = candidate.header.version;
        let layout = match (candidate.name, numbering) {
            (Some(name), _) if by_name.contains_key(name) => by_name.get(name)?,
            (Some(name), _) => by_name.entry(name.to_owned()).or_insert_with(|| layout(declared.get(name), version)),
            (None, Some(numbering)) if candidate.header == header => by_place
                .entry(candidate.id)
                .or_insert_with(|| layout(declared.by_id(numbering).get(candidate.id), version)),
            (None, _) => return None,
        };
        Some(layout.as_ref()?.fit(candidate.payload) == Fit::Exact)
    }
}

/// Records of one kind that were not as declared.
#[derive(Debug, Default)]
pub(crate) struct Misfits {
    pub(crate) longer: Misfit,
    pub(crate) shorter: Misfit,
    pub(crate) undeclared: Misfit,
}

/// Records of one kind with the same fault.
#[derive(Debug, Default)]
pub(crate) struct Misfit {
    pub(crate) records: u64,
    /// The place of the first one, as messages name it.
    pub(crate) first: String,
}

impl Misfits {
    #[cold]
    pub(crate) fn count(&mut self, fit: Fit, offset: u64, file: &str) {
        let misfit = match fit {
            Fit::Exact => return,
            Fit::Undeclared => &mut self.undeclared,
            Fit::Longer => &mut self.longer,
            Fit::Shorter => &mut self.shorter,
        };
        if misfit.records == 0 {
            misfit.first = format!("offset {offset} of {file}");
        }
        misfit.records += 1;
    }
}
