//! Two targets in one run: what is known of their difference, at any instant of it.

use plimsoll_metrics::histogram::Delta;
use plimsoll_metrics::threshold::TimeKind;
use plimsoll_metrics::{Interval, RunRecord, Tally};
use plimsoll_statistics::judgement::{Judgement, Orientation, judge};
use plimsoll_statistics::sequential::{Block, Counts, Figure, SequentialComparison, Side};
use plimsoll_statistics::shift::Shift;
use schemars::JsonSchema;
use serde::Serialize;

use super::comparison::{ChangeResult, MetricResult, Question, Word};
use super::measure::{Measure, TimeFigure};
use crate::contract::context::Host;
use crate::contract::result::{Finding, ModelKind};
use crate::contract::summary::PERCENTILES;
use crate::render::text::comparison::{amount, change_interval, short};

/// Looks that a result keeps at most. Of a longer run every second one is kept, and so on.
const MOST_LOOKS: usize = 240;

/// The run in which A and B had one load at the same time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct InterleavedResult {
    /// The answer in a sentence.
    pub statement: String,
    /// Measured seconds until the end.
    pub after_s: f64,
    /// Reason why it ended: decided (all judged figures were known), time, or stopped (by a signal).
    pub ended: String,
    /// Identity of the run.
    pub id: String,
    /// When it started: RFC 3339, UTC.
    pub started_at: String,
    /// Seed of every random choice, and so of the order in which A and B took turns.
    pub seed: u64,
    /// The command line, without secrets.
    pub args: Vec<String>,
    /// Hash of the plan of both.
    pub plan_hash: String,
    /// The machine that generated the load.
    pub host: Host,
    /// The load of both together, in words.
    pub load: String,
    /// Length of a block in seconds: A and B are compared block by block.
    pub block_s: f64,
    /// Blocks until the end.
    pub blocks: u64,
    /// Requests of A that ended.
    pub a: SideResult,
    /// The same of B.
    pub b: SideResult,
    /// The intervals as the run went on, about once a second.
    pub looks: Vec<Look>,
    /// Reasons why the measurement is not valid, and warnings, with evidence.
    pub findings: Vec<Finding>,
}

/// Requests of one side of an interleaved comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SideResult {
    /// Requests that ended well.
    pub ok: u64,
    /// Requests that failed or timed out.
    pub failed: u64,
}

impl SideResult {
    fn new(side: &Side) -> Self {
        Self { ok: side.ok, failed: side.failed }
    }
}

/// The intervals at an instant of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Look {
    /// Measured seconds until then.
    pub at_s: f64,
    /// The change of each figure, in the order of `metrics`; null where there was nothing to compare.
    pub changes: Vec<Option<LookChange>>,
}

/// A change as it was known at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct LookChange {
    /// The best estimate.
    pub estimate: f64,
    /// Lower end of its interval; null without a bound.
    pub low: Option<f64>,
    /// Upper end of its interval; null without a bound.
    pub high: Option<f64>,
}

/// A comparison of two targets under way, and the question that it is to answer.
///
/// Call [`add`](Self::add) with every interval and [`look`](Self::look) as often as wanted.
#[derive(Clone, Debug)]
pub struct Interleaving {
    comparison: SequentialComparison,
    measures: Vec<Measure>,
    question: Question,
    /// `true` for each step of the plan that is B's.
    is_b: Vec<bool>,
    /// The times to compare are response times, not service times.
    response: bool,
    measured_s: f64,
    /// Blocks between two looks that are kept, and those that are.
    every: usize,
    looks: Vec<Look>,
}

/// A figure that two targets in one run cannot be compared by: its name and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotInterleaved(pub String);

impl Interleaving {
    /// Before a run of this model, whose steps are B's where `is_b` is true.
    ///
    /// # Errors
    /// A figure of the question that one run of two targets does not have.
    pub fn new(question: Question, model: ModelKind, is_b: Vec<bool>) -> Result<Self, NotInterleaved> {
        let kind = if model == ModelKind::Open { TimeKind::Response } else { TimeKind::Service };
        let usual = || vec![Measure::percentile("50"), Measure::percentile("99"), Measure::Errors];
        let chosen = if question.measures.is_empty() { usual() } else { question.measures.clone() };
        let mut measures = Vec::new();
        for measure in chosen {
            let measure = measure.in_model(model);
            match measure {
                Measure::Errors => {}
                Measure::Time(Some(of), _) if of == kind => {}
                Measure::Rate if model == ModelKind::Closed => {}
                Measure::Rate => {
                    let why =
                        "rate: A and B get as many requests each; with users instead of a rate it can differ";
                    return Err(NotInterleaved(why.to_owned()));
                }
                _ => {
                    let name = kind.name();
                    return Err(NotInterleaved(format!(
                        "{measure}: A and B are compared by {name}, rate and errors"
                    )));
                }
            }
            measures.push(measure);
        }
        Ok(Self {
            comparison: SequentialComparison::new(),
            measures,
            question,
            is_b,
            response: model == ModelKind::Open,
            measured_s: 0.0,
            every: 1,
            looks: Vec::new(),
        })
    }

