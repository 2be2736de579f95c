//! Outcomes of requests within a time: the figures behind everything that is shown live.

use plimsoll_core::{ErrorClass, ErrorCounts, Nanos};

use serde::{Deserialize, Serialize};

use plimsoll_histogram::{Censored, Delta, floor_of};

/// Outcomes of the requests of one step, or of several, within a time.
///
/// Tallies of several workers, steps or times add up exactly ([`merge`](Self::merge)): percentiles are made
/// from the merged counts, and are never averaged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Requests that were started in it.
    pub started: u64,
    /// Requests that ended well in it.
    pub ok: u64,
    /// Requests that failed in it.
    pub failed: u64,
    /// Requests that timed out in it.
    pub timed_out: u64,
    /// Requests of streamed steps that ended in it and count for goodput.
    #[serde(default)]
    pub judged: u64,
    /// Of these, those that held all bounds of the goodput.
    #[serde(default)]
    pub good: u64,
    /// Events with content that came in it, of streams of events.
    #[serde(default)]
    pub content_events: u64,
    /// Time to first token of streams of events that ended in it.
    #[serde(default)]
    pub ttft: Delta,
    /// Requests that ended in it with a whole response, whatever its status.
    pub completed: u64,
    /// Whole responses that came in it to requests of the warm-up, which are in no other count.
    #[serde(default, skip_serializing_if = "is_default")]
    pub carried: u64,
    /// Responses with a status from 300 to 399, from 400 to 499 and from 500 to 599, however they were
    /// judged: without redirects that are followed, one from 300 on is ok.
    pub statuses: [u64; 3],
    /// Failed requests by class.
    #[serde(with = "crate::written::errors")]
    pub errors: ErrorCounts,
    /// Bytes of requests on the wire, without TLS framing.
    pub bytes_sent: u64,
    /// Bytes of responses on the wire, without TLS framing.
    pub bytes_received: u64,
    /// Response times of requests that ended well or timed out in it.
    pub response_time: Delta,
    /// Service times of the same requests, except for those that timed out before they were sent.
    pub service_time: Delta,
    /// Response times of requests that failed in it.
    #[serde(default, skip_serializing_if = "Delta::is_empty")]
    pub failed_time: Delta,
    /// Their exact sum in nanoseconds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub failed_time_sum: u128,
    /// The exact smallest and largest of the recorder's whole run so far, as [`limits`](Self::limits).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_limits: Option<(u64, u64)>,
    /// The exact sum of the response times in nanoseconds.
    pub response_time_sum: u128,
    /// The exact sum of the service times in nanoseconds; 0 beside times where it is not known.
    #[serde(default)]
    pub service_time_sum: u128,
    /// Which of them are lower bounds.
    pub censored: Censored,
    /// The exact smallest and largest response time of the recorder's whole run so far: limits for values
    /// that are read from a bucket. `None` before the first value.
    pub limits: Option<(u64, u64)>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The smaller and the larger of two limits, of which there may be none.
fn both(mine: Option<(u64, u64)>, theirs: Option<(u64, u64)>) -> Option<(u64, u64)> {
    match (mine, theirs) {
        (Some((low, high)), Some((lower, higher))) => Some((low.min(lower), high.max(higher))),
        (mine, theirs) => mine.or(theirs),
    }
}

impl Tally {
    /// Requests that we aborted on purpose: no failures.
    pub fn aborted(&self) -> u64 {
        self.errors[ErrorClass::AbortedByUs]
    }

    /// Whole responses that came in it, whoever started their requests: the throughput.
    pub fn answers(&self) -> u64 {
        self.completed + self.carried
    }

    /// Gives back memory that it has no use for now.
    pub fn shrink(&mut self) {
        self.response_time.shrink();
        self.service_time.shrink();
        self.ttft.shrink();
        self.failed_time.shrink();
    }

    /// Requests that ended in it, however they did.
    pub fn ended(&self) -> u64 {
        self.ok + self.failed + self.timed_out + self.aborted()
    }

