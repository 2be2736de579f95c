//! Faults that were injected while a run went on, and their effect on requests.

use plimsoll_core::{Nanos, figure, is_zero, text::noun};
use plimsoll_histogram::{Censored, Histogram};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::contract::result::IntervalResult;
use crate::contract::summary::Summary;
use crate::saved::SavedSlice;
use crate::{RunResult, SavedRun};

/// A fault, and how the load fared in its window: from its begin until requests end well again, but at least
/// until its own end, and at most until the next fault begins or the run ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FaultResult {
    /// Kind of fault: "kill", "isolate"…
    pub fault: String,
    /// The ids of the nodes that it hit.
    pub nodes: Vec<String>,
    /// When it began, in seconds since the start of the run, warm-up included.
    pub at_s: f64,
    /// When it ended; null if it was over at once, or for good.
    pub until_s: Option<f64>,
    /// Reason why it could not be done; null if it was.
    pub error: Option<String>,
    /// Effect on the load.
    pub effect: FaultEffect,
    /// Seconds from its begin to the end of the first interval in which a request failed or timed out; null
    /// if none did in its window.
    pub first_failure_s: Option<f64>,
    /// Seconds from its begin to the end of the last interval in its window in which a request failed or
    /// timed out, or none ended although some were in flight; null if there was none, or if it was not over.
    pub recovery_s: Option<f64>,
    /// Resolution of these two: the length of an interval in seconds.
    pub resolution_s: f64,
    /// The end of the window, in seconds since the start of the run.
    pub window_until_s: f64,
    /// Requests that ended well in it.
    pub ok: u64,
    /// Requests that failed in it.
    pub failed: u64,
    /// Requests that timed out in it.
    pub timed_out: u64,
    /// Requests that were sent again in it, because their connections ended before an answer. Left away if
    /// there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub resent: u64,
    /// Response times of what ended well or timed out in the slices of the run that the window touches.
    pub response_time: Summary,
}

/// Effect of a fault on the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FaultEffect {
    /// Every request ended well.
    None,
    /// Requests failed or stood still, and then ended well again.
    Recovered,
    /// Requests still failed or stood still at the end of the fault's window.
    Lasting,
}

/// A fault as it was carried out.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultMark {
    /// Kind of fault.
    pub fault: String,
    /// The ids of the nodes that it hit.
    pub nodes: Vec<String>,
    /// When, in seconds since the start of the run.
    pub at_s: f64,
    /// Until when, if it had an end.
    pub until_s: Option<f64>,
    /// Reason why it could not be done.
    pub error: Option<String>,
}

/// Returns the effects of the faults of a run, in their order.
pub fn effects(run: &SavedRun, faults: Vec<FaultMark>) -> Vec<FaultResult> {
    effects_on(&run.result, &run.slices, faults)
}

/// Returns the effects of the faults of a run that goes on, without response times: these come from the
/// slices, which only a saved run keeps.
pub fn effects_so_far(result: &RunResult, faults: Vec<FaultMark>) -> Vec<FaultResult> {
    effects_on(result, &[], faults)
}

fn effects_on(result: &RunResult, slices: &[SavedSlice], faults: Vec<FaultMark>) -> Vec<FaultResult> {
    let end = result.intervals.last().map_or(0.0, |interval| interval.at_s);
    let begins: Vec<f64> = faults.iter().map(|fault| fault.at_s).collect();
    // An interval in which the next fault begins belongs to that fault.
    let next = |number: usize| begins.get(number + 1).copied().unwrap_or(end).min(end);
    faults
        .into_iter()
        .enumerate()
        .map(|(number, fault)| effect((result, slices), fault, next(number)))
        .collect()
}

/// Requests of a run that failed or timed out, and all that ended, outside of what faults are blamed for:
/// their windows, and of those no more than `grace` after the end of the fault itself.
pub fn errors_outside(run: &RunResult, grace: Nanos) -> (u64, u64) {
    let blamed = |interval: &IntervalResult| {
        run.faults.iter().any(|fault| {
            let over = fault.until_s.unwrap_or(fault.at_s);
            let until = fault.window_until_s.min(over + grace.as_secs_f64()).max(over);
            interval.at_s > fault.at_s && interval.at_s - interval.length_s < until
        })
    };
    let others = run.intervals.iter().filter(|interval| !blamed(interval));
    others.fold((0, 0), |(bad, all), interval| {
        let lost = interval.failed + interval.timed_out;
        (bad + lost, all + lost + interval.ok)
    })
}

