//! Nothing is allocated once the memory of the largest batch is there.

use allocation_counter::measure;
use plimsoll_synth::{Compression, Format, Spec, Synthesizer};

use crate::synth::NOW;
use crate::synth::alike::all_specs;

#[test]
fn ten_thousand_batches_take_no_more_memory_than_a_thousand() {
    for (format, compression) in [
        (Format::Columnar, Compression::Zstd { level: 1 }),
        (Format::InfluxLine, Compression::Gzip { level: 1 }),
        (Format::RemoteWrite, Compression::None),
        (Format::OtlpProtobuf, Compression::None),
    ] {
        let (cardinality, churn, batch_size) = (Some(3_000), 0.3, 100);
        let spec = Spec { format, compression, cardinality, churn, batch_size, ..Spec::default() };
        let mut synthesizer = Synthesizer::new(&spec, 1).unwrap();
        let mut out = Vec::new();
        // Every host is replaced 300 times.
        let mut make = |from: u64, to: u64| {
            (from..to).for_each(|index| {
                synthesizer.batch(index, NOW + index * 100_000_000, &mut out);
            });
        };
        make(0, 1_000);
        let more = measure(|| make(1_000, 10_000));
        // A buffer may grow once more.
        assert!(more.bytes_current <= 20_000 && more.count_total <= 2, "{spec:?}: {more:?}");
    }
}

#[test]
fn batches_allocate_nothing_after_the_first_ones() {
    for spec in all_specs() {
        let compressions: &[Compression] = match spec.format {
            Format::RemoteWrite => &[Compression::Snappy],
            Format::Columnar | Format::OtlpProtobuf => {
                &[Compression::None, Compression::Gzip { level: 1 }, Compression::Zstd { level: 1 }]
            }
            _ => &[Compression::None],
        };
        for &compression in compressions {
            let spec = Spec { compression, batch_size: 500, ..spec.clone() };
            let mut synthesizer = Synthesizer::new(&spec, 1).unwrap();
            let mut out = Vec::new();
            let mut make = |from: u64, to: u64| {
                for index in from..to {
                    synthesizer.batch(index, NOW + index * 10_000_000, &mut out);
                }
                out.reserve(1_000);
            };
            make(0, 40);
            let allocations = measure(|| make(40, 60)).count_total;
            assert_eq!(allocations, 0, "{spec:?}");
        }
    }
}
