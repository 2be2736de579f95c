//! Kinds of data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A kind of observability data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Values of series over time.
    #[default]
    Metrics,
    /// Lines that services write.
    Logs,
    /// Spans, which form trees.
    Traces,
    /// Occurrences in the machine room and in business.
    Events,
}

impl Kind {
    /// All of them, in the order in which they are listed anywhere.
    pub const ALL: [Self; 4] = [Self::Metrics, Self::Logs, Self::Traces, Self::Events];

    /// The name by which users call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Metrics => "metrics",
            Self::Logs => "logs",
            Self::Traces => "traces",
            Self::Events => "events",
        }
    }

    /// Returns the noun for the records of this kind, in the plural.
    pub fn records(self) -> &'static str {
        match self {
            Self::Metrics => "points",
            Self::Logs => "lines",
            Self::Traces => "spans",
            Self::Events => "events",
        }
    }

    /// The measurement (table, index) that its records go to if none is named: that of Arc's scripts.
    pub fn measurement(self) -> &'static str {
        match self {
            Self::Metrics => "system_metrics",
            Self::Logs => "application_logs",
            Self::Traces => "distributed_traces",
            Self::Events => "system_events",
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
