//! Assertions, which become thresholds.

use plimsoll_document::ThresholdSpec;

use super::Importer;
use super::steps::{Operation, operations};
use super::tree::{Expression, Span};
use crate::amount::Ratio;
use crate::draft::text;

impl Importer<'_> {
    pub(super) fn assertion(&mut self, expression: &Expression) {
        let resolved = self.resolved(expression);
        let Some((name, links)) = resolved.chain() else {
            self.note(expression.span, "plans have no such threshold: it is left out");
            return;
        };
        let operations = operations(name, resolved.span, links);
        let names: Vec<&str> = operations.iter().map(|operation| operation.name.as_str()).collect();
        let conditions = self.conditions(&operations, &names);
        let Some(conditions) = conditions else {
            self.note(expression.span, "plans have no such threshold: it is left out");
            return;
        };
        let places = match name {
            "global" => vec![None],
            "forAll" => self.requests.iter().map(|made| Some(made.clone())).collect(),
            "details" => match self.details(&operations[0], expression.span) {
                Some(places) => places,
                None => return,
            },
            _ => {
                self.note(expression.span, "plans have no such threshold: it is left out");
                return;
            }
        };
        for place in &places {
            for that in &conditions {
                let mut threshold = ThresholdSpec::default();
                threshold.that = text(that.as_str());
                if let Some(made) = place {
                    threshold.scenario = text(made.scenario.as_str());
                    threshold.step = text(made.step.as_str());
                }
                if !self.thresholds.contains(&threshold) {
                    self.thresholds.push(threshold);
                }
            }
        }
    }

    /// The steps that `details("group", "request")` names.
    fn details(&mut self, operation: &Operation, span: Span) -> Option<Vec<Option<super::Made>>> {
        let given = operation.first().to_vec();
        let mut path = Vec::new();
        for part in &given {
            path.push(self.text_of(part)?);
        }
        // Older forms have one text: `details("group" / "request")` is a path, too.
        let made: Vec<Option<super::Made>> = self
            .requests
            .iter()
            .filter(|made| made.path == path || made.path.starts_with(&path) && !path.is_empty())
            .map(|made| Some(made.clone()))
            .collect();
        if made.is_empty() {
            self.note(span, "no request has this name: it is left out");
            return None;
        }
        if made.len() > 1 {
            self.note(span, "several steps have this name or are in this group: each has this threshold");
        }
        Some(made)
    }

    /// The conditions of an assertion.
    fn conditions(&mut self, operations: &[Operation], names: &[&str]) -> Option<Vec<String>> {
        let (last, before) = operations.split_last()?;
        let mut numbers = Vec::new();
        for one in last.first().to_vec() {
            numbers.push(self.number(&one)?);
        }
        let comparisons: Vec<(&str, Ratio)> = match (last.name.as_str(), numbers.as_slice()) {
            ("lt" | "lessThan", [limit]) => vec![("<", *limit)],
            ("lte" | "lessThanOrEqual", [limit]) => vec![("<=", *limit)],
            ("gt" | "greaterThan", [limit]) => vec![(">", *limit)],
            ("gte" | "greaterThanOrEqual", [limit]) => vec![(">=", *limit)],
            ("between", [low, high, ..]) => vec![(">=", *low), ("<=", *high)],
            // Nothing is below none.
            ("is", [limit]) if limit.is_zero() => vec![("<=", *limit)],
            ("is", [limit]) if *limit == Ratio::whole(100) => vec![(">=", *limit)],
            _ => return None,
        };
        let (figure, unit) = match names {
            [_, "responseTime", figure, _] => {
                let figure = match *figure {
                    "min" | "max" | "mean" => (*figure).to_owned(),
                    "percentile1" => "p50".to_owned(),
                    "percentile2" => "p75".to_owned(),
                    "percentile3" => "p95".to_owned(),
                    "percentile4" => "p99".to_owned(),
                    "percentile" => {
                        let given = before.last()?.first().first().cloned()?;
                        format!("p{}", self.number(&given)?)
                    }
                    _ => return None,
                };
                // Of all requests, OK and KO.
                (format!("{figure}{{all}}"), "ms")
            }
            [_, "failedRequests", "percent", _] => ("error_rate".to_owned(), "%"),
            [_, "failedRequests", "count", _] => ("errors".to_owned(), ""),
            [_, "successfulRequests", "percent", _] => {
                let turned = comparisons.iter().map(|(operator, limit)| {
                    let rest = rest_of(limit)?;
                    let operator = match *operator {
                        ">" => "<",
                        ">=" => "<=",
                        "<" => ">",
                        _ => ">=",
                    };
                    Some(format!("error_rate{operator}{rest}%"))
                });
                return turned.collect();
            }
            [_, "requestsPerSec", _] => ("rate".to_owned(), ""),
            _ => return None,
        };
        comparisons.iter().map(|(operator, limit)| Some(format!("{figure}{operator}{limit}{unit}"))).collect()
    }
}

/// The rest of a percentage up to a hundred.
fn rest_of(percent: &Ratio) -> Option<Ratio> {
    let thousandths = percent.times_whole(1_000)?;
    let rest = 100_000_u128.checked_sub(thousandths.ceil())?;
    if thousandths.is_whole() { Ratio::new(rest, 1_000) } else { None }
}
