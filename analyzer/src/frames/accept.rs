//! Which queries are run: those that polars understands, and answers as SQL has it.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

use anyhow::{Result, bail};
use sqlparser::ast::{
    BinaryOperator, Distinct, DuplicateTreatment, Expr, Function, FunctionArguments, GroupByExpr, JoinConstraint,
    JoinOperator, NamedWindowDefinition, NamedWindowExpr, OrderByKind, Query, Select, SetExpr, Statement, TableFactor,
    TableWithJoins, Value, Visit, Visitor, WindowSpec, WindowType,
};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::{Parser, ParserOptions};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use super::rewrite::rewrite;

/// Words, numbers and signs of a query. With more, taking it in could go too deep, before it can be told how deep.
const MAX_TOKENS: usize = 20_000;
/// How deep terms may be in terms, by [`weight`]: polars works some of them out on threads with stacks of 2 MiB.
const MAX_DEPTH: usize = 256;
/// Queries in queries, parts of a `WITH` or a `UNION`, and joins, of which polars' plan is as deep, and its time goes with the square.
const MAX_PARTS: usize = 100;

/// Returns a query as polars takes it, and refuses what polars 0.55 would take for something else, and give a wrong answer without a word,
/// or what it ends the process at.
///
/// # Errors
///
/// What is refused, and what to write instead. What cannot be parsed is left to polars, which says why.
pub(super) fn check(sql: &str, is_table: impl Fn(&str) -> bool) -> Result<String> {
    let Ok(tokens) = Tokenizer::new(&GenericDialect, sql).tokenize_with_location() else { return Ok(sql.to_owned()) };
    if tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).nth(MAX_TOKENS).is_some() {
        bail!("the query has more than {MAX_TOKENS} words, numbers and signs");
    }
    let sql = with_points(sql, &tokens);
    // As polars parses.
    let options = ParserOptions { trailing_commas: true, ..ParserOptions::default() };
    let parser = Parser::new(&GenericDialect).with_options(options).try_with_sql(&sql);
    let Ok(mut statements) = parser.and_then(|mut parser| parser.parse_statements()) else { return Ok(sql) };
    for statement in &statements {
        if !matches!(statement, Statement::Query(_) | Statement::Explain { .. }) {
            bail!("a trace is only asked: a query begins with SELECT or WITH, or with EXPLAIN in front of these");
        }
        let mut refusal = Refusal { is_table: &is_table, depth: 0, parts: 0, windows: HashMap::new() };
        if let ControlFlow::Break(why) = statement.visit(&mut refusal) {
            bail!(why);
        }
    }
    if !rewrite(&mut statements) {
        return Ok(sql);
    }
    Ok(statements.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

/// Puts a decimal point into numbers such as 1e9, which polars takes for numbers only then.
fn with_points(sql: &str, tokens: &[TokenWithSpan]) -> String {
    let mut lines: Vec<Vec<char>> = sql.split('\n').map(|line| line.chars().collect()).collect();
    // From behind, as all that follows moves.
    for token in tokens.iter().rev() {
        let Token::Number(number, _) = &token.token else { continue };
        let Some(at) = number.find(['e', 'E']).filter(|_| !number.contains('.')) else { continue };
        // Both count from 1, in characters.
        let start = token.span.start;
        let place = (start.line as usize - 1, start.column as usize - 1 + at);
        if let Some(line) = lines.get_mut(place.0)
            && place.1 <= line.len()
        {
            line.splice(place.1..place.1, ".0".chars());
        }
    }
    lines.into_iter().map(String::from_iter).collect::<Vec<_>>().join("\n")
}

struct Refusal<'a> {
    is_table: &'a dyn Fn(&str) -> bool,
    /// Of the term that is looked at.
    depth: usize,
    /// Up to there.
    parts: usize,
    /// Those with a name.
    windows: HashMap<String, NamedWindowExpr>,
}

