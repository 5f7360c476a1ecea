//! Tables as polars knows them: their columns without reading the trace, their rows when a query is run.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use polars::prelude::*;
use polars_plan::plans::{AExpr, ArenaLpIter as _, IR};
use polars_plan::prelude::{Arena, Node};

use super::source::{Source, say};
use super::table::{Table, Want, Window};
use super::{bounds, to_polars};

/// A table of a trace.
pub(super) struct TableScan {
    source: Arc<Source>,
    table: Table,
    schema: SchemaRef,
}

impl TableScan {
    /// A frame of it.
    pub(super) fn frame(source: &Arc<Source>, table: Table) -> PolarsResult<LazyFrame> {
        let schema = Arc::new(table.schema());
        let scan = Self { source: Arc::clone(source), table, schema: Arc::clone(&schema) };
        let args = ScanArgsAnonymous { schema: Some(schema), name: "SIMPLETRACE", ..ScanArgsAnonymous::default() };
        LazyFrame::anonymous_scan(Arc::new(scan), args)
    }

    fn want(&self, columns: Option<&[PlSmallStr]>, window: Window, rows: Option<usize>) -> Want {
        let asked = |name: &PlSmallStr| columns.is_none_or(|columns| columns.contains(name));
        let has_window = matches!(self.table, Table::Event { .. } | Table::Events);
        Want {
            table: self.table.clone(),
            columns: self.schema.iter_names().filter(|name| asked(name)).cloned().collect(),
            window: if has_window { window } else { Window::ALL },
            rows,
        }
    }

    /// Takes in what another reader of the table wants.
    fn widen(&self, all: &mut Want, other: &Want) {
        let has = |name: &&PlSmallStr| all.columns.contains(name) || other.columns.contains(name);
        all.columns = self.schema.iter_names().filter(has).cloned().collect();
        all.window = all.window.or(other.window);
        all.rows = all.rows.zip(other.rows).map(|(one, other)| one.max(other));
    }
}

impl AnonymousScan for TableScan {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn allows_projection_pushdown(&self) -> bool {
        true
    }

    /// Of a query that is run by polars alone: it reads the trace for this table.
    fn scan(&self, args: AnonymousScanArgs) -> PolarsResult<DataFrame> {
        let AnonymousScanArgs { n_rows, with_columns, .. } = args;
        let want = self.want(with_columns.as_deref(), Window::ALL, n_rows);
        let (mut frames, trace, oddities) = self.source.read(vec![want]).map_err(to_polars)?;
        say(&trace, oddities);
        part(&frames.remove(0), with_columns.as_deref(), n_rows)
    }
}

/// These columns of a frame, and its first rows.
fn part(frame: &DataFrame, columns: Option<&[PlSmallStr]>, rows: Option<usize>) -> PolarsResult<DataFrame> {
    let frame = rows.map_or_else(|| frame.clone(), |rows| frame.head(Some(rows)));
    match columns {
        Some([]) => DataFrame::new(frame.height(), Vec::new()),
        Some(columns) => frame.select(columns.iter().cloned()),
        None => Ok(frame),
    }
}

/// Runs a query. What it wants of each source is [read](Source::read) by `read`, once.
///
/// # Errors
///
/// Those of polars and of `read`.
pub(super) fn run(
    query: LazyFrame,
    mut read: impl FnMut(&Arc<Source>, Vec<Want>) -> PolarsResult<Vec<DataFrame>>,
) -> PolarsResult<DataFrame> {
    let mut lost_rows = false;
    let result = run_once(
        query.clone(),
        |root, plan| {
            lost_rows = has_no_columns(root, plan);
            !lost_rows
        },
        &mut read,
    );
    if !lost_rows {
        return result;
    }
    run_once(query.with_projection_pushdown(false), |_, _| true, &mut read)
}

fn run_once(
    query: LazyFrame,
    is_right: impl FnOnce(Node, &Arena<IR>) -> bool,
    mut read: impl FnMut(&Arc<Source>, Vec<Want>) -> PolarsResult<Vec<DataFrame>>,
) -> PolarsResult<DataFrame> {
    query._collect_post_opt(|root, plan, exprs, _| {
        if !is_right(root, plan) {
            polars_bail!(ComputeError: "a part of the query has no columns left");
        }
        sum_in_64_bits(root, plan, exprs);
        let mut wanted = Wanted::of(root, plan, exprs);
        while let Some(source) = wanted.tables.first().map(|table| Arc::clone(&table.source)) {
            let (own, others): (Vec<_>, Vec<_>) =
                wanted.tables.drain(..).partition(|table| Arc::ptr_eq(&table.source, &source));
            wanted.tables = others;
            let frames = read(&source, own.iter().map(|table| table.want.clone()).collect())?;
            for (place, frame) in own
                .iter()
                .zip(frames)
                .flat_map(|(table, frame)| table.places.iter().map(move |place| (place, frame.clone())))
            {
                let frame = part(&frame, place.columns.as_deref(), place.rows)?;
                let schema = Arc::clone(frame.schema());
                plan.replace(place.node, IR::DataFrameScan { df: Arc::new(frame), schema, output_schema: None });
            }
        }
        Ok(())
    })
}

