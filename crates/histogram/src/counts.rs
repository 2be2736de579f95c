//! Counts of the buckets of a histogram.

use std::ops::Range;

use super::BUCKETS;

/// Buckets that are made at once: half of a power of two, in a page of 4 KiB.
const BLOCK: usize = 512;

/// Counts of neighbouring buckets: memory for those around the ones that hold anything. All others are zero.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// The bucket of the first of `counts`.
    first: usize,
    counts: Vec<u64>,
}

impl Counts {
    /// Zeros, which own no memory.
    pub(super) const fn new() -> Self {
        Self { first: 0, counts: Vec::new() }
    }

    /// The count of a bucket, if there is memory for it.
    #[inline]
    pub(super) fn get_mut(&mut self, bucket: usize) -> Option<&mut u64> {
        self.counts.get_mut(bucket.wrapping_sub(self.first))
    }

    /// The count of a bucket, after memory for it was made.
    #[inline]
    pub(super) fn place(&mut self, bucket: usize) -> &mut u64 {
        if self.get_mut(bucket).is_none() {
            self.grow(bucket..bucket + 1);
        }
        &mut self.counts[bucket - self.first]
    }

    /// The counts of some buckets, after memory for them was made.
    pub(super) fn cover(&mut self, buckets: Range<usize>) -> &mut [u64] {
        if buckets.start < self.first || buckets.end > self.end() {
            self.grow(buckets.clone());
        }
        &mut self.counts[buckets.start - self.first..buckets.end - self.first]
    }

    /// The counts of some buckets for which there is memory.
    pub(super) fn slice(&self, buckets: Range<usize>) -> &[u64] {
        match buckets.is_empty() {
            true => &[],
            false => &self.counts[buckets.start - self.first..buckets.end - self.first],
        }
    }

    /// The count of a bucket.
    pub(super) fn at(&self, bucket: usize) -> u64 {
        self.counts.get(bucket.wrapping_sub(self.first)).copied().unwrap_or(0)
    }

    /// The sum of the counts of all higher buckets.
    pub(super) fn above(&self, bucket: usize) -> u64 {
        let from = (bucket + 1).saturating_sub(self.first);
        self.counts.get(from..).map_or(0, |above| above.iter().sum())
    }

    /// The buckets for which there is memory, with their counts.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, u64)> {
        (self.first..).zip(self.counts.iter().copied())
    }

    /// From the first bucket that holds anything to the last; empty if none does.
    pub(super) fn held(&self) -> Range<usize> {
        let first = self.counts.iter().position(|count| *count > 0);
        let last = self.counts.iter().rposition(|count| *count > 0);
        first.zip(last).map_or(0..0, |(first, last)| self.first + first..self.first + last + 1)
    }

    fn end(&self) -> usize {
        self.first + self.counts.len()
    }

    /// Makes memory for more buckets, in blocks, and for half as many again as there were: a value that is
    /// larger than all before will be followed by others.
    #[cold]
    fn grow(&mut self, buckets: Range<usize>) {
        let (mut first, mut end) = (buckets.start, buckets.end);
        if !self.counts.is_empty() {
            let spare = self.counts.len() / 2;
            first = if first < self.first { first.min(self.first.saturating_sub(spare)) } else { self.first };
            end = if end > self.end() { end.max(self.end() + spare) } else { self.end() };
        }
        first -= first % BLOCK;
        end = end.next_multiple_of(BLOCK).min(BUCKETS);
        let mut counts = vec![0; end - first];
        if !self.counts.is_empty() {
            counts[self.first - first..][..self.counts.len()].copy_from_slice(&self.counts);
        }
        *self = Self { first, counts };
    }
}

/// Equal if all buckets are, whatever memory there is.
impl PartialEq for Counts {
    fn eq(&self, other: &Self) -> bool {
        let held = self.held();
        held == other.held() && self.slice(held.clone()) == other.slice(held)
    }
}

impl Eq for Counts {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// An array of all buckets says the same.
        #[test]
        fn they_are_those_of_an_array(buckets in prop::collection::vec((0..BUCKETS, 1..9_u64), 0..30)) {
            let (mut counts, mut array) = (Counts::new(), vec![0; BUCKETS]);
            for &(bucket, count) in &buckets {
                *counts.place(bucket) += count;
                array[bucket] += count;
                prop_assert_eq!(counts.get_mut(bucket).copied(), Some(array[bucket]));
            }
            for &(bucket, _) in &buckets {
                for near in [bucket.saturating_sub(1), bucket, bucket + 1, bucket + BLOCK] {
                    prop_assert_eq!(counts.at(near), array.get(near).copied().unwrap_or(0));
                    prop_assert_eq!(counts.above(near), array.iter().skip(near + 1).sum::<u64>());
                }
            }
            let held = counts.held();
            prop_assert_eq!(counts.slice(held.clone()).iter().sum::<u64>(), array.iter().sum::<u64>());
            prop_assert!(held.is_empty() || array[held.start] > 0 && array[held.end - 1] > 0);
            let mut backwards = Counts::new();
            buckets.iter().rev().for_each(|&(bucket, count)| *backwards.place(bucket) += count);
            prop_assert!(backwards == counts);
            if let Some(&(bucket, _)) = buckets.first() {
                *backwards.place(bucket) += 1;
                prop_assert!(backwards != counts);
            }
        }
    }

    /// A thousand steps of a plan have a thousand of them.
    #[test]
    fn memory_is_for_what_is_near() {
        let mut counts = Counts::new();
        *counts.place(20_000) = 1;
        assert_eq!(counts.counts.len(), BLOCK);
        *counts.place(20_100) = 1;
        assert_eq!(counts.counts.len(), BLOCK);
        *counts.place(BUCKETS - 1) = 1;
        assert!(counts.counts.len() < BUCKETS / 2 + BLOCK);
        *counts.place(0) = 1;
        assert_eq!(counts.counts.len(), BUCKETS);
    }
}
