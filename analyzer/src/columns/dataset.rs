//! `export`: a folder of Parquet files that traces are added to, as engines that work on many machines read them.
//!
//! A file of the folder has the events of one kind of one trace, and gets its name when it is whole. A trace is in the data set once its
//! manifest is; what a killed export has left is known by its claim, and taken out by the next one of that trace.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use simpletrace_format::Value;

use super::Oddities;
use super::encoders::Encoders;
use super::facts::FileFacts;
use super::manifest::{Claim, Manifest, ManifestFile, check_name, open_in_folder, remove_empty_folders};
use super::parquet::ParquetFile;
use super::table::{EventTable, Wanted};
use crate::cli::Partition;
use crate::filter::DROPPED;
use crate::render::{PerKind, WallClock, printable, utc};
use crate::trace::{Event, FileSummary, Gap, Missing};

/// About how large a row group is before it is encoded, and how much of all events waits for that, in bytes.
const ROW_GROUP_BYTES: usize = 16 << 20;
const WAITING_BYTES: usize = 64 << 20;

/// Columns of the data set that no event has.
const SOURCE: &str = "source";
const DAY: &str = "day";
/// What Hive, Spark and DuckDB take for null in the place of a day.
const NO_DAY: &str = "__HIVE_DEFAULT_PARTITION__";
/// How many columns stand in front of those of arguments.
const LEADING: usize = 3;

/// A trace on its way into a data set.
pub(crate) struct DataSet {
    folder: PathBuf,
    source: String,
    partition: Partition,
    claim: Claim,
    /// The places in `parts` of each kind of event, by days.
    places: PerKind<Places>,
    by_name: HashMap<(String, Day), usize>,
    parts: Vec<Part>,
    waiting_bytes: usize,
    encoders: Encoders,
    pub(crate) wall: WallClock,
    facts: FileFacts,
    records: u64,
}

#[derive(Debug, Default)]
struct Places {
    by_day: Vec<(Day, usize)>,
}

/// By which day a row goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Day {
    /// It does not matter.
    Any,
    /// Since 1970.
    At(u64),
    /// Its time is out of range, as a clock that jumps, or a record that is not one, may have it.
    Unknown,
}

/// One file.
struct Part {
    event: String,
    /// Its place in the folder, in the end and until then.
    path: PathBuf,
    temporary: PathBuf,
    table: EventTable,
    /// With the source, if that is no part of the path.
    schema: SchemaRef,
    file: Option<ParquetFile<AppendedFile>>,
    rows: u64,
    times_ns: (u64, u64),
}

impl DataSet {
    /// Begins to add the trace that goes by the name of `source`; `replaces` one of that name.
    ///
    /// # Errors
    ///
    /// The data set has such a trace, or is partitioned in another way; the folder cannot be written.
    pub(crate) fn open(folder: &Path, source: &str, partition: Partition, replaces: bool) -> Result<Self> {
        check_name("the name", source, &escaped(source), "--source gives it another")?;
        let claim = Claim::take(folder, &escaped(source), partition, replaces)?;
        Ok(Self {
            folder: folder.to_owned(),
            source: source.to_owned(),
            partition,
            claim,
            places: PerKind::default(),
            by_name: HashMap::new(),
            parts: Vec::new(),
            waiting_bytes: 0,
            encoders: Encoders::start()?,
            wall: WallClock::default(),
            facts: FileFacts::new(None),
            records: 0,
        })
    }

    /// Adds an event.
    pub(crate) fn event(&mut self, event: &Event<'_>) -> Result<()> {
        let ts_ns = event.record.timestamp_ns;
        let wall_ns = self.wall.at(ts_ns);
        let day = self.day(wall_ns)?;
        let places = self.places.get(event.kind, |_| Places::default());
        let place = match places.by_day.iter().find(|(of, _)| *of == day) {
            Some(&(_, place)) => place,
            None => self.add_kind(event, day)?,
        };
        self.records += 1;
        self.push(place, ts_ns, |table| table.push(ts_ns, || wall_ns, event.record.pid, event.record.payload))
    }

    /// Adds a gap, as an event of that name.
    pub(crate) fn gap(&mut self, gap: &Gap, is_wanted: bool) -> Result<()> {
        self.facts.add_gap(&gap.record);
        if !is_wanted {
            return Ok(());
        }
        let ts_ns = gap.record.timestamp_ns;
        let wall_ns = self.wall.at(ts_ns);
        let day = self.day(wall_ns)?;
        let place = self.place(DROPPED, day, || EventTable::of_gaps(true))?;
        let count = gap.record.known_count().map(Value::Unsigned);
        self.push(place, ts_ns, |table| table.push_value(ts_ns, wall_ns, gap.record.pid, count))
    }

