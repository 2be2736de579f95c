//! The figures of both groups, the method that fits their number of runs, and notes.

use plimsoll_core::figure;
use plimsoll_statistics::bootstrap::{Bootstrap, mean_change, quantile_ratio, relative_mean_change};
use plimsoll_statistics::holm::holm;
use plimsoll_statistics::judgement::{Orientation, judge};
use plimsoll_statistics::rank::rank_test;
use plimsoll_statistics::shift::{Shift, relative_shift, shift};

use super::grounds::same_rate_asked;
use super::{ChangeResult, Group, MetricResult, Note, Question, Word};
use crate::compare::measure::{Measure, TimeFigure};
use crate::contract::result::RunResult;
use crate::contract::summary::PERCENTILES;

/// Runs a side from which ranks are compared: the fewest for which six figures can all be judged (two of the
/// 252 orders of 5 and 5 are below 0.05 / 6).
const RANKS_FROM: usize = 5;

/// Resamples of slices: they give the standard error to 2 %.
const RESAMPLES: usize = 1_000;

/// Reason why one run per side leaves a figure open (R12).
const ONE_RUN: &str = "1 run: between-run variation unknown";

/// Compares all figures.
pub(super) fn metrics(a: &Group, b: &Group, question: &Question, notes: &mut Vec<Note>) -> Vec<MetricResult> {
    let model = a.members.first().map(|member| member.result.model.kind);
    let mut compared: Vec<(Measure, Compared)> = chosen(a, b, question)
        .into_iter()
        .map(|(measure, judged)| {
            let measure = model.map_or(measure, |model| measure.in_model(model));
            (measure, Compared::new(measure, judged, a, b, question))
        })
        .collect();
    let censored: Vec<String> = compared
        .iter()
        .filter(|(_, compared)| compared.at_least.contains(&true))
        .map(|(m, _)| m.to_string())
        .collect();
    if !censored.is_empty() {
        let text =
            format!("only lower bounds, because of requests without an answer: {}", censored.join(", "));
        notes.push(Note::new("lower_bounds", text));
    }
    adjust(&mut compared);
    compared.into_iter().map(|(measure, compared)| compared.into_result(measure, question)).collect()
}

/// The figures to show, and whether each is judged.
fn chosen(a: &Group, b: &Group, question: &Question) -> Vec<(Measure, bool)> {
    if !question.measures.is_empty() {
        return question.measures.iter().map(|&measure| (measure, true)).collect();
    }
    let mut usual: Vec<(Measure, bool)> =
        ["50", "90", "99"].into_iter().map(|name| (Measure::percentile(name), true)).collect();
    let rare = Measure::percentile("99.9");
    if a.members.iter().chain(&b.members).all(|member| rare.of(&member.result).is_ok()) {
        usual.push((rare, true));
    }
    // The CPU time of the generator is not a property of the target: it is shown, and judged only on request.
    usual.extend([(Measure::Rate, true), (Measure::Errors, true), (Measure::Cpu, false)]);
    usual
}

/// A figure on its way to its result.
struct Compared {
    a: Vec<Option<f64>>,
    b: Vec<Option<f64>>,
    change: Option<Change>,
    judged: bool,
    /// Explanation beside the interval.
    reason: Option<String>,
    p_adjusted: Option<f64>,
    at_least: [bool; 2],
}

/// A change, as a method found it.
pub(super) struct Change {
    pub(super) shift: Shift,
    pub(super) p: Option<f64>,
    pub(super) method: &'static str,
}

impl Change {
    /// Takes in what it would be at both ends of values that are not known: a change that only one of them
    /// shows is none.
    fn widen(&mut self, low: &Self, high: &Self) {
        let agree = (low.shift.estimate > 0.0) == (high.shift.estimate > 0.0);
        self.shift.low = self.shift.low.min(low.shift.low).min(low.shift.estimate);
        self.shift.high = self.shift.high.max(high.shift.high).max(high.shift.estimate);
        self.p = match (low.p, high.p) {
            (Some(low), Some(high)) if agree => Some(low.max(high)),
            (Some(_), Some(_)) => Some(1.0),
            _ => None,
        };
        if self.method == "equal" {
            self.method = high.method;
        }
    }
}

