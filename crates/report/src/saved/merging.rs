//! Several runs of one plan as one: as if they had been made at the same time.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt;

use plimsoll_core::Nanos;
use plimsoll_histogram::{Delta, Histogram};
use plimsoll_metrics::slice::MOST_OF_TIMELINE;
use plimsoll_metrics::{MetricRecord, PhaseRecord, Tally};
use plimsoll_statistics::Join;

use super::{SavedRun, SavedSlice, SavedStep};
use crate::build::assembly::{by_class, event_streams, lag, per_second, statuses};
use crate::contract::metric::{IntervalMetric, OwnMetric};
use crate::contract::phase::PhaseResult;
use crate::contract::result::{
    Finding, InStall, IntervalResult, IntervalTimes, LimitedByResult, Note, RunResult, SteadyResult,
    SteadyState, StepResult, StreamIntervalResult, ThresholdOutcome, Thresholds,
};
use crate::contract::slowest::SlowRequestResult;
use crate::contract::summary::Summary;
use crate::contract::watched::TrendsResult;

/// Reason why runs cannot be merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeError {
    /// There are none.
    Nothing,
    /// A run has no histograms, but only the figures that were made of them.
    NoHistograms {
        /// Id of the run.
        id: String,
    },
    /// A run is of another plan than the first one.
    OtherPlan {
        /// Id of the run.
        id: String,
    },
    /// A run is a whole load, and no shard of one.
    NoShard {
        /// Id of the run.
        id: String,
    },
    /// A shard is of another load than the first one: of another seed, or of another number of shards.
    OtherLoad {
        /// Id of the run.
        id: String,
    },
    /// A shard is there twice.
    Twice {
        /// Which one.
        shard: String,
        /// The ids of both.
        ids: [String; 2],
    },
    /// Shards are missing.
    Missing {
        /// Which ones.
        shards: Vec<String>,
    },
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("there is no run to merge"),
            Self::NoHistograms { id } => write!(f, "run {id} has no histograms, but only its result"),
            Self::OtherPlan { id } => write!(f, "run {id} is of another plan than the first one"),
            Self::NoShard { id } => write!(f, "run {id} is a whole load, and no shard of one"),
            Self::OtherLoad { id } => write!(f, "run {id} is a shard of another load than the first one"),
            Self::Twice { shard, ids: [one, other] } => {
                write!(f, "runs {one} and {other} are both shard {shard}")
            }
            Self::Missing { shards } => {
                const SHOWN: usize = 8;
                let named = shards.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
                match shards.len() {
                    1 => write!(f, "shard {named} is missing"),
                    0..=SHOWN => write!(f, "shards {named} are missing"),
                    many => write!(f, "shards {named} and {} more are missing", many - SHOWN),
                }
            }
        }
    }
}

impl std::error::Error for MergeError {}

impl SavedRun {
    /// Several runs of one plan as one, as if they had been made at the same time: counts and rates are added
    /// up, times are counted from the start of each, and the length is that of the longest. Histograms are
    /// merged exactly, and every figure of a time is made of the merged ones. Figures that cannot be computed
    /// for several runs together are missing, with a reason.
    ///
    /// # Errors
    /// If there are none, one has no histograms, or they are of different plans.
    pub fn merge(runs: &[Self]) -> Result<Self, MergeError> {
        let [first, others @ ..] = runs else { return Err(MergeError::Nothing) };
        let id = |run: &Self| run.result.run.id.clone();
        if let Some(bare) = runs.iter().find(|run| !run.has_histograms()) {
            return Err(MergeError::NoHistograms { id: id(bare) });
        }
        let alike = |run: &&Self| {
            run.result.run.plan_hash == first.result.run.plan_hash && run.steps.len() == first.steps.len()
        };
        if let Some(other) = others.iter().find(|run| !alike(run)) {
            return Err(MergeError::OtherPlan { id: id(other) });
        }
        let mut merged = first.clone();
        if others.is_empty() {
            return Ok(merged);
        }
        for other in others {
            merged.steps.iter_mut().zip(&other.steps).for_each(|(mine, theirs)| mine.merge(theirs));
            merged.connect_time.merge(&other.connect_time);
            merged.tls_time.merge(&other.tls_time);
            merged.ping_time.merge(&other.ping_time);
            MetricRecord::merge_all(&mut merged.metrics, &other.metrics);
            add_counts(&mut merged.result, &other.result);
        }
        merged.phases = phases(runs);
        merged.slices = slices(runs);
        figures(&mut merged, runs);
        merged.result.restate();
        Ok(merged)
    }
}

