//! Thresholds while the run goes on: every window, and whether to go on at all.

use std::collections::VecDeque;

use plimsoll_core::Nanos;
use plimsoll_histogram::{Censored, Delta, Sliding};

use super::judgement::{Judgement, Lacking, View, judge};
use super::own_lag::own_lag;
use super::text::{Among, Metric, Operator, TimeKind, time_text};
use super::{Failure, ThresholdResult, ThresholdSpec, Windows};
use crate::{Interval, Outline, RunRecord, Tally};

/// Looks at every complete interval of a run, in order, and judges at its end.
///
/// Windows are made of whole intervals of the measured part, by adding and taking away their exact counts.
/// Call [`look`](Self::look) with each interval, then [`finish`](Self::finish).
#[derive(Debug)]
pub struct ThresholdWatch {
    watched: Vec<Watched>,
    interval: Nanos,
    /// End of the warm-up.
    measured_from: Option<Nanos>,
    /// End of the last interval before the drain.
    last_end: Nanos,
    ended_by: Option<usize>,
}

/// One threshold, and its figures so far.
#[derive(Debug)]
struct Watched {
    spec: ThresholdSpec,
    steps: Vec<u32>,
    /// Begin and end of its phase, if it is about one.
    phase: Option<(Nanos, Nanos)>,
    window: Window,
    windows: Windows,
    worst: Option<Judgement>,
    /// The first failure that was shown.
    failed: Option<Failure>,
    /// The first window that shows neither that it holds nor that it does not.
    open: Option<Judgement>,
}

/// The intervals that are examined together.
#[derive(Debug, Default)]
struct Window {
    /// Ends and contents; of a window without a limit of length only the sum is kept.
    parts: VecDeque<(Nanos, Tally)>,
    total: Tally,
    times: Sliding,
    length: Nanos,
}

impl Window {
    fn add(&mut self, tally: Tally, length: Nanos) {
        self.total.add_counts(&tally);
        self.times.add(&tally.response_time);
        self.length += length;
        self.parts.push_back((length, tally));
    }

    /// The view of what has ended, and of requests that wait: these have taken at least as long.
    fn judge_beside(&mut self, spec: &ThresholdSpec, waiting: &Delta) -> Judgement {
        let (Some(least), Some(most)) = (waiting.lowest(), waiting.percentile(100.0)) else {
            return self.judge(spec);
        };
        let (censored, limits) = (self.total.censored, self.total.limits);
        self.times.add(waiting);
        let beside = Censored { count: waiting.count(), from: Nanos(least) };
        self.total.censored.merge(beside);
        let (low, high) = limits.unwrap_or((least, most));
        self.total.limits = Some((low.min(least), high.max(most)));
        let judgement = self.judge(spec);
        self.times.take(waiting);
        (self.total.censored, self.total.limits) = (censored, limits);
        judgement
    }

    fn judge(&self, spec: &ThresholdSpec) -> Judgement {
        judge(&spec.threshold, &View::of_window(&self.total, &self.times, self.length))
    }

    /// Keeps the last parts whose lengths add up to this, and no more.
    fn shorten(&mut self, window: Nanos) {
        while let Some((first, _)) = self.parts.front()
            && self.length.since(*first) >= window
            && let Some((length, tally)) = self.parts.pop_front()
        {
            self.total.take_counts(&tally);
            self.times.take(&tally.response_time);
            self.length = self.length - length;
            let censored = self.parts.iter().map(|(_, tally)| tally.censored.from).min();
            self.total.censored.from = censored.unwrap_or(Nanos::MAX);
        }
    }
}

impl ThresholdWatch {
    /// A watch over the thresholds of a plan, whose intervals have this length.
    pub fn new(specs: &[ThresholdSpec], outline: &Outline, interval: Nanos) -> Self {
        let watched = specs.iter().map(|spec| Watched {
            spec: spec.clone(),
            steps: outline.select(spec.scenario.as_deref(), spec.step.as_deref()),
            phase: spec.phase.as_deref().map(|name| times(outline, name)),
            window: Window::default(),
            windows: Windows::default(),
            worst: None,
            failed: None,
            open: None,
        });
        Self {
            watched: watched.collect(),
            interval: interval.max(Nanos(1)),
            measured_from: None,
            last_end: Nanos::ZERO,
            ended_by: None,
        }
    }

