//! Number of connections that an open load needs: the cap of their growth.

use plimsoll_core::Nanos;
use plimsoll_metrics::RateUnit;
use plimsoll_plan::{Load, Plan};

/// Connections above the number of Little's law: chance brings several arrivals at once, and a backlog is to
/// be worked off in a third of the time in which it came up.
const MARGIN: f64 = 4.0;
/// Connections that a worker may have without a reason, for each target.
const FREE: f64 = 32.0;
/// Weight of a response above the mean in the new mean; one below it has an eighth of that weight. The mean
/// may be too high for a while, but not too low for long.
const WEIGHT: f64 = 1.0 / 8.0;

/// Mean times after which a request without an answer is slow. Those that arrive meanwhile are half of
/// what [`MARGIN`] allows.
const PATIENCE: f64 = 2.0;
/// Absences of this thread that a request may have met without being slow for it: while its connection
/// was opened, when it was sent, and when its answer came.
const ABSENCES: f64 = 4.0;
/// Part of an absence that is left with each pass.
const FADING: f64 = 7.0 / 8.0;
/// Time between two counts of slow requests, at least.
const BETWEEN_COUNTS: Nanos = Nanos::from_millis(1);
/// And for each of them, in ns: a walk takes some 10 ns a request, so that counting is a few percent.
const PAUSE_PER_REQUEST: u64 = 250;

/// Connections that were not needed for this time are closed.
const SPARE_TIME: Nanos = Nanos::from_secs(30);
/// Connections that a worker closes at most at the end of an interval: some ten microseconds each.
const CLOSED_AT_ONCE: u32 = 64;

/// Estimate of the number of requests in flight, by Little's law (J. Little, *A Proof for the Queuing Formula
/// L = λW*, 1961): the number that arrive while one of them is answered.
///
/// A target that slows down or stands still needs more connections, and gets them as fast as requests fall
/// due: the time since the last response counts like time for an answer. Where slow answers are mixed with
/// fast ones, each request that is [slow](Self::is_slow) holds a place that no other can have, and
/// warrants one more; so no arrival waits for a connection, whatever the others wait for.
///
/// A generator that stood still finds many requests due at once, but it needs no further connection for
/// them: the answers come as fast as usual.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    /// Requests per second of this worker.
    rate: f64,
    /// Mean time for an answer, in ns.
    mean: f64,
    /// Since when requests are in flight without an answer.
    silent_since: Nanos,
    /// Requests that were slow when they were counted last.
    slow: u32,
    /// When they may be counted again.
    next_count: Nanos,
    /// Time for which this thread has lately not listened at a stretch, in ns.
    away: f64,
}

impl Demand {
    /// The demand of a plan on a worker with this many arrivals per second at most.
    pub(crate) fn new(plan: &Plan, arrivals_per_s: f64) -> Self {
        let steps = match plan.load {
            Load::Open { rate_of: RateUnit::Requests, .. } => 1,
            _ => plan.scenarios.iter().map(|scenario| scenario.steps.len()).max().unwrap_or(1),
        };
        Self::of_rate(arrivals_per_s * steps.max(1) as f64)
    }

    fn of_rate(rate: f64) -> Self {
        Self { rate, mean: 0.0, silent_since: Nanos::ZERO, slow: 0, next_count: Nanos::ZERO, away: 0.0 }
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

    /// Notes an answer that took this long.
    #[inline]
    pub(crate) fn observe(&mut self, time: Nanos) {
        let above = time.0 as f64 - self.mean;
        self.mean += above * if above > 0.0 { WEIGHT } else { WEIGHT / 8.0 };
    }

    /// Notes that this thread did not run for `length`: it could not have read an answer, and its silence is
    /// not the target's.
    pub(crate) fn stood_still(&mut self, length: Nanos, now: Nanos) {
        self.silent_since = (self.silent_since + length).min(now);
        self.note_away(length);
    }

    /// Notes that this thread did not listen for `length`.
    #[inline]
    pub(crate) fn note_away(&mut self, length: Nanos) {
        self.away = (self.away * FADING).max(length.0 as f64);
    }

    /// Returns `true` if a request that was taken up at `started` should have its answer by now: it waits
    /// for longer than the others take, and for longer than our own absences explain.
    #[inline]
    pub(crate) fn is_slow(&self, started: Nanos, now: Nanos) -> bool {
        now.since(started).0 as f64 > PATIENCE * self.mean + ABSENCES * self.away
    }

    /// Returns `true` if the slow requests may be counted, which walks over all connections.
    #[inline]
    pub(crate) fn is_count_due(&self, now: Nanos) -> bool {
        now >= self.next_count
    }

    /// Notes that of `walked` requests so many are slow.
    pub(crate) fn note_slow(&mut self, slow: u32, walked: u32, now: Nanos) {
        self.slow = slow;
        self.next_count = now + BETWEEN_COUNTS.max(Nanos(u64::from(walked) * PAUSE_PER_REQUEST));
    }

    /// The number of the `open` connections that is not needed now.
    pub(crate) fn surplus(&self, open: u32, depth: u32, now: Nanos) -> u32 {
        open.saturating_sub(self.cap(depth, now).ceil() as u32)
    }

    /// Returns `true` if one more connection may be needed beside `open` ones, each for `depth` requests at
    /// once.
    pub(crate) fn warrants(&self, open: u32, depth: u32, now: Nanos) -> bool {
        f64::from(open) < self.cap(depth, now)
    }

    /// Connections that may be needed, each for `depth` requests at once.
    fn cap(&self, depth: u32, now: Nanos) -> f64 {
        let time = self.mean + now.since(self.silent_since).0 as f64;
        FREE + (MARGIN * self.rate * time / 1e9 + f64::from(self.slow)) / f64::from(depth.max(1))
    }
}

/// Number of connections of one pool that were free all the time: the fewest of the present stretch of
/// [`SPARE_TIME`], and of the one before. Without them no request would have waited.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spare {
    /// The fewest of the stretch that goes on.
    fewest: u32,
    /// The fewest of the last whole stretch; 0 before there was one.
    before: u32,
    /// When the stretch ends; the first begins with the first look.
    until: Nanos,
}

