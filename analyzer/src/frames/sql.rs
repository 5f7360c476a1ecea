//! Queries in SQL.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use arrow_array::RecordBatch;
use polars::prelude::*;
use polars::sql::{SQLContext, extract_table_identifiers};
use simpletrace_format::events::nearest;

use super::accept;
use super::convert::batches;
use super::scan::{TableScan, run};
use super::source::{Source, say};
use super::table::Table;
use super::to_polars;
use crate::columns::Oddities;
use crate::filter::DROPPED;
use crate::findings::Outcome;
use crate::pairs::Operation;
use crate::trace::Trace;

/// Room for what goes down into a query: its parser, and those parts of polars that do not see to it themselves. Only what is used of it is memory.
pub(super) const STACK_BYTES: usize = 256 << 20;

/// What a query comes to.
pub(crate) struct Answer {
    /// At least one, which has the names of the columns.
    pub(crate) batches: Vec<RecordBatch>,
    /// The trace, if it was read.
    read: Option<(Trace, Oddities)>,
}

impl Answer {
    /// Says what was found in the trace.
    pub(crate) fn say_findings(&self) {
        if let Some((trace, oddities)) = &self.read {
            say(trace, *oddities);
        }
    }

    pub(crate) fn outcome(&self) -> Outcome {
        self.read.as_ref().map_or(Outcome::Good, |(trace, _)| trace.outcome(false))
    }
}

/// Runs a query on a trace; an operation makes the table `pairs`.
///
/// # Errors
///
/// Those of polars, with the tables or columns that there are; and a trace that cannot be read.
pub(crate) fn query(source: &Arc<Source>, operation: Option<Operation>, sql: &str) -> Result<Answer> {
    stacker::grow(STACK_BYTES, || answer(source, operation, sql))
}

fn answer(source: &Arc<Source>, operation: Option<Operation>, sql: &str) -> Result<Answer> {
    let (query, tables) = prepare(source, operation, sql)?;
    let mut read = None;
    let result = run(query, |source, wants| {
        let (frames, trace, oddities) = source.read(wants).map_err(to_polars)?;
        read = Some((trace, oddities));
        Ok(frames)
    });
    let frame = result.map_err(|error| with_columns(&error, &tables))?;
    Ok(Answer { batches: batches(&frame)?, read })
}

/// The tables that a query names, with their columns.
type Tables = Vec<(String, Schema)>;

fn prepare(source: &Arc<Source>, operation: Option<Operation>, sql: &str) -> Result<(LazyFrame, Tables)> {
    let is_table = |name: &str| matches!(name, "events" | "gaps" | "pairs") || declared(source, name).is_some();
    let sql = &*accept::check(sql, is_table)?;
    let mut context = SQLContext::new();
    let mut tables: Tables = Vec::new();
    let mut register = |context: &SQLContext, name: &str, table: Table| -> Result<()> {
        tables.push((name.to_owned(), table.schema()));
        context.register(name, TableScan::frame(source, table)?);
        Ok(())
    };
    for name in extract_table_identifiers(sql, false, true)? {
        match (&*name, &operation) {
            ("events", _) => register(&context, &name, Table::Events)?,
            ("gaps", _) => register(&context, &name, Table::Gaps)?,
            ("pairs", Some(operation)) => register(&context, &name, Table::Pairs(Box::new(operation.clone())))?,
            ("pairs", None) => {}
            _ => {
                if let Some(table) = declared(source, &name) {
                    register(&context, &name, table)?;
                }
            }
        }
    }
    // What is not declared may be the name of a part of the query; if it is not, it may stand in the trace.
    let mut looked_for = BTreeSet::new();
    loop {
        let error = match context.execute(sql) {
            Ok(query) => return Ok((query, tables)),
            Err(error) => error,
        };
        let Some(name) = unknown_table(&error) else { return Err(with_columns(&error, &tables)) };
        if !looked_for.insert(name.clone()) || name == "pairs" {
            return Err(without_table(source, &error, &name));
        }
        match event(source, &name)? {
            Some(table) => {
                tables.push((name.clone(), table.schema()));
                context.register(&name, TableScan::frame(source, table)?);
            }
            None => return Err(without_table(source, &error, &name)),
        }
    }
}

fn declared(source: &Source, name: &str) -> Option<Table> {
    let found = source.events().get(name)?;
    // With a fault in its declaration, which is told where its records are, it is as if not declared.
    Some(Table::Event { name: name.to_owned(), decl: found.event })
}

/// The table of an event: it is declared, or the trace has its name, or records of an id without a name that goes by this one.
///
/// # Errors
///
/// The trace cannot be read.
pub(super) fn event(source: &Source, name: &str) -> Result<Option<Table>> {
    if let Some(table) = declared(source, name) {
        return Ok(Some(table));
    }
    let is_there = source.is_rereadable()
        && (source.names(false)?.contains(name) || (name.contains("event ") && source.names(true)?.contains(name)));
    Ok(is_there.then(|| Table::Event { name: name.to_owned(), decl: None }))
}

