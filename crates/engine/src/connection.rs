//! State of one connection and of the requests on it.

use std::collections::VecDeque;

use plimsoll_core::{ErrorClass, Nanos};
use plimsoll_driver::ConnId;
use plimsoll_plan::Plan;
use plimsoll_wire::http1::{Capture, HeadMemo, Owed, Response, ResponseClient};
use plimsoll_wire::tls::Session;

/// Stands for an instant that is still to come: when the request's bytes are handed to the kernel.
pub(crate) const AT_SEND: Nanos = Nanos::MAX;

/// A request that was started and has not ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    /// When it should have started; [`AT_SEND`] for an iteration of the closed model on an open connection:
    /// its user has no plan but to send at once.
    pub(crate) intended: Nanos,
    /// When it was taken up; [`AT_SEND`] until its bytes are handed over, unless a connection is opened for
    /// it.
    pub(crate) started: Nanos,
    /// When its first byte was handed to the kernel, [`AT_SEND`] before.
    pub(crate) sent: Nanos,
    /// When the first byte of the response came, [`Nanos::MAX`] before.
    pub(crate) first_byte: Nanos,
    /// Closed model: when the response arrived that made its user ready; never, if there was none on this
    /// connection.
    pub(crate) ready: Nanos,
    /// When it times out.
    pub(crate) deadline: Nanos,
    /// Global index of its iteration.
    pub(crate) index: u64,
    /// Request bytes on the wire, over all redirects.
    pub(crate) bytes_sent: u64,
    /// Response bytes on the wire of the redirects before the last response.
    pub(crate) bytes_redirects: u64,
    /// Index into the plan's steps.
    pub(crate) step: u32,
    /// Redirects followed so far.
    pub(crate) redirects: u32,
    /// Whether it belongs to the measured part (else to the warm-up).
    pub(crate) measured: bool,
    /// Whether it was already recorded as timed out; its response, should it come, is skipped.
    pub(crate) abandoned: bool,
}

/// The requests on one connection, oldest first. One needs no heap: deeper pipelines are the exception.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    first: Option<InFlight>,
    rest: VecDeque<InFlight>,
}

impl Requests {
    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    #[inline]
    pub(crate) fn push(&mut self, request: InFlight) {
        if self.first.is_none() {
            self.first = Some(request);
        } else {
            self.rest.push_back(request);
        }
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<InFlight> {
        let popped = self.first.take();
        if !self.rest.is_empty() {
            self.first = self.rest.pop_front();
        }
        popped
    }

    pub(crate) fn last_mut(&mut self) -> Option<&mut InFlight> {
        self.rest.back_mut().or(self.first.as_mut())
    }

    pub(crate) fn get_mut(&mut self, position: usize) -> Option<&mut InFlight> {
        if position == 0 { self.first.as_mut() } else { self.rest.get_mut(position - 1) }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &InFlight> {
        self.first.iter().chain(&self.rest)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut InFlight> {
        self.first.iter_mut().chain(&mut self.rest)
    }
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The slot has no connection.
    Free,
    /// The TCP handshake goes on.
    Connecting,
    /// The TLS handshake goes on.
    Handshaking,
    /// Ready for requests.
    Open,
    /// Takes no more requests; closes when the ones that it has are answered or abandoned.
    Doomed,
}

/// One connection slot.
#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) id: ConnId,
    pub(crate) lane: u32,
    pub(crate) state: State,
    /// Whether it stands in its lane's list of connections that can take a request.
    pub(crate) listed: bool,
    /// The time of its entry among the timers that counts; never, if it has none.
    pub(crate) armed: Nanos,
    /// When the connect call was made; when established, when the TCP handshake ended.
    pub(crate) since: Nanos,
    /// Requests sent on it.
    pub(crate) served: u64,
    pub(crate) requests: Requests,
    pub(crate) client: ResponseClient,
    pub(crate) tls: Option<Box<Session>>,
    /// A request made outside the templates, to be sent when the connection is open: the next of a chain of
    /// redirects.
    pub(crate) prepared: Option<Vec<u8>>,
}

/// One complete response, as decoded from a piece of input.
#[derive(Debug)]
pub(crate) struct Completed {
    pub(crate) response: Response,
    /// Value of the `location` header, if redirects are followed.
    pub(crate) location: Option<String>,
}

/// Why input could not be decoded.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) class: ErrorClass,
    pub(crate) reason: String,
}

impl Conn {
    pub(crate) fn free() -> Self {
        Self {
            id: ConnId::new(u32::MAX, 0),
            lane: 0,
            state: State::Free,
            listed: false,
            armed: Nanos::MAX,
            since: Nanos::ZERO,
            served: 0,
            requests: Requests::default(),
            client: ResponseClient::new(),
            tls: None,
            prepared: None,
        }
    }

