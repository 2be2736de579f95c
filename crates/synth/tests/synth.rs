//! Synthesized data as other programs see them: decoded by third-party decoders.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod alike;
mod allocations;
mod any_spec;
mod apart;
mod campaign;
mod decoders;
mod distributions;
mod formats;
mod series;
mod specs;
mod trees;

use std::collections::BTreeMap;

use plimsoll_synth::{Spec, Synthesizer};

/// 2026-09-21T15:33:20Z, in nanoseconds.
const NOW: u64 = 1_790_000_000_000_000_000;

/// A record by the names of its columns.
type Record = BTreeMap<String, Cell>;

/// Value found by a decoder.
#[derive(Clone, Debug, PartialEq)]
enum Cell {
    Text(String),
    /// Whole or not: the value after parsing is the same.
    Number(f64),
    Flag(bool),
}

impl Cell {
    fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            other => panic!("{other:?} is not a text"),
        }
    }

    fn number(&self) -> f64 {
        match self {
            Self::Number(number) => *number,
            other => panic!("{other:?} is not a number"),
        }
    }

    fn flag(&self) -> bool {
        match self {
            Self::Flag(flag) => *flag,
            other => panic!("{other:?} is neither yes nor no"),
        }
    }
}

fn spec(json: &str) -> Spec {
    serde_json::from_str(json).unwrap()
}

/// The bytes of one batch.
fn batch(spec: &Spec, seed: u64, index: u64) -> Vec<u8> {
    let mut out = Vec::new();
    Synthesizer::new(spec, seed).unwrap().batch(index, NOW, &mut out);
    out
}

/// The records of the first batches of a columnar spec.
fn records(spec: &Spec, seed: u64, batches: u64) -> Vec<Record> {
    records_from(spec, seed, batches, NOW)
}

/// The records of the first batches of a columnar spec, from a time on.
fn records_from(spec: &Spec, seed: u64, batches: u64, from: u64) -> Vec<Record> {
    let mut synthesizer = Synthesizer::new(spec, seed).unwrap();
    let mut out = Vec::new();
    let batches = (0..batches).flat_map(|index| {
        synthesizer.batch(index, from + index * 1_000_000_000, &mut out);
        decoders::columnar(&out).1
    });
    batches.collect()
}
