//! How long to wait, and for how much: the wake-ups are the engine's largest cost after the system calls.
//!
//! Waking a sleeping thread costs 13–24 µs of CPU on a virtual machine, three to five whole requests. A
//! worker that is faster than its target is woken for every single response, unless it waits for a share of
//! what is in flight. The delay that this adds to *reading* a response is kept out of the measured times by
//! the kernel's receive timestamps; where there are none, nothing is coalesced. The delay that it adds to
//! *sending* is the start lag, which is bounded by [`Pacing::BUDGET`], recorded for every request and part of
//! the response time.

use plimsoll_core::Nanos;
use plimsoll_driver::Wait;
use plimsoll_plan::Pacing;

/// Longest time for which responses are gathered in the closed model. With a target of 20 µs per request and
/// 64 connections 300 µs gather about 15 responses per wake-up; beyond that the wake-ups are no longer what
/// costs.
const GATHER_MAX: Nanos = Nanos::from_micros(300);
/// Below this a timed sleep costs more than the wake-ups that it saves.
const GATHER_MIN: Nanos = Nanos::from_micros(20);
/// With fewer requests in flight than this, every response is answered at once.
const GATHER_IN_FLIGHT: u64 = 4;
/// Share of the cycle time (in flight ÷ rate) for which responses are gathered: a closed loop that waits for
/// much longer leaves the target without work.
const GATHER_SHARE: u64 = 4;
/// Up to this rate per worker every arrival has its own wake-up, which then costs at most about 5 % of a
/// core.
const OWN_WAKE_UP_PER_SECOND: f64 = 2_000.0;
/// What sending one request takes, roughly.
const SEND: Nanos = Nanos::from_micros(4);
/// How long [`Pacing::Precise`] polls busily before an arrival. A sleeping thread is woken 15–30 µs late on a
/// good machine, and on a shared virtual one, where the host has given the core away, up to a millisecond:
/// from 1,000/s on precise pacing does not sleep at all.
const SPIN: Nanos = Nanos::from_millis(1);
/// Responses larger than this on average are read as they come, so that the socket buffer is never the limit.
const LARGE_RESPONSE: u64 = 16 * 1024;

/// What the worker knows when it is about to wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outlook {
    pub(crate) now: Nanos,
    /// The next thing that has to be done in any case: a timer, the edge of a second, the end, a look at the
    /// control.
    pub(crate) until: Nanos,
    /// The next arrival that could be started at its time, if there is one.
    pub(crate) next_arrival: Option<Nanos>,
    /// Whether something due waits for a response: for a free connection.
    pub(crate) blocked: bool,
    /// Whether a response is followed by a request: the next step of its scenario, or a redirect.
    pub(crate) follows: bool,
    pub(crate) in_flight: u64,
    /// Arrivals that find a connection for sure, even if nothing comes back before they are due.
    pub(crate) room: u64,
}

/// The state of pacing of one worker.
#[derive(Debug)]
pub(crate) struct Pacer {
    pacing: Pacing,
    open: bool,
    /// Whether the last response was stamped by the kernel; before the first one, no.
    stamped: bool,
    /// Mean time between sending a request and handling its response, exponentially smoothed, in ns.
    cycle_ns: f64,
    /// Mean response size, exponentially smoothed, in bytes.
    response_bytes: f64,
    /// Mean responses per event, exponentially smoothed: with many streams one event brings many.
    responses_per_event: f64,
    /// Least time between wake-ups for arrivals, where connections leave room for as many as fall due in it.
    tick: Nanos,
    /// Highest rate of this worker's arrivals; 0 in the closed model.
    peak_per_second: f64,
    /// When arrivals were last started.
    last_start: Nanos,
    /// See [`budget`](Self::budget).
    budget: Nanos,
}

impl Pacer {
    /// `peak_per_second`: highest rate of this worker's arrivals; `None` in the closed model.
    pub(crate) fn new(pacing: Pacing, peak_per_second: Option<f64>) -> Self {
        let tick = peak_per_second.map_or(Nanos::ZERO, |rate| tick_of(pacing, rate));
        Self {
            pacing,
            budget: budget_of(tick),
            open: peak_per_second.is_some(),
            stamped: false,
            cycle_ns: 0.0,
            response_bytes: 0.0,
            responses_per_event: 1.0,
            tick,
            peak_per_second: peak_per_second.unwrap_or(0.0),
            last_start: Nanos::ZERO,
        }
    }

