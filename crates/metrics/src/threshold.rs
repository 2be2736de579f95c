//! Thresholds: conditions on a run, over all of it or in every window.
//!
//! A threshold that cannot be shown to hold is not met: without data, with too few values for its percentile,
//! and where timeouts leave the figure open. It has failed only where a figure shows that, see
//! [`ThresholdResult::is_shown`]. Figures are those of the measured part, without the warm-up. A
//! percentile is the one that the report shows, less than 0.1 % too large; all other comparisons are exact.

mod answer;
mod decimal;
mod judgement;
mod own;
mod own_lag;
mod text;
mod watch;

use std::fmt;

use plimsoll_core::Nanos;

pub use self::answer::{Answer, DecidingSeries, SeriesValue, observed_words};
pub use self::decimal::Decimal;
use self::judgement::{Judgement, Times, Values, View, judge};
pub use self::judgement::{Observed, Unit};
pub use self::own::{OwnFigure, SeriesFigure};
pub use self::own_lag::OwnLag;
pub(crate) use self::own_lag::lag_alone_breaks;
pub use self::text::{
    Among, Counted, Figure, LONGEST_QUERY, Limit, Metric, Number, Operator, Percentile, Span, Threshold,
    ThresholdError, TimeKind, Total,
};
pub(crate) use self::text::{Shown, parse_time, time_text};
pub use self::watch::ThresholdWatch;
use crate::{Outline, RunRecord, StepRecord};
use plimsoll_histogram::Censored;
use serde::{Deserialize, Serialize};

/// A threshold, its subject, and the time from which it counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThresholdSpec {
    /// The condition that has to hold.
    pub threshold: Threshold,
    /// Only of this scenario, by its name.
    pub scenario: Option<String>,
    /// Only of this step, by its name; without a scenario, of all steps that are so called.
    pub step: Option<String>,
    /// Only of this phase, by its name: of the requests that end in it, those of the drain with the last one
    /// that was under way (except for rates).
    pub phase: Option<String>,
    /// In every sliding window of this length: a multiple of the plan's interval. `None`: over the run.
    pub window: Option<Nanos>,
    /// Windows that begin earlier after the start of the measured part are not examined; over the run, it
    /// does not end the run before.
    pub delay: Nanos,
    /// Set to end the run as soon as the threshold is shown not to hold.
    pub abort_on_fail: bool,
}

/// The result of one threshold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThresholdResult {
    /// The threshold.
    pub spec: ThresholdSpec,
    /// `true` if the threshold was met.
    pub passed: bool,
    /// The figure over the run; of windows, the first that failed, else the first that shows nothing, else
    /// the worst.
    pub observed: Option<Observed>,
    /// Reason why it could not be shown to hold.
    pub reason: Option<String>,
    /// Set where a percentile of what was due lies among the requests that were not answered well, so that no
    /// figure can be given: their shares, in words.
    #[serde(default)]
    pub unreached: Option<String>,
    /// Of a query, the series that decided; `None` without an answer that has a number.
    #[serde(default)]
    pub series: Option<DecidingSeries>,
    /// The windows that were examined; `None` over the run.
    pub windows: Option<Windows>,
    /// `true` if the threshold ended the run early.
    pub ended_run: bool,
    /// `true` if errors that the target itself [answered](plimsoll_core::ErrorClass::is_answer) are enough to
    /// fail the threshold. It has then failed whether or not the measurement is valid.
    pub failed_by_answers: bool,
    /// Set if it fails by the generator's own start lag, and would hold without that. It has then not been
    /// shown to fail.
    pub own_lag: Option<OwnLag>,
}

/// The windows of a threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Windows {
    /// Number of windows that were judged.
    pub judged: u64,
    /// Number of windows that failed.
    pub failed: u64,
    /// Number of windows that showed neither that it holds nor that it does not.
    #[serde(default)]
    pub open: u64,
    /// The end of the first that did, since the start of the run, warm-up included.
    pub first_failed_at: Option<Nanos>,
}

/// A failure that was seen while the run went on.
#[derive(Clone, Debug)]
struct Failure {
    at: Nanos,
    judgement: Judgement,
}

