//! From the workers' snapshots to the seconds of the whole run.

mod downsampler;
mod processes;

use std::collections::BTreeMap;

use plimsoll_core::Nanos;

pub use self::downsampler::{IntervalDownsampler, MOST_INTERVALS, MOST_PIECES};
pub use self::processes::ProcessMerger;
use crate::{
    AnswerTimes, Exemplars, Interval, MetricRecord, MetricSum, Outline, ScenarioInterval, Tally, WorkerStatus,
};
use plimsoll_histogram::Delta;

/// Length of an interval where the plan does not say another; the last one of a run may be shorter.
const SECOND: Nanos = Nanos::from_secs(1);

/// The percentiles of [`Interval::response_time`], in its order; the last one is the maximum.
pub const PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 100.0];

/// The counts of one worker in one interval. Made by [`Recorder::snapshot`](crate::Recorder::snapshot).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The nominal end of the interval, the same on all workers, since the start of the run. Of the drain:
    /// when it was over.
    pub at: Nanos,
    /// `true` if the interval belongs to the warm-up.
    pub warmup: bool,
    /// `true` for the drain, the time after the end of the load.
    pub drain: bool,
    /// Arrivals that fell due in it (open model).
    pub scheduled: u64,
    /// Iterations started in it.
    pub iterations: u64,
    /// Requests sent again in it, because their first attempt was lost.
    pub resent: u64,
    /// When answers came in it; `None` without any.
    pub answers: Option<AnswerTimes>,
    /// Requests in flight at its end.
    pub in_flight: u64,
    /// Connections open at its end.
    pub connections: u64,
    /// Outcomes of the requests, one tally per step of the plan.
    pub steps: Vec<Tally>,
    /// Step by step, the times for which requests of the measured part have been due without an answer at its
    /// end; empty where no threshold looks at them while the run goes on.
    pub waiting: Vec<Delta>,
    /// Step by step, requests that stand for others in histograms; empty unless the run control asks for
    /// them.
    pub exemplars: Vec<Exemplars>,
    /// Metrics of the plan's own of which values were recorded in it, with these values.
    pub metrics: Vec<MetricRecord>,
    /// Status of the worker at the end of the interval. Present in the measured part and at the end of the
    /// load, if the run control asks for details; `None` if nothing has changed since the last one.
    pub worker_status: Option<Box<WorkerStatus>>,
}

impl Snapshot {
    /// All steps together.
    pub fn total(&self) -> Tally {
        merged(&self.steps)
    }

    /// Returns `true` if the snapshot contains nothing but gauges.
    pub fn is_empty(&self) -> bool {
        let is_quiet = self.scheduled == 0 && self.worker_status.is_none() && self.metrics.is_empty();
        is_quiet && self.steps.iter().all(Tally::is_empty)
    }
}

fn merged(tallies: &[Tally]) -> Tally {
    let mut total = Tally::default();
    tallies.iter().for_each(|tally| total.merge(tally));
    total
}

/// Merges the snapshots of all workers into the intervals of the run.
///
/// Snapshots whose ends fall into the same interval, and agree on being warm-up, are one. It is complete when
/// every worker has sent its part. Workers may run ahead of one another; nothing is lost if one never sends
/// its part, see [`finish`](Self::finish). All parts of the drain are one interval.
#[derive(Debug)]
pub struct IntervalMerger {
    workers: usize,
    length: Nanos,
    outline: Outline,
    cuts: Vec<Nanos>,
    /// End of the last interval given out.
    last_end: Nanos,
    pending: BTreeMap<Key, Pending>,
}

/// Intervals in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// Number of cuts before the interval.
    segment: usize,
    measured: bool,
    /// Counted from the last cut.
    number: u64,
}

impl Key {
    /// The kind of an interval that ended at `at`, in a run that is cut at these instants into intervals of a
    /// length.
    fn new(at: Nanos, warmup: bool, drain: bool, cuts: &[Nanos], length: Nanos) -> Self {
        if drain {
            return Self { segment: usize::MAX, measured: !warmup, number: u64::MAX };
        }
        let segment = cuts.partition_point(|cut| *cut < at);
        let begin = segment.checked_sub(1).and_then(|last| cuts.get(last)).copied();
        let since = at.since(begin.unwrap_or_default());
        Self { segment, measured: !warmup, number: since.0.div_ceil(length.0) }
    }
}

#[derive(Debug, Default)]
struct Pending {
    parts: usize,
    interval: Interval,
}

impl IntervalMerger {
    /// A merger for that many workers, of intervals of a second.
    pub const fn new(workers: usize) -> Self {
        Self {
            workers,
            length: SECOND,
            outline: Outline::EMPTY,
            cuts: Vec::new(),
            last_end: Nanos::ZERO,
            pending: BTreeMap::new(),
        }
    }

