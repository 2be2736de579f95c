//! The verdict on the instrument: whether the numbers of a run can be believed.

mod attribution;
mod backlog;
mod causes;
mod connections;
mod queueing;
mod reason;

use plimsoll_core::{ErrorClass, Nanos, figure};
use plimsoll_histogram::Histogram;

use self::connections::Blocking;
pub use self::reason::{Claim, Limitation, LimitedBy, Reason, ReasonCode, Verdict};
use crate::course::{self, Steadiness};
use crate::threshold::Shown;
use crate::{
    EVENT_TIME_LIMIT, EndedBy, LongCalls, MachineInterval, Model, RunRecord, Stall, Standstill,
    ThresholdResult, WorkerRecord,
};

/// Share of the service time's median up to which a start lag is taken as harmless.
const LAG_SHARE_OF_SERVICE: f64 = 0.05;
/// Start lag without a warning: that of an idle core with a good timer (`MEASUREMENT.md`, R4).
const LAG_FLOOR: Nanos = Nanos::from_micros(50);
/// Lateness of arrivals that is allowed beyond the pacing budget: more than a nap of adaptive pacing and its
/// wake-up. A p99 above it is worth a warning.
const PACING_SLACK: Nanos = Nanos::from_micros(100);
/// Percentiles that the short report tells.
const TOLD_PERCENTILES: [f64; 4] = [50.0, 90.0, 99.0, 99.9];
/// Share of the response time's median up to which the median start lag is taken as harmless: beyond it a
/// tenth of the target's figures is due to the generator. Of other percentiles the same share is worth a
/// warning.
const LAG_SHARE_OF_RESPONSE: f64 = 0.10;
/// Median start lag that is harmless at any share.
const MEDIAN_LAG_FLOOR: Nanos = Nanos::from_micros(20);
/// Share of the requests whose instant of sending may be uncertain.
const UNCERTAIN_SHARE: f64 = 0.01;
/// Requests up to which that share says nothing: they change no percentile of the few that there were.
const FEW_UNCERTAIN: u64 = 2;
/// Share of the events with content whose times may be those of a later one: from here on the 99th percentile
/// of a gap may be wrong.
const EVENT_SHARE: f64 = 0.01;
/// Share of late starts above which the arrivals were not the ones that the plan asked for (R4).
const LATE_SHARE: f64 = 0.10;
/// Share of the scheduled arrivals that must have been started (R15).
const RATE_SHARE: f64 = 0.99;
/// Share of the time, or of the requests, from which a limit of connections, ports or descriptors counts.
const LIMIT_SHARE: f64 = 0.01;
/// Share of its wall time from which a worker's CPU is taken as used up; its own loop takes the rest.
const CPU_SHARE: f64 = 0.95;
/// Share of its wall time for which a worker may have been runnable without a CPU.
const RUN_DELAY_SHARE: f64 = 0.10;
/// Share of its control group's periods in which the generator's CPU time may have been used up.
const THROTTLED_SHARE: f64 = 0.10;
/// Sum of one worker's stalls in the measured part that makes the run invalid.
const STALL_LIMIT: Nanos = Nanos::from_millis(100);
/// Advice on work for single requests that holds a worker up.
const LONG_CALLS_HINT: &str =
    "a script, or the search of a large body, holds up all requests of its worker: make it shorter";
/// Share of supplied bodies that may be made when they are due.
const LATE_BODIES: f64 = 0.01;
/// Share of the requests that may be sent a second time without a warning: from here on the 99th percentile
/// is that of such requests.
const RESENT_SHARE: f64 = 0.01;
/// Share of responses without a kernel stamp that is let pass.
const UNSTAMPED_SHARE: f64 = 0.01;

