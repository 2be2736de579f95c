//! The record of a run: plain data that the engine fills and every report reads.

mod accounting;
mod answers;
mod connection;
mod early_end;
mod machine;
mod phase;
mod server_timing;
mod slowest;
mod steering;
mod watched;
mod websocket;

use core::net::SocketAddr;
use std::borrow::Cow;
use std::collections::BTreeMap;

use plimsoll_core::{ErrorClass, ErrorCounts, Nanos, Outcome};

pub use self::accounting::{Accounting, IterationRecord};
pub use self::answers::{AnswerPause, AnswerTimes};
pub use self::connection::{AddressChange, ConnectionRecord, Http2Record, Http2Traffic, RATE_UNITS};
pub use self::early_end::{EarlyEnd, EndedBy};
pub use self::machine::{
    AcceptQueue, CoreUse, GroupLimits, MachineFacts, MachineInterval, MachineRecord, NetworkUse, OtherUse,
    OwnSegments, ProcessUse, TargetProcess, ThreadUse, Throttling,
};
pub use self::phase::{PhaseMerger, PhaseRecord};
pub use self::server_timing::{SERVER_TIMING, ServerTiming, timing_words};
pub use self::slowest::{SlowRequest, Slowest};
pub use self::steering::{RateChange, SteeredBy, Steering};
pub use self::watched::{FileUse, FoundBy, MemoryCourse, ProcessEvent, WatchedProcess, WatchedUse};
pub use self::websocket::WebSocketRecord;
use crate::{
    Awaited, EventStreamRecord, Exemplars, MetricRecord, MetricSum, Slice, Tally, ThresholdResult, Timeline,
    Verdict, WorkerStatus,
};
use plimsoll_histogram::{Censored, Delta, Histogram};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One ended request. All instants are on the driver's clock.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Which request of the plan it was: an index into the steps of the run.
    pub step: u32,
    /// When it should have started: the scheduled arrival (open model), or when its user became ready
    /// (closed).
    pub intended: Nanos,
    /// When the engine took it up and gave it a connection (or began to open one for it).
    pub started: Nanos,
    /// When its first byte was handed to the kernel; [`Nanos::MAX`] if that never happened.
    pub sent: Nanos,
    /// When the first byte of its response arrived; [`Nanos::MAX`] if none did, or if the response came in
    /// one piece: the first byte of a good one then came when the last did.
    pub first_byte: Nanos,
    /// When its last byte arrived, or when it failed or timed out.
    pub done: Nanos,
    /// Outcome of the request.
    pub outcome: Outcome,
    /// Status code of the response, 0 if there was none.
    pub status: u16,
    /// Bytes of the request on the wire, without TLS framing.
    pub bytes_sent: u64,
    /// Bytes of the response on the wire, without TLS framing.
    pub bytes_received: u64,
}

/// The model of a load: who decides when the next iteration starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ModelKind", description = "The two models of a load.")]
#[serde(rename_all = "lowercase")]
pub enum Model {
    /// Arrivals were scheduled and ignored responses.
    Open,
    /// A fixed number of users; the next request started when the last had ended. Response time and start lag
    /// then say nothing about a user's wait: read the service time.
    Closed,
}

/// Everything measured about one step (or, merged, about all of them).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepRecord {
    /// Name for the report: method and URL for a plan made from flags.
    pub name: String,
    /// Name of its scenario, for the report; empty if the plan does not name any.
    pub scenario: String,
    /// Kind of response that the requests await.
    #[serde(default, skip_serializing_if = "Awaited::is_answer")]
    pub awaited: Awaited,
    /// Ended well / ended badly / no answer in time.
    pub ok: u64,
    /// See [`Accounting::failed`].
    pub failed: u64,
    /// See [`Accounting::timed_out`].
    pub timed_out: u64,
    /// done − intended, of good responses, and of timed-out requests as censored values (at least this long).
    pub response_time: Histogram,
    /// done − sent, of the same requests.
    pub service_time: Histogram,
    /// started − intended, of every started request.
    pub start_lag: Histogram,
    /// first byte − sent, of good responses.
    pub first_byte_time: Histogram,
    /// done − intended, of failed requests, kept apart so that fast errors do not flatter the percentiles.
    pub failed_response_time: Histogram,
    /// Values of `response_time` whose requests met a stall of their worker: due or in flight during the
    /// stall, and ended after it began. They are in `response_time`, too.
    pub response_in_stall: Histogram,
    /// Values of `service_time` whose requests met a stall of their worker: due or in flight during the
    /// stall, and ended after it began. They are in `service_time`, too.
    pub service_in_stall: Histogram,
    /// Responses by status code.
    pub statuses: BTreeMap<u16, u64>,
    /// Failed requests by class.
    #[serde(with = "crate::written::errors")]
    pub errors: ErrorCounts,
    /// Bytes of requests on the wire, without TLS framing.
    pub bytes_sent: u64,
    /// Bytes of responses on the wire, without TLS framing.
    pub bytes_received: u64,
    /// The censored values in `response_time`.
    pub censored_response: Censored,
    /// The censored values in `service_time`: fewer than in `response_time` by the requests that timed out
    /// before their first byte was sent, which have no service time.
    pub censored_service: Censored,
    /// The streams of events among its responses; `None` if they are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_streams: Option<Box<EventStreamRecord>>,
    /// From the time that a message has in it until it came, of messages on WebSockets whose steps look for
    /// it.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub lag: Histogram,
    /// The slowest requests of the measured part.
    #[serde(default, skip_serializing_if = "Slowest::is_empty")]
    pub slowest: Slowest,
    /// The first failed request of each class by the name of that, and under [`TIMED_OUT`] the first without
    /// a response in time. Of the measured part only. Saved runs have them in their results.
    #[serde(skip)]
    pub error_examples: BTreeMap<String, ErrorExample>,
}

