//! Writes what is read from traces anew, as one sound file of version 4.
//!
//! Both `repair` and `slice` are this: the items of a [`Trace`](crate::trace::Trace) in, records out. They differ in the items
//! and in the mapping records: `repair` keeps them where they are, `slice` writes those that are needed, before their first use.

mod facts;
mod ids;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use simpletrace_format::{
    ByteOrder, DroppedRecord, EventId, Facts, Header, Loss, MAX_NAME_BYTES, MappingRecord, TraceWriter, Value, Version,
};

pub(crate) use self::facts::CommonFacts;
use self::facts::{missing, untrue};
use self::ids::{Ids, Named};
use crate::findings::{Findings, count};
use crate::fit::Fit;
use crate::formats::Formats;
use crate::input::Files;
use crate::output::Output;
use crate::say;
use crate::trace::{Event, Gap, Item, Missing, Moment, SectionStart};

/// What the output is to be like.
pub(crate) struct Rewriter {
    path: PathBuf,
    inputs: Vec<PathBuf>,
    keeps_mappings: bool,
    /// Made when there is something to write, so that a file that is no trace costs nobody an old output.
    writer: Option<TraceWriter<Output>>,
    ids: Ids,
    /// What the output says of itself.
    facts: Facts,
    /// Whether that is known from the start. Else it is what its first section says.
    facts_are_known: bool,
    /// Keys of facts that hold for some of the sections only, and so are not in the output.
    differing: BTreeSet<String>,
    section: Section,
    /// The last record written.
    last: Option<Last>,
    records: u64,
    mappings: u64,
    /// Damaged stretches that were marked as gaps.
    marked: u64,
    left_out: LeftOut,
}

/// The section of the input that is being read, and how its records become those of the output.
struct Section {
    file: String,
    header: Header,
    is_named: bool,
    is_declared: bool,
    /// Whether payloads are taken over as they are.
    copies: bool,
    facts: Facts,
    /// What its `dropped` records of version 0 add up to.
    loss: Loss,
    has_loss: bool,
}

#[derive(Clone, Copy)]
struct Last {
    moment: Moment,
    /// Where it ends in the input, and where it begins in the block of the output, in bytes.
    input_end: u64,
    block_at: usize,
}

/// What could be read and not be written.
#[derive(Default)]
struct LeftOut {
    /// Records that would have had to be turned to another byte order.
    unturned: u64,
    first_unturned: String,
    /// Records of a version before 4 without a declaration at all.
    unnamed: u64,
    first_unnamed: String,
    /// Mapping records beyond what a table of names keeps.
    mappings: u64,
    /// Sections for which the facts of the output are wrong.
    untrue: u64,
    first_untrue: String,
}

/// Makes sure that there are declarations where a trace does not name its events itself.
///
/// # Errors
///
/// A trace does not name its events, and no declarations are given.
pub(crate) fn require_events(files: &Files, formats: Formats) -> Result<()> {
    if !files.events.is_empty() {
        return Ok(());
    }
    for trace in &files.traces {
        let version = match Header::parse(trace.head()) {
            Ok(header) if !header.version.has_names() => format!("is of version {}", header.version),
            _ if formats.no_header => "has no header".to_owned(),
            _ => continue,
        };
        bail!(
            "{} {version} and so does not name its events; give the trace-events file of the build that wrote it",
            trace.name
        );
    }
    Ok(())
}

impl Rewriter {
    /// Prepares to write to `path`; none of `inputs` may be the same file.
    pub(crate) fn new(path: &Path, inputs: Vec<PathBuf>, keeps_mappings: bool) -> Self {
        let header = Header { version: Version::V4, byte_order: ByteOrder::NATIVE };
        Self {
            path: path.to_owned(),
            inputs,
            keeps_mappings,
            writer: None,
            ids: Ids::default(),
            facts: Facts::default(),
            facts_are_known: false,
            differing: BTreeSet::new(),
            section: Section {
                file: String::new(),
                header,
                is_named: true,
                is_declared: true,
                copies: true,
                facts: Facts::default(),
                loss: Loss::new(header.version),
                has_loss: false,
            },
            last: None,
            records: 0,
            mappings: 0,
            marked: 0,
            left_out: LeftOut::default(),
        }
    }

