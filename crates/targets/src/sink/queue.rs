//! Servers with a FIFO queue, as arithmetic on the ideal clock.
//!
//! A completion is computed from the arrival and the completion before it, never from the time at which a
//! thread came to it. So a late wake-up delays one reply and does not shift those behind it.

use plimsoll_core::{Nanos, Rate};

/// One server with a FIFO queue: `completion_i = max(arrival_i, completion_{i-1}) + service_i` (Lindley's
/// recursion).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SingleServer {
    free_at: Nanos,
}

impl SingleServer {
    /// Takes in the next request and says when it is completed.
    pub fn admit(&mut self, arrival: Nanos, service: Nanos) -> Nanos {
        self.free_at = self.free_at.max(arrival) + service;
        self.free_at
    }
}

/// One server with a FIFO queue and a fixed service time of `1 / rate`, exact for every rational rate: the
/// k-th completion of a busy period is `floor(k / rate)` after its start.
#[derive(Clone, Copy, Debug)]
pub struct TokenServer {
    rate: Rate,
    busy_since: Nanos,
    served: u64,
}

impl TokenServer {
    /// A server of this capacity, idle.
    pub const fn new(rate: Rate) -> Self {
        Self { rate, busy_since: Nanos::ZERO, served: 0 }
    }

    /// Takes in the next request and says when it is completed.
    pub fn admit(&mut self, arrival: Nanos) -> Nanos {
        if arrival >= self.free_at() {
            self.busy_since = arrival;
            self.served = 0;
        }
        self.served += 1;
        self.free_at()
    }

    fn free_at(&self) -> Nanos {
        self.busy_since + self.rate.arrival_at(self.served)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::Random;

    #[test]
    fn a_queue_completes_in_order_and_never_before_its_service() {
        let mut server = SingleServer::default();
        assert_eq!(server.admit(Nanos(100), Nanos(10)), Nanos(110));
        assert_eq!(server.admit(Nanos(105), Nanos(10)), Nanos(120), "waits for the first");
        assert_eq!(server.admit(Nanos(300), Nanos(10)), Nanos(310), "idle in between");
        assert_eq!(
            server.admit(Nanos(299), Nanos(10)),
            Nanos(320),
            "a stamp out of order waits like any other"
        );
    }

    #[test]
    fn an_mm1_queue_has_its_known_mean_and_quantiles() {
        // Sojourn times of M/M/1 are exponential with the rate mu - lambda: mean 5 ms, p50 3.47 ms, p99 23.03
        // ms for mu = 1000/s and lambda = 800/s. They are strongly correlated, hence the wide bounds at
        // 2,000,000 requests.
        let mut random = Random::new(3, 0);
        let mut server = SingleServer::default();
        let mut arrival = 0.0;
        let mut sojourns: Vec<u64> = (0..2_000_000)
            .map(|_| {
                arrival += random.exponential(1.25e6);
                let at = Nanos(arrival as u64);
                (server.admit(at, Nanos(random.exponential(1e6) as u64)) - at).0
            })
            .collect();
        sojourns.sort_unstable();
        let quantile = |p: f64| sojourns[(p * sojourns.len() as f64) as usize] as f64 / 1e6;
        let mean = sojourns.iter().sum::<u64>() as f64 / sojourns.len() as f64 / 1e6;
        assert!((mean / 5.0 - 1.0).abs() < 0.06, "{mean}");
        assert!((quantile(0.5) / 3.466 - 1.0).abs() < 0.06, "{}", quantile(0.5));
        assert!((quantile(0.99) / 23.03 - 1.0).abs() < 0.12, "{}", quantile(0.99));
    }

    #[test]
    fn a_token_server_does_not_drift() {
        let mut server = TokenServer::new(Rate::per_second(3));
        let completions: Vec<_> = (0..6).map(|_| server.admit(Nanos(7))).collect();
        assert_eq!(completions[0], Nanos(7 + 333_333_333));
        assert_eq!(completions[2], Nanos(7 + 1_000_000_000), "three in a second exactly");
        assert_eq!(completions[5], Nanos(7 + 2_000_000_000));
        let idle_until = Nanos::from_secs(10);
        assert_eq!(server.admit(idle_until), idle_until + Nanos(333_333_333), "a new busy period");
    }
}
