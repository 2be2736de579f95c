//! The state of one connection of the sink, and the table of all of them.

use plimsoll_core::Nanos;
use plimsoll_driver::ConnId;
use plimsoll_wire::http1::RequestServer;
use plimsoll_wire::tls::Session;

use super::queue::SingleServer;
use super::reply::Refusal;

/// One accepted connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) id: ConnId,
    pub(crate) server: RequestServer,
    pub(crate) tls: Option<Box<Session>>,
    pub(crate) state: State,
}

/// What the sink knows about a connection beside its protocol.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Requests read.
    pub(crate) requests: u64,
    /// Requests read that wait for their due time.
    pub(crate) outstanding: u32,
    /// The latest due time so far: replies leave in the order of their requests.
    pub(crate) last_due: Nanos,
    /// The connection's own queue, where connections are serial.
    pub(crate) serial: SingleServer,
    /// Bytes of the client have been read.
    pub(crate) spoken: bool,
    /// Nothing more is read from it.
    pub(crate) deaf: bool,
    /// A reply was dropped: nothing more can be sent, for it would be taken for that reply.
    pub(crate) mute: bool,
    /// The client has closed its side.
    pub(crate) peer_closed: bool,
    /// The client waits for `100 Continue`, which has to follow the replies before it.
    pub(crate) continue_owed: bool,
    /// How to part once nothing is outstanding.
    pub(crate) farewell: Option<Farewell>,
    /// The flush and the place in it at which this connection was first written to.
    pub(crate) mark: (u64, u32),
}

/// How to part from a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Farewell {
    /// Close.
    Silent,
    /// Say what is wrong, then close.
    Refuse(Refusal),
}

impl Connection {
    pub(crate) fn new(id: ConnId, tls: Option<Box<Session>>) -> Self {
        Self { id, server: RequestServer::new(), tls, state: State::default() }
    }
}

/// The connections of one thread by slot.
#[derive(Debug, Default)]
pub(crate) struct Table {
    slots: Vec<Option<Connection>>,
}

impl Table {
    pub(crate) fn insert(&mut self, connection: Connection) {
        let slot = connection.id.slot();
        if slot >= self.slots.len() {
            self.slots.resize_with(slot + 1, || None);
        }
        self.slots[slot] = Some(connection);
    }

    /// The connection, unless it is gone.
    #[inline]
    pub(crate) fn get(&mut self, id: ConnId) -> Option<&mut Connection> {
        self.slots.get_mut(id.slot())?.as_mut().filter(|connection| connection.id == id)
    }

    pub(crate) fn remove(&mut self, id: ConnId) {
        if self.get(id).is_some() {
            self.slots[id.slot()] = None;
        }
    }

    /// The ids of all connections.
    pub(crate) fn ids(&self) -> Vec<ConnId> {
        self.slots.iter().flatten().map(|connection| connection.id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_id_finds_and_removes_nothing() {
        let mut table = Table::default();
        let (old, new) = (ConnId::new(2, 1), ConnId::new(2, 2));
        table.insert(Connection::new(old, None));
        table.insert(Connection::new(new, None));
        assert!(table.get(old).is_none());
        table.remove(old);
        assert_eq!(table.ids(), [new]);
        table.remove(new);
        assert!(table.get(new).is_none() && table.ids().is_empty());
    }
}