    /// Says what holds for all the traces that will come, where it is more than one: their facts come too late to begin the output with.
    pub(crate) fn set_facts(&mut self, mut common: CommonFacts) {
        self.differing = std::mem::take(&mut common.differing);
        self.facts = common.into_facts();
        self.facts_are_known = true;
    }

    /// Writes one item.
    ///
    /// # Errors
    ///
    /// The output cannot be created or written.
    pub(crate) fn write(&mut self, item: &Item<'_>) -> Result<()> {
        match item {
            Item::Event(event) => self.event(event),
            Item::Gap(gap) => self.gap(gap),
            Item::Section(section) => self.start_section(section),
            Item::Mapping(record) => self.mapping(record),
            Item::Fact(fact) => self.fact(fact.text),
            Item::Start(_) | Item::Outside(_) => Ok(()),
            Item::Missing(missing) => self.missing(missing),
        }
    }

    /// Makes the output in this byte order, unless it has been made, and room in its block for the record that comes next.
    #[inline]
    fn writer(&mut self, order: ByteOrder) -> Result<&mut TraceWriter<Output>> {
        if self.writer.is_none() {
            let output = Output::create_whole(&self.path, self.inputs.iter().map(PathBuf::as_path))?;
            let mut writer = TraceWriter::new(output, order)?;
            writer.facts(&self.facts)?;
            self.writer = Some(writer);
        }
        let writer = self.writer.as_mut().context("the output was closed before its end")?;
        writer.get_mut().write_if_full()?;
        Ok(writer)
    }

    fn start_section(&mut self, start: &SectionStart<'_>) -> Result<()> {
        self.end_section()?;
        if let (Some(last), Some(torn_end), Some(writer)) = (self.last, start.torn_end, &mut self.writer)
            && last.input_end == torn_end
        {
            // It has taken in the header of another file, which a reader would look for in it again.
            writer.get_mut().block.truncate(last.block_at);
            self.records -= 1;
            self.last = None;
        }
        self.ids.start_section();
        let header = start.header;
        let is_first = self.writer.is_none();
        self.writer(header.byte_order)?;
        let order = if is_first { header.byte_order } else { self.order() };
        self.section = Section {
            file: start.file.to_owned(),
            header,
            is_named: start.is_named,
            is_declared: start.is_declared,
            copies: header.byte_order == order && header.version != Version::V0,
            facts: Facts::default(),
            loss: Loss::new(header.version),
            has_loss: false,
        };
        Ok(())
    }

    fn order(&self) -> ByteOrder {
        self.writer.as_ref().map_or(ByteOrder::NATIVE, TraceWriter::byte_order)
    }

    /// Writes what the first section says of itself; of the others it is only noted.
    fn fact(&mut self, text: &str) -> Result<()> {
        // It was one of a file's just now.
        self.section.facts.add(text)?;
        if self.facts_are_known || !self.ids.is_first_section() {
            return Ok(());
        }
        let mut fact = Facts::default();
        fact.add(text)?;
        // What is written is no part.
        if fact.part().is_none() {
            self.facts.add(text)?;
            self.writer(ByteOrder::NATIVE)?.facts(&fact)?;
        }
        Ok(())
    }

    /// Counts of version 0 mean something only together, so what they add up to stands where its records end. And what the output says of
    /// itself is held against what the section does.
    fn end_section(&mut self) -> Result<()> {
        let facts = std::mem::take(&mut self.section.facts);
        if self.ids.has_sections() {
            self.differing.extend(missing(&self.facts, &facts));
            self.left_out.note_untrue(&self.section, untrue(&self.facts, &facts));
        }
        if self.section.has_loss && self.section.loss.records() > 0 {
            let records = self.section.loss.records();
            let last = self.last.map_or(Moment { timestamp_ns: 0, pid: 0 }, |last| last.moment);
            self.dropped(last, records)?;
        }
        self.section.has_loss = false;
        Ok(())
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        let record = &event.record;
        let is_turned = !self.section.copies && !record.payload.bytes().is_empty();
        if is_turned && record.id >= EventId::FIRST_SPECIAL {
            self.left_out.count_unnamed(&self.section, record.offset);
            return Ok(());
        }
        if is_turned && self.section.header.version != Version::V0 && event.fit != Fit::Exact {
            self.left_out.count_unturned(&self.section, record.offset);
            return Ok(());
        }
        let id = match self.ids.get(record.id) {
            Some(id) => id,
            None => match self.first_use(event)? {
                Some(id) => id,
                None => return Ok(()),
            },
        };
        let writer = self.writer(ByteOrder::NATIVE)?;
        let block_at = writer.get_mut().block.len();
        if is_turned {
            let values = values(event);
            let values: Vec<_> = values.iter().map(Argument::value).collect();
            writer.event(id, record.timestamp_ns, record.pid, &values)?;
        } else {
            writer.raw_event(id, record.timestamp_ns, record.pid, record.payload.bytes())?;
        }
        let front_bytes = match self.section.header.version {
            Version::V0 => 16,
            Version::V2 | Version::V3 => 24,
            Version::V4 => 32,
        };
        let input_end = record.offset + front_bytes + record.payload.bytes().len() as u64;
        let moment = Moment { timestamp_ns: record.timestamp_ns, pid: record.pid };
        self.last = Some(Last { moment, input_end, block_at });
        self.records += 1;
        Ok(())
    }

