//! A run that was cut short: the parts that were kept while it went on, as a result.

use std::collections::BTreeMap;

use plimsoll_core::{Nanos, figure};
use plimsoll_histogram::Histogram;
use plimsoll_metrics::slice::{MOST_OF_TIMELINE, Timeline};
use plimsoll_metrics::{
    Accounting, Interval, IntervalDownsampler, IterationRecord, LimitedBy, Reason, ReasonCode, RunRecord,
    Slice, StepRecord, Tally, Verdict,
};
use plimsoll_statistics::SliceKeeper;
use serde::{Deserialize, Serialize};

use super::SavedRun;
use crate::RunContext;
use crate::contract::result::{IntervalResult, ModelKind, RunResult, SteadyResult, SteadyState};

/// Facts that are known of a run when it begins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Beginning {
    /// Facts that the caller knows.
    pub context: RunContext,
    /// Open or closed.
    pub model: ModelKind,
    /// Start of the run as Unix time in nanoseconds.
    pub started_unix_ns: u64,
    /// Length of its warm-up in nanoseconds.
    pub warmup_ns: u64,
    /// Name and scenario of each step, the scenario empty if the plan does not name any.
    pub steps: Vec<(String, String)>,
    /// The text of its plan file without credentials.
    pub plan: Option<String>,
}

/// A part of a run: the outcomes of the requests of each step in it.
///
/// Neighbours of one kind can be [joined](plimsoll_statistics::Join), so that there are at most
/// [`MOST_PARTS`] of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Warm-up, measured part or drain.
    pub kind: PartKind,
    /// Times and steps of the part; the total is not used.
    pub slice: Slice,
}

/// The parts of a run, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PartKind {
    /// Load that is not recorded.
    Warmup,
    /// Load that is.
    Measured,
    /// Requests that ended after the end of the load.
    Drain,
}

/// Parts of one kind that are kept at most while a run goes on.
pub const MOST_PARTS: usize = MOST_OF_TIMELINE;

impl PartKind {
    /// The stage of an interval.
    pub const fn of(interval: &plimsoll_metrics::Interval) -> Self {
        match (interval.warmup, interval.drain) {
            (true, _) => Self::Warmup,
            (false, true) => Self::Drain,
            (false, false) => Self::Measured,
        }
    }
}

/// Reason why the end of a run is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The run goes on.
    Ongoing,
    /// The process of the run ended before the run did.
    Killed,
    /// None of its workers came back.
    Stuck,
}

/// Intervals and parts of a run that goes on, in bounded memory.
#[derive(Debug)]
pub struct LiveRecord {
    downsampler: IntervalDownsampler,
    intervals: Vec<Interval>,
    parts: Vec<(PartKind, SliceKeeper<Slice>)>,
}

impl LiveRecord {
    /// Before the first interval. `downsampler` is that of the run's plan.
    pub const fn new(downsampler: IntervalDownsampler) -> Self {
        Self { downsampler, intervals: Vec::new(), parts: Vec::new() }
    }

    /// Takes the next interval, while it still has its steps.
    pub fn note(&mut self, interval: &Interval) {
        let kind = PartKind::of(interval);
        if self.parts.last().is_none_or(|(last, _)| *last != kind) {
            self.parts.push((kind, SliceKeeper::keeping(MOST_PARTS)));
        }
        if let Some((_, slices)) = self.parts.last_mut() {
            let steps = interval.steps.clone();
            slices.add(Slice { at: interval.at, length: interval.length, steps, ..Slice::default() });
        }
        self.downsampler.add(&mut self.intervals, &mut Vec::new(), interval.clone(), None);
    }

    /// The run, of which this is all.
    pub fn into_run(self, beginning: Beginning, cut: Cut) -> SavedRun {
        let intervals = self.intervals.iter().map(IntervalResult::new).collect();
        let parts = self
            .parts
            .into_iter()
            .flat_map(|(kind, slices)| slices.finish().into_iter().map(move |slice| Part { kind, slice }));
        SavedRun::unfinished(beginning, intervals, parts.collect(), cut)
    }
}