/// The name under which the first request without a response in time stands among the examples of errors.
pub const TIMED_OUT: &str = "timed_out";

/// One failed request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorExample {
    /// When it ended, since the start of the run.
    pub at: Nanos,
    /// The status of its response; 0 if none came whole.
    pub status: u16,
    /// Reason for the failure, in words.
    pub reason: String,
    /// The first line of the response's body, or the title and first paragraph of a page of HTML; empty
    /// without one. Printable, at most 200 characters.
    pub body: String,
    /// The worker that sent it.
    pub worker: u32,
    /// The number of its connection among those that the worker has opened, from 1; 0 if it had none.
    pub connection: u64,
    /// The address that the connection goes to; empty without one.
    pub address: String,
    /// The id of its trace, 32 hexadecimal digits; `None` if it named none to its server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// The parts of its time by the server's own word.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_timing: Vec<ServerTiming>,
}

/// The classes of failure in which a whole response came.
const WHOLE_RESPONSES: [ErrorClass; 5] = [
    ErrorClass::Status4xx,
    ErrorClass::Status5xx,
    ErrorClass::Redirect,
    ErrorClass::Extraction,
    ErrorClass::Check,
];

impl StepRecord {
    /// Requests that ended with a whole response, whatever its status: see [`Sample::is_complete`].
    pub fn completed(&self) -> u64 {
        self.ok + WHOLE_RESPONSES.iter().map(|class| self.errors[*class]).sum::<u64>()
    }

    /// Requests that we aborted on purpose: no failures.
    pub fn aborted(&self) -> u64 {
        self.errors[ErrorClass::AbortedByUs]
    }

    /// Adds the outcomes of requests in a further time. A tally lacks single statuses, first bytes and failed
    /// responses.
    pub fn add(&mut self, tally: &Tally) {
        self.ok += tally.ok;
        self.failed += tally.failed;
        self.timed_out += tally.timed_out;
        self.bytes_sent += tally.bytes_sent;
        self.bytes_received += tally.bytes_received;
        self.errors.merge(&tally.errors);
        self.response_time.add_with_sum(&tally.response_time, tally.response_time_sum);
        self.service_time.add_with_sum(&tally.service_time, tally.service_time_sum);
        self.censored_response.merge(tally.censored);
    }

    /// The record with the times of failed requests among its response times: of all requests that ended.
    #[must_use]
    pub(crate) fn with_failed_times(&self) -> Self {
        let mut record = self.clone();
        record.response_time.merge(&self.failed_response_time);
        record
    }

    /// Counts a status that has more than three digits.
    #[cold]
    #[inline(never)]
    pub(crate) fn count_odd_status(&mut self, status: u16) {
        *self.statuses.entry(status).or_default() += 1;
    }

    /// Adds what another worker, or another step, recorded. The names stay, unless there are none yet.
    pub fn merge(&mut self, other: &Self) {
        if self.name.is_empty() {
            self.name.clone_from(&other.name);
            self.scenario.clone_from(&other.scenario);
            self.awaited = other.awaited;
        }
        self.ok += other.ok;
        self.failed += other.failed;
        self.timed_out += other.timed_out;
        self.response_time.merge(&other.response_time);
        self.service_time.merge(&other.service_time);
        self.start_lag.merge(&other.start_lag);
        self.first_byte_time.merge(&other.first_byte_time);
        self.failed_response_time.merge(&other.failed_response_time);
        self.response_in_stall.merge(&other.response_in_stall);
        self.service_in_stall.merge(&other.service_in_stall);
        self.merge_statuses(&other.statuses);
        self.errors.merge(&other.errors);
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.censored_response.merge(other.censored_response);
        self.censored_service.merge(other.censored_service);
        self.lag.merge(&other.lag);
        if let Some(streams) = &other.event_streams {
            self.event_streams.get_or_insert_default().merge(streams);
        }
        self.slowest.merge(&other.slowest);
        self.merge_examples(&other.error_examples);
    }

