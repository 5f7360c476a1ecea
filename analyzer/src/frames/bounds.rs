//! The times that a condition leaves, as far as it is a plain bound on `ts_ns`.

use polars::prelude::*;
use polars_plan::plans::{AExpr, DynLiteralValue, IRBooleanFunction, IRFunctionExpr};
use polars_plan::prelude::{Arena, Node};

use super::table::Window;

/// Whatever a condition admits is within.
pub(super) fn of(condition: Node, exprs: &Arena<AExpr>) -> Window {
    match exprs.get(condition) {
        AExpr::BinaryExpr { left, op: Operator::And | Operator::LogicalAnd, right } => {
            of(*left, exprs).and(of(*right, exprs))
        }
        AExpr::BinaryExpr { left, op, right } if is_time(*left, exprs) => side(*op, number(*right, exprs)),
        AExpr::BinaryExpr { left, op, right } if is_time(*right, exprs) => {
            let op = match op {
                Operator::Lt => Operator::Gt,
                Operator::LtEq => Operator::GtEq,
                Operator::Gt => Operator::Lt,
                Operator::GtEq => Operator::LtEq,
                op => *op,
            };
            side(op, number(*left, exprs))
        }
        AExpr::Function { input, function: IRFunctionExpr::Boolean(IRBooleanFunction::IsBetween { .. }), .. } => {
            match &input[..] {
                [time, from, to] if is_time(time.node(), exprs) => {
                    side(Operator::GtEq, number(from.node(), exprs)).and(side(Operator::LtEq, number(to.node(), exprs)))
                }
                _ => Window::ALL,
            }
        }
        _ => Window::ALL,
    }
}

fn is_time(expr: Node, exprs: &Arena<AExpr>) -> bool {
    matches!(exprs.get(expr), AExpr::Column(name) if name == "ts_ns")
}

fn number(expr: Node, exprs: &Arena<AExpr>) -> Option<i128> {
    match exprs.get(expr) {
        AExpr::Literal(LiteralValue::Dyn(DynLiteralValue::Int(number))) => Some(*number),
        AExpr::Literal(LiteralValue::Scalar(scalar)) => match scalar.value() {
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
fn side(op: Operator, at: Option<i128>) -> Window {
    let Some(at) = at else { return Window::ALL };
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
