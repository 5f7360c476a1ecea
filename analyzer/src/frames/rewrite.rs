//! What polars 0.55 answers otherwise than SQL has it, and how it is asked for instead.

use std::ops::ControlFlow;

use sqlparser::ast::{
    CastKind, DataType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Statement, UnaryOperator, Value,
    VisitMut, VisitorMut,
};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::Parser;

use super::accept::{function_name, is_comparison};

/// Functions whose results have 32 bits without a sign, so that 3 - 5 of them would be 4294967294.
const COUNTING: [&str; 10] = [
    "count",
    "length",
    "char_length",
    "character_length",
    "octet_length",
    "bit_length",
    "strpos",
    "row_number",
    "rank",
    "dense_rank",
];

/// Puts what polars answers rightly in the place of what it does not; tells whether there was anything.
pub(super) fn rewrite(statements: &mut Vec<Statement>) -> bool {
    let mut rewrite = Rewrite { has_changed: false };
    // It never breaks off.
    let _ = statements.visit(&mut rewrite);
    rewrite.has_changed
}

struct Rewrite {
    has_changed: bool,
}

impl VisitorMut for Rewrite {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let new = match expr {
            Expr::Function(function) if COUNTING.contains(&&*function_name(function)) => bigint(expr.clone()),
            Expr::Position { .. } => bigint(expr.clone()),
            // Polars leaves null what is neither.
            Expr::IsTrue(of) => coalesce(of, false),
            Expr::IsNotTrue(of) => not(coalesce(of, false)),
            Expr::IsFalse(of) => not(coalesce(of, true)),
            Expr::IsNotFalse(of) => coalesce(of, true),
            // Numbers without a sign would be read as numbers with one, and be null from 2^63 on.
            Expr::BinaryOp { left, op, right } if is_comparison(op) => {
                [left, right].into_iter().for_each(|side| self.has_changed |= type_negative(side));
                return ControlFlow::Continue(());
            }
            Expr::Between { low, high, .. } => {
                [low, high].into_iter().for_each(|side| self.has_changed |= type_negative(side));
                return ControlFlow::Continue(());
            }
            _ => return ControlFlow::Continue(()),
        };
        *expr = new;
        self.has_changed = true;
        ControlFlow::Continue(())
    }
}

fn bigint(expr: Expr) -> Expr {
    let data_type = DataType::BigInt(None);
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None }
}

fn not(expr: Expr) -> Expr {
    Expr::Nested(Box::new(Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(expr) }))
}

fn coalesce(of: &Expr, otherwise: bool) -> Expr {
    let template = format!("coalesce(x, {otherwise})");
    let parsed = Parser::new(&GenericDialect).try_with_sql(&template).and_then(|mut parser| parser.parse_expr());
    let mut call = parsed.expect("a constant text that is a call");
    if let Expr::Function(function) = &mut call
        && let FunctionArguments::List(list) = &mut function.args
    {
        list.args[0] = FunctionArg::Unnamed(FunctionArgExpr::Expr(of.clone()));
    }
    call
}

/// Gives a negative whole number a type; tells whether it is one.
fn type_negative(side: &mut Expr) -> bool {
    let mut inner = &*side;
    while let Expr::Nested(nested) = inner {
        inner = nested;
    }
    let is_negative = match inner {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match &**expr {
            Expr::Value(value) => {
                matches!(&value.value, Value::Number(number, _) if number.parse::<i64>().is_ok())
            }
            _ => false,
        },
        _ => false,
    };
    if is_negative {
        *side = bigint(side.clone());
    }
    is_negative
}