    /// Adds responses by status code.
    pub(crate) fn merge_statuses(&mut self, statuses: &BTreeMap<u16, u64>) {
        for (status, count) in statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
    }

    /// Adds examples of failed requests: of each class the earlier one stays.
    pub(crate) fn merge_examples(&mut self, examples: &BTreeMap<String, ErrorExample>) {
        for (class, example) in examples {
            match self.error_examples.get(class) {
                Some(mine) if mine.at <= example.at => {}
                _ => _ = self.error_examples.insert(class.clone(), example.clone()),
            }
        }
    }
}

/// A time in which a worker did not run although it had work: the generator's fault, not the target's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    /// Worker number.
    pub worker: u32,
    /// When it began, since the start of the run.
    pub at: Nanos,
    /// Duration of the stall.
    pub length: Nanos,
}

/// Work for single requests of the measured part (a script, the search of a body) that took longer than the
/// limit of a [`Stall`]. A worker does nothing else meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongCalls {
    /// Number of them.
    pub count: u64,
    /// Sum of their times.
    pub total: Nanos,
    /// Time of the longest one.
    pub longest: Nanos,
    /// Number of the step of the longest one.
    pub step: u32,
}

impl LongCalls {
    /// Adds one.
    pub fn note(&mut self, step: u32, length: Nanos) {
        self.count += 1;
        self.total += length;
        if length > self.longest {
            (self.longest, self.step) = (length, step);
        }
    }
}

/// CPU time of the threads that make something ahead for a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelperCpu {
    /// Number of threads.
    pub threads: u32,
    /// In user mode.
    pub user: Nanos,
    /// In the kernel.
    pub system: Nanos,
}

impl HelperCpu {
    /// Returns the CPU time used since an earlier look.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            threads: self.threads,
            user: self.user.since(earlier.user),
            system: self.system.since(earlier.system),
        }
    }

    /// Adds the threads of another worker.
    pub fn add(&mut self, other: Self) {
        self.threads += other.threads;
        self.user += other.user;
        self.system += other.system;
    }

    /// Of both kinds.
    pub fn total(self) -> Nanos {
        self.user + self.system
    }
}

/// Cost of one worker thread, and its punctuality.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerRecord {
    /// Set when the worker did not come back after the end of the run. The record then has nothing of it but
    /// the intervals that it had reported, and everything else here is zero.
    pub absent: bool,
    /// Wall time of the measured part.
    pub wall: Nanos,
    /// CPU time of the thread in user mode in that time.
    pub cpu_user: Nanos,
    /// CPU time of the thread in the kernel in that time.
    pub cpu_system: Nanos,
    /// Part of that CPU time in which the thread polled for an arrival, to start it at its instant. No
    /// request needed it.
    pub polled: Nanos,
    /// CPU time of the threads that make bodies ahead for this worker, in the same time.
    pub bodies_cpu: HelperCpu,
    /// CPU time of the threads that sign messages ahead for this worker, in the measured part.
    pub signing_cpu: HelperCpu,
    /// Time that the thread was runnable but not running, if the system reports it.
    pub run_delay: Option<Nanos>,
    /// Times that the scheduler took the CPU away.
    pub involuntary_switches: u64,
    /// Calls of scripts, and steps of scenarios, that failed without a request.
    pub script_errors: u64,
    /// Passes of the loop.
    pub passes: u64,
    /// Longest single pass, from the end of one wait to the beginning of the next.
    pub longest_pass: Nanos,
    /// Stalls longer than the limit, at most the first 100.
    pub stalls: Vec<Stall>,
    /// Work for single requests that held it up.
    #[serde(default)]
    pub long_calls: LongCalls,
    /// Responses whose arrival was stamped by the kernel.
    pub stamped: u64,
    /// Responses whose arrival was read from the clock in user space.
    pub unstamped: u64,
    /// Requests whose instant of sending may be wrong by more than a tenth of their service time: the thread
    /// was interrupted while it sent them.
    pub send_time_uncertain: u64,
    /// Part of the wall time in which arrivals were put off until a wake-up that they shared, because the
    /// core was too busy for one each. Not the sharing that `--pacing shared` asks for.
    pub shared_wakeups: Nanos,
    /// Requests whose body was made for them while the run went on.
    pub bodies: u64,
    /// Of them those whose body was made when they were due: none of those that are made ahead was left.
    pub bodies_late: u64,
    /// Of these those that had to be signed, too.
    pub bodies_unsigned: u64,
    /// Bodies that were made ahead and thrown away, because they had expired when it was their turn.
    pub bodies_expired: u64,
    /// Of stamped responses: from the kernel's stamp to when the worker took them up. The times of a
    /// generator without stamps have it in them.
    pub receive_lag: Histogram,
    /// The longest time that a wake-up waited on purpose to gather several responses: so much later than it
    /// arrived may an unstamped response have been read.
    pub gather_time: Nanos,
    /// Closed model: time from the arrival of a response to the sending of its user's next request on the
    /// same connection, summed. The generator's own part of a user's cycle: gathering, decoding, waiting for
    /// its turn.
    pub turnaround: Nanos,
    /// Number of turnarounds in the sum.
    pub turnarounds: u64,
}

