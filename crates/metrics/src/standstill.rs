//! Standstills of a target: times in which it owed answers and gave none.

use plimsoll_core::Nanos;

use crate::course::longest_answer;
use crate::{Interval, Model, RunRecord, figure};

/// The shortest silence that is a standstill.
const SHORTEST: Nanos = Nanos::from_secs(1);
/// A silence is so many times as long as the usual longest wait for an answer.
const LONGER: u64 = 2;
/// Requests that have to be without an answer: a single one may hang by itself.
const ASKED: u64 = 3;

/// A time in which a target owed answers and gave none.
///
/// In the closed model users that wait send nothing more, so that a target which stands still leaves few
/// requests without an answer. Their share says nothing of the time for which nobody was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standstill {
    /// End of the last interval with an answer before it, since the start of the run.
    pub since: Nanos,
    /// Begin of the first interval with an answer after it; the end of the run without any.
    pub until: Nanos,
    /// Largest number of requests in flight at the end of an interval.
    pub in_flight: u64,
    /// `true` if it lasted to the end of the run, drain included.
    pub to_the_end: bool,
}

impl Standstill {
    /// The standstill at the end of a run; `None` if there was none, or nothing was answered before.
    pub fn at_end(record: &RunRecord) -> Option<Self> {
        let trailing = || record.intervals.iter().rev().take_while(|interval| is_silent(interval));
        let in_load = |interval: &&Interval| !interval.drain && !interval.warmup;
        let (mut length, mut started) = (Nanos::ZERO, 0);
        for interval in trailing().filter(in_load) {
            length += interval.length;
            started += interval.started.max(interval.scheduled);
        }
        let (first, last) = (trailing().last()?, record.intervals.last()?);
        let in_flight = trailing().find(in_load)?.in_flight;
        let waits = match record.model {
            Model::Closed => in_flight > 0,
            // Arrivals may wait for a connection that none of the others gives back.
            Model::Open => in_flight > 0 && (started >= ASKED || in_flight >= places(record)),
        };
        let longest = Nanos(longest_answer(record)?.saturating_mul(LONGER)).max(SHORTEST);
        (waits && length >= longest).then(|| Self {
            since: first.at.since(first.length),
            until: last.at,
            in_flight,
            to_the_end: true,
        })
    }

    /// The longest standstill of the measured part, the one [at the end](Self::at_end) before any other;
    /// `None` if there was none.
    pub fn longest(record: &RunRecord) -> Option<Self> {
        let longest = || Self::all(record).into_iter().max_by_key(|one| one.until.since(one.since));
        Self::at_end(record).or_else(longest)
    }

    /// The standstills of the measured part that ended, in their order: whole intervals without an answer,
    /// though several requests were owed one, that took longer than answers usually do.
    pub fn all(record: &RunRecord) -> Vec<Self> {
        let cells: Vec<&Interval> = record.cells().collect();
        let Some(usual) = usual_longest(&cells) else { return Vec::new() };
        let shortest = Nanos(usual.saturating_mul(LONGER)).max(SHORTEST);
        let most = cells.iter().map(|cell| cell.in_flight).max().unwrap_or(0);
        let asked_for = ASKED.min(most.max(1));
        let mut found = Vec::new();
        let mut begin = 0;
        while begin < cells.len() {
            let silent = cells[begin..].iter().take_while(|cell| is_silent(cell)).count();
            let stretch = &cells[begin..begin + silent];
            let before = begin.checked_sub(1).map_or(0, |place| cells[place].in_flight);
            begin += silent.max(1);
            let (Some(first), Some(last)) = (stretch.first(), stretch.last()) else { continue };
            let asked = before + stretch.iter().map(|cell| cell.started.max(cell.scheduled)).sum::<u64>();
            let in_flight = stretch.iter().map(|cell| cell.in_flight).max().unwrap_or(0);
            let (since, until) = (first.at.since(first.length), last.at);
            let is_measured = stretch.iter().any(|cell| !cell.warmup && !cell.drain);
            let asks = asked >= asked_for || in_flight >= places(record);
            if is_measured && in_flight > 0 && asks && until.since(since) >= shortest {
                found.push(Self { since, until, in_flight, to_the_end: false });
            }
        }
        found
    }

    /// Returns a sentence with the begin, the end and the requests in flight.
    pub fn words(&self) -> String {
        let stopped = if self.to_the_end { "the target stopped answering: " } else { "" };
        let requests = if self.in_flight == 1 { "request" } else { "requests" };
        format!(
            "{stopped}no answer from {} to {}, with {} {requests} in flight",
            figure::nanos(self.since),
            figure::nanos(self.until),
            figure::count(self.in_flight),
        )
    }
}

/// Requests that may be in flight at once.
fn places(record: &RunRecord) -> u64 {
    record.connections.limit.saturating_mul(record.connections.depth.max(1).into()).max(1)
}

/// Returns `true` if nothing came from the target in an interval.
const fn is_silent(interval: &Interval) -> bool {
    interval.completed == 0 && interval.failed == 0 && interval.content_events == 0
}

/// The longest time of an answer in an interval, as three in four intervals with answers exceed it: those of
/// the intervals that follow a standstill do not hide the next one.
fn usual_longest(cells: &[&Interval]) -> Option<u64> {
    let answered = cells.iter().filter(|cell| cell.completed > 0);
    let mut longest: Vec<u64> =
        answered.filter_map(|cell| cell.response_time.map(|[.., longest]| longest)).collect();
    longest.sort_unstable();
    longest.get(longest.len() / 4).copied()
}