/// Adds the sums and lists. The counts are those of a file: of those that no run can have the sum is the
/// largest number at most.
fn add_counts(mine: &mut RunResult, theirs: &RunResult) {
    mine.accounting.merge(&theirs.accounting);
    mine.iterations.merge(&theirs.iterations);
    mine.bytes.sent = mine.bytes.sent.saturating_add(theirs.bytes.sent);
    mine.bytes.received = mine.bytes.received.saturating_add(theirs.bytes.received);
    add_map(&mut mine.protocols, &theirs.protocols);
    add_map(&mut mine.tls_versions, &theirs.tls_versions);
    for (class, example) in &theirs.error_examples {
        mine.error_examples.entry(class.clone()).or_insert_with(|| example.clone());
    }
    for (mine, theirs) in mine.by_step.iter_mut().zip(&theirs.by_step) {
        for (class, example) in &theirs.error_examples {
            mine.error_examples.entry(class.clone()).or_insert_with(|| example.clone());
        }
    }
    let (sum, more) = (&mut mine.connections, &theirs.connections);
    sum.opened = sum.opened.saturating_add(more.opened);
    sum.family_switches = sum.family_switches.saturating_add(more.family_switches);
    sum.address_changes.extend(more.address_changes.iter().cloned());
    add_map(&mut sum.failed, &more.failed);
    sum.closed_idle = sum.closed_idle.saturating_add(more.closed_idle);
    sum.unsolicited = sum.unsolicited.saturating_add(more.unsolicited);
    sum.peak_open = sum.peak_open.saturating_add(more.peak_open);
    sum.limit = sum.limit.saturating_add(more.limit);
    sum.tls_resumed = sum.tls_resumed.saturating_add(more.tls_resumed);
    sum.blocked_s += more.blocked_s;
    sum.blocked_at_limit_s += more.blocked_at_limit_s;
    sum.blocked_unreached_s += more.blocked_unreached_s;
    sum.requests_per_s = match (sum.requests_per_s, more.requests_per_s) {
        (Some(mine), Some(theirs)) => Some(mine.merged(&theirs)),
        (mine, theirs) => mine.or(theirs),
    };
    if let (Some(sum), Some(more)) = (&mut mine.http2, &theirs.http2) {
        sum.connections = sum.connections.saturating_add(more.connections);
        sum.stream_limit = sum.stream_limit.into_iter().chain(more.stream_limit).min();
        sum.barred = sum.barred.saturating_add(more.barred);
        sum.blocked_while_barred_s =
            sum.blocked_while_barred_s.into_iter().chain(more.blocked_while_barred_s).reduce(|a, b| a + b);
        add_map(&mut sum.resets, &more.resets);
        add_map(&mut sum.go_aways, &more.go_aways);
        add_map(&mut sum.violations, &more.violations);
        sum.cancelled = sum.cancelled.saturating_add(more.cancelled);
        sum.traffic = match (sum.traffic, more.traffic) {
            (Some(mine), Some(theirs)) => mine.merged(&theirs),
            (mine, theirs) => mine.or(theirs),
        };
    } else if mine.http2.is_none() {
        mine.http2.clone_from(&theirs.http2);
    }
    match (&mut mine.websocket, &theirs.websocket) {
        (Some(sum), Some(more)) => sum.merge(more),
        (sum, more) => *sum = sum.or(*more),
    }
    let (sum, more) = (&mut mine.generator, &theirs.generator);
    sum.threads = sum.threads.saturating_add(more.threads);
    sum.cpu_user_s += more.cpu_user_s;
    sum.cpu_sys_s += more.cpu_sys_s;
    for part in &more.cpu_by_kind {
        match sum.cpu_by_kind.iter_mut().find(|known| known.kind == part.kind) {
            Some(known) => {
                known.threads = known.threads.saturating_add(part.threads);
                known.cpu_s += part.cpu_s;
            }
            None => sum.cpu_by_kind.push(part.clone()),
        }
    }
    sum.rss_peak_bytes = sum.rss_peak_bytes.max(more.rss_peak_bytes);
    sum.stamped = sum.stamped.saturating_add(more.stamped);
    sum.unstamped = sum.unstamped.saturating_add(more.unstamped);
    sum.send_time_uncertain = sum.send_time_uncertain.saturating_add(more.send_time_uncertain);
    let share = |one: &crate::result::Generator| one.shared_wakeups_share * one.workers.len() as f64;
    let workers = (sum.workers.len() + more.workers.len()).max(1) as f64;
    sum.shared_wakeups_share = (share(sum) + share(more)) / workers;
    sum.bodies = sum.bodies.saturating_add(more.bodies);
    sum.bodies_late = sum.bodies_late.saturating_add(more.bodies_late);
    sum.bodies_expired = sum.bodies_expired.saturating_add(more.bodies_expired);
    sum.workers.extend(more.workers.iter().cloned());
    mine.model.connections = mine.model.connections.saturating_add(theirs.model.connections);
    let earlier = theirs.run.started_at_unix_ns < mine.run.started_at_unix_ns;
    if earlier {
        mine.run.started_at.clone_from(&theirs.run.started_at);
        mine.run.started_at_unix_ns = theirs.run.started_at_unix_ns;
    }
    // From the first end of a part on, the load was not the one that was asked for.
    let ends = [mine.run.early_end.take(), theirs.run.early_end.clone()].into_iter().flatten();
    mine.run.early_end = ends.min_by(|a, b| a.after_s.total_cmp(&b.after_s));
    mine.run.interrupted_by_signal = mine.run.interrupted_by_signal.or(theirs.run.interrupted_by_signal);
}

