//! What is wrong with the files of a command: gathered while they are read, said once at the end.
//!
//! One place decides what is a note and what is a fault, so that every command reports the same things in the same words.

use std::error::Error as _;
use std::path::Path;
use std::sync::Arc;

use simpletrace_format::{
    Damage, DroppedRecord, Error, ErrorKind, EventRecord, FactError, Facts, MappingRecord, Namespace,
};

use crate::fit::{Misfit, Misfits};
use crate::input::Part;
use crate::kinds::{Kind, Kinds};
use crate::render::printable;
use crate::say;

/// How a command ended; the number is the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// All is well, or as well as can be expected of a killed program's trace.
    Good = 0,
    /// There is a result, but the trace is damaged or does not fit its declarations.
    Faulty = 1,
    /// There is no result, or only a part of one.
    Failed = 2,
}

/// Findings of a kind that are told one by one.
const TOLD: usize = 20;

/// Everything about the files that their reader should be told.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Files without a valid header, or that could not be read on: why.
    pub(crate) unreadable: Vec<String>,
    /// Damaged stretches, the first of all.
    pub(crate) damage: Vec<String>,
    /// How many there are, and how many bytes were skipped in them.
    pub(crate) damaged_stretches: u64,
    pub(crate) skipped_bytes: u64,
    /// Headers inside files: the files were written or copied one behind the other.
    pub(crate) second_headers: u64,
    first_second_header: String,
    /// Files that end inside a record.
    pub(crate) torn: Vec<String>,
    /// `dropped` records, and below those of unknown events: within the time and of the processes asked for.
    pub(crate) gaps: u64,
    /// How many of them count nothing, as they only say where recording went on.
    pub(crate) gap_ends: u64,
    /// The sum of their counts, where these are known.
    pub(crate) dropped: u64,
    /// How many of them stand for an unknown number of events.
    pub(crate) unknown_gaps: u64,
    /// Records whose id no mapping record had named.
    pub(crate) unmapped: u64,
    first_unmapped: String,
    /// Mapping records that gave an id another name.
    pub(crate) moved: u64,
    first_moved: String,
    /// Mapping records beyond what the table of names keeps.
    pub(crate) names_full: u64,
    /// Mapping records for ids of the special namespace, which have none; not taken.
    pub(crate) special_mapped: u64,
    /// Mapping records that should hold a fact of their file and do not; the first of all are told.
    /// Parts of rotated traces that are missing between others, and in how many places; the first of all are told.
    pub(crate) missing_parts: u64,
    missing_places: u64,
    told_missing: Vec<String>,
    /// Traces whose first part is not there, and parts that are not what their names say; the first of all are told.
    late_starts: Vec<String>,
    odd_parts: Vec<String>,
    /// Files whose ids may count something else than what was taken; the first of all are told.
    guesses: Vec<String>,
    /// What the last part said of the run that recorded it.
    last_run: Option<(Arc<Path>, [Option<String>; 4])>,
    odd_facts: u64,
    told_odd_facts: Vec<String>,
}

/// What the first bytes of a file say that it is compressed with, of what is not decompressed here.
fn compressed_with(start: &[u8]) -> Option<&'static str> {
    const MAGICS: [(&[u8], &str); 4] =
        [(b"BZh", "bzip2"), (b"\xfd7zXZ\0", "xz"), (b"\x04\x22\x4d\x18", "lz4"), (b"PK\x03\x04", "zip")];

    MAGICS.iter().find(|(magic, _)| start.starts_with(magic)).map(|(_, with)| *with)
}

impl Findings {
    #[cold]
    pub(crate) fn count_gap(&mut self, record: &DroppedRecord) {
        self.gaps += 1;
        self.gap_ends += u64::from(record.count == 0);
    }

