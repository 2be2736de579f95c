//! One simulated server: its queue, and its side of every connection.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use plimsoll_core::{Nanos, Random};
use plimsoll_driver::ConnId;

use crate::behaviour::{Behaviour, Concurrency, Pause};
use crate::http2::Http2;
use crate::protocol::SimProtocol;
use crate::truth::Action;

/// A server. Service is first come, first served and never interrupted but by pauses, so the end of the work
/// on a request is known when it comes.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) behaviour: Behaviour,
    random: Random,
    /// When each busy place becomes free; never more entries than places.
    busy_until: BinaryHeap<Reverse<Nanos>>,
    first_received: Option<Nanos>,
}

/// The state of a connection on the server's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkState {
    /// Takes and answers requests.
    Open,
    /// Takes requests and ignores them: a reply was dropped (HTTP/1.1), or the last reply is decided.
    Silent,
    /// Closed by the server: further bytes are answered with a reset.
    Closed,
    /// Closed by the client.
    Gone,
}

/// A server's side of one connection.
#[derive(Debug)]
pub(crate) struct Link {
    /// Which server.
    pub(crate) server: usize,
    /// The other end.
    pub(crate) client: ConnId,
    /// Number of the connection in its world.
    pub(crate) serial: u64,
    pub(crate) state: LinkState,
    /// Bytes received and not recognised yet.
    pub(crate) inbox: Vec<u8>,
    /// The server does not read before.
    pub(crate) reads_from: Nanos,
    /// Requests received.
    pub(crate) received: u64,
    /// The server's half of a protocol other than HTTP.
    pub(crate) protocol: Option<Box<dyn SimProtocol>>,
    /// The connection's HTTP/2, once its preface has come.
    pub(crate) http2: Option<Box<Http2>>,
    /// When the server closes an HTTP/2 connection.
    pub(crate) farewell: Option<Farewell>,
    /// When the last decided action is carried out; later requests come after it (HTTP/1.1).
    last_action: Nanos,
    /// When the last request that is worked on is done ([`Concurrency::PerConnection`]).
    busy_until: Nanos,
}

/// An HTTP/2 connection is closed when these streams have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Farewell {
    /// This one.
    After(u32),
    /// All up to this one.
    AfterAllUntil(u32),
}

/// A server's decision on a request, with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) action: Action,
    pub(crate) at: Nanos,
    /// Set to close the connection after a reply; `announce` says whether the reply announces it.
    pub(crate) close: bool,
    pub(crate) announce: bool,
}

impl Link {
    pub(crate) fn new(server: usize, client: ConnId, serial: u64, reads_from: Nanos) -> Self {
        Self {
            server,
            client,
            serial,
            state: LinkState::Open,
            inbox: Vec::new(),
            reads_from,
            received: 0,
            protocol: None,
            http2: None,
            farewell: None,
            last_action: Nanos::ZERO,
            busy_until: Nanos::ZERO,
        }
    }
}

impl Server {
    pub(crate) fn new(mut behaviour: Behaviour, random: Random) -> Self {
        behaviour.pauses.sort_unstable_by_key(|pause| pause.at);
        Self { behaviour, random, busy_until: BinaryHeap::new(), first_received: None }
    }

    /// One seeded yes or no. Draws only for probabilities above zero, so that a fault that is switched off
    /// does not shift the random numbers of the others.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.random.unit() < probability
    }

    /// Decides on a request that was received whole at `received`.
    pub(crate) fn decide(&mut self, link: &mut Link, received: Nanos, client_closes: bool) -> Decision {
        let served = link.received;
        link.received += 1;
        if link.state != LinkState::Open {
            return Decision { action: Action::Ignore, at: received, close: false, announce: false };
        }
        let at = self.finish(link, received).max(link.last_action);
        link.last_action = at;
        let action = self.draw_action();
        let last = self.behaviour.faults.close_after.is_some_and(|limit| served + 1 >= limit);
        let until_close = self.behaviour.answer.framing == crate::answer::Framing::UntilClose;
        let close = client_closes || last || until_close;
        let announce = client_closes || (last && self.behaviour.faults.announce_close);
        let goes_on = matches!(action, Action::Reply(_) | Action::Excess | Action::Garbage);
        if !goes_on || close {
            link.state = LinkState::Silent;
        }
        Decision { action, at, close, announce }
    }

    /// Decides on the request of an HTTP/2 stream that was received whole at `received`. Streams do not wait
    /// for each other.
    pub(crate) fn decide_stream(&mut self, link: &mut Link, received: Nanos) -> Decision {
        let served = link.received;
        link.received += 1;
        if link.state != LinkState::Open {
            return Decision { action: Action::Ignore, at: received, close: false, announce: false };
        }
        let at = self.finish(link, received);
        let action = self.draw_action();
        let close = self.behaviour.faults.close_after.is_some_and(|limit| served + 1 >= limit);
        if close || matches!(action, Action::Close | Action::Garbage | Action::EndlessHead) {
            link.state = LinkState::Silent;
        }
        Decision { action, at, close, announce: close && self.behaviour.faults.announce_close }
    }

    /// When the work on a request is done.
    fn finish(&mut self, link: &mut Link, received: Nanos) -> Nanos {
        let since = received.since(*self.first_received.get_or_insert(received));
        let slower = Nanos((self.behaviour.slowing.0 as f64 * since.as_secs_f64()) as u64);
        let work = self.behaviour.service.draw(&mut self.random) + slower;
        let places = match self.behaviour.concurrency {
            Concurrency::Infinite => return advance(&self.behaviour.pauses, received, work),
            Concurrency::PerConnection => {
                let begin = received.max(link.busy_until);
                link.busy_until = advance(&self.behaviour.pauses, begin, work);
                return link.busy_until;
            }
            Concurrency::SingleQueue => 1,
            Concurrency::Capacity(places) => places.max(1),
        };
        let mut begin = received;
        if self.busy_until.len() >= places
            && let Some(Reverse(free)) = self.busy_until.pop()
        {
            begin = begin.max(free);
        }
        let done = advance(&self.behaviour.pauses, begin, work);
        self.busy_until.push(Reverse(done));
        done
    }

    /// One draw decides between all actions.
    fn draw_action(&mut self) -> Action {
        let faults = &self.behaviour.faults;
        let fixed = [
            (Action::Drop, faults.drop_reply),
            (Action::Reset, faults.reset),
            (Action::Close, faults.close_before_reply),
            (Action::Truncate, faults.truncated_body),
            (Action::Excess, faults.excess_body),
            (Action::Garbage, faults.garbage),
            (Action::EndlessHead, faults.endless_head),
            (Action::Refuse, faults.refuse_stream),
        ];
        let statuses = faults.statuses.iter().map(|&(status, share)| (Action::Reply(status), share));
        let mut left = self.random.unit();
        for (action, probability) in fixed.into_iter().chain(statuses) {
            if left < probability {
                return action;
            }
            left -= probability;
        }
        Action::Reply(self.behaviour.answer.status)
    }
}