impl ThresholdResult {
    /// Returns the figure in words, in which it can be told from the limit.
    pub fn observed_text(&self) -> Option<String> {
        self.observed.map(|observed| observed.beside(self.spec.threshold.limit))
    }

    /// Returns `true` if it is shown not to hold. One that is not met otherwise merely could not be shown to
    /// hold.
    pub const fn is_shown(&self) -> bool {
        !self.passed && (self.reason.is_none() || self.failed_by_answers)
    }
}

impl ThresholdSpec {
    /// Over the whole run and all steps.
    pub const fn new(threshold: Threshold) -> Self {
        Self {
            threshold,
            scenario: None,
            step: None,
            phase: None,
            window: None,
            delay: Nanos::ZERO,
            abort_on_fail: false,
        }
    }

    /// Returns `true` if the record of a whole run has its figure. Windows, phases and the rate of a part
    /// of the plan are summed up from the intervals while the run goes on; queries are answered by a server.
    pub const fn is_of_record(&self) -> bool {
        self.window.is_none()
            && self.phase.is_none()
            && !self.is_rate_of_part()
            && !matches!(self.threshold.metric, Metric::Query(_))
    }

    /// Returns `true` if requests without an answer so far may end the run by it: how long they have waited
    /// is looked at while the run goes on.
    pub const fn looks_at_waiting(&self) -> bool {
        self.abort_on_fail
            && self.window.is_none()
            && matches!(self.threshold.metric, Metric::Time(TimeKind::Response, ..))
    }

    /// Returns the scope of the threshold in words: `of scenario "buy", in every 10 s`. Empty for the whole
    /// run.
    pub fn scope(&self) -> String {
        let mut parts = Vec::new();
        match (&self.step, &self.scenario) {
            (Some(step), Some(scenario)) => {
                parts.push(format!("of step \"{step}\" of scenario \"{scenario}\""));
            }
            (Some(step), None) => parts.push(format!("of step \"{step}\"")),
            (None, Some(scenario)) => parts.push(format!("of scenario \"{scenario}\"")),
            (None, None) => {}
        }
        if let Some(phase) = &self.phase {
            parts.push(format!("in phase \"{phase}\""));
        }
        if let Some(window) = self.window {
            parts.push(format!("in every {}", plimsoll_core::figure::nanos(window)));
        }
        parts.join(", ")
    }

