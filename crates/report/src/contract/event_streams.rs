//! Figures of responses that are streams of events, and of the tokens in them.

use plimsoll_core::Nanos;
use plimsoll_histogram::{Censored, Histogram};
use plimsoll_metrics::EventStreamRecord;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::contract::summary::Summary;

/// Responses that are streams of events. Content is what a user waits for: every event, or, where the steps
/// say `stream: llm`, the chunks with text, reasoning or tool calls in them. Times of requests are those
/// of good ones, and of those that timed out before their first content as lower bounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventStreamsResult {
    /// Requests that ended in any way, except for those that were aborted on purpose.
    pub requests: u64,
    /// Events of all responses.
    pub events: u64,
    /// Events with content.
    pub content_events: u64,
    /// Events that were read together with the one before, and so share its time.
    pub shared_events: u64,
    /// Events with content that share the time of the content before: their gap is 0.
    #[serde(default)]
    pub shared_content_events: u64,
    /// Events with content among these that the generator read late, so that their own time may be earlier by
    /// more than a millisecond.
    #[serde(default)]
    pub uncertain_events: u64,
    /// Bytes of the bodies.
    pub bytes: u64,
    /// Tokens of the answers to good requests: by the server's count (`usage`), else events with content.
    pub tokens: u64,
    /// Of these, tokens of reasoning that the server counted and did not send; tpot is without them.
    #[serde(default)]
    pub hidden_tokens: u64,
    /// Tokens of their prompts, as far as the server reported them.
    pub prompt_tokens: u64,
    /// Good requests whose tokens the server did not count.
    pub uncounted: u64,
    /// Good requests for which the server's count of tokens differs from the number of events with content.
    pub count_differs: u64,
    /// Good requests for which the server sent a count of tokens that cannot be: more than a million, or ten
    /// million of a prompt, negative, or less than a tenth of the events with content. It is not used; events
    /// with content stand for the tokens of the answer.
    #[serde(default)]
    pub disbelieved: u64,
    /// Good requests without any content.
    pub empty: u64,
    /// Good requests with reasoning in their content.
    #[serde(default)]
    pub reasoned: u64,
    /// Good requests with nothing but reasoning in it.
    #[serde(default)]
    pub unanswered: u64,
    /// Tokens per second over all requests, from the begin of the measured part to its end, or to that of the
    /// interval in which the last content came: tokens that come after the end of the load count, and so does
    /// their time.
    pub tokens_per_s: Option<f64>,
    /// Tokens per second that one user sees once the answer has begun: 1 / the mean of tpot.
    pub tokens_per_s_per_user: Option<f64>,
    /// Requests within the bounds that were asked for; null without any.
    pub goodput: Option<GoodputResult>,
    /// Time to first token: from when the request should have started until its first content came.
    pub ttft: Summary,
    /// From when the request was sent until its first content came.
    pub ttft_from_sent: Summary,
    /// Time to first answer token, of requests with reasoning: from when the request should have started
    /// until the first content came that was not reasoning.
    #[serde(default = "no_times")]
    pub ttfa: Summary,
    /// From when the request was sent until its first event came, which may have no content.
    pub first_event_time: Summary,
    /// From when the request was sent until its last event came.
    pub last_event_time: Summary,
    /// Inter-token latency: between two events with content that follow each other in a stream. Of all
    /// streams, those included that broke later.
    pub itl: Summary,
    /// Inter-token latency divided by the tokens of the later event, once for each token; only where the
    /// server counts the tokens in every event.
    pub itl_per_token: Summary,
    /// Time per output token of a request: (last content − first content) / (tokens − 1), of the tokens that
    /// were sent.
    pub tpot: Summary,
    /// Normalised time per output token of a request: response time / tokens.
    pub ntpot: Summary,
}

/// Times of which there are none.
fn no_times() -> Summary {
    Summary::new(&Histogram::default(), Censored::default())
}

/// Requests within bounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GoodputResult {
    /// The bounds, all of which have to hold.
    pub bounds: String,
    /// Requests that ended well and within them.
    pub good: u64,
    /// Their share of the requests that ended, from 0 to 1; null if none did.
    pub share: Option<f64>,
    /// Their number per second, over the time of `tokens_per_s`.
    pub per_s: Option<f64>,
}

impl EventStreamsResult {
    /// The streams of a record whose content came within this time: what comes after the end of the load is
    /// in it, and would be a rate that nobody has sent without its time.
    pub(crate) fn new(record: &EventStreamRecord, answered: Nanos) -> Self {
        let per_second = |count: u64| {
            let seconds = answered.as_secs_f64();
            (seconds > 0.0).then(|| count as f64 / seconds)
        };
        let share = (record.judged > 0).then(|| record.good as f64 / record.judged as f64);
        let exact = Censored::default();
        Self {
            requests: record.judged,
            events: record.events,
            content_events: record.content_events,
            shared_events: record.shared_events,
            shared_content_events: record.shared_content_events,
            uncertain_events: record.uncertain_events,
            bytes: record.bytes,
            tokens: record.tokens,
            hidden_tokens: record.hidden_tokens,
            prompt_tokens: record.prompt_tokens,
            uncounted: record.uncounted,
            count_differs: record.count_differs,
            disbelieved: record.disbelieved,
            empty: record.empty,
            reasoned: record.reasoned,
            unanswered: record.unanswered,
            tokens_per_s: per_second(record.tokens),
            tokens_per_s_per_user: record.tpot.mean().filter(|mean| *mean > 0.0).map(|mean| 1e9 / mean),
            goodput: (!record.bounds.is_empty()).then(|| GoodputResult {
                bounds: record.bounds.clone(),
                good: record.good,
                share,
                per_s: per_second(record.good),
            }),
            ttft: Summary::new(&record.ttft, record.censored_ttft),
            ttft_from_sent: Summary::new(&record.ttft_from_sent, record.censored_ttft_from_sent),
            ttfa: Summary::new(&record.ttfa, record.censored_ttfa),
            first_event_time: Summary::new(&record.first_event, exact),
            last_event_time: Summary::new(&record.last_event, exact),
            itl: Summary::new(&record.gap, exact),
            itl_per_token: Summary::new(&record.token_gap, exact),
            tpot: Summary::new(&record.tpot, exact),
            ntpot: Summary::new(&record.ntpot, exact),
        }
    }
}
