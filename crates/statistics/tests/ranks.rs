//! Ranks and shifts against brute force: every assignment of values to groups, every shift.

use plimsoll_statistics::rank::rank_test;
use plimsoll_statistics::shift::{runs_needed, shift};
use proptest::prelude::*;

/// Pairs in which the second is larger, ties counting one half.
fn u_of(a: &[f64], b: &[f64]) -> f64 {
    let pair = |a: f64, b: f64| {
        if b > a {
            1.0
        } else if b == a {
            0.5
        } else {
            0.0
        }
    };
    b.iter().flat_map(|&b| a.iter().map(move |&a| pair(a, b))).sum()
}

/// The share of all assignments whose U is at least as far from its mean.
fn enumerated(a: &[f64], b: &[f64]) -> f64 {
    let pooled = [a, b].concat();
    let middle = (a.len() * b.len()) as f64 / 2.0;
    let observed = (u_of(a, b) - middle).abs();
    let (mut all, mut beyond) = (0_u32, 0_u32);
    for choice in 0_u32..1 << pooled.len() {
        if choice.count_ones() as usize != b.len() {
            continue;
        }
        let pick = |wanted: u32| -> Vec<f64> {
            (0..pooled.len()).filter(|&i| choice >> i & 1 == wanted).map(|i| pooled[i]).collect()
        };
        all += 1;
        beyond += u32::from((u_of(&pick(0), &pick(1)) - middle).abs() >= observed);
    }
    f64::from(beyond) / f64::from(all)
}

/// Few different values, so that there are many ties.
fn tied() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((0_u8..6).prop_map(f64::from), 1..7)
}

fn untied() -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
    (1_usize..8, 1_usize..8).prop_flat_map(|(n, m)| {
        let order: Vec<u32> = (0..(n + m) as u32).collect();
        Just(order).prop_shuffle().prop_map(move |order| {
            let values: Vec<f64> = order.into_iter().map(|rank| f64::from(rank * rank) + 0.5).collect();
            (values[..n].to_vec(), values[n..].to_vec())
        })
    })
}

proptest! {
    // A regression becomes a test of its own, not a file of seeds.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_test_is_that_of_all_assignments(a in tied(), b in tied()) {
        let test = rank_test(&a, &b).unwrap();
        prop_assert!(test.exact && (test.u - u_of(&a, &b)).abs() < 1e-9);
        prop_assert!((test.p - enumerated(&a, &b)).abs() < 1e-9, "{test:?}");
        prop_assert!(test.smallest_p <= test.p + 1e-12);
        let back = rank_test(&b, &a).unwrap();
        prop_assert!((test.p - back.p).abs() < 1e-9, "{test:?} {back:?}");
    }

    /// A shift is within the interval just as long as the test does not reject the groups once it is taken
    /// away.
    #[test]
    fn the_interval_holds_what_the_test_does_not_reject((a, b) in untied(), steps in -40_i32..40) {
        // Differences of the values are whole: this one is none of them, so that it makes no tie.
        let tried = f64::from(steps) + 0.25;
        let found = shift(&a, &b, 0.95).unwrap();
        let moved: Vec<f64> = b.iter().map(|b| b - tried).collect();
        let kept = rank_test(&a, &moved).unwrap().p > 0.05;
        prop_assert_eq!(found.low <= tried && tried <= found.high, kept, "{:?} {}", found, tried);
        prop_assert!(found.low <= found.estimate && found.estimate <= found.high);
    }

    #[test]
    fn moving_a_group_moves_the_interval((a, b) in untied(), by in -50.0_f64..50.0) {
        let (before, after) = (shift(&a, &b, 0.9).unwrap(), {
            let moved: Vec<f64> = b.iter().map(|b| b + by).collect();
            shift(&a, &moved, 0.9).unwrap()
        });
        let ends = [(before.low, after.low), (before.high, after.high)];
        for (x, y) in ends.into_iter().chain([(before.estimate, after.estimate)]) {
            prop_assert!(x + by == y || f64::abs(x + by - y) < 1e-9, "{before:?} {after:?}");
        }
    }
}

#[test]
fn four_runs_a_side_are_the_fewest_for_an_interval_of_95_percent() {
    assert_eq!(runs_needed(0.95), 4);
    let smallest = |runs: u8| {
        let a: Vec<f64> = (0..runs).map(f64::from).collect();
        let b: Vec<f64> = (runs..2 * runs).map(f64::from).collect();
        rank_test(&a, &b).unwrap().p
    };
    assert!(smallest(3) > 0.05 && smallest(4) < 0.05);
}
