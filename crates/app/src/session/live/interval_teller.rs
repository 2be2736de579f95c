//! `--tell-intervals`: the intervals of a run on stdout, for the agent of a fleet that has started it.
//!
//! The run control hands them over and never waits; a background thread writes them.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use plimsoll_engine::Progress;
use plimsoll_metrics::Interval;
use plimsoll_report::saved::interval_to_line;
use plimsoll_system::thread::enter_background;

use crate::base::streams::{self, Content};
use crate::session::observer::Observer;

/// Intervals that may wait for an agent that does not read. Later ones are dropped: the result has them.
const WAITING: usize = 900;

/// Writes the intervals of a run. All of them are written when it is dropped.
#[derive(Debug)]
pub(crate) struct IntervalTeller {
    send: Option<SyncSender<Interval>>,
    thread: Option<JoinHandle<()>>,
}

impl IntervalTeller {
    /// Begins with the next interval.
    ///
    /// # Errors
    /// There is no thread.
    pub(crate) fn start() -> std::io::Result<Self> {
        let (send, receive) = sync_channel::<Interval>(WAITING);
        let write = move || {
            // If the system refuses, workers pay a little more.
            let _ = enter_background();
            for interval in receive {
                let written = interval_to_line(&interval).and_then(|line| {
                    // JSON, which escapes everything that could act on a terminal.
                    streams::to_stdout(Content::Bytes, |out| writeln!(out, "{line}"))
                });
                // The agent that has started the run is gone; the run ends, too.
                if written.is_err() {
                    return;
                }
            }
        };
        let thread = Builder::new().name("intervals".to_owned()).spawn(write)?;
        Ok(Self { send: Some(send), thread: Some(thread) })
    }
}

impl Observer for IntervalTeller {
    fn observe(&mut self, progress: &Progress<'_>) {
        if let Some(send) = &self.send {
            // An interval without room in the queue is missing from the live figures only.
            let _ = send.try_send(progress.interval.clone());
        }
    }
}

impl Drop for IntervalTeller {
    fn drop(&mut self) {
        self.send = None;
        if let Some(thread) = self.thread.take() {
            // The thread has reported its own panic.
            let _ = thread.join();
        }
    }
}
