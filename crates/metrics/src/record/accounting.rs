//! The accounts of a run: what was asked for, and what became of it.

/// Where every arrival went. Two identities hold at the end of each run and are asserted:
/// `scheduled = started + dropped + never_started` and
/// `started = ok + failed + timed_out + aborted + in_flight_at_stop`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accounting {
    /// Requests that were due within the measured time: one for every arrival that the plan asked for, and
    /// every later step of an iteration once it begins. In the closed model the same as `started`.
    pub scheduled: u64,
    /// Requests that the engine took up.
    pub started: u64,
    /// Arrivals given up because of a limit (overload policy `drop`).
    pub dropped: u64,
    /// Arrivals whose time came, but that were still waiting when the run ended.
    pub never_started: u64,
    /// Subset of `never_started`: the data of their scenario had ended, while others had some.
    pub without_data: u64,
    /// Ended with a whole response of a status below 400.
    pub ok: u64,
    /// Ended without a good response, see the error classes.
    pub failed: u64,
    /// No whole response within the timeout.
    pub timed_out: u64,
    /// Aborted by the client on purpose.
    pub aborted: u64,
    /// Subset of `aborted`: not all of the request was sent, so that the target had nothing to answer.
    pub cut_short: u64,
    /// Started and not ended when the run stopped.
    pub in_flight_at_stop: u64,
    /// Subset of `started`: not one byte was handed to the target's connection, so the target cannot have
    /// seen it.
    pub undelivered: u64,
    /// Requests sent beside the measured ones: by the preflight and in the warm-up. Not part of `started`.
    pub unmeasured: u64,
    /// Further requests that followed a redirect. Not part of `started`: a chain of redirects is one request.
    pub redirects_followed: u64,
    /// Requests sent once more because their answer was still to come. Not part of `started`: all of them are
    /// one request.
    pub polls: u64,
}

impl Accounting {
    /// Checks the two identities.
    ///
    /// # Errors
    /// A sentence that names the identity which does not hold, with its figures.
    pub fn check(&self) -> Result<(), String> {
        let placed = self.started + self.dropped + self.never_started;
        if self.scheduled != placed {
            return Err(format!(
                "scheduled {} is not started {} + dropped {} + never started {}",
                self.scheduled, self.started, self.dropped, self.never_started
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

    /// Adds another worker's counts.
    pub fn merge(&mut self, other: &Self) {
        self.scheduled += other.scheduled;
        self.started += other.started;
        self.dropped += other.dropped;
        self.never_started += other.never_started;
        self.without_data += other.without_data;
        self.ok += other.ok;
        self.failed += other.failed;
        self.timed_out += other.timed_out;
        self.aborted += other.aborted;
        self.cut_short += other.cut_short;
        self.in_flight_at_stop += other.in_flight_at_stop;
        self.undelivered += other.undelivered;
        self.unmeasured += other.unmeasured;
        self.redirects_followed += other.redirects_followed;
        self.polls += other.polls;
    }
}

/// Where every started iteration went: `started = completed + failed + unfinished`.
///
/// An iteration is one pass through the steps of its scenario. With scenarios of one step these are the
/// figures of [`Accounting`] once more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IterationRecord {
    /// Iterations whose first request was started.
    pub started: u64,
    /// All of their requests ended well.
    pub completed: u64,
    /// One request failed, timed out or was aborted, which ended the iteration unless its step goes on.
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

    /// Adds another worker's iterations.
    pub fn merge(&mut self, other: &Self) {
        self.started += other.started;
        self.completed += other.completed;
        self.failed += other.failed;
        self.unfinished += other.unfinished;
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
