//! Saved runs and searches: the list, one of them, its formats, and its end.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use plimsoll_core::Nanos;
use plimsoll_report::result::Tool;
use plimsoll_report::{Format, RepeatedResult, Style, render_saved};
use plimsoll_store::{Kind, Outline, Row, State as Progress, Tag};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::answer::{Json, Posted, written};
use crate::history::{Course, Read};
use crate::live::without_intervals;
use crate::program::Call;
use crate::refusal::Refusal;
use crate::router::{Asked, Named, Ui, blocking};

/// Runs of a list where nothing else is asked for.
const USUAL_LIMIT: u64 = 100;
/// Runs of a list at most.
const MOST_LISTED: u64 = 10_000;
/// Digits of an id in the name of a file.
const DIGITS: usize = 8;

/// Which runs are to be listed.
#[derive(Deserialize)]
pub(crate) struct Listed {
    #[serde(default)]
    filter: String,
    limit: Option<u64>,
    #[serde(default)]
    offset: u64,
}

/// `GET /api/runs`
pub(crate) async fn list(
    State(ui): State<Arc<Ui>>,
    Asked(listed): Asked<Listed>,
) -> Result<Json<Value>, Refusal> {
    let history = ui.history.clone();
    blocking(move || {
        let limit = listed.limit.unwrap_or(USUAL_LIMIT).min(MOST_LISTED);
        let (page, courses) = history.page(&listed.filter, listed.offset, limit)?;
        let runs: Vec<Value> =
            page.rows.iter().zip(courses).map(|(row, course)| object(row, course)).collect();
        Ok(Json(json!({"runs": runs, "total": page.total})))
    })
    .await
}

fn object(row: &Row, course: Course) -> Value {
    let seconds = |ns: u64| Nanos(ns).as_secs_f64();
    let error_share = match (row.errors, row.started) {
        (Some(errors), Some(started)) if started > 0 => Some(errors as f64 / started as f64),
        _ => None,
    };
    json!({
        "id": row.id,
        "name": row.name,
        "tags": row.tags.iter().map(Tag::to_string).collect::<Vec<_>>(),
        "started_unix_s": seconds(row.started_unix_ns),
        "outcome": row.outcome,
        "stopped_early": row.stopped_early,
        "valid": row.valid,
        "rate_per_s": row.achieved_per_s,
        "p50_s": row.p50_ns.map(seconds),
        "p99_s": row.p99_ns.map(seconds),
        "at_least": row.at_least,
        "error_share": error_share,
        "duration_s": row.duration_s,
        "sparkline": course,
        "unfinished": row.state != Progress::Finished,
        "state": row.state.name(),
        "target": row.target,
        "kind": row.kind.name(),
        "answer": row.answer,
    })
}

/// `GET /api/runs/ID`
pub(crate) async fn show(State(ui): State<Arc<Ui>>, Named(id): Named) -> Result<Response, Refusal> {
    let history = ui.history.clone();
    blocking(move || {
        let mut text = Vec::new();
        let rendered = match history.read(&id)? {
            Read::Run(run) => render_saved(&run, Format::Json, &Style::PLAIN, &mut text),
            Read::Search(searched) => searched.render(Format::Json, &Style::PLAIN, &mut text),
        };
        rendered
            .map_err(|error| Refusal::failed(error.to_string(), "try `plimsoll show` on the command line"))?;
        Ok(written(StatusCode::OK, text))
    })
    .await
}

/// `GET /api/series/ID`: several runs of one plan, as `run --repeat -o json` writes them, without their
/// intervals.
pub(crate) async fn series(State(ui): State<Arc<Ui>>, Named(id): Named) -> Result<Json<Value>, Refusal> {
    let (history, version) = (ui.history.clone(), ui.options.version);
    blocking(move || {
        let runs = history.series(&id)?;
        let tool = Tool { name: "plimsoll".to_owned(), version: version.to_owned() };
        let result = RepeatedResult::new(tool, runs.len() as u64, runs);
        let written = serde_json::to_value(result)
            .map_err(|error| Refusal::failed(error.to_string(), "try `plimsoll show` on the command line"))?;
        Ok(Json(without_intervals(written)))
    })
    .await
}

/// A format of a run: its name, the end of its files, and its media type.
const FORMATS: [(&str, &str, &str); 11] = [
    ("json", "json", "application/json"),
    ("csv", "csv", "text/csv; charset=utf-8"),
    ("markdown", "md", "text/markdown; charset=utf-8"),
    ("junit", "xml", "application/xml"),
    ("ndjson", "ndjson", "application/x-ndjson"),
    ("hgrm", "hgrm", "text/plain; charset=utf-8"),
    ("hlog", "hlog", "text/plain; charset=utf-8"),
    ("k6", "k6.json", "application/json"),
    ("html", "html", "text/html; charset=utf-8"),
    ("text", "txt", "text/plain; charset=utf-8"),
    ("saved", "plimsoll", "application/octet-stream"),
];

/// The format of an export.
#[derive(Deserialize)]
pub(crate) struct Exported {
    format: String,
}

/// `GET /api/runs/ID/export`
pub(crate) async fn export(
    State(ui): State<Arc<Ui>>,
    Named(id): Named,
    Asked(Exported { format }): Asked<Exported>,
) -> Result<Response, Refusal> {
    let Some((format, end, media)) = FORMATS.into_iter().find(|(name, ..)| *name == format) else {
        let names = FORMATS.map(|(name, ..)| name).join(", ");
        let error = format!("there is no format `{}`", format.escape_debug());
        return Err(Refusal::unprocessable(error, format!("formats are {names}")));
    };
    let history = ui.history.clone();
    // The id of an existing run cannot be mistaken for anything else on the command line.
    let Outline { id, kind, .. } = blocking(move || history.outline(&id)).await?;
    let args = match (format, kind) {
        ("html", _) => vec!["report", &id, "--file", "-", "--quiet"],
        (format, Kind::Run) => vec!["export", &id, "-o", format],
        (format, Kind::Search | Kind::Sweep) => vec!["show", &id, "-o", format],
    };
    let args = args.into_iter().map(Into::into).chain(ui.store_flag());
    // In a folder without files: a run may be named by one, too.
    let finished = ui.program.call(Call::new(args.collect::<Vec<_>>(), ui.live.folder())).await?;
    if finished.code != Some(0) {
        return Err(finished.refusal());
    }
    let mut response = written(StatusCode::OK, finished.output);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    let name = format!("attachment; filename=\"plimsoll-{}.{end}\"", id.get(..DIGITS).unwrap_or(&id));
    if let Ok(name) = HeaderValue::try_from(name) {
        headers.insert(header::CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

/// Nothing but an object.
#[derive(Deserialize)]
pub(crate) struct Nothing {}

/// `POST /api/runs/ID/delete`
pub(crate) async fn delete(
    State(ui): State<Arc<Ui>>,
    Named(id): Named,
    Posted(Nothing {}): Posted<Nothing>,
) -> Result<Json<Value>, Refusal> {
    let history = ui.history.clone();
    blocking(move || history.remove(&id)).await?;
    ui.events.look();
    Ok(Json(json!({})))
}

impl Ui {
    /// The flag that names the history.
    pub(crate) fn store_flag(&self) -> Option<std::ffi::OsString> {
        self.history.path().map(|path| {
            let mut flag = std::ffi::OsString::from("--store=");
            flag.push(path);
            flag
        })
    }
}
