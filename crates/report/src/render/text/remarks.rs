//! Remarks that are needed to read the table of times.

use std::collections::BTreeSet;

use plimsoll_metrics::figure;

use super::{cell, main_columns};
use crate::contract::result::{ModelKind, RunResult};
use crate::contract::summary::{PERCENTILES, Summary};

/// Variance inflation from which the dependence of samples is told.
const DEPENDENT: f64 = 2.0;

/// Sentences below the table of times.
pub(crate) fn on_times(result: &RunResult) -> Vec<String> {
    let columns = main_columns(result);
    let mut remarks = dependence(columns[0].1);
    let empty: Vec<&str> =
        columns.iter().filter(|(_, summary)| summary.count == 0).map(|(name, _)| *name).collect();
    if !empty.is_empty() {
        remarks.push(format!("no samples of {}", empty.join(", ")));
    }
    let summaries = columns.iter().map(|(_, summary)| summary);
    if let Some(summary) =
        summaries.into_iter().find(|summary| summary.count > 0 && !summary.p_missing.is_empty())
    {
        let missing: Vec<String> =
            summary.p_missing.iter().map(|(name, reason)| format!("p{name} {reason}")).collect();
        remarks.push(format!("not shown: {}", missing.join("; ")));
    }
    if result.model.kind == ModelKind::Closed {
        let text = "* closed model, service time only: nothing was due, so these two say nothing about a user's wait";
        remarks.push(text.to_owned());
    }
    let censored = result.response_time.censored;
    if censored > 0 {
        remarks.push(format!(
            "≥ marks lower bounds: {} timed-out requests count as at least as long as they were waited for",
            figure::count(censored)
        ));
    }
    if let Some(stalled) = &result.in_stall {
        let (name, rest) = match result.model.kind {
            ModelKind::Open => ("response time", &stalled.response_time_without),
            ModelKind::Closed => ("service time", &stalled.service_time_without),
        };
        remarks.push(format!(
            "{} requests met a stall of the generator; {name} without them: p50 {}, p99 {}, max {}",
            figure::count(stalled.response_time.count),
            cell(rest, "50", rest.p.p50),
            cell(rest, "99", rest.p.p99),
            cell(rest, "max", rest.max),
        ));
    }
    let overflow = result.response_time.overflow;
    if overflow > 0 {
        remarks.push(format!("{} values are beyond 24 hours", figure::count(overflow)));
    }
    remarks
}

/// Returns a remark on samples that depend on each other, if they do so strongly, and the reasons why
/// percentiles have no interval.
fn dependence(summary: &Summary) -> Vec<String> {
    let mut remarks = Vec::new();
    let shown = PERCENTILES.iter().filter_map(|(name, _)| Some((name, summary.interval_of(name)?)));
    if let Some((name, worst)) =
        shown.max_by(|(_, a), (_, b)| a.vif.total_cmp(&b.vif)).filter(|(_, b)| b.vif >= DEPENDENT)
    {
        remarks.push(format!(
            "samples depend on each other: for p{name} {} say as much as {} independent ones",
            figure::count(summary.count),
            figure::count(worst.effective_samples as u64),
        ));
    }
    let mut reasons = BTreeSet::new();
    for (name, reason) in &summary.interval_missing {
        // That of the percentile itself is told with it.
        if !summary.p_missing.contains_key(name) {
            reasons.insert(reason);
        }
    }
    remarks.extend(reasons.into_iter().map(|reason| format!("no interval: {reason}")));
    remarks
}
