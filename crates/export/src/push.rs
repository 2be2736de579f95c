//! Sending the figures of a run to a receiver of OTLP, every few seconds and once more at its end.
//!
//! A [`Pusher`] has a thread of its own, and a connection for each request. What it
//! sends is a copy of [`Totals`], so a receiver that is slow, dead or broken does not affect the run: missed
//! values are in the next request, and errors are in the [`PushReport`].

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver as Channel, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use plimsoll_core::Nanos;
use plimsoll_http::{Client, Deadline};
use plimsoll_wire::tls::TlsConfigError;

use crate::receiver::GRACE;
use crate::totals::Totals;
use crate::{Receiver, otlp};

/// Longest time for one request: the default of OTLP (`OTEL_EXPORTER_OTLP_TIMEOUT`).
const TIMEOUT: Nanos = Nanos::from_secs(10);
/// Bytes of a reply that are read: a few suffice to say what was not taken.
const REPLY_BYTES: usize = 64 * 1024;
/// Longest time for the last request.
const LAST_TIMEOUT: Nanos = Nanos::from_millis(1_500);
/// The longest that [`Pusher::finish`] waits: for a request under way and for the last one. A thread that is
/// not back then, because a name is being resolved, is left alone.
pub const LAST_WORDS: Duration = Duration::from_millis(2_250);

/// Figures that are shared with the run control, which adds to them.
pub type Shared = Arc<Mutex<Totals>>;

/// Reason why a pusher could not be started.
#[derive(Debug)]
pub enum PushError {
    /// No thread.
    Thread(std::io::Error),
    /// TLS cannot be spoken.
    Tls(TlsConfigError),
}

impl fmt::Display for PushError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Thread(error) => write!(f, "cannot start the thread of exports: {error}"),
            Self::Tls(error) => write!(f, "cannot speak TLS to the receiver of exports: {error}"),
        }
    }
}

impl std::error::Error for PushError {}

/// Counts of the requests to a receiver, and the last error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushReport {
    /// Requests that it took.
    pub sent: u64,
    /// Requests that it did not.
    pub failed: u64,
    /// Reason why the last of these failed.
    pub last_error: Option<String>,
}

/// Sends the figures of a run until it is [finished](Self::finish), or dropped.
#[derive(Debug)]
pub struct Pusher {
    report: Arc<Mutex<PushReport>>,
    stop: Arc<AtomicBool>,
    wake: Sender<()>,
    done: Channel<()>,
}

impl Pusher {
    /// Starts the thread, which sends every `every` from then on. `resource` names the sender: pairs such as
    /// `service.name` and its value.
    ///
    /// # Errors
    /// No thread, or no TLS for a receiver that wants it.
    pub fn start(
        receiver: Receiver,
        resource: Vec<(String, String)>,
        every: Nanos,
        totals: Shared,
    ) -> Result<Self, PushError> {
        let (stop, report) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::default()));
        let ((wake, woken), (ended, done)) = (channel(), channel());
        let client = receiver.client(REPLY_BYTES).map_err(PushError::Tls)?;
        let (stopped, shown) = (Arc::clone(&stop), Arc::clone(&report));
        let sender = Loop { client, receiver, stop: stopped, resource, every, totals, report: shown };
        Builder::new()
            .name("otlp".to_owned())
            .spawn(move || {
                sender.run(&woken);
                // The receiver may have stopped waiting.
                let _ = ended.send(());
            })
            .map_err(PushError::Thread)?;
        Ok(Self { report, stop, wake, done })
    }

    /// Sends the totals once more, and reports the outcomes of all requests. It waits for no more than
    /// [`LAST_WORDS`].
    pub fn finish(self) -> PushReport {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.wake.send(()).is_ok() && self.done.recv_timeout(LAST_WORDS).is_ok();
        let mut report = lock(&self.report).clone();
        if !ended {
            report.failed += 1;
            report.last_error = Some("the last request was given up: it did not come to an end".to_owned());
        }
        report
    }
}

/// Locks a mutex even if a thread panicked while it held the lock: the value is no worse for that.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state and the loop of the sending thread.
struct Loop {
    client: Client,
    receiver: Receiver,
    /// Set when the run has ended: then a request that is not the last one is given up after [`GRACE`].
    stop: Arc<AtomicBool>,
    resource: Vec<(String, String)>,
    every: Nanos,
    totals: Shared,
    report: Arc<Mutex<PushReport>>,
}

impl Loop {
    fn run(mut self, woken: &Channel<()>) {
        loop {
            let last = match woken.recv_timeout(Duration::from_nanos(self.every.0)) {
                Err(RecvTimeoutError::Timeout) => false,
                Ok(()) => true,
                // The push was dropped without an end: there is no one to report to.
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let totals = lock(&self.totals).clone().with_process();
            // Before the first interval there are no figures to send.
            if totals.started_unix > Nanos::ZERO {
                self.send(&totals, last);
            }
            if last {
                return;
            }
        }
    }

    fn send(&mut self, totals: &Totals, last: bool) {
        let deadline = match last {
            true => Deadline::within(LAST_TIMEOUT),
            false => Deadline::within(TIMEOUT).or_after(&self.stop, GRACE),
        };
        let body = (otlp::CONTENT_TYPE, &*otlp::request(totals, &self.resource));
        let answer = self.receiver.post(&self.client, body, deadline);
        let answer = answer.map_err(|error| error.about("the receiver"));
        let sent = answer.and_then(|answer| taken(answer.status, &answer.body));
        let mut report = lock(&self.report);
        match sent {
            Ok(()) => report.sent += 1,
            Err(error) => {
                report.failed += 1;
                report.last_error = Some(error);
            }
        }
    }
}

/// Checks that a receiver took a request completely, by its status and its reply.
fn taken(status: u16, reply: &[u8]) -> Result<(), String> {
    if !(200..300).contains(&status) {
        return Err(format!("the receiver answered {status}"));
    }
    match otlp::rejected(reply) {
        Some((points, message)) => {
            Err(format!("the receiver rejected {points} points: {}", message.escape_debug()))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_and_a_partial_success_are_told() {
        assert_eq!(taken(200, b""), Ok(()));
        assert_eq!(taken(503, b""), Err("the receiver answered 503".to_owned()));
        // partial_success { rejected_data_points: 3, error_message: "no" }
        let partial = b"\x0a\x06\x08\x03\x12\x02no";
        assert_eq!(taken(200, partial), Err("the receiver rejected 3 points: no".to_owned()));
        // A warning alone is not a rejection.
        assert_eq!(taken(200, b"\x0a\x04\x12\x02no"), Ok(()));
    }
}
