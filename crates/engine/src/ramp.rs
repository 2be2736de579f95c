//! The pace at which the first connections are opened.

use plimsoll_core::{Nanos, Rate, Shard};

/// The pace of opening connections until all have been open once: `--connection-rate`. It is the rate of the
/// run; worker w of W opens those whose number leaves w modulo W.
#[derive(Debug)]
pub(crate) struct Ramp {
    rate: Option<Rate>,
    shard: Shard,
    opened: u64,
    total: u64,
}

impl Ramp {
    /// A ramp for the `total` connections of this worker; without a rate there is no limit.
    pub(crate) const fn new(rate: Option<Rate>, shard: Shard, total: u64) -> Self {
        Self { rate, shard, opened: 0, total }
    }

    /// Returns `true` if connections are opened at a limited rate.
    pub(crate) const fn is_paced(&self) -> bool {
        self.rate.is_some()
    }

    /// When this worker's connection `number` may be opened, since the start.
    pub(crate) fn at(&self, number: u64) -> Nanos {
        match self.rate {
            Some(rate) if number < self.total => {
                rate.arrival_at(number * u64::from(self.shard.of) + u64::from(self.shard.index))
            }
            _ => Nanos::ZERO,
        }
    }

    /// When the next connection may be opened, since the start; zero, when all were open.
    pub(crate) fn next(&self) -> Nanos {
        self.at(self.opened)
    }

    /// Returns `true` while connections are still to be opened at their time.
    pub(crate) fn is_rising(&self) -> bool {
        self.is_paced() && self.opened < self.total
    }

    /// Connections that were opened so far, or tried.
    pub(crate) const fn opened(&self) -> u64 {
        self.opened
    }

    /// Counts one opened connection.
    pub(crate) const fn note_opened(&mut self) {
        self.opened = self.opened.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_together_open_at_the_rate_until_all_were_open() {
        let rate = Some(Rate::per_second(10));
        let mut times = Vec::new();
        for index in 0..2 {
            let mut ramp = Ramp::new(rate, Shard { index, of: 2 }, 3);
            for _ in 0..3 {
                times.push(ramp.next());
                ramp.note_opened();
            }
            assert_eq!(ramp.next(), Nanos::ZERO, "afterwards there is no limit");
        }
        times.sort();
        assert_eq!(times, (0..6).map(|n| Nanos::from_millis(100 * n)).collect::<Vec<_>>());
        assert_eq!(Ramp::new(None, Shard::WHOLE, 5).next(), Nanos::ZERO);
    }
}
