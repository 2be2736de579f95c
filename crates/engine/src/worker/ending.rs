//! Ending: the one place where a request's end is recorded, deadlines, and the final accounts.

use plimsoll_core::{ErrorClass, Nanos, Outcome};
use plimsoll_driver::{Backend, Close};
use plimsoll_metrics::log::StreamLogEntry;
use plimsoll_metrics::{EarlyEnd, EndedBy, LogEntry, Sample};
use plimsoll_plan::Load;

use super::proceeding::Fate;
use super::{Kept, Worker, WorkerReport};
use crate::capture::NO_CAPTURE;
use crate::connection::{Client, State};
use crate::control::Stop;
use crate::event_stream::{self, StreamState};
use crate::request::{AT_SEND, InFlight, Intent};

/// Returns `true` if a request ended because something came from the target.
#[inline]
const fn is_from_target(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Ok => true,
        Outcome::TimedOut => false,
        Outcome::Failed(class) => !matches!(
            class,
            ErrorClass::AbortedByUs
                | ErrorClass::ConnectTimeout
                | ErrorClass::PortsExhausted
                | ErrorClass::DescriptorsExhausted
        ),
    }
}

impl<B: Backend> Worker<'_, B> {
    /// Records the end of a request; `response` is the status and the bytes of its response, zeros if there
    /// was none. [`conclude`](Self::conclude) applies it to the iteration.
    pub(super) fn finish(&mut self, request: &InFlight, outcome: Outcome, response: (u16, u64), at: Nanos) {
        let (status, bytes_received) = response;
        self.counts.end();
        let (mut request, mut at) = (*request, at);
        if request.sent != AT_SEND {
            at = self.resolve_send(&mut request, at, status != 0);
        }
        if is_from_target(outcome) {
            self.counts.note_answer(request.sent, at);
        }
        let request = &request;
        let intended = request.intended.min(request.sent).min(at);
        let sample = Sample {
            step: request.step,
            intended,
            started: request.started.min(at).max(intended),
            sent: request.sent,
            first_byte: request.first_byte,
            done: at,
            outcome,
            status,
            bytes_sent: request.bytes_sent,
            bytes_received,
        };
        let unix = self.clock.unix(intended);
        let entry = |trace| LogEntry { trace, ..LogEntry::new(&sample, unix, !request.measured) };
        if self.exchanges.log.wants() {
            let entry = entry(self.trace_of(request));
            self.exchanges.log.push(entry);
        }
        if outcome.is_bad() {
            self.quote(request, outcome, status, at);
        }
        if self.exchanges.log.wants_exchange(outcome.is_bad()) {
            let entry = entry(self.trace_of(request));
            self.hand_over(request, entry);
        }
        if self.steps.facts[request.step as usize].writes && self.exchanges.log.keeps_writes() {
            let entry = entry(self.trace_of(request));
            self.hand_over_write(request, entry);
        }
        if self.steps.facts[request.step as usize].streams {
            self.record_stream(request, &sample, unix);
        }
        if !request.measured {
            self.exchanges.captures.end(request.capture);
            let carried = sample.is_complete() && at >= self.clock.measure;
            self.counts.end_unmeasured(request, outcome, carried && at <= self.clock.end);
            self.records.warmup.record(&sample);
            if carried {
                self.records.measured.note_carried(request.step);
            }
            return;
        }
        self.records.measured.record(&sample);
        if self.slowest.has_room(request.step, sample.response_time()) {
            self.keep_slow(request, &sample);
        }
        self.exchanges.captures.end(request.capture);
        if self.stalls.met(intended, at) {
            self.records.measured.record_in_stall(&sample);
        }
        let in_window = sample.is_complete() && at <= self.clock.end;
        self.counts.end_measured(request, outcome, at, in_window);
    }

    /// Records the events of an ended request, whose capture is still there.
    fn record_stream(&mut self, request: &InFlight, sample: &Sample, unix: Nanos) {
        let mut state = match request.capture {
            NO_CAPTURE => None,
            capture => self.exchanges.captures.get_mut(capture).events_mut(),
        };
        let record = self.records.of(request).event_streams(request.step);
        event_stream::record(record, state.as_deref(), sample, self.plan.goodput.as_ref());
        if self.exchanges.log.keeps_streams() {
            let (tokens, prompt_tokens) = state.as_deref().map_or((None, None), StreamState::counts);
            let times = state.as_mut().and_then(|state| state.take_times());
            let trace = self.trace_of(request);
            self.exchanges.log.push_stream(StreamLogEntry {
                entry: LogEntry { trace, ..LogEntry::new(sample, unix, !request.measured) },
                intended: sample.intended,
                sent: (sample.sent != Nanos::MAX).then_some(sample.sent),
                prompt_tokens,
                tokens,
                times,
            });
        }
    }

    /// The class of a failure: of a stream that had begun, where its connection broke off, another one.
    #[cold]
    fn class_of_stream(&mut self, request: &InFlight, class: ErrorClass) -> ErrorClass {
        let state = match request.capture {
            NO_CAPTURE => None,
            capture => self.exchanges.captures.get_mut(capture).events(),
        };
        let of_stream = event_stream::class_of(class, state);
        if of_stream != class {
            let events = state.map_or(0, StreamState::events);
            let known = self.failures.reason(class);
            let reason = known.map_or_else(|| class.name().replace('_', " "), String::clone);
            self.note_error(of_stream, &format!("{reason}, after {events} events of a stream"));
        }
        of_stream
    }

    /// Settles when a request was sent whose end came `at`, and returns when that was. Only one that was
    /// `responded` to has a service time that may be wrong.
    ///
    /// A receive stamp before the request's first byte is impossible, as a response is that came before its
    /// request: then the end is when it was read, and the response counts as unstamped.
    #[inline]
    fn resolve_send(&mut self, request: &mut InFlight, at: Nanos, responded: bool) -> Nanos {
        let share = request.sent;
        if !responded {
            // Without a response the time of sending stays unknown, and the deadline was counted from the
            // share.
            request.sent = share.min(at);
            return at;
        }
        let resolved = self.outgoing.send_times.resolve(share, request.first_byte, at);
        request.sent = resolved.at;
        if request.started == share {
            request.started = resolved.at;
        }
        // In the closed model a request is intended when it is sent.
        if request.intended == share && matches!(self.plan.load, Load::Closed) {
            request.intended = resolved.at;
        }
        self.records.worker.send_time_uncertain += u64::from(resolved.uncertain && request.measured);
        if at > resolved.at {
            return at;
        }
        self.batch.impossible += 1;
        self.clock.now.max(resolved.at)
    }

    /// A request that failed; `status` is that of its response, 0 if there was none. Its iteration goes on if
    /// its step wants that, and else, in the closed model, its user; after a pause if it was the connection
    /// that failed.
    pub(super) fn fail(&mut self, pool: u32, request: &InFlight, class: ErrorClass, status: u16, at: Nanos) {
        let home = self.home_of(request, pool);
        let class = match self.steps.facts[request.step as usize].streams {
            true => self.class_of_stream(request, class),
            false => class,
        };
        self.do_without_response(request, pool);
        self.finish(request, Outcome::Failed(class), (status, 0), at);
        let fate = self.conclude(request, false);
        if fate == Fate::Pending || fate == Fate::Over && !matches!(self.plan.load, Load::Closed) {
            return;
        }
        let now = self.clock.now;
        // A request without a connection, also to a redirect's target, would be tried again at once.
        let pause = if matches!(class, ErrorClass::Script | ErrorClass::TooManyServers) {
            // The error says nothing about the target.
            Nanos::from_millis(1)
        } else if request.sent == AT_SEND || class.is_connect() || class == ErrorClass::Tls {
            self.pools[pool as usize].backoff(now)
        } else {
            Nanos::ZERO
        };
        match fate {
            Fate::GoesOn => self.iterations.sleep(request.session, now + pause),
            _ => self.users.retry(now + pause, home),
        }
    }

    /// Deals with every deadline that has come.
    pub(super) fn expire(&mut self, now: Nanos) {
        while let Some((at, id)) = self.timers.pop_due(now) {
            if !self.lives(id) || self.conns[id.slot()].armed != at {
                continue;
            }
            let slot = id.slot() as u32;
            self.conns[id.slot()].armed = Nanos::MAX;
            if self.conns[id.slot()].deadline(self.plan) <= now {
                self.expire_connection(slot, now);
            }
            if self.lives(id) {
                self.arm(slot);
            }
        }
        for pool in 0..self.pools.len() as u32 {
            while let Some(request) = self.pools[pool as usize].take_overdue(now) {
                self.time_out(pool, &request, now);
            }
        }
    }

    /// No whole response came in time. Its iteration goes on if its step wants that, and else, in the closed
    /// model, its user.
    pub(super) fn time_out(&mut self, pool: u32, request: &InFlight, now: Nanos) {
        let home = self.home_of(request, pool);
        self.do_without_response(request, pool);
        self.finish(request, Outcome::TimedOut, (0, 0), now);
        match self.conclude(request, false) {
            Fate::GoesOn => self.iterations.sleep(request.session, now),
            Fate::Over if matches!(self.plan.load, Load::Closed) => self.users.retry(now, home),
            Fate::Over | Fate::Pending => {}
        }
    }

    fn expire_connection(&mut self, slot: u32, now: Nanos) {
        self.failures.forget_reason();
        let conn = &mut self.conns[slot as usize];
        let (id, early, pool) = (conn.id, conn.state.is_early(), conn.pool);
        if early && conn.since + self.plan.connect_timeout <= now {
            let what = match conn.state {
                State::Connecting => "connection",
                State::Tunnelling => "tunnel through the proxy",
                State::Handshaking => "TLS handshake",
                _ => "HTTP/2 settings",
            };
            let pool = &mut self.pools[pool as usize];
            pool.reached &= pool.established > 0;
            self.connect_failed(ErrorClass::ConnectTimeout, &format!("no {what} within the connect timeout"));
            self.break_off(slot, ErrorClass::ConnectTimeout, Some(Close::Reset), now);
            return;
        }
        if !early && conn.silent_until(self.plan) <= now {
            if !conn.requests.is_empty() {
                let reason = "no data on the connection within the inactivity limit";
                self.note_error(ErrorClass::Inactive, reason);
            }
            self.break_off(slot, ErrorClass::Inactive, Some(Close::Now), now);
            return;
        }
        self.expire_requests(slot, pool, now);
        if !self.lives(id) {
            return;
        }
        if early {
            // A connection that is still being established goes on without them.
            self.conns[slot as usize].requests.forget_abandoned();
            return;
        }
        let conn = &mut self.conns[slot as usize];
        if let Client::Http2(client) = &mut conn.client
            && conn.ping <= now
        {
            conn.ping = self.plan.ping_interval.map_or(Nanos::MAX, |interval| now + interval);
            self.buffers.control.clear();
            client.ping(now.0, &mut self.buffers.control);
            self.write_control(slot);
        }
        let conn = &mut self.conns[slot as usize];
        if conn.ping <= now && matches!(conn.client, Client::WebSocket(_)) {
            self.beat(slot, now);
        }
        let conn = &mut self.conns[slot as usize];
        if conn.retires <= now {
            conn.retires = Nanos::MAX;
            if let Client::Http2(client) = &mut conn.client {
                self.buffers.control.clear();
                client.go_away(&mut self.buffers.control);
                self.write_control(slot);
            }
            self.mark_draining(slot);
        }
    }

    /// Gives up the requests on a connection whose time is over.
    fn expire_requests(&mut self, slot: u32, pool: u32, now: Nanos) {
        if self.outgoing.has_requests() {
            // Requests that are already written leave in any case.
            self.flush();
        }
        let mut overdue = std::mem::take(&mut self.buffers.overdue);
        overdue.clear();
        let conn = &mut self.conns[slot as usize];
        conn.requests.overdue(self.plan, now, &mut overdue);
        self.buffers.control.clear();
        let (mut in_turn, mut aborts) = (false, false);
        for &ticket in &overdue {
            let conn = &mut self.conns[slot as usize];
            if !matches!(conn.client, Client::Http2(_))
                && conn.requests.get_mut(ticket).is_some_and(|request| request.intent == Intent::Abandon)
            {
                // The connection goes with it.
                aborts = true;
                continue;
            }
            let request = match &mut conn.client {
                Client::Http2(client) if conn.state.is_established() => {
                    // Its slot is free again; a late response is ignored.
                    client.cancel(ticket, &mut self.buffers.control);
                    self.records.measured.connections.http2.cancelled += 1;
                    conn.requests.take(ticket)
                }
                // Later messages do not belong to the request.
                Client::WebSocket(socket) if socket.is_open() => conn.requests.take(ticket),
                _ => {
                    in_turn = true;
                    conn.requests.get_mut(ticket).map(|request| {
                        let given_up = *request;
                        request.intent = Intent::GiveUp;
                        request.capture = NO_CAPTURE;
                        given_up
                    })
                }
            };
            self.failures.blamed = Some(slot);
            match request {
                Some(request) if request.intent == Intent::Abandon => {
                    self.fail(pool, &request, ErrorClass::AbortedByUs, 0, now);
                }
                Some(request) => self.time_out(pool, &request, now),
                None => {}
            }
        }
        self.failures.blamed = None;
        self.buffers.overdue = overdue;
        self.write_control(slot);
        if aborts {
            self.break_off(slot, ErrorClass::AbortedByUs, Some(Close::Now), now);
            return;
        }
        if !self.conns[slot as usize].state.is_early() {
            if in_turn {
                // The next responses belong to requests that were given up, so no new ones are taken.
                self.conns[slot as usize].state = State::Draining;
            }
            self.finish_request(slot);
        }
    }

    pub(super) fn heed_control(&mut self, now: Nanos) {
        self.heed_changes(now);
        self.is_stopped_by_script(now);
        match self.control.requested_stop() {
            Stop::No => {}
            Stop::Drain if self.clock.end > now => self.clock.end_load(now, self.plan),
            Stop::Drain => {}
            Stop::Now => {
                self.clock.stop(now);
            }
        }
    }

    /// Takes up changes of the rate, if there are new ones.
    #[inline]
    pub(super) fn heed_changes(&mut self, now: Nanos) {
        let version = self.control.version();
        if version != self.heeded {
            self.heeded = version;
            self.take_up_changes(now);
        }
    }

    /// Returns `true` if a script has asked for the end of the load, or has failed with an error that ends
    /// the run. Nothing more is begun then, steps to come included. As in wrk, a run that has a length keeps
    /// it, and its rates are over that; one that is counted ends.
    #[inline]
    pub(super) fn is_stopped_by_script(&mut self, now: Nanos) -> bool {
        let stops = self.content.wants_to_stop();
        if stops && self.clock.end > now {
            self.iterations.complete(now);
            if !self.keeps_its_length() {
                self.clock.end_load(now, self.plan);
            }
        }
        stops
    }

    /// Returns `true` if the load lasts as long as the plan says though a script has ended it.
    pub(super) fn keeps_its_length(&self) -> bool {
        self.plan.end.duration.is_some() && self.plan.end.iterations.is_none()
    }

    /// The rate was changed. Arrivals up to `now` may have been taken; the change applies later than that.
    fn take_up_changes(&mut self, now: Nanos) {
        let Some(profile) = self.control.profile() else { return };
        for pool in &mut self.pools {
            pool.change(&profile);
        }
        let peak = profile.peak_from(now.since(self.clock.start));
        if let Some(demand) = self.dialing.demand_mut() {
            demand.change_rate(self.plan, peak / f64::from(self.shard.of));
        }
        self.pacer.change_rate(peak / f64::from(self.shard.of));
    }

    /// Logs a request that may have changed something, was sent and has not ended: it is reported with the
    /// other writes.
    fn hand_over_unfinished(&mut self, request: &InFlight, now: Nanos) {
        if !self.steps.facts[request.step as usize].writes
            || !self.exchanges.log.keeps_writes()
            || request.sent == AT_SEND
        {
            return;
        }
        let intended = if request.intended == AT_SEND { request.sent } else { request.intended };
        let entry = LogEntry {
            unix: self.clock.unix(intended),
            step: request.step,
            status: 0,
            outcome: Outcome::TimedOut,
            response_time: now.since(intended),
            service_time: Some(now.since(request.sent)),
            bytes_received: 0,
            warmup: !request.measured,
            trace: self.trace_of(request),
        };
        self.hand_over_write(request, entry);
    }

    /// At the end of the measured part: requests that were taken up in the warm-up and have no answer yet
    /// have waited all through it, and count as measured from now on. Without them a target that hangs
    /// before the measured part would show none of that in it.
    pub(super) fn carry_over(&mut self) {
        if self.clock.end <= self.clock.measure {
            return;
        }
        let on_connections = self.conns.iter_mut().filter(|conn| conn.state != State::Free);
        let on_connections = on_connections.flat_map(|conn| conn.requests.iter_mut());
        let waiting = self.pools.iter_mut().flat_map(|pool| pool.waiting.iter_mut().map(|(_, one)| one));
        for request in on_connections.chain(waiting).chain(self.polls.requests_mut()) {
            // One that was due in the warm-up may have been taken up just now.
            let before = request.waits_since() < self.clock.measure;
            if request.measured || request.is_given_up() || !before {
                continue;
            }
            request.measured = true;
            // The mark of a request that is not of the measured part: it was due before.
            request.intended = request.intended.min(request.started);
            self.counts.carry_over();
            self.records.measured.note_started(request.step);
        }
    }

    /// Accounts for the requests that have not ended when the run has. Each has waited for at least as long
    /// as it has been due.
    pub(super) fn leave_unfinished(&mut self, now: Nanos) {
        let mut unfinished = Vec::new();
        for conn in &self.conns {
            if conn.state == State::Free {
                continue;
            }
            // Connections are not closed one by one: the end of the backend does that at a lower cost.
            unfinished.extend(conn.requests.iter().filter(|request| !request.is_given_up()).copied());
        }
        for pool in &self.pools {
            unfinished.extend(pool.waiting.iter().map(|(_, request)| request));
        }
        unfinished.extend(self.polls.requests());
        for request in unfinished {
            self.hand_over_unfinished(&request, now);
            self.counts.leave_unfinished(&request);
            if !request.measured {
                continue;
            }
            let started = if request.started == AT_SEND { now } else { request.started };
            let intended = if request.intended == AT_SEND { started } else { request.intended };
            let service = (request.sent != AT_SEND).then(|| now.since(request.sent));
            let (lag, response) = (started.since(intended), now.since(intended));
            self.records.measured.record_unfinished(request.step, lag, response, service);
        }
    }

    /// The end of an open load by itself, before the length that the plan gives it.
    pub(super) fn early_end(&self) -> Option<EarlyEnd> {
        let (Load::Open { .. }, Some(planned)) = (&self.plan.load, self.plan.planned()) else { return None };
        let completion = self.iterations.completion()?;
        let after = completion.at.since(self.clock.measure);
        let by = match completion.feed {
            Some(feed) => EndedBy::Data(self.plan.feeds[usize::from(feed)].name.clone()),
            None => EndedBy::Script,
        };
        (after < planned).then_some(EarlyEnd { by, after })
    }

    /// Settles the accounts. The connections go with the backend.
    pub(super) fn report(mut self, now: Nanos) -> (WorkerReport, Kept<B>) {
        // Arrivals beyond a fence belong to another process.
        let end = self.clock.end.min(self.control.fenced_from());
        for pool in self.pools.iter().filter(|_| !self.iterations.is_complete()) {
            let passed = pool.give_up_before(end.since(self.clock.start), self.iterations.exhausted());
            self.counts.never_start(passed.measured, passed.without_data);
        }
        self.note_blocked(None, self.clock.end.min(now));
        let window = self.clock.end.since(self.clock.measure);
        self.records.worker.wall = window;
        self.records.worker.shared_wakeups = self.pacer.napped().min(window);
        let pacing_budget = self.pacer.budget();
        self.count_open(self.clock.end.min(now));
        let early_end = self.early_end();
        let mut connections = std::mem::take(&mut self.records.measured.connections);
        self.state_limits(&mut connections);
        self.exchanges.log.flush();
        let mut steps = self.records.measured.finish();
        let (examples, error_examples) = self.failures.finish();
        for ((step, examples), slowest) in steps.iter_mut().zip(examples).zip(self.slowest.finish()) {
            (step.error_examples, step.slowest) = (examples, slowest);
        }
        let mut iterations = self.counts.iterations();
        let ended = iterations.completed + iterations.failed;
        iterations.unfinished = iterations.started.saturating_sub(ended);
        if let Some(scripts) = self.content.scripts.take() {
            self.control.leave(scripts.finish());
        }
        if let Some(pool) = self.plan.leaves {
            self.control.leave(Box::new(self.content.feeds.rows(pool)));
        }
        let bodies = self.content.bodies.count();
        (self.records.worker.bodies, self.records.worker.bodies_late) = (bodies.taken, bodies.late);
        (self.records.worker.bodies_unsigned, self.records.worker.bodies_expired) =
            (bodies.unsigned, bodies.expired);
        let report = WorkerReport {
            shard: self.shard,
            early_end,
            steps,
            connections,
            accounting: self.counts.accounting(),
            worker: self.records.worker,
            peers: self.records.peers,
            metrics: self.content.metrics.finish(self.plan),
            tls_versions: self.records.tls_versions,
            protocols: self.counts.protocols(self.plan),
            iterations,
            error_examples,
            completed_in_window: self.counts.completed_in_window(),
            window,
            drain: now.since(self.clock.end),
            pacing_budget,
            log: self.exchanges.log.record(),
        };
        let mut kept = Kept { io: self.io, conns: self.conns };
        if self.moved {
            kept.retire();
        }
        (report, kept)
    }
}