impl SavedRun {
    /// The run of which only these are known, because it did not come to its end. Its result is not valid,
    /// and says why; that of a run that goes on is its result so far. Figures that a run reports only at its
    /// end are missing: start lags, first-byte times, metrics of the plan's own, connections, costs of the
    /// generator.
    pub fn unfinished(
        beginning: Beginning,
        intervals: Vec<IntervalResult>,
        parts: Vec<Part>,
        cut: Cut,
    ) -> Self {
        let mut record = record(&beginning, &parts);
        record.verdict = verdict(&record, &intervals, cut);
        let mut result = match cut {
            Cut::Ongoing => RunResult::so_far(&record, beginning.context, Nanos::ZERO),
            Cut::Killed | Cut::Stuck => RunResult::new(&record, beginning.context),
        };
        result.intervals = intervals;
        // Only the workers count iterations, and they tell at the end.
        result.rate.iterations_started_per_s = None;
        result.steady =
            SteadyResult { state: SteadyState::Unknown, from_s: None, reason: Some(no_end(cut).to_owned()) };
        Self::new(&record, result, beginning.plan)
    }
}

const fn no_end(cut: Cut) -> &'static str {
    match cut {
        Cut::Ongoing => "the run goes on",
        Cut::Killed | Cut::Stuck => "the run did not finish",
    }
}

/// The verdict of a run that was cut short, which is the reason; other oddities are not looked for.
fn verdict(record: &RunRecord, intervals: &[IntervalResult], cut: Cut) -> Verdict {
    let until = match intervals.last() {
        Some(last) => format!("the figures end at {}", figure::nanos(Nanos::from_secs_f64(last.at_s))),
        None => "it has no figures".to_owned(),
    };
    let (what, hint) = match cut {
        Cut::Ongoing => ("the run goes on", "wait for its end: then the run is judged"),
        Cut::Killed => (
            "the process of the run ended before the run did",
            "make the run again; to end one early, press Ctrl-C once, or send SIGTERM",
        ),
        Cut::Stuck => (
            "no worker came back after the end of the run",
            "look for a script or a file of data that never returns",
        ),
    };
    let unknown = "start lags, metrics of the plan's own, connections and the generator's cost are not known";
    let evidence = format!("{what}: {until}; {unknown}");
    let mut reasons = vec![Reason { code: ReasonCode::Unfinished, evidence, hint: hint.to_owned() }];
    let is_over = cut != Cut::Ongoing;
    // While a run goes on, the missing end is not a fault.
    let warnings = if is_over { Vec::new() } else { std::mem::take(&mut reasons) };
    if record.accounting.started == 0 {
        reasons.push(Reason {
            code: ReasonCode::TooFewSamples,
            evidence: "no request of the measured part is known".to_owned(),
            hint: "let the run go on for longer than its warm-up".to_owned(),
        });
    }
    let mut verdict = Verdict { valid: reasons.is_empty(), reasons, warnings, ..Verdict::default() };
    verdict.limited_by.what = LimitedBy::Unknown;
    verdict.limited_by.evidence = no_end(cut).to_owned();
    verdict
}

