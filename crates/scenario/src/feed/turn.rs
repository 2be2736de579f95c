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
    /// Number of rows given out since the last turn of [`AtEnd::Wrap`]; of slices since the start.
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
            Order::Slices(parts) => Way::Slices(u64::from(parts).min(count).max(1), count),
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
        if self.taken >= self.own && at_end != AtEnd::Wrap {
            return None;
        }
        // Each slice begins again by itself: a longer one later than the others.
        if self.taken == self.own && !matches!(self.order, Way::Slices(..)) {
            self.taken = 0;
        }
        let position = self.first + self.step * self.taken;
        self.taken += 1;
        Some(match &self.order {
            Way::Shuffled(permutation) => permutation.at(position),
            Way::Slices(parts, count) => match at_end {
                AtEnd::Wrap => in_own_slice(position, *parts, *count),
                AtEnd::Stop | AtEnd::Fail => in_slices(position, *parts, *count),
            },
            Way::Sequential | Way::Random => position,
        })
    }
}

/// The row at a position where this many parts of `count` rows take turns.
const fn in_slices(position: u64, parts: u64, count: u64) -> u64 {
    let (first, _) = slice(position % parts, parts, count);
    first + position / parts
}

/// The row at a position where each of this many parts begins again behind its own last row, so that turn `n`
/// is always one of part `n % parts`. There are at least as many rows as parts.
const fn in_own_slice(position: u64, parts: u64, count: u64) -> u64 {
    let (first, length) = slice(position % parts, parts, count);
    first + position / parts % length
}

/// The first row of a part, and the number of its rows.
const fn slice(part: u64, parts: u64, count: u64) -> (u64, u64) {
    let (length, longer) = (count / parts, count % parts);
    if part < longer { (part * (length + 1), length + 1) } else { (part * length + longer, length) }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::{Random, Shard};

    use super::{Turn, in_slices};
    use crate::feed::{AtEnd, Order, Share};

    /// The rows of one worker through `count` rows in slices, as many as are asked for.
    fn taken(count: u64, parts: u32, (share, worker): (Share, Shard), rows: usize) -> Vec<u64> {
        let random = &mut Random::new(1, 1);
        let mut turn = Turn::new(count, Order::Slices(parts), share, worker, random);
        (0..rows).map(|_| turn.next(AtEnd::Wrap, random).expect("it begins again")).collect()
    }

    /// Symptom: behind the last row, the turns of three clients through ten rows went to others' rows. As the
    /// program with such slices sends them, each client has its own part for good.
    #[test]
    fn each_slice_begins_again_behind_its_own_last_row() {
        let whole = (Share::Split, Shard::WHOLE);
        let rows = taken(10, 3, whole, 24);
        let of = |client: usize| rows.iter().copied().skip(client).step_by(3).collect::<Vec<_>>();
        assert_eq!(of(0), [0, 1, 2, 3, 0, 1, 2, 3]);
        assert_eq!(of(1), [4, 5, 6, 4, 5, 6, 4, 5]);
        assert_eq!(of(2), [7, 8, 9, 7, 8, 9, 7, 8]);
        // Of equal slices all begin again together.
        assert_eq!(taken(6, 2, whole, 8), [0, 3, 1, 4, 2, 5, 0, 3]);
        // Two workers have the clients in turn.
        let worker = |index| taken(10, 4, (Share::Split, Shard { index, of: 2 }), 6);
        assert_eq!((worker(0), worker(1)), (vec![0, 6, 1, 7, 2, 6], vec![3, 8, 4, 9, 5, 8]));
        // There are no more slices than rows.
        assert_eq!(taken(3, 5, whole, 7), [0, 1, 2, 0, 1, 2, 0]);
    }

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
