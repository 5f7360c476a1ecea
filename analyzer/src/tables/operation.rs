//! Tables of operations, and of how long they took.

use std::path::PathBuf;
use std::str::FromStr as _;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use arrow_array::builder::{Float64Builder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, FieldRef, Schema};
use clap::ValueEnum as _;
use simpletrace_format::events::EventIndex;

use super::job::Job;
use super::{BATCH_BYTES, Options, Source, Stream};
use crate::cli::{OperationArgs, Report, names, need_declared, question, say_note, say_why_nothing};
use crate::columns::{Arrow, Oddities};
use crate::filter::Globs;
use crate::groups::GroupValue;
use crate::latencies::{Percentile, check_once};
use crate::measure::Measure;
use crate::pairing::{Discipline, Drops, Pairing, Question};
use crate::pairs::{Operation as PairColumns, Pairs, values_column};
use crate::presets::{Preset as OwnPreset, Presets};
use crate::render::{Cell, Rows};

/// Which records belong to one operation, in the words of the command `latency`: a preset, or what is spelled out.
#[derive(Debug, Clone, Default)]
pub struct Operation {
    /// An operation that is known by name.
    pub preset: Option<String>,
    /// Files with more presets.
    pub presets: Vec<PathBuf>,
    /// `BEGIN -> END`, if there is no preset.
    pub chain: Option<String>,
    /// The arguments that its records have in common, as with `--on`.
    pub on: Option<String>,
    /// What to group by, as with `--by`: an argument each, with or without `:log2`. If there is none, what the preset says; `none` is nothing.
    pub by: Vec<String>,
    /// `last`, `first`, `fifo` or `lifo`.
    pub discipline: Option<String>,
    /// Leave out those that events may be missing from, of [latencies](Source::latency).
    pub without_suspects: bool,
    /// Of [latencies](Source::latency): 50, 90, 99 and 99.9, if there are none.
    pub percentiles: Vec<String>,
}

/// An operation that is known by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preset {
    /// Its name.
    pub name: String,
    /// What it is about.
    pub about: String,
    /// `BEGIN -> END`
    pub operation: String,
    /// What its records have in common.
    pub on: Option<String>,
    /// What its latencies are grouped by.
    pub by: Vec<String>,
    /// Whether its records never belong to another operation.
    pub exact: bool,
    /// What there is to know about it.
    pub note: String,
}

/// All presets that there are, and those of files, sorted by their names.
///
/// # Errors
///
/// A file cannot be read, or has a fault, which is shown with its line.
pub fn presets(files: &[PathBuf]) -> super::Result<Vec<Preset>> {
    let presets = Presets::load(files.iter().map(PathBuf::as_path))?;
    let presets = presets.iter().map(|(name, preset)| Preset {
        name: name.to_owned(),
        about: preset.about.clone(),
        operation: preset.operation().to_owned(),
        on: preset.on().map(str::to_owned),
        by: preset.by(),
        exact: preset.exact,
        note: preset.note.clone(),
    });
    Ok(presets.collect())
}

/// An operation, checked against declarations.
struct Asked {
    question: Question,
    preset: Option<OwnPreset>,
    /// The events that it is about.
    names: Vec<String>,
    /// The conditions of the preset.
    filters: Vec<String>,
    columns: PairColumns,
}

impl Operation {
    fn ask(&self, declared: &EventIndex) -> Result<Asked> {
        let discipline = self.discipline.as_deref().map(|text| {
            Discipline::from_str(text, false)
                .map_err(|_| anyhow!("there is no discipline {text}; there are last, first, fifo and lifo"))
        });
        let args = OperationArgs {
            preset: self.preset.clone(),
            presets: self.presets.clone(),
            on: self.on.clone(),
            discipline: discipline.transpose()?,
        };
        let preset = args.preset()?.map(|preset| preset.suited(declared));
        let chain: Vec<_> = self.chain.iter().map(PathBuf::from).collect();
        let question = question(&args, &chain, &self.by, preset.as_ref())?;
        let drops = if self.without_suspects { Drops::Exclude } else { Drops::Keep };
        let question = Question { drops, ..question };
        let names = names(&question, declared, preset.as_ref())?;
        let filters = preset.as_ref().map_or(Vec::new(), OwnPreset::filters);
        let columns = PairColumns::new(question.clone(), &filters, declared, preset.is_some())?;
        Ok(Asked { question, preset, names, filters, columns })
    }

    fn percentiles(&self) -> Result<Vec<Percentile>> {
        let own: Vec<_> = self.percentiles.iter().map(String::as_str).collect();
        let texts = if own.is_empty() { &["50", "90", "99", "99.9"][..] } else { &own };
        let percentiles: Vec<_> =
            texts.iter().map(|text| Percentile::from_str(text).map_err(anyhow::Error::msg)).collect::<Result<_>>()?;
        check_once(&percentiles)?;
        Ok(percentiles)
    }
}

