//! Where requests are read, and answered at once if nothing stands against it.

use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_driver::ConnId;
use plimsoll_wire::http1::{self, Limits, RequestMemo, RequestServer};
use plimsoll_wire::http2::{self, ErrorCode, Payload, Server, ServerOptions};

use super::connection::{CloseMode, Connection, Protocol, State};
use super::encoded_reply::{Address, Persistence};
use super::event_queue::Arrival;
use super::options::Delay;
use super::service::{AddedPart, Ask, WebSocketServer};
use super::setup::{Setup, Tally};
use super::truth::{Action, RequestId, TruthRow};
use crate::server::http::DetectedProtocol;
use crate::server::output::Channel;

pub(crate) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
/// Most requests of one HTTP/1.1 connection that may wait for their replies, lest they fill the memory. On
/// HTTP/2 the open streams are bounded; those that a client gives up are kept until they would be due.
const MAX_OUTSTANDING: u32 = 1 << 16;
/// The memory for a connection's next body that is kept after a large one.
const BODY_ROOM: usize = 16 << 10;
/// A buffer that grew beyond this for large bodies is not kept.
const OUT_KEPT: usize = 1 << 20;

/// Reads the requests of one thread's connections.
///
/// With no delay, no drawn fault, no work and no large or slow body a request is answered where it is read:
/// the reply goes into [`out`](Self::out). Otherwise it becomes an [`Arrival`].
#[derive(Debug)]
pub(crate) struct RequestHandler {
    pub(super) setup: Arc<Setup>,
    /// Index of the thread.
    pub(crate) thread: u32,
    limits: Limits,
    memo: RequestMemo,
    http2: ServerOptions,
    pub(super) at_once: bool,
    /// The service looks into the bodies of requests.
    reads_bodies: bool,
    pub(super) logs: bool,
    /// HTTP/2 requests that were read last.
    requests: Vec<http2::Request>,
    /// Path of the request that is being answered, if the answer depends on it.
    path: Vec<u8>,
    /// Body of the request that is being answered, if the service looks into it.
    body: Vec<u8>,
    /// Plaintext to send on the connection that was read last.
    pub(crate) out: Vec<u8>,
    /// Rows about the replies in `out`, whose reply time is not known yet, and about abandoned requests.
    pub(crate) rows: Vec<TruthRow>,
    /// Replies in `out`.
    pub(crate) answered: u32,
    /// Requests of all connections that wait for admission.
    pub(crate) arrivals: Vec<Arrival>,
}

impl RequestHandler {
    pub(crate) fn new(setup: Arc<Setup>, thread: u32, logs: bool) -> Self {
        let options = &setup.options;
        let at_once = options.delay == Delay::None
            && options.capacity.is_none()
            && options.work == Nanos::ZERO
            && !options.faults.are_drawn()
            && setup.forms.slow.is_none()
            && setup.forms.table.largest().is_inline()
            && !setup.forms.table.gathers()
            && !setup.forms.table.broadcasts();
        let reads_bodies = setup.forms.table.reads_bodies();
        let added = setup.forms.table.added();
        let timeout = added.and_then(|added| added.timeout);
        let http2 = ServerOptions {
            keeps_content: reads_bodies,
            tells_parts: added.is_some(),
            timeout_field: timeout.map_or("", |timeout| timeout.name),
            ..ServerOptions::default()
        };
        Self {
            setup,
            thread,
            limits: Limits::default(),
            memo: RequestMemo::default(),
            http2,
            at_once,
            reads_bodies,
            logs,
            requests: Vec::new(),
            path: Vec::new(),
            body: Vec::new(),
            out: Vec::new(),
            rows: Vec::new(),
            answered: 0,
            arrivals: Vec::new(),
        }
    }

    /// Drops the output that was to be sent. Call it before a connection is read.
    pub(crate) fn clear(&mut self) {
        if self.out.capacity() > OUT_KEPT {
            self.out = Vec::new();
        }
        self.out.clear();
        self.rows.clear();
        self.answered = 0;
    }

    /// Takes over the protocol from the TLS handshake. Without ALPN the first bytes decide.
    pub(crate) fn negotiated(&mut self, protocol: &mut Protocol, alpn: Option<&[u8]>, tally: &mut Tally) {
        *protocol = self.begin(DetectedProtocol::by_alpn(alpn), tally);
    }