/// When `work` that begins at `from` is done by a process that stands still during `pauses` (in order).
pub(crate) fn advance(pauses: &[Pause], from: Nanos, work: Nanos) -> Nanos {
    let (mut at, mut left) = (from, work);
    for pause in pauses {
        if pause.end() <= at {
            continue;
        }
        if at + left <= pause.at {
            break;
        }
        left = left - pause.at.since(at);
        at = pause.end();
    }
    at + left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::behaviour::Faults;
    use crate::law::Law;

    fn link() -> Link {
        Link::new(0, ConnId::new(0, 0), 0, Nanos::ZERO)
    }

    fn server(concurrency: Concurrency) -> Server {
        let behaviour = Behaviour { service: Law::Constant(Nanos(10)), concurrency, ..Behaviour::default() };
        Server::new(behaviour, Random::new(1, 0))
    }

    /// When requests at 0, 1, 2 on connection a, then at 3 on connection b are done.
    fn done(concurrency: Concurrency) -> [u64; 4] {
        let mut server = server(concurrency);
        let (mut a, mut b) = (link(), link());
        let mut at_a = |at| server.decide(&mut a, Nanos(at), false).at.0;
        let first = [at_a(0), at_a(1), at_a(2)];
        let last = server.decide(&mut b, Nanos(3), false).at.0;
        [first[0], first[1], first[2], last]
    }

    #[test]
    fn queues_serve_in_the_order_of_arrival() {
        assert_eq!(done(Concurrency::Infinite), [10, 11, 12, 13]);
        assert_eq!(done(Concurrency::SingleQueue), [10, 20, 30, 40]);
        assert_eq!(done(Concurrency::PerConnection), [10, 20, 30, 13]);
        assert_eq!(done(Concurrency::Capacity(2)), [10, 11, 20, 21]);
        assert_eq!(done(Concurrency::Capacity(0)), done(Concurrency::SingleQueue));
    }

    #[test]
    fn work_stands_still_during_pauses() {
        let pauses =
            [Pause { at: Nanos(10), length: Nanos(100) }, Pause { at: Nanos(115), length: Nanos(1) }];
        for (from, work, done) in
            [(0, 10, 10), (0, 11, 111), (10, 5, 115), (50, 5, 115), (50, 6, 117), (116, 5, 121)]
        {
            assert_eq!(advance(&pauses, Nanos(from), Nanos(work)), Nanos(done), "{from} {work}");
        }
    }

    #[test]
    fn replies_on_one_connection_keep_their_order() {
        let mut server = server(Concurrency::Infinite);
        server.behaviour.service = Law::Exponential { mean: Nanos(1_000) };
        let mut link = link();
        let mut last = Nanos::ZERO;
        for at in 0..200 {
            let decision = server.decide(&mut link, Nanos(at), false);
            assert!(decision.at >= last);
            last = decision.at;
        }
    }

    #[test]
    fn faults_come_with_their_probabilities() {
        let faults = Faults {
            statuses: vec![(503, 0.1)],
            drop_reply: 0.1,
            reset: 0.1,
            close_before_reply: 0.1,
            truncated_body: 0.1,
            excess_body: 0.1,
            garbage: 0.1,
            endless_head: 0.1,
            ..Faults::default()
        };
        let mut server = Server::new(Behaviour { faults, ..Behaviour::default() }, Random::new(2, 0));
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..20_000 {
            *counts.entry(server.decide(&mut link(), Nanos(0), false).action).or_insert(0_i32) += 1;
        }
        assert_eq!(counts.len(), 9);
        for (action, count) in counts {
            let expected = if action == Action::Reply(200) { 4_000 } else { 2_000 };
            // Five standard deviations of a binomial count.
            assert!((count - expected).abs() < 290, "{action:?}: {count}");
        }
    }

    #[test]
    fn the_last_reply_of_a_connection_closes_it_and_later_requests_are_ignored() {
        let faults = Faults { close_after: Some(2), announce_close: true, ..Faults::default() };
        let mut server = Server::new(Behaviour { faults, ..Behaviour::default() }, Random::new(2, 0));
        let mut link = link();
        let first = server.decide(&mut link, Nanos(0), false);
        assert!(!first.close && !first.announce);
        let second = server.decide(&mut link, Nanos(1), false);
        assert!(second.close && second.announce && second.action == Action::Reply(200));
        assert_eq!(server.decide(&mut link, Nanos(2), false).action, Action::Ignore);
    }
}
