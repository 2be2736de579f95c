//! Addresses and their handlers.

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequestParts, Path, Query, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::access::{Access, SESSION_PATH};
use crate::answer::{Json, Posted};
use crate::events::Events;
use crate::example_servers::ExampleServers;
use crate::examples::Example;
use crate::folder::Folder;
use crate::history::History;
use crate::live::Live;
use crate::options::Options;
use crate::page::{self, Etags};
use crate::program::Program;
use crate::refusal::Refusal;
use crate::{comparison, events, examples, fleet, live, plans, runs};

/// Everything that answers are made of.
pub(crate) struct Ui {
    pub(crate) options: Options,
    pub(crate) access: Access,
    pub(crate) folder: Arc<Folder>,
    pub(crate) history: Arc<History>,
    pub(crate) program: Arc<Program>,
    pub(crate) live: Arc<Live>,
    pub(crate) servers: ExampleServers,
    pub(crate) events: Events,
    pub(crate) etags: Etags,
    /// `true` as soon as the server is to end.
    pub(crate) ends: watch::Receiver<bool>,
}

/// The addresses, behind the guard that every request passes.
pub(crate) fn router(ui: Arc<Ui>) -> Router {
    Router::new()
        .route("/", get(page::index))
        .route("/assets/app.js", get(page::script))
        .route("/assets/app.css", get(page::style))
        .route(SESSION_PATH, post(session))
        .route("/api/about", get(about))
        .route("/api/files", get(files))
        .route("/api/file", get(file).post(save_file))
        .route("/api/file/rename", post(rename_file))
        .route("/api/file/delete", post(delete_file))
        .route("/api/examples", get(async || Json(examples::list())))
        .route("/api/example/files", post(example_files))
        .route("/api/schema/{name}", get(schema))
        .route("/api/forms", get(forms))
        .route("/api/check", post(plans::check))
        .route("/api/explain", post(plans::explain))
        .route("/api/try", post(plans::try_once))
        .route("/api/plan-of", post(plans::plan_of))
        .route("/api/import", post(plans::import))
        .route("/api/fleet", post(fleet::list))
        .route("/api/live", get(live::list).post(live::start))
        .route("/api/live/{id}/events", get(live::events))
        .route("/api/live/{id}/rate", post(live::rate))
        .route("/api/live/{id}/pause", post(live::pause))
        .route("/api/live/{id}/resume", post(live::resume))
        .route("/api/live/{id}/stop", post(live::stop))
        .route("/api/runs", get(runs::list))
        .route("/api/runs/{id}", get(runs::show))
        .route("/api/runs/{id}/export", get(runs::export))
        .route("/api/runs/{id}/delete", post(runs::delete))
        .route("/api/series/{id}", get(runs::series))
        .route("/api/compare", post(comparison::compare))
        .route("/api/compare/export", get(comparison::export))
        .route("/api/events", get(events::events))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(ui.clone(), guard))
        .with_state(ui)
}

/// The field of a request whose refusal is wanted with a status of success, and that of the answer with its
/// own status: browsers show others as errors of the page, on their console.
const REFUSAL_FIELD: &str = "x-plimsoll-refusal";

/// Lets a request pass if it may, and makes every answer safe for a browser.
async fn guard(State(ui): State<Arc<Ui>>, request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let is_quiet = head.headers.contains_key(REFUSAL_FIELD);
    let mut response = match ui.access.admit(&head) {
        Ok(()) => next.run(Request::from_parts(head, body)).await,
        Err(refusal) => refusal.into_response(),
    };
    // The rest of an unwanted body is not read, so the connection must not be kept.
    if response.status().is_client_error() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        if is_quiet {
            let status = std::mem::replace(response.status_mut(), StatusCode::OK);
            response.headers_mut().insert(REFUSAL_FIELD, status.as_u16().into());
        }
    }
    page::secure(response.headers_mut());
    response
}

async fn unknown() -> Refusal {
    Refusal::not_found("no such address", "reload the page, which may be of another version of the program")
}

async fn wrong_method(method: Method) -> Refusal {
    let error = format!("this address is not for {method}");
    let hint = "reload the page, which may be of another version of the program";
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, error, hint)
}

/// Parameters behind the question mark.
pub(crate) struct Asked<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Refusal;

    async fn from_request_parts(head: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let wrong = |error: axum::extract::rejection::QueryRejection| {
            let hint = "reload the page, which may be of another version of the program";
            Refusal::bad_request(error.body_text(), hint)
        };
        Query::try_from_uri(&head.uri).map(|Query(asked)| Self(asked)).map_err(wrong)
    }
}

