//! Intervals of an agent's shard on their way: numbered, repeated until they have arrived, taken in order.
//!
//! Parts are the result so far; intervals are its seconds, one by one, so that the coordinator has the
//! figures of the whole load while it goes on. Each is sent at once, and again if its arrival is not
//! confirmed.

use std::collections::VecDeque;

use plimsoll_core::Nanos;

/// Intervals that are kept for a coordinator that is away: a quarter of an hour of seconds. Older ones are
/// dropped; the result has them all the same.
const MOST: usize = 900;
/// Intervals that are sent in one go.
const BURST: usize = 32;
/// Time after which intervals are sent again if their arrival was not confirmed.
const REPEAT: Nanos = Nanos::from_secs(2);

/// The intervals of an agent, until they have arrived.
#[derive(Debug, Default)]
pub struct IntervalOutbox {
    /// Number of intervals that are no longer kept.
    gone: u64,
    kept: VecDeque<Vec<u8>>,
    /// Number of the last one that was sent.
    sent: u64,
    /// When the oldest that is kept was sent.
    repeated: Nanos,
}

impl IntervalOutbox {
    /// Takes the next interval.
    pub fn offer(&mut self, interval: Vec<u8>) {
        if self.kept.len() == MOST {
            self.kept.pop_front();
            self.gone += 1;
        }
        self.kept.push_back(interval);
    }

    /// Notes that this interval, and so all before it, has arrived.
    pub fn note_arrived(&mut self, number: u64, now: Nanos) {
        while self.gone < number && self.kept.pop_front().is_some() {
            self.gone += 1;
            self.repeated = now;
        }
    }

    /// Number of the last interval; zero before the first.
    pub fn last(&self) -> u64 {
        self.gone + self.kept.len() as u64
    }

    /// Number of the oldest interval that is kept.
    pub const fn first(&self) -> u64 {
        self.gone + 1
    }

    /// Returns `true` if all intervals have arrived.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The intervals to be sent now, with their numbers.
    pub fn due(&mut self, now: Nanos) -> Vec<(u64, Vec<u8>)> {
        let is_under_way = self.sent > self.gone;
        let from = match is_under_way {
            true if now.since(self.repeated) >= REPEAT => self.gone,
            true => self.sent,
            false => self.gone,
        };
        if from == self.gone {
            self.repeated = now;
        }
        let skipped = (from - self.gone) as usize;
        let due = (from + 1..).zip(self.kept.iter().skip(skipped)).take(BURST);
        let due: Vec<(u64, Vec<u8>)> = due.map(|(number, interval)| (number, interval.clone())).collect();
        self.sent = due.last().map_or(self.sent, |(number, _)| self.sent.max(*number));
        due
    }
}

/// The intervals of an agent as they arrive.
#[derive(Debug, Default)]
pub struct IntervalInbox {
    /// Number of the last one that was taken, or given up.
    seen: u64,
    missing: u64,
}

impl IntervalInbox {
    /// Notes the arrival of an interval; `first` is the oldest that its agent still has. Returns `true` if it
    /// is the next one; others are sent again.
    pub const fn take(&mut self, number: u64, first: u64) -> bool {
        if first > self.seen + 1 {
            self.missing += first - 1 - self.seen;
            self.seen = first - 1;
        }
        if number != self.seen + 1 {
            return false;
        }
        self.seen = number;
        true
    }

    /// Number of the last interval that was taken, all before it included.
    pub const fn seen(&self) -> u64 {
        self.seen
    }

    /// Number of intervals that will not come, because their agent has dropped them.
    pub const fn missing(&self) -> u64 {
        self.missing
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::Random;

    use super::*;

    /// Loss, reordering and duplication change neither the intervals taken nor their order.
    #[test]
    fn every_interval_is_taken_once_and_in_order() {
        for seed in 0..200 {
            let mut random = Random::new(seed, 0);
            let (mut outbox, mut inbox) = (IntervalOutbox::default(), IntervalInbox::default());
            let mut wire: Vec<(u64, u64, Vec<u8>)> = Vec::new();
            let (mut now, mut offered, mut taken) = (Nanos::ZERO, 0_u8, Vec::new());
            for _ in 0..20_000 {
                now += Nanos::from_millis(100);
                if offered < 100 && random.below(10) == 0 {
                    offered += 1;
                    outbox.offer(vec![offered]);
                }
                for (number, interval) in outbox.due(now) {
                    for _ in 0..random.below(3) {
                        wire.push((number, outbox.first(), interval.clone()));
                    }
                }
                if !wire.is_empty() {
                    let (number, first, interval) =
                        wire.swap_remove(random.below(wire.len() as u64) as usize);
                    if inbox.take(number, first) {
                        taken.extend(interval);
                    }
                }
                if random.below(10) == 0 {
                    outbox.note_arrived(inbox.seen(), now);
                }
            }
            assert_eq!(taken, (1..=100).collect::<Vec<u8>>(), "seed {seed}");
            assert_eq!((inbox.missing(), outbox.last()), (0, 100));
        }
    }

    #[test]
    fn a_coordinator_that_was_long_away_gets_the_rest() {
        let (mut outbox, mut inbox) = (IntervalOutbox::default(), IntervalInbox::default());
        (0..MOST + 5).for_each(|_| outbox.offer(Vec::new()));
        let due = outbox.due(Nanos::ZERO);
        assert_eq!((due.len(), due[0].0, outbox.first()), (BURST, 6, 6));
        assert!(inbox.take(6, outbox.first()) && !inbox.take(6, outbox.first()));
        assert_eq!((inbox.seen(), inbox.missing()), (6, 5));
        // A confirmation beyond the last interval confirms all.
        outbox.note_arrived(u64::MAX, Nanos::ZERO);
        assert_eq!(outbox.last(), MOST as u64 + 5);
        assert!(outbox.due(Nanos::ZERO).is_empty());
    }
}
