//! Protocols of other generators: each is read into rows of one measurement, in a database of its own.

mod documents;
mod loki;
mod otlp;
mod prometheus;
pub(crate) mod protobuf;

pub(crate) use documents::{Bulk, bulk, lines};
pub(crate) use loki::{json as loki_json, packed as loki_packed};
pub(crate) use otlp::{Signal, decode as otlp};
pub(crate) use prometheus::decode as prometheus;

use super::batch::Decoded;
use super::rows::Rows;

/// Converts rows to batches. Their names need no check.
fn finished(rows: Rows) -> Decoded {
    let mut decoded = Decoded::default();
    rows.finish(&mut decoded.batches, &mut decoded.conflict);
    decoded.measurements = decoded.batches.iter().map(|batch| batch.measurement.clone()).collect();
    decoded
}

#[cfg(test)]
mod tests;
