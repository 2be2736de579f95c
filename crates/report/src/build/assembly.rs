//! The result of a run, put together from its record.

use std::borrow::Cow;
use std::collections::BTreeMap;

use plimsoll_core::{ErrorCounts, Nanos, figure};
use plimsoll_histogram::{Censored, Delta, Histogram};
use plimsoll_metrics::course::{self, Steadiness};
use plimsoll_metrics::interval::PERCENTILES;
use plimsoll_metrics::slice::{MOST_STEPS, Slice};
use plimsoll_metrics::{
    Accounting, AddressChange, Headline, HelperCpu, Http2Record, Interval, LogRecord, MachineRecord, Peer,
    RateChange, Reason, RunFacts, RunRecord, ScenarioInterval, Standstill, StepRecord, Tally, ThresholdFacts,
    ThresholdResult,
};
use plimsoll_statistics::Little;

use crate::contract::context::{ModelContext, RunContext, TargetContext};
use crate::contract::event_streams::EventStreamsResult;
use crate::contract::example::ErrorExampleResult;
use crate::contract::machine::{self, MachineSummary, TargetProcessResult};
use crate::contract::metric::{IntervalMetric, OwnMetric};
use crate::contract::phase::PhaseResult;
use crate::contract::probe::ProbeResult;
use crate::contract::records::RecordsResult;
use crate::contract::result::{
    AddressChangeResult, Bytes, Connections, CpuOfKind, EarlyEndResult, Finding, Generator, Http2Result,
    InStall, IntervalPercentiles, IntervalResult, IntervalTimes, LimitedByResult, LittleResult, Methods,
    ModelResult, Note, ObservedResult, Rate, RateChangeResult, Run, RunResult, ScenarioIntervalResult,
    StallResult, StandstillResult, SteadyResult, SteadyState, StepResult, StreamIntervalResult, Target,
    ThresholdOutcome, Thresholds, Tool, VerdictResult, WindowsResult, Worker,
};
use crate::contract::slices::SlicesResult;
use crate::contract::slow::SlowClientsResult;
use crate::contract::slowest::SlowRequestResult;
use crate::contract::summary::{Summary, missing};
use crate::contract::traffic::{Http2TrafficResult, RateSpread};
use crate::contract::watched::{TrendsResult, WatchedResult};
use crate::contract::{SCHEMA_VERSION, timestamp};

/// A wait after the load that is shorter than this has no rates of its own.
const SHORTEST_DRAIN: Nanos = Nanos::from_millis(100);

/// The scenario of steps whose plan names none.
pub(crate) const DEFAULT_SCENARIO: &str = "default";

impl RunResult {
    /// The result of a run, from its record and the caller's knowledge about it.
    pub fn new(record: &RunRecord, context: RunContext) -> Self {
        Self::of(record, &RunFacts::of(record), context, Nanos::ZERO)
    }

    /// The result of a run that goes on, as if it ended now, from its record so far: judged, with the
    /// thresholds so far. Intervals that ended by `after` since the start of the run are left out:
    /// a client that polls once per second has them already.
    pub fn so_far(record: &RunRecord, context: RunContext, after: Nanos) -> Self {
        Self::of(record, &RunFacts { is_over: false, ..RunFacts::of(record) }, context, after)
    }

