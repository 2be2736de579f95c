//! Requests that are being served: the due time of each, and the action then.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_driver::ConnId;

use super::connection::State;
use super::encoded_reply::Address;
use super::law::{FaultModel, Intent};
use super::queue::{SingleServer, TokenServer};
use super::service::Ask;
use super::setup::Setup;

/// A request that was read and has no number yet.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) conn: ConnId,
    /// When its last byte came.
    pub(crate) at: Nanos,
    /// Time from which the client waits no longer; `Nanos::MAX` if the client has not said.
    pub(crate) deadline: Nanos,
    /// Header `x-plimsoll-id` of the request, if there is a log.
    pub(crate) id: Option<Box<[u8]>>,
    pub(crate) to: Address,
    pub(crate) ask: Ask<'static>,
}

/// A request that is being served.
#[derive(Debug)]
pub(crate) struct PendingReply {
    pub(crate) at: Nanos,
    /// Order among those due at the same time: that of admission.
    sequence: u64,
    pub(crate) number: u64,
    pub(crate) intent: Intent,
    pub(crate) arrival: Arrival,
    /// Bytes of a slow body that are sent.
    pub(crate) sent: usize,
}

impl PartialEq for PendingReply {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for PendingReply {}
impl PartialOrd for PendingReply {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for PendingReply {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

/// The servers of the requests.
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
pub(crate) struct EventQueue {
    setup: Arc<Setup>,
    law: FaultModel,
    line: Line,
    heap: BinaryHeap<Reverse<PendingReply>>,
    sequence: u64,
}

impl EventQueue {
    pub(crate) fn new(setup: Arc<Setup>) -> Self {
        let options = &setup.options;
        let line = match options.capacity {
            Some(rate) => Line::Tokens(TokenServer::new(rate)),
            None if options.queue => Line::Single(SingleServer::default()),
            None if options.per_connection_serial => Line::PerConnection,
            None => Line::SideBySide,
        };
        Self { law: FaultModel::new(options), line, heap: BinaryHeap::new(), sequence: 0, setup }
    }

    /// Returns `true` if the order of admission matters across connections.
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
            if arrival.to.stream == 0 {
                // HTTP/1.1: replies leave in the order of their requests, so a quick one waits for a slow one
                // before it, and for the end of its body.
                at = at.max(state.last_due);
                state.last_due = at + self.setup.forms.span(fate.intent, arrival.to.head_only);
            }
        }
        let mut intent = fate.intent;
        if at > arrival.deadline && intent == Intent::Reply {
            (at, intent) = (arrival.deadline, Intent::Status(self.setup.forms.late_status()));
        }
        self.sequence += 1;
        let sequence = self.sequence;
        self.heap.push(Reverse(PendingReply { at, sequence, number, intent, arrival, sent: 0 }));
    }

    /// Takes back a request whose body goes on at `at`, after the bytes `sent`. It keeps its place: at the
    /// same time it comes before the requests that were admitted later.
    pub(crate) fn put_back(&mut self, due: PendingReply, at: Nanos, sent: usize) {
        let at = at.min(due.arrival.deadline);
        self.heap.push(Reverse(PendingReply { at, sent, ..due }));
    }

    /// When the next request is due; never if there is none.
    pub(crate) fn next(&self) -> Nanos {
        self.heap.peek().map_or(Nanos::MAX, |next| next.0.at)
    }