impl WorkerRecord {
    /// CPU time of the thread that the load needed: what it [polled](Self::polled) away was to spare.
    pub fn needed_cpu(&self) -> Nanos {
        (self.cpu_user + self.cpu_system).since(self.polled)
    }

    /// Returns a copy of the record without the distribution of receive lags, which is large.
    #[must_use]
    pub fn without_times(&self) -> Self {
        Self { stalls: self.stalls.clone(), receive_lag: Histogram::new(), ..*self }
    }
}

/// One second (or the last part of one) of the whole run, all workers merged.
///
/// Its length is that of the plan's intervals, a second unless the plan says otherwise. In the record of a
/// long run neighbours are [joined](crate::interval::IntervalDownsampler).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// End of the interval, since the start of the run (warm-up included).
    pub at: Nanos,
    /// Length of the interval.
    pub length: Nanos,
    /// `true` if the interval belongs to the warm-up.
    pub warmup: bool,
    /// `true` for the drain, the time after the end of the load.
    pub drain: bool,
    /// Requests started in it.
    pub started: u64,
    /// Requests that ended well in it.
    pub ok: u64,
    /// Requests that failed in it.
    pub failed: u64,
    /// Requests that timed out in it.
    pub timed_out: u64,
    /// Whole responses that came in it, whatever their status, and whoever started their requests.
    pub completed: u64,
    /// When answers came in it; `None` without any, and in records of versions that did not note it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<AnswerTimes>,
    /// Requests in flight at its end.
    pub in_flight: u64,
    /// Connections open at its end.
    pub connections: u64,
    /// Arrivals that fell due in it (open model).
    pub scheduled: u64,
    /// Iterations started in it.
    pub iterations: u64,
    /// Requests sent again in it, because their first attempt was lost.
    #[serde(default)]
    pub resent: u64,
    /// Step by step, the times for which requests have been due without an answer at its end, if a threshold
    /// looks at them; not kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Delta>,
    /// Step by step, requests that stand for others in histograms of monitoring systems, if the run control
    /// asks for them; not kept, and not written.
    #[serde(skip)]
    pub exemplars: Vec<Exemplars>,
    /// Response time of what ended in it: p50, p90, p99, p99.9, max, in nanoseconds; zero counts give `None`.
    pub response_time: Option<[u64; 5]>,
    /// Events with content that came in it, of streams of events.
    pub content_events: u64,
    /// Time to first token of streams that ended in it, as `response_time`; `None` without any, and in joined
    /// intervals.
    pub ttft: Option<[u64; 5]>,
    /// Thresholds that did not hold when it ended: in the window that ended with it, or over the run so far.
    pub thresholds_failed: u32,
    /// Requests of the interval scenario by scenario; empty if there is only one scenario.
    pub scenarios: Vec<ScenarioInterval>,
    /// Step by step, as long as the interval is news: a record keeps none, so that its size is bounded.
    pub steps: Vec<Tally>,
    /// Values of the plan's own metrics that were recorded in the interval; a record keeps none of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricRecord>,
    /// Sums of these values by metric, which a record keeps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metric_sums: Vec<MetricSum>,
    /// Status of the workers at the end of the interval, in the order of their numbers. Present only while
    /// the interval is news, in the measured part and at the end of the load, and if the run control asks for
    /// details.
    pub worker_statuses: Vec<WorkerStatus>,
    /// Set when something was done to the system under test in the interval, such as a fault.
    pub marked: bool,
    /// Intervals of the plan's length that were joined to this one, which was one itself.
    pub joined: u32,
    /// Of joined intervals: in how many of them some request failed or timed out, or requests in flight stood
    /// still.
    pub disturbed: u32,
    /// Of joined intervals: the smallest and the largest number of requests in flight at the end of one.
    pub in_flight_range: Option<(u64, u64)>,
    /// Role of this interval in its cell: the cell itself, or a piece of it.
    pub cell: Cell,
}

