//! WebSockets: connections that belong to one iteration each, from the upgrade to the close.
//!
//! A step on a WebSocket is a request whose answer is the message that it awaits. One that awaits nothing
//! ends when it was sent, and one that sends nothing is answered by a message that may have come before it:
//! both are settled after the flush.

use plimsoll_core::{ErrorClass, Nanos};
use plimsoll_driver::{Backend, Chunk, Close, ConnId};
use plimsoll_scenario::{
    Context, FieldNeeds, LONGEST_WITH_VALUES, Received, ResponseHandler, WebSocketAction,
};
use plimsoll_wire::http2::{Response, StreamFailure};

use super::Worker;
use super::content::Content;
use crate::capture::NO_CAPTURE;
use crate::connection::{Client, Fault, InTurn, Reply, State};
use crate::request::{AT_SEND, InFlight, NO_SESSION};
use crate::session::Session;
use crate::websocket::{MESSAGE, MessageRoom, Opening, Receipt, Rules};

/// Status with which a user leaves that has not closed its WebSocket, and with which all leave at the end
/// (RFC 6455 section 7.4.1).
const NORMAL: u16 = 1000;
const GOING_AWAY: u16 = 1001;
/// Most bytes that a server may leave unread while its messages are answered: more than the longest request,
/// so that one that reads it slowly is no offence.
const MOST_UNREAD: usize = LONGEST_WITH_VALUES + (16 << 20);

/// WebSockets that something is to be done about.
#[derive(Debug, Default)]
pub(super) struct WebSockets {
    /// Connections with a request that may end once it is flushed.
    settling: Vec<ConnId>,
}

impl WebSockets {
    /// Returns `true` if the next pass has something to do without an event.
    pub(super) const fn are_due(&self) -> bool {
        !self.settling.is_empty()
    }
}

/// The rules of the WebSocket `id` that `session` has opened by the step of `handler`, if it still belongs to
/// it. `source` is the worker's number and the time in nanoseconds since 1970.
fn rules_of<'a>(
    id: ConnId,
    handler: &'a ResponseHandler,
    session: &'a mut Session,
    source: (u32, u64),
    content: &'a mut Content,
    room: &'a mut MessageRoom,
) -> Option<Rules<'a>> {
    if session.link != Some(id) {
        return None;
    }
    let (worker, unix_ns) = source;
    let tokens = Some(&content.tokens.all);
    let context = Context { index: session.index, worker, unix_ns, tokens, ..Context::default() };
    Some(Rules { handler, session: &mut session.state, context, random: &mut content.random, room })
}