impl Source {
    /// Operations with all their stages, in the order of their ends, as the table `pairs` in docs/QUERIES.md. All of them are kept until the trace is read.
    ///
    /// # Errors
    ///
    /// The operation does not go with the declarations, or there are none; a column, a window or a condition makes no sense.
    pub fn pairs(self, operation: &Operation, options: &Options) -> super::Result<Stream> {
        let declared = need_declared(self.declared.clone())?;
        let Asked { question: _, preset, names, filters, columns } = operation.ask(&declared)?;
        let fields: Vec<FieldRef> = columns.fields().map(Arc::new).collect();
        options.check_columns(&fields)?;
        let fields: Vec<_> = fields.into_iter().filter(|field| options.wants(field.name())).collect();
        let records = options.records()?;
        let selection = options.selection_with(Globs::of_names(names), &filters, Some(&declared))?;
        let schema = Arc::new(Schema::new(fields));
        let own = Arc::clone(&schema);
        let job = Job::start(self, selection, options.formats(), move |trace, parts| {
            let wanted: Vec<_> = own.fields().iter().map(|field| field.name().clone()).collect();
            let mut pairs = Pairs::new(&columns, &wanted, &declared);
            trace.for_each(|item| {
                pairs.take(&item);
                Ok(())
            })?;
            pairs.finish();
            let mut oddities = Oddities::default();
            let mut from = 0;
            while from < pairs.len() {
                let (mut to, mut bytes) = (from, 0);
                while to < pairs.len() && bytes < BATCH_BYTES {
                    bytes += pairs.bytes(to);
                    to += 1;
                }
                let columns = pairs.columns::<Arrow>(&wanted, from..to, &mut oddities);
                let rows = RecordBatchOptions::new().with_row_count(Some(to - from));
                parts.send(RecordBatch::try_new_with_options(Arc::clone(&own), columns, &rows)?)?;
                from = to;
            }
            trace.say_findings();
            oddities.say();
            say_note(preset.as_ref());
            say_why_nothing(pairs.pairing(), trace, &records, preset.as_ref());
            Ok(((), None))
        })?;
        Ok(Stream::new(&schema, None, job))
    }

    /// How long operations took: a row for each group, and of more than two stages one for each hop, as `groups` of `latency -F json` in docs/EXPORTS.md. The
    /// rest of that is in [`Report::facts`](super::Report::facts). A group of those that are not told apart has null for what is no text.
    ///
    /// # Errors
    ///
    /// As of [`pairs`](Self::pairs); a percentile is none.
    pub fn latency(self, operation: &Operation, options: &Options) -> super::Result<Stream> {
        let declared = need_declared(self.declared.clone())?;
        let Asked { question, preset, names, filters, columns } = operation.ask(&declared)?;
        let percentiles = operation.percentiles()?;
        let records = options.records()?;
        let selection = options.selection_with(Globs::of_names(names.clone()), &filters, Some(&declared))?;
        let group_types: Vec<_> = columns.group_types().cloned().collect();
        // Without groups, for the columns.
        let pairing = Pairing::new(question.clone(), &names, &declared);
        let measured = Measure::new(question.chain.len(), question.drops).finish();
        let (rows, _) = Report::of(&pairing, measured, &percentiles, None).into_parts();
        let empty = batch(&rows, &group_types, &mut Oddities::default())?;
        let schema = empty.schema();
        options.check_columns(schema.fields())?;
        let wanted: Vec<_> =
            (0..schema.fields().len()).filter(|&place| options.wants(schema.field(place).name())).collect();
        let schema = schema.project(&wanted).map_err(anyhow::Error::from)?;
        let job = Job::start(self, selection, options.formats(), move |trace, parts| {
            let mut pairing = Pairing::new(question.clone(), &names, &declared);
            let mut measure = Measure::new(question.chain.len(), question.drops);
            trace.for_each(|item| {
                pairing.take(&item, &mut |out| measure.take(&out));
                Ok(())
            })?;
            pairing.finish(&mut |out| measure.take(&out));
            let (rows, facts) = Report::of(&pairing, measure.finish(), &percentiles, preset.as_ref()).into_parts();
            let mut oddities = Oddities::default();
            parts.send(batch(&rows, &group_types, &mut oddities)?.project(&wanted)?)?;
            trace.say_findings();
            oddities.say();
            say_note(preset.as_ref());
            say_why_nothing(&pairing, trace, &records, preset.as_ref());
            Ok(((), Some(serde_json::to_string(&facts)?)))
        })?;
        Ok(Stream::new(&schema, None, job))
    }
}

/// Rows as columns; the first ones are of groups.
fn batch(rows: &Rows, group_types: &[DataType], oddities: &mut Oddities) -> Result<RecordBatch> {
    let mut fields = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    let mut group_types = group_types.iter();
    for (name, cells) in rows.by_column() {
        let (ty, column): (_, ArrayRef) = match (group_types.next(), name.as_str()) {
            (Some(ty), _) => {
                let values =
                    cells.map(|cell| if let Cell::Value { value, .. } = cell { value } else { &GroupValue::None });
                (ty.clone(), values_column::<Arrow, _>(ty, values, oddities))
            }
            (None, "hop") => {
                let mut texts = StringBuilder::new();
                cells.for_each(|cell| texts.append_option(if let Cell::Text(text) = cell { Some(text) } else { None }));
                (DataType::Utf8, Arc::new(texts.finish()))
            }
            (None, "rate_per_s" | "share" | "of_all") => {
                let mut numbers = Float64Builder::new();
                cells.for_each(|cell| {
                    numbers.append_option(match cell {
                        Cell::Number(number) | Cell::Share(number) => Some(*number),
                        _ => None,
                    });
                });
                (DataType::Float64, Arc::new(numbers.finish()))
            }
            (None, _) => {
                let mut numbers = UInt64Builder::new();
                cells.for_each(|cell| {
                    numbers.append_option(match cell {
                        Cell::Count(number) | Cell::Ns(number) => Some(*number),
                        _ => None,
                    });
                });
                (DataType::UInt64, Arc::new(numbers.finish()))
            }
        };
        fields.push(Field::new(name, ty, true));
        columns.push(column);
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}
