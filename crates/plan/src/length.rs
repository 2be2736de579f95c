//! Number of requests in an iteration.

use plimsoll_scenario::RequestBounds;

use crate::{Plan, Scenario};

/// Number of requests in the iterations of a plan, derived from its steps, loops and conditions; redirects
/// apart. Each bound is a fraction, requests per iterations, because scenarios have weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IterationLength {
    /// Lower bound: at least this many requests in this many iterations.
    pub least: (u64, u64),
    /// Upper bound, likewise; `None` if there is no limit.
    pub most: Option<(u64, u64)>,
    /// `true` if scenarios of different lengths take part, so that the bounds hold only on average.
    pub is_average: bool,
}

impl Plan {
    /// Returns the number of requests in an iteration. Where arrivals are requests, every iteration counts as
    /// one request, regardless of its length.
    pub fn iteration_length(&self) -> IterationLength {
        if self.paces_requests() {
            return IterationLength { least: (1, 1), most: Some((1, 1)), is_average: false };
        }
        let of = |scenario: &Scenario| (u64::from(scenario.weight), scenario.program.requests());
        let all: Vec<(u64, RequestBounds)> = self.scenarios.iter().map(of).collect();
        let iterations = all.iter().map(|(weight, _)| weight).sum::<u64>().max(1);
        let sum = |of: fn(&RequestBounds) -> Option<u64>| {
            let parts = all.iter().map(|(weight, bounds)| Some(of(bounds)?.saturating_mul(*weight)));
            parts.sum::<Option<u64>>().map(|requests| lowest(requests, iterations))
        };
        IterationLength {
            least: sum(|bounds| Some(bounds.least)).unwrap_or((0, 1)),
            most: sum(|bounds| bounds.most),
            is_average: all.windows(2).any(|pair| pair[0].1 != pair[1].1),
        }
    }
}

/// A fraction in lowest terms.
fn lowest(count: u64, of: u64) -> (u64, u64) {
    let (mut divisor, mut rest) = (count, of);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (count / divisor.max(1), of / divisor.max(1))
}
