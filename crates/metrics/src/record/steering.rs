//! Changes that were made to a run while it went on.

use plimsoll_core::Nanos;
use serde::{Deserialize, Serialize};

/// Source of a change to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SteeredBy {
    /// The watched file (`--rate-file`).
    File,
    /// A request to the control port (`--control`).
    Http,
    /// A key on the terminal.
    Key,
    /// The agent that carried it out for a fleet, whose coordinator was silent.
    Orphaned,
    /// The agent that carried it out for a fleet, which was told to end.
    AgentLeft,
}

impl SteeredBy {
    /// Returns the name of the source in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Http => "http",
            Self::Key => "key",
            Self::Orphaned => "orphaned",
            Self::AgentLeft => "agent_left",
        }
    }
}

/// Effect of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Steering {
    /// The change set another rate.
    Rate,
    /// Nothing starts from there on.
    Pause,
    /// The end of a pause.
    Resume,
}

impl Steering {
    /// Returns the name of the effect in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Pause => "pause",
            Self::Resume => "resume",
        }
    }
}

/// One change of the rate while the run went on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateChange {
    /// From when it applies, since the start of the run (warm-up included).
    pub at: Nanos,
    /// Effect of the change.
    pub what: Steering,
    /// Arrivals per second for the whole run just before; `None` in the closed model.
    pub from_per_second: Option<f64>,
    /// Arrivals per second for the whole run from there on; `None` in the closed model.
    pub to_per_second: Option<f64>,
    /// Source of the change.
    pub by: SteeredBy,
}
