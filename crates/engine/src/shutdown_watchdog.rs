//! The time for which the run control waits for workers that do not come back.

use plimsoll_core::Nanos;

use crate::control::Stop;

/// From one look at the wishes to the next while nothing comes.
pub(crate) const LOOK: Nanos = Nanos::from_millis(500);
/// Looks in silence, after the time at which every worker has to be through, that end the waiting: 10 s. A
/// worker looks at the time at least every 100 ms, unless something does not return that it has called.
const LATE: u32 = 20;
/// Looks in silence that end the waiting after the wish to stop now: 5 s.
const LATE_NOW: u32 = 10;

/// The patience of a run control.
///
/// It counts checks and not time: a process that was stopped as a whole gives its workers as many checks as
/// before, however late it is then.
#[derive(Debug)]
pub(crate) struct ShutdownWatchdog {
    /// When the load ends as planned, on the control's clock; never, if only the workers know.
    end: Nanos,
    drain: Nanos,
    /// When the wish to drain was seen first.
    asked: Option<Nanos>,
    /// Looks in silence since every worker has to be through.
    silent: u32,
}

impl ShutdownWatchdog {
    /// Patience with a load that ends at `end` and then drains for this time.
    pub(crate) const fn new(end: Nanos, drain: Nanos) -> Self {
        Self { end, drain, asked: None, silent: 0 }
    }

    /// Notes a message of a worker.
    pub(crate) const fn hear(&mut self) {
        self.silent = 0;
    }

    /// Notes that no worker sent a message until `now`. Returns `true` if the wait is to end.
    pub(crate) fn ends(&mut self, wish: Stop, now: Nanos) -> bool {
        if wish != Stop::No {
            self.asked.get_or_insert(now);
        }
        let end = self.asked.map_or(self.end, |asked| asked.min(self.end));
        let (through, limit) = match wish {
            Stop::Now => (Nanos::ZERO, LATE_NOW),
            _ if end == Nanos::MAX => (Nanos::MAX, LATE),
            _ => (Nanos(end.0.saturating_add(self.drain.0)), LATE),
        };
        self.silent = if now >= through { self.silent + 1 } else { 0 };
        self.silent >= limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: Nanos = Nanos::from_secs(100);
    const DRAIN: Nanos = Nanos::from_secs(5);

    /// When the waiting ends, if nothing ever comes from `from` on.
    fn gives_up(mut watchdog: ShutdownWatchdog, wish: Stop, from: Nanos) -> Option<Nanos> {
        let mut now = from;
        for _ in 0..1000 {
            now += LOOK;
            if watchdog.ends(wish, now) {
                return Some(now);
            }
        }
        None
    }

    #[test]
    fn workers_have_until_the_end_of_the_drain_and_a_while() {
        let watchdog = || ShutdownWatchdog::new(END, DRAIN);
        let while_ = LOOK * u64::from(LATE - 1);
        assert_eq!(gives_up(watchdog(), Stop::No, Nanos::ZERO), Some(END + DRAIN + while_));
        // The drain begins when its request is seen.
        let asked = Nanos::from_secs(30);
        assert_eq!(gives_up(watchdog(), Stop::Drain, asked), Some(asked + LOOK + DRAIN + while_));
        assert_eq!(gives_up(watchdog(), Stop::Drain, END), Some(END + DRAIN + while_));
        assert_eq!(gives_up(watchdog(), Stop::Now, asked), Some(asked + LOOK * u64::from(LATE_NOW)));
    }

    #[test]
    fn a_run_without_a_planned_end_is_waited_for() {
        let watchdog = || ShutdownWatchdog::new(Nanos::MAX, DRAIN);
        assert_eq!(gives_up(watchdog(), Stop::No, Nanos::ZERO), None);
        let asked = Nanos::from_secs(30);
        assert!(gives_up(watchdog(), Stop::Drain, asked).is_some());
        assert_eq!(gives_up(ShutdownWatchdog::new(END, Nanos::MAX), Stop::Drain, asked), None);
    }

    #[test]
    fn what_is_heard_makes_the_watchdog_new() {
        let mut watchdog = ShutdownWatchdog::new(Nanos::ZERO, Nanos::ZERO);
        for _ in 0..LATE - 1 {
            assert!(!watchdog.ends(Stop::No, END));
        }
        watchdog.hear();
        assert_eq!(gives_up(watchdog, Stop::No, END), Some(END + LOOK * u64::from(LATE)));
    }
}
