//! Exemplars: requests that stand for others in the histograms of monitoring systems, by the ids of their
//! traces.

use plimsoll_core::Nanos;

/// Upper limits of the buckets in nanoseconds: 1, 2.5 and 5 of every power of ten from 10 µs to 10 s. A last
/// bucket has what exceeds them all.
pub const BOUNDS: [u64; 19] = [
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
];

/// The number of buckets.
const BUCKETS: usize = BOUNDS.len() + 1;

/// A request whose trace is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exemplar {
    /// The id of its trace.
    pub trace_id: u128,
    /// done − intended. Of one without an answer in time, the time until it was given up.
    pub response_time: Nanos,
    /// When it ended, since the start of the run.
    pub done: Nanos,
}

/// At most one request for each bucket of response times: the slowest one of an interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exemplars([Option<Exemplar>; BUCKETS]);

impl Exemplars {
    /// Returns `true` if no request of this response time, or a longer one of its bucket, is there yet.
    pub fn has_room(&self, response_time: Nanos) -> bool {
        self.0[bucket_of(response_time)].is_none_or(|known| known.response_time < response_time)
    }

    /// Takes a request in, if there is [room](Self::has_room) for it.
    pub fn note(&mut self, exemplar: Exemplar) {
        if self.has_room(exemplar.response_time) {
            self.0[bucket_of(exemplar.response_time)] = Some(exemplar);
        }
    }

    /// Adds those of another worker in the same interval.
    pub fn merge(&mut self, other: &Self) {
        other.0.iter().flatten().for_each(|exemplar| self.note(*exemplar));
    }

    /// Replaces requests by those of a later interval, bucket by bucket.
    pub fn renew(&mut self, later: &Self) {
        let new = self.0.iter_mut().zip(&later.0).filter(|(_, new)| new.is_some());
        new.for_each(|(mine, new)| *mine = *new);
    }

    /// Exemplars with times of a clock that shows `start` when the run starts.
    #[must_use]
    pub fn shifted(&self, start: Nanos) -> Self {
        Self(self.0.map(|one| one.map(|one| Exemplar { done: start + one.done, ..one })))
    }

    /// The request of a bucket, by its number.
    pub fn get(&self, bucket: usize) -> Option<&Exemplar> {
        self.0.get(bucket)?.as_ref()
    }
}

/// The number of the bucket of a time: that of the first limit which it does not exceed.
fn bucket_of(time: Nanos) -> usize {
    BOUNDS.partition_point(|bound| *bound < time.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn took(response_time: u64, trace_id: u128) -> Exemplar {
        Exemplar { trace_id, response_time: Nanos(response_time), done: Nanos(trace_id as u64) }
    }

    fn ids(exemplars: &Exemplars) -> Vec<(usize, u128)> {
        let all = (0..=BUCKETS).filter_map(|bucket| Some((bucket, exemplars.get(bucket)?.trace_id)));
        all.collect()
    }

    #[test]
    fn the_slowest_of_each_bucket_stands_for_it_and_later_ones_replace_it() {
        let mut first = Exemplars::default();
        let times = [0, 10_000, 10_001, 25_000, 24_000, 10_000_000_000, 10_000_000_001, u64::MAX];
        (1..).zip(times).for_each(|(id, time)| first.note(took(time, id)));
        assert_eq!(ids(&first), [(0, 2), (1, 4), (18, 6), (19, 8)]);
        let mut second = Exemplars::default();
        [took(9_000, 20), took(24_500, 21), took(30_000, 22)].into_iter().for_each(|one| second.note(one));
        let mut merged = first.clone();
        merged.merge(&second);
        assert_eq!(ids(&merged), [(0, 2), (1, 4), (2, 22), (18, 6), (19, 8)]);
        first.renew(&second);
        assert_eq!(ids(&first), [(0, 20), (1, 21), (2, 22), (18, 6), (19, 8)]);
    }
}
