//! Worker threads that carry out one run after another.

use std::fmt;
use std::io;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};

use crate::backends::Backends;
use crate::job::Job;

/// Stack of a worker's thread, of which only the used part takes memory. Scripts that call themselves through
/// functions of the library reach the end of Lua's stack, which is an error, within 8 MiB of it; the usual
/// 2 MiB were too little, and the process aborted.
const WORKER_STACK: usize = 16 << 20;

/// Worker threads, each with its backend, that carry out several runs of the same targets in turn: idle
/// connections of a run serve the next one. Dropping it closes them and waits for the threads.
pub struct Crew {
    pub(crate) backends: Backends,
    /// The threads between two runs, by worker.
    seats: Vec<Seat>,
}

impl Crew {
    /// No threads so far; each opens one of the backends in its first run.
    pub const fn new(backends: Backends) -> Self {
        Self { backends, seats: Vec::new() }
    }

    /// Takes the threads for a run, which [keeps](Self::keep_seats) those that came back from it.
    pub(crate) fn take_seats(&mut self) -> std::vec::IntoIter<Seat> {
        std::mem::take(&mut self.seats).into_iter()
    }

    /// Keeps threads for the next run.
    pub(crate) fn keep_seats(&mut self, seats: Vec<Seat>) {
        self.seats = seats;
    }
}

impl fmt::Debug for Crew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crew").field("seats", &self.seats.len()).finish_non_exhaustive()
    }
}

/// All threads have ended their runs: each closes its backend, and ends.
impl Drop for Crew {
    fn drop(&mut self) {
        for Seat { jobs, thread, .. } in self.take_seats() {
            drop(jobs);
            // The thread has nothing left to do, and has reported its own panic.
            let _ = thread.join();
        }
    }
}

/// One worker thread.
pub(crate) struct Seat {
    jobs: Sender<Job>,
    thread: JoinHandle<()>,
    /// Lives as long as the last job.
    job: Weak<()>,
}

impl Seat {
    /// Starts a thread of this name.
    ///
    /// # Errors
    /// If the system gives none.
    pub(crate) fn begin(name: String, backends: Backends) -> io::Result<Self> {
        let (jobs, assigned) = channel();
        let builder = thread::Builder::new().stack_size(WORKER_STACK).name(name);
        let thread = builder.spawn(move || backends.serve(&assigned))?;
        Ok(Self { jobs, thread, job: Weak::new() })
    }

    /// Has the thread carry out `job`, after those that it has.
    pub(crate) fn assign(&mut self, job: Job) {
        self.job = Arc::downgrade(&job.token);
        // A thread that has panicked takes no job: its messages end, and the run with them.
        let _ = self.jobs.send(job);
    }

    /// Returns `true` until the last job has ended.
    pub(crate) fn is_busy(&self) -> bool {
        self.job.strong_count() > 0
    }
}
