//! The times of requests: percentiles, the distribution, and remarks that are needed to read them.

use std::collections::BTreeSet;

use plimsoll_core::{Nanos, figure};
use plimsoll_metrics::{Accounting, NeverGood};

use super::{Column, Line, Row, Shown, Table, cell, count, figure_of};
use crate::build::distribution::{self, Bar};
use crate::contract::interval::PercentileBounds;
use crate::contract::result::{ModelKind, RunResult};
use crate::contract::summary::{LOW_PERCENTILES, PERCENTILES, Summary};

/// Variance inflation from which on the dependence of samples is reported.
const DEPENDENT: f64 = 2.0;
/// Rows of the distribution at most: the number that keeps a text on one screen.
const DISTRIBUTION_ROWS: usize = 12;

/// Figures of the times that are not of every request.
const OTHERS: [&str; 6] = ["min", "mean", "50", "90", "99", "max"];

/// A time of the request: its name, its pointer in the result, and its figures.
type Time<'a> = (&'static str, &'static str, &'a Summary);

/// The three times of the request in the order of their relevance to the model.
fn columns(result: &RunResult) -> [Time<'_>; 3] {
    let response = ("response time", "/response_time", &result.response_time);
    let service = ("service time", "/service_time", &result.service_time);
    let lag = ("start lag", "/start_lag", &result.start_lag);
    match result.model.kind {
        ModelKind::Open => [response, service, lag],
        ModelKind::Closed => [service, response, lag],
    }
}

/// The time that the model of a run is about.
pub(crate) fn main_time(result: &RunResult) -> Time<'_> {
    columns(result)[0]
}