    fn of(record: &RunRecord, facts: &RunFacts, context: RunContext, after: Nanos) -> Self {
        let total = &record.total;
        let (response_time, service_time) = times(total, record, None);
        let steadiness = course::steadiness(record);
        let probe = context.probe.map(|probe| ProbeResult::new(&probe, &service_time));
        let passed_over =
            context.preflight.as_ref().map(|first| first.passed_over.clone()).unwrap_or_default();
        Self {
            schema_version: SCHEMA_VERSION,
            tool: Tool { name: context.tool_name, version: context.tool_version },
            model: ModelResult::of(record, context.model),
            run: Run {
                id: context.run_id,
                name: context.name,
                seed: context.seed,
                shard: context.shard,
                taken_over: context.taken_over,
                started_at: timestamp::rfc3339(record.started_unix),
                started_at_unix_ns: record.started_unix.0,
                started_at_monotonic_ns: record.started_monotonic.0,
                args: context.args,
                plan_hash: context.plan_hash,
                load_checksum: Some(context.load_checksum),
                trace_link: context.trace_link,
                host: context.host,
                targets: targets(record, context.targets),
                preflight: context.preflight,
                setup: context.setup,
                refresh: context.refresh,
                teardown: context.teardown,
                planned_s: record.planned.map(Nanos::as_secs_f64),
                early_end: record.early_end.as_ref().map(EarlyEndResult::new),
                interrupted_by_signal: record.interrupted,
                ended_by_threshold: record
                    .thresholds
                    .iter()
                    .find(|result| result.ended_run)
                    .map(|result| result.spec.to_string()),
                stopped_by: record.stopped_by.map(|by| by.name().to_owned()),
            },
            methods: Methods::used(),
            notes: notes(record, context.repeated, &passed_over),
            verdict: VerdictResult::new(record, facts),
            standstills: StandstillResult::all(record),
            little: course::little(record).map(LittleResult::new),
            steady: SteadyResult::new(&steadiness),
            accounting: Accounting {
                incomplete: record.workers.iter().any(|worker| worker.absent),
                ..record.accounting
            },
            iterations: record.iterations,
            rate: Rate::of(record),
            duration_s: record.duration.as_secs_f64(),
            warmup_s: record.warmup.as_secs_f64(),
            drain_s: record.drain.as_secs_f64(),
            bytes: Bytes { sent: total.bytes_sent, received: total.bytes_received },
            protocols: record.protocols.clone(),
            tls_versions: record.tls_versions.clone(),
            response_time,
            service_time,
            start_lag: Summary::exact(&total.start_lag),
            connect_time: Summary::exact(&record.connections.connect_time),
            tls_time: Summary::exact(&record.connections.tls_time),
            first_byte_time: Summary::exact(&total.first_byte_time),
            failed_response_time: Summary::exact(&total.failed_response_time),
            in_stall: InStall::new(total),
            statuses: statuses(total),
            errors: by_class(&total.errors),
            error_examples: record.error_examples.clone(),
            connections: Connections::new(record),
            http2: Http2Result::new(&record.connections.http2),
            websocket: Some(record.connections.websocket).filter(|record| !record.is_empty()),
            thresholds: record.thresholds.iter().map(|one| ThresholdOutcome::new(one, facts)).collect(),
            log: (record.log != LogRecord::default()).then_some(record.log),
            exports: Vec::new(),
            by_step: (0..)
                .zip(&record.steps)
                .map(|(number, step)| StepResult::new(step, number, record))
                .collect(),
            phases: record.phases.iter().map(PhaseResult::new).collect(),
            intervals: record
                .intervals
                .iter()
                .filter(|interval| interval.at > after)
                .map(|interval| IntervalResult::of(interval, &steadiness).on(&record.machine, interval))
                .collect(),
            slices: context.slices.then(|| SlicesResult::new(record)),
            probe,
            agents: Vec::new(),
            slow_clients: context.slow.as_ref().map(SlowClientsResult::new),
            records: RecordsResult::new(record, &context.records),
            event_streams: event_streams(total, record.streamed()),
            lag: lag(total),
            metrics: OwnMetric::all(&record.metrics, record.duration),
            faults: Vec::new(),
            reconciliation: None,
            generator: Generator { calibration: context.calibration, ..Generator::new(record) },
        }
    }
}

/// The lag of the messages of a step, if any were looked at for it.
pub(crate) fn lag(step: &StepRecord) -> Option<Summary> {
    (!step.lag.is_empty()).then(|| Summary::exact(&step.lag))
}

/// The streams of events of one step, or of all of them, over the time of this length in which they came.
pub(crate) fn event_streams(step: &StepRecord, answered: Nanos) -> Option<EventStreamsResult> {
    step.event_streams.as_ref().map(|streams| EventStreamsResult::new(streams, answered))
}