    /// The next request that is due by `now`.
    pub(crate) fn pop(&mut self, now: Nanos) -> Option<PendingReply> {
        if self.next() > now {
            return None;
        }
        self.heap.pop().map(|next| next.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::encoded_reply::Persistence;
    use crate::sink::options::{Delay, SinkOptions};
    use crate::sink::service::{Reply, Service, SlowData};
    use plimsoll_core::Rate;
    use plimsoll_driver::Endpoint;

    fn queue(change: impl FnOnce(&mut SinkOptions)) -> EventQueue {
        let mut options = SinkOptions::new(Endpoint::Tcp(([127, 0, 0, 1], 0).into()));
        change(&mut options);
        EventQueue::new(Arc::new(Setup::new(options)))
    }

    fn arrival(slot: u32, at: u64) -> Arrival {
        on_stream(0, slot, at)
    }

    fn on_stream(stream: u32, slot: u32, at: u64) -> Arrival {
        let to = Address { stream, head_only: false, persistence: Persistence::Keep };
        let deadline = Nanos::MAX;
        Arrival { conn: ConnId::new(slot, 1), at: Nanos(at), deadline, id: None, to, ask: Ask::Usual }
    }

    fn drain(queue: &mut EventQueue) -> Vec<(u64, u64)> {
        std::iter::from_fn(|| queue.pop(Nanos::MAX)).map(|due| (due.number, due.at.0)).collect()
    }

    #[test]
    fn side_by_side_requests_do_not_wait_for_each_other() {
        let mut queue = queue(|o| o.delay = Delay::Constant(Nanos(10)));
        queue.admit(arrival(0, 5), 0, Some(&mut State::default()));
        queue.admit(arrival(1, 3), 1, Some(&mut State::default()));
        assert_eq!(queue.next(), Nanos(13));
        assert!(queue.pop(Nanos(12)).is_none());
        assert_eq!(drain(&mut queue), [(1, 13), (0, 15)]);
        assert_eq!(queue.next(), Nanos::MAX);
    }

    #[test]
    fn a_deadline_is_the_end_of_a_reply_that_comes_later() {
        let mut queue = queue(|o| {
            o.delay = Delay::Constant(Nanos(10));
            o.faults.reset = 0.5;
        });
        for number in 0..20 {
            for deadline in [Nanos(19), Nanos(20)] {
                let arrival = Arrival { deadline, ..on_stream(1, 0, 10) };
                queue.admit(arrival, number, Some(&mut State::default()));
            }
        }
        let mut ends: Vec<_> =
            std::iter::from_fn(|| queue.pop(Nanos::MAX)).map(|due| (due.at.0, due.intent)).collect();
        ends.sort_unstable_by_key(|end| format!("{end:?}"));
        ends.dedup();
        // Faults stay those that the seed drew.
        let expected = [(19, Intent::Status(504)), (20, Intent::Reply), (20, Intent::Reset)];
        assert_eq!(ends, expected);
    }

    #[test]
    fn replies_of_one_connection_keep_their_order() {
        let law = Delay::Exponential { mean: Nanos(1000) };
        let mut queue = queue(|o| o.delay = law);
        let mut state = State::default();
        for number in 0..100 {
            queue.admit(arrival(0, number), number, Some(&mut state));
        }
        let order: Vec<_> = drain(&mut queue).into_iter().map(|due| due.0).collect();
        assert_eq!(order, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn streams_of_one_connection_overtake_each_other() {
        let mut queue = queue(|o| {
            o.delay = Delay::Bimodal { first: Nanos(10), second: Nanos(900), share_of_second: 0.5 };
        });
        let mut state = State::default();
        for number in 0..20 {
            queue.admit(on_stream(2 * number as u32 + 1, 0, number), number, Some(&mut state));
        }
        let order: Vec<_> = drain(&mut queue).into_iter().map(|due| due.0).collect();
        assert!(!order.is_sorted(), "{order:?}");
        assert_eq!(state.last_due, Nanos::ZERO);
    }

    #[test]
    fn replies_wait_for_the_end_of_a_slow_body_before_them() {
        let slow = Some(SlowData { bytes: 16, every: Nanos(7) });
        let mut queue = queue(|o| {
            o.delay = Delay::Constant(Nanos(10));
            o.service = Service::Reply(Reply { slow, ..Reply::default() });
        });
        let mut state = State::default();
        queue.admit(arrival(0, 0), 0, Some(&mut state));
        queue.admit(arrival(0, 0), 1, Some(&mut state));
        queue.admit(on_stream(1, 1, 0), 2, Some(&mut State::default()));
        let first = queue.pop(Nanos::MAX).unwrap();
        assert_eq!((first.number, first.at), (0, Nanos(10)));
        // The second half of its body is due together with the next reply, and goes first.
        queue.put_back(first, Nanos(17), 16);
        assert_eq!(drain(&mut queue), [(2, 10), (0, 17), (1, 17)]);
    }

    #[test]
    fn one_queue_serves_all_connections_and_serial_ones_each_their_own() {
        let constant = Delay::Constant(Nanos(10));
        for (serial, expected) in [(false, [(0, 10), (1, 20), (2, 30)]), (true, [(0, 10), (1, 10), (2, 20)])]
        {
            let mut queue = queue(|o| {
                o.delay = constant;
                o.queue = !serial;
                o.per_connection_serial = serial;
            });
            assert_eq!(queue.is_one_queue(), !serial);
            let mut states = [State::default(), State::default()];
            for (number, slot) in [0_usize, 1, 0].into_iter().enumerate() {
                queue.admit(arrival(slot as u32, 0), number as u64, Some(&mut states[slot]));
            }
            assert_eq!(drain(&mut queue), expected);
        }
    }

    #[test]
    fn a_capacity_serves_in_turn_and_the_delay_comes_on_top() {
        let mut queue = queue(|o| {
            o.capacity = Some(Rate::per_second(1_000_000));
            o.delay = Delay::Constant(Nanos(5));
        });
        for number in 0..3 {
            queue.admit(arrival(number as u32, 0), number, None);
        }
        assert_eq!(drain(&mut queue), [(0, 1005), (1, 2005), (2, 3005)]);
    }
}
