//! The history of runs, as the page reads it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use plimsoll_core::Nanos;
use plimsoll_report::{RunResult, SavedRun, Searched};
use plimsoll_store::{Filter, Glance, Kind, Outline, Page, Row, State, Store, StoreError, Tag};

use crate::refusal::Refusal;

/// Latest runs that are checked for news.
const LOOKED_AT: u64 = 200;
/// Rows of a page at most whose courses are read: each takes a part of a millisecond.
const MOST_COURSES: usize = 200;

/// Runs of a series that are read at most.
const MOST_OF_SERIES: u64 = 1_000;
/// Tag of the runs that were made by one command, whose value names them.
const SERIES: &str = "series";

/// Responses per second over time, if they are known.
pub(crate) type Course = Option<Vec<f64>>;

/// The store, opened when it is first needed and kept open: to open it reads it through.
pub(crate) struct History {
    path: Option<PathBuf>,
    lives: fn(&str, Nanos) -> bool,
    open: Mutex<Option<Open>>,
}

/// A store that is open.
struct Open {
    store: Store,
    /// The file that it is in. Under the same name there may be another one later.
    file: (u64, u64),
}

/// What a row of the history has.
pub(crate) enum Read {
    /// A run.
    Run(Box<SavedRun>),
    /// A search or a sweep.
    Search(Box<Searched>),
}

/// Identity of a file; `None` if it does not exist.
fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

impl History {
    pub(crate) fn new(path: Option<PathBuf>, lives: fn(&str, Nanos) -> bool) -> Self {
        Self { path, lives, open: Mutex::default() }
    }

    /// The file.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Does something with the store; `None` if nothing was ever saved.
    fn with<T>(&self, work: impl FnOnce(&mut Store) -> Result<T, StoreError>) -> Result<Option<T>, Refusal> {
        let Some(path) = &self.path else { return Ok(None) };
        let mut open: MutexGuard<'_, Option<Open>> = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let present = identity(path);
        if open.as_ref().map(|open| open.file) != present {
            *open = None;
        }
        if open.is_none() {
            let (Some(store), Some(file)) = (Store::open_existing(path).map_err(refusal)?, present) else {
                return Ok(None);
            };
            *open = Some(Open { store, file });
        }
        let Some(open) = open.as_mut() else { return Ok(None) };
        work(&mut open.store).map(Some).map_err(refusal)
    }

    /// A page of the runs and searches in which every word of a filter occurs, each with its course where the
    /// page is short.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn page(&self, filter: &str, offset: u64, limit: u64) -> Result<(Page, Vec<Course>), Refusal> {
        let lives = self.lives;
        let page = self.with(|store| {
            store.settle(lives)?;
            let page = store.page(&filter.split_whitespace().collect::<Vec<_>>(), offset, limit)?;
            let is_short = page.rows.len() <= MOST_COURSES;
            let course = |row: &Row| if is_short { store.course(row.number) } else { Ok(None) };
            let courses = page.rows.iter().map(course).collect::<Result<Vec<_>, _>>()?;
            Ok((page, courses))
        });
        page.map(|page| page.unwrap_or((Page { rows: Vec::new(), total: 0 }, Vec::new())))
    }

    /// The latest runs in outline. Runs whose process is gone are made killed ones before.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn glance(&self) -> Result<Glance, Refusal> {
        let lives = self.lives;
        let glance = self.with(|store| {
            let glance = store.glance(LOOKED_AT)?;
            let some_go_on = glance.latest.iter().any(|outline| outline.state == State::Running);
            if some_go_on && store.settle(lives)? > 0 { store.glance(LOOKED_AT) } else { Ok(glance) }
        });
        glance.map(Option::unwrap_or_default)
    }

    /// The run of this id, in outline.
    ///
    /// # Errors
    /// There is no such run, or the store cannot be read.
    pub(crate) fn outline(&self, id: &str) -> Result<Outline, Refusal> {
        self.with(|store| store.outline(id))?.flatten().ok_or_else(|| missing(id))
    }

    /// Reads a run, a search or a sweep.
    ///
    /// # Errors
    /// There is none of this id, it is still running, or it cannot be read.
    pub(crate) fn read(&self, id: &str) -> Result<Read, Refusal> {
        let outline = self.outline(id)?;
        let read = self.with(|store| match outline.kind {
            Kind::Run => Ok(store.read(outline.number)?.map(|run| Read::Run(Box::new(run)))),
            Kind::Search | Kind::Sweep => {
                Ok(store.read_search(outline.number)?.map(|searched| Read::Search(Box::new(searched))))
            }
        });
        read?.flatten().ok_or_else(|| match outline.state {
            State::Running => goes_on(id),
            _ => Refusal::failed(format!("{} {id} cannot be read", outline.kind.name()), "delete it"),
        })
    }

    /// Reads a run that goes on, as far as it has come; `None` if it does not go on any more.
    ///
    /// # Errors
    /// There is no such run, or it cannot be read.
    pub(crate) fn so_far(&self, id: &str) -> Result<Option<SavedRun>, Refusal> {
        let lives = self.lives;
        let outline = self.outline(id)?;
        let run = self.with(|store| {
            // One whose process is gone is over.
            store.settle(lives)?;
            store.so_far(outline.number)
        });
        run.map(Option::flatten)
    }

    /// The finished runs of a series, the first one first.
    ///
    /// # Errors
    /// There is no such series, or it cannot be read.
    pub(crate) fn series(&self, id: &str) -> Result<Vec<RunResult>, Refusal> {
        let tag = Tag { name: SERIES.to_owned(), value: id.to_owned() };
        let filter = Filter { tags: vec![tag], limit: Some(MOST_OF_SERIES), ..Filter::default() };
        let runs = self.with(|store| {
            let rows = store.list(&filter)?;
            let rows = rows.iter().rev().filter(|row| row.kind == Kind::Run && row.state != State::Running);
            rows.map(|row| store.read(row.number)).collect::<Result<Vec<_>, _>>()
        });
        let runs = runs?.unwrap_or_default().into_iter().flatten();
        let runs: Vec<RunResult> = runs.map(|run| run.result).collect();
        // A tag without a value stands for any.
        if runs.is_empty() || id.is_empty() { Err(missing(id)) } else { Ok(runs) }
    }

    /// Removes a run.
    ///
    /// # Errors
    /// There is no such run, it is still running, or the store cannot be written.
    pub(crate) fn remove(&self, id: &str) -> Result<(), Refusal> {
        let outline = self.outline(id)?;
        if outline.state == State::Running {
            return Err(goes_on(id));
        }
        self.with(|store| store.remove(&[outline.number])).map(drop)
    }
}

fn goes_on(id: &str) -> Refusal {
    Refusal::conflict(format!("run {id} is still running"), "wait for its end, or stop it")
}

fn missing(id: &str) -> Refusal {
    let shown: String = id.chars().take(100).collect();
    Refusal::not_found(
        format!("the history has no run `{}`", shown.escape_debug()),
        "reload the list: it may have been deleted",
    )
}

fn refusal(error: StoreError) -> Refusal {
    Refusal::failed(error.to_string(), error.hint())
}
