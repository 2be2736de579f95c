//! The load sink.

mod backlog;
mod completion;
pub(crate) mod connection;
mod encoded_reply;
mod event_queue;
mod freeze;
mod law;
mod options;
mod queue;
mod reply;
mod request_handler;
pub mod service;
mod setup;
pub(crate) mod truth;
mod worker;

use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_driver::{Endpoint, KernelBackend, Open, OpenEpoll, OpenUring};

pub use law::{FaultModel, Intent, RequestFate};
pub use options::{Delay, Freeze, SinkOptions, Truth};
pub use queue::{SingleServer, TokenServer};
pub use service::{Body, Crud, Faults, Location, Reply, Service, SlowData};
pub use truth::{Action, RequestId, TruthRow};

use setup::{Setup, Tally};
use worker::Worker;

use crate::server::worker::Sockets;
use crate::server_threads::{Ready, ServerThreads, Stopper, ThreadTask};
use crate::start_error::StartError;
use crate::truth_log::{FinishedSheet, Sheet};

/// The result of a thread, returned at its end.
type Ended = (Tally, FinishedSheet<TruthRow>);

/// A running sink. It stops by [`stop`](Self::stop), by a [`Stopper`], at the end of its
/// [duration](SinkOptions::duration), or when this is dropped.
#[derive(Debug)]
pub struct Sink {
    setup: Arc<Setup>,
    threads: ServerThreads<Ended>,
}

/// The report of a sink. The identity `counter = replied + rejections + garbage + statuses + dropped + resets
/// + refusals + abandoned` always holds.
#[derive(Debug, Default)]
pub struct SinkReport {
    /// Requests that were read as a whole.
    pub counter: u64,
    /// Connections accepted.
    pub connections: u64,
    /// Connections that spoke HTTP/1.1, or something that looked like it.
    pub http1_connections: u64,
    /// Connections that spoke HTTP/2. The rest sent too little to decide.
    pub http2_connections: u64,
    /// Requests answered by the [`Service`], with any status.
    pub replied: u64,
    /// Calls that the [`Service`] has rejected.
    pub rejections: u64,
    /// Requests that the [`Service`] has answered without a meaning.
    pub garbage: u64,
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
    /// HTTP/2 streams that clients reset, regardless of the state of their requests.
    pub cancelled: u64,
    /// Connections that were ended because of bytes that the client sent (no valid HTTP, no valid TLS) or did
    /// not read.
    pub refused: u64,
    /// Resources that a [`Crud`] service holds at the end.
    pub resources: u64,
    /// The log in the order of the requests' numbers, if it was kept in memory.
    pub truth: Vec<TruthRow>,
    /// Reason why the log's file is not complete.
    pub truth_failure: Option<String>,
}

impl Sink {
    /// Starts the threads of a sink, each with a backend of its own, and returns once all of them listen.
    ///
    /// # Errors
    /// Options that make no sense (all of them are named), an address that cannot be listened on, a log that
    /// cannot be written, no backend.
    pub fn start(options: SinkOptions, backend: KernelBackend) -> Result<Self, StartError> {
        match backend {
            KernelBackend::Epoll(backend) => Self::start_on(options, OpenEpoll(backend)),
            KernelBackend::Uring(backend) => Self::start_on(options, OpenUring(backend)),
        }
    }

    fn start_on<O: Open + 'static>(options: SinkOptions, open: O) -> Result<Self, StartError> {
        let problems = options.problems();
        if !problems.is_empty() {
            return Err(StartError::Options(problems));
        }
        let setup = Arc::new(Setup::new(options));
        let duty = Arc::new(SinkDuty { setup: Arc::clone(&setup), open });
        let ready = Ready::gather("sink", setup.options.threads, vec![setup.options.listen.clone()], &duty)?;
        if let Service::Crud(crud) = &setup.options.service {
            setup
                .forms
                .table
                .set_origin(crud.location.origin(&ready.place()[0], setup.options.tls.is_some()));
        }
        let threads = ready.begin(setup.stopper.clone());
        Ok(Self { setup, threads })
    }

    /// The endpoint that it listens on.
    pub fn endpoint(&self) -> &Endpoint {
        &self.threads.place()[0]
    }

    /// When it started, on the driver's clock; freezes and the duration count from here.
    pub const fn started(&self) -> Nanos {
        self.threads.started()
    }

    /// Requests read so far, over all threads.
    pub fn counter(&self) -> u64 {
        self.setup.counted()
    }

    /// Something that can stop it while another waits for it.
    pub fn stopper(&self) -> Stopper {
        self.setup.stopper.clone()
    }

    /// Stops it and returns its report. Requests that are still being served are abandoned.
    pub fn stop(self) -> SinkReport {
        self.setup.stopper.stop();
        self.wait()
    }

    /// Waits until it stops and returns its report.
    pub fn wait(self) -> SinkReport {
        report(&self.setup, self.threads.wait())
    }
}

/// The task of a thread of the sink.
struct SinkDuty<O> {
    setup: Arc<Setup>,
    open: O,
}

impl<O: Open + 'static> ThreadTask for SinkDuty<O> {
    type Ready = (Sheet<TruthRow>, Sockets<O::Backend>);
    type Ended = Ended;

    fn listen(&self, index: u32, place: &[Endpoint]) -> Result<(Self::Ready, Vec<Endpoint>), StartError> {
        let options = &self.setup.options;
        let sheet = Sheet::open(&options.truth, index, truth::HEADER)?;
        let (sockets, found) = Sockets::open(&self.open, place, options.threads > 1)?;
        Ok(((sheet, sockets), found))
    }

    fn serve(&self, (sheet, Sockets { backend, listeners }): Self::Ready, start: Nanos, index: u32) -> Ended {
        Worker::new(Arc::clone(&self.setup), backend, listeners[0], sheet, start, index).serve()
    }
}

fn report(setup: &Setup, ended: Vec<Ended>) -> SinkReport {
    let mut tally = Tally::default();
    let mut sheets = FinishedSheet::default();
    for (of_thread, sheet) in ended {
        tally += of_thread;
        sheets += sheet;
    }
    let (mut truth, joined) = sheets.join();
    truth.sort_by_key(|row| row.number);
    SinkReport {
        counter: setup.counted(),
        connections: tally.connections,
        http1_connections: tally.http1,
        http2_connections: tally.http2,
        replied: tally.replied,
        rejections: tally.rejections,
        garbage: tally.garbage,
        statuses: tally.statuses,
        dropped: tally.dropped,
        resets: tally.resets,
        refusals: tally.refusals,
        abandoned: tally.abandoned,
        cancelled: tally.cancelled,
        refused: tally.refused,
        resources: setup.forms.table.resources(),
        truth,
        truth_failure: joined.err().map(|error| error.to_string()),
    }
}
