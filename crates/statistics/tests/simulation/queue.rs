//! A queue with known answers: Poisson arrivals, exponential service, one server, first come first served.

use plimsoll_core::Random;

/// One M/M/1 queue in its steady state, customer by customer.
///
/// The wait of the next customer follows from that of the last one by Lindley's recursion (1952):
/// `wait' = max(0, wait + service − gap)`. The time in the system is exponential with mean 1 / (μ − λ).
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    random: Random,
    /// Customers per second.
    arrivals: f64,
    /// Customers per second that the server could serve.
    services: f64,
    /// When the last customer came, in seconds.
    now: f64,
    wait: f64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Customer {
    /// When it came, in seconds.
    pub(crate) came: f64,
    /// Time in the system, in seconds.
    pub(crate) time: f64,
}

impl Queue {
    /// Begins in the steady state if there is one, else empty.
    pub(crate) fn new(seed: u64, arrivals: f64, services: f64) -> Self {
        let mut random = Random::new(seed, 0);
        let load = arrivals / services;
        let waits = load < 1.0 && random.unit() < load;
        let wait = if waits { random.exponential(1.0 / (services - arrivals)) } else { 0.0 };
        Self { random, arrivals, services, now: 0.0, wait }
    }

    /// The true percentile `p` (0 to 100) of the time in the system.
    pub(crate) fn percentile(&self, p: f64) -> f64 {
        -(1.0 - p / 100.0).ln() / (self.services - self.arrivals)
    }
}

impl Iterator for Queue {
    type Item = Customer;

    fn next(&mut self) -> Option<Customer> {
        let gap = self.random.exponential(1.0 / self.arrivals);
        self.now += gap;
        self.wait = (self.wait - gap).max(0.0);
        let service = self.random.exponential(1.0 / self.services);
        self.wait += service;
        Some(Customer { came: self.now, time: self.wait })
    }
}
