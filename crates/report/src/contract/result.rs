//! The result contract: one versioned object that says everything about a run.
//!
//! Times are whole numbers of nanoseconds, in objects that say so (`unit`) or fields whose names do; other
//! units are in the field's name. The documentation of each field is its description in the JSON Schema.

use std::collections::BTreeMap;

use plimsoll_core::{ErrorClass, Nanos, is_zero};
pub use plimsoll_metrics::threshold::DecidingSeries;
pub use plimsoll_metrics::{
    Accounting as AccountingResult, Cause as CauseResult, IterationRecord as IterationResult,
    LogRecord as LogResult, Model as ModelKind, RunOutcome as OutcomeResult,
};
use plimsoll_metrics::{EarlyEnd, EndedBy, WebSocketRecord};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::build::fault::FaultResult;
use crate::contract::agent::{AgentResult, TakenOver};
use crate::contract::calibration::CalibrationUse;
use crate::contract::context::{Host, OnceResult, Preflight, RefreshResult};
use crate::contract::event_streams::EventStreamsResult;
use crate::contract::example::ErrorExampleResult;
use crate::contract::machine::{MachineSummary, MachineUse, TargetProcessResult};
use crate::contract::metric::{IntervalMetric, OwnMetric};
use crate::contract::phase::PhaseResult;
use crate::contract::probe::ProbeResult;
use crate::contract::reconciliation::Reconciliation;
use crate::contract::records::RecordsResult;
use crate::contract::slices::SlicesResult;
use crate::contract::slow::SlowClientsResult;
use crate::contract::slowest::SlowRequestResult;
use crate::contract::summary::Summary;
use crate::contract::traffic::{Http2TrafficResult, RateSpread};
use crate::contract::watched::{TrendsResult, WatchedResult};

/// The result of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunResult {
    /// Version of this contract.
    pub schema_version: u32,
    /// The program that made the run.
    pub tool: Tool,
    /// Identity and circumstances of the run.
    pub run: Run,
    /// The load: its model, and its limits.
    pub model: ModelResult,
    /// The methods by which the figures were made.
    #[serde(default)]
    pub methods: Methods,
    /// Facts that this run alone cannot show, and remarks on its result.
    #[serde(default)]
    pub notes: Vec<Note>,
    /// Outcome of the run, and validity of the measurement.
    pub verdict: VerdictResult,
    /// Steadiness of the run: whether it was steady, and from when on. Nothing is left out of the figures for
    /// it.
    #[serde(default)]
    pub steady: SteadyResult,
    /// Times in which the target owed answers and gave none, in their order. Left away if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub standstills: Vec<StandstillResult>,
    /// Little's law as a check of the generator's own bookkeeping; null in the closed model, and for runs
    /// of fewer than 5 intervals.
    #[serde(default)]
    pub little: Option<LittleResult>,
    /// Accounting of every arrival and every request: scheduled = started + dropped + never_started +
    /// unknown, and started = ok + failed + timed_out + aborted + in_flight_at_stop.
    pub accounting: AccountingResult,
    /// Accounting of every started iteration: started = completed + failed + unfinished. An iteration is one
    /// pass through the steps of its scenario; where all of these have one step, it is one request.
    #[serde(default)]
    pub iterations: IterationResult,
    /// Requests and iterations per second over the measured part.
    pub rate: Rate,
    /// Length of the measured part in seconds: from the end of the warm-up to the end of the load.
    pub duration_s: f64,
    /// Length of the warm-up in seconds. Nothing of its requests is in the figures, except in intervals and
    /// error_examples; figures of connections that cover it say so.
    pub warmup_s: f64,
    /// Time in seconds for which responses were waited for after the end of the load.
    pub drain_s: f64,
    /// Bytes on the wire, without the framing of TLS.
    pub bytes: Bytes,
    /// Responses by negotiated protocol.
    pub protocols: BTreeMap<String, u64>,
    /// Connections by TLS version, those of the warm-up included.
    pub tls_versions: BTreeMap<String, u64>,
    /// From when a request should have started until its last byte came: good responses, and timed-out
    /// requests as lower bounds.
    pub response_time: Summary,
    /// From when a request was sent until its last byte came, of the same requests.
    pub service_time: Summary,
    /// From when a request should have started until the generator took it up, of every started request.
    pub start_lag: Summary,
    /// From the connect call until the connection was established, warm-up included.
    pub connect_time: Summary,
    /// The TLS handshake, after the connect, warm-up included.
    pub tls_time: Summary,
    /// From when a request was sent until the first byte of its response came, of good responses.
    pub first_byte_time: Summary,
    /// As response_time, of failed requests: kept apart so that fast errors do not flatter the percentiles.
    pub failed_response_time: Summary,
    /// From the time that a message has in it until it came, of messages on WebSockets whose steps have
    /// `lag`; left away if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag: Option<Summary>,
    /// The requests that met a stall of the generator, which may have made them slow; null if none did.
    #[serde(default)]
    pub in_stall: Option<InStall>,
    /// Responses by status code.
    pub statuses: BTreeMap<String, u64>,
    /// Failed requests by class.
    pub errors: BTreeMap<String, u64>,
    /// Message of the first error of each class, warm-up included.
    pub error_examples: BTreeMap<String, String>,
    /// Events on connections in the whole run, warm-up included.
    pub connections: Connections,
    /// Events on connections that spoke HTTP/2 in the whole run, warm-up included; null if none did.
    #[serde(default)]
    pub http2: Option<Http2Result>,
    /// WebSockets of the whole run, and the messages on them in its measured part; left away if there were
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub websocket: Option<WebSocketRecord>,
    /// Results of the thresholds of the plan, in its order.
    #[serde(default)]
    pub thresholds: Vec<ThresholdOutcome>,
    /// Counts of the log of single requests and of the failed ones that were to be kept; null without either.
    #[serde(default)]
    pub log: Option<LogResult>,
    /// Exports to monitoring systems while the run went on; empty if there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exports: Vec<ExportResult>,
    /// The figures of each step of the plan.
    pub by_step: Vec<StepResult>,
    /// The phases of the plan, in their order; empty if it names none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseResult>,
    /// The run second by second, or in intervals of another length if the plan says so, cut at the ends of
    /// phases; warm-up and drain included. Of a long run neighbours are joined: at most 3,600 are kept, one
    /// more for each phase, and 1,200 pieces of them where requests failed in a part only.
    pub intervals: Vec<IntervalResult>,
    /// The values of each part of the run, so that single runs can be compared; null unless they were asked
    /// for.
    #[serde(default)]
    pub slices: Option<SlicesResult>,
    /// Figures of a probe beside the load; null if there was none.
    #[serde(default)]
    pub probe: Option<ProbeResult>,
    /// Figures of clients that were slow on purpose, beside the load; missing where there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_clients: Option<SlowClientsResult>,
    /// The records that the requests carried; missing where they carry none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<RecordsResult>,
    /// Streams of events among the responses, and the tokens in them; missing where no step has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_streams: Option<EventStreamsResult>,
    /// Metrics that the steps of the plan record, of its measured part; missing where there are none, and in
    /// results of runs that did not come to their end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<OwnMetric>,
    /// The agents that carried the load out, in the order of their shards; missing where there is no fleet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentResult>,
    /// Faults injected while the run went on, in the order of time; missing where there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<FaultResult>,
    /// Comparison of the store with what it acknowledged; missing where it was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconciliation: Option<Reconciliation>,
    /// Cost of the generator itself, and its timeliness.
    pub generator: Generator,
}