    #[cold]
    pub(crate) fn count_unmapped(&mut self, record: &EventRecord<'_>, file: &str) {
        if self.unmapped == 0 {
            let why = match record.id.namespace() {
                Namespace::Ordinary => "no mapping record names it",
                Namespace::Special(_) => "its number is reserved",
            };
            self.first_unmapped = format!("{} at offset {} of {file}: {why}", record.id, record.offset);
        }
        self.unmapped += 1;
    }

    #[cold]
    pub(crate) fn count_moved(&mut self, record: &MappingRecord<'_>, before: &str, file: &str) {
        if self.moved == 0 {
            let [before, now] = [before, record.name].map(printable);
            self.first_moved =
                format!("{} was {before} and is {now} from offset {} of {file}", record.id, record.offset);
        }
        self.moved += 1;
    }

    /// Takes in what is no fact of a file.
    #[cold]
    pub(crate) fn add_odd_fact(&mut self, file: &str, record: &MappingRecord<'_>, error: &FactError) {
        /// As much of a text as is shown, in characters.
        const SHOWN: usize = 40;

        self.odd_facts += 1;
        if self.told_odd_facts.len() < TOLD {
            let shown: String = record.name.chars().take(SHOWN).collect();
            let more = if shown.len() < record.name.len() { "..." } else { "" };
            let (offset, shown) = (record.offset, printable(&shown));
            self.told_odd_facts
                .push(format!("{file}: offset {offset}: passed over as a fact of the file: {error}: {shown}{more}"));
        }
    }

    /// Takes in a gap in the numbers of a trace's parts.
    #[cold]
    pub(crate) fn add_missing_parts(&mut self, trace: &Path, first: u64, last: u64) {
        self.missing_parts = self.missing_parts.saturating_add(last - first + 1);
        self.missing_places += 1;
        if self.told_missing.len() < TOLD {
            let parts = if first == last { format!("part {first} is") } else { format!("parts {first} to {last} are") };
            self.told_missing.push(format!(
                "{}: {parts} missing, and with {} an unknown number of events",
                printable(&trace.display().to_string()),
                if first == last { "it" } else { "them" }
            ));
        }
    }

    /// Takes in that the last part of a trace went away before it was read.
    #[cold]
    pub(crate) fn add_gone(&mut self, gone: Option<(Part, anyhow::Error)>) {
        self.unreadable.extend(gone.map(|(_, error)| format!("{error:#}")));
    }

    /// Takes in that a trace does not begin with its first part.
    #[cold]
    pub(crate) fn add_late_start(&mut self, part: &Part) {
        if self.late_starts.len() < TOLD {
            let before = part.number - 1;
            self.late_starts.push(format!(
                "{} begins with part {}: {} not there, as when only the last ones are kept",
                printable(&part.trace.display().to_string()),
                part.number,
                if before == 1 { "1 part before it is".to_owned() } else { format!("{before} parts before it are") },
            ));
        }
    }

    /// Holds what a part says of itself against its name and the part before.
    #[cold]
    pub(crate) fn check_part(&mut self, file: &str, part: &Part, facts: &Facts) {
        let odd = |text: String, told: &mut Vec<String>| {
            if told.len() < TOLD {
                told.push(text);
            }
        };
        match facts.part() {
            Some(number) if number != part.number => {
                odd(format!("{file} says that it is part {number} of its trace"), &mut self.odd_parts);
            }
            _ => {}
        }
        let keys = [Facts::BOOT_ID, Facts::HOST, Facts::PROGRAM, Facts::PID];
        let run = keys.map(|key| facts.get(key).map(str::to_owned));
        if let Some((trace, last)) = &self.last_run
            && *trace == part.trace
            && let Some(at) = (0..keys.len()).find(|&at| run[at].is_some() && last[at].is_some() && run[at] != last[at])
        {
            let [value, before] = [&run[at], &last[at]].map(|value| printable(value.as_deref().unwrap_or_default()));
            let text = format!("{file} is of another run than the part before: {} is {value}, not {before}", keys[at]);
            odd(text, &mut self.odd_parts);
        }
        self.last_run = Some((Arc::clone(&part.trace), run));
    }

