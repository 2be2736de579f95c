//! Metrics of the plan's own as families.
//!
//! Each metric has a family with all of its values and, where it has tags, one more with a point for each
//! combination of them: a sum over the points of a family counts no value twice.

use std::collections::BTreeSet;

use plimsoll_histogram::samples_needed;
use plimsoll_metrics::{Distribution, MetricRecord, Series, SeriesKind};

use super::{Family, Labels, Points, Unit};
use crate::totals::Totals;

/// Percentiles of trends that are told.
const PERCENTILES: [f64; 5] = [50.0, 90.0, 95.0, 99.0, 99.9];

/// The percentiles of a distribution that it has enough values for, as shares and values.
pub(crate) fn quantiles(distribution: &Distribution) -> impl Iterator<Item = (f64, f64)> {
    let known = PERCENTILES.into_iter().filter(|p| distribution.count() >= samples_needed(*p));
    // To the digits of the percentile: 0.999 and not 0.9990000000000001.
    known.filter_map(|p| Some(((p * 10.0).round() / 1e3, distribution.percentile(p)?)))
}

/// The families of all metrics of the plan.
pub(super) fn families(totals: &Totals) -> Vec<Family<'_>> {
    let mut names = Names::default();
    let mut families = Vec::new();
    let mut unfit = Vec::new();
    for metric in &totals.metrics {
        let spec = &metric.spec;
        let unit = if spec.unit.is_empty() { Unit::None } else { Unit::Own(&spec.unit) };
        let (all, tagged) = (names.of(&spec.name, ""), names.of(&spec.name, "_tagged"));
        let series = [(Vec::new(), &metric.all)];
        let (name, help) = (all.into(), help(metric, "").into());
        families.push(Family { name, help, unit, points: points(spec.kind, series.into_iter()) });
        let series = metric.tagged.iter().map(|tagged| (labels(&tagged.tags), &tagged.series));
        let (name, help) = (tagged.into(), self::help(metric, " with tags").into());
        families.push(Family { name, help, unit, points: points(spec.kind, series) });
        if metric.unfit > 0 {
            unfit.push((vec![("metric", spec.name.as_str())], metric.unfit));
        }
    }
    let help = "Values of the plan's own metrics that are not recorded, as they are none of the kind.";
    families.push(Family::new("plimsoll.unfit_values", help, Unit::None, Points::Counts(unfit)));
    families
}

fn labels(tags: &[(String, String)]) -> Labels<'_> {
    tags.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

fn help(metric: &MetricRecord, which: &str) -> String {
    let kind = metric.spec.kind.name();
    format!("Values{which} of the plan's own metric {}, a {kind}.", metric.spec.name)
}

fn points<'a>(kind: SeriesKind, series: impl Iterator<Item = (Labels<'a>, &'a Series)>) -> Points<'a> {
    match kind {
        SeriesKind::Counter => {
            Points::Sums(series.filter_map(|(labels, series)| Some((labels, series.sum()?))).collect())
        }
        SeriesKind::Gauge => {
            Points::Gauges(series.filter_map(|(labels, series)| Some((labels, series.last()?))).collect())
        }
        SeriesKind::Rate => {
            let counts = series.flat_map(|(labels, series)| {
                let (count, hits) = match series {
                    Series::Rate { count, hits } => (*count, *hits),
                    _ => (0, 0),
                };
                [("true", hits), ("false", count.saturating_sub(hits))].map(|(value, count)| {
                    // First, so that a tag of this name is the one that is renamed.
                    ([("value", value)].into_iter().chain(labels.iter().copied()).collect(), count)
                })
            });
            Points::Counts(counts.collect())
        }
        SeriesKind::Trend => Points::Summaries(
            series.filter_map(|(labels, series)| Some((labels, series.distribution()?))).collect(),
        ),
    }
}

/// Names of families that remain different where only letters, digits and `_` are kept of them, and with the
/// suffixes of their samples. They do not depend on the values.
#[derive(Default)]
struct Names(BTreeSet<String>);

impl Names {
    fn of(&mut self, metric: &str, suffix: &str) -> String {
        let mut name = format!("plimsoll.metric.{metric}{suffix}");
        let mut number = 1;
        while !self.take(&name) {
            number += 1;
            name = format!("plimsoll.metric.{metric}{suffix}_{number}");
        }
        name
    }

    /// Returns `false` if the name, or one of its samples, is taken.
    fn take(&mut self, name: &str) -> bool {
        let plain = plain(name);
        let plain = plain.strip_suffix("_total").unwrap_or(&plain);
        let samples = ["", "_total", "_sum", "_count"].map(|suffix| format!("{plain}{suffix}"));
        if samples.iter().any(|sample| self.0.contains(sample)) {
            return false;
        }
        self.0.extend(samples);
        true
    }
}

/// The name with `_` in place of everything that Prometheus has not in names.
pub(crate) fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}