/// The methods by which the figures of a result were made. Formulas and sources are in docs/statistics.md.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Methods {
    /// Definition of a percentile of the values.
    pub percentile: String,
    /// Method for the interval of a percentile.
    pub percentile_interval: String,
    /// Method for the time from which on a run was steady.
    pub steady: String,
    /// From when response times count.
    pub response_time: String,
}

/// Something that should be known about a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// Topic of the note.
    pub code: String,
    /// One sentence.
    pub text: String,
}

/// Steadiness of a run by throughput, p50 and p99 of its intervals: whether it was steady, and from when on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SteadyResult {
    /// Steady, never steady, or unknown.
    pub state: SteadyState,
    /// From when on, in seconds since the start of the run, warm-up included; null unless it was steady.
    pub from_s: Option<f64>,
    /// Reason why it was not, or why that cannot be said; null if it was steady.
    pub reason: Option<String>,
}

/// Steadiness of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SteadyState {
    /// The run was steady from a time on.
    Steady,
    /// The run was not steady before it ended.
    Never,
    /// Unknown: the run was too short, or its load changed.
    #[default]
    Unknown,
}

/// Little's law: the mean number of requests in flight is their rate times the mean time that they are in
/// flight.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LittleResult {
    /// Mean number in flight, as counted at the ends of intervals.
    pub in_flight: f64,
    /// Half the width of its 95 % interval.
    pub in_flight_error: f64,
    /// Requests started per second times the mean time from start to end.
    pub rate_times_time: f64,
    /// True if both agree within the interval, 1 % and one request.
    pub holds: bool,
}

/// The program that made the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// Name of the program.
    pub name: String,
    /// Version of the program.
    pub version: String,
}