impl Spare {
    /// Notes that `free` connections are free now, after everything due has been started.
    #[inline]
    pub(crate) const fn note(&mut self, free: usize) {
        if free < self.fewest as usize {
            self.fewest = free as u32;
        }
    }

    /// Returns the number of surplus connections that may be closed now, at the end of an interval. They
    /// count as closed from then on.
    pub(crate) fn take_surplus(&mut self, surplus: u32, now: Nanos) -> u32 {
        let few = self.fewest.min(self.before).min(surplus).min(CLOSED_AT_ONCE);
        self.fewest = self.fewest.saturating_sub(few);
        self.before -= few;
        if now >= self.until {
            self.before = if self.until == Nanos::ZERO { 0 } else { self.fewest };
            self.fewest = u32::MAX;
            self.until = now + SPARE_TIME;
        }
        few
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = Nanos::from_millis(1);

    fn demand() -> Demand {
        let mut demand = Demand::of_rate(40_000.0);
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
    fn a_stall_of_this_thread_is_no_silence_of_the_target() {
        let mut demand = demand();
        let now = Nanos::from_secs(2);
        assert!(cap(&demand, 1, now) > 100_000);
        demand.stood_still(Nanos::from_millis(999), now);
        assert_eq!(cap(&demand, 1, now), 48 + 160, "a millisecond is left");
        demand.stood_still(Nanos::from_secs(9), now);
        assert_eq!(cap(&demand, 1, now), 48);
        assert_eq!(demand.surplus(1_000, 1, now), 952);
        assert_eq!(demand.surplus(48, 1, now), 0);
    }

    /// Closed connections by second, out of 100 that are free except for one moment in which only 10 are.
    fn closed(needed_at: u64) -> Vec<(u64, u32)> {
        let (mut spare, mut free, mut closed) = (Spare::default(), 100, Vec::new());
        for second in 1..100 {
            spare.note(if second == needed_at { 10 } else { free });
            let few = spare.take_surplus(80, Nanos::from_secs(second));
            free -= few as usize;
            closed.extend((few > 0).then_some((second, few)));
        }
        closed
    }

    #[test]
    fn what_was_free_all_the_time_is_closed_bit_by_bit() {
        // The first stretch begins with the first second, and the second is examined as it goes on.
        assert_eq!(closed(0), [(32, 64), (33, 36)]);
        assert_eq!(closed(20), [(32, 10), (62, 64), (63, 26)]);
        assert_eq!(closed(50), [(32, 64), (33, 36)], "it was over by then");
        assert_eq!(Spare::default().take_surplus(100, Nanos::from_secs(9)), 0);
    }

    #[test]
    fn each_slow_request_warrants_one_more() {
        let mut demand = demand();
        let now = Nanos::from_secs(1);
        assert!(demand.is_slow(now - Nanos::from_millis(1), now));
        assert!(!demand.is_slow(now - Nanos::from_micros(150), now));
        demand.note_slow(100, 120, now);
        assert_eq!((cap(&demand, 1, now), cap(&demand, 100, now)), (148, 34));
        assert!(!demand.is_count_due(now + Nanos::from_micros(999)) && demand.is_count_due(now + MS));
        demand.note_slow(10_000, 10_000, now);
        assert!(!demand.is_count_due(now + MS * 2) && demand.is_count_due(now + MS * 3));
    }

    #[test]
    fn an_absence_of_ours_makes_nothing_slow() {
        let mut demand = demand();
        let now = Nanos::from_secs(1);
        demand.note_away(MS * 5);
        assert!(!demand.is_slow(now - MS * 20, now));
        (0..50).for_each(|_| demand.note_away(Nanos::ZERO));
        assert!(demand.is_slow(now - MS, now), "it is long ago");
    }

    #[test]
    fn the_mean_follows_a_slower_target_within_some_responses() {
        let mut demand = demand();
        (0..16).for_each(|_| demand.observe(Nanos::from_millis(10)));
        assert!(cap(&demand, 1, Nanos::from_secs(1)) > 1200);
    }
}
