//! The way from the kernel's receive stamps to the clock of a run.

use plimsoll_core::Nanos;
use plimsoll_system::clock::{monotonic, unix};

/// One reading of both clocks at the same instant, as nearly as can be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    monotonic: Nanos,
    realtime: Nanos,
}

impl Reading {
    /// The tightest of three bracketed readings: `CLOCK_REALTIME` is taken to have been read half-way between
    /// the two readings of `CLOCK_MONOTONIC` around it, so the error is at most half the bracket (some 25 ns,
    /// unless all three were interrupted).
    fn take() -> Self {
        let mut best = Self { monotonic: Nanos::ZERO, realtime: Nanos::ZERO };
        let mut narrowest = Nanos::MAX;
        for _ in 0..3 {
            let before = monotonic();
            let realtime = unix();
            let width = monotonic() - before;
            if width < narrowest {
                narrowest = width;
                best = Self { monotonic: before + Nanos(width.0 / 2), realtime };
            }
        }
        best
    }
}

/// Maps the kernel's receive stamps, which are in `CLOCK_REALTIME`, to [`monotonic`].
///
/// The distance of the two clocks is read again at most every [`REMAP`](Self::REMAP), because the realtime
/// clock is slewed and may be stepped. A stamp from before a step, or one that lands in the future, has no
/// trustworthy place on our clock: it is refused, and the caller falls back to the time of its pass. The
/// remaining case is a step backwards of less than `REMAP`, which can shift the stamps of at most that span
/// by as much.
#[derive(Debug)]
pub(crate) struct RealtimeMap {
    reading: Reading,
    /// Stamps from before this were made before the clock was stepped.
    valid_from: Nanos,
}

impl RealtimeMap {
    /// A slew of 500 ppm (the kernel's limit) makes 5 us of error in this time; smaller costs clock readings.
    const REMAP: Nanos = Nanos::from_millis(10);
    /// More than this in the future is a step of the clock; less is the error of the mapping.
    const FUTURE: Nanos = Nanos::from_millis(1);

    pub(crate) fn new() -> Self {
        Self { reading: Reading::take(), valid_from: Nanos::ZERO }
    }

    /// The position of `stamp` on the clock of `now`, never after `now`; `None` if it is unknown.
    pub(crate) fn map(&mut self, stamp: Nanos, now: Nanos) -> Option<Nanos> {
        self.map_reading(stamp, now, Reading::take)
    }

    fn map_reading(&mut self, stamp: Nanos, now: Nanos, take: impl FnOnce() -> Reading) -> Option<Nanos> {
        let age = now - self.reading.monotonic;
        let mut at = self.shift(stamp);
        // An instant before the last reading is either a stamp that waited long to be read, or one after a
        // step backwards: only a new reading can tell. `age` is zero when this pass has taken one already.
        let doubtful = at.is_none_or(|at| at < self.reading.monotonic || at > now + Self::FUTURE);
        if age >= Self::REMAP || (doubtful && age > Nanos::ZERO) {
            self.remap(take());
            at = self.shift(stamp);
        }
        let at = at?;
        if at > now + Self::FUTURE || at < self.valid_from {
            return None;
        }
        Some(at.min(now))
    }

    fn shift(&self, stamp: Nanos) -> Option<Nanos> {
        let at =
            i128::from(self.reading.monotonic.0) + i128::from(stamp.0) - i128::from(self.reading.realtime.0);
        u64::try_from(at).ok().map(Nanos)
    }