/// Identity and circumstances of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Identity of the run.
    pub id: String,
    /// Name of the run: from `--name`, else from its plan, else that of the plan's file; omitted without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Seed of every random choice: the same seed makes the same load.
    pub seed: u64,
    /// The part of the load that the run carried out, such as "2/3" for the second of three shards; omitted
    /// where it is all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<String>,
    /// From when on it has that part; omitted unless it took it over from a lost agent of a fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_over: Option<TakenOver>,
    /// When the run started: RFC 3339, UTC.
    pub started_at: String,
    /// When the run started: Unix time in nanoseconds.
    pub started_at_unix_ns: u64,
    /// When the run started, on the clock of the generator's machine (CLOCK_MONOTONIC), in nanoseconds.
    pub started_at_monotonic_ns: u64,
    /// The command line, without secrets.
    pub args: Vec<String>,
    /// Hash of the resolved plan.
    pub plan_hash: String,
    /// Checksum of the load that the plan makes of the seed: intended times, scenarios and requests as they
    /// are before any response. Runs with the same one were given the same load; null in older results.
    #[serde(default)]
    pub load_checksum: Option<String>,
    /// Link to the trace of a request, with `${trace_id}` for its id; omitted without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_link: Option<String>,
    /// The machine that generated the load.
    pub host: Host,
    /// The servers under load.
    pub targets: Vec<Target>,
    /// Findings of the first contact with the server, before the run; null if there was none.
    pub preflight: Option<Preflight>,
    /// The setup before the load; omitted if the plan has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<OnceResult>,
    /// The refreshes of values of the setup; omitted if the plan has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh: Option<RefreshResult>,
    /// The teardown after it; omitted if the plan has none, or if it was not carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teardown: Option<OnceResult>,
    /// Planned length of the measured part; omitted if the plan has none, or counts iterations. duration_s is
    /// less where the load ended early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_s: Option<f64>,
    /// The end of an open load by itself, before its planned length; omitted if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early_end: Option<EarlyEndResult>,
    /// Number of the signal that interrupted the run; null if none did.
    pub interrupted_by_signal: Option<i32>,
    /// The threshold that ended the run before its time; null if none did.
    #[serde(default)]
    pub ended_by_threshold: Option<String>,
    /// Source that ended the run before its time, other than a signal: "http" for the control port, "key" for
    /// a key on the terminal, "orphaned" for the agent of a fleet whose coordinator was silent, "agent_left"
    /// for one that was told to end; null without one.
    #[serde(default)]
    pub stopped_by: Option<String>,
}

/// The end of an open load by itself, before its planned length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EarlyEndResult {
    /// Reason: "data" for rows that had ended, "script" for a script that asked for the end. With a script
    /// the run keeps its length, and rates are over that.
    pub by: String,
    /// The data source that had no row left; omitted if it was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// Time in the measured part up to the first arrival that was not started for this reason; zero if that
    /// was in the warm-up.
    pub after_s: f64,
}

impl EarlyEndResult {
    pub(crate) fn new(end: &EarlyEnd) -> Self {
        Self {
            by: end.by.name().to_owned(),
            data: end.by.data().map(str::to_owned),
            after_s: end.after.as_secs_f64(),
        }
    }

    /// The end as a record has it; `None` for a reason that this version does not know.
    pub(crate) fn record(&self) -> Option<EarlyEnd> {
        let by = match (&*self.by, &self.data) {
            ("data", Some(name)) => EndedBy::Data(name.clone()),
            ("script", _) => EndedBy::Script,
            _ => return None,
        };
        Some(EarlyEnd { by, after: Nanos::from_secs_f64(self.after_s) })
    }
}

impl Run {
    /// The command line as a shell takes it: pasted there, it is the same command.
    pub fn command_line(&self) -> String {
        shell_line(&self.args)
    }
}

/// Arguments as a shell takes them: pasted there, they are the same arguments.
pub fn shell_line(args: &[String]) -> String {
    // Arguments of a process have no NUL, the only thing that cannot be quoted.
    shlex::try_join(args.iter().map(String::as_str)).unwrap_or_else(|_| args.join(" "))
}

/// A server under load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Target {
    /// The URLs that address it, without user and password.
    pub urls: Vec<String>,
    /// Authority of the target, as in `urls`: host, and port if one was given.
    pub authority: String,
    /// The addresses that were used.
    pub addresses: Vec<String>,
    /// Addresses of the other family, IPv4 or IPv6, which were known and not needed. Left away if there are
    /// none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unused_addresses: Vec<String>,
    /// Negotiated application protocol.
    pub protocol: String,
    /// TLS version, null without TLS.
    pub tls_version: Option<String>,
    /// TLS cipher suite, null without TLS.
    pub tls_cipher: Option<String>,
}

