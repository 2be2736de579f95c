//! Sending: requests are written into the outbox of their connection, and all outboxes are flushed together.

use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_driver::Backend;
use plimsoll_scenario::{Context, FieldNeeds, Needs, RequestTemplate};
use plimsoll_wire::http2::{self, Indexing, Payload, Submit};
use plimsoll_wire::length_prefixed::message_length;

use super::Worker;
use super::step_table::Facts;
use crate::capture::{Detour, NO_CAPTURE};
use crate::connection::{Client, InTurn};
use crate::request::{AT_SEND, InFlight, Intent, Requests};
use crate::supply;

/// Bytes of the head of an HTTP/2 frame.
const FRAME_HEAD: usize = 9;

/// Opens a stream, for a HEAD request or another, whole or cut behind its head: its ticket, and the bytes of
/// the request on the wire.
#[inline]
pub(super) fn submit(
    client: &mut http2::Client,
    (head_request, cut): (bool, bool),
    needs: &Needs,
    body: Payload<'_>,
    out: &mut Vec<u8>,
    head: impl FnOnce(&mut Indexing, &mut Vec<u8>),
) -> (u32, usize) {
    let (before, body_bytes, mut head_end) = (out.len(), body.len(), 0);
    let capture = needs.fields != FieldNeeds::Nothing;
    let spec = Submit { head_request, capture, keep_body: needs.body, tell_content: needs.events, body };
    let head = |indexing: &mut Indexing, out: &mut Vec<u8>| {
        head(indexing, out);
        head_end = out.len();
    };
    if cut {
        return (client.submit_cut(spec, head, out), out.len() - before);
    }
    let ticket = match needs.in_turn && !body.is_empty() {
        true => client.submit_part(spec, message_length(body.bytes()), head, out),
        false => client.submit(spec, head, out),
    };
    // Bytes that the windows hold back follow later and still belong to the request: the content, and at
    // least one more frame's head.
    let held_back = body_bytes.saturating_sub(out.len() - head_end);
    (ticket, out.len() - before + held_back + if held_back > 0 { FRAME_HEAD } else { 0 })
}

