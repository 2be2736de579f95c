//! Where requests are read, and answered at once if nothing stands against it.

use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_driver::ConnId;
use plimsoll_wire::http1::{Limits, Request, RequestMemo};

use super::agenda::Arrival;
use super::connection::{Connection, Farewell, State};
use super::options::Delay;
use super::reply::{Persistence, Refusal};
use super::setup::{Setup, Tally};
use super::truth::{Action, RequestId, TruthRow};

/// How every connection of an HTTP/2 client without negotiation begins (RFC 9113, 3.4).
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n";
pub(crate) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Reads the requests of one thread's connections.
///
/// With no delay, no drawn fault and no large body a request is answered where it is read: the reply goes
/// into [`out`](Self::out). Otherwise it becomes an [`Arrival`].
#[derive(Debug)]
pub(crate) struct Desk {
    setup: Arc<Setup>,
    limits: Limits,
    memo: RequestMemo,
    at_once: bool,
    logs: bool,
    /// Plaintext to send on the connection that was read last.
    pub(crate) out: Vec<u8>,
    /// Rows about the replies in `out`; their reply time is not known yet.
    pub(crate) rows: Vec<TruthRow>,
    /// Replies in `out`.
    pub(crate) answered: u32,
    /// Requests of all connections that wait for admission.
    pub(crate) arrivals: Vec<Arrival>,
}

impl Desk {
    pub(crate) fn new(setup: Arc<Setup>, logs: bool) -> Self {
        let options = &setup.options;
        let at_once = options.delay == Delay::None
            && options.capacity.is_none()
            && !options.faults.are_drawn()
            && setup.forms.usual().is_inline();
        Self {
            setup,
            limits: Limits::default(),
            memo: RequestMemo::default(),
            at_once,
            logs,
            out: Vec::new(),
            rows: Vec::new(),
            answered: 0,
            arrivals: Vec::new(),
        }
    }

    /// Reads the plaintext `bytes` that came at `at`.
    pub(crate) fn read(&mut self, connection: &mut Connection, at: Nanos, bytes: &[u8], tally: &mut Tally) {
        self.clear();
        if bytes.is_empty() {
            return;
        }
        let Connection { server, state, id, .. } = connection;
        if !std::mem::replace(&mut state.spoken, true) && bytes.starts_with(HTTP2_PREFACE) {
            return refuse(state, Refusal::VersionNotSupported, tally);
        }
        let mut input = bytes;
        while !state.deaf {
            let mut rest = input;
            match server.next(&self.limits, &mut self.memo, &mut rest) {
                Ok(Some(request)) if request.method == b"PRI" => {
                    return refuse(state, Refusal::VersionNotSupported, tally);
                }
                Ok(Some(request)) => self.take(*id, state, at, &request),
                Ok(None) => break,
                Err(_) => return refuse(state, Refusal::BadRequest, tally),
            }
            input = &input[input.len() - rest.len()..];
        }
        if !state.deaf && server.wants_continue() {
            if state.outstanding == 0 {
                self.out.extend_from_slice(CONTINUE);
            } else {
                state.continue_owed = true;
            }
        }
    }

    /// Forgets what was to be sent.
    pub(crate) fn clear(&mut self) {
        self.out.clear();
        self.rows.clear();
        self.answered = 0;
    }

    #[inline]
    fn take(&mut self, conn: ConnId, state: &mut State, at: Nanos, request: &Request<'_>) {
        state.requests += 1;
        state.continue_owed = false;
        let persistence = match (request.keep_alive, request.version_minor) {
            (false, _) => Persistence::Close,
            (true, 0) => Persistence::KeepTold,
            (true, _) => Persistence::Keep,
        };
        if persistence == Persistence::Close
            || self.setup.options.faults.close_idle_after == Some(state.requests)
        {
            state.deaf = true;
            state.farewell = Some(Farewell::Silent);
        }
        if !self.at_once {
            state.outstanding += 1;
            let id = if self.logs { request.id.map(Into::into) } else { None };
            self.arrivals.push(Arrival { conn, at, id, head_only: request.head_request, persistence });
            return;
        }
        let number = self.setup.count();
        let form = self.setup.forms.usual();
        form.write(number, request.head_request, persistence, &mut self.out);
        self.answered += 1;
        if self.logs {
            let id = RequestId::new(request.id, number);
            let status = Some(form.status);
            self.rows.push(TruthRow { id, number, recv: at, reply: None, action: Action::Replied, status });
        }
    }
}

fn refuse(state: &mut State, refusal: Refusal, tally: &mut Tally) {
    state.deaf = true;
    state.farewell = Some(Farewell::Refuse(refusal));
    tally.refused += 1;
}
