//! Connections: from the connect call to the first request, and their end.

use std::sync::Arc;

use plimsoll_core::{ErrorClass, Nanos};
use plimsoll_driver::{Backend, Chunk, Close, ConnId, Endpoint};
use plimsoll_metrics::{Http2Traffic, RATE_UNITS};
use plimsoll_plan::Protocol;
use plimsoll_wire::http2;
use plimsoll_wire::tls::Session;
use plimsoll_wire::tunnel::TunnelClient;

use super::Worker;
use super::resending::Lost;
use crate::connection::{Client, Conn, Fault, InTurn, State, Tls};
use crate::request::{AT_SEND, Loss, Requests};
use crate::websocket::WebSocket;

/// The name of HTTP/2 in ALPN.
const H2: &[u8] = b"h2";

impl<B: Backend> Worker<'_, B> {
    /// Begins to connect for `pool`.
    ///
    /// # Errors
    /// If not even a socket could be made. That is counted here.
    pub(super) fn open_connection(&mut self, pool: u32, now: Nanos) -> Result<u32, ErrorClass> {
        self.open_connection_at(pool, None, now)
    }

    /// Begins to connect for `pool`, to the site `wanted` if there is one and its name still leads there.
    ///
    /// # Errors
    /// If not even a socket could be made. That is counted here.
    pub(super) fn open_connection_at(
        &mut self,
        pool: u32,
        wanted: Option<u32>,
        now: Nanos,
    ) -> Result<u32, ErrorClass> {
        if self.dialing.is_full()
            && let Some(idle) = self.idle_dynamic_origins(pool)
        {
            self.mark_draining(idle);
        }
        if self.control.names().version() != self.names_heeded {
            self.take_new_addresses();
        }
        let addresses = &mut self.pools[pool as usize].target_addresses;
        let (target_address, endpoint) = match wanted.filter(|wanted| addresses.is_sound(*wanted)) {
            Some(wanted) => addresses.take_at(wanted),
            None => addresses.take(),
        };
        let opened = self.open_connection_to(pool, target_address, &endpoint, now);
        match opened {
            // The machine may have no way to addresses of that family, nor an address of its own in it.
            Err(class)
                if self.pools[pool as usize].target_addresses.has_families()
                    && self.lose_address(pool, target_address, class, now) =>
            {
                let (target_address, endpoint) = self.pools[pool as usize].target_addresses.take();
                self.open_connection_to(pool, target_address, &endpoint, now)
            }
            opened => opened,
        }
    }

    /// Lets new connections go where the names of the targets lead now.
    #[cold]
    fn take_new_addresses(&mut self) {
        self.names_heeded = self.control.names().version();
        self.moved = true;
        let latest = self.control.names().latest();
        for (pool, latest) in self.pools.iter_mut().zip(&latest) {
            pool.target_addresses.replace(&pool.server, latest);
            self.records.peers[pool.target].use_addresses(&pool.target_addresses.by_use().0);
        }
    }

    /// No connection could be made to this address of a pool. Returns `true` if requests may go to another
    /// one.
    fn lose_address(&mut self, pool: u32, target_address: u32, class: ErrorClass, now: Nanos) -> bool {
        let pool = &mut self.pools[pool as usize];
        // Neither is the fault of a family of addresses.
        let elsewhere = matches!(class, ErrorClass::Proxy | ErrorClass::DescriptorsExhausted);
        if elsewhere && pool.target_addresses.has_families() {
            return false;
        }
        let elsewhere = pool.target_addresses.lose(target_address, now);
        if pool.target_addresses.take_switch() {
            self.records.measured.connections.family_switches += 1;
            self.records.peers[pool.target].use_addresses(&pool.target_addresses.by_use().0);
        }
        elsewhere
    }

    fn open_connection_to(
        &mut self,
        pool_index: u32,
        target_address: u32,
        endpoint: &Endpoint,
        now: Nanos,
    ) -> Result<u32, ErrorClass> {
        let pool = &mut self.pools[pool_index as usize];
        let options = self.dialing.begin(self.plan);
        if self.outgoing.is_held() {
            // A connect is sent at once, and may not be sent before its request is due.
            self.outgoing.hold(&mut self.io);
        }
        // The pass that began at `now` may have done much since: other connects, and handshakes.
        let since = self.io.now().max(now);
        match self.io.connect(endpoint, &options) {
            Ok(id) => {
                let slot = id.slot();
                if self.conns.len() <= slot {
                    self.conns.resize_with(slot + 1, Conn::free);
                }
                pool.open += 1;
                self.dialing.note_connecting();
                let connections = &mut self.records.measured.connections;
                connections.peak_open = connections.peak_open.max(self.dialing.open());
                let conn = &mut self.conns[slot];
                let requests = std::mem::take(&mut conn.requests);
                debug_assert!(requests.is_empty(), "the slot was freed with requests");
                *conn = Conn {
                    id,
                    pool: pool_index,
                    target_address,
                    state: State::Connecting,
                    since,
                    number: self.dialing.ramp.opened(),
                    ..Conn::free()
                };
                conn.fills = pool.unfilled > 0;
                pool.unfilled -= u32::from(conn.fills);
                self.arm(slot as u32);
                Ok(slot as u32)
            }
            Err(error) => {
                pool.target_addresses.release(target_address);
                let class = of_connecting(error.class());
                self.connect_failed(class, &format!("connect to {endpoint}: {error}"));
                Err(class)
            }
        }
    }

    pub(super) fn connect_failed(&mut self, class: ErrorClass, reason: &str) {
        self.records.measured.connections.failed[class] += 1;
        self.note_error(class, reason);
    }

    /// Makes sure that the connection is examined when its next deadline comes.
    pub(super) fn arm(&mut self, slot: u32) {
        let conn = &mut self.conns[slot as usize];
        let mut deadline = conn.deadline(self.plan);
        if !conn.requests.is_empty() {
            // A request that waits for the flush has no deadline yet, and is not armed when it gets one.
            deadline = deadline.min(self.clock.now + self.steps.shortest_timeout);
        }
        if deadline < conn.armed {
            conn.armed = deadline;
            self.timers.arm(deadline, conn.id);
        }
    }

    /// Returns `true` if `id` is the connection that lives in its slot.
    #[inline]
    pub(super) fn lives(&self, id: ConnId) -> bool {
        self.conns.get(id.slot()).is_some_and(|conn| conn.id == id && conn.state != State::Free)
    }

    /// Frees the slot. The requests on it must have been dealt with.
    pub(super) fn release(&mut self, slot: u32, close: Option<Close>) {
        self.unlink_websocket(slot, ErrorClass::WebSocketClosed);
        self.count_traffic(slot);
        self.count_skipped(slot);
        let conn = &mut self.conns[slot as usize];
        if let Some(how) = close {
            self.io.close(conn.id, how);
        }
        // The connection was never open: the next one gets its users.
        self.pools[conn.pool as usize].unfilled += u32::from(std::mem::take(&mut conn.fills));
        let was_open = conn.state.is_established();
        self.pools[conn.pool as usize].barred -= u32::from(std::mem::take(&mut conn.barred));
        self.dialing.note_released(was_open);
        conn.state = State::Free;
        conn.requests = Requests::default();
        conn.client = Client::Undecided;
        conn.tls = None;
        conn.listed = false;
        let pool = &mut self.pools[conn.pool as usize];
        pool.open -= 1;
        pool.established -= u32::from(was_open);
        pool.target_addresses.release(conn.target_address);
        if was_open {
            pool.target_addresses.miss(conn.target_address, self.clock.now);
        }
    }

    /// Gives up a connection. Where replies come in turn, the oldest request fails with `first` and those
    /// behind it were never answered; on HTTP/2 all were under way. In the closed model their users go on.
    /// Requests that were not yet sent move to another connection, and those that the server has not
    /// processed are [sent again](super::resending).
    pub(super) fn break_off(&mut self, slot: u32, first: ErrorClass, close: Option<Close>, now: Nanos) {
        let lost = self.lost_with(slot, first);
        self.take_apart(slot, first, close, lost, now);
    }

    /// Gives up a connection whose last answer said that it is the last one. A server processes no request
    /// behind it (RFC 9112 section 9.6).
    pub(super) fn break_off_answered(&mut self, slot: u32, now: Nanos) {
        let lost = Lost::Unprocessed;
        self.take_apart(slot, ErrorClass::ClosedBeforeResponse, Some(Close::Now), lost, now);
    }

    fn take_apart(&mut self, slot: u32, first: ErrorClass, close: Option<Close>, how: Lost, now: Nanos) {
        let conn = &mut self.conns[slot as usize];
        let pool = conn.pool;
        let established = conn.state.is_established();
        let unreachable = conn.state.is_early() && first.is_connect();
        // Another server of the pool can take requests that were not sent.
        let target_address = conn.target_address;
        let fails_over = unreachable && self.lose_address(pool, target_address, first, now);
        let conn = &mut self.conns[slot as usize];
        // A server that closes each connection before its first answer is not tried for ever.
        let answered = conn.answered;
        let in_turn = matches!(conn.client, Client::InTurn(_));
        // Messages of a WebSocket cannot move to another connection.
        let is_linked = matches!(&conn.client, Client::WebSocket(socket) if !socket.is_fresh());
        let mut lost = std::mem::take(&mut conn.requests);
        self.unlink_websocket(slot, first);
        self.release(slot, close);
        let mut class = first;
        if !lost.is_empty() {
            // The end of a connection has no stamp, and perhaps a request follows from it: the next one is
            // seen at once.
            self.pools[pool as usize].awaiting.received(false);
        }
        while let Some(request) = lost.pop() {
            if request.is_given_up() {
                continue;
            }
            if (established && answered || fails_over) && request.is_unsent() && !is_linked {
                // None of its bytes has left: this is the same attempt, on another connection.
                let mut again = request;
                if request.sent == AT_SEND {
                    again.bytes_sent = 0;
                }
                self.exchanges.captures.renew(&mut again.capture);
                self.assign(pool, None, &mut again, Nanos::MAX, now);
                continue;
            }
            if self.may_resend_lost(&request, how) {
                self.resend(pool, &request, Loss::Closed);
                continue;
            }
            self.records.measured.connections.lost_on_kept +=
                u64::from(how == Lost::Perhaps && request.first_byte == Nanos::MAX);
            self.failures.blamed = Some(slot);
            self.fail(pool, &request, class, 0, now);
            // A connection that we close ourselves fails for no other reason.
            if established && in_turn && first != ErrorClass::AbortedByUs {
                class = ErrorClass::ClosedBeforeResponse;
            }
        }
    }

    /// Notes how many connections were free after the due arrivals were started, if the number grows with
    /// need.
    #[inline]
    pub(super) fn note_spare(&mut self) {
        if self.dialing.grows() {
            for pool in &mut self.pools {
                pool.spare.note(pool.available.len());
            }
        }
    }

    /// Closes some of the connections that have grown with need and were not needed for a while: never below
    /// the planned number, and the longest idle first.
    pub(super) fn close_spare(&mut self, now: Nanos) {
        let Some(&demand) = self.dialing.demand() else { return };
        for number in 0..self.pools.len() as u32 {
            let pool = &mut self.pools[number as usize];
            let surplus =
                demand.surplus(pool.open, pool.depth, now).min(pool.open.saturating_sub(pool.initial));
            let mut left = pool.spare.take_surplus(surplus, now);
            let mut place = 0;
            while left > 0
                && let Some(&slot) = self.pools[number as usize].available.get(place)
            {
                let conn = &self.conns[slot as usize];
                let listed = conn.pool == number && conn.listed && conn.state == State::Open;
                if listed && conn.requests.is_empty() {
                    self.pools[number as usize].available.remove(place);
                    self.mark_draining(slot);
                    left -= 1;
                } else {
                    place += 1;
                }
            }
        }
    }

    /// TCP is established, with the target or with the proxy.
    pub(super) fn on_connected(&mut self, slot: u32, at: Nanos) {
        let conn = &mut self.conns[slot as usize];
        match self.pools[conn.pool as usize].target_addresses.tunnel(conn.target_address) {
            None => self.on_reached(slot, at),
            Some(tunnel) => {
                let client = TunnelClient::begin(Arc::clone(tunnel), self.io.outbox(conn.id));
                conn.client = Client::Tunnel(Box::new(client));
                conn.state = State::Tunnelling;
            }
        }
    }

    /// Bytes came while the proxy is asked for a tunnel. Those behind its last one are of the target.
    pub(super) fn receive_tunnel(&mut self, id: ConnId, (at, stamped): (Nanos, bool), data: Chunk) {
        let slot = id.slot() as u32;
        let conn = &mut self.conns[slot as usize];
        let Client::Tunnel(client) = &mut conn.client else { return };
        self.buffers.control.clear();
        let mut input = self.io.bytes(data);
        let stands = client.receive(&self.plan.limits, &mut input, &mut self.buffers.control);
        let left = input.len();
        match stands {
            Ok(stands) => {
                self.io.outbox(id).extend_from_slice(&self.buffers.control);
                if stands {
                    conn.client = Client::Undecided;
                    self.on_reached(slot, at);
                    if left > 0 && self.lives(id) {
                        self.on_received(id, at, stamped, data.last(left));
                    }
                }
            }
            Err(error) => self.on_fault(slot, at, &error.into()),
        }
    }

    /// There is a way to the target, or to the proxy that is handed requests.
    fn on_reached(&mut self, slot: u32, at: Nanos) {
        let conn = &mut self.conns[slot as usize];
        self.records.measured.connections.connect_time.record(at.since(conn.since).0);
        conn.since = at;
        let target = &self.pools[conn.pool as usize].server;
        let Some(tls) = &target.tls else {
            self.agree(slot, at);
            return;
        };
        let member = self.pools[conn.pool as usize].target_addresses.member(conn.target_address);
        let server_name = target.pool.get(member).map_or(&tls.server_name, |member| &member.server_name);
        match Session::client(&tls.config, server_name) {
            Ok(mut session) => {
                session.transmit(self.io.outbox(conn.id));
                conn.tls = Some(Box::new(Tls { session, plain: Vec::new() }));
                conn.state = State::Handshaking;
            }
            Err(error) => {
                self.note_error(ErrorClass::Tls, &error.to_string());
                self.records.measured.connections.failed[ErrorClass::Tls] += 1;
                self.break_off(slot, ErrorClass::Tls, Some(Close::Now), at);
            }
        }
    }

    /// The TLS handshake is over.
    pub(super) fn on_secured(&mut self, slot: u32, at: Nanos) {
        let conn = &self.conns[slot as usize];
        if let Some(tls) = &conn.tls {
            self.records.measured.connections.tls_time.record(at.since(conn.since).0);
            self.records.measured.connections.tls_resumed += u64::from(tls.session.resumed());
            let version = tls.session.version();
            self.records.count_tls(version);
        }
        self.agree(slot, at);
    }

    /// Chooses the protocol, and begins to speak it.
    fn agree(&mut self, slot: u32, at: Nanos) {
        let conn = &mut self.conns[slot as usize];
        let protocol = self.pools[conn.pool as usize].server.protocol;
        let chosen = conn.tls.as_ref().map(|tls| tls.session.alpn().unwrap_or_default());
        let http2 = match (protocol, chosen) {
            (Protocol::Http2 | Protocol::WebSocketHttp2, Some(chosen)) if chosen != H2 => {
                let chosen = match chosen {
                    [] => "nothing".to_owned(),
                    other => String::from_utf8_lossy(other).into_owned(),
                };
                let reason = format!("the server does not speak HTTP/2: of ALPN h2 it chose {chosen}");
                self.on_fault(slot, at, &Fault::new(ErrorClass::WrongProtocol, reason));
                return;
            }
            (Protocol::Http2 | Protocol::WebSocketHttp2, _) => true,
            (Protocol::Negotiated, chosen) => chosen == Some(H2),
            // Replies come in turn.
            (_, _) => false,
        };
        if !http2 {
            conn.client = match protocol {
                Protocol::WebSocket => Client::WebSocket(WebSocket::new(conn.number ^ self.plan.seed)),
                Protocol::InTurn(protocol) => {
                    let number = self.plan.in_turn_protocols().take_while(|other| *other != protocol).count();
                    let opening = self.pools[conn.pool as usize].server.opening.as_ref();
                    let answers = opening.map_or(0, |opening| opening.answers);
                    conn.client = Client::InTurn(InTurn::foreign(protocol, number, answers));
                    if let Some(opening) = opening {
                        self.buffers.control.clear();
                        self.buffers.control.extend_from_slice(&opening.bytes);
                        conn.state = State::Greeting;
                        self.write_control(slot);
                        return;
                    }
                    return self.on_open(slot, at);
                }
                _ => Client::InTurn(InTurn::Http1(Default::default())),
            };
            self.on_open(slot, at);
            return;
        }
        self.buffers.control.clear();
        let (options, out) = (&self.dialing.http2, &mut self.buffers.control);
        conn.client = if protocol == Protocol::WebSocketHttp2 {
            let scheme = if conn.tls.is_some() { "https" } else { "http" };
            Client::WebSocket(WebSocket::over_http2(conn.number ^ self.plan.seed, options, scheme, out))
        } else {
            let mut client = http2::Client::new(options);
            client.start(out);
            Client::Http2(Box::new(client))
        };
        conn.state = State::Greeting;
        self.write_control(slot);
    }

    /// Counts the bytes of the messages on a connection that has ended, or whose run has.
    pub(super) fn count_traffic(&mut self, slot: u32) {
        let Client::Http2(client) = &mut self.conns[slot as usize].client else { return };
        let http2::Traffic { heads_sent, heads_received, fields_received, content_received } =
            client.take_traffic();
        let traffic = Http2Traffic { heads_sent, heads_received, fields_received, content_received };
        self.records.measured.connections.http2.traffic.merge(&traffic);
    }

    /// At the end of a run at `end`: counts the messages of the connections that are open, and how many
    /// requests each of them has taken per second.
    pub(super) fn count_open(&mut self, end: Nanos) {
        let keeps = self.plan.connections.keep_alive;
        for slot in 0..self.conns.len() {
            let conn = &self.conns[slot];
            let (requests, time) = (conn.served - conn.served_before, end.since(conn.since));
            if keeps && conn.state.is_established() && time > Nanos::ZERO {
                let units = u128::from(requests) * u128::from(RATE_UNITS) * u128::from(Nanos::from_secs(1).0);
                let rate = u64::try_from(units / u128::from(time.0)).unwrap_or(u64::MAX);
                self.records.measured.connections.request_rates.record(rate);
            }
            self.count_traffic(slot as u32);
            self.count_skipped(slot as u32);
        }
    }

    /// Ready for requests: sends those that were waiting for it.
    pub(super) fn on_open(&mut self, slot: u32, at: Nanos) {
        self.records.measured.connections.opened += 1;
        self.put_into_service(slot, at);
    }

    /// Notes whether the server of an HTTP/2 connection allows any streams on it.
    #[inline]
    pub(super) fn note_barred(&mut self, slot: u32) {
        let conn = &self.conns[slot as usize];
        let Client::Http2(client) = &conn.client else { return };
        let barred = client.server_limit() == Some(0);
        if barred != conn.barred {
            self.set_barred(slot, barred);
        }
    }

    #[cold]
    fn set_barred(&mut self, slot: u32, barred: bool) {
        let conn = &mut self.conns[slot as usize];
        conn.barred = barred;
        let pool = &mut self.pools[conn.pool as usize];
        if barred {
            pool.barred += 1;
            self.records.measured.connections.http2.barred += 1;
        } else {
            pool.barred -= 1;
            pool.depth = conn.depth(self.plan.connections.depth);
        }
    }

    /// Lets requests have the connection from now on.
    pub(super) fn put_into_service(&mut self, slot: u32, at: Nanos) {
        let conn = &mut self.conns[slot as usize];
        let settings = &self.plan.connections;
        conn.state = State::Open;
        conn.heard = at;
        conn.retires = settings.lifetime.map_or(Nanos::MAX, |lifetime| conn.retires.min(at + lifetime));
        self.dialing.note_open();
        let pool = &mut self.pools[conn.pool as usize];
        pool.connected();
        let found = pool.target_addresses.find(conn.target_address);
        pool.depth = conn.depth(settings.depth);
        let protocol = conn.client.protocol();
        if let Client::Http2(client) = &conn.client {
            conn.ping = self.plan.ping_interval.map_or(Nanos::MAX, |interval| at + interval);
            let record = &mut self.records.measured.connections.http2;
            record.connections += 1;
            if let Some(limit) = client.server_limit().filter(|limit| *limit > 0) {
                record.stream_limit = Some(record.stream_limit.map_or(limit, |least| least.min(limit)));
            }
        }
        let peer = &mut self.records.peers[pool.target];
        if peer.protocol.is_empty() {
            protocol.clone_into(&mut peer.protocol);
            if let Some(tls) = &conn.tls {
                peer.tls_version = Some(tls.session.version().to_owned());
                peer.tls_cipher = tls.session.cipher();
            }
        }
        self.note_barred(slot);
        self.transmit_waiting(slot);
        self.fill(slot);
        self.arm(slot);
        self.list(slot);
        if found {
            let pool = self.conns[slot as usize].pool;
            self.move_back(pool);
        }
    }

    /// Asks lost servers of pools whether they are there again, by a connection that is used if they are.
    pub(super) fn probe_lost(&mut self, now: Nanos) {
        for pool in 0..self.pools.len() as u32 {
            if self.pools[pool as usize].target_addresses.next_probe() > now || now >= self.clock.end {
                continue;
            }
            while let Some(target_address) = self.pools[pool as usize].target_addresses.probe(now) {
                let (target_address, endpoint) =
                    self.pools[pool as usize].target_addresses.take_at(target_address);
                // A connection that fails is counted, and tried again in a while.
                let _ = self.open_connection_to(pool, target_address, &endpoint, now);
            }
        }
    }

    /// A server of a pool is there again: the others give up connections above an even share, once it is
    /// idle.
    fn move_back(&mut self, pool: u32) {
        for slot in 0..self.conns.len() as u32 {
            let conn = &self.conns[slot as usize];
            let target_addresses = &self.pools[pool as usize].target_addresses;
            let mine = conn.pool == pool && conn.state == State::Open;
            if mine && target_addresses.excess(conn.target_address) > self.leaving(pool, conn.target_address)
            {
                self.mark_draining(slot);
            }
        }
    }

    /// Connections to a site that close once they are idle.
    fn leaving(&self, pool: u32, target_address: u32) -> u32 {
        let leaves = |conn: &&Conn| {
            conn.pool == pool && conn.target_address == target_address && conn.state == State::Draining
        };
        self.conns.iter().filter(leaves).count() as u32
    }
}

/// An error of the connect call that has no better class is still one of connecting.
pub(super) fn of_connecting(class: ErrorClass) -> ErrorClass {
    if class.is_connect() { class } else { ErrorClass::ConnectFailed }
}
