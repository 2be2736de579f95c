//! The result of a suite: runs against one cluster, or one started for each, over values of parameters.

use std::collections::BTreeMap;
use std::io;

use plimsoll_core::figure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::build::headline::together;
use crate::contract::result::{ModelKind, OutcomeResult, RunResult, Tool};
use crate::contract::summary::Summary;
use crate::render::layout::{Emphasis, Page, Row};
use crate::saved::reading::{ReadError, of_kind};
use crate::{Style, TableFormat};

/// The version of this contract: raised when a field changes its meaning or goes, not when one is added. In
/// version 1 every run had a result.
pub const SUITE_SCHEMA_VERSION: u32 = 2;

/// The result of a suite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuiteResult {
    /// Version of this contract.
    pub schema_version: u32,
    /// The program that made it.
    pub tool: Tool,
    /// Name of the cluster.
    pub cluster: String,
    /// Name of the suite.
    pub suite: String,
    /// The parameters, in the order of the matrix.
    pub parameters: Vec<String>,
    /// The runs, in the order in which they were made.
    pub runs: Vec<SuiteRun>,
    /// True if all runs that the matrix asks for were made.
    pub complete: bool,
}

/// One run of a suite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuiteRun {
    /// The values of the parameters.
    pub values: BTreeMap<String, String>,
    /// Exit code of `cluster run` for it alone.
    pub exit_code: u8,
    /// Result, as `cluster run --output json` would have written it; null if the run could not be made.
    pub result: Option<RunResult>,
    /// Reason why it could not be made, line by line. Left away if it was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub error: Vec<String>,
}

impl SuiteResult {
    /// Reads a suite in JSON; `None` if it is of another kind.
    ///
    /// # Errors
    /// The text is no JSON, the result is not whole, or a later version wrote it.
    pub fn from_json(json: &[u8]) -> Result<Option<Self>, ReadError> {
        of_kind(json, SUITE_SCHEMA_VERSION, |mark| mark.suite.is_some())
    }

    /// The results of the runs that could be made, each with the values of its parameters for a name:
    /// `concurrency 128, profile balanced`.
    pub fn named_results(self) -> Vec<(String, RunResult)> {
        let Self { parameters, runs, .. } = self;
        let name = |values: &BTreeMap<String, String>| {
            let named = parameters.iter().filter_map(|name| Some(format!("{name} {}", values.get(name)?)));
            named.collect::<Vec<_>>().join(", ")
        };
        let named = |SuiteRun { values, result, .. }| Some((name(&values), result?));
        runs.into_iter().filter_map(named).collect()
    }
}

impl SuiteRun {
    /// Returns its outcome and its main figures on one line: `PASS, 812/s, p99 3.4 ms`.
    pub fn headline(&self) -> String {
        let Some(result) = &self.result else {
            let reason = self.error.first().map_or("no reason is known", String::as_str);
            return format!("{}, could not be made: {reason}", OutcomeResult::Fail.word());
        };
        let rate = result.rate.achieved_per_s.map(|rate| format!(", {}", figure::per_second(rate)));
        let records =
            records_per_s(result).map(|rate| format!(", {}", figure::per_second_of("records", rate)));
        let p99 = times(result).p.p99.map(|p99| format!(", p99 {}", figure::nanos_f64(p99 as f64)));
        let word = result.verdict.outcome.word();
        let [rate, records, p99] = [rate, records, p99].map(Option::unwrap_or_default);
        format!("{word}{rate}{records}{p99}")
    }
}

/// Writes a suite; as text and CSV it is the table of its runs.
///
/// # Errors
/// Errors of the writer.
pub fn render_suite(
    result: &SuiteResult,
    format: TableFormat,
    style: &Style,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    match format {
        TableFormat::Text => out.write_all(page(result, style).as_bytes()),
        TableFormat::Json => crate::render::write_json(result, out),
        TableFormat::Csv => out.write_all(csv(result).as_bytes()),
    }
}

/// The JSON Schema of [`SuiteResult`].
pub fn schema_suite() -> serde_json::Value {
    crate::contract::schema_of_written::<SuiteResult>()
}

/// Returns the times of a run: the response time in the open model, the service time in the closed one.
fn times(result: &RunResult) -> &Summary {
    match result.model.kind {
        ModelKind::Open => &result.response_time,
        ModelKind::Closed => &result.service_time,
    }
}

/// Returns the acknowledged records per second, where requests carry records.
fn records_per_s(result: &RunResult) -> Option<f64> {
    result.records.as_ref()?.acknowledged_per_s
}

/// Returns `true` if requests carry records in any of the runs, which then differ by these and not by
/// requests.
fn have_records(runs: &[SuiteRun]) -> bool {
    runs.iter().filter_map(|run| run.result.as_ref()).any(|result| result.records.is_some())
}

/// Returns the result of the checks of a run: `pass`, `INCONSISTENT`, or `-` where nothing was checked.
fn checked(result: &RunResult) -> &'static str {
    match &result.reconciliation {
        None => "-",
        Some(reconciliation) if reconciliation.consistent => "pass",
        Some(_) => "INCONSISTENT",
    }
}

