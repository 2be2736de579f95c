//! R18: the law of scalability is recovered from noisy levels, and its intervals hold the truth.

use plimsoll_core::Random;
use plimsoll_statistics::usl::{Level, Usl, fit};

const LAW: Usl = Usl { lambda: 1000.0, alpha: 0.02, beta: 0.0005 };
/// N* = √((1 − 0.02) / 0.0005).
const PEAK: f64 = 44.27;
const LEVELS: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 48.0, 64.0, 96.0];

fn noisy(at: &[f64], noise: f64, random: &mut Random) -> Vec<Level> {
    at.iter()
        .map(|&concurrency| Level {
            concurrency,
            throughput: LAW.throughput(concurrency) * (1.0 + noise * random.normal()),
        })
        .collect()
}

#[test]
fn the_peak_is_recovered_within_ten_percent_of_it() {
    let mut inside = 0;
    for seed in 0..200 {
        let levels = noisy(&LEVELS, 0.02, &mut Random::new(seed, 1));
        let found = fit(&levels, 0.95, seed).unwrap();
        let peak = found.peak.expect("the levels go beyond the peak").concurrency;
        inside += usize::from((peak / PEAK - 1.0).abs() <= 0.10);
        assert!(!found.extrapolated, "seed {seed}: {found:?}");
    }
    println!("within 10 %: {inside} of 200");
    assert!(inside >= 190, "{inside} of 200");
}

#[test]
fn intervals_hold_the_peak_as_often_as_they_say() {
    for (levels, name) in
        [(&LEVELS[..], "nine levels"), (&[1.0, 4.0, 16.0, 32.0, 64.0, 96.0][..], "six levels")]
    {
        let truth = LAW.peak().expect("β is above zero");
        let (mut places, mut heights) = (0, 0);
        for seed in 0..150 {
            let found = fit(&noisy(levels, 0.02, &mut Random::new(seed, 2)), 0.95, seed).unwrap();
            let low = found.peak_low.expect("a peak was seen");
            // An end that is missing is beyond anything.
            let above = |value: fn(&plimsoll_statistics::usl::Peak) -> f64, truth: f64| {
                found.peak_high.as_ref().is_none_or(|high| truth <= value(high))
            };
            places += usize::from(
                low.concurrency <= truth.concurrency && above(|p| p.concurrency, truth.concurrency),
            );
            heights +=
                usize::from(low.throughput <= truth.throughput && above(|p| p.throughput, truth.throughput));
        }
        println!("{name}: concurrency {places}, throughput {heights} of 150");
        for held in [places, heights] {
            assert!((135..=149).contains(&held), "{name}: {held} of 150");
        }
    }
}

#[test]
fn a_peak_beyond_the_levels_is_marked() {
    let levels = noisy(&[1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 24.0, 32.0], 0.002, &mut Random::new(1, 3));
    let found = fit(&levels, 0.95, 1).unwrap();
    assert!(found.extrapolated && found.peak.is_some(), "{found:?}");
}
