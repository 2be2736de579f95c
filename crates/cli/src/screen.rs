//! The live screen: what a run does, while it does it, on the terminal of stderr.
//!
//! The run control leaves its intervals in an inbox and never waits; a thread of its own, with the lowest
//! priority, takes them, judges and draws, at most four times per second. Messages that come while the screen
//! is shown are lines of it, and are written to stderr when it has closed.

mod chart;
mod drawing;
mod figures;
mod look;
mod page;
mod panels;
mod spread;
mod steps;
pub(crate) mod surface;
#[cfg(test)]
mod tests;
mod thresholds;

use std::collections::VecDeque;
use std::io::IsTerminal as _;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use plimsoll_core::Nanos;
use plimsoll_engine::{Control, Progress};
use plimsoll_metrics::{Interval, MachineFacts, MachineInterval, Pace};
use plimsoll_plan::Plan;

use self::figures::Subject;
pub(crate) use self::look::Theme;
use crate::foreign_text::visible;
use crate::{environment, streams, terminal};

/// Columns and rows below which there is no screen: then there is a line.
pub(crate) const SMALLEST: (u16, u16) = (60, 15);
/// Intervals that wait to be taken up. Whoever is so late has no processor; more would be memory without end.
const INBOX: usize = 64;
/// Bytes of messages that are kept until the screen closes: scripts may print without end.
const KEPT: usize = 4 << 20;

/// The screen that is shown, for those who have something to say.
static SHOWN: Mutex<Option<ScreenHandle>> = Mutex::new(None);

/// Says something on stderr. On a terminal the live line makes room; a live screen shows it, and keeps it for
/// stderr until it closes.
pub(crate) fn tell(text: &str) {
    let text = &*visible(text);
    if keep(text) {
        return;
    }
    if std::io::stderr().is_terminal() {
        streams::renew_line(&format!("{text}\n"));
    } else {
        streams::to_stderr(&format!("{text}\n"));
    }
}

/// Gives a message to the live screen; false if there is none.
pub(crate) fn keep(text: &str) -> bool {
    let stage = SHOWN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    stage.is_some_and(|stage| stage.take_message(text.trim_end()))
}

/// A key that changes what the screen shows.
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
    /// The same down.
    PageDown,
    /// To the first row.
    First,
    /// To the last row.
    Last,
}

/// The screen of one run. It closes when this is dropped.
#[derive(Debug)]
pub(crate) struct Screen {
    stage: ScreenHandle,
    thread: Option<JoinHandle<()>>,
}

/// Shared handle of a screen. It tells whether the screen is shown, and queues messages, keys and intervals
/// for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScreenHandle(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    inbox: Mutex<DrawQueue>,
    came: Condvar,
}

/// Queue of the drawing thread.
#[derive(Debug, Default)]
struct DrawQueue {
    /// `true` if messages are for the screen.
    shown: bool,
    over: bool,
    /// Set when something was added.
    news: bool,
    intervals: VecDeque<IntervalUpdate>,
    /// Number of intervals that found no room.
    lost: u64,
    keys: Vec<ViewKey>,
    /// All messages since the screen is shown, for stderr; those behind the first `read` are news.
    messages: Vec<String>,
    read: usize,
    /// Their bytes, and how many more came than are kept.
    kept: usize,
    unkept: u64,
}

/// One interval of the run.
#[derive(Debug)]
struct IntervalUpdate {
    end: Option<Nanos>,
    target: Option<f64>,
    pace: Pace,
    interval: Interval,
    machine: Option<(MachineInterval, MachineFacts)>,
}

impl ScreenHandle {
    fn inbox(&self) -> MutexGuard<'_, DrawQueue> {
        self.0.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leave(&self, change: impl FnOnce(&mut DrawQueue)) {
        let mut inbox = self.inbox();
        change(&mut inbox);
        inbox.news = true;
        self.0.came.notify_one();
    }

    /// Gives a message to the screen. False if there is none: then it is for stderr.
    fn take_message(&self, text: &str) -> bool {
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

    /// Returns `true` if the screen is shown.
    pub(crate) fn is_shown(&self) -> bool {
        self.inbox().shown
    }

    /// A key was pressed.
    pub(crate) fn press(&self, key: ViewKey) {
        self.leave(|inbox| inbox.keys.push(key));
    }

    /// The terminal has changed, or was given to somebody else for a while.
    pub(crate) fn look_again(&self) {
        self.leave(|_| {});
    }
}

/// Returns `true` if a screen is possible: stdin and stderr are terminals, large enough and able to do more
/// than write lines, this process is in the foreground, and the environment does not forbid it.
pub(crate) fn is_possible() -> bool {
    std::io::stderr().is_terminal()
        && std::io::stdin().is_terminal()
        && environment::allows_screen()
        && terminal::size().is_some_and(|(columns, rows)| columns >= SMALLEST.0 && rows >= SMALLEST.1)
        && terminal::is_ours()
}

impl Screen {
    /// Shows a run from its beginning on.
    ///
    /// # Errors
    /// There is no thread.
    pub(crate) fn open(
        stage: &ScreenHandle,
        plan: &Plan,
        control: &Control,
        look: Theme,
    ) -> std::io::Result<Self> {
        let subject = Subject::new(plan);
        let (shared, control) = (stage.clone(), control.clone());
        stage.inbox().shown = true;
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(stage.clone());
        let thread = thread::Builder::new()
            .name("screen".to_owned())
            .spawn(move || drawing::draw(&shared, subject, &control, look));
        if thread.is_err() {
            stage.inbox().shown = false;
        }
        Ok(Self { stage: stage.clone(), thread: Some(thread?) })
    }

    /// Takes up an interval.
    pub(crate) fn show(&self, progress: &Progress<'_>) {
        let news = IntervalUpdate {
            end: progress.end,
            target: progress.target_per_second,
            pace: progress.pace,
            interval: progress.interval.clone(),
            machine: progress.machine.map(|seen| (seen.clone(), progress.facts.clone())),
        };
        self.stage.leave(|inbox| {
            if inbox.intervals.len() < INBOX {
                inbox.intervals.push_back(news);
            } else {
                inbox.lost += 1;
            }
        });
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.stage.leave(|inbox| inbox.over = true);
        if let Some(thread) = self.thread.take() {
            // A thread that has panicked has said so.
            let _ = thread.join();
        }
        terminal::close_screen();
        let mut inbox = self.stage.inbox();
        inbox.shown = false;
        let messages = std::mem::take(&mut inbox.messages);
        let unkept = inbox.unkept;
        drop(inbox);
        // Whoever has something to say from here on says it behind these.
        messages.iter().for_each(|message| tell(message));
        if unkept > 0 {
            tell(&format!("{unkept} more messages came than the screen could keep"));
        }
    }
}