/// The role of a kept interval. Cells are equally long; an interval is a cell or a piece of one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cell {
    /// The interval is a cell.
    #[default]
    Whole,
    /// The interval is a piece of the cell that another one ends.
    Part,
    /// The interval is the last piece of this cell.
    Ends(Box<Interval>),
}

/// Requests of one scenario in an interval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScenarioInterval {
    /// Name of the scenario.
    pub name: String,
    /// Requests started in it.
    pub started: u64,
    /// Requests that ended well in it.
    pub ok: u64,
    /// Requests that failed in it.
    pub failed: u64,
    /// Requests that timed out in it.
    pub timed_out: u64,
    /// Whole responses that came in it, whatever their status, and whoever started their requests.
    pub completed: u64,
    /// As [`Interval::response_time`].
    pub response_time: Option<[u64; 5]>,
}

/// Whom the run spoke to: facts of the first established connection to one target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// `host[:port]` as in the URL.
    pub authority: String,
    /// `scheme://host[:port]` of a server that came up while the run went on; empty for those of the plan.
    pub origin: String,
    /// The addresses that were used, in turn.
    pub addresses: Vec<String>,
    /// Addresses of the other family, IPv4 or IPv6, which were known and not needed.
    #[serde(default)]
    pub unused_addresses: Vec<String>,
    /// Negotiated application protocol, e.g. `http/1.1`.
    pub protocol: String,
    /// TLS version, e.g. `TLSv1.3`.
    pub tls_version: Option<String>,
    /// TLS cipher suite.
    pub tls_cipher: Option<String>,
}

impl Peer {
    /// Returns `true` if the server is on this machine by all of its addresses: the way to it loses nothing
    /// and has no bandwidth of its own.
    pub fn is_on_loopback(&self) -> bool {
        let is_local = |address: &String| match address.parse::<SocketAddr>() {
            Ok(address) => address.ip().is_loopback(),
            Err(_) => address.starts_with("unix:"),
        };
        !self.addresses.is_empty() && self.addresses.iter().all(is_local)
    }

    /// Adds what another worker found out about the servers. Those of the plan are in its order; the others
    /// each worker has in the order in which it met them.
    pub fn merge_all(mine: &mut Vec<Self>, theirs: impl IntoIterator<Item = Self>) {
        for (number, theirs) in theirs.into_iter().enumerate() {
            let same = match theirs.origin.is_empty() {
                true => mine.get_mut(number),
                false => mine.iter_mut().find(|peer| peer.origin == theirs.origin),
            };
            match same {
                Some(mine) => mine.merge(theirs),
                None => mine.push(theirs),
            }
        }
    }

    /// Adds what another worker found out about the same server.
    fn merge(&mut self, theirs: Self) {
        self.use_addresses(&theirs.addresses);
        if self.protocol.is_empty() {
            let addresses = std::mem::take(&mut self.addresses);
            *self =
                Self { addresses, unused_addresses: std::mem::take(&mut self.unused_addresses), ..theirs };
        }
    }

    /// Notes that these addresses are used, too.
    pub fn use_addresses(&mut self, addresses: &[String]) {
        for address in addresses {
            self.unused_addresses.retain(|unused| unused != address);
            if !self.addresses.contains(address) {
                self.addresses.push(address.clone());
            }
        }
    }
}

