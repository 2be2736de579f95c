//! The live screen: a view of the run under way, on the terminal of stderr.
//!
//! The run control leaves its intervals in an inbox and never waits; a thread of its own, with the lowest
//! priority, takes them, judges and draws, at most four times per second. Messages that come while the screen
//! is shown are lines of it, and are written to stderr when it has closed.

mod chart;
mod drawing;
mod figures;
mod frame;
mod handle;
mod look;
mod page;
mod panels;
mod spread;
mod steps;
mod surface;
#[cfg(test)]
mod tests;
mod thresholds;
mod time_classes;

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use plimsoll_engine::{Control, Progress};
use plimsoll_plan::Plan;

use self::figures::Subject;
use self::handle::{IntervalUpdate, SMALLEST};
pub(crate) use self::handle::{ScreenHandle, ViewKey};
use crate::base::color::Theme;
use crate::base::{environment, messages, terminal};

/// Intervals that wait to be taken up. A screen that is so late has no processor; more would be memory
/// without end.
const INBOX: usize = 64;

/// The screen of one run. It closes when this is dropped.
#[derive(Debug)]
pub(crate) struct Screen {
    stage: ScreenHandle,
    thread: Option<JoinHandle<()>>,
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
        messages::show_on(Arc::new(stage.clone()));
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
            // The thread has reported its own panic.
            let _ = thread.join();
        }
        terminal::close_screen();
        let mut inbox = self.stage.inbox();
        inbox.shown = false;
        let messages = std::mem::take(&mut inbox.messages);
        let unkept = inbox.unkept;
        drop(inbox);
        // From here on, other threads write their messages behind these.
        messages.iter().for_each(|message| messages::tell(message));
        if unkept > 0 {
            messages::tell(&format!("{unkept} more messages came than the screen could keep"));
        }
    }
}