impl Refusal<'_> {
    fn count_parts(&mut self, parts: usize) -> ControlFlow<String> {
        self.parts += parts;
        if self.parts <= MAX_PARTS {
            return ControlFlow::Continue(());
        }
        ControlFlow::Break(format!(
            "the query is made of more than {MAX_PARTS} queries, joins, and parts of WITH and UNION; ask for less at once"
        ))
    }

    /// Refuses aggregates and windows that polars works out of other rows than those that SQL has for them.
    fn check_function(&self, function: &Function) -> ControlFlow<String> {
        let name = &*function_name(function);
        let refused = |why: &str| ControlFlow::Break(format!("{function}: {why}"));
        if is_aggregate(name) && has_aggregate(&function.args) {
            return refused(
                "an aggregate of aggregates; work out the inner ones in a part of WITH, with GROUP BY, and ask that",
            );
        }
        let Some(over) = &function.over else {
            let needs_window = ["row_number", "rank", "dense_rank", "lag", "lead", "first_value", "last_value"];
            return if needs_window.contains(&name) {
                refused("it wants OVER (ORDER BY ...)")
            } else {
                ControlFlow::Continue(())
            };
        };
        let Some(window) = self.window(over) else { return ControlFlow::Continue(()) };
        let is_distinct = matches!(&function.args, FunctionArguments::List(list)
            if list.duplicate_treatment == Some(DuplicateTreatment::Distinct));
        if ["quantile_cont", "quantile_disc", "corr", "covar", "covar_pop", "covar_samp"].contains(&name)
            || (is_distinct && window.partition_by.is_empty())
        {
            return refused(
                "polars takes that of all rows and not of the window's; work it out with GROUP BY, and join that",
            );
        }
        if window.order_by.iter().any(|by| by.options.nulls_first.is_some()) {
            return refused("in windows nulls come first, wherever they are asked for; order by x IS NULL before x");
        }
        let runs = ["sum", "min", "max", "count"].contains(&name);
        if is_aggregate(name) && !runs && !window.order_by.is_empty() {
            return refused(
                "with ORDER BY polars takes it of the whole window, not up to the row; only sum, min, max and count run along",
            );
        }
        ControlFlow::Continue(())
    }

    fn window<'w>(&'w self, over: &'w WindowType) -> Option<&'w WindowSpec> {
        let mut name = match over {
            WindowType::WindowSpec(window) => return Some(window),
            WindowType::NamedWindow(name) => name,
        };
        // As many steps as there are names, so that a circle ends.
        for _ in 0..=self.windows.len() {
            match self.windows.get(&name.value)? {
                NamedWindowExpr::WindowSpec(window) => return Some(window),
                NamedWindowExpr::NamedWindow(other) => name = other,
            }
        }
        None
    }
}

/// What a function is called, in lower case.
pub(super) fn function_name(function: &Function) -> String {
    function.name.to_string().to_ascii_lowercase()
}

fn is_aggregate(name: &str) -> bool {
    const NAMES: [&str; 24] = [
        "avg",
        "corr",
        "count",
        "covar",
        "covar_pop",
        "covar_samp",
        "first",
        "last",
        "max",
        "median",
        "min",
        "mode",
        "quantile_cont",
        "quantile_disc",
        "stddev",
        "stddev_pop",
        "stddev_samp",
        "stdev",
        "stdev_samp",
        "sum",
        "var",
        "var_pop",
        "var_samp",
        "variance",
    ];
    NAMES.contains(&name)
}

/// Whether there is an aggregate in a term that is not one over a window.
fn has_aggregate(term: &impl Visit) -> bool {
    /// Queries within have rows of their own.
    struct Found {
        queries: usize,
    }

    impl Visitor for Found {
        type Break = ();

        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.queries += 1;
            ControlFlow::Continue(())
        }

        fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.queries -= 1;
            ControlFlow::Continue(())
        }

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match expr {
                Expr::Function(function)
                    if self.queries == 0 && function.over.is_none() && is_aggregate(&function_name(function)) =>
                {
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            }
        }
    }

    term.visit(&mut Found { queries: 0 }).is_break()
}

