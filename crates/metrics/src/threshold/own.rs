//! Thresholds on metrics of the plan's own: `metric(cart_total).p95<100`, `metric(logins{shop:a}).rate>5`.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use plimsoll_core::Nanos;
use plimsoll_histogram::samples_needed;

use super::decimal::Decimal;
use super::judgement::{Judgement, Lacking, NO_DATA, Observed, Unit, decided};
use super::text::{Limit, Number, Percentile, Shown, Threshold};
use crate::{MetricRecord, MetricSpec, Series, SeriesKind};

/// The word in front of the brackets around the name of a metric.
const METRIC: &str = "metric";
/// An example for hints.
pub(super) const EXAMPLE: &str = "metric(cart_total).p95<100";

/// A figure of a metric, or of those of its values that have some tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnFigure {
    /// The metric.
    pub name: String,
    /// Tags that the values have, perhaps among others; none for all values.
    pub tags: BTreeMap<String, String>,
    /// Which figure.
    pub figure: SeriesFigure,
}

/// Figures of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesFigure {
    /// Number of values.
    Count,
    /// Sum of a counter.
    Sum,
    /// Growth of a counter per second; of a rate, the share of its values that are true.
    Rate,
    /// Last value of a gauge.
    Last,
    /// The smallest value of a gauge or a trend.
    Min,
    /// The largest value.
    Max,
    /// The arithmetic mean of a trend.
    Mean,
    /// The standard deviation of a trend.
    Stdev,
    /// A percentile of a trend.
    Percentile(Percentile),
}

/// Names of figures that are no percentiles.
const NAMES: [(&str, SeriesFigure); 8] = [
    ("count", SeriesFigure::Count),
    ("sum", SeriesFigure::Sum),
    ("rate", SeriesFigure::Rate),
    ("last", SeriesFigure::Last),
    ("min", SeriesFigure::Min),
    ("max", SeriesFigure::Max),
    ("mean", SeriesFigure::Mean),
    ("stdev", SeriesFigure::Stdev),
];

impl SeriesFigure {
    /// Returns the figure of this name: `p95`, `max`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let named = NAMES.into_iter().find(|(name, _)| *name == text).map(|(_, figure)| figure);
        named.or_else(|| Percentile::parse(text.strip_prefix('p')?).map(Self::Percentile))
    }

    /// Returns `true` if metrics of a kind have the figure.
    pub const fn is_of(self, kind: SeriesKind) -> bool {
        match self {
            Self::Count => true,
            Self::Sum => matches!(kind, SeriesKind::Counter),
            Self::Rate => matches!(kind, SeriesKind::Counter | SeriesKind::Rate),
            Self::Last => matches!(kind, SeriesKind::Gauge),
            Self::Min | Self::Max => matches!(kind, SeriesKind::Gauge | SeriesKind::Trend),
            Self::Mean | Self::Stdev | Self::Percentile(_) => matches!(kind, SeriesKind::Trend),
        }
    }
}

/// The figures that metrics of a kind have, for a hint.
const fn figures_of(kind: SeriesKind) -> &'static str {
    match kind {
        SeriesKind::Counter => "count, sum and rate (per second)",
        SeriesKind::Gauge => "count, last, min and max",
        SeriesKind::Rate => "count and rate (the share that is true)",
        SeriesKind::Trend => "count, min, mean, max, stdev and percentiles such as p95",
    }
}

impl fmt::Display for SeriesFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Percentile(percentile) => write!(f, "p{percentile}"),
            other => {
                f.write_str(NAMES.iter().find(|(_, figure)| figure == other).map_or("", |(name, _)| name))
            }
        }
    }
}

impl fmt::Display for OwnFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{METRIC}({}", self.name)?;
        for (number, (name, value)) in self.tags.iter().enumerate() {
            let before = if number == 0 { '{' } else { ',' };
            write!(f, "{before}{name}:{value}")?;
        }
        let behind = if self.tags.is_empty() { "" } else { "}" };
        write!(f, "{behind}).{}", self.figure)
    }
}

/// Returns `true` if the figure of a threshold is one of a metric.
pub(super) fn is_own(text: &str) -> bool {
    text.trim_start().strip_prefix(METRIC).is_some_and(|rest| rest.trim_start().starts_with('('))
}

/// Reads `metric(NAME{TAG:VALUE,…}).FIGURE`, with a space in place of the point, too.
///
/// # Errors
/// The problem, and what to write instead.
pub(super) fn parse(text: &str) -> Result<OwnFigure, (String, String)> {
    let wrong = || {
        let hint =
            format!("write metric(NAME).FIGURE, as in {EXAMPLE}, with tags metric(NAME{{shop:a}}).FIGURE");
        (format!("`{text}` is not a figure of a metric"), hint)
    };
    let inner = text.trim_start().strip_prefix(METRIC).and_then(|rest| rest.trim_start().strip_prefix('('));
    let (inner, behind) = inner.and_then(|inner| inner.rsplit_once(')')).ok_or_else(wrong)?;
    let (name, tags) = match inner.trim().split_once('{') {
        Some((name, tags)) => (name.trim(), tags.strip_suffix('}').ok_or_else(wrong)?),
        None => (inner.trim(), ""),
    };
    if name.is_empty() || name.contains(['{', '}', '(', ')', ',', ':']) {
        return Err(wrong());
    }
    let mut read = BTreeMap::new();
    for tag in tags.split(',').filter(|_| !tags.trim().is_empty()) {
        let (name, value) = tag.split_once(':').ok_or_else(wrong)?;
        let (name, value) = (name.trim(), value.trim());
        if name.is_empty() || read.insert(name.to_owned(), value.to_owned()).is_some() {
            return Err(wrong());
        }
    }
    let behind = behind.trim();
    let figure = behind.strip_prefix('.').unwrap_or(behind).trim();
    let Some(figure) = SeriesFigure::parse(figure) else {
        let hint =
            format!("write one of count, sum, rate, last, min, max, mean, stdev or p95, as in {EXAMPLE}");
        return Err((format!("`{figure}` is not a figure of a metric"), hint));
    };
    Ok(OwnFigure { name: name.to_owned(), tags: read, figure })
}