/// Judges a run by its record with the results of its thresholds (the verdict in it is not examined).
///
/// In the closed model start lag and rate are not judged: its arrivals are made by the responses themselves.
pub fn judge(record: &RunRecord) -> Verdict {
    let machine = record.machine.measured(record.warmup + record.duration);
    let mut judge = Judge { record, machine, reasons: Vec::new(), warnings: Vec::new() };
    judge.presence();
    judge.samples();
    judge.stalls();
    let (mut suffers, mut harmed) = (false, false);
    if record.model == Model::Open {
        let rate = judge.rate();
        let lag = judge.start_lag();
        judge.data();
        judge.early_end();
        harmed = rate == Finding::Invalid || lag == Finding::Invalid;
        suffers = rate != Finding::Good || lag != Finding::Good;
    } else {
        judge.stream_limit();
    }
    judge.unsolicited();
    judge.sent_again();
    judge.throttled(suffers);
    judge.address_family();
    judge.run_delay();
    judge.cpu(suffers);
    judge.exhausted(ErrorClass::PortsExhausted);
    judge.exhausted(ErrorClass::DescriptorsExhausted);
    judge.unstamped();
    judge.send_times();
    judge.event_times();
    judge.counts_of_tokens();
    judge.bodies();
    if record.model == Model::Open {
        judge.connection_limit(harmed);
    }
    judge.course();
    judge.settle_hints();
    let limited_by = attribution::attribute(&judge);
    // The target kept those arrivals waiting, and not the generator.
    if limited_by.claim.delays_starts() && record.connections.blocked_at_limit > Nanos::ZERO {
        judge.warnings.retain(|warning| warning.code != ReasonCode::StartLag);
    }
    let found = judge.reasons.iter_mut().chain(&mut judge.warnings);
    found.filter(|reason| limited_by.claim.explains(reason.code)).for_each(|reason| reason.hint.clear());
    Verdict { valid: judge.reasons.is_empty(), reasons: judge.reasons, warnings: judge.warnings, limited_by }
}

/// Limits that the measuring instrument is held to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The p99 of the start lag that is let pass without a warning.
    pub start_lag: Nanos,
    /// The share of its core from which a worker's CPU is taken as used up.
    pub cpu: f64,
    /// The sum of one worker's stalls that makes a run invalid.
    pub stall: Nanos,
}

/// The limits of a run, which depend on the figures so far.
pub fn limits(record: &RunRecord) -> Limits {
    let judge = Judge { record, machine: None, reasons: Vec::new(), warnings: Vec::new() };
    Limits { start_lag: judge.lag_limit(), cpu: CPU_SHARE, stall: STALL_LIMIT }
}

/// Returns `true` if a median start lag is more of a median response time than is harmless.
fn is_harmful(lag: u64, response: u64) -> bool {
    Nanos(lag) > Nanos((response as f64 * LAG_SHARE_OF_RESPONSE) as u64).max(MEDIAN_LAG_FLOOR)
}

/// The p99 of these times in words, behind `p99`; of too few for one the largest, behind `most`.
fn p99_words(times: &Histogram, p99: &str, most: &str) -> String {
    let known = times.percentile(99.0).filter(|_| times.enough_for(99.0));
    let (words, time) = known.map_or((most, times.max().unwrap_or(0)), |time| (p99, time));
    format!("{words} {}", figure::nanos(Nanos(time)))
}

struct Judge<'a> {
    record: &'a RunRecord,
    /// The measured part as the machine saw it, if it was watched.
    machine: Option<MachineInterval>,
    reasons: Vec<Reason>,
    warnings: Vec<Reason>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Finding {
    Good,
    Doubtful,
    Invalid,
}

