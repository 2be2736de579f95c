//! R13: comparisons of runs tell real differences from chance, in simulation.
//!
//! The runs are those of a server with one queue (M/M/1, by the recursion of Lindley, 1952), whose response
//! times depend on each other as those of real servers do.

use plimsoll_core::Random;
use plimsoll_statistics::bootstrap::{Bootstrap, Slice, quantile_ratio, relative_mean_change};
use plimsoll_statistics::holm::holm;
use plimsoll_statistics::judgement::{Judgement, Orientation, judge};
use plimsoll_statistics::rank::rank_test;
use plimsoll_statistics::shift::{Shift, relative_shift};

const CONFIDENCE: f64 = 0.95;
const LEVEL: f64 = 1.0 - CONFIDENCE;
/// The smallest change that matters, as by default.
const EFFECT: f64 = 0.05;
const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];

/// Response times in nanoseconds of an M/M/1 queue in steady state: service with a mean of one millisecond
/// times `slower`, arrivals such that it is busy for the share `rho` at `slower` = 1.
fn queue(requests: usize, rho: f64, slower: f64, random: &mut Random) -> Vec<u64> {
    let service = 1e6 * slower;
    // Waiting times are zero with the probability 1 − ρ, else exponential: begin in steady state.
    let busy = rho * slower;
    let mut wait = if random.unit() < busy { random.exponential(service / (1.0 - busy)) } else { 0.0 };
    let next = |_| {
        let served = random.exponential(service);
        let response = wait + served;
        wait = (response - random.exponential(1e6 / rho)).max(0.0);
        response as u64
    };
    (0..requests).map(next).collect()
}

fn quantiles(times: &[u64]) -> [f64; 3] {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    QUANTILES.map(|q| sorted[((q * sorted.len() as f64).ceil() as usize).max(1) - 1] as f64)
}

fn slices(times: &[u64]) -> Vec<Slice> {
    let of = |part: &[u64]| {
        // To two digits, which changes a quantile by less than 1 %.
        let mut sorted: Vec<u64> = part.iter().map(|time| time - time % (time / 128).max(1)).collect();
        sorted.sort_unstable();
        sorted.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u64)).collect()
    };
    times.chunks(times.len() / 30).map(of).collect()
}

/// The judgements of all quantiles of two groups of runs, as `compare` makes them.
fn judged(
    a: &[[f64; 3]],
    b: &[[f64; 3]],
    compare: impl Fn(&[f64], &[f64]) -> (Shift, f64),
) -> [Judgement; 3] {
    let changes: [(Shift, f64); 3] = std::array::from_fn(|i| {
        let column = |runs: &[[f64; 3]]| -> Vec<f64> { runs.iter().map(|run| run[i]).collect() };
        compare(&column(a), &column(b))
    });
    let adjusted = holm(&changes.map(|(_, p)| p));
    std::array::from_fn(|i| judge(changes[i].0, adjusted[i], LEVEL, EFFECT, Orientation::Lower))
}

fn by_ranks(a: &[f64], b: &[f64]) -> (Shift, f64) {
    let shift = relative_shift(a, b, CONFIDENCE).expect("times are positive");
    (shift, rank_test(a, b).expect("the groups have runs").p)
}

fn by_means(a: &[f64], b: &[f64]) -> (Shift, f64) {
    let change = relative_mean_change(a, b, CONFIDENCE).expect("the groups have runs");
    (change.shift, change.p)
}

fn is_alarm(judgements: &[Judgement]) -> bool {
    judgements.iter().any(|judgement| matches!(judgement, Judgement::Better | Judgement::Worse))
}

fn group(runs: usize, slower: f64, random: &mut Random) -> Vec<[f64; 3]> {
    (0..runs).map(|_| quantiles(&queue(4_000, 0.5, slower, random))).collect()
}

/// Two hundred comparisons of groups that do not differ.
fn false_alarms(runs: usize, compare: impl Fn(&[f64], &[f64]) -> (Shift, f64) + Copy) -> usize {
    (0..200)
        .filter(|&seed| {
            let mut random = Random::new(seed, 1);
            let (a, b) = (group(runs, 1.0, &mut random), group(runs, 1.0, &mut random));
            is_alarm(&judged(&a, &b, compare))
        })
        .count()
}