fn effect((result, slices): (&RunResult, &[SavedSlice]), fault: FaultMark, end: f64) -> FaultResult {
    let at = fault.at_s;
    let within = |interval: &&IntervalResult| interval.at_s > at && interval.at_s <= end;
    let intervals: Vec<&IntervalResult> = result.intervals.iter().filter(within).collect();
    let fails = |interval: &IntervalResult| interval.failed + interval.timed_out > 0;
    let longest = intervals.iter().map(|interval| interval.plan_length_s()).fold(0.0, f64::max);
    // In a short piece of an interval, no request may end just by chance.
    let stands = |interval: &IntervalResult| {
        interval.ok == 0 && interval.in_flight > 0 && interval.length_s * 2.0 > longest
    };
    let is_bad = |interval: &IntervalResult| fails(interval) || stands(interval);
    let since = |interval: &IntervalResult| rounded(interval.at_s - at);
    let first_failure_s = intervals.iter().find(|interval| fails(interval)).map(|interval| since(interval));
    let last_bad = intervals.iter().rposition(|interval| is_bad(interval));
    // Joined intervals of which only some were bad do not show which.
    let uneven = intervals.iter().filter(|interval| is_bad(interval) && !interval.is_even());
    let resolution = uneven.map(|interval| interval.length_s).fold(longest, f64::max);
    let effect = match last_bad {
        None => FaultEffect::None,
        Some(last) if last + 1 == intervals.len() => FaultEffect::Lasting,
        Some(_) => FaultEffect::Recovered,
    };
    let bad_until = last_bad.map(|last| intervals[last].at_s);
    let recovery_s = bad_until.filter(|_| effect == FaultEffect::Recovered).map(|until| rounded(until - at));
    let window_until = bad_until.unwrap_or(at).max(fault.until_s.unwrap_or(at)).min(end);
    let in_window = |interval: &&&IntervalResult| interval.at_s - interval.length_s < window_until;
    let count = |of: fn(&IntervalResult) -> u64| {
        intervals.iter().filter(in_window).map(|interval| of(interval)).fold(0, u64::saturating_add)
    };
    let (mut times, mut censored) = (Histogram::new(), Censored::default());
    for slice in slices {
        let until = slice.at.as_secs_f64();
        if until > at && until - slice.length.as_secs_f64() < window_until {
            times.add(&slice.tally.response_time);
            censored.merge(slice.tally.censored);
        }
    }
    FaultResult {
        fault: fault.fault,
        nodes: fault.nodes,
        at_s: rounded(at),
        until_s: fault.until_s.map(rounded),
        error: fault.error,
        effect,
        first_failure_s,
        recovery_s,
        resolution_s: rounded(resolution),
        window_until_s: rounded(window_until),
        ok: count(|interval| interval.ok),
        failed: count(|interval| interval.failed),
        timed_out: count(|interval| interval.timed_out),
        resent: count(|interval| interval.resent),
        response_time: Summary::new(&times, censored),
    }
}

impl FaultResult {
    /// `kill of node 0 at 5.0 s, until 8.0 s`
    pub(crate) fn heading(&self) -> String {
        let until = self.until_s.map_or(String::new(), |until| format!(" until {until:.1} s"));
        format!("{} at {:.1} s{until}", self.title(), self.at_s)
    }

    /// `kill of node 0`
    pub(crate) fn title(&self) -> String {
        let whom = match self.nodes.as_slice() {
            [] => String::new(),
            [node] => format!(" of node {node}"),
            nodes => format!(" of nodes {}", nodes.join(", ")),
        };
        format!("{}{whom}", self.fault.replace('_', " "))
    }