    /// Takes the next interval with its steps, notes in it how many thresholds did not hold, and says whether
    /// a threshold asks for the end of the run. It asks once.
    ///
    /// The warm-up is not examined, and the drain only for the last phase. Over the run so far, only those
    /// thresholds are judged that may end the run; it goes on where data are missing, or where more load may
    /// still bring a figure to its limit.
    pub fn look(&mut self, interval: &mut Interval) -> bool {
        if interval.warmup {
            return false;
        }
        if interval.drain {
            let last = self.last_end;
            self.watched.iter_mut().for_each(|watched| watched.look_at_drain(interval, last));
            return false;
        }
        self.last_end = interval.at;
        let from = *self.measured_from.get_or_insert(interval.at - interval.length);
        let since = interval.at.since(from);
        let mut ends = false;
        for (index, watched) in self.watched.iter_mut().enumerate() {
            let Some(judgement) = watched.look(interval, since, self.interval) else { continue };
            if judgement.is_shown() {
                interval.thresholds_failed += 1;
            }
            if watched.spec.abort_on_fail && judgement.is_shown() && self.ended_by.is_none() {
                self.ended_by = Some(index);
                watched.failed.get_or_insert(Failure { at: interval.at, judgement });
                ends = true;
            }
        }
        ends
    }

    /// The threshold that asked for the end of the run, by its place in the plan.
    pub const fn ended_by(&self) -> Option<usize> {
        self.ended_by
    }

    /// Returns the result of each threshold, in the order of the plan. `record` is the record of the whole
    /// run; the thresholds in it are not examined.
    pub fn finish(self, record: &RunRecord) -> Vec<ThresholdResult> {
        self.worker_status(record)
    }

    /// Returns the results of a run that goes on, from its record so far: those that it would have if it
    /// ended now.
    pub fn worker_status(&self, record: &RunRecord) -> Vec<ThresholdResult> {
        let result =
            |(index, watched): (usize, &Watched)| watched.result(record, self.ended_by == Some(index));
        self.watched.iter().enumerate().map(result).collect()
    }
}

impl Watched {
    /// Judges the threshold with this interval, as far as possible.
    fn look(&mut self, interval: &Interval, since: Nanos, length: Nanos) -> Option<Judgement> {
        let window = self.spec.window;
        if window.is_none() && !self.spec.abort_on_fail && !self.is_summed_up() {
            return None;
        }
        if !self.is_in_phase(interval.at) {
            return None;
        }
        let begins = since.since(interval.length);
        if window.is_some() && begins < self.spec.delay {
            return None;
        }
        self.window.add(self.tally(interval), interval.length);
        let Some(window) = window else {
            // Over the whole run, the sum is enough.
            self.window.parts.clear();
            let early = since < self.spec.delay || self.spec.may_still_be_met();
            if early || !self.spec.abort_on_fail {
                return None;
            }
            let waiting = self.waiting(interval);
            let judgement = self.window.judge_beside(&self.spec, &waiting);
            // The samples that are lacking are yet to come.
            return judgement.lacking.is_none().then_some(judgement);
        };
        // With an interval that the end of a phase cut short, a window may be longer by less than an
        // interval.
        self.window.shorten(window);
        // A last interval that was cut short makes no window of its own: the one before had its time.
        if self.window.length < window || interval.length < length {
            return None;
        }
        let judgement = self.judge_window();
        self.windows.judged += 1;
        if judgement.is_shown() {
            self.windows.failed += 1;
            self.failed.get_or_insert_with(|| Failure { at: interval.at, judgement: judgement.clone() });
        } else if !judgement.passed {
            self.windows.open += 1;
            self.open.get_or_insert_with(|| judgement.clone());
        }
        if self.worst.as_ref().is_none_or(|worst| self.spec.threshold.operator.is_worse(&judgement, worst)) {
            self.worst = Some(judgement.clone());
        }
        Some(judgement)
    }

    /// Adds requests that ended in the drain to the last phase, whose end is after `last`. Windows and rates
    /// leave them out.
    fn look_at_drain(&mut self, interval: &Interval, last: Nanos) {
        let sums = self.phase.is_some() && self.spec.window.is_none();
        if sums && self.is_in_phase(last) && !matches!(self.spec.threshold.metric, Metric::Rate) {
            self.window.add(self.tally(interval), Nanos::ZERO);
        }
    }

    /// Returns the merged tally of the watched steps in an interval.
    fn tally(&self, interval: &Interval) -> Tally {
        let mut tally = Tally::default();
        for step in &self.steps {
            if let Some(step) = interval.steps.get(*step as usize) {
                tally.merge(step);
            }
        }
        if matches!(self.spec.threshold.metric, Metric::Time(_, _, Among::All)) {
            tally.add_failed_times();
        }
        tally
    }

    /// Returns the times for which requests of the watched steps have waited at the end of an interval, if
    /// the threshold is about such times.
    fn waiting(&self, interval: &Interval) -> Delta {
        let mut waiting = Delta::default();
        if matches!(self.spec.threshold.metric, Metric::Time(TimeKind::Response, ..)) {
            let steps = self.steps.iter().filter_map(|step| interval.waiting.get(*step as usize));
            steps.for_each(|step| waiting.merge(step));
        }
        waiting
    }

    /// Returns `true` if an interval with this end belongs to the phase of the threshold.
    fn is_in_phase(&self, end: Nanos) -> bool {
        self.phase.is_none_or(|(begins, ends)| begins < end && end <= ends)
    }

