//! One run result in, every format out.
//!
//! [`RunResult`] is the versioned result contract: plain data, made once from the record of a run and what
//! the caller knows about it ([`RunContext`]). Every format is derived from it by [`render`], so no format
//! can tell another story than the others. Nothing here reads a clock, the environment or a terminal: what a
//! terminal can show is an argument ([`Style`]).
#![forbid(unsafe_code)]

mod assembly;
pub mod calibration;
pub mod capacity;
pub mod comparison;
pub mod context;
mod csv;
mod distribution;
pub mod example;
pub mod fault;
mod format;
mod headline;
mod hgrm;
pub mod history;
mod hlog;
pub mod html;
pub mod interval;
mod junit;
mod k6;
mod layout;
pub mod machine;
mod markdown;
pub mod measure;
mod ndjson;
pub mod pace;
mod phase;
pub mod probe;
mod reading;
pub mod reconciliation;
pub mod records;
pub mod repeated;
pub mod result;
pub mod saved;
pub mod slices;
pub mod slow;
pub mod suite;
pub mod summary;
pub mod sweep;
mod text;
mod timestamp;
pub mod trial;
pub mod watched;

use std::io;

pub use calibration::{
    CALIBRATION_SCHEMA_VERSION, Calibration, CalibrationCell, CalibrationUse, LoadKind, schema_calibration,
};
pub use capacity::{CAPACITY_SCHEMA_VERSION, CapacityResult, render_capacity, schema_capacity};
pub use comparison::{Comparison, schema_comparison};
pub use context::{Host, ModelContext, Preflight, RunContext, TargetContext};
pub use format::{Format, NoHistograms, TableFormat};
pub use history::{History, schema_history};
pub use ndjson::schema_ndjson;
pub use reading::{ReadError, results_from_json};
pub use repeated::{RepeatedResult, render_repeated, schema_repeated};
pub use result::RunResult;
pub use saved::{SAVED_VERSION, SavedRun, SavedSlice, SavedStep};
pub use suite::{SUITE_SCHEMA_VERSION, SuiteResult, SuiteRun, render_suite, schema_suite};
pub use summary::Summary;
pub use sweep::{SWEEP_SCHEMA_VERSION, SweepResult, render_sweep, schema_sweep};
pub use timestamp::rfc3339;
pub use trial::TrialFigures;

/// The version of the result contract: raised when a field changes its meaning or goes, not when one is
/// added.
pub const SCHEMA_VERSION: u32 = 1;

/// Capabilities of the reader's terminal. Only [`Format::Summary`] and [`Format::Text`] use them, and colour
/// is never the only sign of anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Emphasis by ANSI colours.
    pub color: bool,
    /// Characters beyond ASCII: bars, `µ`, `≥`.
    pub unicode: bool,
    /// Columns to fill; long sentences are wrapped, figures are not.
    pub width: usize,
}

impl Style {
    /// ASCII without colours, in 100 columns.
    pub const PLAIN: Self = Self { color: false, unicode: false, width: 100 };
}

/// Writes a result.
///
/// # Errors
/// Those of the writer, and [`NoHistograms`] for formats that are made of them.
pub fn render(result: &RunResult, format: Format, style: &Style, out: &mut dyn io::Write) -> io::Result<()> {
    match format {
        Format::Summary => out.write_all(text::brief(result, style).as_bytes()),
        Format::Text => out.write_all(text::page(result, style).as_bytes()),
        Format::Json => write_json(result, out),
        Format::Csv => out.write_all(csv::intervals(result).as_bytes()),
        Format::Markdown => out.write_all(markdown::run(result).as_bytes()),
        Format::Junit => out.write_all(junit::report(result).as_bytes()),
        Format::Ndjson => ndjson::write(result, out),
        Format::K6 => write_json(&k6::summary(result), out),
        Format::Hgrm | Format::Hlog => Err(NoHistograms(format).into()),
    }
}

/// Writes a saved run, in the formats that are made of histograms, too.
///
/// # Errors
/// Those of the writer, and [`NoHistograms`] if the run was saved without them.
pub fn render_saved(
    run: &SavedRun,
    format: Format,
    style: &Style,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    match format {
        Format::Hgrm if run.has_histograms() => out.write_all(hgrm::spectrum(run).as_bytes()),
        Format::Hlog if run.has_histograms() => out.write_all(hlog::log(run).as_bytes()),
        _ => render(&run.result, format, style, out),
    }
}

/// One JSON object and the end of its last line.
fn write_json(value: &impl serde::Serialize, out: &mut dyn io::Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    out.write_all(b"\n")
}

/// The JSON Schema of [`RunResult`], generated from its types; descriptions are their documentation. It is
/// that of what is written: what is never left out is required, though results of earlier versions may lack
/// it.
pub fn schema_result() -> serde_json::Value {
    schema_of_written::<RunResult>()
}

/// The schema of a type as it is serialized.
fn schema_of_written<T: schemars::JsonSchema>() -> serde_json::Value {
    let settings = schemars::generate::SchemaSettings::default().for_serialize();
    settings.into_generator().into_root_schema_for::<T>().to_value()
}
