//! Requests to a server before the load on it.

use plimsoll_app::{Failure, once, reason, transport};
use plimsoll_document::{Problem, RawValue};
use plimsoll_plan::PlanPatch;
use serde_json::json;

/// Asks the HTTP API once with these credentials, so that a refusal ends the command before any run.
pub(crate) fn reach_http(url: &str, cache: &str, patch: &PlanPatch) -> Result<(), Failure> {
    let flags = PlanPatch {
        basic: patch.basic.clone(),
        bearer: patch.bearer.clone(),
        headers: patch.headers.clone(),
        ..transport(patch)
    };
    let step = json!({
        "get": format!("/cache/{cache}/plimsoll"),
        "expect": { "status": ["200-599"] },
    });
    let document =
        json!({ "targets": { "api": url.trim_end_matches('/') }, "scenarios": [{ "steps": [step] }] });
    let record = once(document, flags)?;
    let (message, hint) = match record.total.statuses.keys().next() {
        Some(status @ (401 | 403)) => (
            format!("--compare-http: {url} answers {status}: it does not accept these credentials"),
            "name another user with --user USER:PASSWORD, or a token with --bearer",
        ),
        Some(status @ 500..) => {
            (format!("--compare-http: {url} answers {status} to a GET"), "look at the log of the server")
        }
        Some(_) => return Ok(()),
        None => (
            format!("--compare-http: no answer from {url}: {}", reason(&record)),
            "is this the cache's HTTP API?",
        ),
    };
    Err(Failure::environment(Problem::new(message).with_hint(hint)))
}

/// Creates the cache. One that is there already is as good.
pub(crate) fn create(admin: &str, user: &str, cache: &str) -> Result<(), Failure> {
    let flags = PlanPatch { basic: Some(RawValue::new("--user", user)), ..PlanPatch::default() };
    let request = json!({
        "post": format!("{}/admin/caches", admin.trim_end_matches('/')),
        // The server rejects the further fields that its documentation names.
        "json": { "name": cache, "eviction": "ttl" },
    });
    let record = once(json!({ "scenarios": [{ "steps": [request] }] }), flags)?;
    match record.total.statuses.keys().next() {
        Some(200..300) => Ok(()),
        Some(401 | 403) => Err(Failure::environment(
            Problem::new(format!("--create: {admin} does not accept the user"))
                .with_hint("name another with --user USER:PASSWORD"),
        )),
        Some(status) => Err(Failure::environment(
            Problem::new(format!("--create: {admin} answered {status} to the cache `{cache}`"))
                .with_hint("names have letters, digits, - and _"),
        )),
        None => Err(Failure::environment(
            Problem::new(format!("--create: no answer from {admin}: {}", reason(&record)))
                .with_hint("name the server's HTTP API with --admin URL"),
        )),
    }
}

/// Checks that the server answers, and has the cache. Without this check, a run would measure how fast
/// requests are refused.
pub(crate) fn reach(server: &str, cache: &str, admin: &str) -> Result<(), Failure> {
    let record = once(
        json!({
            "targets": { "cache": format!("carbon://{server}/{cache}") },
            "scenarios": [{ "steps": [
                { "cache": { "get": "plimsoll" }, "expect": { "status": [200, 404] } },
            ] }],
        }),
        PlanPatch::default(),
    )?;
    if record.accounting.ok > 0 {
        return Ok(());
    }
    let why = reason(&record);
    let problem = match why.starts_with("Cache not found") {
        true => {
            let body = json!({ "name": cache, "eviction": "ttl" });
            Problem::new(format!("the server {server} has no cache `{cache}`")).with_hint(format!(
                "add --create, or create it: curl -u USER:PASSWORD -H 'Content-Type: application/json' \
                 -d '{body}' {admin}/admin/caches"
            ))
        }
        false => Problem::new(format!("no answer from the cache server {server}: {why}")).with_hint(
            "is it running, and is this its TCP port (5500 by default)? `lsof -i :5500` shows who listens",
        ),
    };
    Err(Failure::environment(problem))
}