/// The whole record of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunRecord {
    /// Open or closed.
    pub model: Model,
    /// Length of the measured part: from the end of the warm-up to the end of the load (drain excluded).
    pub duration: Nanos,
    /// Length of the warm-up.
    pub warmup: Nanos,
    /// Time that was spent after the end of the load, waiting for responses.
    pub drain: Nanos,
    /// Start of the run as Unix time in nanoseconds, and on the driver's clock.
    pub started_unix: Nanos,
    /// Start of the run on the driver's clock (`CLOCK_MONOTONIC`).
    pub started_monotonic: Nanos,
    /// Whole responses ([`Sample::is_complete`]) that came within the measured part, whoever started their
    /// requests: what `achieved` is made from. Those to requests of the warm-up are the target's work of that
    /// time; those of the drain are not.
    pub completed_in_window: u64,
    /// Open model: whether arrivals are requests, and not iterations of any number of steps.
    pub paces_requests: bool,
    /// Planned length of the measured part; `None` if the plan has none, or counts iterations. The
    /// [duration](Self::duration) is shorter where the load ended early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<Nanos>,
    /// Open model with a planned length: the end of the load before it, if nobody asked for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early_end: Option<EarlyEnd>,
    /// Mean target rate over the measured part in arrivals per second (open model): the plan's, with all
    /// changes. Of a plan that counts iterations, at least [`arrivals`](Self::arrivals) over `duration`.
    pub target_per_second: Option<f64>,
    /// Closed model whose plan has users over time: the most users at once that it asks for. `None`: one for
    /// each request that the connections may carry at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<u64>,
    /// Closed model: whether users pause, by think times, paces or the delays of a script.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub users_pause: bool,
    /// Closed model: whether users end one by one, when their iterations or their data are used up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub users_end: bool,
    /// Changes of the rate while the run went on, in their order. The target rate and the accounts are those
    /// of the changed schedule.
    pub rate_changes: Vec<RateChange>,
    /// The source of a request to end before the planned end; `None` if there was none, or a signal ended the
    /// run.
    pub stopped_by: Option<SteeredBy>,
    /// Accounting of every arrival.
    pub accounting: Accounting,
    /// Accounting of every started iteration.
    pub iterations: IterationRecord,
    /// All steps merged.
    pub total: StepRecord,
    /// One record per step of the plan.
    pub steps: Vec<StepRecord>,
    /// Connections.
    pub connections: ConnectionRecord,
    /// The targets, in the order of the plan.
    pub peers: Vec<Peer>,
    /// Metrics of the plan's own, of the measured part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricRecord>,
    /// Text of the first error of each class.
    pub error_examples: BTreeMap<String, String>,
    /// Responses by negotiated protocol, e.g. `http/1.1`.
    pub protocols: BTreeMap<String, u64>,
    /// TLS versions by connections, e.g. `TLSv1.3`.
    pub tls_versions: BTreeMap<String, u64>,
    /// One per second; of a long run joined ones, at most about 5,000, see
    /// [`IntervalDownsampler`](crate::interval::IntervalDownsampler).
    pub intervals: Vec<Interval>,
    /// The measured part as at most 30 slices of about equal length, with what the histograms counted in
    /// each: together what `total` has.
    pub slices: Vec<Slice>,
    /// The whole run in finer slices, to be seen over time.
    pub timeline: Timeline,
    /// The phases in their order; empty if the plan names none.
    pub phases: Vec<PhaseRecord>,
    /// One per worker.
    pub workers: Vec<WorkerRecord>,
    /// Activity of the machine during the run; empty if it was not watched.
    pub machine: MachineRecord,
    /// Name of the driver backend.
    pub backend: Cow<'static, str>,
    /// Peak resident memory of the process in bytes.
    pub rss_peak_bytes: Option<u64>,
    /// The pacing budget: how late the open model may start a request on purpose, to share a wake-up with
    /// others.
    pub pacing_budget: Nanos,
    /// Set when the user asked for the smallest start lag: a larger one then makes the run invalid.
    pub precise: bool,
    /// Number of the signal by which the user interrupted the run; `None` if it was not interrupted.
    pub interrupted: Option<i32>,
    /// The verdict on the instrument.
    pub verdict: Verdict,
    /// Results of the thresholds of the plan, in its order.
    pub thresholds: Vec<ThresholdResult>,
    /// Counts of written and dropped log entries, and of the failed requests that were to be kept.
    pub log: LogRecord,
}

impl Interval {
    /// Returns the merged tally of all steps.
    pub fn total(&self) -> Tally {
        let mut total = Tally::default();
        self.steps.iter().for_each(|step| total.merge(step));
        total
    }

    /// Returns `true` if some request failed or timed out in the interval, or if requests were in flight and
    /// none ended well.
    pub const fn is_disturbed(&self) -> bool {
        self.failed + self.timed_out > 0 || (self.ok == 0 && self.in_flight > 0)
    }

    /// In how many of the plan's intervals that is so, of those that it is made of.
    pub fn disturbed(&self) -> u32 {
        if self.joined == 0 { u32::from(self.is_disturbed()) } else { self.disturbed }
    }

    /// The cell that it is, or ends; itself, if it is another piece.
    pub fn whole(&self) -> &Self {
        match &self.cell {
            Cell::Ends(whole) => whole,
            Cell::Whole | Cell::Part => self,
        }
    }