fn add_map(mine: &mut BTreeMap<String, u64>, theirs: &BTreeMap<String, u64>) {
    for (key, count) in theirs {
        let sum = mine.entry(key.clone()).or_default();
        *sum = sum.saturating_add(*count);
    }
}

/// The phases by their order: those of one plan have the same names.
fn phases(runs: &[SavedRun]) -> Vec<PhaseRecord> {
    let longest = runs.iter().map(|run| &run.phases).max_by_key(|phases| phases.len());
    let mut merged: Vec<PhaseRecord> = longest.cloned().unwrap_or_default();
    for (number, phase) in merged.iter_mut().enumerate() {
        let all = || runs.iter().filter_map(|run| run.phases.get(number));
        phase.tally = Tally::default();
        all().for_each(|other| phase.tally.merge(&other.tally));
        phase.completed = all().map(|other| other.completed).sum();
        phase.iterations = all().map(|other| other.iterations).sum();
        phase.length = all().map(|other| other.length).max().unwrap_or_default();
        phase.target_per_second = all().map(|other| other.target_per_second).sum();
    }
    merged
}

impl Join for SavedSlice {
    fn join(&mut self, other: Self) {
        let begin = (self.at - self.length).min(other.at - other.length);
        self.at = self.at.max(other.at);
        self.length = self.at - begin;
        self.tally.merge(&other.tally);
    }
}

/// Slices that end in the same part of a grid, as wide as the widest slice, are one.
fn slices(runs: &[SavedRun]) -> Vec<SavedSlice> {
    let mut merged = Vec::new();
    for (warmup, drain) in [(true, false), (false, false), (false, true)] {
        let of_kind = |slice: &&SavedSlice| slice.warmup == warmup && slice.drain == drain;
        let all = || runs.iter().flat_map(|run| &run.slices).filter(of_kind);
        let widest = all().map(|slice| slice.length.0).max().unwrap_or(0);
        let last = all().map(|slice| slice.at.0).max().unwrap_or(0);
        let first = all().map(|slice| slice.at.since(slice.length).0).min().unwrap_or(0);
        // There is one slice of the drain.
        let grid = if drain { u64::MAX } else { widest.max((last - first) / MOST_OF_TIMELINE as u64).max(1) };
        let mut parts: BTreeMap<u64, SavedSlice> = BTreeMap::new();
        for slice in all() {
            let place = slice.at.0.saturating_sub(first + 1) / grid;
            match parts.get_mut(&place) {
                Some(part) => part.join(slice.clone()),
                None => drop(parts.insert(place, slice.clone())),
            }
        }
        merged.extend(parts.into_values());
    }
    merged
}

