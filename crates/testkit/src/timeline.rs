//! The queue of future events, in order of time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use plimsoll_core::Nanos;

/// A queue of happenings by time; those of the same instant come out in the order in which they were put in.
#[derive(Debug)]
pub(crate) struct Timeline<T> {
    heap: BinaryHeap<Entry<T>>,
    sequence: u64,
}

#[derive(Debug)]
struct Entry<T> {
    at: Nanos,
    sequence: u64,
    what: T,
}

impl<T> Entry<T> {
    fn key(&self) -> (Nanos, u64) {
        (self.at, self.sequence)
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    /// Reversed: the heap gives its greatest, which has to be the earliest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl<T> Timeline<T> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), sequence: 0 }
    }

    pub(crate) fn push(&mut self, at: Nanos, what: T) {
        self.sequence += 1;
        self.heap.push(Entry { at, sequence: self.sequence, what });
    }

    /// When the next thing happens; never, if there is none.
    pub(crate) fn next_at(&self) -> Nanos {
        self.heap.peek().map_or(Nanos::MAX, |entry| entry.at)
    }

    /// The earliest thing that happened until `now`, with its time.
    pub(crate) fn pop_due(&mut self, now: Nanos) -> Option<(Nanos, T)> {
        if self.next_at() > now {
            return None;
        }
        self.heap.pop().map(|entry| (entry.at, entry.what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_comes_first_and_equal_times_keep_their_order() {
        let mut timeline = Timeline::new();
        for (at, what) in [(5, 'd'), (3, 'a'), (3, 'b'), (4, 'c'), (9, 'e')] {
            timeline.push(Nanos(at), what);
        }
        let mut seen = String::new();
        while let Some((_, what)) = timeline.pop_due(Nanos(8)) {
            seen.push(what);
        }
        assert_eq!(seen, "abcd");
        assert_eq!(timeline.next_at(), Nanos(9));
    }
}
