//! An interval log of HdrHistogram (version 1.3): times over time, and those of each step.
//!
//! Lines without a tag have the time that the model is about, response time in the open model and service
//! time in the closed one, of all steps in each slice of the measured part; those of the drain belong to it,
//! so that these lines add up to the histogram of the run. Lines with a tag have the rest:
//!
//! | tag | what |
//! |---|---|
//! | `warmup` | the same time, in the warm-up |
//! | `service_time`, `response_time` | the other time, in each slice |
//! | `SCENARIO/STEP`, `SCENARIO/STEP:service_time`… | both times of a step, over the whole measured part |
//!
//! Histograms are in nanoseconds, the largest values beside them in milliseconds, as HdrHistogram's own
//! writer has it.

use std::fmt::Write as _;

use plimsoll_core::Nanos;
use plimsoll_histogram::{Delta, Histogram, hdr};

use crate::build::assembly;
use crate::contract::result::ModelKind;
use crate::render::hgrm::MILLISECOND;
use crate::{SavedRun, SavedSlice};

struct Line {
    tag: Option<String>,
    /// Since the start of the run.
    at: Nanos,
    length: Nanos,
    max: u64,
    values: String,
}

/// The log of a run that has histograms.
pub(crate) fn log(run: &SavedRun) -> String {
    let result = &run.result;
    let start = result.run.started_at_unix_ns as f64 / 1e9;
    let mut out = String::from("#[Histogram log format version 1.3]\n");
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(out, "#[Written by {} {}]", result.tool.name, result.tool.version);
    let _ = writeln!(out, "#[StartTime: {start:.3} (seconds since epoch), {}]", result.run.started_at);
    let _ = writeln!(out, "#[BaseTime: {start:.3} (seconds since epoch)]");
    out.push_str(
        "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
    );
    let mut lines: Vec<Line> =
        run.slices.iter().flat_map(|slice| of_slice(slice, result.model.kind)).collect();
    lines.extend(of_steps(run));
    // Readers expect ascending times.
    lines.sort_by_key(|line| line.at);
    for Line { tag, at, length, max, values } in lines {
        if let Some(tag) = tag {
            let _ = write!(out, "Tag={tag},");
        }
        let (at, length, max) = (at.as_secs_f64(), length.as_secs_f64(), max as f64 / MILLISECOND);
        let _ = writeln!(out, "{at:.3},{length:.3},{max:.3},{values}");
    }
    out
}

/// Both times of a slice; empty ones have no line.
fn of_slice(slice: &SavedSlice, kind: ModelKind) -> impl Iterator<Item = Line> {
    let tally = &slice.tally;
    let (response, service) =
        ((&tally.response_time, "response_time"), (&tally.service_time, "service_time"));
    let [(main, _), (other, name)] = match kind {
        ModelKind::Open => [response, service],
        ModelKind::Closed => [service, response],
    };
    let main_tag = slice.warmup.then(|| "warmup".to_owned());
    // The secondary time of the warm-up is not exported.
    let other = (!slice.warmup).then(|| (Some(name.to_owned()), other));
    let line = |(tag, delta): (Option<String>, &Delta)| {
        (!delta.is_empty()).then(|| Line {
            tag,
            at: slice.at - slice.length,
            length: slice.length,
            max: delta.values().last().map_or(0, |(value, _)| value),
            values: hdr::text(delta.values()),
        })
    };
    [Some((main_tag, main)), other].into_iter().flatten().filter_map(line).collect::<Vec<_>>().into_iter()
}

/// Both times of every step.
fn of_steps(run: &SavedRun) -> Vec<Line> {
    let (at, length) = (run.result.warmup_s, run.result.duration_s);
    let (at, length) = (Nanos::from_secs_f64(at), Nanos::from_secs_f64(length));
    let mut lines = Vec::new();
    for step in &run.steps {
        let scenario = if step.scenario.is_empty() { assembly::DEFAULT_SCENARIO } else { &step.scenario };
        let name = tag(&format!("{scenario}/{}", step.name));
        let (response, service) = match run.result.model.kind {
            ModelKind::Open => (name.clone(), format!("{name}:service_time")),
            ModelKind::Closed => (format!("{name}:response_time"), name.clone()),
        };
        let mut add = |tag: String, times: &Histogram| {
            if let Some(max) = times.max() {
                let values = hdr::text(times.buckets().map(|bucket| (bucket.highest, bucket.count)));
                lines.push(Line { tag: Some(tag), at, length, max, values });
            }
        };
        add(response, &step.response_time);
        add(service, &step.service_time);
    }
    lines
}

/// A tag can have neither commas nor white space.
fn tag(name: &str) -> String {
    name.chars().map(|c| if c == ',' || c.is_whitespace() || c.is_control() { '_' } else { c }).collect()
}