/// The load of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelResult {
    /// Open or closed.
    pub kind: ModelKind,
    /// The load in words.
    pub description: Vec<String>,
    /// Distribution of arrivals over time ("uniform", "poisson"); null in the closed model.
    pub arrivals: Option<String>,
    /// Connections opened at the start, over all workers and targets.
    pub connections: u64,
    /// Requests in flight at most on one connection: pipelined, or as streams of HTTP/2.
    pub depth: u64,
    /// Longest delay of a request on purpose, to share a wake-up with others.
    pub pacing_budget_ns: u64,
}

/// Outcome of the run, and validity of the measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerdictResult {
    /// The outcome, which every report begins with.
    #[serde(default)]
    pub outcome: OutcomeResult,
    /// Reason why it is "fail" or "no_verdict"; null otherwise.
    #[serde(default)]
    pub cause: Option<CauseResult>,
    /// The outcome in one line for people, without its first word.
    #[serde(default)]
    pub summary: String,
    /// True if the measurement is valid. Requests that failed by the target's doing are a measurement like
    /// any other.
    pub valid: bool,
    /// Codes of the reasons why not.
    pub invalid_reasons: Vec<String>,
    /// Reasons why the measurement is not valid, with evidence and hints.
    pub evidence: Vec<Finding>,
    /// Findings that do not make the run invalid, but deserve attention.
    pub warnings: Vec<Finding>,
    /// Results of all thresholds of the plan together.
    pub thresholds: Thresholds,
    /// The factor that kept the run from more.
    #[serde(default)]
    pub limited_by: LimitedByResult,
}

/// The factor that kept the run from more: from its rate or level response times (open model), or from a
/// higher throughput (closed model, which something always limits).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitedByResult {
    /// "target", "generator" (this process or its machine), "network", "connection_limit" (that of
    /// connections, streams or users), "none", or "unknown".
    pub what: String,
    /// One sentence with figures.
    pub evidence: String,
    /// Advice on changes; empty if there is nothing to change.
    pub hint: String,
}

/// The requests that met a stall of their worker: due or in flight in it, and ended after its begin. They are
/// among all others in the result, because a user would have waited for them; but that they were slow may not
/// be the target's doing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InStall {
    /// Their response times.
    pub response_time: Summary,
    /// Their service times.
    pub service_time: Summary,
    /// The response times of all others.
    pub response_time_without: Summary,
    /// The service times of all others.
    pub service_time_without: Summary,
}

/// One finding about the generator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Which rule found it.
    pub code: String,
    /// One sentence with figures.
    pub evidence: String,
    /// Advice on changes.
    pub hint: String,
}

/// Results of all thresholds of a plan together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Thresholds {
    /// All were met.
    Pass,
    /// At least one was not, or was not shown to be: `cause` says which.
    Fail,
    /// The plan has none.
    None,
}

/// The result of one threshold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThresholdOutcome {
    /// The condition that had to hold, in its canonical spelling.
    pub text: String,
    /// The scenario that it is about; null: all.
    pub scenario: Option<String>,
    /// The step that it is about; null: all.
    pub step: Option<String>,
    /// The phase that it is about; null: all.
    #[serde(default)]
    pub phase: Option<String>,
    /// Length in seconds of the sliding windows in each of which it had to hold; null: over the run.
    pub window_s: Option<f64>,
    /// True if it was shown to hold. If not, and without `reason`, it was shown not to.
    pub passed: bool,
    /// The figure over the run; of windows, that of the first which failed, else of the first which shows
    /// nothing, else the worst. Null without data.
    pub observed: Option<ObservedResult>,
    /// Reason why it could not be shown to hold; null if the figure says it.
    pub reason: Option<String>,
    /// Set where a percentile of what was due lies among the requests that were not answered well, so that
    /// there is no figure: their shares, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreached: Option<String>,
    /// The series that decided, of a query that a Prometheus server answered with a number; left away without
    /// one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<DecidingSeries>,
    /// The windows; null over the run.
    pub windows: Option<WindowsResult>,
    /// True if it ended the run before its time.
    pub ended_run: bool,
    /// True if the result is proven. A valid measurement proves it, unless the figure shows neither that the
    /// threshold holds nor that it does not, or it fails by the start lag, which is the generator's own:
    /// without that lag it holds. An invalid one proves only that the threshold did not hold, where errors
    /// that the target itself answered suffice for that, or nothing succeeded.
    #[serde(default)]
    pub proven: bool,
}

/// The value of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObservedResult {
    /// The value.
    pub value: f64,
    /// Unit of the value: "ns", "percent", "count", "bytes", "per_s", or "number" of one without a unit.
    pub unit: String,
    /// True if it is only a lower bound, because of timeouts.
    pub at_least: bool,
    /// The value for people.
    pub text: String,
}