    /// Checks that the threshold can be judged in a run of a plan with this outline and interval.
    ///
    /// # Errors
    /// The first thing that makes no sense, as a place in the canonical spelling of the threshold.
    pub fn check(&self, outline: &Outline, interval: Nanos) -> Result<(), ThresholdError> {
        let text = self.threshold.to_string();
        let error = |message: String, hint: String| Err(ThresholdError::new(0..text.len(), message, hint));
        if self.scenario.is_some() && outline.select(self.scenario.as_deref(), None).is_empty() {
            let names: Vec<_> = outline.scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
            let message =
                format!("there is no scenario \"{}\"", self.scenario.as_deref().unwrap_or_default());
            return error(message, format!("write one of {}", names.join(", ")));
        }
        if outline.select(self.scenario.as_deref(), self.step.as_deref()).is_empty() {
            let names: Vec<_> = outline.steps.iter().map(String::as_str).collect();
            let message = format!("there is no step \"{}\"", self.step.as_deref().unwrap_or_default());
            return error(message, format!("write one of {}", names.join(", ")));
        }
        if let Metric::Own(own) = &self.threshold.metric
            && let Some((message, hint)) = own::check(own, self.threshold.limit, &outline.metrics)
        {
            return error(message, hint);
        }
        let part = self.scenario.is_some() || self.step.is_some();
        if self.query().is_some() && (part || self.phase.is_some() || self.window.is_some()) {
            let hint =
                "leave out scenario, step, phase and window: the query chooses its series and its time";
            return error(format!("`{text}` is asked of the server at the end of the run"), hint.to_owned());
        }
        let (whole, live) = match &self.threshold.metric {
            Metric::Time(TimeKind::Response, ..) => (false, true),
            Metric::Time(TimeKind::Connect | TimeKind::Tls, ..) => (true, false),
            Metric::Time(..) => (false, false),
            Metric::Count(Counted::Total(Total::Dropped)) => (true, false),
            Metric::Rate if matches!(self.threshold.limit, Limit::OfTarget(_)) => (true, false),
            Metric::Own(_) => (true, false),
            _ => (false, true),
        };
        if part && whole {
            let message = format!("`{text}` is known of the whole run only");
            return error(message, "leave out scenario and step".to_owned());
        }
        if let Some(name) = &self.phase {
            let measured = outline.phases.iter().filter(|phase| phase.measured);
            let names: Vec<_> = measured.map(|phase| phase.name.as_str()).collect();
            if !names.contains(&name.as_str()) {
                let message = format!("there is no measured phase \"{name}\"");
                let hint = match names.as_slice() {
                    [] => "the plan has no phases: leave it out".to_owned(),
                    names => format!("write one of {}", names.join(", ")),
                };
                return error(message, hint);
            }
            if !live {
                let message = format!("`{text}` is known of the whole run only");
                return error(message, "leave out the phase".to_owned());
            }
        }
        if self.window.is_some() && !live {
            let message = format!("`{text}` is known over the whole run only");
            return error(message, "leave out the window".to_owned());
        }
        if self.abort_on_fail && !live {
            let message = format!("`{text}` is known at the end only");
            return error(message, "leave out abort_on_fail (--abort-on-fail)".to_owned());
        }
        match self.window {
            Some(window) if window == Nanos::ZERO || !window.0.is_multiple_of(interval.0.max(1)) => {
                let shown = plimsoll_core::figure::nanos;
                let message =
                    format!("a window of {} is not made of intervals of {}", shown(window), shown(interval));
                error(message, "use a multiple of the interval, or another --interval".to_owned())
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for ThresholdSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scope = self.scope();
        let space = if scope.is_empty() { "" } else { " " };
        write!(f, "{}{space}{scope}", self.threshold)
    }
}

/// Judges thresholds by the record of a whole run alone. One with a window has no data: see
/// [`ThresholdWatch`].
pub fn judge_thresholds(
    specs: &[ThresholdSpec],
    outline: &Outline,
    record: &RunRecord,
) -> Vec<ThresholdResult> {
    ThresholdWatch::new(specs, outline, Nanos::from_secs(1)).finish(record)
}

/// Judges one threshold over the whole run.
fn judge_record(spec: &ThresholdSpec, steps: &[u32], record: &RunRecord) -> Judgement {
    if let Metric::Own(own) = &spec.threshold.metric {
        return own::judge(&spec.threshold, own, &record.metrics, record.duration);
    }
    let all = spec.scenario.is_none() && spec.step.is_none();
    let is_of_ended = matches!(spec.threshold.metric, Metric::Time(_, _, Among::All));
    if all {
        let accounting = &record.accounting;
        let completed = record.completed_in_window;
        let ended = is_of_ended.then(|| record.total.with_failed_times());
        let total = ended.as_ref().unwrap_or(&record.total);
        let mut view = View::of_record(total, accounting.started, completed, record.duration);
        view.dropped = Some(accounting.dropped);
        view.never_started = accounting.never_started.saturating_sub(accounting.without_data);
        view.scheduled =
            record.target_per_second.map(|_| accounting.scheduled.saturating_sub(accounting.since_warmup));
        let exact = |values| Some(Times { values: Values::Recorded(values), censored: Censored::default() });
        view.times[TimeKind::Connect as usize] = exact(&record.connections.connect_time);
        view.times[TimeKind::Tls as usize] = exact(&record.connections.tls_time);
        return judge(&spec.threshold, &view);
    }
    let total = merged(steps, record);
    let total = if is_of_ended { total.with_failed_times() } else { total };
    // Every started request has a start lag. A rate is not judged here.
    let (started, completed) = (total.start_lag.count(), total.completed());
    judge(&spec.threshold, &View::of_record(&total, started, completed, record.duration))
}

/// The sum of some steps.
pub(crate) fn merged(steps: &[u32], record: &RunRecord) -> StepRecord {
    let mut total = StepRecord::default();
    for step in steps.iter().filter_map(|step| record.steps.get(*step as usize)) {
        total.merge(step);
    }
    total
}
