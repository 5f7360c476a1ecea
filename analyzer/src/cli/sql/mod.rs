//! `sql`: asks a trace in SQL.

mod print;

use std::io::IsTerminal as _;
use std::panic::{PanicHookInfo, set_hook, take_hook};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};

use super::args::{OperationArgs, SqlArgs, SqlFormat};
use super::explain_filter;
use super::operation::{need_declared, question, say_note};
use crate::filter::Globs;
use crate::findings::Outcome;
use crate::frames::{Source, query};
use crate::output::Output;
use crate::pairs::Operation;
use crate::presets::Preset;
use crate::say;

pub(crate) fn run(args: &SqlArgs) -> Result<Outcome> {
    let Some((sql, files)) = args.files.split_last().and_then(|(sql, files)| Some((sql.to_str()?, files))) else {
        bail!("the query is not valid UTF-8");
    };
    if !sql.contains(char::is_whitespace) {
        bail!(
            "there is no query; the last argument is one, such as \"select count(*) from events\", and {sql} is none"
        );
    }
    if files.is_empty() {
        bail!("no trace is given, only a query");
    }
    let to_terminal = args.output.is_none() && std::io::stdout().is_terminal();
    if args.format == SqlFormat::Parquet && to_terminal {
        bail!("a Parquet file is not for a terminal; write it to a file (-o FILE)");
    }
    let selection = args.records.selection(Globs::default(), &[])?;
    let source = Arc::new(Source::open(files, &args.events, args.formats.formats(), selection.clone(), true)?);
    if args.records.explain_filter {
        return explain_filter(&selection, source.declared());
    }
    if source.declared().is_none() {
        say::warning(
            "no trace-events file was given or found, so events have no columns for their arguments, only their bytes as payload; \
             take the trace-events-all of the build that wrote the trace",
        );
    }
    let is_operation = args.pairs.as_ref().is_some_and(|pairs| pairs.contains("->"));
    let (spelled_out, preset) = if is_operation { (args.pairs.clone(), None) } else { (None, args.pairs.clone()) };
    let operation_args =
        OperationArgs { preset, presets: args.presets.clone(), on: args.on.clone(), discipline: args.discipline };
    let preset = operation_args.preset()?;
    let mut suited = None;
    let mut operation = None;
    if args.pairs.is_some() {
        let declared = need_declared(source.declared().cloned())?;
        suited = preset.map(|preset| preset.suited(&declared));
        let spelled_out: Vec<_> = spelled_out.into_iter().map(PathBuf::from).collect();
        let question = question(&operation_args, &spelled_out, &args.by, suited.as_ref())?;
        let filters = suited.as_ref().map_or(Vec::new(), Preset::filters);
        operation = Some(Operation::new(question, &filters, &declared, suited.is_some())?);
    }
    // Whatever thread it is on; where a panic is the end of the process, nothing else can be done about it.
    set_hook(Box::new(|info| {
        say::error(&failed(info));
        std::process::exit(Outcome::Failed as i32);
    }));
    let answer = query(&source, operation, sql);
    drop(take_hook());
    let answer = answer?;
    let inputs = source.inputs_at().iter().chain(&args.presets).map(PathBuf::as_path);
    let mut output = match &args.output {
        Some(path) => Output::create_whole(path, inputs)?,
        None => Output::create(None, inputs)?,
    };
    match args.format {
        SqlFormat::Table => print::table(&answer.batches, &mut output)?,
        SqlFormat::Csv => print::csv(&answer.batches, &mut output)?,
        SqlFormat::Json => print::json(&answer.batches, true, &mut output)?,
        SqlFormat::Ndjson => print::json(&answer.batches, false, &mut output)?,
        SqlFormat::Parquet => print::parquet(&answer.batches, &mut output).context("cannot write Parquet")?,
    }
    output.finish()?;
    answer.say_findings();
    say_note(suited.as_ref());
    Ok(answer.outcome())
}

/// What is said where polars cannot go on, and gives no error.
fn failed(info: &PanicHookInfo<'_>) -> String {
    let payload = info.payload();
    let why = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let why = why.unwrap_or("it does not say why").trim();
    // Where the program was built is nobody's business.
    let at = info.location().map_or(String::new(), |at| {
        let file = at.file();
        let file = file.find("polars").map_or(file, |from| &file[from..]);
        format!(" ({file}:{})", at.line())
    });
    format!("polars failed on this query: {why}{at}; ask it in another way")
}