    /// Sets the length of the intervals, a second unless it is set.
    #[must_use]
    pub fn with_length(mut self, length: Nanos) -> Self {
        self.length = length.max(Nanos(1));
        self
    }

    /// Sets the outline of the plan, for the figures of each scenario if there are several.
    #[must_use]
    pub fn with_outline(mut self, outline: Outline) -> Self {
        self.outline = outline;
        self
    }

    /// Cuts the intervals of the run at these instants since its start, in ascending order: from each of them
    /// on they are counted again. Without cuts, two snapshots of one worker within the length of an interval
    /// count as one.
    #[must_use]
    pub fn with_cuts(mut self, cuts: Vec<Nanos>) -> Self {
        self.cuts = cuts;
        self
    }

    /// Takes one worker's part. Afterwards [`next_complete`](Self::next_complete) may give out intervals.
    pub fn add(&mut self, snapshot: &Snapshot) {
        let key = Key::new(snapshot.at, snapshot.warmup, snapshot.drain, &self.cuts, self.length);
        let pending = self.pending.entry(key).or_default();
        pending.parts += 1;
        let interval = &mut pending.interval;
        interval.at = interval.at.max(snapshot.at);
        interval.warmup = snapshot.warmup;
        interval.drain = snapshot.drain;
        interval.scheduled += snapshot.scheduled;
        interval.iterations += snapshot.iterations;
        interval.resent += snapshot.resent;
        AnswerTimes::merge(&mut interval.answers, snapshot.answers);
        interval.in_flight += snapshot.in_flight;
        interval.connections += snapshot.connections;
        if interval.steps.len() < snapshot.steps.len() {
            interval.steps.resize_with(snapshot.steps.len(), Tally::default);
        }
        for (mine, theirs) in interval.steps.iter_mut().zip(&snapshot.steps) {
            mine.merge(theirs);
        }
        if interval.waiting.len() < snapshot.waiting.len() {
            interval.waiting.resize_with(snapshot.waiting.len(), Delta::default);
        }
        for (mine, theirs) in interval.waiting.iter_mut().zip(&snapshot.waiting) {
            mine.merge(theirs);
        }
        if interval.exemplars.len() < snapshot.exemplars.len() {
            interval.exemplars.resize_with(snapshot.exemplars.len(), Exemplars::default);
        }
        for (mine, theirs) in interval.exemplars.iter_mut().zip(&snapshot.exemplars) {
            mine.merge(theirs);
        }
        MetricRecord::merge_all(&mut interval.metrics, &snapshot.metrics);
        interval.worker_statuses.extend(snapshot.worker_status.as_deref().cloned());
    }

    /// Place of an interval among those of the run.
    fn key(&self, interval: &Interval) -> Key {
        Key::new(interval.at, interval.warmup, interval.drain, &self.cuts, self.length)
    }

    /// Takes the part of another process, which has merged its own workers: with the same length, outline and
    /// cuts as here. Its workers are numbered from `first_worker` on.
    fn add_interval(&mut self, part: &Interval, first_worker: u32) {
        let snapshot = Snapshot {
            at: part.at,
            warmup: part.warmup,
            drain: part.drain,
            scheduled: part.scheduled,
            iterations: part.iterations,
            resent: part.resent,
            answers: part.answers,
            in_flight: part.in_flight,
            connections: part.connections,
            steps: part.steps.clone(),
            waiting: part.waiting.clone(),
            exemplars: part.exemplars.clone(),
            metrics: part.metrics.clone(),
            worker_status: None,
        };
        self.add(&snapshot);
        if let Some(pending) = self.pending.get_mut(&self.key(part)) {
            pending.interval.marked |= part.marked;
            let statuses = part.worker_statuses.iter().cloned();
            pending.interval.worker_statuses.extend(
                statuses.map(|status| WorkerStatus {
                    worker: first_worker.saturating_add(status.worker),
                    ..status
                }),
            );
        }
    }

    /// The next interval to which every worker has contributed, in order. An older one that some worker has
    /// left out counts as complete as soon as a younger one is.
    pub fn next_complete(&mut self) -> Option<Interval> {
        if !self.pending.values().any(|pending| pending.parts >= self.workers) {
            return None;
        }
        self.take_first()
    }

    /// One worker has ended and sends nothing any more.
    pub const fn retire_worker(&mut self) {
        self.workers = self.workers.saturating_sub(1);
    }

    /// The next of the intervals that are left, complete or not. For the end, when no worker sends any more.
    pub fn next_left(&mut self) -> Option<Interval> {
        self.take_first()
    }

    /// The intervals that are left, complete or not.
    pub fn finish(mut self) -> Vec<Interval> {
        std::iter::from_fn(|| self.take_first()).collect()
    }

