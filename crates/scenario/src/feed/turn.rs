//! Which row is next, where their number is known.

use plimsoll_core::{Random, Shard};

use super::permutation::Permutation;
use super::{AtEnd, Order, Share};

/// The rows of one worker, as positions among all of them.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    /// The worker's rows are `first + n * step`, for `n` below `own`: positions in the source or, shuffled,
    /// in the permutation.
    first: u64,
    step: u64,
    own: u64,
    /// Number of rows given out since the last turn of [`AtEnd::Wrap`].
    taken: u64,
    order: Way,
}

#[derive(Clone, Debug)]
enum Way {
    Sequential,
    Random,
    Shuffled(Permutation),
    /// Number of parts, and of rows.
    Slices(u64, u64),
}

impl Turn {
    /// Through `count` rows. `shuffle` chooses the permutation and has to be the same for all workers.
    pub(super) fn new(count: u64, order: Order, share: Share, worker: Shard, shuffle: &mut Random) -> Self {
        let (first, step, own) = match share {
            Share::Whole => (0, 1, count),
            Share::Split => (u64::from(worker.index), u64::from(worker.of), worker.share_of(count)),
        };
        let order = match order {
            Order::Sequential => Way::Sequential,
            Order::Random => Way::Random,
            Order::Shuffled => Way::Shuffled(Permutation::new(count, shuffle)),
            Order::Slices(parts) => Way::Slices(u64::from(parts.max(1)), count),
        };
        Self { first, step, own, taken: 0, order }
    }

    /// Rows of this worker.
    pub(super) fn own(&self) -> u64 {
        self.own
    }

    /// The position of the next row in the source; `None` when there is none left. Drawn at random, with
    /// replacement, there always is one unless the worker has no rows.
    pub(super) fn next(&mut self, at_end: AtEnd, random: &mut Random) -> Option<u64> {
        if self.own == 0 {
            return None;
        }
        if let Way::Random = self.order {
            return Some(self.first + self.step * random.below(self.own));
        }
        if self.taken == self.own {
            if at_end != AtEnd::Wrap {
                return None;
            }
            self.taken = 0;
        }
        let position = self.first + self.step * self.taken;
        self.taken += 1;
        Some(match &self.order {
            Way::Shuffled(permutation) => permutation.at(position),
            Way::Slices(parts, count) => in_slices(position, *parts, *count),
            Way::Sequential | Way::Random => position,
        })
    }
}

/// The row at a position where this many parts of `count` rows take turns.
const fn in_slices(position: u64, parts: u64, count: u64) -> u64 {
    let (part, number) = (position % parts, position / parts);
    let (length, longer) = (count / parts, count % parts);
    part * length + if part < longer { part } else { longer } + number
}

#[cfg(test)]
mod tests {
    use super::in_slices;

    #[test]
    fn parts_take_sequence_and_every_row_comes_once() {
        let rows = |parts, count| (0..count).map(|at| in_slices(at, parts, count)).collect::<Vec<_>>();
        assert_eq!(rows(2, 6), [0, 3, 1, 4, 2, 5]);
        assert_eq!(rows(3, 8), [0, 3, 6, 1, 4, 7, 2, 5]);
        assert_eq!((rows(1, 3), rows(5, 3)), (vec![0, 1, 2], vec![0, 1, 2]));
        for (parts, count) in [(2, 995), (7, 50), (10, 9), (4, 4)] {
            let mut all = rows(parts, count);
            all.sort_unstable();
            assert_eq!(all, (0..count).collect::<Vec<_>>(), "{parts} of {count}");
        }
    }
}
