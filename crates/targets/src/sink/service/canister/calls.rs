//! The calls that were made, and their outcomes.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use plimsoll_ic::RequestId;
use plimsoll_ic::witness::Outcome;

/// Parts with a lock each, so that threads seldom wait for each other.
const SHARDS: usize = 16;

/// Outcomes of calls, by their ids. Beyond a limit the oldest are forgotten.
#[derive(Debug)]
pub(crate) struct Calls {
    shards: [Mutex<Shard>; SHARDS],
    most: usize,
}

#[derive(Debug, Default)]
struct Shard {
    kept: HashMap<RequestId, Kept>,
    /// From the oldest to the newest.
    order: VecDeque<RequestId>,
}

#[derive(Debug)]
struct Kept {
    outcome: Outcome,
    /// Until then it is being carried out, as far as clients know; in nanoseconds since 1970.
    ready_ns: u64,
}

impl Calls {
    pub(crate) fn new(most: u64) -> Self {
        let each = most.div_ceil(SHARDS as u64).max(1);
        Self { shards: Default::default(), most: usize::try_from(each).unwrap_or(usize::MAX) }
    }

    fn with<T>(&self, id: &RequestId, act: impl FnOnce(&mut Shard) -> T) -> T {
        // Ids are hashes: any of their bits are even.
        let shard = &self.shards[usize::from(id.0[0]) % SHARDS];
        act(&mut shard.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Carries the call with this id out, unless that was done before. Returns its outcome.
    pub(crate) fn once(&self, id: RequestId, ready_ns: u64, carry_out: impl FnOnce() -> Outcome) -> Outcome {
        self.with(&id, |shard| {
            if let Some(kept) = shard.kept.get(&id) {
                return kept.outcome.clone();
            }
            let outcome = carry_out();
            if shard.order.len() >= self.most
                && let Some(oldest) = shard.order.pop_front()
            {
                shard.kept.remove(&oldest);
            }
            shard.order.push_back(id);
            shard.kept.insert(id, Kept { outcome: outcome.clone(), ready_ns });
            outcome
        })
    }

    /// Returns the outcome of a call as it is known at `now_ns`.
    pub(crate) fn status(&self, id: &RequestId, now_ns: u64) -> Outcome {
        self.with(id, |shard| match shard.kept.get(id) {
            Some(kept) if kept.ready_ns <= now_ns => kept.outcome.clone(),
            Some(_) => Outcome::Processing,
            None => Outcome::Unknown,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u8) -> RequestId {
        // All in one shard.
        let mut id = [0; 32];
        id[1] = number;
        RequestId(id)
    }

    #[test]
    fn a_call_is_carried_out_once_and_known_when_it_is_ready() {
        let calls = Calls::new(1000);
        let outcome = Outcome::Replied(vec![1]);
        assert_eq!(calls.status(&id(1), 100), Outcome::Unknown);
        assert_eq!(calls.once(id(1), 100, || outcome.clone()), outcome);
        assert_eq!(calls.once(id(1), 0, || panic!("it was carried out before")), outcome);
        assert_eq!(calls.status(&id(1), 99), Outcome::Processing);
        assert_eq!(calls.status(&id(1), 100), outcome);
    }

    #[test]
    fn the_oldest_calls_are_forgotten() {
        let calls = Calls::new(3 * SHARDS as u64);
        for number in 0..5 {
            calls.once(id(number), 0, || Outcome::Replied(vec![number]));
        }
        for number in 0..5 {
            let known = calls.status(&id(number), 0) != Outcome::Unknown;
            assert_eq!(known, number >= 2, "{number}");
        }
        let first = calls.shards[0].lock().unwrap();
        assert_eq!((first.kept.len(), first.order.len()), (3, 3));
    }
}