    /// Takes notice of what could not be read.
    pub(crate) fn missing(&mut self, missing: &Missing) {
        self.facts.add_missing(missing);
    }

    /// The day that a row goes by.
    fn day(&self, wall_ns: Option<u64>) -> Result<Day> {
        const NS_PER_DAY: u64 = 86_400_000_000_000;
        if !self.partition.day {
            return Ok(Day::Any);
        }
        match wall_ns {
            Some(wall_ns) => Ok(Day::At(wall_ns / NS_PER_DAY)),
            None if self.wall.is_known() => Ok(Day::Unknown),
            None => bail!(
                "{} does not say at what time of day it was begun (no anchor_ns before its first event; QEMU writes none), so its \
                 events are of no day; take --partition event,source",
                self.source
            ),
        }
    }

    #[cold]
    fn add_kind(&mut self, event: &Event<'_>, day: Day) -> Result<usize> {
        if event.kind.name == DROPPED {
            bail!(
                "an event of the trace is called {DROPPED}, as gaps are in a data set; -e -{DROPPED} leaves out both"
            );
        }
        let decl = event.kind.decl.as_ref();
        let place = self.place(&event.kind.name, day, || EventTable::new(decl, Wanted::All { wall: true }))?;
        self.places.get(event.kind, |_| Places::default()).by_day.push((day, place));
        Ok(place)
    }

    fn place(&mut self, event: &str, day: Day, table: impl FnOnce() -> EventTable) -> Result<usize> {
        if let Some(&place) = self.by_name.get(&(event.to_owned(), day)) {
            return Ok(place);
        }
        let folder = escaped(event);
        check_name("the event", event, &folder, &format!("leave it out (-e '-{}')", printable(event)))?;
        let mut path = PathBuf::from(format!("event={folder}"));
        match day {
            Day::Any => {}
            Day::At(day) => path.push(format!("{DAY}={}", &utc(day * 86_400_000_000_000)[..10])),
            Day::Unknown => path.push(format!("{DAY}={NO_DAY}")),
        }
        let mut name = "data".to_owned();
        if self.partition.source {
            path.push(format!("{SOURCE}={}", escaped(&self.source)));
        } else {
            name = escaped(&self.source);
        }
        let temporary = self.folder.join(&path).join(format!(".{name}.parquet.part"));
        path.push(format!("{name}.parquet"));
        let table = table();
        // What readers make of the folders' names are columns, too.
        let renamed = |(place, field): (usize, &FieldRef)| match field.name().as_str() {
            SOURCE | DAY => Field::clone(field).with_name(format!("{}_{}", field.name(), place - LEADING + 1)).into(),
            _ => Arc::clone(field),
        };
        let mut fields: Vec<FieldRef> = table.schema().fields().iter().enumerate().map(renamed).collect();
        if !self.partition.source {
            fields.push(Arc::new(Field::new(SOURCE, DataType::Utf8, false)));
        }
        let place = self.parts.len();
        self.parts.push(Part {
            event: event.to_owned(),
            path,
            temporary,
            table,
            schema: Arc::new(Schema::new(fields)),
            file: None,
            rows: 0,
            times_ns: (u64::MAX, 0),
        });
        self.by_name.insert((event.to_owned(), day), place);
        Ok(place)
    }

    fn push(&mut self, place: usize, ts_ns: u64, push: impl FnOnce(&mut EventTable)) -> Result<()> {
        let part = &mut self.parts[place];
        part.times_ns = (part.times_ns.0.min(ts_ns), part.times_ns.1.max(ts_ns));
        let before = part.table.bytes();
        push(&mut part.table);
        let bytes = part.table.bytes();
        self.waiting_bytes += bytes - before;
        if bytes < ROW_GROUP_BYTES && self.waiting_bytes < WAITING_BYTES { Ok(()) } else { self.write_largest() }
    }

    #[cold]
    fn write_largest(&mut self) -> Result<()> {
        let largest = (0..self.parts.len()).max_by_key(|&place| self.parts[place].table.bytes());
        largest.map_or(Ok(()), |place| self.write(place))
    }

