//! Tables as polars knows them: their columns without reading the trace, their rows when a query is run.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use polars::prelude::*;
use polars_plan::plans::{ArenaLpIter as _, IR};
use polars_plan::utils::expr_to_leaf_column_names_iter;

use super::source::{Source, say};
use super::table::{Table, Want, Window};
use super::{bounds, to_polars};

/// A table of a trace.
pub(super) struct TableScan {
    source: Arc<Source>,
    table: Table,
    schema: SchemaRef,
    /// What was read of it for a query that is about to be run.
    ready: Mutex<Option<(Want, DataFrame)>>,
}

impl TableScan {
    /// A frame of it.
    pub(super) fn frame(source: &Arc<Source>, table: Table) -> PolarsResult<LazyFrame> {
        let schema = Arc::new(table.schema());
        let scan = Self { source: Arc::clone(source), table, schema: Arc::clone(&schema), ready: Mutex::default() };
        let args = ScanArgsAnonymous { schema: Some(schema), name: "SIMPLETRACE", ..ScanArgsAnonymous::default() };
        LazyFrame::anonymous_scan(Arc::new(scan), args)
    }

    fn want(&self, columns: Option<&[PlSmallStr]>, predicate: Option<&Expr>, rows: Option<usize>) -> Want {
        let asked = |name: &PlSmallStr| {
            columns.is_none_or(|columns| columns.contains(name))
                || predicate.is_some_and(|predicate| expr_to_leaf_column_names_iter(predicate).any(|own| own == *name))
        };
        let window = match self.table {
            Table::Event { .. } | Table::Events => predicate.map_or(Window::ALL, bounds::of),
            Table::Pairs(_) | Table::Gaps => Window::ALL,
        };
        Want {
            table: self.table.clone(),
            columns: self.schema.iter_names().filter(|name| asked(name)).cloned().collect(),
            window,
            rows: rows.filter(|_| predicate.is_none()),
        }
    }

    /// What was read already, if it is enough.
    fn ready(&self, want: &Want) -> Option<DataFrame> {
        let ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        let (has, frame) = ready.as_ref()?;
        let is_enough = want.columns.iter().all(|name| has.columns.contains(name))
            && has.window.has(want.window)
            && has.rows.is_none_or(|rows| want.rows.is_some_and(|wanted| wanted <= rows));
        is_enough.then(|| frame.clone())
    }

    fn set_ready(&self, ready: Option<(Want, DataFrame)>) {
        *self.ready.lock().unwrap_or_else(PoisonError::into_inner) = ready;
    }
}

impl AnonymousScan for TableScan {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn allows_projection_pushdown(&self) -> bool {
        true
    }

    fn allows_predicate_pushdown(&self) -> bool {
        true
    }

    fn scan(&self, args: AnonymousScanArgs) -> PolarsResult<DataFrame> {
        let AnonymousScanArgs { n_rows, with_columns, predicate, .. } = args;
        let want = self.want(with_columns.as_deref(), predicate.as_ref(), n_rows);
        let mut frame = match self.ready(&want) {
            Some(frame) => frame,
            None => {
                let (mut frames, trace, oddities) = self.source.read(vec![want]).map_err(to_polars)?;
                say(&trace, oddities);
                frames.remove(0)
            }
        };
        if let Some(rows) = n_rows {
            frame = frame.head(Some(rows));
        }
        if let Some(predicate) = predicate {
            frame = frame.lazy().filter(predicate).collect()?;
        }
        match with_columns {
            Some(columns) if columns.is_empty() => DataFrame::new(frame.height(), Vec::new()),
            Some(columns) => frame.select(columns.iter().cloned()),
            None => Ok(frame),
        }
    }
}

/// The tables that a query reads, ready to be read once for all.
pub(super) struct Plan {
    /// Each with what is wanted of it, by all that read it.
    scans: Vec<(Arc<dyn AnonymousScan>, Want)>,
}

impl Plan {
    /// Of what polars makes of a query.
    ///
    /// # Errors
    ///
    /// Those of polars.
    pub(super) fn of(query: &LazyFrame) -> PolarsResult<Self> {
        let plan = query.clone().to_alp_optimized()?;
        let mut scans: Vec<(Arc<dyn AnonymousScan>, Want)> = Vec::new();
        for (_, node) in plan.lp_arena.iter(plan.lp_top) {
            let IR::Scan { scan_type, unified_scan_args, predicate, .. } = node else { continue };
            let FileScanIR::Anonymous { function, .. } = &**scan_type else { continue };
            let Some(scan) = function.as_any().downcast_ref::<TableScan>() else { continue };
            let predicate = predicate.as_ref().map(|predicate| predicate.to_expr(&plan.expr_arena));
            let rows = unified_scan_args.pre_slice.as_ref().map(|slice| slice.len());
            let want = scan.want(unified_scan_args.projection.as_deref(), predicate.as_ref(), rows);
            match scans.iter_mut().find(|(other, _)| Arc::ptr_eq(other, function)) {
                Some((_, all)) => scan.widen(all, &want),
                None => scans.push((Arc::clone(function), want)),
            }
        }
        Ok(Self { scans })
    }

    /// Whatever tables are of.
    pub(super) fn sources(&self) -> Vec<Arc<Source>> {
        let mut sources: Vec<Arc<Source>> = Vec::new();
        for (scan, _) in self.scans() {
            if !sources.iter().any(|source| Arc::ptr_eq(source, &scan.source)) {
                sources.push(Arc::clone(&scan.source));
            }
        }
        sources
    }

    /// What has to be read of a source.
    pub(super) fn wants(&self, source: &Arc<Source>) -> Vec<Want> {
        self.of_source(source).map(|(_, want)| want.clone()).collect()
    }

    /// Hands over what was [wanted](Self::wants).
    pub(super) fn hand_over(&self, source: &Arc<Source>, frames: Vec<DataFrame>) {
        for ((scan, want), frame) in self.of_source(source).zip(frames) {
            scan.set_ready(Some((want.clone(), frame)));
        }
    }

    fn of_source<'a>(&'a self, source: &'a Arc<Source>) -> impl Iterator<Item = (&'a TableScan, &'a Want)> {
        self.scans().filter(|(scan, _)| Arc::ptr_eq(&scan.source, source))
    }

    fn scans(&self) -> impl Iterator<Item = (&TableScan, &Want)> {
        self.scans.iter().filter_map(|(scan, want)| Some((scan.as_any().downcast_ref::<TableScan>()?, want)))
    }
}

impl Drop for Plan {
    /// What was read goes with the query.
    fn drop(&mut self) {
        self.scans().for_each(|(scan, _)| scan.set_ready(None));
    }
}

impl TableScan {
    /// Takes in what another reader of the table wants.
    fn widen(&self, all: &mut Want, other: &Want) {
        let has = |name: &&PlSmallStr| all.columns.contains(name) || other.columns.contains(name);
        all.columns = self.schema.iter_names().filter(has).cloned().collect();
        all.window = Window {
            from_ns: all.window.from_ns.min(other.window.from_ns),
            to_ns: all.window.to_ns.max(other.window.to_ns),
        };
        all.rows = all.rows.zip(other.rows).map(|(one, other)| one.max(other));
    }
}
