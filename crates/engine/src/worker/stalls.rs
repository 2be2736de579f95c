//! Stalls of the worker's own thread.

use plimsoll_core::Nanos;

use super::LONGEST_WAIT;

/// A worker that comes back from a wait, or from a pass, later than this has been stalled: the scheduler or a
/// stop signal held it, and measurements in that time are not the target's doing.
pub(super) const STALL: Nanos = Nanos::from_millis(50);
/// A pass that begins so soon after a stall, or after another such pass, still works off the backlog of the
/// stall: without a backlog a worker would wait.
const CATCHING_UP: Nanos = Nanos::from_micros(20);

/// The last stall, with the time in which its backlog was worked off.
///
/// A request that was due before its end, and ended after its start, [met](Self::met) it: that is one
/// comparison per request, and false for all of them while there was no stall. The end moves with
/// [`extend`](Self::extend), at most by the length of the stall.
#[derive(Debug, Default)]
pub(super) struct Stalls {
    begin: Nanos,
    end: Nanos,
    /// Limit up to which the end may still move.
    latest: Nanos,
}

impl Stalls {
    /// Notes a stall. While the backlog of the last one is worked off, both are one.
    #[inline]
    pub(super) fn note(&mut self, at: Nanos, length: Nanos) {
        if self.end == Nanos::ZERO || at > self.end + LONGEST_WAIT {
            self.begin = at;
        }
        self.end = at + length;
        self.latest = self.end + length;
    }

    /// Lets the stall last until `until`, if the pass that began at `began` worked off its backlog.
    #[inline]
    pub(super) fn extend(&mut self, began: Nanos, until: Nanos) {
        if began <= self.end + CATCHING_UP && self.end < self.latest {
            self.end = self.end.max(until.min(self.latest));
        }
    }

    /// Returns `true` if a request from `begin` to `end` met the stall.
    #[inline]
    pub(super) fn met(&self, begin: Nanos, end: Nanos) -> bool {
        begin < self.end && end >= self.begin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_lasts_until_its_backlog_is_worked_off_but_no_longer_than_itself() {
        let ms = Nanos::from_millis;
        let mut stalls = Stalls::default();
        assert!(!stalls.met(Nanos::ZERO, Nanos::MAX), "there was none");
        stalls.note(ms(1_000), ms(60));
        assert!(stalls.met(ms(900), ms(1_000)) && !stalls.met(ms(900), ms(999)));
        assert!(stalls.met(ms(1_059), ms(1_070)) && !stalls.met(ms(1_060), ms(1_070)));
        stalls.extend(ms(1_060), ms(1_090));
        assert!(stalls.met(ms(1_089), ms(1_100)));
        stalls.extend(ms(1_091), ms(1_100));
        assert!(!stalls.met(ms(1_090), ms(1_100)), "the worker has waited in between");
        stalls.extend(ms(1_090), ms(2_000));
        assert!(stalls.met(ms(1_119), ms(2_000)) && !stalls.met(ms(1_120), ms(2_000)));
    }

    #[test]
    fn a_stall_in_the_backlog_of_another_goes_on_with_it() {
        let ms = Nanos::from_millis;
        let mut stalls = Stalls::default();
        stalls.note(ms(1_000), ms(60));
        stalls.note(ms(1_160), ms(70));
        assert!(stalls.met(ms(900), ms(1_000)) && stalls.met(ms(1_229), ms(1_300)));
        stalls.note(ms(1_331), ms(60));
        assert!(!stalls.met(ms(900), ms(1_330)), "it is another one");
    }
}