/// Returns notes on the limits of this run alone (R12), on joined intervals, and on addresses that were
/// passed over before it. A run without responses has no figures that could vary between runs.
fn notes(record: &RunRecord, repeated: bool, passed_over: &[String]) -> Vec<Note> {
    let alone = (!repeated && record.completed_in_window > 0).then(|| Note {
        code: "one_run".to_owned(),
        text: "1 run: between-run variation unknown (--repeat 5 shows it)".to_owned(),
    });
    let longest = record.intervals.iter().max_by_key(|interval| interval.joined);
    let joined = longest.filter(|interval| interval.joined > 0).map(|interval| {
        let (length, count) = (figure::nanos(interval.length), figure::count(u64::from(interval.joined) + 1));
        Note {
            code: "intervals_joined".to_owned(),
            text: format!(
                "intervals of {length} are kept, each joined from {count}, and finer ones where requests failed"
            ),
        }
    });
    let passed_over = (!passed_over.is_empty()).then(|| Note {
        code: "address_family".to_owned(),
        text: format!(
            "addresses of the other family are used, as no connection could be made to {}",
            passed_over.join(", ")
        ),
    });
    alone.into_iter().chain(joined).chain(passed_over).collect()
}

impl ModelResult {
    fn of(record: &RunRecord, model: ModelContext) -> Self {
        Self {
            kind: record.model,
            description: model.description,
            arrivals: model.arrivals,
            connections: model.connections,
            depth: model.depth,
            pacing_budget_ns: record.pacing_budget.0,
        }
    }
}

impl Rate {
    fn of(record: &RunRecord) -> Self {
        Self {
            target_per_s: record.target_per_second,
            paces_requests: record.paces_requests,
            achieved_per_s: per_second(record.completed_in_window, record.duration),
            started_per_s: per_second(record.accounting.started, record.duration),
            iterations_started_per_s: per_second(record.iterations.started, record.duration),
            changes: record.rate_changes.iter().map(RateChangeResult::new).collect(),
        }
    }
}

impl Methods {
    /// Returns the methods that this version uses.
    fn used() -> Self {
        Self {
            percentile: "nearest rank, ceil(p / 100 * n)".to_owned(),
            percentile_interval: "ranks, their variance inflated by that between slices of the run"
                .to_owned(),
            steady: "MSER on throughput, p50 and p99 of the intervals; trend by Mann and Kendall".to_owned(),
            response_time: "from the intended start to the last byte".to_owned(),
        }
    }
}

/// Response and service time of one step, or of all of them together, with the intervals of their
/// percentiles.
pub(crate) fn times(step: &StepRecord, run: &RunRecord, number: Option<usize>) -> (Summary, Summary) {
    let tallies: Option<Vec<&Tally>> = match number {
        Some(number) => run.slices.iter().map(|slice| slice.steps.get(number)).collect(),
        None => Some(run.slices.iter().map(|slice| &slice.total).collect()),
    };
    let of = |time: fn(&Tally) -> &Delta| {
        tallies.as_ref().map(|tallies| tallies.iter().copied().map(time).collect::<Vec<_>>())
    };
    let too_many = format!("intervals of single steps are made for up to {MOST_STEPS} steps");
    let summary = |histogram: &Histogram, censored: Censored, slices: Option<Vec<&Delta>>| {
        let slices = slices.as_deref().ok_or(too_many.as_str());
        Summary::new(histogram, censored).with_intervals(histogram, censored, slices)
    };
    (
        summary(&step.response_time, step.censored_response, of(|tally| &tally.response_time)),
        summary(&step.service_time, step.censored_service, of(|tally| &tally.service_time)),
    )
}

/// The targets of a run with the facts about them: none, where no connection was established. Behind them the
/// servers that came up while it went on.
fn targets(record: &RunRecord, targets: Vec<TargetContext>) -> Vec<Target> {
    let unknown = Peer::default();
    let known = targets.len();
    let peers = record.peers.iter().chain(core::iter::repeat(&unknown));
    let found = |urls: Vec<String>, authority: String, peer: &Peer| Target {
        urls,
        authority,
        addresses: peer.addresses.clone(),
        unused_addresses: peer.unused_addresses.clone(),
        protocol: peer.protocol.clone(),
        tls_version: peer.tls_version.clone(),
        tls_cipher: peer.tls_cipher.clone(),
    };
    let planned =
        targets.into_iter().zip(peers).map(|(target, peer)| found(target.urls, target.authority, peer));
    let others = record.peers.iter().skip(known).filter(|peer| !peer.origin.is_empty());
    planned.chain(others.map(|peer| found(vec![peer.origin.clone()], peer.authority.clone(), peer))).collect()
}