    /// Reads the plaintext `bytes` that came at `at`.
    pub(crate) fn read(&mut self, connection: &mut Connection, at: Nanos, bytes: &[u8], tally: &mut Tally) {
        if bytes.is_empty() {
            return;
        }
        let Connection { protocol, state, channel: Channel { id, .. }, .. } = connection;
        let held_back = protocol.learn(bytes, |told| self.begin(told, tally));
        if !held_back.is_empty() {
            self.read_as(protocol, *id, state, at, held_back, tally);
        }
        self.read_as(protocol, *id, state, at, bytes, tally);
    }

    fn begin(&mut self, told: DetectedProtocol, tally: &mut Tally) -> Protocol {
        if told == DetectedProtocol::Http2 && self.setup.forms.table.is_websocket() {
            tally.http2 += 1;
            return Protocol::Upgraded(WebSocketServer::over_http2(&mut self.out));
        }
        let protocol = Protocol::begin(told, &self.http2, &mut self.out);
        match protocol {
            Protocol::Open(_) => {}
            Protocol::Http1(_) | Protocol::Upgraded(_) => tally.http1 += 1,
            Protocol::Http2(_) => tally.http2 += 1,
        }
        match protocol {
            Protocol::Http1(_) if self.setup.forms.table.is_websocket() => {
                Protocol::Upgraded(WebSocketServer::new())
            }
            other => other,
        }
    }

    fn read_as(
        &mut self,
        protocol: &mut Protocol,
        conn: ConnId,
        state: &mut State,
        at: Nanos,
        bytes: &[u8],
        tally: &mut Tally,
    ) {
        match protocol {
            Protocol::Open(_) => {}
            Protocol::Http1(server) => self.read_http1(server, conn, state, at, bytes, tally),
            Protocol::Http2(server) => self.read_http2(server, conn, state, at, bytes, tally),
            Protocol::Upgraded(server) => self.read_websocket(server, conn, state, at, bytes, tally),
        }
    }

