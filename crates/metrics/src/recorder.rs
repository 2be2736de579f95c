//! The recorder of one worker: a few array writes per request, no lock and no allocation in steady state.

use plimsoll_core::{Nanos, Outcome};

use crate::histogram::{Cursor, Delta};
use crate::{ConnectionRecord, Sample, Snapshot, StepRecord};

/// Three-digit statuses have a slot of their own; anything else that calls itself a status is counted aside.
const STATUSES: usize = 1000;

/// What one worker records.
///
/// Owned by its worker and never shared. Give it every ended request ([`record`](Self::record)), every
/// request that is still in flight when the run stops ([`record_unfinished`](Self::record_unfinished)) and
/// take one [`snapshot`](Self::snapshot) per second; [`finish`](Self::finish) ends it. The only allocations
/// are one per histogram, at its first value, and the list of counts in each snapshot.
#[derive(Debug)]
pub struct Recorder {
    steps: Vec<StepRecorder>,
    /// Everything about connections; the engine writes it directly.
    pub connections: ConnectionRecord,
    /// Buckets of the last snapshot: the next one is likely to need as many.
    delta_capacity: usize,
}

#[derive(Debug)]
struct StepRecorder {
    record: StepRecord,
    statuses: Box<[u64; STATUSES]>,
    /// What the last snapshot had seen.
    response_time: Cursor,
    ok: u64,
    failed: u64,
    timed_out: u64,
    /// Whole responses since the last snapshot.
    completed: u64,
}

/// What a worker knows about the time since its last snapshot, beside what was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// The nominal end of the interval, the same on all workers, since the start of the run.
    pub at: Nanos,
    /// Whether the interval belongs to the warm-up.
    pub warmup: bool,
    /// Requests started since the last snapshot.
    pub started: u64,
    /// Arrivals that fell due since the last snapshot (open model).
    pub scheduled: u64,
    /// Requests in flight now.
    pub in_flight: u64,
    /// Connections open now.
    pub connections: u64,
}

impl Recorder {
    /// A recorder for the steps of a plan, in their order.
    pub fn new(step_names: &[String]) -> Self {
        let steps = step_names
            .iter()
            .map(|name| StepRecorder {
                record: StepRecord { name: name.clone(), ..StepRecord::default() },
                statuses: Box::new([0; STATUSES]),
                response_time: Cursor::new(),
                ok: 0,
                failed: 0,
                timed_out: 0,
                completed: 0,
            })
            .collect();
        Self { steps, connections: ConnectionRecord::default(), delta_capacity: 256 }
    }

    /// Records one ended request.
    ///
    /// Good responses and timeouts enter response and service time, a timeout as a censored value: at least
    /// so long. Failed requests have a histogram of their own. Start lag is recorded for every request.
    ///
    /// # Panics
    /// If the sample's step is not one of the names given to [`Recorder::new`].
    #[inline]
    pub fn record(&mut self, sample: &Sample) {
        let step = &mut self.steps[sample.step as usize];
        let record = &mut step.record;
        record.start_lag.record(sample.start_lag().0);
        record.bytes_sent += sample.bytes_sent;
        record.bytes_received += sample.bytes_received;
        step.completed += u64::from(sample.is_complete());
        match sample.outcome {
            Outcome::Ok => {
                record.ok += 1;
                record.response_time.record(sample.response_time().0);
                record.service_time.record(sample.service_time().0);
                record.first_byte_time.record((sample.first_byte.min(sample.done) - sample.sent).0);
            }
            Outcome::Failed(class) => {
                record.failed += 1;
                record.errors[class as usize] += 1;
                record.failed_response_time.record(sample.response_time().0);
            }
            Outcome::TimedOut => {
                record.timed_out += 1;
                let response = sample.response_time();
                record.response_time.record(response.0);
                record.censored_response.note(response);
                // Never sent, it has no service time; a zero would flatter the percentiles.
                if sample.sent != Nanos::MAX {
                    let service = sample.service_time();
                    record.service_time.record(service.0);
                    record.censored_service.note(service);
                }
            }
        }
        if sample.status != 0 {
            match step.statuses.get_mut(usize::from(sample.status)) {
                Some(count) => *count += 1,
                None => *record.statuses.entry(sample.status).or_default() += 1,
            }
        }
    }

