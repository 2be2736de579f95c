//! Worker threads that carry out one run after another.

use std::fmt;
use std::io;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};

use plimsoll_driver::Open;

use crate::worker::Kept;

/// Stack of a worker's thread, of which only the used part takes memory. Scripts that call themselves through
/// functions of the library reach the end of Lua's stack, which is an error, within 8 MiB of it; the usual
/// 2 MiB were too little, and the process aborted.
const WORKER_STACK: usize = 16 << 20;

/// Worker threads, each with its backend, that carry out several runs of the same targets in turn: idle
/// connections of a run serve the next one. Dropping it closes them and waits for the threads.
pub struct Crew<O: Open> {
    pub(crate) open: O,
    /// The threads between two runs, by worker.
    seats: Vec<Seat<O::Backend>>,
}

impl<O: Open> Crew<O> {
    /// No threads so far; each opens its backend by `open` in its first run.
    pub const fn new(open: O) -> Self {
        Self { open, seats: Vec::new() }
    }

    /// Takes the threads for a run, which [keeps](Self::keep_seats) those that came back from it.
    pub(crate) fn take_seats(&mut self) -> std::vec::IntoIter<Seat<O::Backend>> {
        std::mem::take(&mut self.seats).into_iter()
    }

    /// Keeps threads for the next run.
    pub(crate) fn keep_seats(&mut self, seats: Vec<Seat<O::Backend>>) {
        self.seats = seats;
    }
}

impl<O: Open> fmt::Debug for Crew<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crew").field("seats", &self.seats.len()).finish_non_exhaustive()
    }
}

/// All threads have ended their runs: each closes its backend, and ends.
impl<O: Open> Drop for Crew<O> {
    fn drop(&mut self) {
        for Seat { jobs, thread, .. } in self.take_seats() {
            drop(jobs);
            // The thread has nothing left to do, and has reported its own panic.
            let _ = thread.join();
        }
    }
}

/// A worker's part in one run. It finds the backend of the run before, if there was one, and leaves its own.
type Job<B> = Box<dyn FnOnce(&mut Option<Kept<B>>) + Send>;

/// One worker thread.
pub(crate) struct Seat<B> {
    jobs: Sender<Job<B>>,
    thread: JoinHandle<()>,
    /// Lives as long as the last job.
    job: Weak<()>,
}

impl<B: 'static> Seat<B> {
    /// Starts a thread of this name.
    ///
    /// # Errors
    /// If the system gives none.
    pub(crate) fn begin(name: String) -> io::Result<Self> {
        let (jobs, assigned) = channel::<Job<B>>();
        let thread = thread::Builder::new().stack_size(WORKER_STACK).name(name).spawn(move || {
            let mut kept = None;
            for job in assigned {
                job(&mut kept);
            }
        })?;
        Ok(Self { jobs, thread, job: Weak::new() })
    }

    /// Has the thread carry out `job`, after those that it has.
    pub(crate) fn assign(&mut self, job: impl FnOnce(&mut Option<Kept<B>>) + Send + 'static) {
        let token = Arc::new(());
        self.job = Arc::downgrade(&token);
        // A thread that has panicked takes no job: its messages end, and the run with them.
        let _ = self.jobs.send(Box::new(move |kept| {
            job(kept);
            drop(token);
        }));
    }
}

impl<B> Seat<B> {
    /// Returns `true` until the last job has ended.
    pub(crate) fn is_busy(&self) -> bool {
        self.job.strong_count() > 0
    }
}
