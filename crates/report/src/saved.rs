//! Everything of a run that outlives it: its result, and the histograms behind the figures.

pub(crate) mod encoding;
mod fleet;
mod merging;
pub(crate) mod reading;
mod shards;
mod unfinished;

use std::io;

use plimsoll_core::Nanos;
use plimsoll_histogram::Histogram;
use plimsoll_metrics::{MetricRecord, PhaseRecord, RunRecord, Slice, StepRecord, Tally};
use serde::{Deserialize, Serialize};

pub use self::encoding::{
    interval_from_bytes, interval_line_to_bytes, interval_to_line, tallies_from_bytes, tallies_to_bytes,
};
pub use self::fleet::FleetShare;
pub use self::merging::MergeError;
pub use self::shards::shards_of;
pub use self::unfinished::{Beginning, Cut, LiveRecord, MOST_PARTS, Part, PartKind};
use crate::{ReadError, RunResult};

/// The version of the bytes of a saved run: raised when a field changes its meaning or goes.
pub const SAVED_VERSION: u32 = 1;

/// The saved part of a step: its counts, and all of its histograms.
pub type SavedStep = StepRecord;

/// A run that is over, with everything that reports and merges need.
///
/// The result is the one that was reported. The histograms are those that its figures were made of, so that
/// merging several runs is exact, and the slices are the run over time. The size does not depend on the
/// length of the run, except for one line per interval in the result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedRun {
    /// The result as it was written.
    pub result: RunResult,
    /// The text of its plan file, credentials aside; `None` if there was none.
    pub plan: Option<String>,
    /// The steps of the plan, in the order of `result.by_step`; empty if no histograms were kept.
    pub steps: Vec<SavedStep>,
    /// The phases of the plan, in the order of `result.phases`.
    pub phases: Vec<PhaseRecord>,
    /// From the connect call to the established connection.
    pub connect_time: Histogram,
    /// TLS handshakes.
    pub tls_time: Histogram,
    /// Round trips of HTTP/2's PING.
    pub ping_time: Histogram,
    /// Metrics of the plan's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricRecord>,
    /// The run over time, in its order: warm-up, measured part, drain. Empty if no histograms were kept.
    pub slices: Vec<SavedSlice>,
}

/// A time of a run, with the outcomes of the requests of all steps in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedSlice {
    /// End of the slice, since the start of the run, warm-up included.
    #[serde(rename = "at_ns", with = "plimsoll_metrics::written::nanos")]
    pub at: Nanos,
    /// Length of the slice.
    #[serde(rename = "length_ns", with = "plimsoll_metrics::written::nanos")]
    pub length: Nanos,
    /// `true` if it belongs to the warm-up.
    pub warmup: bool,
    /// `true` if it belongs to the drain, after the end of the load.
    pub drain: bool,
    /// Counts, and the values of response and service time.
    pub tally: Tally,
}

impl SavedRun {
    /// Returns the run to save, from its record, its result, and the text of its plan file without
    /// credentials, if it had one.
    pub fn new(record: &RunRecord, result: RunResult, plan: Option<String>) -> Self {
        let timeline = &record.timeline;
        let slice = |warmup, drain| {
            move |slice: &Slice| {
                let Slice { at, length, total, .. } = slice.clone();
                SavedSlice { at, length, warmup, drain, tally: total }
            }
        };
        let warmup = timeline.warmup.iter().map(slice(true, false));
        let measured = timeline.measured.iter().map(slice(false, false));
        let drain = timeline.drain.iter().map(slice(false, true));
        Self {
            result,
            plan,
            steps: record.steps.clone(),
            phases: record.phases.clone(),
            connect_time: record.connections.connect_time.clone(),
            tls_time: record.connections.tls_time.clone(),
            ping_time: record.connections.http2.ping_time.clone(),
            metrics: record.metrics.clone(),
            slices: warmup.chain(measured).chain(drain).collect(),
        }
    }

    /// A run of which nothing is left but its result.
    pub fn of_result(result: RunResult) -> Self {
        Self {
            result,
            plan: None,
            steps: Vec::new(),
            phases: Vec::new(),
            connect_time: Histogram::new(),
            tls_time: Histogram::new(),
            ping_time: Histogram::new(),
            metrics: Vec::new(),
            slices: Vec::new(),
        }
    }

    /// Returns `true` if there are histograms, and not the result alone.
    pub const fn has_histograms(&self) -> bool {
        !self.steps.is_empty()
    }

    /// All steps together.
    pub fn total(&self) -> SavedStep {
        let mut total = SavedStep { name: "all".to_owned(), ..SavedStep::default() };
        self.steps.iter().for_each(|step| total.merge(step));
        total
    }

    /// The run as bytes, which [`from_bytes`](Self::from_bytes) reads: JSON compressed by gzip (RFC 1952),
    /// with each histogram as HdrHistogram writes it in logs (V2, deflated, Base64) and its exact extremes
    /// and sum beside it. Equal runs have equal bytes.
    ///
    /// # Errors
    /// If it cannot be written as JSON, which no run that was measured causes.
    pub fn to_bytes(&self) -> io::Result<Vec<u8>> {
        encoding::run_to_bytes(self)
    }

    /// Reads the bytes of [`to_bytes`](Self::to_bytes), of this or an earlier version.
    ///
    /// # Errors
    /// If it is something else, of a later version, or damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ReadError> {
        encoding::run_from_bytes(bytes)
    }

    /// Returns `true` if these bytes begin like those of a saved run. No JSON begins so.
    pub fn is_saved(bytes: &[u8]) -> bool {
        // The mark of gzip.
        bytes.starts_with(&[0x1f, 0x8b])
    }
}