fn page(result: &SuiteResult, style: &Style) -> String {
    let mut page = Page::new(style);
    let (outcome, summary) = of_runs(&result.runs);
    page.statement(Emphasis::of(outcome), outcome.word(), &format!("  {summary}"));
    let SuiteResult { tool, cluster, suite, parameters, runs, complete, .. } = result;
    page.heading(&format!("{} {} · {cluster}, suite {suite}", tool.name, tool.version));
    if let Some(first) = runs.iter().find_map(|run| run.result.as_ref()) {
        for line in &first.model.description {
            page.field("first run", line);
        }
    }
    if !complete {
        page.field("note", "interrupted: runs are missing");
    }
    page.blank();
    let mut heads: Vec<&str> = parameters.iter().map(String::as_str).collect();
    let has_records = have_records(runs);
    heads.push("answered/s");
    heads.extend(has_records.then_some("records/s"));
    heads.extend(["p50", "p95", "p99", "failed", "checks", "outcome"]);
    let rows = (1..).zip(runs).map(|(number, run)| row(number, parameters, run, has_records));
    let rows: Vec<Row> = rows.collect();
    page.table(&heads, &rows);
    for (number, run) in (1..).zip(runs) {
        if let Some((first, more)) = run.error.split_first() {
            page.field(&format!("run {number}"), &format!("could not be made: {first}"));
            more.iter().for_each(|line| page.field("", line));
        }
        let found = run.result.iter().flat_map(|result| &result.reconciliation);
        for finding in found.flat_map(|found| &found.findings).filter(|finding| !finding.passed) {
            page.field(&format!("run {number}"), &format!("{}: {}", finding.check, finding.said));
            finding.evidence.iter().for_each(|evidence| page.field("", evidence));
        }
    }
    page.blank();
    page.statement(Emphasis::of(outcome), outcome.word(), &format!("  {summary}"));
    page.finish()
}

/// Returns the outcome of the runs together, and a line about it. A run that could not be made has failed.
fn of_runs(runs: &[SuiteRun]) -> (OutcomeResult, String) {
    let (outcome, summary) = together(runs.iter().filter_map(|run| run.result.as_ref()));
    match runs.iter().filter(|run| run.result.is_none()).count() {
        0 => (outcome, summary),
        count if count == runs.len() => (OutcomeResult::Fail, "no run could be made".to_owned()),
        count => {
            (OutcomeResult::Fail, format!("{count} of {} runs could not be made; {summary}", runs.len()))
        }
    }
}

fn row(number: u32, parameters: &[String], run: &SuiteRun, has_records: bool) -> Row {
    let SuiteRun { values, result, .. } = run;
    let value = |name: &String| values.get(name).cloned().unwrap_or_default();
    let mut cells: Vec<String> = parameters.iter().map(value).collect();
    match result {
        Some(result) => {
            let times = times(result);
            let time = |(name, value): (&str, Option<u64>)| {
                let bound = if times.is_at_least(name) { "≥ " } else { "" };
                value.map_or("-".to_owned(), |value| format!("{bound}{}", figure::nanos_f64(value as f64)))
            };
            let rate = |rate: Option<f64>| rate.map_or("-".to_owned(), figure::per_second);
            cells.push(rate(result.rate.achieved_per_s));
            cells.extend(has_records.then(|| rate(records_per_s(result))));
            cells.extend([("50", times.p.p50), ("95", times.p.p95), ("99", times.p.p99)].map(time));
            cells.push(figure::count(result.accounting.failed.saturating_add(result.accounting.timed_out)));
            cells.push(checked(result).to_owned());
            cells.push(result.verdict.outcome.word().to_owned());
        }
        None => {
            cells.extend(std::iter::repeat_n("-".to_owned(), 6 + usize::from(has_records)));
            cells.push(OutcomeResult::Fail.word().to_owned());
        }
    }
    Row { label: format!("run {number}"), cells, note: String::new() }
}

fn csv(result: &SuiteResult) -> String {
    let quoted = |text: &str| match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    };
    let mut text = String::new();
    for name in &result.parameters {
        text.push_str(&format!("{},", quoted(name)));
    }
    text.push_str("run_id,achieved_per_s,p50_ns,p95_ns,p99_ns,ok,failed,timed_out,checks,valid,exit_code");
    text.push_str(",records_per_s\n");
    for SuiteRun { values, exit_code, result: run, .. } in &result.runs {
        for name in &result.parameters {
            text.push_str(&format!("{},", quoted(values.get(name).map_or("", String::as_str))));
        }
        let Some(run) = run else {
            text.push_str(&format!(",,,,,,,,,,{exit_code},\n"));
            continue;
        };
        let times = times(run);
        let time = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
        let [p50, p95, p99] = [times.p.p50, times.p.p95, times.p.p99].map(time);
        let [rate, records] = [run.rate.achieved_per_s, records_per_s(run)]
            .map(|rate| rate.map(|rate| rate.to_string()).unwrap_or_default());
        let accounting = &run.accounting;
        text.push_str(&format!(
            "{},{rate},{p50},{p95},{p99},{},{},{},{},{},{exit_code},{records}\n",
            run.run.id,
            accounting.ok,
            accounting.failed,
            accounting.timed_out,
            checked(run),
            run.verdict.valid,
        ));
    }
    text
}
