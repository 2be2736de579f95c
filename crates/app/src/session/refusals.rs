//! Loads that a server refuses from the first request on: nothing is measured by going on.

use plimsoll_core::figure;
use plimsoll_engine::{Control, Progress, Stop};
use plimsoll_metrics::Interval;

use crate::base::messages::Notify;
use crate::session::observer::Observer;

/// Requests that are refused before a load counts as refused altogether.
const ENOUGH: u64 = 20;

/// Ends a load whose requests are all refused.
pub(crate) struct Refusals {
    answers: Answers,
    control: Control,
    notify: Notify,
}

impl Refusals {
    /// Begins with the first answer of a run.
    pub(crate) fn start(control: &Control, notify: &Notify) -> Box<dyn Observer> {
        Box::new(Self { answers: Answers::default(), control: control.clone(), notify: notify.clone() })
    }
}

impl Observer for Refusals {
    fn observe(&mut self, progress: &Progress<'_>) {
        if let Some(refused) = self.answers.decide(progress.interval) {
            let refused = figure::count(refused);
            (self.notify)(&format!("the run ends: all of the first {refused} requests were refused"));
            self.control.stop(Stop::Drain);
        }
    }
}

/// Tells whether anything but a status from 400 to 499 is answered.
#[derive(Debug, Default)]
struct Answers {
    refused: u64,
    /// `true` once the fate of the load is decided.
    is_decided: bool,
}

impl Answers {
    /// Returns the number of refused requests, once there are enough and nothing else came.
    fn decide(&mut self, interval: &Interval) -> Option<u64> {
        if self.is_decided {
            return None;
        }
        let refused: u64 = interval.steps.iter().map(|step| step.statuses[1]).sum();
        self.refused += refused;
        let ended = interval.ok + interval.failed + interval.timed_out;
        self.is_decided = ended > refused || self.refused >= ENOUGH;
        (self.is_decided && ended == refused).then_some(self.refused)
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_metrics::Tally;

    use super::*;

    /// Returns the decision after intervals with the given numbers of refusals and other ends.
    fn decided(intervals: &[(u64, u64)]) -> Option<u64> {
        let mut refusals = Answers::default();
        let decided = intervals.iter().map(|&(refused, ok)| {
            let step = Tally { statuses: [0, refused, 0], ..Tally::default() };
            refusals.decide(&Interval { ok, failed: refused, steps: vec![step], ..Interval::default() })
        });
        decided.collect::<Vec<_>>().into_iter().flatten().next()
    }

    #[test]
    fn only_a_load_that_is_refused_from_the_beginning_ends() {
        assert_eq!(decided(&[(ENOUGH, 0)]), Some(ENOUGH));
        assert_eq!(decided(&[(0, 0), (ENOUGH - 1, 0), (3, 0)]), Some(ENOUGH + 2));
        assert_eq!(decided(&[(ENOUGH - 1, 0)]), None);
        assert_eq!(decided(&[(ENOUGH, 1)]), None);
        // A store that has accepted some records may well be full.
        assert_eq!(decided(&[(0, 1), (ENOUGH, 0)]), None);
    }
}
