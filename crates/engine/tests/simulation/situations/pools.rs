//! Pools of workers before which requests wait, and targets that answer each request by itself: which of them
//! a run had to do with, by its times alone.

use plimsoll_testkit::{Concurrency, Law};

use super::*;

/// A target with a number of workers, `None` if there is one for each request, and the load on it.
struct Load {
    service: Law,
    workers: Option<usize>,
    connections: usize,
    is_open: bool,
    warmup: &'static str,
}

impl Load {
    /// Carries it out, and returns what limited it.
    fn claim(&self, seed: u64) -> Claim {
        let concurrency = self.workers.map_or(Concurrency::Infinite, Concurrency::Capacity);
        let behaviour = Behaviour { service: self.service, concurrency, ..Behaviour::default() };
        // A worker answers 50 requests per second, and so does a connection where none waits.
        let rate = self.workers.unwrap_or(self.connections) * 60;
        let texts = [self.connections.to_string(), rate.to_string(), seed.to_string()];
        let [connections, rate, seed_text] = texts.each_ref().map(String::as_str);
        let mut flags =
            vec![("-c", connections), ("-d", "4s"), ("--seed", seed_text), ("--warmup", self.warmup)];
        if self.is_open {
            flags.push(("--rate", rate));
        }
        let (record, _) = carry_out(&plan(&flags), SimOptions { seed, ..world(behaviour) });
        record.verdict.limited_by.claim
    }

    fn words(&self) -> String {
        let model = if self.is_open { "open" } else { "closed" };
        let workers = self.workers.map_or("any number of".to_owned(), |workers| workers.to_string());
        let (law, connections, warmup) = (self.service, self.connections, self.warmup);
        format!("{model}, {law:?}, {workers} workers, {connections} connections, warm-up {warmup}")
    }

    /// Returns `true` if the claim is one that an expert would not make of it.
    fn is_wrong(&self, claim: Claim) -> bool {
        // Each worker has a request, and another one waits for it.
        let waits = self.workers.is_some_and(|workers| self.connections >= 2 * workers);
        match claim {
            Claim::Queue => !waits,
            Claim::PerhapsQueue => waits && self.is_plain(),
            Claim::FewConnections | Claim::FewUsers => waits,
            _ => true,
        }
    }

    /// Returns `true` if the times are alike and many requests wait from the beginning: then a pool shows.
    fn is_plain(&self) -> bool {
        let is_alike = matches!(self.service, Law::Constant(_) | Law::LogNormal { sigma: ..0.2, .. });
        is_alike && !self.is_open && self.workers.is_some_and(|workers| self.connections >= 4 * workers)
    }
}

/// Symptom: "too few connections" of 50 connections before four workers, in two of four runs: while the queue
/// filled, or after a warm-up in which it had filled.
#[test]
fn a_pool_is_not_called_too_few_connections() {
    let laws = [
        Law::Constant(MS * 20),
        Law::LogNormal { median: MS * 20, sigma: 0.1 },
        Law::LogNormal { median: MS * 20, sigma: 0.3 },
        Law::LogNormal { median: MS * 20, sigma: 0.6 },
        Law::Exponential { mean: MS * 20 },
    ];
    let mut wrong = Vec::new();
    for service in laws {
        for workers in [Some(2), Some(4), Some(8), None] {
            for connections in [8, 16, 32, 50, 64] {
                for (is_open, warmup) in [(false, "0s"), (false, "1s"), (true, "0s"), (true, "1s")] {
                    let load = Load { service, workers, connections, is_open, warmup };
                    for seed in 1..=2 {
                        let claim = load.claim(seed);
                        if load.is_wrong(claim) {
                            wrong.push(format!("{}, seed {seed}: {claim:?}", load.words()));
                        }
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The load of the symptom, whose queue fills for a quarter of the run.
#[test]
fn four_workers_before_which_a_queue_fills_are_the_limit() {
    for sigma in [0.0, 0.1] {
        let service = Law::LogNormal { median: MS * 20, sigma };
        let load = Load { service, workers: Some(4), connections: 50, is_open: true, warmup: "0s" };
        for seed in 1..=4 {
            assert_eq!(load.claim(seed), Claim::Queue, "{}, seed {seed}", load.words());
        }
    }
}
