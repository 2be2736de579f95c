//! Traffic on the wire: responses, errors, connections, and details of HTTP/2.

use std::collections::BTreeMap;

use plimsoll_core::figure;

use super::accounts::CHANGES_SHOWN;
use super::{Fact, Line, Shown, Span, Table, bytes, count, length, line, per_second, pointer, share};
use crate::contract::context::TRACE_ID;
use crate::contract::result::{AddressChangeResult, Http2Result, RunResult};
use crate::contract::traffic::{Http2TrafficResult, RateSpread};
use crate::render::layout::Emphasis;

/// The name of HTTP/1.1 among the protocols.
const HTTP1: &str = "http/1.1";

/// A row for each count: its name, the count, and its share of the requests that ended.
fn rows(result: &RunResult, key: &str, counts: &BTreeMap<String, u64>) -> Vec<Vec<Line>> {
    let accounting = &result.accounting;
    let ended = [accounting.ok, accounting.failed, accounting.timed_out, accounting.aborted]
        .into_iter()
        .fold(0, u64::saturating_add);
    let row = |(name, value): (&String, &u64)| {
        let share = figure::share(*value as f64 / ended.max(1) as f64);
        vec![name.as_str().into(), count(*value, pointer(&[key, name])).into(), share.into()]
    };
    counts.iter().map(row).collect()
}

fn table(caption: &str, name: &str, rows: Vec<Vec<Line>>) -> Table {
    let columns =
        [(name, Shown::Everywhere), ("responses", Shown::Everywhere), ("of ended requests", Shown::Page)];
    Table::new(caption, columns, rows)
}

pub(super) fn statuses(result: &RunResult) -> Table {
    let rows = rows(result, "statuses", &result.statuses);
    table("Responses by status", "status", rows)
}

/// Responses by protocol; none if that is HTTP/1.1 alone, which the line of the target says.
pub(super) fn protocols(result: &RunResult) -> Table {
    let others = result.protocols.keys().any(|protocol| protocol != HTTP1);
    let rows = if others { rows(result, "protocols", &result.protocols) } else { Vec::new() };
    table("Responses by protocol", "protocol", rows)
}

/// The sentence where no class of errors is: requests that timed out have none.
pub(super) fn no_errors(result: &RunResult) -> String {
    match result.accounting.timed_out {
        0 => "No request failed.".to_owned(),
        timed_out => format!("No errors beside timeouts: {} requests timed out.", figure::count(timed_out)),
    }
}

pub(super) fn errors(result: &RunResult) -> Table {
    let mut rows = rows(result, "errors", &result.errors);
    for (row, class) in rows.iter_mut().zip(result.errors.keys()) {
        row[0].spans[0].emphasis = Emphasis::Bad;
        let mut example = Line::from(result.error_examples.get(class).map_or("", String::as_str));
        if let Some(id) = result.trace_of(class) {
            let href = result.run.trace_link.as_ref().map(|link| link.replace(TRACE_ID, id));
            example.push("; trace ");
            example.push(Span { href, ..Span::from(id) });
        }
        row.push(example);
    }
    let columns = [
        ("error", Shown::Everywhere),
        ("requests", Shown::Everywhere),
        ("of ended requests", Shown::Page),
        ("example", Shown::Everywhere),
    ];
    Table::new("Failed requests by class", columns, rows)
}

/// Connections, the waits of arrivals, and HTTP/2 if it was spoken.
pub(super) fn connections(result: &RunResult) -> Vec<Fact> {
    let connections = &result.connections;
    let counted = |value: u64, key: &str| count(value, format!("/connections/{key}"));
    let mut line = line![
        counted(connections.opened, "opened"),
        " opened, at most ",
        counted(connections.peak_open, "peak_open"),
        " of ",
        counted(connections.limit, "limit"),
        " at once, ",
        counted(connections.closed_idle, "closed_idle"),
        " closed by the target while idle",
    ];
    if connections.tls_resumed > 0 {
        line.push(", ");
        line.push(counted(connections.tls_resumed, "tls_resumed"));
        line.push(" TLS sessions resumed");
    }
    for (class, failed) in &connections.failed {
        line.push(", ");
        line.push(count(*failed, pointer(&["connections", "failed", class])));
        line.push(format!(" failed: {class}"));
    }
    if connections.blocked_s > 0.0 {
        let awaited = if result.http2.is_some() { "stream" } else { "one" };
        line.push("; due arrivals waited ");
        line.push(length(connections.blocked_s, "/connections/blocked_s"));
        line.push(format!(" for a free {awaited}, "));
        line.push(length(connections.blocked_at_limit_s, "/connections/blocked_at_limit_s"));
        line.push(" of it at the limit");
        if connections.blocked_unreached_s > 0.0 {
            line.push(", ");
            line.push(length(connections.blocked_unreached_s, "/connections/blocked_unreached_s"));
            line.push(" for one to a target that took none");
        }
    }
    let mut facts = vec![Fact::new("connections", line)];
    facts.extend(connections.requests_per_s.as_ref().map(rates));
    let changes = &connections.address_changes;
    let more = changes.len().saturating_sub(CHANGES_SHOWN);
    let more = (more > 0).then(|| format!("and {more} more"));
    let texts = changes.iter().take(CHANGES_SHOWN).map(AddressChangeResult::said).chain(more);
    facts.extend(texts.map(|text| Fact::new("addresses", text)));
    facts.extend(result.http2.iter().flat_map(http2));
    facts.extend(
        result.websocket.iter().flat_map(|record| super::websocket::facts(record, result.duration_s)),
    );
    facts
}