    /// Records the start lag of a request that had not ended when the run stopped.
    ///
    /// # Panics
    /// As [`record`](Self::record).
    pub fn record_unfinished(&mut self, step: u32, lag: Nanos) {
        self.steps[step as usize].record.start_lag.record(lag.0);
    }

    /// What happened since the last snapshot: once per second, to be sent to the run control.
    pub fn snapshot(&mut self, gauges: Gauges) -> Snapshot {
        let mut snapshot = Snapshot {
            at: gauges.at,
            warmup: gauges.warmup,
            started: gauges.started,
            scheduled: gauges.scheduled,
            in_flight: gauges.in_flight,
            connections: gauges.connections,
            ok: 0,
            failed: 0,
            timed_out: 0,
            completed: 0,
            response_time: Delta::with_capacity(self.delta_capacity),
            response_time_max: 0,
        };
        for step in &mut self.steps {
            let record = &step.record;
            snapshot.ok += record.ok - step.ok;
            snapshot.failed += record.failed - step.failed;
            snapshot.timed_out += record.timed_out - step.timed_out;
            snapshot.completed += std::mem::take(&mut step.completed);
            (step.ok, step.failed, step.timed_out) = (record.ok, record.failed, record.timed_out);
            step.response_time.advance(&record.response_time, &mut snapshot.response_time);
            snapshot.response_time_max =
                snapshot.response_time_max.max(record.response_time.max().unwrap_or(0));
        }
        self.delta_capacity = self.delta_capacity.max(snapshot.response_time.len());
        snapshot
    }

    /// The records of the steps, in their order.
    pub fn finish(self) -> Vec<StepRecord> {
        self.steps.into_iter().map(StepRecorder::finish).collect()
    }
}

