//! The histogram against sorted samples and against the `hdrhistogram` crate, whose layout it has.

use plimsoll_histogram::{Bucket, Cursor, Delta, Exact, Histogram, samples_needed};
use proptest::prelude::*;

const DAY: u64 = 24 * 3600 * 1_000_000_000;

fn recorded(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    for value in values {
        histogram.record(*value);
    }
    histogram
}

/// Values over the whole range, evenly in their logarithm, some beyond it.
fn values() -> impl Strategy<Value = Vec<u64>> {
    let value = (0_u32..64, any::<u64>()).prop_map(|(shift, bits)| bits >> shift);
    prop::collection::vec(value, 0..300)
}

proptest! {
    #[test]
    fn the_merge_of_parts_is_the_recording_of_the_whole(a in values(), b in values()) {
        let mut merged = recorded(&a);
        merged.merge(&recorded(&b));
        let whole: Vec<u64> = a.iter().chain(&b).copied().collect();
        prop_assert_eq!(merged, recorded(&whole));
    }

    #[test]
    fn buckets_and_exact_figures_make_the_histogram_again(values in values()) {
        let histogram = recorded(&values);
        let buckets = |of: fn(&Bucket) -> u64| histogram.buckets().map(move |b| (of(&b), b.count));
        let exact = histogram.exact();
        prop_assert_eq!(Histogram::restore(buckets(|b| b.highest), exact), Some(histogram.clone()));
        prop_assert_eq!(Histogram::restore(buckets(|b| b.lowest), exact), Some(histogram.clone()));
        let mut delta = Delta::default();
        Cursor::new().advance(&histogram, &mut delta);
        prop_assert_eq!(Delta::restore(delta.values()), Some(delta.clone()));
        let limits = histogram.min().zip(histogram.max());
        let exact = Exact { overflow: 0, ..exact };
        let of_delta = Histogram::of_delta(&delta, Some(exact.sum), limits);
        prop_assert_eq!(Some(of_delta), Histogram::restore(delta.values(), exact));
    }

    #[test]
    fn counts_extremes_and_mean_are_exact(values in values()) {
        let histogram = recorded(&values);
        prop_assert_eq!(histogram.count(), values.len() as u64);
        prop_assert_eq!(histogram.min(), values.iter().min().copied());
        prop_assert_eq!(histogram.max(), values.iter().max().copied());
        let sum: u128 = values.iter().map(|v| u128::from(*v)).sum();
        let mean = (!values.is_empty()).then(|| sum as f64 / values.len() as f64);
        prop_assert_eq!(histogram.mean(), mean);
    }

    #[test]
    fn many_at_once_are_many_one_by_one(values in prop::collection::vec((any::<u64>(), 0_u64..5), 0..50)) {
        let mut many = Histogram::new();
        let mut single = Histogram::new();
        for (value, times) in values {
            many.record_many(value, times);
            (0..times).for_each(|_| single.record(value));
        }
        prop_assert_eq!(many, single);
    }

    #[test]
    fn what_is_no_histogram_is_not_restored(values in prop::collection::vec(any::<u64>(), 1..300)) {
        let histogram = recorded(&values);
        let pairs: Vec<_> = histogram.buckets().map(|bucket| (bucket.highest, bucket.count)).collect();
        let exact = histogram.exact();
        let made = |pairs: Vec<(u64, u64)>, exact| Histogram::restore(pairs, exact);
        prop_assert_eq!(made(pairs.iter().chain(&pairs[..1]).copied().collect(), exact), None);
        prop_assert_eq!(made(pairs.clone(), Exact { max: u64::MAX / 2, min: u64::MAX, ..exact }), None);
        prop_assert_eq!(made(Vec::new(), Exact { sum: 1, ..Exact::default() }), None);
        prop_assert_eq!(made(vec![(7, u64::MAX), (9, 1)], Exact { min: 7, max: 9, ..exact }), None);
    }

    #[test]
    fn buckets_are_those_of_hdrhistogram(values in prop::collection::vec((0_u32..47, any::<u64>()), 1..300)) {
        let mut oracle = hdrhistogram::Histogram::<u64>::new_with_bounds(1, DAY, 3).unwrap();
        let mut ours = Histogram::new();
        for (bits, value) in values {
            let value = value & ((1 << bits) - 1);
            oracle.record(value).unwrap();
            ours.record(value);
        }
        let theirs: Vec<(u64, u64)> = oracle
            .iter_recorded()
            .map(|entry| (oracle.highest_equivalent(entry.value_iterated_to()), entry.count_at_value()))
            .collect();
        let mine: Vec<(u64, u64)> = ours.buckets().map(|bucket| (bucket.highest, bucket.count)).collect();
        prop_assert_eq!(mine, theirs);
        for bucket in ours.buckets() {
            prop_assert_eq!(oracle.lowest_equivalent(bucket.highest), bucket.lowest);
        }
        let (mine, theirs) = (ours.stdev().unwrap(), oracle.stdev());
        prop_assert!((mine - theirs).abs() <= 1e-3 * theirs + 1.0, "{} and {}", mine, theirs);
    }

    #[test]
    fn interval_deltas_add_up_to_the_whole(parts in prop::collection::vec(values(), 1..6)) {
        let mut histogram = Histogram::new();
        let mut cursor = Cursor::new();
        let mut sum = Delta::default();
        for part in &parts {
            for value in part {
                histogram.record(*value);
            }
            let mut delta = Delta::default();
            cursor.advance(&histogram, &mut delta);
            let alone: Vec<(u64, u64)> = recorded(part).buckets().map(|b| (b.highest, b.count)).collect();
            prop_assert_eq!(delta.values().collect::<Vec<_>>(), alone);
            sum.merge(&delta);
        }
        let whole: Vec<(u64, u64)> = histogram.buckets().map(|b| (b.highest, b.count)).collect();
        prop_assert_eq!(sum.values().collect::<Vec<_>>(), whole);
        prop_assert_eq!(sum.count(), histogram.count());
    }

    #[test]
    fn counting_above_a_limit_agrees_with_the_samples(values in values(), limit in 0_u64..DAY) {
        let histogram = recorded(&values);
        let above = histogram.count_above(limit);
        let exact = |least: u64| values.iter().filter(|value| **value > least).count() as u64;
        prop_assert!(above <= exact(limit));
        // Values that it leaves out lie in the bucket of the limit, less than a thousandth wide.
        prop_assert!(above >= exact(limit + limit / 1000));
    }
}

