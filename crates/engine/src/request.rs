//! Requests that were started and have not ended.

use std::collections::VecDeque;

use plimsoll_core::Nanos;
use plimsoll_plan::Plan;

use crate::capture::NO_CAPTURE;

/// Stands for an instant that is still to come: when the request's bytes are handed to the kernel.
pub(crate) const AT_SEND: Nanos = Nanos::MAX;

/// The session of a request that needs none: the only step of its scenario, without variables.
pub(crate) const NO_SESSION: u32 = u32::MAX;

/// A request that was started and has not ended. 64 bytes, a line of the cache: with many streams these are
/// the memory that a pass walks over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    /// When it should have started; [`AT_SEND`] for a request of the closed model on an open connection: its
    /// user has no plan but to send at once.
    pub(crate) intended: Nanos,
    /// When it was taken up; [`AT_SEND`] until its bytes are handed over, unless a connection is opened for
    /// it.
    pub(crate) started: Nanos,
    /// When its first byte was handed to the kernel, [`AT_SEND`] before.
    pub(crate) sent: Nanos,
    /// When the first byte of the response came, [`Nanos::MAX`] before.
    pub(crate) first_byte: Nanos,
    /// Global index of its iteration.
    pub(crate) index: u64,
    /// Request bytes on the wire, over all redirects.
    pub(crate) bytes_sent: u64,
    /// Index into the plan's steps.
    pub(crate) step: u32,
    /// The iteration that it is a step of, or [`NO_SESSION`].
    pub(crate) session: u32,
    /// Number of its capture, or [`NO_CAPTURE`] if nothing is kept.
    pub(crate) capture: u32,
    /// Redirects followed so far.
    pub(crate) redirects: u8,
    /// `true` if its response has no body whatever the response's head says. Set when the request is written.
    pub(crate) head_request: bool,
    /// `true` if it belongs to the measured part, else to the warm-up.
    pub(crate) measured: bool,
    /// The client's own plan for it.
    pub(crate) intent: Intent,
}

/// The client's plan for a request: to await its response, or to abort it on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    /// To have its answer, within its timeout.
    Await,
    /// To have its answer, and to count as failed if its connection is lost: it was written together with
    /// others, and cannot be written alone.
    AwaitOnce,
    /// To be sent once more, because its server has not processed it. Unlike other requests it has a `sent`
    /// time, that of the first attempt, while its bytes are still to be handed to the kernel.
    SendAgain(Loss),
    /// To have its answer, after it was sent once more.
    AwaitAgain,
    /// To send a part of it, and abort it.
    CutRequest,
    /// To abort it when its response begins.
    CutResponse,
    /// Not to wait for its answer as long as others.
    Abandon,
    /// Nothing more: it was recorded as timed out, and its response, should it come, is skipped.
    GiveUp,
}

/// Reason why the first attempt of a request that is sent again was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// A kept connection of HTTP/1.1 was closed or reset before one byte of the answer.
    Closed,
    /// HTTP/2: the server said that it has not processed the request (GOAWAY, REFUSED_STREAM).
    Unprocessed,
}

impl InFlight {
    /// Returns `true` while its bytes are still to be handed to the kernel, in this attempt.
    #[inline]
    pub(crate) fn is_unsent(&self) -> bool {
        self.sent == AT_SEND || self.is_sent_again()
    }

    /// Returns `true` if it is to be sent once more, and has not been.
    #[inline]
    pub(crate) fn is_sent_again(&self) -> bool {
        matches!(self.intent, Intent::SendAgain(_))
    }

    /// Makes it a new exchange, of which nothing has come: a further hop, or a poll. It may be lost like the
    /// first one.
    pub(crate) fn begin_exchange(&mut self) {
        // Only the last response is measured and extracted from.
        self.first_byte = Nanos::MAX;
        if self.intent == Intent::AwaitAgain {
            self.intent = Intent::Await;
        }
    }

    /// When it times out: counted from when it was taken up, so never while that is to come.
    #[inline]
    pub(crate) fn deadline(&self, plan: &Plan) -> Nanos {
        if self.started == AT_SEND {
            return Nanos::MAX;
        }
        let watchdog = match (self.intent, &plan.client_faults) {
            (Intent::Abandon, Some(faults)) => faults.abandon_after,
            _ => Nanos::MAX,
        };
        self.started + plan.timeout_of(self.step).min(watchdog)
    }

    /// When its wait began: when it was taken up, or when it was due where it still waits to be.
    #[inline]
    pub(crate) fn waits_since(&self) -> Nanos {
        if self.started == AT_SEND { self.intended } else { self.started }
    }

    /// Returns `true` once its response is not wanted any more.
    #[inline]
    pub(crate) fn is_given_up(&self) -> bool {
        self.intent == Intent::GiveUp
    }
}