/// Requests per second of single connections.
fn rates(rates: &RateSpread) -> Fact {
    let at = |key: &str| format!("/connections/requests_per_s/{key}");
    let rate = |value: f64, key: &str| per_second(Some(value), at(key));
    let mut line = line![rate(rates.mean, "mean"), " on a connection in the mean"];
    if rates.connections > 1 {
        line.push(", ± ");
        line.push(rate(rates.stdev, "stdev"));
        if let Some(within) = rates.within_stdev {
            line.push(" for ");
            line.push(share(within, at("within_stdev")));
            line.push(" of them");
        }
        line.push(", from ");
        line.push(rate(rates.min, "min"));
        line.push(" to ");
        line.push(rate(rates.max, "max"));
    }
    Fact::new("", line).on(Shown::TextAndPage)
}

/// Bytes of the messages on HTTP/2.
fn traffic(traffic: &Http2TrafficResult) -> Fact {
    let counted = |value: u64, key: &str| bytes(value, format!("/http2/traffic/{key}"));
    let mut line = line![
        "header blocks: ",
        counted(traffic.heads_sent_bytes, "heads_sent_bytes"),
        " sent, ",
        counted(traffic.heads_received_bytes, "heads_received_bytes"),
        " received",
    ];
    if let Some(saved) = traffic.heads_saved_share {
        line.push(" (compression saved ");
        line.push(share(saved, "/http2/traffic/heads_saved_share"));
        line.push(" of ");
        line.push(counted(traffic.fields_received_bytes, "fields_received_bytes"));
        line.push(")");
    }
    line.push("; content: ");
    line.push(counted(traffic.content_received_bytes, "content_received_bytes"));
    line.push(" received");
    Fact::new("", line).on(Shown::TextAndPage)
}

/// Limits, resets and violations of HTTP/2.
fn http2(http2: &Http2Result) -> Vec<Fact> {
    let asked = figure::count(http2.streams_asked);
    let limit = match http2.stream_limit {
        None if http2.connections == 0 => "no connection was established".into(),
        Some(limit) if limit < http2.streams_asked => {
            let allowed = format!("server allows {} per connection", plural(limit, "stream"));
            line![
                Span::emphasised(Emphasis::Doubtful, allowed),
                format!(", {asked} were asked for: limited by that"),
            ]
        }
        limit => {
            let limit =
                limit.map_or("sets no limit".to_owned(), |limit| format!("allows {}", figure::count(limit)));
            let streams = plural(http2.streams_asked, "stream");
            format!("up to {streams} per connection as asked for, server {limit}").into()
        }
    };
    let mut facts = vec![Fact::new("HTTP/2", limit)];
    facts.extend(http2.traffic.as_ref().map(traffic));
    if !http2.violations.is_empty() {
        let violated = Span::emphasised(Emphasis::Bad, "server violated the protocol");
        facts.push(Fact::new("", line![violated, format!(": {}", by_code(&http2.violations))]));
    }
    for (what, counts) in [("reset streams", &http2.resets), ("sent GOAWAY", &http2.go_aways)] {
        if !counts.is_empty() {
            facts.push(Fact::new("", format!("server {what}: {}", by_code(counts))));
        }
    }
    if http2.cancelled > 0 {
        facts.push(Fact::new("", format!("{} cancelled on timeout", plural(http2.cancelled, "stream"))));
    }
    facts
}

/// `12 CANCEL, 3 REFUSED_STREAM`.
fn by_code(counts: &BTreeMap<String, u64>) -> String {
    let all: Vec<String> =
        counts.iter().map(|(code, count)| format!("{} {code}", figure::count(*count))).collect();
    all.join(", ")
}

/// `1 stream`, `12 streams`.
fn plural(count: u64, noun: &str) -> String {
    format!("{} {}", figure::count(count), plimsoll_core::text::noun(count, noun))
}
