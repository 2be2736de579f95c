//! Answers: what a whole response means for its request, its session and its connection.

use std::ops::Range;

use plimsoll_core::{ErrorClass, Nanos, Outcome};
use plimsoll_driver::{Backend, Close};
use plimsoll_plan::Load;
use plimsoll_scenario::RequestTemplate;
use plimsoll_wire::http2::Captured;

use super::Worker;
use crate::connection::{Client, Kept, Reply, State};
use crate::request::{AT_SEND, InFlight};

/// A redirect that was answered.
struct Redirect {
    slot: u32,
    lane: u32,
    /// Whether the next request can go on the same connection.
    here: bool,
    status: u16,
    location: Option<Vec<u8>>,
    at: Nanos,
}

impl<B: Backend> Worker<'_, B> {
    /// A whole response came for the request under this ticket. `location` is the place in `kept` of the
    /// location that it named, if redirects are followed and it was kept there.
    pub(super) fn on_response(
        &mut self,
        slot: u32,
        ticket: u32,
        at: Nanos,
        reply: Reply,
        location: Option<usize>,
    ) {
        let conn = &mut self.conns[slot as usize];
        let http2 = matches!(conn.client, Client::Http2(_));
        if http2 && conn.requests.get_mut(ticket).is_some_and(|request| request.sent == AT_SEND) {
            // An answer to what was not asked yet: it gets its instant all the same.
            self.flush();
        }
        let location =
            if self.plan.redirects > 0 { self.take_location(slot, ticket, location) } else { None };
        let conn = &mut self.conns[slot as usize];
        let Some(request) = conn.requests.take(ticket) else { return };
        conn.answered = true;
        if let Client::Http2(client) = &mut conn.client {
            client.reuse(ticket);
        }
        if !self.observed && request.sent != AT_SEND {
            self.observed = true;
            self.pacer.observe(self.now.since(request.sent), self.stamped, reply.wire_bytes);
        }
        self.responses += 1;
        let connections = &self.plan.connections;
        let closes = !reply.keep_alive || !connections.keep_alive;
        let usable = conn.state == State::Open && !closes && !conn.is_spent(connections.max_requests);
        let lane = conn.lane;
        if !usable {
            if conn.requests.is_empty() {
                self.release(slot, Some(Close::Now));
            } else if closes {
                // The server answers nothing more on this connection.
                self.break_off(slot, ErrorClass::ClosedBeforeResponse, Some(Close::Now), at);
            } else {
                self.conns[slot as usize].state = State::Doomed;
            }
        }
        if request.abandoned {
            self.settle(slot);
            return;
        }
        if self.plan.redirects > 0 && matches!(reply.status, 301 | 302 | 303 | 307 | 308) {
            // On a pipelined connection the redirect would wait behind other requests: it takes a new one.
            let here = usable && (http2 || self.conns[slot as usize].requests.is_empty());
            self.recorder_of(&request).note_received(request.step, reply.wire_bytes);
            let redirect = Redirect { slot, lane, here, status: reply.status, location, at };
            self.on_redirect(redirect, request);
            if usable {
                self.list(slot);
            }
            return;
        }
        let outcome = match reply.status {
            0..400 if self.lacks_values(&request) => Outcome::Failed(ErrorClass::Extraction),
            0..400 => Outcome::Ok,
            400..500 => Outcome::Failed(ErrorClass::Status4xx),
            _ => Outcome::Failed(ErrorClass::Status5xx),
        };
        self.counts.answered[usize::from(http2)] += u64::from(request.measured);
        let home = self.home_of(&request, lane);
        self.finish(&request, outcome, (reply.status, reply.wire_bytes), at);
        let slot_if_usable = usable.then_some(slot);
        if outcome == Outcome::Ok {
            if self.continue_session(request.session, lane, slot_if_usable, request.step, at) {
                if usable {
                    self.list(slot);
                }
                return;
            }
            self.end_iteration(&request);
        }
        let goes_on = matches!(self.plan.load, Load::Closed)
            && self.next_iteration(home, slot_if_usable.filter(|_| home == lane), at, self.now);
        if usable && !(goes_on && home == lane) {
            self.list(slot);
        }
    }

    /// The lane to which the user of a request belongs.
    pub(super) fn home_of(&self, request: &InFlight, lane: u32) -> u32 {
        self.sessions.get(request.session).map_or(lane, |session| session.home)
    }

    /// The last request of an iteration ended well, or the load is over.
    fn end_iteration(&mut self, request: &InFlight) {
        let last = match self.sessions.get(request.session) {
            Some(session) => request.step + 1 == self.plan.scenarios[session.scenario as usize].steps.end,
            None => true,
        };
        self.counts.iterations.completed += u64::from(request.measured && last);
        if self.sessions.get(request.session).is_some() {
            self.sessions.end(request.session);
        }
    }

    /// Whether a value that a later step needs was not in the response.
    fn lacks_values(&mut self, request: &InFlight) -> bool {
        let wanted = self.plan.steps[request.step as usize].extract.len() as u32;
        if wanted == 0 {
            return false;
        }
        let found = self.sessions.get(request.session).map_or(0, |session| session.found.count_ones());
        let lacks = found < wanted;
        if lacks {
            let step = &self.plan.steps[request.step as usize];
            let names: Vec<&str> = step.extract.iter().map(|extract| extract.header.as_str()).collect();
            let reason = format!("the response to `{}` has no usable header {}", step.name, names.join(", "));
            self.note_error(ErrorClass::Extraction, &reason);
        }
        lacks
    }

    /// HTTP/1.1: takes the values of a response into its session.
    pub(super) fn extract_kept(&mut self, slot: u32, ticket: u32, kept: Range<usize>) {
        for at in kept {
            let (number, range) = self.kept.values[at].clone();
            if number != Kept::LOCATION {
                let bytes = std::mem::take(&mut self.kept.bytes);
                self.extract(slot, ticket, number, &bytes[range]);
                self.kept.bytes = bytes;
            }
        }
    }

    /// HTTP/1.1: the same for a response that ended with its connection.
    pub(super) fn extract_unkept(&mut self, slot: u32, ticket: u32) {
        let conn = &mut self.conns[slot as usize];
        let Some(step) = conn.requests.get_mut(ticket).map(|request| request.step) else { return };
        let extracts = &self.plan.steps[step as usize].extract;
        for (number, extract) in (0_u16..).zip(extracts) {
            let Client::Http1(client) = &self.conns[slot as usize].client else { return };
            let Some(value) = client.header(&extract.header) else { continue };
            let value = value.to_vec();
            self.extract(slot, ticket, number, &value);
        }
    }

    /// HTTP/1.1: keeps the location of a redirect that ended with its connection; its place in `kept`.
    pub(super) fn keep_location(&mut self, slot: u32, status: u16) -> Option<usize> {
        let Client::Http1(client) = &self.conns[slot as usize].client else { return None };
        let location = client.header("location").filter(|_| matches!(status, 300..400))?;
        self.kept.clear();
        self.kept.keep(Kept::LOCATION, location);
        Some(0)
    }

    /// HTTP/2: the final head of a response came; takes what is wanted of it.
    pub(super) fn on_head(&mut self, slot: u32, ticket: u32, fields: Captured) {
        let conn = &mut self.conns[slot as usize];
        let Some(step) = conn.requests.get_mut(ticket).map(|request| request.step) else { return };
        let extracts = &self.plan.steps[step as usize].extract;
        let mut value = std::mem::take(&mut self.scratch);
        for (number, extract) in (0_u16..).zip(extracts) {
            let Client::Http2(client) = &self.conns[slot as usize].client else { break };
            let Some(found) = client.captured_header(&fields, &extract.header) else { continue };
            value.clear();
            value.extend_from_slice(found);
            self.extract(slot, ticket, number, &value);
        }
        self.scratch = value;
        if self.plan.redirects > 0 {
            // One that was given up may have left its own.
            self.locations.retain(|(s, t, _)| (*s, *t) != (slot, ticket));
            let Client::Http2(client) = &self.conns[slot as usize].client else { return };
            if let Some(location) = client.captured_header(&fields, "location") {
                self.locations.push((slot, ticket, location.to_vec()));
            }
        }
    }

    /// One value of a response, as it was in its head, becomes a variable of the request's session.
    fn extract(&mut self, slot: u32, ticket: u32, number: u16, value: &[u8]) {
        let Some(request) = self.conns[slot as usize].requests.get_mut(ticket) else { return };
        if request.abandoned {
            // Its session has ended, and its number may be another's by now.
            return;
        }
        let (session, step) = (request.session, request.step);
        let extract = &self.plan.steps[step as usize].extract[usize::from(number)];
        let Some(session) = self.sessions.get_mut(session) else { return };
        let variable = &mut session.variables[usize::from(extract.variable)];
        if extract.apply(value, &session.path, variable) {
            session.found |= 1 << number;
        }
    }

    /// The location that a response named: of HTTP/1.1 in `kept`, of HTTP/2 noted when its head came.
    fn take_location(&mut self, slot: u32, ticket: u32, kept: Option<usize>) -> Option<Vec<u8>> {
        if let Some(at) = kept {
            return Some(self.kept.bytes[self.kept.values[at].1.clone()].to_vec());
        }
        let noted = self.locations.iter().position(|(s, t, _)| (*s, *t) == (slot, ticket))?;
        Some(self.locations.swap_remove(noted).2)
    }

    /// Follows a redirect within the authority, as a part of the same request.
    fn on_redirect(&mut self, redirect: Redirect, mut request: InFlight) {
        let Redirect { slot, lane, here, status, ref location, at } = redirect;
        let target = &self.plan.targets[self.lanes[lane as usize].target];
        let location = location.as_deref().map(String::from_utf8_lossy);
        let next = match location.as_deref() {
            None => Err("a redirect without a location".to_owned()),
            Some(_) if u32::from(request.redirects) >= self.plan.redirects => {
                Err(format!("more than {} redirects in a row", self.plan.redirects))
            }
            Some(location) => match target.same_authority_path(location) {
                None => Err(format!("a redirect to another authority is not followed: {location}")),
                Some(path) => self.redirected(&request, path, status),
            },
        };
        let next = match next {
            Ok(next) => next,
            Err(reason) => {
                self.note_error(ErrorClass::Redirect, &reason);
                self.fail(lane, &request, ErrorClass::Redirect, status, at);
                return;
            }
        };
        request.redirects += 1;
        // What is measured and extracted is the last response.
        request.first_byte = Nanos::MAX;
        if let Some(session) = self.sessions.get_mut(request.session) {
            session.found = 0;
        }
        // The server may have gone away, or have lowered its limit, together with this answer.
        if here && self.has_room(slot) {
            self.count_redirect(&request);
            self.transmit_as(slot, &mut request, &next, Nanos::MAX);
            return;
        }
        match self.open_connection(lane, self.now) {
            Ok(fresh) => {
                // The server closes after each response: the same request goes on over a new connection.
                let conn = &mut self.conns[fresh as usize];
                conn.prepared = Some(Box::new(next));
                conn.requests.push(&request);
                self.arm(fresh);
            }
            Err(class) => self.fail(lane, &request, class, 0, at),
        }
    }

    fn redirected(&self, request: &InFlight, path: &str, status: u16) -> Result<RequestTemplate, String> {
        let template = &self.plan.steps[request.step as usize].request;
        template.redirected(path, status).map_err(|error| error.to_string())
    }
}