impl<B: Backend> Worker<'_, B> {
    /// Starts a step of an iteration on its WebSocket, or on one that is opened for it.
    pub(super) fn send_on_websocket(
        &mut self,
        action: WebSocketAction,
        pool: u32,
        request: &mut InFlight,
        ready: Nanos,
    ) {
        let now = self.clock.now;
        let Some(session) = self.iterations.sessions.get_mut(request.session) else { return };
        if action == WebSocketAction::Open {
            session.lost = None;
            let before = session.link.take();
            self.iterations.unlinked.extend(before);
            self.place(pool, None, request, ready, now);
            return;
        }
        let (link, lost) = (session.link, session.lost);
        self.count_started(request);
        match link.filter(|id| self.lives(*id) && self.conns[id.slot()].requests.is_empty()) {
            Some(id) => self.enqueue(id.slot() as u32, request, ready, now),
            None => {
                let class = lost.unwrap_or(ErrorClass::WebSocketClosed);
                self.note_error(class, "the WebSocket had ended before the step");
                self.fail(pool, request, class, 0, now);
            }
        }
    }

    /// Notes the WebSocket on which a step was written: it belongs to the iteration of the step that opens
    /// it.
    pub(super) fn link_websocket(&mut self, slot: u32, request: &InFlight, action: WebSocketAction) {
        let conn = &mut self.conns[slot as usize];
        let id = conn.id;
        let Client::WebSocket(socket) = &mut conn.client else { return };
        match action {
            WebSocketAction::Open => {
                socket.owner = request.session;
                let has_rules = self.steps.handlers[request.step as usize].has_answers();
                socket.ruled_by = has_rules.then_some(request.step);
                if let Some(session) = self.iterations.sessions.get_mut(request.session) {
                    session.link = Some(id);
                }
            }
            WebSocketAction::Receive | WebSocketAction::Send { answered: false, .. } => {
                self.websockets.settling.push(id);
            }
            WebSocketAction::Send { answered: true, .. } | WebSocketAction::Close(_) => {}
        }
        if let WebSocketAction::Send { .. } = action
            && request.measured
        {
            let record = &mut self.records.measured.connections.websocket;
            record.messages_sent += 1;
            record.bytes_sent += request.bytes_sent;
        }
    }

    /// Bytes came on a connection that is or will be a WebSocket.
    pub(super) fn receive_websocket(
        &mut self,
        id: ConnId,
        at: Nanos,
        secured: bool,
        data: Chunk,
    ) -> Result<(), Fault> {
        let slot = id.slot() as u32;
        let counts = self.counts_messages(at);
        let bytes = if secured { self.buffers.plain.as_slice() } else { self.io.bytes(data) };
        let conn = &mut self.conns[slot as usize];
        let Client::WebSocket(socket) = &mut conn.client else { return Ok(()) };
        // Over HTTP/2 frames of the connection may come before the response.
        if !socket.was_opened()
            && !socket.is_over_http2()
            && let Some(request) = conn.requests.nth_mut(0)
            && request.sent != AT_SEND
        {
            request.first_byte = request.first_byte.min(at);
        }
        self.buffers.control.clear();
        let rules = socket.ruled_by.and_then(|step| {
            let session = self.iterations.sessions.get_mut(socket.owner)?;
            let source = (self.shard.index, self.clock.unix_ns());
            let handler = &self.steps.handlers[step as usize];
            rules_of(id, handler, session, source, &mut self.content, &mut self.buffers.messages)
        });
        let news = socket.read(Receipt { at, counts }, bytes, rules, &mut self.buffers.control);
        let record = &mut self.records.measured.connections.websocket;
        if counts {
            record.messages_received += news.messages;
            record.bytes_received += news.bytes;
            record.answered += news.ruled;
            record.messages_sent += news.answers;
            record.bytes_sent += news.answer_bytes;
        }
        record.pings += news.pings;
        self.write_control(slot);
        if news.answers > 0 && self.io.unsent(id) > MOST_UNREAD {
            let reason = "the server sends messages that are to be answered, and does not read the answers";
            return Err(Fault::new(ErrorClass::Protocol, reason.to_owned()));
        }
        if news.ready && self.conns[slot as usize].state == State::Greeting {
            self.on_settings(slot, at)?;
        }
        if let Some(held) = news.refused {
            return self.receive_refusal(id, at, held, data);
        }
        if let Some(response) = news.answered {
            self.on_stream_refused(slot, at, response);
            return Ok(());
        }
        if let Some(opening) = news.opened {
            self.on_websocket_open(slot, at, &opening);
        }
        self.deliver(id);
        if let Some((code, reason)) = news.closed
            && self.lives(id)
        {
            self.on_websocket_close(slot, at, code, &reason);
        }
        if self.lives(id) && (news.failed.is_some() || news.ended) {
            self.on_stream_ended(slot, at, news.failed)?;
        }
        match news.fault {
            Some(fault) => {
                // The close frame with the reason leaves before the connection ends.
                self.flush();
                Err(fault)
            }
            None => Ok(()),
        }
    }

    /// Sends the heartbeat that is due on the WebSocket in this slot.
    pub(super) fn beat(&mut self, slot: u32, now: Nanos) {
        let conn = &mut self.conns[slot as usize];
        let (id, due) = (conn.id, std::mem::replace(&mut conn.ping, Nanos::MAX));
        let Client::WebSocket(socket) = &mut conn.client else { return };
        let Some(step) = socket.ruled_by else { return };
        let handler = &self.steps.handlers[step as usize];
        let Some(session) = self.iterations.sessions.get_mut(socket.owner) else { return };
        let source = (self.shard.index, self.clock.unix_ns());
        let room = &mut self.buffers.messages;
        let Some(rules) = rules_of(id, handler, session, source, &mut self.content, room) else { return };
        self.buffers.control.clear();
        let bytes = socket.beat(rules, &mut self.buffers.control);
        if let Some(every) = handler.heartbeat().filter(|_| socket.is_open()) {
            // After a stall of this thread the ones that are missing are not made up for.
            conn.ping = if due + every > now { due + every } else { now + every };
        }
        if bytes > 0 && self.counts_messages(now) {
            let record = &mut self.records.measured.connections.websocket;
            record.messages_sent += 1;
            record.bytes_sent += bytes;
        }
        self.write_control(slot);
    }

    /// Returns `true` if messages that come or go by themselves at an instant belong to the measured part.
    fn counts_messages(&self, at: Nanos) -> bool {
        at >= self.clock.measure && at <= self.clock.end
    }

    /// The answer to an upgrade is an ordinary response: it is read and judged as any other, and the
    /// connection ends with it.
    fn receive_refusal(&mut self, id: ConnId, at: Nanos, held: Vec<u8>, data: Chunk) -> Result<(), Fault> {
        let conn = &mut self.conns[id.slot()];
        conn.client = Client::InTurn(InTurn::Http1(Default::default()));
        conn.take_no_more();
        self.records.measured.connections.websocket.refused += 1;
        self.buffers.plain = held;
        self.receive_in_turn(id, at, true, data)
    }

    /// HTTP/2: the server's settings came.
    fn on_settings(&mut self, slot: u32, at: Nanos) -> Result<(), Fault> {
        let Client::WebSocket(socket) = &self.conns[slot as usize].client else { return Ok(()) };
        if !socket.is_offered() {
            let reason = "the server takes no WebSockets over HTTP/2 (no SETTINGS_ENABLE_CONNECT_PROTOCOL)";
            return Err(Fault::new(ErrorClass::WrongProtocol, reason.to_owned()));
        }
        self.on_open(slot, at);
        Ok(())
    }

    /// HTTP/2: the server's answer opens no stream. It is judged as any other, and the connection ends with
    /// it.
    fn on_stream_refused(&mut self, slot: u32, at: Nanos, response: Response) {
        self.records.measured.connections.websocket.refused += 1;
        let conn = &mut self.conns[slot as usize];
        conn.take_no_more();
        let ticket = conn.requests.oldest();
        let Client::WebSocket(socket) = &conn.client else { return };
        let Some(request) = conn.requests.nth_mut(0) else { return };
        request.first_byte = request.first_byte.min(at);
        if !request.is_given_up() {
            if request.capture == NO_CAPTURE {
                request.capture = self.exchanges.captures.begin();
            }
            let captured = self.exchanges.captures.get_mut(request.capture);
            let needs = &self.steps.needs[request.step as usize];
            socket.each_header(|name, value| captured.keep(&needs.fields, name, value));
            captured.body.extend_from_slice(socket.refusal());
        }
        let Response { status, wire_bytes, .. } = response;
        self.on_response(slot, ticket, at, Reply { status, wire_bytes, keep_alive: false, is_good: false });
    }

    /// HTTP/2: the stream has ended, and with it its connection.
    fn on_stream_ended(&mut self, slot: u32, at: Nanos, failure: Option<StreamFailure>) -> Result<(), Fault> {
        let Client::WebSocket(socket) = &self.conns[slot as usize].client else { return Ok(()) };
        let was_opened = socket.was_opened();
        let Some(failure) = failure else {
            self.on_websocket_dropped(slot, at);
            return Ok(());
        };
        let (class, reason) = self.name_failure(failure);
        self.records.measured.connections.websocket.dropped += u64::from(was_opened);
        let class = if was_opened { ErrorClass::WebSocketDropped } else { class };
        Err(Fault::new(class, reason))
    }

    fn on_websocket_open(&mut self, slot: u32, at: Nanos, opening: &Opening) {
        let conn = &mut self.conns[slot as usize];
        let id = conn.id;
        self.records.measured.connections.websocket.opened += 1;
        let ticket = conn.requests.oldest();
        let Some(request) = conn.requests.nth_mut(0) else { return };
        request.first_byte = request.first_byte.min(at);
        let needs = &self.steps.needs[request.step as usize];
        if needs.fields != FieldNeeds::Nothing && !request.is_given_up() {
            if request.capture == NO_CAPTURE {
                request.capture = self.exchanges.captures.begin();
            }
            let captured = self.exchanges.captures.get_mut(request.capture);
            let mut keep = |name: &[u8], value: &[u8]| captured.keep(&needs.fields, name, value);
            match (opening, &conn.client) {
                (Opening::Upgrade(handshake, _), _) => {
                    handshake.each_header(|name, value| keep(name.as_bytes(), value));
                }
                (Opening::Stream(_), Client::WebSocket(socket)) => socket.each_header(keep),
                (Opening::Stream(_), _) => {}
            }
        }
        let (status, wire_bytes) = match *opening {
            Opening::Upgrade(_, head_bytes) => (101, head_bytes),
            Opening::Stream(Response { status, wire_bytes, .. }) => (status, wire_bytes),
        };
        let every = self.steps.handlers[request.step as usize].heartbeat();
        conn.ping = every.map_or(Nanos::MAX, |every| at + every);
        let reply = Reply { status, wire_bytes, keep_alive: true, is_good: false };
        self.on_response(slot, ticket, at, reply);
        if !self.lives(id) {
            return;
        }
        if every.is_some() {
            self.arm(slot);
        }
        if let Client::WebSocket(socket) = &self.conns[slot as usize].client
            && socket.owner == NO_SESSION
        {
            self.iterations.unlinked.push(id);
        }
    }

    /// Gives the messages that have come to the step that awaits one, until it has one or there are none.
    /// Messages stay while no step awaits any.
    fn deliver(&mut self, id: ConnId) {
        let slot = id.slot() as u32;
        while self.lives(id) {
            let conn = &mut self.conns[slot as usize];
            let Client::WebSocket(socket) = &mut conn.client else { return };
            let ticket = conn.requests.oldest();
            let Some(request) = conn.requests.nth_mut(0) else { return };
            let step = request.step as usize;
            let action = self.plan.steps[step].request.websocket();
            if request.sent == AT_SEND {
                if action.is_some_and(|action| action != WebSocketAction::Receive && action.awaits()) {
                    // It came before what it would answer was sent.
                    socket.inbox().skip_all();
                }
                return;
            }
            if !action.is_some_and(WebSocketAction::awaits) {
                return;
            }
            let Some((message, at)) = socket.inbox().first() else { return };
            let received = Received::new(MESSAGE, &self.exchanges.no_fields, message);
            let session = match self.iterations.sessions.get_mut(request.session) {
                Some(session) => &mut session.state,
                None => &mut self.exchanges.no_session,
            };
            if !self.steps.handlers[step].is_awaited(&received, session) {
                socket.inbox().skip();
                continue;
            }
            if self.steps.handlers[step].has_stamp()
                && let Some(stamp) = self.steps.handlers[step].stamp(&received, session)
                && request.measured
            {
                let lag = self.clock.unix(at).since(stamp);
                self.records.measured.record_lag(step as u32, lag);
            }
            let wire_bytes = message.len() as u64;
            if self.steps.needs[step].body {
                if request.capture == NO_CAPTURE {
                    request.capture = self.exchanges.captures.begin();
                }
                self.exchanges.captures.get_mut(request.capture).body.extend_from_slice(message);
            }
            socket.inbox().take();
            let at = match action {
                // It may have come before the step began.
                Some(WebSocketAction::Receive) => at.max(request.sent + Nanos(1)),
                _ => at,
            };
            request.first_byte = at;
            let reply = Reply { status: MESSAGE, wire_bytes, keep_alive: true, is_good: false };
            self.on_response(slot, ticket, at, reply);
        }
    }

    /// The server has sent a close frame.
    fn on_websocket_close(&mut self, slot: u32, at: Nanos, code: Option<u16>, reason: &str) {
        let conn = &mut self.conns[slot as usize];
        let Client::WebSocket(socket) = &mut conn.client else { return };
        let ticket = conn.requests.oldest();
        if socket.is_closing() {
            if let Some(request) = conn.requests.nth_mut(0) {
                request.first_byte = at;
                let reply = Reply { status: MESSAGE, wire_bytes: 2, keep_alive: false, is_good: false };
                self.on_response(slot, ticket, at, reply);
            } else {
                self.release(slot, Some(Close::Now));
            }
            return;
        }
        self.buffers.control.clear();
        socket.close(code.unwrap_or(NORMAL), &mut self.buffers.control);
        let idle = conn.requests.is_empty();
        self.write_control(slot);
        self.flush();
        let code = code.map_or_else(|| "without a status".to_owned(), |code| format!("with {code}"));
        let said = if reason.is_empty() { String::new() } else { format!(": {}", reason.escape_debug()) };
        self.note_error(
            ErrorClass::WebSocketClosed,
            &format!("the server closed the WebSocket {code}{said}"),
        );
        let connections = &mut self.records.measured.connections;
        connections.websocket.closed_by_server += 1;
        connections.closed_idle += u64::from(idle);
        self.break_off(slot, ErrorClass::WebSocketClosed, Some(Close::AfterSend), at);
    }

    /// The connection of a WebSocket has ended, and no close frame had come.
    pub(super) fn on_websocket_dropped(&mut self, slot: u32, at: Nanos) {
        let conn = &self.conns[slot as usize];
        let Client::WebSocket(socket) = &conn.client else { return };
        let (class, place) = match (socket.was_opened(), socket.is_in_message()) {
            (true, true) => (ErrorClass::WebSocketDropped, "in the middle of a message"),
            (true, false) => (ErrorClass::WebSocketDropped, "without a close frame"),
            (false, true) => (ErrorClass::ClosedInResponse, "in the middle of its answer to the upgrade"),
            (false, false) => (ErrorClass::ClosedBeforeResponse, "before its answer to the upgrade"),
        };
        let connections = &mut self.records.measured.connections;
        connections.websocket.dropped += u64::from(socket.was_opened());
        if conn.requests.is_empty() {
            connections.closed_idle += 1;
        }
        self.note_error(class, &format!("the server closed the connection {place}"));
        self.break_off(slot, class, Some(Close::Now), at);
    }

    /// Notes that the WebSocket in this slot ends: its iteration cannot use it any more.
    pub(super) fn unlink_websocket(&mut self, slot: u32, class: ErrorClass) {
        let conn = &self.conns[slot as usize];
        let Client::WebSocket(socket) = &conn.client else { return };
        if let Some(session) = self.iterations.sessions.get_mut(socket.owner)
            && session.link == Some(conn.id)
        {
            session.link = None;
            session.lost = Some(class);
        }
    }

    /// Counts the messages on the WebSocket in this slot that no step has awaited, those that wait included:
    /// it has ended, or the run has.
    pub(super) fn count_skipped(&mut self, slot: u32) {
        let Client::WebSocket(socket) = &mut self.conns[slot as usize].client else { return };
        socket.inbox().skip_all();
        self.records.measured.connections.websocket.skipped += socket.take_skipped();
    }

    /// Ends steps that wait for no message, and gives those that do the messages that came before them. It
    /// follows a flush.
    pub(super) fn settle_websockets(&mut self) {
        if !self.websockets.are_due() {
            return;
        }
        for id in std::mem::take(&mut self.websockets.settling) {
            if !self.lives(id) {
                continue;
            }
            let slot = id.slot() as u32;
            let is_waiting = |request: &mut InFlight| request.sent == AT_SEND;
            if self.conns[slot as usize].requests.nth_mut(0).is_some_and(is_waiting) {
                self.flush();
            }
            let conn = &mut self.conns[slot as usize];
            let ticket = conn.requests.oldest();
            let Some(request) = conn.requests.nth_mut(0) else { continue };
            match self.plan.steps[request.step as usize].request.websocket() {
                Some(WebSocketAction::Send { answered: false, .. }) => {
                    let at = self.clock.now.max(request.sent + Nanos(1));
                    // It says nothing about the target.
                    self.batch.observed = true;
                    let reply = Reply { status: MESSAGE, wire_bytes: 0, keep_alive: true, is_good: true };
                    self.on_response(slot, ticket, at, reply);
                }
                _ => self.deliver(id),
            }
        }
        self.flush();
    }

    /// Closes the WebSockets of iterations that have ended.
    pub(super) fn close_unlinked(&mut self) {
        if self.iterations.unlinked.is_empty() {
            return;
        }
        let unlinked = std::mem::take(&mut self.iterations.unlinked);
        for id in unlinked.iter().filter(|id| self.lives(**id)).copied().collect::<Vec<_>>() {
            self.say_goodbye(id.slot() as u32, NORMAL);
        }
        self.flush();
        for id in unlinked {
            if self.lives(id) && matches!(self.conns[id.slot()].client, Client::WebSocket(_)) {
                self.release(id.slot() as u32, Some(Close::AfterSend));
            }
        }
    }

    /// Leaves all WebSockets at the end of the run.
    pub(super) fn leave_websockets(&mut self) {
        for slot in 0..self.conns.len() as u32 {
            if self.conns[slot as usize].state == State::Open {
                self.say_goodbye(slot, GOING_AWAY);
            }
        }
        self.flush();
    }

    fn say_goodbye(&mut self, slot: u32, code: u16) {
        let conn = &mut self.conns[slot as usize];
        let Client::WebSocket(socket) = &mut conn.client else { return };
        self.buffers.control.clear();
        socket.close(code, &mut self.buffers.control);
        self.write_control(slot);
    }
}