/// The word that an address names something by.
pub(crate) struct Named(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = Refusal;

    async fn from_request_parts(head: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let named = Path::<String>::from_request_parts(head, state).await;
        named
            .map(|Path(name)| Self(name))
            .map_err(|error| Refusal::bad_request(error.body_text(), "reload the page"))
    }
}

#[derive(Deserialize)]
struct Session {
    token: String,
}

async fn session(State(ui): State<Arc<Ui>>, Posted(asked): Posted<Session>) -> Result<Response, Refusal> {
    let cookie = ui.access.begin(&asked.token).map_err(|error| {
        Refusal::failed(
            format!("the system gives no random numbers: {error}"),
            "check that /dev/urandom exists",
        )
    })?;
    let Some(cookie) = cookie else {
        return Err(Refusal::new(
            StatusCode::UNAUTHORIZED,
            "this is not the token of this server",
            "open the address that `plimsoll ui` printed last",
        ));
    };
    let mut response = Json(json!({})).into_response();
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}

async fn about(State(ui): State<Arc<Ui>>) -> Json<Value> {
    Json(json!({
        "version": ui.options.version,
        "folder": ui.folder.root(),
        "store": ui.options.store,
        "read_only": false,
        "sink": ui.servers.url(),
    }))
}

/// Runs code that reads or writes files on a thread that may block.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Refusal::failed(error.to_string(), "try it again")))
}

async fn files(State(ui): State<Arc<Ui>>) -> Result<Json<Value>, Refusal> {
    let folder = ui.folder.clone();
    blocking(move || Ok(Json(json!({"files": folder.list()})))).await
}

#[derive(Deserialize)]
struct FileAsked {
    path: String,
}

async fn file(
    State(ui): State<Arc<Ui>>,
    Asked(FileAsked { path }): Asked<FileAsked>,
) -> Result<Json<Value>, Refusal> {
    let folder = ui.folder.clone();
    blocking(move || folder.read(&path).map(|text| Json(json!(text)))).await
}

#[derive(Deserialize)]
struct FileSaved {
    path: String,
    text: String,
    etag: Option<String>,
}

async fn save_file(
    State(ui): State<Arc<Ui>>,
    Posted(FileSaved { path, text, etag }): Posted<FileSaved>,
) -> Result<Json<Value>, Refusal> {
    let folder = ui.folder.clone();
    blocking(move || {
        let etag = folder.write(&path, &text, etag.as_deref())?;
        Ok(Json(json!({"path": path, "etag": etag})))
    })
    .await
}

#[derive(Deserialize)]
struct FileRenamed {
    path: String,
    to: String,
}

async fn rename_file(
    State(ui): State<Arc<Ui>>,
    Posted(FileRenamed { path, to }): Posted<FileRenamed>,
) -> Result<Json<Value>, Refusal> {
    let folder = ui.folder.clone();
    blocking(move || folder.rename(&path, &to).map(|()| Json(json!({"path": to})))).await
}

async fn delete_file(
    State(ui): State<Arc<Ui>>,
    Posted(FileAsked { path }): Posted<FileAsked>,
) -> Result<Json<Value>, Refusal> {
    let folder = ui.folder.clone();
    blocking(move || folder.remove(&path).map(|()| Json(json!({})))).await
}

#[derive(Deserialize)]
struct ExampleAsked {
    name: String,
}

/// Puts the files that an example reads into the folder, where they are not there yet.
async fn example_files(
    State(ui): State<Arc<Ui>>,
    Posted(ExampleAsked { name }): Posted<ExampleAsked>,
) -> Result<Json<Value>, Refusal> {
    let example = Example::named(&name).ok_or_else(|| {
        let error = format!("there is no example `{}`", name.escape_debug());
        Refusal::not_found(error, "reload the page, which may be of another version of the program")
    })?;
    let folder = ui.folder.clone();
    blocking(move || {
        let (mut written, mut kept) = (Vec::new(), Vec::new());
        for (path, content) in example.files() {
            match folder.write(path, content, None) {
                Ok(_) => written.push(path),
                Err(refusal) if refusal.status == StatusCode::CONFLICT => kept.push(path),
                Err(refusal) => return Err(refusal),
            }
        }
        Ok(Json(json!({"written": written, "kept": kept})))
    })
    .await
}

async fn schema(State(ui): State<Arc<Ui>>, Named(name): Named) -> Result<Json<Value>, Refusal> {
    (ui.options.schema)(&name).map(Json).ok_or_else(|| {
        Refusal::not_found(
            format!("there is no schema `{}`", name.escape_debug()),
            "`plimsoll schema --help` names them",
        )
    })
}

async fn forms(State(ui): State<Arc<Ui>>) -> Json<Value> {
    Json(ui.options.forms.clone())
}
