//! How many connections an open load needs: the cap of their growth.

use plimsoll_core::Nanos;
use plimsoll_metrics::RateUnit;
use plimsoll_plan::{Load, Plan};

/// Connections above what Little's law asks for: chance brings several arrivals at once, and a backlog is to
/// be worked off in a third of the time in which it came up.
const MARGIN: f64 = 4.0;
/// Connections that a worker may have without a reason, for each target.
const FREE: f64 = 32.0;
/// What a response above the mean weighs in it; one below it weighs an eighth of that. The mean may be too
/// high, but not for long too low.
const WEIGHT: f64 = 1.0 / 8.0;

/// What is known of the requests in flight, by Little's law (J. Little, *A Proof for the Queuing Formula
/// L = λW*, 1961): as many as arrive while one of them is answered.
///
/// A target that slows down or stands still needs more connections, and gets them as fast as requests fall
/// due: from the last response on, the time that has passed counts like time for an answer. A generator that
/// stood still finds many requests due at once, and no connection is missing for them: the answers come as
/// fast as ever.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    /// Requests per second of this worker.
    rate: f64,
    /// Mean time for an answer, in ns.
    mean: f64,
    /// Since when requests are in flight without an answer.
    silent_since: Nanos,
}

impl Demand {
    /// The demand of a plan of which this worker has so many arrivals per second at most.
    pub(crate) fn new(plan: &Plan, arrivals_per_s: f64) -> Self {
        let steps = match plan.load {
            Load::Open { rate_of: RateUnit::Requests, .. } => 1,
            _ => plan.scenarios.iter().map(|scenario| scenario.steps.len()).max().unwrap_or(1),
        };
        Self { rate: arrivals_per_s * steps.max(1) as f64, mean: 0.0, silent_since: Nanos::ZERO }
    }

    /// The rate was changed.
    pub(crate) fn change_rate(&mut self, plan: &Plan, arrivals_per_s: f64) {
        self.rate = Self::new(plan, arrivals_per_s).rate;
    }

    /// A response came, or the first request was sent of those that are in flight.
    #[inline]
    pub(crate) const fn heard(&mut self, now: Nanos) {
        self.silent_since = now;
    }

    /// An answer took so long.
    #[inline]
    pub(crate) fn observe(&mut self, time: Nanos) {
        let above = time.0 as f64 - self.mean;
        self.mean += above * if above > 0.0 { WEIGHT } else { WEIGHT / 8.0 };
    }

    /// Whether one more connection beside `open` ones, each for `depth` requests at once, may be needed.
    pub(crate) fn warrants(&self, open: u32, depth: u32, now: Nanos) -> bool {
        let time = self.mean + now.since(self.silent_since).0 as f64;
        f64::from(open) < FREE + MARGIN * self.rate * time / 1e9 / f64::from(depth.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand() -> Demand {
        let mut demand = Demand { rate: 40_000.0, mean: 0.0, silent_since: Nanos::ZERO };
        (0..1000).for_each(|_| demand.observe(Nanos::from_micros(100)));
        demand.heard(Nanos::from_secs(1));
        demand
    }

    /// Connections at which growth ends.
    fn cap(demand: &Demand, depth: u32, now: Nanos) -> u32 {
        (0..1_000_000).find(|open| !demand.warrants(*open, depth, now)).expect("it ends")
    }

    #[test]
    fn growth_ends_at_a_multiple_of_what_littles_law_asks_for() {
        let now = Nanos::from_secs(1);
        // 40,000/s of 100 µs are 4 in flight.
        assert_eq!(cap(&demand(), 1, now), 48);
        assert_eq!(cap(&demand(), 100, now), 33);
    }

    #[test]
    fn a_target_that_stands_still_gets_a_connection_for_each_request() {
        let demand = demand();
        for ms in [1, 10, 100, 1000] {
            let now = Nanos::from_secs(1) + Nanos::from_millis(ms);
            assert!(u64::from(cap(&demand, 1, now)) > 3 * 40 * ms, "after {ms} ms");
        }
    }

    #[test]
    fn the_mean_follows_a_slower_target_within_some_responses() {
        let mut demand = demand();
        (0..16).for_each(|_| demand.observe(Nanos::from_millis(10)));
        assert!(cap(&demand, 1, Nanos::from_secs(1)) > 1200);
    }
}
