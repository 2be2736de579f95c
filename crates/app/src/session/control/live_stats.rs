//! The latest figures of a run, for the control port.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use plimsoll_core::Nanos;
use plimsoll_engine::{Progress, Stop};
use plimsoll_report::result::IntervalResult;

/// Intervals that the control port shows.
const INTERVALS_SHOWN: usize = 10;

/// The latest figures of a run, shared between threads.
#[derive(Debug, Default)]
pub(crate) struct LiveStats {
    figures: Mutex<Figures>,
    /// Longest wait for answers after the end of the load.
    drain: Nanos,
}

/// Contents of [`LiveStats`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    /// Time since the start at the end of the last interval, and the planned end, if it is known.
    pub(crate) elapsed: Nanos,
    pub(crate) end: Option<Nanos>,
    /// The last intervals, the latest one last.
    pub(crate) intervals: VecDeque<IntervalResult>,
    /// Requests sent by the end of the last interval, warm-up included.
    pub(crate) sent: u64,
    /// Requests in flight at the end of the last interval.
    pub(crate) in_flight: u64,
    /// The start of the run in Unix time; `None` before the end of the first interval.
    started_unix: Option<Nanos>,
    /// When the load was first seen to be stopped, in Unix time.
    stopped_unix: Option<Nanos>,
}

impl LiveStats {
    /// No figures yet, of a run that waits so long for answers after the end of its load.
    pub(crate) fn new(drain: Nanos) -> Self {
        Self { figures: Mutex::default(), drain }
    }

    fn lock(&self) -> MutexGuard<'_, Figures> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn note(&self, progress: &Progress<'_>) {
        let mut figures = self.lock();
        (figures.elapsed, figures.end) = (progress.elapsed, progress.end);
        figures.sent += progress.interval.started;
        figures.in_flight = progress.interval.in_flight;
        figures.started_unix = Some(progress.started_unix);
        if figures.intervals.len() == INTERVALS_SHOWN {
            figures.intervals.pop_front();
        }
        figures.intervals.push_back(IntervalResult::new(progress.interval));
    }

    /// Returns the longest time for which answers are still waited for, at an instant in Unix time; `None`
    /// while the load goes on.
    pub(crate) fn drain_left(&self, stop: Stop, now_unix: Nanos) -> Option<Nanos> {
        let mut figures = self.lock();
        let stopped = match stop {
            Stop::No => None,
            Stop::Drain | Stop::Now => Some(*figures.stopped_unix.get_or_insert(now_unix)),
        };
        let planned = figures.started_unix.zip(figures.end).map(|(started, end)| started + end);
        let over = stopped.into_iter().chain(planned.filter(|end| *end <= now_unix)).min()?;
        Some((over + self.drain).since(now_unix))
    }

    /// Returns a copy of the current figures.
    pub(crate) fn figures(&self) -> Figures {
        self.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Symptom: while a run waited for a server that never answers, nothing said for how long.
    #[test]
    fn the_wait_for_answers_begins_with_the_end_of_the_load() {
        let stats = LiveStats::new(Nanos::from_secs(30));
        let left = |stop, now| stats.drain_left(stop, Nanos::from_secs(now));
        assert_eq!(left(Stop::No, 100), None, "nothing is known yet");
        {
            let mut figures = stats.lock();
            (figures.started_unix, figures.end) = (Some(Nanos::from_secs(100)), Some(Nanos::from_secs(5)));
        }
        assert_eq!([left(Stop::No, 104), left(Stop::No, 107)], [None, Some(Nanos::from_secs(28))]);
        // Stopped at its second second, which is noticed once.
        assert_eq!(left(Stop::Drain, 102), Some(Nanos::from_secs(30)));
        assert_eq!(left(Stop::Drain, 107), Some(Nanos::from_secs(25)));
        assert_eq!(left(Stop::Now, 140), Some(Nanos::ZERO));
    }
}