impl Finding {
    /// The finding of a verdict.
    pub fn of(reason: &Reason) -> Self {
        Self {
            code: reason.code.name().to_owned(),
            evidence: reason.evidence.clone(),
            hint: reason.hint.clone(),
        }
    }

    /// Returns the evidence, and the hint if there is one.
    pub fn in_words(&self) -> String {
        let hint = if self.hint.is_empty() { String::new() } else { format!("; {}", self.hint) };
        format!("{}{hint}", self.evidence)
    }
}

impl VerdictResult {
    fn new(record: &RunRecord, facts: &RunFacts) -> Self {
        let findings = |reasons: &[Reason]| reasons.iter().map(Finding::of).collect();
        let Headline { outcome, cause, summary, .. } = Headline::of(facts);
        Self {
            outcome,
            cause,
            summary,
            valid: record.verdict.valid,
            invalid_reasons: record.verdict.codes(),
            evidence: findings(&record.verdict.reasons),
            warnings: findings(&record.verdict.warnings),
            thresholds: match &*record.thresholds {
                [] => Thresholds::None,
                all if all.iter().all(|result| result.passed) => Thresholds::Pass,
                _ => Thresholds::Fail,
            },
            limited_by: LimitedByResult {
                what: record.verdict.limited_by.what.name().to_owned(),
                evidence: record.verdict.limited_by.evidence.clone(),
                hint: record.verdict.limited_by.hint.clone(),
            },
        }
    }
}

impl InStall {
    /// `None` if no request met a stall. A timeout among them is a lower bound, as it is among the others.
    pub(crate) fn new(total: &StepRecord) -> Option<Self> {
        let (response, service) = (&total.response_in_stall, &total.service_in_stall);
        (!response.is_empty()).then(|| Self {
            response_time: Summary::new(response, total.censored_response),
            service_time: Summary::new(service, total.censored_service),
            response_time_without: Summary::new(
                &total.response_time.without(response),
                total.censored_response,
            ),
            service_time_without: Summary::new(&total.service_time.without(service), total.censored_service),
        })
    }
}

impl ThresholdOutcome {
    pub(crate) fn new(result: &ThresholdResult, facts: &RunFacts) -> Self {
        let spec = &result.spec;
        Self {
            text: spec.threshold.to_string(),
            scenario: spec.scenario.clone(),
            step: spec.step.clone(),
            phase: spec.phase.clone(),
            window_s: spec.window.map(Nanos::as_secs_f64),
            passed: result.passed,
            observed: result.observed.map(|observed| ObservedResult {
                value: observed.value,
                unit: observed.unit.name().to_owned(),
                at_least: observed.at_least,
                text: observed.beside(spec.threshold.limit),
            }),
            reason: result.reason.clone(),
            unreached: result.unreached.clone(),
            series: result.series.clone(),
            windows: result.windows.map(|windows| WindowsResult {
                judged: windows.judged,
                failed: windows.failed,
                open: windows.open,
                first_failed_at_s: windows.first_failed_at.map(Nanos::as_secs_f64),
            }),
            ended_run: result.ended_run,
            proven: facts.is_proven(&ThresholdFacts::of(result)),
        }
    }

