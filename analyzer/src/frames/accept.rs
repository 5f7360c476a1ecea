//! Which queries are run: those that polars understands, and answers as SQL has it.

use std::ops::ControlFlow;

use anyhow::{Result, bail};
use sqlparser::ast::{
    BinaryOperator, Expr, JoinConstraint, JoinOperator, Query, Select, Statement, TableFactor, TableWithJoins, Visit,
    Visitor,
};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::{Parser, ParserOptions};

/// Refuses what polars 0.55 would take for something else, and give a wrong answer without a word.
///
/// # Errors
///
/// What is refused, and what to write instead. What cannot be parsed is left to polars, which says why.
pub(super) fn check(sql: &str, is_table: impl Fn(&str) -> bool) -> Result<()> {
    // As polars parses.
    let options = ParserOptions { trailing_commas: true, ..ParserOptions::default() };
    let parser = Parser::new(&GenericDialect).with_options(options).try_with_sql(sql);
    let Ok(statements) = parser.and_then(|mut parser| parser.parse_statements()) else { return Ok(()) };
    for statement in &statements {
        if !matches!(statement, Statement::Query(_) | Statement::Explain { .. }) {
            bail!("a trace is only asked: a query begins with SELECT or WITH, or with EXPLAIN in front of these");
        }
        if let ControlFlow::Break(why) = statement.visit(&mut Refusal { is_table: &is_table }) {
            bail!(why);
        }
    }
    Ok(())
}

struct Refusal<'a> {
    is_table: &'a dyn Fn(&str) -> bool,
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
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<String> {
        select.from.iter().try_for_each(check_joins)
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<String> {
        match factor {
            TableFactor::NestedJoin { table_with_joins, .. } => check_joins(table_with_joins),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Polars makes an inner join of any join with a condition that is more than columns that equal columns.
fn check_joins(from: &TableWithJoins) -> ControlFlow<String> {
    use JoinOperator::{
        Anti, FullOuter, Left, LeftAnti, LeftOuter, LeftSemi, Right, RightAnti, RightOuter, RightSemi, Semi,
    };

    for join in &from.joins {
        let (Left(constraint)
        | LeftOuter(constraint)
        | Right(constraint)
        | RightOuter(constraint)
        | FullOuter(constraint)
        | Semi(constraint)
        | LeftSemi(constraint)
        | RightSemi(constraint)
        | Anti(constraint)
        | LeftAnti(constraint)
        | RightAnti(constraint)) = &join.join_operator
        else {
            continue;
        };
        if let JoinConstraint::On(condition) = constraint
            && !are_equal_columns(condition)
        {
            return ControlFlow::Break(format!(
                "ON {condition}: outer, semi and anti joins are for columns that equal columns, joined by AND; put other \
                 conditions into a query of its own, such as JOIN (SELECT ... WHERE ...) AS x ON a.k = x.k"
            ));
        }
    }
    ControlFlow::Continue(())
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

    #[test]
    fn only_what_polars_answers_as_sql_has_it_is_run() {
        let refused = |sql: &str| check(sql, |name| ["a", "b"].contains(&name)).err().map(|error| error.to_string());
        for sql in [
            "select * from a left join b on a.k = b.k and (a.m = b.m)",
            "select * from a join b on a.k = b.k and a.t < b.t",
            "select * from a full join b using (k)",
            "with x as (select 1 as k) select * from x cross join a",
            "explain select 1",
            "values (1)",
            "no sql at all",
            "select 1 as one, from a",
            "",
        ] {
            assert_eq!(refused(sql), None, "{sql}");
        }
        for (sql, why) in [
            ("select * from a left join b on a.k = b.k and b.t < a.t", "ON a.k = b.k AND b.t < a.t: outer"),
            ("select * from a left anti join b on a.k = b.k and b.r > 0", "ON a.k = b.k AND b.r > 0: outer"),
            ("select 1 from (select * from a full join b on a.k < b.k) x", "ON a.k < b.k: outer"),
            ("select 1 from a union select 1 from (a right join b on a.k = 1)", "ON a.k = 1: outer"),
            ("with a as (select 7 as k) select * from a", "a part of the query is called a,"),
            ("create table x as select 1", "a trace is only asked"),
            ("select 1; delete from a", "a trace is only asked"),
        ] {
            assert!(refused(sql).is_some_and(|found| found.starts_with(why)), "{sql}: {:?}", refused(sql));
        }
    }
}