/// Makes the figures of the merged histograms, and removes the facts of single runs.
fn figures(merged: &mut SavedRun, runs: &[SavedRun]) {
    let total = merged.total();
    let completed: f64 =
        runs.iter().filter_map(|run| Some(run.result.rate.achieved_per_s? * run.result.duration_s)).sum();
    let longest = |of: fn(&RunResult) -> f64| runs.iter().map(|run| of(&run.result)).fold(0.0, f64::max);
    let summed =
        |of: fn(&RunResult) -> Option<f64>| runs.iter().map(|run| of(&run.result)).sum::<Option<f64>>();
    let tallies = measured(&merged.slices);
    let SavedRun { result, steps, phases, slices, connect_time, tls_time, ping_time, metrics, .. } = merged;
    result.run.id = format!("{}+{}", result.run.id, runs.len() - 1);
    result.duration_s = longest(|result| result.duration_s);
    result.warmup_s = longest(|result| result.warmup_s);
    result.drain_s = longest(|result| result.drain_s);
    let duration = Nanos::from_secs_f64(result.duration_s);
    // Each run's own time, by its rate: that of streams which hung through a drain is not in it.
    let streamed = longest(|result| {
        let streams = result.event_streams.as_ref();
        let time = streams.and_then(|streams| Some(streams.tokens as f64 / streams.tokens_per_s?));
        time.filter(|time| time.is_finite()).unwrap_or(0.0)
    });
    let answered = duration.max(Nanos::from_secs_f64(streamed));
    result.rate.target_per_s = summed(|result| result.rate.target_per_s);
    result.rate.achieved_per_s = (result.duration_s > 0.0).then(|| completed / result.duration_s);
    result.rate.started_per_s = per_second(result.accounting.started, duration);
    result.rate.iterations_started_per_s = per_second(result.iterations.started, duration);
    let of = |time: fn(&Tally) -> &Delta| tallies.iter().map(time).collect::<Vec<_>>();
    let (response, service) = (&total.response_time, &total.service_time);
    result.response_time = Summary::new(response, total.censored_response).with_intervals(
        response,
        total.censored_response,
        Ok(&of(|tally| &tally.response_time)),
    );
    result.service_time = Summary::new(service, total.censored_service).with_intervals(
        service,
        total.censored_service,
        Ok(&of(|tally| &tally.service_time)),
    );
    result.start_lag = Summary::exact(&total.start_lag);
    result.connect_time = Summary::exact(connect_time);
    result.tls_time = Summary::exact(tls_time);
    result.first_byte_time = Summary::exact(&total.first_byte_time);
    result.failed_response_time = Summary::exact(&total.failed_response_time);
    if let Some(http2) = &mut result.http2 {
        http2.ping_time = Summary::exact(ping_time);
    }
    result.event_streams = event_streams(&total, answered);
    result.lag = lag(&total);
    result.metrics = OwnMetric::all(metrics, duration);
    result.in_stall = InStall::new(&total);
    result.statuses = statuses(&total);
    result.errors = by_class(&total.errors);
    result.by_step =
        steps.iter().zip(&result.by_step).map(|(step, old)| of_step(step, old, answered)).collect();
    result.phases = phases.iter().map(PhaseResult::new).collect();
    result.intervals = intervals(runs, slices);
    result.slices = None;
    result.probe = None;
    result.generator.cpu_us_per_request = (completed > 0.0)
        .then(|| (result.generator.cpu_user_s + result.generator.cpu_sys_s) * 1e6 / completed);
    for part in &mut result.generator.cpu_by_kind {
        part.cpu_us_per_request = (completed > 0.0).then(|| part.cpu_s * 1e6 / completed);
    }
    result.generator.calibration = None;
    result.generator.turnaround_mean_ns = None;
    result.generator.machine = None;
    result.generator.target_process = None;
    result.generator.watched = Vec::new();
    result.generator.trends = TrendsResult::default();
    judgement(result, runs);
}

