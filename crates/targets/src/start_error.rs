//! Why a server for people to test against did not start.

use std::fmt;
use std::io;

use plimsoll_driver::{Endpoint, SystemError};

use crate::server_threads::NoThread;

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
            Self::Thread(error) => write!(f, "the server could not start a thread: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

impl From<NoThread> for StartError {
    fn from(NoThread(error): NoThread) -> Self {
        Self::Thread(error)
    }
}