/// The three times side by side, with the intervals of the percentiles.
pub(super) fn table(result: &RunResult) -> Table {
    let [first, second, lag] = columns(result);
    // Times that say nothing about a user's wait get a star, and a remark below the table.
    let star = if result.model.kind == ModelKind::Open { "" } else { "*" };
    let interval = |summary: &Summary, name: &str| {
        let text = summary.interval_of(name).map_or_else(String::new, PercentileBounds::text);
        Line::from(text).quiet()
    };
    let row = |label: String, name: &str, shown: Shown| {
        let of = |(_, at, summary): Time<'_>| Line::from(figure_of(summary, at, name));
        let (one, other) = (interval(first.2, name), interval(second.2, name));
        Row { cells: vec![label.into(), of(first), one, of(second), other, of(lag)], shown }
    };
    let percentile = |shown| move |(name, _): &(&'static str, f64)| (*name, shown);
    let low = LOW_PERCENTILES.iter().map(percentile(Shown::TextAndPage));
    let percentiles = low.chain(PERCENTILES.iter().map(percentile(Shown::Everywhere)));
    let percentiles = percentiles.map(|(name, shown)| row(format!("p{name}"), name, shown));
    let others = [
        ("max", Shown::Everywhere),
        ("mean", Shown::Everywhere),
        ("stdev", Shown::TextAndPage),
        ("within_stdev", Shown::TextAndPage),
    ];
    let others = others.map(|(name, shown)| {
        let label = if name == "within_stdev" { "± stdev" } else { name };
        row(label.to_owned(), name, shown)
    });
    let least = row("min".to_owned(), "min", Shown::TextAndPage);
    let column = |title: String, shown| Column { title, shown };
    Table {
        caption: "Percentiles".to_owned(),
        columns: vec![
            column(String::new(), Shown::Everywhere),
            column(first.0.to_owned(), Shown::Everywhere),
            column("95 % interval".to_owned(), Shown::Everywhere),
            column(format!("{}{star}", second.0), Shown::Everywhere),
            column("95 % interval".to_owned(), Shown::Page),
            column(format!("{}{star}", lag.0), Shown::Everywhere),
        ],
        rows: std::iter::once(least).chain(percentiles).chain(others).collect(),
        hint: String::new(),
    }
}

/// Times that are not of every request, or are a part of its service time.
pub(super) fn others(result: &RunResult) -> Table {
    let times = [
        ("first byte", "/first_byte_time", Some(&result.first_byte_time)),
        ("connect", "/connect_time", Some(&result.connect_time)),
        ("TLS", "/tls_time", Some(&result.tls_time)),
        ("PING", "/http2/ping_time", result.http2.as_ref().map(|http2| &http2.ping_time)),
        ("lag of messages", "/lag", result.lag.as_ref()),
        ("failed", "/failed_response_time", Some(&result.failed_response_time)),
    ];
    let known = times.into_iter().filter_map(|(label, at, summary)| Some((label, at, summary?)));
    let rows = known.filter(|(_, _, summary)| summary.count > 0).map(|(label, at, summary)| {
        let mut row = vec![label.into(), count(summary.count, format!("{at}/count")).into()];
        row.extend(OTHERS.map(|name| Line::from(figure_of(summary, at, name))));
        row
    });
    let mut rows: Vec<Vec<Line>> = rows.collect();
    // Behind the first byte.
    rows.splice(rows.len().min(1)..rows.len().min(1), reading(result));
    let heads =
        ["", "count", "min", "mean", "p50", "p90", "p99", "max"].map(|title| (title, Shown::TextAndPage));
    Table::new("Other times", heads, rows)
}

/// The time from the first byte of a response to its last: its mean, which is what the means of the two times
/// differ by, where both are of the same requests.
fn reading(result: &RunResult) -> Option<Vec<Line>> {
    let (whole, first) = (&result.service_time, &result.first_byte_time);
    let is_same = whole.count == first.count && whole.censored == 0;
    let mean = whole.mean.zip(first.mean).filter(|_| is_same)?;
    let mean = figure::nanos(Nanos(mean.0.saturating_sub(mean.1)));
    let cells = OTHERS.map(|name| Line::from(if name == "mean" { mean.as_str() } else { "" }));
    let known = ["response read".into(), count(whole.count, "/service_time/count").into()];
    Some(known.into_iter().chain(cells).collect())
}

/// The values of the time that the model is about, in ranges.
pub(crate) struct Distribution {
    /// Name of the time.
    pub(crate) name: &'static str,
    pub(crate) count: u64,
    pub(crate) rows: Vec<Bar>,
    /// The largest count of a row.
    pub(crate) largest: u64,
}

impl Distribution {
    pub(super) fn new(result: &RunResult) -> Self {
        let (name, _, summary) = main_time(result);
        let rows = distribution::rows(&summary.distribution, DISTRIBUTION_ROWS);
        let largest = rows.iter().map(|row| row.count).max().unwrap_or(0);
        Self { name, count: summary.count, rows, largest }
    }

    /// `response time of 8,399 requests`
    pub(crate) fn title(&self) -> String {
        format!("{} of {} requests", self.name, figure::count(self.count))
    }
}

/// Says which of these percentiles of the good answers, that are told, are none of what was due: as many
/// requests failed, were dropped or never started.
pub(crate) fn unreached(result: &RunResult, percentiles: &[&str]) -> Option<String> {
    let Accounting { failed, dropped, never_started, without_data, .. } = result.accounting;
    let lost = NeverGood { failed, dropped, never_started: never_started.saturating_sub(without_data) };
    let answered = result.response_time.count;
    let is_beyond = |name: &&&str| {
        let told = result.response_time.percentile(name).is_some();
        told && name.parse::<f64>().is_ok_and(|p| lost.is_beyond(p, answered))
    };
    let beyond: Vec<_> = percentiles.iter().filter(is_beyond).map(|name| format!("p{name}")).collect();
    if beyond.is_empty() {
        return None;
    }
    let lost = lost.why(answered.saturating_add(lost.sum()));
    let leave = if beyond.len() == 1 { "leaves" } else { "leave" };
    let beyond = beyond.join(", ");
    Some(format!(
        "these are of the good answers alone: of what was due, {lost}, more than {beyond} {leave} out"
    ))
}

/// Sentences below the table of times.
pub(super) fn remarks(result: &RunResult) -> Vec<String> {
    let columns = columns(result);
    let mut remarks = dependence(columns[0].2);
    remarks.extend(unreached(result, &PERCENTILES.map(|(name, _)| name)));
    let empty: Vec<&str> =
        columns.iter().filter(|(_, _, summary)| summary.count == 0).map(|(name, ..)| *name).collect();
    if !empty.is_empty() {
        remarks.push(format!("no samples of {}", empty.join(", ")));
    }
    let summaries = columns.iter().map(|(_, _, summary)| *summary);
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
            "≥ marks lower bounds: {} requests without an answer count as at least as long as they were waited for",
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
            cell(rest, "50"),
            cell(rest, "99"),
            cell(rest, "max"),
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
        // The reason for the percentile itself covers its interval.
        if !summary.p_missing.contains_key(name) {
            reasons.insert(reason);
        }
    }
    remarks.extend(reasons.into_iter().map(|reason| format!("no interval: {reason}")));
    remarks
}
