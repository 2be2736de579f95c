//! The handle of a screen: the inbox of the thread that draws it.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use plimsoll_core::Nanos;
use plimsoll_metrics::{Interval, MachineFacts, MachineInterval, Pace};

use crate::base::messages::MessageScreen;

/// Columns and rows below which there is no screen: then there is a line.
pub(crate) const SMALLEST: (u16, u16) = (60, 15);

/// Bytes of messages that are kept until the screen closes: scripts may print without end.
const KEPT: usize = 4 << 20;

/// A key that changes the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ViewKey {
    /// The next view.
    Next,
    /// The one before.
    Previous,
    /// Shows the keys, or hides them.
    Help,
    /// One row up.
    Up,
    /// One row down.
    Down,
    /// Rows up, as many as are shown.
    PageUp,
    /// Rows down, as many as are shown.
    PageDown,
    /// To the first row.
    First,
    /// To the last row.
    Last,
}

/// Shared handle of a screen. It knows whether the screen is shown, and queues messages, keys and intervals
/// for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScreenHandle(pub(super) Arc<Shared>);

#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) inbox: Mutex<DrawQueue>,
    pub(super) came: Condvar,
}

/// Queue of the drawing thread.
#[derive(Debug, Default)]
pub(super) struct DrawQueue {
    /// `true` if messages are for the screen.
    pub(super) shown: bool,
    pub(super) over: bool,
    /// Set when something was added.
    pub(super) news: bool,
    pub(super) intervals: VecDeque<IntervalUpdate>,
    /// Number of intervals that found no room.
    pub(super) lost: u64,
    pub(super) keys: Vec<ViewKey>,
    /// All messages since the screen is shown, for stderr; those behind the first `read` are news.
    pub(super) messages: Vec<String>,
    pub(super) read: usize,
    /// Their bytes, and how many more came than are kept.
    pub(super) kept: usize,
    pub(super) unkept: u64,
}

/// One interval of the run.
#[derive(Debug)]
pub(super) struct IntervalUpdate {
    pub(super) end: Option<Nanos>,
    pub(super) target: Option<f64>,
    pub(super) pace: Pace,
    pub(super) interval: Interval,
    pub(super) machine: Option<(MachineInterval, MachineFacts)>,
}

impl ScreenHandle {
    pub(super) fn inbox(&self) -> MutexGuard<'_, DrawQueue> {
        self.0.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn leave(&self, change: impl FnOnce(&mut DrawQueue)) {
        let mut inbox = self.inbox();
        change(&mut inbox);
        inbox.news = true;
        self.0.came.notify_one();
    }

    /// Returns `true` if the screen is shown.
    pub(crate) fn is_shown(&self) -> bool {
        self.inbox().shown
    }

    /// A key was pressed.
    pub(crate) fn press(&self, key: ViewKey) {
        self.leave(|inbox| inbox.keys.push(key));
    }

    /// The terminal has changed, or belonged to another program for a while.
    pub(crate) fn look_again(&self) {
        self.leave(|_| {});
    }
}

impl MessageScreen for ScreenHandle {
    fn take(&self, text: &str) -> bool {
        let mut inbox = self.inbox();
        if inbox.shown && inbox.kept + text.len() > KEPT {
            inbox.unkept += 1;
        } else if inbox.shown {
            inbox.kept += text.len();
            inbox.messages.push(text.to_owned());
            inbox.news = true;
            self.0.came.notify_one();
        }
        inbox.shown
    }
}
