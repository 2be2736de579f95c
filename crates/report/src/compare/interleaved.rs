//! Two targets in one run: what is known of their difference, at any instant of it.

use plimsoll_core::{figure, is_zero};
use plimsoll_histogram::Delta;
use plimsoll_metrics::threshold::TimeKind;
use plimsoll_metrics::{Interval, RunFacts, RunRecord, Tally};
use plimsoll_statistics::judgement::{Judgement, Orientation, judge};
use plimsoll_statistics::sequential::{Block, Counts, FEWEST_BLOCKS, Figure, SequentialComparison, Side};
use plimsoll_statistics::shift::Shift;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::comparison::{ChangeResult, MetricResult, Question, Word};
use super::measure::{Measure, TimeFigure};
use crate::contract::context::Host;
use crate::contract::metric::OwnMetric;
use crate::contract::result::{Finding, ModelKind};
use crate::contract::summary::PERCENTILES;
use crate::render::text::comparison::{amount, change_interval, short};

/// Looks that a result keeps at most. Of a longer run every second one is kept, and so on.
const MOST_LOOKS: usize = 240;

/// Failures in a row from which on a side that answered before is broken.
const BROKEN_REQUESTS: u64 = 10;
/// Seconds of them.
const BROKEN_SECONDS: f64 = 2.0;

/// The run in which A and B had one load at the same time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// A and B have half of the users each; otherwise iterations go to A or B at random.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub apart: bool,
    /// Length of a block in seconds: A and B are compared block by block.
    pub block_s: f64,
    /// Blocks until the end.
    pub blocks: u64,
    /// Requests of A that ended.
    pub a: SideResult,
    /// Requests of B that ended.
    pub b: SideResult,
    /// The intervals as the run went on, about once a second.
    pub looks: Vec<Look>,
    /// Reasons why the measurement is not valid, and warnings, with evidence.
    pub findings: Vec<Finding>,
    /// Metrics that the steps of the plans record: those of A begin with `A.`, those of B with `B.`. Those of
    /// one plan of which A and B are scenarios are of both together. Omitted if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<OwnMetric>,
}

impl InterleavedResult {
    /// The load and how it goes to A and B, in words: `of both, in random order: open: 400/s`.
    pub(crate) fn load_of_both(&self) -> String {
        let how = if self.apart { "half of the users each" } else { "in random order" };
        format!("of both, {how}: {}", self.load)
    }

    /// How A and B had it at the same time, in words.
    pub(crate) const fn how(&self) -> &'static str {
        if self.apart { "A and B had users of their own" } else { "A and B took turns at random" }
    }
}

/// Requests of one side of an interleaved comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SideResult {
    /// Requests that ended well.
    pub ok: u64,
    /// Requests that failed or timed out.
    pub failed: u64,
    /// What became of its requests if none succeeded, and the generator is not the cause; null otherwise.
    pub failure: Option<String>,
    /// Measured seconds until its last good answer, if at least ten requests and two seconds came after that;
    /// left away otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broke_at_s: Option<f64>,
    /// Requests that failed since then.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_since: u64,
}

/// The last good answer of a side.
#[derive(Clone, Copy, Debug, Default)]
struct LastAnswer {
    /// Measured seconds until the end of its block; `None` if there was none.
    at_s: Option<f64>,
    /// Requests that failed since.
    failed_since: u64,
}

impl LastAnswer {
    fn add(&mut self, side: &Side, at_s: f64) {
        if side.ok > 0 {
            *self = Self { at_s: Some(at_s), failed_since: 0 };
        } else {
            self.failed_since += side.failed;
        }
    }

    /// When it was, if there should have been others since.
    fn broke_at(self, until_s: f64) -> Option<f64> {
        self.at_s.filter(|at| self.failed_since >= BROKEN_REQUESTS && until_s - at >= BROKEN_SECONDS)
    }
}

/// Requests of one side that were started.
#[derive(Clone, Copy, Debug, Default)]
struct Started {
    /// In the measured part.
    measured: u64,
    /// In the warm-up.
    warmup: u64,
    /// Of those of the warm-up, the ones that ended in it.
    warmup_ended: u64,
}

/// The intervals at an instant of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Look {
    /// Measured seconds until then.
    pub at_s: f64,
    /// The change of each figure, in the order of `metrics`; null where there was nothing to compare.
    pub changes: Vec<Option<LookChange>>,
}