impl Compared {
    fn new(measure: Measure, judged: bool, a: &Group, b: &Group, question: &Question) -> Self {
        let mut reason = None;
        let mut values = |name: &str, group: &Group| -> Vec<Option<f64>> {
            let mut of = |result: Result<f64, String>| match result {
                Ok(value) => Some(value),
                Err(why) => {
                    reason.get_or_insert(format!("a run of {name} has none: {why}"));
                    None
                }
            };
            group.members.iter().map(|member| of(measure.of(&member.result))).collect()
        };
        let (a_values, b_values) = (values("A", a), values("B", b));
        let all = |values: &[Option<f64>]| values.iter().copied().collect::<Option<Vec<f64>>>();
        let change = match (all(&a_values), all(&b_values)) {
            (Some(a), Some(b)) => match change(&a, &b, measure.is_absolute(), question.confidence) {
                Some(change) => Some(change),
                None => {
                    reason = Some("a value is zero: there is no ratio".to_owned());
                    None
                }
            },
            _ => None,
        };
        let most = |group: &Group, least: &[Option<f64>]| -> Option<Vec<f64>> {
            let values = group.members.iter().zip(least);
            values.map(|(member, least)| measure.most(&member.result).or(*least)).collect()
        };
        let mut change = change;
        if let (Some(a_least), Some(b_least)) = (all(&a_values), all(&b_values))
            && let (Some(a_most), Some(b_most)) = (most(a, &a_values), most(b, &b_values))
            && (a_most != a_least || b_most != b_least)
        {
            let ends = [(&a_most, &b_least), (&a_least, &b_most)];
            let ends = ends.map(|(a, b)| self::change(a, b, measure.is_absolute(), question.confidence));
            if let ([Some(low), Some(high)], Some(change)) = (ends, &mut change) {
                change.widen(&low, &high);
            }
            if change.as_ref().is_some_and(|change| change.p.is_some_and(|p| p >= 1.0)) {
                let waiting = |group: &Group| -> u64 {
                    let members = group.members.iter();
                    members.map(|member| member.result.accounting.in_flight_at_stop).sum()
                };
                let waiting = figure::count(waiting(a) + waiting(b));
                reason = Some(format!("{waiting} requests without an answer may have failed, or not"));
            }
        }
        if change.as_ref().is_some_and(|change| change.method == "none") {
            let sliced = within(measure, a, b, question.confidence);
            reason = Some(match &sliced {
                Some(sliced) if sliced.shift.low > 0.0 || sliced.shift.high < 0.0 => {
                    format!("different within these runs; {ONE_RUN}")
                }
                _ => ONE_RUN.to_owned(),
            });
            change = sliced.or(change);
        }
        let mut judged = judged;
        if measure == Measure::Rate && !same_rate_asked(a, b) {
            judged = false;
            reason = Some("the rates asked for differ".to_owned());
        }
        let at_least =
            [a, b].map(|group| group.members.iter().any(|member| measure.is_at_least(&member.result)));
        Self { a: a_values, b: b_values, change, judged, reason, p_adjusted: None, at_least }
    }

    fn into_result(self, measure: Measure, question: &Question) -> MetricResult {
        let Self { a, b, change, judged, mut reason, p_adjusted, at_least: [a_at_least, b_at_least] } = self;
        let effect = if measure.is_absolute() { question.error_effect } else { question.effect };
        let level = 1.0 - question.confidence;
        let word = judged.then(|| match (&change, p_adjusted) {
            (Some(Change { method: "slices", .. }), _) if !question.single_runs => Word::Undecided,
            (Some(change), Some(p)) => judge(change.shift, p, level, effect, measure.orientation()).into(),
            _ => Word::Undecided,
        });
        if let (Some(Word::Undecided), Some(change), Some(adjusted)) = (word, &change, p_adjusted) {
            let excludes_none = change.shift.low > 0.0 || change.shift.high < 0.0;
            if excludes_none
                && change.method != "slices"
                && change.p.is_some_and(|p| p <= level)
                && adjusted > level
            {
                reason = Some(format!("p is {adjusted:.3} beside the other figures: more runs, or --metric"));
            }
        }
        MetricResult {
            metric: measure.to_string(),
            unit: measure.unit().to_owned(),
            better: match measure.orientation() {
                Orientation::Lower => "lower",
                Orientation::Higher => "higher",
            }
            .to_owned(),
            judged,
            a_median: median(&a),
            b_median: median(&b),
            a_at_least,
            b_at_least,
            a,
            b,
            change: change.map(|change| ChangeResult {
                kind: if measure.is_absolute() { "absolute" } else { "relative" }.to_owned(),
                estimate: change.shift.estimate,
                low: Some(change.shift.low).filter(|low| low.is_finite() && change.p.is_some()),
                high: Some(change.shift.high).filter(|high| high.is_finite() && change.p.is_some()),
                p: change.p,
                p_adjusted,
                method: change.method.to_owned(),
            }),
            verdict: word,
            reason,
        }
    }
}