    /// Adds the one that follows, except for percentiles, which cannot be added: they are left as they are,
    /// and have to be set.
    pub fn join(&mut self, next: &Self) {
        let range = |one: &Self| one.in_flight_range.unwrap_or((one.in_flight, one.in_flight));
        let ((low, high), (lower, higher)) = (range(self), range(next));
        self.disturbed = self.disturbed().saturating_add(next.disturbed());
        AnswerTimes::join(&mut self.answers, next.answers);
        self.joined = self.joined.saturating_add(next.joined).saturating_add(1);
        self.in_flight_range = Some((low.min(lower), high.max(higher)));
        self.at = next.at;
        self.length += next.length;
        self.started += next.started;
        self.ok += next.ok;
        self.failed += next.failed;
        self.timed_out += next.timed_out;
        self.completed += next.completed;
        self.content_events += next.content_events;
        self.ttft = None;
        self.scheduled += next.scheduled;
        self.iterations += next.iterations;
        self.resent += next.resent;
        MetricRecord::merge_all(&mut self.metrics, &next.metrics);
        MetricSum::merge_all(&mut self.metric_sums, &next.metric_sums);
        self.marked |= next.marked;
        self.in_flight = next.in_flight;
        self.connections = next.connections;
        self.thresholds_failed = self.thresholds_failed.max(next.thresholds_failed);
        for (mine, theirs) in self.scenarios.iter_mut().zip(&next.scenarios) {
            mine.started += theirs.started;
            mine.ok += theirs.ok;
            mine.failed += theirs.failed;
            mine.timed_out += theirs.timed_out;
            mine.completed += theirs.completed;
        }
    }
}

/// Counts of written and dropped entries of the request log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "LogResult", description = "Counts of the log of single requests.")]
pub struct LogRecord {
    /// Requests that were handed over to be written.
    pub entries: u64,
    /// Requests that were chosen and are not in the log, because they came faster than they could be written.
    pub dropped: u64,
    /// Failed requests that were handed over with their messages.
    pub failed: u64,
    /// Failed requests that were not: beyond the limit, or faster than they could be written.
    pub failed_dropped: u64,
}

impl LogRecord {
    /// Adds another worker's.
    pub fn merge(&mut self, other: Self) {
        self.entries += other.entries;
        self.dropped += other.dropped;
        self.failed += other.failed;
        self.failed_dropped += other.failed_dropped;
    }

    /// Counts this many entries and failed requests, which were handed over, as dropped: they did not reach
    /// their files.
    pub fn lose(&mut self, entries: u64, failed: u64) {
        let (entries, failed) = (entries.min(self.entries), failed.min(self.failed));
        self.entries -= entries;
        self.dropped += entries;
        self.failed -= failed;
        self.failed_dropped += failed;
    }
}

/// Share of the time in requests from which waits for messages that come by themselves shape the figures.
const PUSHED_SHARE: f64 = 0.1;

impl RunRecord {
    /// Returns the share of the time in requests that was spent in waiting for messages that come
    /// [by themselves](Awaited::Push), if that shapes the figures: silence is no standstill then, and many in
    /// flight are no queue.
    pub fn awaits_pushes(&self) -> Option<f64> {
        let pushes = self.steps.iter().filter(|step| step.awaited == Awaited::Push);
        let waited: u128 = pushes.map(|step| step.service_time.sum()).sum();
        let share = waited as f64 / self.total.service_time.sum().max(1) as f64;
        (share >= PUSHED_SHARE).then_some(share)
    }

    /// The length of the measured part and of the drain, up to the end of the last interval in which content
    /// of streams came: what hangs to the end of a drain makes no rate smaller.
    pub fn streamed(&self) -> Nanos {
        let with_content = self.cells().filter(|cell| !cell.warmup && cell.content_events > 0);
        let last = with_content.map(|cell| cell.at.since(self.warmup)).max();
        let whole = self.duration + self.drain;
        last.map_or(whole, |last| last.max(self.duration).min(whole))
    }

    /// The intervals of the measured part, equally long: those of which several pieces are kept as the whole.
    pub fn measured_cells(&self) -> impl Iterator<Item = &Interval> {
        self.load_cells().filter(|interval| !interval.warmup)
    }

    /// The cells of the load, warm-up included.
    pub fn load_cells(&self) -> impl Iterator<Item = &Interval> {
        self.cells().filter(|interval| !interval.drain)
    }

    /// The cells of the whole run, from the warm-up to the drain.
    pub fn cells(&self) -> impl Iterator<Item = &Interval> {
        let ends = self.intervals.iter().filter(|interval| interval.cell != Cell::Part);
        ends.map(Interval::whole)
    }

    /// Requests of the warm-up that were still in flight at the end of a measured part in which no other was
    /// started: the target kept all that it got. Where it took none, because it took no connections or
    /// allowed no streams of HTTP/2, the arrivals that were not started. Zero if one was started.
    pub fn held_up(&self) -> u64 {
        let Some(last) = self.measured_cells().last().filter(|_| self.accounting.started == 0) else {
            return 0;
        };
        let not_let_in = self.connections.http2.blocked_while_barred + self.connections.blocked_unreached;
        match (last.in_flight, not_let_in) {
            (0, Nanos::ZERO) => 0,
            (0, _) => self.accounting.dropped + self.accounting.never_started,
            (in_flight, _) => in_flight,
        }
    }

