//! Events of connections, apart from the requests on them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use plimsoll_core::{ErrorCounts, Nanos};
use plimsoll_histogram::Histogram;
use serde::{Deserialize, Serialize};

use super::WebSocketRecord;

/// A change of the addresses to which the name of a target leads, while the run went on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressChange {
    /// When it was seen, since the start of the run, warm-up included.
    pub at: Nanos,
    /// The server, `host[:port]`.
    pub target: String,
    /// Addresses that came up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
    /// Addresses that it does not lead to any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    /// Reason why it could not be resolved; the addresses stayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Units of [`ConnectionRecord::request_rates`] in one request per second.
pub const RATE_UNITS: u64 = 1_000;

/// Counts and times of connections.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionRecord {
    /// Connections that were established.
    pub opened: u64,
    /// Connections that were open already: the run before on the same targets had left them.
    pub kept: u64,
    /// Changes of a worker to the addresses of the other family, IPv4 or IPv6, because no connection could be
    /// made to those in use.
    #[serde(default)]
    pub family_switches: u64,
    /// Changes of the addresses of targets, and failures to resolve them again; the first of them.
    #[serde(default)]
    pub address_changes: Vec<AddressChange>,
    /// Attempts that failed, by class.
    #[serde(with = "crate::written::errors")]
    pub failed: ErrorCounts,
    /// Connections that the target closed while no response was owed.
    pub closed_idle: u64,
    /// Requests that failed because the target closed or reset a connection of HTTP/1.1 that was used before,
    /// without one byte of an answer.
    #[serde(default)]
    pub lost_on_kept: u64,
    /// Connections that were given up because of data that no request had asked for: more responses than
    /// requests, or bytes behind the end of one.
    #[serde(default)]
    pub unsolicited: u64,
    /// Largest number open at once, summed over workers.
    pub peak_open: u64,
    /// Largest number allowed.
    pub limit: u64,
    /// Connect time: from the connect call to the established connection (TCP handshake).
    pub connect_time: Histogram,
    /// TLS handshake time, after the connect.
    pub tls_time: Histogram,
    /// Requests per second, in [thousandths](RATE_UNITS), that each connection that was open at the end
    /// has taken since it was established. None if connections are used for one request.
    #[serde(default)]
    pub request_rates: Histogram,
    /// TLS sessions that were resumed.
    pub tls_resumed: u64,
    /// Remedy against the first TLS fault that has one.
    #[serde(default)]
    pub tls_hint: Option<Cow<'static, str>>,
    /// Time for which due arrivals waited because every connection was busy, summed over workers.
    pub blocked: Nanos,
    /// Time for which due arrivals waited while the limit of connections was reached: subset of `blocked`.
    pub blocked_at_limit: Nanos,
    /// Time for which due arrivals waited for, or were dropped for lack of, the first connection to their
    /// server, or the first one since all others were gone and one had taken too long: subset of `blocked`.
    #[serde(default)]
    pub blocked_unreached: Nanos,
    /// Requests allowed in flight on one connection (pipelined, or streams of HTTP/2); 0 is taken as 1.
    pub depth: u32,
    /// Counts specific to connections that spoke HTTP/2.
    pub http2: Http2Record,
    /// Counts of WebSockets.
    #[serde(default)]
    pub websocket: WebSocketRecord,
}

impl ConnectionRecord {
    /// The counts alone, without the distributions of times and without the counts by name.
    #[must_use]
    pub fn counts(&self) -> Self {
        let Http2Record { connections, stream_limit, streams_asked, cancelled, .. } = self.http2;
        let Http2Record { barred, blocked_while_barred, traffic, .. } = self.http2;
        let counted = Http2Record {
            connections,
            stream_limit,
            streams_asked,
            cancelled,
            barred,
            blocked_while_barred,
            traffic,
            ..Http2Record::default()
        };
        let (connect_time, tls_time, request_rates) = Default::default();
        let (address_changes, tls_hint, failed) = (Vec::new(), self.tls_hint.clone(), self.failed.clone());
        let http2 = counted;
        Self { address_changes, failed, connect_time, tls_time, request_rates, tls_hint, http2, ..*self }
    }

