//! What a run measured: per-worker recording, exact merging, and the verdict on the instrument.
//!
//! Pure data: no clock, no socket, no lock. A worker owns one [`Recorder`] and gives it one [`Sample`] per
//! ended request; the run control merges the workers' [`StepRecord`]s and [`Interval`]s into one
//! [`RunRecord`], from which [`verdict`] says whether the numbers can be believed and `report` renders every
//! format.
#![forbid(unsafe_code)]

pub mod figure;
pub mod histogram;
pub mod interval;
pub mod record;
pub mod recorder;
pub mod verdict;

pub use histogram::{Histogram, samples_needed};
pub use interval::{IntervalMerger, Snapshot};
pub use record::{
    Accounting, Censored, ConnectionRecord, Http2Record, Interval, IterationRecord, Model, Peer, RateChange,
    RunRecord, Sample, Stall, SteeredBy, Steering, StepRecord, WorkerRecord,
};
pub use recorder::{Gauges, Recorder};
pub use verdict::{Reason, ReasonCode, Verdict, judge};