/// The windows of a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WindowsResult {
    /// Number of windows that were judged.
    pub judged: u64,
    /// Number of them that failed.
    pub failed: u64,
    /// Number of them that showed neither that it holds nor that it does not: without data, or with too few.
    #[serde(default)]
    pub open: u64,
    /// The end of the first that failed, in seconds since the start of the run, warm-up included; null if
    /// none did.
    pub first_failed_at_s: Option<f64>,
}

/// An export to a monitoring system while the run went on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExportResult {
    /// "prometheus" (a server asked for them) or "otlp" (they were sent).
    pub kind: String,
    /// The address that it scraped, or that they were sent to.
    pub to: String,
    /// Number of times that the figures were given, or taken by the receiver.
    pub sent: u64,
    /// Number of times that the receiver did not take them.
    pub failed: u64,
    /// Reason why it did not the last time; null if it always did.
    pub last_error: Option<String>,
}

/// Requests and iterations per second over the measured part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rate {
    /// Mean rate of the iterations that the plan asked for in the measured part, by its rates and not by
    /// chance, due or not; null in the closed model. Where every iteration is one request, or paces_requests
    /// is true, these are requests.
    pub target_per_s: Option<f64>,
    /// True if the plan asked for requests of iterations of any length (`rate_of: requests`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paces_requests: bool,
    /// Whole responses of any status that came within the measured part, also to requests of the warm-up, per
    /// second; null if it had no length.
    pub achieved_per_s: Option<f64>,
    /// Requests started; null if the measured part had no length.
    pub started_per_s: Option<f64>,
    /// Iterations started, which target_per_s asked for; null if the measured part had no length.
    #[serde(default)]
    pub iterations_started_per_s: Option<f64>,
    /// Changes of the rate while the run went on, in the order of time. target_per_s is the mean with these
    /// changes.
    #[serde(default)]
    pub changes: Vec<RateChangeResult>,
}

/// One change of the rate while the run went on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateChangeResult {
    /// From when it applied, in seconds since the start of the run, warm-up included.
    pub at_s: f64,
    /// "rate" for another rate, "pause", or "resume" for the end of a pause.
    pub what: String,
    /// Iterations per second that were asked for just before; null in the closed model.
    pub from_per_s: Option<f64>,
    /// Iterations per second that were asked for from there on; null in the closed model.
    pub to_per_s: Option<f64>,
    /// Origin of the change: "file" (--rate-file), "http" (--control), "key" (the terminal).
    pub by: String,
}

/// Bytes on the wire, without the framing of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bytes {
    /// Of requests.
    pub sent: u64,
    /// Of responses.
    pub received: u64,
}

/// A time in which the target owed answers and gave none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StandstillResult {
    /// The last answer before it, in seconds since the start of the run, warm-up included; where nothing was
    /// in flight after that, the end of the last interval of which that is so.
    pub from_s: f64,
    /// The first answer after it; the end of the run without any.
    pub to_s: f64,
    /// Largest number of requests in flight, at the end of an interval or just before the first answer.
    pub in_flight: u64,
}

/// A change of the addresses to which the name of a target led, seen when it was resolved again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AddressChangeResult {
    /// When it was seen, in seconds since the start of the run, warm-up included.
    pub at_s: f64,
    /// The server, `host[:port]`.
    pub target: String,
    /// Addresses that new connections went to from then on. Left away if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
    /// Addresses that no new connections went to from then on. Left away if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    /// Reason why the name could not be resolved: its addresses stayed. Left away if it could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl AddressChangeResult {
    /// `a.test:80 at 30.0 s: 192.0.2.2:80 added, 192.0.2.1:80 removed`
    pub(crate) fn said(&self) -> String {
        let of = |addresses: &[String], word: &str| {
            (!addresses.is_empty()).then(|| format!("{} {word}", addresses.join(", ")))
        };
        let parts = [of(&self.added, "added"), of(&self.removed, "removed"), self.error.clone()];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        format!("{} at {:.1} s: {}", self.target, self.at_s, parts.join(", "))
    }
}

/// Events on connections in the whole run, warm-up included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Connections {
    /// Connections that were established.
    pub opened: u64,
    /// Changes of a thread to the addresses of the other family, IPv4 or IPv6, because no connection could be
    /// made to those in use. Left away if there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub family_switches: u64,
    /// Changes of the addresses to which names led while the run went on, in their order, the first hundred.
    /// Left away if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub address_changes: Vec<AddressChangeResult>,
    /// Attempts that failed, by class.
    pub failed: BTreeMap<String, u64>,
    /// Connections that the target closed while it owed no response.
    pub closed_idle: u64,
    /// Connections that were given up because of data that no request had asked for: more responses than
    /// requests, or bytes behind the end of one. Times of requests on them may be those of others. Left away
    /// if there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unsolicited: u64,
    /// Largest number open at once, summed over workers.
    pub peak_open: u64,
    /// Largest number allowed.
    pub limit: u64,
    /// TLS sessions that were resumed.
    pub tls_resumed: u64,
    /// Time in seconds for which due arrivals waited because every connection, or with HTTP/2 every stream,
    /// was busy, summed over workers. Of the measured part only.
    pub blocked_s: f64,
    /// Part of it for which the limit of connections was reached.
    pub blocked_at_limit_s: f64,
    /// Part of `blocked_s` for which the target took no connection: due arrivals waited for the first one to
    /// it, or for one after all others were gone. Left away if it is 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub blocked_unreached_s: f64,
    /// Requests per second that each connection that was open at the end of the load has taken since it was
    /// established. Left away if there are none, and if connections are used for one request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_s: Option<RateSpread>,
}

