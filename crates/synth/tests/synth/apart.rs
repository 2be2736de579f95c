//! Over a whole run no two records have the same series and time, as far as the spec says so.

use std::collections::HashSet;

use plimsoll_core::{SequenceAllocator, Shard};
use plimsoll_synth::{Format, Kind, Shape, Spec, Synthesizer, TimeUnit};

use crate::synth::{NOW, Record, decoders};

const TAGS: [&str; 14] = [
    "node",
    "host",
    "metric_name",
    "region",
    "environment",
    "env",
    "level",
    "service",
    "event_type",
    "event_category",
    "severity",
    "source",
    "service_name",
    "operation_name",
];

fn point(measurement: &str, record: &Record) -> String {
    let tags = TAGS.iter().filter_map(|&tag| record.get(tag).map(crate::synth::Cell::text));
    let tags: Vec<&str> = tags.collect();
    format!("{measurement} {} {}", tags.join(","), record["time"].number())
}

/// Records of a run that have the series and time of others. Each worker makes this many batches, ahead of
/// the clock at first, then at the pace of the rate, with a pause.
fn repeated(spec: &Spec, rate: f64, workers: u32, batches: u32) -> usize {
    // The format does not affect the draws.
    let columnar = Spec { format: Format::Columnar, step_ns: Some(spec.step()), ..spec.clone() };
    let mut synthesizer = Synthesizer::new(&columnar, 5).unwrap();
    let turns: Vec<SequenceAllocator> =
        (0..workers).map(|index| SequenceAllocator::new(spec.span(), Shard { index, of: workers })).collect();
    let (mut points, mut repeated, mut out) = (HashSet::new(), 0, Vec::new());
    for batch in 0..batches {
        let records = f64::from(batch.saturating_sub(8) * spec.batch_size * workers);
        let pause = if batch > batches / 2 { 3_123_456 } else { 0 };
        let now = NOW + 77_777 + pause + (records / rate * 1e9) as u64;
        for worker in &turns {
            let (number, begin) = worker.take(now);
            synthesizer.batch(number, begin, &mut out);
            let (measurement, records) = decoders::columnar(&out);
            repeated += records.iter().filter(|record| !points.insert(point(&measurement, record))).count();
        }
    }
    repeated
}

fn paced(spec: &Spec, rate: f64) -> Spec {
    Spec { step_ns: Some(spec.step_at(rate)), format: Format::InfluxLine, ..spec.clone() }
}

#[test]
fn points_are_apart_whenever_it_is_said_and_are_not_otherwise() {
    let metrics = Spec::default();
    let with =
        |batch_size, cardinality| Spec { batch_size, cardinality: Some(cardinality), ..metrics.clone() };
    let of = |kind, time_unit| Spec { kind, time_unit, ..Spec::default() };
    let mut said = [0; 2];
    for (spec, rates) in [
        (metrics.clone(), [1e3, 5e5, 6.9e5, 1.5e6]),
        (with(300, 700), [1e4, 2e5, 6.5e5, 1.5e6]),
        (with(1_000, 1_000), [1e4, 3e5, 9e5, 3e6]),
        (with(1_000, 2_500), [1e4, 9e5, 2e6, 5e6]),
        (with(64, 3), [1e3, 2_999.0, 5e3, 1e6]),
        (Spec { churn: 0.5, ..metrics.clone() }, [1e3, 5e5, 6.9e5, 2e6]),
        (Spec { shape: Shape::Host, ..metrics.clone() }, [1e3, 5e5, 1e6, 4e6]),
        (
            Spec { shape: Shape::Host, batch_size: 200, cardinality: Some(900), ..metrics.clone() },
            [1e3, 1e5, 3e5, 4e6],
        ),
        (of(Kind::Logs, TimeUnit::Ms), [100.0, 1e3, 1e4, 1e6]),
        (of(Kind::Logs, TimeUnit::Us), [1e3, 1e5, 1e6, 1e8]),
        (of(Kind::Events, TimeUnit::Us), [1e3, 1e5, 1e6, 1e8]),
    ] {
        for rate in rates {
            for workers in [1, 3] {
                let spec = paced(&spec, rate);
                let repeated = repeated(&spec, rate, workers, 18 / workers);
                let is_apart = spec.keeps_points_apart(workers);
                said[usize::from(is_apart)] += 1;
                assert!(!is_apart || repeated == 0, "{rate} {workers} {spec:?}: {repeated}");
                if rate == rates[3] {
                    assert!(!is_apart && repeated > 0, "{rate} {workers} {spec:?}");
                }
            }
        }
    }
    assert!(said[1] > said[0], "{said:?}");
}

#[test]
fn without_a_rate_points_are_apart_at_any_speed() {
    for spec in [Spec::default(), Spec { batch_size: 2_100, ..Spec::default() }] {
        let spec = Spec { format: Format::RemoteWrite, ..spec };
        assert!(spec.keeps_points_apart(4));
        for rate in [1e4, 1e6, 1e8] {
            assert_eq!(repeated(&spec, rate, 4, 9), 0, "{rate}");
        }
    }
}

#[test]
fn the_times_of_a_series_rise_with_the_number_of_the_batch() {
    let spec = paced(&Spec { batch_size: 100, cardinality: Some(7), ..Spec::default() }, 5e3);
    let columnar = Spec { format: Format::Columnar, ..spec.clone() };
    let mut synthesizer = Synthesizer::new(&columnar, 5).unwrap();
    let turns = SequenceAllocator::new(spec.span(), Shard::WHOLE);
    let mut newest = std::collections::HashMap::new();
    let mut out = Vec::new();
    for batch in 0..50_u64 {
        let (number, begin) = turns.take(NOW + batch * 19_000_000);
        synthesizer.batch(number, begin, &mut out);
        for record in decoders::columnar(&out).1 {
            let series = (record["node"].text().to_owned(), record["metric_name"].text().to_owned());
            let time = record["time"].number();
            let before = newest.insert(series, time);
            assert!(before.is_none_or(|before| before < time), "{before:?} {time}");
        }
    }
    assert_eq!(newest.len(), 7);
}