/// The measured part slice by slice, the drain with the last one.
fn measured(slices: &[SavedSlice]) -> Vec<Tally> {
    let mut tallies: Vec<Tally> = Vec::new();
    for slice in slices.iter().filter(|slice| !slice.warmup) {
        match tallies.last_mut().filter(|_| slice.drain) {
            Some(last) => last.merge(&slice.tally),
            None => tallies.push(slice.tally.clone()),
        }
    }
    tallies
}

/// The figures of a step; what is known of it slice by slice is not saved.
fn of_step(step: &SavedStep, old: &StepResult, answered: Nanos) -> StepResult {
    let summary = |histogram: &Histogram, censored| {
        let none = Err("single steps of several runs are not known slice by slice");
        Summary::new(histogram, censored).with_intervals(histogram, censored, none)
    };
    StepResult {
        ok: step.ok,
        failed: step.failed,
        timed_out: step.timed_out,
        last_ok_s: None,
        bytes: crate::contract::result::Bytes { sent: step.bytes_sent, received: step.bytes_received },
        response_time: summary(&step.response_time, step.censored_response),
        service_time: summary(&step.service_time, step.censored_service),
        start_lag: Summary::exact(&step.start_lag),
        first_byte_time: Summary::exact(&step.first_byte_time),
        failed_response_time: Summary::exact(&step.failed_response_time),
        statuses: statuses(step),
        errors: by_class(&step.errors),
        slowest: SlowRequestResult::all(&step.slowest),
        event_streams: event_streams(step, answered),
        lag: lag(step),
        ..old.clone()
    }
}

/// The intervals of the run with the most of them, each with those of the others that have its number and are
/// of its part; of long runs, whose intervals were joined, those between ends that all of them have.
/// Percentiles are known where a slice is one interval.
fn intervals(runs: &[SavedRun], slices: &[SavedSlice]) -> Vec<IntervalResult> {
    let mut merged = Vec::new();
    for (warmup, drain) in [(true, false), (false, false), (false, true)] {
        let of_run = |run: &SavedRun| -> Vec<IntervalResult> {
            let of_kind =
                run.result.intervals.iter().filter(|one| one.warmup == warmup && one.drain == drain);
            of_kind.cloned().collect()
        };
        let all: Vec<Vec<IntervalResult>> = runs.iter().map(of_run).collect();
        if all.iter().flatten().any(|one| one.joined > 0) {
            merged.extend(between_common_ends(&all).iter().map(|same| interval(same, slices)));
            continue;
        }
        let most = all.iter().map(Vec::len).max().unwrap_or(0);
        for number in 0..most {
            let same: Vec<&IntervalResult> = all.iter().filter_map(|run| run.get(number)).collect();
            merged.push(interval(&same, slices));
        }
    }
    merged
}

/// Intervals of several runs that lie between the same two ends, each of which is the end of an interval in
/// every run that lasts that long. Intervals in between are joined.
fn between_common_ends(runs: &[Vec<IntervalResult>]) -> Vec<Vec<IntervalResult>> {
    // To the millisecond: workers end together.
    let place = |one: &IntervalResult| (one.at_s * 1_000.0).round() as u64;
    let mut runs_ending = BTreeMap::<u64, usize>::new();
    runs.iter().flatten().for_each(|one| *runs_ending.entry(place(one)).or_default() += 1);
    let lasts: Vec<u64> = runs.iter().filter_map(|run| run.last()).map(place).collect();
    let common = runs_ending.iter().filter(|(at, count)| {
        let going_on = lasts.iter().filter(|last| last >= at).count();
        **count == going_on || lasts.contains(at)
    });
    let mut merged = Vec::new();
    let mut begin = 0;
    for (&end, _) in common {
        let mut between = Vec::new();
        for run in runs {
            let mut parts = run.iter().filter(|one| (begin + 1..=end).contains(&place(one)));
            let Some(mut joined) = parts.next().cloned() else { continue };
            parts.for_each(|part| join(&mut joined, part));
            between.push(joined);
        }
        merged.push(between);
        begin = end;
    }
    merged
}