    /// Returns the text of the threshold with its scope, as in [`plimsoll_metrics::ThresholdSpec`].
    pub(crate) fn heading(&self) -> String {
        let name =
            |what: &str, name: &Option<String>| name.as_ref().map(|name| format!("of {what} \"{name}\""));
        let window = self
            .window_s
            .map(|length| format!("in every {}", plimsoll_core::figure::nanos(Nanos::from_secs_f64(length))));
        let phase = self.phase.as_ref().map(|name| format!("in phase \"{name}\""));
        let (step, scenario) = (name("step", &self.step), name("scenario", &self.scenario));
        let parts = [Some(self.text.clone()), step, scenario, phase, window];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

impl SteadyResult {
    fn new(steadiness: &Steadiness) -> Self {
        let (state, from_s, reason) = match steadiness {
            Steadiness::From(from) => (SteadyState::Steady, Some(from.as_secs_f64()), None),
            Steadiness::Never { evidence } => (SteadyState::Never, None, Some(evidence.clone())),
            Steadiness::Unknown { reason } => (SteadyState::Unknown, None, Some(reason.clone())),
        };
        Self { state, from_s, reason }
    }
}

impl LittleResult {
    fn new(little: Little) -> Self {
        // More digits than three behind the point would be noise.
        let rounded = |value: f64| (value * 1e3).round() / 1e3;
        Self {
            in_flight: rounded(little.in_flight),
            in_flight_error: rounded(little.in_flight_error),
            rate_times_time: rounded(little.product),
            holds: little.holds,
        }
    }
}

impl StandstillResult {
    fn all(record: &RunRecord) -> Vec<Self> {
        let mut all = Standstill::all(record);
        if let Some(last) = Standstill::at_end(record) {
            all.retain(|one| one.until <= last.since);
            all.push(last);
        }
        let of = |one: Standstill| Self {
            from_s: one.since.as_secs_f64(),
            to_s: one.until.as_secs_f64(),
            in_flight: one.in_flight,
        };
        all.into_iter().map(of).collect()
    }
}

impl AddressChangeResult {
    fn new(change: &AddressChange) -> Self {
        Self {
            at_s: change.at.as_secs_f64(),
            target: change.target.clone(),
            added: change.added.clone(),
            removed: change.removed.clone(),
            error: change.error.clone(),
        }
    }
}

impl Connections {
    fn new(record: &RunRecord) -> Self {
        let connections = &record.connections;
        Self {
            opened: connections.opened,
            family_switches: connections.family_switches,
            address_changes: connections.address_changes.iter().map(AddressChangeResult::new).collect(),
            failed: by_class(&connections.failed),
            closed_idle: connections.closed_idle,
            unsolicited: connections.unsolicited,
            peak_open: connections.peak_open,
            limit: connections.limit,
            tls_resumed: connections.tls_resumed,
            blocked_s: connections.blocked.as_secs_f64(),
            blocked_at_limit_s: connections.blocked_at_limit.as_secs_f64(),
            blocked_unreached_s: connections.blocked_unreached.as_secs_f64(),
            requests_per_s: RateSpread::new(&connections.request_rates),
        }
    }
}

impl Http2Result {
    /// `None` if no connection spoke HTTP/2.
    fn new(record: &Http2Record) -> Option<Self> {
        let by_code = |counts: &BTreeMap<Cow<'static, str>, u64>| {
            counts.iter().map(|(code, count)| (code.clone().into_owned(), *count)).collect()
        };
        (!record.is_empty()).then(|| Self {
            connections: record.connections,
            streams_asked: u64::from(record.streams_asked),
            stream_limit: record.stream_limit.map(u64::from),
            barred: record.barred,
            blocked_while_barred_s: (record.blocked_while_barred > Nanos::ZERO)
                .then(|| record.blocked_while_barred.as_secs_f64()),
            resets: by_code(&record.resets),
            go_aways: by_code(&record.go_aways),
            violations: by_code(&record.violations),
            cancelled: record.cancelled,
            traffic: Http2TrafficResult::new(&record.traffic),
            ping_time: Summary::exact(&record.ping_time),
        })
    }
}

impl StepResult {
    /// The result of step `number` of a run.
    fn new(record: &StepRecord, number: usize, run: &RunRecord) -> Self {
        let (response_time, service_time) = times(record, run, Some(number));
        let scenario = if record.scenario.is_empty() { DEFAULT_SCENARIO } else { &record.scenario };
        let has_ok = |slice: &&Slice| slice.steps.get(number).is_some_and(|step| step.ok > 0);
        let last_ok = run.slices.iter().rev().find(has_ok);
        Self {
            scenario: scenario.to_owned(),
            step: record.name.clone(),
            ok: record.ok,
            failed: record.failed,
            timed_out: record.timed_out,
            last_ok_s: last_ok.map(|slice| slice.at.as_secs_f64()),
            bytes: Bytes { sent: record.bytes_sent, received: record.bytes_received },
            response_time,
            service_time,
            start_lag: Summary::exact(&record.start_lag),
            first_byte_time: Summary::exact(&record.first_byte_time),
            failed_response_time: Summary::exact(&record.failed_response_time),
            statuses: statuses(record),
            errors: by_class(&record.errors),
            error_examples: ErrorExampleResult::all(&record.error_examples),
            slowest: SlowRequestResult::all(&record.slowest),
            event_streams: event_streams(record, run.streamed()),
            lag: lag(record),
        }
    }
}

impl RateChangeResult {
    fn new(change: &RateChange) -> Self {
        Self {
            at_s: change.at.as_secs_f64(),
            what: change.what.name().to_owned(),
            from_per_s: change.from_per_second,
            to_per_s: change.to_per_second,
            by: change.by.name().to_owned(),
        }
    }
}

impl IntervalResult {
    /// One interval of a run that is over.
    fn of(interval: &Interval, steadiness: &Steadiness) -> Self {
        let settling = match steadiness {
            Steadiness::From(from) => interval.at <= *from && !interval.warmup,
            Steadiness::Never { .. } | Steadiness::Unknown { .. } => false,
        };
        Self { settling, ..Self::new(interval) }
    }

