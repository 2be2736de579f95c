//! Reading results back.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::compare::repeated::REPEATED_VERSION;
use crate::{RepeatedResult, RunResult, SCHEMA_VERSION};

/// Reason why a text is not a readable result.
#[derive(Debug)]
pub enum ReadError {
    /// The text is not JSON, or no object.
    NotJson(serde_json::Error),
    /// The text has no version of this contract: it is something else.
    NotAResult,
    /// The result was written by a later version of this program.
    TooNew {
        /// The version of its contract.
        found: u32,
        /// The latest version that is known here.
        known: u32,
    },
    /// The result is of a search or a sweep, which has trials and no run.
    OfSearch,
    /// The result is of a comparison or a suite, which is of several runs.
    OfRuns,
    /// The text has the version of a result, but not its fields.
    Broken(serde_json::Error),
}

impl ReadError {
    /// Returns advice on resolving the error.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::NotJson(_) | Self::NotAResult => "a result is what `plimsoll run --json FILE` writes",
            Self::OfSearch | Self::OfRuns => "`plimsoll show` and `plimsoll report` take it, one at a time",
            Self::TooNew { .. } => "read it with the version of plimsoll that wrote it, or a later one",
            Self::Broken(_) => "it was cut short or changed: make the run again",
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotJson(error) => write!(f, "no JSON object: {error}"),
            Self::NotAResult => f.write_str("JSON, but no result of a run"),
            Self::OfRuns => f.write_str("the result of a comparison or a suite, and a run is wanted"),
            Self::OfSearch => f.write_str("the result of a search or a sweep, and a run is wanted"),
            Self::TooNew { found, known } => {
                write!(f, "a result of version {found}, and this program knows versions up to {known} only")
            }
            Self::Broken(error) => write!(f, "no whole result: {error}"),
        }
    }
}

impl std::error::Error for ReadError {}

/// Fields that tell results of one kind from those of others, and from other JSON.
#[derive(Deserialize)]
pub(crate) struct Mark {
    schema_version: Option<u32>,
    run: Option<IgnoredAny>,
    runs_wanted: Option<IgnoredAny>,
    pub(crate) search: Option<IgnoredAny>,
    pub(crate) sweep: Option<IgnoredAny>,
    pub(crate) metrics: Option<IgnoredAny>,
    pub(crate) suite: Option<IgnoredAny>,
}

/// Reads a result of the kind that `is` tells from others, whose latest version is `known`; `None` if it is
/// of another kind.
///
/// # Errors
/// The text is no JSON, the result is not whole, or a later version wrote it.
pub(crate) fn of_kind<T: DeserializeOwned>(
    json: &[u8],
    known: u32,
    is: fn(&Mark) -> bool,
) -> Result<Option<T>, ReadError> {
    let mark: Mark = serde_json::from_slice(json).map_err(ReadError::NotJson)?;
    match mark.schema_version {
        Some(_) if !is(&mark) => Ok(None),
        Some(found) if found > known => Err(ReadError::TooNew { found, known }),
        Some(_) => serde_json::from_slice(json).map(Some).map_err(ReadError::Broken),
        None => Ok(None),
    }
}

impl RunResult {
    /// Reads a result that [`Format::Json`](crate::Format::Json) wrote, of this or an earlier version of the
    /// contract.
    ///
    /// # Errors
    /// If it is not a result, or of a later version.
    pub fn from_json(text: &[u8]) -> Result<Self, ReadError> {
        // A comparison has a version, too, but no run.
        let run: Option<Self> = of_kind(text, SCHEMA_VERSION, |mark| mark.run.is_some())?;
        run.map(Self::with_headline).ok_or_else(|| what_else(text))
    }
}

/// The error of a text that is no run.
fn what_else(json: &[u8]) -> ReadError {
    match serde_json::from_slice::<Mark>(json) {
        Ok(Mark { schema_version: Some(_), search, sweep, .. }) if search.is_some() || sweep.is_some() => {
            ReadError::OfSearch
        }
        Ok(Mark { schema_version: Some(_), metrics, suite, .. }) if metrics.is_some() || suite.is_some() => {
            ReadError::OfRuns
        }
        _ => ReadError::NotAResult,
    }
}

impl RepeatedResult {
    /// Reads a result of several runs in JSON; `None` if it is of another kind.
    ///
    /// # Errors
    /// The text is no JSON, the result is not whole, or a later version wrote it.
    pub fn from_json(json: &[u8]) -> Result<Option<Self>, ReadError> {
        of_kind(json, REPEATED_VERSION, |mark| mark.runs_wanted.is_some())
    }
}

/// Reads the runs of a file: one that [`Format::Json`](crate::Format::Json) wrote of a single run, or of
/// repeated ones.
///
/// # Errors
/// If it is neither, or of a later version.
pub fn results_from_json(text: &[u8]) -> Result<Vec<RunResult>, ReadError> {
    match RepeatedResult::from_json(text)? {
        Some(repeated) => Ok(repeated.runs.into_iter().map(RunResult::with_headline).collect()),
        None => RunResult::from_json(text).map(|result| vec![result]),
    }
}