/// Adds the interval that follows. Percentiles of both together are not known.
fn join(mine: &mut IntervalResult, next: &IntervalResult) {
    let completed: f64 =
        [&*mine, next].iter().filter_map(|one| Some(one.achieved_per_s? * one.length_s)).sum();
    let range = |one: &IntervalResult| one.in_flight_range.unwrap_or((one.in_flight, one.in_flight));
    let ((low, high), (lower, higher)) = (range(mine), range(next));
    mine.in_flight_range = Some((low.min(lower), high.max(higher)));
    mine.disturbed = mine.disturbed().saturating_add(next.disturbed());
    mine.joined = mine.joined.saturating_add(next.joined).saturating_add(1);
    (mine.at_s, mine.length_s) = (next.at_s, mine.length_s + next.length_s);
    mine.achieved_per_s = (mine.length_s > 0.0).then(|| completed / mine.length_s);
    mine.scheduled = mine.scheduled.saturating_add(next.scheduled);
    mine.started = mine.started.saturating_add(next.started);
    mine.ok = mine.ok.saturating_add(next.ok);
    mine.failed = mine.failed.saturating_add(next.failed);
    mine.timed_out = mine.timed_out.saturating_add(next.timed_out);
    let metrics = [&*mine.metrics, &*next.metrics].into_iter();
    mine.metrics = IntervalMetric::joined(metrics, mine.length_s, true);
    (mine.in_flight, mine.connections) = (next.in_flight, next.connections);
    mine.thresholds_failed = mine.thresholds_failed.max(next.thresholds_failed);
    mine.marked |= next.marked;
    mine.response_time.max = mine.response_time.max.max(next.response_time.max);
}

fn interval(same: &[impl Borrow<IntervalResult>], slices: &[SavedSlice]) -> IntervalResult {
    let same: Vec<&IntervalResult> = same.iter().map(Borrow::borrow).collect();
    let longest = same.iter().max_by(|a, b| a.at_s.total_cmp(&b.at_s)).expect("it is one of them");
    let sum = |of: fn(&IntervalResult) -> u64| same.iter().map(|one| of(one)).fold(0, u64::saturating_add);
    let completed: f64 = same.iter().filter_map(|one| Some(one.achieved_per_s? * one.length_s)).sum();
    let is_it = |slice: &&SavedSlice| {
        let near = |a: Nanos, b: f64| (a.as_secs_f64() - b).abs() < 1e-3;
        slice.warmup == longest.warmup
            && slice.drain == longest.drain
            && near(slice.at, longest.at_s)
            && near(slice.length, longest.length_s)
    };
    let joined = same.iter().map(|one| one.joined).max().unwrap_or(0);
    let disturbed = same.iter().map(|one| one.disturbed()).max();
    let (ok, timed_out) = (sum(|one| one.ok), sum(|one| one.timed_out));
    let times = slices
        .iter()
        .find(is_it)
        .map(|slice| plimsoll_metrics::interval::PERCENTILES.map(|p| slice.tally.percentile(p).unwrap_or(0)));
    let mut response_time = IntervalTimes::new(ok + timed_out, times);
    if times.is_none() {
        response_time.max = same.iter().filter_map(|one| one.response_time.max).max();
        for name in ["50", "90", "99", "99.9"] {
            let reason = "not known of several runs together".to_owned();
            response_time.p_missing.entry(name.to_owned()).or_insert(reason);
        }
    }
    IntervalResult {
        settling: false,
        scheduled: sum(|one| one.scheduled),
        started: sum(|one| one.started),
        ok,
        failed: sum(|one| one.failed),
        timed_out,
        resent: sum(|one| one.resent),
        in_flight: sum(|one| one.in_flight),
        connections: sum(|one| one.connections),
        achieved_per_s: (longest.length_s > 0.0).then(|| completed / longest.length_s),
        response_time,
        event_streams: event_streams_of(&same, longest.length_s),
        metrics: IntervalMetric::joined(same.iter().map(|one| &*one.metrics), longest.length_s, false),
        thresholds_failed: same.iter().map(|one| one.thresholds_failed).max().unwrap_or(0),
        marked: same.iter().any(|one| one.marked),
        joined,
        disturbed: disturbed.filter(|_| joined > 0).unwrap_or(0),
        in_flight_range: None,
        by_scenario: Vec::new(),
        machine: None,
        ..(*longest).clone()
    }
}

