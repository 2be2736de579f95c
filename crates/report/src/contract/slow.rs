//! Figures of clients that were slow on purpose, beside the load.

use std::collections::BTreeMap;

use plimsoll_metrics::RunRecord;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::build::assembly::by_class;
use crate::contract::summary::Summary;

/// The record of clients that were slow on purpose, and how slow they were.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SlowRecord {
    /// Number of clients.
    pub clients: u64,
    /// Most bytes per second that each of them sent, and read.
    pub bytes_per_s: u64,
    /// The record of their requests.
    pub record: Box<RunRecord>,
}

/// Clients that were slow on purpose, beside the load: each has a connection of its own, makes the requests
/// of the plan one after the other, and sends and reads this many bytes per second. They are in no other
/// figure of the result but in accounting.unmeasured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowClientsResult {
    /// Connections at once at most.
    pub clients: u64,
    /// Most bytes per second that each of them sent, and read.
    pub bytes_per_s: u64,
    /// Connections that they opened. More than there are clients: servers have closed some.
    pub connections: u64,
    /// Requests that they began.
    pub started: u64,
    /// Of these, those that were answered well.
    pub ok: u64,
    /// Of these, those that failed: the server has ended them, say.
    pub failed: u64,
    /// Of these, those that were under way at the end.
    pub in_flight_at_stop: u64,
    /// The failed ones by class.
    pub errors: BTreeMap<String, u64>,
    /// Message of the first error of each class.
    pub error_examples: BTreeMap<String, String>,
    /// From the first byte of a request to the last of its response: mostly their own doing.
    pub service_time: Summary,
}

impl SlowClientsResult {
    pub(crate) fn new(slow: &SlowRecord) -> Self {
        let SlowRecord { clients, bytes_per_s, record } = slow;
        let accounting = &record.accounting;
        Self {
            clients: *clients,
            bytes_per_s: *bytes_per_s,
            connections: record.connections.opened,
            started: accounting.started,
            ok: accounting.ok,
            failed: accounting.failed + accounting.timed_out,
            in_flight_at_stop: accounting.in_flight_at_stop,
            errors: by_class(&record.total.errors),
            error_examples: record.error_examples.clone(),
            service_time: Summary::exact(&record.total.service_time),
        }
    }
}
