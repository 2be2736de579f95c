//! Facts about a run that its record does not have.

use plimsoll_core::{Nanos, figure};
use plimsoll_metrics::RunRecord;
use plimsoll_metrics::verdict::{Reason, ReasonCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::contract::agent::TakenOver;
use crate::contract::calibration::CalibrationUse;
use crate::contract::slow::SlowRecord;

/// Facts about a run that its record does not have and that the caller knows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RunContext {
    /// Name of the program.
    pub tool_name: String,
    /// Version of the program.
    pub tool_version: String,
    /// Name of the run: the user's, else the name of its plan, else that of the plan's file; `None` without
    /// any.
    pub name: Option<String>,
    /// Identity of the run.
    pub run_id: String,
    /// Seed of every random choice.
    pub seed: u64,
    /// The part of the load that the run carried out, such as `2/3`; `None`: all of it.
    pub shard: Option<String>,
    /// From when on it has that part, if another run began it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken_over: Option<TakenOver>,
    /// The command line, with secrets already redacted.
    pub args: Vec<String>,
    /// Hash of the resolved plan.
    pub plan_hash: String,
    /// Checksum of the load that the plan makes of the seed.
    pub load_checksum: String,
    /// The targets, in the order of [`RunRecord::peers`](plimsoll_metrics::RunRecord::peers).
    pub targets: Vec<TargetContext>,
    /// The load, in words and figures.
    pub model: ModelContext,
    /// The machine that generated the load.
    pub host: Host,
    /// Findings of the first contact with the server, if it was made before the run.
    pub preflight: Option<Preflight>,
    /// The setup before the load, if the plan has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<OnceResult>,
    /// The refreshes of values of the setup, if the plan has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh: Option<RefreshResult>,
    /// The teardown after it, if the plan has one and it was carried out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub teardown: Option<OnceResult>,
    /// Share of the machine's calibrated limit that the run has used, if that is known.
    pub calibration: Option<CalibrationUse>,
    /// `true` if the run is one of several of the same plan. The result of a run that is alone notes that it
    /// is.
    pub repeated: bool,
    /// `true` if the result keeps the values of each slice of the run.
    pub slices: bool,
    /// Link to the trace of a request, with [`TRACE_ID`] for its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_link: Option<String>,
    /// Records that each request carries, by step of the plan; 0 or missing for one that carries none.
    pub records: Vec<u32>,
    /// The record of a probe beside the load, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<Box<RunRecord>>,
    /// The record of clients that were slow on purpose, beside the load, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow: Option<SlowRecord>,
    /// Requests of the first contact, which a run that is cut short accounts for.
    pub unmeasured: u64,
}

/// Placeholder for the id of a trace in a [link](RunContext::trace_link).
pub const TRACE_ID: &str = "${trace_id}";

/// A server under load, as the plan has it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TargetContext {
    /// The URLs that address it, without user and password.
    pub urls: Vec<String>,
    /// `host[:port]` as in these URLs.
    pub authority: String,
}

/// The load of a run, in words and figures.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelContext {
    /// One or more lines for people, the first naming the model: `open: 1,000/s uniform for 10 s, …`.
    pub description: Vec<String>,
    /// `uniform` or `poisson`, in the open model.
    pub arrivals: Option<String>,
    /// Connections opened at the start, over all workers and targets.
    pub connections: u64,
    /// Requests in flight at most on one connection.
    pub depth: u64,
}

/// The machine that generated the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Host name of the machine.
    pub hostname: String,
    /// Name and version of its kernel.
    pub kernel: String,
    /// Model of its CPU.
    pub cpu_model: String,
    /// CPUs that the generator may use.
    pub cpus: u64,
    /// CPU frequency governor, null if the system does not report it.
    pub governor: Option<String>,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Soft limit of open file descriptors.
    pub soft_descriptors: u64,
    /// Their hard limit; null if there is none.
    #[serde(default)]
    pub hard_descriptors: Option<u64>,
    /// Hypervisor or container that it runs in, by the name that this gives itself; null where none was
    /// noticed.
    #[serde(default)]
    pub virtualisation: Option<String>,
    /// Clock source of its kernel, e.g. "tsc".
    #[serde(default)]
    pub clock_source: Option<String>,
    /// Weaknesses of its CPU against which its kernel does something, at the cost of speed.
    #[serde(default)]
    pub mitigations: Vec<String>,
    /// Processors' worth of time that the control groups of the generator allow; null: as much as there is.
    #[serde(default)]
    pub cpu_limit: Option<f64>,
    /// Memory in bytes that the control groups of the generator allow; null: as much as there is.
    #[serde(default)]
    pub memory_limit_bytes: Option<u64>,
    /// Local ports that connections may get: the first and the last.
    #[serde(default)]
    pub port_range: Option<[u64; 2]>,
    /// Connections that may wait to be accepted, at most (net.core.somaxconn).
    #[serde(default)]
    pub accept_queue: Option<u64>,
}

/// Findings of the first contact with the server, before the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Preflight {
    /// The step whose request was sent; null if the server was only connected to, because no request of the
    /// plan is known to change nothing. Missing in older results.
    #[serde(default)]
    pub request: Option<String>,
    /// Status of its response; null if none was sent, or none was answered in time.
    pub status: Option<u16>,
    /// Negotiated application protocol.
    pub protocol: String,
    /// TLS version, null without TLS.
    pub tls_version: Option<String>,
    /// TLS cipher suite, null without TLS.
    pub cipher: Option<String>,
    /// Address that answered.
    pub address: String,
    /// Addresses of targets that no connection could be made to, with the reason: those of the other family,
    /// IPv4 or IPv6, are used. Left away if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed_over: Vec<String>,
}

/// The refreshes of values of the setup beside the load. Their requests are in no figure of the load, but in
/// accounting.unmeasured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefreshResult {
    /// Number of refreshes.
    pub times: u64,
    /// Of them those that failed: the values before were kept.
    pub failed: u64,
    /// Requests of all of them.
    pub requests: u64,
    /// The step that ended the last one that failed, and why; omitted if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<String>,
}

impl RefreshResult {
    /// The warning about refreshes that failed.
    pub fn warning(&self) -> Option<Reason> {
        self.last_failure.as_ref().map(|failure| Reason {
            code: ReasonCode::RefreshFailed,
            evidence: format!(
                "{} of {} refreshes failed, the last one: {failure}",
                figure::count(self.failed),
                figure::count(self.times)
            ),
            hint: "requests went on with the values before; see whether they were refused".to_owned(),
        })
    }
}

/// The setup or the teardown of a plan, whose requests are sent once and are in no figure of the load, but in
/// accounting.unmeasured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OnceResult {
    /// Requests that it started.
    pub requests: u64,
    /// Of them those that failed or timed out.
    pub failed: u64,
    /// From its first request to the end of the last, in nanoseconds.
    pub duration_ns: u64,
    /// The step that ended it early, and why; omitted if it came to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl OnceResult {
    /// Describes it in a few words: `2 requests, 31 ms`.
    pub fn words(&self) -> String {
        let requests = if self.requests == 1 { "request" } else { "requests" };
        let length = figure::nanos(Nanos(self.duration_ns));
        format!("{} {requests}, {length}", figure::count(self.requests))
    }

    /// The warning about a teardown that did not come to its end.
    pub fn warning(&self) -> Option<Reason> {
        self.failure.as_ref().map(|failure| Reason {
            code: ReasonCode::TeardownFailed,
            evidence: format!("the teardown failed: {failure}"),
            hint: "the figures are those of the load; what the teardown was to undo may be left".to_owned(),
        })
    }
}
