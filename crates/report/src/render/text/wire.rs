//! Traffic on the wire: answers, errors, connections, and details of HTTP/2.

use std::collections::BTreeMap;

use plimsoll_metrics::figure;

use super::seconds;
use crate::contract::result::RunResult;
use crate::render::layout::{Emphasis, Page};

/// The name of HTTP/1.1 among the protocols.
const HTTP1: &str = "http/1.1";

/// Statuses and errors.
pub(super) fn answers(page: &mut Page<'_>, result: &RunResult) {
    let list = |counts: &BTreeMap<String, u64>| {
        let all: Vec<String> =
            counts.iter().map(|(name, count)| format!("{name}: {}", figure::count(*count))).collect();
        if all.is_empty() { "none".to_owned() } else { all.join(", ") }
    };
    page.field("statuses", &list(&result.statuses));
    // HTTP/1.1 alone is what the line of the target says.
    if result.protocols.keys().any(|protocol| protocol != HTTP1) {
        page.field("protocols", &list(&result.protocols));
    }
    if result.errors.is_empty() {
        page.field("errors", "none");
    }
    let mut label = "errors";
    for (class, count) in &result.errors {
        let example =
            result.error_examples.get(class).map_or(String::new(), |example| format!(" ({example})"));
        page.emphasised_field(label, Emphasis::Bad, class, &format!(": {}{example}", figure::count(*count)));
        label = "";
    }
}

/// Connections, and what arrivals waited for.
pub(super) fn connections(page: &mut Page<'_>, result: &RunResult) {
    let connections = &result.connections;
    let mut line = format!(
        "{} opened, at most {} of {} at once, {} closed by the target while idle",
        figure::count(connections.opened),
        figure::count(connections.peak_open),
        figure::count(connections.limit),
        figure::count(connections.closed_idle),
    );
    if connections.tls_resumed > 0 {
        line.push_str(&format!(", {} TLS sessions resumed", figure::count(connections.tls_resumed)));
    }
    for (class, count) in &connections.failed {
        line.push_str(&format!(", {} failed: {class}", figure::count(*count)));
    }
    if connections.blocked_s > 0.0 {
        line.push_str(&format!(
            "; due arrivals waited {} for a free {}, {} of it at the limit",
            seconds(connections.blocked_s),
            if result.http2.is_some() { "stream" } else { "one" },
            seconds(connections.blocked_at_limit_s),
        ));
    }
    page.field("connections", &line);
}

/// Limits, resets and violations of HTTP/2, if it was spoken.
pub(super) fn http2(page: &mut Page<'_>, result: &RunResult) {
    let Some(http2) = &result.http2 else { return };
    let asked = figure::count(http2.streams_asked);
    match http2.stream_limit {
        None if http2.connections == 0 => page.field("HTTP/2", "no connection was established"),
        Some(limit) if limit < http2.streams_asked => {
            let allowed = format!("server allows {} per connection", plural(limit, "stream"));
            let rest = format!(", {asked} were asked for: limited by that");
            page.emphasised_field("HTTP/2", Emphasis::Doubtful, &allowed, &rest);
        }
        limit => {
            let limit =
                limit.map_or("sets no limit".to_owned(), |limit| format!("allows {}", figure::count(limit)));
            let streams = plural(http2.streams_asked, "stream");
            page.field("HTTP/2", &format!("up to {streams} per connection as asked for, server {limit}"));
        }
    }
    if !http2.violations.is_empty() {
        let rest = format!(": {}", by_code(&http2.violations));
        page.emphasised_field("", Emphasis::Bad, "server violated the protocol", &rest);
    }
    for (what, counts) in [("reset streams", &http2.resets), ("sent GOAWAY", &http2.go_aways)] {
        if !counts.is_empty() {
            page.field("", &format!("server {what}: {}", by_code(counts)));
        }
    }
    if http2.cancelled > 0 {
        page.field("", &format!("{} cancelled on timeout", plural(http2.cancelled, "stream")));
    }
}

/// `12 CANCEL, 3 REFUSED_STREAM`.
fn by_code(counts: &BTreeMap<String, u64>) -> String {
    let all: Vec<String> =
        counts.iter().map(|(code, count)| format!("{} {code}", figure::count(*count))).collect();
    all.join(", ")
}

/// `1 stream`, `12 streams`.
fn plural(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", figure::count(count), if count == 1 { "" } else { "s" })
}
