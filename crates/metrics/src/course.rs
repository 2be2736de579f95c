//! The course of a run over time: its steady state, and requests that pile up.

use plimsoll_core::{Nanos, figure};
use plimsoll_statistics::{FEWEST_STEADY_SLICES, Growth, Little, Steady, SteadyPoint, Unsteady, steady};

use crate::{Interval, Model, RunRecord};

/// Standard deviations of a number of arrivals from which the load was changed.
const CHANCE: f64 = 5.0;

/// The start of a run's steady state, if it reached one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Steadiness {
    /// From this time on, since the start of the run. That of the measured part if it was steady throughout.
    From(Nanos),
    /// Not within the run.
    Never {
        /// The reason.
        evidence: String,
    },
    /// Unknown.
    Unknown {
        /// The reason.
        reason: String,
    },
}

/// The intervals of the measured part that are whole.
fn whole(record: &RunRecord) -> Vec<&Interval> {
    let measured: Vec<&Interval> = record.measured_cells().collect();
    let longest = measured.iter().map(|interval| interval.length).max().unwrap_or_default();
    measured.into_iter().filter(|interval| interval.length.0 * 2 > longest.0).collect()
}

/// `count` per second of an interval.
fn rate(count: u64, interval: &Interval) -> f64 {
    count as f64 / interval.length.as_secs_f64()
}

/// Returns `true` if the same load was asked for throughout. Under a changing load no steady state is to be
/// expected.
fn is_constant(record: &RunRecord, intervals: &[&Interval]) -> bool {
    if !record.rate_changes.is_empty() {
        return false;
    }
    let points: Vec<SteadyPoint> = intervals
        .iter()
        .map(|interval| {
            let scheduled = rate(interval.scheduled, interval);
            let at = (interval.at - interval.length).as_secs_f64();
            SteadyPoint { at, throughput: scheduled, p50: scheduled, p99: scheduled }
        })
        .collect();
    let settles = !matches!(steady(&points), Steady::Never(_) | Steady::From(0.1..));
    record.model == Model::Closed || (settles && !changes(intervals))
}

/// Returns `true` if more arrivals were due in the last third of some intervals than in the first, or fewer,
/// by more than chance makes of as many.
fn changes(intervals: &[&Interval]) -> bool {
    let third = intervals.len().div_ceil(3);
    let due = |part: &[&Interval]| part.iter().map(|interval| interval.scheduled).sum::<u64>() as f64;
    let (first, last) = (due(&intervals[..third]), due(&intervals[intervals.len() - third..]));
    (last - first).abs() > CHANCE * f64::sqrt(first + last) && intervals.len() > 1
}

/// Judges the intervals of the measured part by throughput, p50 and p99 of the response time: see
/// [`plimsoll_statistics::steady`].
pub fn steadiness(record: &RunRecord) -> Steadiness {
    let intervals = whole(record);
    let unknown = |reason: String| Steadiness::Unknown { reason };
    if !is_constant(record, &intervals) {
        return unknown("the load itself changed".to_owned());
    }
    let points: Vec<SteadyPoint> = intervals
        .iter()
        .map(|interval| {
            let [p50, _, p99, ..] = interval.response_time.unwrap_or_default();
            SteadyPoint {
                at: (interval.at - interval.length).as_secs_f64(),
                throughput: rate(interval.completed, interval),
                p50: p50 as f64,
                p99: p99 as f64,
            }
        })
        .collect();
    match steady(&points) {
        Steady::From(at) => Steadiness::From(Nanos::from_secs_f64(at).max(record.warmup)),
        Steady::Never(Unsteady::Settles(series, at)) => {
            let at = figure::nanos(Nanos::from_secs_f64(at));
            let evidence = format!("never steady: its {} had not settled at {at} of the run", series.name());
            Steadiness::Never { evidence }
        }
        Steady::Never(Unsteady::Drifts(series, change)) => {
            let way = if change > 0.0 { "rose" } else { "fell" };
            let share = figure::share(change.abs());
            Steadiness::Never { evidence: format!("never steady: its {} {way} by {share}", series.name()) }
        }
        Steady::TooShort(have) => {
            unknown(format!("takes {FEWEST_STEADY_SLICES} whole intervals with responses, there are {have}"))
        }
    }
}

