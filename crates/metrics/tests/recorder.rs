//! The recorder against the definition of its figures, although it counts some of them together.

use plimsoll_core::{ErrorClass, Nanos, Outcome};
use plimsoll_histogram::{Delta, Histogram};
use plimsoll_metrics::{Gauges, Recorder, Sample, StepRecord};
use proptest::prelude::*;

use crate::error_rows::all_classes;

/// Records the samples one value at a time, as the documentation of [`StepRecord`] defines it.
fn defined(samples: &[Sample]) -> StepRecord {
    let mut record = StepRecord { name: "step".to_owned(), ..StepRecord::default() };
    for sample in samples {
        record.start_lag.record((sample.started - sample.intended).0);
        record.bytes_sent += sample.bytes_sent;
        record.bytes_received += sample.bytes_received;
        if sample.status != 0 {
            *record.statuses.entry(sample.status).or_default() += 1;
        }
        let response = sample.done - sample.intended;
        let service = (sample.sent != Nanos::MAX).then(|| sample.done - sample.sent);
        match sample.outcome {
            Outcome::Ok => {
                record.ok += 1;
                record.response_time.record(response.0);
                record.service_time.record((sample.done - sample.sent).0);
                record.first_byte_time.record((sample.first_byte.min(sample.done) - sample.sent).0);
            }
            Outcome::Failed(class @ ErrorClass::AbortedByUs) => record.errors[class] += 1,
            Outcome::Failed(class) => {
                record.failed += 1;
                record.errors[class] += 1;
                record.failed_response_time.record(response.0);
            }
            Outcome::TimedOut => {
                record.timed_out += 1;
                record.response_time.record(response.0);
                record.censored_response.note(response);
                if let Some(service) = service {
                    record.service_time.record(service.0);
                    record.censored_service.note(service);
                }
            }
        }
    }
    record
}

/// Spans over ten decades, every third of them zero.
fn span() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        0_u64..5_000,
        (0_u32..40, any::<u64>()).prop_map(|(bits, value)| value >> (24 + bits))
    ]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let class = prop::sample::select(all_classes());
    prop_oneof![6 => Just(Outcome::Ok), 1 => class.prop_map(Outcome::Failed), 1 => Just(Outcome::TimedOut)]
}

/// Every order of instants that the engine may give, sent or not, in one piece or several.
fn sample() -> impl Strategy<Value = Sample> {
    let spans = (span(), span(), span(), span(), span());
    let status = prop_oneof![Just(0_u16), Just(200), Just(404), 100..2_000_u16];
    (spans, outcome(), status, any::<bool>(), any::<bool>()).prop_map(
        |((intended, lag, wait, first, rest), outcome, status, whole, unsent)| {
            let started = Nanos(intended + lag);
            let sent = started + Nanos(wait);
            let first_byte = sent + Nanos(first);
            let unsent = unsent && outcome != Outcome::Ok;
            Sample {
                step: 0,
                intended: Nanos(intended),
                started,
                sent: if unsent { Nanos::MAX } else { sent },
                first_byte: if whole || unsent { Nanos::MAX } else { first_byte },
                done: first_byte + Nanos(rest),
                outcome,
                status,
                bytes_sent: lag % 1_000,
                bytes_received: rest % 1_000,
            }
        },
    )
}

proptest! {
    #[test]
    fn what_is_counted_together_is_reported_apart(
        seconds in prop::collection::vec(prop::collection::vec(sample(), 0..60), 1..4),
    ) {
        let mut recorder = Recorder::new(&["step".to_owned()]);
        let mut deltas = Delta::default();
        let mut completed = 0;
        for samples in &seconds {
            samples.iter().for_each(|sample| recorder.record(sample));
            let snapshot = recorder.snapshot(Gauges::default()).total();
            let expected = defined(samples);
            prop_assert_eq!(snapshot.ok, expected.ok);
            prop_assert_eq!(snapshot.completed, samples.iter().filter(|s| s.is_complete()).count() as u64);
            prop_assert_eq!(snapshot.completed, expected.completed());
            prop_assert_eq!((snapshot.failed, snapshot.timed_out), (expected.failed, expected.timed_out));
            prop_assert_eq!(snapshot.errors, expected.errors);
            prop_assert_eq!(snapshot.censored, expected.censored_response);
            prop_assert_eq!(snapshot.response_time_sum, expected.response_time.sum());
            prop_assert_eq!(snapshot.service_time_sum, expected.service_time.sum());
            prop_assert_eq!(
                (snapshot.bytes_sent, snapshot.bytes_received),
                (expected.bytes_sent, expected.bytes_received)
            );
            for (hundred, count) in (3_u16..).zip(snapshot.statuses) {
                let of = expected.statuses.iter().filter(|(status, _)| **status / 100 == hundred);
                prop_assert_eq!(count, of.map(|(_, count)| count).sum::<u64>());
            }
            prop_assert_eq!(values(&snapshot.response_time), buckets(&expected.response_time));
            deltas.merge(&snapshot.response_time);
            completed += snapshot.completed;
        }
        let whole: Vec<Sample> = seconds.concat();
        let record = recorder.finish().swap_remove(0);
        prop_assert_eq!(completed, record.completed());
        prop_assert_eq!(values(&deltas), buckets(&record.response_time));
        prop_assert_eq!(record, defined(&whole));
    }
}

fn values(delta: &Delta) -> Vec<(u64, u64)> {
    delta.values().collect()
}

fn buckets(histogram: &Histogram) -> Vec<(u64, u64)> {
    histogram.buckets().map(|bucket| (bucket.highest, bucket.count)).collect()
}
