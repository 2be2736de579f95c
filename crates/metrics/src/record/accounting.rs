//! The accounts of a run: the scheduled requests, and their outcomes.

use plimsoll_core::{figure, is_zero};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Accounting of every arrival. Two identities hold at the end of each run and are asserted:
/// `scheduled = started + dropped + never_started + unknown` and
/// `started = ok + failed + timed_out + aborted + in_flight_at_stop`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AccountingResult", description = "Where every arrival went.")]
pub struct Accounting {
    /// Requests that were due within the measured part: one for every arrival (start of an iteration) that
    /// the plan asked for, and every later request of an iteration once it begins; in the closed model the
    /// same as started.
    pub scheduled: u64,
    /// Requests that the generator took up.
    pub started: u64,
    /// Arrivals given up because of a limit.
    pub dropped: u64,
    /// Arrivals that were still waiting when the run ended.
    pub never_started: u64,
    /// Part of never_started: the data of their scenario had ended, while others had some.
    #[serde(default)]
    pub without_data: u64,
    /// Arrivals of agents that were lost, after the last known one: their outcome is unknown. Only a fleet
    /// has any.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unknown: u64,
    /// Part of started: requests of the warm-up that had no answer all through the measured part. The plan's
    /// arrivals and rate are without them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub since_warmup: u64,
    /// Requests that ended with a whole response of a status below 400.
    pub ok: u64,
    /// Requests that ended without a good response.
    pub failed: u64,
    /// Requests without a whole response within the timeout.
    pub timed_out: u64,
    /// Requests that the client aborted on purpose.
    #[serde(default)]
    pub aborted: u64,
    /// Part of aborted: not all of the request was sent, so that the target had nothing to answer.
    #[serde(default)]
    pub cut_short: u64,
    /// Requests that had not ended when the run stopped.
    pub in_flight_at_stop: u64,
    /// Part of started: not one byte was handed to a connection, so the target cannot have seen them.
    pub undelivered: u64,
    /// Requests beside the measured ones, in the preflight and the warm-up. Not part of started.
    pub unmeasured: u64,
    /// Further requests that followed a redirect. Not part of started.
    pub redirects_followed: u64,
    /// Requests sent once more because their answer was still to come. Not part of started.
    #[serde(default)]
    pub polls: u64,
    /// Requests sent once more because the target had not processed them: HTTP/2 said so (GOAWAY,
    /// REFUSED_STREAM), or a connection that was used before was closed without one byte of an answer. Not
    /// part of started.
    #[serde(default)]
    pub resent: u64,
    /// Part of resent: a connection of HTTP/1.1 was closed, so that the target may have seen the request
    /// before.
    #[serde(default)]
    pub resent_closed: u64,
    /// True if a worker did not come back after the end: its requests are not in these figures.
    #[serde(default)]
    pub incomplete: bool,
}

impl Accounting {
    /// Words behind the number of requests that were sent a second time, and why; `None` if there are none.
    pub fn resent_words(&self) -> Option<String> {
        let (resent, closed) = (self.resent, self.resent_closed);
        let refused = resent.saturating_sub(closed);
        let closed_words = "since the target had closed the connection without an answer";
        let object = if refused == 1 { "it" } else { "them" };
        let refused_words = format!("since the target had not processed {object} (GOAWAY, REFUSED_STREAM)");
        let noun = if resent == 1 { "request was sent again" } else { "requests were sent again" };
        match (closed, refused) {
            (0, 0) => None,
            (0, _) => Some(format!("{noun}, {refused_words}")),
            (_, 0) => Some(format!("{noun}, {closed_words}")),
            (_, _) => {
                Some(format!("{noun}: {} {closed_words}, the others {refused_words}", figure::count(closed)))
            }
        }
    }

    /// Requests that ended, or had no answer at the end: the whole of which shares of failures are told.
    pub fn requests(&self) -> u64 {
        let ended = [self.ok, self.failed, self.timed_out, self.aborted];
        ended.into_iter().fold(self.in_flight_at_stop, u64::saturating_add)
    }

