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
mod connections;
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

use std::sync::Arc;

use plimsoll_driver::{Endpoint, KernelBackend};
use plimsoll_system::clock;

use crate::server::{Server, ServerOptions};
use crate::server_threads::Stopper;
use crate::start_error::StartError;
pub use body::{BodyContent, BodyForm};
pub use options::{IngestOptions, Lie, LieKind, Permissions, Token};
pub use setup::{IngestCounts, IngestReport};
pub use store::Acknowledged;

use setup::Setup;

/// A running server. It stops by [`stop`](Self::stop), by a [`Stopper`], at the end of its
/// [duration](IngestOptions::duration), or when this is dropped.
#[derive(Debug)]
pub struct IngestServer(Server<Setup>);

impl IngestServer {
    /// Starts the threads, each with a backend of its own, and returns once all of them listen.
    ///
    /// # Errors
    /// Options that make no sense (all of them are named), an address that cannot be listened on, no backend.
    pub fn start(options: IngestOptions, backend: KernelBackend) -> Result<Self, StartError> {
        let problems = options.problems();
        if !problems.is_empty() {
            return Err(StartError::Options(problems));
        }
        let server = options.server();
        let setup = Setup::new(options);
        let server = ServerOptions { stopper: setup.stopper.clone(), ..server };
        Server::start(server, setup, backend).map(Self)
    }

    /// The endpoint that it listens on.
    pub fn endpoint(&self) -> &Endpoint {
        &self.0.endpoints()[0]
    }

    /// Something that can stop it while another waits for it.
    pub fn stopper(&self) -> Stopper {
        self.0.stopper()
    }

    /// Stops it and returns its report.
    pub fn stop(self) -> IngestReport {
        self.stopper().stop();
        self.wait()
    }

    /// Waits until it stops and returns its report.
    pub fn wait(self) -> IngestReport {
        let setup = Arc::clone(self.0.protocol());
        let counts = self.0.wait();
        IngestReport { counts, acknowledged: setup.store.acknowledged(clock::monotonic()) }
    }
}