/// A change as it was known at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// The smallest lower bound among the times of both sides, in nanoseconds.
    bounds_from: [u64; 2],
    /// Requests of A and of B.
    started: [Started; 2],
    last_answers: [LastAnswer; 2],
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
            bounds_from: [u64::MAX; 2],
            started: [Started::default(); 2],
            last_answers: [LastAnswer::default(); 2],
            measured_s: 0.0,
            every: 1,
            looks: Vec::new(),
        })
    }

    /// Sets the largest number of requests of an iteration; an iteration is dealt as a whole.
    #[must_use]
    pub fn dealing(self, requests: u32) -> Self {
        Self { comparison: self.comparison.dealing(requests), ..self }
    }

    /// Takes the next interval of the run as a block, while it still has its steps. The warm-up is no block,
    /// and what ends in the drain belongs to the last one.
    pub fn add(&mut self, interval: &Interval) {
        let totals = [false, true].map(|of_b| {
            let mut total = Tally::default();
            let mine = interval.steps.iter().zip(&self.is_b).filter(|(_, is_b)| **is_b == of_b);
            mine.for_each(|(tally, _)| total.merge(tally));
            total
        });
        for (started, total) in self.started.iter_mut().zip(&totals) {
            if interval.warmup {
                started.warmup += total.started;
                started.warmup_ended += total.ok + total.failed + total.timed_out + total.aborted();
            } else {
                started.measured += total.started;
            }
        }
        if interval.warmup {
            return;
        }
        for (from, total) in self.bounds_from.iter_mut().zip(&totals) {
            *from = (*from).min(total.censored.from.0);
        }
        let [a, b] = totals.map(|total| {
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
        });
        if !interval.drain {
            self.measured_s += interval.length.as_secs_f64();
        }
        for (last, side) in self.last_answers.iter_mut().zip([&a, &b]) {
            last.add(side, self.measured_s);
        }
        match interval.drain {
            true => self.comparison.extend_last(Block { a, b }),
            false => self.comparison.add(Block { a, b }),
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
        let is_time = matches!(measure, Measure::Time(..));
        let [a_at_least, b_at_least] = [(a, 0), (b, 1)].map(|(value, side): (Option<f64>, usize)| {
            is_time && value.is_some_and(|value| value >= self.bounds_from[side] as f64)
        });
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
            a_at_least,
            b_at_least,
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
        let side = |of_b: bool, side: &Side| {
            let Started { measured, warmup, warmup_ended } = self.started[usize::from(of_b)];
            let held_up = warmup.saturating_sub(warmup_ended);
            let is_side = |number: usize| self.is_b.get(number) == Some(&of_b);
            let facts = RunFacts::of_steps(record, is_side, measured, held_up);
            let last = self.last_answers[usize::from(of_b)];
            let broke_at_s = last.broke_at(self.measured_s);
            SideResult {
                ok: side.ok,
                failed: side.failed,
                failure: facts.failure(),
                broke_at_s,
                failed_since: if broke_at_s.is_some() { last.failed_since } else { 0 },
            }
        };
        InterleavedResult {
            after_s: self.measured_s,
            blocks: self.blocks() as u64,
            a: side(false, &total.a),
            b: side(true, &total.b),
            looks: self.looks.clone(),
            metrics: OwnMetric::all(&record.metrics, record.duration),
            findings: verdict.reasons.iter().chain(&verdict.warnings).map(Finding::of).collect(),
            ..InterleavedResult::default()
        }
    }

    /// The shares of requests that failed, in a sentence, if they differ by as much as matters: a server that
    /// refuses requests may be quick with the others.
    pub(crate) fn shares_of_errors(&self) -> Option<String> {
        let Block { a, b } = self.comparison.total();
        let share = |side: &Side| SequentialComparison::value(Figure::Errors, side);
        let (a, b) = (share(a)?, share(b)?);
        ((a - b).abs() >= self.question.error_effect).then(|| {
            let [a, b] = [a, b].map(figure::share);
            format!(
                "{a} of A's requests failed, and {b} of B's; times are those of the others and of timeouts"
            )
        })
    }

    /// Returns `true` if nothing more is to be learned: every judged figure of a look has its answer, or as
    /// many blocks as that takes have gone by without one good answer of a side.
    pub fn is_decided(&self, metrics: &[MetricResult]) -> bool {
        let Block { a, b } = self.comparison.total();
        let fails = |side: &Side| side.ok == 0 && side.failed > 0;
        metrics.iter().all(|metric| metric.verdict != Some(Word::Undecided))
            || self.blocks() >= FEWEST_BLOCKS && (fails(a) || fails(b))
    }

    /// The question that it answers.
    pub const fn question(&self) -> &Question {
        &self.question
    }
}

/// The change of each figure so far, in a few words: `p99 +3.1 % [+2.2 %, +4.0 %] worse so far`. A later look
/// may take the word back.
pub fn brief(metrics: &[MetricResult]) -> String {
    let figure = |metric: &MetricResult| match &metric.change {
        Some(change) if change.low.is_some() || change.high.is_some() => {
            let word = match metric.verdict {
                Some(Word::Undecided) | None => String::new(),
                Some(word) => format!(" {} so far", word.name()),
            };
            format!("{} {}{word}", short(metric), with_interval(change))
        }
        _ => format!("{} ?", short(metric)),
    };
    metrics.iter().map(figure).collect::<Vec<_>>().join("  ")
}

/// Sides of which no request succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The baseline alone: there is nothing to compare with.
    A,
    /// The target that is compared with it alone, which is worse, whatever else it is.
    B,
    /// Both.
    Both,
}