#[test]
fn what_is_beyond_the_range_is_above_a_limit_in_the_last_bucket() {
    let histogram = recorded(&[DAY - 1, DAY + DAY / 1000, u64::MAX]);
    assert_eq!(histogram.overflow(), 2);
    assert_eq!(histogram.count_above(DAY - 1), 2);
    assert_eq!(histogram.count_above(DAY / 2), 3);
}

#[test]
fn a_rank_is_not_shifted_by_floating_point() {
    // 99.9 / 100 * 1000 is 999.0000000000001 in floating point.
    let histogram = recorded(&(1..=1000).collect::<Vec<_>>());
    assert_eq!(histogram.percentile(99.9), Some(999));
    assert_eq!(histogram.percentile(99.91), Some(1000));
    assert_eq!(histogram.percentile(50.0), Some(500));
    assert_eq!(histogram.percentile(0.0), Some(1));
}

#[test]
fn values_beyond_a_day_are_counted_and_marked() {
    let mut histogram = recorded(&[5, DAY]);
    assert_eq!(histogram.overflow(), 0);
    histogram.record(u64::MAX);
    histogram.record(2 * DAY);
    assert_eq!((histogram.count(), histogram.overflow()), (4, 2));
    assert_eq!(histogram.max(), Some(u64::MAX));
    assert_eq!(histogram.buckets().map(|b| b.count).sum::<u64>(), 4);
    assert_eq!(histogram.count_above(6), 3);
    let only = recorded(&[u64::MAX]);
    assert_eq!(only.percentile(50.0), Some(u64::MAX));
}

/// As h2load counts them: the mean, more or less one standard deviation, both included.
#[test]
fn values_within_a_deviation_of_the_mean() {
    for (values, share) in [
        (&[][..], None),
        (&[7], Some(1.0)),
        (&[7; 5], Some(1.0)),
        // Both lie exactly one deviation beside the mean.
        (&[10, 20], Some(1.0)),
        (&[1, 2, 3, 4, 100], Some(0.8)),
        // 1 and 9 are 4 beside 5, the deviation is 3.27.
        (&[1, 5, 9], Some(1.0 / 3.0)),
    ] {
        assert_eq!(recorded(values).occupied().within_stdev(), share, "{values:?}");
    }
    // Buckets are wide here, and have their values in the middle.
    let large = recorded(&[1_000_000_007; 3]);
    assert_eq!(large.occupied().within_stdev(), Some(1.0));
}

#[test]
fn an_empty_histogram_has_no_figures() {
    let histogram = Histogram::new();
    assert_eq!(histogram, Histogram::default());
    assert_eq!(histogram.percentile(50.0), None);
    assert_eq!((histogram.min(), histogram.max()), (None, None));
    assert_eq!((histogram.mean(), histogram.stdev()), (None, None));
    assert_eq!(histogram.count_above(0), 0);
    assert_eq!(histogram.buckets().count(), 0);
    let mut merged = Histogram::new();
    merged.merge(&histogram);
    assert_eq!(merged, Histogram::new());
}

#[test]
fn a_percentile_needs_as_many_samples_as_its_upper_bound() {
    for (p, needed) in [(50.0, 5), (99.0, 299), (99.9, 2_995), (99.99, 29_956)] {
        assert_eq!(samples_needed(p), needed, "p{p}");
        // One sample fewer and the bound does not exist: q^n is still above 5 %.
        let q: f64 = p / 100.0;
        assert!(q.powf(needed as f64) <= 0.05 && q.powf(needed as f64 - 1.0) > 0.05);
    }
    assert_eq!(samples_needed(100.0), u64::MAX);
    let mut histogram = recorded(&vec![1; 298]);
    assert!(!histogram.enough_for(99.0));
    histogram.record(1);
    assert!(histogram.enough_for(99.0));
    assert!(!histogram.enough_for(100.0));
}

#[test]
fn what_is_taken_out_leaves_the_rest() {
    let of = |values: &[u64]| {
        let mut histogram = Histogram::new();
        values.iter().for_each(|value| histogram.record(*value));
        histogram
    };
    let all = of(&[5, 1_000, 1_000, 2_000_000, 3_000_000_000]);
    let rest = all.without(&of(&[5, 1_000, 3_000_000_000]));
    assert_eq!((rest.count(), rest.sum()), (2, 2_001_000));
    assert_eq!(rest.min(), Some(1_000));
    let max = rest.max().expect("two are left");
    assert!((2_000_000..2_000_000 + 2_000_000 / 1_000).contains(&max), "{max}");
    assert_eq!(all.without(&Histogram::new()), all);
    assert_eq!(all.without(&all).count(), 0);
}