impl Judge<'_> {
    fn find(&mut self, finding: Finding, code: ReasonCode, evidence: String, hint: impl Into<String>) {
        let reason = Reason { code, evidence, hint: hint.into() };
        match finding {
            Finding::Good => {}
            Finding::Doubtful => self.warnings.push(reason),
            Finding::Invalid => self.reasons.push(reason),
        }
    }

    /// Warns if the figures depend on when the run ended: requests piled up, or the run never became steady.
    fn course(&mut self) {
        if let Some(growth) = course::growth(self.record) {
            let evidence = format!(
                "requests came faster than they were answered: {} of them were in flight or waiting at the beginning, \
                 {} at the end, {} more",
                figure::count(growth.from as u64),
                figure::count(growth.to as u64),
                figure::per_second(growth.per_second),
            );
            let hint = "response times of such a run grow with its length: use a lower rate; if they grow at any rate, the target \
                        itself becomes slower as it runs";
            self.find(Finding::Doubtful, ReasonCode::Overloaded, evidence, hint);
        } else if let Steadiness::Never { evidence } = course::steadiness(self.record) {
            let hint = match Standstill::longest(self.record) {
                Some(_) => {
                    "look at the target in the time without an answer: it is no beginning to be left out"
                }
                None => {
                    "percentiles depend on when such a run ends: run longer, and leave the beginning out (--warmup)"
                }
            };
            self.find(Finding::Doubtful, ReasonCode::NotSteady, evidence, hint);
        }
    }

    fn presence(&mut self) {
        let workers = &self.record.workers;
        let absent = workers.iter().zip(0_u64..).filter(|(worker, _)| worker.absent);
        let absent: Vec<String> = absent.map(|(_, number)| number.to_string()).collect();
        if absent.is_empty() {
            return;
        }
        let (s, their) = if absent.len() == 1 { ("", "its") } else { ("s", "their") };
        let evidence = format!(
            "worker{s} {} of {} did not come back after the end of the run: {their} requests are not in the \
             accounts",
            absent.join(", "),
            figure::count(workers.len() as u64),
        );
        let hint = "look for a script or a file of data that never returns";
        self.find(Finding::Invalid, ReasonCode::WorkerMissing, evidence, hint);
    }

    /// Invalidates the run if nothing was measured. Requests that were started and failed are the target's
    /// answer, and a measurement as good as any: the [headline](crate::headline) decides about their meaning.
    fn samples(&mut self) {
        if self.record.accounting.started > 0 || self.record.held_up() > 0 {
            return;
        }
        let evidence = "no request was started in the measured part".to_owned();
        let hint = "run longer than the warm-up, and longer than one interval between two arrivals";
        self.find(Finding::Invalid, ReasonCode::TooFewSamples, evidence, hint);
    }

    fn stalls(&mut self) {
        let begin = self.record.warmup;
        let end = begin + self.record.duration;
        let measured = |stall: &Stall| (stall.at + stall.length).min(end) - stall.at.max(begin);
        let worst = self.record.workers.iter().enumerate().map(|(number, worker)| {
            let stalled = worker.stalls.iter().map(measured).fold(Nanos::ZERO, |sum, part| sum + part);
            (stalled, number)
        });
        let Some((stalled, number)) = worst.max_by_key(|&(stalled, _)| stalled) else { return };
        if stalled < STALL_LIMIT {
            return self.long_calls();
        }
        let stalls = self.record.workers[number].stalls.iter().filter(|stall| measured(stall) > Nanos::ZERO);
        let stalls: Vec<&Stall> = stalls.collect();
        let first = figure::nanos(stalls.first().map_or(Nanos::ZERO, |stall| stall.at));
        let all = figure::nanos(stalled);
        let evidence = match stalls.iter().map(|stall| measured(stall)).max() {
            Some(longest) if stalls.len() > 1 => format!(
                "the generator itself stood still {} times, for {all} in all and {} at the longest (worker \
                 {number}, first at {first} of the run)",
                figure::count(stalls.len() as u64),
                figure::nanos(longest),
            ),
            _ => {
                format!("the generator itself stood still for {all} (worker {number}, at {first} of the run)")
            }
        };
        let calls = self.record.workers[number].long_calls;
        let (evidence, hint) = match calls.total * 2 >= stalled {
            true => (format!("{evidence}, most of it for {}", self.of_calls(calls)), LONG_CALLS_HINT),
            false => {
                let hint =
                    "the target is not to blame for this: keep other work off this machine and run again";
                (evidence, hint)
            }
        };
        self.find(Finding::Invalid, ReasonCode::Stall, evidence, hint);
    }

    /// Judges work for single requests that held a worker up, but not for so long that figures are wrong.
    fn long_calls(&mut self) {
        let of_workers = self.record.workers.iter().map(|worker| worker.long_calls);
        let Some(calls) = of_workers.filter(|calls| calls.count > 0).max_by_key(|calls| calls.longest) else {
            return;
        };
        let evidence = format!("the generator itself stood still for {}", self.of_calls(calls));
        self.find(Finding::Doubtful, ReasonCode::Stall, evidence, LONG_CALLS_HINT);
    }

    /// Returns a noun phrase for work that held a worker up.
    fn of_calls(&self, calls: LongCalls) -> String {
        let step = self.record.steps.get(calls.step as usize).map_or("", |step| &step.name);
        let times = match calls.count {
            1 => String::new(),
            count => format!(", the longest of {}", figure::count(count)),
        };
        format!("its own work on a request of `{step}` ({}{times})", figure::nanos(calls.longest))
    }

    /// Judges the share of the plan's arrivals that were started. Where arrivals are iterations, later steps
    /// do not count: they are due once they begin, so with them a dropped iteration would weigh less than a
    /// started one.
    fn rate(&mut self) -> Finding {
        let (accounting, started) = (&self.record.accounting, self.record.started_arrivals());
        // Arrivals without data could not be started by any generator.
        let arrivals = self.record.arrivals() - accounting.without_data;
        let share = ratio(started, arrivals).unwrap_or(1.0);
        // What a server does not let in, or does not answer, is no failure of the generator.
        if share >= RATE_SHARE || self.is_not_let_in() || self.blocking() == Blocking::Target {
            return Finding::Good;
        }
        let evidence = format!(
            "{} of {} scheduled {} were started ({}): {} dropped, {} never started",
            figure::count(started),
            figure::count(arrivals),
            if self.record.requests_per_arrival() > 1.0 { "iterations" } else { "arrivals" },
            figure::share(share),
            figure::count(accounting.dropped),
            figure::count(accounting.never_started - accounting.without_data),
        );
        // `settle_hints` chooses the hint when all causes are known.
        self.find(Finding::Invalid, ReasonCode::RateNotMet, evidence, "");
        Finding::Invalid
    }

    /// States that scenarios had no data for some of their arrivals, as the plan wants it.
    fn data(&mut self) {
        let without = self.record.accounting.without_data;
        if without == 0 {
            return;
        }
        let evidence = format!(
            "{} arrivals were due when the data of their scenario had ended, and were never started",
            figure::count(without)
        );
        let hint = "give the data more rows, or `at_end: wrap`";
        self.find(Finding::Doubtful, ReasonCode::DataEnded, evidence, hint);
    }

    /// States that the load ended before its planned length, though nobody asked for that.
    fn early_end(&mut self) {
        let (Some(early), Some(planned)) = (&self.record.early_end, self.record.planned) else { return };
        let when = match early.after {
            Nanos::ZERO => "in the warm-up".to_owned(),
            after => format!("after {} of {}", figure::nanos(after), figure::nanos(planned)),
        };
        let (evidence, hint) = match &early.by {
            EndedBy::Data(name) => (
                format!("data `{name}` had no row left {when}, and no more arrivals were started"),
                "give the data more rows, or `at_end: wrap`",
            ),
            EndedBy::Script => (
                format!("the script ended the load {when}, and no more arrivals were started"),
                "let the script go on, or plan a load of that length (-d)",
            ),
        };
        self.find(Finding::Doubtful, ReasonCode::EndedEarly, evidence, hint);
    }

    /// Warns of many requests that were sent a second time. Where a connection was closed, it is not known
    /// whether the target had processed the first attempt.
    fn sent_again(&mut self) {
        let accounting = &self.record.accounting;
        let share = ratio(accounting.resent, accounting.started).unwrap_or(0.0);
        let Some(words) = accounting.resent_words().filter(|_| share > RESENT_SHARE) else { return };
        let evidence =
            format!("{} {words} ({} of all)", figure::count(accounting.resent), figure::share(share));
        let hint = match accounting.resent_closed {
            0 => "their response times contain both attempts: --no-resend counts them as failed",
            _ => {
                "the target may have processed them twice, and their response times contain both attempts: \
                 look in its log for connections that it closes; --no-resend counts these requests as failed"
            }
        };
        self.find(Finding::Doubtful, ReasonCode::SentAgain, evidence, hint);
    }

    /// Judges the punctuality of starts. Requests that waited for a connection at the limit are late because
    /// of that limit, which [`connection_limit`](Self::connection_limit) states. Those that waited for a
    /// server to take connections or to allow streams, or for one that its unanswered requests hold, are late
    /// because of the server.
    fn start_lag(&mut self) -> Finding {
        let record = self.record;
        let lag = &record.total.start_lag;
        let by_target = self.is_not_let_in() || self.blocking() == Blocking::Target;
        let Some(p99) = lag.percentile(99.0).filter(|_| !by_target) else { return Finding::Good };
        let paced = if record.precise { LAG_FLOOR } else { record.pacing_budget + PACING_SLACK };
        let late_limit = self.arrival_interval().max(paced);
        let late = ratio(lag.count_above(late_limit.0), lag.count()).unwrap_or(0.0);
        let blocked = self.blocked_at_limit();
        // `settle_hints` chooses the hint when all causes are known.
        let hint = "";
        if late > LATE_SHARE {
            if blocked <= LIMIT_SHARE {
                let evidence = format!(
                    "{} of the requests started more than {} late (start lag {}){}",
                    figure::share(late),
                    figure::nanos(late_limit),
                    p99_words(lag, "p99", "at most"),
                    self.waited(),
                );
                self.find(Finding::Invalid, ReasonCode::StartLag, evidence, hint);
            }
            return Finding::Invalid;
        }
        if let Some(evidence) = self.failed_by_own_lag() {
            // A threshold that is broken without any lag is a result all the same.
            let is_broken =
                |one: &ThresholdResult| !one.passed && one.reason.is_none() && one.own_lag.is_none();
            let finding =
                if record.thresholds.iter().any(is_broken) { Finding::Doubtful } else { Finding::Invalid };
            self.find(finding, ReasonCode::StartLag, evidence, hint);
            return finding;
        }
        let shared = self.lag_share().filter(|_| blocked <= LIMIT_SHARE);
        if let Some((evidence, is_of_arrivals)) = shared {
            // Users who let requests share wake-ups have accepted the lag. Where the arrivals are on time, it
            // is that of requests behind an answer, and they came as they were asked for.
            let is_accepted = record.pacing_budget > Nanos::ZERO || !is_of_arrivals;
            let finding = if is_accepted { Finding::Doubtful } else { Finding::Invalid };
            self.find(finding, ReasonCode::StartLag, evidence, hint);
            return finding;
        }
        let limit = self.lag_limit();
        if Nanos(p99) <= limit {
            return Finding::Good;
        }
        let lag = format!("start lag {}", p99_words(lag, "p99 is", "is at most"));
        // Users who ask for precise pacing measure figures that a lag would spoil.
        if record.precise {
            let harmless = figure::nanos(limit);
            let evidence = format!("{lag}, more than the {harmless} that are harmless here{}", self.waited());
            self.find(Finding::Invalid, ReasonCode::StartLag, evidence, hint);
            return Finding::Invalid;
        }
        if let Some(changed) = self.changed_by_lag() {
            let evidence = format!("{lag}: {changed}{}", self.waited());
            self.find(Finding::Doubtful, ReasonCode::StartLag, evidence, hint);
        }
        Finding::Doubtful
    }

    /// The percentile of the response time that the start lag makes longest, for its length, and what it
    /// would be without; `None` if the lag is no more than a tenth of any. Service times are response times
    /// without it.
    fn changed_by_lag(&self) -> Option<String> {
        let (response, service) = (&self.record.total.response_time, &self.record.total.service_time);
        // Of those that are changed alike, the lowest.
        let changed = TOLD_PERCENTILES.iter().rev().filter_map(|p| {
            let with = response.percentile(*p).filter(|_| response.enough_for(*p))?;
            let without = service.percentile(*p)?;
            let lag = with.saturating_sub(without);
            let share = ratio(lag, with)?;
            (share > LAG_SHARE_OF_RESPONSE && Nanos(lag) > LAG_FLOOR).then_some((share, p, with, without))
        });
        let (_, p, with, without) = changed.max_by(|(a, ..), (b, ..)| a.total_cmp(b))?;
        Some(format!(
            "the response time p{p} is {}, and without that lag it is {}",
            figure::nanos(Nanos(with)),
            figure::nanos(Nanos(without)),
        ))
    }

    /// A message that a threshold does not hold for the start lag alone; `None` if there is none.
    fn failed_by_own_lag(&self) -> Option<String> {
        let explained = |one: &ThresholdResult| !one.passed && one.own_lag.is_some();
        let result = self.record.thresholds.iter().find(|one| explained(one))?;
        let (what, lag) = (Shown(&result.spec.threshold.metric), result.own_lag?);
        let seen = result.observed.map_or(String::new(), |seen| format!("{what} is {seen}, "));
        let service = lag.service_time.map_or(String::new(), |service| {
            format!(" and that of the service time {}", figure::nanos(service))
        });
        Some(format!(
            "{} fails by the generator's own lag: {seen}the {what} of the start lag {}{service}{}",
            result.spec,
            figure::nanos(lag.start_lag),
            self.waited(),
        ))
    }

    /// A message that the median start lag is more of the median response time than is harmless, and whether
    /// that is so of the arrivals, too; `None` if it is not.
    fn lag_share(&self) -> Option<(String, bool)> {
        let total = &self.record.total;
        let lag = total.start_lag.percentile(50.0)?;
        let response = total.response_time.percentile(50.0)?;
        let share = ratio(lag, response)?.min(1.0);
        is_harmful(lag, response).then(|| {
            let is_of_arrivals = self.arrivals_lag();
            let whose = match is_of_arrivals {
                true => "that part is the generator's",
                false => {
                    "that part is the generator's, between an answer and the request behind it; service times \
                     are without it"
                }
            };
            let evidence = format!(
                "start lag p50 is {}, {} of the median response time of {}: {whose}{}",
                figure::nanos(Nanos(lag)),
                figure::share(share),
                figure::nanos(Nanos(response)),
                self.waited(),
            );
            (evidence, is_of_arrivals)
        })
    }

    /// Returns `true` if arrivals lag by more than is harmless: the first requests of the iterations, which a
    /// schedule makes due. Those behind them are due when an answer comes, and go out when it has been read.
    fn arrivals_lag(&self) -> bool {
        let (mut lag, mut response) = (Histogram::new(), Histogram::new());
        let mut known: Vec<&str> = Vec::new();
        for step in self.record.steps.iter().filter(|step| step.start_lag.count() > 0) {
            if !known.contains(&step.scenario.as_str()) {
                known.push(&step.scenario);
                lag.merge(&step.start_lag);
                response.merge(&step.response_time);
            }
        }
        let total = &self.record.total;
        let of_arrivals = lag.percentile(50.0).zip(response.percentile(50.0));
        let of_all = || total.start_lag.percentile(50.0).zip(total.response_time.percentile(50.0));
        of_arrivals.or_else(of_all).is_none_or(|(lag, response)| is_harmful(lag, response))
    }

    /// Up to here a start lag is chosen, or too small to matter.
    fn lag_limit(&self) -> Nanos {
        let record = self.record;
        let paced = if record.precise { Nanos::ZERO } else { record.pacing_budget + PACING_SLACK };
        self.harmless().max(paced)
    }

    fn cpu(&mut self, open_model_suffers: bool) {
        // A load of a moment may end before its last piece of work does.
        let used =
            |worker: &WorkerRecord| ratio(worker.needed_cpu().0, worker.wall.0).unwrap_or(0.0).min(1.0);
        let Some((number, share)) = worst(&self.record.workers, used) else { return };
        if share < CPU_SHARE {
            return;
        }
        let core = format!("the generator used {} of its core (worker {number})", figure::share(share));
        let hint = self.more_cpu();
        match self.record.model {
            Model::Closed => self.find(
                Finding::Invalid,
                ReasonCode::CpuSaturation,
                format!("{core}: response times are as measured, but the throughput is the generator's and the target may carry more"),
                hint,
            ),
            Model::Open if open_model_suffers => self.find(
                Finding::Invalid,
                ReasonCode::CpuSaturation,
                format!("{core}, and did not keep its schedule"),
                format!("{hint}, or a lower rate"),
            ),
            Model::Open => self.find(
                Finding::Doubtful,
                ReasonCode::CpuSaturation,
                format!("{core}, but kept its schedule"),
                hint,
            ),
        }
    }

    fn run_delay(&mut self) {
        let delayed = |worker: &WorkerRecord| {
            ratio(worker.run_delay.unwrap_or_default().0, worker.wall.0).unwrap_or(0.0).min(1.0)
        };
        let Some((number, share)) = worst(&self.record.workers, delayed) else { return };
        if share <= RUN_DELAY_SHARE {
            return;
        }
        let (who, hint) = self.competition();
        let evidence = format!(
            "worker {number} was ready to run but had no CPU for {} of the time: {who}",
            figure::share(share),
        );
        let hint = hint + &self.sharing();
        self.find(Finding::Invalid, ReasonCode::CpuSaturation, evidence, hint);
    }

    /// States that the generator's control group had used up its CPU time, so that the kernel held the
    /// generator up.
    fn throttled(&mut self, open_model_suffers: bool) {
        let Some((evidence, hint)) = self.throttled_words() else { return };
        let harms = self.record.model == Model::Closed || open_model_suffers;
        let finding = if harms { Finding::Invalid } else { Finding::Doubtful };
        let hint = hint.to_owned() + &self.sharing();
        self.find(finding, ReasonCode::CpuSaturation, evidence, hint);
    }

    /// The evidence for this throttling and a hint, in words; `None` if there was none.
    fn throttled_words(&self) -> Option<(String, &'static str)> {
        let generator = self.machine.as_ref().and_then(|machine| machine.generator);
        let throttling = generator?.throttling?;
        let share = ratio(throttling.throttled, throttling.periods).unwrap_or(0.0);
        if share <= THROTTLED_SHARE {
            return None;
        }
        let limit =
            self.record.machine.facts.limits.cpus.map_or(String::new(), |cpus| format!(" of {cpus:.2} CPUs"));
        let evidence = format!(
            "the control group of the generator had used up its CPU time{limit} in {} of the periods, and stood still for {} of CPU time",
            figure::share(share),
            figure::nanos(throttling.time),
        );
        Some((evidence, "raise the limit of the container (cpu.max, --cpus), or use a lower rate"))
    }

    /// Local ports or descriptors ran out.
    fn exhausted(&mut self, class: ErrorClass) {
        let attempts = self.record.connections.failed[class];
        let requests = self.record.total.errors[class];
        if attempts == 0 && requests == 0 {
            return;
        }
        let (code, what, hint) = if class == ErrorClass::PortsExhausted {
            (
                ReasonCode::PortsExhausted,
                "local port",
                "keep connections alive, add local addresses (--source-ip) or widen net.ipv4.ip_local_port_range",
            )
        } else {
            (
                ReasonCode::DescriptorsExhausted,
                "file descriptor",
                "raise the limit (ulimit -n) or use fewer connections (-c)",
            )
        };
        let share = ratio(requests, self.record.accounting.started).unwrap_or(1.0);
        let finding = if share > LIMIT_SHARE { Finding::Invalid } else { Finding::Doubtful };
        let evidence = format!(
            "this machine had no {what} left for {} attempts to connect; {} requests failed for that",
            figure::count(attempts),
            figure::count(requests),
        );
        self.find(finding, code, evidence, hint);
    }

    fn unstamped(&mut self) {
        let workers = &self.record.workers;
        let unstamped: u64 = workers.iter().map(|worker| worker.unstamped).sum();
        let all: u64 = unstamped + workers.iter().map(|worker| worker.stamped).sum::<u64>();
        let share = ratio(unstamped, all).unwrap_or(0.0);
        let unsure =
            workers.iter().filter(|worker| worker.unstamped > 0).map(|worker| worker.gather_time).max();
        let unsure = unsure.unwrap_or_default();
        if share <= UNSTAMPED_SHARE || unsure <= self.harmless() {
            return;
        }
        self.find(
            Finding::Doubtful,
            ReasonCode::UnstampedCoalescing,
            format!(
                "{} of the responses have no arrival time from the kernel and may have been read up to {} late",
                figure::share(share),
                figure::nanos(unsure),
            ),
            "use --precise if that matters",
        );
    }

    /// Invalidates the run if the instants of sending are not known well enough for service times.
    fn send_times(&mut self) {
        let uncertain: u64 = self.record.workers.iter().map(|worker| worker.send_time_uncertain).sum();
        let share = ratio(uncertain, self.record.accounting.started).unwrap_or(0.0);
        if share <= UNCERTAIN_SHARE || uncertain <= FEW_UNCERTAIN {
            return;
        }
        self.find(
            Finding::Invalid,
            ReasonCode::SendTimeUncertain,
            format!(
                "the generator was interrupted while it sent {} of the requests ({}): their service times may be \
                 wrong by more than a tenth",
                figure::count(uncertain),
                figure::share(share),
            ),
            "stop other work on this machine, or pin generator and target to cores of their own",
        );
    }

    /// Invalidates the run if times of events are not known well enough for gaps, because the generator read
    /// late; warns if they are not known because they came together.
    fn event_times(&mut self) {
        let Some(streams) = self.record.total.event_streams.as_deref() else { return };
        let share = |part: u64| ratio(part, streams.content_events).unwrap_or(0.0);
        let (together, uncertain) = (share(streams.shared_content_events), share(streams.uncertain_events));
        if uncertain > EVENT_SHARE {
            let evidence = format!(
                "{} of the events with content have the time of a later one, as the generator read both more \
                 than {} late: gaps between tokens are wrong by that",
                figure::share(uncertain),
                figure::nanos(EVENT_TIME_LIMIT),
            );
            let hint = format!("{}, or fewer streams", self.more_cpu());
            self.find(Finding::Invalid, ReasonCode::EventTimeUncertain, evidence, hint);
        } else if together > EVENT_SHARE {
            let evidence = format!(
                "{} of the events with content came in one segment, or one TLS record, with the one before: \
                 the gap between them counts as 0",
                figure::share(together),
            );
            let hint = "the server, or a proxy, sends several tokens at a time: look at TPOT rather than ITL";
            self.find(Finding::Doubtful, ReasonCode::EventsTogether, evidence, hint);
        }
    }

    /// Warns if the server's counts of tokens cannot be.
    fn counts_of_tokens(&mut self) {
        let streams = self.record.total.event_streams.as_deref();
        let Some(disbelieved) = streams.map(|streams| streams.disbelieved).filter(|count| *count > 0) else {
            return;
        };
        let evidence = format!(
            "in {} of the answers the server counts tokens that cannot be: more than any model gives, less than \
             none, or far fewer than came. Events with content stand for the answers' tokens there",
            figure::count(disbelieved),
        );
        let hint =
            "look at `usage` (`eval_count` of Ollama) in an answer of the server, or of a proxy before it";
        self.find(Finding::Doubtful, ReasonCode::UsageNotBelieved, evidence, hint);
    }

    fn bodies(&mut self) {
        let workers = &self.record.workers;
        let [all, late, unsigned] = [
            |worker: &WorkerRecord| worker.bodies,
            |worker: &WorkerRecord| worker.bodies_late,
            |worker: &WorkerRecord| worker.bodies_unsigned,
        ]
        .map(|of| workers.iter().map(of).sum::<u64>());
        if ratio(unsigned, all).unwrap_or(0.0) > LATE_BODIES {
            let evidence = format!(
                "{} of {} messages were signed when they were due, because none was signed ahead",
                figure::count(unsigned),
                figure::count(all),
            );
            let hint = "signing is the limit, not the target: ask for a lower rate, give the generator more \
                        cores and signers (--signers), or sign with Ed25519, or not at all";
            return self.find(Finding::Invalid, ReasonCode::SigningLimited, evidence, hint);
        }
        if ratio(late, all).unwrap_or(0.0) <= LATE_BODIES {
            return;
        }
        let consequence = match self.record.model {
            Model::Open => "that time is in the start lag",
            Model::Closed => "they, and not the store, set the pace then",
        };
        let evidence = format!(
            "{} of {} batches were made when they were due, because none was made ahead: {consequence}",
            figure::count(late),
            figure::count(all),
        );
        let hint =
            "give the generator another core, compress less, or make batches before the run (--pregenerate)";
        self.find(Finding::Doubtful, ReasonCode::BodiesLate, evidence, hint);
    }

    /// The time below which an error of the generator's clockwork drowns in the measured times.
    fn harmless(&self) -> Nanos {
        let p50 = self.record.total.service_time.percentile(50.0).unwrap_or(0);
        Nanos((p50 as f64 * LAG_SHARE_OF_SERVICE) as u64).max(LAG_FLOOR)
    }

    /// Mean time between two arrivals of the whole run; zero if the rate is not known.
    fn arrival_interval(&self) -> Nanos {
        match self.record.due_per_second() {
            Some(target) if target > 0.0 => Nanos::from_secs_f64(1.0 / target),
            _ => Nanos::ZERO,
        }
    }
}

/// The worker with the largest figure.
fn worst(workers: &[WorkerRecord], figure: impl Fn(&WorkerRecord) -> f64) -> Option<(usize, f64)> {
    workers.iter().map(figure).enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b))
}

/// `part / whole`; `None` for a whole of zero.
fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
