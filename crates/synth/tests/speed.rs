//! Load for measuring the cost of batches under `perf stat`: this file measures nothing itself.
//!
//! ```sh
//! cargo test --release -p plimsoll-synth --test integration --no-run
//! SPEC='{"kind":"logs"}' BATCHES=10000 perf stat target/release/deps/integration-… --ignored speed
//! ```

use plimsoll_synth::{Spec, Synthesizer};

#[test]
#[ignore = "it is the load of a measurement"]
fn batches() {
    let spec = std::env::var("SPEC").unwrap_or_else(|_| "{}".to_owned());
    let count = std::env::var("BATCHES").map_or(1_000, |count| count.parse().unwrap());
    let spec: Spec = serde_json::from_str(&spec).unwrap();
    let mut synthesizer = Synthesizer::new(&spec, 1).unwrap();
    let (mut out, mut records, mut raw, mut sent) = (Vec::new(), 0, 0, 0);
    for index in 0..count {
        let batch = synthesizer.batch(index, 1_790_000_000_000_000_000 + index * 1_000_000, &mut out);
        records += batch.records;
        raw += batch.raw_bytes;
        sent += out.len() as u64;
    }
    println!("{records} records, {} bytes each, {} sent", raw / records, sent / records);
    assert_eq!(records, count * u64::from(spec.batch_size));
}