impl InterleavedResult {
    /// The sides of which no request succeeded; `None` if some of each did.
    pub const fn broken(&self) -> Option<Broken> {
        match (&self.a.failure, &self.b.failure) {
            (None, None) => None,
            (Some(_), None) => Some(Broken::A),
            (None, Some(_)) => Some(Broken::B),
            (Some(_), Some(_)) => Some(Broken::Both),
        }
    }

    /// The sentence about the sides of which no request succeeded.
    pub(crate) fn failures(&self) -> Option<String> {
        let after = format!("after {:.0} s", self.after_s);
        match (&self.a.failure, &self.b.failure) {
            (None, None) => None,
            (Some(a), Some(b)) => Some(format!("neither answered well. A: {a}; B: {b}, {after}")),
            (Some(a), None) => Some(format!("A is broken: {a}, {after}; there is nothing to compare B with")),
            (None, Some(b)) => Some(format!("B is broken: {b}, {after}")),
        }
    }
}

impl InterleavedResult {
    /// The sentence about a side that answered well before, and not since an instant.
    pub(crate) fn breaks(&self) -> Option<String> {
        let broke = |name: &str, side: &SideResult| {
            let (at, since) = (side.broke_at_s?, figure::count(side.failed_since));
            Some(format!("{name} broke at {at:.0} s: none of {since} requests since then succeeded"))
        };
        let both: Vec<String> = [broke("A", &self.a), broke("B", &self.b)].into_iter().flatten().collect();
        (!both.is_empty()).then(|| both.join("; "))
    }
}

impl Broken {
    /// Returns the first words of a page about broken sides.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::A => "A is broken",
            Self::B => "B is broken",
            Self::Both => "neither answered well",
        }
    }
}

/// The answer in a sentence: `B is slower by 3.1 % at p99 [2.2, 4.0], after 41 s`. A change of the share of
/// errors is always in it.
pub(crate) fn statement(metrics: &[MetricResult], verdict: Word, after_s: f64) -> String {
    let kind = |kind: &'static str| {
        move |metric: &&MetricResult| metric.change.as_ref().is_some_and(|change| change.kind == kind)
    };
    // The tail is what matters most, where it has the verdict.
    let of_verdict = || metrics.iter().filter(|metric| metric.verdict == Some(verdict));
    let subject = of_verdict().rfind(kind("relative")).and_then(|metric| answer_of(metric, verdict));
    let errors = metrics.iter().find(kind("absolute")).and_then(errors_of);
    let after = format!("after {after_s:.0} s");
    match (subject, errors) {
        (Some(answer), None) if verdict == Word::Undecided => format!("undecided {after}: {answer}"),
        (Some(answer), Some(errors)) if verdict == Word::Undecided => {
            format!("undecided {after}: {answer}; B has {errors}")
        }
        (Some(answer), Some(errors)) => format!("{answer}, and has {errors}, {after}"),
        (Some(answer), None) => format!("{answer}, {after}"),
        (None, Some(errors)) => format!("B has {errors}, {after}"),
        (None, None) => match of_verdict().next().and_then(|metric| metric.change.as_ref()) {
            Some(change) if verdict == Word::Same => {
                format!("errors are the same: {}, {after}", with_interval(change))
            }
            _ => format!("nothing is known {after}"),
        },
    }
}

/// The change of the share of errors, if one is known.
fn errors_of(metric: &MetricResult) -> Option<String> {
    let change = with_interval(metric.change.as_ref()?);
    match metric.verdict? {
        Word::Worse => Some(format!("more errors: {change}")),
        Word::Better => Some(format!("fewer errors: {change}")),
        Word::Same | Word::Undecided => None,
    }
}

/// The change of a time or a rate in words; `None` without one.
fn answer_of(metric: &MetricResult, verdict: Word) -> Option<String> {
    let (name, change) = (short(metric), metric.change.as_ref()?);
    let percent = |share: Option<f64>, sign: f64| match share {
        Some(share) => format!("{:.1}", sign * share * 100.0 + 0.0),
        None => "?".to_owned(),
    };
    let is_time = metric.better == "lower";
    Some(match verdict {
        Word::Worse | Word::Better => {
            let grows = change.estimate >= 0.0;
            let sign = if grows { 1.0 } else { -1.0 };
            let (low, high) = if grows { (change.low, change.high) } else { (change.high, change.low) };
            let word = match (grows, is_time) {
                (true, true) | (false, false) => "slower",
                (false, true) | (true, false) => "faster",
            };
            format!(
                "B is {word} by {} % at {name} [{}, {}]",
                percent(Some(change.estimate), sign),
                percent(low, sign),
                percent(high, sign)
            )
        }
        Word::Same => format!("B is the same as A: {name} {}", with_interval(change)),
        Word::Undecided if change.low.is_none() && change.high.is_none() => {
            format!("{name} is not known yet")
        }
        Word::Undecided => format!("{name} {}", with_interval(change)),
    })
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