    /// Takes in what is damaged in a file.
    #[cold]
    pub(crate) fn add_damage(&mut self, file: &str, damage: &Damage) {
        if let (ErrorKind::TornTail(left), true) = (&damage.kind, damage.is_torn_tail()) {
            self.torn.push(format!(
                "{file} ends inside a record at offset {}: {left} bytes left over, as when the traced program was killed",
                damage.offset
            ));
            return;
        }
        self.damaged_stretches += 1;
        self.skipped_bytes += damage.skipped_bytes;
        if self.damage.len() < TOLD {
            self.damage.push(format!("{file}: {damage}"));
        }
    }

    /// Takes in that a file may number its events otherwise than by this rule.
    #[cold]
    pub(crate) fn add_guess(&mut self, file: &str, why: &str) {
        if self.guesses.len() < TOLD {
            self.guesses.push(format!("{file}: {why}, so names may be wrong; write it into a file, or say --v0-ids"));
        }
    }

    /// Takes in the offset of a header inside a file.
    #[cold]
    pub(crate) fn add_second_header(&mut self, file: &str, offset: u64) {
        if self.second_headers == 0 {
            self.first_second_header = format!("offset {offset} of {file}");
        }
        self.second_headers += 1;
    }

    /// Takes in the error that ended a file; tells whether the file is merely cut, as a torn one is.
    #[cold]
    pub(crate) fn add_error(&mut self, name: &str, error: &Error) -> bool {
        match error.kind() {
            ErrorKind::Io(io) if io.kind() == std::io::ErrorKind::UnexpectedEof => {
                let offset = error.offset();
                self.torn.push(format!("{name}: the compressed data ends early, at offset {offset} of what it holds"));
                true
            }
            _ => {
                self.add_unreadable(name, error);
                false
            }
        }
    }

    /// Takes in the error because of which nothing, or nothing more, comes out of a file.
    pub(crate) fn add_unreadable(&mut self, file: &str, error: &Error) {
        let mut cause = error.source().map_or(String::new(), |cause| format!(": {cause}"));
        // What libzstd says of a window above `ZSTD_WINDOW_LOG_MAX`.
        if cause.contains("too much memory") {
            cause.push_str("; decompress it with `zstd -d --long=31` and pipe that in");
        }
        if let ErrorKind::NotATrace(start, _) = error.kind()
            && let Some(with) = compressed_with(&start.to_le_bytes())
        {
            cause = format!(
                "; it is compressed with {with}: decompress it first, as only gzip and zstd are read as they are"
            );
        }
        self.unreadable.push(format!("{file}: {error}{cause}"));
    }

    /// Tells whether a record could not be understood, a file not be read to its end, or an event had no declaration.
    pub(crate) fn any_fault(&self, kinds: &Kinds) -> bool {
        let misfit = |misfits: &Misfits| misfits.shorter.records + misfits.undeclared.records > 0;
        self.damaged_stretches + self.second_headers + self.missing_parts > 0
            || self.unmapped + self.names_full + self.special_mapped > 0
            || kinds.iter().any(|kind| misfit(&kind.misfits))
    }

    /// Says on stderr what was found.
    pub(crate) fn say(&self, kinds: &Kinds) {
        self.say_of_files();
        Self::say_misfits(kinds);
    }

