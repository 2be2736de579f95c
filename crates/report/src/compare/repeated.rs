//! Several runs of one plan: each of them, and how their figures differ from run to run.

use std::fmt::Write as _;
use std::io;

use plimsoll_metrics::threshold::TimeKind;
use plimsoll_statistics::{BetweenRuns, RunEstimate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::build::headline::together;
use crate::compare::measure::{Measure, TimeFigure};
use crate::contract::result::{OutcomeResult, RunResult, Thresholds, Tool};
use crate::contract::summary::PERCENTILES;
use crate::render::csv;
use crate::render::text::repeated as text;
use crate::{Style, TableFormat};

/// The version of the contract of repeated runs: raised when a field changes its meaning or goes.
pub const REPEATED_VERSION: u32 = 1;

/// Standard errors on each side of an estimate that make a 95 % interval of it (normal distribution).
const ERRORS_OF_95: f64 = 1.96;

/// Several runs of one plan, each with new connections and a seed of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RepeatedResult {
    /// Version of this contract.
    pub schema_version: u32,
    /// The program that made the runs.
    pub tool: Tool,
    /// Number of runs asked for; fewer were made if a signal ended them.
    pub runs_wanted: u64,
    /// Verdict on all runs together.
    pub verdict: RepeatedVerdict,
    /// Variation of figures between the runs that went on to their planned end.
    pub between_runs: Vec<BetweenRunsResult>,
    /// The runs, in their order, each as if it were alone.
    pub runs: Vec<RunResult>,
}

/// Verdict on several runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RepeatedVerdict {
    /// The worst outcome of a run.
    #[serde(default)]
    pub outcome: OutcomeResult,
    /// The worst outcome in one line for people, without its first word.
    #[serde(default)]
    pub summary: String,
    /// True if the measurement of every run is valid.
    pub valid: bool,
    /// The runs whose figures cannot, counted from 1.
    pub invalid_runs: Vec<u64>,
    /// The runs that did not go on to their planned end, counted from 1: they are not in between_runs.
    pub cut_short: Vec<u64>,
    /// Results of the thresholds of the plan over all runs.
    pub thresholds: Thresholds,
}

/// Variation of one figure from run to run: the variance of the runs' values is that between the runs plus
/// that within them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BetweenRunsResult {
    /// The figure: as in `compare --metric`, with the kind of time.
    pub metric: String,
    /// Unit of all values: "ns" or "per_s".
    pub unit: String,
    /// Run by run, without those that were cut short; null where a run has no value.
    pub values: Vec<Option<f64>>,
    /// Mean of the runs; null if a run has no value, as all that follow.
    pub mean: Option<f64>,
    /// Standard deviation of the runs' values; null for one run.
    pub spread: Option<f64>,
    /// Standard error within a run, from the intervals of its percentiles: what `spread` would be if the runs
    /// differed by chance alone. Null for a rate, and where a run has no such interval.
    pub within: Option<f64>,
    /// The rest of `spread` without `within`: it differs from run to run, and longer runs do not average it
    /// out. Null where one of these is.
    pub between: Option<f64>,
    /// Lower end of the 95 % interval of the mean, by Student's t over the runs; null below 5 runs.
    pub low: Option<f64>,
    /// Upper end of it.
    pub high: Option<f64>,
    /// Reason why something is null; null if nothing is.
    pub reason: Option<String>,
}

impl RepeatedResult {
    /// Sums up runs of the same plan.
    pub fn new(tool: Tool, runs_wanted: u64, runs: Vec<RunResult>) -> Self {
        let numbers = |chosen: fn(&RunResult) -> bool| -> Vec<u64> {
            (1..).zip(&runs).filter(|(_, run)| chosen(run)).map(|(number, _)| number).collect()
        };
        let invalid_runs = numbers(|run| !run.verdict.valid);
        let is = |state: Thresholds| runs.iter().any(|run| run.verdict.thresholds == state);
        let thresholds = match (is(Thresholds::Fail), is(Thresholds::Pass)) {
            (true, _) => Thresholds::Fail,
            (false, true) => Thresholds::Pass,
            (false, false) => Thresholds::None,
        };
        let (outcome, summary) = together(runs.iter());
        let verdict = RepeatedVerdict {
            outcome,
            summary,
            valid: invalid_runs.is_empty() && !runs.is_empty(),
            invalid_runs,
            cut_short: numbers(is_cut_short),
            thresholds,
        };
        let whole: Vec<&RunResult> = runs.iter().filter(|run| !is_cut_short(run)).collect();
        let between_runs = measures().map(|measure| BetweenRunsResult::of(measure, &whole)).collect();
        Self { schema_version: REPEATED_VERSION, tool, runs_wanted, verdict, between_runs, runs }
    }
}

