//! The protocol as one of targets.

use plimsoll_document::Problem;
use plimsoll_plan::{InTurnProtocol, Protocol, ProtocolRow, ServerUrl};

use crate::wire::ReplyClient;

/// The protocol of the cache.
pub static PROTOCOL: InTurnProtocol = InTurnProtocol {
    name: "carbon",
    rows: &[&ROW],
    client: || Box::new(ReplyClient::new()),
    opening: |_| None,
    content_hint: "check the body: it is the value",
};

/// The scheme of its URLs.
static ROW: ProtocolRow = ProtocolRow {
    name: "cache",
    title: "the cache protocol",
    server_command: "plimsoll target cache",
    scheme: "carbon",
    port: 5500,
    is_secure: false,
    protocol: Some(Protocol::InTurn(&PROTOCOL)),
    noun: "a cache",
    target_hint: "give the target a URL like carbon://127.0.0.1:5500/perf_test",
    step_hint: "write `cache: {get: key}`, or put, delete, ping",
    command_hint: "write `plimsoll cache`, or a plan whose steps are written `cache: {get: key}`",
    check,
};

/// Reports a URL that does not name one cache, and nothing besides.
fn check(url: &ServerUrl<'_>) -> Result<(), Problem> {
    let name = url.path.trim_matches('/');
    let problem = if name.is_empty() {
        Problem::new("the URL names no cache")
    } else if name.contains(['/', '%']) || name.contains("${") {
        Problem::new(format!("`{name}` is not a name of a cache"))
    } else if url.user_info.is_some() {
        Problem::new("the cache protocol has no user")
    } else {
        return Ok(());
    };
    Err(problem.with_hint("write it like carbon://127.0.0.1:5500/perf_test"))
}