/// Events on connections that spoke HTTP/2 (RFC 9113) in the whole run, warm-up included. Error codes are
/// named as in its section 7.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Http2Result {
    /// Connections that spoke it.
    pub connections: u64,
    /// Streams that the plan wanted at once on one connection.
    pub streams_asked: u64,
    /// The smallest number of concurrent streams that a server allowed on a new connection, none aside; null
    /// if none set a limit. If it is below streams_asked, it decided how many requests were in flight.
    pub stream_limit: Option<u64>,
    /// Connections on which a server allowed no streams (SETTINGS_MAX_CONCURRENT_STREAMS = 0), from the
    /// beginning or later; one on which it did so again counts again. Left away if there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub barred: u64,
    /// Time in seconds for which due arrivals waited while a server allowed no streams, summed over workers.
    /// Left away if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_while_barred_s: Option<f64>,
    /// Streams that the server reset, by error code; REFUSED_STREAM among them.
    pub resets: BTreeMap<String, u64>,
    /// Announcements of the server that it goes away (GOAWAY), by error code.
    pub go_aways: BTreeMap<String, u64>,
    /// Violations of the protocol by the server, of which each ended a stream or a whole connection, by the
    /// error code that it was sent.
    pub violations: BTreeMap<String, u64>,
    /// Streams given up by the generator because their request had timed out.
    pub cancelled: u64,
    /// Bytes of messages, and what compression saved. Left away if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Http2TrafficResult>,
    /// Round trips of PING frames, warm-up included.
    pub ping_time: Summary,
}

/// The figures of one step of the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepResult {
    /// Name of its scenario.
    pub scenario: String,
    /// Name of the step.
    pub step: String,
    /// Requests that ended with a whole response of a status below 400.
    pub ok: u64,
    /// Requests that ended without a good response.
    pub failed: u64,
    /// Requests without a whole response within the timeout.
    pub timed_out: u64,
    /// End of the last of the at most 30 parts of the measured time in which a request of it ended well, in
    /// seconds since the start of the run, warm-up included. Left away if there is none, or if that is not
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_ok_s: Option<f64>,
    /// Bytes on the wire.
    pub bytes: Bytes,
    /// As in the whole result.
    pub response_time: Summary,
    /// As in the whole result.
    pub service_time: Summary,
    /// As in the whole result.
    pub start_lag: Summary,
    /// As in the whole result.
    pub first_byte_time: Summary,
    /// As in the whole result.
    pub failed_response_time: Summary,
    /// Responses by status code.
    pub statuses: BTreeMap<String, u64>,
    /// Failed requests by class.
    pub errors: BTreeMap<String, u64>,
    /// The first failed request of each class, by the name of that; "timed_out" is the first without a
    /// response in time. Missing in older results.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub error_examples: BTreeMap<String, ErrorExampleResult>,
    /// The slowest requests, at most five, the slowest one first. Missing in older results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slowest: Vec<SlowRequestResult>,
    /// As in the whole result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_streams: Option<EventStreamsResult>,
    /// As in the whole result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag: Option<Summary>,
}

impl StepResult {
    /// Requests without an answer when the run ended. Results of earlier versions, whose start lags lack
    /// these, have none.
    pub fn unanswered(&self) -> u64 {
        let aborted = self.errors.get(ErrorClass::AbortedByUs.name()).copied().unwrap_or(0);
        let ended = [self.ok, self.failed, self.timed_out, aborted].into_iter().fold(0, u64::saturating_add);
        self.start_lag.count.saturating_sub(ended)
    }
}

