//! Percentiles of response and service time, and how values are spread.

use plimsoll_metrics::figure;

use super::markup::{Cell, Markup, Unit, pointer};
use crate::build::distribution;
use crate::contract::result::{ModelKind, RunResult};
use crate::contract::summary::{PERCENTILES, Summary};
use crate::render::text;

/// Rows of the table of the distribution at most.
const DISTRIBUTION_ROWS: usize = 12;

/// The time that the model of a run is about: its name, its key in the result, and its figures.
pub(super) fn main_time(result: &RunResult) -> (&'static str, &'static str, &Summary) {
    match result.model.kind {
        ModelKind::Open => ("response time", "response_time", &result.response_time),
        ModelKind::Closed => ("service time", "service_time", &result.service_time),
    }
}

/// A percentile, by its name in `p`, or `min`, `mean`, `stdev` or `max`, of the summary with this pointer.
pub(super) fn figure_of(summary: &Summary, key: &str, name: &str) -> Cell {
    let percentile = PERCENTILES.iter().position(|(known, _)| *known == name);
    let value = match (percentile, name) {
        (Some(index), _) => summary.p.values()[index],
        (None, "min") => summary.min,
        (None, "mean") => summary.mean,
        (None, "stdev") => summary.stdev,
        _ => summary.max,
    };
    let at = if percentile.is_some() { pointer(&["p", name]) } else { pointer(&[name]) };
    Cell::figure(text::cell(summary, name, value), format!("/{key}{at}"), Unit::Nanos)
}

/// The percentiles of the three times side by side, with the intervals of response and service time.
pub(super) fn percentiles(page: &mut Markup, result: &RunResult) {
    let response = ("response time", "response_time", &result.response_time);
    let service = ("service time", "service_time", &result.service_time);
    let open = result.model.kind == ModelKind::Open;
    let (first, second) = if open { (response, service) } else { (service, response) };
    let lag = ("start lag", "start_lag", &result.start_lag);
    let interval = |summary: &Summary, name: &str| {
        Cell::text(
            summary
                .interval_of(name)
                .map_or_else(String::new, crate::contract::interval::PercentileBounds::text),
        )
        .with_class("interval")
    };
    let names = PERCENTILES.iter().map(|(name, _)| (format!("p{name}"), *name));
    let others = ["max", "mean", "stdev", "min"].map(|name| (name.to_owned(), name));
    let rows: Vec<Vec<Cell>> = names
        .chain(others)
        .map(|(label, name)| {
            vec![
                Cell::text(label),
                figure_of(first.2, first.1, name),
                interval(first.2, name),
                figure_of(second.2, second.1, name),
                interval(second.2, name),
                figure_of(lag.2, lag.1, name),
            ]
        })
        .collect();
    let star = if open { "" } else { "*" };
    let (second, lag) = (format!("{}{star}", second.0), format!("{}{star}", lag.0));
    page.table("Percentiles", &["", first.0, "95 % interval", &second, "95 % interval", &lag], &rows);
    page.within("ul", "notes", |page| {
        text::remarks_on_times(result).iter().for_each(|remark| page.element("li", "", remark));
    });
}

/// Writes the distribution of the time that the model is about.
pub(super) fn distribution(page: &mut Markup, result: &RunResult) {
    let (name, _, summary) = main_time(result);
    let rows = distribution::rows(&summary.distribution, DISTRIBUTION_ROWS);
    let Some(largest) = rows.iter().map(|row| row.count).max() else {
        page.element("p", "empty", &format!("No request has a {name}: none ended well or timed out."));
        return;
    };
    page.open("details", &[]);
    page.element("summary", "", &format!("Table: {name} of {} requests", figure::count(summary.count)));
    page.open(
        "div",
        &[("class", "table"), ("role", "group"), ("tabindex", "0"), ("aria-label", "Distribution")],
    );
    page.open("table", &[("class", "distribution")]);
    page.open("thead", &[]);
    page.within("tr", "", |page| {
        [name, "", "requests", "share"].iter().for_each(|title| page.column(title));
    });
    page.close("thead");
    page.within("tbody", "", |page| {
        for row in &rows {
            page.open("tr", &[]);
            page.open("th", &[("scope", "row")]);
            page.text(&text::range(row));
            page.close("th");
            page.open("td", &[]);
            page.bar(row.count as f64 / largest as f64);
            page.close("td");
            page.element("td", "", &figure::count(row.count));
            page.element("td", "", &figure::share(row.count as f64 / summary.count as f64));
            page.close("tr");
        }
    });
    page.close("table");
    page.close("div");
    page.close("details");
}

/// Times that are not of every request.
pub(super) fn other_times(page: &mut Markup, result: &RunResult) {
    let times = [
        ("first byte", "first_byte_time", Some(&result.first_byte_time)),
        ("connect", "connect_time", Some(&result.connect_time)),
        ("TLS handshake", "tls_time", Some(&result.tls_time)),
        ("PING", "http2/ping_time", result.http2.as_ref().map(|http2| &http2.ping_time)),
        ("failed requests", "failed_response_time", Some(&result.failed_response_time)),
    ];
    let rows: Vec<Vec<Cell>> = times
        .into_iter()
        .filter_map(|(label, key, summary)| Some((label, key, summary?)))
        .filter(|(_, _, summary)| summary.count > 0)
        .map(|(label, key, summary)| {
            let count = Cell::figure(figure::count(summary.count), format!("/{key}/count"), Unit::Count);
            let mut row = vec![Cell::text(label), count];
            row.extend(["50", "90", "99", "max"].map(|name| figure_of(summary, key, name)));
            row
        })
        .collect();
    if !rows.is_empty() {
        page.table("Other times", &["", "count", "p50", "p90", "p99", "max"], &rows);
    }
}

/// Seconds as a duration for people, with their pointer.
pub(super) fn seconds(value: f64, at: &str) -> Cell {
    let text = if value == 0.0 { "0 s".to_owned() } else { text::seconds(value) };
    Cell::figure(text, at, Unit::Seconds)
}
