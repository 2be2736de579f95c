//! Formats with a schema.

use clap::{Args, ValueEnum};
use plimsoll_cluster::document::ClusterDocument;
use plimsoll_document::Document;

use crate::base::plan_parts::plan_parts;

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// The format
    #[arg(value_enum, value_name = "FORMAT")]
    pub(crate) of: SchemaOf,
}

/// Formats with a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaOf {
    /// Plan files
    Plan,
    /// Specs of clusters
    Cluster,
    /// Output of `run --output json`
    Result,
    /// Output of `run --repeat N --output json`
    Repeated,
    /// Output of `calibrate --output json`
    Calibration,
    /// Output of `find --output json`
    Capacity,
    /// Output of `find --sweep --output json`
    Sweep,
    /// Output of `compare --output json`
    Comparison,
    /// Output of `cluster run --suite NAME --output json`
    Suite,
    /// Output of `history --output json`
    History,
    /// A line of `run --output ndjson`
    Ndjson,
}

impl SchemaOf {
    /// All that are results.
    pub(crate) const RESULTS: [Self; 8] = [
        Self::Result,
        Self::Repeated,
        Self::Calibration,
        Self::Capacity,
        Self::Sweep,
        Self::Comparison,
        Self::History,
        Self::Suite,
    ];

    /// Returns the name of the schema on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Cluster => "cluster",
            Self::Suite => "suite",
            Self::Result => "result",
            Self::Repeated => "repeated",
            Self::Calibration => "calibration",
            Self::Capacity => "capacity",
            Self::Sweep => "sweep",
            Self::Comparison => "comparison",
            Self::History => "history",
            Self::Ndjson => "ndjson",
        }
    }

    /// Returns the subject of the schema, as a title.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Plan => "A plan",
            Self::Cluster => "A cluster",
            Self::Suite => "A suite",
            Self::Result => "A run",
            Self::Repeated => "Repeated runs",
            Self::Calibration => "A calibration",
            Self::Capacity => "A search for the capacity",
            Self::Sweep => "A sweep",
            Self::Comparison => "A comparison",
            Self::History => "A history",
            Self::Ndjson => "A line of a run",
        }
    }

    /// The schema.
    pub(crate) fn schema(self) -> serde_json::Value {
        match self {
            Self::Result => plimsoll_report::schema_result(),
            Self::Calibration => plimsoll_report::schema_calibration(),
            Self::Sweep => plimsoll_report::schema_sweep(),
            Self::Capacity => plimsoll_report::schema_capacity(),
            Self::Comparison => plimsoll_report::schema_comparison(),
            Self::Repeated => plimsoll_report::schema_repeated(),
            Self::History => plimsoll_report::schema_history(),
            Self::Ndjson => plimsoll_report::schema_ndjson(),
            Self::Plan => Document::schema(plan_parts().document()),
            Self::Cluster => ClusterDocument::schema(),
            Self::Suite => plimsoll_report::schema_suite(),
        }
    }
}