    fn remap(&mut self, new: Reading) {
        let elapsed = i128::from(new.monotonic.0) - i128::from(self.reading.monotonic.0);
        let realtime_elapsed = i128::from(new.realtime.0) - i128::from(self.reading.realtime.0);
        // Twice the largest slew, and a millisecond for interrupted readings: beyond it the clock was
        // stepped.
        let tolerance = i128::from(Self::FUTURE.0) + elapsed / 1000;
        if (realtime_elapsed - elapsed).abs() > tolerance {
            self.valid_from = new.monotonic;
        }
        self.reading = new;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    /// The realtime clock is this far ahead in the tests.
    const EPOCH: u64 = 1_700_000_000_000_000_000;

    fn reading(monotonic: u64, step: i64) -> Reading {
        Reading {
            monotonic: Nanos(monotonic),
            realtime: Nanos((EPOCH + monotonic).wrapping_add_signed(step)),
        }
    }

    fn map_at(monotonic: u64) -> RealtimeMap {
        RealtimeMap { reading: reading(monotonic, 0), valid_from: Nanos::ZERO }
    }

    #[test]
    fn a_stamp_keeps_its_distance() {
        let mut map = map_at(100 * MS);
        let at = map.map_reading(Nanos(EPOCH + 103 * MS), Nanos(105 * MS), || panic!("read too early"));
        assert_eq!(at, Some(Nanos(103 * MS)));
    }

    #[test]
    fn a_stamp_is_never_after_now() {
        let mut map = map_at(100 * MS);
        let at = map.map_reading(Nanos(EPOCH + 105 * MS + 300), Nanos(105 * MS), || panic!("read too early"));
        assert_eq!(at, Some(Nanos(105 * MS)));
    }

    #[test]
    fn a_slewed_clock_is_followed() {
        let mut map = map_at(100 * MS);
        // 4 us of slew over 10 ms: 400 ppm.
        let at =
            map.map_reading(Nanos(EPOCH + 109 * MS + 4_000), Nanos(110 * MS), || reading(110 * MS, 4_000));
        assert_eq!(at, Some(Nanos(109 * MS)));
    }

    #[test]
    fn an_old_stamp_survives_a_new_reading() {
        let mut map = map_at(5_000 * MS);
        let now = Nanos(5_001 * MS);
        let at = map.map_reading(Nanos(EPOCH + 2_000 * MS), now, || reading(now.0, 0));
        assert_eq!(at, Some(Nanos(2_000 * MS)));
    }

    #[test]
    fn stamps_before_a_step_are_refused_and_later_ones_are_not() {
        for step in [-3_600_000_000_000_i64, -50_000_000, 50_000_000, 3_600_000_000_000] {
            let mut map = map_at(100 * MS);
            let now = Nanos(120 * MS);
            let before = map.map_reading(Nanos(EPOCH + 101 * MS), now, || reading(now.0, step));
            assert_eq!(before, None, "a stamp from before a step of {step} ns");
            let stamp = Nanos((EPOCH + 121 * MS).wrapping_add_signed(step));
            let after = map.map_reading(stamp, Nanos(122 * MS), || panic!("read too early"));
            assert_eq!(after, Some(Nanos(121 * MS)), "a stamp from after a step of {step} ns");
        }
    }

    #[test]
    fn a_step_is_found_at_the_first_odd_stamp() {
        for step in [-50_000_000_i64, 50_000_000] {
            let mut map = map_at(100 * MS);
            let stamp = Nanos((EPOCH + 101 * MS).wrapping_add_signed(step));
            let mut read = false;
            let at = map.map_reading(stamp, Nanos(102 * MS), || {
                read = true;
                reading(102 * MS, step)
            });
            assert!(read, "a step of {step} ns went unnoticed");
            assert_eq!(at, None, "made before the step was noticed");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let mut map = map_at(100 * MS);
        assert_eq!(map.map_reading(Nanos::ZERO, Nanos(101 * MS), || reading(101 * MS, 0)), None);
        assert_eq!(map.map_reading(Nanos::MAX, Nanos(102 * MS), || reading(102 * MS, 0)), None);
    }

    #[test]
    fn the_clocks_of_this_machine_agree() {
        let mut map = RealtimeMap::new();
        let before = monotonic();
        let stamp = unix();
        let after = monotonic();
        let at = map.map(stamp, after).expect("no step during the test");
        // The readings have a bracket of their own; 1 ms is what an interrupted one may be off.
        assert!(at + RealtimeMap::FUTURE >= before && at <= after, "{at:?} not in {before:?}..{after:?}");
    }
}