impl StepRecorder {
    fn finish(mut self) -> StepRecord {
        for (status, count) in (0_u16..).zip(self.statuses.iter()) {
            if *count > 0 {
                self.record.statuses.insert(status, *count);
            }
        }
        self.record
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::ErrorClass;

    use super::*;

    const OK: Sample = Sample {
        step: 0,
        intended: Nanos(1_000),
        started: Nanos(1_200),
        sent: Nanos(1_300),
        first_byte: Nanos(1_800),
        done: Nanos(2_000),
        outcome: Outcome::Ok,
        status: 200,
        bytes_sent: 40,
        bytes_received: 160,
    };

    fn recorder() -> Recorder {
        Recorder::new(&["first".to_owned(), "second".to_owned()])
    }

    fn only(histogram: &crate::Histogram) -> Option<u64> {
        assert!(histogram.count() <= 1, "{} values", histogram.count());
        histogram.max()
    }

    #[test]
    fn a_good_request_enters_every_time() {
        let mut recorder = recorder();
        recorder.record(&OK);
        recorder.record_unfinished(1, Nanos(77));
        let steps = recorder.finish();
        assert_eq!(only(&steps[0].response_time), Some(1_000));
        assert_eq!(only(&steps[0].service_time), Some(700));
        assert_eq!(only(&steps[0].start_lag), Some(200));
        assert_eq!(only(&steps[0].first_byte_time), Some(500));
        assert_eq!(only(&steps[0].failed_response_time), None);
        assert_eq!((steps[0].ok, steps[0].bytes_sent, steps[0].bytes_received), (1, 40, 160));
        assert_eq!(steps[0].statuses, [(200, 1)].into());
        assert_eq!(steps[0].censored_response.count, 0);
        assert_eq!(steps[1].name, "second");
        assert_eq!(only(&steps[1].start_lag), Some(77));
        assert_eq!(steps[1].ok + steps[1].failed + steps[1].timed_out, 0);
    }

    #[test]
    fn a_failed_request_is_kept_apart() {
        let mut recorder = recorder();
        let failed = Outcome::Failed(ErrorClass::Status5xx);
        recorder.record(&Sample { outcome: failed, status: 503, ..OK });
        recorder.record(&Sample { outcome: Outcome::Failed(ErrorClass::Reset), status: 0, ..OK });
        // A status that no valid response has is counted all the same.
        recorder.record(&Sample { outcome: failed, status: 1_234, ..OK });
        let step = recorder.finish().swap_remove(0);
        assert_eq!(step.failed, 3);
        assert_eq!(step.failed_response_time.count(), 3);
        assert_eq!(step.start_lag.count(), 3);
        assert!(
            step.response_time.is_empty() && step.service_time.is_empty() && step.first_byte_time.is_empty()
        );
        assert_eq!(step.errors[ErrorClass::Status5xx as usize], 2);
        assert_eq!(step.errors[ErrorClass::Reset as usize], 1);
        assert_eq!(step.statuses, [(503, 1), (1_234, 1)].into());
    }

    #[test]
    fn a_timeout_is_censored_and_has_no_service_time_if_it_was_never_sent() {
        let mut recorder = recorder();
        recorder.record(&Sample { outcome: Outcome::TimedOut, status: 0, first_byte: Nanos::MAX, ..OK });
        let unsent = Sample { outcome: Outcome::TimedOut, sent: Nanos::MAX, done: Nanos(1_900), ..OK };
        recorder.record(&unsent);
        let step = recorder.finish().swap_remove(0);
        assert_eq!(step.timed_out, 2);
        assert_eq!(step.response_time.count(), 2);
        assert_eq!(step.censored_response, crate::Censored { count: 2, from: Nanos(900) });
        assert_eq!(only(&step.service_time), Some(700));
        assert_eq!(step.censored_service, crate::Censored { count: 1, from: Nanos(700) });
        assert!(step.first_byte_time.is_empty());
    }

    #[test]
    fn merged_records_of_workers_equal_the_record_of_one() {
        let samples = [
            OK,
            Sample { step: 1, done: Nanos(9_000), ..OK },
            Sample { outcome: Outcome::TimedOut, done: Nanos(50_000), status: 0, ..OK },
            Sample { outcome: Outcome::Failed(ErrorClass::Status4xx), status: 404, ..OK },
            Sample { step: 1, outcome: Outcome::Failed(ErrorClass::Io), status: 0, ..OK },
        ];
        let (mut one, mut even, mut odd) = (recorder(), recorder(), recorder());
        for (number, sample) in samples.iter().enumerate() {
            one.record(sample);
            if number % 2 == 0 { even.record(sample) } else { odd.record(sample) }
        }
        let mut merged = even.finish();
        for (mine, theirs) in merged.iter_mut().zip(odd.finish()) {
            mine.merge(&theirs);
        }
        assert_eq!(merged, one.finish());
    }

    #[test]
    fn a_snapshot_holds_what_happened_since_the_last_one_over_all_steps() {
        let mut recorder = recorder();
        recorder.record(&OK);
        recorder.record(&Sample { step: 1, ..OK });
        recorder.record(&Sample { step: 1, outcome: Outcome::TimedOut, done: Nanos(1_500), ..OK });
        let gauges = Gauges { at: Nanos::from_secs(1), started: 4, in_flight: 1, ..Gauges::default() };
        let first = recorder.snapshot(gauges);
        assert_eq!((first.ok, first.failed, first.timed_out), (2, 0, 1));
        assert_eq!((first.started, first.in_flight, first.response_time_max), (4, 1, 1_000));
        // One bucket for both steps' 1,000 ns, in ascending order after the 500 ns of the second step.
        assert_eq!(first.response_time.values().collect::<Vec<_>>(), [(500, 1), (1_000, 2)]);
        assert_eq!(first.completed, 2);
        recorder.record(&Sample { outcome: Outcome::Failed(ErrorClass::Io), ..OK });
        recorder.record(&Sample { outcome: Outcome::Failed(ErrorClass::Status4xx), status: 404, ..OK });
        let second = recorder.snapshot(Gauges { at: Nanos::from_secs(2), ..Gauges::default() });
        assert_eq!((second.ok, second.failed, second.timed_out, second.completed), (0, 2, 0, 1));
        assert!(second.response_time.is_empty());
    }
}