    /// Takes the next interval of the run as a block, while it still has its steps. The warm-up is left out.
    pub fn add(&mut self, interval: &Interval) {
        if interval.warmup {
            return;
        }
        let side = |of_b: bool| {
            let mut total = Tally::default();
            let mine = interval.steps.iter().zip(&self.is_b).filter(|(_, is_b)| **is_b == of_b);
            mine.for_each(|(tally, _)| total.merge(tally));
            let (times, sum) = match self.response {
                true => (&total.response_time, total.response_time_sum),
                false => (&total.service_time, total.service_time_sum),
            };
            Side {
                times: counts(times),
                sum: sum as f64,
                ok: total.ok,
                failed: total.failed + total.timed_out,
            }
        };
        let (a, b) = (side(false), side(true));
        self.comparison.add(Block { a, b });
        if !interval.drain {
            self.measured_s += interval.length.as_secs_f64();
        }
    }

    /// The number of blocks so far.
    pub const fn blocks(&self) -> usize {
        self.comparison.blocks()
    }

    /// Judges all figures by what is known now, and remembers this look.
    pub fn look(&mut self) -> Vec<MetricResult> {
        let metrics = self.metrics();
        if self.blocks().is_multiple_of(self.every) {
            if self.looks.len() == MOST_LOOKS {
                self.every *= 2;
                let mut number = 0;
                self.looks.retain(|_| {
                    number += 1;
                    number % 2 == 0
                });
            }
            let change = |change: &ChangeResult| LookChange {
                estimate: change.estimate,
                low: change.low,
                high: change.high,
            };
            let changes = metrics.iter().map(|metric| metric.change.as_ref().map(change)).collect();
            self.looks.push(Look { at_s: self.measured_s, changes });
        }
        metrics
    }

    /// Judges all figures by what is known now.
    pub fn metrics(&self) -> Vec<MetricResult> {
        let alpha = (1.0 - self.question.confidence) / self.measures.len() as f64;
        self.measures.iter().map(|&measure| self.metric(measure, alpha)).collect()
    }

    fn metric(&self, measure: Measure, alpha: f64) -> MetricResult {
        let figure = match measure {
            Measure::Time(_, TimeFigure::Percentile(index)) => Figure::Quantile(PERCENTILES[index].1 / 100.0),
            Measure::Time(_, TimeFigure::Mean) => Figure::Mean,
            Measure::Rate | Measure::Cpu => Figure::Rate,
            Measure::Errors => Figure::Errors,
        };
        let total = self.comparison.total();
        let value = |side: &Side| match figure {
            Figure::Rate => (self.measured_s > 0.0).then(|| side.ok as f64 / self.measured_s),
            _ => SequentialComparison::value(figure, side),
        };
        let (a, b) = (value(&total.a), value(&total.b));
        let found = self.comparison.change(figure, alpha);
        let effect = if measure.is_absolute() { self.question.error_effect } else { self.question.effect };
        let word = found.map_or(Word::Undecided, |found| judged(found, effect, measure.orientation()));
        let reason = match found {
            None => Some("there are not enough responses of both".to_owned()),
            Some(found) if !found.low.is_finite() || !found.high.is_finite() => Some(
                "what is beyond it came in too few blocks for an interval; a longer run has one".to_owned(),
            ),
            Some(_) => None,
        };
        let end = |value: f64| value.is_finite().then_some(value);
        MetricResult {
            metric: measure.to_string(),
            unit: measure.unit().to_owned(),
            better: if measure.orientation() == Orientation::Lower { "lower" } else { "higher" }.to_owned(),
            judged: true,
            a: vec![a],
            b: vec![b],
            a_median: a,
            b_median: b,
            change: found.map(|found| ChangeResult {
                kind: if measure.is_absolute() { "absolute" } else { "relative" }.to_owned(),
                estimate: found.estimate,
                // A time cannot shrink by more than all of it, which is no bound.
                low: end(found.low).filter(|low| *low > -1.0 || measure.is_absolute()),
                high: end(found.high),
                p: None,
                p_adjusted: None,
                method: "sequence".to_owned(),
            }),
            verdict: Some(word),
            reason: reason.filter(|_| word == Word::Undecided),
        }
    }

