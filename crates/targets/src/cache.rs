//! A server of the Carbon cache's protocol, and of the part of its HTTP API that loads of it use.
//!
//! ```text
//!   binary port ──► wire::cache::RequestServer ──► Desk ──┬► Finder ──► Store (quick_cache)
//!   HTTP port ────► wire::http1::RequestServer ──► Api ───┘    └ Liar: wrong on purpose
//! ```
//!
//! It behaves as observed of the real server: the texts of errors, misses as errors by default, a
//! frame that is too long ends the connection and nothing else does. Where it does not: it looks at every
//! password, an open session or not; and lists of caches have fields of its own choice.

mod accounts;
mod api;
mod catalogue;
mod fault_injector;
mod http;
mod options;
mod request_handler;
mod setup;
mod store;
mod worker;

use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_driver::{Backend, Endpoint, KernelBackend, Open, OpenEpoll, OpenUring};

use crate::start_error::StartError;
pub use options::{CacheOptions, Lie, LieKind};
pub use setup::CacheReport;

use setup::Setup;
use worker::{Ports, Worker};

use crate::server_threads::{Ready, ServerThreads, Stopper, ThreadTask};

/// A running server. It stops by [`stop`](Self::stop), by a [`Stopper`], at the end of its
/// [duration](CacheOptions::duration), or when this is dropped.
#[derive(Debug)]
pub struct CacheServer {
    setup: Arc<Setup>,
    place: Place,
    threads: ServerThreads<CacheReport>,
}

impl CacheServer {
    /// Starts the threads, each with a backend of its own, and returns once all of them listen.
    ///
    /// # Errors
    /// Options that make no sense (all of them are named), an address that cannot be listened on, no backend.
    pub fn start(options: CacheOptions, backend: KernelBackend) -> Result<Self, StartError> {
        match backend {
            KernelBackend::Epoll(backend) => Self::start_on(options, OpenEpoll(backend)),
            KernelBackend::Uring(backend) => Self::start_on(options, OpenUring(backend)),
        }
    }

    fn start_on<O: Open + 'static>(options: CacheOptions, open: O) -> Result<Self, StartError> {
        let problems = options.problems();
        if !problems.is_empty() {
            return Err(StartError::Options(problems));
        }
        let setup = Arc::new(Setup::new(options));
        let options = &setup.options;
        let place = Place { frames: options.listen.clone(), http: options.http.clone() };
        let duty = Arc::new(CacheDuty { setup: Arc::clone(&setup), open });
        let ready = Ready::gather("cache", options.threads, place, &duty)?;
        let place = ready.place().clone();
        Ok(Self { place, threads: ready.begin(), setup })
    }

    /// The endpoint of the binary protocol.
    pub const fn endpoint(&self) -> &Endpoint {
        &self.place.frames
    }

    /// The endpoint of the HTTP API.
    pub const fn http_endpoint(&self) -> Option<&Endpoint> {
        self.place.http.as_ref()
    }

    /// Something that can stop it while another waits for it.
    pub fn stopper(&self) -> Stopper {
        self.setup.stopper.clone()
    }

    /// Stops it and returns its report.
    pub fn stop(self) -> CacheReport {
        self.setup.stopper.stop();
        self.wait()
    }

    /// Waits until it stops and returns its report.
    pub fn wait(mut self) -> CacheReport {
        let mut report = CacheReport::default();
        for of_thread in self.threads.wait() {
            report += of_thread;
        }
        report
    }
}

impl Drop for CacheServer {
    fn drop(&mut self) {
        self.setup.stopper.stop();
    }
}

/// The endpoints of a server.
#[derive(Clone, Debug)]
struct Place {
    frames: Endpoint,
    http: Option<Endpoint>,
}

/// The task of a thread of the server.
struct CacheDuty<O> {
    setup: Arc<Setup>,
    open: O,
}

impl<O: Open + 'static> ThreadTask for CacheDuty<O> {
    type Place = Place;
    type Ready = (O::Backend, Ports);
    type Error = StartError;
    type Ended = CacheReport;

    fn listen(&self, _index: u32, place: &Place) -> Result<(Self::Ready, Place), StartError> {
        let mut backend = self.open.open().map_err(StartError::Open)?;
        let reuse_port = self.setup.options.threads > 1;
        let mut listen = |endpoint: &Endpoint| {
            backend
                .listen(endpoint, reuse_port)
                .map_err(|error| StartError::Listen { endpoint: endpoint.clone(), error })
        };
        let (frames, at) = listen(&place.frames)?;
        let (http, http_at) = place.http.as_ref().map(listen).transpose()?.unzip();
        Ok(((backend, Ports { frames, http }), Place { frames: at, http: http_at }))
    }

    fn serve(&self, (backend, ports): Self::Ready, start: Nanos, _index: u32) -> CacheReport {
        Worker::new(Arc::clone(&self.setup), backend, ports, start).run()
    }
}
