//! Messages on WebSockets.

use plimsoll_core::figure;
use plimsoll_metrics::WebSocketRecord;

use super::{Fact, bytes, count, line};
use crate::render::layout::Emphasis;

/// Facts about the WebSockets of a run whose measured part took `duration_s`.
pub(super) fn facts(record: &WebSocketRecord, duration_s: f64) -> Vec<Fact> {
    let seconds = duration_s.max(f64::MIN_POSITIVE);
    let per_second = |count: u64| figure::per_second(count as f64 / seconds);
    let way = |word: &str, messages: (u64, &str), size: (u64, &str)| {
        line![
            count(messages.0, format!("/websocket/{}", messages.1)),
            format!(" messages {word} ({}), ", per_second(messages.0)),
            bytes(size.0, format!("/websocket/{}", size.1)),
            format!(" ({}/s)", figure::bytes((size.0 as f64 / seconds) as u64)),
        ]
    };
    let mut opened = line![count(record.opened, "/websocket/opened"), " opened"];
    for (number, name, words) in [
        (record.refused, "refused", " refused"),
        (record.closed_by_server, "closed_by_server", " closed by the server"),
        (record.dropped, "dropped", " dropped without a close"),
    ] {
        if number > 0 {
            opened.push(", ");
            opened.push(count(number, format!("/websocket/{name}")).with(Emphasis::Doubtful));
            opened.push(words);
        }
    }
    if record.pings > 0 {
        opened.push(", ");
        opened.push(count(record.pings, "/websocket/pings"));
        opened.push(" pings answered");
    }
    let sent = way("sent", (record.messages_sent, "messages_sent"), (record.bytes_sent, "bytes_sent"));
    let mut received = way(
        "received",
        (record.messages_received, "messages_received"),
        (record.bytes_received, "bytes_received"),
    );
    if record.answered > 0 {
        received.push(", ");
        received.push(count(record.answered, "/websocket/answered"));
        received.push(" of them answered by rules");
    }
    if record.skipped > 0 {
        received.push(", ");
        received.push(count(record.skipped, "/websocket/skipped"));
        received.push(" of them awaited by no step");
    }
    vec![Fact::new("WebSockets", opened), Fact::new("", sent), Fact::new("", received)]
}