    /// One interval of a run.
    pub fn new(interval: &Interval) -> Self {
        Self {
            settling: false,
            at_s: interval.at.as_secs_f64(),
            length_s: interval.length.as_secs_f64(),
            warmup: interval.warmup,
            scheduled: interval.scheduled,
            started: interval.started,
            ok: interval.ok,
            failed: interval.failed,
            timed_out: interval.timed_out,
            resent: interval.resent,
            in_flight: interval.in_flight,
            connections: interval.connections,
            achieved_per_s: rate_of(interval.completed, interval),
            response_time: IntervalTimes::new(interval.ok + interval.timed_out, interval.response_time),
            event_streams: (interval.content_events > 0 || interval.ttft.is_some()).then(|| {
                StreamIntervalResult {
                    content_events: interval.content_events,
                    content_events_per_s: per_second(interval.content_events, interval.length),
                    ttft: interval.ttft,
                }
            }),
            drain: interval.drain,
            metrics: IntervalMetric::all(&interval.metric_sums, interval.length.as_secs_f64()),
            thresholds_failed: interval.thresholds_failed,
            by_scenario: interval
                .scenarios
                .iter()
                .map(|scenario| ScenarioIntervalResult::new(scenario, interval))
                .collect(),
            marked: interval.marked,
            joined: interval.joined,
            disturbed: interval.disturbed,
            in_flight_range: interval.in_flight_range,
            machine: None,
        }
    }

