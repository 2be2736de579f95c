//! Comparing groups of saved runs.

use std::ffi::OsString;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

use crate::answer::{Posted, written};
use crate::program::Call;
use crate::refusal::Refusal;
use crate::router::{Ui, blocking};

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
    let words = ["compare".to_owned()].into_iter().chain(words).chain(["-o".to_owned(), "json".to_owned()]);
    let words: Vec<OsString> = words.map(Into::into).chain(ui.store_flag()).collect();
    let finished = ui.program.call(Call::new(words, ui.live.folder())).await?;
    if !finished.code.is_some_and(|code| COMPARED.contains(&code)) {
        let refusal = finished.refusal();
        return Err(Refusal { status: StatusCode::UNPROCESSABLE_ENTITY, ..refusal });
    }
    Ok(written(StatusCode::OK, finished.output))
}