    /// The run that has ended with `record`. The caller adds identity and circumstances, and
    /// [`Comparison::of_interleaving`](super::comparison::Comparison::of_interleaving) the statement.
    pub fn result(&self, record: &RunRecord) -> InterleavedResult {
        let total = self.comparison.total();
        let verdict = &record.verdict;
        InterleavedResult {
            after_s: self.measured_s,
            blocks: self.blocks() as u64,
            a: SideResult::new(&total.a),
            b: SideResult::new(&total.b),
            looks: self.looks.clone(),
            findings: verdict.reasons.iter().chain(&verdict.warnings).map(Finding::of).collect(),
            ..InterleavedResult::default()
        }
    }

    /// The question that it answers.
    pub const fn question(&self) -> &Question {
        &self.question
    }
}

/// Returns `true` if every judged figure has its answer.
pub fn is_decided(metrics: &[MetricResult]) -> bool {
    metrics.iter().all(|metric| metric.verdict != Some(Word::Undecided))
}

/// The change of each figure so far, in a few words: `p99 +3.1 % [+2.2 %, +4.0 %] worse`.
pub fn brief(metrics: &[MetricResult]) -> String {
    let figure = |metric: &MetricResult| match &metric.change {
        Some(change) if change.low.is_some() || change.high.is_some() => {
            let word = match metric.verdict {
                Some(Word::Undecided) | None => String::new(),
                Some(word) => format!(" {}", word.name()),
            };
            format!("{} {}{word}", short(metric), with_interval(change))
        }
        _ => format!("{} ?", short(metric)),
    };
    metrics.iter().map(figure).collect::<Vec<_>>().join("  ")
}

/// The answer in a sentence: `B is slower by 3.1 % at p99 [2.2, 4.0], after 41 s`.
pub(crate) fn statement(metrics: &[MetricResult], verdict: Word, after_s: f64) -> String {
    let after = format!("after {after_s:.0} s");
    // The tail is what matters most, where it has the verdict.
    let of_verdict = || metrics.iter().filter(|metric| metric.verdict == Some(verdict));
    let Some(metric) =
        of_verdict().rfind(|metric| metric.change.as_ref().is_some_and(|c| c.kind == "relative"))
    else {
        return match (verdict, of_verdict().next().and_then(|metric| metric.change.as_ref())) {
            (Word::Worse, Some(change)) => format!("B has more errors: {}, {after}", with_interval(change)),
            (Word::Better, Some(change)) => format!("B has fewer errors: {}, {after}", with_interval(change)),
            (Word::Same, Some(change)) => format!("errors are the same: {}, {after}", with_interval(change)),
            _ => format!("nothing is known {after}"),
        };
    };
    let (name, Some(change)) = (short(metric), &metric.change) else {
        return format!("nothing is known {after}");
    };
    let percent = |share: Option<f64>, sign: f64| match share {
        Some(share) => format!("{:.1}", sign * share * 100.0 + 0.0),
        None => "?".to_owned(),
    };
    let is_time = metric.better == "lower";
    match verdict {
        Word::Worse | Word::Better => {
            let grows = change.estimate >= 0.0;
            let sign = if grows { 1.0 } else { -1.0 };
            let (low, high) = if grows { (change.low, change.high) } else { (change.high, change.low) };
            let word = match (grows, is_time) {
                (true, true) | (false, false) => "slower",
                (false, true) | (true, false) => "faster",
            };
            format!(
                "B is {word} by {} % at {name} [{}, {}], {after}",
                percent(Some(change.estimate), sign),
                percent(low, sign),
                percent(high, sign)
            )
        }
        Word::Same => format!("B is the same as A: {name} {}, {after}", with_interval(change)),
        Word::Undecided if change.low.is_none() && change.high.is_none() => {
            format!("undecided {after}: {name} is not known yet")
        }
        Word::Undecided => format!("undecided {after}: {name} {}", with_interval(change)),
    }
}

fn with_interval(change: &ChangeResult) -> String {
    format!("{} {}", amount(change, Some(change.estimate)), change_interval(change))
}

fn judged(found: Shift, effect: f64, orientation: Orientation) -> Word {
    let excludes_none = found.low > 0.0 || found.high < 0.0;
    let judgement = match found.low.is_finite() && found.high.is_finite() {
        // The interval is the test.
        true => judge(found, if excludes_none { 0.0 } else { 1.0 }, 0.5, effect, orientation),
        false => Judgement::Undecided,
    };
    judgement.into()
}

fn counts(times: &Delta) -> Counts {
    Counts::new(times.buckets().map(|bucket| (bucket.lowest, bucket.highest + 1, bucket.count)))
}
