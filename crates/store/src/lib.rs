//! Run history: finished runs, and those under way, in one SQLite file.
//!
//! A run is begun ([`Store::begin`]), written interval by interval ([`Ongoing::note`]) and finished
//! ([`Ongoing::finish`]). Each of these is one transaction, so that a process that is killed leaves behind
//! all that it had written; [`Store::settle`] makes a run of that. Several processes may do so at once.
//! Nothing here reads a clock or asks whether a process lives: those are arguments.
//!
//! The result of a search or a sweep is kept as a whole when it is over ([`Store::keep`]).
//!
//! The figures by which runs are looked for are columns, so that SQL can ask for them; everything is in the
//! bytes of the [`SavedRun`](plimsoll_report::SavedRun).
#![forbid(unsafe_code)]

mod error;
mod opening;
mod overview;
mod reading;
mod schema;
mod settling;
mod tag;
mod writing;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

pub use error::StoreError;
pub use opening::Origin;
pub use overview::{Glance, Outline, Page};
pub use reading::{Filter, Kind, Row, State};
pub use schema::{APPLICATION_ID, VERSION};
pub use tag::{BadName, Tag, check_name};
pub use writing::{Labels, Ongoing};

/// The history of runs in one file.
///
/// Open it ([`open`](Self::open), [`open_existing`](Self::open_existing)), and hold it no longer than needed:
/// the file belongs to every process of this program.
#[derive(Debug)]
pub struct Store {
    db: Connection,
    path: PathBuf,
    /// Killed runs that could not be marked as killed, by their numbers, with their beginnings.
    gone: BTreeMap<i64, String>,
}

impl Store {
    fn new(db: Connection, path: &Path) -> Self {
        Self { db, path: path.to_owned(), gone: BTreeMap::new() }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn failed(&self, error: rusqlite::Error) -> StoreError {
        StoreError::of(&self.path, error)
    }
}
