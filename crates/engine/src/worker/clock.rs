//! Time as a worker has it: the present, and when the parts of the run begin and end.

use plimsoll_core::Nanos;
use plimsoll_plan::Plan;

/// The times of one worker, on the driver's clock.
///
/// `now` serves all decisions of a pass, so that no two of them disagree, and never goes back within one; it
/// moves on with each flush. Before [`begin`](Self::begin) the run has no times: all are never. From then on
/// `start <= measure` and `end <= drained` hold, and both ends only move to earlier.
#[derive(Debug)]
pub(super) struct Clock {
    /// The time that serves all decisions of this pass; read again after each flush.
    pub(super) now: Nanos,
    /// Begin of the load.
    pub(super) start: Nanos,
    /// Begin of the measured part.
    pub(super) measure: Nanos,
    /// End of the load; [`Nanos::MAX`] while it is not known (a counted run).
    pub(super) end: Nanos,
    /// After this nothing is waited for any more.
    pub(super) drained: Nanos,
    /// Set once arrivals are over.
    pub(super) arrivals_ended: bool,
    /// End of the phase that is under way; never, without phases.
    border: Nanos,
    /// Difference from Unix time, in ns.
    unix_offset: u64,
}

impl Clock {
    /// The times of a run that has not begun; `unix_offset` is the offset of the driver's clock from Unix
    /// time, in nanoseconds.
    pub(super) const fn new(unix_offset: u64) -> Self {
        Self {
            now: Nanos::ZERO,
            start: Nanos::MAX,
            measure: Nanos::MAX,
            end: Nanos::MAX,
            drained: Nanos::MAX,
            arrivals_ended: false,
            border: Nanos::MAX,
            unix_offset,
        }
    }

    /// Begins the load of a plan.
    pub(super) fn begin(&mut self, start: Nanos, plan: &Plan) {
        self.start = start;
        self.measure = start + plan.warmup;
        self.end = plan.end.duration.map_or(Nanos::MAX, |length| self.measure + length);
        self.drained = self.end + plan.drain;
        self.begin_phase(start, plan);
    }

    /// Moves the present on, if `now` is later.
    #[inline]
    pub(super) fn advance(&mut self, now: Nanos) {
        self.now = self.now.max(now);
    }

    /// Unix time at an instant.
    #[inline]
    pub(super) const fn unix(&self, at: Nanos) -> Nanos {
        Nanos(at.0.wrapping_add(self.unix_offset))
    }

    /// Unix time now, in ns.
    #[inline]
    pub(super) const fn unix_ns(&self) -> u64 {
        self.unix(self.now).0
    }

    /// Unix time now, in s.
    #[inline]
    pub(super) const fn unix_s(&self) -> u64 {
        self.unix_ns() / 1_000_000_000
    }

    /// The instant of a Unix time, which is given in ns.
    #[inline]
    pub(super) const fn at_unix(&self, unix_ns: u64) -> Nanos {
        Nanos(unix_ns.saturating_sub(self.unix_offset))
    }

    /// Lets the load end now, unless it has ended. Requests in flight are waited for.
    #[inline]
    pub(super) fn end_load(&mut self, now: Nanos, plan: &Plan) {
        if self.end > now {
            self.end = now;
            self.drained = now + plan.drain;
        }
    }

    /// Lets the load end at once. Nothing is waited for.
    pub(super) fn stop(&mut self, now: Nanos) {
        self.end = self.end.min(now);
        self.drained = now;
        self.arrivals_ended = true;
    }

    /// Lets the load end at that time, when nothing was left to do.
    pub(super) const fn complete(&mut self, at: Nanos) {
        self.end = at;
        self.drained = at;
    }

    /// Begins the phase that is under way from `at` on.
    #[inline]
    pub(super) fn begin_phase(&mut self, at: Nanos, plan: &Plan) {
        self.border = self.border_after(at, plan);
    }

    /// The end of the phase that is under way, or of the load. Arrivals that fall due later wait for the
    /// figures of the earlier ones.
    #[inline]
    pub(super) fn border(&self) -> Nanos {
        self.end.min(self.border)
    }

    /// The end of the interval that begins at `at`. None reaches from the warm-up into the measured part, or
    /// from one phase into the next.
    #[inline]
    pub(super) fn edge_after(&self, at: Nanos, plan: &Plan) -> Nanos {
        let edge = (at + plan.interval).min(self.border_after(at, plan));
        if at < self.measure { edge.min(self.measure) } else { edge }
    }

    /// The end of the phase that is under way at `at`; never, without phases.
    #[inline]
    fn border_after(&self, at: Nanos, plan: &Plan) -> Nanos {
        let ends = plan.phases.iter().map(|phase| self.start + phase.end());
        ends.filter(|end| *end > at).min().unwrap_or(Nanos::MAX)
    }
}
