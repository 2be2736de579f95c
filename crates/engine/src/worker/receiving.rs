//! Receiving: events of the driver become responses, or faults.

use plimsoll_core::{ErrorClass, Nanos};
use plimsoll_driver::{Backend, Chunk, Close, ConnId, Event, SystemError};
use plimsoll_scenario::{Received, Verdict};
use plimsoll_wire::http2;

use super::connecting::of_connecting;
use super::{EVENTS_PER_PASS, LONGEST_WAIT, Worker};
use crate::connection::{Client, Fault, Keeping, Recorders, Reply, State};
use crate::pacing::Awaiting;
use crate::request::{InFlight, Intent, Loss};

/// The way in which a peer ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// The peer had announced the end by TLS's close_notify.
    Announced,
    /// The peer ended the stream without an announcement.
    Silent,
}

impl<B: Backend> Worker<'_, B> {
    pub(super) fn handle_events(&mut self) {
        self.clock.now = self.io.now();
        let began = self.clock.now;
        self.batch.begin();
        let mut left = EVENTS_PER_PASS;
        while let Some(event) = self.io.next_event() {
            left -= 1;
            // A script may take its time for each.
            self.batch.more = left == 0 || self.clock.now.since(began) > LONGEST_WAIT;
            self.failures.forget_reason();
            match event {
                Event::Received { conn, at, stamped, data } => {
                    if self.lives(conn) {
                        self.on_received(conn, at, stamped, data);
                    }
                }
                Event::Connected { conn, at } => {
                    if self.lives(conn) {
                        self.on_connected(conn.slot() as u32, at);
                    }
                }
                Event::ConnectFailed { conn, at, error } => {
                    if self.lives(conn) {
                        self.on_connect_failed(conn.slot() as u32, at, error);
                    }
                }
                Event::Closed { conn, at } => {
                    if self.lives(conn) {
                        self.on_closed(conn.slot() as u32, at, Ending::Silent);
                    }
                }
                Event::Failed { conn, at, error } => {
                    if self.lives(conn) {
                        self.on_failed(conn.slot() as u32, at, error);
                    }
                }
                Event::Accepted { conn, .. } => self.io.close(conn, Close::Now),
            }
            if self.batch.more {
                return;
            }
        }
    }

    pub(super) fn on_received(&mut self, id: ConnId, at: Nanos, stamped: bool, data: Chunk) {
        let slot = id.slot() as u32;
        let lag = self.clock.now.since(at);
        self.batch.receive(stamped, lag);
        let conn = &mut self.conns[slot as usize];
        conn.heard = at;
        let (secured, pool) = (conn.tls.is_some(), conn.pool);
        let mut over = false;
        let mut decoded = Ok(());
        if secured {
            match self.decrypt(slot, at, data) {
                Ok(closed) => over = closed,
                Err(fault) => decoded = Err(fault),
            }
            if !self.lives(id) {
                return;
            }
        }
        // Events of a stream come before the end of its request.
        if self.steps.has_streams {
            self.counts.note_part(at);
        }
        if decoded.is_ok() {
            if self.misbehaviour.is_some() && self.breaks_off_response(slot, at) {
                return;
            }
            decoded = match &self.conns[slot as usize].client {
                Client::Undecided => Ok(()),
                Client::Tunnel(_) => return self.receive_tunnel(id, (at, stamped), data),
                Client::InTurn(_) => self.receive_in_turn(id, at, secured, data),
                Client::Http2(_) => self.receive_http2(id, at, secured, data),
                Client::WebSocket(_) => self.receive_websocket(id, at, secured, data),
            };
            self.pacer.received(self.batch.responses);
            if self.batch.responses > 0 {
                self.pools[pool as usize].awaiting.received(stamped);
            }
            let by_stamp = self.batch.by_stamp();
            self.records.worker.stamped += by_stamp;
            self.records.worker.receive_lag.record_many(lag.0, by_stamp);
            self.records.worker.unstamped += self.batch.responses - by_stamp;
        }
        if let Err(fault) = decoded {
            if self.lives(id) {
                self.on_fault(slot, at, &fault);
            } else {
                self.note_fault(&fault);
                self.records.measured.connections.failed[fault.class] += 1;
            }
        } else if over && self.lives(id) {
            self.on_closed(slot, at, Ending::Announced);
        }
    }

    pub(super) fn receive_in_turn(
        &mut self,
        id: ConnId,
        at: Nanos,
        secured: bool,
        data: Chunk,
    ) -> Result<(), Fault> {
        let slot = id.slot() as u32;
        let mut completed = std::mem::take(&mut self.buffers.completed);
        let mut bytes = if secured { self.buffers.plain.as_slice() } else { self.io.bytes(data) };
        let conn = &mut self.conns[slot as usize];
        if let (State::Greeting, Client::InTurn(client)) = (conn.state, &mut conn.client) {
            let is_open = client.open(&mut bytes);
            self.buffers.completed = completed;
            if is_open? {
                if !bytes.is_empty() {
                    let reason = format!("{} bytes that no request had asked for", bytes.len());
                    return Err(Fault::new(ErrorClass::UnsolicitedData, reason));
                }
                self.on_open(slot, at);
            }
            return Ok(());
        }
        let (facts, handlers, no_session) =
            (&self.steps.facts, &self.steps.handlers, &mut self.exchanges.no_session);
        let mut is_good = |step: usize, status: u16, body: &[u8]| {
            if !(200..300).contains(&status) || facts[step].traced {
                return false;
            }
            if facts[step].status_alone {
                return handlers[step].accepts(status).is_ok();
            }
            let received = Received::new(status, &self.exchanges.no_fields, body);
            facts[step].body_alone && handlers[step].apply(&received, no_session) == Ok(Verdict::Settled)
        };
        let keeps = self.exchanges.keeps || self.steps.judges_bodies;
        let mut keeping = Keeping {
            memos: &mut self.steps.memos,
            needs: &self.steps.needs,
            captures: &mut self.exchanges.captures,
            streams: &self.steps.streams,
            behind: self.batch.behind,
            recorders: Recorders { measured: &mut self.records.measured, warmup: &mut self.records.warmup },
            is_good: if keeps && !self.exchanges.keeps_good { Some(&mut is_good) } else { None },
            content: &mut self.buffers.content,
        };
        let decoded = conn.decode_in_turn(self.plan, &mut keeping, bytes, at, &mut completed);
        if decoded.is_err() {
            conn.take_no_more();
        }
        let is_batch = completed.len() > 1;
        if is_batch {
            self.outgoing.begin_answers(slot);
        }
        for done in completed.drain(..) {
            // A response may have ended the connection, and its slot may have a new one by now.
            if !self.lives(id) {
                break;
            }
            let ticket = self.conns[slot as usize].requests.oldest();
            if let Some(refusal) = &done.refusal {
                let class = match done.reply.status {
                    400..500 => ErrorClass::Status4xx,
                    _ => ErrorClass::Status5xx,
                };
                self.note_error(class, refusal);
            }
            self.on_response(slot, ticket, at, done.reply);
        }
        self.buffers.completed = completed;
        if is_batch {
            self.outgoing.end_answers();
            self.flush_if_full(slot);
        }
        decoded
    }

    fn receive_http2(&mut self, id: ConnId, at: Nanos, secured: bool, data: Chunk) -> Result<(), Fault> {
        let slot = id.slot() as u32;
        let mut events = std::mem::take(&mut self.buffers.events);
        self.buffers.control.clear();
        let bytes = if secured { self.buffers.plain.as_slice() } else { self.io.bytes(data) };
        let conn = &mut self.conns[slot as usize];
        let Client::Http2(client) = &mut conn.client else { return Ok(()) };
        let decoded = client.receive(bytes, &mut self.buffers.control, &mut events).map_err(Fault::from);
        if decoded.is_err() {
            conn.take_no_more();
        }
        self.write_control(slot);
        self.note_barred(slot);
        for event in events.drain(..) {
            if !self.lives(id) {
                break;
            }
            self.on_http2(slot, at, event);
        }
        self.buffers.events = events;
        if !self.buffers.enough.is_empty() {
            self.end_sated(id, at);
        }
        if self.lives(id) {
            // The server may have raised its limit.
            self.list(slot);
        }
        decoded
    }

    /// Decrypts into `plain`; whether the peer said that nothing more comes.
    fn decrypt(&mut self, slot: u32, at: Nanos, data: Chunk) -> Result<bool, Fault> {
        let conn = &mut self.conns[slot as usize];
        let Some(tls) = &mut conn.tls else { return Ok(false) };
        self.buffers.plain.clear();
        let received = tls.session.receive(self.io.bytes(data), &mut self.buffers.plain);
        // Output of the session itself; after an error, the alert for the peer.
        self.buffers.control.clear();
        tls.session.transmit(&mut self.buffers.control);
        if !self.buffers.control.is_empty() {
            self.io.outbox(conn.id).extend_from_slice(&self.buffers.control);
        }
        match received {
            Ok(received) => {
                if received.handshake_done_now {
                    self.on_secured(slot, at);
                }
                Ok(received.closed)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Handles one event of HTTP/2.
    #[inline]
    fn on_http2(&mut self, slot: u32, at: Nanos, event: http2::Event) {
        match event {
            http2::Event::Ready => {
                if self.conns[slot as usize].state == State::Greeting {
                    self.on_open(slot, at);
                }
            }
            http2::Event::Head { ticket, fields } => self.on_head(slot, ticket, fields),
            http2::Event::Began { ticket } => {
                if let Some(request) = self.conns[slot as usize].requests.get_mut(ticket) {
                    request.first_byte = request.first_byte.min(at);
                    if request.intent == Intent::CutResponse {
                        self.abort_later(slot, ticket);
                    }
                }
            }
            http2::Event::Content { ticket, status } => self.on_content(slot, ticket, status, at),
            http2::Event::Response { ticket, response } => {
                let http2::Response { status, wire_bytes, .. } = response;
                let reply = Reply { status, wire_bytes, keep_alive: true, is_good: false };
                self.keep_body(slot, ticket, status);
                self.on_response(slot, ticket, at, reply);
            }
            http2::Event::Failed { ticket, failure } => self.on_stream_failed(slot, ticket, at, failure),
            http2::Event::GoAway { code, .. } => {
                *self.records.measured.connections.http2.go_aways.entry(code.name().into()).or_default() += 1;
                self.mark_draining(slot);
            }
            http2::Event::Pong { payload } => {
                let time = at.since(Nanos(payload));
                self.records.measured.connections.http2.ping_time.record(time.0);
            }
        }
    }

    /// Names the failure of a stream, and counts resets and violations.
    pub(super) fn name_failure(&mut self, failure: http2::StreamFailure) -> (ErrorClass, String) {
        use http2::StreamFailure as Failure;
        let resets = &mut self.records.measured.connections.http2.resets;
        match failure {
            Failure::Refused => {
                *resets.entry(http2::ErrorCode::RefusedStream.name().into()).or_default() += 1;
                (ErrorClass::StreamRefused, "the server refused the stream (REFUSED_STREAM)".to_owned())
            }
            Failure::Reset(code) => {
                *resets.entry(code.name().into()).or_default() += 1;
                (ErrorClass::StreamReset, format!("the server reset the stream ({})", code.name()))
            }
            Failure::Unprocessed => {
                let reason = "the server went away (GOAWAY) without processing the request";
                (ErrorClass::GoAway, reason.to_owned())
            }
            Failure::Malformed(reason) => {
                let violations = &mut self.records.measured.connections.http2.violations;
                *violations.entry(http2::ErrorCode::ProtocolError.name().into()).or_default() += 1;
                (ErrorClass::Protocol, format!("malformed response: {reason}"))
            }
            Failure::HeadTooLarge => {
                (ErrorClass::HeadTooLarge, "the response's header list is beyond the limit".to_owned())
            }
        }
    }

    fn on_stream_failed(&mut self, slot: u32, ticket: u32, at: Nanos, failure: http2::StreamFailure) {
        let (class, reason) = self.name_failure(failure);
        let waits = |request: &mut InFlight| request.is_unsent();
        if self.conns[slot as usize].requests.get_mut(ticket).is_some_and(waits) {
            // Its bytes are in the outbox, and will leave in any case.
            self.flush();
        }
        let conn = &mut self.conns[slot as usize];
        let pool = conn.pool;
        let Some(request) = conn.requests.take(ticket) else { return };
        if let Client::Http2(client) = &mut conn.client {
            client.reuse(ticket);
        }
        let unprocessed = matches!(class, ErrorClass::GoAway | ErrorClass::StreamRefused);
        if unprocessed && self.may_resend(&request, true) {
            self.resend(pool, &request, Loss::Unprocessed);
        } else {
            self.note_error(class, &reason);
            self.failures.blamed = Some(slot);
            self.fail(pool, &request, class, 0, at);
        }
        self.finish_request(slot);
    }

    /// Takes no more requests on this connection, and closes it when those on it have ended.
    pub(super) fn mark_draining(&mut self, slot: u32) {
        let conn = &mut self.conns[slot as usize];
        if conn.state.is_early() {
            // Nothing was sent on the connection.
            self.break_off(slot, ErrorClass::GoAway, Some(Close::Now), self.clock.now);
            return;
        }
        conn.state = State::Draining;
        self.finish_request(slot);
    }

    /// After the end of a request: closes a connection that was waiting for it, or offers its room.
    pub(super) fn finish_request(&mut self, slot: u32) {
        let conn = &self.conns[slot as usize];
        if conn.state == State::Draining {
            if conn.requests.iter().all(InFlight::is_given_up) {
                self.release(slot, Some(Close::Now));
            }
        } else if conn.state == State::Open && conn.is_spent(self.plan.connections.max_requests) {
            self.release(slot, Some(Close::Now));
        } else {
            self.list(slot);
        }
    }

    fn note_fault(&mut self, fault: &Fault) {
        self.note_error(fault.class, &fault.reason);
        let known = &mut self.records.measured.connections.tls_hint;
        *known = known.take().or(fault.hint.map(Into::into));
        self.records.measured.connections.unsolicited +=
            u64::from(fault.class == ErrorClass::UnsolicitedData);
        if let Some(code) = fault.code {
            *self.records.measured.connections.http2.violations.entry(code.into()).or_default() += 1;
        }
    }

    /// The peer broke the rules of TLS or HTTP.
    pub(super) fn on_fault(&mut self, slot: u32, at: Nanos, fault: &Fault) {
        let conn = &self.conns[slot as usize];
        let (state, idle) = (conn.state, conn.requests.is_empty());
        let early = state.is_early();
        self.note_fault(fault);
        if early || idle {
            self.records.measured.connections.failed[fault.class] += 1;
        }
        // Sends the peer the reason, as an alert or a GOAWAY.
        let tells = state == State::Handshaking || fault.code.is_some();
        if tells {
            self.flush();
        }
        let how = if tells { Close::AfterSend } else { Close::Now };
        self.break_off(slot, fault.class, Some(how), at);
    }

    fn on_connect_failed(&mut self, slot: u32, at: Nanos, error: SystemError) {
        let class = of_connecting(error.class());
        let conn = &self.conns[slot as usize];
        let pool = &self.pools[conn.pool as usize];
        let to = match &pool.origin {
            _ if pool.server.proxy.is_some() => " to the proxy".to_owned(),
            // The plan does not name it.
            Some(origin) => format!(" to `{}`", origin.authority()),
            None => String::new(),
        };
        self.connect_failed(class, &format!("connect{to}: {error}"));
        self.break_off(slot, class, None, at);
    }

    fn on_closed(&mut self, slot: u32, at: Nanos, ending: Ending) {
        let conn = &mut self.conns[slot as usize];
        let early = match conn.state {
            State::Tunnelling => Some((ErrorClass::Proxy, "the proxy", "before there was a tunnel")),
            State::Handshaking => Some((ErrorClass::Tls, "the server", "during the TLS handshake")),
            // Perhaps it does not speak HTTP/2; perhaps it has too much to do.
            State::Greeting => {
                let when = match conn.client {
                    Client::InTurn(_) => "before it had answered the opening of the connection",
                    _ => "before its HTTP/2 settings",
                };
                Some((ErrorClass::ClosedBeforeResponse, "the server", when))
            }
            _ => None,
        };
        if let Some((class, who, when)) = early {
            let fault = Fault::new(class, format!("{who} closed the connection {when}"));
            self.on_fault(slot, at, &fault);
            return;
        }
        if matches!(conn.client, Client::WebSocket(_)) {
            self.on_websocket_dropped(slot, at);
            return;
        }
        let id = conn.id;
        let may_be_cut = conn.tls.is_some() && ending == Ending::Silent;
        let ended = match &mut conn.client {
            Client::InTurn(client) => client.finish(),
            Client::Http2(_) | Client::WebSocket(_) | Client::Tunnel(_) | Client::Undecided => Ok(None),
        };
        let mut class = ErrorClass::ClosedBeforeResponse;
        match ended {
            Ok(Some(_)) if may_be_cut => {
                class = ErrorClass::TlsTruncated;
                let reason = "the server closed without TLS's close_notify, so that its body without a length may \
                              have been cut short";
                self.note_error(class, reason);
            }
            Ok(Some(reply)) => {
                let (ticket, pool) = (conn.requests.oldest(), conn.pool);
                self.pools[pool as usize].awaiting = Awaiting::always();
                self.keep_last_head(slot, ticket);
                self.on_response(slot, ticket, at, reply);
                if !self.lives(id) {
                    return;
                }
            }
            Ok(None) if conn.requests.is_empty() => self.records.measured.connections.closed_idle += 1,
            Ok(None) => {
                let multiplexed = matches!(conn.client, Client::Http2(_));
                if multiplexed && conn.requests.iter().any(|request| request.first_byte != Nanos::MAX) {
                    class = ErrorClass::ClosedInResponse;
                }
                let place = if class == ErrorClass::ClosedInResponse { "in the middle of" } else { "before" };
                self.note_broken(slot, class, &format!("the server closed {place} its response"));
            }
            Err(truncated) => {
                // Interim responses do not count: after them alone the response has not begun.
                class = truncated.class();
                let place = if truncated.started { "in the middle of" } else { "before" };
                self.note_broken(slot, class, &format!("the server closed {place} its response"));
            }
        }
        self.break_off(slot, class, Some(Close::Now), at);
    }

    fn on_failed(&mut self, slot: u32, at: Nanos, error: SystemError) {
        let conn = &self.conns[slot as usize];
        if conn.state == State::Tunnelling {
            let reason = format!("the proxy broke off before there was a tunnel: {error}");
            self.on_fault(slot, at, &Fault::new(ErrorClass::Proxy, reason));
            return;
        }
        let class = match error.class() {
            ErrorClass::Reset => ErrorClass::Reset,
            _ => ErrorClass::Io,
        };
        if conn.requests.is_empty() {
            self.records.measured.connections.closed_idle += 1;
        } else {
            self.note_broken(slot, class, &error.to_string());
        }
        self.break_off(slot, class, Some(Close::Now), at);
    }
}
