//! Results in every format.

pub(crate) mod csv;
pub(crate) mod document;
pub(crate) mod format;
mod hgrm;
mod hlog;
pub mod html;
pub(crate) mod junit;
mod k6;
pub(crate) mod layout;
pub(crate) mod markdown;
pub(crate) mod ndjson;
pub(crate) mod text;

use std::io;

use self::format::{Format, NoHistograms};
use crate::contract::result::RunResult;
use crate::saved::SavedRun;

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
    /// Tables keep to the columns, too: they leave figures out and shorten names. Without it nothing is cut.
    pub fits: bool,
}

impl Style {
    /// ASCII without colours, in 100 columns.
    pub const PLAIN: Self = Self { color: false, unicode: false, width: 100, fits: false };
}

/// Writes a result.
///
/// # Errors
/// Errors of the writer, and [`NoHistograms`] for formats that are made of histograms.
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
/// Errors of the writer, and [`NoHistograms`] if the run was saved without histograms.
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
pub(crate) fn write_json(value: &impl serde::Serialize, out: &mut dyn io::Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    out.write_all(b"\n")
}
