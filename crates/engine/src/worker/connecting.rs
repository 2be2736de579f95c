//! Connections: from the connect call to the first request, and their end.

use plimsoll_core::{ErrorClass, Nanos};
use plimsoll_driver::{Backend, Close, ConnId, SocketOptions};
use plimsoll_wire::tls::Session;

use super::Worker;
use crate::connection::{AT_SEND, Conn, InFlight, State};

impl<B: Backend> Worker<'_, B> {
    /// Begins to connect for `lane`.
    ///
    /// # Errors
    /// If not even a socket could be made. That is counted here.
    pub(super) fn open_connection(&mut self, lane_index: u32, now: Nanos) -> Result<u32, ErrorClass> {
        let lane = &mut self.lanes[lane_index as usize];
        let endpoint = lane.next_endpoint();
        let sources = &self.plan.connections.sources;
        let source = (!sources.is_empty()).then(|| {
            self.sources += 1;
            sources[(self.sources - 1) % sources.len()]
        });
        let options = SocketOptions { source, ..SocketOptions::default() };
        match self.io.connect(&endpoint, &options) {
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
                conn.id = id;
                conn.lane = lane_index;
                conn.state = State::Connecting;
                conn.listed = false;
                conn.armed = Nanos::MAX;
                conn.since = now;
                conn.served = 0;
                self.arm(slot as u32);
                Ok(slot as u32)
            }
            Err(error) => {
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

    pub(super) fn arm(&mut self, slot: u32) {
        let conn = &mut self.conns[slot as usize];
        let deadline = conn.deadline(self.plan.connect_timeout);
        if deadline < conn.armed {
            conn.armed = deadline;
            self.timers.arm(deadline, conn.id);
        }
    }

    /// Whether `id` is the connection that lives in its slot.
    pub(super) fn lives(&self, id: ConnId) -> bool {
        self.conns.get(id.slot()).is_some_and(|conn| conn.id == id && conn.state != State::Free)
    }

    /// Frees the slot. The requests on it must have been dealt with.
    pub(super) fn release(&mut self, slot: u32, close: Option<Close>) {
        let conn = &mut self.conns[slot as usize];
        if let Some(how) = close {
            self.io.close(conn.id, how);
        }
        self.connecting -= u32::from(matches!(conn.state, State::Connecting | State::Handshaking));
        conn.state = State::Free;
        conn.client.reset();
        conn.tls = None;
        conn.prepared = None;
        conn.listed = false;
        self.lanes[conn.lane as usize].open -= 1;
        self.open_now -= 1;
    }

    /// Gives up a connection: the oldest request fails with `first`, those behind it were never answered. In
    /// the closed model their users go on. What was not yet sent moves to another connection.
    pub(super) fn break_off(&mut self, slot: u32, first: ErrorClass, close: Option<Close>, now: Nanos) {
        let lane = self.conns[slot as usize].lane;
        let established = matches!(self.conns[slot as usize].state, State::Open | State::Doomed);
        let mut lost = std::mem::take(&mut self.conns[slot as usize].requests);
        self.release(slot, close);
        let mut class = first;
        while let Some(request) = lost.pop() {
            if request.abandoned {
                continue;
            }
            if established && request.sent == AT_SEND {
                // Not a byte of it has left: it is not tried again, but tried at all, on another connection.
                self.seat(lane, None, InFlight { bytes_sent: 0, ..request }, now);
                continue;
            }
            self.fail(lane, &request, class, 0, now);
            if established {
                class = ErrorClass::ClosedBeforeResponse;
            }
        }
    }

    /// TCP is established.
    pub(super) fn on_connected(&mut self, slot: u32, at: Nanos) {
        let conn = &mut self.conns[slot as usize];
        self.recorder.connections.connect_time.record(at.since(conn.since).0);
        conn.since = at;
        let lane = conn.lane;
        let target = &self.plan.targets[self.lanes[lane as usize].target];
        let Some(tls) = &target.tls else {
            self.on_open(slot, at);
            return;
        };
        match Session::client(&tls.config, &tls.server_name) {
            Ok(mut session) => {
                session.transmit(self.io.outbox(conn.id));
                conn.tls = Some(Box::new(session));
                conn.state = State::Handshaking;
            }
            Err(error) => {
                self.note_error(ErrorClass::Tls, &error.to_string());
                self.recorder.connections.failed[ErrorClass::Tls as usize] += 1;
                self.break_off(slot, ErrorClass::Tls, Some(Close::Now), at);
            }
        }
    }

    /// Ready for requests: sends those that were waiting for it.
    pub(super) fn on_open(&mut self, slot: u32, at: Nanos) {
        let conn = &mut self.conns[slot as usize];
        conn.state = State::Open;
        self.connecting -= 1;
        self.recorder.connections.opened += 1;
        let lane = &mut self.lanes[conn.lane as usize];
        lane.connected();
        let peer = &mut self.peers[lane.target];
        if peer.protocol.is_empty() {
            peer.protocol = "http/1.1".to_owned();
            if let Some(tls) = &conn.tls {
                peer.tls_version = Some(tls.version().to_owned());
                peer.tls_cipher = tls.cipher();
            }
        }
        if let Some(tls) = &conn.tls {
            self.recorder.connections.tls_time.record(at.since(conn.since).0);
            self.recorder.connections.tls_resumed += u64::from(tls.resumed());
            if let Some(count) = self.tls_versions.get_mut(tls.version()) {
                *count += 1;
            } else {
                self.tls_versions.insert(tls.version().to_owned(), 1);
            }
        }
        if let Some(prepared) = self.conns[slot as usize].prepared.take() {
            self.rendered = prepared;
            self.transmit_rendered(slot);
            self.list(slot);
            return;
        }
        // They were pushed in order and the youngest is written: so take all and push them again one by one.
        let conn = &mut self.conns[slot as usize];
        let mut waiting = std::mem::take(&mut conn.requests);
        while let Some(request) = waiting.pop() {
            self.conns[slot as usize].requests.push(request);
            self.transmit(slot);
        }
        self.list(slot);
    }
}

/// An error of the connect call that has no better class is still one of connecting.
pub(super) fn of_connecting(class: ErrorClass) -> ErrorClass {
    if class.is_connect() { class } else { ErrorClass::ConnectFailed }
}
