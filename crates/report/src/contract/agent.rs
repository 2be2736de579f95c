//! The agents of a fleet: what each of them made of a load.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// State of an agent: at the end of the run, or so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AgentState {
    /// All of its result is here.
    #[default]
    Finished,
    /// The agent stopped answering: its figures up to then are here.
    Lost,
    /// The agent was told to end while the load went on, and stopped its part: all that it sent is here.
    Left,
    /// The load goes on, and its figures are those so far.
    Running,
    /// The load goes on, but the agent has been silent for some seconds.
    Silent,
}

/// From when on a run has a shard that another one began.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TakenOver {
    /// Seconds since the start of the load, warm-up included.
    pub from_s: f64,
    /// Arrivals of its shard in the measured part before that: they are not its own.
    pub arrivals_before: u64,
}

/// One agent of a fleet, with its shard of the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentResult {
    /// Name of the agent.
    pub name: String,
    /// Shard of the agent, as `2/3`.
    pub shard: String,
    /// Version of its program.
    pub version: String,
    /// Processors that its process may use.
    pub cores: u32,
    /// State of the agent at the end of the run, or so far.
    pub state: AgentState,
    /// Nanoseconds that its clock was ahead of the coordinator's before the start; null if that is not known.
    pub clock_ahead_ns: Option<i64>,
    /// Largest error of that: by so much it may have begun earlier or later than the coordinator's instant.
    pub clock_bound_ns: Option<u64>,
    /// Nanoseconds that its clock gained on the coordinator's from before the start to the last look at it; 0
    /// if that is within the errors of both.
    pub clock_drift_ns: Option<i64>,
    /// Requests that it started.
    pub started: u64,
    /// Of these, those that ended well.
    pub ok: u64,
    /// Of these, those that failed or timed out.
    pub failed: u64,
    /// Arrivals of its shard after the last that is known, until another agent had it.
    pub unknown: u64,
    /// Arrivals of its shard that it did not start, since it was told to end, until another agent had it.
    #[serde(default)]
    pub left_out: u64,
    /// Seconds since the start of the load from which on it has the shard, which it has taken over from a
    /// lost agent; null if it had it from the start.
    #[serde(default)]
    pub from_s: Option<f64>,
    /// Live changes of the rate that it did not carry out, because it heard of them too late.
    #[serde(default)]
    pub missed_changes: u64,
    /// Completed requests per second.
    pub rate_per_s: Option<f64>,
    /// 99th percentile of its start lag.
    pub start_lag_p99_ns: Option<u64>,
    /// Processors that its process used on average.
    pub cpu_cores: Option<f64>,
    /// `true` if its own measurement was valid.
    pub valid: bool,
    /// The limit of this agent, from its own record.
    pub limited_by: String,
}