/// The change from one run to another, as far as the slices of both tell; `None` without slices of this
/// figure.
fn within(measure: Measure, a: &Group, b: &Group, confidence: f64) -> Option<Change> {
    let Measure::Time(Some(kind), TimeFigure::Percentile(index)) = measure else { return None };
    let ([a], [b]) = (&a.members[..], &b.members[..]) else { return None };
    let slices = |result: &RunResult| {
        let slices = result.slices.as_ref().filter(|slices| slices.time == kind.name())?;
        slices.counts()
    };
    let (a, b) = (slices(&a.result)?, slices(&b.result)?);
    let how = Bootstrap { confidence, resamples: RESAMPLES, seed: 0 };
    let change = quantile_ratio(&[&a], &[&b], PERCENTILES[index].1 / 100.0, how)?;
    Some(Change { shift: change.shift, p: Some(change.p), method: "slices" })
}

/// Adjusts the probabilities for multiple tests. A figure that cannot differ for any groups is not tested.
fn adjust(compared: &mut [(Measure, Compared)]) {
    let tested = |compared: &Compared| {
        let change = compared.change.as_ref().filter(|_| compared.judged)?;
        change.p.map(|p| (p, change.method == "equal"))
    };
    let family: Vec<f64> = compared
        .iter()
        .filter_map(|(_, compared)| tested(compared))
        .filter_map(|(p, is_equal)| (!is_equal).then_some(p))
        .collect();
    let mut adjusted = holm(&family).into_iter();
    for (_, compared) in compared {
        compared.p_adjusted = match tested(compared) {
            Some((p, true)) => Some(p),
            Some((_, false)) => adjusted.next(),
            None => None,
        };
    }
}

/// The change from `a` to `b` by the method that fits; `None` if a ratio is asked for and a value is not
/// positive.
pub(super) fn change(a: &[f64], b: &[f64], is_absolute: bool, confidence: f64) -> Option<Change> {
    let runs = a.len().min(b.len());
    let first = *a.first()?;
    let is_equal = a.iter().chain(b).all(|value| *value == first);
    if runs >= 2 && is_equal {
        let shift = Shift { estimate: 0.0, low: 0.0, high: 0.0 };
        return Some(Change { shift, p: Some(1.0), method: "equal" });
    }
    if runs >= RANKS_FROM {
        let shift = if is_absolute { shift(a, b, confidence) } else { relative_shift(a, b, confidence) };
        return Some(Change { shift: shift?, p: Some(rank_test(a, b)?.p), method: "ranks" });
    }
    if runs >= 2 {
        let change =
            if is_absolute { mean_change(a, b, confidence) } else { relative_mean_change(a, b, confidence) }?;
        return Some(Change { shift: change.shift, p: Some(change.p), method: "means" });
    }
    // With one run on a side nothing bounds the change: the estimate alone is shown.
    let shift = if is_absolute { shift(a, b, confidence) } else { relative_shift(a, b, confidence) }?;
    Some(Change { shift, p: None, method: "none" })
}

pub(super) fn median(values: &[Option<f64>]) -> Option<f64> {
    let mut values = values.iter().copied().collect::<Option<Vec<f64>>>()?;
    values.sort_by(f64::total_cmp);
    let middle = values.len().checked_sub(1)? / 2;
    Some(f64::midpoint(values[middle], values[values.len() / 2]))
}
