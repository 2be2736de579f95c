//! The end of a load before its planned length.

use plimsoll_core::Nanos;
use serde::{Deserialize, Serialize};

/// An end of an open load that the plan gives a length, before that length, for which nobody asked while it
/// went on. A run that a signal, a threshold or a command ended has none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlyEnd {
    /// Reason for the end.
    pub by: EndedBy,
    /// Time in the measured part up to the first arrival that was not started for this reason; zero if that
    /// was in the warm-up.
    pub after: Nanos,
}

/// Reasons for which a load ends by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// The data source of this name had no row left (`at_end: stop`).
    Data(String),
    /// A script asked for the end. A run with a length keeps it, and begins nothing more.
    Script,
}

impl EndedBy {
    /// The name in results.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Data(_) => "data",
            Self::Script => "script",
        }
    }

    /// The name of the data source; `None` if it was none.
    pub fn data(&self) -> Option<&str> {
        match self {
            Self::Data(name) => Some(name),
            Self::Script => None,
        }
    }
}