/// The streams of an interval of several runs: percentiles of them together are not known.
fn event_streams_of(same: &[&IntervalResult], length_s: f64) -> Option<StreamIntervalResult> {
    let streams = || same.iter().filter_map(|one| one.event_streams.as_ref());
    streams().next()?;
    let content_events = streams().fold(0_u64, |sum, one| sum.saturating_add(one.content_events));
    Some(StreamIntervalResult {
        content_events,
        content_events_per_s: (length_s > 0.0).then(|| content_events as f64 / length_s),
        ttft: None,
    })
}

/// The merged run is valid if every run is; a threshold is met if it is met in every run.
fn judgement(result: &mut RunResult, runs: &[SavedRun]) {
    let count = runs.len();
    let verdicts = || runs.iter().map(|run| &run.result.verdict);
    let distinct = |of: &dyn Fn(&SavedRun) -> Vec<Finding>| {
        let mut found: Vec<Finding> = Vec::new();
        for finding in runs.iter().flat_map(of) {
            if !found.contains(&finding) {
                found.push(finding);
            }
        }
        found
    };
    result.verdict.valid = verdicts().all(|verdict| verdict.valid);
    result.verdict.evidence = distinct(&|run| run.result.verdict.evidence.clone());
    result.verdict.warnings = distinct(&|run| run.result.verdict.warnings.clone());
    let mut reasons: Vec<String> = Vec::new();
    for reason in verdicts().flat_map(|verdict| &verdict.invalid_reasons) {
        if !reasons.contains(reason) {
            reasons.push(reason.clone());
        }
    }
    result.verdict.invalid_reasons = reasons;
    let is = |state| verdicts().any(|verdict| verdict.thresholds == state);
    result.verdict.thresholds = match (is(Thresholds::Fail), is(Thresholds::Pass)) {
        (true, _) => Thresholds::Fail,
        (false, true) => Thresholds::Pass,
        (false, false) => Thresholds::None,
    };
    if verdicts().any(|verdict| verdict.limited_by.what != result.verdict.limited_by.what) {
        let evidence = format!("{count} runs together, which were not limited by the same");
        result.verdict.limited_by =
            LimitedByResult { what: "unknown".to_owned(), evidence, hint: String::new() };
    }
    for (number, outcome) in result.thresholds.iter_mut().enumerate() {
        let same = || runs.iter().filter_map(|run| run.result.thresholds.get(number));
        let failed = same().filter(|one| !one.passed).count();
        let proven = same().any(|one| one.proven && !one.passed);
        let did = if proven { "did not hold" } else { "was not shown to hold" };
        let reason = (failed > 0).then(|| format!("it {did} in {failed} of {count} runs"));
        *outcome = ThresholdOutcome {
            passed: failed == 0,
            observed: None,
            series: None,
            reason,
            windows: None,
            ended_run: same().any(|one| one.ended_run),
            proven,
            ..outcome.clone()
        };
    }
    result.notes.retain(|note| note.code != "one_run");
    let text = format!("{count} runs together, as if they had been made at the same time");
    result.notes.push(Note { code: "merged".to_owned(), text });
    let reason = Some("several runs together have no course of their own".to_owned());
    result.steady = SteadyResult { state: SteadyState::Unknown, from_s: None, reason };
    // Runs that went on at other times have none in common.
    result.standstills.clear();
    result.little = None;
    result.log = None;
    result.rate.changes.clear();
}
