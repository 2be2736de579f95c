//! From the workers' snapshots to the seconds of the whole run.

use std::collections::BTreeMap;

use plimsoll_core::Nanos;

use crate::Interval;
use crate::histogram::Delta;

/// Length of an interval; the last one of a run may be shorter.
const SECOND: Nanos = Nanos::from_secs(1);

/// The percentiles of [`Interval::response_time`], in its order; the last one is the maximum.
pub const PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 100.0];

/// What one worker did in one interval. Made by [`Recorder::snapshot`](crate::Recorder::snapshot).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The nominal end of the interval, the same on all workers, since the start of the run.
    pub at: Nanos,
    /// Whether the interval belongs to the warm-up.
    pub warmup: bool,
    /// Requests started in it.
    pub started: u64,
    /// Arrivals that fell due in it (open model).
    pub scheduled: u64,
    /// Requests in flight at its end.
    pub in_flight: u64,
    /// Connections open at its end.
    pub connections: u64,
    /// Requests that ended well in it.
    pub ok: u64,
    /// Requests that failed in it.
    pub failed: u64,
    /// Requests that timed out in it.
    pub timed_out: u64,
    /// Requests that ended in it with a whole response, whatever its status.
    pub completed: u64,
    /// Response times of what ended well or timed out in it.
    pub response_time: Delta,
    /// The exact maximum of the worker's whole run so far: the limit for values read from a bucket.
    pub response_time_max: u64,
}

/// Merges the snapshots of all workers into the intervals of the run.
///
/// Snapshots whose ends fall into the same second, and agree on being warm-up, are one interval. It is
/// complete when every worker has sent its part. Workers may run ahead of one another; nothing is lost if one
/// never sends its part, see [`finish`](Self::finish).
#[derive(Debug)]
pub struct IntervalMerger {
    workers: usize,
    /// End of the last interval given out.
    last_end: Nanos,
    pending: BTreeMap<Key, Pending>,
}

/// Seconds in their order, and the warm-up's part of a second before the measured one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    second: u64,
    measured: bool,
}

#[derive(Debug, Default)]
struct Pending {
    parts: usize,
    interval: Interval,
    response_time: Delta,
    response_time_max: u64,
}

impl IntervalMerger {
    /// A merger for that many workers.
    pub const fn new(workers: usize) -> Self {
        Self { workers, last_end: Nanos::ZERO, pending: BTreeMap::new() }
    }

    /// Takes one worker's part. Afterwards [`next_complete`](Self::next_complete) may give out intervals.
    pub fn add(&mut self, snapshot: &Snapshot) {
        let key = Key { second: snapshot.at.0.div_ceil(SECOND.0), measured: !snapshot.warmup };
        let pending = self.pending.entry(key).or_default();
        pending.parts += 1;
        let interval = &mut pending.interval;
        interval.at = interval.at.max(snapshot.at);
        interval.warmup = snapshot.warmup;
        interval.started += snapshot.started;
        interval.scheduled += snapshot.scheduled;
        interval.in_flight += snapshot.in_flight;
        interval.connections += snapshot.connections;
        interval.ok += snapshot.ok;
        interval.failed += snapshot.failed;
        interval.timed_out += snapshot.timed_out;
        interval.completed += snapshot.completed;
        pending.response_time.merge(&snapshot.response_time);
        pending.response_time_max = pending.response_time_max.max(snapshot.response_time_max);
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

    /// The intervals that are left, complete or not.
    pub fn finish(mut self) -> Vec<Interval> {
        std::iter::from_fn(|| self.take_first()).collect()
    }

    fn take_first(&mut self) -> Option<Interval> {
        let (_, pending) = self.pending.pop_first()?;
        let mut interval = pending.interval;
        interval.length = interval.at - self.last_end;
        self.last_end = self.last_end.max(interval.at);
        let limit = pending.response_time_max;
        interval.response_time = (!pending.response_time.is_empty()).then(|| {
            PERCENTILES.map(|p| pending.response_time.percentile(p).map_or(0, |value| value.min(limit)))
        });
        Some(interval)
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
        Gauges { at, started: 10, scheduled: 11, in_flight: 3, connections: 4, warmup: false }
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
        assert_eq!((interval.started, interval.scheduled), (20, 22));
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
