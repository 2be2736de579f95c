//! Connections: from the connect call to the first request, and their end.

use plimsoll_core::{ErrorClass, Nanos};
use plimsoll_driver::{Backend, Close, ConnId, Endpoint, SocketOptions};
use plimsoll_plan::Protocol;
use plimsoll_wire::cache::ReplyClient;
use plimsoll_wire::http1::ResponseClient;
use plimsoll_wire::http2;
use plimsoll_wire::tls::Session;

use super::Worker;
use crate::connection::{Client, Conn, Fault, InTurn, State, Tls};
use crate::request::{AT_SEND, InFlight, Requests};

/// The name of HTTP/2 in ALPN.
const H2: &[u8] = b"h2";

impl<B: Backend> Worker<'_, B> {
    /// Begins to connect for `lane`.
    ///
    /// # Errors
    /// If not even a socket could be made. That is counted here.
    pub(super) fn open_connection(&mut self, lane: u32, now: Nanos) -> Result<u32, ErrorClass> {
        if self.open_now >= self.most_open
            && let Some(idle) = self.idle_elsewhere(lane)
        {
            self.doom(idle);
        }
        let (site, endpoint) = self.lanes[lane as usize].sites.take();
        self.open_connection_to(lane, site, &endpoint, now)
    }

    fn open_connection_to(
        &mut self,
        lane_index: u32,
        site: u32,
        endpoint: &Endpoint,
        now: Nanos,
    ) -> Result<u32, ErrorClass> {
        let lane = &mut self.lanes[lane_index as usize];
        let sources = &self.plan.connections.sources;
        let source = (!sources.is_empty()).then(|| {
            self.sources += 1;
            sources[(self.sources - 1) % sources.len()]
        });
        let options = SocketOptions { source, ..SocketOptions::default() };
        self.ramp.note_opened();
        self.openings = self.openings.saturating_sub(1);
        match self.io.connect(endpoint, &options) {
            Ok(id) => {
                let slot = id.slot();
                if self.conns.len() <= slot {
                    self.conns.resize_with(slot + 1, Conn::free);
                }
                lane.open += 1;
                self.open_now += 1;
                self.connecting += 1;
                let connections = &mut self.recorder.connections;
                connections.peak_open = connections.peak_open.max(self.open_now);
                let conn = &mut self.conns[slot];
                let requests = std::mem::take(&mut conn.requests);
                debug_assert!(requests.is_empty(), "the slot was freed with requests");
                *conn = Conn {
                    id,
                    lane: lane_index,
                    site,
                    state: State::Connecting,
                    since: now,
                    number: self.ramp.opened(),
                    ..Conn::free()
                };
                conn.fills = lane.unfilled > 0;
                lane.unfilled -= u32::from(conn.fills);
                self.arm(slot as u32);
                Ok(slot as u32)
            }
            Err(error) => {
                lane.sites.release(site);
                let class = of_connecting(error.class());
                self.connect_failed(class, &format!("connect to {endpoint}: {error}"));
                Err(class)
            }
        }
    }

    pub(super) fn connect_failed(&mut self, class: ErrorClass, reason: &str) {
        self.recorder.connections.failed[class as usize] += 1;
        self.note_error(class, reason);
    }

    /// Makes sure that the connection is looked at when its next deadline comes.
    pub(super) fn arm(&mut self, slot: u32) {
        let conn = &mut self.conns[slot as usize];
        let mut deadline = conn.deadline(self.plan);
        if !conn.requests.is_empty() {
            // One that waits for the flush has no deadline yet, and nothing arms it when it gets one.
            deadline = deadline.min(self.now + self.shortest_timeout);
        }
        if deadline < conn.armed {
            conn.armed = deadline;
            self.timers.arm(deadline, conn.id);
        }
    }

    /// Whether `id` is the connection that lives in its slot.
    #[inline]
    pub(super) fn lives(&self, id: ConnId) -> bool {
        self.conns.get(id.slot()).is_some_and(|conn| conn.id == id && conn.state != State::Free)
    }

    /// Frees the slot. The requests on it must have been dealt with.
    pub(super) fn release(&mut self, slot: u32, close: Option<Close>) {
        let conn = &mut self.conns[slot as usize];
        if let Some(how) = close {
            self.io.close(conn.id, how);
        }
        self.connecting -= u32::from(conn.state.is_early());
        // It never was open: the next one has its users.
        self.lanes[conn.lane as usize].unfilled += u32::from(std::mem::take(&mut conn.fills));
        let was_open = conn.state.is_established();
        conn.state = State::Free;
        conn.requests = Requests::default();
        conn.client = Client::Undecided;
        conn.tls = None;
        conn.listed = false;
        let lane = &mut self.lanes[conn.lane as usize];
        lane.open -= 1;
        lane.sites.release(conn.site);
        if was_open {
            lane.sites.miss(conn.site, self.now);
        }
        self.open_now -= 1;
    }

    /// Gives up a connection. Where replies come in turn, the oldest request fails with `first` and those
    /// behind it were never answered; on HTTP/2 all were under way. In the closed model their users go on.
    /// What was not yet sent moves to another connection.
    pub(super) fn break_off(&mut self, slot: u32, first: ErrorClass, close: Option<Close>, now: Nanos) {
        let conn = &mut self.conns[slot as usize];
        let lane = conn.lane;
        let established = conn.state.is_established();
        let unreachable = conn.state.is_early() && first.is_connect();
        // A pool has other servers for what was not sent.
        let fails_over = unreachable && self.lanes[lane as usize].sites.lose(conn.site, now);
        // A server that closes each connection before its first answer is not tried for ever.
        let answered = conn.answered;
        let in_turn = matches!(conn.client, Client::InTurn(_));
        let mut lost = std::mem::take(&mut conn.requests);
        self.release(slot, close);
        let mut class = first;
        while let Some(request) = lost.pop() {
            if request.is_given_up() {
                continue;
            }
            if (established && answered || fails_over) && request.sent == AT_SEND {
                // Not a byte of it has left: it is not tried again, but tried at all, on another connection.
                let mut again = InFlight { bytes_sent: 0, ..request };
                self.captures.renew(&mut again.capture);
                self.seat(lane, None, &mut again, Nanos::MAX, now);
                continue;
            }
            self.blamed = Some(slot);
            self.fail(lane, &request, class, 0, now);
            // What we close fails for no other reason.
            if established && in_turn && first != ErrorClass::AbortedByUs {
                class = ErrorClass::ClosedBeforeResponse;
            }
        }
    }

    /// Notes how many connections were free after what was due has been started, where they grow with need.
    #[inline]
    pub(super) fn note_spare(&mut self) {
        if self.demand.is_some() {
            for lane in &mut self.lanes {
                lane.spare.note(lane.available.len());
            }
        }
    }

    /// Closes some of the connections that have grown with need and were not needed for a while: never below
    /// the planned number, and the longest idle first.
    pub(super) fn close_spare(&mut self, now: Nanos) {
        let Some(demand) = self.demand else { return };
        for number in 0..self.lanes.len() as u32 {
            let lane = &mut self.lanes[number as usize];
            let surplus =
                demand.surplus(lane.open, lane.depth, now).min(lane.open.saturating_sub(lane.initial));
            let mut left = lane.spare.take_surplus(surplus, now);
            let mut place = 0;
            while left > 0
                && let Some(&slot) = self.lanes[number as usize].available.get(place)
            {
                let conn = &self.conns[slot as usize];
                let listed = conn.lane == number && conn.listed && conn.state == State::Open;
                if listed && conn.requests.is_empty() {
                    self.lanes[number as usize].available.remove(place);
                    self.doom(slot);
                    left -= 1;
                } else {
                    place += 1;
                }
            }
        }
    }

    /// TCP is established.
    pub(super) fn on_connected(&mut self, slot: u32, at: Nanos) {
        let conn = &mut self.conns[slot as usize];
        self.recorder.connections.connect_time.record(at.since(conn.since).0);
        conn.since = at;
        let target = &self.lanes[conn.lane as usize].server;
        let Some(tls) = &target.tls else {
            self.agree(slot, at);
            return;
        };
        let member = self.lanes[conn.lane as usize].sites.member(conn.site);
        let server_name = target.pool.get(member).map_or(&tls.server_name, |member| &member.server_name);
        match Session::client(&tls.config, server_name) {
            Ok(mut session) => {
                session.transmit(self.io.outbox(conn.id));
                conn.tls = Some(Box::new(Tls { session, plain: Vec::new() }));
                conn.state = State::Handshaking;
            }
            Err(error) => {
                self.note_error(ErrorClass::Tls, &error.to_string());
                self.recorder.connections.failed[ErrorClass::Tls as usize] += 1;
                self.break_off(slot, ErrorClass::Tls, Some(Close::Now), at);
            }
        }
    }

    /// The TLS handshake is over.
    pub(super) fn on_secured(&mut self, slot: u32, at: Nanos) {
        let conn = &self.conns[slot as usize];
        if let Some(tls) = &conn.tls {
            self.recorder.connections.tls_time.record(at.since(conn.since).0);
            self.recorder.connections.tls_resumed += u64::from(tls.session.resumed());
            let version = tls.session.version();
            if let Some(count) = self.tls_versions.get_mut(version) {
                *count += 1;
            } else {
                self.tls_versions.insert(version.to_owned(), 1);
            }
        }
        self.agree(slot, at);
    }

    /// Decides what is spoken, and begins to.
    fn agree(&mut self, slot: u32, at: Nanos) {
        let conn = &mut self.conns[slot as usize];
        let protocol = self.lanes[conn.lane as usize].server.protocol;
        let chosen = conn.tls.as_ref().map(|tls| tls.session.alpn().unwrap_or_default());
        let http2 = match (protocol, chosen) {
            (Protocol::Http1 | Protocol::Cache, _) => false,
            (Protocol::Http2, Some(chosen)) if chosen != H2 => {
                let chosen = match chosen {
                    [] => "nothing".to_owned(),
                    other => String::from_utf8_lossy(other).into_owned(),
                };
                let reason = format!("the server does not speak HTTP/2: of ALPN h2 it chose {chosen}");
                self.on_fault(slot, at, &Fault::new(ErrorClass::WrongProtocol, reason));
                return;
            }
            (Protocol::Http2, _) => true,
            (Protocol::Negotiated, chosen) => chosen == Some(H2),
        };
        if !http2 {
            conn.client = Client::InTurn(match protocol {
                Protocol::Cache => InTurn::Cache(ReplyClient::new()),
                _ => InTurn::Http1(ResponseClient::new()),
            });
            self.on_open(slot, at);
            return;
        }
        let mut client = http2::Client::new(&self.http2);
        self.control_bytes.clear();
        client.start(&mut self.control_bytes);
        conn.client = Client::Http2(Box::new(client));
        conn.state = State::Greeting;
        self.write_control(slot);
    }

    /// Ready for requests: sends those that were waiting for it.
    pub(super) fn on_open(&mut self, slot: u32, at: Nanos) {
        let conn = &mut self.conns[slot as usize];
        let settings = &self.plan.connections;
        conn.state = State::Open;
        conn.heard = at;
        conn.retires = settings.lifetime.map_or(Nanos::MAX, |lifetime| at + lifetime);
        self.connecting -= 1;
        self.recorder.connections.opened += 1;
        let lane = &mut self.lanes[conn.lane as usize];
        lane.connected();
        let found = lane.sites.find(conn.site);
        lane.depth = conn.depth(settings.depth);
        let protocol = conn.client.protocol();
        if let Client::Http2(client) = &conn.client {
            conn.ping = self.plan.ping_interval.map_or(Nanos::MAX, |interval| at + interval);
            let record = &mut self.recorder.connections.http2;
            record.connections += 1;
            if let Some(limit) = client.server_limit() {
                record.stream_limit = Some(record.stream_limit.map_or(limit, |least| least.min(limit)));
            }
        }
        let peer = &mut self.peers[lane.target];
        if peer.protocol.is_empty() {
            protocol.clone_into(&mut peer.protocol);
            if let Some(tls) = &conn.tls {
                peer.tls_version = Some(tls.session.version().to_owned());
                peer.tls_cipher = tls.session.cipher();
            }
        }
        self.transmit_waiting(slot);
        self.fill(slot);
        self.arm(slot);
        self.list(slot);
        if found {
            let lane = self.conns[slot as usize].lane;
            self.move_back(lane);
        }
    }

    /// Asks lost servers of pools whether they are there again, by a connection that is used if they are.
    pub(super) fn probe_lost(&mut self, now: Nanos) {
        for lane in 0..self.lanes.len() as u32 {
            if self.lanes[lane as usize].sites.next_probe() > now || now >= self.times.end {
                continue;
            }
            while let Some(site) = self.lanes[lane as usize].sites.probe(now) {
                let (site, endpoint) = self.lanes[lane as usize].sites.take_at(site);
                // What failed is counted, and tried again in a while.
                let _ = self.open_connection_to(lane, site, &endpoint, now);
            }
        }
    }

    /// A server of a pool is there again: the others give up what they have above an even share, once it is
    /// idle.
    fn move_back(&mut self, lane: u32) {
        for slot in 0..self.conns.len() as u32 {
            let conn = &self.conns[slot as usize];
            let sites = &self.lanes[lane as usize].sites;
            let mine = conn.lane == lane && conn.state == State::Open;
            if mine && sites.excess(conn.site) > self.leaving(lane, conn.site) {
                self.doom(slot);
            }
        }
    }

    /// Connections to a site that close once they are idle.
    fn leaving(&self, lane: u32, site: u32) -> u32 {
        let leaves = |conn: &&Conn| conn.lane == lane && conn.site == site && conn.state == State::Doomed;
        self.conns.iter().filter(leaves).count() as u32
    }

    /// Not earlier than when it is sent: a connection that has to be opened for it may fail, and then the
    /// target does not get it.
    pub(super) fn count_redirect(&mut self, request: &InFlight) {
        let accounting = &mut self.counts.accounting;
        if request.measured {
            accounting.redirects_followed += 1;
        } else {
            accounting.unmeasured += 1;
        }
    }
}

/// An error of the connect call that has no better class is still one of connecting.
pub(super) fn of_connecting(class: ErrorClass) -> ErrorClass {
    if class.is_connect() { class } else { ErrorClass::ConnectFailed }
}
