//! Reading results back.

use std::fmt;

use serde::Deserialize;

use crate::compare::repeated::REPEATED_VERSION;
use crate::{RepeatedResult, RunResult, SCHEMA_VERSION};

/// Reason why a text is not a readable result.
#[derive(Debug)]
pub enum ReadError {
    /// It is not JSON, or no object.
    NotJson(serde_json::Error),
    /// It has no version of this contract: it is something else.
    NotAResult,
    /// It was written by a later version of this program.
    TooNew {
        /// The version of its contract.
        found: u32,
        /// The latest version that is known here.
        known: u32,
    },
    /// It is of a search or a sweep, which has trials and no run.
    OfSearch,
    /// It has the version of a result, but not its fields.
    Broken(serde_json::Error),
}

impl ReadError {
    /// Returns advice on resolving the error.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::NotJson(_) | Self::NotAResult => "a result is what `plimsoll run --json FILE` writes",
            Self::OfSearch => "`plimsoll show` and `plimsoll report` take it, one at a time",
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
            Self::OfSearch => f.write_str("the result of a search or a sweep, and a run is wanted"),
            Self::TooNew { found, known } => {
                write!(f, "a result of version {found}, and this program knows versions up to {known} only")
            }
            Self::Broken(error) => write!(f, "no whole result: {error}"),
        }
    }
}

impl std::error::Error for ReadError {}

impl RunResult {
    /// Reads a result that [`Format::Json`](crate::Format::Json) wrote, of this or an earlier version of the
    /// contract.
    ///
    /// # Errors
    /// If it is not a result, or of a later version.
    pub fn from_json(text: &[u8]) -> Result<Self, ReadError> {
        /// Fields that distinguish a result from other JSON: a comparison has a version, too, but no run.
        #[derive(Deserialize)]
        struct Mark {
            schema_version: Option<u32>,
            run: Option<serde::de::IgnoredAny>,
            search: Option<serde::de::IgnoredAny>,
            sweep: Option<serde::de::IgnoredAny>,
        }
        let Mark { schema_version, run, search, sweep } =
            serde_json::from_slice(text).map_err(ReadError::NotJson)?;
        match (schema_version, run) {
            (Some(found), Some(_)) if found > SCHEMA_VERSION => {
                Err(ReadError::TooNew { found, known: SCHEMA_VERSION })
            }
            (Some(_), Some(_)) => {
                serde_json::from_slice(text).map(Self::with_headline).map_err(ReadError::Broken)
            }
            (Some(_), None) if search.is_some() || sweep.is_some() => Err(ReadError::OfSearch),
            _ => Err(ReadError::NotAResult),
        }
    }
}

/// Reads the runs of a file: one that [`Format::Json`](crate::Format::Json) wrote of a single run, or of
/// repeated ones.
///
/// # Errors
/// If it is neither, or of a later version.
pub fn results_from_json(text: &[u8]) -> Result<Vec<RunResult>, ReadError> {
    /// Fields that distinguish repeated runs from other JSON.
    #[derive(Deserialize)]
    struct Mark {
        schema_version: Option<u32>,
        runs_wanted: Option<serde::de::IgnoredAny>,
    }
    let Mark { schema_version, runs_wanted } = serde_json::from_slice(text).map_err(ReadError::NotJson)?;
    match (schema_version, runs_wanted) {
        (Some(found), Some(_)) if found > REPEATED_VERSION => {
            Err(ReadError::TooNew { found, known: REPEATED_VERSION })
        }
        (Some(_), Some(_)) => {
            let repeated: RepeatedResult = serde_json::from_slice(text).map_err(ReadError::Broken)?;
            Ok(repeated.runs.into_iter().map(RunResult::with_headline).collect())
        }
        _ => RunResult::from_json(text).map(|result| vec![result]),
    }
}