/// One second of the run, or the last part of one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IntervalResult {
    /// End of the interval in seconds since the start of the run, warm-up included.
    pub at_s: f64,
    /// Length of the interval in seconds.
    pub length_s: f64,
    /// True if it belongs to the warm-up.
    pub warmup: bool,
    /// True if it is the drain, after the end of the load.
    #[serde(default)]
    pub drain: bool,
    /// True if it belongs to the measured part before the run was steady.
    #[serde(default)]
    pub settling: bool,
    /// Arrivals that fell due in it (open model).
    pub scheduled: u64,
    /// Requests started in it.
    pub started: u64,
    /// Requests that ended well in it.
    pub ok: u64,
    /// Requests that failed in it.
    pub failed: u64,
    /// Requests that timed out in it.
    pub timed_out: u64,
    /// Requests sent again in it, because their first attempt was lost. Left away if there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub resent: u64,
    /// Requests in flight at its end.
    pub in_flight: u64,
    /// Connections open at its end.
    pub connections: u64,
    /// Whole responses of any status per second; null if the interval has no length, or is a
    /// drain of less than 100 ms.
    pub achieved_per_s: Option<f64>,
    /// Response time of what ended well or timed out in it.
    pub response_time: IntervalTimes,
    /// Streams of events in it; left away if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_streams: Option<StreamIntervalResult>,
    /// Metrics of the plan's own of which values were recorded in it, whatever their tags. Left away if
    /// there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<IntervalMetric>,
    /// Thresholds that did not hold in the window that ended with it, or, of those that may end the run, over
    /// the run so far.
    #[serde(default)]
    pub thresholds_failed: u32,
    /// Figures of the interval scenario by scenario, if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_scenario: Vec<ScenarioIntervalResult>,
    /// True if something was done to the system under test in it, such as a fault that began or ended. Left
    /// away if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub marked: bool,
    /// Intervals of the plan's length that were joined to this one, which was one itself: of a long run not
    /// each of them is kept. Counts are added up, percentiles are those of all values, gauges are those at
    /// the end. Left away if there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub joined: u32,
    /// Of joined intervals: in how many of them some request failed or timed out, or requests in flight stood
    /// still. Left away if there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub disturbed: u32,
    /// Of joined intervals: the smallest and the largest number of requests in flight at the end of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight_range: Option<(u64, u64)>,
    /// Resources of the machine used meanwhile, if it was watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Box<MachineUse>>,
}

/// Streams of events in an interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamIntervalResult {
    /// Events with content that came in it, also of streams that went on.
    pub content_events: u64,
    /// Their number per second; null if the interval has no length.
    pub content_events_per_s: Option<f64>,
    /// Time to first token of the streams that ended in it, as p50, p90, p99, p99.9 and maximum in
    /// nanoseconds; null if none did, and where intervals were joined.
    pub ttft: Option<[u64; 5]>,
}

impl IntervalResult {
    /// In how many of the plan's intervals that it is made of some request failed or timed out, or requests
    /// in flight stood still.
    pub(crate) fn disturbed(&self) -> u32 {
        let is_disturbed = self.failed > 0 || self.timed_out > 0 || (self.ok == 0 && self.in_flight > 0);
        if self.joined == 0 { u32::from(is_disturbed) } else { self.disturbed }
    }

    /// Returns `true` if some request failed or timed out, or requests in flight stood still, in all of the
    /// plan's intervals that it is made of, or in none of them. In the first case the disturbance lasts from
    /// its begin to its end.
    pub(crate) const fn is_even(&self) -> bool {
        self.disturbed == 0 || self.disturbed == self.joined + 1
    }

    /// Length in seconds of the plan's intervals that it is made of.
    pub(crate) fn plan_length_s(&self) -> f64 {
        self.length_s / f64::from(self.joined + 1)
    }
}

/// The figures of one scenario in an interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioIntervalResult {
    /// Name of the scenario.
    pub scenario: String,
    /// Requests started in it.
    pub started: u64,
    /// Requests that ended well in it.
    pub ok: u64,
    /// Requests that failed in it.
    pub failed: u64,
    /// Requests that timed out in it.
    pub timed_out: u64,
    /// Whole responses of any status per second; null if the interval has no length, or is a
    /// drain of less than 100 ms.
    pub achieved_per_s: Option<f64>,
    /// Response time of what ended well or timed out in it.
    pub response_time: IntervalTimes,
}

/// Response times of one interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IntervalTimes {
    /// Unit of every time in this object: always "ns", nanoseconds.
    pub unit: String,
    /// Number of values.
    pub count: u64,
    /// Percentiles.
    pub p: IntervalPercentiles,
    /// For each percentile that is null: why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub p_missing: BTreeMap<String, String>,
    /// The largest value; null without values.
    pub max: Option<u64>,
}

/// Percentiles of one interval, as those of the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IntervalPercentiles {
    /// The median.
    #[serde(rename = "50")]
    pub p50: Option<u64>,
    /// The percentile 90.
    #[serde(rename = "90")]
    pub p90: Option<u64>,
    /// The percentile 99; needs 299 values.
    #[serde(rename = "99")]
    pub p99: Option<u64>,
    /// The percentile 99.9; needs 2,995 values.
    #[serde(rename = "99.9")]
    pub p99_9: Option<u64>,
}