    /// How late an arrival may have been started on purpose since the start.
    pub(crate) fn budget(&self) -> Nanos {
        self.budget
    }

    /// The highest rate of this worker's arrivals is another one from here on.
    pub(crate) fn change_rate(&mut self, peak_per_second: f64) {
        self.tick = tick_of(self.pacing, peak_per_second);
        self.peak_per_second = peak_per_second;
        self.budget = self.budget.max(budget_of(self.tick));
    }

    /// Tells of one handled response per pass: enough for the means, and cheap.
    pub(crate) fn observe(&mut self, cycle: Nanos, stamped: bool, bytes: u64) {
        const WEIGHT: f64 = 1.0 / 16.0;
        self.stamped = stamped;
        self.cycle_ns += (cycle.0 as f64 - self.cycle_ns) * WEIGHT;
        self.response_bytes += (bytes as f64 - self.response_bytes) * WEIGHT;
    }

    /// Tells how many responses one event brought.
    #[inline]
    pub(crate) fn received(&mut self, responses: u64) {
        const WEIGHT: f64 = 1.0 / 64.0;
        self.responses_per_event += (responses as f64 - self.responses_per_event) * WEIGHT;
    }

    /// Tells that arrivals were started.
    pub(crate) fn started(&mut self, now: Nanos) {
        self.last_start = now;
    }

    /// How to wait.
    pub(crate) fn wait(&self, outlook: Outlook) -> Wait {
        let Outlook { now, until, next_arrival, blocked, follows, in_flight, room } = outlook;
        let start = next_arrival.map_or(Nanos::MAX, |at| at.max(self.last_start + self.shared(room)));
        let until = until.min(start);
        let spin = if self.pacing == Pacing::Precise && start == until { SPIN } else { Nanos::ZERO };
        let may_gather = self.stamped && self.response_bytes < LARGE_RESPONSE as f64;
        if self.open && may_gather && !blocked && !follows {
            // No send depends on a response: sleep to the next send and read what has come by then.
            return Wait { until, want: u32::MAX, floor: until.since(now), spin };
        }
        if may_gather && in_flight >= GATHER_IN_FLIGHT && self.pacing == Pacing::Adaptive {
            // Where arrivals share wake-ups, so do the requests that follow a response: late on purpose,
            // within the same budget. Otherwise the target must not be left without work.
            let shares = self.tick > Nanos::ZERO && !blocked;
            let share = if shares { GATHER_MAX } else { Nanos(self.cycle_ns as u64 / GATHER_SHARE) };
            let floor = share.min(GATHER_MAX);
            if floor >= GATHER_MIN {
                // Half of what is in flight, in events. Where responses trickle in one by one on few
                // connections that is more than can be ready at once: then the time decides.
                let events = in_flight as f64 / self.responses_per_event.max(1.0);
                let want = ((events / 2.0) as u32).max(1);
                return Wait { until, want, floor, spin };
            }
        }
        Wait { until, want: 1, floor: Nanos::ZERO, spin }
    }

    /// The least time to the next wake-up for arrivals: one that owes more of them than there is room for
    /// would make them wait for connections, or drop them, although the target is fast enough.
    fn shared(&self, room: u64) -> Nanos {
        if self.tick == Nanos::ZERO {
            return Nanos::ZERO;
        }
        self.tick.min(Nanos::from_secs_f64(room as f64 / self.peak_per_second))
    }
}

/// The least time between wake-ups for arrivals of such a rate.
fn tick_of(pacing: Pacing, peak_per_second: f64) -> Nanos {
    let shares = pacing == Pacing::Adaptive && peak_per_second > OWN_WAKE_UP_PER_SECOND;
    if shares { shared_tick(peak_per_second) } else { Nanos::ZERO }
}

fn budget_of(tick: Nanos) -> Nanos {
    if tick == Nanos::ZERO { Nanos::ZERO } else { Pacing::BUDGET }
}