    /// Adds another worker's connections; limits and peaks add up too.
    pub fn merge(&mut self, other: &Self) {
        self.opened += other.opened;
        self.kept += other.kept;
        self.family_switches += other.family_switches;
        self.failed.merge(&other.failed);
        self.closed_idle += other.closed_idle;
        self.lost_on_kept += other.lost_on_kept;
        self.unsolicited += other.unsolicited;
        self.peak_open += other.peak_open;
        self.limit += other.limit;
        self.connect_time.merge(&other.connect_time);
        self.tls_time.merge(&other.tls_time);
        self.request_rates.merge(&other.request_rates);
        self.tls_resumed += other.tls_resumed;
        self.tls_hint = self.tls_hint.take().or_else(|| other.tls_hint.clone());
        self.blocked += other.blocked;
        self.blocked_at_limit += other.blocked_at_limit;
        self.blocked_unreached += other.blocked_unreached;
        self.depth = self.depth.max(other.depth);
        self.http2.merge(&other.http2);
        self.websocket.merge(&other.websocket);
    }
}

/// Counts of connections that spoke HTTP/2 (RFC 9113), beside those that every connection has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Http2Record {
    /// Connections that spoke it.
    pub connections: u64,
    /// The smallest SETTINGS_MAX_CONCURRENT_STREAMS that a server set for a new connection, zero aside;
    /// `None` if none set one.
    pub stream_limit: Option<u32>,
    /// Changes of it to zero, or to zero from the beginning, on a connection: no request is allowed there.
    #[serde(default)]
    pub barred: u64,
    /// Time for which due arrivals waited while a server allowed no streams on any connection to it, summed
    /// over workers: a subset of [`ConnectionRecord::blocked`].
    #[serde(default)]
    pub blocked_while_barred: Nanos,
    /// Streams that the plan wanted at once on one connection.
    pub streams_asked: u32,
    /// RST_STREAM frames received, by the name of their error code (RFC 9113 section 7).
    #[serde(default)]
    pub resets: BTreeMap<Cow<'static, str>, u64>,
    /// GOAWAY frames received, by the name of their error code.
    #[serde(default)]
    pub go_aways: BTreeMap<Cow<'static, str>, u64>,
    /// Violations of the protocol that were found in the peer, of which each ended a stream or a whole
    /// connection, by the name of the error code that it was sent.
    #[serde(default)]
    pub violations: BTreeMap<Cow<'static, str>, u64>,
    /// Streams that were given up by RST_STREAM with CANCEL, because their request had timed out.
    pub cancelled: u64,
    /// Bytes of messages.
    #[serde(default)]
    pub traffic: Http2Traffic,
    /// Round trips of PING frames.
    pub ping_time: Histogram,
}

/// Bytes of the messages on connections that spoke HTTP/2, without the heads of frames and padding. Counted
/// when a connection ends, or the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Http2Traffic {
    /// Header blocks of requests, compressed.
    pub heads_sent: u64,
    /// Header blocks of responses, compressed.
    pub heads_received: u64,
    /// Names and values of the fields in the blocks of responses, uncompressed.
    pub fields_received: u64,
    /// Content of responses.
    pub content_received: u64,
}

impl Http2Traffic {
    /// Adds those of another connection. They may be those of a file: a sum that no run can have is the
    /// largest number.
    pub const fn merge(&mut self, other: &Self) {
        self.heads_sent = self.heads_sent.saturating_add(other.heads_sent);
        self.heads_received = self.heads_received.saturating_add(other.heads_received);
        self.fields_received = self.fields_received.saturating_add(other.fields_received);
        self.content_received = self.content_received.saturating_add(other.content_received);
    }

    /// Part of the fields of responses that compression has saved, from 0 to 1; `None` without any.
    pub fn saved(&self) -> Option<f64> {
        let (sent, plain) = (self.heads_received as f64, self.fields_received as f64);
        (plain > 0.0).then(|| 1.0 - sent / plain)
    }
}