/// Cost of the generator itself, and its timeliness.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Generator {
    /// Worker threads.
    pub threads: u64,
    /// CPU time of the load in user mode over the measured part, in seconds: that of the workers and of the
    /// threads that make and sign bodies ahead for them. What shows, logs, saves and exports the run is not
    /// in it.
    pub cpu_user_s: f64,
    /// CPU time of the same threads in the kernel over the measured part, in seconds.
    pub cpu_sys_s: f64,
    /// CPU time of both kinds per whole response, in microseconds; null without responses.
    pub cpu_us_per_request: Option<f64>,
    /// CPU time of the load by kind of thread: "workers", "bodies" and "signing", of which the last two are
    /// there only if there were such threads.
    #[serde(default)]
    pub cpu_by_kind: Vec<CpuOfKind>,
    /// Largest resident memory of the process in bytes; null if the system does not report it.
    pub rss_peak_bytes: Option<u64>,
    /// Backend that drove the sockets: "io_uring" or "epoll".
    pub backend: String,
    /// Share of this machine's calibrated limit that the run has used; null if it was not calibrated for such
    /// a load, or has changed since.
    pub calibration: Option<CalibrationUse>,
    /// Closed model: mean time in nanoseconds from the arrival of a response to the sending of its user's
    /// next request, which is the generator's own part of a user's cycle and lowers the achieved rate; null
    /// in the open model.
    pub turnaround_mean_ns: Option<u64>,
    /// Requests whose body was made for them while the run went on: batches of data, signed messages.
    #[serde(default)]
    pub bodies: u64,
    /// Of them those whose body was made when they were due: none of those that are made ahead was left.
    #[serde(default)]
    pub bodies_late: u64,
    /// Bodies that were made ahead and never sent, because they had expired.
    #[serde(default)]
    pub bodies_expired: u64,
    /// Responses whose arrival was stamped by the kernel.
    pub stamped: u64,
    /// Responses whose arrival was read from the clock in user space.
    pub unstamped: u64,
    /// Requests whose instant of sending may be wrong by more than a tenth of their service time: the
    /// generator was interrupted while it sent them.
    #[serde(default)]
    pub send_time_uncertain: u64,
    /// Share of the time in which arrivals shared wake-ups, and started late for that, because the
    /// generator's core was too busy for one each.
    #[serde(default)]
    pub shared_wakeups_share: f64,
    /// Of stamped responses: from the kernel's stamp to when the worker took them up, which is in no other
    /// time here; null if none was stamped.
    #[serde(default)]
    pub receive_lag: Option<Summary>,
    /// The generator thread by thread.
    pub workers: Vec<Worker>,
    /// The generator's machine in the measured part; null if it was not watched.
    #[serde(default)]
    pub machine: Option<MachineSummary>,
    /// The target's process in the measured part; null if it is not on this machine, or was not found.
    #[serde(default)]
    pub target_process: Option<TargetProcessResult>,
    /// The servers whose processes were watched in the measured part, the target's among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watched: Vec<WatchedResult>,
    /// Growth of the generator's own resources over the measured part.
    #[serde(default)]
    pub trends: TrendsResult,
}

/// CPU time of the threads of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuOfKind {
    /// "workers", which send and receive; "bodies", which make bodies ahead; "signing", which make and sign
    /// messages ahead.
    pub kind: String,
    /// Number of threads.
    pub threads: u64,
    /// Their CPU time over the measured part, in seconds.
    pub cpu_s: f64,
    /// CPU time of the threads of this kind per whole response, in microseconds; null without responses.
    pub cpu_us_per_request: Option<f64>,
}

/// One worker thread of the generator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Worker {
    /// True if it did not come back after the end of the run: then it has no figures.
    #[serde(default)]
    pub absent: bool,
    /// CPU time of both kinds as a share of the wall time, from 0 to 1; null if that was zero.
    pub cpu_share: Option<f64>,
    /// Part of that share in which the thread polled for an arrival to start it at its instant: CPU time that
    /// no request needed.
    #[serde(default)]
    pub polled_share: f64,
    /// Time in seconds for which the thread was ready to run but had no CPU; null if the system does not
    /// report it.
    pub run_delay_s: Option<f64>,
    /// Times that the scheduler took the CPU away.
    pub involuntary_switches: u64,
    /// Passes of its loop.
    pub passes: u64,
    /// The longest single pass.
    pub longest_pass_ns: u64,
    /// When it did not run although it had work; at most the first 100 times.
    pub stalls: Vec<StallResult>,
}

/// A time in which a worker did not run although it had work.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StallResult {
    /// When it began, in seconds since the start of the run.
    pub at_s: f64,
    /// Length of the stall in nanoseconds.
    pub length_ns: u64,
}