impl Visitor for Refusal<'_> {
    type Break = String;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<String> {
        for part in query.with.iter().flat_map(|with| &with.cte_tables) {
            let name = &part.alias.name.value;
            if (self.is_table)(name) {
                return ControlFlow::Break(format!(
                    "a part of the query is called {name}, as a table of the trace is, which would be taken for it; give it another name"
                ));
            }
        }
        if let Some(OrderByKind::Expressions(by)) = query.order_by.as_ref().map(|order_by| &order_by.kind) {
            by.iter().try_for_each(|by| check_place("ORDER BY", &by.expr))?;
        }
        self.count_parts(1 + unions(&query.body))
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<String> {
        if let GroupByExpr::Expressions(by, _) = &select.group_by {
            by.iter().try_for_each(|by| check_place("GROUP BY", by))?;
        }
        if let Some(condition) = select.selection.as_ref().filter(|condition| has_aggregate(*condition)) {
            return ControlFlow::Break(format!("WHERE {condition}: what groups come to is asked for in HAVING"));
        }
        let windows = select.named_window.iter();
        self.windows.extend(windows.map(|NamedWindowDefinition(name, window)| (name.value.clone(), window.clone())));
        if let Some(Distinct::On(on)) = &select.distinct {
            on.iter().try_for_each(|on| check_place("DISTINCT ON", on))?;
        }
        self.count_parts(select.from.iter().map(|from| from.joins.len()).sum())?;
        select.from.iter().try_for_each(check_joins)
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<String> {
        match factor {
            TableFactor::NestedJoin { table_with_joins, .. } => {
                self.count_parts(table_with_joins.joins.len())?;
                check_joins(table_with_joins)
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<String> {
        self.depth += weight(expr);
        if self.depth > MAX_DEPTH {
            return ControlFlow::Break(
                "the query has terms that are too deep in each other, or too long a row of them: shorten what is joined by operators, \
                 or take parts of it into queries of their own; many values are compared at once with x IN (1, 2, ...)"
                    .to_owned(),
            );
        }
        match expr {
            Expr::Interval(interval) => ControlFlow::Break(format!(
                "{interval}: no column is a date, so there is nothing to do with an interval; times are numbers of ns, and 1 s is 1000000000"
            )),
            Expr::Function(function) => {
                let is_empty = match &function.args {
                    FunctionArguments::List(list) => list.args.is_empty(),
                    _ => true,
                };
                let name = function.name.to_string();
                if is_empty && ["greatest", "least"].iter().any(|other| name.eq_ignore_ascii_case(other)) {
                    return ControlFlow::Break(format!("{expr}: there is nothing to choose from"));
                }
                self.check_function(function)
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<String> {
        self.depth -= weight(expr);
        ControlFlow::Continue(())
    }
}

/// How deep it goes into a term, before it goes into the parts of that.
fn weight(expr: &Expr) -> usize {
    match expr {
        // Each is in the one before.
        Expr::Case { conditions, .. } => conditions.len(),
        Expr::BinaryOp { op: BinaryOperator::StringConcat, .. } | Expr::Function(_) => 5,
        // Polars works out twice what is between.
        Expr::Between { .. } => 32,
        _ => 1,
    }
}

/// How many queries are put together to one, but for the first.
fn unions(body: &SetExpr) -> usize {
    let mut count = 0;
    let mut rest = vec![body];
    while let Some(body) = rest.pop() {
        if let SetExpr::SetOperation { left, right, .. } = body {
            count += 1;
            rest.extend([&**left, &**right]);
        }
    }
    count
}

/// Refuses a place among the results that there is not: it begins with 1.
fn check_place(of: &str, by: &Expr) -> ControlFlow<String> {
    match by {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) if number.bytes().all(|digit| digit == b'0') => {
                ControlFlow::Break(format!("{of} {number}: the first result is number 1"))
            }
            _ => ControlFlow::Continue(()),
        },
        _ => ControlFlow::Continue(()),
    }
}

/// Polars makes an inner join of any join with a condition that is more than columns that equal columns, and takes a condition that does not
/// have one table on each side for one on other columns.
fn check_joins(from: &TableWithJoins) -> ControlFlow<String> {
    use JoinOperator::{
        Anti, FullOuter, Inner, Join, Left, LeftAnti, LeftOuter, LeftSemi, Right, RightAnti, RightOuter, RightSemi,
        Semi,
    };

    for join in &from.joins {
        let (constraint, is_inner) = match &join.join_operator {
            Join(constraint) | Inner(constraint) => (constraint, true),
            Left(constraint)
            | LeftOuter(constraint)
            | Right(constraint)
            | RightOuter(constraint)
            | FullOuter(constraint)
            | Semi(constraint)
            | LeftSemi(constraint)
            | RightSemi(constraint)
            | Anti(constraint)
            | LeftAnti(constraint)
            | RightAnti(constraint) => (constraint, false),
            _ => continue,
        };
        let JoinConstraint::On(condition) = constraint else { continue };
        if !is_inner && !are_equal_columns(condition) {
            return ControlFlow::Break(format!(
                "ON {condition}: outer, semi and anti joins are for columns that equal columns, joined by AND; put other \
                 conditions into a query of its own, such as JOIN (SELECT ... WHERE ...) AS x ON a.k = x.k"
            ));
        }
        check_condition(condition, name(&join.relation), is_inner)?;
    }
    ControlFlow::Continue(())
}

/// Refuses comparisons that polars would make with other columns; `joined` is the table that a join adds.
fn check_condition(condition: &Expr, joined: Option<&str>, is_inner: bool) -> ControlFlow<String> {
    let refused = |why: &str| {
        let instead = if is_inner { "write it into WHERE" } else { "put it into a query of its own" };
        ControlFlow::Break(format!("ON {condition}: {why}; {instead}"))
    };
    match condition {
        Expr::Nested(condition) => check_condition(condition, joined, is_inner),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            check_condition(left, joined, is_inner)?;
            check_condition(right, joined, is_inner)
        }
        Expr::BinaryOp { left, op, right } if is_comparison(op) => {
            let [left, right] = [left, right].map(|side| Tables::of(side));
            if left.names.len() > 1 || right.names.len() > 1 {
                return refused("each side of a comparison is of one table");
            }
            if *op != BinaryOperator::Eq {
                return ControlFlow::Continue(());
            }
            if left.is_constant() || right.is_constant() {
                return refused("a join is on columns of both tables");
            }
            let is_joined = |side: &Tables| side.names.first().map(|name| Some(name.as_str()) == joined);
            match (is_joined(&left), is_joined(&right)) {
                (Some(left), Some(right)) if left == right => refused("a join is on columns of both tables"),
                _ => ControlFlow::Continue(()),
            }
        }
        _ => refused("a join is on comparisons, joined by AND"),
    }
}

pub(super) const fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

/// What a table goes by in a query.
fn name(factor: &TableFactor) -> Option<&str> {
    match factor {
        TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
            Some(&alias.name.value)
        }
        TableFactor::Table { name, .. } => Some(&name.0.last()?.as_ident()?.value),
        _ => None,
    }
}

/// The tables that a term has columns of.
#[derive(Default)]
struct Tables {
    names: BTreeSet<String>,
    /// Columns without the name of a table.
    has_others: bool,
}

impl Tables {
    fn of(expr: &Expr) -> Self {
        let mut tables = Self::default();
        // It never breaks off.
        let _ = expr.visit(&mut tables);
        tables
    }

    fn is_constant(&self) -> bool {
        self.names.is_empty() && !self.has_others
    }
}

impl Visitor for Tables {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(_) => self.has_others = true,
            Expr::CompoundIdentifier(parts) => self.names.extend(parts.first().map(|table| table.value.clone())),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn are_equal_columns(condition: &Expr) -> bool {
    let is_column = |expr: &Expr| matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
    match condition {
        Expr::Nested(condition) => are_equal_columns(condition),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => are_equal_columns(left) && are_equal_columns(right),
        Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => is_column(left) && is_column(right),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::sql::STACK_BYTES;

    #[test]
    fn only_what_polars_answers_as_sql_has_it_is_run() {
        let refused = |sql: &str| {
            stacker::grow(STACK_BYTES, || {
                check(sql, |name| ["a", "b"].contains(&name)).err().map(|error| error.to_string())
            })
        };
        for sql in [
            "select * from a left join b on a.k = b.k and (a.m = b.m)",
            "select * from a join b on a.k = b.k and a.t < b.t",
            "select * from a join b on k = b.k and (b.t + 5 > a.t and b.t > 5) join c on c.k = b.k",
            "select 1 as one order by 1",
            "select count(*) from a group by 1 order by 10 limit 0",
            "select * from a full join b using (k)",
            "with x as (select 1 as k) select * from x cross join a",
            "explain select 1",
            "values (1)",
            "no sql at all",
            "select 1 as one, from a",
            "",
            &format!("select {} as x", vec!["k"; 250].join(" + ")),
            &format!("select {} as x", vec!["k"; 50].join(" || ")),
            &format!("select k from a where k in ({})", vec!["1"; 9900].join(", ")),
            &vec!["select 1 as x"; 50].join(" union all "),
        ] {
            assert_eq!(refused(sql), None, "{sql}");
        }
        for (sql, why) in [
            ("select * from a left join b on a.k = b.k and b.t < a.t", "ON a.k = b.k AND b.t < a.t: outer"),
            ("select * from a left anti join b on a.k = b.k and b.r > 0", "ON a.k = b.k AND b.r > 0: outer"),
            ("select 1 from (select * from a full join b on a.k < b.k) x", "ON a.k < b.k: outer"),
            ("select 1 from a union select 1 from (a right join b on a.k = 1)", "ON a.k = 1: outer"),
            (
                "select 1 from a right join b on a.k = a.m",
                "ON a.k = a.m: a join is on columns of both tables; put it into a query",
            ),
            (
                "select 1 from a join b on a.k = b.k and b.r = 5",
                "ON b.r = 5: a join is on columns of both tables; write it",
            ),
            ("select 1 from a join b on a.k = b.k join c on a.k = b.k", "ON a.k = b.k: a join is on columns of both"),
            (
                "select 1 from a join b on b.t - a.t < 5",
                "ON b.t - a.t < 5: each side of a comparison is of one table; write",
            ),
            ("select 1 from a join b on b.t between a.t and 5", "ON b.t BETWEEN a.t AND 5: a join is on comparisons"),
            ("select 1 from a join b on a.t < b.t or a.k = b.k", "ON a.t < b.t OR a.k = b.k: a join is on comparisons"),
            ("select k from a order by k, 0", "ORDER BY 0: the first result is number 1"),
            ("select k from a union select 1 from (select m from b group by 00) x", "GROUP BY 00: the first"),
            ("select distinct on (0) k from a", "DISTINCT ON 0: the first"),
            ("select t + interval '1 foo' as x from a", "INTERVAL '1 foo': no column is a date"),
            ("select 1 as x from a where Greatest() > 5", "Greatest(): there is nothing to choose from"),
            ("select least() as x", "least(): there is nothing to choose from"),
            (&format!("select {} as x", vec!["k"; 300].join(" + ")), "the query has terms that are too deep"),
            (&format!("select {} as x", vec!["k"; 60].join(" || ")), "the query has terms that are too deep"),
            (&format!("select case {} end as x", vec!["when k = 1 then 2"; 300].join(" ")), "the query has terms"),
            (&format!("select k{} as x", " between 1 and 2".repeat(9)), "the query has terms that are too deep"),
            (&vec!["select 1 as x"; 101].join(" union all "), "the query is made of more than 100 queries"),
            (&format!("select 1 from a {}", "join b on a.k = b.k ".repeat(100)), "the query is made of more than 100"),
            (
                &format!("select k from a where k in ({})", vec!["1"; 10_000].join(", ")),
                "the query has more than 20000 words",
            ),
            ("with a as (select 7 as k) select * from a", "a part of the query is called a,"),
            ("create table x as select 1", "a trace is only asked"),
            ("select 1; delete from a", "a trace is only asked"),
        ] {
            assert!(refused(sql).is_some_and(|found| found.starts_with(why)), "{sql}: {:?}", refused(sql));
        }
    }

    #[test]
    fn numbers_with_an_exponent_get_a_point() {
        for (sql, expected) in [
            (
                "select 1e9 as x, 15E-1 as \"1e9\", '1e9' as y, 1.5e3 as z, e1e9 as w",
                "select 1.0e9 as x, 15.0E-1 as \"1e9\", '1e9' as y, 1.5e3 as z, e1e9 as w",
            ),
            (
                "select 'größe' as x,\n -- 1e9\n\t2e3 as y, 'ü', 1e1",
                "select 'größe' as x,\n -- 1e9\n\t2.0e3 as y, 'ü', 1.0e1",
            ),
            ("select 1 as x", "select 1 as x"),
        ] {
            assert_eq!(check(sql, |_| false).unwrap(), expected);
        }
    }
}