    /// The id of an event that has had no record yet since the last header, and its mapping record if it needs one; `None` if
    /// its records are left out.
    #[cold]
    fn first_use(&mut self, event: &Event<'_>) -> Result<Option<EventId>> {
        let id = event.record.id;
        let is_nameable = event.kind.mapped && (1..=MAX_NAME_BYTES as usize).contains(&event.kind.name.len());
        if is_nameable && id < EventId::FIRST_SPECIAL {
            match self.name(id, &event.kind.name)? {
                Some(id) => return Ok(Some(id)),
                None => self.left_out.mappings += 1,
            }
        } else if !self.section.is_named && (event.kind.mapped || !self.section.is_declared) {
            self.left_out.count_unnamed(&self.section, event.record.offset);
            return Ok(None);
        }
        Ok(Some(self.ids.leave_unnamed(id)))
    }

    /// Sees to it that an id of the input has its name in the output; `None` if there are too many names.
    fn name(&mut self, id: EventId, name: &str) -> Result<Option<EventId>> {
        Ok(match self.ids.name(id, name) {
            Named::Known(id) => Some(id),
            Named::New(id) => {
                self.writer(ByteOrder::NATIVE)?.mapping(id, name)?;
                self.mappings += 1;
                Some(id)
            }
            Named::Full => None,
        })
    }

    fn mapping(&mut self, record: &MappingRecord<'_>) -> Result<()> {
        if !self.keeps_mappings {
            self.ids.forget(record.id);
            return Ok(());
        }
        match self.ids.name(record.id, record.name) {
            // Said again by the first file itself.
            Named::Known(id) if id == record.id && self.ids.is_first_section() => self.put_mapping(id, record.name)?,
            Named::Known(_) => {}
            Named::New(id) => self.put_mapping(id, record.name)?,
            Named::Full => self.left_out.mappings += 1,
        }
        Ok(())
    }

    fn put_mapping(&mut self, id: EventId, name: &str) -> Result<()> {
        self.writer(ByteOrder::NATIVE)?.mapping(id, name)?;
        self.mappings += 1;
        Ok(())
    }

    fn gap(&mut self, gap: &Gap) -> Result<()> {
        let record = gap.record;
        if self.section.header.version == Version::V0 {
            self.section.loss.add(&record);
            self.section.has_loss = true;
            return Ok(());
        }
        self.dropped(Moment { timestamp_ns: record.timestamp_ns, pid: record.pid }, record.count)
    }

    fn missing(&mut self, missing: &Missing) -> Result<()> {
        self.marked += 1;
        let from = missing.from.or(missing.to).unwrap_or(Moment { timestamp_ns: 0, pid: 0 });
        self.dropped(from, DroppedRecord::UNKNOWN)?;
        missing.to.map_or(Ok(()), |to| self.dropped(to, 0))
    }

    fn dropped(&mut self, at: Moment, records: u64) -> Result<()> {
        self.records += 1;
        self.last = self.last.map(|last| Last { moment: at, input_end: 0, ..last });
        Ok(self.writer(ByteOrder::NATIVE)?.dropped(at.timestamp_ns, at.pid, records)?)
    }