/// Whether a part of a plan has no columns, as nothing of it is used but how many rows it has. Polars 0.55 forgets then that aggregates are one
/// row; without the pushing down of projections it does not.
fn has_no_columns(root: Node, plan: &Arena<IR>) -> bool {
    plan.iter(root).any(|(_, ir)| match ir {
        IR::Scan { unified_scan_args, .. } => {
            unified_scan_args.projection.as_ref().is_some_and(|names| names.is_empty())
        }
        IR::SimpleProjection { columns, .. } => columns.is_empty(),
        IR::Select { expr, .. } => expr.is_empty(),
        _ => false,
    })
}

/// Polars 0.55 counts the rows of a UNION ALL in 128 bits, which it has not got unless it is built so.
fn sum_in_64_bits(root: Node, plan: &Arena<IR>, exprs: &mut Arena<AExpr>) {
    let selects = plan.iter(root).filter_map(|(_, ir)| match ir {
        IR::Select { input, expr, .. } if matches!(plan.get(*input), IR::Union { .. }) => Some(expr),
        _ => None,
    });
    let mut rest: Vec<Node> = selects.flatten().map(|expr| expr.node()).collect();
    while let Some(node) = rest.pop() {
        if let AExpr::Cast { expr, dtype: DataType::UInt128, .. } = exprs.get(node)
            && matches!(exprs.get(*expr), AExpr::Column(name) if name == "len")
            && let AExpr::Cast { dtype, .. } = exprs.get_mut(node)
        {
            *dtype = DataType::UInt64;
        }
        exprs.get(node).inputs_rev(&mut rest);
    }
}

/// What a query wants of all tables.
#[derive(Default)]
struct Wanted {
    tables: Vec<WantedTable>,
}

struct WantedTable {
    function: Arc<dyn AnonymousScan>,
    source: Arc<Source>,
    /// By all places together.
    want: Want,
    places: Vec<Place>,
}

/// Where a table stands in a query.
struct Place {
    node: Node,
    columns: Option<Arc<[PlSmallStr]>>,
    rows: Option<usize>,
}

