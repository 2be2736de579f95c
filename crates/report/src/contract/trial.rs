//! The figures of one of several runs that are compared with each other: trials of a search, levels of a
//! sweep.

use std::collections::BTreeMap;

use plimsoll_core::figure;
use plimsoll_metrics::course::mean_occupancy;
use plimsoll_metrics::{Model, RunRecord};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Summary;
use crate::build::assembly;
use crate::contract::result::Finding;
use crate::contract::watched::WatchedResult;

/// The figures of one of several runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialFigures {
    /// Length of the measured part in seconds.
    pub measured_s: f64,
    /// Whole responses per second.
    pub achieved_per_s: f64,
    /// Mean number of requests in flight or waiting for a connection: by the times that they took, or, where
    /// many were begun before the measured part or end after it, by the counts in it.
    pub in_flight: f64,
    /// Median of the response time in the open model, of the service time in the closed one, in nanoseconds;
    /// null with too few samples.
    pub p50: Option<u64>,
    /// See p50.
    pub p90: Option<u64>,
    /// See p50.
    pub p99: Option<u64>,
    /// See p50.
    pub p99_9: Option<u64>,
    /// Reasons why percentiles are null, by their names; empty in older results.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub p_missing: BTreeMap<String, String>,
    /// Requests that failed or timed out by those that ended.
    pub error_rate: f64,
    /// Responses by status code; empty in older results.
    #[serde(default)]
    pub statuses: BTreeMap<String, u64>,
    /// Failed requests by class; empty in older results.
    #[serde(default)]
    pub errors: BTreeMap<String, u64>,
    /// Requests that timed out; 0 in older results.
    #[serde(default)]
    pub timed_out: u64,
    /// Connections that it opened.
    #[serde(default)]
    pub connections_opened: u64,
    /// Connections that it had from the run before.
    #[serde(default)]
    pub connections_kept: u64,
    /// The factor that limited it: target, generator, network, connection_limit, none or unknown.
    pub limited_by: String,
    /// Findings about the instrument.
    pub findings: Vec<Finding>,
    /// The servers whose processes were watched; omitted if there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watched: Vec<WatchedResult>,
}

impl TrialFigures {
    /// The figures of a run.
    pub fn new(record: &RunRecord) -> Self {
        let total = &record.total;
        let (times, censored) = match record.model {
            Model::Open => (&total.response_time, total.censored_response),
            Model::Closed => (&total.service_time, total.censored_service),
        };
        let Summary { p: percentiles, p_missing, count, .. } = Summary::new(times, censored);
        let (bad, ended) = (total.failed + total.timed_out, total.ok + total.failed + total.timed_out);
        let seconds = record.duration.as_secs_f64();
        let verdict = &record.verdict;
        Self {
            measured_s: seconds,
            achieved_per_s: record.completed_in_window as f64 / seconds.max(1e-9),
            in_flight: mean_occupancy(record),
            p50: percentiles.p50,
            p90: percentiles.p90,
            p99: percentiles.p99,
            p99_9: percentiles.p99_9,
            p_missing: why_missing(p_missing, count, record),
            error_rate: if ended == 0 { 0.0 } else { bad as f64 / ended as f64 },
            statuses: assembly::statuses(total),
            errors: assembly::by_class(&total.errors),
            timed_out: total.timed_out,
            connections_opened: record.connections.opened,
            connections_kept: record.connections.kept,
            limited_by: verdict.limited_by.what.name().to_owned(),
            findings: verdict.reasons.iter().chain(&verdict.warnings).map(Finding::of).collect(),
            watched: WatchedResult::all(record),
        }
    }

    /// Returns `true` if answers came in it, if only to requests of its lead-in.
    pub(crate) fn has_answers(&self) -> bool {
        self.achieved_per_s > 0.0 || self.statuses.values().any(|count| *count > 0)
    }

    /// Why one of its percentiles, or all of them, are not shown, in a few words; `None` if p99 is, or if the
    /// reason is not known.
    pub(crate) fn why_not_shown(&self) -> Option<String> {
        let names = [("p50", "50", self.p50), ("p90", "90", self.p90), ("p99", "99", self.p99)];
        let (name, key, _) = names.into_iter().find(|(.., value)| value.is_none())?;
        self.p_missing.get(key).map(|reason| format!("{name} not shown: {reason}"))
    }

    /// Returns `true` if it had requests, and all of them failed by other than being late: a lower rate makes
    /// none of them good.
    pub(crate) fn is_refused(&self) -> bool {
        self.error_rate >= 1.0 && self.timed_out == 0
    }

    /// The finding that names the cause of the others, which have no hint of their own; the first one if none
    /// has a hint.
    pub fn cause(&self) -> Option<&Finding> {
        self.findings.iter().find(|found| !found.hint.is_empty()).or(self.findings.first())
    }

    /// Heads of the columns that [`cells`](Self::cells) fills.
    pub(crate) const HEADS: [&str; 6] = ["answered/s", "in flight", "p50", "p90", "p99", "errors"];

    /// The figures for people.
    pub(crate) fn cells(&self) -> Vec<String> {
        let time = |value: Option<u64>| value.map_or("-".to_owned(), |value| figure::nanos_f64(value as f64));
        let mut cells = vec![figure::per_second(self.achieved_per_s), format!("{:.1}", self.in_flight)];
        cells.extend([self.p50, self.p90, self.p99].map(time));
        cells.push(figure::share(self.error_rate));
        cells
    }

    /// Heads of the columns that [`csv`](Self::csv) fills.
    pub(crate) const CSV_HEADS: &str =
        "measured_s,achieved_per_s,in_flight,p50_ns,p90_ns,p99_ns,p99_9_ns,error_rate,limited_by";

    /// The figures as a part of a line of CSV.
    pub(crate) fn csv(&self) -> String {
        let Self { measured_s, achieved_per_s, in_flight, error_rate, limited_by, .. } = self;
        let times = [self.p50, self.p90, self.p99, self.p99_9];
        let [p50, p90, p99, p99_9] = times.map(|time| time.map(|time| time.to_string()).unwrap_or_default());
        format!(
            "{measured_s},{achieved_per_s},{in_flight},{p50},{p90},{p99},{p99_9},{error_rate},{limited_by}"
        )
    }
}

/// Reasons why percentiles are missing. Where no request of the measured part ended well, its answers are
/// those to requests of the lead-in: the target was that far behind.
fn why_missing(
    mut missing: BTreeMap<String, String>,
    count: u64,
    record: &RunRecord,
) -> BTreeMap<String, String> {
    if count == 0 {
        let total = &record.total;
        let reason = match record.completed_in_window {
            _ if total.failed > 0 => "no request ended well".to_owned(),
            0 => "no answers".to_owned(),
            earlier => format!(
                "no request that was due in it was answered; {} answers were to requests of its lead-in",
                figure::count(earlier)
            ),
        };
        missing.values_mut().for_each(|old| old.clone_from(&reason));
    }
    missing
}
