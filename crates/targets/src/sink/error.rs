//! Why a sink did not start.

use std::fmt;
use std::io;
use std::path::PathBuf;

use plimsoll_driver::{Endpoint, SystemError};

use crate::server_threads::NoThread;

/// Reason why a sink did not start.
#[derive(Debug)]
pub enum SinkError {
    /// Options that make no sense, each as a sentence.
    Options(Vec<String>),
    /// No backend could be opened.
    Open(SystemError),
    /// The address cannot be listened on.
    Listen {
        /// The address.
        endpoint: Endpoint,
        /// The reason.
        error: SystemError,
    },
    /// The log of the truth cannot be written.
    TruthLog {
        /// Its file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// No thread could be started.
    Thread(io::Error),
}

impl fmt::Display for SinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Options(problems) => f.write_str(&problems.join("; ")),
            Self::Open(error) => write!(f, "the sink could not open its backend: {error}"),
            Self::Listen { endpoint, error } => write!(f, "the sink cannot listen on {endpoint}: {error}"),
            Self::TruthLog { path, error } => {
                write!(f, "the truth log {} cannot be written: {error}", path.display())
            }
            Self::Thread(error) => write!(f, "the sink could not start a thread: {error}"),
        }
    }
}

impl std::error::Error for SinkError {}

impl From<NoThread> for SinkError {
    fn from(NoThread(error): NoThread) -> Self {
        Self::Thread(error)
    }
}