    fn take_first(&mut self) -> Option<Interval> {
        let (_, pending) = self.pending.pop_first()?;
        let mut interval = pending.interval;
        interval.length = interval.at - self.last_end;
        self.last_end = self.last_end.max(interval.at);
        let total = merged(&interval.steps);
        interval.metric_sums = interval.metrics.iter().map(MetricSum::new).collect();
        interval.started = total.started;
        interval.ok = total.ok;
        interval.failed = total.failed;
        interval.timed_out = total.timed_out;
        interval.completed = total.answers();
        interval.response_time = times(&total);
        interval.content_events = total.content_events;
        interval.ttft =
            (!total.ttft.is_empty()).then(|| PERCENTILES.map(|p| total.ttft.percentile(p).unwrap_or(0)));
        interval.worker_statuses.sort_by_key(|worker_status| worker_status.worker);
        if self.outline.scenarios.len() > 1 {
            interval.scenarios = self.outline.scenarios.iter().map(|s| of_scenario(s, &interval)).collect();
        }
        Some(interval)
    }
}

/// Returns the [`PERCENTILES`] of the response times, which an interval keeps of them; `None` without any.
fn times(tally: &Tally) -> Option<[u64; 5]> {
    (!tally.response_time.is_empty()).then(|| PERCENTILES.map(|p| tally.percentile(p).unwrap_or(0)))
}

