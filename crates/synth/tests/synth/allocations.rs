//! Nothing is allocated once the memory of the largest batch is there.

use allocation_counter::measure;
use plimsoll_synth::{Compression, Format, Spec, Synthesizer};

use crate::NOW;
use crate::alike::all_specs;

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
