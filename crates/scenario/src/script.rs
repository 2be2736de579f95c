//! The interface to scripts: the calls of the engine.

mod language;

use std::fmt;

use plimsoll_core::{Nanos, Shard};

use crate::{DynamicRequest, Needs, Received, Session};

pub use language::{ScriptLanguage, ScriptLimits, ScriptText, StepScript, UrlRequest, UrlScript};

/// Reason why a script could not go on: an error, an endless loop, too much memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// The file (or `inline`), the line and the reason.
    pub message: String,
    /// `true` if the worker's state is of no use any more: it had no time or no memory left, and every later
    /// call fails at once. The run is to end.
    pub ends_run: bool,
}

impl ScriptError {
    /// An error after which scripts can be called again.
    pub const fn new(message: String) -> Self {
        Self { message, ends_run: false }
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ScriptError {}

/// All scripts of a plan, loaded and checked; shared by the workers.
pub trait ScriptSource: fmt::Debug + Send + Sync {
    /// Returns the parts of an exchange that script `script` reads.
    fn needs(&self, script: u32) -> Needs;

    /// Reports whether a script makes or changes requests.
    fn makes_requests(&self, script: u32) -> bool;

    /// Reports whether a script looks at responses.
    fn sees_responses(&self, script: u32) -> bool;

    /// The scripts of one worker, with a state of their own; called in the worker's thread, before the run.
    /// `addresses` are those of the scenario's target, for wrk's `thread.addr`.
    ///
    /// # Errors
    /// A script that fails while it is loaded.
    fn open(&self, worker: Shard, addresses: &[String]) -> Result<Box<dyn Scripts>, ScriptError>;
}

/// A value that a script records of a metric of the plan's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptValue {
    /// The metric, an index into those that scripts [may record](ScriptLimits::metrics).
    pub metric: u16,
    /// The value as text.
    pub value: String,
    /// Names and values of its tags, in ascending order of the names.
    pub tags: Vec<(String, String)>,
}

/// The scripts of one worker.
pub trait Scripts {
    /// Makes or changes the request of a step. `request` is the rendering of the step's template; the session
    /// has the last response. It is [nothing](DynamicRequest::is_nothing) afterwards if the script has [asked
    /// for the end](Self::wants_to_stop) in place of a request.
    ///
    /// # Errors
    /// An error of the script: the request is not sent.
    fn make_request(
        &mut self,
        script: u32,
        session: &Session,
        request: &mut DynamicRequest,
    ) -> Result<(), ScriptError>;

    /// Reports whether the response is good.
    ///
    /// # Errors
    /// An error of the script.
    fn validate_response(&mut self, script: u32, received: &Received<'_>) -> Result<bool, ScriptError>;

    /// Returns the time to wait before the next request: wrk's `delay`.
    ///
    /// # Errors
    /// An error of the script.
    fn delay(&mut self, script: u32) -> Result<Nanos, ScriptError>;

    /// Moves the values that were recorded since the last time behind others. Most scripts record none.
    fn take_values(&mut self, _values: &mut Vec<ScriptValue>) {}

    /// Returns `true` if there is to be no more load on this worker: a script asked for its end, as wrk's
    /// `thread:stop()` does, or an error was one that [ends the run](ScriptError::ends_run).
    fn wants_to_stop(&self) -> bool;

    /// At the end: the leftovers of the scripts, for wrk's `thread:get` in `done`; the type is that of the
    /// source.
    fn finish(self: Box<Self>) -> Box<dyn std::any::Any + Send>;
}