    /// Sends the rows of a part to be encoded, and writes what has been.
    fn write(&mut self, place: usize) -> Result<()> {
        let part = &mut self.parts[place];
        self.waiting_bytes -= part.table.bytes();
        part.rows += part.table.rows() as u64;
        let batch = part.table.take();
        let mut columns = batch.columns().to_vec();
        if !self.partition.source {
            let source = std::iter::repeat_n(&self.source, batch.num_rows());
            columns.push(Arc::new(StringArray::from_iter_values(source)) as ArrayRef);
        }
        let batch = RecordBatch::try_new(Arc::clone(&part.schema), columns)?;
        let file = match &mut part.file {
            Some(file) => file,
            None => part.file.insert(ParquetFile::new(AppendedFile::create(&part.temporary)?, &part.schema)?),
        };
        self.encoders.send(place, file.writers()?, batch)?;
        while self.encoders.is_full() {
            self.append_next()?;
        }
        Ok(())
    }

    /// Writes the next row group that is encoded; tells whether there was one.
    fn append_next(&mut self) -> Result<bool> {
        let Some((place, chunks)) = self.encoders.next()? else { return Ok(false) };
        let Part { file: Some(file), temporary, .. } = &mut self.parts[place] else { return Ok(true) };
        let append = || -> Result<()> {
            file.append(chunks)?;
            // There may be more files than a process may have open.
            file.sink()?.close();
            Ok(())
        };
        append().with_context(|| format!("cannot write to {}", temporary.display()))?;
        Ok(true)
    }

    /// Writes what is left, and gives all files their names.
    pub(crate) fn finish(mut self, sources: &[FileSummary], is_damaged: bool) -> Result<(u64, usize)> {
        for place in 0..self.parts.len() {
            if self.parts[place].table.rows() > 0 {
                self.write(place)?;
            }
        }
        while self.append_next()? {}
        let mut oddities = Oddities::default();
        let mut files = Vec::with_capacity(self.parts.len());
        for part in &mut self.parts {
            oddities.add(part.table.oddities);
            let Some(file) = part.file.take() else { continue };
            let facts = self.facts.at_once().chain(self.facts.in_the_end(sources));
            let facts = facts.chain([("simpletrace.event".to_owned(), part.event.clone())]);
            let temporary = &part.temporary;
            let bytes = file
                .finish(facts)
                .and_then(|sink| Ok(fs::metadata(&sink.path)?.len()))
                .with_context(|| format!("cannot write to {}", temporary.display()))?;
            let (first_ns, last_ns) = part.times_ns;
            let path = part.path.to_str().context("names are escaped")?.to_owned();
            files.push(ManifestFile { path, event: part.event.clone(), rows: part.rows, bytes, first_ns, last_ns });
        }
        let count = files.len();
        let manifest =
            Manifest::new(&self.source, self.partition, self.records, is_damaged, &self.facts, sources, files);
        self.claim.announce(&manifest)?;
        for part in &self.parts {
            let path = self.folder.join(&part.path);
            fs::rename(&part.temporary, &path).with_context(|| format!("cannot write to {}", path.display()))?;
        }
        self.parts.clear();
        self.claim.keep(&manifest)?;
        oddities.say();
        Ok((self.records, count))
    }
}

impl Drop for DataSet {
    fn drop(&mut self) {
        for part in &self.parts {
            // What made it end early is told by whoever dropped it.
            let _ = fs::remove_file(&part.temporary);
            remove_empty_folders(&self.folder, &part.temporary);
        }
    }
}

/// A name as a part of a path: what Hive, Spark and DuckDB take back from there.
fn escaped(name: &str) -> String {
    let mut escaped = String::new();
    for (at, byte) in name.bytes().enumerate() {
        // Names with these in front are passed over by readers.
        let hides = at == 0 && matches!(byte, b'.' | b'_');
        if (byte.is_ascii_alphanumeric() || b"-_.+,@".contains(&byte)) && !hides {
            escaped.push(byte.into());
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

/// A file that is written to its end, and open only while it is.
struct AppendedFile {
    path: PathBuf,
    file: Option<File>,
}

impl AppendedFile {
    /// An empty file, with the folders around it.
    fn create(path: &Path) -> Result<Self> {
        let file =
            open_in_folder(path, || File::create(path)).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self { path: path.to_owned(), file: Some(file) })
    }

    fn close(&mut self) {
        self.file = None;
    }
}

impl Write for AppendedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(OpenOptions::new().append(true).open(&self.path)?),
        };
        file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
