//! Why a node cannot start, or ended.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use core::net::SocketAddr;

/// Reason why a node cannot start, or ended.
#[derive(Debug)]
pub enum ReplicaError {
    /// The system does not let it listen there.
    Listen(SocketAddr, io::Error),
    /// A file or folder cannot be read or written.
    File(PathBuf, io::Error),
    /// Another process uses the folder.
    InUse(PathBuf),
    /// The folder has the data of the node with this number.
    OtherNode(PathBuf, u64),
    /// A file is damaged at this byte, and later bytes are not.
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Bytes before the damage.
        at: u64,
        /// Description of the damage.
        why: &'static str,
    },
    /// The system gives no thread or no runtime.
    Thread(io::Error),
    /// The consensus stopped, since it could not write, or by a defect.
    Stopped(String),
}

impl ReplicaError {
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::File(path.to_owned(), error)
    }
}

impl fmt::Display for ReplicaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen(address, error) => write!(f, "the node cannot listen on {address}: {error}"),
            Self::File(path, error) => write!(f, "{}: {error}", path.display()),
            Self::InUse(path) => write!(f, "{} is in use by another process", path.display()),
            Self::OtherNode(path, id) => write!(f, "{} has the data of node {id}", path.display()),
            Self::Corrupt { path, at, why } => {
                write!(f, "{} is damaged at byte {at}: {why}", path.display())
            }
            Self::Thread(error) => write!(f, "cannot start a thread: {error}"),
            Self::Stopped(why) => write!(f, "the node stopped: {why}"),
        }
    }
}

impl std::error::Error for ReplicaError {}
