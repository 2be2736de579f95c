//! The slowest requests of a step.

use plimsoll_metrics::{ServerTiming, SlowRequest, Slowest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One of the slowest requests of a step, with what finds it in the logs and traces of its server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowRequestResult {
    /// When it should have started, in seconds since the start of the run, warm-up included.
    pub at_s: f64,
    /// From when it should have started to its end, in nanoseconds. Of one without an answer in time, to when
    /// it was given up.
    pub response_time: u64,
    /// From when it was sent to its end, in nanoseconds; null if it was never sent.
    pub service_time: Option<u64>,
    /// From when it was sent to the first byte of its response, in nanoseconds; null if the response came in
    /// one piece, or not at all.
    pub first_byte_time: Option<u64>,
    /// The status of its response; null if none came whole.
    pub status: Option<u16>,
    /// The class of its failure, or "timed_out"; null if it ended well.
    pub failure: Option<String>,
    /// The worker that sent it.
    pub worker: u32,
    /// The id of its trace, under which it is found at the server; null if it named none.
    pub trace_id: Option<String>,
    /// The parts of its time by the server's own word, the header `Server-Timing` of its response; left away
    /// without any, and where requests name no trace. At most eight are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_timing: Vec<ServerTiming>,
}

impl SlowRequestResult {
    pub(crate) fn all(slowest: &Slowest) -> Vec<Self> {
        slowest.all().iter().map(Self::new).collect()
    }

    fn new(request: &SlowRequest) -> Self {
        Self {
            at_s: request.at.as_secs_f64(),
            response_time: request.response_time.0,
            service_time: request.service_time.map(|time| time.0),
            first_byte_time: request.first_byte_time.map(|time| time.0),
            status: (request.status > 0).then_some(request.status),
            failure: (!request.failure.is_empty()).then(|| request.failure.clone()),
            worker: request.worker,
            trace_id: request.trace_id.clone(),
            server_timing: request.server_timing.clone(),
        }
    }
}
