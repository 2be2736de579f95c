//! The seam to scripts: what the engine asks of them.

use std::fmt;

use plimsoll_core::{Nanos, Shard};

use crate::{DynamicRequest, Needs, Received, Session};

/// Why a script could not go on: an error, an endless loop, too much memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// The file (or `inline`), the line and the reason.
    pub message: String,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ScriptError {}

/// All scripts of a plan, loaded and checked; shared by the workers.
pub trait ScriptSource: fmt::Debug + Send + Sync {
    /// What script `script` reads of an exchange.
    fn needs(&self, script: u32) -> Needs;

    /// Whether it makes or changes requests.
    fn makes_requests(&self, script: u32) -> bool;

    /// Whether it looks at responses.
    fn sees_responses(&self, script: u32) -> bool;

    /// The scripts of one worker, with a state of their own; called in the worker's thread, before the run.
    /// `addresses` are those of the scenario's target, for wrk's `thread.addr`.
    ///
    /// # Errors
    /// A script that fails while it is loaded.
    fn open(&self, worker: Shard, addresses: &[String]) -> Result<Box<dyn Scripts>, ScriptError>;
}

/// The scripts of one worker.
pub trait Scripts {
    /// Makes or changes the request of a step. `request` is what the step's template renders; the session
    /// has the last response.
    ///
    /// # Errors
    /// An error of the script: the request is not sent.
    fn make_request(
        &mut self,
        script: u32,
        session: &Session,
        request: &mut DynamicRequest,
    ) -> Result<(), ScriptError>;

    /// Whether the response is good.
    ///
    /// # Errors
    /// An error of the script.
    fn validate_response(&mut self, script: u32, received: &Received<'_>) -> Result<bool, ScriptError>;

    /// How long to wait before the next request: wrk's `delay`.
    ///
    /// # Errors
    /// An error of the script.
    fn delay(&mut self, script: u32) -> Result<Nanos, ScriptError>;

    /// Whether a script asked for the end of the load on this worker: wrk's `thread:stop()`.
    fn wants_to_stop(&self) -> bool;

    /// At the end: what the scripts leave behind, for wrk's `thread:get` in `done`; the type is that of the
    /// source.
    fn finish(self: Box<Self>) -> Box<dyn std::any::Any + Send>;
}
