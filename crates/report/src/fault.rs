//! What was broken on purpose while a run went on, and what that did to requests.

use plimsoll_metrics::{Censored, Histogram, figure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::SavedRun;
use crate::result::IntervalResult;
use crate::summary::Summary;

/// A fault, and how the load fared in its window: from its begin until requests end well again, but at least
/// until its own end, and at most until the next fault begins or the run ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FaultResult {
    /// What broke: "kill", "isolate"…
    pub fault: String,
    /// The ids of the nodes that it hit.
    pub nodes: Vec<String>,
    /// When it began, in seconds since the start of the run, warm-up included.
    pub at_s: f64,
    /// When it ended; null if it was over at once, or for good.
    pub until_s: Option<f64>,
    /// Why it could not be done; null if it was.
    pub error: Option<String>,
    /// What became of the load.
    pub effect: FaultEffect,
    /// Seconds from its begin to the end of the first interval in which a request failed or timed out; null if
    /// none did in its window.
    pub first_failure_s: Option<f64>,
    /// Seconds from its begin to the end of the last interval in its window in which a request failed or timed
    /// out, or none ended although some were in flight; null if there was none, or if it was not over.
    pub recovery_s: Option<f64>,
    /// How exact these two are: the length of an interval in seconds.
    pub resolution_s: f64,
    /// The end of the window, in seconds since the start of the run.
    pub window_until_s: f64,
    /// Requests that ended well in it.
    pub ok: u64,
    /// Requests that failed in it.
    pub failed: u64,
    /// Requests that timed out in it.
    pub timed_out: u64,
    /// Response times of what ended well or timed out in the slices of the run that the window touches.
    pub response_time: Summary,
}

/// What a fault did to the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FaultEffect {
    /// Every request ended well.
    None,
    /// Requests failed or stood still, and then ended well again.
    Recovered,
    /// They still did so at the end of its window.
    Lasting,
}

/// A fault as it was carried out.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultMark {
    /// What broke.
    pub fault: String,
    /// The ids of the nodes that it hit.
    pub nodes: Vec<String>,
    /// When, in seconds since the start of the run.
    pub at_s: f64,
    /// Until when, if it had an end.
    pub until_s: Option<f64>,
    /// Why it could not be done.
    pub error: Option<String>,
}

/// What the faults of a run did, in their order.
pub fn effects(run: &SavedRun, faults: Vec<FaultMark>) -> Vec<FaultResult> {
    let end = run.result.intervals.last().map_or(0.0, |interval| interval.at_s);
    let begins: Vec<f64> = faults.iter().map(|fault| fault.at_s).collect();
    // An interval in which the next fault begins is that one's.
    let next = |number: usize| begins.get(number + 1).copied().unwrap_or(end).min(end);
    faults.into_iter().enumerate().map(|(number, fault)| effect(run, fault, next(number))).collect()
}

fn effect(run: &SavedRun, fault: FaultMark, end: f64) -> FaultResult {
    let at = fault.at_s;
    let within = |interval: &&IntervalResult| interval.at_s > at && interval.at_s <= end;
    let intervals: Vec<&IntervalResult> = run.result.intervals.iter().filter(within).collect();
    let fails = |interval: &IntervalResult| interval.failed + interval.timed_out > 0;
    let is_bad = |interval: &IntervalResult| fails(interval) || interval.ok == 0 && interval.in_flight > 0;
    let since = |interval: &IntervalResult| rounded(interval.at_s - at);
    let first_failure_s = intervals.iter().find(|interval| fails(interval)).map(|interval| since(interval));
    let last_bad = intervals.iter().rposition(|interval| is_bad(interval));
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
        intervals.iter().filter(in_window).map(|interval| of(interval)).sum::<u64>()
    };
    let (mut times, mut censored) = (Histogram::new(), Censored::default());
    for slice in &run.slices {
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
        resolution_s: intervals.iter().map(|interval| interval.length_s).fold(0.0, f64::max),
        window_until_s: rounded(window_until),
        ok: count(|interval| interval.ok),
        failed: count(|interval| interval.failed),
        timed_out: count(|interval| interval.timed_out),
        response_time: Summary::new(&times, censored),
    }
}

impl FaultResult {
    /// `kill of node 0 at 5.0 s, until 8.0 s`
    pub(crate) fn heading(&self) -> String {
        let until = self.until_s.map_or(String::new(), |until| format!(" until {until:.1} s"));
        let whom = match self.nodes.as_slice() {
            [] => String::new(),
            [node] => format!(" of node {node}"),
            nodes => format!(" of nodes {}", nodes.join(", ")),
        };
        format!("{}{whom} at {:.1} s{until}", self.fault.replace('_', " "), self.at_s)
    }

    /// What it did, in words.
    pub(crate) fn said(&self) -> String {
        if let Some(error) = &self.error {
            return format!("not done: {error}");
        }
        let lost = self.failed + self.timed_out;
        let lost =
            if lost == 1 { "1 request".to_owned() } else { format!("{} requests", figure::count(lost)) };
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
        let p99 = self.response_time.p.p99.or(self.response_time.max);
        let name = if self.response_time.p.p99.is_some() { "p99" } else { "max" };
        let at_least = if self.response_time.is_at_least(if name == "p99" { "99" } else { "max" }) {
            "≥ "
        } else {
            ""
        };
        let times = p99.map(|p99| format!("{name} {at_least}{}", figure::nanos(plimsoll_core::Nanos(p99))));
        [first, recovery, failed, times].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// To milliseconds.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1_000.0).round() / 1_000.0
}
