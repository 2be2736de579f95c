//! Answers of a Prometheus server to the query of a threshold.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::judgement::{Judgement, Observed, Unit};
use super::text::{Limit, Metric, Number, Operator, Threshold};
use super::{ThresholdResult, ThresholdSpec};

/// Reason why a threshold has no result while its server was not asked.
pub(super) const NOT_ASKED: &str = "the Prometheus server was not asked yet";
/// Labels of a series that are kept.
const LABELS: usize = 32;
/// Characters of a name or a value that are kept.
const LETTERS: usize = 128;

/// The value of one series; a single number is one of a series without labels.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesValue {
    /// Labels of the series.
    pub labels: BTreeMap<String, String>,
    /// The value as the server writes it: `0.5`, `+Inf`, `NaN`.
    pub text: String,
    /// The value.
    pub value: f64,
}

/// The answer to an instant query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The series, in the order of the answer.
    pub series: Vec<SeriesValue>,
    /// The first warning of the server: the answer may be incomplete.
    pub warning: Option<String>,
}

/// The series that decided a threshold on a query: the one that breaks it most, else the one that is nearest
/// to the limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SeriesResult")]
pub struct DecidingSeries {
    /// Labels of the series, with the name of the metric as `__name__`; none for a single number. At most 32
    /// are kept, of 128 characters each.
    pub labels: BTreeMap<String, String>,
    /// Value of the series as the server wrote it; infinite ones are here only: "+Inf".
    pub value: String,
    /// Number of series in the answer.
    pub count: u64,
}

impl DecidingSeries {
    /// Returns the words behind its value: ` of up{job="api"}, the worst of 3 series`; empty for a single
    /// number.
    pub fn behind(&self) -> String {
        let name = self.labels.get("__name__").map_or("", String::as_str);
        let labels = self.labels.iter().filter(|(name, _)| *name != "__name__");
        let labels: Vec<String> = labels.map(|(name, value)| format!("{name}={value:?}")).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(", ")) };
        let of = match (name, &*labels) {
            ("", "") => String::new(),
            (name, labels) => format!(" of {name}{labels}"),
        };
        match self.count {
            0 | 1 => of,
            count => format!("{of}, the worst of {} series", plimsoll_core::figure::count(count)),
        }
    }
}

/// Returns the words for a value that was observed, with its series if it is one of a query.
pub fn observed_words(observed: Option<String>, series: Option<&DecidingSeries>) -> Option<String> {
    match (observed, series) {
        (observed, Some(series)) => {
            let value = observed.unwrap_or_else(|| series.value.clone());
            Some(format!("{value}{}", series.behind()))
        }
        (observed, None) => observed,
    }
}

impl ThresholdSpec {
    /// Returns the query that a Prometheus server is asked for the figure; `None` if it is one of the run.
    pub fn query(&self) -> Option<&str> {
        match &self.threshold.metric {
            Metric::Query(query) => Some(query),
            _ => None,
        }
    }
}

impl Threshold {
    /// Returns `true` if an answer shows that a threshold on a query does not hold.
    pub fn is_broken_by(&self, answer: &Answer) -> bool {
        judge_answer(self, answer).0.is_shown()
    }
}

impl ThresholdResult {
    /// Judges a threshold on a query by the answer, or by the reason why there is none. Without a query
    /// nothing changes.
    pub fn answer(&mut self, answer: Result<&Answer, &str>) {
        if self.spec.query().is_none() {
            return;
        }
        let (judgement, series) = match answer {
            Ok(answer) => judge_answer(&self.spec.threshold, answer),
            Err(reason) => (Judgement::unknown(None, reason), None),
        };
        self.passed = judgement.passed;
        self.observed = judgement.observed;
        self.reason = judgement.reason;
        self.series = series;
    }
}

/// Judges the series of an answer, each of which has to hold.
///
/// One that breaks the limit is a fact, whatever is wrong with the others. Otherwise nothing is shown if
/// there is no series, if one has no number, or if the server warns that something is missing.
fn judge_answer(threshold: &Threshold, answer: &Answer) -> (Judgement, Option<DecidingSeries>) {
    let Limit::Number(Number(limit)) = threshold.limit else {
        return (Judgement::unknown(None, "its limit is not a number"), None);
    };
    let operator = threshold.operator;
    let numbers = answer.series.iter().filter_map(|one| Some((one, one.value.partial_cmp(&limit)?)));
    // The difference of two equal infinities is no number, and they are equal.
    let distance = |value: f64| if value == limit { 0.0 } else { (value - limit).abs() };
    let rank = |(one, ordering): &(&SeriesValue, Ordering)| {
        let breaks = !operator.holds(*ordering);
        let beyond = match operator {
            Operator::Less | Operator::AtMost => one.value,
            Operator::Greater | Operator::AtLeast => -one.value,
            Operator::Equal => distance(one.value),
            Operator::Unequal => -distance(one.value),
        };
        (breaks, beyond)
    };
    let worst = numbers.max_by(|a, b| {
        let (a, b) = (rank(a), rank(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    let without = answer.series.iter().find(|one| one.value.is_nan());
    let deciding = |one: &SeriesValue| DecidingSeries {
        labels: kept(&one.labels),
        value: shortened(&one.text),
        count: answer.series.len() as u64,
    };
    let observed = worst.filter(|(one, _)| one.value.is_finite()).map(|(one, _)| Observed {
        value: one.value,
        unit: Unit::Number,
        at_least: false,
    });
    let series = worst.map(|(one, _)| deciding(one));
    let unknown = |reason: String| (Judgement::unknown(observed, reason), series.clone());
    match (worst, without, &answer.warning) {
        (Some((_, ordering)), ..) if !operator.holds(ordering) => (Judgement::told(false, observed), series),
        (_, Some(one), _) => unknown(format!("the value{} is NaN, no number", one_of(&deciding(one)))),
        (None, None, _) => unknown("the query has no series: the answer is empty".to_owned()),
        (.., Some(warning)) => unknown(format!("the server warns: {warning}")),
        (Some(_), None, None) => (Judgement::told(true, observed), series),
    }
}

/// The words that name a series among others.
fn one_of(series: &DecidingSeries) -> String {
    DecidingSeries { count: 1, ..series.clone() }.behind()
}

/// The labels as far as they are kept.
fn kept(labels: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    labels.iter().take(LABELS).map(|(name, value)| (shortened(name), shortened(value))).collect()
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}\u{2026}", &text[..end]),
        None => text.to_owned(),
    }
}

/// Digits of a number that are shown, which is exact in results.
const DIGITS: usize = 6;

/// A number without a unit, as people read it: six digits that count.
pub(super) fn write_number(value: f64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    // Fifteen digits are exact for every whole number below.
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return write!(f, "{value}");
    }
    let rounded: f64 = format!("{value:.*e}", DIGITS - 1).parse().unwrap_or(value);
    match rounded.abs() {
        usual if (1e-4..1e15).contains(&usual) => write!(f, "{rounded}"),
        _ => write!(f, "{rounded:e}"),
    }
}
