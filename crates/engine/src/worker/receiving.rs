//! Receiving: events of the driver become responses, redirects, or faults.

use plimsoll_core::{ErrorClass, Nanos, Outcome};
use plimsoll_driver::{Backend, Chunk, Close, Event, SystemError};
use plimsoll_plan::Load;
use plimsoll_scenario::Context;

use super::connecting::of_connecting;
use super::{EVENTS_PER_PASS, Worker};
use crate::connection::{AT_SEND, Completed, Fault, InFlight, State};

impl<B: Backend> Worker<'_, B> {
    pub(super) fn handle_events(&mut self) {
        self.now = self.io.now();
        self.more = false;
        self.observed = false;
        let mut left = EVENTS_PER_PASS;
        while let Some(event) = self.io.next_event() {
            left -= 1;
            self.more = left == 0;
            match event {
                Event::Received { conn, at, stamped, data } => {
                    if self.lives(conn) {
                        self.on_received(conn.slot() as u32, at, stamped, data);
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
                        self.on_closed(conn.slot() as u32, at);
                    }
                }
                Event::Failed { conn, at, error } => {
                    if self.lives(conn) {
                        self.on_failed(conn.slot() as u32, at, error);
                    }
                }
                Event::Accepted { conn, .. } => self.io.close(conn, Close::Now),
            }
            if self.more {
                return;
            }
        }
    }

    pub(super) fn on_received(&mut self, slot: u32, at: Nanos, stamped: bool, data: Chunk) {
        let conn = &mut self.conns[slot as usize];
        let id = conn.id;
        let bytes = self.io.bytes(data);
        let received = bytes.len() as u64;
        let mut completed = std::mem::take(&mut self.completed);
        let mut closed_by_tls = false;
        let decoded = if let Some(tls) = &mut conn.tls {
            self.plain.clear();
            match tls.receive(bytes, &mut self.plain) {
                Ok(outcome) => {
                    closed_by_tls = outcome.closed;
                    self.rendered.clear();
                    tls.transmit(&mut self.rendered);
                    if !self.rendered.is_empty() {
                        self.io.outbox(conn.id).extend_from_slice(&self.rendered);
                    }
                    if outcome.handshake_done_now {
                        self.on_open(slot, at);
                    }
                    let conn = &mut self.conns[slot as usize];
                    conn.decode(self.plan, &mut self.memos, &self.plain, at, &mut completed)
                }
                Err(error) => {
                    // The alert that tells the peer.
                    tls.transmit(self.io.outbox(conn.id));
                    Err(Fault { class: ErrorClass::Tls, reason: error.to_string() })
                }
            }
        } else {
            conn.decode(self.plan, &mut self.memos, bytes, at, &mut completed)
        };
        if stamped {
            self.record.stamped += 1;
        } else {
            self.record.unstamped += 1;
        }
        if !self.observed
            && let Some(request) = self.conns[slot as usize].requests.get_mut(0)
            && request.sent != AT_SEND
        {
            self.observed = true;
            let cycle = self.now.since(request.sent);
            self.pacer.observe(cycle, stamped, received);
        }
        if decoded.is_err() && self.conns[slot as usize].state == State::Open {
            // What follows a fault is nobody's response: no new request may be put on this connection.
            self.conns[slot as usize].state = State::Doomed;
        }
        for done in completed.drain(..) {
            self.on_response(slot, at, done);
        }
        self.completed = completed;
        // A response may have ended the connection, and its slot may have a new one by now.
        let alive = self.lives(id);
        match decoded {
            Err(fault) if alive => self.on_fault(slot, at, &fault),
            Err(fault) => {
                self.note_error(fault.class, &fault.reason);
                self.recorder.connections.failed[fault.class as usize] += 1;
            }
            Ok(()) if alive && closed_by_tls => self.on_closed(slot, at),
            _ => {}
        }
    }

    /// The peer broke the rules of TLS or HTTP.
    pub(super) fn on_fault(&mut self, slot: u32, at: Nanos, fault: &Fault) {
        let conn = &self.conns[slot as usize];
        let handshake = conn.state == State::Handshaking;
        let idle = conn.requests.is_empty();
        self.note_error(fault.class, &fault.reason);
        if handshake || idle {
            self.recorder.connections.failed[fault.class as usize] += 1;
        }
        let how = if handshake { Close::AfterSend } else { Close::Now };
        self.break_off(slot, fault.class, Some(how), at);
    }

    pub(super) fn on_connect_failed(&mut self, slot: u32, at: Nanos, error: SystemError) {
        let class = of_connecting(error.class());
        self.connect_failed(class, &format!("connect: {error}"));
        self.break_off(slot, class, None, at);
    }

    pub(super) fn on_closed(&mut self, slot: u32, at: Nanos) {
        let conn = &mut self.conns[slot as usize];
        if conn.state == State::Handshaking {
            let fault = Fault {
                class: ErrorClass::Tls,
                reason: "the server closed the connection during the TLS handshake".to_owned(),
            };
            self.on_fault(slot, at, &fault);
            return;
        }
        let id = conn.id;
        match conn.client.finish() {
            Ok(Some(response)) => {
                self.on_response(slot, at, Completed { response, location: None });
                if !self.lives(id) {
                    return;
                }
                self.break_off(slot, ErrorClass::ClosedBeforeResponse, Some(Close::Now), at);
            }
            Ok(None) => {
                if conn.requests.is_empty() {
                    self.recorder.connections.closed_idle += 1;
                } else {
                    self.note_error(
                        ErrorClass::ClosedBeforeResponse,
                        "the server closed before its response",
                    );
                }
                self.break_off(slot, ErrorClass::ClosedBeforeResponse, Some(Close::Now), at);
            }
            Err(_) => {
                let reason = "the server closed in the middle of its response";
                self.note_error(ErrorClass::ClosedInResponse, reason);
                self.break_off(slot, ErrorClass::ClosedInResponse, Some(Close::Now), at);
            }
        }
    }

    pub(super) fn on_failed(&mut self, slot: u32, at: Nanos, error: SystemError) {
        let conn = &self.conns[slot as usize];
        let class = match error.class() {
            ErrorClass::Reset => ErrorClass::Reset,
            _ => ErrorClass::Io,
        };
        if conn.requests.is_empty() {
            self.recorder.connections.closed_idle += 1;
        } else {
            self.note_error(class, &error.to_string());
        }
        self.break_off(slot, class, Some(Close::Now), at);
    }

    /// A whole response came for the oldest request of the connection.
    pub(super) fn on_response(&mut self, slot: u32, at: Nanos, done: Completed) {
        let conn = &mut self.conns[slot as usize];
        let Some(mut request) = conn.requests.pop() else { return };
        let response = done.response;
        let max_requests = self.plan.connections.max_requests;
        let usable = conn.state == State::Open
            && response.keep_alive
            && self.plan.connections.keep_alive
            && max_requests.is_none_or(|max| conn.served < max || !conn.requests.is_empty());
        let (lane, doomed) = (conn.lane, conn.state == State::Doomed);
        if !usable {
            if conn.requests.is_empty() {
                self.release(slot, Some(Close::Now));
            } else if !response.keep_alive || !self.plan.connections.keep_alive {
                // The server answers nothing more on this connection.
                self.break_off(slot, ErrorClass::ClosedBeforeResponse, Some(Close::Now), at);
            } else if !doomed {
                self.conns[slot as usize].state = State::Doomed;
            }
        }
        if request.abandoned {
            self.close_if_idle_and_doomed(slot);
            return;
        }
        request.bytes_redirects += response.wire_bytes;
        if matches!(response.status, 301 | 302 | 303 | 307 | 308) && self.plan.redirects > 0 {
            // On a pipelined connection the redirect would wait behind other requests: it takes a new one.
            let here = usable && self.conns[slot as usize].requests.is_empty();
            self.on_redirect(slot, lane, here, request, &done, at);
            if usable {
                self.list(slot);
            }
            return;
        }
        let outcome = match response.status {
            0..400 => Outcome::Ok,
            400..500 => Outcome::Failed(ErrorClass::Status4xx),
            _ => Outcome::Failed(ErrorClass::Status5xx),
        };
        self.finish(&request, outcome, response.status, at);
        if matches!(self.plan.load, Load::Closed) {
            self.next_iteration(lane, usable.then_some(slot), at, self.now);
        } else if usable {
            self.list(slot);
        }
    }

    pub(super) fn close_if_idle_and_doomed(&mut self, slot: u32) {
        let conn = &self.conns[slot as usize];
        if conn.state == State::Doomed && conn.requests.iter().all(|request| request.abandoned) {
            self.conns[slot as usize].requests = Default::default();
            self.release(slot, Some(Close::Now));
        }
    }

    /// Follows a redirect within the authority, as a part of the same request.
    pub(super) fn on_redirect(
        &mut self,
        slot: u32,
        lane: u32,
        usable: bool,
        mut request: InFlight,
        done: &Completed,
        at: Nanos,
    ) {
        let status = done.response.status;
        let target = &self.plan.targets[self.lanes[lane as usize].target];
        let problem = match done.location.as_deref() {
            None => Some("a redirect without a location".to_owned()),
            Some(_) if request.redirects >= self.plan.redirects => {
                Some(format!("more than {} redirects in a row", self.plan.redirects))
            }
            Some(location) => match target.same_authority_path(location) {
                None => Some(format!("a redirect to another authority is not followed: {location}")),
                Some(path) => self.render_redirect(&request, path, status).err(),
            },
        };
        if let Some(reason) = problem {
            self.note_error(ErrorClass::Redirect, &reason);
            self.fail(lane, &request, ErrorClass::Redirect, status, at);
            return;
        }
        request.redirects += 1;
        request.bytes_sent += self.rendered.len() as u64;
        let conn = &mut self.conns[slot as usize];
        if usable {
            conn.requests.push(request);
            self.transmit_rendered(slot);
            return;
        }
        match self.open_connection(lane, self.now) {
            Ok(fresh) => {
                // The server closes after each response: the same request goes on over a new connection.
                let conn = &mut self.conns[fresh as usize];
                conn.prepared = Some(self.rendered.clone());
                conn.requests.push(request);
                self.arm(fresh);
            }
            Err(class) => self.fail(lane, &request, class, 0, at),
        }
    }

    /// Renders the request that follows a redirect into `rendered`.
    fn render_redirect(&mut self, request: &InFlight, path: &str, status: u16) -> Result<(), String> {
        let template = &self.plan.steps[request.step as usize].request;
        let next = template.redirected(path, status).map_err(|error| error.to_string())?;
        let unix_ns = self.now.0.wrapping_add(self.unix_offset);
        let context = Context { index: request.index, worker: self.shard.index, unix_ns };
        self.rendered.clear();
        next.render(&context, &mut self.random, &mut self.scratch, &mut self.rendered);
        if let Some(body) = next.shared_body() {
            self.rendered.extend_from_slice(body);
        }
        Ok(())
    }

    /// Writes `rendered`, a request that was made outside the templates.
    pub(super) fn transmit_rendered(&mut self, slot: u32) {
        let conn = &mut self.conns[slot as usize];
        conn.served += 1;
        // Not earlier: a connection that has to be opened for it may fail, and then the target does not get
        // it.
        let accounting = &mut self.counts.accounting;
        match conn.requests.last_mut() {
            Some(request) if request.measured => accounting.redirects_followed += 1,
            _ => accounting.unmeasured += 1,
        }
        let out = self.io.outbox(conn.id);
        match &mut conn.tls {
            None => out.extend_from_slice(&self.rendered),
            Some(tls) => tls.send(&self.rendered, out),
        }
    }
}