    /// Returns the effect in words.
    pub(crate) fn said(&self) -> String {
        if let Some(error) = &self.error {
            return format!("not done: {error}");
        }
        let lost = self.failed + self.timed_out;
        let lost = format!("{} {}", figure::count(lost), noun(lost, "request"));
        let first = self.first_failure_s.map(|first| format!("first failure within {first:.1} s"));
        let recovery = match (self.effect, self.recovery_s) {
            (FaultEffect::None, _) => Some("no request failed".to_owned()),
            (_, Some(recovery)) => Some(format!("recovered after {recovery:.1} s")),
            _ => Some("not recovered before the end of its window".to_owned()),
        };
        let failed = (self.effect != FaultEffect::None).then(|| match self.failed + self.timed_out {
            0 => "requests stood still and none failed".to_owned(),
            _ => format!("{lost} failed"),
        });
        let resent = match self.resent {
            0 => None,
            1 => Some("1 request was sent again".to_owned()),
            resent => Some(format!("{} requests were sent again", figure::count(resent))),
        };
        let p99 = self.response_time.p.p99.or(self.response_time.max);
        let name = if self.response_time.p.p99.is_some() { "p99" } else { "max" };
        let at_least = if self.response_time.is_at_least(if name == "p99" { "99" } else { "max" }) {
            "≥ "
        } else {
            ""
        };
        let times = p99.map(|p99| format!("{name} {at_least}{}", figure::nanos(Nanos(p99))));
        [first, recovery, failed, resent, times].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// To milliseconds.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use plimsoll_metrics::{Interval, Model, RunRecord};

    use super::*;
    use crate::RunContext;

    /// A run of intervals of one second, each with requests that ended well, that failed, and that are in
    /// flight.
    fn run(intervals: &[(u64, u64, u64)]) -> SavedRun {
        let mut record = RunRecord::empty(Model::Open);
        record.intervals = (1..)
            .zip(intervals)
            .map(|(second, &(ok, failed, in_flight))| Interval {
                at: Nanos::from_secs(second),
                length: Nanos::from_secs(1),
                ok,
                failed,
                in_flight,
                ..Interval::default()
            })
            .collect();
        SavedRun::of_result(RunResult::new(&record, RunContext::default()))
    }

    fn fault(at_s: f64, until_s: Option<f64>) -> FaultMark {
        FaultMark { fault: "kill".to_owned(), nodes: vec!["0".to_owned()], at_s, until_s, error: None }
    }

    #[test]
    fn an_outage_is_told_from_its_first_failure_to_its_recovery() {
        let run = run(&[(9, 0, 1), (9, 0, 1), (3, 5, 1), (0, 0, 7), (9, 0, 1), (9, 0, 1)]);
        let found = effects(&run, vec![fault(1.5, Some(2.5))]).remove(0);
        assert_eq!(
            (found.effect, found.first_failure_s, found.recovery_s),
            (FaultEffect::Recovered, Some(1.5), Some(2.5))
        );
        assert_eq!((found.ok, found.failed, found.window_until_s), (12, 5, 4.0));
        assert_eq!(found.heading(), "kill of node 0 at 1.5 s until 2.5 s");
        assert_eq!(found.said(), "first failure within 1.5 s, recovered after 2.5 s, 5 requests failed");
    }

    #[test]
    fn what_lasts_is_not_called_recovered_and_what_does_nothing_is_said_to() {
        let run = run(&[(9, 0, 0), (5, 4, 0), (5, 4, 0)]);
        let found = effects(&run, vec![fault(0.5, None), fault(2.5, None)]);
        assert_eq!((found[0].effect, found[0].recovery_s), (FaultEffect::Lasting, None));
        // The interval in which the next fault begins belongs to that fault.
        assert_eq!((found[0].failed, found[1].failed), (4, 4));
        let idle = effects(&self::run(&[(9, 0, 0), (9, 0, 0)]), vec![fault(0.5, None)]).remove(0);
        assert_eq!((idle.effect, idle.first_failure_s), (FaultEffect::None, None));
        assert_eq!(idle.said(), "no request failed");
    }

    #[test]
    fn what_fails_long_after_a_fault_is_not_blamed_on_it() {
        let mut run = run(&[(9, 1, 0), (5, 4, 0), (5, 4, 0), (5, 4, 0)]);
        let outside = |run: &SavedRun, grace| errors_outside(&run.result, Nanos::from_secs(grace));
        assert_eq!(outside(&run, 9), (13, 37), "there was no fault");
        run.result.faults = effects(&run, vec![fault(1.0, Some(1.5))]);
        assert_eq!(run.result.faults[0].effect, FaultEffect::Lasting);
        assert_eq!((outside(&run, 9), outside(&run, 1)), ((1, 10), (5, 19)));
    }

    #[test]
    fn requests_that_had_to_be_sent_again_are_told_though_none_failed() {
        let mut record = RunRecord::empty(Model::Open);
        record.intervals = (1..4)
            .map(|second| Interval {
                at: Nanos::from_secs(second),
                length: Nanos::from_secs(1),
                ok: 9,
                resent: if second == 2 { 8 } else { 0 },
                ..Interval::default()
            })
            .collect();
        let run = SavedRun::of_result(RunResult::new(&record, RunContext::default()));
        let found = effects(&run, vec![fault(1.5, None)]).remove(0);
        assert_eq!((found.effect, found.resent), (FaultEffect::None, 8));
        assert_eq!(found.said(), "no request failed, 8 requests were sent again");
    }

    #[test]
    fn to_stand_still_is_to_be_disturbed_though_nothing_fails() {
        let run = run(&[(9, 0, 1), (0, 0, 9), (9, 0, 1)]);
        let found = effects(&run, vec![fault(0.5, Some(1.5))]).remove(0);
        assert_eq!((found.effect, found.recovery_s), (FaultEffect::Recovered, Some(1.5)));
        assert_eq!(found.said(), "recovered after 1.5 s, requests stood still and none failed");
    }
}