    /// Says what was found but for what does not fit its declaration.
    pub(crate) fn say_of_files(&self) {
        for text in &self.unreadable {
            say::error(text);
        }
        for text in &self.damage {
            say::error(text);
        }
        if self.damaged_stretches > self.damage.len() as u64 {
            let places = count(self.damaged_stretches, "damaged place");
            say::error(&format!("{places} in all, with {} skipped", count(self.skipped_bytes, "byte")));
        }
        if self.second_headers > 0 {
            let headers = count(self.second_headers, "header");
            say::warning(&format!(
                "{headers} inside a file, the first at {}: files one behind the other, each read with its own names",
                self.first_second_header
            ));
        }
        for text in &self.told_missing {
            say::warning(text);
        }
        if self.missing_places > self.told_missing.len() as u64 {
            let (parts, places) = (count(self.missing_parts, "part"), count(self.missing_places, "place"));
            say::warning(&format!("{parts} missing in all, in {places}"));
        }
        for text in self.odd_parts.iter().chain(&self.guesses) {
            say::warning(text);
        }
        for text in self.late_starts.iter().chain(&self.torn) {
            say::note(text);
        }
        if self.dropped > 0 {
            say::note(&format!(
                "{} dropped by the recorder, in {}",
                if self.dropped == 1 { "1 event was".to_owned() } else { format!("{} events were", self.dropped) },
                count(self.gaps.saturating_sub(self.gap_ends + self.unknown_gaps), "gap")
            ));
        }
        if self.unknown_gaps > 0 {
            say::note(&format!("an unknown number of events is missing in {}", count(self.unknown_gaps, "gap")));
        }
        if self.unmapped > 0 {
            say::warning(&format!(
                "{} of unknown event, the first {}",
                count(self.unmapped, "record"),
                self.first_unmapped
            ));
        }
        if self.moved > 0 {
            let give = if self.moved == 1 { "mapping record gives" } else { "mapping records give" };
            say::warning(&format!("{} {give} an id another name, the first: {}", self.moved, self.first_moved));
        }
        if self.names_full > 0 {
            let full = count(self.names_full, "mapping record");
            say::warning(&format!("{full} passed over, beyond what any QEMU has"));
        }
        if self.special_mapped > 0 {
            let special = count(self.special_mapped, "mapping record");
            say::warning(&format!("{special} passed over, for an id that is reserved for the recorder itself"));
        }
        for text in &self.told_odd_facts {
            say::warning(text);
        }
        if self.odd_facts > self.told_odd_facts.len() as u64 {
            say::warning(&format!("{} passed over in all", count(self.odd_facts, "fact")));
        }
    }

    fn say_misfits(kinds: &Kinds) {
        for fault in &kinds.faults {
            say::error(fault.trim_end());
        }
        type Of = fn(&Misfits) -> &Misfit;
        let undeclared: Of = |misfits| &misfits.undeclared;
        let shorter: Of = |misfits| &misfits.shorter;
        let longer: Of = |misfits| &misfits.longer;
        // Arguments that a later QEMU added take nothing from those that are declared.
        for (say, of, what) in [
            (say::warning as fn(&str), undeclared, "not declared in the trace-events file"),
            (say::warning, shorter, "shorter than declared"),
            (say::note, longer, "longer than declared"),
        ] {
            let faulty = |kind: &Kind| of(&kind.misfits).records;
            let found: Vec<_> = kinds.iter().filter(|kind| faulty(kind) > 0).collect();
            // Of several that have as many, the first met.
            let Some(most) = found.iter().rev().max_by_key(|kind| faulty(kind)) else { continue };
            let total = count(found.iter().map(|kind| faulty(kind)).sum(), "record");
            let name = printable(&most.name);
            let is_declared = kinds.declared().contains(&most.name);
            let nearest = if is_declared { None } else { kinds.declared().nearest(&most.name) };
            let nearest = nearest.map_or(String::new(), |name| format!(" (the nearest declared name is {name})"));
            let first = &of(&most.misfits).first;
            let advice = "take the trace-events-all of the build that wrote the trace";
            say(&if found.len() == 1 {
                format!("{total} of {name}: {what}{nearest}, the first at {first}; {advice}")
            } else {
                let (some, all) = (found.len(), kinds.iter().count());
                format!(
                    "{some} of {all} events with {total}: {what}, most of all {name}{nearest}, the first of it at {first}; {advice}"
                )
            });
        }
    }
}

/// `1 record`, `2 records`.
pub(crate) fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
