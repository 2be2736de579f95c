//! Answers: what a whole response means for its request, its session and its connection.

use plimsoll_core::{ErrorClass, Nanos, Outcome};
use plimsoll_driver::{Backend, Close};
use plimsoll_plan::Load;
use plimsoll_scenario::RequestTemplate;

use super::Worker;
use super::proceeding::{Course, Fate};
use crate::capture::NO_CAPTURE;
use crate::connection::{Client, Reply, State};
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
    /// A whole response came for the request under this ticket; what is needed of it is in its capture.
    pub(super) fn on_response(&mut self, slot: u32, ticket: u32, at: Nanos, reply: Reply) {
        let conn = &mut self.conns[slot as usize];
        let http2 = matches!(conn.client, Client::Http2(_));
        if http2 && conn.requests.get_mut(ticket).is_some_and(|request| request.sent == AT_SEND) {
            // An answer to what was not asked yet: it gets its instant all the same.
            self.flush();
        }
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
        let (lane, site) = (conn.lane, conn.site);
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
            self.keep_cookies(&request, (lane, site));
            let location = self.location(&request);
            let redirect = Redirect { slot, lane, here, status: reply.status, location, at };
            self.on_redirect(redirect, request);
            if usable {
                self.list(slot);
            }
            return;
        }
        let outcome = self.judge(&request, (lane, site), reply.status);
        self.counts.answered[usize::from(http2)] += u64::from(request.measured);
        let home = self.home_of(&request, lane);
        self.finish(&request, outcome, (reply.status, reply.wire_bytes), at);
        let slot_if_usable = usable.then_some(slot);
        let fate = self.conclude(&request, outcome == Outcome::Ok);
        let over = match fate {
            Fate::Pending => false,
            Fate::Over => true,
            Fate::GoesOn => {
                let due = self.due_after(at);
                self.proceed(request.session, lane, slot_if_usable, due) != Course::UnderWay
            }
        };
        if over && matches!(self.plan.load, Load::Closed) {
            self.next_iteration(home, slot_if_usable.filter(|_| home == lane), at, self.now);
        }
        // What follows may think first, go to another target, or not be at all.
        if usable {
            self.list(slot);
        }
    }

    /// The lane to which the user of a request belongs.
    pub(super) fn home_of(&self, request: &InFlight, lane: u32) -> u32 {
        self.sessions.get(request.session).map_or(lane, |session| session.home)
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
        self.captures.end(request.capture);
        request.capture = NO_CAPTURE;
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