/// A request that is to be started.
#[inline]
pub(crate) fn new_request(intended: Nanos, index: u64, step: u32, measured: bool) -> InFlight {
    InFlight {
        intended,
        started: AT_SEND,
        sent: AT_SEND,
        first_byte: Nanos::MAX,
        index,
        bytes_sent: 0,
        step,
        session: NO_SESSION,
        capture: NO_CAPTURE,
        redirects: 0,
        head_request: false,
        measured,
        intent: Intent::Await,
    }
}

/// The requests on one connection, each under a ticket by which it is found again.
#[derive(Debug)]
pub(crate) enum Requests {
    /// Oldest first, as HTTP/1.1 answers them; also those that wait for the connection to be established. One
    /// needs no heap: deeper pipelines are the exception. Tickets count up.
    Queue { first: Option<InFlight>, rest: VecDeque<InFlight>, ticket: u32 },
    /// Answered in any order, as on HTTP/2. Tickets are the protocol's, small and dense.
    Table { entries: Vec<Option<InFlight>>, count: u32 },
}

impl Default for Requests {
    fn default() -> Self {
        Self::Queue { first: None, rest: VecDeque::new(), ticket: 0 }
    }
}

impl Requests {
    /// An empty table for at most `streams` requests.
    pub(crate) fn table() -> Self {
        Self::Table { entries: Vec::new(), count: 0 }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Queue { first, rest, .. } => usize::from(first.is_some()) + rest.len(),
            Self::Table { count, .. } => *count as usize,
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a request to a queue; its ticket. (In a table it takes the first free one, and may collide with
    /// the protocol's: use [`insert`](Self::insert).)
    #[inline]
    pub(crate) fn push(&mut self, request: &InFlight) -> u32 {
        let length = self.len() as u32;
        match self {
            Self::Queue { first, rest, ticket } => {
                if first.is_none() {
                    *first = Some(*request);
                } else {
                    rest.push_back(*request);
                }
                ticket.wrapping_add(length)
            }
            Self::Table { entries, .. } => {
                let free = entries.iter().position(Option::is_none).unwrap_or(entries.len()) as u32;
                self.insert(free, request);
                free
            }
        }
    }

    /// Adds a request to a table under a ticket that is free.
    #[inline]
    pub(crate) fn insert(&mut self, ticket: u32, request: &InFlight) {
        let Self::Table { entries, count } = self else {
            debug_assert!(false, "a queue numbers its requests itself");
            return;
        };
        let index = ticket as usize;
        if index >= entries.len() {
            entries.resize(index + 1, None);
        }
        debug_assert!(entries[index].is_none(), "the ticket is taken");
        entries[index] = Some(*request);
        *count += 1;
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, ticket: u32) -> Option<&mut InFlight> {
        match self {
            Self::Queue { ticket: oldest, .. } => {
                let position = ticket.wrapping_sub(*oldest) as usize;
                self.nth_mut(position)
            }
            Self::Table { entries, .. } => entries.get_mut(ticket as usize)?.as_mut(),
        }
    }

    /// The request at this place of a queue, the oldest being the first.
    #[inline]
    pub(crate) fn nth_mut(&mut self, position: usize) -> Option<&mut InFlight> {
        match self {
            Self::Queue { first, .. } if position == 0 => first.as_mut(),
            Self::Queue { rest, .. } => rest.get_mut(position - 1),
            Self::Table { entries, .. } => entries.iter_mut().flatten().nth(position),
        }
    }

    /// Takes the request out; of a queue only the oldest can be.
    #[inline]
    pub(crate) fn take(&mut self, ticket: u32) -> Option<InFlight> {
        match self {
            Self::Queue { ticket: oldest, .. } if *oldest == ticket => self.pop(),
            Self::Queue { .. } => None,
            Self::Table { entries, count } => {
                let taken = entries.get_mut(ticket as usize)?.take();
                *count -= u32::from(taken.is_some());
                taken
            }
        }
    }

    /// The ticket of the oldest request of a queue.
    pub(crate) fn oldest(&self) -> u32 {
        match self {
            Self::Queue { ticket, .. } => *ticket,
            Self::Table { .. } => 0,
        }
    }

    /// Takes the oldest request of a queue, or any of a table.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<InFlight> {
        match self {
            Self::Queue { first, rest, ticket } => {
                let popped = first.take();
                *ticket = ticket.wrapping_add(u32::from(popped.is_some()));
                if !rest.is_empty() {
                    *first = rest.pop_front();
                }
                popped
            }
            Self::Table { entries, count } => {
                let popped = entries.iter_mut().find_map(Option::take);
                *count -= u32::from(popped.is_some());
                popped
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &InFlight> {
        let (first, rest, entries) = match self {
            Self::Queue { first, rest, .. } => (first.as_ref(), Some(rest), None),
            Self::Table { entries, .. } => (None, None, Some(entries)),
        };
        first.into_iter().chain(rest.into_iter().flatten()).chain(entries.into_iter().flatten().flatten())
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut InFlight> {
        let (first, rest, entries) = match self {
            Self::Queue { first, rest, .. } => (first.as_mut(), Some(rest), None),
            Self::Table { entries, .. } => (None, None, Some(entries)),
        };
        first.into_iter().chain(rest.into_iter().flatten()).chain(entries.into_iter().flatten().flatten())
    }

    /// The tickets of the requests whose deadline has come and that were not given up before.
    pub(crate) fn overdue(&self, plan: &Plan, now: Nanos, into: &mut Vec<u32>) {
        let is_overdue = |request: &InFlight| !request.is_given_up() && request.deadline(plan) <= now;
        match self {
            Self::Queue { first, rest, ticket } => {
                let all = first.iter().chain(rest);
                into.extend(
                    (0..).zip(all).filter(|(_, r)| is_overdue(r)).map(|(n, _)| ticket.wrapping_add(n)),
                );
            }
            Self::Table { entries, .. } => {
                let taken = (0..).zip(entries).filter(|(_, entry)| entry.as_ref().is_some_and(is_overdue));
                into.extend(taken.map(|(ticket, _)| ticket));
            }
        }
    }

    /// Takes those out of a queue that were given up.
    pub(crate) fn forget_abandoned(&mut self) {
        let mut kept = Self::default();
        while let Some(request) = self.pop() {
            if !request.is_given_up() {
                kept.push(&request);
            }
        }
        *self = kept;
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_document::RawValue;
    use plimsoll_plan::{Disk, PlanPatch};

    use super::*;

    fn request(index: u64) -> InFlight {
        InFlight { started: Nanos(index), ..new_request(AT_SEND, index, 0, true) }
    }

    /// A plan with this limit for responses.
    fn plan(timeout: Nanos) -> Plan {
        let patch = PlanPatch {
            urls: vec![RawValue::new("URL", "http://127.0.0.1:1/")],
            timeout: Some(RawValue::new("--timeout", format!("{}ns", timeout.0))),
            ..PlanPatch::default()
        };
        Plan::resolve(patch, &Disk).expect("a plan")
    }

    #[test]
    fn a_request_is_a_line_of_the_cache() {
        assert!(size_of::<Option<InFlight>>() <= 64);
        let waiting = InFlight { started: AT_SEND, ..request(0) };
        let plan = plan(Nanos(5));
        assert_eq!(waiting.deadline(&plan), Nanos::MAX);
        assert_eq!(request(7).deadline(&plan), Nanos(12));
    }

    #[test]
    fn a_queue_gives_its_requests_in_the_order_in_which_they_came() {
        let mut requests = Requests::default();
        let tickets: Vec<u32> = (0..4).map(|index| requests.push(&request(index))).collect();
        assert_eq!((requests.len(), requests.oldest()), (4, tickets[0]));
        assert_eq!(requests.take(tickets[2]).map(|r| r.index), None);
        for (index, ticket) in (0..4).zip(&tickets) {
            assert_eq!(requests.get_mut(tickets[3]).map(|r| r.index), Some(3));
            assert_eq!(requests.take(*ticket).map(|r| r.index), Some(index));
        }
        assert!(requests.is_empty() && requests.pop().is_none());
        assert_eq!(requests.push(&request(9)), tickets[3] + 1);
    }

    #[test]
    fn a_table_finds_its_requests_by_their_tickets() {
        let mut requests = Requests::table();
        for ticket in [3, 0, 7] {
            requests.insert(ticket, &request(u64::from(ticket)));
        }
        assert_eq!(requests.len(), 3);
        assert_eq!(requests.take(7).map(|r| r.index), Some(7));
        assert_eq!(requests.take(7).map(|r| r.index), None);
        assert_eq!(requests.get_mut(3).map(|r| r.index), Some(3));
        assert_eq!(requests.iter().map(|r| r.index).collect::<Vec<_>>(), [0, 3]);
        requests.insert(7, &request(1));
        assert_eq!(requests.len(), 3);
        assert_eq!(std::iter::from_fn(|| requests.pop()).count(), 3);
        assert!(requests.is_empty());
    }

    #[test]
    fn what_is_overdue_is_found_and_what_was_given_up_is_not() {
        let mut queue = Requests::default();
        let mut table = Requests::table();
        for index in 0..5 {
            queue.push(&request(index));
            table.insert(index as u32, &request(index));
        }
        queue.pop();
        for requests in [&mut queue, &mut table] {
            requests.get_mut(2).expect("there").intent = Intent::GiveUp;
            let mut overdue = Vec::new();
            requests.overdue(&plan(Nanos(10)), Nanos(13), &mut overdue);
            assert_eq!(overdue.iter().filter(|t| **t != 0).collect::<Vec<_>>(), [&1, &3]);
        }
        queue.forget_abandoned();
        assert_eq!(queue.iter().map(|r| r.index).collect::<Vec<_>>(), [1, 3, 4]);
    }
}