    /// Writes the rest, and waits for it. Without any input, the output is a file without records.
    ///
    /// # Errors
    ///
    /// Those of [`write`](Self::write).
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.end_section()?;
        self.writer(ByteOrder::NATIVE)?.get_mut().finish()
    }

    /// Whether there is an output.
    pub(crate) const fn has_begun(&self) -> bool {
        self.writer.is_some()
    }

    /// Whether everything that came in went out.
    pub(crate) const fn is_complete(&self) -> bool {
        self.left_out.unturned == 0
            && self.left_out.unnamed == 0
            && self.left_out.mappings == 0
            && self.left_out.untrue == 0
    }

    /// Says on stderr what was written, and what was not.
    pub(crate) fn say(&self, findings: &Findings) {
        self.left_out.say();
        if !self.differing.is_empty() {
            let keys: Vec<_> = self.differing.iter().map(String::as_str).collect();
            say::note(&format!("facts that are not the same in all that was read are left out: {}", keys.join(", ")));
        }
        let name = if self.path == Path::new("-") { "standard output".into() } else { self.path.to_string_lossy() };
        let (mappings, records) = (count(self.mappings, "mapping"), count(self.records, "record"));
        let damage = match findings.skipped_bytes {
            0 => String::new(),
            bytes => {
                let places = count(findings.damaged_stretches, "damaged place");
                format!(", {} in {places} left out", count(bytes, "byte"))
            }
        };
        let marked = match self.marked {
            0 => String::new(),
            marked => format!(", {} of unknown size marked", count(marked, "gap")),
        };
        say::note(&format!("{mappings} and {records} written to {name}{damage}{marked}"));
    }
}

impl LeftOut {
    #[cold]
    fn count_unturned(&mut self, section: &Section, offset: u64) {
        if self.unturned == 0 {
            self.first_unturned = format!("offset {offset} of {}", section.file);
        }
        self.unturned += 1;
    }

    #[cold]
    fn count_unnamed(&mut self, section: &Section, offset: u64) {
        if self.unnamed == 0 {
            self.first_unnamed = format!("offset {offset} of {}", section.file);
        }
        self.unnamed += 1;
    }

    fn note_untrue(&mut self, section: &Section, keys: Vec<String>) {
        if keys.is_empty() {
            return;
        }
        if self.untrue == 0 {
            self.first_untrue = format!("{} ({})", section.file, keys.join(", "));
        }
        self.untrue += 1;
    }

    fn say(&self) {
        if self.untrue > 0 {
            say::warning(&format!(
                "the facts of the output are those of its beginning, and do not hold for what follows a later header in {}; \
                 write what stands behind each header alone",
                self.first_untrue
            ));
        }
        if self.unturned > 0 {
            say::warning(&format!(
                "{} left out, the first at {}: the byte order is not the output's, and only a declaration that fits tells what to \
                 turn round; take the trace-events-all of the build that wrote the trace, or write this part alone",
                count(self.unturned, "record"),
                self.first_unturned
            ));
        }
        if self.unnamed > 0 {
            say::warning(&format!(
                "{} left out, the first at {}: the trace does not name its events, and nothing declares them; take the \
                 trace-events-all of the build that wrote the trace",
                count(self.unnamed, "record"),
                self.first_unnamed
            ));
        }
        if self.mappings > 0 {
            let mappings = count(self.mappings, "mapping");
            say::warning(&format!(
                "{mappings} left out: more names than a file may have; write fewer traces, or fewer events, into one"
            ));
        }
    }
}

/// An argument as version 4 has it.
enum Argument<'a> {
    Value(Value<'a>),
    /// The address that version 0 has for a string.
    Address(String),
}

impl Argument<'_> {
    fn value(&self) -> Value<'_> {
        match self {
            Self::Value(value) => *value,
            Self::Address(text) => Value::String(text.as_bytes()),
        }
    }
}

/// The arguments of a record, by its declaration; in version 0 words that it does not declare follow, too.
fn values<'a>(event: &Event<'a>) -> Vec<Argument<'a>> {
    let mut args = event.record.payload.args();
    let mut values = Vec::new();
    for arg in event.kind.args() {
        match args.next(arg.ty) {
            Some(Value::Pointer(address)) if arg.ty.is_string() => {
                values.push(Argument::Address(format!("{address:#x}")));
            }
            Some(value) => values.push(Argument::Value(value)),
            None => break,
        }
    }
    if event.fit != Fit::Exact {
        let mut surplus = if event.fit == Fit::Undeclared { args.rest().len() / 8 } else { args.left_over().len() / 8 };
        while surplus > 0
            && let Some(word) = args.word()
        {
            values.push(Argument::Value(Value::Unsigned(word)));
            surplus -= 1;
        }
    }
    values
}