#[test]
fn groups_that_do_not_differ_raise_an_alarm_in_at_most_five_percent() {
    for (runs, found) in [(5, false_alarms(5, by_ranks)), (10, false_alarms(10, by_ranks))] {
        println!("ranks, {runs} runs a side: {found} of 200");
        assert!(found <= 10, "{found} of 200 with {runs} runs a side");
    }
    let found = false_alarms(3, by_means);
    println!("means, 3 runs a side: {found} of 200");
    assert!(found <= 10, "{found} of 200 with 3 runs a side");
}

/// Single runs, by their slices: the dependence among requests deceives a naive test (R13: in 77 % of such
/// comparisons).
#[test]
fn two_runs_that_do_not_differ_raise_an_alarm_in_at_most_five_percent() {
    let mut alarms = 0;
    let mut naive = 0;
    for seed in 0..100 {
        let mut random = Random::new(seed, 2);
        let (a, b) = (queue(20_000, 0.8, 1.0, &mut random), queue(20_000, 0.8, 1.0, &mut random));
        let how = Bootstrap { confidence: CONFIDENCE, resamples: 200, seed };
        let (sliced_a, sliced_b) = (slices(&a), slices(&b));
        let changes = QUANTILES.map(|q| quantile_ratio(&[&sliced_a], &[&sliced_b], q, how).unwrap());
        let adjusted = holm(&changes.map(|change| change.p));
        let judgements: [Judgement; 3] =
            std::array::from_fn(|i| judge(changes[i].shift, adjusted[i], LEVEL, EFFECT, Orientation::Lower));
        alarms += usize::from(is_alarm(&judgements));
        let raw = |times: &[u64]| -> Vec<f64> { times.iter().map(|&time| time as f64).collect() };
        naive += usize::from(seed < 20 && rank_test(&raw(&a), &raw(&b)).unwrap().p < LEVEL);
    }
    println!("slices of single runs: {alarms} of 100; ranks of single requests: {naive} of 20");
    assert!(alarms <= 5, "{alarms} of 100");
    assert!(naive >= 10, "a naive test would do: {naive} of 20");
}

/// Response times that are all larger by 5 %, as when each request costs so much more and the load is reduced
/// with it; runs that differ by 2 % among themselves.
#[test]
fn a_shift_of_five_percent_is_found_with_ten_runs_a_side() {
    let mut found = 0;
    for seed in 0..100 {
        let mut random = Random::new(seed, 3);
        let mut runs = |factor: f64| -> Vec<[f64; 3]> {
            let one = |_| {
                let of_run = factor * (0.02 * random.normal()).exp();
                quantiles(&queue(20_000, 0.5, 1.0, &mut random)).map(|time| time * of_run)
            };
            (0..10).map(one).collect()
        };
        let (a, b) = (runs(1.0), runs(1.05));
        found += usize::from(judged(&a, &b, by_ranks).contains(&Judgement::Worse));
    }
    println!("a shift of 5 %: found in {found} of 100");
    assert!(found >= 80, "{found} of 100");
}

/// Three runs a side of which each is off by 5 %: neither sameness nor a difference can be claimed.
#[test]
fn what_agrees_with_both_is_undecided() {
    let (a, b) = ([[1.00; 3], [1.05; 3], [1.10; 3]], [[1.02; 3], [1.08; 3], [1.13; 3]]);
    assert_eq!(judged(&a, &b, by_means), [Judgement::Undecided; 3]);
    let five = |first: f64| -> Vec<[f64; 3]> { (0..5).map(|i| [first + 0.05 * f64::from(i); 3]).collect() };
    assert_eq!(judged(&five(1.0), &five(1.03), by_ranks), [Judgement::Undecided; 3]);
    let near = |first: f64| -> Vec<[f64; 3]> { (0..5).map(|i| [first + 0.002 * f64::from(i); 3]).collect() };
    assert_eq!(judged(&near(1.0), &near(1.003), by_ranks), [Judgement::Same; 3]);
}
