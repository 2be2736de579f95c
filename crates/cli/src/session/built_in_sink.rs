//! The built-in sink in this process.

use std::sync::Arc;

use plimsoll_driver::{BackendOptions, Open, OpenEpoll, OpenUring};
use plimsoll_plan::Problem;
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

/// Starts a sink on one of the backends.
pub(crate) fn start(options: SinkOptions, uring: bool) -> Result<Sink, Failure> {
    fn on<O: Open + 'static>(options: SinkOptions, open: O) -> Result<Sink, Failure> {
        Sink::start(options, Arc::new(open)).map_err(|error| failure(&error))
    }
    let backend = BackendOptions::default();
    if uring { on(options, OpenUring(backend)) } else { on(options, OpenEpoll(backend)) }
}
