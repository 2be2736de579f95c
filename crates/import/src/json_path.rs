//! JSONPath (RFC 9535) as plans take it.

use jsonpath_rust::parser::model::{
    Comparable, Comparison, Filter, FilterAtom, FnArg, Literal, Segment, Selector, Test, TestFunction,
};
use jsonpath_rust::parser::parse_json_path;

use crate::flow::check::is_regex;

/// Returns `true` if plans take the path: patterns in its filters are texts, and regular expressions.
pub(crate) fn is_json_path(text: &str) -> bool {
    parse_json_path(text).is_ok_and(|query| query.segments.iter().all(segment))
}

fn segment(segment: &Segment) -> bool {
    match segment {
        Segment::Descendant(inner) => self::segment(inner),
        Segment::Selector(one) => selector(one),
        Segment::Selectors(all) => all.iter().all(selector),
    }
}

fn selector(selector: &Selector) -> bool {
    match selector {
        Selector::Filter(all) => filter(all),
        _ => true,
    }
}

fn filter(filter: &Filter) -> bool {
    match filter {
        Filter::Or(parts) | Filter::And(parts) => parts.iter().all(self::filter),
        Filter::Atom(FilterAtom::Filter { expr, .. }) => self::filter(expr),
        Filter::Atom(FilterAtom::Test { expr, .. }) => test(expr),
        Filter::Atom(FilterAtom::Comparison(comparison)) => {
            let (Comparison::Eq(left, right)
            | Comparison::Ne(left, right)
            | Comparison::Gt(left, right)
            | Comparison::Gte(left, right)
            | Comparison::Lt(left, right)
            | Comparison::Lte(left, right)) = &**comparison;
            [left, right].into_iter().all(|side| match side {
                Comparable::Function(of) => function(of),
                Comparable::Literal(_) | Comparable::SingularQuery(_) => true,
            })
        }
    }
}

fn test(test: &Test) -> bool {
    match test {
        Test::RelQuery(segments) => segments.iter().all(segment),
        Test::AbsQuery(query) => query.segments.iter().all(segment),
        Test::Function(of) => function(of),
    }
}

fn function(function: &TestFunction) -> bool {
    match function {
        TestFunction::Length(of) => argument(of),
        TestFunction::Value(of) | TestFunction::Count(of) => argument(of),
        TestFunction::Custom(_, all) => all.iter().all(argument),
        TestFunction::Match(text, pattern) | TestFunction::Search(text, pattern) => {
            argument(text) && matches!(pattern, FnArg::Literal(Literal::String(pattern)) if is_regex(pattern))
        }
    }
}

fn argument(argument: &FnArg) -> bool {
    match argument {
        FnArg::Literal(_) => true,
        FnArg::Test(of) => test(of),
        FnArg::Filter(of) => filter(of),
    }
}