    /// Returns the interval with the state of the machine in it.
    fn on(self, machine: &MachineRecord, interval: &Interval) -> Self {
        Self { machine: machine::during(machine, interval).map(Box::new), ..self }
    }
}

/// The rate of an interval. Answers of a short wait after the load have none: 20 in 6.5 ms are not 3,081/s.
fn rate_of(completed: u64, interval: &Interval) -> Option<f64> {
    let is_too_short = interval.drain && interval.length < SHORTEST_DRAIN;
    per_second(completed, interval.length).filter(|_| !is_too_short)
}

impl ScenarioIntervalResult {
    fn new(scenario: &ScenarioInterval, interval: &Interval) -> Self {
        Self {
            scenario: scenario.name.clone(),
            started: scenario.started,
            ok: scenario.ok,
            failed: scenario.failed,
            timed_out: scenario.timed_out,
            achieved_per_s: rate_of(scenario.completed, interval),
            response_time: IntervalTimes::new(scenario.ok + scenario.timed_out, scenario.response_time),
        }
    }
}

impl IntervalTimes {
    pub(crate) fn new(count: u64, times: Option<[u64; 5]>) -> Self {
        let mut p_missing = BTreeMap::new();
        let mut percentile = |index: usize| {
            let p = PERCENTILES[index];
            if let Some(reason) = missing(p, count) {
                p_missing.insert(p.to_string(), reason);
                return None;
            }
            times.map(|values| values[index])
        };
        let p = IntervalPercentiles {
            p50: percentile(0),
            p90: percentile(1),
            p99: percentile(2),
            p99_9: percentile(3),
        };
        Self { unit: "ns".to_owned(), count, p, p_missing, max: times.map(|values| values[4]) }
    }
}

impl Generator {
    fn new(record: &RunRecord) -> Self {
        let sum = |part: fn(&plimsoll_metrics::WorkerRecord) -> u64| -> u64 {
            record.workers.iter().map(part).fold(0, u64::saturating_add)
        };
        let completed = record.completed_in_window;
        let helpers = |part: fn(&plimsoll_metrics::WorkerRecord) -> HelperCpu| {
            record.workers.iter().map(part).fold(HelperCpu::default(), |mut sum, more| {
                sum.add(more);
                sum
            })
        };
        let workers = HelperCpu {
            threads: record.workers.len() as u32,
            user: Nanos(sum(|worker| worker.cpu_user.0)),
            system: Nanos(sum(|worker| worker.cpu_system.0)),
        };
        let kinds = [
            ("workers", workers),
            ("bodies", helpers(|worker| worker.bodies_cpu)),
            ("signing", helpers(|worker| worker.signing_cpu)),
        ];
        let per_request = |time: Nanos| (completed > 0).then(|| time.0 as f64 / 1e3 / completed as f64);
        let mut all = HelperCpu::default();
        kinds.iter().for_each(|(_, cpu)| all.add(*cpu));
        let cpu_by_kind = kinds.into_iter().filter(|(kind, cpu)| *kind == "workers" || cpu.threads > 0);
        let mut receive_lag = Histogram::new();
        record.workers.iter().for_each(|worker| receive_lag.merge(&worker.receive_lag));
        Self {
            threads: record.workers.len() as u64,
            cpu_user_s: all.user.as_secs_f64(),
            cpu_sys_s: all.system.as_secs_f64(),
            cpu_us_per_request: per_request(all.total()),
            cpu_by_kind: cpu_by_kind
                .map(|(kind, cpu)| CpuOfKind {
                    kind: kind.to_owned(),
                    threads: u64::from(cpu.threads),
                    cpu_s: cpu.total().as_secs_f64(),
                    cpu_us_per_request: per_request(cpu.total()),
                })
                .collect(),
            rss_peak_bytes: record.rss_peak_bytes,
            backend: record.backend.clone().into_owned(),
            calibration: None,
            bodies: sum(|worker| worker.bodies),
            bodies_late: sum(|worker| worker.bodies_late),
            bodies_expired: sum(|worker| worker.bodies_expired),
            stamped: sum(|worker| worker.stamped),
            turnaround_mean_ns: sum(|worker| worker.turnaround.0)
                .checked_div(sum(|worker| worker.turnarounds)),
            unstamped: sum(|worker| worker.unstamped),
            send_time_uncertain: sum(|worker| worker.send_time_uncertain),
            shared_wakeups_share: match sum(|worker| worker.wall.0) {
                0 => 0.0,
                wall => sum(|worker| worker.shared_wakeups.0) as f64 / wall as f64,
            },
            receive_lag: (receive_lag.count() > 0).then(|| Summary::exact(&receive_lag)),
            workers: record.workers.iter().map(Worker::new).collect(),
            machine: MachineSummary::new(record),
            target_process: TargetProcessResult::new(record),
            watched: WatchedResult::all(record),
            trends: TrendsResult::new(record, |part| part.generator),
        }
    }
}

impl Worker {
    fn new(record: &plimsoll_metrics::WorkerRecord) -> Self {
        let stall = |stall: &plimsoll_metrics::Stall| StallResult {
            at_s: stall.at.as_secs_f64(),
            length_ns: stall.length.0,
        };
        let cpu = record.cpu_user + record.cpu_system;
        let share = |time: Nanos| (record.wall > Nanos::ZERO).then(|| time.0 as f64 / record.wall.0 as f64);
        Self {
            absent: record.absent,
            cpu_share: share(cpu),
            polled_share: share(record.polled.min(cpu)).unwrap_or(0.0),
            run_delay_s: record.run_delay.map(Nanos::as_secs_f64),
            involuntary_switches: record.involuntary_switches,
            passes: record.passes,
            longest_pass_ns: record.longest_pass.0,
            stalls: record.stalls.iter().map(stall).collect(),
        }
    }
}

pub(crate) fn statuses(record: &StepRecord) -> BTreeMap<String, u64> {
    record.statuses.iter().map(|(status, count)| (status.to_string(), *count)).collect()
}

/// The classes that occurred, by name.
pub(crate) fn by_class(counts: &ErrorCounts) -> BTreeMap<String, u64> {
    counts.iter().map(|(class, count)| (class.name().to_owned(), count)).collect()
}

/// Events per second; `None` over no time.
pub(crate) fn per_second(count: u64, length: Nanos) -> Option<f64> {
    (length > Nanos::ZERO).then(|| count as f64 / length.as_secs_f64())
}