    /// Whether it can take one more request now, with pipelines of `depth`.
    pub(crate) fn has_room(&self, depth: u32, max_requests: Option<u64>) -> bool {
        let usable = matches!(self.state, State::Open | State::Connecting | State::Handshaking);
        // A connection that has sent its last request waits for the response and is then closed.
        let waiting = if self.state == State::Open { 0 } else { self.requests.len() as u64 };
        let spare = max_requests.is_none_or(|max| self.served + waiting < max);
        usable && spare && self.requests.len() < depth as usize
    }

    /// When something has to be done about it if nothing comes.
    pub(crate) fn deadline(&self, connect_timeout: Nanos) -> Nanos {
        let connect = match self.state {
            State::Free => return Nanos::MAX,
            State::Connecting | State::Handshaking => self.since + connect_timeout,
            State::Open | State::Doomed => Nanos::MAX,
        };
        let oldest = self.requests.iter().find(|request| !request.abandoned);
        connect.min(oldest.map_or(Nanos::MAX, |request| request.deadline))
    }

    /// Decodes `input`, which arrived at `at`, into complete responses.
    ///
    /// # Errors
    /// The fault that ends the connection. What was completed before it is valid.
    pub(crate) fn decode(
        &mut self,
        plan: &Plan,
        memos: &mut [HeadMemo],
        mut input: &[u8],
        at: Nanos,
        completed: &mut Vec<Completed>,
    ) -> Result<(), Fault> {
        let capture = if plan.redirects > 0 { Capture::Headers } else { Capture::Nothing };
        while !input.is_empty() {
            let Some(request) = self.requests.get_mut(completed.len()) else {
                return Err(Fault {
                    class: ErrorClass::UnsolicitedData,
                    reason: format!("{} bytes that no request had asked for", input.len()),
                });
            };
            if request.sent == AT_SEND {
                return Err(Fault {
                    class: ErrorClass::UnsolicitedData,
                    reason: "a response came before its request was sent".to_owned(),
                });
            }
            if request.first_byte == Nanos::MAX {
                request.first_byte = at;
            }
            let step = request.step as usize;
            let owed = Owed { head_request: plan.steps[step].request.head_request(), capture };
            match self.client.next(&plan.limits, &mut memos[step], owed, &mut input) {
                Ok(None) => break,
                Ok(Some(response)) => {
                    let location = match response.status {
                        300..400 if plan.redirects > 0 => {
                            self.client.header("location").map(|v| String::from_utf8_lossy(v).into_owned())
                        }
                        _ => None,
                    };
                    completed.push(Completed { response, location });
                }
                Err(error) => return Err(Fault { class: error.class(), reason: error.to_string() }),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(index: u64) -> InFlight {
        InFlight {
            intended: AT_SEND,
            started: AT_SEND,
            sent: AT_SEND,
            first_byte: Nanos::MAX,
            ready: Nanos::MAX,
            deadline: Nanos(index),
            index,
            bytes_sent: 0,
            bytes_redirects: 0,
            step: 0,
            redirects: 0,
            measured: true,
            abandoned: false,
        }
    }

    #[test]
    fn requests_leave_in_the_order_in_which_they_came() {
        let mut requests = Requests::default();
        for index in 0..4 {
            requests.push(request(index));
        }
        assert_eq!(requests.len(), 4);
        assert_eq!(requests.get_mut(2).map(|r| r.index), Some(2));
        for index in 0..4 {
            assert_eq!(requests.pop().map(|r| r.index), Some(index));
        }
        assert!(requests.is_empty() && requests.pop().is_none());
    }

    #[test]
    fn the_deadline_is_that_of_the_oldest_request_that_still_counts() {
        let mut conn = Conn::free();
        assert_eq!(conn.deadline(Nanos(5)), Nanos::MAX);
        conn.state = State::Open;
        conn.requests.push(request(7));
        conn.requests.push(request(9));
        assert_eq!(conn.deadline(Nanos(5)), Nanos(7));
        conn.requests.get_mut(0).unwrap().abandoned = true;
        assert_eq!(conn.deadline(Nanos(5)), Nanos(9));
        conn.state = State::Connecting;
        conn.since = Nanos(1);
        assert_eq!(conn.deadline(Nanos(5)), Nanos(6));
    }
}
