//! Runs by the words that name them: files, and runs of the history.

use std::path::{Path, PathBuf};

use plimsoll_document::Problem;
use plimsoll_report::{ReadError, RunResult, SavedRun, results_from_json};
use plimsoll_store::{Filter, Kind, Row, State, Store, Tag};

use crate::args::save::PlaceArgs;
use crate::base::failure::Failure;
use crate::base::{files, process};
use crate::session::documents::Document;
use crate::session::evidence;
use crate::session::saving::{failure, short};

/// Digits of an id that can name a run: with fewer, nearly any word would.
const FEWEST_DIGITS: usize = 4;

/// Largest file that is read as a run, in bytes. It is read as a whole.
const LARGEST_FILE: u64 = 256 << 20;

/// A run, and how it was named.
#[derive(Clone, Debug)]
pub(crate) struct NamedRun {
    /// The file, or the id and the name in the history.
    pub(crate) name: String,
    pub(crate) run: SavedRun,
}

/// The history, for reading. It is opened when it is first needed.
#[derive(Debug)]
pub(crate) struct History {
    path: PathBuf,
    /// `None` before it was looked for; then whether there is one.
    store: Option<Option<Store>>,
}

impl History {
    /// The history at this place. Nothing is opened yet.
    ///
    /// # Errors
    /// There is no place for one.
    pub(crate) fn at(place: &PlaceArgs) -> Result<Self, Failure> {
        let (path, _) = place.file().map_err(Failure::usage)?;
        Ok(Self { path, store: None })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The store; `None` if nothing was ever saved. Runs whose process is gone are made killed ones first.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn store(&mut self) -> Result<Option<&mut Store>, Failure> {
        if self.store.is_none() {
            let mut found = Store::open_existing(&self.path).map_err(|error| failure(&error))?;
            if let Some(store) = &mut found {
                store.settle(process::lives).map_err(|error| failure(&error))?;
            }
            self.store = Some(found);
        }
        Ok(self.store.as_mut().and_then(Option::as_mut))
    }

    /// The runs that a word means, the latest first: `latest` and `latest~N`, an id, a name (all runs of it),
    /// a tag (all runs that have it), or the start of an id. Empty if it means none.
    ///
    /// # Errors
    /// The history cannot be read, or the word is the start of several ids.
    pub(crate) fn find(&mut self, word: &str) -> Result<Vec<Row>, Failure> {
        let Some(store) = self.store()? else { return Ok(Vec::new()) };
        let read = |error| failure(&error);
        if let Some(back) = back(word) {
            return Ok(store.latest(back).map_err(read)?.into_iter().collect());
        }
        let of_id = store.by_id(word).map_err(read)?;
        if of_id.iter().any(|row| row.id == word) {
            return Ok(of_id);
        }
        let named = store.list(&Filter { name: Some(word.to_owned()), ..Filter::default() }).map_err(read)?;
        if !named.is_empty() {
            return Ok(named);
        }
        if let Ok(tag) = word.parse::<Tag>() {
            let tagged = store.list(&Filter { tags: vec![tag], ..Filter::default() }).map_err(read)?;
            if !tagged.is_empty() {
                return Ok(tagged);
            }
        }
        match of_id.len() {
            _ if word.len() < FEWEST_DIGITS => Ok(Vec::new()),
            0 | 1 => Ok(of_id),
            many => {
                let ids: Vec<&str> = of_id.iter().take(5).map(|row| &*row.id).collect();
                let problem =
                    Problem::new(format!("`{word}` is the beginning of {many} ids: {}", ids.join(", ")));
                Err(Failure::usage(problem.with_hint("write more digits")))
            }
        }
    }

    /// The run that a word means: of several, the latest.
    ///
    /// # Errors
    /// As [`find`](Self::find), and if there is none.
    pub(crate) fn row(&mut self, word: &str) -> Result<Row, Failure> {
        match self.find(word)?.into_iter().next() {
            Some(row) => Ok(row),
            None => Err(Failure::usage(self.missing(word))),
        }
    }

    /// Reads a run.
    ///
    /// # Errors
    /// It is still running, or cannot be read.
    pub(crate) fn read(&mut self, row: &Row) -> Result<NamedRun, Failure> {
        if row.kind != Kind::Run {
            let problem = Problem::new(format!("{}: {}", label(row), ReadError::OfSearch));
            return Err(Failure::usage(problem.with_hint(ReadError::OfSearch.hint())));
        }
        let saved = match self.store()? {
            Some(store) => store.read(row.number).map_err(|error| failure(&error))?,
            None => None,
        };
        let name = label(row);
        match saved {
            Some(run) => Ok(NamedRun { name, run }),
            None if row.state == State::Running => Err(Failure::usage(
                Problem::new(format!("{name} is still running")).with_hint("wait for its end"),
            )),
            None => Err(Failure::usage(
                Problem::new(format!("{name} cannot be read")).with_hint("remove it: `plimsoll rm`"),
            )),
        }
    }

    /// The problem that a word matches no run.
    fn missing(&self, word: &str) -> Problem {
        let path = self.path.display();
        let message = format!("`{}` is neither a file nor a run of the history {path}", word.escape_debug());
        Problem::new(message)
            .with_hint("`plimsoll runs` lists the runs; their ids, their names and `latest` name them")
    }

    /// Finds the document that a word names: a file with the result of a command that makes no single run, or
    /// a search or a sweep of the history; `None` if the word names a run, or nothing.
    ///
    /// # Errors
    /// The file or the history cannot be read.
    pub(crate) fn document(&mut self, word: &str) -> Result<Option<Document>, Failure> {
        let path = Path::new(word);
        if path.is_file() {
            return document_of_file(path).map_err(Failure::usage);
        }
        let row = self.find(word)?.into_iter().next().filter(|row| row.kind != Kind::Run);
        match (row, self.store()?) {
            (Some(row), Some(store)) => {
                let searched = store.read_search(row.number).map_err(|error| failure(&error))?;
                Ok(searched.map(|searched| Document::Searched(Box::new(searched))))
            }
            _ => Ok(None),
        }
    }

    /// The run that a word means: a file that `run --json` or `export` wrote, or a run of the history.
    ///
    /// # Errors
    /// There is none, there are several in the file, or it cannot be read.
    pub(crate) fn run(&mut self, word: &str) -> Result<NamedRun, Failure> {
        let path = Path::new(word);
        if !path.is_file() {
            let row = self.row(word)?;
            return self.read(&row);
        }
        let mut runs = of_file(path).map_err(Failure::usage)?;
        match (runs.pop(), runs.len()) {
            (Some(run), 0) => Ok(run),
            (_, others) => {
                let problem = Problem::new(format!("{word}: {} runs in it, and one is wanted", others + 1));
                Err(Failure::usage(problem.with_hint("save the runs with --save, and name one of them")))
            }
        }
    }
}

/// Returns the label of a run of the history: its id, and its name if it has one.
pub(crate) fn label(row: &Row) -> String {
    let kind = row.kind.name();
    match &row.name {
        Some(name) => format!("{kind} {} ({name})", short(&row.id)),
        None => format!("{kind} {}", short(&row.id)),
    }
}

/// The runs of a file: a result, repeated ones, or a saved run.
///
/// # Errors
/// The file cannot be read, or has no run.
pub(crate) fn of_file(file: &Path) -> Result<Vec<NamedRun>, Problem> {
    let name = file.display();
    let bytes = bytes_of(file)?;
    let bad = |error| unreadable(file, &error);
    if evidence::is_evidence(&bytes) {
        let named = |problem: Problem| Problem { message: format!("{name}: {}", problem.message), ..problem };
        let run = evidence::of_bytes(&bytes).map_err(named)?.to_saved().map_err(bad)?;
        return Ok(vec![NamedRun { name: name.to_string(), run }]);
    }
    if SavedRun::is_saved(&bytes) {
        let run = SavedRun::from_bytes(&bytes).map_err(bad)?;
        return Ok(vec![NamedRun { name: name.to_string(), run }]);
    }
    let results = results_from_json(&bytes).map_err(bad)?;
    if results.is_empty() {
        let problem = Problem::new(format!("{name}: no run in it: a signal ended it before the first"));
        return Err(problem.with_hint("make the runs again"));
    }
    let is_alone = results.len() == 1;
    let named = |(number, result): (u64, RunResult)| NamedRun {
        name: if is_alone { name.to_string() } else { format!("{name} (run {number})") },
        run: SavedRun::of_result(result),
    };
    Ok((1..).zip(results).map(named).collect())
}

/// Reads a file as a whole, unless it is too large to be a result.
fn bytes_of(file: &Path) -> Result<Vec<u8>, Problem> {
    let name = file.display();
    let bytes = files::read_within(file, LARGEST_FILE).map_err(|error| {
        Problem::new(format!("cannot read {name}: {error}")).with_hint(
            "name a file that `plimsoll run --json FILE` wrote, a folder of these, a pattern, or a run of the history",
        )
    })?;
    bytes.ok_or_else(|| {
        Problem::new(format!("{name} has more than {} MiB: it is not a run", LARGEST_FILE >> 20))
            .with_hint("name a file that `plimsoll run --json FILE` or `plimsoll export` wrote")
    })
}

/// The result of a command that makes no single run, in a file; `None` if it has something else.
fn document_of_file(file: &Path) -> Result<Option<Document>, Problem> {
    let bytes = bytes_of(file)?;
    if evidence::is_evidence(&bytes) {
        let named = |problem: Problem| Problem {
            message: format!("{}: {}", file.display(), problem.message),
            ..problem
        };
        let searched = evidence::of_bytes(&bytes).map_err(named)?.to_searched();
        let searched = searched.map_err(|error| unreadable(file, &error))?;
        return Ok(searched.map(|searched| Document::Searched(Box::new(searched))));
    }
    match Document::from_json(&bytes) {
        Ok(document) => Ok(document),
        // It may be a run, in another form.
        Err(ReadError::NotJson(_)) => Ok(None),
        Err(error) => Err(unreadable(file, &error)),
    }
}

fn unreadable(file: &Path, error: &ReadError) -> Problem {
    Problem::new(format!("{}: {error}", file.display())).with_hint(error.hint())
}

/// Parses `latest` and `latest~N` to the number of runs to go back; `None` for any other word.
fn back(word: &str) -> Option<u64> {
    match word.strip_prefix("latest")? {
        "" => Some(0),
        rest => rest.strip_prefix('~')?.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_the_latest_runs() {
        for (word, steps) in [("latest", Some(0)), ("latest~0", Some(0)), ("latest~12", Some(12))] {
            assert_eq!(back(word), steps);
        }
        for word in ["latest~", "latest-1", "latest~x", "late", "latest2"] {
            assert_eq!(back(word), None, "{word}");
        }
    }
}
