//! Judging: keeping a response, comparing it with the expectations of its step, and passing it to scripts.

use plimsoll_core::{ErrorClass, Nanos, Outcome};
use plimsoll_driver::{Backend, ConnId};
use plimsoll_scenario::{Needs, Received, ScriptError, Session, Verdict, decode_content};
use plimsoll_wire::http2::Captured as CapturedHead;
use plimsoll_wire::length_prefixed::message_length;

use super::Worker;
use super::stalls::STALL;
use crate::capture::{Captured, NO_CAPTURE, QUOTED_FROM};
use crate::connection::{Client, InTurn, Reply};
use crate::control::Stop;
use crate::event_stream::{Receipt, StreamState};
use crate::request::{AT_SEND, InFlight};

/// Calls of scripts that fail, without one request in between that ends well, before the run ends: a script
/// that has failed so often on one worker fails for ever.
const SCRIPT_FAILURES: u64 = 100;

/// The judgement of a whole response.
#[derive(Clone, Copy, Debug)]
pub(super) enum Judged {
    /// The request has ended with this outcome.
    Ended(Outcome),
    /// The answer is still to come: the request is to be repeated after this time.
    Pending(Nanos),
}

impl<B: Backend> Worker<'_, B> {
    /// HTTP/2: the final head of a response came; keeps its needed parts.
    pub(super) fn on_head(&mut self, slot: u32, ticket: u32, fields: CapturedHead) {
        let conn = &mut self.conns[slot as usize];
        let Some(request) = conn.requests.get_mut(ticket) else { return };
        if request.capture == NO_CAPTURE {
            request.capture = self.exchanges.captures.begin();
        }
        let Client::Http2(client) = &conn.client else { return };
        let captured = self.exchanges.captures.get_mut(request.capture);
        let needs = &self.steps.needs[request.step as usize];
        for (name, value) in client.captured(&fields) {
            captured.keep(&needs.fields, name, value);
        }
    }

    /// HTTP/2: the whole response came; keeps its body if that is needed, or quotes its error.
    #[inline]
    pub(super) fn keep_body(&mut self, slot: u32, ticket: u32, status: u16) {
        if !self.steps.keeps_bodies && status < QUOTED_FROM {
            return;
        }
        let conn = &mut self.conns[slot as usize];
        let Client::Http2(client) = &conn.client else { return };
        let Some(request) = conn.requests.get_mut(ticket) else { return };
        let body = client.body(ticket);
        if !self.steps.needs[request.step as usize].body && body.is_empty() {
            return;
        }
        if request.capture == NO_CAPTURE {
            request.capture = self.exchanges.captures.begin();
        }
        self.exchanges.captures.get_mut(request.capture).body.extend_from_slice(body);
    }

    /// HTTP/2: content of a streamed response came.
    pub(super) fn on_content(&mut self, slot: u32, ticket: u32, status: u16, at: Nanos) {
        let conn = &mut self.conns[slot as usize];
        let Client::Http2(client) = &mut conn.client else { return };
        let Some(request) = conn.requests.get_mut(ticket) else { return };
        let Some(step) = self.steps.streams[request.step as usize] else { return };
        if request.capture == NO_CAPTURE {
            request.capture = self.exchanges.captures.begin();
        }
        let captured = self.exchanges.captures.get_mut(request.capture);
        client.take_body(ticket, &mut captured.body);
        let record = self.records.of(request).event_streams(request.step);
        let came = Receipt { at, behind: self.batch.behind };
        let before = captured.events().map_or(0, StreamState::events);
        captured.read_events(step, (status, came), record);
        self.buffers.control.clear();
        if step.stream.is_in_turn() {
            let events = captured.events().map_or(0, StreamState::events);
            for _ in before..events {
                client.proceed(ticket, message_length, &mut self.buffers.control);
            }
        }
        if captured.has_enough(step) && self.buffers.enough.iter().all(|(known, _)| *known != ticket) {
            // Its ticket must not be used again while there are events that were told before.
            self.buffers.enough.push((ticket, status));
        }
        if !self.buffers.control.is_empty() {
            self.write_control(slot);
        }
    }

    /// HTTP/2: breaks off the responses of a connection of which enough has come: that is their end.
    pub(super) fn end_sated(&mut self, id: ConnId, at: Nanos) {
        let slot = id.slot() as u32;
        let mut sated = std::mem::take(&mut self.buffers.enough);
        for (ticket, status) in sated.drain(..) {
            if !self.lives(id) {
                break;
            }
            // The response may have ended meanwhile, and the ticket may have another request.
            let conn = &mut self.conns[slot as usize];
            let Some(request) = conn.requests.get_mut(ticket) else { continue };
            let step = self.steps.streams[request.step as usize];
            let capture = request.capture;
            let has_enough = |step| self.exchanges.captures.get_mut(capture).has_enough(step);
            if capture == NO_CAPTURE || !step.is_some_and(has_enough) {
                continue;
            }
            self.buffers.control.clear();
            let Client::Http2(client) = &mut conn.client else { break };
            let Some(wire_bytes) = client.break_off(ticket, &mut self.buffers.control) else { continue };
            self.records.measured.connections.http2.cancelled += 1;
            self.write_control(slot);
            self.on_response(
                slot,
                ticket,
                at,
                Reply { status, wire_bytes, keep_alive: true, is_good: false },
            );
        }
        self.buffers.enough = sated;
    }

    /// HTTP/1.1: keeps the head of a response that ended with its connection.
    pub(super) fn keep_last_head(&mut self, slot: u32, ticket: u32) {
        let conn = &mut self.conns[slot as usize];
        let Client::InTurn(InTurn::Http1(client)) = &conn.client else { return };
        let Some(request) = conn.requests.get_mut(ticket) else { return };
        let needs = &self.steps.needs[request.step as usize];
        if request.capture == NO_CAPTURE && !needs.is_nothing() && !request.is_given_up() {
            request.capture = self.exchanges.captures.begin();
        }
        let captured = self.exchanges.captures.get_mut(request.capture);
        client.each_header(|name, value| captured.keep(&needs.fields, name.as_bytes(), value));
    }

    /// Takes the cookies of a response that is not judged, a redirect's: the next request may need them.
    pub(super) fn keep_cookies(&mut self, request: &InFlight, (pool, target_address): (u32, u32)) {
        if !self.plan.steps[request.step as usize].request.uses_cookies() {
            return;
        }
        self.recall_sent(request);
        let Some(session) = self.iterations.sessions.get_mut(request.session) else { return };
        let pool = &self.pools[pool as usize];
        let host = &pool.name_of(target_address).host;
        let secure = pool.https;
        let unix_s = self.clock.unix_s();
        let Session { cookies, sent, .. } = &mut session.state;
        for cookie in self.exchanges.captures.get_mut(request.capture).fields.all("set-cookie") {
            cookies.store(cookie, host, &sent.path, secure, unix_s);
        }
    }

    /// The session takes the sent request that belongs to the response: others of its requests may have been
    /// written since.
    fn recall_sent(&mut self, request: &InFlight) {
        let needs = &self.plan.steps[request.step as usize].needs;
        if (needs.path || needs.request)
            && request.capture != NO_CAPTURE
            && let Some(session) = self.iterations.sessions.get_mut(request.session)
        {
            std::mem::swap(
                &mut session.state.sent,
                &mut self.exchanges.captures.get_mut(request.capture).sent,
            );
        }
    }

    /// Judges this whole response, from this pool and site, by the expectations of its step. Takes its values
    /// into the session.
    #[inline]
    pub(super) fn judge(&mut self, request: &InFlight, place: (u32, u32), reply: Reply) -> Judged {
        if reply.is_good {
            return Judged::Ended(Outcome::Ok);
        }
        let status = reply.status;
        if self.steps.facts[request.step as usize].status_alone {
            match self.steps.handlers[request.step as usize].accepts(status) {
                Ok(()) => return Judged::Ended(Outcome::Ok),
                // The reason in words is wanted, too.
                Err(failure)
                    if self.exchanges.keeps || self.failures.lacks_example(request, failure.class) => {}
                Err(failure) => return Judged::Ended(Outcome::Failed(failure.class)),
            }
        }
        if !self.steps.facts[request.step as usize].may_take_long {
            return self.judge_in_full(request, place, status);
        }
        let begun = self.io.now();
        let judged = self.judge_in_full(request, place, status);
        self.note_call(request, begun);
        judged
    }

    /// Notes work for a request that has held up everything else, since `begun`, for as long as a stall.
    pub(super) fn note_call(&mut self, request: &InFlight, begun: Nanos) {
        let took = self.io.now().since(begun);
        if took > STALL && request.measured {
            self.records.worker.long_calls.note(request.step, took);
        }
    }

    #[inline(never)]
    fn judge_in_full(
        &mut self,
        request: &InFlight,
        (pool, target_address): (u32, u32),
        status: u16,
    ) -> Judged {
        self.failures.forget_reason();
        self.recall_sent(request);
        let plan = self.plan;
        let step = &plan.steps[request.step as usize];
        let Captured { fields, body, stream, streams, .. } = self.exchanges.captures.get_mut(request.capture);
        let handler = &self.steps.handlers[request.step as usize];
        let undecoded = match handler.decodes() {
            true => decode_content(fields, body, Needs::LONGEST_BODY).err(),
            false => None,
        };
        let pool = &self.pools[pool as usize];
        let session = self.iterations.sessions.get(request.session);
        let received = Received {
            id: session.and_then(|session| session.state.follow_up.as_ref()).map(|follow_up| follow_up.id),
            host: &pool.name_of(target_address).host,
            authority: &pool.name_of(target_address).authority,
            secure: pool.https,
            unix_s: self.clock.unix_s(),
            ..Received::new(status, fields, body)
        };
        let (mut outcome, mut reason, mut fault) = (Outcome::Ok, None, None);
        // A stream that is not whole is a failure of its own, and not one of the checks on its events.
        let mut broken = None;
        if let Some(step) = self.steps.streams[request.step as usize]
            && (200..300).contains(&status)
        {
            // Of a body without a byte nothing was read.
            let state = match stream {
                Some(state) if *streams => state,
                other => other.insert(Box::new(StreamState::new(step.stream))),
            };
            *streams = true;
            broken = state.finish(step, self.records.of(request).event_streams(request.step)).err();
        }
        let session = match self.iterations.sessions.get_mut(request.session) {
            Some(session) => &mut session.state,
            None => &mut self.exchanges.no_session,
        };
        let accepted = handler.apply(&received, session);
        if let (Ok(Verdict::Pending), Some(poll)) = (accepted, handler.poll()) {
            return Judged::Pending(poll.pause(self.clock.now.since(request.sent)));
        }
        // The iteration needs the values that a failed request was to take.
        let lacks_values = accepted.is_err() && step.goes_on && !handler.salvage(&received, session);
        let accepted = accepted
            .and_then(|_| handler.collect(&received, &mut self.content.feeds, &mut self.content.random));
        if step.needs.body && body.len() >= Needs::LONGEST_BODY {
            outcome = Outcome::Failed(ErrorClass::Check);
            reason = Some(format!("a body of {} MiB or more is not read", Needs::LONGEST_BODY >> 20));
        } else if let Some(why) = undecoded {
            outcome = Outcome::Failed(ErrorClass::Check);
            reason = Some(why);
        } else if let Some(script) = step.check_script
            && let Some(scripts) = &mut self.content.scripts
        {
            // The script decides in place of the step's own checks.
            match scripts.validate_response(script, &received) {
                Ok(true) => {}
                Ok(false) => {
                    outcome = Outcome::Failed(ErrorClass::Check);
                    reason = Some("the script did not accept the response".to_owned());
                }
                Err(error) => {
                    outcome = Outcome::Failed(ErrorClass::Script);
                    self.records.worker.script_errors += 1;
                    fault = Some(error);
                }
            }
            let at = self.clock.now.since(self.clock.start);
            self.content.record_of_script(request.measured, at, self.plan);
        } else if let Some((class, why)) = broken {
            outcome = Outcome::Failed(class);
            reason = Some(why);
        } else if let Err(failure) = accepted {
            outcome = Outcome::Failed(failure.class);
            if self.exchanges.keeps || self.failures.lacks_example(request, failure.class) {
                reason = Some(handler.describe(failure, &received));
            }
        }
        let reason = fault.map(|error| self.script_failed(error)).or(reason);
        self.keep_reason(request, status, outcome, reason);
        if lacks_values {
            self.iterations.stop(request.session);
        }
        Judged::Ended(outcome)
    }

    /// Keeps why a request has failed, and the response for scripts.
    fn keep_reason(&mut self, request: &InFlight, status: u16, outcome: Outcome, reason: Option<String>) {
        if let (Outcome::Failed(class), Some(reason)) = (outcome, reason) {
            let step = &self.plan.steps[request.step as usize];
            self.note_error(class, &format!("{}: {reason}", step.name));
            // Readers of the failure log know the step.
            self.failures.set_reason(class, reason);
        }
        if self.plan.scripts.is_some() {
            let is_quoted = match outcome {
                Outcome::Failed(class) => self.failures.lacks_example(request, class),
                _ => false,
            };
            self.remember(request, status, is_quoted);
        }
    }

    /// There is no response to a request that has failed: takes the values of the request itself into its
    /// session, if that may go on. Its capture is still there.
    pub(super) fn do_without_response(&mut self, request: &InFlight, pool: u32) {
        if !self.plan.steps[request.step as usize].goes_on
            || self.iterations.sessions.get(request.session).is_none()
        {
            return;
        }
        self.recall_sent(request);
        let pool = &self.pools[pool as usize];
        let received = Received {
            authority: pool.authority(),
            secure: pool.https,
            ..Received::new(0, &self.exchanges.no_fields, &[])
        };
        let handler = &self.steps.handlers[request.step as usize];
        let Some(session) = self.iterations.sessions.get_mut(request.session) else { return };
        session.state.last_status = 0;
        session.state.last_fields.clear();
        session.state.last_body.clear();
        // A request that was never sent gives no values, either.
        let is_whole = match request.sent {
            AT_SEND => !handler.takes_values(),
            _ => handler.salvage(&received, &mut session.state),
        };
        session.stops |= !is_whole;
    }

    /// The response becomes the last one of its session: a script may make the next request of it. It stays
    /// in its capture, too, if it is about to be quoted.
    fn remember(&mut self, request: &InFlight, status: u16, is_quoted: bool) {
        if let Some(session) = self.iterations.sessions.get_mut(request.session)
            && request.capture != NO_CAPTURE
        {
            let captured = self.exchanges.captures.get_mut(request.capture);
            session.state.last_status = status;
            if self.exchanges.keeps || is_quoted {
                // The request may have failed, and is shown then.
                session.state.last_fields.clone_from(&captured.fields);
                session.state.last_body.clone_from(&captured.body);
                return;
            }
            std::mem::swap(&mut session.state.last_fields, &mut captured.fields);
            std::mem::swap(&mut session.state.last_body, &mut captured.body);
        }
    }

    /// Returns the time that a script wants its user to wait.
    pub(super) fn script_pause(&mut self, script: u32) -> Result<Nanos, String> {
        let Some(scripts) = &mut self.content.scripts else { return Ok(Nanos::ZERO) };
        scripts.delay(script).map_err(|error| self.script_failed(error))
    }

    /// A call of a script has failed: ends the run if no later one can succeed, or as many have failed in a
    /// row as no script mends. The reason in words.
    #[cold]
    pub(super) fn script_failed(&mut self, error: ScriptError) -> String {
        // The script may have taken long, and a pass without a send would not notice.
        self.clock.advance(self.io.now());
        self.control.note_script_error(&error.message);
        if self.counts.script_failure() == SCRIPT_FAILURES {
            self.control.stop(Stop::Drain);
            // Requests that are due by now would fail as well.
            self.iterations.complete(self.clock.now);
            self.clock.end_load(self.clock.now, self.plan);
        }
        if error.ends_run {
            self.control.stop(Stop::Now);
            self.clock.end_load(self.clock.now, self.plan);
        }
        error.message
    }
}
