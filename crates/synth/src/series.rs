//! Which series come in which order, and which take the place of others.

use plimsoll_core::Random;

/// An endless sequence of the numbers below a count, in cycles that are all alike: each has every number
/// once, so that exactly as many series exist as were asked for, and a number comes again after exactly
/// `count` elements, as those who collect metrics ask the same hosts in the same order. The numbers go in
/// strides of a length that shares no factor with the count.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    count: u32,
    first: u32,
    stride: u32,
}

/// A place in the sequence.
#[derive(Debug)]
pub(crate) struct Walk {
    count: u32,
    number: u32,
    stride: u32,
}

impl Order {
    /// The sequence of the numbers below `count`, which is not 0.
    pub(crate) fn new(count: u32, seed: u64) -> Self {
        let mut random = Random::new(seed, 0);
        let first = random.below(count.into()) as u32;
        let stride = loop {
            let stride = random.below(count.into()) as u32;
            if greatest_common_divisor(stride, count) == 1 {
                break stride;
            }
        };
        Self { count, first, stride }
    }

    /// The sequence from its element number `position` on.
    pub(crate) fn walk(&self, position: u128) -> Walk {
        let count = u64::from(self.count);
        let offset = (position % u128::from(self.count)) as u64;
        let number = ((u64::from(self.first) + offset * u64::from(self.stride)) % count) as u32;
        Walk { count: self.count, number, stride: self.stride }
    }
}

impl Walk {
    /// The next number.
    #[inline]
    pub(crate) fn next(&mut self) -> u32 {
        let number = self.number;
        let next = u64::from(number) + u64::from(self.stride);
        let count = u64::from(self.count);
        self.number = if next >= count { next - count } else { next } as u32;
        number
    }
}

fn greatest_common_divisor(mut a: u32, mut b: u32) -> u32 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Hosts that new ones take the place of, one after another, at a constant rate of the time that the data
/// say: host `h` is replaced for the first time with the replacement number `h`, then again after every round
/// of all hosts.
#[derive(Clone, Debug)]
pub(crate) struct Replacement {
    hosts: u32,
    per_second_e9: u64,
    /// Number of replacements made when the names were last written; `None` before the first time.
    done: Option<u64>,
}

impl Replacement {
    /// Replaces the share `churn` of `hosts` each second.
    pub(crate) fn new(hosts: u32, churn: f64) -> Self {
        Self { hosts, per_second_e9: (churn * 1e9).round() as u64, done: None }
    }

    /// Returns `true` if any host is ever replaced.
    pub(crate) fn is_on(&self) -> bool {
        self.per_second_e9 > 0
    }

    /// Returns the number of replacements since the epoch; `now` is in nanoseconds since then.
    fn count(&self, now: u64) -> u64 {
        // Within `count`, host number 0 is replaced first: it changes with each whole round.
        (u128::from(now) * u128::from(self.per_second_e9) * u128::from(self.hosts)
            / 1_000_000_000_000_000_000) as u64
    }

    /// Passes each host whose name has changed between the last call and `now` to `tell`, with its
    /// generation; the first call passes all.
    pub(crate) fn advance(&mut self, now: u64, mut tell: impl FnMut(u32, u64)) {
        let count = self.count(now);
        let done = self.done.replace(count);
        let (from, to) = done.map_or((0, u64::MAX), |done| (done.min(count), done.max(count)));
        for step in 0..(to - from).min(self.hosts.into()) {
            let host = ((from % u64::from(self.hosts) + step) % u64::from(self.hosts)) as u32;
            tell(host, generation(count, host, self.hosts));
        }
    }
}

/// Returns the number of times that `host` has been replaced after `count` replacements.
fn generation(count: u64, host: u32, hosts: u32) -> u64 {
    (count + u64::from(hosts - 1 - host)) / u64::from(hosts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cycle_has_every_number_once_in_one_order_wherever_it_is_entered() {
        for count in [1_u32, 2, 6, 7, 700, 1_001] {
            let order = Order::new(count, 9);
            let all: Vec<u32> = {
                let mut walk = order.walk(0);
                (0..4 * count).map(|_| walk.next()).collect()
            };
            for cycle in all.chunks(count as usize) {
                let mut sorted = cycle.to_vec();
                sorted.sort_unstable();
                assert!(sorted.iter().copied().eq(0..count), "{cycle:?}");
                assert_eq!(cycle, &all[..count as usize]);
            }
            for (position, &number) in (0..).zip(&all) {
                assert_eq!(order.walk(position).next(), number, "{count} {position}");
            }
        }
        // The last position that there can be.
        Order::new(u32::MAX, 1).walk(u128::from(u64::MAX) * 1_000_000).next();
    }

    #[test]
    fn replacements_are_exactly_the_asked_share() {
        const SECOND: u64 = 1_000_000_000;
        let mut hosts = [0; 200];
        let mut replacement = Replacement::new(200, 0.05);
        replacement.advance(1_000 * SECOND, |host, generation| hosts[host as usize] = generation);
        let before = hosts;
        replacement.advance(1_003 * SECOND, |host, generation| {
            assert_eq!(generation, hosts[host as usize] + 1);
            hosts[host as usize] = generation;
        });
        assert_eq!(hosts.iter().zip(before).filter(|&(&now, before)| now != before).count(), 30);
        // Going back in time gives back what was there.
        replacement.advance(1_000 * SECOND, |host, generation| hosts[host as usize] = generation);
        assert_eq!(hosts, before);
        // And a day is the same in one step as it is in many.
        let mut stepwise = hosts;
        for second in (1_000..87_400).step_by(7) {
            replacement.advance(second * SECOND, |host, generation| stepwise[host as usize] = generation);
        }
        replacement.advance(87_400 * SECOND, |host, generation| stepwise[host as usize] = generation);
        Replacement::new(200, 0.05).advance(87_400 * SECOND, |host, now| hosts[host as usize] = now);
        assert_eq!(stepwise, hosts);
    }
}
