//! The world as a value, and its opener.

use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_core::{Nanos, Shard};
use plimsoll_driver::{Endpoint, Open, SystemError};

use crate::backend::SimBackend;
use crate::behaviour::{Behaviour, Pause};
use crate::truth::TruthLog;

/// A simulated world, as a value.
#[derive(Clone, Debug)]
pub struct SimOptions {
    /// Seed of every random choice. World `i` uses the streams of `seed + i`.
    pub seed: u64,
    /// First reading of the clock. It is not zero, so that instants and spans since the start cannot be
    /// confused.
    pub start: Nanos,
    /// Unix time when the clock shows `start`.
    pub start_unix: Nanos,
    /// Time from one machine to the other, one way; zero is taken as 1 ns, so that time goes on.
    pub latency: Nanos,
    /// Largest segment towards the client in bytes; 1 delivers responses byte by byte.
    pub segment_bytes: usize,
    /// Time between the segments of one connection.
    pub segment_gap: Nanos,
    /// `true` to report the unread segments of a connection as one event, as epoll and `recv` do; `false` to
    /// report each as its own, as io_uring's multishot receive does.
    pub coalesce: bool,
    /// `true` if received bytes carry the time of their arrival; `false` for the time of the pass that sees
    /// them.
    pub receive_stamps: bool,
    /// Error of the receive stamps: they are too early by this much.
    pub stamp_error: Nanos,
    /// Lateness of a wait that blocked and did not spin.
    pub overshoot: Nanos,
    /// Time that the generator takes, after each wait, until it writes the first bytes: its caches are cold.
    pub preparation: Nanos,
    /// Time that the kernel takes for one send.
    pub send_time: Nanos,
    /// Probability that the thread is interrupted after a send of a flush, and for how long it is.
    pub interruption: (f64, Nanos),
    /// When the generator stands still: a wait that would return in one of these returns at its end.
    pub stalls: Vec<Pause>,
    /// Probability that the kernel takes only a part of a send. The rest follows a round trip later, in parts
    /// with the same probability.
    pub partial_write: f64,
    /// Probability that a connect call finds no descriptor.
    pub no_descriptor: f64,
    /// Connections that may be open at once; beyond it a connect call finds no descriptor.
    pub descriptors: usize,
    /// `true` if the truth log keeps the bytes of requests.
    pub keep_requests: bool,
    /// The servers.
    pub servers: Vec<(Endpoint, Behaviour)>,
    /// Actions at certain instants beside the world, such as steering the run.
    pub timed_actions: Vec<TimedAction>,
}

/// Something that is done at an instant of virtual time. Every world has a clock of its own and does it once,
/// so that with several workers it has to be such that the second time does nothing.
#[derive(Clone)]
pub struct TimedAction {
    /// When, on the clock of the worlds.
    pub at: Nanos,
    /// The action; it is given that instant.
    pub run: Arc<dyn Fn(Nanos) + Send + Sync>,
}

impl std::fmt::Debug for TimedAction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TimedAction").field("at", &self.at).finish_non_exhaustive()
    }
}

impl Default for SimOptions {
    fn default() -> Self {
        Self {
            seed: 1,
            start: Nanos::from_secs(1_000),
            // 2026-01-01T00:00:00Z.
            start_unix: Nanos::from_secs(1_767_225_600),
            latency: Nanos::from_micros(50),
            segment_bytes: usize::MAX,
            segment_gap: Nanos::ZERO,
            coalesce: false,
            receive_stamps: true,
            stamp_error: Nanos::ZERO,
            overshoot: Nanos::ZERO,
            preparation: Nanos::ZERO,
            send_time: Nanos::ZERO,
            interruption: (0.0, Nanos::ZERO),
            stalls: Vec::new(),
            partial_write: 0.0,
            no_descriptor: 0.0,
            descriptors: usize::MAX,
            keep_requests: false,
            servers: Vec::new(),
            timed_actions: Vec::new(),
        }
    }
}

/// Opens one world per call. All of them write to one [`TruthLog`], also those of clones.
///
/// The number of a world, and so its seed, is that of its worker, whichever thread is the first to open its
/// own. Those of a second run come after those of the first.
#[derive(Clone, Debug)]
pub struct SimOpen {
    options: Arc<SimOptions>,
    truth: TruthLog,
    /// Number of worlds that each worker has opened.
    opened: Arc<Mutex<Vec<u32>>>,
}

impl SimOpen {
    /// Worlds with these options.
    pub fn new(options: SimOptions) -> Self {
        Self { options: Arc::new(options), truth: TruthLog::default(), opened: Arc::default() }
    }

    /// The log of the servers of all worlds; stays readable after the backends are gone.
    pub fn truth(&self) -> TruthLog {
        self.truth.clone()
    }
}

impl Open for SimOpen {
    type Backend = SimBackend;

    fn open(&self) -> Result<SimBackend, SystemError> {
        self.open_for(Shard::WHOLE)
    }

    fn open_for(&self, worker: Shard) -> Result<SimBackend, SystemError> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let number = worker.index as usize;
        if opened.len() <= number {
            opened.resize(number + 1, 0);
        }
        let world = worker.index + opened[number] * worker.of;
        opened[number] += 1;
        drop(opened);
        Ok(SimBackend::new(Arc::clone(&self.options), self.truth.clone(), world))
    }

    fn name(&self) -> &'static str {
        "simulated"
    }
}
