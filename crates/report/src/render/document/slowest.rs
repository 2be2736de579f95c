//! The slowest requests, with what finds them at the server.

use plimsoll_metrics::timing_words;

use super::{Line, Shown, Span, Table, Unit, length, nanos};
use crate::contract::context::TRACE_ID;
use crate::contract::result::{ModelKind, RunResult, StepResult};
use crate::contract::slowest::SlowRequestResult;

/// Requests that are shown, of all steps together.
const SHOWN: usize = 5;
/// Column of the server's own times.
const SERVER: usize = 6;

/// The slowest requests of all steps, the slowest one first.
pub(super) fn table(result: &RunResult) -> Table {
    let of_step = |(number, step): (usize, &StepResult)| {
        let all = step.slowest.iter().enumerate();
        all.map(|(place, _)| (number, place)).collect::<Vec<_>>()
    };
    let mut all: Vec<(usize, usize)> = result.by_step.iter().enumerate().flat_map(of_step).collect();
    let request = |(step, place): (usize, usize)| &result.by_step[step].slowest[place];
    all.sort_by_key(|at| std::cmp::Reverse(request(*at).response_time));
    all.truncate(SHOWN);
    let is_traced = all.iter().any(|at| request(*at).trace_id.is_some());
    let is_timed = all.iter().any(|at| !request(*at).server_timing.is_empty());
    let rows = all.into_iter().map(|at| {
        let mut row =
            row(result, &result.by_step[at.0], &format!("/by_step/{}/slowest/{}", at.0, at.1), request(at));
        if !is_timed {
            row.remove(SERVER);
        }
        if !is_traced {
            row.pop();
        }
        row
    });
    let mut columns = vec![
        ("step", Shown::Everywhere),
        ("due at", Shown::Everywhere),
        (time_name(result), Shown::Everywhere),
        ("first byte after", Shown::Page),
        ("answer", Shown::Everywhere),
        ("worker", Shown::Page),
    ];
    if is_timed {
        columns.insert(SERVER, ("its server", Shown::Everywhere));
    }
    if is_traced {
        columns.push(("trace", Shown::Everywhere));
    }
    Table::new("The slowest requests", columns, rows)
}

/// A response time counts from when a request was due, and requests of the closed model are never due.
const fn time_name(result: &RunResult) -> &'static str {
    match result.model.kind {
        ModelKind::Open => "response",
        ModelKind::Closed => "service",
    }
}

fn row(result: &RunResult, step: &StepResult, at: &str, request: &SlowRequestResult) -> Vec<Line> {
    let time = match (result.model.kind, request.service_time) {
        (ModelKind::Closed, Some(service)) => nanos(service, format!("{at}/service_time")),
        _ => nanos(request.response_time, format!("{at}/response_time")),
    };
    let first_byte = request.first_byte_time.map(|time| nanos(time, format!("{at}/first_byte_time")));
    let answer = match (request.status, &request.failure) {
        (Some(status), _) => Span::figure(status.to_string(), format!("{at}/status"), Unit::Text),
        (None, Some(failure)) => Span::figure(failure.replace('_', " "), format!("{at}/failure"), Unit::Text),
        (None, None) => Span::from("-"),
    };
    let trace = request.trace_id.as_deref().map_or(Line::default(), |id| {
        let shown = Span::figure(id, format!("{at}/trace_id"), Unit::Text);
        let link = result.run.trace_link.as_ref().map(|link| link.replace(TRACE_ID, id));
        Line::from(Span { href: link, ..shown })
    });
    vec![
        step.step.as_str().into(),
        length(request.at_s, format!("{at}/at_s")).into(),
        time.into(),
        first_byte.map_or_else(|| Line::from("-"), Line::from),
        answer.into(),
        request.worker.to_string().into(),
        timing_words(&request.server_timing).into(),
        trace,
    ]
}
