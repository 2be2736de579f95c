//! For every accepted spec, batches can be made and decoded.

use std::io::Read as _;

use plimsoll_synth::{Compression, Format, Kind, Shape, Spec, Synthesizer, TimeUnit};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::synth::{NOW, decoders};

prop_compose! {
    fn looks()(
        kind in select(Kind::ALL.to_vec()),
        format in select(Format::ALL.to_vec()),
        shape in select(Shape::ALL.to_vec()),
        compression in select(vec![
            Compression::None,
            Compression::Gzip { level: 1 },
            Compression::Zstd { level: -5 },
            Compression::Snappy,
        ]),
        time_unit in select(TimeUnit::ALL.to_vec()),
        measurement in option::of("[a-zA-Z][a-zA-Z0-9_-]{0,63}"),
    ) -> Spec {
        Spec { kind, format, shape, compression, time_unit, measurement, ..Spec::default() }
    }
}

prop_compose! {
    fn any_spec()(
        looks in looks(),
        batch_size in 1_u32..400,
        services in option::of(1_u32..3_000),
        hosts in option::of(1_u32..3_000),
        cardinality in option::of(1_u32..3_000),
        churn in select(vec![0.0, 1e-9, 0.5, 1.0]),
        step_ns in option::of(0_u64..10_000_000_000),
        spans_per_trace in 1_u8..=255,
        parents in 0.0..=1.0,
    ) -> Spec {
        let is_metrics = looks.kind == Kind::Metrics;
        let has_services = matches!(looks.kind, Kind::Logs | Kind::Traces);
        Spec {
            batch_size,
            services: services.filter(|_| has_services),
            hosts: hosts.filter(|_| is_metrics),
            cardinality: cardinality.filter(|_| is_metrics),
            churn: if is_metrics { churn } else { 0.0 },
            step_ns,
            spans_per_trace,
            parents,
            ..looks
        }
    }
}

/// As it was before it was compressed; remote write stays so.
fn plain(spec: &Spec, sent: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    match spec.compression {
        Compression::Gzip { .. } => {
            flate2::read::GzDecoder::new(sent).read_to_end(&mut plain).unwrap();
            plain
        }
        Compression::Zstd { .. } => zstd::stream::decode_all(sent).unwrap(),
        Compression::None | Compression::Snappy => sent.to_vec(),
    }
}

/// Returns the number of records in a batch.
fn count(spec: &Spec, index: u64, bytes: &[u8]) -> usize {
    let measurements = spec.measurements();
    let measurement = measurements[index as usize % measurements.len()];
    let (named, records) = match spec.format {
        Format::Columnar => decoders::columnar(bytes),
        Format::Row => decoders::rows(bytes),
        Format::InfluxLine => decoders::lines(bytes),
        Format::JsonLines => decoders::json_lines(bytes),
        Format::ElasticBulk => decoders::bulk(bytes),
        Format::LokiPush => decoders::loki(bytes),
        Format::RemoteWrite => (measurement.to_owned(), decoders::remote_write(bytes, measurement)),
        Format::OtlpProtobuf => return decoders::otlp_count(bytes, spec.kind),
    };
    assert_eq!(named, measurement);
    records.len()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_accepted_can_be_made_and_decoded(
        spec in any_spec(),
        seed in any::<u64>(),
        index in any::<u64>(),
        later in 0_u64..1_000_000_000_000_000,
    ) {
        prop_assume!(spec.validate().is_ok());
        let mut synthesizer = Synthesizer::new(&spec, seed).unwrap();
        let mut out = Vec::new();
        for (index, now) in [(index, NOW + later), (index / 2, NOW), (index / 3, NOW + 1)] {
            let batch = synthesizer.batch(index, now, &mut out);
            prop_assert_eq!(batch.records, u64::from(spec.batch_size));
            let plain = plain(&spec, &out);
            prop_assert_eq!(count(&spec, index, &plain), spec.batch_size as usize);
        }
    }
}