    /// Checks the two identities.
    ///
    /// # Errors
    /// A sentence that names the identity which does not hold, with its figures.
    pub fn check(&self) -> Result<(), String> {
        let placed = self.started + self.dropped + self.never_started + self.unknown;
        if self.scheduled != placed {
            return Err(format!(
                "scheduled {} is not started {} + dropped {} + never started {} + unknown {}",
                self.scheduled, self.started, self.dropped, self.never_started, self.unknown
            ));
        }
        let ended = self.ok + self.failed + self.timed_out + self.aborted + self.in_flight_at_stop;
        if self.started != ended {
            return Err(format!(
                "started {} is not ok {} + failed {} + timed out {} + aborted {} + in flight at stop {}",
                self.started, self.ok, self.failed, self.timed_out, self.aborted, self.in_flight_at_stop
            ));
        }
        Ok(())
    }

    /// Adds another worker's or run's counts. They may be those of a file: a sum that no run can have is the
    /// largest number.
    pub fn merge(&mut self, other: &Self) {
        let (mine, theirs) = (self.counts_mut(), { *other }.counts_mut().map(|count| *count));
        mine.into_iter().zip(theirs).for_each(|(mine, theirs)| *mine = mine.saturating_add(theirs));
        self.incomplete |= other.incomplete;
    }

    const fn counts_mut(&mut self) -> [&mut u64; 19] {
        [
            &mut self.scheduled,
            &mut self.started,
            &mut self.dropped,
            &mut self.never_started,
            &mut self.without_data,
            &mut self.unknown,
            &mut self.since_warmup,
            &mut self.ok,
            &mut self.failed,
            &mut self.timed_out,
            &mut self.aborted,
            &mut self.cut_short,
            &mut self.in_flight_at_stop,
            &mut self.undelivered,
            &mut self.unmeasured,
            &mut self.redirects_followed,
            &mut self.polls,
            &mut self.resent,
            &mut self.resent_closed,
        ]
    }
}

/// Accounting of every started iteration: `started = completed + failed + unfinished`.
///
/// An iteration is one pass through the steps of its scenario. With scenarios of one step these are the
/// figures of [`Accounting`] once more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "IterationResult", description = "Where every started iteration went.")]
pub struct IterationRecord {
    /// Iterations whose first request was started within the measured part.
    pub started: u64,
    /// All of their requests ended well.
    pub completed: u64,
    /// One of their requests failed or timed out, which ended them unless its step goes on.
    pub failed: u64,
    /// Neither when the run stopped.
    pub unfinished: u64,
}

impl IterationRecord {
    /// Checks the identity.
    ///
    /// # Errors
    /// A sentence with its figures, if it does not hold.
    pub fn check(&self) -> Result<(), String> {
        if self.started == self.completed + self.failed + self.unfinished {
            return Ok(());
        }
        Err(format!(
            "started iterations {} are not completed {} + failed {} + unfinished {}",
            self.started, self.completed, self.failed, self.unfinished
        ))
    }

    /// Adds another worker's or run's iterations, as [`Accounting::merge`] does.
    pub const fn merge(&mut self, other: &Self) {
        self.started = self.started.saturating_add(other.started);
        self.completed = self.completed.saturating_add(other.completed);
        self.failed = self.failed.saturating_add(other.failed);
        self.unfinished = self.unfinished.saturating_add(other.unfinished);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterations_balance() {
        let one = IterationRecord { started: 6, completed: 3, failed: 2, unfinished: 1 };
        let mut both = one;
        both.merge(&one);
        assert_eq!(both, IterationRecord { started: 12, completed: 6, failed: 4, unfinished: 2 });
        assert_eq!(both.check(), Ok(()));
        both.unfinished += 1;
        assert_eq!(
            both.check(),
            Err("started iterations 12 are not completed 6 + failed 4 + unfinished 3".to_owned())
        );
    }
}
