//! Sending: requests are written into the outbox of their connection, and all outboxes are flushed together.

use plimsoll_core::Nanos;
use plimsoll_driver::{Backend, ConnId};
use plimsoll_scenario::{Context, RequestTemplate};
use plimsoll_wire::http2::Submit;

use super::{FLUSH_BYTES, FLUSH_EVERY, FLUSH_REQUESTS, Worker};
use crate::connection::{Client, State};
use crate::request::{AT_SEND, InFlight, Requests};

/// Bytes of the head of an HTTP/2 frame.
const FRAME_HEAD: usize = 9;

/// A request that is written and not yet handed to the kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unsent {
    conn: ConnId,
    ticket: u32,
    /// Place of its connection among those written to since the last flush.
    place: u32,
    /// When the response arrived that made its user ready; never, if that is unknown.
    ready: Nanos,
}

impl<B: Backend> Worker<'_, B> {
    /// Writes a request on an open connection that has room for it.
    #[inline]
    pub(super) fn transmit(&mut self, slot: u32, request: &mut InFlight, ready: Nanos) {
        let plan = self.plan;
        self.transmit_as(slot, request, &plan.steps[request.step as usize].request, ready);
    }

    /// The same for a request whose template is not that of its step: a redirect's.
    pub(super) fn transmit_as(
        &mut self,
        slot: u32,
        request: &mut InFlight,
        template: &RequestTemplate,
        ready: Nanos,
    ) {
        let place = self.mark_written(slot);
        let conn = &mut self.conns[slot as usize];
        let step = &self.plan.steps[request.step as usize];
        let unix_ns = if template.needs_clock() { self.now.0.wrapping_add(self.unix_offset) } else { 0 };
        let context = Context {
            index: request.index,
            worker: self.shard.index,
            unix_ns,
            variables: self.sessions.variables(request.session),
            ..Context::default()
        };
        if !step.extract.is_empty() {
            // What the rendering below is going to draw, too.
            self.path.clear();
            template.render_path(&context, &mut self.random.clone(), &mut self.path);
        }
        let id = conn.id;
        if conn.requests.is_empty() {
            // Until now nothing was owed on it: its silence begins here.
            conn.heard = conn.heard.max(self.now);
        }
        let out = match &mut conn.tls {
            None => self.io.outbox(id),
            Some(tls) => &mut tls.plain,
        };
        let before = out.len();
        let ticket;
        let length;
        if let Client::Http2(client) = &mut conn.client {
            let lane = &self.lanes[conn.lane as usize];
            let body = template.render_body(&context, &self.random, &mut self.scratch);
            let body_bytes = body.len();
            let spec = Submit {
                head_request: template.head_request(),
                capture: self.plan.redirects > 0 || !step.extract.is_empty(),
                body,
            };
            let book = self.plan.targets[lane.target].book.as_ref().unwrap_or(&self.no_book);
            let random = &mut self.random;
            let mut head_end = 0;
            ticket = client.submit(
                spec,
                |indexing, out| {
                    template.render_block(book, indexing, &context, random, body_bytes, out);
                    head_end = out.len();
                },
                out,
            );
            // What the windows hold back follows later and is a part of it all the same: the content, and at
            // least one more frame's head.
            let held_back = body_bytes.saturating_sub(out.len() - head_end);
            length = out.len() - before + held_back + if held_back > 0 { FRAME_HEAD } else { 0 };
            request.bytes_sent += length as u64;
            conn.requests.insert(ticket, request);
        } else {
            template.render(&context, &mut self.random, &mut self.scratch, out);
            let mut bytes = out.len() - before;
            if let Some(body) = template.shared_body() {
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
        conn.served += 1;
        if !step.extract.is_empty()
            && let Some(session) = self.sessions.get_mut(request.session)
        {
            std::mem::swap(&mut session.path, &mut self.path);
        }
        self.unsent_bytes += length;
        self.unsent.push(Unsent { conn: id, ticket, place, ready });
        if self.written.len() >= FLUSH_EVERY
            || self.unsent.len() >= FLUSH_REQUESTS
            || self.unsent_bytes >= FLUSH_BYTES
        {
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

    /// Writes what its protocol wants to say by itself, which is in `control_bytes`.
    pub(super) fn write_control(&mut self, slot: u32) {
        let bytes = std::mem::take(&mut self.control_bytes);
        self.write(slot, &bytes);
        self.control_bytes = bytes;
    }

    /// Notes that the connection is written to: its place among those of the next flush.
    #[inline]
    fn mark_written(&mut self, slot: u32) -> u32 {
        let conn = &mut self.conns[slot as usize];
        if conn.mark.0 != self.flush_number {
            conn.mark = (self.flush_number, self.written.len() as u32);
            self.written.push(slot);
        }
        conn.mark.1
    }

    /// Hands everything written to the kernel, and notes when.
    ///
    /// Sends happen one after the other between the two readings of the clock, so each is given the begin of
    /// its share: see [`Flush`](plimsoll_driver::Flush).
    pub(super) fn flush(&mut self) {
        let sends = self.written.len() as u64;
        for slot in self.written.drain(..) {
            let conn = &mut self.conns[slot as usize];
            if let Some(tls) = &mut conn.tls
                && !tls.plain.is_empty()
                && conn.state != State::Free
            {
                tls.session.send(&tls.plain, self.io.outbox(conn.id));
                tls.plain.clear();
            }
        }
        self.flush_number += 1;
        self.unsent_bytes = 0;
        let flush = self.io.flush();
        self.now = self.now.max(flush.last);
        // One division for all: spans are far below the 2^53 ns that this is exact for.
        let share = flush.last.since(flush.first).0 as f64 / sends.max(1) as f64;
        for Unsent { conn: id, ticket, place, ready } in self.unsent.drain(..) {
            let at = flush.first + Nanos((share * f64::from(place)) as u64);
            let conn = &mut self.conns[id.slot()];
            if conn.id != id {
                // It is gone, and its slot has a new one.
                continue;
            }
            let Some(request) = conn.requests.get_mut(ticket) else { continue };
            if request.sent != AT_SEND {
                continue;
            }
            request.sent = at;
            // Without a connection to open, taking up and sending are one: the start lag holds both.
            if request.started == AT_SEND {
                request.started = at;
            }
            if request.intended == AT_SEND {
                request.intended = at;
                if request.measured && ready != Nanos::MAX {
                    self.record.turnaround += at.since(ready);
                    self.record.turnarounds += 1;
                }
            }
        }
    }

    /// Writes the requests that waited for the connection to be established.
    pub(super) fn transmit_waiting(&mut self, slot: u32) {
        let conn = &mut self.conns[slot as usize];
        let fresh = match conn.client {
            Client::Http2(_) => Requests::table(),
            _ => Requests::default(),
        };
        let mut waiting = std::mem::replace(&mut conn.requests, fresh);
        let lane = conn.lane;
        while let Some(mut request) = waiting.pop() {
            if request.abandoned {
                continue;
            }
            if self.has_room(slot) {
                self.transmit(slot, &mut request, Nanos::MAX);
            } else {
                // The server allows fewer than was expected.
                self.wait_for_room(lane, &mut request, self.now);
            }
        }
    }
}
