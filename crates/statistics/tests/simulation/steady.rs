//! Judgements of runs whose steady state is known (`MEASUREMENT.md`, R11).

use plimsoll_core::Random;
use plimsoll_statistics::{Series, Steady, SteadyPoint, Unsteady, steady};

use crate::simulation::queue::Queue;

/// Seconds of a run.
const LENGTH: u32 = 180;
/// Requests per second.
const RATE: u32 = 200;

/// The slices of a run against a server without a queue, whose delay at a time is known but for a log-normal
/// factor with that deviation. Arrivals are Poisson.
fn run(seed: u64, noise: f64, delay: impl Fn(f64) -> f64) -> Vec<SteadyPoint> {
    let mut random = Random::new(seed, 0);
    let mut next = random.exponential(1.0 / f64::from(RATE));
    let second = |second: u32| {
        let mut times = Vec::new();
        while next < f64::from(second + 1) {
            times.push(delay(next) * (noise * random.normal()).exp());
            next += random.exponential(1.0 / f64::from(RATE));
        }
        times.sort_unstable_by(f64::total_cmp);
        let rank = |p: f64| times[((p * times.len() as f64).ceil() as usize).max(1) - 1];
        SteadyPoint { at: f64::from(second), throughput: times.len() as f64, p50: rank(0.5), p99: rank(0.99) }
    };
    (0..LENGTH).map(second).collect()
}

#[test]
fn a_warm_up_is_found_and_what_follows_is_the_steady_state() {
    for (seed, noise) in (0..40).flat_map(|seed| [0.0, 0.05, 0.2].map(|noise| (seed, noise))) {
        let points = run(seed, noise, |at| 1.0 + 9.0 * (-at / 5.0).exp());
        let Steady::From(cut) = steady(&points) else {
            panic!("seed {seed}, noise {noise}: {:?}", steady(&points))
        };
        assert!((15.0..=35.0).contains(&cut), "seed {seed}, noise {noise}: {cut} s");
        let mut rest: Vec<f64> = points.iter().filter(|p| p.at >= cut).map(|point| point.p50).collect();
        rest.sort_unstable_by(f64::total_cmp);
        let p50 = rest[rest.len() / 2];
        assert!((p50 - 1.0).abs() < 0.02, "seed {seed}, noise {noise}: {p50} ms after {cut} s");
    }
}

#[test]
fn a_drift_is_never_steady() {
    for (seed, noise) in (0..40).flat_map(|seed| [0.0, 0.05, 0.2].map(|noise| (seed, noise))) {
        let points = run(seed, noise, |at| 1.0 + at / 180.0);
        let found = steady(&points);
        assert!(matches!(found, Steady::Never(_)), "seed {seed}, noise {noise}: {found:?}");
    }
    // A tenth from end to end is too little to be cut as a beginning, and a trend all the same.
    let found = steady(&run(1, 0.05, |at| 1.0 + at / 1_800.0));
    assert!(matches!(found, Steady::Never(Unsteady::Drifts(Series::P50 | Series::P99, _))), "{found:?}");
}

#[test]
fn a_run_without_a_beginning_is_steady_from_the_start_in_95_percent_of_the_seeds() {
    for noise in [0.0, 0.05, 0.2, 0.5] {
        let found: Vec<Steady> = (0..200).map(|seed| steady(&run(seed, noise, |_| 1.0))).collect();
        let never = found.iter().filter(|found| matches!(found, Steady::Never(_))).count();
        let late = found.iter().filter(|found| matches!(found, Steady::From(at) if *at >= 2.0)).count();
        println!("noise {noise}: never steady {never}, cut too late {late} of 200");
        assert!(never <= 10 && late <= 10, "noise {noise}: {never} never, {late} late");
    }
}

#[test]
fn a_queue_that_remembers_is_steady_in_95_percent_of_the_seeds() {
    let found: Vec<Steady> = (0..200)
        .map(|seed| {
            let mut seconds = vec![Vec::new(); 60];
            for customer in Queue::new(seed, 400.0, 500.0).take_while(|customer| customer.came < 60.0) {
                seconds[customer.came as usize].push(customer.time);
            }
            let points = (0_u32..).zip(&mut seconds).map(|(second, times)| {
                times.sort_unstable_by(f64::total_cmp);
                let rank = |p: f64| times[(p * times.len() as f64) as usize];
                let throughput = times.len() as f64;
                SteadyPoint { at: f64::from(second), throughput, p50: rank(0.5), p99: rank(0.99) }
            });
            steady(&points.collect::<Vec<_>>())
        })
        .collect();
    let not = found.iter().filter(|found| !matches!(found, Steady::From(at) if *at < 2.0)).count();
    println!("queue of load 0.8: {not} of 200 not steady from the start");
    assert!(not <= 10, "{not}");
}
