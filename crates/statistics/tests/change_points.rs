//! Changes over many runs: how often one is found, and how often one is claimed that is none.

use plimsoll_core::Random;
use plimsoll_statistics::change_points::{Sensitivity, change_points};

/// `count` figures of runs around 100, with a deviation of `noise`, that change by `step` at `at`.
fn series(count: usize, at: usize, step: f64, noise: f64, seed: u64) -> Vec<f64> {
    let mut random = Random::new(seed, 1);
    (0..count).map(|i| 100.0 + noise * random.normal() + if i >= at { step } else { 0.0 }).collect()
}

/// As `plimsoll history` asks.
const ASKED: Sensitivity = Sensitivity { p_max: 0.001, change_min: 0.05 };

#[test]
fn figures_that_only_vary_have_no_change() {
    for (noise, asked) in [(2.0, ASKED), (10.0, ASKED), (2.0, Sensitivity::default())] {
        let claimed =
            (0..200).filter(|&seed| !change_points(&series(60, 60, 0.0, noise, seed), asked).is_empty());
        let claimed = claimed.count();
        println!("{noise} % of noise, changes from {}: {claimed} of 200 claimed", asked.change_min);
        assert!(claimed <= 10, "{noise} {asked:?}: {claimed} of 200");
    }
}

#[test]
fn a_step_of_four_deviations_is_found_where_it_is() {
    let found = (0..200).filter(|&seed| {
        let found = change_points(&series(60, 40, 8.0, 2.0, seed), ASKED);
        found.len() == 1
            && found[0].at.abs_diff(40) <= 1
            && (found[0].after - found[0].before - 8.0).abs() < 3.0
    });
    let found = found.count();
    println!("a step of 8 % in 2 % of noise: {found} of 200");
    assert!(found >= 190, "{found} of 200");
}

#[test]
fn a_change_is_seen_a_few_runs_after_it() {
    let seen =
        (0..200).filter(|&seed| !change_points(&series(34, 30, 10.0, 2.0, seed), ASKED).is_empty()).count();
    println!("four runs after a step of 10 % in 2 % of noise: {seen} of 200");
    assert!(seen >= 190, "{seen} of 200");
}

#[test]
fn long_series_are_searched_in_windows() {
    let mut all: Vec<f64> = Vec::new();
    for (part, level) in [0.0, 15.0, -10.0, 5.0].into_iter().enumerate() {
        all.extend(series(70, 0, level, 1.0, part as u64));
    }
    let found: Vec<usize> = change_points(&all, ASKED).iter().map(|point| point.at).collect();
    assert_eq!(found, [70, 140, 210]);
}
