//! The latest figures of a run, for the control port.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use plimsoll_core::Nanos;
use plimsoll_engine::Progress;
use plimsoll_report::result::IntervalResult;

/// Intervals that the control port shows.
const INTERVALS_SHOWN: usize = 10;

/// The latest figures of a run, shared between threads.
#[derive(Debug, Default)]
pub(crate) struct LiveStats(Mutex<Figures>);

/// Contents of [`LiveStats`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    /// Time since the start at the end of the last interval, and the planned end, if it is known.
    pub(crate) elapsed: Nanos,
    pub(crate) end: Option<Nanos>,
    /// The last intervals, the latest one last.
    pub(crate) intervals: VecDeque<IntervalResult>,
}

impl LiveStats {
    fn lock(&self) -> MutexGuard<'_, Figures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn note(&self, progress: &Progress<'_>) {
        let mut figures = self.lock();
        (figures.elapsed, figures.end) = (progress.elapsed, progress.end);
        if figures.intervals.len() == INTERVALS_SHOWN {
            figures.intervals.pop_front();
        }
        figures.intervals.push_back(IntervalResult::new(progress.interval));
    }

    /// Returns a copy of the current figures.
    pub(crate) fn figures(&self) -> Figures {
        self.lock().clone()
    }
}
