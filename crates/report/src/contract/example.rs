//! The first failed requests of a step.

use std::collections::BTreeMap;

use plimsoll_metrics::{ErrorExample, ServerTiming, timing_words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::contract::result::RunResult;

/// The first failed request of one class at one step, in the measured part of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorExampleResult {
    /// When it ended, in seconds since the start of the run, warm-up included.
    pub at_s: f64,
    /// The status of its response; null if none came whole.
    pub status: Option<u16>,
    /// The error in words.
    pub reason: String,
    /// The first line of the response's body, or the title and first paragraph of a page of HTML, at most 200
    /// characters without control characters; null without one.
    pub body: Option<String>,
    /// The worker that sent it.
    pub worker: u32,
    /// The number of its connection among those that the worker has opened, from 1; null if it had none.
    pub connection: Option<u64>,
    /// The address that the connection goes to; null without one.
    pub address: Option<String>,
    /// The id of its trace, under which it is found at the server; left away if it named none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// The parts of its time by the server's own word, as those of the slowest requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_timing: Vec<ServerTiming>,
}

impl ErrorExampleResult {
    pub(crate) fn all(examples: &BTreeMap<String, ErrorExample>) -> BTreeMap<String, Self> {
        examples.iter().map(|(class, example)| (class.clone(), Self::new(example))).collect()
    }

    fn new(example: &ErrorExample) -> Self {
        let said = |text: &String| (!text.is_empty()).then(|| text.clone());
        Self {
            at_s: example.at.as_secs_f64(),
            status: (example.status > 0).then_some(example.status),
            reason: example.reason.clone(),
            body: said(&example.body),
            worker: example.worker,
            connection: (example.connection > 0).then_some(example.connection),
            address: said(&example.address),
            trace_id: example.trace_id.clone(),
            server_timing: example.server_timing.clone(),
        }
    }

    /// The status of an error and the words of its body, or the reason where it has none, and the server's
    /// own times: for a line of a report.
    pub fn summary(&self) -> String {
        let summary = match (self.status, &self.body) {
            (Some(status @ 400..), Some(body)) => format!("{status}: {body}"),
            _ => self.reason.clone(),
        };
        let summary = match &*self.server_timing {
            [] => summary,
            parts => format!("{summary}; its server: {}", timing_words(parts)),
        };
        match &self.trace_id {
            Some(id) => format!("{summary}; trace {id}"),
            None => summary,
        }
    }
}

impl RunResult {
    /// Returns the id of the trace of the first request that failed with this class, if requests name traces.
    pub(crate) fn trace_of(&self, class: &str) -> Option<&str> {
        let all = self.by_step.iter().filter_map(|step| step.error_examples.get(class));
        let first = all.min_by(|one, other| one.at_s.total_cmp(&other.at_s));
        first.and_then(|example| example.trace_id.as_deref())
    }
}
