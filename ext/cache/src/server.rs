//! A server of the Carbon cache's protocol, and of the part of its HTTP API that loads of it use.
//!
//! ```text
//!   binary port ──► wire::RequestServer ─────────► Desk ──┬► Finder ──► Store (quick_cache)
//!   HTTP port ────► http1::RequestServer ────────► Api ───┘    └ Liar: wrong on purpose
//! ```
//!
//! Answers are those observed of the real server: the texts of errors, misses as errors by default, a
//! frame that is too long ends the connection and nothing else does. Two things differ: every password is
//! looked at, whether a session is open or not, and lists of caches have other fields.

mod accounts;
mod api;
mod args;
mod catalogue;
mod connections;
mod fault_injector;
mod http;
mod options;
mod request_handler;
mod running;
mod setup;
mod store;

use plimsoll_driver::{Endpoint, KernelBackend};
use plimsoll_targets::server::Server;
use plimsoll_targets::{StartError, Stopper};

pub(crate) use args::SERVER;
pub use options::{CacheOptions, Lie, LieKind};
pub use setup::CacheReport;

use setup::Setup;

/// A running server. It stops by [`stop`](Self::stop), by a [`Stopper`], at the end of its
/// [duration](CacheOptions::duration), or when this is dropped.
#[derive(Debug)]
pub struct CacheServer(Server<Setup>);

impl CacheServer {
    /// Starts the threads, each with a backend of its own, and returns once all of them listen.
    ///
    /// # Errors
    /// Options that make no sense (all of them are named), an address that cannot be listened on, no backend.
    pub fn start(options: CacheOptions, backend: KernelBackend) -> Result<Self, StartError> {
        let problems = options.problems();
        if !problems.is_empty() {
            return Err(StartError::Options(problems));
        }
        Server::start(options.server(), Setup::new(options), backend).map(Self)
    }

    /// The endpoint of the binary protocol.
    pub fn endpoint(&self) -> &Endpoint {
        &self.0.endpoints()[0]
    }

    /// The endpoint of the HTTP API.
    pub fn http_endpoint(&self) -> Option<&Endpoint> {
        self.0.endpoints().get(1)
    }

    /// Something that can stop it while another waits for it.
    pub fn stopper(&self) -> Stopper {
        self.0.stopper()
    }

    /// Stops it and returns its report.
    pub fn stop(self) -> CacheReport {
        self.0.stop()
    }

    /// Waits until it stops and returns its report.
    pub fn wait(self) -> CacheReport {
        self.0.wait()
    }
}