/// The figures whose differences are reported: half and the slowest hundredth of both times, and the rate.
fn measures() -> impl Iterator<Item = Measure> {
    let percentile = |kind, name| match Measure::percentile(name) {
        Measure::Time(_, figure) => Measure::Time(Some(kind), figure),
        other => other,
    };
    let times = [TimeKind::Response, TimeKind::Service].into_iter();
    times.flat_map(move |kind| ["50", "99"].map(|name| percentile(kind, name))).chain([Measure::Rate])
}

/// Returns `true` if a run ended before its planned end: its figures are of another length.
fn is_cut_short(result: &RunResult) -> bool {
    let run = &result.run;
    run.interrupted_by_signal.is_some() || run.ended_by_threshold.is_some() || run.stopped_by.is_some()
}

impl BetweenRunsResult {
    fn of(measure: Measure, runs: &[&RunResult]) -> Self {
        let found: Vec<Result<f64, String>> = runs.iter().map(|run| measure.of(run)).collect();
        let errors: Option<Vec<f64>> = runs.iter().map(|run| standard_error(measure, run)).collect();
        let missing = (1..).zip(&found).find_map(|(number, value)| {
            value.as_ref().err().map(|why| format!("whole run {number} has none: {why}"))
        });
        let values: Vec<Option<f64>> = found.into_iter().map(Result::ok).collect();
        let known: Option<Vec<f64>> = values.iter().copied().collect();
        let estimates: Vec<RunEstimate> = known
            .unwrap_or_default()
            .into_iter()
            .enumerate()
            .map(|(at, value)| RunEstimate {
                value,
                standard_error: errors.as_ref().and_then(|errors| errors.get(at)).copied().unwrap_or(0.0),
            })
            .collect();
        let summary = BetweenRuns::of(&estimates);
        let has_errors = errors.is_some();
        let unknown_within = || match measure {
            Measure::Time(..) => "a run has no interval of it".to_owned(),
            _ => "what it varies within a run is not estimated".to_owned(),
        };
        let reason = missing
            .or_else(|| summary.is_none().then(|| "no run finished".to_owned()))
            .or_else(|| summary.and_then(|summary| summary.unknown()))
            .or_else(|| (!has_errors).then(unknown_within));
        Self {
            metric: measure.to_string(),
            unit: measure.unit().to_owned(),
            values,
            mean: summary.map(|summary| summary.mean),
            spread: summary.and_then(|summary| summary.spread),
            within: summary.filter(|_| has_errors).map(|summary| summary.within),
            between: summary.filter(|_| has_errors).and_then(|summary| summary.between),
            // Neither a time nor a rate can be less than zero.
            low: summary.and_then(|summary| summary.interval).map(|interval| interval.0.max(0.0)),
            high: summary.and_then(|summary| summary.interval).map(|interval| interval.1),
            reason,
        }
    }
}

/// Returns the standard error of a percentile in one run, from the width of its 95 % interval.
fn standard_error(measure: Measure, run: &RunResult) -> Option<f64> {
    let Measure::Time(kind, TimeFigure::Percentile(index)) = measure else { return None };
    let summary = if kind == Some(TimeKind::Service) { &run.service_time } else { &run.response_time };
    let bounds = summary.interval.get(PERCENTILES[index].0)?.as_ref()?;
    let width = bounds.high?.checked_sub(bounds.low?)?;
    Some(width as f64 / 2.0 / ERRORS_OF_95)
}

/// Writes repeated runs.
///
/// # Errors
/// The errors of the writer.
pub fn render_repeated(
    result: &RepeatedResult,
    format: TableFormat,
    style: &Style,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    match format {
        TableFormat::Text => out.write_all(text::page(result, style).as_bytes()),
        TableFormat::Json => {
            serde_json::to_writer_pretty(&mut *out, result)?;
            out.write_all(b"\n")
        }
        TableFormat::Csv => out.write_all(intervals(result).as_bytes()),
    }
}

/// The intervals of all runs as one table, with the number of the run in front.
fn intervals(result: &RepeatedResult) -> String {
    let mut out = String::new();
    for (number, run) in (1..).zip(&result.runs) {
        let table = csv::intervals(run);
        let mut lines = table.lines();
        let head = lines.next().filter(|_| number == 1);
        // Writing to a String cannot fail.
        let _ = head.map_or(Ok(()), |head| writeln!(out, "run,{head}"));
        for line in lines {
            let _ = writeln!(out, "{number},{line}");
        }
    }
    out
}

/// The JSON Schema of [`RepeatedResult`], generated from its types.
pub fn schema_repeated() -> serde_json::Value {
    crate::contract::schema_of_written::<RepeatedResult>()
}
