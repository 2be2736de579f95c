//! Thresholds that only the generator's own start lag breaks.

use plimsoll_core::Nanos;
use plimsoll_histogram::Histogram;

use super::text::{Figure, Limit, Metric, Operator, Threshold, TimeKind};
use crate::{Model, RunRecord, StepRecord, WorkerRecord};
use serde::{Deserialize, Serialize};

/// Start lag that is taken as harmless where service times are not known, as the verdict takes it.
const FLOOR: Nanos = Nanos::from_micros(20);
/// Share of a response time from which a start lag explains it where service times are not known.
const SHARE: f64 = 0.1;

/// The generator's part in a threshold on response times that does not hold, and would without its lag: the
/// same figure of start lags and of service times, over the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnLag {
    /// The figure of start lags.
    pub start_lag: Nanos,
    /// The figure of service times; `None` where they are not known, as while a run goes on.
    pub service_time: Option<Nanos>,
}

/// Returns the generator's part in a failed threshold; `None` if it fails without that, too.
///
/// `times` are those of the threshold's steps, `observed` is the figure in nanoseconds, and `beyond` the
/// number of values that may lie beyond the limit, for percentiles. Where service times alone break the limit
/// it is the target's, and so it is where arrivals that waited for a connection may do it: that wait is start
/// lag as well, but the target decides when it begins and ends. A window or a phase has no service times of
/// its own. Its threshold is explained if those of the whole run have no more values beyond the limit than
/// the window may.
pub(super) fn own_lag(
    threshold: &Threshold,
    (observed, beyond): (f64, Option<u64>),
    times: &StepRecord,
    record: &RunRecord,
) -> Option<OwnLag> {
    let (&Metric::Time(TimeKind::Response, figure, _), Limit::Time(limit)) =
        (&threshold.metric, threshold.limit)
    else {
        return None;
    };
    let upper = matches!(threshold.operator, Operator::Less | Operator::AtMost);
    if !upper || record.model == Model::Closed {
        return None;
    }
    let start_lag = figure_of(&times.start_lag, figure)?;
    if times.service_time.is_empty() {
        let harmless = Nanos((observed * SHARE) as u64).max(FLOOR);
        let explained = start_lag > harmless && start_lag.0 as f64 > observed - limit.0 as f64;
        return explained.then_some(OwnLag { start_lag, service_time: None });
    }
    let service_time = figure_of(&times.service_time, figure)?;
    let holds = |value: Nanos| threshold.operator.holds(value.cmp(&limit));
    let waits = Waits::of(record);
    let holds_without = match (figure, beyond) {
        (Figure::Percentile(_), Some(beyond)) => {
            let waited = waits.beyond(limit, times);
            let all = times.service_time.count();
            let rank = all.saturating_add(waited).saturating_sub(beyond);
            rank <= all && times.service_time.value_at(rank.max(1)).is_some_and(|value| holds(Nanos(value)))
        }
        // The waits lower the mean by at most their length times the share of requests that came during them.
        (Figure::Mean, _) => holds(service_time + Nanos((waits.share * waits.longest.0 as f64) as u64)),
        _ => holds(service_time) && waits.longest.0 as f64 <= observed - service_time.0 as f64,
    };
    (holds_without && start_lag > Nanos::ZERO)
        .then_some(OwnLag { start_lag, service_time: Some(service_time) })
}

/// Returns `true` if more of the response times than this share reach a limit, and would not without the
/// generator's own start lag. Never so of a closed run, nor where service times are not known.
pub(crate) fn lag_alone_breaks(times: &StepRecord, record: &RunRecord, limit: Nanos, share: f64) -> bool {
    let (response, service) = (&times.response_time, &times.service_time);
    if record.model == Model::Closed || service.is_empty() {
        return false;
    }
    let slow = |times: &Histogram| times.count_above(limit.0.saturating_sub(1));
    let allowed = |times: &Histogram| (times.count() as f64 * share) as u64;
    let waited = Waits::of(record).beyond(limit, times);
    slow(response) > allowed(response) && slow(service) + waited <= allowed(service)
}

fn figure_of(times: &Histogram, figure: Figure) -> Option<Nanos> {
    let value = match figure {
        Figure::Percentile(percentile) => times.percentile(percentile.p()),
        Figure::Min => times.min(),
        Figure::Max => times.max(),
        Figure::Mean => times.mean().map(|mean| mean as u64),
        Figure::Stdev => times.stdev().map(|stdev| stdev as u64),
    };
    value.map(Nanos)
}

/// Time for which due arrivals waited for a connection, without that in which the generator had no processor
/// and could not have taken one.
struct Waits {
    /// The longest that one may have been.
    longest: Nanos,
    /// The share of the workers' time.
    share: f64,
}

impl Waits {
    fn of(record: &RunRecord) -> Self {
        let delayed = |worker: &WorkerRecord| worker.run_delay.unwrap_or_default();
        let delayed = record.workers.iter().map(delayed).fold(Nanos::ZERO, |sum, delay| sum + delay);
        let longest = record.connections.blocked.since(delayed);
        let all = record.duration.as_secs_f64() * record.workers.len().max(1) as f64;
        let share = if all > 0.0 { (longest.as_secs_f64() / all).min(1.0) } else { 0.0 };
        Self { longest, share }
    }

    /// The most arrivals that a wait, before a usual service time, can have taken beyond a limit.
    fn beyond(&self, limit: Nanos, times: &StepRecord) -> u64 {
        let usual = Nanos(times.service_time.percentile(50.0).unwrap_or(0));
        self.at_least(limit.since(usual).max(FLOOR), times.start_lag.count())
    }

    /// The most arrivals of this many that can have waited this long: those that came during a wait, and
    /// the first of each.
    fn at_least(&self, wait: Nanos, arrivals: u64) -> u64 {
        let firsts = self.longest.0 / wait.0.max(1);
        let during = if firsts == 0 { 0 } else { (self.share * arrivals as f64).ceil() as u64 };
        during.saturating_add(firsts).min(arrivals)
    }
}
