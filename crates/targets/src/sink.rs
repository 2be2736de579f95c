//! The load sink.

mod agenda;
mod backlog;
mod connection;
mod desk;
mod error;
mod form;
mod freeze;
mod law;
mod options;
mod outlet;
mod queue;
mod reply;
mod resources;
mod service;
mod settlement;
mod setup;
mod truth;
mod worker;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{Builder, JoinHandle};

use plimsoll_core::Nanos;
use plimsoll_driver::{Backend, Endpoint, Open, clock};

pub use error::SinkError;
pub use law::{Fate, Intent, Law};
pub use options::{Delay, Freeze, SinkOptions, Truth};
pub use queue::{SingleServer, TokenServer};
pub use service::{Body, Crud, Faults, Location, Reply, Service, SlowData};
pub use truth::{Action, RequestId, TruthRow};

use setup::{Setup, Tally};
use truth::{FinishedSheet, Sheet};
use worker::Worker;

/// What a thread gives back at its end.
type Ended = (Tally, FinishedSheet);

/// A running sink. It stops by [`stop`](Self::stop), by a [`Stopper`], at the end of its
/// [duration](SinkOptions::duration), or when this is dropped.
#[derive(Debug)]
pub struct Sink {
    setup: Arc<Setup>,
    endpoint: Endpoint,
    started: Nanos,
    threads: Vec<JoinHandle<Ended>>,
}

/// Stops a sink from anywhere.
#[derive(Clone, Debug)]
pub struct Stopper(Arc<Setup>);

impl Stopper {
    /// Tells the sink to stop, which it does within 50 ms.
    pub fn stop(&self) {
        self.0.stop();
    }
}

/// What a sink did. The identity
/// `counter = replied + statuses + dropped + resets + refusals + abandoned` always holds.
#[derive(Debug, Default)]
pub struct SinkReport {
    /// Requests that were read as a whole.
    pub counter: u64,
    /// Connections accepted.
    pub connections: u64,
    /// Connections that spoke HTTP/1.1, or something that could not be told from it.
    pub http1_connections: u64,
    /// Connections that spoke HTTP/2. The rest of the connections said too little to tell.
    pub http2_connections: u64,
    /// Requests answered by the [`Service`], whatever its status.
    pub replied: u64,
    /// Requests answered with a status from [`Faults::statuses`].
    pub statuses: u64,
    /// Requests whose reply was held back on purpose.
    pub dropped: u64,
    /// Requests whose connection (HTTP/1.1) or stream (HTTP/2) was reset in place of a reply.
    pub resets: u64,
    /// Requests whose stream was refused.
    pub refusals: u64,
    /// Requests that could not be answered any more: see [`Action::Abandoned`].
    pub abandoned: u64,
    /// HTTP/2 streams that clients reset, whatever had become of their requests.
    pub cancelled: u64,
    /// Connections that were ended for what the client sent (no valid HTTP, no valid TLS) or did not read.
    pub refused: u64,
    /// Resources that a [`Crud`] service holds at the end.
    pub resources: u64,
    /// The log in the order of the requests' numbers, if it was kept in memory.
    pub truth: Vec<TruthRow>,
    /// Why the log's file is not complete.
    pub truth_failure: Option<String>,
}

