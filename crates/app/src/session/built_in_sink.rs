//! The built-in sink in this process.

use plimsoll_driver::KernelBackend;
use plimsoll_targets::{Sink, SinkOptions};

use crate::base::failure::Failure;

/// Hint where there is one address.
pub const ANOTHER_PORT: &str = "take another address: --listen; port 0 takes a free one";

/// Starts a sink.
pub(crate) fn start(options: SinkOptions, backend: KernelBackend) -> Result<Sink, Failure> {
    Sink::start(options, backend).map_err(|error| Failure::start(&error, ANOTHER_PORT))
}
