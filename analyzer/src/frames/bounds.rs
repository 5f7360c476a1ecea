//! The times that a condition leaves, as far as it is a plain bound on `ts_ns`.

use polars::prelude::*;
use polars_plan::dsl::{BooleanFunction, FunctionExpr};
use polars_plan::plans::DynLiteralValue;

use super::table::Window;

/// Whatever a condition admits is within.
pub(super) fn of(condition: &Expr) -> Window {
    match condition {
        Expr::BinaryExpr { left, op: Operator::And | Operator::LogicalAnd, right } => {
            let (left, right) = (of(left), of(right));
            Window { from_ns: left.from_ns.max(right.from_ns), to_ns: left.to_ns.min(right.to_ns) }
        }
        Expr::BinaryExpr { left, op, right } if is_time(left) => number(right).map_or(Window::ALL, |at| side(*op, at)),
        Expr::BinaryExpr { left, op, right } if is_time(right) => {
            let op = match op {
                Operator::Lt => Operator::Gt,
                Operator::LtEq => Operator::GtEq,
                Operator::Gt => Operator::Lt,
                Operator::GtEq => Operator::LtEq,
                op => *op,
            };
            number(left).map_or(Window::ALL, |at| side(op, at))
        }
        Expr::Function { input, function: FunctionExpr::Boolean(BooleanFunction::IsBetween { .. }) } => {
            match &input[..] {
                [time, from, to] if is_time(time) => {
                    let [from, to] = [(from, Operator::GtEq), (to, Operator::LtEq)]
                        .map(|(at, op)| number(at).map_or(Window::ALL, |at| side(op, at)));
                    Window { from_ns: from.from_ns, to_ns: to.to_ns }
                }
                _ => Window::ALL,
            }
        }
        _ => Window::ALL,
    }
}

fn is_time(expr: &Expr) -> bool {
    matches!(expr, Expr::Column(name) if name == "ts_ns")
}

fn number(expr: &Expr) -> Option<i128> {
    match expr {
        Expr::Literal(LiteralValue::Dyn(DynLiteralValue::Int(number))) => Some(*number),
        Expr::Literal(LiteralValue::Scalar(scalar)) => match scalar.value() {
            AnyValue::UInt64(number) => Some((*number).into()),
            AnyValue::Int64(number) => Some((*number).into()),
            AnyValue::UInt32(number) => Some((*number).into()),
            AnyValue::Int32(number) => Some((*number).into()),
            _ => None,
        },
        _ => None,
    }
}

/// The times on one side of a number; where there are none, at least one is left.
fn side(op: Operator, at: i128) -> Window {
    let clamped = |at: i128| u64::try_from(at.max(0)).unwrap_or(u64::MAX);
    match op {
        Operator::Gt => Window { from_ns: clamped(at.saturating_add(1)), ..Window::ALL },
        Operator::GtEq => Window { from_ns: clamped(at), ..Window::ALL },
        Operator::Lt => Window { to_ns: clamped(at.saturating_sub(1)), ..Window::ALL },
        Operator::LtEq => Window { to_ns: clamped(at), ..Window::ALL },
        Operator::Eq => Window { from_ns: clamped(at), to_ns: clamped(at) },
        _ => Window::ALL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_bounds_are_found_and_whatever_else_leaves_all() {
        let time = || col("ts_ns");
        let all = u64::MAX;
        for (condition, from_ns, to_ns) in [
            (time().gt(lit(5)).and(time().lt_eq(lit(9_u64))), 6, 9),
            (lit(5).lt_eq(time()).and(col("ret").lt(lit(0))), 5, all),
            (lit(5).gt(time()), 0, 4),
            (time().eq(lit(7)), 7, 7),
            (time().lt(lit(-1)), 0, 0),
            (time().gt(lit(5)).or(time().lt(lit(2))), 0, all),
            (time().gt(col("other")), 0, all),
            ((time() - lit(1)).gt(lit(5)), 0, all),
            (time().gt(lit(5.5)), 0, all),
            (col("pid").gt(lit(5)), 0, all),
        ] {
            assert_eq!(of(&condition), Window { from_ns, to_ns }, "{condition:?}");
        }
    }
}
