//! Small questions to nodes, over HTTP/1.1.

use core::net::SocketAddr;

use plimsoll_core::Nanos;
pub(crate) use plimsoll_http::Answer;
use plimsoll_http::{AskError, Client, Deadline, Origin, Request};
use serde_json::Value;

/// The largest answer that is read, in bytes: a page of a list may be long.
const LARGEST_ANSWER: usize = 256 << 20;

/// Asks by GET, on a connection of its own: one that was kept may be that of a node which has died.
///
/// # Errors
/// The reason why there is no answer.
pub(crate) fn get(address: SocketAddr, path: &str, patience: Nanos) -> Result<Answer, String> {
    answer(address, ("GET", path), None, patience)
}

/// Sends JSON by POST, likewise.
///
/// # Errors
/// The reason why there is no answer.
pub(crate) fn post(address: SocketAddr, path: &str, json: &str, patience: Nanos) -> Result<Answer, String> {
    answer(address, ("POST", path), Some(json), patience)
}

/// Asks by DELETE, likewise.
///
/// # Errors
/// The reason why there is no answer.
pub(crate) fn delete(address: SocketAddr, path: &str, patience: Nanos) -> Result<Answer, String> {
    answer(address, ("DELETE", path), None, patience)
}

fn answer(
    address: SocketAddr,
    (method, path): (&str, &str),
    json: Option<&str>,
    patience: Nanos,
) -> Result<Answer, String> {
    let client = Client::plain(Origin::from(address), LARGEST_ANSWER);
    let answer = client.ask(&request(method, path, json), Deadline::within(patience));
    answer.map_err(|error| told(method, path, &error))
}

/// A request with JSON, or without a body.
pub(crate) fn request<'a>(method: &'a str, path: &'a str, json: Option<&'a str>) -> Request<'a> {
    let request = Request::new(method, path);
    json.into_iter().fold(request, Request::with_json)
}

/// The message about a request without an answer.
pub(crate) fn told(method: &str, path: &str, error: &AskError) -> String {
    format!("{method} {path}: {}", error.about("the node"))
}

/// Asks by GET for an answer of status 200 in JSON.
///
/// # Errors
/// The reason why there is no such answer.
pub(crate) fn json(address: SocketAddr, path: &str, patience: Nanos) -> Result<Value, String> {
    let Answer { status, body, .. } = get(address, path, patience)?;
    if status != 200 {
        return Err(format!("GET {path}: status {status}"));
    }
    serde_json::from_slice(&body).map_err(|error| format!("GET {path}: no JSON: {error}"))
}

/// A value as the text that specs have for it: that of a string without its quotes.
pub(crate) fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
