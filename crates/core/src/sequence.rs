//! Numbers and times of the bodies that workers make and send, so that no two of a run have any in common.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::arrival::Shard;

/// Allocates numbers and times for the bodies that one worker makes, on whichever thread.
///
/// Time since 1970 is divided into spans. Each span is as long as the times in one body. Worker number `w` of
/// `n` owns every `n`-th span, so that the times of two bodies of a run never overlap. A body gets the first
/// span of its worker that has no earlier body and is not over. So times follow the clock if bodies are made
/// at the pace of their spans or slower, and run ahead of it otherwise.
#[derive(Debug)]
pub struct SequenceAllocator {
    share: Shard,
    span_ns: u64,
    /// Start of the times of a run, used in place of the clock.
    start_ns: Option<u64>,
    /// Bodies so far.
    count: AtomicU64,
    /// The last span that has a body.
    span: AtomicU64,
}

impl SequenceAllocator {
    /// Creates an allocator for a worker's share of the spans. The times in a body extend over `span_ns`, in
    /// nanoseconds.
    pub fn new(span_ns: u64, share: Shard) -> Self {
        let (count, span) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { share, span_ns: span_ns.max(1), start_ns: None, count, span }
    }

    /// Sets the time at which the times begin, in nanoseconds since 1970. They then follow each other without
    /// a break, regardless of the clock.
    #[must_use]
    pub fn starting_at(self, start_ns: Option<u64>) -> Self {
        Self { start_ns, ..self }
    }

    /// Returns the number of the next body and the start of its times, in nanoseconds since 1970; `unix_ns`
    /// is now. Later numbers have later times, unless two threads call this at the same moment.
    pub fn take(&self, unix_ns: u64) -> (u64, u64) {
        let (index, of) = (u64::from(self.share.index), u64::from(self.share.of.max(1)));
        let number = index + of * self.count.fetch_add(1, Ordering::Relaxed);
        let now = match self.start_ns {
            Some(start) => start.div_ceil(self.span_ns),
            None => unix_ns / self.span_ns,
        };
        let first = now + (of + index - now % of) % of;
        let next = |last: u64| first.max(last + of);
        let last = self.span.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
        let (Ok(last) | Err(last)) = last;
        (number, next(last) * self.span_ns)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const SPAN: u64 = 1_000;
    const NOW: u64 = 1_790_000_000_000_000_300;

    #[test]
    fn no_two_bodies_have_a_number_or_a_span_in_common() {
        let workers = [0, 1, 2].map(|index| SequenceAllocator::new(SPAN, Shard { index, of: 3 }));
        let (mut numbers, mut times) = (BTreeSet::new(), BTreeSet::new());
        // One worker makes many ahead, one is late, one makes as many as it should.
        for (worker, bodies, pace) in
            [(&workers[0], 500, 10), (&workers[1], 300, 7_000), (&workers[2], 400, 3_000)]
        {
            let mut before = 0;
            for body in 0..bodies {
                let now = NOW + body * pace;
                let (number, begin) = worker.take(now);
                assert!(numbers.insert(number) && times.insert(begin));
                assert!(begin.is_multiple_of(SPAN) && begin > before && begin + SPAN > now);
                assert!(pace < 3 * SPAN || begin < now + 3 * SPAN, "{begin} is ahead of {now}");
                before = begin;
            }
        }
        assert_eq!((numbers.len(), times.len()), (1_200, 1_200));
    }

    #[test]
    fn times_that_begin_elsewhere_do_not_heed_the_clock() {
        let start = 5 * SPAN - 1;
        let of_worker = |index| {
            let turns = SequenceAllocator::new(SPAN, Shard { index, of: 2 }).starting_at(Some(start));
            [NOW, 0, NOW + 7].map(|now| turns.take(now).1 / SPAN)
        };
        assert_eq!((of_worker(0), of_worker(1)), ([6, 8, 10], [5, 7, 9]));
    }

    #[test]
    fn a_clock_that_goes_back_does_not_bring_a_time_again() {
        let turns = SequenceAllocator::new(SPAN, Shard { index: 0, of: 1 });
        let begins = [5, 4, 0, 4, 20].map(|step| turns.take(NOW + step * SPAN).1 - NOW / SPAN * SPAN);
        assert_eq!(begins, [5_000, 6_000, 7_000, 8_000, 20_000]);
    }
}