    /// The record of a run in which nothing has happened.
    pub fn empty(model: Model) -> Self {
        Self {
            model,
            duration: Nanos::ZERO,
            warmup: Nanos::ZERO,
            drain: Nanos::ZERO,
            started_unix: Nanos::ZERO,
            started_monotonic: Nanos::ZERO,
            completed_in_window: 0,
            paces_requests: false,
            planned: None,
            early_end: None,
            target_per_second: None,
            users: None,
            users_pause: false,
            users_end: false,
            rate_changes: Vec::new(),
            stopped_by: None,
            accounting: Accounting::default(),
            iterations: IterationRecord::default(),
            total: StepRecord::default(),
            steps: Vec::new(),
            connections: ConnectionRecord::default(),
            peers: Vec::new(),
            metrics: Vec::new(),
            error_examples: BTreeMap::new(),
            protocols: BTreeMap::new(),
            tls_versions: BTreeMap::new(),
            intervals: Vec::new(),
            slices: Vec::new(),
            timeline: Timeline::default(),
            phases: Vec::new(),
            workers: Vec::new(),
            machine: MachineRecord::default(),
            backend: Cow::Borrowed(""),
            rss_peak_bytes: None,
            pacing_budget: Nanos::ZERO,
            precise: false,
            interrupted: None,
            verdict: Verdict::default(),
            thresholds: Vec::new(),
            log: LogRecord::default(),
        }
    }

    /// Failures of scripts, with and without a request.
    pub fn script_errors(&self) -> u64 {
        let without: u64 = self.workers.iter().map(|worker| worker.script_errors).sum();
        without.max(self.total.errors[ErrorClass::Script])
    }

    /// Arrivals that the plan asked for within the measured time: starts of iterations, or requests. With
    /// scenarios of one step these are the same.
    pub const fn arrivals(&self) -> u64 {
        let Accounting { scheduled, since_warmup, dropped, never_started, .. } = self.accounting;
        match self.paces_requests {
            true => scheduled.saturating_sub(since_warmup),
            false => self.iterations.started + dropped + never_started,
        }
    }

    /// Arrivals per second that fell due (open model), by which the load is judged: with Poisson arrivals, or
    /// if the data or a script ended, others than the plan [asks for](Self::target_per_second). Of a plan
    /// that counts iterations, the rate that it asks for.
    pub fn due_per_second(&self) -> Option<f64> {
        let counts = self.planned.is_some() && self.duration > Nanos::ZERO;
        self.target_per_second.map(|target| match counts {
            true => self.arrivals() as f64 / self.duration.as_secs_f64(),
            false => target,
        })
    }

    /// Returns the number of those [arrivals](Self::arrivals) that were started.
    pub const fn started_arrivals(&self) -> u64 {
        let Accounting { started, since_warmup, .. } = self.accounting;
        if self.paces_requests { started.saturating_sub(since_warmup) } else { self.iterations.started }
    }

    /// Requests of an arrival: of an iteration in which every one ends well, as a mean over the scenarios; 1
    /// without steps.
    pub fn requests_per_arrival(&self) -> f64 {
        if self.paces_requests {
            return 1.0;
        }
        let mut scenarios = 0_u64;
        let mut first: Option<&StepRecord> = None;
        for step in &self.steps {
            // A scenario without a name has one step. If two scenarios of the same name follow each other,
            // the second one begins with the same step as the first.
            let goes_on = first.is_some_and(|first| {
                !step.scenario.is_empty() && step.scenario == first.scenario && step.name != first.name
            });
            if !goes_on {
                scenarios += 1;
                first = Some(step);
            }
        }
        if scenarios == 0 { 1.0 } else { self.steps.len() as f64 / scenarios as f64 }
    }
}

impl Sample {
    /// done − intended.
    pub fn response_time(&self) -> Nanos {
        self.done - self.intended
    }

    /// done − sent; zero if it was never sent.
    pub fn service_time(&self) -> Nanos {
        self.done - self.sent
    }

    /// started − intended.
    pub fn start_lag(&self) -> Nanos {
        self.started - self.intended
    }

    /// Returns `true` if a whole response came, whatever its status. The achieved rate counts these.
    pub fn is_complete(&self) -> bool {
        match self.outcome {
            Outcome::Ok => true,
            Outcome::Failed(class) => WHOLE_RESPONSES.contains(&class),
            Outcome::TimedOut => false,
        }
    }

    /// Returns `true` if the request ended well.
    pub fn is_ok(&self) -> bool {
        matches!(self.outcome, Outcome::Ok)
    }
}