/// The time between wake-ups at which the last arrival of one, sent after all the others that it owes, is
/// `Pacing::BUDGET` late: `tick + rate · tick · send = budget`.
fn shared_tick(rate_per_second: f64) -> Nanos {
    Nanos::from_secs_f64(Pacing::BUDGET.as_secs_f64() / (1.0 + rate_per_second * SEND.as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outlook() -> Outlook {
        Outlook {
            now: Nanos(1_000),
            until: Nanos::from_millis(100),
            next_arrival: None,
            blocked: false,
            follows: false,
            in_flight: 64,
            room: 64,
        }
    }

    fn observed(mut pacer: Pacer, cycle: Nanos, stamped: bool, bytes: u64) -> Pacer {
        for _ in 0..200 {
            pacer.observe(cycle, stamped, bytes);
        }
        pacer
    }

    #[test]
    fn without_kernel_stamps_nothing_is_coalesced() {
        let pacer = observed(Pacer::new(Pacing::Adaptive, None), Nanos::from_millis(2), false, 100);
        assert_eq!(pacer.wait(outlook()).want, 1);
        let pacer = observed(Pacer::new(Pacing::Adaptive, Some(5_000.0)), Nanos::from_millis(2), false, 100);
        assert_eq!(pacer.wait(outlook()).want, 1);
    }

    #[test]
    fn a_closed_loop_gathers_for_a_share_of_its_cycle() {
        let pacer = observed(Pacer::new(Pacing::Adaptive, None), Nanos::from_micros(200), true, 100);
        let wait = pacer.wait(outlook());
        assert_eq!(wait.want, 32);
        assert!(wait.floor <= Nanos::from_micros(50) && wait.floor >= Nanos::from_micros(49), "{wait:?}");
        let slow = observed(Pacer::new(Pacing::Adaptive, None), Nanos::from_millis(20), true, 100);
        assert_eq!(slow.wait(outlook()).floor, GATHER_MAX);
        assert_eq!(slow.wait(Outlook { in_flight: 1, ..outlook() }).want, 1);
        let large = observed(Pacer::new(Pacing::Adaptive, None), Nanos::from_millis(20), true, 1 << 20);
        assert_eq!(large.wait(outlook()).want, 1);
    }

    #[test]
    fn what_follows_a_response_shares_wake_ups_where_arrivals_do() {
        let follows = Outlook { follows: true, next_arrival: Some(Nanos::from_millis(50)), ..outlook() };
        let cycle = Nanos::from_micros(200);
        let fast = observed(Pacer::new(Pacing::Adaptive, Some(20_000.0)), cycle, true, 100);
        assert_eq!((fast.wait(follows).want, fast.wait(follows).floor), (32, GATHER_MAX));
        assert!(fast.wait(Outlook { blocked: true, ..follows }).floor <= Nanos::from_micros(50));
        let slow = observed(Pacer::new(Pacing::Adaptive, Some(1_000.0)), cycle, true, 100);
        assert!(slow.wait(follows).floor <= Nanos::from_micros(50));
    }

    #[test]
    fn at_high_rates_arrivals_share_wake_ups_and_at_low_rates_they_do_not() {
        let next_arrival = Some(Nanos(2_000));
        let mut fast = observed(Pacer::new(Pacing::Adaptive, Some(50_000.0)), Nanos(90_000), true, 100);
        fast.started(Nanos(1_000));
        let wait = fast.wait(Outlook { next_arrival, ..outlook() });
        // 50,000 sends of 4 µs take a fifth of the time: the tick leaves room for them.
        let tick = wait.until.since(Nanos(1_000));
        assert!(tick.0.abs_diff(Pacing::BUDGET.0 * 10 / 12) <= 1, "{tick:?}");
        assert_eq!((wait.want, wait.spin), (u32::MAX, Nanos::ZERO));
        // Connections for ten of them leave a fifth of a millisecond.
        let few = fast.wait(Outlook { next_arrival, room: 10, ..outlook() });
        assert_eq!(few.until, Nanos(1_000) + Nanos::from_micros(200));
        let none = fast.wait(Outlook { next_arrival, room: 0, ..outlook() });
        assert_eq!(none.until, Nanos(2_000));
        let mut slow = Pacer::new(Pacing::Adaptive, Some(1_000.0));
        slow.started(Nanos(1_000));
        assert_eq!(slow.wait(Outlook { next_arrival, ..outlook() }).until, Nanos(2_000));
        let mut precise = Pacer::new(Pacing::Precise, Some(50_000.0));
        precise.started(Nanos(1_000));
        let wait = precise.wait(Outlook { next_arrival, ..outlook() });
        assert_eq!((wait.until, wait.spin), (Nanos(2_000), SPIN));
    }
}
