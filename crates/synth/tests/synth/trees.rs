//! Spans form trees.

use std::collections::BTreeMap;

use plimsoll_synth::{Spec, TimeUnit};

use crate::synth::{Record, records, records_from, spec};

/// Start of the batches, so early that a double holds nanoseconds as whole numbers.
const EARLY: u64 = 4_000_000_000_000_000;
/// Batches that are looked at.
const BATCHES: u64 = 8;

/// Begin and end in nanoseconds.
fn extent(record: &Record, unit: TimeUnit) -> (u64, u64) {
    let begin = record["time"].number() as u64 * unit.nanos();
    (begin, begin + record["duration_ns"].number() as u64)
}

/// Checks every trace and returns how many spans have a parent, and how many could.
fn check(spec: &Spec) -> (u64, u64) {
    let records = records_from(spec, 8, BATCHES, EARLY);
    let mut traces: BTreeMap<&str, Vec<&Record>> = BTreeMap::new();
    for record in &records {
        traces.entry(record["trace_id"].text()).or_default().push(record);
    }
    let per_batch = spec.batch_size.div_ceil(spec.spans_per_trace.into());
    assert_eq!(traces.len(), BATCHES as usize * per_batch as usize);
    let (mut with_parent, mut possible) = (0, 0);
    for spans in traces.values() {
        let by_id: BTreeMap<&str, &Record> =
            spans.iter().map(|span| (span["span_id"].text(), *span)).collect();
        assert_eq!(by_id.len(), spans.len());
        assert!(spans.len() <= spec.spans_per_trace.into());
        possible += spans.len() as u64 - 1;
        for span in spans {
            let parent = span["parent_span_id"].text();
            if parent.is_empty() {
                continue;
            }
            with_parent += 1;
            let parent = by_id.get(parent).expect("the parent exists in the same trace");
            let ((begin, end), (parent_begin, parent_end)) =
                (extent(span, spec.time_unit), extent(parent, spec.time_unit));
            assert!(end <= parent_end, "it ends within its parent: {span:?} {parent:?}");
            if spec.time_unit == TimeUnit::S {
                assert!(parent_begin <= begin);
            } else {
                assert!(parent_begin < begin, "the parent begins earlier: {span:?} {parent:?}");
            }
        }
        // Parents begin strictly earlier, so that there are no circles; and one span has none.
        assert!(spans.iter().any(|span| span["parent_span_id"].text().is_empty()));
    }
    (with_parent, possible)
}

#[test]
fn parents_exist_begin_earlier_and_end_no_sooner() {
    for unit in [TimeUnit::Ms, TimeUnit::Us, TimeUnit::Ns] {
        for (spans_per_trace, parents) in [(10, 0.3), (10, 1.0), (1, 0.5), (2, 1.0), (255, 0.9), (7, 0.0)] {
            let spec = Spec { time_unit: unit, spans_per_trace, parents, ..spec(r#"{"kind":"traces"}"#) };
            let (with_parent, possible) = check(&spec);
            // Five standard deviations of a binomial share.
            let expected = possible as f64 * parents;
            let margin = 5.0 * (expected * (1.0 - parents)).sqrt();
            // In whole milliseconds a few spans do not fit into any other.
            let missing = possible as f64 * if unit == TimeUnit::Ms { 0.001 } else { 0.0 } + 1e-6;
            let difference = (with_parent as f64 - expected).abs();
            assert!(difference <= margin + missing, "{spec:?}: {with_parent} of {possible}");
        }
    }
}

#[test]
fn in_seconds_spans_are_within_their_parents_as_far_as_seconds_can_say() {
    // Whole seconds of a start, and a length in nanoseconds: traces begin anywhere in a second.
    let spec = Spec { time_unit: TimeUnit::S, step_ns: Some(7_654_321), ..spec(r#"{"kind":"traces"}"#) };
    assert!(check(&spec).0 > 0);
}

#[test]
fn the_spans_of_a_trace_are_in_one_environment_and_region() {
    let records = records(&spec(r#"{"kind":"traces"}"#), 8, 3);
    let mut places = BTreeMap::new();
    for record in &records {
        let place = (record["environment"].text(), record["region"].text());
        assert_eq!(*places.entry(record["trace_id"].text()).or_insert(place), place);
    }
    assert_eq!(places.len(), 300);
}