fn of_scenario(scenario: &crate::ScenarioOutline, interval: &Interval) -> ScenarioInterval {
    let steps = scenario.steps.start as usize..scenario.steps.end as usize;
    let tally = merged(interval.steps.get(steps).unwrap_or_default());
    ScenarioInterval {
        name: scenario.name.clone(),
        started: tally.started,
        ok: tally.ok,
        failed: tally.failed,
        timed_out: tally.timed_out,
        completed: tally.answers(),
        response_time: times(&tally),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::Outcome;

    use super::*;
    use crate::{Gauges, Recorder, Sample};

    /// A worker that has just seen good responses of the given lengths.
    fn snapshot(recorder: &mut Recorder, gauges: Gauges, lengths_us: std::ops::Range<u64>) -> Snapshot {
        for length in lengths_us {
            let zero = Nanos::ZERO;
            recorder.note_started(0);
            recorder.record(&Sample {
                step: 0,
                intended: zero,
                started: zero,
                sent: zero,
                first_byte: zero,
                done: Nanos::from_micros(length),
                outcome: Outcome::Ok,
                status: 200,
                bytes_sent: 0,
                bytes_received: 0,
            });
        }
        recorder.snapshot(gauges)
    }

    fn gauges(at: Nanos) -> Gauges {
        Gauges {
            at,
            scheduled: 11,
            iterations: 5,
            resent: 2,
            in_flight: 3,
            connections: 4,
            ..Gauges::default()
        }
    }

    fn recorder() -> Recorder {
        Recorder::new(&["step".to_owned()])
    }

    #[test]
    fn percentiles_come_from_the_merged_counts() {
        let (mut fast, mut slow) = (recorder(), recorder());
        let mut merger = IntervalMerger::new(2);
        merger.add(&snapshot(&mut fast, gauges(SECOND), 1..51));
        assert_eq!(merger.next_complete(), None);
        merger.add(&snapshot(&mut slow, gauges(SECOND), 51..101));
        let interval = merger.next_complete().unwrap();
        assert_eq!((interval.at, interval.length, interval.warmup), (SECOND, SECOND, false));
        assert_eq!((interval.started, interval.scheduled, interval.iterations), (100, 22, 10));
        assert_eq!(interval.resent, 4);
        assert_eq!((interval.in_flight, interval.connections, interval.completed), (6, 8, 100));
        // 1..=100 µs: nearest rank, each the top of its bucket; the maximum is exact.
        let [p50, p90, p99, p999, max] = interval.response_time.unwrap();
        for (shown, truth) in [(p50, 50_000), (p90, 90_000), (p99, 99_000), (p999, 100_000)] {
            assert!((truth..truth + truth / 1000).contains(&shown) || shown == truth, "{shown} for {truth}");
        }
        assert_eq!(max, 100_000);
        assert_eq!(merger.next_complete(), None);
    }

    #[test]
    fn workers_may_run_ahead_and_a_missing_part_does_not_hold_up_the_rest() {
        let (mut a, mut b) = (recorder(), recorder());
        let mut merger = IntervalMerger::new(2);
        merger.add(&snapshot(&mut a, gauges(SECOND), 0..1));
        merger.add(&snapshot(&mut a, gauges(SECOND * 2), 0..2));
        assert_eq!(merger.next_complete(), None);
        merger.add(&snapshot(&mut b, gauges(SECOND * 2), 0..4));
        assert_eq!(merger.next_complete().map(|i| (i.at, i.ok)), Some((SECOND, 1)));
        assert_eq!(merger.next_complete().map(|i| (i.at, i.ok)), Some((SECOND * 2, 6)));
        merger.retire_worker();
        merger.add(&snapshot(&mut a, gauges(SECOND * 3), 0..0));
        let third = merger.next_complete().unwrap();
        assert_eq!((third.ok, third.response_time), (0, None));
    }

    #[test]
    fn scenarios_are_told_apart_and_the_drain_is_one_interval() {
        let outline = Outline {
            scenarios: ["a", "b"]
                .into_iter()
                .zip([0..1, 1..3])
                .map(|(name, steps)| crate::ScenarioOutline { name: name.to_owned(), steps })
                .collect(),
            steps: ["x", "y", "z"].map(str::to_owned).to_vec(),
            awaited: Vec::new(),
            phases: Vec::new(),
            paces_requests: false,
            metrics: Vec::new(),
        };
        let mut merger = IntervalMerger::new(2).with_length(SECOND * 2).with_outline(outline);
        let tally = |ok| Tally { started: ok + 1, ok, completed: ok, ..Tally::default() };
        let snapshot = |at, drain, counts: [u64; 3]| Snapshot {
            at,
            drain,
            steps: counts.map(tally).to_vec(),
            ..Snapshot::default()
        };
        merger.add(&snapshot(SECOND * 2, false, [1, 2, 3]));
        merger.add(&snapshot(SECOND * 3, true, [10, 0, 0]));
        merger.add(&snapshot(SECOND * 2, false, [4, 5, 6]));
        merger.add(&snapshot(SECOND * 9, true, [0, 20, 0]));
        let first = merger.next_complete().unwrap();
        let shape = |interval: &Interval| {
            let part = |s: &ScenarioInterval| (s.name.clone(), s.started, s.ok);
            interval.scenarios.iter().map(part).collect::<Vec<_>>()
        };
        assert_eq!((first.at, first.length, first.ok, first.drain), (SECOND * 2, SECOND * 2, 21, false));
        assert_eq!(shape(&first), [("a".to_owned(), 7, 5), ("b".to_owned(), 20, 16)]);
        let drain = merger.next_complete().unwrap();
        assert_eq!((drain.at, drain.length, drain.ok, drain.drain), (SECOND * 9, SECOND * 7, 30, true));
        assert_eq!(merger.next_left(), None);
    }

    #[test]
    fn a_cut_ends_an_interval_and_the_next_ones_count_from_it() {
        let (mut a, mut b) = (recorder(), recorder());
        let at = |ms| Nanos::from_millis(ms);
        let ends = [1_000, 1_200, 1_500, 2_500, 2_600, 3_600, 3_900];
        let cuts = [1_200, 1_500, 2_600].map(at).to_vec();
        let mut merger = IntervalMerger::new(2).with_cuts(cuts);
        // One worker runs ahead of the other.
        for worker in [&mut a, &mut b] {
            ends.iter().for_each(|&end| merger.add(&snapshot(worker, gauges(at(end)), 0..end / 100)));
        }
        let shape = |interval: Interval| (interval.at, interval.length, interval.ok);
        let intervals: Vec<_> = std::iter::from_fn(|| merger.next_complete()).map(shape).collect();
        let lengths = [1_000, 200, 300, 1_000, 100, 1_000, 300];
        let expected = ends.into_iter().zip(lengths);
        let expected = expected.map(|(end, length)| (at(end), at(length), end / 50));
        assert_eq!(intervals, expected.collect::<Vec<_>>());
    }

    #[test]
    fn the_last_part_of_a_run_is_shorter_and_the_warm_up_ends_inside_a_second() {
        let mut worker = recorder();
        let mut merger = IntervalMerger::new(2);
        let half = Nanos::from_millis(500);
        merger.add(&snapshot(&mut worker, Gauges { warmup: true, ..gauges(half) }, 0..1));
        merger.add(&snapshot(&mut worker, gauges(SECOND), 0..2));
        // Two workers that end within the same second at different instants.
        merger.add(&snapshot(&mut worker, gauges(Nanos::from_millis(1_200)), 0..3));
        merger.add(&snapshot(&mut worker, gauges(Nanos::from_millis(1_300)), 0..4));
        let intervals = merger.finish();
        let shape: Vec<_> = intervals.iter().map(|i| (i.warmup, i.at, i.length, i.ok)).collect();
        assert_eq!(
            shape,
            [
                (true, half, half, 1),
                (false, SECOND, half, 2),
                (false, Nanos::from_millis(1_300), Nanos::from_millis(300), 7)
            ]
        );
    }
}
