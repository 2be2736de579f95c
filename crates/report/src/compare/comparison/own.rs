//! Metrics of the plan's own in both groups: shown, and not judged.

use plimsoll_metrics::SeriesKind;

use super::judging::{change, median};
use super::{ChangeResult, Group, MetricResult, Question};
use crate::contract::metric::OwnMetric;

/// Reason why their changes are not judged.
const NO_DIRECTION: &str = "nothing says which way it should go: judge it by a threshold";

/// The metrics that all runs have, each by one figure.
pub(super) fn metrics(a: &Group, b: &Group, question: &Question) -> Vec<MetricResult> {
    let Some(first) = a.members.first() else { return Vec::new() };
    let of = |group: &Group, metric: &OwnMetric| -> Option<Vec<Option<f64>>> {
        let members = group.members.iter();
        members
            .map(|member| member.result.metrics.iter().find(|one| is_same(one, metric)).map(value))
            .collect()
    };
    let compared = first.result.metrics.iter().filter_map(|metric| {
        let (a, b) = (of(a, metric)?, of(b, metric)?);
        Some(compared(metric, a, b, question.confidence))
    });
    compared.collect()
}

/// The metrics of A and of B in one run of two plans, and `true` if there are others, which belong to both.
pub(super) fn of_sides(metrics: &[OwnMetric], confidence: f64) -> (Vec<MetricResult>, bool) {
    let of_a = metrics.iter().filter_map(|metric| Some((metric.name.strip_prefix("A.")?, metric)));
    let pairs = of_a.filter_map(|(name, a)| {
        let b = metrics.iter().find(|b| b.name.strip_prefix("B.") == Some(name) && b.kind == a.kind)?;
        let named = OwnMetric { name: name.to_owned(), ..a.clone() };
        Some(compared(&named, vec![value(a)], vec![value(b)], confidence))
    });
    let is_of_both = |metric: &OwnMetric| !metric.name.starts_with("A.") && !metric.name.starts_with("B.");
    (pairs.collect(), metrics.iter().any(is_of_both))
}

fn is_same(one: &OwnMetric, other: &OwnMetric) -> bool {
    (&one.name, one.kind) == (&other.name, other.kind)
}

/// The figure by which a metric is compared, and its unit.
const fn figure(kind: SeriesKind) -> (&'static str, &'static str) {
    match kind {
        SeriesKind::Trend => ("mean", "number"),
        SeriesKind::Gauge => ("last", "number"),
        SeriesKind::Counter => ("rate", "per_s"),
        SeriesKind::Rate => ("rate", "share"),
    }
}

fn value(metric: &OwnMetric) -> Option<f64> {
    match metric.kind {
        SeriesKind::Trend => metric.all.mean,
        SeriesKind::Gauge => metric.all.last,
        SeriesKind::Counter => metric.all.per_s,
        SeriesKind::Rate => metric.all.share,
    }
}

fn compared(metric: &OwnMetric, a: Vec<Option<f64>>, b: Vec<Option<f64>>, confidence: f64) -> MetricResult {
    let (name, unit) = figure(metric.kind);
    let is_absolute = metric.kind == SeriesKind::Rate;
    let all = |values: &[Option<f64>]| values.iter().copied().collect::<Option<Vec<f64>>>();
    let change = all(&a).zip(all(&b)).and_then(|(a, b)| change(&a, &b, is_absolute, confidence));
    MetricResult {
        metric: format!("metric({}).{name}", metric.name),
        unit: unit.to_owned(),
        better: "none".to_owned(),
        judged: false,
        a_median: median(&a),
        b_median: median(&b),
        a_at_least: false,
        b_at_least: false,
        a,
        b,
        change: change.map(|change| ChangeResult {
            kind: if is_absolute { "absolute" } else { "relative" }.to_owned(),
            estimate: change.shift.estimate,
            low: Some(change.shift.low).filter(|low| low.is_finite() && change.p.is_some()),
            high: Some(change.shift.high).filter(|high| high.is_finite() && change.p.is_some()),
            p: change.p,
            p_adjusted: None,
            method: change.method.to_owned(),
        }),
        verdict: None,
        reason: Some(NO_DIRECTION.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::Nanos;
    use plimsoll_metrics::{MetricRecord, MetricSpec};

    use super::*;

    fn metric(name: &str, kind: SeriesKind, values: &[&str]) -> MetricRecord {
        let mut metric = MetricRecord::new(MetricSpec { name: name.to_owned(), kind, unit: String::new() });
        values.iter().for_each(|value| metric.record(value.as_bytes(), std::iter::empty(), Nanos::ZERO));
        metric
    }

    #[test]
    fn metrics_of_two_plans_in_turn_stand_side_by_side() {
        let records = [
            metric("A.total", SeriesKind::Trend, &["1", "2", "3"]),
            metric("A.found", SeriesKind::Rate, &["true", "false"]),
            metric("A.only", SeriesKind::Counter, &["1"]),
            metric("B.total", SeriesKind::Trend, &["2", "3", "4"]),
            metric("B.found", SeriesKind::Rate, &["true", "true"]),
        ];
        let mut metrics = OwnMetric::all(&records, Nanos::from_secs(1));
        let (rows, together) = of_sides(&metrics, 0.95);
        // Changes are kept as logarithms.
        let rounded = |change: &ChangeResult| (change.estimate * 1e9).round() / 1e9;
        let of = |row: &MetricResult| {
            (row.metric.clone(), row.a_median, row.b_median, row.change.as_ref().map(rounded))
        };
        let shown: Vec<_> = rows.iter().map(of).collect();
        let expected = [
            ("metric(total).mean".to_owned(), Some(2.0), Some(3.0), Some(0.5)),
            ("metric(found).rate".to_owned(), Some(0.5), Some(1.0), Some(0.5)),
        ];
        assert_eq!((shown.as_slice(), together), (&expected[..], false));
        assert!(rows.iter().all(|row| !row.judged && row.verdict.is_none()));
        // Of one plan whose scenarios are A and B nothing tells them apart.
        metrics.extend(OwnMetric::all(&[metric("total", SeriesKind::Trend, &["1"])], Nanos::from_secs(1)));
        assert!(of_sides(&metrics, 0.95).1);
    }
}
