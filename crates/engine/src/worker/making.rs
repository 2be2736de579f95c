//! Making: writes the requests of scripts as they are, to the server that a script names.

use std::sync::Arc;

use plimsoll_core::{ErrorClass, Nanos};
use plimsoll_driver::Backend;
use plimsoll_scenario::reference::Origin;
use plimsoll_scenario::{Context, DynamicRequest, RequestTemplate, Scheme};
use plimsoll_wire::http2::Payload;

use super::Worker;
use super::routing::NoWay;
use super::sending::submit;
use crate::capture::{Detour, NO_CAPTURE};
use crate::connection::Client;
use crate::request::{InFlight, Intent};

impl<B: Backend> Worker<'_, B> {
    /// Writes a request that a script makes, on a connection that has room for it. If the script cannot make
    /// it, the request has failed.
    #[inline(never)]
    pub(super) fn transmit_scripted(&mut self, slot: u32, request: &mut InFlight, script: u32, ready: Nanos) {
        let plan = self.plan;
        let step = &plan.steps[request.step as usize];
        self.ready(slot, request, &step.request, self.steps.facts[request.step as usize]);
        let pool = self.conns[slot as usize].pool;
        let begun = self.io.now();
        let made = self.make_request(slot, request, &step.request, script);
        self.note_call(request, begun);
        match made {
            Ok(_) if self.draft.dynamic.is_nothing() => {
                self.withhold(request);
                self.list(slot);
            }
            Ok(None) => self.transmit_made(slot, request, ready),
            Ok(Some(https)) => self.send_made(slot, request, https, ready),
            Err(reason) => {
                self.note_error(ErrorClass::Script, &format!("{}: {reason}", step.name));
                self.records.worker.script_errors += 1;
                self.fail(pool, request, ErrorClass::Script, 0, self.clock.now);
                self.list(slot);
            }
        }
    }

    /// A script has asked for the end in place of a request: it was started, and is not sent any more.
    #[cold]
    fn withhold(&mut self, request: &InFlight) {
        self.counts.withhold(request.measured);
        self.exchanges.captures.end(request.capture);
        if request.measured {
            let now = self.clock.now;
            let lag = now.since(request.intended.min(now));
            self.records.measured.record_withheld(request.step, lag);
        }
        self.is_stopped_by_script(self.clock.now);
    }

    /// Sends a request that a script has made with a whole URL: the URL names the server.
    #[inline(never)]
    fn send_made(&mut self, slot: u32, request: &mut InFlight, https: bool, ready: Nanos) {
        let pool = self.conns[slot as usize].pool;
        let authority = self.draft.dynamic.authority.clone();
        match self.pool_to(Origin { https, authority: &authority }) {
            Ok(there) if there == pool => self.transmit_made(slot, request, ready),
            Ok(there) => {
                self.address_made(request, there);
                let made = Detour::Made(Arc::new(self.draft.dynamic.clone()));
                self.exchanges.captures.send_by(&mut request.capture, made);
                self.seat_dynamic_origins(there, request, ready, self.clock.now);
                self.list(slot);
            }
            Err(NoWay { class, reason }) => {
                self.fail_unrouted(pool, request, class, &reason);
                self.list(slot);
            }
        }
    }

    /// Gives the script's request the cookies of the server of pool `there`, in place of the fields that its
    /// step gave it for its target.
    fn address_made(&mut self, request: &InFlight, there: u32) {
        self.draft.remove_target_fields();
        let Some(session) = self.iterations.sessions.get(request.session) else { return };
        if !self.steps.facts[request.step as usize].cookies {
            return;
        }
        let pool = &self.pools[there as usize];
        let unix_s = self.clock.unix_s();
        self.draft.cookies.clear();
        let jar = &session.state.cookies;
        jar.header(pool.host(), &self.draft.dynamic.path, pool.https, unix_s, &mut self.draft.cookies);
        if !self.draft.cookies.is_empty() {
            self.draft.dynamic.fields.push(b"cookie", &self.draft.cookies);
        }
    }

    /// Writes the script's request.
    pub(super) fn transmit_made(&mut self, slot: u32, request: &mut InFlight, ready: Nanos) {
        let pool = self.conns[slot as usize].pool;
        let place = self.mark_written(slot);
        let conn = &mut self.conns[slot as usize];
        request.head_request = self.draft.dynamic.is_head();
        let pool = &self.pools[pool as usize];
        let out = match &mut conn.tls {
            None => self.io.outbox(conn.id),
            Some(tls) => &mut tls.plain,
        };
        if let Client::Http2(client) = &mut conn.client {
            let needs = &self.steps.needs[request.step as usize];
            let book = pool.server.book.as_ref().unwrap_or(&self.draft.no_book);
            let scheme = if pool.https { Scheme::Https } else { Scheme::Http };
            let dynamic = &self.draft.dynamic;
            if self.exchanges.keeps {
                self.draft.logged.copy_from(dynamic);
                let length =
                    dynamic.content_length().filter(|_| dynamic.fields.get("content-length").is_none());
                if let Some(length) = length {
                    self.draft.logged.fields.push(b"content-length", length.to_string().as_bytes());
                }
                self.exchanges.captures.keep_lines(
                    &mut request.capture,
                    pool.server.scheme(),
                    &self.draft.logged,
                );
            }
            let body = if dynamic.body.is_empty() { Payload::None } else { Payload::Bytes(&dynamic.body) };
            let (ticket, length) =
                submit(client, (dynamic.is_head(), false), needs, body, out, |indexing, out| {
                    book.begin(indexing, out);
                    dynamic.write_block(scheme, out);
                });
            request.bytes_sent += length as u64;
            conn.requests.insert(ticket, request);
            self.written_request(slot, ticket, place, length, ready);
            return;
        }
        let before = out.len();
        self.draft.dynamic.write_http1(pool.server.forward(), out);
        let length = out.len() - before;
        if self.draft.dynamic.raw_count > 1 {
            // The script would write all of them anew.
            request.intent = Intent::AwaitOnce;
        }
        let mut sibling = *request;
        // Each of several is kept by itself, or the log would take the heads of all but one for content.
        let mut captures = Vec::new();
        let mut left = if self.exchanges.keeps { &out[before..] } else { &[] };
        while !left.is_empty() {
            let several = captures.len() + 1 < self.draft.dynamic.raw_count as usize;
            let (one, rest) =
                left.split_at(if several { DynamicRequest::first_http1(left) } else { left.len() });
            let mut capture = if captures.is_empty() { request.capture } else { NO_CAPTURE };
            self.exchanges.captures.keep_bytes(&mut capture, one, &[]);
            captures.push(capture);
            left = rest;
        }
        let mut captures = captures.into_iter();
        request.capture = captures.next().unwrap_or(request.capture);
        // A script may write several requests at once; each is counted, and the bytes belong to the first
        // one.
        let others = self.draft.dynamic.raw_count.saturating_sub(1);
        if others > 0 {
            self.count_siblings(request, others);
        }
        request.bytes_sent += length as u64;
        let ticket = self.conns[slot as usize].requests.push(request);
        self.written_request(slot, ticket, place, length, ready);
        for _ in 0..others {
            sibling.capture = captures.next().unwrap_or(NO_CAPTURE);
            let ticket = self.conns[slot as usize].requests.push(&sibling);
            sibling.bytes_sent = 0;
            self.written_request(slot, ticket, place, 0, ready);
        }
    }

    /// Requests that were written together with another one of their iteration.
    fn count_siblings(&mut self, request: &InFlight, others: u32) {
        self.counts.start_siblings(u64::from(others), request.measured);
        for _ in 0..others {
            self.records.of(request).note_started(request.step);
        }
        if let Some(session) = self.iterations.sessions.get_mut(request.session) {
            session.outstanding += others;
        }
    }

    /// Lets the script make the request, into `dynamic`. If it gave a whole URL, its authority is there, too,
    /// and whether it is https is returned; the credentials of the step are in `scratch`.
    fn make_request(
        &mut self,
        slot: u32,
        request: &mut InFlight,
        template: &RequestTemplate,
        script: u32,
    ) -> Result<Option<bool>, String> {
        let conn = &self.conns[slot as usize];
        let http2 = matches!(conn.client, Client::Http2(_));
        let pool = &self.pools[conn.pool as usize];
        let Some(session) = self.iterations.sessions.get_mut(request.session) else {
            return Err("a request of no iteration".to_owned());
        };
        let context = Context {
            index: request.index,
            step: request.step,
            trace_key: self.trace_key,
            worker: self.shard.index,
            unix_ns: self.clock.unix_ns(),
            variables: &session.state.variables,
            cookies: &self.draft.cookies,
            authority: &pool.name_of(conn.target_address).authority,
            // A step has either a script that makes its request, or a supply.
            body: None,
            tokens: Some(&self.content.tokens.all),
        };
        template.render_dynamic(&context, &mut self.content.random, &mut self.draft.dynamic);
        self.draft.note_credentials();
        let Some(scripts) = &mut self.content.scripts else { return Err("there are no scripts".to_owned()) };
        let made = scripts.make_request(script, &session.state, &mut self.draft.dynamic);
        if let Err(error) = made {
            return Err(self.script_failed(error));
        }
        let at = self.clock.now.since(self.clock.start);
        self.content.record_of_script(request.measured, at, self.plan);
        if self.draft.dynamic.is_nothing() {
            return Ok(None);
        }
        let forwarded = pool.server.forward().is_some();
        if (http2 || forwarded) && !self.draft.dynamic.raw.is_empty() {
            self.draft.dynamic = DynamicRequest::parse_http1(&self.draft.dynamic.raw)?;
            if forwarded {
                self.draft.dynamic.address(&pool.name_of(conn.target_address).authority);
            }
        }
        let https = self.draft.dynamic.take_origin();
        self.draft.dynamic.check()?;
        if self.steps.facts[request.step as usize].request {
            self.draft.sent.copy_from(&self.draft.dynamic);
            self.exchanges.captures.keep_sent(&mut request.capture, &mut self.draft.sent);
        }
        Ok(https)
    }
}