/// Returns the growth of the backlog if requests piled up under a constant load of the open model. The
/// backlog is the requests in flight, plus those due and not started as far as they are known interval by
/// interval. See [`plimsoll_statistics::growth`].
pub fn growth(record: &RunRecord) -> Option<Growth> {
    let intervals = whole(record);
    if record.model != Model::Open || !is_constant(record, &intervals) || record.awaits_pushes().is_some() {
        return None;
    }
    if fills_up(record, &intervals) {
        return None;
    }
    let first = record.intervals.iter().rfind(|interval| interval.warmup);
    let mut counts = vec![first.map_or(0.0, |interval| interval.in_flight as f64)];
    // The arrivals of an interval can be compared with its requests only if each arrival is one request and
    // none was given up.
    let tells_backlog = record.requests_per_arrival() <= 1.0 && record.accounting.dropped == 0;
    let mut backlog = 0.0;
    let mut scheduled = 0;
    for interval in &intervals {
        if tells_backlog {
            backlog += interval.scheduled as f64 - interval.started as f64;
        }
        scheduled += interval.scheduled;
        counts.push(interval.in_flight as f64 + f64::max(backlog, 0.0));
    }
    let length = intervals.iter().map(|interval| interval.length.as_secs_f64()).sum::<f64>();
    let spacing = length / intervals.len().max(1) as f64;
    plimsoll_statistics::growth(&counts, spacing, scheduled as f64 / length)
}

/// Returns `true` if the requests in flight may only have grown because the slowest answers had not come yet:
/// they take more than half of the run, and the median of the times does not rise.
pub(crate) fn fills_up(record: &RunRecord, intervals: &[&Interval]) -> bool {
    let slow = slow_answer(record).unwrap_or(0).saturating_mul(2);
    slow > (record.warmup + record.duration).0 && rise(intervals).is_none()
}

/// The medians of the response times in the first third of some intervals and in the last, if they double
/// from one to the other, and rise in at least half of the steps.
pub(crate) fn rise(intervals: &[&Interval]) -> Option<(Nanos, Nanos)> {
    let medians: Vec<u64> =
        intervals.iter().filter_map(|interval| interval.response_time.map(|[p50, ..]| p50)).collect();
    let third = medians.len().div_ceil(3);
    let mean = |part: &[u64]| part.iter().sum::<u64>() / part.len().max(1) as u64;
    let (first, last) = (mean(&medians[..third]), mean(&medians[medians.len() - third..]));
    let up = medians.windows(2).filter(|pair| pair[1] > pair[0]).count();
    let rises = medians.len() >= 2 && last >= first.saturating_mul(2) && up * 2 >= medians.len() - 1;
    rises.then_some((Nanos(first), Nanos(last)))
}

/// Requests in flight from which their counts say as much as their times.
const FEWEST_COUNTED: f64 = 10.0;
/// Factor between both means from which the times have left requests out.
const CUT: f64 = 1.2;

/// Number of answers among the service times, as the lowest of them. The others are lower bounds, of timeouts
/// and of waits to the end, which are longer than nearly every answer.
pub(crate) fn answered(record: &RunRecord) -> u64 {
    record.total.service_time.count().min(record.total.ok)
}

/// The time within which 99 % of the answers came, in nanoseconds; `None` without an answer.
pub(crate) fn slow_answer(record: &RunRecord) -> Option<u64> {
    let times = &record.total.service_time;
    let answered = answered(record);
    if answered == 0 { None } else { times.value_at((answered as f64 * 0.99).ceil() as u64) }
}

