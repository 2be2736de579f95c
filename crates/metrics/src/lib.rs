//! The measurements of a run: per-worker recording, exact merging, and the verdict on the instrument.
//!
//! Pure data: no clock, no socket, no lock. A worker owns one [`Recorder`] and gives it one [`Sample`] per
//! ended request; the run control merges the workers' [`StepRecord`]s and [`Interval`]s into one
//! [`RunRecord`], from which [`verdict`] says whether the numbers can be believed and `report` renders every
//! format.
#![forbid(unsafe_code)]

pub mod course;
pub mod event_stream;
pub mod exemplar;
pub mod growing;
pub mod headline;
pub mod interval;
pub mod log;
mod never_good;
pub mod objective;
pub mod outline;
mod pace;
pub mod record;
pub mod recorder;
pub mod series;
pub mod slice;
mod standstill;
pub mod tally;
pub mod threshold;
pub mod verdict;
pub mod worker_status;
pub mod written;

pub use event_stream::{EVENT_TIME_LIMIT, EventStreamRecord, EventStreamSample, Goodput};
pub use exemplar::{Exemplar, Exemplars};
pub use growing::{Basis, GrowingRecord};
pub use headline::{Cause, Headline, RunFacts, RunOutcome, ThresholdFacts};
pub use interval::{IntervalDownsampler, IntervalMerger, Snapshot};
pub use log::{FailedExchange, Log, LogBatch, LogEntry, LogOptions, LogSink};
pub use never_good::NeverGood;
pub use objective::Objective;
pub use outline::{Awaited, Outline, PhaseOutline, ScenarioOutline};
pub use pace::{Pace, RateUnit};
pub use record::{
    AcceptQueue, Accounting, AddressChange, AnswerPause, AnswerTimes, Cell, ConnectionRecord, CoreUse,
    EarlyEnd, EndedBy, ErrorExample, FileUse, FoundBy, GroupLimits, HelperCpu, Http2Record, Http2Traffic,
    Interval, IterationRecord, LogRecord, LongCalls, MachineFacts, MachineInterval, MachineRecord,
    MemoryCourse, Model, NetworkUse, OtherUse, OwnSegments, Peer, PhaseMerger, PhaseRecord, ProcessEvent,
    ProcessUse, RATE_UNITS, RateChange, RunRecord, SERVER_TIMING, Sample, ScenarioInterval, ServerTiming,
    SlowRequest, Slowest, Stall, SteeredBy, Steering, StepRecord, TIMED_OUT, TargetProcess, ThreadUse,
    Throttling, WatchedProcess, WatchedUse, WebSocketRecord, WorkerRecord, timing_words,
};
pub use recorder::{Gauges, Recorder};
pub use series::{
    Distribution, MetricRecord, MetricSpec, MetricSum, Series, SeriesKind, TaggedSeries, UnfitExample,
};
pub use slice::{Slice, Slicer, Timeline, TimelineDownsampler};
pub use standstill::Standstill;
pub use tally::Tally;
pub use threshold::{
    OwnLag, Threshold, ThresholdError, ThresholdResult, ThresholdSpec, ThresholdWatch, judge_thresholds,
};
pub use verdict::{Claim, Limitation, LimitedBy, Reason, ReasonCode, Verdict, judge};
pub use worker_status::{ResponseFacts, WorkerStatus};