impl Sink {
    /// Starts the threads of a sink, each with a backend of its own, and returns once all of them listen.
    ///
    /// # Errors
    /// Options that make no sense (all of them are named), an address that cannot be listened on, a log that
    /// cannot be written, no backend.
    pub fn start<O: Open + 'static>(options: SinkOptions, open: Arc<O>) -> Result<Self, SinkError> {
        let problems = options.problems();
        if !problems.is_empty() {
            return Err(SinkError::Options(problems));
        }
        let setup = Arc::new(Setup::new(options));
        let mut endpoint = setup.options.listen.clone();
        let mut threads = Vec::new();
        let mut starts: Vec<Sender<Nanos>> = Vec::new();
        for index in 0..setup.options.threads {
            let (ready, is_ready) = mpsc::channel();
            let (start, is_started) = mpsc::channel();
            let place = Place { setup: Arc::clone(&setup), index, endpoint };
            let open = Arc::clone(&open);
            let spawned = Builder::new()
                .name(format!("sink-{index}"))
                .spawn(move || serve(&place, &*open, &ready, &is_started))
                .map_err(SinkError::Thread)?;
            // The first thread resolves port 0, the others listen where it does. On an error the senders of
            // the threads before are dropped, which ends them.
            endpoint = match is_ready.recv() {
                Ok(listening) => listening?,
                Err(_) => {
                    std::panic::resume_unwind(spawned.join().err().unwrap_or_else(|| Box::new("no answer")))
                }
            };
            threads.push(spawned);
            starts.push(start);
        }
        if let Service::Crud(crud) = &setup.options.service {
            setup.forms.set_origin(crud.location.origin(&endpoint, setup.options.tls.is_some()));
        }
        let started = clock::monotonic();
        for start in starts {
            // A thread that is gone by now has panicked: joining it will tell.
            let _ = start.send(started);
        }
        Ok(Self { setup, endpoint, started, threads })
    }

    /// Where it listens.
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// When it started, on the driver's clock; freezes and the duration count from here.
    pub const fn started(&self) -> Nanos {
        self.started
    }

    /// Requests read so far, over all threads.
    pub fn counter(&self) -> u64 {
        self.setup.counted()
    }

    /// Something that can stop it while another waits for it.
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.setup))
    }

    /// Stops it and says what it did. Requests that are still being served are abandoned.
    pub fn stop(self) -> SinkReport {
        self.setup.stop();
        self.wait()
    }

    /// Waits until it stops and says what it did.
    pub fn wait(mut self) -> SinkReport {
        let ended = std::mem::take(&mut self.threads).into_iter().map(|thread| match thread.join() {
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let ended: Vec<_> = ended.collect();
        report(&self.setup, ended)
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.setup.stop();
    }
}

/// What a thread of the sink is told.
struct Place {
    setup: Arc<Setup>,
    index: u32,
    endpoint: Endpoint,
}

/// One thread: listens, says so, and serves from the common start on.
fn serve<O: Open>(
    place: &Place,
    open: &O,
    ready: &Sender<Result<Endpoint, SinkError>>,
    start: &Receiver<Nanos>,
) -> Ended {
    let opened = Sheet::open(&place.setup.options.truth, place.index)
        .map_err(|(path, error)| SinkError::TruthLog { path, error })
        .and_then(|sheet| Ok((sheet, open.open().map_err(SinkError::Open)?)))
        .and_then(|(sheet, mut backend)| {
            let (listener, endpoint) = backend
                .listen(&place.endpoint, place.setup.options.threads > 1)
                .map_err(|error| SinkError::Listen { endpoint: place.endpoint.clone(), error })?;
            Ok((sheet, backend, listener, endpoint))
        });
    let (sheet, backend, listener) = match opened {
        Ok((sheet, backend, listener, endpoint)) => {
            // The other side cannot be gone: it waits for this.
            let _ = ready.send(Ok(endpoint));
            (sheet, backend, listener)
        }
        Err(error) => {
            let _ = ready.send(Err(error));
            return Ended::default();
        }
    };
    match start.recv() {
        Ok(start) => {
            Worker::new(Arc::clone(&place.setup), backend, listener, sheet, start, place.index).run()
        }
        // Another thread could not listen.
        Err(_) => Ended::default(),
    }
}

fn report(setup: &Setup, ended: Vec<Ended>) -> SinkReport {
    let mut tally = Tally::default();
    let mut truth = Vec::new();
    let mut parts: Vec<(PathBuf, std::io::Result<()>)> = Vec::new();
    for (of_thread, sheet) in ended {
        tally += of_thread;
        truth.extend(sheet.rows);
        parts.extend(sheet.file);
    }
    truth.sort_by_key(|row| row.number);
    SinkReport {
        counter: setup.counted(),
        connections: tally.connections,
        http1_connections: tally.http1,
        http2_connections: tally.http2,
        replied: tally.replied,
        statuses: tally.statuses,
        dropped: tally.dropped,
        resets: tally.resets,
        refusals: tally.refusals,
        abandoned: tally.abandoned,
        cancelled: tally.cancelled,
        refused: tally.refused,
        resources: setup.forms.resources(),
        truth,
        truth_failure: truth::join(parts).err().map(|error| error.to_string()),
    }
}