/// The record of the parts.
fn record(beginning: &Beginning, parts: &[Part]) -> RunRecord {
    let of = |kind: PartKind| parts.iter().filter(move |part| part.kind == kind).map(|part| &part.slice);
    let measured = || of(PartKind::Measured).chain(of(PartKind::Drain));
    let steps: Vec<StepRecord> = (beginning.steps.iter().enumerate())
        .map(|(number, (name, scenario))| {
            let mut tally = Tally::default();
            measured().filter_map(|slice| slice.steps.get(number)).for_each(|step| tally.merge(step));
            StepRecord { name: name.clone(), scenario: scenario.clone(), ..step_record(&tally) }
        })
        .collect();
    let mut total = StepRecord { name: "all".to_owned(), ..StepRecord::default() };
    steps.iter().for_each(|step| total.merge(step));
    let started: u64 = measured().flat_map(|slice| &slice.steps).map(|step| step.started).sum();
    let completed = of(PartKind::Measured).flat_map(|slice| &slice.steps).map(Tally::answers).sum();
    let ended = total.ok + total.failed + total.timed_out + total.aborted();
    // Requests of the warm-up may end in the measured part.
    let started = started.max(ended);
    let accounting = Accounting {
        scheduled: started,
        started,
        ok: total.ok,
        failed: total.failed,
        timed_out: total.timed_out,
        aborted: total.aborted(),
        in_flight_at_stop: started - ended,
        unmeasured: beginning.context.unmeasured,
        ..Accounting::default()
    };
    let length = |kind| of(kind).fold(Nanos::ZERO, |sum, slice| sum + slice.length);
    let mut slices = SliceKeeper::new();
    of(PartKind::Measured).for_each(|slice| slices.add(summed(slice)));
    of(PartKind::Drain).for_each(|slice| slices.extend_last(Slice { length: Nanos::ZERO, ..summed(slice) }));
    let alone = |slice: &Slice| Slice { steps: Vec::new(), ..summed(slice) };
    let mut drain = of(PartKind::Drain).map(alone);
    let timeline = Timeline {
        warmup: of(PartKind::Warmup).map(alone).collect(),
        measured: of(PartKind::Measured).map(alone).collect(),
        drain: drain.next(),
    };
    RunRecord {
        model: beginning.model,
        duration: length(PartKind::Measured),
        warmup: Nanos(beginning.warmup_ns),
        drain: length(PartKind::Drain),
        started_unix: Nanos(beginning.started_unix_ns),
        started_monotonic: Nanos::ZERO,
        completed_in_window: completed,
        paces_requests: false,
        planned: None,
        early_end: None,
        users: None,
        users_pause: false,
        users_end: false,
        target_per_second: None,
        rate_changes: Vec::new(),
        stopped_by: None,
        accounting,
        iterations: IterationRecord::default(),
        total,
        steps,
        connections: Default::default(),
        peers: Vec::new(),
        metrics: Vec::new(),
        error_examples: BTreeMap::new(),
        protocols: BTreeMap::new(),
        tls_versions: BTreeMap::new(),
        intervals: Vec::new(),
        slices: slices.finish(),
        timeline,
        phases: Vec::new(),
        workers: Vec::new(),
        machine: Default::default(),
        backend: "unknown".into(),
        rss_peak_bytes: None,
        pacing_budget: Nanos::ZERO,
        precise: false,
        interrupted: None,
        verdict: Verdict::default(),
        thresholds: Vec::new(),
        log: Default::default(),
    }
}

/// A slice with its total.
fn summed(slice: &Slice) -> Slice {
    let mut total = Tally::default();
    slice.steps.iter().for_each(|step| total.merge(step));
    Slice { total, ..slice.clone() }
}

/// Returns the record of a step from its tally. Runs that were saved by earlier versions have no sum of
/// service times: the sum over their buckets stands in for it.
fn step_record(tally: &Tally) -> StepRecord {
    let sum = Some(tally.response_time_sum);
    let service_sum = Some(tally.service_time_sum).filter(|sum| *sum > 0);
    StepRecord {
        ok: tally.ok,
        failed: tally.failed,
        timed_out: tally.timed_out,
        response_time: Histogram::of_delta(&tally.response_time, sum, tally.limits),
        service_time: Histogram::of_delta(&tally.service_time, service_sum, None),
        errors: tally.errors.clone(),
        bytes_sent: tally.bytes_sent,
        bytes_received: tally.bytes_received,
        censored_response: tally.censored,
        censored_service: tally.censored,
        ..StepRecord::default()
    }
}
