//! The slowest requests of a step, each with what finds it in the logs and traces of its server.

use std::cmp::Reverse;

use plimsoll_core::Nanos;

use super::ServerTiming;
use serde::{Deserialize, Serialize};

/// Slowest requests that are kept of each step.
const KEPT: usize = 5;

/// One of the slowest requests of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowRequest {
    /// When it should have started, since the start of the run.
    pub at: Nanos,
    /// done − intended. Of one without an answer in time, the time until it was given up.
    pub response_time: Nanos,
    /// done − sent; `None` if it was never sent.
    pub service_time: Option<Nanos>,
    /// first byte − sent; `None` if its response came in one piece, or not at all.
    pub first_byte_time: Option<Nanos>,
    /// The status of its response; 0 if none came whole.
    pub status: u16,
    /// The class of its failure, or [`TIMED_OUT`](super::TIMED_OUT); empty if it ended well.
    pub failure: String,
    /// The worker that sent it.
    pub worker: u32,
    /// The id of its trace, 32 hexadecimal digits; `None` if it named none to its server.
    pub trace_id: Option<String>,
    /// The parts of its time by the server's own word.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_timing: Vec<ServerTiming>,
}

impl SlowRequest {
    /// The place among others: the longest one first.
    fn place(&self) -> impl Ord + use<> {
        let Self { at, response_time, service_time, status, worker, .. } = *self;
        (Reverse(response_time), at, worker, service_time, status)
    }
}

/// The slowest requests, the slowest one first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Slowest(Vec<SlowRequest>);

impl Slowest {
    /// The slowest requests, the slowest one first.
    pub fn all(&self) -> &[SlowRequest] {
        &self.0
    }

    /// Returns `true` if there are none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The response time above which a request is one of the slowest; `None` while any is.
    pub fn floor(&self) -> Option<Nanos> {
        self.0.get(KEPT - 1).map(|last| last.response_time)
    }

    /// Takes a request in, if it is one of the slowest. Of requests that took as long the earlier ones stay,
    /// in whatever order the lists of workers are merged.
    pub fn note(&mut self, request: SlowRequest) {
        let place = self.0.partition_point(|known| known.place() <= request.place());
        if place < KEPT {
            self.0.truncate(KEPT - 1);
            self.0.insert(place, request);
        }
    }

    /// Adds those of another worker, or another step.
    pub fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|request| self.note(request.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn took(time: u64, worker: u32) -> SlowRequest {
        SlowRequest { response_time: Nanos(time), worker, ..SlowRequest::default() }
    }

    #[test]
    fn the_slowest_are_kept_in_order() {
        let mut slowest = Slowest::default();
        for time in [3, 9, 1, 9, 4] {
            assert_eq!(slowest.floor(), None);
            slowest.note(took(time, 0));
        }
        assert_eq!(slowest.floor(), Some(Nanos(1)));
        slowest.note(took(1, 1));
        slowest.note(took(5, 1));
        let times =
            |slowest: &Slowest| slowest.all().iter().map(|one| one.response_time.0).collect::<Vec<_>>();
        assert_eq!((times(&slowest), slowest.floor()), (vec![9, 9, 5, 4, 3], Some(Nanos(3))));
        let mut other = Slowest::default();
        [7, 2].into_iter().for_each(|time| other.note(took(time, 2)));
        other.merge(&slowest);
        assert_eq!(times(&other), [9, 9, 7, 5, 4]);
        // Of requests that took as long the same ones are kept in any order.
        let list = |requests: &[(u64, u64, u32)]| {
            let mut list = Slowest::default();
            requests.iter().for_each(|(time, at, worker)| {
                list.note(SlowRequest { at: Nanos(*at), ..took(*time, *worker) });
            });
            list
        };
        let (one, two) = (list(&[(5, 3, 0), (5, 9, 0), (7, 4, 0)]), list(&[(5, 2, 1), (5, 3, 1), (5, 8, 1)]));
        let [mut forth, mut back] = [one.clone(), two.clone()];
        forth.merge(&two);
        back.merge(&one);
        assert_eq!(forth, back);
        assert_eq!(forth.all().iter().map(|one| one.at.0).collect::<Vec<_>>(), [4, 2, 3, 3, 8]);
        assert_eq!(other.all().iter().map(|one| one.worker).collect::<Vec<_>>(), [0, 0, 2, 1, 0]);
    }
}
