//! The Poisson process: its law, its seeds and its shards.

use plimsoll_core::{Arrival, Nanos, Rate};
use plimsoll_schedule::{Process, Profile};
use proptest::prelude::*;

use crate::{arrivals, hold, stage, union};

fn times(profile: &Profile, seed: u64) -> Vec<Nanos> {
    arrivals(profile, Process::Poisson, seed, 0, 1).map(|arrival| arrival.at).collect()
}

/// The Kolmogorov–Smirnov statistic of `values` against the uniform distribution on [0, 1], times sqrt(n):
/// above 1.95 with a probability of 0.1 % (2 exp(-2 * 1.95²)).
fn kolmogorov(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let n = values.len() as f64;
    let distance = (0_u32..).zip(&values).map(|(rank, value)| {
        let below = f64::from(rank) / n;
        (value - below).abs().max((value - below - 1.0 / n).abs())
    });
    distance.fold(0.0, f64::max) * n.sqrt()
}

const KOLMOGOROV_LIMIT: f64 = 1.95;

#[test]
fn gaps_are_exponential_at_every_rate() {
    for (seed, count, period) in [
        (1, 1, 10_000_000_000),
        (2, 1000, 1_000_000_000),
        (3, 333_333, 1_000_000_000),
        (4, 10_000_000, 1_000_000_000),
    ] {
        let rate = Rate::new(count, Nanos(period)).unwrap();
        let mean = 1e9 / rate.per_second_f64();
        let profile = Profile::constant(rate, rate.arrival_at(20_000));
        let times = times(&profile, seed);
        let gaps = times.windows(2).map(|pair| (pair[1] - pair[0]).0 as f64);
        // Gaps are whole nanoseconds: half of one more puts them into the middle of what they stand for.
        let quantiles = gaps.map(|gap| 1.0 - (-(gap + 0.5) / mean).exp()).collect();
        let statistic = kolmogorov(quantiles);
        // At 1e7/s a gap has only 100 values of weight: the steps of the distribution add 0.005 * sqrt(n).
        let steps = 0.5 / mean * (times.len() as f64).sqrt();
        assert!(statistic < KOLMOGOROV_LIMIT + steps, "{rate:?}: {statistic}");
        // The count is within five standard deviations of its expectation.
        assert!((times.len() as f64 - 20_000.0).abs() < 5.0 * 20_000_f64.sqrt(), "{}", times.len());
    }
}

#[test]
fn successive_gaps_do_not_depend_on_each_other() {
    let profile = Profile::constant(Rate::per_second(1000), Nanos::from_secs(100));
    let times = times(&profile, 9);
    let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]).0 as f64 / 1e6 - 1.0).collect();
    // Correlation of neighbours: the standard deviation is 1 / sqrt(100,000).
    let correlation: f64 = gaps.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / gaps.len() as f64;
    assert!(correlation.abs() < 4.0 / 100_000_f64.sqrt(), "{correlation}");
}

#[test]
fn a_ramp_is_followed_by_the_density() {
    let second = Nanos::from_secs(1);
    let zero = Rate::per_second(0);
    let profile = Profile::new(vec![
        stage(second * 50, zero, Rate::per_second(1000)),
        hold(second * 20, zero),
        stage(second * 50, Rate::per_second(1000), zero),
    ])
    .unwrap();
    let times = times(&profile, 11);
    assert!(
        times.iter().all(|at| at.0 <= 50_000_000_000 || at.0 >= 70_000_000_000),
        "a rest has no arrivals"
    );
    // Given their number, arrivals are independent with the distribution function Λ(t) / Λ(end).
    let share = |at: &Nanos| {
        let t = at.as_secs_f64();
        if t <= 50.0 { t * t / 5000.0 } else { 1.0 - (120.0 - t).powi(2) / 5000.0 }
    };
    let statistic = kolmogorov(times.iter().map(share).collect());
    assert!(statistic < KOLMOGOROV_LIMIT, "{statistic}");
    assert!((times.len() as f64 - 50_000.0).abs() < 5.0 * 50_000_f64.sqrt());
}

#[test]
fn a_seed_is_a_schedule() {
    let profile = Profile::constant(Rate::per_second(1000), Nanos::from_secs(1));
    assert_eq!(times(&profile, 7), times(&profile, 7));
    assert_ne!(times(&profile, 7), times(&profile, 8));
    // Computed with 45 digits in another language. Fixed for ever: old runs have to be repeatable.
    let first: Vec<u64> = times(&profile, 7).iter().take(4).map(|at| at.0).collect();
    assert_eq!(first, [2_893_890, 4_653_477, 4_985_353, 5_835_833]);
}

#[test]
fn a_longer_run_begins_with_the_shorter_one() {
    let schedule = |seconds| times(&Profile::constant(Rate::per_second(500), Nanos::from_secs(seconds)), 3);
    let (short, long) = (schedule(2), schedule(4));
    assert_eq!(short[..], long[..short.len()]);
    assert!(long.len() > short.len() && long[short.len()] >= Nanos::from_secs(2));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn shards_unite_to_the_whole_and_counts_are_those_of_the_sequence(
        seed: u64, from in 1_u64..3000, to in 0_u64..3000, of in 1_u32..=64, taken in 0_usize..400,
    ) {
        let profile = Profile::new(vec![
            stage(Nanos::from_millis(100), Rate::per_second(from), Rate::per_second(to)),
            hold(Nanos::from_millis(50), Rate::new(from, Nanos::from_secs(3)).unwrap()),
        ]).unwrap();
        let whole: Vec<Arrival> = arrivals(&profile, Process::Poisson, seed, 0, 1).collect();
        prop_assert_eq!(&union(&profile, Process::Poisson, seed, of), &whole);
        prop_assert!(whole.windows(2).all(|pair| pair[0].at <= pair[1].at));
        prop_assert!(whole.iter().all(|arrival| arrival.at < profile.duration()));
        // From any position, and from any shard.
        let mut stream = arrivals(&profile, Process::Poisson, seed, of - 1, of);
        stream.by_ref().take(taken / of as usize).for_each(drop);
        for at in (0..=160).map(Nanos::from_millis).chain(whole.iter().take(50).map(|arrival| arrival.at)) {
            let expected = whole.iter().filter(|arrival| arrival.at < at).count() as u64;
            prop_assert_eq!(stream.count_before(at), expected);
        }
    }
}
