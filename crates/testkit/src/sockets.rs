//! The client's side: a table of connections, as a kernel would keep it.

use std::collections::VecDeque;

use plimsoll_core::Nanos;
use plimsoll_driver::{ConnId, ListenerId, SystemError};

/// The state of a connection as its owner sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The slot is empty.
    Free,
    /// No answer to the connect call yet.
    Connecting,
    /// Established.
    Open,
    /// The peer closed or reset it, or the connect failed; the owner has not closed yet.
    Ended,
    /// Closed by the owner; queued bytes are still being sent.
    Lingering,
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// No peer yet.
    Nobody,
    /// A simulated server's link.
    Server(usize),
    /// Another connection of the same backend, through a listener.
    Conn(ConnId),
}

/// One connection slot.
#[derive(Debug)]
pub(crate) struct Socket {
    generation: u32,
    pub(crate) state: State,
    pub(crate) peer: Peer,
    /// Bytes that the owner has written since the last flush.
    pub(crate) outbox: Vec<u8>,
    /// Bytes that were flushed, and not taken by the network yet.
    pub(crate) queued: Vec<u8>,
    pub(crate) dirty: bool,
    /// The send buffer is full: the rest goes out at a later time that is on the timeline.
    pub(crate) full: bool,
    /// Events of this connection among the ready ones.
    pub(crate) pending: u32,
    /// The next segment towards this connection does not arrive before.
    pub(crate) arrives_from: Nanos,
}

/// An event that the next `next_event` calls will report.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) conn: ConnId,
    pub(crate) what: What,
}

#[derive(Debug)]
pub(crate) enum What {
    Connected,
    ConnectFailed(SystemError),
    Accepted(ListenerId),
    /// When the last segment in it arrived, and the bytes.
    Received(Nanos, Vec<u8>),
    Closed,
    Failed(SystemError),
}

/// All connections, and their events that are ready to be reported.
#[derive(Debug, Default)]
pub(crate) struct Sockets {
    sockets: Vec<Socket>,
    free: Vec<u32>,
    ready: VecDeque<Ready>,
}

impl Sockets {
    /// Connections that have a descriptor.
    pub(crate) fn open(&self) -> usize {
        self.sockets.len() - self.free.len()
    }

    pub(crate) fn allocate(&mut self, state: State, peer: Peer) -> ConnId {
        let slot = self.free.pop().unwrap_or(self.sockets.len() as u32);
        let generation = self.sockets.get(slot as usize).map_or(0, |old| old.generation + 1);
        let socket = Socket {
            generation,
            state,
            peer,
            outbox: Vec::new(),
            queued: Vec::new(),
            dirty: false,
            full: false,
            pending: 0,
            arrives_from: Nanos::ZERO,
        };
        if slot as usize == self.sockets.len() {
            self.sockets.push(socket);
        } else {
            self.sockets[slot as usize] = socket;
        }
        ConnId::new(slot, generation)
    }

    /// Empties the slot and drops its ready events. The id is stale from here on.
    pub(crate) fn release(&mut self, conn: ConnId) {
        self.forget_ready(conn);
        self.sockets[conn.slot()].state = State::Free;
        self.free.push(conn.slot() as u32);
    }

    /// The socket, if the id is not stale. A lingering one is still a socket.
    pub(crate) fn get(&self, conn: ConnId) -> Option<&Socket> {
        self.sockets
            .get(conn.slot())
            .filter(|socket| socket.generation == conn.generation() && socket.state != State::Free)
    }

    /// Like [`get`](Self::get).
    pub(crate) fn get_mut(&mut self, conn: ConnId) -> Option<&mut Socket> {
        self.sockets
            .get_mut(conn.slot())
            .filter(|socket| socket.generation == conn.generation() && socket.state != State::Free)
    }

    /// The socket, if its owner may still use it.
    pub(crate) fn owned(&mut self, conn: ConnId) -> Option<&mut Socket> {
        self.get_mut(conn).filter(|socket| socket.state != State::Lingering)
    }

    /// Puts an event among the ready ones.
    pub(crate) fn report(&mut self, conn: ConnId, what: What) {
        self.sockets[conn.slot()].pending += 1;
        self.ready.push_back(Ready { conn, what });
    }

    /// The bytes of this connection that are ready last, if nothing else of it came after them: so that
    /// segments can be read together.
    pub(crate) fn last_received(&mut self, conn: ConnId) -> Option<(&mut Nanos, &mut Vec<u8>)> {
        if self.sockets[conn.slot()].pending == 0 {
            return None;
        }
        match self.ready.iter_mut().rev().find(|ready| ready.conn == conn) {
            Some(Ready { what: What::Received(at, bytes), .. }) => Some((at, bytes)),
            _ => None,
        }
    }

    pub(crate) fn forget_ready(&mut self, conn: ConnId) {
        if self.sockets[conn.slot()].pending > 0 {
            self.ready.retain(|ready| ready.conn != conn);
            self.sockets[conn.slot()].pending = 0;
        }
    }

    pub(crate) fn ready(&self) -> usize {
        self.ready.len()
    }

    pub(crate) fn next_ready(&mut self) -> Option<Ready> {
        let ready = self.ready.pop_front()?;
        self.sockets[ready.conn.slot()].pending -= 1;
        Some(ready)
    }
}