impl Http2Record {
    /// Returns `true` if nothing was counted: no connection spoke HTTP/2, nor tried to.
    pub fn is_empty(&self) -> bool {
        let codes = [&self.resets, &self.go_aways, &self.violations];
        self.connections == 0 && self.cancelled == 0 && codes.iter().all(|counts| counts.is_empty())
    }

    /// The limit that a server set, if it is below the wanted number of the plan: then it decided, not the
    /// plan.
    pub fn binding_limit(&self) -> Option<u32> {
        self.stream_limit.filter(|limit| *limit < self.streams_asked)
    }

    /// Adds another worker's connections; of the limits the smaller one stays.
    pub fn merge(&mut self, other: &Self) {
        self.connections += other.connections;
        self.stream_limit = match (self.stream_limit, other.stream_limit) {
            (Some(mine), Some(theirs)) => Some(mine.min(theirs)),
            (mine, theirs) => mine.or(theirs),
        };
        self.streams_asked = self.streams_asked.max(other.streams_asked);
        self.barred += other.barred;
        self.blocked_while_barred += other.blocked_while_barred;
        let codes = [
            (&mut self.resets, &other.resets),
            (&mut self.go_aways, &other.go_aways),
            (&mut self.violations, &other.violations),
        ];
        for (mine, theirs) in codes {
            for (code, count) in theirs {
                *mine.entry(code.clone()).or_default() += count;
            }
        }
        self.cancelled += other.cancelled;
        self.traffic.merge(&other.traffic);
        self.ping_time.merge(&other.ping_time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_and_the_smallest_limit_stays() {
        let mut ping_time = Histogram::new();
        ping_time.record(7);
        let one = Http2Record {
            connections: 2,
            stream_limit: Some(100),
            streams_asked: 50,
            barred: 2,
            blocked_while_barred: Nanos(5),
            resets: [("CANCEL".into(), 1), ("REFUSED_STREAM".into(), 2)].into(),
            go_aways: [("NO_ERROR".into(), 1)].into(),
            violations: [("PROTOCOL_ERROR".into(), 1)].into(),
            cancelled: 3,
            traffic: Http2Traffic {
                heads_sent: 4,
                heads_received: 10,
                fields_received: 40,
                content_received: 7,
            },
            ping_time,
        };
        assert_eq!((one.traffic.saved(), Http2Traffic::default().saved()), (Some(0.75), None));
        let other = Http2Record {
            connections: 1,
            stream_limit: Some(32),
            streams_asked: 50,
            resets: [("CANCEL".into(), 4)].into(),
            ..Http2Record::default()
        };
        let mut merged = Http2Record::default();
        assert!(merged.is_empty());
        merged.merge(&one);
        assert_eq!(merged, one);
        assert_eq!(merged.binding_limit(), None);
        merged.merge(&other);
        assert_eq!((merged.connections, merged.cancelled, merged.ping_time.count()), (3, 3, 1));
        assert_eq!(merged.resets, [("CANCEL".into(), 5), ("REFUSED_STREAM".into(), 2)].into());
        assert_eq!(merged.binding_limit(), Some(32));
        merged.merge(&Http2Record { traffic: one.traffic, ..Http2Record::default() });
        assert_eq!((merged.traffic.heads_sent, merged.traffic.content_received), (8, 14));
        assert_eq!((merged.stream_limit, merged.streams_asked), (Some(32), 50));
        assert!(!merged.is_empty());
    }

    #[test]
    fn a_peer_that_never_spoke_it_is_no_empty_record() {
        let violations = [("PROTOCOL_ERROR".into(), 1)].into();
        assert!(!Http2Record { violations, ..Http2Record::default() }.is_empty());
        // Streams that were asked for are not yet a use of HTTP/2.
        assert!(Http2Record { streams_asked: 100, ..Http2Record::default() }.is_empty());
    }
}
