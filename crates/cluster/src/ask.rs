//! Small questions to nodes, over HTTP/1.1.

use core::net::SocketAddr;
use std::time::Duration;

use plimsoll_core::Nanos;
use serde_json::Value;

/// The largest answer that is read, in bytes: a page of a list may be long.
const LARGEST_ANSWER: u64 = 256 << 20;

/// An answer whose body was not read yet, or the reason why there is none.
type Response = Result<ureq::http::Response<ureq::Body>, ureq::Error>;

/// A node's answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

/// Asks by GET, on a connection of its own: one that was kept may be that of a node which has died.
///
/// # Errors
/// The reason why there is no answer.
pub(crate) fn get(address: SocketAddr, path: &str, patience: Nanos) -> Result<Answer, String> {
    answer(&format!("GET {path}"), agent(patience).get(url(address, path)).call())
}

/// Sends JSON by POST, likewise.
///
/// # Errors
/// The reason why there is no answer.
pub(crate) fn post(address: SocketAddr, path: &str, json: &str, patience: Nanos) -> Result<Answer, String> {
    let request = agent(patience).post(url(address, path)).header("content-type", "application/json");
    answer(&format!("POST {path}"), request.send(json))
}

/// Asks by DELETE, likewise.
///
/// # Errors
/// The reason why there is no answer.
pub(crate) fn delete(address: SocketAddr, path: &str, patience: Nanos) -> Result<Answer, String> {
    answer(&format!("DELETE {path}"), agent(patience).delete(url(address, path)).call())
}

fn url(address: SocketAddr, path: &str) -> String {
    format!("http://{address}{path}")
}

fn agent(patience: Nanos) -> ureq::Agent {
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(Duration::from_nanos(patience.0)))
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .max_idle_connections(0)
        .proxy(None)
        .build();
    ureq::Agent::new_with_config(config)
}

fn answer(request: &str, response: Response) -> Result<Answer, String> {
    answer_within(request, response, LARGEST_ANSWER)
}

fn answer_within(request: &str, response: Response, largest: u64) -> Result<Answer, String> {
    let said = |error: ureq::Error| format!("{request}: {error}");
    let mut response = response.map_err(said)?;
    let status = response.status().as_u16();
    let body = response.body_mut().with_config().limit(largest).read_to_vec().map_err(said)?;
    Ok(Answer { status, body })
}

/// The same for an answer of status 200 in JSON.
///
/// # Errors
/// The reason why there is no such answer.
pub(crate) fn json(address: SocketAddr, path: &str, patience: Nanos) -> Result<Value, String> {
    let Answer { status, body } = get(address, path, patience)?;
    if status != 200 {
        return Err(format!("GET {path}: status {status}"));
    }
    serde_json::from_slice(&body).map_err(|error| format!("GET {path}: no JSON: {error}"))
}

/// A value as the text that specs have for it: that of a string without its quotes.
pub(crate) fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_endless_answer_a_bounded_part_is_read() {
        let within = |body: ureq::Body, largest| {
            answer_within("GET /", Ok(ureq::http::Response::new(body)), largest)
                .map(|answer| answer.body.len())
        };
        let endless = || ureq::Body::builder().reader(std::io::repeat(b'x'));
        let said = within(endless(), 50_000).unwrap_err();
        assert!(said.starts_with("GET /: ") && said.contains("limit"), "{said}");
        assert_eq!(within(ureq::Body::builder().data(vec![0; 49_000]), 50_000), Ok(49_000));
    }
}