impl<B: Backend> Worker<'_, B> {
    /// Writes a request on an open connection that has room for it.
    #[inline(always)]
    pub(super) fn transmit(&mut self, slot: u32, request: &mut InFlight, ready: Nanos) {
        if request.capture != NO_CAPTURE {
            // The rest of it cannot be kept yet, only that it differs from the template of its step.
            return self.transmit_detour(slot, request, ready);
        }
        if request.sent != AT_SEND && !request.is_sent_again() {
            self.counts.poll(request);
        }
        let plan = self.plan;
        let step = &plan.steps[request.step as usize];
        match step.make_script {
            None => {
                let facts = self.steps.facts[request.step as usize];
                // One that is sent again is no longer to be aborted: its first attempt was not.
                if self.misbehaviour.is_some() && !request.is_sent_again() {
                    return self.transmit_badly(slot, request, facts, ready);
                }
                let _ = self.transmit_as(slot, request, &step.request, facts, ready);
            }
            Some(script) => self.transmit_scripted(slot, request, script, ready),
        }
    }

    /// Writes a request that differs from the template of its step, on a connection that has room for it.
    #[inline(never)]
    fn transmit_detour(&mut self, slot: u32, request: &mut InFlight, ready: Nanos) {
        if request.redirects > 0 && !request.is_sent_again() {
            self.counts.redirect(request);
        }
        let facts = Facts { authority: true, repeated: false, ..self.steps.facts[request.step as usize] };
        match self.exchanges.captures.detour(request.capture).cloned() {
            Some(Detour::Template(template)) => {
                let _ = self.transmit_as(slot, request, &template, facts, ready);
            }
            Some(Detour::Made(made)) => {
                self.draft.dynamic.clone_from(&made);
                self.transmit_made(slot, request, ready);
            }
            None => debug_assert!(false, "nothing was kept of what was not sent"),
        }
    }

    /// Writes a request by a template, of which the worker knows the `facts`. Returns its ticket.
    pub(super) fn transmit_as(
        &mut self,
        slot: u32,
        request: &mut InFlight,
        template: &RequestTemplate,
        facts: Facts,
        ready: Nanos,
    ) -> u32 {
        let place = self.mark_written(slot);
        let logic = self.ready(slot, request, template, facts);
        let body = self.supplied_body(template, request.session);
        let conn = &mut self.conns[slot as usize];
        let unix_ns = if template.needs_clock() { self.clock.unix_ns() } else { 0 };
        let pool = &self.pools[conn.pool as usize];
        let context = Context {
            index: request.index,
            step: request.step,
            trace_key: self.trace_key,
            worker: self.shard.index,
            unix_ns,
            variables: self.iterations.sessions.variables(request.session),
            cookies: &self.draft.cookies,
            authority: if logic { &pool.name_of(conn.target_address).authority } else { &[] },
            body: body.as_ref(),
            tokens: Some(&self.content.tokens.all),
        };
        request.head_request = template.head_request();
        let id = conn.id;
        let out = match &mut conn.tls {
            None => self.io.outbox(id),
            Some(tls) => &mut tls.plain,
        };
        let before = out.len();
        let keeps = self.exchanges.keeps && !facts.repeated;
        let keeps_text = keeps && matches!(conn.client, Client::InTurn(InTurn::Http1(_)));
        if keeps && !keeps_text {
            // A copy of the generator draws the same values as the rendering below.
            template.render_request(&context, &mut self.content.random.clone(), &mut self.draft.logged);
            if let Client::WebSocket(socket) = &conn.client {
                socket.amend_logged(template.websocket(), &mut self.draft.logged);
            }
            self.exchanges.captures.keep_lines(
                &mut request.capture,
                pool.server.scheme(),
                &self.draft.logged,
            );
        }
        let ticket;
        let length;
        if let Client::Http2(client) = &mut conn.client {
            let body = template.render_body(&context, &self.content.random, &mut self.draft.scratch);
            let needs = &self.steps.needs[request.step as usize];
            let book = pool.server.book.as_ref().unwrap_or(&self.draft.no_book);
            let random = &mut self.content.random;
            let body_bytes = body.len();
            let kind = (template.head_request(), request.intent == Intent::CutRequest);
            (ticket, length) = submit(client, kind, needs, body, out, |indexing, out| {
                template.render_block(book, indexing, &context, random, body_bytes, out);
            });
            request.bytes_sent += length as u64;
            conn.requests.insert(ticket, request);
        } else if let Client::WebSocket(socket) = &mut conn.client {
            let Some(action) = template.websocket() else { return 0 };
            self.draft.scratch.clear();
            template.render(&context, &mut self.content.random, &mut Vec::new(), &mut self.draft.scratch);
            socket.write(action, &self.draft.scratch, &mut self.buffers.messages.deflater, out);
            length = out.len() - before;
            request.bytes_sent += length as u64;
            ticket = conn.requests.push(request);
            self.link_websocket(slot, request, action);
        } else {
            template.render(&context, &mut self.content.random, &mut self.draft.scratch, out);
            if keeps_text {
                let more = template.separate_body(&context).map_or(&[][..], |body| &body[..]);
                self.exchanges.captures.keep_bytes(&mut request.capture, &out[before..], more);
            }
            let mut bytes = out.len() - before;
            if request.intent == Intent::CutRequest {
                bytes = self.misbehaviour.as_mut().map_or(bytes, |faults| faults.part_of(bytes));
                out.truncate(before + bytes);
            } else if let Some(body) = template.separate_body(&context) {
                bytes += body.len();
                match &mut conn.tls {
                    None => self.io.send_shared(id, body.clone()),
                    Some(tls) => {
                        // Not through the plain buffer: a large body would be copied once more.
                        let out = self.io.outbox(id);
                        tls.session.send(&tls.plain, out);
                        tls.plain.clear();
                        tls.session.send(body, out);
                    }
                }
            }
            length = bytes;
            request.bytes_sent += length as u64;
            ticket = conn.requests.push(request);
        }
        self.written_request(slot, ticket, place, length, ready);
        ticket
    }

    /// The body of a template that takes it from a supply.
    #[inline(always)]
    fn supplied_body(&mut self, template: &RequestTemplate, session: u32) -> Option<Arc<[u8]>> {
        let supplied = template.supply()?;
        let (unix_ns, sessions) = (self.clock.unix_ns(), &mut self.iterations.sessions);
        Some(supply::body_of(supplied, &mut self.content.bodies, sessions, session, unix_ns))
    }

    /// Prepares the input for rendering a request, and the parts that its step needs later. Returns `true` if
    /// its step has any logic at all.
    #[inline(always)]
    pub(super) fn ready(
        &mut self,
        slot: u32,
        request: &mut InFlight,
        template: &RequestTemplate,
        facts: Facts,
    ) -> bool {
        if facts.is_plain() {
            return false;
        }
        self.ready_in_full(slot, request, template, facts);
        true
    }

    #[inline(never)]
    fn ready_in_full(&mut self, slot: u32, request: &mut InFlight, template: &RequestTemplate, facts: Facts) {
        let conn = &self.conns[slot as usize];
        let pool = &self.pools[conn.pool as usize];
        let name = pool.name_of(conn.target_address);
        let unix_ns = self.clock.unix_ns();
        let needs = &self.plan.steps[request.step as usize].needs;
        let context = Context {
            index: request.index,
            step: request.step,
            trace_key: self.trace_key,
            worker: self.shard.index,
            unix_ns,
            variables: self.iterations.sessions.variables(request.session),
            cookies: &[],
            authority: &name.authority,
            body: None,
            tokens: Some(&self.content.tokens.all),
        };
        // A copy of the generator draws the same values as the rendering of the request.
        self.draft.sent.path.clear();
        template.render_path(&context, &mut self.content.random.clone(), &mut self.draft.sent.path);
        self.draft.cookies.clear();
        if facts.cookies
            && let Some(session) = self.iterations.sessions.get(request.session)
        {
            let secure = pool.https;
            let unix_s = unix_ns / 1_000_000_000;
            let path = &self.draft.sent.path;
            session.state.cookies.header(&name.host, path, secure, unix_s, &mut self.draft.cookies);
        }
        if needs.request {
            let context = Context { cookies: &self.draft.cookies, ..context };
            template.render_request(&context, &mut self.content.random.clone(), &mut self.draft.sent);
        }
        if facts.request {
            self.exchanges.captures.keep_sent(&mut request.capture, &mut self.draft.sent);
        }
    }

    /// Notes a request that was written, for the next flush.
    #[inline]
    pub(super) fn written_request(
        &mut self,
        slot: u32,
        ticket: u32,
        place: u32,
        length: usize,
        ready: Nanos,
    ) {
        let conn = &mut self.conns[slot as usize];
        if conn.requests.len() == 1 {
            // The connection was idle until now: its silence begins here.
            conn.heard = conn.heard.max(self.clock.now);
        }
        conn.served += 1;
        self.pools[conn.pool as usize].awaiting.sized(length as u64);
        self.outgoing.push(conn.id, ticket, place, length, ready);
        self.flush_if_full(slot);
    }

    /// Flushes if enough is written, the last of it on this connection.
    #[inline]
    pub(super) fn flush_if_full(&mut self, slot: u32) {
        if self.outgoing.is_full(slot, self.pacer.flush_limit()) {
            self.flush();
        }
    }

    /// Writes bytes that belong to no request, or to one that was written before.
    pub(super) fn write(&mut self, slot: u32, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.mark_written(slot);
        let conn = &mut self.conns[slot as usize];
        match &mut conn.tls {
            None => self.io.outbox(conn.id).extend_from_slice(bytes),
            Some(tls) => tls.plain.extend_from_slice(bytes),
        }
    }

    /// Writes the protocol's own output, which is in `control_bytes`.
    pub(super) fn write_control(&mut self, slot: u32) {
        let bytes = std::mem::take(&mut self.buffers.control);
        self.write(slot, &bytes);
        self.buffers.control = bytes;
    }

    /// Notes that the connection is written to: its place among those of the next flush.
    #[inline]
    pub(super) fn mark_written(&mut self, slot: u32) -> u32 {
        self.outgoing.mark(slot, &mut self.conns[slot as usize])
    }

    /// Hands everything written to the kernel, and notes when.
    pub(super) fn flush(&mut self) {
        let last =
            self.outgoing.flush(&mut self.io, &mut self.conns, &mut self.counts, &mut self.records.worker);
        self.clock.advance(last);
    }

    /// Returns the time up to which arrivals are started in the pass that began at `now`: the present, or a
    /// little later where the next arrival is begun ahead. What is sent then waits until it is due.
    pub(super) fn ahead_of(&mut self, now: Nanos) -> Nanos {
        if self.pacer.is_own() {
            self.outgoing.begin_preparation(now);
        }
        let Some(due) = self.pacer.ahead_of(now) else { return now };
        if !self.outgoing.is_empty() {
            // What is due already does not wait.
            self.flush();
            self.outgoing.begin_preparation(self.clock.now);
        }
        self.outgoing.hold_until(due);
        self.clock.advance(due);
        due
    }

    /// Ends what [`ahead_of`](Self::ahead_of) began, after the flush. Returns the time for which that waited.
    pub(super) fn end_preparation(&mut self) -> Nanos {
        let (took, held) = self.outgoing.end_preparation();
        if let Some(took) = took {
            self.pacer.prepared(took);
        }
        held
    }

    /// Writes the requests that waited for the connection to be established.
    pub(super) fn transmit_waiting(&mut self, slot: u32) {
        let conn = &mut self.conns[slot as usize];
        let fresh = match conn.client {
            Client::Http2(_) => Requests::table(),
            _ => Requests::default(),
        };
        let mut waiting = std::mem::replace(&mut conn.requests, fresh);
        let pool = conn.pool;
        while let Some(mut request) = waiting.pop() {
            if request.is_given_up() {
                continue;
            }
            if self.has_room(slot) {
                self.transmit(slot, &mut request, Nanos::MAX);
            } else {
                // The server allows fewer streams than expected.
                self.wait_for_room(pool, &mut request, self.clock.now);
            }
        }
    }
}