    /// Returns `true` if no request was started, none ended, and none was left without an answer.
    pub fn is_empty(&self) -> bool {
        self.started == 0 && self.ended() == 0 && self.carried == 0 && self.response_time.is_empty()
    }

    /// Adds another one: of another worker, another step or another time.
    pub fn merge(&mut self, other: &Self) {
        self.add_counts(other);
        self.response_time.merge(&other.response_time);
        self.service_time.merge(&other.service_time);
        self.ttft.merge(&other.ttft);
        self.failed_time.merge(&other.failed_time);
    }

    /// Adds the times of failed requests to the response times, which are then of all that ended in it.
    pub(crate) fn add_failed_times(&mut self) {
        self.response_time.merge(&std::mem::take(&mut self.failed_time));
        self.response_time_sum += std::mem::take(&mut self.failed_time_sum);
        self.limits = both(self.limits, self.failed_limits.take());
    }

    /// [`merge`](Self::merge) without the counts of single times.
    pub(crate) fn add_counts(&mut self, other: &Self) {
        self.started += other.started;
        self.ok += other.ok;
        self.failed += other.failed;
        self.timed_out += other.timed_out;
        self.completed += other.completed;
        self.carried += other.carried;
        self.judged += other.judged;
        self.good += other.good;
        self.content_events += other.content_events;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.response_time_sum += other.response_time_sum;
        self.service_time_sum += other.service_time_sum;
        self.censored.merge(other.censored);
        for (mine, theirs) in self.statuses.iter_mut().zip(&other.statuses) {
            *mine += theirs;
        }
        self.errors.merge(&other.errors);
        self.failed_time_sum += other.failed_time_sum;
        self.limits = both(self.limits, other.limits);
        self.failed_limits = both(self.failed_limits, other.failed_limits);
    }

    /// Subtracts a tally that was added before, except for fields that are not counts: the limits, and from
    /// where on values are lower bounds.
    pub(crate) fn take_counts(&mut self, other: &Self) {
        self.started -= other.started;
        self.ok -= other.ok;
        self.failed -= other.failed;
        self.timed_out -= other.timed_out;
        self.completed -= other.completed;
        self.carried -= other.carried;
        self.judged -= other.judged;
        self.good -= other.good;
        self.content_events -= other.content_events;
        self.bytes_sent -= other.bytes_sent;
        self.bytes_received -= other.bytes_received;
        self.response_time_sum -= other.response_time_sum;
        self.service_time_sum -= other.service_time_sum;
        self.failed_time_sum -= other.failed_time_sum;
        self.censored.count -= other.censored.count;
        for (mine, theirs) in self.statuses.iter_mut().zip(&other.statuses) {
            *mine -= theirs;
        }
        self.errors.subtract(&other.errors);
    }

    /// The percentile `p` of the response time by nearest rank; never larger than the largest value.
    pub fn percentile(&self, p: f64) -> Option<u64> {
        self.response_time.percentile(p).map(|value| self.limited(value))
    }

    /// The smallest response time: at most 0.1 % too small.
    pub fn min(&self) -> Option<u64> {
        self.response_time.lowest().map(|value| self.limited(value))
    }

    /// The largest response time: at most 0.1 % too large.
    pub fn max(&self) -> Option<u64> {
        self.percentile(100.0)
    }

    /// The mean response time, from the exact sum.
    pub fn mean(&self) -> Option<f64> {
        let count = self.response_time.count();
        (count > 0).then(|| self.response_time_sum as f64 / count as f64)
    }

    /// Returns `true` if a response-time figure with this value is only a lower bound. Figures below the
    /// smallest censored value are exact, however large the true values of the censored ones are, and so are
    /// those that few of them could move by less than 1 %.
    pub fn is_at_least(&self, value: u64) -> bool {
        // Values are read from their buckets.
        let censored = Censored { from: Nanos(floor_of(self.censored.from.0)), ..self.censored };
        let times = &self.response_time;
        censored.may_hide(value, times.count(), times.count_above(value), |rank| times.value_at(rank))
    }

    fn limited(&self, value: u64) -> u64 {
        self.limits.map_or(value, |(low, high)| value.clamp(low, high))
    }
}
