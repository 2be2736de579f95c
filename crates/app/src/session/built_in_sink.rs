//! The built-in sink in this process.

use plimsoll_document::Problem;
use plimsoll_driver::KernelBackend;
use plimsoll_targets::{Sink, SinkError, SinkOptions};

use crate::base::failure::Failure;

/// The same where there is one address.
pub(crate) const ANOTHER_PORT: &str = "take another address: --listen; port 0 takes a free one";

/// The failure of a server that could not start.
pub(crate) fn failure(error: &SinkError) -> Failure {
    let problem = Problem::new(error.to_string());
    Failure::environment(match error {
        SinkError::Listen { .. } => problem.with_hint(ANOTHER_PORT),
        _ => problem,
    })
}

/// Starts a sink.
pub(crate) fn start(options: SinkOptions, backend: KernelBackend) -> Result<Sink, Failure> {
    Sink::start(options, backend).map_err(|error| failure(&error))
}