/// Says that there is no event of a name.
pub(super) fn no_such_event(source: &Source, name: &str) -> anyhow::Error {
    anyhow!("no event is called {name}{}", what_there_is(source, name))
}

/// The table that polars does not know.
fn unknown_table(error: &PolarsError) -> Option<String> {
    let text = error.to_string();
    let (_, rest) = text.split_once("relation '")?;
    rest.split_once("' was not found").map(|(name, _)| name.to_owned())
}

fn without_table(source: &Source, error: &PolarsError, name: &str) -> anyhow::Error {
    if name == "pairs" {
        return anyhow!("{error}; --pairs NAME makes that table, and `latency --list` has the names");
    }
    anyhow!("{error}{}", what_there_is(source, name))
}

/// The nearest name, and which tables there are.
fn what_there_is(source: &Source, name: &str) -> String {
    /// As many names as are listed.
    const SHOWN: usize = 40;

    let recorded = if source.is_rereadable() { source.names(true).unwrap_or_default() } else { BTreeSet::new() };
    let candidates = ["events", "pairs", "gaps"].into_iter().chain(recorded.iter().map(String::as_str));
    let hint = match nearest(name, candidates).or_else(|| source.events().nearest(name)) {
        _ if name == DROPPED => "; what was dropped is in the table gaps".to_owned(),
        Some(nearest) => format!("; did you mean {nearest}?"),
        None => String::new(),
    };
    let mut text =
        format!("{hint}\ntables: events, gaps, pairs (with --pairs), and one of each event that is declared");
    if !source.is_rereadable() {
        return text + "; of a pipe, whose other events are not known before it is read, no others";
    }
    text += " or recorded";
    if !recorded.is_empty() {
        let shown: Vec<_> = recorded.iter().take(SHOWN).map(String::as_str).collect();
        text += &format!("; there are records of {}", shown.join(", "));
    }
    if recorded.len() > SHOWN {
        text += &format!(" and {} more (`simpletrace-rs info --all`)", recorded.len() - SHOWN);
    }
    text
}

/// An error that may be about a column, with those that there are.
fn with_columns(error: &PolarsError, tables: &Tables) -> anyhow::Error {
    /// As many tables as are listed.
    const SHOWN: usize = 10;

    // What polars shows of its plan is of no help.
    let text = error.to_string();
    let text = text.split("\n\nResolved plan until failure").next().unwrap_or_default().to_owned();
    if let Some((_, number)) = text.split_once("cannot parse literal: ") {
        let number: String = number.chars().filter(char::is_ascii_digit).collect();
        let hint = match number.parse::<u64>() {
            Ok(number) if number == 1 << 63 => {
                "; -2^63 is written CAST('-9223372036854775808' AS BIGINT), and 2^63 CAST('9223372036854775808' AS UBIGINT)"
                    .to_owned()
            }
            Ok(number) if number > 1 << 63 => {
                format!("; a number above 2^63-1 is written CAST('{number}' AS UBIGINT)")
            }
            Ok(_) => String::new(),
            Err(_) => "; whole numbers have at most 64 bits".to_owned(),
        };
        return anyhow!(text + &hint);
    }
    if text.contains("unexpected subquery") || text.contains("subquery comparisons") {
        return anyhow!(
            "{text}; a value of another query is joined: FROM a CROSS JOIN (SELECT max(x) AS most FROM b) AS m"
        );
    }
    // Polars shows how it has parsed it.
    if let Some(what) = text.strip_prefix("expression ").and_then(|what| what.split_once(" {"))
        && text.ends_with("is not currently supported")
    {
        return anyhow!("{} is not supported here", what.0.to_uppercase());
    }
    let is_of_column = match root(error) {
        PolarsError::ColumnNotFound(_) | PolarsError::SchemaFieldNotFound(_) => true,
        PolarsError::SQLInterface(text) => text.contains("column"),
        _ => false,
    };
    if !is_of_column {
        return anyhow!(text);
    }
    let columns = tables.iter().flat_map(|(_, schema)| schema.iter_names().map(PlSmallStr::as_str));
    let columns: BTreeSet<_> = columns.collect();
    let quoted = |quote: char| text.split(quote).nth(1).filter(|name| !columns.contains(name));
    let hint = ['"', '\''].into_iter().find_map(quoted).and_then(|name| nearest(name, columns.iter().copied()));
    let mut all = text.clone();
    if let Some(hint) = hint {
        all += &format!("; did you mean {hint}?");
    }
    for (name, schema) in tables.iter().take(SHOWN) {
        let columns: Vec<_> = schema.iter_names().map(PlSmallStr::as_str).collect();
        all += &format!("\n{name} has {}", columns.join(", "));
    }
    anyhow!(all)
}

/// What went wrong, without where.
fn root(error: &PolarsError) -> &PolarsError {
    match error {
        PolarsError::Context { error, .. } | PolarsError::ExprContext { error, .. } => root(error),
        error => error,
    }
}
