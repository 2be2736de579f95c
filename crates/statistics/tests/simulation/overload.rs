//! A queue above its capacity is distinguished from one below it (`MEASUREMENT.md`, R17).

use plimsoll_core::Random;
use plimsoll_statistics::{growth, little};

use crate::simulation::queue::Queue;

/// Requests per second that the server can serve.
const CAPACITY: f64 = 1_000.0;

/// Requests in the system of an M/M/1 queue that begins empty, at the end of each second.
fn counts(seed: u64, rate: f64, seconds: u32) -> Vec<f64> {
    let mut random = Random::new(seed, 1);
    let (mut now, mut inside) = (0.0, 0_u32);
    let mut counts = Vec::new();
    // The time to the next event is exponential, whatever came before.
    while counts.len() <= seconds as usize {
        let events = rate + if inside > 0 { CAPACITY } else { 0.0 };
        now += random.exponential(1.0 / events);
        while now >= counts.len() as f64 && counts.len() <= seconds as usize {
            counts.push(f64::from(inside));
        }
        let arrives = random.unit() * events < rate;
        inside = if arrives { inside + 1 } else { inside - 1 };
    }
    counts
}

/// Of how many of 200 seeds overload is said.
fn said(load: f64, seconds: u32) -> usize {
    let rate = load * CAPACITY;
    (0..200).filter(|&seed| growth(&counts(seed, rate, seconds), 1.0, rate).is_some()).count()
}

#[test]
fn overload_is_named_within_ten_seconds_and_a_busy_server_is_not_overloaded() {
    let shares = [1.05, 1.1, 0.9, 0.8, 0.3].map(|load| (load, said(load, 10)));
    let longer = [1.05, 0.9, 0.95].map(|load| (load, said(load, 60)));
    println!("of 200 seeds overloaded: 10 s {shares:?}, 60 s {longer:?}");
    assert!(shares[0].1 >= 190 && shares[1].1 >= 199, "{shares:?}");
    assert!(shares[2..].iter().all(|(_, said)| *said <= 10), "{shares:?}");
    assert!(longer[0].1 == 200 && longer[1..].iter().all(|(_, said)| *said <= 10), "{longer:?}");
}

#[test]
fn little_holds_in_queues_and_not_when_times_are_wrong() {
    let mut tested = 0;
    for seed in 0..50 {
        let (load, seconds) = (0.8 * CAPACITY, 120);
        let customers: Vec<_> =
            Queue::new(seed, load, CAPACITY).take_while(|c| c.came < f64::from(seconds)).collect();
        let inside = |at: f64| customers.iter().filter(|c| c.came <= at && at < c.came + c.time).count();
        let counts: Vec<f64> = (1..=seconds).map(|second| inside(f64::from(second)) as f64).collect();
        let started = customers.len() as f64 / f64::from(seconds);
        let mean = customers.iter().map(|c| c.time).sum::<f64>() / customers.len() as f64;
        // Queues that vary too much for it are not tested.
        let Some(check) = little(&counts, started, mean) else { continue };
        tested += 1;
        assert!(check.holds, "seed {seed}: {check:?}");
        // Times that leave out the wait are those of service alone.
        let wrong = little(&counts, started, 1.0 / CAPACITY).unwrap();
        assert!(!wrong.holds || check.in_flight < 2.8, "seed {seed}: {wrong:?}");
    }
    assert!(tested >= 15, "{tested} of 50");
}