impl Wanted {
    /// Of what polars has made of a query.
    fn of(root: Node, plan: &Arena<IR>, exprs: &Arena<AExpr>) -> Self {
        let mut all = Self::default();
        let mut windows = HashMap::new();
        for (node, ir) in plan.iter(root) {
            let (scan_type, args) = match ir {
                // A condition on a table stands right above it.
                IR::Filter { input, predicate } => {
                    windows.insert(*input, bounds::of(predicate.node(), exprs));
                    continue;
                }
                IR::Scan { scan_type, unified_scan_args, .. } => (scan_type, unified_scan_args),
                _ => continue,
            };
            let FileScanIR::Anonymous { function, .. } = &**scan_type else { continue };
            let Some(scan) = function.as_any().downcast_ref::<TableScan>() else { continue };
            let window = windows.remove(&node).unwrap_or(Window::ALL);
            let rows = args.pre_slice.as_ref().map(|slice| slice.len());
            let place = Place { node, columns: args.projection.clone(), rows };
            let want = scan.want(args.projection.as_deref(), window, rows);
            match all.tables.iter_mut().find(|table| Arc::ptr_eq(&table.function, function)) {
                Some(table) => {
                    scan.widen(&mut table.want, &want);
                    table.places.push(place);
                }
                None => all.tables.push(WantedTable {
                    function: Arc::clone(function),
                    source: Arc::clone(&scan.source),
                    want,
                    places: vec![place],
                }),
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use polars::sql::SQLContext;
    use simpletrace_format::events::EventIndex;

    use super::*;
    use crate::pairing::{Chain, KeyPart, Question};
    use crate::pairs::Operation;

    const EVENTS: &str =
        "begin(void *req, int bytes) \"%p %d\"\nend(void *req, const char *how, bool ok) \"%p %s %d\"\n";

    /// What a query wants of a trace, in the order of its tables.
    fn wanted(sql: &str) -> Vec<String> {
        let mut declared = EventIndex::new();
        declared.add("trace-events", EVENTS.into());
        let source = Arc::new(Source::of_nothing(declared.clone()));
        let chain = Chain::parse("begin -> end").unwrap();
        let on = KeyPart::parse_all("req", &chain).unwrap();
        let operation = Operation::new(Question::new(chain, on, Vec::new()), &[], &declared, false).unwrap();
        let event = |name: &str| Table::Event { name: name.to_owned(), decl: declared.get(name).unwrap().event };
        let mut context = SQLContext::new();
        for (name, table) in [
            ("begin", event("begin")),
            ("end", event("end")),
            ("events", Table::Events),
            ("gaps", Table::Gaps),
            ("pairs", Table::Pairs(Box::new(operation))),
        ] {
            context.register(name, TableScan::frame(&source, table).unwrap());
        }
        let mut told = Vec::new();
        let result = run(context.execute(sql).unwrap(), |_, wants| {
            for Want { table, columns, window, rows } in wants {
                let name = match table {
                    Table::Event { name, .. } => name,
                    Table::Events => "events".to_owned(),
                    Table::Gaps => "gaps".to_owned(),
                    Table::Pairs(_) => "pairs".to_owned(),
                };
                let mut text = format!("{name}({})", columns.join(" "));
                if window != Window::ALL {
                    text += &format!(" from {} to {}", window.from_ns, window.to_ns);
                }
                if let Some(rows) = rows {
                    text += &format!(" first {rows}");
                }
                told.push(text);
            }
            Err(polars_err!(ComputeError: "enough"))
        });
        assert_eq!(result.unwrap_err().to_string(), "enough");
        told.sort();
        told
    }

    #[test]
    fn only_what_a_query_names_is_wanted() {
        for (sql, expected) in [
            ("select bytes from begin", vec!["begin(bytes)"]),
            ("select count(*) from begin", vec!["begin(ts_ns)"]),
            ("select * from gaps", vec!["gaps(from_ns to_ns count pid)"]),
            ("select how, count(*) as n from \"end\" where ok group by how", vec!["end(how ok)"]),
            ("select event, count(*) as n from events group by event", vec!["events(event)"]),
            ("select avg(latency_ns) as mean from pairs where not suspect", vec!["pairs(latency_ns suspect)"]),
            // Each table once, with what all readers of it need.
            (
                "select a.bytes from begin a join begin b on a.req = b.req join \"end\" e on e.req = b.req where b.pid = 3",
                vec!["begin(pid req bytes)", "end(req)"],
            ),
        ] {
            assert_eq!(wanted(sql), expected, "{sql}");
        }
    }

    #[test]
    fn plain_bounds_on_times_are_wanted_and_whatever_else_leaves_all() {
        for (condition, expected) in [
            ("ts_ns > 5 and ts_ns <= 9", " from 6 to 9"),
            ("5 <= ts_ns and bytes < 0", " from 5 to 18446744073709551615"),
            ("5 > ts_ns", " from 0 to 4"),
            ("ts_ns = 7", " from 7 to 7"),
            ("ts_ns between 7 and 9", " from 7 to 9"),
            ("ts_ns < -1", ""),
            ("ts_ns > 5 or ts_ns < 2", ""),
            ("ts_ns > bytes", ""),
            ("ts_ns - 1 > 5", ""),
            ("ts_ns > 5.5", ""),
            ("pid > 5", ""),
            ("not (ts_ns > 5)", " from 0 to 5"),
        ] {
            let wants = wanted(&format!("select 1 as one, ts_ns, bytes, pid from begin where {condition}"));
            assert_eq!(wants, [format!("begin(ts_ns pid bytes){expected}")], "{condition}");
        }
        // What two parts of a query read is read whole; and no bound is one on a time that a row only leads to.
        assert_eq!(
            wanted(
                "with a as (select req, pid from begin where ts_ns < 5), b as (select req from begin where ts_ns > 2 and ts_ns < 9)
                 select a.pid from a join b on a.req = b.req join \"end\" e on e.req = a.req where e.ts_ns > 1"
            ),
            ["begin(ts_ns pid req)", "end(ts_ns req) from 2 to 18446744073709551615"]
        );
        assert_eq!(wanted("select end_ns from pairs where end_ns > 5"), ["pairs(end_ns)"]);
    }

    #[test]
    fn a_limit_is_wanted_where_no_condition_comes_before_it() {
        assert_eq!(wanted("select req from begin limit 3"), ["begin(req) first 3"]);
        assert_eq!(wanted("select req from begin where bytes > 3 limit 3"), ["begin(req bytes)"]);
        assert_eq!(wanted("select req from begin order by bytes limit 3"), ["begin(req bytes)"]);
    }
}
