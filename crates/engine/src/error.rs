//! Errors that keep a run from being carried out at all.

use std::fmt;

use plimsoll_core::{Nanos, figure};
use plimsoll_driver::SystemError;

use crate::once::OnceFailure;

/// Reason why a run could not be carried out at all. Errors of single requests are counted instead.
#[derive(Debug)]
pub enum RunError {
    /// A host name could not be resolved, or had no address of the wanted family.
    Resolve {
        /// `host[:port]` as in the URL.
        authority: String,
        /// The resolver's error message.
        reason: String,
    },
    /// A target cannot be used: see [`preflight`](crate::preflight()).
    Preflight {
        /// Name of the error class, e.g. `connect_refused`.
        class: &'static str,
        /// Description of the error, in words.
        message: String,
        /// Advice to the user.
        hint: String,
    },
    /// The setup did not come to its end: see [`set_up`](crate::set_up).
    Setup(OnceFailure),
    /// A worker could not open its backend.
    Backend {
        /// The backend's name.
        backend: &'static str,
        /// The system's error.
        error: SystemError,
    },
    /// A worker thread could not be started or ended unexpectedly.
    Worker(String),
    /// No worker came back after the end of the run.
    Unresponsive,
    /// The counts of the run do not add up: a defect of Plimsoll, whose result must not be believed.
    Accounting(String),
    /// A data source could not be opened.
    Data(String),
    /// A script failed while it was loaded.
    Script(String),
    /// Everything was ready only after the start that was asked for.
    Late {
        /// Time between the start that was asked for and readiness.
        by: Nanos,
    },
    /// The run was stopped before it began.
    Stopped,
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resolve { reason, .. } => f.write_str(reason),
            Self::Preflight { message, .. } => f.write_str(message),
            Self::Setup(failure) => write!(f, "the setup failed: {failure}"),
            Self::Backend { backend, error } => write!(f, "cannot open the {backend} backend: {error}"),
            Self::Worker(reason) => write!(f, "a worker ended unexpectedly: {reason}"),
            Self::Unresponsive => f.write_str("no worker came back after the end of the run"),
            Self::Accounting(reason) => write!(f, "the accounts of the run do not balance: {reason}"),
            Self::Data(reason) | Self::Script(reason) => f.write_str(reason),
            Self::Late { by } => {
                write!(f, "the load was to begin {} ago, before everything was ready", figure::nanos(*by))
            }
            Self::Stopped => f.write_str("stopped before the run began"),
        }
    }
}

impl std::error::Error for RunError {}

impl RunError {
    /// Returns advice to the user, if there is any for this error.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Resolve { .. } => {
                Some("check the host name, or give its address with --resolve HOST:PORT:ADDRESS")
            }
            Self::Preflight { hint, .. } => Some(hint),
            Self::Setup(_) => {
                Some("no load was begun; `plimsoll try` shows each request of the plan, and what came")
            }
            Self::Backend { backend: "io_uring", .. } => {
                Some("--backend epoll works without io_uring; more locked memory may help (ulimit -l)")
            }
            Self::Late { .. } => Some("give a later --start-at, the same to all shards"),
            Self::Unresponsive => Some("look for a script or a file of data that never returns"),
            _ => None,
        }
    }
}
