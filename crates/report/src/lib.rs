//! One run result in, every format out.
//!
//! [`RunResult`] is the versioned result contract: plain data, made once from the record of a run and the
//! caller's knowledge about it ([`RunContext`]). Every format is derived from it by [`render()`], so no
//! format can contradict the others. Nothing here reads a clock, the environment or a terminal:
//! the abilities of a terminal are an argument ([`Style`]).
//!
//! `contract` has the types of results with their schemas, `build` makes a result from a record, `saved`
//! reads and writes saved runs, `evidence` makes a result again from what it was made of, `compare`
//! compares runs, and `render` writes all of them.
#![forbid(unsafe_code)]

mod build;
mod compare;
mod contract;
pub mod evidence;
mod render;
pub mod saved;

pub use build::{capacity_search, fault, level_sweep, trial_run};
pub use compare::comparison::{self, Comparison, schema_comparison};
pub use compare::history::{self, History, schema_history};
pub use compare::interleaved;
pub use compare::measure;
pub use compare::repeated::{self, RepeatedResult, render_repeated, schema_repeated};
pub use contract::calibration::{
    self, CALIBRATION_SCHEMA_VERSION, Calibration, CalibrationCell, CalibrationUse, LoadKind,
    schema_calibration,
};
pub use contract::capacity::{self, CAPACITY_SCHEMA_VERSION, CapacityResult, schema_capacity};
pub use contract::context::{self, Host, ModelContext, OnceResult, Preflight, RunContext, TargetContext};
pub use contract::result::{self, RunResult};
pub use contract::searched::{self, Searched};
pub use contract::suite::{self, SUITE_SCHEMA_VERSION, SuiteResult, SuiteRun, render_suite, schema_suite};
pub use contract::summary::{self, Summary};
pub use contract::sweep::{self, SWEEP_SCHEMA_VERSION, SweepResult, schema_sweep};
pub use contract::timestamp::rfc3339;
pub use contract::trial::{self, TrialFigures};
pub use contract::{
    SCHEMA_VERSION, agent, event_streams, example, interval, machine, metric, phase, probe, reconciliation,
    records, schema_result, slices, slow, traffic, watched,
};
pub use render::format::{Format, NoHistograms, NotOfSearches, TableFormat};
pub use render::html;
pub use render::ndjson::schema_ndjson;
pub use render::{Style, render, render_saved};
pub use saved::reading::{ReadError, results_from_json};
pub use saved::{FleetShare, SAVED_VERSION, SavedRun, SavedSlice, SavedStep};
