//! Paired benchmarks against installed peers.
fn main() {}
