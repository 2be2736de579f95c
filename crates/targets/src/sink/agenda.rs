//! Requests that are being served: when each is due and what happens then.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use plimsoll_core::Nanos;
use plimsoll_driver::ConnId;

use super::connection::State;
use super::law::{Intent, Law};
use super::options::SinkOptions;
use super::queue::{SingleServer, TokenServer};
use super::reply::Persistence;

/// A request that was read and has no number yet.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) conn: ConnId,
    /// When its last byte came.
    pub(crate) at: Nanos,
    /// Its header `x-plimsoll-id`, if there is a log.
    pub(crate) id: Option<Box<[u8]>>,
    pub(crate) head_only: bool,
    pub(crate) persistence: Persistence,
}

/// A request that is being served.
#[derive(Debug)]
pub(crate) struct Due {
    pub(crate) at: Nanos,
    /// Order among those due at the same time: that of admission.
    sequence: u64,
    pub(crate) number: u64,
    pub(crate) intent: Intent,
    pub(crate) arrival: Arrival,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Due {}
impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

/// Who serves the requests.
#[derive(Debug)]
enum Line {
    /// As many servers as requests.
    SideBySide,
    Single(SingleServer),
    Tokens(TokenServer),
    PerConnection,
}

/// The requests of one thread that are being served, by due time.
#[derive(Debug)]
pub(crate) struct Agenda {
    law: Law,
    line: Line,
    heap: BinaryHeap<Reverse<Due>>,
    sequence: u64,
}

impl Agenda {
    pub(crate) fn new(options: &SinkOptions) -> Self {
        let line = match options.capacity {
            Some(rate) => Line::Tokens(TokenServer::new(rate)),
            None if options.queue => Line::Single(SingleServer::default()),
            None if options.per_connection_serial => Line::PerConnection,
            None => Line::SideBySide,
        };
        Self { law: Law::new(options), line, heap: BinaryHeap::new(), sequence: 0 }
    }

    /// Whether the order of admission matters across connections.
    pub(crate) const fn is_one_queue(&self) -> bool {
        matches!(self.line, Line::Single(_) | Line::Tokens(_))
    }

    /// Takes in request `number`. `state` is that of its connection, if that is still there.
    pub(crate) fn admit(&mut self, arrival: Arrival, number: u64, state: Option<&mut State>) {
        let fate = self.law.fate(number);
        let mut at = match &mut self.line {
            Line::SideBySide => arrival.at + fate.service,
            Line::Single(server) => server.admit(arrival.at, fate.service),
            Line::Tokens(server) => server.admit(arrival.at) + fate.service,
            Line::PerConnection => Nanos::ZERO,
        };
        if let Some(state) = state {
            if matches!(self.line, Line::PerConnection) {
                at = state.serial.admit(arrival.at, fate.service);
            }
            // Replies leave in the order of their requests, so a quick one waits for a slow one before it.
            state.last_due = state.last_due.max(at);
            at = state.last_due;
        }
        self.sequence += 1;
        self.heap.push(Reverse(Due { at, sequence: self.sequence, number, intent: fate.intent, arrival }));
    }

    /// When the next request is due; never if there is none.
    pub(crate) fn next(&self) -> Nanos {
        self.heap.peek().map_or(Nanos::MAX, |next| next.0.at)
    }

    /// The next request that is due by `now`.
    pub(crate) fn pop(&mut self, now: Nanos) -> Option<Due> {
        if self.next() > now {
            return None;
        }
        self.heap.pop().map(|next| next.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::options::Delay;
    use plimsoll_core::Rate;
    use plimsoll_driver::Endpoint;

    fn agenda(change: impl FnOnce(&mut SinkOptions)) -> Agenda {
        let mut options = SinkOptions::new(Endpoint::Tcp(([127, 0, 0, 1], 0).into()));
        change(&mut options);
        Agenda::new(&options)
    }

    fn arrival(slot: u32, at: u64) -> Arrival {
        Arrival {
            conn: ConnId::new(slot, 1),
            at: Nanos(at),
            id: None,
            head_only: false,
            persistence: Persistence::Keep,
        }
    }

    fn drain(agenda: &mut Agenda) -> Vec<(u64, u64)> {
        std::iter::from_fn(|| agenda.pop(Nanos::MAX)).map(|due| (due.number, due.at.0)).collect()
    }

    #[test]
    fn side_by_side_requests_do_not_wait_for_each_other() {
        let mut agenda = agenda(|o| o.delay = Delay::Constant(Nanos(10)));
        agenda.admit(arrival(0, 5), 0, Some(&mut State::default()));
        agenda.admit(arrival(1, 3), 1, Some(&mut State::default()));
        assert_eq!(agenda.next(), Nanos(13));
        assert!(agenda.pop(Nanos(12)).is_none());
        assert_eq!(drain(&mut agenda), [(1, 13), (0, 15)]);
        assert_eq!(agenda.next(), Nanos::MAX);
    }

    #[test]
    fn replies_of_one_connection_keep_their_order() {
        let law = Delay::Exponential { mean: Nanos(1000) };
        let mut agenda = agenda(|o| o.delay = law);
        let mut state = State::default();
        for number in 0..100 {
            agenda.admit(arrival(0, number), number, Some(&mut state));
        }
        let order: Vec<_> = drain(&mut agenda).into_iter().map(|due| due.0).collect();
        assert_eq!(order, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn one_queue_serves_all_connections_and_serial_ones_each_their_own() {
        let constant = Delay::Constant(Nanos(10));
        for (serial, expected) in [(false, [(0, 10), (1, 20), (2, 30)]), (true, [(0, 10), (1, 10), (2, 20)])]
        {
            let mut agenda = agenda(|o| {
                o.delay = constant;
                o.queue = !serial;
                o.per_connection_serial = serial;
            });
            assert_eq!(agenda.is_one_queue(), !serial);
            let mut states = [State::default(), State::default()];
            for (number, slot) in [0_usize, 1, 0].into_iter().enumerate() {
                agenda.admit(arrival(slot as u32, 0), number as u64, Some(&mut states[slot]));
            }
            assert_eq!(drain(&mut agenda), expected);
        }
    }

    #[test]
    fn a_capacity_serves_in_turn_and_the_delay_comes_on_top() {
        let mut agenda = agenda(|o| {
            o.capacity = Some(Rate::per_second(1_000_000));
            o.delay = Delay::Constant(Nanos(5));
        });
        for number in 0..3 {
            agenda.admit(arrival(number as u32, 0), number, None);
        }
        assert_eq!(drain(&mut agenda), [(0, 1005), (1, 2005), (2, 3005)]);
    }
}