/// Reads the limit of such a figure: a number of any sign, or of a rate `95%` or `5/s`.
pub(super) fn limit(figure: SeriesFigure, text: &str) -> Option<Limit> {
    let is_rate = figure == SeriesFigure::Rate;
    if let Some(percent) = text.strip_suffix('%').filter(|_| is_rate) {
        return Decimal::parse(percent.trim()).filter(|number| number.is_at_most(100)).map(Limit::Percent);
    }
    let number = text.strip_suffix("/s").filter(|_| is_rate).unwrap_or(text).trim();
    let number: f64 = number.parse().ok()?;
    number.is_finite().then_some(Limit::Number(Number(number)))
}

/// Returns the problem with a figure in a run with these metrics, and the hint.
pub(super) fn check(own: &OwnFigure, limit: Limit, metrics: &[MetricSpec]) -> Option<(String, String)> {
    let Some(metric) = metrics.iter().find(|metric| metric.name == own.name) else {
        let names = metrics.iter().map(|metric| metric.name.as_str());
        let hint = match plimsoll_core::suggest::closest(&own.name, names.clone()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if metrics.is_empty() => {
                format!("no step records a metric: write `record: {{{}: VALUE}}` in one", own.name)
            }
            None => format!("write one of {}", names.collect::<Vec<_>>().join(", ")),
        };
        return Some((format!("there is no metric `{}`", own.name), hint));
    };
    let kind = metric.kind;
    if !own.figure.is_of(kind) {
        let message = format!("`{}` is a {}, which has no {}", own.name, kind.name(), own.figure);
        return Some((message, format!("a {} has {}", kind.name(), figures_of(kind))));
    }
    if matches!(limit, Limit::Percent(_)) && kind != SeriesKind::Rate {
        let message = format!("`{}` is a {}, and no share", own.name, kind.name());
        return Some((message, "write a number per second, such as 5".to_owned()));
    }
    None
}

/// Judges a figure of a metric over a run of a length.
pub(super) fn judge(
    threshold: &Threshold,
    own: &OwnFigure,
    metrics: &[MetricRecord],
    length: Nanos,
) -> Judgement {
    let Some(metric) = metrics.iter().find(|metric| metric.spec.name == own.name) else {
        return Judgement::unknown(None, NO_DATA);
    };
    let Some(series) = metric.select(&own.tags) else {
        let reason = format!(
            "{} values have further combinations of tags, of which no figures are kept",
            plimsoll_core::figure::count(metric.beyond)
        );
        return Judgement::unknown(None, reason);
    };
    // Nothing to count is a count of 0; nothing else is known without values.
    let Some((value, unit)) = value(&series, own.figure, length) else {
        return Judgement::unknown(None, NO_DATA);
    };
    let observed = Observed { value, unit, at_least: false };
    if let SeriesFigure::Percentile(percentile) = own.figure {
        let (needed, present) = (samples_needed(percentile.p()), series.count());
        if present < needed {
            let reason = match needed {
                u64::MAX => format!("no number of samples shows {}", Shown(&threshold.metric)),
                needed => format!("needs {needed} samples, has {present}"),
            };
            let judgement = Judgement::unknown(None, reason);
            return Judgement { lacking: Some(Lacking { needed, present }), ..judgement };
        }
    }
    let limit = match threshold.limit {
        Limit::Percent(percent) => percent.to_f64(),
        Limit::Number(Number(limit)) if unit == Unit::Percent => limit * 100.0,
        Limit::Number(Number(limit)) => limit,
        _ => return Judgement::unknown(Some(observed), "it has no such limit"),
    };
    let ordering = value.partial_cmp(&limit).unwrap_or(Ordering::Equal);
    decided(threshold.operator, ordering, observed)
}

/// The value of a figure, and its unit; `None` without data.
fn value(series: &Series, figure: SeriesFigure, length: Nanos) -> Option<(f64, Unit)> {
    let number = |value: Option<f64>| value.map(|value| (value, Unit::Number));
    match figure {
        SeriesFigure::Count => Some((series.count() as f64, Unit::Count)),
        SeriesFigure::Sum => number(series.sum()),
        SeriesFigure::Rate => match series.sum() {
            Some(sum) => (length > Nanos::ZERO).then(|| (sum / length.as_secs_f64(), Unit::PerSecond)),
            None => series.share().map(|share| (share * 100.0, Unit::Percent)),
        },
        SeriesFigure::Last => number(series.last()),
        SeriesFigure::Min => number(series.min()),
        SeriesFigure::Max => number(series.max()),
        SeriesFigure::Mean => number(series.distribution()?.mean()),
        SeriesFigure::Stdev => number(series.distribution()?.stdev()),
        SeriesFigure::Percentile(percentile) => number(series.distribution()?.percentile(percentile.p())),
    }
}
