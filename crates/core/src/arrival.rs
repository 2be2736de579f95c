//! Arrivals and the shards that divide them.

use crate::Nanos;

/// One scheduled start of an iteration.
///
/// The index is global to the run, however many workers or machines share it, so that a request body or a
/// seed that is drawn from it does not depend on how the work was divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Position in the whole run's sequence of arrivals, from 0.
    pub index: u64,
    /// The intended start, since the start of the run.
    pub at: Nanos,
}

/// An exact fraction of the arrivals of a run: those whose index leaves the remainder `index` modulo `of`.
///
/// The union over all `index` in `0..of` is the single-machine schedule, and neighbours in time belong to
/// different shards, so workers interleave instead of firing in step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which of the shards this is, in `0..of`.
    pub index: u32,
    /// Number of shards, at least 1.
    pub of: u32,
}

impl Shard {
    /// The whole of a run.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// Returns the shard of worker `worker` of the `workers` that carry this shard out together.
    ///
    /// The shards of the workers of all shards are those of one machine with as many workers.
    pub const fn of_worker(self, worker: u32, workers: u32) -> Self {
        Self { index: self.index * workers + worker, of: self.of * workers }
    }

    /// Returns the number of arrivals in `0..total` that belong to this shard.
    ///
    /// The shares of all shards sum up to `total`.
    pub const fn share_of(self, total: u64) -> u64 {
        let of = self.of as u64;
        let index = self.index as u64;
        total / of + if total % of > index { 1 } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_sum_up_to_the_total() {
        for of in 1..9_u32 {
            for total in 0..40 {
                let sum: u64 = (0..of).map(|index| Shard { index, of }.share_of(total)).sum();
                assert_eq!(sum, total, "{total} over {of}");
            }
        }
    }

    #[test]
    fn a_share_counts_the_indices_with_its_remainder() {
        let shard = Shard { index: 2, of: 3 };
        let counted = (0..17_u64).filter(|i| i % 3 == 2).count() as u64;
        assert_eq!(shard.share_of(17), counted);
    }

    #[test]
    fn the_workers_of_all_shards_are_those_of_one_machine() {
        for (of, workers) in [(1, 1), (1, 4), (3, 2), (4, 5)] {
            let shards = (0..of).map(|index| Shard { index, of });
            let all: Vec<Shard> = shards
                .flat_map(|shard| (0..workers).map(move |worker| shard.of_worker(worker, workers)))
                .collect();
            let machine: Vec<Shard> =
                (0..of * workers).map(|worker| Shard::WHOLE.of_worker(worker, of * workers)).collect();
            assert_eq!(all, machine);
        }
    }
}