    fn read_http1(
        &mut self,
        server: &mut RequestServer,
        conn: ConnId,
        state: &mut State,
        at: Nanos,
        bytes: &[u8],
        tally: &mut Tally,
    ) {
        let mut input = bytes;
        while !state.deaf {
            if state.outstanding >= MAX_OUTSTANDING && !input.is_empty() {
                // The outstanding requests are still served, then the connection ends.
                state.deaf = true;
                state.farewell = Some(CloseMode::Silent);
                tally.refused += 1;
                return;
            }
            let mut rest = input;
            let mut body = std::mem::take(&mut state.body);
            let kept = self.reads_bodies.then_some(&mut body);
            let next = server.next_into(&self.limits, &mut self.memo, &mut rest, kept);
            match next {
                Ok(Some(request)) => {
                    self.take_http1(conn, state, at, &request, &body);
                    body.clear();
                    body.shrink_to(BODY_ROOM);
                    state.body = body;
                }
                Ok(None) => {
                    state.body = body;
                    break;
                }
                Err(_) => {
                    state.deaf = true;
                    state.farewell = Some(CloseMode::Refuse);
                    tally.refused += 1;
                    return;
                }
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

    #[inline]
    fn take_http1(
        &mut self,
        conn: ConnId,
        state: &mut State,
        at: Nanos,
        request: &http1::Request<'_>,
        body: &[u8],
    ) {
        state.requests += 1;
        state.continue_owed = false;
        let faults = &self.setup.options.faults;
        let announced = faults.go_away_after == Some(state.requests);
        let persistence = match (request.keep_alive && !announced, request.version_minor) {
            (false, _) => Persistence::Close,
            (true, 0) => Persistence::KeepTold,
            (true, _) => Persistence::Keep,
        };
        if persistence == Persistence::Close || faults.close_idle_after == Some(state.requests) {
            state.deaf = true;
            state.farewell = Some(CloseMode::Silent);
        }
        let table = &self.setup.forms.table;
        let ask = match table.is_for_person(request.method, request.target, request.accept) {
            true => Ask::Person,
            false => table.ask(request.method, request.target, body),
        };
        if !self.at_once {
            state.outstanding += 1;
            let to = Address { stream: 0, head_only: request.head_request, persistence };
            let id = if self.logs { request.id.map(Into::into) } else { None };
            let (deadline, ask) = (Nanos::MAX, ask.into_owned());
            return self.arrivals.push(Arrival { conn, at, deadline, id, to, ask });
        }
        let number = self.setup.count();
        let answer = self.setup.forms.table.answer(&ask, number, self.thread);
        answer.write(request.head_request, persistence, &mut self.out);
        self.answered += 1;
        if self.logs {
            let (id, status) = (RequestId::new(request.id, number), Some(answer.form.status));
            self.rows.push(TruthRow { id, number, recv: at, reply: None, action: Action::Replied, status });
        }
    }

    fn read_http2(
        &mut self,
        server: &mut Server,
        conn: ConnId,
        state: &mut State,
        at: Nanos,
        bytes: &[u8],
        tally: &mut Tally,
    ) {
        let mut requests = std::mem::take(&mut self.requests);
        requests.clear();
        let outcome = server.receive(bytes, &mut self.out, &mut requests);
        if outcome.is_err() {
            // Requests before the violation are counted, and abandoned when their turn comes.
            state.deaf = true;
            state.mute = true;
            state.farewell = Some(CloseMode::Broken);
            tally.refused += 1;
        }
        for (index, request) in requests.iter().enumerate() {
            // The last part that came of a request has those before it, too.
            let goes_on = |later: &http2::Request| later.stream == request.stream;
            if !request.whole && requests[index + 1..].iter().any(goes_on) {
                continue;
            }
            self.take_http2(server, conn, state, at, request, tally);
        }
        self.requests = requests;
        if outcome.is_ok() {
            self.part_http2(server, state);
        }
    }

    #[inline]
    fn take_http2(
        &mut self,
        server: &mut Server,
        conn: ConnId,
        state: &mut State,
        at: Nanos,
        request: &http2::Request,
        tally: &mut Tally,
    ) {
        state.requests += 1;
        let (stream, head_only) = (request.stream, request.head_request);
        let forms = &self.setup.forms;
        let is_endless = || {
            let path = server.text(request.path);
            request.status.is_none()
                && forms.table.added().is_some_and(|added| added.service.is_endless(path))
        };
        if !request.whole || server.is_replying(stream) || is_endless() {
            return self.take_part(server, state, at, request);
        }
        let is_person = || {
            let accept = request.accept.map(|accept| server.text(accept));
            forms.table.is_for_person(server.text(request.method), server.text(request.path), accept)
        };
        if !self.at_once || state.mute {
            state.outstanding += 1;
            let to = Address { stream, head_only, persistence: Persistence::Keep };
            let id = request.id.filter(|_| self.logs).map(|id| server.text(id).into());
            let (path, content) = (server.text(request.path), server.text(request.content));
            let status = request.status.map(|status| server.text(status));
            let ask = match is_person() {
                true => Ask::Person,
                false => {
                    let method = server.text(request.method);
                    forms.table.ask_over(true, method, path, content, status).into_owned()
                }
            };
            let timeout = request.timeout.zip(forms.table.added().and_then(|added| added.timeout));
            let timeout = timeout.and_then(|(text, field)| (field.read)(server.text(text)));
            let deadline = timeout.map_or(Nanos::MAX, |timeout| Nanos(at.0.saturating_add(timeout.0)));
            return self.arrivals.push(Arrival { conn, at, deadline, id, to, ask });
        }
        self.path.clear();
        if forms.table.are_many() {
            // The server cannot lend the path and write the reply at the same time.
            self.path.extend_from_slice(server.text(request.path));
        }
        self.body.clear();
        if self.reads_bodies {
            self.body.shrink_to(BODY_ROOM);
            self.body.extend_from_slice(server.text(request.content));
        }
        let status = request.status.map(|status| server.text(status));
        let ask = match is_person() {
            true => Ask::Person,
            false => {
                let method = server.text(request.method);
                forms.table.ask_over(true, method, &self.path, &self.body, status)
            }
        };
        let number = self.setup.count();
        let answer = forms.table.answer(&ask, number, self.thread);
        let sent = answer.write_http2(server, stream, head_only, &forms.book, &mut self.out);
        let (action, status) = if sent {
            self.answered += 1;
            (Action::Replied, Some(answer.form.status))
        } else {
            // The client reset the stream right behind its request.
            tally.abandoned += 1;
            (Action::Abandoned, None)
        };
        if self.logs {
            let id = RequestId::new(request.id.map(|id| server.text(id)), number);
            self.rows.push(TruthRow { id, number, recv: at, reply: None, action, status });
        }
    }

    /// A part of a request that goes on, or its end: answers what has come, where it is answered before the
    /// end.
    fn take_part(&mut self, server: &mut Server, state: &mut State, at: Nanos, request: &http2::Request) {
        if !request.whole {
            state.requests -= 1;
        }
        let (stream, forms) = (request.stream, &self.setup.forms);
        let Some(added) = forms.table.added().filter(|_| !state.mute && request.status.is_none()) else {
            return;
        };
        self.body.clear();
        self.body.extend_from_slice(server.text(request.content));
        let path = server.text(request.path);
        let is_endless = added.service.is_endless(path);
        let part = added.service.answer_part(path, &self.body, self.at_once);
        let Some(AddedPart { body, consumed }) = part else { return };
        server.consume(stream, consumed);
        if !body.is_empty() {
            // Only the first part has a head to come.
            server.reply_head(
                stream,
                |indexing, out| added.write_head(&forms.book, indexing, out),
                &mut self.out,
            );
            server.data(stream, Payload::Bytes(&body), false, &mut self.out);
        }
        let is_answered = match is_endless {
            true => !body.is_empty(),
            false => request.whole && server.trailers(stream, added.trailers(), &mut self.out),
        };
        if is_answered {
            let number = self.setup.count();
            self.answered += 1;
            if self.logs {
                let id = RequestId::new(request.id.map(|id| server.text(id)), number);
                let (action, status) = (Action::Replied, Some(200));
                self.rows.push(TruthRow { id, number, recv: at, reply: None, action, status });
            }
        }
    }

    /// Ends an HTTP/2 connection that has had its number of requests.
    fn part_http2(&mut self, server: &mut Server, state: &mut State) {
        let faults = &self.setup.options.faults;
        let reached = |count: Option<u64>| count.is_some_and(|count| state.requests >= count);
        if state.farewell.is_some() {
            return;
        }
        if reached(faults.go_away_after) {
            server.go_away(ErrorCode::NoError, &mut self.out);
        } else if reached(faults.close_idle_after) {
            // The server ignores further requests, but the client is not notified.
            server.go_away(ErrorCode::NoError, &mut Vec::new());
        } else {
            return;
        }
        state.farewell = Some(CloseMode::Silent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::options::SinkOptions;
    use plimsoll_driver::Endpoint;

    #[test]
    fn requests_that_wait_on_one_connection_are_bounded() {
        let listen = Endpoint::Tcp(([127, 0, 0, 1], 0).into());
        for (delay, answered) in [(Delay::Constant(Nanos(1)), 0), (Delay::None, 70_000)] {
            let options = SinkOptions { delay, ..SinkOptions::new(listen.clone()) };
            let mut handler = RequestHandler::new(Arc::new(Setup::new(options)), 0, false);
            let mut connection = Connection::new(ConnId::new(0, 1), None);
            let mut tally = Tally::default();
            let request = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
            let bytes = request.repeat(1000);
            let mut sent = 0;
            while sent < 70_000 && !connection.state.deaf {
                handler.read(&mut connection, Nanos(5), &bytes, &mut tally);
                sent += 1000;
            }
            let is_bound = delay != Delay::None;
            assert_eq!(connection.state.deaf, is_bound);
            assert_eq!((handler.answered, tally.refused), (answered, u64::from(is_bound)));
            if is_bound {
                assert_eq!(handler.arrivals.len(), MAX_OUTSTANDING as usize);
                assert_eq!(connection.state.outstanding, MAX_OUTSTANDING);
                // Requests that were read are still answered.
                assert!(!connection.state.mute);
                assert_eq!(connection.state.farewell, Some(CloseMode::Silent));
            }
        }
    }
}
