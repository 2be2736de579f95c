//! Why a server for people to test against did not start.

use std::fmt;
use std::io;
use std::path::PathBuf;

use plimsoll_driver::{Endpoint, SystemError};

/// Reason why a server for people to test against did not start.
#[derive(Debug)]
pub enum StartError {
    /// Options that make no sense, each as a sentence.
    Options(Vec<String>),
    /// No backend could be opened.
    Open(SystemError),
    /// An address cannot be listened on.
    Listen {
        /// The address.
        endpoint: Endpoint,
        /// The reason.
        error: SystemError,
    },
    /// The log of the truth cannot be written.
    TruthLog {
        /// Path of the log.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// No thread could be started.
    Thread(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Options(problems) => f.write_str(&problems.join("; ")),
            Self::Open(error) => write!(f, "the server could not open its backend: {error}"),
            Self::Listen { endpoint, error } => {
                write!(f, "the server cannot listen on {endpoint}: {error}")
            }
            Self::TruthLog { path, error } => {
                write!(f, "the truth log {} cannot be written: {error}", path.display())
            }
            Self::Thread(error) => write!(f, "the server could not start a thread: {error}"),
        }
    }
}

impl std::error::Error for StartError {}
