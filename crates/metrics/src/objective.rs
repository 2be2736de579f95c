//! Thresholds as objectives: the share of requests that may be bad.
//!
//! `p99 < 10 ms` is the same as "fewer than 1 % of the responses take 10 ms or longer", and an error rate is
//! a share anyway. As shares they can be counted in every interval of a run, and be judged with an interval
//! of confidence (`plimsoll_statistics::share_interval`).

use plimsoll_core::Nanos;
use plimsoll_histogram::{Delta, Histogram};
use plimsoll_statistics::SliceCount;

use crate::threshold::{
    Among, Counted, Figure, Limit, Metric, Operator, Threshold, ThresholdSpec, TimeKind, Total,
    lag_alone_breaks, merged,
};
use crate::{Outline, RunRecord, Tally};

/// Part of a limit from which a start lag may decide whether it is kept.
const BORNE: u64 = 10;

/// A threshold as a share of bad requests that has to stay below a limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    /// The threshold.
    pub spec: ThresholdSpec,
    /// Bad requests have to be fewer than this share.
    pub limit: f64,
    bad: Bad,
    steps: Vec<usize>,
    /// The number of steps of the plan.
    all_steps: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Bad {
    /// Of these requests, those that took this many nanoseconds or longer; timed-out requests are bad however
    /// long they took, and of those that were due failed ones are as well.
    Slow(u64, Among),
    /// Requests that failed or timed out.
    Failed,
    /// Requests that timed out.
    TimedOut,
    /// Requests of streamed steps that did not hold the bounds of the goodput.
    NotGood,
}

impl Objective {
    /// The objective that a threshold stands for in a run with this outline.
    ///
    /// # Errors
    /// The reason why it is not an objective, as a hint: only upper limits of response-time percentiles, of
    /// the error rate and of the timeout rate are shares.
    pub fn new(spec: &ThresholdSpec, outline: &Outline) -> Result<Self, &'static str> {
        const HINT: &str = "use an upper limit of a percentile of the response time, such as 'p99<10ms', \
                            'error_rate<1%', or 'goodput>99%'";
        let Threshold { metric, operator, limit } = &spec.threshold;
        if spec.query().is_some() {
            return Err("judge it in runs: a Prometheus server is asked at their end, and not about trials");
        }
        let is_goodput = *metric == Metric::Count(Counted::Total(Total::Goodput));
        let is_lower = matches!(operator, Operator::Greater | Operator::AtLeast);
        let is_upper = matches!(operator, Operator::Less | Operator::AtMost);
        let is_share_limit = is_upper || is_goodput && is_lower;
        if !is_share_limit {
            return Err(HINT);
        }
        if spec.window.is_some() || spec.abort_on_fail || spec.delay.0 > 0 {
            return Err("leave out window, delay and abort_on_fail: trials are judged as a whole");
        }
        let (bad, limit) = match (metric, *limit) {
            (&Metric::Time(TimeKind::Response, Figure::Percentile(p), among), Limit::Time(limit)) => {
                (Bad::Slow(limit.0, among), 1.0 - p.p() / 100.0)
            }
            (Metric::ErrorRate, Limit::Percent(share)) => (Bad::Failed, share.to_f64() / 100.0),
            (Metric::TimeoutRate, Limit::Percent(share)) => (Bad::TimedOut, share.to_f64() / 100.0),
            (_, Limit::Percent(share)) if is_goodput && is_lower => {
                (Bad::NotGood, 1.0 - share.to_f64() / 100.0)
            }
            _ => return Err(HINT),
        };
        if limit <= 0.0 {
            return Err(
                "leave room for chance: a share of 0 cannot be shown to hold, however long one tries",
            );
        }
        let steps = outline.select(spec.scenario.as_deref(), spec.step.as_deref());
        let steps = steps.into_iter().map(|step| step as usize).collect();
        Ok(Self { spec: spec.clone(), limit, bad, steps, all_steps: outline.steps.len() })
    }

    /// The share of the plan's steps whose requests it is about.
    pub fn share_of_steps(&self) -> f64 {
        self.steps.len() as f64 / self.all_steps.max(1) as f64
    }

    /// The longest response time that is not bad, in nanoseconds, if it is about times.
    pub const fn time_limit(&self) -> Option<u64> {
        match self.bad {
            Bad::Slow(limit, _) => Some(limit),
            Bad::Failed | Bad::TimedOut | Bad::NotGood => None,
        }
    }

    /// Returns `true` if these start lags, which are part of response times, are far inside the limit: less
    /// than a tenth of it at the percentile that is judged. Never so if it is not about times.
    pub fn bears(&self, start_lag: &Histogram) -> bool {
        let Bad::Slow(limit, _) = self.bad else { return false };
        start_lag.percentile(100.0 * (1.0 - self.limit)).is_none_or(|lag| lag < limit / BORNE)
    }

    /// Returns `true` if a trial breaks the objective by the generator's own start lag alone: it tells
    /// nothing about the target. Never so if the objective is not about times.
    pub fn breaks_by_own_lag(&self, record: &RunRecord) -> bool {
        let Bad::Slow(limit, _) = self.bad else { return false };
        let steps: Vec<u32> = self.steps.iter().map(|step| *step as u32).collect();
        lag_alone_breaks(&merged(&steps, record), record, Nanos(limit), self.limit)
    }

    /// Counts the requests that ended in an interval; `steps` are its tallies, step by step.
    pub fn portion(&self, steps: &[Tally]) -> SliceCount {
        let mut portion = SliceCount::default();
        for tally in self.steps.iter().filter_map(|&step| steps.get(step)) {
            portion.merge(match self.bad {
                Bad::Slow(limit, among) => {
                    let slow = |times: &Delta| -> u64 {
                        times.values().filter(|(value, _)| *value >= limit).map(|(_, count)| count).sum()
                    };
                    // Timed-out requests are among the times, as lower bounds.
                    let bad = slow(&tally.response_time).max(tally.timed_out);
                    let (failed, bad_failed) = match among {
                        Among::Due => (tally.failed, tally.failed),
                        Among::Good => (0, 0),
                        Among::All => (tally.failed, slow(&tally.failed_time)),
                    };
                    let count = tally.response_time.count() + failed;
                    SliceCount { count, marked: bad + bad_failed }
                }
                Bad::Failed => SliceCount { count: tally.ended(), marked: tally.failed + tally.timed_out },
                Bad::NotGood => SliceCount { count: tally.judged, marked: tally.judged - tally.good },
                Bad::TimedOut => SliceCount { count: tally.ended(), marked: tally.timed_out },
            });
        }
        portion
    }
}
