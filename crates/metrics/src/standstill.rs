//! A target that stopped answering.

use plimsoll_core::Nanos;

use crate::{Interval, Model, RunRecord, figure};

/// The shortest silence that is a standstill.
const SHORTEST: Nanos = Nanos::from_secs(1);
/// A silence is so many times as long as the longest wait for an answer before it.
const LONGER: u64 = 2;
/// Arrivals of an open load that have to be without an answer: a single one may hang by itself.
const ARRIVALS: u64 = 3;

/// The time from the last answer of a target to the end of a run, in which it owed some and gave none:
/// neither during the load nor in the drain.
///
/// In the closed model users that wait send nothing more, so that a target which stands still leaves few
/// requests without an answer. Their share says nothing of the time for which nobody was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standstill {
    /// End of the last interval with an answer, since the start of the run.
    pub since: Nanos,
    /// End of the run.
    pub until: Nanos,
    /// Requests in flight when the load ended.
    pub in_flight: u64,
}

impl Standstill {
    /// The standstill at the end of a run; `None` if there was none, or nothing was answered before.
    pub fn at_end(record: &RunRecord) -> Option<Self> {
        let silent = |interval: &&Interval| {
            interval.completed == 0 && interval.failed == 0 && interval.content_events == 0
        };
        let trailing = || record.intervals.iter().rev().take_while(silent);
        let (mut length, mut started) = (Nanos::ZERO, 0);
        for interval in trailing().filter(|interval| !interval.drain && !interval.warmup) {
            length += interval.length;
            started += interval.started;
        }
        let in_load = |interval: &&Interval| !interval.drain && !interval.warmup;
        let (first, last) = (trailing().last()?, record.intervals.last()?);
        let in_flight = trailing().find(in_load)?.in_flight;
        let waits = match record.model {
            Model::Closed => in_flight > 0,
            Model::Open => in_flight > 0 && started >= ARRIVALS,
        };
        let longest = Nanos(longest_answer(record)?.saturating_mul(LONGER)).max(SHORTEST);
        (waits && length >= longest).then(|| Self {
            since: first.at.since(first.length),
            until: last.at,
            in_flight,
        })
    }

    /// Returns a sentence with the begin, the end and the requests in flight.
    pub fn words(&self) -> String {
        format!(
            "the target stopped answering: no answer from {} to {}, with {} requests in flight",
            figure::nanos(self.since),
            figure::nanos(self.until),
            figure::count(self.in_flight),
        )
    }
}

/// The longest time between a request and its answer, in nanoseconds; `None` without an answer.
fn longest_answer(record: &RunRecord) -> Option<u64> {
    let times = &record.total.service_time;
    let answered = times.count().saturating_sub(record.total.censored_service.count);
    // Lower bounds are timeouts and waits to the end, which are longer than nearly every answer.
    if answered == 0 { None } else { times.value_at(answered) }
}