    /// Returns `true` if the record of the run does not contain the figure, which is then summed up from
    /// intervals.
    fn is_summed_up(&self) -> bool {
        self.spec.is_rate_of_part() || self.phase.is_some()
    }

    fn judge_window(&self) -> Judgement {
        self.window.judge(&self.spec)
    }

    fn result(&self, record: &RunRecord, ended_run: bool) -> ThresholdResult {
        let so_far = self.is_summed_up().then(|| self.judge_window());
        let Self { spec, steps, windows, worst, failed, open, .. } = self;
        let (judgement, windows) = match spec.window {
            None => match failed {
                // A threshold that ended the run is judged by the failure that ended it, whatever the drain
                // brought.
                Some(Failure { judgement, .. }) if ended_run => (judgement.clone(), None),
                _ => (so_far.unwrap_or_else(|| super::judge_record(spec, steps, record)), None),
            },
            Some(_) => {
                let first = failed.as_ref().map(|failure| failure.at);
                let judgement = failed.as_ref().map(|failure| &failure.judgement);
                let judgement = judgement.or(open.as_ref()).or(worst.as_ref());
                let judgement = judgement.cloned().unwrap_or_else(|| {
                    Judgement::unknown(None, "no data: the run was shorter than a window")
                });
                (judgement, Some(Windows { first_failed_at: first, ..*windows }))
            }
        };
        let own_lag = judgement.observed.filter(|_| judgement.is_shown()).and_then(|observed| {
            let all = spec.scenario.is_none() && spec.step.is_none();
            let of_steps = if all { None } else { Some(super::merged(steps, record)) };
            let times = of_steps.as_ref().unwrap_or(&record.total);
            own_lag(&spec.threshold, (observed.value, judgement.beyond), times, record)
        });
        let enough = judgement.lacking.and_then(|lacking| enough(spec, lacking, record)).unwrap_or_default();
        ThresholdResult {
            spec: spec.clone(),
            passed: judgement.passed,
            observed: judgement.observed,
            reason: judgement.reason.map(|reason| format!("{reason}{enough}")),
            unreached: judgement.unreached,
            series: None,
            windows,
            ended_run,
            failed_by_answers: !judgement.passed && judgement.by_answers,
            own_lag,
        }
    }
}

/// The length that would have had enough samples, in words: that of the run, or of what the threshold looks
/// at in it. `None` where no length has.
fn enough(spec: &ThresholdSpec, Lacking { needed, present }: Lacking, record: &RunRecord) -> Option<String> {
    let phase = spec.phase.as_ref().and_then(|name| record.phases.iter().find(|phase| phase.name == *name));
    let length = spec.window.or(phase.map(|phase| phase.length)).unwrap_or(record.duration);
    // A load that did not last for its length would not last longer either.
    let is_cut =
        record.early_end.is_some() || record.planned.is_some_and(|planned| record.duration < planned);
    if needed == u64::MAX || present == 0 || length == Nanos::ZERO || is_cut {
        return None;
    }
    let seconds = length.as_secs_f64() * needed as f64 / present as f64;
    let what = match (spec.window, &spec.phase) {
        (Some(_), _) => "windows of ",
        (None, Some(_)) => "a phase of ",
        (None, None) => "",
    };
    Some(format!(": at this rate {what}{} would do", time_text(Nanos::from_secs(seconds.ceil() as u64))))
}

/// Begin and end of a phase; of an unknown one, a time in which nothing is.
fn times(outline: &Outline, name: &str) -> (Nanos, Nanos) {
    let phase = outline.phases.iter().find(|phase| phase.name == name);
    phase.map_or((Nanos::MAX, Nanos::MAX), |phase| (phase.at, phase.end()))
}

impl ThresholdSpec {
    /// Returns `true` for the rate of some steps only. Responses to these in the drain are visible in
    /// intervals only.
    pub(super) const fn is_rate_of_part(&self) -> bool {
        matches!(self.threshold.metric, Metric::Rate) && (self.scenario.is_some() || self.step.is_some())
    }

    /// Returns `true` if the figure of a run may still reach its limit as the run goes on, because it only
    /// grows.
    const fn may_still_be_met(&self) -> bool {
        matches!(self.threshold.metric, Metric::Count(_))
            && matches!(self.threshold.limit, super::text::Limit::Count(_))
            && matches!(
                self.threshold.operator,
                Operator::Greater | Operator::AtLeast | Operator::Equal | Operator::Unequal
            )
    }
}

impl Operator {
    /// Returns `true` if the first judgement is further on the wrong side than the second. One without a
    /// value is worst.
    fn is_worse(self, first: &Judgement, second: &Judgement) -> bool {
        let (Some(first), Some(second)) = (first.observed, second.observed) else {
            return first.observed.is_none() && second.observed.is_some();
        };
        match self {
            Self::Less | Self::AtMost => first.value > second.value,
            Self::Greater | Self::AtLeast => first.value < second.value,
            Self::Equal | Self::Unequal => true,
        }
    }
}
