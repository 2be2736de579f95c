//! Bodies that are made while the run goes on, or were made before it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_core::Shard;

/// Where the bodies of requests with [`Body::Supplied`](crate::Body::Supplied) come from.
#[derive(Clone, Debug)]
pub struct Supply {
    /// Records that each body has, for reports.
    pub records: u32,
    /// The bodies.
    pub bodies: Bodies,
}

/// The bodies of a supply.
#[derive(Clone)]
pub enum Bodies {
    /// Another one for each request.
    Fresh(Arc<dyn BodySource>),
    /// These over and over, in their order. There is at least one.
    Ready(Arc<[Arc<[u8]>]>),
}

/// What can make bodies.
pub trait BodySource: fmt::Debug + Send + Sync {
    /// What makes them, for one thread: with the same seed, the same bodies.
    fn open(&self, seed: u64) -> Box<dyn BodyMaker>;

    /// For how long the times in one body go on, in nanoseconds, at least 1: see [`Turns`].
    fn span_ns(&self) -> u64;
}

/// Makes bodies.
pub trait BodyMaker: Send {
    /// Replaces what `out` has by body `number`, whose times begin at `unix_ns` (nanoseconds since 1970). No
    /// two bodies of one source that are sent have the same number; they are made in any order.
    fn make(&mut self, number: u64, unix_ns: u64, out: &mut Vec<u8>);
}

/// Numbers and times of the bodies that one worker makes, on whichever thread.
///
/// Time since 1970 is cut into spans as long as the times in a body go on, which worker number `w` of `n` has
/// every `n`-th of: what is in two bodies of a run never overlaps in time. A body gets the first span of its
/// worker that neither had a body before nor is over. So times are those of the clock if bodies are made at
/// the pace of their spans or slower, and run ahead of it otherwise.
#[derive(Debug)]
pub struct Turns {
    share: Shard,
    span_ns: u64,
    /// Bodies so far.
    count: AtomicU64,
    /// The last span that has a body.
    span: AtomicU64,
}

impl Turns {
    /// Those of a worker's share of the bodies of a source with this [`BodySource::span_ns`].
    pub fn new(span_ns: u64, share: Shard) -> Self {
        Self { share, span_ns: span_ns.max(1), count: AtomicU64::new(0), span: AtomicU64::new(0) }
    }

    /// The number of the next body, and when its times begin, in nanoseconds since 1970; `unix_ns` is now.
    /// Later numbers have later times, unless two threads ask at the very same moment.
    pub fn take(&self, unix_ns: u64) -> (u64, u64) {
        let (index, of) = (u64::from(self.share.index), u64::from(self.share.of.max(1)));
        let number = index + of * self.count.fetch_add(1, Ordering::Relaxed);
        let now = unix_ns / self.span_ns;
        let first = now + (of + index - now % of) % of;
        let next = |last: u64| first.max(last + of);
        let last = self.span.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
        let (Ok(last) | Err(last)) = last;
        (number, next(last) * self.span_ns)
    }
}

/// Without the bodies.
impl fmt::Debug for Bodies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fresh(source) => f.debug_tuple("Fresh").field(source).finish(),
            Self::Ready(bodies) => f.debug_tuple("Ready").field(&bodies.len()).finish(),
        }
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
        let workers = [0, 1, 2].map(|index| Turns::new(SPAN, Shard { index, of: 3 }));
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
    fn a_clock_that_goes_back_does_not_bring_a_time_again() {
        let turns = Turns::new(SPAN, Shard { index: 0, of: 1 });
        let begins = [5, 4, 0, 4, 20].map(|step| turns.take(NOW + step * SPAN).1 - NOW / SPAN * SPAN);
        assert_eq!(begins, [5_000, 6_000, 7_000, 8_000, 20_000]);
    }
}
