//! Errors of a store.

use std::fmt;
use std::path::{Path, PathBuf};

use plimsoll_report::ReadError;
use rusqlite::ErrorCode;

/// Reason why something could not be done with a store.
#[derive(Debug)]
pub enum StoreError {
    /// The file cannot be made, opened, read or written: permissions, a full disk, a lock that is held.
    Unusable {
        /// The file.
        path: PathBuf,
        /// The underlying error message.
        reason: String,
    },
    /// The file is damaged.
    Corrupt {
        /// The file.
        path: PathBuf,
        /// SQLite's error message.
        reason: String,
    },
    /// The file is something else.
    NotAStore {
        /// The file.
        path: PathBuf,
    },
    /// There is something that is not a regular file: a folder, a pipe, a socket, a device.
    NotAFile {
        /// Path of the folder, pipe, socket or device.
        path: PathBuf,
        /// The kind of file that it is, in words.
        kind: &'static str,
    },
    /// The store was made by a later version of this program.
    TooNew {
        /// The file.
        path: PathBuf,
        /// The version of its schema.
        found: u32,
        /// The latest version that is known here.
        known: u32,
    },
    /// One run of the store cannot be read.
    Run {
        /// Id of the run.
        id: String,
        /// The reason.
        reason: ReadError,
    },
}

impl StoreError {
    /// Classifies an error of SQLite: a damaged file is [`Corrupt`](Self::Corrupt), all else
    /// [`Unusable`](Self::Unusable).
    pub(crate) fn of(path: &Path, error: rusqlite::Error) -> Self {
        let (path, reason) = (path.to_owned(), error.to_string());
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Corrupt { path, reason },
            _ => Self::Unusable { path, reason },
        }
    }

    /// Puts another path in the error: the one that people know, of a file that is only about to get it.
    #[must_use]
    pub(crate) fn at(mut self, known: &Path) -> Self {
        match &mut self {
            Self::Unusable { path, .. }
            | Self::Corrupt { path, .. }
            | Self::NotAStore { path }
            | Self::NotAFile { path, .. }
            | Self::TooNew { path, .. } => *path = known.to_owned(),
            Self::Run { .. } => {}
        }
        self
    }

    /// Returns `true` if the file or its place is to blame, and not the request: another try may succeed.
    pub const fn is_of_place(&self) -> bool {
        matches!(self, Self::Unusable { .. } | Self::Corrupt { .. })
    }

    /// Returns advice on resolving the error, for people.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Unusable { .. } => "free some space or permit it, or name another file with --store",
            Self::Corrupt { .. } => {
                "the next `run --save` sets it aside and begins a new one; `sqlite3 FILE .recover` may save its runs"
            }
            Self::NotAStore { .. } | Self::NotAFile { .. } => {
                "name a file that `run --save --store FILE` made, or one that is not there yet"
            }
            Self::TooNew { .. } => {
                "use the version of plimsoll that wrote it, or a later one, or another file (--store)"
            }
            Self::Run { .. } => {
                "remove it with `plimsoll rm`, or read it with the version of plimsoll that wrote it"
            }
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unusable { path, reason } => write!(f, "cannot use the store {}: {reason}", path.display()),
            Self::Corrupt { path, reason } => write!(f, "the store {} is damaged: {reason}", path.display()),
            Self::NotAStore { path } => write!(f, "{} is not a store of runs", path.display()),
            Self::NotAFile { path, kind } => {
                write!(f, "{} is {kind}, and a store of runs is a file", path.display())
            }
            Self::TooNew { path, found, known } => write!(
                f,
                "the store {} has version {found}, and this program knows versions up to {known} only",
                path.display()
            ),
            Self::Run { id, reason } => write!(f, "run {id} cannot be read: {reason}"),
        }
    }
}

impl std::error::Error for StoreError {}
