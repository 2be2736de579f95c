//! Comparing groups of saved runs.

use std::ffi::OsString;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Deserialize;

use crate::answer::{Posted, written};
use crate::program::Call;
use crate::refusal::Refusal;
use crate::router::{Asked, Ui, blocking};

/// Runs of a group at most.
const MOST_RUNS: usize = 1_000;
/// Exit codes of a comparison that was written: no change for the worse, one, undecided, and refused because
/// of runs that cannot be believed.
const COMPARED: [i32; 4] = [0, 3, 4, 5];

/// Two groups of runs.
#[derive(Deserialize)]
pub(crate) struct Groups {
    a: Vec<String>,
    b: Vec<String>,
}

/// `POST /api/compare`
pub(crate) async fn compare(
    State(ui): State<Arc<Ui>>,
    Posted(groups): Posted<Groups>,
) -> Result<Response, Refusal> {
    Ok(written(StatusCode::OK, carried_out(&ui, groups, Download::Json).await?))
}

/// Format of a comparison as a file.
#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Download {
    Json,
    /// The page of all runs.
    Html,
}

/// A comparison as a file: the ids of each group, with commas between.
#[derive(Deserialize)]
pub(crate) struct Exported {
    a: String,
    b: String,
    format: Download,
}

/// `GET /api/compare/export`
pub(crate) async fn export(
    State(ui): State<Arc<Ui>>,
    Asked(Exported { a, b, format }): Asked<Exported>,
) -> Result<Response, Refusal> {
    let ids = |list: &str| list.split(',').filter(|id| !id.is_empty()).map(str::to_owned).collect();
    let groups = Groups { a: ids(&a), b: ids(&b) };
    let mut response = written(StatusCode::OK, carried_out(&ui, groups, format).await?);
    let (media, name) = match format {
        Download::Json => ("application/json", "attachment; filename=\"plimsoll-comparison.json\""),
        Download::Html => ("text/html; charset=utf-8", "attachment; filename=\"plimsoll-comparison.html\""),
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static(name));
    Ok(response)
}

/// Has the program compare runs, and returns what it has written.
async fn carried_out(ui: &Ui, groups: Groups, format: Download) -> Result<Vec<u8>, Refusal> {
    if groups.a.is_empty() || groups.b.is_empty() {
        return Err(Refusal::unprocessable("a group has no runs", "choose a run for each side"));
    }
    if groups.a.len().max(groups.b.len()) > MOST_RUNS {
        let error = format!("a group has more than {MOST_RUNS} runs");
        return Err(Refusal::unprocessable(error, "choose fewer"));
    }
    let history = ui.history.clone();
    let words = blocking(move || {
        let ids = |group: &[String]| {
            let ids = group.iter().map(|id| history.outline(id).map(|outline| outline.id));
            ids.collect::<Result<Vec<_>, _>>().map(|ids| ids.join(","))
        };
        Ok([ids(&groups.a)?, ids(&groups.b)?])
    })
    .await?;
    let (command, output): (&str, &[&str]) = match format {
        Download::Json => ("compare", &["-o", "json"]),
        Download::Html => ("report", &["--file", "-", "--quiet"]),
    };
    let output = output.iter().map(|&word| word.to_owned());
    let words = [command.to_owned()].into_iter().chain(words).chain(output);
    let words: Vec<OsString> = words.map(Into::into).chain(ui.store_flag()).collect();
    let finished = ui.program.call(Call::new(words, ui.live.folder())).await?;
    if !finished.code.is_some_and(|code| COMPARED.contains(&code)) {
        let refusal = finished.refusal();
        return Err(Refusal { status: StatusCode::UNPROCESSABLE_ENTITY, ..refusal });
    }
    Ok(finished.output)
}
