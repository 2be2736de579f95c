//! A reference receiver for the ingest of metrics, logs, traces and events.
//!
//! ```text
//!   HTTP/1.1 ──► Api ──┬► payload (gzip, zstd) ──► batch, line_protocol ──► columns ──┐
//!                      │        Law: delayed, refused, reset          Liar: lost, twice ▼
//!                      └► queries ► query: SQL ◄── views over a snapshot ◄── visible rows ◄── Store
//! ```
//!
//! It behaves as the real server (Arc) was seen to: its status codes and error texts, its reading of times,
//! its handling of mixed columns, the delay until rows are visible. Rows stay columns: they are decoded once
//! into memory of their type and looked at when a query asks for them, on a thread beside those that serve.
//! Acknowledged rows are counted exactly, also beyond the rows whose values are kept.

mod api;
mod batch;
mod body;
mod column;
mod fault_injector;
mod foreign;
mod http;
mod line_protocol;
mod msgpack;
mod options;
mod payload;
mod queries;
mod query;
mod rows;
mod setup;
mod store;
mod time;
mod tokens;
mod worker;

use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_driver::{Backend, Endpoint, KernelBackend, ListenerId, Open, OpenEpoll, OpenUring};
use plimsoll_system::clock;

use crate::start_error::StartError;
pub use body::{BodyContent, BodyForm};
pub(crate) use foreign::protobuf;
pub use options::{IngestOptions, Lie, LieKind, Permissions, Token};
pub use setup::{IngestCounts, IngestReport};
pub use store::Acknowledged;

use setup::Setup;
use worker::Worker;

use crate::server_threads::{Ready, ServerThreads, Stopper, ThreadTask};

/// A running server. It stops by [`stop`](Self::stop), by a [`Stopper`], at the end of its
/// [duration](IngestOptions::duration), or when this is dropped.
#[derive(Debug)]
pub struct IngestServer {
    setup: Arc<Setup>,
    endpoint: Endpoint,
    threads: ServerThreads<IngestCounts>,
}

impl IngestServer {
    /// Starts the threads, each with a backend of its own, and returns once all of them listen.
    ///
    /// # Errors
    /// Options that make no sense (all of them are named), an address that cannot be listened on, no backend.
    pub fn start(options: IngestOptions, backend: KernelBackend) -> Result<Self, StartError> {
        match backend {
            KernelBackend::Epoll(backend) => Self::start_on(options, OpenEpoll(backend)),
            KernelBackend::Uring(backend) => Self::start_on(options, OpenUring(backend)),
        }
    }

    fn start_on<O: Open + 'static>(options: IngestOptions, open: O) -> Result<Self, StartError> {
        let problems = options.problems();
        if !problems.is_empty() {
            return Err(StartError::Options(problems));
        }
        let setup = Arc::new(Setup::new(options));
        let options = &setup.options;
        let duty = Arc::new(IngestDuty { setup: Arc::clone(&setup), open });
        let ready = Ready::gather("ingest", options.threads, options.listen.clone(), &duty)?;
        let endpoint = ready.place().clone();
        Ok(Self { endpoint, threads: ready.begin(), setup })
    }

    /// The endpoint that it listens on.
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Something that can stop it while another waits for it.
    pub fn stopper(&self) -> Stopper {
        self.setup.stopper.clone()
    }

    /// Stops it and returns its report.
    pub fn stop(self) -> IngestReport {
        self.setup.stopper.stop();
        self.wait()
    }

    /// Waits until it stops and returns its report.
    pub fn wait(mut self) -> IngestReport {
        let mut counts = IngestCounts::default();
        for of_thread in self.threads.wait() {
            counts += of_thread;
        }
        IngestReport { counts, acknowledged: self.setup.store.acknowledged(clock::monotonic()) }
    }
}

impl Drop for IngestServer {
    fn drop(&mut self) {
        self.setup.stopper.stop();
    }
}

/// The task of a thread of the server.
struct IngestDuty<O> {
    setup: Arc<Setup>,
    open: O,
}

impl<O: Open + 'static> ThreadTask for IngestDuty<O> {
    type Place = Endpoint;
    type Ready = (O::Backend, ListenerId);
    type Error = StartError;
    type Ended = IngestCounts;

    fn listen(&self, _index: u32, place: &Endpoint) -> Result<(Self::Ready, Endpoint), StartError> {
        let mut backend = self.open.open().map_err(StartError::Open)?;
        let reuse_port = self.setup.options.threads > 1;
        let (listener, at) = backend
            .listen(place, reuse_port)
            .map_err(|error| StartError::Listen { endpoint: place.clone(), error })?;
        Ok(((backend, listener), at))
    }

    fn serve(&self, (backend, listener): Self::Ready, start: Nanos, _index: u32) -> IngestCounts {
        Worker::new(Arc::clone(&self.setup), backend, listener, start).run()
    }
}
