//! The row of the cache protocol.

use super::table::{Protocol, ProtocolRow};
use crate::Problem;
use crate::url::Url;

pub(super) static ROW: ProtocolRow = ProtocolRow {
    name: "cache",
    title: "the cache protocol",
    server_command: "plimsoll target cache",
    scheme: "carbon",
    port: 5500,
    is_secure: false,
    protocol: Some(Protocol::Cache),
    noun: "a cache",
    target_hint: "give the target a URL like carbon://127.0.0.1:5500/perf_test",
    step_hint: "write `cache: {get: key}`, or put, delete, ping",
    command_hint: "write `plimsoll cache`, or a plan whose steps are written `cache: {get: key}`",
    check,
};

/// The URL of a cache names one, and nothing besides.
fn check(url: &Url) -> Result<(), Problem> {
    let name = url.target.trim_matches('/');
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