/// The longest time between a request and its answer, in nanoseconds; `None` without an answer.
pub(crate) fn longest_answer(record: &RunRecord) -> Option<u64> {
    let times = &record.total.service_time;
    let answered = answered(record);
    if answered == 0 { None } else { times.value_at(answered) }
}

/// Mean number of requests in flight over the measured part, by Little's law: the times that they spent
/// between start and end, regardless of their outcome, by the length of that part.
pub fn mean_in_flight(record: &RunRecord) -> f64 {
    let total = &record.total;
    let times = total.response_time.sum() + total.failed_response_time.sum();
    let inside = times.saturating_sub(total.start_lag.sum());
    if record.duration == Nanos::ZERO { 0.0 } else { inside as f64 / record.duration.0 as f64 }
}

/// Mean number of requests that had begun and not ended over the measured part, those that waited for a
/// connection among them: [by their times](mean_in_flight), or where many of them were begun before the part
/// or end after it, by the counts at the ends of its intervals.
pub fn mean_occupancy(record: &RunRecord) -> f64 {
    let by_times = mean_in_flight(record);
    let mut before =
        record.intervals.iter().rfind(|interval| interval.warmup).map_or(0, |last| last.in_flight);
    let (mut area, mut length) = (0.0, 0.0);
    for interval in record.intervals.iter().filter(|interval| !interval.warmup && !interval.drain) {
        let seconds = interval.length.as_secs_f64();
        area += f64::midpoint(before as f64, interval.in_flight as f64) * seconds;
        length += seconds;
        before = interval.in_flight;
    }
    let by_counts = if length > 0.0 { area / length } else { 0.0 };
    // Few counts of few requests say less than the times.
    let is_cut = by_counts >= FEWEST_COUNTED && by_counts > CUT * by_times;
    if is_cut { by_counts } else { by_times }
}

/// Little's law on a run of the open model: see [`plimsoll_statistics::little`]. The time in the system is
/// that from the start of a request to its end, regardless of its outcome: response time without start lag.
pub fn little(record: &RunRecord) -> Option<Little> {
    if record.model != Model::Open || record.duration == Nanos::ZERO {
        return None;
    }
    let counts: Vec<f64> = whole(record).iter().map(|interval| interval.in_flight as f64).collect();
    let rate = record.accounting.started as f64 / record.duration.as_secs_f64();
    let time = if rate > 0.0 { mean_in_flight(record) / rate } else { 0.0 };
    plimsoll_statistics::little(&counts, rate, time)
}

#[cfg(test)]
mod tests {
    use crate::{Interval, Model};

    use super::*;

    /// Symptom: a trial of an overloaded server had 56 requests in flight where there were 384 and more: most
    /// were begun before its measured part, or ended after it.
    #[test]
    fn requests_of_before_and_after_are_in_flight_too() {
        let interval = |in_flight, warmup| Interval {
            in_flight,
            warmup,
            length: Nanos::from_millis(500),
            ..Interval::default()
        };
        let record = |before, counts: [u64; 4], lived: Nanos| {
            let mut record = RunRecord::empty(Model::Open);
            record.duration = Nanos::from_secs(2);
            record.intervals = vec![interval(before, true)];
            record.intervals.extend(counts.map(|count| interval(count, false)));
            record.total.response_time.record(lived.0);
            record
        };
        for (before, counts, lived, expected) in [
            (384, [600, 800, 1_000, 1_160], Nanos::from_secs(100), 793.0),
            // Few, or steady: their times say it.
            (2, [1, 3, 2, 2], Nanos::from_millis(3_800), 1.9),
            (101, [99, 100, 98, 103], Nanos::from_secs(200), 100.0),
        ] {
            let found = mean_occupancy(&record(before, counts, lived));
            assert!((found - expected).abs() < 0.01 * expected, "{found}, not {expected}");
        }
    }
}
