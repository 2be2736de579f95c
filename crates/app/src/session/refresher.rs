//! The refresh of a plan: a thread that replaces values of the setup while the load goes on.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use plimsoll_core::Nanos;
use plimsoll_engine::{Backends, Control, RunError, Stop, refresh};
use plimsoll_plan::{Plan, SharedText};

use crate::base::messages::Notify;
use crate::session::done_once::{DoneOnce, Refreshes};

/// Attempts in the time between two refreshes, if one has failed: an old value may be good for a while yet.
const ATTEMPTS: u32 = 10;
/// Least time between two attempts.
const LEAST_WAIT: Duration = Duration::from_secs(1);

/// Carries out the refresh of a plan every so often, until it is dropped.
pub(crate) struct Refresher {
    so_far: Arc<Mutex<Refreshes>>,
    control: Control,
    /// The thread ends with it.
    ending: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Refresher {
    /// Starts the thread. `texts` are the values that it replaces, by their names.
    ///
    /// # Errors
    /// [`RunError::Worker`] if there is no thread to be had.
    pub(crate) fn start(
        (every, steps): (Nanos, Arc<Plan>),
        texts: Vec<(String, SharedText)>,
        backends: &Backends,
        say: &Notify,
    ) -> Result<Self, RunError> {
        let (ending, ended) = channel();
        let (so_far, control) = (Arc::default(), Control::default());
        let work = Work {
            every: Duration::from_nanos(every.0),
            steps,
            texts,
            so_far: Arc::clone(&so_far),
            control: control.clone(),
            say: say.clone(),
        };
        let backends = backends.clone();
        let thread = Builder::new()
            .name("refresh".to_owned())
            .spawn(move || work.repeat(&backends, &ended))
            .map_err(|error| RunError::Worker(error.to_string()))?;
        Ok(Self { so_far, control, ending: Some(ending), thread: Some(thread) })
    }

    /// Takes the refreshes since the last call.
    pub(crate) fn take(&self) -> Refreshes {
        std::mem::take(&mut self.so_far.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends it. A refresh that is under way is given up: only its requests are counted.
    pub(crate) fn end(&mut self) {
        self.ending = None;
        self.control.stop(Stop::Now);
        // A thread that has panicked has told so.
        self.thread.take().into_iter().for_each(|thread| drop(thread.join()));
    }
}

impl Drop for Refresher {
    fn drop(&mut self) {
        self.end();
    }
}

struct Work {
    every: Duration,
    steps: Arc<Plan>,
    texts: Vec<(String, SharedText)>,
    so_far: Arc<Mutex<Refreshes>>,
    control: Control,
    say: Notify,
}

impl Work {
    fn repeat(&self, backends: &Backends, ended: &Receiver<()>) {
        let (mut wait, mut has_told) = (self.every, false);
        while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
            let once = refresh(&self.steps, backends, &self.control);
            for (name, value) in once.iter().filter_map(|once| once.values.as_ref()).flatten() {
                let texts = self.texts.iter().filter(|(known, _)| known == name);
                texts.for_each(|(_, text)| text.set(value));
            }
            let DoneOnce { result, sent } = DoneOnce::new(once.as_ref(), &self.steps);
            let mut so_far = self.so_far.lock().unwrap_or_else(PoisonError::into_inner);
            so_far.result.requests += result.requests;
            so_far.sent += sent;
            if result.failure.is_some() && self.control.requested_stop() > Stop::No {
                return;
            }
            so_far.result.times += 1;
            wait = self.every;
            if let Some(failure) = result.failure {
                wait = (self.every / ATTEMPTS).max(LEAST_WAIT).min(self.every);
                if !std::mem::replace(&mut has_told, true) {
                    (self.say)(&format!("warning: the refresh failed: {failure}"));
                }
                so_far.result.failed += 1;
                so_far.result.last_failure = Some(failure);
            }
        }
    }
}
